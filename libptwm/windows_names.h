/*
 * What Windows calls by other names than C: paths are UTF-16, errors have numbers of their own. For os_windows.c.
 */
#ifndef PTWM_WINDOWS_NAMES_H
#define PTWM_WINDOWS_NAMES_H

#include <stddef.h>

#include "memory.h"

/* The errno value nearest to what GetLastError says; EIO for what has none. */
int ptwm_windows_error(void);

/* The full path of a path in UTF-8, in a form that may be longer than MAX_PATH; to be freed. Returns an errno value. */
int ptwm_windows_widen(const char *path, wchar_t **wide);
/* A path in UTF-8: *capacity bytes of the allocator's. Returns an errno value. */
int ptwm_windows_narrow(const wchar_t *wide, const struct ptwm_allocator *allocator, char **path, size_t *capacity);

#endif
