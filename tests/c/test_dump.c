/*
 * ptwm-dump, run in this process: sound files of all kinds, files with every kind of damage, files that were made to do
 * damage. What it says is compared with what the library says.
 */
#define _DEFAULT_SOURCE

#include <time.h>

#include "capture.h"
#include "check.h"
#include "directory.h"
#include "dump.h"
#include "escape.h"
#include "image.h"
#include "json_check.h"

/* --------------------------------------------------------------------------------------------------- running it */

static char path[300]; /* of the file at hand */

/* What one run gave. */
struct run {
    int status;
    char *out, *errors;
};

static void write_file(const void *data, size_t nbytes)
{
    FILE *file = fopen(path, "wb");

    CHECK(file != NULL && fwrite(data, 1, nbytes, file) == nbytes);
    fclose(file);
}

/* Runs ptwm-dump with the words of arguments, @ being the file's path. */
static struct run dump(const char *arguments)
{
    char words[256], *argv[16] = { NULL };
    struct run run = { 0 };
    struct capture out = capture_begin(), errors = capture_begin();
    int argc = 0;

    snprintf(words, sizeof words, "ptwm-dump %s", arguments);
    for (char *word = strtok(words, " "); word != NULL; word = strtok(NULL, " "))
        argv[argc++] = strcmp(word, "@") == 0 ? path : word;
    run.status = dump_run(argc, argv, out.file, errors.file);
    run.out = capture_end(&out);
    run.errors = capture_end(&errors);
    return run;
}

static void free_run(struct run *run)
{
    free(run->out);
    free(run->errors);
}

/* Runs it and checks the exit status, and that the output has no control characters but line feeds. */
static void check_status(const char *arguments, int expected)
{
    struct run run = dump(arguments);

    if (run.status != expected)
        printf("ptwm-dump %s: %s%s\n", arguments, run.out, run.errors);
    CHECK_EQ(run.status, expected);
    for (const char *p = run.out; *p != 0; p++)
        CHECK((unsigned char)*p >= 0x20 || *p == '\n');
    free_run(&run);
}

static void check_contains(const char *arguments, const char *expected)
{
    struct run run = dump(arguments);

    if (strstr(run.out, expected) == NULL)
        printf("no \"%s\" in ptwm-dump %s:\n%s%s\n", expected, arguments, run.out, run.errors);
    CHECK(strstr(run.out, expected) != NULL);
    free_run(&run);
}

/* What only decoding, or knowing all names, shows: that is the library's task. */
static bool is_for_the_library(enum ptwm_status status)
{
    return status == PTWM_ERR_HASH || status == PTWM_ERR_PLANE || status == PTWM_ERR_ZSTD ||
           status == PTWM_ERR_DUPLICATE_NAME;
}

/* Whether the JSON has a problem of that status that the tool found by itself, if it can. */
static bool has_problem(const char *json, enum ptwm_status status)
{
    uint64_t value;

    while (json_next_number(&json, "status", &value)) {
        const char *by = strstr(json, "\"found_by\": \"");
        const bool is_own = by != NULL && strncmp(by, "\"found_by\": \"ptwm-dump\"", 23) == 0;
        if (value == (uint64_t)status && (is_own || is_for_the_library(status)))
            return true;
    }
    return false;
}

/* What the library says of a file in memory when it verifies all of it. */
static enum ptwm_status library_status(const uint8_t *data, size_t nbytes)
{
    struct ptwm_reader *r;
    enum ptwm_status status = ptwm_reader_open_memory(data, nbytes, NULL, &r, NULL);

    if (status == PTWM_OK) {
        status = ptwm_reader_verify(r, 1, NULL);
        ptwm_reader_close(r);
    }
    return status;
}

/* Runs all views of a damaged file: no crash, valid JSON, and the tool's own diagnosis is the library's. */
static void check_diagnosis(const uint8_t *data, size_t nbytes, const char *what, size_t where)
{
    const enum ptwm_status expected = library_status(data, nbytes);
    struct run run;

    write_file(data, nbytes);
    run = dump("-c -a -j @");
    if (!json_is_valid(run.out) || run.status != (expected != PTWM_OK) ||
        (expected != PTWM_OK && !has_problem(run.out, expected))) {
        printf("%s %zu: the library says \"%s\", ptwm-dump:\n%s\n", what, where, ptwm_status_string(expected),
               strstr(run.out, "\"problems\"") != NULL ? strstr(run.out, "\"problems\"") : run.out);
        check_failures++;
    }
    free_run(&run);
    run = dump("-a -e -f @");
    CHECK(run.out[0] == '"');
    free_run(&run);
    run = dump("-j -x all @");
    CHECK(json_is_valid(run.out));
    free_run(&run);
    run = dump("-x all @");
    free_run(&run);
}

