/*
 * SHA-256 (FIPS 180-4), plainly: golden files are not compared by a hash that the library has a hand in.
 */
#ifndef SHA256_H
#define SHA256_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* The first 32 bits of the fractional part of the n-th root (2 or 3) of the first primes, by integer arithmetic. */
static inline uint32_t sha256_root_bits(uint32_t prime, unsigned n)
{
    uint64_t root = 0; /* in units of 2^-32; its integral part has four bits at most */

    for (unsigned bit = 36; bit-- > 0;) {
        const uint64_t tried = root | (uint64_t)1 << bit;
        /* tried^n <= prime * 2^(32 n), in pieces of 32 bits */
        uint32_t power[5] = { 1 }, limit[5] = { 0 };
        int order = 0;
        for (unsigned i = 0; i < n; i++) {
            uint32_t next[5] = { 0 };
            for (unsigned a = 0; a < 5; a++) {
                uint64_t carry = 0;
                for (unsigned b = 0; a + b < 5; b++) {
                    const uint64_t factor = b == 0 ? tried & 0xFFFFFFFF : b == 1 ? tried >> 32 : 0;
                    const uint64_t sum = next[a + b] + power[a] * factor + carry;
                    next[a + b] = (uint32_t)sum;
                    carry = sum >> 32;
                }
            }
            memcpy(power, next, sizeof power);
        }
        limit[n] = prime;
        for (unsigned i = 5; i-- > 0 && order == 0;)
            order = power[i] < limit[i] ? -1 : power[i] > limit[i];
        if (order <= 0)
            root = tried;
    }
    return (uint32_t)root;
}

struct sha256_constants {
    uint32_t first[8], round[64];
};

static inline const struct sha256_constants *sha256_get_constants(void)
{
    static struct sha256_constants constants;
    uint32_t n = 0;

    for (uint32_t p = 2; constants.round[63] == 0; p++) {
        uint32_t d = 2;
        while (d * d <= p && p % d != 0)
            d++;
        if (d * d <= p)
            continue;
        if (n < 8)
            constants.first[n] = sha256_root_bits(p, 2);
        constants.round[n++] = sha256_root_bits(p, 3);
    }
    return &constants;
}

static inline uint32_t sha256_rotate(uint32_t x, unsigned n)
{
    return x >> n | x << (32 - n);
}

static inline void sha256_block(uint32_t state[8], const uint8_t block[64])
{
    const uint32_t *k = sha256_get_constants()->round;
    uint32_t w[64], v[8];

    for (unsigned i = 0; i < 16; i++)
        w[i] = (uint32_t)block[4 * i] << 24 | (uint32_t)block[4 * i + 1] << 16 | (uint32_t)block[4 * i + 2] << 8 |
               block[4 * i + 3];
    for (unsigned i = 16; i < 64; i++) {
        const uint32_t a = w[i - 15], b = w[i - 2];
        w[i] = w[i - 16] + (sha256_rotate(a, 7) ^ sha256_rotate(a, 18) ^ a >> 3) + w[i - 7] +
               (sha256_rotate(b, 17) ^ sha256_rotate(b, 19) ^ b >> 10);
    }
    memcpy(v, state, sizeof v);
    for (unsigned i = 0; i < 64; i++) {
        const uint32_t a = v[0], e = v[4];
        const uint32_t t1 = v[7] + (sha256_rotate(e, 6) ^ sha256_rotate(e, 11) ^ sha256_rotate(e, 25)) +
                            ((e & v[5]) ^ (~e & v[6])) + k[i] + w[i];
        const uint32_t t2 = (sha256_rotate(a, 2) ^ sha256_rotate(a, 13) ^ sha256_rotate(a, 22)) +
                            ((a & v[1]) ^ (a & v[2]) ^ (v[1] & v[2]));
        memmove(v + 1, v, 7 * sizeof v[0]);
        v[4] += t1;
        v[0] = t1 + t2;
    }
    for (unsigned i = 0; i < 8; i++)
        state[i] += v[i];
}

/* The hash of nbytes bytes as 64 lower-case hexadecimal digits and a NUL. */
static inline void sha256_hex(const void *data, size_t nbytes, char hex[65])
{
    const uint8_t *bytes = data;
    uint8_t last[128] = { 0 };
    uint32_t state[8];
    const size_t n_left = nbytes % 64, last_nbytes = n_left < 56 ? 64 : 128;

    memcpy(state, sha256_get_constants()->first, sizeof state);
    for (size_t i = 0; i < nbytes / 64; i++)
        sha256_block(state, bytes + 64 * i);
    if (n_left > 0)
        memcpy(last, bytes + nbytes - n_left, n_left);
    last[n_left] = 0x80;
    for (unsigned i = 0; i < 8; i++)
        last[last_nbytes - 1 - i] = (uint8_t)((uint64_t)nbytes * 8 >> 8 * i);
    for (size_t i = 0; i < last_nbytes; i += 64)
        sha256_block(state, last + i);
    for (unsigned i = 0; i < 64; i++)
        hex[i] = "0123456789abcdef"[state[i / 8] >> (28 - 4 * (i % 8)) & 15];
    hex[64] = 0;
}

#endif
