#include "segment.h"

#include <string.h>

#include "status.h"

enum ptwm_status ptwm_tail_init(struct ptwm_tail *tail, const struct ptwm_allocator *allocator,
                                const struct ptwm_segment_record *segment, const struct ptwm_parsed_chain *chain,
                                uint64_t chunk_nbytes)
{
    memset(tail, 0, sizeof *tail);
    tail->allocator = allocator;
    tail->segment = *segment;
    ptwm_chain_copy(&tail->chain, chain);
    tail->chunk_nbytes = chunk_nbytes;
    tail->n_chunks = ptwm_ceil_div(segment->raw_nbytes, chunk_nbytes);
    tail->planes = ptwm_calloc(allocator, tail->n_chunks, chain->n_planes * sizeof *tail->planes);
    tail->chunk_offset = ptwm_calloc(allocator, tail->n_chunks + 1, sizeof *tail->chunk_offset);
    if (tail->chain.label != NULL)
        ptwm_label_model_init(&tail->model, allocator, tail->chain.label);
    if (tail->planes == NULL || tail->chunk_offset == NULL) {
        ptwm_tail_release(tail);
        return PTWM_ERR_MEMORY;
    }
    return PTWM_OK;
}

void ptwm_tail_release(struct ptwm_tail *tail)
{
    ptwm_release(tail->allocator, tail->planes, tail->n_chunks, tail->chain.n_planes * sizeof *tail->planes);
    ptwm_release(tail->allocator, tail->chunk_offset, tail->n_chunks + 1, sizeof *tail->chunk_offset);
    if (tail->chain.label != NULL)
        ptwm_label_model_release(&tail->model);
    tail->planes = NULL;
    tail->chunk_offset = NULL;
    tail->chain.label = NULL;
}

uint64_t ptwm_chunk_position(uint64_t position, uint32_t segment_flags)
{
    return ptwm_segment_position(position, segment_flags); /* a segment is aligned as its chunks are */
}

size_t ptwm_tail_chunk_nbytes(const struct ptwm_tail *tail, uint64_t chunk)
{
    uint64_t left = tail->segment.raw_nbytes - chunk * tail->chunk_nbytes;
    return (size_t)(left < tail->chunk_nbytes ? left : tail->chunk_nbytes);
}

struct ptwm_plane_record *ptwm_tail_chunk_planes(const struct ptwm_tail *tail, uint64_t chunk)
{
    return tail->planes + chunk * tail->chain.n_planes;
}

uint64_t ptwm_tail_chunk_stored_nbytes(const struct ptwm_tail *tail, uint64_t chunk)
{
    const struct ptwm_plane_record *planes = ptwm_tail_chunk_planes(tail, chunk);
    uint64_t sum = 0;
    for (uint32_t p = 0; p < tail->chain.n_planes; p++)
        sum += planes[p].stored_nbytes;
    return sum;
}

uint64_t ptwm_tail_first_element(const struct ptwm_tail *tail, uint64_t chunk)
{
    return tail->chain.label != NULL ? ptwm_chain_n_elements(&tail->chain, chunk * tail->chunk_nbytes) : 0;
}

struct ptwm_shifts ptwm_tail_shifts(const struct ptwm_tail *tail)
{
    struct ptwm_shifts shifts = { 0, NULL };
    if (tail->chain.label != NULL) {
        shifts.n_columns = tail->model.n_columns;
        shifts.value = tail->model.wrapped;
    }
    return shifts;
}

/* ------------------------------------------------------------------------------------------------------ reading */

/* Whether a codec can hold a plane of that kind. Unknown codecs can't. */
static bool codec_fits(uint8_t codec, enum ptwm_plane_kind kind)
{
    switch (codec) {
    case PTWM_CODEC_LABEL_RANS: return kind == PTWM_PLANE_SYMBOL;
    case PTWM_CODEC_TRIM: return kind == PTWM_PLANE_LOW;
    case PTWM_CODEC_CARRIED: return kind == PTWM_PLANE_REST;
    default: return codec <= PTWM_CODEC_ZSTD;
    }
}

