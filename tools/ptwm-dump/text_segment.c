#include "text_segment.h"

#include <inttypes.h>
#include <stdlib.h>

#include "dump.h"
#include "plane.h"

enum { CHUNKS_SHOWN = 16, SETS_SHOWN = 4, UNITS_SHOWN = 64, BAR_WIDTH = 40 };

/* ------------------------------------------------------------------------------------------------------- model */

/* The frequencies of all labels as bars, and beside them those in columns of phase 1. */
static void print_table(const struct out *o, const struct dump_table *t, bool has_phases)
{
    const int width = has_phases ? BAR_WIDTH / 2 : BAR_WIDTH;
    uint32_t most = 0;

    for (uint32_t i = 0; i < t->n_labels; i++) {
        most = t->frequency[i] > most ? t->frequency[i] : most;
        most = t->second[i] > most ? t->second[i] : most;
    }
    for (uint32_t i = 0; i < t->n_labels; i++) {
        fprintf(o->file, "    %5u %7.3f%% |", t->symbol[i], t->frequency[i] * 100 / 65536.0);
        if (has_phases) {
            fprintf(o->file, "%*s", width - out_bar(o, t->frequency[i], most, width), "");
            fprintf(o->file, " %7.3f%% |", t->second[i] * 100 / 65536.0);
            out_bar(o, t->second[i], most, width);
        } else {
            out_bar(o, t->frequency[i], most, width);
        }
        fputc('\n', o->file);
    }
}

static void print_sets(const struct out *o, const struct dump_model *m)
{
    const size_t n = o->full || m->n_sets <= SETS_SHOWN ? m->n_sets : SETS_SHOWN;

    for (size_t s = 0; s < n; s++)
        for (uint32_t c = 0; c < m->sets[s].n_classes; c++) {
            const struct dump_table *t = &m->tables[m->sets[s].first_table + c];
            fprintf(o->file, "  set %zu, class %" PRIu32 ": %" PRIu32 " labels, %.3f bits each", s, c, t->n_labels,
                    model_entropy(t->frequency, t->n_labels));
            if (m->phases != NULL)
                fprintf(o->file, ", %.3f in columns of phase 1", model_entropy(t->second, t->n_labels));
            fputc('\n', o->file);
            print_table(o, t, m->phases != NULL);
        }
    if (n < m->n_sets)
        out_styled(o, OUT_FAINT, "  ... %zu more sets (see --full)\n", m->n_sets - n);
}

static void print_phases(const struct out *o, const struct dump_model *m)
{
    size_t n = 0;

    for (size_t c = 0; m->phases != NULL && c < m->n_columns; c++)
        n += scan_bits(m->phases, c, 1);
    if (m->phases != NULL)
        fprintf(o->file, ", %zu of phase 1", n);
    fputc('\n', o->file);
}

static void print_model(const struct out *o, const struct dump_model *m)
{
    fprintf(o->file, "  model: units of %" PRIu64 " elements, %zu columns with shifts, %zu sets of tables\n", m->unit,
            m->n_columns, m->n_sets);
    if (m->n_columns > 0) {
        fprintf(o->file, "  column shifts (%d and %u bits each)", m->base, m->width);
        print_phases(o, m);
        out_plot(o, m->shift, m->n_columns);
    }
    print_sets(o, m);
}

/* ------------------------------------------------------------------------------------------------------ planes */

/* A plane's codecs: how many chunks each stores. */
static void print_codecs(const struct out *o, const struct dump_tail *t, uint32_t plane)
{
    uint64_t n_of[256] = { 0 };
    char buffer[32];

    for (uint64_t i = 0; i < tail_n_known_chunks(t); i++)
        n_of[tail_records(t, i)[plane].codec]++;
    for (unsigned c = 0; c < 256; c++)
        if (n_of[c] > 0)
            fprintf(o->file, " %s (%" PRIu64 ")", dump_codec_name(c, buffer), n_of[c]);
}

static void print_plane(const struct out *o, const struct dump_tail *t, uint32_t plane)
{
    uint64_t raw_nbytes = 0, stored_nbytes = 0;
    double entropy_nbytes = 0;

    for (uint64_t i = 0; i < tail_n_known_chunks(t); i++) {
        const struct dump_record *r = &tail_records(t, i)[plane];
        raw_nbytes += chain_plane_nbytes(&t->chain, plane, tail_chunk_nbytes(t, i));
        stored_nbytes += r->stored_nbytes;
        entropy_nbytes = r->entropy_nbytes < 0 || entropy_nbytes < 0 ? -1 : entropy_nbytes + r->entropy_nbytes;
    }
    fprintf(o->file, "  %5" PRIu32 " %-6s %12" PRIu64 " %12" PRIu64 " %6.3f ", plane,
            chain_plane_name(t->chain.planes[plane]), raw_nbytes, stored_nbytes,
            raw_nbytes > 0 ? (double)stored_nbytes / (double)raw_nbytes : 0.0);
    if (entropy_nbytes >= 0 && tail_n_known_chunks(t) > 0)
        fprintf(o->file, "%12.0f ", entropy_nbytes);
    else
        fprintf(o->file, "%12s ", "-");
    print_codecs(o, t, plane);
    fputc('\n', o->file);
}

