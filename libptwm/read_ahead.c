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
    pthread_t thread;
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
        for (uint64_t at = 0; at < e.nbytes && wait_for(a, i); at += STEP_NBYTES)
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
    if (pthread_cond_init(&a->changed, NULL) != 0)
        goto no_condition;
    if (pthread_create(&a->thread, NULL, run, a) == 0)
        return a;
    pthread_cond_destroy(&a->changed);
no_condition:
    pthread_mutex_destroy(&a->lock);
no_lock:
    ptwm_release(allocator, a, 1, sizeof *a);
    return NULL;
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
    pthread_join(a->thread, NULL);
    pthread_cond_destroy(&a->changed);
    pthread_mutex_destroy(&a->lock);
    ptwm_release(a->allocator, a, 1, sizeof *a);
}
