#!/usr/bin/env python3
"""Lets one call after the other fail, in the process that forwards and in the one that looks, through start, play and
stop of a short game (tests/support/faults.cpp does it).

    faults.py LIBRARY TWSCOPE            as long as TW_FAULT_SECONDS says (20), spread evenly over all there is
    faults.py LIBRARY TWSCOPE relay:send:3 ...     just these

Held each time: the process that forwards never ends by a signal and never hangs; a start that fails says why and has an
exit code for it; and of a game that plays no datagram is lost but those the failed call held.
"""

import mmap
import os
import re
import select
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time

KINDS = ["malloc", "write", "send", "recv", "bind", "open", "mmap", "socket", "epoll", "dup", "spawn", "thread"]
PROCESSES = ["relay", "observer"]
TOKEN = b"\x11\x22\x33\x44"
MAGIC = b"TKEN"
CONNECT = bytes.fromhex("10000001") + MAGIC + b"\xff\xff\xff\xff"
CONNECT_ACCEPT = bytes.fromhex("10000002") + MAGIC + TOKEN
ACCEPT = bytes.fromhex("10000003") + TOKEN
START_SECONDS = 35  # an observer that hangs at its start is given up after 30
STOP_SECONDS = 10
LOST_SECONDS = 1.0  # a datagram that is not there by then is lost: forwarding takes a millisecond
REPEATS = 5  # a client that is not answered repeats itself
ROUNDS = 6
DENSE = 4  # so many of each kind first, then spread over the rest

# What a failed start may end with, and a run that something happened to: README of the exit codes is docs/settings.md.
START_CODES = {2, 3, 4}
END_CODES = {0, 3}
# So many datagrams a failed call may hold, each way: those of one batch. The game here has one at a time.
HELD = {("relay", "send"): 1, ("relay", "recv"): 1, ("relay", "malloc"): 1}


def free_port():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Server:
    """Answers a CONNECT with a token, and everything else with itself."""

    def __init__(self):
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind(("127.0.0.1", 0))
        self.port = self.socket.getsockname()[1]

    def answer(self, seconds):
        """Waits for one datagram; whether one came."""
        if not select.select([self.socket], [], [], seconds)[0]:
            return False
        datagram, sender = self.socket.recvfrom(2048)
        self.socket.sendto(CONNECT_ACCEPT if datagram == CONNECT else datagram, sender)
        return True


class Client:
    def __init__(self, port):
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.connect(("127.0.0.1", port))

    def send(self, datagram):
        try:
            self.socket.send(datagram)
        except ConnectionRefusedError:
            pass  # of the datagram before

    def hears(self, seconds):
        if not select.select([self.socket], [], [], seconds)[0]:
            return False
        try:
            self.socket.recv(2048)
        except ConnectionRefusedError:
            return False
        return True


class Complaint(Exception):
    pass


class Counts:
    """What the library counts: calls of each kind, and whether the one failed."""

    def __init__(self, folder):
        self.path = os.path.join(folder, "counts")
        with open(self.path, "wb") as file:
            file.write(bytes(4096))
        with open(self.path, "r+b") as file:
            self.memory = mmap.mmap(file.fileno(), 4096)

    def read(self):
        return dict(zip(KINDS + ["failed"], struct.unpack_from(f"{len(KINDS) + 1}Q", self.memory)))


