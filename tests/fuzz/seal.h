/*
 * Making the checksums of a damaged file right again, so that what lies behind them is reached.
 */
#ifndef SEAL_H
#define SEAL_H

#include "segment.h"

/* The CRC in the head of a chunk of n symbols coded by label rANS, if its head can be read at all. */
void seal_label_head(const struct ptwm_label_model *model, size_t n, uint8_t *stored, size_t nbytes);

/*
 * Of a file of nbytes bytes, in place: the footer's fields (the manifest's offset is left, unless it can't be one) and the
 * manifest's CRC; then, as far as the parts before can be read, the CRCs of tails, of label rANS's heads and of planes.
 */
void seal_file(uint8_t *file, size_t nbytes);

#endif
