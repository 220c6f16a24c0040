#!/bin/sh
# What ptwm-dump says of the golden files: nothing wrong in the good ones, something in each bad one, in text and as JSON, every
# field of the good ones by name. Usage: check_dump.sh PTWM_DUMP DIRECTORY HAS_ZSTD
set -eu
dump=$1
directory=$2
has_zstd=$3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
n=0
skipped=0

# STATUS OPTION ...: the status that ptwm-dump has to end with.
expect() {
    expected=$1
    shift
    status=0
    "$dump" "$@" >"$work/out" 2>"$work/errors" || status=$?
    if [ "$status" != "$expected" ] || [ -s "$work/errors" ]; then
        echo "ptwm-dump $* ended with $status, not $expected"
        cat "$work/errors" "$work/out"
        exit 1
    fi
    n=$((n + 1))
}

tab=$(printf '\t')
awk -F "$tab" '$1 == "good" { name = $2 } $1 == "tensor" && $NF == "zstd" { print name }' "$directory/index.tsv" >"$work/zstd"
while IFS=$tab read -r kind name _; do
    file=$directory/$name
    case $kind in
    good)
        # Without zstd it cannot check what zstd stores, and says so.
        if [ "$has_zstd" = 0 ] && grep -qxF "$name" "$work/zstd"; then
            skipped=$((skipped + 1))
            continue
        fi
        expect 0 -c "$file"
        expect 0 -c -j "$file"
        expect 0 -x all "$file"
        ;;
    bad)
        # What is wrong with bytes alone shows when they are decoded.
        expect 1 -c "$file"
        grep -q '^wrong$' "$work/out" || { echo "$name: nothing is said to be wrong"; cat "$work/out"; exit 1; }
        expect 1 -c -j "$file"
        ;;
    esac
done <"$directory/index.tsv"
echo "$n runs, $skipped files skipped as they take zstd, which is not built in"
test "$n" -gt 500
