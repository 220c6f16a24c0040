/*
 * AVX-512 kernels of fused decoding: one body, decode_avx512, from which each pair of constant kind and check makes its own
 * instance (label_kernel_impl.h). Included once.
 *
 * A class's tables are six registers; a look-up is one vpermw. The states of 128 lanes are eight registers. What bounds it
 * is the number of instructions on the vector ports, so the CRC goes to the scalar one: crc32 of 8 bytes has a latency of 3
 * and a port of its own, and the planes' registers are chains that wait for nothing else. That port is full with the rest
 * plane and the words; a low plane, twice as long as these together, is folded by carry-less multiplication.
 */
#define TARGET_AVX512                                                                                             \
    __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx512vbmi,avx512vbmi2,bmi,bmi2,popcnt,sse4.2,pclmul," \
                          "vpclmulqdq,prfchw")))

/* The job's fields, in registers. */
struct context_avx512 {
    __m512i high[4], low[4];
    const uint8_t *words, *rest, *low_plane, *shifts;
    uint8_t *out;
    __m512i spread; /* REST7: the bits of the last two vectors, which the others carry; REST10: the bits of eight vectors */
    bool is_streamed;
    struct crc_context crc;
    __m512i low_crc; /* 64 bytes that leave the low plane's CRC register */
};

/* (a & mask) | (b & ~mask) */
TARGET_AVX512 PTWM_INLINE __m512i select_avx512(__m512i mask, __m512i a, __m512i b)
{
    return _mm512_ternarylogic_epi64(mask, a, b, 0xCA);
}

/* Stores finished elements. */
TARGET_AVX512 PTWM_INLINE void store_avx512(const struct context_avx512 *c, uint8_t *out, __m512i x)
{
    if (c->is_streamed)
        _mm512_stream_si512((void *)out, x);
    else
        _mm512_storeu_si512(out, x);
}

/*
 * One step of all lanes; their symbols, each vector's in turn.
 *
 * The four vectors' chains overlap, and what bounds the loop is as much their latency as the number of instructions. So
 * the look-ups by a bucket's own label and by its alias start at once, and the comparison with the threshold only
 * chooses among them, instead of a look-up of the label and then one of its frequency (47 cycles a step; this has 33).
 * Likewise a lane takes a word if the product's high half is zero and the rank's addition does not carry: both are
 * known sooner than the sum is. vpermw looks at an index's low five bits only: a state is an index as it is.
 */
TARGET_AVX512 PTWM_INLINE void step_avx512(struct context_avx512 *c, const struct ptwm_kernel_table16 *table,
                                           __m512i symbols[4])
{
    const __m512i div = _mm512_load_si512(table->div), adj = _mm512_load_si512(table->adj);
    const __m512i frequency0 = _mm512_load_si512(table->frequency[0]), symbol0 = _mm512_load_si512(table->symbol[0]);
    const __m512i frequency1 = _mm512_load_si512(table->frequency[1]), symbol1 = _mm512_load_si512(table->symbol[1]);

    PTWM_UNROLL(4)
    for (unsigned l = 0; l < 4; l++) {
        const __m512i x = c->low[l];
        const __mmask32 is_alias = _mm512_cmpge_epu16_mask(x, _mm512_permutexvar_epi16(x, div));
        const __m512i frequency = _mm512_mask_mov_epi16(_mm512_permutexvar_epi16(x, frequency0), is_alias,
                                                        _mm512_permutexvar_epi16(x, frequency1));
        const __m512i offset = _mm512_srli_epi16(x, 5);
        const __m512i rank = _mm512_mask_add_epi16(offset, is_alias, offset, _mm512_permutexvar_epi16(x, adj));
        const __m512i low = _mm512_add_epi16(_mm512_mullo_epi16(frequency, c->high[l]), rank);
        const __m512i high = _mm512_mulhi_epu16(frequency, c->high[l]);
        const __mmask32 carries = _mm512_cmplt_epu16_mask(low, rank);
        const __mmask32 takes = _kandn_mask32(carries, _mm512_testn_epi16_mask(high, high));

        symbols[l] = _mm512_mask_permutexvar_epi16(_mm512_permutexvar_epi16(x, symbol0), is_alias, x, symbol1);
        c->high[l] = _mm512_mask_sub_epi16(high, carries, high, _mm512_set1_epi16(-1));
        c->high[l] = _mm512_mask_mov_epi16(c->high[l], takes, low);
        c->low[l] = _mm512_mask_expand_epi16(low, takes, _mm512_loadu_si512(c->words));
        c->words += 2 * (unsigned)_mm_popcnt_u32(takes);
    }
}

