/*
 * Files that open but must be refused when they are decoded or verified: tails, planes, label rANS, hashes, padding.
 */
#include <stdlib.h>

#include "../fuzz/seal.h"
#include "golden.h"

/* A literal, which may hold NUL, and its length. */
#define BYTES(literal) literal, sizeof literal - 1

static void save(struct golden *g, const char *name, const char *where, enum ptwm_status expected, const char *covers)
{
    char file[128];

    snprintf(file, sizeof file, "bad-%s.ptwm", name);
    golden_bad(g, file, where, 0, expected, covers);
}

/* The file of a segment whose chunks and tail (without CRC) are these. */
static void save_parts(const char *name, const char *chunks, size_t chunks_nbytes, const char *tail, size_t tail_nbytes,
                       uint64_t raw_nbytes, unsigned flags, enum ptwm_status expected, const char *covers)
{
    struct golden *g = golden_begin();
    forge c = forge_new(), t = forge_new();

    forge_put(&c, chunks, chunks_nbytes);
    forge_put(&t, tail, tail_nbytes);
    forge_one(&g->file, &c, &t, raw_nbytes, flags);
    forge_free(&c);
    forge_free(&t);
    save(g, name, "decode", expected, covers);
}

/* --------------------------------------------------------------------------------------------------------- tails */

static void make_tails(void)
{
    static const struct {
        const char *name, *tail;
        size_t nbytes;
        enum ptwm_status expected;
        const char *covers;
    } tails[] = {
        { "chain-opcode", BYTES("\2\4\2\6\0\6"), PTWM_ERR_CHAIN, "an unknown step" },
        { "chain-cut", BYTES("\1\1\6\0\6"), PTWM_ERR_CHAIN, "a step without its parameter" },
        { "chain-delta", BYTES("\2\1\3\6\0\6"), PTWM_ERR_CHAIN, "a delta of width 3" },
        { "chain-bytes", BYTES("\2\2\1\6\0\6"), PTWM_ERR_CHAIN, "a bytes step of width 1" },
        { "chain-bytes-17", BYTES("\2\2\x11\6\0\6"), PTWM_ERR_CHAIN, "a bytes step of width 17" },
        { "chain-label-width", BYTES("\4\3\3\0\5\6\0\6"), PTWM_ERR_CHAIN, "a label step of width 3" },
        { "chain-label-bits", BYTES("\4\3\2\x0f\2\6\0\6"), PTWM_ERR_CHAIN, "a symbol beyond its unit" },
        { "chain-label-none", BYTES("\4\3\2\0\0\6\0\6"), PTWM_ERR_CHAIN, "a symbol of no bits" },
        { "chain-label-16", BYTES("\4\3\2\0\x10\6\0\6"), PTWM_ERR_CHAIN, "a symbol of 16 bits" },
        { "chain-behind", BYTES("\4\2\2\1\1\6\0\6"), PTWM_ERR_CHAIN, "a step behind one that splits" },
        { "chain-nine", BYTES("\x12\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1\6\0\6"), PTWM_ERR_CHAIN, "nine steps" },
        { "chain-multiple", BYTES("\2\2\4\6\0\2\0\2\0\1\0\1"), PTWM_ERR_CHAIN,
          "a width that does not divide the raw bytes" },
        { "chain-chunk-multiple", BYTES("\2\1\2\7\0\6"), PTWM_ERR_CHAIN, "a width that does not divide the chunk" },
        { "chunk-none", BYTES("\0\0\0\6"), PTWM_ERR_SEGMENT, "chunks of no bytes" },
        { "chunk-long", BYTES("\0\x81\x80\x80\x20\0\6"), PTWM_ERR_SEGMENT, "chunks of 2^26 + 1 bytes" },
        { "chunk-short", BYTES("\0\3\0\3\0\3"), PTWM_ERR_SEGMENT, "two chunks of three bytes" },
        { "table-short", BYTES("\0\6\0"), PTWM_ERR_SEGMENT, "a chunk table that ends early" },
        { "table-long", BYTES("\0\6\0\6\0"), PTWM_ERR_SEGMENT, "a byte behind the chunk table" },
        { "table-sum", BYTES("\0\6\0\5"), PTWM_ERR_SEGMENT, "stored planes that leave bytes over" },
        { "table-sum-more", BYTES("\0\6\0\7"), PTWM_ERR_SEGMENT, "stored planes that reach into the tail" },
        { "table-varint", BYTES("\0\6\0\x86\0"), PTWM_ERR_SEGMENT, "a varint that is not minimal" },
        { "table-varint-65", BYTES("\0\6\0\x86\x80\x80\x80\x80\x80\x80\x80\x80\2"), PTWM_ERR_SEGMENT,
          "a varint of 65 bits" },
        { "table-plane", BYTES("\0\6\0\x99\x80\4"), PTWM_ERR_SEGMENT,
          "a stored plane longer than 4 * 6 + 65536 bytes" },
        { "codec-8", BYTES("\0\6\x08\6"), PTWM_ERR_CODEC, "an unknown codec" },
        { "codec-label", BYTES("\0\6\5\6"), PTWM_ERR_CODEC, "label rANS of a plane of bytes" },
        { "codec-trim", BYTES("\0\6\6\6"), PTWM_ERR_CODEC, "trim of a plane of bytes" },
        { "codec-carried", BYTES("\0\6\7\6"), PTWM_ERR_CODEC, "carried, a plane of bytes" },
        { "codec-carried-alone", BYTES("\4\3\2\6\x09\6\1\0\0\7\0\0\6"), PTWM_ERR_CODEC,
          "a carried rest plane without label rANS" },
    };

    for (size_t i = 0; i < sizeof tails / sizeof tails[0]; i++)
        save_parts(tails[i].name, BYTES("abcdef"), tails[i].tail, tails[i].nbytes, 6, 0, tails[i].expected,
                   tails[i].covers);
}

