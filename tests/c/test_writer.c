/*
 * The writer: what it refuses, what it leaves behind, copying between files, and running out of memory at every point.
 */
#define _DEFAULT_SOURCE
#include <errno.h>

#include "check.h"
#include "directory.h"
#include "ptwm.h"

static char directory[256];

static const char *path_in(const char *name)
{
    static char path[300];
    snprintf(path, sizeof path, "%s/%s", directory, name);
    return path;
}

static int n_files(void)
{
    return directory_n_files(directory);
}

static struct ptwm_tensor_spec bytes_spec(const char *name, const void *data, size_t nbytes)
{
    struct ptwm_tensor_spec spec = PTWM_TENSOR_SPEC_INIT;
    spec.name = name;
    spec.name_nbytes = strlen(name);
    spec.data = data;
    spec.nbytes = nbytes;
    return spec;
}

static enum ptwm_status add_bytes(struct ptwm_writer *w, const char *name, const void *data, size_t nbytes)
{
    const struct ptwm_tensor_spec spec = bytes_spec(name, data, nbytes);
    return ptwm_writer_add(w, &spec, NULL);
}

/* Floats of two rows' scales, enough for a segment of their own. */
enum { FLOATS = 40000 };
static uint8_t *floats(uint64_t seed)
{
    uint8_t *bytes = malloc(FLOATS * 2);
    for (int i = 0; i < FLOATS; i++) {
        uint16_t v = (uint16_t)((check_random(&seed) & 0x807F) | (uint64_t)(118 + check_random(&seed) % 5 + i / 200 % 2) << 7);
        bytes[2 * i] = (uint8_t)v;
        bytes[2 * i + 1] = (uint8_t)(v >> 8);
    }
    return bytes;
}

static const uint64_t floats_shape[2] = { 200, 200 };

static enum ptwm_status add_floats(struct ptwm_writer *w, const char *name, const uint8_t *data)
{
    struct ptwm_tensor_spec spec = bytes_spec(name, data, FLOATS * 2);
    spec.dtype = PTWM_DTYPE_BF16;
    spec.n_dims = 2;
    spec.shape = floats_shape;
    return ptwm_writer_add(w, &spec, NULL);
}

static int decodes_to(const struct ptwm_reader *r, const char *name, const void *expected, size_t nbytes)
{
    uint8_t *got = malloc(nbytes + 1);
    struct ptwm_request request = { 0, 0, PTWM_NONE, got, nbytes };
    int same = ptwm_reader_find(r, name, strlen(name), &request.tensor) == PTWM_OK &&
               ptwm_reader_decode(r, &request, 1, NULL, NULL) == PTWM_OK && memcmp(got, expected, nbytes) == 0;
    free(got);
    return same;
}

/* ------------------------------------------------------------------------------------------------------- refusals */

