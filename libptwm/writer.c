/*
 * The writer: what tensors there are, which bytes they share, and the file around the segments.
 *
 * A large tensor becomes a segment at once. Small ones wait in groups of one dtype, which become segments when they are full
 * or the file ends. Tensors with equal bytes, found by their hash and compared, refer to the same range.
 */
#include <errno.h>
#include <string.h>

#include "cbor.h"
#include "codec.h"
#include "float_encode.h"
#include "mapping.h"
#include "names.h"
#include "reader.h"
#include "segment_decode.h"
#include "segment_encode.h"
#include "status.h"
#include "threads.h"

enum {
    GROUP_NBYTES = 256 << 10,       /* of raw bytes: what fetching one small tensor may have to decode */
    GROUPED_TENSOR_NBYTES = 64 << 10,
    MAX_CHAINS = 64,
    MIN_ROW_ELEMENTS = 64,          /* shorter rows are taken together with the dimension before */
    COPY_NBYTES = 1 << 20,
    BATCHED_TENSOR_NBYTES = 16 << 20, /* larger tensors keep several threads busy by themselves */
    IN_FLIGHT_NBYTES = 128 << 20      /* of tensors that are coded in memory before they are written */
};
#define NO_GROUP UINT32_MAX

enum writer_state { WRITER_OPEN, WRITER_FINISHED, WRITER_FAILED };

/* How a tensor is to be coded; what tensors of one group have in common. */
struct recipe {
    uint32_t dtype;
    enum ptwm_method method;
    bool chains_are_callers;
    size_t n_chains;
    struct ptwm_parsed_chain chains[MAX_CHAINS];
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
    uint32_t *group_of; /* of each tensor: the group where it waits, or NO_GROUP */
    struct ptwm_name_index names;
    uint64_t *by_hash; /* hash table: index + 1 of tensors with bytes, or 0 */
    uint64_t by_hash_capacity, by_hash_n;
    struct group **groups; /* the open ones; NULL where one was closed */
    uint32_t n_groups, groups_capacity;
    struct copied_segment *copied; /* hash table */
    uint64_t copied_capacity, copied_n;
    struct ptwm_bytes metadata, source;
    bool has_metadata, has_source;
};

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
    w->metadata = w->source = empty;
    w->memory = ptwm_alloc(o->allocator, w->threads, sizeof *w->memory);
    for (unsigned i = 0; w->memory != NULL && i < w->threads; i++)
        ptwm_encode_memory_init(&w->memory[i], o->allocator);
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

static void release_group(struct ptwm_writer *w, uint32_t index)
{
    struct group *group = w->groups[index];

    w->groups[index] = NULL;
    if (group == NULL)
        return;
    ptwm_bytes_release(&group->raw);
    ptwm_bytes_release(&group->members);
    ptwm_release(w->allocator, group, 1, sizeof *group);
}

void ptwm_writer_close(struct ptwm_writer *w)
{
    if (w == NULL)
        return;
    for (uint64_t i = 0; i < w->manifest.n_tensors; i++)
        ptwm_release(w->allocator, (void *)(uintptr_t)w->manifest.tensors[i].name, w->manifest.tensors[i].name_nbytes, 1);
    for (uint32_t i = 0; i < w->n_groups; i++)
        release_group(w, i);
    ptwm_release(w->allocator, w->groups, w->groups_capacity, sizeof *w->groups);
    ptwm_release(w->allocator, w->manifest.tensors, w->tensors_capacity, sizeof *w->manifest.tensors);
    ptwm_release(w->allocator, w->group_of, w->tensors_capacity, sizeof *w->group_of);
    ptwm_release(w->allocator, w->manifest.segments, w->segments_capacity, sizeof *w->manifest.segments);
    ptwm_release(w->allocator, w->manifest.dims, w->manifest.dims_capacity, sizeof *w->manifest.dims);
    ptwm_release(w->allocator, w->by_hash, w->by_hash_capacity, sizeof *w->by_hash);
    ptwm_release(w->allocator, w->copied, w->copied_capacity, sizeof *w->copied);
    ptwm_name_index_release(&w->names);
    for (unsigned i = 0; w->memory != NULL && i < w->threads; i++)
        ptwm_encode_memory_release(&w->memory[i]);
    ptwm_release(w->allocator, w->memory, w->threads, sizeof *w->memory);
    ptwm_bytes_release(&w->metadata);
    ptwm_bytes_release(&w->source);
    ptwm_output_close(w->output);
    ptwm_release(w->allocator, w, 1, sizeof *w);
}

