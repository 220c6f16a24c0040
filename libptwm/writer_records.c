/*
 * Which tensors there are, and which of them have the same bytes.
 */
#include "writer.h"

#include <string.h>

#include "cbor.h"
#include "codec.h"
#include "segment_decode.h"
#include "status.h"

/* --------------------------------------------------------------------------------------------- growing the lists */

/* Makes room for one more item of size bytes in an array; items and *capacity change together. */
enum ptwm_status ptwm_writer_grow(const struct ptwm_allocator *allocator, void **items, uint64_t n, uint64_t capacity,
                                  uint64_t new_capacity, size_t size)
{
    void *larger = ptwm_alloc(allocator, new_capacity, size);

    if (larger == NULL)
        return PTWM_ERR_MEMORY;
    if (n > 0)
        memcpy(larger, *items, (size_t)(n * size));
    ptwm_release(allocator, *items, capacity, size);
    *items = larger;
    return PTWM_OK;
}

enum ptwm_status ptwm_writer_reserve_tensor(struct ptwm_writer *w, uint32_t n_dims)
{
    struct ptwm_manifest *m = &w->manifest;
    enum ptwm_status status = PTWM_OK;

    if (m->n_tensors == w->tensors_capacity) {
        const uint64_t capacity = w->tensors_capacity * 2 + 16;
        void *tensors = m->tensors, *group_of = w->group_of;
        status =
            ptwm_writer_grow(w->allocator, &group_of, m->n_tensors, w->tensors_capacity, capacity, sizeof *w->group_of);
        if (status != PTWM_OK)
            return status;
        w->group_of = group_of;
        status =
            ptwm_writer_grow(w->allocator, &tensors, m->n_tensors, w->tensors_capacity, capacity, sizeof *m->tensors);
        if (status != PTWM_OK) { /* group_of is larger already: let both capacities agree again */
            w->group_of = NULL;
            ptwm_release(w->allocator, group_of, capacity, sizeof *w->group_of);
            w->state = WRITER_FAILED;
            return status;
        }
        m->tensors = tensors;
        w->tensors_capacity = capacity;
    }
    if (n_dims > m->dims_capacity - m->n_dims) {
        const uint64_t capacity = m->dims_capacity * 2 + n_dims + 16;
        void *dims = m->dims;
        status = ptwm_writer_grow(w->allocator, &dims, m->n_dims, m->dims_capacity, capacity, sizeof *m->dims);
        if (status != PTWM_OK)
            return status;
        m->dims = dims;
        m->dims_capacity = capacity;
    }
    return ptwm_name_index_reserve(&w->names, m->tensors, m->n_tensors + 1);
}

/* Adds a segment to the list; *index is its number. */
enum ptwm_status ptwm_writer_add_segment(struct ptwm_writer *w, const struct ptwm_segment_record *segment,
                                         uint64_t *index)
{
    struct ptwm_manifest *m = &w->manifest;

    if (m->n_segments == w->segments_capacity) {
        const uint64_t capacity = w->segments_capacity * 2 + 16;
        void *segments = m->segments;
        if (ptwm_writer_grow(w->allocator, &segments, m->n_segments, w->segments_capacity, capacity,
                             sizeof *m->segments) != PTWM_OK)
            return PTWM_ERR_MEMORY;
        m->segments = segments;
        w->segments_capacity = capacity;
    }
    *index = m->n_segments;
    m->segments[m->n_segments++] = *segment;
    return PTWM_OK;
}

/*
 * Adds a tensor without bytes; *index is its number. Nothing has changed if it fails, but for PTWM_ERR_MEMORY.
 */
enum ptwm_status ptwm_writer_add_record(struct ptwm_writer *w, const char *name, size_t name_nbytes, uint32_t dtype,
                                        const uint64_t *shape, uint32_t n_dims, uint64_t *index,
                                        struct ptwm_error *error)
{
    struct ptwm_manifest *m = &w->manifest;
    struct ptwm_tensor_record *t;
    char *copy;

