#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""iec104.py SCENARIO...: slaves and masters of IEC 60870-5-104 between gateways, and with a peer of
the test, in a network namespace of its own.

Environment: BUSBAR, the program.
"""
import os
import random
import re
import select
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time

import servers
from gateway_process import Gateway, check
from servers import until, whole_lines

PORT = 2404
# Connections of these tests notice a silent peer soon.
TIMERS = "apci_t1 = 2.0; apci_t2 = 0.5; apci_t3 = 1.0; reconnect_interval = 0.1;"


class Relay:
    """Between a master and a slave: passes bytes on in random pieces, cuts, or holds them back."""

    def __init__(self, port, to):
        self.to, self.pairs, self.held = to, [], False
        self.lock = threading.Lock()
        self.listener = socket.create_server(("127.0.0.1", port))
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            near = self.listener.accept()[0]
            try:
                far = socket.create_connection(("127.0.0.1", self.to), 5)
            except OSError:
                near.close()
                continue
            with self.lock:
                self.pairs.append((near, far))
            for a, b in ((near, far), (far, near)):
                threading.Thread(target=self.pump, args=(a, b), daemon=True).start()

    def pump(self, a, b):
        try:
            while True:
                data = a.recv(random.choice((7, 100, 4096)))
                while self.held:
                    time.sleep(0.005)
                if not data:
                    b.shutdown(socket.SHUT_WR)
                    return
                b.sendall(data)
        except OSError:
            pass

    def cut(self):
        with self.lock:
            pairs, self.pairs = self.pairs, []
        for pair in pairs:
            for s in pair:
                s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                try:
                    s.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass
                s.close()
        return len(pairs)


class Peer:
    """A master or slave of the test, byte by byte."""

    def __init__(self, sock):
        self.socket, self.buffer = sock, b""
        self.socket.settimeout(20)
        self.sent = self.got = 0

    def frame(self):
        """The next frame; None: the other end has closed."""
        while len(self.buffer) < 2 or len(self.buffer) < 2 + self.buffer[1]:
            try:
                data = self.socket.recv(4096)
            except ConnectionResetError:
                data = b""
            if not data:
                return None
            self.buffer += data
        size = 2 + self.buffer[1]
        frame, self.buffer = self.buffer[:size], self.buffer[size:]
        return frame

    def control(self, octet):
        self.socket.sendall(bytes((0x68, 4, octet, 0, 0, 0)))

    def start(self):
        self.control(0x07)
        check(self.frame() == bytes((0x68, 4, 0x0b, 0, 0, 0)), "the start is confirmed")

    def send(self, asdu):
        self.socket.sendall(struct.pack("<BBHH", 0x68, 4 + len(asdu), self.sent << 1, self.got << 1) + asdu)
        self.sent += 1

    def asdu(self):
        """The next ASDU; it is acknowledged, and tests are answered meanwhile."""
        while True:
            f = self.frame()
            if f is None:
                return None
            if f[2] & 3 == 3:
                if f[2] == 0x43:
                    self.control(0x83)
            elif not f[2] & 1:
                check(struct.unpack("<H", f[2:4])[0] >> 1 == self.got, "N(S) is the next one")
                self.got += 1
                self.socket.sendall(struct.pack("<BBHH", 0x68, 4, 1, self.got << 1))
                return f[6:]

    def asdus(self, count):
        return [self.asdu() for _ in range(count)]

    def is_closed(self):
        """Whether the other end closes."""
        while True:
            f = self.frame()
            if f is None:
                return True

    def ask(self, kind, address, element, cause=6, station=1, originator=3):
        self.send(head(kind, cause, station, originator) + struct.pack("<I", address)[:3] + element)


def head(kind, cause, station=1, originator=3, count=1):
    return struct.pack("<BBBBH", kind, count, cause, originator, station)


def connect(port=PORT, source=None):
    for _ in range(400):
        try:
            return Peer(socket.create_connection(("127.0.0.1", port), 5, source_address=source))
        except ConnectionRefusedError:
            time.sleep(0.01)
    raise AssertionError("no slave at port %d" % port)


def ends_soon(gateway, statuses=(0,)):
    since = time.monotonic()
    log = gateway.end(statuses)
    took = time.monotonic() - since
    check(took < 2.5, "the gateway ends in time: %.1f s" % took)
    return log


def stats(gateway, node):
    return gateway.ask("/node/" + node)["stats"]


def figures(gateway, node):
    return stats(gateway, node)["figures"]


def rows(file):
    """Sequence number and values of each sample."""
    if not os.path.exists(file):
        return []
    with open(file) as f:
        lines = [line.split(",") for line in whole_lines(f) if line[0] != "#"]
    return [(int(line[3]), [float(v) for v in line[4:]]) for line in lines]


def file_source(file, rate=50.0, signals="2f"):
    """Rows of a file, of which none is left out however late they are."""
    return 'type = "file"; uri = "%s"; format = "csv"; in = { signals = "%s"; rate = %s; eof = "wait"; };' % (
        file, signals, rate)


def give_rows(file, values):
    with open(file, "a") as f:
        for i, row in enumerate(values):
            f.write("%d,0,0.0,%d,%s\n" % (1700000000 + i, i, ",".join(map(repr, row))))


def slave(folder, rate, more="", name="slave", out=None):
    return Gateway(folder, name, """
nodes = {
	sig = { type = "signal"; signal = "counter"; rate = %s; values = 2; };
	x = { type = "iec60870-5-104"; address = "127.0.0.1"; port = %d; ca = 7; %s %s
		out = { %s }; };
};
paths = ( { in = "sig"; out = "x"; } );
""" % (rate, PORT, TIMERS, more, out or OUT))


OUT = """signals = ( { name = "a"; asdu_type = "short-float"; with_timestamp = true; ioa = 101; },
	{ name = "b"; asdu_type = "scaled-int"; ioa = 70000; } );"""


def master(folder, port, more="", name="master"):
    return Gateway(folder, name, """
