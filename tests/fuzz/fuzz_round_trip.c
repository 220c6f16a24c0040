/*
 * The round trip: a writer driven by the bytes of the input, which say what tensors of what types, shapes, content, chains
 * and methods it is given. What was accepted comes back, also from a copy of the file and with any number of threads.
 */
#include <stdlib.h>

#include "fuzz.h"

enum { MAX_TENSORS = 6, MAX_NBYTES = 10 << 10 };

struct tensor {
    char name[8];
    size_t name_nbytes;
    uint64_t shape[4];
    uint32_t dtype, n_dims;
    uint8_t *data;
    size_t nbytes;
};

struct model {
    struct tensor tensors[MAX_TENSORS];
    size_t n;
};

static void make_shape(struct tensor *t, struct fuzz_input *in)
{
    const uint32_t bits = ptwm_dtype_bits(t->dtype) > 0 ? ptwm_dtype_bits(t->dtype) : 8;
    uint64_t n = 1;

    t->n_dims = t->dtype != PTWM_DTYPE_NONE ? (uint32_t)fuzz_take(in, 1) % 4 : 0;
    for (uint32_t i = 0; i < t->n_dims; i++) {
        const uint64_t most = MAX_NBYTES * 8 / bits / (n > 0 ? n : 1);
        t->shape[i] = fuzz_take(in, i == 0 ? 1 : 2) % (most + 1);
        n *= t->shape[i];
    }
    if (t->dtype == PTWM_DTYPE_NONE)
        n = fuzz_take(in, 2) % (MAX_NBYTES + 1);
    t->nbytes = (size_t)(n * bits / 8);
}

/* Bytes of the input, noise, floats of scales that vary by column, a constant, low bytes of zero, or an earlier tensor's. */
static void fill(struct tensor *t, const struct model *m, struct fuzz_input *in)
{
    const unsigned kind = (unsigned)fuzz_take(in, 1);
    uint64_t state = fuzz_take(in, 2);
    const struct tensor *before = m->n > 0 ? &m->tensors[state % m->n] : NULL;

    for (size_t i = 0; i < t->nbytes; i++) {
        const uint64_t x = fuzz_random(&state);
        switch (kind % 6) {
        case 0: t->data[i] = in->left > 0 ? in->next[i % in->left] : 0; break;
        case 1: t->data[i] = (uint8_t)x; break;
        case 2: t->data[i] = (uint8_t)(i % 2 ? 60 + i / 2 % 5 + (x & x >> 8 & 3) : x); break;
        case 3: t->data[i] = (uint8_t)(kind >> 3); break;
        case 4: t->data[i] = (uint8_t)(i % 4 < 2 ? x & (kind >> 3 & 1) : x); break;
        default: t->data[i] = before != NULL && before->nbytes > 0 ? before->data[i % before->nbytes] : 7; break;
        }
    }
}

static void add_tensor(struct ptwm_writer *w, struct model *m, struct fuzz_input *in)
{
    struct tensor *t = &m->tensors[m->n];
    struct ptwm_tensor_spec spec = PTWM_TENSOR_SPEC_INIT;
    struct ptwm_error error = PTWM_ERROR_INIT;
    struct ptwm_chain chain = { NULL, 0 };
    enum ptwm_status status;
    unsigned how;

    t->name_nbytes = (size_t)fuzz_take(in, 1) % sizeof t->name;
    for (size_t i = 0; i < t->name_nbytes; i++)
        t->name[i] = (char)fuzz_take(in, 1);
    t->dtype = (uint32_t)fuzz_take(in, 1) % 36;
    make_shape(t, in);
    t->data = malloc(t->nbytes + 1);
    fill(t, m, in);
    how = (unsigned)fuzz_take(in, 1);
    spec.name = t->name;
    spec.name_nbytes = t->name_nbytes;
    spec.dtype = t->dtype;
    spec.n_dims = t->n_dims;
    spec.shape = t->shape;
    spec.data = t->data;
    spec.nbytes = t->nbytes;
    spec.method = (enum ptwm_method)(how % 8 < 5 ? how % 8 + 1 : PTWM_METHOD_MICROSCALE);
    if (spec.method == PTWM_METHOD_ZSTD && !ptwm_has_builtin_zstd())
        spec.method = PTWM_METHOD_MICROSCALE;
    if (how >> 3 & 1) {
        chain.nbytes = (size_t)fuzz_take(in, 1) % 10;
        chain.nbytes = chain.nbytes < in->left ? chain.nbytes : in->left;
        chain.bytes = in->next;
        in->next += chain.nbytes;
        in->left -= chain.nbytes;
        spec.chains = &chain;
        spec.n_chains = 1;
    }
    status = how >> 4 & 1 && m->n > 0 ? ptwm_writer_add_alias(w, t->name, t->name_nbytes, m->tensors[0].name,
                                                              m->tensors[0].name_nbytes, &error)
                                      : ptwm_writer_add(w, &spec, &error);
    FUZZ_CHECK(error.status == status);
    FUZZ_CHECK(status == PTWM_OK || status == PTWM_ERR_ARGUMENT || status == PTWM_ERR_DUPLICATE_NAME ||
               status == PTWM_ERR_SIZE_MISMATCH || (status == PTWM_ERR_CHAIN && spec.n_chains == 1));
    if (status == PTWM_OK && how >> 4 & 1 && m->n > 0) {
        free(t->data);
        *t = m->tensors[0]; /* all but the name, which reading does not look at */
        t->data = malloc(t->nbytes + 1);
        memcpy(t->data, m->tensors[0].data, t->nbytes);
    }
    if (status == PTWM_OK)
        m->n++;
    else
        free(t->data);
}

