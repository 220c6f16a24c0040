/*
 * Finding a model for data: FORMAT.md, section 7.1, says what a model is; what makes a good one is decided here.
 *
 * A set's classes are found by expectation maximisation with hard assignments: each unit goes to the class that codes
 * it with the fewest bits, then each class's costs follow from the units that it has. The start is by scale: units in
 * order of their mean symbol, cut in equal parts. All of it is integer arithmetic in a fixed order, so that the same
 * data gives the same model everywhere.
 */
#include "label.h"
#include "log2_fixed.h"

enum {
    MAX_CANDIDATES = 63,       /* symbols that may become labels, the most frequent ones */
    MAX_STRIDE = 64,           /* of a unit's histogram: candidates, other symbols, and zeros up to a multiple of 8 */
    MAX_ANALYSED_CLASSES = 4,  /* more gain little, and vector kernels keep the tables of four in registers */
    SUBSET_UNITS = 8192,       /* the first rounds look at about this many */
    SUBSET_ROUNDS = 6,
    FULL_ROUNDS = 2,
    REFINE_ROUNDS = 2,         /* with real tables in place of estimated costs */
    CHUNK_SYMBOLS = 1 << 19,   /* for which a head is counted */
    N_GRANULES = PTWM_FREQUENCY_TOTAL / PTWM_FREQUENCY_GRANULE
};

/* What is known about a window. */
struct window {
    const struct ptwm_allocator *allocator;
    size_t n;
    unsigned bits;
    uint32_t unit;
    size_t n_units;
    uint32_t n_candidates;
    uint16_t candidates[MAX_CANDIDATES]; /* ascending */
    uint32_t stride;
    uint32_t *histograms;    /* n_units times stride: counts of the candidates, then of all other symbols */
    unsigned cost_shift;     /* costs in EM are in 2^cost_shift / 65536 bit, so that a unit's sum fits 32 bits */
    uint32_t exception_cost; /* estimate, in 1 / 65536 bit, without the label that stands in */
};

/* One way to divide a window in classes. */
struct division {
    uint32_t n_classes;
    uint8_t *classes;   /* of each unit */
    uint64_t counts[MAX_ANALYSED_CLASSES][MAX_STRIDE];
    struct ptwm_label_set set;
    uint64_t cost_bits;
};

/* ------------------------------------------------------------------------------------------------- histograms */

/* Adds the symbols to histogram, which has 2^bits bins. Alternating bins keep equal neighbours from waiting. */
static enum ptwm_status count_symbols(const struct ptwm_allocator *allocator, const uint16_t *symbols, size_t n,
                                      unsigned bits, uint32_t *histogram)
{
    size_t n_bins = (size_t)1 << bits, i = 0;
    if (n >= 16 * n_bins) {
        uint32_t *more = ptwm_calloc(allocator, 3 * n_bins, sizeof(*more));
        if (more == NULL)
            return PTWM_ERR_MEMORY;
        for (; i + 4 <= n; i += 4) {
            histogram[symbols[i]]++;
            more[symbols[i + 1]]++;
            more[n_bins + symbols[i + 2]]++;
            more[2 * n_bins + symbols[i + 3]]++;
        }
        for (size_t s = 0; s < n_bins; s++)
            histogram[s] += more[s] + more[n_bins + s] + more[2 * n_bins + s];
        ptwm_release(allocator, more, 3 * n_bins, sizeof(*more));
    }
    for (; i < n; i++)
        histogram[symbols[i]]++;
    return PTWM_OK;
}

/* The most frequent symbols, at most MAX_CANDIDATES, into window->candidates in ascending order. */
static void choose_candidates(struct window *window, const uint32_t *histogram)
{
    uint16_t best[MAX_CANDIDATES];
    uint32_t n_best = 0;
    for (uint32_t s = 0; s < (uint32_t)1 << window->bits; s++) {
        uint32_t i;
        if (histogram[s] == 0 || (n_best == MAX_CANDIDATES && histogram[s] <= histogram[best[n_best - 1]]))
            continue;
        n_best += n_best < MAX_CANDIDATES;
        for (i = n_best - 1; i > 0 && histogram[best[i - 1]] < histogram[s]; i--)
            best[i] = best[i - 1];
        best[i] = (uint16_t)s;
    }
    window->n_candidates = 0;
    for (uint32_t k = 0; k < n_best; k++) {
        uint32_t i;
        for (i = window->n_candidates++; i > 0 && window->candidates[i - 1] > best[k]; i--)
            window->candidates[i] = window->candidates[i - 1];
        window->candidates[i] = best[k];
    }
    window->stride = (window->n_candidates + 1 + 7) / 8 * 8;
}

