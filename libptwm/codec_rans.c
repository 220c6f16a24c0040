/*
 * Byte rANS (FORMAT.md, section 6.2): one table of 12-bit frequencies, u32 states above 2^16 that take or give at most
 * one u16 word an element, many states ("lanes") in turn over one stream of words, so that their steps do not wait for
 * each other and fit vector registers.
 */
#include <string.h>

#include "bits.h"
#include "codec.h"
#include "cpu_features.h"
#include "log2_fixed.h"
#include "status.h"
#include "symbol_set.h"

#define PRECISION 12u
#define TOTAL (1u << PRECISION)
#define STATE_MIN 65536u
#define MANY_LANES 32u
#define FEW_LANES 4u
#define MANY_LANES_MIN_NBYTES 1024u /* planes from here on have MANY_LANES */

static unsigned n_lanes(uint64_t n)
{
    return n < MANY_LANES_MIN_NBYTES ? FEW_LANES : MANY_LANES;
}

/* ---------------------------------------------------------------------------------------------- frequencies */

/*
 * What the next unit of frequency is worth to a symbol that occurs h times and has f, for comparisons: the one that it
 * would be given, or the one that would be taken from it (UINT64_MAX if it has no more than 1). The gain of growing
 * from f to f + 1 is h ln(1 + 1 / f), which is close to 2 h / (2 f + 1); this is half of that, in units of 2^-32.
 */
static uint64_t unit_worth(uint32_t h, uint32_t f, bool taking)
{
    if (taking && f == 1)
        return UINT64_MAX;
    return ((uint64_t)h << 32) / (taking ? 2 * f - 1 : 2 * f + 1);
}

/*
 * The frequencies of the symbols of a set, in its order: at least 1 each, TOTAL in all, and as good as possible. By the
 * measure of unit_worth, after rounding to nearest no unit is worth more elsewhere, but the sum may be wrong. Then
 * units are given one by one to where they are worth most, or taken from where they are worth least, which keeps that
 * so; among equals it is the smallest symbol's turn.
 */
static void find_frequencies(uint32_t *frequencies, const struct ptwm_symbol_set *set, const uint32_t histogram[256])
{
    uint64_t worth[256], n = 0;
    uint32_t sum = 0, step;
    bool taking;

    for (unsigned i = 0; i < set->n; i++)
        n += histogram[set->symbols[i]];
    for (unsigned i = 0; i < set->n; i++) {
        frequencies[i] = (uint32_t)(((uint64_t)histogram[set->symbols[i]] * TOTAL + n / 2) / n);
        if (frequencies[i] == 0)
            frequencies[i] = 1;
        sum += frequencies[i];
    }
    taking = sum > TOTAL;
    step = taking ? (uint32_t)-1 : 1;
    for (unsigned i = 0; i < set->n; i++)
        worth[i] = unit_worth(histogram[set->symbols[i]], frequencies[i], taking);
    for (; sum != TOTAL; sum += step) {
        unsigned best = 0;

        for (unsigned i = 1; i < set->n; i++) {
            if (taking ? worth[i] < worth[best] : worth[i] > worth[best])
                best = i;
        }
        frequencies[best] += step;
        worth[best] = unit_worth(histogram[set->symbols[best]], frequencies[best], taking);
    }
}

/* ------------------------------------------------------------------------------------------------- encoding */

/*
 * The head: the set and a varint of at most 2 bytes a symbol, of which at most 31 have 2; then the states; then words.
 */
static size_t rans_bound(size_t src_nbytes)
{
    size_t extra = PTWM_SYMBOL_SET_MAX_NBYTES + 256 + 32 + 4 * MANY_LANES;

    return src_nbytes < (SIZE_MAX - extra) / 2 ? 2 * src_nbytes + extra : SIZE_MAX;
}

/* A symbol of the encoder. */
struct coding {
    uint64_t reciprocal; /* floor(2^44 / frequency) + 1 */
    uint32_t frequency;
    uint32_t start;      /* sum of the frequencies before it */
};

/*
 * Encodes an element: the inverse of the decoder's step. A state x < f * 2^20 (which giving up a word ensures) is
 * divided by f exactly by the reciprocal: with r = 2^44 / f + e, 0 < e <= 1, x * r / 2^44 = x / f + x * e / 2^44, and
 * the excess is less than 1 / f since x * f < f^2 * 2^20 <= 2^44. x * r does not overflow: it is at most (f * 2^20 - 1)
 * (2^44 / f + 1) = 2^64 + f * 2^20 - 2^44 / f - 1 < 2^64 since f^2 * 2^20 <= 2^44.
 */
