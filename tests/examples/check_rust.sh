#!/bin/sh
# Compiles and runs load_model.rs with the shared library. Usage: check_rust.sh BUILD_DIRECTORY LIBRARY_DIRECTORY
set -eu
build=$1
library=$2
here=$(dirname "$0")
if ! rustc --version >/dev/null 2>&1; then
    echo "SKIP: there is no rustc that works"
    exit 77
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
rustc --edition 2021 -D warnings "$here/load_model.rs" -o "$work/load_model" -L "$library"
"$build/example_write_model" "$work/model.ptwm"
LD_LIBRARY_PATH=$library "$work/load_model" "$work/model.ptwm" | diff "$here/expected.txt" -
if LD_LIBRARY_PATH=$library "$work/load_model" "$here/expected.txt" 2>"$work/errors"; then
    echo "it read what is no model"
    exit 1
fi
grep 'not a .ptwm file' "$work/errors"
echo "1 passed, 0 failed"
