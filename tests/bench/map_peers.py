#!/usr/bin/env python3
"""Opening a map and locating one point: our reader beside DDNet's own, on every installed map.

Whole processes, all with their output thrown away: ours is tests/bench/map_locate. No tool of DDNet does just this; of those in
ddnet-tools that read and write nothing, one does less and one does more:
  opening    map_find_env: opens the file and reads its quads, but inflates no tile layer;
  all tiles  map_diff with one file twice: inflates all tile layers, and images, of both; its time is halved.
What DDNet's reader takes for the same work is at least "opening" and the floor together: both use the same zlib on the same
blocks. The floor is our process that inflates the blocks of the physics layers and looks nothing up. The time a process takes to
start is measured on each program (ours with nothing to do, theirs with a file that is not there) and taken off. Runs are
interleaved; the least time of each counts, for what disturbs only ever adds. Differences below the noise count as equal.
"""

import argparse
import glob
import os
import subprocess
import sys
import time

MAPS = ["/usr/share/games/ddnet/data/maps", "/usr/share/games/teeworlds/data/maps"]
NOISE_MS = 0.3
TOOLS = glob.glob("/usr/lib/*/ddnet")


def spent(command):
    """Returns the wall-clock milliseconds of one run."""
    start = time.perf_counter()
    subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
    return (time.perf_counter() - start) * 1000


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("map_locate", help="the built program of that name")
    parser.add_argument("--runs", type=int, default=15)
    arguments = parser.parse_args()
    if not TOOLS:
        sys.exit("ddnet-tools is not installed")
    find_env, diff = (os.path.join(TOOLS[0], name) for name in ("map_find_env", "map_diff"))
    maps = sorted(path for folder in MAPS for path in glob.glob(folder + "/*.map"))
    if not maps:
        sys.exit("no map is installed (packages ddnet-data, teeworlds-data)")
    missing = "/nonexistent.map"
    print(f"{'map (ms)':28} {'floor':>8} {'ours':>8} {'opening':>8} {'and floor':>9} {'all tiles':>9}   ours is")
    counts = {"faster": 0, "equal": 0, "slower": 0}
    for path in maps:
        commands = {
            "nothing": [arguments.map_locate, "nothing", path],
            "floor": [arguments.map_locate, "floor", path],
            "ours": [arguments.map_locate, "open", path],
            "env0": [find_env, missing, "1"],
            "env": [find_env, path, "1"],
            "diff0": [diff, missing, missing],
            "diff": [diff, path, path],
        }
        least = dict.fromkeys(commands, float("inf"))
        for _ in range(arguments.runs):
            for name, command in commands.items():
                least[name] = min(least[name], spent(command))
        floor, ours = (max(least[name] - least["nothing"], 0) for name in ("floor", "ours"))
        opening, tiles = max(least["env"] - least["env0"], 0), max(least["diff"] - least["diff0"], 0) / 2
        theirs = opening + floor
        verdict = "equal" if abs(theirs - ours) < NOISE_MS else "faster" if ours < theirs else "slower"
        counts[verdict] += 1
        print(f"{os.path.basename(path):28} {floor:8.2f} {ours:8.2f} {opening:8.2f} {theirs:9.2f} {tiles:9.2f}   {verdict}")
    print(", ".join(f"{verdict}: {count}" for verdict, count in counts.items()), f"(of {len(maps)} maps)")
    return 1 if counts["slower"] else 0


sys.exit(main())