static inline uint8_t *encode_step(uint32_t *state, uint8_t *words, const struct coding *coding)
{
    uint32_t x = *state, quotient;
    unsigned gives = x >> 20 >= coding->frequency;

    ptwm_store16(words - 2, (uint16_t)x);
    words -= 2 * gives;
    x >>= 16 * gives;
    quotient = (uint32_t)((uint64_t)x * coding->reciprocal >> 44);
    *state = x + quotient * (TOTAL - coding->frequency) + coding->start;
    return words;
}

/* Encodes whole groups: n is a multiple of lanes. As encode_words. */
static inline uint8_t *encode_groups_c99(uint32_t *states, uint8_t *words, const uint8_t *src, size_t n, unsigned lanes,
                                         const struct coding codings[256])
{
    for (size_t i = n; i > 0; i -= lanes) {
        for (unsigned lane = lanes; lane-- > 0;)
            words = encode_step(&states[lane], words, &codings[src[i - lanes + lane]]);
    }
    return words;
}

#if defined(PTWM_X86)
#include "x86/rans_impl.h"
#endif

static uint8_t *encode_groups(uint32_t *states, uint8_t *words, const uint8_t *src, size_t n, unsigned lanes,
                              const struct coding codings[256])
{
    if (lanes == FEW_LANES)
        return encode_groups_c99(states, words, src, n, FEW_LANES, codings);
    switch (ptwm_cpu_level()) {
#if defined(PTWM_X86)
    case PTWM_CPU_AVX512: return encode_groups_avx512(states, words, src, n, codings);
    case PTWM_CPU_AVX2: return encode_groups_avx2(states, words, src, n, codings);
#endif
    default: return encode_groups_c99(states, words, src, n, MANY_LANES, codings);
    }
}

/*
 * Encodes n elements from the last to the first. The words, which the decoder reads in the opposite order, end at
 * words_end; returns where they begin. Writes at most 2 n + 16 bytes.
 */
static uint8_t *encode_words(uint32_t *states, uint8_t *words_end, const uint8_t *src, size_t n, unsigned lanes,
                             const struct coding codings[256])
{
    uint8_t *words = words_end;
    size_t i = n;

    for (unsigned lane = 0; lane < lanes; lane++)
        states[lane] = STATE_MIN;
    for (; i % lanes != 0; i--)
        words = encode_step(&states[(i - 1) % lanes], words, &codings[src[i - 1]]);
    return encode_groups(states, words, src, i, lanes, codings);
}

/* Stores the set and the frequencies; returns the end. */
static uint8_t *store_table(uint8_t *dst, const struct ptwm_symbol_set *set, const uint32_t *frequencies)
{
    dst += ptwm_symbol_set_store(set, dst);
    for (unsigned i = 0; i + 1 < set->n; i++)
        dst += ptwm_store_varint(dst, frequencies[i] - 1);
    return dst;
}

static void find_codings(struct coding codings[256], const struct ptwm_symbol_set *set, const uint32_t *frequencies)
{
    uint32_t start = 0;

    for (unsigned i = 0; i < set->n; i++) {
        struct coding *coding = &codings[set->symbols[i]];

        coding->reciprocal = ((uint64_t)1 << 44) / frequencies[i] + 1;
        coding->frequency = frequencies[i];
        coding->start = start;
        start += frequencies[i];
    }
}

static enum ptwm_status rans_encode(const struct ptwm_codec_context *context, uint8_t *dst, size_t *dst_nbytes,
                                    const uint8_t *src, size_t src_nbytes, struct ptwm_error *error)
{
    uint32_t quarters[4][256], frequencies[256], states[MANY_LANES];
    struct coding codings[256] = { { 0, 0, 0 } };
    struct ptwm_symbol_set set;
    unsigned lanes = n_lanes(src_nbytes);
    uint8_t *p, *words, *words_end = dst + rans_bound(src_nbytes);

    (void)context;
    if ((uint64_t)src_nbytes > UINT32_MAX || rans_bound(src_nbytes) == SIZE_MAX)
        return ptwm_fail(error, PTWM_ERR_ARGUMENT, "rans: a plane of more than 2^32 - 1 bytes");
    ptwm_count_quarters(src, src_nbytes, quarters);
    for (unsigned i = 0; i < 256; i++)
        quarters[0][i] += quarters[1][i] + quarters[2][i] + quarters[3][i];
    ptwm_symbol_set_from_histogram(&set, quarters[0]);
    find_frequencies(frequencies, &set, quarters[0]);
    find_codings(codings, &set, frequencies);
    /* How many words there are is not known before they are: they grow down from the end of dst, and then move. */
    words = encode_words(states, words_end, src, src_nbytes, lanes, codings);
    p = store_table(dst, &set, frequencies);
    for (unsigned lane = 0; lane < lanes; lane++, p += 4)
        ptwm_store32(p, states[lane]);
    memmove(p, words, (size_t)(words_end - words));
    *dst_nbytes = (size_t)(p - dst) + (size_t)(words_end - words);
    return PTWM_OK;
}

