#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""sampled_values.py SCENARIO...: sampled values between two gateways in two network namespaces,
which a cable (veth) connects, and with frames that the test makes or takes.

Environment: BUSBAR, the program; SECONDS, how long each stream of `account` runs (1).
"""
import contextlib
import ctypes
import os
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time

import servers
from gateway_process import BUSBAR, Gateway, Gateways, check
from servers import until, whole_lines

SECONDS = float(os.environ.get("SECONDS", "1"))
ETHERTYPE = 0x88ba
GROUP = bytes.fromhex("010ccd040001")
CLONE_NEWNET = 0x40000000
libc = ctypes.CDLL(None, use_errno=True)


class Cable:
    """end0 is in this namespace, end1 in the other one."""

    def __init__(self):
        # It ends with this process, however that ends (PR_SET_PDEATHSIG).
        self.holder = subprocess.Popen(["unshare", "-n", "sleep", "infinity"],
                                       preexec_fn=lambda: libc.prctl(1, signal.SIGKILL))
        here = os.open("/proc/self/ns/net", os.O_RDONLY)
        self.here, self.there = here, None
        path = "/proc/%d/ns/net" % self.holder.pid

        def entered():
            return os.stat(path).st_ino != os.fstat(here).st_ino
        until(entered, "the second namespace is there")
        self.there = os.open(path, os.O_RDONLY)
        subprocess.run(["ip", "link", "add", "end0", "type", "veth", "peer", "name", "end1",
                        "netns", str(self.holder.pid)], check=True)
        subprocess.run(["ip", "link", "set", "end0", "up"], check=True)
        with self.other_end():
            subprocess.run(["ip", "link", "set", "end1", "up"], check=True)

    @contextlib.contextmanager
    def other_end(self):
        """What is started meanwhile is in the other namespace."""
        check(libc.setns(self.there, CLONE_NEWNET) == 0, "the other namespace can be entered")
        try:
            yield
        finally:
            check(libc.setns(self.here, CLONE_NEWNET) == 0, "and left")

    def socket(self, interface):
        s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
        s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 22)
        s.bind((interface, 3))
        # All groups (PACKET_MR_ALLMULTI).
        s.setsockopt(263, 1, struct.pack("iHH8s", socket.if_nametoindex(interface), 2, 0, b""))
        s.settimeout(20)
        return s

    def end(self):
        self.holder.kill()
        self.holder.wait()


def node(interface, inner, app_id=0x4000):
    address = "" if "routed = true" in inner else 'dst_address = "01:0c:cd:04:00:01";'
    return 'type = "iec61850-9-2"; interface = "%s"; app_id = %d; %s %s' % (interface, app_id, address, inner)


def publisher(folder, out, rate=1000, signals='{ count = 2; iec_type = "int32"; }', name="writer", more=""):
    return Gateway(folder, name, """
