#!/usr/bin/env python3
"""Which source files can stand in one translation unit: those in which no name stands twice.

    one_unit.py LIST        of lines "TARGET SOURCE", prints "TARGET SOURCE GROUP" (see tests/support/unity.cmake)

Names are found line by line, not by a compiler: what starts in the first column is taken as declared outside of functions
and classes. What this misses the compiler complains about, and a better name mends.
"""
import functools
import pathlib
import re
import sys

DECLARED = re.compile(r"(?:struct|class|enum class|enum) (\w+)|using (\w+) =|[^(={\[;]*?(?<![\w:])(\w+)(?=[\[({;]| =| \{)")
NOT_DECLARED = re.compile(r"[^A-Za-z\[]|$|TEST_CASE|template|namespace|using [\w:]+;|using namespace")
BROUGHT_IN = re.compile(r"^using [\w:]*::(\w+);", re.MULTILINE)
USES_NAMESPACE = re.compile(r"^using namespace", re.MULTILINE)
TEST_HEADER = re.compile(r'^#include "(tests/[^"]+)"', re.MULTILINE)
ROOT = pathlib.Path(__file__).resolve().parent.parent
ALONE = ("main.cpp", "allocation_count.cpp")


@functools.cache
def names_brought_into(path):
    """Names by a using of their own, and those of headers of tests where whole namespaces are used."""
    text = path.read_text()
    names = set(BROUGHT_IN.findall(text))
    if USES_NAMESPACE.search(text):
        for header in TEST_HEADER.findall(text):
            if (ROOT / header).is_file():
                names |= names_in(ROOT / header)
    return frozenset(names)


@functools.cache
def names_in(path):
    """What the file may declare outside of functions and classes."""
    lines = path.read_text().splitlines()
    found = [DECLARED.match(line) for line in lines if not NOT_DECLARED.match(line)]
    return frozenset(match[match.lastindex] for match in found if match)


def groups_of(names, size, root=pathlib.Path()):
    """Lists of at most `size` of the names."""
    groups = []
    for name in names:
        path = root / name
        alone = path.name in ALONE or "int main(" in path.read_text()
        for group in groups:
            if not alone and not group["alone"] and len(group["names"]) < size \
                    and not group["declared"] & (names_in(path) | names_brought_into(path)) \
                    and not group["brought"] & names_in(path):
                group["names"].append(name)
                group["declared"] |= names_in(path)
                group["brought"] |= names_brought_into(path)
                break
        else:
            groups.append({"alone": alone, "names": [name], "declared": set(names_in(path)),
                           "brought": set(names_brought_into(path))})
    return [group["names"] for group in groups]


def main():
    size = 16
    targets = {}
    for line in pathlib.Path(sys.argv[1]).read_text().splitlines():
        target, source = line.split(" ", 1)
        targets.setdefault(target, []).append(source)
    for target, sources in targets.items():
        for number, group in enumerate(groups_of(sources, size)):
            for source in group if len(group) > 1 else []:
                print(f"{target} {source} {number}")


if __name__ == "__main__":
    main()
