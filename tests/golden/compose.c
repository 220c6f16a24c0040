#include "compose.h"

#include <stdio.h>
#include <stdlib.h>

#include "codec.h"
#include "segment.h"
#include "trim.h"

static void must(enum ptwm_status status)
{
    if (status != PTWM_OK) {
        fprintf(stderr, "compose: %s\n", ptwm_status_string(status));
        exit(1);
    }
}

/* A segment in the making. All planes of a chunk are one behind the other. */
struct composing {
    const struct composition *c;
    struct ptwm_tail tail;
    uint8_t **chunks;
};

static size_t n_elements(const struct composing *s, uint64_t chunk)
{
    return (size_t)ptwm_chain_n_elements(&s->tail.chain, ptwm_tail_chunk_nbytes(&s->tail, chunk));
}

static uint8_t *plane_of(const struct composing *s, uint64_t chunk, uint32_t plane, size_t *nbytes)
{
    uint8_t *at = s->chunks[chunk];

    for (uint32_t p = 0;; p++) {
        *nbytes = (size_t)ptwm_plane_nbytes(&s->tail.chain, p, ptwm_tail_chunk_nbytes(&s->tail, chunk));
        if (p == plane)
            return at;
        at += *nbytes;
    }
}

static void split(struct composing *s, const uint8_t *raw)
{
    const struct ptwm_shifts shifts = ptwm_tail_shifts(&s->tail);

    s->chunks = calloc((size_t)s->tail.n_chunks, sizeof *s->chunks);
    for (uint64_t i = 0; i < s->tail.n_chunks; i++) {
        const size_t nbytes = ptwm_tail_chunk_nbytes(&s->tail, i);
        uint8_t *planes[PTWM_MAX_PLANES], *scratch = malloc(nbytes);

        s->chunks[i] = malloc(4 * nbytes + 64);
        for (uint32_t p = 0; p < s->tail.chain.n_planes; p++) {
            size_t plane_nbytes;
            planes[p] = plane_of(s, i, p, &plane_nbytes);
        }
        ptwm_chain_split(&s->tail.chain, &shifts, ptwm_tail_first_element(&s->tail, i), raw + i * s->tail.chunk_nbytes,
                         nbytes, planes, scratch);
        free(scratch);
    }
}

/* ------------------------------------------------------------------------------------------------------- labels */

static uint16_t symbol_at(const struct composing *s, uint64_t chunk, size_t element)
{
    size_t nbytes;
    const uint8_t *plane = plane_of(s, chunk, s->tail.chain.n_planes - 1, &nbytes);
    return s->tail.model.bits <= 8 ? plane[element] : ptwm_load16(plane + 2 * element);
}

static uint32_t set_of(const struct composition *c, uint64_t chunk)
{
    return (uint32_t)((chunk + 1) % c->n_sets);
}

/* How often the symbols of a class occur in the chunks of a set, in columns of either phase. */
static void count(const struct composing *s, uint32_t set, unsigned class_of, uint32_t counts[2][1 << 15])
{
    const struct ptwm_label_model *m = &s->tail.model;

    memset(counts, 0, 2 * sizeof counts[0]);
    for (uint64_t i = 0; i < s->tail.n_chunks; i++)
        for (size_t e = 0; set_of(s->c, i) == set && e < n_elements(s, i); e++) {
            const uint64_t column = m->n_columns > 0 ? (ptwm_tail_first_element(&s->tail, i) + e) % m->n_columns : 0;
            if (e / m->unit % s->c->n_classes == class_of)
                counts[m->phase != NULL && m->phase[column] != 0][symbol_at(s, i, e)]++;
        }
}

/* Frequencies for counts of labels; each is at least 8, and what is missing is the greatest one's. */
static void make_frequencies(const struct ptwm_label_table *table, const uint32_t *counts, uint16_t *frequency)
{
    uint64_t sum = 1;
    uint32_t left = PTWM_FREQUENCY_TOTAL, greatest = 0;

    for (uint32_t l = 0; l < table->n_labels; l++)
        sum += counts[table->symbol[l]];
    for (uint32_t l = 0; l < table->n_labels; l++) {
        const uint64_t share = (uint64_t)counts[table->symbol[l]] * (65536 / 8 - PTWM_MAX_LABELS) / sum;
        frequency[l] = (uint16_t)(8 * (1 + share));
        greatest = frequency[l] > frequency[greatest] ? l : greatest;
        left -= frequency[l];
    }
    frequency[greatest] = (uint16_t)(frequency[greatest] + left);
}

