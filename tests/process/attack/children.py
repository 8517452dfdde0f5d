#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Random requests on connections that end in every way, while the gateway starts programs: a
child that has not become its program yet has the descriptors of all connections, too. The
search path of the gateway is so long that each child takes a while to find its program.

usage: children.py [SECONDS [SEED]]. Environment: BUSBAR, the program. Exit status 0: good, 1: not.
"""
import os
import random
import socket
import sys
import tempfile
import time

from attack import GET, Attacked, check, connect, reset

SECONDS = float(sys.argv[1]) if len(sys.argv) > 1 else 4
SEED = int(sys.argv[2]) if len(sys.argv) > 2 else random.randrange(1 << 32)
NODES = 'child = { type = "exec"; exec = "cat"; in = { signals = { count = 2; }; }; };'
PATHS = ', { in = "child"; }'
# Close to the limit of the kernel for one variable.
SLOW_PATH = ":".join("/nonexistent/%d" % i for i in range(6000)) + ":" + os.environ["PATH"]
STARTS = (b"POST /api/v2/node/child/restart", b"GET /api/v2/graph.svg", b"GET /api/v2/graph.png")
TAP = b"Host: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n" \
      b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
WORDS = (b"GET ", b"POST ", b"OPTIONS ", b"HEAD ", b"/api/v2/", b"/", b"nodes", b"stats", b"node/child", b"/tap/fast/in",
         b"graph.dot", b" HTTP/1.1", b"\r\n", b"\r\n\r\n", b"Host: localhost\r\n", b"Content-Length: 5\r\n",
         b"Content-Length: 70000\r\n", b"Content-Type: application/json\r\n", b"Connection: close\r\n", b"{}",
         b"Expect: 100-continue\r\n", b"Upgrade: websocket\r\n", b"\0", b"\xff", b"?a=%2", b"Prefer: respond-async\r\n")


def request(r):
    kind = r.randrange(6)
    if kind == 0:
        return r.choice(STARTS) + b" HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n"
    if kind == 1:
        return b"GET /tap/fast/in HTTP/1.1\r\n" + TAP + b"\r\n"
    if kind == 2:
        return GET * r.randrange(1, 30)
    if kind == 3:
        return b"OPTIONS * HTTP/1.1\r\nHost: localhost\r\n\r\n" * r.randrange(1, 60)
    if kind == 4:
        return GET[:r.randrange(len(GET))]
    return b"".join(r.choice(WORDS) for _ in range(r.randrange(1, 25)))


def some_end(r, sockets):
    """In any order, in any way; the rest goes on."""
    r.shuffle(sockets)
    for _ in range(r.randrange(len(sockets) + 1)):
        s = sockets.pop()
        how = r.randrange(4)
        try:
            if how == 0:
                s.close()
            elif how == 1:
                s.shutdown(socket.SHUT_WR)
                s.close()
            elif how == 2 and s.recv(1 << 16):
                sockets.append(s)
            else:
                reset(s)
        except BlockingIOError:
            sockets.append(s)
        except OSError:
            s.close()


def one_round(g, r, sockets):
    while len(sockets) < 120:
        s = connect(g.port)
        s.setblocking(False)
        sockets.append(s)
    for s in sockets:
        try:
            s.send(request(r))
        except OSError:
            pass
    some_end(r, sockets)


def held(g):
    """Connections that a child has when they end; those that come meanwhile are others."""
    for _ in range(3):
        with connect(g.port) as restart:
            restart.sendall(b"POST /api/v2/node/child/restart HTTP/1.1\r\nHost: localhost\r\n\r\n")
            while not has_answer(restart):
                sockets = [connect(g.port) for _ in range(20)]
                for s in sockets:
                    s.sendall(b"OPTIONS * HTTP/1.1\r\nHost: localhost\r\n\r\n")
                    check(b" 204 " in s.recv(4096), "each is answered while a child starts")
                for s in sockets:
                    reset(s)
                g.small_client("resets while a child starts")


def has_answer(s):
    try:
        return bool(s.recv(1, socket.MSG_DONTWAIT | socket.MSG_PEEK))
    except BlockingIOError:
        return False


print("seed %d" % SEED)
with tempfile.TemporaryDirectory() as folder:
    os.environ["PATH"] = SLOW_PATH
    with Attacked(folder, NODES, PATHS) as gateway:
        gateway.at_rest()
        held(gateway)
        chance, end, rest = random.Random(SEED), time.monotonic() + SECONDS, []
        while time.monotonic() < end:
            one_round(gateway, chance, rest)
            gateway.small_client("random requests and resets")
        for left in rest:
            left.close()
        check(gateway.process.poll() is None, "it lives")
        gateway.nothing_is_lost()
