/* Windows 8 and later. */
#include "os.h"

#ifdef _WIN32

#define WIN32_LEAN_AND_MEAN
#include <windows.h>

#include <errno.h>
#include <malloc.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "windows_names.h"

/* ----------------------------------------------------------------------------------------------- open and close */

enum { SHARE_ALL = FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE };

static HANDLE handle_of(ptwm_os_file file)
{
    return (HANDLE)file;
}

/* What is open under a handle is no regular file: what it is, else 0. */
static int check_regular(HANDLE handle, int os_error_of_others)
{
    BY_HANDLE_FILE_INFORMATION info;

    if (GetFileType(handle) != FILE_TYPE_DISK)
        return os_error_of_others;
    if (!GetFileInformationByHandle(handle, &info))
        return ptwm_windows_error();
    return info.dwFileAttributes & FILE_ATTRIBUTE_DIRECTORY ? EISDIR : 0;
}

int ptwm_os_open(const char *path, ptwm_os_file *file, uint64_t *nbytes)
{
    LARGE_INTEGER size;
    HANDLE handle;
    wchar_t *wide;
    int os_error = ptwm_windows_widen(path, &wide);

    if (os_error != 0)
        return os_error;
    /* Backup semantics are what a directory needs to be opened, and so to be told from what is forbidden. */
    handle = CreateFileW(wide, GENERIC_READ, SHARE_ALL, NULL, OPEN_EXISTING, FILE_FLAG_BACKUP_SEMANTICS, NULL);
    os_error = handle == INVALID_HANDLE_VALUE ? ptwm_windows_error() : 0;
    free(wide);
    if (os_error != 0)
        return os_error;
    os_error = check_regular(handle, ESPIPE);
    if (os_error == 0 && !GetFileSizeEx(handle, &size))
        os_error = ptwm_windows_error();
    if (os_error != 0) {
        CloseHandle(handle);
        return os_error;
    }
    *file = (ptwm_os_file)handle;
    *nbytes = (uint64_t)size.QuadPart;
    return 0;
}

int ptwm_os_create(const char *path, ptwm_os_file *file)
{
    HANDLE handle;
    wchar_t *wide;
    int os_error = ptwm_windows_widen(path, &wide);

    if (os_error != 0)
        return os_error;
    handle = CreateFileW(wide, GENERIC_READ | GENERIC_WRITE, SHARE_ALL, NULL, CREATE_NEW, FILE_ATTRIBUTE_NORMAL, NULL);
    if (handle == INVALID_HANDLE_VALUE)
        os_error = ptwm_windows_error();
    else
        *file = (ptwm_os_file)handle;
    free(wide);
    return os_error;
}

int ptwm_os_close(ptwm_os_file file)
{
    return CloseHandle(handle_of(file)) ? 0 : ptwm_windows_error();
}

/* ----------------------------------------------------------------------------------------------- read and write */

enum { REQUEST_NBYTES = 1 << 30 };

/* A read that names its offset moves the handle's position all the same: nothing here relies on that. */
int ptwm_os_read(ptwm_os_file file, uint64_t offset, uint8_t *to, size_t nbytes)
{
    while (nbytes > 0) {
        OVERLAPPED at = { .Offset = (DWORD)offset, .OffsetHigh = (DWORD)(offset >> 32) };
        DWORD n = 0;

        if (!ReadFile(handle_of(file), to, nbytes < REQUEST_NBYTES ? (DWORD)nbytes : REQUEST_NBYTES, &n, &at))
            return GetLastError() == ERROR_HANDLE_EOF ? PTWM_OS_END : ptwm_windows_error();
        if (n == 0)
            return PTWM_OS_END;
        to += n;
        nbytes -= n;
        offset += n;
    }
    return 0;
}

int ptwm_os_append(ptwm_os_file file, const uint8_t *from, size_t nbytes)
{
    while (nbytes > 0) {
        OVERLAPPED at_end = { .Offset = 0xFFFFFFFF, .OffsetHigh = 0xFFFFFFFF };
        DWORD n = 0;

        if (!WriteFile(handle_of(file), from, nbytes < REQUEST_NBYTES ? (DWORD)nbytes : REQUEST_NBYTES, &n, &at_end))
            return ptwm_windows_error();
        if (n == 0)
            return EIO;
        from += n;
        nbytes -= n;
    }
    return 0;
}

