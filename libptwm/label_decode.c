/*
 * Decoding a chunk's symbols: FORMAT.md, section 7.2. Plain C, for all models and numbers of lanes, and what the kernels
 * are checked against.
 */
#include "label_decode.h"

#include "status.h"

enum {
    WORDS_NBYTES = 2 * PTWM_MAX_LANES,     /* what a group takes at most */
    BUCKETS = PTWM_PHASE + PTWM_MAX_LABELS /* those of phase 1 follow those of phase 0 */
};

/* What a state's low half says, for a bucket's own part and for its alias part. */
struct entry {
    uint16_t frequency;
    uint16_t adj;
    uint16_t symbol;
};

struct class_decoder {
    uint16_t div[BUCKETS];
    struct entry own[BUCKETS], alias[BUCKETS];
};

struct decoder {
    struct class_decoder by_class[PTWM_MAX_CLASSES];
    uint32_t states[PTWM_MAX_LANES];
    uint8_t offset[PTWM_MAX_LANES]; /* the element of a lane, within its group */
    struct ptwm_phases phases;      /* of the elements to come */
    unsigned n_lanes;
    bool is_permuted;
    /* The words not read yet. Once fewer are left than a group may take, they lie in last, with zeros behind them. */
    const uint8_t *words;
    const uint8_t *words_end;
    bool is_last;
    uint8_t last[2 * WORDS_NBYTES + 2];
};

/* ------------------------------------------------------------------------------------------------- the head */

struct ptwm_exceptions ptwm_exceptions_begin(const struct ptwm_label_head *head, unsigned bits, size_t n)
{
    struct ptwm_exceptions exceptions = { head->exceptions, head->n_exceptions, bits, n, 0 };
    return exceptions;
}

bool ptwm_exceptions_next(struct ptwm_exceptions *exceptions, size_t *position, uint16_t *symbol)
{
    struct ptwm_cursor *src = &exceptions->src;
    uint64_t distance = ptwm_cursor_varint(src);

    *symbol = exceptions->bits <= 8 ? ptwm_cursor_u8(src) : ptwm_cursor_u16(src);
    if (src->failed || distance >= exceptions->n - exceptions->position || *symbol >> exceptions->bits != 0)
        return false;
    *position = exceptions->position + (size_t)distance;
    exceptions->position = *position + 1;
    exceptions->left--;
    return true;
}

struct ptwm_label_classes ptwm_label_classes_begin(const struct ptwm_label_head *head)
{
    struct ptwm_label_classes classes = { { head->classes, 0, 0 },
                                          ptwm_ceil_log2(head->set->n_classes),
                                          head->set->n_classes };
    return classes;
}

/* Checks all exceptions and finds their end. */
static bool pass_exceptions(const struct ptwm_label_head *head, unsigned bits, size_t n, struct ptwm_cursor *end)
{
    struct ptwm_exceptions exceptions = ptwm_exceptions_begin(head, bits, n);
    size_t position;
    uint16_t symbol;

    while (exceptions.left > 0)
        if (!ptwm_exceptions_next(&exceptions, &position, &symbol))
            return false;
    *end = exceptions.src;
    return true;
}

static enum ptwm_status read_states(struct ptwm_label_head *head, const uint8_t *begin, struct ptwm_cursor *src,
                                    struct ptwm_error *error)
{
    const uint8_t *end;

    if (ptwm_cursor_left(src) < 4 * head->n_lanes + 4)
        return ptwm_fail(error, PTWM_ERR_PLANE, "label rANS: too short");
    end = src->next + 4 * head->n_lanes;
    head->crc = ptwm_crc32c(0, begin, (size_t)(end - begin));
    if (head->crc != ptwm_load32(end))
        return ptwm_fail(error, PTWM_ERR_CHECKSUM, "label rANS: head");
    head->crc = ptwm_crc32c(head->crc, end, 4);
    for (uint32_t i = 0; i < head->n_lanes; i++) {
        head->states[i] = ptwm_cursor_u32(src);
        if (head->states[i] < PTWM_STATE_END)
            return ptwm_fail(error, PTWM_ERR_PLANE, "label rANS: bad state");
    }
    ptwm_cursor_u32(src); /* the CRC */
    if (ptwm_cursor_left(src) % 2 != 0)
        return ptwm_fail(error, PTWM_ERR_PLANE, "label rANS: half a word");
    return PTWM_OK;
}

