#include "tail.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_CHUNK_NBYTES = 1 << 26, MIN_SHARED_CHUNK_NBYTES = 1024, ALIGNMENT = 64, CRC_NBYTES = 4 };

uint64_t tail_chunk_nbytes(const struct dump_tail *t, uint64_t chunk)
{
    const uint64_t left = t->segment.raw_nbytes - chunk * t->chunk_nbytes;
    return left < t->chunk_nbytes ? left : t->chunk_nbytes;
}

static bool codec_fits(unsigned codec, enum ptwm_plane_kind kind)
{
    switch (codec) {
    case PTWM_CODEC_LABEL_RANS: return kind == PTWM_PLANE_SYMBOL;
    case PTWM_CODEC_TRIM: return kind == PTWM_PLANE_LOW;
    case PTWM_CODEC_CARRIED: return kind == PTWM_PLANE_REST;
    default: return codec <= PTWM_CODEC_ZSTD;
    }
}

static void check_record(struct scan *scan, size_t from, const struct dump_tail *t, uint64_t chunk, uint32_t plane)
{
    const struct dump_record *r = &tail_records(t, chunk)[plane];
    const uint64_t raw_nbytes = chain_plane_nbytes(&t->chain, plane, tail_chunk_nbytes(t, chunk));

    if (!codec_fits(r->codec, t->chain.planes[plane])) {
        scan->status = PTWM_ERR_CODEC;
        scan_problem(scan, from, "codec %u cannot hold a plane of %s", r->codec,
                     chain_plane_name(t->chain.planes[plane]));
        scan->status = PTWM_ERR_SEGMENT;
    }
    if (r->stored_nbytes > 4 * raw_nbytes + 65536)
        scan_problem(scan, from, "%" PRIu64 " bytes are stored in %" PRIu64, raw_nbytes, r->stored_nbytes);
}

/* Reads the records of one chunk's planes; false if they are not all there. */
static bool read_records(struct scan *scan, struct dump_tail *t, uint64_t chunk)
{
    for (uint32_t p = 0; p < t->chain.n_planes; p++) {
        struct dump_record *r = &tail_records(t, chunk)[p];
        size_t from = scan->next;
        const char *name;

        scan_group(scan, "chunk %" PRIu64 ", plane %" PRIu32 " (%s)", chunk, p, chain_plane_name(t->chain.planes[p]));
        memset(r, 0, sizeof *r);
        r->entropy_nbytes = -1;
        r->codec = (uint8_t)scan_take_uint(scan, 1, "codec");
        name = ptwm_codec_name(r->codec);
        scan_field(scan, from, "codec", "%u, %s", r->codec, name != NULL ? name : "unknown");
        r->stored_nbytes = scan_varint(scan, "stored length");
        if (t->segment.flags & DUMP_CHECKED) {
            const size_t at = scan->next;
            r->crc = (uint32_t)scan_take_uint(scan, 4, "CRC-32C");
            scan_field(scan, at, "CRC-32C", "0x%08" PRIx32, r->crc);
        }
        if (scan->failed)
            return false;
        check_record(scan, from, t, chunk, p);
    }
    return true;
}

/* Only label rANS can carry what a rest plane lacks. */
static void check_carried(struct scan *scan, size_t from, const struct dump_tail *t, uint64_t chunk)
{
    const struct dump_record *records = tail_records(t, chunk);

    for (uint32_t p = 0; p < t->chain.n_planes; p++)
        if (records[p].codec == PTWM_CODEC_CARRIED && records[t->chain.n_planes - 1].codec != PTWM_CODEC_LABEL_RANS) {
            scan->status = PTWM_ERR_CODEC;
            scan_problem(scan, from, "a rest plane is carried by another codec than label rANS");
            scan->status = PTWM_ERR_SEGMENT;
        }
}

