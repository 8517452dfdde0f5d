#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""A gateway that is a Modbus server, with clients: other gateways, pymodbus, mbpoll, and those of this
test that do what they should not. Arguments: scenarios."""
import os
import select
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import termios
import threading
import time
import tty

import servers
from gateway_process import Gateway, check
from modbus import PYTHON, Capture, log_of, rows_of, stats
from modbus_server import crc
from servers import until

PORT = 502
OUT = ('out = { signals = ( { name = "u"; type = "float"; address = 10; word_order = "high_first"; table = "input"; }, '
       '{ name = "n"; type = "integer"; address = 20; signed = true; }, '
       '{ name = "on"; type = "boolean"; address = 3; table = "discrete"; } ); };')
IN = ('in = { signals = ( { name = "p"; type = "float"; address = 100; word_order = "high_first"; }, '
      '{ name = "k"; type = "integer"; address = 102; init = 7; }, { name = "run"; type = "boolean"; address = 1; '
      'table = "coil"; }, { name = "b"; type = "boolean"; address = 104; bit = 3; } ); %s };')


class Client:
    """Requests over TCP, as bytes."""

    def __init__(self, port=PORT, source="127.0.0.1"):
        self.socket = socket.create_connection(("127.0.0.1", port), 20, (source, 0))
        self.number = 0

    def send(self, pdu, unit=255):
        self.number = self.number + 1 & 0xffff
        self.socket.sendall(struct.pack(">HHHB", self.number, 0, len(pdu) + 1, unit) + pdu)

    def answer(self, unit=255):
        number, protocol, length, got = struct.unpack(">HHHB", self.take(7))
        check((number, protocol, got) == (self.number, 0, unit), "the head of an answer")
        return self.take(length - 1)

    def ask(self, pdu, unit=255):
        self.send(pdu, unit)
        return self.answer(unit)

    def take(self, count):
        data = b""
        while len(data) < count:
            more = self.socket.recv(count - len(data))
            check(more, "the connection goes on")
            data += more
        return data

    def is_closed(self, seconds=20):
        self.socket.settimeout(seconds)
        try:
            return self.socket.recv(1) == b""
        except ConnectionError:
            return True
        except socket.timeout:
            return False


def read(function, address, count=1):
    return struct.pack(">BHH", function, address, count)


def write(address, *values):
    return struct.pack(">BHHB%dH" % len(values), 16, address, len(values), 2 * len(values), *values)


def figures(gateway):
    return stats(gateway)["figures"]


def server(folder, name="server", more="", out=OUT, into="", source="", transport='transport = "tcp"; address = "127.0.0.1";',
           before=()):
    """A file is written to the registers, what clients write goes to another file."""
    rows = os.path.join(folder, name + "-rows.csv")
    open(rows, "w").close()
    g = Gateway(folder, name, """