static void test_refusals_leave_the_writer_usable(void)
{
    struct ptwm_tensor_spec spec = bytes_spec("t", "abcd", 4);
    struct ptwm_writer_options options = PTWM_WRITER_OPTIONS_INIT;
    struct ptwm_error error = PTWM_ERROR_INIT;
    struct ptwm_writer *w = NULL;
    struct ptwm_reader *r = NULL;
    const void *data;
    size_t nbytes;

    options.chunk_nbytes = 4095;
    CHECK_EQ(ptwm_writer_open_memory(&options, &w, NULL), PTWM_ERR_ARGUMENT);
    options.chunk_nbytes = (64u << 20) + 1;
    CHECK_EQ(ptwm_writer_open_memory(&options, &w, NULL), PTWM_ERR_ARGUMENT);
    CHECK(w == NULL);
    CHECK_EQ(ptwm_writer_open_memory(NULL, &w, NULL), PTWM_OK);
    CHECK_EQ(ptwm_writer_add(w, &spec, NULL), PTWM_OK);
    CHECK_EQ(ptwm_writer_add(w, &spec, &error), PTWM_ERR_DUPLICATE_NAME);
    CHECK_EQ(error.tensor, 1);
    CHECK_EQ(ptwm_writer_add_alias(w, "t", 1, "t", 1, NULL), PTWM_ERR_DUPLICATE_NAME);
    spec.name = "\xff";
    CHECK_EQ(ptwm_writer_add(w, &spec, NULL), PTWM_ERR_ARGUMENT);
    spec.name = "u";
    spec.dtype = 99;
    CHECK_EQ(ptwm_writer_add(w, &spec, NULL), PTWM_ERR_ARGUMENT);
    spec.dtype = PTWM_DTYPE_F32;
    spec.n_dims = 2;
    spec.shape = (const uint64_t[]){ 1, 2 };
    CHECK_EQ(ptwm_writer_add(w, &spec, NULL), PTWM_ERR_SIZE_MISMATCH);
    spec.shape = (const uint64_t[]){ 1ull << 62, 1ull << 62 };
    CHECK_EQ(ptwm_writer_add(w, &spec, NULL), PTWM_ERR_SIZE_MISMATCH);
    spec.shape = (const uint64_t[]){ 1ull << 63, 0 };
    CHECK_EQ(ptwm_writer_add(w, &spec, NULL), PTWM_ERR_ARGUMENT);
    spec.n_dims = 0;
    spec.method = (enum ptwm_method)6;
    CHECK_EQ(ptwm_writer_add(w, &spec, NULL), PTWM_ERR_ARGUMENT);
    spec.method = PTWM_METHOD_MICROSCALE;
    CHECK_EQ(ptwm_writer_get_memory(w, &data, &nbytes), PTWM_ERR_STATE);
    CHECK_EQ(ptwm_writer_add(w, &spec, NULL), PTWM_OK);
    CHECK_EQ(ptwm_writer_finish(w, NULL), PTWM_OK);
    CHECK_EQ(ptwm_writer_finish(w, NULL), PTWM_ERR_STATE);
    CHECK_EQ(ptwm_writer_add(w, &spec, NULL), PTWM_ERR_STATE);
    CHECK_EQ(ptwm_writer_get_memory(w, &data, &nbytes), PTWM_OK);
    CHECK_EQ(ptwm_reader_open_memory(data, nbytes, NULL, &r, NULL), PTWM_OK);
    CHECK(decodes_to(r, "t", "abcd", 4) && decodes_to(r, "u", "abcd", 4));
    ptwm_reader_close(r);
    ptwm_writer_close(w);
}

/* ---------------------------------------------------------------------------------------------------------- files */

static void write_text(const char *path, const char *text)
{
    FILE *f = fopen(path, "wb");
    fputs(text, f);
    fclose(f);
}

static int reads_text(const char *path, const char *text)
{
    char got[64] = { 0 };
    FILE *f = fopen(path, "rb");
    size_t n = f != NULL ? fread(got, 1, sizeof got - 1, f) : 0;
    if (f != NULL)
        fclose(f);
    return n == strlen(text) && strcmp(got, text) == 0;
}

static void test_files_appear_whole_or_not_at_all(void)
{
    struct ptwm_reader_options options = PTWM_READER_OPTIONS_INIT;
    struct ptwm_error error = PTWM_ERROR_INIT;
    struct ptwm_writer *w = NULL;
    struct ptwm_reader *r = NULL;
    char path[300];

    snprintf(path, sizeof path, "%s", path_in("a.ptwm"));
    write_text(path, "old");
    CHECK_EQ(ptwm_writer_open_path(path, NULL, &w, NULL), PTWM_OK);
    CHECK_EQ(add_bytes(w, "t", "abc", 3), PTWM_OK);
    ptwm_writer_close(w); /* abandoned */
    CHECK(reads_text(path, "old"));
    CHECK_EQ(n_files(), 1);
    CHECK_EQ(ptwm_writer_open_path(path, NULL, &w, NULL), PTWM_OK);
    CHECK_EQ(add_bytes(w, "t", "abc", 3), PTWM_OK);
    CHECK(reads_text(path, "old"));
    CHECK_EQ(ptwm_writer_finish(w, NULL), PTWM_OK);
    ptwm_writer_close(w);
    CHECK_EQ(n_files(), 1);
#if defined(_WIN32)
    options.backend = PTWM_BACKEND_PREAD; /* a mapped file may not be deleted there */
#endif
    CHECK_EQ(ptwm_reader_open_path(path, &options, &r, NULL), PTWM_OK);
    CHECK_EQ(unlink(path), 0);
    CHECK(decodes_to(r, "t", "abc", 3)); /* an open file outlives its name */
    ptwm_reader_close(r);
    CHECK_EQ(ptwm_writer_open_path(directory, NULL, &w, &error), PTWM_ERR_IO);
    CHECK_EQ(error.os_error, EISDIR);
    CHECK_EQ(ptwm_writer_open_path("/nonexistent/directory/a.ptwm", NULL, &w, &error), PTWM_ERR_IO);
    CHECK_EQ(error.os_error, ENOENT);
    CHECK_EQ(n_files(), 0);
}

