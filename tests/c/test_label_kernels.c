/*
 * Every kernel of fused decoding that this machine has, against the plain way: random models of all kinds, with and without
 * shifts, exceptions and CRCs; and malformed chunks, of which both ways must make the same. Chunks are coded by a slow encoder
 * of 128 lanes written from FORMAT.md. Each plane and the output lie against pages that must not be touched.
 */
#define _DEFAULT_SOURCE
#define _DARWIN_C_SOURCE
#include "label_fused.h"

#include "check.h"
#include "guard.h"
#include "label_decode.h"
#include "rest.h"

static uint64_t random_state = 1;

static uint32_t random_below(uint32_t n)
{
    return (uint32_t)((check_random(&random_state) >> 32) * n >> 32);
}

static void *allocate(size_t nbytes)
{
    void *p = malloc(nbytes > 0 ? nbytes : 1);
    if (p == NULL)
        abort();
    return p;
}

/* --------------------------------------------------------------------------------------------- guarded memory */

enum place { EXACT, BEFORE_GUARD, BEHIND_GUARD, N_PLACES };

struct buffer {
    enum place place;
    uint8_t *bytes;
    size_t nbytes;
    uint8_t *guarded;
};

/* nbytes bytes: from malloc, or right before or right behind a page without access (there is one on either side). */
static struct buffer make_buffer(const void *content, size_t nbytes, enum place place)
{
    struct buffer b = { place, NULL, nbytes, NULL };

    if (place != EXACT)
        b.guarded = guard_alloc(nbytes);
    if (b.guarded != NULL)
        b.bytes = place == BEFORE_GUARD ? b.guarded + guard_inner_nbytes(nbytes) - nbytes : b.guarded;
    if (b.bytes == NULL) {
        b.place = EXACT;
        b.bytes = allocate(nbytes);
    }
    if (content != NULL && nbytes > 0)
        memcpy(b.bytes, content, nbytes);
    return b;
}

static void free_buffer(struct buffer *b)
{
    if (b->guarded != NULL)
        guard_free(b->guarded, b->nbytes);
    else
        free(b->bytes);
}

/* ---------------------------------------------------------------------------------------------------- samples */

static const uint8_t chains[][4] = {
    { 3, 2, 6, 9 }, { 3, 2, 7, 8 }, { 3, 4, 6, 9 }, { 3, 4, 7, 8 }, { 3, 2, 9, 6 }, { 3, 1, 2, 5 }, { 3, 1, 1, 6 }, { 3, 1, 3, 5 },
};
enum { N_CHAINS = sizeof chains / sizeof chains[0], LANES = 128 };

struct sample {
    struct ptwm_parsed_chain chain;
    struct ptwm_label_model model;
    uint64_t first_element;
    size_t n;
    uint16_t *symbols; /* as coded, shifts subtracted */
    uint8_t *classes;
    uint8_t *low, *rest, *symbol_plane; /* decoded planes */
    size_t low_nbytes, rest_nbytes;
    size_t n_carried; /* of the rest plane's first bytes, by the coded symbols */
    uint8_t *coded;
    size_t coded_nbytes, words_at;
    uint8_t *raw;
    size_t raw_nbytes;
};

static void random_frequencies(uint16_t *frequency, uint32_t n_labels)
{
    uint32_t left = 8192;

    for (uint32_t i = 0; i < n_labels; i++) {
        uint32_t others = n_labels - 1 - i, f;
        f = others == 0 ? left : random_below(4) == 0 ? 1 : 1 + random_below((left - others) / (random_below(6) + 1));
        f = f > left - others ? left - others : f;
        frequency[i] = (uint16_t)(8 * f);
        left -= f;
    }
}

