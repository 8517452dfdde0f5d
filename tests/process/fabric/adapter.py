#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""adapter.py AT_PORT: a verbs program (at_port.c) as the InfiniBand port of a host: what it sees of the port and
of its changes, and which addresses and partitions its packets have. Over a relay whose ports change as the test
wants, and over a fabric with switches."""
import os
import select
import subprocess
import sys
import time

from plugged import Fabric, check
from relay import Relay

PATIENCE_S = 30
EINVAL = 22
LID = 4  # of the first host of a relay


class Program:
    """at_port at a port of the fabric; `step` is called while an answer is awaited."""

    def __init__(self, name, host, step=None):
        self.step = step
        self.process = subprocess.Popen(
            [sys.argv[1]], env=dict(os.environ, BUSBAR_FABRIC=f"{name}/{host}", BUSBAR_DEVICES="soft"),
            stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        check(self.read() == "open", "the device opens")

    def read(self):
        end = time.monotonic() + PATIENCE_S
        while not select.select([self.process.stdout], [], [], 0 if self.step else PATIENCE_S)[0]:
            check(time.monotonic() < end, "the program answers")
            if self.step:
                self.step(0.01)
        return self.process.stdout.readline().decode().strip()

    def ask(self, *words):
        self.process.stdin.write((" ".join(str(w) for w in words) + "\n").encode())
        self.process.stdin.flush()
        return self.read()

    def values(self, *words):
        answer = self.ask(*words)
        check("=" in answer, f"{words} answers with values: {answer}")
        return dict(pair.split("=") for pair in answer.split())

    def expect(self, words, **wanted):
        values = self.values(*words.split())
        for key, value in wanted.items():
            check(values[key] == str(value), f"{words}: {key} is {value}: {values}")

    def expect_answer(self, words, answer):
        said = self.ask(*words.split())
        check(said == answer, f"{words} is answered by '{answer}', not '{said}'")

    def end(self):
        self.process.stdin.close()
        while self.step and self.process.poll() is None:
            self.step(0.01)
        check(self.process.wait(PATIENCE_S) == 0, "the program ends well")
        self.process.stdout.close()


def the_port_is_as_the_fabric_says(p):
    p.expect("port", layer=1, state=4, lid=LID, lmc=2, sm_lid=4, mtu=5, width=2, speed=32,
             gid="fe80000000000000:0002c90300000010", guid="0002c9030000000f", pkeys="0xffff,0x8001,0x2")


def datagrams_have_lids_and_partitions(p):
    p.expect(f"datagram {LID + 2} 1 5 1 0", status=0, bytes=104, slid=LID + 1, bits=2, sl=5, pkey_index=1,
             grh=0, kept=1, back=0, dlid=LID + 1, src_bits=2, back_sl=5, **{"global": 0}, answer=1)
    p.expect(f"datagram {LID} 0 0 0 1", status=0, bytes=104, slid=LID, bits=0, sl=0, pkey_index=0, grh=1, kept=0,
             back=0, **{"global": 1}, answer=1)
    p.expect(f"limited {LID} 1", first=1, second=1)
    # Limited members of a partition do not hear each other.
    p.expect(f"limited {LID} 2", first=0, second=1)


def what_cannot_be_is_refused(p):
    p.expect(f"vector {LID} 3", handle=0, rtr=0)
    for wrong in ("0 0", "0xffff 0", "0xc001 0", f"{LID} 4"):
        p.expect(f"vector {wrong}", handle=EINVAL, rtr=EINVAL)
    p.expect_answer("index 2", "0")
    p.expect_answer("index 3", str(EINVAL))


def groups(p):
    p.expect("group 0xc001", attached=0, came=1, detached=0)
    p.expect("group 0xfffe", attached=0, came=1, detached=0)


def changes_are_events(relay, p):
    for values, event in [
            ({"lid": 16}, "LID change"), ({"sm_lid": 9}, "SM change"), ({"pkeys": [0xffff, 0x8003]}, "P_Key change"),
            ({"reregister": 1}, "client reregistration"), ({"guids": [0x42]}, "GID table change"),
            ({"state": 1}, "port error"), ({"state": 4}, "port active")]:
        relay.change("a", **values)
        said = p.ask("event")
        check(event in said or said == event, f"{values} is the event '{event}', not '{said}'")
    relay.tell("a", 13)  # IBV_EVENT_SM_CHANGE
    check("SM change" in p.ask("event"), "the fabric may tell an event itself")
    p.expect("port", lid=16, sm_lid=9, pkeys="0xffff,0x8003", gid="fe80000000000000:0000000000000042", state=4)
    p.expect_answer("connect 16", "success")
    # A packet to the LID that it had would be another port's.
    p.expect_answer("index 2", str(EINVAL))


def an_unplugged_port_is_down(relay, p):
    relay.cut("a")
    check("port error" in p.ask("event"), "the end of the connection is the end of the port")
    p.expect("port", state=1)
    p.expect_answer("connect 16", "transport retry counter exceeded")
    p.expect(f"vector {LID} 0", handle=0)


def over_a_relay():
    name = f"relay-{os.getpid()}"
    relay = Relay(name, ["a", "b"])
    p = Program(name, "a", relay.step)
    the_port_is_as_the_fabric_says(p)
    datagrams_have_lids_and_partitions(p)
    what_cannot_be_is_refused(p)
    groups(p)
    p.expect_answer(f"connect {LID + 1}", "success")
    changes_are_events(relay, p)
    an_unplugged_port_is_down(relay, p)
    p.end()


def over_a_fabric():
    with Fabric("single:2") as fabric:
        p = Program(fabric.name, "host-1")
        port = p.values("port")
        check(port["state"] == "4" and port["layer"] == "1", f"the port is active: {port}")
        p.expect_answer("connect " + port["lid"], "success")
        p.expect(f"datagram {port['lid']} 0 2 0 1", status=0, slid=port["lid"], sl=2, grh=1)
        p.expect("group 0xc001", attached=0, came=1)
        check(fabric.command("cut", "host-1:1", "-n", fabric.name).returncode == 0, "the cable is cut")
        check("port error" in p.ask("event"), "a cut cable is the event of a port")
        check(fabric.command("join", "host-1:1", "-n", fabric.name).returncode == 0, "the cable is joined")
        event = p.ask("event")
        while "port active" not in event:
            check(event != "none", "a joined cable is the event of a port")
            event = p.ask("event")
        p.expect_answer("connect " + p.values("port")["lid"], "success")
        p.end()


over_a_relay()
over_a_fabric()
