/*
 * Coding runs of labels of one class on 128 lanes (label_encode.c), for AVX2 and AVX-512.
 *
 * The quotient x / F of a state x < F * 2^16 (after its word has been emitted) and a frequency F < 2^16 comes from floating
 * point and is then corrected. Each rounding errs by a factor of 1 +- 2^-24 at most, or 1 - 2^-23 where it is towards zero;
 * the factor 1 - 3/2^24 or 1 - 4/2^24 makes sure that the estimate is not above x / F, and as the quotient is below 2^16,
 * it is below it by less than 2^16 * 8 / 2^24 < 1. Truncated, it is the quotient or one less, which the remainder tells.
 */
#include <immintrin.h>

#define AVX2 __attribute__((target("avx2,bmi,bmi2,popcnt")))
#define AVX512 __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx512vbmi,avx512vbmi2,avx2,bmi,bmi2,popcnt")))
#define INLINE static inline __attribute__((always_inline))

/* ---------------------------------------------------------------------------------------------------- AVX-512 */

struct tables_512 {
    __m512i packed[2];
    __m512 reciprocals[2];
};

/* The quotient and rank of 16 states by their labels' frequencies, after their words have been emitted. */
AVX512 INLINE void divide_16(const struct tables_512 *t, const uint8_t *labels, __m512i x, uint8_t **words,
                             __m512i *packed, __m512i *quotient, __m512i *rank)
{
    const __m512i label = _mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)(const void *)labels));
    const __m512 reciprocal = _mm512_permutex2var_ps(t->reciprocals[0], label, t->reciprocals[1]);
    const __m512i high = _mm512_srli_epi32(x, 16);
    __m512i frequency;
    __mmask16 emits, more;
    unsigned n;

    *packed = _mm512_permutex2var_epi32(t->packed[0], label, t->packed[1]);
    frequency = _mm512_and_si512(*packed, _mm512_set1_epi32(0xffff));
    emits = _mm512_cmpge_epu32_mask(high, frequency);
    n = (unsigned)_mm_popcnt_u32(emits);
    *words -= 2 * n;
    _mm256_mask_storeu_epi16(*words, (__mmask16)_bzhi_u32(0xffff, n),
                             _mm256_maskz_compress_epi16(emits, _mm512_cvtepi32_epi16(x)));
    x = _mm512_mask_mov_epi32(x, emits, high);
    *quotient = _mm512_cvttps_epu32(
        _mm512_mul_ps(_mm512_cvt_roundepu32_ps(x, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC), reciprocal));
    *rank = _mm512_sub_epi32(x, _mm512_mullo_epi32(*quotient, frequency));
    more = _mm512_cmpge_epu32_mask(*rank, frequency);
    *quotient = _mm512_mask_add_epi32(*quotient, more, *quotient, _mm512_set1_epi32(1));
    *rank = _mm512_mask_sub_epi32(*rank, more, *rank, frequency);
}

AVX512 INLINE void load_tables_512(struct tables_512 *t, const struct ptwm_class_encoder *class)
{
    for (unsigned k = 0; k < 2; k++) {
        t->packed[k] = _mm512_loadu_si512(class->packed + 16 * k);
        t->reciprocals[k] = _mm512_loadu_ps(class->reciprocals + 16 * k);
    }
}

/* With the large table, for classes whose pieces are too many. */
AVX512 static uint8_t *encode_run_gather_avx512(const struct ptwm_class_encoder *class, const uint8_t *labels, size_t n,
                                                uint32_t *states, uint8_t *words)
{
    const __m512i low16 = _mm512_set1_epi32(0xffff), seven = _mm512_set1_epi32(7);
    struct tables_512 t;

    load_tables_512(&t, class);
    for (size_t i = n; i > 0; i -= LANES)
        for (unsigned j = LANES / 16; j-- > 0;) {
            __m512i x = _mm512_load_si512(states + 16 * j), packed, quotient, rank, inverse;
            divide_16(&t, labels + i - LANES + 16 * j, x, &words, &packed, &quotient, &rank);
            inverse = _mm512_i32gather_epi32(_mm512_add_epi32(_mm512_srli_epi32(packed, 16), _mm512_srli_epi32(rank, 3)),
                                             (const void *)class->inverse, 2);
            x = _mm512_or_si512(_mm512_and_si512(inverse, low16), _mm512_slli_epi32(quotient, 16));
            x = _mm512_add_epi32(x, _mm512_slli_epi32(_mm512_and_si512(rank, seven), 5));
            _mm512_store_si512(states + 16 * j, x);
        }
    return words;
}