static void random_table(struct ptwm_label_table *table, unsigned bits, bool has_phases)
{
    const uint32_t spread = bits > 5 ? ((1u << bits) - 32) / 32 : 0;
    uint32_t symbol = bits > 5 ? random_below(spread) : 0;

    memset(table, 0, sizeof(*table));
    table->n_labels = random_below(4) == 0 ? 2 + random_below(31) : 32;
    for (uint32_t i = 0; i < table->n_labels; i++) {
        table->symbol[i] = (uint16_t)symbol++;
        symbol += random_below(3) == 0 ? random_below(spread + 1) : 0;
    }
    random_frequencies(table->frequency, table->n_labels);
    if (has_phases)
        random_frequencies(table->second, table->n_labels);
}

/* Whether there are kernels for phases, and what chunks have phases here: half of those that may. */
static bool has_phases(unsigned kind, uint32_t n_columns)
{
    return n_columns > 0 && kind != 1 && kind != 3 && kind != 7 && random_below(2) == 0;
}

static void make_model(struct sample *s, unsigned kind, uint32_t unit, uint32_t n_columns)
{
    const bool phased = has_phases(kind, n_columns);
    struct ptwm_label_set sets[2];
    int16_t *shift = allocate(n_columns * sizeof *shift);
    uint8_t *phase = allocate(n_columns);

    ptwm_label_model_init(&s->model, &ptwm_default_allocator, s->chain.label);
    s->model.unit = unit;
    for (uint32_t c = 0; c < n_columns; c++)
        shift[c] = (int16_t)((int)random_below(256) - 128);
    CHECK_EQ(ptwm_label_model_set_shifts(&s->model, shift, n_columns), PTWM_OK);
    for (uint32_t c = 0; c < n_columns; c++)
        phase[c] = (uint8_t)(PTWM_PHASE * random_below(2));
    if (phased)
        CHECK_EQ(ptwm_label_model_set_phases(&s->model, phase), PTWM_OK);
    memset(sets, 0, sizeof sets);
    for (unsigned k = 0; k < 2; k++) {
        sets[k].n_classes = 1 + random_below(PTWM_MAX_CLASSES);
        for (uint32_t c = 0; c < sets[k].n_classes; c++)
            random_table(&sets[k].classes[c], s->model.bits, phased);
        CHECK_EQ(ptwm_label_model_add_set(&s->model, &sets[k]), PTWM_OK);
    }
    free(shift);
    free(phase);
}

/* Inverse look-ups of a class: where[first[label] + rank] is the state's low half. */
struct inverse {
    uint32_t first[33];
    uint16_t where[65536];
};

static void make_inverse(struct inverse *inverse, const uint16_t *frequency)
{
    struct ptwm_alias_table alias;

    ptwm_alias_build(&alias, frequency);
    inverse->first[0] = 0;
    for (unsigned i = 0; i < 32; i++)
        inverse->first[i + 1] = inverse->first[i] + frequency[i];
    for (uint32_t x = 0; x < 65536; x++) {
        uint32_t b = x % 32, is_alias = x >= alias.div[b], label = is_alias ? alias.ali[b] : b;
        uint32_t rank = (x / 32 + (is_alias ? alias.adj[b] : 0)) & 0xffff;
        inverse->where[inverse->first[label] + rank] = (uint16_t)x;
    }
}

/* The label of a symbol, or the most frequent one's and *found false. */
static uint32_t find_label(const struct ptwm_label_table *table, uint16_t symbol, bool *found)
{
    uint32_t best = 0;
    for (uint32_t l = 0; l < table->n_labels; l++) {
        if (table->symbol[l] == symbol) {
            *found = true;
            return l;
        }
        best = table->frequency[l] > table->frequency[best] ? l : best;
    }
    *found = false;
    return best;
}

