#include "choose.h"

#include <string.h>

#include "float_split.h"
#include "log2_fixed.h"
#include "plane.h"
#include "status.h"
#include "trim.h"
#include "window.h"

enum {
    DEFAULT_UNIT = 512,
    MAX_UNIT = 4096 /* elements; longer rows are cut, so that a class can follow what changes within them */
};

/* ----------------------------------------------------------------------------------------------------- chunking */

static uint64_t gcd(uint64_t a, uint64_t b)
{
    while (b != 0) {
        uint64_t t = a % b;
        a = b;
        b = t;
    }
    return a;
}

/* The largest multiple of step that is at most limit, or 0. */
static uint64_t round_down(uint64_t limit, uint64_t step)
{
    return limit / step * step;
}

/* The elements that share a class: a row, or the largest part of one that a unit may be; else 512. */
static uint32_t choose_unit(uint64_t row, uint64_t chunk)
{
    const uint64_t limit = chunk < MAX_UNIT ? chunk : MAX_UNIT;

    if (row > 0 && row % PTWM_UNIT_GRANULE == 0)
        for (uint64_t unit = round_down(limit < row ? limit : row, PTWM_UNIT_GRANULE); unit > 0; unit -= PTWM_UNIT_GRANULE)
            if (row % unit == 0)
                return (uint32_t)unit;
    return limit < DEFAULT_UNIT ? (uint32_t)round_down(limit, PTWM_UNIT_GRANULE) : DEFAULT_UNIT;
}

