/*
 * make_golden DIRECTORY: makes all golden files and their index, index.tsv, in DIRECTORY.
 *
 * Golden files are what readers of all later versions have to read, and to refuse. The tests compare with the committed
 * ones and never make them anew. This program says how they came about, and makes more of them:
 *
 *   - While the status line of FORMAT.md says "candidate", all may be made anew, in a commit of its own that says why.
 *   - Once it says "frozen", files and lines of the index are only added: run this in an empty directory and take from
 *     there what is new. What the writer makes is likely to differ from the committed files then, as encoders
 *     get better; those stay as they are.
 *
 * The result is the same on all machines, but for what zstd makes, which depends on its version: that has to be built in.
 * If it is not, no file is made.
 */
#include "golden.h"

#include <stdlib.h>

const char *golden_directory;
FILE *golden_index;

int main(int argc, char **argv)
{
    char path[4096];

    if (argc != 2 || !ptwm_has_builtin_zstd()) {
        fprintf(stderr, "usage: make_golden DIRECTORY, built with zstd\n");
        return 2;
    }
    golden_directory = argv[1];
    snprintf(path, sizeof path, "%s/index.tsv", golden_directory);
    golden_index = fopen(path, "wb");
    if (golden_index == NULL) {
        fprintf(stderr, "make_golden: %s cannot be written\n", path);
        return 1;
    }
    fputs("# Golden files; README.md says what the columns are. Made by make_golden.c, and only ever added to.\n",
          golden_index);
    make_written();
    make_codecs();
    make_labels();
    make_manifests();
    make_bad();
    make_bad_segments();
    fputs("end\n", golden_index);
    return fclose(golden_index) == 0 ? 0 : 1;
}
