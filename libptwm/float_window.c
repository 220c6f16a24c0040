#include "float_window.h"

#include "status.h"
#include "threads.h"
#include "window.h"

enum { BLOCK = PTWM_FLOAT_BLOCK, MAX_UNIT = 4096, PREFETCH_NBYTES = 4096 };

void ptwm_float_window_init(struct ptwm_float_window *w, const struct ptwm_encode_spec *spec, struct ptwm_tail *tail,
                            struct ptwm_encode_memory *memory)
{
    memset(w, 0, sizeof *w);
    w->spec = spec;
    w->tail = tail;
    w->kind = ptwm_float_kind_of(&tail->chain);
    w->shift = memory->shift;
    w->histograms = memory->histograms;
    w->classes = memory->classes;
}

void ptwm_float_window_release(struct ptwm_float_window *w, struct ptwm_encode_memory *memory)
{
    memory->shift = w->shift;
    memory->histograms = w->histograms;
    memory->classes = w->classes;
    ptwm_label_encoder_release(&w->encoder);
}

static size_t n_units(const struct ptwm_float_window *w)
{
    return (size_t)ptwm_ceil_div(w->n, w->tail->model.unit);
}

/* ------------------------------------------------------------------------------------------------------- shifts */

/* Looks for shifts in a sample of the first window's rows, which takes the memory of the histograms that come later. */
static enum ptwm_status find_shifts(struct ptwm_float_window *w, struct ptwm_column_search *search)
{
    const uint32_t n_columns = search->n_columns;
    const size_t n_rows = search->n_rows, n_sampled = ptwm_label_sample_rows(n_rows, n_columns);
    uint16_t *symbols = (uint16_t *)(void *)ptwm_bytes_scratch(&w->histograms, 2 * (uint64_t)n_sampled * n_columns);

    if (symbols == NULL)
        return PTWM_ERR_MEMORY;
    for (size_t i = 0; i < n_sampled; i++)
        ptwm_float_symbols(w->kind,
                           ptwm_float_raw_at(w, ptwm_label_sample_row(n_rows, n_columns, i) * (uint64_t)n_columns),
                           n_columns, symbols + i * n_columns);
    return ptwm_label_find_sampled_shifts(w->spec->context->allocator, symbols, search);
}

/* Copies the model's shifts so that those of any BLOCK elements in a row can be read in a row. */
static enum ptwm_status extend_shifts(struct ptwm_float_window *w)
{
    const struct ptwm_label_model *model = &w->tail->model;
    uint16_t *extended = (uint16_t *)(void *)ptwm_bytes_scratch(&w->shift, 2 * ((uint64_t)model->n_columns + BLOCK));

    if (extended == NULL)
        return PTWM_ERR_MEMORY;
    for (uint32_t i = 0, c = 0; i < model->n_columns + BLOCK; i++, c = c + 1 < model->n_columns ? c + 1 : 0)
        extended[i] = model->wrapped[c];
    return PTWM_OK;
}

static enum ptwm_status set_shifts(struct ptwm_float_window *w)
{
    const uint64_t n_columns = w->spec->row_nbytes / ptwm_float_width(w->kind);
    struct ptwm_column_search search;
    enum ptwm_status status;

    if (!ptwm_shifts_are_worth_a_look(n_columns, w->n))
        return PTWM_OK;
    status = ptwm_column_search_begin(&search, w->spec, &w->tail->chain, n_columns, w->n);
    if (status == PTWM_OK)
        status = find_shifts(w, &search);
    if (status == PTWM_OK)
        status = ptwm_column_search_apply(&search, &w->tail->model);
    if (status == PTWM_OK && search.pays)
        status = extend_shifts(w);
    ptwm_column_search_end(&search, w->spec);
    return status;
}

/* ------------------------------------------------------------------------------------------------------- counting */

