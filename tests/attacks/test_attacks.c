/*
 * Hostile files, made by hand: each is answered at once with its own status, opening in memory bounded by the manifest,
 * decoding in what was asked for and a few chunks.
 */
#include <time.h>

#include "check.h"
#include "forge.h"
#include "manifest.h"
#include "segment.h"

enum { BIG = 60 }; /* counts of 2^BIG */

/* A literal, which may hold NUL, and its length. */
#define BYTES(literal) literal, sizeof literal - 1

/* ------------------------------------------------------------------------------------------- memory, counted */

struct account {
    size_t live, peak;
};

static void *account_alloc(void *context, size_t nbytes)
{
    struct account *a = context;
    void *p = nbytes <= (size_t)1 << 30 ? malloc(nbytes) : NULL; /* sanitizers abort on what is absurd */

    if (p != NULL) {
        a->live += nbytes;
        a->peak = a->live > a->peak ? a->live : a->peak;
    }
    return p;
}

static void account_release(void *context, void *pointer, size_t nbytes)
{
    ((struct account *)context)->live -= nbytes;
    free(pointer);
}

static struct account account;
static const struct ptwm_allocator allocator = { account_alloc, account_release, &account };

/* What decoding may take beside tails and chunks: readers' and threads' own structures. */
enum { OWN_NBYTES = 256 << 10 };

/* ---------------------------------------------------------------------------------------------------- questions */

static struct ptwm_error last_error;

static struct ptwm_reader *open_forged(const forge *file, enum ptwm_status expected)
{
    struct ptwm_reader_options options = PTWM_READER_OPTIONS_INIT;
    const struct ptwm_error none = PTWM_ERROR_INIT;
    uint8_t *exact = malloc(file->nbytes + 1); /* for sanitizers: what is read beyond it is seen */
    struct ptwm_reader *r = NULL;
    const clock_t begin = clock();
    static uint8_t *before;

    free(before);
    before = exact; /* until the next one: the reader points into it */
    if (file->nbytes > 0)
        memcpy(exact, file->data, file->nbytes);
    last_error = none;
    memset(&account, 0, sizeof account);
    options.allocator = &allocator;
    CHECK_EQ(ptwm_reader_open_memory(exact, file->nbytes, &options, &r, &last_error), expected);
    CHECK_EQ(last_error.status, expected);
    CHECK(account.peak <= 256 * file->nbytes + OWN_NBYTES);
    CHECK((clock() - begin) / CLOCKS_PER_SEC < 2);
    return r;
}

/* The first argument: a directory for the files that fail, which other programs are then tried on. */
static const char *directory;

static void keep(const forge *file)
{
    static unsigned n;
    char path[4096];
    FILE *f;

    if (directory == NULL)
        return;
    CHECK(snprintf(path, sizeof path, "%s/%04u.ptwm", directory, n++) < (int)sizeof path);
    f = fopen(path, "wb");
    CHECK(f != NULL && fwrite(file->nbytes > 0 ? file->data : (const uint8_t *)"", 1, file->nbytes, f) == file->nbytes);
    CHECK(f != NULL && fclose(f) == 0);
}

static void refused(const forge *file, enum ptwm_status expected)
{
    struct ptwm_reader *r = open_forged(file, expected);

    keep(file);
    CHECK(r == NULL);
    ptwm_reader_close(r);
    CHECK_EQ(account.live, 0);
}

/* Decodes tensor 0, of nbytes bytes, into dst; at most memory bytes beside. */
static enum ptwm_status decode(const struct ptwm_reader *r, void *dst, uint64_t nbytes, uint32_t flags, uint64_t max_nbytes,
                               size_t memory)
{
    struct ptwm_decode_options options = PTWM_DECODE_OPTIONS_INIT;
    const struct ptwm_request request = { 0, 0, PTWM_NONE, dst, nbytes };
    const struct ptwm_error none = PTWM_ERROR_INIT;
    const size_t before = account.live;
    const clock_t begin = clock();
    enum ptwm_status status;

    last_error = none;
    account.peak = before;
    options.flags = flags;
    options.threads = 2;
    options.max_nbytes = max_nbytes;
    status = ptwm_reader_decode(r, &request, 1, &options, &last_error);
    CHECK_EQ(last_error.status, status);
    CHECK(account.peak - before <= memory + OWN_NBYTES);
    CHECK((clock() - begin) / CLOCKS_PER_SEC < 10);
    return status;
}

static uint64_t nbytes_of(const struct ptwm_reader *r)
{
    struct ptwm_tensor_info info = { .struct_nbytes = sizeof info };
    CHECK_EQ(ptwm_reader_get_tensor(r, 0, &info), PTWM_OK);
    return info.nbytes;
}

/* The file opens; decoding its tensor, with and without checksums, and verifying it give that status. */
static void undecodable(const forge *file, enum ptwm_status expected)
{
    struct ptwm_reader *r = open_forged(file, PTWM_OK);
    const int failures = check_failures;
    uint64_t nbytes;
    uint8_t *dst;

    if (expected != PTWM_OK)
        keep(file);
    if (r == NULL)
        return;
    nbytes = nbytes_of(r);
    dst = malloc((size_t)nbytes + 1);
    CHECK_EQ(decode(r, dst, nbytes, 0, 0, 4 * (size_t)nbytes + 64 * file->nbytes), expected);
    CHECK_EQ(decode(r, dst, nbytes, PTWM_DECODE_SKIP_CRC, 0, 4 * (size_t)nbytes + 64 * file->nbytes), expected);
    CHECK_EQ(ptwm_reader_verify(r, 2, NULL), expected);
    if (check_failures > failures)
        printf("    %s\n", last_error.detail);
    free(dst);
    ptwm_reader_close(r);
    CHECK_EQ(account.live, 0);
}

/* ------------------------------------------------------------------------------------------------- good parts */

/* A file of one tensor of three bytes, "abc". */
static void good_file(forge *file)
{
    forge chunks = forge_new(), tail = forge_new();

    forge_put(&chunks, "abc", 3);
    forge_u8(&tail, 0); /* the chain */
    forge_varint(&tail, 3);
    forge_u8(&tail, PTWM_CODEC_IDENTITY);
    forge_varint(&tail, 3);
    forge_one(file, &chunks, &tail, 3, 0);
    forge_free(&chunks);
    forge_free(&tail);
}

/* The file of a manifest without segments. */
static void only_manifest(forge *file, const forge *manifest)
{
    const forge body = forge_new();
    file->nbytes = 0;
    forge_file(file, &body, manifest);
}

static void begin_tensors(forge *manifest, uint64_t n)
{
    manifest->nbytes = 0;
    forge_manifest(manifest, 2, 0, NULL);
    forge_uint(manifest, 2);
    forge_head(manifest, PTWM_CBOR_ARRAY, n);
}

static void test_good_parts(void)
{
    forge file = forge_new();
    struct ptwm_reader *r;
    char got[3];

    good_file(&file);
    r = open_forged(&file, PTWM_OK);
    CHECK_EQ(decode(r, got, 3, 0, 0, 0), PTWM_OK);
    CHECK(memcmp(got, "abc", 3) == 0);
    CHECK_EQ(ptwm_reader_verify(r, 1, NULL), PTWM_OK);
    ptwm_reader_close(r);
    forge_free(&file);
}

/* ------------------------------------------------------------------------------------------- around the contents */

