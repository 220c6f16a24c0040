/*
 * Assigning units to classes (label_classes.c) with AVX2 and AVX-512: a unit's cost in a class is a scalar product of u16
 * counts below 2^15 and i16 costs, which multiply-add instructions take two at a time, exactly.
 */
#include <immintrin.h>

#define TARGET_AVX2 __attribute__((target("avx2")))
#define TARGET_AVX512 __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq")))

/* The first of the four that is the least. */
TARGET_AVX2 static inline uint32_t index_of_least(__m128i costs)
{
    __m128i least = _mm_min_epi32(costs, _mm_shuffle_epi32(costs, 0x4e));
    least = _mm_min_epi32(least, _mm_shuffle_epi32(least, 0xb1));
    return (uint32_t)__builtin_ctz((unsigned)_mm_movemask_ps(_mm_castsi128_ps(_mm_cmpeq_epi32(costs, least))));
}

/* The four vectors' sums, in their order. */
TARGET_AVX2 static inline __m128i four_sums(__m256i a, __m256i b, __m256i c, __m256i d)
{
    const __m256i all = _mm256_hadd_epi32(_mm256_hadd_epi32(a, b), _mm256_hadd_epi32(c, d));
    return _mm_add_epi32(_mm256_castsi256_si128(all), _mm256_extracti128_si256(all, 1));
}

TARGET_AVX2 static void assign_avx2(const uint16_t *histograms, size_t n_units, size_t step,
                                    const int16_t costs[PTWM_ANALYSED_CLASSES][PTWM_N_BINS], uint8_t *classes,
                                    uint32_t counts[PTWM_ANALYSED_CLASSES][PTWM_N_BINS])
{
    for (size_t u = 0; u < n_units; u += step) {
        const uint16_t *histogram = histograms + u * PTWM_N_BINS;
        __m256i sums[PTWM_ANALYSED_CLASSES], h[4];
        uint32_t best;

        for (unsigned i = 0; i < 4; i++)
            h[i] = _mm256_loadu_si256((const __m256i *)(const void *)(histogram + 16 * i));
        for (unsigned z = 0; z < PTWM_ANALYSED_CLASSES; z++) {
            const __m256i *c = (const __m256i *)(const void *)costs[z];
            sums[z] = _mm256_add_epi32(_mm256_add_epi32(_mm256_madd_epi16(h[0], _mm256_loadu_si256(c)),
                                                        _mm256_madd_epi16(h[1], _mm256_loadu_si256(c + 1))),
                                       _mm256_add_epi32(_mm256_madd_epi16(h[2], _mm256_loadu_si256(c + 2)),
                                                        _mm256_madd_epi16(h[3], _mm256_loadu_si256(c + 3))));
        }
        best = index_of_least(four_sums(sums[0], sums[1], sums[2], sums[3]));
        classes[u] = (uint8_t)best;
        for (unsigned i = 0; i < 8; i++) {
            __m256i *count = (__m256i *)(void *)(counts[best] + 8 * i);
            __m128i own = _mm_loadu_si128((const __m128i *)(const void *)(histogram + 8 * i));
            _mm256_storeu_si256(count, _mm256_add_epi32(_mm256_loadu_si256(count), _mm256_cvtepu16_epi32(own)));
        }
    }
}

TARGET_AVX512 static void assign_avx512(const uint16_t *histograms, size_t n_units, size_t step,
                                        const int16_t costs[PTWM_ANALYSED_CLASSES][PTWM_N_BINS], uint8_t *classes,
                                        uint32_t counts[PTWM_ANALYSED_CLASSES][PTWM_N_BINS])
{
    __m512i low[PTWM_ANALYSED_CLASSES], high[PTWM_ANALYSED_CLASSES];

    for (unsigned z = 0; z < PTWM_ANALYSED_CLASSES; z++) {
        low[z] = _mm512_loadu_si512(costs[z]);
        high[z] = _mm512_loadu_si512(costs[z] + 32);
    }
    for (size_t u = 0; u < n_units; u += step) {
        const uint16_t *histogram = histograms + u * PTWM_N_BINS;
        const __m512i h0 = _mm512_loadu_si512(histogram), h1 = _mm512_loadu_si512(histogram + 32);
        __m256i sums[PTWM_ANALYSED_CLASSES];
        uint32_t best;

        for (unsigned z = 0; z < PTWM_ANALYSED_CLASSES; z++) {
            __m512i sum = _mm512_add_epi32(_mm512_madd_epi16(h0, low[z]), _mm512_madd_epi16(h1, high[z]));
            sums[z] = _mm256_add_epi32(_mm512_castsi512_si256(sum), _mm512_extracti64x4_epi64(sum, 1));
        }
        best = index_of_least(four_sums(sums[0], sums[1], sums[2], sums[3]));
        classes[u] = (uint8_t)best;
        for (unsigned i = 0; i < 4; i++) {
            uint32_t *count = counts[best] + 16 * i;
            __m256i own = _mm256_loadu_si256((const __m256i *)(const void *)(histogram + 16 * i));
            _mm512_storeu_si512(count, _mm512_add_epi32(_mm512_loadu_si512(count), _mm512_cvtepu16_epi32(own)));
        }
    }
}

#undef TARGET_AVX2
#undef TARGET_AVX512
