/*
 * Comparing the chains of a float type by a sample: what they would cost if every symbol or byte were coded by its frequency
 * alone. That takes microseconds, and it is right about chains whose costs differ by more than what classes gain.
 */
#include "bits.h"
#include "choose.h"
#include "codec.h"
#include "float_split.h"
#include "log2_fixed.h"
#include "status.h"

enum {
    BLOCK_ELEMENTS = 512,
    BLOCKS = 16,
    BYTE_BLOCKS = 256,      /* for elements of a byte: byte chains model the whole of it, which takes more to tell apart */
    MIN_NBYTES = 32 << 10,
    PLANE_NBYTES = 1 << 19, /* the tables of a byte plane are those of so many bytes */
    PROBES = 4,             /* that are given to zstd */
    PROBE_NBYTES = 32 << 10,
    MAX_VALUES = 62,        /* of bytes that label rANS codes whole, with several tables: as many as are counted, */
    MAX_EXCEPTIONS = 8,     /* but for one element in so many */
    MAX_DISADVANTAGE = 32 /* 1 / 32 of the cost is more than classes gain */
};

/* Blocks at even distances. */
struct sample {
    const uint8_t *data;
    uint64_t nbytes;
    uint64_t n_blocks;
    unsigned width; /* of an element: 1, 2 or 4 */
};

static const uint8_t *block_at(const struct sample *s, uint64_t i)
{
    const uint64_t room = s->nbytes / s->width - BLOCK_ELEMENTS;
    return s->data + (s->n_blocks > 1 ? room * i / (s->n_blocks - 1) : 0) * s->width;
}

static uint64_t n_elements(const struct sample *s)
{
    return s->n_blocks * BLOCK_ELEMENTS;
}

/* What a sample's entropy falls short of the whole's on average: (n_used - 1) / 2 nats (Miller and Madow). */
static uint64_t missing_bits(const uint32_t *histogram, uint32_t n_bins)
{
    uint64_t n_used = 0;

    for (uint32_t i = 0; i < n_bins; i++)
        n_used += histogram[i] > 0;
    return n_used > 0 ? (n_used - 1) * 47274 / PTWM_LOG2_ONE : 0;
}

/*
 * What n bytes with such a histogram would cost, as a sample of a plane; with byte rANS or as they are. exactly: with the
 * frequencies that it would have.
 */
static uint64_t plane_bits(const uint32_t *histogram, uint64_t n, bool exactly)
{
    const uint32_t scale = n < PLANE_NBYTES ? (uint32_t)(PLANE_NBYTES / n) : 1;
    uint32_t scaled[256];
    uint64_t bits;

    for (unsigned v = 0; v < 256; v++)
        scaled[v] = scale * histogram[v];
    bits = exactly ? 8 * ptwm_rans_estimate(scaled, scale * n) / scale : ptwm_entropy_fixed(histogram, 256) / PTWM_LOG2_ONE;
    bits += missing_bits(histogram, 256);
    return bits < 8 * n ? bits : 8 * n;
}

/* What a plane coded with byte rANS has beside the words: 24 bits in each state tell nothing, a frequency takes 10. */
static uint64_t rans_head_bits(const uint32_t *histogram)
{
    uint64_t bits = 32 * 24 + 34 * 8;

    for (unsigned v = 0; v < 256; v++)
        bits += histogram[v] > 0 ? 10 : 0;
    return bits;
}

/* The cost of byte planes, each byte of an element of width bytes in its own. *head_bits: of a chunk. */
static uint64_t bytes_bits(const struct sample *s, unsigned width, uint64_t *head_bits)
{
    const size_t block_nbytes = BLOCK_ELEMENTS * s->width;
    uint64_t bits = 0;

    *head_bits = 0;
    for (unsigned b = 0; b < width; b++) {
        const uint64_t n = s->n_blocks * BLOCK_ELEMENTS * s->width / width;
        uint64_t own_bits;
        uint32_t histogram[256] = { 0 };
        for (uint64_t k = 0; k < s->n_blocks; k++) {
            const uint8_t *block = block_at(s, k);
            for (size_t i = b; i < block_nbytes; i += width)
                histogram[block[i]]++;
        }
        own_bits = plane_bits(histogram, n, s->width == 1);
        *head_bits += own_bits < 8 * n ? rans_head_bits(histogram) : 0;
        bits += own_bits;
    }
    return bits;
}

/* The cost of the low plane of 4-byte elements, trimmed where blocks allow it. */
static uint64_t low_bits(const struct sample *s)
{
    uint64_t bits = 0;

    for (uint64_t k = 0; k < s->n_blocks && s->width == 4; k++) {
        const uint8_t *block = block_at(s, k);
        unsigned any = 0, t = 0;
        for (size_t i = 0; i < BLOCK_ELEMENTS; i++)
            any |= ptwm_load16(block + 4 * i);
        while (t < 16 && (any >> t & 1) == 0)
            t++;
        bits += (16 - t) * (uint64_t)BLOCK_ELEMENTS;
    }
    return bits;
}

