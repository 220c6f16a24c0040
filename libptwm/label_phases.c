/*
 * Phases: the scales of columns in half octaves, where an octave is two symbols. Twice as fine as shifts by whole
 * octaves, they take three quarters of what is left of the columns' scales, .04 bits an element at most.
 */
#include "label_analyse.h"
#include "log2_fixed.h"

enum {
    WINDOW = PTWM_SHIFT_WINDOW,
    MIN_ROWS = 64, /* of a sample: with fewer, a column's scale is not known to a quarter of an octave */
    ROUNDS = 2,
    MAX_HALVES = 126,
    ORIGIN = 256, /* of histograms of symbols of the window less shifts */
    N_SHIFTED = 2 * ORIGIN,
    MOST_COST = 127 * 256, /* in 1 / 256 bit */
    MIN_GAIN = 500,        /* one part in so many of all that is stored */
    TABLES_BITS = 1024     /* about what second frequencies take */
};

/* The square of a distance to the nearest multiple of unit, a power of 2; the distance is below 2^20. */
static uint32_t squared_rest(int32_t distance, uint32_t unit)
{
    const int32_t rest = (int32_t)(((uint32_t)(distance + (1 << 20)) + unit / 2) % unit) - (int32_t)(unit / 2);
    return (uint32_t)(rest * rest);
}

bool ptwm_label_phases_may_pay(const int32_t *difference, uint64_t element_bits,
                               const struct ptwm_column_search *search)
{
    const uint32_t n_columns = search->n_columns;
    uint64_t gain = 0;

    if (search->step != 2 || ptwm_label_sample_rows(search->n_rows, n_columns) < MIN_ROWS)
        return false;
    for (uint32_t c = 0; c < n_columns; c++) {
        const int32_t d = difference[c] / 256;
        gain += (search->pays ? squared_rest(d, 512) : (uint32_t)(d * d)) - squared_rest(d, 256);
    }
    /*
     * Coding normal variates whose scale is off by x octaves takes .69 x^2 bits more. gain is in (1 / 512 octave)^2, so
     * .69 of it / 4 is in 1 / 65536 bit for each column. Of that, real columns give less, a half or two thirds most often.
     */
    return gain * 173 / 1000 * 4 / 5 >= n_columns * element_bits / MIN_GAIN;
}

/* What is known of the columns, and what is tried. */
struct columns {
    uint32_t n;
    uint16_t *histograms; /* of the window's symbols, for each column */
    int16_t *halves;      /* the scale: twice the shift's octaves, plus the phase */
};

static uint32_t phase_of(int halves)
{
    return (uint32_t)halves & 1;
}

static int shift_of(int halves)
{
    return halves - (int)phase_of(halves);
}

static void count_columns(const struct columns *columns, const uint16_t *symbols, size_t n_rows, uint32_t first)
{
    for (size_t row = 0; row < n_rows; row++)
        for (uint32_t c = 0; c < columns->n; c++) {
            const uint32_t value = *symbols++ - first;
            if (value < WINDOW)
                columns->histograms[(size_t)c * WINDOW + value]++;
        }
}

static void add_shifted(uint32_t counts[N_SHIFTED], const uint16_t histogram[WINDOW], int shift)
{
    for (int i = 0; i < WINDOW; i++)
        counts[ORIGIN + i - shift] += histogram[i];
}

/* What coding all columns with shifts takes, in 1 / 65536 bit. */
static uint64_t cost_of_shifts(const struct columns *columns, const int16_t *shift)
{
    uint32_t counts[N_SHIFTED] = { 0 };

    for (uint32_t c = 0; c < columns->n; c++)
        add_shifted(counts, columns->histograms + (size_t)c * WINDOW, shift != NULL ? shift[c] : 0);
    return ptwm_entropy_fixed(counts, N_SHIFTED);
}

static void count_phases(const struct columns *columns, uint32_t counts[2][N_SHIFTED])
{
    memset(counts, 0, 2 * sizeof counts[0]);
    for (uint32_t c = 0; c < columns->n; c++)
        add_shifted(counts[phase_of(columns->halves[c])], columns->histograms + (size_t)c * WINDOW,
                    shift_of(columns->halves[c]));
}

static void find_costs(const uint32_t counts[N_SHIFTED], int16_t costs[N_SHIFTED])
{
    uint64_t total = N_SHIFTED;

    for (uint32_t i = 0; i < N_SHIFTED; i++)
        total += counts[i];
    for (uint32_t i = 0; i < N_SHIFTED; i++) {
        const uint32_t cost =
            (ptwm_log2_fixed(total) - ptwm_log2_fixed((uint64_t)counts[i] + 1)) / (PTWM_LOG2_ONE / 256);
        costs[i] = (int16_t)(cost < MOST_COST ? cost : MOST_COST);
    }
}

