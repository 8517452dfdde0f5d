#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The node-type modbus with a server of ours (modbus_server.py), that of pymodbus, mbpoll and tshark.
Arguments: scenarios."""
import os
import random
import select
import shutil
import socket
import struct
import subprocess
import sys
import termios
import threading
import time
import tty

import modbus_server
import servers
from gateway_process import Gateway, check
from servers import until, whole_lines

PYTHON = "/usr/bin/python3"
PORT = 502
SEED = int(os.environ.get("SEED", "5"))

# Signals: name, type, registers, keys, and the format of struct with the registers in order; the
# order of words is "high" or "low".
KINDS = []
for order in ("high", "low"):
    for swap in (False, True):
        keys = 'word_order = "%s_first"; byte_endianess = "%s";' % (order, "little" if swap else "big")
        KINDS.append(("float", 2, keys, ">f", order, swap))
        KINDS.append(("integer", 3, keys + " integer_registers = 3; signed = true;", "i", order, swap))
        KINDS.append(("integer", 4, keys + " integer_registers = 4;", "i", order, swap))
        KINDS.append(("float", 2, keys + " integer_registers = 2; scale = 0.5; offset = -8.0; signed = true;", "s",
                      order, swap))
KINDS.append(("integer", 1, "", "i", "low", False))
BASE, BITS = 0x50, 0x200


class Modbus(servers.Kind):
    name = "modbus"
    program = "python3"
    port = PORT

    def argv(self, tls, password):
        return [sys.executable, os.path.join(os.path.dirname(os.path.abspath(__file__)), "modbus_server.py"), "tcp",
                str(self.port)]

    def node(self, direction, channel, form, tls=None, password=None):
        signals = "{ type = \"float\"; address = 10; }, { type = \"float\"; address = 12; }"
        return ('transport = "tcp"; remote = "127.0.0.1"; port = %d; rate = 100.0; reconnect_interval = 0.1; '
                '%s = { signals = ( %s ); };' % (self.port, direction, signals))


def decode(regs, form, order, swap):
    """As a program would that was written from the manual of a device."""
    words = regs if order == "high" else regs[::-1]
    data = b"".join(struct.pack("<H" if swap else ">H", w) for w in words)
    if form == ">f":
        return struct.unpack(">f", data)[0]
    value = int.from_bytes(data, "big", signed=len(regs) > 1)
    return value * 0.5 - 8 if form == "s" else value


def encode(value, count, form, order, swap):
    data = struct.pack(">f", value) if form == ">f" else int(value * 2 + 16 if form == "s" else value).to_bytes(
        2 * count, "big", signed=count > 1)
    words = [struct.unpack("<H" if swap else ">H", data[i:i + 2])[0] for i in range(0, 2 * count, 2)]
    return words if order == "high" else words[::-1]


def signals():
    """All kinds one after the other, and two bits of a register."""
    text, address = [], BASE
    for i, (kind, count, keys, *_) in enumerate(KINDS):
        text.append('{ name = "v%d"; type = "%s"; address = %d; %s }' % (i, kind, address, keys))
        address += count
    for bit in (0, 9):
        text.append('{ name = "b%d"; type = "boolean"; address = %d; bit = %d; }' % (bit, BITS, bit))
    return ", ".join(text)


def types():
    return "".join("f" if k[0] == "float" else "i" for k in KINDS) + "bb"


def draw(rng, form, count):
    if form == ">f":
        return struct.unpack(">f", struct.pack(">f", rng.uniform(-1e6, 1e6)))[0]
    if form == "s":
        return rng.randrange(-1 << 31, 1 << 31) * 0.5 - 8
    return rng.randrange(1 << 16) if count == 1 else rng.randrange(-1 << 16 * count - 1, 1 << 16 * count - 1)


def node(more, transport='transport = "tcp"; remote = "127.0.0.1"; port = %d;' % PORT):
    return 'type = "modbus"; %s unit = 7; reconnect_interval = 0.1; %s' % (transport, more)


def rows_of(file):
    if not os.path.exists(file):
        return []
    with open(file) as f:
        return [line.rstrip("\n").split(",") for line in whole_lines(f) if line[0] != "#" and line.endswith("\n")]


def stats(gateway, name="x"):
    return gateway.ask("/node/" + name)["stats"]


def figure(gateway, name):
    return stats(gateway)["figures"][name]


def log_of(gateway):
    with open(gateway.log) as f:
        return f.read()


class Capture(threading.Thread):
    """Packets of the loopback device, into a file."""

    def __init__(self, file):
        super().__init__(daemon=True)
        self.socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
        self.socket.bind(("lo", 0))
        self.socket.settimeout(0.05)
        self.file, self.over = file, False

    def run(self):
        with open(self.file, "wb") as f:
            f.write(struct.pack("<IHHiIII", 0xa1b2c3d4, 2, 4, 0, 0, 65535, 1))
            while True:
                try:
                    data, address = self.socket.recvfrom(65535)
                except socket.timeout:
                    if self.over:
                        return
                    continue
                if address[2] == socket.PACKET_OUTGOING:
                    continue
                now = time.time()
                f.write(struct.pack("<IIII", int(now), int(now % 1 * 1e6), len(data), len(data)) + data)

    def end(self):
        self.over = True
        self.join()


def look_at_packets(file, server):
    """Wireshark finds the requests that the server has got, and nothing malformed."""
    if not shutil.which("tshark"):
        print("not tried: tshark is not installed")
        return

    def fields(filter_, *names):
        args = ["tshark", "-r", file, "-Y", filter_, "-T", "fields"]
        for name in names:
            args += ["-e", name]
        out = subprocess.run(args, check=True, capture_output=True, text=True, timeout=60).stdout
        return [line.split("\t") for line in out.splitlines()]
    check(not fields("_ws.malformed || _ws.expert.severity >= 6291456 && mbtcp", "frame.number"), "nothing is malformed")
    rows = fields("mbtcp && tcp.dstport == %d" % PORT, "mbtcp.unit_id", "modbus.func_code", "modbus.reference_num",
                  "modbus.word_cnt")
    got = [tuple(int(v, 0) for v in row) for row in rows]
    check(sorted(got) == sorted(server.requests) and got, "%d requests, the server had %d" % (len(got), len(server.requests)))


# ---- scenarios ----

def values(kind):
    """Every type in every order of words and bytes, in both directions; all samples accounted for."""
    rng = random.Random(SEED)
    print("seed", SEED)
    server = modbus_server.Server()
    server.listen(PORT)
    capture = Capture(kind.folder + "/packets")
    capture.start()
    # Other bits of the register stay.
    server.holding[BITS] = 0x1c3c
    rows = [[draw(rng, k[3], k[1]) for k in KINDS] + [rng.randrange(2), rng.randrange(2)] for _ in range(120)]
    with open(kind.folder + "/rows.csv", "w") as f:
        for i, row in enumerate(rows):
            f.write("%d,0,0.0,%d,%s\n" % (1700000000 + i, i, ",".join(map(repr, row))))
    writer = Gateway(kind.folder, "writer", """
