/*
 * Decoding requests: which chunks they touch, each chunk once, spread over threads.
 *
 * Requests are taken in batches, so that the tails that are held at a time stay few. Each request is cut into pieces,
 * one for each chunk that it touches; pieces of one chunk are a task.
 */
#include <stdlib.h>
#include <string.h>

#include "read_ahead.h"
#include "reader.h"
#include "segment_decode.h"
#include "status.h"
#include "threads.h"

enum {
    BATCH_NBYTES = 64 << 20, /* also how far reading is ahead of decoding */
    BATCH_REQUESTS = 4096,
    SMALL_SEGMENT_NBYTES = 256 << 10, /* of small tensors: read whole */
    STREAMING_NBYTES = 16 << 20, /* what is more than this is not in a cache when the request is done */
    THREADING_NBYTES = 512 << 10 /* below this a thread costs more than it gives */
};

/* A request, resolved to raw bytes of a segment. */
struct range {
    uint64_t segment;
    uint64_t begin, end; /* in the segment's raw bytes */
    uint8_t *buffer;
    uint64_t tensor;
};

/* What of one chunk a range wants. */
struct piece {
    const struct ptwm_tail *tail;
    uint64_t chunk;
    size_t offset; /* in the chunk's raw bytes */
    size_t nbytes;
    uint8_t *to;
    uint64_t tensor;
    uint64_t segment;
};

struct batch {
    const struct ptwm_reader *reader;
    struct ptwm_codec_context context;
    bool check_crc;
    bool is_large; /* all requests together: more than STREAMING_NBYTES */
    unsigned threads;
    struct ptwm_read_ahead *ahead; /* may be NULL */
    const struct range *ranges;
    size_t n_ranges;
    struct ptwm_tail *tails;
    size_t n_tails, tails_capacity;
    struct piece *pieces;
    size_t n_pieces;
    size_t *tasks; /* first piece of each task; n_tasks + 1 */
    size_t n_tasks;
    struct ptwm_decode_scratch scratch[PTWM_MAX_THREADS];
};

/* ---------------------------------------------------------------------------------------------------- requests */

/* Finds the bytes of a tensor that a request wants. */
static enum ptwm_status request_bytes(const struct ptwm_tensor_record *t, const struct ptwm_request *request,
                                      uint64_t *begin, uint64_t *nbytes, struct ptwm_error *error)
{
    const uint64_t bits = ptwm_dtype_bits(t->dtype) > 0 ? ptwm_dtype_bits(t->dtype) : 8;
    /* nbytes < 2^63 and bits >= 4; the count fits except for sub-byte types near 2^63, which no file can hold. */
    const uint64_t n = bits >= 8 ? t->nbytes / (bits / 8) : t->nbytes / bits * 8 + t->nbytes % bits * 8 / bits;
    uint64_t count = request->n_elements;

    if (request->first_element > n)
        return ptwm_fail(error, PTWM_ERR_RANGE, "element %llu of %llu", (unsigned long long)request->first_element,
                         (unsigned long long)n);
    if (count == PTWM_NONE)
        count = n - request->first_element;
    if (count > n - request->first_element)
        return ptwm_fail(error, PTWM_ERR_RANGE, "%llu elements from %llu on of %llu", (unsigned long long)count,
                         (unsigned long long)request->first_element, (unsigned long long)n);
    if (bits >= 8) {
        *begin = request->first_element * (bits / 8);
        *nbytes = count * (bits / 8);
    } else if (request->first_element * bits % 8 != 0 || count * bits % 8 != 0) {
        return ptwm_fail(error, PTWM_ERR_RANGE, "a range of a sub-byte type is not whole bytes");
    } else {
        *begin = request->first_element / 8 * bits + request->first_element % 8 * bits / 8;
        *nbytes = count / 8 * bits + count % 8 * bits / 8;
    }
    if (request->buffer_nbytes != *nbytes || (request->buffer == NULL && *nbytes > 0))
        return ptwm_fail(error, PTWM_ERR_ARGUMENT, "a buffer of %llu bytes for %llu",
                         (unsigned long long)request->buffer_nbytes, (unsigned long long)*nbytes);
    return PTWM_OK;
}

