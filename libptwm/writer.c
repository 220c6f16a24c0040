/*
 * The writer: opening and finishing a file. writer.h tells where the rest is.
 *
 * A large tensor becomes a segment at once. Small ones wait in groups of one dtype, which become segments when they are
 * full or the file ends. Tensors with equal bytes, found by their hash and compared, refer to the same range.
 */
#include "writer.h"

#include <string.h>

#include "codec.h"
#include "status.h"
#include "threads.h"

/* ------------------------------------------------------------------------------------------------------ opening */

static struct ptwm_writer_options complete_options(const struct ptwm_writer_options *given)
{
    struct ptwm_writer_options options = PTWM_WRITER_OPTIONS_INIT;

    if (given != NULL)
        memcpy(&options, given, given->struct_nbytes < sizeof options ? given->struct_nbytes : sizeof options);
    if (options.allocator == NULL)
        options.allocator = &ptwm_default_allocator;
    if (options.chunk_nbytes == 0)
        options.chunk_nbytes = PTWM_DEFAULT_CHUNK_NBYTES;
    return options;
}

static enum ptwm_status check_options(const struct ptwm_writer_options *o, struct ptwm_error *error)
{
    if (o->chunk_nbytes < PTWM_MIN_CHUNK_NBYTES || o->chunk_nbytes > PTWM_MAX_CHUNK_NBYTES)
        return ptwm_fail(error, PTWM_ERR_ARGUMENT, "chunks of %llu bytes; 4 KiB to 64 MiB are possible",
                         (unsigned long long)o->chunk_nbytes);
    if (o->flags & ~(PTWM_WRITE_PAYLOAD_HASH | PTWM_WRITE_PLANE_CRC))
        return ptwm_fail(error, PTWM_ERR_ARGUMENT, "unknown flags");
    return PTWM_OK;
}

/* Makes a writer on an output, which it owns from here on, also on failure. */
static enum ptwm_status open_output(struct ptwm_output *output, const struct ptwm_writer_options *o,
                                    struct ptwm_writer **writer, struct ptwm_error *error)
{
    const struct ptwm_bytes empty = { o->allocator, NULL, 0, 0 };
    struct ptwm_writer *w = ptwm_calloc(o->allocator, 1, sizeof *w);
    uint8_t header[PTWM_HEADER_NBYTES];
    enum ptwm_status status;

    if (w == NULL) {
        ptwm_output_close(output);
        return ptwm_fail(error, PTWM_ERR_MEMORY, "a writer");
    }
    w->allocator = w->manifest.allocator = w->names.allocator = o->allocator;
    w->zstd = ptwm_zstd_select(o->zstd);
    w->flags = o->flags;
    w->threads = ptwm_thread_count(o->threads);
    w->chunk_nbytes = o->chunk_nbytes;
    w->level = o->level;
    w->output = output;
    w->compared_segment = PTWM_NONE;
    w->compared = w->metadata = w->source = empty;
    w->memory = ptwm_alloc(o->allocator, w->threads, sizeof *w->memory);
    for (unsigned i = 0; w->memory != NULL && i < w->threads; i++)
        ptwm_encode_memory_take(&w->memory[i], o->allocator);
    ptwm_header_write(header);
    status = w->memory != NULL ? ptwm_output_write(output, header, sizeof header, error)
                               : ptwm_fail(error, PTWM_ERR_MEMORY, "a writer");
    if (status == PTWM_OK)
        *writer = w;
    else
        ptwm_writer_close(w);
    return status;
}

enum ptwm_status ptwm_writer_open_path(const char *path, const struct ptwm_writer_options *options,
                                       struct ptwm_writer **writer, struct ptwm_error *error)
{
    const struct ptwm_writer_options o = complete_options(options);
    enum ptwm_status status = check_options(&o, error);
    struct ptwm_output *output;

    if (path == NULL || writer == NULL)
        return ptwm_fail(error, PTWM_ERR_ARGUMENT, "path or writer");
    if (status == PTWM_OK)
        status = ptwm_output_open_path(path, o.allocator, &output, error);
    return status == PTWM_OK ? open_output(output, &o, writer, error) : status;
}

enum ptwm_status ptwm_writer_open_sink(const struct ptwm_sink *sink, const struct ptwm_writer_options *options,
                                       struct ptwm_writer **writer, struct ptwm_error *error)
{
    const struct ptwm_writer_options o = complete_options(options);
    enum ptwm_status status = check_options(&o, error);
    struct ptwm_output *output;

