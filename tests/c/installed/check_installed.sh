#!/bin/sh
# Installs the built library into a temporary root, and uses it as a C user would: header, pkg-config, shared and static
# library, exported symbols. Usage: check_installed.sh BUILD_DIRECTORY CC
set -eu
build=$1
shift
here=$(dirname "$0")
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT

DESTDIR=$root meson install -C "$build" --no-rebuild --quiet >/dev/null
pc=$(find "$root" -name ptwm.pc)
test -n "$pc" || { echo "no ptwm.pc"; exit 1; }
libdir=$(dirname "$(dirname "$pc")")
export PKG_CONFIG_PATH=$(dirname "$pc") PKG_CONFIG_SYSROOT_DIR=$root

# shellcheck disable=SC2046
"$@" -std=c99 -Wall -Wextra -Wpedantic -Werror "$here/consumer.c" -o "$root/shared" $(pkg-config --cflags --libs ptwm)
LD_LIBRARY_PATH=$libdir "$root/shared" "$root/a.ptwm" | grep -q '^weights F32 4000 bytes' || { echo "wrong listing"; exit 1; }
# shellcheck disable=SC2046
"$@" -std=c99 "$here/consumer.c" -o "$root/static" $(pkg-config --cflags ptwm) "$libdir/libptwm.a" \
    $(pkg-config --static --libs ptwm | sed 's/-lptwm//')
"$root/static" "$root/b.ptwm" >/dev/null
cmp "$root/a.ptwm" "$root/b.ptwm"

# ptwm-dump needs no more of the library than its users see: it compiles with the installed header.
tools=$here/../../../tools/ptwm-dump
# shellcheck disable=SC2046
"$@" -std=c99 "$tools"/*.c -o "$root/dump" $(pkg-config --cflags --libs ptwm) -lm
LD_LIBRARY_PATH=$libdir "$root/dump" -c "$root/a.ptwm" >/dev/null
# It was installed, too, with its man page.
installed=$(find "$root" -name ptwm-dump -type f -perm -u+x)
"$installed" -c "$root/b.ptwm" | grep -q '^nothing wrong$'
test -n "$(find "$root" -path '*man1/ptwm-dump.1*')"

# Only the functions of the header are exported, and all of them are.
exported=$(nm -D --defined-only "$libdir/libptwm.so" | awk '$2 ~ /[TDBRVW]/ { print $3 }' | sort)
declared=$(sed -n 's/^PTWM_API .*[ *]\(ptwm_[a-z0-9_]*\)(.*/\1/p' "$(find "$root" -name ptwm.h)" | sort)
test "$exported" = "$declared" || { echo "exported:"; echo "$exported"; echo "declared:"; echo "$declared"; exit 1; }
echo "1 passed, 0 failed"