nodes = {
	x = { type = "iec60870-5-104"; mode = "master"; address = "127.0.0.1"; port = %d; ca = 7; %s
		interrogation = false; %s
		in = { complete = true; queuelen = 65536; %s }; };
	f = { type = "file"; uri = "%s/got.csv"; format = "csv"; out = { flush = true; }; };
};
paths = ( { in = "x"; out = "f"; } );
""" % (port, TIMERS, more, OUT, folder))


# ---- scenarios ----

def account(folder):
    """Every sample is received once or counted, through cuts, restarts and a silent network."""
    relay = Relay(12404, PORT)
    writer = slave(folder, 500)
    reader = master(folder, 12404)
    file = os.path.join(folder, "got.csv")

    def more(count=60):
        have = len(rows(file))
        until(lambda: len(rows(file)) >= have + count, "samples arrive")

    more()
    # So many may have arrived though nobody has acknowledged them: k of each connection that is cut.
    unknown = 0
    for how in ("cut", "slave", "cut", "master", "silence", "cut"):
        if how == "cut":
            unknown += 12 * relay.cut()
        elif how == "silence":
            breaches = figures(writer, "x")["breaches"]
            relay.held = True
            until(lambda: figures(writer, "x")["breaches"] > breaches, "the slave notices")
            relay.cut()
            relay.held = False
            unknown += 12
        else:
            (writer if how == "slave" else reader).ask("/node/x/restart", "POST")
        more()
    writer.ask("/node/sig/pause", "POST")
    last = [0]

    def still():
        now = (len(rows(file)), stats(writer, "x")["sent"])
        same, last[0] = now == last[0], now
        time.sleep(0.7)
        return same
    until(still, "all has arrived")
    w, r = stats(writer, "x"), stats(reader, "x")
    got = [row[1] for row in rows(file)]
    what = "%d rows, writer %s, reader %s" % (len(got), w, r)
    first = [int(v[0]) for v in got]
    check(first == sorted(set(first)), "each once and in order: " + what)
    check(all(v[0] == v[1] for v in got), "both values are of one sample: " + what)
    check(r["received"] == len(got) and not r["lost"], "the reader loses none: " + what)
    written = w["sent"] + w["not_sent"]
    lost = sum(w["losses"].values())
    check(sum(w["losses"][cause] for cause in ("absent", "full", "closed")) == lost,
          "the causes are known: " + what)
    missing = written - len(got)
    check(missing <= lost <= missing + unknown, "all are accounted for, %d missing: %s" % (missing, what))
    check(w["figures"]["connected"] >= 6 and w["figures"]["malformed"] == 0, "connections: " + what)
    ends_soon(writer)
    ends_soon(reader)


COMMANDS = """signals = ( { name = "sw"; asdu_type = "double-command"; select = true; ioa = 1; },
	{ name = "set"; asdu_type = "short-setpoint"; with_timestamp = true; ioa = 2; } );"""


def commands(folder):
    """What a master writes comes out of the slave, command by command."""
    source, got = os.path.join(folder, "orders.csv"), os.path.join(folder, "got.csv")
    count = 100
    with open(source, "w"):
        pass
    station = Gateway(folder, "slave", """
nodes = {
	x = { type = "iec60870-5-104"; address = "127.0.0.1"; in = { %s }; };
	f = { type = "file"; uri = "%s"; format = "csv"; out = { flush = true; }; };
};
paths = ( { in = "x"; out = "f"; } );
""" % (COMMANDS, got))
    centre = Gateway(folder, "master", """
nodes = {
	r = { %s };
	x = { type = "iec60870-5-104"; mode = "master"; address = "127.0.0.1"; low_priority_queue = 1000;
		out = { %s }; };
};
paths = ( { in = "r"; out = "x"; } );
""" % (file_source(source, 500.0), COMMANDS))
    until(lambda: figures(centre, "x")["started"] == 1, "the master is connected")
    # A switch has no position 3.
    give_rows(source, [[1 + i % 2, i * 0.5] for i in range(count)] + [[3, 0.5]])
    until(lambda: stats(centre, "x")["sent"] == count + 1 and
          figures(centre, "x")["commands"] == 2 * count, "all are confirmed")
    until(lambda: len(rows(got)) == 2 * count, "all are taken")
    points = [v[1] for v in rows(got)]
    setpoints = [v for i, v in enumerate(p[1] for p in points) if i == 0 or v != points[i - 1][1]]
    check(setpoints == [i * 0.5 for i in range(count)], "each in order: %s" % setpoints[:10])
    check(sorted({p[0] for p in points[1:]}) == [1.0, 2.0], "the switch has two positions")
    s = stats(centre, "x")
    check(s["losses"]["format"] == 1 and sum(s["losses"].values()) == 1, "one cannot be given: %s" % s)
    ends_soon(station)
    ends_soon(centre, (0, 3))


RULES = """
nodes = {
	sig = { %s };
	x = { type = "iec60870-5-104"; address = "127.0.0.1"; low_priority_queue = 20000; %s clock_synchronization = true;
		out = { signals = ( { asdu_type = "short-float"; with_timestamp = true; ioa = 101; },
			{ asdu_type_id = "M_IT_NA_1"; ioa = 102; } ); };
		in = { signals = ( { type = "boolean"; asdu_type = "single-command"; select = true; ioa = 1; },
			{ asdu_type = "short-setpoint"; ioa = 2; } ); }; };
	f = { type = "file"; uri = "%s/got.csv"; format = "csv"; out = { flush = true; }; };
};
paths = ( { in = "sig"; out = "x"; }, { in = "x"; out = "f"; } );
"""
COUNTER = 'type = "signal"; signal = "counter"; rate = 50.0; values = 2;'

OTHER = """
	second = { type = "iec60870-5-104"; port = 2405; address = "127.0.0.1"; peers = [ "127.0.0.2", "127.0.1.0/24" ];
		out = { signals = ( { asdu_type = "single-point"; ioa = 1; } ); }; };
