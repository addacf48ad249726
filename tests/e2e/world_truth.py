#!/usr/bin/env python3
"""Holds worlds against the server's own demo of the same game, which sees everything. The demo is read by the reader of
tests/demos, which shares nothing with twscope.

usage: world_truth.py DEMO RECORDS      RECORDS: of --view both --items all --raw
"""

import importlib.machinery
import importlib.util
import json
import pathlib
import struct
import sys

HERE = pathlib.Path(__file__).resolve().parent
LEAST_TICKS = 50
# What the issue of a world is: where everything is, and how. Numbers of 0.6, names of UUID types.
COMPARED = {"projectile", "laser", "pickup", "flag", "character", "ddnet_projectile", "ddrace_projectile", "ddnet_laser",
            "ddnet_pickup"}
OWN = {"character": (16, 17, 18)}  # health, armor, ammo_count: only its player is told


def load_reader():
    loader = importlib.machinery.SourceFileLoader("demos", str(HERE.parent / "demos"))
    spec = importlib.util.spec_from_loader("demos", loader)
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


def uuid_of(data):
    text = struct.pack(">4i", *data[:4]).hex()
    return "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))


def truth_of(path):
    """The items of each tick: {(type number or UUID, id): data}."""
    reader = load_reader()
    ticks = {}
    uuids = {}  # by number; the first snapshot with a type often lacks the item that describes it

    class Watching(reader.Demo):
        def show(self):
            super().show()
            uuids.update({key & 0xFFFF: uuid_of(data) for key, data in self.items.items() if key >> 16 == 0})
            ticks[self.tick] = {key: data for key, data in self.items.items() if key >> 16 != 0}

    Watching(path.read_bytes())
    return {tick: {(uuids.get(key >> 16, key >> 16), key & 0xFFFF): data for key, data in items.items()}
            for tick, items in ticks.items()}


def name_of(item):
    return (item.get("uuid", item["type_id"]), item["id"])


def same(item, data):
    unknown = OWN[item["type"]] if item["type"] in OWN and "health" not in item["fields"] else ()
    return len(item["data"]) == len(data) and all(
        mine == theirs for i, (mine, theirs) in enumerate(zip(item["data"], data)) if i not in unknown)


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    truth = truth_of(pathlib.Path(sys.argv[1]))
    complaints = []
    seen = {}  # by tick, what any session was shown
    worlds = {}
    for line in open(sys.argv[2], encoding="utf-8"):
        record = json.loads(line)
        if record["type"] == "snapshot" and record["ok"]:
            seen.setdefault(record["tick"], set()).update(
                name_of(item) for item in record["items"] if item["type"] in COMPARED)
        elif record["type"] == "world":
            worlds[record["tick"]] = record
        elif record["type"] == "finding" and record["id"].startswith("world."):
            complaints.append(f"finding: {line.strip()}")
    both = sorted(truth.keys() & worlds.keys())
    counts = {}
    for tick in both:
        items = {name_of(item): item for item in worlds[tick]["items"] if item["type"] in COMPARED}
        for missing in seen.get(tick, set()) - items.keys():
            complaints.append(f"tick {tick}: {missing} was seen and is not in the world")
        for name, item in items.items():
            data = truth[tick].get(name)
            counts[item["type"]] = counts.get(item["type"], 0) + 1
            if data is None:
                complaints.append(f"tick {tick}: {item['type']} {name[1]} is not in the game")
            elif not same(item, data):
                complaints.append(f"tick {tick}: {item['type']} {name[1]} is {item['data']}, in the game {data}")
        extra = {name_of(item) for item in worlds[tick]["items"] if item["type"] != "descriptor"} - truth[tick].keys()
        complaints += [f"tick {tick}: {name} is in the world, and not in the game" for name in extra - items.keys()]
    if len(both) < LEAST_TICKS or "character" not in counts:
        complaints.append(f"only {len(both)} ticks in both, with {counts}")
    print(f"{len(both)} ticks, {counts}, {len(complaints)} complaints")
    print(*complaints[:20], sep="\n")
    return 1 if complaints else 0


sys.exit(main())
