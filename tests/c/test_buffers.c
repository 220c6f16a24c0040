/*
 * Files written into memory of the caller's that grows: they are those that sinks get, the memory may move whenever it
 * grows, it is as long as the file in the end, and is not touched after it could not grow.
 */
#include <stdbool.h>

#include "check.h"
#include "ptwm.h"

/* Memory that moves at each call and is exactly as long as it was asked to be, so that sanitizers see each mistake. */
struct moving {
    uint8_t *data;
    size_t nbytes;
    long left; /* calls until they fail; negative: never */
    unsigned n_calls;
};

static void *move(void *context, size_t nbytes)
{
    struct moving *m = context;
    uint8_t *data = m->left != 0 ? malloc(nbytes) : NULL;

    if (data != NULL && m->data != NULL)
        memcpy(data, m->data, m->nbytes < nbytes ? m->nbytes : nbytes);
    if (data != NULL && m->nbytes < nbytes)
        memset(data + m->nbytes, 0xA5, nbytes - m->nbytes);
    free(m->data);
    m->data = data;
    m->nbytes = data != NULL ? nbytes : 0;
    m->left -= m->left > 0;
    m->n_calls++;
    return data;
}

/* What a sink is given. */
struct collected {
    uint8_t *data;
    size_t nbytes;
};

static int collect(void *context, const void *data, size_t nbytes)
{
    struct collected *c = context;
    uint8_t *longer = realloc(c->data, c->nbytes + nbytes);

    if (longer == NULL)
        return 12; /* ENOMEM */
    memcpy(longer + c->nbytes, data, nbytes);
    c->data = longer;
    c->nbytes += nbytes;
    return 0;
}

/* ---------------------------------------------------------------------------------------------------------- models */

enum { COLUMNS = 256, CHUNK_NBYTES = 64 << 10 };

enum content {
    WEIGHTS, /* bfloat16, rows of several scales */
    FLOAT32, /* weights with low halves */
    NOISE,   /* bytes that cannot be compressed */
    ZEROS,
    N_CONTENTS
};

static uint16_t weight(uint64_t *seed, size_t row)
{
    const uint64_t r = check_random(seed);
    return (uint16_t)((r & 0x807F) | (uint64_t)(100 + row * 7919 % 6 * 4 + (r >> 16) % 2 + (r >> 32) % 3) << 7);
}

static uint8_t *make_content(enum content content, size_t nbytes)
{
    uint8_t *data = malloc(nbytes);
    uint64_t seed = content + 1u;

    for (size_t i = 0; i < nbytes; i += 2) {
        const bool is_odd = content == NOISE || (content == FLOAT32 && i % 4 == 0);
        const uint16_t v = content == ZEROS ? 0
                           : is_odd         ? (uint16_t)(check_random(&seed) >> 20)
                                            : weight(&seed, i / 2 / COLUMNS);
        data[i] = (uint8_t)v;
        data[i + 1] = (uint8_t)(v >> 8);
    }
    return data;
}

static struct ptwm_tensor_spec spec_of(const char *name, enum content content, const uint8_t *data, size_t nbytes,
                                       uint64_t shape[2])
{
    struct ptwm_tensor_spec spec = PTWM_TENSOR_SPEC_INIT;

    spec.name = name;
    spec.name_nbytes = strlen(name);
    spec.dtype = content == FLOAT32 ? PTWM_DTYPE_F32 : content == NOISE ? PTWM_DTYPE_U8 : PTWM_DTYPE_BF16;
    spec.n_dims = 2;
    shape[0] = nbytes / COLUMNS / (ptwm_dtype_bits(spec.dtype) / 8);
    shape[1] = COLUMNS;
    spec.shape = shape;
    spec.data = data;
    spec.nbytes = nbytes;
    return spec;
}

/* ----------------------------------------------------------------------------------------------------------- tests */

static struct ptwm_writer_options options_of(unsigned threads)
{
    struct ptwm_writer_options options = PTWM_WRITER_OPTIONS_INIT;
    options.threads = threads;
    options.chunk_nbytes = CHUNK_NBYTES;
    return options;
}

