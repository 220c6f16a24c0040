/*
 * The reader's inside, for the files that implement its calls: reader.c (opening, describing), decode.c, verify.c,
 * layout.c. writer.c uses it to copy from.
 */
#ifndef PTWM_READER_H
#define PTWM_READER_H

#include "codec.h"
#include "manifest.h"
#include "mapping.h"
#include "names.h"
#include "segment.h"

struct ptwm_reader {
    uint64_t token; /* of this reader alone: a writer that copies segments tells readers apart by it */
    const struct ptwm_allocator *allocator;
    const struct ptwm_zstd *zstd;
    struct ptwm_file *file;
    struct ptwm_bytes manifest_bytes; /* names point into it */
    struct ptwm_footer footer;
    struct ptwm_manifest manifest;
    struct ptwm_name_index names;
};

static inline struct ptwm_codec_context ptwm_reader_codec_context(const struct ptwm_reader *reader)
{
    struct ptwm_codec_context context = { reader->allocator, reader->zstd, 0 };
    return context;
}

#endif
