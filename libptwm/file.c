#include "file.h"

#include <errno.h>
#include <string.h>

#include "status.h"

enum {
    FAULT_NBYTES = 64 << 10,  /* what Linux maps for one page fault, of what is in memory */
    DISK_NANOSECONDS = 30000, /* what is in memory takes less, a disk more */
    FAULT_NANOSECONDS = 8000  /* and that for each page fault; 1 to 4 us here */
};

enum file_kind { FILE_MAPPED, FILE_PREAD, FILE_MEMORY, FILE_SOURCE };

struct ptwm_file {
    enum file_kind kind;
    const struct ptwm_allocator *allocator;
    uint64_t nbytes;
    const uint8_t *data;       /* FILE_MAPPED, FILE_MEMORY */
    ptwm_os_file handle;       /* FILE_PREAD */
    bool owns_handle;
    struct ptwm_source source; /* FILE_SOURCE */
    uint64_t bytes_read;       /* atomic */
};

static enum ptwm_status new_file(enum file_kind kind, const struct ptwm_allocator *allocator, struct ptwm_file **file,
                                 struct ptwm_error *error)
{
    *file = ptwm_calloc(allocator, 1, sizeof **file);
    if (*file == NULL)
        return ptwm_fail(error, PTWM_ERR_MEMORY, "opening");
    (*file)->kind = kind;
    (*file)->allocator = allocator;
    (*file)->handle = PTWM_OS_NO_FILE;
    return PTWM_OK;
}

/* Maps the file, which needs its handle no longer then. */
static enum ptwm_status map_file(struct ptwm_file *file, struct ptwm_error *error)
{
    int os_error = 0;

    if (file->nbytes > SIZE_MAX)
        os_error = ENOMEM;
    else if (file->nbytes > 0)
        os_error = ptwm_os_map(file->handle, (size_t)file->nbytes, &file->data);
    if (os_error != 0)
        return ptwm_fail_os(error, os_error, "mmap");
    (void)ptwm_os_close(file->handle);
    file->owns_handle = false;
    return PTWM_OK;
}

enum ptwm_status ptwm_file_open_path(const char *path, enum ptwm_backend backend,
                                     const struct ptwm_allocator *allocator, struct ptwm_file **file,
                                     struct ptwm_error *error)
{
    enum ptwm_status status = new_file(backend == PTWM_BACKEND_MMAP ? FILE_MAPPED : FILE_PREAD, allocator, file, error);
    int os_error;

    if (status != PTWM_OK)
        return status;
    os_error = ptwm_os_open(path, &(*file)->handle, &(*file)->nbytes);
    (*file)->owns_handle = os_error == 0;
    if (os_error != 0)
        status = ptwm_fail_os(error, os_error, "open");
    else if (backend == PTWM_BACKEND_MMAP)
        status = map_file(*file, error);
    if (status != PTWM_OK)
        ptwm_file_close(*file);
    return status;
}

enum ptwm_status ptwm_file_open_memory(const void *data, size_t nbytes, const struct ptwm_allocator *allocator,
                                       struct ptwm_file **file, struct ptwm_error *error)
{
    enum ptwm_status status = new_file(FILE_MEMORY, allocator, file, error);
    if (status != PTWM_OK)
        return status;
    (*file)->data = data;
    (*file)->nbytes = nbytes;
    return PTWM_OK;
}

enum ptwm_status ptwm_file_open_source(const struct ptwm_source *source, const struct ptwm_allocator *allocator,
                                       struct ptwm_file **file, struct ptwm_error *error)
{
    enum ptwm_status status = new_file(FILE_SOURCE, allocator, file, error);
    if (status != PTWM_OK)
        return status;
    (*file)->source = *source;
    (*file)->nbytes = source->total_nbytes;
    return PTWM_OK;
}

enum ptwm_status ptwm_file_open_handle(ptwm_os_file handle, uint64_t nbytes, const struct ptwm_allocator *allocator,
                                       struct ptwm_file **file, struct ptwm_error *error)
{
    enum ptwm_status status = new_file(FILE_PREAD, allocator, file, error);
    if (status != PTWM_OK)
        return status;
    (*file)->handle = handle;
    (*file)->nbytes = nbytes;
    return PTWM_OK;
}

void ptwm_file_close(struct ptwm_file *file)
{
    if (file == NULL)
        return;
    if (file->kind == FILE_MAPPED && file->data != NULL)
        ptwm_os_unmap(file->data, (size_t)file->nbytes);
    if (file->owns_handle)
        (void)ptwm_os_close(file->handle);
    ptwm_release(file->allocator, file, 1, sizeof *file);
}

