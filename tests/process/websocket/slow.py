#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""200 clients, one that stops reading, one that does not answer, and idle ones.

Environment: BUSBAR, the program. Exit status 0: good, 1: not.
"""
import os
import re
import resource
import signal
import sys
import tempfile
import threading
import time

from http_gateway import Gateway, check, until
from ws_client import BINARY, PING, PONG, Socket

ROWS = 200
VALUES = 150
CLIENTS = 200
BACKLOG = 1 << 20
CONFIG = """
nodes = {
	replay = { type = "file"; uri = "%s"; format = "csv"; 
		in = { signals = "%df"; rate = 250.0; eof = "rewind"; sequence = "new"; }; };
	live = { type = "websocket"; ping_interval = 0.0; out = { backlog = %d; }; };
	sig = { type = "signal"; rate = 50.0; values = 2; signal = "counter"; };
	many = { type = "websocket"; ping_interval = 0.0; };
	quiet = { type = "websocket"; ping_interval = 0.2; ping_timeout = 1.5; };
	never = { type = "loopback"; };
};
paths = ( { in = "replay"; out = "live"; }, { in = "sig"; out = "many"; }, { in = "never"; out = "quiet"; } );
stats = 0.0; hugepages = 0;
"""


def numbers(data):
    """The first value of each sample of a frame in JSON: its row."""
    return [int(float(n)) for n in re.findall(rb'"data": ?\[([0-9.]+)', data)]


def gaps(rows):
    return sum((b - a) % ROWS != 1 for a, b in zip(rows, rows[1:]))


def many(g):
    clients = [Socket(g.port, "/many.json" if i % 2 else "/many.villas.web") for i in range(CLIENTS)]
    for i, s in enumerate(clients):
        rows = []
        while i % 2 and len(rows) < 5:
            rows += numbers(s.until(1))
        check(all(b > a for a, b in zip(rows, rows[1:])), "client %d gets all: %s" % (i, rows))
        if not i % 2:
            check(len(s.until(BINARY)) % (16 + 4 * 2) == 0, "client %d gets whole samples" % i)
    for s in clients:
        s.close()


def slow(g):
    """It loses samples, and another one does not."""
    with Socket(g.port, buffer=4096) as late, Socket(g.port) as soon:
        rows = []
        got, lost, done = [0], [], threading.Event()

        def read():
            while not done.is_set():
                data = soon.until(1)
                got[0] += len(data)
                rows.extend(numbers(data))
                lost.append(gaps(rows))
                del rows[:-1]

        reader = threading.Thread(target=read)
        reader.start()
        # The ring, what waits in the server, and what the kernel keeps.
        until(lambda: got[0] > 3 << 20 or not reader.is_alive(), "the quick one reads on", 60)
        mine, count = [], 0
        while not gaps(mine) and count < 8 << 20:
            data = late.until(1)
            count += len(data)
            mine += numbers(data)
            check(data.endswith(b"]") or data.endswith(b"]\n"), "whole frames")
        check(gaps(mine), "the slow one has lost some")
        done.set()
        reader.join(30)
        check(lost and not sum(lost), "the quick one has lost none, but %d times" % sum(lost))


def silent(g):
    with Socket(g.port, "/quiet") as s, Socket(g.port, "/quiet") as good:
        check(s.until(PING) == b"", "it is asked")
        for _ in range(8):  # nearly as long as one may say nothing
            good.say(PONG, good.until(PING))
        check(s.status() == 1008, "it is given up")
        good.say(PING, b"still")
        check(good.until(PONG) == b"still", "the other one stays")
    # One that does not even take what it is sent: no goodbye is waited for.
    with Socket(g.port, "/quiet"):
        until(lambda: g.said().count("says nothing, it is given up") >= 2, "given up")


def pause(g):
    """A gateway that stood still for longer than clients may be silent does not blame them."""
    with Socket(g.port, "/quiet") as s:
        s.say(PONG, s.until(PING))
        os.kill(g.process.pid, signal.SIGSTOP)
        time.sleep(2.5)  # longer than a client may say nothing
        os.kill(g.process.pid, signal.SIGCONT)
        for _ in range(2):
            s.say(PONG, s.until(PING))


def idle(g):
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)
    count = min(2000, limit[1] - 100)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(limit[0], count + 100), limit[1]))
    count = min(count, 900)
    Socket(g.port, "/quiet").close()
    before = g.resident_kb()
    clients = [Socket(g.port, "/quiet") for _ in range(count)]
    check(all(s.said.status == 101 for s in clients), "all are taken")
    grown = g.resident_kb() - before
    check(g.is_sanitized() or grown < 8 * count, "an idle client costs %.1f KiB" % (grown / count))
    for s in clients:
        s.close()


def main():
    with tempfile.TemporaryDirectory(prefix="busbar-ws-") as folder:
        path = os.path.join(folder, "rows.csv")
        with open(path, "w") as f:
            for i in range(ROWS):
                f.write("%d,%d,0.0,%d,%d.0%s\n" % (1700000000 + i, 0, i, i, ",0.1234567890123" * (VALUES - 1)))
        with Gateway(folder, CONFIG % (path, VALUES, BACKLOG), http="http = { max_connections = 1100; };") as g:
            many(g)
            slow(g)
            silent(g)
            pause(g)
            idle(g)


sys.exit(main())
