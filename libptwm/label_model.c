/*
 * The model of a label step: FORMAT.md, section 7.1, and the alias tables of section 7.2.
 */
#include "label.h"

#include "status.h"

enum {
    BUCKET = PTWM_FREQUENCY_TOTAL / PTWM_MAX_LABELS, /* what an alias bucket holds */
    MIN_SET_NBYTES = 5,                              /* n_classes, L, and two labels of one and two bytes */
    MAX_TABLE_NBYTES = 1 + 7 * PTWM_MAX_LABELS,
    HAS_PHASES = 128, /* with the shifts' width */
    MIN_SHIFT = -128,
    MAX_SHIFT = 127
};

void ptwm_label_model_init(struct ptwm_label_model *model, const struct ptwm_allocator *allocator,
                           const struct ptwm_step *label)
{
    memset(model, 0, sizeof(*model));
    model->allocator = allocator;
    model->width = label->width;
    model->position = label->shift;
    model->bits = label->bits;
    model->unit = PTWM_UNIT_GRANULE;
    model->max_sets = PTWM_MAX_SETS;
}

static uint64_t n_lifted(uint32_t n_columns)
{
    return (uint64_t)n_columns + PTWM_SHIFT_MARGIN;
}

static void release_shifts(struct ptwm_label_model *model)
{
    ptwm_release(model->allocator, model->phase, n_lifted(model->n_columns), sizeof(*model->phase));
    ptwm_release(model->allocator, model->shift, model->n_columns, sizeof(*model->shift));
    ptwm_release(model->allocator, model->wrapped, model->n_columns, sizeof(*model->wrapped));
    ptwm_release(model->allocator, model->lifted, n_lifted(model->n_columns), sizeof(*model->lifted));
    model->shift = NULL;
    model->wrapped = NULL;
    model->lifted = NULL;
    model->phase = NULL;
    model->n_columns = 0;
}

void ptwm_label_model_release(struct ptwm_label_model *model)
{
    release_shifts(model);
    ptwm_release(model->allocator, model->sets, model->sets_capacity, sizeof(*model->sets));
    model->sets = NULL;
    model->n_sets = 0;
    model->sets_capacity = 0;
}

/* Makes room for n_columns shifts, whose values the caller then sets. */
static enum ptwm_status allocate_shifts(struct ptwm_label_model *model, uint32_t n_columns)
{
    release_shifts(model);
    if (n_columns == 0)
        return PTWM_OK;
    model->n_columns = n_columns;
    model->shift = ptwm_alloc(model->allocator, n_columns, sizeof(*model->shift));
    model->wrapped = ptwm_alloc(model->allocator, n_columns, sizeof(*model->wrapped));
    model->lifted = ptwm_alloc(model->allocator, n_lifted(n_columns), sizeof(*model->lifted));
    if (model->shift == NULL || model->wrapped == NULL || model->lifted == NULL) {
        release_shifts(model);
        return PTWM_ERR_MEMORY;
    }
    return PTWM_OK;
}

static void set_shift(struct ptwm_label_model *model, uint32_t column, int shift)
{
    model->shift[column] = (int16_t)shift;
    model->wrapped[column] = (uint16_t)((unsigned)shift & ((1u << model->bits) - 1));
}

static enum ptwm_status allocate_phases(struct ptwm_label_model *model)
{
    if (model->phase == NULL)
        model->phase = ptwm_alloc(model->allocator, n_lifted(model->n_columns), sizeof(*model->phase));
    return model->phase != NULL ? PTWM_OK : PTWM_ERR_MEMORY;
}

/* Derives the kernels' form of the shifts, and of the phases, once those of all columns are set. */
static void lift_shifts(struct ptwm_label_model *model)
{
    uint8_t *narrow = (uint8_t *)model->lifted;

    for (size_t i = model->n_columns; model->phase != NULL && i < n_lifted(model->n_columns); i++)
        model->phase[i] = model->phase[i - model->n_columns];
    for (size_t i = 0, column = 0, n = (size_t)n_lifted(model->n_columns); i < n; i++) {
        unsigned shift = (unsigned)model->wrapped[column] << model->position;
        unsigned phase = model->phase != NULL ? model->phase[i] : 0;
        column = column + 1 < model->n_columns ? column + 1 : 0;
        if (model->width == 1)
            narrow[i] = (uint8_t)(shift | phase / PTWM_PHASE);
        else
            model->lifted[i] = (uint16_t)(shift | phase);
    }
}

