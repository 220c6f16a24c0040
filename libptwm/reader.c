#include "reader.h"

#include <string.h>

#include "os.h"
#include "segment_decode.h"
#include "status.h"

/* ------------------------------------------------------------------------------------------------------ opening */

/* Reads the header and the footer; the file may be anything at all. */
static enum ptwm_status read_ends(struct ptwm_reader *r, struct ptwm_error *error)
{
    const uint64_t nbytes = ptwm_file_nbytes(r->file);
    const uint64_t header_nbytes = nbytes < PTWM_HEADER_NBYTES ? nbytes : PTWM_HEADER_NBYTES;
    struct ptwm_bytes bytes = { r->allocator, NULL, 0, 0 };
    enum ptwm_status status = ptwm_file_copy(r->file, 0, header_nbytes, &bytes, error);

    if (status == PTWM_OK) {
        status = ptwm_header_check(bytes.data, (size_t)header_nbytes, error);
        if (status == PTWM_OK && nbytes < PTWM_HEADER_NBYTES + PTWM_FOOTER_NBYTES)
            status = ptwm_fail(error, PTWM_ERR_TRUNCATED, "%llu bytes are too few", (unsigned long long)nbytes);
        if (status != PTWM_OK)
            ptwm_fail_at(error, PTWM_NONE, 0);
    }
    if (status == PTWM_OK)
        status = ptwm_file_copy(r->file, nbytes - PTWM_FOOTER_NBYTES, PTWM_FOOTER_NBYTES, &bytes, error);
    if (status == PTWM_OK) {
        status = ptwm_footer_read(bytes.data, nbytes, &r->footer, error);
        if (status != PTWM_OK)
            ptwm_fail_at(error, PTWM_NONE, nbytes - PTWM_FOOTER_NBYTES);
    }
    ptwm_bytes_release(&bytes);
    return status;
}

static enum ptwm_status index_names(struct ptwm_reader *r, struct ptwm_error *error)
{
    const struct ptwm_manifest *m = &r->manifest;

    if (ptwm_name_index_reserve(&r->names, m->tensors, m->n_tensors) != PTWM_OK)
        return ptwm_fail(error, PTWM_ERR_MEMORY, "the index of names");
    for (uint64_t i = 0; i < m->n_tensors; i++)
        if (!ptwm_name_index_add(&r->names, m->tensors, i)) {
            ptwm_fail(error, PTWM_ERR_DUPLICATE_NAME, "two tensors have the same name");
            ptwm_fail_at(error, i, r->footer.manifest_offset);
            return PTWM_ERR_DUPLICATE_NAME;
        }
    return PTWM_OK;
}

static enum ptwm_status read_index(struct ptwm_reader *r, struct ptwm_error *error)
{
    enum ptwm_status status = read_ends(r, error);

    if (status == PTWM_OK)
        status = ptwm_file_copy(r->file, r->footer.manifest_offset, r->footer.manifest_nbytes, &r->manifest_bytes, error);
    if (status == PTWM_OK &&
        ptwm_crc32c(0, r->manifest_bytes.data, r->manifest_bytes.nbytes) != r->footer.manifest_crc) {
        status = ptwm_fail(error, PTWM_ERR_CHECKSUM, "the manifest");
        ptwm_fail_at(error, PTWM_NONE, r->footer.manifest_offset);
    }
    if (status == PTWM_OK)
        status = ptwm_manifest_read(r->manifest_bytes.data, r->manifest_bytes.nbytes, r->footer.manifest_offset,
                                    r->allocator, &r->manifest, error);
    if (status == PTWM_OK)
        status = index_names(r, error);
    return status;
}

static struct ptwm_reader_options complete_options(const struct ptwm_reader_options *given)
{
    struct ptwm_reader_options options = PTWM_READER_OPTIONS_INIT;

    if (given != NULL)
        memcpy(&options, given, given->struct_nbytes < sizeof options ? given->struct_nbytes : sizeof options);
    if (options.allocator == NULL)
        options.allocator = &ptwm_default_allocator;
    return options;
}

static enum ptwm_status open_cache(struct ptwm_reader *r, struct ptwm_error *error)
{
    struct ptwm_segment_cache *cache = ptwm_calloc(r->allocator, 1, sizeof *cache);

    if (cache == NULL || pthread_mutex_init(&cache->lock, NULL) != 0) {
        ptwm_release(r->allocator, cache, 1, sizeof *cache);
        return ptwm_fail(error, PTWM_ERR_MEMORY, "opening");
    }
    for (unsigned i = 0; i < PTWM_CACHED_SEGMENTS; i++) {
        cache->places[i].segment = PTWM_NONE;
        cache->places[i].raw.allocator = r->allocator;
    }
    r->cache = cache;
    return PTWM_OK;
}