/* Codes with 128 lanes and set number set; FORMAT.md, section 7.2. */
static void encode(struct sample *s, uint32_t set)
{
    const struct ptwm_label_set *tables = &s->model.sets[set];
    const size_t n_units = (s->n + s->model.unit - 1) / s->model.unit;
    struct inverse *inverse = allocate(2 * tables->n_classes * sizeof *inverse);
    uint16_t *words = allocate(2 * s->n), *word = words + s->n;
    uint8_t *out = allocate(6 * s->n + n_units + 2048), *at = out, *exceptions = allocate(6 * s->n + 8);
    size_t exceptions_nbytes = 0, n_exceptions = 0, next = 0;
    struct ptwm_bit_writer class_bits = { 0 };
    uint32_t states[LANES];
    unsigned element[LANES];

    for (uint32_t c = 0; c < tables->n_classes; c++)
        for (unsigned phase = 0; phase < (s->model.phase != NULL ? 2 : 1); phase++)
            make_inverse(&inverse[2 * c + phase],
                         phase == 0 ? tables->classes[c].frequency : tables->classes[c].second);
    for (unsigned i = 0; i < LANES; i++) {
        states[i] = 65536 + (s->n_carried > 0 ? ptwm_load16(s->rest + 2 * i) : 0u);
        element[ptwm_label_lane(i, LANES, s->model.width)] = i;
    }
    for (size_t group = (s->n + LANES - 1) / LANES; group-- > 0;)
        for (unsigned lane = LANES; lane-- > 0;) {
            const size_t i = group * LANES + element[lane];
            const uint8_t class = i < s->n ? s->classes[i / s->model.unit] : 0;
            const bool is_second =
                s->model.phase != NULL && s->model.phase[(s->first_element + i) % s->model.n_columns] != 0;
            const struct inverse *own = &inverse[2 * class + is_second];
            bool found;
            uint32_t label, f, x = states[lane];
            if (i >= s->n)
                continue;
            label = find_label(&tables->classes[class], s->symbols[i], &found);
            f = is_second ? tables->classes[class].second[label] : tables->classes[class].frequency[label];
            if (x >> 16 >= f) {
                ptwm_store16(--word, (uint16_t)x);
                x >>= 16;
            }
            states[lane] = x / f << 16 | own->where[own->first[label] + x % f];
        }
    for (size_t i = 0; i < s->n; i++) {
        bool found;
        find_label(&tables->classes[s->classes[i / s->model.unit]], s->symbols[i], &found);
        if (!found) {
            exceptions_nbytes += ptwm_store_varint(exceptions + exceptions_nbytes, i - next);
            exceptions[exceptions_nbytes++] = (uint8_t)s->symbols[i];
            if (s->model.bits > 8)
                exceptions[exceptions_nbytes++] = (uint8_t)(s->symbols[i] >> 8);
            next = i + 1;
            n_exceptions++;
        }
    }
    *at++ = 2;
    at += ptwm_store_varint(at, set);
    at += ptwm_store_varint(at, n_exceptions);
    class_bits.next = at;
    for (size_t u = 0; u < n_units; u++)
        ptwm_write_bits(&class_bits, s->classes[u], ptwm_ceil_log2(tables->n_classes));
    ptwm_flush_bits(&class_bits);
    at = class_bits.next;
    memcpy(at, exceptions, exceptions_nbytes);
    at += exceptions_nbytes;
    for (unsigned lane = 0; lane < LANES; lane++, at += 4)
        ptwm_store32(at, states[lane]);
    ptwm_store32(at, ptwm_crc32c(0, out, (size_t)(at - out)));
    at += 4;
    s->words_at = (size_t)(at - out);
    memcpy(at, word, (size_t)((uint8_t *)(words + s->n) - (uint8_t *)word));
    s->coded_nbytes = s->words_at + (size_t)((uint8_t *)(words + s->n) - (uint8_t *)word);
    s->coded = out;
    free(inverse);
    free(words);
    free(exceptions);
}

