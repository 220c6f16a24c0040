/*
 * XXH3-64 with seed 0 and the default secret, from the public specification.
 *
 * Inputs of up to 240 bytes have their own formulas, by length. Longer ones are cut into stripes of 64 bytes, each of
 * which goes into eight accumulators; 16 stripes make a block, after which the accumulators are scrambled. The last
 * stripe ends with the input's last byte and overlaps the one before it where needed.
 */
#include "xxh3.h"

#include <string.h>

#include "bits.h"
#include "cpu_features.h"
#include "ptwm.h"

#define PRIME32_1 0x9E3779B1u
#define PRIME32_2 0x85EBCA77u
#define PRIME32_3 0xC2B2AE3Du
#define PRIME64_1 UINT64_C(0x9E3779B185EBCA87)
#define PRIME64_2 UINT64_C(0xC2B2AE3D27D4EB4F)
#define PRIME64_3 UINT64_C(0x165667B19E3779F9)
#define PRIME64_4 UINT64_C(0x85EBCA77C2B2AE63)
#define PRIME64_5 UINT64_C(0x27D4EB2F165667C5)
#define PRIME_MX1 UINT64_C(0x165667919E3779F9)
#define PRIME_MX2 UINT64_C(0x9FB21C651E98DF25)

#define STRIPE_NBYTES 64u
#define STRIPES_PER_BLOCK 16u /* (192 - 64) / 8: the secret advances by 8 bytes a stripe */
#define BLOCKS_PER_VISIT 4u   /* 4 KiB stay in the first cache */
#define SHORT_MAX_NBYTES 240u

static const uint8_t secret[192] = {
    0xb8, 0xfe, 0x6c, 0x39, 0x23, 0xa4, 0x4b, 0xbe, 0x7c, 0x01, 0x81, 0x2c, 0xf7, 0x21, 0xad, 0x1c,
    0xde, 0xd4, 0x6d, 0xe9, 0x83, 0x90, 0x97, 0xdb, 0x72, 0x40, 0xa4, 0xa4, 0xb7, 0xb3, 0x67, 0x1f,
    0xcb, 0x79, 0xe6, 0x4e, 0xcc, 0xc0, 0xe5, 0x78, 0x82, 0x5a, 0xd0, 0x7d, 0xcc, 0xff, 0x72, 0x21,
    0xb8, 0x08, 0x46, 0x74, 0xf7, 0x43, 0x24, 0x8e, 0xe0, 0x35, 0x90, 0xe6, 0x81, 0x3a, 0x26, 0x4c,
    0x3c, 0x28, 0x52, 0xbb, 0x91, 0xc3, 0x00, 0xcb, 0x88, 0xd0, 0x65, 0x8b, 0x1b, 0x53, 0x2e, 0xa3,
    0x71, 0x64, 0x48, 0x97, 0xa2, 0x0d, 0xf9, 0x4e, 0x38, 0x19, 0xef, 0x46, 0xa9, 0xde, 0xac, 0xd8,
    0xa8, 0xfa, 0x76, 0x3f, 0xe3, 0x9c, 0x34, 0x3f, 0xf9, 0xdc, 0xbb, 0xc7, 0xc7, 0x0b, 0x4f, 0x1d,
    0x8a, 0x51, 0xe0, 0x4b, 0xcd, 0xb4, 0x59, 0x31, 0xc8, 0x9f, 0x7e, 0xc9, 0xd9, 0x78, 0x73, 0x64,
    0xea, 0xc5, 0xac, 0x83, 0x34, 0xd3, 0xeb, 0xc3, 0xc5, 0x81, 0xa0, 0xff, 0xfa, 0x13, 0x63, 0xeb,
    0x17, 0x0d, 0xdd, 0x51, 0xb7, 0xf0, 0xda, 0x49, 0xd3, 0x16, 0x55, 0x26, 0x29, 0xd4, 0x68, 0x9e,
    0x2b, 0x16, 0xbe, 0x58, 0x7d, 0x47, 0xa1, 0xfc, 0x8f, 0xf8, 0xb8, 0xd1, 0x7a, 0xd0, 0x31, 0xce,
    0x45, 0xcb, 0x3a, 0x8f, 0x95, 0x16, 0x04, 0x28, 0xaf, 0xd7, 0xfb, 0xca, 0xbb, 0x4b, 0x40, 0x7e,
};

/* ------------------------------------------------------------------------------------------------ mixing */

static uint64_t rotate_left(uint64_t x, unsigned n)
{
    return x << n | x >> (64 - n);
}

