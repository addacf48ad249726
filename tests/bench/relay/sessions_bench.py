#!/usr/bin/env python3
"""What sessions cost the whole program: memory for each, CPU with 1 to 1,000 of them, and as many as it has to bear.

session_load plays captured sessions of 4 or 64 players through `twscope proxy`, so that every snapshot decodes. It runs on the
same processors as the proxy; its own share of them is reported. Everything stays on loopback. --json FILE keeps the rows.
"""

import argparse
import json
import os
import pathlib
import re
import resource
import signal
import subprocess
import sys
import tempfile
import time

from relay_bench import family_of, free_port

CAPTURES = {4: "bench-4.pcap.gz", 64: "bench-64.pcap.gz"}
SPEED_OF_50 = 2  # the capture of 4 players holds 25 snapshots a second
MIB = 1 << 20


def rss(pid, *kinds):
    """Returns the resident bytes of a process and its children; shared memory counts once. `kinds`: the rows of smaps_rollup."""
    total = 0
    for each in family_of(pid):
        with open(f"/proc/{each}/smaps_rollup", encoding="utf-8") as rollup:
            sizes = dict(re.findall(r"^(\w+):\s+(\d+) kB$", rollup.read(), re.MULTILINE))
        total += sum(int(sizes[kind]) for kind in kinds or ["Pss"]) * 1024
    return total


def kernel_drops():
    """Returns how many datagrams this machine has dropped because a socket was full."""
    with open("/proc/net/snmp", encoding="utf-8") as file:
        names, values = [line.split() for line in file if line.startswith("Udp:")]
    counts = dict(zip(names[1:], values[1:]))
    return int(counts["RcvbufErrors"]) + int(counts["SndbufErrors"])


def proxy_flags(program):
    """Returns flags that turn admission off, because a thousand clients at once look like an attack to the proxy."""
    helped = subprocess.run([program, "proxy", "--help"], check=True, capture_output=True, text=True).stdout
    return [flag for flag in ("--no-admission",) if flag in helped]


