#include "manifest.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cbor.h"
#include "escape.h"

enum { KEY_FEATURES = 0, KEY_SEGMENTS = 1, KEY_TENSORS = 2, KEY_METADATA = 4, KEY_SOURCE = 5 };
static const char *const key_names[] = { "features", "segments", "tensors", "reserved", "metadata", "source" };

enum { MAX_CHUNK_NBYTES = 1 << 26, SEGMENT_MIN_NBYTES = 5, TENSOR_MIN_NBYTES = 3 };

/* An array that grows as it is filled, so that a count that is false costs nothing. Returns NULL if there is no memory.
 */
static void *grow(void *array, size_t n, size_t size)
{
    if (n & (n - 1)) /* room is for powers of 2 */
        return array;
    return n <= SIZE_MAX / 2 / size ? realloc(array, (n > 0 ? 2 * n : 1) * size) : NULL;
}

/* ---------------------------------------------------------------------------------------------------- segments */

/* Places a segment behind position; false if it does not fit in front of end. */
static bool place_segment(struct dump_segment *s, uint64_t *position, uint64_t end)
{
    const uint64_t padding = s->flags & DUMP_ALIGNED ? (64 - *position % 64) % 64 : 0;

    if (*position > end || padding > end - *position || s->stored_nbytes > end - *position - padding)
        return false;
    s->padding_nbytes = padding;
    s->offset = *position + padding;
    *position = s->offset + s->stored_nbytes;
    return true;
}

static void check_segment(struct scan *scan, size_t from, struct dump_segment *s)
{
    s->is_sound = false;
    if (s->flags > (DUMP_CHECKED | DUMP_ALIGNED))
        scan_problem(scan, from, "unknown flags %" PRIu64, s->flags);
    else if (s->tail_nbytes == 0 || s->tail_nbytes > s->stored_nbytes || s->raw_nbytes == 0 ||
             s->raw_nbytes > INT64_MAX || (s->raw_nbytes - 1) / MAX_CHUNK_NBYTES + 1 > s->tail_nbytes / 2)
        scan_problem(scan, from, "%" PRIu64 " bytes stored, of which %" PRIu64 " are tail, %" PRIu64 " raw: impossible",
                     s->stored_nbytes, s->tail_nbytes, s->raw_nbytes);
    else
        s->is_sound = true;
}

static void read_segment_fields(struct scan *scan, struct dump_segment *s)
{
    const size_t from = scan->next;
    uint64_t n = cbor_count(scan, CBOR_ARRAY, "fields");

    if (!scan->failed && n < 4) {
        scan_problem(scan, from, "%" PRIu64 " fields, not four", n);
        scan->failed = true;
    }
    s->stored_nbytes = cbor_uint(scan, "stored length");
    s->tail_nbytes = cbor_uint(scan, "tail length");
    s->raw_nbytes = cbor_uint(scan, "raw length");
    s->flags = cbor_uint(scan, "flags");
    for (; n > 4 && !scan->failed; n--)
        cbor_skip(scan, 3, "unknown field");
}

static void read_segments(struct scan *scan, struct dump_manifest *m)
{
    uint64_t position = DUMP_HEADER_NBYTES;
    const size_t begin = scan->next;
    bool are_placed = true;

    m->n_segments_claimed = cbor_count(scan, CBOR_ARRAY, "segments");
    for (uint64_t i = 0; i < m->n_segments_claimed; i++) {
        struct dump_segment s = { 0 }, *larger;
        const size_t from = scan->next;

        scan_group(scan, "segment %" PRIu64, i);
        read_segment_fields(scan, &s);
        larger = scan->failed ? NULL : grow(m->segments, m->n_segments, sizeof s);
        if (larger == NULL)
            return;
        m->segments = larger;
        check_segment(scan, from, &s);
        if (are_placed && !place_segment(&s, &position, m->place.offset)) {
            scan_problem(scan, from, "it does not fit the file in front of the manifest");
            are_placed = false;
        }
        s.is_sound = s.is_sound && are_placed;
        m->segments[m->n_segments++] = s;
    }
    scan_group(scan, "manifest");
    if (!scan->failed && are_placed && position != m->place.offset)
        scan_problem(scan, begin, "the segments end at %" PRIu64 ", the manifest begins at %" PRIu64, position,
                     m->place.offset);
}

