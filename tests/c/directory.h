/*
 * Where tests keep their files: a directory of their own. POSIX systems want _DEFAULT_SOURCE before all headers.
 */
#ifndef DIRECTORY_H
#define DIRECTORY_H

#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The system's directory for temporary files. */
static inline const char *directory_of_temporary_files(void)
{
    const char *directory = getenv("TMPDIR");

#if defined(_WIN32)
    if (directory == NULL)
        directory = getenv("TEMP");
#endif
    return directory != NULL && strlen(directory) < 200 ? directory : "/tmp";
}

/* Makes a directory in it that nobody else has, and stores its path in directory[0 .. capacity). */
static inline bool directory_make(char *directory, size_t capacity)
{
#if defined(_WIN32)
    snprintf(directory, capacity, "%s/ptwm-test-%ld", directory_of_temporary_files(), (long)getpid());
    return mkdir(directory) == 0;
#else
    snprintf(directory, capacity, "%s/ptwm-test-XXXXXX", directory_of_temporary_files());
    return mkdtemp(directory) != NULL;
#endif
}

/* Files in a directory, but for those whose names begin with a dot. */
static inline int directory_n_files(const char *directory)
{
    DIR *d = opendir(directory);
    int n = 0;

    for (struct dirent *e = readdir(d); e != NULL; e = readdir(d))
        n += e->d_name[0] != '.';
    closedir(d);
    return n;
}

#endif