/* exceptions: one symbol in so many is anything; 0: none is. */
static void make_sample(struct sample *s, unsigned kind, size_t n, uint32_t unit, uint32_t n_columns, uint32_t exceptions)
{
    const uint32_t set = random_below(2);
    const uint8_t *planes[3];
    struct ptwm_shifts shifts;
    uint16_t *rest;
    unsigned rest_bits;

    memset(s, 0, sizeof *s);
    CHECK_EQ(ptwm_chain_parse(chains[kind], 4, &s->chain, NULL), PTWM_OK);
    make_model(s, kind, unit, n_columns);
    s->n = n;
    s->first_element = random_below(1000);
    s->symbols = allocate(2 * n);
    s->classes = allocate(n / unit + 1);
    for (size_t u = 0; u <= n / unit; u++)
        s->classes[u] = (uint8_t)random_below(s->model.sets[set].n_classes);
    for (size_t i = 0; i < n; i++) {
        const struct ptwm_label_table *table = &s->model.sets[set].classes[s->classes[i / unit]];
        uint32_t at = random_below(65536), label = 0;
        while (at >= table->frequency[label])
            at -= table->frequency[label++];
        s->symbols[i] = table->symbol[label];
        if (exceptions > 0 && random_below(exceptions) == 0)
            s->symbols[i] = (uint16_t)random_below(1u << s->model.bits);
    }
    rest_bits = (s->chain.label->width == 1 ? 8u : 16u) - s->model.bits;
    s->rest_nbytes = (size_t)ptwm_rest_nbytes(n, rest_bits);
    s->rest = allocate(s->rest_nbytes);
    rest = allocate(2 * n);
    for (size_t i = 0; i < n; i++)
        rest[i] = (uint16_t)random_below(1u << rest_bits);
    ptwm_rest_pack(s->rest, rest, n, rest_bits);
    free(rest);
    s->n_carried = n >= 1024 && random_below(3) > 0 ? PTWM_FUSED_CARRIED : 0;
    encode(s, set);
    s->low_nbytes = s->chain.label->width == 4 ? 2 * n : 0;
    s->low = allocate(s->low_nbytes);
    for (size_t i = 0; i < s->low_nbytes; i++)
        s->low[i] = (uint8_t)random_below(256);
    s->symbol_plane = allocate(2 * n);
    for (size_t i = 0; i < n; i++)
        if (s->model.bits > 8)
            ptwm_store16(s->symbol_plane + 2 * i, s->symbols[i]);
        else
            s->symbol_plane[i] = (uint8_t)s->symbols[i];
    s->raw_nbytes = n * s->chain.label->width;
    s->raw = allocate(s->raw_nbytes);
    planes[0] = s->low;
    planes[s->low_nbytes > 0] = s->rest;
    planes[(s->low_nbytes > 0) + 1] = s->symbol_plane;
    shifts.n_columns = s->model.n_columns;
    shifts.value = s->model.wrapped;
    CHECK_EQ(ptwm_chain_merge(&s->chain, &shifts, s->first_element, s->raw, s->raw_nbytes, planes, NULL), PTWM_OK);
}

static void free_sample(struct sample *s)
{
    ptwm_label_model_release(&s->model);
    free(s->symbols);
    free(s->classes);
    free(s->low);
    free(s->rest);
    free(s->symbol_plane);
    free(s->coded);
    free(s->raw);
}

/* --------------------------------------------------------------------------------------------------- decoding */

/* Which CRCs are checked. */
enum checks { NO_CHECKS, CHECK_REST_AND_SYMBOLS, CHECK_ALL };

/* Decodes coded[0 .. coded_nbytes) with the kernels and compares with expected, if that is not NULL. */
static enum ptwm_status decode_fused(const struct sample *s, const uint8_t *coded, size_t coded_nbytes, enum checks checks,
                                     enum place place, const uint8_t *expected)
{
    const uint8_t *stored_rest = s->rest + s->n_carried;
    const size_t stored_rest_nbytes = s->rest_nbytes - s->n_carried;
    const uint32_t rest_crc = ptwm_crc32c(0, stored_rest, stored_rest_nbytes);
    const uint32_t low_crc = ptwm_crc32c(0, s->low, s->low_nbytes);
    const uint32_t coded_crc = ptwm_crc32c(0, coded, coded_nbytes);
    struct buffer low = make_buffer(s->low, s->low_nbytes, place), rest = make_buffer(stored_rest, stored_rest_nbytes, place);
    struct buffer symbols = make_buffer(coded, coded_nbytes, place), raw = make_buffer(NULL, s->raw_nbytes, place);
    struct ptwm_fused_chunk chunk = { 0 };
    enum ptwm_status status;