/* ------------------------------------------------------------------------------------------------------- files */

/* Weights of width bytes an element: the top bytes vary little, the others are noise, or zero in some rows. */
static uint8_t *weights(size_t nbytes, size_t width, uint64_t seed)
{
    uint8_t *bytes = malloc(nbytes);

    for (size_t i = 0; i < nbytes; i++) {
        const uint64_t x = check_random(&seed);
        int spread = (int)(i / 512 % 3);
        for (uint64_t bits = x; bits % 2 == 0 && spread < 12; bits /= 2)
            spread++;
        bytes[i] =
            i % width == width - 1 ? (uint8_t)(0x3E - spread) : (uint8_t)(i / 8192 % 3 != 0 && width > 2 ? 0 : x >> 40);
    }
    return bytes;
}

/* bfloat16 in rows of 128, whose columns have scales in half octaves, so that their shifts have phases. */
static uint8_t *half_octaves(size_t nbytes)
{
    uint8_t *bytes = malloc(nbytes);
    uint64_t seed = 7;

    for (size_t i = 0; i < nbytes / 2; i++) {
        float value = i % 128 * 7 % 5 % 2 ? 1.41421356f : 1.0f;
        float sum = 0;
        uint32_t bits;
        for (int k = 0; k < 6; k++)
            sum += (float)(check_random(&seed) >> 40) / (1 << 24) - 0.5f;
        value *= sum * (float)(1 << i % 128 * 7 % 5 / 2);
        memcpy(&bits, &value, 4);
        bytes[2 * i] = (uint8_t)(bits >> 16);
        bytes[2 * i + 1] = (uint8_t)(bits >> 24);
    }
    return bytes;
}

static enum ptwm_status add(struct ptwm_writer *w, const char *name, uint32_t dtype, const uint8_t *data,
                            uint64_t nbytes, enum ptwm_method method, const struct ptwm_chain *chain)
{
    struct ptwm_tensor_spec spec = PTWM_TENSOR_SPEC_INIT;
    const uint64_t shape[2] = { nbytes * 8 / ptwm_dtype_bits(dtype) / 128, 128 };

    spec.name = name;
    spec.name_nbytes = strlen(name);
    spec.dtype = dtype;
    spec.n_dims = 2;
    spec.shape = shape;
    spec.data = data;
    spec.nbytes = nbytes;
    spec.method = method;
    spec.chains = chain;
    spec.n_chains = chain != NULL;
    return ptwm_writer_add(w, &spec, NULL);
}

/* Every dtype with every method and every chain of the STANDARD table. */
static struct image image_of_everything(uint32_t flags)
{
    enum { NBYTES = 96 << 10 };
    static const uint8_t delta[] = { 1, 4, 1, 2, 3, 8, 6, 9 };
    const struct ptwm_chain deltas = { delta, sizeof delta };
    struct ptwm_writer_options options = PTWM_WRITER_OPTIONS_INIT;
    struct ptwm_writer *w = NULL;
    char name[64];

    options.flags = flags;
    options.chunk_nbytes = 32 << 10;
    options.threads = 1;
    CHECK_EQ(ptwm_writer_open_memory(&options, &w, NULL), PTWM_OK);
    for (uint32_t dtype = 1; ptwm_dtype_name(dtype) != NULL; dtype++) {
        const size_t width = ptwm_dtype_bits(dtype) > 8 ? ptwm_dtype_bits(dtype) / 8 : 1;
        uint8_t *data = weights(NBYTES, width, dtype);
        struct ptwm_chain chain;
        for (int method = PTWM_METHOD_HUFFMAN; method <= PTWM_METHOD_IDENTITY; method++) {
            if (method == PTWM_METHOD_ZSTD && !ptwm_has_builtin_zstd())
                continue;
            snprintf(name, sizeof name, "%s by %d", ptwm_dtype_name(dtype), method);
            CHECK_EQ(add(w, name, dtype, data, NBYTES, method, NULL), PTWM_OK);
            data[0]++; /* equal tensors would be stored once */
        }
        for (size_t i = 0; ptwm_chain_standard(dtype, i, &chain.bytes, &chain.nbytes) == PTWM_OK; i++) {
            snprintf(name, sizeof name, "%s, chain %zu", ptwm_dtype_name(dtype), i);
            CHECK_EQ(add(w, name, dtype, data, NBYTES, PTWM_METHOD_MICROSCALE, &chain), PTWM_OK);
            data[0]++;
        }
        free(data);
    }
    {
        uint8_t *data = weights(NBYTES, 8, 99), *zeros = calloc(NBYTES, 1), *octaves = half_octaves(4 * NBYTES);
        CHECK_EQ(add(w, "deltas", PTWM_DTYPE_F64, data, NBYTES, PTWM_METHOD_MICROSCALE, &deltas), PTWM_OK);
        CHECK_EQ(add(w, "zeros", PTWM_DTYPE_F32, zeros, NBYTES, PTWM_METHOD_MICROSCALE, NULL), PTWM_OK);
        CHECK_EQ(add(w, "small", PTWM_DTYPE_BF16, data, 768, PTWM_METHOD_MICROSCALE, NULL), PTWM_OK);
        CHECK_EQ(add(w, "octaves", PTWM_DTYPE_BF16, octaves, 4 * NBYTES, PTWM_METHOD_MICROSCALE, NULL), PTWM_OK);
        free(data);
        free(zeros);
        free(octaves);
    }
    CHECK_EQ(ptwm_writer_set_metadata(w, "\xa1\x61k\x61v", 5, NULL), PTWM_OK);
    CHECK_EQ(ptwm_writer_set_source(w, "\xa0", 1, NULL), PTWM_OK);
    return finish(w);
}

