/*
 * Adding tensors: checking what the caller says, finding equal ones, encoding, one at a time or many at once.
 */
#include "writer.h"

#include <pthread.h>
#include <string.h>

#include "choose.h"
#include "codec.h"
#include "status.h"
#include "threads.h"

enum {
    GROUPED_TENSOR_NBYTES = 64 << 10,
    MIN_ROW_ELEMENTS = 64,            /* shorter rows are taken together with the dimension before */
    BATCHED_TENSOR_NBYTES = 16 << 20, /* larger tensors keep several threads busy by themselves */
    IN_FLIGHT_NBYTES = 128 << 20,     /* of tensors that are coded in memory before they are written */
    EXPECTED_SIXTEENTHS = 11          /* of the raw bytes, that what is stored takes */
};

/* ------------------------------------------------------------------------------------------------------- adding */

static enum ptwm_status check_spec(const struct ptwm_tensor_spec *s, struct ptwm_error *error)
{
    uint64_t bits;

    if ((s->name == NULL && s->name_nbytes > 0) || (s->shape == NULL && s->n_dims > 0) ||
        (s->data == NULL && s->nbytes > 0))
        return ptwm_fail(error, PTWM_ERR_ARGUMENT, "a pointer is NULL");
    if (s->nbytes > INT64_MAX || s->nbytes > SIZE_MAX)
        return ptwm_fail(error, PTWM_ERR_ARGUMENT, "%llu bytes are too many", (unsigned long long)s->nbytes);
    if (s->method < PTWM_METHOD_HUFFMAN || s->method > PTWM_METHOD_IDENTITY)
        return ptwm_fail(error, PTWM_ERR_ARGUMENT, "method %d", (int)s->method);
    if (s->dtype == PTWM_DTYPE_NONE && s->n_dims > 0)
        return ptwm_fail(error, PTWM_ERR_ARGUMENT, "a shape without a dtype");
    if (s->dtype == PTWM_DTYPE_NONE)
        return PTWM_OK;
    if (ptwm_dtype_bits(s->dtype) == 0)
        return ptwm_fail(error, PTWM_ERR_ARGUMENT, "unknown dtype %lu", (unsigned long)s->dtype);
    for (uint32_t i = 0; i < s->n_dims; i++)
        if (s->shape[i] > INT64_MAX)
            return ptwm_fail(error, PTWM_ERR_ARGUMENT, "a dimension is 2^63 or more");
    if (!ptwm_shape_bits(s->shape, s->n_dims, ptwm_dtype_bits(s->dtype), &bits) || bits % 8 != 0 ||
        bits / 8 != s->nbytes)
        return ptwm_fail(error, PTWM_ERR_SIZE_MISMATCH, "%llu bytes do not match shape and dtype %s",
                         (unsigned long long)s->nbytes, ptwm_dtype_name(s->dtype));
    return PTWM_OK;
}

/* Appends a chain to the recipe; a STANDARD one that does not fit is left out, a caller's one is an error. */
static enum ptwm_status add_chain(struct recipe *recipe, const void *bytes, size_t nbytes, uint64_t data_nbytes,
                                  struct ptwm_error *error)
{
    struct ptwm_parsed_chain *chain = &recipe->chains[recipe->n_chains];
    enum ptwm_status status = ptwm_chain_parse(bytes, nbytes, chain, error);

    if (status != PTWM_OK)
        return status;
    if (data_nbytes % chain->granule_nbytes == 0)
        recipe->n_chains++;
    else if (recipe->chains_are_callers)
        return ptwm_fail(error, PTWM_ERR_CHAIN, "a chain of multiples of %lu bytes, for %llu bytes",
                         (unsigned long)chain->granule_nbytes, (unsigned long long)data_nbytes);
    return PTWM_OK;
}

