/*
 * Faults of the machine: reads and writes that are short, interrupted or fail, files that may not grow, memory that is
 * refused while reading, processes that fork or are killed, and many threads on one reader.
 */
#define _DEFAULT_SOURCE
#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"
#include "ptwm.h"

static char directory[] = "/tmp/ptwm-test-XXXXXX";
static char path[256];

/* -------------------------------------------------------------------------------------- system calls, made worse */

/* While it is set, every call moves few bytes at most, and every third is interrupted before that. */
static bool is_slow;
static unsigned n_calls;

#if defined(__GLIBC__) && defined(__x86_64__) && !defined(__ILP32__)
#define HAS_SLOW_CALLS 1
static bool is_interrupted(size_t *nbytes)
{
    if (!is_slow)
        return false;
    *nbytes = *nbytes < 1000 ? *nbytes : 1000;
    if (__atomic_add_fetch(&n_calls, 1, __ATOMIC_RELAXED) % 3 != 0)
        return false;
    errno = EINTR;
    return true;
}

/* The program's own definitions come before libc's; with 64-bit offsets the first of these has another name. */
ssize_t pread64(int fd, void *buffer, size_t nbytes, off_t offset);
ssize_t pread64(int fd, void *buffer, size_t nbytes, off_t offset)
{
    return is_interrupted(&nbytes) ? -1 : (ssize_t)syscall(SYS_pread64, fd, buffer, nbytes, offset);
}

ssize_t write(int fd, const void *buffer, size_t nbytes)
{
    return is_interrupted(&nbytes) ? -1 : (ssize_t)syscall(SYS_write, fd, buffer, nbytes);
}
#else
#define HAS_SLOW_CALLS 0
#endif

/* ---------------------------------------------------------------------------------------------------- a model */

/* A large tensor of several chunks, and small ones that share a segment. */
enum { ROWS = 300, COLUMNS = 256, LARGE = 2 * ROWS * COLUMNS, N_SMALL = 40, SMALL = 512 };

struct model {
    uint8_t large[LARGE], small[N_SMALL][SMALL];
};

static struct model *make_model(uint64_t seed)
{
    struct model *m = malloc(sizeof *m);

    for (size_t i = 0; i < LARGE; i++)
        m->large[i] = (uint8_t)(i % 2 ? 60 + check_random(&seed) % 4 : check_random(&seed));
    for (size_t i = 0; i < N_SMALL * SMALL; i++)
        m->small[i / SMALL][i % SMALL] = (uint8_t)(check_random(&seed) & 0x3F);
    return m;
}

static enum ptwm_status add(struct ptwm_writer *w, const char *name, uint64_t rows, uint64_t columns, const uint8_t *data,
                            struct ptwm_error *error)
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

static enum ptwm_status add_model(struct ptwm_writer *w, const struct model *m, struct ptwm_error *error)
{
    enum ptwm_status status = add(w, "large", ROWS, COLUMNS, m->large, error);
    char name[16];

    for (int i = 0; i < N_SMALL && status == PTWM_OK; i++) {
        snprintf(name, sizeof name, "small %d", i);
        status = add(w, name, 1, SMALL / 2, m->small[i], error);
    }
    return status == PTWM_OK ? ptwm_writer_finish(w, error) : status;
}

static enum ptwm_status write_model(const struct model *m, struct ptwm_error *error)
{
    struct ptwm_writer_options options = PTWM_WRITER_OPTIONS_INIT;
    struct ptwm_writer *w = NULL;
    enum ptwm_status status;

    options.chunk_nbytes = 16 << 10;
    options.threads = 2;
    status = ptwm_writer_open_path(path, &options, &w, error);
    if (status == PTWM_OK)
        status = add_model(w, m, error);
    ptwm_writer_close(w);
    return status;
}

