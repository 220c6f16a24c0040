/* pread, O_CLOEXEC, MAP_ANONYMOUS, realpath and madvise are hidden by -std=c99. */
#define _DEFAULT_SOURCE
#define _FILE_OFFSET_BITS 64
#ifdef __linux__
#define _GNU_SOURCE /* sched_getaffinity, mremap */
#endif

#include "mapping.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#ifdef __linux__
#include <sched.h>
#endif

#include "bits.h"
#include "status.h"

#ifndef O_CLOEXEC
#define O_CLOEXEC 0
#endif

/* ------------------------------------------------------------------------------------------------ files to read */

enum { MAP_IN_NBYTES = 128 << 10 }; /* smaller ranges are left to page faults */

enum file_kind { FILE_MAPPED, FILE_PREAD, FILE_MEMORY, FILE_SOURCE };

struct ptwm_file {
    enum file_kind kind;
    const struct ptwm_allocator *allocator;
    uint64_t nbytes;
    const uint8_t *data;       /* FILE_MAPPED, FILE_MEMORY */
    int fd;                    /* FILE_PREAD */
    bool owns_fd;
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
    (*file)->fd = -1;
    return PTWM_OK;
}

/* Opens path for reading and finds its length; only regular files (and what else can be read at random) will do. */
static enum ptwm_status open_for_reading(const char *path, int *fd, uint64_t *nbytes, struct ptwm_error *error)
{
    struct stat st;
    int os_error = 0;

    do
        *fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* never wait for a pipe's other end */
    while (*fd < 0 && errno == EINTR);
    if (*fd < 0)
        return ptwm_fail_os(error, errno, "open");
    if (fstat(*fd, &st) != 0)
        os_error = errno;
    else if (S_ISDIR(st.st_mode))
        os_error = EISDIR;
    else if (!S_ISREG(st.st_mode))
        os_error = ESPIPE;
    if (os_error != 0) {
        close(*fd);
        return ptwm_fail_os(error, os_error, "open");
    }
    *nbytes = (uint64_t)st.st_size;
    return PTWM_OK;
}

/* Maps the file, which needs its descriptor no longer then. */
static enum ptwm_status map_file(struct ptwm_file *file, struct ptwm_error *error)
{
    void *data;

    if (file->nbytes > SIZE_MAX)
        return ptwm_fail_os(error, ENOMEM, "mmap");
    if (file->nbytes > 0) {
        data = mmap(NULL, (size_t)file->nbytes, PROT_READ, MAP_SHARED, file->fd, 0);
        if (data == MAP_FAILED)
            return ptwm_fail_os(error, errno, "mmap");
        file->data = data;
    }
    close(file->fd);
    file->owns_fd = false;
    return PTWM_OK;
}

enum ptwm_status ptwm_file_open_path(const char *path, enum ptwm_backend backend,
                                     const struct ptwm_allocator *allocator, struct ptwm_file **file,
                                     struct ptwm_error *error)
{
    enum ptwm_status status = new_file(backend == PTWM_BACKEND_MMAP ? FILE_MAPPED : FILE_PREAD, allocator, file, error);