/* Bytes of a row, over which columns are counted: the last dimension, and those before it while that is short. */
static uint64_t row_nbytes(const struct ptwm_tensor_spec *s)
{
    const uint32_t bits = ptwm_dtype_bits(s->dtype);
    uint64_t n = 1;

    if (s->n_dims < 2 || s->nbytes == 0)
        return 0;
    for (uint32_t i = s->n_dims; i-- > 1 && n < MIN_ROW_ELEMENTS;)
        n *= s->shape[i]; /* divides the number of elements: no overflow */
    /* Complex numbers are coded as their parts, of which twice as many make a row. */
    return n > 1 && n * bits % 8 == 0 ? n * bits / 8 : 0;
}

static bool is_of_bytes(const struct ptwm_tensor_spec *s)
{
    return s->dtype == PTWM_DTYPE_U8 || s->dtype == PTWM_DTYPE_F8_E4M3 || s->dtype == PTWM_DTYPE_F8_E8M0 ||
           s->dtype == PTWM_DTYPE_F8_E5M3FNU;
}

/*
 * Whether a tensor waits for others like it, with which it shares tables. Packed 4-bit values do so up to larger sizes:
 * they have many frequencies, much alike in all tensors, and no rows that matter.
 */
static bool is_grouped(const struct ptwm_tensor_spec *s)
{
    const bool is_packed = s->dtype == PTWM_DTYPE_U8 || s->dtype == PTWM_DTYPE_F4;
    return s->nbytes <= (is_packed ? PTWM_GROUP_NBYTES / 3 : GROUPED_TENSOR_NBYTES);
}

/* The rows of a small tensor that are likely to be those of block scales: short ones, which tell apart what is grouped. */
static uint64_t short_row_nbytes(const struct ptwm_tensor_spec *s)
{
    const uint64_t nbytes = is_grouped(s) && is_of_bytes(s) ? row_nbytes(s) : 0;
    return nbytes < PTWM_UNIT_GRANULE ? nbytes : 0;
}

static enum ptwm_status make_recipe(const struct ptwm_tensor_spec *s, struct recipe *recipe, struct ptwm_error *error)
{
    enum ptwm_status status = PTWM_OK;
    const void *bytes;
    size_t nbytes;

    recipe->dtype = s->dtype;
    recipe->row_nbytes = short_row_nbytes(s);
    recipe->method = s->method;
    recipe->chains_are_callers = s->chains != NULL;
    recipe->n_chains = 0;
    recipe->repetition = PTWM_REPETITION_UNKNOWN;
    if (s->chains != NULL && (s->n_chains == 0 || s->n_chains > PTWM_MAX_CANDIDATE_CHAINS))
        return ptwm_fail(error, PTWM_ERR_ARGUMENT, "%zu chains; 1 to %d are possible", s->n_chains,
                         PTWM_MAX_CANDIDATE_CHAINS);
    for (size_t i = 0; s->chains != NULL && i < s->n_chains && status == PTWM_OK; i++)
        status = add_chain(recipe, s->chains[i].bytes, s->chains[i].nbytes, s->nbytes, error);
    for (size_t i = 0; s->chains == NULL && status == PTWM_OK; i++) {
        if (ptwm_chain_standard(s->dtype, i, &bytes, &nbytes) != PTWM_OK)
            break;
        status = add_chain(recipe, bytes, nbytes, s->nbytes, error);
    }
    if (status == PTWM_OK && s->method == PTWM_METHOD_IDENTITY) { /* bypasses chains, legal as they must be */
        recipe->n_chains = 0;
        status = add_chain(recipe, "", 0, s->nbytes, error);
    }
    return status;
}

/* The hash of a tensor's bytes; if encoding them asks for repetition, that goes to the recipe. */
static uint64_t hash_bytes(const struct ptwm_writer *w, const struct ptwm_tensor_spec *s, struct recipe *recipe)
{
    uint64_t hash;
    bool is_repetitive;

    if (is_grouped(s) || !ptwm_asks_for_repetition(recipe->method, s->nbytes, &recipe->chains[0]))
        return ptwm_xxh3_64(s->data, (size_t)s->nbytes);
    is_repetitive = ptwm_hash_repetitive(s->data, s->nbytes, w->chunk_nbytes, &hash);
    recipe->repetition = is_repetitive ? PTWM_REPETITION_FOUND : PTWM_REPETITION_NONE;
    return hash;
}

