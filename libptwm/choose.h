/*
 * Choosing a chain for a segment.
 */
#ifndef PTWM_CHOOSE_H
#define PTWM_CHOOSE_H

#include "segment_encode.h"

/* Whether 64-bit words of the data come again within a chunk so often that zstd may find more than statistics do. */
bool ptwm_is_repetitive(const uint8_t *data, uint64_t nbytes, uint64_t chunk_nbytes);

/*
 * Prepares the tail of a segment that is coded with a chain: cuts the data into chunks and units. Rows stay whole where
 * that is possible. PTWM_ERR_MEMORY.
 */
enum ptwm_status ptwm_plan_tail(const struct ptwm_encode_spec *spec, const struct ptwm_parsed_chain *chain,
                                struct ptwm_tail *tail);

/* Estimates how many bytes a chain would take for the first window of the data. */
enum ptwm_status ptwm_estimate_chain(const struct ptwm_encode_spec *spec, const struct ptwm_parsed_chain *chain,
                                     uint64_t *cost_nbytes, struct ptwm_error *error);

#endif
