/*
 * Label rANS (FORMAT.md, section 7): the model that a segment's tail holds, and the coding of symbol planes with it.
 *
 *   label_model.c    reading, writing and checking models; alias tables
 *   label_encode.c   coding a chunk's symbols
 *   label_decode.c   decoding them
 *   label_analyse.c  finding a model for data
 */
#ifndef PTWM_LABEL_H
#define PTWM_LABEL_H

#include "bits.h"
#include "chain.h"
#include "memory.h"
#include "ptwm.h"

enum {
    PTWM_MAX_LABELS = 32,
    PTWM_MAX_CLASSES = 8,
    PTWM_MAX_SETS = 65536,
    PTWM_MAX_UNIT = 1 << 20,
    PTWM_MAX_COLUMNS = 1 << 20,
    PTWM_UNIT_GRANULE = 128, /* units that are no multiples of this take fewer lanes than PTWM_MAX_LANES */
    PTWM_MAX_LANES = 128,
    PTWM_SHIFT_MARGIN = 512,
    PTWM_PHASE = 32, /* what a phase of 1 adds to numbers of labels and buckets where both tables of a class are one */
    PTWM_FREQUENCY_TOTAL = 65536,
    PTWM_FREQUENCY_GRANULE = 8
};

/* One class's labels. Labels n_labels .. 31 have frequency 0 and symbol 0. */
struct ptwm_label_table {
    uint32_t n_labels;
    uint16_t symbol[PTWM_MAX_LABELS];
    uint16_t frequency[PTWM_MAX_LABELS];
    uint16_t second[PTWM_MAX_LABELS]; /* the frequencies in columns of phase 1, if the model has phases */
};

struct ptwm_label_set {
    uint32_t n_classes;
    struct ptwm_label_table classes[PTWM_MAX_CLASSES];
};

/* A segment's model. Begin with { 0 }; end with ptwm_label_model_release. */
struct ptwm_label_model {
    const struct ptwm_allocator *allocator;
    uint8_t width;      /* the label step's parameters */
    uint8_t position;   /* of the symbol in its unit: the step's shift */
    uint8_t bits;
    uint32_t unit;
    uint32_t n_columns; /* 0: no column shifts */
    int16_t *shift;     /* n_columns values in -128 .. 127 */
    uint16_t *wrapped;  /* the same modulo 2^bits, as struct ptwm_shifts wants them */
    /*
     * The same at the symbol's place in the unit, for the kernels: u8 elements for width 1, else u16, which go round
     * once they reach n_columns, for PTWM_SHIFT_MARGIN elements more. So any block of elements has its shifts in one
     * piece. A phase of 1 is bit 5 of an u16, or bit 0 of an u8: bits that the rest has in the unit.
     */
    uint16_t *lifted;
    uint8_t *phase; /* NULL if there are none; else 0 or PTWM_PHASE for each column, going round in the same way */
    uint32_t n_sets;
    uint32_t max_sets; /* that reading accepts */
    uint32_t sets_capacity;
    struct ptwm_label_set *sets;
};

void ptwm_label_model_init(struct ptwm_label_model *model, const struct ptwm_allocator *allocator,
                           const struct ptwm_step *label);
void ptwm_label_model_release(struct ptwm_label_model *model);
/* Sets the column shifts (copied; each in -128 .. 127). PTWM_ERR_MEMORY. */
enum ptwm_status ptwm_label_model_set_shifts(struct ptwm_label_model *model, const int16_t *shift, uint32_t n_columns);
/* Sets the phases of all columns (copied; each 0 or PTWM_PHASE), whose shifts have been set. PTWM_ERR_MEMORY. */
enum ptwm_status ptwm_label_model_set_phases(struct ptwm_label_model *model, const uint8_t *phase);
/* Appends a set (copied). PTWM_ERR_MEMORY. */
enum ptwm_status ptwm_label_model_add_set(struct ptwm_label_model *model, const struct ptwm_label_set *set);
/* Appends the model's fields to a tail / reads and checks them from one (model is initialised). */
enum ptwm_status ptwm_label_model_write(const struct ptwm_label_model *model, struct ptwm_bytes *tail);
enum ptwm_status ptwm_label_model_read(struct ptwm_label_model *model, struct ptwm_cursor *tail,
                                       struct ptwm_error *error);

/* What column shifts take in a tail, with their count: n_columns values in -128 .. 127. */
uint64_t ptwm_label_shifts_nbytes(const int16_t *shift, uint32_t n_columns);
/* What a table takes in a tail. */
size_t ptwm_label_table_nbytes(const struct ptwm_label_table *table, bool has_phases);

/* The alias table of a class. Derived from its frequencies alone; FORMAT.md has the construction. */
struct ptwm_alias_table {
    uint16_t div[PTWM_MAX_LABELS];
    uint16_t adj[PTWM_MAX_LABELS];
    uint16_t ali[PTWM_MAX_LABELS];
    uint16_t frequency[PTWM_MAX_LABELS];
};
void ptwm_alias_build(struct ptwm_alias_table *alias, const uint16_t frequency[PTWM_MAX_LABELS]);

/* The phases of elements that follow each other; without any, those of all columns are 0. */
struct ptwm_phases {
    const uint8_t *of_column; /* PTWM_MAX_LANES, at least, can be read from each column on */
    uint32_t n_columns, column;
};
struct ptwm_phases ptwm_label_phases(const struct ptwm_label_model *model, uint64_t first_element);
/* Those of the next n elements, n <= PTWM_MAX_LANES. */
static inline const uint8_t *ptwm_phases_next(struct ptwm_phases *phases, uint32_t n)
{
    const uint8_t *next = phases->of_column + phases->column;
    phases->column = (phases->column + n) % phases->n_columns;
    return next;
}