uint64_t ptwm_file_nbytes(const struct ptwm_file *file)
{
    return file->nbytes;
}

uint64_t ptwm_file_bytes_read(const struct ptwm_file *file)
{
    return __atomic_load_n(&file->bytes_read, __ATOMIC_RELAXED);
}

static enum ptwm_status file_read(const struct ptwm_file *file, uint64_t offset, uint8_t *to, size_t nbytes,
                                  struct ptwm_error *error)
{
    int result = 0;

    if (file->data != NULL)
        memcpy(to, file->data + offset, nbytes);
    else if (file->kind == FILE_SOURCE)
        result = nbytes > 0 ? file->source.read(file->source.context, offset, to, nbytes) : 0;
    else
        result = ptwm_os_read(file->handle, offset, to, nbytes);
    if (result == 0)
        return PTWM_OK;
    if (result == PTWM_OS_END)
        ptwm_fail(error, PTWM_ERR_TRUNCATED, "the file became shorter while it was open");
    else
        ptwm_fail_os(error, result, "read");
    ptwm_fail_at(error, PTWM_NONE, offset);
    return result == PTWM_OS_END ? PTWM_ERR_TRUNCATED : PTWM_ERR_IO;
}

static enum ptwm_status check_range(const struct ptwm_file *file, uint64_t offset, uint64_t nbytes,
                                    struct ptwm_error *error)
{
    if (offset > file->nbytes || nbytes > file->nbytes - offset) {
        ptwm_fail(error, PTWM_ERR_TRUNCATED, "%llu bytes are not there", (unsigned long long)nbytes);
        ptwm_fail_at(error, PTWM_NONE, offset);
        return PTWM_ERR_TRUNCATED;
    }
    __atomic_fetch_add((uint64_t *)(uintptr_t)&file->bytes_read, nbytes, __ATOMIC_RELAXED);
    return PTWM_OK;
}

enum ptwm_status ptwm_file_copy(const struct ptwm_file *file, uint64_t offset, uint64_t nbytes,
                                struct ptwm_bytes *bytes, struct ptwm_error *error)
{
    enum ptwm_status status = check_range(file, offset, nbytes, error);

    if (status != PTWM_OK)
        return status;
    if (ptwm_bytes_scratch(bytes, nbytes) == NULL)
        return ptwm_fail(error, PTWM_ERR_MEMORY, "%llu bytes to read into", (unsigned long long)nbytes);
    return file_read(file, offset, bytes->data, (size_t)nbytes, error);
}

bool ptwm_file_can_prefetch(const struct ptwm_file *file)
{
    return file->kind == FILE_MAPPED || file->kind == FILE_PREAD;
}

bool ptwm_file_waits_for_disk(const struct ptwm_file *file, uint64_t offset, uint64_t nbytes)
{
    const uint64_t begin = ptwm_os_nanoseconds();

    if (offset >= file->nbytes || nbytes == 0)
        return false;
    if (nbytes > file->nbytes - offset)
        nbytes = file->nbytes - offset;
    if (file->kind == FILE_MAPPED) {
        for (uint64_t at = 0; at < nbytes; at += FAULT_NBYTES)
            (void)*(const volatile uint8_t *)(file->data + offset + at);
        (void)*(const volatile uint8_t *)(file->data + offset + nbytes - 1);
    } else if (file->kind == FILE_PREAD) {
        uint8_t byte;
        (void)ptwm_os_read(file->handle, offset + nbytes - 1, &byte, 1);
    }
    return ptwm_os_nanoseconds() - begin > DISK_NANOSECONDS + nbytes / FAULT_NBYTES * FAULT_NANOSECONDS;
}

void ptwm_file_prefetch(const struct ptwm_file *file, uint64_t offset, uint64_t nbytes)
{
    if (offset >= file->nbytes || nbytes == 0)
        return;
    if (nbytes > file->nbytes - offset)
        nbytes = file->nbytes - offset;
    if (file->kind == FILE_MAPPED)
        ptwm_os_populate(file->data, offset, nbytes);
    else if (file->kind == FILE_PREAD)
        ptwm_os_will_read(file->handle, offset, nbytes);
}

enum ptwm_status ptwm_file_view(const struct ptwm_file *file, uint64_t offset, uint64_t nbytes,
                                struct ptwm_bytes *scratch, const uint8_t **view, struct ptwm_error *error)
{
    enum ptwm_status status;

    if (file->data == NULL) {
        status = ptwm_file_copy(file, offset, nbytes, scratch, error);
        *view = scratch->data;
        return status;
    }
    status = check_range(file, offset, nbytes, error);
    if (status == PTWM_OK)
        *view = file->data + offset;
    return status;
}
