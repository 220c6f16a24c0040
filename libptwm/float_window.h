/*
 * A window of the fast way through the label chains of floats: nothing is split off and kept. Raw bytes are read to count them,
 * which gives the model, and once more to code them (float_encode.h). What is written is what the planes of window.h would give.
 */
#ifndef PTWM_FLOAT_WINDOW_H
#define PTWM_FLOAT_WINDOW_H

#include "encode_memory.h"
#include "float_split.h"
#include "label_encode.h"
#include "segment_encode.h"

enum { PTWM_FLOAT_BLOCK = 512 }; /* elements whose shifts lie one behind the other */

struct ptwm_float_window {
    const struct ptwm_encode_spec *spec;
    struct ptwm_tail *tail;
    enum ptwm_float_kind kind;
    uint64_t first_chunk, n_chunks;
    uint64_t first_element, n; /* of the window, counted from the segment's start; their number */
    struct ptwm_label_bins bins;
    struct ptwm_bytes shift;      /* of the columns, u16, wrapped and extended so that blocks load straight */
    struct ptwm_bytes histograms; /* of the units, u16, then the second ones; before: rows that shifts are found in */
    struct ptwm_bytes classes;    /* of the units */
    uint32_t set;
    uint64_t symbols_cost_bits;   /* estimate */
    uint64_t entropy_bits;        /* of the symbols, shifted, if they had no classes and tables were free */
    struct ptwm_label_encoder encoder;
};

/* Whether label steps of floats are coded with label rANS, and by such windows. */
static inline bool ptwm_has_float_windows(const struct ptwm_encode_spec *spec)
{
    return !spec->plain && !spec->no_labels &&
           (spec->method == PTWM_METHOD_MICROSCALE || spec->method == PTWM_METHOD_RANS);
}

/* The window's buffers are taken from memory and given back. */
void ptwm_float_window_init(struct ptwm_float_window *window, const struct ptwm_encode_spec *spec,
                            struct ptwm_tail *tail, struct ptwm_encode_memory *memory);
void ptwm_float_window_release(struct ptwm_float_window *window, struct ptwm_encode_memory *memory);

/*
 * Finds the column shifts (in the first window) and a set for n_chunks chunks from first_chunk on, and adds them to the
 * tail's model. *fits is false, and nothing but the shifts is added, if the symbols are too scattered for this; then
 * window.h has to do it.
 */
enum ptwm_status ptwm_float_window_fill(struct ptwm_float_window *window, uint64_t first_chunk, uint64_t n_chunks,
                                        bool *fits, struct ptwm_error *error);

/* ------------------------------------------------------------------------------------------------------- access */

static inline const uint8_t *ptwm_float_raw_at(const struct ptwm_float_window *w, uint64_t element)
{
    return w->spec->data + element * ptwm_float_width(w->kind);
}

static inline size_t ptwm_float_chunk_elements(const struct ptwm_float_window *w, uint64_t chunk)
{
    return ptwm_tail_chunk_nbytes(w->tail, chunk) / ptwm_float_width(w->kind);
}

/* The shifts of PTWM_FLOAT_BLOCK elements from element on, or NULL. */
static inline const uint16_t *ptwm_float_shifts_at(const struct ptwm_float_window *w, uint64_t element)
{
    const uint32_t n_columns = w->tail->model.n_columns;
    return n_columns > 0 ? (const uint16_t *)(const void *)w->shift.data + element % n_columns : NULL;
}

/* The phases of n <= PTWM_FLOAT_BLOCK elements, in a model that has them, each where the element's bin is. */
static inline void ptwm_float_placed_phases(const struct ptwm_float_window *w, uint64_t element, size_t n,
                                            uint8_t *placed)
{
    const struct ptwm_label_model *model = &w->tail->model;
    const uint8_t *phase = model->phase + element % model->n_columns;
    size_t i = 0;

    for (; i + PTWM_PAIR_BLOCK <= n && model->width > 1; i += PTWM_PAIR_BLOCK)
        for (size_t j = 0; j < PTWM_PAIR_BLOCK / 2; j++) {
            placed[i + 2 * j] = phase[i + j];
            placed[i + 2 * j + 1] = phase[i + PTWM_PAIR_BLOCK / 2 + j];
        }
    memcpy(placed + i, phase + i, n - i);
}

#endif
