#include "check.h"

#include <inttypes.h>
#include <stdlib.h>

#include "plane.h"

bool check_zero(const struct dump_view *view, uint64_t offset, uint64_t nbytes, uint64_t *bad)
{
    uint8_t block[4096];

    while (nbytes > 0) {
        const size_t n = nbytes < sizeof block ? (size_t)nbytes : sizeof block;
        if (!view_read(view, offset, block, n)) {
            *bad = offset;
            return false;
        }
        for (size_t i = 0; i < n; i++)
            if (block[i] != 0) {
                *bad = offset + i;
                return false;
            }
        offset += n;
        nbytes -= n;
    }
    return true;
}

static void check_padding(const struct dump_view *view, uint64_t offset, uint64_t nbytes, uint64_t segment,
                          struct dump_problems *problems)
{
    uint64_t bad;

    if (!check_zero(view, offset, nbytes, &bad))
        problem_add(problems, PTWM_ERR_PADDING, bad, "segment %" PRIu64 ": its padding is not zero", segment);
}

static void check_plane(const struct dump_view *view, struct dump_tail *t, uint64_t chunk, uint32_t plane,
                        struct dump_problems *problems)
{
    struct dump_record *r = &tail_records(t, chunk)[plane];
    uint8_t *bytes = view_load(view, r->offset, r->stored_nbytes);

    if (bytes == NULL) {
        r->state = DUMP_PLANE_UNREADABLE;
        problem_add(problems, PTWM_ERR_IO, r->offset,
                    "segment %" PRIu64 ", chunk %" PRIu64 ", plane %" PRIu32 " cannot be read", t->number, chunk,
                    plane);
        return;
    }
    r->state = DUMP_PLANE_NO_CRC;
    if (t->segment.flags & DUMP_CHECKED) {
        const uint32_t crc = ptwm_crc32c(0, bytes, (size_t)r->stored_nbytes);
        r->state = crc == r->crc ? DUMP_PLANE_GOOD : DUMP_PLANE_BAD;
        if (crc != r->crc)
            problem_add(problems, PTWM_ERR_CHECKSUM, r->offset,
                        "segment %" PRIu64 ", chunk %" PRIu64 ", plane %" PRIu32 " (%s): its CRC-32C is %08" PRIx32
                        ", the tail says %08" PRIx32,
                        t->number, chunk, plane, chain_plane_name(t->chain.planes[plane]), crc, r->crc);
    }
    plane_read(t, chunk, plane, bytes, NULL, problems, NULL);
    free(bytes);
}

void check_segment(const struct dump_view *view, struct dump_tail *t, struct dump_problems *problems)
{
    uint64_t end = t->segment.offset;

    if (t->segment.is_sound)
        check_padding(view, t->segment.offset - t->segment.padding_nbytes, t->segment.padding_nbytes, t->number,
                      problems);
    for (uint64_t i = 0; i < tail_n_known_chunks(t); i++) {
        const struct dump_record *records = tail_records(t, i), *last = &records[t->chain.n_planes - 1];
        check_padding(view, end, records[0].offset - end, t->number, problems);
        for (uint32_t p = 0; p < t->chain.n_planes; p++)
            check_plane(view, t, i, p, problems);
        end = last->offset + last->stored_nbytes;
    }
}
