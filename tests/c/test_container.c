/*
 * The container through its public interface: what goes in comes back, what is read for it, what is refused.
 */
#include "check.h"
#include "image.h"
#include "ptwm.h"

/* ---------------------------------------------------------------------------------------------------- fixtures */

/* bfloat16 weights as trained ones are: rows and columns have scales of their own. */
static void fill_bf16(uint16_t *w, size_t rows, size_t columns, uint64_t seed)
{
    for (size_t r = 0; r < rows; r++) {
        uint64_t row_state = seed + r / 3;
        int row_exponent = (int)(check_random(&row_state) % 4);
        for (size_t c = 0; c < columns; c++) {
            uint64_t x = check_random(&seed);
            int exponent = 120 + row_exponent + (int)(c % 3);
            while (x & 1 && exponent > 100) {
                exponent--;
                x >>= 1;
            }
            w[r * columns + c] = (uint16_t)(x >> 48 & 0x807F) | (uint16_t)(exponent << 7);
        }
    }
}

static void store_le16(uint8_t *to, const uint16_t *from, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        to[2 * i] = (uint8_t)from[i];
        to[2 * i + 1] = (uint8_t)(from[i] >> 8);
    }
}

static uint8_t *weights(size_t rows, size_t columns, uint64_t seed)
{
    uint16_t *w = malloc(rows * columns * 2 + 2);
    uint8_t *bytes = malloc(rows * columns * 2 + 2);
    fill_bf16(w, rows, columns, seed);
    store_le16(bytes, w, rows * columns);
    free(w);
    return bytes;
}

static struct ptwm_tensor_spec spec_of(const char *name, uint32_t dtype, uint32_t n_dims, const uint64_t *shape,
                                       const void *data, uint64_t nbytes)
{
    struct ptwm_tensor_spec spec = PTWM_TENSOR_SPEC_INIT;
    spec.name = name;
    spec.name_nbytes = strlen(name);
    spec.dtype = dtype;
    spec.n_dims = n_dims;
    spec.shape = shape;
    spec.data = data;
    spec.nbytes = nbytes;
    return spec;
}

static enum ptwm_status add(struct ptwm_writer *w, const char *name, uint32_t dtype, uint32_t n_dims,
                            const uint64_t *shape, const void *data, uint64_t nbytes)
{
    struct ptwm_tensor_spec spec = spec_of(name, dtype, n_dims, shape, data, nbytes);
    return ptwm_writer_add(w, &spec, NULL);
}

static struct ptwm_writer *memory_writer(unsigned threads, uint64_t chunk_nbytes, uint32_t flags)
{
    struct ptwm_writer_options options = PTWM_WRITER_OPTIONS_INIT;
    struct ptwm_writer *w = NULL;
    options.threads = threads;
    options.chunk_nbytes = chunk_nbytes;
    options.flags = flags;
    CHECK_EQ(ptwm_writer_open_memory(&options, &w, NULL), PTWM_OK);
    return w;
}

enum { BOTH = PTWM_WRITE_PAYLOAD_HASH | PTWM_WRITE_PLANE_CRC };

static struct ptwm_reader *open_image(const struct image *image)
{
    struct ptwm_reader *r = NULL;
    CHECK_EQ(ptwm_reader_open_memory(image->data, image->nbytes, NULL, &r, NULL), PTWM_OK);
    return r;
}

static uint64_t find(const struct ptwm_reader *r, const char *name)
{
    uint64_t index = PTWM_NONE;
    CHECK_EQ(ptwm_reader_find(r, name, strlen(name), &index), PTWM_OK);
    return index;
}

static enum ptwm_status decode_range(const struct ptwm_reader *r, uint64_t tensor, uint64_t first, uint64_t n,
                                     void *buffer, uint64_t nbytes)
{
    const struct ptwm_request request = { tensor, first, n, buffer, nbytes };
    return ptwm_reader_decode(r, &request, 1, NULL, NULL);
}

static int decodes_to(const struct ptwm_reader *r, const char *name, const void *expected, size_t nbytes)
{
    uint8_t *got = malloc(nbytes + 1);
    enum ptwm_status status = decode_range(r, find(r, name), 0, PTWM_NONE, got, nbytes);
    int same = status == PTWM_OK && memcmp(got, expected, nbytes) == 0;
    free(got);
    return same;
}

/* ------------------------------------------------------------------------------------------------ what comes back */

