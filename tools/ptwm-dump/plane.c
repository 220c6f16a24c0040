#include "plane.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* The plane that is read, and its length when it is decoded. */
struct plane {
    const struct dump_tail *tail;
    const struct dump_record *record;
    uint64_t raw_nbytes;
    uint64_t n_elements; /* of the chunk's label step */
};

static unsigned bits_for(uint32_t n)
{
    unsigned bits = 0;
    while ((1u << bits) < n)
        bits++;
    return bits;
}

/* ------------------------------------------------------------------------------------------- codecs of bytes */

/* The set of values that have a code; returns their number, 0 if it is malformed. */
static unsigned read_set(struct scan *scan)
{
    size_t from = scan->next;
    const unsigned groups = (unsigned)scan_take_uint(scan, 2, "groups");
    unsigned n = 0;

    scan_field(scan, from, "groups of values", "0x%04x", groups);
    if (!scan->failed && groups == 0) {
        scan_problem(scan, from, "the symbol set is empty");
        scan->failed = true;
    }
    for (unsigned g = 0; g < 16 && !scan->failed; g++) {
        unsigned members, n_before = n;
        if ((groups >> g & 1) == 0)
            continue;
        from = scan->next;
        members = (unsigned)scan_take_uint(scan, 2, "members");
        for (unsigned j = 0; j < 16; j++)
            n += members >> j & 1;
        scan_field(scan, from, "values", "0x%04x: %u of %u .. %u", members, n - n_before, 16 * g, 16 * g + 15);
        if (!scan->failed && members == 0)
            scan_problem(scan, from, "a group of the symbol set is empty");
    }
    return scan->failed ? 0 : n;
}

static void read_huffman(struct scan *scan)
{
    const unsigned n = read_set(scan);
    size_t from = scan->next;
    const uint8_t *lengths;
    uint64_t sum = 0;

    if (n <= 1) {
        if (!scan->failed && scan_left(scan) > 0)
            scan_problem(scan, scan->next, "bytes are behind a set of one value");
        scan_rest(scan, "no part of the plane");
        return;
    }
    lengths = scan_bytes(scan, (n * 4 + 7) / 8, "code lengths");
    for (unsigned i = 0; lengths != NULL && i < n; i++) {
        const uint32_t length = scan_bits(lengths, i, 4);
        if (length < 1 || length > 11)
            scan_problem(scan, from + i / 2, "a code of %" PRIu32 " bits", length);
        else
            sum += 2048u >> length;
    }
    if (lengths != NULL && sum != 2048)
        scan_problem(scan, from, "the code lengths make no complete code");
    {
        uint64_t nbytes[3];
        for (unsigned i = 0; i < 3; i++)
            nbytes[i] = scan_varint(scan, "stream length");
        for (unsigned i = 0; i < 3; i++)
            scan_bytes(scan, nbytes[i], "stream");
    }
    scan_rest(scan, "stream");
}

static void read_words(struct scan *scan)
{
    if (!scan->failed && scan_left(scan) % 2 != 0)
        scan_problem(scan, scan->next, "half a word is left");
    scan_rest(scan, "words");
}

static void read_states(struct scan *scan, uint32_t n_lanes)
{
    const size_t from = scan->next;
    const uint8_t *states = scan_bytes(scan, 4 * (uint64_t)n_lanes, "states");

    for (uint32_t lane = 0; states != NULL && lane < n_lanes; lane++)
        if (scan_load(states + 4 * lane, 4) < 65536)
            scan_problem(scan, from + 4 * lane, "the state of lane %" PRIu32 " is below 65536", lane);
}

static void read_rans(struct scan *scan, const struct plane *plane)
{
    const unsigned n = read_set(scan);
    const size_t from = scan->next;
    uint64_t left = 4096;

    for (unsigned i = 0; i + 1 < n && !scan->failed; i++) {
        const uint64_t frequency = scan_take_varint(scan, "frequency");
        left = frequency < left ? left - frequency - 1 : 0;
    }
    if (n > 1)
        scan_field(scan, from, "frequencies", "%u varints; %" PRIu64 " of 4096 for the last value", n - 1, left);
    if (!scan->failed && left == 0)
        scan_problem(scan, from, "the frequencies leave nothing for the last value");
    read_states(scan, plane->raw_nbytes < 1024 ? 4 : 32);
    read_words(scan);
}

