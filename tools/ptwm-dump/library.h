/*
 * What the library says of the file, and what only it can find out: whether everything decodes.
 */
#ifndef DUMP_LIBRARY_H
#define DUMP_LIBRARY_H

#include "tail.h"

/* The file as the library sees it. */
struct dump_library {
    struct ptwm_source source;
    struct ptwm_reader *reader; /* NULL if it refuses the file */
    struct ptwm_error refusal;  /* why */
};

void library_open(struct dump_view *view, struct dump_library *library, struct dump_problems *problems);
void library_close(struct dump_library *library);
/*
 * Lets the library verify everything. A small file can declare very much that has to be decoded: more than max_nbytes
 * raw bytes are not.
 */
void library_verify(const struct dump_library *library, uint64_t max_nbytes, struct dump_problems *problems);

/*
 * Decodes the segment's planes and sets the records' entropy_nbytes: what a coder would take that knows how often each
 * symbol, or byte of other planes, occurs in the chunk, and nothing else. Planes that do not decode become problems.
 */
void library_measure(const struct dump_library *library, struct dump_tail *tail, struct dump_problems *problems);

#endif