static void test_links_stay_links(void)
{
#if defined(_WIN32)
    printf("SKIP test_links_stay_links: making a symbolic link is a privilege on Windows\n");
#else
    struct ptwm_writer *w = NULL;
    struct ptwm_reader *r = NULL;
    char path[300], link_path[300];
    struct stat st;

    snprintf(path, sizeof path, "%s", path_in("a.ptwm"));
    snprintf(link_path, sizeof link_path, "%s", path_in("link.ptwm"));
    write_text(path, "old");
    CHECK_EQ(symlink("a.ptwm", link_path), 0);
    CHECK_EQ(ptwm_writer_open_path(link_path, NULL, &w, NULL), PTWM_OK);
    CHECK_EQ(add_bytes(w, "t", "abc", 3), PTWM_OK);
    CHECK(reads_text(path, "old"));
    CHECK_EQ(ptwm_writer_finish(w, NULL), PTWM_OK);
    ptwm_writer_close(w);
    CHECK(lstat(link_path, &st) == 0 && S_ISLNK(st.st_mode)); /* the file that it leads to was replaced */
    CHECK_EQ(n_files(), 2);
    CHECK_EQ(ptwm_reader_open_path(path, NULL, &r, NULL), PTWM_OK);
    CHECK(decodes_to(r, "t", "abc", 3));
    ptwm_reader_close(r);
    unlink(link_path);
    unlink(path);
    CHECK_EQ(n_files(), 0);
#endif
}

static void test_backends_agree(void)
{
    uint8_t *a = floats(1);
    struct ptwm_reader_options options = PTWM_READER_OPTIONS_INIT;
    struct ptwm_writer *w = NULL;
    char path[300];

    snprintf(path, sizeof path, "%s", path_in("b.ptwm"));
    CHECK_EQ(ptwm_writer_open_path(path, NULL, &w, NULL), PTWM_OK);
    CHECK_EQ(add_floats(w, "a", a), PTWM_OK);
    CHECK_EQ(ptwm_writer_finish(w, NULL), PTWM_OK);
    ptwm_writer_close(w);
    for (int backend = 0; backend < 2; backend++) {
        struct ptwm_reader *r = NULL;
        options.backend = (enum ptwm_backend)backend;
        CHECK_EQ(ptwm_reader_open_path(path, &options, &r, NULL), PTWM_OK);
        CHECK(decodes_to(r, "a", a, FLOATS * 2));
        CHECK_EQ(ptwm_reader_verify(r, 0, NULL), PTWM_OK);
        ptwm_reader_close(r);
    }
    /* A file that becomes shorter under pread is an error, not a crash. */
    {
        struct ptwm_reader *r = NULL;
        CHECK_EQ(ptwm_reader_open_path(path, &options, &r, NULL), PTWM_OK);
        CHECK_EQ(truncate(path, 100), 0);
        CHECK(!decodes_to(r, "a", a, FLOATS * 2));
        CHECK_EQ(ptwm_reader_verify(r, 1, NULL), PTWM_ERR_TRUNCATED);
        ptwm_reader_close(r);
    }
    unlink(path);
    free(a);
}

/* ---------------------------------------------------------------------------------------------------------- sinks */

struct sink_buffer {
    uint8_t *data;
    size_t nbytes;
    size_t limit; /* a write beyond it fails */
};

static int sink_write(void *context, const void *data, size_t nbytes)
{
    struct sink_buffer *b = context;
    if (b->nbytes + nbytes > b->limit)
        return ENOSPC;
    b->data = realloc(b->data, b->nbytes + nbytes);
    memcpy(b->data + b->nbytes, data, nbytes);
    b->nbytes += nbytes;
    return 0;
}

static enum ptwm_status write_to_sink(struct sink_buffer *buffer, const uint8_t *a, const uint8_t *b,
                                      struct ptwm_error *error)
{
    const struct ptwm_sink sink = { sink_write, buffer };
    struct ptwm_tensor_spec spec = bytes_spec("b", b, FLOATS * 2);
    struct ptwm_writer *w = NULL;
    enum ptwm_status status = ptwm_writer_open_sink(&sink, NULL, &w, error);

    if (status == PTWM_OK)
        status = add_floats(w, "a", a);
    if (status == PTWM_OK)
        status = ptwm_writer_add(w, &spec, error);
    if (status == PTWM_OK)
        status = ptwm_writer_finish(w, error);
    else if (w != NULL)
        CHECK_EQ(ptwm_writer_finish(w, NULL), PTWM_ERR_STATE);
    ptwm_writer_close(w);
    return status;
}

