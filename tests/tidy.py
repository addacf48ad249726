#!/usr/bin/env python3
"""clang-tidy over source files, two at a time on two cores, and over none twice.

What was found clean is remembered in ~/.cache/twscope-tidy by a hash of all that clang-tidy sees of it: a file is looked at
again when it, a header of ours that it includes, the checks or an installed library changed, in whichever clone. Files that
differ from the main branch come first, so that --within leaves out what is least likely to be wrong.

Most of the time goes into the headers of the libraries, which every check walks through. So files of one folder are looked at
in groups, as one translation unit; what cannot stand in one with the others, because a name stands in both, is looked at
apart. A group hides what one of its files forgot to include, so that the compiler looks at what changed by itself.
"""
import argparse
import concurrent.futures
import functools
import hashlib
import json
import os
import pathlib
import random
import re
import shlex
import shutil
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
CACHE = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "twscope-tidy"
FORGET_AFTER_SECONDS = 90 * 24 * 3600
GROUP_SIZE = 10  # longer groups save little, and keep one core waiting for the other at the end
INCLUDE = re.compile(rb'^\s*#\s*include\s*"([^"]+)"', re.MULTILINE)


def output_of(*command):
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    return done.stdout.strip() if done.returncode == 0 else ""


def changed_files():
    """Sources that differ from where this branch left origin/main, or, on main itself, from the last tag or the commit
    before."""
    head = output_of("git", "rev-parse", "HEAD")
    base = output_of("git", "merge-base", "HEAD", "origin/main")
    if not base or base == head:
        base = output_of("git", "describe", "--tags", "--abbrev=0", "HEAD^") or \
            output_of("git", "rev-parse", "--verify", "--quiet", "HEAD^")
    names = output_of("git", "diff", "--name-only", base).splitlines() if base else []
    return {str(pathlib.Path(name).with_suffix(".cpp")) for name in names if name.endswith((".h", ".cpp"))}


def compile_commands(build):
    text = (build / "compile_commands.json").read_text()
    return {os.path.relpath(entry["file"], ROOT): entry for entry in json.loads(text)}


def flags_of(entry):
    """The compiler's arguments without the compiler, the source and the output."""
    words = shlex.split(entry["command"])
    words = words[2:] if words[0].endswith("ccache") else words[1:]
    del words[words.index("-o"):words.index("-o") + 2]
    del words[words.index("-c"):words.index("-c") + 2]
    return words


@functools.cache
def includes_of(path):
    return sorted(set(INCLUDE.findall(path.read_bytes())))


@functools.cache
def found(folder, name):
    path = folder / name
    return path if path.is_file() else None


def sources_of(name, flags):
    """The file and the headers of ours that it includes, directly or not."""
    folders = [pathlib.Path(flag[2:]) for flag in flags if flag.startswith("-I")]
    seen, left = set(), [ROOT / name]
    while left:
        path = left.pop()
        if path not in seen:
            seen.add(path)
            for include in includes_of(path):
                places = (found(folder, include.decode()) for folder in (path.parent, *folders))
                left.extend(filter(None, [next(filter(None, places), None)]))
    return sorted(seen)


def configs_of(name):
    """The .clang-tidy files that apply to it."""
    return [folder / ".clang-tidy" for folder in (ROOT / name).parents
            if folder.is_relative_to(ROOT) and (folder / ".clang-tidy").is_file()]


def mark_of(name, entry, tools):
    """The file that says it was clean, named by a hash of all that clang-tidy sees but this clone's folder."""
    flags = flags_of(entry)
    mark = hashlib.sha256(tools + " ".join(flags).replace(str(ROOT), ".").encode())
    for path in [*configs_of(name), *sources_of(name, flags)]:
        mark.update(b"\0" + path.read_bytes())
    return CACHE / mark.hexdigest()


def groups_of(names, commands):
    """Files that one translation unit can hold, as a rule: of one folder and one target, with the same flags."""
    kinds = {}
    for name in names:
        words = shlex.split(commands[name]["command"])
        target = words[words.index("-o") + 1].partition(".dir/")[0]
        kinds.setdefault((os.path.dirname(name), target, *flags_of(commands[name])), []).append(name)
    return [alike[first:first + GROUP_SIZE] for alike in kinds.values() for first in range(0, len(alike), GROUP_SIZE)]


def alone(name, entry):
    """What the build's compiler says of the file by itself; nothing: it compiles."""
    words = shlex.split(entry["command"])
    del words[words.index("-o"):words.index("-o") + 2]
    done = subprocess.run([*words, "-fsyntax-only"], cwd=entry["directory"], capture_output=True, text=True)
    return "" if done.returncode == 0 else f"######## {name}, compiled by itself\n{done.stderr}"


