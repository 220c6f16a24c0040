/*
 * Encoding is the same everywhere: whole files from each level of the processor and number of threads, from many tensors at
 * once and one by one, and from the fast way for floats and the general one, are compared byte for byte and decoded.
 */
#include "check.h"

#include "chain.h"
#include "choose.h"
#include "float_encode.h"
#include "ptwm.h"
#include "segment_encode.h"

static const char *const levels[] = { "c99", "sse42", "avx2", "avx512", "neon" };
enum { N_LEVELS = sizeof levels / sizeof levels[0] };

static uint64_t seed = 5;

static uint32_t below(uint32_t n)
{
    return (uint32_t)(check_random(&seed) >> 32) % n;
}

static void *exactly(size_t nbytes)
{
    void *p = malloc(nbytes > 0 ? nbytes : 1);
    if (p == NULL)
        abort();
    return p;
}

/* Selects a level; false, said once for each, if this machine does not have it. */
static bool select_level(unsigned i)
{
    static bool said[N_LEVELS];
    if (ptwm_cpu_select(levels[i]) == PTWM_OK) {
        CHECK(strcmp(ptwm_cpu_name(), levels[i]) == 0);
        return true;
    }
    if (!said[i])
        printf("SKIP %s: this machine does not have it\n", levels[i]);
    said[i] = true;
    return false;
}

/* ---------------------------------------------------------------------------------------------------------- data */

static const struct {
    uint32_t dtype, width;
    uint8_t chain[2][4]; /* label chains with a fast way */
    unsigned n_chains;
} types[] = {
    { PTWM_DTYPE_BF16, 2, { { 3, 2, 6, 9 }, { 3, 2, 7, 8 } }, 2 },
    { PTWM_DTYPE_F16, 2, { { 3, 2, 9, 6 } }, 1 },
    { PTWM_DTYPE_F32, 4, { { 3, 4, 6, 9 }, { 3, 4, 7, 8 } }, 2 },
    { PTWM_DTYPE_F8_E4M3, 1, { { 3, 1, 2, 5 } }, 1 },
    { PTWM_DTYPE_I8, 1, { { 3, 1, 3, 5 } }, 1 },
    { PTWM_DTYPE_F8_E5M2, 1, { { 3, 1, 1, 6 }, { 3, 1, 2, 5 } }, 2 },
};
enum { N_TYPES = sizeof types / sizeof types[0] };

enum data { GAUSSIAN, SCALED, WIDENED, MIXED, SPARSE, CONSTANT, NOISE, SCATTERED, REPEATED, HALVES, N_DATA };

/* About normal, of the scale of trained weights. */
static float random_weight(void)
{
    float sum = 0;
    for (unsigned i = 0; i < 6; i++)
        sum += (float)below(1u << 20) / (1 << 20) - 0.5f;
    return sum / 20;
}

/* A scale that is always the same for a key: normal in octaves, with a deviation of .5, and then as precise as floats.
 */
static float random_scale(uint64_t key)
{
    uint64_t own_seed = key * 977;
    float octaves = 0, scale = 1;

    for (unsigned i = 0; i < 3; i++)
        octaves += (float)(check_random(&own_seed) >> 44) / (1 << 20) - 0.5f;
    for (; octaves > 0; octaves -= 0.0625f)
        scale *= 1.04427378f;
    for (; octaves < 0; octaves += 0.0625f)
        scale /= 1.04427378f;
    return scale;
}

/* Stores the leading bits of a float as an element; crude conversions, which are all that is needed here. */
static void store_float(uint8_t *to, uint32_t dtype, float value)
{
    uint32_t bits, sign, magnitude;
    int exponent;

    memcpy(&bits, &value, 4);
    sign = bits >> 31;
    exponent = (int)(bits >> 23 & 255) - 127;
    if (dtype == PTWM_DTYPE_F32) {
        for (unsigned i = 0; i < 4; i++)
            to[i] = (uint8_t)(bits >> (8 * i));
    } else if (dtype == PTWM_DTYPE_BF16) {
        to[0] = (uint8_t)(bits >> 16);
        to[1] = (uint8_t)(bits >> 24);
    } else if (dtype == PTWM_DTYPE_F16) {
        magnitude = exponent < -14 ? 0 : (uint32_t)(exponent + 15) << 10 | (bits >> 13 & 1023);
        magnitude |= sign << 15;
        to[0] = (uint8_t)magnitude;
        to[1] = (uint8_t)(magnitude >> 8);
    } else if (dtype == PTWM_DTYPE_F8_E4M3) {
        magnitude = exponent < -12 ? 0 : (uint32_t)(exponent + 13) << 3 | (bits >> 20 & 7);
        to[0] = (uint8_t)(sign << 7 | (magnitude & 127));
    } else {
        magnitude = exponent < -15 ? 0 : (uint32_t)(exponent + 16) << 2 | (bits >> 21 & 3);
        to[0] = (uint8_t)(sign << 7 | (magnitude & 127));
    }
}

