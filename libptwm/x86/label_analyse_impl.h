/*
 * Assigning units to classes (label_classes.c) with AVX2 and AVX-512: a unit's cost in a class is a scalar product of
 * u16 counts below 2^15 and i16 costs, which multiply-add instructions take two at a time, exactly. Some units are
 * assigned first and then counted class by class, in registers.
 */
#include <immintrin.h>

enum { BATCH_UNITS = 32 };

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

/* Assigns n units, step apart. */
TARGET_AVX2 static void choose_avx2(const uint16_t *histogram, size_t n, size_t step,
                                    const int16_t costs[PTWM_ANALYSED_CLASSES][PTWM_N_BINS],
                                    uint8_t classes[BATCH_UNITS])
{
    for (size_t u = 0; u < n; u++, histogram += step * PTWM_N_BINS) {
        __m256i sums[PTWM_ANALYSED_CLASSES], h[4];

        for (unsigned i = 0; i < 4; i++)
            h[i] = _mm256_loadu_si256((const __m256i *)(const void *)(histogram + 16 * i));
        for (unsigned z = 0; z < PTWM_ANALYSED_CLASSES; z++) {
            const __m256i *c = (const __m256i *)(const void *)costs[z];
            sums[z] = _mm256_add_epi32(_mm256_add_epi32(_mm256_madd_epi16(h[0], _mm256_loadu_si256(c)),
                                                        _mm256_madd_epi16(h[1], _mm256_loadu_si256(c + 1))),
                                       _mm256_add_epi32(_mm256_madd_epi16(h[2], _mm256_loadu_si256(c + 2)),
                                                        _mm256_madd_epi16(h[3], _mm256_loadu_si256(c + 3))));
        }
        classes[u] = (uint8_t)index_of_least(four_sums(sums[0], sums[1], sums[2], sums[3]));
    }
}

/* Adds the histograms of units, step apart: those whose bits are set. */
TARGET_AVX2 static void count_class_avx2(const uint16_t *histogram, uint32_t units, size_t step, uint32_t *counts)
{
    __m256i sums[8];

    for (unsigned i = 0; i < 8; i++)
        sums[i] = _mm256_loadu_si256((const __m256i *)(const void *)(counts + 8 * i));
    for (; units != 0; units &= units - 1) {
        const uint16_t *own = histogram + (unsigned)__builtin_ctz(units) * step * PTWM_N_BINS;
        for (unsigned i = 0; i < 8; i++)
            sums[i] = _mm256_add_epi32(
                sums[i], _mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)(const void *)(own + 8 * i))));
    }
    for (unsigned i = 0; i < 8; i++)
        _mm256_storeu_si256((__m256i *)(void *)(counts + 8 * i), sums[i]);
}

TARGET_AVX512 static void choose_avx512(const uint16_t *histogram, size_t n, size_t step,
                                        const int16_t costs[PTWM_ANALYSED_CLASSES][PTWM_N_BINS],
                                        uint8_t classes[BATCH_UNITS])
{
    __m512i low[PTWM_ANALYSED_CLASSES], high[PTWM_ANALYSED_CLASSES];

    for (unsigned z = 0; z < PTWM_ANALYSED_CLASSES; z++) {
        low[z] = _mm512_loadu_si512(costs[z]);
        high[z] = _mm512_loadu_si512(costs[z] + 32);
    }
    for (size_t u = 0; u < n; u++, histogram += step * PTWM_N_BINS) {
        const __m512i h0 = _mm512_loadu_si512(histogram), h1 = _mm512_loadu_si512(histogram + 32);
        __m256i sums[PTWM_ANALYSED_CLASSES];

        for (unsigned z = 0; z < PTWM_ANALYSED_CLASSES; z++) {
            __m512i sum = _mm512_add_epi32(_mm512_madd_epi16(h0, low[z]), _mm512_madd_epi16(h1, high[z]));
            sums[z] = _mm256_add_epi32(_mm512_castsi512_si256(sum), _mm512_extracti64x4_epi64(sum, 1));
        }
        classes[u] = (uint8_t)index_of_least(four_sums(sums[0], sums[1], sums[2], sums[3]));
    }
}

TARGET_AVX512 static void count_class_avx512(const uint16_t *histogram, uint32_t units, size_t step, uint32_t *counts)
{
    __m512i sums[4];

    for (unsigned i = 0; i < 4; i++)
        sums[i] = _mm512_loadu_si512(counts + 16 * i);
    for (; units != 0; units &= units - 1) {
        const uint16_t *own = histogram + (unsigned)__builtin_ctz(units) * step * PTWM_N_BINS;
        for (unsigned i = 0; i < 4; i++)
            sums[i] = _mm512_add_epi32(
                sums[i], _mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)(const void *)(own + 16 * i))));
    }
    for (unsigned i = 0; i < 4; i++)
        _mm512_storeu_si512(counts + 16 * i, sums[i]);
}

/* Which of n units have that class. */
TARGET_AVX2 static inline uint32_t units_of(const uint8_t classes[BATCH_UNITS], size_t n, uint32_t class)
{
    const __m256i all = _mm256_loadu_si256((const __m256i *)(const void *)classes);
    const uint32_t equal = (uint32_t)_mm256_movemask_epi8(_mm256_cmpeq_epi8(all, _mm256_set1_epi8((char)class)));
    return equal & (0xffffffffu >> (BATCH_UNITS - n));
}

#define DEFINE_ASSIGN(isa, target)                                                                                     \
    target static void assign_##isa(const uint16_t *histograms, size_t n_units, size_t step,                           \
                                    const int16_t costs[PTWM_ANALYSED_CLASSES][PTWM_N_BINS], uint8_t *classes,         \
                                    uint32_t counts[PTWM_ANALYSED_CLASSES][PTWM_N_BINS])                               \
    {                                                                                                                  \
        for (size_t u = 0; u < n_units; u += BATCH_UNITS * step) {                                                     \
            const size_t left = (n_units - u + step - 1) / step, n = left < BATCH_UNITS ? left : BATCH_UNITS;          \
            uint8_t own[BATCH_UNITS] = { 0 };                                                                          \
            choose_##isa(histograms + u * PTWM_N_BINS, n, step, costs, own);                                           \
            for (uint32_t z = 0; z < PTWM_ANALYSED_CLASSES; z++)                                                       \
                count_class_##isa(histograms + u * PTWM_N_BINS, units_of(own, n, z), step, counts[z]);                 \
            for (size_t i = 0; i < n; i++)                                                                             \
                classes[u + i * step] = own[i];                                                                        \
        }                                                                                                              \
    }
DEFINE_ASSIGN(avx2, TARGET_AVX2)
DEFINE_ASSIGN(avx512, TARGET_AVX512)
#undef DEFINE_ASSIGN
#undef TARGET_AVX2
#undef TARGET_AVX512
