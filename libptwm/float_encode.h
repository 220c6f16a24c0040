/*
 * The fast way through a window for the label chains of floats: nothing is split off and kept. Raw bytes are read to
 * count them and once more to code them; what is written is what the planes of window.h would give.
 */
#ifndef PTWM_FLOAT_ENCODE_H
#define PTWM_FLOAT_ENCODE_H

#include "float_split.h"
#include "label_encode.h"
#include "segment_encode.h"

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

/* Memory that coding a chunk takes, one for each thread. Begin with ptwm_float_scratch_init. */
struct ptwm_float_scratch {
    struct ptwm_bytes labels, words, exceptions, listed, plane;
};
void ptwm_float_scratch_init(struct ptwm_float_scratch *scratch, const struct ptwm_allocator *allocator);
void ptwm_float_scratch_release(struct ptwm_float_scratch *scratch);

/*
 * Memory that is kept from one segment to the next, as fresh pages cost as much as coding what they will hold: scratch,
 * the buffers of a window and those of two chunks' results. One for each thread that encodes segments.
 */
struct ptwm_encode_memory {
    struct ptwm_float_scratch scratch;
    struct ptwm_bytes shift, histograms, classes;
    struct ptwm_bytes stored[2]; /* results, one of which can be written while the other is made */
};
void ptwm_encode_memory_init(struct ptwm_encode_memory *memory, const struct ptwm_allocator *allocator);
void ptwm_encode_memory_release(struct ptwm_encode_memory *memory);

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

/* Encodes a chunk of the window, appends its planes to stored and fills their records. */
enum ptwm_status ptwm_float_encode_chunk(const struct ptwm_float_window *window, uint64_t chunk,
                                         struct ptwm_float_scratch *scratch, struct ptwm_bytes *stored,
                                         struct ptwm_plane_record *records, struct ptwm_error *error);

#endif
