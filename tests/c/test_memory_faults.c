/*
 * Memory and reads that are refused at any moment: each allocation of writing, copying and reading fails in turn, and each
 * read of a source. The result is PTWM_ERR_MEMORY or PTWM_ERR_IO, or right; nothing stays allocated. The allocator fails
 * once: what goes on after it without noticing shows up in the result.
 */
#define _DEFAULT_SOURCE
#include <errno.h>
#include <pthread.h>

#include "fault_model.h"
#include "plain_zstd.h"

/* A source that fails from its nth call on, and an allocator that fails at its nth. */
struct faults {
    const uint8_t *file;
    size_t nbytes;
    long reads_left, allocations_left;
    long n_allocations, n_live;
    size_t live;
    pthread_mutex_t lock; /* guards the rest */
};

static int faulty_read(void *context, uint64_t offset, void *buffer, size_t nbytes)
{
    struct faults *f = context;
    bool is_bad;

    pthread_mutex_lock(&f->lock);
    is_bad = f->reads_left-- <= 0;
    pthread_mutex_unlock(&f->lock);
    if (is_bad)
        return EIO;
    memcpy(buffer, f->file + offset, nbytes);
    return 0;
}

static void *faulty_alloc(void *context, size_t nbytes)
{
    struct faults *f = context;
    void *p = NULL;

    pthread_mutex_lock(&f->lock);
    f->n_allocations++;
    if (f->allocations_left-- != 0)
        p = malloc(nbytes);
    if (p != NULL) {
        f->live += nbytes;
        f->n_live++;
    }
    pthread_mutex_unlock(&f->lock);
    return p;
}

static void faulty_release(void *context, void *pointer, size_t nbytes)
{
    struct faults *f = context;

    pthread_mutex_lock(&f->lock);
    f->live -= nbytes;
    f->n_live--;
    pthread_mutex_unlock(&f->lock);
    free(pointer);
}

static void begin(struct faults *f, long reads, long allocations)
{
    f->reads_left = reads;
    f->allocations_left = allocations;
    f->n_allocations = 0;
}

static struct ptwm_allocator allocator_of(struct faults *f)
{
    const struct ptwm_allocator allocator = { faulty_alloc, faulty_release, f };
    return allocator;
}

/* ----------------------------------------------------------------------------------------------------- reading */

enum { NEVER = 1000000000 };

/* Decodes whole tensors, a range and the planes of a chunk, on so many threads, and verifies. */
static enum ptwm_status decode_all(const struct ptwm_reader *r, const struct model *m, unsigned threads)
{
    uint8_t *large = malloc(LARGE), *planes = malloc(2 * LARGE), small[SMALL], range[200];
    const struct ptwm_request requests[3] = { { 0, 0, PTWM_NONE, large, LARGE },
                                              { 7, 0, PTWM_NONE, small, SMALL },
                                              { 0, 30000, 100, range, 200 } };
    struct ptwm_decode_options options = PTWM_DECODE_OPTIONS_INIT;
    struct ptwm_layout_info info = { .struct_nbytes = sizeof info };
    struct ptwm_layout *layout = NULL;
    enum ptwm_status status;
    uint64_t nbytes = 0;

    options.threads = threads;
    status = ptwm_reader_decode(r, requests, 3, &options, NULL);
    if (status == PTWM_OK)
        CHECK(memcmp(large, m->large, LARGE) == 0 && memcmp(small, m->small[6], SMALL) == 0 &&
              memcmp(range, m->large + 60000, 200) == 0);
    if (status == PTWM_OK)
        status = ptwm_reader_verify(r, threads, NULL);
    if (status == PTWM_OK)
        status = ptwm_reader_get_layout(r, 0, &layout, NULL);
    if (status == PTWM_OK) {
        CHECK_EQ(ptwm_layout_get_info(layout, &info), PTWM_OK);
        for (uint32_t i = 0; i < info.n_planes; i++) {
            struct ptwm_stored_plane plane = { .struct_nbytes = sizeof plane };
            CHECK_EQ(ptwm_layout_get_plane(layout, 0, i, &plane), PTWM_OK);
            nbytes += plane.raw_nbytes;
        }
        status = ptwm_layout_decode_planes(layout, 0, planes, nbytes, NULL);
    }
    ptwm_layout_free(layout);
    free(planes);
    free(large);
    return status;
}

/* Opens, decodes, verifies and copies; the first status that is not PTWM_OK. */
static enum ptwm_status read_all(struct faults *f, const struct model *m, unsigned threads)
{
    const struct ptwm_allocator allocator = allocator_of(f);
    const struct ptwm_source source = { faulty_read, f, f->nbytes };
    struct ptwm_reader_options options = PTWM_READER_OPTIONS_INIT;
    struct ptwm_writer_options writer_options = PTWM_WRITER_OPTIONS_INIT;
    struct ptwm_reader *r = NULL;
    struct ptwm_writer *w = NULL;
    enum ptwm_status status;

