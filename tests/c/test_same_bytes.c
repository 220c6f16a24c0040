/*
 * The same input gives the same file on every machine, with every instruction set and any number of threads: what is
 * written is compared with hashes that are kept here. A change of them is a change of the encoder's output, which must be
 * meant; `test_same_bytes print` prints the table anew.
 *
 * Nothing here depends on floating-point arithmetic, on the byte order or on which zstd there is.
 */
#include <inttypes.h>
#include <stdbool.h>

#include "image.h"
#include "plain_zstd.h"
#include "vector_state.h"

/* ------------------------------------------------------------------------------------------------------- content */

/* What the elements of a tensor are like. */
enum kind {
    WEIGHTS,  /* signs and mantissas of noise; exponents that fall off geometrically, with scales by row and by column */
    ROUNDED,  /* weights with the lower half of their bytes zero */
    SPECIAL,  /* infinities, NaNs with payloads, zeros of both signs, subnormals, weights between them */
    INTEGERS, /* a bell of small integers, in two's complement */
    RISING,   /* integers that rise by little */
    FEW,      /* block scales: few values, another few in each row */
    TEXT,     /* words that come again */
    NOISE,
    CONSTANT
};

/* The layout of a float: bits of its mantissa and its exponent. Sizes are the bits of the dtype. */
struct layout {
    unsigned mantissa, exponent;
};

static struct layout layout_of(uint32_t dtype)
{
    switch (dtype) {
    case PTWM_DTYPE_F64:
    case PTWM_DTYPE_C128: return (struct layout){ 52, 11 };
    case PTWM_DTYPE_F32:
    case PTWM_DTYPE_C64: return (struct layout){ 23, 8 };
    case PTWM_DTYPE_F16:
    case PTWM_DTYPE_C32: return (struct layout){ 10, 5 };
    case PTWM_DTYPE_F8_E4M3: return (struct layout){ 3, 4 };
    case PTWM_DTYPE_F8_E5M2: return (struct layout){ 2, 5 };
    case PTWM_DTYPE_F8_E3M4: return (struct layout){ 4, 3 };
    case PTWM_DTYPE_F6_E2M3: return (struct layout){ 3, 2 };
    case PTWM_DTYPE_F4: return (struct layout){ 1, 2 };
    default: return (struct layout){ 7, 8 }; /* bf16 */
    }
}

static uint64_t low_bits(uint64_t x, unsigned n)
{
    return n < 64 ? x & (((uint64_t)1 << n) - 1) : x;
}

static uint64_t weight(struct layout l, uint64_t row, uint64_t column, uint64_t *seed)
{
    const uint64_t x = check_random(seed), scales = row * 0x9E3779B97F4A7C15u >> 62, bias = column % 64 / 24;
    const uint64_t largest = ((uint64_t)1 << l.exponent) - 2;
    const uint64_t centre = l.exponent > 4 ? largest / 2 - 4 + scales + bias : largest;
    uint64_t fall = 0;

    while (fall < centre && x >> (8 + fall % 16) & 1)
        fall++;
    return low_bits(x >> 24, l.mantissa) | (centre - fall) << l.mantissa | (x & 1) << (l.mantissa + l.exponent);
}

static uint64_t special(struct layout l, uint64_t row, uint64_t column, uint64_t *seed)
{
    const uint64_t x = check_random(seed), exponents = low_bits(UINT64_MAX, l.exponent) << l.mantissa;
    const uint64_t sign = (x & 1) << (l.mantissa + l.exponent), mantissa = low_bits(x >> 8, l.mantissa);

    switch (column % 7) {
    case 0: return sign;
    case 1: return sign | exponents;
    case 2: return sign | exponents | mantissa;
    case 3: return sign | mantissa;
    default: return weight(l, row, column, seed);
    }
}

/* An element of so many bits; those above them are of no account. */
static uint64_t element(enum kind kind, uint32_t dtype, unsigned bits, uint64_t row, uint64_t column, uint64_t *seed)
{
    static const char words[] = "the weights of the layers of the model and the scales of the weights of the heads ";
    uint64_t x;

    switch (kind) {
    case WEIGHTS: return weight(layout_of(dtype), row, column, seed);
    case ROUNDED: return weight(layout_of(dtype), row, column, seed) >> bits / 2 << bits / 2;
    case SPECIAL: return special(layout_of(dtype), row, column, seed);
    case INTEGERS:
        x = check_random(seed);
        return (x & 15) + (x >> 4 & 15) + (x >> 8 & 15) + (x >> 12 & 15) - 30;
    case RISING: return row * 100000 + column * 3 + check_random(seed) % 3;
    case FEW: return 96 + row % 16 + check_random(seed) % 3 * (check_random(seed) % 2);
    case TEXT: return (uint8_t)words[(row * 7 + column + check_random(seed) % 211 / 210) % (sizeof words - 1)];
    case NOISE: return check_random(seed);
    default: return 0x3F;
    }
}

