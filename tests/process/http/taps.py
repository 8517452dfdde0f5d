#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Taps show every sample that passes a node, or as many as were asked for, by WebSocket.

Environment: BUSBAR, the program. Exit status 0: good, 1: not.
"""
import json
import os
import struct
import tempfile
import time

from http_gateway import Gateway, check, until
from ws_client import BINARY, CLOSE, PING, PONG, TEXT, Socket, how_it_is_asked

CONFIG = """
nodes = {
	sig = { type = "signal"; rate = 1000.0; values = %d; signal = "counter"; };
	loop = { type = "loopback"; };
	idle = { type = "signal"; rate = 10.0; };
};
paths = ( { in = "sig"; out = "loop"; } );
stats = 0.0; hugepages = 0;
"""
ALL = 600  # samples


class Tap(Socket):
    """A client of WebSocket that reads samples."""

    def samples(self):
        """(sequence, values) of the next frame with samples."""
        while True:
            opcode, data = self.frame()
            if opcode == PING:
                self.say(PONG, data)
            elif opcode == CLOSE:
                return struct.unpack(">H", data[:2])[0]
            elif opcode == TEXT:
                return [(s["sequence"], s["data"]) for s in json.loads(data)]
            else:
                break
        out, at = [], 0
        while at < len(data):
            _, _, count, sequence = struct.unpack_from("<BBHI", data, at)
            out.append((sequence, struct.unpack_from("<%df" % count, data, at + 16)))
            at += 16 + 4 * count
        check(at == len(data), "whole samples")
        return out


def step(a, b):
    return b[0] - a[0]


def missed(g):
    """Steps that the generator has left out, because the machine was busy."""
    return g.ask("/api/v2/node/sig").json()["stats"]["missed"]


def all_that_pass(g):
    for path in ("sig/in", "loop/out", "sig/in.json", "loop/out.villas.web", "sig/in?rate=1e9"):
        before, got = missed(g), []  # asked for first: the tap may show a gap at once
        with Tap(g.port, "/tap/" + path) as t:
            while len(got) < ALL:
                got += t.samples()
            gaps = sum(step(a, b) - 1 for a, b in zip(got, got[1:]))
            check(all(step(a, b) > 0 for a, b in zip(got, got[1:])), "%s: in order" % path)
            check(gaps <= missed(g) - before, "%s: %d are lost" % (path, gaps))


def as_many_as_asked_for(g):
    with Tap(g.port, "/tap/sig/in?rate=50") as t:
        got = []
        while len(got) < 50:
            got += t.samples()
    steps = sorted(step(a, b) for a, b in zip(got, got[1:]))
    check(18 <= steps[len(steps) // 2] <= 22, "every 20th: %s" % steps)


def what_cannot_be_tapped(g):
    for path, status in (("/tap/none/in", 404), ("/tap/sig/up", 404), ("/tap/sig", 404), ("/tap/sig/in.none", 404),
                         ("/tap/sig/in/x", 404), ("/tap/sig/in?rate=0", 400), ("/tap/sig/in?rate=", 400),
                         ("/tap/sig/in?rate=-1", 400), ("/tap/sig/in?rate=nan", 400), ("/tap//in", 404),
                         ("/tap/" + "x" * 100 + "/in", 404)):
        with Tap(g.port, path) as t:
            check(t.said.status == status, "%s: %d" % (path, t.said.status))
    with Tap(g.port, "/tap/sig/in", "dead") as t:
        check(t.said.status == 400, "another protocol: %d" % t.said.status)


def answers(g):
    how_it_is_asked(g.port, "/tap/idle/in")
    with Tap(g.port, "/tap/idle/in") as t:
        t.say(PING, b"there?")
        check(t.frame() == (PONG, b"there?"), "a pong")
        t.say(BINARY, b"what a tap does not want")
        t.say(CLOSE, struct.pack(">H", 1000))
        check(t.frame() == (CLOSE, struct.pack(">H", 1000)), "goodbye")
        check(t.is_closed(), "and closed")
    with Tap(g.port, "/tap/idle/in") as t:
        t.say(BINARY, b"x", mask=None)
        check(t.samples() == 1002, "a wrong frame ends it")


def goes_on(g):
    """Beside a stop and a start, and until a reload brings other signals."""
    with Tap(g.port, "/tap/sig/in") as t:
        check(t.samples(), "samples")
        for command in ("stop", "start"):
            check(g.ask("/api/v2/node/sig/" + command, "POST").status == 200, command)
        before = t.samples()
        until(lambda: len(t.samples()[-1][1]) == len(before[-1][1]), "samples again")
        g.write(CONFIG % 3)
        g.ctl("reload")
        end = time.monotonic() + 20
        while (last := t.samples()) != 1012:
            check(time.monotonic() < end and isinstance(last, list), "the end: %s" % last)
    with Tap(g.port, "/tap/sig/in") as t:
        check(len(t.samples()[0][1]) == 3, "the new signals")


def does_not_take_what_it_asked_for(g):
    with Tap(g.port, "/tap/sig/in.json") as slow, Tap(g.port, "/tap/sig/in") as t:
        start = g.resident_kb()
        for _ in range(50):
            check(t.samples(), "others are served")
        check(g.is_sanitized() or g.resident_kb() - start < 4096, "little is kept")
        check(slow.said.status == 101, "it was there")


def main():
    with tempfile.TemporaryDirectory(prefix="busbar-taps-") as folder:
        with Gateway(folder, CONFIG % 2) as g:
            all_that_pass(g)
            as_many_as_asked_for(g)
            what_cannot_be_tapped(g)
            answers(g)
            does_not_take_what_it_asked_for(g)
            goes_on(g)
            last = Tap(g.port, "/tap/sig/in")
            os.kill(g.process.pid, 15)
            while isinstance(said := last.samples(), list):
                pass
            check(said == 1001 and last.is_closed(), "goodbye at the end: %s" % said)
            last.close()


if __name__ == "__main__":
    main()
