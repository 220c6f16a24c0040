/*
 * Huffman coding of bytes (FORMAT.md, section 6.1): canonical codes of at most 11 bits, four quarters of the plane in
 * four bit streams, so that a decoder can follow four chains of dependent look-ups at once.
 */
#include <string.h>

#include "bits.h"
#include "codec.h"
#include "cpu_features.h"
#include "log2_fixed.h"
#include "status.h"
#include "symbol_set.h"

#define MAX_BITS 11u
#define TABLE_SIZE (1u << MAX_BITS)
#define N_STREAMS 4u

/* Codes per refill of a 64-bit pool, which holds at least 56 bits after one. */
#define CODES_PER_REFILL 5u

/* The elements of stream number index, of n in all, from *first on. */
static size_t stream_elements(size_t n, size_t index, size_t *first)
{
    size_t quarter = n / 4 + (n % 4 != 0);

    *first = index * quarter < n ? index * quarter : n;
    return n - *first < quarter ? n - *first : quarter;
}

/* --------------------------------------------------------------------------------------------- code lengths */

/*
 * Package-merge. A level's list holds the symbols and the packages (pairs of neighbours in the list of the level
 * before), by weight; of the last level's list the 2 n - 2 lightest items are taken, and of each list before it the
 * items inside the packages taken. A symbol's code is as long as the number of lists in which it is taken. That is
 * optimal among codes of at most MAX_BITS bits. At equal weight, symbols come before packages and smaller symbols
 * before greater ones.
 */
struct package_merge {
    uint64_t weights[2][512];
    uint8_t is_symbol[MAX_BITS][512];
};

/*
 * Makes the list of a level from the n symbols' keys (count << 8 | symbol, ascending) and the list before it; its
 * length.
 */
static unsigned merge_level(uint64_t *list, uint8_t *is_symbol, const uint64_t *keys, unsigned n,
                            const uint64_t *before, unsigned n_before)
{
    unsigned n_packages = n_before / 2, symbol = 0, package = 0, length = 0;

    while (symbol < n || package < n_packages) {
        uint64_t weight = package < n_packages ? before[2 * package] + before[2 * package + 1] : UINT64_MAX;

        is_symbol[length] = symbol < n && keys[symbol] >> 8 <= weight;
        if (is_symbol[length]) {
            weight = keys[symbol++] >> 8;
        } else {
            package++;
        }
        list[length++] = weight;
    }
    return length;
}

/* The lengths of an optimal code: lengths[i] belongs to keys[i]. n >= 2; keys as in merge_level. */
static void package_merge(uint8_t *lengths, const uint64_t *keys, unsigned n)
{
    struct package_merge m;
    unsigned length = 0, taken = 2 * n - 2;

    for (unsigned level = 0; level < MAX_BITS; level++)
        length = merge_level(m.weights[level & 1], m.is_symbol[level], keys, n, m.weights[~level & 1], length);
    memset(lengths, 0, n);
    for (unsigned level = MAX_BITS; level-- > 0;) {
        unsigned symbols = 0;

        for (unsigned i = 0; i < taken; i++) {
            if (m.is_symbol[level][i])
                lengths[symbols++]++;
        }
        taken = 2 * (taken - symbols);
    }
}

/* The code lengths of the symbols of a set (at least 2), in its order. */
static void find_lengths(uint8_t *lengths, const struct ptwm_symbol_set *set, const uint32_t histogram[256])
{
    uint64_t keys[256];
    uint8_t sorted[256], by_symbol[256];

    for (unsigned i = 0; i < set->n; i++) {
        uint64_t key = (uint64_t)histogram[set->symbols[i]] << 8 | set->symbols[i];
        unsigned at = i;

        for (; at > 0 && keys[at - 1] > key; at--)
            keys[at] = keys[at - 1];
        keys[at] = key;
    }
    package_merge(sorted, keys, set->n);
    for (unsigned i = 0; i < set->n; i++)
        by_symbol[keys[i] & 255] = sorted[i];
    for (unsigned i = 0; i < set->n; i++)
        lengths[i] = by_symbol[set->symbols[i]];
}

/*
 * The canonical codes: codes[i] is the code of the set's symbol i, reversed, so that its first bit is bit 0. The
 * lengths form a complete code.
 */
static void make_codes(uint16_t *codes, const uint8_t *lengths, unsigned n)
{
    unsigned n_of_length[MAX_BITS + 1] = { 0 }, next[MAX_BITS + 1], code = 0;

    for (unsigned i = 0; i < n; i++)
        n_of_length[lengths[i]]++;
    for (unsigned length = 1; length <= MAX_BITS; length++) {
        next[length] = code;
        code = (code + n_of_length[length]) << 1;
    }
    for (unsigned i = 0; i < n; i++) {
        unsigned forward = next[lengths[i]]++, reversed = 0;

        for (unsigned bit = 0; bit < lengths[i]; bit++)
            reversed |= (forward >> bit & 1) << (lengths[i] - 1 - bit);
        codes[i] = (uint16_t)reversed;
    }
}

