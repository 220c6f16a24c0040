/*
 * Label rANS: models, alias tables, coding against a slow decoder written from FORMAT.md's text, the analysis, and
 * malformed input. Run under the address sanitizer: buffers have exactly the size that was promised.
 */
#include "label.h"

#include "check.h"
#include "log2_fixed.h"

static uint64_t random_state = 1;

static uint32_t random_below(uint32_t n)
{
    return (uint32_t)((check_random(&random_state) >> 32) * n >> 32);
}

static void *exactly(size_t nbytes)
{
    return malloc(nbytes > 0 ? nbytes : 1);
}

/* ------------------------------------------------------------------------------ an allocator that keeps account */

struct account {
    long live_nbytes;
    long n_allocations;
    long fail_at; /* the number of the allocation to fail, or -1 */
};

static void *account_alloc(void *context, size_t nbytes)
{
    struct account *account = context;
    if (account->n_allocations++ == account->fail_at)
        return NULL;
    account->live_nbytes += (long)nbytes;
    return malloc(nbytes);
}

static void account_release(void *context, void *pointer, size_t nbytes)
{
    struct account *account = context;
    if (pointer != NULL)
        account->live_nbytes -= (long)nbytes;
    free(pointer);
}

static struct account account = { 0, 0, -1 };
static const struct ptwm_allocator allocator = { account_alloc, account_release, &account };

/* ----------------------------------------------------------------------------------------- models to test with */

static void begin_model(struct ptwm_label_model *model, unsigned bits, unsigned width, uint32_t unit)
{
    struct ptwm_step label = { PTWM_STEP_LABEL, 0, 0, 0 };
    label.width = (uint8_t)width;
    label.bits = (uint8_t)bits;
    ptwm_label_model_init(model, &allocator, &label);
    model->unit = unit;
}

/* Random legal frequencies, sometimes extreme. */
static void random_frequencies(uint16_t *frequency, uint32_t n_labels)
{
    uint32_t left = 8192;
    for (uint32_t i = 0; i < n_labels; i++) {
        uint32_t others = n_labels - 1 - i, f;
        f = others == 0 ? left : random_below(4) == 0 ? 1 : 1 + random_below((left - others) / (random_below(8) + 1));
        f = f > left - others ? left - others : f;
        frequency[i] = (uint16_t)(8 * f);
        left -= f;
    }
}

static void random_table(struct ptwm_label_table *table, unsigned bits)
{
    uint32_t most = 1u << bits < 32 ? 1u << bits : 32, symbol = 0;
    uint32_t spread = ((1u << bits) - most) / most;
    memset(table, 0, sizeof(*table));
    table->n_labels = 2 + random_below(most - 1);
    for (uint32_t i = 0; i < table->n_labels; i++) {
        symbol += spread > 0 && random_below(3) == 0 ? random_below(spread + 1) : 0;
        table->symbol[i] = (uint16_t)symbol++;
    }
    random_frequencies(table->frequency, table->n_labels);
}

/* Gives a set second frequencies. */
static void random_second(struct ptwm_label_set *set)
{
    for (uint32_t c = 0; c < set->n_classes; c++)
        random_frequencies(set->classes[c].second, set->classes[c].n_labels);
}

/* Gives a model column shifts and phases. */
static void random_phases(struct ptwm_label_model *model, uint32_t n_columns)
{
    int16_t *shift = exactly(n_columns * sizeof(*shift));
    uint8_t *phase = exactly(n_columns);
    for (uint32_t c = 0; c < n_columns; c++) {
        shift[c] = (int16_t)((int)random_below(256) - 128);
        phase[c] = (uint8_t)(PTWM_PHASE * random_below(2));
    }
    CHECK_EQ(ptwm_label_model_set_shifts(model, shift, n_columns), PTWM_OK);
    CHECK_EQ(ptwm_label_model_set_phases(model, phase), PTWM_OK);
    free(shift);
    free(phase);
}

static void random_set(struct ptwm_label_set *set, uint32_t n_classes, unsigned bits)
{
    memset(set, 0, sizeof(*set));
    set->n_classes = n_classes;
    for (uint32_t c = 0; c < n_classes; c++)
        random_table(&set->classes[c], bits);
}

/* Symbols that mostly follow the tables of their units' classes; one in exceptions is anything. */
static void random_symbols(uint16_t *symbols, size_t n, const struct ptwm_label_set *set, const uint8_t *classes,
                           uint32_t unit, unsigned bits, uint32_t exceptions)
{
    for (size_t i = 0; i < n; i++) {
        const struct ptwm_label_table *table = &set->classes[classes[i / unit]];
        uint32_t at = random_below(65536), label = 0;
        while (at >= table->frequency[label])
            at -= table->frequency[label++];
        symbols[i] = table->symbol[label];
        if (exceptions > 0 && random_below(exceptions) == 0)
            symbols[i] = (uint16_t)random_below(1u << bits);
    }
}

/* ------------------------------------------------------------------------------------------------ a slow decoder */

struct slow_reader {
    const uint8_t *p;
    const uint8_t *end;
};

static uint64_t slow_varint(struct slow_reader *r)
{
    uint64_t value = 0;
    for (unsigned shift = 0;; shift += 7) {
        uint8_t byte = *r->p++;
        value |= (uint64_t)(byte & 127) << shift;
        if (byte < 128)
            return value;
    }
}