/* A file that is small enough for trying every byte of it, with several chains and codecs. */
static struct image small_image(uint32_t flags)
{
    struct ptwm_writer_options options = PTWM_WRITER_OPTIONS_INIT;
    uint8_t *floats = weights(1024, 2, 1), *wide = weights(512, 4, 2), *bytes = weights(512, 1, 3);
    struct ptwm_writer *w = NULL;

    options.flags = flags;
    options.threads = 1;
    CHECK_EQ(ptwm_writer_open_memory(&options, &w, NULL), PTWM_OK);
    CHECK_EQ(add(w, "a", PTWM_DTYPE_BF16, floats, 1024, PTWM_METHOD_RANS, NULL), PTWM_OK);
    CHECK_EQ(add(w, "ab", PTWM_DTYPE_F32, wide, 512, PTWM_METHOD_MICROSCALE, NULL), PTWM_OK);
    CHECK_EQ(add(w, "b", PTWM_DTYPE_U8, bytes, 512, PTWM_METHOD_HUFFMAN, NULL), PTWM_OK);
    CHECK_EQ(add(w, "c", PTWM_DTYPE_I8, bytes, 256, PTWM_METHOD_RANS, NULL), PTWM_OK);
    free(floats);
    free(wide);
    free(bytes);
    return finish(w);
}

enum { BOTH = PTWM_WRITE_PAYLOAD_HASH | PTWM_WRITE_PLANE_CRC };

/* --------------------------------------------------------------------------------------------------- sound files */

/* The fields are one behind the other, from the file's first byte to its last. */
static void check_fields_tile(const char *json, uint64_t nbytes)
{
    uint64_t position = 0, offset, length;

    CHECK(strstr(json, "nothing describes") == NULL);
    CHECK(strstr(json, "not understood") == NULL);
    while (json_next_number(&json, "offset", &offset) && json_next_number(&json, "nbytes", &length)) {
        if (offset != position)
            printf("a field at %llu follows one that ends at %llu\n", (unsigned long long)offset,
                   (unsigned long long)position);
        CHECK(offset == position);
        position = offset + length;
    }
    CHECK_EQ(position, nbytes);
}

static void check_sound_file(const struct image *image)
{
    static const char *const views[] = { "@",      "-a @", "-c @",     "-a -c -e -f @",
                                         "-s 0 @", "@ #0", "-x all @", "-x all -f @" };
    struct run run;

    write_file(image->data, image->nbytes);
    for (size_t i = 0; i < sizeof views / sizeof views[0]; i++)
        check_status(views[i], 0);
    check_contains("-c @", "\nnothing wrong\n");
    run = dump("-a -c -e -j @");
    CHECK(json_is_valid(run.out));
    CHECK(strstr(run.out, "\"problems\": []") != NULL);
    CHECK(strstr(run.out, "\"state\": \"bad\"") == NULL);
    free_run(&run);
    run = dump("-j -x all @");
    CHECK(json_is_valid(run.out));
    check_fields_tile(run.out, image->nbytes);
    free_run(&run);
}

static void test_files_of_everything(void)
{
    static const char *const codecs[] = { "identity",   "constant", "huffman", "rans",
                                          "label-rans", "trim",     "carried", "zstd" };

    for (int i = 0; i < 2; i++) {
        struct image image = image_of_everything(i == 0 ? BOTH : 0);
        check_sound_file(&image);
        for (size_t c = 0; c < 7u + (ptwm_has_builtin_zstd() != 0); c++) {
            char expected[48];
            snprintf(expected, sizeof expected, "\"codec\": \"%s\"", codecs[c]);
            check_contains("-a -j @", expected);
        }
        check_contains("-a @", "delta(4) delta(2) label(8, 6, 9)");
        check_contains("-j @ octaves", "\"has_phases\": true");
        check_contains("@ octaves", " in columns of phase 1\n");
        free(image.data);
    }
}

