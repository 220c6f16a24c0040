/*
 * What the kernels of fused decoding work on (label_fused.c drives them). A kernel decodes blocks of 512 elements: 16
 * rANS steps of 32 lanes each give the symbols, the column shifts are added, the rest and low planes merged in, and
 * finished elements stored. A group is 128 elements, one step of each lane; the class may change from group to group.
 */
#ifndef PTWM_LABEL_KERNEL_H
#define PTWM_LABEL_KERNEL_H

#include "label.h"

#if defined(__GNUC__)
#define PTWM_ALIGNED(n) __attribute__((aligned(n)))
#else
#define PTWM_ALIGNED(n)
#endif

/*
 * Sanitizers multiply the code, and compilers then take minutes over what is unrolled and copied here; those that do not
 * optimise take a minute and 2.6 GB.
 */
#if defined(__SANITIZE_ADDRESS__) || !defined(__OPTIMIZE__)
#define PTWM_FEW_COPIES 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define PTWM_FEW_COPIES 1
#endif
#endif

/*
 * PTWM_INLINE: of the kernels' bodies each instance has its own copy, with its constants in it. PTWM_UNROLL, before a
 * loop whose arrays are to be registers: unrolls it whatever the level of optimisation. n: its rounds.
 */
#if defined(PTWM_FEW_COPIES) || !defined(__GNUC__)
#define PTWM_INLINE static inline
#define PTWM_UNROLL(n)
#else
#define PTWM_INLINE static inline __attribute__((always_inline))
#if defined(__clang__)
#define PTWM_UNROLL(n) _Pragma("clang loop unroll(full)")
#else
#define PTWM_PRAGMA(text) _Pragma(#text)
#define PTWM_UNROLL(n) PTWM_PRAGMA(GCC unroll n)
#endif
#endif

/* What is decoded: bits of rest and whether a low plane follows the unit. */
enum ptwm_kernel_kind {
    PTWM_KERNEL_REST7,     /* label(2, 6, 9) */
    PTWM_KERNEL_REST8,     /* label(2, 7, 8) */
    PTWM_KERNEL_REST7_LOW, /* label(4, 6, 9) */
    PTWM_KERNEL_REST8_LOW, /* label(4, 7, 8) */
    PTWM_KERNEL_REST10,    /* label(2, 9, 6) */
    PTWM_KERNEL_REST3,     /* label(1, 2, 5) */
    PTWM_KERNEL_REST2,     /* label(1, 1, 6) */
    PTWM_KERNEL_INT8,      /* label(1, 3, 5): 3 bits of rest, the lowest */
    PTWM_N_KERNEL_KINDS
};

/* Of which stored planes a kernel computes the CRC on its way. */
enum ptwm_kernel_check {
    PTWM_KERNEL_NO_CRC,
    PTWM_KERNEL_CRC,     /* of the words and the rest plane */
    PTWM_KERNEL_CRC_LOW, /* and of the low plane */
    PTWM_N_KERNEL_CHECKS
};

/* What a model says of columns. */
enum ptwm_kernel_columns {
    PTWM_KERNEL_NO_SHIFTS,
    PTWM_KERNEL_SHIFTS,
    PTWM_KERNEL_PHASES, /* and shifts */
    PTWM_N_KERNEL_COLUMNS
};

enum {
    PTWM_KERNEL_BLOCK = 512,
    PTWM_KERNEL_LANES = 128,
    PTWM_KERNEL_GROUPS = PTWM_KERNEL_BLOCK / PTWM_KERNEL_LANES,
    /* Words that a block may look at: one for each element, and a vector that is loaded and not used. */
    PTWM_KERNEL_WORDS = PTWM_KERNEL_BLOCK + 32
};

/*
 * A class's tables for vectors of u16. By bucket: the alias table, and of the own label [0] and the alias [1] the
 * frequencies and the symbols, those at their place in the unit.
 */
struct ptwm_kernel_table16 {
    uint16_t div[PTWM_MAX_LABELS];
    uint16_t adj[PTWM_MAX_LABELS];
    uint16_t frequency[2][PTWM_MAX_LABELS];
    uint16_t symbol[2][PTWM_MAX_LABELS];
    uint16_t ali[PTWM_MAX_LABELS];
} PTWM_ALIGNED(64);

/* The same for look-ups of bytes. Thresholds are multiples of 256, so that their high bytes say all. */
struct ptwm_kernel_table8 {
    uint8_t div_high[PTWM_MAX_LABELS];
    uint8_t other[PTWM_MAX_LABELS]; /* the bucket's number xor its alias */
    uint8_t adj_low[PTWM_MAX_LABELS], adj_high[PTWM_MAX_LABELS];
    uint8_t frequency_low[PTWM_MAX_LABELS], frequency_high[PTWM_MAX_LABELS];
    uint8_t symbol_low[PTWM_MAX_LABELS], symbol_high[PTWM_MAX_LABELS];
} PTWM_ALIGNED(64);

/* The same for one look-up an element: for each bucket the entry of its own part, then that of its alias part. */
struct ptwm_kernel_entry {
    uint16_t frequency;
    uint16_t adj;
    uint16_t symbol;
    uint16_t unused; /* makes it one word to copy */
};
struct ptwm_kernel_table_scalar {
    uint16_t div[PTWM_MAX_LABELS];
    struct ptwm_kernel_entry entry[2 * PTWM_MAX_LABELS];
};

