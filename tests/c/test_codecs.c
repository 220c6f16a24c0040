/*
 * The codecs of bytes, and the fixed-point logarithms that their choices rest on. Huffman and byte rANS are also
 * decoded by slow decoders written here from FORMAT.md alone.
 */
#include "bits.h"
#include "check.h"
#include "codec.h"
#include "log2_fixed.h"

/* No codec of bytes needs scratch memory today; one that begins to must also work with an allocator that fails. */
static void *no_memory(void *context, size_t nbytes)
{
    (void)context;
    (void)nbytes;
    return NULL;
}

static void no_release(void *context, void *pointer, size_t nbytes)
{
    (void)context;
    (void)pointer;
    (void)nbytes;
}

static const struct ptwm_allocator no_allocator = { no_memory, no_release, NULL };

/* ------------------------------------------------------------------------------------- a provider without zstd */

/* What the provider is told to do, and what it has been asked. */
struct fake_zstd {
    int fails;
    size_t behind; /* zero bytes written behind the frame */
    int n_compress;
    int n_decompress;
    int level;
};

/* Stores a frame with an 8-byte content size, no checksum and blocks of raw bytes. */
static size_t store_raw_frame(uint8_t *dst, const uint8_t *src, size_t n)
{
    uint8_t *p = dst;

    ptwm_store32(p, 0xFD2FB528u);
    p[4] = 0xE0;
    ptwm_store64(p + 5, n);
    p += 13;
    do {
        size_t now = n < 131072 ? n : 131072;
        uint32_t header = (uint32_t)now << 3 | (now == n);

        ptwm_store16(p, (uint16_t)header);
        p[2] = (uint8_t)(header >> 16);
        memcpy(p + 3, src, now);
        p += 3 + now;
        src += now;
        n -= now;
    } while (n > 0);
    return (size_t)(p - dst);
}

static int fake_compress(void *context, void *dst, size_t dst_capacity, size_t *dst_nbytes, const void *src,
                         size_t src_nbytes, int level)
{
    struct fake_zstd *fake = context;

    fake->n_compress++;
    fake->level = level;
    CHECK(dst_capacity >= src_nbytes + src_nbytes / 128 + 512);
    *dst_nbytes = store_raw_frame(dst, src, src_nbytes);
    memset((uint8_t *)dst + *dst_nbytes, 0, fake->behind);
    *dst_nbytes += fake->behind;
    return fake->fails;
}

/* Reads what fake_compress writes, nothing else. */
static int fake_decompress(void *context, void *dst, size_t dst_nbytes, const void *src, size_t src_nbytes)
{
    struct fake_zstd *fake = context;
    struct ptwm_cursor cursor = ptwm_cursor_make(src, src_nbytes);
    const uint8_t *head = ptwm_cursor_take(&cursor, 13);
    size_t done = 0;

    fake->n_decompress++;
    if (head == NULL || head[4] != 0xE0)
        return 1;
    while (ptwm_cursor_left(&cursor) > 0) {
        uint32_t header = ptwm_cursor_u16(&cursor);
        const uint8_t *data;

        header |= (uint32_t)ptwm_cursor_u8(&cursor) << 16;
        data = ptwm_cursor_take(&cursor, header >> 3);
        if (data == NULL || (header & 6) != 0 || header >> 3 > dst_nbytes - done)
            return 1;
        memcpy((uint8_t *)dst + done, data, header >> 3);
        done += header >> 3;
    }
    return done != dst_nbytes || fake->fails;
}

/* ------------------------------------------------------------------------------------------------------ data */

enum { CONSTANT, TWO_VALUES, RARE, SKEWED, STEEP, UNIFORM, ALL_VALUES, TEXT, N_DISTRIBUTIONS };

static uint8_t make_byte(int distribution, size_t i, uint64_t random)
{
    static const char text[] = "the quick brown fox jumps over the lazy dog, and then the dog sleeps again. ";
    unsigned zeros = 0;

    switch (distribution) {
    case CONSTANT:
        return 200;
    case TWO_VALUES:
        return random % 5 == 0 ? 3 : 250;
    case RARE:
        return random % 5000 == 0 ? (uint8_t)(random >> 32) : 0;
    case SKEWED: /* like the exponents of weights */
    case STEEP:
        while (zeros < 40 && (random >> zeros & 1) == 0)
            zeros++;
        return (uint8_t)(distribution == STEEP ? zeros : 124 - zeros + (random >> 41 & 1) * (random >> 42 & 3));
    case UNIFORM:
        return (uint8_t)random;
    case ALL_VALUES:
        return i % 2 == 0 ? (uint8_t)(i / 2) : (uint8_t)(random & random >> 8 & 15);
    default:
        return (uint8_t)text[(i + (random % 40 == 0)) % (sizeof text - 1)];
    }
}

/* In memory of exactly n bytes. */
static uint8_t *make_data(int distribution, size_t n, uint64_t seed)
{
    uint8_t *p = malloc(n > 0 ? n : 1);

    for (size_t i = 0; i < n; i++)
        p[i] = make_byte(distribution, i, check_random(&seed));
    return p;
}

static uint8_t *copy_of(const uint8_t *src, size_t n)
{
    uint8_t *p = malloc(n > 0 ? n : 1);

    memcpy(p, src, n);
    return p;
}

/* ------------------------------------------------------------------------------------------------ round trips */

static struct fake_zstd fake; /* used where zstd is not built in, and where what it is asked matters */
static const struct ptwm_zstd fake_provider = { fake_compress, fake_decompress, &fake };

static struct ptwm_codec_context make_context(void)
{
    struct ptwm_codec_context context = { &no_allocator, NULL, 0 };

    context.zstd = ptwm_has_builtin_zstd() ? ptwm_zstd_select(NULL) : &fake_provider;
    return context;
}

/* The encoded bytes, in memory of exactly their size; NULL if encoding fails. fill is in dst before. */
static uint8_t *encode(const struct ptwm_byte_codec *codec, const uint8_t *src, size_t n, size_t *nbytes, int fill)
{
    struct ptwm_codec_context context = make_context();
    size_t bound = codec->bound(n);
    uint8_t *dst = malloc(bound), *exact = NULL;

    memset(dst, fill, bound);
    if (codec->encode(&context, dst, nbytes, src, n, NULL) == PTWM_OK) {
        CHECK(*nbytes <= bound);
        exact = copy_of(dst, *nbytes);
    }
    free(dst);
    return exact;
}

/*
 * Decodes a copy of exactly src_nbytes bytes to exactly n bytes; 0 and the bytes in *out (if not NULL), or the status.
 */
