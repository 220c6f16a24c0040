/*
 * A model for tests of faults: one tensor of many chunks, another with the same bytes, and small ones that share a segment;
 * written to a path in a directory of its own, and compared with what a reader gives.
 */
#ifndef FAULT_MODEL_H
#define FAULT_MODEL_H

#include <dirent.h>
#include <stdbool.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"
#include "directory.h"
#include "ptwm.h"

static char directory[230];
static char path[256]; /* of the model, in the directory */

enum { ROWS = 300, COLUMNS = 256, LARGE = 2 * ROWS * COLUMNS, N_SMALL = 40, SMALL = 512, N_TENSORS = N_SMALL + 2 };

struct model {
    uint8_t large[LARGE], small[N_SMALL][SMALL];
};

static inline bool make_directory(void)
{
    setvbuf(stdout, NULL, _IOLBF, 0); /* what is printed before a fork is not printed twice */
    if (!directory_make(directory, sizeof directory))
        return false;
    snprintf(path, sizeof path, "%s/model.ptwm", directory);
    return true;
}

static inline struct model *make_model(uint64_t seed)
{
    struct model *m = malloc(sizeof *m);

    for (size_t i = 0; i < LARGE; i++)
        m->large[i] = (uint8_t)(i % 2 ? 60 + check_random(&seed) % 4 : check_random(&seed));
    for (size_t i = 0; i < N_SMALL * SMALL; i++)
        m->small[i / SMALL][i % SMALL] = (uint8_t)(check_random(&seed) & 0x3F);
    return m;
}

static inline enum ptwm_status add(struct ptwm_writer *w, const char *name, uint64_t rows, uint64_t columns,
                                   const uint8_t *data, struct ptwm_error *error)
{
    const uint64_t shape[2] = { rows, columns };
    struct ptwm_tensor_spec spec = PTWM_TENSOR_SPEC_INIT;

    spec.name = name;
    spec.name_nbytes = strlen(name);
    spec.dtype = PTWM_DTYPE_BF16;
    spec.n_dims = 2;
    spec.shape = shape;
    spec.data = data;
    spec.nbytes = 2 * rows * columns;
    return ptwm_writer_add(w, &spec, error);
}

/* Adds the model's tensors and finishes the file. */
static inline enum ptwm_status add_model(struct ptwm_writer *w, const struct model *m, struct ptwm_error *error)
{
    enum ptwm_status status = add(w, "large", ROWS, COLUMNS, m->large, error);
    char name[16];

    for (int i = 0; i < N_SMALL && status == PTWM_OK; i++) {
        snprintf(name, sizeof name, "small %d", i);
        status = add(w, name, 1, SMALL / 2, m->small[i], error);
    }
    if (status == PTWM_OK)
        status = add(w, "equal", ROWS, COLUMNS, m->large, error);
    return status == PTWM_OK ? ptwm_writer_finish(w, error) : status;
}

static inline enum ptwm_status write_model_to(const char *to, const struct model *m, struct ptwm_error *error)
{
    struct ptwm_writer_options options = PTWM_WRITER_OPTIONS_INIT;
    struct ptwm_writer *w = NULL;
    enum ptwm_status status;

    options.chunk_nbytes = 16 << 10;
    options.threads = 2;
    status = ptwm_writer_open_path(to, &options, &w, error);
    if (status == PTWM_OK)
        status = add_model(w, m, error);
    ptwm_writer_close(w);
    return status;
}

static inline enum ptwm_status write_model(const struct model *m, struct ptwm_error *error)
{
    return write_model_to(path, m, error);
}

/* The first status that is not PTWM_OK; *is_same is whether all that was decoded is the model's. */
static inline enum ptwm_status decode_model(const struct ptwm_reader *r, const struct model *m, bool *is_same,
                                            struct ptwm_error *error)
{
    uint8_t *large = malloc(LARGE), small[SMALL];
    struct ptwm_request request = { 0, 0, PTWM_NONE, large, LARGE };
    enum ptwm_status status = ptwm_reader_decode(r, &request, 1, NULL, error);

    *is_same = status != PTWM_OK || memcmp(large, m->large, LARGE) == 0;
    for (uint64_t i = 0; i < N_SMALL && status == PTWM_OK; i++) {
        request = (struct ptwm_request){ 1 + i, 0, PTWM_NONE, small, SMALL };
        status = ptwm_reader_decode(r, &request, 1, NULL, error);
        *is_same = *is_same && (status != PTWM_OK || memcmp(small, m->small[i], SMALL) == 0);
    }
    free(large);
    return status;
}

static inline bool holds(const struct ptwm_reader *r, const struct model *m)
{
    bool is_same;
    return decode_model(r, m, &is_same, NULL) == PTWM_OK && is_same;
}

static inline struct ptwm_reader *open_model(enum ptwm_backend backend)
{
    struct ptwm_reader_options options = PTWM_READER_OPTIONS_INIT;
    struct ptwm_reader *r = NULL;

    options.backend = backend;
    CHECK_EQ(ptwm_reader_open_path(path, &options, &r, NULL), PTWM_OK);
    return r;
}

/* Whether the file at the path is this model, whole. */
static inline bool path_holds(const struct model *m)
{
    struct ptwm_reader *r = open_model(PTWM_BACKEND_PREAD);
    const bool is_good = r != NULL && holds(r, m) && ptwm_reader_verify(r, 1, NULL) == PTWM_OK;

    ptwm_reader_close(r);
    return is_good;
}

/* Files in the directory, which may be removed at that. */
static inline int n_files(bool removes)
{
    DIR *d = opendir(directory);
    char full[600];
    int n = 0;

    for (struct dirent *e = readdir(d); e != NULL; e = readdir(d)) {
        if (e->d_name[0] == '.' && (e->d_name[1] == 0 || e->d_name[1] == '.'))
            continue;
        n++;
        snprintf(full, sizeof full, "%s/%s", directory, e->d_name);
        if (removes)
            unlink(full);
    }
    closedir(d);
    return n;
}

/* How a child ended, as waitpid says it. */
static inline int wait_for(pid_t child)
{
    int status = -1;
    CHECK_EQ(waitpid(child, &status, 0), child);
    return status;
}

/* Sanitizers map terabytes and make many mappings, and so do not go with limits of memory. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define IS_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)
#define IS_SANITIZED 1
#endif
#endif
#ifndef IS_SANITIZED
#define IS_SANITIZED 0
#endif

#endif