bool manifest_segments_end(const uint8_t *bytes, size_t nbytes, uint64_t offset, uint64_t *budget)
{
    uint64_t position = DUMP_HEADER_NBYTES, previous = PTWM_NONE, key, n;
    struct scan scan;

    scan_init(&scan, bytes, nbytes, offset, PTWM_ERR_MANIFEST, NULL, NULL);
    cbor_count(&scan, CBOR_MAP, "manifest");
    key = cbor_key(&scan, &previous, "key");
    *budget -= 1;
    if (!scan.failed && key == KEY_FEATURES) {
        cbor_skip(&scan, 1, "features");
        key = cbor_key(&scan, &previous, "key");
    }
    if (scan.failed || key != KEY_SEGMENTS)
        return false;
    n = cbor_count(&scan, CBOR_ARRAY, "segments");
    for (; n > 0 && !scan.failed && *budget > 0; n--) {
        struct dump_segment s = { 0 };
        read_segment_fields(&scan, &s);
        if (scan.failed || s.stored_nbytes == 0 || !place_segment(&s, &position, offset))
            return false;
        *budget -= 1;
    }
    return !scan.failed && n == 0 && position == offset;
}

/* ----------------------------------------------------------------------------------------------------- tensors */

/* A tensor's map as it stands in the file. */
struct tensor_fields {
    uint32_t present; /* 1 << key */
    const uint8_t *name;
    size_t name_nbytes;
    uint64_t shared;
    uint64_t length;
};

enum { NAME = 0, DTYPE = 1, SHAPE = 2, SEGMENT = 3, OFFSET = 4, HASH = 5, SHARED = 6, LENGTH = 7 };
static const char *const tensor_key_names[] = { "name",   "dtype", "shape",  "segment",
                                                "offset", "hash",  "shared", "length" };

/* Where the next tensor begins unless it says otherwise. */
struct expected {
    uint64_t segment, offset;
};

static bool has(const struct tensor_fields *f, unsigned key)
{
    return f->present >> key & 1;
}

static void read_shape(struct scan *scan, struct dump_manifest *m, struct dump_tensor *t)
{
    uint64_t n = cbor_count(scan, CBOR_ARRAY, "shape");

    t->first_dim = m->n_dims;
    t->n_dims = 0;
    for (; n > 0 && !scan->failed; n--) {
        const size_t from = scan->next;
        const uint64_t dim = cbor_uint(scan, "dimension");
        uint64_t *larger = scan->failed ? NULL : grow(m->dims, m->n_dims, sizeof dim);
        if (larger == NULL)
            return;
        if (dim > INT64_MAX)
            scan_problem(scan, from, "a dimension is 2^63 or more");
        m->dims = larger;
        m->dims[m->n_dims++] = dim;
        t->n_dims++;
    }
}

static void read_tensor_field(struct scan *scan, struct dump_manifest *m, struct dump_tensor *t, uint64_t key,
                              struct tensor_fields *f)
{
    const size_t from = scan->next;

    if (key <= LENGTH)
        f->present |= 1u << key;
    switch (key) {
    case NAME: f->name = cbor_string(scan, CBOR_TEXT, &f->name_nbytes, "name"); break;
    case DTYPE:
        t->dtype = cbor_uint(scan, "dtype");
        if (t->dtype > UINT32_MAX)
            scan_problem(scan, from, "the dtype %" PRIu64 " is too large", t->dtype);
        break;
    case SHAPE: read_shape(scan, m, t); break;
    case SEGMENT: t->segment = cbor_uint(scan, "segment"); break;
    case OFFSET: t->offset = cbor_uint(scan, "offset"); break;
    case HASH:
        t->hash = cbor_uint(scan, "hash");
        t->has_hash = true;
        break;
    case SHARED: f->shared = cbor_uint(scan, "shared"); break;
    case LENGTH: f->length = cbor_uint(scan, "length"); break;
    default: cbor_skip(scan, 3, "unknown field"); break;
    }
}

