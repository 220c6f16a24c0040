/*
 * From a class's counts to its table.
 */
#include "label_analyse.h"
#include "log2_fixed.h"

enum { N_GRANULES = PTWM_FREQUENCY_TOTAL / PTWM_FREQUENCY_GRANULE };

/* Symbols in ascending order are numbered: 0 is symbol 0, in the last of the bins; the others follow. */
static uint32_t bin_of(uint32_t number)
{
    return number == 0 ? PTWM_ZERO_BIN : number - 1;
}

/*
 * Frequencies for counts, in granules: each at least 1, in all N_GRANULES. The cost of a symbol whose frequency grows
 * from f to f + 1 falls by nearly 2 / (2 f + 1), so that the best frequencies are those of Sainte-Lague's rule: begin near
 * and add or take single granules where that costs least.
 */
static void normalise(const uint64_t *counts, uint32_t n, uint32_t *frequencies)
{
    uint64_t total = 0;
    uint32_t sum = 0;
    for (uint32_t i = 0; i < n; i++)
        total += counts[i];
    for (uint32_t i = 0; i < n; i++) {
        uint64_t f = total > 0 ? (counts[i] * N_GRANULES + total / 2) / total : N_GRANULES / n;
        frequencies[i] = f > 0 ? (uint32_t)f : 1;
        sum += frequencies[i];
    }
    while (sum != N_GRANULES) {
        bool grows = sum < N_GRANULES;
        uint64_t best_divisor = 0;
        uint32_t best = n;
        for (uint32_t i = 0; i < n; i++) {
            /* counts / (2 f +- 1) are compared as fractions; counts are below 2^44. */
            uint64_t divisor = 2 * (uint64_t)frequencies[i] + 1 - (grows ? 0 : 2);
            if (!grows && frequencies[i] == 1)
                continue;
            if (best == n || (grows ? counts[i] * best_divisor > counts[best] * divisor
                                    : counts[i] * best_divisor < counts[best] * divisor)) {
                best = i;
                best_divisor = divisor;
            }
        }
        frequencies[best] = grows ? frequencies[best] + 1 : frequencies[best] - 1;
        sum = grows ? sum + 1 : sum - 1;
    }
}

/* The cost of a label with a frequency in granules, in 1 / 65536 bit. */
static uint32_t label_cost(uint32_t granules)
{
    return 13 * PTWM_LOG2_ONE - ptwm_log2_fixed(granules);
}

/*
 * Removes the labels that cost more than exceptions in their place would: their symbols' bits, their place in the
 * table, and the frequency that the others would have. Returns the number left: two or more, or n.
 */
static uint32_t drop_labels(const struct ptwm_table_maker *maker, uint32_t *labels, uint64_t *counts, uint32_t n)
{
    for (;;) {
        uint32_t frequencies[PTWM_MAX_LABELS], worst = n, top = 0, kept = 0;
        uint64_t total = 0, worst_count = UINT64_MAX;
        if (n <= 2)
            return n;
        normalise(counts, n, frequencies);
        for (uint32_t i = 0; i < n; i++) {
            total += counts[i];
            top = counts[i] > counts[top] ? i : top;
        }
        for (uint32_t i = 0; i < n; i++) {
            uint64_t as_exception = counts[i] * ((uint64_t)maker->exception_cost + label_cost(frequencies[top]));
            uint64_t as_label = counts[i] * label_cost(frequencies[i]);
            /* All others would be cheaper by -log2(1 - f / total), at least f / total / ln 2. */
            uint64_t others = (total - counts[i]) * frequencies[i] * 94548 / N_GRANULES;
            uint64_t table = (frequencies[i] < 64 ? 8 : 16) * (uint64_t)PTWM_LOG2_ONE;
            if (as_exception < as_label + others + table && counts[i] < worst_count && i != top) {
                worst = i;
                worst_count = counts[i];
            }
        }
        if (worst == n)
            return n;
        for (uint32_t i = 0; i < n; i++)
            if (i != worst) {
                labels[kept] = labels[i];
                counts[kept++] = counts[i];
            }
        n = kept;
    }
}