    if (sink == NULL || sink->write == NULL || writer == NULL)
        return ptwm_fail(error, PTWM_ERR_ARGUMENT, "sink or writer");
    if (status == PTWM_OK)
        status = ptwm_output_open_sink(sink, o.allocator, &output, error);
    return status == PTWM_OK ? open_output(output, &o, writer, error) : status;
}

enum ptwm_status ptwm_writer_open_memory(const struct ptwm_writer_options *options, struct ptwm_writer **writer,
                                         struct ptwm_error *error)
{
    const struct ptwm_writer_options o = complete_options(options);
    enum ptwm_status status = check_options(&o, error);
    struct ptwm_output *output;

    if (writer == NULL)
        return ptwm_fail(error, PTWM_ERR_ARGUMENT, "writer");
    if (status == PTWM_OK)
        status = ptwm_output_open_memory(o.allocator, &output, error);
    return status == PTWM_OK ? open_output(output, &o, writer, error) : status;
}

enum ptwm_status ptwm_writer_open_buffer(const struct ptwm_buffer *buffer, const struct ptwm_writer_options *options,
                                         struct ptwm_writer **writer, struct ptwm_error *error)
{
    const struct ptwm_writer_options o = complete_options(options);
    enum ptwm_status status = check_options(&o, error);
    struct ptwm_output *output;

    if (buffer == NULL || buffer->resize == NULL || writer == NULL)
        return ptwm_fail(error, PTWM_ERR_ARGUMENT, "buffer or writer");
    if (status == PTWM_OK)
        status = ptwm_output_open_buffer(buffer, o.allocator, &output, error);
    return status == PTWM_OK ? open_output(output, &o, writer, error) : status;
}

void ptwm_writer_close(struct ptwm_writer *w)
{
    if (w == NULL)
        return;
    for (uint64_t i = 0; i < w->manifest.n_tensors; i++)
        ptwm_release(w->allocator, (void *)(uintptr_t)w->manifest.tensors[i].name, w->manifest.tensors[i].name_nbytes,
                     1);
    for (uint32_t i = 0; i < w->n_groups; i++)
        ptwm_writer_release_group(w, i);
    ptwm_release(w->allocator, w->groups, w->groups_capacity, sizeof *w->groups);
    ptwm_release(w->allocator, w->manifest.tensors, w->tensors_capacity, sizeof *w->manifest.tensors);
    ptwm_release(w->allocator, w->group_of, w->tensors_capacity, sizeof *w->group_of);
    ptwm_release(w->allocator, w->manifest.segments, w->segments_capacity, sizeof *w->manifest.segments);
    ptwm_release(w->allocator, w->manifest.dims, w->manifest.dims_capacity, sizeof *w->manifest.dims);
    ptwm_release(w->allocator, w->by_hash, w->by_hash_capacity, sizeof *w->by_hash);
    ptwm_release(w->allocator, w->copied, w->copied_capacity, sizeof *w->copied);
    ptwm_name_index_release(&w->names);
    /* The first one's, which is the largest, comes last, and so is kept in any case. */
    for (unsigned i = w->memory != NULL ? w->threads : 0; i-- > 0;)
        ptwm_encode_memory_give(&w->memory[i]);
    ptwm_release(w->allocator, w->memory, w->threads, sizeof *w->memory);
    ptwm_bytes_release(&w->compared);
    ptwm_bytes_release(&w->metadata);
    ptwm_bytes_release(&w->source);
    ptwm_output_close(w->output);
    ptwm_release(w->allocator, w, 1, sizeof *w);
}

/* After this failure the writer is of no more use. */
enum ptwm_status ptwm_writer_poison(struct ptwm_writer *w, enum ptwm_status status)
{
    if (status != PTWM_OK)
        w->state = WRITER_FAILED;
    return status;
}

enum ptwm_status ptwm_writer_check_open(const struct ptwm_writer *w, struct ptwm_error *error)
{
    if (w == NULL)
        return ptwm_fail(error, PTWM_ERR_ARGUMENT, "writer");
    if (w->state != WRITER_OPEN)
        return ptwm_fail(error, PTWM_ERR_STATE,
                         w->state == WRITER_FAILED ? "an earlier call failed" : "it is finished");
    return PTWM_OK;
}

