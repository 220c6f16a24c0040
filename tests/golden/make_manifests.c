/*
 * Manifests: what a reader has to skip, to fill in and to leave alone; where segments and tensors are.
 */
#include <stdlib.h>

#include "golden.h"
#include "rest.h"

enum { N = 64 };

/* The bytes of each segment here. */
static void make_raw(uint8_t raw[N], unsigned seed)
{
    for (unsigned i = 0; i < N; i++)
        raw[i] = (uint8_t)(i * (seed + 3) + seed);
}

static unsigned add_segment(struct golden *g, unsigned flags, uint8_t raw[N])
{
    static const uint8_t identity[1] = { 0 };
    const struct composition c = { .flags = flags, .codecs = identity };

    make_raw(raw, g->n_segments);
    return golden_compose(g, &c, raw, N);
}

/* A tensor's entry: a map of n_fields, which begins with its name; the caller puts the rest of it. */
static void begin_entry(struct golden *g, unsigned n_fields, const char *name)
{
    forge_head(&g->entries, PTWM_CBOR_MAP, n_fields);
    forge_uint(&g->entries, 0);
    forge_text(&g->entries, name);
}

static void put_fields(struct golden *g, size_t n, const uint64_t (*fields)[2])
{
    for (size_t i = 0; i < n; i++) {
        forge_uint(&g->entries, fields[i][0]);
        forge_uint(&g->entries, fields[i][1]);
    }
}

static void expect_bytes(struct golden *g, const char *name, const uint8_t *raw, size_t nbytes)
{
    golden_expect(g, name, strlen(name), PTWM_DTYPE_NONE, GOLDEN_NO_SHAPE, NULL, raw, nbytes);
}

/* A segment of four elements of bfloat16, by label rANS with one class of two labels, and an exception: 1, .5, -1, 1.5. */
static void put_tiny_labels(struct golden *g, const uint8_t raw[8])
{
    static const struct ptwm_step step = { PTWM_STEP_LABEL, 2, 6, 9 };
    static const uint8_t classes[1] = { 0 };
    const struct ptwm_label_set set = { 1, { { 2, { 252, 254 }, { 16384, 49152 }, { 0 } } } };
    uint16_t symbols[4], rests[4];
    uint8_t rest_plane[4];
    struct ptwm_label_model model;
    forge labels = forge_new();
    const size_t begin = g->body.nbytes;
    size_t tail_begin;

    for (unsigned i = 0; i < 4; i++) {
        const unsigned element = ptwm_load16(raw + 2 * i);
        symbols[i] = (uint16_t)(element >> 6 & 511);
        rests[i] = (uint16_t)(element >> 15 << 6 | (element & 63));
    }
    ptwm_rest_pack(rest_plane, rests, 4, 7);
    ptwm_label_model_init(&model, &ptwm_default_allocator, &step);
    model.unit = 4;
    MUST(ptwm_label_model_add_set(&model, &set) == PTWM_OK);
    forge_labels(&labels, &model, 0, classes, 0, symbols, 4, 4, NULL);
    forge_put(&g->body, rest_plane, 4);
    forge_put(&g->body, labels.data, labels.nbytes);
    tail_begin = g->body.nbytes;
    forge_put(&g->body, "\4\3\2\6\x09\x08", 6); /* the chain, 8 bytes a chunk */
    MUST(ptwm_label_model_write(&model, &g->body) == PTWM_OK);
    forge_u8(&g->body, PTWM_CODEC_IDENTITY);
    forge_varint(&g->body, 4);
    forge_u32(&g->body, ptwm_crc32c(0, rest_plane, 4));
    forge_u8(&g->body, PTWM_CODEC_LABEL_RANS);
    forge_varint(&g->body, labels.nbytes);
    forge_u32(&g->body, ptwm_crc32c(0, labels.data, labels.nbytes));
    forge_seal(&g->body, tail_begin);
    g->segments[g->n_segments][0] = g->body.nbytes - begin;
    g->segments[g->n_segments][1] = g->body.nbytes - tail_begin;
    g->segments[g->n_segments][2] = 8;
    g->segments[g->n_segments++][3] = PTWM_SEGMENT_CHECKED;
    ptwm_label_model_release(&model);
    forge_free(&labels);
}

