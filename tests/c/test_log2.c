/*
 * Logarithms in fixed point, on which the choices of the encoder rest.
 */
#include "check.h"
#include "log2_fixed.h"

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
    RUN(test_log2);
    RUN(test_entropy);
    CHECK_EXIT();
}