def look_at_group(names, entry, folder):
    """What clang-tidy says of the files as one, and which of them, perhaps all, cannot stand with the others."""
    unit = folder / f"{os.path.splitext(names[0])[0]}_and_{len(names) - 1}.cpp"
    unit.parent.mkdir(parents=True, exist_ok=True)
    for config in configs_of(names[0]):
        copy = folder / config.relative_to(ROOT)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(config, copy)
    unit.write_text("".join(f'#include "{ROOT / name}"\n' for name in names))
    done = subprocess.run(["clang-tidy", "--quiet", "--checks=-bugprone-suspicious-include", str(unit), "--",
                           *flags_of(entry), "-w"], cwd=entry["directory"], capture_output=True, text=True)
    if done.returncode == 0:
        return "", set()
    if ": error: " in done.stdout and "[clang-diagnostic-" not in done.stdout:
        return done.stdout, set()
    places = re.findall(r"^(/[^:]+):\d+:\d+: error: .*\[clang-diagnostic-", done.stdout, re.MULTILINE)
    return "", {name for name in names if str(ROOT / name) in places} or set(names)


def look_at_changed(names, commands, build, deadline):
    """The same of what changed: the compiler has to take each of a group by itself, too."""
    said = look_at(names, commands, build, deadline)
    for name in names if len(names) > 1 else []:
        if said[name] == "clean":
            said[name] = "late" if time.monotonic() > deadline else alone(name, commands[name]) or "clean"
    return said


def look_at(names, commands, build, deadline):
    """Of each name "clean", "late", or what clang-tidy says."""
    if time.monotonic() > deadline:
        return {name: "late" for name in names}
    text, clash = look_at_group(names, commands[names[0]], build / "tidy") if len(names) > 1 else ("", set(names))
    if clash and clash != set(names):
        parts = [name for name in names if name not in clash], [name for name in names if name in clash]
        return look_at(parts[0], commands, build, deadline) | look_at(parts[1], commands, build, deadline)
    if not clash:
        places = set(re.findall(r"^(/[^:]+):\d+:\d+: error: ", text, re.MULTILINE))
        elsewhere = places - {str(ROOT / name) for name in names}
        bad = [name for name in names if elsewhere or str(ROOT / name) in places]
        said = {name: "clean" if name not in bad else "########" for name in names}
        return said | ({bad[0]: f"######## {' '.join(bad)}\n{text}"} if bad else {})
    said = {}
    for name in names:
        if time.monotonic() > deadline:
            said[name] = "late"
            continue
        done = subprocess.run(["clang-tidy", "-p", str(build), "--quiet", name], cwd=ROOT, capture_output=True, text=True)
        said[name] = "clean" if done.returncode == 0 else f"######## {name}\n{done.stdout}"
    return said


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", type=pathlib.Path, required=True, help="folder with compile_commands.json")
    parser.add_argument("--within", type=float, metavar="MINUTES", help="look at no further file after so long")
    parser.add_argument("--changed", action="store_true", help="only at files that differ from the main branch, or from before its "
                        "last commit")
    parser.add_argument("files", nargs="*", help="default: every source file that is built")
    options = parser.parse_args()
    start = time.monotonic()
    deadline = start + options.within * 60 if options.within else float("inf")

    build = options.build.resolve()
    commands = compile_commands(build)
    wanted = [os.path.relpath(name, ROOT) for name in options.files] or sorted(commands)
    if options.changed:
        wanted = [name for name in wanted if name in changed_files()]
    unknown = [name for name in wanted if name not in commands]
    if unknown:
        sys.exit(f"tidy: not compiled in {options.build}: {' '.join(unknown)}")

    CACHE.mkdir(parents=True, exist_ok=True)
    for mark in CACHE.iterdir():
        if time.time() - mark.stat().st_mtime > FORGET_AFTER_SECONDS:
            mark.unlink(missing_ok=True)
    tools = "\n".join([output_of("clang-tidy", "--version"), output_of("dpkg-query", "-W", "*-dev")]).encode()
    marks = {name: mark_of(name, commands[name], tools) for name in wanted}
    remembered = [name for name in wanted if marks[name].exists()]
    for name in remembered:
        marks[name].touch()

    changed = set(wanted) if options.changed else changed_files()
    left = [name for name in wanted if not marks[name].exists()]
    rest = groups_of([name for name in left if name not in changed], commands)
    random.shuffle(rest)  # what one run leaves out, another sees
    first = groups_of([name for name in left if name in changed], commands)

    said = {}
    with concurrent.futures.ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        jobs = [pool.submit(look_at_changed, group, commands, build, deadline) for group in first] + \
            [pool.submit(look_at, group, commands, build, deadline) for group in rest]
        for job in concurrent.futures.as_completed(jobs):
            for name, word in job.result().items():
                said[name] = word
                if word == "clean":
                    marks[name].touch()
                elif "\n" in word:
                    print(word, flush=True)
    count = {word: sum(value == word for value in said.values()) for word in ("clean", "late")}
    bad = sorted(name for name, value in said.items() if value.startswith("########"))
    print(f"tidy: {count['clean']} files clean, {len(remembered)} unchanged since they were, {len(bad)} not clean, "
          f"{count['late']} left out for want of time; {time.monotonic() - start:.0f} s")
    for name in sorted(name for name, value in said.items() if value == "late" and name in changed):
        print(f"tidy: left out although it changed: {name}")
    for name in bad:
        print(f"tidy: not clean: {name}")
    sys.exit(1 if bad else 0)


main()
