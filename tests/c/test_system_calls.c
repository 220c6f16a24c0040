/*
 * System calls that move few bytes, are interrupted, or fail: the program's own pread, write, fsync, close, rename and
 * pthread_create stand before those of the system. What can be gone on with is; what cannot is a status with the system's
 * error, and the old file stays as it was.
 */
#define _GNU_SOURCE /* RTLD_NEXT */
#define _FILE_OFFSET_BITS 64
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/time.h>
#include <time.h>

#include "fault_model.h"

/* -------------------------------------------------------------------------------------- system calls, made worse */

enum call { NONE, PREAD, WRITE, FSYNC, CLOSE, RENAME, THREAD, N_CALLS };

/* What goes wrong: every call is short and every third is interrupted; or a call fails from its nth time on. */
static bool is_slow;
static bool is_late; /* reading takes as long as from a disk */
static enum call failing;
static unsigned failing_from;
static int failing_with;
static unsigned n_calls[N_CALLS]; /* atomic */

static void fail_from(enum call call, unsigned nth, int os_error)
{
    memset(n_calls, 0, sizeof n_calls);
    failing = call;
    failing_from = nth;
    failing_with = os_error;
}

static void fail_nothing(void)
{
    is_slow = is_late = false;
    fail_from(NONE, 0, 0);
}

/* Counts a call; true, with errno, if it is to fail. */
static bool fails(enum call call)
{
    const unsigned n = __atomic_add_fetch(&n_calls[call], 1, __ATOMIC_RELAXED);

    if (failing == call && n >= failing_from) {
        errno = failing_with;
        return true;
    }
    if (is_slow && (call == PREAD || call == WRITE || call == FSYNC) && n % 3 == 0) {
        errno = EINTR;
        return true;
    }
    return false;
}

static size_t shortened(size_t nbytes)
{
    return is_slow && nbytes > 1000 ? 1000 : nbytes;
}

/* The system's function of a name, in *function, which points to a pointer to a function of its type. */
static void find_system(const char *name, void *function)
{
    void *found = dlsym(RTLD_NEXT, name);

    if (found == NULL)
        abort();
    memcpy(function, &found, sizeof found);
}

#ifdef __GLIBC__
#define PREAD_NAME "pread64" /* what glibc makes of pread with offsets of 64 bits */
#else
#define PREAD_NAME "pread"
#endif

ssize_t pread(int fd, void *buffer, size_t nbytes, off_t offset)
{
    ssize_t (*system_pread)(int, void *, size_t, off_t);

    if (fails(PREAD))
        return -1;
    if (is_late)
        nanosleep(&(const struct timespec){ 0, 200000 }, NULL);
    find_system(PREAD_NAME, &system_pread);
    return system_pread(fd, buffer, shortened(nbytes), offset);
}

ssize_t write(int fd, const void *buffer, size_t nbytes)
{
    ssize_t (*system_write)(int, const void *, size_t);

    if (fails(WRITE))
        return -1;
    find_system("write", &system_write);
    return system_write(fd, buffer, shortened(nbytes));
}

int fsync(int fd)
{
    int (*system_fsync)(int);

    if (fails(FSYNC))
        return -1;
    find_system("fsync", &system_fsync);
    return system_fsync(fd);
}

/* Whatever close says, the descriptor is closed. */
int close(int fd)
{
    int (*system_close)(int);
    int result;

    find_system("close", &system_close);
    result = system_close(fd);
    return fails(CLOSE) ? -1 : result;
}

int rename(const char *from, const char *to)
{
    int (*system_rename)(const char *, const char *);

    if (fails(RENAME))
        return -1;
    find_system("rename", &system_rename);
    return system_rename(from, to);
}

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *), void *argument)
{
    int (*system_create)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);

    if (fails(THREAD))
        return errno;
    find_system("pthread_create", &system_create);
    return system_create(thread, attributes, run, argument);
}

/* ------------------------------------------------------------------------------------------------------- tests */

static void test_short_and_interrupted_calls(void)
{
    struct model *m = make_model(1);
    struct ptwm_reader *r;

    is_slow = true;
    CHECK_EQ(write_model(m, NULL), PTWM_OK);
    CHECK(n_calls[WRITE] > 50);
    fail_from(NONE, 0, 0);
    r = open_model(PTWM_BACKEND_PREAD);
    CHECK(holds(r, m));
    CHECK_EQ(ptwm_reader_verify(r, 2, NULL), PTWM_OK);
    CHECK(n_calls[PREAD] > 50);
    fail_nothing();
    ptwm_reader_close(r);
    CHECK_EQ(n_files(true), 1);
    free(m);
}

/* The disk is full at the first write, the second, ... */
static void test_every_write_fails(void)
{
    struct model *old = make_model(2), *new = make_model(3);
    unsigned n = 0;

    CHECK_EQ(write_model(old, NULL), PTWM_OK);
    for (int is_over = 0; !is_over && n < 1000;) {
        struct ptwm_error error = PTWM_ERROR_INIT;
        enum ptwm_status status;
        fail_from(WRITE, ++n, ENOSPC);
        status = write_model(new, &error);
        is_over = status == PTWM_OK;
        fail_nothing();
        if (!is_over) {
            CHECK_EQ(status, PTWM_ERR_IO);
            CHECK_EQ(error.os_error, ENOSPC);
            CHECK(path_holds(old));
        }
        CHECK_EQ(n_files(false), 1); /* no temporary file */
    }
    CHECK(n > 3 && n < 1000);
    CHECK(path_holds(new));
    n_files(true);
    free(old);
    free(new);
}

