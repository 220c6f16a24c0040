/*
 * Coding runs of labels of one class on 128 lanes (label_encode.c), for AVX2 and AVX-512.
 */
#include <immintrin.h>

#define AVX2 __attribute__((target("avx2,bmi,bmi2,popcnt")))
#define AVX512 __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx512vbmi,avx512vbmi2,avx2,bmi,bmi2,popcnt")))
#define INLINE static inline __attribute__((always_inline))

/* ---------------------------------------------------------------------------------------------------- AVX-512 */

/* a & mask | b & ~mask */
AVX512 INLINE __m512i choose(__m512i mask, __m512i a, __m512i b)
{
    return _mm512_ternarylogic_epi64(mask, a, b, 0xca);
}

/* Of one phase, or of both. */
struct tables_512 {
    __m512i frequency[2], divisor[2], reciprocal[2], shift[2], first_slot[2];
};

AVX512 INLINE void load_tables_512(struct tables_512 *t, const struct ptwm_class_encoder *class, bool has_phases)
{
    for (unsigned phase = 0; phase < (has_phases ? 2 : 1); phase++) {
        const struct ptwm_label_divisors *d = &class[phase].divisors;
        t->frequency[phase] = _mm512_loadu_si512(d->frequency);
        t->divisor[phase] = _mm512_loadu_si512(d->divisor);
        t->reciprocal[phase] = _mm512_loadu_si512(d->reciprocal);
        t->shift[phase] = _mm512_loadu_si512(d->shift);
        t->first_slot[phase] = _mm512_loadu_si512(d->first_slot);
    }
}

/* The low five bits of a label are an index, or with phases the low six. */
AVX512 INLINE __m512i look_up_512(const __m512i table[2], bool has_phases, __m512i label)
{
    return has_phases ? _mm512_permutex2var_epi16(table[0], label, table[1])
                      : _mm512_permutexvar_epi16(label, table[0]);
}

/*
 * Emits words and turns the halves of the states, 32 lanes each, into ranks and quotients. All is done step by step for
 * four vectors: one alone would wait for each result, and processors do not look far enough ahead to find the next.
 */
AVX512 INLINE uint8_t *divide_128(const struct tables_512 *t, bool has_phases, const __m512i label[4], __m512i low[4],
                                  __m512i high[4], uint8_t *words)
{
    const __m512i one = _mm512_set1_epi16(1), zero = _mm512_setzero_si512();
    __m512i divisor[4], shift[4], lower[4], fraction[4], quotient[4], r[4];
    __mmask32 below[4], any = 0;

#pragma GCC unroll 4
    for (unsigned k = 4; k-- > 0;) {
        const __mmask32 emits = _mm512_cmpge_epu16_mask(high[k], look_up_512(t->frequency, has_phases, label[k]));
        const unsigned n = (unsigned)_mm_popcnt_u32(emits);
        words -= 2 * n;
        _mm512_mask_storeu_epi16(words, (__mmask32)_bzhi_u32(0xffffffff, n),
                                 _mm512_maskz_compress_epi16(emits, low[k]));
        low[k] = _mm512_mask_mov_epi16(low[k], emits, high[k]);
        high[k] = _mm512_mask_mov_epi16(high[k], emits, zero);
    }
#pragma GCC unroll 4
    for (unsigned k = 0; k < 4; k++) {
        shift[k] = look_up_512(t->shift, has_phases, label[k]);
        high[k] = _mm512_shldv_epi16(high[k], low[k], shift[k]);
        lower[k] = _mm512_sllv_epi16(low[k], shift[k]);
    }
#pragma GCC unroll 4
    for (unsigned k = 0; k < 4; k++) {
        const __m512i reciprocal = look_up_512(t->reciprocal, has_phases, label[k]);
        fraction[k] = _mm512_mullo_epi16(reciprocal, high[k]);
        quotient[k] = _mm512_mulhi_epu16(reciprocal, high[k]);
    }
#pragma GCC unroll 4
    for (unsigned k = 0; k < 4; k++) {
        fraction[k] = _mm512_add_epi16(fraction[k], lower[k]);
        quotient[k] = _mm512_add_epi16(quotient[k], _mm512_add_epi16(high[k], one));
    }
#pragma GCC unroll 4
    for (unsigned k = 0; k < 4; k++) { /* the carry */
        const __mmask32 carry = _mm512_cmplt_epu16_mask(fraction[k], lower[k]);
        quotient[k] = _mm512_mask_add_epi16(quotient[k], carry, quotient[k], one);
        divisor[k] = look_up_512(t->divisor, has_phases, label[k]);
    }
#pragma GCC unroll 4
    for (unsigned k = 0; k < 4; k++)
        r[k] = _mm512_sub_epi16(lower[k], _mm512_mullo_epi16(quotient[k], divisor[k]));
#pragma GCC unroll 4
    for (unsigned k = 0; k < 4; k++) {
        const __mmask32 above = _mm512_cmpgt_epu16_mask(r[k], fraction[k]);
        quotient[k] = _mm512_mask_sub_epi16(quotient[k], above, quotient[k], one);
        r[k] = _mm512_mask_add_epi16(r[k], above, r[k], divisor[k]);
    }
#pragma GCC unroll 4
    for (unsigned k = 0; k < 4; k++) {
        below[k] = _mm512_cmpge_epu16_mask(r[k], divisor[k]);
        any |= below[k];
    }
    if (__builtin_expect(any != 0, 0)) /* now and then a quotient is still too small */
        for (unsigned k = 0; k < 4; k++) {
            quotient[k] = _mm512_mask_add_epi16(quotient[k], below[k], quotient[k], one);
            r[k] = _mm512_mask_sub_epi16(r[k], below[k], r[k], divisor[k]);
        }
#pragma GCC unroll 4
    for (unsigned k = 0; k < 4; k++) {
        high[k] = quotient[k];
        low[k] = _mm512_srlv_epi16(r[k], shift[k]);
    }
    return words;
}

