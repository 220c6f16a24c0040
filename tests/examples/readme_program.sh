#!/bin/sh
# Makes a program of README.md's C example: what it leaves to the reader, three dots, becomes a line of output.
# Usage: readme_program.sh README.md > readme.c
set -eu
cat <<'BEGIN'
#include <ptwm.h>
#include <stdio.h>
#include <stdlib.h>

static int fail(const char *what, const char *detail)
{
    fprintf(stderr, "%s (%s)\n", what, detail);
    return 1;
}

int main(void)
{
BEGIN
awk '
    /^```c$/ { inside = 1; next }
    /^```$/ { inside = 0 }
    inside && /^ *\.\.\.$/ {
        print "    printf(\"head: %llu bytes, status %d\\n\", (unsigned long long)info.nbytes, (int)status);"
        print "    free(weights);"
        next
    }
    inside { print }
' "$1"
printf '    return 0;\n}\n'
