#include "seal.h"

#include "file.h"
#include "label_decode.h"

void seal_label_head(const struct ptwm_label_model *model, size_t n, uint8_t *stored, size_t nbytes)
{
    struct ptwm_cursor cursor = ptwm_cursor_make(stored, nbytes);
    struct ptwm_label_head head;

    /* A wrong CRC leaves the cursor at the states, behind which it is. */
    if (ptwm_label_read_head(&head, model, n, &cursor, NULL) == PTWM_ERR_CHECKSUM) {
        const size_t at = (size_t)(cursor.next - stored) + 4 * head.n_lanes;
        ptwm_store32(stored + at, ptwm_crc32c(0, stored, at));
    }
}

static void seal_tail(uint8_t *tail, size_t nbytes)
{
    if (nbytes >= 4)
        ptwm_store32(tail + nbytes - 4, ptwm_crc32c(0, tail, nbytes - 4));
}

/* The label rANS heads and the planes' CRCs of a segment whose tail can be read. The chunk table is the tail's end. */
static void seal_planes(uint8_t *file, const struct ptwm_tail *tail)
{
    const struct ptwm_segment_record *s = &tail->segment;
    const bool is_checked = s->flags & PTWM_SEGMENT_CHECKED;
    const uint64_t n_records = tail->n_chunks * tail->chain.n_planes;
    uint8_t *record = file + s->offset + s->stored_nbytes - 4;

    for (uint64_t i = 0; i < n_records; i++)
        record -= 1 + ptwm_varint_nbytes(tail->planes[i].stored_nbytes) + (is_checked ? 4 : 0);
    for (uint64_t chunk = 0; chunk < tail->n_chunks; chunk++) {
        uint8_t *plane = file + s->offset + tail->chunk_offset[chunk];
        const struct ptwm_plane_record *records = ptwm_tail_chunk_planes(tail, chunk);

        for (uint32_t p = 0; p < tail->chain.n_planes; p++) {
            const size_t nbytes = records[p].stored_nbytes;

            if (records[p].codec == PTWM_CODEC_LABEL_RANS)
                seal_label_head(&tail->model,
                                (size_t)ptwm_chain_n_elements(&tail->chain, ptwm_tail_chunk_nbytes(tail, chunk)), plane,
                                nbytes);
            record += 1 + ptwm_varint_nbytes(nbytes) + (is_checked ? 4 : 0);
            if (is_checked)
                ptwm_store32(record - 4, ptwm_crc32c(0, plane, nbytes));
            plane += nbytes;
        }
    }
}

static void seal_segment(uint8_t *bytes, const struct ptwm_file *file, const struct ptwm_segment_record *s)
{
    uint8_t *tail_bytes = bytes + s->offset + s->stored_nbytes - s->tail_nbytes;
    struct ptwm_tail tail;

    seal_tail(tail_bytes, (size_t)s->tail_nbytes);
    if (ptwm_tail_read(file, s, &ptwm_default_allocator, &tail, NULL) != PTWM_OK)
        return;
    seal_planes(bytes, &tail);
    ptwm_tail_release(&tail);
    seal_tail(tail_bytes, (size_t)s->tail_nbytes);
}

void seal_file(uint8_t *bytes, size_t nbytes)
{
    struct ptwm_footer footer;
    struct ptwm_manifest manifest;
    struct ptwm_file *file;

    if (nbytes < PTWM_HEADER_NBYTES + PTWM_FOOTER_NBYTES)
        return;
    ptwm_header_write(bytes);
    footer.manifest_offset = ptwm_load64(bytes + nbytes - PTWM_FOOTER_NBYTES);
    if (footer.manifest_offset < PTWM_HEADER_NBYTES || footer.manifest_offset > nbytes - PTWM_FOOTER_NBYTES)
        footer.manifest_offset = PTWM_HEADER_NBYTES;
    footer.manifest_nbytes = nbytes - PTWM_FOOTER_NBYTES - footer.manifest_offset;
    footer.file_nbytes = nbytes;
    footer.manifest_crc = ptwm_crc32c(0, bytes + footer.manifest_offset, (size_t)footer.manifest_nbytes);
    ptwm_footer_write(bytes + nbytes - PTWM_FOOTER_NBYTES, &footer);
    if (ptwm_manifest_read(bytes + footer.manifest_offset, (size_t)footer.manifest_nbytes, footer.manifest_offset,
                           &ptwm_default_allocator, &manifest, NULL) != PTWM_OK)
        return;
    if (ptwm_file_open_memory(bytes, nbytes, &ptwm_default_allocator, &file, NULL) == PTWM_OK) {
        for (uint64_t s = 0; s < manifest.n_segments; s++)
            seal_segment(bytes, file, &manifest.segments[s]);
        ptwm_file_close(file);
    }
    ptwm_manifest_release(&manifest);
}