/* FORMAT.md's alias table, word by word. */
static void slow_alias(const uint32_t *F, uint32_t *ali, uint32_t *div, uint32_t *adj)
{
    uint32_t rem[32], small[64], large[64];
    int n_small = 0, n_large = 0;
    for (int i = 0; i < 32; i++) {
        rem[i] = F[i];
        ali[i] = (uint32_t)i;
        div[i] = adj[i] = 0;
    }
    for (int i = 31; i >= 0; i--) {
        if (F[i] < 2048)
            small[n_small++] = (uint32_t)i;
        else if (F[i] > 2048)
            large[n_large++] = (uint32_t)i;
    }
    while (n_small > 0) {
        uint32_t s = small[--n_small], l = large[n_large - 1], d = rem[s];
        div[s] = 32 * d;
        ali[s] = l;
        rem[l] -= 2048 - d;
        adj[s] = (rem[l] - d) & 0xffff;
        if (rem[l] < 2048) {
            n_large--;
            small[n_small++] = l;
        } else if (rem[l] == 2048) {
            n_large--;
        }
    }
}

struct slow_class {
    uint32_t F[32], symbol[32], ali[32], div[32], adj[32];
};

/* Those of phase 0, then those of phase 1. */
static void slow_classes(struct slow_class classes[2][8], const struct ptwm_label_set *set, bool has_phases)
{
    for (uint32_t phase = 0; phase < (has_phases ? 2u : 1u); phase++)
        for (uint32_t c = 0; c < set->n_classes; c++) {
            struct slow_class *class = &classes[phase][c];
            for (uint32_t i = 0; i < 32; i++) {
                class->F[i] = phase == 0 ? set->classes[c].frequency[i] : set->classes[c].second[i];
                class->symbol[i] = set->classes[c].symbol[i];
            }
            slow_alias(class->F, class->ali, class->div, class->adj);
        }
}

static uint32_t slow_lane(size_t i, uint32_t lanes, unsigned width)
{
    if (lanes == 128 && width == 1) {
        size_t j = i % 64;
        return (uint32_t)(64 * (i / 64 % 2) + 32 * (j % 2) + j / 2);
    }
    return (uint32_t)(i % lanes);
}

static uint16_t slow_step(const struct slow_class *class, uint32_t *state, struct slow_reader *words)
{
    uint32_t x = *state, S = x % 65536, h = x / 65536, b = S % 32, off = S / 32, label = b, rank = off;
    if (S >= class->div[b]) {
        label = class->ali[b];
        rank = (off + class->adj[b]) % 65536;
    }
    x = class->F[label] * h + rank;
    if (x < 65536) {
        CHECK(words->end - words->p >= 2);
        x = x * 65536 + ptwm_load16(words->p);
        words->p += 2;
    }
    *state = x;
    return (uint16_t)class->symbol[label];
}

/* Decodes what is known to be well-formed, for the set that it must name. */
static void slow_decode(const struct ptwm_label_model *model, uint32_t set_number, uint64_t first_element,
                        const uint8_t *src, size_t nbytes, const uint8_t *carried, uint16_t *symbols, size_t n)
{
    static const uint32_t lanes_of_code[] = { 4, 32, 128 };
    struct slow_reader r = { src, src + nbytes };
    const struct ptwm_label_set *set = &model->sets[set_number];
    static struct slow_class tables[2][8];
    uint32_t states[128], lanes = lanes_of_code[*r.p++], class_bits = 0;
    uint64_t n_exceptions, position = 0;
    const uint8_t *classes, *exceptions;
    CHECK_EQ(slow_varint(&r), set_number);
    n_exceptions = slow_varint(&r);
    while (1u << class_bits < set->n_classes)
        class_bits++;
    classes = r.p;
    r.p += ((n + model->unit - 1) / model->unit * class_bits + 7) / 8;
    exceptions = r.p;
    for (uint64_t k = 0; k < n_exceptions; k++) {
        slow_varint(&r);
        r.p += model->bits <= 8 ? 1 : 2;
    }
    for (uint32_t l = 0; l < lanes; l++, r.p += 4)
        states[l] = ptwm_load32(r.p);
    CHECK_EQ(ptwm_load32(r.p), ptwm_crc32c(0, src, (size_t)(r.p - src)));
    r.p += 4;
    slow_classes(tables, set, model->phase != NULL);
    for (size_t group = 0; group < n; group += lanes)
        for (uint32_t l = 0; l < lanes; l++)
            for (size_t i = group; i < group + lanes && i < n; i++) {
                uint32_t class = 0, phase = 0;
                if (slow_lane(i, lanes, model->width) != l)
                    continue;
                for (uint32_t k = 0; k < class_bits; k++) {
                    size_t at = i / model->unit * class_bits + k;
                    class |= (classes[at / 8] >> at % 8 & 1u) << k;
                }
                if (model->phase != NULL)
                    phase = model->phase[(first_element + i) % model->n_columns] != 0;
                symbols[i] = slow_step(&tables[phase][class], &states[l], &r);
            }
    CHECK(r.p == r.end);
    for (uint32_t l = 0; l < lanes; l++)
        CHECK_EQ(states[l], 65536 + (carried == NULL ? 0u : ptwm_load16(carried + 2 * l)));
    r.p = exceptions;
    for (uint64_t k = 0; k < n_exceptions; k++) {
        position += slow_varint(&r);
        symbols[position++] = model->bits <= 8 ? *r.p : ptwm_load16(r.p);
        r.p += model->bits <= 8 ? 1 : 2;
    }
}

/* ------------------------------------------------------------------------------------------------ alias tables */

