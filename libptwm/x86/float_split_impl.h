/*
 * The kernels of float_split.c for AVX2 and AVX-512. Whole vectors here, what is left by the plain versions.
 *
 * Elements are loaded as vectors of u16 units (the top halves of 4-byte elements); "kind" is a constant where a body is
 * inlined, so that the shifts are immediate.
 */
#include <immintrin.h>

#define AVX2 __attribute__((target("avx2,bmi,bmi2,popcnt")))
#define AVX512 __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx512vbmi,avx512vbmi2,avx512vpopcntdq,avx2,bmi,bmi2,popcnt")))
#define INLINE static inline __attribute__((always_inline))

/* ------------------------------------------------------------------------------------------------ AVX-512: units */

AVX512 INLINE __m512i bytes_64(const void *p)
{
    return _mm512_loadu_si512(p);
}

/* a & mask | b & ~mask */
AVX512 INLINE __m512i choose_512(__m512i mask, __m512i a, __m512i b)
{
    return _mm512_ternarylogic_epi64(mask, a, b, 0xca);
}

/* 32 units of elements of 2 or 4 bytes. */
AVX512 INLINE __m512i units_512(const uint8_t *raw, unsigned width)
{
    if (width == 2)
        return bytes_64(raw);
    return _mm512_inserti64x4(_mm512_castsi256_si512(_mm512_cvtepi32_epi16(_mm512_srli_epi32(bytes_64(raw), 16))),
                              _mm512_cvtepi32_epi16(_mm512_srli_epi32(bytes_64(raw + 64), 16)), 1);
}

/* Symbols, for samples: the plain loop, which compilers vectorise. */
AVX512 static void symbols_avx512(enum ptwm_float_kind kind, const uint8_t *raw, size_t n, uint16_t *symbols)
{
    FOR_KIND(kind, symbols_of, raw, n, symbols)
}

AVX2 static void symbols_avx2(enum ptwm_float_kind kind, const uint8_t *raw, size_t n, uint16_t *symbols)
{
    FOR_KIND(kind, symbols_of, raw, n, symbols)
}

/* ------------------------------------------------------------------------------------------------- AVX-512: bins */

/* Symbols of 32 units, as u16. */
AVX512 INLINE __m512i symbols_of_32(struct ptwm_float_step s, const uint8_t *raw, const uint16_t *shift)
{
    __m512i symbol = _mm512_srli_epi16(units_512(raw, s.width), s.shift);

    if (shift != NULL)
        symbol = _mm512_sub_epi16(symbol, bytes_64(shift));
    return _mm512_and_si512(symbol, _mm512_set1_epi16((short)((1u << s.bits) - 1)));
}

/* Bins of 32 units, as u16. */
AVX512 INLINE __m512i bins_of_32(struct ptwm_float_step s, const uint8_t *raw, __m512i first, const uint16_t *shift)
{
    const __m512i symbol = symbols_of_32(s, raw, shift);
    const __m512i bin = _mm512_min_epu16(_mm512_sub_epi16(symbol, first), _mm512_set1_epi16(PTWM_OTHER_BIN));

    return _mm512_mask_mov_epi16(bin, _mm512_testn_epi16_mask(symbol, symbol), _mm512_set1_epi16(PTWM_ZERO_BIN));
}

/* Bins of 64 elements of a byte: the shifts come as u16. */
AVX512 INLINE __m512i bins_of_64_bytes(struct ptwm_float_step s, const uint8_t *raw, __m512i first,
                                       const uint16_t *shift)
{
    __m512i symbol = _mm512_srli_epi16(bytes_64(raw), s.shift), bin;

    if (shift != NULL) {
        __m512i own = _mm512_inserti64x4(_mm512_castsi256_si512(_mm512_cvtepi16_epi8(bytes_64(shift))),
                                         _mm512_cvtepi16_epi8(bytes_64(shift + 32)), 1);
        symbol = _mm512_sub_epi8(symbol, own);
    }
    symbol = _mm512_and_si512(symbol, _mm512_set1_epi8((char)((1u << s.bits) - 1)));
    bin = _mm512_min_epu8(_mm512_sub_epi8(symbol, first), _mm512_set1_epi8(PTWM_OTHER_BIN));
    return _mm512_mask_mov_epi8(bin, _mm512_testn_epi8_mask(symbol, symbol), _mm512_set1_epi8(PTWM_ZERO_BIN));
}

