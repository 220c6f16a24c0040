/*
 * Finding a model for data: FORMAT.md, section 7.1, says what a model is; what makes a good one is decided here and in the
 * files that label_analyse.h lists. These are the ways in for symbols that have been split off; float_encode.c goes from raw
 * bytes to the same counts.
 */
#include "label_analyse.h"

/* ------------------------------------------------------------------------------------------------- shifts */

enum ptwm_status ptwm_label_find_shifts(const struct ptwm_allocator *allocator, const uint16_t *symbols,
                                        struct ptwm_column_search *search)
{
    const size_t n_rows = search->n_rows;
    const uint32_t n_columns = search->n_columns;
    const size_t n_sampled = ptwm_label_sample_rows(n_rows, n_columns);
    const uint64_t n = (uint64_t)n_sampled * n_columns;
    uint16_t *sample = ptwm_alloc(allocator, n, sizeof *sample);
    enum ptwm_status status = PTWM_ERR_MEMORY;

    if (sample != NULL) {
        for (size_t i = 0; i < n_sampled; i++)
            memcpy(sample + i * n_columns, symbols + ptwm_label_sample_row(n_rows, n_columns, i) * n_columns,
                   n_columns * sizeof *sample);
        status = ptwm_label_find_sampled_shifts(allocator, sample, search);
    }
    ptwm_release(allocator, sample, n, sizeof *sample);
    return status;
}

/* ------------------------------------------------------------------------------------------------- sets */

struct scratch {
    uint32_t *histogram; /* of all 2^bits symbols */
    uint8_t *bin;        /* of each symbol */
    uint16_t *histograms, *second; /* of the units */
};

static void choose_bins(const struct scratch *s, const uint16_t *symbols, size_t n, unsigned bits,
                        struct ptwm_label_bins *bins)
{
    const size_t n_blocks = ptwm_label_sample_blocks(n), block = n_blocks > 1 ? PTWM_SAMPLE_BLOCK : n;

    for (size_t b = 0; b < n_blocks; b++)
        for (size_t i = 0; i < block; i++)
            s->histogram[symbols[ptwm_label_sample_block(n, b) + i]]++;
    if (ptwm_label_range_bins(bins, s->histogram, bits))
        return;
    memset(s->histogram, 0, sizeof *s->histogram << bits);
    for (size_t i = 0; i < n; i++)
        s->histogram[symbols[i]]++;
    ptwm_label_list_bins(bins, s->histogram, bits);
}

/* Adds elements in columns of phase 1 to their unit's second histogram. */
static void count_second(const struct scratch *s, const uint16_t *symbols, struct ptwm_phases phases,
                         const struct ptwm_label_counted *counted)
{
    memset(s->second, 0, counted->n_units * PTWM_N_BINS * sizeof *s->second);
    for (size_t i = 0; i < counted->n; i++)
        if (*ptwm_phases_next(&phases, 1) != 0)
            s->second[i / counted->unit * PTWM_N_BINS + s->bin[symbols[i]]]++;
}

static void count_units(const struct scratch *s, const uint16_t *symbols, const struct ptwm_label_bins *bins,
                        const struct ptwm_label_counted *counted)
{
    memset(s->bin, PTWM_OTHER_BIN, (size_t)1 << counted->bits);
    for (uint32_t i = 0; i < bins->n; i++)
        s->bin[bins->symbol[i]] = (uint8_t)i;
    s->bin[0] = PTWM_ZERO_BIN;
    for (size_t u = 0; u < counted->n_units; u++) {
        const size_t begin = u * counted->unit, end = begin + counted->unit < counted->n ? begin + counted->unit : counted->n;
        uint16_t *histogram = s->histograms + u * PTWM_N_BINS;
        memset(histogram, 0, PTWM_N_BINS * sizeof *histogram);
        for (size_t i = begin; i < end; i++)
            histogram[s->bin[symbols[i]]]++;
    }
}

enum ptwm_status ptwm_label_find_set(const struct ptwm_allocator *allocator, const uint16_t *symbols, size_t n,
                                     unsigned bits, uint32_t unit, const struct ptwm_phases *phases,
                                     struct ptwm_label_set *set, uint8_t *classes, uint64_t *cost_bits)
{
    const size_t n_units = (size_t)ptwm_ceil_div(n, unit), n_symbols = (size_t)1 << bits;
    const uint64_t n_counts = (uint64_t)n_units * PTWM_N_BINS;
    struct ptwm_label_bins bins;
    struct scratch s = { ptwm_calloc(allocator, n_symbols, sizeof *s.histogram), ptwm_alloc(allocator, n_symbols, 1),
                         ptwm_alloc(allocator, n_counts, sizeof *s.histograms),
                         phases != NULL ? ptwm_alloc(allocator, n_counts, sizeof *s.second) : NULL };
    const struct ptwm_label_counted counted = { allocator, &bins, n, bits, unit, n_units, s.histograms, s.second };
    enum ptwm_status status = PTWM_ERR_MEMORY;
    uint64_t entropy_bits;

    if (s.histogram != NULL && s.bin != NULL && s.histograms != NULL && (phases == NULL || s.second != NULL)) {
        choose_bins(&s, symbols, n, bits, &bins);
        count_units(&s, symbols, &bins, &counted);
        if (phases != NULL)
            count_second(&s, symbols, *phases, &counted);
        status = ptwm_label_divide(&counted, set, classes, cost_bits, &entropy_bits);
    }
    ptwm_release(allocator, s.histogram, n_symbols, sizeof *s.histogram);
    ptwm_release(allocator, s.bin, n_symbols, 1);
    ptwm_release(allocator, s.histograms, n_counts, sizeof *s.histograms);
    ptwm_release(allocator, s.second, n_counts, sizeof *s.second);
    return status;
}