/* Places a chunk's planes from position on, which is in the segment; false if they leave it. */
static bool place_planes(struct dump_tail *t, uint64_t chunk, uint64_t *position, uint64_t end)
{
    struct dump_record *records = tail_records(t, chunk);

    if (t->segment.flags & DUMP_ALIGNED)
        *position += (ALIGNMENT - *position % ALIGNMENT) % ALIGNMENT;
    for (uint32_t p = 0; p < t->chain.n_planes; p++) {
        if (*position > end || records[p].stored_nbytes > end - *position)
            return false;
        records[p].offset = t->segment.offset + *position;
        *position += records[p].stored_nbytes;
    }
    return true;
}

static void read_chunk_table(struct scan *scan, struct dump_tail *t)
{
    const uint64_t end = t->segment.stored_nbytes - t->segment.tail_nbytes;
    const size_t begin = scan->next;
    uint64_t position = 0;

    for (uint64_t i = 0; i < t->n_chunks; i++) {
        const size_t from = scan->next;
        if (!read_records(scan, t, i))
            return;
        scan_group(scan, "chunk %" PRIu64, i);
        check_carried(scan, from, t, i);
        if (!place_planes(t, i, &position, end)) {
            scan_problem(scan, from, "its planes do not fit the segment");
            return;
        }
        t->n_records += t->chain.n_planes;
    }
    scan_group(scan, "chunk table");
    if (position != end)
        scan_problem(scan, begin, "the chunks end at %" PRIu64 " of %" PRIu64 " bytes before the tail", position, end);
    if (scan_left(scan) > 0)
        scan_problem(scan, scan->next, "%zu bytes are behind it", scan_left(scan));
    t->is_complete = position == end;
}

/* Checks how the raw bytes are cut, and that the tail can hold a table of so many chunks. */
static bool check_chunking(struct scan *scan, size_t from, struct dump_tail *t)
{
    const uint64_t granule = t->chain.granule_nbytes, raw_nbytes = t->segment.raw_nbytes;

    if (t->chunk_nbytes == 0 || t->chunk_nbytes > MAX_CHUNK_NBYTES ||
        (t->chunk_nbytes < MIN_SHARED_CHUNK_NBYTES && t->chunk_nbytes < raw_nbytes)) {
        scan_problem(scan, from, "chunks of %" PRIu64 " bytes", t->chunk_nbytes);
        return false;
    }
    if (raw_nbytes % granule != 0 || t->chunk_nbytes % granule != 0) {
        scan->status = PTWM_ERR_CHAIN;
        scan_problem(scan, from, "the chain needs multiples of %" PRIu64 " bytes", granule);
        scan->status = PTWM_ERR_SEGMENT;
        return false;
    }
    t->n_chunks = (raw_nbytes - 1) / t->chunk_nbytes + 1;
    if (t->n_chunks > t->segment.tail_nbytes / (2 * t->chain.n_planes)) {
        scan_problem(scan, from, "%" PRIu64 " chunks are more than the tail has records for", t->n_chunks);
        return false;
    }
    return true;
}

static bool read_label_model(struct scan *scan, struct dump_tail *t)
{
    const size_t from = scan->next;
    const bool is_whole = model_read(scan, t->chain.label.bits, &t->model);

    t->has_model = true;
    if (is_whole && t->n_chunks > 1 && chain_n_elements(&t->chain, t->chunk_nbytes) % t->model.unit != 0)
        scan_problem(scan, from, "chunks are not whole units of %" PRIu64 " elements", t->model.unit);
    return is_whole;
}

static bool read_chain(struct scan *scan, struct dump_tail *t)
{
    size_t from = scan->next;
    const uint64_t nbytes = scan_varint(scan, "chain length");

    if (scan->failed)
        return false;
    if (nbytes > sizeof t->chain_bytes) {
        scan_problem(scan, from, "a chain of %" PRIu64 " bytes", nbytes);
        return false;
    }
    from = scan->next;
    if (!chain_read(scan, nbytes, &t->chain))
        return false;
    t->chain_nbytes = (size_t)nbytes;
    memcpy(t->chain_bytes, scan->bytes + from, t->chain_nbytes);
    return true;
}

