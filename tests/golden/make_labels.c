/*
 * Label rANS: numbers of lanes and classes, sets, exceptions, shifts, phases and carried rests, for all widths.
 */
#include <stdlib.h>

#include "golden.h"
#include "rest.h"

enum { LABEL = PTWM_CODEC_LABEL_RANS, CARRIED = PTWM_CODEC_CARRIED, TRIM = PTWM_CODEC_TRIM };

struct kind {
    const char *file, *covers;
    char chain[5];
    unsigned width, exponent_bits; /* of elements; 0 exponent bits: bytes */
    unsigned n;                    /* elements; bytes for nibbles */
    uint8_t codecs[5];
    unsigned rest;                 /* the rest plane's number, if there is one */
};

static void make_raw(const struct kind *k, uint8_t *raw, size_t n, uint64_t seed)
{
    if (k->exponent_bits > 0)
        golden_floats(raw, n, k->width, k->exponent_bits, 64, seed);
    else
        golden_bytes(raw, n, 5, seed);
    if (k->codecs[0] == TRIM)
        for (size_t i = 0; i < n; i++)
            ptwm_store16(raw + k->width * i, i / 128 % 2 ? 0 : ptwm_load16(raw + k->width * i) & 0xFFF0);
}

/* For each number of lanes: 1 to 4 classes, with more and more of what there is. */
static void make_kind(const struct kind *k)
{
    static const unsigned lanes[] = { 4, 32, 128 };
    struct golden *g = golden_begin();
    uint8_t *raw = malloc(8 * (size_t)k->n);
    const unsigned unit_bits = k->chain[1] == 0 ? 4 : k->chain[1] == 1 ? 8 : 16;
    const uint64_t rest_nbytes = ptwm_rest_nbytes(k->chain[1] == 0 ? 2 * k->n : k->n, unit_bits - (unsigned)k->chain[3]);

    for (unsigned i = 0; i < 12; i++) {
        const unsigned classes = i % 4 + 1, n_lanes = lanes[i / 4];
        const bool is_carried = classes % 2 == 0 && rest_nbytes >= 2 * n_lanes;
        uint8_t codecs[5];
        struct composition c = { .chain = k->chain, .chain_nbytes = 4, .flags = PTWM_SEGMENT_CHECKED, .codecs = codecs };
        char name[96];
        memcpy(codecs, k->codecs, sizeof codecs);
        c.trim_unit = 128;
        c.unit = n_lanes == 128 ? 128 : 25 * classes;
        c.n_lanes = n_lanes;
        c.n_classes = classes;
        c.n_labels = k->exponent_bits == 0 ? 16 : classes == 1 ? 32 : 3 + 4 * classes;
        c.n_sets = 1;
        if (classes >= 2) {
            c.n_columns = classes == 2 ? 64 : 48 + n_lanes % 5; /* a power of two; a number that blocks don't divide into */
            c.base = -2;
            c.spread = 4;
        }
        c.has_phases = classes >= 3;
        if (is_carried)
            codecs[k->rest] = CARRIED;
        make_raw(k, raw, k->n, i);
        snprintf(name, sizeof name, "%u lanes, %u classes%s%s%s", n_lanes, classes, c.n_columns > 0 ? ", shifts" : "",
                 c.has_phases ? ", phases" : "", is_carried ? ", carried" : "");
        golden_add(g, name, PTWM_DTYPE_NONE, GOLDEN_NO_SHAPE, NULL, &c, raw, k->width * k->n);
    }
    golden_seal(g);
    golden_save(g, k->file, k->covers);
    free(raw);
}

