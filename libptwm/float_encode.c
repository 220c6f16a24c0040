#include "float_encode.h"

#include "rest.h"
#include "status.h"
#include "threads.h"
#include "trim.h"
#include "window.h"

enum {
    BLOCK = 512,
    MAX_UNIT = 4096,
    CODED_ELEMENTS = 1 << 15, /* at a time: labels stay in the first cache */
    FIRST_RESTS_NBYTES = 640  /* a block's rests, of 10 bits each; two blocks' of 3 and less */
};

/* ------------------------------------------------------------------------------------------------------- memory */

void ptwm_float_scratch_init(struct ptwm_float_scratch *scratch, const struct ptwm_allocator *allocator)
{
    const struct ptwm_bytes empty = { allocator, NULL, 0, 0 };
    scratch->labels = scratch->words = scratch->exceptions = scratch->listed = scratch->plane = empty;
}

void ptwm_float_scratch_release(struct ptwm_float_scratch *scratch)
{
    ptwm_bytes_release(&scratch->labels);
    ptwm_bytes_release(&scratch->words);
    ptwm_bytes_release(&scratch->exceptions);
    ptwm_bytes_release(&scratch->listed);
    ptwm_bytes_release(&scratch->plane);
}

void ptwm_encode_memory_init(struct ptwm_encode_memory *memory, const struct ptwm_allocator *allocator)
{
    const struct ptwm_bytes empty = { allocator, NULL, 0, 0 };

    ptwm_float_scratch_init(&memory->scratch, allocator);
    memory->shift = memory->histograms = memory->classes = empty;
    memory->stored[0] = memory->stored[1] = empty;
}

void ptwm_encode_memory_release(struct ptwm_encode_memory *memory)
{
    ptwm_float_scratch_release(&memory->scratch);
    ptwm_bytes_release(&memory->shift);
    ptwm_bytes_release(&memory->histograms);
    ptwm_bytes_release(&memory->classes);
    ptwm_bytes_release(&memory->stored[0]);
    ptwm_bytes_release(&memory->stored[1]);
}

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

/* ------------------------------------------------------------------------------------------------------- access */

static const uint8_t *raw_at(const struct ptwm_float_window *w, uint64_t element)
{
    return w->spec->data + element * ptwm_float_width(w->kind);
}

static size_t chunk_elements(const struct ptwm_float_window *w, uint64_t chunk)
{
    return ptwm_tail_chunk_nbytes(w->tail, chunk) / ptwm_float_width(w->kind);
}

/*
 * The elements of the tensor's largest chunk, or of a chunk of the usual size if that is more: memory for so many
 * serves all tensors, so that its pages are fresh only once.
 */
static size_t most_elements(const struct ptwm_float_window *w)
{
    const uint64_t chunk_nbytes = w->tail->chunk_nbytes, nbytes = w->spec->nbytes, limit = w->spec->chunk_nbytes;
    const uint64_t own = chunk_nbytes < nbytes ? chunk_nbytes : nbytes;
    const uint64_t usual = limit < PTWM_DEFAULT_CHUNK_NBYTES ? limit : PTWM_DEFAULT_CHUNK_NBYTES;

    return (size_t)((own > usual ? own : usual) / ptwm_float_width(w->kind));
}

static size_t n_units(const struct ptwm_float_window *w)
{
    return (size_t)ptwm_ceil_div(w->n, w->tail->model.unit);
}

/* The shifts of BLOCK elements from element on, or NULL. */
static const uint16_t *shifts_at(const struct ptwm_float_window *w, uint64_t element)
{
    const uint32_t n_columns = w->tail->model.n_columns;
    return n_columns > 0 ? (const uint16_t *)(const void *)w->shift.data + element % n_columns : NULL;
}

/* The same for phases. */
static const uint8_t *phases_at(const struct ptwm_float_window *w, uint64_t element)
{
    const struct ptwm_label_model *model = &w->tail->model;
    return model->phase != NULL ? model->phase + element % model->n_columns : NULL;
}

static uint32_t symbol_at(const struct ptwm_float_window *w, uint64_t element)
{
    const uint16_t *shift = shifts_at(w, element);
    uint16_t symbol;

    ptwm_float_symbols(w->kind, raw_at(w, element), 1, &symbol);
    return (symbol - (shift != NULL ? *shift : 0u)) & ((1u << ptwm_float_bits(w->kind)) - 1);
}

