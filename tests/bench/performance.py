#!/usr/bin/env python3
"""Puts the results of a bench run into PERFORMANCE.md: python3 tests/bench/performance.py build/bench/results.json

The table is made from them and from nothing else; what is missed is marked as missed.
"""

import json
import os
import platform
import re
import subprocess
import sys

PAGE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "PERFORMANCE.md")
BEGIN, END = "<!-- made by ./dev bench --write -->\n", "<!-- end of what is made -->\n"


def machine():
    """Describes the machine of the measurements."""
    model = re.search(r"model name\s*:\s*(.*)", open("/proc/cpuinfo", encoding="utf-8").read())
    commit = subprocess.run(["git", "-C", os.path.dirname(PAGE), "rev-parse", "--short", "HEAD"], capture_output=True, text=True,
                            check=False).stdout.strip()
    return (f"{os.cpu_count()} x {model.group(1) if model else platform.machine()}, Linux {platform.release()}, load "
            f"{os.getloadavg()[0]:.1f} at the end{f', commit {commit}' if commit else ''}")


def is_missed(row):
    """Whether a row misses its bar. If the ratio follows from another one, the less favourable end counts."""
    if row["bar"] is None or row["ratio"] is None:
        return False
    return (row["ddnet"][0] if row.get("bar_is_ddnet") else row["ratio"]) < row["bar"]


def number(value):
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def table(rows):
    yield "| what | ours (range) | peer | ratio | beside DDNet's | bar | |\n|---|---|---|---|---|---|---|\n"
    for row in rows:
        ours = number(row["ours"])
        if row.get("range") and row["range"][0] != row["range"][1]:
            ours += f" ({number(row['range'][0])} to {number(row['range'][1])})"
        ddnet = "{:.2f} to {:.2f}".format(*row["ddnet"]) if row.get("ddnet") else "–"
        cells = [row["what"], f"{ours} {row['unit']}", number(row["peer"]) if row["peer"] is not None else "–",
                 f"{row['ratio']:.2f}" if row["ratio"] is not None else "–", ddnet,
                 f"{row['bar']:.2f}" if row["bar"] is not None else "–", "**missed**" if is_missed(row) else ""]
        yield "| " + " | ".join(cells) + " |\n"


def made(results):
    missed = sum(map(is_missed, results["rows"]))
    held = sum(row["bar"] is not None for row in results["rows"]) - missed
    return (f"{'A quick run' if results['quick'] else 'A whole run'} on {results['machine']}; crc32 of zlib "
            f"{results['yardstick_gb_per_s']:.2f} GB/s (2.6 where the bars were set). {held} bars held, {missed} missed.\n\n"
            + "".join(table(results["rows"])))


def write(results, page=PAGE):
    with open(page, encoding="utf-8") as file:
        text = file.read()
    before, rest = text.split(BEGIN)
    with open(page, "w", encoding="utf-8") as file:
        file.write(before + BEGIN + made(results) + END + rest.split(END)[1])


if __name__ == "__main__":
    with open(sys.argv[1], encoding="utf-8") as given:
        write(json.load(given))