nodes = {
	r = { type = "file"; uri = "%s/rows.csv"; format = "csv"; in = { eof = "wait"; rate = 200.0; signals = "%s"; }; };
	x = { %s };
};
paths = ( { in = "r"; out = "x"; } );
""" % (kind.folder, types(), node("max_block_size = 17; out = { signals = ( %s ); };" % signals())))
    until(lambda: figure(writer, "confirmed") == len(rows), lambda: "all are confirmed: %s" % log_of(writer), 40)
    check_writes(server, rows)
    check(not sum(stats(writer)["losses"].values()), "none is lost")
    if shutil.which("mbpoll"):
        p = subprocess.run(["mbpoll", "-m", "tcp", "-p", str(PORT), "-a", "7", "-0", "-r", str(BASE), "-t", "4:float",
                            "-B", "-1", "127.0.0.1"], capture_output=True, text=True, timeout=20)
        shown = float(p.stdout.split("[%d]:" % BASE)[1].split()[0])
        check(abs(shown / rows[-1][0] - 1) < 1e-5, "mbpoll sees %s, written is %s" % (shown, rows[-1][0]))
    log = writer.end()
    check("lost" not in log, "nothing is lost: " + log)
    read_values(kind, server, rows)
    capture.end()
    check(not server.bad, "requests are as the protocol has them: %s" % server.bad)
    look_at_packets(kind.folder + "/packets", server)
    server.kill()


def check_writes(server, rows):
    """What the server was written, decoded by ourselves."""
    size = sum(k[1] for k in KINDS)
    image, images = [0] * size, []
    first_end = None
    for address, regs in server.writes:
        if address == BITS:
            check(regs[0] & ~0x201 == 0x1c3c & ~0x201, "other bits stay: %x" % regs[0])
            images.append((list(image), regs[0] & 1, regs[0] >> 9 & 1))
            continue
        first_end = first_end or address + len(regs)
        check(len(regs) <= 17, "no request is too long: %d" % len(regs))
        check(BASE <= address and address + len(regs) <= BASE + size, "no other registers are written")
        image[address - BASE:address - BASE + len(regs)] = regs
    check(len(images) == len(rows), "%d samples were written, %d arrived" % (len(rows), len(images)))
    for (regs, b0, b9), row in zip(images, rows):
        at = 0
        for (kind, count, _, form, order, swap), value in zip(KINDS, row):
            got = decode(regs[at:at + count], form, order, swap)
            check(got == value, "%s %s: %s is not %s" % (form, order, got, value))
            at += count
        check([b0, b9] == row[-2:], "bits")


def read_values(kind, server, rows):
    """Each poll finds another row. Polls are of several requests: the one that has the first
    register begins."""
    polls = []

    def answer(unit, pdu, good):
        if pdu[0] == 3 and struct.unpack(">H", pdu[1:3])[0] == BASE:
            row = rows[len(polls) % len(rows)]
            regs = []
            for (_, count, _, form, order, swap), value in zip(KINDS, row):
                regs += encode(value, count, form, order, swap)
            server.holding[BASE:BASE + len(regs)] = regs
            server.holding[BITS] = row[-2] | row[-1] << 9 | 0x1c3c & ~0x201
            polls.append(row)
            server.requests.pop()
            return server.serve(unit, pdu)
        return good
    # The first request, by which the node finds out whether anyone answers, makes no sample.
    server.answer = answer
    reader = Gateway(kind.folder, "reader", """
