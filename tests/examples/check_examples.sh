#!/bin/sh
# Runs the examples: what is written must be what all of them read. Usage: check_examples.sh BUILD_DIRECTORY PTWM_DUMP
# Programs for another machine run under what meson says in MESON_EXE_WRAPPER.
set -eu
wrapper=${MESON_EXE_WRAPPER-}
build=$1
dump=$2
here=$(dirname "$0")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
n=0
suffix=
if [ -e "$build/example_load_model.exe" ]; then
    suffix=.exe
fi

# NAME COMMAND ...: its output is the expected one.
expect() {
    name=$1
    shift
    "$@" >"$work/text" || { echo "$name failed"; exit 1; }
    tr -d '\r' <"$work/text" >"$work/got" # Windows' ends of lines
    diff "$here/expected.txt" "$work/got" || { echo "$name printed something else"; exit 1; }
    n=$((n + 1))
}

model=$work/model.ptwm
$wrapper "$build/example_write_model$suffix" "$model"
$wrapper "$dump" -c "$model" >"$work/dump" || { cat "$work/dump"; exit 1; }
grep -q '20 bytes of metadata' "$work/dump"
# The bytes are the same each time, and tied weights are there once.
$wrapper "$build/example_write_model$suffix" "$work/again.ptwm"
cmp "$model" "$work/again.ptwm"
test "$(wc -c <"$model")" -lt 180000

expect load_model $wrapper "$build/example_load_model$suffix" "$model"
expect stream_model $wrapper "$build/example_stream_model$suffix" "$model"
expect decode_on_threads $wrapper "$build/example_decode_on_threads$suffix" "$model"
if [ -x "$build/example_load_model_cpp$suffix" ]; then
    expect load_model.cpp $wrapper "$build/example_load_model_cpp$suffix" "$model"
fi

# The example of README.md opens model.ptwm where it is run.
(cd "$work" && $wrapper "$build/example_readme$suffix") >"$work/got" || { echo "README.md's example failed"; exit 1; }
tr -d '\r' <"$work/got" | grep -q '^head: 262144 bytes, status 0$' || { cat "$work/got"; exit 1; }
n=$((n + 1))

# A member of an archive: the model with other bytes around it.
{ tail -c 12345 "$model"; cat "$model"; echo "more"; } >"$work/archive"
expect archive_member $wrapper "$build/example_archive_member$suffix" "$work/archive" 12345 "$(wc -c <"$model")" 2>"$work/memory"
grep -q ' 0 left behind' "$work/memory" || { cat "$work/memory"; exit 1; }

# What does not work ends with a line and a status.
for name in load_model stream_model decode_on_threads; do
    if $wrapper "$build/example_$name$suffix" "$work/archive" >/dev/null 2>"$work/errors"; then
        echo "$name read what is no model"
        exit 1
    fi
    grep -q 'not a .ptwm file' "$work/errors" || { cat "$work/errors"; exit 1; }
done
echo "$n passed, 0 failed"
