#!/usr/bin/env python3
"""Counts the instructions each stage takes a snapshot, beside the committed figures.

callgrind counts them over the capture of 4 players, so that they are the same in every run: what changes is the code (or the
compiler, or the C library). More than 5 % worse is shown loudly and fails nothing; the exit code is 2 only when nothing could
be measured. --update writes the figures down as those to compare with.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
COMMITTED = os.path.join(HERE, "counts.json")
LOUD = 1.05  # times the committed figure

# Rows: printed name, the functions of stages.cpp whose instructions count, the functions to subtract.
STAGES = [
    ("huffman", "Huffman", ["huffman"], []),
    ("packet", "packet headers", ["packet"], ["huffman"]),
    ("chunks", "chunks, heads of messages", ["chunks"], []),
    ("parts", "parts reassembled", ["parts"], []),
    ("varints", "varints", ["varints"], []),
    ("delta", "deltas taken apart (behind their varints)", ["delta"], ["varints"]),
    ("apply", "deltas applied", ["apply"], []),
    ("checksum", "checksum", ["checksum"], []),
    ("history", "history: base, keeping", ["find", "commit"], []),
    ("decode", "all of the above: datagram to snapshot",
     ["packet", "chunks", "parts", "delta", "apply", "checksum", "find", "commit"], []),
    ("verify", "the inspector without message records", ["verify"], []),
    ("inspect", "the whole inspector, both directions", ["inspect"], ["json"]),
    ("json", "JSON lines of changed items", ["json"], []),
]


def fail(why):
    print(f"count: {why}", file=sys.stderr)
    sys.exit(2)


def run_callgrind(valgrind, program, work):
    """Returns the program's output and its profile."""
    profile = os.path.join(work, "profile")
    # The environment is empty, because it is on the stack and would shift the data there.
    command = [valgrind, "--tool=callgrind", f"--callgrind-out-file={profile}", "--compress-strings=no", "--compress-pos=no",
               program]
    try:
        done = subprocess.run(command, env={"PATH": os.environ.get("PATH", "")}, capture_output=True, text=True, check=False)
    except OSError as error:
        fail(f"{valgrind}: {error.strerror}")
    if done.returncode != 0:
        fail(f"{' '.join(command)} ended with {done.returncode}:\n{done.stderr}")
    return json.loads(done.stdout), profile


def inclusive_costs(profile):
    """Returns the instructions in each function of stages.cpp, including those of called functions."""
    costs = {}
    callee = None
    with open(profile, encoding="utf-8", errors="replace") as lines:
        for line in lines:
            if line.startswith("cfn="):
                found = re.search(r"tw::bench::stage::(\w+)", line.split("(")[0])
                callee = found and found.group(1)
            elif line.startswith("calls=") and callee:
                costs[callee] = costs.get(callee, 0) + int(next(lines).split()[1])
                callee = None
    return costs


def measure(valgrind, program):
    with tempfile.TemporaryDirectory() as work:
        told, profile = run_callgrind(valgrind, program, work)
        costs = inclusive_costs(profile)
    missing = sorted({name for stage in STAGES for name in stage[2] + stage[3]} - costs.keys())
    if missing:
        fail(f"callgrind saw no call of stage::{', stage::'.join(missing)}")
    figures = {key: round((sum(costs[name] for name in plus) - sum(costs[name] for name in minus)) / told["snapshots"], 1)
               for key, _, plus, minus in STAGES}
    return {"compiler": told["compiler"], "snapshots": told["snapshots"], "instructions_per_snapshot": figures}


def print_table(measured, committed):
    """Returns the stages that became much worse."""
    worse = []
    loud, plain = ("\033[1;31m", "\033[0m") if sys.stdout.isatty() else ("", "")
    before = committed.get("instructions_per_snapshot", {})
    print(f"{'instructions per snapshot, 4 players':<44}{'now':>10}{'committed':>11}{'change':>9}")
    for key, what, _, _ in STAGES:
        now, then = measured["instructions_per_snapshot"][key], before.get(key)
        if not then:
            print(f"{what:<44}{now:>10.1f}{'-':>11}{'new':>9}")
            continue
        bad = now > then * LOUD
        print(f"{loud if bad else ''}{what:<44}{now:>10.1f}{then:>11.1f}{now / then - 1:>+9.1%}{'  !!!' + plain if bad else ''}")
        worse += [f"{what} {now / then - 1:+.1%}"] if bad else []
    if committed and committed.get("compiler") != measured["compiler"]:
        print(f"The committed figures are of compiler {committed.get('compiler')}, these of {measured['compiler']}.")
    if worse:
        print(f"{loud}!!! slower than committed: {'; '.join(worse)}{plain}")
        print("!!! If that is meant: ./dev count --update, and say why in the commit.")
    return worse


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", required=True, help="the program `stages`, built with the preset `bench`")
    parser.add_argument("--valgrind", default="valgrind")
    parser.add_argument("--committed", default=COMMITTED, help="figures to compare with")
    parser.add_argument("--update", action="store_true", help="write the figures down as committed")
    args = parser.parse_args()
    committed = {}
    if os.path.exists(args.committed):
        with open(args.committed, encoding="utf-8") as file:
            committed = json.load(file)
    measured = measure(args.valgrind, args.program)
    print_table(measured, committed)
    if args.update:
        with open(args.committed, "w", encoding="utf-8") as file:
            json.dump(measured, file, indent=1)
            file.write("\n")


if __name__ == "__main__":
    main()
