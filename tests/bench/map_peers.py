#!/usr/bin/env python3
"""Opening a map and locating one point: our reader beside DDNet's own, on every installed map.

Whole processes, all with their output thrown away: ours is tests/bench/map_locate. DDNet's reader is measured by the two tools
of ddnet-tools that read and write nothing:
  map_find_env  opens the file and reads its quads, but inflates no tile layer: less than what locating needs;
  map_diff      given one file twice, opens it twice and inflates all its tile layers twice: its time is halved.
The time a process takes to start is measured on each program (ours with nothing to do, theirs with a file that is not there)
and taken off. The floor is our process that inflates the blocks of the physics layers and looks nothing up. Runs are
interleaved; the least time of each counts, for what disturbs only ever adds.
"""

import argparse
import glob
import os
import subprocess
import sys
import time

MAPS = ["/usr/share/games/ddnet/data/maps", "/usr/share/games/teeworlds/data/maps"]
TOOLS = glob.glob("/usr/lib/*/ddnet")


def spent(command):
    """Wall clock milliseconds of one run."""
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
    print(f"{'map':28} {'floor':>8} {'ours':>8} {'find_env':>8} {'diff/2':>8}   {'find_env/ours':>13} {'diff/ours':>9}   (ms)")
    slower = 0
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
        floor, ours = least["floor"] - least["nothing"], least["ours"] - least["nothing"]
        env, both = least["env"] - least["env0"], (least["diff"] - least["diff0"]) / 2
        slower += ours >= min(env, both)
        show = max(ours, 0.01)
        print(f"{os.path.basename(path):28} {floor:8.2f} {ours:8.2f} {env:8.2f} {both:8.2f}   {env / show:13.1f} {both / show:9.1f}")
    print(f"{len(maps)} maps; DDNet's reader is faster on {slower}")
    return 1 if slower else 0


sys.exit(main())
