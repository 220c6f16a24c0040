/*
 * A file that is read at random: mapped, read with pread, in the caller's memory, or through the caller's callback.
 */
#ifndef PTWM_FILE_H
#define PTWM_FILE_H

#include <stdbool.h>

#include "memory.h"
#include "os.h"
#include "ptwm.h"

struct ptwm_file;

enum ptwm_status ptwm_file_open_path(const char *path, enum ptwm_backend backend,
                                     const struct ptwm_allocator *allocator, struct ptwm_file **file,
                                     struct ptwm_error *error);
enum ptwm_status ptwm_file_open_memory(const void *data, size_t nbytes, const struct ptwm_allocator *allocator,
                                       struct ptwm_file **file, struct ptwm_error *error);
enum ptwm_status ptwm_file_open_source(const struct ptwm_source *source, const struct ptwm_allocator *allocator,
                                       struct ptwm_file **file, struct ptwm_error *error);
/* A file that is open and stays the caller's to close; nbytes: how much of it there is to see. */
enum ptwm_status ptwm_file_open_handle(ptwm_os_file handle, uint64_t nbytes, const struct ptwm_allocator *allocator,
                                       struct ptwm_file **file, struct ptwm_error *error);
void ptwm_file_close(struct ptwm_file *file);

uint64_t ptwm_file_nbytes(const struct ptwm_file *file);
/* Bytes looked at so far. */
uint64_t ptwm_file_bytes_read(const struct ptwm_file *file);

/*
 * nbytes bytes from offset on: *view points into the mapping or the caller's memory where there is one, else into
 * scratch. It holds until scratch is used again or the file is closed. PTWM_ERR_TRUNCATED if the file does not have
 * them, PTWM_ERR_IO, PTWM_ERR_MEMORY; error gets the file offset.
 */
enum ptwm_status ptwm_file_view(const struct ptwm_file *file, uint64_t offset, uint64_t nbytes,
                                struct ptwm_bytes *scratch, const uint8_t **view, struct ptwm_error *error);

/* The same, but always copied: what the caller then parses cannot change under it. bytes->data has nbytes bytes. */
enum ptwm_status ptwm_file_copy(const struct ptwm_file *file, uint64_t offset, uint64_t nbytes,
                                struct ptwm_bytes *bytes, struct ptwm_error *error);

/*
 * Has the system read a range that will be wanted soon: waits for it where the file is mapped, need not where it is
 * read. Never fails.
 */
void ptwm_file_prefetch(const struct ptwm_file *file, uint64_t offset, uint64_t nbytes);
/* Whether that does anything. */
bool ptwm_file_can_prefetch(const struct ptwm_file *file);
/*
 * Maps a range that is about to be decoded, a MiB or less. Whether that took as long as a disk takes, so that it is worth
 * while to read ahead.
 */
bool ptwm_file_waits_for_disk(const struct ptwm_file *file, uint64_t offset, uint64_t nbytes);

#endif
