#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""rtp.py SCENARIO...: samples in RTP packets, between two gateways and with a peer of the test.

Losses are made by nft(8), which counts them. Environment: BUSBAR, the program.
"""
import json
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
from gateway_process import Gateway, check
from servers import until, whole_lines

INTERVAL = 0.2


class Rtp(servers.Kind):
    """Two nodes on one host; each channel has ports of its own."""
    name = "rtp"

    def __init__(self, folder):
        super().__init__(folder)
        self.channels = {}

    def port(self, channel):
        return 20000 + 4 * self.channels.setdefault(channel, len(self.channels))

    def node(self, direction, channel, form, tls=None, password=None, more="", more_in=""):
        """`direction`: the one that a path uses; both have addresses, for the reports."""
        here = self.port(channel) + (2 if direction == "in" else 0)
        there = self.port(channel) + (0 if direction == "in" else 2)
        return 'format = "%s"; rtcp = { interval = %s; }; %s ' \
            'in = { address = "127.0.0.1:%d"; signals = "2f"; %s }; ' \
            'out = { address = "127.0.0.1:%d"; };' % (form, INTERVAL, more, here, more_in, there)


class Pair:
    """A gateway that sends a counter, and one that writes what arrives to a file."""

    def __init__(self, kind, channel, rate=500.0, more=""):
        self.kind, self.rate, self.more, self.channel = kind, rate, more, channel
        self.got_file = os.path.join(kind.folder, channel + ".csv")
        self.reader = Gateway(kind.folder, channel + "-reader", """
nodes = {
	x = { type = "rtp"; %s };
	f = { type = "file"; uri = "%s"; format = "csv"; out = { flush = true; }; };
};
paths = ( { in = "x"; out = "f"; } );
""" % (kind.node("in", channel, "villas.binary"), self.got_file))
        self.start_writer()

    def start_writer(self):
        self.writer = Gateway(self.kind.folder, self.channel + "-writer", """