static void test_other_things_before_and_behind(void)
{
    static const char zip_head[] = "PK\3\4\24\0\0\0\0\0", zip_end[22] = "PK\5\6";
    forge good = forge_new(), file = forge_new();

    refused(&file, PTWM_ERR_NOT_PTWM); /* empty */
    good_file(&good);
    forge_put(&file, zip_head, 10);
    forge_put(&file, good.data, good.nbytes);
    refused(&file, PTWM_ERR_NOT_PTWM);
    file.nbytes = 0;
    forge_put(&file, good.data, good.nbytes);
    forge_put(&file, zip_end, sizeof zip_end);
    refused(&file, PTWM_ERR_TRUNCATED);
    forge_put(&file, good.data + good.nbytes - PTWM_FOOTER_NBYTES, PTWM_FOOTER_NBYTES); /* its footer once more */
    refused(&file, PTWM_ERR_TRAILING);
    file.nbytes = 0;
    forge_put(&file, good.data, good.nbytes);
    forge_put(&file, good.data, good.nbytes); /* two files, one behind the other */
    refused(&file, PTWM_ERR_TRAILING);
    for (size_t n = 1; n < good.nbytes; n++) {
        struct ptwm_reader *r = NULL;
        enum ptwm_status status = ptwm_reader_open_memory(good.data, n, NULL, &r, NULL);
        CHECK_EQ(status, PTWM_ERR_TRUNCATED);
    }
    forge_free(&good);
    forge_free(&file);
}

static void test_headers_and_footers(void)
{
    static const struct {
        size_t at, nbytes; /* from the end if it is not of the header */
        uint64_t value;
        bool is_footer;
        enum ptwm_status expected;
    } changes[] = {
        { 0, 8, 0x0A1A0D0A4D575450, false, PTWM_ERR_NOT_PTWM },
        { 0, 8, 0x0A1A0A0D4D575089, false, PTWM_ERR_NOT_PTWM },
        { 8, 4, 2, false, PTWM_ERR_VERSION },
        { 8, 4, 0xFFFFFFFF, false, PTWM_ERR_VERSION },
        { 12, 4, 1, false, PTWM_ERR_PADDING },
        { 40, 8, 0, true, PTWM_ERR_MANIFEST },
        { 40, 8, UINT64_MAX, true, PTWM_ERR_MANIFEST },
        { 32, 8, UINT64_MAX, true, PTWM_ERR_MANIFEST },
        { 32, 8, 1ull << BIG, true, PTWM_ERR_MANIFEST },
        { 24, 8, 1ull << BIG, true, PTWM_ERR_TRUNCATED },
        { 24, 8, 0, true, PTWM_ERR_TRAILING },
        { 16, 4, 0, true, PTWM_ERR_CHECKSUM },
        { 12, 4, 2, true, PTWM_ERR_VERSION },
    };
    forge file = forge_new();

    for (size_t i = 0; i < sizeof changes / sizeof changes[0]; i++) {
        uint8_t value[8];
        file.nbytes = 0;
        good_file(&file);
        ptwm_store64(value, changes[i].value);
        memcpy(file.data + (changes[i].is_footer ? file.nbytes - changes[i].at : changes[i].at), value, changes[i].nbytes);
        refused(&file, changes[i].expected);
    }
    forge_free(&file);
}

/* --------------------------------------------------------------------------------------------------- manifests */

/* Manifests as their bytes. */
static void test_malformed_cbor(void)
{
    static const struct {
        const char *bytes;
        size_t nbytes;
    } manifests[] = {
        { BYTES("") },
        { BYTES("\xa0") },                                     /* no lists */
        { BYTES("\xa1\x01\x80") },                             /* one list */
        { BYTES("\xa1\x02\x80") },
        { BYTES("\xa2\x02\x80\x01\x80") },                     /* keys that descend */
        { BYTES("\xa2\x01\x80\x01\x80") },                     /* a key twice */
        { BYTES("\xa4\x01\x80\x02\x80\x1b\xff\xff\xff\xff\xff\xff\xff\xff\x00\x01\x80") }, /* again behind the greatest */
        { BYTES("\xa2\x01\x80\x02\x80\x00") },                 /* a byte behind it */
        { BYTES("\xa2\x01\x80\x02") },                         /* a value too few */
        { BYTES("\xa2\x01\x80\x02\x60") },                     /* a string for a list */
        { BYTES("\xa2\x01\x80\x20\x80") },                     /* a negative key */
        { BYTES("\xa2\x01\x80\x61\x32\x80") },                 /* a text key */
        { BYTES("\xb8\x02\x01\x80\x02\x80") },                 /* a head that is not the shortest */
        { BYTES("\xa2\x01\x98\x00\x02\x80") },
        { BYTES("\xbf\x01\x80\x02\x80\xff") },                 /* an endless map */
        { BYTES("\xa2\x01\x9f\xff\x02\x80") },                 /* an endless array */
        { BYTES("\xa3\x01\x80\x02\x80\x04\x5f\xff") },         /* an endless string */
        { BYTES("\xbc\x01\x80\x02\x80") },                     /* a reserved head */
        { BYTES("\xbb\x10\0\0\0\0\0\0\0\x01\x80\x02\x80") },   /* 2^60 fields */
        { BYTES("\xa2\x01\x9b\x10\0\0\0\0\0\0\0\x02\x80") },   /* 2^60 segments */
        { BYTES("\xa2\x01\x80\x02\x9b\x10\0\0\0\0\0\0\0") },   /* 2^60 tensors */
        { BYTES("\xa2\x01\x80\x02\x9a\xff\xff\xff\xff") },
        { BYTES("\xa2\x01\x80\x02\x81\xbb\x10\0\0\0\0\0\0\0") }, /* a tensor of 2^60 fields */
        { BYTES("\xa2\x01\x80\x02\x81\xa1\x00\x7b\x10\0\0\0\0\0\0\0") }, /* a name of 2^60 bytes */
        { BYTES("\xa2\x01\x80\x02\x81\xa3\x00\x60\x01\x02\x02\x9b\x10\0\0\0\0\0\0\0") }, /* 2^60 dimensions */
        { BYTES("\xa3\x01\x80\x02\x80\x04\x5b\x10\0\0\0\0\0\0\0") }, /* metadata of 2^60 bytes */
        { BYTES("\xa3\x01\x80\x02\x80\x05\x5b\xff\xff\xff\xff\xff\xff\xff\xff") },
        { BYTES("\xa3\x00\x9b\x10\0\0\0\0\0\0\0\x01\x80\x02\x80") }, /* 2^60 features */
        { BYTES("\xa3\x01\x80\x02\x80\x06\xbb\x80\0\0\0\0\0\0\0") }, /* unknown: a map of 2^63, twice which is nothing */
        { BYTES("\xa3\x01\x80\x02\x80\x06\x81\x81\x81\x81\x81\x81\x81\x81\x00") }, /* nine deep */
        { BYTES("\xa3\x01\x80\x02\x80\x06\xc1\xc1\xc1\xc1\xc1\xc1\xc1\xc1\x00") },
    };
    forge file = forge_new(), manifest = forge_new();

    for (size_t i = 0; i < sizeof manifests / sizeof manifests[0]; i++) {
        manifest.nbytes = 0;
        forge_put(&manifest, manifests[i].bytes, manifests[i].nbytes);
        only_manifest(&file, &manifest);
        refused(&file, PTWM_ERR_MANIFEST);
    }
    /* Eight deep is as deep as it may be. */
    manifest.nbytes = 0;
    forge_put(&manifest, "\xa3\x01\x80\x02\x80\x06\x81\x81\x81\x81\x81\x81\x81\x00", 14);
    only_manifest(&file, &manifest);
    ptwm_reader_close(open_forged(&file, PTWM_OK));
    /* A tag's number is no number of items: there may be more of them than bytes that are left. */
    manifest.nbytes = 0;
    forge_put(&manifest, "\xa3\x01\x80\x02\x80\x06\xdb\xff\xff\xff\xff\xff\xff\xff\xff\x00", 16);
    only_manifest(&file, &manifest);
    ptwm_reader_close(open_forged(&file, PTWM_OK));
    /* A million deep: arrays, maps and tags. */
    for (unsigned i = 0; i < 3; i++) {
        manifest.nbytes = 0;
        forge_put(&manifest, "\xa3\x01\x80\x02\x80\x06", 6);
        for (size_t n = 0; n < 1000000; n++)
            forge_u8(&manifest, i == 0 ? 0x81 : i == 1 ? 0xa1 : 0xc0);
        forge_u8(&manifest, 0);
        only_manifest(&file, &manifest);
        refused(&file, PTWM_ERR_MANIFEST);
    }
    forge_free(&file);
    forge_free(&manifest);
}

