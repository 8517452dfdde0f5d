#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""More clients than there may be connections, which ask and do not read what they are answered:
others are answered all the time. Who attacks is another user without a right, somebody without a
token at the same address, or somebody with a token that may only look.

Environment: BUSBAR, the program. Exit status 0: good, 1: not.
"""
import os
import select
import socket
import tempfile
import time

from attack import NOBODY, As, Attacked, allow_descriptors, check, connect, until

LIMIT = 200
HTTP = "http = { max_connections = %d; header_timeout = 5; write_timeout = 30; %s };"
WATCH, CONFIGURE = (role + "-0123456789abcdef" for role in ("watch", "configure"))


class Flood:
    """Keeps `count` connections of clients that do not read; ended ones are made again."""

    def __init__(self, g, request, uid=None):
        self.g, self.request, self.uid, self.sockets = g, request, uid, []
        self.ended = 0

    def one(self):
        if self.uid is None:
            s = connect(self.g.port, receive_bytes=2048)
        else:
            with As(self.uid):
                s = connect(self.g.port, receive_bytes=2048)
        s.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 16384)
        s.setblocking(False)
        return s

    def fill(self, count):
        poll = select.poll()
        for s in self.sockets:
            poll.register(s, 0)
        gone = {fd for fd, _ in poll.poll(0)}
        for s in [s for s in self.sockets if s.fileno() in gone]:
            self.sockets.remove(s)
            s.close()
        self.ended += len(gone)
        while len(self.sockets) < count:
            self.sockets.append(self.one())
            self.ask(self.sockets[-1])
        for s in self.sockets:
            self.ask(s)

    def ask(self, s):
        try:
            for _ in range(20):
                s.send(self.request)
        except OSError:
            pass

    def close(self):
        for s in self.sockets:
            s.close()


def attacked(folder, name, request, keys="", uid=None, more=None):
    """`more`: headers of those who are to be answered."""
    with Attacked(folder, http=HTTP % (LIMIT, keys), name=name) as g:
        g.at_rest()
        with g.client() as steady:  # of the gateway's own, idle most of the time
            check(steady.ask("/api/v2/nodes", **(more or {})).status == 200, "before")
            flood = Flood(g, request, uid)
            end, rounds = time.monotonic() + 1, 0
            while time.monotonic() < end or rounds < 3:
                flood.fill(LIMIT + 60)
                start = time.monotonic()
                a = g.ask("/api/v2/status", **(more or {}))
                check(a.status == 200, "%s: a new client: %d %s" % (name, a.status, a.body))
                check(steady.ask("/api/v2/nodes", **(more or {})).status == 200, "%s: one that was there" % name)
                check(time.monotonic() - start < 10, "%s: soon" % name)
                rounds += 1
            check(flood.ended, "%s: some had to leave" % name)
            fds = len(os.listdir("/proc/%d/fd" % g.process.pid))
            check(fds < LIMIT + 100, "%s: no more than are allowed: %d" % (name, fds))
            flood.close()
        until(lambda: g.ask("/api/v2/status", **(more or {})).status == 200, "afterwards")
        g.nothing_is_lost()


with tempfile.TemporaryDirectory() as place:
    allow_descriptors(4096)
    everybody = b"OPTIONS * HTTP/1.1\r\nHost: localhost\r\n\r\n" * 200
    if not os.getuid():
        attacked(place, "another-user", everybody, uid=NOBODY)
    tokens = os.path.join(place, "tokens")
    with open(tokens, "w") as f:
        f.write("watch %s\nconfigure %s\n" % (WATCH, CONFIGURE))
    os.chmod(tokens, 0o600)
    keys = 'token_file = "%s";' % tokens
    bearer = {"Authorization": "Bearer " + CONFIGURE}
    attacked(place, "no-token", everybody, keys, more=bearer)
    attacked(place, "watcher", b"GET /api/v2/openapi.json HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\n\r\n"
             % WATCH.encode() * 20, keys, more=bearer)
