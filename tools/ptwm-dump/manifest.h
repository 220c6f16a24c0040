/*
 * The manifest (FORMAT.md, section 3), read as far as it can be.
 */
#ifndef DUMP_MANIFEST_H
#define DUMP_MANIFEST_H

#include "ends.h"

struct dump_segment {
    uint64_t offset;
    uint64_t padding_nbytes; /* before it */
    uint64_t stored_nbytes;
    uint64_t tail_nbytes;
    uint64_t raw_nbytes;
    uint64_t flags;
    bool is_sound; /* its lengths agree with each other and with the file */
};

#define DUMP_CHECKED 1u
#define DUMP_ALIGNED 2u

struct dump_tensor {
    size_t name; /* position in names */
    size_t name_nbytes;
    uint64_t dtype;
    size_t first_dim; /* position in dims; tensors may share one shape */
    size_t n_dims;
    uint64_t bits;    /* of shape and dtype; PTWM_NONE if that is unknown or too large */
    uint64_t segment; /* PTWM_NONE: none */
    uint64_t offset;
    uint64_t nbytes;
    uint64_t hash;
    bool has_hash;
    bool is_sound; /* its range is inside a sound segment, or it is empty */
};

enum dump_state { DUMP_UNKNOWN, DUMP_GOOD, DUMP_BAD };

struct dump_manifest {
    struct dump_place place;
    uint8_t *bytes; /* NULL: none */
    enum dump_state crc_state;
    uint32_t crc;     /* as computed */
    bool is_complete; /* read to its end */
    struct dump_segment *segments;
    size_t n_segments; /* those that were read; n_segments_claimed is what the list says */
    uint64_t n_segments_claimed;
    struct dump_tensor *tensors;
    size_t n_tensors;
    uint64_t n_tensors_claimed;
    uint8_t *names;
    size_t names_nbytes;
    uint64_t *dims;
    size_t n_dims;
    uint64_t metadata_nbytes, source_nbytes; /* PTWM_NONE: none */
};

/* Reads the manifest at place. End with manifest_release, whatever happens. */
void manifest_read(const struct dump_view *view, const struct dump_footer *footer, struct dump_place place,
                   struct dump_manifest *manifest, struct dump_problems *problems, const struct scan_sink *sink);
void manifest_release(struct dump_manifest *manifest);

/*
 * Whether a manifest at file offset offset begins with a list of segments that fill the file up to there. Each segment
 * that is looked at takes 1 off *budget.
 */
bool manifest_segments_end(const uint8_t *bytes, size_t nbytes, uint64_t offset, uint64_t *budget);

static inline const uint8_t *manifest_name(const struct dump_manifest *manifest, const struct dump_tensor *tensor)
{
    return manifest->names + tensor->name;
}

#endif