/* Puts a name together from the end of the one before it and its own bytes. */
static bool make_name(struct scan *scan, size_t from, struct dump_manifest *m, struct dump_tensor *t,
                      const struct tensor_fields *f)
{
    const struct dump_tensor *before = m->n_tensors > 0 ? &m->tensors[m->n_tensors - 1] : NULL;
    size_t shared = (size_t)f->shared, nbytes;
    uint8_t *names;

    if (!has(f, NAME))
        scan_problem(scan, from, "it has no name");
    if (f->shared > 255 || f->shared > (before != NULL ? before->name_nbytes : 0)) {
        scan_problem(scan, from, "the name shares %" PRIu64 " bytes with the one before it, which are not there",
                     f->shared);
        shared = 0;
    } else if (shared > 0 && shared < before->name_nbytes && (m->names[before->name + shared] & 0xC0) == 0x80) {
        scan_problem(scan, from, "the name shares a part of a character with the one before it");
    }
    nbytes = shared + f->name_nbytes;
    /* Room for powers of 2 again, in bytes: at most twice what is there. */
    for (size_t room = m->names_nbytes; room < m->names_nbytes + nbytes; room++)
        if ((room & (room - 1)) == 0) {
            names = grow(m->names, room, 1);
            if (names == NULL)
                return false;
            m->names = names;
        }
    if (shared > 0)
        memcpy(m->names + m->names_nbytes, m->names + before->name, shared);
    if (f->name_nbytes > 0)
        memcpy(m->names + m->names_nbytes + shared, f->name, f->name_nbytes);
    t->name = m->names_nbytes;
    t->name_nbytes = nbytes;
    m->names_nbytes += nbytes;
    return true;
}

/* Shapes are inherited, so this is done once for each shape, not for each tensor. PTWM_NONE: too many. */
static uint64_t count_elements(const struct dump_manifest *m, const struct dump_tensor *t)
{
    uint64_t n = 1;

    for (size_t i = 0; i < t->n_dims; i++)
        if (m->dims[t->first_dim + i] == 0)
            return 0;
    for (size_t i = 0; i < t->n_dims; i++) {
        const uint64_t dim = m->dims[t->first_dim + i];
        if (n > (PTWM_NONE - 1) / dim)
            return PTWM_NONE;
        n *= dim;
    }
    return n;
}

static uint64_t count_bits(uint64_t n_elements, uint64_t dtype)
{
    const uint64_t dtype_bits = dtype <= UINT32_MAX ? ptwm_dtype_bits((uint32_t)dtype) : 0;

    if (dtype_bits == 0 || n_elements > (PTWM_NONE - 1) / dtype_bits)
        return PTWM_NONE;
    return n_elements * dtype_bits;
}