/* Packs elements as the file format has them: little-endian, of less than a byte from the low bits up. */
static uint8_t *content(enum kind kind, uint32_t dtype, uint64_t rows, uint64_t columns, uint64_t seed, size_t *nbytes)
{
    const unsigned bits = dtype != PTWM_DTYPE_NONE ? ptwm_dtype_bits(dtype) : 8;
    const bool is_complex = dtype == PTWM_DTYPE_C64 || dtype == PTWM_DTYPE_C128 || dtype == PTWM_DTYPE_C32;
    const unsigned part = is_complex ? bits / 2 : bits;
    uint8_t *bytes, *to;
    uint64_t held = 0;
    unsigned n_held = 0;

    *nbytes = (size_t)(rows * columns * bits / 8);
    to = bytes = malloc(*nbytes + 8);
    for (uint64_t i = 0; i < rows; i++)
        for (uint64_t j = 0; j < columns * bits / part; j++) {
            const uint64_t x = low_bits(element(kind, dtype, part, i, j, &seed), part);
            if (part >= 8) {
                for (unsigned k = 0; k < part; k += 8)
                    *to++ = (uint8_t)(x >> k);
                continue;
            }
            held |= x << n_held;
            for (n_held += part; n_held >= 8; n_held -= 8, held >>= 8)
                *to++ = (uint8_t)held;
        }
    return bytes;
}

static bool vector_state_is_told; /* by this processor */

/* No call leaves the upper halves of vector registers to slow down what its caller does. */
static void check_vector_state(void)
{
    CHECK(!vector_state_is_told || vector_state_is_clean());
}

/* ------------------------------------------------------------------------------------------------------- the files */

#define MICROSCALE PTWM_METHOD_MICROSCALE

struct file {
    const char *name;
    uint32_t dtype;
    uint64_t rows, columns;
    enum kind kind;
    enum ptwm_method method;
    int level;
    uint64_t chunk_nbytes;
    uint64_t hash; /* XXH3-64 of the file */
};

static const struct file files[] = {
#include "same_bytes_table.h"
};
enum { N_FILES = sizeof files / sizeof files[0] };

static struct image encode(const struct file *f, const void *data, size_t nbytes, unsigned threads)
{
    struct ptwm_writer_options options = PTWM_WRITER_OPTIONS_INIT;
    struct ptwm_tensor_spec spec = PTWM_TENSOR_SPEC_INIT;
    const uint64_t shape[2] = { f->rows, f->columns };
    struct ptwm_writer *w = NULL;

    options.threads = threads;
    options.level = f->level;
    options.chunk_nbytes = f->chunk_nbytes;
    options.zstd = &plain_zstd;
    CHECK_EQ(ptwm_writer_open_memory(&options, &w, NULL), PTWM_OK);
    spec.name = "tensor";
    spec.name_nbytes = 6;
    spec.dtype = f->dtype;
    spec.n_dims = f->dtype != PTWM_DTYPE_NONE ? 2 : 0;
    spec.shape = f->dtype != PTWM_DTYPE_NONE ? shape : NULL;
    spec.data = data;
    spec.nbytes = nbytes;
    spec.method = f->method;
    CHECK_EQ(ptwm_writer_add(w, &spec, NULL), PTWM_OK);
    check_vector_state();
    return finish(w);
}

static bool decodes_to(const struct image *image, const uint8_t *data, size_t nbytes)
{
    struct ptwm_reader_options options = PTWM_READER_OPTIONS_INIT;
    struct ptwm_reader *r = NULL;
    uint8_t *got = malloc(nbytes + 1);
    const struct ptwm_request request = { 0, 0, PTWM_NONE, got, nbytes };
    bool is_same;

    options.zstd = &plain_zstd;
    is_same = ptwm_reader_open_memory(image->data, image->nbytes, &options, &r, NULL) == PTWM_OK;
    check_vector_state();
    is_same = is_same && ptwm_reader_decode(r, &request, 1, NULL, NULL) == PTWM_OK;
    check_vector_state();
    is_same = is_same && memcmp(got, data, nbytes) == 0 && ptwm_reader_verify(r, 1, NULL) == PTWM_OK;
    check_vector_state();
    ptwm_reader_close(r);
    free(got);
    return is_same;
}

/* One file, written with the instruction set in use. */
static void check_file(const struct file *f, unsigned threads)
{
    size_t nbytes;
    uint8_t *data = content(f->kind, f->dtype, f->rows, f->columns, 1 + (uint64_t)(f - files), &nbytes);
    struct image image = encode(f, data, nbytes, threads);
    const uint64_t hash = ptwm_xxh3_64(image.data, image.nbytes);

    if (hash != f->hash)
        printf("%s, %s, %u threads: 0x%016" PRIx64 ", not 0x%016" PRIx64 "\n", f->name, ptwm_cpu_name(), threads, hash,
               f->hash);
    CHECK(hash == f->hash);
    CHECK(decodes_to(&image, data, nbytes));
    free(image.data);
    free(data);
}

/* ----------------------------------------------------------------------------------------------- a file of many */