int ptwm_os_sync(ptwm_os_file file)
{
    return FlushFileBuffers(handle_of(file)) ? 0 : ptwm_windows_error();
}

/* --------------------------------------------------------------------------------------------------- map, prefetch */

int ptwm_os_map(ptwm_os_file file, size_t nbytes, const uint8_t **data)
{
    HANDLE mapping = CreateFileMappingW(handle_of(file), NULL, PAGE_READONLY, 0, 0, NULL);
    const void *view;
    int os_error = 0;

    if (mapping == NULL)
        return ptwm_windows_error();
    view = MapViewOfFile(mapping, FILE_MAP_READ, 0, 0, nbytes);
    if (view == NULL)
        os_error = ptwm_windows_error();
    else
        *data = view;
    CloseHandle(mapping); /* the view goes on */
    return os_error;
}

void ptwm_os_unmap(const uint8_t *data, size_t nbytes)
{
    (void)nbytes;
    UnmapViewOfFile(data);
}

void ptwm_os_populate(const uint8_t *data, uint64_t offset, uint64_t nbytes)
{
    WIN32_MEMORY_RANGE_ENTRY range = { (void *)(uintptr_t)(data + offset), (SIZE_T)nbytes };

    (void)PrefetchVirtualMemory(GetCurrentProcess(), 1, &range, 0);
}

void ptwm_os_will_read(ptwm_os_file file, uint64_t offset, uint64_t nbytes)
{
    (void)file; /* there is no such call for files that are read */
    (void)offset;
    (void)nbytes;
}

/* ------------------------------------------------------------------------------------------------------- names */

/* The path of what a handle has open, links resolved. */
static int final_path(HANDLE handle, const struct ptwm_allocator *allocator, char **target, size_t *capacity)
{
    const DWORD n = GetFinalPathNameByHandleW(handle, NULL, 0, FILE_NAME_NORMALIZED);
    wchar_t *wide = n > 0 ? malloc(((size_t)n + 1) * sizeof *wide) : NULL;
    int os_error = 0;

    if (n == 0)
        return ptwm_windows_error();
    if (wide == NULL)
        return ENOMEM;
    if (GetFinalPathNameByHandleW(handle, wide, n + 1, FILE_NAME_NORMALIZED) > n)
        os_error = ENOENT; /* it has been renamed */
    else
        os_error = ptwm_windows_narrow(wide, allocator, target, capacity);
    free(wide);
    return os_error;
}

int ptwm_os_resolve(const char *path, const struct ptwm_allocator *allocator, char **target, size_t *capacity)
{
    wchar_t *wide;
    HANDLE handle;
    DWORD attributes;
    int os_error = ptwm_windows_widen(path, &wide);

    if (os_error != 0)
        return os_error;
    attributes = GetFileAttributesW(wide); /* of a link itself */
    handle = CreateFileW(wide, FILE_READ_ATTRIBUTES, SHARE_ALL, NULL, OPEN_EXISTING, FILE_FLAG_BACKUP_SEMANTICS, NULL);
    if (attributes == INVALID_FILE_ATTRIBUTES)
        attributes = 0;
    if (handle == INVALID_HANDLE_VALUE)
        os_error = attributes & FILE_ATTRIBUTE_REPARSE_POINT ? ptwm_windows_error() : 0;
    else
        os_error = check_regular(handle, EINVAL);
    if (os_error == 0 && attributes & FILE_ATTRIBUTE_REPARSE_POINT)
        os_error = final_path(handle, allocator, target, capacity);
    else if (os_error == 0)
        os_error = ptwm_windows_narrow(wide, allocator, target, capacity);
    if (handle != INVALID_HANDLE_VALUE)
        CloseHandle(handle);
    free(wide);
    return os_error;
}

/*
 * A rename as POSIX has it, which Windows 10 and NTFS know: a file that somebody has open is replaced, and lives on for
 * who has it open. The information is that of FileRenameInfoEx, whose name and flags not all headers have.
 */