/* Resolves all requests; those without bytes drop out. */
static enum ptwm_status resolve(const struct ptwm_reader *reader, const struct ptwm_request *requests, size_t n_requests,
                                uint64_t max_nbytes, struct range *ranges, size_t *n_ranges, struct ptwm_error *error)
{
    uint64_t total = 0;

    *n_ranges = 0;
    for (size_t i = 0; i < n_requests; i++) {
        const uint64_t tensor = requests[i].tensor;
        const struct ptwm_tensor_record *t;
        enum ptwm_status status;
        uint64_t begin = 0, nbytes = 0;

        if (tensor >= reader->manifest.n_tensors)
            return ptwm_fail(error, PTWM_ERR_NO_TENSOR, "tensor %llu", (unsigned long long)tensor);
        t = &reader->manifest.tensors[tensor];
        status = request_bytes(t, &requests[i], &begin, &nbytes, error);
        if (status == PTWM_OK && (!ptwm_add_u64(total, nbytes, &total) || (max_nbytes > 0 && total > max_nbytes)))
            status = ptwm_fail(error, PTWM_ERR_LIMIT, "more than %llu bytes", (unsigned long long)max_nbytes);
        if (status != PTWM_OK) {
            ptwm_fail_at(error, tensor, PTWM_NONE);
            return status;
        }
        if (nbytes > 0) {
            const struct range range = { t->segment, t->offset + begin, t->offset + begin + nbytes,
                                         requests[i].buffer, tensor };
            ranges[(*n_ranges)++] = range;
        }
    }
    return PTWM_OK;
}

static int compare_ranges(const void *a, const void *b)
{
    const struct range *x = a, *y = b;
    if (x->segment != y->segment)
        return x->segment < y->segment ? -1 : 1;
    return x->begin != y->begin ? (x->begin < y->begin ? -1 : 1) : 0;
}

/* ------------------------------------------------------------------------------------------------------ batches */

/* Reads the tails of the batch's segments. */
static enum ptwm_status read_tails(struct batch *b, struct ptwm_error *error)
{
    const struct ptwm_manifest *m = &b->reader->manifest;

    b->tails = ptwm_calloc(b->context.allocator, b->n_ranges, sizeof *b->tails);
    if (b->tails == NULL)
        return ptwm_fail(error, PTWM_ERR_MEMORY, "tails");
    b->tails_capacity = b->n_ranges;
    for (size_t i = 0; i < b->n_ranges; i++) {
        enum ptwm_status status;
        if (i > 0 && b->ranges[i].segment == b->ranges[i - 1].segment)
            continue;
        ptwm_read_ahead_reach(b->ahead, m->segments[b->ranges[i].segment].offset, 1);
        status = ptwm_tail_read(b->reader->file, &m->segments[b->ranges[i].segment], b->context.allocator,
                                &b->tails[b->n_tails], error);
        if (status != PTWM_OK) {
            ptwm_fail_at(error, b->ranges[i].tensor, PTWM_NONE);
            return status;
        }
        b->n_tails++;
    }
    return PTWM_OK;
}

static int compare_pieces(const void *a, const void *b)
{
    const struct piece *x = a, *y = b;
    if (x->tail != y->tail)
        return x->tail < y->tail ? -1 : 1;
    return x->chunk != y->chunk ? (x->chunk < y->chunk ? -1 : 1) : 0;
}

static void cut_range(struct batch *b, const struct range *range, const struct ptwm_tail *tail)
{
    for (uint64_t at = range->begin; at < range->end;) {
        const uint64_t chunk = at / tail->chunk_nbytes, chunk_begin = chunk * tail->chunk_nbytes;
        const uint64_t chunk_end = chunk_begin + ptwm_tail_chunk_nbytes(tail, chunk);
        const uint64_t end = range->end < chunk_end ? range->end : chunk_end;
        const struct piece piece = { tail, chunk, (size_t)(at - chunk_begin), (size_t)(end - at),
                                     range->buffer + (at - range->begin), range->tensor, range->segment };
        b->pieces[b->n_pieces++] = piece;
        at = end;
    }
}

/* Cuts the ranges into pieces and gathers the pieces of each chunk. */
static enum ptwm_status make_tasks(struct batch *b, struct ptwm_error *error)
{
    const struct ptwm_tail *tail = b->tails;
    uint64_t n_pieces = 0;