    if (!ptwm_is_utf8(name, name_nbytes))
        return ptwm_fail(error, PTWM_ERR_ARGUMENT, "a name is not valid UTF-8");
    if (ptwm_name_index_find(&w->names, m->tensors, name, name_nbytes) != PTWM_NONE)
        return ptwm_fail(error, PTWM_ERR_DUPLICATE_NAME, "a tensor of that name is there already");
    if (ptwm_writer_reserve_tensor(w, n_dims) != PTWM_OK)
        return ptwm_fail(error, PTWM_ERR_MEMORY, "another tensor");
    copy = ptwm_alloc(w->allocator, name_nbytes, 1);
    if (copy == NULL)
        return ptwm_fail(error, PTWM_ERR_MEMORY, "a name");
    if (name_nbytes > 0)
        memcpy(copy, name, name_nbytes);
    t = &m->tensors[m->n_tensors];
    memset(t, 0, sizeof *t);
    t->name = copy;
    t->name_nbytes = name_nbytes;
    t->dtype = dtype;
    t->first_dim = m->n_dims;
    t->n_dims = n_dims;
    t->segment = PTWM_NONE;
    if (n_dims > 0)
        memcpy(m->dims + m->n_dims, shape, n_dims * sizeof *shape);
    m->n_dims += n_dims;
    w->group_of[m->n_tensors] = PTWM_NO_GROUP;
    *index = m->n_tensors++;
    (void)ptwm_name_index_add(&w->names, m->tensors, *index);
    return PTWM_OK;
}

/* Makes tensor number index refer to the bytes of tensor number of. */
enum ptwm_status ptwm_writer_share_bytes(struct ptwm_writer *w, uint64_t index, uint64_t of)
{
    struct ptwm_tensor_record *t = &w->manifest.tensors[index], *o = &w->manifest.tensors[of];

    t->segment = o->segment;
    t->offset = o->offset;
    t->nbytes = o->nbytes;
    t->hash = o->hash;
    t->has_hash = o->has_hash;
    w->group_of[index] = w->group_of[of];
    if (w->group_of[of] == PTWM_NO_GROUP)
        return PTWM_OK;
    return ptwm_bytes_append(&w->groups[w->group_of[of]]->members, &index, sizeof index);
}

/* ------------------------------------------------------------------------------------------------- equal tensors */

/* Compares data with a range of a segment that has been written, chunk by chunk. */
static enum ptwm_status compare_chunks(struct ptwm_writer *w, const struct ptwm_file *file,
                                       const struct ptwm_tensor_record *t, const uint8_t *data, bool *equal,
                                       struct ptwm_error *error)
{
    const struct ptwm_codec_context context = { w->allocator, w->zstd, w->level };
    const struct ptwm_segment_record *segment = &w->manifest.segments[t->segment];
    struct ptwm_decode_scratch scratch;
    struct ptwm_tail tail;
    enum ptwm_status status = ptwm_tail_read(file, segment, w->allocator, &tail, error);
    const uint64_t end = t->offset + t->nbytes;

    if (status != PTWM_OK)
        return status;
    ptwm_decode_scratch_init(&scratch, w->allocator);
    *equal = true;
    for (uint64_t at = t->offset; at < end && *equal && status == PTWM_OK;) {
        const uint64_t chunk = at / tail.chunk_nbytes, begin = chunk * tail.chunk_nbytes;
        const size_t chunk_nbytes = ptwm_tail_chunk_nbytes(&tail, chunk);
        const uint64_t stop = end < begin + chunk_nbytes ? end : begin + chunk_nbytes;
        uint8_t *raw = ptwm_bytes_scratch(&scratch.raw, chunk_nbytes);
        if (raw == NULL) {
            status = ptwm_fail(error, PTWM_ERR_MEMORY, "comparing tensors");
            break;
        }
        status = ptwm_chunk_decode(file, &tail, chunk, false, &context, raw, &scratch, error);
        *equal = status == PTWM_OK && memcmp(raw + (at - begin), data + (at - t->offset), (size_t)(stop - at)) == 0;
        at = stop;
    }
    /* Of small tensors many may be compared with the same segment: keep it, if one chunk was all of it. */
    if (status == PTWM_OK && tail.n_chunks == 1 && segment->raw_nbytes <= PTWM_GROUP_NBYTES) {
        const struct ptwm_bytes old = w->compared;
        w->compared = scratch.raw;
        w->compared_segment = t->segment;
        scratch.raw = old;
    }
    ptwm_decode_scratch_release(&scratch);
    ptwm_tail_release(&tail);
    return status;
}

