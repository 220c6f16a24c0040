#include "output.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "os.h"
#include "pages.h"
#include "status.h"

enum {
    MEMORY_IN_HEAP_NBYTES = 1 << 20, /* of a file in memory, up to here */
    MEMORY_MAPPED_NBYTES = 16 << 20, /* of one that is larger, at first */
    MEMORY_EXPECTED_NBYTES = 1 << 30 /* that are made room for in advance, at most */
};

/* BUFFER, PAGES and BYTES are memory: the caller's, of an open writer, of another part of the library. */
enum output_kind { OUTPUT_PATH, OUTPUT_SINK, OUTPUT_BUFFER, OUTPUT_PAGES, OUTPUT_BYTES };

struct ptwm_output {
    enum output_kind kind;
    const struct ptwm_allocator *allocator;
    uint64_t position;
    struct ptwm_sink sink;
    struct ptwm_buffer buffer;
    struct ptwm_bytes *bytes; /* what has been written, in kinds that are memory, else NULL */
    struct ptwm_bytes memory; /* OUTPUT_BUFFER, OUTPUT_PAGES: these bytes */
    bool memory_is_mapped;    /* OUTPUT_PAGES: pages, not from the allocator */
    ptwm_os_file file;
    char *target;    /* OUTPUT_PATH: where the file is to appear, links resolved */
    char *temporary; /* the file beside it that is written; NULL once it is published */
    size_t target_capacity, temporary_capacity;
};

static enum ptwm_status new_output(enum output_kind kind, const struct ptwm_allocator *allocator,
                                   struct ptwm_output **output, struct ptwm_error *error)
{
    *output = ptwm_calloc(allocator, 1, sizeof **output);
    if (*output == NULL)
        return ptwm_fail(error, PTWM_ERR_MEMORY, "opening");
    (*output)->kind = kind;
    (*output)->allocator = allocator;
    (*output)->memory.allocator = allocator;
    (*output)->file = PTWM_OS_NO_FILE;
    return PTWM_OK;
}

/* Creates a file beside the target under a name that nobody else has. */
static int create_temporary(struct ptwm_output *output)
{
    size_t length = strlen(output->target);
    int os_error = EEXIST;

    output->temporary_capacity = length + 48;
    output->temporary = ptwm_alloc(output->allocator, output->temporary_capacity, 1);
    if (output->temporary == NULL)
        return ENOMEM;
    for (unsigned attempt = 0; attempt < 1000 && os_error == EEXIST; attempt++) {
        snprintf(output->temporary, output->temporary_capacity, "%s.%lu.%u.tmp", output->target, ptwm_os_process_id(),
                 attempt);
        os_error = ptwm_os_create(output->temporary, &output->file);
    }
    if (os_error != 0) {
        ptwm_release(output->allocator, output->temporary, output->temporary_capacity, 1);
        output->temporary = NULL;
    }
    return os_error;
}

enum ptwm_status ptwm_output_open_path(const char *path, const struct ptwm_allocator *allocator,
                                       struct ptwm_output **output, struct ptwm_error *error)
{
    enum ptwm_status status = new_output(OUTPUT_PATH, allocator, output, error);
    int os_error;

    if (status != PTWM_OK)
        return status;
    os_error = ptwm_os_resolve(path, allocator, &(*output)->target, &(*output)->target_capacity);
    if (os_error == 0)
        os_error = create_temporary(*output);
    if (os_error != 0) {
        ptwm_output_close(*output);
        return os_error == ENOMEM ? ptwm_fail(error, PTWM_ERR_MEMORY, "create") : ptwm_fail_os(error, os_error, "create");
    }
    return PTWM_OK;
}

enum ptwm_status ptwm_output_open_sink(const struct ptwm_sink *sink, const struct ptwm_allocator *allocator,
                                       struct ptwm_output **output, struct ptwm_error *error)
{
    enum ptwm_status status = new_output(OUTPUT_SINK, allocator, output, error);
    if (status == PTWM_OK)
        (*output)->sink = *sink;
    return status;
}

enum ptwm_status ptwm_output_open_buffer(const struct ptwm_buffer *buffer, const struct ptwm_allocator *allocator,
                                         struct ptwm_output **output, struct ptwm_error *error)
{
    enum ptwm_status status = new_output(OUTPUT_BUFFER, allocator, output, error);
    if (status == PTWM_OK) {
        (*output)->buffer = *buffer;
        (*output)->bytes = &(*output)->memory;
    }
    return status;
}

