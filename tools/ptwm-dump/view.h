/*
 * The file that is looked at: its length, and bytes of it on demand. Nothing else of the tool reads it.
 */
#ifndef DUMP_VIEW_H
#define DUMP_VIEW_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "ptwm.h"

struct dump_view {
    FILE *file;
    uint64_t nbytes;
};

/* Opens path for reading. Returns 0 or an errno value. End with view_close, also after a failure. */
int view_open(struct dump_view *view, const char *path);
void view_close(struct dump_view *view);

/* Fills buffer with nbytes bytes from offset on; false if the file does not have them or they cannot be read. */
bool view_read(const struct dump_view *view, uint64_t offset, void *buffer, size_t nbytes);

/*
 * The same into memory that is freed with free(). NULL if that fails; what is asked for is compared with the file's
 * length first, so that no false length costs memory.
 */
uint8_t *view_load(const struct dump_view *view, uint64_t offset, uint64_t nbytes);

/* The file as the library reads it: by one thread at a time. */
struct ptwm_source view_source(struct dump_view *view);

#endif