/*
 * The words hold the elements' cost, less what is left in the states in the end, between 0 and 16 bits each, which is
 * not known here and counted as 0. The margin is for rounding, of logarithms and of states.
 */
uint64_t ptwm_rans_estimate(const uint32_t histogram[256], uint64_t n)
{
    uint8_t table[PTWM_SYMBOL_SET_MAX_NBYTES + 2 * 256];
    uint32_t frequencies[256];
    struct ptwm_symbol_set set;
    uint64_t cost = 0, head;

    ptwm_symbol_set_from_histogram(&set, histogram);
    if (set.n == 0)
        return 0;
    find_frequencies(frequencies, &set, histogram);
    head = (uint64_t)(store_table(table, &set, frequencies) - table) + 4 * n_lanes(n);
    if (set.n == 1)
        return head;
    for (unsigned i = 0; i < set.n; i++) {
        uint64_t bits = PRECISION * PTWM_LOG2_ONE - ptwm_log2_fixed(frequencies[i]) + 1;

        cost += histogram[set.symbols[i]] * bits;
    }
    cost += cost / 4096;
    return head + 2 * ptwm_ceil_div(cost, 16 * (uint64_t)PTWM_LOG2_ONE);
}

/* ------------------------------------------------------------------------------------------------- decoding */

/*
 * Reads the set and the frequencies and fills the table. The entry of slot number s, of a symbol with frequency f that
 * starts at slot c: (f - 1) << 20 | (s - c) << 8 | symbol. False if malformed.
 */
static bool load_table(uint32_t table[TOTAL], struct ptwm_cursor *cursor)
{
    struct ptwm_symbol_set set;
    uint32_t slot = 0;

    ptwm_symbol_set_load(&set, cursor);
    if (cursor->failed)
        return false;
    for (unsigned i = 0; i < set.n; i++) {
        /* The last symbol has the rest of the slots, of which there must be one. */
        uint64_t f = i + 1 < set.n ? ptwm_cursor_varint(cursor) : TOTAL - 1 - slot;
        uint32_t entry;

        if (cursor->failed || f >= TOTAL - slot - (i + 1 < set.n))
            return false;
        entry = (uint32_t)f << 20 | set.symbols[i];
        for (uint32_t rank = 0; rank <= f; rank++)
            table[slot++] = entry | rank << 8;
    }
    return true;
}

/* A step without the word: the new state may be below STATE_MIN. No state overflows: f * (2^20 - 1) + f - 1 < 2^32. */
static inline uint32_t decode_step(uint32_t x, uint32_t entry)
{
    return ((entry >> 20) + 1) * (x >> PRECISION) + (entry >> 8 & (TOTAL - 1));
}

/*
 * Decodes whole groups while there is a word left for each element of one; returns how many elements. The states are a
 * local copy, of which the compiler knows that storing to dst does not change it.
 */
static inline size_t decode_groups_c99(uint8_t *dst, size_t n, uint32_t *states, unsigned lanes, const uint8_t **words,
                                       const uint8_t *end, const uint32_t table[TOTAL])
{
    const uint8_t *p = *words;
    uint32_t local[MANY_LANES];
    size_t i = 0;

    memcpy(local, states, lanes * sizeof local[0]);
    for (; n - i >= lanes && (size_t)(end - p) >= 2 * lanes; i += lanes) {
        for (unsigned lane = 0; lane < lanes; lane++) {
            uint32_t entry = table[local[lane] & (TOTAL - 1)];
            uint32_t x = decode_step(local[lane], entry);
            uint32_t takes = x < STATE_MIN;

            /* No ?: here: compilers make it a branch, and its mispredictions cost a third of the speed. */
            local[lane] = x << 16 * takes | (ptwm_load16(p) & (0u - takes));
            p += 2 * takes;
            dst[i + lane] = (uint8_t)entry;
        }
    }
    memcpy(states, local, lanes * sizeof local[0]);
    *words = p;
    return i;
}