static void fill(uint8_t *raw, uint32_t type, size_t n, size_t columns, enum data data)
{
    const uint32_t width = types[type].width, dtype = types[type].dtype;

    for (size_t i = 0; i < n; i++) {
        const size_t row = i / columns, column = i % columns;
        uint8_t *to = raw + i * width;
        float value = random_weight();
        if (data == HALVES)
            value *= random_scale(row % 5 + 1) * random_scale(100 + column);
        else if (data != GAUSSIAN)
            value *= (float)(1 + (row * 7 % 5 == 0 ? 3 : 0)) * (column % 3 == 0 ? 4.0f : 1.0f);
        store_float(to, dtype, value);
        if (data == WIDENED && width == 4)
            memset(to, 0, row % 2 ? 2 : 1);
        if (data == MIXED && below(50) == 0)
            memset(to, below(3) == 0 ? 0 : below(2) ? 255 : 127, width);
        if (data == SPARSE && below(5) != 0)
            memset(to, 0, width);
        if (data == CONSTANT)
            memset(to, 0x3c, width);
        for (uint32_t b = 0; b < width && data == NOISE; b++)
            to[b] = (uint8_t)below(256);
        if (data == SCATTERED) /* exponents from all over, more than a range holds */
            to[width - 1] = (uint8_t)(below(8) * 16 + 1);
        if (data == REPEATED && row > 0 && below(3) != 0)
            memcpy(to, raw + column * width, width);
    }
}

/* --------------------------------------------------------------------------------------------------------- files */

struct file {
    uint8_t *data;
    size_t nbytes;
};

static struct file write_file(const struct ptwm_tensor_spec *specs, size_t n, unsigned threads, uint64_t chunk_nbytes,
                              bool at_once)
{
    struct ptwm_writer_options options = PTWM_WRITER_OPTIONS_INIT;
    struct ptwm_writer *writer = NULL;
    struct file file = { NULL, 0 };
    const void *data = NULL;

    options.threads = threads;
    options.chunk_nbytes = chunk_nbytes;
    CHECK_EQ(ptwm_writer_open_memory(&options, &writer, NULL), PTWM_OK);
    if (at_once)
        CHECK_EQ(ptwm_writer_add_many(writer, specs, n, NULL), PTWM_OK);
    for (size_t i = 0; i < n && !at_once; i++)
        CHECK_EQ(ptwm_writer_add(writer, &specs[i], NULL), PTWM_OK);
    CHECK_EQ(ptwm_writer_finish(writer, NULL), PTWM_OK);
    CHECK_EQ(ptwm_writer_get_memory(writer, &data, &file.nbytes), PTWM_OK);
    file.data = exactly(file.nbytes);
    memcpy(file.data, data, file.nbytes);
    ptwm_writer_close(writer);
    return file;
}

static void check_decodes(const struct file *file, const struct ptwm_tensor_spec *specs, size_t n)
{
    struct ptwm_reader *reader = NULL;

    CHECK_EQ(ptwm_reader_open_memory(file->data, file->nbytes, NULL, &reader, NULL), PTWM_OK);
    for (size_t i = 0; i < n && reader != NULL; i++) {
        uint8_t *raw = exactly((size_t)specs[i].nbytes);
        const struct ptwm_request request = { i, 0, PTWM_NONE, raw, specs[i].nbytes };
        CHECK_EQ(ptwm_reader_decode(reader, &request, 1, NULL, NULL), PTWM_OK);
        CHECK(specs[i].nbytes == 0 || memcmp(raw, specs[i].data, (size_t)specs[i].nbytes) == 0);
        free(raw);
    }
    ptwm_reader_close(reader);
}

