/*
 * The kernels of float_split.c and of the analysis: each level gives what the chain's plain steps give, and stays inside
 * buffers of exactly the right size (run it under ASan).
 */
#include "check.h"

#include "bits.h"
#include "float_split.h"
#include "ptwm.h"
#include "rest.h"

static const struct {
    uint8_t width, shift, bits;
} steps[] = { { 2, 6, 9 }, { 2, 7, 8 }, { 4, 6, 9 }, { 4, 7, 8 }, { 2, 9, 6 }, { 1, 2, 5 }, { 1, 1, 6 }, { 1, 3, 5 } };
enum { N_STEPS = sizeof steps / sizeof steps[0] };

static uint64_t seed = 1;

static uint32_t below(uint32_t n)
{
    return (uint32_t)(check_random(&seed) >> 32) % n;
}

/* A copy of exactly nbytes bytes. */
static void *exactly(const void *data, size_t nbytes)
{
    void *p = malloc(nbytes > 0 ? nbytes : 1);
    if (p == NULL)
        abort();
    if (data != NULL && nbytes > 0)
        memcpy(p, data, nbytes);
    return p;
}

/* Bytes of which some are like weights, with NaNs, zeros and noise in between. */
static void fill(uint8_t *raw, size_t n, unsigned width)
{
    const unsigned style = below(4);
    for (size_t i = 0; i < n * width; i++)
        raw[i] = (uint8_t)below(256);
    for (size_t i = 0; i < n && style > 0; i++) {
        uint8_t *top = raw + (i + 1) * width - 1;
        if (width > 1)
            *top = (uint8_t)((*top & 0x80) | (0x3b + below(3)));
        if (below(20) == 0)
            memset(raw + i * width, style == 1 ? 0 : style == 2 ? 0xff : 0x80, width);
    }
}

static void split_kernels(void)
{
    for (unsigned k = 0; k < 600; k++) {
        const unsigned which = k % N_STEPS, width = steps[which].width, bits = steps[which].bits;
        const uint8_t bytes[4] = { 3, width == 0 ? 0 : (uint8_t)width, steps[which].shift, steps[which].bits };
        const size_t n = k % 5 == 0 ? below(4) * 512 : below(k % 7 == 0 ? 5000 : 700);
        const uint32_t mask = (1u << bits) - 1;
        struct ptwm_parsed_chain chain;
        enum ptwm_float_kind kind;
        uint8_t *raw = exactly(NULL, n * width), *bins = exactly(NULL, n), *labels, map[64], any_expected = 0;
        bool any;
        uint16_t *shift = exactly(NULL, 2 * n), *symbols = exactly(NULL, 2 * n), histogram[64], expected[64] = { 0 };
        const uint16_t first = (uint16_t)(bits <= 6 ? 1 : 1 + below(400) % (mask - 62));

        CHECK_EQ(ptwm_chain_parse(bytes, 4, &chain, NULL), PTWM_OK);
        kind = ptwm_float_kind_of(&chain);
        CHECK(kind != PTWM_FLOAT_NONE);
        fill(raw, n, width);
        for (size_t i = 0; i < n; i++)
            shift[i] = (uint16_t)(k % 3 ? (uint32_t)((int)below(9) - 4) & mask : below(mask + 1));
        for (unsigned i = 0; i < 64; i++)
            map[i] = (uint8_t)(below(32) | (below(100) == 0 ? 128 : 0));
        if (below(2) == 0) /* as where 0 has no label */
            map[63] = map[62];

        ptwm_float_symbols(kind, raw, n, symbols);
        ptwm_float_bins(kind, raw, n, first, k % 2 ? shift : NULL, bins);
        for (size_t i = 0; i < n; i++) {
            uint32_t unit = width == 1 ? raw[i] : ptwm_load16(raw + (i + 1) * width - 2);
            uint32_t symbol = unit >> steps[which].shift & mask, bin;
            CHECK_EQ(symbols[i], symbol);
            symbol = (symbol - (k % 2 ? shift[i] : 0u)) & mask;
            bin = symbol == 0 ? 63 : symbol >= first && symbol < first + 62u ? symbol - first : 62;
            if (bins[ptwm_label_place(i, n, (uint8_t)width)] != bin) {
                CHECK_EQ(bins[ptwm_label_place(i, n, (uint8_t)width)], bin);
                break;
            }
            expected[bin]++;
            any_expected |= map[bin];
        }
        memset(histogram, 0, sizeof histogram);
        ptwm_add_bins(bins, n, histogram);
        CHECK(memcmp(histogram, expected, sizeof expected) == 0);
        for (size_t i = 0; i < n; i += 512)
            ptwm_float_count(kind, raw + i * width, n - i < 512 ? n - i : 512, first, k % 2 ? shift + i : NULL,
                             histogram);
        for (unsigned b = 0; b < 64; b++)
            CHECK_EQ(histogram[b], 2 * expected[b]);
        labels = exactly(NULL, n);
        any = ptwm_float_labels(kind, raw, n, first, k % 2 ? shift : NULL, map, labels);
        CHECK_EQ(any, any_expected > 127);
        for (size_t i = 0; i < n; i++)
            if (labels[i] != map[bins[i]]) {
                CHECK_EQ(labels[i], map[bins[i]]);
                break;
            }
        free(raw);
        free(bins);
        free(labels);
        free(shift);
        free(symbols);
    }
}

