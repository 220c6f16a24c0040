/*
 * Malformed input for Huffman and byte rANS: every rule of FORMAT.md broken, bytes flipped, cut and made up.
 */
#include "codec_cases.h"

/* -------------------------------------------------------------------------------------------- hostile input */

/* The length of the symbol set that begins a plane. */
static size_t symbol_set_nbytes(const uint8_t *stored)
{
    size_t nbytes = 2;

    for (unsigned g = 0; g < 16; g++)
        nbytes += 2 * ((unsigned)ptwm_load16(stored) >> g & 1);
    return nbytes;
}

/*
 * Every truncation, extra bytes, every change of a byte. What decoding gives matters little; ASan watches where it
 * goes.
 */
static void attack(const struct ptwm_byte_codec *codec, int distribution, size_t n)
{
    size_t nbytes, accepted = 0;
    uint8_t *src = make_data(distribution, n, n), *stored = encode(codec, src, n, &nbytes, 0);
    uint8_t *longer = calloc(nbytes + 2, 1);

    for (size_t length = 0; length < nbytes; length++)
        CHECK(is_malformed(decode(codec, stored, length, n, NULL)));
    memcpy(longer, stored, nbytes);
    for (unsigned value = 0; value < 256; value += 85) {
        longer[nbytes] = (uint8_t)value;
        CHECK(is_malformed(decode(codec, longer, nbytes + 1, n, NULL)));
        CHECK(is_malformed(decode(codec, longer, nbytes + 2, n, NULL)));
    }
    for (size_t at = 0; at < nbytes; at++) {
        uint8_t original = stored[at];

        for (unsigned flip = 1; flip < 256; flip++) {
            enum ptwm_status status;

            stored[at] = (uint8_t)(original ^ flip);
            status = decode(codec, stored, nbytes, n, NULL);
            CHECK(status == PTWM_OK || is_malformed(status));
            if (status == PTWM_OK && codec == &ptwm_codec_rans)
                accepted += at >= symbol_set_nbytes(stored);
        }
        stored[at] = original;
    }
    /*
     * Another set of as many symbols is as good as the right one, and where all frequencies are powers of two any words
     * are; but else nearly all changes show in the states' ends.
     */
    CHECK(accepted <= nbytes * 255 / 100 || distribution == UNIFORM || distribution == ALL_VALUES);
    CHECK_EQ(decode(codec, stored, nbytes, n, NULL), PTWM_OK);
    free(longer);
    free(stored);
    free(src);
}

static void test_attacks(void)
{
    static const size_t sizes[] = { 1, 2, 5, 21, 64, 150 };

    for (size_t c = 0; c < N_CODECS; c++) {
        for (int d = 0; d < N_DISTRIBUTIONS; d++) {
            for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
                attack(codecs[c], d, sizes[i]);
        }
    }
    attack(&ptwm_codec_rans, SKEWED, 1030); /* 32 lanes */
    attack(&ptwm_codec_huffman, SKEWED, 700); /* long enough for the fast loop */
}

/* A larger plane, with the wrong length asked for, and with bytes changed at random. */
static void test_attacks_on_large_planes(void)
{
    uint64_t seed = 8;

    for (size_t c = 0; c < N_CODECS; c++) {
        size_t n = 50000, nbytes;
        uint8_t *src = make_data(SKEWED, n, 1), *stored = encode(codecs[c], src, n, &nbytes, 0);

        /* By an element or two Huffman cannot tell: zeros at the end of a byte may be a code. */
        CHECK(is_malformed(decode(codecs[c], stored, nbytes, n - 40, NULL)));
        CHECK(is_malformed(decode(codecs[c], stored, nbytes, n + 40, NULL)));
        CHECK(is_malformed(decode(codecs[c], stored, nbytes, 2 * n, NULL)));
        CHECK(is_malformed(decode(codecs[c], stored, nbytes, n / 2, NULL)));
        CHECK(is_malformed(decode(codecs[c], stored, nbytes, 1, NULL)));
        for (unsigned round = 0; round < 300; round++) {
            uint8_t *changed = copy_of(stored, nbytes);

            for (unsigned i = 0; i <= round % 4; i++)
                changed[check_random(&seed) % (round % 2 ? 64 : nbytes)] ^= (uint8_t)(1u << check_random(&seed) % 8);
            (void)decode(codecs[c], changed, nbytes - (round % 5 == 0 ? check_random(&seed) % 100 : 0), n, NULL);
            free(changed);
        }
        free(stored);
        free(src);
    }
}

