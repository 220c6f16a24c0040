/*
 * Dividing a window's units in classes by expectation maximisation with hard assignments: each unit goes to the class that
 * codes it with the fewest bits, then each class's costs follow from the units that it has. The start is by scale: units in
 * order of their mean symbol, cut in equal parts. The first rounds look at some of the units only.
 */
#include "cpu_features.h"
#include "label_analyse.h"
#include "label_encode.h"
#include "log2_fixed.h"

enum {
    SUBSET_UNITS = 256,       /* about so many take part in the first rounds */
    SUBSET_ROUNDS = 3,
    MOST_COST = 127 * 256,    /* in 1 / 256 bit; fits 15 bits, and the sum of a unit's 31 */
    CHUNK_SYMBOLS = 1 << 19,  /* for which a head is counted */
    TYPICAL_LABEL_BITS = 12,  /* of a label in a table */
    N_MEANS = 32 * PTWM_N_BINS
};

/* One way to divide a window in classes. */
struct division {
    uint32_t n_classes;
    uint8_t *classes; /* of each unit */
    uint32_t counts[PTWM_ANALYSED_CLASSES][PTWM_N_BINS];
    uint32_t second[PTWM_ANALYSED_CLASSES][PTWM_N_BINS]; /* of those, the ones in columns of phase 1 */
    struct ptwm_label_set set;
    uint64_t cost_bits;
};

/* ------------------------------------------------------------------------------------------------- assignment */

static void assign_c99(const uint16_t *histograms, size_t n_units, size_t step,
                       const int16_t costs[PTWM_ANALYSED_CLASSES][PTWM_N_BINS], uint8_t *classes,
                       uint32_t counts[PTWM_ANALYSED_CLASSES][PTWM_N_BINS])
{
    for (size_t u = 0; u < n_units; u += step) {
        const uint16_t *histogram = histograms + u * PTWM_N_BINS;
        int32_t best_cost = INT32_MAX;
        uint32_t best = 0;
        for (uint32_t z = 0; z < PTWM_ANALYSED_CLASSES; z++) {
            int32_t cost = 0;
            for (uint32_t b = 0; b < PTWM_N_BINS; b++)
                cost += (int16_t)histogram[b] * costs[z][b];
            if (cost < best_cost) {
                best_cost = cost;
                best = z;
            }
        }
        classes[u] = (uint8_t)best;
        for (uint32_t b = 0; b < PTWM_N_BINS; b++)
            counts[best][b] += histogram[b];
    }
}

#if defined(PTWM_X86)
#include "x86/label_analyse_impl.h"
#endif

void ptwm_label_assign(const uint16_t *histograms, size_t n_units, size_t step,
                       const int16_t costs[PTWM_ANALYSED_CLASSES][PTWM_N_BINS], uint8_t *classes,
                       uint32_t counts[PTWM_ANALYSED_CLASSES][PTWM_N_BINS])
{
#if defined(PTWM_X86)
    if (ptwm_cpu_level() == PTWM_CPU_AVX512) {
        assign_avx512(histograms, n_units, step, costs, classes, counts);
        return;
    }
    if (ptwm_cpu_level() == PTWM_CPU_AVX2) {
        assign_avx2(histograms, n_units, step, costs, classes, counts);
        return;
    }
#endif
    assign_c99(histograms, n_units, step, costs, classes, counts);
}

static void assign(const struct ptwm_label_counted *counted, struct division *division,
                   int16_t costs[PTWM_ANALYSED_CLASSES][PTWM_N_BINS], size_t step)
{
    /* Classes that there are not cost the most; of equals the first one wins, which there is. */
    for (uint32_t z = division->n_classes; z < PTWM_ANALYSED_CLASSES; z++)
        for (uint32_t b = 0; b < PTWM_N_BINS; b++)
            costs[z][b] = MOST_COST;
    memset(division->counts, 0, sizeof division->counts);
    ptwm_label_assign(counted->histograms, counted->n_units, step,
                      (const int16_t(*)[PTWM_N_BINS])costs, division->classes, division->counts);
}

static int16_t scaled_cost(uint64_t cost)
{
    cost /= PTWM_LOG2_ONE / 256;
    return (int16_t)(cost < MOST_COST ? cost : MOST_COST);
}