class Run:
    """One short game with one fault in it."""

    def __init__(self, library, twscope, fault):
        self.fault = fault
        self.lost = 0
        self.played = False
        self.folder = tempfile.TemporaryDirectory(prefix="twscope-faults-")
        self.counts = Counts(self.folder.name)
        self.server = Server()
        self.port = free_port()
        self.errors = open(os.path.join(self.folder.name, "err"), "w+b")
        environment = {**os.environ, "LD_PRELOAD": library, "TW_FAULT": fault, "TW_FAULT_COUNTS": self.counts.path}
        self.process = subprocess.Popen(
            [twscope, "proxy", "-s", f"127.0.0.1:{self.server.port}", "-l", f"127.0.0.1:{self.port}", "--http", "127.0.0.1:0",
             "-o", os.path.join(self.folder.name, "records.jsonl"), "--state", os.path.join(self.folder.name, "state"),
             "--max-sessions", "16"],
            env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=self.errors)

    def said(self):
        with open(self.errors.name, encoding="utf-8", errors="replace") as file:
            return file.read()

    def check(self, condition, what):
        if not condition:
            raise Complaint(f"{what}\n{self.said()}")

    def wait(self, seconds, done):
        end = time.monotonic() + seconds
        while not done():
            if time.monotonic() > end:
                return False
            time.sleep(0.005)
        return True

    def start(self):
        """Whether it plays; where it does not, whether it said why."""
        begun = re.compile("live page on|listening on")  # either line may be the one that could not be written
        started = self.wait(START_SECONDS, lambda: begun.search(self.said()) or self.process.poll() is not None)
        self.check(started, f"did not start within {START_SECONDS} s")
        return self.process.poll() is None or self.failed_start()

    def failed_start(self):
        """It ended by itself before it played: that is in order when it said why. Returns False: it does not play."""
        code = self.process.returncode
        if code < 0 and self.fault.startswith("relay:malloc:"):
            # Nobody plays yet. Libraries end a process that has no memory at its start: libcrypto by a lock that it did not get.
            return False
        self.check(code >= 0, f"ended by signal {-code} at its start")
        self.check(code in START_CODES, f"a start that failed ended with {code}")
        self.check(re.search(r"^twscope: .+|error", self.said(), re.MULTILINE), "a start that failed did not say why")
        return False

    def pass_one(self, client, datagram):
        """To the server and back; what does not come is counted."""
        client.send(datagram)
        if not self.server.answer(LOST_SECONDS):
            self.lost += 1
        elif not client.hears(LOST_SECONDS):
            self.lost += 1

    def join(self):
        client = Client(self.port)
        for _ in range(REPEATS):
            client.send(CONNECT)
            if self.server.answer(LOST_SECONDS) and client.hears(LOST_SECONDS):
                self.pass_one(client, ACCEPT)
                return client
            if self.process.poll() is not None and not self.played:
                self.failed_start()
                return None
        self.check(False, "a client did not get in")

    def play(self):
        """Whether it played: it says that it listens before the last threads are there."""
        clients = []
        for joined in range(2):
            client = self.join()
            if client is None:
                return False
            self.played = True
            clients.append(client)
            for number in range(ROUNDS):
                for client in clients:
                    self.pass_one(client, b"\0\0\0" + bytes([joined, number]) + TOKEN)
                self.check(self.process.poll() is None, f"ended with {self.process.poll()} while it played")
        process, kind, _ = self.fault.split(":")
        self.check(self.lost <= HELD.get((process, kind), 0), f"{self.lost} datagrams were lost")
        return True

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        self.check(self.wait(STOP_SECONDS, lambda: self.process.poll() is not None), "did not end when asked to")
        code = self.process.returncode
        if code < 0 and self.fault.startswith("relay:malloc:"):
            # Nobody plays yet. Libraries end a process that has no memory at its start: libcrypto by a lock that it did not get.
            return False
        self.check(code >= 0, f"ended by signal {-code} at its end")
        self.check(code in END_CODES, f"ended with {code}")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        self.errors.close()
        self.folder.cleanup()


def play_through(library, twscope, fault):
    """How the calls of each kind had been counted after start, play and stop, and whether the fault came."""
    marks = []
    with Run(library, twscope, fault) as run:
        if run.start():
            marks.append(run.counts.read())
            if run.play():
                marks.append(run.counts.read())
                run.stop()
        marks.append(run.counts.read())
    return marks


def spread(first, last):
    """All numbers from first to last, so that however early one stops, those had lie evenly: halves, quarters, …"""
    count = last - first + 1
    bits = max(count - 1, 0).bit_length()
    for i in range(1 << bits):
        number = int(f"{i:0{bits}b}"[::-1], 2) if bits else 0
        if number < count:
            yield first + number


def numbers_of(marks, process, kind):
    """The calls of a kind in the order they are to fail: the first of each phase, then evenly among the others."""
    ends = [mark[kind] for mark in marks]
    begins = [0, *ends[:-1]]
    first = [number for begin, end in zip(begins, ends) for number in range(begin + 1, min(begin + DENSE, end) + 1)]
    rest = [number for number in spread(1, ends[-1]) if number not in set(first)] if ends[-1] else []
    return first + rest


def all_faults(library, twscope):
    """Every call of a run without a fault, one of each kind after the other."""
    queues = []
    for process in PROCESSES:
        marks = play_through(library, twscope, f"{process}:malloc:0")
        for kind in KINDS:
            queue = [f"{process}:{kind}:{number}" for number in numbers_of(marks, process, kind)]
            print(f"faults: {process} calls {kind} {len(queue)} times", file=sys.stderr)
            queues.append(iter(queue))
    while queues:
        for queue in list(queues):
            fault = next(queue, None)
            if fault is None:
                queues.remove(queue)
            else:
                yield fault


def main():
    library, twscope, *asked = sys.argv[1:]
    end = time.monotonic() + float(os.environ.get("TW_FAULT_SECONDS", "20"))
    tried = came = 0
    complaints = []
    for fault in asked or all_faults(library, twscope):
        if not asked and time.monotonic() > end:
            break
        tried += 1
        try:
            came += play_through(library, twscope, fault)[-1]["failed"]
        except Complaint as complaint:
            complaints.append(fault)
            print(f"faults: {fault}: {complaint}", file=sys.stderr)
    print(f"faults: {tried} calls tried, {came} failed, {len(complaints)} complaints", *complaints, sep="\n  ")
    return 1 if complaints or tried == 0 else 0


sys.exit(main())
