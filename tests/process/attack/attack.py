# SPDX-License-Identifier: BSD-2-Clause
"""A gateway that is attacked while it forwards 10,000 samples a second, and what it has to keep:
it lives, a small client is answered, no sample is lost but for steps that its generator
left out, and samples come in time.

Environment: BUSBAR, the program.
"""
import os
import re
import resource
import socket
import struct
import subprocess
import time

from http_gateway import BUSBAR, Client, Gateway, check, until

# Queues that hold what comes while a thread gets no processor for seconds.
FAST = """
	fast = { type = "signal"; rate = 10000; values = 2; };
	kept = { type = "loopback"; queuelen = 65536; };
"""
CONFIG = """
nodes = { %s %s };
paths = ( { in = "fast"; out = "kept"; queuelen = 65536; }, { in = "kept"; queuelen = 65536; } %s );
stats = 0.0; hugepages = 0; idle_stop = false;
"""
NOBODY = 65534
GET = b"GET /api/v2/status HTTP/1.1\r\nHost: localhost\r\n\r\n"


class Attacked(Gateway):
    def __init__(self, folder, nodes="", paths="", **named):
        super().__init__(folder, CONFIG % (FAST, nodes, paths), **named)

    def small_client(self, what, seconds=10):
        start = time.monotonic()
        check(self.ask("/api/v2/status").status == 200, "a small client is answered beside " + what)
        check(time.monotonic() - start < seconds, "soon, beside " + what)

    def at_rest(self):
        """Before the attack."""
        until(lambda: self.times()["kept ->"][-1][1] >= 1000, "samples come through")
        self.rest = self.times()

    def stats_of(self, name):
        return self.ctl("node", name)["stats"]

    def times(self):
        """How many steps of the generator, and samples at the end of the paths, were so many seconds late at most."""
        text = subprocess.run([BUSBAR, "ctl", self.control, "GET", "/metrics"], check=True, capture_output=True,
                              text=True, timeout=60).stdout
        late = {"fast": [], "kept ->": []}
        for name, limit, count in re.findall(r'_seconds_bucket\{(?:node|path)="([^"]*)".*le="([^"]*)"\} (\d+)', text):
            if name in late:
                late[name].append((float(limit), int(count)))
        return late

    def comes_in_time(self):
        """As at rest, half of all are late by much less than a period of 1 kHz. The others tell how busy the machine is."""
        for name, buckets in self.times().items():
            attacked = [(limit, count - before) for (limit, count), (_, before) in zip(buckets, self.rest[name])]
            for when, late in ("at rest", self.rest[name]), ("attacked", attacked):
                print("%s, %s: p50 up to %g s, p99 up to %g s" % (name, when, *(
                    next(limit for limit, count in late if count >= part * late[-1][1]) for part in (0.5, 0.99))))
            in_time = next(count for limit, count in attacked if limit >= 0.0005)
            check(in_time >= attacked[-1][1] / 2, "%s: in time are %d of %d" % (name, in_time, attacked[-1][1]))

    def nothing_is_lost(self):
        """The numbers of samples have no other gaps than the generator's."""
        before = self.stats_of("fast")["received"]
        until(lambda: self.stats_of("kept")["received"] >= before + 100, "samples come through")
        kept = self.stats_of("kept")  # first: what is left out meanwhile may be there twice
        missed = self.stats_of("fast")["missed"]
        check(kept["lost"] <= missed, "%d are lost, the generator left out %d" % (kept["lost"], missed))
        check(not kept["not_sent"] and not kept["not_stored"], "not stored: %s" % kept)
        for path in self.ctl("paths"):
            check(not path["stats"]["queue_full"] and not path["stats"]["starved"], path["stats"])
        if not self.is_sanitized():
            self.comes_in_time()


def allow_descriptors(count):
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < count:
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, count), hard))
    return min(hard, max(soft, count))


# Of this process alone, so that nobody else has a port of it.
OWN = "127.%d.%d.%d" % (1 + (os.getpid() >> 16) % 250, os.getpid() >> 8 & 255, 1 + os.getpid() % 254)


def connect(port, source=0, receive_bytes=None, address="127.0.0.1"):
    v6 = ":" in address
    s = socket.socket(socket.AF_INET6 if v6 else socket.AF_INET)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if receive_bytes:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
    s.bind(("::1" if v6 else OWN, source))
    s.settimeout(20)
    s.connect((address, port))
    return s


def reset(s):
    s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    s.close()


class As:
    """Sockets made meanwhile are of another user's."""

    def __init__(self, uid):
        self.uid = uid

    def __enter__(self):
        os.seteuid(self.uid)

    def __exit__(self, *_):
        os.seteuid(0)