static void read_zstd(struct scan *scan)
{
    const size_t from = scan->next;
    const uint32_t magic = (uint32_t)scan_take_uint(scan, 4, "magic of Zstandard");

    scan_field(scan, from, "magic of Zstandard", "0x%08" PRIx32, magic);
    if (!scan->failed && magic != 0xFD2FB528)
        scan_problem(scan, from, "no Zstandard frame");
    scan_rest(scan, "frame");
}

static void read_trim(struct scan *scan, const struct plane *plane)
{
    const size_t from = scan->next;
    const uint64_t n = plane->n_elements, unit = scan_varint(scan, "unit");
    uint64_t units, covered = 0;

    if (!scan->failed && (unit == 0 || unit % 128 != 0 || unit > 1 << 20)) {
        scan_problem(scan, from, "a unit of %" PRIu64 " elements", unit);
        scan->failed = true;
    }
    if (scan->failed)
        return;
    units = (n + unit - 1) / unit;
    while (covered < units && !scan->failed) {
        const size_t at = scan->next;
        const uint64_t run = scan_take_varint(scan, "run"), bits = scan_take_uint(scan, 1, "zero bits");
        scan_field(scan, at, "run", "%" PRIu64 " units with %" PRIu64 " zero bits", run, bits);
        if (!scan->failed && (run == 0 || run > units - covered || bits > 16)) {
            scan_problem(scan, at, "a run of %" PRIu64 " units of %" PRIu64 ", %" PRIu64 " zero bits", run, units,
                         bits);
            scan->failed = true;
        }
        covered += run;
    }
    scan_rest(scan, "bits that are left");
}

/* --------------------------------------------------------------------------------------------------- label rANS */

static bool read_classes(struct scan *scan, const struct dump_set *set, struct dump_label_head *head)
{
    const size_t from = scan->next;

    head->class_bits = bits_for(set->n_classes);
    if (head->class_bits == 0) {
        head->units_of_class[0] = head->n_units;
        return true;
    }
    head->classes = scan_bytes(scan, (head->n_units * head->class_bits + 7) / 8, "classes of units");
    for (uint64_t u = 0; head->classes != NULL && u < head->n_units; u++) {
        const uint32_t c = scan_bits(head->classes, u, head->class_bits);
        if (c >= set->n_classes) {
            scan_problem(scan, from + (size_t)(u * head->class_bits / 8),
                         "unit %" PRIu64 " has class %" PRIu32 " of %" PRIu32, u, c, set->n_classes);
            return false;
        }
        head->units_of_class[c]++;
    }
    return head->classes != NULL;
}

static bool read_exceptions(struct scan *scan, const struct plane *plane, uint64_t n)
{
    const size_t from = scan->next;
    const unsigned bits = plane->tail->chain.label.bits;
    uint64_t position = 0;

    for (uint64_t i = 0; i < n; i++) {
        const size_t at = scan->next;
        const uint64_t distance = scan_take_varint(scan, "distance of an exception");
        const uint64_t symbol = scan_take_uint(scan, bits <= 8 ? 1 : 2, "symbol of an exception");

        if (scan->failed)
            return false;
        if (distance >= plane->n_elements - position || symbol >> bits != 0) {
            scan_problem(scan, at, "exception %" PRIu64 ": symbol %" PRIu64 " at %" PRIu64 " of %" PRIu64 " elements",
                         i, symbol, position + distance, plane->n_elements);
            return false;
        }
        position += distance + 1;
    }
    if (n > 0)
        scan_field(scan, from, "exceptions", "%" PRIu64 " distances and symbols", n);
    return true;
}