/* ------------------------------------------------------------------------------------------------- encoding */

/*
 * An optimal code takes at most 8 bits an element (so much does the code of 256 8-bit codes). Beside that there are the
 * set, 128 bytes of lengths, three varints of at most 10 bytes and four ends of streams; the rest is for store_stream,
 * which stores 8 bytes at a time.
 */
static size_t huffman_bound(size_t src_nbytes)
{
    size_t extra = PTWM_SYMBOL_SET_MAX_NBYTES + 128 + 3 * 10 + 4 + 16;

    return src_nbytes < SIZE_MAX - extra ? src_nbytes + extra : SIZE_MAX;
}

/* Adds an element's code (length << 16 | code) to a pool of n_bits bits. */
#define ADD_CODE(pool, n_bits, code)                        \
    do {                                                    \
        (pool) |= (uint64_t)((code) & 0xFFFF) << (n_bits);  \
        (n_bits) += (code) >> 16;                           \
    } while (0)

/* Stores the codes of n bytes; returns the end. Writes up to 8 zero bytes behind it. */
static uint8_t *store_stream(uint8_t *dst, const uint8_t *src, size_t n, const uint32_t codes[256])
{
    uint64_t pool = 0;
    unsigned n_bits = 0;

    for (; n >= CODES_PER_REFILL; n -= CODES_PER_REFILL, src += CODES_PER_REFILL) {
        for (unsigned i = 0; i < CODES_PER_REFILL; i++) /* to at most 7 + 5 * 11 bits */
            ADD_CODE(pool, n_bits, codes[src[i]]);
        ptwm_store64(dst, pool);
        dst += n_bits / 8;
        pool >>= n_bits & ~7u;
        n_bits %= 8;
    }
    for (; n > 0; n--, src++)
        ADD_CODE(pool, n_bits, codes[*src]);
    ptwm_store64(dst, pool);
    return dst + (n_bits + 7) / 8;
}

static size_t stream_nbytes(const uint32_t histogram[256], const uint32_t codes[256])
{
    uint64_t n_bits = 0;

    for (unsigned symbol = 0; symbol < 256; symbol++)
        n_bits += (uint64_t)histogram[symbol] * (codes[symbol] >> 16);
    return (size_t)ptwm_ceil_div(n_bits, 8);
}

/* Stores the code lengths and fills codes (length << 16 | code); returns the end. */
static uint8_t *store_code(uint8_t *dst, uint32_t codes[256], const struct ptwm_symbol_set *set,
                           const uint32_t histogram[256])
{
    struct ptwm_bit_writer writer = { dst, 0, 0 };
    uint8_t lengths[256];
    uint16_t reversed[256];

    find_lengths(lengths, set, histogram);
    make_codes(reversed, lengths, set->n);
    memset(codes, 0, 256 * sizeof codes[0]);
    for (unsigned i = 0; i < set->n; i++) {
        codes[set->symbols[i]] = (uint32_t)lengths[i] << 16 | reversed[i];
        ptwm_write_bits(&writer, lengths[i], 4);
    }
    ptwm_flush_bits(&writer);
    return writer.next;
}

static enum ptwm_status huffman_encode(const struct ptwm_codec_context *context, uint8_t *dst, size_t *dst_nbytes,
                                       const uint8_t *src, size_t src_nbytes, struct ptwm_error *error)
{
    uint32_t quarters[4][256], histogram[256], codes[256];
    struct ptwm_symbol_set set;
    uint8_t *p = dst;

    (void)context;
    if ((uint64_t)src_nbytes > UINT32_MAX)
        return ptwm_fail(error, PTWM_ERR_ARGUMENT, "huffman: a plane of more than 2^32 - 1 bytes");
    ptwm_count_quarters(src, src_nbytes, quarters);
    for (unsigned i = 0; i < 256; i++)
        histogram[i] = quarters[0][i] + quarters[1][i] + quarters[2][i] + quarters[3][i];
    ptwm_symbol_set_from_histogram(&set, histogram);
    p += ptwm_symbol_set_store(&set, p);
    if (set.n > 1) {
        p = store_code(p, codes, &set, histogram);
        for (unsigned i = 0; i + 1 < N_STREAMS; i++)
            p += ptwm_store_varint(p, stream_nbytes(quarters[i], codes));
        for (unsigned i = 0; i < N_STREAMS; i++) {
            size_t first, n = stream_elements(src_nbytes, i, &first);

            p = store_stream(p, src + first, n, codes);
        }
    }
    *dst_nbytes = (size_t)(p - dst);
    return PTWM_OK;
}

