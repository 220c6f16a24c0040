/*
 * Coding runs of labels of one class on 128 lanes (label_encode.c) for NEON: the arithmetic of the AVX2 version, with shifts by
 * lane instead of products. Sixteen labels go through the look-ups together, eight lanes through a step. Tested under emulation;
 * not measured.
 */
#include <arm_neon.h>

#include "../word_shuffles.h"

#define INLINE static inline __attribute__((always_inline))

/*
 * Of labels 0 .. 63, those with PTWM_PHASE being the ones of phase 1. u16 lie as low and high bytes. Without phases the upper
 * half is not looked at.
 */
struct tables_neon {
    uint8x16x4_t frequency[2], reciprocal[2], first_slot[2], shift;
};

INLINE uint8x16x4_t load_table_neon(const uint8_t first[PTWM_MAX_LABELS], const uint8_t second[PTWM_MAX_LABELS])
{
    const uint8x16x4_t table = { { vld1q_u8(first), vld1q_u8(first + 16), vld1q_u8(second), vld1q_u8(second + 16) } };
    return table;
}

INLINE void load_tables_neon(struct tables_neon *t, const struct ptwm_class_encoder *class, bool has_phases)
{
    const struct ptwm_label_divisors *first = &class[0].divisors, *second = &class[has_phases ? 1 : 0].divisors;
    uint8_t shift[2][PTWM_MAX_LABELS];

    for (unsigned b = 0; b < 2; b++) {
        t->frequency[b] = load_table_neon(first->bytes[0][b], second->bytes[0][b]);
        t->reciprocal[b] = load_table_neon(first->bytes[2][b], second->bytes[2][b]);
        t->first_slot[b] = load_table_neon(first->bytes[3][b], second->bytes[3][b]);
    }
    for (unsigned i = 0; i < PTWM_MAX_LABELS; i++) {
        shift[0][i] = (uint8_t)first->shift[i];
        shift[1][i] = (uint8_t)second->shift[i];
    }
    t->shift = load_table_neon(shift[0], shift[1]);
}

INLINE uint8x16_t look_up_byte_neon(const uint8x16x4_t *table, bool has_phases, uint8x16_t label)
{
    const uint8x16x2_t half = { { table->val[0], table->val[1] } };
    return has_phases ? vqtbl4q_u8(*table, label) : vqtbl2q_u8(half, label);
}

/* u16 of 16 labels: of the first eight, and of the others. */
INLINE void look_up_neon(const uint8x16x4_t table[2], bool has_phases, uint8x16_t label, uint16x8_t value[2])
{
    const uint8x16_t low = look_up_byte_neon(&table[0], has_phases, label);
    const uint8x16_t high = look_up_byte_neon(&table[1], has_phases, label);

    value[0] = vreinterpretq_u16_u8(vzip1q_u8(low, high));
    value[1] = vreinterpretq_u16_u8(vzip2q_u8(low, high));
}

INLINE uint16x8_t multiply_high_neon(uint16x8_t a, uint16x8_t b)
{
    return vuzp2q_u16(vreinterpretq_u16_u32(vmull_u16(vget_low_u16(a), vget_low_u16(b))),
                      vreinterpretq_u16_u32(vmull_high_u16(a, b)));
}

/* Emits the words of eight lanes that are chosen. There is room for 8 words before words. */
INLINE uint8_t *emit_neon(uint16x8_t low, uint16x8_t emits, uint8_t *words)
{
    static const uint16_t bits[8] = { 1, 2, 4, 8, 16, 32, 64, 128 };
    const unsigned mask = vaddvq_u16(vandq_u16(emits, vld1q_u16(bits)));

    vst1q_u8(words - 16, vqtbl1q_u8(vreinterpretq_u8_u16(low), vld1q_u8(word_shuffles[mask])));
    return words - 2 * (size_t)vaddvq_u16(vshrq_n_u16(emits, 15));
}

/* inverse[slot] of eight lanes. */
INLINE uint16x8_t invert_neon(const uint16_t *inverse, uint16x8_t slot)
{
    const uint64_t a = vgetq_lane_u64(vreinterpretq_u64_u16(slot), 0), b = vgetq_lane_u64(vreinterpretq_u64_u16(slot), 1);
    uint16x8_t value = vld1q_dup_u16(inverse + (a & 0xffff));

    value = vld1q_lane_u16(inverse + (a >> 16 & 0xffff), value, 1);
    value = vld1q_lane_u16(inverse + (a >> 32 & 0xffff), value, 2);
    value = vld1q_lane_u16(inverse + (a >> 48), value, 3);
    value = vld1q_lane_u16(inverse + (b & 0xffff), value, 4);
    value = vld1q_lane_u16(inverse + (b >> 16 & 0xffff), value, 5);
    value = vld1q_lane_u16(inverse + (b >> 32 & 0xffff), value, 6);
    return vld1q_lane_u16(inverse + (b >> 48), value, 7);
}

