#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "dump.h"
#include "plane.h"

/* Shapes may be shared, so that a small file can have many of very many dimensions; real ones have fewer than this. */
enum { DIMS_SHOWN = 64 };

static void put_ends(struct json *j, const struct dump *d)
{
    json_open(j, "header", '{');
    json_bool(j, "magic", d->header.magic_is_good);
    json_bool(j, "complete", d->header.is_there);
    json_uint(j, "version", d->header.version);
    json_close(j, '}');
    if (!d->footer.is_there) {
        json_null(j, "footer");
        return;
    }
    json_open(j, "footer", '{');
    json_uint(j, "offset", d->footer.offset);
    json_uint(j, "manifest_offset", d->footer.manifest_offset);
    json_uint(j, "manifest_nbytes", d->footer.manifest_nbytes);
    json_uint(j, "file_nbytes", d->footer.file_nbytes);
    json_hex(j, "manifest_crc", d->footer.manifest_crc, 8);
    json_uint(j, "version", d->footer.version);
    json_close(j, '}');
}

static void put_manifest(struct json *j, const struct dump_manifest *m)
{
    if (m->place.found == DUMP_NOT_FOUND) {
        json_null(j, "manifest");
        return;
    }
    json_open(j, "manifest", '{');
    json_uint(j, "offset", m->place.offset);
    json_uint(j, "nbytes", m->place.nbytes);
    json_string(j, "found_by", m->place.found == DUMP_BY_FOOTER ? "footer" : "search");
    json_hex(j, "crc", m->crc, 8);
    json_string(j, "crc_state", dump_state_name(m->crc_state));
    json_bool(j, "complete", m->is_complete);
    json_uint(j, "n_segments", m->n_segments_claimed);
    json_uint(j, "n_tensors", m->n_tensors_claimed);
    json_maybe(j, "metadata_nbytes", m->metadata_nbytes);
    json_maybe(j, "source_nbytes", m->source_nbytes);
    json_close(j, '}');
}

static void put_tensor(struct json *j, const struct dump_manifest *m, const struct dump_tensor *t)
{
    const char *dtype = t->dtype <= UINT32_MAX ? ptwm_dtype_name((uint32_t)t->dtype) : NULL;

    json_open(j, NULL, '{');
    json_text(j, "name", manifest_name(m, t), t->name_nbytes);
    json_uint(j, "dtype_code", t->dtype);
    if (dtype != NULL)
        json_string(j, "dtype", dtype);
    else
        json_null(j, "dtype");
    if (t->dtype == PTWM_DTYPE_NONE) {
        json_null(j, "shape");
    } else {
        json_open_line(j, "shape");
        for (size_t i = 0; i < t->n_dims && i < DIMS_SHOWN; i++)
            json_uint(j, NULL, m->dims[t->first_dim + i]);
        json_close(j, ']');
        json_uint(j, "n_dims", t->n_dims);
    }
    json_uint(j, "nbytes", t->nbytes);
    json_maybe(j, "segment", t->segment);
    json_uint(j, "segment_offset", t->offset);
    if (t->has_hash)
        json_hex(j, "hash", t->hash, 16);
    else
        json_null(j, "hash");
    json_bool(j, "sound", t->is_sound);
    json_close(j, '}');
}

/* --------------------------------------------------------------------------------------------------- segments */

static void put_model(struct json *j, const struct dump_model *m)
{
    json_open(j, "model", '{');
    json_uint(j, "unit", m->unit);
    json_uint(j, "columns", m->n_columns);
    json_open_line(j, "shifts");
    for (size_t c = 0; c < m->n_columns; c++)
        json_int(j, NULL, m->shift[c]);
    json_close(j, ']');
    json_bool(j, "has_phases", m->phases != NULL);
    if (m->phases != NULL) {
        json_open_line(j, "phases");
        for (size_t c = 0; c < m->n_columns; c++)
            json_uint(j, NULL, scan_bits(m->phases, c, 1));
        json_close(j, ']');
    }
    json_open(j, "sets", '[');
    for (size_t s = 0; s < m->n_sets; s++) {
        json_open(j, NULL, '[');
        for (uint32_t c = 0; c < m->sets[s].n_classes; c++) {
            const struct dump_table *t = &m->tables[m->sets[s].first_table + c];
            json_open(j, NULL, '{');
            json_open_line(j, "symbols");
            for (uint32_t i = 0; i < t->n_labels; i++)
                json_uint(j, NULL, t->symbol[i]);
            json_close(j, ']');
            json_open_line(j, "frequencies");
            for (uint32_t i = 0; i < t->n_labels; i++)
                json_uint(j, NULL, t->frequency[i]);
            json_close(j, ']');
            if (m->phases != NULL) {
                json_open_line(j, "second_frequencies");
                for (uint32_t i = 0; i < t->n_labels; i++)
                    json_uint(j, NULL, t->second[i]);
                json_close(j, ']');
            }
            json_close(j, '}');
        }
        json_close(j, ']');
    }
    json_close(j, ']');
    json_close(j, '}');
}