/* Whether tensor number index has exactly these bytes, as far as that can be found out. */
static enum ptwm_status has_bytes(struct ptwm_writer *w, uint64_t index, const uint8_t *data, bool *equal,
                                  struct ptwm_error *error)
{
    const struct ptwm_tensor_record *t = &w->manifest.tensors[index];
    struct ptwm_file *file;
    enum ptwm_status status;

    *equal = false;
    if (w->group_of[index] != PTWM_NO_GROUP) {
        *equal = memcmp(w->groups[w->group_of[index]]->raw.data + t->offset, data, (size_t)t->nbytes) == 0;
        return PTWM_OK;
    }
    if (w->compared_segment == t->segment) {
        *equal = memcmp(w->compared.data + t->offset, data, (size_t)t->nbytes) == 0;
        return PTWM_OK;
    }
    status = ptwm_output_read_back(w->output, &file, error);
    if (status != PTWM_OK || file == NULL)
        return status;
    status = compare_chunks(w, file, t, data, equal, error);
    ptwm_file_close(file);
    return status;
}

/* Finds an earlier tensor with the same bytes; *index is PTWM_NONE if there is none. */
enum ptwm_status ptwm_writer_find_equal(struct ptwm_writer *w, uint64_t hash, const uint8_t *data, uint64_t nbytes,
                                        uint64_t *index, struct ptwm_error *error)
{
    const uint64_t mask = w->by_hash_capacity - 1;
    enum ptwm_status status = PTWM_OK;

    *index = PTWM_NONE;
    for (uint64_t slot = hash & mask; w->by_hash_capacity > 0 && w->by_hash[slot] != 0; slot = (slot + 1) & mask) {
        const uint64_t i = w->by_hash[slot] - 1;
        bool equal;
        if (w->manifest.tensors[i].hash != hash || w->manifest.tensors[i].nbytes != nbytes)
            continue;
        status = has_bytes(w, i, data, &equal, error);
        if (status != PTWM_OK || equal) {
            *index = i;
            break;
        }
    }
    return status;
}

static void put_by_hash(uint64_t *table, uint64_t capacity, uint64_t hash, uint64_t index)
{
    uint64_t slot = hash & (capacity - 1);
    while (table[slot] != 0)
        slot = (slot + 1) & (capacity - 1);
    table[slot] = index + 1;
}

/* Lets later tensors find tensor number index by its bytes. */
enum ptwm_status ptwm_writer_remember_bytes(struct ptwm_writer *w, uint64_t index)
{
    if (w->by_hash_n >= w->by_hash_capacity / 2) {
        const uint64_t capacity = w->by_hash_capacity > 0 ? w->by_hash_capacity * 2 : 64;
        uint64_t *table = ptwm_calloc(w->allocator, capacity, sizeof *table);
        if (table == NULL)
            return PTWM_ERR_MEMORY;
        for (uint64_t s = 0; s < w->by_hash_capacity; s++)
            if (w->by_hash[s] != 0)
                put_by_hash(table, capacity, w->manifest.tensors[w->by_hash[s] - 1].hash, w->by_hash[s] - 1);
        ptwm_release(w->allocator, w->by_hash, w->by_hash_capacity, sizeof *table);
        w->by_hash = table;
        w->by_hash_capacity = capacity;
    }
    put_by_hash(w->by_hash, w->by_hash_capacity, w->manifest.tensors[index].hash, index);
    w->by_hash_n++;
    return PTWM_OK;
}
