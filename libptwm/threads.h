/*
 * Spreading independent tasks over threads for the length of one call. Threads do not outlive it: nothing to shut down,
 * nothing for fork to lose.
 */
#ifndef PTWM_THREADS_H
#define PTWM_THREADS_H

#include "memory.h"
#include "ptwm.h"

/*
 * Task number task, on worker number worker (0 .. threads - 1; each runs one task at a time, so it can have scratch of
 * its own). Fills error when it fails.
 */
typedef enum ptwm_status (*ptwm_task_fn)(void *context, size_t task, unsigned worker, struct ptwm_error *error);

/*
 * Runs tasks 0 .. n_tasks - 1 on at most threads threads, the caller's included, in about that order. After a failure
 * no more tasks begin; the failure returned is that of the lowest task that failed.
 */
enum ptwm_status ptwm_parallel_for(size_t n_tasks, unsigned threads, ptwm_task_fn run, void *context,
                                   struct ptwm_error *error);

/*
 * The same with results that are taken in order: each task fills one of n_slots slots (task mod n_slots), and the
 * calling thread alone takes them, one after the other, while other tasks go on. No task begins before its slot has
 * been taken.
 */
typedef enum ptwm_status (*ptwm_slot_fn)(void *context, size_t task, size_t slot, unsigned worker,
                                         struct ptwm_error *error);
typedef enum ptwm_status (*ptwm_take_fn)(void *context, size_t task, size_t slot, struct ptwm_error *error);
enum ptwm_status ptwm_parallel_in_order(size_t n_tasks, size_t n_slots, unsigned threads, ptwm_slot_fn run,
                                        ptwm_take_fn take, void *context, struct ptwm_error *error);

/* threads, or the number of usable processors if it is 0; at most PTWM_MAX_THREADS. */
unsigned ptwm_thread_count(unsigned threads);

enum { PTWM_MAX_THREADS = 64 };

#endif
