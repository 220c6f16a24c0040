/*
 * AVX-512 kernels of fused decoding: one body, decode_avx512, from which each pair of constant kind and check makes its own
 * instance (label_kernel_impl.h). Included once.
 *
 * A class's tables are five registers; a look-up is one vpermw. The states of 128 lanes are eight registers. What bounds it
 * is the number of instructions on the vector ports, so the CRC goes to the scalar one: crc32 of 8 bytes has a latency of 3
 * and a port of its own, and the planes' registers are chains that wait for nothing else.
 */
#define TARGET_AVX512                                                                                             \
    __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx512vbmi,avx512vbmi2,bmi,bmi2,popcnt,sse4.2,pclmul")))

struct tables_avx512 {
    __m512i div, adj, ali, frequency, symbol;
};

/* The job's fields, in registers. */
struct context_avx512 {
    __m512i high[4], low[4];
    struct tables_avx512 t;
    const uint8_t *words, *rest, *low_plane, *shifts;
    uint8_t *out;
    __m512i spread; /* REST7: the bits of the last two vectors, which the others carry; REST10: the bits of eight vectors */
    struct crc_context crc;
};

TARGET_AVX512 PTWM_INLINE void load_tables_avx512(struct tables_avx512 *t, const struct ptwm_kernel_table16 *table)
{
    t->div = _mm512_load_si512(table->div);
    t->adj = _mm512_load_si512(table->adj);
    t->ali = _mm512_load_si512(table->ali);
    t->frequency = _mm512_load_si512(table->frequency);
    t->symbol = _mm512_load_si512(table->symbol);
}

/* (a & mask) | (b & ~mask) */
TARGET_AVX512 PTWM_INLINE __m512i select_avx512(__m512i mask, __m512i a, __m512i b)
{
    return _mm512_ternarylogic_epi64(mask, a, b, 0xCA);
}

/* One step of 32 lanes; their symbols. vpermw looks at an index's low five bits only: a state is an index as it is. */
TARGET_AVX512 PTWM_INLINE __m512i step_avx512(struct context_avx512 *c, unsigned lanes)
{
    const __m512i high = c->high[lanes], low = c->low[lanes];
    const __mmask32 is_alias = _mm512_cmpge_epu16_mask(low, _mm512_permutexvar_epi16(low, c->t.div));
    const __m512i label = _mm512_mask_permutexvar_epi16(low, is_alias, low, c->t.ali);
    const __m512i frequency = _mm512_permutexvar_epi16(label, c->t.frequency);
    const __m512i offset = _mm512_srli_epi16(low, 5);
    const __m512i rank = _mm512_mask_add_epi16(offset, is_alias, offset, _mm512_permutexvar_epi16(low, c->t.adj));
    const __m512i new_low = _mm512_add_epi16(_mm512_mullo_epi16(frequency, high), rank);
    const __mmask32 carry = _mm512_cmplt_epu16_mask(new_low, rank);
    __m512i new_high = _mm512_mulhi_epu16(frequency, high);
    __mmask32 takes;

    new_high = _mm512_mask_sub_epi16(new_high, carry, new_high, _mm512_set1_epi16(-1));
    takes = _mm512_testn_epi16_mask(new_high, new_high);
    c->high[lanes] = _mm512_mask_mov_epi16(new_high, takes, new_low);
    c->low[lanes] = _mm512_mask_expand_epi16(new_low, takes, _mm512_loadu_si512(c->words));
    c->words += 2 * (unsigned)_mm_popcnt_u32(takes);
    return _mm512_permutexvar_epi16(label, c->t.symbol);
}

/* The same, with the shifts of vector v of the block added. */
TARGET_AVX512 PTWM_INLINE __m512i shifted_step_avx512(struct context_avx512 *c, unsigned lanes, size_t v)
{
    return _mm512_add_epi16(step_avx512(c, lanes), _mm512_loadu_si512(c->shifts + 64 * v));
}

/* Stores vector v of the block, with its low plane if it has one. */
TARGET_AVX512 PTWM_INLINE void put_avx512(struct context_avx512 *c, enum ptwm_kernel_kind kind, size_t v, __m512i units)
{
    if (kind == PTWM_KERNEL_REST7_LOW || kind == PTWM_KERNEL_REST8_LOW) {
        const __m512i low = _mm512_loadu_si512(c->low_plane + 64 * v);
        const __m512i first = _mm512_load_si512(interleave_avx512[0]);
        const __m512i second = _mm512_load_si512(interleave_avx512[1]);
        _mm512_storeu_si512(c->out + 128 * v, _mm512_permutex2var_epi16(low, first, units));
        _mm512_storeu_si512(c->out + 128 * v + 64, _mm512_permutex2var_epi16(low, second, units));
    } else {
        _mm512_storeu_si512(c->out + 64 * v, units);
    }
}