/* Chooses the bins by a sample; false if no range of symbols is enough. */
static enum ptwm_status choose_bins(struct ptwm_float_window *w, bool *fits)
{
    const size_t n_blocks = ptwm_label_sample_blocks((size_t)w->n), block = n_blocks > 1 ? PTWM_SAMPLE_BLOCK : (size_t)w->n;
    const uint32_t n_symbols = 1u << ptwm_float_bits(w->kind);
    uint32_t histogram[1 << 9] = { 0 }, odd[1 << 9] = { 0 }; /* in turn: neighbours are often alike */
    uint16_t symbols[PTWM_SAMPLE_BLOCK];

    for (size_t b = 0; b < n_blocks; b++) {
        const uint64_t begin = w->first_element + ptwm_label_sample_block((size_t)w->n, b);
        for (size_t i = 0; i < block; i += PTWM_SAMPLE_BLOCK) {
            const size_t m = block - i < PTWM_SAMPLE_BLOCK ? block - i : PTWM_SAMPLE_BLOCK;
            const uint16_t *shift = ptwm_float_shifts_at(w, begin + i);
            ptwm_float_symbols(w->kind, ptwm_float_raw_at(w, begin + i), m, symbols);
            for (size_t k = 0; k < m && shift != NULL; k++)
                symbols[k] = (uint16_t)((symbols[k] - shift[k]) & (n_symbols - 1));
            for (size_t k = 0; k + 1 < m; k += 2) {
                histogram[symbols[k]]++;
                odd[symbols[k + 1]]++;
            }
            if (m % 2 != 0)
                histogram[symbols[m - 1]]++;
        }
    }
    for (uint32_t s = 0; s < n_symbols; s++)
        histogram[s] += odd[s];
    *fits = ptwm_label_range_bins(&w->bins, histogram, ptwm_float_bits(w->kind));
    return PTWM_OK;
}

/* Fetches what will be counted PREFETCH_NBYTES later than nbytes bytes at p; beyond the end that is in vain, and
 * harmless. */
static inline void prefetch(const uint8_t *p, size_t nbytes)
{
#if defined(__GNUC__)
    for (size_t i = 0; i < nbytes; i += 64)
        __builtin_prefetch((const void *)((uintptr_t)p + PREFETCH_NBYTES + i));
#else
    (void)p;
    (void)nbytes;
#endif
}

static void count_unit(const struct ptwm_float_window *w, uint64_t element, size_t m, uint16_t histogram[PTWM_N_BINS])
{
    memset(histogram, 0, PTWM_N_BINS * sizeof *histogram);
    for (size_t i = 0; i < m; i += BLOCK) {
        const uint8_t *raw = ptwm_float_raw_at(w, element + i);
        const size_t n = m - i < BLOCK ? m - i : BLOCK;
        prefetch(raw, n * ptwm_float_width(w->kind));
        ptwm_float_count(w->kind, raw, n, w->bins.first, ptwm_float_shifts_at(w, element + i), histogram);
    }
}

/* The same of those of a unit's elements that are in columns of phase 1. */
static void count_second(const struct ptwm_float_window *w, uint64_t element, size_t m, uint16_t histogram[PTWM_N_BINS])
{
    unsigned n_first = 0; /* elements in columns of phase 0, all of which go to the last bin, and are taken out again */
    uint8_t phase[BLOCK], bins[BLOCK];

    memset(histogram, 0, PTWM_N_BINS * sizeof *histogram);
    for (size_t i = 0; i < m; i += BLOCK) {
        const size_t n = m - i < BLOCK ? m - i : BLOCK;
        uint16_t n_second = 0; /* few bits, so that compilers count many at once */
        ptwm_float_placed_phases(w, element + i, n, phase);
        ptwm_float_bins(w->kind, ptwm_float_raw_at(w, element + i), n, w->bins.first,
                        ptwm_float_shifts_at(w, element + i), bins);
        for (size_t k = 0; k < n; k++)
            n_second = (uint16_t)(n_second + phase[k] / PTWM_PHASE);
        for (size_t k = 0; k < n; k++)
            bins[k] |= (uint8_t)(phase[k] / PTWM_PHASE - 1u) & (PTWM_N_BINS - 1);
        n_first += (unsigned)n - n_second;
        ptwm_add_bins(bins, n, histogram);
    }
    histogram[PTWM_N_BINS - 1] = (uint16_t)(histogram[PTWM_N_BINS - 1] - n_first);
}

