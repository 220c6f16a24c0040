/*
 * Every version of the codecs of bytes and of chains' steps that this machine has: encoders must give the plain version's
 * bytes, decoders its results, and of malformed input all must make the same. Buffers are as long as they must be, from malloc
 * or against pages that must not be touched.
 */
#define _DEFAULT_SOURCE
#define _DARWIN_C_SOURCE
#include "byte_planes.h"
#include "chain.h"
#include "check.h"
#include "codec.h"
#include "guard.h"
#include "rest.h"

static uint64_t random_state = 1;

static size_t random_below(size_t n)
{
    return (size_t)(check_random(&random_state) % n);
}

static void *allocate(size_t nbytes)
{
    void *p = malloc(nbytes > 0 ? nbytes : 1);
    if (p == NULL)
        abort();
    return p;
}

/* ----------------------------------------------------------------------------------------------------- levels */

static const char *const levels[] = { "c99", "sse42", "avx2", "avx512", "neon" };
enum { N_LEVELS = sizeof levels / sizeof levels[0] };

static int select_level(const char *level)
{
    if (ptwm_cpu_select(level) != PTWM_OK)
        return 0;
    CHECK(strcmp(ptwm_cpu_name(), level) == 0);
    return 1;
}

static void report_levels(void)
{
    for (int i = 0; i < N_LEVELS; i++)
        if (!select_level(levels[i]))
            printf("SKIP %s: this machine does not have it\n", levels[i]);
}

/* --------------------------------------------------------------------------------------------- guarded memory */

enum place { BEFORE_GUARD, BEHIND_GUARD, EXACT, N_PLACES };

/* Memory between two pages without access, for one buffer at a time. */
struct arena {
    uint8_t *begin;
    size_t nbytes;
};

enum { ARENA_NBYTES = 5 << 20 };

static struct arena make_arena(void)
{
    const struct arena a = { guard_alloc(ARENA_NBYTES), guard_inner_nbytes(ARENA_NBYTES) };
    return a;
}

static uint8_t *take(const struct arena *a, size_t nbytes, enum place place)
{
    if (a->begin == NULL || place == EXACT)
        return allocate(nbytes);
    if (nbytes > a->nbytes)
        abort();
    return place == BEFORE_GUARD ? a->begin + a->nbytes - nbytes : a->begin;
}

static void give_back(const struct arena *a, uint8_t *p, enum place place)
{
    if (a->begin == NULL || place == EXACT)
        free(p);
}

static struct arena source, target;

/* ------------------------------------------------------------------------------------------------------ codecs */

static const struct ptwm_byte_codec *const codecs[] = { &ptwm_codec_rans, &ptwm_codec_huffman };
enum { N_CODECS = 2 };

enum distribution { CONSTANT, TWO_VALUES, RARE, SKEWED, NARROW, UNIFORM, ALL_VALUES, UNEVEN, N_DISTRIBUTIONS };

static void fill(uint8_t *p, size_t n, enum distribution distribution)
{
    const uint8_t some = (uint8_t)random_below(256);

    for (size_t i = 0; i < n; i++) {
        const uint64_t r = check_random(&random_state);
        switch (distribution) {
        case CONSTANT: p[i] = some; break;
        case TWO_VALUES: p[i] = (uint8_t)(some + (r & 1)); break;
        case RARE: p[i] = (uint8_t)(r % 1000 == 0 ? r >> 20 : some); break;
        case SKEWED: p[i] = (uint8_t)(r & (r >> 8) & (r >> 16)); break;
        case NARROW: p[i] = (uint8_t)((r & 7) + (r >> 8 & 7) + (r >> 16 & 7)); break;
        case ALL_VALUES: p[i] = (uint8_t)(i < 256 ? i : r); break;
        case UNEVEN: p[i] = (uint8_t)(i < n / 3 ? some : r & 15); break; /* streams of very different lengths */
        default: p[i] = (uint8_t)r; break;
        }
    }
}

static const struct ptwm_codec_context context = { &ptwm_default_allocator, NULL, 0 };