struct cells_512 {
    __m512i first_cell, first_piece[2], limits[PTWM_PIECE_LIMITS][2], high, bucket;
};

/*
 * The low halves of 64 states from their ranks, u16 in two vectors. Pairs of vectors are packed within their 128-bit lanes,
 * and so are the labels; nothing depends on the order, as long as it is the same, and unpacking restores it.
 */
AVX512 INLINE void invert_64(const struct cells_512 *c, __m512i labels, __m512i rank[2])
{
    const __m512i cell_mask = _mm512_set1_epi16(PTWM_PIECE_CELL_RANKS / PTWM_FREQUENCY_GRANULE - 1);
    /* Of each 16 labels a 128-bit lane of the packed vectors takes four. */
    const __m512i order = _mm512_permutexvar_epi32(
        _mm512_set_epi32(15, 11, 7, 3, 14, 10, 6, 2, 13, 9, 5, 1, 12, 8, 4, 0), labels);
    const __m512i in_label = _mm512_packus_epi16(_mm512_srli_epi16(rank[0], 10), _mm512_srli_epi16(rank[1], 10));
    const __m512i in_cell = _mm512_packus_epi16(_mm512_and_si512(_mm512_srli_epi16(rank[0], 3), cell_mask),
                                                _mm512_and_si512(_mm512_srli_epi16(rank[1], 3), cell_mask));
    const __m512i cell = _mm512_add_epi8(in_label, _mm512_permutexvar_epi8(order, c->first_cell));
    __m512i piece = _mm512_permutex2var_epi8(c->first_piece[0], cell, c->first_piece[1]), high, bucket;

#pragma GCC unroll 4
    for (unsigned k = 0; k < PTWM_PIECE_LIMITS; k++) {
        const __m512i limit = _mm512_permutex2var_epi8(c->limits[k][0], cell, c->limits[k][1]);
        piece = _mm512_mask_add_epi8(piece, _mm512_cmpge_epu8_mask(in_cell, limit), piece, _mm512_set1_epi8(1));
    }
    high = _mm512_permutexvar_epi8(piece, c->high);
    bucket = _mm512_permutexvar_epi8(piece, c->bucket);
    rank[0] = _mm512_add_epi16(_mm512_slli_epi16(rank[0], 5), _mm512_unpacklo_epi8(bucket, high));
    rank[1] = _mm512_add_epi16(_mm512_slli_epi16(rank[1], 5), _mm512_unpackhi_epi8(bucket, high));
}

/* Zen 4 takes .43 ns a label this way, .71 with the gather. */
AVX512 static uint8_t *encode_run_avx512(const struct ptwm_class_encoder *class, const uint8_t *labels, size_t n,
                                         uint32_t *states, uint8_t *words)
{
    const struct ptwm_pieces *p = &class->pieces;
    struct tables_512 t;
    struct cells_512 c;

    if (!p->is_usable)
        return encode_run_gather_avx512(class, labels, n, states, words);
    load_tables_512(&t, class);
    c.first_cell = _mm512_loadu_si512(p->first_cell);
    c.high = _mm512_loadu_si512(p->high);
    c.bucket = _mm512_loadu_si512(p->bucket);
    for (unsigned k = 0; k < 2; k++) {
        c.first_piece[k] = _mm512_loadu_si512(p->first_piece + 64 * k);
        for (unsigned l = 0; l < PTWM_PIECE_LIMITS; l++)
            c.limits[l][k] = _mm512_loadu_si512(p->limits[l] + 64 * k);
    }
    for (size_t i = n; i > 0; i -= LANES)
#pragma GCC unroll 2
        for (unsigned g = 2; g-- > 0;) {
            const uint8_t *own = labels + i - LANES + 64 * g;
            __m512i packed, quotient[4], rank[4], low[2], high[2];
            uint32_t *x = states + 64 * g;

#pragma GCC unroll 4
            for (unsigned j = 4; j-- > 0;)
                divide_16(&t, own + 16 * j, _mm512_load_si512(x + 16 * j), &words, &packed, &quotient[j], &rank[j]);
            low[0] = _mm512_packus_epi32(rank[0], rank[1]);
            low[1] = _mm512_packus_epi32(rank[2], rank[3]);
            high[0] = _mm512_packus_epi32(quotient[0], quotient[1]);
            high[1] = _mm512_packus_epi32(quotient[2], quotient[3]);
            invert_64(&c, _mm512_loadu_si512(own), low);
            _mm512_store_si512(x, _mm512_unpacklo_epi16(low[0], high[0]));
            _mm512_store_si512(x + 16, _mm512_unpackhi_epi16(low[0], high[0]));
            _mm512_store_si512(x + 32, _mm512_unpacklo_epi16(low[1], high[1]));
            _mm512_store_si512(x + 48, _mm512_unpackhi_epi16(low[1], high[1]));
        }
    return words;
}

