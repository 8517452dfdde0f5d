#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""vcan.py: the node-type can on the kernel's virtual bus vcan0, in the guest (guest.sh --can), with
can-utils and python3-can as strangers in both directions: identifiers, bits, CAN FD, times,
filters, error frames, a queue without room, and an interface that goes down and away.

Environment: BUSBAR, the program.
"""
import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "process", "control"))
from gateway_process import BUSBAR, Gateway, Gateways, check, whole_lines  # noqa: E402


def skip(why):
    print("skipped: " + why)
    sys.exit(77)


for program in ("candump", "cansend", "cangen", "tc"):
    if not shutil.which(program):
        skip(program + " is not installed (can-utils, iproute2)")
try:
    import can
except ImportError:
    skip("python3-can is not installed")

SIGNALS = """(
	{ name = "speed"; type = "float"; can_id = 0x181; start_bit = 7; bit_length = 16;
	  byte_order = "big"; signed = true; factor = 0.25; frame_length = 8; },
	{ name = "count"; type = "integer"; can_id = 0x181; start_bit = 19; bit_length = 11; },
	{ name = "on"; type = "boolean"; can_id = 0x181; start_bit = 16; },
	{ name = "u"; type = "float"; can_id = 0x18ff50e5; can_size = 4; } )"""
# Of the same bits: speed, count, on, u.
SAMPLE = (-100.25, 1234, 1, 1.5)
STANDARD = struct.pack(">h", -401) + struct.pack("<Q", 1234 << 3 | 1)[:6]
EXTENDED = struct.pack("<f", 1.5)


def until(true, what, seconds=40):
    end = time.monotonic() + seconds
    while not true():
        check(time.monotonic() < end, what)
        time.sleep(0.02)


def ip(*words):
    subprocess.run(["ip", *words], check=True)


def send(*frames):
    for frame in frames:
        subprocess.run(["cansend", "vcan0", frame], check=True)


def figures(gateway, name="x"):
    return gateway.ask("/node/" + name)["stats"]["figures"]


def node_state(gateway, name="x"):
    return gateway.ask("/node/" + name)["state"]


def wait_for_state(gateway, state):
    until(lambda: node_state(gateway) == state, "the node becomes " + state)


def reader(folder, inner="", signals=SIGNALS, node=""):
    """A gateway that writes what it receives to a file."""
    out = os.path.join(folder, "got.csv")
    if os.path.exists(out):
        os.unlink(out)
    return Gateway(folder, "reader", """
nodes = {
	x = { type = "can"; interface_name = "vcan0"; reconnect_interval = 50; %s in = { %s signals = %s; }; };
	f = { type = "file"; uri = "%s"; format = "csv"; out = { flush = true; }; };
};
paths = ( { in = "x"; out = "f"; } );
""" % (node, inner, signals, out))


def rows(folder):
    """(seconds as a text with nine digits, sequence number, values) of each sample."""
    with open(os.path.join(folder, "got.csv")) as f:
        lines = [line.rstrip().split(",") for line in whole_lines(f) if line[0] != "#"]
    return [("%s.%09d" % (c[0], int(c[1])), int(c[3]), [float(v) for v in c[4:]]) for c in lines]


def writer(folder, node="", out="", signals=SIGNALS, rate=50, limit=3, name="writer"):
    """A gateway that sends samples of a file at a rate."""
    given = os.path.join(folder, "given.csv")
    with open(given, "w") as f:
        for i in range(limit):
            f.write("%d,0,0,%d,%s\n" % (1000 + i, i, ",".join(str(v) for v in SAMPLE)))
    return Gateway(folder, name, """