static uint64_t swap_bytes(uint64_t x)
{
    x = (x & UINT64_C(0x00FF00FF00FF00FF)) << 8 | (x >> 8 & UINT64_C(0x00FF00FF00FF00FF));
    x = (x & UINT64_C(0x0000FFFF0000FFFF)) << 16 | (x >> 16 & UINT64_C(0x0000FFFF0000FFFF));
    return x << 32 | x >> 32;
}

/* The exclusive or of the two halves of the 128-bit product. */
static uint64_t fold_product(uint64_t a, uint64_t b)
{
#ifdef __SIZEOF_INT128__
    __extension__ typedef unsigned __int128 wide;
    wide product = (wide)a * b;

    return (uint64_t)product ^ (uint64_t)(product >> 64);
#else
    uint64_t a0 = (uint32_t)a, a1 = a >> 32, b0 = (uint32_t)b, b1 = b >> 32;
    uint64_t middle = a1 * b0 + (a0 * b0 >> 32); /* < 2^64: (2^32 - 1)^2 + 2^32 - 1 */
    uint64_t cross = (uint32_t)middle + a0 * b1;

    return (a * b) ^ (a1 * b1 + (middle >> 32) + (cross >> 32));
#endif
}

static uint64_t avalanche(uint64_t h)
{
    h ^= h >> 37;
    h *= PRIME_MX1;
    return h ^ h >> 32;
}

/* That of XXH64, which the shortest inputs use. */
static uint64_t avalanche_xxh64(uint64_t h)
{
    h ^= h >> 33;
    h *= PRIME64_2;
    h ^= h >> 29;
    h *= PRIME64_3;
    return h ^ h >> 32;
}

static uint64_t mix16(const uint8_t *p, const uint8_t *key)
{
    return fold_product(ptwm_load64(p) ^ ptwm_load64(key), ptwm_load64(p + 8) ^ ptwm_load64(key + 8));
}

/* ------------------------------------------------------------------------------------------ up to 240 bytes */

static uint64_t hash_0_to_16(const uint8_t *p, size_t n)
{
    if (n > 8) {
        uint64_t low = ptwm_load64(p) ^ ptwm_load64(secret + 24) ^ ptwm_load64(secret + 32);
        uint64_t high = ptwm_load64(p + n - 8) ^ ptwm_load64(secret + 40) ^ ptwm_load64(secret + 48);

        return avalanche(n + swap_bytes(low) + high + fold_product(low, high));
    }
    if (n >= 4) {
        uint64_t h = (uint64_t)ptwm_load32(p) << 32 | ptwm_load32(p + n - 4);

        h ^= ptwm_load64(secret + 8) ^ ptwm_load64(secret + 16);
        h ^= rotate_left(h, 49) ^ rotate_left(h, 24);
        h *= PRIME_MX2;
        h ^= (h >> 35) + n;
        h *= PRIME_MX2;
        return h ^ h >> 28;
    }
    if (n > 0) {
        uint32_t combined = (uint32_t)p[0] << 16 | (uint32_t)p[n >> 1] << 24 | p[n - 1] | (uint32_t)n << 8;

        return avalanche_xxh64(combined ^ ptwm_load32(secret) ^ ptwm_load32(secret + 4));
    }
    return avalanche_xxh64(ptwm_load64(secret + 56) ^ ptwm_load64(secret + 64));
}

/* Pairs of 16 bytes from both ends towards the middle. */
static uint64_t hash_17_to_128(const uint8_t *p, size_t n)
{
    uint64_t h = n * PRIME64_1;

    for (size_t i = 0; i <= (n - 1) / 32; i++)
        h += mix16(p + 16 * i, secret + 32 * i) + mix16(p + n - 16 - 16 * i, secret + 32 * i + 16);
    return avalanche(h);
}

static uint64_t hash_129_to_240(const uint8_t *p, size_t n)
{
    uint64_t h = n * PRIME64_1;

    for (size_t i = 0; i < 8; i++)
        h += mix16(p + 16 * i, secret + 16 * i);
    h = avalanche(h);
    for (size_t i = 8; i < n / 16; i++)
        h += mix16(p + 16 * i, secret + 16 * (i - 8) + 3);
    return avalanche(h + mix16(p + n - 16, secret + 136 - 17));
}

static uint64_t hash_short(const uint8_t *p, size_t n)
{
    return n <= 16 ? hash_0_to_16(p, n) : n <= 128 ? hash_17_to_128(p, n) : hash_129_to_240(p, n);
}

/* ------------------------------------------------------------------------------------------ stripes and blocks */