/* The file of FORMAT.md's example. */
static void make_tiny(void)
{
    static const uint8_t text[3] = { 'a', 'b', 'c' }, identity[1] = { 0 };
    static const uint8_t floats[8] = { 0x80, 0x3F, 0x00, 0x3F, 0x80, 0xBF, 0xC0, 0x3F };
    const struct composition c = { .codecs = identity };
    const uint64_t shapes[2][2] = { { 3 }, { 2, 2 } };
    struct golden *g = golden_begin();

    golden_compose(g, &c, text, 3);
    begin_entry(g, 3, "x");
    put_fields(g, 1, (const uint64_t[][2]){ { 1, PTWM_DTYPE_U8 } });
    forge_put(&g->entries, "\2\x81\3", 3);
    golden_expect(g, "x", 1, PTWM_DTYPE_U8, 1, shapes[0], text, 3);
    put_tiny_labels(g, floats);
    begin_entry(g, 4, "y");
    put_fields(g, 1, (const uint64_t[][2]){ { 1, PTWM_DTYPE_BF16 } });
    forge_put(&g->entries, "\2\x82\2\2", 4);
    put_fields(g, 1, (const uint64_t[][2]){ { 5, ptwm_xxh3_64(floats, 8) } });
    golden_expect(g, "y", 1, PTWM_DTYPE_BF16, 2, shapes[1], floats, 8);
    golden_seal(g);
    golden_save(g, "tiny.ptwm", "three bytes as they are and four floats by label rANS; FORMAT.md explains each byte");
}

static void make_ranges(void)
{
    struct golden *g = golden_begin();
    uint8_t raw[3][N];

    for (unsigned i = 0; i < 3; i++)
        add_segment(g, PTWM_SEGMENT_CHECKED, raw[i]);
    begin_entry(g, 2, "expected place");
    put_fields(g, 1, (const uint64_t[][2]){ { 7, 10 } });
    expect_bytes(g, "expected place", raw[0], 10);
    begin_entry(g, 2, "behind it");
    put_fields(g, 1, (const uint64_t[][2]){ { 7, 5 } });
    expect_bytes(g, "behind it", raw[0] + 10, 5);
    begin_entry(g, 3, "back, overlapping");
    put_fields(g, 2, (const uint64_t[][2]){ { 4, 2 }, { 7, 11 } });
    expect_bytes(g, "back, overlapping", raw[0] + 2, 11);
    begin_entry(g, 1, "all that follows");
    expect_bytes(g, "all that follows", raw[0] + 15, N - 15);
    begin_entry(g, 2, "empty");
    put_fields(g, 1, (const uint64_t[][2]){ { 7, 0 } });
    expect_bytes(g, "empty", NULL, 0);
    begin_entry(g, 3, "next segment, with an offset");
    put_fields(g, 2, (const uint64_t[][2]){ { 4, 20 }, { 7, 4 } });
    expect_bytes(g, "next segment, with an offset", raw[1] + 20, 4);
    begin_entry(g, 3, "the last segment, from its beginning");
    put_fields(g, 2, (const uint64_t[][2]){ { 3, 2 }, { 7, 8 } });
    expect_bytes(g, "the last segment, from its beginning", raw[2], 8);
    begin_entry(g, 3, "the first one again");
    put_fields(g, 2, (const uint64_t[][2]){ { 3, 0 }, { 4, 60 } });
    expect_bytes(g, "the first one again", raw[0] + 60, 4);
    begin_entry(g, 1, "behind the furthest");
    expect_bytes(g, "behind the furthest", raw[2] + 8, N - 8);
    begin_entry(g, 2, "the second one, all of it");
    put_fields(g, 1, (const uint64_t[][2]){ { 3, 1 } });
    expect_bytes(g, "the second one, all of it", raw[1], N);
    golden_seal(g);
    golden_save(g, "ranges.ptwm", "places that entries state or leave to be expected; ranges that overlap");
}

/* Dtypes of later versions. */
static void make_unknown_dtypes(void)
{
    const uint64_t shape[2] = { 5, 3 };
    struct golden *g = golden_begin();
    uint8_t raw[3][N];

    for (unsigned i = 0; i < 3; i++)
        add_segment(g, PTWM_SEGMENT_CHECKED, raw[i]);
    begin_entry(g, 4, "code 200");
    put_fields(g, 1, (const uint64_t[][2]){ { 1, 200 } });
    forge_put(&g->entries, "\2\x82\5\3", 4);
    put_fields(g, 1, (const uint64_t[][2]){ { 7, 22 } });
    golden_expect(g, "code 200", 8, 200, 2, shape, raw[0], 22);
    begin_entry(g, 1, "the same, to the end");
    golden_expect(g, "the same, to the end", 20, 200, 2, shape, raw[0] + 22, N - 22);
    begin_entry(g, 4, "the greatest code");
    put_fields(g, 1, (const uint64_t[][2]){ { 1, UINT32_MAX } });
    forge_put(&g->entries, "\2\x80", 2);
    put_fields(g, 1, (const uint64_t[][2]){ { 7, 49 } });
    golden_expect(g, "the greatest code", 17, UINT32_MAX, 0, NULL, raw[1], 49);
    begin_entry(g, 3, "one that is known");
    put_fields(g, 1, (const uint64_t[][2]){ { 1, PTWM_DTYPE_U8 } });
    forge_put(&g->entries, "\2\x82\5\3", 4);
    golden_expect(g, "one that is known", 17, PTWM_DTYPE_U8, 2, shape, raw[1] + 49, 15);
    golden_seal(g);
    golden_save(g, "unknown-dtypes.ptwm", "codes of dtypes that are not defined: bytes can be had all the same");
}

