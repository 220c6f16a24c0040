#include "window.h"

#include <string.h>

#include "float_split.h"
#include "plane.h"
#include "status.h"
#include "threads.h"

enum {
    WINDOW_NBYTES = 16 << 20,
    WINDOW_ELEMENTS = 8 << 20,
    BLOCK = 512,
    MIN_COLUMNS = 8, /* for shifts to be worth a look */
    MIN_ROWS = 8
};

void ptwm_window_init(struct ptwm_window *w, const struct ptwm_encode_spec *spec, struct ptwm_tail *tail)
{
    const struct ptwm_bytes empty = { spec->context->allocator, NULL, 0, 0 };

    memset(w, 0, sizeof *w);
    w->spec = spec;
    w->tail = tail;
    w->planes = w->symbols = w->classes = empty;
    for (uint32_t p = 0; p < tail->chain.n_planes; p++)
        w->chunk_planes_nbytes += ptwm_plane_nbytes(&tail->chain, p, tail->chunk_nbytes);
}

void ptwm_window_release(struct ptwm_window *w)
{
    ptwm_bytes_release(&w->planes);
    ptwm_bytes_release(&w->symbols);
    ptwm_bytes_release(&w->classes);
}

uint64_t ptwm_window_max_chunks(const struct ptwm_tail *tail)
{
    uint64_t n = WINDOW_NBYTES / tail->chunk_nbytes;

    if (tail->chain.label != NULL) {
        uint64_t by_elements = WINDOW_ELEMENTS / ptwm_chain_n_elements(&tail->chain, tail->chunk_nbytes);
        n = by_elements < n ? by_elements : n;
    }
    return n > 0 ? n : 1;
}

/* ------------------------------------------------------------------------------------------------------- access */

/* Whether the data is its own only plane, of which there is no need of a copy. */
static bool is_plain(const struct ptwm_window *w)
{
    return w->tail->chain.n_steps == 0;
}

static uint8_t *plane_of(const struct ptwm_window *w, uint64_t chunk, uint32_t plane)
{
    const size_t raw_nbytes = ptwm_tail_chunk_nbytes(w->tail, chunk);
    uint8_t *p = w->planes.data + (chunk - w->first_chunk) * w->chunk_planes_nbytes;

    for (uint32_t i = 0; i < plane; i++)
        p += ptwm_plane_nbytes(&w->tail->chain, i, raw_nbytes);
    return p;
}

const uint8_t *ptwm_window_plane(const struct ptwm_window *w, uint64_t chunk, uint32_t plane, size_t *nbytes)
{
    *nbytes = (size_t)ptwm_plane_nbytes(&w->tail->chain, plane, ptwm_tail_chunk_nbytes(w->tail, chunk));
    return is_plain(w) ? w->spec->data + chunk * w->tail->chunk_nbytes : plane_of(w, chunk, plane);
}

/* Elements of the window that lie before a chunk of it. */
static uint64_t elements_before(const struct ptwm_window *w, uint64_t chunk)
{
    return ptwm_chain_n_elements(&w->tail->chain, (chunk - w->first_chunk) * w->tail->chunk_nbytes);
}

static uint64_t n_elements(const struct ptwm_window *w)
{
    const uint64_t last = w->first_chunk + w->n_chunks - 1;
    return elements_before(w, last) + ptwm_chain_n_elements(&w->tail->chain, ptwm_tail_chunk_nbytes(w->tail, last));
}

static uint16_t *symbols_of(const struct ptwm_window *w, uint64_t chunk)
{
    return (uint16_t *)(void *)w->symbols.data + elements_before(w, chunk);
}

const uint16_t *ptwm_window_symbols(const struct ptwm_window *w, uint64_t chunk)
{
    return symbols_of(w, chunk);
}

const uint8_t *ptwm_window_classes(const struct ptwm_window *w, uint64_t chunk)
{
    return w->classes.data + elements_before(w, chunk) / w->tail->model.unit;
}

