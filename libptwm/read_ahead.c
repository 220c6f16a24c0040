#include "read_ahead.h"

#include <pthread.h>
#include <stdbool.h>

enum {
    WORTHWHILE_NBYTES = 16 << 20, /* less than this is read before a thread has begun */
    STEP_NBYTES = 4 << 20         /* at a time; stopping waits for one */
};

struct ptwm_read_ahead {
    const struct ptwm_allocator *allocator;
    const struct ptwm_file *file;
    const struct ptwm_extent *extents;
    bool has_begun; /* atomic: whoever sets it creates the thread */
    bool has_thread;
    pthread_t thread;
    uint64_t from;        /* the offset where it begins: what lies before has been read */
    pthread_mutex_t lock; /* guards what follows */
    pthread_cond_t changed;
    size_t allowed;
    bool stops;
};

/* Waits until extent number i may be read; false if it is to stop. */
static bool wait_for(struct ptwm_read_ahead *a, size_t i)
{
    bool stops;

    pthread_mutex_lock(&a->lock);
    while (!a->stops && i >= a->allowed)
        pthread_cond_wait(&a->changed, &a->lock);
    stops = a->stops;
    pthread_mutex_unlock(&a->lock);
    return !stops;
}

static void *run(void *argument)
{
    struct ptwm_read_ahead *a = argument;

    for (size_t i = 0; wait_for(a, i); i++) {
        const struct ptwm_extent e = a->extents[i];
        uint64_t at = 0;
        if (e.offset < a->from)
            at = a->from - e.offset < e.nbytes ? a->from - e.offset : e.nbytes;
        for (; at < e.nbytes && wait_for(a, i); at += STEP_NBYTES)
            ptwm_file_prefetch(a->file, e.offset + at, e.nbytes - at < STEP_NBYTES ? e.nbytes - at : STEP_NBYTES);
    }
    return NULL;
}

struct ptwm_read_ahead *ptwm_read_ahead_begin(const struct ptwm_file *file, const struct ptwm_extent *extents, size_t n,
                                              const struct ptwm_allocator *allocator)
{
    struct ptwm_read_ahead *a;
    uint64_t total = 0;

    for (size_t i = 0; i < n && total < WORTHWHILE_NBYTES; i++)
        total += extents[i].nbytes;
    if (total < WORTHWHILE_NBYTES || !ptwm_file_can_prefetch(file))
        return NULL;
    a = ptwm_calloc(allocator, 1, sizeof *a);
    if (a == NULL)
        return NULL;
    a->allocator = allocator;
    a->file = file;
    a->extents = extents;
    if (pthread_mutex_init(&a->lock, NULL) != 0)
        goto no_lock;
    if (pthread_cond_init(&a->changed, NULL) == 0)
        return a;
    pthread_mutex_destroy(&a->lock);
no_lock:
    ptwm_release(allocator, a, 1, sizeof *a);
    return NULL;
}

void ptwm_read_ahead_reach(struct ptwm_read_ahead *a, uint64_t offset, uint64_t nbytes)
{
    if (a == NULL)
        return;
    if (!__atomic_load_n(&a->has_begun, __ATOMIC_RELAXED)) {
        if (!ptwm_file_waits_for_disk(a->file, offset, nbytes) ||
            __atomic_exchange_n(&a->has_begun, true, __ATOMIC_RELAXED))
            return;
        a->from = offset; /* the thread's creation makes it visible there */
        a->has_thread = pthread_create(&a->thread, NULL, run, a) == 0;
    }
    ptwm_file_prefetch(a->file, offset, nbytes);
}

void ptwm_read_ahead_allow(struct ptwm_read_ahead *a, size_t end)
{
    if (a == NULL)
        return;
    pthread_mutex_lock(&a->lock);
    a->allowed = end;
    pthread_cond_signal(&a->changed);
    pthread_mutex_unlock(&a->lock);
}

void ptwm_read_ahead_end(struct ptwm_read_ahead *a)
{
    if (a == NULL)
        return;
    pthread_mutex_lock(&a->lock);
    a->stops = true;
    pthread_cond_signal(&a->changed);
    pthread_mutex_unlock(&a->lock);
    if (a->has_thread)
        pthread_join(a->thread, NULL);
    pthread_cond_destroy(&a->changed);
    pthread_mutex_destroy(&a->lock);
    ptwm_release(a->allocator, a, 1, sizeof *a);
}