/* Bins of a PAIR_BLOCK. */
AVX512 INLINE __m512i bins_of_64(struct ptwm_float_step s, const uint8_t *raw, uint16_t first, const uint16_t *shift)
{
    const __m512i from = _mm512_set1_epi16((short)first);
    __m512i a, b;

    if (s.width == 1)
        return bins_of_64_bytes(s, raw, _mm512_set1_epi8((char)first), shift);
    a = bins_of_32(s, raw, from, shift);
    b = bins_of_32(s, raw + 32 * s.width, from, shift != NULL ? shift + 32 : NULL);
    return _mm512_or_si512(a, _mm512_slli_epi16(b, 8));
}

/*
 * One more than the bins of a PAIR_BLOCK of elements of more than a byte, with fewer operations: symbols below the
 * range count as 0, and the bin of that, the last one, is 64 less.
 */
AVX512 INLINE __m512i rough_bins_of_64(struct ptwm_float_step s, const uint8_t *raw, uint16_t first,
                                       const uint16_t *shift)
{
    const __m512i below = _mm512_set1_epi16((short)(first - 1)), most = _mm512_set1_epi16(PTWM_OTHER_BIN + 1);
    const __m512i a = symbols_of_32(s, raw, shift);
    const __m512i b = symbols_of_32(s, raw + 32 * s.width, shift != NULL ? shift + 32 : NULL);

    return _mm512_or_si512(_mm512_min_epu16(_mm512_subs_epu16(a, below), most),
                           _mm512_slli_epi16(_mm512_min_epu16(_mm512_subs_epu16(b, below), most), 8));
}

/* Bins, or with a map labels; *any is the OR of what is stored. */
AVX512 INLINE void bins_body_512(struct ptwm_float_step s, const uint8_t *raw, size_t n, uint16_t first,
                                 const uint16_t *shift, const uint8_t *map, uint8_t *bins, __m512i *any)
{
    *any = _mm512_setzero_si512();
    for (size_t i = 0; i < n; i += PAIR_BLOCK) {
        __m512i v = bins_of_64(s, raw + i * s.width, first, shift != NULL ? shift + i : NULL);
        if (map != NULL)
            v = _mm512_permutexvar_epi8(v, bytes_64(map));
        _mm512_storeu_si512(bins + i, v);
        *any = _mm512_or_si512(*any, v);
    }
}

/* Labels by a map in which symbols that are 0 and those below the range have the same. */
AVX512 INLINE void rough_labels_512(struct ptwm_float_step s, const uint8_t *raw, size_t n, uint16_t first,
                                    const uint16_t *shift, const uint8_t *map, uint8_t *labels, __m512i *any)
{
    const __m512i by_rough =
        _mm512_mask_expand_epi8(_mm512_set1_epi8((char)map[PTWM_ZERO_BIN]), ~(__mmask64)1, bytes_64(map));

    *any = _mm512_setzero_si512();
    for (size_t i = 0; i < n; i += PAIR_BLOCK) {
        __m512i v = rough_bins_of_64(s, raw + i * s.width, first, shift != NULL ? shift + i : NULL);
        v = _mm512_permutexvar_epi8(v, by_rough);
        _mm512_storeu_si512(labels + i, v);
        *any = _mm512_or_si512(*any, v);
    }
}

AVX512 INLINE void labels_body_512(struct ptwm_float_step s, const uint8_t *raw, size_t n, uint16_t first,
                                   const uint16_t *shift, const uint8_t *map, uint8_t *labels, __m512i *any)
{
    if (s.width > 1 && map[PTWM_ZERO_BIN] == map[PTWM_OTHER_BIN])
        rough_labels_512(s, raw, n, first, shift, map, labels, any);
    else
        bins_body_512(s, raw, n, first, shift, map, labels, any);
}

