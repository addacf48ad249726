#!/usr/bin/env python3
"""64 clients play through `twscope proxy` for a long time, coming and going: it may take no more memory and no more descriptors at
the end than after the first minute, and no record may be lost.

Captured sessions of 64 players at the speed they were played, each again as soon as it has ended. Records go to a file, without
items and messages.
"""

import argparse
import collections
import json
import os
import sys
import tempfile
import time

from relay_bench import family_of
from sessions_bench import CAPTURES, MIB, Proxy, finished, rss

SESSIONS = 64
WINDOW = 60  # seconds over which the minimum counts, because sessions and queued records come and go, but a leak stays
GROWTH = 1.01


def descriptors(pid):
    return sum(len(os.listdir(f"/proc/{each}/fd")) for each in family_of(pid))


def look(pid, load, seconds):
    """Returns the minimum memory and descriptor counts over this many seconds."""
    looks = []
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if load.poll() is not None:
            sys.exit("soak: the load generator ended before its time")
        # Without the pages of programs and libraries, whose share depends on the other processes that map them.
        looks.append((rss(pid, "Pss_Anon", "Pss_Shmem"), descriptors(pid)))
        time.sleep(0.5)
    return [min(each) for each in zip(*looks)]


def read_records(path):
    """Returns the numbers of records by type and of findings by id, and the totals of the run."""
    counts, total = collections.Counter(), None
    with open(path, encoding="utf-8") as file:
        for line in file:
            record = json.loads(line)
            counts[record["type"]] += 1
            if record["type"] == "finding":
                counts[record["id"]] += 1
            if record["type"] == "summary" and record["session"] == 0:
                total = record
    return counts, total


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", required=True, help="folder of session_load")
    parser.add_argument("--twscope", required=True)
    parser.add_argument("--seconds", type=int, default=300)
    args = parser.parse_args()
    first = min(60, args.seconds // 3)
    window = min(WINDOW, args.seconds // 5)
    with tempfile.TemporaryDirectory() as work:
        records = os.path.join(work, "soak.jsonl")
        proxy = Proxy(args.twscope, "-o", records, "--items", "none", "--no-messages")
        load = proxy.load(os.path.join(args.bin, "session_load"), capture=CAPTURES[64], sessions=SESSIONS, speed=1, warm_up=first,
                          join=5, seconds=args.seconds - first + window + 5)
        time.sleep(first)
        before = look(proxy.pid, load, window)
        time.sleep(max(0, args.seconds - first - 2 * window))
        now = look(proxy.pid, load, window)
        finished(load)
        done = proxy.end()
        counts, total = read_records(records)
    print(f"{args.seconds} s, {counts['snapshot']} snapshots, {done['verified']} verified; memory {before[0] / MIB:.1f} MiB after "
          f"{first} s, {now[0] / MIB:.1f} at the end; descriptors {before[1]:.0f}, {now[1]:.0f}")
    complaints = []
    if now[0] > before[0] * GROWTH:
        complaints.append(f"memory grew by {100 * now[0] / before[0] - 100:.1f} %")
    if now[1] > before[1]:
        complaints.append("descriptors were not closed")
    if total is None or counts["snapshot"] != total["snapshots"]["total"] or done["unwritten"]:
        complaints.append("records were lost")
    if counts["inspect.gap"]:
        complaints.append(f"{counts['inspect.gap']} gaps")
    if done["verified"] != done["snapshots"]:
        complaints.append("not every snapshot was verified")
    if complaints:
        sys.exit("soak: " + "; ".join(complaints))


if __name__ == "__main__":
    main()
