/*
 * Column shifts: how much larger the weights of a column are than those of others, in symbols.
 */
#include "cpu_features.h"
#include "label_analyse.h"
#include "log2_fixed.h"

enum {
    SHIFT_WINDOW = PTWM_SHIFT_WINDOW,
    MAX_ROWS = 256, /* of a sample: a column's mean is then known to a fraction of a symbol */
    MAX_SAMPLED_ELEMENTS = 1 << 20,
    COUNTED_ELEMENTS = 1 << 13, /* for the question whether shifts pay */
    MIN_GAIN = 2000             /* one part in so many of all that is stored: adding shifts takes 4 % of decoding */
};

/* ------------------------------------------------------------------------------------------------- the sample */

size_t ptwm_label_sample_rows(size_t n_rows, uint32_t n_columns)
{
    size_t n = MAX_SAMPLED_ELEMENTS / n_columns;
    n = n > MAX_ROWS ? MAX_ROWS : n < 8 ? 8 : n;
    return n < n_rows ? n : n_rows;
}

size_t ptwm_label_sample_row(size_t n_rows, uint32_t n_columns, size_t i)
{
    return (size_t)((uint64_t)n_rows * i / ptwm_label_sample_rows(n_rows, n_columns));
}

/* ------------------------------------------------------------------------------------------------- shifts */

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

/*
 * Sums of the symbols in first .. first + SHIFT_WINDOW - 1, less first, and their number, for each column. 16 bits hold
 * the sums of MAX_ROWS rows, and let compilers, which vectorise this, use short vectors. Four rows at a time take half
 * as long as one.
 */
#define ADD_ROW(row)                                                                                                   \
    do {                                                                                                               \
        const uint16_t value = (uint16_t)((row)[c] - first), inside = (uint16_t)(value < SHIFT_WINDOW ? 0xffff : 0);   \
        sum = (uint16_t)(sum + (value & inside));                                                                      \
        count = (uint16_t)(count - inside);                                                                            \
    } while (0)
#define DEFINE_SUM_COLUMNS(name, attributes)                                                                           \
    attributes static void name(const uint16_t *symbols, size_t n_rows, uint32_t n_columns, uint32_t first,            \
                                uint16_t *sums, uint16_t *counts)                                                      \
    {                                                                                                                  \
        for (; n_rows >= 4; n_rows -= 4, symbols += 4 * (size_t)n_columns) {                                           \
            const uint16_t *second = symbols + n_columns, *third = second + n_columns, *fourth = third + n_columns;    \
            for (uint32_t c = 0; c < n_columns; c++) {                                                                 \
                uint16_t sum = sums[c], count = counts[c];                                                             \
                ADD_ROW(symbols);                                                                                      \
                ADD_ROW(second);                                                                                       \
                ADD_ROW(third);                                                                                        \
                ADD_ROW(fourth);                                                                                       \
                sums[c] = sum;                                                                                         \
                counts[c] = count;                                                                                     \
            }                                                                                                          \
        }                                                                                                              \
        for (; n_rows > 0; n_rows--, symbols += n_columns)                                                             \
            for (uint32_t c = 0; c < n_columns; c++) {                                                                 \
                uint16_t sum = sums[c], count = counts[c];                                                             \
                ADD_ROW(symbols);                                                                                      \
                sums[c] = sum;                                                                                         \
                counts[c] = count;                                                                                     \
            }                                                                                                          \
    }

DEFINE_SUM_COLUMNS(sum_columns_c99, )
#if defined(PTWM_X86)
DEFINE_SUM_COLUMNS(sum_columns_avx2, __attribute__((target("avx2"))))
#endif

static void sum_columns(const uint16_t *symbols, size_t n_rows, uint32_t n_columns, uint32_t first, uint16_t *sums,
                        uint16_t *counts)
{
#if defined(PTWM_X86)
    if (ptwm_cpu_level() == PTWM_CPU_AVX512 || ptwm_cpu_level() == PTWM_CPU_AVX2) {
        sum_columns_avx2(symbols, n_rows, n_columns, first, sums, counts);
        return;
    }
#endif
    sum_columns_c99(symbols, n_rows, n_columns, first, sums, counts);
}

/* sum / count - mean, all but the sum in units of 1 / 65536. */
static int32_t column_difference(uint16_t sum, uint16_t count, uint32_t mean)
{
    return count > 0 ? (int32_t)(((uint32_t)sum << 16) / count - mean) : 0;
}

/* round(difference / step) * step. */
static int column_shift(int32_t difference, int32_t step)
{
    const int32_t scale = step << 16, limit = 127 / step * step;
    const int32_t shift = (difference >= 0 ? difference + scale / 2 : difference - scale / 2) / scale * step;

    return shift > limit ? limit : shift < -limit ? -limit : shift;
}

static bool find_column_shifts(const uint16_t *sums, const uint16_t *counts, uint32_t n_columns, uint32_t step,
                               int32_t *difference, int16_t *shift)
{
    uint64_t sum = 0, count = 0;
    uint32_t mean;
    bool any = false;

    for (uint32_t c = 0; c < n_columns; c++) {
        sum += sums[c];
        count += counts[c];
    }
    /* sum < 2^36 */
    mean = count > 0 ? (uint32_t)((sum << 16) / count) : 0;
    for (uint32_t c = 0; c < n_columns; c++) {
        difference[c] = column_difference(sums[c], counts[c], mean);
        shift[c] = (int16_t)column_shift(difference[c], (int32_t)step);
        any = any || shift[c] != 0;
    }
    return any;
}

