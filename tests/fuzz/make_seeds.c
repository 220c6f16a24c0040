/*
 * make_seeds DIRECTORY: writes a first corpus for each fuzz target into DIRECTORY/TARGET, which must exist: small files of
 * all data types, codecs, methods and flags, their manifests, stored planes, chains, and label models with chunks.
 */
#include <stdio.h>
#include <stdlib.h>

#include "../attacks/forge.h"
#include "codec.h"
#include "fuzz.h"
#include "label.h"
#include "manifest.h"
#include "trim.h"

static const char *directory;
static unsigned n_seeds;

static void save(const char *target, const void *head, size_t head_nbytes, const void *data, size_t nbytes)
{
    char path[4096];
    FILE *f;

    snprintf(path, sizeof path, "%s/%s/seed-%04u", directory, target, n_seeds++);
    f = fopen(path, "wb");
    if (f == NULL || fwrite(head, 1, head_nbytes, f) != head_nbytes || fwrite(data, 1, nbytes, f) != nbytes ||
        fclose(f) != 0) {
        fprintf(stderr, "%s: cannot be written\n", path);
        exit(1);
    }
}

/* Weights whose columns' scales differ, as far as their bytes are those of floats. */
static void fill(uint8_t *data, size_t nbytes, uint32_t width, uint64_t seed)
{
    for (size_t i = 0; i < nbytes; i++) {
        const uint64_t x = fuzz_random(&seed);
        const bool is_top = i % width == width - 1;
        data[i] = (uint8_t)(is_top ? 56 + (x & x >> 8 & x >> 16 & 7) + i / width % 3 : width == 4 && i % 4 == 0 ? 0 : x);
    }
}

/* ---------------------------------------------------------------------------------------------------------- files */

static void save_file(struct ptwm_writer *w)
{
    struct ptwm_footer footer;
    const void *data;
    size_t nbytes;
    uint8_t offset[4];

    FUZZ_CHECK(ptwm_writer_finish(w, NULL) == PTWM_OK && ptwm_writer_get_memory(w, &data, &nbytes) == PTWM_OK);
    save("open", "", 0, data, nbytes);
    save("decode", "", 0, data, nbytes);
    FUZZ_CHECK(ptwm_footer_read((const uint8_t *)data + nbytes - PTWM_FOOTER_NBYTES, nbytes, &footer, NULL) == PTWM_OK);
    ptwm_store32(offset, (uint32_t)footer.manifest_offset);
    save("manifest", offset, 4, (const uint8_t *)data + footer.manifest_offset, (size_t)footer.manifest_nbytes);
    ptwm_writer_close(w);
}

static struct ptwm_writer *begin_file(uint32_t flags)
{
    struct ptwm_writer_options options = PTWM_WRITER_OPTIONS_INIT;
    struct ptwm_writer *w = NULL;

    options.flags = flags;
    options.chunk_nbytes = 4096;
    FUZZ_CHECK(ptwm_writer_open_memory(&options, &w, NULL) == PTWM_OK);
    return w;
}

static void add(struct ptwm_writer *w, const char *name, uint32_t dtype, uint64_t rows, uint64_t columns,
                enum ptwm_method method, const struct ptwm_chain *chain)
{
    const uint64_t shape[2] = { rows, columns };
    const uint32_t bits = dtype > 0 ? ptwm_dtype_bits(dtype) : 8;
    struct ptwm_tensor_spec spec = PTWM_TENSOR_SPEC_INIT;
    uint8_t *data = malloc((size_t)(rows * columns * bits / 8) + 1);

    spec.name = name;
    spec.name_nbytes = strlen(name);
    spec.dtype = dtype;
    spec.n_dims = dtype > 0 ? 2 : 0;
    spec.shape = shape;
    spec.data = data;
    spec.nbytes = rows * columns * bits / 8;
    spec.method = method;
    spec.chains = chain;
    spec.n_chains = chain != NULL;
    fill(data, (size_t)spec.nbytes, bits >= 8 ? bits / 8 : 1, rows);
    FUZZ_CHECK(ptwm_writer_add(w, &spec, NULL) == PTWM_OK);
    free(data);
}

