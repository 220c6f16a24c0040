#include "windows_names.h"

#ifdef _WIN32

#define WIN32_LEAN_AND_MEAN
#include <windows.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------------------------------------------------------- errors */

int ptwm_windows_error(void)
{
    static const struct {
        DWORD code;
        int os_error;
    } codes[] = {
        { ERROR_FILE_NOT_FOUND, ENOENT },
        { ERROR_PATH_NOT_FOUND, ENOENT },
        { ERROR_INVALID_NAME, ENOENT },
        { ERROR_INVALID_DRIVE, ENOENT },
        { ERROR_BAD_NETPATH, ENOENT },
        { ERROR_BAD_NET_NAME, ENOENT },
        { ERROR_DIRECTORY, ENOTDIR },
        { ERROR_ACCESS_DENIED, EACCES },
        { ERROR_SHARING_VIOLATION, EACCES },
        { ERROR_LOCK_VIOLATION, EACCES },
        { ERROR_USER_MAPPED_FILE, EACCES },
        { ERROR_WRITE_PROTECT, EROFS },
        { ERROR_FILE_EXISTS, EEXIST },
        { ERROR_ALREADY_EXISTS, EEXIST },
        { ERROR_DISK_FULL, ENOSPC },
        { ERROR_HANDLE_DISK_FULL, ENOSPC },
        { ERROR_FILE_TOO_LARGE, EFBIG },
        { ERROR_NOT_ENOUGH_MEMORY, ENOMEM },
        { ERROR_OUTOFMEMORY, ENOMEM },
        { ERROR_COMMITMENT_LIMIT, ENOMEM },
        { ERROR_TOO_MANY_OPEN_FILES, EMFILE },
        { ERROR_INVALID_HANDLE, EBADF },
        { ERROR_NOT_SAME_DEVICE, EXDEV },
        { ERROR_FILENAME_EXCED_RANGE, ENAMETOOLONG },
        { ERROR_BUFFER_OVERFLOW, ENAMETOOLONG },
        { ERROR_CANT_RESOLVE_FILENAME, ELOOP },
        { ERROR_INVALID_PARAMETER, EINVAL },
        { ERROR_BUSY, EBUSY },
        { ERROR_NO_UNICODE_TRANSLATION, EILSEQ },
    };
    const DWORD code = GetLastError();

    for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++)
        if (codes[i].code == code)
            return codes[i].os_error;
    return EIO;
}

/* ------------------------------------------------------------------------------------------------------- paths */

enum { PREFIX_ROOM = 8 }; /* of \\?\ or \\?\UNC\, behind which paths may be longer than MAX_PATH */

/* Puts the prefix before a full path, which begins at text + PREFIX_ROOM and has length characters. */
static void prefix(wchar_t *text, size_t length)
{
    const wchar_t *path = text + PREFIX_ROOM;

    if (wcsncmp(path, L"\\\\?\\", 4) == 0 || wcsncmp(path, L"\\\\.\\", 4) == 0) {
        memmove(text, path, (length + 1) * sizeof *text);
    } else if (wcsncmp(path, L"\\\\", 2) == 0) { /* \\server\share: \\?\UNC\server\share */
        memcpy(text, L"\\\\?\\UNC\\", 8 * sizeof *text);
        memmove(text + 8, path + 2, (length - 1) * sizeof *text);
    } else {
        memcpy(text, L"\\\\?\\", 4 * sizeof *text);
        memmove(text + 4, path, (length + 1) * sizeof *text);
    }
}

int ptwm_windows_widen(const char *path, wchar_t **wide)
{
    const int n = MultiByteToWideChar(CP_UTF8, MB_ERR_INVALID_CHARS, path, -1, NULL, 0);
    wchar_t *given, *full = NULL;
    DWORD capacity, length;
    int os_error = 0;

    if (path[0] == 0)
        return ENOENT;
    if (n <= 0)
        return ptwm_windows_error();
    given = malloc((size_t)n * sizeof *given);
    if (given == NULL)
        return ENOMEM;
    MultiByteToWideChar(CP_UTF8, MB_ERR_INVALID_CHARS, path, -1, given, n);
    capacity = GetFullPathNameW(given, 0, NULL, NULL);
    if (capacity == 0) {
        os_error = ptwm_windows_error();
    } else {
        full = malloc((PREFIX_ROOM + (size_t)capacity) * sizeof *full);
        length = full != NULL ? GetFullPathNameW(given, capacity, full + PREFIX_ROOM, NULL) : 0;
        if (full == NULL)
            os_error = ENOMEM;
        else if (length == 0 || length >= capacity) /* another thread has changed the directory */
            os_error = ENOENT;
        else
            prefix(full, length);
    }
    free(given);
    if (os_error != 0)
        free(full);
    else
        *wide = full;
    return os_error;
}

int ptwm_windows_narrow(const wchar_t *wide, const struct ptwm_allocator *allocator, char **path, size_t *capacity)
{
    const int n = WideCharToMultiByte(CP_UTF8, 0, wide, -1, NULL, 0, NULL, NULL);

    if (n <= 0)
        return ptwm_windows_error();
    *capacity = (size_t)n;
    *path = ptwm_alloc(allocator, *capacity, 1);
    if (*path == NULL)
        return ENOMEM;
    WideCharToMultiByte(CP_UTF8, 0, wide, -1, *path, n, NULL, NULL);
    return 0;
}

#endif