/* Vectors v and v + 1 of a block with 7 or 8 bits of rest, which share a vector of it; v % 4 = lanes. */
TARGET_AVX512 PTWM_INLINE void pair_rest78_avx512(struct context_avx512 *c, enum ptwm_kernel_kind kind,
                                                  enum ptwm_kernel_check check, unsigned lanes, size_t v)
{
    const bool is_7 = kind == PTWM_KERNEL_REST7 || kind == PTWM_KERNEL_REST7_LOW;
    const __m512i mask = _mm512_set1_epi16((short)(is_7 ? 0x803F : 0x807F));
    const __m512i rest = _mm512_loadu_si512(c->rest + 32 * v);
    __m512i first, second;

    crc_of_pair(&c->crc, check, is_7 ? 7 : 8, c->rest, c->low_plane, v / 2);
    first = shifted_step_avx512(c, lanes, v);
    second = shifted_step_avx512(c, lanes + 1, v + 1);
    put_avx512(c, kind, v, select_avx512(mask, rest, first));
    put_avx512(c, kind, v + 1, select_avx512(mask, _mm512_shldi_epi16(rest, rest, 8), second));
    if (is_7)
        c->spread = select_avx512(_mm512_set1_epi16(0x4040), rest, _mm512_srli_epi16(c->spread, 1));
}

/* The last two vectors with 7 bits of rest. */
TARGET_AVX512 PTWM_INLINE void last_pair_rest7_avx512(struct context_avx512 *c, enum ptwm_kernel_kind kind,
                                                      enum ptwm_kernel_check check)
{
    const __m512i mask = _mm512_set1_epi16((short)0x803F), mantissa = _mm512_set1_epi16(0x3F);
    __m512i first, second;

    crc_of_pair(&c->crc, check, 7, c->rest, c->low_plane, 7);
    first = shifted_step_avx512(c, 2, 14);
    second = shifted_step_avx512(c, 3, 15);
    put_avx512(c, kind, 14,
               select_avx512(mask, select_avx512(mantissa, c->spread, _mm512_slli_epi16(c->spread, 9)), first));
    put_avx512(c, kind, 15,
               select_avx512(mask, select_avx512(mantissa, _mm512_srli_epi16(c->spread, 8), _mm512_slli_epi16(c->spread, 1)),
                             second));
}

/* Vectors v and v + 1 of a block with 10 bits of rest. spread's bits 15 and 8 are those of the next vector. */
TARGET_AVX512 PTWM_INLINE void pair_rest10_avx512(struct context_avx512 *c, enum ptwm_kernel_check check, unsigned pair,
                                                  size_t v)
{
    const __m512i byte = _mm512_set1_epi16(0xFF), mask = _mm512_set1_epi16((short)0x8100);
    const __m512i rest = _mm512_loadu_si512(c->rest + 128 + 32 * v);
    __m512i first, second;

    crc_of_pair(&c->crc, check, 10, c->rest, c->low_plane, v / 2);
    first = select_avx512(byte, rest, shifted_step_avx512(c, 2 * pair % 4, v));
    second = select_avx512(byte, _mm512_srli_epi16(rest, 8), shifted_step_avx512(c, 2 * pair % 4 + 1, v + 1));
    _mm512_storeu_si512(c->out + 64 * v, select_avx512(mask, c->spread, first));
    c->spread = _mm512_add_epi16(c->spread, c->spread);
    if (pair == 3) /* the eighth vector's bits have come to 7 and 8 */
        c->spread = select_avx512(_mm512_set1_epi16((short)0x8000), _mm512_slli_epi16(c->spread, 8), c->spread);
    _mm512_storeu_si512(c->out + 64 * v + 64, select_avx512(mask, c->spread, second));
    c->spread = _mm512_add_epi16(c->spread, c->spread);
}

/* 64 elements of bytes: vector v of 0 .. 7 of a block with 3 bits of rest. */
TARGET_AVX512 PTWM_INLINE void bytes_rest3_avx512(struct context_avx512 *c, enum ptwm_kernel_check check, unsigned v)
{
    const __m512i rest = _mm512_loadu_si512(c->rest + 64 * (v % 3));
    const __m512i sign = _mm512_set1_epi8((char)0x80);
    __m512i even, odd, x;

    crc_of_pair(&c->crc, check, 3, c->rest, c->low_plane, v);
    even = step_avx512(c, 2 * v % 4);
    odd = step_avx512(c, 2 * v % 4 + 1);
    x = _mm512_or_si512(even, _mm512_slli_epi16(odd, 8));
    x = _mm512_add_epi8(x, _mm512_loadu_si512(c->shifts + 64 * v));
    if (v < 3) {
        x = select_avx512(_mm512_set1_epi8((char)0x83), rest, x);
    } else if (v < 6) {
        x = select_avx512(sign, _mm512_add_epi8(rest, rest), x);
        x = select_avx512(_mm512_set1_epi8(3), _mm512_srli_epi16(rest, 2), x);
    } else {
        const __m512i bit1 = _mm512_loadu_si512(c->rest + 128);
        x = select_avx512(sign, _mm512_slli_epi16(rest, 2), x);
        x = select_avx512(_mm512_set1_epi8(1), _mm512_srli_epi16(rest, 4), x);
        x = select_avx512(_mm512_set1_epi8(2), _mm512_srli_epi16(bit1, v == 6 ? 4 : 3), x);
    }
    _mm512_storeu_si512(c->out + 64 * v, x);
}