/* Small tensors that share segments, equal ones, a second name, metadata, and a copy of it all. */
static struct image encode_model(unsigned threads)
{
    struct ptwm_writer_options options = PTWM_WRITER_OPTIONS_INIT;
    struct ptwm_writer *w = NULL;
    char name[16];

    options.threads = threads;
    options.zstd = &plain_zstd;
    CHECK_EQ(ptwm_writer_open_memory(&options, &w, NULL), PTWM_OK);
    for (unsigned i = 0; i < 60; i++) {
        const uint32_t dtype = i % 3 == 0 ? PTWM_DTYPE_F32 : i % 3 == 1 ? PTWM_DTYPE_BF16 : PTWM_DTYPE_I8;
        const uint64_t shape[2] = { 4 + i % 9, 32 };
        struct ptwm_tensor_spec spec = PTWM_TENSOR_SPEC_INIT;
        size_t nbytes;
        uint8_t *data = content(i % 3 == 2 ? INTEGERS : WEIGHTS, dtype, shape[0], shape[1], i % 50, &nbytes);
        snprintf(name, sizeof name, "t%u", i);
        spec.name = name;
        spec.name_nbytes = strlen(name);
        spec.dtype = dtype;
        spec.n_dims = 2;
        spec.shape = shape;
        spec.data = data;
        spec.nbytes = nbytes;
        CHECK_EQ(ptwm_writer_add(w, &spec, NULL), PTWM_OK);
        free(data);
    }
    CHECK_EQ(ptwm_writer_add_alias(w, "alias", 5, "t7", 2, NULL), PTWM_OK);
    CHECK_EQ(ptwm_writer_set_metadata(w, "\xA1\x61k\x61v", 5, NULL), PTWM_OK);
    return finish(w);
}

static const uint64_t model_hash = SAME_BYTES_MODEL_HASH;

static void check_model(unsigned threads)
{
    struct image image = encode_model(threads);
    const uint64_t hash = ptwm_xxh3_64(image.data, image.nbytes);

    if (hash != model_hash)
        printf("model, %s, %u threads: 0x%016" PRIx64 "\n", ptwm_cpu_name(), threads, hash);
    CHECK(hash == model_hash);
    free(image.data);
}

/* ---------------------------------------------------------------------------------------------------------- tests */

/* Selects an instruction set; false, with a line that says so, where the machine lacks it. */
static bool select_level(const char *level)
{
    if (ptwm_cpu_select(level) != PTWM_OK) {
        printf("SKIP %s: this machine does not have it\n", level);
        return false;
    }
    CHECK(strcmp(ptwm_cpu_name(), level) == 0);
    return true;
}

static void test_every_instruction_set(void)
{
    static const char *const levels[] = { "c99", "sse42", "avx2", "avx512", "neon" };
    unsigned n_levels = 0;

    for (size_t i = 0; i < sizeof levels / sizeof levels[0]; i++) {
        if (!select_level(levels[i]))
            continue;
        n_levels++;
        for (size_t j = 0; j < N_FILES; j++)
            check_file(&files[j], 1);
        check_model(1);
    }
    printf("%d files, %u instruction sets\n", N_FILES + 1, n_levels);
    CHECK(n_levels > 0);
    CHECK_EQ(ptwm_cpu_select("best"), PTWM_OK);
}

static void test_threads(void)
{
    for (size_t j = 0; j < N_FILES; j += 2)
        check_file(&files[j], 3);
    check_model(4);
}

/* The table knows the data from other data: the constants hold for these inputs alone. */
static void test_another_input_is_noticed(void)
{
    const struct file *f = &files[0];
    size_t nbytes;
    uint8_t *data = content(f->kind, f->dtype, f->rows, f->columns, 1, &nbytes);
    struct image image;

    data[nbytes / 2] ^= 1;
    image = encode(f, data, nbytes, 1);
    CHECK(ptwm_xxh3_64(image.data, image.nbytes) != f->hash);
    free(image.data);
    free(data);
}

static void print_table(void)
{
    struct image model = encode_model(1);

    for (size_t j = 0; j < N_FILES; j++) {
        size_t nbytes;
        uint8_t *data = content(files[j].kind, files[j].dtype, files[j].rows, files[j].columns, 1 + j, &nbytes);
        struct image image = encode(&files[j], data, nbytes, 1);
        printf("%-24s 0x%016" PRIx64 "  %zu -> %zu\n", files[j].name, ptwm_xxh3_64(image.data, image.nbytes), nbytes,
               image.nbytes);
        free(image.data);
        free(data);
    }
    printf("%-24s 0x%016" PRIx64 "\n", "model", ptwm_xxh3_64(model.data, model.nbytes));
    free(model.data);
}

int main(int argc, char **argv)
{
    vector_state_is_told = vector_state_is_known();
    if (!vector_state_is_told)
        printf("SKIP the state of vector registers: this processor does not tell it\n");
    if (argc > 1 && strcmp(argv[1], "print") == 0) {
        print_table();
        return 0;
    }
    RUN(test_every_instruction_set);
    RUN(test_threads);
    RUN(test_another_input_is_noticed);
    CHECK_EXIT();
}