/* Adds tensors together or one by one and finishes. */
static enum ptwm_status write_all(struct ptwm_writer *w, const struct ptwm_tensor_spec *specs, size_t n, bool together)
{
    enum ptwm_status status = together ? ptwm_writer_add_many(w, specs, n, NULL) : PTWM_OK;

    for (size_t i = 0; i < n && !together && status == PTWM_OK; i++)
        status = ptwm_writer_add(w, &specs[i], NULL);
    return status == PTWM_OK ? ptwm_writer_finish(w, NULL) : status;
}

static void test_the_file_is_the_one_that_a_sink_gets(void)
{
    static const size_t sizes[] = { 60 * CHUNK_NBYTES, 3 * CHUNK_NBYTES - 2048, 1024 };
    enum { N_SIZES = 3, N = N_CONTENTS * N_SIZES };
    struct ptwm_tensor_spec specs[N];
    uint64_t shapes[N][2];
    char names[N][8];
    uint8_t *contents[N_CONTENTS];
    struct collected expected = { NULL, 0 };
    const struct ptwm_sink sink = { collect, &expected };
    const struct ptwm_writer_options options = options_of(1);
    struct ptwm_writer *w = NULL;
    size_t n = 0;

    for (int c = 0; c < N_CONTENTS; c++) {
        contents[c] = make_content((enum content)c, sizes[0]);
        for (int s = 0; s < N_SIZES; s++, n++) {
            snprintf(names[n], sizeof names[n], "%d %d", c, s);
            specs[n] = spec_of(names[n], (enum content)c, contents[c], sizes[s], shapes[n]);
        }
    }
    CHECK_EQ(ptwm_writer_open_sink(&sink, &options, &w, NULL), PTWM_OK);
    CHECK_EQ(write_all(w, specs, N, true), PTWM_OK);
    ptwm_writer_close(w);
    for (unsigned way = 0; way < 4; way++) {
        const struct ptwm_writer_options own = options_of(way < 2 ? 1 : 3);
        struct moving memory = { NULL, 0, -1, 0 };
        const struct ptwm_buffer buffer = { move, &memory };
        const void *file = NULL;
        size_t nbytes = 0;

        CHECK_EQ(ptwm_writer_open_buffer(&buffer, &own, &w, NULL), PTWM_OK);
        CHECK_EQ(ptwm_writer_get_memory(w, &file, &nbytes), PTWM_ERR_STATE);
        CHECK_EQ(write_all(w, specs, N, way % 2 == 0), PTWM_OK);
        CHECK_EQ(ptwm_writer_get_memory(w, &file, &nbytes), PTWM_OK);
        CHECK(file == memory.data && nbytes == memory.nbytes);
        CHECK(memory.n_calls < 40); /* the length grows geometrically */
        ptwm_writer_close(w);
        CHECK(memory.nbytes == expected.nbytes && memcmp(memory.data, expected.data, expected.nbytes) == 0);
        free(memory.data);
    }
    free(expected.data);
    for (int c = 0; c < N_CONTENTS; c++)
        free(contents[c]);
}

