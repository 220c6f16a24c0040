/*
 * The analysis of label rANS: classes, tables, column shifts and phases, and both without memory.
 */
#include "label_cases.h"
#include "log2_fixed.h"

/* ------------------------------------------------------------------------------------------------ analysis */

/* A rounded bell curve in octaves, like that of weights: 2 symbols an octave, falling off slowly downwards. */
static uint32_t random_weight_symbol(uint32_t top)
{
    uint32_t below = 0;
    while (below + 1 < top && random_below(8) < 5)
        below++;
    return top - below;
}

static void check_set(const struct ptwm_label_set *set, unsigned bits)
{
    CHECK(set->n_classes >= 1 && set->n_classes <= 8);
    for (uint32_t c = 0; c < set->n_classes; c++) {
        const struct ptwm_label_table *table = &set->classes[c];
        uint32_t sum = 0;
        CHECK(table->n_labels >= 2 && table->n_labels <= 32);
        for (uint32_t i = 0; i < 32; i++) {
            sum += table->frequency[i];
            CHECK(table->frequency[i] % 8 == 0);
            CHECK((table->frequency[i] > 0) == (i < table->n_labels));
            CHECK(table->symbol[i] >> bits == 0);
            CHECK(i == 0 || i >= table->n_labels || table->symbol[i] > table->symbol[i - 1]);
        }
        CHECK_EQ(sum, 65536);
    }
}

/* Analyses, codes and decodes; returns the real size of chunk and tables. */
static size_t analyse(const uint16_t *symbols, size_t n, unsigned bits, unsigned width, uint32_t unit,
                      uint32_t *n_classes)
{
    size_t n_units = (n + unit - 1) / unit, nbytes;
    struct ptwm_label_model model;
    struct ptwm_label_set set;
    struct ptwm_bytes tail = { &allocator, NULL, 0, 0 };
    uint8_t *classes = exactly(n_units);
    uint64_t cost_bits = 0;
    begin_model(&model, bits, width, unit);
    CHECK_EQ(ptwm_label_find_set(&allocator, symbols, n, bits, unit, NULL, &set, classes, &cost_bits), PTWM_OK);
    check_set(&set, bits);
    for (size_t u = 0; u < n_units; u++)
        CHECK(classes[u] < set.n_classes);
    CHECK_EQ(ptwm_label_model_add_set(&model, &set), PTWM_OK);
    CHECK_EQ(ptwm_label_model_write(&model, &tail), PTWM_OK);
    nbytes = round_trip(&model, 0, classes, symbols, n) + tail.nbytes;
    if (cost_bits / 8 > nbytes + nbytes / 100 + 200 || nbytes > cost_bits / 8 + cost_bits / 800 + 200)
        printf("n %u bits %u unit %u: estimate %u, real %u\n", (unsigned)n, bits, (unsigned)unit,
               (unsigned)(cost_bits / 8), (unsigned)nbytes);
    CHECK(cost_bits / 8 <= nbytes + nbytes / 100 + 200 && nbytes <= cost_bits / 8 + cost_bits / 800 + 200);
    if (n_classes != NULL)
        *n_classes = set.n_classes;
    ptwm_bytes_release(&tail);
    ptwm_label_model_release(&model);
    free(classes);
    return nbytes;
}

static void analysis_of_many_kinds(void)
{
    for (unsigned k = 0; k < 300; k++) {
        unsigned bits = 1 + k % 15, kind = k / 15 % 5;
        size_t n = 1 + random_below(k % 7 == 0 ? 200000 : k % 2 ? 800 : 20000);
        uint32_t unit = 128 * (1 + random_below(6)), last = (1u << bits) - 1;
        uint16_t *symbols = exactly(2 * n);
        for (size_t i = 0; i < n; i++) {
            uint32_t row = (uint32_t)(i / unit), value = random_weight_symbol(last * 3 / 4);
            value = kind == 0 ? value
                    : kind == 1 ? random_below(last + 1)
                    : kind == 2 ? last
                    : kind == 3 ? value - (value > row % 4 * 3 ? row % 4 * 3 : 0)
                    : random_below(3) ? 0 : value;
            symbols[i] = (uint16_t)value;
        }
        analyse(symbols, n, bits, bits <= 7 ? 1 : 2, unit, NULL);
        free(symbols);
    }
    CHECK_EQ(account.live_nbytes, 0);
}