/* Writes in all ways and compares. */
static void check_all_ways(const struct ptwm_tensor_spec *specs, size_t n, uint64_t chunk_nbytes)
{
    struct file first = { NULL, 0 };

    for (unsigned l = 0; l < N_LEVELS; l++) {
        if (!select_level(l))
            continue;
        for (unsigned way = 0; way < 3; way++) {
            struct file file = write_file(specs, n, way == 0 ? 1 : 3, chunk_nbytes, way == 2);
            if (first.data == NULL) {
                first = file;
                check_decodes(&first, specs, n);
                continue;
            }
            if (file.nbytes != first.nbytes || memcmp(file.data, first.data, first.nbytes) != 0)
                printf("level %s, way %u\n", levels[l], way);
            CHECK_EQ(file.nbytes, first.nbytes);
            CHECK(file.nbytes == first.nbytes && memcmp(file.data, first.data, first.nbytes) == 0);
            free(file.data);
        }
    }
    free(first.data);
}

static struct ptwm_tensor_spec spec_of(const char *name, unsigned type, const uint64_t *shape, uint32_t n_dims,
                                       const uint8_t *raw)
{
    struct ptwm_tensor_spec s = PTWM_TENSOR_SPEC_INIT;
    s.name = name;
    s.name_nbytes = strlen(name);
    s.dtype = types[type].dtype;
    s.shape = shape;
    s.n_dims = n_dims;
    s.data = raw;
    s.nbytes = types[type].width;
    for (uint32_t i = 0; i < n_dims; i++)
        s.nbytes *= shape[i];
    return s;
}

/* ---------------------------------------------------------------------------------------------------------- cases */

static void all_types_and_data(void)
{
    static const uint64_t shapes[][2] = { { 130, 384 }, { 97, 515 }, { 33, 1200 }, { 1, 50001 }, { 3, 128 }, { 2, 511 } };

    for (unsigned type = 0; type < N_TYPES; type++)
        for (unsigned data = 0; data < N_DATA; data++) {
            const uint64_t *shape = shapes[(type + data) % (sizeof shapes / sizeof shapes[0])];
            const size_t n = (size_t)(shape[0] * shape[1]);
            uint8_t *raw = exactly(n * types[type].width);
            struct ptwm_tensor_spec spec = spec_of("t", type, shape, 2, raw);

            fill(raw, type, n, (size_t)shape[1], (enum data)data);
            for (int method = PTWM_METHOD_HUFFMAN; method <= PTWM_METHOD_IDENTITY; method++) {
                const struct ptwm_chain label = { types[type].chain[data % types[type].n_chains], 4 };
                if (method == PTWM_METHOD_ZSTD)
                    continue;
                spec.method = (enum ptwm_method)method;
                spec.chains = NULL;
                spec.n_chains = 0;
                check_all_ways(&spec, 1, data % 2 ? 0 : 16384);
                spec.chains = &label;
                spec.n_chains = 1;
                if (method == PTWM_METHOD_RANS)
                    check_all_ways(&spec, 1, data % 3 ? 0 : 32768);
            }
            free(raw);
        }
}

