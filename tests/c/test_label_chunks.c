/*
 * Chunks of label rANS that are malformed in every field, flipped, cut and random. Run under the address sanitizer: buffers have
 * exactly the size that was promised.
 */
#include "label_cases.h"

/* ------------------------------------------------------------------------------------------------ malformed chunks */

static char last_detail[128]; /* of decode */

/* Decodes from and into memory of exactly the right size. */
static enum ptwm_status decode(const struct sample *sample, const uint8_t *src, size_t nbytes, size_t n)
{
    struct ptwm_error error = PTWM_ERROR_INIT;
    uint8_t *copy = exactly(nbytes);
    uint16_t *symbols = exactly(2 * n);
    enum ptwm_status status;
    memcpy(copy, src, nbytes);
    status = ptwm_label_decode(&sample->model, 0, copy, nbytes, symbols, n, NULL, 0, &error);
    CHECK_EQ(status, error.status);
    memcpy(last_detail, error.detail, sizeof(last_detail));
    for (size_t i = 0; i < n && status == PTWM_OK; i++)
        CHECK(symbols[i] >> sample->model.bits == 0);
    free(copy);
    free(symbols);
    return status;
}

/* The same after the head's CRC has been made right. */
static enum ptwm_status decode_sealed(const struct sample *sample, uint8_t *src, size_t head_nbytes, size_t nbytes)
{
    ptwm_store32(src + head_nbytes - 4, ptwm_crc32c(0, src, head_nbytes - 4));
    return decode(sample, src, nbytes, sample->n);
}

static void check_flips(const struct sample *sample)
{
    for (size_t k = 0; k < sample->nbytes; k++) {
        uint8_t flip = (uint8_t)(1 + random_below(255)), stored[4];
        enum ptwm_status status;
        memcpy(stored, sample->coded + sample->head_nbytes - 4, 4);
        sample->coded[k] ^= flip;
        status = decode(sample, sample->coded, sample->nbytes, sample->n);
        /* The head has a CRC. Words do not (the plane has), and other words may be those of other symbols. */
        if (k < sample->head_nbytes)
            CHECK(status == PTWM_ERR_PLANE || status == PTWM_ERR_CHECKSUM);
        else
            CHECK(status == PTWM_ERR_PLANE || status == PTWM_OK);
        if (k < sample->head_nbytes - 4) {
            decode_sealed(sample, sample->coded, sample->head_nbytes, sample->nbytes);
            memcpy(sample->coded + sample->head_nbytes - 4, stored, 4);
        }
        sample->coded[k] ^= flip;
    }
}

static void malformed_chunks(void)
{
    static const struct { size_t n; unsigned bits; uint32_t n_classes, exceptions; } kinds[] = {
        { 1, 5, 1, 0 },      { 300, 5, 3, 20 },   { 500, 9, 4, 10 },    { 1500, 9, 8, 50 },
        { 1100, 15, 2, 30 }, { 16400, 5, 4, 900 }, { 16500, 9, 3, 900 },
    };
    for (unsigned k = 0; k < 7; k++) {
        struct sample sample;
        make_sample(&sample, kinds[k].n, kinds[k].bits, kinds[k].n_classes, kinds[k].exceptions, k % 2);
        CHECK_EQ(decode(&sample, sample.coded, sample.nbytes, sample.n), PTWM_OK);
        for (size_t n = 0; n < sample.nbytes; n++)
            CHECK_EQ(decode(&sample, sample.coded, n, sample.n), PTWM_ERR_PLANE);
        if (sample.n > 1)
            CHECK(decode(&sample, sample.coded, sample.nbytes, sample.n - 1) != PTWM_OK);
        CHECK(decode(&sample, sample.coded, sample.nbytes, sample.n + 1) != PTWM_OK);
        check_flips(&sample);
        release_sample(&sample);
    }
    CHECK_EQ(account.live_nbytes, 0);
}

