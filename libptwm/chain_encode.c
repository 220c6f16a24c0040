#include "chain_encode.h"

#include <string.h>

#include "float_encode.h"
#include "plane.h"
#include "status.h"
#include "threads.h"
#include "window.h"

/* The share of the size that the fast way may cost; of bytes, where the whole of an element is one symbol for rivals, half. */
enum { TOLERANCE = 1000 };

/* A segment that is being encoded with one chain. */
struct encoding {
    const struct ptwm_encode_spec *spec;
    enum ptwm_zstd_use zstd;
    struct ptwm_tail tail;
    struct ptwm_window window;
    struct ptwm_float_window fast;
    const struct ptwm_sampled_choice *rival; /* NULL, or what the first window's model has to be better than */
    bool is_beaten;                     /* it was not: nothing has been written */
    bool is_fast;                       /* of the present window: it is in fast, not in window */
    struct ptwm_output *output;
    uint64_t position;                  /* behind the chunks written so far, from the segment's start */
};

/* ------------------------------------------------------------------------------------------------------- chunks */

/* Takes what the symbol plane carries out of the rest plane before it, which begins at begin. */
static void drop_carried(struct ptwm_bytes *stored, size_t begin, size_t n_carried, struct ptwm_plane_record *rest)
{
    memmove(stored->data + begin, stored->data + begin + n_carried, stored->nbytes - begin - n_carried);
    stored->nbytes -= n_carried;
    rest->codec = PTWM_CODEC_CARRIED;
    rest->stored_nbytes -= (uint32_t)n_carried;
    rest->crc = ptwm_crc32c(0, stored->data + begin, rest->stored_nbytes);
}

static enum ptwm_status encode_planes(struct encoding *e, uint64_t chunk, struct ptwm_bytes *stored,
                                      struct ptwm_plane_record *records, struct ptwm_error *error)
{
    struct ptwm_plane_plan plan = { e->spec->method, e->zstd, e->window.set, NULL, 0, NULL, NULL };
    enum ptwm_status status = PTWM_OK;
    size_t n_carried = 0, rest_begin = 0;

    if (e->window.set != PTWM_NO_SET) {
        plan.classes = ptwm_window_classes(&e->window, chunk);
        plan.first_element = ptwm_tail_first_element(&e->tail, chunk);
        plan.symbols = ptwm_window_symbols(&e->window, chunk);
    }
    for (uint32_t p = 0; p < e->tail.chain.n_planes && status == PTWM_OK; p++) {
        size_t nbytes;
        const uint8_t *plane = ptwm_window_plane(&e->window, chunk, p, &nbytes);
        const size_t begin = stored->nbytes;
        status = ptwm_plane_encode(&e->tail, p, &plan, e->spec->context, plane, nbytes, stored, &records[p], error);
        if (e->tail.chain.planes[p].kind == PTWM_PLANE_REST && records[p].codec == PTWM_CODEC_IDENTITY) {
            const uint64_t n = ptwm_chain_n_elements(&e->tail.chain, ptwm_tail_chunk_nbytes(&e->tail, chunk));
            n_carried = ptwm_label_n_carried(plane, nbytes, (size_t)n, e->tail.model.unit);
            plan.carried = n_carried > 0 ? plane : NULL;
            rest_begin = begin;
        }
    }
    if (status == PTWM_OK && n_carried > 0 && records[e->tail.chain.n_planes - 1].codec == PTWM_CODEC_LABEL_RANS)
        drop_carried(stored, rest_begin, n_carried, &records[e->tail.chain.n_planes - 2]);
    return status;
}

static uint64_t first_chunk(const struct encoding *e)
{
    return e->is_fast ? e->fast.first_chunk : e->window.first_chunk;
}

/* The memory of a chunk's result: each thread has two. */
static struct ptwm_bytes *stored_at(const struct encoding *e, size_t slot)
{
    return &e->spec->memory[slot / 2].stored[slot % 2];
}

static enum ptwm_status encode_chunk_into(struct encoding *e, uint64_t chunk, unsigned worker,
                                          struct ptwm_bytes *stored, struct ptwm_error *error)
{
    struct ptwm_plane_record *records = ptwm_tail_chunk_planes(&e->tail, chunk);

    if (e->is_fast)
        return ptwm_float_encode_chunk(&e->fast, chunk, &e->spec->memory[worker].scratch, stored, records, error);
    return encode_planes(e, chunk, stored, records, error);
}

static enum ptwm_status encode_chunk(void *context, size_t task, size_t slot, unsigned worker, struct ptwm_error *error)
{
    struct encoding *e = context;
    struct ptwm_bytes *stored = stored_at(e, slot);

