/*
 * Codecs of bytes and chains: every codec on every kind of plane, every step.
 */
#include <stdlib.h>

#include "golden.h"

#define CHAIN(literal) literal, sizeof literal - 1

/* A tensor of bytes with that chain. */
static void add_bytes(struct golden *g, const char *name, struct composition c, const uint8_t *raw, size_t nbytes)
{
    c.flags = PTWM_SEGMENT_CHECKED;
    golden_add(g, name, PTWM_DTYPE_NONE, GOLDEN_NO_SHAPE, NULL, &c, raw, nbytes);
}

static void make_byte_codecs(void)
{
    static const size_t sizes[] = { 1, 2, 5, 64, 1023, 1024, 4100 };
    static const struct {
        uint8_t codec;
        const char *file, *covers;
    } codecs[] = {
        { PTWM_CODEC_IDENTITY, "codec-identity.ptwm", "codec 0, planes of bytes" },
        { PTWM_CODEC_HUFFMAN, "codec-huffman.ptwm", "codec 2: one value, two, some, all 256; no whole quarters" },
        { PTWM_CODEC_RANS, "codec-rans.ptwm", "codec 3: 4 and 32 lanes; one value, two, some, all 256" },
        { PTWM_CODEC_ZSTD, "codec-zstd.ptwm", "codec 4" },
    };
    uint8_t raw[4100];
    char name[64];

    for (unsigned i = 0; i < sizeof codecs / sizeof codecs[0]; i++) {
        struct golden *g = golden_begin();
        for (unsigned s = 0; s < sizeof sizes / sizeof sizes[0]; s++)
            for (unsigned bits = 0; bits <= 6; bits += bits == 1 ? 3 : bits == 0 ? 1 : 2) {
                struct composition c = { 0 };
                if (i == 0 && bits > 0)
                    continue;
                c.codecs = &codecs[i].codec;
                golden_bytes(raw, sizes[s], bits, 10 * s + bits);
                snprintf(name, sizeof name, "%u bytes of %u bits", (unsigned)sizes[s], bits);
                add_bytes(g, name, c, raw, sizes[s]);
            }
        if (i > 0) { /* all values, one of them in every second byte */
            struct composition c = { 0 };
            uint64_t seed = i;
            c.codecs = &codecs[i].codec;
            for (size_t n = 0; n < 1500; n++)
                raw[n] = (uint8_t)(n % 2 == 0 ? 200 : n < 600 ? n / 2 : golden_random(&seed));
            add_bytes(g, "all values", c, raw, 1500);
        }
        golden_seal(g);
        golden_save(g, codecs[i].file, codecs[i].covers);
    }
}

/* A constant in each plane of a label chain, of one byte and of two. */
static void make_constants(void)
{
    static const uint8_t constants[5] = { 1, 1, 1, 1, 1 };
    static const struct {
        const char *name, *chain;
        size_t chain_nbytes, width;
        const char *element;
    } cases[] = { /* rests are packed, so that only those of 0 make a constant plane for sure */
        { "bytes", CHAIN(""), 1, "\x11" },
        { "bytes step", CHAIN("\2\3"), 3, "\x11\x22\x33" },
        { "low, rest, symbols of two bytes", CHAIN("\3\4\6\11"), 4, "\xA5\xA5\xC0\x7F" },
        { "three low, rest, symbols of two bytes", CHAIN("\3\10\4\13"), 8, "\xA5\xA5\xA5\xA5\xA5\xA5\xF0\x7F" },
        { "rest, symbols of a byte", CHAIN("\3\2\11\6"), 2, "\0\0" },
        { "symbols alone", CHAIN("\3\1\0\10"), 1, "\x11" },
        { "nibbles", CHAIN("\3\0\0\4"), 1, "\x11" },
    };
    struct golden *g = golden_begin();
    uint8_t raw[480];

    for (unsigned i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct composition c = { .chain = cases[i].chain, .chain_nbytes = cases[i].chain_nbytes };
        c.codecs = constants;
        c.unit = 1;
        for (size_t n = 0; n < sizeof raw; n++)
            raw[n] = (uint8_t)cases[i].element[n % cases[i].width];
        add_bytes(g, cases[i].name, c, raw, sizeof raw);
    }
    golden_seal(g);
    golden_save(g, "codec-constant.ptwm", "codec 1 on all kinds of planes");
}

