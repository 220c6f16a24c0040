/*
 * Decoding everything and verifying, with and without checksums, with the portable and the fastest kernels, which must
 * agree; copying to another file, which must hold the same.
 */
#include "fuzz.h"

#include <stdbool.h>

enum { MAX_NBYTES = 1 << 20, MAX_TENSORS = 24, MEMORY = 12 << 20 };

static enum ptwm_status decode(const struct ptwm_reader *r, uint64_t tensor, uint8_t *buffer, uint64_t nbytes,
                               uint32_t flags, const char *cpu)
{
    struct ptwm_decode_options options = PTWM_DECODE_OPTIONS_INIT;
    const struct ptwm_request request = { tensor, 0, PTWM_NONE, buffer, nbytes };
    struct ptwm_error error = PTWM_ERROR_INIT;
    enum ptwm_status status;

    FUZZ_CHECK(ptwm_cpu_select(cpu) == PTWM_OK);
    options.flags = flags;
    options.threads = 1;
    options.max_nbytes = MAX_NBYTES;
    status = ptwm_reader_decode(r, &request, 1, &options, &error);
    FUZZ_CHECK(error.status == status);
    return status;
}

/* A reader keeps small segments; a new one has to decode them again. */
static struct ptwm_reader *open_file(const uint8_t *file, size_t nbytes, const struct ptwm_allocator *allocator)
{
    struct ptwm_reader_options options = PTWM_READER_OPTIONS_INIT;
    struct ptwm_reader *r = NULL;

    options.allocator = allocator;
    return ptwm_reader_open_memory(file, nbytes, &options, &r, NULL) == PTWM_OK ? r : NULL;
}

static struct ptwm_tensor_info tensor_info(const struct ptwm_reader *r, uint64_t tensor)
{
    struct ptwm_tensor_info info = { .struct_nbytes = sizeof info };
    FUZZ_CHECK(ptwm_reader_get_tensor(r, tensor, &info) == PTWM_OK);
    return info;
}

static uint64_t tensor_nbytes(const struct ptwm_reader *r, uint64_t tensor)
{
    return tensor_info(r, tensor).nbytes;
}

/* Elements from a third of the tensor to its middle are those of whole, its bytes. Eight of any type are whole bytes. */
static void compare_range(const struct ptwm_reader *r, uint64_t tensor, const uint8_t *whole)
{
    const struct ptwm_tensor_info info = tensor_info(r, tensor);
    const uint32_t bits = ptwm_dtype_bits(info.dtype), eight_nbytes = bits > 0 ? bits : 8;
    const uint64_t n = info.nbytes / eight_nbytes, first = n / 3, count = n / 2 - first;
    uint8_t *buffer = fuzz_guarded(3, (size_t)(count * eight_nbytes));
    const struct ptwm_request request = { tensor, 8 * first, 8 * count, buffer, count * eight_nbytes };

    FUZZ_CHECK(ptwm_reader_decode(r, &request, 1, NULL, NULL) == PTWM_OK);
    FUZZ_CHECK(memcmp(buffer, whole + first * eight_nbytes, (size_t)(count * eight_nbytes)) == 0);
}

/* Two readers of the same file: portable kernels for one, the fastest for the other. */
static void compare_decoding(const struct ptwm_reader *a, const struct ptwm_reader *b, uint64_t tensor, bool is_good)
{
    const uint64_t nbytes = tensor_nbytes(a, tensor);
    uint8_t *x, *y;
    enum ptwm_status status;

    if (nbytes > MAX_NBYTES) {
        FUZZ_CHECK(decode(a, tensor, (uint8_t *)"", nbytes, 0, "best") == PTWM_ERR_LIMIT);
        return;
    }
    x = fuzz_guarded(1, (size_t)nbytes);
    y = fuzz_guarded(2, (size_t)nbytes);
    memset(x, 0x55, (size_t)nbytes);
    memset(y, 0xAA, (size_t)nbytes);
    status = decode(a, tensor, x, nbytes, 0, "c99");
    FUZZ_CHECK(decode(b, tensor, y, nbytes, 0, "best") == status);
    FUZZ_CHECK(status == PTWM_OK || !is_good);
    FUZZ_CHECK(status != PTWM_OK || memcmp(x, y, (size_t)nbytes) == 0);
    if (status == PTWM_OK)
        compare_range(b, tensor, x);
    memset(y, 0xAA, (size_t)nbytes);
    if (decode(b, tensor, y, nbytes, PTWM_DECODE_SKIP_CRC, "best") == PTWM_OK)
        FUZZ_CHECK(status != PTWM_OK || memcmp(x, y, (size_t)nbytes) == 0);
    else
        FUZZ_CHECK(status != PTWM_OK);
}