nodes = {
	s = { type = "file"; uri = "%s"; format = "csv"; in = { eof = "wait"; rate = %d; signals = (
		{ type = "float"; }, { name = "b"; type = "integer"; }, { name = "c"; type = "boolean"; },
		{ name = "d"; type = "float"; } ); }; };
	x = { type = "can"; interface_name = "vcan0"; reconnect_interval = 50; %s out = { %s signals = %s; }; };
};
paths = ( { in = "s"; out = "x"; } );
""" % (given, rate, node, out, signals))


class Dump:
    """candump: each frame as "seconds id#data"."""

    def __init__(self, folder, *options):
        self.path = os.path.join(folder, "dump")
        self.process = subprocess.Popen(["candump", "-L", *options], stdout=open(self.path, "w"),
                                        stderr=subprocess.PIPE, bufsize=0)
        # It listens when the kernel has its filter: all data frames.
        until(self.listens, "candump listens")

    @staticmethod
    def listens():
        with open("/proc/net/can/rcvlist_all") as f:
            return "vcan0" in f.read().replace("(vcan0: no entry)", "")

    def frames(self):
        with open(self.path) as f:
            return [line.split() for line in whole_lines(f)]

    def end(self):
        self.process.terminate()
        self.process.wait()


def refusals(folder):
    """What is wrong is said at the start."""
    path = os.path.join(folder, "wrong.conf")
    for interface, fd, said in (("lo", "", "lo is no interface of CAN"),
                                ("vcan1", "fd = true;", "has no CAN FD")):
        with open(path, "w") as f:
            f.write('nodes = { x = { type = "can"; interface_name = "%s"; %s in = { signals = %s; }; }; };\n'
                    'paths = ( { in = "x"; } );\n' % (interface, fd, SIGNALS))
        done = subprocess.run([BUSBAR, "run", "-q", path], capture_output=True, text=True, timeout=60)
        check(done.returncode == 1 and said in done.stderr, "%s: %s" % (interface, done))


def from_strangers(folder):
    """Frames of cansend and python3-can become samples; times are those of the kernel."""
    with Gateways() as gateways:
        gateways.append(reader(folder, 'trigger = "any";'))
        wait_for_state(gateways[0], "connected")
        dump = Dump(folder, "-t", "a", "vcan0")
        with open("/proc/net/can/rcvlist_sff") as f:
            standard = f.read()
        with open("/proc/net/can/rcvlist_eff") as f:
            extended = f.read()
        check(re.search(r"vcan0 +181 ", standard) and re.search(r"vcan0 +98ff50e5 ", extended, re.I),
              "the kernel has filters: " + standard + extended)
        # Others are not for the node, nor are remote frames and the same number as an extended one.
        send("182#11", "00000181#FFFFFFFFFFFFFFFF", "181#R")
        send("181#" + STANDARD.hex(), "18FF50E5#" + EXTENDED.hex())
        bus = can.interface.Bus("vcan0", bustype="socketcan")
        bus.send(can.Message(arbitration_id=0x181, is_extended_id=False, data=b"\1\0" + STANDARD[2:]))
        bus.send(can.Message(arbitration_id=0x18ff50e5, is_extended_id=True, data=EXTENDED + b"more"))
        bus.send(can.Message(arbitration_id=0x181, is_extended_id=False, data=b"\1"))  # too short
        until(lambda: len(rows(folder)) >= 4 and figures(gateways[0])["short_frames"], "samples come")
        got = rows(folder)
        check([r[2] for r in got] == [[-100.25, 1234, 1, 0], list(SAMPLE), [64, 1234, 1, 1.5],
                                      [64, 1234, 1, 1.5]], "the values: %s" % got)
        check([r[1] for r in got] == [0, 1, 2, 3], "the sequence numbers: %s" % got)
        until(lambda: len(dump.frames()) == 8, "candump sees the same")
        seen = [line[0].strip("()") for line in dump.frames()[3:7]]
        check([r[0][:-3] for r in got] == seen, "the times are the kernel's: %s, %s" % (got, seen))
        f = figures(gateways[0])
        check(f["frames_received"] == 5 and f["malformed"] == 1 and f["overrun"] == 0, f)
        dump.end()
        bus.shutdown()
        gateways[0].end()


def to_strangers(folder):
    """Samples become frames that candump and python3-can understand."""
    dump = Dump(folder, "vcan0")
    bus = can.interface.Bus("vcan0", bustype="socketcan")
    with Gateways() as gateways:
        gateways.append(writer(folder))
        messages = [bus.recv(40) for _ in range(6)]
        check(all(messages), "python3-can receives: %s" % messages)
        for m in messages[::2]:
            check(m.arbitration_id == 0x181 and not m.is_extended_id and bytes(m.data) == STANDARD, m)
        for m in messages[1::2]:
            check(m.arbitration_id == 0x18ff50e5 and m.is_extended_id and bytes(m.data) == EXTENDED, m)
        until(lambda: len(dump.frames()) == 6, "candump sees all")
        check([line[2] for line in dump.frames()] ==
              ["181#" + STANDARD.hex().upper(), "18FF50E5#" + EXTENDED.hex().upper()] * 3, dump.frames())
        check(figures(gateways[0])["frames_sent"] == 6, figures(gateways[0]))
        gateways[0].end()
    dump.end()
    bus.shutdown()


def flexible_rate(folder):
    """CAN FD in both directions, and classic frames beside."""
    signals = """( { name = "a"; type = "float"; can_id = 0x20; can_offset = 40; }, { name = "b"; type = "integer"; can_id = 0x20; can_size = 2; },
	{ name = "c"; type = "boolean"; can_id = 0x20; start_bit = 407; }, { name = "d"; type = "float"; can_id = 0x21; can_size = 4; } )"""
    bus = can.interface.Bus("vcan0", bustype="socketcan", fd=True)
    data = struct.pack("<h38xd2xB13x", 1234, -100.25, 0x80)
    with Gateways() as gateways:
        gateways.append(reader(folder, 'trigger = "any";', signals, "fd = true;"))
        wait_for_state(gateways[0], "connected")
        gateways.append(writer(folder, "fd = true;", signals=signals, limit=1))
        got = [bus.recv(40), bus.recv(40)]
        check(got[0].is_fd and got[0].bitrate_switch and bytes(got[0].data) == data, got)
        check(got[1].is_fd and bytes(got[1].data) == EXTENDED, got)
        bus.send(can.Message(arbitration_id=0x21, is_extended_id=False, data=struct.pack("<f", 2.5)))
        bus.send(can.Message(arbitration_id=0x20, is_extended_id=False, is_fd=True, data=bytes(64)))
        until(lambda: len(rows(folder)) == 4, "frames of both kinds come")
        check([r[2] for r in rows(folder)] ==
              [[-100.25, 1234, 1, 0], list(SAMPLE), [-100.25, 1234, 1, 2.5], [0, 0, 0, 2.5]],
              rows(folder))
        for g in gateways:
            g.end()
    bus.shutdown()


def own_frames(folder):
    """Whether a node hears itself, and others hear it."""
    for node, own, others in (("", 0, 2), ("receive_own = true;", 2, 2), ("loopback = false;", 0, 0)):
        bus = can.interface.Bus("vcan0", bustype="socketcan")
        with Gateways() as gateways:
            gateways.append(writer(folder, node + "in = { signals = %s; };" % SIGNALS, limit=1))
            until(lambda: figures(gateways[0])["frames_sent"] == 2, "frames are sent")
            # What comes later has come behind these.
            send("7FF#")
            heard = 0
            while bus.recv(40).arbitration_id != 0x7ff:
                heard += 1
            check(heard == others, "%s: others hear %d" % (node, heard))
            gateways[0].end()
        bus.shutdown()


def errors(folder):
    """Error frames, as a driver makes them."""
    with Gateways() as gateways:
        gateways.append(reader(folder))
        wait_for_state(gateways[0], "connected")
        send("20000004#0008000000000000", "20000020#0000000000000000", "20000040#0000000000000000")
        wait_for_state(gateways[0], "pending-connect")
        f = figures(gateways[0])
        check(f["error_frames"] == 3 and f["bus_off"] == 1 and f["error_warning"] == 1 and f["no_ack"] == 1, f)
        send("20000100#0000000000000000")
        wait_for_state(gateways[0], "connected")
        check("bus-off" in gateways[0].end(), "the log has it")


def comes_and_goes(folder):
    """An interface that is down, up, away, and made again; in both directions."""
    ip("link", "set", "vcan0", "down")
    with Gateways() as gateways:
        gateways.append(reader(folder, 'trigger = "any";'))
        wait_for_state(gateways[0], "pending-connect")
        ip("link", "set", "vcan0", "up")
        wait_for_state(gateways[0], "connected")
        send("181#" + STANDARD.hex())
        until(lambda: len(rows(folder)) == 1, "a sample comes")
        ip("link", "set", "vcan0", "down")
        wait_for_state(gateways[0], "pending-connect")
        ip("link", "delete", "vcan0")
        make_bus()
        wait_for_state(gateways[0], "connected")
        send("182#11", "181#" + STANDARD.hex())
        until(lambda: len(rows(folder)) == 2, "a sample comes by the new interface")
        ip("link", "delete", "vcan0")
        wait_for_state(gateways[0], "pending-connect")
        gateways.append(writer(folder, rate=50, limit=100000))
        until(lambda: gateways[1].ask("/node/x")["stats"]["losses"]["absent"] > 2, "samples are lost")
        make_bus()
        wait_for_state(gateways[0], "connected")
        wait_for_state(gateways[1], "connected")
        before = len(rows(folder))
        until(lambda: len(rows(folder)) > before + 4, "samples go through it")
        check(figures(gateways[0])["downs"] == 2, figures(gateways[0]))
        log = gateways[0].end()
        check("vcan0 is down" in log and "vcan0 is up" in log and "No such device" in log, log)
        gateways[1].end()


def commands(folder):
    """A node that is stopped, started, paused and restarted while frames come."""
    with Gateways() as gateways:
        gateways.append(reader(folder, 'trigger = "any";'))
        wait_for_state(gateways[0], "connected")
        cangen = subprocess.Popen("cangen vcan0 -g 1 -I 181 -L 8 -D i".split())
        try:
            for command in ("stop", "start", "pause", "resume", "restart"):
                gateways[0].ask("/node/x/" + command, "POST")
                if command in ("stop", "pause"):
                    continue
                before = len(rows(folder))
                until(lambda: len(rows(folder)) > before + 10, "samples come after " + command)
        finally:
            cangen.kill()
            cangen.wait()
        gateways[0].end()


def no_room(folder):
    """A queue that is full holds up the writer; one that stays full loses samples, counted."""
    subprocess.run("tc qdisc add dev vcan0 root netem delay 20ms limit 10".split(), check=True)
    with Gateways() as gateways:
        gateways.append(reader(folder))
        wait_for_state(gateways[0], "connected")
        gateways.append(writer(folder, out="send_timeout = 20.0;", rate=5000, limit=1000))
        until(lambda: len(rows(folder)) == 1000, "all samples come", 120)
        f = figures(gateways[1])
        check(f["waits"] > 10 and f["frames_sent"] == 2000, f)
        check(not any(gateways[1].ask("/node/x")["stats"]["losses"].values()), "nothing is lost")
        gateways[1].end()
        subprocess.run("tc qdisc replace dev vcan0 root netem delay 100s limit 1".split(), check=True)
        gateways.append(writer(folder, out="send_timeout = 0.05;", rate=50, limit=20, name="stuck"))
        until(lambda: gateways[2].ask("/node/x")["stats"]["losses"]["stuck"] == 20, "samples are lost")
        gateways[2].end((3,))
        # One that waits for long ends in time all the same.
        gateways.append(writer(folder, out="send_timeout = 60.0;", rate=50, limit=20, name="patient"))
        until(lambda: figures(gateways[3])["waits"], "a frame waits")
        begin = time.monotonic()
        gateways[3].end((0, 3))
        check(time.monotonic() - begin < 10, "it ends in time")
        gateways[0].end()
    subprocess.run("tc qdisc delete dev vcan0 root".split(), check=True)


def fast(folder):
    """Many frames of a stranger: none is lost, the last one is right."""
    signals = '( { name = "i"; type = "integer"; can_id = 0x55; can_size = 8; } )'
    with Gateways() as gateways:
        gateways.append(reader(folder, signals=signals))
        wait_for_state(gateways[0], "connected")
        subprocess.run("cangen vcan0 -g 0 -I 55 -L 8 -D i -n 5000 -p 10".split(), check=True, timeout=100)
        until(lambda: len(rows(folder)) == 5000, "all come", 100)
        check([int(r[2][0]) for r in rows(folder)] == list(range(5000)), "in order")
        check(figures(gateways[0])["overrun"] == 0, "nothing is lost")
        gateways[0].end()


def make_bus(name="vcan0", mtu="72"):
    ip("link", "add", name, "type", "vcan")
    ip("link", "set", name, "mtu", mtu, "up")


def main():
    ip("link", "set", "vcan0", "mtu", "72", "up")
    make_bus("vcan1", "16")
    with tempfile.TemporaryDirectory() as folder:
        for scenario in (refusals, from_strangers, to_strangers, flexible_rate, own_frames, errors,
                         comes_and_goes, commands, no_room, fast):
            if len(sys.argv) > 1 and scenario.__name__ not in sys.argv[1:]:
                continue
            begin = time.monotonic()
            scenario(folder)
            print("%s: good, %.1f s" % (scenario.__name__, time.monotonic() - begin), flush=True)


main()
