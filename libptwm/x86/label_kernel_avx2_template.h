/*
 * AVX2 kernels of fused decoding: one body, decode_avx2, from which each pair of constant kind and check makes its own instance
 * (label_kernel_impl.h). Included once.
 *
 * A look-up among 32 bytes is two pshufb, each of which gives zero where the other one answers. Gathers are half as fast. 64
 * lanes go through a step side by side and share the loads of the tables. States stay in the job: there are too few registers.
 */
#define TARGET_AVX2 __attribute__((target("avx2,bmi,bmi2,popcnt,sse4.2,pclmul,prfchw")))

TARGET_AVX2 PTWM_INLINE __m256i load_avx2(const void *p)
{
    return _mm256_loadu_si256(p);
}

/* What pshufb wants to look up indices below 32: of the first half of the table and of the second. */
struct index_avx2 {
    __m256i first[2], second[2];
};

TARGET_AVX2 PTWM_INLINE void make_index_avx2(struct index_avx2 *index, const __m256i bytes[2])
{
    PTWM_UNROLL(2)
    for (unsigned u = 0; u < 2; u++) {
        index->first[u] = _mm256_adds_epu8(bytes[u], _mm256_set1_epi8(0x70));
        index->second[u] = _mm256_sub_epi8(bytes[u], _mm256_set1_epi8(16));
    }
}

/* The same with phases: bit 7 says in which of two tables; two pshufb more. */
struct phased_index_avx2 {
    struct index_avx2 of[2]; /* in the table of phase 0, and of phase 1 */
};

TARGET_AVX2 PTWM_INLINE void make_phased_index_avx2(struct phased_index_avx2 *index, const __m256i bytes[2])
{
    PTWM_UNROLL(2)
    for (unsigned phase = 0; phase < 2; phase++)
        PTWM_UNROLL(2)
    for (unsigned u = 0; u < 2; u++) {
        const __m256i own = phase == 0 ? bytes[u] : _mm256_xor_si256(bytes[u], _mm256_set1_epi8((char)0x80));
        /* Saturation keeps bit 7 where it is set. */
        index->of[phase].first[u] = _mm256_adds_epu8(own, _mm256_set1_epi8(0x70));
        index->of[phase].second[u] = _mm256_subs_epi8(own, _mm256_set1_epi8(16));
    }
}

TARGET_AVX2 PTWM_INLINE void look_up_avx2(__m256i found[2], const uint8_t table[PTWM_MAX_LABELS],
                                          const struct index_avx2 *index)
{
    const __m256i first = _mm256_broadcastsi128_si256(_mm_load_si128((const __m128i *)(const void *)table));
    const __m256i second = _mm256_broadcastsi128_si256(_mm_load_si128((const __m128i *)(const void *)(table + 16)));

    PTWM_UNROLL(2)
    for (unsigned u = 0; u < 2; u++)
        found[u] = _mm256_or_si256(_mm256_shuffle_epi8(first, index->first[u]),
                                   _mm256_shuffle_epi8(second, index->second[u]));
}

/* An entry of each of a field of two tables. */
TARGET_AVX2 PTWM_INLINE void look_up_phased_avx2(__m256i found[2], const uint8_t first[PTWM_MAX_LABELS],
                                                 const uint8_t second[PTWM_MAX_LABELS],
                                                 const struct phased_index_avx2 *index)
{
    __m256i other[2];

    look_up_avx2(found, first, &index->of[0]);
    look_up_avx2(other, second, &index->of[1]);
    PTWM_UNROLL(2)
    for (unsigned u = 0; u < 2; u++)
        found[u] = _mm256_or_si256(found[u], other[u]);
}

/* 16 bytes from each of two places. */
TARGET_AVX2 PTWM_INLINE __m256i load_two_avx2(const void *first, const void *second)
{
    return _mm256_inserti128_si256(_mm256_castsi128_si256(_mm_loadu_si128((const __m128i *)first)),
                                   _mm_loadu_si128((const __m128i *)second), 1);
}

