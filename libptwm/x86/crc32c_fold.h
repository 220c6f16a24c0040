/*
 * CRC-32C by carry-less multiplication of vectors of 64 bytes (see crc32c_impl.h for how the constants come about).
 */
#ifndef PTWM_CRC32C_FOLD_H
#define PTWM_CRC32C_FOLD_H

#include <immintrin.h>
#include <stdint.h>

#define TARGET_VPCLMUL __attribute__((target("avx512f,avx512vl,avx512bw,avx512dq,vpclmulqdq,sse4.2,pclmul")))

/*
 * Folding: x is moved on by n bytes and added to next. A vector's 128-bit lanes are polynomials of 128 bits; power holds
 * x^(8 n + 31) for their first 64 bits and x^(8 n - 33) for their last.
 */
TARGET_VPCLMUL static inline __attribute__((always_inline)) __m512i crc32c_fold_512(__m512i x, __m512i power, __m512i next)
{
    return _mm512_ternarylogic_epi64(_mm512_clmulepi64_epi128(x, power, 0x00), _mm512_clmulepi64_epi128(x, power, 0x11),
                                     next, 0x96);
}

TARGET_VPCLMUL static inline __attribute__((always_inline)) __m128i crc32c_fold_128(__m128i x, __m128i power, __m128i next)
{
    return _mm_ternarylogic_epi64(_mm_clmulepi64_si128(x, power, 0x00), _mm_clmulepi64_si128(x, power, 0x11), next, 0x96);
}

/* The power for 64 bytes. */
TARGET_VPCLMUL static inline __attribute__((always_inline)) __m512i crc32c_by_64(void)
{
    return _mm512_broadcast_i32x4(_mm_set_epi64x(0x9E4ADDF8, 0x740EEF02));
}

/* The CRC register that 64 bytes leave. */
TARGET_VPCLMUL static inline __attribute__((always_inline)) uint32_t crc32c_reduce_512(__m512i x)
{
    const __m128i by_16 = _mm_set_epi64x(0x493C7D27, 0xF20C0DFE);
    __m128i y = _mm512_castsi512_si128(x);

    y = crc32c_fold_128(y, by_16, _mm512_extracti32x4_epi32(x, 1));
    y = crc32c_fold_128(y, by_16, _mm512_extracti32x4_epi32(x, 2));
    y = crc32c_fold_128(y, by_16, _mm512_extracti32x4_epi32(x, 3));
    return (uint32_t)_mm_crc32_u64(_mm_crc32_u64(0, (uint64_t)_mm_cvtsi128_si64(y)), (uint64_t)_mm_extract_epi64(y, 1));
}

/* 64 bytes that leave that CRC register: zeros, and four bytes that 32 steps back lead to. */
TARGET_VPCLMUL static inline __attribute__((always_inline)) __m512i crc32c_expand_512(uint32_t crc)
{
    for (unsigned i = 0; i < 32; i++)
        crc = crc & 0x80000000 ? (crc ^ 0x82F63B78) << 1 | 1 : crc << 1;
    return _mm512_mask_set1_epi32(_mm512_setzero_si512(), 0x8000, (int)crc);
}

#endif