    chunk.chain = &s->chain;
    chunk.model = &s->model;
    chunk.first_element = s->first_element;
    chunk.low.bytes = low.bytes;
    chunk.low.nbytes = low.nbytes;
    chunk.low.crc = checks == CHECK_ALL && s->low_nbytes > 0 ? &low_crc : NULL;
    chunk.rest.bytes = rest.bytes;
    chunk.rest.nbytes = rest.nbytes;
    chunk.rest.crc = checks != NO_CHECKS ? &rest_crc : NULL;
    chunk.is_carried = s->n_carried > 0;
    chunk.symbols.bytes = symbols.bytes;
    chunk.symbols.nbytes = symbols.nbytes;
    chunk.symbols.crc = checks != NO_CHECKS ? &coded_crc : NULL;
    chunk.raw = raw.bytes;
    chunk.raw_nbytes = raw.nbytes;
    chunk.is_streamed = checks == CHECK_ALL || coded_nbytes % 2 == 0; /* takes effect where raw is aligned */
    memset(raw.bytes, 0xA5, raw.nbytes);
    status = ptwm_fused_decode(&chunk);
    if (status == PTWM_OK && expected != NULL)
        CHECK(memcmp(raw.bytes, expected, s->raw_nbytes) == 0);
    free_buffer(&low);
    free_buffer(&rest);
    free_buffer(&symbols);
    free_buffer(&raw);
    return status;
}

/* Decodes malformed symbols both ways: either both fail, or both give the same. */
static void compare_with_plain(const struct sample *s, const uint8_t *coded, size_t coded_nbytes, enum place place)
{
    uint16_t *symbols = allocate(2 * s->n);
    uint8_t *plane = allocate(2 * s->n), *raw = allocate(s->raw_nbytes);
    uint8_t *rest = memcpy(allocate(s->rest_nbytes), s->rest, s->rest_nbytes);
    const struct ptwm_shifts shifts = { s->model.n_columns, s->model.wrapped };
    const bool has_low = s->low_nbytes > 0;
    const uint8_t *planes[3];
    enum ptwm_status status =
        ptwm_label_decode(&s->model, s->first_element, coded, coded_nbytes, symbols, s->n, rest, s->n_carried, NULL);

    if (status == PTWM_OK) {
        for (size_t i = 0; i < s->n; i++)
            if (s->model.bits > 8)
                ptwm_store16(plane + 2 * i, symbols[i]);
            else
                plane[i] = (uint8_t)symbols[i];
        planes[0] = s->low;
        planes[has_low] = rest;
        planes[has_low + 1] = plane;
        status = ptwm_chain_merge(&s->chain, &shifts, s->first_element, raw, s->raw_nbytes, planes, NULL);
    }
    CHECK_EQ(decode_fused(s, coded, coded_nbytes, NO_CHECKS, place, raw), status);
    free(symbols);
    free(plane);
    free(rest);
    free(raw);
}

/* ------------------------------------------------------------------------------------------------------ tests */

static void random_chunks(void)
{
    static const uint32_t units[] = { 128, 384, 512, 1024 }, columns[] = { 0, 1, 100, 384, 512, 1000, 4099 };

    for (unsigned round = 0; round < 192; round++) {
        const unsigned kind = round % N_CHAINS;
        const size_t n = round < 24 ? 512 * (1 + random_below(4)) + (round % 2 ? random_below(512) : 0)
                                    : 512 + random_below(round % 8 == 0 ? 70000 : 6000);
        const uint32_t exceptions = round / 6 % 3 == 0 ? 0 : round / 6 % 3 == 1 ? 500 : 5;
        struct sample s;

        make_sample(&s, kind, n, units[random_below(4)], columns[round / 6 % 7], exceptions);
        CHECK(ptwm_fused_serves(&s.chain, &s.model, s.raw_nbytes));
        for (unsigned place = 0; place < N_PLACES; place++)
            for (unsigned checks = 0; checks < 3; checks++)
                CHECK_EQ(decode_fused(&s, s.coded, s.coded_nbytes, (enum checks)checks, (enum place)place, s.raw), PTWM_OK);
        free_sample(&s);
    }
}

