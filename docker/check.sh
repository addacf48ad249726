#!/usr/bin/env bash
# What ./dev docker does: builds the images, plays in them, and looks at what came of it. Alone in a network of its own
# that reaches nothing, so it needs no port of this machine, and no rights but those to run containers.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

readonly PLAY_SECONDS=8
readonly WAIT_SECONDS=30
readonly STOP_LIMIT_MS=1000
readonly SIZE_LIMIT_MB=120
readonly BASE=debian:trixie-slim
# What is asked of every container: nothing to write to but its volumes, and no privilege at all.
readonly LOCKED=(--read-only --cap-drop ALL --security-opt no-new-privileges)

say() { printf '\033[1m==>\033[0m %s\n' "$*" >&2; }

die() {
    printf 'docker: %s\n' "$*" >&2
    exit 1
}

engine() {
    local name
    for name in docker podman; do
        if command -v "$name" >/dev/null && "$name" info >/dev/null 2>&1; then
            echo "$name"
            return
        fi
    done
    die "neither docker nor podman works here; install one of them"
}

ENGINE=$(engine)
readonly ENGINE RUN=twscope-check-$$
KEEP=0
TESTS=ON
for argument in "$@"; do
    case $argument in
        --keep) KEEP=1 ;;
        --quick) TESTS=OFF ;;
        *) die "unknown argument '$argument' (there are: --keep --quick)" ;;
    esac
done

now_ms() { date +%s%3N; }

clean_up() {
    "$ENGINE" rm -f "$RUN-proxy" "$RUN-server" >/dev/null 2>&1 || true
    "$ENGINE" volume rm -f "$RUN-records" "$RUN-maps" >/dev/null 2>&1 || true
    ((KEEP)) || "$ENGINE" rmi "$RUN" "$RUN-server" "$RUN-bots" >/dev/null 2>&1 || true
}
trap clean_up EXIT

build() {
    local format=()
    # Podman leaves HEALTHCHECK out of its own format.
    [[ $ENGINE != podman ]] || format=(--format docker)
    say "building $1 from $2"
    "$ENGINE" build "${format[@]}" "${@:3}" -t "$1" -f "$2" .
}

size_of() { "$ENGINE" image inspect --format '{{.Size}}' "$1"; }

start() {
    say "starting the server and twscope before it"
    "$ENGINE" run -d --name "$RUN-server" --network none --cap-drop ALL --security-opt no-new-privileges \
        -v "$RUN-maps:/usr/share/games/ddnet/data/maps" "$RUN-server" >/dev/null
    local started
    started=$(now_ms)
    "$ENGINE" run -d --name "$RUN-proxy" --network "container:$RUN-server" "${LOCKED[@]}" \
        -v "$RUN-maps:/maps:ro" -v "$RUN-records:/records" \
        "$RUN" proxy --server 127.0.0.1:8304 --output /records/ --keep 10GiB >/dev/null
    until "$ENGINE" exec "$RUN-proxy" twscope health --timeout 1 2>/dev/null; do
        (($(now_ms) - started < WAIT_SECONDS * 1000)) || die "twscope is not healthy: $("$ENGINE" logs "$RUN-proxy" 2>&1)"
    done
    START_MS=$(($(now_ms) - started))
    await_healthy
}

# The image's own health check, which an engine runs by itself only where it has timers.
await_healthy() {
    local end=$((SECONDS + WAIT_SECONDS))
    if [[ $ENGINE == podman ]]; then
        podman healthcheck run "$RUN-proxy" >/dev/null || die "the health check fails"
        return
    fi
    until [[ $("$ENGINE" inspect --format '{{.State.Health.Status}}' "$RUN-proxy") == healthy ]]; do
        ((SECONDS < end)) || die "the health check fails"
        sleep 0.5
    done
}

play() {
    say "four clients play for $PLAY_SECONDS s"
    "$ENGINE" run --rm --network "container:$RUN-server" "${LOCKED[@]}" "$RUN-bots" 4 "$PLAY_SECONDS" ||
        die "they did not get in, or did not stay"
}

stop() {
    local started
    started=$(now_ms)
    "$ENGINE" stop -t 10 "$RUN-proxy" >/dev/null
    STOP_MS=$(($(now_ms) - started))
    EXIT_CODE=$("$ENGINE" inspect --format '{{.State.ExitCode}}' "$RUN-proxy")
}

check_records() {
    local records verified broken
    records=$("$ENGINE" run --rm --network none -v "$RUN-records:/records:ro" "$RUN" records /records/)
    verified=$(grep -c '"type":"snapshot".*"ok":true' <<<"$records" || true)
    broken=$(grep -c '"type":"snapshot".*"ok":false' <<<"$records" || true)
    say "$(wc -l <<<"$records") records, $verified snapshots verified, $broken not"
    ((verified > PLAY_SECONDS * 50 && broken == 0)) || die "these are not the records of four clients that played well"
    [[ $(tail -n 1 <<<"$records") == *'"type":"summary","session":0'* ]] || die "the records have no end"
    [[ $records == *'"game":"air"'* ]] || die "the map was not found"
}

build "$RUN" docker/Dockerfile --build-arg "TESTS=$TESTS"
build "$RUN-server" docker/server/Dockerfile
build "$RUN-bots" docker/bots/Dockerfile
start
play
stop
check_records
SIZE_MB=$((($(size_of "$RUN") - $(size_of "$BASE")) / 1000000))
"$ENGINE" logs "$RUN-proxy" 2>&1 | tail -n 3
say "image $SIZE_MB MB beyond $BASE, healthy after $START_MS ms, stopped after $STOP_MS ms with exit code $EXIT_CODE"
((SIZE_MB < SIZE_LIMIT_MB)) || die "the image is larger than $SIZE_LIMIT_MB MB"
((EXIT_CODE == 0)) || die "twscope did not end well"
((STOP_MS < STOP_LIMIT_MS)) || die "stopping took longer than $STOP_LIMIT_MS ms"
say "all is well"