/* Counts one chunk's units. */
static enum ptwm_status count_chunk(void *context, size_t task, unsigned worker, struct ptwm_error *error)
{
    struct ptwm_float_window *w = context;
    const uint64_t chunk = w->first_chunk + task, first = ptwm_tail_first_element(w->tail, chunk);
    const size_t n = ptwm_float_chunk_elements(w, chunk), unit = w->tail->model.unit;
    uint16_t *histogram = (uint16_t *)(void *)w->histograms.data + (first - w->first_element) / unit * PTWM_N_BINS;
    const size_t to_second = n_units(w) * PTWM_N_BINS;

    (void)worker;
    (void)error;
    for (size_t i = 0; i < n; i += unit, histogram += PTWM_N_BINS) {
        const size_t m = n - i < unit ? n - i : unit;
        count_unit(w, first + i, m, histogram);
        if (w->tail->model.phase != NULL)
            count_second(w, first + i, m, histogram + to_second);
    }
    return PTWM_OK;
}

static enum ptwm_status find_set(struct ptwm_float_window *w)
{
    struct ptwm_label_model *model = &w->tail->model;
    const uint16_t *histograms = (const uint16_t *)(const void *)w->histograms.data;
    const struct ptwm_label_counted counted = { w->spec->context->allocator,
                                                &w->bins,
                                                (size_t)w->n,
                                                model->bits,
                                                model->unit,
                                                n_units(w),
                                                histograms,
                                                model->phase != NULL ? histograms + n_units(w) * PTWM_N_BINS : NULL };
    struct ptwm_label_set set;
    enum ptwm_status status;

    if (ptwm_bytes_scratch(&w->classes, n_units(w)) == NULL)
        return PTWM_ERR_MEMORY;
    status = ptwm_label_divide(&counted, &set, w->classes.data, &w->symbols_cost_bits, &w->entropy_bits);
    if (status == PTWM_OK) /* all kinds have rests */
        w->symbols_cost_bits -= ptwm_label_carried_bits((size_t)w->n, model->unit);
    if (status == PTWM_OK) {
        w->set = model->n_sets;
        status = ptwm_label_model_add_set(model, &set);
    }
    if (status == PTWM_OK) {
        ptwm_label_encoder_release(&w->encoder);
        status = ptwm_label_encoder_init(&w->encoder, w->spec->context->allocator, &set, model->phase != NULL);
    }
    return status;
}

enum ptwm_status ptwm_float_window_fill(struct ptwm_float_window *w, uint64_t first_chunk, uint64_t n_chunks, bool *fits,
                                        struct ptwm_error *error)
{
    const struct ptwm_tail *tail = w->tail;
    const uint64_t last = first_chunk + n_chunks - 1;
    enum ptwm_status status = PTWM_OK;

    w->first_chunk = first_chunk;
    w->n_chunks = n_chunks;
    w->first_element = ptwm_tail_first_element(tail, first_chunk);
    w->n = ptwm_tail_first_element(tail, last) - w->first_element + ptwm_float_chunk_elements(w, last);
    if (first_chunk == 0)
        status = set_shifts(w);
    if (status == PTWM_OK)
        status = choose_bins(w, fits);
    *fits = *fits && tail->model.unit <= MAX_UNIT && tail->model.n_sets < PTWM_MAX_SETS;
    if (status == PTWM_OK && *fits) {
        const uint64_t n_histograms = (tail->model.phase != NULL ? 2 : 1) * (uint64_t)n_units(w);
        if (ptwm_bytes_scratch(&w->histograms, n_histograms * PTWM_N_BINS * sizeof(uint16_t)) == NULL)
            status = PTWM_ERR_MEMORY;
        if (status == PTWM_OK)
            status = ptwm_parallel_for((size_t)n_chunks, w->spec->threads, count_chunk, w, error);
        if (status == PTWM_OK)
            status = find_set(w);
    }
    return status == PTWM_OK ? PTWM_OK : ptwm_fail(error, status, "a model of the symbols");
}
