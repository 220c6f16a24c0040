/*
 * Choosing a chain for a segment.
 */
#ifndef PTWM_CHOOSE_H
#define PTWM_CHOOSE_H

#include "segment_encode.h"

/*
 * Whether 64-bit words of the data come again within a chunk, at distances that are multiples of 8 bytes, so often that zstd
 * may find more than statistics do. repetition.c
 */
bool ptwm_is_repetitive(const uint8_t *data, uint64_t nbytes, uint64_t chunk_nbytes);

/*
 * Prepares the tail of a segment that is coded with a chain: cuts the data into chunks and units. Rows stay whole where
 * that is possible. PTWM_ERR_MEMORY.
 */
enum ptwm_status ptwm_plan_tail(const struct ptwm_encode_spec *spec, const struct ptwm_parsed_chain *chain,
                                struct ptwm_tail *tail);

/*
 * Chooses by a small sample among chains of which the first is one of floats with a fast way. False if the sample speaks
 * against the label chains or says too little. choice->chain is the best label chain; what the best of the others would
 * cost, in choice->rival_bits for each choice->n_bits of raw data, is yet to be compared with what the model found for the
 * whole window costs.
 */
struct ptwm_sampled_choice {
    size_t chain;
    uint64_t rival_bits, n_bits;
    uint64_t low_bits; /* of the low planes of the label chain */
};
bool ptwm_sample_chains(const struct ptwm_encode_spec *spec, struct ptwm_sampled_choice *choice);

/* Estimates how many bytes a chain would take for the first window of the data. */
enum ptwm_status ptwm_estimate_chain(const struct ptwm_encode_spec *spec, const struct ptwm_parsed_chain *chain,
                                     uint64_t *cost_nbytes, struct ptwm_error *error);

#endif
