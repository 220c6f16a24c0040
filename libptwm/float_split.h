/*
 * From a float tensor's raw bytes straight to what coding takes: bins and labels, packed rests, low halves. Each
 * function gives what ptwm_chain_split and the tables of label_analyse.h would give step by step; there are versions of
 * each for several vector instruction sets, which give the same.
 */
#ifndef PTWM_FLOAT_SPLIT_H
#define PTWM_FLOAT_SPLIT_H

#include "chain.h"
#include "label_analyse.h"

/* The label steps that there are kernels for. */
enum ptwm_float_kind {
    PTWM_FLOAT_NONE,
    PTWM_FLOAT_B16_9, /* label(2, 6, 9): bfloat16, exponent and a mantissa bit */
    PTWM_FLOAT_B16_8, /* label(2, 7, 8): bfloat16, exponent */
    PTWM_FLOAT_F32_9, /* label(4, 6, 9) */
    PTWM_FLOAT_F32_8, /* label(4, 7, 8) */
    PTWM_FLOAT_F16_6, /* label(2, 9, 6): float16, exponent and a mantissa bit */
    PTWM_FLOAT_F8_5,  /* label(1, 2, 5): float8_e4m3, exponent and a mantissa bit */
    PTWM_FLOAT_F8_6,  /* label(1, 1, 6): float8_e5m2, the same */
    PTWM_FLOAT_I8_5,  /* label(1, 3, 5): no float, but bytes of quantised weights, coded like one */
    PTWM_N_FLOAT_KINDS
};
/* Their parameters, as constants, so that compilers specialise what is called with them. */
struct ptwm_float_step {
    uint8_t width, shift, bits;
};

static const struct ptwm_float_step ptwm_float_steps[PTWM_N_FLOAT_KINDS] = {
    [PTWM_FLOAT_NONE] = { 0, 0, 0 },  [PTWM_FLOAT_B16_9] = { 2, 6, 9 }, [PTWM_FLOAT_B16_8] = { 2, 7, 8 },
    [PTWM_FLOAT_F32_9] = { 4, 6, 9 }, [PTWM_FLOAT_F32_8] = { 4, 7, 8 }, [PTWM_FLOAT_F16_6] = { 2, 9, 6 },
    [PTWM_FLOAT_F8_5] = { 1, 2, 5 },  [PTWM_FLOAT_F8_6] = { 1, 1, 6 },  [PTWM_FLOAT_I8_5] = { 1, 3, 5 },
};

/* The kind of a chain that is one such step and nothing else, or PTWM_FLOAT_NONE. */
enum ptwm_float_kind ptwm_float_kind_of(const struct ptwm_parsed_chain *chain);

static inline unsigned ptwm_float_width(enum ptwm_float_kind kind)
{
    return ptwm_float_steps[kind].width;
}

/* Of a symbol. */
static inline unsigned ptwm_float_bits(enum ptwm_float_kind kind)
{
    return ptwm_float_steps[kind].bits;
}

static inline unsigned ptwm_float_rest_bits(enum ptwm_float_kind kind)
{
    return (ptwm_float_width(kind) == 1 ? 8u : 16u) - ptwm_float_bits(kind);
}

/* Low planes: 0 or 1. */
static inline unsigned ptwm_float_n_low(enum ptwm_float_kind kind)
{
    return ptwm_float_width(kind) == 4;
}

/* The symbols of n elements, before shifts. */
void ptwm_float_symbols(enum ptwm_float_kind kind, const uint8_t *raw, size_t n, uint16_t *symbols);

/*
 * The bins of n elements, each at its ptwm_label_place; first is that of a range of bins. shift has each element's
 * shift (below 2^bits), or is NULL.
 */
void ptwm_float_bins(enum ptwm_float_kind kind, const uint8_t *raw, size_t n, uint16_t first, const uint16_t *shift,
                     uint8_t *bins);
/* Adds n bins to a histogram, of PTWM_MAX_COUNTED_UNIT elements at most. */
void ptwm_add_bins(const uint8_t *bins, size_t n, uint16_t histogram[PTWM_N_BINS]);
/* Adds those of n <= 512 elements. */
void ptwm_float_count(enum ptwm_float_kind kind, const uint8_t *raw, size_t n, uint16_t first, const uint16_t *shift,
                      uint16_t histogram[PTWM_N_BINS]);
/* The labels map[b] of elements whose bins b would be those of ptwm_float_bins; returns whether any is above 127. */
bool ptwm_float_labels(enum ptwm_float_kind kind, const uint8_t *raw, size_t n, uint16_t first, const uint16_t *shift,
                       const uint8_t map[PTWM_N_BINS], uint8_t *labels);

/* Packs the rests of n elements into ptwm_rest_nbytes(n, rest_bits) bytes. */
void ptwm_float_rests(enum ptwm_float_kind kind, const uint8_t *raw, size_t n, uint8_t *packed);
/* The low halves of n elements of 4 bytes, 2 bytes each; returns their OR. */
uint16_t ptwm_float_lows(const uint8_t *raw, size_t n, uint8_t *low);
#endif