static void make_files(void)
{
    static const uint32_t dtypes[] = { PTWM_DTYPE_BF16, PTWM_DTYPE_F16, PTWM_DTYPE_F32, PTWM_DTYPE_F8_E4M3,
                                       PTWM_DTYPE_F8_E5M2, PTWM_DTYPE_I16, PTWM_DTYPE_F64, PTWM_DTYPE_U8 };
    static const struct ptwm_chain chains[] = {
        { "\1\2\1\4\2\4", 6 }, { "\2\20", 2 }, { "\3\1\0\10", 4 }, { "\3\0\0\4", 4 }, { "\1\1\3\10\4\13", 6 },
    };
    struct ptwm_writer *w;

    for (uint32_t dtype = 0; ptwm_dtype_bits(dtype) > 0 || dtype == 0; dtype++) {
        w = begin_file(dtype % 4);
        add(w, "layer.0.weight", dtype, 6, 64, PTWM_METHOD_MICROSCALE, NULL);
        add(w, "layer.1.weight", dtype, 4, 32, PTWM_METHOD_MICROSCALE, NULL);
        FUZZ_CHECK(ptwm_writer_add_alias(w, "tied", 4, "layer.0.weight", 14, NULL) == PTWM_OK);
        FUZZ_CHECK(ptwm_writer_set_metadata(w, "\xa1\x61k\x61v", 5, NULL) == PTWM_OK);
        save_file(w);
    }
    for (unsigned i = 0; i < 8 * 5; i++) {
        if (i % 5 + 1 == PTWM_METHOD_ZSTD && !ptwm_has_builtin_zstd())
            continue;
        w = begin_file(i % 4);
        add(w, "x", dtypes[i / 5], 20, 128, (enum ptwm_method)(i % 5 + 1), NULL);
        save_file(w);
    }
    for (unsigned i = 0; i < 5; i++) {
        w = begin_file(PTWM_WRITE_PLANE_CRC);
        add(w, "x", PTWM_DTYPE_NONE, 33, 16, PTWM_METHOD_MICROSCALE, &chains[i]);
        add(w, "y", PTWM_DTYPE_NONE, 0, 16, PTWM_METHOD_MICROSCALE, NULL);
        FUZZ_CHECK(ptwm_writer_set_source(w, "\xa0", 1, NULL) == PTWM_OK);
        save_file(w);
        save("chain", (const uint8_t[]){ (uint8_t)chains[i].nbytes }, 1, chains[i].bytes, chains[i].nbytes);
    }
}

/* --------------------------------------------------------------------------------------------------------- planes */

static void make_planes(void)
{
    const struct ptwm_codec_context context = { &ptwm_default_allocator, ptwm_zstd_select(NULL), 1 };
    static const size_t sizes[] = { 1, 5, 100, 1500 };
    uint8_t plane[1500], stored[8192];

    for (uint8_t id = 0; id < 8; id++)
        for (unsigned i = 0; i < 4; i++) {
            const size_t n = sizes[i];
            const uint8_t head[4] = { id, (uint8_t)i, (uint8_t)(n - 1), (uint8_t)((n - 1) >> 8) };
            const struct ptwm_byte_codec *codec = ptwm_byte_codec_find(id);
            size_t nbytes = id == PTWM_CODEC_CONSTANT ? 1 : n;

            if (id == PTWM_CODEC_ZSTD && !ptwm_has_builtin_zstd())
                continue;
            fill(plane, n, i % 2 + 1, i);
            memcpy(stored, plane, n);
            if (id == PTWM_CODEC_TRIM && n > 1) {
                nbytes = (size_t)ptwm_trim_nbytes(plane, n / 2, 128);
                ptwm_trim_encode(stored, plane, n / 2, 128);
            } else if (codec != NULL) {
                FUZZ_CHECK(codec->encode(&context, stored, &nbytes, plane, nbytes, NULL) == PTWM_OK);
            }
            save("codecs", head, 4, stored, nbytes);
        }
}

/* --------------------------------------------------------------------------------------------------------- labels */

