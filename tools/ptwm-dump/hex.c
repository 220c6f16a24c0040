#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "dump.h"
#include "plane.h"

enum { LINE_NBYTES = 16, LINES_SHOWN = 4 };

/* Bytes begin .. end - 1 of the file, and how they are shown. */
struct hex {
    struct dump *dump;
    struct out out;
    struct json json;
    uint64_t begin, end;
    uint64_t next;  /* up to here, all of the range has been shown */
    char group[96]; /* whose heading was printed last */
};

/* ------------------------------------------------------------------------------------------------------- fields */

static void print_line(const struct hex *h, uint64_t offset, const uint8_t *bytes, size_t n)
{
    out_styled(&h->out, OUT_FAINT, "%12" PRIu64 " ", offset);
    for (size_t i = 0; i < LINE_NBYTES; i++)
        if (i < n)
            fprintf(h->out.file, " %02x", bytes[i]);
        else
            fputs("   ", h->out.file);
}

static void print_lines(const struct hex *h, const struct scan_field *f)
{
    uint64_t n_shown = f->nbytes, offset = f->offset;

    if (!h->out.full && n_shown > LINES_SHOWN * LINE_NBYTES)
        n_shown = LINES_SHOWN * LINE_NBYTES;
    for (uint64_t left = n_shown; left > 0 || offset == f->offset;) {
        uint8_t bytes[LINE_NBYTES];
        const size_t n = left < LINE_NBYTES ? (size_t)left : LINE_NBYTES;
        const bool is_first = offset == f->offset;

        if (!view_read(&h->dump->view, offset, bytes, n))
            break;
        print_line(h, offset, bytes, n);
        if (is_first) {
            fputs("  ", h->out.file);
            out_styled(&h->out, OUT_NAME, "%s", f->name);
            fprintf(h->out.file, "%s%s", f->value[0] != 0 ? ": " : "", f->value);
        }
        fputc('\n', h->out.file);
        offset += n;
        left -= n;
        if (n == 0)
            break;
    }
    if (n_shown < f->nbytes)
        out_styled(&h->out, OUT_FAINT, "%12s ... %" PRIu64 " more (see --full)\n", "", f->nbytes - n_shown);
}

static void show(struct hex *h, const struct scan_field *f)
{
    if (h->dump->args.json) {
        json_open(&h->json, NULL, '{');
        json_uint(&h->json, "offset", f->offset);
        json_uint(&h->json, "nbytes", f->nbytes);
        json_string(&h->json, "group", f->group);
        json_string(&h->json, "name", f->name);
        json_string(&h->json, "value", f->value);
        json_close(&h->json, '}');
        return;
    }
    if (strcmp(h->group, f->group) != 0) {
        snprintf(h->group, sizeof h->group, "%s", f->group);
        out_styled(&h->out, OUT_HEADING, "%s\n", f->group);
    }
    print_lines(h, f);
}

/* What lies between the fields, if it is in the range. */
static void show_gap(struct hex *h, uint64_t end)
{
    const struct scan_field gap = { h->next, end - h->next, "no part of the file", "nothing describes these bytes",
                                    "" };

    if (end > h->next) {
        show(h, &gap);
        h->next = end;
    }
}

static void take(void *context, const struct scan_field *f)
{
    struct hex *h = context;

    if (f->offset >= h->end || f->offset + f->nbytes <= h->begin)
        return;
    show_gap(h, f->offset);
    show(h, f);
    if (f->offset + f->nbytes > h->next)
        h->next = f->offset + f->nbytes;
}

static void take_padding(struct hex *h, uint64_t segment, uint64_t begin, uint64_t end)
{
    char group[48];
    const struct scan_field padding = { begin, end - begin, group, "padding", "" };

    snprintf(group, sizeof group, "segment %" PRIu64, segment);
    if (end > begin)
        take(h, &padding);
}

/* -------------------------------------------------------------------------------------------------------- parts */

static bool touches(const struct hex *h, uint64_t begin, uint64_t end)
{
    return begin < h->end && end > h->begin;
}

static void walk_planes(struct hex *h, const struct dump_tail *t, const struct scan_sink *sink)
{
    uint64_t position = t->segment.offset;

    for (uint64_t i = 0; i < tail_n_known_chunks(t); i++) {
        take_padding(h, t->number, position, tail_records(t, i)[0].offset);
        for (uint32_t p = 0; p < t->chain.n_planes; p++) {
            const struct dump_record *r = &tail_records(t, i)[p];
            position = r->offset + r->stored_nbytes;
            if (touches(h, r->offset, position)) {
                uint8_t *bytes = view_load(&h->dump->view, r->offset, r->stored_nbytes);
                if (bytes != NULL)
                    plane_read(t, i, p, bytes, NULL, &h->dump->problems, sink);
                free(bytes);
            }
        }
    }
}

static void walk_segment(struct hex *h, uint64_t number, const struct scan_sink *sink)
{
    struct dump *d = h->dump;
    const struct dump_segment *s = &d->manifest.segments[number];
    struct dump_tail tail;

    if (!s->is_sound || !touches(h, s->offset - s->padding_nbytes, s->offset + s->stored_nbytes))
        return;
    take_padding(h, number, s->offset - s->padding_nbytes, s->offset);
    tail_read(&d->view, &d->manifest, number, &tail, &d->problems, NULL);
    walk_planes(h, &tail, sink);
    tail_release(&tail);
    tail_read(&d->view, &d->manifest, number, &tail, NULL, sink);
    tail_release(&tail);
}