static bool rename_as_posix(const wchar_t *from, const wchar_t *to)
{
    enum { REPLACE_IF_EXISTS = 1, POSIX_SEMANTICS = 2, RENAME_INFO_EX = 22 };
    struct rename_info {
        DWORD flags;
        HANDLE directory;
        DWORD name_nbytes;
        WCHAR name[1];
    } *info;
    const size_t name_nbytes = wcslen(to) * sizeof *to, info_nbytes = sizeof *info + name_nbytes;
    HANDLE handle = CreateFileW(from, DELETE | SYNCHRONIZE, SHARE_ALL, NULL, OPEN_EXISTING, FILE_ATTRIBUTE_NORMAL, NULL);
    bool is_done = false;

    if (handle == INVALID_HANDLE_VALUE)
        return false;
    info = calloc(1, info_nbytes);
    if (info != NULL) {
        info->flags = REPLACE_IF_EXISTS | POSIX_SEMANTICS;
        info->name_nbytes = (DWORD)name_nbytes;
        memcpy(info->name, to, name_nbytes);
        is_done = SetFileInformationByHandle(handle, (FILE_INFO_BY_HANDLE_CLASS)RENAME_INFO_EX, info, (DWORD)info_nbytes);
    }
    free(info);
    CloseHandle(handle);
    return is_done;
}

int ptwm_os_rename(const char *from, const char *to)
{
    wchar_t *wide_from = NULL, *wide_to = NULL;
    int os_error = ptwm_windows_widen(from, &wide_from);

    if (os_error == 0)
        os_error = ptwm_windows_widen(to, &wide_to);
    if (os_error == 0 && !rename_as_posix(wide_from, wide_to) &&
        !MoveFileExW(wide_from, wide_to, MOVEFILE_REPLACE_EXISTING | MOVEFILE_WRITE_THROUGH))
        os_error = ptwm_windows_error();
    free(wide_from);
    free(wide_to);
    return os_error;
}

void ptwm_os_sync_directory_of(char *path)
{
    (void)path; /* file systems here keep names in a journal of their own */
}

void ptwm_os_remove(const char *path)
{
    wchar_t *wide;

    if (ptwm_windows_widen(path, &wide) != 0)
        return;
    (void)DeleteFileW(wide);
    free(wide);
}

unsigned long ptwm_os_process_id(void)
{
    return GetCurrentProcessId();
}

/* ------------------------------------------------------------------------------------------------------- pages */

/* Small ones: large pages need a privilege that few processes have. */
void *ptwm_os_map_pages(size_t nbytes)
{
    return VirtualAlloc(NULL, nbytes, MEM_RESERVE | MEM_COMMIT, PAGE_READWRITE);
}

void ptwm_os_prefer_huge_pages(void *memory, size_t nbytes)
{
    (void)memory;
    (void)nbytes;
}

void *ptwm_os_grow_pages(void *old, size_t old_nbytes, size_t nbytes)
{
    void *new = ptwm_os_map_pages(nbytes);

    if (new == NULL)
        return NULL;
    memcpy(new, old, old_nbytes);
    ptwm_os_unmap_pages(old, old_nbytes);
    return new;
}

void ptwm_os_unmap_pages(void *pages, size_t nbytes)
{
    (void)nbytes;
    VirtualFree(pages, 0, MEM_RELEASE);
}

void *ptwm_os_aligned_alloc(size_t alignment, size_t nbytes)
{
    return _aligned_malloc(nbytes, alignment);
}

void ptwm_os_aligned_free(void *p)
{
    _aligned_free(p);
}

/* ------------------------------------------------------------------------------------------- processors and time */

unsigned ptwm_usable_cpus(void)
{
    DWORD_PTR mine = 0, all = 0;
    unsigned n = 0;

    if (GetProcessAffinityMask(GetCurrentProcess(), &mine, &all))
        for (; mine != 0; mine &= mine - 1)
            n++;
    if (n == 0) /* a process of several groups of processors */
        n = (unsigned)GetActiveProcessorCount(ALL_PROCESSOR_GROUPS);
    return n > 0 ? n : 1;
}

uint64_t ptwm_os_nanoseconds(void)
{
    LARGE_INTEGER count, per_second;

    QueryPerformanceCounter(&count);
    QueryPerformanceFrequency(&per_second);
    return (uint64_t)count.QuadPart / (uint64_t)per_second.QuadPart * 1000000000u +
           (uint64_t)count.QuadPart % (uint64_t)per_second.QuadPart * 1000000000u / (uint64_t)per_second.QuadPart;
}

#endif
