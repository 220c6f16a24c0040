/*
 * Histograms of bins from their bit planes: a bin's elements are the AND of six planes or their complements, which popcount
 * counts. A part of float_split_impl.h, whose helpers it uses.
 */

/* ------------------------------------------------------------------------------------------------- AVX-512 */

/* Bits of a where the mask's are set, else of b. The mask drops what a shift of u16 moves between bytes. */
AVX512 INLINE __m512i merge_512(int mask, __m512i a, __m512i b)
{
    return choose_512(_mm512_set1_epi8((char)mask), a, b);
}

/*
 * Bit planes 0 .. 5 of up to eight vectors of bytes: byte i of plane k has bit k of byte i of vector j as its bit j.
 * Three rounds of exchanges, of single bits, pairs and halves, as in the transposition of an 8 x 8 matrix of bits.
 */
AVX512 INLINE void bit_planes_512(const __m512i v[8], unsigned n_vectors, __m512i planes[6])
{
    __m512i even[4], odd[4], two[4][2];

#pragma GCC unroll 4
    for (unsigned j = 0; j < 4; j++) {
        even[j] = odd[j] = _mm512_setzero_si512();
        if (2 * j >= n_vectors)
            continue;
        even[j] = merge_512(0xaa, _mm512_slli_epi16(v[2 * j + 1], 1), v[2 * j]);
        odd[j] = merge_512(0xaa, v[2 * j + 1], _mm512_srli_epi16(v[2 * j], 1));
    }
#pragma GCC unroll 2
    for (unsigned j = 0; j < 2; j++) {
        two[0][j] = merge_512(0xcc, _mm512_slli_epi16(even[2 * j + 1], 2), even[2 * j]);
        two[1][j] = merge_512(0xcc, _mm512_slli_epi16(odd[2 * j + 1], 2), odd[2 * j]);
        two[2][j] = merge_512(0xcc, even[2 * j + 1], _mm512_srli_epi16(even[2 * j], 2));
        two[3][j] = merge_512(0xcc, odd[2 * j + 1], _mm512_srli_epi16(odd[2 * j], 2));
    }
#pragma GCC unroll 4
    for (unsigned k = 0; k < 4; k++)
        planes[k] = merge_512(0xf0, _mm512_slli_epi16(two[k][1], 4), two[k][0]);
    planes[4] = merge_512(0xf0, two[0][1], _mm512_srli_epi16(two[0][0], 4));
    planes[5] = merge_512(0xf0, two[1][1], _mm512_srli_epi16(two[1][0], 4));
}

/*
 * Counts of four sets of bits: in each 128-bit lane two u16 for the first set, two for the second, and so on, of which the
 * sum over all is the count. Counts of 64 bits are small, so that packing takes the zeros out.
 */
AVX512 INLINE __m512i four_counts(__m512i a, __m512i b, __m512i c, __m512i d)
{
    return _mm512_packus_epi32(_mm512_packus_epi32(_mm512_popcnt_epi64(a), _mm512_popcnt_epi64(b)),
                               _mm512_packus_epi32(_mm512_popcnt_epi64(c), _mm512_popcnt_epi64(d)));
}

/* Adds neighbours: eight u16 counts in each 128-bit lane. one: as u16. */
AVX512 INLINE __m512i eight_counts(__m512i first_four, __m512i second_four, __m512i one)
{
    return _mm512_packus_epi32(_mm512_madd_epi16(first_four, one), _mm512_madd_epi16(second_four, one));
}

/* Adds 128-bit lanes in pairs: two lanes of a, then two of b. */
AVX512 INLINE __m512i add_lanes(__m512i a, __m512i b)
{
    return _mm512_add_epi16(_mm512_shuffle_i64x2(a, b, 0x88), _mm512_shuffle_i64x2(a, b, 0xdd));
}

/*
 * Which eighths of the bins (bit k: bins 8 k .. 8 k + 7) have elements in nearly every row of weights, and in some; the others
 * are mostly empty, since a range begins so far below its core as it does (label_bins.c). Those are 0x07 or 0x70, or none.
 */
struct eighths {
    uint8_t usual, frequent;
};

