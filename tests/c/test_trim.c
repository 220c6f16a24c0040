/*
 * The trim codec: round trips with every t, its exact lengths, and malformed input.
 */
#include "trim.h"

#include "bits.h"
#include "check.h"

static void *exactly(size_t nbytes)
{
    return malloc(nbytes > 0 ? nbytes : 1);
}

/* Decodes from a copy of exactly that size. */
static enum ptwm_status decode(uint8_t *plane, size_t n, const uint8_t *src, size_t src_nbytes)
{
    struct ptwm_error error = PTWM_ERROR_INIT;
    uint8_t *copy = exactly(src_nbytes);
    enum ptwm_status status;
    memcpy(copy, src, src_nbytes);
    status = ptwm_trim_decode(plane, n, copy, src_nbytes, &error);
    CHECK_EQ(status, error.status);
    free(copy);
    return status;
}

/* Random elements whose low bits are zero: t bits in unit number u for t = zeros[u]. */
static uint8_t *make_plane(size_t n, uint32_t unit, const uint8_t *zeros, uint64_t *state)
{
    uint8_t *plane = exactly(2 * n);
    for (size_t i = 0; i < n; i++) {
        unsigned t = zeros[i / unit];
        unsigned value = (unsigned)(check_random(state) & 0xffff) >> t << t;
        if (i % unit == 0 && t < 16)
            value |= 1u << t;
        ptwm_store16(plane + 2 * i, (uint16_t)value);
    }
    return plane;
}

static uint64_t expected_nbytes(size_t n, uint32_t unit, const uint8_t *zeros)
{
    size_t n_units = (n + unit - 1) / unit, run = 1;
    uint64_t nbytes = ptwm_varint_nbytes(unit);
    for (size_t u = 0; u < n_units; u++) {
        size_t m = u == n_units - 1 ? n - u * unit : unit;
        nbytes += (m * (16u - zeros[u]) + 7) / 8;
        if (u + 1 < n_units && zeros[u + 1] == zeros[u]) {
            run++;
            continue;
        }
        nbytes += ptwm_varint_nbytes(run) + 1;
        run = 1;
    }
    return nbytes;
}

static void round_trip(size_t n, uint32_t unit, const uint8_t *zeros, uint64_t *state)
{
    uint8_t *plane = make_plane(n, unit, zeros, state), *back = exactly(2 * n);
    size_t nbytes = (size_t)ptwm_trim_nbytes(plane, n, unit);
    uint8_t *coded = exactly(nbytes + 1);
    CHECK_EQ(nbytes, expected_nbytes(n, unit, zeros));
    coded[nbytes] = 0x5a;
    ptwm_trim_encode(coded, plane, n, unit);
    CHECK_EQ(coded[nbytes], 0x5a);
    CHECK_EQ(decode(back, n, coded, nbytes), PTWM_OK);
    CHECK(memcmp(back, plane, 2 * n) == 0);
    CHECK_EQ(decode(back, n, coded, nbytes - 1), PTWM_ERR_PLANE);
    CHECK_EQ(decode(back, n, coded, nbytes + 1), PTWM_ERR_PLANE);
    free(plane);
    free(back);
    free(coded);
}

static void every_t(void)
{
    static const uint32_t units[] = { 128, 384, 512 };
    uint64_t state = 1;
    for (unsigned u = 0; u < 3; u++)
        for (unsigned t = 0; t <= 16; t++)
            for (size_t n = 1; n <= 1200; n += n < 140 ? 1 : 37) {
                uint8_t zeros[16];
                memset(zeros, (int)t, sizeof(zeros));
                round_trip(n, units[u], zeros, &state);
            }
}

static void many_runs(void)
{
    static const uint32_t units[] = { 128, 384, 512, 4096, 1 << 20 };
    uint64_t state = 2;
    for (unsigned k = 0; k < 200; k++) {
        uint8_t zeros[512];
        size_t n = 1 + check_random(&state) % 60000;
        for (unsigned u = 0; u < 512; u++)
            zeros[u] = u > 0 && check_random(&state) % 4 != 0 ? zeros[u - 1] : (uint8_t)(check_random(&state) % 17);
        round_trip(n, units[k % 5], zeros, &state);
    }
}