static enum ptwm_status decode(const struct ptwm_byte_codec *codec, uint8_t *dst, size_t n, const uint8_t *coded,
                               size_t coded_nbytes, enum place place)
{
    uint8_t *src = take(&source, coded_nbytes, place), *out = take(&target, n, place);
    enum ptwm_status status;

    if (coded_nbytes > 0)
        memcpy(src, coded, coded_nbytes);
    status = codec->decode(&context, out, n, src, coded_nbytes, NULL);
    memcpy(dst, out, n);
    give_back(&source, src, place);
    give_back(&target, out, place);
    return status;
}

/* Decodes at all levels; what C99 says counts. */
static void check_decoding(const struct ptwm_byte_codec *codec, size_t n, const uint8_t *coded, size_t coded_nbytes)
{
    uint8_t *plain = allocate(n), *other = allocate(n);
    enum ptwm_status status;

    CHECK(select_level("c99"));
    memset(plain, 0, n);
    status = decode(codec, plain, n, coded, coded_nbytes, EXACT);
    for (int l = 0; l < N_LEVELS; l++) {
        const enum place place = (enum place)random_below(N_PLACES);
        enum ptwm_status other_status;

        if (!select_level(levels[l]))
            continue;
        other_status = decode(codec, other, n, coded, coded_nbytes, place);
        CHECK_EQ(other_status, status);
        CHECK(status != PTWM_OK || memcmp(plain, other, n) == 0);
    }
    free(plain);
    free(other);
}

/* The plain version's bytes for some data. */
static uint8_t *encode_plain(const struct ptwm_byte_codec *codec, const uint8_t *raw, size_t n, size_t *coded_nbytes)
{
    uint8_t *coded = allocate(codec->bound(n));

    CHECK(select_level("c99"));
    CHECK_EQ(codec->encode(&context, coded, coded_nbytes, raw, n, NULL), PTWM_OK);
    return coded;
}

static void check_round_trip(const struct ptwm_byte_codec *codec, const uint8_t *raw, size_t n, enum place place)
{
    const size_t bound = codec->bound(n);
    size_t coded_nbytes, nbytes = 0;
    uint8_t *coded = encode_plain(codec, raw, n, &coded_nbytes), *back = allocate(n);

    CHECK(coded_nbytes <= bound);
    for (int l = 0; l < N_LEVELS; l++) {
        uint8_t *src, *dst;

        if (!select_level(levels[l]))
            continue;
        src = take(&source, n, place);
        dst = take(&target, bound, place);
        memcpy(src, raw, n);
        CHECK_EQ(codec->encode(&context, dst, &nbytes, src, n, NULL), PTWM_OK);
        CHECK_EQ(nbytes, coded_nbytes);
        CHECK(memcmp(dst, coded, coded_nbytes) == 0);
        give_back(&source, src, place);
        give_back(&target, dst, place);
        CHECK_EQ(decode(codec, back, n, coded, coded_nbytes, place), PTWM_OK);
        CHECK(memcmp(back, raw, n) == 0);
    }
    free(coded);
    free(back);
}

static void check_size(size_t n)
{
    uint8_t *raw = allocate(n);

    for (int d = 0; d < N_DISTRIBUTIONS; d++) {
        fill(raw, n, (enum distribution)d);
        for (int c = 0; c < N_CODECS; c++)
            check_round_trip(codecs[c], raw, n, (enum place)((n + (size_t)d) % N_PLACES));
    }
    free(raw);
}

static void small_sizes(void)
{
    for (size_t n = 1; n <= 600; n++)
        check_size(n);
}

/* Where the number of lanes changes, and where Huffman begins to take pairs. */
static void sizes_around_limits(void)
{
    for (size_t n = 1000; n <= 1100; n++)
        check_size(n);
    for (size_t n = 16377; n <= 16392; n += 3)
        check_size(n);
}

static void large_sizes(void)
{
    for (int i = 0; i < 12; i++)
        check_size(1 + random_below((size_t)1 << (11 + random_below(10))));
    check_size(1 << 20);
}

