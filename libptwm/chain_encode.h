/*
 * Encoding a segment with one chain: windows of chunks, each with its model, each chunk's planes coded on any thread and
 * written in order.
 */
#ifndef PTWM_CHAIN_ENCODE_H
#define PTWM_CHAIN_ENCODE_H

#include "choose.h"

/*
 * Encodes a segment as ptwm_segment_encode does, but with this chain. If
 * rival is not NULL, *is_beaten (which may be NULL otherwise) tells whether other chains promise to be better; then nothing
 * has been written.
 */
enum ptwm_status ptwm_chain_encode(const struct ptwm_encode_spec *spec, const struct ptwm_parsed_chain *chain,
                                   enum ptwm_zstd_use zstd, const struct ptwm_sampled_choice *rival, bool *is_beaten,
                                   struct ptwm_output *output, struct ptwm_segment_record *record,
                                   struct ptwm_error *error);

#endif
