/*
 * Chains: how a chunk's raw bytes become planes and planes become bytes again (FORMAT.md, section 5).
 */
#ifndef PTWM_CHAIN_H
#define PTWM_CHAIN_H

#include <stdbool.h>

#include "ptwm.h"

enum {
    PTWM_CHAIN_MAX_STEPS = 8,
    PTWM_CHAIN_MAX_NBYTES = 32, /* of all legal encodings */
    PTWM_MAX_PLANES = 16,
    PTWM_MAX_CHUNK_NBYTES = 1 << 26,
    PTWM_MIN_SHARED_CHUNK_NBYTES = 1 << 10 /* of chunks that are not all of their segment */
};

enum ptwm_step_kind { PTWM_STEP_DELTA = 1, PTWM_STEP_BYTES = 2, PTWM_STEP_LABEL = 3 };

struct ptwm_step {
    enum ptwm_step_kind kind;
    uint8_t width; /* bytes of an element; 0 for label steps on 4-bit elements */
    uint8_t shift; /* label steps only */
    uint8_t bits;  /* label steps only */
};

/* What one plane is; its length depends on the chunk. */
struct ptwm_plane_spec {
    enum ptwm_plane_kind kind;
    uint8_t element_nbytes; /* of what a constant repeats: 1 or 2 */
};

/* A parsed chain. */
struct ptwm_parsed_chain {
    uint8_t bytes[PTWM_CHAIN_MAX_NBYTES];
    size_t nbytes;
    uint32_t n_steps;
    struct ptwm_step steps[PTWM_CHAIN_MAX_STEPS];
    uint32_t n_planes;
    struct ptwm_plane_spec planes[PTWM_MAX_PLANES];
    uint32_t granule_nbytes; /* raw lengths must be multiples of this */
    const struct ptwm_step *label; /* the label step, or NULL (points into steps) */
};

/* Parses and checks untrusted bytes. PTWM_ERR_CHAIN. A parsed chain is moved with ptwm_chain_copy only. */
enum ptwm_status ptwm_chain_parse(const void *bytes, size_t nbytes, struct ptwm_parsed_chain *chain,
                                  struct ptwm_error *error);
void ptwm_chain_copy(struct ptwm_parsed_chain *to, const struct ptwm_parsed_chain *from);

/* Elements of the label step in raw_nbytes bytes. */
uint64_t ptwm_chain_n_elements(const struct ptwm_parsed_chain *chain, uint64_t raw_nbytes);

/* The length of a plane of a chunk of raw_nbytes bytes. */
uint64_t ptwm_plane_nbytes(const struct ptwm_parsed_chain *chain, uint32_t plane, uint64_t raw_nbytes);

/* Column shifts of a label chain's symbols: value[c] is subtracted from symbols in column c, modulo 2^bits. */
struct ptwm_shifts {
    uint32_t n_columns; /* 0: no shifts */
    const uint16_t *value;
};

/*
 * Splits a chunk into planes. planes[p] has room for ptwm_plane_nbytes bytes. scratch has room for raw_nbytes bytes
 * (used by delta steps). first_element is the chunk's position in the segment, for the columns.
 */
void ptwm_chain_split(const struct ptwm_parsed_chain *chain, const struct ptwm_shifts *shifts, uint64_t first_element,
                      const uint8_t *raw, size_t raw_nbytes, uint8_t *const *planes, uint8_t *scratch);

/*
 * The inverse. Fails with PTWM_ERR_PLANE if a symbol is out of range, with PTWM_ERR_PADDING if unused bits are not
 * zero.
 */
enum ptwm_status ptwm_chain_merge(const struct ptwm_parsed_chain *chain, const struct ptwm_shifts *shifts,
                                  uint64_t first_element, uint8_t *raw, size_t raw_nbytes,
                                  const uint8_t *const *planes, struct ptwm_error *error);

#endif
