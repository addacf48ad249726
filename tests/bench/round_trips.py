#!/usr/bin/env python3
"""What players feel of who stands beside them: round trips of 16 clients, 100 datagrams a second each, while 64 captured sessions play.

Without twscope and with `twscope tap` beside the path; through `twscope proxy` that records to a file, that publishes to NATS, and
that publishes while nats-server is killed and started again every two seconds. The rows are measured in turns; the best of the
rounds counts, since others only take time away, and the range stands beside it. Everything stays on loopback. The tap needs root.

With --apart the game and the relay have the first processor, and all that looks, records or publishes the second: what then differs
is what twscope does to players, not who gets a processor.
"""

import argparse
import json
import os
import pathlib
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).parent / "relay"))
from relay_bench import free_port  # noqa: E402  (its folder is known only now)
from sessions_bench import CAPTURES, Proxy  # noqa: E402

PLAYED = {"capture": CAPTURES[4], "sessions": 64, "speed": 1, "warm_up_speed": 4, "warm_up": 3}
CLIENTS, RATE = 16, 100
KILL_EVERY = 2
RECORDS = ["--items", "changed", "--no-messages"]
PATH, BESIDE = {0}, {1}  # processors, with --apart


def put_on_path(pid):
    for thread in os.listdir(f"/proc/{pid}/task"):
        os.sched_setaffinity(int(thread), PATH)


def free_tcp_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Nats:
    """nats-server with JetStream; `kill` kills it, as after a power failure, and restarts it."""

    def __init__(self, folder):
        self.folder, self.port, self.kills = folder, free_tcp_port(), 0
        self.url = f"nats://127.0.0.1:{self.port}"
        self.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()

    def start(self):
        self.process = subprocess.Popen(["nats-server", "-a", "127.0.0.1", "-p", str(self.port), "-js", "-sd", self.folder],
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.start()
        self.kills += 1


class Killer:
    """Kills the bus, if there is one, repeatedly while the block runs."""

    def __init__(self, nats):
        self.nats, self.stopped = nats, threading.Event()
        self.thread = threading.Thread(target=self.run)

    def __enter__(self):
        if self.nats:
            self.thread.start()

    def __exit__(self, *_):
        self.stopped.set()
        if self.nats:
            self.thread.join()

    def run(self):
        while not self.stopped.wait(KILL_EVERY):
            self.nats.kill()


class Direct:
    """No relay: clients send to the server directly, and a tap may observe the interface."""

    def __init__(self, program, flags):
        self.server = self.listen = [str(free_port()), str(free_port())]
        self.process, self.said = None, ""
        if flags is None:
            return
        pairs = [part for port in self.server for part in ("--server", f"127.0.0.1:{port}")]
        self.process = subprocess.Popen([program, "tap", "-i", "lo", *pairs, "-q", *flags], stdout=subprocess.DEVNULL,
                                        stderr=subprocess.PIPE, text=True)
        time.sleep(1)
        if self.process.poll() is not None:
            sys.exit(f"round_trips: the tap did not start: {self.process.stderr.read()}")

    def end(self):
        if self.process is not None:
            self.process.send_signal(signal.SIGTERM)
            self.said = self.process.communicate(timeout=60)[1]


def generator(program, path, index, apart, **options):
    command = [program, "--server-port", path.server[index], "--target-port", path.listen[index]]
    for key, value in options.items():
        command += [f"--{key.replace('_', '-')}", str(value)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    if apart:
        put_on_path(process.pid)
    return process


def measure(tools, path, seconds, nats=None, apart=False):
    """Measures round trips through `path`; a given bus is killed repeatedly meanwhile."""
    if apart and isinstance(path, Proxy):
        put_on_path(path.pid)  # the relay's process; the observer is its child
    game = generator(tools["session_load"], path, 0, apart, **PLAYED, seconds=seconds + 60)
    time.sleep(PLAYED["warm_up"] + 1)  # until the histories are full
    with Killer(nats):
        probe = generator(tools["relay_load"], path, 1, apart, clients=CLIENTS, rate=RATE, seconds=seconds, warm_up=1)
        result = json.loads(probe.communicate()[0])
    game.kill()
    game.wait()
    path.end()
    found = re.search(r"(\d+) snapshots, (\d+) verified", path.said)
    snapshots, verified = (int(each) for each in found.groups()) if found else (0, 0)
    return {**result, "snapshots": snapshots, "unverified": snapshots - verified}


def rows(program, work):
    """A program beside the game: its name, the function that starts it, and whether the bus is killed."""
    file = ["-o", f"{work}/records.jsonl", *RECORDS]

    def proxy(*flags):
        return Proxy(program, *flags, servers=2)

    def bus(nats):
        return ["--bus", nats.url, "--bus-name", "bench", "--bus-limits", "1h,1GiB", "--spool", f"{work}/spool,1GiB", *RECORDS]

    return [("direct", lambda _: Direct(program, None), False),
            ("direct, a tap beside it", lambda _: Direct(program, file), False),
            ("proxy, records in a file", lambda _: proxy(*file), False),
            ("proxy, records to NATS", lambda nats: proxy(*bus(nats)), False),
            ("proxy, NATS killed all the time", lambda nats: proxy(*bus(nats)), True)]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", required=True, help="folder of session_load and relay_load")
    parser.add_argument("--twscope", required=True)
    parser.add_argument("--seconds", type=float, default=20, help="of each row and round (default 20)")
    parser.add_argument("--rounds", type=int, default=2, help="(default 2)")
    parser.add_argument("--apart", action="store_true", help="the path on one processor, what stands beside it on another")
    options = parser.parse_args()
    if options.apart:
        if not PATH | BESIDE <= os.sched_getaffinity(0):
            sys.exit("round_trips: --apart needs two processors")
        os.sched_setaffinity(0, BESIDE)  # inherited by all child processes
    tools = {name: os.path.join(options.bin, name) for name in ("session_load", "relay_load")}
    with tempfile.TemporaryDirectory() as work:
        os.mkdir(f"{work}/spool")
        found = {}
        with Nats(f"{work}/bus") as nats:
            for number in range(options.rounds):
                for name, start, killed in rows(options.twscope, work):
                    print(f"round {number + 1} of {options.rounds}: {name}", file=sys.stderr)
                    found.setdefault(name, []).append(measure(tools, start(nats), options.seconds, nats if killed else None,
                                                                   options.apart))
        print(f"{'':32}{'p50 us':>10}{'p99 us':>10}{'(range)':>18}{'p99.9 us':>10}{'lost':>6}{'snapshots':>11}{'unverified':>11}")
        for name, runs in found.items():
            best = {key: min(run[key] for run in runs) for key in ("p50_us", "p99_us", "p999_us")}
            total = {key: sum(run[key] for run in runs) for key in ("lost", "snapshots", "unverified")}
            span = f"{best['p99_us']:.0f} to {max(run['p99_us'] for run in runs):.0f}"
            print(f"{name:32}{best['p50_us']:10.0f}{best['p99_us']:10.0f}{span:>18}{best['p999_us']:10.0f}"
                  f"{total['lost']:6.0f}{total['snapshots']:11}{total['unverified']:11}")
        print(f"nats-server was killed {nats.kills} times")


if __name__ == "__main__":
    main()
