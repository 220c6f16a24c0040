#include "forge.h"

#include <stdio.h>
#include <stdlib.h>

#include "manifest.h"

static void must(enum ptwm_status status)
{
    if (status != PTWM_OK) {
        fprintf(stderr, "forge: %s\n", ptwm_status_string(status));
        exit(1);
    }
}

forge forge_new(void)
{
    const forge f = { &ptwm_default_allocator, NULL, 0, 0 };
    return f;
}

void forge_free(forge *f)
{
    ptwm_bytes_release(f);
}

void forge_put(forge *f, const void *data, size_t nbytes)
{
    must(ptwm_bytes_append(f, data, nbytes));
}

void forge_u8(forge *f, unsigned value)
{
    must(ptwm_bytes_append_u8(f, (uint8_t)value));
}

void forge_u16(forge *f, unsigned value)
{
    forge_u8(f, value & 255);
    forge_u8(f, value >> 8);
}

void forge_u32(forge *f, uint32_t value)
{
    must(ptwm_bytes_append_u32(f, value));
}

void forge_varint(forge *f, uint64_t value)
{
    must(ptwm_bytes_append_varint(f, value));
}

void forge_zeros(forge *f, size_t n)
{
    must(ptwm_bytes_reserve(f, n));
    memset(f->data + f->nbytes, 0, n);
    f->nbytes += n;
}

void forge_head(forge *f, enum ptwm_cbor_type type, uint64_t value)
{
    must(ptwm_cbor_write_head(f, type, value));
}

void forge_uint(forge *f, uint64_t value)
{
    forge_head(f, PTWM_CBOR_UINT, value);
}

void forge_text(forge *f, const char *text)
{
    must(ptwm_cbor_write_string(f, PTWM_CBOR_TEXT, text, strlen(text)));
}

void forge_manifest(forge *f, uint64_t n_fields, size_t n_segments, const uint64_t (*segments)[4])
{
    forge_head(f, PTWM_CBOR_MAP, n_fields);
    forge_uint(f, 1);
    forge_head(f, PTWM_CBOR_ARRAY, n_segments);
    for (size_t i = 0; i < n_segments; i++) {
        forge_head(f, PTWM_CBOR_ARRAY, 4);
        for (unsigned j = 0; j < 4; j++)
            forge_uint(f, segments[i][j]);
    }
}

void forge_file(forge *f, const forge *body, const forge *manifest)
{
    const size_t begin = f->nbytes;
    struct ptwm_footer footer;

    forge_zeros(f, PTWM_HEADER_NBYTES);
    ptwm_header_write(f->data + begin);
    forge_put(f, body->data, body->nbytes);
    footer.manifest_offset = f->nbytes - begin;
    footer.manifest_nbytes = manifest->nbytes;
    footer.file_nbytes = footer.manifest_offset + footer.manifest_nbytes + PTWM_FOOTER_NBYTES;
    footer.manifest_crc = ptwm_crc32c(0, manifest->data, manifest->nbytes);
    forge_put(f, manifest->data, manifest->nbytes);
    forge_zeros(f, PTWM_FOOTER_NBYTES);
    ptwm_footer_write(f->data + f->nbytes - PTWM_FOOTER_NBYTES, &footer);
}

void forge_seal(forge *f, size_t begin)
{
    forge_u32(f, ptwm_crc32c(0, f->data + begin, f->nbytes - begin));
}

static void put_one_manifest(forge *manifest, uint64_t stored_nbytes, uint64_t tail_nbytes, uint64_t raw_nbytes,
                             unsigned flags)
{
    const uint64_t segment[1][4] = { { stored_nbytes, tail_nbytes, raw_nbytes, flags } };

    forge_manifest(manifest, 2, 1, segment);
    forge_uint(manifest, 2);
    forge_head(manifest, PTWM_CBOR_ARRAY, 1);
    forge_head(manifest, PTWM_CBOR_MAP, 1);
    forge_uint(manifest, 0);
    forge_text(manifest, "x");
}

void forge_one(forge *f, const forge *chunks, const forge *tail, uint64_t raw_nbytes, unsigned flags)
{
    forge body = forge_new(), manifest = forge_new();

    forge_put(&body, chunks->data, chunks->nbytes);
    forge_put(&body, tail->data, tail->nbytes);
    forge_seal(&body, chunks->nbytes);
    put_one_manifest(&manifest, body.nbytes, tail->nbytes + 4, raw_nbytes, flags);
    forge_file(f, &body, &manifest);
    forge_free(&body);
    forge_free(&manifest);
}

/* ------------------------------------------------------------------------------------------------------- labels */

