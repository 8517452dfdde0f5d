#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""c37.py SCENARIO...: synchrophasors between gateways, and with devices and clients of this test,
which have a codec of their own. Environment: BUSBAR, the program.
"""
import binascii
import os
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time

import servers
from gateway_process import Gateway, Gateways, check
from modbus import Capture
from servers import until, whole_lines

DATA, HEADER, CFG1, CFG2, COMMAND, CFG3 = range(6)
OFF, ON, SEND_HEADER, SEND_CFG1, SEND_CFG2, SEND_CFG3 = range(1, 7)
SOC = 1700000000
PMUS = '( { name = "A"; frequency = "f"; rocof = "df"; analog = ( { signal = "n"; } ); } )'


# ---- frames ----

def frame(kind, body, idcode=7, number=0, rate=50, quality=0):
    fraction = quality << 24 | number % rate * 1000000 // rate
    head = struct.pack("!BBHHII", 0xaa, kind << 4 | 1, 16 + len(body), idcode, SOC + number // rate, fraction)
    return head + body + struct.pack("!H", binascii.crc_hqx(head + body, 0xffff))


def name(text):
    return text.encode().ljust(16)


def config(analogs=1, station="DEVICE", changes=1, rate=50, idcode=7):
    """Floats, no phasors."""
    return frame(CFG2, struct.pack("!IH", 1000000, 1) + name(station) +
                 struct.pack("!HHHHH", idcode, 0xe, 0, analogs, 0) +
                 b"".join(name("an%d" % i) for i in range(analogs)) +
                 struct.pack("!I", 1) * analogs + struct.pack("!HHh", 1, changes, rate), idcode)


def data(number, analogs=1, stat=0, idcode=7, quality=0):
    values = [50.0, 0.0] + [float(number + i) for i in range(analogs)]
    return frame(DATA, struct.pack("!H%df" % len(values), stat, *values), idcode, number, quality=quality)


class Frames:
    """The frames that come over a connection."""

    def __init__(self, sock):
        self.sock, self.rest = sock, b""

    def next(self):
        """(type, body), or None at the end."""
        while len(self.rest) < 4 or len(self.rest) < struct.unpack("!H", self.rest[2:4])[0]:
            more = self.sock.recv(65536)
            if not more:
                return None
            self.rest += more
        size = struct.unpack("!H", self.rest[2:4])[0]
        whole, self.rest = self.rest[:size], self.rest[size:]
        check(whole[0] == 0xaa, "a frame begins: %r" % whole[:4])
        check(binascii.crc_hqx(whole[:-2], 0xffff) == struct.unpack("!H", whole[-2:])[0], "its check is right")
        return whole[1] >> 4, whole[14:-2]


# ---- gateways ----

def reader(folder, label, address, more="", more_node=""):
    """A gateway that writes what a device sends to a file."""
    got = os.path.join(folder, label + ".csv")
    g = Gateway(folder, label, """
nodes = {
	x = { type = "c37.118"; in = { address = "%s"; idcode = 7; reconnect_interval = 200; %s }; %s };
	f = { type = "file"; uri = "%s"; format = "csv"; out = { flush = true; }; };
};
paths = ( { in = "x"; out = "f"; } );
""" % (address, more, more_node, got))
    g.got = got
    return g


def writer(folder, label, port, rate=100.0, limit=-1, more="", data_rate=None, pmus=PMUS):
    """A gateway that sends a counter."""
    return Gateway(folder, label, """