/* ------------------------------------------------------------------------------------------------------ filling */

/* Splits one chunk, without shifts yet, and widens its symbols. */
/* Splits floats with the kernels of float_split.h. The symbols are in symbols too, if that is not NULL. */
static void split_floats(enum ptwm_float_kind kind, const uint8_t *raw, size_t n, uint8_t *const *planes,
                         uint16_t *symbols)
{
    const unsigned width = ptwm_float_width(kind), bits = ptwm_float_bits(kind), n_low = ptwm_float_n_low(kind);
    uint8_t *plane = planes[n_low + 1];
    uint16_t block[BLOCK];

    if (n_low > 0)
        (void)ptwm_float_lows(raw, n, planes[0]);
    ptwm_float_rests(kind, raw, n, planes[n_low]);
    for (size_t first = 0; first < n; first += BLOCK) {
        const size_t m = n - first < BLOCK ? n - first : BLOCK;
        uint16_t *own = symbols != NULL ? symbols + first : block;
        ptwm_float_symbols(kind, raw + first * width, m, own);
        for (size_t i = 0; i < m && bits > 8; i++)
            ptwm_store16(plane + 2 * (first + i), own[i]);
        for (size_t i = 0; i < m && bits <= 8; i++)
            plane[first + i] = (uint8_t)own[i];
    }
}

static enum ptwm_status split_chunk(void *context, size_t task, unsigned worker, struct ptwm_error *error)
{
    struct ptwm_window *w = context;
    const struct ptwm_tail *tail = w->tail;
    const uint64_t chunk = w->first_chunk + task;
    const size_t raw_nbytes = ptwm_tail_chunk_nbytes(tail, chunk);
    const struct ptwm_shifts no_shifts = { 0, NULL };
    const enum ptwm_float_kind kind = w->spec->plain ? PTWM_FLOAT_NONE : ptwm_float_kind_of(&tail->chain);
    const uint8_t *raw = w->spec->data + chunk * tail->chunk_nbytes;
    struct ptwm_bytes scratch = { w->spec->context->allocator, NULL, 0, 0 };
    uint8_t *planes[PTWM_MAX_PLANES];

    (void)worker;
    for (uint32_t p = 0; p < tail->chain.n_planes; p++)
        planes[p] = plane_of(w, chunk, p);
    if (kind != PTWM_FLOAT_NONE) {
        split_floats(kind, raw, raw_nbytes / ptwm_float_width(kind), planes,
                     w->symbols.data != NULL ? symbols_of(w, chunk) : NULL);
        return PTWM_OK;
    }
    if (tail->chain.n_steps > 0 && tail->chain.steps[0].kind == PTWM_STEP_DELTA &&
        ptwm_bytes_scratch(&scratch, raw_nbytes) == NULL)
        return ptwm_fail(error, PTWM_ERR_MEMORY, "splitting a chunk of %zu bytes", raw_nbytes);
    ptwm_chain_split(&tail->chain, &no_shifts, 0, raw, raw_nbytes, planes, scratch.data);
    ptwm_bytes_release(&scratch);
    if (w->symbols.data != NULL) {
        const uint8_t *plane = planes[tail->chain.n_planes - 1];
        const size_t n = (size_t)ptwm_chain_n_elements(&tail->chain, raw_nbytes);
        uint16_t *symbols = symbols_of(w, chunk);
        for (size_t i = 0; i < n; i++)
            symbols[i] = tail->model.bits > 8 ? ptwm_load16(plane + 2 * i) : plane[i];
    }
    return PTWM_OK;
}

/* Subtracts the columns' shifts from one chunk's symbols, in both their forms. */
static enum ptwm_status shift_chunk(void *context, size_t task, unsigned worker, struct ptwm_error *error)
{
    struct ptwm_window *w = context;
    const struct ptwm_label_model *model = &w->tail->model;
    const uint64_t chunk = w->first_chunk + task;
    const size_t n = (size_t)ptwm_chain_n_elements(&w->tail->chain, ptwm_tail_chunk_nbytes(w->tail, chunk));
    uint64_t column = ptwm_tail_first_element(w->tail, chunk) % model->n_columns;
    uint8_t *plane = plane_of(w, chunk, w->tail->chain.n_planes - 1);
    uint16_t *symbols = symbols_of(w, chunk);

