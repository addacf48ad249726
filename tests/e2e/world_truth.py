#!/usr/bin/env python3
"""Holds worlds against the server's own demo of the same game, which sees everything. The demo is read by the reader of
tests/demos, which shares nothing with twscope.

usage: world_truth.py DEMO RECORDS      RECORDS: of --view both --items all,raw
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
# Ints that may not be told: of who only others see, and of who only clients of 0.7 see.
UNTOLD = {"character": {"player_flags": 15, "health": 16, "armor": 17, "ammo_count": 18}}
# Ints that a server makes anew for clients of 0.7: an angle within a turn, no hook_tick below 0.
REMADE = {"character": (5, 10)}
# Objects that are one thing for the server, told in the form that a client understands.
FORMS = {"projectile": "projectile", "ddrace_projectile": "projectile", "ddnet_projectile": "projectile", "laser": "laser",
         "ddnet_laser": "laser", "pickup": "pickup", "ddnet_pickup": "pickup"}
SPEC = json.loads((HERE.parent / "data/spec/gamenet-0.6-ddnet.json").read_text(encoding="utf-8"))
FORM_OF = {each.get("uuid", each.get("type")): FORMS[each["name"]] for each in SPEC["snapshot_objects"] if each["name"] in FORMS}
SIX = {"projectile": 2, "laser": 3, "pickup": 4, "flag": 5, "character": 9}
OF_SEVEN_ALONE = {23, 24}  # the race of a player and of the map: a demo of 0.6 has no such items


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
    """A world has the numbers of 0.6; a session's snapshot those of its client."""
    return (item.get("uuid", SIX.get(item["type"], item["type_id"])), item["id"])


def form_of(item):
    return (FORMS.get(item["type"], item["type"]), item["id"])


def same(item, data, seven):
    unknown = {at for field, at in UNTOLD.get(item["type"], {}).items() if field not in item["fields"]}
    if seven.issuperset(item["seen_by"]):
        unknown |= set(REMADE.get(item["type"], ()))
    return len(item["data"]) == len(data) and all(
        mine == theirs for i, (mine, theirs) in enumerate(zip(item["data"], data)) if i not in unknown)


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    truth = truth_of(pathlib.Path(sys.argv[1]))
    complaints = []
    seen = {}  # by tick, what any session was shown
    worlds = {}
    seven = set()  # sessions of 0.7
    for line in open(sys.argv[2], encoding="utf-8"):
        record = json.loads(line)
        if record["type"] == "session" and record.get("protocol", "").startswith("0.7"):
            seven.add(record["session"])
        elif record["type"] == "snapshot" and record["ok"]:
            seen.setdefault(record["tick"], set()).update(
                form_of(item) for item in record["items"] if item["type"] in COMPARED)
        elif record["type"] == "world":
            worlds[record["tick"]] = record
        elif record["type"] == "finding" and record["id"].startswith("world."):
            complaints.append(f"finding: {line.strip()}")
    both = sorted(truth.keys() & worlds.keys())
    counts = {}
    older = 0
    by_seven = 0  # that only clients of 0.7 were shown
    for tick in both:
        items = {name_of(item): item for item in worlds[tick]["items"] if item["type"] in COMPARED}
        for missing in seen.get(tick, set()) - {form_of(item) for item in items.values()}:
            complaints.append(f"tick {tick}: {missing} was seen and is not in the world")
        forms = {(FORM_OF.get(kind), number) for kind, number in truth[tick]}
        for name, item in items.items():
            if name not in truth[tick] and item["type"] in FORMS and form_of(item) in forms:
                older += 1  # the server's demo has it in a form that these clients do not know
                continue
            data = truth[tick].get(name)
            counts[item["type"]] = counts.get(item["type"], 0) + 1
            by_seven += seven.issuperset(item["seen_by"])
            if data is None:
                complaints.append(f"tick {tick}: {item['type']} {name[1]} is not in the game")
            elif not same(item, data, seven):
                complaints.append(f"tick {tick}: {item['type']} {name[1]} is {item['data']}, in the game {data}")
        extra = {name_of(item) for item in worlds[tick]["items"]
                 if item["type"] != "descriptor" and item["type_id"] not in OF_SEVEN_ALONE} - truth[tick].keys()
        complaints += [f"tick {tick}: {name} is in the world, and not in the game" for name in extra - items.keys()]
    if len(both) < LEAST_TICKS or "character" not in counts:
        complaints.append(f"only {len(both)} ticks in both, with {counts}")
    print(f"{len(both)} ticks, {counts}, {by_seven} by 0.7 alone, {older} in an older form, {len(complaints)} complaints")
    print(*complaints[:20], sep="\n")
    return 1 if complaints else 0


sys.exit(main())