/* Elements of a chunk of a label chain: whole units; whole rows and blocks of the rest packing if they fit. */
static uint64_t label_chunk_elements(uint64_t row, uint64_t unit, uint64_t limit)
{
    const uint64_t blocks = unit / gcd(unit, 512) * 512;
    const uint64_t rows = row > 0 && row <= limit ? row / gcd(row, unit) * unit : unit;
    const uint64_t both = rows / gcd(rows, blocks) * blocks;

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
        unit = choose_unit(row, limit);
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
    uint32_t histogram[256] = { 0 };
    uint64_t rans, huffman, coded;

    for (size_t i = 0; i < nbytes; i++)
        histogram[plane[i]]++;
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

enum ptwm_status ptwm_estimate_chain(const struct ptwm_encode_spec *spec, const struct ptwm_parsed_chain *chain,
                                     uint64_t *cost_nbytes, struct ptwm_error *error)
{
    struct ptwm_window window;
    struct ptwm_tail tail;
    enum ptwm_status status;
    uint64_t n;

    if (ptwm_plan_tail(spec, chain, &tail) != PTWM_OK)
        return ptwm_fail(error, PTWM_ERR_MEMORY, "a segment");
    ptwm_window_init(&window, spec, &tail);
    n = ptwm_window_max_chunks(&tail);
    if (n > tail.n_chunks)
        n = tail.n_chunks;
    status = ptwm_window_fill(&window, 0, n, error);
    if (status == PTWM_OK) {
        *cost_nbytes = n * chain->n_planes * (spec->checked ? 8 : 4); /* in the chunk table */
        if (window.set != PTWM_NO_SET)
            *cost_nbytes += window.symbols_cost_bits / 8;
        for (uint64_t i = 0; i < n; i++)
            for (uint32_t p = 0; p < chain->n_planes; p++)
                *cost_nbytes += plane_cost(&window, i, p);
    }
    ptwm_window_release(&window);
    ptwm_tail_release(&tail);
    return status;
}

/* ------------------------------------------------------------------------------------------------------ sampling */

/* Where the sample is taken: blocks at even distances, or everything. */
enum { MAX_DISADVANTAGE = 32 }; /* 1 / 32 of the cost is more than classes gain */
enum { SAMPLE_BLOCKS = 32, SAMPLE_BLOCK_ELEMENTS = 512, SAMPLE_ROOM = SAMPLE_BLOCKS * SAMPLE_BLOCK_ELEMENTS * 2 };

struct sample {
    uint8_t raw[SAMPLE_ROOM];
    size_t nbytes;
    unsigned width; /* of an element: 1, 2 or 4 */
};

static void take_sample(const struct ptwm_encode_spec *spec, unsigned width, struct sample *sample)
{
    const size_t block = SAMPLE_BLOCK_ELEMENTS * width;
    const uint64_t room = (spec->nbytes - block) / width;
    /* Bytes compete with a model of the whole byte, which takes more to tell apart. */
    const uint64_t n_blocks = width == 1 ? SAMPLE_BLOCKS : SAMPLE_BLOCKS / 2;

    sample->width = width;
    sample->nbytes = n_blocks * block;
    for (uint64_t i = 0; i < n_blocks; i++)
        memcpy(sample->raw + i * block, spec->data + room * i / (n_blocks - 1) * width, block);
}

/* The order-0 cost of a histogram in bits, with what a sample's entropy falls short of the whole's on average. */
static uint64_t histogram_bits(const uint32_t *histogram, uint32_t n_bins)
{
    uint64_t n_used = 0;

    for (uint32_t i = 0; i < n_bins; i++)
        n_used += histogram[i] > 0;
    /* Miller and Madow: (n_used - 1) / (2 n) nats an element, n elements. */
    return (ptwm_entropy_fixed(histogram, n_bins) + (n_used > 0 ? n_used - 1 : 0) * 47274) / PTWM_LOG2_ONE;
}

/* What the sample's bytes would cost in planes, each byte of an element of width bytes in its own. */
static uint64_t bytes_bits(const struct sample *sample, unsigned width)
{
    const uint64_t raw_bits = 8 * sample->nbytes / width;
    uint64_t bits = 0;

    for (unsigned b = 0; b < width; b++) {
        uint32_t histogram[256] = { 0 };
        uint64_t plane_bits;
        for (size_t i = b; i < sample->nbytes; i += width)
            histogram[sample->raw[i]]++;
        plane_bits = histogram_bits(histogram, 256);
        bits += plane_bits < raw_bits ? plane_bits : raw_bits;
    }
    return bits;
}

/* What the low plane of 4-byte elements would cost, trimmed where blocks allow it. */
static uint64_t low_bits(const struct sample *sample)
{
    uint64_t bits = 0;

    for (size_t i = 0; sample->width == 4 && i < sample->nbytes; i += 4 * SAMPLE_BLOCK_ELEMENTS) {
        unsigned any = 0, t = 0;
        for (size_t k = 0; k < SAMPLE_BLOCK_ELEMENTS; k++)
            any |= ptwm_load16(sample->raw + i + 4 * k);
        while (t < 16 && (any >> t & 1) == 0)
            t++;
        bits += (16 - t) * (uint64_t)SAMPLE_BLOCK_ELEMENTS;
    }
    return bits;
}

/* The same as bytes_bits for a label step, without low planes. */
static uint64_t label_bits(const struct sample *sample, const struct ptwm_step *label)
{
    const size_t n = sample->nbytes / sample->width, width = sample->width;
    const unsigned mask = (1u << label->bits) - 1;
    uint32_t histogram[1 << 9] = { 0 };

    for (size_t i = 0; i < n; i++)
        histogram[(width == 1 ? sample->raw[i] : ptwm_load16(sample->raw + (i + 1) * width - 2)) >> label->shift & mask]++;
    return histogram_bits(histogram, mask + 1) + ((width == 1 ? 8u : 16u) - label->bits) * (uint64_t)n;
}

/* What a chain would cost, or UINT64_MAX if this cannot tell. */
static uint64_t chain_bits(const struct sample *sample, const struct ptwm_parsed_chain *chain)
{
    if (chain->n_steps == 0)
        return bytes_bits(sample, 1);
    if (chain->n_steps > 1)
        return UINT64_MAX;
    if (chain->steps[0].kind == PTWM_STEP_BYTES)
        return chain->steps[0].width == sample->width ? bytes_bits(sample, sample->width) : UINT64_MAX;
    if (chain->label == NULL || chain->label->width != sample->width || chain->label->bits > 9)
        return UINT64_MAX;
    return label_bits(sample, chain->label) + low_bits(sample);
}

bool ptwm_sample_chains(const struct ptwm_encode_spec *spec, struct ptwm_sampled_choice *choice)
{
    const enum ptwm_float_kind kind = ptwm_float_kind_of(&spec->chains[0]);
    const unsigned width = ptwm_float_width(kind);
    uint64_t best = UINT64_MAX, rival = UINT64_MAX;
    struct sample sample;

    if (kind == PTWM_FLOAT_NONE || spec->nbytes < SAMPLE_BLOCKS * SAMPLE_BLOCK_ELEMENTS * (uint64_t)width)
        return false;
    take_sample(spec, width, &sample);
    for (size_t i = 0; i < spec->n_chains; i++) {
        const uint64_t bits = chain_bits(&sample, &spec->chains[i]);
        bool is_rival;
        if (bits == UINT64_MAX)
            return false;
        /* The bare exponent, left to a codec of bytes, is a rival too where labels' tables count. */
        is_rival = ptwm_float_kind_of(&spec->chains[i]) == PTWM_FLOAT_NONE ||
                   (i > 0 && spec->chains[i].label->bits <= 8 && spec->nbytes <= PTWM_FEW_NBYTES);
        if (is_rival && bits < rival) {
            rival = bits;
            choice->rival = i;
        } else if (!is_rival && bits < best) {
            best = bits;
            choice->label = i;
        }
    }
    if (rival == UINT64_MAX)
        return false;
    choice->advantage_bits = (int64_t)best - (int64_t)rival;
    choice->n_elements = sample.nbytes / width;
    choice->is_hopeless = best > rival + rival / MAX_DISADVANTAGE;
    return true;
}