/*
 * The same with phases: table[0] and table[1] are those of a class, and a lane's phase is bit 5 of phase[l], whose
 * other bits are of no account. Indices have that bit too, and look-ups are in two registers. Here the four vectors go
 * side by side: there are more instructions, and processors do not look far enough ahead to find the next vector's (4 %
 * slower).
 */
#define LOOK_UP_AVX512(field, index)                                                                                   \
    _mm512_permutex2var_epi16(_mm512_load_si512(table[0].field), index, _mm512_load_si512(table[1].field))
TARGET_AVX512 PTWM_INLINE void phased_step_avx512(struct context_avx512 *c, const struct ptwm_kernel_table16 *table,
                                                  const __m512i phase[4], __m512i symbols[4])
{
    __m512i index[4], frequency[4], rank[4], low[4], label[4];
    __mmask32 is_alias[4], takes[4];

    PTWM_UNROLL(4)
    for (unsigned l = 0; l < 4; l++) {
        /* 31 ? low : phase, in the register of the latter, which is not needed again */
        index[l] = _mm512_ternarylogic_epi64(phase[l], c->low[l], _mm512_set1_epi16(31), 0xD8);
        is_alias[l] = _mm512_cmpge_epu16_mask(c->low[l], LOOK_UP_AVX512(div, index[l]));
    }
    PTWM_UNROLL(4)
    for (unsigned l = 0; l < 4; l++) {
        const __m512i offset = _mm512_srli_epi16(c->low[l], 5);
        frequency[l] = _mm512_mask_mov_epi16(LOOK_UP_AVX512(frequency[0], index[l]), is_alias[l],
                                             LOOK_UP_AVX512(frequency[1], index[l]));
        rank[l] = _mm512_mask_add_epi16(offset, is_alias[l], offset, LOOK_UP_AVX512(adj, index[l]));
        label[l] = _mm512_mask2_permutex2var_epi16(_mm512_load_si512(table[0].ali), index[l], is_alias[l],
                                                   _mm512_load_si512(table[1].ali));
    }
    PTWM_UNROLL(4)
    for (unsigned l = 0; l < 4; l++) {
        const __m512i high = _mm512_mulhi_epu16(frequency[l], c->high[l]);
        __mmask32 carries;
        low[l] = _mm512_add_epi16(_mm512_mullo_epi16(frequency[l], c->high[l]), rank[l]);
        carries = _mm512_cmplt_epu16_mask(low[l], rank[l]);
        takes[l] = _kandn_mask32(carries, _mm512_testn_epi16_mask(high, high));
        c->high[l] = _mm512_mask_sub_epi16(high, carries, high, _mm512_set1_epi16(-1));
    }
    PTWM_UNROLL(4)
    for (unsigned l = 0; l < 4; l++) {
        c->low[l] = _mm512_mask_expand_epi16(low[l], takes[l], _mm512_loadu_si512(c->words));
        c->words += 2 * (unsigned)_mm_popcnt_u32(takes[l]);
        c->high[l] = _mm512_mask_mov_epi16(c->high[l], takes[l], low[l]);
    }
    PTWM_UNROLL(4)
    for (unsigned l = 0; l < 4; l++) /* of symbols there is one table */
        symbols[l] = _mm512_permutexvar_epi16(label[l], _mm512_load_si512(table->symbol[0]));
}
#undef LOOK_UP_AVX512

/* Either, with the shifts of group g of the block added if there are any. */
TARGET_AVX512 PTWM_INLINE void shifted_step_avx512(struct context_avx512 *c, const struct ptwm_kernel_table16 *table,
                                                   enum ptwm_kernel_columns columns, size_t g, __m512i symbols[4])
{
    __m512i shifts[4];

    if (columns == PTWM_KERNEL_NO_SHIFTS) {
        step_avx512(c, table, symbols);
        return;
    }
    PTWM_UNROLL(4)
    for (unsigned l = 0; l < 4; l++)
        shifts[l] = _mm512_loadu_si512(c->shifts + 256 * g + 64 * l);
    if (columns == PTWM_KERNEL_PHASES)
        phased_step_avx512(c, table, shifts, symbols);
    else
        step_avx512(c, table, symbols);
    PTWM_UNROLL(4)
    for (unsigned l = 0; l < 4; l++)
        symbols[l] = _mm512_add_epi16(symbols[l], shifts[l]);
}

