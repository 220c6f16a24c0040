/*
 * The packing of rest planes: FORMAT.md, section 5, "Rest packing". Plain C; the kernels must give the same bytes.
 */
#include "rest.h"

#include "bits.h"

enum { BLOCK = 512, MAX_WORDS = 320 };

uint64_t ptwm_rest_nbytes(uint64_t n, unsigned r)
{
    return n / BLOCK * 64 * r + (n % BLOCK * r + 7) / 8;
}

/* ------------------------------------------------------------------------------------------- words in memory */

static bool is_little_endian(void)
{
    const uint16_t one = 1;
    uint8_t first;
    memcpy(&first, &one, 1);
    return first == 1;
}

static void store_words(uint8_t *dst, const uint16_t *words, unsigned n_words)
{
    if (is_little_endian()) {
        memcpy(dst, words, 2 * n_words);
        return;
    }
    for (unsigned i = 0; i < n_words; i++)
        ptwm_store16(dst + 2 * i, words[i]);
}

static void load_words(uint16_t *words, const uint8_t *src, unsigned n_words)
{
    if (is_little_endian()) {
        memcpy(words, src, 2 * n_words);
        return;
    }
    for (unsigned i = 0; i < n_words; i++)
        words[i] = ptwm_load16(src + 2 * i);
}

/* ----------------------------------------------------------------------------------------- plain bit streams */

/* Blocks of 512 rests fill whole bytes, so that a plane of plain blocks is one stream from end to end. */
static void pack_stream(uint8_t *dst, const uint16_t *rest, size_t n, unsigned r)
{
    uint64_t pool = 0;
    unsigned n_bits = 0;
    for (size_t i = 0; i < n; i++) {
        pool |= (uint64_t)rest[i] << n_bits;
        n_bits += r;
        if (n_bits >= 32) {
            ptwm_store32(dst, (uint32_t)pool);
            dst += 4;
            pool >>= 32;
            n_bits -= 32;
        }
    }
    for (; n_bits > 0; n_bits = n_bits > 8 ? n_bits - 8 : 0) {
        *dst++ = (uint8_t)pool;
        pool >>= 8;
    }
}

static bool unpack_stream(uint16_t *rest, const uint8_t *src, size_t n, unsigned r)
{
    const uint16_t mask = (uint16_t)((1u << r) - 1);
    const uint8_t *end = n > 0 && r > 0 ? src + ((uint64_t)n * r + 7) / 8 : src;
    uint64_t pool = 0;
    unsigned n_bits = 0;
    for (size_t i = 0; i < n; i++) {
        if (n_bits < r && end - src >= 4) {
            pool |= (uint64_t)ptwm_load32(src) << n_bits;
            src += 4;
            n_bits += 32;
        }
        while (n_bits < r) {
            pool |= (uint64_t)*src++ << n_bits;
            n_bits += 8;
        }
        rest[i] = (uint16_t)(pool & mask);
        pool >>= r;
        n_bits -= r;
    }
    /* What was loaded and not used are the unused bits of the last byte. */
    return pool == 0;
}

/* ------------------------------------------------------------------------------------------------- 8 bits */

static void pack_block_8(uint8_t *dst, const uint16_t *rest)
{
    uint16_t words[MAX_WORDS];
    for (unsigned t = 0; t < 8; t++)
        for (unsigned i = 0; i < 32; i++) {
            unsigned a = rest[64 * t + i], b = rest[64 * t + 32 + i];
            words[32 * t + i] = (uint16_t)((a & 0x7f) | (a & 0x80) << 8 | (b & 0x7f) << 8 | (b & 0x80));
        }
    store_words(dst, words, 256);
}

static void unpack_block_8(uint16_t *rest, const uint8_t *src)
{
    uint16_t words[MAX_WORDS];
    load_words(words, src, 256);
    for (unsigned t = 0; t < 8; t++)
        for (unsigned i = 0; i < 32; i++) {
            unsigned w = words[32 * t + i];
            rest[64 * t + i] = (uint16_t)((w & 0x7f) | (w >> 8 & 0x80));
            rest[64 * t + 32 + i] = (uint16_t)((w >> 8 & 0x7f) | (w & 0x80));
        }
}