/* Rests and low halves against the chain's planes. */
static void plane_kernels(void)
{
    for (unsigned k = 0; k < 600; k++) {
        const unsigned which = k % N_STEPS, width = steps[which].width;
        const uint8_t bytes[4] = { 3, (uint8_t)width, steps[which].shift, steps[which].bits };
        const size_t n = k % 5 == 0 ? below(4) * 512 : below(2000);
        const struct ptwm_shifts no_shifts = { 0, NULL };
        struct ptwm_parsed_chain chain;
        enum ptwm_float_kind kind;
        uint8_t *raw = exactly(NULL, n * width), *planes[3], *own;
        uint32_t n_low;
        size_t nbytes;

        CHECK_EQ(ptwm_chain_parse(bytes, 4, &chain, NULL), PTWM_OK);
        kind = ptwm_float_kind_of(&chain);
        n_low = ptwm_float_n_low(kind);
        fill(raw, n, width);
        for (uint32_t p = 0; p < chain.n_planes; p++)
            planes[p] = exactly(NULL, (size_t)ptwm_plane_nbytes(&chain, p, n * width));
        ptwm_chain_split(&chain, &no_shifts, 0, raw, n * width, planes, NULL);
        nbytes = (size_t)ptwm_rest_nbytes(n, ptwm_float_rest_bits(kind));
        CHECK_EQ(nbytes, ptwm_plane_nbytes(&chain, n_low, n * width));
        own = exactly(NULL, nbytes);
        ptwm_float_rests(kind, raw, n, own);
        CHECK(memcmp(own, planes[n_low], nbytes) == 0);
        free(own);
        if (n_low > 0) {
            uint16_t any = 0;
            own = exactly(NULL, 2 * n);
            for (size_t i = 0; i < n; i++)
                any |= ptwm_load16(planes[0] + 2 * i);
            CHECK_EQ(ptwm_float_lows(raw, n, own), any);
            CHECK(memcmp(own, planes[0], 2 * n) == 0);
            free(own);
        }
        for (uint32_t p = 0; p < chain.n_planes; p++)
            free(planes[p]);
        free(raw);
    }
}

static void assignment(void)
{
    for (unsigned k = 0; k < 100; k++) {
        const size_t n_units = 1 + below(200), step = 1 + below(3);
        uint16_t *histograms = exactly(NULL, n_units * 128);
        uint8_t *classes = exactly(NULL, n_units);
        int16_t costs[4][64];
        uint32_t counts[4][64] = { { 0 } }, expected[4][64] = { { 0 } };

        for (size_t i = 0; i < 64 * n_units; i++)
            histograms[i] = (uint16_t)(k % 4 == 0 ? (i % 64 == 5 ? 32640 : 0) : below(60));
        for (unsigned i = 0; i < 256; i++)
            costs[i / 64][i % 64] = (int16_t)(k % 4 == 0 ? 32512 - below(3) : below(32512));
        memset(classes, 9, n_units);
        ptwm_label_assign(histograms, n_units, step, (const int16_t(*)[64])costs, classes, counts);
        for (size_t u = 0; u < n_units; u++) {
            int64_t best = INT64_MAX;
            unsigned class = 9;
            for (unsigned z = 0; z < 4 && u % step == 0; z++) {
                int64_t cost = 0;
                for (unsigned b = 0; b < 64; b++)
                    cost += (int64_t)histograms[64 * u + b] * costs[z][b];
                if (cost < best) {
                    best = cost;
                    class = z;
                }
            }
            CHECK_EQ(classes[u], class);
            for (unsigned b = 0; b < 64 && class < 4; b++)
                expected[class][b] += histograms[64 * u + b];
        }
        CHECK(memcmp(counts, expected, sizeof counts) == 0);
        free(histograms);
        free(classes);
    }
}

int main(void)
{
    static const char *const levels[] = { "c99", "sse42", "avx2", "avx512", "neon" };
    for (unsigned i = 0; i < sizeof levels / sizeof levels[0]; i++) {
        if (ptwm_cpu_select(levels[i]) != PTWM_OK) {
            printf("SKIP %s: this machine does not have it\n", levels[i]);
            continue;
        }
        CHECK(strcmp(ptwm_cpu_name(), levels[i]) == 0);
        RUN(split_kernels);
        RUN(plane_kernels);
        RUN(assignment);
    }
    CHECK_EXIT();
}
