#include "segment_decode.h"

#include <string.h>

#include "label_fused.h"
#include "plane.h"
#include "status.h"

void ptwm_decode_scratch_init(struct ptwm_decode_scratch *scratch, const struct ptwm_allocator *allocator)
{
    const struct ptwm_bytes empty = { allocator, NULL, 0, 0 };
    scratch->stored = scratch->planes = scratch->symbols = scratch->raw = empty;
    scratch->is_streamed = false;
}

void ptwm_decode_scratch_release(struct ptwm_decode_scratch *scratch)
{
    ptwm_bytes_release(&scratch->stored);
    ptwm_bytes_release(&scratch->planes);
    ptwm_bytes_release(&scratch->symbols);
    ptwm_bytes_release(&scratch->raw);
}

/* Whether the chain's only plane is the chunk itself, before deltas are undone. */
static bool is_one_plane_of_bytes(const struct ptwm_parsed_chain *chain)
{
    return chain->n_planes == 1 && chain->planes[0].kind == PTWM_PLANE_BYTES;
}

/* A chunk on its way from the file to raw bytes. */
struct chunk_job {
    const struct ptwm_tail *tail;
    uint64_t chunk;
    bool check_crc;
    const struct ptwm_codec_context *context;
    const uint8_t *stored;
    uint8_t *raw;
    size_t raw_nbytes;
    struct ptwm_decode_scratch *scratch;
    struct ptwm_carried carried; /* of the plain way */
};

static bool checks_crc(const struct chunk_job *job)
{
    return job->check_crc && job->tail->segment.flags & PTWM_SEGMENT_CHECKED;
}

/*
 * Decodes one plane, stored at job->stored + position. A plane that is stored as it is stays where it is; others go to
 * decoded. *plane tells where it is.
 */
static enum ptwm_status decode_plane(struct chunk_job *job, uint32_t p, uint64_t position, uint8_t *decoded,
                                     const uint8_t **plane, struct ptwm_error *error)
{
    const struct ptwm_tail *tail = job->tail;
    const struct ptwm_plane_record record = ptwm_tail_chunk_planes(tail, job->chunk)[p];
    const uint8_t *stored = job->stored + position;
    enum ptwm_status status = PTWM_OK;

    if (checks_crc(job) && ptwm_crc32c(0, stored, record.stored_nbytes) != record.crc) {
        status = ptwm_fail(error, PTWM_ERR_CHECKSUM, "plane %lu of chunk %llu", (unsigned long)p,
                           (unsigned long long)job->chunk);
    } else if (record.codec == PTWM_CODEC_IDENTITY && decoded != job->raw) {
        if (record.stored_nbytes != ptwm_plane_nbytes(&tail->chain, p, job->raw_nbytes))
            status = ptwm_fail(error, PTWM_ERR_PLANE, "a plane stored as it is has another length");
        *plane = stored;
    } else {
        status = ptwm_plane_decode(tail, job->chunk, p, job->context, stored, record.stored_nbytes, decoded,
                                   &job->carried, &job->scratch->symbols, error);
        *plane = decoded;
    }
    if (status != PTWM_OK)
        ptwm_fail_at(error, PTWM_NONE, tail->segment.offset + tail->chunk_offset[job->chunk] + position);
    return status;
}

/*
 * A low or rest plane for fused decoding: one that is stored as it is stays where it is, and its CRC is for the kernel to
 * check, and if label rANS carries its beginning, for the kernel to add that; others are decoded now. A constant low plane
 * is one block that repeats.
 */
static enum ptwm_status prepare_plane(struct chunk_job *job, uint32_t p, uint64_t position, uint8_t *decoded,
                                      struct ptwm_fused_plane *plane, bool *is_constant, bool *is_carried,
                                      struct ptwm_error *error)
{
    const struct ptwm_tail *tail = job->tail;
    const struct ptwm_plane_record *record = &ptwm_tail_chunk_planes(tail, job->chunk)[p];
    const struct ptwm_plane_spec *spec = &tail->chain.planes[p];
    const uint8_t *stored = job->stored + position;

