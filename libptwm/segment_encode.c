#include "segment_encode.h"

#include <errno.h>
#include <string.h>

#include "choose.h"
#include "float_encode.h"
#include "plane.h"
#include "status.h"
#include "threads.h"
#include "window.h"

enum {
    TRY_ALL_NBYTES = 64 << 10, /* below this, trying costs little and estimates are off by the most */
    SAMPLE_NBYTES = 720720,    /* a multiple of all widths up to 16, and so of all granules of one step */
    THOROUGH_LEVEL = 10,       /* of effort: from here on everything is tried on everything */
    TOLERANCE = 1000,          /* of the size */
    MANY_NBYTES = 4 << 20,     /* from here on a sample of integers has to do */
    PROBES = 4,
    MIN_PROBED_NBYTES = 8 << 10,
    PROBE_NBYTES = 32 << 10,
    PIECES = 16,
    PIECE_NBYTES = 64 << 10,
    TRIVIAL_SHARE = 256,       /* data that shrinks to so small a part has larger chunks */
    TRIVIAL_CHUNK_NBYTES = 16 << 20
};

/* A segment that is being encoded with one chain. */
struct encoding {
    const struct ptwm_encode_spec *spec;
    bool try_zstd;
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
    struct ptwm_plane_plan plan = { e->spec->method, e->try_zstd, e->window.set, NULL, 0, NULL, NULL };
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

static enum ptwm_status encode_chunk(void *context, size_t task, size_t slot, unsigned worker, struct ptwm_error *error)
{
    struct encoding *e = context;
    const uint64_t chunk = first_chunk(e) + task;
    struct ptwm_plane_record *records = ptwm_tail_chunk_planes(&e->tail, chunk);
    struct ptwm_bytes *stored = stored_at(e, slot);

    stored->nbytes = 0;
    if (e->is_fast)
        return ptwm_float_encode_chunk(&e->fast, chunk, &e->spec->memory[worker].scratch, stored, records, error);
    return encode_planes(e, chunk, stored, records, error);
}

/* Writes and places a chunk. */
static enum ptwm_status write_chunk(void *context, size_t task, size_t slot, struct ptwm_error *error)
{
    static const uint8_t zeros[PTWM_SEGMENT_ALIGNMENT];
    struct encoding *e = context;
    const struct ptwm_bytes *stored = stored_at(e, slot);
    const uint64_t begin = ptwm_chunk_position(e->position, e->tail.segment.flags);
    enum ptwm_status status = ptwm_output_write(e->output, zeros, (size_t)(begin - e->position), error);

