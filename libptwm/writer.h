/*
 * The writer's inside, for the files that implement its calls:
 *
 *   writer.c          opening, finishing
 *   writer_records.c  which tensors there are, and which have the same bytes
 *   writer_groups.c   making segments; small tensors that wait for theirs
 *   writer_add.c      adding tensors, one or many
 *   writer_copy.c     copying them from other files
 */
#ifndef PTWM_WRITER_H
#define PTWM_WRITER_H

#include <stdbool.h>

#include "chain.h"
#include "encode_memory.h"
#include "manifest.h"
#include "names.h"
#include "output.h"
#include "segment_encode.h"

enum {
    PTWM_GROUP_NBYTES = 256 << 10, /* of raw bytes: what fetching one small tensor may have to decode */
    PTWM_MAX_CANDIDATE_CHAINS = 64
};
#define PTWM_NO_GROUP UINT32_MAX

enum writer_state { WRITER_OPEN, WRITER_FINISHED, WRITER_FAILED };

/* How a tensor is to be coded; what tensors of one group have in common. */
struct recipe {
    uint32_t dtype;
    uint64_t row_nbytes; /* of a small tensor with rows that matter; else 0 */
    enum ptwm_method method;
    bool chains_are_callers;
    size_t n_chains;
    struct ptwm_parsed_chain chains[PTWM_MAX_CANDIDATE_CHAINS];
    enum ptwm_repetition repetition; /* of a single tensor's bytes */
};

/* Small tensors that are waiting. */
struct group {
    struct recipe recipe;
    struct ptwm_bytes raw;
    struct ptwm_bytes members; /* uint64_t indices of tensors */
};

/* A segment of a reader that has been copied. */
struct copied_segment {
    uint64_t token; /* of the reader */
    uint64_t from, to;
    bool used;
};

struct ptwm_writer {
    const struct ptwm_allocator *allocator;
    const struct ptwm_zstd *zstd;
    uint32_t flags;
    unsigned threads;
    struct ptwm_encode_memory *memory; /* of each thread */
    uint64_t chunk_nbytes;
    int level;
    enum writer_state state;
    struct ptwm_output *output;
    struct ptwm_manifest manifest; /* owns the names of its tensors, one by one */
    uint64_t tensors_capacity, segments_capacity;
    uint32_t *group_of; /* of each tensor: the group where it waits, or PTWM_NO_GROUP */
    struct ptwm_name_index names;
    uint64_t *by_hash; /* hash table: index + 1 of tensors with bytes, or 0 */
    uint64_t by_hash_capacity, by_hash_n;
    struct group **groups; /* the open ones; NULL where one was closed */
    uint32_t n_groups, groups_capacity;
    struct copied_segment *copied; /* hash table */
    uint64_t copied_capacity, copied_n;
    uint64_t compared_segment; /* of small tensors, whose raw bytes are in compared; PTWM_NONE at first */
    struct ptwm_bytes compared;
    struct ptwm_bytes metadata, source;
    bool has_metadata, has_source;
};

/* ------------------------------------------------------------------------------------------ writer.c */

/* Notes a failure after which the writer is of no more use; returns status. */
enum ptwm_status ptwm_writer_poison(struct ptwm_writer *w, enum ptwm_status status);
/* PTWM_ERR_STATE if the writer is finished or has failed. */
enum ptwm_status ptwm_writer_check_open(const struct ptwm_writer *w, struct ptwm_error *error);

/* ------------------------------------------------------------------------------------------ writer_records.c */

/* Moves the n items of an array to a larger one. *items changes only if that succeeds. */
enum ptwm_status ptwm_writer_grow(const struct ptwm_allocator *allocator, void **items, uint64_t n, uint64_t capacity,
                                  uint64_t new_capacity, size_t size);
/* Makes room for one more tensor of n_dims dimensions. */
enum ptwm_status ptwm_writer_reserve_tensor(struct ptwm_writer *w, uint32_t n_dims);
/* Adds a segment to the list; *index is its number. */
enum ptwm_status ptwm_writer_add_segment(struct ptwm_writer *w, const struct ptwm_segment_record *segment,
                                         uint64_t *index);
/* Adds a tensor without bytes; *index is its number. Nothing has changed if it fails, but for PTWM_ERR_MEMORY. */
enum ptwm_status ptwm_writer_add_record(struct ptwm_writer *w, const char *name, size_t name_nbytes, uint32_t dtype,
                                        const uint64_t *shape, uint32_t n_dims, uint64_t *index,
                                        struct ptwm_error *error);
/* Makes tensor number index refer to the bytes of tensor number of. */
enum ptwm_status ptwm_writer_share_bytes(struct ptwm_writer *w, uint64_t index, uint64_t of);
/* Finds an earlier tensor with the same bytes; *index is PTWM_NONE if there is none. */
enum ptwm_status ptwm_writer_find_equal(struct ptwm_writer *w, uint64_t hash, const uint8_t *data, uint64_t nbytes,
                                        uint64_t *index, struct ptwm_error *error);
/* Lets later tensors find tensor number index by its bytes. */
enum ptwm_status ptwm_writer_remember_bytes(struct ptwm_writer *w, uint64_t index);

/* ------------------------------------------------------------------------------------------ writer_groups.c */

/* Encodes raw bytes as a segment at the end of output. */
enum ptwm_status ptwm_writer_encode_bytes(const struct ptwm_writer *w, const struct recipe *recipe, const uint8_t *data,
                                          uint64_t nbytes, uint64_t row_nbytes, unsigned threads,
                                          struct ptwm_encode_memory *memory, struct ptwm_output *output,
                                          struct ptwm_segment_record *record, struct ptwm_error *error);
/* Encodes raw bytes as a new segment; *segment is its number. With one thread it takes the calling thread's memory
 * alone. */
enum ptwm_status ptwm_writer_encode_segment(struct ptwm_writer *w, const struct recipe *recipe, const uint8_t *data,
                                            uint64_t nbytes, uint64_t row_nbytes, unsigned threads, uint64_t *segment,
                                            struct ptwm_error *error);
/* Writes a segment that has been encoded elsewhere. */
enum ptwm_status ptwm_writer_write_segment(struct ptwm_writer *w, const struct ptwm_segment_record *encoded,
                                           const struct ptwm_bytes *bytes, uint64_t *segment, struct ptwm_error *error);
/* Releases group number index, if there is one. */
void ptwm_writer_release_group(struct ptwm_writer *w, uint32_t index);
/* Turns a group into a segment. */
enum ptwm_status ptwm_writer_flush_group(struct ptwm_writer *w, uint32_t index, struct ptwm_error *error);
/* Puts a small tensor into the group of its recipe. */
enum ptwm_status ptwm_writer_add_to_group(struct ptwm_writer *w, const struct recipe *recipe, const uint8_t *data,
                                          uint64_t nbytes, uint64_t tensor, struct ptwm_error *error);

#endif
