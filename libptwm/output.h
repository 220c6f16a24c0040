/*
 * A file that is written forward: at a path (atomically), into the caller's sink or buffer, or into memory.
 */
#ifndef PTWM_OUTPUT_H
#define PTWM_OUTPUT_H

#include "file.h"
#include "memory.h"
#include "ptwm.h"

struct ptwm_output;

enum ptwm_status ptwm_output_open_path(const char *path, const struct ptwm_allocator *allocator,
                                       struct ptwm_output **output, struct ptwm_error *error);
enum ptwm_status ptwm_output_open_sink(const struct ptwm_sink *sink, const struct ptwm_allocator *allocator,
                                       struct ptwm_output **output, struct ptwm_error *error);
enum ptwm_status ptwm_output_open_buffer(const struct ptwm_buffer *buffer, const struct ptwm_allocator *allocator,
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
/* Says that about nbytes more bytes are to come, so that an output that is memory grows once. */
enum ptwm_status ptwm_output_expect(struct ptwm_output *output, uint64_t nbytes, struct ptwm_error *error);
/*
 * Where the next bytes are to lie, if the output is memory that has room for nbytes of them or more, *room_nbytes; else
 * NULL. They belong to the output when ptwm_output_advance says so.
 */
uint8_t *ptwm_output_room(struct ptwm_output *output, uint64_t nbytes, size_t *room_nbytes);
void ptwm_output_advance(struct ptwm_output *output, size_t nbytes);
/* Opens what has been written so far for reading, or sets *file to NULL if this kind of output cannot be read. */
enum ptwm_status ptwm_output_read_back(struct ptwm_output *output, struct ptwm_file **file, struct ptwm_error *error);
/* Makes the file appear at its path, complete and on disk; makes the caller's buffer as long as the file. */
enum ptwm_status ptwm_output_publish(struct ptwm_output *output, struct ptwm_error *error);
/* What a memory or buffer output holds. */
const struct ptwm_bytes *ptwm_output_memory(const struct ptwm_output *output);

#endif