enum ptwm_status ptwm_label_read_head(struct ptwm_label_head *head, const struct ptwm_label_model *model, size_t n,
                                      struct ptwm_cursor *src, struct ptwm_error *error)
{
    const uint8_t *begin = src->next;
    uint8_t lanes_code = ptwm_cursor_u8(src);
    uint64_t set = ptwm_cursor_varint(src), n_units = ptwm_ceil_div(n, model->unit);

    if (src->failed || lanes_code > 2)
        return ptwm_fail(error, PTWM_ERR_PLANE, "label rANS: bad lanes");
    head->n_lanes = lanes_code == 0 ? 4 : lanes_code == 1 ? 32 : 128;
    if (head->n_lanes == PTWM_MAX_LANES && model->unit % PTWM_UNIT_GRANULE != 0)
        return ptwm_fail(error, PTWM_ERR_PLANE, "label rANS: %u lanes for units of %lu", head->n_lanes,
                         (unsigned long)model->unit);
    if (set >= model->n_sets)
        return ptwm_fail(error, PTWM_ERR_PLANE, "label rANS: no such set");
    head->set = &model->sets[set];
    head->n_exceptions = ptwm_cursor_varint(src);
    if (src->failed || head->n_exceptions > n)
        return ptwm_fail(error, PTWM_ERR_PLANE, "label rANS: bad number of exceptions");
    head->classes = ptwm_cursor_take(src, (size_t)ptwm_ceil_div(n_units * ptwm_ceil_log2(head->set->n_classes), 8));
    head->exceptions = *src;
    if (!pass_exceptions(head, model->bits, n, src))
        return ptwm_fail(error, PTWM_ERR_PLANE, "label rANS: bad exceptions");
    return read_states(head, begin, src, error);
}

/* ------------------------------------------------------------------------------------------------- tables */

/* Builds the buckets of a phase. */
static void build_buckets(struct class_decoder *class, uint32_t phase, const uint16_t *frequency,
                          const uint16_t *symbol)
{
    struct ptwm_alias_table alias;
    ptwm_alias_build(&alias, frequency);
    for (uint32_t b = 0; b < PTWM_MAX_LABELS; b++) {
        uint32_t other = alias.ali[b];
        struct entry own_part = { alias.frequency[b], 0, symbol[b] };
        struct entry alias_part = { alias.frequency[other], alias.adj[b], symbol[other] };
        class->div[phase + b] = alias.div[b];
        class->own[phase + b] = own_part;
        class->alias[phase + b] = alias_part;
    }
}

static void begin_decoding(struct decoder *decoder, const struct ptwm_label_head *head,
                           const struct ptwm_label_model *model, uint64_t first_element, const uint32_t *states,
                           const uint8_t *words, const uint8_t *words_end)
{
    decoder->phases = ptwm_label_phases(model, first_element);
    decoder->n_lanes = head->n_lanes;
    decoder->is_permuted = head->n_lanes == 128 && model->width == 1;
    decoder->is_last = false;
    decoder->words = words;
    decoder->words_end = words_end;
    for (uint32_t c = 0; c < head->set->n_classes; c++) {
        const struct ptwm_label_table *table = &head->set->classes[c];
        build_buckets(&decoder->by_class[c], 0, table->frequency, table->symbol);
        if (model->phase != NULL)
            build_buckets(&decoder->by_class[c], PTWM_PHASE, table->second, table->symbol);
    }
    for (uint32_t i = 0; i < head->n_lanes; i++)
        decoder->offset[ptwm_label_lane(i, head->n_lanes, model->width)] = (uint8_t)i;
    memcpy(decoder->states, states, head->n_lanes * sizeof(*states));
}

/* ------------------------------------------------------------------------------------------------- words */

/* Makes sure that a group can read all the words that it may ask for, be they there or not. */
static void secure_words(struct decoder *decoder)
{
    size_t left = (size_t)(decoder->words_end - decoder->words);
    if (decoder->is_last || left > WORDS_NBYTES)
        return;
    memset(decoder->last, 0, sizeof(decoder->last));
    memcpy(decoder->last, decoder->words, left);
    decoder->words = decoder->last;
    decoder->words_end = decoder->last + left;
    decoder->is_last = true;
}