/* What has been done for a tensor before it is its turn. */
struct prepared {
    bool is_hashed;
    uint64_t hash;
    enum ptwm_repetition repetition;
    bool is_encoded;
    struct ptwm_segment_record record;
    struct ptwm_bytes bytes;
    unsigned threads; /* that have no other tensors to prepare */
};

static enum ptwm_status add_bytes(struct ptwm_writer *w, const struct ptwm_tensor_spec *s, struct recipe *recipe,
                                  const struct prepared *prepared, uint64_t index, struct ptwm_error *error)
{
    const bool is_hashed = prepared != NULL && prepared->is_hashed;
    const uint64_t hash = is_hashed ? prepared->hash : hash_bytes(w, s, recipe);
    struct ptwm_tensor_record *t = &w->manifest.tensors[index];
    enum ptwm_status status;
    uint64_t equal;

    if (is_hashed)
        recipe->repetition = prepared->repetition;
    status = ptwm_writer_find_equal(w, hash, s->data, s->nbytes, &equal, error);
    if (status != PTWM_OK)
        return status;
    if (equal != PTWM_NONE) {
        if (ptwm_writer_share_bytes(w, index, equal) != PTWM_OK)
            return ptwm_fail(error, PTWM_ERR_MEMORY, "another tensor");
        t->has_hash = (w->flags & PTWM_WRITE_PAYLOAD_HASH) != 0;
        return PTWM_OK;
    }
    t->nbytes = s->nbytes;
    t->hash = hash;
    t->has_hash = (w->flags & PTWM_WRITE_PAYLOAD_HASH) != 0;
    if (is_grouped(s))
        status = ptwm_writer_add_to_group(w, recipe, s->data, s->nbytes, index, error);
    else if (prepared != NULL && prepared->is_encoded)
        status = ptwm_writer_write_segment(w, &prepared->record, &prepared->bytes, &t->segment, error);
    else
        status = ptwm_writer_encode_segment(w, recipe, s->data, s->nbytes, row_nbytes(s),
                                            prepared != NULL ? prepared->threads : w->threads, &t->segment, error);
    if (status == PTWM_OK && ptwm_writer_remember_bytes(w, index) != PTWM_OK)
        status = ptwm_fail(error, PTWM_ERR_MEMORY, "another tensor");
    return status;
}

/* Completes a caller's spec, which may be of an older and shorter kind. */
static struct ptwm_tensor_spec complete_spec(const struct ptwm_tensor_spec *given)
{
    struct ptwm_tensor_spec s = PTWM_TENSOR_SPEC_INIT;
    memcpy(&s, given, given->struct_nbytes < sizeof s ? given->struct_nbytes : sizeof s);
    return s;
}

/* Specs lie as far apart as the caller's kind of them is long. */
static const struct ptwm_tensor_spec *spec_at(const struct ptwm_tensor_spec *specs, size_t i)
{
    return (const struct ptwm_tensor_spec *)(const void *)((const uint8_t *)specs + i * specs->struct_nbytes);
}

/* Adds a tensor, for which something may have been prepared. */
static enum ptwm_status add_prepared(struct ptwm_writer *w, const struct ptwm_tensor_spec *s,
                                     const struct prepared *prepared, struct ptwm_error *error)
{
    struct recipe *recipe = ptwm_alloc(w->allocator, 1, sizeof *recipe);
    uint64_t index = w->manifest.n_tensors;
    enum ptwm_status status;

    if (recipe == NULL)
        return ptwm_writer_poison(w, ptwm_fail(error, PTWM_ERR_MEMORY, "a tensor"));
    status = check_spec(s, error);
    if (status == PTWM_OK)
        status = make_recipe(s, recipe, error);
    if (status == PTWM_OK) {
        status = ptwm_writer_add_record(w, s->name, s->name_nbytes, s->dtype, s->shape, s->n_dims, &index, error);
        if (status == PTWM_ERR_MEMORY)
            ptwm_writer_poison(w, status);
        if (status == PTWM_OK && s->nbytes > 0)
            status = ptwm_writer_poison(w, add_bytes(w, s, recipe, prepared, index, error));
    }
    if (status != PTWM_OK)
        ptwm_fail_at(error, index, PTWM_NONE);
    ptwm_release(w->allocator, recipe, 1, sizeof *recipe);
    return status;
}