nodes = {
	sig = { type = "signal"; signal = "counter"; rate = %s; values = 2; };
	x = { type = "rtp"; %s };
};
paths = ( { in = "sig"; out = "x"; } );
""" % (self.rate, self.kind.node("out", self.channel, "villas.binary", more=self.more,
                                 more_in='hooks = ( { type = "stats"; } );')))

    def stats(self, gateway):
        return gateway.ask("/node/x")["stats"]

    def figures(self, gateway):
        return self.stats(gateway)["figures"]

    def got(self):
        if not os.path.exists(self.got_file):
            return []
        with open(self.got_file) as f:
            return [int(line.split(",")[3]) for line in whole_lines(f) if line[0] != "#"]

    def until(self, true, what):
        until(true, lambda: "%s: writer %s, reader %s; %s %s" % (
            what, self.stats(self.writer), self.stats(self.reader),
            open(self.writer.log).read()[-500:], open(self.reader.log).read()[-500:]), 30)

    def await_more(self, count=50):
        before = len(self.got())
        self.until(lambda: len(self.got()) >= before + count, "samples go on")

    def await_reports(self, count=2):
        before = self.figures(self.writer)["rtcp_received"]
        self.until(lambda: self.figures(self.writer)["rtcp_received"] >= before + count, "reports come")

    def stop_source(self):
        self.writer.ask("/node/sig/stop", "POST")
        last = None

        def still():
            nonlocal last
            now = (len(self.got()), self.stats(self.writer)["sent"])
            same, last = now == last, now
            time.sleep(0.1)
            return same
        self.until(still, "all has arrived")

    def end(self):
        for gateway in (self.writer, self.reader):
            ends_soon(gateway)


def ends_soon(gateway, statuses=(0,)):
    since = time.monotonic()
    log = gateway.end(statuses)
    took = time.monotonic() - since
    check(took < 2.5, "the gateway ends in time: %.1f s" % took)
    return log


class Drop:
    """One of every `of` packets to a port does not arrive, while it holds."""

    def __init__(self, port, of):
        rules = "table inet drops {\nchain c {\ntype filter hook input priority 0;\n" \
                "udp dport %d numgen inc mod %d 0 counter drop\n}\n}\n" % (port, of)
        subprocess.run(["nft", "-f", "-"], input=rules, text=True, check=True, timeout=20)

    def end(self):
        """The number of packets that were dropped."""
        out = subprocess.run(["nft", "-j", "list", "table", "inet", "drops"], check=True,
                             capture_output=True, text=True, timeout=20).stdout
        # From here on nothing is dropped; until then some more may have been.
        rule = [o["rule"] for o in json.loads(out)["nftables"] if "rule" in o][0]
        subprocess.run(["nft", "delete", "table", "inet", "drops"], check=True, timeout=20)
        return [e["counter"]["packets"] for e in rule["expr"] if "counter" in e][0]


def need_nft():
    if not shutil.which("nft") or subprocess.run(["nft", "list", "tables"], capture_output=True).returncode:
        servers.skip("nft(8) is not there, or may not be used")


# ---- scenarios ----

def exchange(kind):
    """Every format that fits: all samples, in order, with their values."""
    names = servers.formats(kind)
    check(len(names) >= 10, "formats: %s" % names)
    rows = [[i * servers.STEP, -i * servers.STEP] for i in range(servers.ROWS)]
    rows_file = os.path.join(kind.folder, "rows.csv")
    with open(rows_file, "w") as f:
        for i, row in enumerate(rows):
            f.write("%d,0,0.0,%d,%s\n" % (1700000000 + i, i, ",".join(map(repr, row))))
    reader = Gateway(kind.folder, "b", "nodes = {%s};\npaths = ( %s );\n" % (
        "".join('x%d = { type = "rtp"; %s };\n f%d = { type = "file"; uri = "%s/%s.csv"; format = "csv"; out = { flush = true; }; };\n'
                % (i, kind.node("in", "c%d" % i, n), i, kind.folder, n) for i, n in enumerate(names)),
        ", ".join('{ in = "x%d"; out = "f%d"; }' % (i, i) for i in range(len(names)))))
    # Several samples at a time, so that a packet holds several where the format can.
    writer = Gateway(kind.folder, "a", 'nodes = { r = { type = "file"; uri = "%s"; format = "csv"; '
                     'in = { signals = "2f"; vectorize = 8; rate = 2000.0; eof = "wait"; }; }; %s };\n'
                     "paths = ( { in = \"r\"; out = [ %s ]; } );\n" % (
                         rows_file,
                         "".join('x%d = { type = "rtp"; %s };\n' % (i, kind.node("out", "c%d" % i, n))
                                 for i, n in enumerate(names)),
                         ", ".join('"x%d"' % i for i in range(len(names)))))
    for n in names:
        servers.check_rows(kind, n, os.path.join(kind.folder, n + ".csv"), rows, (writer, reader))
    log = writer.end()
    check("lost" not in log, "nothing is lost: " + log)
    reader.end()


def loss(kind):
    """What both ends count as lost is what was dropped."""
    need_nft()
    pair = Pair(kind, "loss")
    pair.await_more()
    pair.await_reports()
    check(pair.figures(pair.writer)["rtp_pkts_lost"] == 0, "nothing is lost without a cause")
    pair.writer.ask("/node/sig/pause", "POST")
    drop = Drop(kind.port("loss") + 2, 5)
    pair.writer.ask("/node/sig/resume", "POST")
    pair.await_more(300)
    pair.await_reports(3)
    fraction = pair.figures(pair.writer)["rtp_loss_fraction"]
    check(20 < fraction < 100, "a fifth is lost: %d of 256" % fraction)
    # No packet comes while the number is read.
    pair.writer.ask("/node/sig/pause", "POST")
    time.sleep(0.05)
    dropped = drop.end()
    pair.writer.ask("/node/sig/resume", "POST")
    pair.await_more()
    pair.stop_source()
    pair.await_reports(3)
    w, r = pair.stats(pair.writer), pair.stats(pair.reader)
    what = "%d dropped, writer %s, reader %s" % (dropped, w, r)
    check(dropped >= 60, "packets were dropped: " + what)
    check(w["figures"]["rtp_pkts_lost"] == dropped, "the peer's reports tell of all: " + what)
    check(r["figures"]["in_lost"] == dropped, "the reader counts all: " + what)
    check(w["sent"] == r["received"] + dropped and len(pair.got()) == r["received"],
          "each sample is delivered or counted: " + what)
    check(w["figures"]["rtp_rtt"] < 5000000 and w["figures"]["foreign"] == 0 and
          r["figures"]["malformed"] == 0, "other figures: " + what)
    metrics = pair.writer.ask("/node/x/stats")
    check("rtp.pkts_lost" in json.dumps(metrics), "the metrics have them: %s" % metrics)
    pair.end()


def aimd(kind):
    """The rate falls while packets are lost, and rises again."""
    need_nft()
    for how in ("limit_rate", "decimate"):
        name = "aimd-" + how
        pair = Pair(kind, name, more='aimd = { hook_type = "%s"; rate_source = 500.0; a = 60.0; '
                    'rate_min = 20.0; log = "%s/%s.rate"; };' % (how, kind.folder, name))
        pair.await_more()
        pair.await_reports()
        figures = pair.figures(pair.writer)
        check(figures["rate"] == 500 and figures["throttled"] == 0, "all samples go: %s" % figures)
        drop = Drop(kind.port(name) + 2, 3)
        pair.until(lambda: pair.figures(pair.writer)["rate"] <= 130, how + ": the rate falls")
        pair.until(lambda: pair.figures(pair.writer)["throttled"] >= 50, how + ": samples are held back")
        drop.end()
        pair.until(lambda: pair.figures(pair.writer)["rate"] == 500, how + ": the rate rises again")
        before = pair.figures(pair.writer)["throttled"]
        pair.await_more(100)
        check(pair.figures(pair.writer)["throttled"] == before, how + ": all samples go again")
        pair.stop_source()
        w = pair.stats(pair.writer)
        check(w["losses"]["full"] == w["not_sent"] == w["figures"]["throttled"],
              how + ": what was held back is counted: %s" % w)
        with open(os.path.join(kind.folder, name + ".rate")) as f:
            rates = [float(line.split()[2]) for line in f if line[0] != "#"]
        check(min(rates) <= 130 and rates[-1] == 500, how + ": the file has the rates: %s" % rates)
        pair.end()


# ---- a peer of the test ----

def rtp_packet(sequence, payload, ssrc=0x1234, timestamp=0, payload_type=21, first=0x80):
    return struct.pack("!BBHII", first, payload_type, sequence & 0xffff, timestamp & 0xffffffff, ssrc) + payload


def rtcp_report(ssrc, about=None, sender=None, bye=None):
    """A compound packet; `about`: (ssrc, fraction, lost, highest, jitter, lsr, dlsr)."""
    blocks = b"" if about is None else struct.pack(
        "!IIIIII", about[0], about[1] << 24 | about[2] & 0xffffff, *about[3:])
    info = b"" if sender is None else struct.pack("!QIII", *sender)
    body = struct.pack("!I", ssrc) + info + blocks
    out = struct.pack("!BBH", 0x80 | (about is not None), 200 if sender else 201, len(body) // 4) + body
    out += struct.pack("!BBHIBB", 0x81, 202, 3, ssrc, 1, 4) + b"peer" + b"\0\0"
    if bye is not None:
        out += struct.pack("!BBHI", 0x81, 203, 1, bye)
    return out


def parse_rtcp(data):
    """[(type, count, body)] of a compound packet."""
    parts = []
    while data:
        first, kind, words = struct.unpack("!BBH", data[:4])
        check(first >> 6 == 2 and not first & 0x20 and len(data) >= 4 * words + 4, "a part of %d bytes" % words)
        parts.append((kind, first & 31, data[4:4 * words + 4]))
        data = data[4 * words + 4:]
    check(parts[0][0] in (200, 201), "it begins with a report: %s" % parts)
    check(parts[1][0] == 202 and b"@" in parts[1][2], "a CNAME follows: %s" % parts)
    return parts


class Peer:
    """Sockets for packets and reports; a gateway whose node x sends a counter to them, and which
    writes what they send to a file."""

    def __init__(self, kind, name, more="", rate=200.0, interval=0.1):
        self.kind = kind
        self.port = kind.port(name)
        self.rtp, self.rtcp = (self.socket("127.0.0.1", self.port + 2 + i) for i in (0, 1))
        self.file = os.path.join(kind.folder, name + ".csv")
        self.gateway = Gateway(kind.folder, name, """