static void make_kinds(void)
{
    static const struct kind kinds[] = {
        { "label-bf16.ptwm", "label rANS of bf16, 9 bits; rests of 7", "\3\2\6\11", 2, 8, 1400, { 0, LABEL }, 0 },
        { "label-bf16-8.ptwm", "label rANS of bf16, 8 bits; rests of 8", "\3\2\7\10", 2, 8, 1400, { 0, LABEL }, 0 },
        { "label-f16.ptwm", "label rANS of f16, 6 bits; rests of 10", "\3\2\11\6", 2, 5, 1400, { 0, LABEL }, 0 },
        { "label-f16-5.ptwm", "label rANS of f16, 5 bits; rests of 11", "\3\2\12\5", 2, 5, 1000, { 0, LABEL }, 0 },
        { "label-15.ptwm", "label rANS of 15 bits of 16", "\3\2\0\17", 2, 8, 700, { 0, LABEL }, 0 },
        { "label-e4m3.ptwm", "label rANS of e4m3, 5 bits; rests of 3", "\3\1\2\5", 1, 4, 1400, { 0, LABEL }, 0 },
        { "label-e4m3-4.ptwm", "label rANS of e4m3, 4 bits; rests of 4", "\3\1\3\4", 1, 4, 1400, { 0, LABEL }, 0 },
        { "label-e5m2.ptwm", "label rANS of e5m2, 6 bits; rests of 2", "\3\1\1\6", 1, 5, 1400, { 0, LABEL }, 0 },
        { "label-bytes.ptwm", "label rANS of whole bytes", "\3\1\0\10", 1, 0, 1400, { LABEL }, 0 },
        { "label-top-bits.ptwm", "label rANS of the top 5 bits of bytes", "\3\1\3\5", 1, 0, 1400, { 0, LABEL }, 0 },
        { "label-nibbles.ptwm", "label rANS of nibbles", "\3\0\0\4", 1, 0, 700, { LABEL }, 0 },
        { "label-nibble-parts.ptwm", "label rANS of two bits of nibbles; rests of 2", "\3\0\1\2", 1, 0, 700,
          { 0, LABEL }, 0 },
        { "label-f32.ptwm", "label rANS of f32, 9 bits; low planes", "\3\4\6\11", 4, 8, 1100, { 0, 0, LABEL }, 1 },
        { "label-f32-trimmed.ptwm", "label rANS of f32, 9 bits; trimmed low planes", "\3\4\6\11", 4, 8, 1100,
          { TRIM, 0, LABEL }, 1 },
        { "label-f64.ptwm", "label rANS of f64, 11 bits; three low planes, one of them trimmed", "\3\10\4\13", 8, 11, 700,
          { TRIM, PTWM_CODEC_RANS, 0, 0, LABEL }, 3 },
    };

    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        make_kind(&kinds[i]);
}

/* ---------------------------------------------------------------------------------------------------- other things */

static const uint8_t plain[2] = { 0, LABEL }, carrying[2] = { CARRIED, LABEL }, huffman[2] = { 0, PTWM_CODEC_HUFFMAN };

static struct composition bf16(unsigned n_lanes, unsigned n_classes)
{
    const struct composition c = { .chain = "\3\2\6\11", .chain_nbytes = 4, .flags = PTWM_SEGMENT_CHECKED, .codecs = plain,
                                   .unit = 128, .n_lanes = n_lanes, .n_classes = n_classes, .n_labels = 12, .n_sets = 1 };
    return c;
}

static void add(struct golden *g, const char *name, const struct composition *c, size_t n)
{
    const uint64_t shape[1] = { n };
    uint8_t *raw = malloc(2 * n);

    golden_floats(raw, n, 2, 8, 64, n);
    golden_add(g, name, PTWM_DTYPE_BF16, 1, shape, c, raw, 2 * n);
    free(raw);
}

/* Chunks of several sets, some of them not coded by label rANS; columns that go on from chunk to chunk. */
static void make_sets(void)
{
    struct golden *g = golden_begin();

    for (unsigned i = 0; i < 3; i++) {
        struct composition c = bf16(i == 0 ? 4 : i == 1 ? 32 : 128, 1 + i);
        char name[64];
        c.chunk_nbytes = 2048;
        c.n_sets = 3 - (i == 2);
        c.n_columns = 100;
        c.base = -3;
        c.spread = 7;
        c.has_phases = i > 0;
        c.codecs = i == 1 ? carrying : plain;
        c.odd_codecs = i == 2 ? huffman : NULL;
        snprintf(name, sizeof name, "%u lanes, %u sets", c.n_lanes, c.n_sets);
        add(g, name, &c, 5 * 1024 + 200);
    }
    golden_seal(g);
    golden_save(g, "label-sets.ptwm", "several sets in segments of six chunks, not in order; odd chunks coded by Huffman");
}