    for (int pass = 0; pass < 2; pass++) {
        tail = b->tails;
        for (size_t i = 0; i < b->n_ranges; i++) {
            if (i > 0 && b->ranges[i].segment != b->ranges[i - 1].segment)
                tail++;
            if (pass == 0)
                n_pieces += (b->ranges[i].end - 1) / tail->chunk_nbytes - b->ranges[i].begin / tail->chunk_nbytes + 1;
            else
                cut_range(b, &b->ranges[i], tail);
        }
        if (pass == 0) {
            b->pieces = ptwm_alloc(b->context.allocator, n_pieces, sizeof *b->pieces);
            b->tasks = ptwm_alloc(b->context.allocator, n_pieces + 1, sizeof *b->tasks);
            if (b->pieces == NULL || b->tasks == NULL) {
                ptwm_release(b->context.allocator, b->pieces, n_pieces, sizeof *b->pieces);
                ptwm_release(b->context.allocator, b->tasks, n_pieces + 1, sizeof *b->tasks);
                b->pieces = NULL;
                b->tasks = NULL;
                return ptwm_fail(error, PTWM_ERR_MEMORY, "%llu pieces", (unsigned long long)n_pieces);
            }
        }
    }
    qsort(b->pieces, b->n_pieces, sizeof *b->pieces, compare_pieces);
    for (size_t i = 0; i < b->n_pieces; i++)
        if (i == 0 || compare_pieces(&b->pieces[i - 1], &b->pieces[i]) != 0)
            b->tasks[b->n_tasks++] = i;
    b->tasks[b->n_tasks] = b->n_pieces;
    return PTWM_OK;
}

/* ------------------------------------------------------------------------------------------------------- cache */

/* Serves a range from the segment that is kept, if it is that one and nobody else is looking. */
static bool serve_from_cache(const struct ptwm_reader *reader, const struct range *range, bool check_crc)
{
    const struct ptwm_cached_segment *place = &reader->cache->places[range->segment % PTWM_CACHED_SEGMENTS];
    bool hit;

    if (pthread_mutex_trylock(&reader->cache->lock) != 0)
        return false;
    hit = place->segment == range->segment && (place->is_checked || !check_crc);
    if (hit)
        memcpy(range->buffer, place->raw.data + range->begin, (size_t)(range->end - range->begin));
    pthread_mutex_unlock(&reader->cache->lock);
    return hit;
}

/* Keeps a segment of one small chunk, decoded for a part of it, and gives the memory of the one before in exchange. */
static void keep_in_cache(const struct batch *b, const struct piece *piece, struct ptwm_bytes *raw)
{
    struct ptwm_cached_segment *place = &b->reader->cache->places[piece->segment % PTWM_CACHED_SEGMENTS];
    struct ptwm_bytes old;

    if (piece->tail->n_chunks > 1 || raw->nbytes > PTWM_CACHED_SEGMENT_NBYTES ||
        pthread_mutex_trylock(&b->reader->cache->lock) != 0)
        return;
    old = place->raw;
    place->raw = *raw;
    *raw = old;
    place->segment = piece->segment;
    place->is_checked = b->check_crc || !(piece->tail->segment.flags & PTWM_SEGMENT_CHECKED);
    pthread_mutex_unlock(&b->reader->cache->lock);
}

/* Decodes one chunk: into its only taker's buffer if that wants all of it, else aside, for all to copy from. */
static enum ptwm_status run_task(void *context, size_t task, unsigned worker, struct ptwm_error *error)
{
    struct batch *b = context;
    const struct piece *pieces = b->pieces + b->tasks[task];
    const size_t n_pieces = b->tasks[task + 1] - b->tasks[task];
    const struct ptwm_tail *tail = pieces->tail;
    const size_t chunk_nbytes = ptwm_tail_chunk_nbytes(tail, pieces->chunk);
    struct ptwm_decode_scratch *scratch = &b->scratch[worker];
    const bool direct = n_pieces == 1 && pieces->nbytes == chunk_nbytes;
    uint8_t *raw = direct ? pieces->to : ptwm_bytes_scratch(&scratch->raw, chunk_nbytes);
    enum ptwm_status status;

    if (raw == NULL)
        return ptwm_fail(error, PTWM_ERR_MEMORY, "a chunk of %zu bytes", chunk_nbytes);
    ptwm_read_ahead_reach(b->ahead, tail->segment.offset + tail->chunk_offset[pieces->chunk],
                          ptwm_tail_chunk_stored_nbytes(tail, pieces->chunk));
    scratch->is_streamed = direct && b->is_large;
    status = ptwm_chunk_decode(b->reader->file, tail, pieces->chunk, b->check_crc, &b->context, raw, scratch, error);
    if (status != PTWM_OK) {
        ptwm_fail_at(error, pieces->tensor, PTWM_NONE);
        return status;
    }
    for (size_t i = 0; i < n_pieces && !direct; i++)
        memcpy(pieces[i].to, raw + pieces[i].offset, pieces[i].nbytes);
    if (!direct)
        keep_in_cache(b, pieces, &scratch->raw);
    return PTWM_OK;
}