/* Writes a head for 200 elements of unit 128 and three classes by hand; returns its length. */
static size_t build_head(uint8_t *dst, unsigned lanes_code, uint64_t set, uint64_t n_exceptions, unsigned classes,
                         const char *exceptions, size_t exceptions_nbytes, uint32_t state)
{
    size_t n_lanes = lanes_code == 0 ? 4 : lanes_code == 1 ? 32 : 128, n = 0;
    dst[n++] = (uint8_t)lanes_code;
    n += ptwm_store_varint(dst + n, set);
    n += ptwm_store_varint(dst + n, n_exceptions);
    dst[n++] = (uint8_t)classes;
    memcpy(dst + n, exceptions, exceptions_nbytes);
    n += exceptions_nbytes;
    for (size_t l = 0; l < n_lanes; l++, n += 4)
        ptwm_store32(dst + n, state);
    return n + 4;
}

/* Decoding fails for that reason and no other. */
static void check_refused(enum ptwm_status status, const char *detail)
{
    if (status != PTWM_ERR_PLANE || strstr(last_detail, detail) == NULL)
        printf("%s, not %s\n", last_detail, detail);
    CHECK(status == PTWM_ERR_PLANE && strstr(last_detail, detail) != NULL);
}

static void malformed_fields(void)
{
    static const struct {
        const char *detail;
        unsigned lanes_code;
        uint64_t set, n_exceptions;
        unsigned classes;
        const char *exceptions;
        size_t exceptions_nbytes;
        uint32_t state;
    } cases[] = {
        { "bad lanes", 3, 0, 0, 0, "", 0, 65536 },
        { "no such set", 0, 1, 0, 0, "", 0, 65536 },
        { "no such class", 0, 0, 0, 3, "", 0, 65536 },
        { "bad state", 0, 0, 0, 0, "", 0, 65535 },
        { "bad number of exceptions", 0, 0, 201, 0, "", 0, 65536 },
        { "bad exceptions", 0, 0, 1, 0, "\xc8\x01\x00", 3, 65536 },         /* position 200 */
        { "bad exceptions", 0, 0, 2, 0, "\xc6\x01\x00\x01\x00", 5, 65536 }, /* positions 198, 200 */
        { "bad exceptions", 0, 0, 1, 0, "\x00\x20", 2, 65536 },             /* symbol 32 */
        { "bad exceptions", 0, 0, 1, 0, "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x00", 11, 65536 },
        { "bad exceptions", 0, 0, 1, 0, "\x80\x00\x00", 3, 65536 },         /* a distance that is not minimal */
    };
    struct sample sample;
    uint8_t coded[2048];
    make_sample(&sample, 200, 5, 3, 0, false);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        size_t n_head = build_head(coded, cases[i].lanes_code, cases[i].set, cases[i].n_exceptions, cases[i].classes,
                                   cases[i].exceptions, cases[i].exceptions_nbytes, cases[i].state);
        memset(coded + n_head, 0, 400);
        check_refused(decode_sealed(&sample, coded, n_head, n_head + 400), cases[i].detail);
    }
    /* What comes to light only when all the rest is right. */
    memcpy(coded, sample.coded, sample.nbytes);
    memset(coded + sample.nbytes, 0, 2);
    check_refused(decode(&sample, coded, sample.nbytes + 1, 200), "half a word");
    check_refused(decode(&sample, coded, sample.nbytes + 2, 200), "words left over");
    check_refused(decode(&sample, coded, sample.nbytes - 2, 200), "too few words");
    coded[3] |= 16;
    check_refused(decode_sealed(&sample, coded, sample.head_nbytes, sample.nbytes), "unused bits");
    coded[3] ^= 16;
    coded[sample.head_nbytes - 4 - 16] ^= 1;
    check_refused(decode_sealed(&sample, coded, sample.head_nbytes, sample.nbytes), "label rANS");
    coded[sample.head_nbytes - 4 - 16] ^= 1;
    /* An exception at the last place is fine. */
    coded[2] = 1;
    memcpy(coded + 4, "\xc7\x01\x1f", 3);
    memcpy(coded + 7, sample.coded + 4, sample.nbytes - 4);
    CHECK_EQ(decode_sealed(&sample, coded, sample.head_nbytes + 3, sample.nbytes + 3), PTWM_OK);
    coded[sample.head_nbytes + 2] ^= 1;
    CHECK_EQ(decode(&sample, coded, sample.nbytes + 3, 200), PTWM_ERR_CHECKSUM);
    release_sample(&sample);
}

