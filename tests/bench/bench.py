#!/usr/bin/env python3
"""Measures twscope beside its peers and prints one table of ratios.

What is compared runs in one go, interleaved, on the same captures; the best of the rounds counts (others only take time away), and
the range of ours is told. A ratio means something on any machine, a time only beside the yardstick: what zlib's crc32 does here (2.6
GB/s where the bars were set). --write puts the table into PERFORMANCE.md.
"""

import argparse
import gzip
import json
import os
import resource
import shutil
import subprocess
import sys
import time
import zlib

import performance

HERE = os.path.dirname(os.path.abspath(__file__))
CAPTURES = {players: os.path.join(HERE, "..", "data", "captures", f"bench-{players}.pcap.gz") for players in (4, 64)}

# The plain decoder takes this many times as long as DDNet's own classes at -O3, which are not here: the least and the most that was
# measured. A ratio to the plain decoder is shown with the resulting ratio to these classes. If the bar is about these classes, the less
# favourable end counts.
PLAIN_BESIDE_DDNET = (1.25, 1.36)

# One row each: what, unit, ours and the peer as (program, benchmark, figure), the bar: the ratio of the time the peer took to the time
# we may take, or of our rate to its rate. With "ddnet" behind it the bar is the ratio to DDNet's classes.
ROWS = [
    ("datagrams to verified snapshots, 64 players", "us a snapshot", ("snapshot_bench", "datagrams<Ours>/64", "per_snapshot"),
     ("snapshot_bench", "datagrams<Plain>/64", "per_snapshot"), 5.0, "ddnet"),
    ("datagrams to verified snapshots, 4 players", "us a snapshot", ("snapshot_bench", "datagrams<Ours>/4", "per_snapshot"),
     ("snapshot_bench", "datagrams<Plain>/4", "per_snapshot"), 3.5, "ddnet"),
    ("Huffman, 64 players", "MB/s out", ("huffman_bench", "decompress<Ours>/64", "bytes_per_second"),
     ("huffman_bench", "decompress<Plain>/64", "bytes_per_second"), 3.91),
    ("Huffman, 4 players", "MB/s out", ("huffman_bench", "decompress<Ours>/4", "bytes_per_second"),
     ("huffman_bench", "decompress<Plain>/4", "bytes_per_second"), 3.91),
    ("the inspector beside the decoder alone, 4 players (bar: 1.4 x its time)", "us a snapshot",
     ("inspect_bench", "datagrams_to_snapshots/4", "per_snapshot"), ("snapshot_bench", "datagrams<Ours>/4", "per_snapshot"), 1 / 1.4),
    ("everything but records, both directions, 64 players", "us a snapshot",
     ("inspect_bench", "datagrams_to_snapshots/64", "per_snapshot"), ("snapshot_bench", "datagrams<Plain>/64", "per_snapshot"),
     None),
    ("... and JSON of changed items, 64 players", "us a snapshot",
     ("inspect_bench", "datagrams_to_json<changed>/64", "per_snapshot"),
     ("inspect_bench", "datagrams_to_snapshots/64", "per_snapshot"), 0.5),
    ("... and JSON of every item, 64 players", "us a snapshot",
     ("inspect_bench", "datagrams_to_json<all>/64", "per_snapshot"),
     ("snapshot_bench", "datagrams<Plain>/64", "per_snapshot"), 2.02),
    ("a snapshot of 0.7 beside the same one of 0.6", "us a snapshot", ("dialect_bench", "snapshots<seven>/manual_time", "per_snapshot"),
     ("dialect_bench", "snapshots<six>/manual_time", "per_snapshot"), 0.95),
    ("formatting every item alone, 64 players", "MB/s", ("inspect_bench", "format_every_item/64", "bytes_per_second"), None, None),
]


def yardstick():
    """Returns the GB/s of zlib's crc32 over a large buffer."""
    data = bytes(64 << 20)

    def once():
        start = time.perf_counter()
        zlib.crc32(data)
        return len(data) / (time.perf_counter() - start) / 1e9

    return max(once() for _ in range(5))