    options.allocator = writer_options.allocator = &allocator;
    writer_options.threads = threads;
    status = ptwm_reader_open_source(&source, &options, &r, NULL);
    if (status == PTWM_OK)
        status = decode_all(r, m, threads);
    if (status == PTWM_OK)
        status = ptwm_writer_open_memory(&writer_options, &w, NULL);
    for (uint64_t i = 0; i < 3 && status == PTWM_OK; i++)
        status = ptwm_writer_copy(w, r, i, NULL, 0, NULL);
    if (status == PTWM_OK)
        status = ptwm_writer_finish(w, NULL);
    ptwm_writer_close(w);
    ptwm_reader_close(r);
    return status;
}

/* The same with files at a path. */
static enum ptwm_status read_path(struct faults *f, const struct model *m, enum ptwm_backend backend)
{
    const struct ptwm_allocator allocator = allocator_of(f);
    struct ptwm_reader_options options = PTWM_READER_OPTIONS_INIT;
    struct ptwm_reader *r = NULL;
    enum ptwm_status status;

    options.allocator = &allocator;
    options.backend = backend;
    status = ptwm_reader_open_path(path, &options, &r, NULL);
    if (status == PTWM_OK)
        status = decode_all(r, m, 1);
    ptwm_reader_close(r);
    return status;
}

static void check_nothing_left(const struct faults *f)
{
    CHECK_EQ(f->live, 0);
    CHECK_EQ(f->n_live, 0);
}

static struct ptwm_writer *model_in_memory(const struct model *m, struct faults *f)
{
    struct ptwm_writer_options options = PTWM_WRITER_OPTIONS_INIT;
    struct ptwm_writer *w = NULL;
    const void *file;

    options.chunk_nbytes = 16 << 10;
    CHECK_EQ(ptwm_writer_open_memory(&options, &w, NULL), PTWM_OK);
    CHECK_EQ(add_model(w, m, NULL), PTWM_OK);
    CHECK_EQ(ptwm_writer_get_memory(w, &file, &f->nbytes), PTWM_OK);
    f->file = file;
    return w;
}

static void test_every_read_of_a_source_fails(void)
{
    struct faults f = { .lock = PTHREAD_MUTEX_INITIALIZER };
    struct model *m = make_model(1);
    struct ptwm_writer *w = model_in_memory(m, &f);

    for (unsigned threads = 1; threads <= 3; threads += 2) {
        enum ptwm_status status = PTWM_ERR_IO;
        long n = 0;
        for (; status != PTWM_OK && n < 5000; n++) {
            begin(&f, n, -1);
            status = read_all(&f, m, threads);
            CHECK(status == PTWM_OK || status == PTWM_ERR_IO);
            check_nothing_left(&f);
        }
        CHECK(n > 8 && status == PTWM_OK);
    }
    ptwm_writer_close(w);
    free(m);
}

static void test_every_allocation_of_a_reader_fails(void)
{
    struct faults f = { .lock = PTHREAD_MUTEX_INITIALIZER };
    struct model *m = make_model(2);
    struct ptwm_writer *w = model_in_memory(m, &f);

    CHECK_EQ(write_model(m, NULL), PTWM_OK);
    for (unsigned way = 0; way < 4; way++) {
        long n = 0, n_failed = 0;
        do {
            enum ptwm_status status;
            begin(&f, NEVER, n++);
            status = way < 2 ? read_all(&f, m, way == 0 ? 1 : 3) : read_path(&f, m, (enum ptwm_backend)(way - 2));
            CHECK(status == PTWM_OK || status == PTWM_ERR_MEMORY); /* there may be some that it can do without */
            n_failed += status != PTWM_OK;
            check_nothing_left(&f);
        } while (f.allocations_left < 0 && n < 20000);
        printf("reading, way %u: %ld of %ld allocations are needed\n", way, n_failed, n - 1);
        CHECK(n < 20000 && n_failed > 20);
    }
    ptwm_writer_close(w);
    n_files(true);
    free(m);
}

/* ----------------------------------------------------------------------------------------------------- writing */