/* Large enough that memory for it is mapped, and moved twice. */
static void test_a_large_file_in_memory(void)
{
    enum { SMALL = 900 << 10, LARGE = 24 << 20, LARGEST = 40 << 20 };
    uint8_t *data = malloc(LARGEST);
    struct ptwm_writer *w = memory_writer(1, 0, BOTH);
    const uint64_t small = SMALL, large = LARGE, largest = LARGEST;
    struct ptwm_reader *r;
    struct image image;
    uint64_t state = 1;

    for (size_t i = 0; i < LARGEST; i++)
        data[i] = (uint8_t)(check_random(&state) >> 56);
    CHECK_EQ(add(w, "small", PTWM_DTYPE_U8, 1, &small, data, SMALL), PTWM_OK);
    CHECK_EQ(add(w, "large", PTWM_DTYPE_U8, 1, &large, data + 1, LARGE), PTWM_OK);
    CHECK_EQ(add(w, "largest", PTWM_DTYPE_U8, 1, &largest, data, LARGEST), PTWM_OK);
    CHECK_EQ(add(w, "large again", PTWM_DTYPE_U8, 1, &large, data + 1, LARGE), PTWM_OK);
    image = finish(w);
    CHECK(image.nbytes < SMALL + LARGE + LARGEST + (64 << 10));
    r = open_image(&image);
    CHECK(decodes_to(r, "small", data, SMALL));
    CHECK(decodes_to(r, "large", data + 1, LARGE));
    CHECK(decodes_to(r, "largest", data, LARGEST));
    CHECK(decodes_to(r, "large again", data + 1, LARGE));
    ptwm_reader_close(r);
    free(image.data);
    free(data);
}

static void test_everything_comes_back(void)
{
    static const uint64_t shape[2] = { 700, 384 }, small[2] = { 3, 5 }, empty[3] = { 4, 0, 7 }, f4[1] = { 10 };
    uint8_t *large = weights(700, 384, 1), *little = weights(3, 5, 2);
    static const uint8_t odd[7] = { 0, 1, 2, 3, 250, 251, 252 };
    struct ptwm_writer *w = memory_writer(2, 0, BOTH);
    struct ptwm_tensor_spec nul;
    struct ptwm_tensor_info info = { .struct_nbytes = sizeof info };
    struct ptwm_reader *r;
    struct image image;

    CHECK_EQ(add(w, "large", PTWM_DTYPE_BF16, 2, shape, large, 700 * 384 * 2), PTWM_OK);
    CHECK_EQ(add(w, "little", PTWM_DTYPE_BF16, 2, small, little, 30), PTWM_OK);
    CHECK_EQ(add(w, "empty", PTWM_DTYPE_F32, 3, empty, NULL, 0), PTWM_OK);
    CHECK_EQ(add(w, "scalar", PTWM_DTYPE_I32, 0, NULL, "\1\2\3\4", 4), PTWM_OK);
    CHECK_EQ(add(w, "nibbles", PTWM_DTYPE_F4, 1, f4, "\x10\x32\x54\x76\x98", 5), PTWM_OK);
    CHECK_EQ(add(w, "bytes", PTWM_DTYPE_NONE, 0, NULL, odd, 7), PTWM_OK);
    CHECK_EQ(add(w, "no bytes", PTWM_DTYPE_NONE, 0, NULL, NULL, 0), PTWM_OK);
    CHECK_EQ(add(w, "", PTWM_DTYPE_NONE, 0, NULL, "x", 1), PTWM_OK);
    nul = spec_of("a", PTWM_DTYPE_NONE, 0, NULL, "y", 1);
    nul.name = "a\0b";
    nul.name_nbytes = 3;
    CHECK_EQ(ptwm_writer_add(w, &nul, NULL), PTWM_OK);
    CHECK_EQ(add(w, "a", PTWM_DTYPE_NONE, 0, NULL, "z", 1), PTWM_OK);
    CHECK_EQ(ptwm_writer_set_metadata(w, "\xa0", 1, NULL), PTWM_OK);
    image = finish(w);
    r = open_image(&image);
    CHECK(decodes_to(r, "large", large, 700 * 384 * 2));
    CHECK(decodes_to(r, "little", little, 30));
    CHECK(decodes_to(r, "empty", "", 0));
    CHECK(decodes_to(r, "scalar", "\1\2\3\4", 4));
    CHECK(decodes_to(r, "nibbles", "\x10\x32\x54\x76\x98", 5));
    CHECK(decodes_to(r, "bytes", odd, 7));
    CHECK(decodes_to(r, "no bytes", "", 0));
    CHECK(decodes_to(r, "", "x", 1));
    CHECK(decodes_to(r, "a", "z", 1));
    CHECK_EQ(ptwm_reader_get_tensor(r, 2, &info), PTWM_OK);
    CHECK_EQ(info.n_dims, 3);
    CHECK(memcmp(info.shape, empty, sizeof empty) == 0);
    CHECK_EQ(info.nbytes, 0);
    CHECK(info.segment == PTWM_NONE && !info.has_hash);
    CHECK_EQ(ptwm_reader_get_tensor(r, 8, &info), PTWM_OK);
    CHECK(info.name_nbytes == 3 && memcmp(info.name, "a\0b", 3) == 0);
    CHECK_EQ(ptwm_reader_get_tensor(r, 10, &info), PTWM_ERR_NO_TENSOR);
    CHECK_EQ(ptwm_reader_verify(r, 2, NULL), PTWM_OK);
    ptwm_reader_close(r);
    free(image.data);
    free(large);
    free(little);
}

