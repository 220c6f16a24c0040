/*
 * Verifying a whole file: padding, tails, CRCs, that everything decodes, payload hashes.
 *
 * Segment by segment; within one, a window of chunks at a time is decoded in parallel and fed to the hashes of the
 * tensors that lie in it.
 */
#include <stdlib.h>

#include "reader.h"
#include "segment_decode.h"
#include "status.h"
#include "threads.h"
#include "xxh3.h"

/*
 * A range of the segment whose hash is being computed, and the tensors (all of the same range) that claim to have it.
 */
struct hashed_range {
    uint64_t begin, end;
    size_t first, n; /* of the tensors in struct verification's order */
    struct ptwm_xxh3 state;
};

struct verification {
    const struct ptwm_reader *reader;
    struct ptwm_codec_context context;
    unsigned threads;
    struct ptwm_decode_scratch scratch[PTWM_MAX_THREADS];
    const struct ptwm_tensor_record **order; /* tensors with bytes, by segment and range */
    size_t n_order;
    /* of the segment at hand */
    struct ptwm_tail tail;
    uint64_t window_begin; /* first chunk */
    struct ptwm_bytes window;
};

static int compare_tensors(const void *a, const void *b)
{
    const struct ptwm_tensor_record *x = *(const struct ptwm_tensor_record *const *)a;
    const struct ptwm_tensor_record *y = *(const struct ptwm_tensor_record *const *)b;
    if (x->segment != y->segment)
        return x->segment < y->segment ? -1 : 1;
    if (x->offset != y->offset)
        return x->offset < y->offset ? -1 : 1;
    if (x->nbytes != y->nbytes)
        return x->nbytes < y->nbytes ? -1 : 1;
    return x < y ? -1 : x > y; /* for the same error on every machine */
}

/* -------------------------------------------------------------------------------------------------------- padding */

static enum ptwm_status check_zero(struct verification *v, uint64_t begin, uint64_t end, struct ptwm_error *error)
{
    const uint8_t *bytes;
    enum ptwm_status status = ptwm_file_view(v->reader->file, begin, end - begin, &v->scratch[0].stored, &bytes, error);

    for (uint64_t i = 0; status == PTWM_OK && i < end - begin; i++)
        if (bytes[i] != 0) {
            status = ptwm_fail(error, PTWM_ERR_PADDING, "padding of a segment");
            ptwm_fail_at(error, PTWM_NONE, begin + i);
        }
    return status;
}

/* Checks the padding before the segment, which begins at position, and before its chunks. */
static enum ptwm_status check_padding(struct verification *v, uint64_t position, struct ptwm_error *error)
{
    const struct ptwm_tail *tail = &v->tail;
    enum ptwm_status status = check_zero(v, position, tail->segment.offset, error);
    uint64_t end = 0;

    for (uint64_t i = 0; i < tail->n_chunks && status == PTWM_OK; i++) {
        if (tail->chunk_offset[i] > end)
            status = check_zero(v, tail->segment.offset + end, tail->segment.offset + tail->chunk_offset[i], error);
        end = tail->chunk_offset[i] + ptwm_tail_chunk_stored_nbytes(tail, i);
    }
    return status;
}

/* --------------------------------------------------------------------------------------------------------- chunks */

static enum ptwm_status run_chunk(void *context, size_t task, unsigned worker, struct ptwm_error *error)
{
    struct verification *v = context;
    return ptwm_chunk_decode(v->reader->file, &v->tail, v->window_begin + task, true, &v->context,
                             v->window.data + task * v->tail.chunk_nbytes, &v->scratch[worker], error);
}

static void hash_window(struct verification *v, uint64_t begin, uint64_t end, struct hashed_range *ranges, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const uint64_t from = ranges[i].begin > begin ? ranges[i].begin : begin;
        const uint64_t to = ranges[i].end < end ? ranges[i].end : end;
        if (from < to)
            ptwm_xxh3_update(&ranges[i].state, v->window.data + (from - begin), (size_t)(to - from));
    }
}

static enum ptwm_status run_windows(struct verification *v, struct hashed_range *ranges, size_t n_ranges,
                                    struct ptwm_error *error)
{
    const uint64_t chunk_nbytes = v->tail.chunk_nbytes, n_chunks = v->tail.n_chunks;
    uint64_t step = 2u * v->threads > (4u << 20) / chunk_nbytes ? 2u * v->threads : (4u << 20) / chunk_nbytes;
    enum ptwm_status status = PTWM_OK;

    if (step > n_chunks)
        step = n_chunks;
    if (ptwm_bytes_scratch(&v->window, n_chunks == step ? v->tail.segment.raw_nbytes : step * chunk_nbytes) == NULL)
        return ptwm_fail(error, PTWM_ERR_MEMORY, "%llu chunks", (unsigned long long)step);
    for (uint64_t i = 0; i < n_chunks && status == PTWM_OK; i += step) {
        const uint64_t n = n_chunks - i < step ? n_chunks - i : step, begin = i * chunk_nbytes;
        const uint64_t end = begin + (n - 1) * chunk_nbytes + ptwm_tail_chunk_nbytes(&v->tail, i + n - 1);
        v->window_begin = i;
        status = ptwm_parallel_for((size_t)n, v->threads, run_chunk, v, error);
        if (status == PTWM_OK)
            hash_window(v, begin, end, ranges, n_ranges);
    }
    return status;
}

/* --------------------------------------------------------------------------------------------------------- hashes */