/* After this failure the writer is of no more use. */
static enum ptwm_status poison(struct ptwm_writer *w, enum ptwm_status status)
{
    if (status != PTWM_OK)
        w->state = WRITER_FAILED;
    return status;
}

static enum ptwm_status check_open(const struct ptwm_writer *w, struct ptwm_error *error)
{
    if (w == NULL)
        return ptwm_fail(error, PTWM_ERR_ARGUMENT, "writer");
    if (w->state != WRITER_OPEN)
        return ptwm_fail(error, PTWM_ERR_STATE, w->state == WRITER_FAILED ? "an earlier call failed" : "it is finished");
    return PTWM_OK;
}

/* --------------------------------------------------------------------------------------------- growing the lists */

/* Makes room for one more item of size bytes in an array; items and *capacity change together. */
static enum ptwm_status grow(const struct ptwm_allocator *allocator, void **items, uint64_t n, uint64_t capacity,
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

static enum ptwm_status reserve_tensor(struct ptwm_writer *w, uint32_t n_dims)
{
    struct ptwm_manifest *m = &w->manifest;
    enum ptwm_status status = PTWM_OK;

    if (m->n_tensors == w->tensors_capacity) {
        const uint64_t capacity = w->tensors_capacity * 2 + 16;
        void *tensors = m->tensors, *group_of = w->group_of;
        status = grow(w->allocator, &group_of, m->n_tensors, w->tensors_capacity, capacity, sizeof *w->group_of);
        if (status != PTWM_OK)
            return status;
        w->group_of = group_of;
        status = grow(w->allocator, &tensors, m->n_tensors, w->tensors_capacity, capacity, sizeof *m->tensors);
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
        status = grow(w->allocator, &dims, m->n_dims, m->dims_capacity, capacity, sizeof *m->dims);
        if (status != PTWM_OK)
            return status;
        m->dims = dims;
        m->dims_capacity = capacity;
    }
    return ptwm_name_index_reserve(&w->names, m->tensors, m->n_tensors + 1);
}

/* Adds a segment to the list; *index is its number. */
static enum ptwm_status add_segment(struct ptwm_writer *w, const struct ptwm_segment_record *segment, uint64_t *index)
{
    struct ptwm_manifest *m = &w->manifest;

    if (m->n_segments == w->segments_capacity) {
        const uint64_t capacity = w->segments_capacity * 2 + 16;
        void *segments = m->segments;
        if (grow(w->allocator, &segments, m->n_segments, w->segments_capacity, capacity, sizeof *m->segments) != PTWM_OK)
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
static enum ptwm_status add_record(struct ptwm_writer *w, const char *name, size_t name_nbytes, uint32_t dtype,
                                   const uint64_t *shape, uint32_t n_dims, uint64_t *index, struct ptwm_error *error)
{
    struct ptwm_manifest *m = &w->manifest;
    struct ptwm_tensor_record *t;
    char *copy;

    if (!ptwm_is_utf8(name, name_nbytes))
        return ptwm_fail(error, PTWM_ERR_ARGUMENT, "a name is not valid UTF-8");
    if (ptwm_name_index_find(&w->names, m->tensors, name, name_nbytes) != PTWM_NONE)
        return ptwm_fail(error, PTWM_ERR_DUPLICATE_NAME, "a tensor of that name is there already");
    if (reserve_tensor(w, n_dims) != PTWM_OK)
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
    w->group_of[m->n_tensors] = NO_GROUP;
    *index = m->n_tensors++;
    (void)ptwm_name_index_add(&w->names, m->tensors, *index);
    return PTWM_OK;
}

/* Makes tensor number index refer to the bytes of tensor number of. */
static enum ptwm_status share_bytes(struct ptwm_writer *w, uint64_t index, uint64_t of)
{
    struct ptwm_tensor_record *t = &w->manifest.tensors[index], *o = &w->manifest.tensors[of];

    t->segment = o->segment;
    t->offset = o->offset;
    t->nbytes = o->nbytes;
    t->hash = o->hash;
    t->has_hash = o->has_hash;
    w->group_of[index] = w->group_of[of];
    if (w->group_of[of] == NO_GROUP)
        return PTWM_OK;
    return ptwm_bytes_append(&w->groups[w->group_of[of]]->members, &index, sizeof index);
}

/* ------------------------------------------------------------------------------------------------- equal tensors */

/* Compares data with a range of a segment that has been written. */
static enum ptwm_status compare_stored(struct ptwm_writer *w, const struct ptwm_file *file,
                                       const struct ptwm_tensor_record *t, const uint8_t *data, bool *equal,
                                       struct ptwm_error *error)
{
    const struct ptwm_codec_context context = { w->allocator, w->zstd, w->level };
    struct ptwm_decode_scratch scratch;
    struct ptwm_tail tail;
    enum ptwm_status status = ptwm_tail_read(file, &w->manifest.segments[t->segment], w->allocator, &tail, error);
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
    if (w->group_of[index] != NO_GROUP) {
        *equal = memcmp(w->groups[w->group_of[index]]->raw.data + t->offset, data, (size_t)t->nbytes) == 0;
        return PTWM_OK;
    }
    status = ptwm_output_read_back(w->output, &file, error);
    if (status != PTWM_OK || file == NULL)
        return status;
    status = compare_stored(w, file, t, data, equal, error);
    ptwm_file_close(file);
    return status;
}

/* Finds an earlier tensor with the same bytes; *index is PTWM_NONE if there is none. */
static enum ptwm_status find_equal(struct ptwm_writer *w, uint64_t hash, const uint8_t *data, uint64_t nbytes,
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
static enum ptwm_status remember_bytes(struct ptwm_writer *w, uint64_t index)
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

/* ----------------------------------------------------------------------------------------------------- encoding */

/* Encodes raw bytes as a segment at the end of output. */
static enum ptwm_status encode_bytes(const struct ptwm_writer *w, const struct recipe *recipe, const uint8_t *data,
                                     uint64_t nbytes, uint64_t row_nbytes, unsigned threads,
                                     struct ptwm_encode_memory *memory, struct ptwm_output *output,
                                     struct ptwm_segment_record *record, struct ptwm_error *error)
{
    const struct ptwm_codec_context context = { w->allocator, w->zstd, w->level };
    const struct ptwm_encode_spec spec = { data,
                                           nbytes,
                                           row_nbytes,
                                           recipe->method,
                                           recipe->chains,
                                           recipe->n_chains,
                                           recipe->chains_are_callers,
                                           false,
                                           false,
                                           (w->flags & PTWM_WRITE_PLANE_CRC) != 0,
                                           w->chunk_nbytes,
                                           threads,
                                           &context,
                                           memory };
    return ptwm_segment_encode(&spec, output, record, error);
}

/* Encodes raw bytes as a new segment; *segment is its number. With one thread it takes the calling thread's memory alone. */
static enum ptwm_status encode_segment(struct ptwm_writer *w, const struct recipe *recipe, const uint8_t *data,
                                       uint64_t nbytes, uint64_t row_nbytes, unsigned threads, uint64_t *segment,
                                       struct ptwm_error *error)
{
    struct ptwm_segment_record record;
    enum ptwm_status status = encode_bytes(w, recipe, data, nbytes, row_nbytes, threads, w->memory, w->output, &record, error);

    if (status == PTWM_OK && add_segment(w, &record, segment) != PTWM_OK)
        status = ptwm_fail(error, PTWM_ERR_MEMORY, "another segment");
    return status;
}

/* Writes a segment that has been encoded elsewhere. */
static enum ptwm_status write_segment(struct ptwm_writer *w, const struct ptwm_segment_record *encoded,
                                      const struct ptwm_bytes *bytes, uint64_t *segment, struct ptwm_error *error)
{
    struct ptwm_segment_record record = *encoded;
    enum ptwm_status status = ptwm_segment_pad(w->output, record.flags, error);

    record.offset = ptwm_output_position(w->output);
    if (status == PTWM_OK)
        status = ptwm_output_write(w->output, bytes->data, bytes->nbytes, error);
    if (status == PTWM_OK && add_segment(w, &record, segment) != PTWM_OK)
        status = ptwm_fail(error, PTWM_ERR_MEMORY, "another segment");
    return status;
}

static bool same_recipe(const struct recipe *a, const struct recipe *b)
{
    if (a->dtype != b->dtype || a->method != b->method || a->chains_are_callers != b->chains_are_callers ||
        a->n_chains != b->n_chains)
        return false;
    for (size_t i = 0; i < a->n_chains; i++)
        if (a->chains[i].nbytes != b->chains[i].nbytes ||
            memcmp(a->chains[i].bytes, b->chains[i].bytes, a->chains[i].nbytes) != 0)
            return false;
    return true;
}

static void copy_recipe(struct recipe *to, const struct recipe *from)
{
    to->dtype = from->dtype;
    to->method = from->method;
    to->chains_are_callers = from->chains_are_callers;
    to->n_chains = from->n_chains;
    for (size_t i = 0; i < from->n_chains; i++)
        ptwm_chain_copy(&to->chains[i], &from->chains[i]);
}

/* Turns a group into a segment. */
static enum ptwm_status flush_group(struct ptwm_writer *w, uint32_t index, struct ptwm_error *error)
{
    struct group *group = w->groups[index];
    uint64_t segment = PTWM_NONE, tensor;
    enum ptwm_status status = encode_segment(w, &group->recipe, group->raw.data, group->raw.nbytes, 0, 1, &segment, error);

    for (size_t i = 0; status == PTWM_OK && i < group->members.nbytes; i += sizeof tensor) {
        memcpy(&tensor, group->members.data + i, sizeof tensor);
        w->manifest.tensors[tensor].segment = segment;
        w->group_of[tensor] = NO_GROUP;
    }
    if (status == PTWM_OK)
        release_group(w, index);
    return status;
}

static enum ptwm_status new_group(struct ptwm_writer *w, const struct recipe *recipe, uint32_t *index)
{
    const struct ptwm_bytes empty = { w->allocator, NULL, 0, 0 };
    struct group *group;
    uint32_t i = 0;

    while (i < w->n_groups && w->groups[i] != NULL)
        i++;
    if (i == w->groups_capacity) {
        void *groups = w->groups;
        if (grow(w->allocator, &groups, w->n_groups, w->groups_capacity, w->groups_capacity * 2 + 8,
                 sizeof *w->groups) != PTWM_OK)
            return PTWM_ERR_MEMORY;
        w->groups = groups;
        w->groups_capacity = w->groups_capacity * 2 + 8;
    }
    group = ptwm_alloc(w->allocator, 1, sizeof *group);
    if (group == NULL)
        return PTWM_ERR_MEMORY;
    copy_recipe(&group->recipe, recipe);
    group->raw = group->members = empty;
    w->groups[i] = group;
    if (i == w->n_groups)
        w->n_groups++;
    *index = i;
    return PTWM_OK;
}

/* Puts a small tensor into the group of its recipe. */
static enum ptwm_status add_to_group(struct ptwm_writer *w, const struct recipe *recipe, const uint8_t *data,
                                     uint64_t nbytes, uint64_t tensor, struct ptwm_error *error)
{
    enum ptwm_status status = PTWM_OK;
    struct group *group;
    uint32_t i = 0;

    while (i < w->n_groups && (w->groups[i] == NULL || !same_recipe(&w->groups[i]->recipe, recipe)))
        i++;
    if (i < w->n_groups && w->groups[i]->raw.nbytes + nbytes > GROUP_NBYTES) {
        status = flush_group(w, i, error);
        i = w->n_groups;
    }
    if (status == PTWM_OK && i == w->n_groups && new_group(w, recipe, &i) != PTWM_OK)
        status = ptwm_fail(error, PTWM_ERR_MEMORY, "a group of tensors");
    if (status != PTWM_OK)
        return status;
    group = w->groups[i];
    w->manifest.tensors[tensor].offset = group->raw.nbytes;
    w->group_of[tensor] = i;
    if (ptwm_bytes_append(&group->raw, data, (size_t)nbytes) != PTWM_OK ||
        ptwm_bytes_append(&group->members, &tensor, sizeof tensor) != PTWM_OK)
        return ptwm_fail(error, PTWM_ERR_MEMORY, "a group of tensors");
    return PTWM_OK;
}

/* ------------------------------------------------------------------------------------------------------- adding */

static enum ptwm_status check_spec(const struct ptwm_tensor_spec *s, struct ptwm_error *error)
{
    uint64_t bits;

    if ((s->name == NULL && s->name_nbytes > 0) || (s->shape == NULL && s->n_dims > 0) ||
        (s->data == NULL && s->nbytes > 0))
        return ptwm_fail(error, PTWM_ERR_ARGUMENT, "a pointer is NULL");
    if (s->nbytes > INT64_MAX || s->nbytes > SIZE_MAX)
        return ptwm_fail(error, PTWM_ERR_ARGUMENT, "%llu bytes are too many", (unsigned long long)s->nbytes);
    if (s->method < PTWM_METHOD_HUFFMAN || s->method > PTWM_METHOD_IDENTITY)
        return ptwm_fail(error, PTWM_ERR_ARGUMENT, "method %d", (int)s->method);
    if (s->dtype == PTWM_DTYPE_NONE && s->n_dims > 0)
        return ptwm_fail(error, PTWM_ERR_ARGUMENT, "a shape without a dtype");
    if (s->dtype == PTWM_DTYPE_NONE)
        return PTWM_OK;
    if (ptwm_dtype_bits(s->dtype) == 0)
        return ptwm_fail(error, PTWM_ERR_ARGUMENT, "unknown dtype %lu", (unsigned long)s->dtype);
    for (uint32_t i = 0; i < s->n_dims; i++)
        if (s->shape[i] > INT64_MAX)
            return ptwm_fail(error, PTWM_ERR_ARGUMENT, "a dimension is 2^63 or more");
    if (!ptwm_shape_bits(s->shape, s->n_dims, ptwm_dtype_bits(s->dtype), &bits) || bits % 8 != 0 || bits / 8 != s->nbytes)
        return ptwm_fail(error, PTWM_ERR_SIZE_MISMATCH, "%llu bytes do not match shape and dtype %s",
                         (unsigned long long)s->nbytes, ptwm_dtype_name(s->dtype));
    return PTWM_OK;
}

/* Appends a chain to the recipe; a STANDARD one that does not fit is left out, a caller's one is an error. */
static enum ptwm_status add_chain(struct recipe *recipe, const void *bytes, size_t nbytes, uint64_t data_nbytes,
                                  struct ptwm_error *error)
{
    struct ptwm_parsed_chain *chain = &recipe->chains[recipe->n_chains];
    enum ptwm_status status = ptwm_chain_parse(bytes, nbytes, chain, error);

    if (status != PTWM_OK)
        return status;
    if (data_nbytes % chain->granule_nbytes == 0)
        recipe->n_chains++;
    else if (recipe->chains_are_callers)
        return ptwm_fail(error, PTWM_ERR_CHAIN, "a chain of multiples of %lu bytes, for %llu bytes",
                         (unsigned long)chain->granule_nbytes, (unsigned long long)data_nbytes);
    return PTWM_OK;
}

static enum ptwm_status make_recipe(const struct ptwm_tensor_spec *s, struct recipe *recipe, struct ptwm_error *error)
{
    enum ptwm_status status = PTWM_OK;
    const void *bytes;
    size_t nbytes;

    recipe->dtype = s->dtype;
    recipe->method = s->method;
    recipe->chains_are_callers = s->chains != NULL;
    recipe->n_chains = 0;
    if (s->chains != NULL && (s->n_chains == 0 || s->n_chains > MAX_CHAINS))
        return ptwm_fail(error, PTWM_ERR_ARGUMENT, "%zu chains; 1 to %d are possible", s->n_chains, MAX_CHAINS);
    for (size_t i = 0; s->chains != NULL && i < s->n_chains && status == PTWM_OK; i++)
        status = add_chain(recipe, s->chains[i].bytes, s->chains[i].nbytes, s->nbytes, error);
    for (size_t i = 0; s->chains == NULL && status == PTWM_OK; i++) {
        if (ptwm_chain_standard(s->dtype, i, &bytes, &nbytes) != PTWM_OK)
            break;
        status = add_chain(recipe, bytes, nbytes, s->nbytes, error);
    }
    if (status == PTWM_OK && s->method == PTWM_METHOD_IDENTITY) { /* bypasses chains, legal as they must be */
        recipe->n_chains = 0;
        status = add_chain(recipe, "", 0, s->nbytes, error);
    }
    return status;
}

/* Bytes of a row, over which columns are counted: the last dimension, and those before it while that is short. */
static uint64_t row_nbytes(const struct ptwm_tensor_spec *s)
{
    const uint32_t bits = ptwm_dtype_bits(s->dtype);
    uint64_t n = 1;

    if (s->n_dims < 2 || s->nbytes == 0)
        return 0;
    for (uint32_t i = s->n_dims; i-- > 1 && n < MIN_ROW_ELEMENTS;)
        n *= s->shape[i]; /* divides the number of elements: no overflow */
    /* Complex numbers are coded as their parts, of which twice as many make a row. */
    return n > 1 && n * bits % 8 == 0 ? n * bits / 8 : 0;
}

/* What has been done for a tensor before it is its turn. */
struct prepared {
    uint64_t hash;
    bool is_encoded;
    struct ptwm_segment_record record;
    struct ptwm_bytes bytes;
};

static enum ptwm_status add_bytes(struct ptwm_writer *w, const struct ptwm_tensor_spec *s, const struct recipe *recipe,
                                  const struct prepared *prepared, uint64_t index, struct ptwm_error *error)
{
    const uint64_t hash = prepared != NULL ? prepared->hash : ptwm_xxh3_64(s->data, (size_t)s->nbytes);
    struct ptwm_tensor_record *t = &w->manifest.tensors[index];
    enum ptwm_status status;
    uint64_t equal;

    status = find_equal(w, hash, s->data, s->nbytes, &equal, error);
    if (status != PTWM_OK)
        return status;
    if (equal != PTWM_NONE) {
        if (share_bytes(w, index, equal) != PTWM_OK)
            return ptwm_fail(error, PTWM_ERR_MEMORY, "another tensor");
        t->has_hash = (w->flags & PTWM_WRITE_PAYLOAD_HASH) != 0;
        return PTWM_OK;
    }
    t->nbytes = s->nbytes;
    t->hash = hash;
    t->has_hash = (w->flags & PTWM_WRITE_PAYLOAD_HASH) != 0;
    if (s->nbytes <= GROUPED_TENSOR_NBYTES)
        status = add_to_group(w, recipe, s->data, s->nbytes, index, error);
    else if (prepared != NULL && prepared->is_encoded)
        status = write_segment(w, &prepared->record, &prepared->bytes, &t->segment, error);
    else
        /* What is prepared for others keeps the other threads busy, and their memory. */
        status = encode_segment(w, recipe, s->data, s->nbytes, row_nbytes(s), prepared != NULL ? 1 : w->threads, &t->segment,
                                error);
    if (status == PTWM_OK && remember_bytes(w, index) != PTWM_OK)
        status = ptwm_fail(error, PTWM_ERR_MEMORY, "another tensor");
    return status;
}

/* Completes a caller's spec, which may be of an older and shorter kind. */
static struct ptwm_tensor_spec complete_spec(const struct ptwm_tensor_spec *given)
{
    struct ptwm_tensor_spec s = PTWM_TENSOR_SPEC_INIT;
    memcpy(&s, given, given->struct_nbytes < sizeof s ? given->struct_nbytes : sizeof s);
    return s;
}

/* Specs lie as far apart as the caller's kind of them is long. */
static const struct ptwm_tensor_spec *spec_at(const struct ptwm_tensor_spec *specs, size_t i)
{
    return (const struct ptwm_tensor_spec *)(const void *)((const uint8_t *)specs + i * specs->struct_nbytes);
}

/* Adds a tensor, for which something may have been prepared. */
static enum ptwm_status add_prepared(struct ptwm_writer *w, const struct ptwm_tensor_spec *s,
                                     const struct prepared *prepared, struct ptwm_error *error)
{
    struct recipe *recipe = ptwm_alloc(w->allocator, 1, sizeof *recipe);
    uint64_t index = w->manifest.n_tensors;
    enum ptwm_status status;

    if (recipe == NULL)
        return poison(w, ptwm_fail(error, PTWM_ERR_MEMORY, "a tensor"));
    status = check_spec(s, error);
    if (status == PTWM_OK)
        status = make_recipe(s, recipe, error);
    if (status == PTWM_OK) {
        status = add_record(w, s->name, s->name_nbytes, s->dtype, s->shape, s->n_dims, &index, error);
        if (status == PTWM_ERR_MEMORY)
            poison(w, status);
        if (status == PTWM_OK && s->nbytes > 0)
            status = poison(w, add_bytes(w, s, recipe, prepared, index, error));
    }
    if (status != PTWM_OK)
        ptwm_fail_at(error, index, PTWM_NONE);
    ptwm_release(w->allocator, recipe, 1, sizeof *recipe);
    return status;
}

enum ptwm_status ptwm_writer_add(struct ptwm_writer *w, const struct ptwm_tensor_spec *given, struct ptwm_error *error)
{
    enum ptwm_status status = check_open(w, error);
    struct ptwm_tensor_spec s;

    if (status == PTWM_OK && given == NULL)
        status = ptwm_fail(error, PTWM_ERR_ARGUMENT, "spec");
    if (status != PTWM_OK)
        return status;
    s = complete_spec(given);
    return add_prepared(w, &s, NULL, error);
}

/* ------------------------------------------------------------------------------------------------- adding many */

/* Tensors that are encoded side by side. */
struct batch {
    struct ptwm_writer *w;
    const struct ptwm_tensor_spec *specs;
    struct prepared *prepared; /* slots */
};

static int append_bytes(void *context, const void *data, size_t nbytes)
{
    return ptwm_bytes_append(context, data, nbytes) == PTWM_OK ? 0 : ENOMEM;
}

static enum ptwm_status encode_prepared(const struct ptwm_writer *w, const struct ptwm_tensor_spec *s,
                                        struct ptwm_encode_memory *memory, struct prepared *prepared,
                                        struct ptwm_error *error)
{
    const struct ptwm_sink sink = { append_bytes, &prepared->bytes };
    struct recipe *recipe = ptwm_alloc(w->allocator, 1, sizeof *recipe);
    struct ptwm_output *output = NULL;
    enum ptwm_status status = recipe != NULL ? make_recipe(s, recipe, error) : PTWM_ERR_MEMORY;

    /* Results are rarely larger than the raw bytes, and by little. */
    prepared->bytes.nbytes = 0;
    if (status == PTWM_OK)
        status = ptwm_bytes_reserve(&prepared->bytes, s->nbytes + 4096);
    if (status == PTWM_OK)
        status = ptwm_output_open_sink(&sink, w->allocator, &output, error);
    if (status == PTWM_OK)
        status = encode_bytes(w, recipe, s->data, s->nbytes, row_nbytes(s), 1, memory, output, &prepared->record,
                              error);
    prepared->is_encoded = status == PTWM_OK;
    ptwm_output_close(output);
    ptwm_release(w->allocator, recipe, 1, sizeof *recipe);
    return status;
}

/*
 * Prepares one tensor. What fails here fails again when it is the tensor's turn, which is when it is reported; so the only
 * thing to do about it is to leave the tensor as it is.
 */
static enum ptwm_status prepare(void *context, size_t task, size_t slot, unsigned worker, struct ptwm_error *error)
{
    const struct batch *batch = context;
    const struct ptwm_tensor_spec s = complete_spec(spec_at(batch->specs, task));
    struct prepared *prepared = &batch->prepared[slot];

    (void)error;
    prepared->is_encoded = false;
    if (check_spec(&s, NULL) != PTWM_OK || s.nbytes == 0)
        return PTWM_OK;
    prepared->hash = ptwm_xxh3_64(s.data, (size_t)s.nbytes);
    if (s.nbytes > GROUPED_TENSOR_NBYTES)
        (void)encode_prepared(batch->w, &s, &batch->w->memory[worker], prepared, NULL);
    return PTWM_OK;
}

static enum ptwm_status add_from_slot(void *context, size_t task, size_t slot, struct ptwm_error *error)
{
    const struct batch *batch = context;
    const struct ptwm_tensor_spec s = complete_spec(spec_at(batch->specs, task));
    return add_prepared(batch->w, &s, s.nbytes > 0 ? &batch->prepared[slot] : NULL, error);
}

/* The largest tensor of a batch, so that all in flight take no more than IN_FLIGHT_NBYTES. */
static uint64_t batched_nbytes(const struct ptwm_writer *w)
{
    const uint64_t most = IN_FLIGHT_NBYTES / (2 * w->threads);
    return most < BATCHED_TENSOR_NBYTES ? most : BATCHED_TENSOR_NBYTES;
}

/* How many of n tensors make a batch: those in a row that are not large. */
static size_t batch_length(const struct ptwm_writer *w, const struct ptwm_tensor_spec *specs, size_t n)
{
    size_t i = 0;

    while (i < n && spec_at(specs, i)->nbytes <= batched_nbytes(w))
        i++;
    return i;
}

static enum ptwm_status add_batch(struct ptwm_writer *w, const struct ptwm_tensor_spec *specs, size_t n,
                                  struct ptwm_error *error)
{
    const size_t n_slots = 2 * (size_t)w->threads;
    struct batch batch = { w, specs, ptwm_calloc(w->allocator, n_slots, sizeof *batch.prepared) };
    enum ptwm_status status;

    if (batch.prepared == NULL)
        return poison(w, ptwm_fail(error, PTWM_ERR_MEMORY, "%zu tensors", n));
    for (size_t i = 0; i < n_slots; i++)
        batch.prepared[i].bytes.allocator = w->allocator;
    status = ptwm_parallel_in_order(n, n_slots, w->threads, prepare, add_from_slot, &batch, error);
    for (size_t i = 0; i < n_slots; i++)
        ptwm_bytes_release(&batch.prepared[i].bytes);
    ptwm_release(w->allocator, batch.prepared, n_slots, sizeof *batch.prepared);
    return status;
}

enum ptwm_status ptwm_writer_add_many(struct ptwm_writer *w, const struct ptwm_tensor_spec *specs, size_t n_specs,
                                      struct ptwm_error *error)
{
    enum ptwm_status status = check_open(w, error);

    if (status == PTWM_OK && specs == NULL && n_specs > 0)
        status = ptwm_fail(error, PTWM_ERR_ARGUMENT, "specs");
    for (size_t i = 0; i < n_specs && status == PTWM_OK;) {
        const struct ptwm_tensor_spec *next = spec_at(specs, i);
        const size_t n = w->threads > 1 ? batch_length(w, next, n_specs - i) : 0;
        status = n > 1 ? add_batch(w, next, n, error) : ptwm_writer_add(w, next, error);
        i += n > 1 ? n : 1;
    }
    return status;
}

enum ptwm_status ptwm_writer_add_alias(struct ptwm_writer *w, const char *name, size_t name_nbytes,
                                       const char *target, size_t target_nbytes, struct ptwm_error *error)
{
    enum ptwm_status status = check_open(w, error);
    const struct ptwm_tensor_record *t;
    uint64_t of, index;

    if (status != PTWM_OK)
        return status;
    if ((name == NULL && name_nbytes > 0) || (target == NULL && target_nbytes > 0))
        return ptwm_fail(error, PTWM_ERR_ARGUMENT, "a pointer is NULL");
    of = ptwm_name_index_find(&w->names, w->manifest.tensors, target != NULL ? target : "", target_nbytes);
    if (of == PTWM_NONE)
        return ptwm_fail(error, PTWM_ERR_NO_TENSOR, "the target of an alias");
    t = &w->manifest.tensors[of];
    /* The shape is copied as the record is made; room for it first, so that it does not move meanwhile. */
    if (reserve_tensor(w, t->n_dims) != PTWM_OK)
        return poison(w, ptwm_fail(error, PTWM_ERR_MEMORY, "another tensor"));
    t = &w->manifest.tensors[of];
    status = add_record(w, name, name_nbytes, t->dtype, w->manifest.dims + t->first_dim, t->n_dims, &index, error);
    if (status == PTWM_OK && share_bytes(w, index, of) != PTWM_OK)
        status = ptwm_fail(error, PTWM_ERR_MEMORY, "another tensor");
    if (status == PTWM_ERR_MEMORY)
        poison(w, status);
    return status;
}

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
    if (status == PTWM_OK && (add_segment(w, &record, to) != PTWM_OK ||
                              (entry.to = *to, remember_copied(w, &entry) != PTWM_OK)))
        status = ptwm_fail(error, PTWM_ERR_MEMORY, "another segment");
    return status;
}

/* A tensor that shares a small segment with others is taken out of it, so that they do not come along. */
static bool is_taken_out(const struct ptwm_tensor_record *t, const struct ptwm_segment_record *s)
{
    return s->raw_nbytes <= GROUP_NBYTES && t->nbytes <= s->raw_nbytes / 2;
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

    status = add_record(w, spec->name, spec->name_nbytes, spec->dtype, spec->shape, spec->n_dims, &index, error);
    if (status == PTWM_ERR_MEMORY)
        poison(w, status);
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
    if (status == PTWM_OK && t->has_hash && remember_bytes(w, index) != PTWM_OK)
        status = ptwm_fail(error, PTWM_ERR_MEMORY, "another tensor");
    return poison(w, status);
}

enum ptwm_status ptwm_writer_copy(struct ptwm_writer *w, const struct ptwm_reader *r, uint64_t index, const char *name,
                                  size_t name_nbytes, struct ptwm_error *error)
{
    struct ptwm_tensor_spec spec = PTWM_TENSOR_SPEC_INIT;
    enum ptwm_status status = check_open(w, error);
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
    spec.shape = r->manifest.dims + t->first_dim;
    /* What this library does not know the dtype of can only be moved as it is. */
    if (t->segment != PTWM_NONE && is_taken_out(t, &r->manifest.segments[t->segment]) &&
        (t->dtype == PTWM_DTYPE_NONE || ptwm_dtype_bits(t->dtype) > 0))
        return copy_decoded(w, r, index, &spec, error);
    return copy_encoded(w, r, t, &spec, error);
}

/* ---------------------------------------------------------------------------------------------------- finishing */

static enum ptwm_status set_cbor(struct ptwm_writer *w, struct ptwm_bytes *bytes, bool *has, const void *cbor,
                                 size_t cbor_nbytes, struct ptwm_error *error)
{
    enum ptwm_status status = check_open(w, error);

    if (status != PTWM_OK)
        return status;
    bytes->nbytes = 0;
    *has = cbor != NULL;
    if (cbor != NULL && ptwm_bytes_append(bytes, cbor, cbor_nbytes) != PTWM_OK)
        return poison(w, ptwm_fail(error, PTWM_ERR_MEMORY, "%zu bytes of metadata", cbor_nbytes));
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
    enum ptwm_status status = check_open(w, error);

    if (status != PTWM_OK)
        return status;
    for (uint32_t i = 0; i < w->n_groups && status == PTWM_OK; i++)
        if (w->groups[i] != NULL)
            status = flush_group(w, i, error);
    if (status == PTWM_OK)
        status = write_end(w, error);
    if (status == PTWM_OK)
        status = ptwm_output_publish(w->output, error);
    if (status == PTWM_OK)
        w->state = WRITER_FINISHED;
    return poison(w, status);
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