uint64_t ptwm_huffman_estimate(const uint32_t histogram[256], uint64_t n)
{
    struct ptwm_symbol_set set;
    uint8_t lengths[256], stored_set[PTWM_SYMBOL_SET_MAX_NBYTES];
    uint64_t n_bits = 0, nbytes, longest, floor;

    ptwm_symbol_set_from_histogram(&set, histogram);
    nbytes = ptwm_symbol_set_store(&set, stored_set);
    if (set.n <= 1)
        return nbytes;
    nbytes += (set.n + 1) / 2;
    /* Finding the code of noise takes long, and none is shorter than the entropy, whose logarithms are a little off. */
    floor = nbytes + ptwm_entropy_fixed(histogram, 256) / (8 * PTWM_LOG2_ONE);
    if (floor >= n + n / PTWM_LOG2_ONE + 1)
        return floor;
    find_lengths(lengths, &set, histogram);
    for (unsigned i = 0; i < set.n; i++)
        n_bits += (uint64_t)histogram[set.symbols[i]] * lengths[i];
    /* What is not known is how the bits are spread over the streams: the ends of bytes and the varints. */
    longest = ptwm_ceil_div(n_bits, 8);
    if (longest > ptwm_ceil_div(ptwm_ceil_div(n, 4) * MAX_BITS, 8))
        longest = ptwm_ceil_div(ptwm_ceil_div(n, 4) * MAX_BITS, 8);
    return nbytes + 3 * ptwm_varint_nbytes(longest) + (n_bits + 7 * N_STREAMS) / 8;
}

/* ------------------------------------------------------------------------------------------------- decoding */

/* Reads the code lengths and fills the table, an entry for each 11 bits: symbol << 8 | length. False if malformed. */
static bool load_code(uint16_t table[TABLE_SIZE], const struct ptwm_symbol_set *set, struct ptwm_cursor *cursor)
{
    size_t nbytes = (set->n + 1) / 2;
    const uint8_t *stored = ptwm_cursor_take(cursor, nbytes);
    uint8_t lengths[256];
    uint16_t codes[256];
    uint32_t kraft = 0;

    if (stored == NULL)
        return false;
    for (unsigned i = 0; i < set->n; i++) {
        lengths[i] = stored[i / 2] >> 4 * (i % 2) & 15;
        if (lengths[i] < 1 || lengths[i] > MAX_BITS)
            return false;
        kraft += TABLE_SIZE >> lengths[i];
    }
    if (kraft != TABLE_SIZE || (set->n % 2 != 0 && stored[nbytes - 1] >> 4 != 0))
        return false;
    make_codes(codes, lengths, set->n);
    for (unsigned i = 0; i < set->n; i++) {
        uint16_t entry = (uint16_t)(set->symbols[i] << 8 | lengths[i]);

        for (unsigned at = codes[i]; at < TABLE_SIZE; at += 1u << lengths[i])
            table[at] = entry;
    }
    return true;
}

struct stream {
    const uint8_t *next;
    const uint8_t *end;
    uint64_t pool;   /* the next n_bits bits; above them, possibly some of those from next on */
    unsigned n_bits;
    uint8_t *out;
    size_t left;     /* elements */
};

/* Fills the pool to at least 56 bits; 8 bytes from next on are in the stream. */
#define REFILL(s)                                           \
    do {                                                    \
        (s).pool |= ptwm_load64((s).next) << (s).n_bits;    \
        (s).next += (63 - (s).n_bits) >> 3;                 \
        (s).n_bits |= 56;                                   \
    } while (0)

#define DECODE(s, at)                                       \
    do {                                                    \
        unsigned entry = table[(s).pool & (TABLE_SIZE - 1)]; \
        (s).pool >>= entry & 63;                            \
        (s).n_bits -= entry & 63;                           \
        (s).out[at] = (uint8_t)(entry >> 8);                \
    } while (0)

/* Refills that are surely inside the stream: each looks at 8 bytes and passes at most 7. */
static size_t safe_refills(const struct stream *s)
{
    return (size_t)(s->end - s->next) / 8;
}