/* The bins of m elements. */
static void bins_at(const struct ptwm_float_window *w, uint64_t element, size_t m, uint8_t *bins)
{
    for (size_t i = 0; i < m; i += BLOCK)
        ptwm_float_bins(w->kind, raw_at(w, element + i), m - i < BLOCK ? m - i : BLOCK, w->bins.first,
                        shifts_at(w, element + i), bins + i);
}

/* Sets labels' phases. */
static void add_phases(const struct ptwm_float_window *w, uint64_t element, size_t m, uint8_t *labels)
{
    for (size_t i = 0; i < m; i += BLOCK) {
        const size_t n = m - i < BLOCK ? m - i : BLOCK;
        const uint8_t *phase = phases_at(w, element + i);
        for (size_t k = 0; k < n; k++)
            labels[i + k] |= phase[k];
    }
}

/* The labels of m elements by a map of bins, with their phases; returns the OR of all, but for the phases. */
static uint8_t labels_at(const struct ptwm_float_window *w, uint64_t element, size_t m, const uint8_t map[PTWM_N_BINS],
                         uint8_t *labels)
{
    uint8_t any = 0;

    for (size_t i = 0; i < m; i += BLOCK)
        any |= ptwm_float_labels(w->kind, raw_at(w, element + i), m - i < BLOCK ? m - i : BLOCK, w->bins.first,
                                 shifts_at(w, element + i), map, labels + i);
    if (w->tail->model.phase != NULL)
        add_phases(w, element, m, labels);
    return any;
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
        ptwm_float_symbols(w->kind, raw_at(w, ptwm_label_sample_row(n_rows, n_columns, i) * (uint64_t)n_columns), n_columns,
                           symbols + i * n_columns);
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
    uint32_t histogram[1 << 9] = { 0 };
    uint16_t symbols[PTWM_SAMPLE_BLOCK];

    for (size_t b = 0; b < n_blocks; b++) {
        const uint64_t begin = w->first_element + ptwm_label_sample_block((size_t)w->n, b);
        for (size_t i = 0; i < block; i += PTWM_SAMPLE_BLOCK) {
            const size_t m = block - i < PTWM_SAMPLE_BLOCK ? block - i : PTWM_SAMPLE_BLOCK;
            const uint16_t *shift = shifts_at(w, begin + i);
            ptwm_float_symbols(w->kind, raw_at(w, begin + i), m, symbols);
            for (size_t k = 0; k < m; k++)
                histogram[(symbols[k] - (shift != NULL ? shift[k] : 0u)) & (n_symbols - 1)]++;
        }
    }
    *fits = ptwm_label_range_bins(&w->bins, histogram, ptwm_float_bits(w->kind));
    return PTWM_OK;
}

/* The histogram of those of a unit's m bins that are in columns of phase 1. Changes the bins. */
static void count_second(const struct ptwm_float_window *w, uint64_t element, size_t m, uint8_t *bins,
                         uint16_t histogram[PTWM_N_BINS])
{
    unsigned n_first = 0; /* elements in columns of phase 0, all of which go to the last bin, and are taken out again */

    for (size_t i = 0; i < m; i += BLOCK) {
        const size_t n = m - i < BLOCK ? m - i : BLOCK;
        const uint8_t *phase = phases_at(w, element + i);
        uint16_t n_second = 0; /* few bits, so that compilers count many at once */
        for (size_t k = 0; k < n; k++)
            n_second = (uint16_t)(n_second + phase[k] / PTWM_PHASE);
        for (size_t k = 0; k < n; k++)
            bins[i + k] |= (uint8_t)(phase[k] / PTWM_PHASE - 1u) & (PTWM_N_BINS - 1);
        n_first += (unsigned)n - n_second;
    }
    ptwm_count_bins(bins, m, histogram);
    histogram[PTWM_N_BINS - 1] = (uint16_t)(histogram[PTWM_N_BINS - 1] - n_first);
}

/* Counts one chunk's units. */
static enum ptwm_status count_chunk(void *context, size_t task, unsigned worker, struct ptwm_error *error)
{
    struct ptwm_float_window *w = context;
    const uint64_t chunk = w->first_chunk + task, first = ptwm_tail_first_element(w->tail, chunk);
    const size_t n = chunk_elements(w, chunk), unit = w->tail->model.unit;
    uint16_t *histogram = (uint16_t *)(void *)w->histograms.data + (first - w->first_element) / unit * PTWM_N_BINS;
    const size_t to_second = n_units(w) * PTWM_N_BINS;
    uint8_t bins[MAX_UNIT];

