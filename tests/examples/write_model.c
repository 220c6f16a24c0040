/*
 * Writes a model: two tensors of bfloat16, one of int64, and a second name for the first. The file appears under its
 * name when it is complete and on the disk; if anything fails, an older one stays as it was.
 */
#include <ptwm.h>
#include <stdio.h>
#include <string.h>

enum { ROWS = 512, COLUMNS = 256 };

/* Made-up weights: small ones are more frequent, as in trained models. Little-endian, whatever the machine. */
static void fill_bf16(unsigned char *bytes, size_t n, uint32_t seed)
{
    for (size_t i = 0; i < n; i++) {
        unsigned exponent = 122;
        seed = seed * 1664525u + 1013904223u;
        for (uint32_t bits = seed >> 8; bits & 1 && exponent > 100; bits >>= 1)
            exponent--;
        bytes[2 * i] = (unsigned char)((seed >> 24 & 0x7F) | (exponent & 1) << 7);
        bytes[2 * i + 1] = (unsigned char)((seed >> 16 & 0x80) | exponent >> 1);
    }
}

static enum ptwm_status add(struct ptwm_writer *writer, const char *name, enum ptwm_dtype dtype, const uint64_t *shape,
                            uint32_t n_dims, const void *data, uint64_t nbytes, struct ptwm_error *error)
{
    struct ptwm_tensor_spec spec = PTWM_TENSOR_SPEC_INIT;

    spec.name = name;
    spec.name_nbytes = strlen(name);
    spec.dtype = dtype;
    spec.shape = shape;
    spec.n_dims = n_dims;
    spec.data = data;
    spec.nbytes = nbytes;
    return ptwm_writer_add(writer, &spec, error);
}

static enum ptwm_status write_model(struct ptwm_writer *writer, struct ptwm_error *error)
{
    static const uint64_t matrix[2] = { ROWS, COLUMNS }, vector[1] = { COLUMNS }, positions[2] = { 1, 100 };
    static unsigned char weights[2 * ROWS * COLUMNS], ids[8 * 100];
    enum ptwm_status status;

    fill_bf16(weights, ROWS * COLUMNS, 1);
    for (int i = 0; i < 100; i++)
        ids[8 * i] = (unsigned char)i;
    status = add(writer, "embed", PTWM_DTYPE_BF16, matrix, 2, weights, sizeof weights, error);
    if (status == PTWM_OK)
        status = add(writer, "norm", PTWM_DTYPE_BF16, vector, 1, weights + 100, 2 * COLUMNS, error);
    if (status == PTWM_OK)
        status = add(writer, "position_ids", PTWM_DTYPE_I64, positions, 2, ids, sizeof ids, error);
    if (status == PTWM_OK) /* tied weights are stored once */
        status = ptwm_writer_add_alias(writer, "head", 4, "embed", 5, error);
    if (status == PTWM_OK) /* CBOR: a map of "made by" to "an example" */
        status = ptwm_writer_set_metadata(writer,
                                          "\xA1\x67made by\x6A"
                                          "an example",
                                          20, error);
    return status == PTWM_OK ? ptwm_writer_finish(writer, error) : status;
}

int main(int argc, char **argv)
{
    struct ptwm_writer_options options = PTWM_WRITER_OPTIONS_INIT;
    struct ptwm_error error = PTWM_ERROR_INIT;
    struct ptwm_writer *writer;
    enum ptwm_status status;

    if (argc != 2)
        return 2;
    options.chunk_nbytes = 64 << 10; /* what is decoded for any part of it */
    status = ptwm_writer_open_path(argv[1], &options, &writer, &error);
    if (status == PTWM_OK) {
        status = write_model(writer, &error);
        ptwm_writer_close(writer);
    }
    if (status != PTWM_OK)
        fprintf(stderr, "%s: %s: %s\n", argv[1], ptwm_status_string(status), error.detail);
    return status != PTWM_OK;
}