/* All that a later version may add without a required feature. */
static void make_unknown_keys(void)
{
    static const char items[] = "\x8d" /* thirteen things in an array */
                                "\x20" "\x39\x01\x00" "\x42\x00\xff" "\x63\xe2\x82\xac" "\xa2\x00\x01\x61k\xf6" "\xf4"
                                "\xf9\x3c\x00" "\xfa\x40\x49\x0f\xdb" "\xfb\x3f\xf0\0\0\0\0\0\0" "\xc0\x61t"
                                "\xf8\xff" "\xdb\xff\xff\xff\xff\xff\xff\xff\xff\0" "\x80";
    struct golden *g = golden_begin();
    forge manifest = forge_new();
    uint8_t raw[N];

    add_segment(g, PTWM_SEGMENT_CHECKED, raw);
    expect_bytes(g, "x", raw, N);
    forge_head(&manifest, PTWM_CBOR_MAP, 9);
    forge_put(&manifest, "\0\x80\1\x81\x86", 5); /* no features; a segment of six */
    for (unsigned i = 0; i < 4; i++)
        forge_uint(&manifest, g->segments[0][i]);
    forge_put(&manifest, items, sizeof items - 1);
    forge_put(&manifest, "\0", 1);
    forge_put(&manifest, "\2\x81\xa3\0\x61x\x08", 7);
    forge_put(&manifest, items, sizeof items - 1);
    forge_put(&manifest, "\x1a\0\1\0\0\xf5", 6);
    forge_put(&manifest, "\3", 1); /* the reserved key */
    forge_put(&manifest, items, sizeof items - 1);
    forge_put(&manifest, "\4\x41\xa0\5\x41\xa0\6", 7);
    forge_put(&manifest, items, sizeof items - 1);
    forge_put(&manifest, "\x18\x18\x81\x81\x81\x81\x81\x81\x81\x00", 10); /* eight deep, with the map */
    forge_put(&manifest, "\x1b\xff\xff\xff\xff\xff\xff\xff\xff\x00", 10);
    forge_file(&g->file, &g->body, &manifest);
    forge_free(&manifest);
    golden_save(g, "unknown-keys.ptwm", "keys of the manifest and of tensors, and items of segments, to be skipped");
}

static void make_aligned(void)
{
    static const uint8_t codecs[2] = { PTWM_CODEC_IDENTITY, PTWM_CODEC_RANS };
    struct golden *g = golden_begin();
    uint8_t raw[2 * 2100];
    char name[32];

    for (unsigned i = 0; i < 6; i++) {
        struct composition c = { .chain = "\2\2", .chain_nbytes = 2, .codecs = codecs, .chunk_nbytes = 1024 };
        c.flags = i % 4 ^ 2;
        golden_bytes(raw, sizeof raw, 3, i);
        snprintf(name, sizeof name, "flags %u", c.flags);
        if (i >= 4)
            snprintf(name, sizeof name, "flags %u again", c.flags);
        golden_add(g, name, PTWM_DTYPE_NONE, GOLDEN_NO_SHAPE, NULL, &c, raw, sizeof raw - 100 * i);
    }
    golden_seal(g);
    golden_save(g, "aligned.ptwm", "segments and chunks at multiples of 64 bytes, and others; CRCs of planes or none");
}

/* Segments that no tensor names are no mistake. */
static void make_unused(void)
{
    struct golden *g = golden_begin();
    uint8_t raw[N];

    add_segment(g, 0, raw);
    add_segment(g, PTWM_SEGMENT_CHECKED | PTWM_SEGMENT_ALIGNED, raw);
    golden_seal(g);
    golden_save(g, "no-tensors.ptwm", "two segments, no tensors");
}

void make_manifests(void)
{
    make_tiny();
    make_ranges();
    make_unknown_dtypes();
    make_unknown_keys();
    make_aligned();
    make_unused();
}
