/*
 * Copying more than the caches hold.
 */
#ifndef PTWM_STREAM_COPY_H
#define PTWM_STREAM_COPY_H

#include <stddef.h>

/*
 * memcpy for what is not read again soon: where the machine has stores past the caches, it takes two thirds of the
 * time, as memory is not read first that is to be overwritten.
 */
void ptwm_stream_copy(void *dst, const void *src, size_t nbytes);

#endif
