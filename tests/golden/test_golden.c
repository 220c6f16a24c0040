/*
 * test_golden DIRECTORY: the files of DIRECTORY/index.tsv decode to what it says, or fail as it says: whole and in ranges,
 * from files and from memory, with each instruction set that this machine has.
 */
#include "check.h"
#include "ptwm.h"
#include "sha256.h"
#include "statuses.h"

enum { MAX_TENSORS = 512, MAX_LINE = 8192, MAX_FIELDS = 8 };

static const char *const levels[] = { "c99", "sse42", "avx2", "avx512", "neon" };
enum { N_LEVELS = sizeof levels / sizeof levels[0] };

static const char *directory;

/* --------------------------------------------------------------------------------------------------------- index */

/* A tensor as the index has it. */
struct expected {
    char *name;
    size_t name_nbytes;
    uint32_t dtype;
    char *shape; /* as it stands there */
    uint64_t nbytes;
    char hash[65];
    int needs_zstd;
};

/* A file of the index: its bytes, and what is to be had from it. */
struct golden {
    char name[256];
    uint8_t *data;
    size_t nbytes;
    unsigned n_tensors;
    struct expected tensors[MAX_TENSORS];
    uint8_t *raw[MAX_TENSORS]; /* once it was decoded and found right */
};

/* Cuts a line at its tabs; how many fields it has. The others are empty. */
static unsigned split(char *line, char *fields[MAX_FIELDS])
{
    static char none[1];
    unsigned n = 0;

    for (unsigned i = 0; i < MAX_FIELDS; i++)
        fields[i] = none;
    line[strcspn(line, "\r\n")] = 0;
    for (char *at = line; n < MAX_FIELDS; at++) {
        fields[n++] = at;
        at = strchr(at, '\t');
        if (at == NULL)
            break;
        *at = 0;
    }
    return n;
}

static char *copy(const char *text)
{
    const size_t nbytes = strlen(text) + 1;
    return memcpy(malloc(nbytes), text, nbytes);
}

/* Replaces %XX by the byte; returns the length. */
static size_t unescape(char *text)
{
    char *to = text, digits[3] = { 0 };

    for (const char *from = text; *from != 0; from++) {
        if (*from != '%') {
            *to++ = *from;
            continue;
        }
        memcpy(digits, from + 1, 2);
        *to++ = (char)strtoul(digits, NULL, 16);
        from += 2;
    }
    return (size_t)(to - text);
}

static void path_of(const char *name, char path[MAX_LINE])
{
    snprintf(path, MAX_LINE, "%s/%s", directory, name);
}

/* Reads a file and checks that it is the one that was committed. */
static void read_file(struct golden *g, const char *name, const char *hash)
{
    char path[MAX_LINE], hex[65];
    FILE *f;

    snprintf(g->name, sizeof g->name, "%s", name);
    path_of(name, path);
    f = fopen(path, "rb");
    g->data = malloc(1 << 20);
    g->nbytes = f != NULL ? fread(g->data, 1, 1 << 20, f) : 0;
    CHECK(f != NULL);
    if (f != NULL)
        fclose(f);
    g->data = realloc(g->data, g->nbytes > 0 ? g->nbytes : 1); /* for sanitizers: what is read beyond it is seen */
    sha256_hex(g->data, g->nbytes, hex);
    CHECK(strcmp(hex, hash) == 0);
}

static void add_tensor(struct golden *g, char *fields[MAX_FIELDS])
{
    struct expected *e = &g->tensors[g->n_tensors];

    CHECK(g->n_tensors < MAX_TENSORS);
    if (g->n_tensors == MAX_TENSORS)
        return;
    g->n_tensors++;
    e->name = copy(fields[1]);
    e->name_nbytes = unescape(e->name);
    e->dtype = (uint32_t)strtoul(fields[2], NULL, 10);
    e->shape = copy(fields[3]);
    e->nbytes = strtoul(fields[4], NULL, 10);
    snprintf(e->hash, sizeof e->hash, "%s", fields[5]);
    e->needs_zstd = strcmp(fields[6], "zstd") == 0;
}

static void release(struct golden *g)
{
    for (unsigned i = 0; i < g->n_tensors; i++) {
        free(g->tensors[i].name);
        free(g->tensors[i].shape);
        free(g->raw[i]);
    }
    free(g->data);
    memset(g, 0, sizeof *g);
}

/* ------------------------------------------------------------------------------------------------------ decoding */

static void check_shape(const struct ptwm_tensor_info *t, const char *expected)
{
    char text[MAX_LINE] = "";
    size_t at = 0;

    for (uint32_t i = 0; i < t->n_dims; i++)
        at += (size_t)snprintf(text + at, sizeof text - at, "%s%llu", i > 0 ? "," : "", (unsigned long long)t->shape[i]);
    CHECK(strcmp(t->dtype == PTWM_DTYPE_NONE ? "none" : t->n_dims == 0 ? "scalar" : text, expected) == 0);
}