def benchmarks(programs, rounds, seconds):
    """Runs Google Benchmark programs in turns. Returns the values of every round by (program, benchmark, figure)."""
    values = {}
    for done in range(rounds):
        for name in sorted({row[2][0] for row in ROWS}):
            print(f"  round {done + 1} of {rounds}: {name}", file=sys.stderr)
            wanted = "|".join(sorted({each[1] for row in ROWS for each in row[2:4] if each and each[0] == name}))
            output = subprocess.run(
                [os.path.join(programs, name), "--benchmark_format=json", f"--benchmark_min_time={seconds}",
                 f"--benchmark_filter=^({wanted})$"], check=True, capture_output=True, text=True).stdout
            for run in json.loads(output)["benchmarks"]:
                if run.get("error_occurred"):
                    sys.exit(f"bench: {name} {run['name']}: {run['error_message']}")
                for figure in ("per_snapshot", "bytes_per_second"):
                    if figure in run:
                        values.setdefault((name, run["name"], figure), []).append(run[figure])
    return values


def shown(value, figure):
    return value * 1e6 if figure == "per_snapshot" else value / 1e6


def best(values, figure):
    return min(values) if figure == "per_snapshot" else max(values)


def library_rows(values):
    for what, unit, ours, peer, bar, *about in ROWS:
        ours_value = best(values[ours], ours[2])
        row = {"what": what, "unit": unit, "ours": shown(ours_value, ours[2]), "peer": None, "ratio": None, "bar": bar,
               "range": sorted(shown(each, ours[2]) for each in (min(values[ours]), max(values[ours])))}
        if peer:
            peer_value = best(values[peer], peer[2])
            row["peer"] = shown(peer_value, peer[2])
            row["ratio"] = peer_value / ours_value if ours[2] == "per_snapshot" else ours_value / peer_value
            if "<Plain>" in peer[1]:
                row["ddnet"] = sorted(row["ratio"] / slower for slower in PLAIN_BESIDE_DDNET)
                row["bar_is_ddnet"] = "ddnet" in about
        yield row


def cpu_seconds(command):
    """Returns the user and system time of a process."""
    def spent():
        usage = resource.getrusage(resource.RUSAGE_CHILDREN)
        return usage.ru_utime + usage.ru_stime

    before = spent()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return spent() - before


def decode_row(twscope, rounds, capture, values):
    """Compares `decode --items none` as a whole process with the library alone, on the capture of 64 players."""
    with gzip.open(CAPTURES[64]) as packed, open(capture, "wb") as plain:
        shutil.copyfileobj(packed, plain)
    told = subprocess.run([twscope, "decode", "--stats", "--json", capture], check=True, capture_output=True, text=True)
    snapshots = json.loads(told.stdout)["snapshots"]["total"]
    seconds = min(cpu_seconds([twscope, "decode", capture, "--items", "none", "-o", "/dev/null"]) for _ in range(2 * rounds + 1))
    ours, library = seconds / snapshots, min(values["snapshot_bench", "datagrams<Ours>/64", "per_snapshot"])
    yield {"what": "the process `decode --items none` beside the library, 64 players (bar: 1.6 x its time)", "unit": "us a snapshot",
           "ours": ours * 1e6, "peer": library * 1e6, "ratio": library / ours, "bar": 1 / 1.6}


