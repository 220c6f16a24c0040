/*
 * The kernels of float_split.c for NEON, but for counting and the rests of float16 and float8, for which there are only
 * the plain loops. Whole vectors here, what is left by the plain versions. Tested under emulation; not measured.
 */
#include <arm_neon.h>

#define INLINE static inline __attribute__((always_inline))

/* 8 units of elements of 2 or 4 bytes. */
INLINE uint16x8_t units_neon(const uint8_t *raw, unsigned width)
{
    const uint16x8_t first = vreinterpretq_u16_u8(vld1q_u8(raw));
    return width == 2 ? first : vuzp2q_u16(first, vreinterpretq_u16_u8(vld1q_u8(raw + 16)));
}

/* ------------------------------------------------------------------------------------------------- bins, labels */

INLINE uint8x8_t bins_of_8(struct ptwm_float_step s, const uint8_t *raw, uint16_t first, const uint16_t *shift)
{
    uint16x8_t symbol = vshlq_u16(units_neon(raw, s.width), vdupq_n_s16((int16_t)-s.shift)), bin;

    if (shift != NULL)
        symbol = vsubq_u16(symbol, vld1q_u16(shift));
    symbol = vandq_u16(symbol, vdupq_n_u16((uint16_t)((1u << s.bits) - 1)));
    bin = vminq_u16(vsubq_u16(symbol, vdupq_n_u16(first)), vdupq_n_u16(PTWM_OTHER_BIN));
    /* No symbol 0 is in the range, so its bin is OTHER_BIN so far; one more makes that ZERO_BIN. */
    return vmovn_u16(vsubq_u16(bin, vceqzq_u16(symbol)));
}

/* Of elements of a byte. */
INLINE uint8x16_t bins_of_16(struct ptwm_float_step s, const uint8_t *raw, uint16_t first, const uint16_t *shift)
{
    uint8x16_t symbol = vshlq_u8(vld1q_u8(raw), vdupq_n_s8((int8_t)-s.shift)), bin;

    if (shift != NULL)
        symbol = vsubq_u8(symbol, vcombine_u8(vmovn_u16(vld1q_u16(shift)), vmovn_u16(vld1q_u16(shift + 8))));
    symbol = vandq_u8(symbol, vdupq_n_u8((uint8_t)((1u << s.bits) - 1)));
    bin = vminq_u8(vsubq_u8(symbol, vdupq_n_u8((uint8_t)first)), vdupq_n_u8(PTWM_OTHER_BIN));
    return vsubq_u8(bin, vceqzq_u8(symbol));
}

/* Bins of 16 elements of 2 or 4 bytes. */
INLINE uint8x16_t bins_of_16_wide(struct ptwm_float_step s, const uint8_t *raw, uint16_t first, const uint16_t *shift)
{
    return vcombine_u8(bins_of_8(s, raw, first, shift),
                       bins_of_8(s, raw + 8 * s.width, first, shift != NULL ? shift + 8 : NULL));
}

/* Bins, or with a map their labels, of whole PAIR_BLOCKs; *any is the OR of all. */
INLINE void bins_body_neon(struct ptwm_float_step s, const uint8_t *raw, size_t n, uint16_t first,
                           const uint16_t *shift, const uint8_t *map, uint8_t *bins, uint8x16_t *any)
{
    uint8x16x4_t table;

    *any = vdupq_n_u8(0);
    for (unsigned k = 0; k < 4; k++)
        table.val[k] = map != NULL ? vld1q_u8(map + 16 * k) : *any;
    for (size_t i = 0; i < n; i += 32) {
        /* Of elements of a byte the next ones; of others the first 16 of a half and their pairs, then the last 16. */
        const size_t own = s.width == 1 ? i : i - i % PAIR_BLOCK / 2, other = own + (s.width == 1 ? 16 : 32);
        const uint16_t *own_shift = shift != NULL ? shift + own : NULL,
                       *other_shift = shift != NULL ? shift + other : NULL;
        uint8x16x2_t v;
        if (s.width == 1) {
            v.val[0] = bins_of_16(s, raw + own, first, own_shift);
            v.val[1] = bins_of_16(s, raw + other, first, other_shift);
        } else {
            v.val[0] = bins_of_16_wide(s, raw + own * s.width, first, own_shift);
            v.val[1] = bins_of_16_wide(s, raw + other * s.width, first, other_shift);
        }
        for (unsigned k = 0; k < 2; k++) {
            if (map != NULL)
                v.val[k] = vqtbl4q_u8(table, v.val[k]);
            *any = vorrq_u8(*any, v.val[k]);
        }
        if (s.width == 1)
            vst1q_u8_x2(bins + i, v);
        else
            vst2q_u8(bins + i, v);
    }
}

static void bins_neon(enum ptwm_float_kind kind, const uint8_t *raw, size_t n, uint16_t first, const uint16_t *shift,
                      uint8_t *bins)
{
    const size_t whole = n / PAIR_BLOCK * PAIR_BLOCK;
    uint8x16_t any;

    if (shift != NULL)
        FOR_KIND(kind, bins_body_neon, raw, whole, first, shift, NULL, bins, &any)
    else
        FOR_KIND(kind, bins_body_neon, raw, whole, first, NULL, NULL, bins, &any)
    bins_c99(kind, raw + whole * ptwm_float_steps[kind].width, n - whole, first, shift != NULL ? shift + whole : NULL,
             bins + whole);
}

