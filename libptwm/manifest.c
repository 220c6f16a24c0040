#include "manifest.h"

#include <string.h>

#include "bits.h"
#include "cbor.h"
#include "chain.h"
#include "status.h"

static const uint8_t magic[8] = { 0xD7, 'p', 't', 'w', 'm', '\r', '\n', 0x1A };
static const uint8_t end_magic[8] = { 0x1A, '\n', '\r', 'm', 'w', 't', 'p', 0xD7 };
static const uint8_t foreign_magic[8] = { 0x89, 'P', 'T', 'W', 'M', '\r', '\n', 0x1A };

/* Keys of the manifest and of a tensor. */
enum { KEY_FEATURES = 0, KEY_SEGMENTS = 1, KEY_TENSORS = 2, KEY_METADATA = 4, KEY_SOURCE = 5 };
enum { KEY_NAME = 0, KEY_DTYPE = 1, KEY_SHAPE = 2, KEY_SEGMENT = 3, KEY_RANGE = 4, KEY_HASH = 5 };

/* --------------------------------------------------------------------------------------------- header and footer */

void ptwm_header_write(uint8_t header[PTWM_HEADER_NBYTES])
{
    memcpy(header, magic, sizeof magic);
    ptwm_store32(header + 8, PTWM_FORMAT_VERSION);
    ptwm_store32(header + 12, 0);
}

enum ptwm_status ptwm_header_check(const uint8_t *header, size_t nbytes, struct ptwm_error *error)
{
    if (nbytes >= sizeof magic && memcmp(header, foreign_magic, sizeof magic) == 0)
        return ptwm_fail(error, PTWM_ERR_FOREIGN, "the PTWM container of PyPI's \"ptwm\", another format of that name");
    if (nbytes < sizeof magic || memcmp(header, magic, sizeof magic) != 0) {
        /* A prefix of the magic, however short but for nothing at all, was a .ptwm once. */
        if (nbytes > 0 && nbytes < sizeof magic && memcmp(header, magic, nbytes) == 0)
            return ptwm_fail(error, PTWM_ERR_TRUNCATED, "the header is cut short");
        return ptwm_fail(error, PTWM_ERR_NOT_PTWM, nbytes == 0 ? "the file is empty" : "the magic number is missing");
    }
    if (nbytes < PTWM_HEADER_NBYTES)
        return ptwm_fail(error, PTWM_ERR_TRUNCATED, "the header is cut short");
    if (ptwm_load32(header + 8) != PTWM_FORMAT_VERSION)
        return ptwm_fail(error, PTWM_ERR_VERSION, "version %lu", (unsigned long)ptwm_load32(header + 8));
    if (ptwm_load32(header + 12) != 0)
        return ptwm_fail(error, PTWM_ERR_PADDING, "the header's last field");
    return PTWM_OK;
}

void ptwm_footer_write(uint8_t bytes[PTWM_FOOTER_NBYTES], const struct ptwm_footer *footer)
{
    ptwm_store64(bytes, footer->manifest_offset);
    ptwm_store64(bytes + 8, footer->manifest_nbytes);
    ptwm_store64(bytes + 16, footer->file_nbytes);
    ptwm_store32(bytes + 24, footer->manifest_crc);
    ptwm_store32(bytes + 28, PTWM_FORMAT_VERSION);
    memcpy(bytes + 32, end_magic, sizeof end_magic);
}

enum ptwm_status ptwm_footer_read(const uint8_t bytes[PTWM_FOOTER_NBYTES], uint64_t file_nbytes,
                                  struct ptwm_footer *footer, struct ptwm_error *error)
{
    uint64_t end;