/* The symbols that become labels of a class, by number, ascending, with their counts; returns how many, perhaps 0. */
static uint32_t choose_labels(const struct ptwm_table_maker *maker, const uint32_t *counts, uint32_t *labels,
                              uint64_t *own)
{
    const uint32_t n_symbols = maker->bins->n + 1;
    uint32_t threshold = 0, n = 0, n_above;

    /* With more than 32 symbols in use, those that are rarer than the 32nd go; of equals the later ones. */
    do {
        uint32_t next = UINT32_MAX;
        n_above = 0;
        for (uint32_t k = 0; k < n_symbols; k++) {
            uint32_t count = counts[bin_of(k)];
            n_above += count > threshold;
            next = count > threshold && count < next ? count : next;
        }
        if (n_above > PTWM_MAX_LABELS)
            threshold = next;
    } while (n_above > PTWM_MAX_LABELS);
    for (uint32_t k = 0, spare = PTWM_MAX_LABELS - n_above; k < n_symbols; k++) {
        uint32_t count = counts[bin_of(k)];
        bool fills = threshold > 0 && count == threshold && spare > 0;
        if (count > threshold || fills) {
            labels[n] = k;
            own[n++] = count;
            spare -= fills;
        }
    }
    return drop_labels(maker, labels, own, n);
}

/* A table needs two labels. */
static void make_small_table(const struct ptwm_table_maker *maker, uint32_t symbol, struct ptwm_label_table *table)
{
    uint32_t last = ((uint32_t)1 << maker->bits) - 1;
    bool is_first = symbol < last;
    table->n_labels = 2;
    table->symbol[0] = (uint16_t)(is_first ? symbol : symbol - 1);
    table->symbol[1] = (uint16_t)(table->symbol[0] + 1);
    table->frequency[is_first ? 0 : 1] = PTWM_FREQUENCY_TOTAL - PTWM_FREQUENCY_GRANULE;
    table->frequency[is_first ? 1 : 0] = PTWM_FREQUENCY_GRANULE;
}

void ptwm_label_make_table(const struct ptwm_table_maker *maker, const uint32_t counts[PTWM_N_BINS],
                           struct ptwm_label_table *table)
{
    uint32_t labels[PTWM_MAX_LABELS], frequencies[PTWM_MAX_LABELS];
    uint64_t own[PTWM_MAX_LABELS];
    uint32_t n = choose_labels(maker, counts, labels, own);

    memset(table, 0, sizeof(*table));
    if (n < 2) {
        make_small_table(maker, n == 1 ? maker->bins->symbol[bin_of(labels[0])] : 0, table);
        return;
    }
    normalise(own, n, frequencies);
    table->n_labels = n;
    for (uint32_t i = 0; i < n; i++) {
        table->symbol[i] = maker->bins->symbol[bin_of(labels[i])];
        table->frequency[i] = (uint16_t)(frequencies[i] * PTWM_FREQUENCY_GRANULE);
    }
}

void ptwm_label_divide_table(const struct ptwm_table_maker *maker, const uint32_t counts[PTWM_N_BINS],
                             const uint32_t second[PTWM_N_BINS], struct ptwm_label_table *table)
{
    uint64_t own[2][PTWM_MAX_LABELS] = { { 0 } };
    uint32_t frequencies[2][PTWM_MAX_LABELS];

    for (uint32_t k = 0, label = 0; k < maker->bins->n + 1; k++) {
        const uint32_t bin = bin_of(k);
        while (label < table->n_labels && table->symbol[label] < maker->bins->symbol[bin])
            label++;
        if (label < table->n_labels && table->symbol[label] == maker->bins->symbol[bin]) {
            own[0][label] = counts[bin] - second[bin];
            own[1][label] = second[bin];
        }
    }
    normalise(own[0], table->n_labels, frequencies[0]);
    normalise(own[1], table->n_labels, frequencies[1]);
    for (uint32_t i = 0; i < table->n_labels; i++) {
        table->frequency[i] = (uint16_t)(frequencies[0][i] * PTWM_FREQUENCY_GRANULE);
        table->second[i] = (uint16_t)(frequencies[1][i] * PTWM_FREQUENCY_GRANULE);
    }
}

void ptwm_label_table_costs(const struct ptwm_table_maker *maker, const struct ptwm_label_table *table,
                            const uint16_t frequency[PTWM_MAX_LABELS], uint64_t costs[PTWM_N_BINS])
{
    uint32_t best = 0, label = 0;
    uint64_t exception;

    for (uint32_t i = 1; i < table->n_labels; i++)
        best = table->frequency[i] > table->frequency[best] ? i : best;
    exception = (uint64_t)maker->exception_cost + label_cost(frequency[best] / PTWM_FREQUENCY_GRANULE);
    for (uint32_t b = 0; b < PTWM_N_BINS; b++)
        costs[b] = exception;
    for (uint32_t k = 0; k < maker->bins->n + 1; k++) {
        const uint16_t symbol = maker->bins->symbol[bin_of(k)];
        while (label < table->n_labels && table->symbol[label] < symbol)
            label++;
        if (label < table->n_labels && table->symbol[label] == symbol)
            costs[bin_of(k)] = label_cost(frequency[label] / PTWM_FREQUENCY_GRANULE);
    }
}