enum ptwm_status ptwm_label_model_set_shifts(struct ptwm_label_model *model, const int16_t *shift, uint32_t n_columns)
{
    enum ptwm_status status = allocate_shifts(model, n_columns);
    if (status != PTWM_OK)
        return status;
    if (n_columns == 0)
        return PTWM_OK;
    for (uint32_t c = 0; c < n_columns; c++)
        set_shift(model, c, shift[c]);
    lift_shifts(model);
    return PTWM_OK;
}

enum ptwm_status ptwm_label_model_set_phases(struct ptwm_label_model *model, const uint8_t *phase)
{
    enum ptwm_status status = allocate_phases(model);
    if (status != PTWM_OK)
        return status;
    memcpy(model->phase, phase, model->n_columns);
    lift_shifts(model);
    return PTWM_OK;
}

struct ptwm_phases ptwm_label_phases(const struct ptwm_label_model *model, uint64_t first_element)
{
    static const uint8_t none[PTWM_MAX_LANES];
    const bool has_phases = model->phase != NULL;
    const struct ptwm_phases phases = { has_phases ? model->phase : none, has_phases ? model->n_columns : 1,
                                        has_phases ? (uint32_t)(first_element % model->n_columns) : 0 };
    return phases;
}

enum ptwm_status ptwm_label_model_add_set(struct ptwm_label_model *model, const struct ptwm_label_set *set)
{
    if (model->n_sets == model->sets_capacity) {
        uint32_t capacity = model->sets_capacity > 0 ? 2 * model->sets_capacity : 2;
        struct ptwm_label_set *sets = ptwm_alloc(model->allocator, capacity, sizeof(*sets));
        if (sets == NULL)
            return PTWM_ERR_MEMORY;
        if (model->n_sets > 0)
            memcpy(sets, model->sets, model->n_sets * sizeof(*sets));
        ptwm_release(model->allocator, model->sets, model->sets_capacity, sizeof(*sets));
        model->sets = sets;
        model->sets_capacity = capacity;
    }
    model->sets[model->n_sets++] = *set;
    return PTWM_OK;
}

/* ------------------------------------------------------------------------------------------------- writing */

uint64_t ptwm_label_shifts_nbytes(const int16_t *shift, uint32_t n_columns)
{
    int low = MAX_SHIFT, high = MIN_SHIFT;
    unsigned width;
    if (n_columns == 0)
        return 1;
    for (uint32_t c = 0; c < n_columns; c++) {
        low = shift[c] < low ? shift[c] : low;
        high = shift[c] > high ? shift[c] : high;
    }
    width = ptwm_ceil_log2((uint32_t)(high - low) + 1);
    return ptwm_varint_nbytes(n_columns) + 2 + ptwm_ceil_div((uint64_t)n_columns * (width > 0 ? width : 1), 8);
}

static size_t phases_nbytes(const struct ptwm_label_model *model)
{
    return model->phase != NULL ? (size_t)ptwm_ceil_div(model->n_columns, 8) : 0;
}

/* dst has room for ptwm_label_shifts_nbytes bytes, and for phases_nbytes more. */
static void store_shifts(uint8_t *dst, const struct ptwm_label_model *model)
{
    struct ptwm_bit_writer writer = { 0 };
    int low = MAX_SHIFT, high = MIN_SHIFT;
    unsigned width;
    dst += ptwm_store_varint(dst, model->n_columns);
    if (model->n_columns == 0)
        return;
    for (uint32_t c = 0; c < model->n_columns; c++) {
        low = model->shift[c] < low ? model->shift[c] : low;
        high = model->shift[c] > high ? model->shift[c] : high;
    }
    width = ptwm_ceil_log2((uint32_t)(high - low) + 1);
    width = width > 0 ? width : 1;
    *dst++ = (uint8_t)low;
    *dst++ = (uint8_t)(width + (model->phase != NULL ? HAS_PHASES : 0));
    writer.next = dst;
    for (uint32_t c = 0; c < model->n_columns; c++)
        ptwm_write_bits(&writer, (uint32_t)(model->shift[c] - low), width);
    ptwm_flush_bits(&writer);
    for (uint32_t c = 0; model->phase != NULL && c < model->n_columns; c++)
        ptwm_write_bits(&writer, model->phase[c] / PTWM_PHASE, 1);
    ptwm_flush_bits(&writer);
}