/* The histogram of one unit's candidates; index maps symbols to them. */
static void count_unit(const uint8_t *index, const uint16_t *symbols, size_t m, uint32_t *histogram, uint32_t stride)
{
    uint32_t more[3][MAX_STRIDE] = { { 0 } };
    size_t i = 0;
    for (; i + 4 <= m; i += 4) {
        histogram[index[symbols[i]]]++;
        more[0][index[symbols[i + 1]]]++;
        more[1][index[symbols[i + 2]]]++;
        more[2][index[symbols[i + 3]]]++;
    }
    for (; i < m; i++)
        histogram[index[symbols[i]]]++;
    for (uint32_t k = 0; k < stride; k++)
        histogram[k] += more[0][k] + more[1][k] + more[2][k];
}

static size_t index_nbytes(const struct window *window)
{
    return (size_t)1 << window->bits;
}

static void release_window(struct window *window)
{
    ptwm_release(window->allocator, window->histograms, (uint64_t)window->n_units * window->stride,
                 sizeof(*window->histograms));
}

/* Counts everything that the rest of the analysis looks at. */
static enum ptwm_status count_window(struct window *window, const uint16_t *symbols)
{
    size_t n_bins = (size_t)1 << window->bits;
    uint32_t *histogram = ptwm_calloc(window->allocator, n_bins, sizeof(*histogram));
    uint8_t *index = ptwm_alloc(window->allocator, index_nbytes(window), 1);
    enum ptwm_status status = PTWM_ERR_MEMORY;
    if (histogram != NULL && index != NULL)
        status = count_symbols(window->allocator, symbols, window->n, window->bits, histogram);
    if (status == PTWM_OK) {
        choose_candidates(window, histogram);
        window->histograms = ptwm_calloc(window->allocator, (uint64_t)window->n_units * window->stride,
                                         sizeof(*window->histograms));
        status = window->histograms != NULL ? PTWM_OK : PTWM_ERR_MEMORY;
    }
    if (status == PTWM_OK) {
        memset(index, (int)window->n_candidates, index_nbytes(window));
        for (uint32_t k = 0; k < window->n_candidates; k++)
            index[window->candidates[k]] = (uint8_t)k;
        for (size_t u = 0; u < window->n_units; u++) {
            size_t begin = u * window->unit, m = window->n - begin < window->unit ? window->n - begin : window->unit;
            count_unit(index, symbols + begin, m, window->histograms + u * window->stride, window->stride);
        }
    }
    ptwm_release(window->allocator, histogram, n_bins, sizeof(*histogram));
    ptwm_release(window->allocator, index, index_nbytes(window), 1);
    return status;
}

/* ------------------------------------------------------------------------------------------------- classes */

/* Assigns each step-th unit to the class that costs least, and counts the classes anew. Costs are below 2^16. */
static void assign(const struct window *window, struct division *division, const uint32_t (*costs)[MAX_STRIDE],
                   size_t step)
{
    uint32_t stride = window->stride;
    memset(division->counts, 0, sizeof(division->counts));
    for (size_t u = 0; u < window->n_units; u += step) {
        const uint32_t *histogram = window->histograms + u * stride;
        uint32_t best_cost = UINT32_MAX, best = 0;
        for (uint32_t z = 0; z < division->n_classes; z++) {
            uint32_t cost = 0;
            for (uint32_t k = 0; k < stride; k++)
                cost += histogram[k] * costs[z][k];
            if (cost < best_cost) {
                best_cost = cost;
                best = z;
            }
        }
        division->classes[u] = (uint8_t)best;
        for (uint32_t k = 0; k < stride; k++)
            division->counts[best][k] += histogram[k];
    }
}

/* A cost for use in assign. */
static uint32_t scaled_cost(const struct window *window, uint64_t cost)
{
    uint64_t limit = 256 * (uint64_t)PTWM_LOG2_ONE - 1;
    return (uint32_t)((cost < limit ? cost : limit) >> window->cost_shift);
}

/* What symbols would cost with the frequencies of a class, before it has tables. */
static void estimate_costs(const struct window *window, const struct division *division, uint32_t (*costs)[MAX_STRIDE])
{
    for (uint32_t z = 0; z < division->n_classes; z++) {
        uint64_t total = 0;
        for (uint32_t k = 0; k < window->stride; k++)
            total += 4 * division->counts[z][k] + 1;
        for (uint32_t k = 0; k < window->stride; k++) {
            uint64_t cost = ptwm_log2_fixed(total) - ptwm_log2_fixed(4 * division->counts[z][k] + 1);
            uint64_t most = window->exception_cost;
            costs[z][k] = scaled_cost(window, k < window->n_candidates && cost < most ? cost : most);
        }
    }
}

