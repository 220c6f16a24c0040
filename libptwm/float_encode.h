/*
 * Coding the chunks of a window of floats.
 */
#ifndef PTWM_FLOAT_ENCODE_H
#define PTWM_FLOAT_ENCODE_H

#include "float_window.h"

/* Encodes a chunk of the window, appends its planes to stored and fills their records. */
enum ptwm_status ptwm_float_encode_chunk(const struct ptwm_float_window *window, uint64_t chunk,
                                         struct ptwm_float_scratch *scratch, struct ptwm_bytes *stored,
                                         struct ptwm_plane_record *records, struct ptwm_error *error);

#endif