nodes = { x = { %s }; f = { type = "file"; uri = "%s/got.csv"; format = "csv"; out = { flush = true; }; }; };
paths = ( { in = "x"; out = "f"; } );
""" % (node("rate = 200.0; max_block_size = 17; in = { signals = ( %s ); };" % signals()), kind.folder))
    got_file = kind.folder + "/got.csv"
    until(lambda: len(rows_of(got_file)) >= 150, lambda: "samples are read: " + log_of(reader), 40)
    figures = stats(reader)["figures"]
    reader.end()
    got = rows_of(got_file)
    # A poll that the end has interrupted has no sample.
    check(len(got) in (len(polls) - 1, len(polls) - 2), "each poll is a sample: %d of %d" % (len(got), len(polls)))
    check(figures["polls_failed"] == 0 and figures["malformed"] == 0, "figures: %s" % figures)
    for i, (row, poll) in enumerate(zip(got, polls[1:])):
        check(int(row[3]) == i, "sequence: %s" % row[:4])
        check([float(v) for v in row[4:]] == [float(v) for v in poll], "%s is not %s" % (row[4:], poll))
    server.answer = None


def counter(rate, more):
    """A generator whose values are written."""
    return """
nodes = {
	sig = { type = "signal"; signal = "counter"; rate = %s; values = 2; };
	x = { %s };
	f = { type = "file"; uri = "%%s/sent.csv"; format = "csv"; out = { flush = true; }; };
};
paths = ( { in = "sig"; out = [ "x", "f" ]; } );
""" % (float(rate), node(more))


OUT = 'out = { %s signals = ( { name = "a"; type = "integer"; address = 10; integer_registers = 4; }, ' \
      '{ name = "b"; type = "integer"; address = 30; integer_registers = 4; } ); };'


def account(writer, server, folder, wrong=0):
    """Every sample was written to the server, or is counted as lost; what was repeated is counted."""
    writer.ask("/node/sig/stop", "POST")
    until(lambda: len(rows_of(folder + "/sent.csv")) == writer.ask("/node/sig")["stats"]["received"],
          "the file has all samples")
    until(lambda: figure(writer, "waiting") == 0 and figure(writer, "unconfirmed") == 0, "what waits is written", 30)
    s = stats(writer)
    sent = [int(r[4].split(".")[0]) for r in rows_of(folder + "/sent.csv")]
    arrived = [int.from_bytes(struct.pack("<4H", *regs), "little") for address, regs in server.writes if address == 10]
    lost = sum(s["losses"].values())
    what = "sent %d, arrived %d, of %d, lost %d, %s" % (len(sent), len(arrived), len(set(arrived)), lost, s["figures"])
    check(sent == sorted(sent) and len(sent) > 20, "the generator: " + what)
    check(not set(arrived) - set(sent), "nothing arrives that was not sent: " + what)
    check(len(set(sent) - set(arrived)) <= lost, "what is missing is counted: " + what)
    check(len(arrived) - len(set(arrived)) <= s["figures"]["repeated"] + wrong, "what comes twice is counted: " + what)
    return s


def restart(kind):
    """A server that dies and comes again; others that read go on, too."""
    server = modbus_server.Server()
    server.listen(PORT)
    writer = Gateway(kind.folder, "writer", counter(200, OUT % "") % kind.folder)
    reader = Gateway(kind.folder, "reader", "nodes = { x = { %s }; };\npaths = ( { in = \"x\"; } );" % node(
        'rate = 100.0; in = { signals = ( { type = "integer"; address = 10; integer_registers = 4; } ); };'))
    for i in range(3):
        before = figure(writer, "confirmed"), reader.arrived()
        until(lambda: figure(writer, "confirmed") > before[0] + 30 and reader.arrived() > before[1] + 10,
              lambda: "samples go on: " + log_of(writer) + log_of(reader))
        server.kill()
        for g in (writer, reader):
            until(lambda: g.ask("/node/x")["state"] == "pending-connect", "the node knows that it is alone")
        server.listen(PORT)
        for g in (writer, reader):
            until(lambda: g.ask("/node/x")["state"] == "connected", "and that it is not: " + log_of(g))
    s = account(writer, server, kind.folder)
    check(not sum(s["losses"].values()), "nothing is lost: %s" % s["losses"])
    check(s["figures"]["connections"] == 4 and s["figures"]["connections_lost"] == 3, "connections: %s" % s["figures"])
    check(not server.bad, "requests are good: %s" % server.bad)
    for g in (writer, reader):
        g.end()
    server.kill()


NAMES = ["illegal_function", "illegal_address", "illegal_value", "server_failure", "acknowledge", "busy",
         "negative_acknowledge", "memory_parity", "not_defined", "gateway_path", "gateway_target"]
LATER = (5, 6, 10, 11)


def exceptions(kind):
    """Each exception is counted by its name, and said; a busy server is asked again."""
    server = modbus_server.Server()
    plan = {"write": None, "read": None}

    def answer(unit, pdu, good):
        code = plan["write"] if pdu[0] == 16 and pdu[1:3] == b"\0\x0a" else plan["read"] if pdu[0] == 4 else None
        if code:
            if pdu[0] == 16:
                server.writes.pop()
                plan["write"] = None
            return bytes((pdu[0] | 0x80, code))
        return good
    server.answer = answer
    server.listen(PORT)
    writer = Gateway(kind.folder, "writer", counter(100, OUT % 'write = "changed";') % kind.folder)
    reader = Gateway(kind.folder, "reader", "nodes = { x = { %s }; };\npaths = ( { in = \"x\"; } );" % node(
        'rate = 100.0; in = { signals = ( { type = "integer"; address = 10; table = "input"; } ); };'))
    until(lambda: figure(writer, "confirmed") > 3 and reader.arrived() > 3, "samples go on")
    for code, name in enumerate(NAMES, 1):
        refused = stats(writer)["losses"]["refused"]
        plan["write"] = plan["read"] = code
        until(lambda: figure(writer, name) == 1 and figure(reader, name) > 0, "%s is counted" % name)
        plan["read"] = None
        before = figure(writer, "confirmed"), reader.arrived()
        until(lambda: figure(writer, "confirmed") > before[0] and reader.arrived() > before[1], "samples go on")
        check(stats(writer)["losses"]["refused"] == refused + (code not in LATER), "%s: the loss" % name)
    s = account(writer, server, kind.folder)
    check(s["losses"]["refused"] == len(NAMES) - len(LATER) == sum(s["losses"].values()), "losses: %s" % s["losses"])
    check(s["figures"]["connections_lost"] == 0, "the connection stays: %s" % s["figures"])
    r = stats(reader)["figures"]
    check(r["polls_failed"] == r["malformed"] == sum(r[n] for n in NAMES), "polls: %s" % r)
    check("holding registers 10 to 13: exception 1, Illegal function" in writer.end((3,)), "the writer says it")
    check("reading input registers 10 to 10: exception 1, Illegal function" in reader.end(), "the reader says it")
    server.kill()


def strange(kind):
    """Whatever a server answers, or does not: it is counted, the node tries again, and ends in time."""
    server = modbus_server.Server()
    server.listen(PORT)
    rng = random.Random(SEED)
    ways = {
        "nothing": lambda pdu, good: None,
        "a few bytes": lambda pdu, good: (rng.randbytes(rng.randrange(1, 7)),),
        "noise": lambda pdu, good: (rng.randbytes(300),),
        "another number": lambda pdu, good: (struct.pack(">HHHB", 77, 0, len(good) + 1, 7) + good,),
        "another protocol": lambda pdu, good: (struct.pack(">HHHB", 0, 9, len(good) + 1, 7) + good,),
        "another function": lambda pdu, good: bytes((6,)) + good[1:],
        "too few registers": lambda pdu, good: bytes((good[0], good[1] - 2)) + good[2:-2],
        "an unknown exception": lambda pdu, good: bytes((pdu[0] | 0x80, 99)),
        "more than was asked for": lambda pdu, good: bytes((good[0], 250)) + bytes(250),
    }
    reader = Gateway(kind.folder, "reader", "nodes = { x = { %s }; };\npaths = ( { in = \"x\"; } );" % node(
        'rate = 100.0; response_timeout = 0.1; in = { signals = ( { type = "float"; address = 10; } ); };'))
    for name, way in ways.items():
        before = reader.arrived()
        until(lambda: reader.arrived() > before, "samples go on before %s: %s" % (name, log_of(reader)))
        f = stats(reader)["figures"]
        wrong = f["timeouts"] + f["bad_answers"]
        server.answer = lambda unit, pdu, good: way(pdu, good)

        def counted():
            now = stats(reader)["figures"]
            return now["timeouts"] + now["bad_answers"] > wrong and now["unreachable"] > f["unreachable"]
        until(counted, lambda: "%s is counted: %s %s" % (name, stats(reader)["figures"], log_of(reader)))
        server.answer = None
    before = reader.arrived()
    until(lambda: reader.arrived() > before, "samples go on after all")
    log = reader.end()
    check("response_timeout" in log and "the connection to tcp://127.0.0.1:502 is lost" in log, "it is said: " + log)
    check(log.count("\n") < 100, "the log is not filled: %d lines" % log.count("\n"))
    server.kill()


def end(kind):
    """A gateway ends in time though its server does not answer, or drop by drop."""
    for way in ("silent", "slow", "absent"):
        server = modbus_server.Server()
        server.listen(PORT)
        g = Gateway(kind.folder, "end-" + way, """
