/*
 * CRC-32C and XXH3-64 against published values, other implementations and themselves in pieces.
 */
#include "check.h"
#include "ptwm.h"
#include "vector_state.h"
#include "xxh3.h"

/* The input of all test vectors: byte i. */
static uint8_t pattern_byte(uint32_t i)
{
    return (uint8_t)((i * 2654435761u) >> 24 ^ i >> 8);
}

/* n bytes of the pattern from byte first on, in memory of exactly that size. */
static uint8_t *make_pattern(size_t first, size_t n)
{
    uint8_t *p = malloc(n > 0 ? n : 1);

    for (size_t i = 0; i < n; i++)
        p[i] = pattern_byte((uint32_t)(first + i));
    return p;
}

/* --------------------------------------------------------------------------------------------------- CRC-32C */

static uint32_t crc_bit_by_bit(uint32_t crc, const uint8_t *p, size_t n)
{
    crc = ~crc;
    for (size_t i = 0; i < n; i++) {
        crc ^= p[i];
        for (int bit = 0; bit < 8; bit++)
            crc = crc >> 1 ^ (crc & 1 ? 0x82F63B78u : 0);
    }
    return ~crc;
}

/* RFC 3720, appendix B.4, and the catalogue's check value. */
static void test_crc_published(void)
{
    uint8_t buffer[32];

    CHECK_EQ(ptwm_crc32c(0, "123456789", 9), 0xE3069283u);
    CHECK_EQ(ptwm_crc32c(0, NULL, 0), 0);
    memset(buffer, 0, 32);
    CHECK_EQ(ptwm_crc32c(0, buffer, 32), 0x8A9136AAu);
    memset(buffer, 255, 32);
    CHECK_EQ(ptwm_crc32c(0, buffer, 32), 0x62A8AB43u);
    for (unsigned i = 0; i < 32; i++)
        buffer[i] = (uint8_t)i;
    CHECK_EQ(ptwm_crc32c(0, buffer, 32), 0x46DD794Eu);
    for (unsigned i = 0; i < 32; i++)
        buffer[i] = (uint8_t)(31 - i);
    CHECK_EQ(ptwm_crc32c(0, buffer, 32), 0x113FDB5Cu);
}

/* All versions that this machine has, at lengths around their pieces' (128, 256, 384, 1024, 3072). */
static void test_crc_levels(void)
{
    static const char *const levels[] = { "c99", "sse42", "avx2", "avx512", "neon" };
    static const size_t pieces[] = { 0, 128, 256, 384, 1024, 1280, 3072, 6144, 9216 + 768 };
    const size_t n_pieces = sizeof pieces / sizeof pieces[0];
    const bool state_is_told = vector_state_is_known();

    if (!state_is_told)
        printf("SKIP the state of vector registers: this processor does not tell it\n");
    for (size_t k = 0; k < n_pieces; k++)
        for (size_t d = 0; d < 80; d += d < 20 ? 1 : 7) {
            const size_t n = pieces[k] + d;
            uint8_t *p = make_pattern(d, n);
            const uint32_t start = (uint32_t)(n * 2654435761u), expected = crc_bit_by_bit(start, p, n);
            for (size_t l = 0; l < sizeof levels / sizeof levels[0]; l++)
                if (ptwm_cpu_select(levels[l]) == PTWM_OK) {
                    CHECK(strcmp(ptwm_cpu_name(), levels[l]) == 0);
                    CHECK_EQ(ptwm_crc32c(start, p, n), expected);
                    CHECK(!state_is_told || vector_state_is_clean());
                    (void)ptwm_xxh3_64(p, n);
                    CHECK(!state_is_told || vector_state_is_clean());
                }
            free(p);
        }
    ptwm_cpu_select("best");
}

static void test_crc_lengths_and_alignments(void)
{
    for (size_t first = 0; first < 9; first++) {
        for (size_t n = 0; n < 200; n++) {
            uint8_t *p = make_pattern(0, first + n);

            CHECK_EQ(ptwm_crc32c(0, p + first, n), crc_bit_by_bit(0, p + first, n));
            free(p);
        }
    }
}

static void test_crc_in_pieces(void)
{
    uint8_t *p = make_pattern(7, 1000);
    uint32_t whole = ptwm_crc32c(0, p, 1000);

    CHECK_EQ(whole, crc_bit_by_bit(0, p, 1000));
    for (size_t split = 0; split <= 1000; split++)
        CHECK_EQ(ptwm_crc32c(ptwm_crc32c(0, p, split), p + split, 1000 - split), whole);
    free(p);
}