static void read_fields(struct scan *scan, struct dump_tail *t)
{
    size_t from;

    if (!read_chain(scan, t))
        return;
    from = scan->next;
    t->chunk_nbytes = scan_varint(scan, "chunk length");
    if (scan->failed || !check_chunking(scan, from, t))
        return;
    t->has_chain = true;
    if (t->chain.has_label && !read_label_model(scan, t))
        return;
    t->records = malloc((size_t)(t->n_chunks * t->chain.n_planes) * sizeof *t->records);
    if (t->records != NULL)
        read_chunk_table(scan, t);
}

static void check_crc(struct dump_tail *t, size_t nbytes, struct dump_problems *problems)
{
    if (nbytes >= CRC_NBYTES &&
        ptwm_crc32c(0, t->bytes, nbytes - CRC_NBYTES) == scan_load(t->bytes + nbytes - CRC_NBYTES, CRC_NBYTES)) {
        t->crc_state = DUMP_GOOD;
        return;
    }
    t->crc_state = DUMP_BAD;
    problem_add(problems, PTWM_ERR_CHECKSUM, t->offset, "segment %" PRIu64 ", tail: its CRC-32C does not match",
                t->number);
}

static void scan_crc(struct dump_tail *t, size_t nbytes, const struct scan_sink *sink)
{
    struct scan scan;

    scan_init(&scan, t->bytes, nbytes, t->offset, PTWM_ERR_SEGMENT, NULL, sink);
    snprintf(scan.place, sizeof scan.place, "segment %" PRIu64, t->number);
    scan_group(&scan, "tail");
    scan.next = nbytes - CRC_NBYTES;
    scan_take(&scan, CRC_NBYTES, "CRC-32C");
    scan_field(&scan, nbytes - CRC_NBYTES, "CRC-32C", "0x%08" PRIx32 ", which is %s",
               (uint32_t)scan_load(t->bytes + nbytes - CRC_NBYTES, CRC_NBYTES),
               t->crc_state == DUMP_GOOD ? "right" : "wrong");
}

void tail_read(const struct dump_view *view, const struct dump_manifest *manifest, uint64_t number, struct dump_tail *t,
               struct dump_problems *problems, const struct scan_sink *sink)
{
    struct scan scan;
    size_t nbytes;

    memset(t, 0, sizeof *t);
    t->number = number;
    t->segment = manifest->segments[number];
    if (!t->segment.is_sound)
        return;
    t->offset = t->segment.offset + t->segment.stored_nbytes - t->segment.tail_nbytes;
    t->bytes = view_load(view, t->offset, t->segment.tail_nbytes);
    if (t->bytes == NULL) {
        problem_add(problems, PTWM_ERR_TRUNCATED, t->offset, "segment %" PRIu64 ": its tail cannot be read", number);
        return;
    }
    nbytes = (size_t)t->segment.tail_nbytes;
    check_crc(t, nbytes, problems);
    scan_init(&scan, t->bytes, nbytes < CRC_NBYTES ? 0 : nbytes - CRC_NBYTES, t->offset, PTWM_ERR_SEGMENT, problems,
              sink);
    snprintf(scan.place, sizeof scan.place, "segment %" PRIu64, number);
    scan_group(&scan, "tail");
    read_fields(&scan, t);
    scan_group(&scan, "tail");
    scan.failed = false;
    scan_rest(&scan, "not understood");
    if (nbytes >= CRC_NBYTES)
        scan_crc(t, nbytes, sink);
}

void tail_release(struct dump_tail *t)
{
    free(t->bytes);
    free(t->records);
    model_release(&t->model);
    memset(t, 0, sizeof *t);
}
