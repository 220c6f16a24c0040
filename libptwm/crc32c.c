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

/*
 * 16 bytes at a time: by linearity the register after 16 bytes is the exclusive or of what each of them alone gives, which
 * tables hold ("slicing by 16"; 1.5 times as fast as by 8). Loads are little-endian on every machine.
 */
static uint32_t crc32c_c99(uint32_t crc, const uint8_t *p, size_t nbytes)
{
    for (; nbytes >= 16; nbytes -= 16, p += 16)
        crc = crc32c_of_4(ptwm_load32(p) ^ crc, 12) ^ crc32c_of_4(ptwm_load32(p + 4), 8) ^
              crc32c_of_4(ptwm_load32(p + 8), 4) ^ crc32c_of_4(ptwm_load32(p + 12), 0);
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
