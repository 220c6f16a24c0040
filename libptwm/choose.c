#include "choose.h"

#include <string.h>

#include "float_window.h"
#include "label_analyse.h"
#include "log2_fixed.h"
#include "plane.h"
#include "rest.h"
#include "status.h"
#include "symbol_set.h"
#include "trim.h"
#include "window.h"

enum {
    DEFAULT_UNIT = 512,
    MIN_UNIT = 8,
    MAX_UNIT = 4096 /* elements; longer rows are cut, so that a class can follow what changes within them */
};

/* ----------------------------------------------------------------------------------------------------- chunking */

/* The largest multiple of step that is at most limit, or 0. */
static uint64_t round_down(uint64_t limit, uint64_t step)
{
    return limit / step * step;
}

/*
 * The elements that share a class: a row, or the largest part of one that a unit may be; else 512. What has no kernels
 * anyhow, the scales of quantised weights above all, has units of rows of any length.
 */
static uint32_t choose_unit(const struct ptwm_step *label, uint64_t row, uint64_t chunk)
{
    const uint64_t limit = chunk < MAX_UNIT ? chunk : MAX_UNIT;

    if (label->width == 1 && label->bits >= 7 && row >= MIN_UNIT && row <= limit)
        return (uint32_t)row;
    if (row > 0 && row % PTWM_UNIT_GRANULE == 0)
        for (uint64_t unit = round_down(limit < row ? limit : row, PTWM_UNIT_GRANULE); unit > 0; unit -= PTWM_UNIT_GRANULE)
            if (row % unit == 0)
                return (uint32_t)unit;
    return limit < DEFAULT_UNIT ? (uint32_t)round_down(limit, PTWM_UNIT_GRANULE) : DEFAULT_UNIT;
}

/* Elements of a chunk of a label chain: whole units; whole rows and blocks of the rest packing if they fit. */
static uint64_t label_chunk_elements(uint64_t row, uint64_t unit, uint64_t limit)
{
    const uint64_t blocks = unit / ptwm_gcd(unit, 512) * 512;
    const uint64_t rows = row > 0 && row <= limit ? row / ptwm_gcd(row, unit) * unit : unit;
    const uint64_t both = rows / ptwm_gcd(rows, blocks) * blocks;

    if (both <= limit)
        return round_down(limit, both);
    return rows <= limit ? round_down(limit, rows) : round_down(limit, unit);
}

enum ptwm_status ptwm_plan_tail(const struct ptwm_encode_spec *spec, const struct ptwm_parsed_chain *chain,
                                struct ptwm_tail *tail)
{
    struct ptwm_segment_record segment = { 0, 0, 0, spec->nbytes, spec->checked ? PTWM_SEGMENT_CHECKED : 0 };
    const uint64_t granule = chain->granule_nbytes;
    uint64_t chunk_nbytes = spec->chunk_nbytes, row_nbytes = spec->row_nbytes, unit = DEFAULT_UNIT;
    enum ptwm_status status;

    if (row_nbytes % granule != 0)
        row_nbytes = 0;
    if (chain->label != NULL) {
        const uint64_t limit = ptwm_chain_n_elements(chain, chunk_nbytes), row = ptwm_chain_n_elements(chain, row_nbytes);
        unit = choose_unit(chain->label, row, limit);
        chunk_nbytes = label_chunk_elements(row, unit, limit);
        chunk_nbytes = chain->label->width == 0 ? chunk_nbytes / 2 : chunk_nbytes * chain->label->width;
    } else if (row_nbytes > 0 && row_nbytes <= chunk_nbytes) {
        chunk_nbytes = round_down(chunk_nbytes, row_nbytes);
    }
    if (round_down(chunk_nbytes, granule) > 0)
        chunk_nbytes = round_down(chunk_nbytes, granule);
    if (chunk_nbytes > spec->nbytes)
        chunk_nbytes = spec->nbytes;
    if (chunk_nbytes >= 64 << 10) /* alignment costs 31 bytes a chunk on average */
        segment.flags |= PTWM_SEGMENT_ALIGNED;
    status = ptwm_tail_init(tail, spec->context->allocator, &segment, chain, chunk_nbytes);
    if (status == PTWM_OK && chain->label != NULL)
        tail->model.unit = (uint32_t)unit;
    return status;
}

/* ---------------------------------------------------------------------------------------------------- estimates */

/* What the bytes of a plane would take with the best codec of bytes, or as they are. */
static uint64_t bytes_cost(const uint8_t *plane, size_t nbytes)
{
    uint32_t histogram[256];
    uint64_t rans, huffman, coded;

    ptwm_count_bytes(plane, nbytes, histogram);
    rans = ptwm_rans_estimate(histogram, nbytes);
    huffman = ptwm_huffman_estimate(histogram, nbytes);
    coded = huffman < rans ? huffman : rans;
    return coded < nbytes ? coded : nbytes;
}