/* The same for bytes, without the shifts: a phase is bit 0 of an element's, and even elements come before odd ones. */
TARGET_AVX512 PTWM_INLINE void bytes_step_avx512(struct context_avx512 *c, const struct ptwm_kernel_table16 *table,
                                                 enum ptwm_kernel_columns columns, size_t g, __m512i symbols[4])
{
    __m512i phase[4];

    PTWM_UNROLL(2)
    for (unsigned l = 0; l < 2; l++) {
        const __m512i shifts = _mm512_loadu_si512(c->shifts + 128 * g + 64 * l);
        phase[2 * l] = _mm512_slli_epi16(shifts, 5);
        phase[2 * l + 1] = _mm512_srli_epi16(shifts, 3);
    }
    if (columns == PTWM_KERNEL_PHASES)
        phased_step_avx512(c, table, phase, symbols);
    else
        step_avx512(c, table, symbols);
}

/* Stores vector v of the block, with its low plane if it has one. */
TARGET_AVX512 PTWM_INLINE void put_avx512(struct context_avx512 *c, enum ptwm_kernel_kind kind,
                                          enum ptwm_kernel_check check, size_t v, __m512i units)
{
    if (kind == PTWM_KERNEL_REST7_LOW || kind == PTWM_KERNEL_REST8_LOW) {
        const __m512i low = _mm512_loadu_si512(c->low_plane + 64 * v);
        const __m512i first = _mm512_load_si512(interleave_avx512[0]);
        const __m512i second = _mm512_load_si512(interleave_avx512[1]);
        if (check == PTWM_KERNEL_CRC_LOW)
            c->low_crc = crc32c_fold_512(c->low_crc, crc32c_by_64(), low);
        store_avx512(c, c->out + 128 * v, _mm512_permutex2var_epi16(low, first, units));
        store_avx512(c, c->out + 128 * v + 64, _mm512_permutex2var_epi16(low, second, units));
    } else {
        store_avx512(c, c->out + 64 * v, units);
    }
}

/* Stores vectors v and v + 1 of a block with 7 or 8 bits of rest, which share a vector of it. */
TARGET_AVX512 PTWM_INLINE void pair_rest78_avx512(struct context_avx512 *c, enum ptwm_kernel_kind kind,
                                                  enum ptwm_kernel_check check, size_t v, const __m512i symbols[2])
{
    const bool is_7 = kind == PTWM_KERNEL_REST7 || kind == PTWM_KERNEL_REST7_LOW;
    const __m512i mask = _mm512_set1_epi16((short)(is_7 ? 0x803F : 0x807F));
    const __m512i rest = _mm512_loadu_si512(c->rest + 32 * v);

    put_avx512(c, kind, check, v, select_avx512(mask, rest, symbols[0]));
    put_avx512(c, kind, check, v + 1, select_avx512(mask, _mm512_shldi_epi16(rest, rest, 8), symbols[1]));
    if (is_7)
        c->spread = select_avx512(_mm512_set1_epi16(0x4040), rest, _mm512_srli_epi16(c->spread, 1));
}

/* Stores the last two vectors of a block with 7 bits of rest. */
TARGET_AVX512 PTWM_INLINE void last_pair_rest7_avx512(struct context_avx512 *c, enum ptwm_kernel_kind kind,
                                                      enum ptwm_kernel_check check, const __m512i symbols[2])
{
    const __m512i mask = _mm512_set1_epi16((short)0x803F), mantissa = _mm512_set1_epi16(0x3F);
    const __m512i first = select_avx512(mantissa, c->spread, _mm512_slli_epi16(c->spread, 9));
    const __m512i second = select_avx512(mantissa, _mm512_srli_epi16(c->spread, 8), _mm512_slli_epi16(c->spread, 1));

    put_avx512(c, kind, check, 14, select_avx512(mask, first, symbols[0]));
    put_avx512(c, kind, check, 15, select_avx512(mask, second, symbols[1]));
}