/* Many tensors of all kinds: small ones in groups, equal ones, empty ones, an error in the middle. */
static void many_at_once(void)
{
    enum { N = 40 };
    static char names[N][8];
    struct ptwm_tensor_spec specs[N];
    uint64_t shapes[N][2];
    uint8_t *raws[N];
    struct ptwm_error error = PTWM_ERROR_INIT;
    struct ptwm_writer_options options = PTWM_WRITER_OPTIONS_INIT;
    struct ptwm_writer *writer = NULL;

    for (unsigned i = 0; i < N; i++) {
        const unsigned type = i % N_TYPES;
        shapes[i][0] = i % 7 == 3 ? 0 : 1 + below(i % 3 ? 4 : 200);
        shapes[i][1] = 384;
        raws[i] = exactly((size_t)(shapes[i][0] * 384 * types[type].width));
        fill(raws[i], type, (size_t)(shapes[i][0] * 384), 384, (enum data)(i % 4));
        snprintf(names[i], sizeof names[i], "t%u", i);
        specs[i] = spec_of(names[i], type, shapes[i], 2, raws[i]);
        if (i >= 20 && i % 5 == 0) { /* equal to an earlier one, large or small */
            specs[i] = specs[i - 15];
            specs[i].name = names[i];
            specs[i].name_nbytes = strlen(names[i]);
        }
    }
    check_all_ways(specs, N, 65536);

    /* A duplicate name: what comes before it has been added, and the writer goes on. */
    specs[30].name = names[3];
    specs[30].name_nbytes = strlen(names[3]);
    options.threads = 2;
    CHECK_EQ(ptwm_writer_open_memory(&options, &writer, NULL), PTWM_OK);
    CHECK_EQ(ptwm_writer_add_many(writer, specs, N, &error), PTWM_ERR_DUPLICATE_NAME);
    CHECK_EQ(error.tensor, 30);
    CHECK_EQ(ptwm_writer_add_many(writer, specs + 31, N - 31, NULL), PTWM_OK);
    CHECK_EQ(ptwm_writer_add_many(writer, NULL, 1, NULL), PTWM_ERR_ARGUMENT);
    CHECK_EQ(ptwm_writer_add_many(writer, NULL, 0, NULL), PTWM_OK);
    CHECK_EQ(ptwm_writer_finish(writer, NULL), PTWM_OK);
    ptwm_writer_close(writer);
    for (unsigned i = 0; i < N; i++)
        free(raws[i]);
}

/*
 * Large tensors, which are hashed while what comes before them is encoded: first, after small ones and after each
 * other, equal ones and repetitive ones, and one that is refused. With so many threads all over 1 MiB are large.
 */
static void large_among_many(void)
{
    enum { THREADS = 64, CHUNK = 65536, N = 9, REFUSED = 6 };
    static const char *const names[N] = {
        "large", "small", "other", "after", "equal", "repeated", "more", "last", "end"
    };
    static const uint64_t shapes[N][2] = { { 1500, 384 }, { 3, 384 },    { 100, 384 },  { 1600, 384 }, { 1500, 384 },
                                           { 1500, 384 }, { 1700, 384 }, { 1500, 384 }, { 9, 384 } };
    struct ptwm_writer_options options = PTWM_WRITER_OPTIONS_INIT;
    struct ptwm_error error = PTWM_ERROR_INIT;
    struct ptwm_writer *writer = NULL;
    struct ptwm_tensor_spec specs[N];
    struct file alone, together;
    uint8_t *raws[N];

    for (unsigned i = 0; i < N; i++) {
        const size_t n = (size_t)(shapes[i][0] * shapes[i][1]);
        raws[i] = exactly(n * types[0].width);
        fill(raws[i], 0, n, 384, i == 5 ? REPEATED : GAUSSIAN);
        specs[i] = spec_of(names[i], 0, shapes[i], 2, i == 4 ? raws[0] : raws[i]);
    }
    CHECK(types[0].width == 2 && specs[0].nbytes > 1 << 20);
    alone = write_file(specs, N, 1, CHUNK, true);
    together = write_file(specs, N, THREADS, CHUNK, true);
    check_decodes(&together, specs, N);
    CHECK_EQ(together.nbytes, alone.nbytes);
    CHECK(together.nbytes == alone.nbytes && memcmp(together.data, alone.data, alone.nbytes) == 0);

    specs[REFUSED].nbytes--;
    options.threads = THREADS;
    CHECK_EQ(ptwm_writer_open_memory(&options, &writer, NULL), PTWM_OK);
    CHECK_EQ(ptwm_writer_add_many(writer, specs, N, &error), PTWM_ERR_SIZE_MISMATCH);
    CHECK_EQ(error.tensor, REFUSED);
    ptwm_writer_close(writer);
    for (unsigned i = 0; i < N; i++)
        free(raws[i]);
    free(alone.data);
    free(together.data);
}

