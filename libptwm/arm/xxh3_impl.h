/*
 * The blocks of long inputs (xxh3.c) with NEON: the eight accumulators are four vectors. Tested under emulation; not measured.
 */
#include <arm_neon.h>

static inline uint64x2_t add_stripe_neon(uint64x2_t acc, const uint8_t *p, const uint8_t *key)
{
    const uint64x2_t data = vreinterpretq_u64_u8(vld1q_u8(p));
    const uint64x2_t mixed = veorq_u64(data, vreinterpretq_u64_u8(vld1q_u8(key)));

    acc = vaddq_u64(acc, vextq_u64(data, data, 1));
    return vmlal_u32(acc, vmovn_u64(mixed), vshrn_n_u64(mixed, 32));
}

static inline uint64x2_t scramble_neon(uint64x2_t acc, const uint8_t *key)
{
    const uint32x2_t prime = vdup_n_u32(PRIME32_1);
    const uint64x2_t mixed =
        veorq_u64(veorq_u64(acc, vshrq_n_u64(acc, 47)), vreinterpretq_u64_u8(vld1q_u8(key)));
    const uint64x2_t high = vmull_u32(vshrn_n_u64(mixed, 32), prime);

    return vmlal_u32(vshlq_n_u64(high, 32), vmovn_u64(mixed), prime);
}

static void add_blocks_neon(uint64_t acc[8], const uint8_t *p, size_t n_blocks)
{
    uint64x2_t a[4];

    for (unsigned i = 0; i < 4; i++)
        a[i] = vld1q_u64(acc + 2 * i);
    for (; n_blocks > 0; n_blocks--) {
        for (unsigned s = 0; s < STRIPES_PER_BLOCK; s++, p += STRIPE_NBYTES)
            for (unsigned i = 0; i < 4; i++)
                a[i] = add_stripe_neon(a[i], p + 16 * i, secret + 8 * s + 16 * i);
        for (unsigned i = 0; i < 4; i++)
            a[i] = scramble_neon(a[i], secret + 128 + 16 * i);
    }
    for (unsigned i = 0; i < 4; i++)
        vst1q_u64(acc + 2 * i, a[i]);
}