/*
 * Stores vectors v and v + 1 of a block with 10 bits of rest: pair number pair of the four whose bits 15 and 8 are in spread,
 * which is shifted so that those of the next vector are in their place.
 */
TARGET_AVX512 PTWM_INLINE void pair_rest10_avx512(struct context_avx512 *c, unsigned pair, size_t v,
                                                  const __m512i symbols[2])
{
    const __m512i byte = _mm512_set1_epi16(0xFF), mask = _mm512_set1_epi16((short)0x8100);
    const __m512i rest = _mm512_loadu_si512(c->rest + 128 + 32 * v);
    const __m512i first = select_avx512(byte, rest, symbols[0]);
    const __m512i second = select_avx512(byte, _mm512_srli_epi16(rest, 8), symbols[1]);

    store_avx512(c, c->out + 64 * v, select_avx512(mask, c->spread, first));
    c->spread = _mm512_add_epi16(c->spread, c->spread);
    if (pair == 3) /* the eighth vector's bits have come to 7 and 8 */
        c->spread = select_avx512(_mm512_set1_epi16((short)0x8000), _mm512_slli_epi16(c->spread, 8), c->spread);
    store_avx512(c, c->out + 64 * v + 64, select_avx512(mask, c->spread, second));
    c->spread = _mm512_add_epi16(c->spread, c->spread);
}

/* 64 elements of bytes, vector v of 0 .. 7 of a block, but for their rests. symbols: of its even and odd elements. */
TARGET_AVX512 PTWM_INLINE __m512i bytes_avx512(const struct context_avx512 *c, unsigned v, const __m512i symbols[2])
{
    return _mm512_add_epi8(_mm512_or_si512(symbols[0], _mm512_slli_epi16(symbols[1], 8)),
                           _mm512_loadu_si512(c->shifts + 64 * v));
}

/* Stores vector v of bytes of a block with 2 bits of rest. */
TARGET_AVX512 PTWM_INLINE void bytes_rest2_avx512(struct context_avx512 *c, unsigned v, const __m512i symbols[2])
{
    const __m512i rest = _mm512_loadu_si512(c->rest + 64 * (v / 4));
    __m512i x = bytes_avx512(c, v, symbols);

    x = select_avx512(_mm512_set1_epi8((char)0x80), _mm512_slli_epi16(rest, v % 4), x);
    x = select_avx512(_mm512_set1_epi8(1), _mm512_srli_epi16(rest, v % 4), x);
    store_avx512(c, c->out + 64 * v, x);
}

/* Stores vector v of bytes of a block with 3 bits of rest. */
TARGET_AVX512 PTWM_INLINE void bytes_rest3_avx512(struct context_avx512 *c, unsigned v, const __m512i symbols[2])
{
    const __m512i rest = _mm512_loadu_si512(c->rest + 64 * (v % 3)), last = _mm512_loadu_si512(c->rest + 128);
    const __m512i sign = _mm512_set1_epi8((char)0x80);
    __m512i x = bytes_avx512(c, v, symbols);

    if (v < 3) {
        x = select_avx512(_mm512_set1_epi8((char)0x83), rest, x);
    } else if (v < 6) {
        x = select_avx512(sign, _mm512_add_epi8(rest, rest), x);
        x = select_avx512(_mm512_set1_epi8(3), _mm512_srli_epi16(rest, 2), x);
    } else {
        x = select_avx512(sign, _mm512_slli_epi16(rest, 2), x);
        x = select_avx512(_mm512_set1_epi8(1), _mm512_srli_epi16(rest, 4), x);
        x = select_avx512(_mm512_set1_epi8(2), v == 6 ? _mm512_srli_epi16(last, 4) : _mm512_srli_epi16(last, 3), x);
    }
    store_avx512(c, c->out + 64 * v, x);
}