/* --------------------------------------------------------------------------------------------------- XXH3-64 */

/*
 * Of the first 0 .. 256 bytes of the pattern, computed with the PyPI package xxhash 4.1.0:
 * xxhash.xxh3_64_intdigest(data[:n]).
 */
static const uint64_t xxh3_short[257] = {
    0x2D06800538D394C2u, 0xC44BDFF4074EECDBu, 0xB0A5D4F167A89D5Eu, 0xE14090F554A5EA90u,
    0x2E8D078A566E9749u, 0x94B7BED600F8CE63u, 0x54E61284A9BFCB0Bu, 0xE6F7770846C47DF5u,
    0xCD1C7F88482FCAEFu, 0xBFE43DEF699FA9E3u, 0x4C09BDACFAD76272u, 0x102E10AF00A35A56u,
    0x027242C0A3B593E8u, 0x339F6DD3D6BB5A94u, 0x5B4842739AE45963u, 0x9C71639666DFDBC2u,
    0x81E9EB8634460BB9u, 0x9998430FD0A655BEu, 0x976857DA19FFAD65u, 0x9F5A86A68DF10418u,
    0xE0CB86B7A2203E63u, 0xC8FFA6FE6AD8CEF1u, 0x8C54E2BC5F1F4F71u, 0x8BFDA3DFDEFF51E0u,
    0x567055635B934E88u, 0xA718ACFA079D04F6u, 0x4BA38B05A30774C7u, 0x8E0D588A6EA6E318u,
    0x88A644979F86602Eu, 0x9129E98FC51AE71Fu, 0x7EEE65AF612471D6u, 0x6427C268CCD55706u,
    0x938C25DD24C9CF3Bu, 0x0E399D30188E9C8Eu, 0x6F9D75B19DC1F1D5u, 0xF6AB7DC6CF11B0A8u,
    0xEF9ED7FCCC240F5Bu, 0x3C45F3217897702Bu, 0x89BEDFBD16F1CB05u, 0x94F19E58267BC1A1u,
    0xB0755E9C7BD5400Bu, 0x2402764F7D8C10A8u, 0x182083F977F7E298u, 0x708BB47C86258EFBu,
    0x4460159794A79D98u, 0xDD634C8BB321E1BFu, 0x0F441B5E720EE551u, 0x210AB22E2B3D6683u,
    0xB84347B7C91758EBu, 0x140548B11D2033ACu, 0x3CC1703C0C04D9D9u, 0x645B8F02730933BBu,
    0xEE9709F9764C916Cu, 0xD8B8CDD881A5A419u, 0x6B35E145FBD307B4u, 0x70FA9EBA22429C16u,
    0xB5701D7D184E93ADu, 0xC6670FD07473C7DBu, 0x5E783B7B15D80461u, 0x0982B646A9662667u,
    0x64EBB14E1CE0CE93u, 0xC9310B73D4AF5186u, 0x79A2693D9166258Cu, 0x9E5EDF514E6C4EA2u,
    0x22A06B30C4C72936u, 0x7FAFF6EEE7812D5Cu, 0x0C80BA100C7CB9ACu, 0xF22181E4CCA69B47u,
    0xA878BEE064BF8558u, 0x5B0BD958F897B5FCu, 0xCBACCD7858072E1Eu, 0xDDC7DF777FB4416Du,
    0xE5F2911E7F9C73D9u, 0x8B202CA9E5B45AD1u, 0xAA67A9316FBBD8F2u, 0x6EB47992BE465C3Bu,
    0xDE125D6E44196F49u, 0x2DA6C5417E176E1Au, 0xF9D7EE4F9DCE76CDu, 0x1932E293445B956Bu,
    0xCE9D3C325755F9E8u, 0xDD13EE4737DFB5DDu, 0x06AFF7D0449FCBC4u, 0x00FFFCF1D2452B42u,
    0x55A294E1E6971358u, 0x0DBFB8D107ECD457u, 0xF1BAC875B89F346Bu, 0x6825D485A776FD17u,
    0x3C63E4E874B2C01Eu, 0xFC6123226FB273DAu, 0xFF3ABC3FE00BFCFEu, 0x37B315D978AE3868u,
    0x0266E5E92105C3DEu, 0x28D1A42E7F163DA3u, 0x92626B61BA8C4539u, 0x694BDAF06A53BA1Bu,
    0x324046D7FF9771F1u, 0x00D61F9A16F8EFFDu, 0xE9E63D996F6A5F0Du, 0x6CDA765DA20EAF09u,
    0x4FF5F6C0D102CD55u, 0x43771A1BC3675342u, 0x02889D96660CB060u, 0x3F024A43CE9D1009u,
    0xCAA1739D309917A2u, 0xB86E1BD0509EAB71u, 0xD6437995E0CFEF3Du, 0x7B94BB0A27FB76D8u,
    0x126126257B16E095u, 0xA7572C07AAA5AAE4u, 0xB9CAA4237E048886u, 0xD4CC6E18F9A3CA89u,
    0xC7F3F80952A02E36u, 0x3E36821605F887F9u, 0x994AE7D465B73A62u, 0x7A858D620D4AFF8Bu,
    0xE1BD8B01EDB5B605u, 0xA01AE0ADC1100555u, 0xF18213EFF2921FD7u, 0x3C15A6EFCC8BDBABu,
    0xBB5E5CC4242877CFu, 0xE8B79FA176F5CC05u, 0x562A81EDE29B39ADu, 0x9633A2DC64311874u,
    0xD50C55A50C7AA3F0u, 0x75BED935EC75663Bu, 0x5DD7ADF6BD3635A0u, 0x29A5BE88E84CD571u,
    0x75ECA5C5D5594884u, 0xA05DA42E7A4E4667u, 0xFDFCE09EF5789C83u, 0x0CCC5414F0B0B9D3u,
    0x129FF7EDB9E8CCFDu, 0x44B1DBC805C4E09Du, 0x26519B2E4B5DC0EAu, 0xF5B15830BB736CB8u,
    0xB635C2B3F6831A64u, 0xB65BE59AECC11D5Fu, 0x0BD6DC3B2B73E333u, 0x407DD566FAD42237u,
    0x479A75345925388Fu, 0x00D68CCA19AC8F49u, 0xA53D8BFF0AE2B264u, 0x516036CAA68597ECu,
    0x2E63CEED9F938E07u, 0x01224D8FC204CE37u, 0x1AB33D1CEC69B9BCu, 0xBEE624761C2184D0u,
    0x801ECEE88FE3E8C4u, 0x81237E5B9B88AF77u, 0xAAE951F20FB3DB56u, 0x63B675556CDC2BC6u,
    0xC9E765BEF6B375ECu, 0xDC23A2BCDFF6FEA4u, 0x5A5C2FF69801AEC5u, 0x22B79F8FB15F1AABu,
    0x9C1397065C7A0FFAu, 0x4D74E3CDF0AC1AADu, 0x175501609BE9D304u, 0xDD2D3877B5C10791u,
    0xD298AB4E6E7DE4AAu, 0xBBCAE4AF9A10EDE4u, 0x2DDB1B18314B9AB3u, 0x5818B7085CFCF42Eu,
    0xFAFC3E25F9EA375Eu, 0xEFCF118ED011C824u, 0xA128EF77FE77CF57u, 0x96201C026BF7A4EFu,
    0xCA5DE32C033308DBu, 0xFF63A6B23C977B5Bu, 0x4D1EB39563E61C99u, 0xC8DDC10EAB61EC86u,
    0x2A68A3AC86B9BB21u, 0x01BCE949C841120Au, 0x746CC310D4FDAAEBu, 0x1557905D8D1CF66Cu,
    0xE141700F810F7D64u, 0x0954078AD7AE7956u, 0x9AD396E9B4B73AC5u, 0x22D795D0DE4B7ECEu,
    0xD51F0E3C38D36A5Au, 0xF1365E09946BDDFAu, 0x64449EBDA7B05A52u, 0x2E847728E7DC9E8Fu,
    0x5F806A595DAA2086u, 0xAC42A377CE14B67Cu, 0x0DA42DD082FDA682u, 0xC41BDFF354D15855u,
    0xF22BD0670143B923u, 0x5E4CAF26C82D4F97u, 0x6FAB89EFDC3073AEu, 0x68E87196ACFEF411u,
    0xF27A9155F46C22D6u, 0x9605D665834F8F63u, 0xB6F31941DE2BB9F6u, 0xEDE4CAABF7023BF2u,
    0x1E39493B75CC50D1u, 0x8BFCF87893FA04D3u, 0x1E4C1412B94579E2u, 0x4F32C25DC1EC2EA8u,
    0xE07BFBC15015BF69u, 0x65619CA5DEEF1252u, 0x8F4F9734CC8E9C86u, 0xB33A9F46C4D4213Du,
    0x3329A606A5B1BCCBu, 0x451F25DAA029BD1Du, 0x124FE69DF27C823Du, 0x0D5AA57F31DB2F9Bu,
    0x72F854CA8F11883Du, 0x5AAEF4F316E460F0u, 0x4E3260B0F7625D91u, 0x42BA3833DF8BAF18u,
    0xCBEE3E9D9512F826u, 0x0ABCF0990608A504u, 0xEF8FDC000FB63577u, 0x07D7270FA9D53C2Fu,
    0xF53544C72BA9E3EFu, 0xFE4A5FC017E14432u, 0xB1942CE89D452A82u, 0xC8BBAF69A6F320FBu,
    0xD24A90C8BEB309AEu, 0x4EF536934F737AD8u, 0xD6411CCC5BC3B448u, 0x0797D927BADDD66Eu,
    0x4F615A1F2A9DD5F1u, 0xB9651AABB761A833u, 0x724C747A91077844u, 0xDBC8C012EBFE07AAu,
    0x16FF3A838C400606u, 0x10D833D05AB200C3u, 0x7390E92663944993u, 0x4DE74F6A6B896EA4u,
    0x3C5A14EEB19A5934u, 0x7ED667066E31EDE5u, 0xA74CBC377DE57D00u, 0x703A34ECA68A5F60u,
    0x98EEB1DCD00E91C7u, 0x6AB30EE1CDF6A36Bu, 0x35337098CEFF1C1Cu, 0xA44C92FEED3D48FAu,
    0x5EB2467C8C9E3969u, 0x2D431E984C441F15u, 0x913B9091526BF691u, 0x987FDDBE0C2B11E1u,
    0x23F18E6FAD542148u, 0xAD498D66B54F1A85u, 0xAB57AD481091EBB1u, 0xBC62AD0E6ADD73F8u,
    0x419A22A9FA999364u, 0x4F9E84AB1C62C958u, 0x116BA91B920431ABu, 0x609C509F25AFC506u,
    0xA255ACA9B6DA0F86u, 0x6A76804DB417C238u, 0xF966DAA053560DB4u, 0x6CB5279BB1267B3Bu,
    0x1369AAF85F8B805Au,
};

