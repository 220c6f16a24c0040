/*
 * NEON kernels of fused decoding: one body, decode_neon, from which each kind makes its own instance. A look-up among 32 bytes
 * is one tbl of two registers. CRCs follow behind (label_fused.c): the crc32c instructions take them at several times the
 * speed of this. Included once.
 */
#include <arm_neon.h>

#include "../label_kernel_expand.h"

static inline uint8x16_t bytes_of_neon(uint16x8_t x)
{
    return vreinterpretq_u8_u16(x);
}

static inline uint16x8_t words_of_neon(uint8x16_t x)
{
    return vreinterpretq_u16_u8(x);
}

static inline uint8x16x2_t load_table_neon(const uint8_t table[PTWM_MAX_LABELS])
{
    const uint8x16x2_t t = { { vld1q_u8(table), vld1q_u8(table + 16) } };
    return t;
}

/* A class's tables in registers. */
struct tables_neon {
    uint8x16x2_t div_high, other, adj_low, adj_high, frequency_low, frequency_high, symbol_low, symbol_high;
};

static inline void load_tables_neon(struct tables_neon *t, const struct ptwm_kernel_table8 *table)
{
    t->div_high = load_table_neon(table->div_high);
    t->other = load_table_neon(table->other);
    t->adj_low = load_table_neon(table->adj_low);
    t->adj_high = load_table_neon(table->adj_high);
    t->frequency_low = load_table_neon(table->frequency_low);
    t->frequency_high = load_table_neon(table->frequency_high);
    t->symbol_low = load_table_neon(table->symbol_low);
    t->symbol_high = load_table_neon(table->symbol_high);
}

/* Bit 5: the phases of 16 lanes from number l of a group on; shifts: of the group's elements. */
PTWM_INLINE uint8x16_t load_phases_neon(const uint8_t *shifts, size_t l, bool is_bytes)
{
    if (is_bytes) { /* bit 0 of the element's shift; of 64, even elements come before odd ones */
        const uint8x16x2_t pairs = vld2q_u8(shifts + l / 64 * 64 + l % 32 * 2);
        return vandq_u8(vshlq_n_u8(pairs.val[l / 32 % 2], 5), vdupq_n_u8(PTWM_PHASE));
    }
    return vandq_u8(vuzp1q_u8(vld1q_u8(shifts + 2 * l), vld1q_u8(shifts + 2 * l + 16)), vdupq_n_u8(PTWM_PHASE));
}

/* An entry of each of a table, or of second where an index has bit 5. */
PTWM_INLINE uint8x16_t look_up_neon(uint8x16x2_t table, const uint8x16x2_t *second, uint8x16_t index)
{
    const uint8x16_t found = vqtbl2q_u8(table, index); /* 0 where the index is out of range, as for tbx below */
    return second != NULL ? vqtbx2q_u8(found, *second, vsubq_u8(index, vdupq_n_u8(PTWM_MAX_LABELS))) : found;
}

/* The new states of 8 lanes: *high : *low = frequency * high + rank, still without words. */
static inline void multiply_neon(uint16x8_t frequency, uint16x8_t rank, uint16x8_t *high, uint16x8_t *low)
{
    const uint32x4_t a = vmlal_u16(vmovl_u16(vget_low_u16(rank)), vget_low_u16(frequency), vget_low_u16(*high));
    const uint32x4_t b = vmlal_high_u16(vmovl_high_u16(rank), frequency, *high);

    *low = vuzp1q_u16(vreinterpretq_u16_u32(a), vreinterpretq_u16_u32(b));
    *high = vuzp2q_u16(vreinterpretq_u16_u32(a), vreinterpretq_u16_u32(b));
}

/*
 * One step of 16 lanes, whose symbols go to out: 16 u16 in the order of lanes. Returns the words left. has_phases: t[1] has
 * the second tables, and phase the lanes' phases in bit 5, and no other.
 */