/* Floats of 16 or 32 bits that were widened, in units of which some have no low bits at all. */
static void make_trims(void)
{
    static const uint8_t f64_codecs[5] = { PTWM_CODEC_TRIM, PTWM_CODEC_TRIM, PTWM_CODEC_TRIM, PTWM_CODEC_RANS,
                                           PTWM_CODEC_RANS };
    static const uint8_t f32_codecs[3] = { PTWM_CODEC_TRIM, PTWM_CODEC_IDENTITY, PTWM_CODEC_HUFFMAN };
    enum { N = 2500 };
    struct golden *g = golden_begin();
    uint8_t *raw = malloc(8 * N);

    for (unsigned unit = 128; unit <= 1024; unit *= 2) {
        struct composition c = { .chain = "\3\4\6\11", .chain_nbytes = 4, .codecs = f32_codecs, .unit = 1 };
        char name[64];
        c.trim_unit = unit;
        golden_floats(raw, N, 4, 8, 50, unit);
        for (size_t i = 0; i < N; i++) {
            const unsigned t = (unsigned)(i / unit * 3 / 2 % 17);
            const uint32_t low = t == 16 ? 0 : ptwm_load16(raw + 4 * i) >> t << t;
            ptwm_store16(raw + 4 * i, (uint16_t)low);
        }
        snprintf(name, sizeof name, "f32, units of %u", unit);
        add_bytes(g, name, c, raw, 4 * N);
    }
    {
        struct composition c = { .chain = "\3\10\4\13", .chain_nbytes = 4, .codecs = f64_codecs, .unit = 1 };
        c.trim_unit = 256;
        golden_floats(raw, N, 8, 11, 50, 7);
        for (size_t i = 0; i < N; i++) { /* of 53 bits 24 are used: three of the middle plane */
            ptwm_store16(raw + 8 * i, 0);
            ptwm_store16(raw + 8 * i + 2, (uint16_t)(ptwm_load16(raw + 8 * i + 2) & 0xE000));
        }
        add_bytes(g, "f64 that was f32", c, raw, 8 * N);
        add_bytes(g, "one f64", c, raw, 8);
        c.codecs = (const uint8_t[]){ PTWM_CODEC_TRIM, PTWM_CODEC_IDENTITY, PTWM_CODEC_TRIM, 0, 0 };
        c.trim_unit = 1 << 20;
        add_bytes(g, "a unit beyond the plane", c, raw, 8 * 333);
    }
    golden_seal(g);
    golden_save(g, "codec-trim.ptwm", "codec 6: runs of units with 0 to 16 bits of zero, short last units");
    free(raw);
}

/* ------------------------------------------------------------------------------------------------------- chains */

static const uint8_t mixed[16] = { PTWM_CODEC_RANS, PTWM_CODEC_HUFFMAN, PTWM_CODEC_IDENTITY, PTWM_CODEC_HUFFMAN,
                                   PTWM_CODEC_RANS, PTWM_CODEC_IDENTITY, PTWM_CODEC_RANS, PTWM_CODEC_HUFFMAN };

static void make_steps(void)
{
    static const struct {
        const char *name, *chain;
        size_t chain_nbytes;
    } chains[] = {
        { "empty", CHAIN("") },
        { "delta 1", CHAIN("\1\1") },
        { "delta 2", CHAIN("\1\2") },
        { "delta 4", CHAIN("\1\4") },
        { "delta 8", CHAIN("\1\10") },
        { "delta 8, 4, 2, 1", CHAIN("\1\10\1\4\1\2\1\1") },
        { "eight deltas", CHAIN("\1\1\1\2\1\4\1\10\1\10\1\4\1\2\1\1") },
        { "delta 2, bytes 2", CHAIN("\1\2\2\2") },
        { "delta 4, bytes 4", CHAIN("\1\4\2\4") },
        { "delta 8, bytes 8", CHAIN("\1\10\2\10") },
        { "delta 1, bytes 3", CHAIN("\1\1\2\3") },
        { "delta 2 twice, label", CHAIN("\1\2\1\2\3\2\6\11") },
        { "seven deltas, label", CHAIN("\1\1\1\1\1\1\1\1\1\1\1\1\1\1\3\1\2\5") },
        { "delta 1, nibbles", CHAIN("\1\1\3\0\0\4") },
        { "delta 4, label 8", CHAIN("\1\4\3\10\4\13") },
    };
    enum { NBYTES = 720 };
    struct golden *g = golden_begin();
    uint8_t raw[NBYTES];
    char name[64], chain[2] = { PTWM_STEP_BYTES };

    for (unsigned i = 0; i < sizeof chains / sizeof chains[0]; i++) {
        struct composition c = { .chain = chains[i].chain, .chain_nbytes = chains[i].chain_nbytes };
        c.codecs = mixed;
        c.unit = 1;
        for (size_t n = 0; n < NBYTES; n++)
            raw[n] = (uint8_t)(n % 8 == 0 ? n / 3 : n % 8 == 1 ? n / 200 : n % 2 == 0 ? n * n : 3 * i);
        add_bytes(g, chains[i].name, c, raw, NBYTES);
    }
    for (unsigned width = 2; width <= 16; width++) {
        struct composition c = { .chain = chain, .chain_nbytes = 2, .codecs = mixed };
        chain[1] = (char)width;
        golden_bytes(raw, NBYTES, 3, width);
        snprintf(name, sizeof name, "bytes %u", width);
        add_bytes(g, name, c, raw, NBYTES / width * width);
    }
    golden_seal(g);
    golden_save(g, "chains.ptwm", "every step, alone and behind deltas; the empty chain");
}