static const struct {
    uint32_t n;
    uint64_t hash;
} xxh3_long[] = {
    { 257, 0xEA4DB341B16685CDu },
    { 319, 0x79A9279973E90E71u },
    { 320, 0x8334EAEC415CE0FDu },
    { 321, 0x6EE51788DDE3BD6Au },
    { 383, 0xB6F3E419B11C6C47u },
    { 384, 0xC6683E16B3C6A4A6u },
    { 385, 0xD192BC7D9155D49Bu },
    { 511, 0xAFAB36CBDEB14BA1u },
    { 512, 0x9929C8D17090FF28u },
    { 513, 0xE8071E27E7F61433u },
    { 575, 0xD9A3ED0934716797u },
    { 576, 0x01E162BD0C5BC93Cu },
    { 577, 0x9D72DA23E9B75C51u },
    { 1023, 0x1A454D55E8F685BCu },
    { 1024, 0x8E02A6E5332B80D8u },
    { 1025, 0x5A0901FB36F574DBu },
    { 1087, 0x897CF6CF43485428u },
    { 1088, 0xEFFD5808C1A5022Cu },
    { 1089, 0x89E48723A63BFF44u },
    { 1151, 0xAF48E2E736620B5Eu },
    { 1152, 0x74FF25E868D5E0E6u },
    { 1153, 0xB9EA56B130445E65u },
    { 1535, 0xEB38899F182E75A9u },
    { 1536, 0x1FEE41DB902DAE91u },
    { 1537, 0xA2B6A03AD77C5A3Eu },
    { 2047, 0x631A6D19396681DCu },
    { 2048, 0x16EAA72393C93DC8u },
    { 2049, 0xEE63CD007C04B1E9u },
    { 2111, 0x87076B0453197D08u },
    { 2112, 0x2B822DE4C8483D0Du },
    { 2113, 0xF5DDAE1A1E1BC4FEu },
    { 4096, 0x9A21CD91C18D7742u },
    { 65536, 0xAAF317EE820C44D3u },
    { 1000003, 0xCEB9968E712EBD86u },
};
#define N_LONG (sizeof xxh3_long / sizeof xxh3_long[0])