    if (memcmp(bytes + 32, end_magic, sizeof end_magic) != 0)
        return ptwm_fail(error, PTWM_ERR_TRUNCATED, "the footer is missing: the file is cut short or has bytes behind it");
    if (ptwm_load32(bytes + 28) != PTWM_FORMAT_VERSION)
        return ptwm_fail(error, PTWM_ERR_VERSION, "version %lu", (unsigned long)ptwm_load32(bytes + 28));
    footer->manifest_offset = ptwm_load64(bytes);
    footer->manifest_nbytes = ptwm_load64(bytes + 8);
    footer->file_nbytes = ptwm_load64(bytes + 16);
    footer->manifest_crc = ptwm_load32(bytes + 24);
    if (footer->file_nbytes != file_nbytes)
        return ptwm_fail(error, footer->file_nbytes > file_nbytes ? PTWM_ERR_TRUNCATED : PTWM_ERR_TRAILING,
                         "%llu bytes, of which the footer knows %llu", (unsigned long long)file_nbytes,
                         (unsigned long long)footer->file_nbytes);
    if (footer->manifest_offset < PTWM_HEADER_NBYTES ||
        !ptwm_add_u64(footer->manifest_offset, footer->manifest_nbytes, &end) ||
        end != file_nbytes - PTWM_FOOTER_NBYTES)
        return ptwm_fail(error, PTWM_ERR_MANIFEST, "the footer puts the manifest at %llu, %llu bytes long",
                         (unsigned long long)footer->manifest_offset, (unsigned long long)footer->manifest_nbytes);
    return PTWM_OK;
}

uint64_t ptwm_segment_position(uint64_t position, uint32_t flags)
{
    const uint64_t a = PTWM_SEGMENT_ALIGNMENT;
    return flags & PTWM_SEGMENT_ALIGNED ? (position + a - 1) / a * a : position;
}

bool ptwm_shape_bits(const uint64_t *shape, uint32_t n_dims, uint32_t dtype_bits, uint64_t *bits)
{
    *bits = dtype_bits;
    for (uint32_t i = 0; i < n_dims; i++)
        if (shape[i] == 0) {
            *bits = 0;
            return true;
        }
    for (uint32_t i = 0; i < n_dims; i++)
        if (!ptwm_mul_u64(*bits, shape[i], bits))
            return false;
    return true;
}

/* ------------------------------------------------------------------------------------------------------ reading */

/* What a parser of the manifest needs: the position, what it fills, and where errors go. */
struct parser {
    struct ptwm_cursor c;
    const uint8_t *begin;
    uint64_t manifest_offset;
    struct ptwm_manifest *manifest;
    struct ptwm_error *error;
};

static enum ptwm_status malformed(struct parser *p, uint64_t tensor, const char *what)
{
    ptwm_fail(p->error, PTWM_ERR_MANIFEST, "%s", what);
    /* A failed cursor stands at the end: its place is lost. */
    ptwm_fail_at(p->error, tensor, p->c.failed ? p->manifest_offset : p->manifest_offset + (uint64_t)(p->c.next - p->begin));
    return PTWM_ERR_MANIFEST;
}

static enum ptwm_status read_features(struct parser *p)
{
    uint64_t n = ptwm_cbor_read_count(&p->c, PTWM_CBOR_ARRAY);

    for (uint64_t i = 0; i < n && !p->c.failed; i++) {
        size_t nbytes;
        const uint8_t *name = ptwm_cbor_read_string(&p->c, PTWM_CBOR_TEXT, &nbytes);
        if (name != NULL) /* this version knows no feature at all */
            return ptwm_fail(p->error, PTWM_ERR_FEATURE, "\"%.*s\"", (int)(nbytes < 100 ? nbytes : 100), (const char *)name);
    }
    return PTWM_OK;
}

static enum ptwm_status read_segment(struct parser *p, struct ptwm_segment_record *s, uint64_t *position)
{
    uint64_t n = ptwm_cbor_read_count(&p->c, PTWM_CBOR_ARRAY), flags;