static void test_empty_file(void)
{
    struct ptwm_writer *w = NULL;
    struct image image;

    CHECK_EQ(ptwm_writer_open_memory(NULL, &w, NULL), PTWM_OK);
    image = finish(w);
    write_file(image.data, image.nbytes);
    check_status("-a -c -e @", 0);
    check_status("-j -a @", 0);
    check_status("-x all @", 0);
    check_status("@ #0", 1);
    free(image.data);
}

/* JSON says of planes what the library says. */
static void test_agrees_with_the_library(void)
{
    struct image image = image_of_everything(BOTH);
    struct ptwm_reader *r = NULL;
    uint64_t number;

    write_file(image.data, image.nbytes);
    CHECK_EQ(ptwm_reader_open_memory(image.data, image.nbytes, NULL, &r, NULL), PTWM_OK);
    for (uint64_t s = 0;; s++) {
        struct ptwm_segment_info segment = { .struct_nbytes = sizeof segment };
        struct ptwm_layout_info info = { .struct_nbytes = sizeof info };
        struct ptwm_layout *layout;
        char arguments[32];
        struct run run;
        const char *p;
        if (ptwm_reader_get_segment(r, s, &segment) != PTWM_OK)
            break;
        CHECK_EQ(ptwm_reader_get_layout(r, s, &layout, NULL), PTWM_OK);
        ptwm_layout_get_info(layout, &info);
        snprintf(arguments, sizeof arguments, "-j -s %u @", (unsigned)s);
        run = dump(arguments);
        p = strstr(run.out, "\"tail\": {");
        CHECK(p != NULL);
        CHECK(json_next_number(&p, "chunk_nbytes", &number) && number == info.chunk_nbytes);
        CHECK(json_next_number(&p, "n_chunks", &number) && number == info.n_chunks);
        CHECK(info.unit == 0 || (json_next_number(&p, "unit", &number) && number == info.unit &&
                                 json_next_number(&p, "columns", &number) && number == info.n_columns &&
                                 (strncmp(strstr(p, "\"has_phases\": ") + 14, "true", 4) == 0) == info.has_phases));
        for (uint64_t c = 0; c < info.n_chunks; c++) {
            CHECK(json_next_number(&p, "raw_nbytes", &number));
            for (uint32_t i = 0; i < info.n_planes; i++) {
                struct ptwm_stored_plane plane = { .struct_nbytes = sizeof plane };
                CHECK_EQ(ptwm_layout_get_plane(layout, c, i, &plane), PTWM_OK);
                CHECK(json_next_number(&p, "offset", &number) && number == plane.file_offset);
                CHECK(json_next_number(&p, "stored_nbytes", &number) && number == plane.stored_nbytes);
                CHECK(json_next_number(&p, "raw_nbytes", &number) && number == plane.raw_nbytes);
                p = strstr(p, "\"crc\": \"");
                CHECK(p != NULL && strtoul(p + 8, NULL, 16) == plane.crc);
            }
        }
        free_run(&run);
        ptwm_layout_free(layout);
    }
    ptwm_reader_close(r);
    free(image.data);
}

/* ------------------------------------------------------------------------------------------------- damaged files */

static void test_every_flipped_byte(void)
{
    struct image image = small_image(BOTH);

    for (size_t i = 0; i < image.nbytes; i++) {
        image.data[i] ^= (uint8_t)(1u << i % 8);
        check_diagnosis(image.data, image.nbytes, "flipped byte", i);
        image.data[i] ^= (uint8_t)(1u << i % 8);
    }
    free(image.data);
}

static void test_every_truncation(void)
{
    struct image image = small_image(BOTH);

    for (size_t n = 0; n < image.nbytes; n++)
        check_diagnosis(image.data, n, "truncation", n);
    free(image.data);
}

static void test_bytes_behind_the_end(void)
{
    struct image image = small_image(BOTH);
    const size_t nbytes = image.nbytes;

    image.data = realloc(image.data, nbytes + 100);
    memset(image.data + nbytes, 'x', 100);
    write_file(image.data, nbytes + 100);
    check_status("-c @", 1);
    check_contains("@", "100 bytes are behind it");
    check_contains("@", "4 tensors");
    check_contains("-x all @", "nothing describes these bytes");
    check_contains("-x header @", "\nwrong\n");
    check_contains("-a @", "label-rans");
    free(image.data);
}