static void fill(uint8_t *data, size_t nbytes, unsigned kind, uint64_t seed)
{
    for (size_t i = 0; i < nbytes; i++) {
        const uint64_t x = check_random(&seed);
        switch (kind) {
        case 0: data[i] = (uint8_t)(i % 4 == 3 ? 60 + (x & x >> 8 & 3) : x); break;
        case 1: data[i] = (uint8_t)(i % 8 == 0 ? i / 8 : 0); break;
        case 2: data[i] = (uint8_t)(x & x >> 8 & x >> 16 & 7); break;
        default: data[i] = (uint8_t)(i % 2 ? 56 + x % 5 + i / 1024 % 3 : x); break;
        }
    }
}

/* Sizes are whole rows of three of any type. The large ones are segments of their own, of many chunks. */
enum { LITTLE_NBYTES = 768, MIDDLE_NBYTES = 9 * 768, BIG_NBYTES = 96 * 768 };

static const struct {
    uint32_t dtype;
    unsigned kind;
    enum ptwm_method method;
    size_t nbytes;
} wanted[] = {
    { PTWM_DTYPE_F32, 0, PTWM_METHOD_MICROSCALE, MIDDLE_NBYTES },
    { PTWM_DTYPE_BF16, 3, PTWM_METHOD_MICROSCALE, MIDDLE_NBYTES },
    { PTWM_DTYPE_F16, 3, PTWM_METHOD_MICROSCALE, MIDDLE_NBYTES },
    { PTWM_DTYPE_F64, 1, PTWM_METHOD_MICROSCALE, MIDDLE_NBYTES },
    { PTWM_DTYPE_I64, 1, PTWM_METHOD_MICROSCALE, MIDDLE_NBYTES },
    { PTWM_DTYPE_F8_E4M3, 2, PTWM_METHOD_MICROSCALE, MIDDLE_NBYTES },
    { PTWM_DTYPE_F4, 2, PTWM_METHOD_MICROSCALE, MIDDLE_NBYTES },
    { PTWM_DTYPE_F6_E2M3, 2, PTWM_METHOD_MICROSCALE, MIDDLE_NBYTES },
    { PTWM_DTYPE_BF16, 3, PTWM_METHOD_RANS, MIDDLE_NBYTES },
    { PTWM_DTYPE_I8, 2, PTWM_METHOD_HUFFMAN, MIDDLE_NBYTES },
    { PTWM_DTYPE_BF16, 3, PTWM_METHOD_ZSTD, MIDDLE_NBYTES },
    { PTWM_DTYPE_U8, 3, PTWM_METHOD_IDENTITY, MIDDLE_NBYTES },
    { PTWM_DTYPE_F32, 0, PTWM_METHOD_MICROSCALE, BIG_NBYTES },
    { PTWM_DTYPE_BF16, 3, PTWM_METHOD_MICROSCALE, BIG_NBYTES },
    { PTWM_DTYPE_U8, 2, PTWM_METHOD_MICROSCALE, BIG_NBYTES },
};
enum { N_WANTED = sizeof wanted / sizeof wanted[0], N_BIG = 3, N_MIDDLE = N_WANTED - N_BIG, N_LITTLE = 9 };

struct wanted_data {
    uint8_t bytes[N_WANTED][BIG_NBYTES];
};

/* Tensors of all ways of coding together, little ones, a second name and metadata, with equal ones among them. */
static enum ptwm_status add_wanted(struct ptwm_writer *w, const struct wanted_data *data, unsigned n_wanted)
{
    struct ptwm_tensor_spec specs[N_WANTED + N_LITTLE];
    uint64_t shapes[N_WANTED + N_LITTLE][2];
    char names[N_WANTED + N_LITTLE][16];
    enum ptwm_status status;

    for (unsigned i = 0; i < n_wanted + N_LITTLE; i++) {
        const unsigned k = i < n_wanted ? i : (i - n_wanted) % 3;
        const struct ptwm_tensor_spec init = PTWM_TENSOR_SPEC_INIT;
        specs[i] = init;
        specs[i].nbytes = i < n_wanted ? wanted[i].nbytes : LITTLE_NBYTES;
        snprintf(names[i], sizeof names[i], "%u", i);
        shapes[i][0] = 3;
        shapes[i][1] = specs[i].nbytes * 8 / ptwm_dtype_bits(wanted[k].dtype) / 3;
        specs[i].name = names[i];
        specs[i].name_nbytes = strlen(names[i]);
        specs[i].dtype = wanted[k].dtype;
        specs[i].n_dims = 2;
        specs[i].shape = shapes[i];
        specs[i].data = data->bytes[k] + (i < n_wanted ? 0 : i / 6 * LITTLE_NBYTES); /* some little ones are equal */
        specs[i].method = wanted[k].method;
    }
    status = ptwm_writer_add_many(w, specs, n_wanted + N_LITTLE, NULL);
    specs[1].name = "again";
    specs[1].name_nbytes = 5;
    if (status == PTWM_OK)
        status = ptwm_writer_add(w, &specs[1], NULL);
    if (status == PTWM_OK)
        status = ptwm_writer_add_alias(w, "alias", 5, "2", 1, NULL);
    if (status == PTWM_OK)
        status = ptwm_writer_set_metadata(w, "\xA1\x61k\x61v", 5, NULL);
    if (status == PTWM_OK)
        status = ptwm_writer_set_source(w, "\xA1\x61k\x61v", 5, NULL);
    if (status == PTWM_OK)
        status = ptwm_writer_finish(w, NULL);
    return status;
}

