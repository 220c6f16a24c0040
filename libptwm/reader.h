/*
 * The reader's inside, for the files that implement its calls: reader.c (opening, describing), decode.c, verify.c,
 * layout.c. writer.c uses it to copy from.
 */
#ifndef PTWM_READER_H
#define PTWM_READER_H

#include <pthread.h>

#include "codec.h"
#include "file.h"
#include "manifest.h"
#include "names.h"
#include "segment.h"

/*
 * Segments of small tensors that were decoded lately, whole: who fetches one of them often fetches its neighbours next,
 * or the same again. A segment has one place where it may be. Calls that find the cache taken do without.
 */
enum { PTWM_CACHED_SEGMENTS = 16, PTWM_CACHED_SEGMENT_NBYTES = 256 << 10 /* larger segments are not kept */ };

struct ptwm_cached_segment {
    uint64_t segment; /* PTWM_NONE: none */
    bool is_checked;  /* its CRCs were checked, or it has none */
    struct ptwm_bytes raw;
};

struct ptwm_segment_cache {
    pthread_mutex_t lock;
    struct ptwm_cached_segment places[PTWM_CACHED_SEGMENTS];
};

struct ptwm_reader {
    uint64_t token; /* of this reader alone: a writer that copies segments tells readers apart by it */
    const struct ptwm_allocator *allocator;
    const struct ptwm_zstd *zstd;
    struct ptwm_file *file;
    struct ptwm_bytes manifest_bytes; /* names point into it */
    struct ptwm_footer footer;
    struct ptwm_manifest manifest;
    struct ptwm_name_index names;
    struct ptwm_segment_cache *cache; /* not const where the reader is: guarded by its lock */
};

static inline struct ptwm_codec_context ptwm_reader_codec_context(const struct ptwm_reader *reader)
{
    struct ptwm_codec_context context = { reader->allocator, reader->zstd, 0 };
    return context;
}

#endif
