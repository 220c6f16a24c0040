/*
 * A segment's tail (FORMAT.md, section 4): how its chunks are laid out and what decoding them takes.
 */
#ifndef PTWM_SEGMENT_H
#define PTWM_SEGMENT_H

#include "chain.h"
#include "file.h"
#include "label.h"
#include "manifest.h"

struct ptwm_plane_record {
    uint32_t stored_nbytes;
    uint32_t crc; /* if the segment is checked */
    uint8_t codec;
};

struct ptwm_tail {
    const struct ptwm_allocator *allocator;
    struct ptwm_segment_record segment;
    struct ptwm_parsed_chain chain;
    uint64_t chunk_nbytes;
    uint64_t n_chunks;
    struct ptwm_plane_record *planes; /* of chunk 0, of chunk 1, ... */
    uint64_t *chunk_offset;           /* from the segment's start; n_chunks + 1, the last is where the tail begins */
    struct ptwm_label_model model;    /* if chain.label */
};

/* Prepares a tail for chunks that are yet to be made: everything but the records of the planes. PTWM_ERR_MEMORY. */
enum ptwm_status ptwm_tail_init(struct ptwm_tail *tail, const struct ptwm_allocator *allocator,
                                const struct ptwm_segment_record *segment, const struct ptwm_parsed_chain *chain,
                                uint64_t chunk_nbytes);
/* Reads and checks the tail of a segment of an untrusted file. On success release it with ptwm_tail_release. */
enum ptwm_status ptwm_tail_read(const struct ptwm_file *file, const struct ptwm_segment_record *segment,
                                const struct ptwm_allocator *allocator, struct ptwm_tail *tail,
                                struct ptwm_error *error);
void ptwm_tail_release(struct ptwm_tail *tail);
/* Appends the tail's bytes, CRC included. */
enum ptwm_status ptwm_tail_write(const struct ptwm_tail *tail, struct ptwm_bytes *bytes);

/* Where a chunk begins that follows position (both from the segment's start). */
uint64_t ptwm_chunk_position(uint64_t position, uint32_t segment_flags);
/* Raw bytes of a chunk: chunk_nbytes, less for the last. */
size_t ptwm_tail_chunk_nbytes(const struct ptwm_tail *tail, uint64_t chunk);
/* The records of a chunk's planes. */
struct ptwm_plane_record *ptwm_tail_chunk_planes(const struct ptwm_tail *tail, uint64_t chunk);
/* The sum of a chunk's stored planes. */
uint64_t ptwm_tail_chunk_stored_nbytes(const struct ptwm_tail *tail, uint64_t chunk);
/* The position of a chunk's first element in the segment, for columns; 0 if the chain has no label step. */
uint64_t ptwm_tail_first_element(const struct ptwm_tail *tail, uint64_t chunk);
struct ptwm_shifts ptwm_tail_shifts(const struct ptwm_tail *tail);

#endif