/* One for each class, or two, those of phases 0 and 1. */
union ptwm_kernel_tables {
    struct ptwm_kernel_table16 of16[2 * PTWM_MAX_CLASSES];
    struct ptwm_kernel_table8 of8[2 * PTWM_MAX_CLASSES];
    struct ptwm_kernel_table_scalar scalar[2 * PTWM_MAX_CLASSES];
};

struct ptwm_kernel_job {
    /* The lanes' states: x = high : low. */
    uint16_t high[PTWM_KERNEL_LANES] PTWM_ALIGNED(64);
    uint16_t low[PTWM_KERNEL_LANES] PTWM_ALIGNED(64);
    union ptwm_kernel_tables tables;
    const uint8_t *group_class; /* of the groups to come */
    uint8_t *out;
    bool is_streamed;           /* out may be stored past the caches */
    const uint8_t *rest;
    const uint8_t *low_plane;
    size_t low_step;            /* bytes of the low plane from block to block: 0 for a block that repeats */
    const uint8_t *words;
    const uint8_t *words_limit; /* a block may begin with words <= words_limit */
    const uint8_t *shifts;      /* as struct ptwm_label_model's lifted */
    size_t column, column_step, n_columns; /* of the next block; column_step < n_columns */
    /*
     * CRC registers (neither inverted nor finished) of the planes' bytes up to here, but for the words: those are taken
     * at crc_rate times 8 bytes for each two steps, wherever the decoder may be. So the number of loads is the same
     * each time, and does not depend on the steps.
     */
    uint32_t rest_crc, low_crc, words_crc;
    size_t crc_rate;
    const uint8_t *crc_words, *crc_words_end; /* in the stored plane */
};

/*
 * Decodes n_blocks blocks, or fewer if a block would begin behind words_limit; returns how many. All positions and
 * registers move on.
 */
typedef size_t (*ptwm_kernel_function)(struct ptwm_kernel_job *job, size_t n_blocks);

/*
 * The kernels of an instruction set. Where a checking one is NULL, the driver computes CRCs behind the plain one. Where there
 * are none without shifts, those with shifts serve, of zeros; where there are none for phases, no model has them.
 */
struct ptwm_kernel_set {
    /* n_phases: 1 or 2, tables for each class. position: of the symbol in the unit. */
    void (*build_tables)(union ptwm_kernel_tables *tables, const struct ptwm_label_set *set, unsigned n_phases,
                         unsigned position);
    ptwm_kernel_function decode[PTWM_N_KERNEL_COLUMNS][PTWM_N_KERNEL_KINDS][PTWM_N_KERNEL_CHECKS];
};

/* What a kind makes of a block. */
struct ptwm_kernel_shape {
    size_t rest_nbytes;  /* of a block */
    size_t out_nbytes;   /* of a block */
    size_t shift_nbytes; /* of a column */
    bool has_low;
};

/* Whether elements are bytes, whose lanes have an order of their own. */
PTWM_INLINE bool ptwm_kernel_is_bytes(enum ptwm_kernel_kind kind)
{
    return kind == PTWM_KERNEL_REST3 || kind == PTWM_KERNEL_REST2 || kind == PTWM_KERNEL_INT8;
}

PTWM_INLINE struct ptwm_kernel_shape ptwm_kernel_shape(enum ptwm_kernel_kind kind)
{
    const bool has_low = kind == PTWM_KERNEL_REST7_LOW || kind == PTWM_KERNEL_REST8_LOW;
    const size_t rest_bits = kind == PTWM_KERNEL_REST10  ? 10
                             : kind == PTWM_KERNEL_REST3 || kind == PTWM_KERNEL_INT8 ? 3
                             : kind == PTWM_KERNEL_REST2 ? 2
                             : kind == PTWM_KERNEL_REST7 || kind == PTWM_KERNEL_REST7_LOW ? 7
                                                                                          : 8;
    const size_t width = has_low ? 4 : ptwm_kernel_is_bytes(kind) ? 1 : 2;
    const struct ptwm_kernel_shape shape = { 64 * rest_bits, width * PTWM_KERNEL_BLOCK, width == 1 ? 1 : 2, has_low };
    return shape;
}

/* Whether there are kernels for phases: for kinds whose symbols end in a bit of mantissa, as phases are for these. */
PTWM_INLINE bool ptwm_kernel_has_phases(enum ptwm_kernel_kind kind)
{
    return kind != PTWM_KERNEL_REST8 && kind != PTWM_KERNEL_REST8_LOW && kind != PTWM_KERNEL_INT8;
}

/* A table's frequencies in columns of a phase. */
PTWM_INLINE const uint16_t *ptwm_kernel_frequencies(const struct ptwm_label_table *table, unsigned phase)
{
    return phase == 0 ? table->frequency : table->second;
}

/* The column of the block behind this one. */
PTWM_INLINE size_t ptwm_kernel_next_column(const struct ptwm_kernel_job *job, size_t column)
{
    column += job->column_step;
    return column < job->n_columns ? column : column - job->n_columns;
}

#endif