/* Releases what belongs to one batch; the scratch stays. */
static void end_batch(struct batch *b)
{
    const struct ptwm_allocator *allocator = b->context.allocator;

    for (size_t i = 0; i < b->n_tails; i++)
        ptwm_tail_release(&b->tails[i]);
    ptwm_release(allocator, b->tails, b->tails_capacity, sizeof *b->tails);
    ptwm_release(allocator, b->pieces, b->n_pieces, sizeof *b->pieces);
    ptwm_release(allocator, b->tasks, (uint64_t)b->n_pieces + 1, sizeof *b->tasks);
    b->tails = NULL;
    b->pieces = NULL;
    b->tasks = NULL;
    b->n_tails = b->tails_capacity = b->n_pieces = b->n_tasks = 0;
}

static enum ptwm_status run_batch(struct batch *b, uint64_t nbytes, struct ptwm_error *error)
{
    enum ptwm_status status = read_tails(b, error);

    if (status == PTWM_OK)
        status = make_tasks(b, error);
    if (status == PTWM_OK)
        status = ptwm_parallel_for(b->n_tasks, nbytes < THREADING_NBYTES ? 1 : b->threads, run_task, b, error);
    end_batch(b);
    return status;
}

/* How many of the ranges make the next batch, and how many raw bytes they have. */
static size_t batch_size(const struct range *ranges, size_t n_ranges, uint64_t *nbytes)
{
    size_t n = 0;

    *nbytes = 0;
    while (n < n_ranges && n < BATCH_REQUESTS && *nbytes < BATCH_NBYTES) {
        *nbytes += ranges[n].end - ranges[n].begin;
        n++;
    }
    return n;
}

/*
 * Where the segments of the ranges lie, for those that are wanted whole: where the chunks of a part lie only the tail
 * knows. extents has room for n_ranges.
 */
static void list_extents(const struct ptwm_reader *reader, const struct range *ranges, size_t n_ranges,
                         struct ptwm_extent *extents)
{
    for (size_t i = 0; i < n_ranges; i++) {
        const struct ptwm_segment_record *s = &reader->manifest.segments[ranges[i].segment];
        const bool is_first = i == 0 || ranges[i].segment != ranges[i - 1].segment;
        const bool is_whole = ranges[i].end - ranges[i].begin == s->raw_nbytes || s->raw_nbytes <= SMALL_SEGMENT_NBYTES;
        extents[i].offset = s->offset;
        extents[i].nbytes = is_first && is_whole ? s->stored_nbytes : 0;
    }
}

static enum ptwm_status run_batches(const struct ptwm_reader *reader, const struct range *ranges, size_t n_ranges,
                                    const struct ptwm_decode_options *options, struct ptwm_error *error)
{
    struct batch *b = ptwm_calloc(reader->allocator, 1, sizeof *b);
    enum ptwm_status status = PTWM_OK;
    struct ptwm_extent *extents;
    uint64_t total = 0;

    if (b == NULL)
        return ptwm_fail(error, PTWM_ERR_MEMORY, "decoding");
    b->reader = reader;
    b->context = ptwm_reader_codec_context(reader);
    b->check_crc = !(options->flags & PTWM_DECODE_SKIP_CRC);
    b->threads = ptwm_thread_count(options->threads);
    for (size_t i = 0; i < n_ranges; i++)
        total += ranges[i].end - ranges[i].begin; /* fits: resolve has added it up */
    b->is_large = total > STREAMING_NBYTES;
    for (unsigned i = 0; i < b->threads; i++)
        ptwm_decode_scratch_init(&b->scratch[i], reader->allocator);
    extents = ptwm_alloc(reader->allocator, n_ranges, sizeof *extents);
    if (extents != NULL) { /* without, it is only slower */
        list_extents(reader, ranges, n_ranges, extents);
        b->ahead = ptwm_read_ahead_begin(reader->file, extents, n_ranges, reader->allocator);
    }
    for (size_t i = 0; i < n_ranges && status == PTWM_OK; i += b->n_ranges) {
        uint64_t nbytes, next_nbytes;
        b->ranges = ranges + i;
        b->n_ranges = batch_size(b->ranges, n_ranges - i, &nbytes);
        ptwm_read_ahead_allow(b->ahead, i + b->n_ranges + batch_size(b->ranges + b->n_ranges,
                                                                     n_ranges - i - b->n_ranges, &next_nbytes));
        status = run_batch(b, nbytes, error);
    }
    ptwm_read_ahead_end(b->ahead);
    ptwm_release(reader->allocator, extents, n_ranges, sizeof *extents);
    for (unsigned i = 0; i < b->threads; i++)
        ptwm_decode_scratch_release(&b->scratch[i]);
    ptwm_release(reader->allocator, b, 1, sizeof *b);
    return status;
}