/* The low halves of 32 states from their labels and ranks, with the large table, for classes of too many pieces. */
AVX512 INLINE __m512i invert_32(const struct ptwm_class_encoder *class, const struct tables_512 *t, bool has_phases,
                                __m512i label, __m512i rank)
{
    const __m512i slot = _mm512_add_epi16(look_up_512(t->first_slot, has_phases, label), _mm512_srli_epi16(rank, 3));
    const __m512i low =
        _mm512_i32gather_epi32(_mm512_cvtepu16_epi32(_mm512_castsi512_si256(slot)), (const void *)class->inverse, 2);
    const __m512i high = _mm512_i32gather_epi32(_mm512_cvtepu16_epi32(_mm512_extracti64x4_epi64(slot, 1)),
                                                (const void *)class->inverse, 2);
    const __m512i inverse =
        _mm512_inserti64x4(_mm512_castsi256_si512(_mm512_cvtepi32_epi16(low)), _mm512_cvtepi32_epi16(high), 1);
    return _mm512_add_epi16(inverse, _mm512_slli_epi16(_mm512_and_si512(rank, _mm512_set1_epi16(7)), 5));
}

/*
 * The labels of 128 lanes: those of 64 at a time as they lie there, and as u16, of which what is above the label itself
 * does not count.
 */
AVX512 INLINE void labels_128(const uint8_t *labels, __m512i pairs[2], __m512i label[4])
{
#pragma GCC unroll 2
    for (unsigned k = 0; k < 2; k++) {
        pairs[k] = _mm512_loadu_si512(labels + 64 * k);
        label[2 * k] = pairs[k];
        label[2 * k + 1] = _mm512_srli_epi16(pairs[k], 8);
    }
}

AVX512 INLINE void load_states_512(const struct ptwm_label_states *states, __m512i low[4], __m512i high[4])
{
#pragma GCC unroll 4
    for (unsigned k = 0; k < 4; k++) {
        low[k] = _mm512_load_si512(states->low + 32 * k);
        high[k] = _mm512_load_si512(states->high + 32 * k);
    }
}

AVX512 INLINE void store_states_512(struct ptwm_label_states *states, const __m512i low[4], const __m512i high[4])
{
#pragma GCC unroll 4
    for (unsigned k = 0; k < 4; k++) {
        _mm512_store_si512(states->low + 32 * k, low[k]);
        _mm512_store_si512(states->high + 32 * k, high[k]);
    }
}