nodes = {
	r = { type = "file"; uri = "%s"; format = "csv"; in = { eof = "wait"; rate = 200.0; signals = "fib"; }; };
	x = { type = "modbus"; mode = "server"; %s %s %s %s };
	f = { type = "file"; uri = "%s/%s-got.csv"; format = "csv"; out = { flush = true; }; };
};
paths = ( { in = "r"; out = "x"; }, { in = "x"; out = "f"; %s } );
""" % (rows, transport, more, out, IN % into, folder, name, source), before=before)
    g.rows, g.given = rows, 0
    g.got = lambda: [[float(v) for v in r[4:]] for r in rows_of("%s/%s-got.csv" % (folder, name))]
    return g


def give(gateway, *rows):
    with open(gateway.rows, "a") as f:
        for row in rows:
            f.write("%d,0,0.0,%d,%s\n" % (1700000000, gateway.given, ",".join(map(repr, row))))
            gateway.given += 1


def has_values(gateway):
    """A row is in the registers."""
    give(gateway, [1.5, -3, 1])
    c = Client()
    until(lambda: c.ask(read(2, 3)) == b"\x02\x01\x01", "the row is in the registers")
    return c


# ---- scenarios ----

RULES = [
    # request, answer
    (read(4, 10, 2), struct.pack(">BBf", 4, 4, 1.5)),
    (read(3, 20), struct.pack(">BBh", 3, 2, -3)),
    (read(3, 102), b"\x03\x02\x00\x07"),
    (read(1, 1), b"\x01\x01\x00"),
    (read(4, 11), struct.pack(">BBH", 4, 2, 0)),
    # Functions that are not there.
    (b"\x07", b"\x87\x01"), (b"\x2b\x0e\x01\x00", b"\xab\x01"), (b"\x08\x00\x00\x12\x34", b"\x88\x01"),
    # Registers that are not there, or belong to nobody, or to the node.
    (read(4, 12), b"\x84\x02"), (read(4, 9, 2), b"\x84\x02"), (read(4, 10, 3), b"\x84\x02"),
    (read(3, 100, 6), b"\x83\x02"), (read(3, 65535), b"\x83\x02"), (read(3, 65535, 2), b"\x83\x02"),
    (write(20, 1), b"\x90\x02"), (b"\x06\x00\x14\x00\x01", b"\x86\x02"), (b"\x05\x00\x03\xff\x00", b"\x85\x02"),
    (write(500, 1), b"\x90\x02"),
    # Half of a value.
    (write(100, 1), b"\x90\x02"), (write(101, 1, 2), b"\x90\x02"), (b"\x06\x00\x65\x00\x01", b"\x86\x02"),
    # Numbers that cannot be.
    (read(3, 20, 0), b"\x83\x03"), (read(3, 20, 126), b"\x83\x03"), (read(2, 3, 2001), b"\x82\x03"),
    (b"\x05\x00\x01\x12\x34", b"\x85\x03"), (write(100, 1, 2)[:-1], b"\x90\x03"), (read(3, 20)[:-1], b"\x83\x03"),
    # Written, and read back.
    (b"\x06\x00\x66\x00\x09", b"\x06\x00\x66\x00\x09"), (b"\x05\x00\x01\xff\x00", b"\x05\x00\x01\xff\x00"),
    (b"\x16\x00\x68\xff\xf0\x00\x08", b"\x16\x00\x68\xff\xf0\x00\x08"),
    (struct.pack(">BHHHHBHH", 23, 100, 3, 100, 2, 4, 0x3f80, 0), struct.pack(">BBHHH", 23, 6, 0x3f80, 0, 9)),
    (struct.pack(">BHHBB", 15, 1, 1, 1, 0), b"\x0f\x00\x01\x00\x01"),
    # What is refused in part is not written at all.
    (struct.pack(">BHHHHBHH", 23, 300, 1, 100, 2, 4, 1, 1), b"\x97\x02"),
]
RULES_GOT = [[0, 9, 0, 0], [0, 9, 1, 0], [0, 9, 1, 1], [1, 9, 1, 1], [1, 9, 0, 1]]


def rules(folder):
    """Each request has the answer of the specification, and only a good one to write is a sample."""
    g = server(folder)
    c = Client()
    # Nobody has given the node a value, so that there is none to be read.
    check(c.ask(read(4, 10, 2)) == b"\x84\x06", "there is no value yet")
    c = has_values(g)
    for request, wanted in RULES:
        got = c.ask(request)
        check(got == wanted, "%s: %s is not %s" % (request.hex(), got.hex(), wanted.hex()))
    # Several at once, in pieces.
    data = b"".join(struct.pack(">HHHB", i, 0, 6, 5) + read(3, 102) for i in range(100))
    for i in range(0, len(data), 13):
        c.socket.sendall(data[i:i + 13])
    for i in range(100):
        check(c.take(11) == struct.pack(">HHHB", i, 0, 5, 5) + b"\x03\x02\x00\x09", "each has its answer, in order")
    until(lambda: len(g.got()) == len(RULES_GOT), lambda: "samples of what was written: %s" % g.got())
    check(g.got() == RULES_GOT, "values: %s" % g.got())
    f = figures(g)
    check(f["writes"] == len(RULES_GOT) and f["illegal_function"] == 3 and f["busy"] >= 1, str(f))
    # A value that its register cannot hold is refused, and the others with it.
    give(g, [2.0, 70000, 0])
    until(lambda: stats(g)["losses"]["format"] == 1, lambda: "it is counted: %s" % log_of(g))
    check(c.ask(read(4, 10, 2)) == struct.pack(">BBf", 4, 4, 1.5), "and nothing is written")
    g.end((3,))


def old(folder):
    """Values that are too old, no path that reads, another unit, gaps, a path that takes nothing."""
    g = server(folder, more="unit = 9; zero_gaps = true;", out=OUT.replace("out = {", "out = { max_age = 0.3;"),
               into="queuelen = 4;")
    give(g, [1.5, -3, 1])
    c = Client()
    until(lambda: c.ask(read(2, 3), 9) == b"\x82\x04", "the value is too old", 10)
    check(c.ask(read(3, 102), 9) == b"\x03\x02\x00\x07", "what clients write is not")
    check(c.ask(read(3, 21, 3), 9) == b"\x03\x06\0\0\0\0\0\0", "gaps are 0")
    check(c.ask(read(3, 104, 2), 9) == b"\x83\x02", "behind the last one is nothing")
    check(c.ask(read(2, 3), 8) == b"\x82\x0b", "another unit is not there")
    # Nothing is read: a client is told that there is no room.
    g.ask("/node/x/pause", "POST")
    said = [c.ask(b"\x06\x00\x66" + struct.pack(">H", i), 9) for i in range(20)]
    good = sum(a[0] == 6 for a in said)
    check(4 <= good < 20 and said[-1] == b"\x86\x06" and c.ask(read(3, 102), 9)[2:] == struct.pack(">H", good - 1),
          "it is busy when the queue is full: %s" % said)
    g.ask("/node/x/resume", "POST")
    until(lambda: len(g.got()) == good, "all that was confirmed arrives: %s" % g.got())
    check([r[1] for r in g.got()] == list(range(good)), "in order: %s" % g.got())
    # What was confirmed and is not read before the node stops is counted.
    g.ask("/node/x/pause", "POST")
    check(all(c.ask(b"\x06\x00\x66\x00\x01", 9)[0] == 6 for _ in range(3)), "three are confirmed")
    g.ask("/node/x/stop", "POST")
    until(lambda: len(g.got()) - good + figures(g)["overrun"] == 3 and figures(g)["overrun"] > 0,
          lambda: "all are counted: %d, %s" % (len(g.got()) - good, figures(g)))
    g.end()
    g = Gateway(folder, "alone", """