static enum ptwm_status decode(const struct ptwm_byte_codec *codec, const uint8_t *src, size_t src_nbytes, size_t n,
                               uint8_t **out)
{
    struct ptwm_codec_context context = make_context();
    struct ptwm_error error = PTWM_ERROR_INIT;
    uint8_t *exact = copy_of(src, src_nbytes), *dst = malloc(n > 0 ? n : 1);
    enum ptwm_status status = codec->decode(&context, dst, n, exact, src_nbytes, &error);

    CHECK_EQ(error.status, status); /* PTWM_OK leaves it alone */
    CHECK((error.detail[0] != 0) == (status != PTWM_OK));
    free(exact);
    if (out != NULL && status == PTWM_OK)
        *out = dst;
    else
        free(dst);
    return status;
}

static int is_malformed(enum ptwm_status status)
{
    return status == PTWM_ERR_PLANE || status == PTWM_ERR_ZSTD;
}

/* FORMAT.md, section 4 */
static int is_short_enough(size_t stored_nbytes, size_t n)
{
    return stored_nbytes <= 4 * (uint64_t)n + 65536;
}

static void check_estimate(const struct ptwm_byte_codec *codec, const uint8_t *src, size_t n, size_t nbytes)
{
    uint32_t histogram[256] = { 0 };
    uint64_t estimate, above;

    for (size_t i = 0; i < n; i++)
        histogram[src[i]]++;
    if (codec == &ptwm_codec_huffman) {
        estimate = ptwm_huffman_estimate(histogram, n);
        above = 16;
    } else if (codec == &ptwm_codec_rans) {
        estimate = ptwm_rans_estimate(histogram, n);
        above = 16 + 2 * (n < 1024 ? 4 : 32); /* what the states hold in the end is not estimated */
    } else {
        return;
    }
    CHECK(estimate >= nbytes);
    CHECK(estimate <= nbytes + nbytes / 1000 + above);
}

static void round_trip(const struct ptwm_byte_codec *codec, int distribution, size_t n, uint64_t seed)
{
    size_t nbytes = 0, nbytes2 = 0;
    uint8_t *src = make_data(distribution, n, seed), *out = NULL;
    uint8_t *stored = encode(codec, src, n, &nbytes, 0), *stored2 = encode(codec, src, n, &nbytes2, 255);

    CHECK(stored != NULL && stored2 != NULL);
    if (stored != NULL && stored2 != NULL) {
        CHECK(nbytes == nbytes2 && memcmp(stored, stored2, nbytes) == 0);
        CHECK(is_short_enough(nbytes, n));
        check_estimate(codec, src, n, nbytes);
        CHECK_EQ(decode(codec, stored, nbytes, n, &out), PTWM_OK);
        CHECK(out != NULL && memcmp(out, src, n) == 0);
    }
    free(src);
    free(out);
    free(stored);
    free(stored2);
}

static const struct ptwm_byte_codec *const codecs[] = {
    &ptwm_codec_identity, &ptwm_codec_huffman, &ptwm_codec_rans, &ptwm_codec_zstd
};
#define N_CODECS (sizeof codecs / sizeof codecs[0])

static void test_all_small_sizes(void)
{
    for (size_t c = 0; c < N_CODECS; c++) {
        for (int d = 0; d < N_DISTRIBUTIONS; d++) {
            for (size_t n = 1; n <= 600; n++)
                round_trip(codecs[c], d, n, n);
        }
    }
}

/* Around 1024 byte rANS changes its number of lanes, around 131072 zstd begins a second block. */
static void test_special_sizes(void)
{
    static const size_t sizes[] = { 1020, 1023, 1024, 1025, 1056, 1057, 4095, 4096, 131071, 131072, 131073, 1048576 };

    for (size_t c = 0; c < N_CODECS; c++) {
        for (int d = 0; d < N_DISTRIBUTIONS; d++) {
            for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
                round_trip(codecs[c], d, sizes[i], i);
        }
    }
}

static void test_random_sizes(void)
{
    uint64_t seed = 5;

    for (size_t c = 0; c < N_CODECS; c++) {
        for (int d = 0; d < N_DISTRIBUTIONS; d++) {
            for (unsigned bits = 10; bits <= 20; bits++)
                round_trip(codecs[c], d, 1 + (size_t)(check_random(&seed) & ((1u << bits) - 1)), seed);
        }
    }
}

/* Histograms that no distribution above gives: every number of symbols, and counts that vary by magnitudes. */
static void test_wild_histograms(void)
{
    uint64_t seed = 77;

    for (unsigned k = 1; k <= 256; k++) {
        size_t n = 0, nbytes, fill = 0;
        uint32_t counts[256];
        uint8_t *src, *stored, *out;

        for (unsigned s = 0; s < k; s++) {
            counts[s] = 1 + (uint32_t)(check_random(&seed) & ((1u << check_random(&seed) % 12) - 1));
            n += counts[s];
        }
        src = malloc(n);
        for (unsigned s = 0; s < k; s++) {
            for (uint32_t i = 0; i < counts[s]; i++) /* in runs: the quarters' histograms differ as much as they can */
                src[fill++] = (uint8_t)(s * 167 + 5);
        }
        for (size_t c = 1; c <= 2; c++) {
            out = NULL;
            stored = encode(codecs[c], src, n, &nbytes, 0);
            check_estimate(codecs[c], src, n, nbytes);
            CHECK_EQ(decode(codecs[c], stored, nbytes, n, &out), PTWM_OK);
            CHECK(out != NULL && memcmp(out, src, n) == 0);
            free(out);
            free(stored);
        }
        free(src);
    }
}

static void test_sizes_are_good(void)
{
    for (int d = 0; d < N_DISTRIBUTIONS; d++) {
        size_t n = 1 << 20, nbytes;
        uint8_t *src = make_data(d, n, 3), *stored;
        uint32_t histogram[256] = { 0 };
        uint64_t entropy;

        for (size_t i = 0; i < n; i++)
            histogram[src[i]]++;
        entropy = ptwm_entropy_fixed(histogram, 256) / (8 * PTWM_LOG2_ONE);
        stored = encode(&ptwm_codec_rans, src, n, &nbytes, 0);
        /* 12-bit frequencies are too coarse for hundreds of values that hardly occur. */
        CHECK(nbytes >= entropy && (d == RARE || nbytes <= entropy + entropy / 200 + 700));
        free(stored);
        stored = encode(&ptwm_codec_huffman, src, n, &nbytes, 0);
        CHECK(nbytes >= entropy && nbytes <= entropy + n / 8 + 200);
        CHECK(d == RARE || d == CONSTANT || d == TWO_VALUES || nbytes <= entropy + entropy / 20 + 200);
        free(stored);
        free(src);
    }
}