AVX512 INLINE uint8_t *encode_run_gather_512(const struct ptwm_class_encoder *class, bool has_phases,
                                             const uint8_t *labels, size_t n, struct ptwm_label_states *states,
                                             uint8_t *words)
{
    __m512i low[4], high[4], label[4];
    struct tables_512 t;

    load_tables_512(&t, class, has_phases);
    load_states_512(states, low, high);
    for (size_t i = n; i > 0; i -= LANES) {
        __m512i pairs[2];
        labels_128(labels + i - LANES, pairs, label);
        words = divide_128(&t, has_phases, label, low, high, words);
#pragma GCC unroll 4
        for (unsigned k = 0; k < 4; k++)
            low[k] = invert_32(class, &t, has_phases, label[k], low[k]);
    }
    store_states_512(states, low, high);
    return words;
}

struct cells_512 {
    __m512i first_cell, first_piece[2], limits[PTWM_PIECE_LIMITS][2], place[2];
};

/*
 * The low halves of 128 states from their ranks. Bytes of two vectors of u16 are taken together, those of the second
 * one in the upper bytes.
 */
AVX512 INLINE void invert_128(const struct cells_512 *c, unsigned n_limits, const __m512i pairs[2], __m512i rank[4])
{
    const __m512i low_byte = _mm512_set1_epi16(0xff), one = _mm512_set1_epi8(1);
    __m512i in_cell[2], cell[2], piece[2];

#pragma GCC unroll 2
    for (unsigned k = 0; k < 2; k++) {
        const __m512i first = _mm512_srli_epi16(rank[2 * k], 2), second = _mm512_srli_epi16(rank[2 * k + 1], 2);
        const __m512i in_label = choose(low_byte, _mm512_srli_epi16(first, 8), second);
        in_cell[k] = choose(low_byte, first, _mm512_slli_epi16(second, 8));
        cell[k] = _mm512_add_epi8(in_label, _mm512_permutexvar_epi8(pairs[k], c->first_cell));
    }
#pragma GCC unroll 2
    for (unsigned k = 0; k < 2; k++)
        piece[k] = _mm512_permutex2var_epi8(c->first_piece[0], cell[k], c->first_piece[1]);
#pragma GCC unroll 4
    for (unsigned l = 0; l < n_limits; l++)
#pragma GCC unroll 2
        for (unsigned k = 0; k < 2; k++) {
            const __m512i limit = _mm512_permutex2var_epi8(c->limits[l][0], cell[k], c->limits[l][1]);
            piece[k] = _mm512_mask_add_epi8(piece[k], _mm512_cmpgt_epu8_mask(in_cell[k], limit), piece[k], one);
        }
#pragma GCC unroll 2
    for (unsigned k = 0; k < 2; k++) {
        const __m512i first = piece[k], second = _mm512_srli_epi16(piece[k], 8);
        rank[2 * k] = _mm512_add_epi16(_mm512_slli_epi16(rank[2 * k], 5),
                                       _mm512_permutex2var_epi16(c->place[0], first, c->place[1]));
        rank[2 * k + 1] = _mm512_add_epi16(_mm512_slli_epi16(rank[2 * k + 1], 5),
                                           _mm512_permutex2var_epi16(c->place[0], second, c->place[1]));
    }
}

AVX512 INLINE void load_cells_512(struct cells_512 *c, const struct ptwm_pieces *p, unsigned n_limits)
{
    c->first_cell = _mm512_loadu_si512(p->first_cell);
    for (unsigned k = 0; k < 2; k++) {
        c->first_piece[k] = _mm512_loadu_si512(p->first_piece + 64 * k);
        c->place[k] = _mm512_loadu_si512(p->place + 32 * k);
        for (unsigned l = 0; l < n_limits; l++)
            c->limits[l][k] = _mm512_loadu_si512(p->limits[l] + 64 * k);
    }
}

AVX512 INLINE uint8_t *encode_run_512(const struct ptwm_class_encoder *class, unsigned n_limits, const uint8_t *labels,
                                      size_t n, struct ptwm_label_states *states, uint8_t *words)
{
    __m512i low[4], high[4], label[4];
    struct tables_512 t;
    struct cells_512 c;

    load_tables_512(&t, class, false);
    load_cells_512(&c, &class->pieces, n_limits);
    load_states_512(states, low, high);
    for (size_t i = n; i > 0; i -= LANES) {
        __m512i pairs[2];
        labels_128(labels + i - LANES, pairs, label);
        words = divide_128(&t, false, label, low, high, words);
        invert_128(&c, n_limits, pairs, low);
    }
    store_states_512(states, low, high);
    return words;
}