/* How a file is written. */
struct way {
    unsigned threads;
    int level;
    bool to_path;
    unsigned n_wanted;
    long stride; /* each so-manieth allocation fails */
};

static enum ptwm_status write_wanted(struct faults *f, const struct wanted_data *data, const struct way *way)
{
    const struct ptwm_allocator allocator = allocator_of(f);
    struct ptwm_writer_options options = PTWM_WRITER_OPTIONS_INIT;
    struct ptwm_writer *w = NULL;
    enum ptwm_status status;

    options.allocator = &allocator;
    options.threads = way->threads;
    options.level = way->level;
    options.chunk_nbytes = 16 << 10;
    options.zstd = &plain_zstd;
    status = way->to_path ? ptwm_writer_open_path(path, &options, &w, NULL) : ptwm_writer_open_memory(&options, &w, NULL);
    if (status == PTWM_OK)
        status = add_wanted(w, data, way->n_wanted);
    if (status != PTWM_OK && w != NULL)
        CHECK_EQ(ptwm_writer_finish(w, NULL), PTWM_ERR_STATE);
    ptwm_writer_close(w);
    return status;
}

static void check_wanted_file(const struct wanted_data *data, unsigned n_wanted)
{
    struct ptwm_reader_options options = PTWM_READER_OPTIONS_INIT;
    struct ptwm_reader *r = NULL;
    uint8_t *got = malloc(BIG_NBYTES);

    options.zstd = &plain_zstd;
    CHECK_EQ(ptwm_reader_open_path(path, &options, &r, NULL), PTWM_OK);
    for (uint64_t i = 0; i < n_wanted; i++) {
        const struct ptwm_request request = { i, 0, PTWM_NONE, got, wanted[i].nbytes };
        CHECK_EQ(ptwm_reader_decode(r, &request, 1, NULL, NULL), PTWM_OK);
        CHECK(memcmp(got, data->bytes[i], wanted[i].nbytes) == 0);
    }
    CHECK_EQ(ptwm_reader_verify(r, 1, NULL), PTWM_OK);
    ptwm_reader_close(r);
    free(got);
}

static void test_every_allocation_of_a_writer_fails(void)
{
    static const struct way ways[] = {
        { 1, 0, false, N_MIDDLE, 1 }, { 3, 0, false, N_WANTED, 7 }, { 2, 0, true, N_MIDDLE, 5 }, { 1, 12, false, N_WANTED, 17 }
    };
    struct faults f = { .lock = PTHREAD_MUTEX_INITIALIZER };
    struct wanted_data *data = malloc(sizeof *data);

    for (unsigned i = 0; i < N_WANTED; i++)
        fill(data->bytes[i], wanted[i].nbytes, wanted[i].kind, i);
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
        long n = 0, n_failed = 0;
        begin(&f, NEVER, -1);
        CHECK_EQ(write_wanted(&f, data, &ways[i]), PTWM_OK);
        if (check_failures > 0)
            break;
        n_files(true);
        do {
            enum ptwm_status status;
            begin(&f, NEVER, n);
            n += ways[i].stride;
            status = write_wanted(&f, data, &ways[i]);
            CHECK(status == PTWM_OK || status == PTWM_ERR_MEMORY);
            n_failed += status != PTWM_OK;
            check_nothing_left(&f);
            if (ways[i].to_path) {
                if (status == PTWM_OK)
                    check_wanted_file(data, ways[i].n_wanted);
                CHECK_EQ(n_files(true), status == PTWM_OK);
            }
        } while (f.allocations_left < 0 && n < 50000);
        printf("writing, way %zu: %ld of %ld allocations fail it\n", i, n_failed, n / ways[i].stride - 1);
        CHECK(n < 50000 && n_failed > 30);
    }
    free(data);
}

int main(void)
{
    if (!make_directory())
        return 1;
    RUN(test_every_read_of_a_source_fails);
    RUN(test_every_allocation_of_a_reader_fails);
    RUN(test_every_allocation_of_a_writer_fails);
    rmdir(directory);
    CHECK_EXIT();
}