/*
 * Counts every step-th row; shift may be NULL. Returns the number of elements. Neighbours are often alike: with a
 * second histogram, odd, no count has to wait for the one before.
 */
static uint64_t count_rows(const uint16_t *symbols, size_t n_rows, size_t step, uint32_t n_columns, unsigned bits,
                           const int16_t *shift, uint32_t *histogram, uint32_t *odd)
{
    const uint32_t mask = ((uint32_t)1 << bits) - 1;
    uint64_t n = 0;

    memset(histogram, 0, sizeof *histogram << bits);
    memset(odd, 0, sizeof *odd << bits);
    for (size_t row = 0; row < n_rows; row += step, n += n_columns) {
        const uint16_t *own = symbols + row * n_columns;
        uint32_t c = 0;
        for (; c + 1 < n_columns; c += 2) {
            histogram[(own[c] - (uint32_t)(shift != NULL ? shift[c] : 0)) & mask]++;
            odd[(own[c + 1] - (uint32_t)(shift != NULL ? shift[c + 1] : 0)) & mask]++;
        }
        if (c < n_columns)
            histogram[(own[c] - (uint32_t)(shift != NULL ? shift[c] : 0)) & mask]++;
    }
    for (uint32_t s = 0; s <= mask; s++)
        histogram[s] += odd[s];
    return n;
}

struct scratch {
    uint32_t *plain, *shifted, *odd; /* histograms */
    uint16_t *sums, *counts;    /* of columns */
    int32_t *difference;
};

static enum ptwm_status find(const struct ptwm_allocator *allocator, const struct scratch *s, const uint16_t *symbols,
                             struct ptwm_column_search *search)
{
    const size_t n_rows = search->n_rows;
    const uint32_t n_columns = search->n_columns, n_bins = (uint32_t)1 << search->bits;
    const size_t n_sampled = ptwm_label_sample_rows(n_rows, n_columns);
    const size_t skip = (size_t)((uint64_t)n_sampled * n_columns / COUNTED_ELEMENTS) + 1;
    const uint64_t n_counted = count_rows(symbols, n_sampled, skip, n_columns, search->bits, NULL, s->plain, s->odd);
    const uint64_t before = ptwm_entropy_fixed(s->plain, n_bins), n = (uint64_t)n_rows * n_columns;
    const uint64_t other_bits = (uint64_t)search->other_bits * PTWM_LOG2_ONE; /* of an element, as all entropies here */
    uint32_t first = find_shift_window(s->plain, n_bins);
    uint64_t after = before, element_bits;

    /* Zeros, of pruned weights for one, say nothing about a column's scale. */
    first += first == 0 && s->plain[0] > s->plain[1] ? 1 : 0;
    sum_columns(symbols, n_sampled, n_columns, first, s->sums, s->counts);
    if (find_column_shifts(s->sums, s->counts, n_columns, search->step, s->difference, search->shift)) {
        (void)count_rows(symbols, n_sampled, skip, n_columns, search->bits, search->shift, s->shifted, s->odd);
        after = ptwm_entropy_fixed(s->shifted, n_bins);
        if (after < before) {
            const uint64_t gain = (before - after) / PTWM_LOG2_ONE * n / n_counted;
            const uint64_t all = (after / n_counted + other_bits) * n / PTWM_LOG2_ONE;
            search->pays = gain > 8 * ptwm_label_shifts_nbytes(search->shift, n_columns) + all / MIN_GAIN;
        }
    }
    element_bits = (search->pays ? after : before) / n_counted + other_bits;
    if (!ptwm_label_phases_may_pay(s->difference, element_bits, search))
        return PTWM_OK;
    return ptwm_label_find_sampled_phases(allocator, symbols, first, s->difference, element_bits, search);
}

enum ptwm_status ptwm_label_find_sampled_shifts(const struct ptwm_allocator *allocator, const uint16_t *symbols,
                                                struct ptwm_column_search *search)
{
    const uint32_t n_bins = (uint32_t)1 << search->bits, n_columns = search->n_columns;
    struct scratch s = {
        ptwm_alloc(allocator, n_bins, sizeof *s.plain),      ptwm_alloc(allocator, n_bins, sizeof *s.shifted),
        ptwm_alloc(allocator, n_bins, sizeof *s.odd),        ptwm_calloc(allocator, n_columns, sizeof *s.sums),
        ptwm_calloc(allocator, n_columns, sizeof *s.counts), ptwm_alloc(allocator, n_columns, sizeof *s.difference)
    };
    enum ptwm_status status = PTWM_ERR_MEMORY;

    search->pays = search->has_phases = false;
    if (s.plain != NULL && s.shifted != NULL && s.odd != NULL && s.sums != NULL && s.counts != NULL &&
        s.difference != NULL)
        status = find(allocator, &s, symbols, search);
    ptwm_release(allocator, s.plain, n_bins, sizeof *s.plain);
    ptwm_release(allocator, s.shifted, n_bins, sizeof *s.shifted);
    ptwm_release(allocator, s.odd, n_bins, sizeof *s.odd);
    ptwm_release(allocator, s.sums, n_columns, sizeof *s.sums);
    ptwm_release(allocator, s.counts, n_columns, sizeof *s.counts);
    ptwm_release(allocator, s.difference, n_columns, sizeof *s.difference);
    return status;
}