static void test_required_features(void)
{
    forge file = forge_new(), manifest = forge_new();

    forge_put(&manifest, "\xa3\x00\x81\x6btime-travel\x01\x80\x02\x80", 18);
    only_manifest(&file, &manifest);
    refused(&file, PTWM_ERR_FEATURE);
    CHECK(strstr(last_error.detail, "time-travel") != NULL);
    /* Names are the file's: none gets at the terminal of who prints them. */
    manifest.nbytes = 0;
    forge_put(&manifest, "\xa3\x00\x81\x71\x1b]0;owned\x07\r\n\x7f\xc2\x9b\0x\x01\x80\x02\x80", 25);
    only_manifest(&file, &manifest);
    refused(&file, PTWM_ERR_FEATURE);
    CHECK(strcmp(last_error.detail, "\"?]0;owned???????x\"") == 0);
    /* Nor is one longer than there is room for. */
    manifest.nbytes = 0;
    forge_put(&manifest, "\xa3\x00\x81", 3);
    forge_head(&manifest, PTWM_CBOR_TEXT, 3000);
    for (unsigned i = 0; i < 3000; i++)
        forge_u8(&manifest, 'n');
    forge_put(&manifest, "\x01\x80\x02\x80", 4);
    only_manifest(&file, &manifest);
    refused(&file, PTWM_ERR_FEATURE);
    CHECK(strlen(last_error.detail) == 102);
    forge_free(&file);
    forge_free(&manifest);
}

static void test_segments_that_contradict_themselves(void)
{
    static const uint64_t segments[][2][4] = {
        { { 1ull << 63, 8, 3, 0 }, { 1ull << 63, 8, 3, 0 } }, /* sums that wrap */
        { { UINT64_MAX, 8, 3, 0 }, { 20, 8, 3, 0 } },
        { { UINT64_MAX - 15, 8, 3, 2 }, { 36, 8, 3, 2 } },
        { { 10, 8, 3, 0 }, { 11, 8, 3, 0 } },                 /* beyond the manifest's beginning */
        { { 10, 8, 3, 0 }, { 9, 8, 3, 0 } },                  /* not up to there */
        { { 10, 11, 3, 0 }, { 10, 8, 3, 0 } },                /* a tail longer than its segment */
        { { 10, 0, 3, 0 }, { 10, 8, 3, 0 } },
        { { 10, 8, 0, 0 }, { 10, 8, 3, 0 } },
        { { 10, 8, 1ull << 63, 0 }, { 10, 8, 3, 0 } },
        { { 10, 8, 1ull << BIG, 0 }, { 10, 8, 3, 0 } },       /* more than the tail can have chunks for */
        { { 10, 8, 3, 4 }, { 10, 8, 3, 0 } },                 /* unknown flags */
    };
    forge file = forge_new(), body = forge_new(), manifest = forge_new();

    forge_zeros(&body, 20);
    for (size_t i = 0; i < sizeof segments / sizeof segments[0]; i++) {
        file.nbytes = manifest.nbytes = 0;
        forge_manifest(&manifest, 2, 2, segments[i]);
        forge_put(&manifest, "\x02\x80", 2);
        forge_file(&file, &body, &manifest);
        refused(&file, PTWM_ERR_MANIFEST);
    }
    forge_free(&file);
    forge_free(&body);
    forge_free(&manifest);
}

/* Tensors of a file with one segment of 3 raw bytes: pairs of key and value, ended by key 99. */
static void test_ranges_that_leave_their_segment(void)
{
    static const uint64_t tensors[][9] = {
        { 3, 1, 99 },                                  /* no such segment */
        { 3, 1ull << BIG, 99 },
        { 4, 3, 99 },                                  /* from behind the segment's end on */
        { 4, UINT64_MAX, 99 },
        { 4, 1, 7, UINT64_MAX, 99 },                   /* sums that wrap */
        { 7, 4, 99 },
        { 4, 2, 7, 2, 99 },
        { 1, PTWM_DTYPE_U8, 7, 3, 99 },                /* a scalar of three bytes */
        { 1, PTWM_DTYPE_I32, 99 },                     /* four bytes of three */
        { 1, PTWM_DTYPE_F4, 99 },                      /* half a byte */
        { 1, 1ull << 32, 99 },                         /* a dtype of 33 bits */
    };
    static const uint64_t segment[1][4] = { { 20, 8, 3, 0 } };
    forge file = forge_new(), body = forge_new(), manifest = forge_new();

    forge_zeros(&body, 20);
    for (size_t i = 0; i < sizeof tensors / sizeof tensors[0]; i++) {
        size_t n = 0;
        while (tensors[i][n] != 99)
            n += 2;
        file.nbytes = manifest.nbytes = 0;
        forge_manifest(&manifest, 2, 1, segment);
        forge_uint(&manifest, 2);
        forge_head(&manifest, PTWM_CBOR_ARRAY, 1);
        forge_head(&manifest, PTWM_CBOR_MAP, 1 + n / 2);
        forge_uint(&manifest, 0);
        forge_text(&manifest, "x");
        for (size_t j = 0; j < n; j++)
            forge_uint(&manifest, tensors[i][j]);
        forge_file(&file, &body, &manifest);
        refused(&file, PTWM_ERR_MANIFEST);
    }
    forge_free(&file);
    forge_free(&body);
    forge_free(&manifest);
}