static bool holds(const struct ptwm_reader *r, const struct model *m)
{
    uint8_t *large = malloc(LARGE), small[SMALL];
    struct ptwm_request request = { 0, 0, PTWM_NONE, large, LARGE };
    bool is_same = ptwm_reader_decode(r, &request, 1, NULL, NULL) == PTWM_OK && memcmp(large, m->large, LARGE) == 0;

    for (uint64_t i = 0; i < N_SMALL && is_same; i++) {
        request = (struct ptwm_request){ 1 + i, 0, PTWM_NONE, small, SMALL };
        is_same = ptwm_reader_decode(r, &request, 1, NULL, NULL) == PTWM_OK && memcmp(small, m->small[i], SMALL) == 0;
    }
    free(large);
    return is_same;
}

static struct ptwm_reader *open_model(enum ptwm_backend backend)
{
    struct ptwm_reader_options options = PTWM_READER_OPTIONS_INIT;
    struct ptwm_reader *r = NULL;

    options.backend = backend;
    CHECK_EQ(ptwm_reader_open_path(path, &options, &r, NULL), PTWM_OK);
    return r;
}

/* Files in the directory, which may be removed at that. */
static int n_files(bool removes)
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

/* ------------------------------------------------------------------------------------------------------- tests */

static void test_short_and_interrupted_calls(void)
{
    struct model *m = make_model(1);
    struct ptwm_reader *r;

    if (!HAS_SLOW_CALLS) {
        printf("SKIP test_short_and_interrupted_calls: only with glibc on x86-64 are system calls replaced\n");
        free(m);
        return;
    }
    is_slow = true;
    n_calls = 0;
    CHECK_EQ(write_model(m, NULL), PTWM_OK);
    CHECK(n_calls > 50);
    n_calls = 0;
    r = open_model(PTWM_BACKEND_PREAD);
    CHECK(holds(r, m));
    CHECK_EQ(ptwm_reader_verify(r, 2, NULL), PTWM_OK);
    CHECK(n_calls > 50);
    is_slow = false;
    ptwm_reader_close(r);
    CHECK_EQ(n_files(true), 1);
    free(m);
}

/* A source that fails from its nth call on, and an allocator that fails at its nth. */
struct faults {
    const uint8_t *file;
    long reads_left, allocations_left;
    size_t live;
    pthread_mutex_t lock;
};

static int faulty_read(void *context, uint64_t offset, void *buffer, size_t nbytes)
{
    struct faults *f = context;

    if (f->reads_left-- <= 0)
        return EIO;
    memcpy(buffer, f->file + offset, nbytes);
    return 0;
}

static void *faulty_alloc(void *context, size_t nbytes)
{
    struct faults *f = context;
    bool fails;

    pthread_mutex_lock(&f->lock);
    fails = f->allocations_left-- == 0;
    f->live += fails ? 0 : nbytes;
    pthread_mutex_unlock(&f->lock);
    return fails ? NULL : malloc(nbytes);
}

static void faulty_release(void *context, void *pointer, size_t nbytes)
{
    struct faults *f = context;

    pthread_mutex_lock(&f->lock);
    f->live -= nbytes;
    pthread_mutex_unlock(&f->lock);
    free(pointer);
}

/* Opens, decodes, verifies and copies; the first status that is not PTWM_OK. */
static enum ptwm_status read_all(struct faults *f, size_t nbytes, const struct model *m)
{
    const struct ptwm_allocator allocator = { faulty_alloc, faulty_release, f };
    const struct ptwm_source source = { faulty_read, f, nbytes };
    struct ptwm_reader_options options = PTWM_READER_OPTIONS_INIT;
    struct ptwm_reader *r = NULL;
    struct ptwm_layout *layout = NULL;
    struct ptwm_writer *w = NULL;
    uint8_t *large = malloc(LARGE), small[SMALL];
    const struct ptwm_request requests[2] = { { 0, 0, PTWM_NONE, large, LARGE }, { 7, 0, PTWM_NONE, small, SMALL } };
    enum ptwm_status status;