struct bad_case {
    const char *bytes;
    size_t nbytes;
};

static void malformed_heads(void)
{
    /* For 300 elements: two units of 256, all zeros: unit 256, then a run of two with t = 16. */
    static const struct bad_case cases[] = {
        { "", 0 },
        { "\x80", 1 },
        { "\x00\x02\x10", 3 },             /* unit 0 */
        { "\x01\x02\x10", 3 },             /* unit 1 */
        { "\x80\x03\x01", 3 },             /* unit 384, a run without t */
        { "\x81\x02\x02\x10", 4 },         /* unit 257 */
        { "\x80\x80\x41\x01\x10", 5 },     /* a unit of 2^20 + 2^14 */
        { "\x80\x82\x00\x02\x10", 5 },     /* unit 256, not minimal */
        { "\x80\x02\x00\x10\x02\x10", 6 }, /* an empty run */
        { "\x80\x02\x03\x10", 4 },         /* too many units */
        { "\x80\x02\x01\x10", 4 },         /* too few */
        { "\x80\x02\x01\x10\x01\x10", 6 }, /* equal neighbours */
        { "\x80\x02\x02\x11", 4 },         /* t = 17 */
        { "\x80\x02\x02\x10\x00", 5 },     /* a byte left over */
        { "\x80\x02\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x10", 13 },
    };
    uint8_t plane[600];
    CHECK_EQ(decode(plane, 300, (const uint8_t *)"\x80\x02\x02\x10", 4), PTWM_OK);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        CHECK_EQ(decode(plane, 300, (const uint8_t *)cases[i].bytes, cases[i].nbytes), PTWM_ERR_PLANE);
}

static void unused_bits(void)
{
    /* One element with t = 3: 13 bits in two bytes. */
    uint8_t coded[] = { 0x80, 0x01, 1, 3, 0xff, 0x1f }, plane[2];
    CHECK_EQ(decode(plane, 1, coded, 6), PTWM_OK);
    CHECK_EQ(ptwm_load16(plane), 0xfff8);
    for (unsigned i = 5; i < 8; i++) {
        coded[5] = (uint8_t)(0x1f | 1u << i);
        CHECK_EQ(decode(plane, 1, coded, 6), PTWM_ERR_PLANE);
    }
}

static void hostile(void)
{
    uint64_t state = 3;
    uint8_t zeros[64], *plane, *back, *coded;
    size_t n = 1500, nbytes;
    for (unsigned u = 0; u < 64; u++)
        zeros[u] = (uint8_t)(u % 17);
    plane = make_plane(n, 128, zeros, &state);
    back = exactly(2 * n);
    nbytes = (size_t)ptwm_trim_nbytes(plane, n, 128);
    coded = exactly(nbytes);
    ptwm_trim_encode(coded, plane, n, 128);
    for (size_t k = 0; k < nbytes; k++)
        CHECK_EQ(decode(back, n, coded, k), PTWM_ERR_PLANE);
    for (size_t k = 0; k < nbytes; k++)
        for (unsigned flip = 1; flip < 256; flip += k < 40 ? 1 : 51) {
            coded[k] ^= (uint8_t)flip;
            decode(back, n, coded, nbytes);
            coded[k] ^= (uint8_t)flip;
        }
    for (unsigned k = 0; k < 20000; k++) {
        size_t m = check_random(&state) % 40;
        uint8_t noise[40];
        for (size_t i = 0; i < m; i++)
            noise[i] = (uint8_t)(check_random(&state) % (i % 3 == 0 ? 256 : 20));
        if (m > 2)
            memcpy(noise, "\x80\x01", 2);
        decode(back, 1 + check_random(&state) % n, noise, m);
    }
    free(plane);
    free(back);
    free(coded);
}

int main(void)
{
    RUN(every_t);
    RUN(many_runs);
    RUN(malformed_heads);
    RUN(unused_bits);
    RUN(hostile);
    CHECK_EXIT();
}
