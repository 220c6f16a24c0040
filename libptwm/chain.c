#include "chain.h"

#include <string.h>

#include "bits.h"
#include "byte_planes.h"
#include "cpu_features.h"
#include "rest.h"
#include "status.h"

/* ----------------------------------------------------------------------------------------------------- parsing */

static bool is_width(uint8_t width)
{
    return width == 1 || width == 2 || width == 4 || width == 8;
}

/* Bits of the unit that a label step cuts: the whole of a small element, the top 16 bits of a large one. */
static unsigned unit_bits(const struct ptwm_step *label)
{
    return label->width == 0 ? 4 : label->width == 1 ? 8 : 16;
}

static unsigned rest_bits(const struct ptwm_step *label)
{
    return unit_bits(label) - label->bits;
}

static uint32_t n_low_planes(const struct ptwm_step *label)
{
    return label->width > 2 ? label->width / 2u - 1 : 0;
}

static enum ptwm_status parse_step(struct ptwm_cursor *c, struct ptwm_step *step, struct ptwm_error *error)
{
    uint8_t opcode = ptwm_cursor_u8(c);

    memset(step, 0, sizeof *step);
    step->width = ptwm_cursor_u8(c);
    if (opcode == PTWM_STEP_LABEL) {
        step->shift = ptwm_cursor_u8(c);
        step->bits = ptwm_cursor_u8(c);
    }
    if (c->failed)
        return ptwm_fail(error, PTWM_ERR_CHAIN, "a step of the chain is cut short");
    switch (opcode) {
    case PTWM_STEP_DELTA:
        if (!is_width(step->width))
            return ptwm_fail(error, PTWM_ERR_CHAIN, "delta has width %u", step->width);
        break;
    case PTWM_STEP_BYTES:
        if (step->width < 2 || step->width > 16)
            return ptwm_fail(error, PTWM_ERR_CHAIN, "bytes has width %u", step->width);
        break;
    case PTWM_STEP_LABEL:
        if (step->width != 0 && !is_width(step->width))
            return ptwm_fail(error, PTWM_ERR_CHAIN, "label has width %u", step->width);
        if (step->bits < 1 || step->bits > 15 || step->shift + step->bits > (int)unit_bits(step))
            return ptwm_fail(error, PTWM_ERR_CHAIN, "label takes bits %u to %u of %u", step->shift,
                             step->shift + step->bits, unit_bits(step));
        break;
    default:
        return ptwm_fail(error, PTWM_ERR_CHAIN, "unknown step %u", opcode);
    }
    step->kind = (enum ptwm_step_kind)opcode;
    return PTWM_OK;
}

static void add_planes(struct ptwm_parsed_chain *chain, uint32_t n, enum ptwm_plane_kind kind, uint8_t element_nbytes)
{
    while (n-- > 0) {
        chain->planes[chain->n_planes].kind = kind;
        chain->planes[chain->n_planes++].element_nbytes = element_nbytes;
    }
}

/* Lists the planes that the last step leaves. */
static void list_planes(struct ptwm_parsed_chain *chain)
{
    const struct ptwm_step *last = chain->n_steps > 0 ? &chain->steps[chain->n_steps - 1] : NULL;

    if (last != NULL && last->kind == PTWM_STEP_LABEL) {
        chain->label = last;
        add_planes(chain, n_low_planes(last), PTWM_PLANE_LOW, 2);
        add_planes(chain, rest_bits(last) > 0, PTWM_PLANE_REST, 1);
        add_planes(chain, 1, PTWM_PLANE_SYMBOL, last->bits > 8 ? 2 : 1);
    } else {
        add_planes(chain, last != NULL && last->kind == PTWM_STEP_BYTES ? last->width : 1, PTWM_PLANE_BYTES, 1);
    }
}

enum ptwm_status ptwm_chain_parse(const void *bytes, size_t nbytes, struct ptwm_parsed_chain *chain,
                                  struct ptwm_error *error)
{
    struct ptwm_cursor c = ptwm_cursor_make(bytes, nbytes);

    memset(chain, 0, sizeof *chain);
    if (nbytes > sizeof chain->bytes)
        return ptwm_fail(error, PTWM_ERR_CHAIN, "the chain has %zu bytes", nbytes);
    if (nbytes > 0)
        memcpy(chain->bytes, bytes, nbytes);
    chain->nbytes = nbytes;
    chain->granule_nbytes = 1;
    while (ptwm_cursor_left(&c) > 0) {
        struct ptwm_step *step = &chain->steps[chain->n_steps];
        enum ptwm_status status;
        uint32_t width;

        if (chain->n_steps == PTWM_CHAIN_MAX_STEPS)
            return ptwm_fail(error, PTWM_ERR_CHAIN, "the chain has more than %d steps", PTWM_CHAIN_MAX_STEPS);
        if (chain->n_steps > 0 && step[-1].kind != PTWM_STEP_DELTA)
            return ptwm_fail(error, PTWM_ERR_CHAIN, "a step follows one that splits");
        status = parse_step(&c, step, error);
        if (status != PTWM_OK)
            return status;
        width = step->width > 0 ? step->width : 1;
        chain->granule_nbytes = chain->granule_nbytes / (uint32_t)ptwm_gcd(chain->granule_nbytes, width) * width;
        chain->n_steps++;
    }
    list_planes(chain);
    return PTWM_OK;
}

