/*
 * Files that must be refused, for what is around their segments: header, footer, manifest.
 */
#include "golden.h"

/* A literal, which may hold NUL, and its length. */
#define BYTES(literal) literal, sizeof literal - 1

/* A file of one segment of three bytes, "abc", and the tensors of entries. */
static struct golden *begin(const char *entries, size_t nbytes, unsigned n_entries)
{
    static const uint8_t identity[1] = { 0 };
    const struct composition c = { .codecs = identity };
    struct golden *g = golden_begin();

    golden_compose(g, &c, (const uint8_t *)"abc", 3);
    forge_put(&g->entries, entries, nbytes);
    g->n_tensors = n_entries;
    golden_seal(g);
    g->n_tensors = 0; /* none that was expected */
    return g;
}

static struct golden *begin_good(void)
{
    return begin(BYTES("\xa1\0\x61x"), 1);
}

static void refused(struct golden *g, const char *name, enum ptwm_status expected, const char *covers)
{
    golden_bad(g, name, "open", 0, expected, covers);
}

/* ---------------------------------------------------------------------------------------------- header and footer */

static void make_lengths(void)
{
    struct golden *g = golden_begin();
    size_t nbytes;

    refused(g, "bad-no-bytes.ptwm", PTWM_ERR_NOT_PTWM, "no bytes at all");
    g = begin_good();
    g->file.nbytes = 5;
    refused(g, "bad-five-bytes.ptwm", PTWM_ERR_TRUNCATED, "a part of the magic number");
    g = begin_good();
    g->file.nbytes = 20;
    refused(g, "bad-twenty-bytes.ptwm", PTWM_ERR_TRUNCATED, "a header and little else");
    g = begin_good();
    g->file.nbytes--;
    refused(g, "bad-last-byte-lost.ptwm", PTWM_ERR_TRUNCATED, "the last byte is lost");
    g = begin_good();
    memmove(g->file.data + 20, g->file.data + 21, g->file.nbytes - 21);
    g->file.nbytes--;
    refused(g, "bad-inner-byte-lost.ptwm", PTWM_ERR_TRUNCATED, "a byte in the middle is lost");
    g = begin_good();
    forge_u8(&g->file, 0);
    refused(g, "bad-trailing-byte.ptwm", PTWM_ERR_TRUNCATED, "a byte behind the footer: there is no footer at the end");
    g = begin_good();
    nbytes = g->file.nbytes;
    for (size_t i = 0; i < nbytes; i++)
        forge_u8(&g->file, g->file.data[i]);
    refused(g, "bad-twice.ptwm", PTWM_ERR_TRAILING, "two files, one behind the other");
}

static void make_headers_and_footers(void)
{
    static const struct {
        const char *name;
        size_t at; /* from the end if it is of the footer */
        bool is_footer;
        const char *bytes;
        size_t nbytes;
        enum ptwm_status expected;
        const char *covers;
    } changes[] = {
        { "magic", 0, false, BYTES("\xd6"), PTWM_ERR_NOT_PTWM, "another magic number" },
        { "foreign", 0, false, BYTES("\x89PTWM\r\n\x1a"), PTWM_ERR_FOREIGN,
          "the magic number of the format of the same name" },
        { "text-mode", 5, false, BYTES("\n\n"), PTWM_ERR_NOT_PTWM, "a magic number whose line end was changed" },
        { "header-version", 8, false, BYTES("\2"), PTWM_ERR_VERSION, "version 2 in the header" },
        { "header-version-0", 8, false, BYTES("\0"), PTWM_ERR_VERSION, "version 0 in the header" },
        { "header-field", 12, false, BYTES("\1"), PTWM_ERR_PADDING, "the header's last field is not zero" },
        { "footer-version", 12, true, BYTES("\2"), PTWM_ERR_VERSION, "version 2 in the footer" },
        { "closing-magic", 8, true, BYTES("\x1b"), PTWM_ERR_TRUNCATED, "another closing magic number" },
        { "manifest-crc", 16, true, BYTES("\0\0\0\0"), PTWM_ERR_CHECKSUM, "another CRC of the manifest" },
        { "manifest-offset", 40, true, BYTES("\x11"), PTWM_ERR_MANIFEST,
          "a manifest offset that does not fit its length" },
        { "manifest-in-header", 40, true, BYTES("\xff\xff\xff\xff\xff\xff\xff\xff"), PTWM_ERR_MANIFEST,
          "a manifest beyond all files" },
        { "file-length", 24, true, BYTES("\0\0\0\0\0\0\0\1"), PTWM_ERR_TRUNCATED, "a file length beyond the file's" },
        { "file-length-short", 24, true, BYTES("\x10\0"), PTWM_ERR_TRAILING, "a file length below the file's" },
    };
    char name[64];

    for (size_t i = 0; i < sizeof changes / sizeof changes[0]; i++) {
        struct golden *g = begin_good();
        memcpy(g->file.data + (changes[i].is_footer ? g->file.nbytes - changes[i].at : changes[i].at), changes[i].bytes,
               changes[i].nbytes);
        snprintf(name, sizeof name, "bad-%s.ptwm", changes[i].name);
        refused(g, name, changes[i].expected, changes[i].covers);
    }
}