"""


def rules(folder):
    """What a slave answers to questions and commands, right ones and wrong ones."""
    source = os.path.join(folder, "values.csv")
    with open(source, "w"):
        pass
    gateway = Gateway(folder, "slave", RULES % (file_source(source), "select_timeout = 0.3;", folder))
    a, b = connect(), connect()
    a.start()
    b.start()

    def answer(peer, kind, address, element, cause=6, station=1):
        peer.ask(kind, address, element, cause, station)
        return peer.asdu()

    def refused(peer, kind, address, element, cause=6, station=1, by=7):
        got = answer(peer, kind, address, element, cause, station)
        check(got[0] == kind and got[2] == 0x40 | by and got[3] == 3,
              "%s is refused with %d: %s" % ((kind, address, element, cause), by, got.hex()))

    def taken(peer, kind, address, element, cause=6):
        got = answer(peer, kind, address, element, cause)
        check(got == head(kind, cause + 1) + struct.pack("<I", address)[:3] + element, got.hex())

    # The state before the first sample: invalid, without time tags, not the counter.
    taken(a, 100, 0, b"\x14")
    check(a.asdu() == head(13, 20) + b"\x65\0\0" + struct.pack("<fB", 0, 0x80), "interrogation")
    check(a.asdu() == head(100, 10) + b"\0\0\0\x14", "its end")
    taken(a, 101, 0, b"\x05")
    check(a.asdu()[:1] == b"\x0f" and a.asdu()[2] == 10, "counters")
    refused(a, 100, 0, b"\x15")       # a group
    refused(a, 101, 0, b"\x01")       # likewise of counters
    refused(a, 101, 0, b"\x06")       # none that there is
    refused(a, 101, 0, b"\x85")       # resetting, without counter_reset
    refused(a, 101, 0, b"\xc5")
    taken(a, 101, 0, b"\x45")         # freezing
    refused(a, 105, 0, b"\x01")       # reset
    taken(a, 104, 0, b"\xaa\x55")
    check(answer(a, 102, 101, b"", 5)[:3] == head(13, 5)[:3], "one is read")
    refused(a, 102, 999, b"", 5, by=47)
    # All stations: the answer names this one.
    check(answer(a, 103, 0, bytes((0, 0, 0, 0, 1, 1, 24)), station=65535)[:6] == head(103, 7), "time")
    check(figures(gateway, "x")["clock_offset_ms"] > 0, "the difference of the clocks")
    refused(a, 100, 0, b"\x14", station=2, by=46)
    refused(a, 1, 5, b"\x01", by=44)
    refused(a, 127, 5, b"\x01\x02", by=44)
    refused(a, 46, 1, b"\x01", by=47)  # another type
    refused(a, 45, 3, b"\x01", by=47)
    refused(a, 45, 1, b"\x01", cause=3, by=45)
    check(not rows(folder + "/got.csv"), "no command was taken")
    # Selected before it is executed, by the same master, with the same value, in time.
    refused(a, 45, 1, b"\x01")
    taken(a, 45, 1, b"\x81")
    refused(b, 45, 1, b"\x01")
    refused(a, 45, 1, b"\x00")
    refused(a, 45, 1, b"\x01")
    taken(a, 45, 1, b"\x81")
    taken(a, 45, 1, b"\x81", 8)        # cancelled
    refused(a, 45, 1, b"\x01")
    taken(a, 45, 1, b"\x81")
    time.sleep(0.4)
    refused(a, 45, 1, b"\x01")         # too late
    check(not rows(folder + "/got.csv"), "no command was taken")
    taken(a, 45, 1, b"\x81")
    taken(a, 45, 1, b"\x01")
    check(a.asdu() == head(45, 10) + b"\x01\0\0\x01", "its end")
    refused(b, 50, 2, struct.pack("<fB", 2.5, 0x80))  # direct only
    taken(b, 50, 2, struct.pack("<fB", 2.5, 0))
    check(b.asdu()[2] == 10, "its end")
    until(lambda: [r[1] for r in rows(folder + "/got.csv")] == [[1.0, 0.0], [1.0, 2.5]], "two samples")
    # Values that are written come as they are, and an interrogation then knows them.
    give_rows(source, [[i, i] for i in range(2000)])
    got = a.asdus(6)
    check([g[0] for g in got] == [36, 15] * 3 and got[0][2] == 1 and
          struct.unpack("<f", got[2][9:13])[0] == struct.unpack("<f", got[0][9:13])[0] + 1, "values")
    a.ask(100, 0, b"\x14")
    until(lambda: a.asdu()[:3] == head(13, 20)[:3], "interrogated")
    # Stopped in the middle: all is acknowledged, and nothing more comes.
    a.control(0x13)
    frames = []
    while not frames or frames[-1] != bytes((0x68, 4, 0x23, 0, 0, 0)):
        frames.append(a.frame())
        if not frames[-1][2] & 1:
            a.got += 1
            a.socket.sendall(struct.pack("<BBHH", 0x68, 4, 1, a.got << 1))
    a.start()
    check(a.asdu()[0] in (36, 15), "and starts again")
    ends_soon(gateway)


GROUPED = """
nodes = {
	sig = { %s };
	x = { type = "iec60870-5-104"; address = "127.0.0.1"; counter_reset = true;
		out = { signals = ( { asdu_type = "short-float"; ioa = 101; group = 1; }, { asdu_type = "single-point"; ioa = 201; group = 16; },
			{ asdu_type = "short-float"; ioa = 102; group = 1; }, { asdu_type = "scaled-int"; ioa = 301; },
			{ asdu_type = "integrated-total"; ioa = 401; group = 1; }, { asdu_type = "integrated-total"; ioa = 402; group = 4; } ); }; };
};
paths = ( { in = "sig"; out = "x"; } );
"""


def groups(folder):
    """Values are interrogated by groups; counters are frozen and reset by groups."""
    source = os.path.join(folder, "values.csv")
    with open(source, "w"):
        pass
    gateway = Gateway(folder, "slave", GROUPED % file_source(source, signals="fbfiii"))
    a = connect()
    a.start()
    given = [0]

    def give(*row):
        """A row, and the ASDUs that it becomes."""
        with open(source, "a") as f:
            f.write("%d,0,0.0,%d,%s\n" % (1700000000 + given[0], given[0], ",".join(map(repr, row))))
        given[0] += 1
        return {g[0]: g for g in a.asdus(4)}

    def ask(kind, qualifier, ends=True):
        """What comes between the confirmation and the end."""
        a.ask(kind, 0, bytes((qualifier,)))
        check(a.asdu() == head(kind, 7) + bytes((0, 0, 0, qualifier)), "confirmed")
        got = []
        while ends and (not got or got[-1][2] != 10):
            got.append(a.asdu())
        return got[:-1]

    def objects(asdu, size):
        """Address and value of each."""
        return [(struct.unpack("<I", asdu[at:at + 3] + b"\0")[0], asdu[at + 3:at + 3 + size])
                for at in range(6, len(asdu), 3 + size)]

    def counters(qualifier, cause):
        got = [o for g in ask(101, qualifier) for o in objects(g, 5) if g[0] == 15 and g[2] == cause]
        return [(address, *struct.unpack("<iB", value)) for address, value in got]
    give(1.5, 1, 2.5, 7, 100, 200)
    got = ask(100, 21)
    check(len(got) == 1 and got[0][:3] == head(13, 21, count=2)[:3] and
          objects(got[0], 5) == [(101, struct.pack("<fB", 1.5, 0)), (102, struct.pack("<fB", 2.5, 0))], "group 1: %s" % got)
    got = ask(100, 36)
    check(len(got) == 1 and got[0][:3] == head(1, 36)[:3] and objects(got[0], 1) == [(201, b"\x01")], "group 16: %s" % got)
    check(sorted(g[0] for g in ask(100, 20)) == [1, 11, 13] , "the station has no counters")
    for kind, qualifier in ((100, 22), (100, 37), (100, 19), (100, 0), (101, 2), (101, 0), (101, 0x46)):
        a.ask(kind, 0, bytes((qualifier,)))
        check(a.asdu()[2] == 0x47, "no such group: %d" % qualifier)
    # What was never frozen is read as it is.
    check(counters(5, 37) == [(401, 100, 0), (402, 200, 0)], "all counters")
    check(counters(1, 38) == [(401, 100, 0)] and counters(4, 41) == [(402, 200, 0)], "groups of them")
    ask(101, 0x41, False)
    give(1.5, 1, 2.5, 7, 110, 210)
    check(counters(5, 37) == [(401, 100, 1), (402, 210, 0)], "one is frozen")
    # Frozen, and counted from 0 on.
    ask(101, 0x84, False)
    check(counters(4, 41) == [(402, 210, 1)], "the reading before the reset")
    got = give(1.5, 1, 2.5, 7, 111, 213)
    check([struct.unpack("<i", v[:4])[0] for _, v in objects(got[15], 5)] == [111, 3], "it counts from 0 on: %s" % got[15].hex())
    ask(101, 0x45, False)
    check(counters(5, 37) == [(401, 111, 2), (402, 3, 2)], "both are frozen again")
    ask(101, 0xc5, False)
    check(counters(5, 37) == [(401, 111, 2), (402, 3, 2)], "a reset leaves what was frozen")
    got = give(1.5, 1, 2.5, 7, 112, 214)
    check([struct.unpack("<i", v[:4])[0] for _, v in objects(got[15], 5)] == [1, 1], "both count from 0 on")
    check(figures(gateway, "x")["freezes"] == 4, "figures")
    # A master of ours asks for groups, and for frozen counters again and again.
    master = Gateway(folder, "master", """
