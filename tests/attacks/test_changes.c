/*
 * Every single-bit change, and for some files every single-byte change, and every truncation of small files of all data types,
 * methods and flags: with either kind of check on there is an error or the right bytes, with none there is at least no harm
 * (which sanitizers see).
 */
#include <stdbool.h>

#include "check.h"
#include "ptwm.h"

enum { MAX_NBYTES = 4096 };

struct file {
    const uint8_t *bytes;
    size_t nbytes;
    uint32_t flags;
    uint8_t data[MAX_NBYTES]; /* of its tensor */
    size_t data_nbytes;
    struct ptwm_writer *writer; /* which owns the bytes */
};

static unsigned long n_changes, n_found, n_right;

static void fill(uint8_t *data, size_t nbytes, unsigned width)
{
    uint64_t seed = nbytes + width;

    for (size_t i = 0; i < nbytes; i++) {
        const uint64_t x = check_random(&seed);
        const bool is_top = i % width == width - 1;
        data[i] = (uint8_t)(is_top ? 56 + (x & x >> 8 & x >> 16 & 7) + i / width % 3 : width == 4 && i % 4 == 0 ? 0 : x);
    }
}

static void make_file(struct file *f, uint32_t dtype, uint64_t n, enum ptwm_method method, uint32_t flags)
{
    struct ptwm_writer_options options = PTWM_WRITER_OPTIONS_INIT;
    struct ptwm_tensor_spec spec = PTWM_TENSOR_SPEC_INIT;
    const uint32_t bits = dtype != PTWM_DTYPE_NONE ? ptwm_dtype_bits(dtype) : 8;
    const void *bytes;

    options.flags = f->flags = flags;
    options.chunk_nbytes = 4096;
    options.threads = 1;
    f->data_nbytes = (size_t)(n * bits / 8);
    fill(f->data, f->data_nbytes, bits >= 8 ? bits / 8 : 1);
    spec.name = "weight";
    spec.name_nbytes = 6;
    spec.dtype = dtype;
    spec.n_dims = dtype != PTWM_DTYPE_NONE;
    spec.shape = &n;
    spec.data = f->data;
    spec.nbytes = f->data_nbytes;
    spec.method = method;
    CHECK_EQ(ptwm_writer_open_memory(&options, &f->writer, NULL), PTWM_OK);
    CHECK_EQ(ptwm_writer_add(f->writer, &spec, NULL), PTWM_OK);
    CHECK_EQ(ptwm_writer_set_metadata(f->writer, "\xa1\x61k\x61v", 5, NULL), PTWM_OK);
    CHECK_EQ(ptwm_writer_finish(f->writer, NULL), PTWM_OK);
    CHECK_EQ(ptwm_writer_get_memory(f->writer, &bytes, &f->nbytes), PTWM_OK);
    f->bytes = bytes;
}

/* What comes of reading it: an error, or the right bytes, or wrong ones. */
enum outcome { REFUSED, RIGHT, WRONG };

static enum outcome read_file(const struct file *f, const uint8_t *bytes, size_t nbytes, uint32_t flags)
{
    struct ptwm_decode_options options = PTWM_DECODE_OPTIONS_INIT;
    struct ptwm_tensor_info info = { .struct_nbytes = sizeof info };
    uint8_t buffer[MAX_NBYTES];
    struct ptwm_reader *r = NULL;
    enum outcome outcome = REFUSED;

    options.flags = flags;
    options.threads = 1;
    if (ptwm_reader_open_memory(bytes, nbytes, NULL, &r, NULL) != PTWM_OK)
        return REFUSED;
    if (ptwm_reader_get_tensor(r, 0, &info) == PTWM_OK && info.nbytes <= MAX_NBYTES) {
        const struct ptwm_request request = { 0, 0, PTWM_NONE, buffer, info.nbytes };
        if (ptwm_reader_decode(r, &request, 1, &options, NULL) == PTWM_OK)
            outcome = info.nbytes == f->data_nbytes && memcmp(buffer, f->data, f->data_nbytes) == 0 ? RIGHT : WRONG;
    }
    ptwm_reader_close(r);
    return outcome;
}