/* ------------------------------------------------------------------------------------------------------- AVX2 */

/*
 * For each set of 8 lanes that emit: the shuffle that moves their words to the end of 16 bytes, in their order. Entry m has
 * its set bits' numbers, 2 k and 2 k + 1 for bit k, at the end. Made by tools/gen_word_shuffles.py.
 */
#include "x86/word_shuffles.h"

struct tables_256 {
    __m256i bytes[4][2]; /* of packed, for labels 0 .. 15 and 16 .. 31 */
    const uint16_t *inverse;
};

AVX2 INLINE __m256i look_up_32(const __m256i table[2], __m256i first, __m256i second)
{
    return _mm256_or_si256(_mm256_shuffle_epi8(table[0], first), _mm256_shuffle_epi8(table[1], second));
}

/* inverse[index] in the low half of each of 8 lanes. Scalar loads beat AVX2's gather here. */
AVX2 INLINE __m256i invert_8(const uint16_t *inverse, __m256i index)
{
    const uint64_t i01 = (uint64_t)_mm256_extract_epi64(index, 0), i23 = (uint64_t)_mm256_extract_epi64(index, 1);
    const uint64_t i45 = (uint64_t)_mm256_extract_epi64(index, 2), i67 = (uint64_t)_mm256_extract_epi64(index, 3);
    __m128i low = _mm_cvtsi32_si128(inverse[(uint32_t)i01]), high = _mm_cvtsi32_si128(inverse[(uint32_t)i45]);

    low = _mm_insert_epi16(low, inverse[i01 >> 32], 2);
    high = _mm_insert_epi16(high, inverse[i45 >> 32], 2);
    low = _mm_insert_epi16(low, inverse[(uint32_t)i23], 4);
    high = _mm_insert_epi16(high, inverse[(uint32_t)i67], 4);
    low = _mm_insert_epi16(low, inverse[i23 >> 32], 6);
    high = _mm_insert_epi16(high, inverse[i67 >> 32], 6);
    return _mm256_inserti128_si256(_mm256_castsi128_si256(low), high, 1);
}