/* ---------------------------------------------------------------------------------------------------- finishing */

static enum ptwm_status set_cbor(struct ptwm_writer *w, struct ptwm_bytes *bytes, bool *has, const void *cbor,
                                 size_t cbor_nbytes, struct ptwm_error *error)
{
    enum ptwm_status status = ptwm_writer_check_open(w, error);

    if (status != PTWM_OK)
        return status;
    bytes->nbytes = 0;
    *has = cbor != NULL;
    if (cbor != NULL && ptwm_bytes_append(bytes, cbor, cbor_nbytes) != PTWM_OK)
        return ptwm_writer_poison(w, ptwm_fail(error, PTWM_ERR_MEMORY, "%zu bytes of metadata", cbor_nbytes));
    return PTWM_OK;
}

enum ptwm_status ptwm_writer_set_metadata(struct ptwm_writer *w, const void *cbor, size_t cbor_nbytes,
                                          struct ptwm_error *error)
{
    if (w == NULL)
        return ptwm_fail(error, PTWM_ERR_ARGUMENT, "writer");
    return set_cbor(w, &w->metadata, &w->has_metadata, cbor, cbor_nbytes, error);
}

enum ptwm_status ptwm_writer_set_source(struct ptwm_writer *w, const void *cbor, size_t cbor_nbytes,
                                        struct ptwm_error *error)
{
    if (w == NULL)
        return ptwm_fail(error, PTWM_ERR_ARGUMENT, "writer");
    return set_cbor(w, &w->source, &w->has_source, cbor, cbor_nbytes, error);
}

static const uint8_t *present(const struct ptwm_bytes *bytes, bool has)
{
    return !has ? NULL : bytes->data != NULL ? bytes->data : (const uint8_t *)"";
}

static enum ptwm_status write_end(struct ptwm_writer *w, struct ptwm_error *error)
{
    struct ptwm_bytes bytes = { w->allocator, NULL, 0, 0 };
    struct ptwm_manifest *m = &w->manifest;
    uint8_t stored_footer[PTWM_FOOTER_NBYTES];
    struct ptwm_footer footer;
    enum ptwm_status status;

    m->metadata = present(&w->metadata, w->has_metadata);
    m->metadata_nbytes = w->metadata.nbytes;
    m->source = present(&w->source, w->has_source);
    m->source_nbytes = w->source.nbytes;
    footer.manifest_offset = ptwm_output_position(w->output);
    status = ptwm_manifest_write(m, &bytes);
    if (status != PTWM_OK)
        status = ptwm_fail(error, status, "the manifest");
    else
        status = ptwm_output_write(w->output, bytes.data, bytes.nbytes, error);
    if (status == PTWM_OK) {
        footer.manifest_nbytes = bytes.nbytes;
        footer.file_nbytes = footer.manifest_offset + bytes.nbytes + PTWM_FOOTER_NBYTES;
        footer.manifest_crc = ptwm_crc32c(0, bytes.data, bytes.nbytes);
        ptwm_footer_write(stored_footer, &footer);
        status = ptwm_output_write(w->output, stored_footer, sizeof stored_footer, error);
    }
    ptwm_bytes_release(&bytes);
    return status;
}

enum ptwm_status ptwm_writer_finish(struct ptwm_writer *w, struct ptwm_error *error)
{
    enum ptwm_status status = ptwm_writer_check_open(w, error);

    if (status != PTWM_OK)
        return status;
    for (uint32_t i = 0; i < w->n_groups && status == PTWM_OK; i++)
        if (w->groups[i] != NULL)
            status = ptwm_writer_flush_group(w, i, error);
    if (status == PTWM_OK)
        status = write_end(w, error);
    if (status == PTWM_OK)
        status = ptwm_output_publish(w->output, error);
    if (status == PTWM_OK)
        w->state = WRITER_FINISHED;
    return ptwm_writer_poison(w, status);
}

enum ptwm_status ptwm_writer_get_memory(const struct ptwm_writer *w, const void **data, size_t *data_nbytes)
{
    if (w == NULL || data == NULL || data_nbytes == NULL)
        return PTWM_ERR_ARGUMENT;
    if (w->state != WRITER_FINISHED)
        return PTWM_ERR_STATE;
    *data = ptwm_output_memory(w->output)->data;
    *data_nbytes = ptwm_output_memory(w->output)->nbytes;
    return PTWM_OK;
}
