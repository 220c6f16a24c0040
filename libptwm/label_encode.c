/*
 * Coding a chunk's symbols: FORMAT.md, section 7.2. Plain C; the kernels must give the same bytes.
 *
 * rANS codes backwards: the encoder takes the elements from the last to the first and writes words from the end of
 * their place towards its beginning, so that the decoder takes both in ascending order.
 */
#include "label.h"

#include "status.h"

enum {
    N_SLOTS = PTWM_FREQUENCY_TOTAL / PTWM_FREQUENCY_GRANULE,
    IS_EXCEPTION = 128, /* in a symbol map: coded as the label in the low bits, and then patched */
    LABEL_MASK = 31,
    STATE_START = 65536
};

/* What coding one label takes. */
struct label_encoder {
    uint32_t frequency;
    uint32_t reciprocal; /* floor(x / frequency) = (x >> 3) * reciprocal >> shift, for all x < 2^32 */
    uint32_t shift;
    uint32_t first_slot; /* of the label in inverse */
};

struct class_encoder {
    struct label_encoder labels[PTWM_MAX_LABELS];
    /* The low half of the state from which the decoder gets (label, rank), for each rank that is a multiple of 8. */
    uint16_t inverse[N_SLOTS];
};

struct encoder {
    const struct ptwm_allocator *allocator;
    uint32_t n_classes;
    unsigned bits;
    uint32_t unit;
    unsigned n_lanes;
    uint8_t width;
    const uint8_t *classes;
    struct class_encoder *by_class;
    uint8_t *maps; /* n_classes times 2^bits: the label of a symbol, perhaps with IS_EXCEPTION */
};

size_t ptwm_label_bound(size_t n)
{
    /*
     * Words take 2 n bytes at most. Exceptions take 3 n: a distance of k bytes passes over at least k elements, its own
     * included, and a symbol takes 2. Classes take 3 bits for each 128 elements. Lanes, set, n_exceptions, states and CRC
     * take at most 1 + 3 + 10 + 4 * 128 + 4.
     */
    return 5 * n + n / 256 + 640;
}

/* ------------------------------------------------------------------------------------------------- tables */

/*
 * x >> 3 is a 29-bit integer N, frequency = 8 f with f <= 2^s, s = ceil(log2(f)). With m = ceil(2^(29 + s) / f),
 * floor(N m / 2^(29 + s)) = floor(N / f), as m f - 2^(29 + s) < f <= 2^s (Granlund and Montgomery); N m < 2^60.
 */
static void set_reciprocal(struct label_encoder *label)
{
    uint32_t f = label->frequency / PTWM_FREQUENCY_GRANULE;
    label->shift = 29 + ptwm_ceil_log2(f);
    label->reciprocal = (uint32_t)ptwm_ceil_div((uint64_t)1 << label->shift, f);
}

static void build_class(struct class_encoder *class, const struct ptwm_label_table *table)
{
    struct ptwm_alias_table alias;
    uint32_t slot = 0;
    memset(class->labels, 0, sizeof(class->labels));
    for (uint32_t i = 0; i < table->n_labels; i++) {
        struct label_encoder *label = &class->labels[i];
        label->frequency = table->frequency[i];
        label->first_slot = slot;
        set_reciprocal(label);
        slot += table->frequency[i] / PTWM_FREQUENCY_GRANULE;
    }
    ptwm_alias_build(&alias, table);
    for (uint32_t b = 0; b < PTWM_MAX_LABELS; b++)
        for (uint32_t off = 0; off < PTWM_FREQUENCY_TOTAL / PTWM_MAX_LABELS; off += PTWM_FREQUENCY_GRANULE) {
            uint32_t low = off * PTWM_MAX_LABELS + b;
            bool is_alias = low >= alias.div[b];
            uint32_t label = is_alias ? alias.ali[b] : b;
            uint32_t rank = is_alias ? (off + alias.adj[b]) & 0xffff : off;
            class->inverse[class->labels[label].first_slot + rank / PTWM_FREQUENCY_GRANULE] = (uint16_t)low;
        }
}