PTWM_INLINE const uint8_t *step_neon(uint16_t *high, uint16_t *low, const struct tables_neon *t, bool has_phases,
                                     uint8x16_t phase, const uint8_t *words, uint16_t *out)
{
#define LOOK_UP_NEON(field, index) look_up_neon(t[0].field, has_phases ? &t[1].field : NULL, index)
    static const uint8_t bit[16] = { 1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128 };
    const uint16x8_t x0 = vld1q_u16(low), x1 = vld1q_u16(low + 8);
    const uint8x16_t own = vandq_u8(vuzp1q_u8(bytes_of_neon(x0), bytes_of_neon(x1)), vdupq_n_u8(31));
    const uint8x16_t bucket = has_phases ? vorrq_u8(own, phase) : own;
    const uint8x16_t x_high = vuzp2q_u8(bytes_of_neon(x0), bytes_of_neon(x1));
    const uint8x16_t is_alias = vcgeq_u8(x_high, LOOK_UP_NEON(div_high, bucket));
    const uint8x16_t label = veorq_u8(bucket, vandq_u8(LOOK_UP_NEON(other, bucket), is_alias));
    const uint8x16_t adj_low = vandq_u8(LOOK_UP_NEON(adj_low, bucket), is_alias);
    const uint8x16_t adj_high = vandq_u8(LOOK_UP_NEON(adj_high, bucket), is_alias);
    const uint8x16_t f_low = LOOK_UP_NEON(frequency_low, label), f_high = LOOK_UP_NEON(frequency_high, label);
    const uint8x16_t place = has_phases ? vandq_u8(label, vdupq_n_u8(31)) : label; /* of symbols there is one table */
    const uint8x16_t s_low = vqtbl2q_u8(t->symbol_low, place), s_high = vqtbl2q_u8(t->symbol_high, place);
    uint16x8_t h0 = vld1q_u16(high), h1 = vld1q_u16(high + 8), l0, l1, takes0, takes1, w0, w1;
    uint8x16_t bits;
    unsigned k0, k1;

    multiply_neon(words_of_neon(vzip1q_u8(f_low, f_high)),
                  vsraq_n_u16(words_of_neon(vzip1q_u8(adj_low, adj_high)), x0, 5), &h0, &l0);
    multiply_neon(words_of_neon(vzip2q_u8(f_low, f_high)),
                  vsraq_n_u16(words_of_neon(vzip2q_u8(adj_low, adj_high)), x1, 5), &h1, &l1);
    takes0 = vceqzq_u16(h0);
    takes1 = vceqzq_u16(h1);
    /* A bit a lane: three pairwise additions gather eight bytes in one. */
    bits = vandq_u8(vuzp1q_u8(bytes_of_neon(takes0), bytes_of_neon(takes1)), vld1q_u8(bit));
    bits = vpaddq_u8(bits, bits);
    bits = vpaddq_u8(bits, bits);
    bits = vpaddq_u8(bits, bits);
    k0 = vgetq_lane_u8(bits, 0);
    k1 = vgetq_lane_u8(bits, 1);
    w0 = words_of_neon(vqtbl1q_u8(vld1q_u8(words), vld1q_u8(kernel_expand[k0])));
    words += 2 * kernel_count[k0];
    w1 = words_of_neon(vqtbl1q_u8(vld1q_u8(words), vld1q_u8(kernel_expand[k1])));
    words += 2 * kernel_count[k1];
    vst1q_u16(high, vbslq_u16(takes0, l0, h0));
    vst1q_u16(high + 8, vbslq_u16(takes1, l1, h1));
    vst1q_u16(low, vbslq_u16(takes0, w0, l0));
    vst1q_u16(low + 8, vbslq_u16(takes1, w1, l1));
    vst1q_u16(out, words_of_neon(vzip1q_u8(s_low, s_high)));
    vst1q_u16(out + 8, words_of_neon(vzip2q_u8(s_low, s_high)));
    return words;
#undef LOOK_UP_NEON
}

struct context_neon {
    const uint8_t *rest, *low_plane, *shifts;
    uint8_t *out;
    const uint16_t *symbols; /* of the block */
};