static void make_models(void)
{
#define SET "\1\2\x80\x40\x80\x40" /* one class, two labels of 32768 */
    static const struct {
        const char *name, *model;
        size_t nbytes;
        const char *covers;
    } models[] = {
        { "unit-0", BYTES("\0\0\0"), "a unit of no elements" },
        { "unit-large", BYTES("\x81\x80\x40\0\0"), "a unit of 2^20 + 1 elements" },
        { "columns", BYTES("\1\x81\x80\x40\0\1\0\0"), "2^20 + 1 columns" },
        { "columns-width-0", BYTES("\1\2\0\0\0"), "shifts of 0 bits" },
        { "columns-width-9", BYTES("\1\2\0\x09\0\0\0\0"), "shifts of 9 bits" },
        { "columns-128", BYTES("\1\2\x7f\1\2\0"), "a shift of 128" },
        { "columns-bits", BYTES("\1\2\0\1\4\0"), "bits behind the shifts" },
        { "phases-bits", BYTES("\1\2\0\x81\1\4\0"), "bits behind the phases" },
        { "sets", BYTES("\1\0\2" SET SET), "more sets than chunks" },
        { "classes-0", BYTES("\1\0\1\0"), "no classes" },
        { "classes-9", BYTES("\1\0\1\x09\2\x80\x40\x80\x40"), "nine classes" },
        { "labels-1", BYTES("\1\0\1\1\1\x80\x80\1"), "one label" },
        { "labels-33", BYTES("\1\0\1\1\x21\x80\x40\x80\x40"), "33 labels" },
        { "frequencies-less", BYTES("\1\0\1\1\2\x80\x40\xfe\x3f"), "frequencies that sum to 65528" },
        { "frequencies-more", BYTES("\1\0\1\1\2\x80\x40\x82\x40"), "frequencies that sum to 65544" },
        { "frequency-0", BYTES("\1\0\1\1\2\x80\x80\1\0"), "frequencies of 65536 and 0" },
        { "gap-0", BYTES("\1\0\1\1\2\x80\x40\x81\x40\0"), "a gap of 0 that is written" },
        { "label-symbol", BYTES("\1\0\1\1\2\x80\x40\x81\x40\xff\3"), "a label of 10 bits for symbols of 9" },
        { "second-frequencies", BYTES("\1\2\0\x81\0\2\1" SET "\x80\x20\xff\x1f"),
          "second frequencies that do not sum to 65536" },
        { "second-frequency-0", BYTES("\1\2\0\x81\0\2\1" SET "\x80\x40\0"), "a second frequency of 0" },
    };

    for (size_t i = 0; i < sizeof models / sizeof models[0]; i++) {
        forge tail = forge_new();
        char name[64];
        snprintf(name, sizeof name, "model-%s", models[i].name);
        forge_put(&tail, "\4\3\2\6\x09\x08", 6); /* four elements of bfloat16 */
        forge_put(&tail, models[i].model, models[i].nbytes);
        forge_put(&tail, "\0\4\0\x08", 4);
        save_parts(name, BYTES("\0\0\0\0\1\0\1\0\1\0\1\0"), (char *)tail.data, tail.nbytes, 8, 0, PTWM_ERR_SEGMENT,
                   models[i].covers);
        forge_free(&tail);
    }
}