/* n elements of chain number chain of fuzz_label.c, whose label has that width, shift and bits. */
static void make_label(uint8_t chain, uint8_t width, uint8_t shift, uint8_t bits, size_t n, uint32_t unit,
                       unsigned n_lanes, bool has_phases, bool is_carried)
{
    const struct ptwm_step step = { PTWM_STEP_LABEL, width, shift, bits };
    struct ptwm_bytes model_bytes = { &ptwm_default_allocator, NULL, 0, 0 };
    struct ptwm_label_model model;
    struct ptwm_label_set set;
    uint16_t *symbols = malloc(2 * n);
    uint8_t *classes = malloc(n), phase[24];
    uint16_t final[PTWM_MAX_LANES];
    forge input = forge_new();
    uint8_t head[8] = { chain, (uint8_t)(is_carried | (has_phases ? 8 : 16)), (uint8_t)(n - 1), (uint8_t)((n - 1) >> 8), 24 };
    int16_t shifts[24];
    uint64_t state = n, cost;

    for (size_t i = 0; i < n; i++) {
        const uint64_t x = fuzz_random(&state);
        symbols[i] = (uint16_t)(((x & x >> 8 & x >> 16 & 15) + (i / unit % 3) + (x % 97 == 0 ? x >> 40 : 0)) &
                                ((1u << bits) - 1));
    }
    ptwm_label_model_init(&model, &ptwm_default_allocator, &step);
    model.unit = unit;
    for (int c = 0; c < 24; c++) {
        shifts[c] = (int16_t)(c % 5 - 2);
        phase[c] = c % 3 == 0 ? PTWM_PHASE : 0;
    }
    FUZZ_CHECK(ptwm_label_model_set_shifts(&model, shifts, 24) == PTWM_OK);
    FUZZ_CHECK(!has_phases || ptwm_label_model_set_phases(&model, phase) == PTWM_OK);
    {
        const struct ptwm_phases phases = ptwm_label_phases(&model, 24);
        FUZZ_CHECK(ptwm_label_find_set(&ptwm_default_allocator, symbols, n, bits, unit, has_phases ? &phases : NULL, &set,
                                       classes, &cost) == PTWM_OK);
    }
    FUZZ_CHECK(ptwm_label_model_add_set(&model, &set) == PTWM_OK);
    for (unsigned l = 0; l < n_lanes; l++)
        final[l] = (uint16_t)fuzz_random(&state);
    FUZZ_CHECK(ptwm_label_model_write(&model, &model_bytes) == PTWM_OK);
    head[6] = (uint8_t)model_bytes.nbytes;
    head[7] = (uint8_t)(model_bytes.nbytes >> 8);
    forge_put(&input, model_bytes.data, model_bytes.nbytes);
    forge_labels(&input, &model, 0, classes, 24, symbols, n, n_lanes, is_carried ? final : NULL);
    save("label", head, 8, input.data, input.nbytes);
    forge_free(&input);
    free(classes);
    free(symbols);
    ptwm_bytes_release(&model_bytes);
    ptwm_label_model_release(&model);
}

static void make_labels(void)
{
    for (unsigned i = 0; i < 4; i++) {
        make_label(0, 2, 6, 9, 700, 128, 128, i & 1, i & 2);
        make_label(1, 2, 7, 8, 600, 128, 32, i & 1, i & 2);
        make_label(2, 4, 6, 9, 520, 256, 128, i & 1, i & 2);
        make_label(4, 2, 9, 6, 640, 128, 128, i & 1, i & 2);
        make_label(5, 1, 2, 5, 1100, 128, 128, i & 1, i & 2);
        make_label(6, 1, 1, 6, 1100, 128, 128, i & 1, i & 2);
        make_label(7, 1, 3, 5, 512, 128, 128, i & 1, i & 2);
        make_label(8, 0, 0, 4, 300, 7, 4, i & 1, false);
        make_label(9, 1, 0, 8, 300, 128, 128, i & 1, false);
        make_label(10, 8, 4, 11, 200, 3, 4, i & 1, i & 2);
        make_label(12, 4, 1, 1, 600, 32, 32, i & 1, i & 2);
    }
}

static void make_others(void)
{
    uint8_t input[64];

    for (unsigned i = 0; i < 36; i++) {
        fill(input, sizeof input, 3, i);
        input[5] = 3;
        input[9] = (uint8_t)i;
        save("round_trip", "", 0, input, sizeof input);
    }
    for (uint32_t dtype = 0; dtype < 35; dtype++) {
        const void *chain;
        size_t nbytes;
        for (size_t i = 0; ptwm_chain_standard(dtype, i, &chain, &nbytes) == PTWM_OK; i++) {
            memcpy(input + 1, chain, nbytes);
            input[0] = (uint8_t)nbytes;
            save("chain", "", 0, input, sizeof input);
        }
    }
}

int main(int argc, char **argv)
{
    if (argc != 2) {
        fprintf(stderr, "usage: make_seeds DIRECTORY\n");
        return 2;
    }
    directory = argv[1];
    make_files();
    make_planes();
    make_labels();
    make_others();
    return 0;
}