/* Finds the tensor's bytes: *e is where they are expected, and moves on. */
static void find_range(struct scan *scan, size_t from, const struct dump_manifest *m, struct dump_tensor *t,
                       const struct tensor_fields *f, struct expected *e)
{
    const bool is_known = t->dtype <= UINT32_MAX && ptwm_dtype_bits((uint32_t)t->dtype) > 0;
    const struct dump_segment *s;
    uint64_t left;

    if (is_known && (t->bits == PTWM_NONE || t->bits % 8 != 0 || (has(f, LENGTH) && f->length != t->bits / 8))) {
        scan_problem(scan, from, "shape and dtype do not match its length");
        return;
    }
    if (is_known ? t->bits == 0 : has(f, LENGTH) && f->length == 0) {
        t->is_sound = !has(f, SEGMENT) && !has(f, OFFSET) && !has(f, HASH);
        t->segment = PTWM_NONE;
        if (!t->is_sound)
            scan_problem(scan, from, "it has a place or a hash but no bytes");
        return;
    }
    if (!has(f, SEGMENT))
        t->segment = e->segment;
    if (!has(f, OFFSET))
        t->offset = has(f, SEGMENT) ? 0 : e->offset;
    if (t->segment >= m->n_segments) {
        scan_problem(scan, from, "its segment %" PRIu64 " does not exist", t->segment);
        t->nbytes = is_known ? t->bits / 8 : f->length;
        return;
    }
    s = &m->segments[t->segment];
    left = t->offset < s->raw_nbytes ? s->raw_nbytes - t->offset : 0;
    t->nbytes = is_known ? t->bits / 8 : has(f, LENGTH) ? f->length : left;
    if (left == 0 || t->nbytes > left) {
        scan_problem(scan, from, "its range leaves its segment");
        return;
    }
    t->is_sound = s->is_sound;
    if (t->segment > e->segment || (t->segment == e->segment && t->offset + t->nbytes > e->offset)) {
        const bool ends = t->nbytes == left;
        e->segment = ends ? t->segment + 1 : t->segment;
        e->offset = ends ? 0 : t->offset + t->nbytes;
    }
}

/* What tensors take from those before them. */
struct inheritance {
    uint64_t dtype;
    size_t first_dim, n_dims;
    uint64_t n_elements; /* of that shape */
    struct expected expected;
};

static bool read_tensor(struct scan *scan, struct dump_manifest *m, struct inheritance *last)
{
    const size_t from = scan->next;
    struct dump_tensor t = { 0 }, *larger;
    struct tensor_fields f = { 0 };
    uint64_t n = cbor_count(scan, CBOR_MAP, "fields"), key = PTWM_NONE;

    t.dtype = last->dtype;
    t.first_dim = last->first_dim;
    t.n_dims = last->n_dims;
    for (; n > 0 && !scan->failed; n--) {
        const size_t at = scan->next;
        read_tensor_field(scan, m, &t, cbor_key(scan, &key, "key"), &f);
        if (scan->failed && key <= LENGTH)
            scan_problem(scan, at, "the field \"%s\" cannot be read", tensor_key_names[key]);
    }
    if (scan->failed || !make_name(scan, from, m, &t, &f))
        return false;
    if (t.dtype == PTWM_DTYPE_NONE && has(&f, SHAPE))
        scan_problem(scan, from, "it has a shape but no dtype");
    last->dtype = t.dtype;
    if (t.dtype == PTWM_DTYPE_NONE) {
        t.n_dims = 0;
        t.bits = PTWM_NONE;
    } else {
        if (has(&f, SHAPE)) {
            last->first_dim = t.first_dim;
            last->n_dims = t.n_dims;
            last->n_elements = count_elements(m, &t);
        }
        t.bits = count_bits(last->n_elements, t.dtype);
    }
    find_range(scan, from, m, &t, &f, &last->expected);
    larger = grow(m->tensors, m->n_tensors, sizeof t);
    if (larger == NULL)
        return false;
    m->tensors = larger;
    m->tensors[m->n_tensors++] = t;
    return true;
}

static void read_tensors(struct scan *scan, struct dump_manifest *m)
{
    struct inheritance last = { 0 };

    last.n_elements = 1; /* a scalar's shape */
    m->n_tensors_claimed = cbor_count(scan, CBOR_ARRAY, "tensors");
    for (uint64_t i = 0; i < m->n_tensors_claimed; i++) {
        scan_group(scan, "tensor %" PRIu64, i);
        if (!read_tensor(scan, m, &last))
            return;
    }
    scan_group(scan, "manifest");
}

/* ---------------------------------------------------------------------------------------------------- the whole */

