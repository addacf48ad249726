#!/usr/bin/env bash
# What ./dev fresh does: both commands of the README, from a clean clone of HEAD, in a bare Debian that has nothing but
# what apt needs to reach the mirrors of this machine. Root only. It takes the time of two builds from nothing.
# With arm64: cross-builds there for arm64 instead, and runs the tests that need no other program, in qemu.
#   fresh.sh [arm64] [bookworm|trixie|sid]
#
# All is mounted and run in namespaces of its own: whatever ends this script ends them, and leaves no mount behind.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

FOREIGN=
SUITE=bookworm
readonly KEEP_DEBS=$PWD/build/fresh/debs # what debootstrap fetched, for the next run
readonly KEEP_CCACHE=$PWD/build/fresh/ccache # what was compiled for arm64
readonly CLONE=/srv/twscope              # in the bare system
readonly GOOD_LINES=1                    # minutes the demo has to show verified snapshots, and nothing else
readonly RUN_LIMIT_SECONDS=3600          # packages, a build, the demo
readonly STOP_LIMIT_SECONDS=30
# The kernel's list of what runs programs of other machines; it has one for all namespaces.
readonly BINFMT=/proc/sys/fs/binfmt_misc
readonly BINFMT_ENTRY=twscope-fresh-arm64

say() { printf '\033[1m==>\033[0m %s\n' "$*" >&2; }

die() {
    printf 'fresh: %s\n' "$*" >&2
    exit 1
}

# --- what apt and npm need from this machine --------------------------------------------------------------------------

# "URI SUITE COMPONENT" of every Debian archive of the release that apt has here; if it has only those of another release,
# the main one of the mirror they come from.
archives() {
    local all
    all=$(apt-get indextargets --format "\$(REPO_URI) \$(RELEASE) \$(COMPONENT)" \
        'Created-By: Packages' 'Origin: Debian' "Architecture: $(dpkg --print-architecture)")
    awk -v suite="$SUITE" '
        $2 == suite || index($2, suite "-") == 1 { print; found = 1 }
        !mirror && $2 !~ /-/ && $3 == "main" { mirror = $1 }
        END { if (!found && mirror) print mirror, suite, "main" }' <<<"$all"
}

# This machine's proxies, and the registry npm uses here, as words for env.
settings() {
    local name value
    for name in http_proxy https_proxy no_proxy HTTP_PROXY HTTPS_PROXY NO_PROXY NODE_EXTRA_CA_CERTS; do
        [[ -z ${!name:-} ]] || printf '%s=%s\n' "$name" "${!name}"
    done
    command -v npm >/dev/null || return 0
    for name in registry cafile proxy https-proxy; do
        value=$(npm config get "$name" 2>/dev/null)
        [[ -z $value || $value == null ]] || printf 'npm_config_%s=%s\n' "${name//-/_}" "$value"
    done
}

# --- inside the namespaces --------------------------------------------------------------------------------------------