static void test_shapes(void)
{
    static const struct {
        uint64_t shape[3];
        enum ptwm_status expected;
    } shapes[] = {
        { { 4, 1, 1 }, PTWM_ERR_MANIFEST },                          /* larger than the data */
        { { 1ull << 32, 1ull << 32, 1 }, PTWM_ERR_MANIFEST },        /* products that wrap */
        { { 1ull << 62, 4, 3 }, PTWM_ERR_MANIFEST },
        { { (1ull << 61) + 1, 8, 3 }, PTWM_ERR_MANIFEST },
        { { INT64_MAX, INT64_MAX, INT64_MAX }, PTWM_ERR_MANIFEST },
        { { 1ull << 63, 0, 0 }, PTWM_ERR_MANIFEST },                 /* a dimension too large */
        { { INT64_MAX, INT64_MAX, 0 }, PTWM_OK },                    /* empty, whatever the others are */
        { { 3, 1, 1 }, PTWM_OK },
    };
    static const uint64_t segment[1][4] = { { 20, 8, 3, 0 } };
    forge file = forge_new(), body = forge_new(), manifest = forge_new();

    forge_zeros(&body, 20);
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        file.nbytes = manifest.nbytes = 0;
        forge_manifest(&manifest, 2, 1, segment);
        forge_put(&manifest, "\x02\x81\xa3\x00\x61x\x01\x02\x02\x83", 10);
        for (unsigned j = 0; j < 3; j++)
            forge_uint(&manifest, shapes[i].shape[j]);
        forge_file(&file, &body, &manifest);
        ptwm_reader_close(open_forged(&file, shapes[i].expected));
    }
    forge_free(&file);
    forge_free(&body);
    forge_free(&manifest);
}

/* A tensor without bytes: its name behind what it shares of the one before. */
static void put_empty(forge *manifest, uint64_t shared, const char *name)
{
    forge_head(manifest, PTWM_CBOR_MAP, shared > 0 ? 3 : 2);
    forge_uint(manifest, 0);
    forge_text(manifest, name);
    if (shared > 0) {
        forge_uint(manifest, 6);
        forge_uint(manifest, shared);
    }
    forge_uint(manifest, 7);
    forge_uint(manifest, 0);
}

static void test_names(void)
{
    static const struct {
        const char *first, *second;
        uint64_t shared;
        enum ptwm_status expected;
    } names[] = {
        { "a", "a", 0, PTWM_ERR_DUPLICATE_NAME },
        { "ab", "b", 1, PTWM_ERR_DUPLICATE_NAME },
        { "ab", "", 2, PTWM_ERR_DUPLICATE_NAME },
        { "ab", "c", 3, PTWM_ERR_MANIFEST },                 /* more than there is */
        { "ab", "c", UINT64_MAX, PTWM_ERR_MANIFEST },
        { "", "c", 1, PTWM_ERR_MANIFEST },
        { "\xc3\xa9", "\xa8", 1, PTWM_ERR_MANIFEST },        /* half a character */
        { "\xc3\xa9", "e", 1, PTWM_ERR_MANIFEST },
        { "\xff", "", 0, PTWM_ERR_MANIFEST },                /* not UTF-8 */
        { "\xc0\x80", "", 0, PTWM_ERR_MANIFEST },            /* overlong */
        { "\xed\xa0\x80", "", 0, PTWM_ERR_MANIFEST },        /* a surrogate */
        { "\xf4\x90\x80\x80", "", 0, PTWM_ERR_MANIFEST },    /* above U+10FFFF */
        { "\xe2\x82", "", 0, PTWM_ERR_MANIFEST },            /* cut short */
        { "\x1b]0;owned\x07", "\n\r\t\b", 0, PTWM_OK },      /* control characters are names like others */
        { "../../etc/passwd", "%s%n", 0, PTWM_OK },
        { "\xe2\x80\xae", "a", 3, PTWM_OK },
    };
    forge file = forge_new(), manifest = forge_new();

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        struct ptwm_reader *r;
        begin_tensors(&manifest, 2);
        put_empty(&manifest, 0, names[i].first);
        put_empty(&manifest, names[i].shared, names[i].second);
        only_manifest(&file, &manifest);
        r = open_forged(&file, names[i].expected);
        if (r != NULL) {
            uint64_t index = PTWM_NONE;
            CHECK_EQ(ptwm_reader_find(r, names[i].first, strlen(names[i].first), &index), PTWM_OK);
            CHECK_EQ(index, 0);
        }
        ptwm_reader_close(r);
    }
    forge_free(&file);
    forge_free(&manifest);
}

/* Names that each lean on the one before, as long as that can make them. */
static void test_names_that_grow(void)
{
    forge file = forge_new(), manifest = forge_new();
    char first[256] = { 0 }, number[8];
    enum { N = 20000 };

    memset(first, 'n', 255);
    begin_tensors(&manifest, N);
    put_empty(&manifest, 0, first);
    for (unsigned i = 1; i < N; i++) {
        snprintf(number, sizeof number, "%u", i);
        put_empty(&manifest, 255, number);
    }
    only_manifest(&file, &manifest);
    ptwm_reader_close(open_forged(&file, PTWM_OK)); /* which checks the memory */
    manifest.nbytes -= 8;
    begin_tensors(&manifest, 2);
    put_empty(&manifest, 0, first);
    put_empty(&manifest, 256, "");
    only_manifest(&file, &manifest);
    refused(&file, PTWM_ERR_MANIFEST);
    forge_free(&file);
    forge_free(&manifest);
}

/* ------------------------------------------------------------------------------------------------------ segments */

/* A chain, as the tail begins with it. */
static void begin_tail(forge *tail, const char *chain, size_t chain_nbytes, uint64_t chunk_nbytes)
{
    tail->nbytes = 0;
    forge_varint(tail, chain_nbytes);
    forge_put(tail, chain, chain_nbytes);
    forge_varint(tail, chunk_nbytes);
}

static void put_record(forge *tail, unsigned codec, uint64_t stored_nbytes)
{
    forge_u8(tail, codec);
    forge_varint(tail, stored_nbytes);
}

