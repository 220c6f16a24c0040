/*
 * A stream whose text is wanted: in memory where the system has such streams, else in a temporary file. POSIX systems
 * want _DEFAULT_SOURCE before all headers.
 */
#ifndef CAPTURE_H
#define CAPTURE_H

#include <stdio.h>
#include <stdlib.h>

struct capture {
    FILE *file;
    char **text; /* where open_memstream puts it */
    size_t *nbytes;
};

static inline struct capture capture_begin(void)
{
    struct capture c = { NULL, NULL, NULL };

#if defined(_WIN32)
    c.file = tmpfile();
#else
    c.text = malloc(sizeof *c.text);
    c.nbytes = malloc(sizeof *c.nbytes);
    if (c.text != NULL && c.nbytes != NULL)
        c.file = open_memstream(c.text, c.nbytes);
#endif
    if (c.file == NULL)
        abort();
    return c;
}

/* The text, NUL-terminated, to be freed. */
static inline char *capture_end(struct capture *c)
{
    char *text;

#if defined(_WIN32)
    const long nbytes = ftell(c->file);
    text = calloc((size_t)nbytes + 1, 1);
    rewind(c->file);
    if (text == NULL || fread(text, 1, (size_t)nbytes, c->file) != (size_t)nbytes)
        abort();
    fclose(c->file);
#else
    fclose(c->file);
    text = *c->text;
    free(c->text);
    free(c->nbytes);
#endif
    return text;
}

#endif