static void test_sinks(void)
{
    uint8_t *a = floats(2), *b = floats(3);
    struct sink_buffer whole = { NULL, 0, SIZE_MAX };
    struct ptwm_reader *r = NULL;

    CHECK_EQ(write_to_sink(&whole, a, b, NULL), PTWM_OK);
    CHECK_EQ(ptwm_reader_open_memory(whole.data, whole.nbytes, NULL, &r, NULL), PTWM_OK);
    CHECK(decodes_to(r, "a", a, FLOATS * 2) && decodes_to(r, "b", b, FLOATS * 2));
    ptwm_reader_close(r);
    for (size_t limit = 0; limit < whole.nbytes; limit += limit < 100 ? 7 : 9973) {
        struct sink_buffer part = { NULL, 0, limit };
        CHECK_EQ(write_to_sink(&part, a, b, NULL), PTWM_ERR_IO);
        free(part.data);
    }
    free(whole.data);
    free(a);
    free(b);
}

/* -------------------------------------------------------------------------------------------------------- copying */

static void test_copying(void)
{
    uint8_t *a = floats(4), *b = floats(5), small[600];
    struct ptwm_writer *from = NULL, *to = NULL;
    struct ptwm_reader *r = NULL, *copy = NULL;
    struct ptwm_tensor_info info = { .struct_nbytes = sizeof info }, tied = { .struct_nbytes = sizeof tied };
    struct ptwm_reader_info file = { .struct_nbytes = sizeof file };
    const void *data, *copied;
    size_t nbytes, copied_nbytes;

    memset(small, 7, sizeof small);
    CHECK_EQ(ptwm_writer_open_memory(NULL, &from, NULL), PTWM_OK);
    CHECK_EQ(add_floats(from, "a", a), PTWM_OK);
    CHECK_EQ(add_floats(from, "b", b), PTWM_OK);
    CHECK_EQ(ptwm_writer_add_alias(from, "tied", 4, "a", 1, NULL), PTWM_OK);
    CHECK_EQ(add_bytes(from, "small 1", small, 100), PTWM_OK);
    CHECK_EQ(add_bytes(from, "small 2", small, 600), PTWM_OK);
    CHECK_EQ(add_bytes(from, "nothing", NULL, 0), PTWM_OK);
    CHECK_EQ(ptwm_writer_finish(from, NULL), PTWM_OK);
    ptwm_writer_get_memory(from, &data, &nbytes);
    CHECK_EQ(ptwm_reader_open_memory(data, nbytes, NULL, &r, NULL), PTWM_OK);

    CHECK_EQ(ptwm_writer_open_memory(NULL, &to, NULL), PTWM_OK);
    CHECK_EQ(add_floats(to, "own", b), PTWM_OK);
    CHECK_EQ(ptwm_writer_copy(to, r, 2, NULL, 0, NULL), PTWM_OK);          /* tied */
    CHECK_EQ(ptwm_writer_copy(to, r, 0, "renamed", 7, NULL), PTWM_OK);    /* shares its segment */
    CHECK_EQ(ptwm_writer_copy(to, r, 0, "own", 3, NULL), PTWM_ERR_DUPLICATE_NAME);
    CHECK_EQ(ptwm_writer_copy(to, r, 3, NULL, 0, NULL), PTWM_OK);          /* out of a group */
    CHECK_EQ(ptwm_writer_copy(to, r, 5, NULL, 0, NULL), PTWM_OK);
    CHECK_EQ(ptwm_writer_copy(to, r, 6, NULL, 0, NULL), PTWM_ERR_NO_TENSOR);
    CHECK_EQ(add_floats(to, "found", a), PTWM_OK); /* equals what was copied */
    CHECK_EQ(ptwm_writer_finish(to, NULL), PTWM_OK);
    ptwm_writer_get_memory(to, &copied, &copied_nbytes);
    CHECK_EQ(ptwm_reader_open_memory(copied, copied_nbytes, NULL, &copy, NULL), PTWM_OK);
    CHECK(decodes_to(copy, "own", b, FLOATS * 2) && decodes_to(copy, "tied", a, FLOATS * 2) &&
          decodes_to(copy, "renamed", a, FLOATS * 2) && decodes_to(copy, "small 1", small, 100) &&
          decodes_to(copy, "nothing", "", 0) && decodes_to(copy, "found", a, FLOATS * 2));
    ptwm_reader_get_info(copy, &file);
    CHECK_EQ(file.n_segments, 3);
    ptwm_reader_get_tensor(copy, 1, &tied);
    ptwm_reader_get_tensor(copy, 2, &info);
    CHECK(tied.segment == info.segment && tied.hash == info.hash && info.has_hash);
    CHECK_EQ(ptwm_reader_verify(copy, 1, NULL), PTWM_OK);
    ptwm_reader_close(copy);
    ptwm_reader_close(r);
    ptwm_writer_close(to);
    ptwm_writer_close(from);
    free(a);
    free(b);
}