/* One block. classes: of its groups. */
TARGET_AVX512 PTWM_INLINE void block_avx512(struct context_avx512 *c, const struct ptwm_kernel_table16 *tables,
                                            const uint8_t *classes, enum ptwm_kernel_kind kind,
                                            enum ptwm_kernel_check check)
{
    switch (kind) {
    case PTWM_KERNEL_REST8:
    case PTWM_KERNEL_REST8_LOW:
        for (size_t g = 0; g < 4; g++) {
            load_tables_avx512(&c->t, &tables[classes[g]]);
            pair_rest78_avx512(c, kind, check, 0, 4 * g);
            pair_rest78_avx512(c, kind, check, 2, 4 * g + 2);
        }
        break;
    case PTWM_KERNEL_REST7:
    case PTWM_KERNEL_REST7_LOW:
        c->spread = _mm512_setzero_si512();
        for (size_t g = 0; g < 3; g++) {
            load_tables_avx512(&c->t, &tables[classes[g]]);
            pair_rest78_avx512(c, kind, check, 0, 4 * g);
            pair_rest78_avx512(c, kind, check, 2, 4 * g + 2);
        }
        load_tables_avx512(&c->t, &tables[classes[3]]);
        pair_rest78_avx512(c, kind, check, 0, 12);
        last_pair_rest7_avx512(c, kind, check);
        break;
    case PTWM_KERNEL_REST10:
        for (size_t half = 0; half < 2; half++) {
            c->spread = _mm512_loadu_si512(c->rest + 64 * half);
            load_tables_avx512(&c->t, &tables[classes[2 * half]]);
            pair_rest10_avx512(c, check, 0, 8 * half);
            pair_rest10_avx512(c, check, 1, 8 * half + 2);
            load_tables_avx512(&c->t, &tables[classes[2 * half + 1]]);
            pair_rest10_avx512(c, check, 2, 8 * half + 4);
            pair_rest10_avx512(c, check, 3, 8 * half + 6);
        }
        break;
    default:
        load_tables_avx512(&c->t, &tables[classes[0]]);
        bytes_rest3_avx512(c, check, 0);
        bytes_rest3_avx512(c, check, 1);
        load_tables_avx512(&c->t, &tables[classes[1]]);
        bytes_rest3_avx512(c, check, 2);
        bytes_rest3_avx512(c, check, 3);
        load_tables_avx512(&c->t, &tables[classes[2]]);
        bytes_rest3_avx512(c, check, 4);
        bytes_rest3_avx512(c, check, 5);
        load_tables_avx512(&c->t, &tables[classes[3]]);
        bytes_rest3_avx512(c, check, 6);
        bytes_rest3_avx512(c, check, 7);
        break;
    }
}

TARGET_AVX512 PTWM_INLINE size_t decode_avx512(struct ptwm_kernel_job *job, size_t n_blocks, enum ptwm_kernel_kind kind,
                                               enum ptwm_kernel_check check)
{
    const struct ptwm_kernel_shape shape = ptwm_kernel_shape(kind);
    const struct ptwm_kernel_table16 *tables = job->tables.of16;
    const uint8_t *classes = job->group_class;
    size_t column = job->column, done = 0;
    struct context_avx512 c;

    for (unsigned l = 0; l < 4; l++) {
        c.high[l] = _mm512_load_si512(job->high + 32 * l);
        c.low[l] = _mm512_load_si512(job->low + 32 * l);
    }
    c.words = job->words;
    c.rest = job->rest;
    c.low_plane = job->low_plane;
    c.out = job->out;
    crc_begin(&c.crc, job);
    for (; done < n_blocks && c.words <= job->words_limit; done++) {
        c.shifts = job->shifts + column * shape.shift_nbytes;
        block_avx512(&c, tables, classes, kind, check);
        crc_end_of_block(&c.crc, check);
        classes += PTWM_KERNEL_GROUPS;
        c.rest += shape.rest_nbytes;
        c.out += shape.out_nbytes;
        if (shape.has_low)
            c.low_plane += job->low_step;
        column = ptwm_kernel_next_column(job, column);
    }
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
    crc_finish(&c.crc, job);
    return done;
}
