#include "ends.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "manifest.h"

static const uint8_t magic[8] = { 0xD7, 'p', 't', 'w', 'm', '\r', '\n', 0x1A };
static const uint8_t end_magic[8] = { 0x1A, '\n', '\r', 'm', 'w', 't', 'p', 0xD7 };
static const uint8_t foreign_magic[8] = { 0x89, 'P', 'T', 'W', 'M', '\r', '\n', 0x1A };

/*
 * What is searched for a lost footer or manifest: the file's last bytes. Both are at its end, and larger manifests than
 * this belong to files of terabytes.
 */
enum { SEARCH_NBYTES = 64 << 20 };

static void check_version(struct scan *scan, size_t from, uint32_t version)
{
    if (scan->failed || version == PTWM_FORMAT_VERSION)
        return;
    scan->status = PTWM_ERR_VERSION;
    scan_problem(scan, from, "version %" PRIu32 " is unknown", version);
}

void header_read(const struct dump_view *view, struct dump_header *header, struct dump_problems *problems,
                 const struct scan_sink *sink)
{
    const size_t nbytes = view->nbytes < DUMP_HEADER_NBYTES ? (size_t)view->nbytes : DUMP_HEADER_NBYTES;
    uint8_t bytes[DUMP_HEADER_NBYTES] = { 0 };
    const size_t n_magic = nbytes < sizeof magic ? nbytes : sizeof magic;
    struct scan scan;

    memset(header, 0, sizeof *header);
    scan_init(&scan, bytes, nbytes, 0, PTWM_ERR_NOT_PTWM, problems, sink);
    scan_group(&scan, "header");
    if (!view_read(view, 0, bytes, nbytes)) {
        problem_add(problems, PTWM_ERR_IO, 0, "the header cannot be read");
        return;
    }
    header->is_foreign = memcmp(bytes, foreign_magic, sizeof magic) == 0;
    header->magic_is_good = nbytes > 0 && memcmp(bytes, magic, n_magic) == 0;
    if (header->is_foreign) {
        scan.status = PTWM_ERR_FOREIGN;
        scan_problem(&scan, 0, "this is the PTWM container of PyPI's \"ptwm\", another format of that name");
    } else if (!header->magic_is_good) {
        scan_problem(&scan, 0, nbytes == 0 ? "the file is empty" : "the magic number is missing: no .ptwm file");
    }
    scan.status = PTWM_ERR_TRUNCATED;
    if (!header->magic_is_good)
        scan.problems = NULL; /* what is no header can have no fault beyond that */
    scan_take(&scan, sizeof magic, "magic");
    scan_field(&scan, 0, "magic", header->magic_is_good ? "of a .ptwm file" : "not that of a .ptwm file");
    header->version = (uint32_t)scan_u32(&scan, "version");
    check_version(&scan, 8, header->version);
    scan.status = PTWM_ERR_PADDING;
    if (scan_u32(&scan, "zero") != 0)
        scan_problem(&scan, 12, "the last field is not zero");
    header->is_there = !scan.failed;
}

/* Reads a footer at an offset at which its closing magic was found. */
static bool parse_footer(const struct dump_view *view, uint64_t offset, struct dump_footer *footer)
{
    uint8_t bytes[DUMP_FOOTER_NBYTES];

    if (!view_read(view, offset, bytes, sizeof bytes) || memcmp(bytes + 32, end_magic, sizeof end_magic) != 0)
        return false;
    footer->is_there = true;
    footer->offset = offset;
    footer->manifest_offset = scan_load(bytes, 8);
    footer->manifest_nbytes = scan_load(bytes + 8, 8);
    footer->file_nbytes = scan_load(bytes + 16, 8);
    footer->manifest_crc = (uint32_t)scan_load(bytes + 24, 4);
    footer->version = (uint32_t)scan_load(bytes + 28, 4);
    return true;
}

/* The last part of the file, up to SEARCH_NBYTES, for a search. Freed by the caller. */
static uint8_t *load_end(const struct dump_view *view, uint64_t *offset, size_t *nbytes)
{
    *nbytes = view->nbytes < SEARCH_NBYTES ? (size_t)view->nbytes : SEARCH_NBYTES;
    *offset = view->nbytes - *nbytes;
    return view_load(view, *offset, *nbytes);
}

/* Looks for a footer that has bytes behind it: one that puts the file's end where it ends itself. */
static bool search_footer(const struct dump_view *view, struct dump_footer *footer)
{
    struct dump_footer candidate = { 0 };
    uint64_t base;
    size_t nbytes;
    uint8_t *bytes = load_end(view, &base, &nbytes);
    bool is_found = false;

    for (size_t end = bytes != NULL ? nbytes : 0; end >= DUMP_FOOTER_NBYTES && !is_found; end--)
        is_found = memcmp(bytes + end - sizeof end_magic, end_magic, sizeof end_magic) == 0 &&
                   scan_load(bytes + end - 24, 8) == base + end &&
                   parse_footer(view, base + end - DUMP_FOOTER_NBYTES, &candidate);
    free(bytes);
    if (is_found)
        *footer = candidate;
    return is_found;
}

