/*
 * Decodes on threads of the program's own: they share one reader, and each takes the next tensor. (A program that only
 * wants to be fast lets the library do that: see load_model.c.)
 */
#include <pthread.h>
#include <ptwm.h>
#include <stdio.h>
#include <stdlib.h>

enum { N_THREADS = 4 };

struct job {
    const struct ptwm_reader *reader;
    uint64_t n_tensors, next;
    uint32_t *crcs;
    enum ptwm_status status; /* the first failure */
    pthread_mutex_t lock;    /* of next and status */
};

static enum ptwm_status decode_tensor(const struct ptwm_reader *reader, uint64_t index, uint32_t *crc)
{
    struct ptwm_tensor_info tensor = { .struct_nbytes = sizeof tensor };
    struct ptwm_decode_options options = PTWM_DECODE_OPTIONS_INIT;
    struct ptwm_request request = { index, 0, PTWM_NONE, NULL, 0 };
    enum ptwm_status status;

    options.threads = 1; /* this thread */
    ptwm_reader_get_tensor(reader, index, &tensor);
    request.buffer_nbytes = tensor.nbytes;
    status = ptwm_memory_alloc(tensor.nbytes, &request.buffer);
    if (status != PTWM_OK)
        return status;
    status = ptwm_reader_decode(reader, &request, 1, &options, NULL);
    *crc = ptwm_crc32c(0, request.buffer, tensor.nbytes);
    ptwm_memory_free(request.buffer, tensor.nbytes);
    return status;
}

static void *work(void *context)
{
    struct job *job = context;

    for (;;) {
        enum ptwm_status status;
        uint64_t index;
        pthread_mutex_lock(&job->lock);
        index = job->status == PTWM_OK ? job->next++ : job->n_tensors;
        pthread_mutex_unlock(&job->lock);
        if (index >= job->n_tensors)
            return NULL;
        status = decode_tensor(job->reader, index, &job->crcs[index]);
        if (status != PTWM_OK) {
            pthread_mutex_lock(&job->lock);
            job->status = status;
            pthread_mutex_unlock(&job->lock);
        }
    }
}

static enum ptwm_status decode_all(const struct ptwm_reader *reader)
{
    struct ptwm_reader_info model = { .struct_nbytes = sizeof model };
    struct ptwm_tensor_info tensor = { .struct_nbytes = sizeof tensor };
    struct job job = { reader, 0, 0, NULL, PTWM_OK, PTHREAD_MUTEX_INITIALIZER };
    pthread_t threads[N_THREADS];
    int n = 0;

    ptwm_reader_get_info(reader, &model);
    job.n_tensors = model.n_tensors;
    job.crcs = calloc(model.n_tensors + 1, sizeof *job.crcs);
    if (job.crcs == NULL)
        return PTWM_ERR_MEMORY;
    while (n < N_THREADS && pthread_create(&threads[n], NULL, work, &job) == 0)
        n++;
    if (n == 0)
        work(&job);
    while (n > 0)
        pthread_join(threads[--n], NULL);
    for (uint64_t i = 0; i < model.n_tensors && job.status == PTWM_OK; i++) {
        ptwm_reader_get_tensor(reader, i, &tensor);
        printf("%.*s %s %llu %08lx\n", (int)tensor.name_nbytes, tensor.name, ptwm_dtype_name(tensor.dtype),
               (unsigned long long)tensor.nbytes, (unsigned long)job.crcs[i]);
    }
    free(job.crcs);
    return job.status;
}

int main(int argc, char **argv)
{
    struct ptwm_error error = PTWM_ERROR_INIT;
    struct ptwm_reader *reader;
    enum ptwm_status status;

    if (argc != 2)
        return 2;
    status = ptwm_reader_open_path(argv[1], NULL, &reader, &error);
    if (status == PTWM_OK) {
        status = decode_all(reader);
        ptwm_reader_close(reader);
    }
    if (status != PTWM_OK)
        fprintf(stderr, "%s: %s: %s\n", argv[1], ptwm_status_string(status), error.detail);
    return status != PTWM_OK;
}