/* ------------------------------------------------------------------------------------------------- 7 bits */

static void pack_block_7(uint8_t *dst, const uint16_t *rest)
{
    uint16_t words[MAX_WORDS];
    for (unsigned t = 0; t < 7; t++)
        for (unsigned i = 0; i < 32; i++) {
            unsigned a = rest[64 * t + i], b = rest[64 * t + 32 + i];
            unsigned spare = (rest[448 + i] >> t & 1u) << 6 | (rest[480 + i] >> t & 1u) << 14;
            words[32 * t + i] = (uint16_t)((a & 0x3f) | (a & 0x40) << 9 | (b & 0x3f) << 8 | (b & 0x40) << 1 | spare);
        }
    store_words(dst, words, 224);
}

static void unpack_block_7(uint16_t *rest, const uint8_t *src)
{
    uint16_t words[MAX_WORDS];
    load_words(words, src, 224);
    memset(rest + 448, 0, 64 * sizeof(*rest));
    for (unsigned t = 0; t < 7; t++)
        for (unsigned i = 0; i < 32; i++) {
            unsigned w = words[32 * t + i];
            rest[64 * t + i] = (uint16_t)((w & 0x3f) | (w >> 9 & 0x40));
            rest[64 * t + 32 + i] = (uint16_t)((w >> 8 & 0x3f) | (w >> 1 & 0x40));
            rest[448 + i] = (uint16_t)(rest[448 + i] | (w >> 6 & 1) << t);
            rest[480 + i] = (uint16_t)(rest[480 + i] | (w >> 14 & 1) << t);
        }
}

/* ------------------------------------------------------------------------------------------------ 10 bits */

/* Where bits 9 and 8 of the m-th of the eight rests that share a word lie in it. */
static const uint8_t high_position[8] = { 15, 14, 13, 12, 11, 10, 9, 0 };
static const uint8_t low_position[8] = { 8, 7, 6, 5, 4, 3, 2, 1 };

static void pack_block_10(uint8_t *dst, const uint16_t *rest)
{
    uint16_t words[MAX_WORDS] = { 0 };
    for (unsigned g = 0; g < 2; g++)
        for (unsigned m = 0; m < 8; m++)
            for (unsigned i = 0; i < 32; i++) {
                unsigned a = rest[256 * g + 32 * m + i];
                words[32 * g + i] = (uint16_t)(words[32 * g + i] | (a >> 9 & 1) << high_position[m] |
                                               (a >> 8 & 1) << low_position[m]);
            }
    for (unsigned t = 0; t < 8; t++)
        for (unsigned i = 0; i < 32; i++)
            words[64 + 32 * t + i] = (uint16_t)((rest[64 * t + i] & 255u) | (rest[64 * t + 32 + i] & 255u) << 8);
    store_words(dst, words, 320);
}

static void unpack_block_10(uint16_t *rest, const uint8_t *src)
{
    uint16_t words[MAX_WORDS];
    load_words(words, src, 320);
    for (unsigned t = 0; t < 8; t++)
        for (unsigned i = 0; i < 32; i++) {
            rest[64 * t + i] = words[64 + 32 * t + i] & 255;
            rest[64 * t + 32 + i] = words[64 + 32 * t + i] >> 8;
        }
    for (unsigned g = 0; g < 2; g++)
        for (unsigned m = 0; m < 8; m++)
            for (unsigned i = 0; i < 32; i++) {
                unsigned w = words[32 * g + i];
                uint16_t *a = &rest[256 * g + 32 * m + i];
                *a = (uint16_t)(*a | (w >> high_position[m] & 1) << 9 | (w >> low_position[m] & 1) << 8);
            }
}

/* ------------------------------------------------------------------------------------------------- 3 bits */

/* Bits 2, 1, 0 of a rest at bits 7, 1, 0 of a byte, or at bits 6, 3, 2. */
static unsigned spread_outer(unsigned a)
{
    return (a & 4) << 5 | (a & 3);
}