static inline uint16x8_t load_words_neon(const uint8_t *p)
{
    return words_of_neon(vld1q_u8(p));
}

/* Stores 8 elements from number i of the block on: the rest where mask is set, elsewhere symbols and shifts. */
PTWM_INLINE void put_neon(const struct context_neon *c, bool has_low, size_t i, uint16x8_t mask, uint16x8_t rest)
{
    const uint16x8_t symbols = vaddq_u16(vld1q_u16(c->symbols + i), load_words_neon(c->shifts + 2 * i));
    const uint16x8_t units = vbslq_u16(mask, rest, symbols);

    if (has_low) {
        const uint16x8_t low = load_words_neon(c->low_plane + 2 * i);
        vst1q_u8(c->out + 4 * i, bytes_of_neon(vzip1q_u16(low, units)));
        vst1q_u8(c->out + 4 * i + 16, bytes_of_neon(vzip2q_u16(low, units)));
    } else {
        vst1q_u8(c->out + 2 * i, bytes_of_neon(units));
    }
}

PTWM_INLINE void merge_rest78_neon(const struct context_neon *c, bool has_low, bool is_7)
{
    const uint16x8_t mask = vdupq_n_u16(is_7 ? 0x803F : 0x807F), mantissa = vdupq_n_u16(0x3F);

    for (size_t i = 0; i < 32; i += 8) {
        uint16x8_t spread = vdupq_n_u16(0);
        for (size_t pair = 0; pair < (is_7 ? 7 : 8); pair++) {
            const uint16x8_t rest = load_words_neon(c->rest + 64 * pair + 2 * i);
            put_neon(c, has_low, 64 * pair + i, mask, rest);
            put_neon(c, has_low, 64 * pair + 32 + i, mask, words_of_neon(vrev16q_u8(bytes_of_neon(rest))));
            spread = vsraq_n_u16(vandq_u16(rest, vdupq_n_u16(0x4040)), spread, 1);
        }
        if (is_7) {
            put_neon(c, has_low, 448 + i, mask, vbslq_u16(mantissa, spread, vshlq_n_u16(spread, 9)));
            put_neon(c, has_low, 480 + i, mask, vbslq_u16(mantissa, vshrq_n_u16(spread, 8), vshlq_n_u16(spread, 1)));
        }
    }
}

static inline void merge_rest10_neon(const struct context_neon *c)
{
    const uint16x8_t mask = vdupq_n_u16(0x81FF), byte = vdupq_n_u16(0xFF);

    for (size_t half = 0; half < 2; half++)
        for (size_t i = 0; i < 32; i += 8) {
            uint16x8_t x = load_words_neon(c->rest + 64 * half + 2 * i); /* bits 15 and 8 are the next vector's */
            for (size_t pair = 0; pair < 4; pair++) {
                const uint16x8_t rest = load_words_neon(c->rest + 128 + 256 * half + 64 * pair + 2 * i);
                put_neon(c, false, 256 * half + 64 * pair + i, mask, vbslq_u16(byte, rest, x));
                x = vshlq_n_u16(x, 1);
                if (pair == 3) /* the eighth vector's bits have come to 7 and 8 */
                    x = vbslq_u16(vdupq_n_u16(0x8000), vshlq_n_u16(x, 8), x);
                put_neon(c, false, 256 * half + 64 * pair + 32 + i, mask, vbslq_u16(byte, vshrq_n_u16(rest, 8), x));
                x = vshlq_n_u16(x, 1);
            }
        }
}

/* 16 bytes from number i of the block on: lanes are in the order even elements of 64, odd elements of 64. */
static inline void put_bytes_neon(const struct context_neon *c, uint8x16_t mask, size_t v, size_t i, uint8x16_t rest)
{
    const uint16_t *even = c->symbols + 64 * v + i / 2, *odd = even + 32;
    const uint8x8_t a = vmovn_u16(vld1q_u16(even)), b = vmovn_u16(vld1q_u16(odd));
    const uint8x16_t symbols = vcombine_u8(vzip1_u8(a, b), vzip2_u8(a, b));

    vst1q_u8(c->out + 64 * v + i,
             vbslq_u8(mask, rest, vaddq_u8(symbols, vld1q_u8(c->shifts + 64 * v + i))));
}