static void walk(struct hex *h)
{
    struct dump *d = h->dump;
    const struct scan_sink sink = { take, h };
    struct dump_manifest again;
    struct dump_header header;

    header_read(&d->view, &header, NULL, &sink);
    for (uint64_t i = 0; i < d->manifest.n_segments; i++)
        walk_segment(h, i, &sink);
    if (touches(h, d->manifest.place.offset, d->manifest.place.offset + d->manifest.place.nbytes)) {
        manifest_read(&d->view, &d->footer, d->manifest.place, &again, NULL, &sink);
        manifest_release(&again);
    }
    footer_scan(&d->view, &d->footer, &sink);
    show_gap(h, h->end);
}

/* Up to three numbers behind colons. Returns how many there are, -1 for anything else. */
static int parse_numbers(const char *text, uint64_t numbers[3])
{
    int n = 0;

    for (; *text == ':'; n++) {
        char digits[24];
        const size_t length = strcspn(text + 1, ":");
        if (n == 3 || length >= sizeof digits)
            return -1;
        memcpy(digits, text + 1, length);
        digits[length] = 0;
        if (!args_number(digits, &numbers[n]))
            return -1;
        text += 1 + length;
    }
    return *text == 0 ? n : -1;
}

static bool set_range(struct hex *h, uint64_t offset, uint64_t nbytes)
{
    h->begin = h->next = offset;
    h->end = offset + nbytes;
    return true;
}

/* A part of a segment: its number, then perhaps those of a chunk and a plane. */
static bool find_in_segment(struct hex *h, const char *kind, size_t kind_length, const uint64_t *numbers, int n)
{
    struct dump *d = h->dump;
    const struct dump_segment *s = numbers[0] < d->manifest.n_segments ? &d->manifest.segments[numbers[0]] : NULL;
    const bool is_chunk = kind_length == 5 && memcmp(kind, "chunk", 5) == 0 && n == 2;
    const bool is_plane = kind_length == 5 && memcmp(kind, "plane", 5) == 0 && n == 3;
    struct dump_tail tail;
    bool is_found = false;

    if (s == NULL || !s->is_sound)
        return false;
    if (kind_length == 7 && memcmp(kind, "segment", 7) == 0 && n == 1)
        return set_range(h, s->offset, s->stored_nbytes);
    if (kind_length == 4 && memcmp(kind, "tail", 4) == 0 && n == 1)
        return set_range(h, s->offset + s->stored_nbytes - s->tail_nbytes, s->tail_nbytes);
    if (!is_chunk && !is_plane)
        return false;
    tail_read(&d->view, &d->manifest, numbers[0], &tail, NULL, NULL);
    if (numbers[1] < tail_n_known_chunks(&tail) && (is_chunk || numbers[2] < tail.chain.n_planes)) {
        const struct dump_record *records = tail_records(&tail, numbers[1]);
        const struct dump_record *first = &records[is_plane ? numbers[2] : 0];
        const struct dump_record *last = is_plane ? first : &records[tail.chain.n_planes - 1];
        is_found = set_range(h, first->offset, last->offset + last->stored_nbytes - first->offset);
    }
    tail_release(&tail);
    return is_found;
}

static bool find_part(struct hex *h, const char *part)
{
    const struct dump *d = h->dump;
    const size_t kind_length = strcspn(part, ":");
    const char *plus = strchr(part, '+');
    uint64_t numbers[3] = { 0 };
    char offset[24];
    int n;

    if (strcmp(part, "all") == 0)
        return set_range(h, 0, d->view.nbytes);
    if (strcmp(part, "header") == 0)
        return set_range(h, 0, d->view.nbytes < DUMP_HEADER_NBYTES ? d->view.nbytes : DUMP_HEADER_NBYTES);
    if (strcmp(part, "footer") == 0)
        return d->footer.is_there && set_range(h, d->footer.offset, DUMP_FOOTER_NBYTES);
    if (strcmp(part, "manifest") == 0)
        return d->manifest.place.found != DUMP_NOT_FOUND &&
               set_range(h, d->manifest.place.offset, d->manifest.place.nbytes);
    if (plus != NULL && (size_t)(plus - part) < sizeof offset) {
        memcpy(offset, part, (size_t)(plus - part));
        offset[plus - part] = 0;
        return args_number(offset, &numbers[0]) && args_number(plus + 1, &numbers[1]) && numbers[0] <= d->view.nbytes &&
               numbers[1] <= d->view.nbytes - numbers[0] && set_range(h, numbers[0], numbers[1]);
    }
    n = parse_numbers(part + kind_length, numbers);
    return n > 0 && find_in_segment(h, part, kind_length, numbers, n);
}

bool hex_print(struct dump *d, FILE *file, FILE *errors)
{
    struct hex h = { 0 };

    h.dump = d;
    h.out = out_make(file, d->args.full);
    h.json = json_make(file);
    if (!find_part(&h, d->args.part)) {
        fprintf(errors, "ptwm-dump: there is no part %s in this file (see --help)\n", d->args.part);
        return false;
    }
    if (d->args.json) {
        json_open(&h.json, NULL, '{');
        json_open(&h.json, "fields", '[');
    }
    walk(&h);
    if (d->args.json) {
        json_close(&h.json, ']');
        report_put_problems(&h.json, &d->problems);
        json_close(&h.json, '}');
    } else if (problem_is_any(&d->problems)) {
        text_print_problems(&h.out, d);
    }
    return true;
}
