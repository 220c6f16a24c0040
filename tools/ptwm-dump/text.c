#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "dump.h"
#include "text_segment.h"

/* A list of more than this is cut, unless everything is to be shown. */
enum { LIST_LENGTH = 40, DIMS_SHOWN = 12 };

static void print_state(const struct out *o, enum dump_state state)
{
    out_styled(o,
               state == DUMP_BAD    ? OUT_BAD
               : state == DUMP_GOOD ? OUT_GOOD
                                    : OUT_FAINT,
               "%s", dump_state_name(state));
}

static void print_ends(const struct out *o, const struct dump *d)
{
    out_styled(o, OUT_HEADING, "header");
    if (d->header.is_foreign)
        fprintf(o->file, "    of another format that is called PTWM\n");
    else if (!d->header.magic_is_good)
        fprintf(o->file, "    no magic number of a .ptwm file\n");
    else if (!d->header.is_there)
        fprintf(o->file, "    cut short\n");
    else
        fprintf(o->file, "    version %" PRIu32 "\n", d->header.version);
    out_styled(o, OUT_HEADING, "footer");
    if (d->footer.is_there)
        fprintf(o->file,
                "    at %" PRIu64 ": version %" PRIu32 ", file of %" PRIu64 " bytes, manifest of %" PRIu64
                " at %" PRIu64 "\n",
                d->footer.offset, d->footer.version, d->footer.file_nbytes, d->footer.manifest_nbytes,
                d->footer.manifest_offset);
    else
        fprintf(o->file, "    not found\n");
}

static void print_manifest(const struct out *o, const struct dump_manifest *m)
{
    out_styled(o, OUT_HEADING, "manifest");
    if (m->place.found == DUMP_NOT_FOUND) {
        fprintf(o->file, "  not found\n");
        return;
    }
    fprintf(o->file, "  at %" PRIu64 ", %" PRIu64 " bytes%s, CRC-32C ", m->place.offset, m->place.nbytes,
            m->place.found == DUMP_BY_SEARCH ? " (found by searching)" : "");
    print_state(o, m->crc_state);
    fprintf(o->file, "; %zu segments, %zu tensors", m->n_segments, m->n_tensors);
    if (!m->is_complete)
        out_styled(o, OUT_BAD, ", not read to its end");
    if (m->metadata_nbytes != PTWM_NONE)
        fprintf(o->file, ", %" PRIu64 " bytes of metadata", m->metadata_nbytes);
    if (m->source_nbytes != PTWM_NONE)
        fprintf(o->file, ", %" PRIu64 " bytes of source", m->source_nbytes);
    fputc('\n', o->file);
}

static void print_more(const struct out *o, size_t n)
{
    out_styled(o, OUT_FAINT, "  ... %zu more (see --full)\n", n);
}

static void print_segments(const struct out *o, const struct dump_manifest *m)
{
    const size_t n = o->full || m->n_segments <= LIST_LENGTH ? m->n_segments : LIST_LENGTH;

    if (n == 0)
        return;
    out_styled(o, OUT_HEADING, "\nsegment       offset       stored     tail          raw  ratio  flags\n");
    for (size_t i = 0; i < n; i++) {
        const struct dump_segment *s = &m->segments[i];
        fprintf(o->file, "%7zu %12" PRIu64 " %12" PRIu64 " %8" PRIu64 " %12" PRIu64 " %6.3f%s%s", i, s->offset,
                s->stored_nbytes, s->tail_nbytes, s->raw_nbytes,
                s->raw_nbytes > 0 ? (double)s->stored_nbytes / (double)s->raw_nbytes : 0.0,
                s->flags & DUMP_CHECKED ? "  checked" : "", s->flags & DUMP_ALIGNED ? "  aligned" : "");
        if (!s->is_sound)
            out_styled(o, OUT_BAD, " impossible");
        fputc('\n', o->file);
    }
    if (n < m->n_segments)
        print_more(o, m->n_segments - n);
}

static void print_shape(const struct out *o, const struct dump_manifest *m, const struct dump_tensor *t)
{
    /* Shapes may be shared: many tensors with one of very many dimensions must not fill the disk. */
    const size_t n = t->n_dims < DIMS_SHOWN ? t->n_dims : DIMS_SHOWN;

    fputc('[', o->file);
    for (size_t i = 0; i < n; i++)
        fprintf(o->file, "%s%" PRIu64, i > 0 ? ", " : "", m->dims[t->first_dim + i]);
    if (n < t->n_dims)
        fprintf(o->file, ", ... %zu dimensions", t->n_dims);
    fputc(']', o->file);
}