static void print_planes(const struct out *o, const struct dump_tail *t)
{
    out_styled(o, OUT_HEADING, "  plane kind            raw       stored  ratio      order-0  codecs (chunks)\n");
    for (uint32_t p = 0; p < t->chain.n_planes; p++)
        print_plane(o, t, p);
}

/* ------------------------------------------------------------------------------------------------------ chunks */

/* The class of each unit, or if they are many, of units evenly picked. */
static void print_classes(const struct out *o, const struct dump_label_head *head)
{
    const uint64_t n = head->n_units < UNITS_SHOWN ? head->n_units : UNITS_SHOWN;

    fprintf(o->file, "; classes ");
    for (uint64_t i = 0; i < n; i++)
        fprintf(o->file, "%" PRIu32, scan_bits(head->classes, i * head->n_units / n, head->class_bits));
}

static void print_label_head(const struct out *o, const struct dump_view *view, const struct dump_tail *t,
                             uint64_t chunk, uint32_t plane)
{
    const struct dump_record *r = &tail_records(t, chunk)[plane];
    uint8_t *bytes = view_load(view, r->offset, r->stored_nbytes);
    struct dump_label_head head;

    if (bytes == NULL)
        return;
    plane_read(t, chunk, plane, bytes, &head, NULL, NULL);
    if (head.is_there) {
        fprintf(o->file, "; %" PRIu32 " lanes, set %" PRIu64 ", %" PRIu64 " exceptions", head.n_lanes, head.set,
                head.n_exceptions);
        if (head.classes != NULL)
            print_classes(o, &head);
    }
    free(bytes);
}

static void print_chunk(const struct out *o, const struct dump_view *view, const struct dump_tail *t, uint64_t chunk)
{
    fprintf(o->file, "  chunk %" PRIu64 ", %" PRIu64 " raw bytes\n", chunk, tail_chunk_nbytes(t, chunk));
    for (uint32_t p = 0; p < t->chain.n_planes; p++) {
        const struct dump_record *r = &tail_records(t, chunk)[p];
        char buffer[32];
        fprintf(o->file, "    %12" PRIu64 " %10" PRIu64 "  %-6s %-10s ", r->offset, r->stored_nbytes,
                chain_plane_name(t->chain.planes[p]), dump_codec_name(r->codec, buffer));
        if (t->segment.flags & DUMP_CHECKED)
            fprintf(o->file, "%08" PRIx32 " ", r->crc);
        out_styled(o, r->state == DUMP_PLANE_BAD || r->state == DUMP_PLANE_UNREADABLE ? OUT_BAD : OUT_GOOD, "%s",
                   dump_plane_state_name(r->state));
        if (r->codec == PTWM_CODEC_LABEL_RANS)
            print_label_head(o, view, t, chunk, p);
        fputc('\n', o->file);
    }
}

static void print_chunks(const struct out *o, const struct dump_view *view, const struct dump_tail *t)
{
    const uint64_t known = tail_n_known_chunks(t), n = o->full || known <= CHUNKS_SHOWN ? known : CHUNKS_SHOWN;

    for (uint64_t i = 0; i < n; i++)
        print_chunk(o, view, t, i);
    if (n < known)
        out_styled(o, OUT_FAINT, "  ... %" PRIu64 " more chunks (see --full)\n", known - n);
    if (known < t->n_chunks)
        out_styled(o, OUT_BAD, "  %" PRIu64 " chunks cannot be placed\n", t->n_chunks - known);
}

void text_segment_print(const struct out *o, const struct dump_view *view, const struct dump_tail *t)
{
    char text[256];

    if (t->bytes == NULL) {
        out_styled(o, OUT_BAD, "  cannot be read\n");
        return;
    }
    fprintf(o->file, "  tail at %" PRIu64 ", %" PRIu64 " bytes, CRC-32C ", t->offset, t->segment.tail_nbytes);
    out_styled(o, t->crc_state == DUMP_BAD ? OUT_BAD : OUT_GOOD, "%s\n", dump_state_name(t->crc_state));
    if (!t->has_chain) {
        out_styled(o, OUT_BAD, "  what follows cannot be understood\n");
        return;
    }
    chain_text(&t->chain, text, sizeof text);
    fprintf(o->file, "  chain: %s; %" PRIu64 " chunks of %" PRIu64 " bytes\n", text, t->n_chunks, t->chunk_nbytes);
    if (t->has_model)
        print_model(o, &t->model);
    print_planes(o, t);
    print_chunks(o, view, t);
}
