/*
 * Looking for repetition (repetition.c) with NEON: 32 words at a time, of which few have one to look up. Tested under emulation;
 * not measured.
 */
#include <arm_neon.h>

static void look_neon(const uint8_t *data, size_t n_words, struct seen *seen)
{
    const uint32x2_t factor = vdup_n_u32((uint32_t)HASH_FACTOR);
    const uint64x2_t chosen = vdupq_n_u64((uint64_t)CHOSEN << 32), bits = vdupq_n_u64((uint64_t)((1 << RATE_BITS) - 1) << 32);

    for (size_t i = 0; i < n_words; i += BLOCK, data += 8 * BLOCK) {
        uint64x2_t any = vdupq_n_u64(0), n_zero = any;
        for (size_t k = 0; k < BLOCK; k += 2) {
            const uint64x2_t word = vreinterpretq_u64_u8(vld1q_u8(data + 8 * k));
            const uint64x2_t hash = vmull_u32(vmovn_u64(veorq_u64(word, vshrq_n_u64(word, 31))), factor);
            any = vorrq_u64(any, vceqq_u64(vandq_u64(hash, bits), chosen));
            n_zero = vsubq_u64(n_zero, vceqzq_u64(word));
        }
        seen->n_zero += (size_t)vaddvq_u64(n_zero);
        for (size_t k = 0; vmaxvq_u32(vreinterpretq_u32_u64(any)) != 0 && k < BLOCK; k++)
            if (is_chosen(hash_word(ptwm_load64(data + 8 * k))))
                look_up(seen, ptwm_load64(data + 8 * k));
    }
}
