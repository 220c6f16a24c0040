/*
 * Byte planes of 2, 4 and 8 bytes an element on aarch64, by loads and stores that interleave.
 */
#include <arm_neon.h>

static size_t split_neon(uint8_t *const *planes, const uint8_t *from, size_t n, unsigned width)
{
    size_t i = 0;

    if (width == 2) {
        for (; n - i >= 16; i += 16) {
            const uint8x16x2_t x = vld2q_u8(from + 2 * i);
            vst1q_u8(planes[0] + i, x.val[0]);
            vst1q_u8(planes[1] + i, x.val[1]);
        }
    } else if (width == 4) {
        for (; n - i >= 16; i += 16) {
            const uint8x16x4_t x = vld4q_u8(from + 4 * i);
            for (unsigned b = 0; b < 4; b++)
                vst1q_u8(planes[b] + i, x.val[b]);
        }
    } else if (width == 8) {
        for (; n - i >= 16; i += 16) {
            const uint8x16x4_t x = vld4q_u8(from + 8 * i), y = vld4q_u8(from + 8 * i + 64);
            for (unsigned b = 0; b < 4; b++) {
                vst1q_u8(planes[b] + i, vuzp1q_u8(x.val[b], y.val[b]));
                vst1q_u8(planes[b + 4] + i, vuzp2q_u8(x.val[b], y.val[b]));
            }
        }
    }
    return i;
}

static size_t merge_neon(uint8_t *to, const uint8_t *const *planes, size_t n, unsigned width)
{
    size_t i = 0;

    if (width == 2) {
        for (; n - i >= 16; i += 16) {
            const uint8x16x2_t x = { { vld1q_u8(planes[0] + i), vld1q_u8(planes[1] + i) } };
            vst2q_u8(to + 2 * i, x);
        }
    } else if (width == 4) {
        for (; n - i >= 16; i += 16) {
            const uint8x16x4_t x = { { vld1q_u8(planes[0] + i), vld1q_u8(planes[1] + i), vld1q_u8(planes[2] + i),
                                       vld1q_u8(planes[3] + i) } };
            vst4q_u8(to + 4 * i, x);
        }
    } else if (width == 8) {
        for (; n - i >= 16; i += 16) {
            uint8x16x4_t x, y;
            for (unsigned b = 0; b < 4; b++) {
                const uint8x16_t first = vld1q_u8(planes[b] + i), second = vld1q_u8(planes[b + 4] + i);
                x.val[b] = vzip1q_u8(first, second);
                y.val[b] = vzip2q_u8(first, second);
            }
            vst4q_u8(to + 8 * i, x);
            vst4q_u8(to + 8 * i + 64, y);
        }
    }
    return i;
}
