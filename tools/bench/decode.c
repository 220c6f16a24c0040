/*
 * How fast a file decodes on one core, as a multiple of memcpy in the same run.
 *
 *     bench_decode [--rounds N] [--levels avx512,avx2,c99] [--first-chain] [--json] FILE...
 *
 * FILE is a .ptwm or a .safetensors file (which is encoded in memory first, with default options). Each round copies the raw
 * bytes with memcpy between two touched buffers, then for each level decodes all tensors into one of them, with and without
 * the planes' CRCs; they alternate because machines have fast and slow phases. Reported: of the best times the ratio, and
 * the median of the rounds' ratios. --first-chain encodes with the first chain of the STANDARD table only. Run it pinned to a core: taskset -c 1 bench_decode ...
 */
#define _POSIX_C_SOURCE 200809L
#include "ptwm.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MAX_LEVELS = 8, MAX_ROUNDS = 1000, MAX_DIMS = 32 };

static bool first_chain_only;

static void die(const char *what, const char *why)
{
    fprintf(stderr, "bench_decode: %s: %s\n", what, why);
    exit(1);
}

static void check(enum ptwm_status status, const char *what, const struct ptwm_error *error)
{
    if (status != PTWM_OK) {
        fprintf(stderr, "bench_decode: %s: %s: %s\n", what, ptwm_status_string(status), error->detail);
        exit(1);
    }
}

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void *allocate(size_t nbytes)
{
    void *p;
    if (ptwm_memory_alloc(nbytes, &p) != PTWM_OK)
        die("memory", "there is not enough");
    memset(p, 1, nbytes);
    return p;
}

static unsigned char *read_file(const char *path, size_t *nbytes)
{
    FILE *file = fopen(path, "rb");
    unsigned char *data;
    long length = -1;

    if (file == NULL || fseek(file, 0, SEEK_END) != 0 || (length = ftell(file)) < 0 || fseek(file, 0, SEEK_SET) != 0)
        die(path, "cannot be read");
    *nbytes = (size_t)length;
    data = allocate(*nbytes);
    if (fread(data, 1, *nbytes, file) != *nbytes)
        die(path, "cannot be read");
    fclose(file);
    return data;
}

/* ------------------------------------------------------------------------------------------------- safetensors */

/* What follows the next occurrence of key in a JSON text that is known to be simple. */
static const char *after(const char *json, const char *key, const char *path)
{
    const char *found = strstr(json, key);
    if (found == NULL)
        die(path, "an unexpected safetensors header");
    return found + strlen(key);
}

static size_t numbers(const char *json, uint64_t *values, size_t capacity)
{
    size_t n = 0;
    while (*json != ']' && n < capacity) {
        char *end;
        values[n] = strtoull(json, &end, 10);
        n += end > json;
        json = end > json ? end : json + 1;
    }
    return n;
}

/* Adds one tensor: json is at its name, behind the quotation mark. Returns what follows. */
static const char *add_tensor(struct ptwm_writer *writer, const char *json, const unsigned char *data, size_t data_nbytes,
                              const char *path)
{
    struct ptwm_tensor_spec spec = PTWM_TENSOR_SPEC_INIT;
    struct ptwm_error error = PTWM_ERROR_INIT;
    const char *name_end = strchr(json, '"'), *dtype, *end;
    uint64_t shape[MAX_DIMS], range[2];
    struct ptwm_chain first_chain;
    char dtype_name[16] = { 0 };

    dtype = after(json, "\"dtype\":\"", path);
    for (size_t i = 0; i + 1 < sizeof dtype_name && dtype[i] != '"'; i++)
        dtype_name[i] = dtype[i];
    end = after(json, "\"data_offsets\":[", path);
    if (name_end == NULL || numbers(end, range, 2) != 2 || range[0] > range[1] || range[1] > data_nbytes)
        die(path, "an unexpected safetensors header");
    spec.name = json;
    spec.name_nbytes = (size_t)(name_end - json);
    spec.dtype = ptwm_dtype_from_name(dtype_name);
    spec.n_dims = (uint32_t)numbers(after(json, "\"shape\":[", path), shape, MAX_DIMS);
    spec.shape = shape;
    spec.data = data + range[0];
    spec.nbytes = range[1] - range[0];
    if (first_chain_only &&
        ptwm_chain_standard(spec.dtype, 0, &first_chain.bytes, &first_chain.nbytes) == PTWM_OK) {
        spec.chains = &first_chain;
        spec.n_chains = 1;
    }
    check(ptwm_writer_add(writer, &spec, &error), path, &error);
    return after(end, "}", path);
}