/* -------------------------------------------------------------------------------------------------------- planes */

static void make_planes(void)
{
    static const struct {
        const char *name;
        unsigned codec;
        size_t raw_nbytes;
        const char *bytes;
        size_t nbytes;
        const char *covers;
    } planes[] = {
        { "identity-short", PTWM_CODEC_IDENTITY, 6, BYTES("abcde"), "five bytes for six" },
        { "constant-none", PTWM_CODEC_CONSTANT, 6, BYTES(""), "no byte to repeat" },
        { "constant-two", PTWM_CODEC_CONSTANT, 6, BYTES("ab"), "two bytes to repeat, of a plane of bytes" },
        { "set-no-groups", PTWM_CODEC_HUFFMAN, 6, BYTES("\0\0"), "a symbol set without groups" },
        { "set-no-members", PTWM_CODEC_HUFFMAN, 6, BYTES("\1\0\0\0"), "a group without members" },
        { "huffman-one", PTWM_CODEC_HUFFMAN, 6, BYTES("\1\0\1\0\0"), "one value, and a byte behind it" },
        { "huffman-hole", PTWM_CODEC_HUFFMAN, 4, BYTES("\1\0\3\0\x21\1\1\1\0\0\0\0"), "code lengths 1 and 2" },
        { "huffman-full", PTWM_CODEC_HUFFMAN, 4, BYTES("\1\0\7\0\x11\1\1\1\1\0\0\0\0"), "three codes of length 1" },
        { "huffman-length-0", PTWM_CODEC_HUFFMAN, 4, BYTES("\1\0\3\0\x10\1\1\1\0\0\0\0"), "a code of length 0" },
        { "huffman-length-12", PTWM_CODEC_HUFFMAN, 4, BYTES("\1\0\3\0\x1c\1\1\1\0\0\0\0"), "a code of length 12" },
        { "huffman-short", PTWM_CODEC_HUFFMAN, 4, BYTES("\1\0\3\0\x11\1\1\1\0\0\0"), "a stream that ends early" },
        { "huffman-long", PTWM_CODEC_HUFFMAN, 4, BYTES("\1\0\3\0\x11\1\1\1\0\0\0\0\0"), "a byte without a code" },
        { "huffman-bits", PTWM_CODEC_HUFFMAN, 4, BYTES("\1\0\3\0\x11\1\1\1\0\0\0\2"), "unused bits of a stream" },
        { "huffman-table-bits", PTWM_CODEC_HUFFMAN, 4, BYTES("\1\0\7\0\x21\x12\1\1\1\0\0\0\0"),
          "unused bits of the lengths" },
        { "rans-state", PTWM_CODEC_RANS, 4, BYTES("\1\0\1\0\xff\xff\0\0\0\0\1\0\0\0\1\0\0\0\1\0"),
          "a state below 65536" },
        { "rans-short", PTWM_CODEC_RANS, 4, BYTES("\1\0\1\0\0\0\1\0\0\0\1\0\0\0\1\0\0\0\1"),
          "three states and a half" },
        { "rans-long", PTWM_CODEC_RANS, 4, BYTES("\1\0\1\0\0\0\1\0\0\0\1\0\0\0\1\0\0\0\1\0\0\0"),
          "a word that is not used" },
        { "rans-half", PTWM_CODEC_RANS, 4, BYTES("\1\0\1\0\0\0\1\0\0\0\1\0\0\0\1\0\0\0\1\0\0"), "half a word" },
        { "rans-final", PTWM_CODEC_RANS, 4, BYTES("\1\0\1\0\1\0\1\0\0\0\1\0\0\0\1\0\0\0\1\0"),
          "a final state of 65537" },
        { "rans-frequencies", PTWM_CODEC_RANS, 4, BYTES("\1\0\3\0\xff\x1f\0\0\1\0\0\0\1\0\0\0\1\0\0\0\1\0"),
          "a frequency of 4096 that leaves none" },
        { "rans-words", PTWM_CODEC_RANS, 4, BYTES("\1\0\3\0\0\1\0\1\0\0\0\1\0\0\0\1\0\0\0\1\0"),
          "words that end early" },
        { "zstd-none", PTWM_CODEC_ZSTD, 6, BYTES(""), "no frame" },
        { "zstd-size", PTWM_CODEC_ZSTD, 6, BYTES("\x28\xb5\x2f\xfd\x20\7\x31\0\0abcdef"),
          "a frame that declares 7 bytes for 6" },
        { "zstd-no-size", PTWM_CODEC_ZSTD, 6, BYTES("\x28\xb5\x2f\xfd\0\x58\x31\0\0abcdef"),
          "a frame that declares no size" },
        { "zstd-dictionary", PTWM_CODEC_ZSTD, 6, BYTES("\x28\xb5\x2f\xfd\x21\1\6\x31\0\0abcdef"),
          "a frame with a dictionary" },
        { "zstd-cut", PTWM_CODEC_ZSTD, 6, BYTES("\x28\xb5\x2f\xfd\x20\6\x31\0\0abcde"), "a frame that is cut short" },
        { "zstd-rest", PTWM_CODEC_ZSTD, 6, BYTES("\x28\xb5\x2f\xfd\x20\6\x31\0\0abcdefg"), "a byte behind the frame" },
        { "zstd-skippable", PTWM_CODEC_ZSTD, 6, BYTES("\x50\x2a\x4d\x18\0\0\0\0\x28\xb5\x2f\xfd\x20\6\x31\0\0abcdef"),
          "a frame to be skipped before the other" },
    };

    for (size_t i = 0; i < sizeof planes / sizeof planes[0]; i++) {
        forge tail = forge_new();
        forge_u8(&tail, 0);
        forge_varint(&tail, planes[i].raw_nbytes);
        forge_u8(&tail, planes[i].codec);
        forge_varint(&tail, planes[i].nbytes);
        save_parts(planes[i].name, planes[i].bytes, planes[i].nbytes, (char *)tail.data, tail.nbytes,
                   planes[i].raw_nbytes, 0, PTWM_ERR_PLANE, planes[i].covers);
        forge_free(&tail);
    }
}