/* Stores vector v of bytes of a block with 3 bits of rest that are the lowest. */
TARGET_AVX512 PTWM_INLINE void bytes_int8_avx512(struct context_avx512 *c, unsigned v, const __m512i symbols[2])
{
    const __m512i rest = _mm512_loadu_si512(c->rest + 64 * (v % 3)), last = _mm512_loadu_si512(c->rest + 128);
    const __m512i low = _mm512_set1_epi8(3), high = _mm512_set1_epi8(4);
    __m512i x = bytes_avx512(c, v, symbols);

    if (v < 3) {
        x = select_avx512(high, _mm512_srli_epi16(rest, 5), select_avx512(low, rest, x));
    } else if (v < 6) {
        x = select_avx512(high, _mm512_srli_epi16(rest, 4), select_avx512(low, _mm512_srli_epi16(rest, 2), x));
    } else {
        x = select_avx512(high, _mm512_srli_epi16(rest, 3), x);
        x = select_avx512(_mm512_set1_epi8(1), _mm512_srli_epi16(rest, 4), x);
        x = select_avx512(_mm512_set1_epi8(2), v == 6 ? _mm512_srli_epi16(last, 4) : _mm512_srli_epi16(last, 3), x);
    }
    store_avx512(c, c->out + 64 * v, x);
}

/* The prefetches and the crc32 instructions of group g of a block. */
TARGET_AVX512 PTWM_INLINE void accompany_avx512(struct context_avx512 *c, enum ptwm_kernel_kind kind,
                                                enum ptwm_kernel_check check, size_t g)
{
    const struct ptwm_kernel_shape shape = ptwm_kernel_shape(kind);
    const unsigned rest_bits = (unsigned)(shape.rest_nbytes / 64);
    const uint8_t *words = check == PTWM_KERNEL_NO_CRC ? c->words : c->crc.next;

    if (!c->is_streamed)
        prefetch_stores(c->out + shape.out_nbytes / PTWM_KERNEL_GROUPS * g, shape.out_nbytes / PTWM_KERNEL_GROUPS);
    prefetch_pair(words, c->rest, c->low_plane, rest_bits, shape.has_low, 2 * g);
    prefetch_pair(words, c->rest, c->low_plane, rest_bits, shape.has_low, 2 * g + 1);
    crc_of_pair(&c->crc, check, rest_bits, c->rest, NULL, 2 * g, false);
    crc_of_pair(&c->crc, check, rest_bits, c->rest, NULL, 2 * g + 1, true);
}

/* Group g of a block with 7 or 8 bits of rest; is_last if it is the last with 7. */
TARGET_AVX512 PTWM_INLINE void group_rest78_avx512(struct context_avx512 *c, const struct ptwm_kernel_table16 *table,
                                                   enum ptwm_kernel_kind kind, enum ptwm_kernel_check check,
                                                   enum ptwm_kernel_columns columns, size_t g, bool is_last)
{
    __m512i symbols[4];

    accompany_avx512(c, kind, check, g);
    shifted_step_avx512(c, table, columns, g, symbols);
    pair_rest78_avx512(c, kind, check, 4 * g, symbols);
    if (is_last)
        last_pair_rest7_avx512(c, kind, check, symbols + 2);
    else
        pair_rest78_avx512(c, kind, check, 4 * g + 2, symbols + 2);
}

/* Group g of a block with 10 bits of rest; g % 2 = odd. */
TARGET_AVX512 PTWM_INLINE void group_rest10_avx512(struct context_avx512 *c, const struct ptwm_kernel_table16 *table,
                                                   enum ptwm_kernel_check check, enum ptwm_kernel_columns columns, size_t g,
                                                   unsigned odd)
{
    __m512i symbols[4];

    accompany_avx512(c, PTWM_KERNEL_REST10, check, g);
    if (!odd)
        c->spread = _mm512_loadu_si512(c->rest + 32 * g);
    shifted_step_avx512(c, table, columns, g, symbols);
    pair_rest10_avx512(c, 2 * odd, 4 * g, symbols);
    pair_rest10_avx512(c, 2 * odd + 1, 4 * g + 2, symbols + 2);
}

/* Group g of a block of bytes. */
TARGET_AVX512 PTWM_INLINE void group_bytes_avx512(struct context_avx512 *c, const struct ptwm_kernel_table16 *table,
                                                  enum ptwm_kernel_kind kind, enum ptwm_kernel_check check,
                                                  enum ptwm_kernel_columns columns, unsigned g)
{
    __m512i symbols[4];

    accompany_avx512(c, kind, check, g);
    bytes_step_avx512(c, table, columns, g, symbols);
    PTWM_UNROLL(2)
    for (unsigned i = 0; i < 2; i++)
        if (kind == PTWM_KERNEL_REST2)
            bytes_rest2_avx512(c, 2 * g + i, symbols + 2 * i);
        else if (kind == PTWM_KERNEL_INT8)
            bytes_int8_avx512(c, 2 * g + i, symbols + 2 * i);
        else
            bytes_rest3_avx512(c, 2 * g + i, symbols + 2 * i);
}