static struct ptwm_writer *encode(const unsigned char *file, size_t file_nbytes, const char *path)
{
    struct ptwm_error error = PTWM_ERROR_INIT;
    struct ptwm_writer *writer;
    uint64_t header_nbytes = 0;
    const unsigned char *data;
    char *header = NULL;

    for (unsigned i = 0; i < 8 && file_nbytes >= 8; i++)
        header_nbytes |= (uint64_t)file[i] << 8 * i;
    if (file_nbytes < 8 || header_nbytes > file_nbytes - 8 || (header = calloc(1, (size_t)header_nbytes + 1)) == NULL)
        die(path, "neither .ptwm nor .safetensors");
    memcpy(header, file + 8, (size_t)header_nbytes);
    data = file + 8 + header_nbytes;
    check(ptwm_writer_open_memory(NULL, &writer, &error), path, &error);
    for (const char *at = strchr(header, '"'); at != NULL; at = strchr(at, '"')) {
        at++;
        if (strncmp(at, "__metadata__\"", 13) == 0)
            at = after(at, "}", path);
        else
            at = add_tensor(writer, at, data, file_nbytes - 8 - (size_t)header_nbytes, path);
    }
    check(ptwm_writer_finish(writer, &error), path, &error);
    free(header);
    return writer;
}

/* ------------------------------------------------------------------------------------------------- measuring */

struct bench {
    struct ptwm_reader *reader;
    struct ptwm_request *requests;
    size_t n_requests;
    size_t nbytes; /* raw */
    uint64_t stored_nbytes;
    unsigned char *from, *to;
};

static void open_bench(struct bench *b, const void *file, size_t file_nbytes, const char *path)
{
    struct ptwm_error error = PTWM_ERROR_INIT;
    struct ptwm_reader_info info = { 0 };

    info.struct_nbytes = sizeof info;
    check(ptwm_reader_open_memory(file, file_nbytes, NULL, &b->reader, &error), path, &error);
    ptwm_reader_get_info(b->reader, &info);
    b->n_requests = (size_t)info.n_tensors;
    b->stored_nbytes = info.file_nbytes;
    b->requests = calloc(b->n_requests + 1, sizeof *b->requests);
    b->nbytes = 0;
    for (int pass = 0; pass < 2; pass++) {
        size_t offset = 0;
        for (size_t i = 0; i < b->n_requests; i++) {
            struct ptwm_tensor_info tensor = { 0 };
            tensor.struct_nbytes = sizeof tensor;
            ptwm_reader_get_tensor(b->reader, i, &tensor);
            b->requests[i].tensor = i;
            b->requests[i].n_elements = PTWM_NONE;
            b->requests[i].buffer_nbytes = tensor.nbytes;
            b->requests[i].buffer = pass > 0 ? b->to + offset : NULL;
            offset += ((size_t)tensor.nbytes + 63) / 64 * 64;
        }
        if (pass == 0) {
            b->nbytes = offset;
            b->from = allocate(offset);
            b->to = allocate(offset);
        }
    }
}

static double decode(const struct bench *b, const char *level, uint32_t flags)
{
    struct ptwm_decode_options options = PTWM_DECODE_OPTIONS_INIT;
    struct ptwm_error error = PTWM_ERROR_INIT;
    double begin;

    ptwm_cpu_select(level);
    options.threads = 1;
    options.flags = flags;
    begin = seconds();
    check(ptwm_reader_decode(b->reader, b->requests, b->n_requests, &options, &error), "decoding", &error);
    return seconds() - begin;
}