nodes = {
	x = { type = "iec60870-5-104"; mode = "master"; address = "127.0.0.1"; interrogation_groups = [ 1 ]; counter_groups = [ 4 ];
		counter_interrogation = true; counter_freeze = "freeze_reset"; counter_interval = 0.1;
		in = { signals = ( { asdu_type = "short-float"; ioa = 101; }, { asdu_type = "single-point"; ioa = 201; init = 0; },
			{ asdu_type = "integrated-total"; ioa = 402; } ); }; };
	f = { type = "file"; uri = "%s/got.csv"; format = "csv"; out = { flush = true; }; };
};
paths = ( { in = "x"; out = "f"; } );
""" % folder)
    until(lambda: len(rows(folder + "/got.csv")) >= 6, "samples come")
    got = [v for _, v in rows(folder + "/got.csv")]
    check(got[0][0] == 1.5 and all(v[1] == 0 for v in got), "of group 1 only: %s" % got[:3])
    check(got[1][2] == 1 and got[-1][2] == 0, "the counter is read and reset: %s" % got)
    check(figures(gateway, "x")["freezes"] > 6, "again and again")
    ends_soon(master)
    ends_soon(gateway)


def redundancy(folder):
    """One connection of a redundancy group at a time gets data; one that takes over, or comes back,
    gets what the others have not acknowledged, and nothing is missing."""
    source = os.path.join(folder, "values.csv")
    give_rows(source, [[i] for i in range(5000)])
    gateway = Gateway(folder, "slave", """
nodes = {
	sig = { %s };
	x = { type = "iec60870-5-104"; address = "127.0.0.1"; apci_k = 8; apci_w = 4; low_priority_queue = 5000; max_clients = 8;
		redundancy_groups = ( { peers = [ "127.0.0.1", "127.0.0.2" ]; }, { peers = [ "127.0.1.0/24" ]; } );
		out = { signals = ( { asdu_type = "short-float"; ioa = 101; } ); }; };
};
paths = ( { in = "sig"; out = "x"; } );
""" % file_source(source, 100.0, "f"))
    a, b = connect(source=("127.0.0.1", 0)), connect(source=("127.0.0.2", 0))
    alone, other = connect(source=("127.0.0.3", 0)), connect(source=("127.0.1.7", 0))
    for p in (a, alone, other):
        p.start()
    seen = {p: [] for p in (a, b, alone, other)}

    def take(p, count, acknowledge=True):
        for _ in range(count):
            while True:
                f = p.frame()
                check(f is not None, "the connection goes on")
                if not f[2] & 1:
                    break
                if f[2] == 0x43:
                    p.control(0x83)
            check(struct.unpack("<H", f[2:4])[0] >> 1 == p.got, "N(S) is the next one")
            p.got += 1
            seen[p].append(int(struct.unpack("<f", f[15:19])[0]))
            if acknowledge:
                p.socket.sendall(struct.pack("<BBHH", 0x68, 4, 1, p.got << 1))

    def silent(p):
        """Nothing but tests comes."""
        p.socket.settimeout(0.3)
        try:
            return p.frame()[2] & 3 == 3
        except socket.timeout:
            return True
        finally:
            p.socket.settimeout(20)
    take(a, 20)
    # These are not acknowledged when the other one takes over.
    take(a, 5, False)
    b.start()
    take(b, 30)
    check(seen[b][0] == seen[a][19] + 1, "it begins with what is not acknowledged: %s, %s" % (seen[a][-6:], seen[b][:3]))
    while a.buffer or select.select([a.socket], [], [], 0)[0]:
        take(a, 1, False)
    check(silent(a), "the first one gets nothing more")
    check(figures(gateway, "x")["switches"] == 1 and figures(gateway, "x")["started"] == 3, "figures")
    # The acknowledgement of what it has got still counts, and it may be tested.
    a.socket.sendall(struct.pack("<BBHH", 0x68, 4, 1, a.got << 1))
    a.control(0x43)
    check(a.frame() == bytes((0x68, 4, 0x83, 0, 0, 0)), "it is still connected")
    # The active one dies with something under way; samples wait until the first one starts again.
    take(b, 3, False)
    last = seen[b][-4]
    b.socket.close()
    until(lambda: figures(gateway, "x")["started"] == 2, "its end is seen")
    take(alone, 60)
    take(other, 60)
    start = len(seen[a])
    a.start()
    take(a, 60)
    again = seen[a][start:]
    check(again[0] <= last + 1, "nothing is missing: %s after %s" % (again[:3], seen[b][-5:]))
    check(again == list(range(again[0], again[0] + 60)), "and all is in order: %s" % again)
    # Stopped as it should be, and started by a new connection of the same host.
    a.control(0x13)
    frames = []
    while not frames or frames[-1] != bytes((0x68, 4, 0x23, 0, 0, 0)):
        frames.append(a.frame())
        if not frames[-1][2] & 1:
            a.got += 1
            seen[a].append(int(struct.unpack("<f", frames[-1][15:19])[0]))
            a.socket.sendall(struct.pack("<BBHH", 0x68, 4, 1, a.got << 1))
    third = connect(source=("127.0.0.2", 0))
    seen[third] = []
    third.start()
    take(third, 30)
    check(seen[third][0] == seen[a][-1] + 1, "it goes on where the other one was stopped: %s, %s" % (seen[a][-2:], seen[third][:2]))
    for p in (alone, other):
        check(seen[p] == list(range(seen[p][0], seen[p][0] + len(seen[p]))), "others are not disturbed: %s" % seen[p])
    got = set(seen[a]) | set(seen[b]) | set(seen[third])
    check(got == set(range(min(got), max(got) + 1)), "no sample is missing: %s" % sorted(set(range(max(got))) - got))
    s = stats(gateway, "x")
    check(sum(s["losses"].values()) == s["losses"]["absent"], "only those before the first start are lost: %s" % s["losses"])
    # What waits at the end is counted.
    third.socket.close()
    until(lambda: figures(gateway, "x")["started"] == 2, "its end is seen")
    before = s["losses"]["absent"]
    log = ends_soon(gateway)
    lost = re.search(r"x: (\d+) samples were lost: \1 for a peer that is not there", log)
    check(lost and int(lost[1]) > before, "what waits is counted: " + log)


def standby(folder):
    """A master with two ways to a slave: each is cut again and again, also both at once, and what the
    slave was given is read as a whole."""
    source = os.path.join(folder, "values.csv")
    give_rows(source, [[i] for i in range(20000)])
    slave_side = Gateway(folder, "slave", """
nodes = {
	sig = { %s };
	x = { type = "iec60870-5-104"; address = "127.0.0.1"; low_priority_queue = 20000; %s
		redundancy_groups = ( { peers = [ "127.0.0.1" ]; } );
		out = { signals = ( { asdu_type = "short-float"; ioa = 101; } ); }; };
};
paths = ( { in = "sig"; out = "x"; } );
""" % (file_source(source, 200.0, "f"), TIMERS))
    ways = [Relay(2405, PORT), Relay(2406, PORT)]
    master = Gateway(folder, "master", """