    (void)worker;
    (void)error;
    for (size_t i = 0; i < n; i++) {
        symbols[i] = (uint16_t)((symbols[i] - model->wrapped[column]) & ((1u << model->bits) - 1));
        if (model->bits > 8)
            ptwm_store16(plane + 2 * i, symbols[i]);
        else
            plane[i] = (uint8_t)symbols[i];
        column = column + 1 < model->n_columns ? column + 1 : 0;
    }
    return PTWM_OK;
}

bool ptwm_shifts_are_worth_a_look(uint64_t n_columns, uint64_t n)
{
    return n_columns >= MIN_COLUMNS && n_columns <= PTWM_MAX_COLUMNS && n / n_columns >= MIN_ROWS;
}

uint32_t ptwm_symbols_per_octave(const struct ptwm_step *label)
{
    return label->width == 2 && label->shift == 6 && label->bits == 9     ? 2
           : label->width == 4 && label->shift == 6 && label->bits == 9   ? 2
           : label->width == 2 && label->shift == 9 && label->bits == 6   ? 2
           : label->width == 1 && label->shift == 2 && label->bits == 5   ? 2
           : label->width == 1 && label->shift == 1 && label->bits == 6   ? 2
                                                                          : 1;
}

/* What an element's low planes take: the bits that are not zero in all of some elements from the first on. */
static uint32_t low_bits(const struct ptwm_encode_spec *spec, const struct ptwm_parsed_chain *chain)
{
    const size_t width = chain->label->width, n = (size_t)ptwm_chain_n_elements(chain, spec->nbytes);
    uint32_t any = 0, bits = 16;

    if (width != 4)
        return width > 2 ? 8 * (uint32_t)(width - 2) : 0;
    for (size_t i = 0; i < n && i < BLOCK; i++)
        any |= ptwm_load16(spec->data + 4 * i);
    while (bits > 0 && (any & 1) == 0) {
        any >>= 1;
        bits--;
    }
    return bits;
}

enum ptwm_status ptwm_column_search_begin(struct ptwm_column_search *search, const struct ptwm_encode_spec *spec,
                                          const struct ptwm_parsed_chain *chain, uint64_t n_columns, uint64_t n)
{
    const struct ptwm_allocator *allocator = spec->context->allocator;
    const struct ptwm_step *label = chain->label;
    const uint32_t unit_bits = label->width == 0 ? 4 : label->width == 1 ? 8 : 16;

    memset(search, 0, sizeof *search);
    search->n_rows = (size_t)(n / n_columns);
    search->n_columns = (uint32_t)n_columns;
    search->bits = label->bits;
    search->step = ptwm_symbols_per_octave(label);
    search->other_bits = unit_bits - label->bits + low_bits(spec, chain);
    search->shift = ptwm_alloc(allocator, n_columns, sizeof *search->shift);
    search->phase = ptwm_alloc(allocator, n_columns, sizeof *search->phase);
    return search->shift != NULL && search->phase != NULL ? PTWM_OK : PTWM_ERR_MEMORY;
}

enum ptwm_status ptwm_column_search_apply(const struct ptwm_column_search *search, struct ptwm_label_model *model)
{
    enum ptwm_status status = PTWM_OK;

    if (search->pays)
        status = ptwm_label_model_set_shifts(model, search->shift, search->n_columns);
    if (status == PTWM_OK && search->has_phases)
        status = ptwm_label_model_set_phases(model, search->phase);
    return status;
}