static void test_xxh3_short(void)
{
    for (size_t n = 0; n <= 256; n++) {
        uint8_t *p = make_pattern(0, n);

        CHECK_EQ(ptwm_xxh3_64(p, n), xxh3_short[n]);
        free(p);
    }
    CHECK_EQ(ptwm_xxh3_64(NULL, 0), xxh3_short[0]);
}

static void test_xxh3_long(void)
{
    for (size_t i = 0; i < N_LONG; i++) {
        uint8_t *p = make_pattern(0, xxh3_long[i].n);

        CHECK_EQ(ptwm_xxh3_64(p, xxh3_long[i].n), xxh3_long[i].hash);
        free(p);
    }
}

static void test_xxh3_alignments(void)
{
    uint8_t *aligned = make_pattern(0, 2000), *shifted = malloc(2016);
    uint64_t hash = ptwm_xxh3_64(aligned, 2000);

    for (size_t shift = 0; shift < 16; shift++) {
        memcpy(shifted + shift, aligned, 2000);
        CHECK_EQ(ptwm_xxh3_64(shifted + shift, 2000), hash);
    }
    free(aligned);
    free(shifted);
}

/* Streams p's n bytes in pieces of a random length below max_piece; at each piece's end the digest must be right. */
static void stream_in_pieces(const uint8_t *p, size_t n, size_t max_piece, uint64_t *seed)
{
    struct ptwm_xxh3 state;
    size_t done = 0;

    ptwm_xxh3_init(&state);
    CHECK_EQ(ptwm_xxh3_digest(&state), ptwm_xxh3_64(NULL, 0));
    while (done < n) {
        size_t piece = (size_t)(check_random(seed) % max_piece);
        uint8_t *copy;

        if (piece > n - done)
            piece = n - done;
        copy = malloc(piece > 0 ? piece : 1); /* of exactly its size, and gone before the digest */
        memcpy(copy, p + done, piece);
        ptwm_xxh3_update(&state, copy, piece);
        free(copy);
        done += piece;
        CHECK_EQ(ptwm_xxh3_digest(&state), ptwm_xxh3_64(p, done));
    }
}