/* A file that lost its footer, or a part of it, still shows what it holds. */
static void test_lost_footer(void)
{
    struct image image = small_image(BOTH);

    for (size_t lost = 1; lost <= 40; lost++) {
        write_file(image.data, image.nbytes - lost);
        check_status("-a @", 1);
        check_contains("-a @", "found by searching");
        check_contains("-a @", "4 tensors");
        check_contains("-a @", "good; 4 lanes");
    }
    free(image.data);
}

/* The manifest's place, from the footer. */
static size_t manifest_offset(const struct image *image)
{
    return (size_t)scan_load(image->data + image->nbytes - 40, 8);
}

static void store32(uint8_t *to, uint32_t value)
{
    for (int i = 0; i < 4; i++)
        to[i] = (uint8_t)(value >> 8 * i);
}

/* Makes the manifest's CRC fit again. */
static void fix_manifest(struct image *image)
{
    const size_t offset = manifest_offset(image);
    store32(image->data + image->nbytes - 16, ptwm_crc32c(0, image->data + offset, image->nbytes - 40 - offset));
}

/* Damage that its checksum hides, times over for each byte: in the manifest and in tails. Frees the image. */
static void damage_behind_good_checksums(struct image image, int times)
{
    const size_t begin = manifest_offset(&image), n_manifest = image.nbytes - 40 - begin;
    uint8_t *copy = malloc(image.nbytes);
    struct ptwm_segment_info info = { .struct_nbytes = sizeof info };
    struct ptwm_reader *r = NULL;
    uint64_t seed = 1;

    memcpy(copy, image.data, image.nbytes);
    for (size_t i = 0; i < n_manifest; i++)
        for (int k = 0; k < times; k++) {
            image.data[begin + i] = (uint8_t)check_random(&seed);
            fix_manifest(&image);
            check_diagnosis(image.data, image.nbytes, "manifest byte", i);
            memcpy(image.data, copy, image.nbytes);
        }
    CHECK_EQ(ptwm_reader_open_memory(copy, image.nbytes, NULL, &r, NULL), PTWM_OK);
    for (uint64_t s = 0; ptwm_reader_get_segment(r, s, &info) == PTWM_OK; s++) {
        uint8_t *tail = image.data + info.file_offset + info.stored_nbytes - info.tail_nbytes;
        for (size_t i = 0; i + 4 < info.tail_nbytes; i++)
            for (int k = 0; k < times; k++) {
                tail[i] = (uint8_t)check_random(&seed);
                store32(tail + info.tail_nbytes - 4, ptwm_crc32c(0, tail, (size_t)info.tail_nbytes - 4));
                check_diagnosis(image.data, image.nbytes, "tail byte", (size_t)info.file_offset + i);
                memcpy(image.data, copy, image.nbytes);
            }
    }
    ptwm_reader_close(r);
    free(copy);
    free(image.data);
}

static void test_damage_behind_good_checksums(void)
{
    damage_behind_good_checksums(small_image(BOTH), 3);
}

/* A model with column shifts, phases and second frequencies. */
static void test_damaged_phases(void)
{
    enum { NBYTES = 128 << 10 };
    uint8_t *octaves = half_octaves(NBYTES);
    struct ptwm_writer *w = NULL;
    struct image image;

    CHECK_EQ(ptwm_writer_open_memory(NULL, &w, NULL), PTWM_OK);
    CHECK_EQ(add(w, "octaves", PTWM_DTYPE_BF16, octaves, NBYTES, PTWM_METHOD_MICROSCALE, NULL), PTWM_OK);
    free(octaves);
    image = finish(w);
    write_file(image.data, image.nbytes);
    check_contains("-j -a @", "\"has_phases\": true");
    damage_behind_good_checksums(image, 1);
}

static void test_damaged_planes_without_checksums(void)
{
    struct image image = small_image(0);
    const size_t end = manifest_offset(&image);
    uint8_t *copy = malloc(image.nbytes);
    uint64_t seed = 2;

    memcpy(copy, image.data, image.nbytes);
    for (size_t i = 16; i < end; i++) {
        struct run run;
        image.data[i] = (uint8_t)check_random(&seed);
        write_file(image.data, image.nbytes);
        run = dump("-c -a -e -j @");
        CHECK(json_is_valid(run.out));
        CHECK_EQ(run.status, library_status(image.data, image.nbytes) != PTWM_OK);
        free_run(&run);
        run = dump("-x all -f @");
        free_run(&run);
        memcpy(image.data, copy, image.nbytes);
    }
    free(copy);
    free(image.data);
}

/* ------------------------------------------------------------------------------------------------- hostile files */