static void test_equal_tensors_are_found_in_memory_that_moves(void)
{
    const size_t nbytes = 20 * CHUNK_NBYTES;
    uint8_t *data = make_content(WEIGHTS, nbytes), *noise = make_content(NOISE, nbytes);
    uint64_t shapes[3][2];
    const struct ptwm_tensor_spec specs[3] = { spec_of("a", WEIGHTS, data, nbytes, shapes[0]),
                                               spec_of("n", NOISE, noise, nbytes, shapes[1]),
                                               spec_of("b", WEIGHTS, data, nbytes, shapes[2]) };
    const struct ptwm_writer_options options = options_of(1);
    struct moving memory = { NULL, 0, -1, 0 };
    const struct ptwm_buffer buffer = { move, &memory };
    struct ptwm_writer *w = NULL;
    struct ptwm_reader *r = NULL;
    uint8_t *got = malloc(nbytes);
    const struct ptwm_request request = { 2, 0, PTWM_NONE, got, nbytes };

    CHECK_EQ(ptwm_writer_open_buffer(&buffer, &options, &w, NULL), PTWM_OK);
    CHECK_EQ(write_all(w, specs, 3, false), PTWM_OK);
    ptwm_writer_close(w);
    CHECK(memory.nbytes < 2 * nbytes); /* of three that would take 2.3 times as much */
    CHECK_EQ(ptwm_reader_open_memory(memory.data, memory.nbytes, NULL, &r, NULL), PTWM_OK);
    CHECK_EQ(ptwm_reader_verify(r, 1, NULL), PTWM_OK);
    CHECK_EQ(ptwm_reader_decode(r, &request, 1, NULL, NULL), PTWM_OK);
    CHECK(memcmp(got, data, nbytes) == 0);
    ptwm_reader_close(r);
    free(memory.data);
    free(got);
    free(noise);
    free(data);
}

static void test_memory_that_does_not_grow(void)
{
    const size_t nbytes = 20 * CHUNK_NBYTES;
    uint8_t *noise = make_content(NOISE, nbytes);
    uint64_t shape[2];
    const struct ptwm_tensor_spec spec = spec_of("n", NOISE, noise, nbytes, shape);
    const struct ptwm_writer_options options = options_of(1);
    enum ptwm_status status = PTWM_ERR_MEMORY;
    long n;

    for (n = 0; status != PTWM_OK && n < 100; n++) {
        struct moving memory = { NULL, 0, n, 0 };
        const struct ptwm_buffer buffer = { move, &memory };
        struct ptwm_writer *w = NULL;

        status = ptwm_writer_open_buffer(&buffer, &options, &w, NULL);
        CHECK_EQ(w == NULL, status != PTWM_OK);
        if (status == PTWM_OK)
            status = write_all(w, &spec, 1, false);
        if (status != PTWM_OK) {
            CHECK_EQ(status, PTWM_ERR_MEMORY);
            CHECK(memory.data == NULL);
            if (w != NULL)
                CHECK_EQ(ptwm_writer_finish(w, NULL), PTWM_ERR_STATE);
        }
        ptwm_writer_close(w);
        free(memory.data);
    }
    CHECK(n >= 4 && n < 100); /* the header, what is expected, what is more than that, the exact length */
    free(noise);
}

static void test_arguments(void)
{
    struct moving memory = { NULL, 0, -1, 0 };
    const struct ptwm_buffer buffer = { move, &memory }, none = { NULL, NULL };
    struct ptwm_writer_options options = options_of(1);
    struct ptwm_writer *w = NULL;

    CHECK_EQ(ptwm_writer_open_buffer(NULL, &options, &w, NULL), PTWM_ERR_ARGUMENT);
    CHECK_EQ(ptwm_writer_open_buffer(&none, &options, &w, NULL), PTWM_ERR_ARGUMENT);
    CHECK_EQ(ptwm_writer_open_buffer(&buffer, &options, NULL, NULL), PTWM_ERR_ARGUMENT);
    options.chunk_nbytes = 1;
    CHECK_EQ(ptwm_writer_open_buffer(&buffer, &options, &w, NULL), PTWM_ERR_ARGUMENT);
    CHECK_EQ(memory.n_calls, 0);
    /* What is asked for is in vain or not, but nothing else happens to the memory. */
    memset(&memory, 0x5A, sizeof memory);
    ptwm_memory_prefer_huge_pages(&memory, sizeof memory);
    ptwm_memory_prefer_huge_pages(NULL, 0);
    CHECK(memory.n_calls == 0x5A5A5A5A);
}

int main(void)
{
    RUN(test_the_file_is_the_one_that_a_sink_gets);
    RUN(test_equal_tensors_are_found_in_memory_that_moves);
    RUN(test_memory_that_does_not_grow);
    RUN(test_arguments);
    CHECK_EXIT();
}