/* Where a label's ranks are among the low halves of states: the inverse of the step, looked for and found. */
static uint32_t find_low_half(const struct ptwm_alias_table *alias, uint32_t label, uint32_t rank)
{
    for (uint32_t s = 0; s < 65536; s++) {
        const uint32_t b = s % 32, off = s / 32;
        const bool is_alias = s >= alias->div[b];
        if ((is_alias ? alias->ali[b] : b) == label && (is_alias ? (off + alias->adj[b]) % 65536 : off) == rank)
            return s;
    }
    fprintf(stderr, "forge: no such rank\n");
    exit(1);
}

static uint32_t label_of(const struct ptwm_label_table *table, uint16_t symbol)
{
    uint32_t best = 0;

    for (uint32_t l = 0; l < table->n_labels; l++) {
        if (table->symbol[l] == symbol)
            return l;
        best = table->frequency[l] > table->frequency[best] ? l : best;
    }
    return best; /* of an exception */
}

static bool is_exception(const struct ptwm_label_table *table, uint16_t symbol)
{
    return table->symbol[label_of(table, symbol)] != symbol;
}

/* Codes all elements backwards. words grow down from words_end; their beginning. */
static uint16_t *code_elements(const struct ptwm_label_model *model, const struct ptwm_label_set *set,
                               const uint8_t *classes, uint64_t first_element, const uint16_t *symbols, size_t n,
                               unsigned n_lanes, uint32_t *states, uint16_t *words_end)
{
    uint16_t *word = words_end;

    for (size_t group = (n + n_lanes - 1) / n_lanes; group-- > 0;)
        for (uint32_t lane = n_lanes; lane-- > 0;)
            for (size_t i = group * n_lanes; i < n && i < (group + 1) * n_lanes; i++) {
                const struct ptwm_label_table *table = &set->classes[classes[i / model->unit]];
                const bool phase = model->phase != NULL && model->phase[(first_element + i) % model->n_columns] != 0;
                const uint16_t *frequency = phase ? table->second : table->frequency;
                const uint32_t label = label_of(table, symbols[i]), f = frequency[label];
                struct ptwm_alias_table alias;
                uint32_t x = states[lane];

                if (ptwm_label_lane((uint32_t)i, n_lanes, model->width) != lane)
                    continue;
                ptwm_alias_build(&alias, frequency);
                if (x >= (uint64_t)f << 16) {
                    *--word = (uint16_t)x;
                    x >>= 16;
                }
                states[lane] = x / f << 16 | find_low_half(&alias, label, x % f);
            }
    return word;
}

void forge_labels(forge *f, const struct ptwm_label_model *model, uint32_t set, const uint8_t *classes,
                  uint64_t first_element, const uint16_t *symbols, size_t n, unsigned n_lanes, const uint16_t *final)
{
    const struct ptwm_label_set *s = &model->sets[set];
    const size_t begin = f->nbytes, n_units = (size_t)ptwm_ceil_div(n, model->unit);
    const unsigned class_bits = ptwm_ceil_log2(s->n_classes);
    uint16_t *words = malloc(2 * n + 2), *word;
    uint8_t *class_codes = calloc(n_units + 1, 1);
    struct ptwm_bit_writer writer = { class_codes, 0, 0 };
    uint32_t states[PTWM_MAX_LANES];
    size_t n_exceptions = 0, next = 0;

    for (unsigned l = 0; l < n_lanes; l++)
        states[l] = 65536u + (final != NULL ? final[l] : 0);
    word = code_elements(model, s, classes, first_element, symbols, n, n_lanes, states, words + n);
    for (size_t i = 0; i < n; i++)
        n_exceptions += is_exception(&s->classes[classes[i / model->unit]], symbols[i]);
    forge_u8(f, n_lanes == 4 ? 0 : n_lanes == 32 ? 1 : 2);
    forge_varint(f, set);
    forge_varint(f, n_exceptions);
    for (size_t u = 0; u < n_units; u++)
        ptwm_write_bits(&writer, classes[u], class_bits);
    ptwm_flush_bits(&writer);
    forge_put(f, class_codes, (size_t)(writer.next - class_codes));
    for (size_t i = 0; i < n; i++)
        if (is_exception(&s->classes[classes[i / model->unit]], symbols[i])) {
            forge_varint(f, i - next);
            forge_u8(f, symbols[i] & 255);
            if (model->bits > 8)
                forge_u8(f, symbols[i] >> 8);
            next = i + 1;
        }
    for (unsigned l = 0; l < n_lanes; l++)
        forge_u32(f, states[l]);
    forge_seal(f, begin);
    for (; word < words + n; word++)
        forge_u16(f, *word);
    free(class_codes);
    free(words);
}