static void check_change(const struct file *f, const uint8_t *bytes, size_t nbytes, size_t at)
{
    const enum outcome outcome = read_file(f, bytes, nbytes, PTWM_DECODE_CHECK_HASH);

    n_changes++;
    n_found += outcome == REFUSED;
    n_right += outcome == RIGHT;
    if (f->flags != 0 && outcome == WRONG) {
        printf("position %zu of %zu, flags %u: wrong bytes\n", at, nbytes, (unsigned)f->flags);
        CHECK(outcome != WRONG);
    }
    (void)read_file(f, bytes, nbytes, PTWM_DECODE_SKIP_CRC);
}

static void change_file(const struct file *f, bool all_values)
{
    uint8_t *changed = malloc(f->nbytes);

    CHECK_EQ(read_file(f, f->bytes, f->nbytes, PTWM_DECODE_CHECK_HASH), RIGHT);
    memcpy(changed, f->bytes, f->nbytes);
    for (size_t at = 0; at < f->nbytes; at++) {
        for (unsigned x = 1; x < 256; x = all_values ? x + 1 : 2 * x) {
            changed[at] = (uint8_t)(f->bytes[at] ^ x);
            check_change(f, changed, f->nbytes, at);
        }
        changed[at] = f->bytes[at];
    }
    free(changed);
    for (size_t nbytes = 0; nbytes < f->nbytes; nbytes++) {
        uint8_t *cut = malloc(nbytes + 1); /* exactly as long, but for none at all */
        memcpy(cut, f->bytes, nbytes);
        CHECK_EQ(read_file(f, cut, nbytes, 0), REFUSED);
        free(cut);
    }
}

static void test_all_dtypes(void)
{
    struct file f;

    for (uint32_t dtype = 0; dtype == 0 || ptwm_dtype_bits(dtype) > 0; dtype++) {
        make_file(&f, dtype, 96, PTWM_METHOD_MICROSCALE, 3 - dtype % 4);
        change_file(&f, false);
        ptwm_writer_close(f.writer);
    }
}

static void test_all_methods_and_flags(void)
{
    static const uint32_t dtypes[] = { PTWM_DTYPE_BF16, PTWM_DTYPE_F32, PTWM_DTYPE_F8_E4M3, PTWM_DTYPE_I16, PTWM_DTYPE_U8 };
    struct file f;

    for (unsigned i = 0; i < 5 * 5 * 4; i++) {
        const enum ptwm_method method = (enum ptwm_method)(i % 5 + 1);
        if (method == PTWM_METHOD_ZSTD && !ptwm_has_builtin_zstd()) {
            if (i < 5)
                printf("SKIP files of zstd: it is not built in\n");
            continue;
        }
        make_file(&f, dtypes[i / 5 % 5], 200, method, i / 25);
        change_file(&f, false);
        ptwm_writer_close(f.writer);
    }
}

static void test_all_values(void)
{
    struct file f;

    make_file(&f, PTWM_DTYPE_BF16, 96, PTWM_METHOD_RANS, PTWM_WRITE_PLANE_CRC);
    change_file(&f, true);
    ptwm_writer_close(f.writer);
    make_file(&f, PTWM_DTYPE_F8_E4M3, 150, PTWM_METHOD_RANS, PTWM_WRITE_PAYLOAD_HASH);
    change_file(&f, true);
    ptwm_writer_close(f.writer);
}

int main(void)
{
    RUN(test_all_dtypes);
    RUN(test_all_methods_and_flags);
    RUN(test_all_values);
    printf("%lu changes: %lu refused, %lu without effect\n", n_changes, n_found, n_right);
    CHECK_EXIT();
}
