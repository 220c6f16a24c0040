/*
 * CRC-32C: the plain version, the choice among versions, and the function that everybody calls.
 *
 * A version takes and returns the CRC register as it is, without the inversions at both ends.
 */
#include "bits.h"
#include "cpu_features.h"
#include "crc32c_tables.h"
#include "ptwm.h"

/*
 * Eight bytes at a time: by linearity the register after eight bytes is the exclusive or of what each of them alone gives,
 * which tables hold ("slicing by 8"). Loads are little-endian on every machine.
 */
static uint32_t crc32c_c99(uint32_t crc, const uint8_t *p, size_t nbytes)
{
    const uint32_t (*t)[256] = ptwm_crc32c_tables;

    for (; nbytes >= 8; nbytes -= 8, p += 8) {
        uint32_t a = ptwm_load32(p) ^ crc;
        uint32_t b = ptwm_load32(p + 4);

        crc = t[7][a & 255] ^ t[6][a >> 8 & 255] ^ t[5][a >> 16 & 255] ^ t[4][a >> 24] ^
              t[3][b & 255] ^ t[2][b >> 8 & 255] ^ t[1][b >> 16 & 255] ^ t[0][b >> 24];
    }
    for (; nbytes > 0; nbytes--)
        crc = crc >> 8 ^ t[0][(crc ^ *p++) & 255];
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
