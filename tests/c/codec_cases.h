/*
 * What the tests of the codecs of bytes share: data of many kinds, a stand-in for zstd, encoding and decoding with exact buffers.
 */
#ifndef CODEC_CASES_H
#define CODEC_CASES_H

#include "bits.h"
#include "check.h"
#include "codec.h"
#include "log2_fixed.h"

/* No codec of bytes needs scratch memory today; one that begins to must also work with an allocator that fails. */
static inline void *no_memory(void *context, size_t nbytes)
{
    (void)context;
    (void)nbytes;
    return NULL;
}

static inline void no_release(void *context, void *pointer, size_t nbytes)
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
static inline size_t store_raw_frame(uint8_t *dst, const uint8_t *src, size_t n)
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

static inline int fake_compress(void *context, void *dst, size_t dst_capacity, size_t *dst_nbytes, const void *src,
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
static inline int fake_decompress(void *context, void *dst, size_t dst_nbytes, const void *src, size_t src_nbytes)
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

static inline uint8_t make_byte(int distribution, size_t i, uint64_t random)
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
static inline uint8_t *make_data(int distribution, size_t n, uint64_t seed)
{
    uint8_t *p = malloc(n > 0 ? n : 1);

    for (size_t i = 0; i < n; i++)
        p[i] = make_byte(distribution, i, check_random(&seed));
    return p;
}

static inline uint8_t *copy_of(const uint8_t *src, size_t n)
{
    uint8_t *p = malloc(n > 0 ? n : 1);

    memcpy(p, src, n);
    return p;
}

/* ------------------------------------------------------------------------------------------------ round trips */

static struct fake_zstd fake; /* used where zstd is not built in, and where what it is asked matters */
static const struct ptwm_zstd fake_provider = { fake_compress, fake_decompress, &fake };

static inline struct ptwm_codec_context make_context(void)
{
    struct ptwm_codec_context context = { &no_allocator, NULL, 0 };

    context.zstd = ptwm_has_builtin_zstd() ? ptwm_zstd_select(NULL) : &fake_provider;
    return context;
}

/* The encoded bytes, in memory of exactly their size; NULL if encoding fails. fill is in dst before. */
static inline uint8_t *encode(const struct ptwm_byte_codec *codec, const uint8_t *src, size_t n, size_t *nbytes, int fill)
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
static inline enum ptwm_status decode(const struct ptwm_byte_codec *codec, const uint8_t *src, size_t src_nbytes, size_t n,
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

static inline int is_malformed(enum ptwm_status status)
{
    return status == PTWM_ERR_PLANE || status == PTWM_ERR_ZSTD;
}

/* FORMAT.md, section 4 */
static inline int is_short_enough(size_t stored_nbytes, size_t n)
{
    return stored_nbytes <= 4 * (uint64_t)n + 65536;
}

static inline void check_estimate(const struct ptwm_byte_codec *codec, const uint8_t *src, size_t n, size_t nbytes)
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
    CHECK(estimate >= nbytes || (estimate >= n && nbytes >= n)); /* of what does not shrink no more is said */
    CHECK(estimate <= nbytes + nbytes / 1000 + above);
}

static inline void round_trip(const struct ptwm_byte_codec *codec, int distribution, size_t n, uint64_t seed)
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

/* ------------------------------------------------------------------------------- readers written from FORMAT.md */

static inline unsigned slow_symbol_set(const uint8_t **p, uint8_t symbols[256])
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

static inline uint64_t slow_varint(const uint8_t **p)
{
    uint64_t value = 0;
    unsigned shift = 0;

    do {
        value |= (uint64_t)(**p & 127) << shift;
        shift += 7;
    } while (*(*p)++ & 128);
    return value;
}

#endif
