/*
 * Chains (FORMAT.md, section 5): which planes a chunk has, and how long they are.
 */
#ifndef DUMP_CHAIN_H
#define DUMP_CHAIN_H

#include "scan.h"

enum { DUMP_MAX_STEPS = 8, DUMP_MAX_PLANES = 16 };

enum dump_step_kind { DUMP_STEP_DELTA = 1, DUMP_STEP_BYTES = 2, DUMP_STEP_LABEL = 3 };

struct dump_step {
    uint8_t kind, width, shift, bits;
};

struct dump_chain {
    uint32_t n_steps;
    struct dump_step steps[DUMP_MAX_STEPS];
    bool has_label;
    struct dump_step label; /* if has_label */
    uint32_t n_planes;
    enum ptwm_plane_kind planes[DUMP_MAX_PLANES];
    uint64_t granule_nbytes; /* raw lengths are multiples of it */
};

/* Reads the chain's nbytes bytes. What is wrong is a problem of the scan; false if there are no planes to go on with.
 */
bool chain_read(struct scan *scan, uint64_t nbytes, struct dump_chain *chain);

/* "delta(2) label(2, 6, 9)", or "none". */
void chain_text(const struct dump_chain *chain, char *to, size_t capacity);

/* Elements of the label step in raw_nbytes bytes. */
uint64_t chain_n_elements(const struct dump_chain *chain, uint64_t raw_nbytes);
/* The length of a plane of a chunk of raw_nbytes bytes. */
uint64_t chain_plane_nbytes(const struct dump_chain *chain, uint32_t plane, uint64_t raw_nbytes);
/* Whether symbols take two bytes in their plane. */
bool chain_is_wide(const struct dump_chain *chain);

const char *chain_plane_name(enum ptwm_plane_kind kind);

#endif