nodes = {
	sig = { type = "signal"; signal = "counter"; rate = %s; values = 1; };
	x = { type = "rtp"; format = "csv"; rtcp = { interval = %s; }; %s
		in = { address = "127.0.0.1:%d"; signals = "1f"; builtin = false; }; out = { address = "127.0.0.1:%d"; }; };
	f = { type = "file"; uri = "%s"; format = "csv"; out = { flush = true; }; };
};
paths = ( { in = "sig"; out = "x"; }, { in = "x"; out = "f"; } );
""" % (rate, interval, more, self.port, self.port + 2, self.file))

    def socket(self, host, port):
        s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        s.bind((host, port))
        s.settimeout(20)
        return s

    def send(self, data, rtcp=False, via=None):
        (via or (self.rtcp if rtcp else self.rtp)).sendto(data, ("127.0.0.1", self.port + rtcp))

    def send_sample(self, sequence, value=None, **more):
        value = sequence if value is None else value
        self.send(rtp_packet(sequence, b"1700000000,0,0.0,%d,%d.0\n" % (value, value), **more))

    def figures(self):
        return self.gateway.ask("/node/x")["stats"]["figures"]

    def values(self):
        if not os.path.exists(self.file):
            return []
        with open(self.file) as f:
            return [int(float(line.split(",")[4])) for line in whole_lines(f) if line[0] != "#"]

    def await_values(self, wanted, what):
        until(lambda: self.values() == wanted, lambda: "%s: %s is not %s; %s" % (
            what, self.values(), wanted, self.figures()))

    def await_figure(self, name, value):
        until(lambda: self.figures()[name] == value, lambda: "%s is %d: %s" % (name, value, self.figures()))

    def next_report(self, true, seconds=20):
        """The parts of the first compound packet for which it is true."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            parts = parse_rtcp(self.rtcp.recv(4096))
            if true(parts):
                return parts
        raise AssertionError("such a report comes")

    def end(self):
        ends_soon(self.gateway)
        self.rtp.close()
        self.rtcp.close()


