/*
 * Everything that talks to the operating system: files to read, files to write, memory pages, the number of processors.
 */
#ifndef PTWM_MAPPING_H
#define PTWM_MAPPING_H

#include <stdbool.h>

#include "memory.h"
#include "ptwm.h"

/* ----------------------------------------------------------------------------------------------------- reading */

/* A file that is read at random: mapped, read with pread, in the caller's memory, or through the caller's callback. */
struct ptwm_file;

enum ptwm_status ptwm_file_open_path(const char *path, enum ptwm_backend backend,
                                     const struct ptwm_allocator *allocator, struct ptwm_file **file,
                                     struct ptwm_error *error);
enum ptwm_status ptwm_file_open_memory(const void *data, size_t nbytes, const struct ptwm_allocator *allocator,
                                       struct ptwm_file **file, struct ptwm_error *error);
enum ptwm_status ptwm_file_open_source(const struct ptwm_source *source, const struct ptwm_allocator *allocator,
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

/* ----------------------------------------------------------------------------------------------------- writing */

/* A file that is written forward: at a path (atomically), into the caller's sink, or into memory. */
struct ptwm_output;

enum ptwm_status ptwm_output_open_path(const char *path, const struct ptwm_allocator *allocator,
                                       struct ptwm_output **output, struct ptwm_error *error);
enum ptwm_status ptwm_output_open_sink(const struct ptwm_sink *sink, const struct ptwm_allocator *allocator,
                                       struct ptwm_output **output, struct ptwm_error *error);
enum ptwm_status ptwm_output_open_memory(const struct ptwm_allocator *allocator, struct ptwm_output **output,
                                         struct ptwm_error *error);
/* Appends to the caller's *bytes, which stay the caller's. PTWM_ERR_MEMORY where a sink could only say PTWM_ERR_IO. */
enum ptwm_status ptwm_output_open_bytes(struct ptwm_bytes *bytes, const struct ptwm_allocator *allocator,
                                        struct ptwm_output **output, struct ptwm_error *error);
/* Releases the output; if it is not published, nothing of it remains at its path. */
void ptwm_output_close(struct ptwm_output *output);

uint64_t ptwm_output_position(const struct ptwm_output *output);
enum ptwm_status ptwm_output_write(struct ptwm_output *output, const void *data, size_t nbytes,
                                   struct ptwm_error *error);
/* Opens what has been written so far for reading, or sets *file to NULL if this kind of output cannot be read. */
enum ptwm_status ptwm_output_read_back(struct ptwm_output *output, struct ptwm_file **file, struct ptwm_error *error);
/* Makes the file appear at its path, complete and on disk. */
enum ptwm_status ptwm_output_publish(struct ptwm_output *output, struct ptwm_error *error);
/* What a memory output holds. */
const struct ptwm_bytes *ptwm_output_memory(const struct ptwm_output *output);

/* ------------------------------------------------------------------------------------------------------- tokens */

/* A number that no other object at this address has had: made of the address and the monotonic clock. */
uint64_t ptwm_unique_token(const void *object);

#endif