/* The mean of a unit's candidates in units of 1 / 32, below 32 * 64. By index, so that outliers are near. */
static uint32_t mean_index(const struct window *window, size_t u)
{
    const uint32_t *histogram = window->histograms + u * window->stride;
    uint64_t sum = 0, count = 0;
    for (uint32_t k = 0; k < window->n_candidates; k++) {
        sum += (uint64_t)histogram[k] * k;
        count += histogram[k];
    }
    return count > 0 ? (uint32_t)(sum * 32 / count) : 0;
}

enum { N_MEANS = 32 * MAX_STRIDE };

/* Cuts the units in classes of the same size by their means, and counts the classes. */
static void start_division(const struct window *window, struct division *division, const uint16_t *means, size_t step)
{
    uint32_t n_of_mean[N_MEANS] = { 0 };
    uint8_t class_of_mean[N_MEANS];
    size_t total = 0, below = 0;
    for (size_t u = 0; u < window->n_units; u += step, total++)
        n_of_mean[means[u]]++;
    for (uint32_t i = 0; i < N_MEANS; i++) {
        class_of_mean[i] = (uint8_t)((below + n_of_mean[i] / 2) * division->n_classes / (total + 1));
        below += n_of_mean[i];
    }
    memset(division->counts, 0, sizeof(division->counts));
    for (size_t u = 0; u < window->n_units; u += step) {
        uint64_t *counts = division->counts[class_of_mean[means[u]]];
        for (uint32_t k = 0; k < window->stride; k++)
            counts[k] += window->histograms[u * window->stride + k];
    }
}

/* ------------------------------------------------------------------------------------------------- tables */

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
static uint32_t drop_labels(const struct window *window, uint32_t *labels, uint64_t *counts, uint32_t n)
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
            uint64_t as_exception = counts[i] * ((uint64_t)window->exception_cost + label_cost(frequencies[top]));
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

/* The candidates that become labels of a class, ascending, with their counts; returns their number, perhaps 0. */
static uint32_t choose_labels(const struct window *window, const uint64_t *counts, uint32_t *labels, uint64_t *own)
{
    uint64_t threshold = 0;
    uint32_t n = 0, n_above;
    /* With more than 32 symbols in use, those that are rarer than the 32nd go; of equals the later ones. */
    do {
        uint64_t next = UINT64_MAX;
        n_above = 0;
        for (uint32_t k = 0; k < window->n_candidates; k++)
            if (counts[k] > threshold) {
                n_above++;
                next = counts[k] < next ? counts[k] : next;
            }
        if (n_above > PTWM_MAX_LABELS)
            threshold = next;
    } while (n_above > PTWM_MAX_LABELS);
    for (uint32_t k = 0, spare = PTWM_MAX_LABELS - n_above; k < window->n_candidates; k++) {
        bool fills = threshold > 0 && counts[k] == threshold && spare > 0;
        if (counts[k] > threshold || fills) {
            labels[n] = k;
            own[n++] = counts[k];
            spare -= fills;
        }
    }
    return drop_labels(window, labels, own, n);
}

/* A table needs two labels. */
static void build_small_table(const struct window *window, uint32_t symbol, struct ptwm_label_table *table)
{
    uint32_t last = ((uint32_t)1 << window->bits) - 1;
    bool is_first = symbol < last;
    table->n_labels = 2;
    table->symbol[0] = (uint16_t)(is_first ? symbol : symbol - 1);
    table->symbol[1] = (uint16_t)(table->symbol[0] + 1);
    table->frequency[is_first ? 0 : 1] = PTWM_FREQUENCY_TOTAL - PTWM_FREQUENCY_GRANULE;
    table->frequency[is_first ? 1 : 0] = PTWM_FREQUENCY_GRANULE;
}