/* Zen 4 takes .21 ns a label with one limit, .02 more for each other one, .55 with the gather. */
AVX512 static uint8_t *encode_run_avx512(const struct ptwm_class_encoder *class, const uint8_t *labels, size_t n,
                                         struct ptwm_label_states *states, uint8_t *words)
{
    switch (class->pieces.n_limits) {
    case 0:
    case 1: return encode_run_512(class, 1, labels, n, states, words);
    case 2: return encode_run_512(class, 2, labels, n, states, words);
    case 3: return encode_run_512(class, 3, labels, n, states, words);
    case PTWM_PIECE_LIMITS: return encode_run_512(class, PTWM_PIECE_LIMITS, labels, n, states, words);
    default: return encode_run_gather_512(class, false, labels, n, states, words);
    }
}

/* With phases: ranks are inverted by the pieces of either phase. */
AVX512 INLINE uint8_t *encode_phased_run_512(const struct ptwm_class_encoder *class, unsigned n_limits,
                                             const uint8_t *labels, size_t n, struct ptwm_label_states *states,
                                             uint8_t *words)
{
    __m512i low[4], high[4], label[4], second[4];
    struct tables_512 t;
    struct cells_512 c[2];

    load_tables_512(&t, class, true);
    load_cells_512(&c[0], &class[0].pieces, n_limits);
    load_cells_512(&c[1], &class[1].pieces, n_limits);
    load_states_512(states, low, high);
    for (size_t i = n; i > 0; i -= LANES) {
        __mmask32 is_second[4];
        __m512i pairs[2];
        labels_128(labels + i - LANES, pairs, label);
        words = divide_128(&t, true, label, low, high, words);
#pragma GCC unroll 4
        for (unsigned k = 0; k < 4; k++) {
            is_second[k] = _mm512_test_epi16_mask(label[k], _mm512_set1_epi16(PTWM_PHASE));
            second[k] = low[k];
        }
        for (unsigned k = 0; k < 2; k++)
            pairs[k] = _mm512_and_si512(pairs[k], _mm512_set1_epi8(PTWM_LABEL_MASK));
        invert_128(&c[0], n_limits, pairs, low);
        invert_128(&c[1], n_limits, pairs, second);
#pragma GCC unroll 4
        for (unsigned k = 0; k < 4; k++)
            low[k] = _mm512_mask_mov_epi16(low[k], is_second[k], second[k]);
    }
    store_states_512(states, low, high);
    return words;
}

AVX512 static uint8_t *encode_phased_run_avx512(const struct ptwm_class_encoder *class, const uint8_t *labels, size_t n,
                                                struct ptwm_label_states *states, uint8_t *words)
{
    const unsigned n_limits =
        class[0].pieces.n_limits > class[1].pieces.n_limits ? class[0].pieces.n_limits : class[1].pieces.n_limits;
    if (n_limits <= 2)
        return encode_phased_run_512(class, 2, labels, n, states, words);
    if (n_limits <= PTWM_PIECE_LIMITS)
        return encode_phased_run_512(class, PTWM_PIECE_LIMITS, labels, n, states, words);
    return encode_run_gather_512(class, true, labels, n, states, words);
}

/* ------------------------------------------------------------------------------------------------------- AVX2 */

#include "../word_shuffles.h"

/* Of labels 0 .. 15 and 16 .. 31, each in both halves; in the order of ptwm_label_divisors.bytes, of one phase or both.
 */
struct tables_256 {
    __m256i bytes[2][4][2][2];
};

/* Bit 7 of an index gives 0: the first table's index has it from 16 on, the second's below. */
struct index_256 {
    __m256i first, second;
    __m256i is_second_phase; /* bit 7 */
};

/* A byte of each of 32 labels. */
AVX2 INLINE __m256i look_up_byte_32(const struct tables_256 *t, unsigned phase, unsigned field, unsigned byte,
                                    const struct index_256 *index)
{
    return _mm256_or_si256(_mm256_shuffle_epi8(t->bytes[phase][field][byte][0], index->first),
                           _mm256_shuffle_epi8(t->bytes[phase][field][byte][1], index->second));
}