/* One block. classes: of its groups. Loops where groups are alike, so that the instances stay small. */
TARGET_AVX512 PTWM_INLINE void block_avx512(struct context_avx512 *c, const struct ptwm_kernel_table16 *tables,
                                            const uint8_t *classes, enum ptwm_kernel_kind kind,
                                            enum ptwm_kernel_check check, enum ptwm_kernel_columns columns)
{
    const size_t n_phases = columns == PTWM_KERNEL_PHASES ? 2 : 1;

    switch (kind) {
    case PTWM_KERNEL_REST8:
    case PTWM_KERNEL_REST8_LOW:
        for (size_t g = 0; g < 4; g++)
            group_rest78_avx512(c, &tables[n_phases * classes[g]], kind, check, columns, g, false);
        break;
    case PTWM_KERNEL_REST7:
    case PTWM_KERNEL_REST7_LOW:
        c->spread = _mm512_setzero_si512();
        for (size_t g = 0; g < 3; g++)
            group_rest78_avx512(c, &tables[n_phases * classes[g]], kind, check, columns, g, false);
        group_rest78_avx512(c, &tables[n_phases * classes[3]], kind, check, columns, 3, true);
        break;
    case PTWM_KERNEL_REST10:
        for (size_t g = 0; g < 4; g += 2) {
            group_rest10_avx512(c, &tables[n_phases * classes[g]], check, columns, g, 0);
            group_rest10_avx512(c, &tables[n_phases * classes[g + 1]], check, columns, g + 1, 1);
        }
        break;
    default:
        PTWM_UNROLL(4)
        for (unsigned g = 0; g < 4; g++)
            group_bytes_avx512(c, &tables[n_phases * classes[g]], kind, check, columns, g);
        break;
    }
}

TARGET_AVX512 PTWM_INLINE size_t decode_avx512(struct ptwm_kernel_job *job, size_t n_blocks, enum ptwm_kernel_kind kind,
                                               enum ptwm_kernel_check check, enum ptwm_kernel_columns columns)
{
    const struct ptwm_kernel_shape shape = ptwm_kernel_shape(kind);
    const struct ptwm_kernel_table16 *tables = job->tables.of16;
    const uint8_t *classes = job->group_class;
    size_t column = job->column, done = 0;
    struct context_avx512 c;

    PTWM_UNROLL(4)
    for (unsigned l = 0; l < 4; l++) {
        c.high[l] = _mm512_load_si512(job->high + 32 * l);
        c.low[l] = _mm512_load_si512(job->low + 32 * l);
    }
    c.words = job->words;
    c.rest = job->rest;
    c.low_plane = job->low_plane;
    c.out = job->out;
    c.is_streamed = job->is_streamed && (uintptr_t)job->out % 64 == 0; /* and all of out from here on */
    crc_begin(&c.crc, job);
    if (check == PTWM_KERNEL_CRC_LOW)
        c.low_crc = crc32c_expand_512(job->low_crc);
    for (; done < n_blocks && c.words <= job->words_limit; done++) {
        c.shifts = job->shifts + column * shape.shift_nbytes;
        prefetch_page(c.out, shape.out_nbytes);
        block_avx512(&c, tables, classes, kind, check, columns);
        crc_end_of_block(&c.crc, check, (unsigned)(shape.rest_nbytes / 64), false);
        classes += PTWM_KERNEL_GROUPS;
        c.rest += shape.rest_nbytes;
        c.out += shape.out_nbytes;
        if (shape.has_low)
            c.low_plane += job->low_step;
        column = ptwm_kernel_next_column(job, column);
    }
    PTWM_UNROLL(4)
    for (unsigned l = 0; l < 4; l++) {
        _mm512_store_si512(job->high + 32 * l, c.high[l]);
        _mm512_store_si512(job->low + 32 * l, c.low[l]);
    }
    job->group_class = classes;
    job->words = c.words;
    job->rest = c.rest;
    job->low_plane = c.low_plane;
    job->out = c.out;
    job->column = column;
    if (check == PTWM_KERNEL_CRC_LOW)
        c.crc.low[0] = crc32c_reduce_512(c.low_crc);
    crc_finish(&c.crc, job);
    return done;
}