/* --------------------------------------------------------------------------------------------------------- memory */

struct counting {
    long left; /* allocations until they fail; negative: never */
    long n_live;
    size_t nbytes_live;
};

static void *counting_alloc(void *context, size_t nbytes)
{
    struct counting *c = context;
    void *p;

    if (c->left == 0)
        return NULL;
    if (c->left > 0)
        c->left--;
    p = malloc(nbytes);
    if (p != NULL) {
        c->n_live++;
        c->nbytes_live += nbytes;
    }
    return p;
}

static void counting_release(void *context, void *p, size_t nbytes)
{
    struct counting *c = context;
    c->n_live--;
    c->nbytes_live -= nbytes;
    free(p);
}

/* Writes and reads a small file with an allocator; any failure ends it. */
static enum ptwm_status write_and_read(const struct ptwm_allocator *allocator, const uint8_t *a)
{
    struct ptwm_writer_options options = PTWM_WRITER_OPTIONS_INIT;
    struct ptwm_reader_options reader_options = PTWM_READER_OPTIONS_INIT;
    struct ptwm_writer *w = NULL;
    struct ptwm_reader *r = NULL;
    uint8_t *buffer = malloc(FLOATS * 2);
    const struct ptwm_request request = { 0, 0, PTWM_NONE, buffer, FLOATS * 2 };
    enum ptwm_status status;
    const void *data;
    size_t nbytes;

    options.allocator = reader_options.allocator = allocator;
    options.threads = 1;
    options.chunk_nbytes = 32 << 10;
    status = ptwm_writer_open_memory(&options, &w, NULL);
    if (status == PTWM_OK)
        status = add_floats(w, "a", a);
    if (status == PTWM_OK)
        status = add_bytes(w, "b", a, 3000);
    if (status == PTWM_OK)
        status = add_floats(w, "c", a);
    if (status == PTWM_OK)
        status = ptwm_writer_finish(w, NULL);
    if (status == PTWM_OK)
        status = ptwm_writer_get_memory(w, &data, &nbytes);
    if (status == PTWM_OK)
        status = ptwm_reader_open_memory(data, nbytes, &reader_options, &r, NULL);
    if (status == PTWM_OK)
        status = ptwm_reader_decode(r, &request, 1, NULL, NULL);
    if (status == PTWM_OK)
        status = memcmp(buffer, a, FLOATS * 2) == 0 ? ptwm_reader_verify(r, 1, NULL) : PTWM_ERR_HASH;
    ptwm_reader_close(r);
    ptwm_writer_close(w);
    free(buffer);
    return status;
}

static void test_every_failed_allocation(void)
{
    uint8_t *a = floats(6);
    struct counting counting = { -1, 0, 0 };
    const struct ptwm_allocator allocator = { counting_alloc, counting_release, &counting };
    long n = 0;

    CHECK_EQ(write_and_read(&allocator, a), PTWM_OK);
    CHECK_EQ(counting.n_live, 0);
    CHECK_EQ(counting.nbytes_live, 0);
    for (;; n++) {
        enum ptwm_status status;
        counting.left = n;
        status = write_and_read(&allocator, a);
        CHECK_EQ(counting.n_live, 0);
        CHECK_EQ(counting.nbytes_live, 0);
        if (status == PTWM_OK)
            break;
        CHECK_EQ(status, PTWM_ERR_MEMORY);
        if (check_failures > 0)
            break;
    }
    printf("%ld allocations failed in turn\n", n);
    CHECK(n > 50);
    free(a);
}

int main(void)
{
    if (!directory_make(directory, sizeof directory))
        return 2;
    RUN(test_refusals_leave_the_writer_usable);
    RUN(test_files_appear_whole_or_not_at_all);
    RUN(test_links_stay_links);
    RUN(test_backends_agree);
    RUN(test_sinks);
    RUN(test_copying);
    RUN(test_every_failed_allocation);
    rmdir(directory);
    CHECK_EXIT();
}