    if (n < 4) /* further fields are for later versions */
        return malformed(p, PTWM_NONE, "a segment has fewer than four fields");
    s->stored_nbytes = ptwm_cbor_read_uint(&p->c);
    s->tail_nbytes = ptwm_cbor_read_uint(&p->c);
    s->raw_nbytes = ptwm_cbor_read_uint(&p->c);
    flags = ptwm_cbor_read_uint(&p->c);
    while (n-- > 4)
        ptwm_cbor_skip(&p->c, 3);
    if (p->c.failed)
        return malformed(p, PTWM_NONE, "a segment's fields");
    if (flags > (PTWM_SEGMENT_CHECKED | PTWM_SEGMENT_ALIGNED))
        return malformed(p, PTWM_NONE, "a segment has unknown flags");
    s->flags = (uint32_t)flags;
    /*
     * A chunk takes at least two bytes in the tail and holds at most PTWM_MAX_CHUNK_NBYTES: a raw length beyond that is
     * false, however small the file.
     */
    if (s->tail_nbytes == 0 || s->tail_nbytes > s->stored_nbytes || s->raw_nbytes == 0 ||
        s->raw_nbytes > INT64_MAX || ptwm_ceil_div(s->raw_nbytes, PTWM_MAX_CHUNK_NBYTES) > s->tail_nbytes / 2)
        return malformed(p, PTWM_NONE, "a segment's lengths contradict each other");
    if (*position > UINT64_MAX - PTWM_SEGMENT_ALIGNMENT)
        return malformed(p, PTWM_NONE, "the segments do not fit the file");
    s->offset = ptwm_segment_position(*position, s->flags);
    if (!ptwm_add_u64(s->offset, s->stored_nbytes, position) || *position > p->manifest_offset)
        return malformed(p, PTWM_NONE, "the segments do not fit the file");
    return PTWM_OK;
}

static enum ptwm_status read_segments(struct parser *p)
{
    struct ptwm_manifest *m = p->manifest;
    uint64_t n = ptwm_cbor_read_count(&p->c, PTWM_CBOR_ARRAY), position = PTWM_HEADER_NBYTES;

    if (p->c.failed || n > ptwm_cursor_left(&p->c) / 5) /* a segment takes five bytes or more */
        return malformed(p, PTWM_NONE, "the list of segments");
    m->segments = ptwm_calloc(m->allocator, n, sizeof *m->segments);
    if (m->segments == NULL)
        return ptwm_fail(p->error, PTWM_ERR_MEMORY, "%llu segments", (unsigned long long)n);
    m->n_segments = n;
    for (uint64_t i = 0; i < n; i++) {
        enum ptwm_status status = read_segment(p, &m->segments[i], &position);
        if (status != PTWM_OK)
            return status;
    }
    if (position != p->manifest_offset)
        return malformed(p, PTWM_NONE, "the segments do not end where the manifest begins");
    return PTWM_OK;
}

static enum ptwm_status read_shape(struct parser *p, uint64_t tensor, struct ptwm_tensor_record *t)
{
    struct ptwm_manifest *m = p->manifest;
    uint64_t n = ptwm_cbor_read_count(&p->c, PTWM_CBOR_ARRAY);

    if (n > UINT32_MAX)
        return malformed(p, tensor, "a shape has too many dimensions");
    if (n > m->dims_capacity - m->n_dims) {
        uint64_t capacity = m->dims_capacity + m->dims_capacity / 2 + n + 16;
        uint64_t *dims = ptwm_alloc(m->allocator, capacity, sizeof *dims);
        if (dims == NULL)
            return ptwm_fail(p->error, PTWM_ERR_MEMORY, "%llu dimensions", (unsigned long long)capacity);
        if (m->n_dims > 0)
            memcpy(dims, m->dims, m->n_dims * sizeof *dims);
        ptwm_release(m->allocator, m->dims, m->dims_capacity, sizeof *dims);
        m->dims = dims;
        m->dims_capacity = capacity;
    }
    t->first_dim = m->n_dims;
    t->n_dims = (uint32_t)n;
    for (uint64_t i = 0; i < n; i++) {
        uint64_t dim = ptwm_cbor_read_uint(&p->c);
        if (dim > INT64_MAX)
            return malformed(p, tensor, "a dimension is 2^63 or more");
        m->dims[m->n_dims++] = dim;
    }
    return PTWM_OK;
}

