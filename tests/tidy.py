#!/usr/bin/env python3
"""clang-tidy over source files, two at a time on two cores, and over none twice.

What was found clean is remembered by what the preprocessor makes of it, in ~/.cache/twscope-tidy: a file is looked at again
when it, a header it includes, or the checks changed, in whichever clone. Files that differ from the main branch come first,
so that --within leaves out what is least likely to be wrong.
"""
import argparse
import concurrent.futures
import hashlib
import json
import os
import pathlib
import random
import shlex
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
CACHE = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "twscope-tidy"
FORGET_AFTER_SECONDS = 90 * 24 * 3600


def output_of(*command):
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    return done.stdout.strip() if done.returncode == 0 else ""


def changed_files():
    """Sources that differ from where this branch left origin/main, or, on main itself, from the commit before."""
    head = output_of("git", "rev-parse", "HEAD")
    base = output_of("git", "merge-base", "HEAD", "origin/main")
    if not base or base == head:
        base = output_of("git", "rev-parse", "--verify", "--quiet", "HEAD^")
    names = output_of("git", "diff", "--name-only", base).splitlines() if base else []
    return {str(pathlib.Path(name).with_suffix(".cpp")) for name in names if name.endswith((".h", ".cpp"))}


def compile_commands(build):
    text = (build / "compile_commands.json").read_text()
    return {os.path.relpath(entry["file"], ROOT): entry for entry in json.loads(text)}


def mark_of(entry, checks):
    """The file that says it was clean, named by a hash of all that clang-tidy sees but this clone's folder; None: no such."""
    words = shlex.split(entry["command"])
    words = words[1:] if words[0].endswith("ccache") else words
    del words[words.index("-o"):words.index("-o") + 2]
    # Comments and macros count, too: NOLINT, and checks of macros.
    done = subprocess.run([*words, "-E", "-P", "-CC", "-dD"], cwd=entry["directory"], capture_output=True)
    if done.returncode != 0:
        return None
    return CACHE / hashlib.sha256(checks + done.stdout.replace(str(ROOT).encode(), b".")).hexdigest()


def look_at(name, entry, build, checks, deadline):
    """"clean", "remembered", "late", or what clang-tidy says."""
    if time.monotonic() > deadline:
        return "late"
    mark = mark_of(entry, checks)
    if mark and mark.exists():
        mark.touch()
        return "remembered"
    done = subprocess.run(["clang-tidy", "-p", str(build), "--quiet", name], cwd=ROOT, capture_output=True, text=True)
    if done.returncode != 0:
        return f"######## {name}\n{done.stdout}"
    if mark:
        mark.touch()
    return "clean"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", type=pathlib.Path, required=True, help="folder with compile_commands.json")
    parser.add_argument("--within", type=float, metavar="MINUTES", help="look at no further file after so long")
    parser.add_argument("files", nargs="*", help="default: every source file that is built")
    options = parser.parse_args()
    start = time.monotonic()
    deadline = start + options.within * 60 if options.within else float("inf")

    commands = compile_commands(options.build.resolve())
    wanted = [os.path.relpath(name, ROOT) for name in options.files] or sorted(commands)
    unknown = [name for name in wanted if name not in commands]
    if unknown:
        sys.exit(f"tidy: not compiled in {options.build}: {' '.join(unknown)}")
    changed = changed_files()
    random.shuffle(wanted)  # what one run leaves out, another sees
    wanted.sort(key=lambda name: name not in changed)

    CACHE.mkdir(parents=True, exist_ok=True)
    for mark in CACHE.iterdir():
        if time.time() - mark.stat().st_mtime > FORGET_AFTER_SECONDS:
            mark.unlink(missing_ok=True)
    checks = (ROOT / ".clang-tidy").read_bytes() + output_of("clang-tidy", "--version").encode()
    said = {}
    with concurrent.futures.ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        jobs = {pool.submit(look_at, name, commands[name], options.build, checks, deadline): name for name in wanted}
        for job in concurrent.futures.as_completed(jobs):
            said[jobs[job]] = job.result()
            if said[jobs[job]].startswith("########"):
                print(said[jobs[job]], flush=True)
    count = {word: sum(value == word for value in said.values()) for word in ("clean", "remembered", "late")}
    bad = sorted(name for name, value in said.items() if value.startswith("########"))
    print(f"tidy: {count['clean']} files clean, {count['remembered']} unchanged since they were, {len(bad)} not clean, "
          f"{count['late']} left out for want of time; {time.monotonic() - start:.0f} s")
    for name in sorted(name for name, value in said.items() if value == "late" and name in changed):
        print(f"tidy: left out although it changed: {name}")
    for name in bad:
        print(f"tidy: not clean: {name}")
    sys.exit(1 if bad else 0)


main()