/* The end of a step for 32 lanes: the new states from frequencies and ranks. high and low: of 32 lanes each. */
TARGET_AVX2 PTWM_INLINE const uint8_t *advance_avx2(uint16_t *high, uint16_t *low, const __m256i frequency[2],
                                                    const __m256i rank[2], const uint8_t *words)
{
    const __m256i one = _mm256_set1_epi16(1);
    __m256i new_low[2], new_high[2], takes[2];
    const uint8_t *next[4];
    unsigned mask;
    size_t k[4];

    PTWM_UNROLL(2)
    for (unsigned i = 0; i < 2; i++) {
        const __m256i h = _mm256_load_si256((const __m256i *)(const void *)(high + 16 * i));
        new_low[i] = _mm256_add_epi16(_mm256_mullo_epi16(frequency[i], h), rank[i]);
        new_high[i] = _mm256_mulhi_epu16(frequency[i], h);
        /* The addition carried if the sum is less than the rank. */
        new_high[i] = _mm256_add_epi16(new_high[i], _mm256_min_epu16(_mm256_subs_epu16(rank[i], new_low[i]), one));
        takes[i] = _mm256_cmpeq_epi16(new_high[i], _mm256_setzero_si256());
    }
    /* packs works within halves: bits 0-7 are lanes 0-7, 8-15 lanes 16-23, 16-23 lanes 8-15, 24-31 lanes 24-31. */
    mask = (unsigned)_mm256_movemask_epi8(_mm256_packs_epi16(takes[0], takes[1]));
    k[0] = mask & 255;
    k[1] = mask >> 16 & 255;
    k[2] = mask >> 8 & 255;
    k[3] = mask >> 24;
    next[0] = words;
    PTWM_UNROLL(4)
    for (unsigned i = 1; i < 4; i++)
        next[i] = next[i - 1] + 2 * (unsigned)_mm_popcnt_u32((unsigned)k[i - 1]);
    PTWM_UNROLL(2)
    for (unsigned i = 0; i < 2; i++) {
        const __m256i expanded =
            _mm256_shuffle_epi8(load_two_avx2(next[2 * i], next[2 * i + 1]),
                                load_two_avx2(kernel_expand[k[2 * i]], kernel_expand[k[2 * i + 1]]));
        _mm256_store_si256((__m256i *)(void *)(high + 16 * i),
                           _mm256_or_si256(new_high[i], _mm256_and_si256(takes[i], new_low[i])));
        _mm256_store_si256((__m256i *)(void *)(low + 16 * i),
                           _mm256_or_si256(expanded, _mm256_andnot_si256(takes[i], new_low[i])));
    }
    return next[3] + 2 * (unsigned)_mm_popcnt_u32((unsigned)k[3]);
}

/* Bit 7: the phases of 64 lanes, in the order in which packus puts their buckets. shifts: of these elements. */
TARGET_AVX2 PTWM_INLINE void load_phases_avx2(__m256i phase[2], const uint8_t *shifts, enum ptwm_kernel_kind kind)
{
    if (ptwm_kernel_is_bytes(kind)) { /* bit 0 of the element's shift; even elements come before odd ones */
        const __m256i a = load_avx2(shifts), b = load_avx2(shifts + 32), even = _mm256_set1_epi16(1);
        phase[0] = _mm256_packus_epi16(_mm256_and_si256(a, even), _mm256_and_si256(b, even));
        phase[1] = _mm256_packus_epi16(_mm256_and_si256(_mm256_srli_epi16(a, 8), even),
                                       _mm256_and_si256(_mm256_srli_epi16(b, 8), even));
    } else {
        PTWM_UNROLL(2)
        for (unsigned u = 0; u < 2; u++)
            phase[u] =
                _mm256_packus_epi16(_mm256_and_si256(load_avx2(shifts + 64 * u), _mm256_set1_epi16(PTWM_PHASE)),
                                    _mm256_and_si256(load_avx2(shifts + 64 * u + 32), _mm256_set1_epi16(PTWM_PHASE)));
    }
    PTWM_UNROLL(2)
    for (unsigned u = 0; u < 2; u++)
        phase[u] = _mm256_slli_epi16(phase[u], ptwm_kernel_is_bytes(kind) ? 7 : 2);
}