nodes = { s = { type = "signal"; values = 3; rate = 10.0; }; x = { type = "modbus"; mode = "server"; transport = "tcp";
	address = "127.0.0.1"; %s %s }; };
paths = ( { in = "s"; out = "x"; } );
""" % (OUT.replace('type = "integer"; address = 20; signed = true;', 'type = "float"; address = 20;'), IN % ""))
    check(Client().ask(b"\x06\x00\x66\x00\x01") == b"\x86\x04", "no path reads what would be written")
    g.end()


def account(folder):
    """Of several clients that write at the same time each confirmed request is one sample."""
    g = server(folder)
    sent = [[] for _ in range(4)]

    def work(which):
        c = Client()
        for i in range(300):
            value = which * 1000 + i
            a = c.ask(write(100, *struct.unpack(">HH", struct.pack(">f", value))) if i % 2 else
                      write(102, value))
            if a[0] == 16:
                sent[which].append(value)
    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join(60)
    count = sum(map(len, sent))
    until(lambda: len(g.got()) == count, lambda: "%d of %d: %s" % (len(g.got()), count, figures(g)))
    check(count > 100 and figures(g)["writes"] == count and figures(g)["overrun"] == 0, str(figures(g)))
    seen, last = [set() for _ in range(4)], [0, 7]
    for row in g.got():
        changed = [v for v, before in zip(row[:2], last) if v != before]
        check(len(changed) <= 1, "a sample is one request: %s after %s" % (row, last))
        for v in changed:
            seen[int(v) // 1000].add(int(v) % 1000)
        last = row[:2]
    for which in range(4):
        wanted = {v % 1000 for v in sent[which]} - {0, 7}
        check(wanted <= seen[which] | {0, 7}, "client %d: %s is missing" % (which, wanted - seen[which]))
    g.end()


def between(folder):
    """Two gateways: coils and registers go from one to the other and back."""
    g = server(folder)
    rows = [[i * 0.5, i, i & 1, i >> 1 & 1] for i in range(60)]
    with open(folder + "/rows.csv", "w") as f:
        for i, row in enumerate(rows):
            f.write("%d,0,0.0,%d,%s\n" % (1700000000 + i, i, ",".join(map(repr, row))))
    client = Gateway(folder, "client", """
