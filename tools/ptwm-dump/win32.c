#include "win32.h"

#if defined(_WIN32)

#define WIN32_LEAN_AND_MEAN
#include <windows.h>

#include <errno.h>
#include <fcntl.h>
#include <io.h>
#include <shellapi.h>
#include <stdlib.h>

static UINT console_code_page; /* before the program began; 0 without a console */

char **win32_arguments(int *argc)
{
    LPWSTR *wide = CommandLineToArgvW(GetCommandLineW(), argc);
    size_t total = 0, room;
    char **argv, *next;

    if (wide == NULL)
        return NULL;
    for (int i = 0; i < *argc; i++)
        total += (size_t)WideCharToMultiByte(CP_UTF8, 0, wide[i], -1, NULL, 0, NULL, NULL);
    argv = malloc(((size_t)*argc + 1) * sizeof *argv + total);
    if (argv != NULL) {
        next = (char *)(argv + *argc + 1);
        room = total;
        for (int i = 0; i < *argc; i++) {
            const int n = WideCharToMultiByte(CP_UTF8, 0, wide[i], -1, next, (int)room, NULL, NULL);
            argv[i] = next;
            next += n;
            room -= (size_t)n;
        }
        argv[*argc] = NULL;
    }
    LocalFree(wide);
    return argv;
}

void win32_prepare_output(void)
{
    fflush(stdout);
    (void)_setmode(_fileno(stdout), _O_BINARY);
    console_code_page = GetConsoleOutputCP();
    if (console_code_page != 0)
        SetConsoleOutputCP(CP_UTF8);
}

void win32_restore_console(void)
{
    fflush(stdout);
    if (console_code_page != 0)
        SetConsoleOutputCP(console_code_page);
}

bool win32_has_colour(FILE *file)
{
    const DWORD escapes = 4; /* ENABLE_VIRTUAL_TERMINAL_PROCESSING, which not all headers have */
    const int descriptor = _fileno(file);
    const HANDLE handle = descriptor >= 0 ? (HANDLE)_get_osfhandle(descriptor) : INVALID_HANDLE_VALUE;
    DWORD mode;

    return handle != INVALID_HANDLE_VALUE && GetConsoleMode(handle, &mode) && SetConsoleMode(handle, mode | escapes);
}

FILE *win32_open(const char *path)
{
    const int n = MultiByteToWideChar(CP_UTF8, MB_ERR_INVALID_CHARS, path, -1, NULL, 0);
    wchar_t *wide = n > 0 ? malloc((size_t)n * sizeof *wide) : NULL;
    FILE *file = NULL;

    if (n <= 0) {
        errno = EILSEQ;
    } else if (wide == NULL) {
        errno = ENOMEM;
    } else {
        MultiByteToWideChar(CP_UTF8, MB_ERR_INVALID_CHARS, path, -1, wide, n);
        file = _wfopen(wide, L"rb");
    }
    free(wide);
    return file;
}

#endif