/* Gathers the distinct ranges of the segment's tensors, order[first .. first + n). */
static enum ptwm_status gather_ranges(const struct verification *v, size_t first, size_t n,
                                      struct hashed_range **ranges, size_t *n_ranges, struct ptwm_error *error)
{
    *n_ranges = 0;
    *ranges = ptwm_alloc(v->reader->allocator, n, sizeof **ranges);
    if (*ranges == NULL)
        return ptwm_fail(error, PTWM_ERR_MEMORY, "%zu hashes", n);
    for (size_t i = first; i < first + n; i++) {
        const struct ptwm_tensor_record *t = v->order[i];
        struct hashed_range *last = *n_ranges > 0 ? &(*ranges)[*n_ranges - 1] : NULL;
        if (last == NULL || last->begin != t->offset || last->end != t->offset + t->nbytes) {
            last = &(*ranges)[(*n_ranges)++];
            last->begin = t->offset;
            last->end = t->offset + t->nbytes;
            last->first = i;
            last->n = 0;
            ptwm_xxh3_init(&last->state);
        }
        last->n++;
    }
    return PTWM_OK;
}

static enum ptwm_status compare_hashes(const struct verification *v, const struct hashed_range *ranges, size_t n_ranges,
                                       struct ptwm_error *error)
{
    for (size_t i = 0; i < n_ranges; i++) {
        const uint64_t hash = ptwm_xxh3_digest(&ranges[i].state);
        for (size_t j = ranges[i].first; j < ranges[i].first + ranges[i].n; j++)
            if (v->order[j]->has_hash && v->order[j]->hash != hash) {
                ptwm_fail(error, PTWM_ERR_HASH, "the decoded bytes");
                ptwm_fail_at(error, (uint64_t)(v->order[j] - v->reader->manifest.tensors), v->tail.segment.offset);
                return PTWM_ERR_HASH;
            }
    }
    return PTWM_OK;
}

/* ------------------------------------------------------------------------------------------------------- segments */

/* Verifies a segment that may begin at position; its tensors are order[first .. first + n). */
static enum ptwm_status verify_segment(struct verification *v, uint64_t segment, uint64_t position, size_t first,
                                       size_t n, struct ptwm_error *error)
{
    struct hashed_range *ranges = NULL;
    size_t n_ranges = 0;
    enum ptwm_status status = ptwm_tail_read(v->reader->file, &v->reader->manifest.segments[segment],
                                             v->reader->allocator, &v->tail, error);
    if (status == PTWM_OK) {
        status = check_padding(v, position, error);
        if (status == PTWM_OK)
            status = gather_ranges(v, first, n, &ranges, &n_ranges, error);
        if (status == PTWM_OK)
            status = run_windows(v, ranges, n_ranges, error);
        if (status == PTWM_OK)
            status = compare_hashes(v, ranges, n_ranges, error);
        ptwm_release(v->reader->allocator, ranges, n, sizeof *ranges);
        ptwm_tail_release(&v->tail);
    }
    if (status != PTWM_OK && n > 0)
        ptwm_fail_at(error, (uint64_t)(v->order[first] - v->reader->manifest.tensors), PTWM_NONE);
    return status;
}

static enum ptwm_status verify_segments(struct verification *v, struct ptwm_error *error)
{
    const struct ptwm_manifest *m = &v->reader->manifest;
    uint64_t position = PTWM_HEADER_NBYTES;
    enum ptwm_status status = PTWM_OK;
    size_t first = 0;

    for (uint64_t s = 0; s < m->n_segments && status == PTWM_OK; s++) {
        size_t n = 0;
        while (first + n < v->n_order && v->order[first + n]->segment == s)
            n++;
        status = verify_segment(v, s, position, first, n, error);
        position = m->segments[s].offset + m->segments[s].stored_nbytes;
        first += n;
    }
    return status;
}

static void sort_tensors(struct verification *v)
{
    const struct ptwm_manifest *m = &v->reader->manifest;

    for (uint64_t i = 0; i < m->n_tensors; i++)
        if (m->tensors[i].segment != PTWM_NONE)
            v->order[v->n_order++] = &m->tensors[i];
    qsort(v->order, v->n_order, sizeof *v->order, compare_tensors);
}

enum ptwm_status ptwm_reader_verify(const struct ptwm_reader *reader, unsigned threads, struct ptwm_error *error)
{
    struct verification *v;
    enum ptwm_status status;

    if (reader == NULL)
        return ptwm_fail(error, PTWM_ERR_ARGUMENT, "reader");
    v = ptwm_calloc(reader->allocator, 1, sizeof *v);
    if (v == NULL)
        return ptwm_fail(error, PTWM_ERR_MEMORY, "verifying");
    v->reader = reader;
    v->context = ptwm_reader_codec_context(reader);
    v->threads = ptwm_thread_count(threads);
    v->window.allocator = reader->allocator;
    for (unsigned i = 0; i < v->threads; i++)
        ptwm_decode_scratch_init(&v->scratch[i], reader->allocator);
    v->order = ptwm_alloc(reader->allocator, reader->manifest.n_tensors, sizeof *v->order);
    if (v->order != NULL) {
        sort_tensors(v);
        status = verify_segments(v, error);
    } else {
        status = ptwm_fail(error, PTWM_ERR_MEMORY, "verifying");
    }
    ptwm_release(reader->allocator, v->order, reader->manifest.n_tensors, sizeof *v->order);
    for (unsigned i = 0; i < v->threads; i++)
        ptwm_decode_scratch_release(&v->scratch[i]);
    ptwm_bytes_release(&v->window);
    ptwm_release(reader->allocator, v, 1, sizeof *v);
    return status;
}
