#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Who is asked: each request that openapi.json describes, from the gateway's user and from
another one, in each state in which its socket may be when the request is handled, at what serves
without tokens (HTTP, the control socket, a relay). Another user gets nothing, and who has gone
is nobody, whose connection it ever was.

Environment: BUSBAR, the program. Exit status 0: good, 1: not, 77: only root can be two users.
"""
import ctypes
import errno
import json
import os
import re
import signal
import socket
import struct
import sys
import tempfile

from attack import NOBODY, As, Attacked, check, connect, reset, until
from relay_peers import Relay

NODES = 'other = { type = "loopback"; }; record = { type = "file"; uri = "%s/record"; format = "csv"; };'
PATHS = ', { in = "record"; }, { in = "other"; }'
KEY = b"dGhlIHNhbXBsZSBub25jZQ=="
TAP = b"Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: " + KEY + b"\r\n"


class Stopped:
    """The process does nothing meanwhile, so that what clients do comes before it looks."""

    def __init__(self, program):
        self.pid = program.process.pid

    def __enter__(self):
        os.kill(self.pid, signal.SIGSTOP)
        until(lambda: "T (stopped)" in open("/proc/%d/status" % self.pid).read(), "it stops")

    def __exit__(self, *_):
        os.kill(self.pid, signal.SIGCONT)


def open_still(s, _):
    return s, s


def half_closed(s, _):
    s.shutdown(socket.SHUT_WR)
    return s, s


def closed(s, _):
    s.close()
    return None, None


def was_reset(s, _):
    reset(s)
    return None, None


def taken_over(s, port):
    """The gateway's user takes the port after it, and asks nothing."""
    own = s.getsockname()[1]
    reset(s)
    return None, connect(port, own)


STATES = (open_still, half_closed, closed, was_reset, taken_over)


def message(method, path, body=None, more=b""):
    data = b"" if body is None else json.dumps(body).encode()
    head = b"%s %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n" % (method.encode(), path.encode())
    if method == "POST":
        head += b"Content-Type: application/json\r\nContent-Length: %d\r\n" % len(data)
    return (head if not more else head.replace(b"Connection: close\r\n", b"")) + more + b"\r\n" + data


def answer(s):
    """The status; None: closed without one."""
    try:
        data = b""
        while b"\r\n" not in data:
            more = s.recv(4096)
            if not more:
                return None
            data += more
        return int(data.split(b" ")[1])
    except ConnectionError:
        return None


def ask_all(program, uid, state, early, requests, address="127.0.0.1"):
    """The statuses; None where the client is not there any more. With `early` the server has
    taken the connections before it stands still."""
    sockets = []
    for _ in requests if early else ():
        with As(uid):
            sockets.append(connect(program.port, address=address))
    for s in sockets:  # the answer to what everybody may ask
        s.sendall(b"OPTIONS * HTTP/1.1\r\nHost: localhost\r\n\r\n")
        check(b" 204 " in s.recv(4096), "OPTIONS")
    ends = []
    with Stopped(program):
        for i, request in enumerate(requests):
            with As(uid):
                s = sockets[i] if early else connect(program.port, address=address)
            s.sendall(request)
            ends.append(state(s, program.port))
    got = [answer(asker) if asker else None for asker, _ in ends]
    for _, last in ends:
        if last:
            last.close()
    return got


def described(g):
    """Each operation with names and bodies; those that start a program or end the gateway, too."""
    commands = ("start", "stop", "pause", "resume", "restart")
    document = g.ask("/api/v2/openapi.json").json()
    for path, item in document["paths"].items():
        for method in item:
            at = "/api/v2" + path.replace("{format}", "dot")
            for name in ("record" if "file" in path else "other", "1"):
                for command in commands if "{command}" in at else ("",):
                    if ("/path/" in at) == (name == "1") or "{id}" not in at:
                        yield method.upper(), at.replace("{id}", name).replace("{command}", command)


def picture(g):
    """What a request could have changed."""
    nodes, paths = g.ctl("nodes"), g.ctl("paths")
    status = g.ctl("status")
    return (status["time_started"], [(n["name"], n["state"]) for n in nodes], [p["state"] for p in paths],
            g.ask("/api/v2/config/text").json()["revision"])


def http(folder):
    marker = os.path.join(folder, "marker")
    evil = {"config": {"nodes": {"x": {"type": "exec", "exec": "touch " + marker}},
                       "paths": [{"in": "x"}], "hugepages": 0}}
    with open(os.path.join(folder, "record"), "w") as f:
        f.write("# seconds,nanoseconds,offset,sequence\n")
    with Attacked(folder, NODES % folder, PATHS) as g:
        g.at_rest()
        operations = sorted(set(described(g)))
        check(len(operations) > 30, "operations: %d" % len(operations))
        requests = [message(m, p, evil if m == "POST" and p.endswith(("restart", "reload")) and "/node/" not in p
                            and "/path/" not in p else {} if m == "POST" else None) for m, p in operations]
        requests.append(message("GET", "/tap/fast/in", more=TAP))
        harmless = [i for i, (m, p) in enumerate(operations) if m == "GET" and "/job/" not in p]
        for state in STATES:
            for early in (False, True):
                what = "%s, %s" % (state.__name__, "taken by the server before" if early else "not taken yet")
                before, sums = picture(g), g.ctl("node", "fast")["stats"]["received"]
                got = ask_all(g, NOBODY, state, early, requests)
                check(set(got) == ({403} if state in (open_still, half_closed) else {None}),
                      "another user, %s: %s" % (what, set(got)))
                g.small_client("another user")  # all before it was handled: one thread does that
                check(picture(g) == before and g.ctl("node", "fast")["stats"]["received"] >= sums,
                      "another user changes nothing, %s" % what)
                got = ask_all(g, 0, state, early, [requests[i] for i in harmless] + requests[-1:])
                good = state in (open_still, half_closed)
                check(all((a in (200, 101)) == good for a in got), "the gateway's user, %s: %s" % (what, got))
                if not good:  # a client that has gone has no role, not even as root
                    ask_all(g, 0, state, early, requests)
                    g.small_client("root")
                    check(picture(g) == before, "nobody changes nothing, %s" % what)
        check(not os.path.exists(marker), "no program was started")
        pipelined(g, message("POST", "/api/v2/restart", evil))
        check(not os.path.exists(marker), "no program was started")
        control(g)
        g.nothing_is_lost()


