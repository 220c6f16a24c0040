/*
 * A label model and a chunk coded with it, decoded the plain way and by the fused kernels of all instruction sets, which
 * must agree. The input: a byte that picks the chain, one of flags, two bytes each of the elements' number, the first one's
 * number in its segment and the model's length; the model; the chunk, whose head's CRC is put right.
 */
#include "fuzz.h"
#include "label_fused.h"
#include "rest.h"
#include "seal.h"

enum { IS_CARRIED = 1, IS_CARRIED_WRONG = 2, IS_LOW_CONSTANT = 4, WITH_CRC = 8, IS_STREAMED = 16, MAX_N = 4096 };

/* All that have fused kernels, and others. */
static const uint8_t chains[][4] = {
    { 3, 2, 6, 9 }, { 3, 2, 7, 8 }, { 3, 4, 6, 9 }, { 3, 4, 7, 8 },  { 3, 2, 9, 6 },  { 3, 1, 2, 5 }, { 3, 1, 1, 6 },
    { 3, 1, 3, 5 }, { 3, 0, 0, 4 }, { 3, 1, 0, 8 }, { 3, 8, 4, 11 }, { 3, 2, 0, 15 }, { 3, 4, 1, 1 },
};
static const char *const cpus[] = { "c99", "avx2", "avx512", "neon" };

/* What can be read can be written; that reads again, and is written the same. */
static void rewrite_model(const struct ptwm_label_model *model, const struct ptwm_step *step)
{
    struct ptwm_bytes once = { &ptwm_default_allocator, NULL, 0, 0 }, twice = once;
    struct ptwm_label_model again;
    struct ptwm_cursor cursor;

    ptwm_label_model_init(&again, &ptwm_default_allocator, step);
    FUZZ_CHECK(ptwm_label_model_write(model, &once) == PTWM_OK);
    cursor = ptwm_cursor_make(once.data, once.nbytes);
    FUZZ_CHECK(ptwm_label_model_read(&again, &cursor, NULL) == PTWM_OK && ptwm_cursor_left(&cursor) == 0);
    FUZZ_CHECK(ptwm_label_model_write(&again, &twice) == PTWM_OK);
    FUZZ_CHECK(once.nbytes == twice.nbytes && memcmp(once.data, twice.data, once.nbytes) == 0);
    ptwm_label_model_release(&again);
    ptwm_bytes_release(&once);
    ptwm_bytes_release(&twice);
}

struct chunk {
    struct ptwm_parsed_chain chain;
    const struct ptwm_label_model *model;
    uint64_t first_element;
    size_t n, raw_nbytes;
    unsigned flags, n_lanes;
    const uint8_t *stored;
    size_t stored_nbytes;
    uint8_t *low, *rest; /* without what is carried */
    size_t low_nbytes, rest_nbytes;
    size_t n_carried;
};

/* Low and rest planes of any content, whose unused bits are zero. */
static void make_planes(struct chunk *c)
{
    const unsigned r = (c->chain.label->width == 0 ? 4u : c->chain.label->width == 1 ? 8u : 16u) - c->chain.label->bits;
    static uint16_t rests[MAX_N];
    uint64_t state = c->n;

    for (size_t i = 0; i < c->n; i++)
        rests[i] = (uint16_t)(fuzz_random(&state) & ((1u << r) - 1));
    c->rest_nbytes = (size_t)ptwm_rest_nbytes(c->n, r);
    c->rest = fuzz_guarded(5, c->rest_nbytes);
    ptwm_rest_pack(c->rest, rests, c->n, r);
    c->low_nbytes = 2 * c->n;
    c->low = fuzz_guarded(6, c->low_nbytes);
    for (size_t i = 0; i < c->low_nbytes; i++)
        c->low[i] = c->flags & IS_LOW_CONSTANT ? (uint8_t)(1 + i % 2) : (uint8_t)fuzz_random(&state);
}

/* Decodes the plain way and merges; the result is in slot 7. */
static enum ptwm_status decode_plain(const struct chunk *c)
{
    uint16_t *symbols = (uint16_t *)(void *)fuzz_guarded(2, 2 * c->n);
    uint8_t *carried = fuzz_guarded(3, c->n_carried), *raw = fuzz_guarded(7, c->raw_nbytes), *plane, *rest;
    const struct ptwm_shifts shifts = { c->model->n_columns, c->model->wrapped };
    const uint8_t *planes[PTWM_MAX_PLANES];
    const uint32_t last = c->chain.n_planes - 1;
    enum ptwm_status status = ptwm_label_decode(c->model, c->first_element, c->stored, c->stored_nbytes, symbols, c->n,
                                                carried, c->n_carried, NULL);

    if (status != PTWM_OK)
        return status;
    plane = fuzz_guarded(4, c->n * c->chain.planes[last].element_nbytes);
    for (size_t i = 0; i < c->n; i++) {
        FUZZ_CHECK(symbols[i] >> c->chain.label->bits == 0);
        if (c->chain.planes[last].element_nbytes == 2)
            ptwm_store16(plane + 2 * i, symbols[i]);
        else
            plane[i] = (uint8_t)symbols[i];
    }
    rest = fuzz_guarded_copy(8, c->rest, c->rest_nbytes);
    memcpy(rest, carried, c->n_carried < c->rest_nbytes ? c->n_carried : c->rest_nbytes);
    for (uint32_t p = 0; p < last; p++)
        planes[p] = c->chain.planes[p].kind == PTWM_PLANE_LOW ? c->low : rest;
    planes[last] = plane;
    return ptwm_chain_merge(&c->chain, &shifts, c->first_element, raw, c->raw_nbytes, planes, NULL);
}