static int compare_doubles(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static double median(double *values, int n)
{
    qsort(values, (size_t)n, sizeof *values, compare_doubles);
    return values[n / 2];
}

struct series {
    double best;
    double ratio[MAX_ROUNDS];
};

static void add_time(struct series *s, int round, double time, double memcpy_time)
{
    if (round == 0 || time < s->best)
        s->best = time;
    s->ratio[round] = memcpy_time / time;
}

static void report(const char *path, const struct bench *b, const char *level, double copy, struct series *checked,
                   struct series *unchecked, int rounds, bool json, bool first)
{
    const double size = (double)b->nbytes;

    if (json) {
        printf("%s\n  {\"file\": \"%s\", \"level\": \"%s\", \"raw_nbytes\": %zu, \"stored\": %.5f, \"memcpy_gbps\": %.3f, "
               "\"checked\": %.4f, \"checked_median\": %.4f, \"unchecked\": %.4f, \"unchecked_median\": %.4f}",
               first ? "" : ",", path, level, b->nbytes, (double)b->stored_nbytes / size, size / copy / 1e9,
               copy / checked->best, median(checked->ratio, rounds), copy / unchecked->best,
               median(unchecked->ratio, rounds));
        return;
    }
    printf("%-36s %-7s %8.4f %8.2f %9.3f %8.3f %9.3f %8.3f %7.1f%%\n", path, level, (double)b->stored_nbytes / size,
           size / copy / 1e9, copy / checked->best, median(checked->ratio, rounds), copy / unchecked->best,
           median(unchecked->ratio, rounds), 100 * (checked->best / unchecked->best - 1));
}

static void run(const char *path, char *const *levels, int n_levels, int rounds, bool json, bool first)
{
    static struct series checked[MAX_LEVELS], unchecked[MAX_LEVELS];
    size_t file_nbytes;
    unsigned char *file = read_file(path, &file_nbytes);
    const size_t suffix = strlen(path) > 5 ? strlen(path) - 5 : 0;
    struct ptwm_writer *writer = NULL;
    const void *encoded = file;
    size_t encoded_nbytes = file_nbytes;
    struct bench b = { 0 };
    double best_copy = 0;

    if (strcmp(path + suffix, ".ptwm") != 0) {
        writer = encode(file, file_nbytes, path);
        ptwm_writer_get_memory(writer, &encoded, &encoded_nbytes);
    }
    open_bench(&b, encoded, encoded_nbytes, path);
    for (int round = 0; round < rounds; round++) {
        double begin = seconds(), copy;
        memcpy(b.to, b.from, b.nbytes);
        copy = seconds() - begin;
        if (round == 0 || copy < best_copy)
            best_copy = copy;
        for (int l = 0; l < n_levels; l++) {
            add_time(&checked[l], round, decode(&b, levels[l], 0), copy);
            add_time(&unchecked[l], round, decode(&b, levels[l], PTWM_DECODE_SKIP_CRC), copy);
        }
    }
    for (int l = 0; l < n_levels; l++)
        report(path, &b, levels[l], best_copy, &checked[l], &unchecked[l], rounds, json, first && l == 0);
    ptwm_reader_close(b.reader);
    ptwm_writer_close(writer);
    ptwm_memory_free(b.from, b.nbytes);
    ptwm_memory_free(b.to, b.nbytes);
    ptwm_memory_free(file, file_nbytes);
    free(b.requests);
}

/* Cuts a list at its commas; of the levels those that this machine has. */
static int choose_levels(char *list, char **levels)
{
    int n = 0;
    for (char *level = strtok(list, ","); level != NULL && n < MAX_LEVELS; level = strtok(NULL, ","))
        if (ptwm_cpu_select(level) == PTWM_OK)
            levels[n++] = level;
    return n;
}

int main(int argc, char **argv)
{
    char all[] = "avx512,avx2,sse42,neon,c99", *list = all, *levels[MAX_LEVELS];
    int rounds = 15, n_levels, i = 1;
    bool json = false, first = true;

    for (; i < argc && argv[i][0] == '-'; i++) {
        if (strcmp(argv[i], "--json") == 0)
            json = true;
        else if (strcmp(argv[i], "--rounds") == 0 && i + 1 < argc)
            rounds = atoi(argv[++i]);
        else if (strcmp(argv[i], "--levels") == 0 && i + 1 < argc)
            list = argv[++i];
        else if (strcmp(argv[i], "--first-chain") == 0)
            first_chain_only = true;
        else
            die(argv[i], "unknown option");
    }
    if (i == argc || rounds < 1 || rounds > MAX_ROUNDS)
        die("usage", "bench_decode [--rounds N] [--levels avx512,avx2,c99] [--first-chain] [--json] FILE...");
    n_levels = choose_levels(list, levels);
    if (json)
        printf("[");
    else
        printf("%-36s %-7s %8s %8s %9s %8s %9s %8s %8s\n", "file", "level", "stored", "memcpy", "x memcpy", "median",
               "no CRC", "median", "CRC");
    for (; i < argc; i++, first = false)
        run(argv[i], levels, n_levels, rounds, json, first);
    if (json)
        printf("\n]\n");
    return 0;
}