static enum ptwm_status read_plane_record(struct ptwm_cursor *c, const struct ptwm_tail *tail, uint64_t chunk,
                                          uint32_t plane, struct ptwm_error *error)
{
    const uint64_t raw_nbytes = ptwm_plane_nbytes(&tail->chain, plane, ptwm_tail_chunk_nbytes(tail, chunk));
    struct ptwm_plane_record *record = &ptwm_tail_chunk_planes(tail, chunk)[plane];
    uint64_t stored_nbytes;

    record->codec = ptwm_cursor_u8(c);
    stored_nbytes = ptwm_cursor_varint(c);
    if (tail->segment.flags & PTWM_SEGMENT_CHECKED)
        record->crc = ptwm_cursor_u32(c);
    if (c->failed)
        return ptwm_fail(error, PTWM_ERR_SEGMENT, "the chunk table is cut short");
    if (!codec_fits(record->codec, tail->chain.planes[plane].kind))
        return ptwm_fail(error, PTWM_ERR_CODEC, "codec %u of plane %lu", record->codec, (unsigned long)plane);
    if (stored_nbytes > 4 * raw_nbytes + 65536)
        return ptwm_fail(error, PTWM_ERR_SEGMENT, "a plane of %llu bytes is stored in %llu",
                         (unsigned long long)raw_nbytes, (unsigned long long)stored_nbytes);
    record->stored_nbytes = (uint32_t)stored_nbytes;
    return PTWM_OK;
}

/* Only label rANS can carry what a rest plane lacks. The symbol plane is the last one. */
static bool is_carried_by_none(const struct ptwm_parsed_chain *chain, const struct ptwm_plane_record *records)
{
    bool is_carried = false;

    for (uint32_t p = 0; p < chain->n_planes; p++)
        is_carried = is_carried || records[p].codec == PTWM_CODEC_CARRIED;
    return is_carried && records[chain->n_planes - 1].codec != PTWM_CODEC_LABEL_RANS;
}

/* Reads the chunk table and places the chunks; they must fill what the segment has before its tail. */
static enum ptwm_status read_chunk_table(struct ptwm_cursor *c, struct ptwm_tail *tail, struct ptwm_error *error)
{
    const uint64_t end = tail->segment.stored_nbytes - tail->segment.tail_nbytes;
    uint64_t position = 0;

    for (uint64_t i = 0; i < tail->n_chunks; i++) {
        for (uint32_t p = 0; p < tail->chain.n_planes; p++) {
            enum ptwm_status status = read_plane_record(c, tail, i, p, error);
            if (status != PTWM_OK)
                return status;
        }
        if (is_carried_by_none(&tail->chain, ptwm_tail_chunk_planes(tail, i)))
            return ptwm_fail(error, PTWM_ERR_CODEC, "a rest plane is carried by another codec than label rANS");
        tail->chunk_offset[i] = ptwm_chunk_position(position, tail->segment.flags);
        position = tail->chunk_offset[i] + ptwm_tail_chunk_stored_nbytes(tail, i);
        if (position > end)
            return ptwm_fail(error, PTWM_ERR_SEGMENT, "the chunks do not fit the segment");
    }
    if (position != end || ptwm_cursor_left(c) != 0)
        return ptwm_fail(error, PTWM_ERR_SEGMENT, "the chunks or the tail leave bytes over");
    tail->chunk_offset[tail->n_chunks] = end;
    return PTWM_OK;
}

/* Checks how raw_nbytes is cut into chunks, and that the tail can hold a table of so many. */
static enum ptwm_status check_chunking(const struct ptwm_segment_record *segment,
                                       const struct ptwm_parsed_chain *chain, uint64_t chunk_nbytes,
                                       struct ptwm_error *error)
{
    if (chunk_nbytes == 0 || chunk_nbytes > PTWM_MAX_CHUNK_NBYTES ||
        (chunk_nbytes < PTWM_MIN_SHARED_CHUNK_NBYTES && chunk_nbytes < segment->raw_nbytes))
        return ptwm_fail(error, PTWM_ERR_SEGMENT, "chunks of %llu bytes", (unsigned long long)chunk_nbytes);
    if (segment->raw_nbytes % chain->granule_nbytes != 0 || chunk_nbytes % chain->granule_nbytes != 0)
        return ptwm_fail(error, PTWM_ERR_CHAIN, "the chain needs multiples of %lu bytes",
                         (unsigned long)chain->granule_nbytes);
    if (ptwm_ceil_div(segment->raw_nbytes, chunk_nbytes) > segment->tail_nbytes / (2 * chain->n_planes))
        return ptwm_fail(error, PTWM_ERR_SEGMENT, "more chunks than the tail has records for");
    return PTWM_OK;
}

static enum ptwm_status read_model(struct ptwm_cursor *c, struct ptwm_tail *tail, struct ptwm_error *error)
{
    enum ptwm_status status;

    /* A set takes five bytes or more in the tail and 1.5 KiB in memory: as many as chunks, which hold 1 KiB each. */
    if (tail->n_chunks < PTWM_MAX_SETS)
        tail->model.max_sets = (uint32_t)tail->n_chunks;
    status = ptwm_label_model_read(&tail->model, c, error);
    if (status == PTWM_OK && tail->n_chunks > 1 &&
        ptwm_chain_n_elements(&tail->chain, tail->chunk_nbytes) % tail->model.unit != 0)
        status = ptwm_fail(error, PTWM_ERR_SEGMENT, "chunks are not whole units of %lu elements",
                           (unsigned long)tail->model.unit);
    return status;
}