AVX512 INLINE struct eighths eighths_of(struct ptwm_float_step s)
{
    return s.bits >= 8    ? (struct eighths){ 0x70, 0x88 }
           : s.bits == 5  ? (struct eighths){ 0x0e, 0x81 }
           : s.width == 2 ? (struct eighths){ 0x07, 0x88 }
                          : (struct eighths){ 0xe0, 0x18 };
}

/* Elements whose bins' upper three bits are among which. */
#define AMONG(which) _mm512_ternarylogic_epi64(p[5], p[4], p[3], which)
#define COUNT_EIGHTH(k, condition)                                                                                     \
    do {                                                                                                               \
        const __m512i outer = AMONG(1 << (k));                                                                         \
        if (condition)                                                                                                 \
            z[k] = eight_counts(four_counts(_mm512_and_si512(outer, inner[0]), _mm512_and_si512(outer, inner[1]),      \
                                            _mm512_and_si512(outer, inner[2]), _mm512_and_si512(outer, inner[3])),     \
                                four_counts(_mm512_and_si512(outer, inner[4]), _mm512_and_si512(outer, inner[5]),      \
                                            _mm512_and_si512(outer, inner[6]), _mm512_and_si512(outer, inner[7])),     \
                                one);                                                                                  \
    } while (0)
#define COUNT_EIGHTHS(which, condition)                    \
    do {                                                   \
        if ((which) & 1) COUNT_EIGHTH(0, condition);       \
        if ((which) & 2) COUNT_EIGHTH(1, condition);       \
        if ((which) & 4) COUNT_EIGHTH(2, condition);       \
        if ((which) & 8) COUNT_EIGHTH(3, condition);       \
        if ((which) & 16) COUNT_EIGHTH(4, condition);      \
        if ((which) & 32) COUNT_EIGHTH(5, condition);      \
        if ((which) & 64) COUNT_EIGHTH(6, condition);      \
        if ((which) & 128) COUNT_EIGHTH(7, condition);     \
    } while (0)

/* Adds the histogram of n_vectors vectors of bins, an even number up to eight. */
AVX512 INLINE void count_vectors_512(const __m512i v[8], unsigned n_vectors, struct eighths eighths,
                                     uint16_t histogram[PTWM_N_BINS])
{
    const uint8_t rare = (uint8_t)~(eighths.usual | eighths.frequent);
    __m512i p[6], inner[8], z[8], one = _mm512_set1_epi16(1), all = _mm512_set1_epi8((char)((1u << n_vectors) - 1));

    __asm__("" : "+v"(one)); /* compilers make such constants anew each time, which takes as long as a popcount */
    bit_planes_512(v, n_vectors, p);
#pragma GCC unroll 8
    for (unsigned k = 0; k < 8; k++)
        z[k] = _mm512_setzero_si512();
    /* Where there are no elements, they must not count as bin 0. */
    inner[0] = _mm512_and_si512(_mm512_ternarylogic_epi64(p[2], p[1], p[0], 0x01), all);
    inner[1] = _mm512_ternarylogic_epi64(p[2], p[1], p[0], 0x02);
    inner[2] = _mm512_ternarylogic_epi64(p[2], p[1], p[0], 0x04);
    inner[3] = _mm512_ternarylogic_epi64(p[2], p[1], p[0], 0x08);
    inner[4] = _mm512_ternarylogic_epi64(p[2], p[1], p[0], 0x10);
    inner[5] = _mm512_ternarylogic_epi64(p[2], p[1], p[0], 0x20);
    inner[6] = _mm512_ternarylogic_epi64(p[2], p[1], p[0], 0x40);
    inner[7] = _mm512_ternarylogic_epi64(p[2], p[1], p[0], 0x80);
    COUNT_EIGHTHS(eighths.usual, true);
    COUNT_EIGHTHS(eighths.frequent, _mm512_test_epi64_mask(outer, all) != 0);
    /* Immediates are literals: compilers that do not optimise want them. */
    if (rare != 0 && _mm512_test_epi64_mask(rare == 0x07 ? AMONG(0x07) : AMONG(0x70), all) != 0)
        COUNT_EIGHTHS(rare, _mm512_test_epi64_mask(outer, all) != 0);
    _mm512_storeu_si512(histogram, _mm512_add_epi16(_mm512_loadu_si512(histogram),
                                                    add_lanes(add_lanes(z[0], z[1]), add_lanes(z[2], z[3]))));
    _mm512_storeu_si512(histogram + 32, _mm512_add_epi16(_mm512_loadu_si512(histogram + 32),
                                                         add_lanes(add_lanes(z[4], z[5]), add_lanes(z[6], z[7]))));
}
#undef COUNT_EIGHTHS
#undef COUNT_EIGHTH
#undef AMONG

