#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Management datagrams of plugged-in processes: which agent gets what, answers by their transaction identifier,
repetitions until nobody has answered, communication management for the verbs programs of a host; and what is asked of the
fabric's process: cut, join, fail, list, stop."""
import errno
import os
import struct
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(__file__))
from plugged import (CAPABILITY, Client, DONE, Fabric, MANAGEMENT, PATIENCE_S, check, directed, mad, packet, payload)

GET, SET, SEND, TRAP, GET_RESP = 1, 2, 3, 5, 0x81
NODE_INFO, LINEAR_FORWARDING = 0x11, 0x19
IS_SM = 1 << 1


def agents(fabric):
    a, b = Client(fabric, "host-1", MANAGEMENT), Client(fabric, "host-1", MANAGEMENT)
    first = a.open_agent(0, 0x81, (GET, SET), qpn=0)
    check(first, "an agent is opened")
    check(b.open_agent(0, 0x81, (SET,), qpn=0) == 0, "another of the same class and method is refused")
    second = b.open_agent(1, 0x81, (), qpn=0)
    check(second and second != first, "one that only asks is not, and has identifiers of its own")
    check(b.open_agent(2, 0x03, qpn=0) == 0, "subnet administration is not at QP0")
    # Each gets its own answers.
    for client, number, tid in ((a, 0, first), (b, 1, second)):
        client.send_mad(number, directed(GET, NODE_INFO, tid << 32 | 0xabc, [1]), 0xffff, qpn=0, timeout_ms=5000)
        agent, _, status, answer = client.await_mad()
        check((agent, status) == (number, 0), "the agent that asked gets the answer")
        check(struct.unpack_from(">Q", answer, 8)[0] == tid << 32 | 0xabc, "with the identifier of its request")
        check(answer[3] == GET_RESP and answer[64 + 2] == 2, "which says that the node is a switch")
    # With another's identifiers nothing is sent.
    b.send_mad(1, directed(GET, NODE_INFO, first << 32 | 1, [1]), 0xffff, qpn=0, number=3)
    check(b.expect(0x43)[1] == errno.EPERM, "a request with another agent's identifier is refused")
    b.send_mad(9, directed(GET, NODE_INFO, first << 32 | 1, [1]), 0xffff, qpn=0, number=4)
    check(b.expect(0x43)[1] == errno.ENOENT, "an agent that is not open sends nothing")
    check(a.receive(0) is None, "the other one gets nothing")
    # An SMP by LID, to a host and to itself.
    other = Client(fabric, "host-2")
    c = a.open_agent(5, 0x01, qpn=0)
    for lid in (other.lid, a.lid):
        a.send_mad(5, mad(1, GET, NODE_INFO, c << 32 | lid), lid, qpn=0, timeout_ms=5000)
        agent, source, status, answer = a.await_mad()
        check((agent, source, status) == (5, lid, 0) and answer[64 + 2] == 1, "a node answers by LID")
    for x in (a, b, other):
        x.close()


def forwarding(client, tid, method, number, data=b""):
    """Gets, or tries to set, the first entries of the forwarding table of the switch; the answer, or an errno."""
    client.send_mad(0, directed(method, LINEAR_FORWARDING, tid << 32 | number, [1], data=data), 0xffff, qpn=0,
                    timeout_ms=5000, number=number)
    err = client.expect(DONE)[1]
    return err or client.await_mad()[3][64:]


def foreign_managers(fabric):
    """The fabric's own manager is the only one that changes the subnet."""
    a = Client(fabric, "host-1", MANAGEMENT)
    tid = a.open_agent(0, 0x81, qpn=0)
    before = forwarding(a, tid, GET, 1)
    check(len(before) > 64, "anybody may look at the tables")
    check(forwarding(a, tid, SET, 2, b"\xff" * 64) == errno.EPERM, "a process that sets a table is refused")
    check(forwarding(a, tid, GET, 3)[:64] == before[:64], "and the table is as it was")
    for method, what in ((GET_RESP, "answers the manager in the place of a node"), (TRAP, "raises a trap")):
        a.send_mad(0, directed(method, NODE_INFO, 0xffffffff << 32 | tid, [1]), 0xffff, qpn=0, number=4)
        check(a.expect(DONE)[1] == errno.EPERM, "so is one that " + what)
    a.close()


def unanswered(fabric):
    a = Client(fabric, "host-1", MANAGEMENT)
    tid = a.open_agent(3, 0x32, oui=b"\x00\x14\x05")
    begin = time.monotonic()
    a.send_mad(3, mad(0x32, GET, 0, tid << 32 | 1, at=37, data=b"\x00\x14\x05"), 0xbffe, timeout_ms=50, retries=3)
    agent, _, status, back = a.await_mad()
    took = time.monotonic() - begin
    check((agent, status) == (3, errno.ETIMEDOUT), "what nobody answers comes back")
    check(back[0:4] == bytes((1, 0x32, 1, GET)), "as it was")
    check(took >= 0.2, "after four times its timeout: %.3f s" % took)
    a.close()


