#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""simulators.py EXAMPLE: the node-type socket between simulators of RTDS (format gtnet) and OPAL-RT
(format opal.asyncip), whose packets this program makes and reads: over UDP with
examples/simulators.conf, and over TCP as a GTNET card calls.

simulators.py play: plays both simulators for the example, until it is ended.

Environment: BUSBAR, the program.
"""
import os
import socket
import struct
import subprocess
import sys
import tempfile
import time

# Sequence number, seconds, nanoseconds, and the points.
GTNET = struct.Struct(">3I2fi")
# Device, message, bytes of data, and the data.
ASYNCIP = struct.Struct("<hih3d")
POINTS = (89.75, -4.25, 1)


def udp(port):
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.bind(("127.0.0.1", port))
    s.settimeout(0.2)
    return s


def play():
    rtds, opal = udp(12001), udp(12101)
    rtds.setblocking(False)
    opal.setblocking(False)
    sequence = 0
    while True:
        now = time.time_ns()
        rtds.sendto(GTNET.pack(sequence, now // 10 ** 9, now % 10 ** 9, *POINTS), ("127.0.0.1", 12000))
        sequence += 1
        for s in (rtds, opal):
            try:
                got = s.recv(2000)
            except (BlockingIOError, ConnectionRefusedError):
                continue
            if s is opal:
                s.sendto(got, ("127.0.0.1", 12100))
        time.sleep(0.01)


def enter_network():
    """Goes on in a network namespace of its own, where all ports are free."""
    if os.environ.get("IN_NETWORK"):
        subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
        return
    how = ["unshare", "-n"] if os.geteuid() == 0 else ["unshare", "-rn"]
    if subprocess.run(how + ["true"], capture_output=True).returncode:
        print("skipped: no right to make a network namespace")
        sys.exit(77)
    os.environ["IN_NETWORK"] = "1"
    os.execvp(how[0], how + [sys.executable] + sys.argv)


def same(got, wanted, what):
    if got != wanted:
        raise AssertionError("%s: %s, and not %s" % (what, got, wanted))


def exchange(sender, packet, to, receiver):
    """Sends until the gateway is there and passes it on."""
    for _ in range(200):
        try:
            sender.sendto(packet, to)
            return receiver.recv(2000)
        except (TimeoutError, ConnectionRefusedError):
            pass
    raise AssertionError("nothing comes through the gateway")


class Running:
    def __init__(self, config):
        self.process = subprocess.Popen([os.environ["BUSBAR"], "run", "-q", "--summary=none", config])

    def __enter__(self):
        return self

    def __exit__(self, kind, value, trace):
        self.process.terminate()
        status = self.process.wait(30)
        if not kind:
            same(status, 0, "the status of the gateway")


def over_udp(example):
    rtds, opal = udp(12001), udp(12101)
    with Running(example):
        got = exchange(rtds, GTNET.pack(7, 1000, 500, *POINTS), ("127.0.0.1", 12000), opal)
        same(ASYNCIP.unpack(got), (1, 7, 24, *POINTS), "what the OPAL-RT simulator gets")
        got = exchange(opal, ASYNCIP.pack(1, 9, 24, 1.5, 2.5, -3), ("127.0.0.1", 12100), rtds)
        sequence, seconds, _, *points = GTNET.unpack(got)
        same((sequence, points), (9, [1.5, 2.5, -3]), "what the RTDS simulator gets")
        # The packet has no time: that of its arrival is sent.
        same(abs(seconds - time.time()) < 100, True, "its time is now")


def over_tcp():
    """Packets one behind the other, without a length in front of them; and in pieces."""
    bare = struct.Struct(">2fi")
    with tempfile.TemporaryDirectory() as folder:
        config = os.path.join(folder, "tcp.conf")
        with open(config, "w") as f:
            f.write("""
stats = 0.0;
nodes = { rtds = { type = "socket"; layer = "tcp-server"; framing = "none"; format = "gtnet";
	in = { address = "127.0.0.1:12000"; signals = ( { name = "u"; type = "float"; },
		{ name = "i"; type = "float"; }, { name = "b"; type = "integer"; } ); };
	out = { }; }; };
paths = ( { in = "rtds"; out = "rtds"; } );
""")
        with Running(config):
            for _ in range(400):
                try:
                    card = socket.create_connection(("127.0.0.1", 12000), 20)
                    break
                except ConnectionRefusedError:
                    time.sleep(0.05)
            packets = b"".join(bare.pack(*POINTS[:2], i) for i in range(100))
            for at in range(0, len(packets), 7):
                card.sendall(packets[at:at + 7])
            got = b""
            while len(got) < len(packets):
                piece = card.recv(2000)
                same(bool(piece), True, "the gateway goes on")
                got += piece
            same(got, packets, "what comes back")
            card.close()


def main():
    if sys.argv[1:] == ["play"]:
        play()
    enter_network()
    over_udp(sys.argv[1])
    over_tcp()


main()