/* Of four elements of float32: a low plane that is trimmed, 4 bytes of rests, 8 of symbols. */
static void make_label_planes(void)
{
    static const struct {
        const char *name, *low;
        size_t nbytes;
        const char *others; /* rests and symbols */
        enum ptwm_status expected;
        const char *covers;
    } cases[] = {
        { "trim-unit-0", BYTES("\0\1\x10"), "\0\0\0\0\1\0\1\0\1\0\1\0", PTWM_ERR_PLANE, "a unit of no elements" },
        { "trim-unit", BYTES("\x7f\1\x10"), "\0\0\0\0\1\0\1\0\1\0\1\0", PTWM_ERR_PLANE, "a unit of 127 elements" },
        { "trim-unit-large", BYTES("\x80\x81\x40\1\x10"), "\0\0\0\0\1\0\1\0\1\0\1\0", PTWM_ERR_PLANE,
          "a unit beyond 2^20" },
        { "trim-run-0", BYTES("\x80\1\0\x10\1\x0f\0"), "\0\0\0\0\1\0\1\0\1\0\1\0", PTWM_ERR_PLANE,
          "a run of no units" },
        { "trim-run", BYTES("\x80\1\2\x10"), "\0\0\0\0\1\0\1\0\1\0\1\0", PTWM_ERR_PLANE,
          "a run of two units where there is one" },
        { "trim-17", BYTES("\x80\1\1\x11"), "\0\0\0\0\1\0\1\0\1\0\1\0", PTWM_ERR_PLANE, "17 bits of 16" },
        { "trim-short", BYTES("\x80\1\1\x0c" "a"), "\0\0\0\0\1\0\1\0\1\0\1\0", PTWM_ERR_PLANE, "bits that end early" },
        { "trim-long", BYTES("\x80\1\1\x0c" "abc"), "\0\0\0\0\1\0\1\0\1\0\1\0", PTWM_ERR_PLANE, "a byte too many" },
        { "trim-bits", BYTES("\x80\1\1\x0d" "aq"), "\0\0\0\0\1\0\1\0\1\0\1\0", PTWM_ERR_PLANE, "unused bits" },
        { "symbol-bits", BYTES("\x80\1\1\x10"), "\0\0\0\0\1\0\1\2\1\0\1\0", PTWM_ERR_PLANE,
          "a symbol of 10 bits for 9" },
        { "rest-bits", BYTES("\x80\1\1\x10"), "\0\0\0\x10\1\0\1\0\1\0\1\0", PTWM_ERR_PADDING,
          "unused bits behind the rests" },
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        forge chunks = forge_new(), tail = forge_new();
        forge_put(&chunks, cases[i].low, cases[i].nbytes);
        forge_put(&chunks, cases[i].others, 12);
        forge_put(&tail, "\4\3\4\6\x09\x10\1\0\0\6", 10);
        forge_varint(&tail, cases[i].nbytes);
        forge_put(&tail, "\0\4\0\x08", 4);
        save_parts(cases[i].name, (char *)chunks.data, chunks.nbytes, (char *)tail.data, tail.nbytes, 16, 0,
                   cases[i].expected, cases[i].covers);
        forge_free(&chunks);
        forge_free(&tail);
    }
}