/* Rows of four scales are told apart, and zeros far away from the rest have a label. */
static void analysis_finds_classes(void)
{
    size_t n = 400000, with_classes, expected;
    uint16_t *symbols = exactly(2 * n);
    uint32_t n_classes = 0, histogram[4][512] = { { 0 } };
    uint64_t ideal = 0;
    for (size_t i = 0; i < n; i++) {
        uint32_t scale = (uint32_t)(i / 384 * 7 % 13 % 4);
        symbols[i] = (uint16_t)(random_below(5) == 0 ? 0 : random_weight_symbol(200 + 5 * scale));
        histogram[scale][symbols[i]]++;
    }
    for (unsigned z = 0; z < 4; z++)
        ideal += ptwm_entropy_fixed(histogram[z], 512);
    expected = (size_t)(ideal / PTWM_LOG2_ONE / 8);
    with_classes = analyse(symbols, n, 9, 2, 384, &n_classes);
    CHECK_EQ(n_classes, 4);
    CHECK(with_classes < expected + expected / 500 + 1500);
    free(symbols);
}

static void analysis_runs_out_of_memory(void)
{
    static uint16_t symbols[4096];
    static int16_t shift[64];
    static uint8_t phase[64 + PTWM_MAX_LANES];
    const struct ptwm_phases phases = { phase, 64, 0 };
    struct ptwm_column_search search = { 64, 64, 5, 2, 7, shift, phase, false, false };
    struct ptwm_label_set set;
    uint8_t classes[32];
    uint64_t cost_bits;
    enum ptwm_status status = PTWM_ERR_MEMORY;
    for (unsigned i = 0; i < 4096; i++)
        symbols[i] = (uint16_t)(random_weight_symbol(20) + i % 2);
    for (unsigned has_phases = 0; has_phases < 2; has_phases++) {
        status = PTWM_ERR_MEMORY;
        for (long k = 0; status != PTWM_OK; k++) {
            account.n_allocations = 0;
            account.fail_at = k;
            status = ptwm_label_find_set(&allocator, symbols, 4096, 5, 128, has_phases ? &phases : NULL, &set, classes,
                                         &cost_bits);
            CHECK(status == PTWM_OK || status == PTWM_ERR_MEMORY);
            CHECK_EQ(account.live_nbytes, 0);
            CHECK(k < 20);
        }
    }
    status = PTWM_ERR_MEMORY;
    for (long k = 0; status != PTWM_OK; k++) {
        account.n_allocations = 0;
        account.fail_at = k;
        status = ptwm_label_find_shifts(&allocator, symbols, &search);
        CHECK(status == PTWM_OK || status == PTWM_ERR_MEMORY);
        CHECK_EQ(account.live_nbytes, 0);
        CHECK(k < 20);
    }
    account.fail_at = -1;
}

static void coding_runs_out_of_memory(void)
{
    struct sample sample;
    enum ptwm_status status = PTWM_ERR_MEMORY;
    make_sample(&sample, 1000, 9, 4, 10, true);
    for (long k = 0; status != PTWM_OK; k++) {
        long before = account.live_nbytes;
        account.n_allocations = 0;
        account.fail_at = k;
        status = ptwm_label_encode(&sample.model, 0, sample.classes, 0, sample.symbols, sample.n, NULL, sample.coded,
                                   &sample.nbytes, NULL);
        CHECK(status == PTWM_OK || status == PTWM_ERR_MEMORY);
        CHECK_EQ(account.live_nbytes, before);
    }
    account.fail_at = -1;
    release_sample(&sample);
}