/* What the library's own encoder makes. */
static void own_encoder(void)
{
    for (unsigned round = 0; round < 4 * N_CHAINS; round++) {
        const unsigned kind = round % N_CHAINS;
        struct sample s;
        make_sample(&s, kind, 40000 + 77 * kind, 512, round < N_CHAINS ? 0 : 300, 1000);
        free(s.coded);
        s.coded = allocate(ptwm_label_bound(s.n));
        CHECK_EQ(ptwm_label_encode(&s.model, 0, memset(s.classes, 0, s.n / 512 + 1), s.first_element, s.symbols, s.n,
                                   s.n_carried > 0 ? s.rest : NULL, s.coded, &s.coded_nbytes, NULL),
                 PTWM_OK);
        CHECK_EQ(decode_fused(&s, s.coded, s.coded_nbytes, CHECK_ALL, BEFORE_GUARD, s.raw), PTWM_OK);
        free_sample(&s);
    }
}

/* A low plane that is one block over and over. */
static void constant_low_plane(void)
{
    for (unsigned kind = 2; kind < 4; kind++) {
        struct sample s;
        const uint8_t *planes[3];
        struct ptwm_fused_chunk chunk = { 0 };
        struct ptwm_shifts shifts;
        uint8_t *raw;

        make_sample(&s, kind, 3000, 384, 0, 100);
        memset(s.low, 0x37, s.low_nbytes);
        planes[0] = s.low;
        planes[1] = s.rest;
        planes[2] = s.symbol_plane;
        shifts.n_columns = 0;
        shifts.value = NULL;
        CHECK_EQ(ptwm_chain_merge(&s.chain, &shifts, 0, s.raw, s.raw_nbytes, planes, NULL), PTWM_OK);
        raw = allocate(s.raw_nbytes);
        chunk.chain = &s.chain;
        chunk.model = &s.model;
        chunk.low.bytes = memcpy(allocate(2 * PTWM_FUSED_BLOCK), s.low, 2 * PTWM_FUSED_BLOCK);
        chunk.low.nbytes = s.low_nbytes;
        chunk.is_low_constant = true;
        chunk.rest.bytes = s.rest + s.n_carried;
        chunk.rest.nbytes = s.rest_nbytes - s.n_carried;
        chunk.is_carried = s.n_carried > 0;
        chunk.symbols.bytes = s.coded;
        chunk.symbols.nbytes = s.coded_nbytes;
        chunk.raw = raw;
        chunk.raw_nbytes = s.raw_nbytes;
        CHECK_EQ(ptwm_fused_decode(&chunk), PTWM_OK);
        CHECK(memcmp(raw, s.raw, s.raw_nbytes) == 0);
        free((void *)(uintptr_t)chunk.low.bytes);
        free(raw);
        free_sample(&s);
    }
}