nodes = {
	r = { type = "file"; uri = "%s/rows.csv"; format = "csv"; in = { eof = "wait"; rate = 100.0; signals = "fibb"; }; };
	w = { type = "modbus"; transport = "tcp"; remote = "127.0.0.1"; reconnect_interval = 0.1; %s };
	y = { type = "modbus"; transport = "tcp"; remote = "127.0.0.1"; reconnect_interval = 0.1; rate = 100.0;
		min_block_usage = 1.0; %s };
	f = { type = "file"; uri = "%s/read.csv"; format = "csv"; out = { flush = true; }; };
};
paths = ( { in = "r"; out = "w"; }, { in = "y"; out = "f"; } );
""" % (folder, (IN % "").replace("in =", "out ="), OUT.replace("out =", "in ="), folder))
    # A sample of the client is one request for registers, two for the bit, and one for the coil.
    until(lambda: stats(client, "w")["figures"]["confirmed"] == len(rows), lambda: log_of(client) + log_of(g), 30)
    until(lambda: g.got() and g.got()[-1] == [float(v) for v in rows[-1]], lambda: "the last row: %s" % g.got()[-3:])
    check(len(g.got()) == 3 * len(rows), "each write is a sample: %d" % len(g.got()))
    for i in range(20):
        give(g, [i + 0.25, -i, i & 1])
    until(lambda: [float(v) for v in rows_of(folder + "/read.csv")[-1][4:]] == [19.25, -19, 1] if
          rows_of(folder + "/read.csv") else False, "the last row is read")
    check(not sum(stats(client, "w")["losses"].values()), "nothing is lost")
    client.end()
    g.end()


PYMODBUS = """
from pymodbus.client import ModbusTcpClient
from pymodbus.payload import BinaryPayloadDecoder
from pymodbus.constants import Endian
c = ModbusTcpClient("127.0.0.1", port=502)
assert c.connect()
r = c.read_input_registers(10, 2, slave=1)
assert BinaryPayloadDecoder.fromRegisters(r.registers, Endian.Big, Endian.Big).decode_32bit_float() == 1.5, r.registers
assert c.read_holding_registers(20, 1, slave=1).registers == [65533]
assert c.read_discrete_inputs(3, 1, slave=1).bits[0] is True
assert not c.write_coil(1, True, slave=1).isError()
assert c.read_coils(1, 1, slave=1).bits[0] is True
assert not c.write_register(102, 55, slave=1).isError()
assert not c.write_registers(100, [0x4048, 0xf5c3], slave=1).isError()
assert not c.write_coils(1, [False], slave=1).isError()
r = c.readwrite_registers(read_address=102, read_count=1, write_address=102, write_registers=[56], slave=1)
assert r.registers == [56], r
assert not c.mask_write_register(address=104, and_mask=0xfff7, or_mask=8, slave=1).isError()
assert c.read_holding_registers(21, 1, slave=1).exception_code == 2
assert c.write_register(20, 1, slave=1).exception_code == 2
c.close()
"""


def strangers(folder):
    """pymodbus and mbpoll as clients, and Wireshark reads what is said."""
    if not shutil.which("mbpoll") or subprocess.run([PYTHON, "-c", "import pymodbus.client"], capture_output=True).returncode:
        servers.skip("mbpoll and python3-pymodbus are not there")
    capture = Capture(folder + "/packets")
    capture.start()
    g = server(folder)
    has_values(g)
    p = subprocess.run([PYTHON, "-c", PYMODBUS], capture_output=True, text=True, timeout=60)
    check(p.returncode == 0, "pymodbus: " + p.stderr)

    def mbpoll(*args):
        p = subprocess.run(["mbpoll", "-m", "tcp", "-0", "-1", "-q", *args[:-1], "127.0.0.1", *args[-1]], timeout=20,
                           capture_output=True, text=True)
        return p.stdout + p.stderr
    check("[10]: \t1.5" in mbpoll("-r", "10", "-t", "3:float", "-B", []), "mbpoll reads a float")
    check("[3]: \t1" in mbpoll("-r", "3", "-t", "1", []), "mbpoll reads a discrete input")
    check("Written 1 references" in mbpoll("-r", "1", "-t", "0", ["1"]), "mbpoll writes a coil")
    check("Written 1 references" in mbpoll("-r", "102", "-t", "4", ["77"]), "mbpoll writes a register")
    check("Illegal data address" in mbpoll("-r", "300", "-t", "4", []), "mbpoll sees the exception")
    wanted = [[3.14, 56, 1, 1], [3.14, 77, 1, 1]]
    until(lambda: [[round(r[0], 2)] + r[1:] for r in g.got()][-2:] == wanted, lambda: str(g.got()))
    g.end()
    capture.end()
    if not shutil.which("tshark"):
        print("not tried: tshark is not installed")
        return
    out = subprocess.run(["tshark", "-r", folder + "/packets", "-Y", "mbtcp", "-T", "fields", "-e", "modbus.func_code", "-e",
                          "modbus.exception_code", "-e", "_ws.malformed", "-e", "_ws.expert.message"],
                         check=True, capture_output=True, text=True, timeout=60).stdout.splitlines()
    rows = [line.split("\t") for line in out]
    check(len(rows) > 20 and not any(r[2] for r in rows), "nothing is malformed: %s" % rows)
    check({r[0] for r in rows} >= {"1", "2", "3", "4", "5", "6", "15", "16", "22", "23"}, "functions: %s" % rows)
    check([r[1] for r in rows if r[1]].count("2") == 3, "exceptions: %s" % rows)


def hostile(folder):
    """Clients that are slow, take no answers, send nonsense or are too many disturb no other one."""
    g = server(folder, more='max_clients = 4; peers = [ "127.0.0.1", "127.0.2.0/24" ];')
    good = has_values(g)
    refused = Client(source="127.0.0.2")
    check(refused.is_closed(), "a host that peers does not have is turned away")
    until(lambda: figures(g)["foreign"] == 1, "and counted")
    until(lambda: figures(g)["clients"] == 1 or good.ask(read(3, 20)) is None, "the first one is left")
    # All places are taken by clients that ask: none gives way.
    others = [Client() for _ in range(3)]
    until(lambda: all(c.ask(read(3, 20)) for c in [good] + others) and Client().is_closed(5), "a fifth one is turned away")
    for c in others:
        c.socket.close()
    until(lambda: figures(g)["clients"] == 1, "the three are gone")
    # Half a request, for ever; and one that asks and takes nothing.
    half = Client(source="127.0.2.9")
    half.socket.sendall(b"\0\1\0\0\0\6\xff\3\0")
    deaf = Client()
    deaf.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    deaf.socket.setblocking(False)
    block = struct.pack(">HHHB", 1, 0, 6, 1) + read(4, 10, 2)
    full = 0
    end = time.monotonic() + 30
    while full < 20 and time.monotonic() < end:
        try:
            deaf.socket.send(block * 100)
            full = 0
        except BlockingIOError:
            full += 1
            good.ask(read(3, 20))
    check(full == 20, "the server reads no more of one that takes nothing")
    since = time.monotonic()
    for _ in range(200):
        check(good.ask(read(3, 20)) == b"\x03\x02\xff\xfd", "others are answered")
    check(time.monotonic() - since < 10, "at once")
    # Nonsense ends a connection.
    for nonsense in (b"GET / HTTP/1.1\r\n\r\n", b"\0\1\0\0\xff\xff", b"\0\1\0\0\0\1\1", os.urandom(3) + b"\1" * 50):
        c = Client()
        c.socket.sendall(nonsense)
        check(c.is_closed(), "nonsense ends a connection")
    until(lambda: figures(g)["malformed"] == 4, "and is counted: %s" % figures(g))
    until(lambda: figures(g)["clients"] == 3, "three are left")
    # All places are taken; those that ask for nothing give way after a while.
    fourth = Client()
    fourth.ask(read(3, 20))
    end = time.monotonic() + 30
    while True:
        good.ask(read(3, 20))
        new = Client()
        new.send(read(3, 20))
        try:
            if new.answer():
                break
        except (AssertionError, ConnectionError):
            check(time.monotonic() < end, "an idle client gives way")
            time.sleep(0.1)
    check(good.ask(read(3, 20)) == b"\x03\x02\xff\xfd", "not one that asks")
    check(figures(g)["turned_away"] >= 2 and figures(g)["clients"] == 4, str(figures(g)))
    log = log_of(g)
    check(log.count("\n") < 300, "the log is not filled")
    since = time.monotonic()
    g.end()
    check(time.monotonic() - since < servers.ENDS_IN, "it ends in time")


class Line:
    """Two ends of a serial line, as devices; passes on bytes in pieces."""

    def __init__(self):
        self.masters, self.slaves = zip(*[os.openpty() for _ in range(2)])
        self.names = [os.ttyname(s) for s in self.slaves]
        for fd in self.masters + self.slaves:
            tty.setraw(fd, termios.TCSANOW)
        self.over = False
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self):
        while not self.over:
            for fd in select.select(self.masters, [], [], 0.05)[0]:
                os.write(self.masters[1 - self.masters.index(fd)], os.read(fd, 5))
        for fd in self.masters:
            os.close(fd)

    def end(self):
        """As a device that is pulled out."""
        self.over = True
        self.thread.join()


def descriptors(folder):
    """A gateway that may open fewer descriptors than it may have clients serves those for which it has some."""
    g = server(folder, "few", "max_clients = 1024;", before=("prlimit", "--nofile=64"))
    clients = [Client() for _ in range(20)]
    for c in clients:
        c.ask(read(4, 20))
    later = []
    for _ in range(60):
        s = socket.socket()
        s.setblocking(False)
        s.connect_ex(("127.0.0.1", PORT))
        later.append(s)
    for c in clients:
        c.ask(read(4, 20))
        c.socket.close()
    for s in later:
        s.close()
    Client().ask(read(4, 20))
    g.end()


def line(folder):
    """A serial line: values, noise, requests for other units and their answers, what is for all."""
    wire = Line()
    g = server(folder, more="unit = 17; reconnect_interval = 0.1;",
               transport='transport = "rtu"; device = "%s"; baudrate = 115200;' % wire.names[0])
    give(g, [1.5, -3, 1])
    fd = wire.slaves[1]

    def answer(seconds=20.0):
        data = b""
        while True:
            if not select.select([fd], [], [], seconds if len(data) < 5 else 0.1)[0]:
                check(not data or crc(data[:-2]) == data[-2:], "the check sum of " + data.hex())
                return data[:-2]
            data += os.read(fd, 300)

    def send(frame, check_sum=True):
        os.write(fd, frame + crc(frame) if check_sum else frame)
    end = time.monotonic() + 20
    while True:
        send(b"\x11" + read(4, 10, 2))
        got = answer()
        if got == b"\x11" + struct.pack(">BBf", 4, 4, 1.5):
            break
        check(got == b"\x11\x84\x06" and time.monotonic() < end, "a value, or none yet: " + got.hex())
    # Others speak, also with bytes that a request for us could be; then there is one for us.
    send(b"\x02" + read(3, 0, 4))
    send(b"\x02\x03\x08\x11\x06\x00\x66\x00\x01\x00\x00")
    send(b"\x02\x10\x00\x00\x00\x01")
    send(b"\x11" + read(3, 102))
    check(answer() == b"\x11\x03\x02\x00\x07", "an answer behind those of others")
    # Noise, and wrong check sums.
    send(b"\x11\x03\x00\x66\x00\x01\x00\x00", False)
    check(answer(0.3) == b"", "no answer to a wrong check sum")
    until(lambda: figures(g)["malformed"] >= 1, "it is counted")
    send(b"\x11\x07")
    check(answer() == b"\x11\x87\x01", "a function that is not there")
    # What is for all has no answer.
    send(b"\x00\x06\x00\x66\x00\x2a")
    until(lambda: g.got() and g.got()[-1][1] == 42, "what is for all is carried out")
    check(answer(0.2) == b"", "and not answered")
    if shutil.which("mbpoll"):
        p = subprocess.run(["mbpoll", "-m", "rtu", "-b", "115200", "-P", "none", "-a", "17", "-0", "-1", "-q", "-r", "102", "-t",
                            "4", wire.names[1], "43"], capture_output=True, text=True, timeout=20)
        check("Written 1 references" in p.stdout, "mbpoll writes: " + p.stdout + p.stderr)
        until(lambda: g.got()[-1][1] == 43, "and a sample comes of it")
    client = Gateway(folder, "client", """