    stored->nbytes = 0;
    if (e->is_fast && ptwm_bytes_reserve(stored, ptwm_float_chunk_nbytes(&e->fast)) != PTWM_OK)
        return ptwm_fail(error, PTWM_ERR_MEMORY, "a chunk");
    return encode_chunk_into(e, first_chunk(e) + task, worker, stored, error);
}

/* Moves on to where a chunk is to begin. */
static enum ptwm_status pad_chunk(struct encoding *e, struct ptwm_error *error)
{
    static const uint8_t zeros[PTWM_SEGMENT_ALIGNMENT];
    const uint64_t begin = ptwm_chunk_position(e->position, e->tail.segment.flags);
    enum ptwm_status status = ptwm_output_write(e->output, zeros, (size_t)(begin - e->position), error);

    e->position = begin;
    return status;
}

/* Notes that a chunk is where the output has come to. */
static void place_chunk(struct encoding *e, uint64_t chunk, size_t nbytes)
{
    e->tail.chunk_offset[chunk] = e->position;
    e->position += nbytes;
}

static enum ptwm_status write_chunk(void *context, size_t task, size_t slot, struct ptwm_error *error)
{
    struct encoding *e = context;
    const struct ptwm_bytes *stored = stored_at(e, slot);
    enum ptwm_status status = pad_chunk(e, error);

    if (status == PTWM_OK)
        status = ptwm_output_write(e->output, stored->data, stored->nbytes, error);
    place_chunk(e, first_chunk(e) + task, stored->nbytes);
    return status;
}

/* Memory of the output's that is not to be released where it was too little. */
struct room {
    const struct ptwm_allocator *other; /* for what it is replaced by */
    const uint8_t *data;
};

static void *room_alloc(void *context, size_t nbytes)
{
    const struct room *room = context;
    return room->other->alloc(room->other->context, nbytes);
}

static void room_release(void *context, void *pointer, size_t nbytes)
{
    const struct room *room = context;
    if (pointer != room->data)
        room->other->release(room->other->context, pointer, nbytes);
}

/* Encodes a chunk where it is to lie, in nbytes bytes of the output's. */
static enum ptwm_status encode_in_room(struct encoding *e, uint64_t chunk, uint8_t *data, size_t nbytes,
                                       struct ptwm_error *error)
{
    struct room room = { e->spec->context->allocator, data };
    const struct ptwm_allocator allocator = { room_alloc, room_release, &room };
    struct ptwm_bytes stored = { &allocator, data, 0, nbytes };
    enum ptwm_status status = encode_chunk_into(e, chunk, 0, &stored, error);

    if (status == PTWM_OK && stored.data == data)
        ptwm_output_advance(e->output, stored.nbytes);
    else if (status == PTWM_OK)
        status = ptwm_output_write(e->output, stored.data, stored.nbytes, error);
    place_chunk(e, chunk, stored.nbytes);
    ptwm_bytes_release(&stored);
    return status;
}

/* A thread alone writes each chunk while it is in the cache, or encodes it in place if the output is memory. */
static enum ptwm_status encode_in_turn(struct encoding *e, uint64_t n, struct ptwm_error *error)
{
    enum ptwm_status status = PTWM_OK;

    for (size_t i = 0; i < n && status == PTWM_OK; i++) {
        size_t room_nbytes = 0;
        uint8_t *room = NULL;

        status = pad_chunk(e, error);
        if (status == PTWM_OK && e->is_fast)
            room = ptwm_output_room(e->output, ptwm_float_chunk_nbytes(&e->fast), &room_nbytes);
        if (room != NULL) {
            status = encode_in_room(e, first_chunk(e) + i, room, room_nbytes, error);
            continue;
        }
        if (status == PTWM_OK)
            status = encode_chunk(e, i, 0, 0, error);
        if (status == PTWM_OK)
            status = write_chunk(e, i, 0, error);
    }
    return status;
}

/* Prepares the window of n chunks from first on, the fast way if there is one. */
static enum ptwm_status fill_window(struct encoding *e, uint64_t first, uint64_t n, struct ptwm_error *error)
{
    e->is_fast = false;
    if (e->fast.kind != PTWM_FLOAT_NONE) {
        enum ptwm_status status = ptwm_float_window_fill(&e->fast, first, n, &e->is_fast, error);
        if (status != PTWM_OK || e->is_fast)
            return status;
    }
    return ptwm_window_fill(&e->window, first, n, error);
}

/*
 * Whether the first window's classes gain more than other chains have in advance, or nearly so: what decodes several times
 * as fast may be a little larger.
 */