nodes = { x = { %s }; sig = { type = "signal"; signal = "counter"; rate = 50.0; values = 1; }; };
paths = ( { in = "x"; }, { in = "sig"; out = "x"; } );
""" % node('rate = 100.0; response_timeout = 60.0; in = { signals = ( { type = "integer"; address = 10; } ); }; '
           'out = { signals = ( { type = "integer"; address = 20; } ); };'))
        until(lambda: g.arrived() > 3, "samples go on")
        if way == "silent":
            server.answer = lambda unit, pdu, good: None
        elif way == "slow":
            def slowly(unit, pdu, good):
                s = server.connections[-1]
                for byte in struct.pack(">HHHB", 0, 0, 200, 7):
                    s.sendall(bytes((byte,)))
                    time.sleep(0.2)
            server.answer = slowly
        else:
            server.kill()
        time.sleep(0.2)
        since = time.monotonic()
        g.end((0, 3))
        took = time.monotonic() - since
        check(took < 2.2, "%s: it ends in time: %.1f s" % (way, took))
        if way != "absent":
            server.kill()


def descriptors(kind):
    """A gateway with more descriptors than libmodbus can wait for says so, and goes on."""
    server = modbus_server.Server()
    server.listen(PORT)
    many = 'ulimit -n 4096 && for i in {10..1100}; do eval "exec $i</dev/null"; done; exec "$@"'
    g = Gateway(kind.folder, "many", """
