/*
 * What a user of the installed library writes: makes a file, lists it, decodes a tensor from it. Compiled by
 * check_installed.sh with what pkg-config says and nothing else.
 */
#include <ptwm.h>
#include <stdio.h>
#include <string.h>

static int fail(const char *what, enum ptwm_status status, const struct ptwm_error *error)
{
    fprintf(stderr, "%s: %s: %s\n", what, ptwm_status_string(status), error->detail);
    return 1;
}

static enum ptwm_status write_file(const char *path, const float *values, uint64_t n, struct ptwm_error *error)
{
    struct ptwm_tensor_spec spec = PTWM_TENSOR_SPEC_INIT;
    struct ptwm_writer *writer;
    enum ptwm_status status = ptwm_writer_open_path(path, NULL, &writer, error);

    if (status != PTWM_OK)
        return status;
    spec.name = "weights";
    spec.name_nbytes = strlen(spec.name);
    spec.dtype = PTWM_DTYPE_F32;
    spec.n_dims = 1;
    spec.shape = &n;
    spec.data = values; /* little-endian, as this machine is */
    spec.nbytes = n * sizeof *values;
    status = ptwm_writer_add(writer, &spec, error);
    if (status == PTWM_OK)
        status = ptwm_writer_finish(writer, error);
    ptwm_writer_close(writer);
    return status;
}

int main(int argc, char **argv)
{
    static float values[1000], decoded[1000];
    struct ptwm_error error = PTWM_ERROR_INIT;
    struct ptwm_request request = { 0, 0, PTWM_NONE, decoded, sizeof decoded };
    struct ptwm_tensor_info info;
    struct ptwm_reader *reader;
    enum ptwm_status status;

    if (argc != 2)
        return 2;
    for (int i = 0; i < 1000; i++)
        values[i] = 1.0f / (float)(i + 1);
    status = write_file(argv[1], values, 1000, &error);
    if (status != PTWM_OK)
        return fail("writing", status, &error);
    status = ptwm_reader_open_path(argv[1], NULL, &reader, &error);
    if (status != PTWM_OK)
        return fail("opening", status, &error);
    info.struct_nbytes = sizeof info;
    for (uint64_t i = 0; ptwm_reader_get_tensor(reader, i, &info) == PTWM_OK; i++)
        printf("%.*s %s %lu bytes, stored in %lu\n", (int)info.name_nbytes, info.name, ptwm_dtype_name(info.dtype),
               (unsigned long)info.nbytes, (unsigned long)info.stored_nbytes);
    status = ptwm_reader_find(reader, "weights", 7, &request.tensor);
    if (status == PTWM_OK)
        status = ptwm_reader_decode(reader, &request, 1, NULL, &error);
    ptwm_reader_close(reader);
    if (status != PTWM_OK)
        return fail("decoding", status, &error);
    if (memcmp(values, decoded, sizeof values) != 0) {
        fprintf(stderr, "the values differ\n");
        return 1;
    }
    return 0;
}