static void hostile(size_t n, enum distribution distribution, size_t step)
{
    uint8_t *raw = allocate(n);

    fill(raw, n, distribution);
    for (int c = 0; c < N_CODECS; c++) {
        size_t coded_nbytes;
        uint8_t *coded = encode_plain(codecs[c], raw, n, &coded_nbytes);

        for (size_t at = 0; at < coded_nbytes; at += 1 + random_below(step)) {
            const uint8_t was = coded[at];
            check_decoding(codecs[c], n, coded, at);
            for (int k = 0; k < 3; k++) {
                coded[at] = (uint8_t)(was ^ (k == 0 ? 255 : k == 1 ? 1u << random_below(8) : 1 + random_below(255)));
                check_decoding(codecs[c], n, coded, coded_nbytes);
            }
            coded[at] = was;
        }
        /* Bytes behind the end, other lengths, and nonsense from somewhere on. */
        for (int k = 0; k < 64; k++) {
            const size_t from = random_below(coded_nbytes), more = random_below(80);
            const size_t other_n = 1 + random_below(2 * n);
            uint8_t *longer = allocate(coded_nbytes + more);
            memcpy(longer, coded, coded_nbytes);
            fill(longer + coded_nbytes, more, k % 2 ? UNIFORM : CONSTANT);
            check_decoding(codecs[c], n, longer, coded_nbytes + more);
            check_decoding(codecs[c], other_n, longer, coded_nbytes);
            fill(longer + from, coded_nbytes + more - from, UNIFORM);
            check_decoding(codecs[c], n, longer, coded_nbytes + more);
            free(longer);
        }
        free(coded);
    }
    free(raw);
}

static void malformed_small(void)
{
    static const size_t sizes[] = { 1, 2, 5, 33, 100, 257 };
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        for (int d = 0; d < N_DISTRIBUTIONS; d++)
            hostile(sizes[i], (enum distribution)d, 1);
}

static void malformed_many_lanes(void)
{
    for (int d = 0; d < N_DISTRIBUTIONS; d++) {
        hostile(1024, (enum distribution)d, d < 3 ? 1 : 8);
        hostile(1500, (enum distribution)d, 16);
    }
}

static void malformed_pairs(void)
{
    hostile(16384, TWO_VALUES, 16);
    hostile(16400, SKEWED, 64);
    hostile(16500, UNEVEN, 64);
    hostile(40000, TWO_VALUES, 2000); /* shorter planes of the same streams have pairs too */
    hostile(40000, SKEWED, 4000);
}

/* Bytes that are no plane at all, and ones that begin well. */
static void random_bytes(void)
{
    uint8_t bytes[700];

    for (int i = 0; i < 20000; i++) {
        const size_t nbytes = random_below(sizeof bytes), n = 1 + random_below(i % 2 ? 64 : 3000);
        fill(bytes, nbytes, UNIFORM);
        if (i % 4 >= 2 && nbytes >= 4) { /* rans: one value or two */
            memcpy(bytes, i % 4 == 2 ? "\1\0\1\0" : "\1\0\3\0", 4);
            if (i % 8 >= 4 && nbytes >= 200)
                for (size_t lane = 0; lane < 32; lane++)
                    bytes[6 + 4 * lane + 2] |= 1;
        }
        check_decoding(codecs[i / 2 % 2], n, bytes, nbytes);
    }
}

/* ------------------------------------------------------------------------------------------------ byte planes */

static void check_planes(size_t n, unsigned width, enum place place)
{
    const size_t nbytes = n * width;
    uint8_t *raw = allocate(nbytes), *wanted[16], *planes[16];
    const unsigned guarded = (unsigned)random_below(width);

    fill(raw, nbytes, UNIFORM);
    for (unsigned b = 0; b < width; b++) {
        wanted[b] = allocate(n);
        planes[b] = b == guarded ? take(&target, n, place) : allocate(n);
        for (size_t i = 0; i < n; i++)
            wanted[b][i] = raw[i * width + b];
    }
    for (int l = 0; l < N_LEVELS; l++) {
        uint8_t *own;

        if (!select_level(levels[l]))
            continue;
        own = take(&source, nbytes, place);
        if (nbytes > 0)
            memcpy(own, raw, nbytes);
        ptwm_bytes_split(planes, own, n, width);
        for (unsigned b = 0; b < width; b++)
            CHECK(n == 0 || memcmp(planes[b], wanted[b], n) == 0);
        if (nbytes > 0)
            memset(own, 0, nbytes);
        ptwm_bytes_merge(own, (const uint8_t *const *)planes, n, width);
        CHECK(nbytes == 0 || memcmp(own, raw, nbytes) == 0);
        give_back(&source, own, place);
    }
    for (unsigned b = 0; b < width; b++) {
        free(wanted[b]);
        if (b == guarded)
            give_back(&target, planes[b], place);
        else
            free(planes[b]);
    }
    free(raw);
}