    options.allocator = &allocator;
    status = ptwm_reader_open_source(&source, &options, &r, NULL);
    if (status == PTWM_OK)
        status = ptwm_reader_decode(r, requests, 2, NULL, NULL);
    if (status == PTWM_OK)
        CHECK(memcmp(large, m->large, LARGE) == 0 && memcmp(small, m->small[6], SMALL) == 0);
    if (status == PTWM_OK)
        status = ptwm_reader_verify(r, 2, NULL);
    if (status == PTWM_OK)
        status = ptwm_reader_get_layout(r, 0, &layout, NULL);
    if (status == PTWM_OK)
        status = ptwm_writer_open_memory(NULL, &w, NULL);
    for (uint64_t i = 0; i < 3 && status == PTWM_OK; i++)
        status = ptwm_writer_copy(w, r, i, NULL, 0, NULL);
    ptwm_writer_close(w);
    ptwm_layout_free(layout);
    ptwm_reader_close(r);
    free(large);
    return status;
}

static void test_failing_reads_and_allocations(void)
{
    struct faults f = { NULL, 0, -1, 0, PTHREAD_MUTEX_INITIALIZER };
    struct model *m = make_model(2);
    struct ptwm_writer *w = NULL;
    enum ptwm_status status;
    const void *file;
    size_t nbytes;
    long n = 0;

    CHECK_EQ(ptwm_writer_open_memory(NULL, &w, NULL), PTWM_OK);
    CHECK_EQ(add_model(w, m, NULL), PTWM_OK);
    CHECK_EQ(ptwm_writer_get_memory(w, &file, &nbytes), PTWM_OK);
    f.file = file;
    do {
        f.reads_left = n++;
        f.allocations_left = -1;
        status = read_all(&f, nbytes, m);
        CHECK(status == PTWM_OK || status == PTWM_ERR_IO);
        CHECK_EQ(f.live, 0);
    } while (status != PTWM_OK && n < 1000);
    CHECK(n > 8 && status == PTWM_OK);
    n = 0;
    do {
        f.reads_left = 1000000;
        f.allocations_left = n++;
        status = read_all(&f, nbytes, m);
        CHECK(status == PTWM_OK || status == PTWM_ERR_MEMORY);
        CHECK_EQ(f.live, 0);
    } while (f.allocations_left < 0 && n < 5000); /* there may be some that it can do without */
    CHECK(n > 30 && status == PTWM_OK);
    ptwm_writer_close(w);
    free(m);
}

/* In a process of its own: the limit and the signal's disposition are its. */
static int write_with_limit(const struct model *m, size_t nbytes)
{
    const struct rlimit limit = { nbytes, nbytes };
    struct ptwm_error error = PTWM_ERROR_INIT;
    enum ptwm_status status;

    signal(SIGXFSZ, SIG_IGN);
    if (setrlimit(RLIMIT_FSIZE, &limit) != 0)
        return 2;
    status = write_model(m, &error);
    return status == PTWM_ERR_IO && error.os_error == EFBIG ? 0 : 1;
}

static int wait_for(pid_t child)
{
    int status = -1;
    CHECK_EQ(waitpid(child, &status, 0), child);
    return status;
}

static void test_files_that_may_not_grow(void)
{
    struct model *old = make_model(3), *new = make_model(4);
    struct ptwm_reader *r;

    CHECK_EQ(write_model(old, NULL), PTWM_OK);
    for (size_t limit = 0; limit < 100 << 10; limit += 33 << 10) {
        pid_t child = fork();
        if (child == 0)
            _exit(write_with_limit(new, limit));
        CHECK_EQ(wait_for(child), 0);
        CHECK_EQ(n_files(false), 1); /* no temporary file */
        r = open_model(PTWM_BACKEND_MMAP);
        CHECK(holds(r, old));
        ptwm_reader_close(r);
    }
    n_files(true);
    free(old);
    free(new);
}

static void test_fork_after_opening(void)
{
    struct model *m = make_model(5);

    CHECK_EQ(write_model(m, NULL), PTWM_OK);
    for (int backend = 0; backend < 2; backend++) {
        struct ptwm_reader *r = open_model((enum ptwm_backend)backend);
        pid_t child;
        CHECK(holds(r, m)); /* threads have run, and segments are kept */
        child = fork();
        if (child == 0) {
            const bool is_good = holds(r, m) && ptwm_reader_verify(r, 2, NULL) == PTWM_OK;
            ptwm_reader_close(r);
            _exit(!is_good);
        }
        CHECK(holds(r, m));
        CHECK_EQ(wait_for(child), 0);
        CHECK(holds(r, m));
        ptwm_reader_close(r);
    }
    n_files(true);
    free(m);
}

