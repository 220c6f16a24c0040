#include "golden.h"

#include <stdlib.h>

#include "sha256.h"
#include "statuses.h"

static void fail(const char *file, const char *what)
{
    fprintf(stderr, "make_golden: %s: %s\n", file, what);
    exit(1);
}

/* The file that is being saved. */
static const char *current = "-";

void golden_must(bool condition, const char *text, const char *file, int line)
{
    if (!condition) {
        fprintf(stderr, "%s:%d: %s: %s\n", file, line, current, text);
        exit(1);
    }
}

uint64_t golden_random(uint64_t *state)
{
    uint64_t z = (*state += 0x9E3779B97F4A7C15u);
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return z ^ z >> 31;
}

struct golden *golden_begin(void)
{
    struct golden *g = calloc(1, sizeof *g);

    g->file = g->body = g->entries = forge_new();
    return g;
}

static void end(struct golden *g)
{
    for (unsigned i = 0; i < g->n_tensors; i++) {
        free(g->tensors[i].name);
        free(g->tensors[i].raw);
    }
    forge_free(&g->file);
    forge_free(&g->body);
    forge_free(&g->entries);
    free(g);
}

void golden_expect(struct golden *g, const char *name, size_t name_nbytes, uint32_t dtype, unsigned n_dims,
                   const uint64_t *shape, const uint8_t *raw, size_t nbytes)
{
    struct golden_tensor *t = &g->tensors[g->n_tensors++];

    if (g->n_tensors > GOLDEN_MAX_TENSORS)
        fail(name, "too many tensors");
    t->name = malloc(name_nbytes + 1);
    memcpy(t->name, name, name_nbytes);
    t->name_nbytes = name_nbytes;
    t->dtype = dtype;
    t->n_dims = n_dims;
    for (unsigned i = 0; n_dims != GOLDEN_NO_SHAPE && i < n_dims; i++)
        t->shape[i] = shape[i];
    t->raw = malloc(nbytes + 1);
    if (nbytes > 0)
        memcpy(t->raw, raw, nbytes);
    t->nbytes = nbytes;
}

/* ------------------------------------------------------------------------------------------------ files by hand */

unsigned golden_compose(struct golden *g, const struct composition *c, const uint8_t *raw, size_t nbytes)
{
    if (g->n_segments == GOLDEN_MAX_SEGMENTS)
        fail("compose", "too many segments");
    compose(&g->body, c, raw, nbytes, g->segments[g->n_segments]);
    return g->n_segments++;
}

void golden_add(struct golden *g, const char *name, uint32_t dtype, unsigned n_dims, const uint64_t *shape,
                const struct composition *c, const uint8_t *raw, size_t nbytes)
{
    golden_compose(g, c, raw, nbytes);
    golden_expect(g, name, strlen(name), dtype, n_dims, shape, raw, nbytes);
    forge_head(&g->entries, PTWM_CBOR_MAP, n_dims == GOLDEN_NO_SHAPE ? 3 : 4);
    forge_uint(&g->entries, 0);
    forge_text(&g->entries, name);
    forge_uint(&g->entries, 1);
    forge_uint(&g->entries, dtype);
    if (n_dims != GOLDEN_NO_SHAPE) {
        forge_uint(&g->entries, 2);
        forge_head(&g->entries, PTWM_CBOR_ARRAY, n_dims);
        for (unsigned i = 0; i < n_dims; i++)
            forge_uint(&g->entries, shape[i]);
    }
    forge_uint(&g->entries, 5);
    forge_uint(&g->entries, ptwm_xxh3_64(raw, nbytes));
}

void golden_seal(struct golden *g)
{
    forge manifest = forge_new();

    forge_manifest(&manifest, 2, g->n_segments, (const uint64_t (*)[4])g->segments);
    forge_uint(&manifest, 2);
    forge_head(&manifest, PTWM_CBOR_ARRAY, g->n_tensors);
    forge_put(&manifest, g->entries.data, g->entries.nbytes);
    g->file.nbytes = 0;
    forge_file(&g->file, &g->body, &manifest);
    forge_free(&manifest);
}

/* ------------------------------------------------------------------------------------------------------- saving */