/* What comes after the last write. A directory that cannot be synced is no failure: not every system can. */
static void test_publishing_fails(void)
{
    static const struct {
        enum call call;
        int os_error;
    } faults[] = { { FSYNC, EIO }, { CLOSE, EDQUOT }, { RENAME, EACCES } };
    struct model *old = make_model(4), *new = make_model(5);

    CHECK_EQ(write_model(old, NULL), PTWM_OK);
    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++) {
        struct ptwm_error error = PTWM_ERROR_INIT;
        enum ptwm_status status;
        fail_from(faults[i].call, 1, faults[i].os_error);
        status = write_model(new, &error);
        CHECK(n_calls[faults[i].call] > 0);
        fail_nothing();
        CHECK_EQ(status, PTWM_ERR_IO);
        CHECK_EQ(error.os_error, faults[i].os_error);
        CHECK_EQ(n_files(false), 1);
        CHECK(path_holds(old));
    }
    fail_from(FSYNC, 2, EINVAL);
    CHECK_EQ(write_model(new, NULL), PTWM_OK);
    CHECK_EQ(n_calls[FSYNC], 2);
    fail_nothing();
    CHECK(path_holds(new));
    n_files(true);
    free(old);
    free(new);
}

static enum ptwm_status read_model(const struct model *m, struct ptwm_error *error)
{
    struct ptwm_reader_options options = PTWM_READER_OPTIONS_INIT;
    struct ptwm_reader *r = NULL;
    enum ptwm_status status;
    bool is_same = true;

    options.backend = PTWM_BACKEND_PREAD;
    status = ptwm_reader_open_path(path, &options, &r, error);
    if (status == PTWM_OK)
        status = decode_model(r, m, &is_same, error);
    CHECK(is_same);
    if (status == PTWM_OK)
        status = ptwm_reader_verify(r, 2, error);
    ptwm_reader_close(r);
    return status;
}

static void test_every_read_fails(void)
{
    struct model *m = make_model(6);
    unsigned n = 0;
    int is_over = 0;

    CHECK_EQ(write_model(m, NULL), PTWM_OK);
    while (!is_over && n < 1000) {
        struct ptwm_error error = PTWM_ERROR_INIT;
        enum ptwm_status status;
        fail_from(PREAD, ++n, EIO);
        status = read_model(m, &error);
        fail_nothing();
        is_over = status == PTWM_OK;
        if (is_over)
            break;
        CHECK_EQ(status, PTWM_ERR_IO);
        CHECK_EQ(error.os_error, EIO);
        CHECK(error.file_offset != PTWM_NONE);
    }
    CHECK(n > 8 && n < 1000);
    n_files(true);
    free(m);
}

/* A writer reads what it has written, to see whether two tensors are equal. */
static void test_reading_back_fails(void)
{
    struct model *m = make_model(7);
    struct ptwm_error error = PTWM_ERROR_INIT;
    enum ptwm_status status;

    fail_from(PREAD, 1, EIO);
    status = write_model(m, &error);
    CHECK(n_calls[PREAD] > 0);
    fail_nothing();
    CHECK_EQ(status, PTWM_ERR_IO);
    CHECK_EQ(error.os_error, EIO);
    CHECK_EQ(n_files(true), 0);
    free(m);
}

/* Threads that cannot be had are done without: all of them, or all but one or two. */
static void test_no_threads(void)
{
    enum { N = 4 << 20 };
    uint8_t *data = malloc(N), *got = malloc(N);
    const struct ptwm_request request = { 0, 0, PTWM_NONE, got, N };
    struct ptwm_writer_options writer_options = PTWM_WRITER_OPTIONS_INIT;
    struct ptwm_decode_options options = PTWM_DECODE_OPTIONS_INIT;
    uint64_t seed = 8;

    for (size_t i = 0; i < N; i++)
        data[i] = (uint8_t)(i % 2 ? 60 + check_random(&seed) % 4 : check_random(&seed));
    writer_options.threads = options.threads = 4;
    for (unsigned nth = 1; nth < 4; nth++) {
        struct ptwm_writer *w = NULL;
        struct ptwm_reader *r = NULL;
        const void *file;
        size_t nbytes;
        CHECK_EQ(ptwm_writer_open_memory(&writer_options, &w, NULL), PTWM_OK);
        fail_from(THREAD, nth, EAGAIN);
        CHECK_EQ(add(w, "large", 2048, N / 4096, data, NULL), PTWM_OK);
        CHECK(n_calls[THREAD] >= nth);
        CHECK_EQ(ptwm_writer_finish(w, NULL), PTWM_OK);
        CHECK_EQ(ptwm_writer_get_memory(w, &file, &nbytes), PTWM_OK);
        CHECK_EQ(ptwm_reader_open_memory(file, nbytes, NULL, &r, NULL), PTWM_OK);
        memset(got, 0, N);
        fail_from(THREAD, nth, EAGAIN);
        CHECK_EQ(ptwm_reader_decode(r, &request, 1, &options, NULL), PTWM_OK);
        CHECK(n_calls[THREAD] >= nth);
        CHECK(memcmp(got, data, N) == 0);
        fail_from(THREAD, nth, EAGAIN);
        CHECK_EQ(ptwm_reader_verify(r, 4, NULL), PTWM_OK);
        CHECK(n_calls[THREAD] >= nth);
        fail_nothing();
        ptwm_reader_close(r);
        ptwm_writer_close(w);
    }
    free(data);
    free(got);
}

