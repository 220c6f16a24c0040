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

unsigned ptwm_thread_count(unsigned threads)
{
    if (threads == 0)
        threads = ptwm_usable_cpus();
    return threads < PTWM_MAX_THREADS ? threads : PTWM_MAX_THREADS;
}