static const uint64_t initial_acc[8] = {
    PRIME32_3, PRIME64_1, PRIME64_2, PRIME64_3, PRIME64_4, PRIME32_2, PRIME64_5, PRIME32_1
};

/*
 * Adds n stripes. The accumulators are a local copy, so that the compiler knows that nothing else points to them and
 * can keep them in vector registers; the pairs are for its vectoriser, which turns the exchange of neighbours into a
 * shuffle.
 */
static void accumulate(uint64_t acc[8], const uint8_t *p, const uint8_t *key, size_t n)
{
    uint64_t a[8];

    memcpy(a, acc, sizeof a);
    for (; n > 0; n--, p += STRIPE_NBYTES, key += 8) {
        for (size_t i = 0; i < 8; i += 2) {
            uint64_t data0 = ptwm_load64(p + 8 * i), data1 = ptwm_load64(p + 8 * i + 8);
            uint64_t mixed0 = data0 ^ ptwm_load64(key + 8 * i), mixed1 = data1 ^ ptwm_load64(key + 8 * i + 8);

            a[i] += data1 + (mixed0 & 0xFFFFFFFFu) * (mixed0 >> 32);
            a[i + 1] += data0 + (mixed1 & 0xFFFFFFFFu) * (mixed1 >> 32);
        }
    }
    memcpy(acc, a, sizeof a);
}

static void scramble(uint64_t acc[8])
{
    for (size_t i = 0; i < 8; i++)
        acc[i] = (acc[i] ^ acc[i] >> 47 ^ ptwm_load64(secret + 128 + 8 * i)) * PRIME32_1;
}

static void add_blocks_c99(uint64_t acc[8], const uint8_t *p, size_t n_blocks)
{
    for (; n_blocks > 0; n_blocks--, p += STRIPES_PER_BLOCK * STRIPE_NBYTES) {
        accumulate(acc, p, secret, STRIPES_PER_BLOCK);
        scramble(acc);
    }
}

#if defined(PTWM_X86)
#include "x86/xxh3_impl.h"
#elif defined(PTWM_ARM)
#include "arm/xxh3_impl.h"
#endif

/* Adds whole blocks. */
static void add_blocks(uint64_t acc[8], const uint8_t *p, size_t n_blocks)
{
#if defined(PTWM_X86)
    if (ptwm_cpu_level() == PTWM_CPU_AVX512) {
        add_blocks_avx512(acc, p, n_blocks);
        return;
    }
    if (ptwm_cpu_level() == PTWM_CPU_AVX2) {
        add_blocks_avx2(acc, p, n_blocks);
        return;
    }
#elif defined(PTWM_ARM)
    if (ptwm_cpu_level() == PTWM_CPU_NEON) {
        add_blocks_neon(acc, p, n_blocks);
        return;
    }
#endif
    add_blocks_c99(acc, p, n_blocks);
}

/* Adds n stripes, of which in_block have already been added since the last scrambling; returns the new in_block. */
static uint32_t accumulate_blocks(uint64_t acc[8], uint32_t in_block, const uint8_t *p, size_t n)
{
    size_t n_blocks;

    if (in_block > 0 && n >= STRIPES_PER_BLOCK - in_block) {
        size_t now = STRIPES_PER_BLOCK - in_block;

        accumulate(acc, p, secret + 8 * (size_t)in_block, now);
        scramble(acc);
        p += now * STRIPE_NBYTES;
        n -= now;
        in_block = 0;
    }
    n_blocks = in_block == 0 ? n / STRIPES_PER_BLOCK : 0;
    add_blocks(acc, p, n_blocks);
    p += n_blocks * STRIPES_PER_BLOCK * STRIPE_NBYTES;
    n -= n_blocks * STRIPES_PER_BLOCK;
    accumulate(acc, p, secret + 8 * (size_t)in_block, n);
    return in_block + (uint32_t)n;
}

/* Adds the last stripe and merges the accumulators. */
static uint64_t finish(uint64_t acc[8], const uint8_t *last_stripe, uint64_t total_nbytes)
{
    uint64_t h = total_nbytes * PRIME64_1;

    accumulate(acc, last_stripe, secret + 121, 1);
    for (size_t i = 0; i < 8; i += 2)
        h += fold_product(acc[i] ^ ptwm_load64(secret + 11 + 8 * i), acc[i + 1] ^ ptwm_load64(secret + 19 + 8 * i));
    return avalanche(h);
}

