/*
 * Copying tensors from other files, encoded as they are where that takes nothing along.
 */
#include "writer.h"

#include <string.h>

#include "reader.h"
#include "status.h"

enum { COPY_NBYTES = 1 << 20 };

/* ------------------------------------------------------------------------------------------------------ copying */

static uint64_t copied_slot(const struct copied_segment *table, uint64_t capacity, uint64_t token, uint64_t from)
{
    uint64_t slot = (token ^ from * 0x9E3779B97F4A7C15u) * 0xD6E8FEB86659FD93u >> 20 & (capacity - 1);
    while (table[slot].used && (table[slot].token != token || table[slot].from != from))
        slot = (slot + 1) & (capacity - 1);
    return slot;
}

static enum ptwm_status remember_copied(struct ptwm_writer *w, const struct copied_segment *entry)
{
    if (w->copied_n >= w->copied_capacity / 2) {
        const uint64_t capacity = w->copied_capacity > 0 ? w->copied_capacity * 2 : 64;
        struct copied_segment *table = ptwm_calloc(w->allocator, capacity, sizeof *table);
        if (table == NULL)
            return PTWM_ERR_MEMORY;
        for (uint64_t s = 0; s < w->copied_capacity; s++)
            if (w->copied[s].used)
                table[copied_slot(table, capacity, w->copied[s].token, w->copied[s].from)] = w->copied[s];
        ptwm_release(w->allocator, w->copied, w->copied_capacity, sizeof *table);
        w->copied = table;
        w->copied_capacity = capacity;
    }
    w->copied[copied_slot(w->copied, w->copied_capacity, entry->token, entry->from)] = *entry;
    w->copied_n++;
    return PTWM_OK;
}

/* Copies a segment's bytes as they are. */
static enum ptwm_status copy_segment(struct ptwm_writer *w, const struct ptwm_reader *r, uint64_t from, uint64_t *to,
                                     struct ptwm_error *error)
{
    struct ptwm_segment_record record = r->manifest.segments[from];
    const uint64_t begin = record.offset, end = begin + record.stored_nbytes;
    struct copied_segment entry = { r->token, from, 0, true };
    struct ptwm_bytes scratch = { w->allocator, NULL, 0, 0 };
    enum ptwm_status status = ptwm_segment_pad(w->output, record.flags, error);

    record.offset = ptwm_output_position(w->output);
    for (uint64_t at = begin; at < end && status == PTWM_OK;) {
        const uint64_t n = end - at < COPY_NBYTES ? end - at : COPY_NBYTES;
        const uint8_t *view;
        status = ptwm_file_view(r->file, at, n, &scratch, &view, error);
        if (status == PTWM_OK)
            status = ptwm_output_write(w->output, view, (size_t)n, error);
        at += n;
    }
    ptwm_bytes_release(&scratch);
    if (status == PTWM_OK &&
        (ptwm_writer_add_segment(w, &record, to) != PTWM_OK || (entry.to = *to, remember_copied(w, &entry) != PTWM_OK)))
        status = ptwm_fail(error, PTWM_ERR_MEMORY, "another segment");
    return status;
}

/* A tensor that shares a small segment with others is taken out of it, so that they do not come along. */
static bool is_taken_out(const struct ptwm_tensor_record *t, const struct ptwm_segment_record *s)
{
    return s->raw_nbytes <= PTWM_GROUP_NBYTES && t->nbytes <= s->raw_nbytes / 2;
}

static enum ptwm_status copy_decoded(struct ptwm_writer *w, const struct ptwm_reader *r, uint64_t index,
                                     struct ptwm_tensor_spec *spec, struct ptwm_error *error)
{
    const struct ptwm_tensor_record *t = &r->manifest.tensors[index];
    uint8_t *raw = ptwm_alloc(w->allocator, t->nbytes, 1);
    const struct ptwm_request request = { index, 0, PTWM_NONE, raw, t->nbytes };
    struct ptwm_decode_options options = PTWM_DECODE_OPTIONS_INIT;
    struct ptwm_layout *layout = NULL;
    struct ptwm_layout_info info;
    struct ptwm_chain chain;
    enum ptwm_status status = raw != NULL ? PTWM_OK : ptwm_fail(error, PTWM_ERR_MEMORY, "a tensor");