/* Every range of elements of a tensor of several chunks, at the chunks' borders. */
static void test_ranges(void)
{
    enum { ROWS = 64, COLUMNS = 128, N = ROWS * COLUMNS };
    static const uint64_t shape[2] = { ROWS, COLUMNS };
    uint8_t *data = weights(ROWS * 8, COLUMNS, 3), buffer[2 * N];
    static const uint64_t tall[2] = { ROWS * 8, COLUMNS };
    struct ptwm_writer *w = memory_writer(1, 4096, BOTH);
    static const uint64_t ends[] = { 0, 1, 2047, 2048, 2049, 4095, 4096, 4097, 6144, N - 1, N };
    struct ptwm_reader *r;
    struct image image;

    (void)shape;
    CHECK_EQ(add(w, "t", PTWM_DTYPE_BF16, 2, tall, data, 2 * 8 * N), PTWM_OK);
    image = finish(w);
    r = open_image(&image);
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++)
        for (size_t j = i; j < sizeof ends / sizeof ends[0]; j++) {
            const uint64_t n = ends[j] - ends[i];
            memset(buffer, 0xEE, sizeof buffer);
            CHECK_EQ(decode_range(r, 0, ends[i], n, buffer, 2 * n), PTWM_OK);
            CHECK(memcmp(buffer, data + 2 * ends[i], 2 * n) == 0);
        }
    CHECK_EQ(decode_range(r, 0, 8 * N, 1, buffer, 2), PTWM_ERR_RANGE);
    CHECK_EQ(decode_range(r, 0, 8 * N + 1, 0, buffer, 0), PTWM_ERR_RANGE);
    CHECK_EQ(decode_range(r, 0, 0, 4, buffer, 6), PTWM_ERR_ARGUMENT);
    CHECK_EQ(decode_range(r, 1, 0, 0, buffer, 0), PTWM_ERR_NO_TENSOR);
    ptwm_reader_close(r);
    free(image.data);
    free(data);
}

static void test_sub_byte_ranges_are_whole_bytes(void)
{
    static const uint64_t shape[1] = { 12 };
    struct ptwm_writer *w = memory_writer(1, 0, BOTH);
    uint8_t buffer[9];
    struct ptwm_reader *r;
    struct image image;

    CHECK_EQ(add(w, "f6", PTWM_DTYPE_F6_E2M3, 1, shape, "abcdefghi", 9), PTWM_OK);
    CHECK_EQ(add(w, "odd", PTWM_DTYPE_F4, 1, (const uint64_t[]){ 3 }, "ab", 2), PTWM_ERR_SIZE_MISMATCH);
    image = finish(w);
    r = open_image(&image);
    CHECK_EQ(decode_range(r, 0, 4, 4, buffer, 3), PTWM_OK);
    CHECK(memcmp(buffer, "def", 3) == 0);
    CHECK_EQ(decode_range(r, 0, 1, 4, buffer, 3), PTWM_ERR_RANGE);
    CHECK_EQ(decode_range(r, 0, 0, 3, buffer, 2), PTWM_ERR_RANGE);
    ptwm_reader_close(r);
    free(image.data);
}

static void test_max_nbytes(void)
{
    struct ptwm_writer *w = memory_writer(1, 0, BOTH);
    struct ptwm_decode_options options = PTWM_DECODE_OPTIONS_INIT;
    uint8_t buffer[8];
    const struct ptwm_request request = { 0, 0, PTWM_NONE, buffer, 8 };
    struct ptwm_error error = PTWM_ERROR_INIT;
    struct ptwm_reader *r;
    struct image image;

    CHECK_EQ(add(w, "t", PTWM_DTYPE_NONE, 0, NULL, "abcdefgh", 8), PTWM_OK);
    image = finish(w);
    r = open_image(&image);
    options.max_nbytes = 7;
    CHECK_EQ(ptwm_reader_decode(r, &request, 1, &options, &error), PTWM_ERR_LIMIT);
    CHECK_EQ(error.tensor, 0);
    options.max_nbytes = 8;
    CHECK_EQ(ptwm_reader_decode(r, &request, 1, &options, NULL), PTWM_OK);
    ptwm_reader_close(r);
    free(image.data);
}

/* ---------------------------------------------------------------------------------------------------- sharing */