def between_hosts(fabric):
    """A vendor's class with an OUI: a server at host-2 that answers, as ibping has it."""
    oui = b"\x00\x14\x05"
    a, b = Client(fabric, "host-1", MANAGEMENT), Client(fabric, "host-2", MANAGEMENT)
    asks = a.open_agent(0, 0x32, oui=oui)
    check(b.open_agent(0, 0x32, (GET,), oui=b"\x00\x00\x01"), "another OUI")
    check(b.open_agent(7, 0x32, (GET,), oui=oui), "the server's agent")
    question = mad(0x32, GET, 0, asks << 32 | 77, at=37, data=oui + b"ping")
    a.send_mad(0, question, b.lid, timeout_ms=5000, retries=1)
    agent, source, status, got = b.await_mad()
    check((agent, source, status, got) == (7, a.lid, 0, question), "the agent with the OUI gets the request")
    b.send_mad(7, got[:3] + bytes((GET_RESP,)) + got[4:], source)
    agent, source, status, got = a.await_mad()
    check((agent, source, status, got[3]) == (0, b.lid, 0, GET_RESP), "the answer comes back")
    b.close()
    a.close()


def connection_managers(fabric):
    """A request of communication management goes to all verbs programs of a host, as a packet."""
    a, b, c = Client(fabric, "host-1"), Client(fabric, "host-2"), Client(fabric, "host-2")
    m = Client(fabric, "host-2", MANAGEMENT)
    request = mad(7, SEND, 0x10, 0x1234, version=2)
    a.packet(packet(a.lid, b.lid, 1, request, source=1, qkey=0x80010000))
    for x in (b, c):
        check(payload(x.await_packet()) == request, "each verbs program gets it")
    check(m.receive(0) is None, "a program for MADs does not")
    for x in (a, b, c, m):
        x.close()


def await_port(client, test, what):
    end = time.monotonic() + PATIENCE_S
    while not test(client.state):
        check(time.monotonic() < end and client.receive(1) is not False, what)


def manager_bit(fabric):
    a, b = Client(fabric, "host-3", MANAGEMENT), Client(fabric, "host-3")
    a.send(CAPABILITY, b"", IS_SM, 0)
    await_port(b, lambda s: s["mask"] & IS_SM, "a program makes its port that of a manager")
    a.close()
    await_port(b, lambda s: not s["mask"] & IS_SM, "until it ends")
    b.close()


def cables(fabric):
    a, b = Client(fabric, "host-1"), Client(fabric, "host-3")
    check(a.open_qp(5) == 0 and b.open_qp(5) == 0, "queue pairs")

    def passes():
        a.packet(packet(a.lid, b.lid, 5, b"data", source=5))
        check(payload(b.await_packet()) == b"data", "packets pass")

    passes()
    done = fabric.command("cut", "host-3:1", "--name", fabric.name)
    check(done.returncode == 0, "a cable is cut: " + done.stderr)
    await_port(b, lambda s: s["state"] == 1, "the host sees that its port is down")
    check(not fabric.port("host-3")["up"] and fabric.port("host-3")["link_downed"] == 1, "and so does show")
    a.packet(packet(a.lid, b.lid, 5, b"lost", source=5))
    check(fabric.command("join", "host-3", "--name", fabric.name).returncode == 0, "it is joined")
    await_port(b, lambda s: s["state"] == 4, "the manager makes the port active again")
    passes()
    check(fabric.command("fail", "switch-1", "--name", fabric.name).returncode == 0, "the switch fails")
    for c in (a, b):
        await_port(c, lambda s: s["state"] == 1, "all its hosts are cut off")
    check(fabric.command("join", "switch-1", "--name", fabric.name).returncode == 0, "it returns")
    for c in (a, b):
        await_port(c, lambda s: s["state"] == 4, "and its hosts with it")
    passes()
    for words, text in ((("cut", "host-9"), "did you mean"), (("cut", "switch-1"), "say which one"),
                        (("cut", "host-1:7"), "ports 1 to 1"), (("fail", "host-1:1"), "as a whole")):
        done = fabric.command(*words, "--name", fabric.name)
        check(done.returncode == 1 and text in done.stderr, "%s: %s" % (words, done.stderr))
    for c in (a, b):
        c.close()


def life(fabric):
    check(fabric.name in fabric.command("list").stdout.split(), "list names it")
    again = subprocess.run([os.environ["BUSBAR"], "fabric", "run", "single:2", "--name", fabric.name],
                           capture_output=True, text=True, timeout=PATIENCE_S)
    check(again.returncode == 1 and "runs already" in again.stderr, "a second one of the name is refused")
    shown = fabric.command("show", fabric.name)
    check(shown.returncode == 0 and "switch switch-1" in shown.stdout, "show prints it")
    c = Client(fabric, "host-1")
    check(fabric.command("stop", fabric.name).returncode == 0, "it is stopped")
    check(fabric.process.wait(PATIENCE_S) == 0, "it ends well")
    try:
        while c.receive():
            pass
    except EOFError:
        pass
    check(fabric.name not in fabric.command("list").stdout.split(), "nothing of it is left")
    check(fabric.command("show", fabric.name).returncode == 1, "nobody answers any more")


def main():
    with Fabric("single:3") as fabric:
        agents(fabric)
        foreign_managers(fabric)
        unanswered(fabric)
        between_hosts(fabric)
        connection_managers(fabric)
        manager_bit(fabric)
        cables(fabric)
        life(fabric)


main()