void ptwm_chain_copy(struct ptwm_parsed_chain *to, const struct ptwm_parsed_chain *from)
{
    *to = *from;
    to->label = from->label != NULL ? &to->steps[from->label - from->steps] : NULL;
}

enum ptwm_status ptwm_chain_check(const void *chain, size_t chain_nbytes, struct ptwm_error *error)
{
    struct ptwm_parsed_chain parsed;
    if (chain == NULL && chain_nbytes > 0)
        return ptwm_fail(error, PTWM_ERR_ARGUMENT, "chain is NULL");
    return ptwm_chain_parse(chain, chain_nbytes, &parsed, error);
}

uint64_t ptwm_chain_n_elements(const struct ptwm_parsed_chain *chain, uint64_t raw_nbytes)
{
    return chain->label->width == 0 ? raw_nbytes * 2 : raw_nbytes / chain->label->width;
}

uint64_t ptwm_plane_nbytes(const struct ptwm_parsed_chain *chain, uint32_t plane, uint64_t raw_nbytes)
{
    switch (chain->planes[plane].kind) {
    case PTWM_PLANE_BYTES:
        return raw_nbytes / chain->n_planes;
    case PTWM_PLANE_LOW:
        return ptwm_chain_n_elements(chain, raw_nbytes) * 2;
    case PTWM_PLANE_REST:
        return ptwm_rest_nbytes(ptwm_chain_n_elements(chain, raw_nbytes), rest_bits(chain->label));
    case PTWM_PLANE_SYMBOL:
        return ptwm_chain_n_elements(chain, raw_nbytes) * chain->planes[plane].element_nbytes;
    }
    return 0;
}

/* ------------------------------------------------------------------------------------------------ label planes */

enum { BLOCK = 512 }; /* of the rest packing; scratch for one lives on the stack */

struct label_planes {
    const struct ptwm_step *step;
    uint32_t n_low;
    unsigned rest_bits;
    bool wide; /* symbols take two bytes */
};

static struct label_planes label_planes(const struct ptwm_parsed_chain *chain)
{
    struct label_planes l = { chain->label, n_low_planes(chain->label), rest_bits(chain->label),
                              chain->planes[chain->n_planes - 1].element_nbytes == 2 };
    return l;
}

/*
 * All of a block's work is done by loops over arrays of u16, one thing at a time, which compilers turn into vector
 * instructions.
 */
struct label_block {
    uint16_t units[BLOCK], symbols[BLOCK], rests[BLOCK], low[3][BLOCK];
};

static void load_words(uint16_t *words, const uint8_t *from, size_t n)
{
#if defined(PTWM_X86) || defined(PTWM_ARM) /* little-endian */
    memcpy(words, from, 2 * n);
#else
    for (size_t i = 0; i < n; i++)
        words[i] = ptwm_load16(from + 2 * i);
#endif
}

static void store_words(uint8_t *to, const uint16_t *words, size_t n)
{
#if defined(PTWM_X86) || defined(PTWM_ARM)
    memcpy(to, words, 2 * n);
#else
    for (size_t i = 0; i < n; i++)
        ptwm_store16(to + 2 * i, words[i]);
#endif
}

/* The units and the low planes' words of n elements of a block. Nibbles come in whole bytes: their n is even. */
static void load_elements(struct label_block *block, const uint8_t *raw, size_t n, unsigned width)
{
    uint16_t *units = block->units;

    switch (width) {
    case 0:
        for (size_t i = 0; i < n / 2; i++) {
            units[2 * i] = raw[i] & 15;
            units[2 * i + 1] = raw[i] >> 4;
        }
        break;
    case 1:
        for (size_t i = 0; i < n; i++)
            units[i] = raw[i];
        break;
    case 2:
        load_words(units, raw, n);
        break;
    case 4:
        for (size_t i = 0; i < n; i++) {
            const uint32_t v = ptwm_load32(raw + 4 * i);
            block->low[0][i] = (uint16_t)v;
            units[i] = (uint16_t)(v >> 16);
        }
        break;
    default:
        for (size_t i = 0; i < n; i++) {
            const uint64_t v = ptwm_load64(raw + 8 * i);
            block->low[0][i] = (uint16_t)v;
            block->low[1][i] = (uint16_t)(v >> 16);
            block->low[2][i] = (uint16_t)(v >> 32);
            units[i] = (uint16_t)(v >> 48);
        }
        break;
    }
}

