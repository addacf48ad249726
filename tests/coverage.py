#!/usr/bin/env python3
"""Says how much of the decoders' code the tests run: lines and branches, by file.

    coverage.py BUILD PROGRAM [ARGUMENT...] [-- PROGRAM [ARGUMENT...]]...

Runs the programs, which clang built to count, and fails when a room's branches are covered by less than LEAST percent.
"""

import collections
import json
import os
import pathlib
import subprocess
import sys

ROOMS = ("snapshot", "map", "proxy/wire")
LEAST = 95.0

Covered = collections.namedtuple("Covered", "count covered")


def commands_of(arguments):
    command = []
    for argument in [*arguments, "--"]:
        if argument != "--":
            command.append(argument)
        elif command:
            yield command
            command = []


def counts(build, commands):
    """Lines and branches of each file of the rooms after all the programs."""
    profiles = []
    for number, command in enumerate(commands):
        profile = build / f"{number}.profraw"
        result = subprocess.run(command, env={**os.environ, "LLVM_PROFILE_FILE": str(profile)}, check=False,
                                capture_output=True, text=True, errors="replace")
        if result.returncode != 0:
            sys.exit(f"{command[0]} failed ({result.returncode}):\n{(result.stdout + result.stderr)[-2000:]}")
        profiles.append(profile)
    merged = build / "all.profdata"
    subprocess.run(["llvm-profdata", "merge", "-sparse", "-o", merged, *profiles], check=True)
    programs = list(dict.fromkeys(command[0] for command in commands))
    objects = [option for program in programs[1:] for option in ("-object", program)]
    exported = subprocess.run(["llvm-cov", "export", f"-instr-profile={merged}", programs[0], *objects, *ROOMS],
                              check=True, capture_output=True, text=True)
    return {os.path.relpath(each["filename"]): counts_of(each)
            for each in json.loads(exported.stdout)["data"][0]["files"]}


def counts_of(file):
    """Lines and branches of a file, without the branches of defaulted comparisons: nobody wrote them, and what clang 14
    counts there never takes the side where two values differ."""
    name = os.path.relpath(file["filename"])
    if not name.startswith(tuple(room + "/" for room in ROOMS)):
        return {}
    lines = pathlib.Path(name).read_text().splitlines()
    sides = [side for row in file["branches"] if lines[row[0] - 1].endswith("= default;") for side in row[4:6]]
    summary = file["summary"]
    return {"lines": Covered(summary["lines"]["count"], summary["lines"]["covered"]),
            "branches": Covered(summary["branches"]["count"] - len(sides),
                                summary["branches"]["covered"] - sum(side > 0 for side in sides))}


def share(covered):
    return 100.0 if covered.count == 0 else 100.0 * covered.covered / covered.count


def row(name, lines, branches):
    print(f"{name:40} {share(lines):7.2f} % of {lines.count:5} lines {share(branches):7.2f} % of {branches.count:5} branches")


def main():
    build = pathlib.Path(sys.argv[1]) / "profiles"
    build.mkdir(parents=True, exist_ok=True)
    files = counts(build, list(commands_of(sys.argv[2:])))
    below = []
    for room in ROOMS:
        totals = {"lines": Covered(0, 0), "branches": Covered(0, 0)}
        for name in sorted(name for name in files if name.startswith(room + "/")):
            of_file = files[name]
            row(name, **of_file)
            totals = {what: Covered(*map(sum, zip(totals[what], of_file[what]))) for what in totals}
        row(room, **totals)
        print()
        if share(totals["branches"]) < LEAST:
            below.append(room)
    if below:
        sys.exit(f"coverage: less than {LEAST:g} % of the branches are covered in {', '.join(below)}")


main()