/*
 * One step: the new state, having looked at the next word at *words and perhaps taken it. phase: 0 or PTWM_PHASE, of
 * the element's column.
 */
static inline uint32_t step(const struct class_decoder *class, uint32_t x, uint32_t phase, const uint8_t **words,
                            uint16_t *symbol)
{
    uint32_t low = x & 0xffff, bucket = low % PTWM_MAX_LABELS + phase, takes;
    const struct entry *entry = low >= class->div[bucket] ? &class->alias[bucket] : &class->own[bucket];
    x = entry->frequency * (x >> 16) + ((low / PTWM_MAX_LABELS + entry->adj) & 0xffff);
    takes = x < 65536;
    *symbol = entry->symbol;
    x = takes ? x << 16 | ptwm_load16(*words) : x;
    *words += 2 * takes;
    return x;
}

static void decode_full_group(struct decoder *decoder, const struct class_decoder *class, uint16_t *symbols)
{
    uint16_t by_lane[PTWM_MAX_LANES];
    uint8_t phase_by_lane[PTWM_MAX_LANES];
    uint16_t *out = decoder->is_permuted ? by_lane : symbols;
    const uint8_t *words = decoder->words, *phase = ptwm_phases_next(&decoder->phases, decoder->n_lanes);
    for (unsigned lane = 0; decoder->is_permuted && lane < decoder->n_lanes; lane++)
        phase_by_lane[lane] = phase[decoder->offset[lane]];
    phase = decoder->is_permuted ? phase_by_lane : phase;
    for (unsigned lane = 0; lane < decoder->n_lanes; lane++)
        decoder->states[lane] = step(class, decoder->states[lane], phase[lane], &words, &out[lane]);
    decoder->words = words;
    for (unsigned lane = 0; decoder->is_permuted && lane < decoder->n_lanes; lane++)
        symbols[decoder->offset[lane]] = by_lane[lane];
}

static void decode_partial_group(struct decoder *decoder, const struct class_decoder *class, uint16_t *symbols,
                                 size_t m)
{
    const uint8_t *phase = ptwm_phases_next(&decoder->phases, (uint32_t)m);
    for (unsigned lane = 0; lane < decoder->n_lanes; lane++) {
        unsigned i = decoder->offset[lane];
        if (i < m)
            decoder->states[lane] = step(class, decoder->states[lane], phase[i], &decoder->words, &symbols[i]);
    }
}

/* Decodes m elements of one class; false if there are too few words. */
static bool decode_unit(struct decoder *decoder, const struct class_decoder *class, uint16_t *symbols, size_t m)
{
    for (size_t n_lanes = decoder->n_lanes; m > 0;) {
        size_t group = m < n_lanes ? m : n_lanes;
        secure_words(decoder);
        if (group == n_lanes)
            decode_full_group(decoder, class, symbols);
        else
            decode_partial_group(decoder, class, symbols, m);
        if (decoder->words > decoder->words_end)
            return false;
        symbols += group;
        m -= group;
    }
    return true;
}

/* Checks the end, and takes out what the states carry. */
static enum ptwm_status check_end(const struct ptwm_label_head *head, const uint32_t *states, const uint8_t *words,
                                  const uint8_t *words_end, uint8_t *carried, size_t n_carried, struct ptwm_error *error)
{
    if (words != words_end)
        return ptwm_fail(error, PTWM_ERR_PLANE, "label rANS: words left over");
    if (n_carried != 0 && n_carried != 2 * head->n_lanes)
        return ptwm_fail(error, PTWM_ERR_PLANE, "label rANS: %u lanes do not carry %zu bytes", head->n_lanes, n_carried);
    for (unsigned lane = 0; lane < head->n_lanes; lane++) {
        if (n_carried == 0 ? states[lane] != PTWM_STATE_END : states[lane] >> 16 != 1)
            return ptwm_fail(error, PTWM_ERR_PLANE, "label rANS: wrong state at the end");
        if (n_carried != 0)
            ptwm_store16(carried + 2 * lane, (uint16_t)states[lane]);
    }
    return PTWM_OK;
}

