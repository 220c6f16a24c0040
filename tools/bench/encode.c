/*
 * How fast encoding is, in units of memcpy.
 *
 *     bench_encode FILE.safetensors [ROUNDS] [--json] [--threads=N] [--level=NAME]
 *
 * Each round copies the raw bytes once with memcpy and encodes the whole file into memory that has been touched before, once
 * for each level of the processor and number of threads (1 and 2, or N alone), so that what disturbs the machine disturbs
 * all alike. Everything is included: choosing chains, models, coding, CRCs, hashes. For one thread pin it: taskset -c 1.
 */
#define _POSIX_C_SOURCE 200809L
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "ptwm.h"

enum { MAX_TENSORS = 20000, MAX_DIMS = 8, MAX_ROUNDS = 1000, MAX_CONTENDERS = 16 };

struct tensor {
    struct ptwm_tensor_spec spec;
    uint64_t shape[MAX_DIMS];
};

struct memory {
    unsigned char *data;
    size_t nbytes;
};

/* One thing that is measured; level NULL is memcpy. */
struct contender {
    const char *level;
    unsigned threads;
    double seconds[MAX_ROUNDS];
    size_t nbytes;
};

static void die(const char *what)
{
    fprintf(stderr, "bench_encode: %s\n", what);
    exit(1);
}

