#include "float_split.h"

#include "bits.h"
#include "cpu_features.h"
#include "rest.h"

enum { BLOCK = 512, PAIR_BLOCK = PTWM_PAIR_BLOCK };

enum ptwm_float_kind ptwm_float_kind_of(const struct ptwm_parsed_chain *chain)
{
    if (chain->n_steps != 1 || chain->label == NULL)
        return PTWM_FLOAT_NONE;
    for (int k = PTWM_FLOAT_B16_9; k < PTWM_N_FLOAT_KINDS; k++)
        if (ptwm_float_steps[k].width == chain->label->width && ptwm_float_steps[k].shift == chain->label->shift &&
            ptwm_float_steps[k].bits == chain->label->bits)
            return (enum ptwm_float_kind)k;
    return PTWM_FLOAT_NONE;
}

/* ------------------------------------------------------------------------------------------------ plain versions */

static inline uint32_t unit_at(const uint8_t *raw, size_t i, unsigned width)
{
    return width == 1 ? raw[i] : ptwm_load16(raw + (i + 1) * width - 2);
}

static inline void symbols_of(struct ptwm_float_step s, const uint8_t *raw, size_t n, uint16_t *symbols)
{
    for (size_t i = 0; i < n; i++)
        symbols[i] = (uint16_t)(unit_at(raw, i, s.width) >> s.shift & ((1u << s.bits) - 1));
}

static inline uint8_t bin_of(struct ptwm_float_step s, const uint8_t *raw, size_t i, uint32_t first,
                             const uint16_t *shift)
{
    uint32_t symbol = unit_at(raw, i, s.width) >> s.shift, bin;

    if (shift != NULL)
        symbol -= shift[i];
    symbol &= (1u << s.bits) - 1;
    bin = symbol - first < PTWM_SYMBOL_BINS ? symbol - first : PTWM_OTHER_BIN;
    return (uint8_t)(symbol == 0 ? PTWM_ZERO_BIN : bin);
}

static inline void bins_of(struct ptwm_float_step s, const uint8_t *raw, size_t n, uint32_t first,
                           const uint16_t *shift, uint8_t *bins)
{
    uint8_t block[PAIR_BLOCK]; /* as the elements are: so compilers vectorise both loops */
    size_t i = 0;

    for (; i + PAIR_BLOCK <= n && s.width > 1; i += PAIR_BLOCK) {
        for (size_t j = 0; j < PAIR_BLOCK; j++)
            block[j] = bin_of(s, raw, i + j, first, shift);
        for (size_t j = 0; j < PAIR_BLOCK / 2; j++) {
            bins[i + 2 * j] = block[j];
            bins[i + 2 * j + 1] = block[PAIR_BLOCK / 2 + j];
        }
    }
    for (; i < n; i++)
        bins[i] = bin_of(s, raw, i, first, shift);
}

/* n <= BLOCK */
static inline void rests_of(struct ptwm_float_step s, const uint8_t *raw, size_t n, uint16_t *rests)
{
    for (size_t i = 0; i < n; i++) {
        uint32_t unit = unit_at(raw, i, s.width);
        rests[i] = (uint16_t)(unit >> (s.shift + s.bits) << s.shift | (unit & ((1u << s.shift) - 1)));
    }
}

/* Calls function with the kind's step as a constant. */
#define FOR_KIND(kind, function, ...)                                                                                  \
    switch (kind) {                                                                                                    \
    case PTWM_FLOAT_B16_9: function((struct ptwm_float_step){ 2, 6, 9 }, __VA_ARGS__); break;                          \
    case PTWM_FLOAT_B16_8: function((struct ptwm_float_step){ 2, 7, 8 }, __VA_ARGS__); break;                          \
    case PTWM_FLOAT_F32_9: function((struct ptwm_float_step){ 4, 6, 9 }, __VA_ARGS__); break;                          \
    case PTWM_FLOAT_F32_8: function((struct ptwm_float_step){ 4, 7, 8 }, __VA_ARGS__); break;                          \
    case PTWM_FLOAT_F16_6: function((struct ptwm_float_step){ 2, 9, 6 }, __VA_ARGS__); break;                          \
    case PTWM_FLOAT_F8_5: function((struct ptwm_float_step){ 1, 2, 5 }, __VA_ARGS__); break;                           \
    case PTWM_FLOAT_F8_6: function((struct ptwm_float_step){ 1, 1, 6 }, __VA_ARGS__); break;                           \
    default: function((struct ptwm_float_step){ 1, 3, 5 }, __VA_ARGS__); break;                                        \
    }

static void symbols_c99(enum ptwm_float_kind kind, const uint8_t *raw, size_t n, uint16_t *symbols)
{
    FOR_KIND(kind, symbols_of, raw, n, symbols)
}

static void bins_c99(enum ptwm_float_kind kind, const uint8_t *raw, size_t n, uint16_t first, const uint16_t *shift,
                     uint8_t *bins)
{
    if (shift != NULL)
        FOR_KIND(kind, bins_of, raw, n, first, shift, bins)
    else
        FOR_KIND(kind, bins_of, raw, n, first, NULL, bins)
}