/* Reads one field of a tensor. fields collects which were there. */
static enum ptwm_status read_tensor_field(struct parser *p, uint64_t tensor, struct ptwm_tensor_record *t, uint64_t key,
                                          uint32_t *fields)
{
    uint64_t dtype;

    if (key <= KEY_HASH)
        *fields |= 1u << key;
    switch (key) {
    case KEY_NAME:
        t->name = (const char *)ptwm_cbor_read_string(&p->c, PTWM_CBOR_TEXT, &t->name_nbytes);
        return PTWM_OK;
    case KEY_DTYPE:
        dtype = ptwm_cbor_read_uint(&p->c);
        if (dtype == PTWM_DTYPE_NONE || dtype > UINT32_MAX)
            return malformed(p, tensor, "a dtype is 0 or too large");
        t->dtype = (uint32_t)dtype;
        return PTWM_OK;
    case KEY_SHAPE:
        return read_shape(p, tensor, t);
    case KEY_SEGMENT:
        t->segment = ptwm_cbor_read_uint(&p->c);
        return PTWM_OK;
    case KEY_RANGE:
        if (ptwm_cbor_read_count(&p->c, PTWM_CBOR_ARRAY) != 2)
            return malformed(p, tensor, "a range is not a pair");
        t->offset = ptwm_cbor_read_uint(&p->c);
        t->nbytes = ptwm_cbor_read_uint(&p->c);
        return PTWM_OK;
    case KEY_HASH:
        t->hash = ptwm_cbor_read_uint(&p->c);
        t->has_hash = true;
        return PTWM_OK;
    default:
        ptwm_cbor_skip(&p->c, 3);
        return PTWM_OK;
    }
}

/* Checks that a tensor's fields go together, and finds its length. */
static enum ptwm_status check_tensor(struct parser *p, uint64_t tensor, struct ptwm_tensor_record *t, uint32_t fields)
{
    const struct ptwm_manifest *m = p->manifest;
    uint64_t end, bits;

    if (!(fields & 1u << KEY_NAME))
        return malformed(p, tensor, "a tensor has no name");
    if (!(fields & 1u << KEY_DTYPE) != !(fields & 1u << KEY_SHAPE))
        return malformed(p, tensor, "a tensor has only one of dtype and shape");
    if (fields & 1u << KEY_SEGMENT) {
        if (t->segment >= m->n_segments)
            return malformed(p, tensor, "a tensor's segment does not exist");
        if (!(fields & 1u << KEY_RANGE))
            t->nbytes = m->segments[t->segment].raw_nbytes;
        if (t->nbytes == 0 || !ptwm_add_u64(t->offset, t->nbytes, &end) || end > m->segments[t->segment].raw_nbytes)
            return malformed(p, tensor, "a tensor's range leaves its segment");
    } else if (fields & (1u << KEY_RANGE | 1u << KEY_HASH)) {
        return malformed(p, tensor, "a tensor has a range or a hash but no segment");
    }
    if (ptwm_dtype_bits(t->dtype) > 0 &&
        (!ptwm_shape_bits(m->dims + t->first_dim, t->n_dims, ptwm_dtype_bits(t->dtype), &bits) || bits % 8 != 0 ||
         bits / 8 != t->nbytes))
        return malformed(p, tensor, "a tensor's shape and dtype do not match its length");
    return PTWM_OK;
}

static enum ptwm_status read_tensors(struct parser *p)
{
    struct ptwm_manifest *m = p->manifest;
    uint64_t n = ptwm_cbor_read_count(&p->c, PTWM_CBOR_ARRAY);