def peer(kind):
    """Headers, sequences, reports in both directions, BYE: field by field."""
    p = Peer(kind, "peer")
    last = None
    for i in range(20):
        data = p.rtp.recv(65536)
        first, second, sequence, timestamp, ssrc = struct.unpack("!BBHII", data[:12])
        check(first == 0x80 and second == (0x95 if i == 0 else 0x15), "marker and type: %x %x" % (first, second))
        seconds, ns = data[12:].split(b",")[:2]
        origin = int(seconds) * 10**9 + int(ns)
        if last:
            check(sequence == (last[0] + 1) & 0xffff and ssrc == last[2], "they follow each other")
            apart, wanted = (timestamp - last[1]) & 0xffffffff, (origin - last[3]) * 9 / 10**5
            check(abs(apart - wanted) <= 1, "timestamps are %d apart, not %f" % (apart, wanted))
        last = (sequence, timestamp, ssrc, origin)
    # Wrap-around, one that is late, twice the same, padding, another type, a stray, nonsense.
    for n in (65534, 65535, 65536, 65538, 65537, 65537, 65539):
        p.send_sample(n)
    p.send_sample(65540, payload_type=96)
    p.send(rtp_packet(65540, b"1700000000,0,0.0,65540,65540.0\n" + b"\0\0\0\4", first=0xa0))
    p.send_sample(30000)
    p.send(b"\x80nonsense")
    p.send(b"\x00" * 40)
    p.send_sample(65541)
    p.await_values([65534, 65535, 65536, 65538, 65537, 65539, 65540, 65541], "what was sent is read")
    figures = p.figures()
    for name, value in {"repeated": 1, "late": 1, "stray": 1, "malformed": 3, "packets_received": 8}.items():
        check(figures[name] == value, "%s is %d: %s" % (name, value, figures))
    # A sender report; what the node says of us then.
    since = time.monotonic()
    p.send(rtcp_report(0x1234, sender=(0x1122334455667788, 5, 8, 300)), rtcp=True)
    p.send_sample(65542)
    parts = p.next_report(lambda parts: parts[0][1] and parts[0][2][-8:-4] == b"\x33\x44\x55\x66")
    check(parts[0][0] == 200, "a sender sends sender reports: %s" % parts)
    own, ntp, rtp, packets, octets = struct.unpack("!IQIII", parts[0][2][:24])
    about, lost, highest, jitter, lsr, dlsr = struct.unpack("!IIIIII", parts[0][2][24:])
    check(own == last[2] and about == 0x1234, "SSRCs: %x %x" % (own, about))
    check(abs((ntp >> 32) - 2208988800 - time.time()) < 10, "the NTP time is now")
    check(packets >= 20 and octets > 20 * packets, "%d packets, %d bytes" % (packets, octets))
    check(highest == 0x10000 + 65542 - 65536 and lost & 0xffffff == 0xffffff,
          "extended highest %x, one too many: %x" % (highest, lost))
    check(0 <= dlsr / 65536 <= time.monotonic() - since, "the delay since is %d" % dlsr)
    # Our report about it: losses, jitter, and the time there and back.
    p.send(rtcp_report(0x1234, (own, 64, 5, last[0], 900, (ntp >> 16) & 0xffffffff, 0x1000)), rtcp=True)
    p.await_figure("rtp_pkts_lost", 5)
    figures = p.figures()
    check(figures["rtp_loss_fraction"] == 64 and figures["rtp_jitter"] == 10000, "losses and jitter: %s" % figures)
    check(0 <= figures["rtp_rtt"] < 20000000, "the round trip: %s" % figures)
    # We leave, and come again with another SSRC and numbers from elsewhere.
    p.send(rtcp_report(0x1234, bye=0x1234), rtcp=True)
    p.await_figure("sources", 0)
    p.send_sample(100, ssrc=0x5678)
    p.send_sample(101, ssrc=0x5678)
    p.await_figure("sources", 1)
    check(p.values()[-2:] == [100, 101], "a new source is read from its first packet on: %s" % p.values())
    p.gateway.process.send_signal(signal.SIGTERM)
    parts = p.next_report(lambda parts: parts[-1][0] == 203)
    check(struct.unpack("!I", parts[-1][2]) == (own,), "the node says that it leaves")
    p.end()