static enum ptwm_status parse_tail(const uint8_t *bytes, const struct ptwm_segment_record *segment,
                                   const struct ptwm_allocator *allocator, struct ptwm_tail *tail,
                                   struct ptwm_error *error)
{
    struct ptwm_cursor c = ptwm_cursor_make(bytes, (size_t)segment->tail_nbytes);
    struct ptwm_parsed_chain chain;
    enum ptwm_status status;
    uint64_t chain_nbytes, chunk_nbytes;
    const uint8_t *chain_bytes;

    if (segment->tail_nbytes < 4 || ptwm_crc32c(0, bytes, (size_t)segment->tail_nbytes - 4) != ptwm_load32(c.end - 4))
        return ptwm_fail(error, PTWM_ERR_CHECKSUM, "the segment's tail");
    c.end -= 4;
    chain_nbytes = ptwm_cursor_varint(&c);
    chain_bytes = chain_nbytes <= PTWM_CHAIN_MAX_NBYTES ? ptwm_cursor_take(&c, (size_t)chain_nbytes) : NULL;
    chunk_nbytes = ptwm_cursor_varint(&c);
    if (chain_bytes == NULL || c.failed)
        return ptwm_fail(error, PTWM_ERR_SEGMENT, "the tail is cut short or its chain is too long");
    status = ptwm_chain_parse(chain_bytes, (size_t)chain_nbytes, &chain, error);
    if (status == PTWM_OK)
        status = check_chunking(segment, &chain, chunk_nbytes, error);
    if (status != PTWM_OK)
        return status;
    if (ptwm_tail_init(tail, allocator, segment, &chain, chunk_nbytes) != PTWM_OK)
        return ptwm_fail(error, PTWM_ERR_MEMORY, "a segment's chunk table");
    if (chain.label != NULL)
        status = read_model(&c, tail, error);
    if (status == PTWM_OK)
        status = read_chunk_table(&c, tail, error);
    if (status != PTWM_OK)
        ptwm_tail_release(tail);
    return status;
}

enum ptwm_status ptwm_tail_read(const struct ptwm_file *file, const struct ptwm_segment_record *segment,
                                const struct ptwm_allocator *allocator, struct ptwm_tail *tail,
                                struct ptwm_error *error)
{
    const uint64_t offset = segment->offset + segment->stored_nbytes - segment->tail_nbytes;
    struct ptwm_bytes bytes = { allocator, NULL, 0, 0 };
    /* A copy, even of a mapped file: what is parsed must not change meanwhile. */
    enum ptwm_status status = ptwm_file_copy(file, offset, segment->tail_nbytes, &bytes, error);

    if (status == PTWM_OK)
        status = parse_tail(bytes.data, segment, allocator, tail, error);
    if (status != PTWM_OK)
        ptwm_fail_at(error, PTWM_NONE, offset);
    ptwm_bytes_release(&bytes);
    return status;
}

/* ------------------------------------------------------------------------------------------------------ writing */

static enum ptwm_status write_chunk_table(const struct ptwm_tail *tail, struct ptwm_bytes *bytes)
{
    const uint64_t n = tail->n_chunks * tail->chain.n_planes;
    enum ptwm_status status = PTWM_OK;

    for (uint64_t i = 0; i < n && status == PTWM_OK; i++) {
        status = ptwm_bytes_append_u8(bytes, tail->planes[i].codec);
        if (status == PTWM_OK)
            status = ptwm_bytes_append_varint(bytes, tail->planes[i].stored_nbytes);
        if (status == PTWM_OK && tail->segment.flags & PTWM_SEGMENT_CHECKED)
            status = ptwm_bytes_append_u32(bytes, tail->planes[i].crc);
    }
    return status;
}

enum ptwm_status ptwm_tail_write(const struct ptwm_tail *tail, struct ptwm_bytes *bytes)
{
    const size_t begin = bytes->nbytes;
    enum ptwm_status status = ptwm_bytes_append_varint(bytes, tail->chain.nbytes);

    if (status == PTWM_OK)
        status = ptwm_bytes_append(bytes, tail->chain.bytes, tail->chain.nbytes);
    if (status == PTWM_OK)
        status = ptwm_bytes_append_varint(bytes, tail->chunk_nbytes);
    if (status == PTWM_OK && tail->chain.label != NULL)
        status = ptwm_label_model_write(&tail->model, bytes);
    if (status == PTWM_OK)
        status = write_chunk_table(tail, bytes);
    if (status == PTWM_OK)
        status = ptwm_bytes_append_u32(bytes, ptwm_crc32c(0, bytes->data + begin, bytes->nbytes - begin));
    return status;
}
