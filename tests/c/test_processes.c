/*
 * Processes and threads: many on one file or one reader, forks at any moment, writers that are killed.
 */
#define _DEFAULT_SOURCE
#include <pthread.h>
#include <signal.h>

#include "fault_model.h"

/* ------------------------------------------------------------------------------------------------------ threads */

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

/* -------------------------------------------------------------------------------------------------------- forks */

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

struct busy {
    const struct ptwm_reader *reader;
    const struct model *model;
    bool stops;  /* atomic */
    bool is_bad; /* atomic */
};

static void *keep_busy(void *argument)
{
    struct busy *b = argument;

    while (!__atomic_load_n(&b->stops, __ATOMIC_RELAXED))
        if (!holds(b->reader, b->model) || ptwm_reader_verify(b->reader, 2, NULL) != PTWM_OK)
            __atomic_store_n(&b->is_bad, true, __ATOMIC_RELAXED);
    return NULL;
}

/*
 * A fork while other threads decode: they are not there in the child, and what they held stays held for ever. The child
 * reads with the same reader all the same, also on threads of its own, and writes; a hang ends with its alarm.
 */
static void test_fork_while_threads_decode(void)
{
    enum { N_FORKS = 40 };
    struct model *m = make_model(6);
    pthread_t threads[3];
    char other[300];

    if (IS_SANITIZED) {
        printf("SKIP test_fork_while_threads_decode: the sanitizer's own locks stay held in the child\n");
        free(m);
        return;
    }
    if (getenv("MESON_EXE_WRAPPER") != NULL) {
        printf("SKIP test_fork_while_threads_decode: the emulator's own locks stay held in the child\n");
        free(m);
        return;
    }
    CHECK_EQ(write_model(m, NULL), PTWM_OK);
    snprintf(other, sizeof other, "%s.child", path);
    for (int backend = 0; backend < 2; backend++) {
        struct busy busy = { open_model((enum ptwm_backend)backend), m, false, false };
        for (unsigned i = 0; i < 3; i++)
            CHECK_EQ(pthread_create(&threads[i], NULL, keep_busy, &busy), 0);
        for (int i = 0; i < N_FORKS; i++) {
            pid_t child = fork();
            if (child == 0) {
                alarm(60);
                _exit(!(holds(busy.reader, m) && ptwm_reader_verify(busy.reader, 2, NULL) == PTWM_OK &&
                        (i % 8 != 0 || write_model_to(other, m, NULL) == PTWM_OK)));
            }
            CHECK_EQ(wait_for(child), 0);
        }
        __atomic_store_n(&busy.stops, true, __ATOMIC_RELAXED);
        for (unsigned i = 0; i < 3; i++)
            CHECK_EQ(pthread_join(threads[i], NULL), 0);
        CHECK(!busy.is_bad);
        ptwm_reader_close((struct ptwm_reader *)(uintptr_t)busy.reader);
    }
    CHECK_EQ(n_files(true), 2);
    free(m);
}

/* ---------------------------------------------------------------------------------------------------- processes */

/* Opens the file again and again: it is one of the two models each time, whole. */
static int read_for_a_while(struct model *const models[2], unsigned n)
{
    unsigned seen[2] = { 0, 0 };

    for (unsigned i = 0; i < n || (i < 100 * n && (seen[0] == 0 || seen[1] == 0)); i++) {
        struct ptwm_reader_options options = PTWM_READER_OPTIONS_INIT;
        struct ptwm_reader *r = NULL;
        bool is_first, is_second;
        options.backend = (enum ptwm_backend)(i % 2);
        if (ptwm_reader_open_path(path, &options, &r, NULL) != PTWM_OK)
            return 1;
        is_first = holds(r, models[0]);
        is_second = !is_first && holds(r, models[1]);
        seen[0] += is_first;
        seen[1] += is_second;
        if ((!is_first && !is_second) || ptwm_reader_verify(r, 1, NULL) != PTWM_OK)
            return 2;
        ptwm_reader_close(r);
    }
    return seen[0] > 0 && seen[1] > 0 ? 0 : 3; /* both were there at their times */
}

