#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Packets of two processes pass a fabric of one switch, in order, with counters that say so; and what is not
as it has to be does not pass: each refusal has its count."""
import errno
import os
import struct
import sys
import time

sys.path.insert(0, os.path.dirname(__file__))
from plugged import (CONTROL, Client, Fabric, MANAGEMENT, PACKET, PATIENCE_S, Refused, check, directed, mad,
                     packet, payload)

GET, SET = 1, 2


def connected_and_datagrams(fabric):
    a, b = Client(fabric, "host-1"), Client(fabric, "host-2")
    check(a.state["state"] == 4 and a.lid and b.lid and a.lid != b.lid, "both ports are active and have LIDs")
    check(a.open_qp(0x100) == 0 and b.open_qp(0x200) == 0, "queue pairs are opened")
    before = fabric.port("switch-1", 1)["received_packets"]
    for i in range(200):
        a.packet(packet(a.lid, b.lid, 0x200, struct.pack(">I", i), psn=i))
    for i in range(200):
        check(payload(b.await_packet(), False) == struct.pack(">I", i), "packets come in order")
    check(fabric.port("switch-1", 1)["received_packets"] - before == 200, "the switch counts 200 packets")
    big = os.urandom(4096)
    a.packet(packet(a.lid, b.lid, 0x200, big, source=0x100))
    check(payload(b.await_packet()) == big, "a datagram of the largest size arrives whole")
    a.packet(packet(a.lid, a.lid, 0x100, b"self", source=0x100))
    check(payload(a.await_packet()) == b"self", "a host reaches itself")
    check(fabric.port("switch-1", 1)["received_packets"] - before == 201, "and does not use the link for it")
    other = Client(fabric, "host-1")
    check(other.open_qp(0x100) == errno.EADDRINUSE, "a number belongs to one process of a host")
    check(other.open_qp(0x101) == 0, "another one is free")
    a.packet(packet(a.lid, a.lid, 0x101, b"next", source=0x100))
    check(payload(other.await_packet()) == b"next", "processes of one host reach each other")
    for c in (a, b, other):
        c.close()


def forward_group(fabric, mgid, hosts):
    """The hosts' ports join the group at subnet administration; its LID, once the switch forwards it to all of them."""
    for host in hosts:
        c = Client(fabric, host, MANAGEMENT)
        tid = c.open_agent(0, 3, version=2)
        guid, = struct.unpack_from("=Q", c.welcome, 16)
        record = struct.pack(">16sQQIHBBHBBIBB", mgid, c.state["prefix"], guid, 0xb1b, 0, 0, 0, 0xffff, 0, 0, 0, 0x21, 0)
        ask = mad(3, SET, 0x38, tid << 32 | 1, version=2)[:36] + struct.pack(">QHHQ", 0, 0, 0, 0x130c7) + record
        c.send_mad(0, ask.ljust(256, b"\0"), c.state["sm_lid"], timeout_ms=1000, retries=3)
        _, _, status, answer = c.await_mad()
        check(status == 0 and answer[4:6] == b"\0\0", "%s joins the group: %s" % (host, answer[4:6]))
        mlid, = struct.unpack_from(">H", answer, 56 + 36)
        c.close()
    manager, end, ports = Client(fabric, "host-1", MANAGEMENT), time.monotonic() + PATIENCE_S, 0
    tid = manager.open_agent(0, 0x81, qpn=0)
    while ports.bit_count() != len(hosts):
        check(time.monotonic() < end, "the switch forwards the group to %d ports" % len(hosts))
        manager.send_mad(0, directed(GET, 0x1b, tid << 32 | 5, [1], modifier=(mlid - 0xc000) // 32), 0xffff, qpn=0,
                         timeout_ms=1000, retries=3)
        ports, = struct.unpack_from(">H", manager.await_mad()[3], 64 + 2 * (mlid % 32))
    manager.close()
    return mlid


def groups(fabric):
    mgid = bytes.fromhex("ff12401bffff00000000000000000001")
    members = [Client(fabric, "host-1"), Client(fabric, "host-2"), Client(fabric, "host-2")]
    outside = Client(fabric, "host-3")
    for i, m in enumerate(members + [outside]):
        check(m.open_qp(0x300 + i) == 0, "queue pairs are opened")
    mlid = forward_group(fabric, mgid, ("host-1", "host-2", "host-3"))
    for m in members:
        check(m.join(mlid, mgid) == 0, "members join")
    check(outside.join(0x0001, mgid) == errno.EINVAL, "a unicast LID is no group")
    a = members[0]
    a.packet(packet(a.lid, mlid, 0xffffff, b"all", source=0x300, grh=(bytes(16), mgid)))
    for m in members:
        check(m.await_packet()[-8:-4].startswith(b"all"), "each member gets the packet, the sender too")
    # What comes behind it shows that the packet did not come.
    a.packet(packet(a.lid, outside.lid, 0x303, b"end", source=0x300))
    check(payload(outside.await_packet()) == b"end", "who has not joined gets nothing")
    for c in members + [outside]:
        c.close()


def refusals_of_hello(fabric):
    for host, purpose, version, err, word in (
            ("host-9", 0, 1, errno.ENODEV, "did you mean"), ("switch-1", 0, 1, errno.ENODEV, "switch"),
            ("host-1:2", 0, 1, errno.ENODEV, "ports 1 to 1"), ("host-1", 9, 1, errno.EPROTO, "purpose"),
            ("host-1", 0, 77, errno.EPROTO, "version")):
        try:
            Client(fabric, host, purpose, version=version)
            check(False, "%s is refused" % host)
        except Refused as r:
            check(r.errno == err and word in r.text, "%s: %s" % (host, r))
    first = Client(fabric, "host-1:1")
    first.close()
    try:
        c = Client(fabric, "", CONTROL)
        c.packet(packet(1, 2, 3))
        c.expect(PACKET)
        check(False, "a client for control may send no packet")
    except Refused as r:
        check(r.errno == errno.EPROTO, "a client for control may send no packet")


def forged(fabric):
    a, b = Client(fabric, "host-1"), Client(fabric, "host-2")
    b2 = Client(fabric, "host-1")
    check(a.open_qp(0x400) == 0 and b.open_qp(0x500) == 0 and b2.open_qp(0x401) == 0, "queue pairs")
    good = {"slid": a.lid, "dlid": b.lid, "qpn": 0x500, "payload": b"data", "source": 0x400}
    attempts = [
        ("slid", {"slid": b.lid}), ("slid", {"slid": 0}), ("dlid", {"dlid": 0}),
        ("header", {"dlid": 0xffff, "lane": 15}), ("header", {"lane": 15, "qpn": 0}),
        ("pkey", {"pkey": 0x1234}), ("pkey", {"pkey": 0x7fff}), ("qp", {"source": 0x401}),
        ("qp", {"source": 0}), ("qp", {"qpn": 0}), ("qp", {"source": 1}), ("qp", {"qpn": 1, "source": None}),
        ("length", {"words": 3}), ("length", {"words": 2000}), ("header", {"opcode": 0xff}),
        ("header", {"opcode": 0x48}),
    ]
    expected = {}
    for kind, change in attempts:
        expected[kind] = expected.get(kind, 0) + 1
        a.packet(packet(**{**good, **change}))
    a.packet(packet(**good))
    check(payload(b.await_packet()) == b"data", "what is right passes")
    check(b.receive(0) is None, "nothing else has passed")
    counted = {k: v for k, v in [c for c in fabric.port("host-1")["clients"] if c["queue_pairs"] and
                                 c["taken"]][0]["refused"].items() if v}
    check(counted == expected, "each refusal is counted under its reason: %s, %s" % (counted, expected))
    # A number that nobody has opened: the packet is lost at the host.
    a.packet(packet(**{**good, "qpn": 0x999}))
    a.packet(packet(**good))
    b.await_packet()
    check(fabric.port("host-2")["no_owner"] == 1, "a packet for nobody is counted at its host")
    m = Client(fabric, "host-1", MANAGEMENT)
    m.packet(packet(m.lid, b.lid, 1, bytes(256), source=1, qkey=0x80010000))
    await_refusal(fabric, "management", "qp")
    check(b.receive(0) is None, "a client for MADs may not send as QP1 by packets")
    for c in (a, b, b2, m):
        c.close()


def await_refusal(fabric, purpose, kind):
    end = time.monotonic() + PATIENCE_S
    while not [c for c in fabric.port("host-1")["clients"] if c["purpose"] == purpose and c["refused"][kind]]:
        check(time.monotonic() < end, "a packet of a client for %s is refused: %s" % (purpose, kind))


def await_no_clients(fabric):
    end = time.monotonic() + PATIENCE_S
    while True:
        shown = fabric.show()
        left = [c for n in shown["nodes"] for p in n["ports"] for c in p.get("clients", [])]
        # What is asked is read into a batch of 16 buffers.
        if not left and not shown["inside"] and shown["buffers"] <= 16:
            return
        check(time.monotonic() < end, "clients that have ended are gone, with their packets: %s" % left)
        time.sleep(0.01)


def main():
    with Fabric("single:3") as fabric:
        connected_and_datagrams(fabric)
        groups(fabric)
        refusals_of_hello(fabric)
        forged(fabric)
        await_no_clients(fabric)


main()