static void compare_copy(const struct ptwm_reader *r, uint64_t n_tensors, const struct ptwm_allocator *allocator,
                         bool is_good)
{
    struct ptwm_writer_options options = PTWM_WRITER_OPTIONS_INIT;
    enum ptwm_status status = PTWM_OK;
    struct ptwm_reader *copy = NULL;
    struct ptwm_writer *w;
    const void *data;
    size_t nbytes;

    options.allocator = allocator;
    options.threads = 1;
    if (ptwm_writer_open_memory(&options, &w, NULL) != PTWM_OK)
        return;
    for (uint64_t i = 0; i < n_tensors && status == PTWM_OK; i++)
        status = ptwm_writer_copy(w, r, i, NULL, 0, NULL);
    if (status == PTWM_OK && ptwm_writer_finish(w, NULL) == PTWM_OK) {
        FUZZ_CHECK(ptwm_writer_get_memory(w, &data, &nbytes) == PTWM_OK);
        copy = open_file(data, nbytes, NULL);
        FUZZ_CHECK(copy != NULL);
        for (uint64_t i = 0; i < n_tensors && is_good; i++) {
            const uint64_t n = tensor_nbytes(r, i);
            FUZZ_CHECK(tensor_nbytes(copy, i) == n);
            if (n > MAX_NBYTES)
                continue;
            FUZZ_CHECK(decode(r, i, fuzz_guarded(1, (size_t)n), n, 0, "best") == PTWM_OK);
            FUZZ_CHECK(decode(copy, i, fuzz_guarded(2, (size_t)n), n, 0, "best") == PTWM_OK);
            FUZZ_CHECK(memcmp(fuzz_guarded(1, (size_t)n), fuzz_guarded(2, (size_t)n), (size_t)n) == 0);
        }
    }
    ptwm_reader_close(copy);
    ptwm_writer_close(w);
}

/* What all segments hold; PTWM_NONE if that is more than a fuzzer has time for. */
static uint64_t raw_nbytes(const struct ptwm_reader *r, uint64_t n_segments)
{
    uint64_t total = 0;

    for (uint64_t i = 0; i < n_segments; i++) {
        struct ptwm_segment_info s = { .struct_nbytes = sizeof s };
        FUZZ_CHECK(ptwm_reader_get_segment(r, i, &s) == PTWM_OK);
        if (s.raw_nbytes > MAX_NBYTES - total)
            return PTWM_NONE;
        total += s.raw_nbytes;
    }
    return total;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t nbytes)
{
    struct fuzz_budget budget = { 0, 0, MEMORY, 0 };
    const struct ptwm_allocator allocator = fuzz_allocator(&budget);
    const uint8_t *file = fuzz_guarded_copy(0, data, nbytes);
    struct ptwm_reader_info info = { .struct_nbytes = sizeof info };
    struct ptwm_reader *a = open_file(file, nbytes, &allocator), *b;
    bool is_good = false;
    uint64_t n;

    if (a == NULL)
        return 0;
    b = open_file(file, nbytes, NULL);
    FUZZ_CHECK(b != NULL);
    FUZZ_CHECK(ptwm_reader_get_info(a, &info) == PTWM_OK);
    FUZZ_CHECK(ptwm_cpu_select("best") == PTWM_OK);
    if (raw_nbytes(a, info.n_segments) != PTWM_NONE) {
        is_good = ptwm_reader_verify(b, 1, NULL) == PTWM_OK;
        n = info.n_tensors < MAX_TENSORS ? info.n_tensors : MAX_TENSORS;
        for (uint64_t i = 0; i < n; i++)
            compare_decoding(a, b, i, is_good);
        compare_copy(b, n, NULL, is_good);
    }
    ptwm_reader_close(a);
    ptwm_reader_close(b);
    FUZZ_CHECK(budget.live == 0);
    return 0;
}