static void test_equal_tensors_are_stored_once(void)
{
    static const uint64_t shape[2] = { 512, 256 }, other_shape[1] = { 512 * 256 };
    uint8_t *data = weights(512, 256, 4);
    struct ptwm_writer *once = memory_writer(1, 0, BOTH), *thrice = memory_writer(1, 0, BOTH);
    struct ptwm_tensor_info a = { .struct_nbytes = sizeof a }, b = { .struct_nbytes = sizeof b };
    struct image single, triple;
    struct ptwm_reader *r;

    CHECK_EQ(add(once, "a", PTWM_DTYPE_BF16, 2, shape, data, 512 * 256 * 2), PTWM_OK);
    single = finish(once);
    CHECK_EQ(add(thrice, "a", PTWM_DTYPE_BF16, 2, shape, data, 512 * 256 * 2), PTWM_OK);
    CHECK_EQ(add(thrice, "b", PTWM_DTYPE_F16, 1, other_shape, data, 512 * 256 * 2), PTWM_OK);
    CHECK_EQ(ptwm_writer_add_alias(thrice, "c", 1, "a", 1, NULL), PTWM_OK);
    CHECK_EQ(ptwm_writer_add_alias(thrice, "d", 1, "missing", 7, NULL), PTWM_ERR_NO_TENSOR);
    CHECK_EQ(add(thrice, "small", PTWM_DTYPE_BF16, 1, (const uint64_t[]){ 4 }, data, 8), PTWM_OK);
    CHECK_EQ(add(thrice, "small too", PTWM_DTYPE_BF16, 1, (const uint64_t[]){ 4 }, data, 8), PTWM_OK);
    CHECK_EQ(add(thrice, "small other", PTWM_DTYPE_BF16, 1, (const uint64_t[]){ 4 }, data + 8, 8), PTWM_OK);
    CHECK_EQ(ptwm_writer_add_alias(thrice, "e", 1, "small", 5, NULL), PTWM_OK);
    triple = finish(thrice);
    CHECK(triple.nbytes < single.nbytes + 400);
    r = open_image(&triple);
    CHECK(decodes_to(r, "a", data, 512 * 256 * 2) && decodes_to(r, "b", data, 512 * 256 * 2) &&
          decodes_to(r, "c", data, 512 * 256 * 2) && decodes_to(r, "small too", data, 8) &&
          decodes_to(r, "small other", data + 8, 8) && decodes_to(r, "e", data, 8));
    ptwm_reader_get_tensor(r, find(r, "small"), &a);
    ptwm_reader_get_tensor(r, find(r, "small too"), &b);
    CHECK(a.segment == b.segment && a.segment_offset == b.segment_offset);
    ptwm_reader_get_tensor(r, find(r, "c"), &b);
    CHECK(b.n_dims == 2 && b.dtype == PTWM_DTYPE_BF16);
    CHECK_EQ(ptwm_reader_verify(r, 1, NULL), PTWM_OK);
    ptwm_reader_close(r);
    free(single.data);
    free(triple.data);
    free(data);
}

static void test_small_neighbours_share_a_segment(void)
{
    enum { N = 300, EACH = 768 };
    uint8_t *data = weights(N, EACH / 2, 5);
    static const uint64_t shape[1] = { EACH / 2 };
    struct ptwm_writer *w = memory_writer(1, 0, BOTH);
    struct ptwm_reader_info info = { .struct_nbytes = sizeof info };
    struct ptwm_reader *r;
    struct image image;
    char name[16];

    for (int i = 0; i < N; i++) {
        snprintf(name, sizeof name, "t%d", i);
        CHECK_EQ(add(w, name, PTWM_DTYPE_BF16, 1, shape, data + i * EACH, EACH), PTWM_OK);
    }
    image = finish(w);
    r = open_image(&image);
    ptwm_reader_get_info(r, &info);
    CHECK_EQ(info.n_segments, 1);
    for (int i = 0; i < N; i++) {
        snprintf(name, sizeof name, "t%d", i);
        CHECK(decodes_to(r, name, data + i * EACH, EACH));
    }
    ptwm_reader_close(r);
    free(image.data);
    free(data);
}

/* ------------------------------------------------------------------------------------------------- bytes read */

struct counted_file {
    const struct image *image;
    uint64_t nbytes_read;
    uint64_t lowest, highest; /* of the offsets read */
};

static int counted_read(void *context, uint64_t offset, void *buffer, size_t nbytes)
{
    struct counted_file *f = context;
    memcpy(buffer, f->image->data + offset, nbytes);
    f->nbytes_read += nbytes;
    if (offset < f->lowest)
        f->lowest = offset;
    if (offset + nbytes > f->highest)
        f->highest = offset + nbytes;
    return 0;
}