AVX512 static void bins_avx512(enum ptwm_float_kind kind, const uint8_t *raw, size_t n, uint16_t first,
                               const uint16_t *shift, uint8_t *bins)
{
    const size_t whole = n / PAIR_BLOCK * PAIR_BLOCK;
    __m512i any;

    if (shift != NULL)
        FOR_KIND(kind, bins_body_512, raw, whole, first, shift, NULL, bins, &any)
    else
        FOR_KIND(kind, bins_body_512, raw, whole, first, NULL, NULL, bins, &any)
    (void)any;
    if (n > whole)
        bins_c99(kind, raw + whole * ptwm_float_steps[kind].width, n - whole, first,
                 shift != NULL ? shift + whole : NULL, bins + whole);
}

AVX512 static bool labels_avx512(enum ptwm_float_kind kind, const uint8_t *raw, size_t n, uint16_t first,
                                 const uint16_t *shift, const uint8_t map[PTWM_N_BINS], uint8_t *labels)
{
    const size_t whole = n / PAIR_BLOCK * PAIR_BLOCK;
    bool rest = false;
    __m512i any;

    if (shift != NULL)
        FOR_KIND(kind, labels_body_512, raw, whole, first, shift, map, labels, &any)
    else
        FOR_KIND(kind, labels_body_512, raw, whole, first, NULL, map, labels, &any)
    if (n > whole)
        rest = labels_c99(kind, raw + whole * ptwm_float_steps[kind].width, n - whole, first,
                          shift != NULL ? shift + whole : NULL, map, labels + whole);
    return _mm512_movepi8_mask(any) != 0 || rest;
}

/* ------------------------------------------------------------------------------------------------ AVX-512: rests */

AVX512 INLINE __m512i swapped_512(__m512i v)
{
    return _mm512_or_si512(_mm512_slli_epi16(v, 8), _mm512_srli_epi16(v, 8));
}

/* Blocks of 7 or 8 bits: the sign and the low mantissa bits stay where they are, so masks are all it takes. */
AVX512 INLINE void rest_block_78_512(struct ptwm_float_step s, const uint8_t *raw, uint8_t *packed)
{
    const __m512i own = _mm512_set1_epi16((short)(0x8000 | ((1 << s.shift) - 1)));
    const size_t step = 32 * (size_t)s.width;
    __m512i spare = _mm512_setzero_si512();

    if (s.shift == 6) {
        const __m512i low = _mm512_set1_epi16(0x3f), high = _mm512_set1_epi16(0x40);
        __m512i a = units_512(raw + 14 * step, s.width), b = units_512(raw + 15 * step, s.width);
        a = _mm512_or_si512(_mm512_and_si512(a, low), _mm512_and_si512(_mm512_srli_epi16(a, 9), high));
        b = _mm512_or_si512(_mm512_and_si512(b, low), _mm512_and_si512(_mm512_srli_epi16(b, 9), high));
        spare = _mm512_or_si512(a, _mm512_slli_epi16(b, 8));
    }
#pragma GCC unroll 8
    for (unsigned t = 0; t < s.shift + 1u; t++) {
        const __m512i a = units_512(raw + 2 * t * step, s.width), b = units_512(raw + (2 * t + 1) * step, s.width);
        __m512i word = choose_512(own, a, swapped_512(_mm512_and_si512(b, own)));
        if (s.shift == 6) /* bit t of each rest of the last two vectors, to bits 6 and 14 */
            word = choose_512(_mm512_set1_epi16(0x4040), _mm512_slli_epi16(spare, 6 - t), word);
        _mm512_storeu_si512(packed + 64 * t, word);
    }
}