void footer_read(const struct dump_view *view, struct dump_footer *footer, struct dump_problems *problems)
{
    uint64_t end;

    memset(footer, 0, sizeof *footer);
    if (view->nbytes < DUMP_HEADER_NBYTES + DUMP_FOOTER_NBYTES) {
        problem_add(problems, PTWM_ERR_TRUNCATED, 0, "footer: %" PRIu64 " bytes are too few for a file", view->nbytes);
        return;
    }
    if (!parse_footer(view, view->nbytes - DUMP_FOOTER_NBYTES, footer)) {
        problem_add(problems, PTWM_ERR_TRUNCATED, view->nbytes - DUMP_FOOTER_NBYTES,
                    "footer: it is missing: the file is cut short, or has bytes behind it");
        if (!search_footer(view, footer))
            return;
        problem_add(problems, PTWM_ERR_TRAILING, footer->offset + DUMP_FOOTER_NBYTES,
                    "footer: %" PRIu64 " bytes are behind it", view->nbytes - footer->offset - DUMP_FOOTER_NBYTES);
    }
    end = footer->offset + DUMP_FOOTER_NBYTES;
    if (footer->version != PTWM_FORMAT_VERSION)
        problem_add(problems, PTWM_ERR_VERSION, footer->offset + 28, "footer: version %" PRIu32 " is unknown",
                    footer->version);
    else if (footer->file_nbytes != end)
        problem_add(problems, footer->file_nbytes > end ? PTWM_ERR_TRUNCATED : PTWM_ERR_TRAILING, footer->offset + 16,
                    "footer: the file has %" PRIu64 " bytes, of which the footer knows %" PRIu64, end,
                    footer->file_nbytes);
    else if (footer->manifest_offset < DUMP_HEADER_NBYTES || footer->manifest_nbytes > footer->offset ||
             footer->manifest_offset != footer->offset - footer->manifest_nbytes)
        problem_add(problems, PTWM_ERR_MANIFEST, footer->offset,
                    "footer: a manifest of %" PRIu64 " bytes at %" PRIu64 " does not end where the footer begins",
                    footer->manifest_nbytes, footer->manifest_offset);
}

void footer_scan(const struct dump_view *view, const struct dump_footer *footer, const struct scan_sink *sink)
{
    uint8_t bytes[DUMP_FOOTER_NBYTES];
    struct scan scan;
    size_t from;

    if (!footer->is_there || !view_read(view, footer->offset, bytes, sizeof bytes))
        return;
    scan_init(&scan, bytes, sizeof bytes, footer->offset, PTWM_ERR_TRUNCATED, NULL, sink);
    scan_group(&scan, "footer");
    scan_u64(&scan, "manifest offset");
    scan_u64(&scan, "manifest length");
    scan_u64(&scan, "file length");
    from = scan.next;
    scan_field(&scan, from, "CRC-32C of the manifest", "0x%08" PRIx32, (uint32_t)scan_take_uint(&scan, 4, "CRC"));
    scan_u32(&scan, "version");
    from = scan.next;
    scan_take(&scan, sizeof end_magic, "closing magic");
    scan_field(&scan, from, "closing magic", "of a .ptwm file");
}

/*
 * The search goes by what no chance meets: a map with a list of segments whose lengths add up to the map's own offset.
 * A file that is made to look like many such lists costs a budget, not the square of its length.
 */
static bool search_manifest(const struct dump_view *view, struct dump_place *place)
{
    uint64_t base, budget;
    size_t nbytes;
    uint8_t *bytes = load_end(view, &base, &nbytes);
    bool is_found = false;

    budget = 4 * (uint64_t)nbytes;
    for (size_t i = 0; bytes != NULL && i < nbytes && budget > 0 && !is_found; i++) {
        if (bytes[i] < 0xA2 || bytes[i] > 0xB7 || base + i < DUMP_HEADER_NBYTES) /* a map of a few pairs */
            continue;
        is_found = manifest_segments_end(bytes + i, nbytes - i, base + i, &budget);
        if (is_found) {
            place->found = DUMP_BY_SEARCH;
            place->offset = base + i;
            place->nbytes = nbytes - i;
        }
    }
    free(bytes);
    return is_found;
}

struct dump_place manifest_find(const struct dump_view *view, const struct dump_footer *footer,
                                struct dump_problems *problems)
{
    struct dump_place place = { DUMP_NOT_FOUND, 0, 0 };

    if (footer->is_there && footer->manifest_offset >= DUMP_HEADER_NBYTES &&
        footer->manifest_nbytes <= footer->offset &&
        footer->manifest_offset == footer->offset - footer->manifest_nbytes) {
        place.found = DUMP_BY_FOOTER;
        place.offset = footer->manifest_offset;
        place.nbytes = footer->manifest_nbytes;
        return place;
    }
    if (!search_manifest(view, &place)) {
        problem_add(problems, PTWM_ERR_TRUNCATED, PTWM_NONE, "no manifest was found: segments and tensors are unknown");
        return place;
    }
    if (footer->is_there && footer->offset > place.offset)
        place.nbytes = footer->offset - place.offset;
    return place;
}