/* Rests of all numbers of bits, with blocks of 512, and what is left over; stored by codecs of bytes. */
static void make_rests(void)
{
    static const uint8_t byte_codecs[][2] = {
        { PTWM_CODEC_IDENTITY, PTWM_CODEC_HUFFMAN },
        { PTWM_CODEC_RANS, PTWM_CODEC_RANS },
        { PTWM_CODEC_HUFFMAN, PTWM_CODEC_IDENTITY },
    };
    enum { N = 1024 + 77 };
    struct golden *g = golden_begin();
    uint8_t raw[2 * N];
    char name[64];

    for (unsigned width = 0; width <= 2; width++)
        for (unsigned bits = 1; bits <= 15; bits++) {
            const unsigned u = width == 0 ? 4 : 8 * width;
            char chain[4] = { PTWM_STEP_LABEL, (char)width, 0, (char)bits };
            struct composition c = { .chain = chain, .chain_nbytes = 4, .codecs = byte_codecs[bits % 3], .unit = 7 };
            const size_t n = 3 * (bits + width) % 4 == 0 ? N : 512 + 2 * bits;
            if (bits > u)
                continue;
            chain[2] = (char)(bits * 5 % (u - bits + 1));
            golden_floats(raw, width == 0 ? n / 2 : n, width == 2 ? 2 : 1, width == 2 ? 8 : 4, 16, bits);
            snprintf(name, sizeof name, "width %u, shift %d, bits %u", width, chain[2], bits);
            add_bytes(g, name, c, raw, width == 0 ? n / 2 : width * n);
        }
    golden_seal(g);
    golden_save(g, "rests.ptwm", "rests of 0 to 15 bits of elements of 4, 8 and 16 bits, in blocks and behind them");
}

/* Shifts hold for symbols whatever codec they have. */
static void make_shifted(void)
{
    static const uint8_t codecs[] = { PTWM_CODEC_IDENTITY, PTWM_CODEC_HUFFMAN, PTWM_CODEC_RANS };
    struct golden *g = golden_begin();
    uint8_t raw[2 * 900];
    char name[64];

    for (unsigned i = 0; i < 3; i++)
        for (unsigned wide = 0; wide < 2; wide++) {
            const uint8_t planes[2] = { PTWM_CODEC_IDENTITY, codecs[i] };
            struct composition c = { .chain = wide ? "\3\2\6\11" : "\3\2\11\6", .chain_nbytes = 4, .codecs = planes };
            c.unit = 30;
            c.n_columns = 30;
            c.base = -100;
            c.spread = 200;
            c.has_phases = i == 1;
            golden_floats(raw, 900, 2, wide ? 8 : 5, 30, i);
            snprintf(name, sizeof name, "codec %u, %s", codecs[i], wide ? "symbols of two bytes" : "of one");
            add_bytes(g, name, c, raw, sizeof raw);
        }
    golden_seal(g);
    golden_save(g, "shifts.ptwm", "column shifts of symbols that label rANS does not code, up to 99 and down to -100");
}

static void make_zstd_planes(void)
{
    static const uint8_t planes[3] = { PTWM_CODEC_ZSTD, PTWM_CODEC_ZSTD, PTWM_CODEC_ZSTD };
    static const uint8_t odd[3] = { PTWM_CODEC_IDENTITY, PTWM_CODEC_HUFFMAN, PTWM_CODEC_RANS };
    struct composition c = { .chain = "\3\4\6\11", .chain_nbytes = 4, .codecs = planes, .odd_codecs = odd, .unit = 64 };
    struct golden *g = golden_begin();
    uint8_t raw[4 * 1000];

    golden_floats(raw, 1000, 4, 8, 20, 1);
    c.chunk_nbytes = 1024;
    add_bytes(g, "mixed", c, raw, sizeof raw);
    golden_seal(g);
    golden_save(g, "zstd-planes.ptwm", "planes of all kinds coded by zstd in even chunks, by others in odd ones");
}

void make_codecs(void)
{
    make_byte_codecs();
    make_constants();
    make_trims();
    make_steps();
    make_rests();
    make_shifted();
    make_zstd_planes();
}