/* The cost of a label step of at most 9 bits. */
static uint64_t label_bits(const struct sample *s, const struct ptwm_step *label)
{
    const unsigned mask = (1u << label->bits) - 1, rest_bits = (s->width == 1 ? 8u : 16u) - label->bits;
    uint32_t histogram[1 << 9] = { 0 };

    for (uint64_t k = 0; k < s->n_blocks; k++) {
        const uint8_t *block = block_at(s, k);
        for (size_t i = 0; i < BLOCK_ELEMENTS; i++) {
            const unsigned unit = s->width == 1 ? block[i] : ptwm_load16(block + (i + 1) * s->width - 2);
            histogram[unit >> label->shift & mask]++;
        }
    }
    return ptwm_entropy_fixed(histogram, mask + 1) / PTWM_LOG2_ONE + missing_bits(histogram, mask + 1) +
           rest_bits * n_elements(s) + low_bits(s);
}

/* What a chain would cost, or UINT64_MAX if this cannot tell. */
static uint64_t chain_bits(const struct sample *s, const struct ptwm_parsed_chain *chain, uint64_t *head_bits)
{
    if (chain->n_steps == 0)
        return bytes_bits(s, 1, head_bits);
    if (chain->n_steps > 1)
        return UINT64_MAX;
    if (chain->steps[0].kind == PTWM_STEP_BYTES)
        return chain->steps[0].width == s->width ? bytes_bits(s, s->width, head_bits) : UINT64_MAX;
    if (chain->label == NULL || chain->label->width != s->width || chain->label->bits > 9)
        return UINT64_MAX;
    *head_bits = 0; /* those of labels are counted once their classes are known */
    return label_bits(s, chain->label);
}

bool ptwm_sample_chains(const struct ptwm_encode_spec *spec, struct ptwm_sampled_choice *choice)
{
    const enum ptwm_float_kind kind = ptwm_float_kind_of(&spec->chains[0]);
    struct sample s = { spec->data, spec->nbytes, BLOCKS, ptwm_float_width(kind) };
    uint64_t best = UINT64_MAX, rival = UINT64_MAX, rival_head_bits = 0;

    if (kind == PTWM_FLOAT_NONE || spec->nbytes < MIN_NBYTES)
        return false;
    if (s.width == 1)
        s.n_blocks = spec->nbytes / BLOCK_ELEMENTS < BYTE_BLOCKS ? spec->nbytes / BLOCK_ELEMENTS : BYTE_BLOCKS;
    for (size_t i = 0; i < spec->n_chains; i++) {
        uint64_t head_bits;
        const uint64_t bits = chain_bits(&s, &spec->chains[i], &head_bits);
        bool is_rival;
        if (bits == UINT64_MAX)
            return false;
        /* The bare exponent, left to a codec of bytes, is a rival too where labels' tables count. */
        is_rival = ptwm_float_kind_of(&spec->chains[i]) == PTWM_FLOAT_NONE ||
                   (i > 0 && spec->chains[i].label->bits <= 8 && spec->nbytes <= PTWM_FEW_NBYTES);
        if (is_rival && bits < rival) {
            rival = bits;
            rival_head_bits = head_bits;
            choice->rival = i;
        } else if (!is_rival && bits < best) {
            best = bits;
            choice->label = i;
        }
    }
    if (rival == UINT64_MAX)
        return false;
    choice->rival_bits = rival;
    choice->head_bits = rival_head_bits;
    choice->advantage_bits = (int64_t)best - (int64_t)rival;
    choice->n_elements = n_elements(&s);
    choice->is_hopeless = best > rival + rival / MAX_DISADVANTAGE;
    return true;
}

bool ptwm_chain_is_promising(const struct ptwm_encode_spec *spec, const struct ptwm_parsed_chain *chain)
{
    const uint64_t n_whole = spec->nbytes / BLOCK_ELEMENTS;
    const struct sample s = { spec->data, spec->nbytes, n_whole < BYTE_BLOCKS ? n_whole : BYTE_BLOCKS, 1 };
    uint32_t histogram[256] = { 0 };
    uint64_t n_labels = 0;

    if (spec->nbytes < MIN_NBYTES || chain->n_steps != 1 || chain->label == NULL || chain->label->width != 1 ||
        chain->label->bits < 8)
        return true;
    for (uint64_t k = 0; k < s.n_blocks; k++)
        for (size_t i = 0; i < BLOCK_ELEMENTS; i++)
            histogram[block_at(&s, k)[i]]++;
    for (unsigned l = 0; l < MAX_VALUES; l++) {
        unsigned best = 0;
        for (unsigned v = 1; v < 256; v++)
            best = histogram[v] > histogram[best] ? v : best;
        n_labels += histogram[best];
        histogram[best] = 0;
    }
    return n_elements(&s) - n_labels <= n_elements(&s) / MAX_EXCEPTIONS;
}

enum ptwm_status ptwm_zstd_may_help(const struct ptwm_encode_spec *spec, unsigned width, bool *helps,
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
