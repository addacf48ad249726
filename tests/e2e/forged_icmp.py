#!/usr/bin/env python3
"""Forged ICMP: somebody who knows all addresses and ports says, thousands of times a second, that the server or a client is gone,
cannot be reached, or takes only short datagrams. Whatever is sent passes all the same.

    forged_icmp.py TWSCOPE        in a network of its own, as root there
"""

import os
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time

DATAGRAMS = 300
LEAST = 297
LONG = 1300
SHORT = 60
PAUSE = 0.003
START = 10.0
LOOPBACK = "127.0.0.1"
UNREACHABLE = 3
# Code and MTU: port, host, administratively, fragmentation needed.
CODES = ((3, 0), (1, 0), (13, 0), (4, 68))


def udp_socket(timeout=START):
    made = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    made.bind((LOOPBACK, 0))
    made.settimeout(timeout)
    return made


def echo(server):
    while True:
        try:
            server.sendto(*server.recvfrom(2000))
        except TimeoutError:
            pass


def checksum(data):
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    total = (total >> 16) + (total & 0xFFFF)
    return ~(total + (total >> 16)) & 0xFFFF


def unreachable(code, mtu, source, target):
    """What a router says of a datagram from one socket to another."""
    header = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 36, 0, 0x4000, 64, socket.IPPROTO_UDP, 0,
                         socket.inet_aton(source[0]), socket.inet_aton(target[0]))
    quoted = header + struct.pack("!HHHH", source[1], target[1], 16, 0)
    plain = struct.pack("!BBHHH", UNREACHABLE, code, 0, 0, mtu) + quoted
    return struct.pack("!BBHHH", UNREACHABLE, code, checksum(plain), 0, mtu) + quoted


def connected_to(port):
    """The relay's socket that leads there, as the kernel lists it."""
    with open("/proc/net/udp") as table:
        for line in table:
            fields = line.split()
            if fields[2].endswith(f":{port:04X}"):
                address, own = fields[1].split(":")
                return socket.inet_ntoa(struct.pack("<I", int(address, 16))), int(own, 16)
    raise RuntimeError("no socket leads to the server")


def main():
    server = udp_socket()
    threading.Thread(target=echo, args=(server,), daemon=True).start()
    listen = udp_socket()
    port = listen.getsockname()[1]
    listen.close()
    with tempfile.TemporaryDirectory() as folder:
        proxy = subprocess.Popen([sys.argv[-1], "proxy", "-s", f"{LOOPBACK}:{server.getsockname()[1]}", "-l", f"{LOOPBACK}:{port}",
                                  "--no-admission", "--state", folder, "-o", os.path.join(folder, "records.jsonl")],
                                 stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        client = udp_socket(0.2)
        deadline = time.monotonic() + START
        answered = False
        while not answered and time.monotonic() < deadline:
            client.sendto(b"hello", (LOOPBACK, port))
            try:
                answered = bool(client.recv(100))
            except TimeoutError:
                pass
        upstream = connected_to(server.getsockname()[1])
        raw = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP)
        forged = [0]
        over = threading.Event()

        def forge():
            while not over.is_set():
                for code, mtu in CODES:
                    raw.sendto(unreachable(code, mtu, upstream, server.getsockname()), (upstream[0], 0))
                    raw.sendto(unreachable(code, mtu, (LOOPBACK, port), client.getsockname()), (LOOPBACK, 0))
                    forged[0] += 2
                time.sleep(0.001)

        threading.Thread(target=forge, daemon=True).start()
        passed = 0
        for i in range(DATAGRAMS):
            datagram = struct.pack("!I", i) * ((LONG if i % 3 == 0 else SHORT) // 4)
            client.sendto(datagram, (LOOPBACK, port))
            try:
                while (got := client.recv(2000)) != datagram:
                    assert got[:4] < datagram[:4]
                passed += 1
            except TimeoutError:
                pass
            time.sleep(PAUSE)
        over.set()
        proxy.terminate()
        status = proxy.wait(START)
    print(f"{passed} of {DATAGRAMS} datagrams went there and back, with {forged[0]} forged messages")
    return 0 if passed >= LEAST and status == 0 else 1


sys.exit(main())