AVX512 INLINE void rest_block_10_512(const uint8_t *raw, uint8_t *packed)
{
    const __m512i high = _mm512_set1_epi16((short)0x8100), low = _mm512_set1_epi16(0xff);

    for (unsigned g = 0; g < 2; g++) {
        const __m512i last = bytes_64(raw + 64 * (8 * g + 7));
        __m512i word = _mm512_or_si512(_mm512_srli_epi16(last, 15),
                                       _mm512_and_si512(_mm512_srli_epi16(last, 7), _mm512_set1_epi16(2)));
#pragma GCC unroll 7
        for (unsigned m = 0; m < 7; m++)
            word = _mm512_or_si512(word, _mm512_srli_epi16(_mm512_and_si512(bytes_64(raw + 64 * (8 * g + m)), high), m));
        _mm512_storeu_si512(packed + 64 * g, word);
    }
    for (unsigned t = 0; t < 8; t++)
        _mm512_storeu_si512(packed + 64 * (2 + t), choose_512(low, bytes_64(raw + 128 * t),
                                                             _mm512_slli_epi16(bytes_64(raw + 128 * t + 64), 8)));
}

/* Of bytes: shifts of u16 and masks that drop what crosses over. */
AVX512 INLINE __m512i down_512(__m512i v, unsigned n, int mask)
{
    return _mm512_and_si512(_mm512_srli_epi16(v, n), _mm512_set1_epi8((char)mask));
}

AVX512 INLINE __m512i up_512(__m512i v, unsigned n, int mask)
{
    return _mm512_and_si512(_mm512_slli_epi16(v, n), _mm512_set1_epi8((char)mask));
}

/* 64 bytes whose rests of 3 bits are where those of float8 are: the highest in bit 7. */
AVX512 INLINE __m512i rests_3_512(struct ptwm_float_step s, const uint8_t *raw)
{
    const __m512i v = bytes_64(raw);
    return s.shift == 2 ? v : choose_512(_mm512_set1_epi8((char)0x80), _mm512_slli_epi16(v, 5), v);
}

AVX512 INLINE void rest_block_3_512(struct ptwm_float_step s, const uint8_t *raw, uint8_t *packed)
{
    const __m512i a = rests_3_512(s, raw + 384), b = rests_3_512(s, raw + 448), outer = _mm512_set1_epi8((char)0x83);
    const __m512i middle[3] = { _mm512_or_si512(down_512(a, 2, 0x20), up_512(a, 4, 0x10)),
                                _mm512_or_si512(down_512(b, 2, 0x20), up_512(b, 4, 0x10)),
                                _mm512_or_si512(up_512(a, 4, 0x20), up_512(b, 3, 0x10)) };

#pragma GCC unroll 3
    for (unsigned q = 0; q < 3; q++) {
        const __m512i x = _mm512_and_si512(rests_3_512(s, raw + 64 * q), outer), y = rests_3_512(s, raw + 192 + 64 * q);
        const __m512i inner = _mm512_or_si512(down_512(y, 1, 0x40), up_512(y, 2, 0x0c));
        _mm512_storeu_si512(packed + 64 * q, _mm512_or_si512(_mm512_or_si512(x, inner), middle[q]));
    }
}

AVX512 INLINE void rest_block_2_512(const uint8_t *raw, uint8_t *packed)
{
#pragma GCC unroll 2
    for (unsigned half = 0; half < 2; half++, raw += 256, packed += 64) {
        __m512i word = _mm512_and_si512(bytes_64(raw), _mm512_set1_epi8((char)0x81));
#pragma GCC unroll 3
        for (unsigned j = 1; j < 4; j++)
            word = _mm512_or_si512(word, _mm512_or_si512(down_512(bytes_64(raw + 64 * j), j, 0x80 >> j),
                                                         up_512(bytes_64(raw + 64 * j), j, 1 << j)));
        _mm512_storeu_si512(packed, word);
    }
}

AVX512 INLINE void rests_body_512(struct ptwm_float_step s, const uint8_t *raw, size_t n_blocks, uint8_t *packed)
{
    const size_t r = (s.width == 1 ? 8u : 16u) - s.bits;

    for (; n_blocks > 0; n_blocks--, raw += BLOCK * (size_t)s.width, packed += 64 * r) {
        if (r == 2)
            rest_block_2_512(raw, packed);
        else if (r == 3)
            rest_block_3_512(s, raw, packed);
        else if (r == 10)
            rest_block_10_512(raw, packed);
        else
            rest_block_78_512(s, raw, packed);
    }
}