static struct ptwm_reader *open_writer(struct ptwm_writer *w, const void **data, size_t *nbytes)
{
    struct ptwm_reader *r = NULL;

    FUZZ_CHECK(ptwm_writer_finish(w, NULL) == PTWM_OK);
    FUZZ_CHECK(ptwm_writer_get_memory(w, data, nbytes) == PTWM_OK);
    FUZZ_CHECK(ptwm_reader_open_memory(*data, *nbytes, NULL, &r, NULL) == PTWM_OK);
    return r;
}

static void check_file(const struct ptwm_reader *r, const struct model *m)
{
    struct ptwm_decode_options options = PTWM_DECODE_OPTIONS_INIT;

    options.flags = PTWM_DECODE_CHECK_HASH;
    options.threads = 1;
    FUZZ_CHECK(ptwm_reader_verify(r, 1, NULL) == PTWM_OK);
    for (size_t i = 0; i < m->n; i++) {
        const struct tensor *t = &m->tensors[i];
        uint8_t *buffer = fuzz_guarded(0, t->nbytes);
        const struct ptwm_request request = { i, 0, PTWM_NONE, buffer, t->nbytes };
        struct ptwm_tensor_info info = { .struct_nbytes = sizeof info };

        FUZZ_CHECK(ptwm_reader_get_tensor(r, i, &info) == PTWM_OK);
        FUZZ_CHECK(info.dtype == t->dtype && info.nbytes == t->nbytes && info.n_dims == t->n_dims);
        FUZZ_CHECK(t->n_dims == 0 || memcmp(info.shape, t->shape, 8 * t->n_dims) == 0);
        FUZZ_CHECK(ptwm_reader_decode(r, &request, 1, &options, NULL) == PTWM_OK);
        FUZZ_CHECK(memcmp(buffer, t->data, t->nbytes) == 0);
    }
}

static void check_copy(const struct ptwm_reader *r, const struct model *m)
{
    struct ptwm_writer *w = NULL;
    struct ptwm_reader *copy;
    const void *data;
    size_t nbytes;

    FUZZ_CHECK(ptwm_writer_open_memory(NULL, &w, NULL) == PTWM_OK);
    for (size_t i = 0; i < m->n; i++)
        FUZZ_CHECK(ptwm_writer_copy(w, r, i, NULL, 0, NULL) == PTWM_OK);
    copy = open_writer(w, &data, &nbytes);
    check_file(copy, m);
    ptwm_reader_close(copy);
    ptwm_writer_close(w);
}

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t input_nbytes)
{
    struct fuzz_input in = { input, input_nbytes };
    struct ptwm_writer_options options = PTWM_WRITER_OPTIONS_INIT;
    struct model m = { .n = 0 };
    struct ptwm_writer *w = NULL;
    struct ptwm_reader *r;
    const void *data;
    size_t nbytes;

    options.flags = (uint32_t)fuzz_take(&in, 1) % 4;
    options.threads = 1 + (unsigned)fuzz_take(&in, 1) % 2;
    options.chunk_nbytes = 4096 + fuzz_take(&in, 2);
    options.level = (int)fuzz_take(&in, 1) % 12;
    FUZZ_CHECK(ptwm_writer_open_memory(&options, &w, NULL) == PTWM_OK);
    while (in.left > 0 && m.n < MAX_TENSORS)
        add_tensor(w, &m, &in);
    r = open_writer(w, &data, &nbytes);
    check_file(r, &m);
    check_copy(r, &m);
    ptwm_reader_close(r);
    ptwm_writer_close(w);
    for (size_t i = 0; i < m.n; i++)
        free(m.tensors[i].data);
    return 0;
}