/* Few symbols must not pay for tables of 256. */
static void test_small_planes_are_small(void)
{
    size_t nbytes;
    uint8_t src[64];

    memset(src, 7, 64);
    free(encode(&ptwm_codec_huffman, src, 64, &nbytes, 0));
    CHECK_EQ(nbytes, 4);
    free(encode(&ptwm_codec_rans, src, 64, &nbytes, 0));
    CHECK_EQ(nbytes, 4 + 16);
    for (unsigned i = 0; i < 64; i++)
        src[i] = (uint8_t)(120 + i % 8);
    free(encode(&ptwm_codec_huffman, src, 64, &nbytes, 0));
    CHECK_EQ(nbytes, 4 + 4 + 3 + 24);
    free(encode(&ptwm_codec_rans, src, 64, &nbytes, 0));
    CHECK(nbytes <= 4 + 14 + 16 + 24);
}

/* --------------------------------------------------------------------------- decoders written from FORMAT.md */

static unsigned slow_symbol_set(const uint8_t **p, uint8_t symbols[256])
{
    unsigned groups = ptwm_load16(*p), k = 0;

    *p += 2;
    for (unsigned g = 0; g < 16; g++) {
        if (groups >> g & 1) {
            unsigned members = ptwm_load16(*p);

            *p += 2;
            for (unsigned j = 0; j < 16; j++) {
                if (members >> j & 1)
                    symbols[k++] = (uint8_t)(16 * g + j);
            }
        }
    }
    return k;
}

static uint64_t slow_varint(const uint8_t **p)
{
    uint64_t value = 0;
    unsigned shift = 0;

    do {
        value |= (uint64_t)(**p & 127) << shift;
        shift += 7;
    } while (*(*p)++ & 128);
    return value;
}

/* Canonical codes by counting up, value by value and length by length. */
static void slow_codes(const uint8_t *lengths, unsigned k, unsigned *codes)
{
    unsigned code = 0, last = 0;

    for (unsigned length = 1; length <= 11; length++) {
        for (unsigned i = 0; i < k; i++) {
            if (lengths[i] == length) {
                code = last == 0 ? 0 : (code + 1) << (length - last);
                codes[i] = code;
                last = length;
            }
        }
    }
}

static void slow_huffman(const uint8_t *p, uint8_t *dst, size_t n)
{
    uint8_t symbols[256], lengths[256];
    unsigned codes[256], k = slow_symbol_set(&p, symbols);
    size_t q = (n + 3) / 4, nbytes[4] = { 0 };

    if (k == 1) {
        memset(dst, symbols[0], n);
        return;
    }
    for (unsigned i = 0; i < k; i++)
        lengths[i] = p[i / 2] >> 4 * (i % 2) & 15;
    p += (k + 1) / 2;
    slow_codes(lengths, k, codes);
    for (unsigned s = 0; s < 3; s++)
        nbytes[s] = (size_t)slow_varint(&p);
    for (unsigned s = 0; s < 4; s++) {
        size_t bit = 0;

        for (size_t i = s * q; i < (s + 1) * q && i < n; i++) {
            unsigned code = 0, length = 0, found = k;

            while (found == k && length < 11) {
                code = code << 1 | ((unsigned)p[bit / 8] >> bit % 8 & 1);
                bit++;
                length++;
                for (unsigned j = 0; j < k; j++) {
                    if (lengths[j] == length && codes[j] == code)
                        found = j;
                }
            }
            CHECK(found < k);
            dst[i] = found < k ? symbols[found] : 0;
        }
        p += nbytes[s];
    }
}

static void slow_rans(const uint8_t *p, const uint8_t *end, uint8_t *dst, size_t n)
{
    uint8_t symbols[256];
    uint32_t frequencies[256], states[32], rest = 4096;
    unsigned k = slow_symbol_set(&p, symbols), lanes = n < 1024 ? 4 : 32;

    for (unsigned i = 0; i < k; i++) {
        frequencies[i] = i + 1 < k ? (uint32_t)slow_varint(&p) + 1 : rest;
        rest -= frequencies[i];
    }
    CHECK_EQ(rest, 0);
    for (unsigned lane = 0; lane < lanes; lane++, p += 4)
        states[lane] = ptwm_load32(p);
    for (size_t i = 0; i < n; i++) {
        uint32_t *x = &states[i % lanes], s = *x % 4096;
        unsigned v = 0;

        while (s >= frequencies[v])
            s -= frequencies[v++];
        *x = frequencies[v] * (*x / 4096) + s;
        if (*x < 65536) {
            *x = *x * 65536 + ptwm_load16(p);
            p += 2;
        }
        dst[i] = symbols[v];
    }
    CHECK(p == end);
    for (unsigned lane = 0; lane < lanes; lane++)
        CHECK_EQ(states[lane], 65536);
}

static void test_format_text(void)
{
    for (int d = 0; d < N_DISTRIBUTIONS; d++) {
        for (size_t n = 1; n < 3000; n += 1 + n / 7) {
            size_t nbytes;
            uint8_t *src = make_data(d, n, 4), *out = malloc(n), *stored;

            stored = encode(&ptwm_codec_huffman, src, n, &nbytes, 0);
            slow_huffman(stored, out, n);
            CHECK(memcmp(out, src, n) == 0);
            free(stored);
            memset(out, 0x55, n);
            stored = encode(&ptwm_codec_rans, src, n, &nbytes, 0);
            slow_rans(stored, stored + nbytes, out, n);
            CHECK(memcmp(out, src, n) == 0);
            free(stored);
            free(out);
            free(src);
        }
    }
}