static void column_shifts(void)
{
    enum { ROWS = 2000, COLUMNS = 96 };
    uint16_t *symbols = exactly(2 * ROWS * COLUMNS);
    int16_t shift[COLUMNS], difference = 0;
    uint8_t phase[COLUMNS];
    struct ptwm_column_search search = { ROWS, COLUMNS, 9, 2, 7, shift, phase, false, false };
    random_state = 1; /* a column halfway between two shifts could go either way */
    /* Columns whose scales differ by octaves; every third symbol is a pruned weight's zero. */
    for (size_t i = 0; i < ROWS * COLUMNS; i++) {
        uint32_t scale = i % COLUMNS % 5;
        symbols[i] = (uint16_t)(scale == i / COLUMNS % 3 ? 0 : random_weight_symbol(240 + 2 * scale));
    }
    CHECK_EQ(ptwm_label_find_shifts(&allocator, symbols, &search), PTWM_OK);
    CHECK(search.pays);
    CHECK(!search.has_phases); /* they would be all alike */
    for (unsigned c = 0; c < COLUMNS; c++) {
        CHECK_EQ(shift[c] % 2, 0);
        if (c == 0)
            difference = shift[0];
        CHECK_EQ(shift[c] - difference, 2 * (int)(c % 5));
    }
    /* Columns that are all alike, and one column. */
    for (size_t i = 0; i < ROWS * COLUMNS; i++)
        symbols[i] = (uint16_t)random_weight_symbol(240);
    CHECK_EQ(ptwm_label_find_shifts(&allocator, symbols, &search), PTWM_OK);
    CHECK(!search.pays);
    CHECK(!search.has_phases);
    search.n_columns = 1;
    CHECK_EQ(ptwm_label_find_shifts(&allocator, symbols, &search), PTWM_OK);
    CHECK(!search.pays);
    CHECK_EQ(shift[0], 0);
    /* Extremes of every kind stay in range. */
    for (unsigned bits = 1; bits <= 15; bits++)
        for (uint32_t step = 1; step <= 128; step *= 2) {
            for (size_t i = 0; i < ROWS * COLUMNS / 16; i++)
                symbols[i] = (uint16_t)(i % 7 ? random_below(1u << bits) : i % COLUMNS % 2 ? (1u << bits) - 1 : 0);
            search.n_rows = ROWS / 16;
            search.n_columns = COLUMNS;
            search.bits = bits;
            search.step = step;
            CHECK_EQ(ptwm_label_find_shifts(&allocator, symbols, &search), PTWM_OK);
            for (unsigned c = 0; c < COLUMNS; c++)
                CHECK(shift[c] >= -128 && shift[c] <= 127 && shift[c] % (int)step == 0);
        }
    free(symbols);
    CHECK_EQ(account.live_nbytes, 0);
}

/* A normal variate's symbol as bfloat16: its exponent and a bit of mantissa. */
static uint16_t normal_symbol(float scale)
{
    float sum = -6;
    uint32_t bits;
    for (unsigned k = 0; k < 12; k++)
        sum += (float)random_below(65536) / 65536;
    sum *= scale;
    memcpy(&bits, &sum, sizeof(bits));
    return (uint16_t)(bits >> 22 & 511);
}