static void check_alias(const struct ptwm_label_table *table)
{
    static uint8_t seen[65536];
    struct ptwm_alias_table alias;
    struct slow_class slow;
    uint32_t first[33] = { 0 };
    bool is_unique = true, is_in_range = true;
    for (uint32_t i = 0; i < 32; i++) {
        slow.F[i] = table->frequency[i];
        first[i + 1] = first[i] + table->frequency[i];
    }
    CHECK_EQ(first[32], 65536);
    slow_alias(slow.F, slow.ali, slow.div, slow.adj);
    ptwm_alias_build(&alias, table->frequency);
    memset(seen, 0, sizeof(seen));
    for (uint32_t i = 0; i < 32; i++) {
        CHECK_EQ(alias.div[i], slow.div[i]);
        CHECK_EQ(alias.ali[i], slow.ali[i]);
        CHECK_EQ(alias.adj[i], slow.adj[i]);
        CHECK_EQ(alias.frequency[i], slow.F[i]);
    }
    for (uint32_t S = 0; S < 65536; S++) {
        uint32_t b = S % 32, off = S / 32, label = b, rank = off;
        if (S >= alias.div[b]) {
            label = alias.ali[b];
            rank = (off + alias.adj[b]) % 65536;
        }
        is_in_range = is_in_range && label < 32 && rank < alias.frequency[label];
        if (!is_in_range)
            break;
        is_unique = is_unique && seen[first[label] + rank] == 0;
        seen[first[label] + rank] = 1;
    }
    CHECK(is_in_range);
    CHECK(is_unique);
}

static void alias_tables(void)
{
    struct ptwm_label_table table;
    for (unsigned k = 0; k < 400; k++) {
        random_table(&table, 1 + k % 15);
        check_alias(&table);
    }
    memset(&table, 0, sizeof(table));
    table.n_labels = 32;
    for (unsigned i = 0; i < 32; i++) {
        table.symbol[i] = (uint16_t)i;
        table.frequency[i] = 2048;
    }
    check_alias(&table);
    for (unsigned i = 0; i < 32; i++)
        table.frequency[i] = 8;
    table.frequency[17] = 65536 - 31 * 8;
    check_alias(&table);
    memset(&table, 0, sizeof(table));
    table.n_labels = 2;
    table.symbol[1] = 1;
    for (unsigned f = 8; f < 65536; f += 8 * 37) {
        table.frequency[0] = (uint16_t)f;
        table.frequency[1] = (uint16_t)(65536 - f);
        check_alias(&table);
    }
}

/* ------------------------------------------------------------------------------------------------ round trips */

/* The encoder's choice. */
static size_t slow_n_lanes(size_t n, uint32_t unit)
{
    if (unit % 128 != 0)
        return n >= 65536 ? 32 : 4;
    return n >= 16384 ? 128 : n >= 1024 ? 32 : 4;
}

/* Codes, checks the length, decodes both ways and compares. */
static size_t round_trip(const struct ptwm_label_model *model, uint32_t set, const uint8_t *classes,
                         const uint16_t *symbols, size_t n)
{
    struct ptwm_error error = PTWM_ERROR_INIT;
    size_t bound = ptwm_label_bound(n), nbytes = 0, n_lanes = slow_n_lanes(n, model->unit);
    size_t n_carried = n % 3 == 0 ? 0 : 2 * n_lanes;
    uint64_t first_element = n * 7 % 1000;
    uint8_t *coded = exactly(bound), *copy, carried[256] = { 0 }, carried_back[256] = { 0 };
    uint16_t *back = exactly(2 * n), *slow = exactly(2 * n);
    for (size_t i = 0; i < n_carried; i++)
        carried[i] = (uint8_t)(i < 16 ? i % 4 / 2 * 255 : random_below(256));
    CHECK_EQ(ptwm_label_encode(model, set, classes, first_element, symbols, n, n_carried > 0 ? carried : NULL, coded,
                               &nbytes, &error),
             PTWM_OK);
    CHECK(nbytes <= bound);
    copy = exactly(nbytes);
    memcpy(copy, coded, nbytes);
    CHECK_EQ(ptwm_label_decode(model, first_element, copy, nbytes, back, n, carried_back, n_carried, &error), PTWM_OK);
    CHECK(memcmp(back, symbols, 2 * n) == 0);
    CHECK(memcmp(carried_back, carried, n_carried) == 0);
    CHECK_EQ(copy[0], n_lanes == 4 ? 0 : n_lanes == 32 ? 1 : 2);
    CHECK_EQ(ptwm_label_decode(model, first_element, copy, nbytes, back, n, carried_back, 16, NULL), PTWM_ERR_PLANE);
    if (n_carried > 0)
        CHECK_EQ(ptwm_label_decode(model, first_element, copy, nbytes, back, n, NULL, 0, NULL), PTWM_ERR_PLANE);
    slow_decode(model, set, first_element, copy, nbytes, n_carried > 0 ? carried : NULL, slow, n);
    CHECK(memcmp(slow, symbols, 2 * n) == 0);
    free(coded);
    free(copy);
    free(back);
    free(slow);
    return nbytes;
}

static void random_round_trip(unsigned bits, unsigned width, uint32_t n_classes, uint32_t unit, size_t n,
                              uint32_t exceptions)
{
    size_t n_units = (n + unit - 1) / unit;
    struct ptwm_label_model model;
    struct ptwm_label_set set;
    uint16_t *symbols = exactly(2 * n);
    uint8_t *classes = exactly(n_units);
    begin_model(&model, bits, width, unit);
    if (n % 2)
        random_phases(&model, 1 + random_below(400));
    for (unsigned s = 0; s < 1 + n % 3; s++) {
        random_set(&set, n_classes, bits);
        if (model.phase != NULL)
            random_second(&set);
        CHECK_EQ(ptwm_label_model_add_set(&model, &set), PTWM_OK);
    }
    for (size_t u = 0; u < n_units; u++)
        classes[u] = (uint8_t)random_below(n_classes);
    random_symbols(symbols, n, &set, classes, unit, bits, exceptions);
    round_trip(&model, model.n_sets - 1, classes, symbols, n);
    ptwm_label_model_release(&model);
    free(symbols);
    free(classes);
}

static void small_round_trips(void)
{
    static const unsigned all_bits[] = { 1, 4, 5, 8, 9, 15 };
    for (unsigned k = 0; k < 6; k++)
        for (size_t n = 1; n <= 600; n++)
            random_round_trip(all_bits[k], all_bits[k] <= 4 ? 0 : all_bits[k] <= 7 ? 1 : 2, 1 + (uint32_t)n % 8, 128, n,
                              (uint32_t)n % 5 * 10);
    CHECK_EQ(account.live_nbytes, 0);
}

