/*
 * Reading ahead of decoding: while chunks are decoded, a thread has the system read those that come next, so that the
 * disk and the processor work at the same time. It begins when a decoder has to wait for the disk for the first time:
 * what is in memory already would only be looked at twice. It lives no longer than the call that needs it.
 */
#ifndef PTWM_READ_AHEAD_H
#define PTWM_READ_AHEAD_H

#include "file.h"

/* A part of the file. */
struct ptwm_extent {
    uint64_t offset;
    uint64_t nbytes;
};

struct ptwm_read_ahead;

/*
 * Prepares to read extents, in their order, which must stay until the end. NULL if that is not worth it or not
 * possible; the other calls take NULL as well, and do nothing.
 */
struct ptwm_read_ahead *ptwm_read_ahead_begin(const struct ptwm_file *file, const struct ptwm_extent *extents, size_t n,
                                              const struct ptwm_allocator *allocator);
/*
 * To be called by any thread with what it is about to read. Reading ahead begins there if it is not in memory; from then
 * on this waits for mapped ranges, which page faults, in the order of the decoder's streams, would have read at half the
 * rate.
 */
void ptwm_read_ahead_reach(struct ptwm_read_ahead *ahead, uint64_t offset, uint64_t nbytes);
/* Lets it go on up to extent number end. */
void ptwm_read_ahead_allow(struct ptwm_read_ahead *ahead, size_t end);
/* Stops it, wherever it is. */
void ptwm_read_ahead_end(struct ptwm_read_ahead *ahead);

#endif