def collision(kind):
    """Another end with the SSRC of the node: it takes another one and says so."""
    p = Peer(kind, "collision")
    ssrc = struct.unpack("!I", p.rtp.recv(65536)[8:12])[0]
    other = p.socket("127.0.0.1", 0)
    for n in (1, 2, 3):
        p.send(rtp_packet(n, b"1700000000,0,0.0,%d,%d.0\n" % (n, n), ssrc=ssrc), via=other)
    p.await_figure("collisions", 1)
    parts = p.next_report(lambda parts: parts[-1][0] == 203)
    check(struct.unpack("!I", parts[-1][2]) == (ssrc,), "BYE names the old one")
    until(lambda: struct.unpack("!I", p.rtp.recv(65536)[8:12])[0] != ssrc, "packets have another one")
    p.await_values([2, 3], "the other end is read from then on")
    p.end()


def forged(kind):
    """Reports and BYE of others neither stop nor slow the node; nor does a flood of them."""
    interval = 4.0
    p = Peer(kind, "forged", interval=interval, more='aimd = { hook_type = "limit_rate"; rate_source = 200.0; rate_min = 1.0; };')
    data = p.rtp.recv(65536)
    sequence, ssrc = struct.unpack("!xxHxxxxI", data[:12])
    p.send_sample(1)
    p.send_sample(2)
    p.await_figure("packets_received", 2)
    elsewhere = p.socket("127.0.0.2", 0)
    for host in (elsewhere, p.rtcp):
        # Of others' SSRCs, of numbers that were never sent.
        for n in range(20):
            p.send(rtcp_report(1000 + n, (0xabcdef, 255, 9999, 5, 0, 0, 0)), True, host)
            p.send(rtcp_report(1000 + n, (ssrc, 255, 9999, sequence + 20000, 0, 0, 0)), True, host)
            p.send(rtcp_report(1000 + n, bye=ssrc), True, host)
    for n in range(20):
        # All that there is to know, but from another host.
        p.send(rtcp_report(0x1234, (ssrc, 255, 9999, sequence, 0, 0, 0), bye=0x1234), True, elsewhere)
    for n in range(3000):
        p.send(os.urandom(n % 64), n % 2, elsewhere if n % 3 else None)
    p.await_figure("rtcp_ignored", 20)
    until(lambda: p.figures()["foreign"] >= 80, lambda: "foreign: %s" % p.figures())
    figures = p.figures()
    check(figures["rate"] == 200 and figures["throttled"] == 0, "the rate is unchanged: %s" % figures)
    check(figures["rtp_pkts_lost"] == 0, "nothing was taken: %s" % figures)
    # Its own peer may; but not many times in one interval.
    since = time.monotonic()
    for n in range(50):
        p.send(rtcp_report(0x1234, (ssrc, 128, 1 + n, sequence, 0, 0, 0)), True)

    def taken_at_most():
        return 2 + int((time.monotonic() - since) / (0.2 * interval))

    def ignored():
        # A busy machine has no room for some.
        p.send(rtcp_report(0x1234, (ssrc, 128, 51, sequence, 0, 0, 0)), True)
        return p.figures()["rtcp_ignored"] >= 20 + 50 - taken_at_most()
    until(ignored, lambda: "floods are ignored: %s" % p.figures())
    until(lambda: p.figures()["rate"] < 200, lambda: "a report of the peer counts: %s" % p.figures())
    check(p.figures()["rate"] >= 200 * 0.5 ** taken_at_most() - 1, "but not each of a flood: %s" % p.figures())
    p.send_sample(3)
    until(lambda: len(p.values()) == 3, "samples go on")
    check(p.values()[:3] == [1, 2, 3], "samples go on: %s" % p.values())
    p.end()