AVX512 static void rests_avx512(enum ptwm_float_kind kind, const uint8_t *raw, size_t n, uint8_t *packed)
{
    const size_t n_blocks = n / BLOCK;

    FOR_KIND(kind, rests_body_512, raw, n_blocks, packed)
    rests_c99(kind, raw + n_blocks * BLOCK * ptwm_float_steps[kind].width, n - n_blocks * BLOCK,
              packed + n_blocks * 64 * ptwm_float_rest_bits(kind));
}

AVX512 static uint16_t lows_avx512(const uint8_t *raw, size_t n, uint8_t *low)
{
    __m512i any = _mm512_setzero_si512();
    uint32_t folded;
    size_t i = 0;

    for (; i + 16 <= n; i += 16) {
        const __m512i v = bytes_64(raw + 4 * i);
        any = _mm512_or_si512(any, v);
        _mm256_storeu_si256((__m256i *)(void *)(low + 2 * i), _mm512_cvtepi32_epi16(v));
    }
    folded = (uint32_t)_mm512_reduce_or_epi32(any) & 0xffff;
    return (uint16_t)(folded | lows_c99(raw + 4 * i, n - i, low + 2 * i));
}

/* --------------------------------------------------------------------------------------------------- AVX2: units */

AVX2 INLINE __m256i bytes_32(const void *p)
{
    return _mm256_loadu_si256((const __m256i *)p);
}

AVX2 INLINE void store_32(void *p, __m256i v)
{
    _mm256_storeu_si256((__m256i *)p, v);
}

/* 16 units of elements of 2 or 4 bytes. */
AVX2 INLINE __m256i units_256(const uint8_t *raw, unsigned width)
{
    if (width == 2)
        return bytes_32(raw);
    return _mm256_permute4x64_epi64(_mm256_packus_epi32(_mm256_srli_epi32(bytes_32(raw), 16),
                                                        _mm256_srli_epi32(bytes_32(raw + 32), 16)), 0xd8);
}

/* -------------------------------------------------------------------------------------------------- AVX2: bins */

AVX2 INLINE __m256i bins_of_16(struct ptwm_float_step s, const uint8_t *raw, __m256i first, const uint16_t *shift)
{
    __m256i symbol = _mm256_srli_epi16(units_256(raw, s.width), s.shift), bin;

    if (shift != NULL)
        symbol = _mm256_sub_epi16(symbol, bytes_32(shift));
    symbol = _mm256_and_si256(symbol, _mm256_set1_epi16((short)((1u << s.bits) - 1)));
    bin = _mm256_min_epu16(_mm256_sub_epi16(symbol, first), _mm256_set1_epi16(PTWM_OTHER_BIN));
    /* No symbol 0 is in the range, so its bin is OTHER_BIN so far; one bit more makes that ZERO_BIN. */
    return _mm256_or_si256(bin, _mm256_srli_epi16(_mm256_cmpeq_epi16(symbol, _mm256_setzero_si256()), 15));
}

/* Bins of 32 elements of a byte. */
AVX2 INLINE __m256i bins_of_32_bytes(struct ptwm_float_step s, const uint8_t *raw, uint16_t first,
                                     const uint16_t *shift)
{
    const __m256i other = _mm256_set1_epi8(PTWM_OTHER_BIN), zero = _mm256_setzero_si256();
    __m256i symbol = _mm256_srli_epi16(bytes_32(raw), s.shift), bin;

    if (shift != NULL)
        symbol = _mm256_sub_epi8(
            symbol, _mm256_permute4x64_epi64(_mm256_packus_epi16(bytes_32(shift), bytes_32(shift + 16)), 0xd8));
    symbol = _mm256_and_si256(symbol, _mm256_set1_epi8((char)((1u << s.bits) - 1)));
    bin = _mm256_min_epu8(_mm256_sub_epi8(symbol, _mm256_set1_epi8((char)first)), other);
    return _mm256_or_si256(bin, _mm256_and_si256(_mm256_cmpeq_epi8(symbol, zero), _mm256_set1_epi8(1)));
}