static void large_round_trips(void)
{
    for (unsigned bits = 1; bits <= 15; bits++)
        for (unsigned k = 0; k < 12; k++) {
            unsigned width = bits > 7 ? 2 : k % 3;
            size_t n = 1 + random_below(k == 11 && bits % 5 == 0 ? 1000000 : k % 2 ? 3000 : 40000);
            uint32_t n_classes = 1 + random_below(8);
            uint32_t unit = k % 3 == 0 ? 1 + random_below(k % 2 ? 40 : 1000)
                                       : 128 * (1 + random_below(k % 4 == 0 ? 8192 : 12));
            random_round_trip(bits, width, n_classes, unit, n, k % 3 == 0 ? 0 : 1 + random_below(1000));
        }
    /* Around the sizes where the number of lanes changes. */
    for (size_t n = 1020; n < 1030; n++)
        random_round_trip(5, 1, 2, 256, n, 100);
    for (size_t n = 16380; n < 16520; n++)
        random_round_trip(5, 1, 2, 256, n, 100);
    CHECK_EQ(account.live_nbytes, 0);
}

/* Everything is an exception, and every element takes a word nearly always. */
static void worst_cases(void)
{
    struct ptwm_label_model model;
    struct ptwm_label_set set;
    static uint8_t classes[2000];
    for (unsigned bits = 2; bits <= 15; bits++)
        for (size_t n = 1; n < 40000; n = n * 3 / 2 + 1) {
            uint16_t *symbols = exactly(2 * n);
            begin_model(&model, bits, 2, 128);
            memset(&set, 0, sizeof(set));
            set.n_classes = 1;
            set.classes[0].n_labels = 2;
            set.classes[0].symbol[1] = 1;
            set.classes[0].frequency[0] = 8;
            set.classes[0].frequency[1] = 65528;
            CHECK_EQ(ptwm_label_model_add_set(&model, &set), PTWM_OK);
            for (size_t i = 0; i < n; i++)
                symbols[i] = (uint16_t)((1u << bits) - 1);
            round_trip(&model, 0, classes, symbols, n);
            memset(symbols, 0, 2 * n);
            round_trip(&model, 0, classes, symbols, n);
            ptwm_label_model_release(&model);
            free(symbols);
        }
}

/* ------------------------------------------------------------------------------------------------ models in tails */

static enum ptwm_status read_model(struct ptwm_label_model *model, unsigned bits, const void *bytes, size_t nbytes,
                                   size_t *n_left)
{
    struct ptwm_error error = PTWM_ERROR_INIT;
    uint8_t *copy = exactly(nbytes);
    struct ptwm_cursor cursor;
    enum ptwm_status status;
    memcpy(copy, bytes, nbytes);
    cursor = ptwm_cursor_make(copy, nbytes);
    begin_model(model, bits, 2, 128);
    status = ptwm_label_model_read(model, &cursor, &error);
    CHECK_EQ(status, error.status);
    if (n_left != NULL)
        *n_left = ptwm_cursor_left(&cursor);
    free(copy);
    return status;
}

static void check_equal_models(const struct ptwm_label_model *a, const struct ptwm_label_model *b)
{
    CHECK_EQ(a->unit, b->unit);
    CHECK_EQ(a->n_columns, b->n_columns);
    CHECK_EQ(a->n_sets, b->n_sets);
    if (a->n_columns == b->n_columns && a->n_columns > 0) {
        CHECK(memcmp(a->shift, b->shift, a->n_columns * sizeof(*a->shift)) == 0);
        CHECK(memcmp(a->wrapped, b->wrapped, a->n_columns * sizeof(*a->wrapped)) == 0);
        CHECK(memcmp(a->lifted, b->lifted, (a->n_columns + PTWM_SHIFT_MARGIN) * (a->width == 1 ? 1 : 2)) == 0);
        CHECK_EQ(a->phase != NULL, b->phase != NULL);
        if (a->phase != NULL && b->phase != NULL)
            CHECK(memcmp(a->phase, b->phase, a->n_columns + PTWM_SHIFT_MARGIN) == 0);
    }
    for (uint32_t s = 0; s < a->n_sets && a->n_sets == b->n_sets; s++)
        CHECK(memcmp(&a->sets[s], &b->sets[s], sizeof(a->sets[s])) == 0);
}

static void model_round_trips(void)
{
    for (unsigned k = 0; k < 300; k++) {
        unsigned bits = 1 + k % 15;
        struct ptwm_label_model model, back;
        struct ptwm_bytes tail = { &allocator, NULL, 0, 0 };
        struct ptwm_label_set set;
        int16_t shift[300];
        uint32_t n_columns = k % 2 ? random_below(301) : 0;
        int range = 1 + (int)random_below(256), low = -128 + (int)random_below(257 - (uint32_t)range);
        size_t n_left = 1;
        begin_model(&model, bits, 2, 128 * (1 + random_below(8192)));
        for (uint32_t c = 0; c < n_columns; c++)
            shift[c] = (int16_t)(low + (int)random_below((uint32_t)range));
        CHECK_EQ(ptwm_label_model_set_shifts(&model, shift, n_columns), PTWM_OK);
        for (uint32_t c = 0; c < n_columns; c++)
            CHECK_EQ(model.wrapped[c], (uint32_t)(shift[c] + 65536) % (1u << bits));
        if (k % 4 == 1 && n_columns > 0)
            random_phases(&model, n_columns);
        for (unsigned s = random_below(5); s > 0; s--) {
            random_set(&set, 1 + random_below(8), bits);
            if (model.phase != NULL)
                random_second(&set);
            CHECK_EQ(ptwm_label_model_add_set(&model, &set), PTWM_OK);
        }
        CHECK_EQ(ptwm_label_model_write(&model, &tail), PTWM_OK);
        CHECK_EQ(read_model(&back, bits, tail.data, tail.nbytes, &n_left), PTWM_OK);
        CHECK_EQ(n_left, 0);
        check_equal_models(&model, &back);
        ptwm_label_model_release(&back);
        for (size_t n = 0; n < tail.nbytes; n += 1 + n / 50) {
            CHECK_EQ(read_model(&back, bits, tail.data, n, NULL), PTWM_ERR_SEGMENT);
            ptwm_label_model_release(&back);
        }
        for (unsigned flips = 0; flips < 100; flips++) {
            size_t at = random_below((uint32_t)tail.nbytes);
            tail.data[at] ^= (uint8_t)(1 + random_below(255));
            read_model(&back, bits, tail.data, tail.nbytes, NULL);
            ptwm_label_model_release(&back);
        }
        ptwm_label_model_release(&model);
        ptwm_bytes_release(&tail);
    }
    CHECK_EQ(account.live_nbytes, 0);
}