static void build_table(const struct window *window, const uint64_t *counts, struct ptwm_label_table *table)
{
    uint32_t labels[PTWM_MAX_LABELS], frequencies[PTWM_MAX_LABELS];
    uint64_t own[PTWM_MAX_LABELS];
    uint32_t n = choose_labels(window, counts, labels, own);
    memset(table, 0, sizeof(*table));
    if (n < 2) {
        build_small_table(window, window->candidates[n == 1 ? labels[0] : 0], table);
        return;
    }
    normalise(own, n, frequencies);
    table->n_labels = n;
    for (uint32_t i = 0; i < n; i++) {
        table->symbol[i] = window->candidates[labels[i]];
        table->frequency[i] = (uint16_t)(frequencies[i] * PTWM_FREQUENCY_GRANULE);
    }
}

/* What each candidate costs with a table, in 1 / 65536 bit; exceptions with the label that stands in. */
static void table_costs(const struct window *window, const struct ptwm_label_table *table, uint64_t *costs)
{
    uint32_t best = 0, label = 0;
    uint64_t exception;
    for (uint32_t i = 1; i < table->n_labels; i++)
        best = table->frequency[i] > table->frequency[best] ? i : best;
    exception = (uint64_t)window->exception_cost + label_cost(table->frequency[best] / PTWM_FREQUENCY_GRANULE);
    for (uint32_t k = 0; k < window->stride; k++) {
        costs[k] = exception;
        if (k >= window->n_candidates)
            continue;
        while (label < table->n_labels && table->symbol[label] < window->candidates[k])
            label++;
        if (label < table->n_labels && table->symbol[label] == window->candidates[k])
            costs[k] = label_cost(table->frequency[label] / PTWM_FREQUENCY_GRANULE);
    }
}

/* ------------------------------------------------------------------------------------------------- divisions */

/* Removes classes that no unit has. */
static void drop_empty_classes(const struct window *window, struct division *division)
{
    uint8_t new_class[MAX_ANALYSED_CLASSES] = { 0 };
    uint32_t kept = 0;
    for (uint32_t z = 0; z < division->n_classes; z++) {
        uint64_t total = 0;
        for (uint32_t k = 0; k < window->stride; k++)
            total += division->counts[z][k];
        if (total == 0)
            continue;
        new_class[z] = (uint8_t)kept;
        memmove(division->counts[kept++], division->counts[z], sizeof(division->counts[z]));
    }
    if (kept == division->n_classes)
        return;
    division->n_classes = kept;
    for (size_t u = 0; u < window->n_units; u++)
        division->classes[u] = new_class[division->classes[u]];
}

static void build_set(const struct window *window, struct division *division)
{
    drop_empty_classes(window, division);
    memset(&division->set, 0, sizeof(division->set));
    division->set.n_classes = division->n_classes;
    for (uint32_t z = 0; z < division->n_classes; z++)
        build_table(window, division->counts[z], &division->set.classes[z]);
}

/* The size of everything in bits. */
static uint64_t division_cost(const struct window *window, const struct division *division)
{
    uint64_t bits = 8 + (uint64_t)window->n_units * ptwm_ceil_log2(division->n_classes);
    uint64_t n_heads = ptwm_ceil_div(window->n, CHUNK_SYMBOLS);
    uint64_t n_lanes = window->n >= 16384 ? 128 : window->n >= 1024 ? 32 : 4;
    for (uint32_t z = 0; z < division->n_classes; z++) {
        uint64_t costs[MAX_STRIDE], sum = 0;
        table_costs(window, &division->set.classes[z], costs);
        for (uint32_t k = 0; k < window->stride; k++)
            sum += division->counts[z][k] * costs[k];
        bits += sum / PTWM_LOG2_ONE + 8 * ptwm_label_table_nbytes(&division->set.classes[z]);
    }
    /* A lane's state takes 32 bits, of which the coded symbols' information fills 8 on average. */
    return bits + n_heads * (24 * n_lanes + 64);
}

/* How many symbols of a division are exceptions. */
static uint64_t count_exceptions(const struct window *window, const struct division *division)
{
    uint64_t n = 0;
    for (uint32_t z = 0; z < division->n_classes; z++) {
        uint64_t costs[MAX_STRIDE];
        table_costs(window, &division->set.classes[z], costs);
        for (uint32_t k = 0; k < window->stride; k++)
            n += costs[k] >= window->exception_cost ? division->counts[z][k] : 0;
    }
    return n;
}

/* What one of n exceptions costs: a distance and a symbol. */
static void estimate_exception(struct window *window, uint64_t n)
{
    uint64_t distance = window->n / (n + 1);
    window->exception_cost =
        (uint32_t)(8 * ptwm_varint_nbytes(distance * 3 / 4) + (window->bits > 8 ? 16 : 8)) * PTWM_LOG2_ONE;
}