/* What symbols would cost with the frequencies of a class, before it has tables; returns what all of the class would. */
static uint64_t estimate_costs(const struct ptwm_table_maker *maker, const uint32_t *counts, int16_t *costs)
{
    uint64_t total = 0, sum = 0, log_total;

    for (uint32_t b = 0; b < PTWM_N_BINS; b++)
        total += 4 * (uint64_t)counts[b] + 1;
    log_total = ptwm_log2_fixed(total);
    for (uint32_t b = 0; b < PTWM_N_BINS; b++) {
        /* log2(1) is 0, and most bins are empty. */
        const uint64_t own = log_total - (counts[b] > 0 ? ptwm_log2_fixed(4 * (uint64_t)counts[b] + 1) : 0);
        const uint64_t cost = b != PTWM_OTHER_BIN && own < maker->exception_cost ? own : maker->exception_cost;
        costs[b] = scaled_cost(cost);
        sum += counts[b] * cost;
    }
    return sum;
}

/* ------------------------------------------------------------------------------------------------- the start */

/* The mean of a unit's bins in units of 1 / 32, below 32 * 64. By bin, so that outliers are near. */
static uint32_t mean_bin(const uint16_t *histogram)
{
    int32_t sum = 0, n = 0;
    uint32_t count;

    for (int16_t b = 0; b < PTWM_SYMBOL_BINS; b++) { /* products of 16 bits, which compilers vectorise well */
        sum += (int16_t)histogram[b] * b;
        n += histogram[b];
    }
    count = (uint32_t)n;
    return count > 0 ? (uint32_t)((uint64_t)(uint32_t)sum * 32 / count) : 0;
}

/* Cuts each step-th unit in classes of the same size by their means, and counts the classes. */
static enum ptwm_status count_start(const struct ptwm_label_counted *counted, size_t step,
                                    uint32_t counts[PTWM_ANALYSED_CLASSES][PTWM_N_BINS])
{
    const size_t n = (size_t)ptwm_ceil_div(counted->n_units, step);
    uint16_t *means = ptwm_alloc(counted->allocator, n, sizeof *means);
    uint32_t n_of_mean[N_MEANS] = { 0 };
    uint8_t class_of_mean[N_MEANS];
    size_t below = 0;

    if (means == NULL)
        return PTWM_ERR_MEMORY;
    for (size_t i = 0; i < n; i++) {
        means[i] = (uint16_t)mean_bin(counted->histograms + i * step * PTWM_N_BINS);
        n_of_mean[means[i]]++;
    }
    for (uint32_t i = 0; i < N_MEANS; i++) {
        if (n_of_mean[i] == 0) /* as nearly all, for which a division is too much */
            continue;
        class_of_mean[i] = (uint8_t)((below + n_of_mean[i] / 2) * PTWM_ANALYSED_CLASSES / (n + 1));
        below += n_of_mean[i];
    }
    for (size_t i = 0; i < n; i++) {
        uint32_t *own = counts[class_of_mean[means[i]]];
        for (uint32_t b = 0; b < PTWM_N_BINS; b++)
            own[b] += counted->histograms[i * step * PTWM_N_BINS + b];
    }
    ptwm_release(counted->allocator, means, n, sizeof *means);
    return PTWM_OK;
}

/* The start with division->n_classes classes: neighbours are united. */
static void start_division(const uint32_t start[PTWM_ANALYSED_CLASSES][PTWM_N_BINS], struct division *division)
{
    memset(division->counts, 0, sizeof division->counts);
    for (uint32_t z = 0; z < PTWM_ANALYSED_CLASSES; z++)
        for (uint32_t b = 0; b < PTWM_N_BINS; b++)
            division->counts[z * division->n_classes / PTWM_ANALYSED_CLASSES][b] += start[z][b];
}

/* ------------------------------------------------------------------------------------------------- divisions */

/* What one of n exceptions costs: a distance and a symbol. */
static void estimate_exception(const struct ptwm_label_counted *counted, struct ptwm_table_maker *maker, uint64_t n)
{
    uint64_t distance = counted->n / (n + 1);
    maker->exception_cost =
        (uint32_t)(8 * ptwm_varint_nbytes(distance * 3 / 4) + (counted->bits > 8 ? 16 : 8)) * PTWM_LOG2_ONE;
}

/* Removes classes that no unit has. */
static void drop_empty_classes(const struct ptwm_label_counted *counted, struct division *division)
{
    uint8_t new_class[PTWM_ANALYSED_CLASSES] = { 0 };
    uint32_t kept = 0;

    for (uint32_t z = 0; z < division->n_classes; z++) {
        uint64_t total = 0;
        for (uint32_t b = 0; b < PTWM_N_BINS; b++)
            total += division->counts[z][b];
        if (total == 0)
            continue;
        new_class[z] = (uint8_t)kept;
        memmove(division->second[kept], division->second[z], sizeof division->second[z]);
        memmove(division->counts[kept++], division->counts[z], sizeof division->counts[z]);
    }
    if (kept == division->n_classes)
        return;
    division->n_classes = kept;
    for (size_t u = 0; u < counted->n_units; u++)
        division->classes[u] = new_class[division->classes[u]];
}