struct model_case {
    enum ptwm_status status;
    size_t nbytes;
    const char *bytes;
};

#define BAD PTWM_ERR_SEGMENT
static const struct model_case model_cases[] = {
    /* unit, columns, sets; bits = 5 */
    { PTWM_OK, 4, "\x80\x01\x00\x00" },
    { BAD, 3, "\x00\x00\x00" },                         /* unit 0 */
    { PTWM_OK, 4, "\x81\x01\x00\x00" },                 /* unit 129 */
    { BAD, 5, "\x81\x80\x40\x00\x00" },                 /* unit 2^20 + 1 */
    { PTWM_OK, 5, "\x80\x80\x40\x00\x00" },             /* unit 2^20 */
    { BAD, 5, "\x80\x81\x00\x00\x00" },                 /* not minimal */
    { PTWM_OK, 7, "\x80\x01\x01\x80\x01\x01\x00" },     /* a column of -127 */
    { BAD, 7, "\x80\x01\x01\x80\x01\x03\x00" },         /* unused bits */
    { BAD, 7, "\x80\x01\x01\x80\x00\x00\x00" },         /* width 0 */
    { BAD, 8, "\x80\x01\x01\x80\x09\x00\x00\x00" },     /* width 9 */
    { PTWM_OK, 7, "\x80\x01\x01\x80\x08\xff\x00" },     /* -128 + 255 */
    { BAD, 7, "\x80\x01\x01\x81\x08\xff\x00" },         /* -127 + 255 */
    { BAD, 7, "\x80\x01\x01\x7f\x01\x01\x00" },         /* 127 + 1 */
    { PTWM_OK, 7, "\x80\x01\x01\x7f\x01\x00\x00" },     /* 127 */
    { BAD, 7, "\x80\x01\x09\x00\x01\x00\x00" },         /* columns cut off (the byte behind is the rest of them) */
    { BAD, 9, "\x80\x01\x81\x80\x40\x00\x01\x00\x00" }, /* 2^20 + 1 columns */
    { BAD, 7, "\x80\x01\x00\x81\x80\x04\x01" },         /* 65537 sets */
    /* one set: classes, then L, v, v ... */
    { PTWM_OK, 10, "\x80\x01\x00\x01\x01\x02\x80\x40\x80\x40" },     /* two halves: v = 8192 */
    { BAD, 10, "\x80\x01\x00\x01\x00\x02\x80\x40\x80\x40" },         /* no class */
    { BAD, 10, "\x80\x01\x00\x01\x09\x02\x80\x40\x80\x40" },         /* nine classes */
    { BAD, 10, "\x80\x01\x00\x01\x02\x02\x80\x40\x80\x40" },         /* second class missing */
    { BAD, 10, "\x80\x01\x00\x01\x01\x01\x80\x80\x01\x00" },         /* one label */
    { BAD, 10, "\x80\x01\x00\x01\x01\x21\x80\x40\x80\x40" },         /* 33 labels */
    { BAD, 10, "\x80\x01\x00\x01\x01\x02\x80\x40\x82\x40" },         /* sum too large */
    { BAD, 10, "\x80\x01\x00\x01\x01\x02\x80\x40\xfe\x3f" },         /* sum too small */
    { BAD, 10, "\x80\x01\x00\x01\x01\x02\x00\x80\x80\x01" },         /* frequencies 0 and 65536 */
    { BAD, 11, "\x80\x01\x00\x01\x01\x03\x00\x80\x40\x80\x40" },     /* frequency 0 */
    { BAD, 11, "\x80\x01\x00\x01\x01\x02\x80\x40\x81\x40\x00" },     /* gap of zero */
    { PTWM_OK, 11, "\x80\x01\x00\x01\x01\x02\x80\x40\x81\x40\x1e" }, /* symbols 0 and 31 */
    { BAD, 11, "\x80\x01\x00\x01\x01\x02\x80\x40\x81\x40\x1f" },     /* symbol 32 */
    { BAD, 11, "\x80\x01\x00\x01\x01\x02\x81\x40\x1f\x80\x40" },     /* symbols 31 and 32 */
    { PTWM_OK, 11, "\x80\x01\x00\x01\x01\x02\x81\x40\x1e\x80\x40" }, /* symbols 30 and 31 */
    /* phases of 1 column, or 9, and second frequencies: v */
    { PTWM_OK, 8, "\x80\x01\x01\x00\x81\x00\x01\x00" },
    { BAD, 8, "\x80\x01\x01\x00\x81\x00\x02\x00" },     /* unused bits */
    { BAD, 6, "\x80\x01\x01\x00\x81\x00" },             /* no phases */
    { BAD, 8, "\x80\x01\x01\x00\x80\x00\x01\x00" },     /* width 0 */
    { BAD, 9, "\x80\x01\x01\x00\x89\x00\x00\x01\x00" }, /* width 9 */
    { BAD, 6, "\x80\x01\x00\x81\x00\x01" },             /* of no column: what follows are sets */
    { PTWM_OK, 10, "\x80\x01\x09\x00\x81\x00\x00\xff\x01\x00" },
    { BAD, 8, "\x80\x01\x09\x00\x81\x00\x00\x00" }, /* cut off */
    { PTWM_OK, 17, "\x80\x01\x01\x00\x81\x00\x01\x01\x01\x02\x80\x40\x80\x40\x01\xff\x3f" },
    { BAD, 14, "\x80\x01\x01\x00\x81\x00\x01\x01\x01\x02\x80\x40\x80\x40" },             /* none */
    { BAD, 15, "\x80\x01\x01\x00\x81\x00\x01\x01\x01\x02\x80\x40\x80\x40\x01" },         /* one */
    { BAD, 17, "\x80\x01\x01\x00\x81\x00\x01\x01\x01\x02\x80\x40\x80\x40\x01\xfe\x3f" }, /* sum */
    { BAD, 17, "\x80\x01\x01\x00\x81\x00\x01\x01\x01\x02\x80\x40\x80\x40\x00\x80\x40" }, /* 0 and 65536 */
    { BAD, 26,
      "\x80\x01\x01\x00\x81\x00\x01\x01\x01\x02\x80\x40\x80\x40\x01\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x00" },
    { BAD, 19, "\x80\x01\x00\x01\x01\x02\x80\x40\x81\x40\xff\xff\xff\xff\xff\xff\xff\xff\x7f" },
    { BAD, 20, "\x80\x01\x00\x01\x01\x02\x80\x40\x81\x40\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01" },
};