/* Who waits for the disk has a thread read ahead, and goes on without it if there is none to be had. */
static void test_reading_ahead(void)
{
    enum { N = 20 << 20 };
    uint8_t *data = malloc(N), *got = malloc(N);
    const struct ptwm_request request = { 0, 0, PTWM_NONE, got, N };
    struct ptwm_decode_options options = PTWM_DECODE_OPTIONS_INIT;
    struct ptwm_writer *w = NULL;
    uint64_t seed = 9;

    for (size_t i = 0; i < N; i++)
        data[i] = (uint8_t)check_random(&seed);
    options.threads = 1;
    CHECK_EQ(ptwm_writer_open_path(path, NULL, &w, NULL), PTWM_OK);
    CHECK_EQ(add(w, "large", 2048, N / 4096, data, NULL), PTWM_OK);
    CHECK_EQ(ptwm_writer_finish(w, NULL), PTWM_OK);
    ptwm_writer_close(w);
    for (int has_thread = 0; has_thread < 2; has_thread++) {
        struct ptwm_reader *r = open_model(PTWM_BACKEND_PREAD);
        memset(got, 0, N);
        fail_from(has_thread ? NONE : THREAD, 1, EAGAIN);
        is_late = true;
        CHECK_EQ(ptwm_reader_decode(r, &request, 1, &options, NULL), PTWM_OK);
        CHECK_EQ(n_calls[THREAD], 1);
        fail_nothing();
        CHECK(memcmp(got, data, N) == 0);
        ptwm_reader_close(r);
    }
    for (int backend = PTWM_BACKEND_MMAP; backend <= PTWM_BACKEND_PREAD; backend++) {
        struct ptwm_reader *r = NULL;
        const int fd = open(path, O_RDONLY);
        struct ptwm_reader_options reader_options = PTWM_READER_OPTIONS_INIT;
#ifdef POSIX_FADV_DONTNEED /* where the directory is on a disk, the file is read from it now */
        CHECK(fd >= 0 && posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED) == 0);
#endif
        close(fd);
        reader_options.backend = (enum ptwm_backend)backend;
        CHECK_EQ(ptwm_reader_open_path(path, &reader_options, &r, NULL), PTWM_OK);
        memset(got, 0, N);
        CHECK_EQ(ptwm_reader_decode(r, &request, 1, &options, NULL), PTWM_OK);
        CHECK(memcmp(got, data, N) == 0);
        ptwm_reader_close(r);
    }
    n_files(true);
    free(data);
    free(got);
}

static unsigned n_signals; /* atomic */

static void on_signal(int number)
{
    (void)number;
    __atomic_fetch_add(&n_signals, 1, __ATOMIC_RELAXED);
}

/* A signal each 200 microseconds, whose handler lets no call begin again. */
static void test_signals(void)
{
    const struct itimerval often = { { 0, 200 }, { 0, 200 } }, never = { { 0, 0 }, { 0, 0 } };
    struct sigaction action, before;
    struct model *m = make_model(9);

    memset(&action, 0, sizeof action);
    action.sa_handler = on_signal;
    CHECK_EQ(sigaction(SIGALRM, &action, &before), 0);
    CHECK_EQ(setitimer(ITIMER_REAL, &often, NULL), 0);
    for (int i = 0; i < 10 || (n_signals < 20 && i < 1000); i++) {
        struct ptwm_reader *r;
        CHECK_EQ(write_model(m, NULL), PTWM_OK);
        r = open_model((enum ptwm_backend)(i % 2));
        CHECK(holds(r, m));
        CHECK_EQ(ptwm_reader_verify(r, 2, NULL), PTWM_OK);
        ptwm_reader_close(r);
    }
    CHECK_EQ(setitimer(ITIMER_REAL, &never, NULL), 0);
    CHECK(n_signals >= 20);
    CHECK_EQ(sigaction(SIGALRM, &before, NULL), 0);
    n_files(true);
    free(m);
}

int main(void)
{
    if (!make_directory())
        return 1;
    RUN(test_short_and_interrupted_calls);
    RUN(test_every_write_fails);
    RUN(test_publishing_fails);
    RUN(test_every_read_fails);
    RUN(test_reading_back_fails);
    RUN(test_no_threads);
    RUN(test_reading_ahead);
    RUN(test_signals);
    rmdir(directory);
    CHECK_EXIT();
}