/* Whether the first segment of a file has phases. */
static bool has_phases(const struct file *file)
{
    struct ptwm_layout_info info = { .struct_nbytes = sizeof info };
    struct ptwm_reader *reader = NULL;
    struct ptwm_layout *layout = NULL;

    CHECK_EQ(ptwm_reader_open_memory(file->data, file->nbytes, NULL, &reader, NULL), PTWM_OK);
    CHECK_EQ(ptwm_reader_get_layout(reader, 0, &layout, NULL), PTWM_OK);
    CHECK_EQ(ptwm_layout_get_info(layout, &info), PTWM_OK);
    CHECK(!info.has_phases || info.n_columns > 0);
    ptwm_layout_free(layout);
    ptwm_reader_close(reader);
    return info.has_phases != 0;
}

/* Columns of all scales: phases for the types whose symbols have a bit of mantissa, if the rest is not too much. */
static void columns_of_all_scales(void)
{
    static const uint64_t shape[2] = { 1501, 384 };
    const size_t n = (size_t)(shape[0] * shape[1]);

    seed = 2; /* the same data on all machines, whatever levels there were before: a sample decides, for f16 narrowly */
    for (unsigned type = 0; type < N_TYPES; type++)
        for (unsigned data = 0; data < 3; data++) {
            uint8_t *raw = exactly(n * types[type].width);
            const struct ptwm_tensor_spec spec = spec_of("t", type, shape, 2, raw);
            const bool expected =
                data > 0 && types[type].dtype != PTWM_DTYPE_I8 && (types[type].width < 4 || data == 2);
            struct file file;

            fill(raw, type, n, (size_t)shape[1], data == 0 ? GAUSSIAN : HALVES);
            for (size_t i = 0; i < n && types[type].width == 4 && data == 2; i++)
                memset(raw + 4 * i, 0, 2); /* widened from bfloat16 */
            file = write_file(&spec, 1, 1, 0, false);
            CHECK_EQ(has_phases(&file), expected);
            check_decodes(&file, &spec, 1);
            free(file.data);
            check_all_ways(&spec, 1, data == 0 ? 0 : 65536);
            free(raw);
        }
}

/* More than one window. */
static void check_large_tensor(enum data data)
{
    static const uint64_t shape[2] = { 23000, 384 };
    const size_t n = (size_t)(shape[0] * shape[1]);
    uint8_t *raw = exactly(2 * n);
    struct ptwm_tensor_spec specs[2];

    /* One part is scaled, so that windows differ; a pattern of it is copied, as making random numbers takes long. */
    fill(raw, 0, n / 8, 384, data);
    for (size_t i = 1; i < 8; i++)
        for (size_t k = 0; k < n / 8; k++) {
            raw[2 * (i * (n / 8) + k)] = (uint8_t)(raw[2 * k] ^ check_random(&seed));
            raw[2 * (i * (n / 8) + k) + 1] = raw[2 * k + 1];
        }
    memcpy(raw + 16 * (n / 8), raw, 2 * (n % 8));
    specs[0] = specs[1] = spec_of("a", 0, shape, 2, raw);
    specs[1].name = "b";
    check_all_ways(specs, 2, 0);
    free(raw);
}

static void a_large_tensor(void)
{
    check_large_tensor(SCALED);
    check_large_tensor(HALVES);
}

/* ---------------------------------------------------------------------------------------- the fast and general way */

static int append(void *context, const void *data, size_t nbytes)
{
    return ptwm_bytes_append(context, data, nbytes) == PTWM_OK ? 0 : 12;
}

/* To a sink, or in place in memory that has so much room and grows where that is too little. */
static void encode_segment(struct ptwm_encode_spec *spec, bool in_place, size_t room, struct ptwm_bytes *bytes)
{
    const struct ptwm_sink sink = { append, bytes };
    struct ptwm_encode_memory memory;
    struct ptwm_segment_record record;
    struct ptwm_output *output = NULL;

    ptwm_encode_memory_init(&memory, bytes->allocator);
    spec->memory = &memory;
    if (in_place)
        CHECK(ptwm_bytes_reserve(bytes, room) == PTWM_OK &&
              ptwm_output_open_bytes(bytes, bytes->allocator, &output, NULL) == PTWM_OK);
    else
        CHECK_EQ(ptwm_output_open_sink(&sink, bytes->allocator, &output, NULL), PTWM_OK);
    CHECK_EQ(ptwm_segment_encode(spec, output, &record, NULL), PTWM_OK);
    CHECK_EQ(record.stored_nbytes, bytes->nbytes);
    ptwm_output_close(output);
    ptwm_encode_memory_release(&memory);
}