static void test_only_what_is_needed_is_read(void)
{
    enum { ROWS = 1024, COLUMNS = 512, NBYTES = ROWS * COLUMNS * 2, CHUNK = 64 << 10 };
    static const uint64_t shape[2] = { ROWS, COLUMNS };
    uint8_t *a = weights(ROWS, COLUMNS, 6), *b = weights(ROWS, COLUMNS, 7), *buffer = malloc(NBYTES);
    struct ptwm_writer *w = memory_writer(1, CHUNK, BOTH);
    struct ptwm_tensor_info info = { .struct_nbytes = sizeof info };
    struct ptwm_segment_info segment = { .struct_nbytes = sizeof segment };
    struct ptwm_reader_info file_info = { .struct_nbytes = sizeof file_info };
    struct ptwm_stored_plane plane = { .struct_nbytes = sizeof plane };
    struct ptwm_layout *layout;
    struct counted_file file;
    struct ptwm_source source = { counted_read, &file, 0 };
    struct ptwm_reader *r = NULL;
    struct image image;
    uint64_t stored = 0;

    CHECK_EQ(add(w, "a", PTWM_DTYPE_BF16, 2, shape, a, NBYTES), PTWM_OK);
    CHECK_EQ(add(w, "b", PTWM_DTYPE_BF16, 2, shape, b, NBYTES), PTWM_OK);
    image = finish(w);
    file = (struct counted_file){ &image, 0, UINT64_MAX, 0 };
    source.total_nbytes = image.nbytes;
    CHECK_EQ(ptwm_reader_open_source(&source, NULL, &r, NULL), PTWM_OK);
    ptwm_reader_get_info(r, &file_info);
    CHECK_EQ(file.nbytes_read, 16 + 40 + file_info.manifest_nbytes);
    CHECK_EQ(ptwm_reader_bytes_read(r), file.nbytes_read);

    ptwm_reader_get_tensor(r, find(r, "b"), &info);
    ptwm_reader_get_segment(r, info.segment, &segment);
    file = (struct counted_file){ &image, 0, UINT64_MAX, 0 };
    CHECK_EQ(decode_range(r, find(r, "b"), 0, PTWM_NONE, buffer, NBYTES), PTWM_OK);
    CHECK(memcmp(buffer, b, NBYTES) == 0);
    CHECK(file.lowest >= segment.file_offset && file.highest <= segment.file_offset + segment.stored_nbytes);
    CHECK(file.nbytes_read <= segment.stored_nbytes);

    /* Some rows of the second and third chunk: the tail and those two. */
    CHECK_EQ(ptwm_reader_get_layout(r, info.segment, &layout, NULL), PTWM_OK);
    for (uint64_t chunk = 1; chunk <= 2; chunk++)
        for (uint32_t p = 0; ptwm_layout_get_plane(layout, chunk, p, &plane) == PTWM_OK; p++)
            stored += plane.stored_nbytes;
    ptwm_layout_free(layout);
    file = (struct counted_file){ &image, 0, UINT64_MAX, 0 };
    CHECK_EQ(decode_range(r, find(r, "b"), 100 * COLUMNS, 50 * COLUMNS, buffer, 50 * COLUMNS * 2), PTWM_OK);
    CHECK(memcmp(buffer, b + 100 * COLUMNS * 2, 50 * COLUMNS * 2) == 0);
    CHECK_EQ(file.nbytes_read, segment.tail_nbytes + stored);
    ptwm_reader_close(r);
    free(image.data);
    free(a);
    free(b);
    free(buffer);
}

/* ------------------------------------------------------------------------------------------------------ methods */

/* Whether all planes that are not what a label step leaves over are stored with that codec. */
static int uses_only(const struct ptwm_reader *r, uint32_t codec)
{
    struct ptwm_stored_plane plane = { .struct_nbytes = sizeof plane };
    struct ptwm_layout_info info = { .struct_nbytes = sizeof info };
    struct ptwm_layout *layout;
    int found = 0, only = 1;

    CHECK_EQ(ptwm_reader_get_layout(r, 0, &layout, NULL), PTWM_OK);
    ptwm_layout_get_info(layout, &info);
    for (uint64_t c = 0; c < info.n_chunks; c++)
        for (uint32_t p = 0; p < info.n_planes; p++) {
            CHECK_EQ(ptwm_layout_get_plane(layout, c, p, &plane), PTWM_OK);
            if (plane.kind != PTWM_PLANE_REST && plane.kind != PTWM_PLANE_LOW) {
                found = 1;
                only &= plane.codec == codec;
            }
        }
    ptwm_layout_free(layout);
    return found && only;
}

static struct image with_method(enum ptwm_method method, unsigned threads, const uint8_t *data, uint64_t rows,
                                uint64_t columns)
{
    struct ptwm_writer *w = memory_writer(threads, 128 << 10, BOTH);
    const uint64_t shape[2] = { rows, columns };
    struct ptwm_tensor_spec spec = spec_of("t", PTWM_DTYPE_BF16, 2, shape, data, rows * columns * 2);
    spec.method = method;
    CHECK_EQ(ptwm_writer_add(w, &spec, NULL), PTWM_OK);
    return finish(w);
}

static void test_methods(void)
{
    static const uint32_t codec_of[] = { 0, PTWM_CODEC_HUFFMAN, PTWM_CODEC_ZSTD, PTWM_CODEC_LABEL_RANS,
                                         PTWM_CODEC_LABEL_RANS, PTWM_CODEC_IDENTITY };
    uint8_t *data = weights(1500, 384, 8);
    size_t nbytes[6] = { 0 };

    for (int method = 1; method <= 5; method++) {
        struct image one, two;
        struct ptwm_reader *r;
        if (method == PTWM_METHOD_ZSTD && !ptwm_has_builtin_zstd()) {
            printf("SKIP method zstd: this build has none\n");
            nbytes[method] = SIZE_MAX;
            continue;
        }
        one = with_method((enum ptwm_method)method, 1, data, 1500, 384);
        two = with_method((enum ptwm_method)method, 3, data, 1500, 384);
        CHECK(one.nbytes == two.nbytes && memcmp(one.data, two.data, one.nbytes) == 0);
        r = open_image(&one);
        CHECK(decodes_to(r, "t", data, 1500 * 384 * 2));
        CHECK(uses_only(r, codec_of[method]));
        ptwm_reader_close(r);
        nbytes[method] = one.nbytes;
        free(one.data);
        free(two.data);
    }
    for (int method = 1; method <= 5; method++)
        CHECK(nbytes[3] <= nbytes[method] + nbytes[method] / 1000 + 64);
    free(data);
}