/* A file of a body (behind the header) and a manifest, with a footer that fits. */
static void write_hostile(const uint8_t *body, size_t n_body, const uint8_t *manifest, size_t n_manifest)
{
    static const uint8_t header[16] = { 0xD7, 'p', 't', 'w', 'm', '\r', '\n', 0x1A, 1 };
    static const uint8_t end_magic[8] = { 0x1A, '\n', '\r', 'm', 'w', 't', 'p', 0xD7 };
    const uint64_t fields[3] = { 16 + n_body, n_manifest, 16 + n_body + n_manifest + 40 };
    uint8_t footer[40] = { 0 };
    FILE *file = fopen(path, "wb");

    for (int i = 0; i < 24; i++)
        footer[i] = (uint8_t)(fields[i / 8] >> i % 8 * 8);
    store32(footer + 24, ptwm_crc32c(0, manifest, n_manifest));
    footer[28] = 1;
    memcpy(footer + 32, end_magic, 8);
    fwrite(header, 1, 16, file);
    if (n_body > 0)
        fwrite(body, 1, n_body, file);
    fwrite(manifest, 1, n_manifest, file);
    fwrite(footer, 1, 40, file);
    fclose(file);
}

#define HOSTILE(bytes) { (const uint8_t *)(bytes), sizeof(bytes) - 1 }

static void test_hostile_manifests(void)
{
    static const struct {
        const uint8_t *bytes;
        size_t nbytes;
    } manifests[] = {
        HOSTILE(""),
        HOSTILE("\xa0"),
        HOSTILE("\xff"),
        HOSTILE("\xbf\xff"),
        HOSTILE("\xa2\x01\x80\x02\x9b\xff\xff\xff\xff\xff\xff\xff\xff"),
        HOSTILE("\xa2\x01\x9b\x7f\xff\xff\xff\xff\xff\xff\xff\x02\x80"),
        HOSTILE("\xbb\xff\xff\xff\xff\xff\xff\xff\xff"),
        HOSTILE("\xa2\x01\x81\x84\x1b\xff\xff\xff\xff\xff\xff\xff\xff\x01\x01\x00\x02\x80"),
        HOSTILE("\xa2\x01\x82\x84\x1b\xff\xff\xff\xff\xff\xff\xff\xf0\x01\x01\x02\x84\x1a\x00\x01\x00\x00\x01\x01\x02"
                "\x02\x80"),
        HOSTILE("\xa2\x01\x81\x83\x01\x01\x01\x02\x80"),
        HOSTILE("\xa2\x01\x80\x02\x81\xa3\x00\x61x\x01\x02\x02\x82\x1b\x7f\xff\xff\xff\xff\xff\xff\xff\x1b\x7f\xff\xff"
                "\xff\xff\xff\xff\xff"),
        HOSTILE("\xa2\x01\x80\x02\x81\xa2\x00\x61x\x03\x1b\xff\xff\xff\xff\xff\xff\xff\xff"),
        HOSTILE("\xa2\x01\x80\x02\x81\xa3\x00\x61x\x06\x1b\xff\xff\xff\xff\xff\xff\xff\xff\x07\x00"),
        HOSTILE("\xa2\x01\x80\x02\x81\xa1\x00\x7b\xff\xff\xff\xff\xff\xff\xff\xff"),
        HOSTILE("\xa2\x01\x80\x02\x81\xa2\x00\x63\xff\xfe\x41\x07\x00"),
        HOSTILE("\xa3\x00\x81\x68time\x1b[2J\x01\x80\x02\x80"),
        HOSTILE("\xa3\x01\x80\x02\x80\x18\x63\x81\x81\x81\x81\x81\x81\x81\x81\x81\x81\x80"),
        HOSTILE("\xa3\x01\x80\x02\x80\x04\x5b\xff\xff\xff\xff\xff\xff\xff\xff"),
        HOSTILE("\xa2\x01\x80\x02\x80\x00"),
        HOSTILE("\xa2\x02\x80\x01\x80"),
        HOSTILE("\xa2\x01\x18\x05\x02\x80"),
    };
    static const uint8_t body[60] = { 0 };

    for (size_t i = 0; i < sizeof manifests / sizeof manifests[0]; i++)
        for (size_t n_body = 0; n_body <= sizeof body; n_body += sizeof body) {
            uint8_t file[512];
            FILE *f;
            size_t nbytes;
            write_hostile(body, n_body, manifests[i].bytes, manifests[i].nbytes);
            f = fopen(path, "rb");
            nbytes = fread(file, 1, sizeof file, f);
            fclose(f);
            CHECK(library_status(file, nbytes) != PTWM_OK);
            check_diagnosis(file, nbytes, "manifest", i);
            check_status("-a -c -f @", 1);
        }
}