static void close_cache(struct ptwm_reader *r)
{
    if (r->cache == NULL)
        return;
    for (unsigned i = 0; i < PTWM_CACHED_SEGMENTS; i++)
        ptwm_bytes_release(&r->cache->places[i].raw);
    pthread_mutex_destroy(&r->cache->lock);
    ptwm_release(r->allocator, r->cache, 1, sizeof *r->cache);
}

/* A number that no other object at this address has had: made of the address and a clock that goes on. */
static uint64_t unique_token(const void *object)
{
    return ptwm_os_nanoseconds() ^ (uint64_t)(uintptr_t)object << 20;
}

/* Makes a reader of an opened file, which it owns from here on, also on failure. */
static enum ptwm_status open_file(struct ptwm_file *file, const struct ptwm_reader_options *options,
                                  struct ptwm_reader **reader, struct ptwm_error *error)
{
    struct ptwm_reader *r = ptwm_calloc(options->allocator, 1, sizeof *r);
    enum ptwm_status status;

    if (r == NULL) {
        ptwm_file_close(file);
        return ptwm_fail(error, PTWM_ERR_MEMORY, "opening");
    }
    r->allocator = r->manifest_bytes.allocator = r->manifest.allocator = r->names.allocator = options->allocator;
    r->token = unique_token(r);
    r->zstd = ptwm_zstd_select(options->zstd);
    r->file = file;
    status = open_cache(r, error);
    if (status == PTWM_OK)
        status = read_index(r, error);
    if (status == PTWM_OK)
        *reader = r;
    else
        ptwm_reader_close(r);
    return status;
}

enum ptwm_status ptwm_reader_open_path(const char *path, const struct ptwm_reader_options *options,
                                       struct ptwm_reader **reader, struct ptwm_error *error)
{
    const struct ptwm_reader_options o = complete_options(options);
    struct ptwm_file *file;
    enum ptwm_status status;

    if (path == NULL || reader == NULL || (o.backend != PTWM_BACKEND_MMAP && o.backend != PTWM_BACKEND_PREAD))
        return ptwm_fail(error, PTWM_ERR_ARGUMENT, "path, backend or reader");
    status = ptwm_file_open_path(path, o.backend, o.allocator, &file, error);
    return status == PTWM_OK ? open_file(file, &o, reader, error) : status;
}

enum ptwm_status ptwm_reader_open_memory(const void *data, size_t data_nbytes,
                                         const struct ptwm_reader_options *options, struct ptwm_reader **reader,
                                         struct ptwm_error *error)
{
    const struct ptwm_reader_options o = complete_options(options);
    struct ptwm_file *file;
    enum ptwm_status status;

    if ((data == NULL && data_nbytes > 0) || reader == NULL)
        return ptwm_fail(error, PTWM_ERR_ARGUMENT, "data or reader");
    status = ptwm_file_open_memory(data != NULL ? data : "", data_nbytes, o.allocator, &file, error);
    return status == PTWM_OK ? open_file(file, &o, reader, error) : status;
}

enum ptwm_status ptwm_reader_open_source(const struct ptwm_source *source,
                                         const struct ptwm_reader_options *options, struct ptwm_reader **reader,
                                         struct ptwm_error *error)
{
    const struct ptwm_reader_options o = complete_options(options);
    struct ptwm_file *file;
    enum ptwm_status status;

    if (source == NULL || source->read == NULL || reader == NULL)
        return ptwm_fail(error, PTWM_ERR_ARGUMENT, "source or reader");
    status = ptwm_file_open_source(source, o.allocator, &file, error);
    return status == PTWM_OK ? open_file(file, &o, reader, error) : status;
}

void ptwm_reader_close(struct ptwm_reader *r)
{
    if (r == NULL)
        return;
    close_cache(r);
    ptwm_name_index_release(&r->names);
    ptwm_manifest_release(&r->manifest);
    ptwm_bytes_release(&r->manifest_bytes);
    ptwm_file_close(r->file);
    ptwm_release(r->allocator, r, 1, sizeof *r);
}

/* --------------------------------------------------------------------------------------------------- describing */

/* Copies a described struct to the caller's, which may be an older, shorter one. */
static void hand_out(void *to, const void *from, size_t nbytes)
{
    size_t given_nbytes;

    memcpy(&given_nbytes, to, sizeof given_nbytes);
    if (given_nbytes < nbytes)
        nbytes = given_nbytes;
    if (nbytes > sizeof given_nbytes)
        memcpy((uint8_t *)to + sizeof given_nbytes, (const uint8_t *)from + sizeof given_nbytes,
               nbytes - sizeof given_nbytes);
}

static uint64_t total_raw_nbytes(const struct ptwm_manifest *m)
{
    uint64_t total = 0;
    for (uint64_t i = 0; i < m->n_tensors; i++)
        if (!ptwm_add_u64(total, m->tensors[i].nbytes, &total))
            return PTWM_NONE;
    return total;
}