/* Any state at all can be reached, so that a wrong one at the end is refused by its own check. */
static void wrong_final_state(void)
{
    struct sample sample;
    uint8_t coded[64] = { 0 };
    struct ptwm_alias_table alias;
    uint32_t x, low, label, rank;
    make_sample(&sample, 1, 5, 1, 0, false);
    ptwm_alias_build(&alias, sample.model.sets[0].classes[0].frequency);
    /* One element of one lane; a state of 2^31 stays above 65536, takes no word, and ends somewhere else. */
    for (x = 0x80000000u;; x++) {
        low = x & 0xffff;
        label = low >= alias.div[low % 32] ? alias.ali[low % 32] : low % 32;
        rank = low >= alias.div[low % 32] ? (low / 32 + alias.adj[low % 32]) & 0xffff : low / 32;
        if (alias.frequency[label] * (x >> 16) + rank > 65536)
            break;
    }
    for (unsigned lane = 0; lane < 4; lane++)
        ptwm_store32(coded + 3 + 4 * lane, lane == 0 ? x : 65536);
    check_refused(decode_sealed(&sample, coded, 23, 23), "wrong state");
    release_sample(&sample);
}

/* Groups that take nearly a word an element, cut off anywhere: nothing behind the end is read. */
static void dense_words(void)
{
    enum { N = 16384 + 128 };
    struct sample sample;
    make_sample(&sample, N, 5, 1, 0, false);
    memset(&sample.model.sets[0].classes[0], 0, sizeof(sample.model.sets[0].classes[0]));
    sample.model.sets[0].classes[0].n_labels = 2;
    sample.model.sets[0].classes[0].symbol[1] = 1;
    sample.model.sets[0].classes[0].frequency[0] = 8;
    sample.model.sets[0].classes[0].frequency[1] = 65528;
    memset(sample.symbols, 0, 2 * N);
    CHECK_EQ(ptwm_label_encode(&sample.model, 0, sample.classes, 0, sample.symbols, N, NULL, sample.coded,
                               &sample.nbytes, NULL),
             PTWM_OK);
    CHECK(sample.nbytes > N / 8 * 13);
    for (size_t cut = 0; cut < 1000; cut++)
        CHECK_EQ(decode(&sample, sample.coded, sample.nbytes - cut, N), cut == 0 ? PTWM_OK : PTWM_ERR_PLANE);
    release_sample(&sample);
}

static void random_chunks(void)
{
    struct sample sample;
    uint8_t noise[700];
    make_sample(&sample, 1200, 9, 5, 40, true);
    for (unsigned k = 0; k < 20000; k++) {
        size_t n = random_below(700), head = 0;
        for (size_t i = 0; i < n; i++)
            noise[i] = (uint8_t)random_below(k % 2 ? 256 : 3);
        if (n > 20 && k % 4 > 0) {
            /* Plausible: four lanes, set 0, a few exceptions, big enough states. */
            memset(noise, 0, 2);
            noise[2] = (uint8_t)random_below(3);
            head = 3 + 4 + 3 * (size_t)noise[2] + 16 + 4;
            for (size_t i = 0; i < noise[2]; i++)
                memset(noise + 7 + 3 * i + 1, 0, 2);
            for (unsigned l = 0; l < 4 && head < n; l++)
                noise[head - 4 - 4 * l - 1] |= 1;
        }
        if (head > 0 && head < n)
            ptwm_store32(noise + head - 4, ptwm_crc32c(0, noise, head - 4));
        decode(&sample, noise, n, 1 + random_below(1200));
    }
    release_sample(&sample);
}

int main(void)
{
    RUN(malformed_chunks);
    RUN(malformed_fields);
    RUN(wrong_final_state);
    RUN(dense_words);
    RUN(random_chunks);
    CHECK_EXIT();
}