/* ------------------------------------------------------------------------------------------------- adding many */

static void hash_into(const struct ptwm_writer *w, const struct ptwm_tensor_spec *s, struct recipe *recipe,
                      struct prepared *prepared)
{
    prepared->hash = hash_bytes(w, s, recipe);
    prepared->repetition = recipe->repetition;
    prepared->is_hashed = true;
}

/*
 * Tensors that are encoded side by side. A task is one that is not small, with the small ones before it: these only join their
 * groups when it is their turn, and would keep others from slots.
 */
struct batch {
    struct ptwm_writer *w;
    const struct ptwm_tensor_spec *specs;
    const size_t *first;       /* of each task; one more is their end */
    struct prepared *prepared; /* slots */
};

static enum ptwm_status encode_prepared(const struct ptwm_writer *w, const struct ptwm_tensor_spec *s,
                                        struct ptwm_encode_memory *memory, struct prepared *prepared,
                                        struct ptwm_error *error)
{
    struct recipe *recipe = ptwm_alloc(w->allocator, 1, sizeof *recipe);
    struct ptwm_output *output = NULL;
    enum ptwm_status status = recipe != NULL ? make_recipe(s, recipe, error) : PTWM_ERR_MEMORY;

    if (status == PTWM_OK)
        hash_into(w, s, recipe, prepared);
    /* Results are rarely larger than the raw bytes, and by little. */
    prepared->bytes.nbytes = 0;
    if (status == PTWM_OK)
        status = ptwm_bytes_reserve(&prepared->bytes, s->nbytes + 4096);
    if (status == PTWM_OK)
        status = ptwm_output_open_bytes(&prepared->bytes, w->allocator, &output, error);
    if (status == PTWM_OK)
        status = ptwm_writer_encode_bytes(w, recipe, s->data, s->nbytes, row_nbytes(s), 1, memory, output,
                                          &prepared->record, error);
    prepared->is_encoded = status == PTWM_OK;
    ptwm_output_close(output);
    ptwm_release(w->allocator, recipe, 1, sizeof *recipe);
    return status;
}

/*
 * Prepares the tensor that is not small, if there is one. What fails here fails again when it is the tensor's turn, which is
 * when it is reported; so the only thing to do about it is to leave the tensor as it is.
 */
static enum ptwm_status prepare(void *context, size_t task, size_t slot, unsigned worker, struct ptwm_error *error)
{
    const struct batch *batch = context;
    const struct ptwm_tensor_spec s = complete_spec(spec_at(batch->specs, batch->first[task + 1] - 1));
    struct prepared *prepared = &batch->prepared[slot];

    (void)error;
    prepared->is_hashed = prepared->is_encoded = false;
    prepared->threads = 1;
    if (!is_grouped(&s) && check_spec(&s, NULL) == PTWM_OK)
        (void)encode_prepared(batch->w, &s, &batch->w->memory[worker], prepared, NULL);
    return PTWM_OK;
}

static enum ptwm_status add_from_slot(void *context, size_t task, size_t slot, struct ptwm_error *error)
{
    const struct batch *batch = context;
    enum ptwm_status status = PTWM_OK;

    for (size_t i = batch->first[task]; i < batch->first[task + 1] && status == PTWM_OK; i++) {
        const struct ptwm_tensor_spec s = complete_spec(spec_at(batch->specs, i));
        status = add_prepared(batch->w, &s, is_grouped(&s) ? NULL : &batch->prepared[slot], error);
    }
    return status;
}

/* Divides n tensors into tasks; returns how many. first has room for n + 1. */
static size_t make_tasks(const struct ptwm_tensor_spec *specs, size_t n, size_t *first)
{
    size_t n_tasks = 0;

    first[0] = 0;
    for (size_t i = 0; i < n; i++) {
        const struct ptwm_tensor_spec s = complete_spec(spec_at(specs, i));
        if (!is_grouped(&s) || i + 1 == n)
            first[++n_tasks] = i + 1;
    }
    return n_tasks;
}