static void print_tensor(const struct out *o, const struct dump_manifest *m, size_t i)
{
    const struct dump_tensor *t = &m->tensors[i];
    char buffer[32];

    fprintf(o->file, "%6zu  ", i);
    out_quoted(o, OUT_NAME, manifest_name(m, t), t->name_nbytes);
    if (t->dtype != PTWM_DTYPE_NONE) {
        fprintf(o->file, " %s ", dump_dtype_name(t->dtype, buffer));
        print_shape(o, m, t);
    }
    fprintf(o->file, " %" PRIu64 " bytes", t->nbytes);
    if (t->segment != PTWM_NONE)
        fprintf(o->file, " at %" PRIu64 " of segment %" PRIu64, t->offset, t->segment);
    if (t->has_hash)
        fprintf(o->file, ", XXH3-64 %016" PRIx64, t->hash);
    if (!t->is_sound)
        out_styled(o, OUT_BAD, " impossible");
    fputc('\n', o->file);
}

static void print_tensors(const struct out *o, const struct dump_manifest *m)
{
    const size_t n = o->full || m->n_tensors <= LIST_LENGTH ? m->n_tensors : LIST_LENGTH;

    if (n == 0)
        return;
    out_styled(o, OUT_HEADING, "\ntensor\n");
    for (size_t i = 0; i < n; i++)
        print_tensor(o, m, i);
    if (n < m->n_tensors)
        print_more(o, m->n_tensors - n);
}

/* Which tensors a segment has, for all of them: looking them up for each segment would take the product of both. */
struct entry {
    uint64_t segment;
    size_t tensor;
};

static int compare_entries(const void *a, const void *b)
{
    const struct entry *x = a, *y = b;

    if (x->segment != y->segment)
        return x->segment < y->segment ? -1 : 1;
    return x->tensor < y->tensor ? -1 : x->tensor > y->tensor;
}

static struct entry *sort_tensors(const struct dump_manifest *m)
{
    struct entry *entries = malloc((m->n_tensors + 1) * sizeof *entries);

    for (size_t i = 0; entries != NULL && i < m->n_tensors; i++) {
        entries[i].segment = m->tensors[i].segment;
        entries[i].tensor = i;
    }
    if (entries != NULL)
        qsort(entries, m->n_tensors, sizeof *entries, compare_entries);
    return entries;
}

static void print_shown_segment(const struct out *o, struct dump *d, size_t number, const struct entry *entries,
                                size_t n)
{
    struct dump_tail tail;

    out_styled(o, OUT_HEADING, "\nsegment %zu\n", number);
    for (size_t i = 0; i < n && (i < LIST_LENGTH || o->full); i++)
        print_tensor(o, &d->manifest, entries[i].tensor);
    if (n > LIST_LENGTH && !o->full)
        print_more(o, n - LIST_LENGTH);
    dump_load_segment(d, number, &tail);
    text_segment_print(o, &d->view, &tail);
    tail_release(&tail);
}

static void print_shown_segments(const struct out *o, struct dump *d)
{
    struct entry *entries = sort_tensors(&d->manifest);
    size_t first = 0, n;

    if (entries == NULL)
        return;
    for (size_t i = 0; i < d->manifest.n_segments; i++, first += n) {
        for (n = 0; first + n < d->manifest.n_tensors && entries[first + n].segment == i;)
            n++;
        if (d->is_shown[i])
            print_shown_segment(o, d, i, entries + first, n);
    }
    free(entries);
}

void text_print_problems(const struct out *o, const struct dump *d)
{
    const struct dump_problems *p = &d->problems;

    if (!problem_is_any(p)) {
        out_styled(o, OUT_GOOD, "\nnothing wrong%s\n", d->args.check ? "" : " with what was looked at (see --check)");
        return;
    }
    out_styled(o, OUT_BAD, "\nwrong\n");
    for (size_t i = 0; i < p->n_kept; i++) {
        const struct dump_problem *q = &p->kept[i];
        if (q->offset != PTWM_NONE)
            fprintf(o->file, "  at %" PRIu64 ": ", q->offset);
        else
            fprintf(o->file, "  ");
        fprintf(o->file, "%s: %s%s\n", ptwm_status_string(q->status), q->by_library ? "libptwm: " : "", q->text);
    }
    if (p->n_more > 0)
        fprintf(o->file, "  ... and %" PRIu64 " more\n", p->n_more);
}

void text_print(struct dump *d, FILE *file)
{
    const struct out out = out_make(file, d->args.full), *o = &out;
    const bool is_overview = d->args.n_tensors == 0 && d->args.segment == PTWM_NONE;

    out_quoted(o, OUT_NAME, d->args.path, strlen(d->args.path));
    fprintf(file, " %" PRIu64 " bytes\n", d->view.nbytes);
    print_ends(o, d);
    print_manifest(o, &d->manifest);
    if (is_overview) {
        print_segments(o, &d->manifest);
        print_tensors(o, &d->manifest);
    }
    print_shown_segments(o, d);
    text_print_problems(o, d);
}