/* The symbol that a label without a gap would have. */
static uint32_t next_symbol(const struct ptwm_label_table *table, uint32_t label)
{
    return label > 0 ? table->symbol[label - 1] + 1u : 0;
}

/* Stores a table; returns its length, at most MAX_TABLE_NBYTES. */
static size_t store_table(uint8_t *dst, const struct ptwm_label_table *table, bool has_phases)
{
    uint8_t *next = dst;
    *next++ = (uint8_t)table->n_labels;
    for (uint32_t i = 0; i < table->n_labels; i++) {
        uint32_t gap = table->symbol[i] - next_symbol(table, i);
        next += ptwm_store_varint(next, table->frequency[i] / PTWM_FREQUENCY_GRANULE * 2u + (gap > 0));
        if (gap > 0)
            next += ptwm_store_varint(next, gap);
    }
    for (uint32_t i = 0; has_phases && i < table->n_labels; i++)
        next += ptwm_store_varint(next, table->second[i] / PTWM_FREQUENCY_GRANULE);
    return (size_t)(next - dst);
}

size_t ptwm_label_table_nbytes(const struct ptwm_label_table *table, bool has_phases)
{
    uint8_t stored[MAX_TABLE_NBYTES];
    return store_table(stored, table, has_phases);
}

enum ptwm_status ptwm_label_model_write(const struct ptwm_label_model *model, struct ptwm_bytes *tail)
{
    uint8_t stored[MAX_TABLE_NBYTES];
    uint64_t shifts_nbytes = ptwm_label_shifts_nbytes(model->shift, model->n_columns) + phases_nbytes(model);
    enum ptwm_status status = ptwm_bytes_append_varint(tail, model->unit);
    if (status == PTWM_OK)
        status = ptwm_bytes_reserve(tail, shifts_nbytes);
    if (status != PTWM_OK)
        return status;
    store_shifts(tail->data + tail->nbytes, model);
    tail->nbytes += (size_t)shifts_nbytes;

    status = ptwm_bytes_append_varint(tail, model->n_sets);
    for (uint32_t s = 0; s < model->n_sets && status == PTWM_OK; s++) {
        const struct ptwm_label_set *set = &model->sets[s];
        status = ptwm_bytes_append_u8(tail, (uint8_t)set->n_classes);
        for (uint32_t c = 0; c < set->n_classes && status == PTWM_OK; c++)
            status = ptwm_bytes_append(tail, stored, store_table(stored, &set->classes[c], model->phase != NULL));
    }
    return status;
}

/* ------------------------------------------------------------------------------------------------- reading */

/* Reads the phases of all columns. */
static enum ptwm_status read_phases(struct ptwm_label_model *model, struct ptwm_cursor *tail, struct ptwm_error *error)
{
    struct ptwm_bit_reader reader = { 0 };
    reader.next = ptwm_cursor_take(tail, (size_t)ptwm_ceil_div(model->n_columns, 8));
    if (reader.next == NULL)
        return ptwm_fail(error, PTWM_ERR_SEGMENT, "phases are cut off");
    if (allocate_phases(model) != PTWM_OK)
        return ptwm_fail(error, PTWM_ERR_MEMORY, "phases");
    for (uint32_t c = 0; c < model->n_columns; c++)
        model->phase[c] = (uint8_t)(PTWM_PHASE * ptwm_read_bits(&reader, 1));
    if (reader.pool != 0)
        return ptwm_fail(error, PTWM_ERR_SEGMENT, "unused bits behind phases are not zero");
    return PTWM_OK;
}

