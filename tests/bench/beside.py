#!/usr/bin/env python3
"""Measures this revision beside another one, in turns, and prints one table.

Of each figure the best of the rounds counts: what else the machine does only ever makes it worse. The load for the relay is this
revision's for both.
"""

import argparse
import gzip
import json
import os
import shutil
import subprocess
import sys
import tempfile

from bench import CAPTURES, HERE, ROWS

sys.path.insert(0, os.path.join(HERE, "relay"))
from relay_bench import Peer, measure  # noqa: E402  (its folder is only known here)

LOADS = {"as fast as it goes": {"clients": 64, "window": 16}, "x 100 a second": {"clients": 64, "rate": 100}}


class Best:
    """Returns the best value of each figure and revision: the lowest, or the highest for a rate."""

    def __init__(self):
        self.values = {}

    def note(self, what, unit, name, value):
        better = max if unit.endswith("/s") else min
        each = self.values.setdefault((what, unit), {})
        each[name] = better(each.get(name, value), value)

    def table(self):
        lines = [f"{'what':<72}{'before':>11}{'now':>11} {'unit':<14}{'now/before':>11}"]
        for (what, unit), each in self.values.items():
            if len(each) < 2:
                lines.append(f"{what:<72}{'only one of them has it':>22} {unit}")
                continue
            ratio = each["now"] / each["before"]
            lines.append(f"{what:<72}{each['before']:11.2f}{each['now']:11.2f} {unit:<14}{ratio:11.3f}")
        return "\n".join(lines)


def libraries(best, name, build, seconds):
    for what, unit, (program, benchmark, figure), *_ in ROWS:
        path = os.path.join(build, "tests/bench", program)
        if not os.path.exists(path):
            continue  # from an older revision
        output = subprocess.run(
            [path, "--benchmark_format=json", f"--benchmark_min_time={seconds}",
             # Older revisions name them by their template arguments, with namespaces.
             f"--benchmark_filter=^{benchmark.replace('<', '<.*')}$"], check=True, capture_output=True, text=True).stdout
        if not output:
            continue  # the revision lacks the measured feature
        value = json.loads(output)["benchmarks"][0][figure]
        best.note(what, unit, name, value * 1e6 if figure == "per_snapshot" else value / 1e6)


def processes(best, name, build, captures):
    """Measures whole processes on a capture: CPU time and peak memory."""
    twscope = os.path.join(build, "proxy/twscope")
    for players, capture in captures.items():
        for what, arguments in (("stats", ["decode", capture, "--stats", "--json"]),
                                ("decode, all items", ["decode", capture, "--items", "all", "-o", "/dev/null"])):
            process = subprocess.Popen([twscope, *arguments], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
            if process.returncode != 0:
                sys.exit(f"beside: {twscope} {' '.join(arguments)} ended with {process.returncode}")
            best.note(f"{what}, {players} players", "ms of CPU", name, (usage.ru_utime + usage.ru_stime) * 1e3)
            best.note(f"{what}, {players} players, memory", "MiB", name, usage.ru_maxrss / 1024)


def relays(best, name, build, load, seconds):
    twscope = os.path.join(build, "proxy/twscope")
    peer = Peer(name, lambda listen, server: [
        twscope, "proxy", "-l", f"127.0.0.1:{listen}", "-s", f"127.0.0.1:{server}", "-q"])
    for what, options in LOADS.items():
        done = measure(peer, load, {"load": {**options, "seconds": seconds}})
        best.note(f"proxy, 64 clients {what}, CPU of all its processes", "us/datagram", name, done["cpu_us_per_datagram"])
        if "window" in options:
            best.note(f"proxy, 64 clients {what}", "datagrams/s", name, done["datagrams_per_second"])
        else:
            best.note(f"proxy, 64 clients {what}, p50", "us", name, done["p50_us"])


def sessions(best, name, build, generators):
    """Measures the cost of each played session."""
    output = os.path.join(generators, "beside-sessions.json")
    subprocess.run([sys.executable, os.path.join(HERE, "relay/sessions_bench.py"), "--build", generators, "--twscope",
                    os.path.join(build, "proxy/twscope"), "--only", "memory", "--quick", "--json", output],
                   check=True, stderr=subprocess.DEVNULL)
    with open(output, encoding="utf-8") as file:
        for row in json.load(file):
            best.note(row["what"].split(",")[0] + " (4 players)", row["unit"], name, row["ours"])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--before", required=True, help="folder of the other revision's build with the preset `bench`")
    parser.add_argument("--now", required=True, help="this revision's")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--quick", action="store_true", help="a minute, for a first look")
    args = parser.parse_args()
    seconds = 0.2 if args.quick else 1.0
    load = os.path.join(args.now, "tests/bench/relay/relay_load")
    best = Best()
    with tempfile.TemporaryDirectory() as work:
        captures = {}
        for players, packed in CAPTURES.items():
            captures[players] = os.path.join(work, f"bench-{players}.pcap")
            with gzip.open(packed) as source, open(captures[players], "wb") as plain:
                shutil.copyfileobj(source, plain)
        rounds = 1 if args.quick else args.rounds
        for done in range(rounds):
            for name, build in (("before", args.before), ("now", args.now)):
                print(f"  round {done + 1} of {rounds}: {name}", file=sys.stderr)
                libraries(best, name, build, seconds / 2)
                processes(best, name, build, captures)
                relays(best, name, build, load, 2 * seconds)
                sessions(best, name, build, args.now)
    print(best.table())


if __name__ == "__main__":
    main()