AVX2 INLINE void bins_body_256(struct ptwm_float_step s, const uint8_t *raw, size_t n, uint16_t first,
                               const uint16_t *shift, uint8_t *bins)
{
    const __m256i from = _mm256_set1_epi16((short)first);

    for (size_t i = 0; i < n; i += PAIR_BLOCK)
        for (size_t j = i; j < i + 32; j += 16)
            if (s.width == 1) {
                store_32(bins + 2 * j - i,
                         bins_of_32_bytes(s, raw + 2 * j - i, first, shift != NULL ? shift + 2 * j - i : NULL));
            } else {
                __m256i a = bins_of_16(s, raw + j * s.width, from, shift != NULL ? shift + j : NULL);
                __m256i b = bins_of_16(s, raw + (j + 32) * s.width, from, shift != NULL ? shift + j + 32 : NULL);
                store_32(bins + 2 * j - i, _mm256_or_si256(a, _mm256_slli_epi16(b, 8)));
            }
}

AVX2 static void bins_avx2(enum ptwm_float_kind kind, const uint8_t *raw, size_t n, uint16_t first,
                           const uint16_t *shift, uint8_t *bins)
{
    const size_t whole = n / PAIR_BLOCK * PAIR_BLOCK;

    if (shift != NULL)
        FOR_KIND(kind, bins_body_256, raw, whole, first, shift, bins)
    else
        FOR_KIND(kind, bins_body_256, raw, whole, first, NULL, bins)
    if (n > whole)
        bins_c99(kind, raw + whole * ptwm_float_steps[kind].width, n - whole, first,
                 shift != NULL ? shift + whole : NULL, bins + whole);
}

/* ----------------------------------------------------------------------------------------------- AVX2: mapping */

/* A look-up of 64 entries by four of 16: each takes the bytes whose bits 4 and 5 are its number. */
AVX2 static bool map_avx2(uint8_t *bins, size_t n, const uint8_t map[PTWM_N_BINS])
{
    const size_t whole = n / 32 * 32;
    __m256i table[4], any = _mm256_setzero_si256();

    for (unsigned k = 0; k < 4; k++)
        table[k] = _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)(const void *)(map + 16 * k)));
    for (size_t i = 0; i < whole; i += 32) {
        const __m256i b = bytes_32(bins + i);
        __m256i label = _mm256_setzero_si256();
#pragma GCC unroll 4
        for (int k = 0; k < 4; k++) {
            /* b - 16 k is in 0 .. 15 for these; adding 0x70 with saturation sets bit 7 of all others, which gives 0. */
            __m256i index = _mm256_adds_epu8(_mm256_sub_epi8(b, _mm256_set1_epi8((char)(16 * k))), _mm256_set1_epi8(0x70));
            label = _mm256_or_si256(label, _mm256_shuffle_epi8(table[k], index));
        }
        any = _mm256_or_si256(any, label);
        store_32(bins + i, label);
    }
    if (n > whole && map_c99(bins + whole, n - whole, map))
        return true;
    return _mm256_movemask_epi8(any) != 0;
}

AVX2 static bool labels_avx2(enum ptwm_float_kind kind, const uint8_t *raw, size_t n, uint16_t first,
                             const uint16_t *shift, const uint8_t map[PTWM_N_BINS], uint8_t *labels)
{
    bins_avx2(kind, raw, n, first, shift, labels);
    return map_avx2(labels, n, map);
}

/* ------------------------------------------------------------------------------------------------- AVX2: rests */

AVX2 INLINE __m256i choose_256(__m256i mask, __m256i a, __m256i b)
{
    return _mm256_or_si256(_mm256_and_si256(mask, a), _mm256_andnot_si256(mask, b));
}