static inline void merge_rest2_neon(const struct context_neon *c)
{
    const uint8x16_t mask = vdupq_n_u8(0x81), sign = vdupq_n_u8(0x80);

    for (size_t i = 0; i < 64; i += 16)
        for (size_t half = 0; half < 2; half++) {
            const uint8x16_t rest = vld1q_u8(c->rest + 64 * half + i);
            for (int j = 0; j < 4; j++)
                put_bytes_neon(c, mask, 4 * half + (size_t)j, i,
                               vbslq_u8(sign, vshlq_u8(rest, vdupq_n_s8((int8_t)j)), vshlq_u8(rest, vdupq_n_s8((int8_t)-j))));
        }
}

static inline void merge_rest3_neon(const struct context_neon *c)
{
    const uint8x16_t mask = vdupq_n_u8(0x83), sign = vdupq_n_u8(0x80), one = vdupq_n_u8(1);

    for (size_t i = 0; i < 64; i += 16) {
        const uint8x16_t last = vld1q_u8(c->rest + 128 + i);
        for (size_t v = 0; v < 3; v++) {
            const uint8x16_t rest = vld1q_u8(c->rest + 64 * v + i);
            put_bytes_neon(c, mask, v, i, rest);
            put_bytes_neon(c, mask, v + 3, i, vbslq_u8(sign, vshlq_n_u8(rest, 1), vshrq_n_u8(rest, 2)));
            if (v < 2)
                put_bytes_neon(c, mask, v + 6, i,
                               vbslq_u8(sign, vshlq_n_u8(rest, 2),
                                        vbslq_u8(one, vshrq_n_u8(rest, 4), v == 0 ? vshrq_n_u8(last, 4) : vshrq_n_u8(last, 3))));
        }
    }
}

static inline void merge_int8_neon(const struct context_neon *c)
{
    const uint8x16_t mask = vdupq_n_u8(7), high = vdupq_n_u8(4), one = vdupq_n_u8(1);

    for (size_t i = 0; i < 64; i += 16) {
        const uint8x16_t last = vld1q_u8(c->rest + 128 + i);
        for (size_t v = 0; v < 3; v++) {
            const uint8x16_t rest = vld1q_u8(c->rest + 64 * v + i);
            put_bytes_neon(c, mask, v, i, vbslq_u8(high, vshrq_n_u8(rest, 5), rest));
            put_bytes_neon(c, mask, v + 3, i, vbslq_u8(high, vshrq_n_u8(rest, 4), vshrq_n_u8(rest, 2)));
            if (v < 2)
                put_bytes_neon(c, mask, v + 6, i,
                               vbslq_u8(high, vshrq_n_u8(rest, 3),
                                        vbslq_u8(one, vshrq_n_u8(rest, 4), v == 0 ? vshrq_n_u8(last, 4) : vshrq_n_u8(last, 3))));
        }
    }
}

