/*
 * Choosing a chain for a segment.
 */
#ifndef PTWM_CHOOSE_H
#define PTWM_CHOOSE_H

#include "segment_encode.h"

/*
 * Whether 64-bit words of the data come again within a chunk, at distances that are multiples of 8 bytes, so often that
 * zstd may find more than statistics do. repetition.c
 */
bool ptwm_is_repetitive(const uint8_t *data, uint64_t nbytes, uint64_t chunk_nbytes);
/* The same, with the data's ptwm_xxh3_64: both are bound by memory, which is read once. */
bool ptwm_hash_repetitive(const uint8_t *data, uint64_t nbytes, uint64_t chunk_nbytes, uint64_t *hash);

/*
 * Prepares the tail of a segment that is coded with a chain: cuts the data into chunks and units. Rows stay whole where
 * that is possible. PTWM_ERR_MEMORY.
 */
enum ptwm_status ptwm_plan_tail(const struct ptwm_encode_spec *spec, const struct ptwm_parsed_chain *chain,
                                struct ptwm_tail *tail);

/*
 * Compares chains by a small sample; the first chain is one of floats with a fast way. False if the sample cannot tell.
 * label and rival are the best label chain and the best of the others. If rival would cost less in the sample, by
 * advantage_bits for each n_elements elements, the classes of a model for the whole window may yet make up for that.
 */
struct ptwm_sampled_choice {
    size_t label, rival;
    uint64_t rival_bits;    /* for n_elements, without tables and the like */
    int64_t advantage_bits; /* negative if the label chain is better anyhow */
    uint64_t head_bits;     /* what rival's tables and the like take in a chunk */
    uint64_t n_elements;
    bool is_hopeless;       /* the advantage is more than any classes can gain */
};
bool ptwm_sample_chains(const struct ptwm_encode_spec *spec, struct ptwm_sampled_choice *choice);

/*
 * Whether a chain is worth an attempt, by a look at a sample. Label rANS over whole bytes is for few values.
 */
bool ptwm_chain_is_promising(const struct ptwm_encode_spec *spec, const struct ptwm_parsed_chain *chain);

/*
 * Whether zstd makes pieces of the bytes smaller than coding each byte by its frequency does. Where it does not, its attempts
 * would be most of the encoding. PTWM_ERR_MEMORY, or what zstd fails with.
 */
enum ptwm_status ptwm_zstd_may_help(const struct ptwm_encode_spec *spec, bool *helps, struct ptwm_error *error);

/*
 * About what the byte planes of elements of width bytes, at least 8 elements, take with zstd or by bytes' frequencies,
 * whichever is less for each plane. *finds_order: zstd makes some plane smaller whose bytes are all as frequent. Errors as above.
 */
enum ptwm_status ptwm_zstd_estimate(const struct ptwm_encode_spec *spec, unsigned width, uint64_t *nbytes,
                                    bool *finds_order, struct ptwm_error *error);

/* Estimates how many bytes a chain would take for the first window of the data. */
enum ptwm_status ptwm_estimate_chain(const struct ptwm_encode_spec *spec, const struct ptwm_parsed_chain *chain,
                                     uint64_t *cost_nbytes, struct ptwm_error *error);

#endif