/* The bytes of one small plane, so that nobody changes the format or the encoders unawares. */
static void test_pinned_bytes(void)
{
    static const uint8_t huffman[] = {
        0xc4, 0x00, 0x03, 0x10, 0x1e, 0x00, 0x04, 0x00, 0x55, 0x14, 0x43, 0x34, 0x03, 0x03, 0x03, 0x52,
        0xeb, 0x00, 0x52, 0xf3, 0x00, 0xa9, 0x75, 0x00, 0xa9, 0x0f,
    };
    static const uint8_t rans[] = {
        0xc4, 0x00, 0x03, 0x10, 0x1e, 0x00, 0x04, 0x00, 0xa3, 0x01, 0xa3, 0x01, 0xa3, 0x01, 0xe5, 0x0c,
        0x8e, 0x05, 0xc7, 0x02, 0xc7, 0x02, 0xfc, 0xa6, 0x0b, 0x00, 0x14, 0xe9, 0xf7, 0x4a, 0x70, 0xee,
        0x33, 0x4b, 0x2d, 0x12, 0xa5, 0x77, 0x69, 0x5a,
    };
    const uint8_t *src = (const uint8_t *)"abracadabra, abracadabra!";
    size_t nbytes;
    uint8_t *stored = encode(&ptwm_codec_huffman, src, 25, &nbytes, 0);

    CHECK(nbytes == sizeof huffman && memcmp(stored, huffman, sizeof huffman) == 0);
    free(stored);
    stored = encode(&ptwm_codec_rans, src, 25, &nbytes, 0);
    CHECK(nbytes == sizeof rans && memcmp(stored, rans, sizeof rans) == 0);
    free(stored);
}

/* ---------------------------------------------------------------------------------- optimal length-limited codes */

/*
 * The cost of the best code for counts[0 .. k) (descending) with no code longer than 11 bits, by dynamic programming
 * over the depth: of the nodes there, some are leaves and the others have two children each.
 */
static uint64_t best_cost(const uint32_t *counts, unsigned k)
{
    static uint64_t best[12][64][64]; /* depth, symbols that have a code, nodes at that depth */
    uint64_t above[64] = { 0 };

    for (unsigned i = 0; i < k; i++)
        above[i + 1] = above[i] + counts[i];
    memset(best, 255, sizeof best);
    best[0][0][1] = 0;
    for (unsigned depth = 0; depth < 11; depth++) {
        for (unsigned done = 0; done < k; done++) {
            for (unsigned nodes = 1; nodes <= k - done; nodes++) {
                uint64_t cost = best[depth][done][nodes];

                for (unsigned leaves = 0; cost != UINT64_MAX && leaves <= nodes; leaves++) {
                    /* every symbol that has no code yet gets one bit longer */
                    uint64_t now = cost + above[k] - above[done + leaves];
                    unsigned next = 2 * (nodes - leaves);

                    if (next <= k - done - leaves && now < best[depth + 1][done + leaves][next])
                        best[depth + 1][done + leaves][next] = now;
                }
            }
        }
    }
    for (unsigned depth = 1; depth <= 11; depth++) {
        if (best[depth][k][0] < best[0][k][0])
            best[0][k][0] = best[depth][k][0];
    }
    /* leaves at depth 11 itself */
    for (unsigned done = 0; done < k; done++) {
        if (best[11][done][k - done] < best[0][k][0])
            best[0][k][0] = best[11][done][k - done];
    }
    return best[0][k][0];
}

static void check_optimal(const uint32_t *counts, unsigned k)
{
    size_t n = 0, nbytes, at = 0;
    uint64_t cost = 0;
    uint8_t *src, *stored;
    const uint8_t *lengths;

    for (unsigned i = 0; i < k; i++)
        n += counts[i];
    src = calloc(n, 1);
    for (unsigned i = 0; i < k; i++) {
        memset(src + at, (int)i, counts[i]);
        at += counts[i];
    }
    stored = encode(&ptwm_codec_huffman, src, n, &nbytes, 0);
    lengths = stored + 2 + 2 * ((k + 15) / 16);
    for (unsigned i = 0; i < k; i++)
        cost += (uint64_t)counts[i] * (lengths[i / 2] >> 4 * (i % 2) & 15);
    CHECK_EQ(cost, best_cost(counts, k));
    free(stored);
    free(src);
}

static void test_huffman_is_optimal(void)
{
    uint32_t counts[64];
    uint64_t seed = 9;

    for (unsigned k = 2; k <= 24; k++) { /* Fibonacci numbers: without the limit the longest code has k - 1 bits */
        counts[k - 1] = counts[k - 2] = 1;
        for (unsigned i = k - 2; i-- > 0;)
            counts[i] = counts[i + 1] + counts[i + 2];
        check_optimal(counts, k);
    }
    for (unsigned round = 0; round < 100; round++) {
        unsigned k = 2 + (unsigned)(check_random(&seed) % 60);
        uint32_t count = 1;

        for (unsigned i = k; i-- > 0;) {
            counts[i] = count;
            count += (uint32_t)(check_random(&seed) % (1 + count / (1 + round % 7)));
            count = count < 20000 ? count : 20000;
        }
        check_optimal(counts, k);
    }
}

/* -------------------------------------------------------------------------------------------- hostile input */

/* The length of the symbol set that begins a plane. */
static size_t symbol_set_nbytes(const uint8_t *stored)
{
    size_t nbytes = 2;

    for (unsigned g = 0; g < 16; g++)
        nbytes += 2 * ((unsigned)ptwm_load16(stored) >> g & 1);
    return nbytes;
}

/*
 * Every truncation, extra bytes, every change of a byte. What decoding gives matters little; ASan watches where it
 * goes.
 */
static void attack(const struct ptwm_byte_codec *codec, int distribution, size_t n)
{
    size_t nbytes, accepted = 0;
    uint8_t *src = make_data(distribution, n, n), *stored = encode(codec, src, n, &nbytes, 0);
    uint8_t *longer = calloc(nbytes + 2, 1);

    for (size_t length = 0; length < nbytes; length++)
        CHECK(is_malformed(decode(codec, stored, length, n, NULL)));
    memcpy(longer, stored, nbytes);
    for (unsigned value = 0; value < 256; value += 85) {
        longer[nbytes] = (uint8_t)value;
        CHECK(is_malformed(decode(codec, longer, nbytes + 1, n, NULL)));
        CHECK(is_malformed(decode(codec, longer, nbytes + 2, n, NULL)));
    }
    for (size_t at = 0; at < nbytes; at++) {
        uint8_t original = stored[at];

        for (unsigned flip = 1; flip < 256; flip++) {
            enum ptwm_status status;

            stored[at] = (uint8_t)(original ^ flip);
            status = decode(codec, stored, nbytes, n, NULL);
            CHECK(status == PTWM_OK || is_malformed(status));
            if (status == PTWM_OK && codec == &ptwm_codec_rans)
                accepted += at >= symbol_set_nbytes(stored);
        }
        stored[at] = original;
    }
    /*
     * Another set of as many symbols is as good as the right one, and where all frequencies are powers of two any words
     * are; but else nearly all changes show in the states' ends.
     */
    CHECK(accepted <= nbytes * 255 / 100 || distribution == UNIFORM || distribution == ALL_VALUES);
    CHECK_EQ(decode(codec, stored, nbytes, n, NULL), PTWM_OK);
    free(longer);
    free(stored);
    free(src);
}