static void fast_and_general(void)
{
    const struct ptwm_codec_context context = { &ptwm_default_allocator, ptwm_zstd_select(NULL), 0 };

    for (unsigned k = 0; k < 5 * N_TYPES * N_DATA; k++) {
        const unsigned type = k % N_TYPES, data = k / N_TYPES % N_DATA, width = types[type].width;
        const size_t columns = k % 4 == 0 ? 384 : k % 4 == 1 ? 100 + below(1000) : 128 * (1 + below(12));
        const size_t n = k % 6 == 5 ? 1 + below(1500) : columns * (1 + below(100)) + (k % 5 == 4 ? below(600) : 0);
        uint8_t *raw = exactly(n * width);
        struct ptwm_bytes fast = { &ptwm_default_allocator, NULL, 0, 0 }, plain = fast;
        struct ptwm_parsed_chain chain;
        struct ptwm_encode_spec spec = { raw,
                                         (uint64_t)n * width,
                                         (uint64_t)columns * width,
                                         PTWM_METHOD_MICROSCALE,
                                         &chain,
                                         1,
                                         true,
                                         false,
                                         false,
                                         true,
                                         k % 3 ? 1 << 20 : 40000,
                                         1,
                                         &context,
                                         NULL,
                                         PTWM_REPETITION_UNKNOWN };

        CHECK_EQ(ptwm_chain_parse(types[type].chain[k / 45 % types[type].n_chains], 4, &chain, NULL), PTWM_OK);
        fill(raw, type, n, columns, (enum data)data);
        if (k % 2)
            spec.method = PTWM_METHOD_RANS;
        if (n * width <= (64 << 10))
            spec.method = PTWM_METHOD_RANS; /* small data is tried with zstd, which is not the fast way's */
        spec.plain = true;
        if (!select_level(0))
            continue;
        encode_segment(&spec, false, 0, &plain);
        spec.plain = false;
        for (unsigned l = 0; l < N_LEVELS; l++) {
            if (!select_level(l))
                continue;
            ptwm_bytes_release(&fast);
            encode_segment(&spec, k % 7 > 2, below(6 * (uint32_t)(n * width) + 4096), &fast);
            if (fast.nbytes != plain.nbytes || memcmp(fast.data, plain.data, plain.nbytes) != 0)
                printf("case %u: type %u data %u level %s\n", k, type, data, levels[l]);
            CHECK_EQ(fast.nbytes, plain.nbytes);
            CHECK(fast.nbytes == plain.nbytes && memcmp(fast.data, plain.data, plain.nbytes) == 0);
        }
        ptwm_bytes_release(&fast);
        ptwm_bytes_release(&plain);
        free(raw);
    }
}

/* A chunk of any bits among weights takes more than chunks usually do: its room in the output may end anywhere. */
static void a_chunk_that_outgrows_its_room(void)
{
    enum { CHUNK = 16384, N = 100 * CHUNK, BEFORE = 37 }; /* chunks of weights */
    const struct ptwm_codec_context context = { &ptwm_default_allocator, ptwm_zstd_select(NULL), 0 };
    const uint64_t others_seed = seed;
    uint8_t *raw = exactly(2 * N);
    struct ptwm_bytes expected = { &ptwm_default_allocator, NULL, 0, 0 };
    struct ptwm_parsed_chain chain;
    struct ptwm_encode_spec spec = {
        raw, 2 * N,    2 * 256, PTWM_METHOD_RANS,       &chain, 1, true, false, false, false, 2 * CHUNK,
        1,   &context, NULL,    PTWM_REPETITION_UNKNOWN
    };

    CHECK(select_level(0));
    CHECK_EQ(ptwm_chain_parse(types[0].chain[0], 4, &chain, NULL), PTWM_OK);
    fill(raw, 0, N, 256, GAUSSIAN);
    for (size_t i = 0; i < 2 * CHUNK; i++)
        raw[2 * CHUNK * BEFORE + i] = (uint8_t)below(256);
    encode_segment(&spec, false, 0, &expected);
    for (size_t room = CHUNK; room < 8 * CHUNK; room += CHUNK / 4) {
        struct ptwm_bytes bytes = { &ptwm_default_allocator, NULL, 0, 0 };
        encode_segment(&spec, true, expected.nbytes * BEFORE / (N / CHUNK) + room, &bytes);
        CHECK(bytes.nbytes == expected.nbytes && memcmp(bytes.data, expected.data, expected.nbytes) == 0);
        ptwm_bytes_release(&bytes);
    }
    ptwm_bytes_release(&expected);
    free(raw);
    seed = others_seed;
}