static unsigned spread_inner(unsigned a)
{
    return (a & 4) << 4 | (a & 3) << 2;
}

static void pack_block_3(uint8_t *dst, const uint16_t *rest)
{
    for (unsigned i = 0; i < 64; i++) {
        unsigned a = rest[384 + i], b = rest[448 + i];
        unsigned middle[3];
        middle[0] = (a & 4) << 3 | (a & 1) << 4;
        middle[1] = (b & 4) << 3 | (b & 1) << 4;
        middle[2] = (a & 2) << 4 | (b & 2) << 3;
        for (unsigned q = 0; q < 3; q++)
            dst[64 * q + i] =
                (uint8_t)(spread_outer(rest[64 * q + i]) | spread_inner(rest[192 + 64 * q + i]) | middle[q]);
    }
}

static void unpack_block_3(uint16_t *rest, const uint8_t *src)
{
    for (unsigned i = 0; i < 64; i++) {
        for (unsigned q = 0; q < 3; q++) {
            unsigned w = src[64 * q + i];
            rest[64 * q + i] = (uint16_t)((w >> 5 & 4) | (w & 3));
            rest[192 + 64 * q + i] = (uint16_t)((w >> 4 & 4) | (w >> 2 & 3));
        }
        unsigned w0 = src[i], w1 = src[64 + i], w2 = src[128 + i];
        rest[384 + i] = (uint16_t)((w0 >> 3 & 4) | (w2 >> 4 & 2) | (w0 >> 4 & 1));
        rest[448 + i] = (uint16_t)((w1 >> 3 & 4) | (w2 >> 3 & 2) | (w1 >> 4 & 1));
    }
}

/* ------------------------------------------------------------------------------------------------- 2 bits */

static void pack_block_2(uint8_t *dst, const uint16_t *rest)
{
    memset(dst, 0, 128);
    for (unsigned v = 0; v < 8; v++)
        for (unsigned i = 0; i < 64; i++) {
            unsigned a = rest[64 * v + i];
            uint8_t *byte = &dst[64 * (v / 4) + i];
            *byte = (uint8_t)(*byte | (a & 2) << 6 >> v % 4 | (a & 1) << v % 4);
        }
}

static void unpack_block_2(uint16_t *rest, const uint8_t *src)
{
    for (unsigned v = 0; v < 8; v++)
        for (unsigned i = 0; i < 64; i++) {
            unsigned w = src[64 * (v / 4) + i];
            rest[64 * v + i] = (uint16_t)((w << v % 4 >> 6 & 2) | (w >> v % 4 & 1));
        }
}

/* ------------------------------------------------------------------------------------------------- planes */

void ptwm_rest_pack(uint8_t *packed, const uint16_t *rest, size_t n, unsigned r)
{
    void (*pack_block)(uint8_t *, const uint16_t *) = r == 8    ? pack_block_8
                                                      : r == 7  ? pack_block_7
                                                      : r == 10 ? pack_block_10
                                                      : r == 3  ? pack_block_3
                                                      : r == 2  ? pack_block_2
                                                                : NULL;
    if (pack_block != NULL) {
        for (; n >= BLOCK; n -= BLOCK, rest += BLOCK, packed += 64 * r)
            pack_block(packed, rest);
    }
    pack_stream(packed, rest, n, r);
}

bool ptwm_rest_unpack(uint16_t *rest, const uint8_t *packed, size_t n, unsigned r)
{
    void (*unpack_block)(uint16_t *, const uint8_t *) = r == 8    ? unpack_block_8
                                                        : r == 7  ? unpack_block_7
                                                        : r == 10 ? unpack_block_10
                                                        : r == 3  ? unpack_block_3
                                                        : r == 2  ? unpack_block_2
                                                                  : NULL;
    if (unpack_block != NULL) {
        for (; n >= BLOCK; n -= BLOCK, rest += BLOCK, packed += 64 * r)
            unpack_block(rest, packed);
    }
    return unpack_stream(rest, packed, n, r);
}