static void malformed_models(void)
{
    struct ptwm_label_model model;
    for (size_t i = 0; i < sizeof(model_cases) / sizeof(model_cases[0]); i++) {
        const struct model_case *c = &model_cases[i];
        enum ptwm_status status = read_model(&model, 5, c->bytes, c->nbytes, NULL);
        if (status != c->status)
            printf("case %u: ", (unsigned)i);
        CHECK_EQ(status, c->status);
        ptwm_label_model_release(&model);
    }
    for (unsigned k = 0; k < 20000; k++) {
        uint8_t noise[64];
        size_t n = random_below(64);
        for (size_t i = 0; i < n; i++)
            noise[i] = (uint8_t)(random_below(2) ? random_below(256) : random_below(4));
        if (n >= 4)
            memcpy(noise, "\x80\x01\x00\x01", k % 3 == 0 ? 4 : k % 3 == 1 ? 2 : 0);
        read_model(&model, 1 + random_below(15), noise, n, NULL);
        ptwm_label_model_release(&model);
    }
    CHECK_EQ(account.live_nbytes, 0);
}

/* ------------------------------------------------------------------------------------------------ malformed chunks */

/* A chunk with everything in it. */
struct sample {
    struct ptwm_label_model model;
    uint16_t *symbols;
    uint8_t *classes;
    size_t n;
    uint8_t *coded;
    size_t nbytes;
    size_t head_nbytes; /* to the end of the CRC */
};

static void make_sample(struct sample *sample, size_t n, unsigned bits, uint32_t n_classes, uint32_t exceptions,
                        bool has_phases)
{
    struct ptwm_label_set set;
    size_t n_units = (n + 127) / 128, n_lanes = n >= 16384 ? 128 : n >= 1024 ? 32 : 4, at = 3, n_exceptions = 0;
    struct slow_reader r;
    begin_model(&sample->model, bits, bits <= 7 ? 1 : 2, 128);
    random_set(&set, n_classes, bits);
    if (has_phases) {
        random_phases(&sample->model, 77);
        random_second(&set);
    }
    CHECK_EQ(ptwm_label_model_add_set(&sample->model, &set), PTWM_OK);
    sample->n = n;
    sample->symbols = exactly(2 * n);
    sample->classes = exactly(n_units);
    for (size_t u = 0; u < n_units; u++)
        sample->classes[u] = (uint8_t)random_below(n_classes);
    random_symbols(sample->symbols, n, &set, sample->classes, 128, bits, exceptions);
    sample->coded = exactly(ptwm_label_bound(n));
    CHECK_EQ(ptwm_label_encode(&sample->model, 0, sample->classes, 0, sample->symbols, n, NULL, sample->coded,
                               &sample->nbytes, NULL),
             PTWM_OK);
    r.p = sample->coded + 2;
    n_exceptions = (size_t)slow_varint(&r);
    at = (n_units * ptwm_ceil_log2(n_classes) + 7) / 8;
    for (r.p += at; n_exceptions > 0; n_exceptions--) {
        slow_varint(&r);
        r.p += bits <= 8 ? 1 : 2;
    }
    sample->head_nbytes = (size_t)(r.p - sample->coded) + 4 * n_lanes + 4;
}

static void release_sample(struct sample *sample)
{
    ptwm_label_model_release(&sample->model);
    free(sample->symbols);
    free(sample->classes);
    free(sample->coded);
}

static char last_detail[128]; /* of decode */

/* Decodes from and into memory of exactly the right size. */
static enum ptwm_status decode(const struct sample *sample, const uint8_t *src, size_t nbytes, size_t n)
{
    struct ptwm_error error = PTWM_ERROR_INIT;
    uint8_t *copy = exactly(nbytes);
    uint16_t *symbols = exactly(2 * n);
    enum ptwm_status status;
    memcpy(copy, src, nbytes);
    status = ptwm_label_decode(&sample->model, 0, copy, nbytes, symbols, n, NULL, 0, &error);
    CHECK_EQ(status, error.status);
    memcpy(last_detail, error.detail, sizeof(last_detail));
    for (size_t i = 0; i < n && status == PTWM_OK; i++)
        CHECK(symbols[i] >> sample->model.bits == 0);
    free(copy);
    free(symbols);
    return status;
}