static void test_attacks(void)
{
    static const size_t sizes[] = { 1, 2, 5, 21, 64, 150 };

    for (size_t c = 0; c < N_CODECS; c++) {
        for (int d = 0; d < N_DISTRIBUTIONS; d++) {
            for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
                attack(codecs[c], d, sizes[i]);
        }
    }
    attack(&ptwm_codec_rans, SKEWED, 1030); /* 32 lanes */
    attack(&ptwm_codec_huffman, SKEWED, 700); /* long enough for the fast loop */
}

/* A larger plane, with the wrong length asked for, and with bytes changed at random. */
static void test_attacks_on_large_planes(void)
{
    uint64_t seed = 8;

    for (size_t c = 0; c < N_CODECS; c++) {
        size_t n = 50000, nbytes;
        uint8_t *src = make_data(SKEWED, n, 1), *stored = encode(codecs[c], src, n, &nbytes, 0);

        /* By an element or two Huffman cannot tell: zeros at the end of a byte may be a code. */
        CHECK(is_malformed(decode(codecs[c], stored, nbytes, n - 40, NULL)));
        CHECK(is_malformed(decode(codecs[c], stored, nbytes, n + 40, NULL)));
        CHECK(is_malformed(decode(codecs[c], stored, nbytes, 2 * n, NULL)));
        CHECK(is_malformed(decode(codecs[c], stored, nbytes, n / 2, NULL)));
        CHECK(is_malformed(decode(codecs[c], stored, nbytes, 1, NULL)));
        for (unsigned round = 0; round < 300; round++) {
            uint8_t *changed = copy_of(stored, nbytes);

            for (unsigned i = 0; i <= round % 4; i++)
                changed[check_random(&seed) % (round % 2 ? 64 : nbytes)] ^= (uint8_t)(1u << check_random(&seed) % 8);
            (void)decode(codecs[c], changed, nbytes - (round % 5 == 0 ? check_random(&seed) % 100 : 0), n, NULL);
            free(changed);
        }
        free(stored);
        free(src);
    }
}

static void test_random_bytes(void)
{
    uint64_t seed = 2;

    for (size_t c = 0; c <= N_CODECS; c++) {
        const struct ptwm_byte_codec *codec = c < N_CODECS ? codecs[c] : &ptwm_codec_constant;

        for (unsigned round = 0; round < 4000; round++) {
            size_t nbytes = (size_t)(check_random(&seed) % (round % 3 == 0 ? 8 : 300)), n = 1 + round % 1500;
            uint8_t *p = make_data(round % 2 ? UNIFORM : STEEP, nbytes, seed);
            enum ptwm_status status;

            /* A plausible beginning leads deeper: one group with few members. */
            if (round % 4 && nbytes >= 4) {
                ptwm_store16(p, (uint16_t)(1u << round % 16));
                ptwm_store16(p + 2, (uint16_t)(3u << round % 15));
            }
            status = decode(codec, p, nbytes, n, NULL);
            CHECK(status == PTWM_OK || is_malformed(status));
            free(p);
        }
    }
}

static enum ptwm_status decode_huffman(const uint8_t *src, size_t nbytes, size_t n)
{
    return decode(&ptwm_codec_huffman, src, nbytes, n, NULL);
}

/* Each rule of section 6.1, broken by one change of a plane that is right. */
static void test_huffman_rules(void)
{
    /* Symbols 0, 1, 2 of 1, 2, 2 bits: codes 0, 10, 11. The plane: 1 0 | 2 2 | 0 1 | 0 0. */
    static const uint8_t good[] = { 0x01, 0, 0x07, 0, 0x21, 0x02, 1, 1, 1, 0x01, 0x0F, 0x02, 0x00 };
    static const struct {
        unsigned at;
        uint8_t value;
    } breaks[] = {
        { 0, 0 },    /* no group */
        { 0, 3 },    /* a group that takes the lengths for its members */
        { 2, 0 },    /* no member */
        { 4, 0x20 }, /* a length of 0 */
        { 4, 0x2C }, /* a length of 12 */
        { 5, 0x03 }, /* an incomplete code */
        { 5, 0x01 }, /* more codes than there are */
        { 5, 0x12 }, /* bits behind the lengths */
        { 6, 0 },    /* streams that are too short and too long */
        { 6, 2 },
        { 7, 200 },
        { 9, 0x09 }, /* bits behind a stream's end */
        { 10, 0x8F },
        { 12, 0x10 },
    };
    static const uint8_t long_varint[] = { 0x01, 0, 0x07, 0, 0x21, 0x02, 0x81, 0, 1, 1, 0x01, 0x0F, 0x02, 0x00 };
    static const uint8_t spare_byte[] = { 0x01, 0, 0x07, 0, 0x21, 0x02, 2, 1, 1, 0x01, 0, 0x0F, 0x02, 0x00 };
    static const uint8_t spare_end[] = { 0x01, 0, 0x07, 0, 0x21, 0x02, 1, 1, 1, 0x01, 0x0F, 0x02, 0x00, 0 };
    static const uint8_t expected[] = { 1, 0, 2, 2, 0, 1, 0, 0 };
    static const uint8_t empty_group[] = { 0x81, 0, 0x00, 0x80, 0, 0 };
    static const uint8_t one[] = { 0x80, 0, 0x00, 0x80, 0 };
    uint8_t *out = NULL;

    CHECK_EQ(decode(&ptwm_codec_huffman, good, sizeof good, 8, &out), PTWM_OK);
    CHECK(out != NULL && memcmp(out, expected, 8) == 0);
    free(out);
    for (size_t i = 0; i < sizeof breaks / sizeof breaks[0]; i++) {
        uint8_t *bad = copy_of(good, sizeof good);

        bad[breaks[i].at] = breaks[i].value;
        CHECK_EQ(decode_huffman(bad, sizeof good, 8), PTWM_ERR_PLANE);
        free(bad);
    }
    CHECK_EQ(decode_huffman(long_varint, sizeof long_varint, 8), PTWM_ERR_PLANE);
    CHECK_EQ(decode_huffman(spare_byte, sizeof spare_byte, 8), PTWM_ERR_PLANE);
    CHECK_EQ(decode_huffman(spare_end, sizeof spare_end, 8), PTWM_ERR_PLANE);
    CHECK_EQ(decode_huffman(empty_group, sizeof empty_group, 8), PTWM_ERR_PLANE);
    CHECK_EQ(decode_huffman(one, 4, 8), PTWM_OK);
    CHECK_EQ(decode_huffman(one, 5, 8), PTWM_ERR_PLANE);
}

