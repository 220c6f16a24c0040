#include "dump.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"

/* What may be decoded unless the user says otherwise: what any sound file of its size is far below, but for one of
 * zeros. */
static uint64_t max_nbytes(const struct dump *d)
{
    const uint64_t least = (uint64_t)64 << 30;

    if (d->args.max_nbytes != 0)
        return d->args.max_nbytes;
    return d->view.nbytes > least / 16 ? (d->view.nbytes < UINT64_MAX / 16 ? 16 * d->view.nbytes : UINT64_MAX) : least;
}

/* ----------------------------------------------------------------------------------------------- what is shown */

/* The tensor with a name, or #N; PTWM_NONE if there is none. */
static uint64_t find_tensor(const struct dump_manifest *m, const char *name)
{
    const size_t nbytes = strlen(name);
    uint64_t number;

    for (size_t i = 0; i < m->n_tensors; i++)
        if (m->tensors[i].name_nbytes == nbytes &&
            (nbytes == 0 || memcmp(manifest_name(m, &m->tensors[i]), name, nbytes) == 0))
            return i;
    if (name[0] == '#' && args_number(name + 1, &number) && number < m->n_tensors)
        return number;
    return PTWM_NONE;
}

/* Marks the segments that are to be shown in detail; false if something is not in the file. */
static bool choose_segments(struct dump *d, FILE *errors)
{
    const struct dump_manifest *m = &d->manifest;
    bool are_there = true;

    for (size_t i = 0; i < m->n_segments; i++)
        d->is_shown[i] = d->args.all || i == d->args.segment;
    if (d->args.segment != PTWM_NONE && d->args.segment >= m->n_segments) {
        fprintf(errors, "ptwm-dump: there is no segment %" PRIu64 "\n", d->args.segment);
        are_there = false;
    }
    for (int i = 0; i < d->args.n_tensors; i++) {
        const uint64_t tensor = find_tensor(m, d->args.tensors[i]);
        if (tensor == PTWM_NONE) {
            fprintf(errors, "ptwm-dump: there is no tensor %s\n", d->args.tensors[i]);
            are_there = false;
        } else if (m->tensors[tensor].segment < m->n_segments) {
            d->is_shown[m->tensors[tensor].segment] = true;
        }
    }
    return are_there;
}

void dump_load_segment(struct dump *d, uint64_t number, struct dump_tail *tail)
{
    const uint64_t limit = max_nbytes(d);

    tail_read(&d->view, &d->manifest, number, tail, &d->problems, NULL);
    check_segment(&d->view, tail, &d->problems);
    if (!d->args.entropy || !tail->is_complete)
        return;
    if (tail->segment.raw_nbytes > limit - d->decoded_nbytes) {
        problem_add(&d->problems, PTWM_ERR_LIMIT, tail->segment.offset,
                    "segment %" PRIu64 " is not decoded: more than %" PRIu64 " bytes in all (see --max-nbytes)", number,
                    limit);
        return;
    }
    d->decoded_nbytes += tail->segment.raw_nbytes;
    library_measure(&d->library, tail, &d->problems);
}

/* Checks what is not shown in detail, and would not be checked on that occasion. */
static void check_all(struct dump *d)
{
    for (size_t i = 0; i < d->manifest.n_segments; i++) {
        struct dump_tail tail;
        if (d->is_shown[i])
            continue;
        tail_read(&d->view, &d->manifest, i, &tail, &d->problems, NULL);
        check_segment(&d->view, &tail, &d->problems);
        tail_release(&tail);
    }
    library_verify(&d->library, max_nbytes(d), &d->problems);
}

/* --------------------------------------------------------------------------------------------------- the program */

static void read_file(struct dump *d)
{
    header_read(&d->view, &d->header, &d->problems, NULL);
    if (d->header.is_foreign || !d->header.magic_is_good) {
        /* Nothing that follows can mean anything, unless the header alone is damaged. */
        struct dump_problems others = { 0 };
        footer_read(&d->view, &d->footer, &others);
        if (!d->footer.is_there)
            return;
    }
    footer_read(&d->view, &d->footer, &d->problems);
    manifest_read(&d->view, &d->footer, manifest_find(&d->view, &d->footer, &d->problems), &d->manifest, &d->problems,
                  NULL);
}

static int show(struct dump *d, FILE *out, FILE *errors)
{
    bool is_there;

    read_file(d);
    library_open(&d->view, &d->library, &d->problems);
    d->is_shown = calloc(d->manifest.n_segments + 1, sizeof *d->is_shown);
    if (d->is_shown == NULL) {
        fprintf(errors, "ptwm-dump: out of memory\n");
        return 1;
    }
    is_there = choose_segments(d, errors);
    if (d->args.check)
        check_all(d);
    if (d->args.part != NULL)
        is_there = hex_print(d, out, errors) && is_there;
    else if (d->args.json)
        report_print(d, out);
    else
        text_print(d, out);
    return is_there && !problem_is_any(&d->problems) ? 0 : 1;
}

static void release(struct dump *d)
{
    library_close(&d->library);
    manifest_release(&d->manifest);
    free(d->is_shown);
    view_close(&d->view);
    free(d);
}

int dump_run(int argc, char **argv, FILE *out, FILE *errors)
{
    struct dump *d = calloc(1, sizeof *d);
    int status = 2, os_error;

    if (d == NULL)
        return 1;
    if (!args_parse(argc, argv, &d->args, errors)) {
        free(d);
        return status;
    }
    if (d->args.help || d->args.version) {
        fputs(d->args.help ? args_usage : ptwm_version(), out);
        fputs(d->args.help ? "" : "\n", out);
        free(d);
        return 0;
    }
    os_error = view_open(&d->view, d->args.path);
    if (os_error != 0) {
        fprintf(errors, "ptwm-dump: %s: %s\n", d->args.path, strerror(os_error));
        status = 1;
    } else {
        status = show(d, out, errors);
    }
    release(d);
    if (fflush(out) != 0 || ferror(out)) {
        fprintf(errors, "ptwm-dump: writing failed\n");
        status = 1;
    }
    return status;
}

/* ----------------------------------------------------------------------------------------------------- names */

const char *dump_state_name(enum dump_state state)
{
    return state == DUMP_GOOD ? "good" : state == DUMP_BAD ? "bad" : "unknown";
}

const char *dump_plane_state_name(enum dump_plane_state state)
{
    switch (state) {
    case DUMP_PLANE_NO_CRC: return "no CRC";
    case DUMP_PLANE_GOOD: return "good";
    case DUMP_PLANE_BAD: return "bad";
    case DUMP_PLANE_UNREADABLE: return "unreadable";
    default: return "unchecked";
    }
}

const char *dump_dtype_name(uint64_t dtype, char buffer[32])
{
    const char *name = dtype <= UINT32_MAX ? ptwm_dtype_name((uint32_t)dtype) : NULL;

    if (name != NULL)
        return name;
    snprintf(buffer, 32, dtype == 0 ? "none" : "dtype %" PRIu64, dtype);
    return buffer;
}

const char *dump_codec_name(unsigned codec, char buffer[32])
{
    const char *name = ptwm_codec_name(codec);

    if (name != NULL)
        return name;
    snprintf(buffer, 32, "codec %u", codec);
    return buffer;
}