nodes = {
	sig = { type = "signal.v2"; rate = %s; limit = %d; in = { signals = (
		{ name = "f"; signal = "constant"; amplitude = 50.0; }, { name = "df"; signal = "constant"; amplitude = 0.0; },
		{ name = "n"; signal = "counter"; } ); }; };
	x = { type = "c37.118"; out = { address = "127.0.0.1:%d"; idcode = 7; data_rate = %s; pmus = %s; %s }; };
};
paths = ( { in = "sig"; out = "x"; } );
""" % (rate, limit, port, data_rate or rate, pmus, more))


def stats(g):
    return g.ask("/node/x")["stats"]


def figures(g):
    return stats(g)["figures"]


def rows(g):
    """Lines of values: [sequence, values...]; of booleans and numbers."""
    if not os.path.exists(g.got):
        return []
    with open(g.got) as f:
        return [[float(v) for v in line.split(",")[3:]] for line in whole_lines(f)
                if line[0] != "#"]


def times(g):
    with open(g.got) as f:
        return [int(line.split(",")[0]) + int(line.split(",")[1]) / 1e9 for line in whole_lines(f)
                if line[0] != "#"]


def left_out(g):
    """Steps of the counter that a loaded machine left out, and samples beyond the rate."""
    return g.ask("/node/sig")["stats"]["missed"] + figures(g)["thinned"]


def say(*gateways):
    return "; ".join("%s %s" % (figures(g), open(g.log).read()[-700:]) for g in gateways)


def await_rows(g, true, what):
    until(lambda: true(rows(g)), lambda: "%s: %s %s" % (what, rows(g)[-3:], say(g)), 30)


def end_soon(g, statuses=(0,)):
    since = time.monotonic()
    log = g.end(statuses)
    check(time.monotonic() - since < 2.5, "the gateway ends in time: %.1f s" % (time.monotonic() - since))
    return log


def log_has(g, text):
    with open(g.log) as f:
        return text in f.read()


# ---- a device of this test ----

class Device(threading.Thread):
    """Answers commands over TCP, and sends what the scenario says."""

    def __init__(self, port=4712):
        super().__init__(daemon=True)
        self.listener = socket.create_server(("127.0.0.1", port))
        self.port, self.analogs, self.station, self.changes = port, 1, "DEVICE", 1
        self.commands, self.on, self.silent, self.conn = [], threading.Event(), False, None
        self.start()

    def run(self):
        while True:
            try:
                self.conn, _ = self.listener.accept()
            except OSError:
                return
            self.conn.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            frames = Frames(self.conn)
            try:
                while (f := frames.next()):
                    self.answer(f)
            except OSError:
                pass
            self.on.clear()
            self.conn.close()

    def answer(self, f):
        check(f[0] == COMMAND, "a client sends commands")
        which = struct.unpack("!H", f[1][:2])[0]
        self.commands.append(which)
        if self.silent:
            return
        if which == SEND_HEADER:
            self.conn.sendall(frame(HEADER, b"device \x1b of a test"))
        elif which == SEND_CFG2:
            self.conn.sendall(config(self.analogs, self.station, self.changes))
        elif which in (ON, OFF):
            (self.on.set if which == ON else self.on.clear)()

    def await_on(self):
        check(self.on.wait(30), "data are asked for: %s" % self.commands)

    def send(self, *frames):
        self.conn.sendall(b"".join(frames))

    def close(self):
        self.on.clear()
        self.conn.shutdown(socket.SHUT_RDWR)


# ---- scenarios ----

def pair(folder):
    """Two clients of one server read all samples that it was given while they wanted data."""
    with Gateways() as g:
        g.append(writer(folder, "w", 4712, rate=200.0, limit=300, more="testing = true;"))
        # The first one that asks for data lets the samples go.
        g.append(reader(folder, "a", "127.0.0.1", more="status = true;"))
        # Steps that a loaded machine leaves out are no samples.
        until(lambda: stats(g[0])["sent"] + g[0].ask("/node/sig")["stats"]["missed"] == 300, lambda: "all are sent: " + say(*g))
        s = stats(g[0])
        await_rows(g[1], lambda r: len(r) >= s["sent"], "all samples arrive")
        got = [r[-1] for r in rows(g[1])]
        check(len(got) == s["sent"] and got == sorted(set(got)) and 0 <= got[0] and got[-1] < 300,
              "each once, in order: %s" % got)
        check(s["figures"]["frames_sent"] == s["sent"] and s["not_sent"] == 0, "all were sent: %s" % s)
        f = figures(g[1])
        check(f["configurations"] == 1 and f["malformed"] == 0 and f["repeated"] == 0, "nothing is wrong: %s" % f)
        log = end_soon(g[1])
        check("configuration of stream 7: stations 1, values 5" in log, "the configuration is told: " + log)
        end_soon(g[0])
        g.clear()
        # Two at a time, and a rate below that of the samples.
        # The configuration of one comes in several frames.
        g.append(writer(folder, "w2", 4713, rate=400.0, data_rate=100, more="cfg3_frame = 64;"))
        for label in ("b", "c"):
            g.append(reader(folder, label, "127.0.0.1:4713", more="cfg3 = true;" if label == "b" else ""))
        for r in g[1:]:
            await_rows(r, lambda r: len(r) >= 150, "both read")
        g[0].ask("/node/sig/stop", "POST")
        last = []

        def still():
            now = [stats(x) for x in g]
            same, last[:] = now == last, now
            time.sleep(0.1)
            return same
        until(still, "all has arrived")
        s = stats(g[0])
        # What each read is what was sent to it.
        check(s["figures"]["frames_sent"] == sum(stats(r)["received"] for r in g[1:]), "every frame arrives: %s" % say(*g))
        check(s["sent"] + s["not_sent"] == g[0].ask("/node/sig")["stats"]["received"], "every sample is accounted for: %s" % s)
        check(s["figures"]["thinned"] > 0, "some are left out: %s" % s)
        for r in g[1:]:
            stamps = times(r)
            check(len(stamps) <= (stamps[-1] - stamps[0]) * 100 + 3, "no more than the rate says: %s" % stamps)
        check(s["figures"]["clients_behind"] == 0, "nobody is slow: %s" % s)
        f = figures(g[1])
        check(f["malformed"] == 0 and s["figures"]["commands"] == 6, "one CFG-3 was asked for, once: %s %s" % (f, s))
        for x in g:
            log = end_soon(x)
        g.clear()


def restart(folder):
    """A server that is started again is read on, with its gap counted."""
    with Gateways() as g:
        g.append(reader(folder, "r", "127.0.0.1"))
        g.append(writer(folder, "w1", 4712))
        await_rows(g[0], lambda r: len(r) >= 30, "samples arrive")
        check(g[0].ask("/node/x")["state"] == "connected", "the node says so")
        g[1].process.kill()
        g[1].process.wait()
        until(lambda: g[0].ask("/node/x")["state"] == "pending-connect", "the end is seen")
        g[1] = writer(folder, "w2", 4712)
        before = len(rows(g[0]))
        await_rows(g[0], lambda r: len(r) >= before + 30, "samples go on")
        f = figures(g[0])
        check(f["connections"] == 2 and f["configurations"] >= 1 and f["frames_missing"] > 0, "as counted: %s" % f)
        for x in g:
            end_soon(x)
        g.clear()


def device(folder):
    """Frames in pieces and together, damaged ones, configurations that change, a device that goes."""
    d = Device()
    with Gateways() as g:
        g.append(reader(folder, "r", "localhost", more="header = true; timeout = 10.0;"))
        d.await_on()
        check(d.commands == [OFF, SEND_HEADER, SEND_CFG2, ON], "the way to data: %s" % d.commands)
        # Byte by byte, then many at once, then with something between.
        for byte in data(0) + data(1):
            d.send(bytes([byte]))
        d.send(*(data(i) for i in range(2, 40)))
        d.send(b"no frame", data(40), data(41)[:-1] + b"\0", data(42), data(44, idcode=8), data(43), data(43))
        await_rows(g[0], lambda r: len(r) >= 43, "frames are found")
        want = [i for i in range(44) if i != 41]
        check([r[-1] for r in rows(g[0])] == want, "all good ones: %s" % rows(g[0])[-5:])
        until(lambda: figures(g[0])["repeated"] == 1, "the last one is read")
        f = figures(g[0])
        check(f["malformed"] == 2 and f["foreign"] == 1 and f["frames_missing"] == 1, "as counted: %s" % f)
        check(stats(g[0])["lost"] == 1, "a gap in the sequence: %s" % stats(g[0]))
        check(log_has(g[0], "header of the device: device . of a test"), "the header is logged")
        # It says that its configuration changes, and then it has three values more.
        d.send(data(44, stat=0x0400))
        until(lambda: d.commands[4:] == [SEND_CFG2], lambda: "it is asked again: %s" % d.commands)
        d.analogs, d.changes = 4, 2
        d.send(data(45, analogs=4))
        until(lambda: figures(g[0])["configurations"] == 2, "another configuration is used")
        d.send(data(46, analogs=4))
        await_rows(g[0], lambda r: len(r[-1]) == 3 + 4, "values of the new one")
        check(log_has(g[0], "another configuration of stream 7: stations 1, values 6"), "and told")
        # Errors, time quality.
        d.send(data(47, analogs=4, stat=0xa000, quality=0x1b))
        until(lambda: figures(g[0])["invalid"] == 1, "an error is counted")
        f = figures(g[0])
        check(f["not_in_sync"] == 1 and f["time_quality"] == 11, "and what it says of its clock: %s" % f)
        # It goes and comes again.
        d.close()
        d.await_on()
        d.send(data(60, analogs=4))
        await_rows(g[0], lambda r: r[-1][3] == 60, "it is read on")
        end_soon(g[0])
        until(lambda: d.commands[-1] == OFF and not d.on.is_set(), "at the end data are not wanted any more")
        # It hangs: the connection stays, nothing comes.
        g[0] = reader(folder, "h", "localhost", more="timeout = 0.5;")
        d.await_on()
        until(lambda: figures(g[0])["silent"] >= 1 and figures(g[0])["connections"] >= 2, "it is called again")
        check("no data came for 0.5 s" in end_soon(g[0]), "which is told")
        g.clear()
    d.listener.close()


def concentrator(folder):
    """Streams of three devices in one sample by their times; what is late or missing is counted and
    marked."""
    devices = [Device(4712 + i) for i in range(3)]
    devices[1].analogs = 2
    got = os.path.join(folder, "joined.csv")
    signals = ", ".join('{ name = "s%d"; type = "float"; }' % i for i in range(3 + 4 + 3))
    with Gateways() as g:
        g.append(Gateway(folder, "pdc", """