enum ptwm_status ptwm_reader_get_info(const struct ptwm_reader *r, struct ptwm_reader_info *info)
{
    struct ptwm_reader_info i;

    if (r == NULL || info == NULL)
        return PTWM_ERR_ARGUMENT;
    memset(&i, 0, sizeof i);
    i.format_version = PTWM_FORMAT_VERSION;
    i.n_tensors = r->manifest.n_tensors;
    i.n_segments = r->manifest.n_segments;
    i.file_nbytes = ptwm_file_nbytes(r->file);
    i.manifest_offset = r->footer.manifest_offset;
    i.manifest_nbytes = r->footer.manifest_nbytes;
    i.total_raw_nbytes = total_raw_nbytes(&r->manifest);
    i.metadata = r->manifest.metadata;
    i.metadata_nbytes = r->manifest.metadata_nbytes;
    i.source = r->manifest.source;
    i.source_nbytes = r->manifest.source_nbytes;
    hand_out(info, &i, sizeof i);
    return PTWM_OK;
}

uint64_t ptwm_reader_bytes_read(const struct ptwm_reader *r)
{
    return ptwm_file_bytes_read(r->file);
}

enum ptwm_status ptwm_reader_find(const struct ptwm_reader *r, const char *name, size_t name_nbytes, uint64_t *index)
{
    uint64_t found;

    if (r == NULL || (name == NULL && name_nbytes > 0) || index == NULL)
        return PTWM_ERR_ARGUMENT;
    found = ptwm_name_index_find(&r->names, r->manifest.tensors, name != NULL ? name : "", name_nbytes);
    if (found == PTWM_NONE)
        return PTWM_ERR_NO_TENSOR;
    *index = found;
    return PTWM_OK;
}

/* ceil(stored * part / whole), part <= whole, without overflow where it matters: in halves, if need be. */
static uint64_t share(uint64_t stored, uint64_t part, uint64_t whole)
{
    uint64_t product;

    while (!ptwm_mul_u64(stored, part, &product)) {
        part = part / 2 + part % 2;
        whole = whole / 2 + whole % 2;
    }
    return ptwm_ceil_div(product, whole);
}

enum ptwm_status ptwm_reader_get_tensor(const struct ptwm_reader *r, uint64_t index, struct ptwm_tensor_info *info)
{
    const struct ptwm_tensor_record *t;
    struct ptwm_tensor_info i;

    if (r == NULL || info == NULL)
        return PTWM_ERR_ARGUMENT;
    if (index >= r->manifest.n_tensors)
        return PTWM_ERR_NO_TENSOR;
    t = &r->manifest.tensors[index];
    memset(&i, 0, sizeof i);
    i.name = t->name;
    i.name_nbytes = t->name_nbytes;
    i.dtype = t->dtype;
    i.n_dims = t->n_dims;
    i.shape = ptwm_manifest_shape(&r->manifest, t);
    i.nbytes = t->nbytes;
    i.segment = t->segment;
    i.segment_offset = t->offset;
    if (t->segment != PTWM_NONE) {
        const struct ptwm_segment_record *s = &r->manifest.segments[t->segment];
        i.stored_nbytes = share(s->stored_nbytes, t->nbytes, s->raw_nbytes);
    }
    i.hash = t->hash;
    i.has_hash = t->has_hash;
    hand_out(info, &i, sizeof i);
    return PTWM_OK;
}

enum ptwm_status ptwm_reader_get_segment(const struct ptwm_reader *r, uint64_t index, struct ptwm_segment_info *info)
{
    const struct ptwm_segment_record *s;
    struct ptwm_segment_info i;

    if (r == NULL || info == NULL)
        return PTWM_ERR_ARGUMENT;
    if (index >= r->manifest.n_segments)
        return PTWM_ERR_RANGE;
    s = &r->manifest.segments[index];
    memset(&i, 0, sizeof i);
    i.file_offset = s->offset;
    i.stored_nbytes = s->stored_nbytes;
    i.tail_nbytes = s->tail_nbytes;
    i.raw_nbytes = s->raw_nbytes;
    i.is_checked = (s->flags & PTWM_SEGMENT_CHECKED) != 0;
    i.is_aligned = (s->flags & PTWM_SEGMENT_ALIGNED) != 0;
    hand_out(info, &i, sizeof i);
    return PTWM_OK;
}

/* ------------------------------------------------------------------------------------------------------ layouts */

struct ptwm_layout {
    const struct ptwm_reader *reader;
    struct ptwm_tail tail;
};

enum ptwm_status ptwm_reader_get_layout(const struct ptwm_reader *r, uint64_t index, struct ptwm_layout **layout,
                                        struct ptwm_error *error)
{
    struct ptwm_layout *l;
    enum ptwm_status status;

