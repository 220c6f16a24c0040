/*
 * What the library asks of the operating system: files, pages of memory, processors, a clock. os_posix.c and os_windows.c
 * answer, each on its systems and empty on the others. Threads are not here: pthread.h is there on both.
 *
 * Paths are UTF-8. Functions that return an int return 0 or an errno value, on Windows too.
 */
#ifndef PTWM_OS_H
#define PTWM_OS_H

#include <stddef.h>
#include <stdint.h>

#include "memory.h"
#include "ptwm.h" /* and ptwm_usable_cpus */

/* ------------------------------------------------------------------------------------------------------- files */

/* An open file: a descriptor or a HANDLE. */
typedef intptr_t ptwm_os_file;
enum { PTWM_OS_NO_FILE = -1 };

/* Opens a file for reading and finds its length. EISDIR for directories, ESPIPE for what cannot be read at random. */
int ptwm_os_open(const char *path, ptwm_os_file *file, uint64_t *nbytes);
/* Creates a file that may be written and read; EEXIST if there is one. */
int ptwm_os_create(const char *path, ptwm_os_file *file);
/* Whatever this returns, the file is closed. */
int ptwm_os_close(ptwm_os_file file);

/* Reads nbytes bytes from offset on; PTWM_OS_END if the file ends before. Many threads may read at once. */
enum { PTWM_OS_END = -1 };
int ptwm_os_read(ptwm_os_file file, uint64_t offset, uint8_t *to, size_t nbytes);
/* Writes behind what has been written to a created file. */
int ptwm_os_append(ptwm_os_file file, const uint8_t *from, size_t nbytes);
/* Waits until what has been written is on the disk. */
int ptwm_os_sync(ptwm_os_file file);

/* Maps the nbytes (> 0) bytes of a file that was opened, which may be closed then. */
int ptwm_os_map(ptwm_os_file file, size_t nbytes, const uint8_t **data);
void ptwm_os_unmap(const uint8_t *data, size_t nbytes);

/* Has nbytes bytes from offset on of a mapping or of a file read, where the system can do that ahead of their use. */
void ptwm_os_populate(const uint8_t *data, uint64_t offset, uint64_t nbytes);
void ptwm_os_will_read(ptwm_os_file file, uint64_t offset, uint64_t nbytes);

/*
 * Where a file that is written to path is to appear: path, or where it leads if it is a symbolic link. The allocator's
 * memory, *capacity bytes. EISDIR, and EINVAL for what else is there and no regular file.
 */
int ptwm_os_resolve(const char *path, const struct ptwm_allocator *allocator, char **target, size_t *capacity);
/* Puts a file in the place of what is at to, if anything is, in one step. */
int ptwm_os_rename(const char *from, const char *to);
/* Makes a rename in the directory of path last, where the system can; path is cut on the way. */
void ptwm_os_sync_directory_of(char *path);
void ptwm_os_remove(const char *path);

unsigned long ptwm_os_process_id(void);

/* ------------------------------------------------------------------------------------------------------ memory */

enum { PTWM_HUGE_PAGE_NBYTES = 2 << 20 };

/* Zeroed pages for at least nbytes bytes, huge ones where there are any; NULL without memory. */
void *ptwm_os_map_pages(size_t nbytes);
/* Asks for huge pages where memory that has not been touched yet has room for them. */
void ptwm_os_prefer_huge_pages(void *memory, size_t nbytes);
/* The same pages, or their content in others, for nbytes bytes; NULL, and the old ones as they were, without memory. */
void *ptwm_os_grow_pages(void *old, size_t old_nbytes, size_t nbytes);
/* nbytes as they were mapped with. */
void ptwm_os_unmap_pages(void *pages, size_t nbytes);

/* alignment: a power of 2, a multiple of a pointer's size. */
void *ptwm_os_aligned_alloc(size_t alignment, size_t nbytes);
void ptwm_os_aligned_free(void *p);

/* ------------------------------------------------------------------------------------------------------- clock */

/* A clock that is never set back. */
uint64_t ptwm_os_nanoseconds(void);

#endif