    if (p->c.failed || n > ptwm_cursor_left(&p->c) / 3) /* a tensor takes three bytes or more */
        return malformed(p, PTWM_NONE, "the list of tensors");
    m->tensors = ptwm_calloc(m->allocator, n, sizeof *m->tensors);
    if (m->tensors == NULL)
        return ptwm_fail(p->error, PTWM_ERR_MEMORY, "%llu tensors", (unsigned long long)n);
    m->n_tensors = n;
    for (uint64_t i = 0; i < n; i++) {
        struct ptwm_tensor_record *t = &m->tensors[i];
        uint64_t n_fields = ptwm_cbor_read_count(&p->c, PTWM_CBOR_MAP), key = PTWM_NONE;
        uint32_t fields = 0;
        enum ptwm_status status = PTWM_OK;

        t->segment = PTWM_NONE;
        for (uint64_t f = 0; f < n_fields && status == PTWM_OK && !p->c.failed; f++)
            status = read_tensor_field(p, i, t, ptwm_cbor_read_key(&p->c, &key), &fields);
        if (status == PTWM_OK)
            status = p->c.failed ? malformed(p, i, "a tensor's fields") : check_tensor(p, i, t, fields);
        if (status != PTWM_OK)
            return status;
    }
    return PTWM_OK;
}

static enum ptwm_status read_field(struct parser *p, uint64_t key)
{
    struct ptwm_manifest *m = p->manifest;

    switch (key) {
    case KEY_FEATURES:
        return read_features(p);
    case KEY_SEGMENTS:
        return read_segments(p);
    case KEY_TENSORS:
        if (m->segments == NULL)
            return malformed(p, PTWM_NONE, "there is no list of segments");
        return read_tensors(p);
    case KEY_METADATA:
        m->metadata = ptwm_cbor_read_string(&p->c, PTWM_CBOR_BYTES, &m->metadata_nbytes);
        return PTWM_OK;
    case KEY_SOURCE:
        m->source = ptwm_cbor_read_string(&p->c, PTWM_CBOR_BYTES, &m->source_nbytes);
        return PTWM_OK;
    default:
        ptwm_cbor_skip(&p->c, 1);
        return PTWM_OK;
    }
}

enum ptwm_status ptwm_manifest_read(const uint8_t *bytes, size_t nbytes, uint64_t manifest_offset,
                                    const struct ptwm_allocator *allocator, struct ptwm_manifest *manifest,
                                    struct ptwm_error *error)
{
    struct parser p = { ptwm_cursor_make(bytes, nbytes), bytes, manifest_offset, manifest, error };
    uint64_t n_fields = ptwm_cbor_read_count(&p.c, PTWM_CBOR_MAP), key = PTWM_NONE;
    enum ptwm_status status = PTWM_OK;

    memset(manifest, 0, sizeof *manifest);
    manifest->allocator = allocator;
    for (uint64_t f = 0; f < n_fields && status == PTWM_OK && !p.c.failed; f++)
        status = read_field(&p, ptwm_cbor_read_key(&p.c, &key));
    if (status == PTWM_OK && (p.c.failed || ptwm_cursor_left(&p.c) > 0))
        status = malformed(&p, PTWM_NONE, p.c.failed ? "not the CBOR that it should be" : "bytes behind its map");
    if (status == PTWM_OK && (manifest->segments == NULL || manifest->tensors == NULL))
        status = malformed(&p, PTWM_NONE, "a list is missing");
    if (status != PTWM_OK)
        ptwm_manifest_release(manifest);
    return status;
}

void ptwm_manifest_release(struct ptwm_manifest *m)
{
    ptwm_release(m->allocator, m->segments, m->n_segments, sizeof *m->segments);
    ptwm_release(m->allocator, m->tensors, m->n_tensors, sizeof *m->tensors);
    ptwm_release(m->allocator, m->dims, m->dims_capacity, sizeof *m->dims);
    memset(m, 0, sizeof *m);
}