static bool beats_rival(const struct encoding *e)
{
    const struct ptwm_sampled_choice *rival = e->rival;
    const int64_t n = (int64_t)e->fast.n, n_sampled = (int64_t)rival->n_elements;
    const unsigned width = ptwm_float_width(e->fast.kind);
    const int64_t loss = (int64_t)e->fast.symbols_cost_bits - (int64_t)e->fast.entropy_bits;
    const int64_t heads = (int64_t)(ptwm_ceil_div(e->fast.n * width, e->tail.chunk_nbytes) * rival->head_bits);
    const int64_t price = (int64_t)rival->rival_bits / (width > 1 ? TOLERANCE : 2 * TOLERANCE) * n / n_sampled;

    return e->is_fast && loss + rival->advantage_bits * n / n_sampled <= heads + price;
}

/* Makes room for the segment's beginning and remembers where that is. */
static enum ptwm_status begin_segment(struct encoding *e, struct ptwm_error *error)
{
    enum ptwm_status status = ptwm_segment_pad(e->output, e->tail.segment.flags, error);

    e->tail.segment.offset = ptwm_output_position(e->output);
    return status;
}

static enum ptwm_status encode_windows(struct encoding *e, struct ptwm_error *error)
{
    const uint64_t step = ptwm_window_max_chunks(&e->tail);
    const unsigned threads = e->spec->threads;
    enum ptwm_status status = PTWM_OK;

    for (uint64_t i = 0; i < e->tail.n_chunks && status == PTWM_OK; i += step) {
        const uint64_t n = e->tail.n_chunks - i < step ? e->tail.n_chunks - i : step;
        status = fill_window(e, i, n, error);
        if (status == PTWM_OK && i == 0 && e->rival != NULL && !beats_rival(e)) {
            e->is_beaten = true;
            break;
        }
        if (status == PTWM_OK && i == 0)
            status = begin_segment(e, error);
        if (status == PTWM_OK)
            status = threads > 1 ? ptwm_parallel_in_order((size_t)n, 2 * (size_t)threads, threads, encode_chunk,
                                                          write_chunk, e, error)
                                 : encode_in_turn(e, n, error);
    }
    return status;
}

static enum ptwm_status write_tail(struct encoding *e, struct ptwm_segment_record *record, struct ptwm_error *error)
{
    struct ptwm_bytes bytes = { e->spec->context->allocator, NULL, 0, 0 };
    enum ptwm_status status = ptwm_tail_write(&e->tail, &bytes);

    if (status != PTWM_OK)
        status = ptwm_fail(error, status, "a segment's tail");
    else
        status = ptwm_output_write(e->output, bytes.data, bytes.nbytes, error);
    *record = e->tail.segment;
    record->tail_nbytes = bytes.nbytes;
    record->stored_nbytes = e->position + bytes.nbytes;
    ptwm_bytes_release(&bytes);
    return status;
}

/* ------------------------------------------------------------------------------------------------------- chains */

static enum ptwm_status begin_encoding(struct encoding *e, const struct ptwm_encode_spec *spec,
                                       const struct ptwm_parsed_chain *chain, enum ptwm_zstd_use zstd,
                                       struct ptwm_output *output)
{
    memset(e, 0, sizeof *e);
    e->spec = spec;
    e->zstd = zstd;
    e->output = output;
    if (ptwm_plan_tail(spec, chain, &e->tail) != PTWM_OK)
        return PTWM_ERR_MEMORY;
    ptwm_window_init(&e->window, spec, &e->tail);
    ptwm_float_window_init(&e->fast, spec, &e->tail, &spec->memory[0]);
    if (zstd != PTWM_ZSTD_NOWHERE || !ptwm_has_float_windows(spec)) /* all else has to be tried */
        e->fast.kind = PTWM_FLOAT_NONE;
    return PTWM_OK;
}

static void end_encoding(struct encoding *e)
{
    if (e->fast.spec != NULL)
        ptwm_float_window_release(&e->fast, &e->spec->memory[0]);
    if (e->window.spec != NULL)
        ptwm_window_release(&e->window);
    if (e->tail.allocator != NULL)
        ptwm_tail_release(&e->tail);
}

enum ptwm_status ptwm_chain_encode(const struct ptwm_encode_spec *spec, const struct ptwm_parsed_chain *chain,
                                   enum ptwm_zstd_use zstd, const struct ptwm_sampled_choice *rival, bool *is_beaten,
                                   struct ptwm_output *output, struct ptwm_segment_record *record,
                                   struct ptwm_error *error)
{
    struct encoding e;
    enum ptwm_status status = begin_encoding(&e, spec, chain, zstd, output);

    e.rival = rival;
    if (status != PTWM_OK)
        status = ptwm_fail(error, status, "a segment");
    if (status == PTWM_OK)
        status = encode_windows(&e, error);
    if (status == PTWM_OK && !e.is_beaten)
        status = write_tail(&e, record, error);
    if (is_beaten != NULL)
        *is_beaten = e.is_beaten;
    end_encoding(&e);
    return status;
}
