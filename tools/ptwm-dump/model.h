/*
 * The model of label rANS that a segment's tail holds (FORMAT.md, section 7.1).
 */
#ifndef DUMP_MODEL_H
#define DUMP_MODEL_H

#include "scan.h"

enum { DUMP_MAX_LABELS = 32, DUMP_MAX_CLASSES = 8 };

struct dump_table {
    uint32_t n_labels;
    uint16_t symbol[DUMP_MAX_LABELS];
    uint32_t frequency[DUMP_MAX_LABELS];
    uint32_t second[DUMP_MAX_LABELS]; /* in columns of phase 1; if the model has phases */
};

struct dump_set {
    uint32_t n_classes;
    size_t first_table;
};

struct dump_model {
    uint64_t unit;
    size_t n_columns;
    int base;
    unsigned width;
    int16_t *shift;        /* of each column */
    const uint8_t *phases; /* a bit stream of n_columns bits, in the bytes that were scanned; NULL: none */
    uint64_t n_sets_claimed;
    struct dump_set *sets;
    size_t n_sets; /* those that were read */
    struct dump_table *tables;
    size_t n_tables;
};

/* bits: the label step's. False if the fields behind the model cannot be found. End with model_release in any case. */
bool model_read(struct scan *scan, unsigned bits, struct dump_model *model);
void model_release(struct dump_model *model);

/* Bits a label under n frequencies that sum to 65536. */
double model_entropy(const uint32_t *frequencies, uint32_t n);

#endif