PTWM_INLINE size_t decode_neon(struct ptwm_kernel_job *job, size_t n_blocks, enum ptwm_kernel_kind kind, bool has_phases)
{
    const struct ptwm_kernel_shape shape = ptwm_kernel_shape(kind);
    uint16_t symbols[PTWM_KERNEL_BLOCK];
    struct tables_neon tables[2];
    struct context_neon c;
    size_t done = 0;

    c.symbols = symbols;
    for (; done < n_blocks && job->words <= job->words_limit; done++) {
        const uint8_t *words = job->words;

        c.shifts = job->shifts + job->column * shape.shift_nbytes;
        for (size_t g = 0; g < PTWM_KERNEL_GROUPS; g++) {
            const struct ptwm_kernel_table8 *of_class = &job->tables.of8[(has_phases ? 2 : 1) * job->group_class[g]];
            const uint8_t *shifts = c.shifts + PTWM_KERNEL_LANES * g * shape.shift_nbytes;
            uint8x16_t phase = vdupq_n_u8(0);

            load_tables_neon(&tables[0], of_class);
            if (has_phases)
                load_tables_neon(&tables[1], of_class + 1);
            for (size_t l = 0; l < PTWM_KERNEL_LANES; l += 16) {
                if (has_phases)
                    phase = load_phases_neon(shifts, l, ptwm_kernel_is_bytes(kind));
                words = step_neon(job->high + l, job->low + l, tables, has_phases, phase, words,
                                  symbols + PTWM_KERNEL_LANES * g + l);
            }
        }
        c.rest = job->rest;
        c.low_plane = job->low_plane;
        c.out = job->out;
        if (kind == PTWM_KERNEL_REST10)
            merge_rest10_neon(&c);
        else if (kind == PTWM_KERNEL_REST3)
            merge_rest3_neon(&c);
        else if (kind == PTWM_KERNEL_REST2)
            merge_rest2_neon(&c);
        else if (kind == PTWM_KERNEL_INT8)
            merge_int8_neon(&c);
        else
            merge_rest78_neon(&c, shape.has_low, kind == PTWM_KERNEL_REST7 || kind == PTWM_KERNEL_REST7_LOW);
        job->words = words;
        job->group_class += PTWM_KERNEL_GROUPS;
        job->rest += shape.rest_nbytes;
        job->out += shape.out_nbytes;
        if (shape.has_low)
            job->low_plane += job->low_step;
        job->column = ptwm_kernel_next_column(job, job->column);
    }
    return done;
}

#define INSTANCE(name, kind, has_phases)                                                                          \
    static size_t name(struct ptwm_kernel_job *job, size_t n_blocks)                                              \
    {                                                                                                             \
        return decode_neon(job, n_blocks, kind, has_phases);                                                      \
    }
INSTANCE(rest7_neon, PTWM_KERNEL_REST7, false)
INSTANCE(rest8_neon, PTWM_KERNEL_REST8, false)
INSTANCE(rest7_low_neon, PTWM_KERNEL_REST7_LOW, false)
INSTANCE(rest8_low_neon, PTWM_KERNEL_REST8_LOW, false)
INSTANCE(rest10_neon, PTWM_KERNEL_REST10, false)
INSTANCE(rest3_neon, PTWM_KERNEL_REST3, false)
INSTANCE(rest2_neon, PTWM_KERNEL_REST2, false)
INSTANCE(int8_neon, PTWM_KERNEL_INT8, false)
INSTANCE(rest7_phased_neon, PTWM_KERNEL_REST7, true)
INSTANCE(rest7_low_phased_neon, PTWM_KERNEL_REST7_LOW, true)
INSTANCE(rest10_phased_neon, PTWM_KERNEL_REST10, true)
INSTANCE(rest3_phased_neon, PTWM_KERNEL_REST3, true)
INSTANCE(rest2_phased_neon, PTWM_KERNEL_REST2, true)
#undef INSTANCE

static const struct ptwm_kernel_set ptwm_kernels_neon = {
    build_tables8,
    {
        [PTWM_KERNEL_SHIFTS] = {
            { rest7_neon, NULL, NULL },
            { rest8_neon, NULL, NULL },
            { rest7_low_neon, NULL, NULL },
            { rest8_low_neon, NULL, NULL },
            { rest10_neon, NULL, NULL },
            { rest3_neon, NULL, NULL },
            { rest2_neon, NULL, NULL },
            { int8_neon, NULL, NULL },
        },
        [PTWM_KERNEL_PHASES] = {
            [PTWM_KERNEL_REST7] = { rest7_phased_neon, NULL, NULL },
            [PTWM_KERNEL_REST7_LOW] = { rest7_low_phased_neon, NULL, NULL },
            [PTWM_KERNEL_REST10] = { rest10_phased_neon, NULL, NULL },
            [PTWM_KERNEL_REST3] = { rest3_phased_neon, NULL, NULL },
            [PTWM_KERNEL_REST2] = { rest2_phased_neon, NULL, NULL },
        },
    },
};