class Proxy:
    """A running `twscope proxy`, and its output at the end."""

    def __init__(self, program, *flags, servers=0):
        ports = set()
        while len(ports) < 2 * max(servers, 1):
            ports.add(str(free_port()))
        self.listen, self.server = sorted(ports)[::2], sorted(ports)[1::2]
        pairs = []
        for index, (listen, server) in enumerate(zip(self.listen, self.server)):
            name = f"server-{index}=" if servers else ""
            pairs += ["-l", f"127.0.0.1:{listen}", "-s", f"{name}127.0.0.1:{server}"]
        self.process = subprocess.Popen(
            [program, "proxy", *pairs, "-q", "--max-sessions", str(4096 // max(servers, 1)), *proxy_flags(program), *flags],
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        self.said = ""
        while "the server sees" not in self.said:  # the last line that every version prints at its start
            line = self.process.stderr.readline()
            if not line:
                sys.exit(f"sessions_bench: the proxy did not start: {self.said}")
            self.said += line
        time.sleep(0.3)
        self.pid = self.process.pid

    def load(self, program, **options):
        command = [program]
        for listen, server in zip(self.listen, self.server):
            command += ["--server-port", server, "--target-port", listen]
        for pid in family_of(self.pid):
            command += ["--pid", str(pid)]
        for key, value in options.items():
            command += [f"--{key.replace('_', '-')}", str(value)]
        return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)

    def end(self):
        self.process.send_signal(signal.SIGTERM)
        self.said += self.process.communicate(timeout=60)[1]
        found = re.search(r"(\d+) snapshots, (\d+) verified", self.said)
        unwritten = re.search(r"(\d+) records? could not be written", self.said)
        # A proxy without inspection reports no snapshots.
        return {"snapshots": int(found.group(1)) if found else 0, "verified": int(found.group(2)) if found else 0,
                "unwritten": int(unwritten.group(1)) if unwritten else 0}


def finished(load):
    output = load.communicate()[0]
    if load.returncode != 0:
        sys.exit("sessions_bench: the load generator failed")
    return json.loads(output)


def play(tools, flags, watch=None, generator="session_load", servers=0, **options):
    """One run. Returns the generator's results, the proxy's totals and its memory at the end. `servers`: the number of named servers; 0: one without a name."""
    drops = kernel_drops()
    proxy = Proxy(tools["twscope"], *flags, servers=servers)
    at_rest = rss(proxy.pid)
    load = proxy.load(tools[generator], **options)
    while watch is not None and load.poll() is None:
        watch.append(rss(proxy.pid))
        time.sleep(0.1)
    result = finished(load)
    result.update({"rss_at_rest": at_rest, "rss": rss(proxy.pid)})
    result["kernel_drops"] = kernel_drops() - drops
    result.update({f"proxy_{key}": value for key, value in proxy.end().items()})
    return result


def row(what, unit, ours, peer, ratio, bar):
    return {"what": what, "unit": unit, "ours": ours, "peer": peer, "ratio": ratio, "bar": bar}


def sleeps_and_cpu(pid):
    """Returns how often the threads of a process and its children went to sleep so far, and their CPU time in nanoseconds."""
    sleeps = nanoseconds = 0
    for each in family_of(pid):
        for thread in os.listdir(f"/proc/{each}/task"):
            with open(f"/proc/{each}/task/{thread}/status", encoding="utf-8") as status:
                sleeps += int(re.search(r"^voluntary_ctxt_switches:\s+(\d+)", status.read(), re.MULTILINE).group(1))
            with open(f"/proc/{each}/task/{thread}/schedstat", encoding="utf-8") as schedstat:
                nanoseconds += int(schedstat.read().split()[0])
    return sleeps, nanoseconds


def idle_rows(tools, work, quick):
    """Measures an idle proxy that inspects, records and serves the page."""
    seconds = 3 if quick else 20
    proxy = Proxy(tools["twscope"], "-o", os.path.join(work, "idle.jsonl"), "--http", "127.0.0.1:0")
    time.sleep(3)  # until the start is over
    before, begun = sleeps_and_cpu(proxy.pid), time.monotonic()
    time.sleep(seconds)
    after, taken = sleeps_and_cpu(proxy.pid), time.monotonic() - begun
    proxy.end()
    wake_ups, cpu = (after[0] - before[0]) / taken, (after[1] - before[1]) / 1e6 / taken
    yield row("idle with inspection, CPU a second (bar: 1 ms)", "ms", cpu, 1, 1 / cpu, 1)
    yield row("idle with inspection, wake-ups a second (bar: 20)", "1/s", wake_ups, 20, 20 / wake_ups, 1)


def live_rows(tools, work, quick):
    """64 sessions at the speed they were played, changed items to a file, beside forwarding alone: CPU of the whole program, when
    the histories are filled."""
    output = os.path.join(work, "live.jsonl")
    for players, bar in ((4, 2), (64, 3)):
        costs = {}
        for _ in range(1 if quick else 3):
            for name, flags in (("alone", ["--no-inspect"]), ("records", ["-o", output])):
                pathlib.Path(output).unlink(missing_ok=True)  # otherwise records would be appended
                done = play(tools, flags, capture=CAPTURES[players], sessions=64, speed=1, warm_up_speed=4, warm_up=4,
                            seconds=3 if quick else 6)
                costs.setdefault(name, []).append(1000 * done["cpu_share"])
        ours, peer = min(costs["records"]), min(costs["alone"])
        yield {**row(f"live, 64 sessions of {players} players, changed items to a file, beside forwarding alone (bar: {bar} x its CPU)",
                     "ms/s", ours, peer, peer / ours, 1 / bar), "range": [min(costs["records"]), max(costs["records"])]}


def memory_rows(tools, quick):
    # The difference between many and few sessions excludes the memory of the ring and of the queue of records.
    flags = ["--ring", "1", "-o", "/dev/null"]
    for players, few, many, options in ((4, 20, 100, {"speed": 4, "seconds": 2, "warm_up": 1}),
                                        (64, 8, 64, {"loops": 1, "warm_up": 0.1})):
        if quick and players == 64:
            continue
        floor = int(subprocess.run([tools["history_floor"], CAPTURES[players]], check=True, capture_output=True, text=True).stdout)
        runs = [play(tools, flags, capture=CAPTURES[players], sessions=count, **options) for count in (few, many)]
        each = (runs[1]["rss"] - runs[0]["rss"]) / (many - few)
        # The limit for a session: 1.25 times the minimum, plus 64 KiB.
        yield row(f"memory a session, {players} players, beside 250 ticks of snapshots", "KiB", each / 1024, floor / 1024,
                  (1.25 * floor + 64 * 1024) / each, 1)
        if players == 4:
            yield row("memory at rest (bar: 30 MiB)", "MiB", runs[0]["rss_at_rest"] / MIB, 30, 30 * MIB / runs[0]["rss_at_rest"], 1)
    if quick:
        return
    sizes = []
    play(tools, flags, watch=sizes, sessions=8, speed=20, loops=8, warm_up=0.1)
    early, late = max(sizes[:len(sizes) // 2]), max(sizes[len(sizes) // 2:])
    yield row("memory over time, the same 8 sessions again and again: later beside earlier", "MiB", late / MIB, early / MIB,
              early / late, 0.98)


def growth_rows(tools, work):
    """Compares few and many sessions at the same rate: 28,000 datagrams a second, with 10,000 snapshots among them."""
    output = os.path.join(work, "growth.jsonl")
    costs = {}

    def note(mode, sessions, done):
        costs.setdefault((mode, sessions), []).append(done["cpu_us_per_datagram"])

    for _ in range(2):
        for sessions in (1, 10, 100, 1000):
            note("forwarding alone", sessions,
                 play(tools, ["--no-inspect"], generator="relay_load", clients=sessions, rate=14000 / sessions, warm_up=1, seconds=2))
            # The sessions' histories are filled first, with many sessions at most at 50 snapshots a second.
            fill = {"warm_up": 4, "join": 3, "warm_up_speed": SPEED_OF_50} if sessions == 1000 else {"warm_up": 1}
            note("decoding and recording", sessions,
                 play(tools, ["-o", output], sessions=sessions, speed=400 / sessions, seconds=2, **fill))
    for (mode, sessions), values in sorted(costs.items()):
        if sessions > 1:
            one, many = min(costs[mode, 1]), min(values)
            bar = 0.8 if mode.startswith("decoding") else 0.9
            yield row(f"CPU a datagram, {mode}, {sessions} sessions beside 1", "us", many, one, one / many, bar)


def servers_rows(tools, work, quick):
    """Compares 1,000 sessions on 50 servers of one process with 1,000 on one server: the least CPU time for a datagram of each, in turns."""
    for mode, flags, speed in (("forwarding alone", ["--no-inspect"], 0.5), ("decoding and recording", ["-o", os.path.join(work, "servers.jsonl")], 0.5)):
        costs = {}
        for _ in range(2 if quick else 5):
            for servers in (0, 50):
                done = play(tools, flags, servers=servers, sessions=1000, speed=speed, join=2, warm_up=3, seconds=3)
                if done["lost"] + done["lost_before"]:
                    print(f"  {mode}, {servers or 1} servers: {done['lost'] + done['lost_before']} datagrams lost", file=sys.stderr)
                costs.setdefault(servers, []).append(done["cpu_us_per_datagram"])
        one, many = min(costs[0]), min(costs[50])
        yield {**row(f"CPU a datagram, {mode}, 1,000 sessions on 50 servers beside one (bar: 1.1 x)", "us", many, one, one / many, 1 / 1.1),
               "range": [min(costs[50]), max(costs[50])], "peer_range": [min(costs[0]), max(costs[0])]}


def read_gaps(path):
    """Returns the number of copies lost because the ring was full, by the records' totals, and the number of their sessions."""
    lost, sessions = 0, set()
    with open(path, "rb") as records:
        for line in records:
            if b'"id":"inspect.gap"' in line:
                sessions.add(int(re.search(rb'"session":(\d+)', line).group(1)))
            elif b'"type":"summary"' in line and b'"session":0,' in line:
                lost = int(re.findall(rb'"gap_lost":(\d+)', line)[-1])
    return lost, len(sessions)


def full_rows(tools, work, quick):
    """1,000 sessions x 50 snapshots a second, decoded and recorded to a file; clients send 45 inputs a second."""
    output = os.path.join(work, "full.jsonl")
    done = play(tools, ["-o", output], sessions=1000, speed=SPEED_OF_50, inputs=2, warm_up=4, join=3, seconds=3 if quick else 10)
    gaps, sessions = read_gaps(output)
    os.remove(output)
    missing = done["snapshots"] - done["proxy_verified"]
    # The number of sessions follows from the cost of one: the rest of the time is for the relay and the generator.
    few = play(tools, ["-o", os.path.join(work, "few.jsonl")], sessions=100, speed=SPEED_OF_50, inputs=2, warm_up=2, seconds=3)
    forwarded = play(tools, ["--no-inspect"], sessions=100, speed=SPEED_OF_50, inputs=2, warm_up=2, seconds=3)
    each = (few["cpu_share"] - forwarded["cpu_share"]) / 100
    left = max(0.0, min(1.0, os.cpu_count() - done["own_share"] - 10 * forwarded["cpu_share"]))
    predicted = min(1000, left / each) if each > 0 else 1000
    yield row("1,000 sessions x 50 snapshots/s: sessions of which no copy is missing, beside what one costs predicts", "sessions",
              1000 - sessions, predicted, (1000 - sessions) / predicted, 0.9)
    print(f"  1,000 sessions: {done['snapshots_per_second']:.0f} snapshots/s, {done['datagrams_per_second']:.0f} datagrams/s; "
          f"lost: {done['lost'] + done['lost_before']} on the way ({done['kernel_drops']} by full sockets), {gaps} by a full ring, "
          f"{missing} snapshots not verified, {done['proxy_unwritten']} records not written; the proxy took {done['cpu_share']:.2f} processors, the load generator "
          f"{done['own_share']:.2f}", file=sys.stderr)
    whole = done["lost"] + done["lost_before"] + gaps + missing + done["proxy_unwritten"] == 0
    arrived = 1 if whole else 0.99 * done["proxy_verified"] / done["snapshots"] * done["received"] / done["sent"]
    # One per cent below 50,000 is within the generator's accuracy; more means that it lacked CPU time.
    yield row("1,000 sessions x 50 snapshots/s decoded and recorded; ratio: what arrived", "1/s", done["snapshots_per_second"], None,
              min(1, done["snapshots_per_second"] / 49_500) * arrived, 1)
    yield row("... of which the proxy takes (and the load generator)", "CPUs", done["cpu_share"], done["own_share"], None, None)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", required=True, help="the preset `bench`'s folder")
    parser.add_argument("--twscope", help="another program to measure than the build's")
    parser.add_argument("--quick", action="store_true", help="about half a minute")
    parser.add_argument("--only", default="", help="some of idle, live, memory, growth, servers, full; default: all, with --quick no growth or servers")
    parser.add_argument("--json", help="write the rows to this file")
    args = parser.parse_args()
    tools = {name: os.path.join(args.build, path) for name, path in (
        ("twscope", "proxy/twscope"), ("session_load", "tests/bench/relay/session_load"),
        ("relay_load", "tests/bench/relay/relay_load"),
        ("history_floor", "tests/bench/history_floor"))}
    tools["twscope"] = args.twscope or tools["twscope"]
    # Every session needs a socket at each end.
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    rows = []
    with tempfile.TemporaryDirectory(dir=args.build) as work:
        parts = {"idle": lambda: idle_rows(tools, work, args.quick),
                 "live": lambda: live_rows(tools, work, args.quick),
                 "memory": lambda: memory_rows(tools, args.quick), "growth": lambda: growth_rows(tools, work),
                 "servers": lambda: servers_rows(tools, work, args.quick),
                 "full": lambda: full_rows(tools, work, args.quick)}
        for name in (args.only or ("idle,live,memory,full" if args.quick else "idle,live,memory,growth,servers,full")).split(","):
            for each in parts[name]():
                rows.append(each)
                print("  " + ", ".join(f"{key}: {value:.2f}" if isinstance(value, float) else f"{key}: {value}"
                                       for key, value in each.items()), file=sys.stderr)
    if args.json:
        with open(args.json, "w", encoding="utf-8") as out:
            json.dump(rows, out, indent=1)


if __name__ == "__main__":
    main()