void ptwm_column_search_end(struct ptwm_column_search *search, const struct ptwm_encode_spec *spec)
{
    ptwm_release(spec->context->allocator, search->shift, search->n_columns, sizeof *search->shift);
    ptwm_release(spec->context->allocator, search->phase, search->n_columns, sizeof *search->phase);
}

/* Looks for column shifts in the segment's first window. */
static enum ptwm_status find_shifts(struct ptwm_window *w, struct ptwm_error *error)
{
    const struct ptwm_tail *tail = w->tail;
    const uint64_t n_columns = ptwm_chain_n_elements(&tail->chain, w->spec->row_nbytes);
    struct ptwm_column_search search;
    enum ptwm_status status;

    if (!ptwm_shifts_are_worth_a_look(n_columns, n_elements(w)))
        return PTWM_OK;
    status = ptwm_column_search_begin(&search, w->spec, &tail->chain, n_columns, n_elements(w));
    if (status == PTWM_OK)
        status = ptwm_label_find_shifts(w->spec->context->allocator, symbols_of(w, w->first_chunk), &search);
    if (status == PTWM_OK)
        status = ptwm_column_search_apply(&search, &w->tail->model);
    ptwm_column_search_end(&search, w->spec);
    return status == PTWM_OK ? PTWM_OK : ptwm_fail(error, status, "column shifts");
}

static enum ptwm_status find_set(struct ptwm_window *w, struct ptwm_error *error)
{
    struct ptwm_label_model *model = &w->tail->model;
    const uint64_t n = n_elements(w);
    const struct ptwm_phases phases = ptwm_label_phases(model, ptwm_tail_first_element(w->tail, w->first_chunk));
    struct ptwm_label_set set;
    enum ptwm_status status;

    if (ptwm_bytes_scratch(&w->classes, ptwm_ceil_div(n, model->unit)) == NULL)
        return ptwm_fail(error, PTWM_ERR_MEMORY, "classes");
    status = ptwm_label_find_set(w->spec->context->allocator, symbols_of(w, w->first_chunk), (size_t)n, model->bits,
                                 model->unit, model->phase != NULL ? &phases : NULL, &set, w->classes.data,
                                 &w->symbols_cost_bits);
    if (status == PTWM_OK) {
        w->set = model->n_sets;
        status = ptwm_label_model_add_set(model, &set);
    }
    return status == PTWM_OK ? PTWM_OK : ptwm_fail(error, status, "a model of the symbols");
}

enum ptwm_status ptwm_window_fill(struct ptwm_window *w, uint64_t first_chunk, uint64_t n_chunks,
                                  struct ptwm_error *error)
{
    const bool wants_model = w->tail->chain.label != NULL && !w->spec->no_labels &&
                             (w->spec->method == PTWM_METHOD_MICROSCALE ||
                                                              w->spec->method == PTWM_METHOD_RANS);
    enum ptwm_status status;

    w->first_chunk = first_chunk;
    w->n_chunks = n_chunks;
    w->set = PTWM_NO_SET;
    w->symbols_cost_bits = 0;
    if (is_plain(w))
        return PTWM_OK;
    if (ptwm_bytes_scratch(&w->planes, n_chunks * w->chunk_planes_nbytes) == NULL ||
        (wants_model && ptwm_bytes_scratch(&w->symbols, n_elements(w) * sizeof(uint16_t)) == NULL))
        return ptwm_fail(error, PTWM_ERR_MEMORY, "%llu chunks", (unsigned long long)n_chunks);
    status = ptwm_parallel_for((size_t)n_chunks, w->spec->threads, split_chunk, w, error);
    if (status == PTWM_OK && wants_model && first_chunk == 0)
        status = find_shifts(w, error);
    if (status == PTWM_OK && wants_model && w->tail->model.n_columns > 0)
        status = ptwm_parallel_for((size_t)n_chunks, w->spec->threads, shift_chunk, w, error);
    if (status == PTWM_OK && wants_model && w->tail->model.n_sets < PTWM_MAX_SETS)
        status = find_set(w, error);
    return status;
}
