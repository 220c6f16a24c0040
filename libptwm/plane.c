#include "plane.h"

#include <string.h>

#include "status.h"
#include "symbol_set.h"
#include "trim.h"

/* ----------------------------------------------------------------------------------------------------- decoding */

static enum ptwm_status decode_symbols(const struct ptwm_tail *tail, uint64_t first_element, const uint8_t *stored,
                                       size_t stored_nbytes, uint8_t *raw, size_t raw_nbytes, unsigned element_nbytes,
                                       const struct ptwm_carried *carried, struct ptwm_bytes *symbols,
                                       struct ptwm_error *error)
{
    const size_t n = raw_nbytes / element_nbytes;
    enum ptwm_status status;
    uint16_t *values;

    if (ptwm_bytes_scratch(symbols, (uint64_t)n * sizeof *values) == NULL)
        return ptwm_fail(error, PTWM_ERR_MEMORY, "%zu symbols", n);
    values = (uint16_t *)(void *)symbols->data;
    status = ptwm_label_decode(&tail->model, first_element, stored, stored_nbytes, values, n, carried->bytes,
                               carried->nbytes, error);
    if (status != PTWM_OK)
        return status;
    for (size_t i = 0; i < n; i++)
        if (element_nbytes == 1)
            raw[i] = (uint8_t)values[i];
        else
            ptwm_store16(raw + 2 * i, values[i]);
    return PTWM_OK;
}

/* All of the plane but its beginning, which must be of a length that label rANS carries. */
static enum ptwm_status decode_carried(const uint8_t *stored, size_t stored_nbytes, uint8_t *raw, size_t raw_nbytes,
                                       struct ptwm_carried *carried, struct ptwm_error *error)
{
    if (stored_nbytes >= raw_nbytes || raw_nbytes - stored_nbytes > 2 * PTWM_MAX_LANES)
        return ptwm_fail(error, PTWM_ERR_PLANE, "%zu of a plane's %zu bytes are not stored", raw_nbytes - stored_nbytes,
                         raw_nbytes);
    carried->bytes = raw;
    carried->nbytes = raw_nbytes - stored_nbytes;
    memcpy(raw + carried->nbytes, stored, stored_nbytes);
    return PTWM_OK;
}

enum ptwm_status ptwm_plane_decode(const struct ptwm_tail *tail, uint64_t chunk, uint32_t plane,
                                   const struct ptwm_codec_context *context, const uint8_t *stored,
                                   size_t stored_nbytes, uint8_t *raw, struct ptwm_carried *carried,
                                   struct ptwm_bytes *symbols, struct ptwm_error *error)
{
    const struct ptwm_plane_spec spec = tail->chain.planes[plane];
    const size_t raw_nbytes = (size_t)ptwm_plane_nbytes(&tail->chain, plane, ptwm_tail_chunk_nbytes(tail, chunk));
    const uint8_t codec = ptwm_tail_chunk_planes(tail, chunk)[plane].codec;
    const struct ptwm_byte_codec *bytes_codec;

    if (codec == PTWM_CODEC_LABEL_RANS)
        return decode_symbols(tail, ptwm_tail_first_element(tail, chunk), stored, stored_nbytes, raw, raw_nbytes,
                              spec.element_nbytes, carried, symbols, error);
    if (codec == PTWM_CODEC_CARRIED)
        return decode_carried(stored, stored_nbytes, raw, raw_nbytes, carried, error);
    if (codec == PTWM_CODEC_TRIM)
        return ptwm_trim_decode(raw, raw_nbytes / 2, stored, stored_nbytes, error);
    if (codec == PTWM_CODEC_CONSTANT && stored_nbytes != spec.element_nbytes)
        return ptwm_fail(error, PTWM_ERR_PLANE, "a constant of %zu bytes", stored_nbytes);
    bytes_codec = ptwm_byte_codec_find(codec);
    if (bytes_codec == NULL)
        return ptwm_fail(error, PTWM_ERR_CODEC, "codec %u", codec);
    return bytes_codec->decode(context, raw, raw_nbytes, stored, stored_nbytes, error);
}

/* ----------------------------------------------------------------------------------------------------- encoding */

