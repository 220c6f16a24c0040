/*
 * What Windows does in other ways than C: words of the command line, paths and consoles, all in UTF-8 here. Empty elsewhere.
 */
#ifndef DUMP_WIN32_H
#define DUMP_WIN32_H

#include <stdbool.h>
#include <stdio.h>

/* The words of the command line, one block of memory to be freed; NULL if there is none. */
char **win32_arguments(int *argc);

/* Has output go out as it is written: line feeds stay what they are, and consoles take it for UTF-8. */
void win32_prepare_output(void);
/* Gives the console back as it was. */
void win32_restore_console(void);

/* Whether file is a console that understands escape sequences, which it is told to. */
bool win32_has_colour(FILE *file);

/* fopen for reading; errno says what went wrong. */
FILE *win32_open(const char *path);

#endif