static void test_chunk_tables(void)
{
    static const struct {
        const char *chain;
        size_t chain_nbytes;
        uint64_t chunk_nbytes, raw_nbytes;
        unsigned codec;
        uint64_t stored_nbytes;
        unsigned n_records;
        enum ptwm_status expected;
    } tables[] = {
        { "", 0, 0, 6, 0, 6, 1, PTWM_ERR_SEGMENT },
        { "", 0, (1u << 26) + 1, 6, 0, 6, 1, PTWM_ERR_SEGMENT },
        { "", 0, UINT64_MAX, 6, 0, 6, 1, PTWM_ERR_SEGMENT },
        { "", 0, 1, 6, 0, 1, 6, PTWM_ERR_SEGMENT },                  /* chunks so small that their table is all there is */
        { "", 0, 1023, 2046, 0, 3, 2, PTWM_ERR_SEGMENT },
        { "", 0, 1024, 1 << 20, 0, 3, 2, PTWM_ERR_SEGMENT },         /* fewer records than chunks */
        { "", 0, 6, 6, 0, 6, 2, PTWM_ERR_SEGMENT },                  /* more */
        { "", 0, 6, 6, 0, 5, 1, PTWM_ERR_SEGMENT },                  /* chunks that do not fill the segment */
        { "", 0, 6, 6, 0, 7, 1, PTWM_ERR_SEGMENT },                  /* or reach into its tail */
        { "", 0, 6, 6, 0, 1ull << 40, 1, PTWM_ERR_SEGMENT },
        { "", 0, 6, 6, 0, UINT64_MAX, 1, PTWM_ERR_SEGMENT },
        { "\2\2", 2, 6, 6, 0, UINT64_MAX / 2 + 4, 2, PTWM_ERR_SEGMENT }, /* sums that wrap */
        { "", 0, 6, 6, 8, 6, 1, PTWM_ERR_CODEC },
        { "", 0, 6, 6, 255, 6, 1, PTWM_ERR_CODEC },
        { "", 0, 6, 6, PTWM_CODEC_LABEL_RANS, 6, 1, PTWM_ERR_CODEC },
        { "", 0, 6, 6, PTWM_CODEC_TRIM, 6, 1, PTWM_ERR_CODEC },
        { "", 0, 6, 6, PTWM_CODEC_CARRIED, 6, 1, PTWM_ERR_CODEC },
        { "\2\4", 2, 6, 6, 0, 6, 4, PTWM_ERR_CHAIN },                /* a width that does not divide */
        { "\2\1", 2, 6, 6, 0, 6, 1, PTWM_ERR_CHAIN },
        { "\2\21", 2, 6, 6, 0, 6, 1, PTWM_ERR_CHAIN },
        { "\1\3", 2, 6, 6, 0, 6, 1, PTWM_ERR_CHAIN },
        { "\1", 1, 6, 6, 0, 6, 1, PTWM_ERR_CHAIN },
        { "\4\2", 2, 6, 6, 0, 6, 1, PTWM_ERR_CHAIN },
        { "\2\2\1\1", 4, 6, 6, 0, 6, 1, PTWM_ERR_CHAIN },            /* a step behind one that splits */
        { "\3\2\17\3", 4, 6, 6, 0, 6, 1, PTWM_ERR_CHAIN },           /* 18 bits of 16 */
        { "\3\2\377\2", 4, 6, 6, 0, 6, 1, PTWM_ERR_CHAIN },
        { "\3\2\0\0", 4, 6, 6, 0, 6, 1, PTWM_ERR_CHAIN },
        { "\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1", 18, 6, 6, 0, 6, 1, PTWM_ERR_CHAIN }, /* nine steps */
    };
    forge file = forge_new(), chunks = forge_new(), tail = forge_new();

    for (size_t i = 0; i < sizeof tables / sizeof tables[0]; i++) {
        file.nbytes = chunks.nbytes = 0;
        forge_zeros(&chunks, 6);
        begin_tail(&tail, tables[i].chain, tables[i].chain_nbytes, tables[i].chunk_nbytes);
        for (unsigned n = 0; n < tables[i].n_records; n++)
            put_record(&tail, tables[i].codec, tables[i].stored_nbytes);
        forge_one(&file, &chunks, &tail, tables[i].raw_nbytes, 0);
        undecodable(&file, tables[i].expected);
    }
    forge_free(&file);
    forge_free(&chunks);
    forge_free(&tail);
}

/* A chain that is longer than any, and one that the tail ends in. */
static void test_chains_cut_short(void)
{
    forge file = forge_new(), chunks = forge_new(), tail = forge_new();

    for (unsigned i = 0; i < 3; i++) {
        file.nbytes = tail.nbytes = 0;
        forge_varint(&tail, i == 0 ? 1ull << BIG : i == 1 ? 33 : 20);
        forge_zeros(&tail, i == 1 ? 40 : 5);
        forge_one(&file, &chunks, &tail, 6, 0);
        undecodable(&file, PTWM_ERR_SEGMENT);
    }
    forge_free(&file);
    forge_free(&chunks);
    forge_free(&tail);
}

/* Planes of one chunk of bytes without a chain, as codecs may not have them. */
static void test_stored_planes(void)
{
    static const struct {
        unsigned codec;
        size_t raw_nbytes, nbytes;
        const char *bytes;
    } planes[] = {
        { PTWM_CODEC_IDENTITY, 6, 5, "abcde" },
        { PTWM_CODEC_IDENTITY, 6, 7, "abcdefg" },
        { PTWM_CODEC_CONSTANT, 6, 0, "" },
        { PTWM_CODEC_CONSTANT, 6, 2, "ab" },
        { PTWM_CODEC_HUFFMAN, 6, 2, "\0\0" },                                /* no symbols */
        { PTWM_CODEC_HUFFMAN, 6, 4, "\1\0\0\0" },
        { PTWM_CODEC_HUFFMAN, 6, 5, "\1\0\1\0\0" },                          /* one symbol, and a byte */
        { PTWM_CODEC_HUFFMAN, 4, 10, "\1\0\3\0\x21\1\1\1\0\0" },             /* lengths 1 and 2: a hole */
        { PTWM_CODEC_HUFFMAN, 4, 11, "\1\0\7\0\x11\1\1\1\1\0\0" },           /* three of length 1: too many */
        { PTWM_CODEC_HUFFMAN, 4, 10, "\1\0\3\0\x10\1\1\1\0\0" },             /* a length of 0 */
        { PTWM_CODEC_HUFFMAN, 4, 10, "\1\0\3\0\x1c\1\1\1\0\0" },             /* and of 12 */
        { PTWM_CODEC_HUFFMAN, 4, 11, "\1\0\3\0\x11\1\1\1\0\0\0" },           /* streams end early, */
        { PTWM_CODEC_HUFFMAN, 4, 13, "\1\0\3\0\x11\1\1\1\0\0\0\0\0" },       /* late, */
        { PTWM_CODEC_HUFFMAN, 4, 12, "\1\0\3\0\x11\1\1\1\0\0\0\2" },         /* with bits behind them, */
        { PTWM_CODEC_HUFFMAN, 4, 12, "\1\0\3\0\x11\1\1\xc8\1\0\0\0" },       /* and leave the plane */
        { PTWM_CODEC_RANS, 4, 20, "\1\0\1\0\0\0\0\0\0\0\1\0\0\0\1\0\0\0\1\0" },      /* a state below 2^16 */
        { PTWM_CODEC_RANS, 4, 19, "\1\0\1\0\0\0\1\0\0\0\1\0\0\0\1\0\0\0\1" },        /* cut short */
        { PTWM_CODEC_RANS, 4, 22, "\1\0\1\0\0\0\1\0\0\0\1\0\0\0\1\0\0\0\1\0\0\0" },  /* a word too many */
        { PTWM_CODEC_RANS, 4, 21, "\1\0\1\0\0\0\1\0\0\0\1\0\0\0\1\0\0\0\1\0\0" },    /* half a word */
        { PTWM_CODEC_RANS, 4, 20, "\1\0\1\0\1\0\1\0\0\0\1\0\0\0\1\0\0\0\1\0" },      /* a wrong state in the end */
        { PTWM_CODEC_RANS, 4, 22, "\1\0\3\0\xff\x1f\0\0\1\0\0\0\1\0\0\0\1\0\0\0\1\0" }, /* frequencies of 4096 and none */
        { PTWM_CODEC_RANS, 4, 22, "\1\0\3\0\xff\x3f\0\0\1\0\0\0\1\0\0\0\1\0\0\0\1\0" },
        { PTWM_CODEC_ZSTD, 6, 0, "" },
        { PTWM_CODEC_ZSTD, 6, 15, "\x28\xb5\x2f\xfd\x20\7\x31\0\0abcdef" },          /* claims 7 bytes */
        { PTWM_CODEC_ZSTD, 6, 22, "\x28\xb5\x2f\xfd\xe0\0\0\0\0\0\0\0\x10\x31\0\0abcdef" }, /* 2^60 */
        { PTWM_CODEC_ZSTD, 6, 14, "\x28\xb5\x2f\xfd\0\x58\x31\0\0abcde" },           /* nothing */
        { PTWM_CODEC_ZSTD, 6, 16, "\x28\xb5\x2f\xfd\x21\1\6\x31\0\0abcdef" },        /* a dictionary */
        { PTWM_CODEC_ZSTD, 6, 14, "\x28\xb5\x2f\xfd\x20\6\x31\0\0abcde" },           /* cut short */
        { PTWM_CODEC_ZSTD, 6, 16, "\x28\xb5\x2f\xfd\x20\6\x31\0\0abcdefg" },         /* a byte behind it */
        { PTWM_CODEC_ZSTD, 6, 8, "\x50\x2a\x4d\x18\0\0\0\0" },                       /* a frame to be skipped */
    };
    forge file = forge_new(), chunks = forge_new(), tail = forge_new();

    for (size_t i = 0; i < sizeof planes / sizeof planes[0]; i++) {
        file.nbytes = chunks.nbytes = 0;
        forge_put(&chunks, planes[i].bytes, planes[i].nbytes);
        begin_tail(&tail, "", 0, planes[i].raw_nbytes);
        put_record(&tail, planes[i].codec, planes[i].nbytes);
        forge_one(&file, &chunks, &tail, planes[i].raw_nbytes, 0);
        undecodable(&file, PTWM_ERR_PLANE);
    }
    forge_free(&file);
    forge_free(&chunks);
    forge_free(&tail);
}

