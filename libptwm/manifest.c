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
enum {
    KEY_NAME = 0,
    KEY_DTYPE = 1,
    KEY_SHAPE = 2,
    KEY_SEGMENT = 3,
    KEY_OFFSET = 4,
    KEY_HASH = 5,
    KEY_SHARED = 6,
    KEY_LENGTH = 7
};

/* Of a name's beginning, as much as this may be left to the name before it. It bounds how much longer names get by that. */
enum { MAX_SHARED = 255 };

/* Behind the furthest byte that a tensor has so far: where the next one begins unless it says otherwise. */
struct place {
    uint64_t segment, offset;
};

static void move_place(struct place *place, const struct ptwm_manifest *m, const struct ptwm_tensor_record *t)
{
    const uint64_t end = t->offset + t->nbytes;

    if (t->nbytes == 0 || t->segment < place->segment || (t->segment == place->segment && end <= place->offset))
        return;
    place->segment = t->segment;
    place->offset = end;
    if (end == m->segments[t->segment].raw_nbytes) {
        place->segment++;
        place->offset = 0;
    }
}

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

/*
 * The elements of the shape that was looked at last. Tensors inherit shapes, and nothing bounds the dimensions of one or
 * the heirs of another but the manifest's length: multiplying for each of them would take the square of that.
 */
struct counted_shape {
    bool is_known, fits;
    uint64_t first_dim;
    uint32_t n_dims;
    uint64_t n_elements;
};

/* What a parser of the manifest needs: the position, what it fills, and where errors go. */
struct parser {
    struct ptwm_cursor c;
    const uint8_t *begin;
    uint64_t manifest_offset;
    struct ptwm_manifest *manifest;
    struct ptwm_error *error;
    struct counted_shape counted;
};

static enum ptwm_status malformed(struct parser *p, uint64_t tensor, const char *what)
{
    ptwm_fail(p->error, PTWM_ERR_MANIFEST, "%s", what);
    /* A failed cursor stands at the end: its place is lost. */
    ptwm_fail_at(p->error, tensor, p->c.failed ? p->manifest_offset : p->manifest_offset + (uint64_t)(p->c.next - p->begin));
    return PTWM_ERR_MANIFEST;
}

/* A feature's name as it may stand in a message: the file's bytes are not to reach a terminal as they are. */
static enum ptwm_status unknown_feature(struct parser *p, const uint8_t *name, size_t nbytes)
{
    char shown[101] = { 0 };

    for (size_t i = 0; i < nbytes && i < sizeof shown - 1; i++)
        shown[i] = name[i] >= ' ' && name[i] <= '~' ? (char)name[i] : '?';
    return ptwm_fail(p->error, PTWM_ERR_FEATURE, "\"%s\"", shown);
}

static enum ptwm_status read_features(struct parser *p)
{
    uint64_t n = ptwm_cbor_read_count(&p->c, PTWM_CBOR_ARRAY);

