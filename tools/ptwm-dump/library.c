#include "library.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

void library_open(struct dump_view *view, struct dump_library *library, struct dump_problems *problems)
{
    const struct ptwm_error none = PTWM_ERROR_INIT;

    library->source = view_source(view);
    library->reader = NULL;
    library->refusal = none;
    if (ptwm_reader_open_source(&library->source, NULL, &library->reader, &library->refusal) != PTWM_OK) {
        library->reader = NULL;
        problem_add_error(problems, "opening", &library->refusal);
    }
}

void library_close(struct dump_library *library)
{
    ptwm_reader_close(library->reader);
    library->reader = NULL;
}

/* Raw bytes that the segments declare, whoever names them; PTWM_NONE if there are more than that can say. */
static uint64_t declared_nbytes(const struct ptwm_reader *reader)
{
    struct ptwm_segment_info info;
    uint64_t sum = 0;

    info.struct_nbytes = sizeof info;
    for (uint64_t i = 0; ptwm_reader_get_segment(reader, i, &info) == PTWM_OK; i++) {
        if (info.raw_nbytes >= PTWM_NONE - sum)
            return PTWM_NONE;
        sum += info.raw_nbytes;
    }
    return sum;
}

void library_verify(const struct dump_library *library, uint64_t max_nbytes, struct dump_problems *problems)
{
    struct ptwm_error error = PTWM_ERROR_INIT;
    uint64_t nbytes;

    if (library->reader == NULL)
        return;
    nbytes = declared_nbytes(library->reader);
    if (nbytes > max_nbytes) {
        problem_add(problems, PTWM_ERR_LIMIT, PTWM_NONE,
                    "%" PRIu64 " raw bytes are not decoded: more than %" PRIu64 " (see --max-nbytes)", nbytes,
                    max_nbytes);
        return;
    }
    if (ptwm_reader_verify(library->reader, 1, &error) != PTWM_OK)
        problem_add_error(problems, "verifying", &error);
}

static double entropy_nbytes(const uint32_t *counts, size_t n_counts, uint64_t n)
{
    double bits = 0;

    for (size_t i = 0; i < n_counts; i++)
        if (counts[i] > 0)
            bits += counts[i] * log2((double)n / counts[i]);
    return bits / 8;
}

/* counts: 32768 values, the most that a symbol can be. */
static double measure(const uint8_t *plane, uint64_t nbytes, bool is_wide, uint32_t *counts)
{
    if (is_wide) {
        memset(counts, 0, 32768 * sizeof *counts);
        for (uint64_t i = 0; i + 1 < nbytes; i += 2)
            counts[scan_load(plane + i, 2) & 32767]++;
        return entropy_nbytes(counts, 32768, nbytes / 2);
    }
    memset(counts, 0, 256 * sizeof *counts);
    for (uint64_t i = 0; i < nbytes; i++)
        counts[plane[i]]++;
    return entropy_nbytes(counts, 256, nbytes);
}

/* The two bytes of low halves are different things: each has its own statistics. */
static double measure_low(const uint8_t *plane, uint64_t nbytes, uint32_t *counts)
{
    double sum = 0;

    for (uint64_t first = 0; first < 2; first++) {
        memset(counts, 0, 256 * sizeof *counts);
        for (uint64_t i = first; i < nbytes; i += 2)
            counts[plane[i]]++;
        sum += entropy_nbytes(counts, 256, nbytes / 2);
    }
    return sum;
}

static void measure_chunk(struct dump_tail *t, uint64_t chunk, const uint8_t *planes, uint32_t *counts)
{
    for (uint32_t p = 0; p < t->chain.n_planes; p++) {
        const uint64_t nbytes = chain_plane_nbytes(&t->chain, p, tail_chunk_nbytes(t, chunk));
        const enum ptwm_plane_kind kind = t->chain.planes[p];
        tail_records(t, chunk)[p].entropy_nbytes =
            kind == PTWM_PLANE_LOW
                ? measure_low(planes, nbytes, counts)
                : measure(planes, nbytes, kind == PTWM_PLANE_SYMBOL && chain_is_wide(&t->chain), counts);
        planes += nbytes;
    }
}

static void measure_layout(const struct ptwm_layout *layout, struct dump_tail *t, uint32_t *counts,
                           struct dump_problems *problems)
{
    for (uint64_t i = 0; i < tail_n_known_chunks(t); i++) {
        struct ptwm_error error = PTWM_ERROR_INIT;
        uint64_t nbytes = 0;
        uint8_t *planes;

        for (uint32_t p = 0; p < t->chain.n_planes; p++)
            nbytes += chain_plane_nbytes(&t->chain, p, tail_chunk_nbytes(t, i));
        planes = malloc((size_t)nbytes); /* at most a few chunks, whose size is limited */
        if (planes == NULL)
            return;
        if (ptwm_layout_decode_planes(layout, i, planes, nbytes, &error) == PTWM_OK)
            measure_chunk(t, i, planes, counts);
        else
            problem_add_error(problems, "decoding", &error);
        free(planes);
    }
}

void library_measure(const struct dump_library *library, struct dump_tail *t, struct dump_problems *problems)
{
    struct ptwm_error error = PTWM_ERROR_INIT;
    struct ptwm_layout *layout;
    uint32_t *counts;

    if (library->reader == NULL)
        return;
    if (ptwm_reader_get_layout(library->reader, t->number, &layout, &error) != PTWM_OK) {
        problem_add_error(problems, "decoding", &error);
        return;
    }
    counts = malloc(32768 * sizeof *counts);
    if (counts != NULL)
        measure_layout(layout, t, counts, problems);
    free(counts);
    ptwm_layout_free(layout);
}