/* Decodes all four streams side by side as long as that needs no look at their ends. */
static void decode_together_c99(struct stream streams[N_STREAMS], const uint16_t table[TABLE_SIZE])
{
    struct stream a = streams[0], b = streams[1], c = streams[2], d = streams[3];

    for (;;) {
        size_t rounds = d.left / CODES_PER_REFILL; /* the last stream has the fewest elements */
        const struct stream *all[N_STREAMS] = { &a, &b, &c, &d };

        for (unsigned i = 0; i < N_STREAMS; i++)
            rounds = safe_refills(all[i]) < rounds ? safe_refills(all[i]) : rounds;
        if (rounds == 0)
            break;
        a.left -= rounds * CODES_PER_REFILL;
        b.left -= rounds * CODES_PER_REFILL;
        c.left -= rounds * CODES_PER_REFILL;
        d.left -= rounds * CODES_PER_REFILL;
        for (; rounds > 0; rounds--) {
            REFILL(a);
            REFILL(b);
            REFILL(c);
            REFILL(d);
            for (unsigned i = 0; i < CODES_PER_REFILL; i++) {
                DECODE(a, i);
                DECODE(b, i);
                DECODE(c, i);
                DECODE(d, i);
            }
            a.out += CODES_PER_REFILL;
            b.out += CODES_PER_REFILL;
            c.out += CODES_PER_REFILL;
            d.out += CODES_PER_REFILL;
        }
    }
    streams[0] = a;
    streams[1] = b;
    streams[2] = c;
    streams[3] = d;
}

#if defined(PTWM_X86) || defined(PTWM_ARM)
#include "huffman_streams.h"
#endif

static void decode_together(struct stream streams[N_STREAMS], const uint16_t table[TABLE_SIZE])
{
#if defined(PTWM_X86) || defined(PTWM_ARM)
    if (ptwm_cpu_level() != PTWM_CPU_C99) {
        decode_together_64(streams, table);
        return;
    }
#endif
    decode_together_c99(streams, table);
}

/* Decodes what is left of a stream. False if it does not end where it should, or not with zeros. */
static bool decode_end(struct stream *s, const uint16_t table[TABLE_SIZE])
{
    for (; s->left > 0; s->left--) {
        while (s->n_bits < MAX_BITS && s->next < s->end) {
            s->pool |= (uint64_t)*s->next++ << s->n_bits;
            s->n_bits += 8;
        }
        /* Behind the stream's last bit the pool is zero; a code that reaches there takes more bits than there are. */
        if ((table[s->pool & (TABLE_SIZE - 1)] & 63) > s->n_bits)
            return false;
        DECODE(*s, 0);
        s->out++;
    }
    return s->next == s->end && s->n_bits < 8 && s->pool == 0;
}

static enum ptwm_status huffman_decode(const struct ptwm_codec_context *context, uint8_t *dst, size_t dst_nbytes,
                                       const uint8_t *src, size_t src_nbytes, struct ptwm_error *error)
{
    struct ptwm_cursor cursor = ptwm_cursor_make(src, src_nbytes);
    struct ptwm_symbol_set set;
    struct stream streams[N_STREAMS];
    uint16_t table[TABLE_SIZE];
    uint64_t nbytes[N_STREAMS];

    (void)context;
    ptwm_symbol_set_load(&set, &cursor);
    if (cursor.failed)
        return ptwm_fail(error, PTWM_ERR_PLANE, "huffman: malformed set of symbols");
    if (set.n == 1) {
        if (ptwm_cursor_left(&cursor) != 0)
            return ptwm_fail(error, PTWM_ERR_PLANE, "huffman: bytes behind a single symbol");
        memset(dst, set.symbols[0], dst_nbytes);
        return PTWM_OK;
    }
    if (!load_code(table, &set, &cursor))
        return ptwm_fail(error, PTWM_ERR_PLANE, "huffman: malformed code lengths");
    for (unsigned i = 0; i + 1 < N_STREAMS; i++)
        nbytes[i] = ptwm_cursor_varint(&cursor);
    for (unsigned i = 0; i < N_STREAMS; i++) {
        size_t first, n = stream_elements(dst_nbytes, i, &first), left = ptwm_cursor_left(&cursor);
        uint64_t length = i + 1 < N_STREAMS ? nbytes[i] : left;
        const uint8_t *start = length <= left ? ptwm_cursor_take(&cursor, (size_t)length) : NULL;

        if (start == NULL)
            return ptwm_fail(error, PTWM_ERR_PLANE, "huffman: stream %u leaves the plane", i);
        streams[i] = (struct stream){ start, start + length, 0, 0, dst + first, n };
    }
    decode_together(streams, table);
    for (unsigned i = 0; i < N_STREAMS; i++) {
        if (!decode_end(&streams[i], table))
            return ptwm_fail(error, PTWM_ERR_PLANE, "huffman: malformed stream %u", i);
    }
    return PTWM_OK;
}

const struct ptwm_byte_codec ptwm_codec_huffman = {
    PTWM_CODEC_HUFFMAN, huffman_bound, huffman_encode, huffman_decode
};
