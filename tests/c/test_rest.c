/*
 * The packing of rests against a slow transcription of FORMAT.md's text, for every width and many lengths.
 */
#include "rest.h"

#include "bits.h"
#include "check.h"

enum { MAX_N = 1100 };

static unsigned bit(unsigned value, unsigned i)
{
    return value >> i & 1;
}

static unsigned swap_bytes(unsigned word)
{
    return (word >> 8 | word << 8) & 0xffff;
}

/* "P moves bit r - 1 to bit 15 and keeps the bits below." */
static unsigned move_top(unsigned rest, unsigned r)
{
    return bit(rest, r - 1) << 15 | (rest & ((1u << (r - 1)) - 1));
}

static void slow_block_8(uint8_t *dst, const uint16_t *R)
{
    for (unsigned t = 0; t < 8; t++)
        for (unsigned i = 0; i < 32; i++)
            ptwm_store16(dst + 2 * (32 * t + i),
                         (uint16_t)(move_top(R[64 * t + i], 8) | swap_bytes(move_top(R[64 * t + 32 + i], 8))));
}

static void slow_block_7(uint8_t *dst, const uint16_t *R)
{
    for (unsigned t = 0; t < 7; t++)
        for (unsigned i = 0; i < 32; i++) {
            unsigned word = move_top(R[64 * t + i], 7) | swap_bytes(move_top(R[64 * t + 32 + i], 7));
            word |= bit(R[448 + i], t) << 6 | bit(R[480 + i], t) << 14;
            ptwm_store16(dst + 2 * (32 * t + i), (uint16_t)word);
        }
}

static void slow_block_10(uint8_t *dst, const uint16_t *R)
{
    for (unsigned g = 0; g < 2; g++)
        for (unsigned i = 0; i < 32; i++) {
            unsigned word = 0, last = R[256 * g + 224 + i];
            for (unsigned m = 0; m < 7; m++)
                word |= bit(R[256 * g + 32 * m + i], 9) << (15 - m) | bit(R[256 * g + 32 * m + i], 8) << (8 - m);
            word |= bit(last, 9) | bit(last, 8) << 1;
            ptwm_store16(dst + 2 * (32 * g + i), (uint16_t)word);
        }
    for (unsigned t = 0; t < 8; t++)
        for (unsigned i = 0; i < 32; i++) {
            dst[2 * (64 + 32 * t + i)] = (uint8_t)R[64 * t + i];
            dst[2 * (64 + 32 * t + i) + 1] = (uint8_t)R[64 * t + 32 + i];
        }
}

static void slow_block_3(uint8_t *dst, const uint16_t *R)
{
    for (unsigned q = 0; q < 3; q++)
        for (unsigned i = 0; i < 64; i++) {
            unsigned a = R[64 * q + i], b = R[192 + 64 * q + i], byte;
            byte = bit(a, 2) << 7 | bit(a, 1) << 1 | bit(a, 0) | bit(b, 2) << 6 | bit(b, 1) << 3 | bit(b, 0) << 2;
            if (q == 0)
                byte |= bit(R[384 + i], 2) << 5 | bit(R[384 + i], 0) << 4;
            if (q == 1)
                byte |= bit(R[448 + i], 2) << 5 | bit(R[448 + i], 0) << 4;
            if (q == 2)
                byte |= bit(R[384 + i], 1) << 5 | bit(R[448 + i], 1) << 4;
            dst[64 * q + i] = (uint8_t)byte;
        }
}

static void slow_block_2(uint8_t *dst, const uint16_t *R)
{
    memset(dst, 0, 128);
    for (unsigned v = 0; v < 8; v++)
        for (unsigned i = 0; i < 64; i++) {
            unsigned byte = dst[64 * (v / 4) + i];
            byte |= bit(R[64 * v + i], 1) << (7 - v % 4) | bit(R[64 * v + i], 0) << v % 4;
            dst[64 * (v / 4) + i] = (uint8_t)byte;
        }
}

static void slow_stream(uint8_t *dst, const uint16_t *R, size_t n, unsigned r)
{
    memset(dst, 0, (n * r + 7) / 8);
    for (size_t k = 0; k < n * r; k++)
        dst[k / 8] = (uint8_t)(dst[k / 8] | bit(R[k / r], (unsigned)(k % r)) << k % 8);
}

static void slow_pack(uint8_t *dst, const uint16_t *R, size_t n, unsigned r)
{
    for (; n >= 512; n -= 512, R += 512, dst += 64 * r) {
        if (r == 8)
            slow_block_8(dst, R);
        else if (r == 7)
            slow_block_7(dst, R);
        else if (r == 10)
            slow_block_10(dst, R);
        else if (r == 3)
            slow_block_3(dst, R);
        else if (r == 2)
            slow_block_2(dst, R);
        else
            slow_stream(dst, R, 512, r);
    }
    slow_stream(dst, R, n, r);
}

/* Memory of exactly that size, so that the sanitizer sees every overrun. */
static void *exactly(size_t nbytes)
{
    return malloc(nbytes > 0 ? nbytes : 1);
}

static void check_one(const uint16_t *values, size_t n, unsigned r)
{
    size_t nbytes = n / 512 * 64 * r + (n % 512 * r + 7) / 8;
    uint16_t *rest = exactly(2 * n), *back = exactly(2 * n);
    uint8_t *packed = exactly(nbytes), *expected = exactly(nbytes);
    for (size_t i = 0; i < n; i++)
        rest[i] = (uint16_t)(values[i] & ((1u << r) - 1));
    CHECK_EQ(ptwm_rest_nbytes(n, r), nbytes);
    memset(packed, 0xa5, nbytes);
    ptwm_rest_pack(packed, rest, n, r);
    slow_pack(expected, rest, n, r);
    CHECK(memcmp(packed, expected, nbytes) == 0);
    memset(back, 0xa5, 2 * n);
    CHECK(ptwm_rest_unpack(back, packed, n, r));
    CHECK(memcmp(back, rest, 2 * n) == 0);
    for (unsigned i = (unsigned)(n % 512 * r % 8); i > 0 && i < 8; i++) {
        packed[nbytes - 1] ^= (uint8_t)(1u << i);
        CHECK(!ptwm_rest_unpack(back, packed, n, r));
        packed[nbytes - 1] ^= (uint8_t)(1u << i);
    }
    free(rest);
    free(back);
    free(packed);
    free(expected);
}

static void every_width_and_length(void)
{
    uint64_t state = 1;
    uint16_t values[MAX_N];
    for (unsigned i = 0; i < MAX_N; i++)
        values[i] = (uint16_t)check_random(&state);
    for (unsigned r = 0; r <= 15; r++)
        for (size_t n = 0; n <= MAX_N; n++)
            check_one(values, n, r);
}

/* Each bit of each rest of a block has a place of its own. */
static void every_single_bit(void)
{
    for (unsigned r = 1; r <= 15; r++)
        for (unsigned i = 0; i < 512; i += 7) {
            uint16_t values[512] = { 0 };
            values[i] = (uint16_t)(1u << i % r);
            check_one(values, 512, r);
        }
}

int main(void)
{
    RUN(every_width_and_length);
    RUN(every_single_bit);
    CHECK_EXIT();
}