static void test_names_cannot_control_a_terminal(void)
{
    /* ESC [ 2 J, C1's CSI, right-to-left override, a quote, a backslash, a NUL, a snowman */
    static const uint8_t manifest[] =
        "\xa2\x01\x80\x02\x81\xa2\x00\x71\x1b[2J\xc2\x9b\x33\xe2\x80\xae\"\\\0\xe2\x98\x83z\x07\x00";
    struct run run;

    write_hostile(NULL, 0, manifest, sizeof manifest - 1);
    check_status("-c @", 0);
    check_contains("@", "\"\\u{001b}[2J\\u{009b}3\\u{202e}\\\"\\\\\\u{0000}\xe2\x98\x83z\"");
    check_contains("-j @", "\"\\u001b[2J\\u009b3\\u202e\\\"\\\\\\u0000\\u2603z\"");
    check_status("-x all @", 0);
    run = dump("-j @");
    CHECK(json_is_valid(run.out));
    free_run(&run);
}

static void test_escapes(void)
{
    static const struct {
        const char *text, *escaped;
    } cases[] = {
        { "plain", "plain" },
        { "\xff", "\\xff" },
        { "\xc0\x80", "\\xc0\\x80" },
        { "\xed\xa0\x80", "\\xed\\xa0\\x80" },
        { "\xf4\x90\x80\x80", "\\xf4\\x90\\x80\\x80" },
        { "\xe2\x98", "\\xe2\\x98" },
        { "\xf0\x9f\x8e\x88", "\xf0\x9f\x8e\x88" },
        { "\xf3\xa0\x81\x81", "\\u{e0041}" },
        { "a\tb\x7f", "a\\u{0009}b\\u{007f}" },
    };
    char to[64];

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        escape_text(to, sizeof to, cases[i].text, strlen(cases[i].text));
        CHECK(strcmp(to, cases[i].escaped) == 0);
    }
    escape_text(to, 12, "0123456789abcdef", 16);
    CHECK(strcmp(to, "01234567...") == 0);
    escape_text(to, 12, "", 0);
    CHECK(strcmp(to, "") == 0);
}

/* Heads of CBOR, for manifests that are too large to write down. */
static size_t put_head(uint8_t *to, unsigned major, uint64_t value)
{
    to[0] = (uint8_t)(major << 5 | 26);
    for (int i = 0; i < 4; i++)
        to[1 + i] = (uint8_t)(value >> 8 * (3 - i));
    return 5;
}

/* One shape of very many dimensions, which very many tensors inherit: neither library nor tool takes their product. */
static void test_inherited_shapes_take_linear_time(void)
{
    enum { N_DIMS = 400000, N_TENSORS = 100000 };
    uint8_t *manifest = malloc(N_DIMS + 12 * N_TENSORS + 100);
    const clock_t begin = clock();
    struct ptwm_reader *r = NULL;
    size_t n = 0;

    memcpy(manifest, "\xa2\x01\x80\x02", 4);
    n = 4 + put_head(manifest + 4, 4, N_TENSORS);
    for (size_t i = 0; i < N_TENSORS; i++) {
        manifest[n++] = (uint8_t)(0xA2 + (i == 0));
        memcpy(manifest + n, "\0\x66", 2);
        for (int d = 0; d < 6; d++)
            manifest[n + 2 + (size_t)d] = (uint8_t)('a' + (i >> (4 * (5 - d)) & 15));
        n += 8;
        manifest[n++] = 1; /* dtypes of different widths in turn */
        manifest[n++] = i % 2 == 0 ? PTWM_DTYPE_U8 : PTWM_DTYPE_U16;
        if (i == 0) {
            manifest[n++] = 2;
            n += put_head(manifest + n, 4, N_DIMS);
            memset(manifest + n, 1, N_DIMS - 1);
            n += N_DIMS - 1;
            manifest[n++] = 0;
        }
    }
    CHECK(n < N_DIMS + 12 * N_TENSORS + 100);
    write_hostile(NULL, 0, manifest, n);
    CHECK_EQ(ptwm_reader_open_path(path, NULL, &r, NULL), PTWM_OK);
    ptwm_reader_close(r);
    check_status("@", 0);
    check_status("-j @", 0);
    CHECK((double)(clock() - begin) / CLOCKS_PER_SEC < 20); /* the product is minutes */
    free(manifest);
}

/* Very many places where a lost manifest could begin, each with a long list behind it. */
static void test_search_takes_linear_time(void)
{
    enum { N = 400000 };
    uint8_t *data = malloc(N * 14 + 16);
    const clock_t begin = clock();

    memcpy(data, "\xD7ptwm\r\n\x1A\1\0\0\0\0\0\0\0", 16);
    for (size_t i = 0; i < N; i++) /* a segment in whose raw length a manifest begins */
        memcpy(data + 16 + i * 14, "\x84\x01\x01\x1b\x00\xa2\x01\x9a\x00\x01\x00\x00\x00\x84", 14);
    write_file(data, N * 14 + 16);
    check_status("@", 1);
    CHECK((double)(clock() - begin) / CLOCKS_PER_SEC < 20);
    free(data);
}