/* The table of the most frequent symbols, two at least. */
static struct ptwm_label_table make_table(const struct composing *s, uint32_t counts[2][1 << 15])
{
    const uint32_t n_symbols = 1u << s->tail.model.bits;
    struct ptwm_label_table table = { 0 };
    uint8_t *is_label = calloc(n_symbols, 1);

    for (unsigned l = 0; l < s->c->n_labels && l < n_symbols; l++) {
        uint32_t best = UINT32_MAX;
        for (uint32_t v = 0; v < n_symbols; v++)
            if (!is_label[v] && (best == UINT32_MAX || counts[0][v] + counts[1][v] > counts[0][best] + counts[1][best]))
                best = v;
        if (l >= 2 && counts[0][best] + counts[1][best] == 0)
            break;
        is_label[best] = 1;
    }
    for (uint32_t v = 0; v < n_symbols; v++)
        if (is_label[v])
            table.symbol[table.n_labels++] = (uint16_t)v;
    free(is_label);
    if (s->tail.model.phase == NULL)
        for (uint32_t v = 0; v < n_symbols; v++)
            counts[0][v] += counts[1][v];
    make_frequencies(&table, counts[0], table.frequency);
    if (s->tail.model.phase != NULL)
        make_frequencies(&table, counts[1], table.second);
    return table;
}

static void add_shifts(struct composing *s)
{
    int16_t shifts[COMPOSE_MAX_COLUMNS];
    uint8_t phases[COMPOSE_MAX_COLUMNS];

    if (s->c->n_columns == 0)
        return;
    for (uint32_t i = 0; i < s->c->n_columns; i++) {
        shifts[i] = (int16_t)(s->c->base + (int)(5 * i % (uint32_t)s->c->spread));
        phases[i] = i % 3 == 1 ? PTWM_PHASE : 0;
    }
    must(ptwm_label_model_set_shifts(&s->tail.model, shifts, s->c->n_columns));
    if (s->c->has_phases)
        must(ptwm_label_model_set_phases(&s->tail.model, phases));
}

static void add_sets(struct composing *s)
{
    static uint32_t counts[2][1 << 15];

    for (uint32_t set = 0; set < s->c->n_sets; set++) {
        struct ptwm_label_set made = { .n_classes = s->c->n_classes };
        for (unsigned k = 0; k < made.n_classes; k++) {
            count(s, set, k, counts);
            made.classes[k] = make_table(s, counts);
        }
        must(ptwm_label_model_add_set(&s->tail.model, &made));
    }
}

/* rest: what the states carry, or NULL. */
static void put_labels(forge *body, const struct composing *s, uint64_t chunk, const uint8_t *rest)
{
    const size_t n = n_elements(s, chunk), n_units = (size_t)ptwm_ceil_div(n, s->c->unit);
    uint16_t *symbols = malloc(2 * n), final[PTWM_MAX_LANES] = { 0 };
    uint8_t *classes = malloc(n_units);

    for (size_t e = 0; e < n; e++)
        symbols[e] = symbol_at(s, chunk, e);
    for (size_t u = 0; u < n_units; u++)
        classes[u] = (uint8_t)(u % s->c->n_classes);
    for (unsigned l = 0; rest != NULL && l < s->c->n_lanes; l++)
        final[l] = ptwm_load16(rest + 2 * l);
    forge_labels(body, &s->tail.model, set_of(s->c, chunk), classes, ptwm_tail_first_element(&s->tail, chunk), symbols, n,
                 s->c->n_lanes, final);
    free(symbols);
    free(classes);
}

/* ------------------------------------------------------------------------------------------------------- planes */