/* As in AVX-512; each vector of 32 units is two halves, which do not mix. */
AVX2 INLINE void rest_block_78_256(struct ptwm_float_step s, const uint8_t *raw, uint8_t *packed)
{
    const __m256i own = _mm256_set1_epi16((short)(0x8000 | ((1 << s.shift) - 1)));
    const __m256i swap = _mm256_broadcastsi128_si256(_mm_set_epi8(14, 15, 12, 13, 10, 11, 8, 9, 6, 7, 4, 5, 2, 3, 0, 1));
    const size_t step = 32 * (size_t)s.width;

    for (unsigned half = 0; half < 2; half++, raw += step / 2, packed += 32) {
        __m256i spare = _mm256_setzero_si256();
        if (s.shift == 6) {
            const __m256i low = _mm256_set1_epi16(0x3f), high = _mm256_set1_epi16(0x40);
            __m256i a = units_256(raw + 14 * step, s.width), b = units_256(raw + 15 * step, s.width);
            a = _mm256_or_si256(_mm256_and_si256(a, low), _mm256_and_si256(_mm256_srli_epi16(a, 9), high));
            b = _mm256_or_si256(_mm256_and_si256(b, low), _mm256_and_si256(_mm256_srli_epi16(b, 9), high));
            spare = _mm256_or_si256(a, _mm256_slli_epi16(b, 8));
        }
#pragma GCC unroll 8
        for (int t = 0; t < s.shift + 1; t++) {
            const __m256i a = units_256(raw + 2 * (size_t)t * step, s.width);
            const __m256i b = units_256(raw + (2 * (size_t)t + 1) * step, s.width);
            __m256i word = _mm256_or_si256(_mm256_and_si256(a, own), _mm256_shuffle_epi8(_mm256_and_si256(b, own), swap));
            if (s.shift == 6)
                word = _mm256_or_si256(word, _mm256_and_si256(_mm256_slli_epi16(spare, 6 - t), _mm256_set1_epi16(0x4040)));
            store_32(packed + 64 * (size_t)t, word);
        }
    }
}

AVX2 INLINE void rest_block_10_256(const uint8_t *raw, uint8_t *packed)
{
    const __m256i high = _mm256_set1_epi16((short)0x8100), low = _mm256_set1_epi16(0xff);

    for (unsigned half = 0; half < 2; half++, raw += 32, packed += 32) {
        for (unsigned g = 0; g < 2; g++) {
            const __m256i last = bytes_32(raw + 64 * (8 * g + 7));
            __m256i word = _mm256_or_si256(_mm256_srli_epi16(last, 15),
                                           _mm256_and_si256(_mm256_srli_epi16(last, 7), _mm256_set1_epi16(2)));
#pragma GCC unroll 7
            for (int m = 0; m < 7; m++)
                word = _mm256_or_si256(
                    word, _mm256_srli_epi16(_mm256_and_si256(bytes_32(raw + 64 * (8 * g + (unsigned)m)), high), m));
            store_32(packed + 64 * g, word);
        }
        for (unsigned t = 0; t < 8; t++)
            store_32(packed + 64 * (2 + t),
                     choose_256(low, bytes_32(raw + 128 * t), _mm256_slli_epi16(bytes_32(raw + 128 * t + 64), 8)));
    }
}

AVX2 INLINE __m256i down_256(__m256i v, int n, int mask)
{
    return _mm256_and_si256(_mm256_srli_epi16(v, n), _mm256_set1_epi8((char)mask));
}

AVX2 INLINE __m256i up_256(__m256i v, int n, int mask)
{
    return _mm256_and_si256(_mm256_slli_epi16(v, n), _mm256_set1_epi8((char)mask));
}

AVX2 INLINE __m256i rests_3_256(struct ptwm_float_step s, const uint8_t *raw)
{
    const __m256i v = bytes_32(raw);
    return s.shift == 2 ? v : choose_256(_mm256_set1_epi8((char)0x80), _mm256_slli_epi16(v, 5), v);
}