static void store_elements(uint8_t *raw, const struct label_block *block, size_t n, unsigned width)
{
    const uint16_t *units = block->units;
    uint16_t words[4 * BLOCK];

    switch (width) {
    case 0:
        for (size_t i = 0; i < n / 2; i++)
            raw[i] = (uint8_t)(units[2 * i] | units[2 * i + 1] << 4);
        break;
    case 1:
        for (size_t i = 0; i < n; i++)
            raw[i] = (uint8_t)units[i];
        break;
    case 2:
        store_words(raw, units, n);
        break;
    case 4:
        for (size_t i = 0; i < n; i++) {
            words[2 * i] = block->low[0][i];
            words[2 * i + 1] = units[i];
        }
        store_words(raw, words, 2 * n);
        break;
    default:
        for (size_t i = 0; i < n; i++) {
            words[4 * i] = block->low[0][i];
            words[4 * i + 1] = block->low[1][i];
            words[4 * i + 2] = block->low[2][i];
            words[4 * i + 3] = units[i];
        }
        store_words(raw, words, 4 * n);
        break;
    }
}

/* Adds the shifts of n columns from *column on to symbols, or subtracts them; *column moves on. */
static void shift_symbols(uint16_t *symbols, size_t n, const struct ptwm_shifts *shifts, uint32_t *column, bool add)
{
    while (n > 0) {
        const uint16_t *value = shifts->value + *column;
        const size_t left = shifts->n_columns - *column, m = left < n ? left : n;

        if (add)
            for (size_t i = 0; i < m; i++)
                symbols[i] = (uint16_t)(symbols[i] + value[i]);
        else
            for (size_t i = 0; i < m; i++)
                symbols[i] = (uint16_t)(symbols[i] - value[i]);
        *column = m < left ? *column + (uint32_t)m : 0;
        symbols += m;
        n -= m;
    }
}

/* Units to symbols and rests. */
static void cut_units(struct label_block *block, size_t n, unsigned shift, unsigned bits)
{
    const uint16_t below = (uint16_t)((1u << shift) - 1);

    for (size_t i = 0; i < n; i++) {
        const uint16_t u = block->units[i];
        block->symbols[i] = (uint16_t)(u >> shift);
        block->rests[i] = (uint16_t)((uint16_t)((uint32_t)u >> (shift + bits)) << shift | (u & below));
    }
}

/* The inverse; the symbols' bits above their own do not count. */
static void join_units(struct label_block *block, size_t n, unsigned shift, unsigned bits)
{
    const uint16_t below = (uint16_t)((1u << shift) - 1), mask = (uint16_t)((1u << bits) - 1);

    for (size_t i = 0; i < n; i++) {
        const uint16_t r = block->rests[i];
        block->units[i] = (uint16_t)((uint32_t)(r >> shift) << (shift + bits) |
                                     (uint32_t)(block->symbols[i] & mask) << shift | (r & below));
    }
}

static void store_symbols(uint8_t *to, const uint16_t *symbols, size_t n, bool wide)
{
    if (wide) {
        store_words(to, symbols, n);
    } else {
        for (size_t i = 0; i < n; i++)
            to[i] = (uint8_t)symbols[i];
    }
}

static void load_symbols(uint16_t *symbols, const uint8_t *from, size_t n, bool wide)
{
    if (wide) {
        load_words(symbols, from, n);
    } else {
        for (size_t i = 0; i < n; i++)
            symbols[i] = from[i];
    }
}

static uint32_t first_column(const struct ptwm_shifts *shifts, uint64_t first_element)
{
    return shifts->n_columns > 0 ? (uint32_t)(first_element % shifts->n_columns) : 0;
}

/* Where element number first of raw begins. */
static size_t raw_offset(size_t first, unsigned width)
{
    return width == 0 ? first / 2 : first * width;
}