static void divide(struct window *window, struct division *division, const uint16_t *means)
{
    uint32_t costs[MAX_ANALYSED_CLASSES][MAX_STRIDE];
    size_t step = window->n_units / SUBSET_UNITS + 1;
    estimate_exception(window, window->n / 10000);
    start_division(window, division, means, step);
    for (unsigned round = 0; round < SUBSET_ROUNDS + FULL_ROUNDS && division->n_classes > 1; round++) {
        estimate_costs(window, division, costs);
        assign(window, division, (const uint32_t(*)[MAX_STRIDE])costs, round < SUBSET_ROUNDS ? step : 1);
    }
    if (division->n_classes == 1) {
        memset(costs, 0, sizeof(costs));
        assign(window, division, (const uint32_t(*)[MAX_STRIDE])costs, 1);
    }
    for (unsigned round = 0;; round++) {
        build_set(window, division);
        estimate_exception(window, count_exceptions(window, division));
        if (round == REFINE_ROUNDS)
            break;
        if (division->n_classes == 1)
            continue;
        for (uint32_t z = 0; z < division->n_classes; z++) {
            uint64_t exact[MAX_STRIDE];
            table_costs(window, &division->set.classes[z], exact);
            for (uint32_t k = 0; k < window->stride; k++)
                costs[z][k] = scaled_cost(window, exact[k]);
        }
        assign(window, division, (const uint32_t(*)[MAX_STRIDE])costs, 1);
    }
    division->cost_bits = division_cost(window, division);
}

/* Tries 1, 2 and 4 classes and stores the best. Scratch: means and trial have n_units each. */
static void choose_division(struct window *window, uint16_t *means, uint8_t *trial, struct ptwm_label_set *set,
                            uint8_t *classes, uint64_t *cost_bits)
{
    struct division division = { 0 };
    *cost_bits = UINT64_MAX;
    for (size_t u = 0; u < window->n_units; u++)
        means[u] = (uint16_t)mean_index(window, u);
    for (uint32_t n_classes = 1; n_classes <= MAX_ANALYSED_CLASSES && n_classes <= window->n_units; n_classes *= 2) {
        division.n_classes = n_classes;
        division.classes = trial;
        divide(window, &division, means);
        if (division.cost_bits < *cost_bits) {
            *cost_bits = division.cost_bits;
            *set = division.set;
            memcpy(classes, trial, window->n_units);
        }
    }
}

enum ptwm_status ptwm_label_find_set(const struct ptwm_allocator *allocator, const uint16_t *symbols, size_t n,
                                     unsigned bits, uint32_t unit, struct ptwm_label_set *set, uint8_t *classes,
                                     uint64_t *cost_bits)
{
    struct window window = { 0 };
    uint16_t *means;
    uint8_t *trial;
    enum ptwm_status status;
    window.allocator = allocator;
    window.n = n;
    window.bits = bits;
    window.unit = unit;
    window.n_units = (size_t)ptwm_ceil_div(n, unit);
    /* A cost is below 256 bits, a unit at most 2^20 elements: 8 bits behind the point up to 2^16 elements, else 4. */
    window.cost_shift = unit <= 65536 ? 8 : 12;
    means = ptwm_alloc(allocator, window.n_units, sizeof(*means));
    trial = ptwm_alloc(allocator, window.n_units, 1);
    status = means != NULL && trial != NULL ? count_window(&window, symbols) : PTWM_ERR_MEMORY;
    if (status == PTWM_OK)
        choose_division(&window, means, trial, set, classes, cost_bits);
    release_window(&window);
    ptwm_release(allocator, means, window.n_units, sizeof(*means));
    ptwm_release(allocator, trial, window.n_units, 1);
    return status;
}

/* ------------------------------------------------------------------------------------------------- shifts */

enum { SHIFT_WINDOW = 64 };

/* The SHIFT_WINDOW neighbouring symbols that hold the most elements: where columns' means are taken. */
static uint32_t find_shift_window(const uint32_t *histogram, uint32_t n_bins)
{
    uint64_t sum = 0, best_sum = 0;
    uint32_t best = 0;
    for (uint32_t s = 0; s < n_bins; s++) {
        sum += histogram[s];
        if (s >= SHIFT_WINDOW)
            sum -= histogram[s - SHIFT_WINDOW];
        if (sum > best_sum) {
            best_sum = sum;
            best = s + 1 >= SHIFT_WINDOW ? s + 1 - SHIFT_WINDOW : 0;
        }
    }
    return best;
}

