/*
 * The codecs of bytes: round trips and sizes; Huffman and byte rANS also against slow decoders and codes written from
 * FORMAT.md's text.
 */
#include "codec_cases.h"

static void test_all_small_sizes(void)
{
    for (size_t c = 0; c < N_CODECS; c++) {
        for (int d = 0; d < N_DISTRIBUTIONS; d++) {
            for (size_t n = 1; n <= 600; n++)
                round_trip(codecs[c], d, n, n);
        }
    }
}

/* Around 1024 byte rANS changes its number of lanes, around 131072 zstd begins a second block. */
static void test_special_sizes(void)
{
    static const size_t sizes[] = { 1020, 1023, 1024, 1025, 1056, 1057, 4095, 4096, 131071, 131072, 131073, 1048576 };

    for (size_t c = 0; c < N_CODECS; c++) {
        for (int d = 0; d < N_DISTRIBUTIONS; d++) {
            for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
                round_trip(codecs[c], d, sizes[i], i);
        }
    }
}

static void test_random_sizes(void)
{
    uint64_t seed = 5;

    for (size_t c = 0; c < N_CODECS; c++) {
        for (int d = 0; d < N_DISTRIBUTIONS; d++) {
            for (unsigned bits = 10; bits <= 20; bits++)
                round_trip(codecs[c], d, 1 + (size_t)(check_random(&seed) & ((1u << bits) - 1)), seed);
        }
    }
}

/* Histograms that no distribution above gives: every number of symbols, and counts that vary by magnitudes. */
static void test_wild_histograms(void)
{
    uint64_t seed = 77;

    for (unsigned k = 1; k <= 256; k++) {
        size_t n = 0, nbytes, fill = 0;
        uint32_t counts[256];
        uint8_t *src, *stored, *out;

        for (unsigned s = 0; s < k; s++) {
            counts[s] = 1 + (uint32_t)(check_random(&seed) & ((1u << check_random(&seed) % 12) - 1));
            n += counts[s];
        }
        src = malloc(n);
        for (unsigned s = 0; s < k; s++) {
            for (uint32_t i = 0; i < counts[s]; i++) /* in runs: the quarters' histograms differ as much as they can */
                src[fill++] = (uint8_t)(s * 167 + 5);
        }
        for (size_t c = 1; c <= 2; c++) {
            out = NULL;
            stored = encode(codecs[c], src, n, &nbytes, 0);
            check_estimate(codecs[c], src, n, nbytes);
            CHECK_EQ(decode(codecs[c], stored, nbytes, n, &out), PTWM_OK);
            CHECK(out != NULL && memcmp(out, src, n) == 0);
            free(out);
            free(stored);
        }
        free(src);
    }
}

static void test_sizes_are_good(void)
{
    for (int d = 0; d < N_DISTRIBUTIONS; d++) {
        size_t n = 1 << 20, nbytes;
        uint8_t *src = make_data(d, n, 3), *stored;
        uint32_t histogram[256] = { 0 };
        uint64_t entropy;

        for (size_t i = 0; i < n; i++)
            histogram[src[i]]++;
        entropy = ptwm_entropy_fixed(histogram, 256) / (8 * PTWM_LOG2_ONE);
        stored = encode(&ptwm_codec_rans, src, n, &nbytes, 0);
        /* 12-bit frequencies are too coarse for hundreds of values that hardly occur. */
        CHECK(nbytes >= entropy && (d == RARE || nbytes <= entropy + entropy / 200 + 700));
        free(stored);
        stored = encode(&ptwm_codec_huffman, src, n, &nbytes, 0);
        CHECK(nbytes >= entropy && nbytes <= entropy + n / 8 + 200);
        CHECK(d == RARE || d == CONSTANT || d == TWO_VALUES || nbytes <= entropy + entropy / 20 + 200);
        free(stored);
        free(src);
    }
}

/* Few symbols must not pay for tables of 256. */
static void test_small_planes_are_small(void)
{
    size_t nbytes;
    uint8_t src[64];

    memset(src, 7, 64);
    free(encode(&ptwm_codec_huffman, src, 64, &nbytes, 0));
    CHECK_EQ(nbytes, 4);
    free(encode(&ptwm_codec_rans, src, 64, &nbytes, 0));
    CHECK_EQ(nbytes, 4 + 16);
    for (unsigned i = 0; i < 64; i++)
        src[i] = (uint8_t)(120 + i % 8);
    free(encode(&ptwm_codec_huffman, src, 64, &nbytes, 0));
    CHECK_EQ(nbytes, 4 + 4 + 3 + 24);
    free(encode(&ptwm_codec_rans, src, 64, &nbytes, 0));
    CHECK(nbytes <= 4 + 14 + 16 + 24);
}

