#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Clients that misbehave hold little, are shut out in time, and do not disturb others.

Environment: BUSBAR, the program. Exit status 0: good, 1: not.
"""
import os
import random
import resource
import select
import socket
import struct
import tempfile
import time

from http_gateway import Client, Gateway, check, until

HTTP = """http = { max_connections = %d; max_body = 65536; header_timeout = 1; idle_timeout = 2;
write_timeout = 1; };"""
GET = b"GET /api/v2/status HTTP/1.1\r\nHost: localhost\r\n\r\n"


def others_are_served(g, what):
    start = time.monotonic()
    check(g.ask("/api/v2/status").status == 200, "served beside " + what)
    check(time.monotonic() - start < 10, "soon, beside " + what)


def raw(g, data, status=None):
    """What is answered to these bytes; None: nothing."""
    with g.client() as c:
        try:
            c.send(data)
            a = c.answer()
        except ConnectionError:
            a = None
        if status:
            check(a and a.status == status, "%r: %s" % (data[:60], a and (a.status, a.body)))
            check(a.headers["connection"] == "close" and c.is_closed(), "and closed")


def malformed(g):
    for data, status in (
            (b"GET / HTTP/1.1\r\n\r\n", 400),
            (b"GET / HTTP/3.0\r\nHost: x\r\n\r\n", 505),
            (b"\x16\x03\x01\x02\x00\x01\x00\r\n\r\n", 400),
            (b"GET /\xff\xfe HTTP/1.1\r\nHost: localhost\r\n\r\n", 400),
            (b"GET / HTTP/1.1\r\nHost: localhost\r\nX\x00: y\r\n\r\n", 400),
            (b"GET / HTTP/1.1\r\nHost: localhost\r\nHost: x\r\n\r\n", 400),
            (b"GET /" + b"x" * 1100 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n", 414),
            (b"GET /" + b"x" * 9000, 414),
            (b"GET / HTTP/1.1\r\nHost: localhost\r\nX: " + b"y" * 9000, 431),
            (b"POST /api/v2/reload HTTP/1.1\r\nHost: localhost\r\nContent-Length: 65537\r\n\r\n", 413),
            (b"POST /api/v2/reload HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n", 400),
            (b"POST /api/v2/reload HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2, 2\r\n\r\n{}", 400),
            (b"POST /api/v2/reload HTTP/1.1\r\nHost: localhost\r\nContent-Length:\r\nContent-Length: 2\r\n\r\n{}", 400),
            (b"POST /api/v2/reload HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n"
             b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 411),
            (b"POST /api/v2/reload HTTP/1.1\r\nHost: localhost\r\nExpect: magic\r\n\r\n", 417)):
        raw(g, data, status)
    for path in ("/../../../../etc/passwd", "/api/v2/../../etc/passwd", "/api/v2/%2e%2e/%2e%2e/etc/passwd",
                 "/api/v2/node/..%2f..%2fetc", "/api/v2//////", "/%00", "/api/v2/node/%ff%fe"):
        a = g.ask(path)
        check(a.status == 404 and b"root:" not in a.body, "%s: %d" % (path, a.status))
    # What was too much is read, so that the answer is not lost with the connection.
    with g.client() as c:
        c.send(b"POST /api/v2/reload HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3000000\r\n\r\n")
        try:
            c.send(b"x" * 3000000)
        except ConnectionError:
            pass
        check(c.answer().status == 413, "an answer in front of a long body")


def pipelined(g):
    with g.client() as c:
        c.send(GET * 50 + b"GET /api/v2/nothing HTTP/1.1\r\nHost: localhost\r\n\r\n" + GET)
        got = [c.answer().status for _ in range(52)]
        check(got == [200] * 50 + [404, 200], "in order: %s" % got)
        body = b'{"config": {}, "x": "' + b"y" * 5000 + b'"}'
        post = b"POST /api/v2/node/sig/resume HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n" \
               b"Content-Length: %d\r\n\r\n" % len(body) + body
        c.send((post + GET) * 20)
        check([c.answer().status for _ in range(40)] == [200] * 40, "bodies and requests behind them")
        for b in post[:200]:
            c.send(bytes([b]))
        c.send(post[200:])
        check(c.answer().status == 200, "byte by byte")


def slow(g):
    """A byte now and then does not keep a connection: the time is that of the whole."""
    with g.client() as header, g.client() as body, g.client() as silent:
        header.send(b"GET / HTTP/1.1\r\n")
        body.send(b"POST /api/v2/reload HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                  b"Content-Length: 60000\r\n\r\n{")
        start, open_ones = time.monotonic(), {header, body, silent}
        while open_ones and time.monotonic() - start < 8:
            ready = select.select([c.socket for c in open_ones], [], [], 0.1)[0]
            for c in list(open_ones):
                if c.socket in ready:
                    open_ones.remove(c)
                elif c is not silent:
                    c.send(b"X" if c is header else b" ")
        check(not open_ones, "slow clients are shut out")
        check(time.monotonic() - start > 0.8, "not at once")
        check(header.answer().status == 408 and body.answer().status == 408, "408")
        check(silent.answer() is None, "no word to who said none")


def attack(g):
    """Hundreds that send their headers and bodies byte by byte: others are served all the time."""
    post = b"POST /api/v2/reload HTTP/1.1\r\nHost: localhost\r\nContent-Length: 60000\r\n\r\n"
    clients = [socket.create_connection(("127.0.0.1", g.port)) for _ in range(800)]
    for i, s in enumerate(clients):
        s.setblocking(False)
        s.send(post if i % 2 else b"GET / HTTP/1.1\r\nX: ")
    start, left = time.monotonic(), list(clients)
    while left:
        check(time.monotonic() - start < 15, "%d are shut out" % len(left))
        others_are_served(g, "slow headers and bodies")
        for s in list(left):
            try:
                s.send(b"y")
                if s.recv(4096) == b"":
                    left.remove(s)
            except BlockingIOError:
                pass
            except ConnectionError:
                left.remove(s)
    for s in clients:
        s.close()


def half_open(g):
    with g.client() as c:
        c.send(GET)
        c.socket.shutdown(socket.SHUT_WR)
        check(c.answer().status == 200, "who has said all is answered")
    for _ in range(50):  # gone in the middle, with a reset
        c = g.client()
        c.send(GET * 3)
        c.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        c.close()
    others_are_served(g, "resets")


def deaf(g):
    """Asks and never reads: what it is not sent is not made, and it is shut out."""
    before = g.resident_kb()
    clients = []
    for _ in range(20):
        s = socket.socket()
        s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        s.connect(("127.0.0.1", g.port))
        s.setblocking(False)
        clients.append(s)
    request = b"GET /api/v2/openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n"
    end = time.monotonic() + 0.5
    while time.monotonic() < end:
        for s in clients:
            try:
                s.send(request * 100)
            except OSError:
                pass
        others_are_served(g, "clients that do not read")
    grown = g.resident_kb() - before
    check(g.is_sanitized() or grown < 30000, "memory grows by %d KiB" % grown)
    end = time.monotonic() + 40
    left = list(clients)
    while left:  # the server resets what is left unread
        check(time.monotonic() < end, "clients that do not read are shut out")
        poll = select.poll()
        for s in left:
            poll.register(s, 0)
        gone = {fd for fd, e in poll.poll(200) if e & (select.POLLHUP | select.POLLERR)}
        left = [s for s in left if s.fileno() not in gone]
    for s in clients:
        s.close()


def many(g, count):
    """More than the limit: those that are idle for longest leave."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, max(soft, 4096)), hard))
    before = g.resident_kb()
    clients = []
    for i in range(count):
        clients.append(socket.create_connection(("127.0.0.1", g.port)))
        if i % 3 == 0:
            clients[-1].send(b"GET /api/v2/sta")
    others_are_served(g, "%d idle connections" % count)
    grown = g.resident_kb() - before
    check(g.is_sanitized() or grown < 40000, "%d connections take %d KiB" % (count, grown))
    until(lambda: len(os.listdir("/proc/%d/fd" % g.process.pid)) < 1100, "no more than are allowed")
    for s in clients:
        s.close()
    others_are_served(g, "connections that close")


def noise(g):
    r = random.Random(5)
    words = [b"GET ", b"POST ", b"/api/v2/", b"node/sig", b"/pause", b" HTTP/1.1", b"\r\n", b"\r\n\r\n",
             b"Host: localhost", b"Content-Length: ", b"5", b": ", b"\0", b"\xff", b"Connection: close",
             b"{}", b"Transfer-Encoding: chunked", b"%2", b"?a=b", b"\n"]
    for _ in range(200):
        raw_text = b"".join(r.choice(words) for _ in range(r.randrange(1, 25)))
        with g.client() as c:
            try:
                c.send(raw_text)
                c.socket.shutdown(socket.SHUT_WR)
                while c.answer():
                    pass
            except ConnectionError:
                pass
    others_are_served(g, "noise")


with tempfile.TemporaryDirectory() as folder:
    with Gateway(folder, http=HTTP % 1000) as gateway:
        malformed(gateway)
        pipelined(gateway)
        half_open(gateway)
        noise(gateway)
        slow(gateway)
        attack(gateway)
        deaf(gateway)
        many(gateway, 1200)
