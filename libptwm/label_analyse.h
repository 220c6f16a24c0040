/*
 * The parts of the analysis of label_analyse.c: what it counts, and its steps. Everything is integer arithmetic in a
 * fixed order, so that the same data gives the same model everywhere.
 *
 *   label_bins.c     which symbols are counted
 *   label_shifts.c   column shifts
 *   label_phases.c   phases: column shifts in half octaves
 *   label_classes.c  how units are divided in classes (expectation maximisation)
 *   label_tables.c   from counts to a class's table
 */
#ifndef PTWM_LABEL_ANALYSE_H
#define PTWM_LABEL_ANALYSE_H

#include "label.h"

/*
 * A unit's histogram has 64 bins: bins 0 .. n - 1 count the symbols that may become labels, OTHER_BIN all the others,
 * and ZERO_BIN symbol 0, which is frequent in sparse weights and far from everything else.
 */
enum {
    PTWM_N_BINS = 64,
    PTWM_SYMBOL_BINS = 62,
    PTWM_OTHER_BIN = 62,
    PTWM_ZERO_BIN = 63,
    PTWM_MAX_COUNTED_UNIT = 32640, /* elements: counts are u16, and signed to some vector instructions */
    PTWM_ANALYSED_CLASSES = 4      /* more gain little, and vector kernels keep the tables of four in registers */
};

struct ptwm_label_bins {
    bool is_range;                 /* symbol[i] = first + i */
    uint16_t first;
    uint32_t n;                    /* at most PTWM_SYMBOL_BINS */
    uint16_t symbol[PTWM_N_BINS];  /* ascending, not 0; [PTWM_ZERO_BIN] is 0 */
};

/*
 * Chooses a range of symbols as bins by the histogram (2^bits entries) of a sample. False if a range would leave too
 * many out; then ptwm_label_list_bins lists the most frequent symbols of a full histogram.
 */
bool ptwm_label_range_bins(struct ptwm_label_bins *bins, const uint32_t *histogram, unsigned bits);
void ptwm_label_list_bins(struct ptwm_label_bins *bins, const uint32_t *histogram, unsigned bits);

/*
 * Where such a sample is taken: number of blocks of PTWM_SAMPLE_BLOCK elements of a window of n;
 * ptwm_label_sample_block says where block number i begins. If n is less than all blocks together, there is one block,
 * all n elements.
 */
enum { PTWM_SAMPLE_BLOCK = 256, PTWM_SAMPLE_BLOCKS = 32, PTWM_SAMPLE_ELEMENTS = PTWM_SAMPLE_BLOCK * PTWM_SAMPLE_BLOCKS };
size_t ptwm_label_sample_blocks(size_t n);
size_t ptwm_label_sample_block(size_t n, size_t i);

/* A window that has been counted. */
struct ptwm_label_counted {
    const struct ptwm_allocator *allocator;
    const struct ptwm_label_bins *bins;
    size_t n;                   /* elements */
    unsigned bits;
    uint32_t unit;              /* at most PTWM_MAX_COUNTED_UNIT */
    size_t n_units;
    const uint16_t *histograms; /* PTWM_N_BINS for each unit */
    const uint16_t *second;     /* NULL, or the same of the elements in columns of phase 1 alone */
};

/* ptwm_label_find_set of label.h, from the counts. *entropy_bits: of all units' bins together. */
enum ptwm_status ptwm_label_divide(const struct ptwm_label_counted *counted, struct ptwm_label_set *set,
                                   uint8_t *classes, uint64_t *cost_bits, uint64_t *entropy_bits);

/* Of the cost of n symbols, what their states carry of a rest plane, if there is one. */
uint64_t ptwm_label_carried_bits(size_t n, uint32_t unit);

/*
 * Assigns each step-th unit of n_units to the class that codes it with the fewest bits (of equals the first), and adds
 * its histogram to the class's counts. Costs are in 1 / 256 bit. With several versions; label_classes.c.
 */
void ptwm_label_assign(const uint16_t *histograms, size_t n_units, size_t step,
                       const int16_t costs[PTWM_ANALYSED_CLASSES][PTWM_N_BINS], uint8_t *classes,
                       uint32_t counts[PTWM_ANALYSED_CLASSES][PTWM_N_BINS]);

/*
 * What table building has to know. exception_cost: of an exception without the label that stands in, in 1 / 65536 bit.
 */
struct ptwm_table_maker {
    const struct ptwm_label_bins *bins;
    unsigned bits;
    uint32_t exception_cost;
};
void ptwm_label_make_table(const struct ptwm_table_maker *maker, const uint32_t counts[PTWM_N_BINS],
                           struct ptwm_label_table *table);
/* Divides the frequencies of a table made of all counts into those of either phase. second: the counts of phase 1. */
void ptwm_label_divide_table(const struct ptwm_table_maker *maker, const uint32_t counts[PTWM_N_BINS],
                             const uint32_t second[PTWM_N_BINS], struct ptwm_label_table *table);
/*
 * What a symbol in each bin costs with a table, in 1 / 65536 bit; exceptions with the label that stands in. frequency:
 * the table's, or its second ones.
 */
void ptwm_label_table_costs(const struct ptwm_table_maker *maker, const struct ptwm_label_table *table,
                            const uint16_t frequency[PTWM_MAX_LABELS], uint64_t costs[PTWM_N_BINS]);

/*
 * ptwm_label_find_shifts of label.h from a sample of rows: those numbered ptwm_label_sample_row(n_rows, n_columns, 0 ..
 * ptwm_label_sample_rows(n_rows, n_columns) - 1), copied one behind the other.
 */
size_t ptwm_label_sample_rows(size_t n_rows, uint32_t n_columns);
size_t ptwm_label_sample_row(size_t n_rows, uint32_t n_columns, size_t i);
enum ptwm_status ptwm_label_find_sampled_shifts(const struct ptwm_allocator *allocator, const uint16_t *symbols,
                                                struct ptwm_column_search *search);

enum { PTWM_SHIFT_WINDOW = 64 }; /* neighbouring symbols that hold the most elements: where columns' means are taken */

/*
 * Whether phases are worth a look, by what columns' mean symbols are above that of all, in 1 / 65536 symbol.
 * element_bits: what an element takes without, in 1 / 65536 bit. search has the shifts found so far.
 */
bool ptwm_label_phases_may_pay(const int32_t *difference, uint64_t element_bits,
                               const struct ptwm_column_search *search);
/* Takes that look, by the same sample, whose window begins with symbol first. PTWM_ERR_MEMORY. */
enum ptwm_status ptwm_label_find_sampled_phases(const struct ptwm_allocator *allocator, const uint16_t *symbols,
                                                uint32_t first, const int32_t *difference, uint64_t element_bits,
                                                struct ptwm_column_search *search);

#endif