AVX2 INLINE void rest_block_3_256(struct ptwm_float_step s, const uint8_t *raw, uint8_t *packed)
{
    for (unsigned half = 0; half < 2; half++, raw += 32, packed += 32) {
        const __m256i a = rests_3_256(s, raw + 384), b = rests_3_256(s, raw + 448), outer = _mm256_set1_epi8((char)0x83);
        const __m256i middle[3] = { _mm256_or_si256(down_256(a, 2, 0x20), up_256(a, 4, 0x10)),
                                    _mm256_or_si256(down_256(b, 2, 0x20), up_256(b, 4, 0x10)),
                                    _mm256_or_si256(up_256(a, 4, 0x20), up_256(b, 3, 0x10)) };
#pragma GCC unroll 3
        for (unsigned q = 0; q < 3; q++) {
            const __m256i x = _mm256_and_si256(rests_3_256(s, raw + 64 * q), outer);
            const __m256i y = rests_3_256(s, raw + 192 + 64 * q);
            const __m256i inner = _mm256_or_si256(down_256(y, 1, 0x40), up_256(y, 2, 0x0c));
            store_32(packed + 64 * q, _mm256_or_si256(_mm256_or_si256(x, inner), middle[q]));
        }
    }
}

AVX2 INLINE void rest_block_2_256(const uint8_t *raw, uint8_t *packed)
{
    for (unsigned i = 0; i < 4; i++, packed += 32) {
        const uint8_t *from = raw + 256 * (i / 2) + 32 * (i % 2);
        __m256i word = _mm256_and_si256(bytes_32(from), _mm256_set1_epi8((char)0x81));
#pragma GCC unroll 3
        for (int j = 1; j < 4; j++)
            word = _mm256_or_si256(word, _mm256_or_si256(down_256(bytes_32(from + 64 * j), j, 0x80 >> j),
                                                         up_256(bytes_32(from + 64 * j), j, 1 << j)));
        store_32(packed, word);
    }
}

AVX2 INLINE void rests_body_256(struct ptwm_float_step s, const uint8_t *raw, size_t n_blocks, uint8_t *packed)
{
    const size_t r = (s.width == 1 ? 8u : 16u) - s.bits;

    for (; n_blocks > 0; n_blocks--, raw += BLOCK * (size_t)s.width, packed += 64 * r) {
        if (r == 2)
            rest_block_2_256(raw, packed);
        else if (r == 3)
            rest_block_3_256(s, raw, packed);
        else if (r == 10)
            rest_block_10_256(raw, packed);
        else
            rest_block_78_256(s, raw, packed);
    }
}

AVX2 static void rests_avx2(enum ptwm_float_kind kind, const uint8_t *raw, size_t n, uint8_t *packed)
{
    const size_t n_blocks = n / BLOCK;

    FOR_KIND(kind, rests_body_256, raw, n_blocks, packed)
    rests_c99(kind, raw + n_blocks * BLOCK * ptwm_float_steps[kind].width, n - n_blocks * BLOCK,
              packed + n_blocks * 64 * ptwm_float_rest_bits(kind));
}

AVX2 static uint16_t lows_avx2(const uint8_t *raw, size_t n, uint8_t *low)
{
    const __m256i mask = _mm256_set1_epi32(0xffff);
    __m256i any = _mm256_setzero_si256();
    uint64_t folded;
    size_t i = 0;

    for (; i + 16 <= n; i += 16) {
        const __m256i a = _mm256_and_si256(bytes_32(raw + 4 * i), mask), b = _mm256_and_si256(bytes_32(raw + 4 * i + 32), mask);
        any = _mm256_or_si256(any, _mm256_or_si256(a, b));
        store_32(low + 2 * i, _mm256_permute4x64_epi64(_mm256_packus_epi32(a, b), 0xd8));
    }
    folded = (uint64_t)(_mm256_extract_epi64(any, 0) | _mm256_extract_epi64(any, 1) | _mm256_extract_epi64(any, 2) |
                        _mm256_extract_epi64(any, 3));
    return (uint16_t)((folded | folded >> 32) | lows_c99(raw + 4 * i, n - i, low + 2 * i));
}

#include "count_bins_impl.h"

#undef AVX2
#undef AVX512
#undef INLINE