static enum ptwm_status decode_rans(const uint8_t *src, size_t nbytes, size_t n)
{
    return decode(&ptwm_codec_rans, src, nbytes, n, NULL);
}

/* Each rule of section 6.2, broken by one change of a plane that is right. */
static void test_rans_rules(void)
{
    /* Symbols 0 and 1 with 2048 each. A step back from 65536 to a 0 doubles the state, to a 1 adds 2048 too. */
    static const uint8_t good[] = { 1, 0, 3, 0, 0xFF, 0x0F, 0, 0, 2, 0, 0, 8, 2, 0, 0, 0, 2, 0, 0, 0, 1, 0 };
    static const uint8_t expected[] = { 0, 1, 0 };
    static const struct {
        unsigned at;
        uint8_t value;
    } breaks[] = {
        { 0, 0 },  /* no group */
        { 2, 0 },  /* no member */
        { 5, 0x1F }, /* 4096 for the first symbol, none left for the second */
        { 5, 0x3F }, /* more than 4096 */
        { 5, 0x8F }, /* a varint that goes on */
        { 8, 0 },  /* a state below 65536 */
        { 8, 1 },  /* a state that ends below 65536 and finds no word */
        { 8, 4 },  /* states that do not end in 65536 */
        { 6, 1 },
        { 12, 3 },
        { 18, 1 }, /* the same in a lane without an element */
        { 20, 2 },
    };
    static const uint8_t spare_word[] = {
        1, 0, 3, 0, 0xFF, 0x0F, 0, 0, 2, 0, 0, 8, 2, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0
    };
    static const uint8_t one[] = { 1, 0, 4, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1, 0 };
    uint8_t *out = NULL;

    CHECK_EQ(decode(&ptwm_codec_rans, good, sizeof good, 3, &out), PTWM_OK);
    CHECK(out != NULL && memcmp(out, expected, 3) == 0);
    free(out);
    for (size_t i = 0; i < sizeof breaks / sizeof breaks[0]; i++) {
        uint8_t *bad = copy_of(good, sizeof good);

        bad[breaks[i].at] = breaks[i].value;
        CHECK_EQ(decode_rans(bad, sizeof good, 3), PTWM_ERR_PLANE);
        free(bad);
    }
    CHECK_EQ(decode_rans(spare_word, sizeof spare_word, 3), PTWM_ERR_PLANE);
    CHECK_EQ(decode_rans(spare_word, sizeof spare_word - 1, 3), PTWM_ERR_PLANE); /* half a word */
    CHECK_EQ(decode_rans(one, sizeof one, 100), PTWM_OK);
}

/* A state below 65536 that takes a word and ends as it should: only the check of the states themselves refuses it. */
static void test_rans_low_state(void)
{
    /* Symbols 0 and 1 with 2048 each, 45 elements that are 0; each halves a state. Lane 0 has 12, the others 11. */
    static const uint8_t good[] = { 1, 0, 3, 0, 0xFF, 0x0F, 0, 0, 0, 16, 0, 0, 0, 8, 0, 0, 0, 8, 0, 0, 0, 8 };
    static const uint8_t bad[] = { 1, 0, 3, 0, 0xFF, 0x0F, 0, 16, 0, 0, 0, 0, 0, 8, 0, 0, 0, 8, 0, 0, 0, 8, 0, 0 };

    CHECK_EQ(decode_rans(good, sizeof good, 45), PTWM_OK);
    CHECK_EQ(decode_rans(bad, sizeof bad, 45), PTWM_ERR_PLANE);
}

/* No unit of frequency is worth more elsewhere, with ln(1 + 1 / f) taken as 2 / (2 f + 1). */
static void test_rans_frequencies(void)
{
    uint64_t seed = 31;

    for (unsigned round = 0; round < 60; round++) {
        unsigned k = 2 + (unsigned)(check_random(&seed) % 254);
        uint32_t counts[256], frequencies[256], rest = 4096;
        size_t n = 0, nbytes;
        uint8_t *src = malloc(256 * 4096), *stored, symbols[256];
        const uint8_t *p;

        for (unsigned i = 0; i < k; i++) {
            counts[i] = 1 + (uint32_t)(check_random(&seed) & ((1u << check_random(&seed) % 12) - 1));
            memset(src + n, (int)i, counts[i]);
            n += counts[i];
        }
        p = stored = encode(&ptwm_codec_rans, src, n, &nbytes, 0);
        CHECK_EQ(slow_symbol_set(&p, symbols), k);
        for (unsigned i = 0; i < k; i++) {
            frequencies[i] = i + 1 < k ? (uint32_t)slow_varint(&p) + 1 : rest;
            rest -= frequencies[i];
        }
        for (unsigned i = 0; i < k; i++) {
            for (unsigned j = 0; j < k; j++)
                CHECK(i == j || frequencies[j] == 1 || (uint64_t)counts[i] * (2 * frequencies[j] - 1) <=
                                                       (uint64_t)counts[j] * (2 * frequencies[i] + 1));
        }
        free(stored);
        free(src);
    }
}

/* ------------------------------------------------------------------------------------------ stored and zstd */

static void test_constant(void)
{
    static const uint8_t pattern[] = { 0x12, 0x34, 0x56 };
    struct ptwm_codec_context context = make_context();
    uint8_t dst[7], stored[2];
    size_t nbytes;

    for (size_t width = 1; width <= 2; width++) {
        CHECK_EQ(ptwm_codec_constant.encode(&context, stored, &nbytes, pattern, width, NULL), PTWM_OK);
        CHECK(nbytes == width && nbytes <= ptwm_codec_constant.bound(width));
        dst[6] = 0xEE;
        CHECK_EQ(ptwm_codec_constant.decode(&context, dst, 6, stored, width, NULL), PTWM_OK);
        for (size_t i = 0; i < 6; i++)
            CHECK_EQ(dst[i], pattern[i % width]);
        CHECK_EQ(dst[6], 0xEE);
    }
    CHECK_EQ(ptwm_codec_constant.encode(&context, stored, &nbytes, pattern, 3, NULL), PTWM_ERR_ARGUMENT);
    CHECK_EQ(decode(&ptwm_codec_constant, pattern, 2, 7, NULL), PTWM_ERR_PLANE);
    CHECK_EQ(decode(&ptwm_codec_constant, pattern, 0, 6, NULL), PTWM_ERR_PLANE);
    CHECK_EQ(decode(&ptwm_codec_constant, pattern, 3, 6, NULL), PTWM_ERR_PLANE);
}