nodes = {
	x = { type = "iec60870-5-104"; mode = "master"; address = "127.0.0.1"; port = 2405; standby = [ "127.0.0.1:2406" ]; %s
		interrogation = false; in = { signals = ( { asdu_type = "short-float"; ioa = 101; } ); }; };
	f = { type = "file"; uri = "%s/got.csv"; format = "csv"; out = { flush = true; }; };
};
paths = ( { in = "x"; out = "f"; } );
""" % (TIMERS, folder))

    def got():
        return [int(v[0]) for _, v in rows(folder + "/got.csv")]
    until(lambda: figures(master, "x")["connections"] == 2 and len(got()) > 20, "both ways are there, and one is used")
    check(figures(slave_side, "x")["started"] == 1 and figures(slave_side, "x")["connections"] == 2, "one at a time")
    for i in range(12):
        before = max(got())
        used = figures(master, "x")["switches"]
        if i % 4 == 3:
            for way in ways:
                way.cut()
        else:
            ways[i % 2].cut()
        until(lambda: max(got()) > before + 10, lambda: "values go on: %s" % open(master.log).read()[-1500:])
        until(lambda: figures(master, "x")["connections"] == 2, "the other way comes back")
        check(i % 4 == 3 or figures(master, "x")["switches"] - used <= 1, "it is changed once at most")
    check(figures(master, "x")["switches"] >= 3, "the other way was used: %s" % figures(master, "x"))
    slave_side.ask("/node/sig/stop", "POST")
    last = stats(slave_side, "sig")["received"] - 1
    until(lambda: max(got()) == last, lambda: "all arrive: %d of %d" % (max(got()), last))
    values = set(got())
    check(values == set(range(min(values), last + 1)), "none is missing: %s" % sorted(set(range(min(values), last)) - values))
    s = stats(slave_side, "x")
    check(s["losses"]["absent"] == min(values) and sum(s["losses"].values()) == min(values),
          "but those before the first start, which are counted: %s, %d" % (s["losses"], min(values)))
    ends_soon(master)
    ends_soon(slave_side)


def hostile(folder):
    """Peers that break the rules lose their connection, and nobody else does."""
    gateway = Gateway(folder, "slave", (RULES % (COUNTER, TIMERS + "max_clients = 4;", folder)).replace(
        "nodes = {", "nodes = {" + OTHER, 1).replace('{ in = "x"; out = "f"; }',
                                                    '{ in = "x"; out = "f"; }, { in = "sig2"; out = "second"; }').replace(
        "	f =", '	sig2 = { type = "signal"; rate = 10.0; values = 1; };\n	f =', 1))
    good = connect()
    good.start()
    check(good.asdu(), "values come")
    number = random.Random(1)
    wrong = [b"\x68\x06\x00\x00\x00\x00\x01\x01",                    # data before the start
             b"\x68\x04\x07\0\0\0" + b"\x68\x06\x02\0\0\0\x01\x01",  # N(S)
             b"\x68\x04\x07\0\0\0" + b"\x68\x04\x01\0\xf0\xff",      # N(R)
             b"\x68\x04\x0b\0\0\0", b"\x68\xff", b"GET / HTTP/1.1\r\n\r\n"]
    wrong += [bytes(number.randrange(256) for _ in range(60)) for _ in range(20)]
    before = figures(gateway, "x")["breaches"]
    for data in wrong:
        p = connect()
        p.socket.sendall(data + b"\xff\xff")
        check(p.is_closed(), data.hex())
        check(good.asdu(), "others are not disturbed")
    check(figures(gateway, "x")["breaches"] == before + len(wrong), "all are counted")
    # Silence: never started, or started and no acknowledgement.
    quiet, started = connect(), connect()
    started.start()
    end = time.monotonic() + 20
    closed = []
    for p in (quiet, started):
        p.socket.setblocking(False)
    while len(closed) < 2:
        check(time.monotonic() < end and good.asdu(), "silent peers are given up")
        for p in (quiet, started):
            try:
                if p not in closed and not p.socket.recv(4096):
                    closed.append(p)
            except BlockingIOError:
                pass
            except ConnectionResetError:
                closed.append(p)
    # One that asks without end and takes no answers.
    flood = connect()
    flood.socket.setblocking(False)
    end = time.monotonic() + 30
    try:
        while True:
            check(time.monotonic() < end and good.asdu(), "it is given up")
            select.select([], [flood.socket], [], 0.05)
            try:
                flood.socket.send(b"\x68\x04\x43\0\0\0" * 10000)
            except BlockingIOError:
                pass
    except (BrokenPipeError, ConnectionResetError):
        pass
    # One that starts and stops without end does not fill the log.
    restless = connect()
    for _ in range(500):
        restless.start()
        restless.control(0x13)
        while restless.frame()[2] != 0x23:
            restless.socket.sendall(struct.pack("<BBHH", 0x68, 4, 1, 2 * (restless.got + 1)))
            restless.got += 1
    restless.socket.close()
    with open(gateway.log) as f:
        lines = f.read().count("data transfer has")
    check(lines < 250, "%d lines tell of it" % lines)
    # No more than max_clients.
    more = [connect() for _ in range(3)]
    check(connect().is_closed(), "the fifth one finds no place")
    for p in more:
        p.start()
    # Who may connect.
    check(connect(2405).is_closed(), "127.0.0.1 may not")
    for host in ("127.0.0.2", "127.0.1.200"):
        connect(2405, (host, 0)).start()
    check(figures(gateway, "second")["turned_away"] == 1, "it is counted")
    check(good.asdu(), "values come")
    # It ends in time though nobody reads.
    ends_soon(gateway)


def hostile_group(folder):
    """Members of a redundancy group that take over without end, acknowledge nothing or what was not sent,
    or take nothing: the others get all, memory and log stay bounded, and all is counted."""
    source = os.path.join(folder, "values.csv")
    give_rows(source, [[i] for i in range(20000)])
    gateway = Gateway(folder, "slave", """