static void make_tables(const struct ptwm_label_counted *counted, const struct ptwm_table_maker *maker,
                        struct division *division)
{
    drop_empty_classes(counted, division);
    memset(&division->set, 0, sizeof division->set);
    division->set.n_classes = division->n_classes;
    for (uint32_t z = 0; z < division->n_classes; z++) {
        ptwm_label_make_table(maker, division->counts[z], &division->set.classes[z]);
        if (counted->second != NULL)
            ptwm_label_divide_table(maker, division->counts[z], division->second[z], &division->set.classes[z]);
    }
}

/* What the symbols that are counted cost with a table; *n_exceptions: how many of them are exceptions. */
static uint64_t symbols_cost(const struct ptwm_table_maker *maker, const struct ptwm_label_table *table,
                             const uint16_t *frequency, const uint32_t *counts, uint64_t *n_exceptions)
{
    uint64_t costs[PTWM_N_BINS], sum = 0;

    ptwm_label_table_costs(maker, table, frequency, costs);
    for (uint32_t b = 0; b < PTWM_N_BINS; b++) {
        sum += counts[b] * costs[b];
        *n_exceptions += costs[b] >= maker->exception_cost ? counts[b] : 0;
    }
    return sum;
}

static uint64_t count_heads(size_t n)
{
    return ptwm_ceil_div(n, CHUNK_SYMBOLS);
}

uint64_t ptwm_label_carried_bits(size_t n, uint32_t unit)
{
    return count_heads(n) * 16 * ptwm_label_n_lanes(n, unit);
}

/* The size of everything in bits; *n_exceptions of the symbols are exceptions. */
static uint64_t division_cost(const struct ptwm_label_counted *counted, const struct ptwm_table_maker *maker,
                              const struct division *division, uint64_t *n_exceptions)
{
    uint64_t bits = 8 + (uint64_t)counted->n_units * ptwm_ceil_log2(division->n_classes);
    const uint64_t n_heads = count_heads(counted->n);
    uint64_t n_lanes = ptwm_label_n_lanes(counted->n, counted->unit);

    *n_exceptions = 0;
    for (uint32_t z = 0; z < division->n_classes; z++) {
        const struct ptwm_label_table *table = &division->set.classes[z];
        uint32_t first[PTWM_N_BINS];
        uint64_t sum;
        for (uint32_t b = 0; b < PTWM_N_BINS; b++)
            first[b] = division->counts[z][b] - division->second[z][b];
        sum = symbols_cost(maker, table, table->frequency, first, n_exceptions);
        if (counted->second != NULL)
            sum += symbols_cost(maker, table, table->second, division->second[z], n_exceptions);
        bits += sum / PTWM_LOG2_ONE + 8 * ptwm_label_table_nbytes(table, counted->second != NULL);
    }
    /* A lane's state takes 32 bits, of which the coded symbols' information fills 8 on average. */
    return bits + n_heads * (24 * n_lanes + 64);
}

/* Divides a subset of the units; leaves its classes' costs and returns an estimate of the whole window's size. */
static uint64_t divide_subset(const struct ptwm_label_counted *counted, const struct ptwm_table_maker *maker,
                              struct division *division,
                              const uint32_t start[PTWM_ANALYSED_CLASSES][PTWM_N_BINS], size_t step,
                              int16_t costs[PTWM_ANALYSED_CLASSES][PTWM_N_BINS])
{
    uint64_t n_counted = ptwm_ceil_div(counted->n_units, step), sum = 0, tables = 0;

    start_division(start, division);
    for (unsigned round = 0;; round++) {
        sum = 0;
        for (uint32_t z = 0; z < division->n_classes; z++)
            sum += estimate_costs(maker, division->counts[z], costs[z]);
        if (round == SUBSET_ROUNDS)
            break;
        assign(counted, division, costs, step);
    }
    for (uint32_t z = 0; z < division->n_classes; z++)
        for (uint32_t b = 0; b < PTWM_N_BINS; b++)
            tables += division->counts[z][b] > 0 ? TYPICAL_LABEL_BITS : 0;
    return sum / PTWM_LOG2_ONE * counted->n_units / n_counted + tables +
           (uint64_t)counted->n_units * ptwm_ceil_log2(division->n_classes);
}