static void write_file(const struct golden *g, const char *name)
{
    char path[4096];
    FILE *f;

    snprintf(path, sizeof path, "%s/%s", golden_directory, name);
    f = fopen(path, "wb");
    if (f == NULL || (g->file.nbytes > 0 && fwrite(g->file.data, 1, g->file.nbytes, f) != g->file.nbytes) ||
        fclose(f) != 0)
        fail(path, "cannot be written");
}

/* Whether decoding a tensor takes zstd: chunks of its segment that it touches have planes that zstd coded. */
static bool needs_zstd(const struct ptwm_reader *r, const struct ptwm_tensor_info *t)
{
    struct ptwm_layout_info info = { .struct_nbytes = sizeof info };
    struct ptwm_layout *layout;
    bool is_zstd = false;

    if (t->segment == PTWM_NONE)
        return false;
    MUST(ptwm_reader_get_layout(r, t->segment, &layout, NULL) == PTWM_OK);
    MUST(ptwm_layout_get_info(layout, &info) == PTWM_OK);
    for (uint64_t c = t->segment_offset / info.chunk_nbytes; c * info.chunk_nbytes < t->segment_offset + t->nbytes; c++)
        for (uint32_t p = 0; p < info.n_planes; p++) {
            struct ptwm_stored_plane plane = { .struct_nbytes = sizeof plane };
            MUST(ptwm_layout_get_plane(layout, c, p, &plane) == PTWM_OK);
            is_zstd = is_zstd || plane.codec == PTWM_CODEC_ZSTD;
        }
    ptwm_layout_free(layout);
    return is_zstd;
}

static void index_name(const char *name, size_t nbytes)
{
    for (size_t i = 0; i < nbytes; i++) {
        if (name[i] > ' ' && name[i] <= '~' && name[i] != '%')
            fputc(name[i], golden_index);
        else
            fprintf(golden_index, "%%%02X", (unsigned char)name[i]);
    }
}

static void index_tensor(const struct golden_tensor *t, bool is_zstd)
{
    char hex[65];

    fprintf(golden_index, "tensor\t");
    index_name(t->name, t->name_nbytes);
    fprintf(golden_index, "\t%lu\t", (unsigned long)t->dtype);
    if (t->n_dims == GOLDEN_NO_SHAPE)
        fprintf(golden_index, "none");
    else if (t->n_dims == 0)
        fprintf(golden_index, "scalar");
    for (unsigned i = 0; t->n_dims != GOLDEN_NO_SHAPE && i < t->n_dims; i++)
        fprintf(golden_index, "%s%llu", i > 0 ? "," : "", (unsigned long long)t->shape[i]);
    sha256_hex(t->raw, t->nbytes, hex);
    fprintf(golden_index, "\t%lu\t%s\t%s\n", (unsigned long)t->nbytes, hex, is_zstd ? "zstd" : "-");
}

static struct ptwm_reader *open_golden(const struct golden *g, const char *name, enum ptwm_status expected)
{
    struct ptwm_error error = PTWM_ERROR_INIT;
    struct ptwm_reader *r = NULL;

    if (ptwm_reader_open_memory(g->file.data, g->file.nbytes, NULL, &r, &error) != expected)
        fail(name, ptwm_status_string(error.status));
    return r;
}

static enum ptwm_status decode(const struct ptwm_reader *r, uint64_t tensor, uint32_t flags, struct ptwm_tensor_info *t,
                               uint8_t **raw)
{
    struct ptwm_decode_options options = PTWM_DECODE_OPTIONS_INIT;
    struct ptwm_request request = { tensor, 0, PTWM_NONE, NULL, 0 };

    t->struct_nbytes = sizeof *t;
    MUST(ptwm_reader_get_tensor(r, tensor, t) == PTWM_OK);
    *raw = malloc((size_t)t->nbytes + 1);
    request.buffer = *raw;
    request.buffer_nbytes = t->nbytes;
    options.flags = flags;
    return ptwm_reader_decode(r, &request, 1, &options, NULL);
}