nodes = {
	sig = { %s };
	x = { type = "iec60870-5-104"; address = "127.0.0.1"; apci_k = 8; apci_w = 4; low_priority_queue = 20000; max_clients = 8;
		apci_t1 = 5.0; apci_t2 = 0.5; apci_t3 = 1.0;
		redundancy_groups = ( { peers = [ "127.0.0.1", "127.0.0.2", "127.0.0.3" ]; }, { peers = [ "127.0.1.0/24" ]; } );
		out = { signals = ( { asdu_type = "short-float"; ioa = 101; } ); }; };
};
paths = ( { in = "sig"; out = "x"; } );
""" % file_source(source, 200.0, "f"))
    honest, beside = connect(source=("127.0.0.1", 0)), connect(source=("127.0.1.1", 0))
    got = {honest: [], beside: []}

    def take(p, count=1):
        """So many values, or those until the end of the connection."""
        for _ in range(count):
            a = p.asdu()
            if a is None:
                return False
            got[p].append(int(struct.unpack("<f", a[9:13])[0]))
        return True

    def goes_on():
        check(take(beside, 5), "the other group is not disturbed")

    def breaches():
        return figures(gateway, "x")["breaches"]

    def serve(until_true, what):
        """The honest one answers what comes, and the other group gets values meanwhile."""
        end = time.monotonic() + 30
        while not until_true():
            check(time.monotonic() < end, what + ": " + open(gateway.log).read()[-1000:])
            while honest.buffer or select.select([honest.socket], [], [], 0)[0]:
                f = honest.frame()
                check(f is not None, what + ": the honest one stays")
                if f[2] == 0x43:
                    honest.control(0x83)
                elif not f[2] & 1:
                    honest.got += 1
                    got[honest].append(int(struct.unpack("<f", f[15:19])[0]))
                    honest.socket.sendall(struct.pack("<BBHH", 0x68, 4, 1, honest.got << 1))
            goes_on()
    for p in (honest, beside):
        p.start()
        check(take(p, 20), "values come")
    before = gateway.resident_kb()
    # It activates itself again and again in the place of the one that works, and reads nothing. After each,
    # the honest one asks again, as a control station does that gets no values.
    thief = connect(source=("127.0.0.2", 0))
    switched = figures(gateway, "x")["switches"]
    for _ in range(30):
        thief.control(0x07)
        until(lambda: figures(gateway, "x")["switches"] == switched + 1, "the thief has taken over")
        honest.control(0x07)
        until(lambda: figures(gateway, "x")["switches"] == switched + 2, "the honest one has taken over")
        check(take(honest, 1), "the honest one goes on")
        switched += 2
        goes_on()
    # What it was sent and has never acknowledged ends its connection within t1.
    serve(lambda: breaches() == 1, "the thief is given up")
    # It stays active and acknowledges nothing: after t1 the group waits for the next start.
    thief = connect(source=("127.0.0.2", 0))
    thief.control(0x07)
    serve(lambda: breaches() == 2, "one that acknowledges nothing is given up")
    honest.control(0x07)
    check(take(honest, 50), "the honest one gets what the other one was sent")
    # Wrong acknowledgements: of what is not there, of what was taken back, and backwards.
    for wrong in (b"\x68\x04\x01\0\xf0\xff", b"\x68\x04\x01\0\x40\0", b"\x68\x04\x01\0\xfe\xff"):
        count = breaches()
        thief = connect(source=("127.0.0.3", 0))
        thief.start()
        thief.frame()
        thief.socket.sendall(wrong)
        check(thief.is_closed(), "%s ends it" % wrong.hex())
        serve(lambda: breaches() == count + 1, "it is counted")
        honest.control(0x07)
        check(take(honest, 20), "the honest one goes on")
    # One that stands by, acknowledges what it was never sent, and one that starts without end and never reads.
    count = breaches()
    thief = connect(source=("127.0.0.3", 0))
    thief.socket.sendall(b"\x68\x04\x01\0\x02\0")
    check(thief.is_closed(), "one that was never started has nothing to acknowledge")
    flood = connect(source=("127.0.0.2", 0))
    flood.socket.setblocking(False)

    def is_given_up():
        try:
            select.select([], [flood.socket], [], 0.05)
            flood.socket.send(b"\x68\x04\x07\0\0\0" * 5000)
        except BlockingIOError:
            pass
        except (BrokenPipeError, ConnectionResetError):
            return True
        return False
    serve(is_given_up, "one that starts without end is given up")
    serve(lambda: breaches() == count + 2, "both are counted")
    honest.control(0x07)
    check(take(honest, 200), "the honest one goes on")
    grown = gateway.resident_kb() - before
    check(grown < 8000 or gateway.sanitized(), "memory is bounded: %d KiB more" % grown)
    with open(gateway.log) as f:
        lines = f.read().count("\n")
    check(lines < 200, "the log is not filled: %d lines" % lines)
    # Values came again to the one that asked again, and none is missing.
    gateway.ask("/node/sig/stop", "POST")
    last = stats(gateway, "sig")["received"] - 1
    for p in (honest, beside):
        while got[p][-1] < last:
            check(take(p), "all arrive")
        missing = set(range(min(got[p]), last + 1)) - set(got[p])
        check(not missing, "none is missing: %s" % sorted(missing)[:20])
    s = stats(gateway, "x")
    check(sum(s["losses"].values()) == s["losses"]["absent"], "only those before the first start are lost: %s" % s)
    ends_soon(gateway)


def hostile_slave(folder):
    """Slaves that hold a master up: each is given up in time with its reason, counted, and the master uses
    the other one."""
    def serve(sock, does):
        def accept():
            while True:
                try:
                    p = Peer(sock.accept()[0])
                    p.socket.settimeout(20)
                    threading.Thread(target=one, args=(p,), daemon=True).start()
                except OSError:
                    return

        def one(p):
            try:
                does(p)
                while p.socket.recv(4096):
                    pass
            except (OSError, AssertionError, TypeError):
                pass
        threading.Thread(target=accept, daemon=True).start()

    def started(p):
        while p.frame()[2] != 0x07:
            pass
        p.control(0x0b)

    def honest(p):
        started(p)
        while True:
            p.ask(13, 101, struct.pack("<fB", 1.5, 0), cause=3)
            time.sleep(0.02)

    def restarts(p):
        """Says without end that it has started anew, which a master answers with questions."""
        started(p)
        while True:
            p.socket.sendall(b"".join(struct.pack("<BBHH", 0x68, 14, (p.sent + i) << 1 & 0xffff, 0) +
                                      head(70, 4) + bytes(4) for i in range(4)))
            p.sent += 4
            time.sleep(0.001)

    def floods(p):
        started(p)
        while True:
            p.socket.sendall(b"\x68\x04\x43\0\0\0" * 1000)
    cases = {
        "has not confirmed within t1": lambda p: None,
        "has not acknowledged data within t1": started,
        "only a master does": lambda p: p.control(0x07),
        "was not asked": lambda p: p.control(0x23),
        "while the transfer is not started": lambda p: p.send(head(13, 3) + bytes(8)),
        "what was not sent": lambda p: (started(p), p.socket.sendall(b"\x68\x04\x01\0\xf0\x0f")),
        "came twice": lambda p: (started(p), p.socket.sendall(b"\x68\x04\x00\0\x00\x00" * 0 + struct.pack(
            "<BBHH", 0x68, 4 + 14, 6, 0) + head(13, 3) + bytes(8))),
        "within t1|closed|reset": floods,
        "within t1": restarts,
    }
    sockets = [socket.create_server(("127.0.0.1", 2500 + i)) for i in range(len(cases) + 1)]
    for sock, does in zip(sockets, [honest] + list(cases.values())):
        serve(sock, does)
    nodes = "".join("""x%d = { type = "iec60870-5-104"; mode = "master"; address = "127.0.0.1"; port = %d;
		standby = [ "127.0.0.1:2500" ]; %s in = { signals = ( { asdu_type = "short-float"; ioa = 101; } ); }; };