/* Counts each class's elements in columns of phase 1, once all units have classes. */
static void count_second(const struct ptwm_label_counted *counted, struct division *division)
{
    memset(division->second, 0, sizeof division->second);
    for (size_t u = 0; counted->second != NULL && u < counted->n_units; u++) {
        uint32_t *counts = division->second[division->classes[u]];
        for (uint32_t b = 0; b < PTWM_N_BINS; b++)
            counts[b] += counted->second[u * PTWM_N_BINS + b];
    }
}

/*
 * Divides all units by costs and makes the tables. (Another round, with the tables' costs, would gain .00003 of the size for 4 %
 * of the time.)
 */
static void divide_all(const struct ptwm_label_counted *counted, struct division *division,
                       int16_t costs[PTWM_ANALYSED_CLASSES][PTWM_N_BINS])
{
    struct ptwm_table_maker maker = { counted->bins, counted->bits, 0 };
    uint64_t n_exceptions;

    estimate_exception(counted, &maker, counted->n / 10000);
    assign(counted, division, costs, 1);
    count_second(counted, division);
    make_tables(counted, &maker, division);
    (void)division_cost(counted, &maker, division, &n_exceptions);
    estimate_exception(counted, &maker, n_exceptions);
    make_tables(counted, &maker, division);
    (void)division_cost(counted, &maker, division, &n_exceptions);
    estimate_exception(counted, &maker, n_exceptions);
    division->cost_bits = division_cost(counted, &maker, division, &n_exceptions);
}

/* One class, with the counts of a division. */
static void unite(const struct ptwm_label_counted *counted, const struct division *division, struct division *whole)
{
    struct ptwm_table_maker maker = { counted->bins, counted->bits, 0 };
    uint64_t n_exceptions;

    memset(whole, 0, sizeof *whole);
    whole->n_classes = 1;
    for (uint32_t z = 0; z < division->n_classes; z++)
        for (uint32_t b = 0; b < PTWM_N_BINS; b++) {
            whole->counts[0][b] += division->counts[z][b];
            whole->second[0][b] += division->second[z][b];
        }
    estimate_exception(counted, &maker, counted->n / 10000);
    for (unsigned round = 0; round < 2; round++) {
        make_tables(counted, &maker, whole);
        (void)division_cost(counted, &maker, whole, &n_exceptions);
        estimate_exception(counted, &maker, n_exceptions);
    }
    whole->cost_bits = division_cost(counted, &maker, whole, &n_exceptions);
}

enum ptwm_status ptwm_label_divide(const struct ptwm_label_counted *counted, struct ptwm_label_set *set,
                                   uint8_t *classes, uint64_t *cost_bits, uint64_t *entropy_bits)
{
    const size_t step = counted->n_units / SUBSET_UNITS + 1;
    uint32_t start[PTWM_ANALYSED_CLASSES][PTWM_N_BINS] = { { 0 } };
    int16_t best_costs[PTWM_ANALYSED_CLASSES][PTWM_N_BINS] = { { 0 } };
    struct ptwm_table_maker maker = { counted->bins, counted->bits, 0 };
    struct division division = { 1, classes, { { 0 } }, { { 0 } }, { 0 }, 0 }, whole;
    uint64_t best = UINT64_MAX;
    uint32_t best_n_classes = 1;

    if (count_start(counted, step, start) != PTWM_OK)
        return PTWM_ERR_MEMORY;
    estimate_exception(counted, &maker, counted->n / 10000);
    for (uint32_t n = 2; n <= PTWM_ANALYSED_CLASSES && n <= counted->n_units; n *= 2) {
        int16_t costs[PTWM_ANALYSED_CLASSES][PTWM_N_BINS];
        uint64_t estimate;
        division.n_classes = n;
        estimate = divide_subset(counted, &maker, &division, (const uint32_t(*)[PTWM_N_BINS])start, step, costs);
        if (estimate < best) {
            best = estimate;
            best_n_classes = n;
            memcpy(best_costs, costs, sizeof costs);
        }
    }
    division.n_classes = best_n_classes;
    divide_all(counted, &division, best_costs);
    unite(counted, &division, &whole);
    *entropy_bits = ptwm_entropy_fixed(whole.counts[0], PTWM_N_BINS) / PTWM_LOG2_ONE;
    if (whole.cost_bits <= division.cost_bits) {
        memset(classes, 0, counted->n_units);
        *set = whole.set;
        *cost_bits = whole.cost_bits;
    } else {
        *set = division.set;
        *cost_bits = division.cost_bits;
    }
    return PTWM_OK;
}
