/*
 * What is different on Windows: paths in UTF-8 and long ones, names that are no files, files that are replaced or
 * deleted while they are open.
 */
#define WIN32_LEAN_AND_MEAN
#include <windows.h>

#include <errno.h>

#include "check.h"
#include "ptwm.h"

static char directory[MAX_PATH * 4]; /* UTF-8, with its last backslash */

static wchar_t *widen(const char *path)
{
    static wchar_t wide[4096];

    if (MultiByteToWideChar(CP_UTF8, 0, path, -1, wide, 4096) == 0)
        abort();
    return wide;
}

static int make_directory(void)
{
    wchar_t wide[MAX_PATH + 32];
    const DWORD length = GetTempPathW(MAX_PATH, wide);

    if (length == 0 || WideCharToMultiByte(CP_UTF8, 0, wide, -1, directory, sizeof directory - 40, NULL, NULL) == 0)
        return 0;
    snprintf(directory + strlen(directory), 40, "ptwm-t\xC3\xA9st-%lu\\", GetCurrentProcessId());
    return CreateDirectoryW(widen(directory), NULL);
}

/* Files in the directory, temporary ones included. */
static int n_files(void)
{
    WIN32_FIND_DATAW found;
    char pattern[sizeof directory + 8];
    HANDLE search;
    int n = 0;

    snprintf(pattern, sizeof pattern, "%s*", directory);
    search = FindFirstFileW(widen(pattern), &found);
    if (search == INVALID_HANDLE_VALUE)
        return 0;
    do
        n += !(found.dwFileAttributes & FILE_ATTRIBUTE_DIRECTORY);
    while (FindNextFileW(search, &found));
    FindClose(search);
    return n;
}

static enum ptwm_status write_file(const char *path, const char *text, struct ptwm_error *error)
{
    struct ptwm_tensor_spec spec = PTWM_TENSOR_SPEC_INIT;
    struct ptwm_writer *w = NULL;
    enum ptwm_status status = ptwm_writer_open_path(path, NULL, &w, error);

    spec.name = "t";
    spec.name_nbytes = 1;
    spec.data = text;
    spec.nbytes = strlen(text);
    if (status == PTWM_OK)
        status = ptwm_writer_add(w, &spec, error);
    if (status == PTWM_OK)
        status = ptwm_writer_finish(w, error);
    ptwm_writer_close(w);
    return status;
}

static struct ptwm_reader *open_file(const char *path, int backend)
{
    struct ptwm_reader_options options = PTWM_READER_OPTIONS_INIT;
    struct ptwm_reader *r = NULL;

    options.backend = (enum ptwm_backend)backend;
    CHECK_EQ(ptwm_reader_open_path(path, &options, &r, NULL), PTWM_OK);
    return r;
}

static int holds(const struct ptwm_reader *r, const char *text)
{
    char got[64] = { 0 };
    const struct ptwm_request request = { 0, 0, PTWM_NONE, got, strlen(text) };

    return r != NULL && ptwm_reader_decode(r, &request, 1, NULL, NULL) == PTWM_OK && strcmp(got, text) == 0;
}

/* Writes a file, replaces it, and reads it both ways. */
static void check_path(const char *path)
{
    CHECK_EQ(write_file(path, "abc", NULL), PTWM_OK);
    CHECK_EQ(write_file(path, "defg", NULL), PTWM_OK);
    for (int backend = 0; backend < 2; backend++) {
        struct ptwm_reader *r = open_file(path, backend);
        CHECK(holds(r, "defg"));
        ptwm_reader_close(r);
    }
}

static void test_names_in_utf8(void)
{
    static const char *const names[] = { "gr\xC3\xB6\xC3\x9F\x65.ptwm", "\xE9\x87\x8D \xE3\x81\xBF.ptwm",
                                         "\xF0\x9F\x90\x98.ptwm", ".\\b.ptwm", "c/../c.ptwm" };
    char path[sizeof directory + 64];

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        snprintf(path, sizeof path, "%s%s", directory, names[i]);
        check_path(path);
        CHECK_EQ(n_files(), 1);
        CHECK(DeleteFileW(widen(path))); /* that is its name */
    }
}