nodes = {
	sig = { type = "signal"; signal = "counter"; rate = %s; values = 2; origin = "planned"; %s };
	x = { %s };
};
paths = ( { in = "sig"; out = "x"; } );
""" % (rate, more, node("end0", 'out = { sv_id = "MU"; signals = %s; %s };' % (signals, out))))


def subscriber(folder, inner="", signals='{ count = 2; iec_type = "int32"; }', name="reader", count=1):
    """Nodes x0, x1 ... on end1, each with a file."""
    nodes = "".join('x%d = { %s };\nf%d = { type = "file"; uri = "%s"; format = "csv"; out = { flush = true; }; };\n' % (
        i, node("end1", "in = { signals = %s; %s };" % (signals, inner)), i, out_file(folder, name, i))
        for i in range(count))
    paths = ", ".join('{ in = "x%d"; out = "f%d"; }' % (i, i) for i in range(count))
    return Gateway(folder, name, "nodes = {\n%s};\npaths = ( %s );\n" % (nodes, paths))


def out_file(folder, name, i=0):
    return os.path.join(folder, "%s%d.csv" % (name, i))


def rows(folder, name="reader", i=0):
    """(seconds, nanoseconds, sequence number, values) of each sample that was written."""
    with open(out_file(folder, name, i)) as f:
        lines = [line.split(",") for line in whole_lines(f) if line[0] != "#" and line.endswith("\n")]
    return [(int(c[0]), int(c[1]), int(c[3]), [float(v) for v in c[4:]]) for c in lines]


def stats(gateway, name="x"):
    return gateway.ask("/node/" + name)["stats"]


def figures(gateway, name="x"):
    return stats(gateway, name)["figures"]


def ends_soon(gateway, statuses=(0,)):
    since = time.monotonic()
    log = gateway.end(statuses)
    took = time.monotonic() - since
    check(took < 2.5, "the gateway ends in time: %.1f s" % took)
    return log


def run_stream(folder, cable, rate, asdus, out, seconds, readers=1, inner=""):
    """A stream that is stopped after a while. Returns the statistics of the source, the publisher
    and of each reader; all that was sent has been read, and is in the files."""
    for i in range(readers):
        with contextlib.suppress(FileNotFoundError):
            os.unlink(out_file(folder, "reader", i))
    with Gateways() as gateways:
        with cable.other_end():
            reader = subscriber(folder, inner, count=readers)
        gateways.append(reader)
        writer = publisher(folder, "asdus = %d; smp_rate = %d; smp_mod = \"samples_per_second\"; %s" % (
            asdus, rate, out), rate)
        gateways.append(writer)
        # Of the source's time, which does not depend on how busy the machine is.
        until(lambda: (stats(writer, "sig")["received"] + stats(writer, "sig")["missed"]) >= rate * seconds,
              lambda: "the stream goes on: %s" % stats(writer, "sig"), 30 + 4 * seconds)
        writer.ask("/node/sig/stop", "POST")
        writer.ask("/node/x/stop", "POST")  # sends what a message was not full of
        sent = stats(writer)["sent"]
        for i in range(readers):
            until(lambda: stats(reader, "x%d" % i)["received"] >= sent,
                  lambda: "reader %d has all of %d: %s; %s" % (i, sent, stats(reader, "x%d" % i), stats(writer)), 30)
        result = (stats(writer, "sig"), stats(writer), [stats(reader, "x%d" % i) for i in range(readers)])
        for gateway in gateways:
            ends_soon(gateway)
    return result


def judge_stream(folder, source, sent, received, synchronised, i=0):
    got = rows(folder, i=i)
    check(len(got) == received["received"] == sent["sent"], "all arrive once: %d of %d" % (len(got), sent["sent"]))
    check(received["figures"]["messages_received"] == sent["figures"]["messages_sent"], "messages")
    for figure in ("malformed", "overrun", "repeated", "reordered", "restarts", "wrong_length", "foreign"):
        check(received["figures"][figure] == 0, "%s: %s" % (figure, received["figures"]))
    # The counter and the sequence number say the same of each sample; gaps are steps that the
    # source has left out, and only those.
    missing = 0
    for before, now in zip(got, got[1:]):
        steps = now[3][0] - before[3][0]
        check(steps >= 1, "in order: %s %s" % (before, now))
        check(now[2] - before[2] == (steps if synchronised else 1), "smpCnt: %s %s" % (before, now))
        missing += steps - 1
    check(received["lost"] == received["figures"]["smp_lost"] == (missing if synchronised else 0),
          "lost are %d: %s" % (missing, received))
    check(missing <= source["missed"], "missed: %d, %s" % (missing, source))
    check(sent["figures"]["astray"] == 0, "astray: %s" % sent["figures"])


def account(folder, cable):
    """4,800 samples a second in messages of 2, and 14,400 in messages of 6: all arrive, and smpCnt
    is right for each."""
    for rate, asdus in ((4800, 2), (14400, 6)):
        for synch in ("global_clock", "local_clock"):
            source, sent, received = run_stream(folder, cable, rate, asdus, 'smp_synch = "%s";' % synch, SECONDS)
            judge_stream(folder, source, sent, received[0], synch == "global_clock")
            check(sent["figures"]["messages_sent"] == -(-sent["sent"] // asdus), "messages are full: %s" % sent)
            check(received[0]["figures"]["smp_rate"] == rate, "the rate: %s" % received[0])
            print("%d a second, %s: %d samples, %d steps left out by the source" % (
                rate, synch, sent["sent"], source["missed"]))


def modest(folder, cable):
    """The same at a rate that any machine can do, without smpRate in the messages."""
    source, sent, received = run_stream(folder, cable, 500, 3, 'smp_synch = "global_clock"; announce = false;', 2.5,
                                        inner="smp_rate = 500;")
    judge_stream(folder, source, sent, received[0], True)
    origins = [(s * 1000000000 + ns) % 2000000 for s, ns, _, _ in rows(folder)]
    check(max(origins) - min(origins) < 500000, "refrTm is the planned time of each sample: %s" % origins[:5])


def eight(folder, cable):
    """Eight subscribers of one stream: each gets all."""
    source, sent, received = run_stream(folder, cable, 1000, 2, 'smp_synch = "global_clock";', 1.5, 8)
    for i in range(8):
        judge_stream(folder, source, sent, received[i], True, i)


# ---- frames of the test ----

def item(tag, value):
    size = bytes([len(value)]) if len(value) < 128 else b"\x82" + struct.pack("!H", len(value))
    return bytes([tag]) + size + value


def asdu(count, values=b"\0\0\0\1\0\0\0\2", sv_id=b"MU", revision=1, synch=2, dataset=None, refreshed=None,
         rate=None, mode=None, grandmaster=None):
    parts = [item(0x80, sv_id)]
    if dataset:
        parts.append(item(0x81, dataset))
    parts += [item(0x82, struct.pack("!H", count)), item(0x83, struct.pack("!I", revision))]
    if refreshed:
        parts.append(item(0x84, refreshed))
    parts.append(item(0x85, bytes([synch])))
    if rate:
        parts.append(item(0x86, struct.pack("!H", rate)))
    parts.append(item(0x87, values))
    if mode is not None:
        parts.append(item(0x88, struct.pack("!H", mode)))
    if grandmaster:
        parts.append(item(0x89, grandmaster))
    return item(0x30, b"".join(parts))


def frame(*asdus, app_id=0x4000, simulation=False, vlan=None, to=GROUP, behind=b"", number=None):
    body = item(0x60, item(0x80, bytes([number or len(asdus)])) + item(0xa2, b"".join(asdus)))
    tag = struct.pack("!HH", 0x8100, vlan) if vlan is not None else b""
    data = to + b"\2\0\0\0\0\7" + tag + struct.pack("!HHHHH", ETHERTYPE, app_id, 8 + len(body), simulation << 15, 0)
    return (data + body + behind).ljust(60, b"\0")


class Reader:
    """A gateway that reads what the test sends."""

    def __init__(self, folder, cable, inner="", **more):
        self.folder, self.socket = folder, cable.socket("end0")
        with cable.other_end():
            self.gateway = subscriber(folder, inner, **more)
        self.sent = 0

    def __enter__(self):
        return self

    def __exit__(self, kind, value, trace):
        self.socket.close()
        if kind:
            self.gateway.give_up()
        else:
            self.log = ends_soon(self.gateway)

    def send(self, *frames):
        for f in frames:
            self.socket.send(f)

    def until(self, **want):
        """Until these figures have exactly these values."""
        until(lambda: all(figures(self.gateway, "x0")[k] == v for k, v in want.items()),
              lambda: "%s: %s; %s" % (want, figures(self.gateway, "x0"), open(self.gateway.log).read()[-500:]))

    def rows(self, count):
        until(lambda: os.path.exists(out_file(self.folder, "reader")) and len(rows(self.folder)) >= count,
              lambda: "%d samples: %s" % (count, figures(self.gateway, "x0")))
        check(len(rows(self.folder)) == count, "no more than %d samples: %s" % (count, rows(self.folder)))
        return rows(self.folder)


def foreign(folder, cable):
    """Messages of other publishers: optional fields, tags, trailers, several ASDUs."""
    refreshed = struct.pack("!IB3s", 1700000000, 0x40, b"\0\0\x0a")  # a quarter of a second
    with Reader(folder, cable) as r:
        r.send(frame(asdu(3998, struct.pack("!ii", -5, 7))),
               frame(asdu(3999, dataset=b"LD/LLN0$PhsMeas1", refreshed=refreshed, rate=4000, mode=1, grandmaster=b"12345678"),
                     vlan=4 << 13 | 5),
               # Behind the message: the trailer of a redundant network, and a frame as long as can be.
               frame(asdu(0), behind=b"\x12\x34\xa0\x50\x88\xfb"), frame(asdu(1), behind=b"\0" * 1000, vlan=0),
               frame(asdu(2), asdu(3), asdu(4, struct.pack("!ii", 8, 9))),
               frame(asdu(5), to=b"\x01\x0c\xcd\x04\x01\xff"))
        got = r.rows(8)
        check([g[2] - got[0][2] for g in got] == list(range(8)), "sequence numbers: %s" % got)
        check(got[0][3] == [-5, 7] and got[1][3] == [1, 2] and got[6][3] == [8, 9], "values: %s" % got)
        check(got[1][:2] == (1700000000, 250000000), "refrTm: %s" % (got[1],))
        r.until(messages_received=6, malformed=0, smp_lost=0, smp_synch=2)


def refused(folder, cable):
    """What contradicts itself or the configuration is counted, said, and not read."""
    good = frame(asdu(10))
    with Reader(folder, cable, 'conf_rev = 1; sv_id = "MU"; smp_rate = 4000; check_dst_address = true;') as r:
        r.send(good, frame(asdu(11, b"\0" * 12)))
        r.until(wrong_length=1, malformed=1)
        r.send(frame(asdu(11, b"\0" * 7)))
        r.until(wrong_length=2, malformed=2)
        r.send(frame(asdu(11, revision=2)))
        r.until(wrong_conf_rev=1, malformed=3)
        r.send(frame(asdu(4000)))
        r.until(wrong_smp_cnt=1, malformed=4)
        r.send(frame(asdu(11), number=2), frame(asdu(11), asdu(12), number=1), good[:40], good[:22] + b"\x61" + good[23:])
        r.until(malformed=8, messages_received=5)
        r.send(frame(asdu(11, sv_id=b"MU2")), frame(asdu(11), app_id=0x4001), frame(asdu(11), to=GROUP[:5] + b"\2"))
        r.until(others=3)
        r.send(frame(asdu(11), simulation=True))
        r.until(simulated=1)
        r.send(frame(asdu(11, synch=0)))
        r.until(not_synchronized=1, smp_synch=0, smp_lost=0)
        # Numbers: two are lost, one comes late, one again.
        r.send(frame(asdu(14)), frame(asdu(13)), frame(asdu(14)))
        r.until(smp_lost=2, reordered=1, repeated=1)
        # The one that came late has reached the path, whose hook `drop` left it out.
        got = r.rows(3)
        check([g[2] for g in got] == [10, 11, 14], "sequence numbers: %s" % got)
        check(stats(r.gateway, "x0")["received"] == 4, "four are read")
        state = stats(r.gateway, "x0")
        check((state["lost"], state["reordered"]) == (2, 1), "the node's own counters: %s" % state)
    for word in ("a data set has 12 bytes, in.signals describe 8",):
        check(word in r.log, "the log says '%s': %s" % (word, r.log))


def silent(folder, cable):
    """Seconds without a sample are lost samples if they have passed, also between two samples of one
    message; refrTm alone does not say so."""
    def refreshed(milliseconds):
        return struct.pack("!I", 1700000000 + milliseconds // 1000) + \
            struct.pack("!I", (milliseconds % 1000) * 2 ** 24 // 1000)[1:] + b"\x0a"
    with Reader(folder, cable, "smp_rate = 100;") as r:
        r.send(frame(asdu(1, refreshed=refreshed(10)), asdu(2, refreshed=refreshed(20))))
        r.until(messages_received=1)
        # As if the publisher's clock had been set; no time has passed.
        r.send(frame(asdu(3, refreshed=refreshed(9000030))))
        r.until(messages_received=2, smp_lost=0)
        since = time.monotonic()
        r.send(frame(asdu(4, refreshed=refreshed(40))))
        r.until(messages_received=3)
        until(lambda: time.monotonic() > since + 1.2, "time passes")
        r.send(frame(asdu(5, refreshed=refreshed(50)), asdu(6, refreshed=refreshed(1060))))
        r.until(messages_received=4, smp_lost=100)
        check([g[2] for g in r.rows(6)] == [1, 2, 3, 4, 5, 106], "sequence numbers: %s" % rows(folder))


def simulated(folder, cable):
    """in.simulation: simulated messages take the place of the others."""
    with Reader(folder, cable, "simulation = true;") as r:
        r.send(frame(asdu(1)), frame(asdu(2), simulation=True), frame(asdu(3)), frame(asdu(3), simulation=True),
               frame(asdu(9, sv_id=b"other"), simulation=True))
        r.until(not_simulated=1, simulated=0, foreign=1)
        check([g[2] for g in r.rows(3)] == [1, 2, 3], "samples: %s" % rows(folder))


def quality(folder, cable):
    """Eight channels with quality, as in 9-2LE; one is read as a signal of its own."""
    signals = '( { count = 7; iec_type = "int32"; quality = true; }, { iec_type = "int32"; }, { iec_type = "quality"; } )'
    with Reader(folder, cable, signals=signals) as r:
        values = b"".join(struct.pack("!iI", v, q) for v, q in ((1, 0), (2, 1), (3, 3), (4, 0x800), (5, 0), (6, 0), (7, 0), (8, 3)))
        r.send(frame(asdu(7, values)))
        check(r.rows(1)[0][3] == [1, 2, 3, 4, 5, 6, 7, 8, 3], "values: %s" % rows(folder))
        r.until(bad_quality=2)


def global_time(folder, cable):
    """Without refrTm the time is that of smpCnt, if it is known where that wraps."""
    with Reader(folder, cable, "smp_rate = 4000;") as r:
        r.send(frame(asdu(0)), frame(asdu(1000)))
        got = r.rows(2)
        check(got[0][1] == 0 and got[1][1] == 250000000, "fractions: %s" % got)
        check(all(abs(g[0] + g[1] * 1e-9 - time.time()) < 60 for g in got), "seconds: %s" % got)


def two_sources(folder, cable):
    """A path with two sources waits for both; what is left in a message is not forgotten."""
    file = os.path.join(folder, "both.csv")
    text = """