enum ptwm_status ptwm_output_open_memory(const struct ptwm_allocator *allocator, struct ptwm_output **output,
                                         struct ptwm_error *error)
{
    enum ptwm_status status = new_output(OUTPUT_PAGES, allocator, output, error);
    if (status == PTWM_OK)
        (*output)->bytes = &(*output)->memory;
    return status;
}

enum ptwm_status ptwm_output_open_bytes(struct ptwm_bytes *bytes, const struct ptwm_allocator *allocator,
                                        struct ptwm_output **output, struct ptwm_error *error)
{
    enum ptwm_status status = new_output(OUTPUT_BYTES, allocator, output, error);
    if (status == PTWM_OK)
        (*output)->bytes = bytes;
    return status;
}

void ptwm_output_close(struct ptwm_output *output)
{
    if (output == NULL)
        return;
    if (output->file != PTWM_OS_NO_FILE)
        (void)ptwm_os_close(output->file);
    if (output->temporary != NULL)
        ptwm_os_remove(output->temporary);
    ptwm_release(output->allocator, output->temporary, output->temporary_capacity, 1);
    ptwm_release(output->allocator, output->target, output->target_capacity, 1);
    if (output->memory_is_mapped)
        ptwm_pages_give(output->memory.data, output->memory.capacity);
    else if (output->kind == OUTPUT_PAGES)
        ptwm_bytes_release(&output->memory);
    ptwm_release(output->allocator, output, 1, sizeof *output);
}

uint64_t ptwm_output_position(const struct ptwm_output *output)
{
    return output->position;
}

/*
 * Makes pages of a file in memory at least nbytes long. If the default allocator serves it and it is not small, it lies
 * in pages of its own, of which more are mapped than are used yet, and which are moved, not copied, when they are too
 * few.
 */
static enum ptwm_status grow_pages(struct ptwm_output *output, size_t nbytes)
{
    struct ptwm_bytes *memory = &output->memory;
    void *pages;
    size_t capacity;

    if (output->allocator != &ptwm_default_allocator || nbytes > SIZE_MAX / 4 ||
        (!output->memory_is_mapped && nbytes <= MEMORY_IN_HEAP_NBYTES))
        return ptwm_bytes_reserve(memory, nbytes - memory->nbytes);
    capacity = output->memory_is_mapped ? 2 * memory->capacity : MEMORY_MAPPED_NBYTES;
    if (capacity < nbytes)
        capacity = (nbytes / PTWM_HUGE_PAGE_NBYTES + 1) * PTWM_HUGE_PAGE_NBYTES;
    pages = output->memory_is_mapped ? ptwm_pages_grow(memory->data, memory->capacity, capacity)
                                     : ptwm_pages_take(&capacity);
    if (pages == NULL)
        return PTWM_ERR_MEMORY;
    if (!output->memory_is_mapped) {
        if (memory->nbytes > 0)
            memcpy(pages, memory->data, memory->nbytes);
        ptwm_release(memory->allocator, memory->data, memory->capacity, 1);
    }
    output->memory_is_mapped = true;
    memory->data = pages;
    memory->capacity = capacity;
    return PTWM_OK;
}

static enum ptwm_status resize_buffer(struct ptwm_output *output, size_t nbytes)
{
    struct ptwm_bytes *memory = &output->memory;

    memory->data = output->buffer.resize(output->buffer.context, nbytes);
    memory->capacity = memory->data != NULL ? nbytes : 0;
    if (memory->capacity < memory->nbytes)
        memory->nbytes = memory->capacity;
    return memory->data != NULL ? PTWM_OK : PTWM_ERR_MEMORY;
}

/* Makes room for extra more bytes in memory. */
static enum ptwm_status make_room(struct ptwm_output *output, uint64_t extra)
{
    struct ptwm_bytes *bytes = output->bytes;
    size_t nbytes;