    plane->nbytes = (size_t)ptwm_plane_nbytes(&tail->chain, p, job->raw_nbytes);
    if (record->codec == PTWM_CODEC_IDENTITY && record->stored_nbytes == plane->nbytes) {
        plane->bytes = stored;
        plane->crc = checks_crc(job) ? &record->crc : NULL;
        return PTWM_OK;
    }
    if (record->codec == PTWM_CODEC_CARRIED && record->stored_nbytes + PTWM_FUSED_CARRIED == plane->nbytes) {
        plane->bytes = stored;
        plane->nbytes = record->stored_nbytes;
        plane->crc = checks_crc(job) ? &record->crc : NULL;
        *is_carried = true;
        return PTWM_OK;
    }
    if (record->codec == PTWM_CODEC_CARRIED) /* by another number of lanes: nothing that the kernels know to put together */
        return PTWM_ERR_PLANE;
    plane->crc = NULL;
    plane->bytes = decoded;
    if (record->codec == PTWM_CODEC_CONSTANT && spec->kind == PTWM_PLANE_LOW && record->stored_nbytes == 2) {
        uint8_t value[2];
        memcpy(value, stored, 2);
        if (checks_crc(job) && ptwm_crc32c(0, value, 2) != record->crc)
            return PTWM_ERR_CHECKSUM;
        for (size_t i = 0; i < PTWM_FUSED_BLOCK; i++)
            memcpy(decoded + 2 * i, value, 2);
        *is_constant = true;
        return PTWM_OK;
    }
    return decode_plane(job, p, position, decoded, &plane->bytes, error);
}

/*
 * Decodes a chunk in one pass, if it is one for that. *done tells whether it worked; if not, the plain way is to be gone,
 * which also finds out what is wrong.
 */
static enum ptwm_status decode_fused(struct chunk_job *job, bool *done, struct ptwm_error *error)
{
    const struct ptwm_tail *tail = job->tail;
    const struct ptwm_parsed_chain *chain = &tail->chain;
    const struct ptwm_plane_record *records = ptwm_tail_chunk_planes(tail, job->chunk);
    const uint32_t last = chain->n_planes - 1;
    struct ptwm_fused_chunk fused = { 0 };
    uint64_t position = 0, decoded_nbytes = 0;
    enum ptwm_status status = PTWM_OK;
    uint8_t *decoded;

    *done = false;
    if (!ptwm_fused_serves(chain, &tail->model, job->raw_nbytes) || tail->model.unit % PTWM_UNIT_GRANULE != 0 ||
        records[last].codec != PTWM_CODEC_LABEL_RANS)
        return PTWM_OK;
    for (uint32_t p = 0; p < last; p++)
        if (records[p].codec != PTWM_CODEC_IDENTITY)
            decoded_nbytes += ptwm_plane_nbytes(chain, p, job->raw_nbytes);
    decoded = ptwm_bytes_scratch(&job->scratch->planes, decoded_nbytes);
    if (decoded == NULL)
        return ptwm_fail(error, PTWM_ERR_MEMORY, "the planes of a chunk");
    for (uint32_t p = 0; p < last && status == PTWM_OK; p++) {
        struct ptwm_fused_plane *plane = chain->planes[p].kind == PTWM_PLANE_LOW ? &fused.low : &fused.rest;
        status = prepare_plane(job, p, position, decoded, plane, &fused.is_low_constant, &fused.is_carried, NULL);
        position += records[p].stored_nbytes;
        if (records[p].codec != PTWM_CODEC_IDENTITY)
            decoded += ptwm_plane_nbytes(chain, p, job->raw_nbytes);
    }
    if (status != PTWM_OK)
        return PTWM_OK;
    fused.chain = chain;
    fused.model = &tail->model;
    fused.first_element = ptwm_tail_first_element(tail, job->chunk);
    fused.symbols.bytes = job->stored + position;
    fused.symbols.nbytes = records[last].stored_nbytes;
    fused.symbols.crc = checks_crc(job) ? &records[last].crc : NULL;
    fused.raw = job->raw;
    fused.raw_nbytes = job->raw_nbytes;
    fused.is_streamed = job->scratch->is_streamed;
    *done = ptwm_fused_decode(&fused) == PTWM_OK;
    return PTWM_OK;
}