/* The largest tensor of a batch, so that all in flight take no more than IN_FLIGHT_NBYTES. */
static uint64_t batched_nbytes(const struct ptwm_writer *w)
{
    const uint64_t most = IN_FLIGHT_NBYTES / (2 * w->threads);
    return most < BATCHED_TENSOR_NBYTES ? most : BATCHED_TENSOR_NBYTES;
}

/* How many of n tensors make a batch: those in a row that are not large. */
static size_t batch_length(const struct ptwm_writer *w, const struct ptwm_tensor_spec *specs, size_t n)
{
    size_t i = 0;

    while (i < n && spec_at(specs, i)->nbytes <= batched_nbytes(w))
        i++;
    return i;
}

static enum ptwm_status add_batch(struct ptwm_writer *w, const struct ptwm_tensor_spec *specs, size_t n,
                                  struct ptwm_error *error)
{
    const size_t n_slots = 2 * (size_t)w->threads;
    size_t *first = ptwm_alloc(w->allocator, (uint64_t)n + 1, sizeof *first);
    struct batch batch = { w, specs, first, ptwm_calloc(w->allocator, n_slots, sizeof *batch.prepared) };
    enum ptwm_status status = PTWM_ERR_MEMORY;

    if (first == NULL || batch.prepared == NULL) {
        ptwm_writer_poison(w, ptwm_fail(error, PTWM_ERR_MEMORY, "%zu tensors", n));
    } else {
        for (size_t i = 0; i < n_slots; i++)
            batch.prepared[i].bytes.allocator = w->allocator;
        status = ptwm_parallel_in_order(make_tasks(specs, n, first), n_slots, w->threads, prepare, add_from_slot, &batch,
                                        error);
        for (size_t i = 0; i < n_slots; i++)
            ptwm_bytes_release(&batch.prepared[i].bytes);
    }
    ptwm_release(w->allocator, batch.prepared, n_slots, sizeof *batch.prepared);
    ptwm_release(w->allocator, first, (uint64_t)n + 1, sizeof *first);
    return status;
}

/* ------------------------------------------------------------------------------------------------- hashing ahead */

/*
 * All threads encode a tensor that is too large for batches, but one hashes it, before: a thread of its own does while
 * those before it are encoded.
 */
struct ahead {
    const struct ptwm_writer *w;
    const struct ptwm_tensor_spec *given;
    struct prepared prepared;
    bool has_thread;
    pthread_t thread;
};

/* What fails here is left as it is: it fails again when it is the tensor's turn. */
static void *hash_ahead(void *argument)
{
    struct ahead *ahead = argument;
    const struct ptwm_tensor_spec s = complete_spec(ahead->given);
    struct recipe *recipe = ptwm_alloc(ahead->w->allocator, 1, sizeof *recipe);

    if (recipe != NULL && check_spec(&s, NULL) == PTWM_OK && make_recipe(&s, recipe, NULL) == PTWM_OK)
        hash_into(ahead->w, &s, recipe, &ahead->prepared);
    ptwm_release(ahead->w->allocator, recipe, 1, sizeof *recipe);
    return NULL;
}

/* Begins with the first of n tensors, if there is one, and if it is large. */
static void begin_ahead(struct ahead *ahead, const struct ptwm_writer *w, const struct ptwm_tensor_spec *specs,
                        size_t n)
{
    ahead->w = w;
    ahead->given = specs;
    ahead->prepared.is_hashed = false;
    ahead->prepared.threads = w->threads;
    ahead->has_thread = w->threads > 1 && n > 0 && batch_length(w, specs, 1) == 0 &&
                        pthread_create(&ahead->thread, NULL, hash_ahead, ahead) == 0;
}

/* Waits for the thread, if there is one. */
static void end_ahead(struct ahead *ahead)
{
    if (ahead->has_thread)
        pthread_join(ahead->thread, NULL);
    ahead->has_thread = false;
}

/* ------------------------------------------------------------------------------------------------- the calls */