/* ------------------------------------------------------------------------------------------------------ writing */

/* Appends to bytes until something fails; what came after a failure does nothing. */
struct emitter {
    struct ptwm_bytes *bytes;
    enum ptwm_status status;
};

static void put_head(struct emitter *e, enum ptwm_cbor_type type, uint64_t value)
{
    if (e->status == PTWM_OK)
        e->status = ptwm_cbor_write_head(e->bytes, type, value);
}

static void put_uint(struct emitter *e, uint64_t value)
{
    put_head(e, PTWM_CBOR_UINT, value);
}

static void put_string(struct emitter *e, enum ptwm_cbor_type type, const void *data, size_t nbytes)
{
    if (e->status == PTWM_OK)
        e->status = ptwm_cbor_write_string(e->bytes, type, data, nbytes);
}

static void put_segment(struct emitter *e, const struct ptwm_segment_record *s)
{
    put_head(e, PTWM_CBOR_ARRAY, 4);
    put_uint(e, s->stored_nbytes);
    put_uint(e, s->tail_nbytes);
    put_uint(e, s->raw_nbytes);
    put_uint(e, s->flags);
}

static void put_tensor(struct emitter *e, const struct ptwm_manifest *m, const struct ptwm_tensor_record *t)
{
    bool has_dtype = t->dtype != PTWM_DTYPE_NONE, has_segment = t->segment != PTWM_NONE;
    bool has_range = has_segment && t->nbytes != m->segments[t->segment].raw_nbytes;

    put_head(e, PTWM_CBOR_MAP, 1u + 2u * has_dtype + has_segment + has_range + t->has_hash);
    put_uint(e, KEY_NAME);
    put_string(e, PTWM_CBOR_TEXT, t->name, t->name_nbytes);
    if (has_dtype) {
        put_uint(e, KEY_DTYPE);
        put_uint(e, t->dtype);
        put_uint(e, KEY_SHAPE);
        put_head(e, PTWM_CBOR_ARRAY, t->n_dims);
        for (uint32_t i = 0; i < t->n_dims; i++)
            put_uint(e, m->dims[t->first_dim + i]);
    }
    if (has_segment) {
        put_uint(e, KEY_SEGMENT);
        put_uint(e, t->segment);
    }
    if (has_range) {
        put_uint(e, KEY_RANGE);
        put_head(e, PTWM_CBOR_ARRAY, 2);
        put_uint(e, t->offset);
        put_uint(e, t->nbytes);
    }
    if (t->has_hash) {
        put_uint(e, KEY_HASH);
        put_uint(e, t->hash);
    }
}

enum ptwm_status ptwm_manifest_write(const struct ptwm_manifest *m, struct ptwm_bytes *bytes)
{
    struct emitter e = { bytes, PTWM_OK };

    put_head(&e, PTWM_CBOR_MAP, 2u + (m->metadata != NULL) + (m->source != NULL));
    put_uint(&e, KEY_SEGMENTS);
    put_head(&e, PTWM_CBOR_ARRAY, m->n_segments);
    for (uint64_t i = 0; i < m->n_segments; i++)
        put_segment(&e, &m->segments[i]);
    put_uint(&e, KEY_TENSORS);
    put_head(&e, PTWM_CBOR_ARRAY, m->n_tensors);
    for (uint64_t i = 0; i < m->n_tensors; i++)
        put_tensor(&e, m, &m->tensors[i]);
    if (m->metadata != NULL) {
        put_uint(&e, KEY_METADATA);
        put_string(&e, PTWM_CBOR_BYTES, m->metadata, m->metadata_nbytes);
    }
    if (m->source != NULL) {
        put_uint(&e, KEY_SOURCE);
        put_string(&e, PTWM_CBOR_BYTES, m->source, m->source_nbytes);
    }
    return e.status;
}