static void test_random_bytes(void)
{
    uint64_t seed = 2;

    for (size_t c = 0; c <= N_CODECS; c++) {
        const struct ptwm_byte_codec *codec = c < N_CODECS ? codecs[c] : &ptwm_codec_constant;

        for (unsigned round = 0; round < 4000; round++) {
            size_t nbytes = (size_t)(check_random(&seed) % (round % 3 == 0 ? 8 : 300)), n = 1 + round % 1500;
            uint8_t *p = make_data(round % 2 ? UNIFORM : STEEP, nbytes, seed);
            enum ptwm_status status;

            /* A plausible beginning leads deeper: one group with few members. */
            if (round % 4 && nbytes >= 4) {
                ptwm_store16(p, (uint16_t)(1u << round % 16));
                ptwm_store16(p + 2, (uint16_t)(3u << round % 15));
            }
            status = decode(codec, p, nbytes, n, NULL);
            CHECK(status == PTWM_OK || is_malformed(status));
            free(p);
        }
    }
}

static enum ptwm_status decode_huffman(const uint8_t *src, size_t nbytes, size_t n)
{
    return decode(&ptwm_codec_huffman, src, nbytes, n, NULL);
}

/* Each rule of section 6.1, broken by one change of a plane that is right. */
static void test_huffman_rules(void)
{
    /* Symbols 0, 1, 2 of 1, 2, 2 bits: codes 0, 10, 11. The plane: 1 0 | 2 2 | 0 1 | 0 0. */
    static const uint8_t good[] = { 0x01, 0, 0x07, 0, 0x21, 0x02, 1, 1, 1, 0x01, 0x0F, 0x02, 0x00 };
    static const struct {
        unsigned at;
        uint8_t value;
    } breaks[] = {
        { 0, 0 },    /* no group */
        { 0, 3 },    /* a group that takes the lengths for its members */
        { 2, 0 },    /* no member */
        { 4, 0x20 }, /* a length of 0 */
        { 4, 0x2C }, /* a length of 12 */
        { 5, 0x03 }, /* an incomplete code */
        { 5, 0x01 }, /* more codes than there are */
        { 5, 0x12 }, /* bits behind the lengths */
        { 6, 0 },    /* streams that are too short and too long */
        { 6, 2 },
        { 7, 200 },
        { 9, 0x09 }, /* bits behind a stream's end */
        { 10, 0x8F },
        { 12, 0x10 },
    };
    static const uint8_t long_varint[] = { 0x01, 0, 0x07, 0, 0x21, 0x02, 0x81, 0, 1, 1, 0x01, 0x0F, 0x02, 0x00 };
    static const uint8_t spare_byte[] = { 0x01, 0, 0x07, 0, 0x21, 0x02, 2, 1, 1, 0x01, 0, 0x0F, 0x02, 0x00 };
    static const uint8_t spare_end[] = { 0x01, 0, 0x07, 0, 0x21, 0x02, 1, 1, 1, 0x01, 0x0F, 0x02, 0x00, 0 };
    static const uint8_t expected[] = { 1, 0, 2, 2, 0, 1, 0, 0 };
    static const uint8_t empty_group[] = { 0x81, 0, 0x00, 0x80, 0, 0 };
    static const uint8_t one[] = { 0x80, 0, 0x00, 0x80, 0 };
    uint8_t *out = NULL;

    CHECK_EQ(decode(&ptwm_codec_huffman, good, sizeof good, 8, &out), PTWM_OK);
    CHECK(out != NULL && memcmp(out, expected, 8) == 0);
    free(out);
    for (size_t i = 0; i < sizeof breaks / sizeof breaks[0]; i++) {
        uint8_t *bad = copy_of(good, sizeof good);

        bad[breaks[i].at] = breaks[i].value;
        CHECK_EQ(decode_huffman(bad, sizeof good, 8), PTWM_ERR_PLANE);
        free(bad);
    }
    CHECK_EQ(decode_huffman(long_varint, sizeof long_varint, 8), PTWM_ERR_PLANE);
    CHECK_EQ(decode_huffman(spare_byte, sizeof spare_byte, 8), PTWM_ERR_PLANE);
    CHECK_EQ(decode_huffman(spare_end, sizeof spare_end, 8), PTWM_ERR_PLANE);
    CHECK_EQ(decode_huffman(empty_group, sizeof empty_group, 8), PTWM_ERR_PLANE);
    CHECK_EQ(decode_huffman(one, 4, 8), PTWM_OK);
    CHECK_EQ(decode_huffman(one, 5, 8), PTWM_ERR_PLANE);
}

static enum ptwm_status decode_rans(const uint8_t *src, size_t nbytes, size_t n)
{
    return decode(&ptwm_codec_rans, src, nbytes, n, NULL);
}