def tshark(kind):
    """Wireshark finds the same in the packets, and nothing malformed."""
    if not shutil.which("tshark"):
        print("tshark is not installed")
        return
    p = Peer(kind, "tshark", more="payload_type = 96;")
    p.send_sample(1, payload_type=96)
    p.send_sample(2, payload_type=96)
    p.send_sample(5, payload_type=96)
    packets = [(p.port + 2, p.rtp.recv(65536)) for _ in range(30)]
    reports = 0
    while reports < 3:
        data = p.rtcp.recv(4096)
        reports += parse_rtcp(data)[0][1] > 0
        packets.append((p.port + 3, data))
        p.send_sample(6 + reports, payload_type=96)
    p.gateway.process.send_signal(signal.SIGTERM)
    while parse_rtcp(packets[-1][1])[-1][0] != 203:
        packets.append((p.port + 3, p.rtcp.recv(4096)))
    p.end()
    file = os.path.join(kind.folder, "packets.pcap")
    with open(file, "wb") as f:
        f.write(struct.pack("!IHHiIII", 0xa1b2c3d4, 2, 4, 0, 0, 65535, 101))
        for port, data in packets:
            udp = struct.pack("!HHHH", port - 2, port, 8 + len(data), 0) + data
            ip = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 20 + len(udp), 0, 0, 64, 17, 0, b"\x7f\0\0\1", b"\x7f\0\0\1")
            f.write(struct.pack("!IIII", 1, 0, len(ip + udp), len(ip + udp)) + ip + udp)

    def fields(filter_, *names):
        args = ["tshark", "-r", file, "-d", "udp.port==%d,rtp" % (p.port + 2), "-d",
                "udp.port==%d,rtcp" % (p.port + 3), "-Y", filter_, "-T", "fields"]
        for name in names:
            args += ["-e", name]
        out = subprocess.run(args, check=True, capture_output=True, text=True, timeout=60).stdout
        return [line.split("\t") for line in out.splitlines()]
    check(not fields("_ws.malformed || _ws.expert.severity >= 6291456", "frame.number"), "nothing is malformed")
    rtp = fields("rtp", "rtp.version", "rtp.p_type", "rtp.ssrc", "rtp.seq", "rtp.timestamp", "rtp.marker")
    check(len(rtp) == 30 and all(r[0] == "2" and r[1] == "96" for r in rtp), "packets: %s" % rtp[:3])
    for (_, data), row in zip(packets, rtp):
        _, second, sequence, timestamp, ssrc = struct.unpack("!BBHII", data[:12])
        check((int(row[2], 16), int(row[3]), int(row[4])) == (ssrc, sequence, timestamp), "%s" % row)
        check(row[5] in (("1", "True") if second & 0x80 else ("0", "False")), "the marker: %s" % row)
    sent = fields("rtcp", "rtcp.pt", "rtcp.senderssrc", "rtcp.ssrc.identifier", "rtcp.ssrc.cum_nr",
                  "rtcp.ssrc.ext_high", "rtcp.sdes.text", "rtcp.length_check")
    check(len(sent) == len(packets) - 30, "all are RTCP: %d" % len(sent))
    check(all(r[0].split(",")[:2] in (["200", "202"], ["201", "202"]) for r in sent), "their parts: %s" % sent)
    check(sent[-1][0].endswith("203"), "BYE is the last one: %s" % sent[-1])
    check(any(r[3].split(",")[0] == "2" for r in sent), "two are lost: %s" % sent)
    check(all("@" in r[5] for r in sent), "the CNAME: %s" % sent)


