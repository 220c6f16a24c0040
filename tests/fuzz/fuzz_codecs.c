/*
 * The decoders of bytes: a byte that picks the codec, one of parameters, two of the plane's length, then the stored plane.
 * Portable and fast kernels must agree. Then the same bytes as a plane: they come back.
 */
#include "codec.h"
#include "fuzz.h"
#include "rest.h"
#include "trim.h"

static const char *const cpus[2] = { "c99", "best" };

static enum ptwm_status decode(uint8_t codec, uint8_t *dst, size_t n, const uint8_t *src, size_t src_nbytes)
{
    const struct ptwm_codec_context context = { &ptwm_default_allocator, ptwm_zstd_select(NULL), 0 };

    if (codec == PTWM_CODEC_TRIM)
        return ptwm_trim_decode(dst, n / 2, src, src_nbytes, NULL);
    return ptwm_byte_codec_find(codec)->decode(&context, dst, n, src, src_nbytes, NULL);
}

static void decode_stored(uint8_t codec, size_t n, const uint8_t *src, size_t src_nbytes)
{
    enum ptwm_status status[2];
    uint8_t *dst[2];

    if (codec == PTWM_CODEC_TRIM)
        n += n % 2;
    for (unsigned i = 0; i < 2; i++) {
        dst[i] = fuzz_guarded(1 + i, n);
        memset(dst[i], (int)i, n);
        FUZZ_CHECK(ptwm_cpu_select(cpus[i]) == PTWM_OK);
        status[i] = decode(codec, dst[i], n, src, src_nbytes);
    }
    FUZZ_CHECK(status[0] == status[1]);
    FUZZ_CHECK(status[0] != PTWM_OK || memcmp(dst[0], dst[1], n) == 0);
}

static void round_trip(const struct ptwm_byte_codec *codec, const uint8_t *src, size_t n)
{
    const struct ptwm_codec_context context = { &ptwm_default_allocator, ptwm_zstd_select(NULL), 1 };
    uint8_t *stored = fuzz_guarded(3, codec->bound(n)), *dst = fuzz_guarded(1, n);
    size_t nbytes;

    if (codec->id == PTWM_CODEC_ZSTD && !ptwm_has_builtin_zstd())
        return;
    FUZZ_CHECK(codec->encode(&context, stored, &nbytes, src, n, NULL) == PTWM_OK);
    FUZZ_CHECK(nbytes <= codec->bound(n));
    FUZZ_CHECK(codec->decode(&context, dst, n, fuzz_guarded_copy(4, stored, nbytes), nbytes, NULL) == PTWM_OK);
    FUZZ_CHECK(memcmp(dst, src, n) == 0);
}

/* A rest plane that unpacks packs to the same bytes. */
static void unpack_rests(unsigned r, size_t n, const uint8_t *src, size_t src_nbytes)
{
    const size_t nbytes = (size_t)ptwm_rest_nbytes(n, r);
    uint16_t *rests = (uint16_t *)(void *)fuzz_guarded(1, 2 * n);
    uint8_t *packed = fuzz_guarded(2, nbytes), *again = fuzz_guarded(3, nbytes);

    for (size_t i = 0; i < nbytes; i++)
        packed[i] = src_nbytes > 0 ? src[i % src_nbytes] : 0;
    if (!ptwm_rest_unpack(rests, packed, n, r))
        return;
    ptwm_rest_pack(again, rests, n, r);
    FUZZ_CHECK(memcmp(packed, again, nbytes) == 0);
}

static void trim_round_trip(uint32_t unit, const uint8_t *src, size_t n)
{
    const size_t nbytes = (size_t)ptwm_trim_nbytes(src, n, unit);
    uint8_t *stored = fuzz_guarded(3, nbytes), *dst = fuzz_guarded(1, 2 * n);

    ptwm_trim_encode(stored, src, n, unit);
    FUZZ_CHECK(ptwm_trim_decode(dst, n, stored, nbytes, NULL) == PTWM_OK);
    FUZZ_CHECK(memcmp(dst, src, 2 * n) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t nbytes)
{
    struct fuzz_input input = { data, nbytes };
    const uint8_t codec = (uint8_t)fuzz_take(&input, 1) % 8, parameter = (uint8_t)fuzz_take(&input, 1);
    const size_t n = (size_t)fuzz_take(&input, 2) + 1;
    const uint8_t *src = fuzz_guarded_copy(0, input.next, input.left);
    const struct ptwm_byte_codec *bytes = ptwm_byte_codec_find(codec);

    if (bytes != NULL || codec == PTWM_CODEC_TRIM)
        decode_stored(codec, n, src, input.left);
    if (bytes != NULL && codec != PTWM_CODEC_CONSTANT && input.left > 0)
        round_trip(bytes, src, input.left);
    if (codec == PTWM_CODEC_TRIM && input.left > 1)
        trim_round_trip(128u << parameter % 5, src, input.left / 2);
    if (codec == 7)
        unpack_rests(parameter % 16, n, src, input.left);
    return 0;
}