/* The same for units that groups of lanes do not fit: the elements from begin to end, one by one. */
static bool decode_elements(struct decoder *decoder, const struct class_decoder *class, uint16_t *symbols, size_t begin,
                            size_t end)
{
    while (begin < end) {
        const size_t stop = end - begin < PTWM_MAX_LANES ? end : begin + PTWM_MAX_LANES;
        const uint8_t *phase = ptwm_phases_next(&decoder->phases, (uint32_t)(stop - begin));
        const uint8_t *words;

        secure_words(decoder);
        words = decoder->words;
        for (; begin < stop; begin++) {
            uint32_t *state = &decoder->states[begin % decoder->n_lanes];
            *state = step(class, *state, *phase++, &words, &symbols[begin]);
        }
        decoder->words = words;
        if (words > decoder->words_end)
            return false;
    }
    return true;
}

static enum ptwm_status decode_units(struct decoder *decoder, const struct ptwm_label_head *head, size_t unit,
                                     uint16_t *symbols, size_t n, uint8_t *carried, size_t n_carried,
                                     struct ptwm_error *error)
{
    struct ptwm_label_classes classes = ptwm_label_classes_begin(head);
    uint8_t class;

    for (size_t begin = 0; begin < n; begin += unit) {
        const size_t m = n - begin < unit ? n - begin : unit;
        if (!ptwm_label_classes_next(&classes, &class))
            return ptwm_fail(error, PTWM_ERR_PLANE, "label rANS: no such class");
        if (unit % head->n_lanes == 0 ? !decode_unit(decoder, &decoder->by_class[class], symbols + begin, m)
                                      : !decode_elements(decoder, &decoder->by_class[class], symbols, begin, begin + m))
            return ptwm_fail(error, PTWM_ERR_PLANE, "label rANS: too few words");
    }
    if (classes.reader.pool != 0)
        return ptwm_fail(error, PTWM_ERR_PLANE, "label rANS: unused bits behind classes are not zero");
    return check_end(head, decoder->states, decoder->words, decoder->words_end, carried, n_carried, error);
}

enum ptwm_status ptwm_label_decode_end(const struct ptwm_label_head *head, const struct ptwm_label_model *model,
                                       uint64_t first_element, const uint32_t *states, const uint8_t *group_class,
                                       const uint8_t *words, const uint8_t *words_end, uint16_t *symbols, size_t m,
                                       uint8_t *carried, size_t n_carried, struct ptwm_error *error)
{
    struct decoder decoder;

    if (m == 0)
        return check_end(head, states, words, words_end, carried, n_carried, error);
    begin_decoding(&decoder, head, model, first_element, states, words, words_end);
    for (size_t begin = 0; begin < m; begin += PTWM_UNIT_GRANULE) {
        size_t n = m - begin < PTWM_UNIT_GRANULE ? m - begin : PTWM_UNIT_GRANULE;
        if (!decode_unit(&decoder, &decoder.by_class[group_class[begin / PTWM_UNIT_GRANULE]], symbols + begin, n))
            return ptwm_fail(error, PTWM_ERR_PLANE, "label rANS: too few words");
    }
    return check_end(head, decoder.states, decoder.words, decoder.words_end, carried, n_carried, error);
}

enum ptwm_status ptwm_label_decode(const struct ptwm_label_model *model, uint64_t first_element, const uint8_t *src,
                                   size_t src_nbytes, uint16_t *symbols, size_t n, uint8_t *carried, size_t n_carried,
                                   struct ptwm_error *error)
{
    struct ptwm_cursor cursor = ptwm_cursor_make(src, src_nbytes);
    struct ptwm_exceptions exceptions;
    struct ptwm_label_head head;
    struct decoder decoder;
    enum ptwm_status status = ptwm_label_read_head(&head, model, n, &cursor, error);

    if (status != PTWM_OK)
        return status;
    begin_decoding(&decoder, &head, model, first_element, head.states, cursor.next, cursor.end);
    status = decode_units(&decoder, &head, model->unit, symbols, n, carried, n_carried, error);
    if (status != PTWM_OK)
        return status;
    exceptions = ptwm_exceptions_begin(&head, model->bits, n);
    while (exceptions.left > 0) {
        size_t position;
        uint16_t symbol;
        if (!ptwm_exceptions_next(&exceptions, &position, &symbol))
            return ptwm_fail(error, PTWM_ERR_PLANE, "label rANS: bad exceptions");
        symbols[position] = symbol;
    }
    return PTWM_OK;
}
