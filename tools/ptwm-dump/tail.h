/*
 * A segment's tail (FORMAT.md, section 4): chain, model and chunk table; and where its chunks and planes lie.
 */
#ifndef DUMP_TAIL_H
#define DUMP_TAIL_H

#include "chain.h"
#include "manifest.h"
#include "model.h"

/* How a plane's bytes were found to be. */
enum dump_plane_state {
    DUMP_PLANE_UNCHECKED,
    DUMP_PLANE_NO_CRC,
    DUMP_PLANE_GOOD,
    DUMP_PLANE_BAD,
    DUMP_PLANE_UNREADABLE
};

struct dump_record {
    uint64_t offset; /* in the file */
    uint64_t stored_nbytes;
    uint32_t crc;
    uint8_t codec;
    enum dump_plane_state state; /* set by check_segment */
    double entropy_nbytes; /* set by stats_segment: what its elements' frequencies alone would take; < 0: unknown */
};

struct dump_tail {
    uint64_t number; /* of the segment */
    struct dump_segment segment;
    uint64_t offset; /* of the tail, in the file */
    uint8_t *bytes;  /* NULL: cannot be read */
    enum dump_state crc_state;
    bool has_chain; /* chain and chunk_nbytes were read and are legal */
    struct dump_chain chain;
    uint8_t chain_bytes[32];
    size_t chain_nbytes;
    uint64_t chunk_nbytes;
    uint64_t n_chunks;
    bool has_model; /* as far as it goes */
    struct dump_model model;
    struct dump_record *records; /* of chunk 0's planes, of chunk 1's, ... */
    uint64_t n_records;          /* those that were read: whole chunks */
    bool is_complete;
};

/* Reads the tail of segment number number. End with tail_release, whatever happens. */
void tail_read(const struct dump_view *view, const struct dump_manifest *manifest, uint64_t number,
               struct dump_tail *tail, struct dump_problems *problems, const struct scan_sink *sink);
void tail_release(struct dump_tail *tail);

static inline uint64_t tail_n_known_chunks(const struct dump_tail *tail)
{
    return tail->has_chain ? tail->n_records / tail->chain.n_planes : 0;
}

static inline struct dump_record *tail_records(const struct dump_tail *tail, uint64_t chunk)
{
    return tail->records + chunk * tail->chain.n_planes;
}

/* Raw bytes of a chunk. */
uint64_t tail_chunk_nbytes(const struct dump_tail *tail, uint64_t chunk);

#endif