static void put_label_head(struct json *j, const struct dump_view *view, const struct dump_tail *t, uint64_t chunk,
                           uint32_t plane)
{
    const struct dump_record *r = &tail_records(t, chunk)[plane];
    uint8_t *bytes = view_load(view, r->offset, r->stored_nbytes);
    struct dump_label_head head;

    if (bytes == NULL)
        return;
    plane_read(t, chunk, plane, bytes, &head, NULL, NULL);
    free(bytes); /* only numbers are used from here on */
    if (!head.is_there)
        return;
    json_uint(j, "lanes", head.n_lanes);
    json_uint(j, "set", head.set);
    json_uint(j, "exceptions", head.n_exceptions);
    json_open_line(j, "units_of_class");
    for (uint32_t c = 0; c < t->model.sets[head.set].n_classes; c++)
        json_uint(j, NULL, head.units_of_class[c]);
    json_close(j, ']');
}

static void put_plane(struct json *j, const struct dump_view *view, const struct dump_tail *t, uint64_t chunk,
                      uint32_t plane)
{
    const struct dump_record *r = &tail_records(t, chunk)[plane];
    char buffer[32];

    json_open(j, NULL, '{');
    json_string(j, "kind", chain_plane_name(t->chain.planes[plane]));
    json_string(j, "codec", dump_codec_name(r->codec, buffer));
    json_uint(j, "offset", r->offset);
    json_uint(j, "stored_nbytes", r->stored_nbytes);
    json_uint(j, "raw_nbytes", chain_plane_nbytes(&t->chain, plane, tail_chunk_nbytes(t, chunk)));
    if (r->entropy_nbytes >= 0)
        json_double(j, "order0_nbytes", r->entropy_nbytes);
    if (t->segment.flags & DUMP_CHECKED)
        json_hex(j, "crc", r->crc, 8);
    json_string(j, "state", dump_plane_state_name(r->state));
    if (r->codec == PTWM_CODEC_LABEL_RANS)
        put_label_head(j, view, t, chunk, plane);
    json_close(j, '}');
}

static void put_chunks(struct json *j, const struct dump_view *view, const struct dump_tail *t)
{
    json_open(j, "chunks", '[');
    for (uint64_t i = 0; i < tail_n_known_chunks(t); i++) {
        json_open(j, NULL, '{');
        json_uint(j, "raw_nbytes", tail_chunk_nbytes(t, i));
        json_open(j, "planes", '[');
        for (uint32_t p = 0; p < t->chain.n_planes; p++)
            put_plane(j, view, t, i, p);
        json_close(j, ']');
        json_close(j, '}');
    }
    json_close(j, ']');
}

static void put_tail(struct json *j, struct dump *d, uint64_t number)
{
    struct dump_tail t;
    char text[256];

    dump_load_segment(d, number, &t);
    json_open(j, "tail", '{');
    json_uint(j, "offset", t.offset);
    json_string(j, "crc_state", dump_state_name(t.crc_state));
    json_bool(j, "complete", t.is_complete);
    if (t.has_chain) {
        chain_text(&t.chain, text, sizeof text);
        json_string(j, "chain", text);
        json_bytes(j, "chain_bytes", t.chain_bytes, t.chain_nbytes);
        json_uint(j, "chunk_nbytes", t.chunk_nbytes);
        json_uint(j, "n_chunks", t.n_chunks);
        if (t.has_model)
            put_model(j, &t.model);
        put_chunks(j, &d->view, &t);
    }
    json_close(j, '}');
    tail_release(&t);
}

static void put_segment(struct json *j, struct dump *d, size_t number)
{
    const struct dump_segment *s = &d->manifest.segments[number];

    json_open(j, NULL, '{');
    json_uint(j, "offset", s->offset);
    json_uint(j, "stored_nbytes", s->stored_nbytes);
    json_uint(j, "tail_nbytes", s->tail_nbytes);
    json_uint(j, "raw_nbytes", s->raw_nbytes);
    json_bool(j, "checked", (s->flags & DUMP_CHECKED) != 0);
    json_bool(j, "aligned", (s->flags & DUMP_ALIGNED) != 0);
    json_bool(j, "sound", s->is_sound);
    if (d->is_shown[number])
        put_tail(j, d, number);
    json_close(j, '}');
}

/* --------------------------------------------------------------------------------------------------- the whole */

void report_put_problems(struct json *j, const struct dump_problems *problems)
{
    json_open(j, "problems", '[');
    for (size_t i = 0; i < problems->n_kept; i++) {
        const struct dump_problem *p = &problems->kept[i];
        json_open(j, NULL, '{');
        json_maybe(j, "offset", p->offset);
        json_uint(j, "status", (uint64_t)p->status);
        json_string(j, "kind", ptwm_status_string(p->status));
        json_string(j, "found_by", p->by_library ? "libptwm" : "ptwm-dump");
        json_string(j, "text", p->text);
        json_close(j, '}');
    }
    json_close(j, ']');
    json_uint(j, "more_problems", problems->n_more);
}

void report_print(struct dump *d, FILE *file)
{
    struct json json = json_make(file), *j = &json;

    json_open(j, NULL, '{');
    json_string(j, "path", d->args.path);
    json_uint(j, "nbytes", d->view.nbytes);
    put_ends(j, d);
    put_manifest(j, &d->manifest);
    json_open(j, "segments", '[');
    for (size_t i = 0; i < d->manifest.n_segments; i++)
        put_segment(j, d, i);
    json_close(j, ']');
    json_open(j, "tensors", '[');
    for (size_t i = 0; i < d->manifest.n_tensors; i++)
        put_tensor(j, &d->manifest, &d->manifest.tensors[i]);
    json_close(j, ']');
    report_put_problems(j, &d->problems);
    json_close(j, '}');
}
