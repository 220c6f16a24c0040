/*
 * Memory between two pages without access: who reads or writes beside it is killed. NULL where the system has no such
 * thing. POSIX systems want _DEFAULT_SOURCE (and _DARWIN_C_SOURCE) before all headers.
 */
#ifndef GUARD_H
#define GUARD_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#if defined(_WIN32)
#define WIN32_LEAN_AND_MEAN
#include <windows.h>
#elif defined(__unix__) || defined(__APPLE__)
#include <sys/mman.h>
#include <unistd.h>
#endif

static inline size_t guard_page_nbytes(void)
{
#if defined(_WIN32)
    SYSTEM_INFO info;
    GetSystemInfo(&info);
    return info.dwPageSize;
#elif defined(__unix__) || defined(__APPLE__)
    return (size_t)sysconf(_SC_PAGESIZE);
#else
    return 1;
#endif
}

/* nbytes, rounded up to whole pages: what there is between the two. */
static inline size_t guard_inner_nbytes(size_t nbytes)
{
    const size_t page = guard_page_nbytes();
    return (nbytes + page - 1) / page * page;
}

static inline uint8_t *guard_alloc(size_t nbytes)
{
    const size_t page = guard_page_nbytes(), inner = guard_inner_nbytes(nbytes);
#if defined(_WIN32)
    uint8_t *p = VirtualAlloc(NULL, inner + 2 * page, MEM_RESERVE, PAGE_NOACCESS);
    if (p == NULL || (inner > 0 && VirtualAlloc(p + page, inner, MEM_COMMIT, PAGE_READWRITE) == NULL))
        abort();
    return p + page;
#elif defined(__unix__) || defined(__APPLE__)
    uint8_t *p = mmap(NULL, inner + 2 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED || (inner > 0 && mprotect(p + page, inner, PROT_READ | PROT_WRITE) != 0))
        abort();
    return p + page;
#else
    (void)page;
    (void)inner;
    return NULL;
#endif
}

static inline void guard_free(uint8_t *inner, size_t nbytes)
{
    const size_t page = guard_page_nbytes();
#if defined(_WIN32)
    (void)nbytes;
    VirtualFree(inner - page, 0, MEM_RELEASE);
#elif defined(__unix__) || defined(__APPLE__)
    munmap(inner - page, guard_inner_nbytes(nbytes) + 2 * page);
#else
    (void)inner;
    (void)nbytes;
    (void)page;
#endif
}

#endif