static void byte_planes(void)
{
    for (unsigned width = 2; width <= 16; width++) {
        for (size_t n = 0; n <= 600; n++)
            check_planes(n, width, (enum place)(n % N_PLACES));
        check_planes(random_below(1 << 20) / width, width, BEFORE_GUARD);
    }
}

/* ------------------------------------------------------------------------------------------------------ delta */

static uint64_t element(const uint8_t *p, unsigned width)
{
    uint64_t v = 0;
    for (unsigned b = 0; b < width; b++)
        v |= (uint64_t)p[b] << 8 * b;
    return v;
}

static void check_delta(size_t n, unsigned width, enum place place)
{
    const size_t nbytes = n * width;
    uint8_t *raw = allocate(nbytes), *wanted = allocate(nbytes);

    fill(raw, nbytes, UNIFORM);
    for (size_t i = 0; i < n; i++) {
        const uint64_t v = element(raw + i * width, width) - (i > 0 ? element(raw + (i - 1) * width, width) : 0);
        for (unsigned b = 0; b < width; b++)
            wanted[i * width + b] = (uint8_t)(v >> 8 * b);
    }
    for (int l = 0; l < N_LEVELS && nbytes > 0; l++) {
        uint8_t *own, *other;

        if (!select_level(levels[l]))
            continue;
        own = take(&source, nbytes, place);
        other = take(&target, nbytes, place);
        memcpy(own, raw, nbytes);
        ptwm_delta_forward(other, own, nbytes, width);
        CHECK(memcmp(other, wanted, nbytes) == 0);
        ptwm_delta_forward(own, own, nbytes, width);
        CHECK(memcmp(own, wanted, nbytes) == 0);
        ptwm_delta_backward(own, nbytes, width);
        CHECK(memcmp(own, raw, nbytes) == 0);
        give_back(&source, own, place);
        give_back(&target, other, place);
    }
    free(raw);
    free(wanted);
}

static void delta(void)
{
    for (unsigned width = 1; width <= 8; width *= 2) {
        for (size_t n = 0; n <= 600; n++)
            check_delta(n, width, (enum place)(n % N_PLACES));
        check_delta(random_below(1 << 20) / width, width, BEHIND_GUARD);
    }
}

/* ------------------------------------------------------------------------------------------------ label planes */

/* FORMAT.md, section 5, element by element. */
static void label_element(const struct ptwm_step *step, const uint8_t *raw, size_t i, uint16_t *symbol, uint16_t *rest,
                          uint16_t low[3])
{
    const uint64_t v = step->width == 0 ? raw[i / 2] >> 4 * (i % 2) & 15 : element(raw + i * step->width, step->width);
    const uint32_t unit = (uint32_t)(step->width <= 2 ? v : v >> (8 * step->width - 16));

    *symbol = (uint16_t)(unit >> step->shift & ((1u << step->bits) - 1));
    *rest = (uint16_t)(unit >> (step->shift + step->bits) << step->shift | (unit & ((1u << step->shift) - 1)));
    for (unsigned j = 0; j < 3; j++)
        low[j] = (uint16_t)(v >> 16 * j);
}