/* A frame that is right as far as its headers go: a block that repeats a byte, 131072 of them for 6. */
static void test_a_zstd_block_that_is_too_large(void)
{
    forge file = forge_new(), chunks = forge_new(), tail = forge_new();

    forge_put(&chunks, "\x28\xb5\x2f\xfd\x20\6\3\0\x10" "a", 10);
    begin_tail(&tail, "", 0, 6);
    put_record(&tail, PTWM_CODEC_ZSTD, 10);
    forge_one(&file, &chunks, &tail, 6, 0);
    undecodable(&file, ptwm_has_builtin_zstd() ? PTWM_ERR_ZSTD : PTWM_ERR_ZSTD_UNAVAILABLE);
    forge_free(&file);
    forge_free(&chunks);
    forge_free(&tail);
}

/* ----------------------------------------------------------------------------------------------------- bombs */

/* One byte is 64 MiB: max_nbytes stops it before anything is allocated; without, the buffer is all that it takes. */
static void test_a_constant_that_is_large(void)
{
    enum { LARGE = 1 << 26 };
    forge file = forge_new(), chunks = forge_new(), tail = forge_new();
    uint8_t *dst = malloc(LARGE);
    struct ptwm_reader *r;

    forge_u8(&chunks, 'a');
    begin_tail(&tail, "", 0, LARGE);
    put_record(&tail, PTWM_CODEC_CONSTANT, 1);
    forge_one(&file, &chunks, &tail, LARGE, 0);
    CHECK(file.nbytes < 128);
    r = open_forged(&file, PTWM_OK);
    CHECK_EQ(nbytes_of(r), LARGE);
    CHECK_EQ(decode(r, dst, LARGE, 0, LARGE - 1, 0), PTWM_ERR_LIMIT);
    CHECK_EQ(decode(r, dst, LARGE, 0, LARGE, 0), PTWM_OK);
    CHECK(dst[0] == 'a' && dst[LARGE - 1] == 'a');
    ptwm_reader_close(r);
    CHECK_EQ(account.live, 0);
    free(dst);
    forge_free(&file);
    forge_free(&chunks);
    forge_free(&tail);
}

/* Chunks that are declared to be large, in a segment that is not: verifying takes what there is. */
static void test_a_chunk_larger_than_its_segment(void)
{
    forge file = forge_new(), chunks = forge_new(), tail = forge_new();
    struct ptwm_reader *r;

    forge_u8(&chunks, 'a');
    begin_tail(&tail, "", 0, 1 << 26);
    put_record(&tail, PTWM_CODEC_IDENTITY, 1);
    forge_one(&file, &chunks, &tail, 1, 0);
    r = open_forged(&file, PTWM_OK);
    CHECK_EQ(ptwm_reader_verify(r, 2, NULL), PTWM_OK);
    CHECK(account.peak < OWN_NBYTES);
    ptwm_reader_close(r);
    forge_free(&file);
    forge_free(&chunks);
    forge_free(&tail);
}

/* ------------------------------------------------------------------------------------------------------- labels */

/* Bits of a model, one of which is wrong. */
struct model_fields {
    uint64_t unit, n_columns;
    unsigned base, width;
    const char *shifts;
    size_t shifts_nbytes;
    uint64_t n_sets;
    const char *set;
    size_t set_nbytes;
};
#define GOOD_SET "\1\2\x80\x40\x80\x40" /* one class, two labels of 32768 */

static void test_models(void)
{
    static const struct model_fields models[] = {
        { 0, 0, 0, 0, "", 0, 0, BYTES("") },
        { (1 << 20) + 1, 0, 0, 0, "", 0, 0, BYTES("") },
        { 1ull << BIG, 0, 0, 0, "", 0, 0, BYTES("") },
        { 128, (1 << 20) + 1, 0, 1, "", 0, 0, BYTES("") },
        { 128, 1ull << BIG, 0, 1, "", 0, 0, BYTES("") },
        { 128, 1 << 20, 0, 8, "abc", 3, 0, BYTES("") },                /* a million columns of no bytes */
        { 128, 2, 0, 0, "a", 1, 0, BYTES("") },                        /* widths of 0, 9 and 127 bits */
        { 128, 2, 0, 9, "abc", 3, 0, BYTES("") },
        { 128, 2, 0, 127, "abc", 3, 0, BYTES("") },
        { 128, 2, 127, 1, "\2", 1, 0, BYTES("") },                     /* a shift of 128 */
        { 128, 2, 0, 1, "\4", 1, 0, BYTES("") },                       /* bits behind the shifts */
        { 128, 2, 0, 129, "\1\4", 2, 0, BYTES("") },                   /* behind the phases */
        { 128, 2, 0, 1, "\1", 1, 1ull << BIG, BYTES("") },
        { 128, 2, 0, 129, "\1", 1, 0, BYTES("") },
        { 128, 2, 0, 1, "\1", 1, 2, BYTES(GOOD_SET GOOD_SET) },        /* more than there are chunks */
        { 128, 0, 0, 0, "", 0, 1, BYTES("\0") },                       /* no classes, nine */
        { 128, 0, 0, 0, "", 0, 1, BYTES("\11\2\x80\x40\x80\x40") },
        { 128, 0, 0, 0, "", 0, 1, BYTES("\1\1\x80\x40") },             /* one label, 33 */
        { 128, 0, 0, 0, "", 0, 1, BYTES("\1\x21\x80\x40") },
        { 128, 0, 0, 0, "", 0, 1, BYTES("\1\2\x80\x40\xfe\x3f") },     /* sums of 65536 - 8, and + 8 */
        { 128, 0, 0, 0, "", 0, 1, BYTES("\1\2\x80\x40\x82\x40") },
        { 128, 0, 0, 0, "", 0, 1, BYTES("\1\2\x80\x80\1\0") },         /* frequencies of 65536 and 0 */
        { 128, 0, 0, 0, "", 0, 1, BYTES("\1\2\x80\x40\x80\x80\x80\x80\x80\x80\x80\x80\x80\1") },
        { 128, 0, 0, 0, "", 0, 1, BYTES("\1\2\x80\x40\x81\x40\0") },   /* a gap of 0 */
        { 128, 0, 0, 0, "", 0, 1, BYTES("\1\2\x80\x40\x81\x40\xff\3") }, /* symbol 512 of 9 bits */
        { 128, 0, 0, 0, "", 0, 1, BYTES("\1\2\x80\x40\x81\x40\xff\xff\xff\xff\xff\xff\xff\xff\xff\1") },
        { 128, 2, 0, 129, "\0\2", 2, 1, BYTES(GOOD_SET) },             /* phases without second frequencies */
        { 128, 2, 0, 129, "\0\2", 2, 1, BYTES(GOOD_SET "\x80\x20\xff\x1f") }, /* that don't sum */
        { 128, 2, 0, 129, "\0\2", 2, 1, BYTES(GOOD_SET "\x80\x40\0") },
    };
    forge file = forge_new(), chunks = forge_new(), tail = forge_new();

    for (size_t i = 0; i < sizeof models / sizeof models[0]; i++) {
        const struct model_fields *m = &models[i];
        file.nbytes = chunks.nbytes = 0;
        forge_zeros(&chunks, 256 + 112);
        begin_tail(&tail, "\3\2\6\11", 4, 256);
        forge_varint(&tail, m->unit);
        forge_varint(&tail, m->n_columns);
        if (m->n_columns > 0) {
            forge_u8(&tail, m->base);
            forge_u8(&tail, m->width);
        }
        forge_put(&tail, m->shifts, m->shifts_nbytes);
        forge_varint(&tail, m->n_sets);
        forge_put(&tail, m->set, m->set_nbytes);
        if (i % 2 == 0) { /* else the tail ends there */
            put_record(&tail, PTWM_CODEC_IDENTITY, 112);
            put_record(&tail, PTWM_CODEC_IDENTITY, 256);
        }
        forge_one(&file, &chunks, &tail, 256, 0);
        undecodable(&file, PTWM_ERR_SEGMENT);
    }
    forge_free(&file);
    forge_free(&chunks);
    forge_free(&tail);
}