/* ---------------------------------------------------------------------------------------------------- label coding */

/*
 * Random frequencies: even, falling, a few large ones among the least there may be, or many that are a
 * little less than a bucket, so that one label is the alias of many for a few ranks each.
 */
static void random_frequencies(uint16_t *frequencies, uint32_t n)
{
    const uint32_t shape = below(6), little = 1 + below(120);
    uint32_t left = PTWM_FREQUENCY_TOTAL / PTWM_FREQUENCY_GRANULE - n;

    for (uint32_t i = 0; i < n; i++) {
        uint32_t more = 0;
        if (i == n - 1)
            more = left;
        else if (shape == 0)
            more = left / (n - i);
        else if (shape == 1)
            more = left / 4;
        else if (shape == 2)
            more = below(left + 1);
        else if (shape > 3)
            more = 255 - 1 - below(little);
        frequencies[i] = (uint16_t)(PTWM_FREQUENCY_GRANULE * (1 + more));
        left -= more;
    }
    for (uint32_t i = 0; i < n; i++) { /* in any order */
        const uint32_t k = below(n);
        const uint16_t frequency = frequencies[i];
        frequencies[i] = frequencies[k];
        frequencies[k] = frequency;
    }
}

static void random_table(struct ptwm_label_table *table, bool phased)
{
    memset(table, 0, sizeof *table);
    table->n_labels = 2 + below(PTWM_MAX_LABELS - 1);
    for (uint32_t i = 0; i < table->n_labels; i++)
        table->symbol[i] = (uint16_t)(i + 1);
    random_frequencies(table->frequency, table->n_labels);
    if (phased)
        random_frequencies(table->second, table->n_labels);
}

/* Labels with those frequencies, or with all of them alike, which takes the most words. */
static void random_labels(const struct ptwm_label_table *table, bool phased, uint8_t *labels, size_t n)
{
    const bool evenly = below(4) == 0;

    for (size_t i = 0; i < n; i++) {
        uint32_t label = 0, at = below(PTWM_FREQUENCY_TOTAL);
        for (; !evenly && at >= table->frequency[label]; label++)
            at -= table->frequency[label];
        labels[i] = (uint8_t)((evenly ? below(table->n_labels) : label) | (below(50) == 0 ? PTWM_IS_EXCEPTION : 0));
        labels[i] |= (uint8_t)(phased ? PTWM_PHASE * below(2) : 0);
    }
}