static void test_chains(void)
{
    static const uint8_t deltas[] = { 1, 8, 2, 8 }, label[] = { 3, 8, 4, 11 }, bad[] = { 9, 1 };
    struct ptwm_chain chains[3] = { { NULL, 0 }, { label, sizeof label }, { deltas, sizeof deltas } };
    struct ptwm_writer *w = memory_writer(1, 0, BOTH);
    static const uint64_t shape[1] = { 20000 };
    uint8_t *data = malloc(20000 * 8);
    struct ptwm_tensor_spec spec = spec_of("t", PTWM_DTYPE_I64, 1, shape, data, 20000 * 8);
    struct ptwm_layout_info info = { .struct_nbytes = sizeof info };
    struct ptwm_error error = PTWM_ERROR_INIT;
    struct ptwm_layout *layout;
    struct ptwm_reader *r;
    struct image image;

    for (int i = 0; i < 20000; i++)
        for (int b = 0; b < 8; b++)
            data[8 * i + b] = (uint8_t)((uint64_t)(i * 3 + 1000) >> 8 * b);
    spec.chains = chains;
    spec.n_chains = 3;
    CHECK_EQ(ptwm_writer_add(w, &spec, NULL), PTWM_OK);
    chains[1].bytes = bad;
    chains[1].nbytes = sizeof bad;
    spec.name = "u";
    CHECK_EQ(ptwm_writer_add(w, &spec, &error), PTWM_ERR_CHAIN);
    CHECK(strstr(error.detail, "unknown step 9") != NULL);
    spec.chains = &chains[2]; /* of multiples of eight bytes */
    spec.n_chains = 1;
    spec.dtype = PTWM_DTYPE_NONE;
    spec.n_dims = 0;
    spec.nbytes = 15;
    CHECK_EQ(ptwm_writer_add(w, &spec, NULL), PTWM_ERR_CHAIN);
    image = finish(w);
    r = open_image(&image);
    CHECK(decodes_to(r, "t", data, 20000 * 8));
    CHECK_EQ(ptwm_reader_get_layout(r, 0, &layout, NULL), PTWM_OK);
    ptwm_layout_get_info(layout, &info);
    CHECK(info.chain_nbytes == sizeof deltas && memcmp(info.chain, deltas, sizeof deltas) == 0);
    CHECK(image.nbytes < 20000);
    ptwm_layout_free(layout);
    ptwm_reader_close(r);
    free(image.data);
    free(data);
}

/* ------------------------------------------------------------------------------------------------------- damage */

/* A small file that has most of what a file can have. */
static struct image sample_file(uint32_t flags)
{
    struct ptwm_writer *w = memory_writer(1, 4096, flags);
    uint8_t *data = weights(260, 128, 9);
    uint8_t integers[512];

    for (int i = 0; i < 512; i++)
        integers[i] = (uint8_t)(i % 4 ? 0 : i / 4);
    add(w, "w", PTWM_DTYPE_BF16, 2, (const uint64_t[]){ 260, 128 }, data, 260 * 128 * 2);
    add(w, "i", PTWM_DTYPE_I32, 1, (const uint64_t[]){ 128 }, integers, 512);
    add(w, "e", PTWM_DTYPE_F64, 1, (const uint64_t[]){ 0 }, NULL, 0);
    add(w, "x", PTWM_DTYPE_NONE, 0, NULL, "hello", 5);
    ptwm_writer_set_metadata(w, "\xa1\x61k\x61v", 5, NULL);
    free(data);
    return finish(w);
}

/* Opens and decodes everything; PTWM_OK only if all of it succeeds. *same tells whether it is what it should be. */
static enum ptwm_status read_all(const uint8_t *bytes, size_t nbytes, const struct image *original, int *same)
{
    struct ptwm_reader *r = NULL, *o = open_image(original);
    enum ptwm_status status = ptwm_reader_open_memory(bytes, nbytes, NULL, &r, NULL);
    struct ptwm_reader_info info = { .struct_nbytes = sizeof info }, wanted = { .struct_nbytes = sizeof wanted };

    *same = 1;
    if (status == PTWM_OK) {
        ptwm_reader_get_info(r, &info);
        ptwm_reader_get_info(o, &wanted);
        *same = info.n_tensors == wanted.n_tensors;
        for (uint64_t i = 0; i < info.n_tensors && *same && status == PTWM_OK; i++) {
            struct ptwm_tensor_info a = { .struct_nbytes = sizeof a }, b = { .struct_nbytes = sizeof b };
            uint8_t *got, *expected;
            ptwm_reader_get_tensor(r, i, &a);
            ptwm_reader_get_tensor(o, i, &b);
            got = malloc((size_t)a.nbytes + 1);
            expected = malloc((size_t)b.nbytes + 1);
            status = decode_range(r, i, 0, PTWM_NONE, got, a.nbytes);
            CHECK_EQ(decode_range(o, i, 0, PTWM_NONE, expected, b.nbytes), PTWM_OK);
            *same = status != PTWM_OK || (a.nbytes == b.nbytes && memcmp(got, expected, (size_t)a.nbytes) == 0);
            free(got);
            free(expected);
        }
        if (status == PTWM_OK && nbytes < 100000)
            status = ptwm_reader_verify(r, 1, NULL) == PTWM_OK ? PTWM_OK : PTWM_ERR_HASH;
        ptwm_reader_close(r);
    }
    ptwm_reader_close(o);
    return status;
}

