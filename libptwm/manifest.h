/*
 * What a file says about itself outside its segments: header, footer and manifest (FORMAT.md, sections 2 and 3), in
 * memory and as bytes.
 */
#ifndef PTWM_MANIFEST_H
#define PTWM_MANIFEST_H

#include <stdbool.h>

#include "memory.h"
#include "ptwm.h"

enum {
    PTWM_HEADER_NBYTES = 16,
    PTWM_FOOTER_NBYTES = 40,
    PTWM_SEGMENT_ALIGNMENT = 64,
    PTWM_SEGMENT_CHECKED = 1,
    PTWM_SEGMENT_ALIGNED = 2
};

struct ptwm_segment_record {
    uint64_t offset; /* in the file; padding before it excluded */
    uint64_t stored_nbytes;
    uint64_t tail_nbytes;
    uint64_t raw_nbytes;
    uint32_t flags; /* PTWM_SEGMENT_* */
};

struct ptwm_tensor_record {
    const char *name;
    size_t name_nbytes;
    uint32_t dtype; /* PTWM_DTYPE_NONE without metadata */
    uint32_t n_dims;
    uint64_t first_dim; /* of its shape in the manifest's dims */
    uint64_t segment;   /* PTWM_NONE if it has no bytes */
    uint64_t offset;    /* in the segment's raw bytes */
    uint64_t nbytes;
    uint64_t hash;
    bool has_hash;
};

struct ptwm_manifest {
    const struct ptwm_allocator *allocator;
    struct ptwm_segment_record *segments;
    uint64_t n_segments;
    struct ptwm_tensor_record *tensors;
    uint64_t n_tensors;
    struct ptwm_bytes names; /* of a manifest that was read: all of them, one behind the other */
    uint64_t *dims; /* all shapes; tensors may share one */
    uint64_t n_dims, dims_capacity;
    const uint8_t *metadata; /* NULL: none */
    size_t metadata_nbytes;
    const uint8_t *source;
    size_t source_nbytes;
};

/* The footer's fields. */
struct ptwm_footer {
    uint64_t manifest_offset;
    uint64_t manifest_nbytes;
    uint64_t file_nbytes;
    uint32_t manifest_crc;
};

void ptwm_header_write(uint8_t header[PTWM_HEADER_NBYTES]);
void ptwm_footer_write(uint8_t bytes[PTWM_FOOTER_NBYTES], const struct ptwm_footer *footer);
/* Check the first and the last bytes of a file; file_nbytes is its real length. */
enum ptwm_status ptwm_header_check(const uint8_t *header, size_t nbytes, struct ptwm_error *error);
enum ptwm_status ptwm_footer_read(const uint8_t bytes[PTWM_FOOTER_NBYTES], uint64_t file_nbytes,
                                  struct ptwm_footer *footer, struct ptwm_error *error);

/* Where a segment that follows position begins. */
uint64_t ptwm_segment_position(uint64_t position, uint32_t flags);

/* The bits that a tensor of that dtype and shape has; false if they don't fit 64 bits. A dimension of 0 makes it 0. */
bool ptwm_shape_bits(const uint64_t *shape, uint32_t n_dims, uint32_t dtype_bits, uint64_t *bits);

/*
 * Parses and checks an untrusted manifest that begins at file offset manifest_offset. Metadata and source point into bytes,
 * which must stay. Duplicate names are left for whoever indexes them. Release with ptwm_manifest_release.
 */
enum ptwm_status ptwm_manifest_read(const uint8_t *bytes, size_t nbytes, uint64_t manifest_offset,
                                    const struct ptwm_allocator *allocator, struct ptwm_manifest *manifest,
                                    struct ptwm_error *error);
void ptwm_manifest_release(struct ptwm_manifest *manifest);

/* A tensor's shape; NULL, like that of no dimensions at all, if it has none: then there may be no dims to point into. */
static inline const uint64_t *ptwm_manifest_shape(const struct ptwm_manifest *m, const struct ptwm_tensor_record *t)
{
    return t->n_dims > 0 ? m->dims + t->first_dim : NULL;
}

/* Appends a manifest's bytes. */
enum ptwm_status ptwm_manifest_write(const struct ptwm_manifest *manifest, struct ptwm_bytes *bytes);

#endif