nodes = {
	a = { %s };
	b = { %s };
	f = { type = "file"; uri = "%s"; format = "csv"; out = { flush = true; }; };
};
paths = ( { in = [ "a", "b" ]; out = "f"; mode = "any"; } );
""" % (node("end1", 'in = { signals = "2i"; sv_id = "A"; };'), node("end1", 'in = { signals = "i"; sv_id = "B"; };'), file)
    with Gateways() as gateways:
        with cable.other_end():
            gateway = Gateway(folder, "both", text)
        gateways.append(gateway)
        s = cable.socket("end0")
        for i in range(200):
            s.send(frame(*(asdu(5 * i + k, struct.pack("!qq", 5 * i + k, 0), sv_id=b"A") for k in range(5))))
            s.send(frame(asdu(i, struct.pack("!q", i), sv_id=b"B")))
        until(lambda: stats(gateway, "a")["received"] == 1000 and stats(gateway, "b")["received"] == 200,
              lambda: "both arrive: %s %s" % (stats(gateway, "a"), stats(gateway, "b")))
        check(figures(gateway, "a")["others"] == 200 and figures(gateway, "b")["others"] == 1000, "each passes over the other's")
        s.close()
        ends_soon(gateway)


def down(folder, cable):
    """An interface that is down for a while: what cannot be sent is counted, and then it goes on."""
    with Gateways() as gateways:
        with cable.other_end():
            gateways.append(subscriber(folder))
        gateways.append(publisher(folder, "smp_rate = 1000; smp_mod = \"samples_per_second\";"))
        reader, writer = gateways

        def goes_on():
            before = stats(reader, "x0")["received"]
            until(lambda: stats(reader, "x0")["received"] >= before + 50,
                  lambda: "samples arrive: %s %s" % (stats(reader, "x0"), stats(writer)))
        goes_on()
        subprocess.run(["ip", "link", "set", "end0", "down"], check=True)
        with cable.other_end():
            subprocess.run(["ip", "link", "set", "end1", "down"], check=True)
        before = stats(writer)["not_sent"]
        until(lambda: stats(writer)["not_sent"] >= before + 50, lambda: "losses are counted: %s" % stats(writer))
        check(stats(writer)["losses"]["absent"] >= 50, "by their cause: %s" % stats(writer)["losses"])
        subprocess.run(["ip", "link", "set", "end0", "up"], check=True)
        with cable.other_end():
            subprocess.run(["ip", "link", "set", "end1", "up"], check=True)
        goes_on()
        check("end1 is down" in ends_soon(reader), "the reader says so")
        ends_soon(writer)


def take_frames(taken, count):
    frames = []
    while len(frames) < count:
        data = taken.recv(2048)
        if data[12:14] == struct.pack("!H", ETHERTYPE):
            frames.append(data)
    taken.close()
    return frames


def dissect(folder, frames, *names):
    """What tshark reads in the frames: these fields of each; nothing is malformed."""
    file = os.path.join(folder, "sv.pcap")
    with open(file, "wb") as f:
        f.write(struct.pack("!IHHiIII", 0xa1b2c3d4, 2, 4, 0, 0, 65535, 1))
        for data in frames:
            f.write(struct.pack("!IIII", 1, 0, len(data), len(data)) + data)

    def fields(filter_, *names):
        args = ["tshark", "-r", file, "-Y", filter_, "-T", "fields"]
        for name in names:
            args += ["-e", name]
        out = subprocess.run(args, check=True, capture_output=True, text=True, timeout=60).stdout
        return [line.split("\t") for line in out.splitlines()]
    check(not fields("_ws.malformed || _ws.expert.severity >= 6291456", "frame.number"), "nothing is malformed")
    got = fields("sv", *names)
    check(len(got) == len(frames), "all are sampled values: %d" % len(got))
    return got


def tshark(folder, cable):
    """Wireshark finds in the messages of a publisher what it was told to send, and nothing malformed."""
    if not shutil.which("tshark"):
        servers.skip("tshark is not installed")
    with cable.other_end():
        taken = cable.socket("end1")
    with Gateways() as gateways:
        gateways.append(publisher(
            folder, 'datset = "LD/LLN0$Meas"; conf_rev = 77; smp_mod = "samples_per_second"; smp_rate = 500; '
            'smp_synch = "global_clock"; asdus = 3; simulation = true; vlan = { id = 5; priority = 6; };',
            rate=500, signals='( { iec_type = "int32"; quality = true; }, { iec_type = "float64"; } )'))
        frames = take_frames(taken, 40)
        ends_soon(gateways[0])
    got = dissect(folder, frames, "eth.dst", "sv.appid", "sv.reserve1.s_bit", "sv.noASDU", "sv.svID", "sv.datSet",
                  "sv.confRev", "sv.smpSynch", "sv.smpRate", "sv.smpMod", "sv.smpCnt")
    numbers = []
    for row in got:
        check(row[0] == "01:0c:cd:04:00:01" and int(row[1], 16) == 0x4000 and row[2] in ("1", "True"), "%s" % row)
        check(row[3] == "3" and row[4] == "MU,MU,MU" and row[5] == ",".join(["LD/LLN0$Meas"] * 3), "%s" % row)
        check(row[6] == "77,77,77" and row[7] == "2,2,2" and row[8] == "500,500,500" and row[9] == "1,1,1", "%s" % row)
        numbers += [int(n) for n in row[10].split(",")]
    check(all((b - a) % 500 in range(1, 50) for a, b in zip(numbers, numbers[1:])), "smpCnt: %s" % numbers)
    check(sum(b == (a + 1) % 500 for a, b in zip(numbers, numbers[1:])) > 60, "mostly without gaps: %s" % numbers)


STATION = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../../examples/station.scd")
FROM_FILE = """
nodes = {
	sig = { type = "signal"; signal = "counter"; rate = 1000; values = 2; };
	x = { type = "iec61850-9-2"; interface = "%s"; %s = { scl = { file = "%s"; ied = "MU01"; control = "MU/LLN0.currents"; }; %s }; };
	f = { type = "file"; uri = "%s"; format = "csv"; out = { flush = true; }; };
};
paths = ( %s );
"""


def engineering_file(folder, cable):
    """A publisher and a subscriber that know no more than the name of a control block in an SCL file
    understand each other, and tshark reads what the file says. What contradicts the file is said."""
    def gateway(name, interface, way, path, more=""):
        return Gateway(folder, name, FROM_FILE % (interface, way, STATION, more, out_file(folder, name), path))
    with cable.other_end():
        taken = cable.socket("end1")
    with Gateways() as gateways:
        with cable.other_end():
            gateways.append(gateway("reader", "end1", "in", '{ in = "x"; out = "f"; }'))
            gateways.append(gateway("other", "end1", "in", '{ in = "x"; out = "f"; }', "conf_rev = 1;"))
        gateways.append(gateway("writer", "end0", "out", '{ in = "sig"; out = "x"; }'))
        until(lambda: os.path.exists(out_file(folder, "reader")) and len(rows(folder)) > 100, "samples arrive")
        until(lambda: figures(gateways[1])["wrong_conf_rev"] > 100, "the other one reads none")
        check(not any(figures(gateways[0])[k] for k in ("wrong_length", "others", "wrong_conf_rev", "bad_quality")),
              "%s" % figures(gateways[0]))
        said = [ends_soon(g, (0, 3)) for g in reversed(gateways)]
    check("conf_rev: overrules 2 of " + STATION + ":" in said[1], said[1])
    with open(out_file(folder, "reader")) as f:
        check("sequence,MU/I01ATCTR1.AmpSv.instMag.i,MU/I01BTCTR2.AmpSv.instMag.i" in f.readline(), "names of signals")
    if shutil.which("tshark"):
        for row in dissect(folder, take_frames(taken, 20), "eth.dst", "sv.appid", "sv.noASDU", "sv.svID", "sv.datSet",
                           "sv.confRev", "sv.smpRate", "sv.smpMod"):
            check([row[0], int(row[1], 16)] + row[2:] == ["01:0c:cd:04:00:01", 0x4001, "2", "MU01currents,MU01currents",
                  "MU01MU/LLN0$phases,MU01MU/LLN0$phases", "2,2", "4800,4800", "1,1"], "%s" % row)


def session(*payloads, version=2, behind=b""):
    """A datagram of R-SV, made here from the tables of the standard; each payload is a message."""
    parts = b"".join(b"\x82\0" + struct.pack(">HH", 0x4000, len(p)) + p for p in payloads)
    security = struct.pack(">Ih", 0, 0) + (bytes(6) if version == 1 else bytes(5))
    head = struct.pack(">IIH", 10 + len(security) + 4 + len(parts), 1, version) + security
    return (b"\1\x40\xa2" + bytes([len(head) + 2, 0x80, len(head)]) + head + struct.pack(">I", len(parts)) + parts + behind)


def routed(folder, cable):
    """Samples arrive over UDP, at a host and in a group; a datagram is what the standard says, may have
    several payloads, and is refused if it is signed."""
    subprocess.run(["ip", "addr", "add", "192.0.2.1/24", "dev", "end0"], check=True)
    with cable.other_end():
        subprocess.run(["ip", "addr", "add", "192.0.2.2/24", "dev", "end1"], check=True)
    for to, version in (("192.0.2.2", 1), ("239.1.2.3", 2)):
        with contextlib.suppress(FileNotFoundError):
            os.unlink(out_file(folder, "reader"))
        with Gateways() as gateways:
            with cable.other_end():
                taken = cable.socket("end1")
                gateways.append(subscriber(folder, 'routed = true; smp_rate = 1000;' + (
                    ' multicast_groups = "239.1.2.3";' if version == 2 else "")))
            gateways.append(publisher(folder, 'routed = true; remote_address = "%s"; session_version = %d; asdus = 2; '
                                      'smp_rate = 1000; smp_mod = "samples_per_second";' % (to, version)))
            reader, writer = gateways
            until(lambda: stats(writer, "sig")["received"] > 500, "samples are sent")
            writer.ask("/node/sig/stop", "POST")
            writer.ask("/node/x/stop", "POST")
            sent = figures(writer)["messages_sent"]
            until(lambda: figures(reader, "x0")["messages_received"] == sent, "each message arrives")
            f = figures(reader, "x0")
            check(not any(f[k] for k in ("malformed", "secured", "others", "smp_lost", "repeated", "restarts")), "%s" % f)
            until(lambda: len(rows(folder)) == stats(reader, "x0")["received"], "each sample is written")
            ends_soon(writer)
            while True:
                data = taken.recv(2048)
                if data[12:14] == b"\x08\0" and data[23] == 17:
                    break
            taken.close()
            size = 24 if version == 1 else 23
            check(data[36:38] == struct.pack(">H", 102) and data[42:46] == b"\1\x40\xa2" + bytes([size]), data.hex())
            check(data[56:58] == struct.pack(">H", version), data.hex())
            body = data[46 + size:]
            check(struct.unpack(">I", body[:4])[0] == len(body) - 4 and body[4:8] == b"\x82\0\x40\0", data.hex())
            check(struct.unpack(">H", body[8:10])[0] == len(body) - 10 and body[10] == 0x60, data.hex())
            ends_soon(reader)
    with Gateways() as gateways:
        with cable.other_end():
            gateways.append(subscriber(folder, "routed = true; smp_rate = 1000;", name="forged"))
        reader = gateways[0]
        udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)

        def message(count):
            data = frame(asdu(count))[14:]
            return data[8:struct.unpack(">H", data[2:4])[0]]
        for datagram, figure in ((session(message(1), message(2), message(3)), "messages_received"),
                                 (session(message(4), version=1), "messages_received"),
                                 (session(message(5), behind=b"\x85\4abcd"), "secured"),
                                 (session(message(5))[:-1], "malformed"), (session(message(5), version=7), "malformed"),
                                 (session(message(5)).replace(b"\x82\0\x40\0", b"\x81\0\x40\0"), "others")):
            before = figures(reader, "x0")[figure]
            udp.sendto(datagram, ("192.0.2.2", 102))
            until(lambda: figures(reader, "x0")[figure] > before, figure)
        until(lambda: len(rows(folder, "forged")) == 4, "four samples")
        check("it is signed, which is not supported" in ends_soon(reader), "it is said")


def refusals(folder, cable):
    """A start without an interface, a right or room says what is missing."""
    def start(text, *wrap):
        path = os.path.join(folder, "refused.conf")
        with open(path, "w") as f:
            f.write("nodes = { sig = { type = \"signal\"; values = 2; }; x = { %s }; };\n"
                    "paths = ( { in = \"sig\"; out = \"x\"; } );\n" % text)
        p = subprocess.run([*wrap, BUSBAR, "run", "-q", path], capture_output=True, text=True, timeout=30)
        check(p.returncode in (1, 2), "it does not start: %d %s" % (p.returncode, p.stderr))
        return p.stderr
    good = node("end0", 'out = { sv_id = "MU"; %s };')
    check("end7" in start(good.replace("end0", "end7") % ""), "the interface is named")
    said = start(good % "asdus = 100;")
    check("100 samples" in said and "1500" in said, "the room: %s" % said)
    said = start(good % 'smp_rate = 4000;')
    check("smp_rate" in said and "samples_per_second" in said, "4000 in a period: %s" % said)
    said = start(node("end0", "in = { };"))
    check("signals" in said, "signals: %s" % said)
    said = start(node("end0", 'in = { signals = "2f"; local_port = 102; }'))
    check("local_port: is of routed messages" in said, said)
    said = start(node("end0", 'in = { signals = "2f"; routed = true; local_address = "192.0.2.2"; multicast_groups = "239.1.2.3"; }'))
    check("gets nothing that is sent to multicast_groups" in said, said)
    said = start(node("end0", 'out = { sv_id = "MU"; routed = true; }'))
    check("remote_address: is required" in said, said)
    if shutil.which("setpriv"):
        said = start(good % "", "setpriv", "--bounding-set", "-net_raw", "--inh-caps", "-net_raw")
        check("CAP_NET_RAW" in said, "the right: %s" % said)


SCENARIOS = {f.__name__: f for f in (account, modest, eight, foreign, refused, silent, simulated, quality, global_time, two_sources,
                                     down, tshark, engineering_file, routed, refusals)}


def main():
    if not shutil.which("ip") or not shutil.which("unshare"):
        servers.skip("ip(8) and unshare(1) are needed")
    servers.enter_network()
    cable = Cable()
    try:
        for name in sys.argv[1:] or SCENARIOS:
            with tempfile.TemporaryDirectory(prefix="busbar-sv-") as folder:
                since = time.monotonic()
                SCENARIOS[name](folder, cable)
                print("%s: %.1f s" % (name, time.monotonic() - since), flush=True)
    finally:
        cable.end()


if __name__ == "__main__":
    main()
