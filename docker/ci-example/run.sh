#!/usr/bin/env bash
# A game test for CI: starts a server behind twscope, runs a command that plays, and fails if the command fails,
# a finding occurs, or an expectation in checks.conf is not met. Results are in RESULTS.
#   docker/ci-example/run.sh COMMAND [ARGUMENTS]      the command plays on 127.0.0.1:$PORT
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

TWSCOPE=${TWSCOPE:-twscope}
SERVER=${SERVER:-/usr/games/DDNet-Server}
SERVER_CONFIG=${SERVER_CONFIG:-$here/../server/server.cfg}
MAPS=${MAPS:-/usr/share/games/ddnet/data/maps}
CHECKS=${CHECKS:-$here/checks.conf}
SERVER_PORT=${SERVER_PORT:-8304}
export PORT=${PORT:-8303}
RESULTS=$(mkdir -p "${RESULTS:-results}" && cd "${RESULTS:-results}" && pwd)

(($#)) || {
    sed -n '2,4s/^# //p' "${BASH_SOURCE[0]}" >&2
    exit 2
}

server='' proxy=''
# shellcheck disable=SC2317 # called by the trap
finish() {
    local child
    for child in $proxy $server; do
        kill "$child" 2>/dev/null || true
    done
    wait
}
trap finish EXIT

cp "$SERVER_CONFIG" "$RESULTS/server.cfg"
(cd "$RESULTS" && HOME=$RESULTS exec "$SERVER" -f server.cfg "sv_port $SERVER_PORT" >server.log 2>&1) &
server=$!
"$TWSCOPE" proxy --server "127.0.0.1:$SERVER_PORT" --listen "127.0.0.1:$PORT" --maps "$MAPS" --quiet --config "$CHECKS" \
    --output "$RESULTS/game.jsonl" --summary "$RESULTS/summary.xml" 2>"$RESULTS/twscope.log" &
proxy=$!

for ((attempt = 1; ; attempt++)); do
    "$TWSCOPE" health "127.0.0.1:$PORT" --timeout 1 2>/dev/null && break
    if ((attempt == 20)) || ! kill -0 "$proxy" 2>/dev/null; then
        tail -n 5 "$RESULTS/twscope.log" "$RESULTS/server.log" >&2
        exit 2
    fi
    sleep 0.1
done

played=0
"$@" || played=$?
kill -TERM "$proxy" 2>/dev/null || true
checked=0
wait "$proxy" || checked=$?
proxy=''
grep '^twscope: ' "$RESULTS/twscope.log" >&2 || true
((played == 0)) || echo "the command that played failed with exit code $played" >&2
exit $((checked != 0 ? checked : played))
