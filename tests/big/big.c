/*
 * What is larger than 32 bits: a file and a tensor of more than 4 GiB, a tensor of 2^31 + 1 elements, a million tensors.
 * Data comes from pages that are not there yet and from a generator, and results are looked at in parts, so that memory
 * stays small; that it does is checked. Takes 5 GiB of disk in the directory given, and a minute.
 * Usage: big [DIRECTORY]
 */
#define _DEFAULT_SOURCE
#define _FILE_OFFSET_BITS 64
#include <inttypes.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "check.h"
#include "ptwm.h"

static char path[4096];

static double seconds(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* The largest memory so far, in MiB; on Linux ru_maxrss is in KiB. */
static long peak_mib(void)
{
    struct rusage usage;

    CHECK_EQ(getrusage(RUSAGE_SELF, &usage), 0);
    return usage.ru_maxrss / 1024;
}

static uint64_t file_nbytes(void)
{
    struct stat st;

    CHECK_EQ(stat(path, &st), 0);
    return (uint64_t)st.st_size;
}

static struct ptwm_writer *new_writer(void)
{
    struct ptwm_writer_options options = PTWM_WRITER_OPTIONS_INIT;
    struct ptwm_writer *w = NULL;

    options.threads = 2;
    CHECK_EQ(ptwm_writer_open_path(path, &options, &w, NULL), PTWM_OK);
    return w;
}

static void add(struct ptwm_writer *w, const char *name, uint32_t dtype, const void *data, uint64_t nbytes,
                enum ptwm_method method)
{
    const uint64_t shape[1] = { nbytes * 8 / ptwm_dtype_bits(dtype) };
    struct ptwm_tensor_spec spec = PTWM_TENSOR_SPEC_INIT;
    struct ptwm_error error = PTWM_ERROR_INIT;

    spec.name = name;
    spec.name_nbytes = strlen(name);
    spec.dtype = dtype;
    spec.n_dims = 1;
    spec.shape = shape;
    spec.data = data;
    spec.nbytes = nbytes;
    spec.method = method;
    if (ptwm_writer_add(w, &spec, &error) != PTWM_OK) {
        printf("%s: %s, %s\n", name, ptwm_status_string(error.status), error.detail);
        CHECK(false);
    }
}

static struct ptwm_reader *open_reader(enum ptwm_backend backend)
{
    struct ptwm_reader_options options = PTWM_READER_OPTIONS_INIT;
    struct ptwm_reader *r = NULL;

    options.backend = backend;
    CHECK_EQ(ptwm_reader_open_path(path, &options, &r, NULL), PTWM_OK);
    return r;
}

/* Noise that depends on a number. */
static void fill(uint8_t *data, size_t nbytes, uint64_t number)
{
    uint64_t seed = number * 0x9E3779B97F4A7C15u;

    for (size_t i = 0; i < nbytes; i += 8) {
        const uint64_t x = check_random(&seed);
        memcpy(data + i, &x, 8);
    }
}

/* ------------------------------------------------------------------------------------------------------- cases */

/* More than 4 GiB of noise, tensor by tensor. */
static void test_a_large_file(void)
{
    enum { EACH = 64 << 20, N = 68 };
    uint8_t *data = malloc(EACH), *got = malloc(EACH);
    struct ptwm_writer *w = new_writer();
    double begin = seconds();
    char name[16];

    for (unsigned i = 0; i < N; i++) {
        fill(data, EACH, i);
        snprintf(name, sizeof name, "%u", i);
        add(w, name, PTWM_DTYPE_U8, data, EACH, PTWM_METHOD_IDENTITY);
    }
    CHECK_EQ(ptwm_writer_finish(w, NULL), PTWM_OK);
    ptwm_writer_close(w);
    CHECK(file_nbytes() > (uint64_t)N * EACH);
    printf("file: %" PRIu64 " bytes written in %.1f s, ", file_nbytes(), seconds() - begin);
    for (int backend = 0; backend < 2; backend++) {
        struct ptwm_reader *r = open_reader((enum ptwm_backend)backend);
        for (unsigned i = 0; i < N; i += i == 0 ? 62 : 1) {
            const struct ptwm_request request = { i, 0, PTWM_NONE, got, EACH };
            fill(data, EACH, i);
            CHECK_EQ(ptwm_reader_decode(r, &request, 1, NULL, NULL), PTWM_OK);
            CHECK(memcmp(data, got, EACH) == 0);
        }
        ptwm_reader_close(r);
    }
    printf("peak %ld MiB\n", peak_mib());
    CHECK(peak_mib() < 1200); /* with the pages of the file that are mapped */
    unlink(path);
    free(data);
    free(got);
}

/* Elements that are zero but for a few around what 31 and 32 bits can count; the pages between are the system's one of zeros. */
static void check_large_tensor(const char *what, uint32_t dtype, uint64_t nbytes)
{
    const uint64_t width = ptwm_dtype_bits(dtype) / 8, n = nbytes / width;
    const uint64_t marks[] = { 0, 4095, ((uint64_t)1 << 31) - 8, (uint64_t)1 << 31, nbytes / 2 / 8 * 8, nbytes - 1 };
    uint8_t *data = mmap(NULL, (size_t)nbytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    struct ptwm_tensor_info info = { .struct_nbytes = sizeof info };
    struct ptwm_writer *w = new_writer();
    double begin = seconds();

    CHECK(data != MAP_FAILED);
#ifdef MADV_NOHUGEPAGE
    (void)madvise(data, (size_t)nbytes, MADV_NOHUGEPAGE); /* a huge page of zeros would be one of its own, once written to */
#endif
    for (size_t i = 0; i < sizeof marks / sizeof marks[0]; i++)
        data[marks[i]] = (uint8_t)(60 + i);
    add(w, "large", dtype, data, nbytes, PTWM_METHOD_MICROSCALE);
    CHECK_EQ(ptwm_writer_finish(w, NULL), PTWM_OK);
    ptwm_writer_close(w);
    printf("%s: %" PRIu64 " elements, %" PRIu64 " bytes: %" PRIu64 " stored, %.1f s, ", what, n, nbytes, file_nbytes(),
           seconds() - begin);
    begin = seconds();
    for (int backend = 0; backend < 2; backend++) {
        struct ptwm_reader *r = open_reader((enum ptwm_backend)backend);
        CHECK_EQ(ptwm_reader_get_tensor(r, 0, &info), PTWM_OK);
        CHECK(info.nbytes == nbytes && info.shape[0] == n);
        for (size_t i = 0; i < sizeof marks / sizeof marks[0]; i++) {
            const uint64_t first = marks[i] / width > 500 ? marks[i] / width - 500 : 0;
            const uint64_t count = n - first < 1000 ? n - first : 1000;
            uint8_t got[8 * 1000];
            const struct ptwm_request request = { 0, first, count, got, count * width };
            CHECK_EQ(ptwm_reader_decode(r, &request, 1, NULL, NULL), PTWM_OK);
            CHECK(memcmp(got, data + first * width, (size_t)(count * width)) == 0);
        }
        if (backend == 0)
            CHECK_EQ(ptwm_reader_verify(r, 2, NULL), PTWM_OK);
        ptwm_reader_close(r);
    }
    printf("verified in %.1f s, peak %ld MiB\n", seconds() - begin, peak_mib());
    CHECK(peak_mib() < 1200);
    munmap(data, (size_t)nbytes);
    unlink(path);
}

static void test_many_elements(void)
{
    check_large_tensor("elements", PTWM_DTYPE_U8, ((uint64_t)1 << 31) + 1);
}

static void test_a_large_tensor(void)
{
    check_large_tensor("tensor", PTWM_DTYPE_F32, ((uint64_t)1 << 32) + (1 << 20));
}

static void test_a_million_tensors(void)
{
    enum { N = 1000000 };
    struct ptwm_reader_info info = { .struct_nbytes = sizeof info };
    struct ptwm_writer *w = new_writer();
    struct ptwm_reader *r;
    uint64_t seed = 1, index;
    double begin = seconds();
    char name[32];

    for (uint32_t i = 0; i < N; i++) {
        const uint32_t data[2] = { i, ~i };
        snprintf(name, sizeof name, "layers.%u.weight", i);
        add(w, name, PTWM_DTYPE_U8, data, sizeof data, PTWM_METHOD_MICROSCALE);
    }
    CHECK_EQ(ptwm_writer_finish(w, NULL), PTWM_OK);
    ptwm_writer_close(w);
    printf("tensors: %d in %" PRIu64 " bytes, written in %.1f s, ", N, file_nbytes(), seconds() - begin);
    begin = seconds();
    r = open_reader(PTWM_BACKEND_MMAP);
    CHECK_EQ(ptwm_reader_get_info(r, &info), PTWM_OK);
    CHECK_EQ(info.n_tensors, N);
    printf("opened in %.2f s, ", seconds() - begin);
    for (int i = 0; i < 1000; i++) {
        const uint32_t k = (uint32_t)(check_random(&seed) % N), expected[2] = { k, ~k };
        uint32_t got[2];
        struct ptwm_request request = { 0, 0, PTWM_NONE, got, sizeof got };
        snprintf(name, sizeof name, "layers.%u.weight", k);
        CHECK_EQ(ptwm_reader_find(r, name, strlen(name), &index), PTWM_OK);
        request.tensor = index;
        CHECK_EQ(ptwm_reader_decode(r, &request, 1, NULL, NULL), PTWM_OK);
        CHECK(memcmp(got, expected, sizeof got) == 0);
    }
    printf("peak %ld MiB\n", peak_mib());
    CHECK(peak_mib() < 1200);
    ptwm_reader_close(r);
    unlink(path);
}

int main(int argc, char **argv)
{
    setvbuf(stdout, NULL, _IOLBF, 0);
    snprintf(path, sizeof path, "%s/ptwm-big-%ld.ptwm", argc > 1 ? argv[1] : "/tmp", (long)getpid());
    if (sizeof(size_t) < 8) {
        printf("SKIP: the address space is too small; test_files checks what is said of large files there\n");
        return 77;
    }
    RUN(test_many_elements);
    RUN(test_a_large_tensor);
    RUN(test_a_million_tensors);
    RUN(test_a_large_file);
    CHECK_EXIT();
}