    if (extra <= bytes->capacity - bytes->nbytes)
        return PTWM_OK;
    if (output->kind == OUTPUT_BYTES)
        return ptwm_bytes_reserve(bytes, extra);
    if (extra > SIZE_MAX / 2 - bytes->nbytes)
        return PTWM_ERR_MEMORY;
    nbytes = bytes->nbytes + (size_t)extra;
    if (output->kind == OUTPUT_PAGES)
        return grow_pages(output, nbytes);
    /* Geometrically, so that what resize copies stays in proportion. */
    return resize_buffer(
        output, nbytes > bytes->capacity + bytes->capacity / 4 ? nbytes : bytes->capacity + bytes->capacity / 4);
}

enum ptwm_status ptwm_output_expect(struct ptwm_output *output, uint64_t nbytes, struct ptwm_error *error)
{
    const uint64_t extra = nbytes < MEMORY_EXPECTED_NBYTES ? nbytes : MEMORY_EXPECTED_NBYTES;

    if (output->bytes == NULL || make_room(output, extra) == PTWM_OK)
        return PTWM_OK;
    return ptwm_fail(error, PTWM_ERR_MEMORY, "%llu bytes of a file in memory", (unsigned long long)extra);
}

uint8_t *ptwm_output_room(struct ptwm_output *output, uint64_t nbytes, size_t *room_nbytes)
{
    const struct ptwm_bytes *bytes = output->bytes;

    if (bytes == NULL || bytes->data == NULL || bytes->capacity - bytes->nbytes < nbytes)
        return NULL;
    *room_nbytes = bytes->capacity - bytes->nbytes;
    return bytes->data + bytes->nbytes;
}

void ptwm_output_advance(struct ptwm_output *output, size_t nbytes)
{
    output->bytes->nbytes += nbytes;
    output->position += nbytes;
}

enum ptwm_status ptwm_output_write(struct ptwm_output *output, const void *data, size_t nbytes,
                                   struct ptwm_error *error)
{
    int os_error = 0;

    if (nbytes == 0)
        return PTWM_OK;
    if (output->bytes != NULL) {
        if (make_room(output, nbytes) != PTWM_OK || ptwm_bytes_append(output->bytes, data, nbytes) != PTWM_OK)
            return ptwm_fail(error, PTWM_ERR_MEMORY, "%zu bytes of a file in memory", nbytes);
    } else if (output->kind == OUTPUT_SINK) {
        os_error = output->sink.write(output->sink.context, data, nbytes);
    } else {
        os_error = ptwm_os_append(output->file, data, nbytes);
    }
    if (os_error != 0)
        return ptwm_fail_os(error, os_error, "write");
    output->position += nbytes;
    return PTWM_OK;
}

enum ptwm_status ptwm_output_read_back(struct ptwm_output *output, struct ptwm_file **file, struct ptwm_error *error)
{
    *file = NULL;
    if (output->kind == OUTPUT_SINK || output->kind == OUTPUT_BYTES)
        return PTWM_OK;
    if (output->bytes != NULL)
        return ptwm_file_open_memory(output->memory.data, output->memory.nbytes, output->allocator, file, error);
    return ptwm_file_open_handle(output->file, output->position, output->allocator, file, error);
}

enum ptwm_status ptwm_output_publish(struct ptwm_output *output, struct ptwm_error *error)
{
    const ptwm_os_file file = output->file;
    int os_error;

    if (output->kind == OUTPUT_BUFFER && resize_buffer(output, output->memory.nbytes) != PTWM_OK)
        return ptwm_fail(error, PTWM_ERR_MEMORY, "the file in memory");
    if (output->kind != OUTPUT_PATH)
        return PTWM_OK;
    os_error = ptwm_os_sync(file);
    if (os_error != 0)
        return ptwm_fail_os(error, os_error, "fsync");
    output->file = PTWM_OS_NO_FILE;
    os_error = ptwm_os_close(file);
    if (os_error != 0)
        return ptwm_fail_os(error, os_error, "close");
    os_error = ptwm_os_rename(output->temporary, output->target);
    if (os_error != 0)
        return ptwm_fail_os(error, os_error, "rename");
    ptwm_os_sync_directory_of(output->temporary); /* which is of no more use: the file has been renamed */
    ptwm_release(output->allocator, output->temporary, output->temporary_capacity, 1);
    output->temporary = NULL;
    return PTWM_OK;
}

const struct ptwm_bytes *ptwm_output_memory(const struct ptwm_output *output)
{
    return &output->memory;
}
