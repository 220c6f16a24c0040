/*
 * Codecs that code nothing: identity, and constant, which repeats one element.
 */
#include <string.h>

#include "codec.h"
#include "status.h"

static size_t identity_bound(size_t src_nbytes)
{
    return src_nbytes;
}

static enum ptwm_status identity_encode(const struct ptwm_codec_context *context, uint8_t *dst, size_t *dst_nbytes,
                                        const uint8_t *src, size_t src_nbytes, struct ptwm_error *error)
{
    (void)context;
    (void)error;
    memcpy(dst, src, src_nbytes);
    *dst_nbytes = src_nbytes;
    return PTWM_OK;
}

static enum ptwm_status identity_decode(const struct ptwm_codec_context *context, uint8_t *dst, size_t dst_nbytes,
                                        const uint8_t *src, size_t src_nbytes, struct ptwm_error *error)
{
    (void)context;
    if (src_nbytes != dst_nbytes)
        return ptwm_fail(error, PTWM_ERR_PLANE, "identity: the stored length is not the plane's");
    memcpy(dst, src, src_nbytes);
    return PTWM_OK;
}

const struct ptwm_byte_codec ptwm_codec_identity = {
    PTWM_CODEC_IDENTITY, identity_bound, identity_encode, identity_decode
};

static size_t constant_bound(size_t src_nbytes)
{
    (void)src_nbytes;
    return 2;
}

/*
 * src is the pattern, not the plane: whether an element of the plane has one byte or two (and whether they are all
 * equal) is known to the caller, who has found out that the plane is constant.
 */
static enum ptwm_status constant_encode(const struct ptwm_codec_context *context, uint8_t *dst, size_t *dst_nbytes,
                                        const uint8_t *src, size_t src_nbytes, struct ptwm_error *error)
{
    (void)context;
    if (src_nbytes != 1 && src_nbytes != 2)
        return ptwm_fail(error, PTWM_ERR_ARGUMENT, "constant: a pattern has 1 or 2 bytes");
    memcpy(dst, src, src_nbytes);
    *dst_nbytes = src_nbytes;
    return PTWM_OK;
}

/*
 * The caller checks that the pattern's length is that of the plane's elements; here any that divides the plane will do.
 */
static enum ptwm_status constant_decode(const struct ptwm_codec_context *context, uint8_t *dst, size_t dst_nbytes,
                                        const uint8_t *src, size_t src_nbytes, struct ptwm_error *error)
{
    (void)context;
    if ((src_nbytes != 1 && src_nbytes != 2) || dst_nbytes % src_nbytes != 0)
        return ptwm_fail(error, PTWM_ERR_PLANE, "constant: the stored length is not an element's");
    if (src_nbytes == 1 || src[0] == src[1]) {
        memset(dst, src[0], dst_nbytes);
    } else {
        for (size_t i = 0; i < dst_nbytes; i += 2) {
            dst[i] = src[0];
            dst[i + 1] = src[1];
        }
    }
    return PTWM_OK;
}

const struct ptwm_byte_codec ptwm_codec_constant = {
    PTWM_CODEC_CONSTANT, constant_bound, constant_encode, constant_decode
};
