/*
 * Zstandard frames: the built-in zstd or the caller's does the work; here frames are looked at before anybody allocates
 * or decodes what they claim.
 */
#include "bits.h"
#include "codec.h"
#include "status.h"

#ifdef PTWM_HAVE_ZSTD
#include <zstd.h>
#endif

#define FRAME_MAGIC 0xFD2FB528u
#define BLOCK_MAX_NBYTES (128u * 1024)

/* ------------------------------------------------------------------------------------------------ providers */

#ifdef PTWM_HAVE_ZSTD

static int builtin_compress(void *context, void *dst, size_t dst_capacity, size_t *dst_nbytes, const void *src,
                            size_t src_nbytes, int level)
{
    size_t nbytes = ZSTD_compress(dst, dst_capacity, src, src_nbytes, level);

    (void)context;
    if (ZSTD_isError(nbytes))
        return 1;
    *dst_nbytes = nbytes;
    return 0;
}

static int builtin_decompress(void *context, void *dst, size_t dst_nbytes, const void *src, size_t src_nbytes)
{
    (void)context;
    return ZSTD_decompress(dst, dst_nbytes, src, src_nbytes) != dst_nbytes; /* errors are sizes that none can have */
}

static const struct ptwm_zstd default_zstd = { builtin_compress, builtin_decompress, NULL };

#else

static int unavailable_compress(void *context, void *dst, size_t dst_capacity, size_t *dst_nbytes, const void *src,
                                size_t src_nbytes, int level)
{
    (void)context;
    (void)dst;
    (void)dst_capacity;
    (void)dst_nbytes;
    (void)src;
    (void)src_nbytes;
    (void)level;
    return 1;
}

static int unavailable_decompress(void *context, void *dst, size_t dst_nbytes, const void *src, size_t src_nbytes)
{
    (void)context;
    (void)dst;
    (void)dst_nbytes;
    (void)src;
    (void)src_nbytes;
    return 1;
}

static const struct ptwm_zstd default_zstd = { unavailable_compress, unavailable_decompress, NULL };

#endif

int ptwm_has_builtin_zstd(void)
{
#ifdef PTWM_HAVE_ZSTD
    return 1;
#else
    return 0;
#endif
}

const struct ptwm_zstd *ptwm_zstd_select(const struct ptwm_zstd *given)
{
    return given != NULL ? given : &default_zstd;
}

int ptwm_zstd_is_available(const struct ptwm_zstd *zstd)
{
    return zstd != &default_zstd || ptwm_has_builtin_zstd();
}

/* --------------------------------------------------------------------------------------------------- frames */

/* Reads a frame's header; false if it is not what FORMAT.md asks for. */
static bool read_frame_header(struct ptwm_cursor *cursor, uint64_t content_nbytes, bool *has_checksum)
{
    uint32_t magic = ptwm_cursor_u32(cursor);
    uint8_t descriptor = ptwm_cursor_u8(cursor);
    bool is_single_segment = descriptor >> 5 & 1;
    uint64_t declared;

    /*
     * Bit 3 is reserved; bits 1 and 0 are the size of a dictionary's id. Bit 4 has no meaning and is not to be checked.
     */
    if (cursor->failed || magic != FRAME_MAGIC || (descriptor & 0x0B) != 0)
        return false;
    *has_checksum = descriptor >> 2 & 1;
    if (!is_single_segment)
        (void)ptwm_cursor_u8(cursor); /* the window's size */
    switch (descriptor >> 6) {
    case 0:
        if (!is_single_segment)
            return false; /* no content size */
        declared = ptwm_cursor_u8(cursor);
        break;
    case 1:
        declared = (uint64_t)ptwm_cursor_u16(cursor) + 256;
        break;
    case 2:
        declared = ptwm_cursor_u32(cursor);
        break;
    default:
        declared = ptwm_cursor_u64(cursor);
        break;
    }
    return !cursor->failed && declared == content_nbytes;
}