nodes = { x = { %s }; sig = { type = "signal"; signal = "counter"; rate = 50.0; values = 1; }; n = { type = "loopback"; }; };
paths = ( { in = "x"; }, { in = "sig"; out = "n"; } );
""" % node('rate = 100.0; in = { signals = ( { type = "integer"; address = 10; } ); };'),
                before=("bash", "-c", many, "many"))
    until(lambda: "Too many open files" in log_of(g), lambda: "it is said: " + log_of(g))
    g.wait_for_more(g.arrived(1), 1)
    g.end()
    server.kill()


def line(kind):
    """A serial line: values, noise, answers of other units, silence."""
    server = modbus_server.Server()
    ends = [os.openpty() for _ in range(2)]
    for master, slave in ends:
        tty.setraw(master, termios.TCSANOW)
        tty.setraw(slave, termios.TCSANOW)
        threading.Thread(target=server.serve_line, args=(master,), daemon=True).start()
    devices = ['transport = "rtu"; device = "%s"; baudrate = 115200; parity = "even"; data_bits = 8; stop_bits = 1;'
               % os.ttyname(slave) for _, slave in ends]
    writer = Gateway(kind.folder, "writer", counter(20, OUT % "").replace(
        'transport = "tcp"; remote = "127.0.0.1"; port = %d;' % PORT, devices[0]) % kind.folder)
    reader = Gateway(kind.folder, "reader", "nodes = { x = { %s }; };\npaths = ( { in = \"x\"; } );" % node(
        'rate = 20.0; response_timeout = 0.5; in = { signals = ( { type = "integer"; address = 10; '
        'integer_registers = 4; } ); };', devices[1]))
    until(lambda: figure(writer, "confirmed") > 10 and reader.arrived() > 10,
          lambda: "samples go on: " + log_of(writer) + log_of(reader), 30)
    check(all(r[0] == 7 for r in server.requests), "the unit is that of the configuration")
    wrong = []

    def once(unit, pdu, good):
        if pdu[0] != 3 or not wrong:
            return good
        frame = bytes((unit,)) + good
        frame += modbus_server.crc(frame)
        return {"checksum": (frame[:-1] + bytes((frame[-1] ^ 1,)),),
                "unit": ((lambda f: f + modbus_server.crc(f))(bytes((9,)) + good),),
                "silence": None}[wrong.pop()]
    server.answer = once
    for way, name in (("checksum", "bad_answers"), ("unit", "other_unit"), ("silence", "timeouts")):
        before = figure(reader, name)
        wrong.append(way)
        until(lambda: figure(reader, name) > before, lambda: "%s is counted: %s" % (way, stats(reader)["figures"]))
        arrived = reader.arrived()
        until(lambda: reader.arrived() > arrived, "samples go on after " + way)
    f = stats(reader)["figures"]
    # On a busy machine the server may once be late.
    check(f["bad_answers"] == f["other_unit"] == 1 and f["polls_failed"] == 2 + f["timeouts"], "each is counted: %s" % f)
    check(f["connections"] == 1, "the line stays open: %s" % f)
    # Nobody is there any more, and then again.
    server.answer = lambda unit, pdu, good: None if pdu[0] == 3 else good
    until(lambda: reader.ask("/node/x")["state"] == "pending-connect", "the node knows that it is alone")
    server.answer = None
    until(lambda: reader.ask("/node/x")["state"] == "connected", "and that it is not")
    s = account(writer, server, kind.folder)
    check(not sum(s["losses"].values()), "nothing is lost: %s" % s)
    check(not server.bad, "requests are good: %s" % server.bad)
    reader.end()
    writer.end()


def coils_over_echo(kind):
    """Coils, by functions for one and for several, of a gateway that is the server at the other end."""
    near, far = os.openpty(), os.openpty()
    for end in near + far:
        tty.setraw(end, termios.TCSANOW)

    def relay():
        while True:
            for end in select.select([near[0], far[0]], [], [])[0]:
                try:
                    data = os.read(end, 300)
                    if end == near[0]:
                        os.write(near[0], data)
                    os.write(far[0] if end == near[0] else near[0], data)
                except OSError:
                    return
    threading.Thread(target=relay, daemon=True).start()
    places = "".join('{ name = "c%d"; type = "boolean"; table = "coil"; address = %d; }, ' % (i, i if i < 10 else 40)
                     for i in range(11)).rstrip(", ")
    line = 'transport = "rtu"; device = "%s"; baudrate = 115200;'
    server = Gateway(kind.folder, "coils-server", "nodes = { x = { %s }; };\npaths = ( { in = \"x\"; } );" % node(
        'mode = "server"; in = { signals = ( %s ); };' % places, line % os.ttyname(far[1])))
    source = os.path.join(kind.folder, "coils.csv")
    got = os.path.join(kind.folder, "coils-got.csv")
    rows = [[(row * 37 + i * i) // (i + 1) % 2 for i in range(11)] for row in range(1, 6)]
    with open(source, "w") as f:
        for i, row in enumerate(rows):
            f.write("%d,0,0.0,%d,%s\n" % (1700000000 + i, i, ",".join(map(str, row))))
    client = Gateway(kind.folder, "coils-client", """