static void check_entries(const struct golden *g, const struct ptwm_reader *r)
{
    struct ptwm_reader_info info = { .struct_nbytes = sizeof info };

    CHECK_EQ(ptwm_reader_get_info(r, &info), PTWM_OK);
    CHECK_EQ(info.n_tensors, g->n_tensors);
    for (unsigned i = 0; i < g->n_tensors; i++) {
        const struct expected *e = &g->tensors[i];
        struct ptwm_tensor_info t = { .struct_nbytes = sizeof t };
        uint64_t index = PTWM_NONE;
        CHECK_EQ(ptwm_reader_get_tensor(r, i, &t), PTWM_OK);
        CHECK(t.name_nbytes == e->name_nbytes && memcmp(t.name, e->name, t.name_nbytes) == 0);
        CHECK_EQ(ptwm_reader_find(r, e->name, e->name_nbytes, &index), PTWM_OK);
        CHECK_EQ(index, i);
        CHECK_EQ(t.dtype, e->dtype);
        CHECK_EQ(t.nbytes, e->nbytes);
        check_shape(&t, e->shape);
    }
}

static enum ptwm_status decode(const struct ptwm_reader *r, const struct ptwm_request *requests, size_t n, uint32_t flags,
                               unsigned threads)
{
    struct ptwm_decode_options options = PTWM_DECODE_OPTIONS_INIT;

    options.flags = flags;
    options.threads = threads;
    return ptwm_reader_decode(r, requests, n, &options, NULL);
}

static int lacks_zstd(const struct expected *e)
{
    return e->needs_zstd && !ptwm_has_builtin_zstd();
}

/* Each tensor for itself. The first time, its hash is compared; from then on, its bytes. */
static void decode_each(struct golden *g, const struct ptwm_reader *r)
{
    for (unsigned i = 0; i < g->n_tensors; i++) {
        const struct expected *e = &g->tensors[i];
        uint8_t *raw = malloc(e->nbytes > 0 ? (size_t)e->nbytes : 1);
        const struct ptwm_request request = { i, 0, PTWM_NONE, raw, e->nbytes };
        const enum ptwm_status status = decode(r, &request, 1, PTWM_DECODE_CHECK_HASH, 1);
        char hex[65];
        CHECK_EQ(status, lacks_zstd(e) ? PTWM_ERR_ZSTD_UNAVAILABLE : PTWM_OK);
        if (status == PTWM_OK && g->raw[i] == NULL) {
            sha256_hex(raw, (size_t)e->nbytes, hex);
            CHECK(strcmp(hex, e->hash) == 0);
            g->raw[i] = raw;
            continue;
        }
        CHECK(status != PTWM_OK || memcmp(raw, g->raw[i], (size_t)e->nbytes) == 0);
        free(raw);
    }
}

/* All tensors in one call. */
static void decode_all(const struct golden *g, const struct ptwm_reader *r, unsigned threads)
{
    struct ptwm_request requests[MAX_TENSORS] = { { 0 } };
    unsigned n = 0;

    for (unsigned i = 0; i < g->n_tensors; i++) {
        const uint64_t nbytes = g->tensors[i].nbytes;
        const struct ptwm_request request = { i, 0, PTWM_NONE, malloc(nbytes > 0 ? (size_t)nbytes : 1), nbytes };
        if (g->raw[i] == NULL)
            free(request.buffer);
        else
            requests[n++] = request;
    }
    CHECK_EQ(decode(r, requests, n, PTWM_DECODE_CHECK_HASH, threads), PTWM_OK);
    for (unsigned i = 0; i < n; i++) {
        CHECK(memcmp(requests[i].buffer, g->raw[requests[i].tensor], (size_t)requests[i].buffer_nbytes) == 0);
        free(requests[i].buffer);
    }
}

/* Parts of each tensor, at any alignment. Eight elements of any dtype are whole bytes. */
static void decode_ranges(const struct golden *g, const struct ptwm_reader *r)
{
    for (unsigned i = 0; i < g->n_tensors; i++) {
        const uint32_t bits = ptwm_dtype_bits(g->tensors[i].dtype), eight_nbytes = bits > 0 ? bits : 8;
        const uint64_t eights = g->tensors[i].nbytes / eight_nbytes;
        const uint64_t third = eights / 3, half = eights / 2;
        const uint64_t ranges[][2] = { { 0, 1 }, { third, 1 + third }, { half, eights }, { eights, eights } };
        for (unsigned k = 0; g->raw[i] != NULL && k < 4; k++) {
            const uint64_t begin = ranges[k][0] < eights ? ranges[k][0] : eights;
            const uint64_t end = ranges[k][1] < eights ? ranges[k][1] : eights;
            const size_t nbytes = (size_t)((end - begin) * eight_nbytes);
            uint8_t *memory = malloc(nbytes + k + 1);
            const struct ptwm_request request = { i, 8 * begin, 8 * (end - begin), memory + k, nbytes };
            CHECK_EQ(decode(r, &request, 1, 0, 1), PTWM_OK);
            CHECK(memcmp(memory + k, g->raw[i] + begin * eight_nbytes, nbytes) == 0);
            free(memory);
        }
    }
}