static void check_tensor(const struct ptwm_reader *r, uint64_t tensor, const struct golden_tensor *expected)
{
    const unsigned n_dims = expected->n_dims == GOLDEN_NO_SHAPE ? 0 : expected->n_dims;
    struct ptwm_tensor_info t;
    uint8_t *raw;

    MUST(decode(r, tensor, PTWM_DECODE_CHECK_HASH, &t, &raw) == PTWM_OK);
    MUST(t.name_nbytes == expected->name_nbytes && memcmp(t.name, expected->name, t.name_nbytes) == 0);
    MUST(t.dtype == expected->dtype && t.n_dims == n_dims);
    MUST(n_dims == 0 || memcmp(t.shape, expected->shape, n_dims * sizeof t.shape[0]) == 0);
    MUST(t.nbytes == expected->nbytes && memcmp(raw, expected->raw, expected->nbytes) == 0);
    index_tensor(expected, needs_zstd(r, &t));
    free(raw);
}

void golden_save(struct golden *g, const char *name, const char *covers)
{
    struct ptwm_reader_info info = { .struct_nbytes = sizeof info };
    struct ptwm_reader *r = open_golden(g, name, PTWM_OK);
    char hex[65];

    current = name;
    MUST(ptwm_reader_verify(r, 1, NULL) == PTWM_OK);
    MUST(ptwm_reader_get_info(r, &info) == PTWM_OK);
    MUST(info.n_tensors == g->n_tensors);
    sha256_hex(g->file.data, g->file.nbytes, hex);
    fprintf(golden_index, "good\t%s\t%s\t%s\n", name, hex, covers);
    for (unsigned i = 0; i < g->n_tensors; i++)
        check_tensor(r, i, &g->tensors[i]);
    ptwm_reader_close(r);
    write_file(g, name);
    end(g);
}

void golden_bad(struct golden *g, const char *name, const char *where, unsigned tensor, enum ptwm_status expected,
                const char *covers)
{
    const bool fails_to_open = strcmp(where, "open") == 0, fails_to_verify = strcmp(where, "verify") == 0;
    struct ptwm_reader *r = open_golden(g, name, fails_to_open ? expected : PTWM_OK);
    char hex[65], at[32] = "";

    current = name;
    if (!fails_to_open) {
        struct ptwm_tensor_info t;
        uint8_t *raw;
        MUST(decode(r, tensor, 0, &t, &raw) == (fails_to_verify ? PTWM_OK : expected));
        MUST(ptwm_reader_verify(r, 1, NULL) == expected);
        free(raw);
        if (!fails_to_verify)
            snprintf(at, sizeof at, ":%u", tensor);
    }
    sha256_hex(g->file.data, g->file.nbytes, hex);
    fprintf(golden_index, "bad\t%s\t%s\t%s%s\t%s\t%s\n", name, hex, where, at, golden_status_name(expected), covers);
    ptwm_reader_close(r);
    write_file(g, name);
    end(g);
}

/* --------------------------------------------------------------------------------------------------------- data */

void golden_floats(uint8_t *raw, size_t n, unsigned width, unsigned exponent_bits, unsigned n_columns, uint64_t seed)
{
    const unsigned mantissa_bits = 8 * width - 1 - exponent_bits;
    const uint64_t middle = (uint64_t)1 << (exponent_bits - 1);

    for (size_t i = 0; i < n; i++) {
        const uint64_t random = golden_random(&seed), mantissa = golden_random(&seed);
        const unsigned column = (unsigned)(i % n_columns), row = (unsigned)(i / n_columns);
        uint64_t exponent = middle - 1 + (exponent_bits > 4 ? 5 * column % 4 + row % 3 : row % 2), bits;
        /* An octave less for each bit of the random number that is zero, up to the first one. */
        for (unsigned b = 0; exponent > 0 && b < 20 && !(random >> b & 1); b++)
            exponent--;
        if (random >> 32 < 0x2000000) /* one in 128 is far from the others */
            exponent = random >> 20 & (2 * middle - 1);
        bits = (random >> 63) << (8 * width - 1) | exponent << mantissa_bits;
        bits |= mantissa & (((uint64_t)1 << mantissa_bits) - 1);
        for (unsigned b = 0; b < width; b++)
            raw[i * width + b] = (uint8_t)(bits >> 8 * b);
    }
}

void golden_bytes(uint8_t *raw, size_t nbytes, unsigned bits, uint64_t seed)
{
    for (size_t i = 0; i < nbytes; i++) {
        const uint64_t x = golden_random(&seed);
        raw[i] = (uint8_t)(0x3A + (x & x >> 8 & ((1u << bits) - 1)) + (bits > 4 ? x >> 16 & 3 : 0));
    }
}