/* Decodes with the fake provider and says whether it was asked to decompress. */
static enum ptwm_status decode_fake(const uint8_t *src, size_t src_nbytes, size_t n, int *asked)
{
    struct ptwm_codec_context context = { &no_allocator, &fake_provider, 0 };
    uint8_t *exact = copy_of(src, src_nbytes), *dst = malloc(n);
    enum ptwm_status status;

    fake.n_decompress = 0;
    status = ptwm_codec_zstd.decode(&context, dst, n, exact, src_nbytes, NULL);
    *asked = fake.n_decompress;
    free(exact);
    free(dst);
    return status;
}

/* Frames that section 6 does not allow never reach the provider. */
static void test_zstd_rules(void)
{
    static const uint8_t data[5] = { 'h', 'e', 'l', 'l', 'o' };
    static const struct {
        unsigned at;
        uint8_t value;
    } breaks[] = {
        { 0, 0x29 },    /* not the magic number */
        { 4, 0xE1 },    /* a dictionary id */
        { 4, 0xE3 },
        { 4, 0xE8 },    /* the reserved bit */
        { 4, 0xE4 },    /* a checksum that is not there */
        { 4, 0x00 },    /* no content size */
        { 5, 6 },       /* a content size that is not the plane's */
        { 12, 1 },      /* one of 2^56 and more */
        { 13, 0x28 },   /* no last block */
        { 13, 0x21 },   /* blocks that end too soon and too late */
        { 13, 0x31 },
        { 13, 0x2F },   /* the reserved type of block */
        { 13, 0x2B },   /* a run, which has one byte */
        { 15, 0x80 },   /* a block of more than 128 KiB */
    };
    /* One run of 131073 bytes, which is a byte more than a block may have; and one of 131072. */
    static const uint8_t large_run[] = { 0x28, 0xB5, 0x2F, 0xFD, 0xA0, 1, 0, 2, 0, 0x0B, 0, 0x10, 'x' };
    static const uint8_t full_run[] = { 0x28, 0xB5, 0x2F, 0xFD, 0xA0, 0, 0, 2, 0, 0x03, 0, 0x10, 'x' };
    static const uint8_t skippable[] = { 0x50, 0x2A, 0x4D, 0x18, 1, 0, 0, 0, 0 };
    uint8_t good[64], twice[128];
    size_t n = store_raw_frame(good, data, 5);
    int asked;

    CHECK_EQ(n, 21);
    CHECK_EQ(decode_fake(good, n, 5, &asked), PTWM_OK);
    CHECK_EQ(asked, 1);
    for (size_t i = 0; i < sizeof breaks / sizeof breaks[0]; i++) {
        uint8_t *bad = copy_of(good, n);

        bad[breaks[i].at] = breaks[i].value;
        CHECK_EQ(decode_fake(bad, n, 5, &asked), PTWM_ERR_PLANE);
        CHECK_EQ(asked, 0);
        free(bad);
    }
    memcpy(twice, good, n);
    memcpy(twice + n, good, n);
    CHECK_EQ(decode_fake(twice, 2 * n, 5, &asked), PTWM_ERR_PLANE);
    memcpy(twice + n, skippable, sizeof skippable);
    CHECK_EQ(decode_fake(twice, n + sizeof skippable, 5, &asked), PTWM_ERR_PLANE);
    memcpy(twice, skippable, sizeof skippable);
    memcpy(twice + sizeof skippable, good, n);
    CHECK_EQ(decode_fake(twice, n + sizeof skippable, 5, &asked), PTWM_ERR_PLANE);
    CHECK_EQ(decode_fake(skippable, sizeof skippable, 1, &asked), PTWM_ERR_PLANE);
    CHECK_EQ(decode_fake(large_run, sizeof large_run, 131073, &asked), PTWM_ERR_PLANE);
    CHECK_EQ(asked, 0);
    (void)decode_fake(full_run, sizeof full_run, 131072, &asked);
    CHECK_EQ(asked, 1);
}

/* All ways of writing the content size, with and without a window size and a checksum. */
static void test_zstd_headers(void)
{
    static const unsigned size_nbytes[4] = { 1, 2, 4, 8 };

    for (unsigned descriptor = 0; descriptor < 256; descriptor += 4) {
        unsigned flag = descriptor >> 6, is_single = descriptor >> 5 & 1, n = flag == 1 ? 300 : 200;
        int is_good = !(descriptor & 8) && (flag > 0 || is_single), asked;
        uint8_t frame[400], *p = frame + 5;

        ptwm_store32(frame, 0xFD2FB528u);
        frame[4] = (uint8_t)descriptor;
        if (!is_single)
            *p++ = 0x40;
        if (flag > 0 || is_single) {
            uint64_t stored = flag == 1 ? n - 256 : n;

            for (unsigned i = 0; i < size_nbytes[flag]; i++)
                *p++ = (uint8_t)(stored >> 8 * i);
        }
        ptwm_store16(p, (uint16_t)(n << 3 | 1 << 1 | 1)); /* one run */
        p[2] = 0;
        p[3] = 'x';
        p += 4;
        if (descriptor & 4) {
            memset(p, 0, 4);
            p += 4;
        }
        (void)decode_fake(frame, (size_t)(p - frame), n, &asked);
        CHECK_EQ(asked, is_good);
        (void)decode_fake(frame, (size_t)(p - frame), n + 1, &asked);
        CHECK_EQ(asked, 0);
        (void)decode_fake(frame, (size_t)(p - frame) - 1, n, &asked);
        CHECK_EQ(asked, 0);
    }
}