/* A few kilobytes that declare 80 GB of one value. */
static void test_small_files_that_declare_much(void)
{
    enum { N = 1200, N_TAIL = 1 + 4 + 2 * N + 4 };
    uint8_t body[N + N_TAIL] = { 0 }, *tail = body + N, manifest[64];
    size_t n;

    memcpy(tail + 1, "\x80\x80\x80\x20", 4); /* chunks of 2^26 bytes */
    for (size_t i = 0; i < N; i++)
        memcpy(tail + 5 + 2 * i, "\x01\x01", 2);
    store32(tail + N_TAIL - 4, ptwm_crc32c(0, tail, N_TAIL - 4));
    memcpy(manifest, "\xa2\x01\x81\x84", 4);
    n = 4;
    memcpy(manifest + n,
           (uint8_t[]){ 0x19, (N + N_TAIL) >> 8, (N + N_TAIL) & 255, 0x19, N_TAIL >> 8, N_TAIL & 255, 0x1b }, 7);
    n += 7;
    for (int i = 0; i < 8; i++)
        manifest[n++] = (uint8_t)((uint64_t)N << 26 >> 8 * (7 - i));
    memcpy(manifest + n, "\x00\x02\x80", 3);
    write_hostile(body, sizeof body, manifest, n + 3);
    check_status("-a @", 0);
    check_contains("-c @", "raw bytes are not decoded: more than 68719476736");
    check_contains("-e -a @", "is not decoded: more than 68719476736");
    check_contains("-m 1000 -c @", "more than 1000");
}

/* ----------------------------------------------------------------------------------------------------- arguments */

static void test_arguments(void)
{
    struct image image = small_image(BOTH);
    char part[64];
    struct run run;

    write_file(image.data, image.nbytes);
    check_status("", 2);
    check_status("-q @", 2);
    check_status("--hexx all @", 2);
    check_status("--all=yes @", 2);
    check_status("@ -x", 2);
    check_status("-s 1x @", 2);
    check_status("-m 0 @", 2);
    check_status("-s 18446744073709551616 @", 2);
    check_status("-h", 0);
    check_status("--version", 0);
    check_contains("--help", "usage: ptwm-dump");
    check_contains("-V", "0.1.0\n");
    check_status("@ a ab", 0);
    check_status("@ nothing", 1);
    check_status("@ #3", 0);
    check_status("@ #4", 1);
    check_status("-s 99 @", 1);
    check_status("/nonexistent/file", 1);
    check_status("/", 1);
    check_contains("-acef @", "label(2, 7, 8)");
    check_contains("--segment=0 @ --full", "segment 0");
    check_status("-- @ -x", 1); /* a tensor of that name */
    check_contains("-xheader @", "magic");
    check_contains("--hex footer @", "closing magic");
    check_contains("-x manifest @", "\"ab\"");
    check_contains("-x tail:0 @", "CRC-32C");
    check_contains("-x segment:0 @", "words");
    check_contains("-x chunk:0:0 @", "lanes");
    check_contains("-x plane:0:0:0 @", "plane 0");
    for (int i = 0; i < 9; i++) {
        static const char *const none[] = { "plane:0:0:9", "chunk:0:9",  "tail:9",
                                            "tail:",       "tail:x",     "tail:0:0:0:0",
                                            "nonsense",    "99999999+1", "0+18446744073709551615" };
        snprintf(part, sizeof part, "-x %s @", none[i]);
        check_status(part, 1);
    }
    run = dump("-j -x 3+10 @");
    CHECK(json_is_valid(run.out));
    free_run(&run);
    free(image.data);
}

int main(void)
{
    snprintf(path, sizeof path, "%s/test_dump_%ld", directory_of_temporary_files(), (long)getpid());
    RUN(test_files_of_everything);
    RUN(test_empty_file);
    RUN(test_agrees_with_the_library);
    RUN(test_every_flipped_byte);
    RUN(test_every_truncation);
    RUN(test_bytes_behind_the_end);
    RUN(test_lost_footer);
    RUN(test_damage_behind_good_checksums);
    RUN(test_damaged_phases);
    RUN(test_damaged_planes_without_checksums);
    RUN(test_hostile_manifests);
    RUN(test_names_cannot_control_a_terminal);
    RUN(test_escapes);
    RUN(test_inherited_shapes_take_linear_time);
    RUN(test_search_takes_linear_time);
    RUN(test_small_files_that_declare_much);
    RUN(test_arguments);
    remove(path);
    CHECK_EXIT();
}