/* Adds n_vectors times 64 bins. */
AVX512 INLINE void add_vectors_512(const uint8_t *bins, unsigned n_vectors, uint16_t histogram[PTWM_N_BINS])
{
    __m512i v[8];

#pragma GCC unroll 8
    for (unsigned j = 0; j < n_vectors; j++)
        v[j] = bytes_64(bins + 64 * j);
    count_vectors_512(v, n_vectors, (struct eighths){ 0, 0xff }, histogram);
}

AVX512 static void add_bins_avx512(const uint8_t *bins, size_t n, uint16_t histogram[PTWM_N_BINS])
{
    size_t i = 0;

    for (; n - i >= BLOCK; i += BLOCK)
        add_vectors_512(bins + i, 8, histogram);
    switch ((n - i) / 128) {
    case 3: add_vectors_512(bins + i, 6, histogram); break;
    case 2: add_vectors_512(bins + i, 4, histogram); break;
    case 1: add_vectors_512(bins + i, 2, histogram); break;
    default: break;
    }
    for (i += (n - i) / 128 * 128; i < n; i++)
        histogram[bins[i]]++;
}

/* How many of n_vectors times 64 symbols are below the range, but not 0. */
AVX512 static unsigned count_below_512(struct ptwm_float_step s, const uint8_t *raw, unsigned n_vectors, uint16_t first,
                                       const uint16_t *shift)
{
    const __m512i one = _mm512_set1_epi16(1), below = _mm512_set1_epi16((short)(first - 1));
    unsigned n = 0;

    for (unsigned j = 0; j < 2 * n_vectors; j++) {
        const __m512i symbol = symbols_of_32(s, raw + 32 * j * s.width, shift != NULL ? shift + 32 * j : NULL);
        n += (unsigned)_mm_popcnt_u32(_mm512_cmplt_epu16_mask(_mm512_sub_epi16(symbol, one), below));
    }
    return n;
}

/* Adds the bins of n_vectors times 64 elements. */
AVX512 INLINE void count_elements_512(struct ptwm_float_step s, const uint8_t *raw, unsigned n_vectors, uint16_t first,
                                      const uint16_t *shift, uint16_t histogram[PTWM_N_BINS])
{
    const unsigned step_nbytes = 64u * s.width;
    __m512i v[8];

#pragma GCC unroll 8
    for (unsigned j = 0; j < n_vectors; j++)
        v[j] = s.width == 1 ? bins_of_64(s, raw + step_nbytes * j, first, shift != NULL ? shift + 64 * j : NULL)
                            : _mm512_sub_epi8(rough_bins_of_64(s, raw + step_nbytes * j, first,
                                                               shift != NULL ? shift + 64 * j : NULL),
                                              _mm512_set1_epi8(1));
    count_vectors_512(v, n_vectors, eighths_of(s), histogram);
    if (s.width > 1 && histogram[PTWM_ZERO_BIN] > 0 && first > 1) {
        const unsigned n = count_below_512(s, raw, n_vectors, first, shift);
        histogram[PTWM_ZERO_BIN] = (uint16_t)(histogram[PTWM_ZERO_BIN] - n);
        histogram[PTWM_OTHER_BIN] = (uint16_t)(histogram[PTWM_OTHER_BIN] + n);
    }
}

AVX512 INLINE void count_body_512(struct ptwm_float_step s, const uint8_t *raw, size_t n, uint16_t first,
                                  const uint16_t *shift, uint16_t histogram[PTWM_N_BINS])
{
    uint8_t bins[BLOCK];
    __m512i any;

    if (n == BLOCK) {
        count_elements_512(s, raw, 8, first, shift, histogram);
    } else if (n == 384) { /* the rows of many models */
        count_elements_512(s, raw, 6, first, shift, histogram);
    } else {
        bins_body_512(s, raw, n, first, shift, NULL, bins, &any);
        add_bins_avx512(bins, n, histogram);
    }
}

