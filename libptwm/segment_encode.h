/*
 * Encoding a segment with the best of several chains.
 */
#ifndef PTWM_SEGMENT_ENCODE_H
#define PTWM_SEGMENT_ENCODE_H

#include "codec.h"
#include "output.h"
#include "segment.h"

enum {
    PTWM_MIN_CHUNK_NBYTES = 4096,
    PTWM_DEFAULT_CHUNK_NBYTES = 1 << 20,
    PTWM_FEW_NBYTES = 512 << 10 /* up to here the tables and states of label rANS count */
};

struct ptwm_encode_memory; /* encode_memory.h */

/* What ptwm_is_repetitive says, if it has been asked. */
enum ptwm_repetition { PTWM_REPETITION_UNKNOWN, PTWM_REPETITION_NONE, PTWM_REPETITION_FOUND };

struct ptwm_encode_spec {
    const uint8_t *data; /* raw bytes, little-endian */
    uint64_t nbytes;     /* at least 1 */
    uint64_t row_nbytes; /* of the data's last axis; 0 if it has no rows */
    enum ptwm_method method;
    const struct ptwm_parsed_chain *chains; /* candidates; each one's granule divides nbytes */
    size_t n_chains;     /* at least 1 */
    bool chains_are_callers; /* not the STANDARD table's: all are tried in full */
    bool plain;          /* for tests: no fast ways, only the general ones, which give the same */
    bool no_labels;      /* leaves symbols to the codecs of bytes: their tables are smaller, if that is what counts */
    bool checked;        /* store CRCs of planes */
    uint64_t chunk_nbytes;
    unsigned threads;
    const struct ptwm_codec_context *context;
    struct ptwm_encode_memory *memory; /* max(1, threads) of them */
    enum ptwm_repetition repetition;
};

/* Whether encoding asks for repetition in data of that method and length, whose first candidate is chain. */
bool ptwm_asks_for_repetition(enum ptwm_method method, uint64_t nbytes, const struct ptwm_parsed_chain *chain);

/*
 * Encodes a segment, appends it to output (with the padding that it needs) and fills *record. Memory beyond the output
 * is bounded by a window of 16 MiB or one chunk, whatever nbytes is. The bytes depend on the spec alone, not on
 * threads.
 */
enum ptwm_status ptwm_segment_encode(const struct ptwm_encode_spec *spec, struct ptwm_output *output,
                                     struct ptwm_segment_record *record, struct ptwm_error *error);

/* Appends zeros up to where a segment with those flags may begin. */
enum ptwm_status ptwm_segment_pad(struct ptwm_output *output, uint32_t flags, struct ptwm_error *error);

#endif