/* Directories in directories, until the path has more than MAX_PATH characters. */
static void test_long_paths(void)
{
    char path[sizeof directory + 1024], part[128], verbatim[sizeof path + 8];
    size_t lengths[8];

    memset(part, 'd', 100);
    part[100] = 0;
    snprintf(path, sizeof path, "%s", directory);
    for (int i = 0; i < 4; i++) {
        lengths[i] = strlen(path);
        snprintf(path + lengths[i], sizeof path - lengths[i], "%s\\", part);
        snprintf(verbatim, sizeof verbatim, "\\\\?\\%s", path);
        CHECK(CreateDirectoryW(widen(verbatim), NULL));
    }
    lengths[4] = strlen(path);
    snprintf(path + lengths[4], sizeof path - lengths[4], "a.ptwm");
    CHECK(strlen(path) > 400);
    check_path(path);
    snprintf(verbatim, sizeof verbatim, "\\\\?\\%s", path);
    check_path(verbatim);
    CHECK(DeleteFileW(widen(verbatim)));
    for (int i = 4; i > 0; i--) {
        verbatim[4 + lengths[i]] = 0;
        CHECK(RemoveDirectoryW(widen(verbatim)));
    }
}

static void check_error(enum ptwm_status status, const struct ptwm_error *error, int os_error)
{
    CHECK_EQ(status, PTWM_ERR_IO);
    CHECK_EQ(error->os_error, os_error);
}

static void test_what_is_no_file(void)
{
    struct ptwm_error error = PTWM_ERROR_INIT;
    struct ptwm_reader *r = NULL;
    char path[sizeof directory + 64];

    check_error(ptwm_reader_open_path(directory, NULL, &r, &error), &error, EISDIR);
    check_error(write_file(directory, "a", &error), &error, EISDIR);
    check_error(ptwm_reader_open_path("NUL", NULL, &r, &error), &error, ESPIPE);
    check_error(write_file("NUL", "a", &error), &error, EINVAL);
    check_error(ptwm_reader_open_path("\xFF.ptwm", NULL, &r, &error), &error, EILSEQ);
    check_error(write_file("\xFF.ptwm", "a", &error), &error, EILSEQ);
    check_error(ptwm_reader_open_path("", NULL, &r, &error), &error, ENOENT);
    snprintf(path, sizeof path, "%snothing.ptwm", directory);
    check_error(ptwm_reader_open_path(path, NULL, &r, &error), &error, ENOENT);
    snprintf(path, sizeof path, "%snothing\\a.ptwm", directory);
    check_error(write_file(path, "a", &error), &error, ENOENT);
    CHECK(r == NULL);
    CHECK_EQ(n_files(), 0);
}

/* Renames as POSIX has them are what wine 8 lacks. */
static int is_wine(void)
{
    return GetProcAddress(GetModuleHandleW(L"ntdll.dll"), "wine_get_version") != NULL;
}

/*
 * A file that is read may be replaced and deleted, and who reads it goes on with the old one. Of one that is mapped the
 * system may refuse both: then nothing has changed, and nothing is left behind.
 */
static void test_replaced_while_open(void)
{
    char path[sizeof directory + 64];

    snprintf(path, sizeof path, "%sa.ptwm", directory);
    for (int backend = 0; backend < 2; backend++) {
        struct ptwm_error error = PTWM_ERROR_INIT;
        struct ptwm_reader *old, *new;
        enum ptwm_status status;

        CHECK_EQ(write_file(path, "old", NULL), PTWM_OK);
        old = open_file(path, backend);
        status = write_file(path, "newer", &error);
        printf("replaced while %s: %s\n", backend == 0 ? "mapped" : "read", status == PTWM_OK ? "yes" : "refused");
        if (backend == 1 && !is_wine())
            CHECK_EQ(status, PTWM_OK);
        if (status != PTWM_OK)
            check_error(status, &error, EACCES);
        CHECK(holds(old, "old"));
        new = open_file(path, 1);
        CHECK(holds(new, status == PTWM_OK ? "newer" : "old"));
        CHECK_EQ(n_files(), 1);
        ptwm_reader_close(new);
        ptwm_reader_close(old);
        CHECK_EQ(write_file(path, "newest", NULL), PTWM_OK);
        old = open_file(path, 1);
        CHECK(DeleteFileW(widen(path)));
        CHECK(holds(old, "newest"));
        ptwm_reader_close(old);
        CHECK_EQ(n_files(), 0);
    }
}

int main(void)
{
    if (!make_directory())
        return 2;
    RUN(test_names_in_utf8);
    RUN(test_long_paths);
    RUN(test_what_is_no_file);
    RUN(test_replaced_while_open);
    CHECK(RemoveDirectoryW(widen(directory)));
    CHECK_EXIT();
}
