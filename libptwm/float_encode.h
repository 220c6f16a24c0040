/*
 * Coding the chunks of a window of floats.
 */
#ifndef PTWM_FLOAT_ENCODE_H
#define PTWM_FLOAT_ENCODE_H

#include "float_window.h"

/* Memory that is enough for nearly every chunk of windows like this one, and of other tensors' too. */
uint64_t ptwm_float_chunk_nbytes(const struct ptwm_float_window *window);
/* Encodes a chunk of the window, appends its planes to stored and fills their records. */
enum ptwm_status ptwm_float_encode_chunk(const struct ptwm_float_window *window, uint64_t chunk,
                                         struct ptwm_float_scratch *scratch, struct ptwm_bytes *stored,
                                         struct ptwm_plane_record *records, struct ptwm_error *error);

#endif