/* ----------------------------------------------------------------------------------------------------- manifests */

static void make_manifests_alone(void)
{
    static const struct {
        const char *name, *bytes;
        size_t nbytes;
        enum ptwm_status expected;
        const char *covers;
    } manifests[] = {
        { "feature", BYTES("\xa3\0\x81\x66turing\1\x80\2\x80"), PTWM_ERR_FEATURE, "a required feature" },
        { "feature-first", BYTES("\xa3\0\x82\x66turing\x66knuth!\1\xa0\2\xf6"), PTWM_ERR_FEATURE,
          "required features, and a manifest that only they explain" },
        { "feature-number", BYTES("\xa3\0\x81\1\1\x80\2\x80"), PTWM_ERR_MANIFEST, "a feature that is not text" },
        { "no-manifest", BYTES(""), PTWM_ERR_MANIFEST, "a manifest of no bytes" },
        { "no-segments", BYTES("\xa1\2\x80"), PTWM_ERR_MANIFEST, "no list of segments" },
        { "no-tensor-list", BYTES("\xa1\1\x80"), PTWM_ERR_MANIFEST, "no list of tensors" },
        { "manifest-array", BYTES("\x82\x80\x80"), PTWM_ERR_MANIFEST, "an array for a map" },
        { "manifest-rest", BYTES("\xa2\1\x80\2\x80\0"), PTWM_ERR_MANIFEST, "a byte behind the manifest's map" },
        { "manifest-short", BYTES("\xa2\1\x80\2"), PTWM_ERR_MANIFEST, "a manifest that ends early" },
        { "key-order", BYTES("\xa2\2\x80\1\x80"), PTWM_ERR_MANIFEST, "keys that descend" },
        { "key-twice", BYTES("\xa3\1\x80\2\x80\2\x80"), PTWM_ERR_MANIFEST, "a key twice" },
        { "key-text", BYTES("\xa3\1\x80\2\x80\x61x\x80"), PTWM_ERR_MANIFEST, "a key that is text" },
        { "key-negative", BYTES("\xa3\1\x80\2\x80\x20\x80"), PTWM_ERR_MANIFEST, "a key that is negative" },
        { "head-length", BYTES("\xa2\1\x98\0\2\x80"), PTWM_ERR_MANIFEST, "a head that is not the shortest" },
        { "head-endless", BYTES("\xa2\1\x9f\xff\2\x80"), PTWM_ERR_MANIFEST, "an array of indefinite length" },
        { "head-reserved", BYTES("\xa3\1\x80\2\x80\6\xfc"), PTWM_ERR_MANIFEST, "a reserved head" },
        { "nine-deep", BYTES("\xa3\1\x80\2\x80\6\x81\x81\x81\x81\x81\x81\x81\x81\0"), PTWM_ERR_MANIFEST, "nine deep" },
        { "nine-tags", BYTES("\xa3\1\x80\2\x80\6\xc1\xc1\xc1\xc1\xc1\xc1\xc1\xc1\0"), PTWM_ERR_MANIFEST,
          "tags nine deep" },
        { "metadata-text", BYTES("\xa3\1\x80\2\x80\4\x61x"), PTWM_ERR_MANIFEST,
          "user metadata that is not a byte string" },
        { "source-map", BYTES("\xa3\1\x80\2\x80\5\xa0"), PTWM_ERR_MANIFEST, "a source that is not a byte string" },
        { "string-long", BYTES("\xa3\1\x80\2\x80\4\x5b\x10\0\0\0\0\0\0\0"), PTWM_ERR_MANIFEST,
          "a string of 2^60 bytes" },
    };
    char name[64];

    for (size_t i = 0; i < sizeof manifests / sizeof manifests[0]; i++) {
        struct golden *g = golden_begin();
        forge manifest = forge_new();
        forge_put(&manifest, manifests[i].bytes, manifests[i].nbytes);
        forge_file(&g->file, &g->body, &manifest);
        forge_free(&manifest);
        snprintf(name, sizeof name, "bad-%s.ptwm", manifests[i].name);
        refused(g, name, manifests[i].expected, manifests[i].covers);
    }
}

