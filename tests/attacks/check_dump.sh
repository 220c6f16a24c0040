#!/bin/sh
# ptwm-dump on the hostile files that test_attacks makes: it says what is wrong with each of them, and ends by itself.
# Usage: check_dump.sh PTWM_DUMP TEST_ATTACKS
set -eu
dump=$1
attacks=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
n=0

mkdir "$work/files"
"$attacks" "$work/files" >"$work/out" || { cat "$work/out"; exit 1; }
for file in "$work"/files/*.ptwm; do
    status=0
    "$dump" -c "$file" >"$work/out" 2>"$work/errors" || status=$?
    if [ "$status" != 1 ] || [ -s "$work/errors" ] || ! grep -q '^wrong$' "$work/out"; then
        echo "$file: ptwm-dump ended with $status"
        cat "$work/errors" "$work/out"
        exit 1
    fi
    n=$((n + 1))
done
echo "$n hostile files, something wrong in each"
test "$n" -gt 100