/* A function for each kind: compilers that do not optimise give each copy of a body memory of its own, 10 MB in all. */
#define DEFINE_COUNT_512(kind)                                                                                         \
    AVX512 static void count_##kind##_512(const uint8_t *raw, size_t n, uint16_t first, const uint16_t *shift,         \
                                          uint16_t histogram[PTWM_N_BINS])                                             \
    {                                                                                                                  \
        count_body_512(ptwm_float_steps[PTWM_FLOAT_##kind], raw, n, first, NULL, histogram);                           \
        (void)shift;                                                                                                   \
    }                                                                                                                  \
    AVX512 static void count_shifted_##kind##_512(const uint8_t *raw, size_t n, uint16_t first, const uint16_t *shift, \
                                                  uint16_t histogram[PTWM_N_BINS])                                     \
    {                                                                                                                  \
        count_body_512(ptwm_float_steps[PTWM_FLOAT_##kind], raw, n, first, shift, histogram);                          \
    }
#define COUNTS_512(kind) [PTWM_FLOAT_##kind] = { count_##kind##_512, count_shifted_##kind##_512 }

DEFINE_COUNT_512(B16_9)
DEFINE_COUNT_512(B16_8)
DEFINE_COUNT_512(F32_9)
DEFINE_COUNT_512(F32_8)
DEFINE_COUNT_512(F16_6)
DEFINE_COUNT_512(F8_5)
DEFINE_COUNT_512(F8_6)
DEFINE_COUNT_512(I8_5)

static void (*const counts_512[PTWM_N_FLOAT_KINDS][2])(const uint8_t *raw, size_t n, uint16_t first,
                                                       const uint16_t *shift, uint16_t histogram[PTWM_N_BINS]) = {
    COUNTS_512(B16_9), COUNTS_512(B16_8), COUNTS_512(F32_9), COUNTS_512(F32_8),
    COUNTS_512(F16_6), COUNTS_512(F8_5),  COUNTS_512(F8_6),  COUNTS_512(I8_5),
};
#undef DEFINE_COUNT_512
#undef COUNTS_512

/* As ptwm_float_count. */
AVX512 static void count_avx512(enum ptwm_float_kind kind, const uint8_t *raw, size_t n, uint16_t first,
                                const uint16_t *shift, uint16_t histogram[PTWM_N_BINS])
{
    const size_t whole = n / 128 * 128;

    counts_512[kind][shift != NULL](raw, whole, first, shift, histogram);
    if (n > whole)
        count_c99(kind, raw + whole * ptwm_float_steps[kind].width, n - whole, first,
                  shift != NULL ? shift + whole : NULL, histogram);
}

/* ---------------------------------------------------------------------------------------------------- AVX2 */

AVX2 INLINE __m256i merge_256(int mask, __m256i a, __m256i b)
{
    return choose_256(_mm256_set1_epi8((char)mask), a, b);
}

/* As with AVX-512: bit planes 0 .. 5 of eight vectors of bytes. */
AVX2 INLINE void bit_planes_256(const __m256i v[8], __m256i planes[6])
{
    __m256i even[4], odd[4], two[4][2];

#pragma GCC unroll 4
    for (unsigned j = 0; j < 4; j++) {
        even[j] = merge_256(0xaa, _mm256_slli_epi16(v[2 * j + 1], 1), v[2 * j]);
        odd[j] = merge_256(0xaa, v[2 * j + 1], _mm256_srli_epi16(v[2 * j], 1));
    }
#pragma GCC unroll 2
    for (unsigned j = 0; j < 2; j++) {
        two[0][j] = merge_256(0xcc, _mm256_slli_epi16(even[2 * j + 1], 2), even[2 * j]);
        two[1][j] = merge_256(0xcc, _mm256_slli_epi16(odd[2 * j + 1], 2), odd[2 * j]);
        two[2][j] = merge_256(0xcc, even[2 * j + 1], _mm256_srli_epi16(even[2 * j], 2));
        two[3][j] = merge_256(0xcc, odd[2 * j + 1], _mm256_srli_epi16(odd[2 * j], 2));
    }
#pragma GCC unroll 4
    for (unsigned k = 0; k < 4; k++)
        planes[k] = merge_256(0xf0, _mm256_slli_epi16(two[k][1], 4), two[k][0]);
    planes[4] = merge_256(0xf0, two[0][1], _mm256_srli_epi16(two[0][0], 4));
    planes[5] = merge_256(0xf0, two[1][1], _mm256_srli_epi16(two[1][0], 4));
}

/* The AND of three planes or their complements: of plane j itself where bit j of which is set; within all. */
AVX2 INLINE __m256i and_of_256(unsigned which, const __m256i planes[3], __m256i all)
{
#pragma GCC unroll 3
    for (unsigned j = 0; j < 3; j++)
        all = which >> j & 1 ? _mm256_and_si256(planes[j], all) : _mm256_andnot_si256(planes[j], all);
    return all;
}

/* The number of set bits of each 64. */
AVX2 INLINE __m256i popcount_256(__m256i v)
{
    const __m256i bits = _mm256_setr_epi8(0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4, 0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3,
                                          2, 3, 3, 4);
    const __m256i nibble = _mm256_set1_epi8(15);
    const __m256i low = _mm256_shuffle_epi8(bits, _mm256_and_si256(v, nibble));
    const __m256i high = _mm256_shuffle_epi8(bits, _mm256_and_si256(_mm256_srli_epi16(v, 4), nibble));
    return _mm256_sad_epu8(_mm256_add_epi8(low, high), _mm256_setzero_si256());
}

/* Counts of four sets of bits, as with AVX-512. */
AVX2 INLINE __m256i four_counts_256(__m256i outer, const __m256i inner[4])
{
    __m256i counts[4];

#pragma GCC unroll 4
    for (unsigned k = 0; k < 4; k++)
        counts[k] = popcount_256(_mm256_and_si256(outer, inner[k]));
    return _mm256_madd_epi16(_mm256_packus_epi32(_mm256_packus_epi32(counts[0], counts[1]),
                                                 _mm256_packus_epi32(counts[2], counts[3])),
                             _mm256_set1_epi16(1));
}

/* Adds the histogram of up to 256 bins, m of them, a multiple of 32. */
AVX2 INLINE void count_256(const uint8_t *bins, size_t m, uint16_t histogram[PTWM_N_BINS])
{
    /* Where there are no elements, they must not count as bin 0. */
    const __m256i all = _mm256_set1_epi8((char)((1u << (m / 32)) - 1));
    __m256i v[8], planes[6], inner[8];

#pragma GCC unroll 8
    for (unsigned j = 0; j < 8; j++)
        v[j] = 32 * j < m ? bytes_32(bins + 32 * j) : _mm256_setzero_si256();
    bit_planes_256(v, planes);
#pragma GCC unroll 8
    for (unsigned k = 0; k < 8; k++)
        inner[k] = and_of_256(k, planes, all);
#pragma GCC unroll 8
    for (unsigned k = 0; k < 8; k++) {
        const __m256i outer = and_of_256(k, planes + 3, all);
        __m256i lanes;
        if (_mm256_testz_si256(outer, outer)) /* real weights leave half of the bins empty */
            continue;
        lanes = _mm256_packus_epi32(four_counts_256(outer, inner), four_counts_256(outer, inner + 4));
        _mm_storeu_si128((void *)(histogram + 8 * k),
                         _mm_add_epi16(_mm_loadu_si128((const void *)(histogram + 8 * k)),
                                       _mm_add_epi16(_mm256_castsi256_si128(lanes), _mm256_extracti128_si256(lanes, 1))));
    }
}

AVX2 static void add_bins_avx2(const uint8_t *bins, size_t n, uint16_t histogram[PTWM_N_BINS])
{
    const size_t whole = n / 32 * 32;

    for (size_t i = 0; i < whole; i += 256)
        count_256(bins + i, whole - i < 256 ? whole - i : 256, histogram);
    for (size_t i = whole; i < n; i++)
        histogram[bins[i]]++;
}

AVX2 static void count_avx2(enum ptwm_float_kind kind, const uint8_t *raw, size_t n, uint16_t first,
                            const uint16_t *shift, uint16_t histogram[PTWM_N_BINS])
{
    uint8_t bins[BLOCK];

    bins_avx2(kind, raw, n, first, shift, bins);
    add_bins_avx2(bins, n, histogram);
}