/*
 * Walks over a frame's blocks. A block's size is its stored size, but that of a run (type 1), which is stored as one
 * byte.
 */
static bool skip_blocks(struct ptwm_cursor *cursor)
{
    bool is_last = false;

    while (!is_last) {
        const uint8_t *head = ptwm_cursor_take(cursor, 3);
        uint32_t header, type, nbytes;

        if (head == NULL)
            return false;
        header = head[0] | (uint32_t)head[1] << 8 | (uint32_t)head[2] << 16;
        is_last = header & 1;
        type = header >> 1 & 3;
        nbytes = header >> 3;
        if (type == 3 || nbytes > BLOCK_MAX_NBYTES || ptwm_cursor_take(cursor, type == 1 ? 1 : nbytes) == NULL)
            return false;
    }
    return true;
}

/* Whether src is one frame as FORMAT.md asks for, from its first byte to its last. */
static bool is_frame(const uint8_t *src, size_t src_nbytes, uint64_t content_nbytes)
{
    struct ptwm_cursor cursor = ptwm_cursor_make(src, src_nbytes);
    bool has_checksum;

    return read_frame_header(&cursor, content_nbytes, &has_checksum) && skip_blocks(&cursor) &&
           ptwm_cursor_left(&cursor) == (has_checksum ? 4u : 0u);
}

/* ---------------------------------------------------------------------------------------------------- codec */

static size_t zstd_bound(size_t src_nbytes)
{
    size_t extra = src_nbytes / 128 + 512; /* what ptwm.h promises to providers */

    return src_nbytes < SIZE_MAX - extra ? src_nbytes + extra : SIZE_MAX;
}

/* zstd's level for the library's level of effort. */
static int zstd_level(int level)
{
    return level == 0 ? 3 : level < 1 ? 1 : level > 19 ? 19 : level;
}

static enum ptwm_status zstd_encode(const struct ptwm_codec_context *context, uint8_t *dst, size_t *dst_nbytes,
                                    const uint8_t *src, size_t src_nbytes, struct ptwm_error *error)
{
    const struct ptwm_zstd *zstd = context->zstd;
    size_t capacity = zstd_bound(src_nbytes), nbytes = 0;

    if (!ptwm_zstd_is_available(zstd))
        return ptwm_fail(error, PTWM_ERR_ZSTD_UNAVAILABLE, "zstd is neither built in nor provided");
    if (zstd->compress(zstd->context, dst, capacity, &nbytes, src, src_nbytes, zstd_level(context->level)) != 0)
        return ptwm_fail(error, PTWM_ERR_ZSTD, "zstd: compression failed");
    if (nbytes > capacity || !is_frame(dst, nbytes, src_nbytes))
        return ptwm_fail(error, PTWM_ERR_ZSTD, "zstd: the provider's frame is not one frame with a content size");
    *dst_nbytes = nbytes;
    return PTWM_OK;
}

static enum ptwm_status zstd_decode(const struct ptwm_codec_context *context, uint8_t *dst, size_t dst_nbytes,
                                    const uint8_t *src, size_t src_nbytes, struct ptwm_error *error)
{
    const struct ptwm_zstd *zstd = context->zstd;

    if (!is_frame(src, src_nbytes, dst_nbytes))
        return ptwm_fail(error, PTWM_ERR_PLANE, "zstd: not one frame with the plane's length as its content size");
    if (!ptwm_zstd_is_available(zstd))
        return ptwm_fail(error, PTWM_ERR_ZSTD_UNAVAILABLE, "zstd is neither built in nor provided");
    if (zstd->decompress(zstd->context, dst, dst_nbytes, src, src_nbytes) != 0)
        return ptwm_fail(error, PTWM_ERR_ZSTD, "zstd: decompression failed");
    return PTWM_OK;
}

const struct ptwm_byte_codec ptwm_codec_zstd = {
    PTWM_CODEC_ZSTD, zstd_bound, zstd_encode, zstd_decode
};