    if (r == NULL || layout == NULL)
        return ptwm_fail(error, PTWM_ERR_ARGUMENT, "reader or layout");
    if (index >= r->manifest.n_segments)
        return ptwm_fail(error, PTWM_ERR_RANGE, "segment %llu", (unsigned long long)index);
    l = ptwm_calloc(r->allocator, 1, sizeof *l);
    if (l == NULL)
        return ptwm_fail(error, PTWM_ERR_MEMORY, "a layout");
    status = ptwm_tail_read(r->file, &r->manifest.segments[index], r->allocator, &l->tail, error);
    l->reader = r;
    if (status == PTWM_OK)
        *layout = l;
    else
        ptwm_release(r->allocator, l, 1, sizeof *l);
    return status;
}

void ptwm_layout_free(struct ptwm_layout *layout)
{
    const struct ptwm_allocator *allocator;

    if (layout == NULL)
        return;
    allocator = layout->tail.allocator;
    ptwm_tail_release(&layout->tail);
    ptwm_release(allocator, layout, 1, sizeof *layout);
}

enum ptwm_status ptwm_layout_get_info(const struct ptwm_layout *layout, struct ptwm_layout_info *info)
{
    const struct ptwm_tail *tail;
    struct ptwm_layout_info i;

    if (layout == NULL || info == NULL)
        return PTWM_ERR_ARGUMENT;
    tail = &layout->tail;
    memset(&i, 0, sizeof i);
    i.chain = tail->chain.bytes;
    i.chain_nbytes = tail->chain.nbytes;
    i.n_planes = tail->chain.n_planes;
    i.n_chunks = tail->n_chunks;
    i.chunk_nbytes = tail->chunk_nbytes;
    if (tail->chain.label != NULL) {
        i.unit = tail->model.unit;
        i.n_columns = tail->model.n_columns;
        i.n_sets = tail->model.n_sets;
        i.has_phases = tail->model.phase != NULL;
    }
    hand_out(info, &i, sizeof i);
    return PTWM_OK;
}

enum ptwm_status ptwm_layout_get_plane(const struct ptwm_layout *layout, uint64_t chunk, uint32_t plane,
                                       struct ptwm_stored_plane *info)
{
    const struct ptwm_plane_record *records;
    const struct ptwm_tail *tail;
    struct ptwm_stored_plane i;

    if (layout == NULL || info == NULL)
        return PTWM_ERR_ARGUMENT;
    tail = &layout->tail;
    if (chunk >= tail->n_chunks || plane >= tail->chain.n_planes)
        return PTWM_ERR_RANGE;
    records = ptwm_tail_chunk_planes(tail, chunk);
    memset(&i, 0, sizeof i);
    i.kind = tail->chain.planes[plane].kind;
    i.codec = records[plane].codec;
    i.crc = records[plane].crc;
    i.file_offset = tail->segment.offset + tail->chunk_offset[chunk];
    for (uint32_t p = 0; p < plane; p++)
        i.file_offset += records[p].stored_nbytes;
    i.stored_nbytes = records[plane].stored_nbytes;
    i.raw_nbytes = ptwm_plane_nbytes(&tail->chain, plane, ptwm_tail_chunk_nbytes(tail, chunk));
    hand_out(info, &i, sizeof i);
    return PTWM_OK;
}

enum ptwm_status ptwm_layout_decode_planes(const struct ptwm_layout *layout, uint64_t chunk, void *buffer,
                                           uint64_t buffer_nbytes, struct ptwm_error *error)
{
    struct ptwm_codec_context context;
    struct ptwm_decode_scratch scratch;
    const struct ptwm_tail *tail;
    enum ptwm_status status;
    uint64_t nbytes = 0;

    if (layout == NULL || buffer == NULL)
        return ptwm_fail(error, PTWM_ERR_ARGUMENT, "layout or buffer");
    tail = &layout->tail;
    if (chunk >= tail->n_chunks)
        return ptwm_fail(error, PTWM_ERR_RANGE, "chunk %llu", (unsigned long long)chunk);
    for (uint32_t p = 0; p < tail->chain.n_planes; p++)
        nbytes += ptwm_plane_nbytes(&tail->chain, p, ptwm_tail_chunk_nbytes(tail, chunk));
    if (buffer_nbytes != nbytes)
        return ptwm_fail(error, PTWM_ERR_ARGUMENT, "a buffer of %llu bytes for planes of %llu",
                         (unsigned long long)buffer_nbytes, (unsigned long long)nbytes);
    context = ptwm_reader_codec_context(layout->reader);
    ptwm_decode_scratch_init(&scratch, layout->reader->allocator);
    status = ptwm_chunk_decode_planes(layout->reader->file, tail, chunk, &context, buffer, &scratch, error);
    ptwm_decode_scratch_release(&scratch);
    return status;
}
