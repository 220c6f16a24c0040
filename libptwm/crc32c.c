/*
 * CRC-32C: the plain version, the choice among versions, and the function that everybody calls.
 *
 * A version takes and returns the CRC register as it is, without the inversions at both ends.
 */
#include "bits.h"
#include "cpu_features.h"
#include "crc32c_tables.h"
#include "ptwm.h"

/* What four bytes contribute to the register that n more bytes behind them leave. */
static inline uint32_t crc32c_of_4(uint32_t word, unsigned n)
{
    const uint32_t (*t)[256] = ptwm_crc32c_tables + n;

    return t[3][word & 255] ^ t[2][word >> 8 & 255] ^ t[1][word >> 16 & 255] ^ t[0][word >> 24];
}

enum { HALF_NBYTES = 256 }; /* of tools/gen_crc32c_tables.py */

/*
 * 16 bytes: by linearity the register after them is the exclusive or of what each of them alone gives, which tables hold
 * ("slicing by 16"; 1.5 times as fast as by 8). Loads are little-endian on every machine.
 */
static inline uint32_t crc32c_of_16(uint32_t crc, const uint8_t *p)
{
    return crc32c_of_4(ptwm_load32(p) ^ crc, 12) ^ crc32c_of_4(ptwm_load32(p + 4), 8) ^
           crc32c_of_4(ptwm_load32(p + 8), 4) ^ crc32c_of_4(ptwm_load32(p + 12), 0);
}

/* What the register becomes over HALF_NBYTES zero bytes. */
static inline uint32_t crc32c_shift(uint32_t crc)
{
    return ptwm_crc32c_shift[0][crc & 255] ^ ptwm_crc32c_shift[1][crc >> 8 & 255] ^ ptwm_crc32c_shift[2][crc >> 16 & 255] ^
           ptwm_crc32c_shift[3][crc >> 24];
}

/* Each look-up waits for the one before: two halves at a time, whose registers do not depend on each other. */
static uint32_t crc32c_c99(uint32_t crc, const uint8_t *p, size_t nbytes)
{
    for (; nbytes >= 2 * HALF_NBYTES; nbytes -= 2 * HALF_NBYTES, p += 2 * HALF_NBYTES) {
        uint32_t second = 0;
        for (size_t i = 0; i < HALF_NBYTES; i += 16) {
            crc = crc32c_of_16(crc, p + i);
            second = crc32c_of_16(second, p + HALF_NBYTES + i);
        }
        crc = crc32c_shift(crc) ^ second;
    }
    for (; nbytes >= 16; nbytes -= 16, p += 16)
        crc = crc32c_of_16(crc, p);
    for (; nbytes > 0; nbytes--)
        crc = crc >> 8 ^ ptwm_crc32c_tables[0][(crc ^ *p++) & 255];
    return crc;
}

#if defined(PTWM_X86)
#include "x86/crc32c_impl.h"
#elif defined(PTWM_ARM)
#include "arm/crc32c_impl.h"
#endif

uint32_t ptwm_crc32c(uint32_t crc, const void *data, size_t nbytes)
{
    switch (ptwm_cpu_level()) {
#if defined(PTWM_X86)
    case PTWM_CPU_AVX512: return ~crc32c_avx512(~crc, data, nbytes);
    case PTWM_CPU_AVX2:
    case PTWM_CPU_SSE42: return ~crc32c_sse42(~crc, data, nbytes);
#elif defined(PTWM_ARM)
    case PTWM_CPU_NEON: return ~crc32c_neon(~crc, data, nbytes);
#endif
    default: return ~crc32c_c99(~crc, data, nbytes);
    }
}