/* Wherever a bit is wrong, a CRC says so. */
static void wrong_crcs(void)
{
    for (unsigned kind = 0; kind < N_CHAINS; kind++) {
        struct sample s;
        make_sample(&s, kind, 5000, 128, 0, 50);
        for (unsigned round = 0; round < 60; round++) {
            const bool in_low = s.low_nbytes > 0 && round % 2;
            uint8_t *plane = in_low ? s.low : s.rest, *raw = allocate(s.raw_nbytes);
            const size_t nbytes = in_low ? s.low_nbytes : s.rest_nbytes, first = in_low ? 0 : s.n_carried;
            const size_t at = round < 4 ? nbytes - 1 - round : first + random_below((uint32_t)(nbytes - first));
            struct ptwm_fused_chunk chunk = { 0 };
            const uint32_t low_crc = ptwm_crc32c(0, s.low, s.low_nbytes), coded_crc = ptwm_crc32c(0, s.coded, s.coded_nbytes);
            const uint32_t rest_crc = ptwm_crc32c(0, s.rest + s.n_carried, s.rest_nbytes - s.n_carried), wrong_crc = coded_crc ^ 1u << round % 32;
            enum ptwm_status status;

            chunk.chain = &s.chain;
            chunk.model = &s.model;
            chunk.first_element = s.first_element;
            chunk.low.bytes = s.low;
            chunk.low.nbytes = s.low_nbytes;
            chunk.low.crc = s.low_nbytes > 0 ? &low_crc : NULL;
            chunk.rest.bytes = s.rest + s.n_carried;
            chunk.rest.nbytes = s.rest_nbytes - s.n_carried;
            chunk.rest.crc = &rest_crc;
            chunk.is_carried = s.n_carried > 0;
            chunk.symbols.bytes = s.coded;
            chunk.symbols.nbytes = s.coded_nbytes;
            chunk.symbols.crc = &coded_crc;
            chunk.raw = raw;
            chunk.raw_nbytes = s.raw_nbytes;
            plane[at] ^= (uint8_t)(1u << random_below(8));
            status = ptwm_fused_decode(&chunk);
            CHECK(status == PTWM_ERR_CHECKSUM || (status == PTWM_ERR_PADDING && at == nbytes - 1));
            /* Both planes as they were, but for the symbols' CRC. */
            chunk.rest.crc = chunk.low.crc = NULL;
            chunk.symbols.crc = &wrong_crc;
            if (status == PTWM_ERR_CHECKSUM)
                CHECK_EQ(ptwm_fused_decode(&chunk), PTWM_ERR_CHECKSUM);
            free(raw);
        }
        free_sample(&s);
    }
}

static void malformed_chunks(void)
{
    for (unsigned round = 0; round < 240; round++) {
        const unsigned kind = round % N_CHAINS;
        struct sample s;
        uint8_t *coded;
        size_t nbytes;

        make_sample(&s, kind, 512 + random_below(round % 10 == 0 ? 20000 : 2500), 128 * (1 + random_below(5)),
                    round % 3 ? 0 : 1 + random_below(700), 20 + random_below(400));
        coded = allocate(s.coded_nbytes + 4096);
        memcpy(coded, s.coded, s.coded_nbytes);
        nbytes = s.coded_nbytes;
        switch (round / 6 % 6) {
        case 0: /* bits of the words */
            for (unsigned k = 1 + random_below(3); k > 0 && nbytes > s.words_at; k--)
                coded[s.words_at + random_below((uint32_t)(nbytes - s.words_at))] ^= (uint8_t)(1u << random_below(8));
            break;
        case 1: /* too few words */
            nbytes -= random_below((uint32_t)(nbytes - s.words_at + 1));
            break;
        case 2: /* none, or too many */
            nbytes = round % 2 ? s.words_at : nbytes + random_below(4096);
            memset(coded + s.coded_nbytes, 0, 4096);
            break;
        case 3: /* any words at all, in any number */
            nbytes = s.words_at + 2 * random_below((uint32_t)(nbytes - s.words_at + 4096) / 2);
            for (size_t i = s.words_at; i < nbytes; i++)
                coded[i] = (uint8_t)random_below(round % 2 ? 256 : 2);
            break;
        case 4: /* a head that is wrong but has the right CRC */
            coded[random_below((uint32_t)s.words_at - 4)] ^= (uint8_t)(1u << random_below(8));
            ptwm_store32(coded + s.words_at - 4, ptwm_crc32c(0, coded, s.words_at - 4));
            break;
        default: /* cut anywhere */
            nbytes = random_below((uint32_t)nbytes);
            break;
        }
        for (unsigned place = 0; place < N_PLACES; place++) {
            /* With other lanes than 128 the plain way may succeed. */
            if (nbytes > 0 && coded[0] != 2)
                CHECK(decode_fused(&s, coded, nbytes, NO_CHECKS, (enum place)place, NULL) != PTWM_OK);
            else
                compare_with_plain(&s, coded, nbytes, (enum place)place);
        }
        free(coded);
        free_sample(&s);
    }
}

