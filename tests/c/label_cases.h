/*
 * What the tests of label rANS share: an allocator that keeps account, random models and symbols, and a slow decoder written from
 * FORMAT.md's text.
 */
#ifndef LABEL_CASES_H
#define LABEL_CASES_H

#include "label.h"

#include "check.h"

static uint64_t random_state = 1;

static inline uint32_t random_below(uint32_t n)
{
    return (uint32_t)((check_random(&random_state) >> 32) * n >> 32);
}

static inline void *exactly(size_t nbytes)
{
    return malloc(nbytes > 0 ? nbytes : 1);
}

/* ------------------------------------------------------------------------------ an allocator that keeps account */

struct account {
    long live_nbytes;
    long n_allocations;
    long fail_at; /* the number of the allocation to fail, or -1 */
};

static inline void *account_alloc(void *context, size_t nbytes)
{
    struct account *account = context;
    if (account->n_allocations++ == account->fail_at)
        return NULL;
    account->live_nbytes += (long)nbytes;
    return malloc(nbytes);
}

static inline void account_release(void *context, void *pointer, size_t nbytes)
{
    struct account *account = context;
    if (pointer != NULL)
        account->live_nbytes -= (long)nbytes;
    free(pointer);
}

static struct account account = { 0, 0, -1 };
static const struct ptwm_allocator allocator = { account_alloc, account_release, &account };

/* ----------------------------------------------------------------------------------------- models to test with */

static inline void begin_model(struct ptwm_label_model *model, unsigned bits, unsigned width, uint32_t unit)
{
    struct ptwm_step label = { PTWM_STEP_LABEL, 0, 0, 0 };
    label.width = (uint8_t)width;
    label.bits = (uint8_t)bits;
    ptwm_label_model_init(model, &allocator, &label);
    model->unit = unit;
}

/* Random legal frequencies, sometimes extreme. */
static inline void random_frequencies(uint16_t *frequency, uint32_t n_labels)
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

static inline void random_table(struct ptwm_label_table *table, unsigned bits)
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
static inline void random_second(struct ptwm_label_set *set)
{
    for (uint32_t c = 0; c < set->n_classes; c++)
        random_frequencies(set->classes[c].second, set->classes[c].n_labels);
}

/* Gives a model column shifts and phases. */
static inline void random_phases(struct ptwm_label_model *model, uint32_t n_columns)
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

static inline void random_set(struct ptwm_label_set *set, uint32_t n_classes, unsigned bits)
{
    memset(set, 0, sizeof(*set));
    set->n_classes = n_classes;
    for (uint32_t c = 0; c < n_classes; c++)
        random_table(&set->classes[c], bits);
}

/* Symbols that mostly follow the tables of their units' classes; one in exceptions is anything. */
static inline void random_symbols(uint16_t *symbols, size_t n, const struct ptwm_label_set *set, const uint8_t *classes,
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

static inline uint64_t slow_varint(struct slow_reader *r)
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
static inline void slow_alias(const uint32_t *F, uint32_t *ali, uint32_t *div, uint32_t *adj)
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
static inline void slow_classes(struct slow_class classes[2][8], const struct ptwm_label_set *set, bool has_phases)
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

static inline uint32_t slow_lane(size_t i, uint32_t lanes, unsigned width)
{
    if (lanes == 128 && width == 1) {
        size_t j = i % 64;
        return (uint32_t)(64 * (i / 64 % 2) + 32 * (j % 2) + j / 2);
    }
    return (uint32_t)(i % lanes);
}

static inline uint16_t slow_step(const struct slow_class *class, uint32_t *state, struct slow_reader *words)
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
static inline void slow_decode(const struct ptwm_label_model *model, uint32_t set_number, uint64_t first_element,
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

/* ------------------------------------------------------------------------------------------------ coding and back */

/* The encoder's choice. */
static inline size_t slow_n_lanes(size_t n, uint32_t unit)
{
    if (unit % 128 != 0)
        return n >= 65536 ? 32 : 4;
    return n >= 16384 ? 128 : n >= 1024 ? 32 : 4;
}

/* Codes, checks the length, decodes both ways and compares. */
static inline size_t round_trip(const struct ptwm_label_model *model, uint32_t set, const uint8_t *classes,
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

static inline void make_sample(struct sample *sample, size_t n, unsigned bits, uint32_t n_classes, uint32_t exceptions,
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

static inline void release_sample(struct sample *sample)
{
    ptwm_label_model_release(&sample->model);
    free(sample->symbols);
    free(sample->classes);
    free(sample->coded);
}

#endif
