#!/usr/bin/env python3
"""What viewers of the live page cost, with 64 clients playing: CPU, memory and the relay's round trip with nobody, one, twenty and one
that reads nothing. The round trip holds the load generator's rounds of 200 us; what viewers add to it is what counts.

Captured sessions of 64 players at the speed they were played (session_load of the preset `bench`). A viewer asks for what the page
asks for: every snapshot of one session (--watch all: the world of all), the log by its usual filter, where the bytes go.
"""

import argparse
import base64
import json
import os
import pathlib
import re
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).parent / "relay"))
from relay_bench import family_of  # noqa: E402  (its folder is known only now)
from sessions_bench import CAPTURES, MIB, Proxy, rss  # noqa: E402

LOG = "finding or session or map or impairment or (message and vital)"


def cpu_seconds(pid):
    """Returns the CPU seconds of a process and its children."""
    ticks = 0
    for each in family_of(pid):
        with open(f"/proc/{each}/stat", encoding="utf-8") as stat:
            fields = stat.read().rpartition(")")[2].split()
        ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


class Trips:
    """Measures round trips of small datagrams through the proxy in a separate process, until their results are requested."""

    SCRIPT = """
import socket, sys, time
line = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
line.connect(("127.0.0.1", int(sys.argv[1])))
line.settimeout(0.5)
trips, lost, end = [], 0, time.monotonic() + float(sys.argv[2])
while time.monotonic() < end:
    begin = time.perf_counter()
    line.send(b"\\xff" * 32)
    try:
        line.recv(2048)
        trips.append(time.perf_counter() - begin)
    except TimeoutError:
        lost += 1
    time.sleep(0.005)
trips.sort()
print(*(1e6 * trips[int(len(trips) * share)] for share in (0.5, 0.95)), lost)
"""

    def __init__(self, port, seconds):
        self.process = subprocess.Popen([sys.executable, "-c", self.SCRIPT, str(port), str(seconds)], stdout=subprocess.PIPE, text=True)

    def result(self):
        median, most, lost = self.process.communicate()[0].split()
        return float(median), float(most), int(lost)


class Viewer:
    """A WebSocket that reads everything it receives, or nothing."""

    def __init__(self, port, watch, reads=True):
        self.bytes = 0
        self.socket = socket.create_connection(("127.0.0.1", port))
        key = base64.b64encode(os.urandom(16)).decode()
        self.socket.sendall((f"GET /api/live HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                             f"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: {key}\r\n\r\n").encode())
        answer = self.socket.recv(4096)
        if b" 101 " not in answer:
            sys.exit(f"viewers: {answer!r}")
        text = json.dumps({"watch": watch, "pace": 50, "log": LOG, "bytes": True}).encode()
        mask = os.urandom(4)
        length = struct.pack("!BBH", 0x81, 0xfe, len(text)) if len(text) > 125 else struct.pack("!BB", 0x81, 0x80 | len(text))
        self.socket.sendall(length + mask + bytes(byte ^ mask[i % 4] for i, byte in enumerate(text)))
        if reads:
            threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        try:
            while chunk := self.socket.recv(1 << 18):
                self.bytes += len(chunk)
        except OSError:
            pass  # closed, because the measurement is over


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", required=True, help="folder of session_load")
    parser.add_argument("--twscope", required=True)
    parser.add_argument("--seconds", type=float, default=20, help="of each row (default 20)")
    parser.add_argument("--watch", default="1", help="a session, or all (default 1)")
    options = parser.parse_args()
    watch = "all" if options.watch == "all" else int(options.watch)
    with tempfile.TemporaryDirectory() as folder:
        proxy = Proxy(options.twscope, "-o", f"{folder}/records.jsonl", "--items", "none", "--no-messages", "--http", "0",
                      "--state", folder, "--log-level", "info")
        while "live page on port" not in proxy.said:  # printed by the observer process, at any time
            proxy.said += proxy.process.stderr.readline()
        port = int(re.search(r"live page on port (\d+)", proxy.said).group(1))
        load = proxy.load(f"{options.bin}/session_load", capture=CAPTURES[64], sessions=64, seconds=options.seconds * 5 + 30)
        time.sleep(10)
        viewers = []
        for name, more in (("nobody", []), ("one viewer", [True]), ("twenty", [True] * 19), ("and one that reads nothing", [False]),
                           ("nobody again", None)):
            if more is None:
                for viewer in viewers:
                    viewer.socket.close()
                viewers = []
            else:
                viewers += [Viewer(port, watch, reads) for reads in more]
            time.sleep(2)
            seen, cpu, begin = sum(viewer.bytes for viewer in viewers), cpu_seconds(proxy.pid), time.monotonic()
            trips = Trips(proxy.listen[0], options.seconds).result()
            wall = time.monotonic() - begin
            share = (cpu_seconds(proxy.pid) - cpu) / wall
            rate = (sum(viewer.bytes for viewer in viewers) - seen) / wall
            print(f"{name:28} {100 * share:6.1f} % of a core  {rss(proxy.pid) / MIB:7.1f} MiB  {rate / 1e3:9.1f} kB/s to viewers"
                  f"  round trip {trips[0]:6.0f} us (95 %: {trips[1]:.0f}), {trips[2]} lost",
                  flush=True)
        load.kill()
        proxy.end()


if __name__ == "__main__":
    main()