/* Words that are as many as can be: every step takes one. */
static void dense_words(void)
{
    for (unsigned kind = 0; kind < N_CHAINS; kind++) {
        struct sample s;
        struct ptwm_label_table *table;

        make_sample(&s, kind, 4096, 128, 0, 0);
        for (uint32_t k = 0; k < 2; k++)
            for (uint32_t c = 0; c < s.model.sets[k].n_classes; c++) {
                table = &s.model.sets[k].classes[c];
                memset(table, 0, sizeof *table);
                table->n_labels = 2;
                table->symbol[1] = 1;
                table->frequency[0] = 8;
                table->frequency[1] = 65528;
            }
        memset(s.classes, 0, s.n / 128 + 1);
        memset(s.symbols, 0, 2 * s.n);
        memset(s.symbol_plane, 0, 2 * s.n);
        free(s.coded);
        encode(&s, 0);
        CHECK(s.coded_nbytes - s.words_at > s.n * 3 / 2);
        for (size_t cut = 0; cut < 1200; cut += 2)
            if (cut <= s.coded_nbytes - s.words_at)
                compare_with_plain(&s, s.coded, s.coded_nbytes - cut, BEFORE_GUARD);
        free_sample(&s);
    }
}

static void not_served(void)
{
    static const uint8_t other[] = { 3, 2, 6, 8 }, delta[] = { 1, 2, 3, 2, 6, 9 };
    struct ptwm_label_model model = { 0 };
    struct ptwm_parsed_chain chain;
    const int16_t shift = 0;
    const uint8_t phase = PTWM_PHASE;

    CHECK_EQ(ptwm_chain_parse(other, sizeof other, &chain, NULL), PTWM_OK);
    CHECK(!ptwm_fused_serves(&chain, &model, 4096));
    CHECK_EQ(ptwm_chain_parse(delta, sizeof delta, &chain, NULL), PTWM_OK);
    CHECK(!ptwm_fused_serves(&chain, &model, 4096));
    CHECK_EQ(ptwm_chain_parse(chains[0], 4, &chain, NULL), PTWM_OK);
    CHECK(!ptwm_fused_serves(&chain, &model, 1022));
    CHECK(ptwm_fused_serves(&chain, &model, 1024));
    CHECK_EQ(ptwm_chain_parse(chains[0], 0, &chain, NULL), PTWM_OK);
    CHECK(!ptwm_fused_serves(&chain, &model, 4096));
    for (unsigned kind = 0; kind < N_CHAINS; kind++) {
        CHECK_EQ(ptwm_chain_parse(chains[kind], 4, &chain, NULL), PTWM_OK);
        ptwm_label_model_init(&model, &ptwm_default_allocator, chain.label);
        CHECK_EQ(ptwm_label_model_set_shifts(&model, &shift, 1), PTWM_OK);
        CHECK(ptwm_fused_serves(&chain, &model, 4096));
        CHECK_EQ(ptwm_label_model_set_phases(&model, &phase), PTWM_OK);
        CHECK_EQ(ptwm_fused_serves(&chain, &model, 4096), kind != 1 && kind != 3 && kind != 7);
        ptwm_label_model_release(&model);
    }
}

int main(void)
{
    static const char *const levels[] = { "c99", "sse42", "avx2", "avx512", "neon" };

    for (size_t l = 0; l < sizeof levels / sizeof levels[0]; l++) {
        if (ptwm_cpu_select(levels[l]) != PTWM_OK) {
            printf("SKIP %s: this machine does not have it\n", levels[l]);
            continue;
        }
        CHECK(strcmp(ptwm_cpu_name(), levels[l]) == 0);
        printf("%s\n", levels[l]);
        random_state = 1;
        RUN(random_chunks);
        RUN(own_encoder);
        RUN(constant_low_plane);
        RUN(wrong_crcs);
        RUN(malformed_chunks);
        RUN(dense_words);
    }
    RUN(not_served);
    CHECK_EXIT();
}
