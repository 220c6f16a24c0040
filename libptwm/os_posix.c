/* Linux, macOS, the BSDs. pread, O_CLOEXEC, MAP_ANONYMOUS, realpath and madvise are hidden by -std=c99. */
#define _DEFAULT_SOURCE
#define _FILE_OFFSET_BITS 64
#ifdef __linux__
#define _GNU_SOURCE /* sched_getaffinity, mremap */
#endif

#include "os.h"

#ifndef _WIN32

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
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

#ifndef O_CLOEXEC
#define O_CLOEXEC 0
#endif

/* ----------------------------------------------------------------------------------------------- open and close */

int ptwm_os_open(const char *path, ptwm_os_file *file, uint64_t *nbytes)
{
    struct stat st;
    int fd, os_error = 0;

    do
        fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* never wait for a pipe's other end */
    while (fd < 0 && errno == EINTR);
    if (fd < 0)
        return errno;
    if (fstat(fd, &st) != 0)
        os_error = errno;
    else if (S_ISDIR(st.st_mode))
        os_error = EISDIR;
    else if (!S_ISREG(st.st_mode))
        os_error = ESPIPE;
    if (os_error != 0) {
        close(fd);
        return os_error;
    }
    *file = fd;
    *nbytes = (uint64_t)st.st_size;
    return 0;
}

int ptwm_os_create(const char *path, ptwm_os_file *file)
{
    int fd;

    do
        fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    while (fd < 0 && errno == EINTR);
    if (fd < 0)
        return errno;
    *file = fd;
    return 0;
}

int ptwm_os_close(ptwm_os_file file)
{
    return close((int)file) != 0 && errno != EINTR ? errno : 0;
}

/* ----------------------------------------------------------------------------------------------- read and write */

enum { REQUEST_NBYTES = 1 << 30 }; /* one read's limit is below 2 GiB on Linux */

int ptwm_os_read(ptwm_os_file file, uint64_t offset, uint8_t *to, size_t nbytes)
{
    while (nbytes > 0) {
        ssize_t n = pread((int)file, to, nbytes < REQUEST_NBYTES ? nbytes : REQUEST_NBYTES, (off_t)offset);
        if (n < 0 && errno != EINTR)
            return errno;
        if (n == 0)
            return PTWM_OS_END;
        if (n > 0) {
            to += n;
            nbytes -= (size_t)n;
            offset += (uint64_t)n;
        }
    }
    return 0;
}

int ptwm_os_append(ptwm_os_file file, const uint8_t *from, size_t nbytes)
{
    while (nbytes > 0) {
        ssize_t n = write((int)file, from, nbytes < REQUEST_NBYTES ? nbytes : REQUEST_NBYTES);
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

int ptwm_os_sync(ptwm_os_file file)
{
    while (fsync((int)file) != 0)
        if (errno != EINTR)
            return errno;
    return 0;
}

/* --------------------------------------------------------------------------------------------------- map, prefetch */

int ptwm_os_map(ptwm_os_file file, size_t nbytes, const uint8_t **data)
{
    void *p = mmap(NULL, nbytes, PROT_READ, MAP_SHARED, (int)file, 0);

    if (p == MAP_FAILED)
        return errno;
    *data = p;
    return 0;
}

void ptwm_os_unmap(const uint8_t *data, size_t nbytes)
{
    munmap((void *)(uintptr_t)data, nbytes);
}

void ptwm_os_populate(const uint8_t *data, uint64_t offset, uint64_t nbytes)
{
#ifdef MADV_POPULATE_READ /* MADV_WILLNEED read at half the rate here */
    const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), from = offset / page * page;

    (void)madvise((uint8_t *)(uintptr_t)data + from, (size_t)(offset + nbytes - from), MADV_POPULATE_READ);
#else
    (void)data;
    (void)offset;
    (void)nbytes;
#endif
}

void ptwm_os_will_read(ptwm_os_file file, uint64_t offset, uint64_t nbytes)
{
#ifdef POSIX_FADV_WILLNEED
    (void)posix_fadvise((int)file, (off_t)offset, (off_t)nbytes, POSIX_FADV_WILLNEED);
#else
    (void)file;
    (void)offset;
    (void)nbytes;
#endif
}

/* ------------------------------------------------------------------------------------------------------- paths */

int ptwm_os_resolve(const char *path, const struct ptwm_allocator *allocator, char **target, size_t *capacity)
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
    *capacity = strlen(path) + 1;
    *target = ptwm_alloc(allocator, *capacity, 1);
    if (*target != NULL)
        memcpy(*target, path, *capacity);
    free(resolved);
    return *target != NULL ? 0 : ENOMEM;
}

int ptwm_os_rename(const char *from, const char *to)
{
    return rename(from, to) != 0 ? errno : 0;
}

void ptwm_os_sync_directory_of(char *path)
{
    char *slash = strrchr(path, '/');
    int fd;

    if (slash == path)
        slash++;
    if (slash != NULL)
        *slash = '\0';
    fd = open(slash != NULL ? path : ".", O_RDONLY | O_CLOEXEC);
    if (fd >= 0) {
        (void)fsync(fd); /* not every file system can; then there is nothing more to be done */
        close(fd);
    }
}

void ptwm_os_remove(const char *path)
{
    (void)unlink(path);
}

unsigned long ptwm_os_process_id(void)
{
    return (unsigned long)getpid();
}

/* ------------------------------------------------------------------------------------------------------- pages */

/*
 * A mapping that begins where a huge page may: page faults, not decoding, bound the first use of memory, and huge pages
 * have 512 times fewer of them. What the alignment takes too much is given back.
 */
void *ptwm_os_map_pages(size_t nbytes)
{
    const size_t page = PTWM_HUGE_PAGE_NBYTES;
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
    ptwm_os_prefer_huge_pages(aligned, nbytes);
    return aligned;
}

void ptwm_os_prefer_huge_pages(void *memory, size_t nbytes)
{
#ifdef MADV_HUGEPAGE
    const uintptr_t small = (uintptr_t)sysconf(_SC_PAGESIZE), begin = (uintptr_t)memory;
    const uintptr_t first = (begin + small - 1) / small * small, end = (begin + nbytes) / small * small;

    if (end > first && end - first >= PTWM_HUGE_PAGE_NBYTES)
        (void)madvise((void *)first, end - first, MADV_HUGEPAGE);
#else
    (void)memory;
    (void)nbytes;
#endif
}

void *ptwm_os_grow_pages(void *old, size_t old_nbytes, size_t nbytes)
{
    void *new = ptwm_os_map_pages(nbytes);

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

void ptwm_os_unmap_pages(void *pages, size_t nbytes)
{
    munmap(pages, nbytes);
}

void *ptwm_os_aligned_alloc(size_t alignment, size_t nbytes)
{
    void *p = NULL;
    return posix_memalign(&p, alignment, nbytes) == 0 ? p : NULL;
}

void ptwm_os_aligned_free(void *p)
{
    free(p);
}

/* ------------------------------------------------------------------------------------------- processors and time */

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

uint64_t ptwm_os_nanoseconds(void)
{
    struct timespec now = { 0, 0 };

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

#endif
