/*
 * Looking for repetition (repetition.c) with AVX-512, where masks tell which words are to be looked up.
 */
#include <immintrin.h>

__attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,bmi,popcnt"))) static void
look_avx512(const uint8_t *data, size_t n_words, struct seen *seen)
{
    const __m512i factor = _mm512_set1_epi64(HASH_FACTOR), chosen = _mm512_set1_epi64((int64_t)CHOSEN << 32);
    const __m512i bits = _mm512_set1_epi64((int64_t)((1 << RATE_BITS) - 1) << 32);

    for (size_t i = 0; i < n_words; i += 8) {
        const __m512i word = _mm512_loadu_si512(data + 8 * i);
        /* The multiplication takes the low halves. */
        const __m512i hash = _mm512_mul_epu32(_mm512_xor_si512(word, _mm512_srli_epi64(word, 31)), factor);
        __mmask8 mask = _mm512_cmpeq_epi64_mask(_mm512_and_si512(hash, bits), chosen);

        seen->n_zero += (size_t)_mm_popcnt_u32(_mm512_testn_epi64_mask(word, word));
        for (; mask != 0; mask = (__mmask8)(mask & (mask - 1)))
            look_up(seen, ptwm_load64(data + 8 * (i + (unsigned)__builtin_ctz(mask))));
    }
}