/* 256 elements of float32 whose low plane is two units with the same number of bits, which are one run. */
static void make_trim_runs(void)
{
    forge chunks = forge_new(), tail = forge_new();

    forge_put(&chunks, "\x80\1\1\x10\1\x10\0\1\0", 9); /* and constant rests and symbols */
    forge_put(&tail, "\4\3\4\6\x09\x80\x08\1\0\0\6\6\1\1\1\2", 16);
    save_parts("trim-runs", (char *)chunks.data, chunks.nbytes, (char *)tail.data, tail.nbytes, 1024, 0, PTWM_ERR_PLANE,
               "adjacent runs of the same number of bits");
    forge_free(&chunks);
    forge_free(&tail);
}

/* --------------------------------------------------------------------------------------------------------- labels */

enum { N = 640, REST_NBYTES = 64 * 7 + 128 * 7 / 8, LABELS = 16 + REST_NBYTES };

/* A file of one chunk of N elements of bfloat16 with 32 lanes and three classes, whose label plane begins at LABELS. */
static struct golden *begin_labels(void)
{
    static const uint8_t codecs[2] = { PTWM_CODEC_IDENTITY, PTWM_CODEC_LABEL_RANS };
    const struct composition c = { .chain = "\3\2\6\11", .chain_nbytes = 4, .codecs = codecs, .unit = 128, .n_lanes = 32,
                                   .n_classes = 3, .n_labels = 16, .n_sets = 1 };
    struct golden *g = golden_begin();
    uint8_t raw[2 * N];

