#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Handshakes that are refused, frames that are wrong, statuses of goodbyes, messages in pieces.

Environment: BUSBAR, the program. Exit status 0: good, 1: not.
"""
import json
import os
import struct
import sys
import tempfile

from http_gateway import Gateway, check, until
from ws_client import BINARY, CLOSE, CONTINUATION, PING, PONG, TEXT, Socket, frame, how_it_is_asked

CONFIG = """
nodes = {
	sig = { type = "signal"; rate = 100.0; values = 2; };
	live = { type = "websocket"; max_message = 2048; max_clients = 3;
		in = { signals = "2f"; }; };
	late = { type = "websocket"; in = { signals = "2f"; queuelen = 4; }; };
	twisted = { type = "websocket"; in = { signals = "1c"; }; };
	turn = { type = "signal.v2"; rate = 10.0; in = { signals = ( { name = "z"; signal = "constant"; } ); }; };
	file = { type = "file"; uri = "%s"; format = "csv"; out = { flush = true; }; };
};
paths = ( { in = "sig"; out = "live"; }, { in = "live"; out = "file"; }, { in = "late"; },
	{ in = "turn"; out = "twisted"; hooks = ( { type = "cast"; signal = "z"; new_type = "complex"; } ); } );
stats = 0.0; hugepages = 0;
"""


def refused(port, status, words, path="/live", protocols="live", **headers):
    with Socket(port, path, protocols, **headers) as s:
        check(s.said.status == status, "%s %s: %d %r" % (path, headers, s.said.status, s.said.body))
        check(not words or words in s.said.json()["error"], "%s: %s" % (path, s.said.body))
        return s.said


def handshakes(g):
    how_it_is_asked(g.port, "/live")
    refused(g.port, 404, "did you mean 'json'", "/live.jsno")
    refused(g.port, 404, "no format", "/live.%ff")
    refused(g.port, 404, None, "/nobody")
    refused(g.port, 400, "'z' is complex", "/twisted")
    refused(g.port, 400, "handshake", Sec_WebSocket_Key="short")
    refused(g.port, 400, "handshake", protocols="dead")
    refused(g.port, 400, "handshake", Upgrade="h2c")
    check(refused(g.port, 426, "version 13", Sec_WebSocket_Version="8").headers["sec-websocket-version"] == "13",
          "the version that is spoken")
    refused(g.port, 403, "origin", Origin="http://evil.example")
    for path in ("/live", "/live.json", "/live.villas.web", "/live.villas.human"):
        with Socket(g.port, path, None, Origin="http://127.0.0.1:%d" % g.port) as s:
            check(s.said.status == 101, "%s without a protocol" % path)
            check(s.frame()[0] == (TEXT if path[5:] in (".json", ".villas.human") else BINARY), "kind of frames")
    clients = [Socket(g.port) for _ in range(3)]
    refused(g.port, 503, "3 clients already")
    for s in clients:
        s.close()
    # Their places are free again.
    until(lambda: answers(g), "another client")


def answers(g):
    with Socket(g.port) as s:
        return s.said.status == 101


def wrong_frames(g):
    text = "\u20ac".encode()
    for name, status, pieces in (
            ("no mask", 1002, [frame(TEXT, b"x", mask=None)]),
            ("a reserved bit", 1002, [frame(TEXT, b"x", reserved=4)]),
            ("an unknown opcode", 1002, [frame(3, b"x")]),
            ("an unknown control opcode", 1002, [frame(11, b"x")]),
            ("a ping in fragments", 1002, [frame(PING, b"x", fin=False)]),
            ("a long ping", 1002, [frame(PING, b"x" * 126)]),
            ("nothing to continue", 1002, [frame(CONTINUATION, b"x")]),
            ("a message within a message", 1002, [frame(TEXT, b"x", fin=False), frame(TEXT, b"x")]),
            ("a length of two bytes for 5", 1002, [frame(TEXT, b"x" * 5, length=b"\x7e\0\5")]),
            ("a length of eight bytes for 5", 1002, [frame(TEXT, b"x" * 5, length=b"\x7f\0\0\0\0\0\0\0\5")]),
            ("a negative length", 1002, [frame(TEXT, b"", length=b"\x7f\xff\xff\xff\xff\xff\xff\xff\xff")]),
            ("text that is not UTF-8", 1007, [frame(TEXT, b"\xff")]),
            ("half a character", 1007, [frame(TEXT, text[:2])]),
            ("a wrong one over fragments", 1007, [frame(TEXT, text[:2], fin=False), frame(CONTINUATION, b"x")]),
            ("a long message", 1009, [frame(TEXT, b"x" * 2049)]),
            ("a long message in fragments", 1009, [frame(TEXT, b"x" * 2000, fin=False), frame(CONTINUATION, b"x" * 49)]),
            ("a goodbye of one byte", 1002, [frame(CLOSE, b"\3")]),
            ("a goodbye with a wrong reason", 1007, [frame(CLOSE, b"\3\xe8\xff")])):
        with Socket(g.port) as s:
            s.send(b"".join(pieces))
            check(s.status() == status, name)
    for status in (*range(1000, 1016), 2999, 3000, 4999, 5000, 0, 999):
        good = status in (1000, 1001, 1002, 1003, *range(1007, 1015), 3000, 4999)
        with Socket(g.port) as s:
            s.say(CLOSE, struct.pack(">H", status) + b"because")
            got = s.status()
            check(got == (status if good else 1002), "goodbye %d: %s" % (status, got))
    with Socket(g.port) as s:
        s.say(CLOSE)
        check(s.status() is None, "an empty goodbye")


def sample(n):
    return json.dumps([{"sequence": n, "data": [float(n), 0.5]}]).encode()


def messages(g, path):
    """In every two pieces, with a ping between, and with wrong ones between good ones."""
    def rows():
        with open(path) as f:
            return [line.split(",") for line in f.read().splitlines(True)
                    if not line.startswith("#") and line.endswith("\n")]

    with Socket(g.port) as s:
        count = len(sample(10))
        for cut in range(count + 1):
            data = sample(10 + cut)
            s.send(frame(TEXT, data[:cut], fin=False) + frame(PING, b"%d" % cut) +
                   frame(CONTINUATION, data[cut:]))
            check(s.until(PONG) == b"%d" % cut, "a pong")
        for wrong in (b"", b"[", b"{}x", b"[{\"data\": 1}]"):
            s.say(TEXT, wrong)
        # As binary, too, and byte by byte.
        for byte in frame(BINARY, sample(99)):
            s.send(bytes([byte]))
        until(lambda: len(rows()) == count + 2, "%d samples" % (count + 2))
    check([float(r[-2]) for r in rows()] == [*range(10, 11 + count), 99], "their values")
    check("sends what is no sample of the format json" in g.said(), "the log names it")


def figures(g):
    """In the status of the node and for Prometheus; a reset leaves what is there now."""
    def now():
        return g.ask("/api/v2/node/live").json()["stats"]["figures"]

    until(lambda: now()["clients"] == 0, "all clients have gone")
    wrong = now()["malformed"]
    check(wrong >= 14, "what was wrong is counted: %s" % now())
    text = g.ask("/metrics").body.decode()
    check('busbar_node_websocket_malformed_total{node="live",type="websocket"} %d\n' % wrong in text, text)
    check("# TYPE busbar_node_websocket_clients gauge" in text, "a gauge")
    check("busbar_node_infiniband" not in text, "only node-types that are in use")
    with Socket(g.port) as s:
        until(lambda: now()["clients"] == 1, "a client")
        check(g.ask("/api/v2/node/live/stats/reset", "POST").status == 200, "reset")
        check(now()["clients"] == 1 and now()["malformed"] == 0, "a reset: %s" % now())
        s.send(frame(TEXT, b"x", reserved=4))
        until(lambda: now()["malformed"] == 1, "and on it goes")


def overrun(g):
    """What found no room while nobody read is counted when the node is stopped, too."""
    def now():
        return g.ask("/api/v2/node/late").json()["stats"]["figures"]["overrun"]

    check(g.ask("/api/v2/node/late/pause", "POST").status == 200, "pause")
    with Socket(g.port, "/late.json", None) as s:
        for n in range(30):
            s.say(TEXT, sample(n))
        s.say(PING, b"all")
        check(s.frame()[:2] == (PONG, b"all"), "all were taken")
        check(g.ask("/api/v2/node/late/stop", "POST").status == 200, "stop")
    # Some wait in the queue, and one batch with the path that is paused.
    check(10 <= now() < 30, "samples that found no room: %d" % now())


def end(g):
    with Socket(g.port) as s:
        check(g.ask("/api/v2/node/live/stop", "POST").status == 200, "stop")
        check(s.status() == 1001, "the node goes away")
        check(g.ask("/api/v2/node/live").json()["stats"]["figures"]["clients"] == 0, "and all clients with it")
        refused(g.port, 404, None)
        check(g.ask("/api/v2/node/live/start", "POST").status == 200, "start")
    check(answers(g), "it is there again")
    with Socket(g.port) as s:
        g.process.terminate()
        check(s.status() == 1001, "the gateway goes away")


def main():
    with tempfile.TemporaryDirectory(prefix="busbar-ws-") as folder:
        path = os.path.join(folder, "out.csv")
        with Gateway(folder, CONFIG % path) as g:
            handshakes(g)
            wrong_frames(g)
            messages(g, path)
            figures(g)
            overrun(g)
            end(g)


sys.exit(main())
