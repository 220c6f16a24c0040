/*
 * The codecs that store and zstd: what frames may be, and who may provide it.
 */
#include "codec_cases.h"

/* ------------------------------------------------------------------------------------------ stored and zstd */

static void test_constant(void)
{
    static const uint8_t pattern[] = { 0x12, 0x34, 0x56 };
    struct ptwm_codec_context context = make_context();
    uint8_t dst[7], stored[2];
    size_t nbytes;

    for (size_t width = 1; width <= 2; width++) {
        CHECK_EQ(ptwm_codec_constant.encode(&context, stored, &nbytes, pattern, width, NULL), PTWM_OK);
        CHECK(nbytes == width && nbytes <= ptwm_codec_constant.bound(width));
        dst[6] = 0xEE;
        CHECK_EQ(ptwm_codec_constant.decode(&context, dst, 6, stored, width, NULL), PTWM_OK);
        for (size_t i = 0; i < 6; i++)
            CHECK_EQ(dst[i], pattern[i % width]);
        CHECK_EQ(dst[6], 0xEE);
    }
    CHECK_EQ(ptwm_codec_constant.encode(&context, stored, &nbytes, pattern, 3, NULL), PTWM_ERR_ARGUMENT);
    CHECK_EQ(decode(&ptwm_codec_constant, pattern, 2, 7, NULL), PTWM_ERR_PLANE);
    CHECK_EQ(decode(&ptwm_codec_constant, pattern, 0, 6, NULL), PTWM_ERR_PLANE);
    CHECK_EQ(decode(&ptwm_codec_constant, pattern, 3, 6, NULL), PTWM_ERR_PLANE);
}

/* Decodes with the fake provider and says whether it was asked to decompress. */
static enum ptwm_status decode_fake(const uint8_t *src, size_t src_nbytes, size_t n, int *asked)
{
    struct ptwm_codec_context context = { &no_allocator, &fake_provider, 0 };
    uint8_t *exact = copy_of(src, src_nbytes), *dst = malloc(n);
    enum ptwm_status status;

    fake.n_decompress = 0;
    status = ptwm_codec_zstd.decode(&context, dst, n, exact, src_nbytes, NULL);
    *asked = fake.n_decompress;
    free(exact);
    free(dst);
    return status;
}

/* Frames that section 6 does not allow never reach the provider. */
static void test_zstd_rules(void)
{
    static const uint8_t data[5] = { 'h', 'e', 'l', 'l', 'o' };
    static const struct {
        unsigned at;
        uint8_t value;
    } breaks[] = {
        { 0, 0x29 },    /* not the magic number */
        { 4, 0xE1 },    /* a dictionary id */
        { 4, 0xE3 },
        { 4, 0xE8 },    /* the reserved bit */
        { 4, 0xE4 },    /* a checksum that is not there */
        { 4, 0x00 },    /* no content size */
        { 5, 6 },       /* a content size that is not the plane's */
        { 12, 1 },      /* one of 2^56 and more */
        { 13, 0x28 },   /* no last block */
        { 13, 0x21 },   /* blocks that end too soon and too late */
        { 13, 0x31 },
        { 13, 0x2F },   /* the reserved type of block */
        { 13, 0x2B },   /* a run, which has one byte */
        { 15, 0x80 },   /* a block of more than 128 KiB */
    };
    /* One run of 131073 bytes, which is a byte more than a block may have; and one of 131072. */
    static const uint8_t large_run[] = { 0x28, 0xB5, 0x2F, 0xFD, 0xA0, 1, 0, 2, 0, 0x0B, 0, 0x10, 'x' };
    static const uint8_t full_run[] = { 0x28, 0xB5, 0x2F, 0xFD, 0xA0, 0, 0, 2, 0, 0x03, 0, 0x10, 'x' };
    static const uint8_t skippable[] = { 0x50, 0x2A, 0x4D, 0x18, 1, 0, 0, 0, 0 };
    uint8_t good[64], twice[128];
    size_t n = store_raw_frame(good, data, 5);
    int asked;

    CHECK_EQ(n, 21);
    CHECK_EQ(decode_fake(good, n, 5, &asked), PTWM_OK);
    CHECK_EQ(asked, 1);
    for (size_t i = 0; i < sizeof breaks / sizeof breaks[0]; i++) {
        uint8_t *bad = copy_of(good, n);

        bad[breaks[i].at] = breaks[i].value;
        CHECK_EQ(decode_fake(bad, n, 5, &asked), PTWM_ERR_PLANE);
        CHECK_EQ(asked, 0);
        free(bad);
    }
    memcpy(twice, good, n);
    memcpy(twice + n, good, n);
    CHECK_EQ(decode_fake(twice, 2 * n, 5, &asked), PTWM_ERR_PLANE);
    memcpy(twice + n, skippable, sizeof skippable);
    CHECK_EQ(decode_fake(twice, n + sizeof skippable, 5, &asked), PTWM_ERR_PLANE);
    memcpy(twice, skippable, sizeof skippable);
    memcpy(twice + sizeof skippable, good, n);
    CHECK_EQ(decode_fake(twice, n + sizeof skippable, 5, &asked), PTWM_ERR_PLANE);
    CHECK_EQ(decode_fake(skippable, sizeof skippable, 1, &asked), PTWM_ERR_PLANE);
    CHECK_EQ(decode_fake(large_run, sizeof large_run, 131073, &asked), PTWM_ERR_PLANE);
    CHECK_EQ(asked, 0);
    (void)decode_fake(full_run, sizeof full_run, 131072, &asked);
    CHECK_EQ(asked, 1);
}