/* A plane in the making: what is common to all attempts. */
struct attempt {
    const struct ptwm_tail *tail;
    const struct ptwm_plane_plan *plan;
    const struct ptwm_codec_context *context;
    struct ptwm_plane_spec spec;
    const uint8_t *raw;
    size_t raw_nbytes;
    struct ptwm_bytes *stored;
    size_t begin; /* of the plane in stored */
    struct ptwm_error *error;
};

static bool is_constant(const struct attempt *a)
{
    const size_t n = a->spec.element_nbytes;
    return a->raw_nbytes == n || memcmp(a->raw, a->raw + n, a->raw_nbytes - n) == 0;
}

static enum ptwm_status out_of_memory(const struct attempt *a)
{
    return ptwm_fail(a->error, PTWM_ERR_MEMORY, "encoding a plane of %zu bytes", a->raw_nbytes);
}

/* Replaces what stored holds of this plane by another codec's output. */
static enum ptwm_status put(struct attempt *a, const struct ptwm_byte_codec *codec, struct ptwm_plane_record *record)
{
    const bool constant = codec->id == PTWM_CODEC_CONSTANT;
    const size_t nbytes = constant ? a->spec.element_nbytes : a->raw_nbytes;
    enum ptwm_status status;
    size_t stored_nbytes;

    a->stored->nbytes = a->begin;
    if (ptwm_bytes_reserve(a->stored, constant ? nbytes : codec->bound(nbytes)) != PTWM_OK)
        return out_of_memory(a);
    if (constant) {
        memcpy(a->stored->data + a->begin, a->raw, nbytes);
        stored_nbytes = nbytes;
    } else {
        status = codec->encode(a->context, a->stored->data + a->begin, &stored_nbytes, a->raw, nbytes, a->error);
        if (status != PTWM_OK)
            return status;
    }
    a->stored->nbytes += stored_nbytes;
    record->codec = (uint8_t)codec->id;
    record->stored_nbytes = (uint32_t)stored_nbytes;
    return PTWM_OK;
}

static enum ptwm_status put_labels(struct attempt *a, struct ptwm_plane_record *record)
{
    const size_t n = a->raw_nbytes / a->spec.element_nbytes;
    enum ptwm_status status;
    size_t stored_nbytes;

    a->stored->nbytes = a->begin;
    if (ptwm_bytes_reserve(a->stored, ptwm_label_bound(n)) != PTWM_OK)
        return out_of_memory(a);
    status =
        ptwm_label_encode(&a->tail->model, a->plan->set, a->plan->classes, a->plan->first_element, a->plan->symbols, n,
                          a->plan->carried, a->stored->data + a->begin, &stored_nbytes, a->error);
    if (status != PTWM_OK)
        return status;
    a->stored->nbytes += stored_nbytes;
    record->codec = PTWM_CODEC_LABEL_RANS;
    record->stored_nbytes = (uint32_t)stored_nbytes;
    return PTWM_OK;
}

static enum ptwm_status put_trim(struct attempt *a, uint64_t nbytes, struct ptwm_plane_record *record)
{
    a->stored->nbytes = a->begin;
    if (ptwm_bytes_reserve(a->stored, nbytes) != PTWM_OK)
        return out_of_memory(a);
    ptwm_trim_encode(a->stored->data + a->begin, a->raw, a->raw_nbytes / 2, a->tail->model.unit);
    a->stored->nbytes += (size_t)nbytes;
    record->codec = PTWM_CODEC_TRIM;
    record->stored_nbytes = (uint32_t)nbytes;
    return PTWM_OK;
}

/* Tries zstd, and keeps it if it is smaller than what stored holds. */
static enum ptwm_status try_zstd(struct attempt *a, struct ptwm_plane_record *record)
{
    struct ptwm_bytes other = { a->context->allocator, NULL, 0, 0 };
    struct ptwm_plane_record other_record = *record;
    struct attempt b = *a;
    enum ptwm_status status;

    b.stored = &other;
    b.begin = 0;
    status = put(&b, &ptwm_codec_zstd, &other_record);
    if (status == PTWM_OK && other_record.stored_nbytes < record->stored_nbytes) {
        memcpy(a->stored->data + a->begin, other.data, other.nbytes);
        a->stored->nbytes = a->begin + other.nbytes;
        *record = other_record;
    }
    ptwm_bytes_release(&other);
    return status;
}

/*
 * Stores or codes bytes, as the estimates say. Huffman's tables are small, rANS's states are not: it serves small
 * planes.
 */
