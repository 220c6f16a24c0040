/*
 * What Huffman and byte rANS share: counting bytes, and the set of byte values that occur, which opens their planes
 * (FORMAT.md, section 6). codec.c
 */
#ifndef PTWM_SYMBOL_SET_H
#define PTWM_SYMBOL_SET_H

#include "bits.h"

#define PTWM_SYMBOL_SET_MAX_NBYTES 34u

/* The values that occur, ascending. */
struct ptwm_symbol_set {
    unsigned n;
    uint8_t symbols[256];
};

/*
 * Counts bytes in four quarters: quarter j is the ceil(n / 4) bytes from j * ceil(n / 4) on, or what there is of them.
 * n < 2^32.
 */
void ptwm_count_quarters(const uint8_t *src, size_t n, uint32_t histograms[4][256]);
/* The same of them all. */
void ptwm_count_bytes(const uint8_t *src, size_t n, uint32_t histogram[256]);

void ptwm_symbol_set_from_histogram(struct ptwm_symbol_set *set, const uint32_t histogram[256]);
/* Stores a set that is not empty; returns its length. */
size_t ptwm_symbol_set_store(const struct ptwm_symbol_set *set, uint8_t *dst);
/* Reads one; the cursor fails if it is malformed. */
void ptwm_symbol_set_load(struct ptwm_symbol_set *set, struct ptwm_cursor *cursor);

#endif