static void *allocate(size_t nbytes)
{
    void *p = malloc(nbytes);
    if (p == NULL)
        die("out of memory");
    memset(p, 1, nbytes);
    return p;
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* ------------------------------------------------------------------------------------------------------- reading */

static unsigned char *read_file(const char *path, size_t *nbytes)
{
    FILE *f = fopen(path, "rb");
    unsigned char *data;
    long length = 0;

    if (f != NULL && fseek(f, 0, SEEK_END) == 0)
        length = ftell(f);
    if (length < 8)
        die("cannot read the file");
    rewind(f);
    data = allocate((size_t)length);
    if (fread(data, 1, (size_t)length, f) != (size_t)length)
        die("cannot read the file");
    fclose(f);
    *nbytes = (size_t)length;
    return data;
}

/* The header of a .safetensors file as it is usually written: good enough for a benchmark, not for anything else. */
static size_t list_tensors(char *header, const unsigned char *data, struct tensor *tensors)
{
    size_t n = 0;

    for (char *p = header; (p = strstr(p, "\"dtype\":\"")) != NULL && n < MAX_TENSORS; n++) {
        struct tensor *t = &tensors[n];
        const struct ptwm_tensor_spec init = PTWM_TENSOR_SPEC_INIT;
        char dtype[16], *name_end = p, *name, *s = strstr(p, "\"shape\":["), *o = strstr(p, "\"data_offsets\":[");
        unsigned long long begin, end;

        while (*name_end != '{')
            name_end--;
        name_end -= 2;
        for (name = name_end; name[-1] != '"';)
            name--;
        if (s == NULL || o == NULL || sscanf(p + 9, "%15[^\"]", dtype) != 1 || sscanf(o + 16, "%llu,%llu", &begin, &end) != 2)
            die("cannot read the header");
        t->spec = init;
        t->spec.name = name;
        t->spec.name_nbytes = (size_t)(name_end - name);
        t->spec.dtype = ptwm_dtype_from_name(dtype);
        t->spec.shape = t->shape;
        for (s += 9; *s != ']' && t->spec.n_dims < MAX_DIMS; s += *s == ',')
            t->shape[t->spec.n_dims++] = strtoull(s, &s, 10);
        t->spec.data = data + begin;
        t->spec.nbytes = end - begin;
        p += 9;
    }
    return n;
}

/* ----------------------------------------------------------------------------------------------------- measuring */

static void *resize(void *context, size_t nbytes)
{
    const struct memory *memory = context;
    return nbytes <= memory->nbytes ? memory->data : NULL;
}

static size_t encode(const struct tensor *tensors, size_t n, unsigned threads, struct memory *to)
{
    struct ptwm_writer_options options = PTWM_WRITER_OPTIONS_INIT;
    const struct ptwm_buffer buffer = { resize, to };
    struct ptwm_tensor_spec *specs = allocate(n * sizeof *specs);
    struct ptwm_writer *writer;
    const void *file;
    size_t nbytes;

    options.threads = threads;
    for (size_t i = 0; i < n; i++)
        specs[i] = tensors[i].spec;
    if (ptwm_writer_open_buffer(&buffer, &options, &writer, NULL) != PTWM_OK)
        die("cannot open a writer");
    if (ptwm_writer_add_many(writer, specs, n, NULL) != PTWM_OK)
        die("cannot add the tensors");
    if (ptwm_writer_finish(writer, NULL) != PTWM_OK)
        die("cannot finish");
    if (ptwm_writer_get_memory(writer, &file, &nbytes) != PTWM_OK)
        die("cannot tell the length");
    ptwm_writer_close(writer);
    free(specs);
    return nbytes;
}

struct copy {
    unsigned char *to;
    const unsigned char *from;
    size_t nbytes;
};

static void *copy_main(void *argument)
{
    const struct copy *copy = argument;
    memcpy(copy->to, copy->from, copy->nbytes);
    return NULL;
}

static void copy_in_parallel(unsigned char *to, const unsigned char *from, size_t nbytes, unsigned threads)
{
    pthread_t handles[64];
    struct copy copies[64];
    const size_t part = nbytes / threads;

    for (unsigned i = 0; i < threads; i++) {
        const struct copy copy = { to + i * part, from + i * part, i + 1 < threads ? part : nbytes - i * part };
        copies[i] = copy;
        if (i > 0 && pthread_create(&handles[i], NULL, copy_main, &copies[i]) != 0)
            die("cannot make a thread");
    }
    copy_main(&copies[0]);
    for (unsigned i = 1; i < threads; i++)
        pthread_join(handles[i], NULL);
}

static int compare_doubles(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Contenders: memcpy and each level of this machine (or one alone), for each number of threads. */
static size_t list_contenders(struct contender *contenders, unsigned only_threads, const char *only_level)
{
    static const char *const levels[] = { "c99", "sse42", "avx2", "avx512", "neon" };
    size_t n = 0;

    for (unsigned threads = only_threads ? only_threads : 1; threads <= (only_threads ? only_threads : 2); threads++) {
        contenders[n].level = NULL;
        contenders[n++].threads = threads;
        for (size_t i = 0; i < sizeof levels / sizeof levels[0]; i++)
            if ((only_level == NULL || strcmp(only_level, levels[i]) == 0) && ptwm_cpu_select(levels[i]) == PTWM_OK) {
                contenders[n].level = levels[i];
                contenders[n++].threads = threads;
            }
    }
    return n;
}

static void report(struct contender *contenders, size_t n, int rounds, size_t raw_nbytes, size_t file_nbytes, int json)
{
    double memcpy_best = 0, memcpy_median = 0;

    if (json)
        printf("[\n");
    for (size_t i = 0; i < n; i++) {
        struct contender *c = &contenders[i];
        double best, median;

        qsort(c->seconds, (size_t)rounds, sizeof *c->seconds, compare_doubles);
        best = (double)raw_nbytes / c->seconds[0] / 1e9;
        median = (double)raw_nbytes / c->seconds[rounds / 2] / 1e9;
        if (c->level == NULL) {
            memcpy_best = best;
            memcpy_median = median;
        }
        if (json)
            printf("  {\"what\": \"%s\", \"threads\": %u, \"best_gb_s\": %.4f, \"median_gb_s\": %.4f, \"best_x_memcpy\": %.4f, "
                   "\"median_x_memcpy\": %.4f, \"nbytes\": %zu, \"ratio\": %.5f}%s\n",
                   c->level != NULL ? c->level : "memcpy", c->threads, best, median, best / memcpy_best,
                   median / memcpy_median, c->nbytes, (double)c->nbytes / (double)file_nbytes, i + 1 < n ? "," : "");
        else
            printf("%-7s %u thread%s  best %7.3f GB/s = %.4f x memcpy, median %7.3f GB/s = %.4f x, %zu bytes = %.5f\n",
                   c->level != NULL ? c->level : "memcpy", c->threads, c->threads == 1 ? " " : "s", best,
                   best / memcpy_best, median, median / memcpy_median, c->nbytes, (double)c->nbytes / (double)file_nbytes);
    }
    if (json)
        printf("]\n");
}

int main(int argc, char **argv)
{
    static struct contender contenders[MAX_CONTENDERS];
    struct tensor *tensors = allocate(MAX_TENSORS * sizeof *tensors);
    const char *path = NULL, *only_level = NULL;
    int rounds = 10, json = 0;
    unsigned only_threads = 0;
    unsigned char *file, *copy;
    uint64_t header_nbytes = 0;
    size_t file_nbytes, raw_nbytes, n_tensors, n;
    struct memory out;
    char *header;

    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--json") == 0)
            json = 1;
        else if (strncmp(argv[i], "--threads=", 10) == 0)
            only_threads = (unsigned)atoi(argv[i] + 10);
        else if (strncmp(argv[i], "--level=", 8) == 0)
            only_level = argv[i] + 8;
        else if (path == NULL)
            path = argv[i];
        else
            rounds = atoi(argv[i]);
    }
    if (path == NULL || rounds < 1 || rounds > MAX_ROUNDS || only_threads > 64)
        die("usage: bench_encode FILE.safetensors [ROUNDS] [--json] [--threads=N] [--level=NAME]");
    file = read_file(path, &file_nbytes);
    for (unsigned i = 0; i < 8; i++)
        header_nbytes |= (uint64_t)file[i] << (8 * i);
    if (header_nbytes > file_nbytes - 8)
        die("not a .safetensors file");
    header = allocate((size_t)header_nbytes + 1);
    memcpy(header, file + 8, (size_t)header_nbytes);
    header[header_nbytes] = '\0';
    n_tensors = list_tensors(header, file + 8 + header_nbytes, tensors);
    raw_nbytes = file_nbytes - 8 - (size_t)header_nbytes;
    out.nbytes = 2 * file_nbytes + (4 << 20);
    out.data = allocate(out.nbytes);
    copy = allocate(raw_nbytes);

    n = list_contenders(contenders, only_threads, only_level);
    for (int r = 0; r < rounds; r++)
        for (size_t i = 0; i < n; i++) {
            struct contender *c = &contenders[i];
            double begin;

            if (c->level != NULL)
                ptwm_cpu_select(c->level);
            begin = now();
            if (c->level == NULL) {
                copy_in_parallel(copy, file + 8 + header_nbytes, raw_nbytes, c->threads);
                c->nbytes = raw_nbytes;
            } else {
                c->nbytes = encode(tensors, n_tensors, c->threads, &out);
            }
            c->seconds[r] = now() - begin;
        }
    report(contenders, n, rounds, raw_nbytes, file_nbytes, json);
    free(file);
    free(header);
    free(out.data);
    free(copy);
    free(tensors);
    return 0;
}