/* The same after the head's CRC has been made right. */
static enum ptwm_status decode_sealed(const struct sample *sample, uint8_t *src, size_t head_nbytes, size_t nbytes)
{
    ptwm_store32(src + head_nbytes - 4, ptwm_crc32c(0, src, head_nbytes - 4));
    return decode(sample, src, nbytes, sample->n);
}

static void check_flips(const struct sample *sample)
{
    for (size_t k = 0; k < sample->nbytes; k++) {
        uint8_t flip = (uint8_t)(1 + random_below(255)), stored[4];
        enum ptwm_status status;
        memcpy(stored, sample->coded + sample->head_nbytes - 4, 4);
        sample->coded[k] ^= flip;
        status = decode(sample, sample->coded, sample->nbytes, sample->n);
        /* The head has a CRC. Words do not (the plane has), and other words may be those of other symbols. */
        if (k < sample->head_nbytes)
            CHECK(status == PTWM_ERR_PLANE || status == PTWM_ERR_CHECKSUM);
        else
            CHECK(status == PTWM_ERR_PLANE || status == PTWM_OK);
        if (k < sample->head_nbytes - 4) {
            decode_sealed(sample, sample->coded, sample->head_nbytes, sample->nbytes);
            memcpy(sample->coded + sample->head_nbytes - 4, stored, 4);
        }
        sample->coded[k] ^= flip;
    }
}

static void malformed_chunks(void)
{
    static const struct { size_t n; unsigned bits; uint32_t n_classes, exceptions; } kinds[] = {
        { 1, 5, 1, 0 },      { 300, 5, 3, 20 },   { 500, 9, 4, 10 },    { 1500, 9, 8, 50 },
        { 1100, 15, 2, 30 }, { 16400, 5, 4, 900 }, { 16500, 9, 3, 900 },
    };
    for (unsigned k = 0; k < 7; k++) {
        struct sample sample;
        make_sample(&sample, kinds[k].n, kinds[k].bits, kinds[k].n_classes, kinds[k].exceptions, k % 2);
        CHECK_EQ(decode(&sample, sample.coded, sample.nbytes, sample.n), PTWM_OK);
        for (size_t n = 0; n < sample.nbytes; n++)
            CHECK_EQ(decode(&sample, sample.coded, n, sample.n), PTWM_ERR_PLANE);
        if (sample.n > 1)
            CHECK(decode(&sample, sample.coded, sample.nbytes, sample.n - 1) != PTWM_OK);
        CHECK(decode(&sample, sample.coded, sample.nbytes, sample.n + 1) != PTWM_OK);
        check_flips(&sample);
        release_sample(&sample);
    }
    CHECK_EQ(account.live_nbytes, 0);
}

/* Writes a head for 200 elements of unit 128 and three classes by hand; returns its length. */
static size_t build_head(uint8_t *dst, unsigned lanes_code, uint64_t set, uint64_t n_exceptions, unsigned classes,
                         const char *exceptions, size_t exceptions_nbytes, uint32_t state)
{
    size_t n_lanes = lanes_code == 0 ? 4 : lanes_code == 1 ? 32 : 128, n = 0;
    dst[n++] = (uint8_t)lanes_code;
    n += ptwm_store_varint(dst + n, set);
    n += ptwm_store_varint(dst + n, n_exceptions);
    dst[n++] = (uint8_t)classes;
    memcpy(dst + n, exceptions, exceptions_nbytes);
    n += exceptions_nbytes;
    for (size_t l = 0; l < n_lanes; l++, n += 4)
        ptwm_store32(dst + n, state);
    return n + 4;
}

/* Decoding fails for that reason and no other. */
static void check_refused(enum ptwm_status status, const char *detail)
{
    if (status != PTWM_ERR_PLANE || strstr(last_detail, detail) == NULL)
        printf("%s, not %s\n", last_detail, detail);
    CHECK(status == PTWM_ERR_PLANE && strstr(last_detail, detail) != NULL);
}

