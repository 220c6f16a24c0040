/*
 * Which symbols are counted: those among which the labels will be.
 */
#include "label_analyse.h"

enum {
    CORE = 56,       /* of the range: where the sample's symbols should lie */
    BELOW_CORE = 2,  /* and the margins, for what the sample has not seen: rare small values, rarer large ones */
    MAX_LEFT_OUT = 64 /* one symbol in so many may be outside a range */
};

size_t ptwm_label_sample_blocks(size_t n)
{
    return n > PTWM_SAMPLE_ELEMENTS ? PTWM_SAMPLE_BLOCKS : 1;
}

size_t ptwm_label_sample_block(size_t n, size_t i)
{
    return i == 0 ? 0 : (size_t)((uint64_t)(n - PTWM_SAMPLE_BLOCK) * i / (PTWM_SAMPLE_BLOCKS - 1));
}

/* The first of the CORE neighbouring symbols, none of them 0, that are the most frequent; of equals the lowest. */
static uint32_t find_core(const uint32_t *histogram, uint32_t n_symbols)
{
    uint64_t sum = 0, best_sum = 0;
    uint32_t best = 1;
    for (uint32_t s = 1; s < n_symbols; s++) {
        sum += histogram[s];
        if (s > CORE)
            sum -= histogram[s - CORE];
        if (sum > best_sum) {
            best_sum = sum;
            best = s > CORE ? s - CORE + 1 : 1;
        }
    }
    return best;
}

bool ptwm_label_range_bins(struct ptwm_label_bins *bins, const uint32_t *histogram, unsigned bits)
{
    const uint32_t n_symbols = (uint32_t)1 << bits, core = find_core(histogram, n_symbols);
    uint32_t first = core > BELOW_CORE + 1 ? core - BELOW_CORE : 1;
    uint64_t total = 0, inside = histogram[0];

    if (first + PTWM_SYMBOL_BINS > n_symbols)
        first = n_symbols > PTWM_SYMBOL_BINS + 1 ? n_symbols - PTWM_SYMBOL_BINS : 1;
    memset(bins, 0, sizeof *bins);
    bins->is_range = true;
    bins->first = (uint16_t)first;
    bins->n = n_symbols - first < PTWM_SYMBOL_BINS ? n_symbols - first : PTWM_SYMBOL_BINS;
    for (uint32_t i = 0; i < bins->n; i++) {
        bins->symbol[i] = (uint16_t)(first + i);
        inside += histogram[first + i];
    }
    for (uint32_t s = 0; s < n_symbols; s++)
        total += histogram[s];
    return (total - inside) * MAX_LEFT_OUT <= total;
}

void ptwm_label_list_bins(struct ptwm_label_bins *bins, const uint32_t *histogram, unsigned bits)
{
    uint16_t best[PTWM_SYMBOL_BINS];
    uint32_t n = 0;

    for (uint32_t s = 1; s < (uint32_t)1 << bits; s++) {
        uint32_t i;
        if (histogram[s] == 0 || (n == PTWM_SYMBOL_BINS && histogram[s] <= histogram[best[n - 1]]))
            continue;
        n += n < PTWM_SYMBOL_BINS;
        for (i = n - 1; i > 0 && histogram[best[i - 1]] < histogram[s]; i--)
            best[i] = best[i - 1];
        best[i] = (uint16_t)s;
    }
    memset(bins, 0, sizeof *bins);
    for (uint32_t k = 0; k < n; k++) {
        uint32_t i;
        for (i = bins->n++; i > 0 && bins->symbol[i - 1] > best[k]; i--)
            bins->symbol[i] = bins->symbol[i - 1];
        bins->symbol[i] = best[k];
    }
}