/* What has a byte order in elements of a dtype: their floats, where they are pairs. */
static size_t word_nbytes(uint32_t dtype)
{
    const uint32_t bits = ptwm_dtype_bits(dtype);
    const int is_pair = dtype == PTWM_DTYPE_C32 || dtype == PTWM_DTYPE_C64 || dtype == PTWM_DTYPE_C128 ||
                        dtype == PTWM_DTYPE_BC32;

    return bits <= 8 ? 1 : bits / 8 / (is_pair ? 2 : 1);
}

static void decode_native(const struct golden *g, const struct ptwm_reader *r)
{
    const uint16_t one = 1;
    const int is_little = *(const uint8_t *)&one == 1;

    for (unsigned i = 0; i < g->n_tensors; i++) {
        const size_t nbytes = (size_t)g->tensors[i].nbytes, word = word_nbytes(g->tensors[i].dtype);
        uint8_t *native = malloc(nbytes + 1);
        const struct ptwm_request request = { i, 0, PTWM_NONE, native, nbytes };
        size_t n_wrong = 0;
        if (g->raw[i] != NULL) {
            CHECK_EQ(decode(r, &request, 1, PTWM_DECODE_NATIVE_ORDER, 1), PTWM_OK);
            for (size_t at = 0; at < nbytes; at++)
                n_wrong += native[at] != g->raw[i][is_little ? at : at - at % word + word - 1 - at % word];
            CHECK_EQ(n_wrong, 0);
        }
        free(native);
    }
}

static enum ptwm_status verified(const struct golden *g)
{
    for (unsigned i = 0; i < g->n_tensors; i++)
        if (lacks_zstd(&g->tensors[i]))
            return PTWM_ERR_ZSTD_UNAVAILABLE;
    return PTWM_OK;
}

/* Opens for each way to look at the file, as readers keep what they decoded last. */
static struct ptwm_reader *open_memory(const struct golden *g)
{
    struct ptwm_error error = PTWM_ERROR_INIT;
    struct ptwm_reader *r = NULL;

    CHECK_EQ(ptwm_reader_open_memory(g->data, g->nbytes, NULL, &r, &error), PTWM_OK);
    if (r == NULL)
        printf("    %s: %s\n", ptwm_status_string(error.status), error.detail);
    return r;
}

static void check_level(struct golden *g)
{
    struct ptwm_reader *r = open_memory(g);

    if (r == NULL)
        return;
    check_entries(g, r);
    decode_each(g, r);
    ptwm_reader_close(r);
    r = open_memory(g);
    decode_ranges(g, r);
    ptwm_reader_close(r);
    r = open_memory(g);
    decode_native(g, r);
    decode_all(g, r, 1);
    CHECK_EQ(ptwm_reader_verify(r, 1, NULL), verified(g));
    ptwm_reader_close(r);
}

static void check_path(const struct golden *g, enum ptwm_backend backend)
{
    struct ptwm_reader_options options = PTWM_READER_OPTIONS_INIT;
    struct ptwm_reader *r = NULL;
    char path[MAX_LINE];

    path_of(g->name, path);
    options.backend = backend;
    CHECK_EQ(ptwm_reader_open_path(path, &options, &r, NULL), PTWM_OK);
    if (r == NULL)
        return;
    check_entries(g, r);
    decode_all(g, r, 3);
    decode_ranges(g, r);
    CHECK_EQ(ptwm_reader_verify(r, 3, NULL), verified(g));
    ptwm_reader_close(r);
}

static void check_good(struct golden *g)
{
    for (unsigned l = 0; l < N_LEVELS; l++)
        if (ptwm_cpu_select(levels[l]) == PTWM_OK)
            check_level(g);
    CHECK_EQ(ptwm_cpu_select("best"), PTWM_OK);
    check_path(g, PTWM_BACKEND_MMAP);
    check_path(g, PTWM_BACKEND_PREAD);
}

/* -------------------------------------------------------------------------------------------------------- failures */