static void build_map(uint8_t *map, const struct ptwm_label_table *table, unsigned bits)
{
    uint32_t best = 0;
    for (uint32_t i = 1; i < table->n_labels; i++)
        if (table->frequency[i] > table->frequency[best])
            best = i;
    memset(map, (int)(IS_EXCEPTION | best), (size_t)1 << bits);
    for (uint32_t i = 0; i < table->n_labels; i++)
        map[table->symbol[i]] = (uint8_t)i;
}

static void release_encoder(struct encoder *encoder)
{
    ptwm_release(encoder->allocator, encoder->by_class, encoder->n_classes, sizeof(*encoder->by_class));
    ptwm_release(encoder->allocator, encoder->maps, encoder->n_classes, (size_t)1 << encoder->bits);
}

static bool build_encoder(struct encoder *encoder, const struct ptwm_label_set *set)
{
    encoder->by_class = ptwm_alloc(encoder->allocator, set->n_classes, sizeof(*encoder->by_class));
    encoder->maps = ptwm_alloc(encoder->allocator, set->n_classes, (size_t)1 << encoder->bits);
    if (encoder->by_class == NULL || encoder->maps == NULL) {
        release_encoder(encoder);
        return false;
    }
    for (uint32_t c = 0; c < set->n_classes; c++) {
        build_class(&encoder->by_class[c], &set->classes[c]);
        build_map(encoder->maps + ((size_t)c << encoder->bits), &set->classes[c], encoder->bits);
    }
    return true;
}

/* The symbol map of the unit that element i belongs to. */
static const uint8_t *map_at(const struct encoder *encoder, size_t i)
{
    return encoder->maps + ((size_t)encoder->classes[i / encoder->unit] << encoder->bits);
}

/* ------------------------------------------------------------------------------------------------- the head */

static size_t count_exceptions(const struct encoder *encoder, const uint16_t *symbols, size_t n)
{
    size_t count = 0;
    for (size_t begin = 0; begin < n; begin += encoder->unit) {
        const uint8_t *map = map_at(encoder, begin);
        size_t end = n - begin < encoder->unit ? n : begin + encoder->unit;
        for (size_t i = begin; i < end; i++)
            count += map[symbols[i]] / IS_EXCEPTION;
    }
    return count;
}

static uint8_t *store_exceptions(const struct encoder *encoder, uint8_t *dst, const uint16_t *symbols, size_t n)
{
    size_t expected = 0;
    for (size_t begin = 0; begin < n; begin += encoder->unit) {
        const uint8_t *map = map_at(encoder, begin);
        size_t end = n - begin < encoder->unit ? n : begin + encoder->unit;
        for (size_t i = begin; i < end; i++) {
            if (map[symbols[i]] < IS_EXCEPTION)
                continue;
            dst += ptwm_store_varint(dst, i - expected);
            expected = i + 1;
            *dst++ = (uint8_t)symbols[i];
            if (encoder->bits > 8)
                *dst++ = (uint8_t)(symbols[i] >> 8);
        }
    }
    return dst;
}

/* Everything before the states; returns its end. */
static uint8_t *store_head(const struct encoder *encoder, uint8_t *dst, uint32_t set, const uint16_t *symbols, size_t n)
{
    struct ptwm_bit_writer writer = { 0 };
    unsigned class_bits = ptwm_ceil_log2(encoder->n_classes);
    size_t n_exceptions = count_exceptions(encoder, symbols, n);
    *dst++ = encoder->n_lanes == 4 ? 0 : encoder->n_lanes == 32 ? 1 : 2;
    dst += ptwm_store_varint(dst, set);
    dst += ptwm_store_varint(dst, n_exceptions);
    writer.next = dst;
    for (size_t u = 0; class_bits > 0 && u < ptwm_ceil_div(n, encoder->unit); u++)
        ptwm_write_bits(&writer, encoder->classes[u], class_bits);
    ptwm_flush_bits(&writer);
    return n_exceptions > 0 ? store_exceptions(encoder, writer.next, symbols, n) : writer.next;
}