/* Sums of the symbols in first .. first + width - 1, less first, and their number, for each column. */
static void sum_columns(const uint16_t *symbols, size_t n_rows, uint32_t n_columns, uint32_t first, uint32_t width,
                        uint32_t *sums, uint32_t *counts)
{
    /* Sums fit 32 bits for 2^26 rows; of more, some are left out. */
    size_t step = n_rows / (1 << 26) + 1;
    for (size_t row = 0; row < n_rows; row += step) {
        const uint16_t *symbol = symbols + row * n_columns;
        for (uint32_t c = 0; c < n_columns; c++) {
            uint32_t value = symbol[c] - first, inside = value < width;
            sums[c] += inside ? value : 0;
            counts[c] += inside;
        }
    }
}

/* round((sum / count - mean) / step) * step, the mean in units of 1 / 65536. */
static int column_shift(uint32_t sum, uint32_t count, uint64_t mean, uint32_t step)
{
    int64_t difference, scale = (int64_t)step << 16, shift, limit = 127 / step * step;
    if (count == 0)
        return 0;
    difference = (int64_t)(((uint64_t)sum << 16) / count) - (int64_t)mean;
    shift = (difference >= 0 ? difference + scale / 2 : difference - scale / 2) / scale * (int64_t)step;
    return (int)(shift > limit ? limit : shift < -limit ? -limit : shift);
}

static void find_column_shifts(const uint32_t *sums, const uint32_t *counts, uint32_t n_columns, uint32_t step,
                               int16_t *shift)
{
    uint64_t sum = 0, count = 0, mean;
    for (uint32_t c = 0; c < n_columns; c++) {
        sum += sums[c];
        count += counts[c];
    }
    /* sum < 2^46: in two steps, for the fraction's sake. */
    mean = count > 0 ? (sum / count << 16) + (sum % count << 16) / count : 0;
    for (uint32_t c = 0; c < n_columns; c++)
        shift[c] = (int16_t)column_shift(sums[c], counts[c], mean, step);
}

static void count_shifted(const uint16_t *symbols, size_t n_rows, uint32_t n_columns, unsigned bits,
                          const int16_t *shift, uint32_t *histogram)
{
    uint32_t mask = ((uint32_t)1 << bits) - 1;
    for (size_t row = 0; row < n_rows; row++, symbols += n_columns)
        for (uint32_t c = 0; c < n_columns; c++)
            histogram[((uint32_t)symbols[c] - (uint32_t)shift[c]) & mask]++;
}

enum ptwm_status ptwm_label_find_shifts(const struct ptwm_allocator *allocator, const uint16_t *symbols, size_t n_rows,
                                        uint32_t n_columns, unsigned bits, uint32_t step, int16_t *shift, bool *pays)
{
    uint32_t n_bins = (uint32_t)1 << bits, first;
    uint32_t *plain = ptwm_calloc(allocator, n_bins, sizeof(*plain));
    uint32_t *shifted = ptwm_calloc(allocator, n_bins, sizeof(*shifted));
    uint32_t *sums = ptwm_calloc(allocator, n_columns, sizeof(*sums));
    uint32_t *counts = ptwm_calloc(allocator, n_columns, sizeof(*counts));
    enum ptwm_status status = PTWM_ERR_MEMORY;
    *pays = false;
    if (plain != NULL && shifted != NULL && sums != NULL && counts != NULL)
        status = count_symbols(allocator, symbols, n_rows * n_columns, bits, plain);
    if (status == PTWM_OK) {
        uint64_t before = ptwm_entropy_fixed(plain, n_bins), after, own;
        first = find_shift_window(plain, n_bins);
        /* Zeros, of pruned weights for one, say nothing about a column's scale. */
        first += first == 0 && plain[0] > plain[1] ? 1 : 0;
        sum_columns(symbols, n_rows, n_columns, first, SHIFT_WINDOW, sums, counts);
        find_column_shifts(sums, counts, n_columns, step, shift);
        count_shifted(symbols, n_rows, n_columns, bits, shift, shifted);
        after = ptwm_entropy_fixed(shifted, n_bins);
        own = 8 * ptwm_label_shifts_nbytes(shift, n_columns) * PTWM_LOG2_ONE;
        *pays = after + own < before;
    }
    ptwm_release(allocator, plain, n_bins, sizeof(*plain));
    ptwm_release(allocator, shifted, n_bins, sizeof(*shifted));
    ptwm_release(allocator, sums, n_columns, sizeof(*sums));
    ptwm_release(allocator, counts, n_columns, sizeof(*counts));
    return status;
}