static enum ptwm_status read_shifts(struct ptwm_label_model *model, struct ptwm_cursor *tail, struct ptwm_error *error)
{
    struct ptwm_bit_reader reader = { 0 };
    uint64_t n_columns = ptwm_cursor_varint(tail);
    enum ptwm_status status = PTWM_OK;
    int base;
    unsigned width, flags;
    if (tail->failed || n_columns > PTWM_MAX_COLUMNS)
        return ptwm_fail(error, PTWM_ERR_SEGMENT, "bad number of columns");
    if (n_columns == 0)
        return PTWM_OK;
    base = (int8_t)ptwm_cursor_u8(tail);
    flags = ptwm_cursor_u8(tail);
    width = flags % HAS_PHASES;
    if (width < 1 || width > 8)
        return ptwm_fail(error, PTWM_ERR_SEGMENT, "bad width of column shifts");
    reader.next = ptwm_cursor_take(tail, (size_t)ptwm_ceil_div(n_columns * width, 8));
    if (reader.next == NULL)
        return ptwm_fail(error, PTWM_ERR_SEGMENT, "column shifts are cut off");
    if (allocate_shifts(model, (uint32_t)n_columns) != PTWM_OK)
        return ptwm_fail(error, PTWM_ERR_MEMORY, "column shifts");
    for (uint32_t c = 0; c < n_columns; c++) {
        int shift = base + (int)ptwm_read_bits(&reader, width);
        if (shift > MAX_SHIFT)
            return ptwm_fail(error, PTWM_ERR_SEGMENT, "column shift out of range");
        set_shift(model, c, shift);
    }
    if (reader.pool != 0)
        return ptwm_fail(error, PTWM_ERR_SEGMENT, "unused bits behind column shifts are not zero");
    if (flags >= HAS_PHASES)
        status = read_phases(model, tail, error);
    if (status == PTWM_OK)
        lift_shifts(model);
    return status;
}

/* The second frequencies of a table whose labels are known. */
static enum ptwm_status read_second(struct ptwm_label_table *table, struct ptwm_cursor *tail, struct ptwm_error *error)
{
    uint32_t total = 0;
    for (uint32_t i = 0; i < table->n_labels; i++) {
        uint64_t frequency = ptwm_cursor_varint(tail);
        if (frequency < 1 || frequency >= PTWM_FREQUENCY_TOTAL / PTWM_FREQUENCY_GRANULE)
            return ptwm_fail(error, PTWM_ERR_SEGMENT, "bad second frequency of a label");
        table->second[i] = (uint16_t)(frequency * PTWM_FREQUENCY_GRANULE);
        total += table->second[i];
    }
    if (tail->failed || total != PTWM_FREQUENCY_TOTAL)
        return ptwm_fail(error, PTWM_ERR_SEGMENT, "second label frequencies do not sum to 65536");
    return PTWM_OK;
}

static enum ptwm_status read_table(struct ptwm_label_table *table, unsigned bits, struct ptwm_cursor *tail,
                                   struct ptwm_error *error)
{
    uint32_t total = 0;
    memset(table, 0, sizeof(*table));
    table->n_labels = ptwm_cursor_u8(tail);
    if (table->n_labels < 2 || table->n_labels > PTWM_MAX_LABELS)
        return ptwm_fail(error, PTWM_ERR_SEGMENT, "bad number of labels");
    for (uint32_t i = 0; i < table->n_labels; i++) {
        uint64_t value = ptwm_cursor_varint(tail), frequency = value / 2, gap = 0, symbol;
        if (value % 2 == 1) {
            gap = ptwm_cursor_varint(tail);
            if (gap == 0)
                return ptwm_fail(error, PTWM_ERR_SEGMENT, "a label's gap is zero or cut off");
        }
        if (frequency < 1 || frequency >= PTWM_FREQUENCY_TOTAL / PTWM_FREQUENCY_GRANULE)
            return ptwm_fail(error, PTWM_ERR_SEGMENT, "bad label frequency");
        if (gap >> bits != 0 || (symbol = next_symbol(table, i) + gap) >> bits != 0)
            return ptwm_fail(error, PTWM_ERR_SEGMENT, "a label's symbol is out of range");
        table->symbol[i] = (uint16_t)symbol;
        table->frequency[i] = (uint16_t)(frequency * PTWM_FREQUENCY_GRANULE);
        total += table->frequency[i];
    }
    if (tail->failed || total != PTWM_FREQUENCY_TOTAL)
        return ptwm_fail(error, PTWM_ERR_SEGMENT, "label frequencies do not sum to 65536");
    return PTWM_OK;
}