    options.threads = w->threads;
    options.flags = PTWM_DECODE_CHECK_HASH;
    if (status == PTWM_OK)
        status = ptwm_reader_decode(r, &request, 1, &options, error);
    if (status == PTWM_OK)
        status = ptwm_reader_get_layout(r, t->segment, &layout, error);
    if (status == PTWM_OK) {
        info.struct_nbytes = sizeof info;
        (void)ptwm_layout_get_info(layout, &info);
        chain.bytes = info.chain;
        chain.nbytes = info.chain_nbytes;
        spec->data = raw;
        spec->nbytes = t->nbytes;
        spec->chains = &chain;
        spec->n_chains = 1;
        status = ptwm_writer_add(w, spec, error);
        spec->data = NULL; /* they end with this call */
        spec->chains = NULL;
    }
    ptwm_layout_free(layout);
    ptwm_release(w->allocator, raw, t->nbytes, 1);
    return status;
}

static enum ptwm_status copy_encoded(struct ptwm_writer *w, const struct ptwm_reader *r,
                                     const struct ptwm_tensor_record *t, const struct ptwm_tensor_spec *spec,
                                     struct ptwm_error *error)
{
    struct ptwm_tensor_record *copy;
    enum ptwm_status status;
    uint64_t index, slot;

    status =
        ptwm_writer_add_record(w, spec->name, spec->name_nbytes, spec->dtype, spec->shape, spec->n_dims, &index, error);
    if (status == PTWM_ERR_MEMORY)
        ptwm_writer_poison(w, status);
    if (status != PTWM_OK || t->segment == PTWM_NONE)
        return status;
    copy = &w->manifest.tensors[index];
    copy->offset = t->offset;
    copy->nbytes = t->nbytes;
    copy->hash = t->hash;
    copy->has_hash = t->has_hash;
    slot = w->copied_capacity > 0 ? copied_slot(w->copied, w->copied_capacity, r->token, t->segment) : 0;
    if (w->copied_capacity > 0 && w->copied[slot].used)
        copy->segment = w->copied[slot].to;
    else
        status = copy_segment(w, r, t->segment, &copy->segment, error);
    if (status == PTWM_OK && t->has_hash && ptwm_writer_remember_bytes(w, index) != PTWM_OK)
        status = ptwm_fail(error, PTWM_ERR_MEMORY, "another tensor");
    return ptwm_writer_poison(w, status);
}

enum ptwm_status ptwm_writer_copy(struct ptwm_writer *w, const struct ptwm_reader *r, uint64_t index, const char *name,
                                  size_t name_nbytes, struct ptwm_error *error)
{
    struct ptwm_tensor_spec spec = PTWM_TENSOR_SPEC_INIT;
    enum ptwm_status status = ptwm_writer_check_open(w, error);
    const struct ptwm_tensor_record *t;

    if (status != PTWM_OK)
        return status;
    if (r == NULL || index >= r->manifest.n_tensors)
        return ptwm_fail(error, r == NULL ? PTWM_ERR_ARGUMENT : PTWM_ERR_NO_TENSOR, "the tensor to copy");
    t = &r->manifest.tensors[index];
    spec.name = name != NULL ? name : t->name;
    spec.name_nbytes = name != NULL ? name_nbytes : t->name_nbytes;
    spec.dtype = t->dtype;
    spec.n_dims = t->n_dims;
    spec.shape = ptwm_manifest_shape(&r->manifest, t);
    /* What this library does not know the dtype of can only be moved as it is. */
    if (t->segment != PTWM_NONE && is_taken_out(t, &r->manifest.segments[t->segment]) &&
        (t->dtype == PTWM_DTYPE_NONE || ptwm_dtype_bits(t->dtype) > 0))
        return copy_decoded(w, r, index, &spec, error);
    return copy_encoded(w, r, t, &spec, error);
}