""" % (i, 2501 + i, TIMERS) for i in range(len(cases)))
    gateway = Gateway(folder, "master", "nodes = { %s };\npaths = ( %s );\n" % (
        nodes, ", ".join('{ in = "x%d"; }' % i for i in range(len(cases)))))
    before, began = gateway.resident_kb(), time.monotonic()
    for i, said in enumerate(cases):
        pattern = re.compile("x%d: [^\n]* is gone: [^\n]*(%s)" % (i, said))
        until(lambda: pattern.search(open(gateway.log).read()),
              lambda: "x%d: %s: %s" % (i, said, open(gateway.log).read()[-3000:]), 30)
        until(lambda: figures(gateway, "x%d" % i)["breaches"] >= 1 or "closed" in said, "x%d: it is counted" % i)
        count = stats(gateway, "x%d" % i)["received"]
        until(lambda: stats(gateway, "x%d" % i)["received"] > count + 5,
              lambda: "x%d: the other slave is used: %s" % (i, figures(gateway, "x%d" % i)))
    grown = gateway.resident_kb() - before
    check(grown < 20000 or gateway.sanitized(), "memory is bounded: %d KiB more" % grown)
    took = time.monotonic() - began
    log = ends_soon(gateway)
    # Each attempt is said, and there are so many in a time: a dozen lines a second of each node.
    check(log.count("\n") < 12 * len(cases) * took, "the log is not filled: %d lines in %.1f s" % (log.count("\n"), took))


def referee(folder):
    """scapy decodes what a slave sends, and our master takes what scapy has encoded."""
    try:
        import logging
        logging.getLogger("scapy").setLevel(logging.ERROR)
        from scapy.contrib.scada import iec104 as s
    except ImportError:
        servers.skip("python3-scapy is not there")
    source = os.path.join(folder, "values.csv")
    with open(source, "w"):
        pass
    give_rows(source, [[i] * 7 for i in range(2000)])
    gateway = Gateway(folder, "slave", """
nodes = {
	sig = { %s };
	x = { type = "iec60870-5-104"; address = "127.0.0.1"; ca = 41025; low_priority_queue = 20000;
		out = { signals = ( { asdu_type = "single-point"; ioa = 1; }, { asdu_type = "double-point"; ioa = 2; group = 2; },
			{ asdu_type = "scaled-int"; ioa = 3; }, { asdu_type = "short-float"; with_timestamp = true; ioa = 70000; },
			{ asdu_type = "bitstring"; ioa = 5; }, { asdu_type = "normalized-float"; ioa = 6; },
			{ asdu_type = "integrated-total"; ioa = 7; group = 3; } ); }; };
};
paths = ( { in = "sig"; out = "x"; } );
""" % file_source(source, 100.0, "7f"))
    p = connect()
    p.socket.sendall(bytes(s.IEC104_U_Message(startdt_act=1)))
    check(s.iec104_decode(p.frame()).startdt_con == 1, "the start is confirmed")
    scaled = []
    seen = {}
    p.send(bytes(s.IEC104_I_Message_SingleIOA(cot=s.IEC104_COT_ACT, common_asdu_address=41025,
                                              origin_address=9,
                                              io=s.IEC104_IO_C_IC_NA_1_IOA(information_object_address=0, qoi=20)))[6:])
    # Group 2, then group 3 of the counters: frozen, and read.
    for io in (s.IEC104_IO_C_IC_NA_1_IOA(information_object_address=0, qoi=22),
               s.IEC104_IO_C_CI_NA_1_IOA(information_object_address=0, rqt=3, frz=1),
               s.IEC104_IO_C_CI_NA_1_IOA(information_object_address=0, rqt=3, frz=0)):
        p.send(bytes(s.IEC104_I_Message_SingleIOA(cot=s.IEC104_COT_ACT, common_asdu_address=41025, io=io))[6:])
    while len(scaled) < 20:
        frame = p.frame()
        m = s.iec104_decode(frame)
        if not isinstance(m, (s.IEC104_I_Message_SingleIOA, s.IEC104_I_Message_SeqIOA)):
            continue
        p.got += 1
        p.socket.sendall(bytes(s.IEC104_S_Message(rx_seq_num=p.got)))
        check(m.tx_seq_num == p.got - 1 and m.common_asdu_address == 41025, repr(m))
        check(bytes(m) == frame, "scapy writes the same bytes: %s" % frame.hex())
        seen.setdefault((m.type_id, m.cot), []).append(m)
        if m.type_id == s.IEC104_IO_ID_M_ME_NB_1 and m.cot == 1:
            scaled.append(m.io[0].scaled_value)
    check(scaled == list(range(scaled[0], scaled[0] + 20)), "scaled values: %s" % scaled)
    for kind, cause in ((1, 1), (3, 1), (11, 1), (36, 1), (7, 1), (9, 1), (1, 20), (13, 20), (100, 7), (100, 10),
                        (3, 22), (15, 40), (101, 7), (101, 10)):
        check((kind, cause) in seen, "type %d with cause %d: %s" % (kind, cause, sorted(seen)))
    check([(m.io[0].rqt, m.io[0].frz) for m in seen[(101, 7)]] == [(3, 1), (3, 0)], "freezing and reading are confirmed")
    check((1, 22) not in seen and seen[(15, 40)][0].io[0].information_object_address == 7, "the group and no other")
    check(seen[(100, 7)][0].origin_address == 9 and seen[(36, 1)][0].io[0].information_object_address == 70000,
          "addresses")
    ends_soon(gateway)

    # The other way round.
    listener = socket.create_server(("127.0.0.1", 12404))
    gateway = Gateway(folder, "master", """
