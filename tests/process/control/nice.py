#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""`nice` holds for all threads, from the start and after a reload, and where sessions
share the processors also for the session.

Environment: BUSBAR. Exit status 0: good, 1: not.
"""
import os
import tempfile

from gateway_process import Gateway, Gateways, check

CONFIG = """
nice = %d;
nodes = { sig = { type = "signal"; rate = 1000; }; end = { type = "loopback"; }; };
paths = ( { in = "sig"; out = "end"; }, { in = "end"; } );
"""


def threads(g):
    """Nice value of each thread: field 19 of its stat, behind a name in brackets."""
    folder = "/proc/%d/task" % g.process.pid
    values = []
    for thread in os.listdir(folder):
        with open(os.path.join(folder, thread, "stat")) as f:
            values.append(int(f.read().rsplit(")", 1)[1].split()[16]))
    return values


def main():
    with tempfile.TemporaryDirectory() as folder, Gateways() as gateways:
        gateways.append(Gateway(folder, "nice", CONFIG % 5))
        g = gateways[0]
        g.wait_for_more(g.arrived(1), 1)
        check(len(threads(g)) > 2 and set(threads(g)) == {5}, "nice is %s" % threads(g))
        g.write(CONFIG % 7)
        report = g.ask("/reload", "POST")
        check("node sig" in report["kept"], "all else is kept")
        check(set(threads(g)) == {7}, "after the reload nice is %s" % threads(g))
        # It does not lead the session of this test.
        grouped = os.path.exists("/proc/sys/kernel/sched_autogroup_enabled") and \
            open("/proc/sys/kernel/sched_autogroup_enabled").read().strip() == "1"
        check(("start the gateway with `setsid`" in g.end()) == grouped,
              "says when the session's share is not its own")


main()
