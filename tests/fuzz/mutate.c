/*
 * libFuzzer's mutator for targets that take whole files: changes one part of the file, a manifest, a tail or some bytes of
 * planes, moves what has to move, and seals it again. One in eight mutations is of no particular kind and stays unsealed.
 */
#include <stdlib.h>

#include "fuzz.h"
#include "seal.h"

size_t LLVMFuzzerMutate(uint8_t *data, size_t nbytes, size_t max_nbytes);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t nbytes, size_t max_nbytes, unsigned seed);

/* A file in its parts: the manifest parsed, and what is before it in place. */
struct parts {
    struct ptwm_manifest manifest;
    uint8_t *body; /* header and segments */
    size_t body_nbytes;
};

static bool take_apart(const uint8_t *data, size_t nbytes, struct parts *parts)
{
    struct ptwm_footer footer;

    if (nbytes < PTWM_HEADER_NBYTES + PTWM_FOOTER_NBYTES ||
        ptwm_footer_read(data + nbytes - PTWM_FOOTER_NBYTES, nbytes, &footer, NULL) != PTWM_OK ||
        ptwm_manifest_read(data + footer.manifest_offset, (size_t)footer.manifest_nbytes, footer.manifest_offset,
                           &ptwm_default_allocator, &parts->manifest, NULL) != PTWM_OK)
        return false;
    parts->body = (uint8_t *)data;
    parts->body_nbytes = (size_t)footer.manifest_offset;
    return true;
}

/* Puts a body, a manifest and a footer into data; 0 if they don't fit. */
static size_t put_together(uint8_t *data, size_t max_nbytes, const uint8_t *body, size_t body_nbytes,
                           const uint8_t *manifest, size_t manifest_nbytes)
{
    const size_t nbytes = body_nbytes + manifest_nbytes + PTWM_FOOTER_NBYTES;

    if (nbytes > max_nbytes)
        return 0;
    memmove(data, body, body_nbytes);
    memcpy(data + body_nbytes, manifest, manifest_nbytes);
    ptwm_store64(data + nbytes - PTWM_FOOTER_NBYTES, body_nbytes);
    seal_file(data, nbytes);
    return nbytes;
}

static size_t mutate_manifest(uint8_t *data, size_t nbytes, size_t max_nbytes, const struct parts *parts)
{
    const size_t old_nbytes = nbytes - PTWM_FOOTER_NBYTES - parts->body_nbytes, room = old_nbytes + 64;
    uint8_t *manifest = malloc(room);
    size_t n;

    memcpy(manifest, data + parts->body_nbytes, old_nbytes);
    n = LLVMFuzzerMutate(manifest, old_nbytes, room);
    n = put_together(data, max_nbytes, data, parts->body_nbytes, manifest, n);
    free(manifest);
    return n;
}

/* Mutates nbytes bytes at offset of the body, which belong to a segment's planes or to its tail, and may change length. */
static size_t mutate_segment(uint8_t *data, size_t max_nbytes, struct parts *parts, struct ptwm_segment_record *s,
                             size_t offset, size_t nbytes, bool is_tail, size_t room)
{
    struct ptwm_bytes manifest = { &ptwm_default_allocator, NULL, 0, 0 };
    uint8_t *body = malloc(parts->body_nbytes + room), *part = malloc(nbytes + room);
    const size_t behind = parts->body_nbytes - offset - nbytes;
    size_t n, result = 0;

    memcpy(part, parts->body + offset, nbytes);
    n = LLVMFuzzerMutate(part, nbytes, nbytes + room);
    memcpy(body, parts->body, offset);
    memcpy(body + offset, part, n);
    memcpy(body + offset + n, parts->body + offset + nbytes, behind);
    s->stored_nbytes = s->stored_nbytes - nbytes + n;
    if (is_tail)
        s->tail_nbytes = n;
    if (ptwm_manifest_write(&parts->manifest, &manifest) == PTWM_OK)
        result = put_together(data, max_nbytes, body, offset + n + behind, manifest.data, manifest.nbytes);
    ptwm_bytes_release(&manifest);
    free(part);
    free(body);
    return result;
}

static size_t mutate_parts(uint8_t *data, size_t nbytes, size_t max_nbytes, unsigned seed, struct parts *parts)
{
    struct ptwm_segment_record *s;
    size_t planes_nbytes, at, n;

    if (parts->manifest.n_segments == 0 || seed % 4 == 0)
        return mutate_manifest(data, nbytes, max_nbytes, parts);
    s = &parts->manifest.segments[seed / 4 % parts->manifest.n_segments];
    planes_nbytes = (size_t)(s->stored_nbytes - s->tail_nbytes);
    if (seed % 4 <= 2 || planes_nbytes == 0)
        return mutate_segment(data, max_nbytes, parts, s, (size_t)s->offset + planes_nbytes, (size_t)s->tail_nbytes, true,
                              16);
    at = seed / 64 % planes_nbytes;
    n = planes_nbytes - at < 64 ? planes_nbytes - at : 64;
    return mutate_segment(data, max_nbytes, parts, s, (size_t)s->offset + at, n, false, 0);
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t nbytes, size_t max_nbytes, unsigned seed)
{
    struct parts parts;
    size_t n = 0;

    if (seed % 8 != 0 && take_apart(data, nbytes, &parts)) {
        n = mutate_parts(data, nbytes, max_nbytes, seed / 8, &parts);
        ptwm_manifest_release(&parts.manifest);
    }
    return n > 0 ? n : LLVMFuzzerMutate(data, nbytes, max_nbytes);
}