static void make_segments(void)
{
    static const struct {
        const char *name;
        uint64_t record[2][4];
        const char *covers;
    } cases[] = {
        { "segment-long", { { 11, 8, 3, 0 }, { 10, 8, 3, 0 } }, "segments that reach into the manifest" },
        { "segment-short", { { 9, 8, 3, 0 }, { 10, 8, 3, 0 } }, "segments that end before the manifest" },
        { "segment-wraps", { { UINT64_MAX, 8, 3, 0 }, { 21, 8, 3, 0 } }, "lengths whose sum is right modulo 2^64" },
        { "segment-tail", { { 10, 11, 3, 0 }, { 10, 8, 3, 0 } }, "a tail longer than its segment" },
        { "segment-no-tail", { { 10, 0, 3, 0 }, { 10, 8, 3, 0 } }, "a tail of no bytes" },
        { "segment-no-bytes", { { 10, 8, 0, 0 }, { 10, 8, 3, 0 } }, "a segment of no raw bytes" },
        { "segment-2-63", { { 10, 8, UINT64_C(1) << 63, 0 }, { 10, 8, 3, 0 } }, "a segment of 2^63 raw bytes" },
        { "segment-table", { { 10, 8, UINT64_C(1) << 40, 0 }, { 10, 8, 3, 0 } },
          "more chunks than the tail has bytes for" },
        { "segment-flags", { { 10, 8, 3, 4 }, { 10, 8, 3, 0 } }, "an unknown flag" },
        { "segment-aligned", { { 10, 8, 3, 0 }, { 10, 8, 3, 2 } },
          "an aligned segment that has no room for its padding" },
    };
    char name[64];

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct golden *g = golden_begin();
        forge_zeros(&g->body, 20);
        memcpy(g->segments, cases[i].record, sizeof cases[i].record);
        g->n_segments = 2;
        golden_seal(g);
        snprintf(name, sizeof name, "bad-%s.ptwm", cases[i].name);
        refused(g, name, PTWM_ERR_MANIFEST, cases[i].covers);
    }
}