static void read_features(struct scan *scan)
{
    uint64_t n = cbor_count(scan, CBOR_ARRAY, "features");

    for (; n > 0 && !scan->failed; n--) {
        const size_t from = scan->next;
        size_t nbytes;
        const uint8_t *name = cbor_string(scan, CBOR_TEXT, &nbytes, "feature");
        char shown[80];
        if (name == NULL)
            return;
        escape_text(shown, sizeof shown, name, nbytes);
        scan->status = PTWM_ERR_FEATURE;
        scan_problem(scan, from, "the required feature \"%s\" is unknown", shown);
        scan->status = PTWM_ERR_MANIFEST;
    }
}

static void read_opaque(struct scan *scan, uint64_t *nbytes, const char *name)
{
    size_t n;

    if (cbor_string(scan, CBOR_BYTES, &n, name) != NULL)
        *nbytes = n;
}

static void read_all(struct scan *scan, struct dump_manifest *m)
{
    uint64_t n, key = PTWM_NONE;
    bool has_segments = false, has_tensors = false;

    scan_group(scan, "manifest");
    n = cbor_count(scan, CBOR_MAP, "manifest");
    for (; n > 0 && !scan->failed; n--) {
        const size_t from = scan->next;
        cbor_key(scan, &key, "key");
        if (scan->failed)
            break;
        has_segments = has_segments || key == KEY_SEGMENTS;
        has_tensors = has_tensors || key == KEY_TENSORS;
        switch (key) {
        case KEY_FEATURES: read_features(scan); break;
        case KEY_SEGMENTS: read_segments(scan, m); break;
        case KEY_TENSORS: read_tensors(scan, m); break;
        case KEY_METADATA: read_opaque(scan, &m->metadata_nbytes, "metadata"); break;
        case KEY_SOURCE: read_opaque(scan, &m->source_nbytes, "source"); break;
        default: cbor_skip(scan, 1, "unknown field"); break;
        }
        if (scan->failed && key < sizeof key_names / sizeof key_names[0])
            scan_problem(scan, from, "the field \"%s\" cannot be read to its end", key_names[key]);
    }
    if (scan->failed)
        return;
    if (!has_segments || !has_tensors)
        scan_problem(scan, 0, "a list is missing");
    if (scan_left(scan) > 0 && m->place.found == DUMP_BY_SEARCH) {
        m->place.nbytes = scan->next; /* what is left of a footer is behind it */
    } else if (scan_left(scan) > 0) {
        scan_problem(scan, scan->next, "%zu bytes are behind its map", scan_left(scan));
        scan_rest(scan, "bytes behind the map");
        return;
    }
    m->is_complete = true;
}

void manifest_read(const struct dump_view *view, const struct dump_footer *footer, struct dump_place place,
                   struct dump_manifest *m, struct dump_problems *problems, const struct scan_sink *sink)
{
    struct scan scan;

    memset(m, 0, sizeof *m);
    m->place = place;
    m->metadata_nbytes = m->source_nbytes = PTWM_NONE;
    if (place.found == DUMP_NOT_FOUND)
        return;
    m->bytes = view_load(view, place.offset, place.nbytes);
    if (m->bytes == NULL) {
        problem_add(problems, PTWM_ERR_IO, place.offset, "the manifest cannot be read");
        return;
    }
    scan_init(&scan, m->bytes, (size_t)place.nbytes, place.offset, PTWM_ERR_MANIFEST, problems, sink);
    read_all(&scan, m);
    m->crc = ptwm_crc32c(0, m->bytes, (size_t)m->place.nbytes);
    if (footer->is_there) {
        m->crc_state = m->crc == footer->manifest_crc ? DUMP_GOOD : DUMP_BAD;
        if (m->crc_state == DUMP_BAD)
            problem_add(problems, PTWM_ERR_CHECKSUM, place.offset,
                        "manifest: its CRC-32C is %08" PRIx32 ", the footer says %08" PRIx32, m->crc,
                        footer->manifest_crc);
    }
}

void manifest_release(struct dump_manifest *m)
{
    free(m->bytes);
    free(m->segments);
    free(m->tensors);
    free(m->names);
    free(m->dims);
    memset(m, 0, sizeof *m);
}