nodes = {
	x = { type = "iec60870-5-104"; mode = "master"; address = "127.0.0.1"; port = 12404; ca = 5; reconnect_interval = 0.1;
		in = { signals = ( { asdu_type = "scaled-int"; ioa = 10; }, { asdu_type = "short-float"; ioa = 11; },
			{ name = "q"; part = "quality"; ioa = 11; }, { asdu_type = "scaled-int"; ioa = 12; } ); }; };
	f = { type = "file"; uri = "%s/got.csv"; format = "csv"; out = { flush = true; }; };
};
paths = ( { in = "x"; out = "f"; } );
""" % folder)
    p = Peer(listener.accept()[0])
    check(s.iec104_decode(p.frame()).startdt_act == 1, "the master starts")
    p.socket.sendall(bytes(s.IEC104_U_Message(startdt_con=1)))
    m = s.iec104_decode(p.frame())
    check(m.type_id == s.IEC104_IO_ID_C_IC_NA_1 and m.cot == s.IEC104_COT_ACT and m.io[0].qoi == 20, repr(m))

    def give(io, **more):
        # Sequence numbers are those of the test, scapy's are put in their place.
        p.send(bytes(s.IEC104_I_Message_SingleIOA(cot=s.IEC104_COT_SPONT, common_asdu_address=5, io=io, **more))[6:])

    p.got = 1
    for i in range(30):
        give([s.IEC104_IO_M_ME_NB_1_IOA(information_object_address=10, scaled_value=i - 15),
              s.IEC104_IO_M_ME_NB_1_IOA(information_object_address=12, scaled_value=-i)])
    give(s.IEC104_IO_M_ME_NC_1_IOA(information_object_address=11, scaled_value=-2.25, iv=1, nt=1))
    p.send(bytes(s.IEC104_I_Message_SeqIOA(cot=s.IEC104_COT_SPONT, common_asdu_address=5, information_object_address=10,
                                           io=[s.IEC104_IO_M_ME_NB_1(scaled_value=7)]))[6:])
    file = os.path.join(folder, "got.csv")
    until(lambda: len(rows(file)) == 32, lambda: "samples: %s" % rows(file))
    got = [r[1] for r in rows(file)]
    check(got[:30] == [[i - 15, 0, 0, -i] for i in range(30)], "scaled values: %s" % got)
    check(got[30:] == [[14, -2.25, 0xc0, -29], [7, -2.25, 0xc0, -29]], "quality, sequence: %s" % got[30:])
    # The acknowledgement is one of scapy's, too.
    acknowledged = 0
    while acknowledged < 24:
        m = s.iec104_decode(p.frame())
        check(isinstance(m, s.IEC104_S_Message), repr(m))
        acknowledged = m.rx_seq_num
    gateway.process.send_signal(signal.SIGTERM)
    while True:
        m = s.iec104_decode(p.frame())
        if isinstance(m, s.IEC104_U_Message) and m.stopdt_act:
            break
        acknowledged = m.rx_seq_num
    check(acknowledged == 32, "all is acknowledged before the stop: %d" % acknowledged)
    p.socket.sendall(bytes(s.IEC104_U_Message(stopdt_con=1)))
    check(p.is_closed(), "and then it closes")
    p.socket.close()
    ends_soon(gateway)


SLAVE_OUT = 'out = { signals = ( { asdu_type = "short-float"; ioa = 5; } ); };'
# The example that VILLASnode publishes, anew; then what is right in other forms; then what is not, and
# words of the reason.
SETTINGS = [
    ("""address = "0.0.0.0"; port = 2404; ca = 41025; low_priority_queue = 100; high_priority_queue = 100;
	out = { signals = ( { asdu_type = "normalized-float"; with_timestamp = false; ioa = 4202832; },
		{ asdu_type_id = "M_ME_NA_1"; ioa = 4202852; },
		{ asdu_type = "single-point"; with_timestamp = true; ioa = 4206948; } ); };""", None),
    ("""out = { duplicate_ioa_is_sequence = true;
	signals = { count = 30; asdu_type_id = "M_ME_TF_1"; ioa = 4202832; }; };""", None),
    ("apci_t0 = 30; apci_t1 = 15; apci_t2 = 10; apci_t3 = 20; apci_k = 12; apci_w = 8;" + SLAVE_OUT, None),
    ('in = { signals = ( { asdu_type = "step-command"; ioa = 1; } ); };', None),
    ("out = { signals = ( { asdu_type = \"bitstring\"; ioa = 1; }, { part = \"quality\"; ioa = 1; } ); };", None),
    ("apci_t1 = 10; apci_t2 = 10;" + SLAVE_OUT, "t2 has to be less than t1"),
    ("apci_t1 = 0.05;" + SLAVE_OUT, "apci_t1"),
    ("apci_k = 4;" + SLAVE_OUT, "w has to be k at most"),
    ("ca = 0;" + SLAVE_OUT, "ca"),
    ("ca = 65535;" + SLAVE_OUT, "ca"),
    ('out = { signals = "2f"; };', "needs `signals`"),
    ("out = { signals = ( { asdu_type = \"short-float\"; } ); };", "address of its information object"),
    ("out = { signals = ( { ioa = 5; } ); };", "one of asdu_type and asdu_type_id"),
    ("out = { signals = ( { ioa = 5; asdu_type_id = \"M_ME_TF_1\"; with_timestamp = false; } ); };", "with a timestamp"),
    ("out = { signals = ( { ioa = 5; asdu_type = \"normalized-float-plain\"; with_timestamp = true; } ); };",
     "no form with a timestamp"),
    ("out = { signals = ( { ioa = 5; asdu_type_id = \"C_IC_NA_1\"; } ); };", "no type of a signal"),
    ("out = { signals = ( { ioa = 5; asdu_type = \"single-command\"; } ); };", "is a command"),
    ("in = { signals = ( { ioa = 5; asdu_type = \"single-point\"; } ); };", "is a value"),
    ("in = { signals = ( { ioa = 5; asdu_type = \"bitstring-command\"; select = true; } ); };", "never selected"),
    ("out = { signals = ( { ioa = 5; asdu_type = \"single-point\"; }, { ioa = 5; asdu_type = \"single-point\"; } ); };",
     "two signals have the address 5"),
    ("out = { signals = { count = 2; ioa = 5; asdu_type = \"single-point\"; }; };", "duplicate_ioa_is_sequence"),
    ("out = { duplicate_ioa_is_sequence = true; signals = { count = 2; ioa = 16777215; asdu_type = \"single-point\"; }; };",
     "beyond the highest"),
    ("out = { signals = ( { ioa = 5; part = \"quality\"; } ); };", "no signal in front"),
    ('out = { signals = ( { asdu_type = "integrated-total"; ioa = 1; group = 5; } ); };', "four groups of counters"),
    ('in = { signals = ( { asdu_type = "single-command"; ioa = 1; group = 1; } ); };', "commands are not interrogated"),
    ('mode = "master"; address = "a"; counter_groups = [ 5 ]; in = { signals = ( { ioa = 1; asdu_type = "single-point"; } ); };',
     "has groups of 1 to 4"),
    ('redundancy_groups = ( { peers = [ "a" ]; } );' + SLAVE_OUT, "needs addresses in numbers"),
    ('mode = "master"; address = "a"; redundancy_groups = ( { peers = [ "::1" ]; } ); in = { signals = '
     '( { ioa = 1; asdu_type = "single-point"; } ); };', "is for a slave"),
    ('standby = [ "a" ];' + SLAVE_OUT, "is for a master"),
    ('peers = [ "192.0.2.0/33" ];' + SLAVE_OUT, "192.0.2.0/33"),
    ('peers = [ "rtu.example" ];' + SLAVE_OUT, "rtu.example"),
    ("low_priority_queue = 1; out = { signals = ( { ioa = 1; asdu_type = \"single-point\"; }, "
     "{ ioa = 2; asdu_type = \"double-point\"; } ); };", "takes 2 ASDUs"),
    ('mode = "master"; out = { signals = ( { ioa = 1; asdu_type = "single-command"; } ); };', "the host of the slave"),
    ('mode = "master"; address = "a"; peers = [ "::1" ]; in = { signals = ( { ioa = 1; asdu_type = "single-point"; } ); };',
     "is for a slave"),
]


def settings(folder):
    """What is right is accepted, what contradicts itself is refused with the reason."""
    file = os.path.join(folder, "check.conf")
    for text, word in SETTINGS:
        with open(file, "w") as f:
            f.write('nodes = { s = { type = "signal"; values = 3; }; x = { type = "iec60870-5-104"; %s }; };\n'
                    'paths = ( %s );\n' % (text, '{ in = "x"; }' if "in =" in text and "out =" not in text else
                                           '{ in = "s"; out = "x"; }'))
        r = subprocess.run([os.environ["BUSBAR"], "check", file], capture_output=True, text=True, timeout=60)
        said = r.stdout + r.stderr
        check(r.returncode == (2 if word else 0) and (word or "") in said, "%s: %d, %s" % (text, r.returncode, said))
        check(word or ("only masters on this host" in said) == ("address" not in text), "the default is told: " + said)


SCENARIOS = {f.__name__: f for f in (settings, account, commands, rules, groups, redundancy, standby, hostile, hostile_group,
                                    hostile_slave, referee)}


def main():
    servers.enter_network()
    for name in sys.argv[1:] or SCENARIOS:
        with tempfile.TemporaryDirectory(prefix="busbar-iec104-") as folder:
            since = time.monotonic()
            try:
                SCENARIOS[name](folder)
            finally:
                servers.end_all(folder)
            print("%s: %.1f s" % (name, time.monotonic() - since), flush=True)


main()