static void add_bins_c99(const uint8_t *bins, size_t n, uint16_t histogram[PTWM_N_BINS])
{
    uint16_t more[4][PTWM_N_BINS] = { { 0 } }; /* four, so that equal neighbours do not wait for each other */
    size_t i = 0;

    for (; i + 4 <= n; i += 4)
        for (unsigned j = 0; j < 4; j++)
            more[j][bins[i + j]]++;
    for (; i < n; i++)
        more[0][bins[i]]++;
    for (unsigned b = 0; b < PTWM_N_BINS; b++)
        histogram[b] = (uint16_t)(histogram[b] + more[0][b] + more[1][b] + more[2][b] + more[3][b]);
}

static void count_c99(enum ptwm_float_kind kind, const uint8_t *raw, size_t n, uint16_t first, const uint16_t *shift,
                      uint16_t histogram[PTWM_N_BINS])
{
    uint8_t bins[BLOCK];

    bins_c99(kind, raw, n, first, shift, bins);
    add_bins_c99(bins, n, histogram);
}

static bool map_c99(uint8_t *bins, size_t n, const uint8_t map[PTWM_N_BINS])
{
    uint8_t any = 0;

    for (size_t i = 0; i < n; i++) {
        bins[i] = map[bins[i]];
        any |= bins[i];
    }
    return any > 127;
}

static bool labels_c99(enum ptwm_float_kind kind, const uint8_t *raw, size_t n, uint16_t first, const uint16_t *shift,
                       const uint8_t map[PTWM_N_BINS], uint8_t *labels)
{
    bins_c99(kind, raw, n, first, shift, labels);
    return map_c99(labels, n, map);
}

static void rests_c99(enum ptwm_float_kind kind, const uint8_t *raw, size_t n, uint8_t *packed)
{
    const unsigned r = ptwm_float_rest_bits(kind);
    uint16_t rests[BLOCK];

    for (size_t i = 0; i < n; i += BLOCK) {
        const size_t m = n - i < BLOCK ? n - i : BLOCK;
        FOR_KIND(kind, rests_of, raw + i * ptwm_float_steps[kind].width, m, rests)
        ptwm_rest_pack(packed + i / BLOCK * 64 * r, rests, m, r);
    }
}

static uint16_t lows_c99(const uint8_t *raw, size_t n, uint8_t *low)
{
    uint32_t any = 0;

    for (size_t i = 0; i < n; i++) {
        uint16_t value = ptwm_load16(raw + 4 * i);
        ptwm_store16(low + 2 * i, value);
        any |= value;
    }
    return (uint16_t)any;
}

/* ---------------------------------------------------------------------------------------------------- selection */

#if defined(PTWM_X86)
#include "x86/float_split_impl.h"
/* A kernel with versions for all levels: AVX-512, AVX2, plain. */
#define SELECT(name, ...)                                                         \
    (ptwm_cpu_level() == PTWM_CPU_AVX512 ? name##_avx512(__VA_ARGS__)             \
     : ptwm_cpu_level() == PTWM_CPU_AVX2 ? name##_avx2(__VA_ARGS__)               \
                                         : name##_c99(__VA_ARGS__))
#elif defined(PTWM_ARM)
#include "arm/float_split_impl.h"
#define SELECT(name, ...) (ptwm_cpu_level() == PTWM_CPU_NEON ? name##_neon(__VA_ARGS__) : name##_c99(__VA_ARGS__))
#else
#define SELECT(name, ...) name##_c99(__VA_ARGS__)
#endif

void ptwm_float_symbols(enum ptwm_float_kind kind, const uint8_t *raw, size_t n, uint16_t *symbols)
{
    SELECT(symbols, kind, raw, n, symbols);
}

void ptwm_float_bins(enum ptwm_float_kind kind, const uint8_t *raw, size_t n, uint16_t first, const uint16_t *shift,
                     uint8_t *bins)
{
    SELECT(bins, kind, raw, n, first, shift, bins);
}

void ptwm_add_bins(const uint8_t *bins, size_t n, uint16_t histogram[PTWM_N_BINS])
{
    /* Zen 4 takes 45 ns for 512 bins with AVX-512, 77 with AVX2, 175 with the plain loop. */
#if defined(PTWM_X86)
    SELECT(add_bins, bins, n, histogram);
#else
    add_bins_c99(bins, n, histogram);
#endif
}

void ptwm_float_count(enum ptwm_float_kind kind, const uint8_t *raw, size_t n, uint16_t first, const uint16_t *shift,
                      uint16_t histogram[PTWM_N_BINS])
{
    SELECT(count, kind, raw, n, first, shift, histogram);
}

bool ptwm_float_labels(enum ptwm_float_kind kind, const uint8_t *raw, size_t n, uint16_t first, const uint16_t *shift,
                       const uint8_t map[PTWM_N_BINS], uint8_t *labels)
{
    return SELECT(labels, kind, raw, n, first, shift, map, labels);
}

void ptwm_float_rests(enum ptwm_float_kind kind, const uint8_t *raw, size_t n, uint8_t *packed)
{
    SELECT(rests, kind, raw, n, packed);
}

uint16_t ptwm_float_lows(const uint8_t *raw, size_t n, uint8_t *low)
{
    return SELECT(lows, raw, n, low);
}