static int32_t column_cost(const uint16_t histogram[WINDOW], const int16_t *costs)
{
    int32_t cost = 0;

    for (int i = 0; i < WINDOW; i++)
        cost += (int16_t)histogram[i] * costs[i];
    return cost;
}

/* Moves each column by half an octave if that codes it with fewer bits. */
static void reassign(const struct columns *columns)
{
    uint32_t counts[2][N_SHIFTED];
    int16_t costs[2][N_SHIFTED];

    count_phases(columns, counts);
    find_costs(counts[0], costs[0]);
    find_costs(counts[1], costs[1]);
    for (uint32_t c = 0; c < columns->n; c++) {
        static const int moves[] = { 0, -1, 1 };
        const int now = columns->halves[c];
        int32_t best_cost = INT32_MAX;

        for (unsigned k = 0; k < 3; k++) {
            const int halves = now + moves[k];
            const int32_t cost = column_cost(columns->histograms + (size_t)c * WINDOW,
                                             costs[phase_of(halves)] + ORIGIN - shift_of(halves));
            if (cost < best_cost && halves >= -MAX_HALVES && halves <= MAX_HALVES) {
                best_cost = cost;
                columns->halves[c] = (int16_t)halves;
            }
        }
    }
}

static void start_halves(const struct columns *columns, const int32_t *difference)
{
    for (uint32_t c = 0; c < columns->n; c++) {
        /* Rounded; the window bounds it by 64. */
        const int32_t halves = (difference[c] + (64 << 16) + (1 << 15)) / 65536 - 64;
        columns->halves[c] = (int16_t)halves;
    }
}

/* Whether phases gain enough over the shifts found so far, by a sample of n_sampled rows. */
static bool gain_enough(const struct columns *columns, size_t n_sampled, uint64_t element_bits,
                        const struct ptwm_column_search *search)
{
    const uint64_t before = cost_of_shifts(columns, search->pays ? search->shift : NULL);
    const uint64_t n = (uint64_t)search->n_rows * search->n_columns;
    uint32_t counts[2][N_SHIFTED];
    uint64_t after, gain;

    count_phases(columns, counts);
    after = ptwm_entropy_fixed(counts[0], N_SHIFTED) + ptwm_entropy_fixed(counts[1], N_SHIFTED);
    /* Choosing a column's phase by its sample makes that some .7 bits smaller even if it means nothing. */
    after += (uint64_t)search->n_columns * PTWM_LOG2_ONE;
    if (after >= before)
        return false;
    gain = (before - after) / PTWM_LOG2_ONE * search->n_rows / n_sampled;
    return gain >= n * element_bits / PTWM_LOG2_ONE / MIN_GAIN + search->n_columns + TABLES_BITS;
}

enum ptwm_status ptwm_label_find_sampled_phases(const struct ptwm_allocator *allocator, const uint16_t *symbols,
                                                uint32_t first, const int32_t *difference, uint64_t element_bits,
                                                struct ptwm_column_search *search)
{
    const size_t n_sampled = ptwm_label_sample_rows(search->n_rows, search->n_columns);
    const uint64_t n_counts = (uint64_t)search->n_columns * WINDOW;
    const struct columns columns = { search->n_columns, ptwm_calloc(allocator, n_counts, sizeof *columns.histograms),
                                     ptwm_alloc(allocator, search->n_columns, sizeof *columns.halves) };
    enum ptwm_status status = PTWM_ERR_MEMORY;

    if (columns.histograms != NULL && columns.halves != NULL) {
        status = PTWM_OK;
        count_columns(&columns, symbols, n_sampled, first);
        start_halves(&columns, difference);
        for (unsigned round = 0; round < ROUNDS; round++)
            reassign(&columns);
        search->has_phases = gain_enough(&columns, n_sampled, element_bits, search);
    }
    for (uint32_t c = 0; search->has_phases && c < columns.n; c++) {
        search->shift[c] = (int16_t)shift_of(columns.halves[c]);
        search->phase[c] = (uint8_t)(PTWM_PHASE * phase_of(columns.halves[c]));
    }
    search->pays = search->pays || search->has_phases;
    ptwm_release(allocator, columns.histograms, n_counts, sizeof *columns.histograms);
    ptwm_release(allocator, columns.halves, search->n_columns, sizeof *columns.halves);
    return status;
}