/* ------------------------------------------------------------------------------------------------- words */

/*
 * Codes the elements of one group, m <= lanes of them, and returns the new first word. There is room for a word of each
 * element not yet coded before words, so that the store that does not count stays inside.
 */
static uint8_t *encode_group(const struct encoder *encoder, const uint16_t *symbols, size_t m, const uint8_t *offset,
                             const uint8_t *map, const struct class_encoder *class, uint32_t *states, uint8_t *words)
{
    for (unsigned lane = encoder->n_lanes; lane-- > 0;) {
        const struct label_encoder *label;
        uint32_t x = states[lane], emits, quotient, rank;
        if (offset[lane] >= m)
            continue;
        label = &class->labels[map[symbols[offset[lane]]] & LABEL_MASK];
        emits = x >> 16 >= label->frequency;
        ptwm_store16(words - 2, (uint16_t)x);
        words -= 2 * emits;
        x >>= 16 * emits;
        quotient = (uint32_t)((uint64_t)(x >> 3) * label->reciprocal >> label->shift);
        rank = x - quotient * label->frequency;
        states[lane] = (quotient << 16) + class->inverse[label->first_slot + rank / PTWM_FREQUENCY_GRANULE] +
                       rank % PTWM_FREQUENCY_GRANULE * PTWM_MAX_LABELS;
    }
    return words;
}

static uint8_t *encode_words(const struct encoder *encoder, const uint16_t *symbols, size_t n, uint32_t *states,
                             uint8_t *words)
{
    uint8_t offset[PTWM_MAX_LANES];
    size_t n_lanes = encoder->n_lanes;
    for (uint32_t i = 0; i < n_lanes; i++) {
        offset[ptwm_label_lane(i, encoder->n_lanes, encoder->width)] = (uint8_t)i;
        states[i] = STATE_START;
    }
    for (size_t left = n; left > 0;) {
        size_t m = left % n_lanes != 0 ? left % n_lanes : n_lanes;
        const struct class_encoder *class;
        left -= m;
        class = &encoder->by_class[encoder->classes[left / encoder->unit]];
        words = encode_group(encoder, symbols + left, m, offset, map_at(encoder, left), class, states, words);
    }
    return words;
}

enum ptwm_status ptwm_label_encode(const struct ptwm_label_model *model, uint32_t set, const uint8_t *classes,
                                   const uint16_t *symbols, size_t n, uint8_t *dst, size_t *dst_nbytes,
                                   struct ptwm_error *error)
{
    uint32_t states[PTWM_MAX_LANES];
    struct encoder encoder = { model->allocator, model->sets[set].n_classes, model->bits, model->unit, 4,
                               model->width,     classes,                    NULL,        NULL };
    uint8_t *next, *words, *words_end;
    if (n >= 1024)
        encoder.n_lanes = n >= 16384 ? 128 : 32;
    if (!build_encoder(&encoder, &model->sets[set]))
        return ptwm_fail(error, PTWM_ERR_MEMORY, "label encoder");

    next = store_head(&encoder, dst, set, symbols, n);
    /* The words are written as far behind the head as they can reach, then moved to it. */
    words_end = next + 4 * encoder.n_lanes + 4 + 2 * n;
    words = encode_words(&encoder, symbols, n, states, words_end);
    for (unsigned lane = 0; lane < encoder.n_lanes; lane++, next += 4)
        ptwm_store32(next, states[lane]);
    ptwm_store32(next, ptwm_crc32c(0, dst, (size_t)(next - dst)));
    next += 4;
    memmove(next, words, (size_t)(words_end - words));
    *dst_nbytes = (size_t)(next - dst) + (size_t)(words_end - words);
    release_encoder(&encoder);
    return PTWM_OK;
}