/* --------------------------------------------------------------------------- decoders written from FORMAT.md */

/* Canonical codes by counting up, value by value and length by length. */
static void slow_codes(const uint8_t *lengths, unsigned k, unsigned *codes)
{
    unsigned code = 0, last = 0;

    for (unsigned length = 1; length <= 11; length++) {
        for (unsigned i = 0; i < k; i++) {
            if (lengths[i] == length) {
                code = last == 0 ? 0 : (code + 1) << (length - last);
                codes[i] = code;
                last = length;
            }
        }
    }
}

static void slow_huffman(const uint8_t *p, uint8_t *dst, size_t n)
{
    uint8_t symbols[256], lengths[256];
    unsigned codes[256], k = slow_symbol_set(&p, symbols);
    size_t q = (n + 3) / 4, nbytes[4] = { 0 };

    if (k == 1) {
        memset(dst, symbols[0], n);
        return;
    }
    for (unsigned i = 0; i < k; i++)
        lengths[i] = p[i / 2] >> 4 * (i % 2) & 15;
    p += (k + 1) / 2;
    slow_codes(lengths, k, codes);
    for (unsigned s = 0; s < 3; s++)
        nbytes[s] = (size_t)slow_varint(&p);
    for (unsigned s = 0; s < 4; s++) {
        size_t bit = 0;

        for (size_t i = s * q; i < (s + 1) * q && i < n; i++) {
            unsigned code = 0, length = 0, found = k;

            while (found == k && length < 11) {
                code = code << 1 | ((unsigned)p[bit / 8] >> bit % 8 & 1);
                bit++;
                length++;
                for (unsigned j = 0; j < k; j++) {
                    if (lengths[j] == length && codes[j] == code)
                        found = j;
                }
            }
            CHECK(found < k);
            dst[i] = found < k ? symbols[found] : 0;
        }
        p += nbytes[s];
    }
}

static void slow_rans(const uint8_t *p, const uint8_t *end, uint8_t *dst, size_t n)
{
    uint8_t symbols[256];
    uint32_t frequencies[256], states[32], rest = 4096;
    unsigned k = slow_symbol_set(&p, symbols), lanes = n < 1024 ? 4 : 32;

    for (unsigned i = 0; i < k; i++) {
        frequencies[i] = i + 1 < k ? (uint32_t)slow_varint(&p) + 1 : rest;
        rest -= frequencies[i];
    }
    CHECK_EQ(rest, 0);
    for (unsigned lane = 0; lane < lanes; lane++, p += 4)
        states[lane] = ptwm_load32(p);
    for (size_t i = 0; i < n; i++) {
        uint32_t *x = &states[i % lanes], s = *x % 4096;
        unsigned v = 0;

        while (s >= frequencies[v])
            s -= frequencies[v++];
        *x = frequencies[v] * (*x / 4096) + s;
        if (*x < 65536) {
            *x = *x * 65536 + ptwm_load16(p);
            p += 2;
        }
        dst[i] = symbols[v];
    }
    CHECK(p == end);
    for (unsigned lane = 0; lane < lanes; lane++)
        CHECK_EQ(states[lane], 65536);
}

static void test_format_text(void)
{
    for (int d = 0; d < N_DISTRIBUTIONS; d++) {
        for (size_t n = 1; n < 3000; n += 1 + n / 7) {
            size_t nbytes;
            uint8_t *src = make_data(d, n, 4), *out = malloc(n), *stored;

            stored = encode(&ptwm_codec_huffman, src, n, &nbytes, 0);
            slow_huffman(stored, out, n);
            CHECK(memcmp(out, src, n) == 0);
            free(stored);
            memset(out, 0x55, n);
            stored = encode(&ptwm_codec_rans, src, n, &nbytes, 0);
            slow_rans(stored, stored + nbytes, out, n);
            CHECK(memcmp(out, src, n) == 0);
            free(stored);
            free(out);
            free(src);
        }
    }
}

/* The bytes of one small plane, so that nobody changes the format or the encoders unawares. */
static void test_pinned_bytes(void)
{
    static const uint8_t huffman[] = {
        0xc4, 0x00, 0x03, 0x10, 0x1e, 0x00, 0x04, 0x00, 0x55, 0x14, 0x43, 0x34, 0x03, 0x03, 0x03, 0x52,
        0xeb, 0x00, 0x52, 0xf3, 0x00, 0xa9, 0x75, 0x00, 0xa9, 0x0f,
    };
    static const uint8_t rans[] = {
        0xc4, 0x00, 0x03, 0x10, 0x1e, 0x00, 0x04, 0x00, 0xa3, 0x01, 0xa3, 0x01, 0xa3, 0x01, 0xe5, 0x0c,
        0x8e, 0x05, 0xc7, 0x02, 0xc7, 0x02, 0xfc, 0xa6, 0x0b, 0x00, 0x14, 0xe9, 0xf7, 0x4a, 0x70, 0xee,
        0x33, 0x4b, 0x2d, 0x12, 0xa5, 0x77, 0x69, 0x5a,
    };
    const uint8_t *src = (const uint8_t *)"abracadabra, abracadabra!";
    size_t nbytes;
    uint8_t *stored = encode(&ptwm_codec_huffman, src, 25, &nbytes, 0);

    CHECK(nbytes == sizeof huffman && memcmp(stored, huffman, sizeof huffman) == 0);
    free(stored);
    stored = encode(&ptwm_codec_rans, src, 25, &nbytes, 0);
    CHECK(nbytes == sizeof rans && memcmp(stored, rans, sizeof rans) == 0);
    free(stored);
}

