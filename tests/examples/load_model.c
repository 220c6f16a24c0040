/*
 * Lists a model and loads all of it: one call decodes all tensors, on all processors.
 */
#include <ptwm.h>
#include <stdio.h>
#include <stdlib.h>

static int fail(const char *path, const struct ptwm_error *error)
{
    fprintf(stderr, "%s: %s: %s\n", path, ptwm_status_string(error->status), error->detail);
    return 1;
}

int main(int argc, char **argv)
{
    struct ptwm_error error = PTWM_ERROR_INIT;
    struct ptwm_reader_info model = { .struct_nbytes = sizeof model };
    struct ptwm_tensor_info tensor = { .struct_nbytes = sizeof tensor };
    struct ptwm_reader *reader;
    struct ptwm_request *requests;

    if (argc != 2)
        return 2;
    if (ptwm_reader_open_path(argv[1], NULL, &reader, &error) != PTWM_OK)
        return fail(argv[1], &error);
    ptwm_reader_get_info(reader, &model);
    requests = calloc(model.n_tensors + 1, sizeof *requests);
    for (uint64_t i = 0; i < model.n_tensors; i++) {
        ptwm_reader_get_tensor(reader, i, &tensor);
        requests[i] = (struct ptwm_request){ i, 0, PTWM_NONE, NULL, tensor.nbytes };
        if (ptwm_memory_alloc(tensor.nbytes, &requests[i].buffer) != PTWM_OK)
            return 1;
    }
    if (ptwm_reader_decode(reader, requests, model.n_tensors, NULL, &error) != PTWM_OK)
        return fail(argv[1], &error);
    for (uint64_t i = 0; i < model.n_tensors; i++) {
        ptwm_reader_get_tensor(reader, i, &tensor);
        printf("%.*s %s %llu %08lx\n", (int)tensor.name_nbytes, tensor.name, ptwm_dtype_name(tensor.dtype),
               (unsigned long long)tensor.nbytes, (unsigned long)ptwm_crc32c(0, requests[i].buffer, tensor.nbytes));
        ptwm_memory_free(requests[i].buffer, tensor.nbytes);
    }
    free(requests);
    ptwm_reader_close(reader);
    return 0;
}
