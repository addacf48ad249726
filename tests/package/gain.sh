#!/usr/bin/env bash
# What ./dev package --gain does: counts the instructions that `decode` takes in the packages' program, and in one built
# without a profile. Fails when the profile does not pay for the second build it costs.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

# Not one of those that the profile was made of.
readonly CAPTURE=tests/data/captures/vanilla-0.6.5-ctf.pcap.gz
readonly MOST_PERCENT=92 # of the instructions without

WORK=$(mktemp -d)
readonly WORK
trap 'rm -rf "$WORK"' EXIT

# instructions PROGRAM ITEMS
instructions() {
    valgrind --tool=callgrind --callgrind-out-file="$WORK/profile" "$1" decode "$CAPTURE" --items "$2" -o /dev/null \
        >"$WORK/log" 2>&1 || { tail -n 20 "$WORK/log" >&2; exit 2; }
    sed -n 's/^summary: *//p; s/^totals: *//p' "$WORK/profile" | tail -n 1
}

too_many=0
for items in none changed all; do
    without=$(instructions build/plain/proxy/twscope "$items")
    with=$(instructions build/package/proxy/twscope "$items")
    percent=$((with * 100 / without))
    printf 'decode --items %-8s %12d instructions, %12d without a profile: %d %%\n' "$items" "$with" "$without" "$percent"
    ((percent <= MOST_PERCENT)) || too_many=1
done
if ((too_many)); then
    printf 'the profile is not worth its build: at most %d %% are meant to be left\n' "$MOST_PERCENT" >&2
fi
exit "$too_many"