nodes = {
	sig = { type = "file"; uri = "%s"; format = "csv"; in = { signals = "11b"; rate = 2.0; eof = "wait"; }; };
	x = { %s };
	f = { type = "file"; uri = "%s"; format = "csv"; out = { flush = true; }; };
};
paths = ( { in = "sig"; out = "x"; }, { in = "x"; out = "f"; } );
""" % (source, node("rate = 50.0; response_timeout = 1.0; in = { signals = ( %s ); }; out = { signals = ( %s ); };" % (
        places, places), line % os.ttyname(near[1]) + " echo = true;"), got))

    def seen():
        with open(got) as f:
            return [[int(float(v)) for v in line.split(",")[4:]] for line in whole_lines(f) if line[0] != "#"]
    until(lambda: os.path.exists(got) and seen() and seen()[-1] == rows[-1],
          lambda: "the last values are read: %s" % (log_of(client) + log_of(server)), 30)
    values = seen()
    check(all(row in values for row in rows), "all values are read: %s" % rows)
    s = stats(client)
    check(not sum(s["losses"].values()) and not s["figures"]["bad_answers"], "nothing is lost: %s" % s)
    client.end()
    server.end()


def echo(kind):
    """Lines that echo what is sent: a client reads and writes all kinds of values, also after an echo that was
    damaged; a server does not take its own answers for requests."""
    server, damage = modbus_server.Server(), []

    def back(data):
        return bytes((data[0] ^ damage.pop(),)) + data[1:] if damage else data
    ends = [os.openpty() for _ in range(3)]
    for master, slave in ends:
        tty.setraw(master, termios.TCSANOW)
        tty.setraw(slave, termios.TCSANOW)
    for (master, _), way in zip(ends, (bytes, back)):
        threading.Thread(target=server.serve_line, args=(master, way), daemon=True).start()
    devices = ['transport = "rtu"; device = "%s"; baudrate = 115200; echo = true;' % os.ttyname(slave) for _, slave in ends]
    writer = Gateway(kind.folder, "writer", counter(20, OUT % "").replace(
        'transport = "tcp"; remote = "127.0.0.1"; port = %d;' % PORT, devices[0]) % kind.folder)
    reader = Gateway(kind.folder, "reader", "nodes = { x = { %s }; };\npaths = ( { in = \"x\"; } );" % node(
        'rate = 20.0; response_timeout = 0.5; in = { signals = ( { type = "integer"; address = 10; '
        'integer_registers = 4; } ); };', devices[1]))
    until(lambda: figure(writer, "confirmed") > 10 and reader.arrived() > 10,
          lambda: "samples go on: " + log_of(writer) + log_of(reader), 30)
    arrived = reader.arrived()
    damage.append(1)
    until(lambda: figure(reader, "bad_answers") == 1, "the damage is counted")
    until(lambda: reader.arrived() > arrived + 5 and figure(writer, "confirmed") > 40, "samples go on")
    check(figure(reader, "bad_answers") == 1 and figure(writer, "bad_answers") == 0, "once")
    s = account(writer, server, kind.folder)
    check(not sum(s["losses"].values()), "nothing is lost: %s" % s)
    check(not server.bad, "requests are good: %s" % server.bad)
    reader.end()
    writer.end()
    coils_over_echo(kind)
    # A server.
    gateway = Gateway(kind.folder, "server", "nodes = { x = { %s }; };\npaths = ( { in = \"x\"; } );" % node(
        'mode = "server"; in = { signals = ( { type = "integer"; address = 10; integer_registers = 1; } ); };', devices[2]))
    line = ends[2][0]

    def ask(pdu, answer):
        frame = bytes((7,)) + pdu
        wanted = bytes((7,)) + answer
        wanted += modbus_server.crc(wanted)
        os.write(line, frame + modbus_server.crc(frame))
        got = b""
        while len(got) < len(wanted):
            check(select.select([line], [], [], 20)[0], "it answers: %s" % log_of(gateway))
            got += os.read(line, 300)
        check(got == wanted, "%s: %s" % (pdu.hex(), got.hex()))
        os.write(line, got)
    until(lambda: gateway.ask("/node/x")["state"] in ("connected", "pending-connect"), "it runs")
    for i in range(1, 20):
        write = struct.pack(">BHH", 6, 10, i)
        ask(write, write)
        ask(struct.pack(">BHH", 3, 10, 1), struct.pack(">BBH", 3, 2, i))
        until(lambda: gateway.arrived() == i, lambda: "each request is carried out once: %d" % gateway.arrived())
    check(not select.select([line], [], [], 0.2)[0], "it does not answer itself")
    check(not figure(gateway, "malformed"), "figures: %s" % stats(gateway)["figures"])
    gateway.end()


STRANGER = """
import sys
from pymodbus.datastore import ModbusSequentialDataBlock, ModbusServerContext, ModbusSlaveContext
from pymodbus.server import StartTcpServer
store = ModbusSlaveContext(hr=ModbusSequentialDataBlock(0, [0] * 1000), ir=ModbusSequentialDataBlock(0, range(1000)),
                           zero_mode=True)
