#!/usr/bin/env python3
"""Measures relays beside each other: ours, a bare one, nginx stream, socat, and none at all.

Runs are interleaved, so that a noisy machine is noisy for all; the best of each counts, since others
only take time away, and the range is told. Relay and load generator have a processor each. Everything
stays on 127.0.0.1. Prints a table; --json FILE keeps every run.
"""

import argparse
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

OPEN_LOOP = 0.9  # of what the generator gets back without any relay

NGINX_MODULE = "/usr/lib/nginx/modules/ngx_stream_module.so"
NGINX_CONFIG = """
load_module {module};
worker_processes 1;
daemon off;
pid {dir}/nginx.pid;
error_log {dir}/error.log;
worker_rlimit_nofile 20000;
events {{ worker_connections 8192; }}
stream {{
    server {{
        listen 127.0.0.1:{listen} udp rcvbuf=4m sndbuf=4m;
        proxy_pass 127.0.0.1:{server};
        proxy_timeout 60s;
    }}
}}
"""


def free_port():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def pinned(command, core):
    """The command that runs a program on this processor only, if there are at least two."""
    return command if os.cpu_count() < 2 else ["taskset", "--cpu-list", str(core), *command]


def family_of(pid):
    """Returns the process and its descendants."""
    found = [pid]
    for parent in found:
        try:
            with open(f"/proc/{parent}/task/{parent}/children") as children:
                found += [int(child) for child in children.read().split()]
        except OSError:
            pass
    return found


class Peer:
    """A relay under test: how to start it."""

    def __init__(self, name, command):
        self.name, self.command = name, command


def peers(args, tools, work):
    def nginx(listen, server):
        path = os.path.join(work, f"nginx-{listen}.conf")
        with open(path, "w") as config:
            config.write(NGINX_CONFIG.format(module=NGINX_MODULE, dir=work, listen=listen,
                                             server=server))
        return [shutil.which("nginx") or "/usr/sbin/nginx", "-p", work, "-c", path]

    def ours(*flags):
        return lambda l, s: [tools["relay_only"], str(l), str(s), *flags]

    every = [
        Peer("none", None),
        Peer("bare", lambda l, s: [tools["bare_relay"], str(l), str(s)]),
        Peer("twscope", ours()),
        Peer("twscope own", ours("--own-addresses")),
        Peer("twscope+ring", ours("--observe")),
        Peer("twscope busy", ours("--busy-poll")),
    ]
    if args.twscope:
        every.append(Peer("twscope proxy", lambda l, s: [
            args.twscope, "proxy", "-l", f"127.0.0.1:{l}", "-s", f"127.0.0.1:{s}",
            *args.twscope_flag]))
    if os.path.exists(NGINX_MODULE):
        every.append(Peer("nginx", nginx))
    if shutil.which("socat"):
        every.append(Peer("socat", lambda l, s: [
            "socat", "-T60", f"UDP4-LISTEN:{l},bind=127.0.0.1,fork,reuseaddr",
            f"UDP4:127.0.0.1:{s}"]))
    return every


def measure(peer, load, scenario, look=None, environment=None):
    """`look`: called with the relay's process under load; `environment`: further variables for the relay."""
    listen, server = free_port(), free_port()
    process = None
    if peer.command:
        process = subprocess.Popen(pinned(peer.command(listen, server), 0), stdout=subprocess.DEVNULL,
                                   stderr=subprocess.DEVNULL, start_new_session=True, env={**os.environ, **(environment or {})})
        time.sleep(0.3)
        if process.poll() is not None:
            raise RuntimeError(f"{peer.name} did not start")
    command = pinned([load, "--server-port", str(server),
                      "--target-port", str(listen if process else server)], 1)
    for key, value in scenario["load"].items():
        command += [f"--{key}", str(value)]
    for pid in family_of(process.pid) if process else []:
        command += ["--pid", str(pid)]
    try:
        with subprocess.Popen(command, stdout=subprocess.PIPE) as generator:
            if look:
                time.sleep(0.8)  # the load has begun
                look(process)
            result = json.loads(generator.communicate()[0])
    finally:
        if process:
            try:
                os.killpg(process.pid, signal.SIGTERM)
                process.wait(timeout=10)
            except (ProcessLookupError, subprocess.TimeoutExpired):
                os.killpg(process.pid, signal.SIGKILL)
    return result


def scenarios(args):
    seconds = 1.0 if args.quick else 3.0
    few = ["none", "bare", "twscope", "twscope own", "twscope+ring", "twscope busy", "twscope proxy", "nginx"]
    found = [
        {"name": "64 clients, as fast as it goes",
         "load": {"clients": 64, "window": 16, "seconds": seconds}, "peers": few + ["socat"]},
        # Clients send at a fixed rate, derived from the rate without a relay; the excess is lost.
        {"name": "64 clients, more than fits (open loop)",
         "load": {"clients": 64, "rate": None, "seconds": seconds}, "peers": ["none", "bare", "twscope", "twscope own", "nginx"]},
        {"name": "64 clients x 100 a second",
         "load": {"clients": 64, "rate": 100, "seconds": seconds}, "peers": few},
        {"name": "1 client, as fast as it goes",
         "load": {"clients": 1, "window": 64, "seconds": seconds}, "peers": ["bare", "twscope"]},
        {"name": "1000 clients, as fast as it goes",
         "load": {"clients": 1000, "window": 2, "seconds": seconds},
         "peers": ["bare", "twscope", "nginx"]},
    ]
    return [s for s in found if args.only in s["name"]]


