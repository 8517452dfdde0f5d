#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""goose.py SCENARIO...: changes in messages of GOOSE, from a gateway in one network namespace to
one in another, over a pair of interfaces; and from messages that the test makes itself.

Environment: BUSBAR, the program.
"""
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
from gateway_process import BUSBAR, Gateway, check
from servers import until, whole_lines

GROUP = "01:0c:cd:01:00:07"
REFERENCE = "BAYLD0/LLN0$GO$trip"
LIVE_MS = 400
INTERVAL = 0.1
WRITER = """
nodes = {
	src = { %s };
	x = { type = "iec61850-8-1"; out = {
		interface = "bay"; resend_interval = %s; vlan = { id = 5; priority = 6; };
		publishers = ( { go_cb_ref = "%s"; data_set_ref = "BAYLD0/LLN0$trip"; go_id = "trip";
			dst_address = "%s"; app_id = 0x1001; conf_rev = 3; time_allowed_to_live = %d;
			data = ( { mms_type = "boolean"; signal = "trip"; }, { mms_type = "int32"; signal = "count"; },
				{ mms_type = "float64"; signal = "u"; },
				{ mms_type = "bitstring"; mms_bitstring_size = 13; value = 2048; } ); } ); }; };
};
paths = ( { in = "src"; out = "x"; } );
"""
COUNTER = """type = "signal.v2"; rate = 200; in = { signals = ( { name = "trip"; type = "boolean"; signal = "constant"; },
	{ name = "count"; type = "integer"; signal = "counter"; }, { name = "u"; signal = "constant"; amplitude = 1.5; } ); };"""
READER = """
nodes = {
	x = { type = "iec61850-8-1"; in = { interface = "station";
		subscribers = { bay = { go_cb_ref = "%s"; dst_address = "%s"; app_id = 0x1001; trigger = "change"; }; };
		signals = ( { name = "trip"; subscriber = "bay"; index = 0; mms_type = "boolean"; },
			{ name = "count"; subscriber = "bay"; index = 1; mms_type = "int32"; },
			{ name = "u"; subscriber = "bay"; index = 2; mms_type = "float64"; },
			{ name = "quality"; subscriber = "bay"; index = 3; mms_type = "bitstring"; } ); }; };
	f = { type = "file"; uri = "%s"; format = "csv"; out = { flush = true; }; };
};
paths = ( { in = "x"; out = "f"; } );
"""
# The path waits for the descriptors of two sources, of which one never has anything.
SECOND_SOURCE = ('in = "x";', 'in = ( "x", "silent" );'), ("nodes = {", 'nodes = { silent = { type = "loopback"; in = { signals = "1f"; }; };')


class Pair:
    """Two namespaces with an interface each: `bay` here, `station` in the other one."""

    def __init__(self, folder):
        self.folder = folder
        self.got_file = os.path.join(folder, "got.csv")
        self.holder = subprocess.Popen(["unshare", "-n", "sh", "-c", "echo; exec sleep 600"],
                                       stdout=subprocess.PIPE)
        self.holder.stdout.readline()
        self.there = ["nsenter", "-n", "-t", str(self.holder.pid), "--"]
        for command in (["ip", "link", "add", "bay", "type", "veth", "peer", "name", "station",
                         "netns", str(self.holder.pid)],
                        ["ip", "link", "set", "bay", "up"],
                        self.there + ["ip", "link", "set", "station", "up"]):
            subprocess.run(command, check=True, timeout=20)
        self.writer = self.reader = None

    def start_reader(self, replace=()):
        text = READER % (REFERENCE, GROUP, self.got_file)
        for old, new in replace:
            check(old in text, old)
            text = text.replace(old, new)
        self.reader = Gateway(self.folder, "reader", text, self.there)

    def start_writer(self, source=COUNTER):
        self.writer = Gateway(self.folder, "writer",
                              WRITER % (source, INTERVAL, REFERENCE, GROUP, LIVE_MS))

    @staticmethod
    def stats(gateway, node="x"):
        return gateway.ask("/node/" + node)["stats"]

    def figures(self, gateway):
        return self.stats(gateway)["figures"]

    def rows(self):
        """Whole lines of what has arrived: origin, trip, count, u, quality."""
        if not os.path.exists(self.got_file):
            return []
        with open(self.got_file) as f:
            lines = [line.split(",") for line in whole_lines(f) if line[0] != "#"]
        return [(c[0] + "." + c[1], int(c[4]), int(float(c[5])), float(c[6]), int(c[7])) for c in lines]

    def until(self, true, what):
        until(true, lambda: "%s: %s" % (what, "; ".join(
            "%s, %s" % (self.stats(g), open(g.log).read()[-800:])
            for g in (self.writer, self.reader) if g)), 30)

    def await_more(self, count=30):
        before = len(self.rows())
        self.until(lambda: len(self.rows()) >= before + count, "changes go on")

    def end(self):
        for gateway in (self.writer, self.reader):
            if gateway and gateway.process.poll() is None:
                gateway.process.kill()
                gateway.process.wait()
        self.holder.terminate()
        self.holder.wait()


def ends_soon(gateway, statuses=(0,)):
    since = time.monotonic()
    log = gateway.end(statuses)
    check(time.monotonic() - since < 2.5, "the gateway ends in time")
    return log


def changes(rows):
    """Without those that say the same as the one before."""
    return [r for i, r in enumerate(rows) if not i or r[1:] != rows[i - 1][1:]]


def capture(pair, to):
    """A running tshark, once it captures."""
    log = to + ".log"
    process = subprocess.Popen(pair.there + ["tshark", "-i", "station", "-w", to, "-q"],
                               stderr=open(log, "w"), stdout=subprocess.DEVNULL)
    until(lambda: process.poll() is not None or os.path.exists(to) and os.path.getsize(to) > 100 and
          "Capturing" in open(log).read(), "tshark captures", 40)
    check(process.poll() is None, "tshark runs: " + open(log).read())
    return process


def check_capture(path, sent, wanted):
    fields = ["goose.stNum", "goose.sqNum", "goose.timeAllowedtoLive", "goose.confRev", "goose.appid",
              "goose.goID", "vlan.id", "vlan.priority", "goose.numDatSetEntries", "_ws.malformed",
              "_ws.expert.message"]
    out = subprocess.run(["tshark", "-r", path, "-T", "fields"] + [w for f in fields for w in ("-e", f)] +
                         ["-Y", "eth.type == 0x8100 || goose"], capture_output=True, text=True,
                         check=True, timeout=60).stdout
    lines = [line.split("\t") for line in out.splitlines()]
    check(len(lines) == sent, "frames: %d, sent %d" % (len(lines), sent))
    state, sequence, seen = 0, 0, 0
    for line in lines:
        check(line[2:] == [str(LIVE_MS), "3", "0x1001", "trip", "5", "6", "4", "", ""], "a frame: %s" % line)
        if int(line[0]) != state:
            check(int(line[0]) == state + 1 and line[1] == "0", "a change: %s after %d" % (line, state))
            state, sequence, seen = int(line[0]), 0, seen + 1
        else:
            check(int(line[1]) == sequence + 1, "a repetition: %s after %d" % (line, sequence))
            sequence += 1
    check(seen == wanted, "changes: %d, wanted %d" % (seen, wanted))
    check(len(lines) > seen, "there are repetitions")


# ---- scenarios ----

def exchange(pair):
    """Each change arrives once, with its values and time; a sample that changes nothing is no
    message."""
    count, source = 400, os.path.join(pair.folder, "rows.csv")
    rows = [("%d.%09d" % (1700000000 + i, 500000000), i // 4 % 2, -i // 2 * 1000, (i // 4) * 0.25, 2048)
            for i in range(count)]
    with open(source, "w") as f:
        for i, row in enumerate(rows):
            f.write("%s,%s,0.0,%d,%d,%d,%r\n" % (*row[0].split("."), i, *row[1:4]))
    wanted = changes(rows)
    check(count // 3 < len(wanted) < count, "some rows change nothing")
    pair.start_reader()
    with_tshark = shutil.which("tshark")
    path = os.path.join(pair.folder, "frames.pcapng")
    tshark = capture(pair, path) if with_tshark else None
    pair.start_writer('type = "file"; uri = "%s"; format = "csv"; in = { rate = 500.0; eof = "wait"; epoch_mode = "original"; '
                      'signals = ( { name = "trip"; type = "boolean"; }, { name = "count"; type = "integer"; }, { name = "u"; } ); };'
                      % source)
    pair.until(lambda: len(pair.rows()) >= len(wanted), "all changes arrive")
    # And repetitions up to the longest interval.
    pair.until(lambda: pair.figures(pair.writer)["messages_sent"] > len(wanted) + 10, "repetitions are sent")
    log = pair.figures(pair.writer)
    check(log["changes_sent"] == len(wanted) and log["unchanged"] == count - len(wanted) and
          not log["send_failed"], "the writer: %s" % log)
    # The last figures of the writer, behind which it sends nothing.
    pair.writer.ask("/node/x/stop", "POST")
    sent = pair.figures(pair.writer)["messages_sent"]
    pair.until(lambda: pair.figures(pair.reader)["messages_received"] == sent, "all messages arrive")
    f = pair.figures(pair.reader)
    check(f["changes"] == len(wanted) and f["repetitions"] == sent - len(wanted), "the reader: %s" % f)
    check(not any(f[k] for k in ("lost_changes", "lost_messages", "duplicates", "old", "malformed", "mismatched",
                                 "restarts", "others")), "the reader: %s" % f)
    check(pair.stats(pair.reader)["lost"] == 0, "no sample is lost")
    got = pair.rows()
    check([r[1:] for r in got] == [r[1:] for r in wanted], "values: %s" % got[:5])
    for g, w in zip(got, wanted):
        check(abs(float(g[0]) - float(w[0])) < 1e-6, "the time of a change: %s, %s" % (g, w))
    if tshark:
        # It may not have written the last ones yet.
        until(lambda: subprocess.run(["tshark", "-r", path, "-Y", "goose"], capture_output=True,
                                     text=True, timeout=60).stdout.count("\n") >= sent,
              "tshark has all frames", 40)
        tshark.send_signal(signal.SIGINT)
        tshark.wait(20)
        check_capture(path, sent, len(wanted))
    for gateway in (pair.writer, pair.reader):
        ends_soon(gateway)
    if not with_tshark:
        print("without tshark")


def down(pair):
    """What could not be sent is counted at both ends; a reader says once that nothing comes."""
    pair.start_reader(SECOND_SOURCE)
    pair.start_writer()
    pair.await_more()
    subprocess.run(["ip", "link", "set", "bay", "down"], check=True, timeout=20)
    pair.until(lambda: pair.figures(pair.reader)["expired"] == 1 and
               pair.figures(pair.writer)["send_failed"] > 20, "the time ends")
    subprocess.run(["ip", "link", "set", "bay", "up"], check=True, timeout=20)
    pair.await_more()
    pair.writer.ask("/node/src/stop", "POST")
    w = pair.stats(pair.writer)

    def all_there():
        nonlocal w
        w = pair.stats(pair.writer)
        return w["sent"] == w["not_stored"] + len(pair.rows())
    pair.until(all_there, "each sample arrives or is counted")
    f = pair.figures(pair.reader)
    check(w["not_stored"] > 0 and f["lost_changes"] == w["not_stored"], "losses: %s, %s" % (w, f))
    check(pair.stats(pair.reader)["lost"] == f["lost_changes"], "the reader's samples that are lost")
    check(f["expired"] == 1 and not f["restarts"] and not f["old"], "the reader: %s" % f)
    counts = [r[2] for r in pair.rows()]
    check(counts == sorted(set(counts)), "each change once, in order")
    ends_soon(pair.writer)
    log = ends_soon(pair.reader)
    check(log.count("time allowed to live") == 1, "it is said once: " + log)


def restart(pair):
    """The numbers of another publisher are not used until the time of the last message ends."""
    pair.start_reader()
    pair.start_writer()
    pair.await_more(100)
    pair.writer.process.kill()
    pair.writer.process.wait()
    before = len(pair.rows())
    pair.start_writer(COUNTER.replace("200", "20"))
    pair.until(lambda: pair.figures(pair.reader)["restarts"] == 1, "the publisher has begun again")
    pair.await_more(10)
    f = pair.figures(pair.reader)
    check(f["expired"] == 1 and f["restarts"] == 1, "the reader: %s" % f)
    rest = [r[2] for r in pair.rows()[before:]]
    check(rest == sorted(set(rest)), "each change once, in order: %s" % rest)
    # A node that is stopped and started goes on with its numbers.
    pair.writer.ask("/node/x/stop", "POST")
    pair.writer.ask("/node/x/start", "POST")
    pair.await_more(10)
    f = pair.figures(pair.reader)
    check(f["restarts"] == 1, "the reader: %s" % f)
    ends_soon(pair.writer)
    ends_soon(pair.reader)


def item(tag, value):
    head = bytes([tag, len(value)] if len(value) < 128 else [tag, 0x81, len(value)])
    return head + value


def message(state, sequence=0, trip=1, count=5, values=None, live=5000, commissioning=0, simulation=0,
            reference=REFERENCE, revision=3):
    """A frame, made here from the tables of the standard."""
    if values is None:
        values = [item(0x83, bytes([trip])), item(0x85, struct.pack(">i", count)),
                  item(0x87, b"\x0b" + struct.pack(">d", 1.5)), item(0x84, b"\x03\x00\x10")]
    body = item(0x61, item(0x80, reference.encode()) + item(0x81, struct.pack(">i", live)) +
                item(0x82, b"set") + item(0x84, struct.pack(">II", 1700000000, 0)) +
                item(0x85, struct.pack(">i", state)) + item(0x86, struct.pack(">i", sequence)) +
                item(0x87, bytes([simulation])) + item(0x88, bytes([revision])) +
                item(0x89, bytes([commissioning])) + item(0x8a, bytes([len(values)])) +
                item(0xab, b"".join(values)))
    return struct.pack(">HHHH", 0x1001, len(body) + 8, 0, 0) + body


def sender():
    """A function that sends a message in a frame from `bay`."""
    raw = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
    raw.bind(("bay", 0))
    own = raw.getsockname()[4]
    return lambda payload, to=GROUP: raw.send(bytes.fromhex(to.replace(":", "")) + own + b"\x88\xb8" + payload)


DATA = """data = ( { mms_type = "structure"; members = ( { mms_type = "boolean"; signal = "trip"; },
	{ mms_type = "structure"; members = ( { mms_type = "float32"; signal = "u"; }, { mms_type = "int32"; signal = "count"; } ); },
	{ mms_type = "bitstring"; mms_bitstring_size = 13; value = 1; }, { mms_type = "timestamp"; } ); },
	{ mms_type = "array"; members = ( { mms_type = "int32"; value = 7; }, { mms_type = "int32"; value = -8; } ); },
	{ mms_type = "visible_string"; value = "bay 1"; } )"""
MEMBERS = (
    ('name = "trip"; subscriber = "bay"; index = 0;', 'name = "trip"; subscriber = "bay"; index = 0; member = "0";'),
    ('index = 1; mms_type = "int32"', 'index = 0; member = "1.1"; mms_type = "int32"'),
    ('index = 2;', 'index = 0; member = "1.0";'),
    ('name = "quality"; subscriber = "bay"; index = 3; mms_type = "bitstring"; }',
     'name = "t"; subscriber = "bay"; index = 0; member = "3"; mms_type = "timestamp"; }, '
     '{ name = "more"; subscriber = "bay"; index = 1; member = "1"; mms_type = "int32"; }'))
FIELDS = ["goose.numDatSetEntries", "goose.boolean", "goose.integer", "goose.float_value", "goose.bit_string",
          "goose.visible_string", "goose.array", "goose.structure", "_ws.malformed", "_ws.expert.message"]


def structures(pair):
    """Members of structures and arrays arrive as values of signals; tshark reads the same messages. A
    structure without the member changes nothing."""
    pair.start_reader(MEMBERS)
    with_tshark = shutil.which("tshark")
    path = os.path.join(pair.folder, "frames.pcapng")
    tshark = capture(pair, path) if with_tshark else None
    text = WRITER % (COUNTER, INTERVAL, REFERENCE, GROUP, LIVE_MS)
    end = "value = 2048; } )"
    pair.writer = Gateway(pair.folder, "writer",
                          text[:text.index("data = (")] + DATA + text[text.index(end) + len(end):])
    pair.await_more(50)
    pair.writer.ask("/node/src/stop", "POST")
    pair.until(lambda: pair.stats(pair.writer)["sent"] == len(pair.rows()), "each change arrives")
    rows = pair.rows()
    counts = [r[2] for r in rows]
    check(counts == sorted(set(counts)), "counts: %s" % counts)
    for at, _, _, u, t in rows:
        check(u == 1.5 and abs(float(at) - t / 1e9) < 1e-6, "a row: %s" % rows[:2])
    pair.writer.ask("/node/x/stop", "POST")
    f = pair.figures(pair.reader)
    check(not f["mismatched"] and not f["malformed"], "%s" % f)
    if tshark:
        until(lambda: subprocess.run(["tshark", "-r", path, "-Y", "goose"], capture_output=True, text=True,
                                     timeout=60).stdout.count("\n") >= f["messages_received"], "all frames", 40)
        tshark.send_signal(signal.SIGINT)
        tshark.wait(20)
        out = subprocess.run(["tshark", "-r", path, "-T", "fields"] + [w for x in FIELDS for w in ("-e", x)],
                             capture_output=True, text=True, check=True, timeout=60).stdout
        counts = set()
        for line in filter(str.strip, out.splitlines()):
            line = line.split("\t")
            numbers = line[2].split(",")
            counts.add(int(numbers[0]))
            check(line[:2] == ["3", "1"] and numbers[1:] == ["7", "-8"] and line[3] == "1.5" and
                  line[5] == "bay 1" and line[4] == "8000" and line[8:] == ["", ""], "a frame: %s" % line)
        check(counts == {r[2] for r in rows}, "tshark has the same counts")
    send = sender()
    short = item(0xa2, item(0x83, b"\1") + item(0xa2, item(0x87, b"\x08" + bytes(4))))
    send(message(100000, values=[short, item(0xa1, b"")]))
    pair.until(lambda: pair.figures(pair.reader)["mismatched"] == 1, "a member is missing")
    check(len(pair.rows()) == len(rows), "it changes nothing")
    ends_soon(pair.writer)
    log = ends_soon(pair.reader)
    check("value 0, member 1.1 is not of type int32" in log, log)


STATION = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../../examples/station.scd")
SCL = 'scl = { file = "%s"; control = "LD0/LLN0.trip"; %%s };' % STATION
FILE_WRITER = """
nodes = {
	src = { type = "signal.v2"; rate = 200; in = { signals = ( { name = "trip"; type = "boolean"; signal = "constant"; },
		{ name = "mag"; signal = "counter"; }, { name = "ang"; signal = "constant"; amplitude = 0.25; },
		{ name = "pos"; type = "integer"; signal = "constant"; amplitude = 2; } ); }; };
	x = { type = "iec61850-8-1"; out = { interface = "bay"; publishers = ( { %s %s } ); }; };
};
paths = ( { in = "src"; out = "x"; } );
"""
FILE_READER = """
nodes = {
	x = { type = "iec61850-8-1"; in = { interface = "station"; subscribers = { bay = { %s trigger = "change"; }; }; %s }; };
	f = { type = "file"; uri = "%s"; format = "csv"; out = { flush = true; }; };
};
paths = ( { in = "x"; out = "f"; } );
"""
SOME_SIGNALS = """signals = ( { name = "trip"; subscriber = "bay"; attribute = "LD0/PTRC1.Tr.general"; },
	{ name = "count"; subscriber = "bay"; attribute = "LD0/MMXU1.A.phsA.cVal.mag.f"; },
	{ name = "LD0/MMXU1.A.phsA.cVal.ang.f"; subscriber = "bay"; },
	{ name = "pos"; subscriber = "bay"; index = 3; mms_type = "bitstring"; } );"""


def engineering_file(pair):
    """Publisher and subscriber know the name of a control block in an SCL file, and no more; tshark
    reads what the file says. Another revision is not used, and what contradicts the file is said."""
    pair.reader = Gateway(pair.folder, "reader", FILE_READER % (SCL % "", SOME_SIGNALS, pair.got_file), pair.there)
    path = os.path.join(pair.folder, "frames.pcapng")
    tshark = capture(pair, path) if shutil.which("tshark") else None
    pair.writer = Gateway(pair.folder, "writer", FILE_WRITER % (
        SCL % 'signals = ( "trip", "mag", "ang", "pos" );', ""))
    pair.await_more(50)
    rows = [r[1:] for r in pair.rows()]
    check(all(r[0] == 1 and r[2:] == (0.25, 2) for r in rows), "%s" % rows[:3])
    check([r[1] for r in rows] == sorted({r[1] for r in rows}), "%s" % rows)
    pair.writer.ask("/node/src/stop", "POST")
    pair.until(lambda: pair.stats(pair.writer)["sent"] == len(pair.rows()), "each change arrives")
    if tshark:
        wanted = ["0x1001", "BAY1LD0/LLN0$GO$trip", "BAY1LD0/LLN0$protection", "BAY1trip", "3", "2000", "5", "4", "4", "", ""]
        fields = [w for f in ("goose.appid", "goose.gocbRef", "goose.datSet", "goose.goID", "goose.confRev",
                              "goose.timeAllowedtoLive", "vlan.id", "vlan.priority", "goose.numDatSetEntries",
                              "_ws.malformed", "_ws.expert.message") for w in ("-e", f)]

        def captured():
            out = subprocess.run(["tshark", "-r", path, "-T", "fields", "-Y", "goose"] + fields, capture_output=True,
                                 text=True, timeout=60).stdout
            return [line.split("\t") for line in out.splitlines()]
        until(lambda: len(captured()) >= len(rows), "tshark has the frames", 40)
        tshark.send_signal(signal.SIGINT)
        tshark.wait(20)
        for line in captured():
            check(line == wanted, "%s, wanted %s" % (line, wanted))
    ends_soon(pair.reader)
    os.unlink(pair.got_file)
    ends_soon(pair.writer)
    # All values, by the names in the file; the revision of the configuration comes before the file.
    pair.reader = Gateway(pair.folder, "reader", FILE_READER % (SCL % 'prefix = "bay.";', "", pair.got_file), pair.there)
    pair.writer = Gateway(pair.folder, "writer", FILE_WRITER % (
        SCL % 'signals = ( "trip", "mag", "ang", "pos" );', "conf_rev = 4;"))
    pair.until(lambda: pair.figures(pair.reader)["wrong_conf_rev"] > 10, "another revision is not used")
    check(not os.path.exists(pair.got_file) or not pair.rows(), "no sample")
    log = ends_soon(pair.writer)
    check("conf_rev: overrules 3 of " + STATION in log, log)
    pair.writer = Gateway(pair.folder, "writer", FILE_WRITER % (SCL % 'signals = ( "trip", "mag", "ang", "pos" );', ""))
    pair.until(lambda: os.path.exists(pair.got_file) and "\n1" in open(pair.got_file).read(), "a sample")
    with open(pair.got_file) as f:
        check(f.readline().strip().split(",")[4:] == ["bay." + n for n in (
            "LD0/PTRC1.Tr.general", "LD0/PTRC1.Tr.q", "LD0/MMXU1.A.phsA.cVal.mag.f", "LD0/MMXU1.A.phsA.cVal.ang.f",
            "LD0/MMXU1.A.phsA.q", "LD0/MMXU1.A.phsA.t", "LD0/XCBR1.Pos.stVal")], "names")
    ends_soon(pair.writer)
    ends_soon(pair.reader)


ROUTED_WRITER = (('interface = "bay"; resend_interval', 'routed = true; remote_address = "%s"; session_version = %d; interface = "bay"; resend_interval'),
                 ("vlan = { id = 5; priority = 6; };", ""), ('dst_address = "' + GROUP + '"; ', ""))
ROUTED_READER = (('in = { interface = "station";', 'in = { routed = true; %s interface = "station";'),
                 ('dst_address = "' + GROUP + '"; ', ""))
GROUP_ADDRESS = "239.1.2.3"


def replaced(text, replace):
    for old, new in replace:
        check(old in text, old)
        text = text.replace(old, new)
    return text


def with_addresses(pair):
    for command in (["ip", "addr", "add", "192.0.2.1/24", "dev", "bay"],
                    pair.there + ["ip", "addr", "add", "192.0.2.2/24", "dev", "station"]):
        subprocess.run(command, check=True, timeout=20)


def start_routed_writer(pair, to, version):
    text = WRITER % (COUNTER, INTERVAL, REFERENCE, GROUP, LIVE_MS)
    writer = replaced(text, [ROUTED_WRITER[0], *ROUTED_WRITER[1:]]) % (to, version)
    pair.writer = Gateway(pair.folder, "writer", writer)


def routed(pair):
    """Each change arrives over UDP, at a host and in a group, in both versions of the session header;
    tshark reads those of version 2."""
    with_addresses(pair)
    with_tshark = shutil.which("tshark")
    for to, version in (("192.0.2.2", 1), (GROUP_ADDRESS, 2)):
        groups = 'multicast_groups = [ "%s", "%s" ];' % (to, to) if to == GROUP_ADDRESS else ""
        pair.start_reader([(old, new % groups if "%s" in new else new) for old, new in ROUTED_READER])
        path = os.path.join(pair.folder, "routed%d.pcapng" % version)
        tshark = capture(pair, path) if with_tshark and version == 2 else None
        start_routed_writer(pair, to, version)
        pair.await_more(50)
        pair.writer.ask("/node/src/stop", "POST")
        pair.until(lambda: pair.stats(pair.writer)["sent"] == len(pair.rows()), "each change arrives")
        pair.writer.ask("/node/x/stop", "POST")
        sent = pair.figures(pair.writer)["messages_sent"]
        pair.until(lambda: pair.figures(pair.reader)["messages_received"] == sent, "each message arrives")
        f = pair.figures(pair.reader)
        check(not any(f[k] for k in ("lost_changes", "lost_messages", "duplicates", "malformed", "others", "secured")), "%s" % f)
        if tshark:
            names = ["rgoose.spdu_id", "rgoose.version", "rgoose.appid", "rgoose.init_v_len", "goose.goID",
                     "goose.confRev", "_ws.malformed", "_ws.expert.message", "rgoose.spdu_num"]

            def lines():
                out = subprocess.run(["tshark", "-r", path, "-Y", "r-goose", "-T", "fields"] +
                                     [w for n in names for w in ("-e", n)], capture_output=True, text=True, timeout=60).stdout
                return [line.split("\t") for line in out.splitlines()]
            until(lambda: len(lines()) >= sent, "tshark has all datagrams", 40)
            tshark.send_signal(signal.SIGINT)
            tshark.wait(20)
            for i, line in enumerate(lines()):
                check(line == ["0xa1", "0x0002", "0x1001", "0", "trip", "3", "", "", str(i)], "a datagram: %s" % line)
        ends_soon(pair.writer)
        ends_soon(pair.reader)
        os.unlink(pair.got_file)


def session(*payloads, version=2, kind=0xa1, transport=b"\1\x40", behind=b"", algorithms=b"\0\0", vector=b""):
    """A datagram, made here from the tables of the standard; each payload is a message."""
    parts = b"".join(b"\x81\0" + struct.pack(">HH", 0x1001, len(p) - 8) + p[8:] for p in payloads)
    security = struct.pack(">Ih", 0, 0) + (algorithms + bytes(4) if version == 1 else bytes(4) + bytes([len(vector)]) + vector)
    head = struct.pack(">IIH", 10 + len(security) + 4 + len(parts), 1, version) + security
    return (transport + bytes([kind, len(head) + 2, 0x80, len(head)]) + head + struct.pack(">I", len(parts)) + parts + behind)


def routed_forged(pair):
    """Datagrams that must not be used have their figures: what is signed or encrypted is refused, not
    taken without a look. Several payloads in a datagram are as many samples."""
    with_addresses(pair)
    pair.start_reader([(old, new % "" if "%s" in new else new) for old, new in ROUTED_READER] + list(SECOND_SOURCE))
    udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    signature = b"\x85\x10" + bytes(16)
    steps = [
        (session(message(1)), "changes", 1), (session(message(2), version=1), "changes", 1),
        (session(message(3), message(4), message(5)), "changes", 3), (session(message(6), transport=b""), "changes", 1),
        (session(message(7), behind=signature), "secured", 0), (session(message(7), vector=bytes(12)), "secured", 0),
        (session(message(7), version=1, algorithms=b"\1\0"), "secured", 0),
        (session(message(7), version=1, algorithms=b"\0\1"), "secured", 0),
        (session(message(7), version=3), "malformed", 0), (session(message(7))[:-1], "malformed", 0),
        (session(message(7), behind=b"x"), "malformed", 0), (session(message(7), transport=b"\1\x41"), "malformed", 0),
        (session(message(7), message(8)[:-1]), "malformed", 1), (b"", "malformed", 0),
        (session(message(8, reference="OTHER")), "others", 0), (session(message(8), behind=b"\xaf\2\0\0\x85\0"), "changes", 1),
    ]
    samples = 0
    for payload, figure, delivered in steps:
        before = pair.figures(pair.reader)[figure]
        udp.sendto(payload, ("192.0.2.2", 102))
        pair.until(lambda: pair.figures(pair.reader)[figure] > before, figure)
        samples += delivered
        pair.until(lambda: len(pair.rows()) >= samples, "the samples of " + figure)
    check(len(pair.rows()) == samples, "no more samples")
    log = ends_soon(pair.reader)
    for text in ("it is signed, which is not supported", "its session header is none of 1 and 2", "from 192.0.2.1:"):
        check(text in log, "'%s' in: %s" % (text, log))
    for keys, text in (("routed = true; keys = [];", "signed or encrypted messages of R-GOOSE"),
                       ("local_port = 102;", "`routed` = true"), ('routed = true; multicast_groups = "192.0.2.9";', "addresses of groups"),
                       ('routed = true; local_address = "239.1.2.3";', "the address of a group")):
        path = os.path.join(pair.folder, "bad.conf")
        with open(path, "w") as f:
            bad = READER % (REFERENCE, GROUP, pair.got_file)
            key, rest = ("keys = [];", keys.replace("keys = [];", "")) if "keys" in keys else ("", keys)
            f.write(bad.replace('type = "iec61850-8-1";', 'type = "iec61850-8-1"; ' + key).replace('dst_address = "' + GROUP + '"; ', "")
                    .replace('in = { interface', 'in = { ' + rest + ' interface'))
        done = subprocess.run([BUSBAR, "check", path], capture_output=True, text=True, timeout=60)
        check(done.returncode == 2 and text in done.stderr, "%s: %s" % (keys, done.stderr))


def routed_flood(pair):
    """While datagrams of others come without an end, faster than they are read, the end of a message's time
    is seen, and what the kernel drops is counted."""
    with_addresses(pair)
    pair.start_reader([(old, new % "" if "%s" in new else new) for old, new in ROUTED_READER])
    udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    udp.sendto(session(message(1, live=1)), ("192.0.2.2", 102))
    pair.until(lambda: pair.figures(pair.reader)["expired"] == 1, "expired without others")
    other = session(*[bytes(8) + b"\x61\0"] * 170)  # takes longer to read than to send
    flood = "import socket, sys\ns = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\nwhile True: s.sendto(bytes.fromhex(sys.argv[1]), ('192.0.2.2', 102))"
    senders = [subprocess.Popen([sys.executable, "-c", flood, other.hex()]) for _ in range(2)]
    try:
        pair.until(lambda: pair.figures(pair.reader)["malformed"] > 10000, "others")
        before = pair.figures(pair.reader)["messages_received"]

        def heard():
            for _ in range(20):
                udp.sendto(session(message(2, live=500)), ("192.0.2.2", 102))
            return pair.figures(pair.reader)["messages_received"] > before
        pair.until(heard, "a message among others")
        pair.until(lambda: pair.figures(pair.reader)["expired"] > 1 and pair.figures(pair.reader)["overrun"], "it expires")
    finally:
        for s in senders:
            s.kill()
            s.wait()
    ends_soon(pair.reader)


def always(pair):
    """A sample for each message; simulated ones replace others while they come."""
    pair.start_reader((('trigger = "change"', 'trigger = "always"'),
                       ('interface = "station";', 'interface = "station"; simulation = true;')))
    send = sender()
    for i in range(3):
        send(message(7, i, count=1))
    pair.until(lambda: len(pair.rows()) == 3, "a sample for each message")
    send(message(2, 5, count=2, simulation=1))
    send(message(8, count=3))
    send(message(2, 6, count=2, simulation=1))
    pair.until(lambda: len(pair.rows()) == 5, "a sample for each simulated message")
    check([r[2] for r in pair.rows()] == [1, 1, 1, 2, 2], "%s" % pair.rows())
    f = pair.figures(pair.reader)
    check(f["not_simulated"] == 1 and not f["simulated"] and not f["lost_messages"], "%s" % f)
    ends_soon(pair.reader)


def forged(pair):
    """Each message that must not be used has its figure, and the reader goes on."""
    pair.start_reader()
    send = sender()
    good = [item(0x83, b"\1"), item(0x85, b"\5"), item(0x87, b"\x08" + struct.pack(">f", 2.5)), item(0x84, b"\x03\x00\x10")]
    steps = [
        (message(10), "changes", True), (message(10), "duplicates", False),
        (message(10, 1), "repetitions", False), (message(10, 0), "old", False),
        (message(9, 7), "old", False), (message(11, 0)[:-1], "malformed", False),
        (message(11, commissioning=1), "needs_commissioning", False),
        (message(11, simulation=1), "simulated", False), (message(11, live=0), "no_time_to_live", False),
        (message(11, reference="OTHER"), "others", False), (message(11, values=good[:3]), "mismatched", False),
        (message(12, values=good[1:] + good[:1]), "mismatched", False),
        (message(13, values=[good[0], item(0x85, b"\1\0\0\0\0")] + good[2:]), "mismatched", False),
        (message(14, revision=4), "revisions", True), (message(17, 2, count=6, revision=4), "lost_changes", True),
        (message(18, values=good, revision=4), "changes", True),
    ]
    samples = 0
    for payload, figure, delivered in steps:
        before = pair.figures(pair.reader)[figure]
        send(payload)
        pair.until(lambda: pair.figures(pair.reader)[figure] > before, figure)
        samples += delivered
        pair.until(lambda: len(pair.rows()) >= samples, "the sample of " + figure)
    send(message(19), "01:0c:cd:01:00:08")
    send(message(20, count=-7, revision=4))
    pair.until(lambda: len(pair.rows()) == samples + 1, "the last one arrives")
    f = pair.figures(pair.reader)
    check(f["lost_changes"] == 2 + 1 and f["lost_messages"] == 2 + 2 + 1, "%s" % f)
    rows = [r[1:] for r in pair.rows()]
    check(rows == [(1, 5, 1.5, 2048), (1, 5, 1.5, 2048), (1, 6, 1.5, 2048), (1, 5, 2.5, 2048), (1, -7, 1.5, 2048)],
          "%s" % rows)
    log = ends_soon(pair.reader)
    for text in ("ndsCom", "simulated messages are not used", "has 3 values, the signals need 4",
                 "confRev was 3 and is 4", "2 changes did not arrive"):
        check(text in log, "'%s' in: %s" % (text, log))


def signed(payload, inside=False, scramble=0):
    """The same with a signature behind it (IEC 62351-6), as a part of its length or not; scrambled: encrypted."""
    signature = bytes(range(40))
    length = len(payload) + (len(signature) if inside else 0)
    body = bytes(b ^ scramble for b in payload[8:])
    return payload[:2] + struct.pack(">HHH", length, len(signature), 0xabcd) + body + signature


def with_item(payload, tag):
    """The same with an item `security` at the end of the message."""
    more = item(tag, b"\x04\x02ab")
    body = payload[8:]
    value = body[2 + (body[1] & 0x80 != 0):] + more
    body = item(0x61, value)
    return payload[:2] + struct.pack(">HHH", len(body) + 8, 0, 0) + body


def secured(pair):
    """What is signed is used and counted, as its signature is not checked; what is encrypted is refused."""
    pair.start_reader()
    send = sender()
    steps = [(message(10), "changes", True), (signed(message(11)), "unverified", True),
             (signed(message(12), inside=True), "unverified", True), (with_item(message(13), 0xac), "unverified", True),
             (with_item(message(14), 0x8c), "unverified", True), (signed(message(15), scramble=0x5a), "secured", False),
             (signed(message(15), scramble=0x5a, inside=True), "secured", False), (message(15), "changes", True)]
    samples = 0
    for payload, figure, delivered in steps:
        before = pair.figures(pair.reader)[figure]
        send(payload)
        pair.until(lambda: pair.figures(pair.reader)[figure] > before, figure)
        samples += delivered
        pair.until(lambda: len(pair.rows()) >= samples, "the sample of " + figure)
    f = pair.figures(pair.reader)
    check(f["unverified"] == 4 and f["secured"] == 2 and f["malformed"] == 2 and f["changes"] == 6, "%s" % f)
    check([r[1:] for r in pair.rows()] == [(1, 5, 1.5, 2048)] * samples, "values are those of the messages")
    log = ends_soon(pair.reader)
    check("signed or encrypted (IEC 62351-6" in log, log)


def missing(pair):
    """What is missing is named."""
    def run(text, before=()):
        path = os.path.join(pair.folder, "bad.conf")
        with open(path, "w") as f:
            f.write(text)
        done = subprocess.run([*before, BUSBAR, "run", path], capture_output=True, text=True, timeout=60)
        check(done.returncode not in (0, -signal.SIGSEGV), "it does not run: %s" % done.stderr)
        return done.stderr

    text = READER % (REFERENCE, GROUP, pair.got_file)
    err = run(text)  # `station` is in the other namespace
    check("x: station: No such device" in err, err)
    err = run(text.replace('"station"', '"bay"'), ["setpriv", "--bounding-set=-net_raw"])
    check("CAP_NET_RAW" in err, err)
    long = 'data = ( %s )' % ", ".join(['{ mms_type = "float64"; signal = "u"; }'] * 150)
    text = WRITER % (COUNTER, INTERVAL, REFERENCE, GROUP, LIVE_MS)
    end = "value = 2048; } )"
    err = run(text[:text.index("data = (")] + long + text[text.index(end) + len(end):])
    check("150 values may be longer than" in err, err)


SCENARIOS = {f.__name__: f for f in (exchange, structures, engineering_file, routed, routed_forged, routed_flood, down, restart, always,
                                     forged, secured, missing)}


def main():
    servers.enter_network()
    for name in sys.argv[1:] or SCENARIOS:
        with tempfile.TemporaryDirectory(prefix="busbar-goose-") as folder:
            since = time.monotonic()
            pair = Pair(folder)
            try:
                SCENARIOS[name](pair)
            finally:
                pair.end()
            print("%s: %.1f s" % (name, time.monotonic() - since), flush=True)


main()