def records_rows(twscope, rounds, capture, recording):
    """Measures the CPU time of `records` with every change of 64 players' snapshots (from a capture that decode_row has unpacked)."""
    subprocess.run([twscope, "decode", capture, "-o", recording], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    size = os.path.getsize(recording)
    chosen = {
        "by a key of items that few have": ["--filter", "items.player == 'bot 3' and items.fields.x > 5000"],
        "by keys of items that all have": ["--filter", "items.type == character and items.fields.x > 50000"],
        "as a table of items": ["--columns", "t,tick,items.player,items.at.x"],
    }
    for what, flags in chosen.items():
        seconds = [cpu_seconds([twscope, "records", recording, *flags, "-o", "/dev/null"]) for _ in range(2 * rounds + 1)]
        rate = size / min(seconds) / 1e9
        yield {"what": f"records, {what} (bar: 1 GB/s of lines)", "unit": "GB/s", "ours": rate, "peer": 1, "ratio": rate, "bar": 1}
    os.remove(recording)


def offline_rows(twscope, rounds, capture):
    """Compares the CPU time of twscope and tshark, on the capture of 4 players (unpacked to `capture`)."""
    if not shutil.which("tshark"):
        return
    with gzip.open(CAPTURES[4]) as packed, open(capture, "wb") as plain:
        shutil.copyfileobj(packed, plain)
    packets = int(subprocess.run(["tshark", "-r", capture, "-T", "fields", "-e", "frame.number"], check=True,
                                 capture_output=True, text=True).stdout.split()[-1])
    commands = {
        "nothing": [twscope, "decode", "--stats", capture, "--json"],
        "all": [twscope, "decode", capture, "--items", "all", "-o", "/dev/null"],
        "fields": ["tshark", "-r", capture, "-T", "fields", "-e", "data.data"],
        "json": ["tshark", "-r", capture, "-T", "json"],
    }
    seconds = {name: [] for name in commands}
    for _ in range(rounds):
        for name, command in commands.items():
            seconds[name].append(cpu_seconds(command))
    rates = {name: packets / min(each) for name, each in seconds.items()}
    for what, ours, peer, bar in (("offline: every byte accounted for (stats), beside tshark -T fields", "nothing", "fields", 6),
                                  ("offline: JSON lines of every item, beside tshark -T json", "all", "json", 14)):
        yield {"what": what, "unit": "packets/s", "ours": rates[ours], "peer": rates[peer], "ratio": rates[ours] / rates[peer],
               "bar": bar}


def relay_rows(path):
    with open(path, encoding="utf-8") as file:
        kept = json.load(file)
    scenarios = {each["scenario"]: each["best"] for each in kept}
    runs = {each["scenario"]: each["runs"] for each in kept}
    fast = scenarios["64 clients, as fast as it goes"]
    flood = scenarios["64 clients, more than fits (open loop)"]
    calm = scenarios["64 clients x 100 a second"]

    def row(what, unit, found, ours, peer, key, bar, inverse):
        if peer not in found or not found[peer].get(key) or not found.get(ours, {}).get(key):
            return {"what": f"{what}: NOT MEASURED", "unit": unit, "ours": 0, "peer": None, "ratio": 0 if bar else None, "bar": bar}
        ratio = found[ours][key] / found[peer][key]
        name = next(each for each, best in scenarios.items() if best is found)
        all_of_it = [run[key] for run in runs[name][ours] if key in run] or [found[ours][key]]
        return {"what": what, "unit": unit, "ours": found[ours][key], "peer": found[peer][key],
                "ratio": 1 / ratio if inverse else ratio, "bar": bar, "range": [min(all_of_it), max(all_of_it)]}

    found = [
        row("relay, datagrams a second, beside nginx, open loop", "1/s", flood, "twscope", "nginx", "datagrams_per_second", 1.25, False),
        row("the machine's floor: direct echo, open loop, beside our relay", "1/s", flood, "none", "twscope", "datagrams_per_second",
            None, False),
        row("relay's CPU a datagram beside the bare relay, at 64 x 100 (bar: 1.03 x)", "us", calm, "twscope", "bare",
            "cpu_us_per_datagram", 1 / 1.03, True),
        row("relay's CPU a datagram beside the bare relay, at the most, own addresses (bar: 1.03 x)", "us", fast, "twscope own", "bare",
            "cpu_us_per_datagram", 1 / 1.03, True),
        row("relay's CPU a datagram beside the bare relay, at the most, shared (bar: 1.03 x)", "us", fast, "twscope", "bare",
            "cpu_us_per_datagram", 1 / 1.03, True),
        row("system calls a datagram at 64 x 100 (bar: 3.0), beside the bare relay", "calls", calm, "twscope", "bare",
            "calls_per_datagram", None, True),
        row("relay, datagrams a second, beside nginx", "1/s", fast, "twscope", "nginx", "datagrams_per_second", 1.4, False),
        row("relay, datagrams a second, beside a bare relay", "1/s", fast, "twscope", "bare", "datagrams_per_second", 0.97, False),
        row("relay, CPU a datagram, beside nginx", "us", fast, "twscope", "nginx", "cpu_us_per_datagram", 1 / 0.7, True),
        row("relay with copies for the decoder, beside without", "1/s", fast, "twscope+ring", "twscope", "datagrams_per_second",
            0.95, False),
        row("the whole program, datagrams a second, beside nginx", "1/s", fast, "twscope proxy", "nginx", "datagrams_per_second",
            None, False),
        row("relay, round trip p50, beside nginx", "us", calm, "twscope", "nginx", "p50_us", 1, True),
        row("relay, round trip p99, beside nginx", "us", calm, "twscope", "nginx", "p99_us", 1, True),
    ]
    calls = found[5]
    if calls["ours"]:
        calls.update({"bar": 1, "ratio": 3.0 / calls["ours"]})
    yield from found
    for key, bar in (("p50_us", 13), ("p99_us", 60)):
        added = calm["twscope busy"][key] - calm["none"][key]
        yield {"what": f"--busy-poll, added round trip {key[:3]} (bar: {bar} us)", "unit": "us", "ours": added, "peer": bar,
               "ratio": bar / max(added, 0.1), "bar": 1}


def world_rows(program, rounds):
    """Measures merged snapshots of 64 players; world_cost itself checks that there is one for each tick."""
    found = json.loads(subprocess.run([program, str(rounds)], check=True, capture_output=True, text=True).stdout)
    for what, ms, bar in (("worlds of 64 players, beside decoding alone", "worlds_ms", None),
                          ("... and their JSON with every item (bar: 1.35 x the CPU of decoding alone)", "lines_ms", 1 / 1.35)):
        yield {"what": what, "unit": "us a snapshot", "ours": 1e3 * found[ms] / found["snapshots"],
               "peer": 1e3 * found["decode_ms"] / found["snapshots"], "ratio": found["decode_ms"] / found[ms], "bar": bar}


def print_table(rows, speed):
    print(f"\nyardstick: crc32 {speed:.2f} GB/s (the bars' machine: 2.6)\n")
    print(f"{'what':<92}{'ours':>12}{'peer':>12} {'unit':<15}{'ratio':>7}{'DDNet':>11}{'bar':>7}")
    for row in rows:
        peer = f"{row['peer']:12.2f}" if row["peer"] is not None else f"{'-':>12}"
        ratio = f"{row['ratio']:7.2f}" if row["ratio"] is not None else f"{'-':>7}"
        ddnet = "{:.2f}-{:.2f}".format(*row["ddnet"]) if row.get("ddnet") else "-"
        bar = f"{row['bar']:7.2f}" if row["bar"] is not None else f"{'-':>7}"
        print(f"{row['what']:<92}{row['ours']:12.2f}{peer} {row['unit']:<15}{ratio}{ddnet:>11}{bar}"
              f"{'  missed' if performance.is_missed(row) else ''}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", required=True, help="folder of a build with the preset `bench`")
    parser.add_argument("--quick", action="store_true", help="about a minute, fewer rounds")
    parser.add_argument("--rounds", type=int, default=0, help="default 5, quick 1")
    parser.add_argument("--json", default="", help="write all results to this file")
    parser.add_argument("--write", action="store_true", help="write the table into PERFORMANCE.md")
    args = parser.parse_args()
    rounds = args.rounds or (1 if args.quick else 5)
    speed = yardstick()
    values = benchmarks(os.path.join(args.build, "tests/bench"), rounds, 0.2 if args.quick else 0.5)
    rows = list(library_rows(values))
    twscope = os.path.join(args.build, "proxy/twscope")
    rows += decode_row(twscope, rounds, os.path.join(args.build, "bench-64.pcap"), values)
    rows += records_rows(twscope, rounds, os.path.join(args.build, "bench-64.pcap"), os.path.join(args.build, "bench-64.jsonl"))
    rows += world_rows(os.path.join(args.build, "tests/bench/world_cost"), rounds)
    rows += offline_rows(twscope, 1 if args.quick else 3, os.path.join(args.build, "bench-4.pcap"))
    relay = os.path.join(args.build, "relay-bench.json")
    subprocess.run([sys.executable, os.path.join(HERE, "relay/relay_bench.py"), "--bin",
                    os.path.join(args.build, "tests/bench/relay"), "--twscope", twscope, "--only", "64 clients", "--json", relay,
                    "--rounds", str(rounds), *(["--quick"] if args.quick else [])], check=True)
    rows += relay_rows(relay)
    sessions = os.path.join(args.build, "sessions-bench.json")
    subprocess.run([sys.executable, os.path.join(HERE, "relay/sessions_bench.py"), "--build", args.build, "--json", sessions,
                    *(["--quick"] if args.quick else [])], check=True)
    with open(sessions, encoding="utf-8") as file:
        rows += json.load(file)
    print_table(rows, speed)
    results = {"yardstick_gb_per_s": speed, "machine": performance.machine(), "quick": args.quick, "rows": rows}
    if args.json:
        with open(args.json, "w", encoding="utf-8") as out:
            json.dump(results, out, indent=1)
    if args.write:
        performance.write(results)


if __name__ == "__main__":
    main()
