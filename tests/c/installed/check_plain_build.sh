#!/bin/sh
# Compiles the library and an example with the compiler alone, as programs do that take its sources in.
# Usage: check_plain_build.sh SOURCE_DIRECTORY CC
set -eu
source=$1
shift
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

mkdir "$work/objects"
(cd "$work/objects" && "$@" -std=c99 -c "$source"/libptwm/*.c)
for name in write_model load_model; do
    "$@" -std=c99 -I "$source/libptwm" "$source/tests/examples/$name.c" "$work"/objects/*.o -o "$work/$name" -lpthread
done
"$work/write_model" "$work/model.ptwm"
"$work/load_model" "$work/model.ptwm" | diff "$source/tests/examples/expected.txt" -
echo "1 passed, 0 failed"
