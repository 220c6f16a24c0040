/*
 * CRC-32C, eight bytes at a time: by linearity the register after eight bytes is the exclusive or of what each of them
 * alone gives, which tables hold ("slicing by 8"). Loads are little-endian on every machine.
 */
#include "bits.h"
#include "crc32c_tables.h"
#include "ptwm.h"

uint32_t ptwm_crc32c(uint32_t crc, const void *data, size_t nbytes)
{
    const uint32_t (*t)[256] = ptwm_crc32c_tables;
    const uint8_t *p = data;

    crc = ~crc;
    for (; nbytes >= 8; nbytes -= 8, p += 8) {
        uint32_t a = ptwm_load32(p) ^ crc;
        uint32_t b = ptwm_load32(p + 4);

        crc = t[7][a & 255] ^ t[6][a >> 8 & 255] ^ t[5][a >> 16 & 255] ^ t[4][a >> 24] ^
              t[3][b & 255] ^ t[2][b >> 8 & 255] ^ t[1][b >> 16 & 255] ^ t[0][b >> 24];
    }
    for (; nbytes > 0; nbytes--)
        crc = crc >> 8 ^ t[0][(crc ^ *p++) & 255];
    return ~crc;
}