    if (status != PTWM_OK)
        return status;
    status = open_for_reading(path, &(*file)->fd, &(*file)->nbytes, error);
    (*file)->owns_fd = status == PTWM_OK;
    if (status == PTWM_OK && backend == PTWM_BACKEND_MMAP)
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

void ptwm_file_close(struct ptwm_file *file)
{
    if (file == NULL)
        return;
    if (file->kind == FILE_MAPPED && file->data != NULL)
        munmap((void *)(uintptr_t)file->data, (size_t)file->nbytes);
    if (file->owns_fd)
        close(file->fd);
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

/* Reads exactly nbytes bytes; 0, an errno value, or -1 if the file ends before. */
static int read_exactly(int fd, uint64_t offset, uint8_t *to, size_t nbytes)
{
    while (nbytes > 0) {
        size_t request = nbytes < (1u << 30) ? nbytes : 1u << 30; /* one read's limit is below 2 GiB on Linux */
        ssize_t n = pread(fd, to, request, (off_t)offset);
        if (n < 0 && errno != EINTR)
            return errno;
        if (n == 0)
            return -1;
        if (n > 0) {
            to += n;
            nbytes -= (size_t)n;
            offset += (uint64_t)n;
        }
    }
    return 0;
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
        result = read_exactly(file->fd, offset, to, nbytes);
    if (result == 0)
        return PTWM_OK;
    if (result == -1)
        ptwm_fail(error, PTWM_ERR_TRUNCATED, "the file became shorter while it was open");
    else
        ptwm_fail_os(error, result, "read");
    ptwm_fail_at(error, PTWM_NONE, offset);
    return result == -1 ? PTWM_ERR_TRUNCATED : PTWM_ERR_IO;
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

#ifdef MADV_POPULATE_READ
/* The pages that hold a range of a mapped file. */
static void page_range(const struct ptwm_file *file, uint64_t offset, uint64_t nbytes, uint8_t **begin, size_t *length)
{
    const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), from = offset / page * page;

    *begin = (uint8_t *)(uintptr_t)file->data + from;
    *length = (size_t)(offset + nbytes - from);
}
#endif

/*
 * Maps the pages of a range in one go: a page fault for each 64 KiB would cost a large chunk a tenth of its decoding.
 * Where the system cannot do that, or the pages are not to be had, the faults come as they come.
 */
static void map_in(const struct ptwm_file *file, uint64_t offset, uint64_t nbytes)
{
#ifdef MADV_POPULATE_READ
    if (file->kind == FILE_MAPPED && nbytes >= MAP_IN_NBYTES) {
        uint8_t *begin;
        size_t length;
        page_range(file, offset, nbytes, &begin, &length);
        (void)madvise(begin, length, MADV_POPULATE_READ);
    }
#else
    (void)file;
    (void)offset;
    (void)nbytes;
#endif
}

bool ptwm_file_can_prefetch(const struct ptwm_file *file)
{
    return file->kind == FILE_MAPPED || file->kind == FILE_PREAD;
}

void ptwm_file_prefetch(const struct ptwm_file *file, uint64_t offset, uint64_t nbytes)
{
    if (offset >= file->nbytes || nbytes == 0)
        return;
    if (nbytes > file->nbytes - offset)
        nbytes = file->nbytes - offset;
    map_in(file, offset, nbytes); /* MADV_WILLNEED read at half the rate here */
#ifdef POSIX_FADV_WILLNEED
    if (file->kind == FILE_PREAD)
        (void)posix_fadvise(file->fd, (off_t)offset, (off_t)nbytes, POSIX_FADV_WILLNEED);
#endif
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
    if (status == PTWM_OK) {
        map_in(file, offset, nbytes);
        *view = file->data + offset;
    }
    return status;
}

/* -------------------------------------------------------------------------------------------------------- pages */

enum {
    HUGE_PAGE_NBYTES = 2 << 20,
    ALIGNMENT = 64,
    MEMORY_IN_HEAP_NBYTES = 1 << 20, /* of a file in memory, up to here */
    MEMORY_MAPPED_NBYTES = 16 << 20, /* of one that is larger, at first */
    SPARE_NBYTES = 64 << 20          /* of such a file, kept for the next one */
};

/*
 * A mapping that begins where a huge page may: page faults, not decoding, bound the first use of memory, and huge pages
 * have 512 times fewer of them. What the alignment takes too much is given back.
 */
static void *map_pages(size_t nbytes)
{
    const size_t page = HUGE_PAGE_NBYTES;
    uint8_t *p, *aligned;

    if (nbytes > SIZE_MAX - page)
        return NULL;
    p = mmap(NULL, nbytes + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED)
        return NULL;
    aligned = p + (page - (uintptr_t)p % page) % page;
    if (aligned > p)
        munmap(p, (size_t)(aligned - p));
    /* From the first page that holds none of the nbytes bytes; the system's pages are powers of 2 below a huge one. */
    {
        const size_t small = (size_t)sysconf(_SC_PAGESIZE), kept = (nbytes + small - 1) / small * small;
        if (p + nbytes + page > aligned + kept)
            munmap(aligned + kept, (size_t)(p + nbytes + page - (aligned + kept)));
    }
#ifdef MADV_HUGEPAGE
    (void)madvise(aligned, nbytes, MADV_HUGEPAGE);
#endif
    return aligned;
}

/* Mapped pages that were old_nbytes long, moved to a larger mapping; NULL, and the old one as it was, without memory. */
static void *grow_pages(void *old, size_t old_nbytes, size_t nbytes)
{
    void *new = map_pages(nbytes);

    if (new == NULL)
        return NULL;
#ifdef MREMAP_FIXED
    if (mremap(old, old_nbytes, old_nbytes, MREMAP_MAYMOVE | MREMAP_FIXED, new) == new)
        return new;
#endif
    memcpy(new, old, old_nbytes);
    munmap(old, old_nbytes);
    return new;
}

/*
 * Pages of a file in memory that has been closed, for the next one: the system clears fresh pages, which takes a tenth of
 * encoding. One block at most, whose first bytes say how large it is.
 */
static size_t *spare; /* atomic */

/* At least *nbytes of mapped pages, as many as *nbytes then says; NULL without memory. */
static void *take_pages(size_t *nbytes)
{
    size_t *block = __atomic_exchange_n(&spare, NULL, __ATOMIC_ACQUIRE);

    if (block == NULL)
        return map_pages(*nbytes);
    if (*block >= *nbytes) {
        *nbytes = *block;
        return block;
    }
    munmap(block, *block);
    return map_pages(*nbytes);
}

static void give_pages(void *pages, size_t nbytes)
{
    size_t *block = pages;

    if (nbytes <= SPARE_NBYTES) {
        *block = nbytes;
        block = __atomic_exchange_n(&spare, block, __ATOMIC_ACQ_REL);
    }
    if (block != NULL)
        munmap(block, nbytes <= SPARE_NBYTES ? *block : nbytes);
}

/* ----------------------------------------------------------------------------------------------- files to write */

enum output_kind { OUTPUT_PATH, OUTPUT_SINK, OUTPUT_MEMORY, OUTPUT_BYTES };

struct ptwm_output {
    enum output_kind kind;
    const struct ptwm_allocator *allocator;
    uint64_t position;
    struct ptwm_sink sink;
    struct ptwm_bytes *bytes; /* OUTPUT_BYTES */
    struct ptwm_bytes memory;
    bool memory_is_mapped; /* by map_pages, not by the allocator */
    int fd;
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
    (*output)->fd = -1;
    return PTWM_OK;
}

/* Stores where path leads: path itself, or what it links to. */
static int resolve_target(struct ptwm_output *output, const char *path)
{
    struct stat st;
    char *resolved = NULL;

    if (lstat(path, &st) == 0 && S_ISLNK(st.st_mode)) {
        resolved = realpath(path, NULL);
        if (resolved == NULL)
            return errno;
        path = resolved;
    }
    if (stat(path, &st) == 0 && !S_ISREG(st.st_mode)) {
        free(resolved);
        return S_ISDIR(st.st_mode) ? EISDIR : EINVAL;
    }
    output->target_capacity = strlen(path) + 1;
    output->target = ptwm_alloc(output->allocator, output->target_capacity, 1);
    if (output->target != NULL)
        memcpy(output->target, path, output->target_capacity);
    free(resolved);
    return output->target != NULL ? 0 : ENOMEM;
}

/* Creates a file beside the target under a name that nobody else has. */
static int create_temporary(struct ptwm_output *output)
{
    size_t length = strlen(output->target);

    output->temporary_capacity = length + 48;
    output->temporary = ptwm_alloc(output->allocator, output->temporary_capacity, 1);
    if (output->temporary == NULL)
        return ENOMEM;
    for (unsigned attempt = 0; attempt < 1000; attempt++) {
        snprintf(output->temporary, output->temporary_capacity, "%s.%ld.%u.tmp", output->target, (long)getpid(), attempt);
        output->fd = open(output->temporary, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (output->fd >= 0)
            return 0;
        if (errno != EEXIST && errno != EINTR)
            break;
    }
    ptwm_release(output->allocator, output->temporary, output->temporary_capacity, 1);
    output->temporary = NULL;
    return errno;
}

enum ptwm_status ptwm_output_open_path(const char *path, const struct ptwm_allocator *allocator,
                                       struct ptwm_output **output, struct ptwm_error *error)
{
    enum ptwm_status status = new_output(OUTPUT_PATH, allocator, output, error);
    int os_error;

    if (status != PTWM_OK)
        return status;
    os_error = resolve_target(*output, path);
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

enum ptwm_status ptwm_output_open_memory(const struct ptwm_allocator *allocator, struct ptwm_output **output,
                                         struct ptwm_error *error)
{
    return new_output(OUTPUT_MEMORY, allocator, output, error);
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
    if (output->fd >= 0)
        close(output->fd);
    if (output->temporary != NULL)
        unlink(output->temporary);
    ptwm_release(output->allocator, output->temporary, output->temporary_capacity, 1);
    ptwm_release(output->allocator, output->target, output->target_capacity, 1);
    if (output->memory_is_mapped)
        give_pages(output->memory.data, output->memory.capacity);
    else
        ptwm_bytes_release(&output->memory);
    ptwm_release(output->allocator, output, 1, sizeof *output);
}

uint64_t ptwm_output_position(const struct ptwm_output *output)
{
    return output->position;
}

static int write_exactly(int fd, const uint8_t *from, size_t nbytes)
{
    while (nbytes > 0) {
        ssize_t n = write(fd, from, nbytes < (1u << 30) ? nbytes : 1u << 30);
        if (n < 0 && errno != EINTR)
            return errno;
        if (n == 0)
            return EIO;
        if (n > 0) {
            from += n;
            nbytes -= (size_t)n;
        }
    }
    return 0;
}

/*
 * Appends to a file in memory. If the default allocator serves it and it is not small, it lies in pages of its own, of which
 * more are mapped than are used yet, and which are moved, not copied, when they are too few.
 */
static enum ptwm_status append_to_memory(struct ptwm_output *output, const void *data, size_t nbytes)
{
    struct ptwm_bytes *memory = &output->memory;
    void *pages;
    size_t capacity;

    if (output->allocator != &ptwm_default_allocator || nbytes > SIZE_MAX / 4 || memory->nbytes > SIZE_MAX / 4 ||
        memory->nbytes + nbytes <= (output->memory_is_mapped ? memory->capacity : (size_t)MEMORY_IN_HEAP_NBYTES))
        return ptwm_bytes_append(memory, data, nbytes);
    capacity = 2 * (memory->nbytes + nbytes);
    capacity = capacity < MEMORY_MAPPED_NBYTES ? MEMORY_MAPPED_NBYTES : (capacity / HUGE_PAGE_NBYTES + 1) * HUGE_PAGE_NBYTES;
    pages = output->memory_is_mapped ? grow_pages(memory->data, memory->capacity, capacity) : take_pages(&capacity);
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
    return ptwm_bytes_append(memory, data, nbytes);
}

enum ptwm_status ptwm_output_write(struct ptwm_output *output, const void *data, size_t nbytes,
                                   struct ptwm_error *error)
{
    int os_error = 0;

    if (nbytes == 0)
        return PTWM_OK;
    if (output->kind == OUTPUT_MEMORY) {
        if (append_to_memory(output, data, nbytes) != PTWM_OK)
            return ptwm_fail(error, PTWM_ERR_MEMORY, "the file in memory");
    } else if (output->kind == OUTPUT_BYTES) {
        if (ptwm_bytes_append(output->bytes, data, nbytes) != PTWM_OK)
            return ptwm_fail(error, PTWM_ERR_MEMORY, "%zu encoded bytes", nbytes);
    } else if (output->kind == OUTPUT_SINK) {
        os_error = output->sink.write(output->sink.context, data, nbytes);
    } else {
        os_error = write_exactly(output->fd, data, nbytes);
    }
    if (os_error != 0)
        return ptwm_fail_os(error, os_error, "write");
    output->position += nbytes;
    return PTWM_OK;
}

enum ptwm_status ptwm_output_read_back(struct ptwm_output *output, struct ptwm_file **file, struct ptwm_error *error)
{
    enum ptwm_status status;

    *file = NULL;
    if (output->kind == OUTPUT_SINK || output->kind == OUTPUT_BYTES)
        return PTWM_OK;
    if (output->kind == OUTPUT_MEMORY)
        return ptwm_file_open_memory(output->memory.data, output->memory.nbytes, output->allocator, file, error);
    status = new_file(FILE_PREAD, output->allocator, file, error);
    if (status != PTWM_OK)
        return status;
    (*file)->fd = output->fd;
    (*file)->nbytes = output->position;
    return PTWM_OK;
}

/* Makes a rename in a directory last. Not every file system can; then there is nothing more to be done. */
static void sync_directory_of(const struct ptwm_output *output)
{
    char *slash = strrchr(output->temporary, '/');
    int fd;

    if (slash == output->temporary)
        slash++;
    if (slash != NULL)
        *slash = '\0'; /* the name is of no more use: the file has been renamed */
    fd = open(slash != NULL ? output->temporary : ".", O_RDONLY | O_CLOEXEC);
    if (fd >= 0) {
        (void)fsync(fd);
        close(fd);
    }
}

enum ptwm_status ptwm_output_publish(struct ptwm_output *output, struct ptwm_error *error)
{
    int fd = output->fd;

    if (output->kind != OUTPUT_PATH)
        return PTWM_OK;
    while (fsync(fd) != 0)
        if (errno != EINTR)
            return ptwm_fail_os(error, errno, "fsync");
    output->fd = -1;
    if (close(fd) != 0 && errno != EINTR)
        return ptwm_fail_os(error, errno, "close");
    if (rename(output->temporary, output->target) != 0)
        return ptwm_fail_os(error, errno, "rename");
    sync_directory_of(output);
    ptwm_release(output->allocator, output->temporary, output->temporary_capacity, 1);
    output->temporary = NULL;
    return PTWM_OK;
}

const struct ptwm_bytes *ptwm_output_memory(const struct ptwm_output *output)
{
    return &output->memory;
}

/* ------------------------------------------------------------------------------------------------------- memory */

enum ptwm_status ptwm_memory_alloc(size_t nbytes, void **memory)
{
    void *p = NULL;

    if (nbytes >= HUGE_PAGE_NBYTES)
        p = map_pages(nbytes);
    else if (posix_memalign(&p, ALIGNMENT, nbytes > 0 ? nbytes : 1) != 0)
        p = NULL;
    if (p == NULL)
        return PTWM_ERR_MEMORY;
    *memory = p;
    return PTWM_OK;
}

void ptwm_memory_free(void *memory, size_t nbytes)
{
    if (memory != NULL && nbytes >= HUGE_PAGE_NBYTES)
        munmap(memory, nbytes);
    else
        free(memory);
}

#ifdef __linux__
/* Reads the numbers of a small file, such as "200000 100000"; "max" stops it. Returns how many there were. */
static int read_numbers(const char *path, long long *numbers, int n)
{
    char text[64];
    FILE *f = fopen(path, "re");
    const size_t length = f != NULL ? fread(text, 1, sizeof text - 1, f) : 0;
    int found = 0;

    if (f != NULL)
        fclose(f);
    text[length] = '\0';
    for (char *p = text, *end; found < n; p = end) {
        numbers[found] = strtoll(p, &end, 10);
        if (end == p)
            break;
        found++;
    }
    return found;
}

/* Processors' worth of time that the control group may use, rounded up; 0 if it is not limited. */
static long cgroup_cpus(void)
{
    long long v[2] = { 0, 0 };

    if (read_numbers("/sys/fs/cgroup/cpu.max", v, 2) == 2 ||
        (read_numbers("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", &v[0], 1) == 1 &&
         read_numbers("/sys/fs/cgroup/cpu/cpu.cfs_period_us", &v[1], 1) == 1))
        return v[0] > 0 && v[1] > 0 ? (long)((v[0] + v[1] - 1) / v[1]) : 0;
    return 0;
}
#endif

unsigned ptwm_usable_cpus(void)
{
    long n = 0;
#ifdef __linux__
    long limit;
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) == 0)
        n = CPU_COUNT(&set);
    limit = cgroup_cpus();
    if (limit > 0 && n > limit)
        n = limit;
#endif
    if (n <= 0)
        n = sysconf(_SC_NPROCESSORS_ONLN);
    return n > 0 ? (unsigned)n : 1;
}

uint64_t ptwm_unique_token(const void *object)
{
    struct timespec now = { 0, 0 };

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return ((uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec) ^ (uint64_t)(uintptr_t)object << 20;
}