static void malformed_fields(void)
{
    static const struct {
        const char *detail;
        unsigned lanes_code;
        uint64_t set, n_exceptions;
        unsigned classes;
        const char *exceptions;
        size_t exceptions_nbytes;
        uint32_t state;
    } cases[] = {
        { "bad lanes", 3, 0, 0, 0, "", 0, 65536 },
        { "no such set", 0, 1, 0, 0, "", 0, 65536 },
        { "no such class", 0, 0, 0, 3, "", 0, 65536 },
        { "bad state", 0, 0, 0, 0, "", 0, 65535 },
        { "bad number of exceptions", 0, 0, 201, 0, "", 0, 65536 },
        { "bad exceptions", 0, 0, 1, 0, "\xc8\x01\x00", 3, 65536 },         /* position 200 */
        { "bad exceptions", 0, 0, 2, 0, "\xc6\x01\x00\x01\x00", 5, 65536 }, /* positions 198, 200 */
        { "bad exceptions", 0, 0, 1, 0, "\x00\x20", 2, 65536 },             /* symbol 32 */
        { "bad exceptions", 0, 0, 1, 0, "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x00", 11, 65536 },
        { "bad exceptions", 0, 0, 1, 0, "\x80\x00\x00", 3, 65536 },         /* a distance that is not minimal */
    };
    struct sample sample;
    uint8_t coded[2048];
    make_sample(&sample, 200, 5, 3, 0, false);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        size_t n_head = build_head(coded, cases[i].lanes_code, cases[i].set, cases[i].n_exceptions, cases[i].classes,
                                   cases[i].exceptions, cases[i].exceptions_nbytes, cases[i].state);
        memset(coded + n_head, 0, 400);
        check_refused(decode_sealed(&sample, coded, n_head, n_head + 400), cases[i].detail);
    }
    /* What comes to light only when all the rest is right. */
    memcpy(coded, sample.coded, sample.nbytes);
    memset(coded + sample.nbytes, 0, 2);
    check_refused(decode(&sample, coded, sample.nbytes + 1, 200), "half a word");
    check_refused(decode(&sample, coded, sample.nbytes + 2, 200), "words left over");
    check_refused(decode(&sample, coded, sample.nbytes - 2, 200), "too few words");
    coded[3] |= 16;
    check_refused(decode_sealed(&sample, coded, sample.head_nbytes, sample.nbytes), "unused bits");
    coded[3] ^= 16;
    coded[sample.head_nbytes - 4 - 16] ^= 1;
    check_refused(decode_sealed(&sample, coded, sample.head_nbytes, sample.nbytes), "label rANS");
    coded[sample.head_nbytes - 4 - 16] ^= 1;
    /* An exception at the last place is fine. */
    coded[2] = 1;
    memcpy(coded + 4, "\xc7\x01\x1f", 3);
    memcpy(coded + 7, sample.coded + 4, sample.nbytes - 4);
    CHECK_EQ(decode_sealed(&sample, coded, sample.head_nbytes + 3, sample.nbytes + 3), PTWM_OK);
    coded[sample.head_nbytes + 2] ^= 1;
    CHECK_EQ(decode(&sample, coded, sample.nbytes + 3, 200), PTWM_ERR_CHECKSUM);
    release_sample(&sample);
}

/* Any state at all can be reached, so that a wrong one at the end is refused by its own check. */
static void wrong_final_state(void)
{
    struct sample sample;
    uint8_t coded[64] = { 0 };
    struct ptwm_alias_table alias;
    uint32_t x, low, label, rank;
    make_sample(&sample, 1, 5, 1, 0, false);
    ptwm_alias_build(&alias, sample.model.sets[0].classes[0].frequency);
    /* One element of one lane; a state of 2^31 stays above 65536, takes no word, and ends somewhere else. */
    for (x = 0x80000000u;; x++) {
        low = x & 0xffff;
        label = low >= alias.div[low % 32] ? alias.ali[low % 32] : low % 32;
        rank = low >= alias.div[low % 32] ? (low / 32 + alias.adj[low % 32]) & 0xffff : low / 32;
        if (alias.frequency[label] * (x >> 16) + rank > 65536)
            break;
    }
    for (unsigned lane = 0; lane < 4; lane++)
        ptwm_store32(coded + 3 + 4 * lane, lane == 0 ? x : 65536);
    check_refused(decode_sealed(&sample, coded, 23, 23), "wrong state");
    release_sample(&sample);
}

/* Groups that take nearly a word an element, cut off anywhere: nothing behind the end is read. */
static void dense_words(void)
{
    enum { N = 16384 + 128 };
    struct sample sample;
    make_sample(&sample, N, 5, 1, 0, false);
    memset(&sample.model.sets[0].classes[0], 0, sizeof(sample.model.sets[0].classes[0]));
    sample.model.sets[0].classes[0].n_labels = 2;
    sample.model.sets[0].classes[0].symbol[1] = 1;
    sample.model.sets[0].classes[0].frequency[0] = 8;
    sample.model.sets[0].classes[0].frequency[1] = 65528;
    memset(sample.symbols, 0, 2 * N);
    CHECK_EQ(ptwm_label_encode(&sample.model, 0, sample.classes, 0, sample.symbols, N, NULL, sample.coded,
                               &sample.nbytes, NULL),
             PTWM_OK);
    CHECK(sample.nbytes > N / 8 * 13);
    for (size_t cut = 0; cut < 1000; cut++)
        CHECK_EQ(decode(&sample, sample.coded, sample.nbytes - cut, N), cut == 0 ? PTWM_OK : PTWM_ERR_PLANE);
    release_sample(&sample);
}

static void random_chunks(void)
{
    struct sample sample;
    uint8_t noise[700];
    make_sample(&sample, 1200, 9, 5, 40, true);
    for (unsigned k = 0; k < 20000; k++) {
        size_t n = random_below(700), head = 0;
        for (size_t i = 0; i < n; i++)
            noise[i] = (uint8_t)random_below(k % 2 ? 256 : 3);
        if (n > 20 && k % 4 > 0) {
            /* Plausible: four lanes, set 0, a few exceptions, big enough states. */
            memset(noise, 0, 2);
            noise[2] = (uint8_t)random_below(3);
            head = 3 + 4 + 3 * (size_t)noise[2] + 16 + 4;
            for (size_t i = 0; i < noise[2]; i++)
                memset(noise + 7 + 3 * i + 1, 0, 2);
            for (unsigned l = 0; l < 4 && head < n; l++)
                noise[head - 4 - 4 * l - 1] |= 1;
        }
        if (head > 0 && head < n)
            ptwm_store32(noise + head - 4, ptwm_crc32c(0, noise, head - 4));
        decode(&sample, noise, n, 1 + random_below(1200));
    }
    release_sample(&sample);
}

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
    RUN(alias_tables);
    RUN(small_round_trips);
    RUN(large_round_trips);
    RUN(worst_cases);
    RUN(model_round_trips);
    RUN(malformed_models);
    RUN(malformed_chunks);
    RUN(malformed_fields);
    RUN(wrong_final_state);
    RUN(dense_words);
    RUN(random_chunks);
    RUN(analysis_of_many_kinds);
    RUN(analysis_finds_classes);
    RUN(analysis_runs_out_of_memory);
    RUN(coding_runs_out_of_memory);
    RUN(column_shifts);
    RUN(column_phases);
    CHECK_EXIT();
}