static size_t decode_groups(uint8_t *dst, size_t n, uint32_t *states, unsigned lanes, const uint8_t **words,
                            const uint8_t *end, const uint32_t table[TOTAL])
{
    /* With the number of lanes a constant the compiler unrolls the loop over them. */
    if (lanes == FEW_LANES)
        return decode_groups_c99(dst, n, states, FEW_LANES, words, end, table);
    switch (ptwm_cpu_level()) {
#if defined(PTWM_X86)
    case PTWM_CPU_AVX512: return decode_groups_avx512(dst, n, states, words, end, table);
    case PTWM_CPU_AVX2: return decode_groups_avx2(dst, n, states, words, end, table);
#endif
    default: return decode_groups_c99(dst, n, states, MANY_LANES, words, end, table);
    }
}

/* Decodes n < lanes elements. False if there are too few words. */
static bool decode_end(uint8_t *dst, size_t n, uint32_t *states, const uint8_t **words, const uint8_t *end,
                       const uint32_t table[TOTAL])
{
    const uint8_t *p = *words;

    for (size_t i = 0; i < n; i++) {
        uint32_t entry = table[states[i] & (TOTAL - 1)];
        uint32_t x = decode_step(states[i], entry);

        if (x < STATE_MIN) {
            if (p == end)
                return false;
            x = x << 16 | ptwm_load16(p);
            p += 2;
        }
        states[i] = x;
        dst[i] = (uint8_t)entry;
    }
    *words = p;
    return true;
}

/* Decodes all n elements; *left becomes the bytes of words that are left over. False if there are too few words. */
static bool decode_elements(uint8_t *dst, size_t n, uint32_t *states, unsigned lanes, const uint8_t *words, size_t *left,
                            const uint32_t table[TOTAL])
{
    uint8_t last[4 * MANY_LANES] = { 0 };
    const uint8_t *end = words + *left, *p = last;
    size_t done = decode_groups(dst, n, states, lanes, &words, end, table);

    /* Groups that may find too few words, or do: there can be many, since elements may take none. Zeros follow. */
    *left = (size_t)(end - words);
    if (n - done >= lanes) {
        memcpy(last, words, *left);
        done += decode_groups(dst + done, n - done, states, lanes, &p, last + *left + 2 * lanes, table);
        end = last + *left;
        if (n - done >= lanes || p > end)
            return false;
        words = p;
    }
    if (!decode_end(dst + done, n - done, states, &words, end, table))
        return false;
    *left = (size_t)(end - words);
    return true;
}

static enum ptwm_status rans_decode(const struct ptwm_codec_context *context, uint8_t *dst, size_t dst_nbytes,
                                    const uint8_t *src, size_t src_nbytes, struct ptwm_error *error)
{
    struct ptwm_cursor cursor = ptwm_cursor_make(src, src_nbytes);
    uint32_t table[TOTAL], states[MANY_LANES];
    unsigned lanes = n_lanes(dst_nbytes);
    size_t left;

    (void)context;
    if (!load_table(table, &cursor))
        return ptwm_fail(error, PTWM_ERR_PLANE, "rans: malformed table");
    for (unsigned lane = 0; lane < lanes; lane++) {
        states[lane] = ptwm_cursor_u32(&cursor);
        if (states[lane] < STATE_MIN) /* or missing */
            return ptwm_fail(error, PTWM_ERR_PLANE, "rans: malformed state of lane %u", lane);
    }
    left = ptwm_cursor_left(&cursor);
    if (left % 2 != 0)
        return ptwm_fail(error, PTWM_ERR_PLANE, "rans: half a word");
    if (!decode_elements(dst, dst_nbytes, states, lanes, cursor.next, &left, table))
        return ptwm_fail(error, PTWM_ERR_PLANE, "rans: too few words");
    if (left != 0)
        return ptwm_fail(error, PTWM_ERR_PLANE, "rans: words left over");
    for (unsigned lane = 0; lane < lanes; lane++) {
        if (states[lane] != STATE_MIN)
            return ptwm_fail(error, PTWM_ERR_PLANE, "rans: lane %u does not end in its initial state", lane);
    }
    return PTWM_OK;
}

const struct ptwm_byte_codec ptwm_codec_rans = {
    PTWM_CODEC_RANS, rans_bound, rans_encode, rans_decode
};
