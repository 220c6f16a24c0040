/*
 * Memory of encoders that is kept from one segment to the next, and from one writer to the next, as fresh pages cost as
 * much as coding what they will hold.
 */
#ifndef PTWM_ENCODE_MEMORY_H
#define PTWM_ENCODE_MEMORY_H

#include "memory.h"

/* What coding a chunk of floats takes. */
struct ptwm_float_scratch {
    struct ptwm_bytes labels, words, exceptions, listed, plane;
};

/* Scratch, the buffers of a window and those of two chunks' results. One for each thread that encodes segments. */
struct ptwm_encode_memory {
    struct ptwm_float_scratch scratch;
    struct ptwm_bytes shift, histograms, classes;
    struct ptwm_bytes stored[2]; /* results, one of which can be written while the other is made */
};
void ptwm_encode_memory_init(struct ptwm_encode_memory *memory, const struct ptwm_allocator *allocator);
void ptwm_encode_memory_release(struct ptwm_encode_memory *memory);
/*
 * The same, but with the default allocator the memory is that of a writer which has been closed, if there is any, and
 * is kept for the next one, if it is not too much: that of two threads.
 */
void ptwm_encode_memory_take(struct ptwm_encode_memory *memory, const struct ptwm_allocator *allocator);
void ptwm_encode_memory_give(struct ptwm_encode_memory *memory);

#endif