static enum ptwm_status put_bytes(struct attempt *a, struct ptwm_plane_record *record)
{
    uint32_t histogram[256];
    uint64_t huffman, rans;

    ptwm_count_bytes(a->raw, a->raw_nbytes, histogram);
    huffman = ptwm_huffman_estimate(histogram, a->raw_nbytes);
    rans = ptwm_rans_estimate(histogram, a->raw_nbytes);
    if (huffman >= a->raw_nbytes && rans >= a->raw_nbytes)
        return put(a, &ptwm_codec_identity, record);
    return put(a, huffman < rans ? &ptwm_codec_huffman : &ptwm_codec_rans, record);
}

static enum ptwm_status put_symbols(struct attempt *a, struct ptwm_plane_record *record)
{
    enum ptwm_status status;

    if (a->plan->set == PTWM_NO_SET)
        return put_bytes(a, record);
    status = put_labels(a, record);
    if (status == PTWM_OK && record->stored_nbytes >= a->raw_nbytes)
        status = put(a, &ptwm_codec_identity, record);
    return status;
}

static enum ptwm_status put_low(struct attempt *a, struct ptwm_plane_record *record)
{
    uint64_t trimmed = ptwm_trim_nbytes(a->raw, a->raw_nbytes / 2, a->tail->model.unit);

    if (trimmed < a->raw_nbytes)
        return put_trim(a, trimmed, record);
    return put(a, &ptwm_codec_identity, record);
}

static bool wants_zstd(const struct attempt *a, const struct ptwm_plane_record *record)
{
    if (a->plan->zstd == PTWM_ZSTD_ON_BYTES)
        return record->codec == PTWM_CODEC_HUFFMAN || record->codec == PTWM_CODEC_RANS;
    return a->plan->zstd == PTWM_ZSTD_EVERYWHERE;
}

/* PTWM_METHOD_MICROSCALE: by what the plane is and by what is in it. */
static enum ptwm_status put_chosen(struct attempt *a, struct ptwm_plane_record *record)
{
    enum ptwm_status status;

    if (is_constant(a))
        return put(a, &ptwm_codec_constant, record);
    switch (a->spec.kind) {
    case PTWM_PLANE_SYMBOL:
        status = put_symbols(a, record);
        break;
    case PTWM_PLANE_LOW:
        status = put_low(a, record);
        break;
    case PTWM_PLANE_BYTES:
        status = put_bytes(a, record);
        break;
    default:
        status = put(a, &ptwm_codec_identity, record);
        break;
    }
    if (status == PTWM_OK && wants_zstd(a, record))
        status = try_zstd(a, record);
    return status;
}

static enum ptwm_status put_forced(struct attempt *a, struct ptwm_plane_record *record)
{
    /* What a label step leaves over is noise; forcing a codec on it would only cost. */
    if (a->spec.kind == PTWM_PLANE_LOW || a->spec.kind == PTWM_PLANE_REST)
        return put(a, &ptwm_codec_identity, record);
    switch (a->plan->method) {
    case PTWM_METHOD_HUFFMAN: return put(a, &ptwm_codec_huffman, record);
    case PTWM_METHOD_ZSTD: return put(a, &ptwm_codec_zstd, record);
    case PTWM_METHOD_RANS:
        return a->spec.kind == PTWM_PLANE_SYMBOL && a->plan->set != PTWM_NO_SET ? put_labels(a, record)
                                                                               : put(a, &ptwm_codec_rans, record);
    default: return put(a, &ptwm_codec_identity, record);
    }
}

enum ptwm_status ptwm_plane_encode(const struct ptwm_tail *tail, uint32_t plane, const struct ptwm_plane_plan *plan,
                                   const struct ptwm_codec_context *context, const uint8_t *raw, size_t raw_nbytes,
                                   struct ptwm_bytes *stored, struct ptwm_plane_record *record,
                                   struct ptwm_error *error)
{
    struct attempt a = { tail,       plan,   context,        tail->chain.planes[plane], raw,
                         raw_nbytes, stored, stored->nbytes, error };
    enum ptwm_status status = plan->method == PTWM_METHOD_MICROSCALE ? put_chosen(&a, record) : put_forced(&a, record);

    if (status == PTWM_OK)
        record->crc = ptwm_crc32c(0, stored->data + a.begin, record->stored_nbytes);
    return status;
}