/* u16 of 32 labels by their bytes: of labels 0 .. 7 and 16 .. 23, and of the others. */
AVX2 INLINE void look_up_32(const struct tables_256 *t, bool has_phases, unsigned field, const struct index_256 *index,
                            __m256i value[2])
{
    __m256i low = look_up_byte_32(t, 0, field, 0, index), high = look_up_byte_32(t, 0, field, 1, index);

    if (has_phases) {
        low = _mm256_blendv_epi8(low, look_up_byte_32(t, 1, field, 0, index), index->is_second_phase);
        high = _mm256_blendv_epi8(high, look_up_byte_32(t, 1, field, 1, index), index->is_second_phase);
    }
    value[0] = _mm256_unpacklo_epi8(low, high);
    value[1] = _mm256_unpackhi_epi8(low, high);
}

/* inverse[index] of 8 lanes of u16. Scalar loads beat AVX2's gather here. */
AVX2 INLINE __m128i invert_8(const uint16_t *inverse, __m128i index)
{
    const uint64_t a = (uint64_t)_mm_cvtsi128_si64(index), b = (uint64_t)_mm_extract_epi64(index, 1);
    __m128i value = _mm_cvtsi32_si128(inverse[a & 0xffff]);

    value = _mm_insert_epi16(value, inverse[a >> 16 & 0xffff], 1);
    value = _mm_insert_epi16(value, inverse[a >> 32 & 0xffff], 2);
    value = _mm_insert_epi16(value, inverse[a >> 48], 3);
    value = _mm_insert_epi16(value, inverse[b & 0xffff], 4);
    value = _mm_insert_epi16(value, inverse[b >> 16 & 0xffff], 5);
    value = _mm_insert_epi16(value, inverse[b >> 32 & 0xffff], 6);
    return _mm_insert_epi16(value, inverse[b >> 48], 7);
}

/* Emits 8 lanes' words, those of the set bits of emits. There is room for 8 words before words. */
AVX2 INLINE uint8_t *emit_8(__m128i low, unsigned emits, uint8_t *words)
{
    _mm_storeu_si128((__m128i *)(void *)(words - 16),
                     _mm_shuffle_epi8(low, _mm_load_si128((const __m128i *)(const void *)word_shuffles[emits])));
    return words - 2 * _mm_popcnt_u32(emits);
}

/*
 * Codes 16 labels, whose numbers are given. a >= b is max(a, b) == a here, as there are no comparisons of unsigned
 * integers, and their results are 0 or -1.
 */
AVX2 INLINE uint8_t *encode_16(const uint16_t *inverse, __m256i frequency, __m256i scale, __m256i reciprocal,
                               __m256i slot, uint16_t *low, uint16_t *high, uint8_t *words)
{
    __m256i l = _mm256_load_si256((const __m256i *)(const void *)low),
            h = _mm256_load_si256((const __m256i *)(const void *)high);
    const __m256i emits = _mm256_cmpeq_epi16(_mm256_max_epu16(h, frequency), h);
    const __m256i divisor = _mm256_mullo_epi16(frequency, scale);
    const unsigned mask = (unsigned)_mm256_movemask_epi8(_mm256_packs_epi16(emits, _mm256_setzero_si256()));
    __m256i upper, lower, fraction, quotient, r, right, least, rank;

    words = emit_8(_mm256_extracti128_si256(l, 1), mask >> 16, words);
    words = emit_8(_mm256_castsi256_si128(l), mask & 255, words);
    l = _mm256_blendv_epi8(l, h, emits);
    h = _mm256_andnot_si256(emits, h);
    upper = _mm256_or_si256(_mm256_mullo_epi16(h, scale), _mm256_mulhi_epu16(l, scale));
    lower = _mm256_mullo_epi16(l, scale);
    fraction = _mm256_add_epi16(_mm256_mullo_epi16(reciprocal, upper), lower);
    /* + 1 and the carry, if fraction < lower */
    quotient = _mm256_add_epi16(
        _mm256_add_epi16(_mm256_mulhi_epu16(reciprocal, upper), upper),
        _mm256_add_epi16(_mm256_cmpeq_epi16(_mm256_max_epu16(fraction, lower), fraction), _mm256_set1_epi16(2)));
    r = _mm256_sub_epi16(lower, _mm256_mullo_epi16(quotient, divisor));
    /* One less where r > fraction; then one more where r >= divisor, and so r - divisor does not wrap. */
    right = _mm256_cmpeq_epi16(_mm256_max_epu16(r, fraction), fraction);
    r = _mm256_add_epi16(r, _mm256_andnot_si256(right, divisor));
    least = _mm256_min_epu16(r, _mm256_sub_epi16(r, divisor));
    quotient = _mm256_add_epi16(_mm256_sub_epi16(quotient, right), _mm256_cmpeq_epi16(least, r)); /* - 1 and + 1 */
    rank = _mm256_sub_epi16(l, _mm256_mullo_epi16(quotient, frequency));
    slot = _mm256_add_epi16(slot, _mm256_srli_epi16(rank, 3));
    l = _mm256_inserti128_si256(_mm256_castsi128_si256(invert_8(inverse, _mm256_castsi256_si128(slot))),
                                invert_8(inverse, _mm256_extracti128_si256(slot, 1)), 1);
    l = _mm256_add_epi16(l, _mm256_slli_epi16(_mm256_and_si256(rank, _mm256_set1_epi16(7)), 5));
    _mm256_store_si256((__m256i *)(void *)low, l);
    _mm256_store_si256((__m256i *)(void *)high, quotient);
    return words;
}