static enum ptwm_status read_set(struct ptwm_label_set *set, unsigned bits, bool has_phases, struct ptwm_cursor *tail,
                                 struct ptwm_error *error)
{
    memset(set, 0, sizeof(*set));
    set->n_classes = ptwm_cursor_u8(tail);
    if (set->n_classes < 1 || set->n_classes > PTWM_MAX_CLASSES)
        return ptwm_fail(error, PTWM_ERR_SEGMENT, "bad number of classes");
    for (uint32_t c = 0; c < set->n_classes; c++) {
        enum ptwm_status status = read_table(&set->classes[c], bits, tail, error);
        if (status == PTWM_OK && has_phases)
            status = read_second(&set->classes[c], tail, error);
        if (status != PTWM_OK)
            return status;
    }
    return PTWM_OK;
}

enum ptwm_status ptwm_label_model_read(struct ptwm_label_model *model, struct ptwm_cursor *tail,
                                       struct ptwm_error *error)
{
    struct ptwm_label_set set;
    enum ptwm_status status;
    uint64_t unit = ptwm_cursor_varint(tail), n_sets;
    if (tail->failed || unit == 0 || unit > PTWM_MAX_UNIT)
        return ptwm_fail(error, PTWM_ERR_SEGMENT, "bad unit");
    model->unit = (uint32_t)unit;
    status = read_shifts(model, tail, error);
    if (status != PTWM_OK)
        return status;
    n_sets = ptwm_cursor_varint(tail);
    if (tail->failed || n_sets > model->max_sets || n_sets > ptwm_cursor_left(tail) / MIN_SET_NBYTES)
        return ptwm_fail(error, PTWM_ERR_SEGMENT, "bad number of sets");
    for (uint64_t s = 0; s < n_sets; s++) {
        status = read_set(&set, model->bits, model->phase != NULL, tail, error);
        if (status != PTWM_OK)
            return status;
        if (ptwm_label_model_add_set(model, &set) != PTWM_OK)
            return ptwm_fail(error, PTWM_ERR_MEMORY, "label tables");
    }
    return PTWM_OK;
}

/* -------------------------------------------------------------------------------------------- alias tables */

void ptwm_alias_build(struct ptwm_alias_table *alias, const uint16_t frequency[PTWM_MAX_LABELS])
{
    uint32_t left[PTWM_MAX_LABELS], small[PTWM_MAX_LABELS], large[PTWM_MAX_LABELS];
    uint32_t n_small = 0, n_large = 0;
    for (uint32_t i = PTWM_MAX_LABELS; i-- > 0;) {
        left[i] = alias->frequency[i] = frequency[i];
        alias->ali[i] = (uint16_t)i;
        alias->div[i] = 0;
        alias->adj[i] = 0;
        if (left[i] < BUCKET)
            small[n_small++] = i;
        else if (left[i] > BUCKET)
            large[n_large++] = i;
    }
    /* Frequencies sum to 32 buckets, so while one is short of a full one, another has more than that. */
    while (n_small > 0 && n_large > 0) {
        uint32_t s = small[--n_small], l = large[n_large - 1], own = left[s];
        alias->div[s] = (uint16_t)(own * PTWM_MAX_LABELS);
        alias->ali[s] = (uint16_t)l;
        left[l] -= BUCKET - own;
        alias->adj[s] = (uint16_t)(left[l] - own);
        if (left[l] <= BUCKET)
            n_large--;
        if (left[l] < BUCKET)
            small[n_small++] = l;
    }
}