/* The lane of element i: the identity modulo lanes, but for 128 lanes and width 1. */
static inline uint32_t ptwm_label_lane(uint32_t i, uint32_t n_lanes, uint8_t width)
{
    if (n_lanes == 128 && width == 1) {
        uint32_t j = i % 64;
        return 64 * (i / 64 % 2) + 32 * (j % 2) + j / 2;
    }
    return i % n_lanes;
}

/*
 * Where kernels of the encoder have the label of element i of n, counted from a unit's beginning: in each whole
 * PTWM_PAIR_BLOCK, those of elements j and 32 + j are neighbours. So two vectors of u16 are one of bytes without any
 * permutation, and elements of width 1, which stay where they are, are on the same lanes as others.
 */
enum { PTWM_PAIR_BLOCK = 64 };
static inline size_t ptwm_label_place(size_t i, size_t n, uint8_t width)
{
    if (width == 1 || i >= n / PTWM_PAIR_BLOCK * PTWM_PAIR_BLOCK)
        return i;
    return i / PTWM_PAIR_BLOCK * PTWM_PAIR_BLOCK + 2 * (i % (PTWM_PAIR_BLOCK / 2)) +
           i % PTWM_PAIR_BLOCK / (PTWM_PAIR_BLOCK / 2);
}
/* The element whose label is there. */
static inline size_t ptwm_label_placed(size_t place, size_t n, uint8_t width)
{
    if (width == 1 || place >= n / PTWM_PAIR_BLOCK * PTWM_PAIR_BLOCK)
        return place;
    return place / PTWM_PAIR_BLOCK * PTWM_PAIR_BLOCK + place % PTWM_PAIR_BLOCK / 2 + place % 2 * (PTWM_PAIR_BLOCK / 2);
}

/*
 * Finds a set for one window of a segment. symbols: n >= 1 symbols with the shifts already subtracted, each < 2^bits.
 * unit: of the model, at most 32640. phases: from the first symbol's on, if the model has some, else NULL.
 * *set receives the tables, classes[0 .. ceil(n / unit)) the class of each unit,
 * *cost_bits an estimate of the coded size in bits (words, class codes, exceptions and tables, and the heads of chunks
 * of 2^19 symbols). Deterministic on every machine: integer arithmetic only. PTWM_ERR_MEMORY.
 */
enum ptwm_status ptwm_label_find_set(const struct ptwm_allocator *allocator, const uint16_t *symbols, size_t n,
                                     unsigned bits, uint32_t unit, const struct ptwm_phases *phases,
                                     struct ptwm_label_set *set, uint8_t *classes, uint64_t *cost_bits);

/* What columns are to be looked at for their shifts, and what is found. */
struct ptwm_column_search {
    size_t n_rows;
    uint32_t n_columns;
    unsigned bits;       /* of a symbol */
    uint32_t step;       /* symbols per octave: 2 to the number of mantissa bits in the symbol */
    uint32_t other_bits; /* what an element takes beside its symbol */
    int16_t *shift;      /* n_columns, multiples of step */
    uint8_t *phase;      /* n_columns, each 0 or PTWM_PHASE */
    bool pays;           /* coding with these shifts is estimated to be smaller, their own size included */
    bool has_phases;     /* and with these phases by a 500th of all that is stored at least */
};
/*
 * Finds column shifts in symbols, n_rows rows of n_columns. What does not pay is left undefined. PTWM_ERR_MEMORY.
 */
enum ptwm_status ptwm_label_find_shifts(const struct ptwm_allocator *allocator, const uint16_t *symbols,
                                        struct ptwm_column_search *search);

/*
 * What n symbols' label rANS can carry of the chunk's rest plane: how many of its first bytes, which then need not be
 * stored. Two for each lane; 0 if the plane is shorter, or if they are all the same, as they are if all of it is constant.
 */
size_t ptwm_label_n_carried(const uint8_t *rest, uint64_t rest_nbytes, size_t n, uint32_t unit);

/* A capacity that ptwm_label_encode never exceeds for n symbols. */
size_t ptwm_label_bound(size_t n);
/*
 * Codes a chunk of n >= 1 symbols with set number set of model; classes has the class of each unit of the chunk. dst
 * has room for ptwm_label_bound(n) bytes. Symbols that the class's table lacks become exceptions. carried: two bytes a
 * lane that decoding is to give back, or NULL. first_element: of the chunk in its segment. PTWM_ERR_MEMORY.
 */
enum ptwm_status ptwm_label_encode(const struct ptwm_label_model *model, uint32_t set, const uint8_t *classes,
                                   uint64_t first_element, const uint16_t *symbols, size_t n, const uint8_t *carried,
                                   uint8_t *dst, size_t *dst_nbytes, struct ptwm_error *error);
/*
 * Decodes a chunk of exactly n >= 1 symbols from exactly src_nbytes untrusted bytes. Each symbol stored is < 2^bits.
 * first_element: of the chunk in its segment. n_carried: 0, or the number of bytes at carried, which must be what the
 * chunk carries: two a lane.
 * PTWM_ERR_PLANE, PTWM_ERR_CHECKSUM (the head's CRC), PTWM_ERR_MEMORY.
 */
enum ptwm_status ptwm_label_decode(const struct ptwm_label_model *model, uint64_t first_element, const uint8_t *src,
                                   size_t src_nbytes, uint16_t *symbols, size_t n, uint8_t *carried, size_t n_carried,
                                   struct ptwm_error *error);

#endif
