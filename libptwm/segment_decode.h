/*
 * Decoding a chunk of a segment.
 */
#ifndef PTWM_SEGMENT_DECODE_H
#define PTWM_SEGMENT_DECODE_H

#include "codec.h"
#include "segment.h"

/* Memory that decoding needs; one for each thread, reused from chunk to chunk. */
struct ptwm_decode_scratch {
    struct ptwm_bytes stored;  /* of a chunk that had to be read */
    struct ptwm_bytes planes;  /* decoded planes */
    struct ptwm_bytes symbols;
    struct ptwm_bytes raw;     /* of a chunk that is not wanted as a whole */
    bool is_streamed;          /* chunks go to memory that is not read soon (see struct ptwm_fused_chunk) */
};

void ptwm_decode_scratch_init(struct ptwm_decode_scratch *scratch, const struct ptwm_allocator *allocator);
void ptwm_decode_scratch_release(struct ptwm_decode_scratch *scratch);

/*
 * Reads chunk number chunk and decodes it into raw, which has room for ptwm_tail_chunk_nbytes bytes. With check_crc the
 * planes' CRCs are checked if the segment has them. error gets the file offset of the plane that is at fault.
 */
enum ptwm_status ptwm_chunk_decode(const struct ptwm_file *file, const struct ptwm_tail *tail, uint64_t chunk,
                                   bool check_crc, const struct ptwm_codec_context *context, uint8_t *raw,
                                   struct ptwm_decode_scratch *scratch, struct ptwm_error *error);

/*
 * Reads chunk number chunk and decodes its planes into planes, one behind the other, without merging them; planes has room
 * for the sum of what ptwm_plane_nbytes says. CRCs are checked.
 */
enum ptwm_status ptwm_chunk_decode_planes(const struct ptwm_file *file, const struct ptwm_tail *tail, uint64_t chunk,
                                          const struct ptwm_codec_context *context, uint8_t *planes,
                                          struct ptwm_decode_scratch *scratch, struct ptwm_error *error);

#endif