    if (status == PTWM_OK)
        status = ptwm_output_write(e->output, stored->data, stored->nbytes, error);
    e->tail.chunk_offset[first_chunk(e) + task] = begin;
    e->position = begin + stored->nbytes;
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
 * as fast may be a thousandth larger, where the sample is that exact, which it is not for bytes.
 */
static bool beats_rival(const struct encoding *e)
{
    const struct ptwm_sampled_choice *rival = e->rival;
    const int64_t n = (int64_t)e->fast.n, n_sampled = (int64_t)rival->n_elements;
    const unsigned width = ptwm_float_width(e->fast.kind);
    const int64_t loss = (int64_t)e->fast.symbols_cost_bits - (int64_t)e->fast.entropy_bits;
    const int64_t heads = (int64_t)(ptwm_ceil_div(e->fast.n * width, e->tail.chunk_nbytes) * rival->head_bits);
    const int64_t price = width > 1 ? (int64_t)rival->rival_bits / TOLERANCE * n / n_sampled : 0;

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
    /* A thread alone writes each chunk while it is in the cache. */
    const size_t n_slots = e->spec->threads > 1 ? 2 * (size_t)e->spec->threads : 1;
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
            status = ptwm_parallel_in_order((size_t)n, n_slots, e->spec->threads, encode_chunk, write_chunk, e, error);
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

/* Whether there is a fast way: one label step of floats, coded with label rANS, and nothing else to be tried. */
static bool has_fast_way(const struct ptwm_encode_spec *spec, bool try_zstd)
{
    return !spec->plain && !spec->no_labels && !try_zstd &&
           (spec->method == PTWM_METHOD_MICROSCALE || spec->method == PTWM_METHOD_RANS);
}

static enum ptwm_status begin_encoding(struct encoding *e, const struct ptwm_encode_spec *spec,
                                       const struct ptwm_parsed_chain *chain, bool try_zstd, struct ptwm_output *output)
{
    memset(e, 0, sizeof *e);
    e->spec = spec;
    e->try_zstd = try_zstd;
    e->output = output;
    if (ptwm_plan_tail(spec, chain, &e->tail) != PTWM_OK)
        return PTWM_ERR_MEMORY;
    ptwm_window_init(&e->window, spec, &e->tail);
    ptwm_float_window_init(&e->fast, spec, &e->tail, &spec->memory[0]);
    if (!has_fast_way(spec, try_zstd))
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

/*
 * Encodes with one chain. If rival is not NULL, *is_beaten tells whether other chains promise to be better; then
 * nothing has been written.
 */
static enum ptwm_status encode_with(const struct ptwm_encode_spec *spec, const struct ptwm_parsed_chain *chain,
                                    bool try_zstd, const struct ptwm_sampled_choice *rival, bool *is_beaten,
                                    struct ptwm_output *output, struct ptwm_segment_record *record,
                                    struct ptwm_error *error)
{
    struct encoding e;
    enum ptwm_status status = begin_encoding(&e, spec, chain, try_zstd, output);

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

/* What encoding with a chain gives: its length, and for small data, if it has been encoded, the result itself. */
struct result {
    uint64_t nbytes;
    struct ptwm_bytes encoded; /* nothing if the result has not been kept */
    struct ptwm_segment_record record;
};

static int discard(void *context, const void *data, size_t nbytes)
{
    (void)context;
    (void)data;
    (void)nbytes;
    return 0;
}

static int append(void *context, const void *data, size_t nbytes)
{
    return ptwm_bytes_append(context, data, nbytes) == PTWM_OK ? 0 : ENOMEM;
}

/* Finds out, or estimates, what encoding with a chain gives. */
typedef enum ptwm_status (*measure_fn)(const struct ptwm_encode_spec *spec, const struct ptwm_parsed_chain *chain,
                                       bool try_zstd, struct result *result, struct ptwm_error *error);

/* By encoding. */
static enum ptwm_status try_chain(const struct ptwm_encode_spec *spec, const struct ptwm_parsed_chain *chain,
                                  bool try_zstd, struct result *result, struct ptwm_error *error)
{
    const bool keeps = spec->nbytes <= TRY_ALL_NBYTES;
    const struct ptwm_sink sink = { keeps ? append : discard, &result->encoded };
    struct ptwm_output *output;
    enum ptwm_status status = ptwm_output_open_sink(&sink, spec->context->allocator, &output, error);

    if (status != PTWM_OK)
        return status;
    result->encoded.nbytes = 0;
    status = encode_with(spec, chain, try_zstd, NULL, NULL, output, &result->record, error);
    if (status == PTWM_OK)
        result->nbytes = result->record.stored_nbytes;
    ptwm_output_close(output);
    return status;
}

/* By statistics of the first window. */
static enum ptwm_status estimate_chain(const struct ptwm_encode_spec *spec, const struct ptwm_parsed_chain *chain,
                                       bool try_zstd, struct result *result, struct ptwm_error *error)
{
    (void)try_zstd;
    return ptwm_estimate_chain(spec, chain, &result->nbytes, error);
}

/* A way to encode: a chain, and whether its symbols are left to the codecs of bytes. */
struct way {
    size_t chain;
    bool no_labels;
    struct result result;
};

/*
 * Whether the symbols of a chain may be better off without labels: where there are so few that the tables and the
 * lanes' states of label rANS cost more than it gives.
 */
static bool may_go_without_labels(const struct ptwm_encode_spec *spec, const struct ptwm_parsed_chain *chain)
{
    return spec->method == PTWM_METHOD_MICROSCALE && chain->label != NULL && chain->label->bits <= 8 &&
           (spec->nbytes <= PTWM_FEW_NBYTES || spec->chunk_nbytes <= PTWM_FEW_NBYTES);
}

/*
 * Whether zstd makes pieces of the bytes smaller than coding each byte by its frequency does, those of each place in an element
 * of width bytes by themselves. Where it does not, as with weights, its attempts would be most of the encoding.
 */
static enum ptwm_status zstd_may_help(const struct ptwm_encode_spec *spec, unsigned width, bool *helps,
                                      struct ptwm_error *error)
{
    const uint64_t n = spec->nbytes / width;
    const size_t probe_nbytes = n < PROBE_NBYTES ? (size_t)n : PROBE_NBYTES;
    const size_t n_probes = n > PROBE_NBYTES ? PROBES : 1, bound = ptwm_codec_zstd.bound(PROBE_NBYTES);
    uint8_t *probe = ptwm_alloc(spec->context->allocator, PROBE_NBYTES + bound, 1);
    uint64_t total = 0;
    enum ptwm_status status = PTWM_OK;

    *helps = false;
    if (probe == NULL)
        return ptwm_fail(error, PTWM_ERR_MEMORY, "a sample");
    for (size_t i = 0; i < n_probes * width && status == PTWM_OK && !*helps; i++) {
        const uint64_t first = n_probes > 1 ? (n - probe_nbytes) * (i / width) / (n_probes - 1) : 0;
        const uint8_t *from = spec->data + first * width + i % width;
        uint32_t histogram[256] = { 0 };
        uint64_t by_frequency;
        size_t nbytes;
        for (size_t k = 0; k < probe_nbytes; k++) {
            probe[k] = from[k * width];
            histogram[probe[k]]++;
        }
        by_frequency = ptwm_huffman_estimate(histogram, probe_nbytes);
        by_frequency = by_frequency < probe_nbytes ? by_frequency : probe_nbytes;
        total += by_frequency;
        if (n_probes > 1) /* of much data a little is not worth it */
            by_frequency -= by_frequency / 64;
        status = ptwm_codec_zstd.encode(spec->context, probe + PROBE_NBYTES, &nbytes, probe, probe_nbytes, error);
        *helps = status == PTWM_OK && nbytes < by_frequency;
    }
    /* No weights are that alike: zstd may find something in other planes, too. */
    *helps = *helps || total < n_probes * width * (uint64_t)probe_nbytes / 2;
    ptwm_release(spec->context->allocator, probe, PROBE_NBYTES + bound, 1);
    return status;
}

/* Finds the way whose result is the smallest, by that measure. */
static enum ptwm_status find_best_way(const struct ptwm_encode_spec *spec, measure_fn measure, bool try_zstd,
                                      struct way *best, struct ptwm_error *error)
{
    struct result result = { 0, { spec->context->allocator, NULL, 0, 0 }, best->result.record };
    enum ptwm_status status = PTWM_OK;

    if (spec->n_chains == 1 && !may_go_without_labels(spec, &spec->chains[0]))
        return PTWM_OK;
    best->result.nbytes = UINT64_MAX;
    for (size_t i = 0; i < 2 * spec->n_chains && status == PTWM_OK; i++) {
        const struct ptwm_parsed_chain *chain = &spec->chains[i / 2];
        struct ptwm_encode_spec variant = *spec;
        variant.no_labels = i % 2 != 0;
        if (variant.no_labels && !may_go_without_labels(spec, chain))
            continue;
        if (spec->method == PTWM_METHOD_MICROSCALE && !spec->chains_are_callers && !ptwm_chain_is_promising(spec, chain))
            continue;
        status = measure(&variant, chain, try_zstd, &result, error);
        if (status == PTWM_OK && result.nbytes < best->result.nbytes) {
            const struct result other = best->result;
            best->chain = i / 2;
            best->no_labels = variant.no_labels;
            best->result = result;
            result = other;
        }
    }
    ptwm_bytes_release(&result.encoded);
    return status;
}

/* Writes a segment that has been encoded. */
static enum ptwm_status write_result(const struct result *result, struct ptwm_output *output,
                                     struct ptwm_segment_record *record, struct ptwm_error *error)
{
    enum ptwm_status status = ptwm_segment_pad(output, result->record.flags, error);

    *record = result->record;
    record->offset = ptwm_output_position(output);
    if (status == PTWM_OK)
        status = ptwm_output_write(output, result->encoded.data, result->encoded.nbytes, error);
    return status;
}

/*
 * The same for much data, from pieces of it: the best way if it was no longer than they are, though best->result.nbytes is
 * what all would give. *zstd_helps: whether zstd has a part in that.
 */
static enum ptwm_status find_way_by_pieces(const struct ptwm_encode_spec *spec, bool try_zstd, struct way *best,
                                           bool *zstd_helps, struct ptwm_error *error)
{
    /* Whole rows, if they are short, and whole elements. */
    const uint64_t step = spec->row_nbytes > 0 && spec->row_nbytes <= PIECE_NBYTES / 8 ? 8 * spec->row_nbytes : 8;
    const size_t piece = (size_t)(PIECE_NBYTES / step * step);
    struct ptwm_encode_spec pieces = *spec;
    struct result without = { 0, { spec->context->allocator, NULL, 0, 0 }, { 0 } };
    uint8_t *data = ptwm_alloc(spec->context->allocator, PIECES, piece);
    enum ptwm_status status;

    if (data == NULL)
        return ptwm_fail(error, PTWM_ERR_MEMORY, "a sample");
    for (size_t i = 0; i < PIECES; i++) /* none at the ends, which are often unlike the rest */
        memcpy(data + i * piece, spec->data + (spec->nbytes * (2 * i + 1) / (2 * PIECES) - piece / 2) / step * step, piece);
    pieces.data = data;
    pieces.nbytes = PIECES * piece;
    status = find_best_way(&pieces, try_chain, try_zstd, best, error);
    *zstd_helps = try_zstd;
    if (status == PTWM_OK && try_zstd) {
        pieces.no_labels = best->no_labels;
        status = try_chain(&pieces, &spec->chains[best->chain], false, &without, error);
        *zstd_helps = best->result.nbytes < without.nbytes - without.nbytes / TOLERANCE;
    }
    if (best->result.nbytes < UINT64_MAX)
        best->result.nbytes *= spec->nbytes / pieces.nbytes;
    ptwm_release(spec->context->allocator, data, PIECES, piece);
    return status;
}

/*
 * Encodes floats with their label chain, if that turns out to be the best by a sample and then by the first window's
 * model: then *is_done. Else finds the way that is the best.
 */
static enum ptwm_status encode_floats(const struct ptwm_encode_spec *spec, struct way *best, bool *is_done,
                                      struct ptwm_output *output, struct ptwm_segment_record *record,
                                      struct ptwm_error *error)
{
    struct ptwm_sampled_choice choice = { 0 };
    const bool is_sampled = ptwm_sample_chains(spec, &choice);
    enum ptwm_status status = PTWM_OK;
    bool is_beaten = true;

    if (is_sampled && !choice.is_hopeless) {
        status = encode_with(spec, &spec->chains[choice.label], false, &choice, &is_beaten, output, record, error);
        *is_done = status != PTWM_OK || !is_beaten;
        if (*is_done)
            return status;
    }
    /* Of bytes a sample does not show what the classes of rows gain. */
    if (!is_sampled || spec->nbytes <= PTWM_FEW_NBYTES || ptwm_float_width(ptwm_float_kind_of(&spec->chains[0])) == 1)
        return find_best_way(spec, estimate_chain, false, best, error);
    best->chain = choice.rival;
    return PTWM_OK;
}

bool ptwm_asks_for_repetition(enum ptwm_method method, uint64_t nbytes, const struct ptwm_parsed_chain *chain)
{
    return method == PTWM_METHOD_MICROSCALE && nbytes > TRY_ALL_NBYTES && chain->label != NULL;
}

static bool is_repetitive(const struct ptwm_encode_spec *spec)
{
    return spec->repetition == PTWM_REPETITION_UNKNOWN
               ? ptwm_is_repetitive(spec->data, spec->nbytes, spec->chunk_nbytes)
               : spec->repetition == PTWM_REPETITION_FOUND;
}

enum ptwm_status ptwm_segment_encode(const struct ptwm_encode_spec *spec, struct ptwm_output *output,
                                     struct ptwm_segment_record *record, struct ptwm_error *error)
{
    const bool chosen = spec->method == PTWM_METHOD_MICROSCALE;
    const bool thorough = chosen && spec->context->level >= THOROUGH_LEVEL;
    /* Types whose first chain has no model are the ones in which zstd finds something: integers, masks, text. */
    const bool suspicious =
        chosen &&
        (thorough || !ptwm_asks_for_repetition(spec->method, spec->nbytes, &spec->chains[0]) || is_repetitive(spec));
    const bool by_type = suspicious && !thorough && spec->chains[0].label == NULL && !spec->chains_are_callers;
    const unsigned width = ptwm_float_width(ptwm_float_kind_of(&spec->chains[0]));
    bool try_zstd = suspicious && ptwm_zstd_is_available(spec->context->zstd);
    struct ptwm_encode_spec variant = *spec, sample = *spec;
    struct way best = { 0, false, { UINT64_MAX, { spec->context->allocator, NULL, 0, 0 }, { 0 } } };
    enum ptwm_status status = PTWM_OK;
    bool is_done = false;

    if (try_zstd && by_type && spec->nbytes > TRY_ALL_NBYTES)
        status = zstd_may_help(spec, 1, &try_zstd, error);
    else if (try_zstd && !thorough && !spec->chains_are_callers && width > 0 && spec->nbytes >= MIN_PROBED_NBYTES &&
             spec->nbytes <= TRY_ALL_NBYTES)
        status = zstd_may_help(spec, width, &try_zstd, error);
    if (status != PTWM_OK)
        return status;
    if (!chosen || suspicious || spec->chains_are_callers) {
        if (by_type && spec->nbytes >= MANY_NBYTES)
            status = find_way_by_pieces(spec, try_zstd, &best, &try_zstd, error);
        else
            status = find_best_way(spec, try_chain, try_zstd, &best, error);
        /* One row over and over: what each chunk says once would be most of the file. */
        if (status == PTWM_OK && chosen && spec->chunk_nbytes == PTWM_DEFAULT_CHUNK_NBYTES &&
            spec->nbytes > spec->chunk_nbytes && best.result.nbytes < spec->nbytes / TRIVIAL_SHARE) {
            variant.chunk_nbytes = TRIVIAL_CHUNK_NBYTES;
            status = find_best_way(&variant, try_chain, try_zstd, &best, error);
        }
    } else if (spec->chunk_nbytes < TRY_ALL_NBYTES) { /* of small chunks estimates know too little */
        sample.nbytes = spec->nbytes < SAMPLE_NBYTES ? spec->nbytes : SAMPLE_NBYTES;
        status = find_best_way(&sample, try_chain, false, &best, error);
    } else {
        status = encode_floats(spec, &best, &is_done, output, record, error);
    }
    variant.no_labels = best.no_labels;
    if (status == PTWM_OK && !is_done)
        status = best.result.encoded.nbytes > 0
                     ? write_result(&best.result, output, record, error)
                     : encode_with(&variant, &spec->chains[best.chain], try_zstd, NULL, NULL, output, record, error);
    ptwm_bytes_release(&best.result.encoded);
    return status;
}

enum ptwm_status ptwm_segment_pad(struct ptwm_output *output, uint32_t flags, struct ptwm_error *error)
{
    static const uint8_t zeros[PTWM_SEGMENT_ALIGNMENT];
    const uint64_t position = ptwm_output_position(output);
    return ptwm_output_write(output, zeros, (size_t)(ptwm_segment_position(position, flags) - position), error);
}
