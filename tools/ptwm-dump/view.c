#if !defined(_WIN32)
#define _FILE_OFFSET_BITS 64
#define _POSIX_C_SOURCE 200809L
#endif

#include "view.h"

#include <errno.h>
#include <stdlib.h>
#if defined(_WIN32)
#include "win32.h"
#else
#include <sys/types.h>
#endif

/* fseek and ftell have offsets of a long, which is too small for large files on some systems. */
#if defined(_WIN32)
static FILE *open_to_read(const char *path)
{
    return win32_open(path);
}

static int seek_to(FILE *file, int64_t offset, int origin)
{
    return _fseeki64(file, offset, origin);
}

static int64_t position_of(FILE *file)
{
    return _ftelli64(file);
}
#else
static FILE *open_to_read(const char *path)
{
    return fopen(path, "rb");
}

static int seek_to(FILE *file, int64_t offset, int origin)
{
    return fseeko(file, (off_t)offset, origin);
}

static int64_t position_of(FILE *file)
{
    return (int64_t)ftello(file);
}
#endif

int view_open(struct dump_view *view, const char *path)
{
    int64_t end;
    char first;

    view->nbytes = 0;
    errno = 0;
    view->file = open_to_read(path);
    if (view->file == NULL)
        return errno != 0 ? errno : EIO;
    /* The first byte tells a directory, which can be opened but not read; an end may be claimed for it all the same. */
    if (fread(&first, 1, 1, view->file) == 0 && ferror(view->file))
        return errno != 0 ? errno : EIO;
    if (seek_to(view->file, 0, SEEK_END) != 0 || (end = position_of(view->file)) < 0)
        return errno != 0 ? errno : EIO;
    view->nbytes = (uint64_t)end;
    return 0;
}

void view_close(struct dump_view *view)
{
    if (view->file != NULL)
        fclose(view->file);
    view->file = NULL;
}

bool view_read(const struct dump_view *view, uint64_t offset, void *buffer, size_t nbytes)
{
    if (offset > view->nbytes || nbytes > view->nbytes - offset)
        return false;
    return nbytes == 0 ||
           (seek_to(view->file, (int64_t)offset, SEEK_SET) == 0 && fread(buffer, 1, nbytes, view->file) == nbytes);
}

uint8_t *view_load(const struct dump_view *view, uint64_t offset, uint64_t nbytes)
{
    uint8_t *bytes;

    if (offset > view->nbytes || nbytes > view->nbytes - offset || nbytes >= SIZE_MAX)
        return NULL;
    bytes = malloc((size_t)nbytes + 1); /* 0 bytes are memory too */
    if (bytes != NULL && !view_read(view, offset, bytes, (size_t)nbytes)) {
        free(bytes);
        return NULL;
    }
    return bytes;
}

static int read_for_library(void *context, uint64_t offset, void *buffer, size_t nbytes)
{
    return view_read(context, offset, buffer, nbytes) ? 0 : EIO;
}

struct ptwm_source view_source(struct dump_view *view)
{
    const struct ptwm_source source = { read_for_library, view, view->nbytes };
    return source;
}