/* Coding with tables of all kinds, for which vector kernels have different ways, gives the same at all levels. */
static void label_coding(void)
{
    bool few_limits = false, some_limits = false, many_limits = false;

    for (unsigned k = 0; k < 300; k++) {
        const size_t unit = 128 * (1 + below(4)), n = 16384 + below(3000), n_units = n / unit + 1;
        uint8_t *labels = exactly(n), *classes = exactly(n_units), *room = exactly(2 * n);
        const struct ptwm_label_chunk chunk = { n, 2, (uint32_t)unit, 0, classes };
        struct ptwm_label_set set;
        struct file first = { NULL, 0 };
        const bool phased = k % 3 == 2;

        memset(&set, 0, sizeof set);
        set.n_classes = 1 + below(2);
        for (uint32_t z = 0; z < set.n_classes; z++)
            random_table(&set.classes[z], phased);
        for (size_t u = 0; u < n_units; u++) {
            const size_t m = n - u * unit < unit ? n - u * unit : unit;
            classes[u] = (uint8_t)below(set.n_classes);
            random_labels(&set.classes[classes[u]], phased, labels + u * unit, m);
        }
        for (unsigned l = 0; l < N_LEVELS; l++) {
            struct ptwm_label_encoder encoder = { 0 };
            struct ptwm_label_coding coding;
            struct file file;
            if (!select_level(l))
                continue;
            CHECK_EQ(ptwm_label_encoder_init(&encoder, &ptwm_default_allocator, &set, phased), PTWM_OK);
            for (uint32_t z = 0; !phased && z < set.n_classes; z++) {
                const unsigned n_limits = encoder.by_class[z].pieces.n_limits;
                few_limits = few_limits || n_limits <= 2;
                some_limits = some_limits || (n_limits > 2 && n_limits <= PTWM_PIECE_LIMITS);
                many_limits = many_limits || n_limits > PTWM_PIECE_LIMITS;
            }
            ptwm_label_begin(&coding, &encoder, &chunk, NULL, room);
            ptwm_label_code(&coding, labels, 0, n);
            file.data = exactly(ptwm_label_end_bound(&coding, 0));
            file.nbytes = ptwm_label_end(&coding, 0, NULL, 0, file.data);
            ptwm_label_encoder_release(&encoder);
            if (first.data == NULL) {
                first = file;
                continue;
            }
            CHECK_EQ(file.nbytes, first.nbytes);
            CHECK(file.nbytes == first.nbytes && memcmp(file.data, first.data, first.nbytes) == 0);
            free(file.data);
        }
        free(first.data);
        free(labels);
        free(classes);
        free(room);
    }
    CHECK(few_limits);
    CHECK(some_limits);
    CHECK(many_limits);
}

/* ----------------------------------------------------------------------------------------------------- repetition */

/* Hashing and looking at once gives what both give. */
static void check_hash_repetitive(const uint8_t *data, size_t nbytes)
{
    static const size_t cut[] = { 0, 1, 7, 64, 100, 4096, 70001 };

    for (size_t i = 0; i < sizeof cut / sizeof cut[0]; i++) {
        const size_t n = nbytes - cut[i], chunk_nbytes = i % 2 ? nbytes : 300000;
        uint64_t hash = 0;
        CHECK_EQ(ptwm_hash_repetitive(data, n, chunk_nbytes, &hash), ptwm_is_repetitive(data, n, chunk_nbytes));
        CHECK_EQ(hash, ptwm_xxh3_64(data, n));
    }
}

static void repetition(void)
{
    enum { NBYTES = 1 << 20 };
    uint8_t *data = exactly(NBYTES);

    for (unsigned l = 0; l < N_LEVELS; l++) {
        uint64_t own_seed = 3;
        if (!select_level(l))
            continue;
        /* Noise, noise with many zeros in between, and rows that come again at odd distances. */
        for (size_t i = 0; i < NBYTES; i++)
            data[i] = (uint8_t)check_random(&own_seed);
        CHECK(!ptwm_is_repetitive(data, NBYTES, NBYTES));
        check_hash_repetitive(data, NBYTES);
        for (size_t i = 0; i < NBYTES; i += 2)
            if (check_random(&own_seed) % 2)
                memset(data + i, 0, 2);
        CHECK(!ptwm_is_repetitive(data, NBYTES, NBYTES));
        for (size_t i = 0; i < NBYTES; i++)
            data[i] = (uint8_t)(i < 200000 ? check_random(&own_seed) : data[i - 200000]);
        CHECK(ptwm_is_repetitive(data, NBYTES, NBYTES));
        check_hash_repetitive(data, NBYTES);
        for (size_t i = 0; i < NBYTES; i++)
            data[i] = (uint8_t)(i % 24);
        CHECK(ptwm_is_repetitive(data, NBYTES, NBYTES));
        memset(data, 0, NBYTES);
        CHECK(ptwm_is_repetitive(data, NBYTES, NBYTES));
        CHECK(!ptwm_is_repetitive(data, 4, NBYTES));
    }
    free(data);
}

int main(void)
{
    RUN(repetition);
    RUN(label_coding);
    RUN(fast_and_general);
    RUN(a_chunk_that_outgrows_its_room);
    RUN(all_types_and_data);
    RUN(many_at_once);
    RUN(large_among_many);
    RUN(columns_of_all_scales);
    RUN(a_large_tensor);
    CHECK_EXIT();
}
