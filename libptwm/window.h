/*
 * A window of a segment in the making: a run of chunks, split into planes, with the model of their symbols. Windows
 * bound the encoder's memory; within one, chunks are worked on in parallel.
 */
#ifndef PTWM_WINDOW_H
#define PTWM_WINDOW_H

#include "segment.h"
#include "segment_encode.h"

struct ptwm_window {
    const struct ptwm_encode_spec *spec;
    struct ptwm_tail *tail;
    uint64_t first_chunk;
    uint64_t n_chunks;
    struct ptwm_bytes planes;      /* chunk by chunk, plane by plane */
    uint64_t chunk_planes_nbytes;  /* what a whole chunk takes there */
    struct ptwm_bytes symbols;     /* label chains: the symbol planes again, as u16, all chunks in a row */
    struct ptwm_bytes classes;     /* of the units */
    uint32_t set;                  /* of the tail's model; PTWM_NO_SET if the symbols are not to be coded by labels */
    uint64_t symbols_cost_bits;    /* estimate, if set */
};

void ptwm_window_init(struct ptwm_window *window, const struct ptwm_encode_spec *spec, struct ptwm_tail *tail);
void ptwm_window_release(struct ptwm_window *window);

/* How many chunks of the tail a window holds. */
uint64_t ptwm_window_max_chunks(const struct ptwm_tail *tail);

/*
 * Fills the window with n_chunks chunks from first_chunk on: splits them and, where label rANS may code them, finds the
 * column shifts (in the first window of the segment) and a set, both added to the tail's model.
 */
enum ptwm_status ptwm_window_fill(struct ptwm_window *window, uint64_t first_chunk, uint64_t n_chunks,
                                  struct ptwm_error *error);

/* Whether column shifts are worth a look in a window of n elements. */
bool ptwm_shifts_are_worth_a_look(uint64_t n_columns, uint64_t n);
/*
 * Prepares a search for shifts in a window of n elements, the segment's first: everything but the results, for which it
 * allocates memory that ptwm_column_search_end releases. PTWM_ERR_MEMORY.
 */
enum ptwm_status ptwm_column_search_begin(struct ptwm_column_search *search, const struct ptwm_encode_spec *spec,
                                          const struct ptwm_parsed_chain *chain, uint64_t n_columns, uint64_t n);
/* Takes over into the model what has been found. PTWM_ERR_MEMORY. */
enum ptwm_status ptwm_column_search_apply(const struct ptwm_column_search *search, struct ptwm_label_model *model);
void ptwm_column_search_end(struct ptwm_column_search *search, const struct ptwm_encode_spec *spec);
/* Symbols per octave: floats whose symbol ends in k bits of mantissa have 2^k; what has no exponent has 1. */
uint32_t ptwm_symbols_per_octave(const struct ptwm_step *label);

/* A plane of the window's chunk number chunk (counted from the segment's start) and its length. */
const uint8_t *ptwm_window_plane(const struct ptwm_window *window, uint64_t chunk, uint32_t plane, size_t *nbytes);
/* The symbols of that chunk and the classes of its units. */
const uint16_t *ptwm_window_symbols(const struct ptwm_window *window, uint64_t chunk);
const uint8_t *ptwm_window_classes(const struct ptwm_window *window, uint64_t chunk);

#endif
