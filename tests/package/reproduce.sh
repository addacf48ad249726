#!/usr/bin/env bash
# What ./dev package --check does: makes the packages of HEAD twice, from clones in two folders and under everything that
# may differ between two machines (time zone, language, umask, number of cores), and compares their bytes.
# Needs no cache of compiled files: what comes out of one could not differ.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

WORK=$(mktemp -d)
readonly WORK ONE=$WORK/one TWO=$WORK/and/a/second/folder
trap 'rm -rf "$WORK"' EXIT

# make FOLDER SETTINGS...: the packages of a clone there
make() {
    local folder=$1
    shift
    git clone -q --no-hardlinks . "$folder"
    printf '\033[1m==>\033[0m building in %s with %s\n' "$folder" "$*" >&2
    env CCACHE_DISABLE=1 CMAKE_CXX_COMPILER_LAUNCHER= "$@" "$folder/dev" package >"$folder.log" 2>&1 ||
        { tail -n 30 "$folder.log" >&2; exit 1; }
}

# Which files of two packages differ.
explain() {
    rm -rf "$WORK/left" "$WORK/right"
    dpkg-deb --raw-extract "$1" "$WORK/left"
    dpkg-deb --raw-extract "$2" "$WORK/right"
    diff -rq "$WORK/left" "$WORK/right" || true
    diff <(dpkg-deb --contents "$1") <(dpkg-deb --contents "$2") | head -n 20 || true
}

(umask 022 && make "$ONE" TZ=UTC LC_ALL=C.UTF-8)
(umask 077 && make "$TWO" TZ=Pacific/Kiritimati LC_ALL=C CMAKE_BUILD_PARALLEL_LEVEL=1)

differing=0
for package in "$ONE"/build/package/*.deb; do
    name=${package##*/}
    if cmp -s "$package" "$TWO/build/package/$name"; then
        printf '%s  %s\n' "$(sha256sum <"$package" | cut -d ' ' -f 1)" "$name"
    else
        printf 'differs: %s\n' "$name"
        explain "$package" "$TWO/build/package/$name"
        differing=1
    fi
done
exit "$differing"
