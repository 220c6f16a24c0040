/*
 * Streams a model in with bounded memory: each tensor is decoded piece by piece into the same buffer. Beyond that, the
 * library needs a chunk or two (64 KiB to 1 MiB, as the file was written) and the index.
 */
#include <ptwm.h>
#include <stdio.h>

enum { BUFFER_NBYTES = 96 << 10 };

static enum ptwm_status stream_tensor(const struct ptwm_reader *reader, uint64_t index, uint32_t *crc,
                                      struct ptwm_error *error)
{
    static unsigned char buffer[BUFFER_NBYTES];
    struct ptwm_tensor_info tensor = { .struct_nbytes = sizeof tensor };
    struct ptwm_decode_options options = PTWM_DECODE_OPTIONS_INIT;
    uint64_t first = 0, bits, n_elements, step;

    ptwm_reader_get_tensor(reader, index, &tensor);
    bits = ptwm_dtype_bits(tensor.dtype) > 0 ? ptwm_dtype_bits(tensor.dtype) : 8; /* unknown types count in bytes */
    n_elements = tensor.nbytes / bits * 8 + tensor.nbytes % bits * 8 / bits;      /* nbytes * 8 might not fit 64 bits */
    step = BUFFER_NBYTES / bits * 8; /* 8 elements are whole bytes, of whatever type */
    options.threads = 1;
    for (*crc = 0; first < n_elements; first += step) {
        const uint64_t n = n_elements - first < step ? n_elements - first : step;
        const struct ptwm_request request = { index, first, n, buffer, n * bits / 8 };
        const enum ptwm_status status = ptwm_reader_decode(reader, &request, 1, &options, error);
        if (status != PTWM_OK)
            return status;
        *crc = ptwm_crc32c(*crc, buffer, request.buffer_nbytes); /* a program would use the bytes here */
    }
    return PTWM_OK;
}

static enum ptwm_status stream_model(const struct ptwm_reader *reader, struct ptwm_error *error)
{
    struct ptwm_tensor_info tensor = { .struct_nbytes = sizeof tensor };
    enum ptwm_status status = PTWM_OK;
    uint32_t crc;

    for (uint64_t i = 0; ptwm_reader_get_tensor(reader, i, &tensor) == PTWM_OK; i++) {
        status = stream_tensor(reader, i, &crc, error);
        if (status != PTWM_OK)
            break;
        printf("%.*s %s %llu %08lx\n", (int)tensor.name_nbytes, tensor.name, ptwm_dtype_name(tensor.dtype),
               (unsigned long long)tensor.nbytes, (unsigned long)crc);
    }
    return status;
}

int main(int argc, char **argv)
{
    struct ptwm_reader_options options = PTWM_READER_OPTIONS_INIT;
    struct ptwm_error error = PTWM_ERROR_INIT;
    struct ptwm_reader *reader;
    enum ptwm_status status;

    if (argc != 2)
        return 2;
    options.backend = PTWM_BACKEND_PREAD; /* mapped pages would count as the process's memory */
    status = ptwm_reader_open_path(argv[1], &options, &reader, &error);
    if (status == PTWM_OK) {
        status = stream_model(reader, &error);
        ptwm_reader_close(reader);
    }
    if (status != PTWM_OK)
        fprintf(stderr, "%s: %s: %s\n", argv[1], ptwm_status_string(status), error.detail);
    return status != PTWM_OK;
}