/* Codes 8 labels, whose frequencies and first slots are given. There is room for 8 words before words. */
AVX2 INLINE uint8_t *encode_8(const uint16_t *inverse, __m256i frequency, __m256i slot, uint32_t *states, uint8_t *words)
{
    const __m256i low16 = _mm256_set1_epi32(0xffff), one = _mm256_set1_epi32(1);
    __m256i x = _mm256_load_si256((const __m256i *)(const void *)states), quotient, rank, fits, halves, next;
    const __m256i high = _mm256_srli_epi32(x, 16), stays = _mm256_cmpgt_epi32(frequency, high);
    const unsigned emits = ~(unsigned)_mm256_movemask_ps(_mm256_castsi256_ps(stays)) & 255;
    __m256 value;

    halves = _mm256_and_si256(x, low16);
    _mm_storeu_si128((__m128i *)(void *)(words - 16),
                     _mm_shuffle_epi8(_mm_packus_epi32(_mm256_castsi256_si128(halves), _mm256_extracti128_si256(halves, 1)),
                                      _mm_load_si128((const __m128i *)(const void *)word_shuffles[emits])));
    words -= 2 * _mm_popcnt_u32(emits);
    x = _mm256_blendv_epi8(high, x, stays);
    /* There is no conversion of unsigned integers: by halves, of which only the sum is rounded. */
    value = _mm256_add_ps(_mm256_mul_ps(_mm256_cvtepi32_ps(_mm256_srli_epi32(x, 16)), _mm256_set1_ps(65536.0f)),
                          _mm256_cvtepi32_ps(_mm256_and_si256(x, low16)));
    value = _mm256_mul_ps(value, _mm256_set1_ps(1.0f - 4.0f / 16777216));
    quotient = _mm256_cvttps_epi32(_mm256_div_ps(value, _mm256_cvtepi32_ps(frequency)));
    rank = _mm256_sub_epi32(x, _mm256_mullo_epi32(quotient, frequency));
    fits = _mm256_cmpgt_epi32(frequency, rank); /* all ones: -1 */
    quotient = _mm256_add_epi32(_mm256_add_epi32(quotient, one), fits);
    rank = _mm256_sub_epi32(rank, _mm256_andnot_si256(fits, frequency));
    next = invert_8(inverse, _mm256_add_epi32(slot, _mm256_srli_epi32(rank, 3)));
    next = _mm256_add_epi32(next, _mm256_slli_epi32(_mm256_and_si256(rank, _mm256_set1_epi32(7)), 5));
    _mm256_store_si256((__m256i *)(void *)states, _mm256_or_si256(next, _mm256_slli_epi32(quotient, 16)));
    return words;
}

/* Codes 32 labels. */
AVX2 INLINE uint8_t *encode_32(const struct tables_256 *t, const uint8_t *labels, uint32_t *states, uint8_t *words)
{
    const __m256i label = _mm256_and_si256(_mm256_loadu_si256((const __m256i *)(const void *)labels),
                                           _mm256_set1_epi8(PTWM_LABEL_MASK));
    /* Bit 7 of an index gives 0: the first table's index has it from 16 on, the second's below. */
    const __m256i first = _mm256_adds_epu8(label, _mm256_set1_epi8(0x70));
    const __m256i second = _mm256_sub_epi8(label, _mm256_set1_epi8(16));
    const __m256i f0 = look_up_32(t->bytes[0], first, second), f1 = look_up_32(t->bytes[1], first, second);
    const __m256i s0 = look_up_32(t->bytes[2], first, second), s1 = look_up_32(t->bytes[3], first, second);
    /* Words of lanes 0 .. 7 and 16 .. 23, and of 8 .. 15 and 24 .. 31. */
    const __m256i frequency[2] = { _mm256_unpacklo_epi8(f0, f1), _mm256_unpackhi_epi8(f0, f1) };
    const __m256i slot[2] = { _mm256_unpacklo_epi8(s0, s1), _mm256_unpackhi_epi8(s0, s1) };

    for (unsigned k = 2; k-- > 0;)
        words = encode_8(t->inverse, _mm256_cvtepu16_epi32(_mm256_extracti128_si256(frequency[k], 1)),
                         _mm256_cvtepu16_epi32(_mm256_extracti128_si256(slot[k], 1)), states + 16 + 8 * k, words);
    for (unsigned k = 2; k-- > 0;)
        words = encode_8(t->inverse, _mm256_cvtepu16_epi32(_mm256_castsi256_si128(frequency[k])),
                         _mm256_cvtepu16_epi32(_mm256_castsi256_si128(slot[k])), states + 8 * k, words);
    return words;
}

AVX2 static uint8_t *encode_run_avx2(const struct ptwm_class_encoder *class, const uint8_t *labels, size_t n,
                                     uint32_t *states, uint8_t *words)
{
    struct tables_256 t;

    t.inverse = class->inverse;
    for (unsigned b = 0; b < 4; b++)
        for (unsigned k = 0; k < 2; k++)
            t.bytes[b][k] = _mm256_broadcastsi128_si256(
                _mm_loadu_si128((const __m128i *)(const void *)(class->packed_bytes[b] + 16 * k)));
    for (size_t i = n; i > 0; i -= LANES)
        for (unsigned j = LANES; j > 0; j -= 32)
            words = encode_32(&t, labels + i - LANES + j - 32, states + j - 32, words);
    return words;
}

#undef AVX2
#undef AVX512
#undef INLINE
