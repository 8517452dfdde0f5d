#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""A reload gives `affinity` and `priority` to the threads that stay and to new ones, but
not to those that have their own, nor to the one that serves the control socket; the
report says to how many, and what was refused.

Environment: BUSBAR. Exit status 0: good, 1: not, 77: skipped, there is one CPU only.
"""
import os
import sys
import tempfile

from gateway_process import Gateway, Gateways, check

CPUS = sorted(os.sched_getaffinity(0))
CONFIG = """
stats = 10.0; affinity = %d; priority = %d;
nodes = {
	sig = { type = "signal"; rate = 100; };
	own = { type = "signal"; rate = 100; affinity = %d; };
	end = { type = "loopback"; };
	kept = { type = "file"; uri = "/dev/null"; };
	%s
};
paths = ( { in = "sig"; out = "end"; }, { in = "end"; }, { in = "own"; out = "kept"; }
	%s );
"""
# Behind COMMON, which stands in front of it and has no statistics.
NEW = ('new = { type = "signal"; rate = 100; };', ', { in = "new"; }')


def write(g, cpu, priority, new):
    nodes, paths = NEW if new else ("", "")
    text = CONFIG % (1 << cpu, priority, 1 << CPUS[0], nodes, paths)
    with open(g.config, "w") as f:
        f.write('hugepages = 0; control = "%s";' % g.control + text)


def threads(g):
    """By name: (set of CPUs, priority of real time)."""
    folder = "/proc/%d/task" % g.process.pid
    found = {}
    for tid in os.listdir(folder):
        with open(os.path.join(folder, tid, "comm")) as f:
            name = f.read().strip()
        priority = os.sched_getparam(int(tid)).sched_priority
        found[name if int(tid) != g.process.pid else "main"] = (
            os.sched_getaffinity(int(tid)), priority)
    return found


def expect(g, names, cpu, priority, when):
    now = threads(g)
    for name in names:
        check(name in now, "no thread %s among %s" % (name, sorted(now)))
        check(now[name] == ({cpu}, priority), "%s %s has %s, expected CPU %d and %d" %
              (when, name, now[name], cpu, priority))


def main():
    if len(CPUS) < 2:
        return 77
    first, second = CPUS[0], CPUS[1]
    with tempfile.TemporaryDirectory() as folder, Gateways() as gateways:
        gateways.append(Gateway(folder, "threads", CONFIG.replace("stats = 10.0;", "") %
                                (1 << first, 0, 1 << first, "", "")))
        g = gateways[0]
        g.wait_for_more(g.arrived(2), 2)
        write(g, second, 0, False)
        report = g.ask("/reload", "POST")
        check(not report["started"], "all is kept: %s" % report)
        check(any(t.startswith("affinity 0x%x: " % (1 << second)) and "threads" in t
                  for t in report["applied"]), "the report says so: %s" % report)
        expect(g, ["main", "sig -> end", "end ->", "file-writer", "stats"], second, 0,
               "after a reload")
        expect(g, ["own -> kept", "control"], first, 0, "as before")
        write(g, second, 3, True)
        report = g.ask("/reload", "POST")
        refused = [t for t in report.get("refused", []) if t.startswith("priority 3")]
        if refused:
            check("Operation not permitted" in refused[0], "why it is: %s" % refused)
        else:
            check(any(t.startswith("priority 3: ") for t in report["applied"]),
                  "the report says so: %s" % report)
            expect(g, ["main", "sig -> end", "end ->", "stats", "new ->"], second, 3,
                   "in real time")
            expect(g, ["own -> kept"], first, 3, "in real time")
            expect(g, ["file-writer"], second, 0, "as before")
            expect(g, ["control"], first, 0, "as before")
        write(g, first, 0, True)
        report = g.ask("/reload", "POST")
        expect(g, ["main", "sig -> end", "end ->", "stats", "new ->"], first, 0,
               "taken back")
        g.end()
    return 0


sys.exit(main())