/* ---- a chunk of N bfloat16 elements with two classes, phases and all, in the forms that the fused kernels know */

enum { N = 640, UNIT = 128, REST_NBYTES = 64 * 7 + 112 };

struct labelled {
    struct ptwm_label_model model;
    uint8_t classes[N / UNIT];
    uint16_t symbols[N], final[PTWM_MAX_LANES];
    uint8_t rest[REST_NBYTES];
};

static void begin_labelled(struct labelled *l, uint64_t seed)
{
    const struct ptwm_step step = { PTWM_STEP_LABEL, 2, 6, 9 };
    static const int16_t shifts[4] = { 0, 2, -2, 0 };
    static const uint8_t phases[4] = { 0, PTWM_PHASE, 0, PTWM_PHASE };
    struct ptwm_label_set set = { .n_classes = 3 };

    memset(l, 0, sizeof *l);
    ptwm_label_model_init(&l->model, &ptwm_default_allocator, &step);
    l->model.unit = UNIT;
    for (unsigned c = 0; c < 3; c++) {
        struct ptwm_label_table *t = &set.classes[c];
        t->n_labels = 3;
        for (unsigned i = 0; i < 3; i++)
            t->symbol[i] = (uint16_t)(200 + 2 * i + c);
        t->frequency[0] = t->second[1] = 40000;
        t->frequency[1] = t->second[2] = 16000;
        t->frequency[2] = t->second[0] = 9536;
    }
    CHECK_EQ(ptwm_label_model_set_shifts(&l->model, shifts, 4), PTWM_OK);
    CHECK_EQ(ptwm_label_model_set_phases(&l->model, phases), PTWM_OK);
    CHECK_EQ(ptwm_label_model_add_set(&l->model, &set), PTWM_OK);
    for (size_t i = 0; i < N / UNIT; i++)
        l->classes[i] = (uint8_t)(i % 3);
    for (size_t i = 0; i < N; i++)
        l->symbols[i] = (uint16_t)(200 + 2 * (check_random(&seed) % 3) + l->classes[i / UNIT]);
    l->symbols[77] = 511; /* an exception */
    for (size_t i = 0; i < PTWM_MAX_LANES; i++)
        l->final[i] = (uint16_t)check_random(&seed);
    for (size_t i = 0; i < REST_NBYTES; i++)
        l->rest[i] = (uint8_t)check_random(&seed);
}

/*
 * The file of a chunk: rest plane, symbol plane with its head sealed again. n_missing: bytes that the rest plane lacks, as
 * carried.
 */
static void labelled_file(forge *file, const struct labelled *l, forge *labels, size_t head_nbytes, size_t n_missing)
{
    forge chunks = forge_new(), tail = forge_new();

    if (head_nbytes > 0)
        ptwm_store32(labels->data + head_nbytes - 4, ptwm_crc32c(0, labels->data, head_nbytes - 4));
    forge_put(&chunks, l->rest + n_missing, REST_NBYTES - n_missing);
    forge_put(&chunks, labels->data, labels->nbytes);
    begin_tail(&tail, "\3\2\6\11", 4, 2 * N);
    CHECK_EQ(ptwm_label_model_write(&l->model, &tail), PTWM_OK);
    put_record(&tail, n_missing > 0 ? PTWM_CODEC_CARRIED : PTWM_CODEC_IDENTITY, REST_NBYTES - n_missing);
    put_record(&tail, PTWM_CODEC_LABEL_RANS, labels->nbytes);
    file->nbytes = 0;
    forge_one(file, &chunks, &tail, 2 * N, 0);
    forge_free(&chunks);
    forge_free(&tail);
}

/* 1 lanes code, 1 set, 1 exceptions' number, 5 classes of 2 bits, an exception of a byte and a symbol, states, CRC. */
static size_t head_nbytes(unsigned n_lanes)
{
    return 1 + 1 + 1 + 2 + 3 + 4 * n_lanes + 4;
}

static void test_good_labels(void)
{
    static const unsigned lanes[] = { 4, 32, 128 };
    forge file = forge_new(), labels = forge_new();
    uint8_t first[2 * N], got[2 * N];
    struct labelled l;
    bool has_first = false;

    for (unsigned i = 0; i < 6; i++) {
        const unsigned n_lanes = lanes[i % 3];
        struct ptwm_reader *r;
        begin_labelled(&l, 1);
        for (unsigned k = 0; k < n_lanes; k++)
            l.final[k] = ptwm_load16(l.rest + 2 * k);
        labels.nbytes = 0;
        forge_labels(&labels, &l.model, 0, l.classes, 0, l.symbols, N, n_lanes, i < 3 ? NULL : l.final);
        labelled_file(&file, &l, &labels, 0, i < 3 ? 0 : 2 * n_lanes);
        r = open_forged(&file, PTWM_OK);
        CHECK_EQ(decode(r, got, sizeof got, 0, 0, 64 << 10), PTWM_OK);
        CHECK(!has_first || memcmp(first, got, sizeof got) == 0); /* whatever the number of lanes and who has the rests */
        memcpy(first, got, sizeof got);
        has_first = true;
        ptwm_reader_close(r);
        ptwm_label_model_release(&l.model);
    }
    forge_free(&file);
    forge_free(&labels);
}