/* The file is the old one or the new one, whole, whenever the writer is killed. */
static void test_killed_while_writing(void)
{
    struct model *models[2] = { make_model(6), make_model(7) };
    unsigned n_killed = 0;

    CHECK_EQ(write_model(models[0], NULL), PTWM_OK);
    for (unsigned i = 0; i < 24; i++) {
        struct ptwm_reader *r;
        int status;
        pid_t child = fork();
        if (child == 0)
            _exit(write_model(models[(i + 1) % 2], NULL));
        usleep(300 * i * i);
        kill(child, SIGKILL);
        status = wait_for(child);
        n_killed += WIFSIGNALED(status);
        CHECK(WIFSIGNALED(status) || status == 0);
        r = open_model(PTWM_BACKEND_PREAD);
        CHECK(holds(r, models[0]) || holds(r, models[1]));
        CHECK_EQ(ptwm_reader_verify(r, 1, NULL), PTWM_OK);
        ptwm_reader_close(r);
    }
    CHECK(n_killed > 0);
    n_files(true); /* what was killed leaves its temporary file */
    free(models[0]);
    free(models[1]);
}

struct user {
    const struct ptwm_reader *reader;
    const struct model *model;
    uint64_t seed;
    bool is_good;
};

static void *use(void *argument)
{
    struct user *u = argument;
    uint8_t *buffer = malloc(LARGE);

    u->is_good = true;
    for (int i = 0; i < 60 && u->is_good; i++) {
        const uint64_t x = check_random(&u->seed), small = x % N_SMALL;
        const uint64_t first = x >> 8 & 0xFFFF, n = (x >> 24) % (ROWS * COLUMNS - first);
        const struct ptwm_request requests[2] = { { 1 + small, 0, PTWM_NONE, buffer, SMALL },
                                                  { 0, first, n, buffer + SMALL, 2 * n } };
        const size_t n_requests = 2 * n + SMALL <= LARGE ? 2 : 1;
        u->is_good = ptwm_reader_decode(u->reader, requests, n_requests, NULL, NULL) == PTWM_OK &&
                     memcmp(buffer, u->model->small[small], SMALL) == 0 &&
                     (n_requests == 1 || memcmp(buffer + SMALL, u->model->large + 2 * first, 2 * n) == 0);
    }
    free(buffer);
    return NULL;
}

static void test_many_threads_on_one_reader(void)
{
    struct model *m = make_model(8);
    struct user users[8];
    pthread_t threads[8];

    CHECK_EQ(write_model(m, NULL), PTWM_OK);
    for (int backend = 0; backend < 2; backend++) {
        struct ptwm_reader *r = open_model((enum ptwm_backend)backend);
        for (unsigned i = 0; i < 8; i++) {
            users[i] = (struct user){ r, m, i, false };
            CHECK_EQ(pthread_create(&threads[i], NULL, use, &users[i]), 0);
        }
        for (unsigned i = 0; i < 8; i++) {
            CHECK_EQ(pthread_join(threads[i], NULL), 0);
            CHECK(users[i].is_good);
        }
        ptwm_reader_close(r);
    }
    n_files(true);
    free(m);
}

int main(void)
{
    if (mkdtemp(directory) == NULL)
        return 1;
    snprintf(path, sizeof path, "%s/model.ptwm", directory);
    RUN(test_short_and_interrupted_calls);
    RUN(test_failing_reads_and_allocations);
    RUN(test_files_that_may_not_grow);
    RUN(test_fork_after_opening);
    RUN(test_killed_while_writing);
    RUN(test_many_threads_on_one_reader);
    rmdir(directory);
    CHECK_EXIT();
}