def count_calls(peer, tools, scenario, work):
    """Returns the number of system calls per datagram, from a separate run."""
    path = os.path.join(work, "calls")
    with open(path, "wb") as file:
        file.write(bytes(8))
    counted = []

    def look(_):
        for pause in (1.0, 0):
            with open(path, "rb") as file:
                counted.append((int.from_bytes(file.read(8), sys.byteorder), time.monotonic()))
            time.sleep(pause)

    calm = {**scenario, "load": {**scenario["load"], "seconds": 2.5}}
    result = measure(peer, tools["relay_load"], calm, look, {"LD_PRELOAD": tools["libtw_call_counter.so"], "TW_CALLS": path})
    (before, begun), (after, ended) = counted
    return (after - before) / (ended - begun) / result["datagrams_per_second"]


def table(scenario, runs):
    """Prints the best result of each relay, and ratios to nginx and to the bare relay."""
    most = ["datagrams_per_second"]
    keys = [*most, "cpu_us_per_datagram", "p50_us", "p99_us", "max_us", "lost"]
    found = {name: {key: (max if key in most else min)(run[key] for run in results) for key in keys}
               for name, results in runs.items()}
    print(f"\n{scenario['name']}")
    print(f"  {'relay':<15}{'dgrams/s':>10}{'x nginx':>9}{'x bare':>9}{'us/dgram':>10}"
          f"{'x nginx':>9}{'p50 us':>9}{'p99 us':>9}{'max us':>10}{'lost':>7}")

    def ratio(name, to, key):
        if to not in found or found[to][key] == 0:
            return "-"
        return f"{found[name][key] / found[to][key]:.2f}"

    for name, m in found.items():
        print(f"  {name:<15}{m['datagrams_per_second']:>10.0f}"
              f"{ratio(name, 'nginx', 'datagrams_per_second'):>9}"
              f"{ratio(name, 'bare', 'datagrams_per_second'):>9}"
              f"{m['cpu_us_per_datagram']:>10.2f}{ratio(name, 'nginx', 'cpu_us_per_datagram'):>9}"
              f"{m['p50_us']:>9.1f}{m['p99_us']:>9.1f}{m['max_us']:>10.1f}{m['lost']:>7.0f}"
              f"   ({min(run['datagrams_per_second'] for run in runs[name]):.0f} and up)")
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bin", required=True, help="where relay_load and the relays were built")
    parser.add_argument("--twscope", help="the program, to measure `twscope proxy` too")
    parser.add_argument("--twscope-flag", action="append", default=[])
    parser.add_argument("--quick", action="store_true", help="about a minute")
    parser.add_argument("--rounds", type=int, default=0, help="default 5, quick 3")
    parser.add_argument("--only", default="", help="scenarios whose name contains this")
    parser.add_argument("--json", help="write every run to this file")
    args = parser.parse_args()
    tools = {name: os.path.join(args.bin, name)
             for name in ("relay_load", "bare_relay", "relay_only", "libtw_call_counter.so")}
    for tool in tools.values():
        if not os.path.exists(tool):
            sys.exit(f"relay_bench: {tool} is missing: build with the preset `bench`")
    rounds = args.rounds or (3 if args.quick else 5)
    kept = []
    with tempfile.TemporaryDirectory() as work:
        every = peers(args, tools, work)
        for scenario in scenarios(args):
            chosen = [peer for peer in every if peer.name in scenario["peers"]]
            runs = {peer.name: [] for peer in chosen}
            if "rate" in scenario["load"] and scenario["load"]["rate"] is None:
                floor = kept[0]["best"]["none"]["datagrams_per_second"] if kept else 400_000
                scenario["load"]["rate"] = round(OPEN_LOOP * floor / 2 / scenario["load"]["clients"])
            for _ in range(rounds):
                for peer in chosen:
                    runs[peer.name].append(measure(peer, tools["relay_load"], scenario))
            best = table(scenario, runs)
            if scenario["load"].get("rate") == 100:
                for peer in chosen:
                    if peer.name in ("bare", "twscope"):
                        best[peer.name]["calls_per_datagram"] = count_calls(peer, tools, scenario, work)
                print("  system calls a datagram: " + ", ".join(
                    f"{name} {each['calls_per_datagram']:.2f}" for name, each in best.items() if each.get("calls_per_datagram")))
            kept.append({"scenario": scenario["name"], "load": scenario["load"], "best": best, "runs": runs})
    if args.json:
        with open(args.json, "w") as out:
            json.dump(kept, out, indent=1)


if __name__ == "__main__":
    main()