static void put_plane(forge *body, const struct composing *s, uint64_t chunk, uint32_t p, uint8_t codec,
                      const uint8_t *rest)
{
    const struct ptwm_codec_context context = { &ptwm_default_allocator, ptwm_zstd_select(NULL), 0 };
    const struct ptwm_byte_codec *bytes = ptwm_byte_codec_find(codec);
    size_t nbytes, stored_nbytes;
    const uint8_t *plane = plane_of(s, chunk, p, &nbytes);

    if (codec == PTWM_CODEC_LABEL_RANS) {
        put_labels(body, s, chunk, rest);
    } else if (codec == PTWM_CODEC_CARRIED) {
        forge_put(body, plane + 2 * s->c->n_lanes, nbytes - 2 * s->c->n_lanes);
    } else if (codec == PTWM_CODEC_TRIM) {
        must(ptwm_bytes_reserve(body, ptwm_trim_nbytes(plane, nbytes / 2, s->c->trim_unit)));
        ptwm_trim_encode(body->data + body->nbytes, plane, nbytes / 2, s->c->trim_unit);
        body->nbytes += (size_t)ptwm_trim_nbytes(plane, nbytes / 2, s->c->trim_unit);
    } else {
        nbytes = codec == PTWM_CODEC_CONSTANT ? s->tail.chain.planes[p].element_nbytes : nbytes;
        must(ptwm_bytes_reserve(body, bytes->bound(nbytes)));
        must(bytes->encode(&context, body->data + body->nbytes, &stored_nbytes, plane, nbytes, NULL));
        body->nbytes += stored_nbytes;
    }
}

static void put_chunk(forge *body, struct composing *s, uint64_t chunk)
{
    const uint8_t *codecs = chunk % 2 == 1 && s->c->odd_codecs != NULL ? s->c->odd_codecs : s->c->codecs;
    struct ptwm_plane_record *records = ptwm_tail_chunk_planes(&s->tail, chunk);
    const uint8_t *rest = NULL;

    for (uint32_t p = 0; p < s->tail.chain.n_planes; p++) {
        const size_t begin = body->nbytes;
        size_t nbytes;
        if (codecs[p] == PTWM_CODEC_CARRIED)
            rest = plane_of(s, chunk, p, &nbytes);
        put_plane(body, s, chunk, p, codecs[p], rest);
        records[p].codec = codecs[p];
        records[p].stored_nbytes = (uint32_t)(body->nbytes - begin);
        records[p].crc = ptwm_crc32c(0, body->data + begin, body->nbytes - begin);
    }
}

/* Puts the padding before a chunk of a segment that begins at begin. */
static void pad(forge *body, size_t begin, unsigned flags)
{
    while (ptwm_chunk_position(body->nbytes - begin, flags) != body->nbytes - begin)
        forge_u8(body, 0);
}

void compose(forge *body, const struct composition *c, const uint8_t *raw, size_t raw_nbytes, uint64_t record[4])
{
    struct ptwm_segment_record segment = { .raw_nbytes = raw_nbytes, .flags = c->flags };
    struct composing s = { .c = c };
    struct ptwm_parsed_chain chain;
    size_t begin, tail_begin;

    must(ptwm_chain_parse(c->chain, c->chain_nbytes, &chain, NULL));
    must(ptwm_tail_init(&s.tail, &ptwm_default_allocator, &segment, &chain,
                        c->chunk_nbytes > 0 ? c->chunk_nbytes : raw_nbytes));
    if (chain.label != NULL) {
        s.tail.model.unit = c->unit;
        add_shifts(&s);
    }
    split(&s, raw);
    if (chain.label != NULL)
        add_sets(&s);

    while (ptwm_segment_position(PTWM_HEADER_NBYTES + body->nbytes, c->flags) != PTWM_HEADER_NBYTES + body->nbytes)
        forge_u8(body, 0);
    begin = body->nbytes;
    for (uint64_t i = 0; i < s.tail.n_chunks; i++) {
        pad(body, begin, c->flags);
        put_chunk(body, &s, i);
        free(s.chunks[i]);
    }
    tail_begin = body->nbytes;
    must(ptwm_tail_write(&s.tail, body));
    record[0] = body->nbytes - begin;
    record[1] = body->nbytes - tail_begin;
    record[2] = raw_nbytes;
    record[3] = c->flags;
    free(s.chunks);
    ptwm_tail_release(&s.tail);
}