static void check_label(const struct ptwm_parsed_chain *chain, size_t raw_nbytes, const struct ptwm_shifts *shifts)
{
    const struct ptwm_step *step = chain->label;
    const size_t n = (size_t)ptwm_chain_n_elements(chain, raw_nbytes), first_element = random_below(1 << 30);
    const uint32_t last = chain->n_planes - 1, n_low = step->width > 2 ? step->width / 2u - 1 : 0;
    const unsigned u = step->width == 0 ? 4 : step->width == 1 ? 8 : 16, rest_bits = u - step->bits;
    uint8_t *raw = allocate(raw_nbytes), *back = allocate(raw_nbytes), *planes[PTWM_MAX_PLANES];
    uint16_t rests[512];

    fill(raw, raw_nbytes, UNIFORM);
    for (uint32_t p = 0; p <= last; p++)
        planes[p] = allocate((size_t)ptwm_plane_nbytes(chain, p, raw_nbytes));
    ptwm_chain_split(chain, shifts, first_element, raw, raw_nbytes, planes, NULL);
    for (size_t i = 0; i < n; i++) {
        uint16_t symbol, rest, low[3];
        uint64_t stored = chain->planes[last].element_nbytes == 2 ? element(planes[last] + 2 * i, 2) : planes[last][i];

        label_element(step, raw, i, &symbol, &rest, low);
        if (shifts->n_columns > 0)
            stored = (stored + shifts->value[(first_element + i) % shifts->n_columns]) & ((1u << step->bits) - 1);
        CHECK_EQ(stored, symbol);
        for (uint32_t j = 0; j < n_low; j++)
            CHECK_EQ(element(planes[j] + 2 * i, 2), low[j]);
        if (rest_bits > 0 && i % 512 == 0)
            CHECK(ptwm_rest_unpack(rests, planes[n_low] + i / 512 * 64 * rest_bits, n - i < 512 ? n - i : 512, rest_bits));
        if (rest_bits > 0)
            CHECK_EQ(rests[i % 512], rest);
    }
    CHECK_EQ(ptwm_chain_merge(chain, shifts, first_element, back, raw_nbytes, (const uint8_t *const *)planes, NULL), PTWM_OK);
    CHECK(memcmp(raw, back, raw_nbytes) == 0);
    /* A symbol of too many bits. */
    if (step->bits != 8) {
        const size_t nbytes = chain->planes[last].element_nbytes, at = nbytes * random_below(n) + nbytes - 1;
        planes[last][at] |= (uint8_t)(1u << step->bits % 8);
        CHECK_EQ(ptwm_chain_merge(chain, shifts, first_element, back, raw_nbytes, (const uint8_t *const *)planes, NULL),
                 PTWM_ERR_PLANE);
    }
    for (uint32_t p = 0; p <= last; p++)
        free(planes[p]);
    free(raw);
    free(back);
}

static void label_planes(void)
{
    static const uint8_t widths[] = { 0, 1, 2, 4, 8 };

    for (int i = 0; i < 6000; i++) {
        const uint8_t width = widths[random_below(5)];
        const unsigned u = width == 0 ? 4 : width == 1 ? 8 : 16;
        const unsigned bits = 1 + (unsigned)random_below(u < 16 ? u : 15), shift = (unsigned)random_below(u - bits + 1);
        const uint8_t bytes[4] = { 3, width, (uint8_t)shift, (uint8_t)bits };
        const size_t n = 1 + random_below(i % 8 ? 600 : 3000);
        const uint32_t n_columns = i % 2 ? (uint32_t)(1 + random_below(i % 4 == 1 ? 5 : 1000)) : 0;
        uint16_t *value = allocate(n_columns * sizeof *value);
        struct ptwm_shifts shifts = { n_columns, value };
        struct ptwm_parsed_chain chain;

        for (uint32_t c = 0; c < n_columns; c++)
            value[c] = (uint16_t)random_below(1u << bits);
        CHECK_EQ(ptwm_chain_parse(bytes, 4, &chain, NULL), PTWM_OK);
        check_label(&chain, width == 0 ? (n + 1) / 2 : n * width, &shifts);
        free(value);
    }
}

int main(void)
{
    source = make_arena();
    target = make_arena();
    RUN(report_levels);
    RUN(small_sizes);
    RUN(sizes_around_limits);
    RUN(large_sizes);
    RUN(malformed_small);
    RUN(malformed_many_lanes);
    RUN(malformed_pairs);
    RUN(random_bytes);
    RUN(byte_planes);
    RUN(delta);
    RUN(label_planes);
    CHECK_EXIT();
}