/* ---------------------------------------------------------------------------------- optimal length-limited codes */

/*
 * The cost of the best code for counts[0 .. k) (descending) with no code longer than 11 bits, by dynamic programming
 * over the depth: of the nodes there, some are leaves and the others have two children each.
 */
static uint64_t best_cost(const uint32_t *counts, unsigned k)
{
    static uint64_t best[12][64][64]; /* depth, symbols that have a code, nodes at that depth */
    uint64_t above[64] = { 0 };

    for (unsigned i = 0; i < k; i++)
        above[i + 1] = above[i] + counts[i];
    memset(best, 255, sizeof best);
    best[0][0][1] = 0;
    for (unsigned depth = 0; depth < 11; depth++) {
        for (unsigned done = 0; done < k; done++) {
            for (unsigned nodes = 1; nodes <= k - done; nodes++) {
                uint64_t cost = best[depth][done][nodes];

                for (unsigned leaves = 0; cost != UINT64_MAX && leaves <= nodes; leaves++) {
                    /* every symbol that has no code yet gets one bit longer */
                    uint64_t now = cost + above[k] - above[done + leaves];
                    unsigned next = 2 * (nodes - leaves);

                    if (next <= k - done - leaves && now < best[depth + 1][done + leaves][next])
                        best[depth + 1][done + leaves][next] = now;
                }
            }
        }
    }
    for (unsigned depth = 1; depth <= 11; depth++) {
        if (best[depth][k][0] < best[0][k][0])
            best[0][k][0] = best[depth][k][0];
    }
    /* leaves at depth 11 itself */
    for (unsigned done = 0; done < k; done++) {
        if (best[11][done][k - done] < best[0][k][0])
            best[0][k][0] = best[11][done][k - done];
    }
    return best[0][k][0];
}

static void check_optimal(const uint32_t *counts, unsigned k)
{
    size_t n = 0, nbytes, at = 0;
    uint64_t cost = 0;
    uint8_t *src, *stored;
    const uint8_t *lengths;

    for (unsigned i = 0; i < k; i++)
        n += counts[i];
    src = calloc(n, 1);
    for (unsigned i = 0; i < k; i++) {
        memset(src + at, (int)i, counts[i]);
        at += counts[i];
    }
    stored = encode(&ptwm_codec_huffman, src, n, &nbytes, 0);
    lengths = stored + 2 + 2 * ((k + 15) / 16);
    for (unsigned i = 0; i < k; i++)
        cost += (uint64_t)counts[i] * (lengths[i / 2] >> 4 * (i % 2) & 15);
    CHECK_EQ(cost, best_cost(counts, k));
    free(stored);
    free(src);
}

static void test_huffman_is_optimal(void)
{
    uint32_t counts[64];
    uint64_t seed = 9;

    for (unsigned k = 2; k <= 24; k++) { /* Fibonacci numbers: without the limit the longest code has k - 1 bits */
        counts[k - 1] = counts[k - 2] = 1;
        for (unsigned i = k - 2; i-- > 0;)
            counts[i] = counts[i + 1] + counts[i + 2];
        check_optimal(counts, k);
    }
    for (unsigned round = 0; round < 100; round++) {
        unsigned k = 2 + (unsigned)(check_random(&seed) % 60);
        uint32_t count = 1;

        for (unsigned i = k; i-- > 0;) {
            counts[i] = count;
            count += (uint32_t)(check_random(&seed) % (1 + count / (1 + round % 7)));
            count = count < 20000 ? count : 20000;
        }
        check_optimal(counts, k);
    }
}

int main(void)
{
    RUN(test_all_small_sizes);
    RUN(test_special_sizes);
    RUN(test_random_sizes);
    RUN(test_wild_histograms);
    RUN(test_sizes_are_good);
    RUN(test_small_planes_are_small);
    RUN(test_format_text);
    RUN(test_pinned_bytes);
    RUN(test_huffman_is_optimal);
    CHECK_EXIT();
}