static void test_every_flipped_byte_is_found(void)
{
    struct image image = sample_file(BOTH);
    int same;

    CHECK_EQ(read_all(image.data, image.nbytes, &image, &same), PTWM_OK);
    for (size_t i = 0; i < image.nbytes; i += i > 200 && i + 1500 < image.nbytes ? 37 : 1)
        for (int bit = 0; bit < 8; bit += 7) {
            enum ptwm_status status;
            image.data[i] ^= (uint8_t)(1 << bit);
            {
                struct image original = { image.data, image.nbytes };
                uint8_t *damaged = malloc(image.nbytes);
                memcpy(damaged, image.data, image.nbytes);
                image.data[i] ^= (uint8_t)(1 << bit);
                status = read_all(damaged, original.nbytes, &image, &same);
                free(damaged);
            }
            CHECK(same);
            CHECK(status != PTWM_OK);
            if (!same || status == PTWM_OK)
                printf("byte %zu bit %d\n", i, bit);
        }
    free(image.data);
}

/* Without checks, flipped bytes may go unnoticed, but nothing leaves its buffers (the sanitizers watch). */
static void test_flipped_bytes_without_checks(void)
{
    struct image image = sample_file(0);
    int same;

    for (size_t i = 0; i < image.nbytes; i += i > 200 && i + 1500 < image.nbytes ? 11 : 1) {
        uint8_t *damaged = malloc(image.nbytes);
        memcpy(damaged, image.data, image.nbytes);
        damaged[i] ^= (uint8_t)(1 + i % 255);
        (void)read_all(damaged, image.nbytes, &image, &same);
        free(damaged);
    }
    CHECK_EQ(read_all(image.data, image.nbytes, &image, &same), PTWM_OK);
    free(image.data);
}

static void test_every_truncation_is_found(void)
{
    struct image image = sample_file(BOTH);
    struct ptwm_error error = PTWM_ERROR_INIT;
    struct ptwm_reader *r = NULL;
    uint8_t *longer = calloc(image.nbytes + 1, 1);

    for (size_t n = 0; n < image.nbytes; n += n > 100 && n + 1000 < image.nbytes ? 19 : 1) {
        uint8_t *part = malloc(n + 1);
        enum ptwm_status status;
        memcpy(part, image.data, n);
        status = ptwm_reader_open_memory(part, n, NULL, &r, NULL);
        CHECK(status == (n == 0 ? PTWM_ERR_NOT_PTWM : PTWM_ERR_TRUNCATED));
        free(part);
    }
    memcpy(longer, image.data, image.nbytes);
    CHECK_EQ(ptwm_reader_open_memory(longer, image.nbytes + 1, NULL, &r, &error), PTWM_ERR_TRUNCATED);
    memmove(longer + 1, image.data, image.nbytes);
    longer[0] = 0;
    CHECK_EQ(ptwm_reader_open_memory(longer, image.nbytes + 1, NULL, &r, &error), PTWM_ERR_NOT_PTWM);
    free(longer);
    free(image.data);
}

static void test_other_files_are_refused(void)
{
    static const uint8_t foreign[64] = { 0x89, 'P', 'T', 'W', 'M', '\r', '\n', 0x1A, '\n' };
    struct image image = sample_file(BOTH);
    struct ptwm_error error = PTWM_ERROR_INIT;
    struct ptwm_reader *r = NULL;

    CHECK_EQ(ptwm_reader_open_memory(foreign, sizeof foreign, NULL, &r, &error), PTWM_ERR_FOREIGN);
    CHECK_EQ(ptwm_reader_open_memory("some text, and more of it, and yet more, until it is long enough", 64, NULL, &r, NULL),
             PTWM_ERR_NOT_PTWM);
    image.data[8] = 2;
    CHECK_EQ(ptwm_reader_open_memory(image.data, image.nbytes, NULL, &r, NULL), PTWM_ERR_VERSION);
    image.data[8] = 1;
    CHECK_EQ(ptwm_reader_open_path("/", NULL, &r, &error), PTWM_ERR_IO);
    CHECK(error.os_error != 0);
    CHECK_EQ(ptwm_reader_open_path("/nonexistent/file.ptwm", NULL, &r, &error), PTWM_ERR_IO);
    CHECK(r == NULL);
    free(image.data);
}

/* ---------------------------------------------------------------------------------------------- planes by themselves */

/* The planes of chunk 0 of a file's first segment, with their lengths; to be freed. */
static uint8_t *planes_of(const struct image *image, uint64_t nbytes[16], uint32_t codecs[16],
                          enum ptwm_status *status)
{
    struct ptwm_stored_plane plane = { .struct_nbytes = sizeof plane };
    struct ptwm_reader *r = open_image(image);
    struct ptwm_layout *layout = NULL;
    uint64_t sum = 0;
    uint8_t *planes;