def restart(kind):
    """The sender is killed and started again: it is another source, and nothing that arrives is lost."""
    pair = Pair(kind, "restart")
    pair.await_more()
    for _ in range(3):
        pair.writer.give_up()
        pair.start_writer()
        pair.await_more()
        pair.await_reports()
    figures = pair.figures(pair.reader)
    check(figures["in_lost"] == 0 and figures["stray"] == 0 and figures["foreign"] == 0,
          "no source has lost anything: %s" % figures)
    check(len(pair.got()) >= 200, "samples: %d" % len(pair.got()))
    pair.end()


def end(kind):
    """A gateway ends in time when its peer stands still, and when there is none."""
    pair = Pair(kind, "end")
    pair.await_more()
    pair.reader.process.send_signal(signal.SIGSTOP)
    time.sleep(0.2)
    ends_soon(pair.writer)
    pair.start_writer()
    pair.reader.process.send_signal(signal.SIGCONT)
    pair.await_more()
    ends_soon(pair.reader)
    time.sleep(0.2)
    ends_soon(pair.writer)


SCENARIOS = {f.__name__: f for f in (exchange, loss, aimd, peer, collision, forged, tshark, restart, end)}


def main():
    servers.enter_network()
    for name in sys.argv[1:] or SCENARIOS:
        with tempfile.TemporaryDirectory(prefix="busbar-rtp-") as folder:
            since = time.monotonic()
            try:
                SCENARIOS[name](Rtp(folder))
            finally:
                servers.end_all(folder)
            print("%s: %.1f s" % (name, time.monotonic() - since), flush=True)


main()