/* Lanes without elements, units beyond chunks, columns beyond elements, eight classes, two labels. */
static void make_corners(void)
{
    static const size_t sizes[] = { 1, 2, 3, 5, 31, 33, 127, 129, 511, 513 };
    static const unsigned lanes[] = { 4, 32, 128 };
    struct golden *g = golden_begin();
    struct composition c;
    char name[64];

    for (unsigned l = 0; l < 3; l++)
        for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
            c = bf16(lanes[l], 1);
            c.codecs = (7 * sizes[i] + 7) / 8 >= 2 * lanes[l] ? carrying : plain;
            snprintf(name, sizeof name, "%u elements, %u lanes", (unsigned)sizes[i], lanes[l]);
            add(g, name, &c, sizes[i]);
        }
    c = bf16(32, 5);
    c.unit = 1;
    add(g, "units of 1, five classes", &c, 600);
    c = bf16(4, 6);
    c.unit = 100;
    add(g, "4 lanes, six classes", &c, 600);
    c = bf16(32, 8);
    c.unit = 10;
    add(g, "eight classes", &c, 600);
    c = bf16(128, 7);
    add(g, "128 lanes, seven classes", &c, 1500);
    c = bf16(128, 1);
    c.unit = 1 << 20;
    add(g, "a unit beyond the chunk", &c, 600);
    c = bf16(4, 2);
    c.n_labels = 2;
    add(g, "two labels, many exceptions", &c, 300);
    c = bf16(128, 2);
    c.n_labels = 32;
    add(g, "32 labels", &c, 1500);
    c = bf16(32, 2);
    c.n_columns = 500;
    c.base = -128;
    c.spread = 256;
    c.has_phases = true;
    add(g, "shifts of 8 bits, more columns than elements", &c, 300);
    c = bf16(128, 2);
    c.n_columns = 1;
    c.base = 127;
    c.spread = 1;
    add(g, "one column, shifted by 127", &c, 900);
    c = bf16(32, 1);
    c.n_columns = 3;
    c.base = -2;
    c.spread = 3;
    c.has_phases = true;
    add(g, "three columns with phases", &c, 900);
    golden_seal(g);
    golden_save(g, "label-corners.ptwm", "label rANS where there is little or much of something");
}

/* Elements of one byte with 128 lanes have an order of their own; groups that are not whole show it. */
static void make_byte_lanes(void)
{
    static const size_t sizes[] = { 1, 2, 63, 64, 65, 100, 127, 128, 190, 255, 500, 700 };
    struct golden *g = golden_begin();
    uint8_t raw[700];
    char name[64];

    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        struct composition c = bf16(128, 1);
        const uint64_t shape[1] = { sizes[i] };
        c.chain = "\3\1\2\5";
        c.codecs = 3 * sizes[i] / 8 >= 256 ? carrying : plain;
        golden_floats(raw, sizes[i], 1, 4, 32, i);
        snprintf(name, sizeof name, "%u elements", (unsigned)sizes[i]);
        golden_add(g, name, PTWM_DTYPE_F8_E4M3, 1, shape, &c, raw, sizes[i]);
    }
    golden_seal(g);
    golden_save(g, "label-byte-lanes.ptwm", "the order of 128 lanes of elements of a byte, in groups that are not whole");
}

/* As long as vector kernels like it. */
static void make_long(void)
{
    struct golden *g = golden_begin();
    struct composition c = bf16(128, 4);

    c.unit = 256;
    c.codecs = carrying;
    c.n_columns = 256;
    c.base = -4;
    c.spread = 9;
    c.has_phases = true;
    c.n_labels = 24;
    add(g, "bf16", &c, 12000);
    golden_seal(g);
    golden_save(g, "label-long.ptwm", "a chunk of 12000 elements with 128 lanes, shifts, phases and carried rests");
}

void make_labels(void)
{
    make_kinds();
    make_sets();
    make_corners();
    make_byte_lanes();
    make_long();
}
