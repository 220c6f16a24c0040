#!/bin/sh
# Builds a project that has this one as a meson subproject, through a wrap file, and runs its program.
# Usage: check_subproject.sh SOURCE_DIRECTORY CC
set -eu
source=$1
shift
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

mkdir "$work/subprojects"
ln -s "$source" "$work/subprojects/ptwm"
cat >"$work/subprojects/ptwm.wrap" <<'WRAP'
[wrap-file]
directory = ptwm

[provide]
dependency_names = ptwm
WRAP
cat >"$work/meson.build" <<'BUILD'
project('user', 'c', default_options: ['default_library=static', 'wrap_mode=forcefallback', 'buildtype=plain'])
executable('write_model', 'write_model.c', dependencies: dependency('ptwm'))
executable('load_model', 'load_model.c', dependencies: dependency('ptwm'), install: true)
BUILD
cp "$source/tests/examples/write_model.c" "$source/tests/examples/load_model.c" "$work"

CC="$*" meson setup "$work/build" "$work" >"$work/log" || { cat "$work/log"; exit 1; }
meson compile -C "$work/build" >"$work/log" || { cat "$work/log"; exit 1; }
"$work/build/write_model" "$work/model.ptwm"
"$work/build/load_model" "$work/model.ptwm" | diff "$source/tests/examples/expected.txt" -
# A user's project has no use for our tests and tools.
test -z "$(find "$work/build" -name 'test_*' -o -name 'ptwm-dump*')"
echo "1 passed, 0 failed"
