/*
 * Runs a fuzz target on files, and on the files of directories, without libFuzzer.
 */
#define _DEFAULT_SOURCE
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>

#include "fuzz.h"

static size_t n_inputs;

static int run_file(const char *path)
{
    FILE *f = fopen(path, "rb");
    uint8_t *data = NULL, *exact;
    long nbytes = -1;

    if (f != NULL && fseek(f, 0, SEEK_END) == 0)
        nbytes = ftell(f);
    if (nbytes >= 0 && fseek(f, 0, SEEK_SET) == 0)
        data = malloc((size_t)nbytes + 1);
    if (data == NULL || fread(data, 1, (size_t)nbytes, f) != (size_t)nbytes) {
        fprintf(stderr, "%s: cannot be read\n", path);
        return 1;
    }
    fclose(f);
    fprintf(stderr, "%s\n", path); /* whatever happens, one knows where */
    exact = malloc((size_t)nbytes > 0 ? (size_t)nbytes : 1);
    memcpy(exact, data, (size_t)nbytes);
    free(data);
    (void)LLVMFuzzerTestOneInput(exact, (size_t)nbytes);
    free(exact);
    n_inputs++;
    return 0;
}

static int run_path(const char *path)
{
    DIR *directory = opendir(path);
    char inner[4096];
    int failed = 0;

    if (directory == NULL)
        return run_file(path);
    for (struct dirent *e = readdir(directory); e != NULL; e = readdir(directory)) {
        if (e->d_name[0] == '.')
            continue;
        snprintf(inner, sizeof inner, "%s/%s", path, e->d_name);
        failed |= run_path(inner);
    }
    closedir(directory);
    return failed;
}

int main(int argc, char **argv)
{
    int failed = 0;

    for (int i = 1; i < argc; i++)
        failed |= run_path(argv[i]);
    printf("%zu inputs\n", n_inputs);
    return failed || n_inputs == 0;
}
