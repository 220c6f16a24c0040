#include "threads.h"

#include <pthread.h>
#include <stdbool.h>

#include "status.h"

struct pool {
    size_t n_tasks;
    size_t next; /* atomic: the first task that nobody has taken */
    ptwm_task_fn run;
    void *context;
    pthread_mutex_t lock; /* guards what follows */
    enum ptwm_status status;
    struct ptwm_error error;
    size_t failed_task;
    unsigned n_workers;
};

static void record_failure(struct pool *pool, size_t task, enum ptwm_status status, const struct ptwm_error *error)
{
    pthread_mutex_lock(&pool->lock);
    if (pool->status == PTWM_OK || task < pool->failed_task) {
        pool->status = status;
        pool->error = *error;
        pool->failed_task = task;
    }
    pthread_mutex_unlock(&pool->lock);
    __atomic_store_n(&pool->next, pool->n_tasks, __ATOMIC_RELAXED);
}

static void work(struct pool *pool, unsigned worker)
{
    for (;;) {
        struct ptwm_error error = PTWM_ERROR_INIT;
        size_t task = __atomic_load_n(&pool->next, __ATOMIC_RELAXED);
        enum ptwm_status status;

        do {
            if (task >= pool->n_tasks)
                return;
        } while (!__atomic_compare_exchange_n(&pool->next, &task, task + 1, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
        status = pool->run(pool->context, task, worker, &error);
        if (status != PTWM_OK)
            record_failure(pool, task, status, &error);
    }
}

static void *thread_main(void *argument)
{
    struct pool *pool = argument;
    unsigned worker;

    pthread_mutex_lock(&pool->lock);
    worker = pool->n_workers++;
    pthread_mutex_unlock(&pool->lock);
    work(pool, worker);
    return NULL;
}

enum ptwm_status ptwm_parallel_for(size_t n_tasks, unsigned threads, ptwm_task_fn run, void *context,
                                   struct ptwm_error *error)
{
    const struct ptwm_error no_error = PTWM_ERROR_INIT;
    struct pool pool = { .n_tasks = n_tasks, .run = run, .context = context, .n_workers = 1, .error = no_error };
    pthread_t handles[PTWM_MAX_THREADS];
    unsigned n_started = 0;

    if (threads > n_tasks)
        threads = (unsigned)n_tasks;
    if (pthread_mutex_init(&pool.lock, NULL) != 0)
        return ptwm_fail(error, PTWM_ERR_MEMORY, "a lock");
    /* A thread that cannot be had is no failure: the others do its work. */
    while (n_started + 1 < threads && pthread_create(&handles[n_started], NULL, thread_main, &pool) == 0)
        n_started++;
    work(&pool, 0);
    while (n_started > 0)
        pthread_join(handles[--n_started], NULL);
    pthread_mutex_destroy(&pool.lock);
    if (pool.status != PTWM_OK && error != NULL && error->struct_nbytes >= sizeof *error)
        *error = pool.error;
    return pool.status;
}

/* ------------------------------------------------------------------------------------------------------ in order */

enum { MAX_SLOTS = 2 * PTWM_MAX_THREADS };

struct queue {
    size_t n_tasks, n_slots;
    ptwm_slot_fn run;
    void *context;
    pthread_mutex_t lock; /* guards what follows */
    pthread_cond_t changed;
    size_t next, taken;         /* the first task that nobody has begun, and the first whose result has not been taken */
    bool is_done[MAX_SLOTS];
    enum ptwm_status status;    /* of the failed task */
    size_t failed_task;
    struct ptwm_error error;
    unsigned n_workers;
};

static bool can_begin(const struct queue *q)
{
    return q->status == PTWM_OK && q->next < q->n_tasks && q->next < q->taken + q->n_slots;
}

/* Notes a failure: that of the lowest task counts. */
static void fail_queue(struct queue *q, size_t task, enum ptwm_status status, const struct ptwm_error *error)
{
    if (q->status == PTWM_OK || task < q->failed_task) {
        q->status = status;
        q->error = *error;
        q->failed_task = task;
    }
}

/* Does the next task; the lock is held before and after. */
static void do_next(struct queue *q, unsigned worker)
{
    struct ptwm_error error = PTWM_ERROR_INIT;
    const size_t task = q->next++;
    enum ptwm_status status;

    pthread_mutex_unlock(&q->lock);
    status = q->run(q->context, task, task % q->n_slots, worker, &error);
    pthread_mutex_lock(&q->lock);
    if (status != PTWM_OK)
        fail_queue(q, task, status, &error);
    q->is_done[task % q->n_slots] = true;
    pthread_cond_broadcast(&q->changed);
}

static void *queue_main(void *argument)
{
    struct queue *q = argument;
    unsigned worker;

    pthread_mutex_lock(&q->lock);
    worker = q->n_workers++;
    while (q->status == PTWM_OK && q->next < q->n_tasks) {
        if (can_begin(q))
            do_next(q, worker);
        else
            pthread_cond_wait(&q->changed, &q->lock);
    }
    pthread_mutex_unlock(&q->lock);
    return NULL;
}

/* The calling thread takes what is done, helps where it can, and else waits. A failure ends it before its task. */
static void take_all(struct queue *q, ptwm_take_fn take)
{
    pthread_mutex_lock(&q->lock);
    while (q->taken < q->n_tasks && (q->status == PTWM_OK || q->taken < q->failed_task)) {
        const size_t slot = q->taken % q->n_slots;
        if (q->is_done[slot]) {
            struct ptwm_error error = PTWM_ERROR_INIT;
            enum ptwm_status status;
            pthread_mutex_unlock(&q->lock);
            status = take(q->context, q->taken, slot, &error);
            pthread_mutex_lock(&q->lock);
            if (status != PTWM_OK)
                fail_queue(q, q->taken, status, &error);
            q->is_done[slot] = false;
            q->taken++;
            pthread_cond_broadcast(&q->changed);
        } else if (can_begin(q)) {
            do_next(q, 0);
        } else {
            pthread_cond_wait(&q->changed, &q->lock);
        }
    }
    pthread_mutex_unlock(&q->lock);
}

enum ptwm_status ptwm_parallel_in_order(size_t n_tasks, size_t n_slots, unsigned threads, ptwm_slot_fn run,
                                        ptwm_take_fn take, void *context, struct ptwm_error *error)
{
    const struct ptwm_error no_error = PTWM_ERROR_INIT;
    struct queue q = { .n_tasks = n_tasks, .n_slots = n_slots, .run = run, .context = context, .n_workers = 1,
                       .error = no_error };
    pthread_t handles[PTWM_MAX_THREADS];
    unsigned n_started = 0;

    if (threads > n_tasks)
        threads = (unsigned)n_tasks;
    if (q.n_slots > MAX_SLOTS)
        q.n_slots = MAX_SLOTS;
    if (pthread_mutex_init(&q.lock, NULL) != 0)
        return ptwm_fail(error, PTWM_ERR_MEMORY, "a lock");
    if (pthread_cond_init(&q.changed, NULL) != 0) {
        pthread_mutex_destroy(&q.lock);
        return ptwm_fail(error, PTWM_ERR_MEMORY, "a lock");
    }
    while (n_started + 1 < threads && pthread_create(&handles[n_started], NULL, queue_main, &q) == 0)
        n_started++;
    take_all(&q, take);
    while (n_started > 0)
        pthread_join(handles[--n_started], NULL);
    pthread_cond_destroy(&q.changed);
    pthread_mutex_destroy(&q.lock);
    if (q.status != PTWM_OK && error != NULL && error->struct_nbytes >= sizeof *error)
        *error = q.error;
    return q.status;
}

unsigned ptwm_thread_count(unsigned threads)
{
    if (threads == 0)
        threads = ptwm_usable_cpus();
    return threads < PTWM_MAX_THREADS ? threads : PTWM_MAX_THREADS;
}