    golden_floats(raw, N, 2, 8, 64, 1);
    golden_add(g, "x", PTWM_DTYPE_NONE, GOLDEN_NO_SHAPE, NULL, &c, raw, sizeof raw);
    golden_seal(g);
    return g;
}

/* Where the states begin: behind the exceptions, which are fewer than 128. */
static size_t find_states(const forge *file)
{
    const uint8_t *at = file->data + LABELS + 5;

    for (unsigned n = file->data[LABELS + 2]; n > 0; n--) {
        while (*at++ >= 128)
            ;
        at += 2;
    }
    return (size_t)(at - file->data);
}

static void make_coded_labels(void)
{
    static const struct {
        const char *name;
        size_t at; /* in the label plane, or among the states */
        bool is_state;
        const char *bytes;
        size_t nbytes;
        enum ptwm_status expected;
        const char *covers;
    } changes[] = {
        { "lanes", 0, false, BYTES("\3"), PTWM_ERR_PLANE, "an unknown number of lanes" },
        { "set", 1, false, BYTES("\1"), PTWM_ERR_PLANE, "a set that there is not" },
        { "exceptions", 2, false, BYTES("\xff\x7f"), PTWM_ERR_PLANE, "more exceptions than elements" },
        { "class", 3, false, BYTES("\x27"), PTWM_ERR_PLANE, "class 3 of three" },
        { "class-bits", 4, false, BYTES("\x04"), PTWM_ERR_PLANE, "unused bits behind the classes" },
        { "exception-position", 5, false, BYTES("\xff\x7f"), PTWM_ERR_PLANE, "an exception beyond the chunk" },
        { "exception-symbol", 7, false, BYTES("\2"), PTWM_ERR_PLANE, "an exception of 10 bits for symbols of 9" },
        { "state", 0, true, BYTES("\xff\xff\0\0"), PTWM_ERR_PLANE, "a state below 65536" },
        { "states-wrong", 4, true, BYTES("\x34\x12\x56\x78"), PTWM_ERR_PLANE, "a state that is not the encoder's" },
    };
    struct golden *g;

    for (size_t i = 0; i < sizeof changes / sizeof changes[0]; i++) {
        char name[64];
        g = begin_labels();
        memcpy(g->file.data + (changes[i].is_state ? find_states(&g->file) : LABELS) + changes[i].at, changes[i].bytes,
               changes[i].nbytes);
        seal_file(g->file.data, g->file.nbytes);
        snprintf(name, sizeof name, "label-%s", changes[i].name);
        save(g, name, "decode", changes[i].expected, changes[i].covers);
    }
    g = begin_labels();
    g->file.data[find_states(&g->file) + 8] ^= 1;
    save(g, "label-head-crc", "decode", PTWM_ERR_CHECKSUM, "a state that the head's CRC is not of; no CRCs of planes");
}