/* Codes rows of columns with the shifts and phases that have been found; returns the size. */
static size_t code_rows(const uint16_t *symbols, const struct ptwm_column_search *search)
{
    const size_t n = search->n_rows * search->n_columns;
    uint16_t *shifted = exactly(2 * n);
    struct ptwm_bytes tail = { &allocator, NULL, 0, 0 };
    struct ptwm_label_model model;
    struct ptwm_phases phases;
    struct ptwm_label_set set;
    uint8_t *classes = exactly(n / 512 + 1);
    uint64_t cost_bits = 0;
    size_t nbytes;
    begin_model(&model, search->bits, 2, 512);
    if (search->pays)
        CHECK_EQ(ptwm_label_model_set_shifts(&model, search->shift, search->n_columns), PTWM_OK);
    if (search->has_phases)
        CHECK_EQ(ptwm_label_model_set_phases(&model, search->phase), PTWM_OK);
    for (size_t i = 0; i < n; i++)
        shifted[i] = (symbols[i] - (search->pays ? model.wrapped[i % search->n_columns] : 0)) & 511;
    phases = ptwm_label_phases(&model, 0);
    CHECK_EQ(ptwm_label_find_set(&allocator, shifted, n, search->bits, 512, search->has_phases ? &phases : NULL, &set,
                                 classes, &cost_bits),
             PTWM_OK);
    check_set(&set, search->bits);
    CHECK_EQ(ptwm_label_model_add_set(&model, &set), PTWM_OK);
    CHECK_EQ(ptwm_label_model_write(&model, &tail), PTWM_OK);
    CHECK_EQ(n * 7 % 1000, 0); /* where round_trip begins */
    nbytes = round_trip(&model, 0, classes, shifted, n) + tail.nbytes;
    CHECK(cost_bits / 8 <= nbytes + nbytes / 100 + 200 && nbytes <= cost_bits / 8 + cost_bits / 800 + 200);
    ptwm_bytes_release(&tail);
    ptwm_label_model_release(&model);
    free(shifted);
    free(classes);
    return nbytes;
}

static void column_phases(void)
{
    enum { ROWS = 2000, COLUMNS = 96 };
    static const float scales[] = { 1, 1.41421356f, 2, 2.82842712f, 4 };
    uint16_t *symbols = exactly(2 * ROWS * COLUMNS);
    int16_t shift[COLUMNS];
    uint8_t phase[COLUMNS];
    struct ptwm_column_search search = { ROWS, COLUMNS, 9, 2, 7, shift, phase, false, false };
    size_t with_phases, without;
    int first = 0;
    random_state = 1;
    for (size_t i = 0; i < ROWS * COLUMNS; i++)
        symbols[i] = normal_symbol(scales[i % COLUMNS % 5]);
    CHECK_EQ(ptwm_label_find_shifts(&allocator, symbols, &search), PTWM_OK);
    CHECK(search.pays);
    CHECK(search.has_phases);
    for (unsigned c = 0; c < COLUMNS; c++) {
        const int halves = shift[c] + phase[c] / PTWM_PHASE;
        CHECK_EQ(shift[c] % 2, 0);
        if (c == 0)
            first = halves;
        CHECK_EQ(halves - first, (int)(c % 5));
    }
    /* Where all that is stored is much more, they are not worth it. */
    with_phases = code_rows(symbols, &search);
    search.other_bits = 23;
    CHECK_EQ(ptwm_label_find_shifts(&allocator, symbols, &search), PTWM_OK);
    CHECK(search.pays);
    CHECK(!search.has_phases);
    without = code_rows(symbols, &search);
    CHECK(with_phases + without / 100 < without);
    /* Symbols that are octaves have none, nor have columns of which few rows are known. */
    search.other_bits = 7;
    search.step = 1;
    CHECK_EQ(ptwm_label_find_shifts(&allocator, symbols, &search), PTWM_OK);
    CHECK(!search.has_phases);
    search.step = 2;
    search.n_rows = 40;
    CHECK_EQ(ptwm_label_find_shifts(&allocator, symbols, &search), PTWM_OK);
    CHECK(!search.has_phases);
    free(symbols);
    CHECK_EQ(account.live_nbytes, 0);
}

int main(void)
{
    RUN(analysis_of_many_kinds);
    RUN(analysis_finds_classes);
    RUN(analysis_runs_out_of_memory);
    RUN(coding_runs_out_of_memory);
    RUN(column_shifts);
    RUN(column_phases);
    CHECK_EXIT();
}