    CHECK_EQ(ptwm_reader_get_layout(r, 0, &layout, NULL), PTWM_OK);
    for (uint32_t p = 0; ptwm_layout_get_plane(layout, 0, p, &plane) == PTWM_OK; p++) {
        nbytes[p] = plane.raw_nbytes;
        codecs[p] = plane.codec;
        sum += plane.raw_nbytes;
    }
    planes = malloc(sum);
    CHECK_EQ(ptwm_layout_decode_planes(layout, 0, planes, sum - 1, NULL), PTWM_ERR_ARGUMENT);
    CHECK_EQ(ptwm_layout_decode_planes(layout, 0, planes, sum + 1, NULL), PTWM_ERR_ARGUMENT);
    CHECK_EQ(ptwm_layout_decode_planes(layout, 0, NULL, sum, NULL), PTWM_ERR_ARGUMENT);
    CHECK_EQ(ptwm_layout_decode_planes(layout, 1, planes, sum, NULL), PTWM_ERR_RANGE);
    *status = ptwm_layout_decode_planes(layout, 0, planes, sum, NULL);
    ptwm_layout_free(layout);
    ptwm_reader_close(r);
    return planes;
}

/* bfloat16 in one chunk; the symbols are exponent and top mantissa bit. */
static struct image bf16_image(const uint8_t *data, uint64_t n, enum ptwm_method method, const struct ptwm_chain *chain)
{
    struct ptwm_writer *w = memory_writer(1, 0, BOTH);
    struct ptwm_tensor_spec spec = spec_of("t", PTWM_DTYPE_BF16, 1, &n, data, 2 * n);

    spec.method = method;
    spec.chains = chain;
    spec.n_chains = 1;
    CHECK_EQ(ptwm_writer_add(w, &spec, NULL), PTWM_OK);
    return finish(w);
}

static void test_planes_are_what_the_chain_makes(void)
{
    enum { N = 20000 };
    static const uint8_t label[] = { 3, 2, 6, 9 }, bytes[] = { 2, 2 };
    const struct ptwm_chain label_chain = { label, sizeof label }, bytes_chain = { bytes, sizeof bytes };
    uint8_t *data = weights(100, 200, 9), *planes, *others;
    struct image images[3] = { bf16_image(data, N, PTWM_METHOD_RANS, &label_chain),
                               bf16_image(data, N, PTWM_METHOD_HUFFMAN, &label_chain),
                               bf16_image(data, N, PTWM_METHOD_MICROSCALE, &bytes_chain) };
    uint64_t nbytes[16];
    uint32_t codecs[16];
    enum ptwm_status status;
    int differ = 0;

    planes = planes_of(&images[0], nbytes, codecs, &status); /* label rANS, which carries the rest plane's beginning */
    CHECK_EQ(status, PTWM_OK);
    CHECK(codecs[0] == PTWM_CODEC_CARRIED && codecs[1] == PTWM_CODEC_LABEL_RANS);
    CHECK(nbytes[0] == (7 * N + 7) / 8 && nbytes[1] == 2 * N);
    for (size_t i = 0; i < N; i++)
        differ += (planes[nbytes[0] + 2 * i] | planes[nbytes[0] + 2 * i + 1] << 8) !=
                  ((data[2 * i] | data[2 * i + 1] << 8) >> 6 & 511);
    CHECK_EQ(differ, 0);
    others = planes_of(&images[1], nbytes, codecs, &status); /* the same planes by another codec */
    CHECK_EQ(status, PTWM_OK);
    CHECK(memcmp(planes, others, nbytes[0] + nbytes[1]) == 0);
    free(planes);
    free(others);

    planes = planes_of(&images[2], nbytes, codecs, &status);
    CHECK_EQ(status, PTWM_OK);
    for (size_t i = 0; i < N; i++)
        differ += planes[i] != data[2 * i] || planes[N + i] != data[2 * i + 1];
    CHECK_EQ(differ, 0);
    free(planes);

    images[2].data[100] ^= 1; /* in the first chunk's planes */
    planes = planes_of(&images[2], nbytes, codecs, &status);
    CHECK_EQ(status, PTWM_ERR_CHECKSUM);
    free(planes);
    for (int i = 0; i < 3; i++)
        free(images[i].data);
    free(data);
}

int main(void)
{
    RUN(test_everything_comes_back);
    RUN(test_ranges);
    RUN(test_sub_byte_ranges_are_whole_bytes);
    RUN(test_max_nbytes);
    RUN(test_equal_tensors_are_stored_once);
    RUN(test_a_large_file_in_memory);
    RUN(test_small_neighbours_share_a_segment);
    RUN(test_only_what_is_needed_is_read);
    RUN(test_methods);
    RUN(test_chains);
    RUN(test_planes_are_what_the_chain_makes);
    RUN(test_every_flipped_byte_is_found);
    RUN(test_flipped_bytes_without_checks);
    RUN(test_every_truncation_is_found);
    RUN(test_other_files_are_refused);
    CHECK_EXIT();
}