static void split_label(const struct ptwm_parsed_chain *chain, const struct ptwm_shifts *shifts,
                        uint64_t first_element, const uint8_t *raw, size_t raw_nbytes, uint8_t *const *planes)
{
    const struct label_planes l = label_planes(chain);
    const unsigned width = l.step->width, shift = l.step->shift, bits = l.step->bits;
    const size_t n = (size_t)ptwm_chain_n_elements(chain, raw_nbytes);
    uint8_t *symbols = planes[chain->n_planes - 1], *rests = l.rest_bits > 0 ? planes[l.n_low] : NULL;
    uint32_t column = first_column(shifts, first_element);
    struct label_block block;

    for (size_t first = 0; first < n; first += BLOCK) {
        const size_t m = n - first < BLOCK ? n - first : BLOCK;

        load_elements(&block, raw + raw_offset(first, width), m, width);
        for (uint32_t j = 0; j < l.n_low; j++)
            store_words(planes[j] + 2 * first, block.low[j], m);
        cut_units(&block, m, shift, bits);
        if (shifts->n_columns > 0)
            shift_symbols(block.symbols, m, shifts, &column, false);
        for (size_t i = 0; i < m; i++)
            block.symbols[i] &= (uint16_t)((1u << bits) - 1);
        store_symbols(l.wide ? symbols + 2 * first : symbols + first, block.symbols, m, l.wide);
        if (rests != NULL)
            ptwm_rest_pack(rests + first / BLOCK * 64 * l.rest_bits, block.rests, m, l.rest_bits);
    }
}

static enum ptwm_status merge_label(const struct ptwm_parsed_chain *chain, const struct ptwm_shifts *shifts,
                                    uint64_t first_element, uint8_t *raw, size_t raw_nbytes,
                                    const uint8_t *const *planes, struct ptwm_error *error)
{
    const struct label_planes l = label_planes(chain);
    const unsigned width = l.step->width, shift = l.step->shift, bits = l.step->bits;
    const size_t n = (size_t)ptwm_chain_n_elements(chain, raw_nbytes);
    const uint8_t *symbols = planes[chain->n_planes - 1], *rests = l.rest_bits > 0 ? planes[l.n_low] : NULL;
    uint32_t column = first_column(shifts, first_element);
    struct label_block block;
    uint16_t seen = 0; /* OR of all symbols */

    if (rests == NULL)
        memset(block.rests, 0, sizeof block.rests);
    for (size_t first = 0; first < n; first += BLOCK) {
        const size_t m = n - first < BLOCK ? n - first : BLOCK;

        if (rests != NULL && !ptwm_rest_unpack(block.rests, rests + first / BLOCK * 64 * l.rest_bits, m, l.rest_bits))
            return ptwm_fail(error, PTWM_ERR_PADDING, "the rest plane's last bits are not zero");
        load_symbols(block.symbols, l.wide ? symbols + 2 * first : symbols + first, m, l.wide);
        for (size_t i = 0; i < m; i++)
            seen |= block.symbols[i];
        if (shifts->n_columns > 0)
            shift_symbols(block.symbols, m, shifts, &column, true);
        join_units(&block, m, shift, bits);
        for (uint32_t j = 0; j < l.n_low; j++)
            load_words(block.low[j], planes[j] + 2 * first, m);
        store_elements(raw + raw_offset(first, width), &block, m, width);
    }
    if (seen >> bits != 0)
        return ptwm_fail(error, PTWM_ERR_PLANE, "a symbol has more than %u bits", bits);
    return PTWM_OK;
}

/* ------------------------------------------------------------------------------------------------- whole chains */

void ptwm_chain_split(const struct ptwm_parsed_chain *chain, const struct ptwm_shifts *shifts, uint64_t first_element,
                      const uint8_t *raw, size_t raw_nbytes, uint8_t *const *planes, uint8_t *scratch)
{
    uint32_t s = 0;

    for (; s < chain->n_steps && chain->steps[s].kind == PTWM_STEP_DELTA; s++) {
        ptwm_delta_forward(scratch, raw, raw_nbytes, chain->steps[s].width);
        raw = scratch;
    }
    if (s == chain->n_steps)
        memcpy(planes[0], raw, raw_nbytes);
    else if (chain->steps[s].kind == PTWM_STEP_BYTES)
        ptwm_bytes_split(planes, raw, raw_nbytes / chain->steps[s].width, chain->steps[s].width);
    else
        split_label(chain, shifts, first_element, raw, raw_nbytes, planes);
}

enum ptwm_status ptwm_chain_merge(const struct ptwm_parsed_chain *chain, const struct ptwm_shifts *shifts,
                                  uint64_t first_element, uint8_t *raw, size_t raw_nbytes,
                                  const uint8_t *const *planes, struct ptwm_error *error)
{
    enum ptwm_status status = PTWM_OK;
    uint32_t s = chain->n_steps;

    if (chain->label != NULL)
        status = merge_label(chain, shifts, first_element, raw, raw_nbytes, planes, error);
    else if (s > 0 && chain->steps[s - 1].kind == PTWM_STEP_BYTES)
        ptwm_bytes_merge(raw, planes, raw_nbytes / chain->steps[s - 1].width, chain->steps[s - 1].width);
    else if (raw != planes[0])
        memcpy(raw, planes[0], raw_nbytes);
    while (status == PTWM_OK && s-- > 0)
        if (chain->steps[s].kind == PTWM_STEP_DELTA)
            ptwm_delta_backward(raw, raw_nbytes, chain->steps[s].width);
    return status;
}