/* Processes that read while others replace the file, each with its own temporary file. */
static void test_many_processes_on_one_file(void)
{
    enum { N_READERS = 6, N_WRITERS = 2 };
    struct model *models[2] = { make_model(9), make_model(10) };
    pid_t readers[N_READERS], writers[N_WRITERS];

    CHECK_EQ(write_model(models[0], NULL), PTWM_OK);
    for (unsigned i = 0; i < N_WRITERS; i++) {
        writers[i] = fork();
        if (writers[i] == 0)
            for (unsigned k = 0;; k++)
                if (write_model(models[(i + k) % 2], NULL) != PTWM_OK)
                    _exit(1);
    }
    for (unsigned i = 0; i < N_READERS; i++) {
        readers[i] = fork();
        if (readers[i] == 0)
            _exit(read_for_a_while(models, 20));
    }
    for (unsigned i = 0; i < N_READERS; i++)
        CHECK_EQ(wait_for(readers[i]), 0);
    for (unsigned i = 0; i < N_WRITERS; i++) {
        int status;
        kill(writers[i], SIGKILL);
        status = wait_for(writers[i]);
        CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL); /* it had not failed */
    }
    n_files(true);
    free(models[0]);
    free(models[1]);
}

/* Files in the directory that somebody could take for models: all but those that end in .tmp. */
static int n_models(void)
{
    DIR *d = opendir(directory);
    int n = 0;

    for (struct dirent *e = readdir(d); e != NULL; e = readdir(d)) {
        const size_t length = strlen(e->d_name);
        n += e->d_name[0] != '.' && (length < 4 || strcmp(e->d_name + length - 4, ".tmp") != 0);
    }
    closedir(d);
    return n;
}

/* The file is the old one or the new one, whole, whenever the writer is killed; what else is left is not named as one. */
static void test_killed_while_writing(void)
{
    struct model *models[2] = { make_model(6), make_model(7) };
    unsigned n_killed = 0, n_left = 0;
    uint64_t seed = 1;

    CHECK_EQ(write_model(models[0], NULL), PTWM_OK);
    for (unsigned i = 0; i < 60; i++) {
        int status;
        pid_t child = fork();
        if (child == 0)
            for (unsigned k = 1;; k++) /* until it is killed, so that this happens at any moment */
                if (write_model(models[k % 2], NULL) != PTWM_OK)
                    _exit(1);
        usleep((useconds_t)(check_random(&seed) % 20000));
        kill(child, SIGKILL);
        status = wait_for(child);
        n_killed += WIFSIGNALED(status);
        CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
        CHECK(path_holds(models[0]) || path_holds(models[1]));
        CHECK_EQ(n_models(), 1);
    }
    CHECK_EQ(n_killed, 60);
    n_left = (unsigned)n_files(true) - 1;
    CHECK(n_left > 0); /* some were killed half-way */
    printf("killed %u times, %u times with a temporary file\n", n_killed, n_left);
    free(models[0]);
    free(models[1]);
}

/* A temporary file that was left behind under the name that would be next is neither used nor removed. */
static void test_temporary_files_of_others(void)
{
    struct model *m = make_model(11);
    char other[400], text[8] = { 0 };
    FILE *f;

    snprintf(other, sizeof other, "%s.%ld.0.tmp", path, (long)getpid());
    f = fopen(other, "wb");
    fputs("other", f);
    fclose(f);
    CHECK_EQ(write_model(m, NULL), PTWM_OK);
    CHECK(path_holds(m));
    f = fopen(other, "rb");
    CHECK(f != NULL && fread(text, 1, sizeof text, f) == 5 && strcmp(text, "other") == 0);
    if (f != NULL)
        fclose(f);
    CHECK_EQ(n_files(true), 2);
    free(m);
}

int main(void)
{
    if (!make_directory())
        return 1;
    RUN(test_many_threads_on_one_reader);
    RUN(test_fork_after_opening);
    RUN(test_fork_while_threads_decode);
    RUN(test_many_processes_on_one_file);
    RUN(test_killed_while_writing);
    RUN(test_temporary_files_of_others);
    rmdir(directory);
    CHECK_EXIT();
}