/* -------------------------------------------------------------------------------------------------- afterwards */

static enum ptwm_status check_hashes(const struct ptwm_reader *reader, const struct ptwm_request *requests,
                                     size_t n_requests, struct ptwm_error *error)
{
    for (size_t i = 0; i < n_requests; i++) {
        const struct ptwm_tensor_record *t = &reader->manifest.tensors[requests[i].tensor];
        if (!t->has_hash || requests[i].buffer_nbytes != t->nbytes)
            continue;
        if (ptwm_xxh3_64(requests[i].buffer, (size_t)t->nbytes) != t->hash) {
            ptwm_fail(error, PTWM_ERR_HASH, "the decoded bytes");
            ptwm_fail_at(error, requests[i].tensor,
                         t->segment != PTWM_NONE ? reader->manifest.segments[t->segment].offset : PTWM_NONE);
            return PTWM_ERR_HASH;
        }
    }
    return PTWM_OK;
}

static bool is_big_endian(void)
{
    const uint16_t one = 1;
    uint8_t first;
    memcpy(&first, &one, 1);
    return first == 0;
}

/* Bytes of what a dtype's byte order is about: of the parts of complex numbers, not of the pair. */
static size_t swapped_nbytes(uint32_t dtype)
{
    const uint32_t nbytes = ptwm_dtype_bits(dtype) / 8;
    switch (dtype) {
    case PTWM_DTYPE_C32:
    case PTWM_DTYPE_BC32:
    case PTWM_DTYPE_C64:
    case PTWM_DTYPE_C128: return nbytes / 2;
    default: return nbytes;
    }
}

static void to_native_order(uint8_t *bytes, uint64_t nbytes, size_t width)
{
    for (uint64_t i = 0; width > 1 && i < nbytes; i += width)
        for (size_t j = 0; j < width / 2; j++) {
            uint8_t t = bytes[i + j];
            bytes[i + j] = bytes[i + width - 1 - j];
            bytes[i + width - 1 - j] = t;
        }
}

enum ptwm_status ptwm_reader_decode(const struct ptwm_reader *reader, const struct ptwm_request *requests,
                                    size_t n_requests, const struct ptwm_decode_options *given, struct ptwm_error *error)
{
    struct ptwm_decode_options options = PTWM_DECODE_OPTIONS_INIT;
    struct range *ranges;
    size_t n_ranges;
    enum ptwm_status status;
    bool check_crc;

    if (reader == NULL || (requests == NULL && n_requests > 0))
        return ptwm_fail(error, PTWM_ERR_ARGUMENT, "reader or requests");
    if (given != NULL)
        memcpy(&options, given, given->struct_nbytes < sizeof options ? given->struct_nbytes : sizeof options);
    check_crc = !(options.flags & PTWM_DECODE_SKIP_CRC);
    ranges = ptwm_alloc(reader->allocator, n_requests, sizeof *ranges);
    if (ranges == NULL)
        return ptwm_fail(error, PTWM_ERR_MEMORY, "%zu requests", n_requests);
    status = resolve(reader, requests, n_requests, options.max_nbytes, ranges, &n_ranges, error);
    if (status == PTWM_OK && (n_ranges != 1 || !serve_from_cache(reader, ranges, check_crc))) {
        qsort(ranges, n_ranges, sizeof *ranges, compare_ranges);
        status = run_batches(reader, ranges, n_ranges, &options, error);
    }
    ptwm_release(reader->allocator, ranges, n_requests, sizeof *ranges);
    if (status == PTWM_OK && options.flags & PTWM_DECODE_CHECK_HASH)
        status = check_hashes(reader, requests, n_requests, error);
    if (status == PTWM_OK && options.flags & PTWM_DECODE_NATIVE_ORDER && is_big_endian())
        for (size_t i = 0; i < n_requests; i++)
            to_native_order(requests[i].buffer, requests[i].buffer_nbytes,
                            swapped_nbytes(reader->manifest.tensors[requests[i].tensor].dtype));
    return status;
}