static void test_zstd_provider(void)
{
    static const struct {
        int given, zstd;
    } levels[] = { { 0, 3 }, { 1, 1 }, { 7, 7 }, { 19, 19 }, { 22, 19 }, { -5, 1 } };
    struct ptwm_codec_context context = { &no_allocator, &fake_provider, 0 };
    uint8_t src[100] = { 1, 2, 3 }, dst[700], out[100];
    size_t nbytes = 0;

    CHECK(ptwm_zstd_select(&fake_provider) == &fake_provider);
    CHECK(ptwm_zstd_is_available(&fake_provider));
    CHECK_EQ(ptwm_zstd_is_available(ptwm_zstd_select(NULL)), ptwm_has_builtin_zstd());
    for (size_t i = 0; i < sizeof levels / sizeof levels[0]; i++) {
        context.level = levels[i].given;
        CHECK_EQ(ptwm_codec_zstd.encode(&context, dst, &nbytes, src, 100, NULL), PTWM_OK);
        CHECK_EQ(fake.level, levels[i].zstd);
    }
    fake.fails = 1;
    CHECK_EQ(ptwm_codec_zstd.decode(&context, out, 100, dst, nbytes, NULL), PTWM_ERR_ZSTD);
    CHECK_EQ(ptwm_codec_zstd.encode(&context, dst, &nbytes, src, 100, NULL), PTWM_ERR_ZSTD);
    fake.fails = 0;
    fake.behind = 1; /* a frame that is not to be stored */
    CHECK_EQ(ptwm_codec_zstd.encode(&context, dst, &nbytes, src, 100, NULL), PTWM_ERR_ZSTD);
    fake.behind = 0;
    if (!ptwm_has_builtin_zstd()) {
        context.zstd = ptwm_zstd_select(NULL);
        CHECK_EQ(ptwm_codec_zstd.encode(&context, dst, &nbytes, src, 100, NULL), PTWM_ERR_ZSTD_UNAVAILABLE);
        nbytes = store_raw_frame(dst, src, 100);
        CHECK_EQ(ptwm_codec_zstd.decode(&context, out, 100, dst, nbytes, NULL), PTWM_ERR_ZSTD_UNAVAILABLE);
    }
}

/* The real zstd reads what the frame says, and finds out about content that is not what it says. */
static void test_zstd_builtin(void)
{
    uint8_t frame[] = { 0x28, 0xB5, 0x2F, 0xFD, 0x20, 5, 0x29, 0, 0, 'h', 'e', 'l', 'l', 'o' };
    uint8_t *out = NULL;

    if (!ptwm_has_builtin_zstd()) {
        printf("SKIP test_zstd_builtin: zstd is not built in\n");
        return;
    }
    CHECK_EQ(decode(&ptwm_codec_zstd, frame, sizeof frame, 5, &out), PTWM_OK);
    CHECK(out != NULL && memcmp(out, "hello", 5) == 0);
    free(out);
    frame[5] = 6;
    CHECK_EQ(decode(&ptwm_codec_zstd, frame, sizeof frame, 6, NULL), PTWM_ERR_ZSTD);
}

static void test_codec_table(void)
{
    static const char *const names[] = { "identity", "constant", "huffman", "rans", "zstd", "label-rans", "trim", "carried" };

    for (uint32_t id = 0; id < 300; id++) {
        const struct ptwm_byte_codec *codec = ptwm_byte_codec_find(id);

        CHECK((codec != NULL) == (id <= PTWM_CODEC_ZSTD));
        CHECK(codec == NULL || codec->id == id);
        CHECK((ptwm_codec_name(id) != NULL) == (id <= PTWM_CODEC_CARRIED));
        CHECK(id > PTWM_CODEC_CARRIED || strcmp(ptwm_codec_name(id), names[id]) == 0);
    }
}

/* ---------------------------------------------------------------------------------------------- logarithms */

/* log2(x) in units of 2^-24, bit by bit: squaring a number doubles its logarithm. */
static uint64_t slow_log2(uint64_t x)
{
    unsigned exponent = 0;
    uint64_t bits = 0;

    while (exponent < 63 && x >> exponent > 1)
        exponent++;
    x = exponent > 31 ? x >> (exponent - 31) : x << (31 - exponent); /* in [2^31, 2^32) */
    for (unsigned i = 0; i < 24; i++) {
        x = x * x >> 31;
        bits = bits << 1 | x >> 32;
        x >>= x >> 32;
    }
    return (uint64_t)exponent << 24 | bits;
}

static void check_log2(uint64_t x)
{
    int64_t difference = (int64_t)ptwm_log2_fixed(x) * 256 - (int64_t)slow_log2(x);

    CHECK(difference >= -512 && difference <= 512); /* 2 units of 1 / 65536 */
}

static void test_log2(void)
{
    uint64_t seed = 6;

    CHECK_EQ(ptwm_log2_fixed(0), 0);
    for (unsigned i = 0; i < 64; i++)
        CHECK_EQ(ptwm_log2_fixed((uint64_t)1 << i), i * PTWM_LOG2_ONE);
    CHECK_EQ(ptwm_log2_fixed(3), 103872); /* 65536 * 1.5849625 = 103872.1 */
    CHECK_EQ(ptwm_log2_fixed(10), 217706); /* 65536 * 3.3219281 = 217705.9 */
    for (uint64_t x = 1; x < 70000; x++) {
        check_log2(x);
        CHECK(ptwm_log2_fixed(x) <= ptwm_log2_fixed(x + 1));
    }
    for (unsigned i = 0; i < 100000; i++)
        check_log2((check_random(&seed) | 1) >> i % 64 | 1);
    check_log2(UINT64_MAX);
}

static void test_entropy(void)
{
    uint32_t histogram[256] = { 0 };

    CHECK_EQ(ptwm_entropy_fixed(histogram, 256), 0);
    histogram[9] = 1000;
    CHECK_EQ(ptwm_entropy_fixed(histogram, 256), 0);
    histogram[200] = 1000;
    CHECK_EQ(ptwm_entropy_fixed(histogram, 256), 2000 * (uint64_t)PTWM_LOG2_ONE);
    for (unsigned i = 0; i < 256; i++)
        histogram[i] = UINT32_MAX;
    CHECK_EQ(ptwm_entropy_fixed(histogram, 256) / UINT32_MAX, 256 * 8 * (uint64_t)PTWM_LOG2_ONE);
}

int main(void)
{
    RUN(test_all_small_sizes);
    RUN(test_special_sizes);
    RUN(test_random_sizes);
    RUN(test_wild_histograms);
    RUN(test_sizes_are_good);
    RUN(test_small_planes_are_small);
    RUN(test_format_text);
    RUN(test_pinned_bytes);
    RUN(test_huffman_is_optimal);
    RUN(test_attacks);
    RUN(test_attacks_on_large_planes);
    RUN(test_random_bytes);
    RUN(test_huffman_rules);
    RUN(test_rans_rules);
    RUN(test_rans_low_state);
    RUN(test_rans_frequencies);
    RUN(test_constant);
    RUN(test_zstd_rules);
    RUN(test_zstd_headers);
    RUN(test_zstd_provider);
    RUN(test_zstd_builtin);
    RUN(test_codec_table);
    RUN(test_log2);
    RUN(test_entropy);
    CHECK_EXIT();
}