nodes = { y = { type = "modbus"; transport = "rtu"; device = "%s"; baudrate = 115200; unit = 17; reconnect_interval = 0.1;
	rate = 50.0; in = { signals = ( { type = "integer"; address = 102; }, { type = "boolean"; table = "discrete"; address = 3; } ); }; };
	f = { type = "file"; uri = "%s/read.csv"; format = "csv"; out = { flush = true; }; }; };
paths = ( { in = "y"; out = "f"; } );
""" % (wire.names[1], folder))
    until(lambda: len(rows_of(folder + "/read.csv")) > 5, lambda: "our client reads: " + log_of(client))
    client.end()
    wire.end()
    until(lambda: "trying again" in log_of(g), "it is said: " + log_of(g))
    since = time.monotonic()
    g.end()
    check(time.monotonic() - since < servers.ENDS_IN, "it ends in time")


ONE = 'in = { signals = ( { type = "integer"; address = 1; } ); };'
SETTINGS = [
    ('address = "127.0.0.1"; ' + ONE, None),
    (ONE, "only clients on this host"),
    ('address = "127.0.0.1"; peers = [ "rtu.example" ]; ' + ONE, "rtu.example"),
    ('address = "127.0.0.1"; max_clients = 0; ' + ONE, "max_clients"),
    ('address = ""; ' + ONE, "is no address"),
    ('address = "127.0.0.1"; remote = "a"; ' + ONE, "says nothing with mode"),
    ('address = "127.0.0.1"; ' + ONE.replace("address = 1;", 'address = 1; table = "input";'), "cannot be written"),
    ('address = "127.0.0.1"; ' + ONE.replace("address = 1;", 'address = 1; table = "coil";'), "are booleans"),
    ('address = "127.0.0.1"; in = { signals = ( { type = "integer"; address = 1; }, { type = "integer"; address = 1; } ); };',
     "two signals have register 1"),
    ('address = "127.0.0.1"; %s out = { signals = ( { type = "float"; address = 0; } ); };' % ONE,
     "either the node or clients write it"),
]


def settings(folder):
    """What is right is accepted, what contradicts itself is refused with the reason."""
    file = os.path.join(folder, "check.conf")
    for text, word in SETTINGS:
        with open(file, "w") as f:
            f.write('nodes = { x = { type = "modbus"; mode = "server"; transport = "tcp"; port = 1502; %s }; };\n'
                    'paths = ( { in = "x"; } );\n' % text)
        r = subprocess.run([os.environ["BUSBAR"], "check", file], capture_output=True, text=True, timeout=60)
        said = r.stdout + r.stderr
        warned = word in ("only clients on this host", "says nothing with mode")
        check(r.returncode == (2 if word and not warned else 0) and (word or "") in said,
              "%s: %d, %s" % (text, r.returncode, said))


SCENARIOS = {f.__name__: f for f in (settings, rules, old, account, between, strangers, hostile, descriptors, line)}


def main():
    servers.enter_network()
    for name in sys.argv[1:] or SCENARIOS:
        with tempfile.TemporaryDirectory(prefix="busbar-modbus-") as folder:
            since = time.monotonic()
            try:
                SCENARIOS[name](folder)
            finally:
                servers.end_all(folder)
            print("%s: %.1f s" % (name, time.monotonic() - since), flush=True)


main()