/* Each rule of section 6.2, broken by one change of a plane that is right. */
static void test_rans_rules(void)
{
    /* Symbols 0 and 1 with 2048 each. A step back from 65536 to a 0 doubles the state, to a 1 adds 2048 too. */
    static const uint8_t good[] = { 1, 0, 3, 0, 0xFF, 0x0F, 0, 0, 2, 0, 0, 8, 2, 0, 0, 0, 2, 0, 0, 0, 1, 0 };
    static const uint8_t expected[] = { 0, 1, 0 };
    static const struct {
        unsigned at;
        uint8_t value;
    } breaks[] = {
        { 0, 0 },  /* no group */
        { 2, 0 },  /* no member */
        { 5, 0x1F }, /* 4096 for the first symbol, none left for the second */
        { 5, 0x3F }, /* more than 4096 */
        { 5, 0x8F }, /* a varint that goes on */
        { 8, 0 },  /* a state below 65536 */
        { 8, 1 },  /* a state that ends below 65536 and finds no word */
        { 8, 4 },  /* states that do not end in 65536 */
        { 6, 1 },
        { 12, 3 },
        { 18, 1 }, /* the same in a lane without an element */
        { 20, 2 },
    };
    static const uint8_t spare_word[] = {
        1, 0, 3, 0, 0xFF, 0x0F, 0, 0, 2, 0, 0, 8, 2, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0
    };
    static const uint8_t one[] = { 1, 0, 4, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1, 0 };
    uint8_t *out = NULL;

    CHECK_EQ(decode(&ptwm_codec_rans, good, sizeof good, 3, &out), PTWM_OK);
    CHECK(out != NULL && memcmp(out, expected, 3) == 0);
    free(out);
    for (size_t i = 0; i < sizeof breaks / sizeof breaks[0]; i++) {
        uint8_t *bad = copy_of(good, sizeof good);

        bad[breaks[i].at] = breaks[i].value;
        CHECK_EQ(decode_rans(bad, sizeof good, 3), PTWM_ERR_PLANE);
        free(bad);
    }
    CHECK_EQ(decode_rans(spare_word, sizeof spare_word, 3), PTWM_ERR_PLANE);
    CHECK_EQ(decode_rans(spare_word, sizeof spare_word - 1, 3), PTWM_ERR_PLANE); /* half a word */
    CHECK_EQ(decode_rans(one, sizeof one, 100), PTWM_OK);
}

/* A state below 65536 that takes a word and ends as it should: only the check of the states themselves refuses it. */
static void test_rans_low_state(void)
{
    /* Symbols 0 and 1 with 2048 each, 45 elements that are 0; each halves a state. Lane 0 has 12, the others 11. */
    static const uint8_t good[] = { 1, 0, 3, 0, 0xFF, 0x0F, 0, 0, 0, 16, 0, 0, 0, 8, 0, 0, 0, 8, 0, 0, 0, 8 };
    static const uint8_t bad[] = { 1, 0, 3, 0, 0xFF, 0x0F, 0, 16, 0, 0, 0, 0, 0, 8, 0, 0, 0, 8, 0, 0, 0, 8, 0, 0 };

    CHECK_EQ(decode_rans(good, sizeof good, 45), PTWM_OK);
    CHECK_EQ(decode_rans(bad, sizeof bad, 45), PTWM_ERR_PLANE);
}

/* No unit of frequency is worth more elsewhere, with ln(1 + 1 / f) taken as 2 / (2 f + 1). */
static void test_rans_frequencies(void)
{
    uint64_t seed = 31;

    for (unsigned round = 0; round < 60; round++) {
        unsigned k = 2 + (unsigned)(check_random(&seed) % 254);
        uint32_t counts[256], frequencies[256], rest = 4096;
        size_t n = 0, nbytes;
        uint8_t *src = malloc(256 * 4096), *stored, symbols[256];
        const uint8_t *p;

        for (unsigned i = 0; i < k; i++) {
            counts[i] = 1 + (uint32_t)(check_random(&seed) & ((1u << check_random(&seed) % 12) - 1));
            memset(src + n, (int)i, counts[i]);
            n += counts[i];
        }
        p = stored = encode(&ptwm_codec_rans, src, n, &nbytes, 0);
        CHECK_EQ(slow_symbol_set(&p, symbols), k);
        for (unsigned i = 0; i < k; i++) {
            frequencies[i] = i + 1 < k ? (uint32_t)slow_varint(&p) + 1 : rest;
            rest -= frequencies[i];
        }
        for (unsigned i = 0; i < k; i++) {
            for (unsigned j = 0; j < k; j++)
                CHECK(i == j || frequencies[j] == 1 || (uint64_t)counts[i] * (2 * frequencies[j] - 1) <=
                                                       (uint64_t)counts[j] * (2 * frequencies[i] + 1));
        }
        free(stored);
        free(src);
    }
}

int main(void)
{
    RUN(test_attacks);
    RUN(test_attacks_on_large_planes);
    RUN(test_random_bytes);
    RUN(test_huffman_rules);
    RUN(test_rans_rules);
    RUN(test_rans_low_state);
    RUN(test_rans_frequencies);
    CHECK_EXIT();
}