static enum ptwm_status decode_planes(struct chunk_job *job, struct ptwm_error *error)
{
    const struct ptwm_tail *tail = job->tail;
    const struct ptwm_parsed_chain *chain = &tail->chain;
    const struct ptwm_shifts shifts = ptwm_tail_shifts(tail);
    const uint8_t *planes[PTWM_MAX_PLANES];
    enum ptwm_status status = PTWM_OK;
    uint64_t position = 0, decoded_nbytes = 0;
    uint8_t *decoded = job->raw;

    if (!is_one_plane_of_bytes(chain)) {
        for (uint32_t p = 0; p < chain->n_planes; p++)
            decoded_nbytes += ptwm_plane_nbytes(chain, p, job->raw_nbytes);
        decoded = ptwm_bytes_scratch(&job->scratch->planes, decoded_nbytes);
        if (decoded == NULL)
            return ptwm_fail(error, PTWM_ERR_MEMORY, "the planes of a chunk");
    }
    for (uint32_t p = 0; p < chain->n_planes && status == PTWM_OK; p++) {
        status = decode_plane(job, p, position, decoded, &planes[p], error);
        position += ptwm_tail_chunk_planes(tail, job->chunk)[p].stored_nbytes;
        decoded += ptwm_plane_nbytes(chain, p, job->raw_nbytes);
    }
    if (status == PTWM_OK)
        status = ptwm_chain_merge(chain, &shifts, ptwm_tail_first_element(tail, job->chunk), job->raw, job->raw_nbytes,
                                  planes, error);
    return status;
}

enum ptwm_status ptwm_chunk_decode(const struct ptwm_file *file, const struct ptwm_tail *tail, uint64_t chunk,
                                   bool check_crc, const struct ptwm_codec_context *context, uint8_t *raw,
                                   struct ptwm_decode_scratch *scratch, struct ptwm_error *error)
{
    const uint64_t offset = tail->segment.offset + tail->chunk_offset[chunk];
    struct chunk_job job = { tail, chunk, check_crc, context, NULL, raw, ptwm_tail_chunk_nbytes(tail, chunk), scratch,
                             { NULL, 0 } };
    enum ptwm_status status = ptwm_file_view(file, offset, ptwm_tail_chunk_stored_nbytes(tail, chunk),
                                             &scratch->stored, &job.stored, error);
    bool done = false;

    if (status == PTWM_OK)
        status = decode_fused(&job, &done, error);
    if (status == PTWM_OK && !done)
        status = decode_planes(&job, error);
    if (status != PTWM_OK)
        ptwm_fail_at(error, PTWM_NONE, offset);
    return status;
}

enum ptwm_status ptwm_chunk_decode_planes(const struct ptwm_file *file, const struct ptwm_tail *tail, uint64_t chunk,
                                          const struct ptwm_codec_context *context, uint8_t *planes,
                                          struct ptwm_decode_scratch *scratch, struct ptwm_error *error)
{
    const uint64_t offset = tail->segment.offset + tail->chunk_offset[chunk];
    struct chunk_job job = { tail, chunk, true, context, NULL, NULL, ptwm_tail_chunk_nbytes(tail, chunk), scratch,
                             { NULL, 0 } };
    enum ptwm_status status = ptwm_file_view(file, offset, ptwm_tail_chunk_stored_nbytes(tail, chunk),
                                             &scratch->stored, &job.stored, error);
    uint64_t position = 0;

    for (uint32_t p = 0; p < tail->chain.n_planes && status == PTWM_OK; p++) {
        const size_t nbytes = (size_t)ptwm_plane_nbytes(&tail->chain, p, job.raw_nbytes);
        const uint8_t *plane = planes;
        status = decode_plane(&job, p, position, planes, &plane, error);
        if (status == PTWM_OK && plane != planes && nbytes > 0)
            memcpy(planes, plane, nbytes);
        position += ptwm_tail_chunk_planes(tail, chunk)[p].stored_nbytes;
        planes += nbytes;
    }
    if (status != PTWM_OK)
        ptwm_fail_at(error, PTWM_NONE, offset);
    return status;
}