/* Label planes whose words, final states or rests do not go together. */
static void make_label_ends(void)
{
    static const uint8_t carried[2] = { PTWM_CODEC_CARRIED, PTWM_CODEC_LABEL_RANS };
    static const struct {
        const char *name;
        int rest, words; /* by how much the stored planes are made shorter */
        bool is_taken;   /* what states carry, by a rest plane that is carried */
        const char *covers;
    } cases[] = {
        { "words-early", 0, 2, true, "words that end early" },
        { "words-half", 0, 1, true, "half a word" },
        { "carried-short", 2, 0, true, "a carried rest plane that lacks two bytes more" },
        { "carried-by-none", -64, 0, false, "final states that carry what the rest plane does not take" },
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct composition c = { .chain = "\3\2\6\11", .chain_nbytes = 4, .codecs = carried, .unit = 128,
                                 .n_lanes = 32, .n_classes = 1, .n_labels = 32, .n_sets = 1 };
        struct golden *g = golden_begin();
        forge body = forge_new(), tail = forge_new();
        uint64_t record[4];
        uint8_t raw[2 * N], *table;
        size_t rest_nbytes, labels_nbytes;
        golden_floats(raw, N, 2, 8, 64, 1);
        compose(&body, &c, raw, sizeof raw, record);
        /* The tail's last bytes: codec 7, u16 length, codec 5, u16 length, CRC, all lengths varints of two bytes. */
        table = body.data + body.nbytes - 10;
        rest_nbytes = table[1] % 128u + 128u * table[2];
        labels_nbytes = table[4] % 128u + 128u * table[5];
        for (int k = cases[i].rest; k < 0; k++)
            forge_u8(&g->body, 0);
        forge_put(&g->body, body.data + (cases[i].rest > 0 ? cases[i].rest : 0),
                  rest_nbytes - (size_t)(cases[i].rest > 0 ? cases[i].rest : 0));
        forge_put(&g->body, body.data + rest_nbytes, labels_nbytes - (size_t)cases[i].words);
        forge_put(&tail, body.data + record[0] - record[1], (size_t)record[1] - 10);
        forge_u8(&tail, cases[i].is_taken ? PTWM_CODEC_CARRIED : PTWM_CODEC_IDENTITY);
        forge_varint(&tail, rest_nbytes - (size_t)cases[i].rest);
        forge_u8(&tail, PTWM_CODEC_LABEL_RANS);
        forge_varint(&tail, labels_nbytes - (size_t)cases[i].words);
        forge_one(&g->file, &g->body, &tail, sizeof raw, 0);
        forge_free(&body);
        forge_free(&tail);
        save(g, cases[i].name, "decode", PTWM_ERR_PLANE, cases[i].covers);
    }
}

/* ------------------------------------------------------------------------------------- checksums, hashes, padding */

static void make_checksums(void)
{
    static const uint8_t identity[1] = { 0 };
    struct composition c = { .codecs = identity, .flags = PTWM_SEGMENT_CHECKED };
    struct golden *g;

    for (unsigned i = 0; i < 2; i++) {
        g = golden_begin();
        golden_add(g, "x", PTWM_DTYPE_NONE, GOLDEN_NO_SHAPE, NULL, &c, (const uint8_t *)"abcdef", 6);
        golden_seal(g);
        g->file.data[i == 0 ? 16 + 3 : 16 + 6 + 1] ^= 1;
        if (i == 0)
            save(g, "plane-crc", "decode", PTWM_ERR_CHECKSUM, "a plane whose CRC is another");
        else
            save(g, "tail-crc", "decode", PTWM_ERR_CHECKSUM, "a tail whose CRC is another");
    }
    g = golden_begin();
    golden_add(g, "x", PTWM_DTYPE_NONE, GOLDEN_NO_SHAPE, NULL, &c, (const uint8_t *)"abcdef", 6);
    g->entries.data[g->entries.nbytes - 1] ^= 1;
    golden_seal(g);
    save(g, "hash", "verify", PTWM_ERR_HASH, "a payload hash that is another");
}

static void make_padding(void)
{
    static const uint8_t identity[1] = { 0 };
    struct composition c = { .codecs = identity, .flags = PTWM_SEGMENT_ALIGNED, .chunk_nbytes = 1030 };
    struct golden *g;
    uint8_t raw[1100] = { 0 };

    for (unsigned i = 0; i < 2; i++) {
        g = golden_begin();
        golden_add(g, "x", PTWM_DTYPE_NONE, GOLDEN_NO_SHAPE, NULL, &c, raw, sizeof raw);
        golden_seal(g);
        g->file.data[i == 0 ? 63 : 64 + 1030] = 1;
        if (i == 0)
            save(g, "padding-segment", "verify", PTWM_ERR_PADDING, "padding before a segment that is not zero");
        else
            save(g, "padding-chunk", "verify", PTWM_ERR_PADDING, "padding before a chunk that is not zero");
    }
}

void make_bad_segments(void)
{
    make_tails();
    make_models();
    make_planes();
    make_label_planes();
    make_trim_runs();
    make_coded_labels();
    make_label_ends();
    make_checksums();
    make_padding();
}
