/*
 * Checksums and padding, as the tool computes them by itself.
 */
#ifndef DUMP_CHECK_H
#define DUMP_CHECK_H

#include "tail.h"

/*
 * Computes the CRC-32C of each stored plane, checks the planes' heads, and the padding before the segment and its
 * chunks; sets the records' state.
 */
void check_segment(const struct dump_view *view, struct dump_tail *tail, struct dump_problems *problems);

/* Whether all bytes of a range are zero. *bad: the offset of the first one that is not. */
bool check_zero(const struct dump_view *view, uint64_t offset, uint64_t nbytes, uint64_t *bad);

#endif
