/*
 * One plane of one chunk, to and from its stored form, whatever its kind and codec.
 */
#ifndef PTWM_PLANE_H
#define PTWM_PLANE_H

#include "codec.h"
#include "segment.h"

/*
 * What the chunk's rest plane lacks if it is stored as PTWM_CODEC_CARRIED: its first nbytes bytes, which decoding the
 * symbol plane puts at bytes. nbytes is 0 for other codecs.
 */
struct ptwm_carried {
    uint8_t *bytes;
    size_t nbytes;
};

/*
 * Decodes plane number plane of chunk number chunk from exactly stored_nbytes untrusted bytes into raw, whose length is
 * what ptwm_plane_nbytes says. A carried rest plane sets *carried, the symbol plane behind it fills it in. symbols is
 * scratch.
 */
enum ptwm_status ptwm_plane_decode(const struct ptwm_tail *tail, uint64_t chunk, uint32_t plane,
                                   const struct ptwm_codec_context *context, const uint8_t *stored,
                                   size_t stored_nbytes, uint8_t *raw, struct ptwm_carried *carried,
                                   struct ptwm_bytes *symbols, struct ptwm_error *error);

/* What a plane's encoder may choose from. */
struct ptwm_plane_plan {
    enum ptwm_method method;
    enum ptwm_zstd_use zstd; /* PTWM_METHOD_MICROSCALE */
    uint32_t set;           /* of the model, for symbol planes; PTWM_NO_SET if the model has none for them */
    const uint8_t *classes; /* of the chunk's units */
    uint64_t first_element; /* of the chunk in the segment */
    const uint16_t *symbols; /* the plane again, as label rANS wants it */
    const uint8_t *carried;  /* what label rANS is to carry, or NULL */
};
#define PTWM_NO_SET UINT32_MAX

/*
 * Encodes a raw plane of raw_nbytes >= 1 bytes, appends it to stored and fills *record (its CRC included, whether or
 * not the segment is checked). The same on every machine.
 */
enum ptwm_status ptwm_plane_encode(const struct ptwm_tail *tail, uint32_t plane, const struct ptwm_plane_plan *plan,
                                   const struct ptwm_codec_context *context, const uint8_t *raw, size_t raw_nbytes,
                                   struct ptwm_bytes *stored, struct ptwm_plane_record *record,
                                   struct ptwm_error *error);

#endif