static void make_tensors(void)
{
    static const struct {
        const char *name, *entries;
        size_t nbytes;
        unsigned n;
        enum ptwm_status expected;
        const char *covers;
    } cases[] = {
        { "name-twice", BYTES("\xa1\0\x61x\xa2\0\x61x\3\0"), 2, PTWM_ERR_DUPLICATE_NAME, "two tensors of one name" },
        { "name-twice-shared", BYTES("\xa1\0\x62xy\xa3\0\x61y\3\0\6\1"), 2, PTWM_ERR_DUPLICATE_NAME,
          "two of one name, which one of them shares" },
        { "no-name", BYTES("\xa1\1\2"), 1, PTWM_ERR_MANIFEST, "a tensor without a name" },
        { "name-bytes", BYTES("\xa1\0\x41x"), 1, PTWM_ERR_MANIFEST, "a name that is a byte string" },
        { "name-utf8", BYTES("\xa1\0\x62\xc3x"), 1, PTWM_ERR_MANIFEST, "a name that is not UTF-8" },
        { "name-surrogate", BYTES("\xa1\0\x63\xed\xa0\x80"), 1, PTWM_ERR_MANIFEST, "a name with a surrogate" },
        { "name-overlong", BYTES("\xa1\0\x62\xc0\x80"), 1, PTWM_ERR_MANIFEST, "a name with an overlong NUL" },
        { "shared-first", BYTES("\xa2\0\x61x\6\1"), 1, PTWM_ERR_MANIFEST, "a first name that shares" },
        { "shared-long", BYTES("\xa1\0\x61x\xa3\0\x61y\3\0\6\2"), 2, PTWM_ERR_MANIFEST, "more shared than there is" },
        { "shared-half", BYTES("\xa1\0\x62\xc3\xa9\xa3\0\x61y\3\0\6\1"), 2, PTWM_ERR_MANIFEST,
          "half a character shared" },
        { "dtype-2-32", BYTES("\xa2\0\x61x\1\x1b\0\0\0\1\0\0\0\0"), 1, PTWM_ERR_MANIFEST, "a dtype of 33 bits" },
        { "shape-no-dtype", BYTES("\xa2\0\x61x\2\x81\3"), 1, PTWM_ERR_MANIFEST, "a shape without a dtype" },
        { "shape-large", BYTES("\xa3\0\x61x\1\2\2\x81\4"), 1, PTWM_ERR_MANIFEST,
          "a shape of more bytes than there are" },
        { "shape-wraps", BYTES("\xa3\0\x61x\1\2\2\x83\x1b\x40\0\0\0\0\0\0\0\4\3"), 1, PTWM_ERR_MANIFEST,
          "a shape whose product is right modulo 2^64" },
        { "dimension-2-63", BYTES("\xa3\0\x61x\1\2\2\x82\x1b\x80\0\0\0\0\0\0\0\0"), 1, PTWM_ERR_MANIFEST,
          "a dimension of 2^63" },
        { "half-byte", BYTES("\xa3\0\x61x\1\x13\2\x81\5"), 1, PTWM_ERR_MANIFEST, "five elements of 4 bits" },
        { "length", BYTES("\xa4\0\x61x\1\2\2\x81\3\7\2"), 1, PTWM_ERR_MANIFEST,
          "another length than dtype and shape say" },
        { "range-length", BYTES("\xa2\0\x61x\7\4"), 1, PTWM_ERR_MANIFEST, "a length beyond the segment" },
        { "range-offset", BYTES("\xa2\0\x61x\4\3"), 1, PTWM_ERR_MANIFEST, "an offset beyond the segment" },
        { "range-wraps", BYTES("\xa3\0\x61x\4\1\7\x1b\xff\xff\xff\xff\xff\xff\xff\xff"), 1, PTWM_ERR_MANIFEST,
          "an end that is right modulo 2^64" },
        { "no-such-segment", BYTES("\xa2\0\x61x\3\1"), 1, PTWM_ERR_MANIFEST, "a segment that there is not" },
        { "no-place-left", BYTES("\xa1\0\x61x\xa1\0\x61y"), 2, PTWM_ERR_MANIFEST,
          "an expected place behind all segments" },
        { "empty-with-place", BYTES("\xa3\0\x61x\3\0\7\0"), 1, PTWM_ERR_MANIFEST, "no bytes, but a segment" },
        { "empty-with-hash", BYTES("\xa3\0\x61x\5\0\7\0"), 1, PTWM_ERR_MANIFEST, "no bytes, but a hash" },
        { "hash-negative", BYTES("\xa2\0\x61x\5\x20"), 1, PTWM_ERR_MANIFEST, "a hash that is negative" },
        { "entry-array", BYTES("\x81\x61x"), 1, PTWM_ERR_MANIFEST, "an entry that is an array" },
    };
    char name[64];

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct golden *g = begin(cases[i].entries, cases[i].nbytes, cases[i].n);
        snprintf(name, sizeof name, "bad-%s.ptwm", cases[i].name);
        refused(g, name, cases[i].expected, cases[i].covers);
    }
}

void make_bad(void)
{
    make_lengths();
    make_headers_and_footers();
    make_manifests_alone();
    make_segments();
    make_tensors();
}