/* Codes eight labels, whose numbers are given. Comparisons give 0 or -1. */
INLINE uint8_t *encode_8_neon(const uint16_t *inverse, uint16x8_t frequency, int16x8_t shift, uint16x8_t reciprocal,
                              uint16x8_t slot, uint16_t *low, uint16_t *high, uint8_t *words)
{
    uint16x8_t l = vld1q_u16(low), h = vld1q_u16(high);
    const uint16x8_t emits = vcgeq_u16(h, frequency), divisor = vshlq_u16(frequency, shift);
    uint16x8_t upper, lower, fraction, quotient, r, above, least, rank;

    words = emit_neon(l, emits, words);
    l = vbslq_u16(emits, h, l);
    h = vbicq_u16(h, emits);
    upper = vorrq_u16(vshlq_u16(h, shift), vshlq_u16(l, vsubq_s16(shift, vdupq_n_s16(16))));
    lower = vshlq_u16(l, shift);
    fraction = vmlaq_u16(lower, reciprocal, upper);
    quotient = vaddq_u16(vaddq_u16(multiply_high_neon(reciprocal, upper), upper), vdupq_n_u16(1));
    quotient = vsubq_u16(quotient, vcltq_u16(fraction, lower)); /* the carry */
    r = vmlsq_u16(lower, quotient, divisor);
    /* One less where r > fraction; then one more where r >= divisor, and so r - divisor does not wrap. */
    above = vcgtq_u16(r, fraction);
    quotient = vaddq_u16(quotient, above);
    r = vaddq_u16(r, vandq_u16(above, divisor));
    least = vminq_u16(r, vsubq_u16(r, divisor));
    quotient = vsubq_u16(quotient, vcgeq_u16(r, divisor));
    rank = vshlq_u16(least, vnegq_s16(shift));
    l = invert_neon(inverse, vaddq_u16(slot, vshrq_n_u16(rank, 3)));
    l = vaddq_u16(l, vshlq_n_u16(vandq_u16(rank, vdupq_n_u16(7)), 5));
    vst1q_u16(low, l);
    vst1q_u16(high, quotient);
    return words;
}

/* Codes 16 labels. */
INLINE uint8_t *encode_16_neon(const struct tables_neon *t, bool has_phases, const uint16_t *inverse, uint8x16_t labels,
                               uint16_t *low, uint16_t *high, uint8_t *words)
{
    const uint8_t mask = has_phases ? PTWM_LABEL_MASK + PTWM_PHASE : PTWM_LABEL_MASK;
    const uint8x16_t label = vandq_u8(labels, vdupq_n_u8(mask));
    const uint8x16_t shifts = look_up_byte_neon(&t->shift, has_phases, label);
    const int16x8_t shift[2] = { vreinterpretq_s16_u16(vmovl_u8(vget_low_u8(shifts))),
                                 vreinterpretq_s16_u16(vmovl_high_u8(shifts)) };
    uint16x8_t frequency[2], reciprocal[2], slot[2];

    look_up_neon(t->frequency, has_phases, label, frequency);
    look_up_neon(t->reciprocal, has_phases, label, reciprocal);
    look_up_neon(t->first_slot, has_phases, label, slot);
    for (unsigned k = 2; k-- > 0;)
        words = encode_8_neon(inverse, frequency[k], shift[k], reciprocal[k], slot[k], low + 8 * k, high + 8 * k, words);
    return words;
}

INLINE uint8_t *encode_run_of_any_neon(const struct ptwm_class_encoder *class, bool has_phases, const uint8_t *labels,
                                       size_t n, struct ptwm_label_states *states, uint8_t *words)
{
    struct tables_neon t;

    load_tables_neon(&t, class, has_phases);
    for (size_t i = n; i > 0; i -= LANES)
        for (unsigned j = LANES; j > 0; j -= 64) {
            const uint8_t *block = labels + i - LANES + j - 64;
            const uint8x16x2_t pairs[2] = { vld2q_u8(block), vld2q_u8(block + 32) };
            for (unsigned k = 4; k-- > 0;)
                words = encode_16_neon(&t, has_phases, class->inverse, pairs[k % 2].val[k / 2],
                                       states->low + j - 64 + 16 * k, states->high + j - 64 + 16 * k, words);
        }
    return words;
}

static uint8_t *encode_run_neon(const struct ptwm_class_encoder *class, const uint8_t *labels, size_t n,
                                struct ptwm_label_states *states, uint8_t *words)
{
    return encode_run_of_any_neon(class, false, labels, n, states, words);
}

static uint8_t *encode_phased_run_neon(const struct ptwm_class_encoder *class, const uint8_t *labels, size_t n,
                                       struct ptwm_label_states *states, uint8_t *words)
{
    return encode_run_of_any_neon(class, true, labels, n, states, words);
}

#undef INLINE
