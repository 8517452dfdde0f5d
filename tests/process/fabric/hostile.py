#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""What a process does that is plugged into a fabric harms neither the fabric nor the processes beside it: it floods, does
not read, says nothing, says nonsense, ends at any moment, or asks for all there is."""
import errno
import os
import random
import signal
import socket
import struct
import sys
import time

sys.path.insert(0, os.path.dirname(__file__))
from plugged import (ASK, CONTROL, Client, DONE, Fabric, HELLO, JOIN, MANAGEMENT, PATIENCE_S, QP_OPEN, REFUSED, Refused,
                     VERBS, check, directed, mad, packet, payload)

STRANGER, FRIEND, GUEST = 12345, 12346, 12347
GET, SET = 1, 2
SEED = int(sys.argv[1]) if len(sys.argv) > 1 else 1


class Witnesses:
    """Two hosts that nobody else uses: what they send arrives at any time."""

    def __init__(self, fabric):
        self.a, self.b = Client(fabric, "host-1"), Client(fabric, "host-2")
        check(self.a.open_qp(2) == 0 and self.b.open_qp(2) == 0, "the witnesses have queue pairs")
        self.number = 0

    def look(self, what):
        self.number += 1
        data = struct.pack(">I", self.number)
        self.a.packet(packet(self.a.lid, self.b.lid, 2, data, source=2))
        check(payload(self.b.await_packet()) == data, "others are served: " + what)


def fill(client, data, limit):
    """Sends until the socket takes no more; how many."""
    client.socket.setblocking(False)
    sent = 0
    try:
        while sent < limit:
            client.packet(data)
            sent += 1
    except BlockingIOError:
        pass
    client.socket.settimeout(PATIENCE_S)
    return sent


def never_reads(fabric, witnesses):
    a, b = Client(fabric, "host-3"), Client(fabric, "host-4")
    check(a.open_qp(3) == 0 and b.open_qp(3) == 0, "queue pairs")
    big, sent = packet(a.lid, b.lid, 3, bytes(4096)), 0
    while fabric.port("host-4")["clients"][0]["slow"] == 0:
        sent += fill(a, big, 500)
        check(sent < 100000, "packets for a process that does not read are lost, and counted")
        witnesses.look("one does not read")
    check(fabric.show()["buffers"] < 4096, "what waits for a process that does not read is bounded")
    b.close()
    witnesses.look("it ended with packets that wait")
    a.close()


def floods(fabric, witnesses):
    """Many send to one port: its link is full, and they are held up, but nobody else."""
    senders = [Client(fabric, "host-%d" % h) for h in (3, 4, 5) for _ in range(2)]
    sink = Client(fabric, "host-6")
    check(sink.open_qp(9) == 0, "a queue pair")
    for i, s in enumerate(senders):
        check(s.open_qp(0x10 + i) == 0, "queue pairs")
    end, number = time.monotonic() + 1, 0
    while time.monotonic() < end:
        for s in senders:
            number += fill(s, packet(s.lid, sink.lid, 9, bytes(2048)), 200)
        witnesses.look("others flood")
    check(number > 1000, "the flood was one")
    for s in senders:
        s.close()
    sink.close()
    witnesses.look("the flood has ended")


def silent_and_nonsense(fabric, witnesses):
    def raw():
        s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        s.settimeout(PATIENCE_S)
        s.connect("\0busbar.fabric." + fabric.name)
        return s

    silent = [raw() for _ in range(50)]
    witnesses.look("fifty say nothing")
    for data in (b"x", b"\0" * 12, struct.pack("=HHII", HELLO, 4, 0, 0), os.urandom(200),
                 struct.pack("=HHII", HELLO, 101, 0, 0) + bytes(101), bytes(9000),
                 struct.pack("=HHII", QP_OPEN, 4, 0, 0) + bytes(4)):
        s = raw()
        s.send(data)
        kind, = struct.unpack_from("=H", s.recv(8192))
        check(kind == REFUSED, "nonsense in place of a hello is refused")
        check(s.recv(100) == b"", "and the connection ends")
        s.close()
    c = Client(fabric, "host-3")
    c.send(0x33, b"")
    check(c.expect(REFUSED)[1] == errno.EPROTO, "so does an unknown message later")
    c.close()
    for s in silent:
        s.close()


def asks_without_reading(fabric, witnesses):
    c = Client(fabric, "host-3")
    c.socket.setblocking(False)
    try:
        for i in range(200000):
            c.send(QP_OPEN, struct.pack("=I", 2 + i % 5), b=1)
        check(False, "a process that asks without reading is held up or ended")
    except (BlockingIOError, BrokenPipeError, ConnectionResetError):
        pass
    witnesses.look("one asks without reading")
    c.close()


def too_many(fabric, witnesses):
    crowd = []
    try:
        while len(crowd) < 1000:
            crowd.append(Client(fabric, "host-3"))
        check(False, "a host has a limit of processes")
    except Refused as r:
        check(r.errno == errno.EUSERS, str(r))
    check(len(crowd) == 128, "the limit is that of the manual: %d" % len(crowd))
    witnesses.look("a host has all processes that it may")
    check(crowd[0].done(QP_OPEN, struct.pack("=I", 1 << 24)) == errno.EINVAL, "no such number")
    for c in crowd:
        c.close()


def unanswered_requests(fabric, witnesses):
    """Requests that nobody answers: a host has so many at a time, and they do not all end before others are served."""
    crowd = [Client(fabric, "host-3", MANAGEMENT) for _ in range(12)]
    for k, c in enumerate(crowd):
        # Those of the last nine, which are more than the limit, last.
        timeout_ms = 300 if k < 3 else 60000
        tid = c.open_agent(0, 0x32, oui=b"abc")
        for i in range(1000):
            c.send_mad(0, mad(0x32, 1, 0, tid << 32 | i, at=37, data=b"abc"), 0xbffe, timeout_ms=timeout_ms, retries=1)
    end, err = time.monotonic() + PATIENCE_S, 0
    while err != errno.ENOSPC:
        check(time.monotonic() < end, "a host has a limit of requests")
        c.send_mad(0, mad(0x32, 1, 0, tid << 32, at=37, data=b"abc"), 0xbffe, timeout_ms=60000, number=5)
        err = c.expect(DONE)[1]
    for c in crowd[:3]:
        for _ in range(800):
            check(c.await_mad()[2] == errno.ETIMEDOUT, "each comes back")
            witnesses.look("many requests end at once")
    for c in crowd:
        c.close()


def groups_of_one_lid(fabric, witnesses):
    """A packet to a group does not cost more for those that joined other groups with the same multicast LID."""
    crowd = [Client(fabric, "host-3") for _ in range(40)]
    for k, c in enumerate(crowd):
        for i in range(1000):
            c.send(JOIN, struct.pack("=16sHH", b"\xff\x12" + struct.pack(">III", k, i, 0) + bytes(2), 0xc001, 0))
    a = crowd[0]
    check(a.open_qp(3) == 0, "a queue pair")
    for c in crowd:
        c.open_qp(2)  # its joins are done, too
    data, before = packet(a.lid, 0xc001, 0xffffff, b"", source=3, grh=(bytes(16), b"\xff\x12" + bytes(14))), fabric.cpu_s()
    for _ in range(4000):
        a.packet(data)
    a.open_qp(3)
    took = fabric.cpu_s() - before
    print("4000 packets to a group of 40000: %.2f s" % took, flush=True)
    check(took < 0.2, "a packet to a group takes no longer for other groups: %.2f s for 4000" % took)
    witnesses.look("one host has 40000 groups")
    for c in crowd:
        c.close()


def random_ends(fabric, witnesses):
    """Anything, at any time, from a process that ends in the middle of it."""
    rng = random.Random(SEED)
    for _ in range(150):
        c = Client(fabric, "host-%d" % rng.randint(3, 6), rng.choice((VERBS, MANAGEMENT)))
        c.socket.setblocking(False)
        try:
            for _ in range(rng.randint(0, 20)):
                kind = rng.randint(1, 11)
                size = rng.choice((0, 4, 20, 24, 28, 308, rng.randint(0, 4300)))
                body = bytearray(rng.randbytes(size))
                if kind == 6 and size >= 24:
                    body[:8] = struct.pack(">BBHHH", 0, 2, rng.choice((1, 3, 4, 0xc001)), size // 4, c.lid)
                c.send(kind, bytes(body), rng.randint(0, 40), rng.randint(0, 3))
        except (BrokenPipeError, ConnectionResetError, BlockingIOError):
            pass
        c.close()
    witnesses.look("a hundred and fifty have ended")


def plugs_in(fabric, host="host-3"):
    Client(fabric, host)
    return 0


def ask(fabric, line):
    control = Client(fabric, "", CONTROL)
    control.send(ASK, line, b=1)
    return control.expect(DONE)[1]


def as_user(uid, fabric, action=plugs_in):
    """What a process of that user gets: an errno, 0: it is done."""
    child = os.fork()
    if not child:
        os.setgroups([])
        os.setgid(uid)
        os.setuid(uid)
        try:
            os._exit(action(fabric))
        except Refused as r:
            os._exit(r.errno)
        except OSError:
            os._exit(255)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def connect_only(fabric):
    s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    s.connect("\0busbar.fabric." + fabric.name)
    return s


def crowd_of(uid, fabric, connect):
    """Connections of another user: more than the fabric has places for clients."""
    begun, held = os.pipe(), []
    child = os.fork()
    if not child:
        os.setgroups([])
        os.setgid(uid)
        os.setuid(uid)
        for k in range(1100):
            try:
                held.append(connect(fabric, k))
            except (OSError, EOFError, Refused):
                pass
        os.write(begun[1], b"x")
        time.sleep(60)
        os._exit(0)
    os.read(begun[0], 1)
    try:
        for _ in range(3):
            Client(fabric, "host-4").close()
    except (OSError, EOFError) as e:
        raise SystemExit("failed: connections of another user take all places: %s" % e) from e
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def looks_and_sets(fabric):
    """Gets and Sets of nodes by management datagrams: 0: a Get is sent, a Set is not."""
    c = Client(fabric, "host-3", MANAGEMENT)
    for agent, (mad_class, qpn) in enumerate(((0x81, 0), (0x04, 1), (0x21, 1))):
        tid = c.open_agent(agent, mad_class, qpn=qpn) << 32
        for method, wanted in ((GET, 0), (SET, errno.EPERM)):
            data = mad(mad_class, method, 0x12, tid) if qpn else directed(method, 0x15, tid, [1], 1)
            c.send_mad(agent, data, 1 if qpn else 0xffff, qpn=qpn, timeout_ms=5000, number=9)
            if c.expect(DONE)[1] != wanted:
                return 1 + mad_class
    c.close()
    return 0


def sets_by_packet(fabric):
    c = Client(fabric, "host-3")
    for mad_class in (0x04, 0x21):
        c.packet(packet(c.lid, c.lid, 1, mad(mad_class, SET, 0x12, 1), source=1, qkey=0x80010000))
    return c.open_qp(3)  # they have been read


def bad_mads(fabric):
    return fabric.show()["gone"]["refused"]["mad"]


def without_a_manager():
    """Anybody who plugs in may be the manager, but not a user who may not cut cables."""
    with Fabric("single:3", "--allow-user", "%d@host-3" % GUEST, sm="none") as fabric:
        check(as_user(GUEST, fabric, looks_and_sets) == 0, "a guest looks at nodes, and does not set them")
        check(looks_and_sets(fabric) == 1 + 0x81, "who runs the fabric does")


def other_users(fabric):
    crowd_of(STRANGER, fabric, lambda f, k: connect_only(f))
    crowd_of(FRIEND, fabric, lambda f, k: connect_only(f))
    crowd_of(FRIEND, fabric, lambda f, k: Client(f, "", CONTROL))
    with Fabric("single:12", "--allow-user", str(FRIEND)) as wide:
        crowd_of(FRIEND, wide, lambda f, k: Client(f, "host-%d" % (1 + k // 120)))
    check(as_user(STRANGER, fabric) == errno.EACCES, "another user is refused")
    check(as_user(FRIEND, fabric) == 0, "one that --allow-user names is not")
    check(as_user(GUEST, fabric) == 0, "one that it names for a host is not, there")
    check(as_user(GUEST, fabric, lambda f: plugs_in(f, "host-2")) == errno.EACCES,
          "one that it names for a host is refused at another one")
    check(as_user(FRIEND, fabric, lambda f: ask(f, b"show")) == 0, "it may look at the fabric")
    for line in (b"cut host-1:1", b"join host-1", b"fail switch-1", b"stop"):
        check(as_user(FRIEND, fabric, lambda f, line=line: ask(f, line)) == errno.EPERM, "but not %s" % line.decode())
    before = bad_mads(fabric)
    check(as_user(FRIEND, fabric, sets_by_packet) == 0, "packets to queue pair 1 are read")
    end = time.monotonic() + PATIENCE_S
    while bad_mads(fabric) != before + 2:
        check(time.monotonic() < end, "and refused where they would set a node")
    without_a_manager()


def may_change_user():
    if os.geteuid():
        return False
    child = os.fork()
    if not child:
        try:
            os.setuid(STRANGER)
            os._exit(0)
        except OSError:
            os._exit(1)
    return not os.waitpid(child, 0)[1]


def idle(fabric):
    before, begin = fabric.cpu_s(), time.monotonic()
    while time.monotonic() < begin + 1:
        time.sleep(0.1)
    check(fabric.cpu_s() - before <= 0.1, "a fabric without traffic takes no processor time: %.2f s of 1 s" %
          (fabric.cpu_s() - before))


def main():
    print("seed", SEED, flush=True)
    with Fabric("single:6", "--allow-user", str(FRIEND), "--allow-user", "%d@host-3" % GUEST) as fabric:
        witnesses = Witnesses(fabric)
        witnesses.look("at the start")
        for attack in (silent_and_nonsense, never_reads, floods, asks_without_reading, too_many,
                       unanswered_requests, groups_of_one_lid, random_ends):
            attack(fabric, witnesses)
        if may_change_user():
            other_users(fabric)
        idle(fabric)
        control = Client(fabric, "", CONTROL)
        control.close()
        check(fabric.process.poll() is None, "the fabric runs")


main()