static void count_neon(enum ptwm_float_kind kind, const uint8_t *raw, size_t n, uint16_t first, const uint16_t *shift,
                       uint16_t histogram[PTWM_N_BINS])
{
    uint8_t bins[BLOCK];

    bins_neon(kind, raw, n, first, shift, bins);
    add_bins_c99(bins, n, histogram);
}

static bool labels_neon(enum ptwm_float_kind kind, const uint8_t *raw, size_t n, uint16_t first, const uint16_t *shift,
                        const uint8_t map[PTWM_N_BINS], uint8_t *labels)
{
    const size_t whole = n / PAIR_BLOCK * PAIR_BLOCK;
    uint8x16_t any;
    bool rest;

    if (shift != NULL)
        FOR_KIND(kind, bins_body_neon, raw, whole, first, shift, map, labels, &any)
    else
        FOR_KIND(kind, bins_body_neon, raw, whole, first, NULL, map, labels, &any)
    rest = labels_c99(kind, raw + whole * ptwm_float_steps[kind].width, n - whole, first,
                      shift != NULL ? shift + whole : NULL, map, labels + whole);
    return vmaxvq_u8(any) > 127 || rest;
}

/* The plain loop, which compilers vectorise. */
static void symbols_neon(enum ptwm_float_kind kind, const uint8_t *raw, size_t n, uint16_t *symbols)
{
    symbols_c99(kind, raw, n, symbols);
}

/* -------------------------------------------------------------------------------------------------------- rests */

/* The seven bits of a rest, in bits 0 to 6. */
INLINE uint16x8_t seven_bits(uint16x8_t unit)
{
    return vorrq_u16(vandq_u16(unit, vdupq_n_u16(0x3f)), vandq_u16(vshrq_n_u16(unit, 9), vdupq_n_u16(0x40)));
}

/* Blocks of 7 or 8 bits: the sign and the low mantissa bits stay where they are, so masks are all it takes. */
INLINE void rest_block_78_neon(struct ptwm_float_step s, const uint8_t *raw, uint8_t *packed)
{
    const uint16x8_t own = vdupq_n_u16((uint16_t)(0x8000 | ((1 << s.shift) - 1)));
    const size_t step = 32 * (size_t)s.width;

    for (unsigned quarter = 0; quarter < 4; quarter++, raw += step / 4, packed += 16) {
        uint16x8_t spare = vdupq_n_u16(0);
        if (s.shift == 6)
            spare = vorrq_u16(seven_bits(units_neon(raw + 14 * step, s.width)),
                              vshlq_n_u16(seven_bits(units_neon(raw + 15 * step, s.width)), 8));
        for (int t = 0; t < s.shift + 1; t++) {
            const uint16x8_t a = vandq_u16(units_neon(raw + 2 * (size_t)t * step, s.width), own);
            const uint16x8_t b = vandq_u16(units_neon(raw + (2 * (size_t)t + 1) * step, s.width), own);
            uint16x8_t word = vorrq_u16(a, vreinterpretq_u16_u8(vrev16q_u8(vreinterpretq_u8_u16(b))));
            if (s.shift == 6) /* bit t of each rest of the last two vectors, to bits 6 and 14 */
                word = vorrq_u16(word, vandq_u16(vshlq_u16(spare, vdupq_n_s16((int16_t)(6 - t))), vdupq_n_u16(0x4040)));
            vst1q_u8(packed + 64 * (size_t)t, vreinterpretq_u8_u16(word));
        }
    }
}

INLINE void rests_body_neon(struct ptwm_float_step s, const uint8_t *raw, size_t n_blocks, uint8_t *packed)
{
    for (; n_blocks > 0; n_blocks--, raw += BLOCK * (size_t)s.width, packed += 64 * (16u - s.bits))
        rest_block_78_neon(s, raw, packed);
}

static void rests_neon(enum ptwm_float_kind kind, const uint8_t *raw, size_t n, uint8_t *packed)
{
    const unsigned r = ptwm_float_rest_bits(kind);
    const size_t n_blocks = r == 7 || r == 8 ? n / BLOCK : 0;

    if (n_blocks > 0)
        FOR_KIND(kind, rests_body_neon, raw, n_blocks, packed)
    rests_c99(kind, raw + n_blocks * BLOCK * ptwm_float_steps[kind].width, n - n_blocks * BLOCK,
              packed + n_blocks * 64 * r);
}

static uint16_t lows_neon(const uint8_t *raw, size_t n, uint8_t *low)
{
    uint16x8_t any = vdupq_n_u16(0);
    size_t i = 0;

    for (; i + 8 <= n; i += 8) {
        const uint16x8_t v =
            vuzp1q_u16(vreinterpretq_u16_u8(vld1q_u8(raw + 4 * i)), vreinterpretq_u16_u8(vld1q_u8(raw + 4 * i + 16)));
        any = vorrq_u16(any, v);
        vst1q_u8(low + 2 * i, vreinterpretq_u8_u16(v));
    }
    any = vorrq_u16(any, vextq_u16(any, any, 4));
    any = vorrq_u16(any, vextq_u16(any, any, 2));
    any = vorrq_u16(any, vextq_u16(any, any, 1));
    return (uint16_t)(vgetq_lane_u16(any, 0) | lows_c99(raw + 4 * i, n - i, low + 2 * i));
}

#undef INLINE