static uint64_t plane_cost(const struct ptwm_window *w, uint64_t chunk, uint32_t p)
{
    size_t nbytes;
    const uint8_t *plane = ptwm_window_plane(w, chunk, p, &nbytes);
    uint64_t trimmed;

    switch (w->tail->chain.planes[p].kind) {
    case PTWM_PLANE_LOW:
        trimmed = ptwm_trim_nbytes(plane, nbytes / 2, w->tail->model.unit);
        return trimmed < nbytes ? trimmed : nbytes;
    case PTWM_PLANE_REST:
        return nbytes;
    case PTWM_PLANE_SYMBOL:
        return w->set != PTWM_NO_SET ? 0 : bytes_cost(plane, nbytes); /* the set's estimate covers them all */
    default:
        return bytes_cost(plane, nbytes);
    }
}

/* What n chunks' label rANS carries of their rest planes. */
static uint64_t carried_bits(const struct ptwm_parsed_chain *chain, const struct ptwm_tail *tail, uint64_t n)
{
    const uint64_t nbytes = n * tail->chunk_nbytes < tail->segment.raw_nbytes ? n * tail->chunk_nbytes : tail->segment.raw_nbytes;
    bool has_rest = false;

    for (uint32_t p = 0; p < chain->n_planes; p++)
        has_rest = has_rest || chain->planes[p].kind == PTWM_PLANE_REST;
    return has_rest ? ptwm_label_carried_bits((size_t)ptwm_chain_n_elements(chain, nbytes), tail->model.unit) : 0;
}

/* Adds the cost of the first n chunks' planes, which are split off. */
static enum ptwm_status add_planes_cost(const struct ptwm_encode_spec *spec, struct ptwm_tail *tail, uint64_t n,
                                        uint64_t *cost_nbytes, struct ptwm_error *error)
{
    struct ptwm_window window;
    enum ptwm_status status;

    ptwm_window_init(&window, spec, tail);
    status = ptwm_window_fill(&window, 0, n, error);
    if (status == PTWM_OK && window.set != PTWM_NO_SET)
        *cost_nbytes += (window.symbols_cost_bits - carried_bits(&tail->chain, tail, n)) / 8;
    for (uint64_t i = 0; i < n && status == PTWM_OK; i++)
        for (uint32_t p = 0; p < tail->chain.n_planes; p++)
            *cost_nbytes += plane_cost(&window, i, p);
    ptwm_window_release(&window);
    return status;
}

/* The same without splitting: of labels and rests alone. *fits: as in ptwm_float_window_fill. */
static enum ptwm_status add_labels_cost(const struct ptwm_encode_spec *spec, struct ptwm_tail *tail, uint64_t n,
                                        uint64_t *cost_nbytes, bool *fits, struct ptwm_error *error)
{
    struct ptwm_float_window window;
    enum ptwm_status status;

    ptwm_float_window_init(&window, spec, tail, &spec->memory[0]);
    status = ptwm_float_window_fill(&window, 0, n, fits, error);
    if (status == PTWM_OK && *fits)
        *cost_nbytes += window.symbols_cost_bits / 8;
    for (uint64_t i = 0; i < n && status == PTWM_OK && *fits; i++)
        *cost_nbytes += ptwm_rest_nbytes(ptwm_float_chunk_elements(&window, i), ptwm_float_rest_bits(window.kind));
    ptwm_float_window_release(&window, &spec->memory[0]);
    return status;
}

enum ptwm_status ptwm_estimate_chain(const struct ptwm_encode_spec *spec, const struct ptwm_parsed_chain *chain,
                                     uint64_t *cost_nbytes, struct ptwm_error *error)
{
    const enum ptwm_float_kind kind = ptwm_float_kind_of(chain);
    enum ptwm_status status = PTWM_OK;
    struct ptwm_tail tail;
    bool fits = false;
    uint64_t n;

    if (ptwm_plan_tail(spec, chain, &tail) != PTWM_OK)
        return ptwm_fail(error, PTWM_ERR_MEMORY, "a segment");
    n = ptwm_window_max_chunks(&tail);
    if (n > tail.n_chunks)
        n = tail.n_chunks;
    *cost_nbytes = n * chain->n_planes * (spec->checked ? 8 : 4); /* in the chunk table */
    if (kind != PTWM_FLOAT_NONE && ptwm_float_n_low(kind) == 0 && ptwm_has_float_windows(spec))
        status = add_labels_cost(spec, &tail, n, cost_nbytes, &fits, error);
    if (status == PTWM_OK && !fits)
        status = add_planes_cost(spec, &tail, n, cost_nbytes, error);
    ptwm_tail_release(&tail);
    return status;
}
