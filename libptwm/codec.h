/*
 * Codecs of bytes: identity, constant, Huffman, byte rANS, zstd. One file each; this is what they have in common.
 * (Label rANS and trim work on more than bytes: see label.h and trim.h.)
 */
#ifndef PTWM_CODEC_H
#define PTWM_CODEC_H

#include "memory.h"
#include "ptwm.h"

/* What a codec may need beside its input. Shared by threads: codecs do not change it. */
struct ptwm_codec_context {
    const struct ptwm_allocator *allocator; /* for scratch */
    const struct ptwm_zstd *zstd;           /* never NULL; see ptwm_zstd_select */
    int level;                              /* of effort, for encoders; 0 is the default */
};

struct ptwm_byte_codec {
    enum ptwm_codec id;
    /* A capacity that encode's output never exceeds, for any src_nbytes bytes. */
    size_t (*bound)(size_t src_nbytes);
    /*
     * Encodes src_nbytes >= 1 bytes into dst, whose capacity is at least bound(src_nbytes), and stores the length in
     * *dst_nbytes. The output depends on the input and the context's level alone.
     */
    enum ptwm_status (*encode)(const struct ptwm_codec_context *context, uint8_t *dst, size_t *dst_nbytes,
                               const uint8_t *src, size_t src_nbytes, struct ptwm_error *error);
    /*
     * Decodes exactly dst_nbytes >= 1 bytes from exactly src_nbytes bytes. For any src at all it stays inside both
     * buffers; it fails if src is malformed, is too short or has bytes left over. dst is undefined on failure.
     */
    enum ptwm_status (*decode)(const struct ptwm_codec_context *context, uint8_t *dst, size_t dst_nbytes,
                               const uint8_t *src, size_t src_nbytes, struct ptwm_error *error);
};

extern const struct ptwm_byte_codec ptwm_codec_identity; /* codec_stored.c */
extern const struct ptwm_byte_codec ptwm_codec_constant; /* codec_stored.c; the pattern is src, its length 1 or 2 */
extern const struct ptwm_byte_codec ptwm_codec_huffman;  /* codec_huffman.c */
extern const struct ptwm_byte_codec ptwm_codec_rans;     /* codec_rans.c */
extern const struct ptwm_byte_codec ptwm_codec_zstd;     /* codec_zstd.c */

/* The codec of bytes with that id, or NULL: unknown, or not a codec of bytes. codec.c */
const struct ptwm_byte_codec *ptwm_byte_codec_find(uint32_t id);

/*
 * The lengths that Huffman and byte rANS would give, from a histogram, tables included: exact or slightly more, but
 * for data that Huffman cannot shorten: n at least.
 */
uint64_t ptwm_huffman_estimate(const uint32_t histogram[256], uint64_t n);
uint64_t ptwm_rans_estimate(const uint32_t histogram[256], uint64_t n);

/* Where an encoder that chooses codecs gives zstd a try. */
enum ptwm_zstd_use {
    PTWM_ZSTD_NOWHERE,
    PTWM_ZSTD_ON_BYTES, /* in place of other codecs of bytes, but not of label rANS, nor where bytes are stored as they are */
    PTWM_ZSTD_EVERYWHERE
};

/* The zstd to use: given if not NULL, else the built-in one, else one whose calls fail. codec_zstd.c */
const struct ptwm_zstd *ptwm_zstd_select(const struct ptwm_zstd *given);
/* Whether that zstd can be used at all. */
int ptwm_zstd_is_available(const struct ptwm_zstd *zstd);

#endif
