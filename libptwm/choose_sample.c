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
    BYTE_BLOCKS = 256, /* for elements of a byte: byte chains model the whole of it, which takes more to tell apart */
    MIN_NBYTES = 32 << 10,
    PLANE_NBYTES = 1 << 19, /* the tables of a byte plane are those of so many bytes */
    PROBES = 4,             /* that are given to zstd */
    PROBE_NBYTES = 32 << 10,
    PART_NBYTES = 4 << 10, /* of a byte plane of small floats; two parts are given to zstd */
    MAX_BITS = 9,          /* of a label step that is compared */
    MAX_VALUES = 62,       /* of bytes that label rANS codes whole, with several tables: as many as are counted, */
    MAX_EXCEPTIONS = 8,    /* but for one element in so many */
    MAX_DISADVANTAGE = 32  /* 1 / 32 of the cost is more than classes gain */
};

/* Blocks at even distances. */
struct sample {
    const uint8_t *data;
    uint64_t nbytes;
    uint64_t n_blocks;
    unsigned width; /* of an element: 1, 2 or 4 */
    uint32_t bytes[4][256]; /* histograms of the bytes at each place of an element */
    struct ptwm_step label; /* of the label step that has been counted; 0 bits if none has */
    uint32_t symbols[1 << MAX_BITS];
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

/* Neighbours are often alike: counted in two tables in turn, no count has to wait for the one before. */
static inline void count_block(uint32_t even[4][256], uint32_t odd[4][256], const uint8_t *block, unsigned width)
{
    for (size_t i = 0; i < BLOCK_ELEMENTS; i += 2, block += 2 * width)
        for (unsigned b = 0; b < width; b++) {
            even[b][block[b]]++;
            odd[b][block[width + b]]++;
        }
}

static void count_bytes(struct sample *s)
{
    uint32_t odd[4][256] = { { 0 } };

    for (uint64_t k = 0; k < s->n_blocks; k++) {
        const uint8_t *block = block_at(s, k);
        switch (s->width) { /* for each a loop of its own */
        case 1: count_block(s->bytes, odd, block, 1); break;
        case 2: count_block(s->bytes, odd, block, 2); break;
        default: count_block(s->bytes, odd, block, 4); break;
        }
    }
    for (unsigned b = 0; b < s->width; b++)
        for (unsigned v = 0; v < 256; v++)
            s->bytes[b][v] += odd[b][v];
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

/* The cost of a plane of n bytes; adds what it costs for each chunk to *head_bits. */
static uint64_t bytes_bits(const struct sample *s, const uint32_t *histogram, uint64_t n, uint64_t *head_bits)
{
    const uint64_t bits = plane_bits(histogram, n, s->width == 1);

    *head_bits += bits < 8 * n ? rans_head_bits(histogram) : 0;
    return bits;
}

/* The cost of byte planes, each byte of an element in its own, or all in one. */
static uint64_t planes_bits(const struct sample *s, bool divided, uint64_t *head_bits)
{
    uint32_t all[256] = { 0 };
    uint64_t bits = 0;

    for (unsigned b = 0; b < s->width && divided; b++)
        bits += bytes_bits(s, s->bytes[b], n_elements(s), head_bits);
    if (divided)
        return bits;
    for (unsigned b = 0; b < s->width; b++)
        for (unsigned v = 0; v < 256; v++)
            all[v] += s->bytes[b][v];
    return bytes_bits(s, all, s->width * n_elements(s), head_bits);
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

/* The unit that a label step cuts its field out of. */
static inline unsigned unit_at(const uint8_t *block, size_t i, unsigned width)
{
    return width == 1 ? block[i] : ptwm_load16(block + (i + 1) * width - 2);
}

static inline void count_symbols(uint32_t *even, uint32_t *odd, const uint8_t *block, unsigned width, unsigned shift,
                                 unsigned mask)
{
    for (size_t i = 0; i < BLOCK_ELEMENTS; i += 2) {
        even[unit_at(block, i, width) >> shift & mask]++;
        odd[unit_at(block, i + 1, width) >> shift & mask]++;
    }
}

/* Counts the symbols of a label step of at most MAX_BITS bits. */
static void count_label(struct sample *s, const struct ptwm_step *label)
{
    const unsigned mask = (1u << label->bits) - 1;
    uint32_t odd[1 << MAX_BITS] = { 0 };

    /* The exponent after the exponent and some mantissa: sums of neighbours. */
    if (s->label.bits > label->bits && s->label.shift + s->label.bits == label->shift + label->bits) {
        const unsigned n = 1u << (s->label.bits - label->bits);
        for (unsigned v = 0; v <= mask; v++) {
            uint32_t sum = 0;
            for (unsigned i = 0; i < n; i++)
                sum += s->symbols[n * v + i];
            s->symbols[v] = sum;
        }
        s->label = *label;
        return;
    }
    memset(s->symbols, 0, sizeof s->symbols);
    for (uint64_t k = 0; k < s->n_blocks; k++) {
        const uint8_t *block = block_at(s, k);
        switch (s->width) {
        case 1: count_symbols(s->symbols, odd, block, 1, label->shift, mask); break;
        case 2: count_symbols(s->symbols, odd, block, 2, label->shift, mask); break;
        default: count_symbols(s->symbols, odd, block, 4, label->shift, mask); break;
        }
    }
    for (unsigned v = 0; v <= mask; v++)
        s->symbols[v] += odd[v];
    s->label = *label;
}

/* The cost of such a step. */
static uint64_t label_bits(struct sample *s, const struct ptwm_step *label)
{
    const unsigned n_symbols = 1u << label->bits, rest_bits = (s->width == 1 ? 8u : 16u) - label->bits;

    count_label(s, label);
    return ptwm_entropy_fixed(s->symbols, n_symbols) / PTWM_LOG2_ONE + missing_bits(s->symbols, n_symbols) +
           rest_bits * n_elements(s) + low_bits(s);
}

/*
 * What a chain would cost, or UINT64_MAX if this cannot tell. *head_bits: what each chunk costs beside; of labels that is
 * counted once their classes are known.
 */
static uint64_t chain_bits(struct sample *s, const struct ptwm_parsed_chain *chain, uint64_t *head_bits)
{
    *head_bits = 0;
    if (chain->n_steps == 0)
        return planes_bits(s, false, head_bits);
    if (chain->n_steps > 1)
        return UINT64_MAX;
    if (chain->steps[0].kind == PTWM_STEP_BYTES)
        return chain->steps[0].width == s->width ? planes_bits(s, true, head_bits) : UINT64_MAX;
    if (chain->label == NULL || chain->label->width != s->width || chain->label->bits > MAX_BITS)
        return UINT64_MAX;
    return label_bits(s, chain->label);
}

bool ptwm_sample_chains(const struct ptwm_encode_spec *spec, struct ptwm_sampled_choice *choice)
{
    const enum ptwm_float_kind kind = ptwm_float_kind_of(&spec->chains[0]);
    struct sample s = { spec->data, spec->nbytes, BLOCKS, ptwm_float_width(kind), { { 0 } }, { 0 }, { 0 } };
    uint64_t best = UINT64_MAX, rival = UINT64_MAX, rival_head_bits = 0;

    if (kind == PTWM_FLOAT_NONE || spec->nbytes < MIN_NBYTES)
        return false;
    if (s.width == 1)
        s.n_blocks = spec->nbytes / BLOCK_ELEMENTS < BYTE_BLOCKS ? spec->nbytes / BLOCK_ELEMENTS : BYTE_BLOCKS;
    count_bytes(&s);
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
    struct sample s = { spec->data, spec->nbytes, n_whole < BYTE_BLOCKS ? n_whole : BYTE_BLOCKS, 1, { { 0 } },
                        { 0 },      { 0 } };
    uint64_t n_labels = 0;

    if (spec->nbytes < MIN_NBYTES || chain->n_steps != 1 || chain->label == NULL || chain->label->width != 1 ||
        chain->label->bits < 8)
        return true;
    count_bytes(&s);
    for (unsigned l = 0; l < MAX_VALUES; l++) {
        unsigned best = 0;
        for (unsigned v = 1; v < 256; v++)
            best = s.bytes[0][v] > s.bytes[0][best] ? v : best;
        n_labels += s.bytes[0][best];
        s.bytes[0][best] = 0;
    }
    return n_elements(&s) - n_labels <= n_elements(&s) / MAX_EXCEPTIONS;
}

/* A piece of a byte plane, and room for what zstd makes of it. */
struct probe {
    uint8_t bytes[PROBE_NBYTES];
    size_t nbytes;
    uint64_t by_frequency; /* what Huffman codes take, or the bytes as they are */
    size_t by_zstd;
    uint8_t frame[];
};

static struct probe *new_probe(const struct ptwm_encode_spec *spec)
{
    struct probe *probe = ptwm_alloc(spec->context->allocator, sizeof *probe + ptwm_codec_zstd.bound(PROBE_NBYTES), 1);

    if (probe != NULL)
        probe->nbytes = 0;
    return probe;
}

static void release_probe(const struct ptwm_encode_spec *spec, struct probe *probe)
{
    ptwm_release(spec->context->allocator, probe, sizeof *probe + ptwm_codec_zstd.bound(PROBE_NBYTES), 1);
}

/* Adds n bytes, each width behind the one before. */
static void add_to_probe(struct probe *probe, const uint8_t *from, unsigned width, size_t n)
{
    for (size_t k = 0; k < n; k++)
        probe->bytes[probe->nbytes++] = from[k * width];
}

static enum ptwm_status measure_probe(const struct ptwm_encode_spec *spec, struct probe *probe, struct ptwm_error *error)
{
    uint32_t histogram[256] = { 0 };

    for (size_t k = 0; k < probe->nbytes; k++)
        histogram[probe->bytes[k]]++;
    probe->by_frequency = ptwm_huffman_estimate(histogram, probe->nbytes);
    if (probe->by_frequency > probe->nbytes)
        probe->by_frequency = probe->nbytes;
    return ptwm_codec_zstd.encode(spec->context, probe->frame, &probe->by_zstd, probe->bytes, probe->nbytes, error);
}

enum ptwm_status ptwm_zstd_may_help(const struct ptwm_encode_spec *spec, bool *helps, struct ptwm_error *error)
{
    const uint64_t n = spec->nbytes;
    const size_t nbytes = n < PROBE_NBYTES ? (size_t)n : PROBE_NBYTES, n_probes = n > PROBE_NBYTES ? PROBES : 1;
    struct probe *probe = new_probe(spec);
    enum ptwm_status status = PTWM_OK;
    uint64_t total = 0;

    *helps = false;
    if (probe == NULL)
        return ptwm_fail(error, PTWM_ERR_MEMORY, "a sample");
    for (size_t i = 0; i < n_probes && status == PTWM_OK && !*helps; i++) {
        probe->nbytes = 0;
        add_to_probe(probe, spec->data + (n_probes > 1 ? (n - nbytes) * i / (n_probes - 1) : 0), 1, nbytes);
        status = measure_probe(spec, probe, error);
        total += probe->by_frequency;
        if (n_probes > 1) /* of much data a little is not worth it */
            probe->by_frequency -= probe->by_frequency / 64;
        *helps = status == PTWM_OK && probe->by_zstd < probe->by_frequency;
    }
    /* No weights are that alike: zstd may find something in other planes, too. */
    *helps = *helps || total < n_probes * (uint64_t)nbytes / 2;
    release_probe(spec, probe);
    return status;
}

enum ptwm_status ptwm_zstd_estimate(const struct ptwm_encode_spec *spec, unsigned width, uint64_t *nbytes,
                                    bool *finds_order, struct ptwm_error *error)
{
    const uint64_t n = spec->nbytes / width;
    const size_t part = n < 2 * PART_NBYTES ? (size_t)n / 2 : PART_NBYTES;
    struct probe *probe = new_probe(spec);
    enum ptwm_status status = PTWM_OK;

    *nbytes = 0;
    *finds_order = false;
    if (probe == NULL)
        return ptwm_fail(error, PTWM_ERR_MEMORY, "a sample");
    for (unsigned b = 0; b < width && status == PTWM_OK; b++) {
        uint64_t best;
        probe->nbytes = 0;
        add_to_probe(probe, spec->data + (n / 4 - part / 2) * width + b, width, part);
        add_to_probe(probe, spec->data + (n / 4 * 3 - part / 2) * width + b, width, part);
        status = measure_probe(spec, probe, error);
        best = probe->by_zstd < probe->by_frequency ? probe->by_zstd : probe->by_frequency;
        *nbytes += best * n / probe->nbytes;
        *finds_order = *finds_order || (probe->by_frequency == probe->nbytes && best < probe->nbytes);
    }
    release_probe(spec, probe);
    return status;
}
