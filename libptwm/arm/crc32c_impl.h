/*
 * CRC-32C on aarch64 with the crc32c instructions.
 */
#include <arm_acle.h>

#if defined(__clang__)
#define TARGET_ARM_CRC __attribute__((target("crc")))
#else
#define TARGET_ARM_CRC __attribute__((target("+crc")))
#endif

TARGET_ARM_CRC static uint32_t crc32c_neon(uint32_t crc, const uint8_t *p, size_t nbytes)
{
    for (; nbytes >= 8; nbytes -= 8, p += 8)
        crc = __crc32cd(crc, ptwm_load64(p));
    for (; nbytes > 0; nbytes--)
        crc = __crc32cb(crc, *p++);
    return crc;
}