/* All ways of writing the content size, with and without a window size and a checksum. */
static void test_zstd_headers(void)
{
    static const unsigned size_nbytes[4] = { 1, 2, 4, 8 };

    for (unsigned descriptor = 0; descriptor < 256; descriptor += 4) {
        unsigned flag = descriptor >> 6, is_single = descriptor >> 5 & 1, n = flag == 1 ? 300 : 200;
        int is_good = !(descriptor & 8) && (flag > 0 || is_single), asked;
        uint8_t frame[400], *p = frame + 5;

        ptwm_store32(frame, 0xFD2FB528u);
        frame[4] = (uint8_t)descriptor;
        if (!is_single)
            *p++ = 0x40;
        if (flag > 0 || is_single) {
            uint64_t stored = flag == 1 ? n - 256 : n;

            for (unsigned i = 0; i < size_nbytes[flag]; i++)
                *p++ = (uint8_t)(stored >> 8 * i);
        }
        ptwm_store16(p, (uint16_t)(n << 3 | 1 << 1 | 1)); /* one run */
        p[2] = 0;
        p[3] = 'x';
        p += 4;
        if (descriptor & 4) {
            memset(p, 0, 4);
            p += 4;
        }
        (void)decode_fake(frame, (size_t)(p - frame), n, &asked);
        CHECK_EQ(asked, is_good);
        (void)decode_fake(frame, (size_t)(p - frame), n + 1, &asked);
        CHECK_EQ(asked, 0);
        (void)decode_fake(frame, (size_t)(p - frame) - 1, n, &asked);
        CHECK_EQ(asked, 0);
    }
}

static void test_zstd_provider(void)
{
    static const struct {
        int given, zstd;
    } levels[] = { { 0, 3 }, { 1, 1 }, { 7, 7 }, { 19, 19 }, { 22, 19 }, { -5, 1 } };
    struct ptwm_codec_context context = { &no_allocator, &fake_provider, 0 };
    uint8_t src[100] = { 1, 2, 3 }, dst[700], out[100];
    size_t nbytes = 0;

    CHECK(ptwm_zstd_select(&fake_provider) == &fake_provider);
    CHECK(ptwm_zstd_is_available(&fake_provider));
    CHECK_EQ(ptwm_zstd_is_available(ptwm_zstd_select(NULL)), ptwm_has_builtin_zstd());
    for (size_t i = 0; i < sizeof levels / sizeof levels[0]; i++) {
        context.level = levels[i].given;
        CHECK_EQ(ptwm_codec_zstd.encode(&context, dst, &nbytes, src, 100, NULL), PTWM_OK);
        CHECK_EQ(fake.level, levels[i].zstd);
    }
    fake.fails = 1;
    CHECK_EQ(ptwm_codec_zstd.decode(&context, out, 100, dst, nbytes, NULL), PTWM_ERR_ZSTD);
    CHECK_EQ(ptwm_codec_zstd.encode(&context, dst, &nbytes, src, 100, NULL), PTWM_ERR_ZSTD);
    fake.fails = 0;
    fake.behind = 1; /* a frame that is not to be stored */
    CHECK_EQ(ptwm_codec_zstd.encode(&context, dst, &nbytes, src, 100, NULL), PTWM_ERR_ZSTD);
    fake.behind = 0;
    if (!ptwm_has_builtin_zstd()) {
        context.zstd = ptwm_zstd_select(NULL);
        CHECK_EQ(ptwm_codec_zstd.encode(&context, dst, &nbytes, src, 100, NULL), PTWM_ERR_ZSTD_UNAVAILABLE);
        nbytes = store_raw_frame(dst, src, 100);
        CHECK_EQ(ptwm_codec_zstd.decode(&context, out, 100, dst, nbytes, NULL), PTWM_ERR_ZSTD_UNAVAILABLE);
    }
}

/* The real zstd reads what the frame says, and finds out about content that is not what it says. */
static void test_zstd_builtin(void)
{
    uint8_t frame[] = { 0x28, 0xB5, 0x2F, 0xFD, 0x20, 5, 0x29, 0, 0, 'h', 'e', 'l', 'l', 'o' };
    uint8_t *out = NULL;

    if (!ptwm_has_builtin_zstd()) {
        printf("SKIP test_zstd_builtin: zstd is not built in\n");
        return;
    }
    CHECK_EQ(decode(&ptwm_codec_zstd, frame, sizeof frame, 5, &out), PTWM_OK);
    CHECK(out != NULL && memcmp(out, "hello", 5) == 0);
    free(out);
    frame[5] = 6;
    CHECK_EQ(decode(&ptwm_codec_zstd, frame, sizeof frame, 6, NULL), PTWM_ERR_ZSTD);
}

static void test_codec_table(void)
{
    static const char *const names[] = { "identity", "constant", "huffman", "rans", "zstd", "label-rans", "trim", "carried" };

    for (uint32_t id = 0; id < 300; id++) {
        const struct ptwm_byte_codec *codec = ptwm_byte_codec_find(id);

        CHECK((codec != NULL) == (id <= PTWM_CODEC_ZSTD));
        CHECK(codec == NULL || codec->id == id);
        CHECK((ptwm_codec_name(id) != NULL) == (id <= PTWM_CODEC_CARRIED));
        CHECK(id > PTWM_CODEC_CARRIED || strcmp(ptwm_codec_name(id), names[id]) == 0);
    }
}

int main(void)
{
    RUN(test_constant);
    RUN(test_zstd_rules);
    RUN(test_zstd_headers);
    RUN(test_zstd_provider);
    RUN(test_zstd_builtin);
    RUN(test_codec_table);
    CHECK_EXIT();
}