static enum ptwm_status decode_fused(const struct chunk *c, uint8_t *raw, bool with_crc)
{
    const bool is_carried = c->n_carried > 0;
    const size_t rest_nbytes = c->rest_nbytes - (is_carried ? PTWM_FUSED_CARRIED : 0);
    const uint8_t *rest = fuzz_guarded_copy(9, c->rest + c->rest_nbytes - rest_nbytes, rest_nbytes);
    const uint32_t crcs[3] = { ptwm_crc32c(0, c->low, c->low_nbytes), ptwm_crc32c(0, rest, rest_nbytes),
                               ptwm_crc32c(0, c->stored, c->stored_nbytes) };
    struct ptwm_fused_chunk fused = { 0 };

    fused.chain = &c->chain;
    fused.model = c->model;
    fused.first_element = c->first_element;
    fused.is_low_constant = c->flags & IS_LOW_CONSTANT;
    fused.low.nbytes = fused.is_low_constant ? 2 * PTWM_FUSED_BLOCK : c->low_nbytes;
    fused.low.bytes = fuzz_guarded_copy(10, c->low, fused.low.nbytes);
    fused.low.crc = with_crc && c->chain.label->width == 4 && !fused.is_low_constant ? &crcs[0] : NULL;
    fused.is_carried = is_carried;
    fused.rest.bytes = rest;
    fused.rest.nbytes = rest_nbytes;
    fused.rest.crc = with_crc ? &crcs[1] : NULL;
    fused.symbols.bytes = c->stored;
    fused.symbols.nbytes = c->stored_nbytes;
    fused.symbols.crc = with_crc ? &crcs[2] : NULL;
    fused.is_streamed = c->flags & IS_STREAMED;
    fused.raw = raw;
    fused.raw_nbytes = c->raw_nbytes;
    return ptwm_fused_decode(&fused);
}

static void compare_fused(const struct chunk *c, enum ptwm_status plain)
{
    const uint8_t *expected = fuzz_guarded(7, c->raw_nbytes);
    const unsigned r = (c->chain.label->width == 1 ? 8u : 16u) - c->chain.label->bits;

    if (!ptwm_fused_serves(&c->chain, c->model, c->raw_nbytes) || c->model->unit % PTWM_UNIT_GRANULE != 0 ||
        (c->n_carried > 0 && (c->n_carried != PTWM_FUSED_CARRIED || c->rest_nbytes <= PTWM_FUSED_CARRIED)))
        return;
    for (size_t i = 0; i < sizeof cpus / sizeof cpus[0]; i++) {
        uint8_t *raw = fuzz_guarded(11, c->raw_nbytes);
        enum ptwm_status status;

        if (ptwm_cpu_select(cpus[i]) != PTWM_OK)
            continue;
        memset(raw, 0xEE, c->raw_nbytes);
        status = decode_fused(c, raw, (c->flags & WITH_CRC) != 0);
        FUZZ_CHECK(status != PTWM_OK || (plain == PTWM_OK && memcmp(raw, expected, c->raw_nbytes) == 0));
        /* It may leave alone what has another number of lanes, or where all blocks have rests that are carried. */
        if (plain == PTWM_OK && c->n_lanes == PTWM_MAX_LANES &&
            (c->n_carried == 0 || c->n / PTWM_FUSED_BLOCK * 64 * r >= PTWM_FUSED_CARRIED))
            FUZZ_CHECK(status == PTWM_OK);
    }
    FUZZ_CHECK(ptwm_cpu_select("best") == PTWM_OK);
}

static void decode_chunk(struct chunk *c, struct fuzz_input *input)
{
    uint8_t *stored = fuzz_guarded_copy(1, input->next, input->left);

    seal_label_head(c->model, c->n, stored, input->left);
    c->stored = stored;
    c->stored_nbytes = input->left;
    c->n_lanes = input->left == 0 || stored[0] == 0 ? 4 : stored[0] == 1 ? 32 : 128;
    if (c->flags & IS_CARRIED)
        c->n_carried = 2 * (c->flags & IS_CARRIED_WRONG ? c->n_lanes / 2 : c->n_lanes);
    make_planes(c);
    if (c->n_carried > c->rest_nbytes)
        return;
    compare_fused(c, decode_plain(c));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t nbytes)
{
    struct fuzz_input input = { data, nbytes };
    struct chunk c = { 0 };
    struct ptwm_label_model model;
    struct ptwm_cursor cursor;
    size_t model_nbytes;

    FUZZ_CHECK(ptwm_chain_parse(chains[fuzz_take(&input, 1) % (sizeof chains / sizeof chains[0])], 4, &c.chain, NULL) ==
               PTWM_OK);
    c.flags = (unsigned)fuzz_take(&input, 1);
    c.n = (size_t)fuzz_take(&input, 2) % MAX_N + 1;
    c.n += c.chain.label->width == 0 && c.n % 2 != 0 ? 1 : 0;
    c.n = c.n > MAX_N ? MAX_N : c.n;
    c.raw_nbytes = c.chain.label->width == 0 ? c.n / 2 : c.n * c.chain.label->width;
    c.first_element = fuzz_take(&input, 2);
    model_nbytes = (size_t)fuzz_take(&input, 2);
    model_nbytes = model_nbytes < input.left ? model_nbytes : input.left;
    ptwm_label_model_init(&model, &ptwm_default_allocator, c.chain.label);
    cursor = ptwm_cursor_make(fuzz_guarded_copy(0, input.next, model_nbytes), model_nbytes);
    if (ptwm_label_model_read(&model, &cursor, NULL) == PTWM_OK) {
        rewrite_model(&model, c.chain.label);
        c.model = &model;
        input.next += model_nbytes;
        input.left -= model_nbytes;
        decode_chunk(&c, &input);
    }
    ptwm_label_model_release(&model);
    return 0;
}