static enum ptwm_status decode_one(const struct ptwm_reader *r, uint64_t tensor, uint32_t flags)
{
    struct ptwm_tensor_info t = { .struct_nbytes = sizeof t };
    struct ptwm_request request = { tensor, 0, PTWM_NONE, NULL, 0 };
    enum ptwm_status status;

    CHECK_EQ(ptwm_reader_get_tensor(r, tensor, &t), PTWM_OK);
    request.buffer = malloc((size_t)t.nbytes + 1);
    request.buffer_nbytes = t.nbytes;
    status = decode(r, &request, 1, flags, 1);
    free(request.buffer);
    return status;
}

/* where: "open", "decode:" and a tensor's number, or "verify": then it can be decoded if nobody asks for its hash. */
static void check_bad(const struct golden *g, const char *where, const char *expected)
{
    const int is_open = strcmp(where, "open") == 0, is_verify = strcmp(where, "verify") == 0;
    struct ptwm_reader *r = NULL;
    enum ptwm_status status = ptwm_reader_open_memory(g->data, g->nbytes, NULL, &r, NULL);

    CHECK(is_open || is_verify || strncmp(where, "decode:", 7) == 0);
    if (is_open) {
        CHECK(strcmp(golden_status_name(status), expected) == 0);
        CHECK(r == NULL);
        return;
    }
    CHECK_EQ(status, PTWM_OK);
    if (r == NULL)
        return;
    status = decode_one(r, is_verify ? 0 : strtoul(where + 7, NULL, 10), 0);
    CHECK(strcmp(golden_status_name(status), is_verify ? "PTWM_OK" : expected) == 0);
    if (is_verify) {
        const char *with_hash = strcmp(expected, "PTWM_ERR_HASH") == 0 ? expected : "PTWM_OK";
        CHECK(strcmp(golden_status_name(decode_one(r, 0, PTWM_DECODE_CHECK_HASH)), with_hash) == 0);
    }
    CHECK(strcmp(golden_status_name(ptwm_reader_verify(r, 1, NULL)), expected) == 0);
    ptwm_reader_close(r);
}

static void check_bad_at_all_levels(const struct golden *g, const char *where, const char *expected)
{
    for (unsigned l = 0; l < N_LEVELS; l++)
        if (ptwm_cpu_select(levels[l]) == PTWM_OK)
            check_bad(g, where, expected);
    CHECK_EQ(ptwm_cpu_select("best"), PTWM_OK);
}

/* ------------------------------------------------------------------------------------------------------------ main */

static unsigned n_good, n_bad;
static int failures_before;

/* Ends a file: whether one of its checks failed. */
static void end_file(struct golden *g)
{
    check_cases++;
    if (check_failures != failures_before) {
        check_failed_cases++;
        printf("FAILED %s\n", g->name);
    }
    failures_before = check_failures;
    release(g);
}

static void read_line(struct golden *g, char *line)
{
    char *fields[MAX_FIELDS];
    const unsigned n = split(line, fields);

    if (strcmp(fields[0], "tensor") == 0 && n == 7) {
        add_tensor(g, fields);
        return;
    }
    if (g->name[0] != 0) { /* all tensors of a good file are there */
        check_good(g);
        end_file(g);
    }
    if (strcmp(fields[0], "good") == 0 && n == 4) {
        read_file(g, fields[1], fields[2]);
        n_good++;
    } else if (strcmp(fields[0], "bad") == 0 && n == 6) {
        read_file(g, fields[1], fields[2]);
        check_bad_at_all_levels(g, fields[3], fields[4]);
        end_file(g);
        n_bad++;
    } else {
        CHECK(fields[0][0] == '#' || strcmp(fields[0], "end") == 0);
    }
}

int main(int argc, char **argv)
{
    static struct golden g;
    char line[MAX_LINE] = "";
    FILE *index;

    if (argc != 2) {
        fprintf(stderr, "usage: test_golden DIRECTORY\n");
        return 2;
    }
    directory = argv[1];
    path_of("index.tsv", line);
    index = fopen(line, "rb");
    if (index == NULL) {
        fprintf(stderr, "%s: cannot be read\n", line);
        return 1;
    }
    for (unsigned l = 0; l < N_LEVELS; l++) {
        if (ptwm_cpu_select(levels[l]) != PTWM_OK)
            printf("SKIP %s: this machine does not have it\n", levels[l]);
        else
            CHECK(strcmp(ptwm_cpu_name(), levels[l]) == 0);
    }
    if (!ptwm_has_builtin_zstd())
        printf("SKIP zstd: not built in; what needs it has to say so\n");
    while (fgets(line, sizeof line, index) != NULL)
        read_line(&g, line);
    fclose(index);
    CHECK(strncmp(line, "end", 3) == 0); /* the index is whole */
    CHECK(n_good > 0 && n_bad > 0);
    CHECK_EXIT();
}