static void read_label_rans(struct scan *scan, const struct plane *plane, struct dump_label_head *head)
{
    static const uint32_t lanes[3] = { 4, 32, 128 };
    const struct dump_model *model = &plane->tail->model;
    size_t from = scan->next;
    const unsigned lane_code = (unsigned)scan_take_uint(scan, 1, "lanes");
    uint32_t crc;

    head->n_lanes = lane_code < 3 ? lanes[lane_code] : 0;
    scan_field(scan, from, "lanes", "%u, %" PRIu32 " lanes", lane_code, head->n_lanes);
    if (!scan->failed && (lane_code > 2 || (lane_code == 2 && model->unit % 128 != 0))) {
        scan_problem(scan, from, "lanes of code %u and units of %" PRIu64 " elements", lane_code, model->unit);
        return;
    }
    from = scan->next;
    head->set = scan_varint(scan, "set");
    if (!scan->failed && head->set >= model->n_sets) {
        scan_problem(scan, from, "set %" PRIu64 " of %zu", head->set, model->n_sets);
        return;
    }
    from = scan->next;
    head->n_exceptions = scan_varint(scan, "exceptions");
    if (!scan->failed && head->n_exceptions > plane->n_elements)
        scan_problem(scan, from, "%" PRIu64 " exceptions are more than elements", head->n_exceptions);
    if (scan->failed || head->n_exceptions > plane->n_elements)
        return;
    head->n_units = (plane->n_elements + model->unit - 1) / model->unit;
    if (!read_classes(scan, &model->sets[head->set], head) || !read_exceptions(scan, plane, head->n_exceptions))
        return;
    head->is_there = true;
    read_states(scan, head->n_lanes);
    from = scan->next;
    crc = ptwm_crc32c(0, scan->bytes, from);
    if (scan_take_uint(scan, 4, "CRC-32C of the head") != crc && !scan->failed) {
        scan->status = PTWM_ERR_CHECKSUM;
        scan_problem(scan, from, "the CRC-32C of the head does not match");
        scan->status = PTWM_ERR_PLANE;
    }
    scan_field(scan, from, "CRC-32C of the head", "0x%08" PRIx32 " as computed", crc);
    read_words(scan);
}

/* ------------------------------------------------------------------------------------------------- any codec */

static void check_length(struct scan *scan, bool is_right)
{
    if (!is_right)
        scan_problem(scan, scan->next, "%zu bytes are not the length of such a plane", scan_left(scan));
}

void plane_read(const struct dump_tail *tail, uint64_t chunk, uint32_t number, const uint8_t *bytes,
                struct dump_label_head *head, struct dump_problems *problems, const struct scan_sink *sink)
{
    const uint64_t chunk_nbytes = tail_chunk_nbytes(tail, chunk);
    const struct plane plane = { tail, &tail_records(tail, chunk)[number],
                                 chain_plane_nbytes(&tail->chain, number, chunk_nbytes),
                                 chain_n_elements(&tail->chain, chunk_nbytes) };
    const enum ptwm_plane_kind kind = tail->chain.planes[number];
    struct dump_label_head own;
    struct scan scan;

    head = head != NULL ? head : &own;
    memset(head, 0, sizeof *head);
    scan_init(&scan, bytes, (size_t)plane.record->stored_nbytes, plane.record->offset, PTWM_ERR_PLANE, problems, sink);
    snprintf(scan.place, sizeof scan.place, "segment %" PRIu64, tail->number);
    scan_group(&scan, "chunk %" PRIu64 ", plane %" PRIu32 " (%s)", chunk, number, chain_plane_name(kind));
    switch (plane.record->codec) {
    case PTWM_CODEC_IDENTITY:
        check_length(&scan, scan_left(&scan) == plane.raw_nbytes);
        scan_rest(&scan, "bytes as they are");
        break;
    case PTWM_CODEC_CONSTANT:
        check_length(
            &scan,
            scan_left(&scan) ==
                (kind == PTWM_PLANE_LOW || (kind == PTWM_PLANE_SYMBOL && chain_is_wide(&tail->chain)) ? 2u : 1u));
        scan_rest(&scan, "the value of all elements");
        break;
    case PTWM_CODEC_HUFFMAN: read_huffman(&scan); break;
    case PTWM_CODEC_RANS: read_rans(&scan, &plane); break;
    case PTWM_CODEC_ZSTD: read_zstd(&scan); break;
    case PTWM_CODEC_LABEL_RANS:
        if (tail->has_model)
            read_label_rans(&scan, &plane, head);
        break;
    case PTWM_CODEC_TRIM: read_trim(&scan, &plane); break;
    case PTWM_CODEC_CARRIED: scan_rest(&scan, "bytes, but for the first ones"); break;
    default: break;
    }
    scan.failed = false;
    scan_rest(&scan, "not understood");
}