def pipelined(g, request):
    """Without a stop: a busy server, and clients that have gone before their turn."""
    before = picture(g)
    busy = [connect(g.port) for _ in range(60)]
    for s in busy:
        s.sendall(b"OPTIONS * HTTP/1.1\r\nHost: localhost\r\n\r\n" * 100)
    for i in range(200):
        with As(NOBODY):
            s = connect(g.port)
        s.sendall(request)
        closed(s, g.port) if i % 2 else was_reset(s, g.port)
    for s in busy:
        s.close()
    g.small_client("clients that have gone")
    check(picture(g) == before, "clients that have gone change nothing")


def control(g):
    """The control socket; its file is reached, whatever its mode."""
    os.chmod(g.control, 0o777)
    before = picture(g)
    for state in (open_still, half_closed, closed):
        for line in ('{"method": "GET", "path": "/nodes"}', '{"method": "POST", "path": "/node/other/pause"}',
                     '{"method": "POST", "path": "/shutdown"}'):
            with Stopped(g), As(NOBODY):
                s = socket.socket(socket.AF_UNIX)
                s.settimeout(20)
                s.connect(g.control)
                s.sendall(line.encode() + b"\n")
                asker = state(s, 0)[0]
            said = b""
            try:
                said = asker.recv(4096) if asker else b""
            except ConnectionError:
                pass
            check(not said or b'"status": 403' in said or b'"status":403' in said, "another user: %r" % said)
            if asker:
                asker.close()
    g.small_client("another user at the control socket")
    check(picture(g) == before, "another user changes nothing by the control socket")


def without_sock_diag():
    """For a child of this process: the socket of sock_diag(7) cannot be made."""
    numbers = {"x86_64": 41, "aarch64": 198}  # of socket()
    code = ((0x20, 0, 0, 0), (0x15, 0, 5, numbers[os.uname().machine]),  # the system call
            (0x20, 0, 0, 16), (0x15, 0, 3, socket.AF_NETLINK),
            (0x20, 0, 0, 32), (0x15, 0, 1, 4),  # NETLINK_SOCK_DIAG
            (0x06, 0, 0, 0x00050000 | errno.EAFNOSUPPORT), (0x06, 0, 0, 0x7fff0000))
    text = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *line) for line in code))
    program = ctypes.create_string_buffer(struct.pack("HxxxxxxQ", len(code), ctypes.addressof(text)))
    libc = ctypes.CDLL(None, use_errno=True)
    check(not libc.prctl(38, 1, 0, 0, 0) and not libc.prctl(22, 2, ctypes.byref(program)), "a filter")


def ways(folder, address, name, before=None):
    """The same by other ways: over IPv6, and from the tables of /proc."""
    try:
        g = Attacked(folder, name=name, listen="[%s]:0" % address if ":" in address else "127.0.0.1:0", before=before)
    except AssertionError as error:
        check(":" in address and "cannot listen" in str(error), error)
        print("without IPv6")
        return
    request = message("GET", "/api/v2/nodes")
    with g:
        for state in STATES[:-1]:
            for early in (False, True):
                for uid in (NOBODY, 0):
                    good = state in (open_still, half_closed)
                    got = ask_all(g, uid, state, early, [request] * 3, address)
                    check(set(got) == {None if not good else 403 if uid else 200},
                          "%s: user %d, %s, %s: %s" % (name, uid, state.__name__, early, got))


def relay():
    upgrade = message("GET", "/session", more=TAP)
    requests = [message("GET", "/"), message("GET", "/metrics"), upgrade]
    with Relay() as r:
        for state in STATES:
            for early in (False, True):
                got = ask_all(r, NOBODY, state, early, requests)
                good = state in (open_still, half_closed)
                check(set(got) == ({403} if good else {None}), "another user, %s: %s" % (state.__name__, got))
                check(r.state()["sessions"] == [], "another user joins nothing")
                accepted = r.state()["counters"]["sessions"]
                got = ask_all(r, 0, state, early, requests)
                check(all((a in (200, 101)) == good for a in got), "the relay's user, %s: %s" % (state.__name__, got))
                check(r.state()["counters"]["sessions"] == accepted + good, "who has gone joins nothing")
                until(lambda: r.state()["sessions"] == [], "the session ends")


if __name__ == "__main__":
    if os.getuid():
        print("only root can be two users")
        sys.exit(77)
    with tempfile.TemporaryDirectory() as parent:
        os.chmod(parent, 0o755)
        http(parent)
        ways(parent, "::1", "ipv6")
        ways(parent, "127.0.0.1", "tables", without_sock_diag)
        ways(parent, "::1", "tables6", without_sock_diag)
    relay()