StartTcpServer(context=ModbusServerContext(slaves={7: store}, single=False), address=("127.0.0.1", %d))
""" % PORT


def stranger(kind):
    """The server of pymodbus."""
    if subprocess.run([PYTHON, "-c", "import pymodbus.server"], capture_output=True).returncode:
        print("not tried: python3-pymodbus is not installed")
        return
    kind.argv = lambda tls, password: [PYTHON, "-c", STRANGER]
    kind.start()
    rows = [[1.5 + i, i, i % 2, -3.25 * i] for i in range(30)]
    with open(kind.folder + "/rows.csv", "w") as f:
        for i, row in enumerate(rows):
            f.write("%d,0,0.0,%d,%s\n" % (1700000000 + i, i, ",".join(map(repr, row))))
    where = ('{ type = "float"; address = 80; word_endianess = "little"; }, '
             '{ type = "integer"; address = 90; integer_registers = 2; }, { type = "boolean"; address = 95; bit = 15; }, '
             '{ type = "float"; address = 96; integer_registers = 1; scale = 0.25; signed = true; }')
    g = Gateway(kind.folder, "stranger", """
nodes = {
	r = { type = "file"; uri = "%s/rows.csv"; format = "csv"; in = { eof = "wait"; rate = 100.0; signals = "fibf"; }; };
	x = { %s };
	y = { %s };
	f = { type = "file"; uri = "%s/got.csv"; format = "csv"; out = { flush = true; }; };
};
paths = ( { in = "r"; out = "x"; }, { in = "y"; out = "f"; } );
""" % (kind.folder, node("out = { signals = ( %s ); };" % where),
            node('rate = 100.0; in = { signals = ( %s, { type = "integer"; address = 500; table = "input"; } ); };' % where),
            kind.folder))

    def got():
        return [[float(v) for v in r[4:]] for r in rows_of(kind.folder + "/got.csv")]
    until(lambda: [float(v) for v in rows[-1]] + [500.0] in got(), lambda: "the last row is read: %s %s" % (
        got()[-1:], log_of(g)), 30)
    check(figure(g, "confirmed") == len(rows), "all are confirmed: %s" % stats(g))
    g.end()
    kind.kill()


if __name__ == "__main__":
    servers.main(Modbus, {f.__name__: f for f in (values, restart, exceptions, strange, end, descriptors, line, echo, stranger)})