    for (uint64_t i = 0; i < n && !p->c.failed; i++) {
        size_t nbytes;
        const uint8_t *name = ptwm_cbor_read_string(&p->c, PTWM_CBOR_TEXT, &nbytes);
        if (name != NULL) /* this version knows no feature at all */
            return unknown_feature(p, name, nbytes);
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

/* A tensor's fields as they stand in the manifest. */
struct fields {
    uint32_t present; /* 1 << key */
    const uint8_t *name;
    size_t name_nbytes;
    uint64_t shared;
    uint64_t length;
};

static bool has(const struct fields *f, unsigned key)
{
    return f->present >> key & 1;
}

/* Reads one field of a tensor, which begins as what it takes from the one before it. */
static enum ptwm_status read_tensor_field(struct parser *p, uint64_t tensor, struct ptwm_tensor_record *t, uint64_t key,
                                          struct fields *f)
{
    uint64_t dtype;

    if (key <= KEY_LENGTH)
        f->present |= 1u << key;
    switch (key) {
    case KEY_NAME:
        f->name = ptwm_cbor_read_string(&p->c, PTWM_CBOR_TEXT, &f->name_nbytes);
        return PTWM_OK;
    case KEY_DTYPE:
        dtype = ptwm_cbor_read_uint(&p->c);
        if (dtype > UINT32_MAX)
            return malformed(p, tensor, "a dtype is too large");
        t->dtype = (uint32_t)dtype;
        return PTWM_OK;
    case KEY_SHAPE:
        return read_shape(p, tensor, t);
    case KEY_SEGMENT:
        t->segment = ptwm_cbor_read_uint(&p->c);
        return PTWM_OK;
    case KEY_OFFSET:
        t->offset = ptwm_cbor_read_uint(&p->c);
        return PTWM_OK;
    case KEY_HASH:
        t->hash = ptwm_cbor_read_uint(&p->c);
        t->has_hash = true;
        return PTWM_OK;
    case KEY_SHARED:
        f->shared = ptwm_cbor_read_uint(&p->c);
        return PTWM_OK;
    case KEY_LENGTH:
        f->length = ptwm_cbor_read_uint(&p->c);
        return PTWM_OK;
    default:
        ptwm_cbor_skip(&p->c, 3);
        return PTWM_OK;
    }
}

/* Puts a tensor's name together, behind the one before it. */
static enum ptwm_status make_name(struct parser *p, uint64_t tensor, struct ptwm_tensor_record *t, const struct fields *f)
{
    struct ptwm_bytes *names = &p->manifest->names;
    const size_t before = tensor > 0 ? t[-1].name_nbytes : 0, shared = (size_t)f->shared;

    if (!has(f, KEY_NAME))
        return malformed(p, tensor, "a tensor has no name");
    if (f->shared > MAX_SHARED || f->shared > before)
        return malformed(p, tensor, "a name shares more than there is with the one before it");
    if (shared > 0 && shared < before && (names->data[names->nbytes - before + shared] & 0xC0) == 0x80)
        return malformed(p, tensor, "a name shares a part of a character with the one before it");
    if (ptwm_bytes_reserve(names, (uint64_t)shared + f->name_nbytes) != PTWM_OK)
        return ptwm_fail(p->error, PTWM_ERR_MEMORY, "names");
    if (shared > 0)
        memcpy(names->data + names->nbytes, names->data + names->nbytes - before, shared);
    if (f->name_nbytes > 0)
        memcpy(names->data + names->nbytes + shared, f->name, f->name_nbytes);
    t->name_nbytes = shared + f->name_nbytes;
    names->nbytes += t->name_nbytes;
    return PTWM_OK;
}

/* ptwm_shape_bits of a tensor whose dtype is known. */
static bool tensor_bits(struct parser *p, const struct ptwm_tensor_record *t, uint32_t dtype_bits, uint64_t *bits)
{
    struct counted_shape *s = &p->counted;

    if (!s->is_known || s->first_dim != t->first_dim || s->n_dims != t->n_dims) {
        s->fits = ptwm_shape_bits(ptwm_manifest_shape(p->manifest, t), t->n_dims, 1, &s->n_elements);
        s->is_known = true;
        s->first_dim = t->first_dim;
        s->n_dims = t->n_dims;
    }
    return s->fits && ptwm_mul_u64(s->n_elements, dtype_bits, bits);
}

/* Finds a tensor's bytes: its length, from dtype and shape if it can, and its place. */
static enum ptwm_status find_range(struct parser *p, uint64_t tensor, struct ptwm_tensor_record *t, const struct fields *f,
                                   const struct place *place)
{
    const struct ptwm_manifest *m = p->manifest;
    const uint32_t dtype_bits = ptwm_dtype_bits(t->dtype);
    uint64_t bits = 0, end;

    if (dtype_bits > 0 && (!tensor_bits(p, t, dtype_bits, &bits) || bits % 8 != 0 ||
                           (has(f, KEY_LENGTH) && f->length != bits / 8)))
        return malformed(p, tensor, "a tensor's shape and dtype do not match its length");
    if (dtype_bits > 0 ? bits == 0 : has(f, KEY_LENGTH) && f->length == 0) {
        if (has(f, KEY_SEGMENT) || has(f, KEY_OFFSET) || has(f, KEY_HASH))
            return malformed(p, tensor, "a tensor has a place or a hash but no bytes");
        t->segment = PTWM_NONE;
        return PTWM_OK;
    }
    if (!has(f, KEY_SEGMENT))
        t->segment = place->segment;
    if (!has(f, KEY_OFFSET))
        t->offset = has(f, KEY_SEGMENT) ? 0 : place->offset;
    if (t->segment >= m->n_segments)
        return malformed(p, tensor, "a tensor's segment does not exist");
    if (t->offset >= m->segments[t->segment].raw_nbytes)
        return malformed(p, tensor, "a tensor's range leaves its segment");
    t->nbytes = dtype_bits > 0         ? bits / 8
                : has(f, KEY_LENGTH) ? f->length
                                       : m->segments[t->segment].raw_nbytes - t->offset;
    if (!ptwm_add_u64(t->offset, t->nbytes, &end) || end > m->segments[t->segment].raw_nbytes)
        return malformed(p, tensor, "a tensor's range leaves its segment");
    return PTWM_OK;
}

/* *shaped: the last tensor with a shape before it, or NULL. */
static enum ptwm_status read_tensor(struct parser *p, uint64_t tensor, const struct ptwm_tensor_record **shaped,
                                    struct place *place)
{
    struct ptwm_tensor_record *t = &p->manifest->tensors[tensor];
    uint64_t n_fields = ptwm_cbor_read_count(&p->c, PTWM_CBOR_MAP), key = 0;
    struct fields fields = { 0 };
    enum ptwm_status status = PTWM_OK;

    if (tensor > 0)
        t->dtype = t[-1].dtype;
    if (*shaped != NULL) {
        t->n_dims = (*shaped)->n_dims;
        t->first_dim = (*shaped)->first_dim;
    }
    for (uint64_t f = 0; f < n_fields && status == PTWM_OK && !p->c.failed; f++)
        status = read_tensor_field(p, tensor, t, ptwm_cbor_read_key(&p->c, f, &key), &fields);
    if (status == PTWM_OK && p->c.failed)
        status = malformed(p, tensor, "a tensor's fields");
    if (status == PTWM_OK && t->dtype == PTWM_DTYPE_NONE && has(&fields, KEY_SHAPE))
        status = malformed(p, tensor, "a tensor has a shape but no dtype");
    if (status == PTWM_OK)
        status = make_name(p, tensor, t, &fields);
    if (t->dtype == PTWM_DTYPE_NONE)
        t->n_dims = 0;
    else
        *shaped = t;
    if (status == PTWM_OK)
        status = find_range(p, tensor, t, &fields, place);
    if (status == PTWM_OK)
        move_place(place, p->manifest, t);
    return status;
}

static enum ptwm_status read_tensors(struct parser *p)
{
    struct ptwm_manifest *m = p->manifest;
    uint64_t n = ptwm_cbor_read_count(&p->c, PTWM_CBOR_ARRAY);
    const struct ptwm_tensor_record *shaped = NULL;
    struct place place = { 0, 0 };
    const char *name;

    if (p->c.failed || n > ptwm_cursor_left(&p->c) / 3) /* a tensor takes three bytes or more */
        return malformed(p, PTWM_NONE, "the list of tensors");
    m->tensors = ptwm_calloc(m->allocator, n, sizeof *m->tensors);
    if (m->tensors == NULL)
        return ptwm_fail(p->error, PTWM_ERR_MEMORY, "%llu tensors", (unsigned long long)n);
    m->n_tensors = n;
    for (uint64_t i = 0; i < n; i++) {
        enum ptwm_status status = read_tensor(p, i, &shaped, &place);
        if (status != PTWM_OK)
            return status;
    }
    name = m->names.data != NULL ? (const char *)m->names.data : "";
    for (uint64_t i = 0; i < n; name += m->tensors[i++].name_nbytes)
        m->tensors[i].name = name;
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
    struct parser p = { ptwm_cursor_make(bytes, nbytes), bytes, manifest_offset, manifest, error, { 0 } };
    uint64_t n_fields = ptwm_cbor_read_count(&p.c, PTWM_CBOR_MAP), key = 0;
    enum ptwm_status status = PTWM_OK;

    memset(manifest, 0, sizeof *manifest);
    manifest->allocator = manifest->names.allocator = allocator;
    for (uint64_t f = 0; f < n_fields && status == PTWM_OK && !p.c.failed; f++)
        status = read_field(&p, ptwm_cbor_read_key(&p.c, f, &key));
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
    if (m->names.allocator != NULL)
        ptwm_bytes_release(&m->names);
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

/* How much of the name's beginning is that of the name before it: whole characters. */
static size_t shared_nbytes(const struct ptwm_tensor_record *t, const struct ptwm_tensor_record *before)
{
    const size_t limit = before->name_nbytes < t->name_nbytes ? before->name_nbytes : t->name_nbytes;
    size_t n = 0;

    while (n < limit && n < MAX_SHARED && t->name[n] == before->name[n])
        n++;
    while (n > 0 && n < t->name_nbytes && ((unsigned char)t->name[n] & 0xC0) == 0x80)
        n--;
    return n > 3 ? n : 0; /* the field takes up to three bytes */
}

static bool same_shape(const struct ptwm_manifest *m, const struct ptwm_tensor_record *a, const struct ptwm_tensor_record *b)
{
    return a->n_dims == b->n_dims &&
           (a->n_dims == 0 || memcmp(m->dims + a->first_dim, m->dims + b->first_dim, a->n_dims * sizeof *m->dims) == 0);
}

/*
 * before: the tensor before it, and shaped: the last one before it that has a shape; of none for the first. place: where
 * this one is expected.
 */
static void put_tensor(struct emitter *e, const struct ptwm_manifest *m, const struct ptwm_tensor_record *t,
                       const struct ptwm_tensor_record *before, const struct ptwm_tensor_record *shaped,
                       const struct place *place)
{
    const bool has_bytes = t->nbytes > 0, is_known = ptwm_dtype_bits(t->dtype) > 0;
    const bool has_dtype = t->dtype != before->dtype;
    const bool has_shape = t->dtype != PTWM_DTYPE_NONE && !same_shape(m, t, shaped);
    const bool has_segment = has_bytes && t->segment != place->segment;
    const bool has_offset = has_bytes && t->offset != (has_segment ? 0 : place->offset);
    const bool has_length = !is_known && (!has_bytes || t->offset + t->nbytes != m->segments[t->segment].raw_nbytes);
    const size_t shared = shared_nbytes(t, before);

    put_head(e, PTWM_CBOR_MAP,
             1u + has_dtype + has_shape + has_segment + has_offset + t->has_hash + (shared > 0) + has_length);
    put_uint(e, KEY_NAME);
    put_string(e, PTWM_CBOR_TEXT, t->name + shared, t->name_nbytes - shared);
    if (has_dtype) {
        put_uint(e, KEY_DTYPE);
        put_uint(e, t->dtype);
    }
    if (has_shape) {
        put_uint(e, KEY_SHAPE);
        put_head(e, PTWM_CBOR_ARRAY, t->n_dims);
        for (uint32_t i = 0; i < t->n_dims; i++)
            put_uint(e, m->dims[t->first_dim + i]);
    }
    if (has_segment) {
        put_uint(e, KEY_SEGMENT);
        put_uint(e, t->segment);
    }
    if (has_offset) {
        put_uint(e, KEY_OFFSET);
        put_uint(e, t->offset);
    }
    if (t->has_hash) {
        put_uint(e, KEY_HASH);
        put_uint(e, t->hash);
    }
    if (shared > 0) {
        put_uint(e, KEY_SHARED);
        put_uint(e, shared);
    }
    if (has_length) {
        put_uint(e, KEY_LENGTH);
        put_uint(e, t->nbytes);
    }
}

static void put_tensors(struct emitter *e, const struct ptwm_manifest *m)
{
    static const struct ptwm_tensor_record none = { .name = "" };
    const struct ptwm_tensor_record *before = &none, *shaped = &none;
    struct place place = { 0, 0 };

    put_head(e, PTWM_CBOR_ARRAY, m->n_tensors);
    for (uint64_t i = 0; i < m->n_tensors; i++) {
        const struct ptwm_tensor_record *t = &m->tensors[i];
        put_tensor(e, m, t, before, shaped, &place);
        move_place(&place, m, t);
        before = t;
        if (t->dtype != PTWM_DTYPE_NONE)
            shaped = t;
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
    put_tensors(&e, m);
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
