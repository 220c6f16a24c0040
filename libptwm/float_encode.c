#include "float_encode.h"

#include "rest.h"
#include "status.h"
#include "trim.h"

enum {
    BLOCK = PTWM_FLOAT_BLOCK,
    CODED_ELEMENTS = 1 << 15, /* at a time: labels stay in the first cache */
    FIRST_RESTS_NBYTES = 640  /* a block's rests, of 10 bits each; two blocks' of 3 and less */
};

/* ------------------------------------------------------------------------------------------------------- access */

/* What is made room for at once for n elements' planes; few take more. */
static uint64_t usual_nbytes(const struct ptwm_float_window *w, size_t n)
{
    const uint64_t lows_nbytes = 2 * (uint64_t)ptwm_float_n_low(w->kind) * n;
    return lows_nbytes + ptwm_rest_nbytes(n, ptwm_float_rest_bits(w->kind)) + 3 * (uint64_t)n + 1024;
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

static uint32_t symbol_at(const struct ptwm_float_window *w, uint64_t element)
{
    const uint16_t *shift = ptwm_float_shifts_at(w, element);
    uint16_t symbol;

    ptwm_float_symbols(w->kind, ptwm_float_raw_at(w, element), 1, &symbol);
    return (symbol - (shift != NULL ? *shift : 0u)) & ((1u << ptwm_float_bits(w->kind)) - 1);
}

/* Sets labels' phases. */
static void add_phases(const struct ptwm_float_window *w, uint64_t element, size_t m, uint8_t *labels)
{
    uint8_t phases[BLOCK];

    for (size_t i = 0; i < m; i += BLOCK) {
        const size_t n = m - i < BLOCK ? m - i : BLOCK;
        ptwm_float_placed_phases(w, element + i, n, phases);
        for (size_t k = 0; k < n; k++)
            labels[i + k] |= phases[k];
    }
}

/* The labels of m elements by a map of bins, with their phases; returns whether any is an exception. */
static bool labels_at(const struct ptwm_float_window *w, uint64_t element, size_t m, const uint8_t map[PTWM_N_BINS],
                      uint8_t *labels)
{
    bool any = false;

    for (size_t i = 0; i < m; i += BLOCK)
        any |= ptwm_float_labels(w->kind, ptwm_float_raw_at(w, element + i), m - i < BLOCK ? m - i : BLOCK,
                                 w->bins.first, ptwm_float_shifts_at(w, element + i), map, labels + i);
    if (w->tail->model.phase != NULL)
        add_phases(w, element, m, labels);
    return any;
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

/* Which of the m <= 64 labels from begin on, among n of a unit, are exceptions: a bit for each element. */
static uint64_t exceptions_among(const uint8_t *labels, size_t begin, size_t m, size_t n, uint8_t width)
{
    uint64_t found = 0;

    for (size_t i = 0; i < m; i++) {
        if (i + 8 <= m && (ptwm_load64(labels + begin + i) & UINT64_C(0x8080808080808080)) == 0)
            i += 7;
        else if (labels[begin + i] >= PTWM_IS_EXCEPTION)
            found |= UINT64_C(1) << (ptwm_label_placed(begin + i, n, width) - begin);
    }
    return found;
}

/* Lists the exceptions among the m labels of the elements from begin on, a unit, from the last to the first. */
static enum ptwm_status list_exceptions(struct chunk *c, const uint8_t *labels, size_t begin, size_t m)
{
    const uint8_t width = (uint8_t)ptwm_float_width(c->w->kind);

    for (size_t end = m; end > 0;) {
        const size_t first = (end - 1) / PTWM_PAIR_BLOCK * PTWM_PAIR_BLOCK;
        uint64_t found = exceptions_among(labels, first, end - first, m, width);
        for (size_t i = end; found != 0 && i-- > first;) {
            struct exception e;
            if ((found >> (i - first) & 1) == 0)
                continue;
            e.position = (uint32_t)(begin + i);
            e.symbol = symbol_at(c->w, c->first + begin + i);
            found ^= UINT64_C(1) << (i - first);
            if (ptwm_bytes_append(&c->scratch->listed, &e, sizeof e) != PTWM_OK)
                return PTWM_ERR_MEMORY;
        }
        end = first;
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
    const size_t unit = chunk->unit;
    uint8_t *labels = c->scratch->labels.data;
    enum ptwm_status status = PTWM_OK;

    for (size_t u = (end - 1) / unit + 1; u-- > begin / unit && status == PTWM_OK;) {
        const size_t first = u * unit, m = end - first < unit ? end - first : unit;
        uint8_t *own = labels + (first - begin);
        if (labels_at(c->w, c->first + first, m, maps[chunk->classes[u]], own))
            status = list_exceptions(c, own, first, m);
    }
    return status;
}

/*
 * Tells coding, of labels begin .. end - 1, what is gone through after it: the elements before them and their rests, or
 * where the symbol plane will lie, of which the words so far show about how long it is.
 */
static void announce(const struct chunk *c, const uint8_t *rests, size_t begin, size_t end,
                     struct ptwm_label_coding *coding)
{
    const size_t rest_bits = ptwm_float_rest_bits(c->w->kind), width = ptwm_float_width(c->w->kind);
    const size_t words_nbytes = (size_t)(coding->words_end - coding->words);
    struct ptwm_upcoming *next = coding->upcoming;

    next[0] = next[1] = (struct ptwm_upcoming){ NULL, 0 };
    if (begin > 0) {
        next[0] = (struct ptwm_upcoming){ c->raw + begin * width, 8 * width };
        next[1] = (struct ptwm_upcoming){ rests + begin / 8 * rest_bits, rest_bits };
    } else if (words_nbytes > 0) {
        next[0] = (struct ptwm_upcoming){ rests + c->n / 8 * rest_bits + words_nbytes, 8 * words_nbytes / end };
    }
}

/*
 * Packs the rests, but for those that are carried, and codes the labels, some units at a time, from the chunk's end.
 */
static enum ptwm_status code_elements(struct chunk *c, const struct first_rests *carried, struct ptwm_label_coding *coding)
{
    const size_t step = coded_elements(coding->chunk->unit), rest_bits = ptwm_float_rest_bits(c->w->kind);
    const size_t width = ptwm_float_width(c->w->kind);
    uint8_t maps[PTWM_MAX_CLASSES][PTWM_N_BINS], *rests = c->stored->data + c->stored->nbytes;
    enum ptwm_status status = PTWM_OK;

    make_maps(c->w, maps);
    c->scratch->listed.nbytes = 0;
    if (carried->n_carried > 0)
        memcpy(rests, carried->packed + carried->n_carried, carried->nbytes - carried->n_carried);
    for (size_t end = c->n; end > 0 && status == PTWM_OK;) {
        const size_t begin = (end - 1) / step * step;
        const size_t from = begin > 0 ? begin : carried->n_elements;
        ptwm_float_rests(c->w->kind, c->raw + from * width, end - from,
                         rests + from / 8 * rest_bits - carried->n_carried);
        status = make_labels(c, coding->chunk, (const uint8_t(*)[PTWM_N_BINS])maps, begin, end);
        announce(c, rests, begin, end, coding);
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

uint64_t ptwm_float_chunk_nbytes(const struct ptwm_float_window *w)
{
    return usual_nbytes(w, most_elements(w));
}

enum ptwm_status ptwm_float_encode_chunk(const struct ptwm_float_window *w, uint64_t chunk,
                                         struct ptwm_float_scratch *scratch, struct ptwm_bytes *stored,
                                         struct ptwm_plane_record *records, struct ptwm_error *error)
{
    struct chunk c = { w, NULL, ptwm_tail_first_element(w->tail, chunk), ptwm_float_chunk_elements(w, chunk), scratch, stored };
    const uint32_t n_low = ptwm_float_n_low(w->kind);
    enum ptwm_status status = PTWM_OK;

    c.raw = ptwm_float_raw_at(w, c.first);
    if (ptwm_bytes_reserve(stored, usual_nbytes(w, c.n)) != PTWM_OK)
        status = PTWM_ERR_MEMORY;
    if (status == PTWM_OK && n_low > 0)
        status = put_low(&c, &records[0]);
    if (status == PTWM_OK)
        status = put_elements(&c, &records[n_low]);
    return status == PTWM_OK ? PTWM_OK : ptwm_fail(error, status, "encoding a chunk of %zu elements", c.n);
}