uint64_t ptwm_xxh3_64(const void *data, size_t nbytes)
{
    const uint8_t *p = data;
    uint64_t acc[8];

    if (nbytes <= SHORT_MAX_NBYTES)
        return hash_short(p, nbytes);
    memcpy(acc, initial_acc, sizeof acc);
    /* The stripe that holds the last byte is not added here, even if it is whole. */
    accumulate_blocks(acc, 0, p, (nbytes - 1) / STRIPE_NBYTES);
    return finish(acc, p + nbytes - STRIPE_NBYTES, nbytes);
}

uint64_t ptwm_xxh3_64_visit(const void *data, size_t nbytes, ptwm_xxh3_visit_fn visit, void *context)
{
    const uint8_t *p = data;
    size_t n_stripes, n_blocks;
    uint64_t acc[8];

    if (nbytes <= SHORT_MAX_NBYTES) {
        visit(context, p, nbytes);
        return hash_short(p, nbytes);
    }
    memcpy(acc, initial_acc, sizeof acc);
    n_stripes = (nbytes - 1) / STRIPE_NBYTES;
    for (n_blocks = n_stripes / STRIPES_PER_BLOCK; n_blocks > 0;) {
        const size_t n = n_blocks < BLOCKS_PER_VISIT ? n_blocks : BLOCKS_PER_VISIT;
        add_blocks(acc, p, n);
        visit(context, p, n * STRIPES_PER_BLOCK * STRIPE_NBYTES);
        p += n * STRIPES_PER_BLOCK * STRIPE_NBYTES;
        n_blocks -= n;
    }
    accumulate(acc, p, secret, n_stripes % STRIPES_PER_BLOCK);
    visit(context, p, nbytes - (size_t)(p - (const uint8_t *)data));
    return finish(acc, (const uint8_t *)data + nbytes - STRIPE_NBYTES, nbytes);
}

/* -------------------------------------------------------------------------------------------------- streams */

/*
 * The buffer is only emptied when more bytes follow, so that it always holds the input's last byte; when it is emptied,
 * its last 64 bytes are those that came before its new content, which the last stripe may need.
 */
#define BUFFER_NBYTES sizeof(((struct ptwm_xxh3 *)0)->buffer)

void ptwm_xxh3_init(struct ptwm_xxh3 *state)
{
    memset(state, 0, sizeof *state);
    memcpy(state->acc, initial_acc, sizeof state->acc);
}

static void consume(struct ptwm_xxh3 *state, const uint8_t *p, size_t n_stripes)
{
    state->stripes_in_block = accumulate_blocks(state->acc, state->stripes_in_block, p, n_stripes);
}

void ptwm_xxh3_update(struct ptwm_xxh3 *state, const void *data, size_t nbytes)
{
    const uint8_t *p = data;
    size_t room = BUFFER_NBYTES - state->buffered;

    if (nbytes == 0)
        return;
    state->total_nbytes += nbytes;
    if (nbytes > room) {
        memcpy(state->buffer + state->buffered, p, room);
        p += room;
        nbytes -= room;
        consume(state, state->buffer, BUFFER_NBYTES / STRIPE_NBYTES);
        state->buffered = 0;
        if (nbytes > BUFFER_NBYTES) {
            size_t n_stripes = (nbytes - 1) / STRIPE_NBYTES;

            consume(state, p, n_stripes);
            p += n_stripes * STRIPE_NBYTES;
            nbytes -= n_stripes * STRIPE_NBYTES;
            memcpy(state->buffer + BUFFER_NBYTES - STRIPE_NBYTES, p - STRIPE_NBYTES, STRIPE_NBYTES);
        }
    }
    memcpy(state->buffer + state->buffered, p, nbytes);
    state->buffered += (uint32_t)nbytes;
}

uint64_t ptwm_xxh3_digest(const struct ptwm_xxh3 *state)
{
    uint64_t acc[8];
    uint8_t last[STRIPE_NBYTES];
    size_t n = state->buffered;

    if (state->total_nbytes <= SHORT_MAX_NBYTES)
        return hash_short(state->buffer, n);
    memcpy(acc, state->acc, sizeof acc);
    if (n >= STRIPE_NBYTES) {
        accumulate_blocks(acc, state->stripes_in_block, state->buffer, (n - 1) / STRIPE_NBYTES);
        memcpy(last, state->buffer + n - STRIPE_NBYTES, STRIPE_NBYTES);
    } else {
        memcpy(last, state->buffer + BUFFER_NBYTES - (STRIPE_NBYTES - n), STRIPE_NBYTES - n);
        memcpy(last + STRIPE_NBYTES - n, state->buffer, n);
    }
    return finish(acc, last, state->total_nbytes);
}