/* What has been visited, one piece behind the other. */
struct visited {
    const uint8_t *next;
    size_t nbytes, most;
};

static void visit(void *context, const uint8_t *piece, size_t nbytes)
{
    struct visited *v = context;
    CHECK(piece == v->next);
    v->next += nbytes;
    v->nbytes += nbytes;
    v->most = nbytes > v->most ? nbytes : v->most;
}

static void test_xxh3_visits_all(void)
{
    for (size_t n = 0; n < 70000; n += n < 300 ? 1 : n % 1024 == 0 ? 1 : n % 1024 == 1 ? 1022 : 1) {
        uint8_t *p = make_pattern(n, n);
        struct visited v = { p, 0, 0 };
        CHECK_EQ(ptwm_xxh3_64_visit(p, n, visit, &v), ptwm_xxh3_64(p, n));
        CHECK_EQ(v.nbytes, n);
        CHECK(v.most <= 4096);
        free(p);
    }
}

static void test_xxh3_stream(void)
{
    uint64_t seed = 1;
    uint8_t *p = make_pattern(0, 10000);

    for (size_t n = 1; n <= 1200; n++)
        stream_in_pieces(p, n, 400, &seed);
    stream_in_pieces(p, 4000, 2, &seed); /* byte by byte */
    for (int i = 0; i < 200; i++)
        stream_in_pieces(p, 1 + (size_t)(check_random(&seed) % 10000), 2 + (size_t)(check_random(&seed) % 3000), &seed);
    free(p);
}

/* Every way of cutting an input in two around the lengths that the buffer and the stripes make special. */
static void test_xxh3_stream_splits(void)
{
    uint8_t *p = make_pattern(3, 1400);

    for (size_t n = 200; n <= 1400; n += 47) {
        uint64_t hash = ptwm_xxh3_64(p, n);

        for (size_t split = 0; split <= n; split++) {
            struct ptwm_xxh3 state;

            ptwm_xxh3_init(&state);
            ptwm_xxh3_update(&state, p, split);
            ptwm_xxh3_update(&state, p + split, n - split);
            CHECK_EQ(ptwm_xxh3_digest(&state), hash);
            CHECK_EQ(ptwm_xxh3_digest(&state), hash); /* it does not change the state */
        }
    }
    free(p);
}

int main(void)
{
    RUN(test_crc_published);
    RUN(test_crc_levels);
    RUN(test_crc_lengths_and_alignments);
    RUN(test_crc_in_pieces);
    RUN(test_xxh3_short);
    RUN(test_xxh3_long);
    RUN(test_xxh3_alignments);
    RUN(test_xxh3_visits_all);
    RUN(test_xxh3_stream);
    RUN(test_xxh3_stream_splits);
    CHECK_EXIT();
}