/* Tells the output about how much n tensors will take: as much as BF16 does, other types need more or less. */
static enum ptwm_status expect(struct ptwm_writer *w, const struct ptwm_tensor_spec *specs, size_t n,
                               struct ptwm_error *error)
{
    uint64_t nbytes = 0;

    for (size_t i = 0; i < n; i++)
        if (!ptwm_add_u64(nbytes, spec_at(specs, i)->nbytes, &nbytes))
            nbytes = UINT64_MAX;
    return ptwm_writer_poison(w, ptwm_output_expect(w->output, nbytes / 16 * EXPECTED_SIXTEENTHS, error));
}

enum ptwm_status ptwm_writer_add_many(struct ptwm_writer *w, const struct ptwm_tensor_spec *specs, size_t n_specs,
                                      struct ptwm_error *error)
{
    enum ptwm_status status = ptwm_writer_check_open(w, error);
    struct ahead ahead = { 0 };

    if (status == PTWM_OK && specs == NULL && n_specs > 0)
        status = ptwm_fail(error, PTWM_ERR_ARGUMENT, "specs");
    if (status == PTWM_OK)
        status = expect(w, specs, n_specs, error);
    for (size_t i = 0; i < n_specs && status == PTWM_OK;) {
        const struct ptwm_tensor_spec *next = spec_at(specs, i);
        const size_t n_batched = w->threads > 1 ? batch_length(w, next, n_specs - i) : 0;
        const size_t n = n_batched > 1 ? n_batched : 1;
        struct prepared hashed;

        end_ahead(&ahead);
        hashed = ahead.prepared;
        i += n;
        begin_ahead(&ahead, w, i < n_specs ? spec_at(specs, i) : NULL, n_specs - i);
        if (n > 1) {
            status = add_batch(w, next, n, error);
        } else {
            const struct ptwm_tensor_spec s = complete_spec(next);
            status = add_prepared(w, &s, hashed.is_hashed ? &hashed : NULL, error);
        }
    }
    end_ahead(&ahead);
    return status;
}

enum ptwm_status ptwm_writer_add(struct ptwm_writer *w, const struct ptwm_tensor_spec *spec, struct ptwm_error *error)
{
    if (w != NULL && spec == NULL)
        return ptwm_fail(error, PTWM_ERR_ARGUMENT, "spec");
    return ptwm_writer_add_many(w, spec, 1, error);
}

enum ptwm_status ptwm_writer_add_alias(struct ptwm_writer *w, const char *name, size_t name_nbytes, const char *target,
                                       size_t target_nbytes, struct ptwm_error *error)
{
    enum ptwm_status status = ptwm_writer_check_open(w, error);
    const struct ptwm_tensor_record *t;
    uint64_t of, index;

    if (status != PTWM_OK)
        return status;
    if ((name == NULL && name_nbytes > 0) || (target == NULL && target_nbytes > 0))
        return ptwm_fail(error, PTWM_ERR_ARGUMENT, "a pointer is NULL");
    of = ptwm_name_index_find(&w->names, w->manifest.tensors, target != NULL ? target : "", target_nbytes);
    if (of == PTWM_NONE)
        return ptwm_fail(error, PTWM_ERR_NO_TENSOR, "the target of an alias");
    t = &w->manifest.tensors[of];
    /* The shape is copied as the record is made; room for it first, so that it does not move meanwhile. */
    if (ptwm_writer_reserve_tensor(w, t->n_dims) != PTWM_OK)
        return ptwm_writer_poison(w, ptwm_fail(error, PTWM_ERR_MEMORY, "another tensor"));
    t = &w->manifest.tensors[of];
    status = ptwm_writer_add_record(w, name, name_nbytes, t->dtype, ptwm_manifest_shape(&w->manifest, t), t->n_dims,
                                    &index, error);
    if (status == PTWM_OK && ptwm_writer_share_bytes(w, index, of) != PTWM_OK)
        status = ptwm_fail(error, PTWM_ERR_MEMORY, "another tensor");
    if (status == PTWM_ERR_MEMORY)
        ptwm_writer_poison(w, status);
    return status;
}