nodes = {
	x = { type = "c37.118"; in = { wait = 0.4; reconnect_interval = 200;
		streams = ( { address = "127.0.0.1"; idcode = 7; values = 3; },
			{ address = "127.0.0.1:4713"; idcode = 7; values = 4; },
			{ address = "127.0.0.1:4714"; idcode = 7; values = 3; } );
		signals = ( %s, { name = "present"; type = "integer"; } ); }; };
	f = { type = "file"; uri = "%s"; format = "csv"; out = { flush = true; }; };
};
paths = ( { in = "x"; out = "f"; } );
""" % (signals, got)))
        g[0].got = got
        for d in devices:
            d.await_on()
        until(lambda: g[0].ask("/node/x")["state"] == "connected", "all three send")

        def row(number, present):
            """What the values have to be; None: not a number."""
            values = []
            for i, d in enumerate(devices):
                here = [50.0, 0.0] + [float(number + k) for k in range(d.analogs)]
                values += here if present >> i & 1 else [None] * len(here)
            return values + [float(present)]

        def seen():
            return [[None if v != v else v for v in r[1:]] for r in rows(g[0])]

        def send(which, *numbers):
            devices[which].send(*(data(i, devices[which].analogs) for i in numbers))
        # Together, one after the other, and one that is far behind.
        for i in range(5):
            for which in range(3):
                send(which, i)
        send(0, *range(5, 10))
        send(1, *range(5, 10))
        time.sleep(0.05)
        send(2, *range(5, 10))
        want = [row(i, 7) for i in range(10)]
        await_rows(g[0], lambda r: len(r) >= 10, "steps are joined")
        check(seen() == want, "each has the values of one time: %s" % seen()[-6:])
        check([round((t - SOC) * 50) for t in times(g[0])] == list(range(10)), "and that time")
        # A frame is missing: the stream has gone on, so that nobody waits.
        send(0, 10, 11)
        send(1, 11)
        send(2, 10, 11)
        want += [row(10, 5), row(11, 7)]
        await_rows(g[0], lambda r: len(r) >= 12, "a step without it goes out")
        check(seen() == want, "with a mark: %s" % seen()[-2:])
        f = figures(g[0])
        check((f["steps"], f["steps_incomplete"], f["frames_absent"], f["too_late"]) == (12, 1, 1, 0), "counted: %s" % f)
        # One does not come in time, and then comes too late.
        send(0, 12)
        send(1, 12)
        await_rows(g[0], lambda r: len(r) >= 13, "the waiting time ends")
        send(2, 12, 13)
        until(lambda: figures(g[0])["too_late"] == 1, "the late one is counted")
        send(0, 13)
        send(1, 13)
        want += [row(12, 3), row(13, 7)]
        await_rows(g[0], lambda r: len(r) >= 14, "it goes on")
        check(seen() == want, "late values are left out: %s" % seen()[-2:])
        # A device whose clock is wrong harms none of the others.
        for i in range(14, 20):
            send(0, i)
            send(2, i + 90000)
            send(1, i)
        await_rows(g[0], lambda r: len([v for v in r if v[-1] == 3]) == 7, "the others go on")
        check(figures(g[0])["too_late"] == 1, "none of them is late: %s" % figures(g[0]))
        # One that goes is not waited for; nothing but its values is missing.
        devices[2].silent = True
        devices[2].close()
        until(lambda: g[0].ask("/node/x")["state"] == "pending-connect", "it is away")
        send(0, 20, 21)
        send(1, 20, 21)
        await_rows(g[0], lambda r: row(20, 3) in seen() and row(21, 3) in seen(), "steps of two streams")
        check(stats(g[0])["lost"] == 0, "the numbers have no gap: %s" % stats(g[0]))
        end_soon(g[0])
        g.clear()
    for d in devices:
        # Its thread waits there.
        d.listener.shutdown(socket.SHUT_RDWR)
        d.listener.close()


def udp(folder):
    """Commands and data over UDP, and data only."""
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.bind(("127.0.0.1", 4713))
    s.settimeout(30)
    with Gateways() as g:
        g.append(reader(folder, "u", "127.0.0.1:4713", more='transport = "udp"; timeout = 0.5; status = true;'))
        seen = []
        while ON not in seen:
            bytes_, peer = s.recvfrom(65536)
            seen.append(struct.unpack("!H", bytes_[14:16])[0])
            # The first question is lost.
            if seen[-1] == SEND_CFG2 and seen.count(SEND_CFG2) > 1:
                s.sendto(config(), peer)
        for i in (0, 1, 2, 5, 3, 4, 5, 6):
            s.sendto(data(i), peer)
        s.sendto(data(7)[:-3], peer)
        other = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        other.sendto(data(8), peer)
        s.sendto(data(9), peer)
        await_rows(g[0], lambda r: r and r[-1][-1] == 9, "data arrive")
        f = figures(g[0])
        check(f["late"] == 2 and f["repeated"] == 1 and f["malformed"] == 1, "as counted: %s" % f)
        check([r[-1] for r in rows(g[0])] == [0, 1, 2, 5, 6, 9], "late ones are dropped: %s" % rows(g[0]))
        end_soon(g[0])
        g.clear()
        s.close()
        d = Device(4714)
        g.append(reader(folder, "both", "127.0.0.1:4714", more='transport = "both"; data_address = "127.0.0.1:4720";'))
        d.await_on()
        for i in range(20):
            other.sendto(data(i), ("127.0.0.1", 4720))
        await_rows(g[0], lambda r: len(r) == 20, "data arrive by UDP")
        end_soon(g[0])
        g.clear()
        d.listener.close()


def connect(port=4712):
    s = socket.create_connection(("127.0.0.1", port))
    s.settimeout(30)
    return s


def command(which, idcode=7, more=b""):
    return frame(COMMAND, struct.pack("!H", which) + more, idcode)


def clients(folder):
    """Each command is obeyed, for the client that sent it; nonsense is not."""
    with Gateways() as g:
        g.append(writer(folder, "w", 4712, more='header = "about us"; max_clients = 4;'))
        one, two = connect(), connect()
        f1, f2 = Frames(one), Frames(two)
        # In pieces, and several at once.
        for byte in command(SEND_HEADER):
            one.sendall(bytes([byte]))
        check(f1.next() == (HEADER, b"about us"), "the header")
        one.sendall(command(SEND_CFG1) + command(SEND_CFG2) + command(SEND_CFG3) + command(ON))
        kinds = [f1.next() for _ in range(3)]
        check([k for k, _ in kinds] == [CFG1, CFG2, CFG3], "the configurations")
        check(kinds[1][1][6:22] == name("A") and kinds[1][1][-2:] == struct.pack("!h", 100), "what they say")
        numbers = [struct.unpack("!f", f1.next()[1][-4:])[0] for _ in range(50)]
        check(numbers == sorted(set(numbers)) and numbers[-1] - numbers[0] - 49 <= left_out(g[0]), "data: %s" % numbers)
        # The other one gets nothing until it asks.
        two.sendall(command(ON, idcode=8) + command(EXTENDED, more=b"\0" * 100) + b"nonsense" + command(ON)[:-1] + b"\0")
        until(lambda: figures(g[0])["foreign"] == 2 and figures(g[0])["malformed"] >= 1, lambda: "not obeyed: %s" % say(g[0]))
        two.settimeout(0.2)
        try:
            check(not two.recv(1), "no data without a command")
        except TimeoutError:
            pass
        two.settimeout(30)
        two.sendall(command(ON))
        check(f2.next()[0] == DATA, "its data")
        two.sendall(command(OFF))
        two.sendall(command(SEND_HEADER))
        while f2.next()[0] != HEADER:
            pass
        # More than there may be are turned away.
        others = [connect(), connect()]
        until(lambda: figures(g[0])["clients"] == 4, "four are there")
        check(connect().recv(1) == b"", "the fifth is turned away")
        for o in others:
            o.close()
        until(lambda: figures(g[0])["clients"] == 2, "two go")
        # One resets its connection.
        one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        one.close()
        until(lambda: figures(g[0])["clients"] == 1, "another one goes")
        until(lambda: stats(g[0])["losses"]["absent"] > 0, lambda: "what nobody wants is counted: " + say(g[0]))
        end_soon(g[0])
        g.clear()
        check(two.recv(1) == b"", "the connection is closed")


EXTENDED = 8


def slow(folder):
    """A client that does not read is disconnected, or loses frames; another one gets all."""
    # The last value counts; the others make frames long.
    pmus = PMUS.replace('{ signal = "n"; }', ", ".join(['{ signal = "f"; }'] * 400 + ['{ signal = "n"; }']))
    for policy in ("disconnect", "skip"):
        with Gateways() as g:
            g.append(writer(folder, "w-" + policy, 4712, rate=2000.0, pmus=pmus, more='queue = 65536; slow = "%s";' % policy))
            lazy, good = socket.socket(), connect()
            lazy.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            lazy.connect(("127.0.0.1", 4712))
            lazy.sendall(command(ON))
            good.sendall(command(ON))
            frames, missing, last = Frames(good), 0, None
            end = time.monotonic() + 40
            while figures(g[0])["clients_behind"] < (1 if policy == "disconnect" else 10):
                check(time.monotonic() < end, "a client falls behind: %s" % say(g[0]))
                for _ in range(100):
                    n = struct.unpack("!f", frames.next()[1][-4:])[0]
                    missing += 0 if last is None else n - last - 1
                    last = n
            f = figures(g[0])
            check(missing <= left_out(g[0]), "the good one gets all: %s missing, %s" % (missing, f))
            check(f["clients_dropped"] == (policy == "disconnect"), "as the policy says: %s" % f)
            if policy == "disconnect":
                until(lambda: figures(g[0])["clients"] == 1, "it is disconnected")
            end_soon(g[0])
            g.clear()


def silent(folder):
    """Nodes end in time whatever the peer does."""
    with Gateways() as g:
        # Takes connections and says nothing; does not even take them.
        mute = socket.create_server(("127.0.0.1", 4730))
        full = socket.create_server(("127.0.0.1", 4731), backlog=0)
        held = [socket.socket() for _ in range(3)]
        for h in held:
            h.setblocking(False)
            h.connect_ex(("127.0.0.1", 4731))
        g.append(reader(folder, "mute", "127.0.0.1:4730", more="timeout = 0.3;"))
        until(lambda: log_has(g[0], "no configuration came after 3 questions; is the IDCODE 7 its own?"),
              lambda: "it is told: " + say(g[0]))
        g.append(reader(folder, "full", "127.0.0.1:4731"))
        g.append(reader(folder, "nobody", "127.0.0.1:4732"))
        g.append(reader(folder, "unknown", "no-such-host.invalid"))
        until(lambda: figures(g[2])["unreachable"] >= 2, "it is tried again")
        # A write that waits for a client.
        g.append(writer(folder, "w", 4712, more="testing = true;"))
        until(lambda: g[4].ask("/node/sig")["stats"]["received"] >= 1, "samples are made")
        for x in g:
            end_soon(x, (0, 3))
        g.clear()
        mute.close()
        full.close()


def flood(folder):
    """One that sends what is no frame does not hold up others, nor fill the log; those that ask for
    nothing do not keep all places."""
    with Gateways() as g:
        g.append(writer(folder, "w", 4712, more="max_clients = 3;"))
        idle = [connect()]
        good, bad = connect(), connect()
        good.sendall(command(ON))
        frames = Frames(good)
        bad.setblocking(False)
        end = time.monotonic() + 5
        # Each second byte begins a frame that is as long as most of the buffer.
        for _ in range(200):
            try:
                bad.send(b"\xaa\x41" * 50000)
            except BlockingIOError:
                pass
            check(frames.next() and time.monotonic() < end, "data come meanwhile")
        bad.close()
        until(lambda: figures(g[0])["clients"] == 2, "the flood is over")
        for _ in range(300):
            with connect() as s:
                s.sendall(command(SEND_CFG2))
                check(Frames(s).next() is not None, "it is answered")
        with open(g[0].log) as f:
            lines = f.read().count("127.0.0.1:")
        check(lines < 300, "%d lines for 600 events" % lines)
        idle.append(connect())

        def place():
            with connect() as s:
                s.sendall(command(SEND_CFG2))
                try:
                    return s.recv(1)
                except ConnectionResetError:
                    return False
        until(place, "one that is idle makes room", 20)
        check(frames.next() and figures(g[0])["not_accepted"] >= 1, "not the one that gets data: %s" % figures(g[0]))
        # A device that has another configuration for each frame.
        device = Device(4713)
        g.append(reader(folder, "r", "127.0.0.1:4713"))
        device.await_on()
        for i in range(600):
            device.send(config(station="S%d" % i), data(i))
        until(lambda: figures(g[1])["configurations"] == 601, "all are used")
        with open(g[1].log) as f:
            lines = f.read().count("another configuration")
        check(lines < 300, "%d lines for 600 configurations" % lines)
        for x in g:
            end_soon(x)
        g.clear()


def datagrams(folder):
    """A server by UDP: to configured destinations unasked, to clients of its peers that ask, and to the
    hosts of connections; to nobody else, and not to those that are gone."""
    capture = Capture(folder + "/packets")
    capture.start()
    there = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    there.bind(("127.0.0.1", 4713))
    there.settimeout(30)

    def at(address, port):
        s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        s.bind((address, port))
        s.connect(("127.0.0.1", 4715))
        s.settimeout(30)
        return s

    def take(s):
        whole = s.recv(65536)
        check(binascii.crc_hqx(whole[:-2], 0xffff) == struct.unpack("!H", whole[-2:])[0], "its check is right")
        return whole[1] >> 4, whole[14:-2]
    with Gateways() as g:
        g.append(writer(folder, "w", 4712, rate=100.0, more='udp_address = "*:4715"; destinations = [ "127.0.0.1:4713" ]; '
                        'config_interval = 0.5; peers = [ "127.0.0.1", "127.0.3.0/24" ]; cfg3_frame = 64; data_port = 4714;'))
        first = [take(there) for _ in range(120)]
        kinds = [kind for kind, _ in first]
        check(kinds[0] == CFG2 and 2 <= kinds.count(CFG2) <= 5 and kinds.count(DATA) > 100, "unasked: %s" % kinds)
        numbers = [struct.unpack("!f", body[-4:])[0] for kind, body in first if kind == DATA]
        check(numbers == sorted(set(numbers)), "each frame once: %s" % numbers)
        # Who is not among the peers gets nothing, whatever it asks for; nor does a victim.
        stranger = at("127.0.0.2", 0)
        for which in (ON, SEND_CFG2, SEND_HEADER):
            stranger.send(command(which))
        until(lambda: figures(g[0])["foreign"] == 3, "strangers are counted")
        stranger.setblocking(False)
        try:
            raise AssertionError("a stranger is answered: %s" % stranger.recv(100))
        except BlockingIOError:
            pass
        check(figures(g[0])["udp_clients"] == 0, "nobody gets data")
        # One that may ask.
        peer = at("127.0.3.1", 0)
        peer.send(command(SEND_CFG2))
        check(take(peer)[0] == CFG2, "a peer is answered")
        peer.send(command(SEND_CFG3))
        parts = [take(peer), take(peer)]
        check([(kind, body[:2]) for kind, body in parts] == [(CFG3, b"\0\1"), (CFG3, b"\xff\xff")],
              "in datagrams of one frame: %s" % parts)
        peer.send(command(ON))
        while take(peer)[0] != DATA:
            pass
        check(figures(g[0])["udp_clients"] == 1, "it gets data")
        peer.send(command(OFF))
        until(lambda: figures(g[0])["udp_clients"] == 0, "until it wants no more")
        # One that goes without a word.
        peer.send(command(ON))
        until(lambda: figures(g[0])["udp_clients"] == 1, "it gets data again")
        peer.close()
        until(lambda: figures(g[0])["udp_clients"] == 0, "its host says that nobody listens: " + say(g[0]))
        # Gateways at the other end.
        g.append(reader(folder, "u", "127.0.0.1:4715", more='transport = "udp";'))
        g.append(reader(folder, "b", "127.0.0.1:4712", more='transport = "both"; data_address = "*:4714"; cfg3 = true;'))
        for r in g[1:]:
            await_rows(r, lambda r: len(r) >= 50, "gateways read it")
            check(figures(r)["malformed"] == 0 and figures(r)["foreign"] == 0, "without faults: %s" % figures(r))
        f = figures(g[0])
        check(f["udp_clients"] == 1 and f["clients"] == 1 and f["malformed"] == 0, "each in its way: %s" % f)
        for x in g[1:]:
            end_soon(x)
        until(lambda: figures(g[0])["udp_clients"] == 0 and figures(g[0])["clients"] == 0, "both say that they go")
        # A TCP client that is no peer.
        s = socket.create_connection(("127.0.0.1", 4712), 20, ("127.0.0.9", 0))
        check(s.recv(1) == b"", "is turned away")
        end_soon(g[0])
        g.clear()
    capture.end()
    if not shutil.which("tshark"):
        print("not tried: tshark is not installed")
        return
    out = subprocess.run(["tshark", "-r", folder + "/packets", "-d", "udp.port==4713,synphasor", "-d", "udp.port==4715,synphasor",
                          "-d", "udp.port==4714,synphasor", "-Y", "udp && synphasor", "-T", "fields", "-e", "synphasor.frtype",
                          "-e", "_ws.malformed"], check=True, capture_output=True, text=True, timeout=60).stdout.splitlines()
    lines = [line.split("\t") for line in out]
    # tshark reads the parts of a CFG-3 as if each were a whole.
    bad = [r for r in lines if r[1] and int(r[0], 0) != CFG3]
    check(len(lines) > 200 and not bad, "tshark reads the frames: %s" % bad[:3])


SCENARIOS = {"datagrams": datagrams, "pair": pair, "restart": restart, "device": device, "concentrator": concentrator, "udp": udp, "clients": clients,
             "slow": slow, "silent": silent, "flood": flood}


def main():
    servers.enter_network()
    for scenario in sys.argv[1:] or SCENARIOS:
        with tempfile.TemporaryDirectory(prefix="busbar-c37-") as folder:
            since = time.monotonic()
            SCENARIOS[scenario](folder)
            print("%s: %.1f s" % (scenario, time.monotonic() - since), flush=True)


main()
