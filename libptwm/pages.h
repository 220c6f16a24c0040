/*
 * Pages of memory for files in memory, one block of which is kept for the next file.
 */
#ifndef PTWM_PAGES_H
#define PTWM_PAGES_H

#include <stddef.h>

/* At least *nbytes of pages, as many as *nbytes then says; their content is undefined. NULL without memory. */
void *ptwm_pages_take(size_t *nbytes);
/* Moves pages to larger ones; NULL, and the old ones as they were, without memory. */
void *ptwm_pages_grow(void *pages, size_t old_nbytes, size_t nbytes);
/* Gives pages back, all of the nbytes that they have. */
void ptwm_pages_give(void *pages, size_t nbytes);

#endif