static void test_labels(void)
{
    static const unsigned lanes[] = { 4, 32, 128 };
    static const struct {
        size_t at;
        unsigned value;
        enum ptwm_status expected;
    } changes[] = {
        { 0, 3, PTWM_ERR_PLANE },      /* lanes */
        { 0, 255, PTWM_ERR_PLANE },
        { 1, 1, PTWM_ERR_PLANE },      /* no such set */
        { 2, 0x7f, PTWM_ERR_PLANE },   /* exceptions that are not there */
        { 2, 0xff, PTWM_ERR_PLANE },
        { 3, 0xff, PTWM_ERR_PLANE },   /* class 3 of 3 */
        { 4, 0x7f, PTWM_ERR_PLANE },   /* bits behind the classes */
        { 5, 0xff, PTWM_ERR_PLANE },   /* an exception at a position behind the chunk's end */
        { 7, 2, PTWM_ERR_PLANE },      /* with a symbol of ten bits */
        { 11, 0, PTWM_ERR_PLANE },     /* a state below 2^16: two bytes */
    };
    forge file = forge_new(), labels = forge_new();
    struct labelled l;

    begin_labelled(&l, 2);
    for (unsigned i = 0; i < 3; i++) {
        for (size_t c = 0; c < sizeof changes / sizeof changes[0]; c++) {
            labels.nbytes = 0;
            forge_labels(&labels, &l.model, 0, l.classes, 0, l.symbols, N, lanes[i], NULL);
            labels.data[changes[c].at] = (uint8_t)changes[c].value;
            if (changes[c].at == 11)
                labels.data[10] = 0;
            labelled_file(&file, &l, &labels, head_nbytes(lanes[i]), 0);
            undecodable(&file, changes[c].expected);
        }
        for (unsigned c = 0; c < 5; c++) {
            labels.nbytes = 0;
            forge_labels(&labels, &l.model, 0, l.classes, 0, l.symbols, N, lanes[i], c == 4 ? l.final : NULL);
            if (c == 0)
                labels.nbytes -= 2; /* words end early */
            else if (c == 1)
                forge_u16(&labels, 0); /* late */
            else if (c == 2)
                forge_u8(&labels, 0); /* in the middle of one */
            else if (c == 3)
                labels.nbytes = head_nbytes(lanes[i]) - 1; /* in the head */
            labelled_file(&file, &l, &labels, c == 3 ? 0 : head_nbytes(lanes[i]), 0);
            undecodable(&file, PTWM_ERR_PLANE); /* c == 4: states that carry what nobody takes */
        }
        labels.nbytes = 0;
        forge_labels(&labels, &l.model, 0, l.classes, 0, l.symbols, N, lanes[i], NULL);
        labels.data[head_nbytes(lanes[i]) - 1] ^= 1;
        labelled_file(&file, &l, &labels, 0, 0);
        undecodable(&file, PTWM_ERR_CHECKSUM);
    }
    ptwm_label_model_release(&l.model);
    forge_free(&file);
    forge_free(&labels);
}

/* Rest planes whose beginning is said to be carried, by a chunk of another number of lanes or by states that carry nothing. */
static void test_rests_that_nobody_carries(void)
{
    static const unsigned lanes[] = { 4, 32, 128 };
    static const size_t missing[] = { 2, 8, 64, 256, 257, REST_NBYTES };
    forge file = forge_new(), labels = forge_new();
    struct labelled l;

    begin_labelled(&l, 3);
    for (unsigned i = 0; i < 3; i++)
        for (unsigned m = 0; m < sizeof missing / sizeof missing[0]; m++) {
            if (missing[m] == 2 * lanes[i])
                continue; /* what carries zeros is right */
            labels.nbytes = 0;
            forge_labels(&labels, &l.model, 0, l.classes, 0, l.symbols, N, lanes[i], NULL);
            labelled_file(&file, &l, &labels, 0, missing[m]);
            undecodable(&file, PTWM_ERR_PLANE);
        }
    ptwm_label_model_release(&l.model);
    forge_free(&file);
    forge_free(&labels);
}

/* Lanes that a unit does not allow. */
static void test_128_lanes_of_short_units(void)
{
    forge file = forge_new(), labels = forge_new();
    struct labelled l;

    begin_labelled(&l, 4);
    forge_labels(&labels, &l.model, 0, l.classes, 0, l.symbols, N, 128, NULL);
    l.model.unit = UNIT + 1; /* the classes' bytes are as many */
    labelled_file(&file, &l, &labels, 0, 0);
    undecodable(&file, PTWM_ERR_PLANE);
    ptwm_label_model_release(&l.model);
    forge_free(&file);
    forge_free(&labels);
}

/* A low plane of four elements that is trimmed, before a rest plane and symbols that are stored. */
static void test_trimmed_planes(void)
{
    static const struct {
        const char *bytes;
        size_t nbytes;
    } planes[] = {
        { BYTES("\0\1\20") },             /* units of 0, 127, 2^20 + 128 elements */
        { BYTES("\x7f\1\20") },
        { BYTES("\x80\x81\x40\1\20") },
        { BYTES("\x80\1\0\20") },         /* runs of none and of two of one unit */
        { BYTES("\x80\1\2\20") },
        { BYTES("\x80\1\xff\xff\xff\xff\xff\xff\xff\xff\xff\1\20") },
        { BYTES("\x80\1\1\21") },         /* 17 bits of zero */
        { BYTES("\x80\1\1\14ab") },       /* four elements of four bits: two bytes, one, three */
        { BYTES("\x80\1\1\14") },
        { BYTES("\x80\1\1\14abc") },
        { BYTES("\x80\1\1\15ab") },       /* of three bits: unused bits */
        { BYTES("\x80\1") },
    };
    forge file = forge_new(), chunks = forge_new(), tail = forge_new();

    for (size_t i = 0; i < sizeof planes / sizeof planes[0]; i++) {
        const bool is_good = i == 7;
        file.nbytes = chunks.nbytes = 0;
        forge_put(&chunks, planes[i].bytes, planes[i].nbytes);
        forge_zeros(&chunks, 4 + 8); /* rests of 7 bits, 4 bytes; symbols of 9 */
        begin_tail(&tail, "\3\4\6\11", 4, 16);
        forge_put(&tail, "\x80\1\0\0", 4); /* unit, columns, sets */
        put_record(&tail, PTWM_CODEC_TRIM, planes[i].nbytes);
        put_record(&tail, PTWM_CODEC_IDENTITY, 4);
        put_record(&tail, PTWM_CODEC_IDENTITY, 8);
        forge_one(&file, &chunks, &tail, 16, 0);
        undecodable(&file, is_good ? PTWM_OK : PTWM_ERR_PLANE);
    }
    forge_free(&file);
    forge_free(&chunks);
    forge_free(&tail);
}

int main(int argc, char **argv)
{
    directory = argc > 1 ? argv[1] : NULL;
    RUN(test_good_parts);
    RUN(test_other_things_before_and_behind);
    RUN(test_headers_and_footers);
    RUN(test_malformed_cbor);
    RUN(test_required_features);
    RUN(test_segments_that_contradict_themselves);
    RUN(test_ranges_that_leave_their_segment);
    RUN(test_shapes);
    RUN(test_names);
    RUN(test_names_that_grow);
    RUN(test_chunk_tables);
    RUN(test_chains_cut_short);
    RUN(test_stored_planes);
    RUN(test_a_zstd_block_that_is_too_large);
    RUN(test_a_constant_that_is_large);
    RUN(test_a_chunk_larger_than_its_segment);
    RUN(test_models);
    RUN(test_good_labels);
    RUN(test_labels);
    RUN(test_rests_that_nobody_carries);
    RUN(test_128_lanes_of_short_units);
    RUN(test_trimmed_planes);
    CHECK_EXIT();
}