make_system() {
    local root=$1 mirror
    [[ -n $(archives) ]] || apt-get update -q
    mirror=$(archives | awk -v suite="$SUITE" '$2 == suite { print $1; exit }')
    [[ -n $mirror ]] || die "apt has no archive of Debian $SUITE on this machine (apt-get indextargets lists them)"
    mkdir -p "$KEEP_DEBS"
    say "a bare Debian $SUITE"
    # Where this machine's apt goes through a proxy, debootstrap has to, too.
    http_proxy=${http_proxy:-$(apt-config shell P Acquire::http::Proxy | sed -n "s/^P='\(.*\)'$/\1/p")} \
        debootstrap --variant=minbase --cache-dir="$KEEP_DEBS" "$SUITE" "$root" "$mirror" >"$root.log" ||
        die "debootstrap failed: $(tail -n 3 "$root.log")"
    archives | sed 's/^/deb /' >"$root/etc/apt/sources.list"
    rm -rf "$root"/var/lib/apt/lists/* # an image has none, either
    cp -a /etc/apt/trusted.gpg.d/. "$root/etc/apt/trusted.gpg.d/"
    apt-config dump | grep -E '^Acquire::(https?|Check-|Allow|Retries|ForceIPv)' >"$root/etc/apt/apt.conf.d/50fresh" || true
    cp /etc/resolv.conf /etc/hosts "$root/etc/"
    mkdir -p "$root/usr/local/share/ca-certificates"
    cp -a /usr/local/share/ca-certificates/. "$root/usr/local/share/ca-certificates/" 2>/dev/null || true
    if grep -q https: "$root/etc/apt/sources.list"; then
        mkdir -p "$root/etc/ssl/certs"
        cp /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/"
    fi
    mount --bind "$root" "$root" # as the root of any machine it is a mount, which tests have their own of
    mount -t proc proc "$root/proc"
    mount --rbind /sys "$root/sys"
    mount --rbind /dev "$root/dev"
}

# in_system ROOT COMMAND...: as on a machine just installed: no variable of ours but what leads to the mirrors.
in_system() {
    local root=$1 passed
    shift
    mapfile -t passed < <(settings)
    # A shell starts what it does not wait for deaf to Ctrl-C.
    exec env -i --default-signal=INT PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root "${passed[@]}" \
        chroot "$root" sh -c "cd $CLONE && exec \"\$@\"" sh "$@"
}

# Lines of the demo in which every snapshot of the minute was verified, and nothing was found.
good_lines() { grep -cE '[^0-9][1-9][0-9]* snapshots/s, 100% verified, no warnings' "$1" || true; }

check_run() {
    local root=$1 log=$1.run.log demo until code=0
    say "./dev run"
    in_system "$root" ./dev run >"$log" 2>&1 </dev/null &
    demo=$!
    for ((until = SECONDS + RUN_LIMIT_SECONDS; $(good_lines "$log") < GOOD_LINES; )); do
        if ! kill -0 $demo 2>/dev/null || ((SECONDS >= until)); then break; fi
        sleep 1
    done
    kill -INT $demo 2>/dev/null || true
    for ((until = SECONDS + STOP_LIMIT_SECONDS; SECONDS < until; )); do
        kill -0 $demo 2>/dev/null || break
        sleep 0.1
    done
    ! kill -0 $demo 2>/dev/null || die "./dev run does not end at Ctrl-C: $(tail -n 5 "$log")"
    wait $demo || code=$?
    tail -n $((GOOD_LINES + 3)) "$log" >&2
    (($(good_lines "$log") >= GOOD_LINES)) || die "./dev run showed no verified snapshots: $(tail -n 40 "$log")"
    ((code == 0)) || die "./dev run ended with exit code $code"
    compgen -G "$root$CLONE/records/records-*.jsonl.zst" >/dev/null || die "./dev run left no records"
}

# Lets the kernel run programs for arm64 by the qemu of whatever root they have.
register_qemu() {
    local magic='\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\xb7\x00'
    local mask='\xff\xff\xff\xff\xff\xff\xff\x00\xff\xff\xff\xff\xff\xff\xff\xff\xfe\xff\xff\xff'
    [[ -e $BINFMT/register ]] || mount -t binfmt_misc binfmt_misc $BINFMT
    [[ -e $BINFMT/$BINFMT_ENTRY ]] ||
        printf '%s' ":$BINFMT_ENTRY:M::$magic:$mask:/usr/bin/qemu-aarch64:P" >$BINFMT/register
}

check_arm64() {
    local root=$1 start=$SECONDS cpu
    register_qemu
    mkdir -p "$KEEP_CCACHE" "$root/root/.cache/ccache"
    mount --bind "$KEEP_CCACHE" "$root/root/.cache/ccache"
    chroot "$root" dpkg --add-architecture arm64
    say "./dev build arm64"
    (in_system "$root" ./dev build arm64 </dev/null) || die "./dev build arm64 failed in a bare Debian $SUITE"
    say "./dev build arm64: $((SECONDS - start)) s"
    start=$SECONDS
    say "ctest --preset arm64"
    # On one processor: on several, qemu on x86 reorders a store and a later load even where the instructions (stlr, ldar) forbid
    # it. Wakeups are lost, and tests hang.
    cpu=$(sed -En 's/^Cpus_allowed_list:\s+([0-9]+).*/\1/p' /proc/self/status)
    (in_system "$root" env TW_E2E_REQUIRED=1 taskset --cpu-list "$cpu" ctest --preset arm64 </dev/null) || die "tests failed on arm64"
    say "ctest --preset arm64: $((SECONDS - start)) s"
}

inside() {
    local root=$1 start=$SECONDS
    make_system "$root"
    git clone --quiet --no-hardlinks . "$root$CLONE"
    say "a bare system and a clone: $((SECONDS - start)) s"
    if [[ $FOREIGN ]]; then
        check_arm64 "$root"
        return
    fi
    start=$SECONDS
    check_run "$root"
    say "./dev run, from nothing: $((SECONDS - start)) s"
    start=$SECONDS
    say "./dev test"
    (in_system "$root" ./dev test </dev/null) || die "./dev test failed in a bare Debian $SUITE"
    say "./dev test: $((SECONDS - start)) s"
    say "both commands of the README work on a machine that had nothing"
}

# --- outside ----------------------------------------------------------------------------------------------------------

unregister_qemu() {
    # shellcheck disable=SC2016
    unshare --mount sh -c 'test -e "$1/register" || mount -t binfmt_misc binfmt_misc "$1"
        ! test -e "$1/$2" || echo -1 >"$1/$2"' sh $BINFMT $BINFMT_ENTRY
}

main() {
    ((EUID == 0)) || die "only root can make a Debian in a folder: sudo ./dev fresh"
    local folder
    mkdir -p build/fresh
    folder=$(mktemp -d "$PWD/build/fresh/XXXXXX")
    # The first process of a process namespace takes all others along.
    unshare --mount --pid --fork --kill-child "${BASH_SOURCE[0]}" inside "$folder/system" "$SUITE" "$FOREIGN" </dev/null &
    # shellcheck disable=SC2064
    trap "kill -KILL $! 2>/dev/null || true; wait; ${FOREIGN:+unregister_qemu;} rm -rf --one-file-system '$folder'" EXIT
    trap 'exit 130' INT TERM HUP
    wait $!
}

if [[ ${1:-} == arm64 ]]; then
    FOREIGN=arm64
    shift
fi
case ${1:-} in
    inside)
        SUITE=$3
        FOREIGN=$4
        inside "$2"
        ;;
    '' | bookworm | trixie | sid)
        SUITE=${1:-$SUITE}
        main
        ;;
    *) die "'$1' is none of bookworm, trixie and sid" ;;
esac