/* Codes 32 labels, which come in an order from which unpacking makes that of the lanes. */
AVX2 INLINE uint8_t *encode_32(const struct tables_256 *t, bool has_phases, const uint16_t *inverse, __m256i all,
                               uint16_t *low, uint16_t *high, uint8_t *words)
{
    const __m256i label = _mm256_and_si256(all, _mm256_set1_epi8(PTWM_LABEL_MASK));
    const struct index_256 index = { _mm256_adds_epu8(label, _mm256_set1_epi8(0x70)),
                                     _mm256_sub_epi8(label, _mm256_set1_epi8(16)), _mm256_slli_epi16(all, 2) };
    __m256i value[4][2];

    for (unsigned k = 0; k < 4; k++)
        look_up_32(t, has_phases, k, &index, value[k]);
    for (unsigned k = 2; k-- > 0;)
        words =
            encode_16(inverse, value[0][k], value[1][k], value[2][k], value[3][k], low + 16 * k, high + 16 * k, words);
    return words;
}

/* 32 labels, in each half the even ones before the odd ones. */
AVX2 INLINE __m256i split_pairs(const uint8_t *labels)
{
    const __m256i order =
        _mm256_broadcastsi128_si256(_mm_set_epi8(15, 13, 11, 9, 7, 5, 3, 1, 14, 12, 10, 8, 6, 4, 2, 0));
    return _mm256_shuffle_epi8(_mm256_loadu_si256((const __m256i *)(const void *)labels), order);
}

AVX2 INLINE uint8_t *encode_run_256(const struct ptwm_class_encoder *class, bool has_phases, const uint8_t *labels,
                                    size_t n, struct ptwm_label_states *states, uint8_t *words)
{
    struct tables_256 t;

    for (unsigned phase = 0; phase < (has_phases ? 2 : 1); phase++)
        for (unsigned k = 0; k < 4; k++)
            for (unsigned b = 0; b < 2; b++)
                for (unsigned half = 0; half < 2; half++)
                    t.bytes[phase][k][b][half] = _mm256_broadcastsi128_si256(_mm_loadu_si128(
                        (const __m128i *)(const void *)(class[phase].divisors.bytes[k][b] + 16 * half)));
    for (size_t i = n; i > 0; i -= LANES)
        for (unsigned j = LANES; j > 0; j -= 64) {
            __m256i a = split_pairs(labels + i - LANES + j - 64), b = split_pairs(labels + i - LANES + j - 32);
            words = encode_32(&t, has_phases, class->inverse, _mm256_unpackhi_epi64(a, b), states->low + j - 32,
                              states->high + j - 32, words);
            words = encode_32(&t, has_phases, class->inverse, _mm256_unpacklo_epi64(a, b), states->low + j - 64,
                              states->high + j - 64, words);
        }
    return words;
}

AVX2 static uint8_t *encode_run_avx2(const struct ptwm_class_encoder *class, const uint8_t *labels, size_t n,
                                     struct ptwm_label_states *states, uint8_t *words)
{
    return encode_run_256(class, false, labels, n, states, words);
}

AVX2 static uint8_t *encode_phased_run_avx2(const struct ptwm_class_encoder *class, const uint8_t *labels, size_t n,
                                            struct ptwm_label_states *states, uint8_t *words)
{
    return encode_run_256(class, true, labels, n, states, words);
}

#undef AVX2
#undef AVX512
#undef INLINE