    (void)worker;
    (void)error;
    for (size_t i = 0; i < n; i += unit, histogram += PTWM_N_BINS) {
        const size_t m = n - i < unit ? n - i : unit;
        bins_at(w, first + i, m, bins);
        ptwm_count_bins(bins, m, histogram);
        if (w->tail->model.phase != NULL)
            count_second(w, first + i, m, bins, histogram + to_second);
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
    w->n = ptwm_tail_first_element(tail, last) - w->first_element + chunk_elements(w, last);
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

/* ------------------------------------------------------------------------------------------------------- planes */

/* A chunk in the making. */
struct chunk {
    const struct ptwm_float_window *w;
    const uint8_t *raw;
    uint64_t first; /* element */
    size_t n;
    struct ptwm_float_scratch *scratch;
    struct ptwm_bytes *stored;
};

static bool chooses(const struct chunk *c)
{
    return c->w->spec->method == PTWM_METHOD_MICROSCALE;
}

/* Ends a plane: it takes nbytes behind what is stored. */
static void end_plane(struct chunk *c, enum ptwm_codec codec, size_t nbytes, struct ptwm_plane_record *record)
{
    record->codec = (uint8_t)codec;
    record->stored_nbytes = (uint32_t)nbytes;
    record->crc = ptwm_crc32c(0, c->stored->data + c->stored->nbytes, nbytes);
    c->stored->nbytes += nbytes;
}

/* Whether all elements, of size bytes, are the same. */
static bool is_constant(const uint8_t *plane, size_t nbytes, size_t size)
{
    return nbytes == size || memcmp(plane, plane + size, nbytes - size) == 0;
}

static enum ptwm_status put_low(struct chunk *c, struct ptwm_plane_record *record)
{
    uint8_t *plane = c->stored->data + c->stored->nbytes;
    const size_t nbytes = 2 * c->n, unit = c->w->tail->model.unit;
    bool any_trims = false;
    uint64_t trimmed = nbytes;

    for (size_t i = 0; i < c->n; i += unit) {
        const size_t m = c->n - i < unit ? c->n - i : unit;
        any_trims = (ptwm_float_lows(c->raw + 4 * i, m, plane + 2 * i) & 1) == 0 || any_trims;
    }
    if (chooses(c) && is_constant(plane, nbytes, 2)) {
        end_plane(c, PTWM_CODEC_CONSTANT, 2, record);
        return PTWM_OK;
    }
    if (chooses(c) && any_trims)
        trimmed = ptwm_trim_nbytes(plane, c->n, (uint32_t)unit);
    if (trimmed >= nbytes) {
        end_plane(c, PTWM_CODEC_IDENTITY, nbytes, record);
        return PTWM_OK;
    }
    if (ptwm_bytes_scratch(&c->scratch->plane, nbytes) == NULL)
        return PTWM_ERR_MEMORY;
    memcpy(c->scratch->plane.data, plane, nbytes);
    ptwm_trim_encode(plane, c->scratch->plane.data, c->n, (uint32_t)unit);
    end_plane(c, PTWM_CODEC_TRIM, (size_t)trimmed, record);
    return PTWM_OK;
}

/* The rests that are carried, or would be. */
struct first_rests {
    size_t n_elements; /* that they are of: whole blocks, or all of them if there are fewer; 0 if none are carried */
    size_t nbytes;     /* of these elements' rests */
    size_t n_carried;  /* bytes of them */
    uint8_t packed[FIRST_RESTS_NBYTES];
};

/* Packs the first elements' rests, if some are to be carried. */
static void pack_first_rests(const struct chunk *c, struct first_rests *first)
{
    const unsigned rest_bits = ptwm_float_rest_bits(c->w->kind);
    const size_t block_nbytes = BLOCK / 8 * rest_bits, n_carried = 2 * ptwm_label_n_lanes(c->n, c->w->tail->model.unit);
    const size_t n = ptwm_ceil_div(n_carried, block_nbytes) * BLOCK;

    first->n_elements = n < c->n ? n : c->n;
    first->nbytes = (size_t)ptwm_rest_nbytes(first->n_elements, rest_bits);
    ptwm_float_rests(c->w->kind, c->raw, first->n_elements, first->packed);
    first->n_carried = ptwm_label_n_carried(first->packed, first->nbytes, c->n, c->w->tail->model.unit);
    if (first->n_carried == 0)
        first->n_elements = first->nbytes = 0;
}

/* Ends the rest plane, which has been packed. */
static void put_rests(struct chunk *c, size_t n_carried, struct ptwm_plane_record *record)
{
    const size_t nbytes = (size_t)ptwm_rest_nbytes(c->n, ptwm_float_rest_bits(c->w->kind));

    if (n_carried > 0)
        end_plane(c, PTWM_CODEC_CARRIED, nbytes - n_carried, record);
    else if (chooses(c) && is_constant(c->stored->data + c->stored->nbytes, nbytes, 1))
        end_plane(c, PTWM_CODEC_CONSTANT, 1, record);
    else
        end_plane(c, PTWM_CODEC_IDENTITY, nbytes, record);
}

/* Completes a rest plane, which is the last one so far: nothing is to carry its beginning. */
static void restore_carried(struct chunk *c, const struct first_rests *carried, struct ptwm_plane_record *record)
{
    uint8_t *begin = c->stored->data + c->stored->nbytes - record->stored_nbytes;

    if (record->codec != PTWM_CODEC_CARRIED)
        return;
    memmove(begin + carried->n_carried, begin, record->stored_nbytes);
    memcpy(begin, carried->packed, carried->n_carried);
    c->stored->nbytes -= record->stored_nbytes;
    end_plane(c, PTWM_CODEC_IDENTITY, record->stored_nbytes + carried->n_carried, record);
}

/* ------------------------------------------------------------------------------------------------------- symbols */

static bool symbols_are_constant(const struct chunk *c)
{
    const uint32_t symbol = symbol_at(c->w, c->first), from_first = symbol - c->w->bins.first;
    const size_t unit = c->w->tail->model.unit;
    const uint32_t bin = symbol == 0 ? PTWM_ZERO_BIN : from_first < PTWM_SYMBOL_BINS ? from_first : PTWM_OTHER_BIN;
    const uint16_t *histogram = (const uint16_t *)(const void *)c->w->histograms.data +
                                (c->first - c->w->first_element) / unit * PTWM_N_BINS;
    size_t i = 1;

    for (size_t begin = 0; begin < c->n; begin += unit, histogram += PTWM_N_BINS)
        if (histogram[bin] < (c->n - begin < unit ? c->n - begin : unit))
            return false;
    while (bin == PTWM_OTHER_BIN && i < c->n && symbol_at(c->w, c->first + i) == symbol)
        i++;
    return bin != PTWM_OTHER_BIN || i == c->n;
}

/* The label of each bin in each class. */
static void make_maps(const struct ptwm_float_window *w, uint8_t maps[PTWM_MAX_CLASSES][PTWM_N_BINS])
{
    const struct ptwm_label_set *set = &w->tail->model.sets[w->set];

    for (uint32_t z = 0; z < set->n_classes; z++) {
        const struct ptwm_label_table *table = &set->classes[z];
        memset(maps[z], PTWM_IS_EXCEPTION | w->encoder.by_class[w->encoder.n_phases * z].most_frequent, PTWM_N_BINS);
        for (uint32_t i = 0; i < table->n_labels; i++) {
            const uint32_t bin = (uint32_t)table->symbol[i] - w->bins.first;
            if (table->symbol[i] == 0)
                maps[z][PTWM_ZERO_BIN] = (uint8_t)i;
            else if (bin < PTWM_SYMBOL_BINS)
                maps[z][bin] = (uint8_t)i;
        }
    }
}

struct exception {
    uint32_t position; /* in the chunk */
    uint32_t symbol;
};

/* Lists the exceptions among the m labels of the elements from begin on, from the last to the first. */
static enum ptwm_status list_exceptions(struct chunk *c, const uint8_t *labels, size_t begin, size_t m)
{
    for (size_t i = m; i-- > 0;) {
        struct exception e;
        if (i >= 7 && (ptwm_load64(labels + i - 7) & UINT64_C(0x8080808080808080)) == 0) {
            i -= 7;
            continue;
        }
        if (labels[i] < PTWM_IS_EXCEPTION)
            continue;
        e.position = (uint32_t)(begin + i);
        e.symbol = symbol_at(c->w, c->first + begin + i);
        if (ptwm_bytes_append(&c->scratch->listed, &e, sizeof e) != PTWM_OK)
            return PTWM_ERR_MEMORY;
    }
    return PTWM_OK;
}

/* Turns the list, which is in descending order, into what is stored; *n is their number. */
static enum ptwm_status store_exceptions(struct chunk *c, size_t *n)
{
    const unsigned n_bytes = ptwm_float_bits(c->w->kind) > 8 ? 2 : 1;
    size_t expected = 0;
    uint8_t *to;

    *n = c->scratch->listed.nbytes / sizeof(struct exception);
    to = ptwm_bytes_scratch(&c->scratch->exceptions, *n * (10 + 2));
    for (size_t i = *n; i-- > 0 && to != NULL;) {
        struct exception e;
        memcpy(&e, c->scratch->listed.data + i * sizeof e, sizeof e);
        to += ptwm_store_varint(to, e.position - expected);
        expected = (size_t)e.position + 1;
        *to++ = (uint8_t)e.symbol;
        if (n_bytes == 2)
            *to++ = (uint8_t)(e.symbol >> 8);
    }
    if (to != NULL)
        c->scratch->exceptions.nbytes = (size_t)(to - c->scratch->exceptions.data);
    return to != NULL ? PTWM_OK : PTWM_ERR_MEMORY;
}

/* How many elements are coded at a time: whole units, and whole blocks of rests. */
static size_t coded_elements(size_t unit)
{
    size_t step = unit;

    while (step % BLOCK != 0)
        step *= 2; /* units are multiples of 128 */
    return step < CODED_ELEMENTS ? CODED_ELEMENTS / step * step : step;
}

/* Makes the labels of elements begin .. end - 1 and lists their exceptions, units from the last to the first. */
static enum ptwm_status make_labels(struct chunk *c, const struct ptwm_label_chunk *chunk,
                                    const uint8_t maps[PTWM_MAX_CLASSES][PTWM_N_BINS], size_t begin, size_t end)
{
    const size_t unit = chunk->unit, n_ordered = ptwm_label_n_ordered(c->n, chunk->width, chunk->unit);
    uint8_t *labels = c->scratch->labels.data;
    enum ptwm_status status = PTWM_OK;

    for (size_t u = (end - 1) / unit + 1; u-- > begin / unit && status == PTWM_OK;) {
        const size_t first = u * unit, m = end - first < unit ? end - first : unit;
        uint8_t *own = labels + (first - begin);
        if (labels_at(c->w, c->first + first, m, maps[chunk->classes[u]], own) >= PTWM_IS_EXCEPTION)
            status = list_exceptions(c, own, first, m);
    }
    if (n_ordered > begin)
        ptwm_float_lane_order(labels, (n_ordered < end ? n_ordered : end) - begin);
    return status;
}

/*
 * Packs the rests, but for those that are carried, and codes the labels, some units at a time, from the chunk's end.
 */
static enum ptwm_status code_elements(struct chunk *c, const struct first_rests *carried, struct ptwm_label_coding *coding)
{
    const size_t step = coded_elements(coding->chunk->unit), rest_bits = ptwm_float_rest_bits(c->w->kind);
    uint8_t maps[PTWM_MAX_CLASSES][PTWM_N_BINS], *rests = c->stored->data + c->stored->nbytes;
    enum ptwm_status status = PTWM_OK;

    make_maps(c->w, maps);
    c->scratch->listed.nbytes = 0;
    if (carried->n_carried > 0)
        memcpy(rests, carried->packed + carried->n_carried, carried->nbytes - carried->n_carried);
    for (size_t end = c->n; end > 0 && status == PTWM_OK;) {
        const size_t begin = (end - 1) / step * step;
        const size_t from = begin > 0 ? begin : carried->n_elements;
        ptwm_float_rests(c->w->kind, c->raw + from * ptwm_float_width(c->w->kind), end - from,
                         rests + from / 8 * rest_bits - carried->n_carried);
        status = make_labels(c, coding->chunk, (const uint8_t(*)[PTWM_N_BINS])maps, begin, end);
        coding->fetched = begin > 0 ? c->raw + begin * ptwm_float_width(c->w->kind) : NULL;
        if (status == PTWM_OK)
            ptwm_label_code(coding, c->scratch->labels.data, begin, end);
        end = begin;
    }
    return status;
}

/* Writes the symbol plane as it is. */
static void store_symbols(const struct chunk *c, uint8_t *plane)
{
    const bool wide = ptwm_float_bits(c->w->kind) > 8;

    for (size_t i = 0; i < c->n; i++) {
        const uint32_t symbol = symbol_at(c->w, c->first + i);
        if (wide)
            ptwm_store16(plane + 2 * i, (uint16_t)symbol);
        else
            plane[i] = (uint8_t)symbol;
    }
}

/*
 * The symbols, if they are all the same or no smaller as labels; false if they are neither. records: of the rest plane,
 * which is then stored in full, and of this one.
 */
static bool put_plain_symbols(struct chunk *c, bool is_constant, size_t label_nbytes, const struct first_rests *carried,
                              struct ptwm_plane_record records[2])
{
    const size_t size = ptwm_float_bits(c->w->kind) > 8 ? 2 : 1;
    uint8_t *plane; /* has room for all of it */

    if (!is_constant && label_nbytes < c->n * size)
        return false;
    restore_carried(c, carried, &records[0]);
    plane = c->stored->data + c->stored->nbytes;
    if (is_constant) {
        const uint32_t symbol = symbol_at(c->w, c->first);
        plane[0] = (uint8_t)symbol;
        plane[1] = (uint8_t)(symbol >> 8);
        end_plane(c, PTWM_CODEC_CONSTANT, size, &records[1]);
    } else {
        store_symbols(c, plane);
        end_plane(c, PTWM_CODEC_IDENTITY, c->n * size, &records[1]);
    }
    return true;
}

/* The rest and the symbol plane. */
static enum ptwm_status put_elements(struct chunk *c, struct ptwm_plane_record records[2])
{
    const struct ptwm_float_window *w = c->w;
    const uint8_t *classes = w->classes.data + (c->first - w->first_element) / w->tail->model.unit;
    const struct ptwm_label_chunk chunk = { c->n, (uint8_t)ptwm_float_width(w->kind), w->tail->model.unit, w->set, classes };
    const bool constant = chooses(c) && symbols_are_constant(c);
    struct ptwm_label_coding coding;
    struct first_rests carried;
    size_t nbytes, n_exceptions;
    uint8_t *room = ptwm_bytes_scratch(&c->scratch->words, 2 * (uint64_t)most_elements(w));

    if (room == NULL || ptwm_bytes_scratch(&c->scratch->labels, coded_elements(chunk.unit)) == NULL)
        return PTWM_ERR_MEMORY;
    pack_first_rests(c, &carried);
    /* Words are written from the room's end. */
    ptwm_label_begin(&coding, &w->encoder, &chunk, carried.n_carried > 0 ? carried.packed : NULL,
                     room + 2 * (most_elements(w) - c->n));
    if (code_elements(c, &carried, &coding) != PTWM_OK || store_exceptions(c, &n_exceptions) != PTWM_OK)
        return PTWM_ERR_MEMORY;
    put_rests(c, carried.n_carried, &records[0]);
    if (ptwm_bytes_reserve(c->stored, ptwm_label_end_bound(&coding, c->scratch->exceptions.nbytes) + 2 * c->n) != PTWM_OK)
        return PTWM_ERR_MEMORY;
    nbytes = ptwm_label_end(&coding, n_exceptions, c->scratch->exceptions.data, c->scratch->exceptions.nbytes,
                            c->stored->data + c->stored->nbytes);
    if (!chooses(c) || !put_plain_symbols(c, constant, nbytes, &carried, records))
        end_plane(c, PTWM_CODEC_LABEL_RANS, nbytes, &records[1]);
    return PTWM_OK;
}

enum ptwm_status ptwm_float_encode_chunk(const struct ptwm_float_window *w, uint64_t chunk,
                                         struct ptwm_float_scratch *scratch, struct ptwm_bytes *stored,
                                         struct ptwm_plane_record *records, struct ptwm_error *error)
{
    struct chunk c = { w, NULL, ptwm_tail_first_element(w->tail, chunk), chunk_elements(w, chunk), scratch, stored };
    const uint32_t n_low = ptwm_float_n_low(w->kind);
    const size_t most = most_elements(w);
    const uint64_t planes_nbytes = 2 * (uint64_t)n_low * most + ptwm_rest_nbytes(most, ptwm_float_rest_bits(w->kind));
    enum ptwm_status status = PTWM_OK;

    c.raw = raw_at(w, c.first);
    /* The whole chunk at once, with what its labels take when they have few exceptions. */
    if (ptwm_bytes_reserve(stored, planes_nbytes + 3 * (uint64_t)most + 1024) != PTWM_OK)
        status = PTWM_ERR_MEMORY;
    if (status == PTWM_OK && n_low > 0)
        status = put_low(&c, &records[0]);
    if (status == PTWM_OK)
        status = put_elements(&c, &records[n_low]);
    return status == PTWM_OK ? PTWM_OK : ptwm_fail(error, status, "encoding a chunk of %zu elements", c.n);
}