/* An entry of each of table->field, or of the two tables' if there are phases. */
#define LOOK_UP_AVX2(found, field, index)                                                                              \
    (shifts != NULL ? look_up_phased_avx2(found, table[0].field, table[1].field, &phased_##index)                      \
                    : look_up_avx2(found, table->field, &index))

/*
 * One step of 64 lanes. high and low: of 64 lanes. Their symbols: for bytes symbols[0 .. 1] are those of the 64
 * elements in order; else symbols[i] are those of 16 lanes. shifts: of the elements, which have phases; NULL if there
 * are none.
 */
TARGET_AVX2 PTWM_INLINE const uint8_t *step_avx2(uint16_t *high, uint16_t *low, const struct ptwm_kernel_table8 *table,
                                                 const uint8_t *shifts, const uint8_t *words,
                                                 enum ptwm_kernel_kind kind, __m256i symbols[4])
{
    const __m256i *x = (const __m256i *)(const void *)low;
    __m256i bucket[2], label[2], is_alias[2], adj_low[2], adj_high[2], a[2], b[2], frequency[2], rank[2];
    struct index_avx2 by_bucket, by_label;
    struct phased_index_avx2 phased_by_bucket, phased_by_label;

    PTWM_UNROLL(2)
    for (unsigned u = 0; u < 2; u++)
        bucket[u] = _mm256_packus_epi16(_mm256_and_si256(_mm256_load_si256(x + 2 * u), _mm256_set1_epi16(31)),
                                        _mm256_and_si256(_mm256_load_si256(x + 2 * u + 1), _mm256_set1_epi16(31)));
    if (shifts != NULL) {
        load_phases_avx2(a, shifts, kind);
        PTWM_UNROLL(2)
        for (unsigned u = 0; u < 2; u++)
            bucket[u] = _mm256_or_si256(bucket[u], a[u]);
        make_phased_index_avx2(&phased_by_bucket, bucket);
    } else {
        make_index_avx2(&by_bucket, bucket);
    }
    LOOK_UP_AVX2(a, div_high, by_bucket);
    PTWM_UNROLL(2)
    for (unsigned u = 0; u < 2; u++) {
        const __m256i x_high = _mm256_packus_epi16(_mm256_srli_epi16(_mm256_load_si256(x + 2 * u), 8),
                                                   _mm256_srli_epi16(_mm256_load_si256(x + 2 * u + 1), 8));
        is_alias[u] = _mm256_cmpeq_epi8(_mm256_max_epu8(x_high, a[u]), x_high);
    }
    LOOK_UP_AVX2(b, other, by_bucket);
    PTWM_UNROLL(2)
    for (unsigned u = 0; u < 2; u++)
        label[u] = _mm256_xor_si256(bucket[u], _mm256_and_si256(b[u], is_alias[u]));
    LOOK_UP_AVX2(adj_low, adj_low, by_bucket);
    LOOK_UP_AVX2(adj_high, adj_high, by_bucket);
    PTWM_UNROLL(2)
    for (unsigned u = 0; u < 2; u++) {
        adj_low[u] = _mm256_and_si256(adj_low[u], is_alias[u]);
        adj_high[u] = _mm256_and_si256(adj_high[u], is_alias[u]);
    }
    if (shifts != NULL) {
        make_phased_index_avx2(&phased_by_label, label);
        PTWM_UNROLL(2)
        for (unsigned u = 0; u < 2; u++) /* of symbols there is one table */
            label[u] = _mm256_and_si256(label[u], _mm256_set1_epi8(31));
    }
    make_index_avx2(&by_label, label);

    if (ptwm_kernel_is_bytes(kind)) {
        look_up_avx2(a, table->symbol_low, &by_label);
        symbols[0] = _mm256_unpacklo_epi8(a[0], a[1]);
        symbols[1] = _mm256_unpackhi_epi8(a[0], a[1]);
    } else {
        if (kind == PTWM_KERNEL_REST10) /* symbols begin at bit 9 */
            a[0] = a[1] = _mm256_setzero_si256();
        else
            look_up_avx2(a, table->symbol_low, &by_label);
        look_up_avx2(b, table->symbol_high, &by_label);
        PTWM_UNROLL(2)
        for (unsigned u = 0; u < 2; u++) {
            symbols[2 * u] = _mm256_unpacklo_epi8(a[u], b[u]);
            symbols[2 * u + 1] = _mm256_unpackhi_epi8(a[u], b[u]);
        }
    }

    LOOK_UP_AVX2(a, frequency_low, by_label);
    LOOK_UP_AVX2(b, frequency_high, by_label);
    PTWM_UNROLL(2)
    for (unsigned u = 0; u < 2; u++) {
        frequency[0] = _mm256_unpacklo_epi8(a[u], b[u]);
        frequency[1] = _mm256_unpackhi_epi8(a[u], b[u]);
        rank[0] = _mm256_add_epi16(_mm256_unpacklo_epi8(adj_low[u], adj_high[u]),
                                   _mm256_srli_epi16(_mm256_load_si256(x + 2 * u), 5));
        rank[1] = _mm256_add_epi16(_mm256_unpackhi_epi8(adj_low[u], adj_high[u]),
                                   _mm256_srli_epi16(_mm256_load_si256(x + 2 * u + 1), 5));
        words = advance_avx2(high + 32 * u, low + 32 * u, frequency, rank, words);
    }
    return words;
}

/* (a & mask) | (b & ~mask) */
TARGET_AVX2 PTWM_INLINE __m256i select_avx2(__m256i mask, __m256i a, __m256i b)
{
    return _mm256_or_si256(_mm256_and_si256(mask, a), _mm256_andnot_si256(mask, b));
}

/* The job's fields that stay in registers. */
struct context_avx2 {
    const uint8_t *words, *rest, *low_plane, *shifts;
    uint8_t *out;
    __m256i spread[2]; /* as in the AVX-512 kernels, of each half of a vector of 32 */
    bool is_streamed;
    struct crc_context crc;
};

/* Stores finished elements. */
TARGET_AVX2 PTWM_INLINE void put_out_avx2(const struct context_avx2 *c, uint8_t *out, __m256i x)
{
    if (c->is_streamed)
        _mm256_stream_si256((__m256i *)(void *)out, x);
    else
        _mm256_storeu_si256((__m256i *)(void *)out, x);
}

/*
 * Stores 16 elements from number i of the block on: the rest where mask is set, elsewhere symbols and shifts. A symbol has no
 * bits there, but a sum with a shift may.
 */
TARGET_AVX2 PTWM_INLINE void put_avx2(const struct context_avx2 *c, enum ptwm_kernel_kind kind,
                                      enum ptwm_kernel_columns columns, size_t i, __m256i mask, __m256i rest,
                                      __m256i symbols)
{
    const __m256i units =
        columns == PTWM_KERNEL_NO_SHIFTS
            ? _mm256_or_si256(_mm256_and_si256(mask, rest), symbols)
            : select_avx2(mask, rest, _mm256_add_epi16(symbols, load_avx2(c->shifts + 2 * i)));

    if (kind == PTWM_KERNEL_REST7_LOW || kind == PTWM_KERNEL_REST8_LOW) {
        const __m256i low = load_avx2(c->low_plane + 2 * i);
        const __m256i a = _mm256_unpacklo_epi16(low, units), b = _mm256_unpackhi_epi16(low, units);
        put_out_avx2(c, c->out + 4 * i, _mm256_permute2x128_si256(a, b, 0x20));
        put_out_avx2(c, c->out + 4 * i + 32, _mm256_permute2x128_si256(a, b, 0x31));
    } else {
        put_out_avx2(c, c->out + 2 * i, units);
    }
}

TARGET_AVX2 PTWM_INLINE __m256i swap_bytes_avx2(__m256i x)
{
    return _mm256_shuffle_epi8(x, _mm256_setr_epi8(1, 0, 3, 2, 5, 4, 7, 6, 9, 8, 11, 10, 13, 12, 15, 14, 1, 0, 3, 2, 5, 4, 7,
                                                   6, 9, 8, 11, 10, 13, 12, 15, 14));
}

/* Pair number pair of a block with 7 or 8 bits of rest: 64 elements whose rests share 32 words. */
TARGET_AVX2 PTWM_INLINE void pair_rest78_avx2(struct context_avx2 *c, enum ptwm_kernel_kind kind,
                                              enum ptwm_kernel_columns columns, size_t pair, const __m256i symbols[4])
{
    const bool is_7 = kind == PTWM_KERNEL_REST7 || kind == PTWM_KERNEL_REST7_LOW;
    const __m256i mask = _mm256_set1_epi16((short)(is_7 ? 0x803F : 0x807F));

    PTWM_UNROLL(2)
    for (unsigned i = 0; i < 2; i++) {
        const __m256i rest = load_avx2(c->rest + 64 * pair + 32 * i);
        put_avx2(c, kind, columns, 64 * pair + 16 * i, mask, rest, symbols[i]);
        put_avx2(c, kind, columns, 64 * pair + 32 + 16 * i, mask, swap_bytes_avx2(rest), symbols[2 + i]);
        if (is_7)
            c->spread[i] = _mm256_or_si256(_mm256_srli_epi16(c->spread[i], 1),
                                           _mm256_and_si256(rest, _mm256_set1_epi16(0x4040)));
    }
}

/* The last pair with 7 bits of rest, which the others carried. */
TARGET_AVX2 PTWM_INLINE void last_pair_rest7_avx2(struct context_avx2 *c, enum ptwm_kernel_kind kind,
                                                  enum ptwm_kernel_columns columns,
                                                  const __m256i symbols[4])
{
    const __m256i mask = _mm256_set1_epi16((short)0x803F), mantissa = _mm256_set1_epi16(0x3F);

    PTWM_UNROLL(2)
    for (unsigned i = 0; i < 2; i++) {
        const __m256i x = c->spread[i];
        put_avx2(c, kind, columns, 448 + 16 * i, mask, select_avx2(mantissa, x, _mm256_slli_epi16(x, 9)), symbols[i]);
        put_avx2(c, kind, columns, 480 + 16 * i, mask,
                 select_avx2(mantissa, _mm256_srli_epi16(x, 8), _mm256_slli_epi16(x, 1)), symbols[2 + i]);
    }
}

/* A pair of a block with 10 bits of rest. is_last: of the four that share spread. */
TARGET_AVX2 PTWM_INLINE void pair_rest10_avx2(struct context_avx2 *c, enum ptwm_kernel_columns columns, size_t pair,
                                              bool is_last, const __m256i symbols[4])
{
    const __m256i mask = _mm256_set1_epi16((short)0x81FF), byte = _mm256_set1_epi16(0xFF);

    PTWM_UNROLL(2)
    for (unsigned i = 0; i < 2; i++) {
        const __m256i rest = load_avx2(c->rest + 128 + 64 * pair + 32 * i);
        __m256i x = c->spread[i];
        put_avx2(c, PTWM_KERNEL_REST10, columns, 64 * pair + 16 * i, mask, select_avx2(byte, rest, x), symbols[i]);
        x = _mm256_add_epi16(x, x);
        if (is_last) /* the eighth vector's bits have come to 7 and 8 */
            x = _mm256_or_si256(_mm256_and_si256(x, _mm256_set1_epi16(0x100)), _mm256_slli_epi16(x, 8));
        put_avx2(c, PTWM_KERNEL_REST10, columns, 64 * pair + 32 + 16 * i, mask,
                 select_avx2(byte, _mm256_srli_epi16(rest, 8), x), symbols[2 + i]);
        c->spread[i] = _mm256_add_epi16(x, x);
    }
}

/* Vector v of 0 .. 7 of a block with 2 bits of rest: 64 bytes. */
TARGET_AVX2 PTWM_INLINE void bytes_rest2_avx2(struct context_avx2 *c, unsigned v, const __m256i symbols[2])
{
    const __m256i sign = _mm256_set1_epi8((char)0x80);

    PTWM_UNROLL(2)
    for (unsigned i = 0; i < 2; i++) {
        const __m256i rest = load_avx2(c->rest + 64 * (v / 4) + 32 * i);
        const __m256i x = _mm256_add_epi8(symbols[i], load_avx2(c->shifts + 64 * v + 32 * i));
        const __m256i r = select_avx2(sign, _mm256_slli_epi16(rest, v % 4), _mm256_srli_epi16(rest, v % 4));
        put_out_avx2(c, c->out + 64 * v + 32 * i, select_avx2(_mm256_set1_epi8((char)0x81), r, x));
    }
}

/* Where 64 rests of 3 bits are in a block's three vectors. */
enum place_rest3 { REST3_OUTER, REST3_INNER, REST3_MIDDLE_6, REST3_MIDDLE_7 };

/* Vector v of 0 .. 7 of a block with 3 bits of rest: 64 bytes. */
TARGET_AVX2 PTWM_INLINE void bytes_rest3_avx2(struct context_avx2 *c, enum ptwm_kernel_kind kind, enum place_rest3 place,
                                              size_t v, const __m256i symbols[2])
{
    /* The rest's highest bit is the sign, or the bit above the others. */
    const bool is_int8 = kind == PTWM_KERNEL_INT8;
    const __m256i high = _mm256_set1_epi8(is_int8 ? 4 : (char)0x80);

    PTWM_UNROLL(2)
    for (unsigned i = 0; i < 2; i++) {
        const __m256i rest = load_avx2(c->rest + 64 * (v % 3) + 32 * i), last = load_avx2(c->rest + 128 + 32 * i);
        const __m256i x = _mm256_add_epi8(symbols[i], load_avx2(c->shifts + 64 * v + 32 * i));
        __m256i r;
        if (place == REST3_OUTER)
            r = is_int8 ? select_avx2(high, _mm256_srli_epi16(rest, 5), rest) : rest;
        else if (place == REST3_INNER)
            r = select_avx2(high, is_int8 ? _mm256_srli_epi16(rest, 4) : _mm256_add_epi8(rest, rest),
                            _mm256_srli_epi16(rest, 2));
        else
            r = select_avx2(high, is_int8 ? _mm256_srli_epi16(rest, 3) : _mm256_slli_epi16(rest, 2),
                            select_avx2(_mm256_set1_epi8(1), _mm256_srli_epi16(rest, 4),
                                        place == REST3_MIDDLE_6 ? _mm256_srli_epi16(last, 4) : _mm256_srli_epi16(last, 3)));
        put_out_avx2(c, c->out + 64 * v + 32 * i, select_avx2(_mm256_set1_epi8(is_int8 ? 7 : (char)0x83), r, x));
    }
}

/* The step and the CRCs' share of pair number pair of a block. is_odd: pair % 2, as a constant. */
TARGET_AVX2 PTWM_INLINE void pair_avx2(struct context_avx2 *c, struct ptwm_kernel_job *job, const uint8_t *classes,
                                       enum ptwm_kernel_kind kind, enum ptwm_kernel_check check, enum ptwm_kernel_columns columns,
                                       unsigned rest_bits, size_t pair, bool is_odd, __m256i symbols[4])
{
    const size_t lanes = is_odd ? 64 : 0, n_phases = columns == PTWM_KERNEL_PHASES ? 2 : 1;
    const size_t out_nbytes = ptwm_kernel_shape(kind).out_nbytes / 8;
    const uint8_t *shifts = c->shifts + (ptwm_kernel_is_bytes(kind) ? 64 : 128) * pair;

    if (!c->is_streamed)
        prefetch_stores(c->out + out_nbytes * pair, out_nbytes);
    prefetch_pair(check == PTWM_KERNEL_NO_CRC ? c->words : c->crc.next, c->rest, c->low_plane, rest_bits,
                  kind == PTWM_KERNEL_REST7_LOW || kind == PTWM_KERNEL_REST8_LOW, pair);
    c->words = step_avx2(job->high + lanes, job->low + lanes, &job->tables.of8[n_phases * classes[pair / 2]],
                         columns == PTWM_KERNEL_PHASES ? shifts : NULL, c->words, kind, symbols);
    crc_of_pair(&c->crc, check, rest_bits, c->rest, check == PTWM_KERNEL_CRC_LOW ? c->low_plane : NULL, pair, is_odd);
}

/*
 * One block. Unrolled, so that all that is addressed is at constant distances from few pointers: with loops, gcc keeps
 * a pointer for each, and the words' one, on which everything waits, in memory (measured: 8 % slower). With phases,
 * which take twice the instructions, loops are as fast, and a third of the code.
 */
TARGET_AVX2 PTWM_INLINE void block_avx2(struct context_avx2 *c, struct ptwm_kernel_job *job, const uint8_t *classes,
                                        enum ptwm_kernel_kind kind, enum ptwm_kernel_check check, enum ptwm_kernel_columns columns)
{
    __m256i symbols[4];

    switch (kind) {
    case PTWM_KERNEL_REST8:
    case PTWM_KERNEL_REST8_LOW:
        PTWM_UNROLL(8)
        for (size_t pair = 0; pair < 8; pair++) {
            pair_avx2(c, job, classes, kind, check, columns, 8, pair, pair % 2, symbols);
            pair_rest78_avx2(c, kind, columns, pair, symbols);
        }
        break;
    case PTWM_KERNEL_REST7:
    case PTWM_KERNEL_REST7_LOW:
        c->spread[0] = c->spread[1] = _mm256_setzero_si256();
        if (columns == PTWM_KERNEL_PHASES) {
            for (size_t group = 0; group < 4; group++) {
                pair_avx2(c, job, classes, kind, check, columns, 7, 2 * group, false, symbols);
                pair_rest78_avx2(c, kind, columns, 2 * group, symbols);
                pair_avx2(c, job, classes, kind, check, columns, 7, 2 * group + 1, true, symbols);
                if (group < 3)
                    pair_rest78_avx2(c, kind, columns, 2 * group + 1, symbols);
            }
            last_pair_rest7_avx2(c, kind, columns, symbols);
            break;
        }
        PTWM_UNROLL(7)
        for (size_t pair = 0; pair < 7; pair++) {
            pair_avx2(c, job, classes, kind, check, columns, 7, pair, pair % 2, symbols);
            pair_rest78_avx2(c, kind, columns, pair, symbols);
        }
        pair_avx2(c, job, classes, kind, check, columns, 7, 7, true, symbols);
        last_pair_rest7_avx2(c, kind, columns, symbols);
        break;
    case PTWM_KERNEL_REST10:
        if (columns == PTWM_KERNEL_PHASES) {
            c->spread[0] = c->spread[1] = _mm256_setzero_si256();
            for (size_t group = 0; group < 4; group++) {
                if (group % 2 == 0) {
                    c->spread[0] = load_avx2(c->rest + 32 * group);
                    c->spread[1] = load_avx2(c->rest + 32 * group + 32);
                }
                pair_avx2(c, job, classes, kind, check, columns, 10, 2 * group, false, symbols);
                pair_rest10_avx2(c, columns, 2 * group, false, symbols);
                pair_avx2(c, job, classes, kind, check, columns, 10, 2 * group + 1, true, symbols);
                pair_rest10_avx2(c, columns, 2 * group + 1, group % 2 == 1, symbols);
            }
            break;
        }
        PTWM_UNROLL(8)
        for (size_t pair = 0; pair < 8; pair++) {
            if (pair % 4 == 0) {
                c->spread[0] = load_avx2(c->rest + 16 * pair);
                c->spread[1] = load_avx2(c->rest + 16 * pair + 32);
            }
            pair_avx2(c, job, classes, kind, check, columns, 10, pair, pair % 2, symbols);
            pair_rest10_avx2(c, columns, pair, pair % 4 == 3, symbols);
        }
        break;
    case PTWM_KERNEL_REST2:
        if (columns == PTWM_KERNEL_PHASES) {
            for (unsigned group = 0; group < 4; group++) {
                pair_avx2(c, job, classes, kind, check, columns, 2, 2 * group, false, symbols);
                bytes_rest2_avx2(c, 2 * group, symbols);
                pair_avx2(c, job, classes, kind, check, columns, 2, 2 * group + 1, true, symbols);
                bytes_rest2_avx2(c, 2 * group + 1, symbols);
            }
            break;
        }
        PTWM_UNROLL(8)
        for (unsigned v = 0; v < 8; v++) {
            pair_avx2(c, job, classes, kind, check, columns, 2, v, v % 2, symbols);
            bytes_rest2_avx2(c, v, symbols);
        }
        break;
    default:
        if (columns == PTWM_KERNEL_PHASES) {
            static const enum place_rest3 places[] = { REST3_OUTER, REST3_OUTER, REST3_OUTER,    REST3_INNER,
                                                       REST3_INNER, REST3_INNER, REST3_MIDDLE_6, REST3_MIDDLE_7 };
            for (size_t group = 0; group < 4; group++) {
                pair_avx2(c, job, classes, kind, check, columns, 3, 2 * group, false, symbols);
                bytes_rest3_avx2(c, kind, places[2 * group], 2 * group, symbols);
                pair_avx2(c, job, classes, kind, check, columns, 3, 2 * group + 1, true, symbols);
                bytes_rest3_avx2(c, kind, places[2 * group + 1], 2 * group + 1, symbols);
            }
            break;
        }
        PTWM_UNROLL(3)
        for (size_t v = 0; v < 3; v++) {
            pair_avx2(c, job, classes, kind, check, columns, 3, v, v % 2, symbols);
            bytes_rest3_avx2(c, kind, REST3_OUTER, v, symbols);
        }
        PTWM_UNROLL(6)
        for (size_t v = 3; v < 6; v++) {
            pair_avx2(c, job, classes, kind, check, columns, 3, v, v % 2, symbols);
            bytes_rest3_avx2(c, kind, REST3_INNER, v, symbols);
        }
        pair_avx2(c, job, classes, kind, check, columns, 3, 6, false, symbols);
        bytes_rest3_avx2(c, kind, REST3_MIDDLE_6, 6, symbols);
        pair_avx2(c, job, classes, kind, check, columns, 3, 7, true, symbols);
        bytes_rest3_avx2(c, kind, REST3_MIDDLE_7, 7, symbols);
        break;
    }
}

TARGET_AVX2 PTWM_INLINE size_t decode_avx2(struct ptwm_kernel_job *job, size_t n_blocks, enum ptwm_kernel_kind kind,
                                           enum ptwm_kernel_check check, enum ptwm_kernel_columns columns)
{
    const struct ptwm_kernel_shape shape = ptwm_kernel_shape(kind);
    const uint8_t *classes = job->group_class;
    size_t column = job->column, done = 0;
    struct context_avx2 c;

    c.words = job->words;
    c.rest = job->rest;
    c.low_plane = job->low_plane;
    c.out = job->out;
    c.is_streamed = job->is_streamed && (uintptr_t)job->out % 64 == 0; /* and all of out from here on */
    crc_begin(&c.crc, job);
    for (; done < n_blocks && c.words <= job->words_limit; done++) {
        c.shifts = job->shifts + column * shape.shift_nbytes;
        prefetch_page(c.out, shape.out_nbytes);
        block_avx2(&c, job, classes, kind, check, columns);
        crc_end_of_block(&c.crc, check, (unsigned)(shape.rest_nbytes / 64), check == PTWM_KERNEL_CRC_LOW);
        classes += PTWM_KERNEL_GROUPS;
        c.rest += shape.rest_nbytes;
        c.out += shape.out_nbytes;
        if (shape.has_low)
            c.low_plane += job->low_step;
        column = ptwm_kernel_next_column(job, column);
    }
    job->group_class = classes;
    job->words = c.words;
    job->rest = c.rest;
    job->low_plane = c.low_plane;
    job->out = c.out;
    job->column = column;
    crc_finish(&c.crc, job);
    return done;
}

#undef LOOK_UP_AVX2
