#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""A recorder that comes and goes while a gateway runs costs the others no sample.

Environment: BUSBAR, the program. Exit status 0: good, 1: not.
"""
import os
import re
import tempfile

from gateway_process import Gateway, Gateways, check

RATE = 10000
NODES = """
	sig = { type = "signal"; signal = "counter"; rate = %d; values = 2;
		catch_up = 100.0; };
	first = { type = "file"; uri = "%s"; };
"""
SECOND = 'second = { type = "file"; uri = "%s"; };'
MAIN = '{ in = "%s"; out = "first"; queuelen = 16384; queue_full = "block"; }'
RECORDER = '{ in = "%s"; out = "second"; queuelen = 16384; }'
# A source that keeps what nobody reads at the moment, and waits when that is too much.
LOOP = 'loop = { type = "loopback"; queuelen = 16384; full = "block"; };'
FEED = '{ in = "sig"; out = "loop"; queuelen = 16384; queue_full = "block"; }'


def numbers(path):
    """Sequence numbers of a file in the form villas.human."""
    with open(path) as f:
        return [int(n) for n in re.findall(r"^[^#\n]*?\((\d+)\)", f.read(), re.M)]


def config(folder, source, with_recorder, recorder_first):
    nodes = NODES % (RATE, os.path.join(folder, "first"))
    paths = [MAIN % source]
    if with_recorder:
        nodes += SECOND % os.path.join(folder, "second")
        paths.insert(0 if recorder_first else 1, RECORDER % source)
    if source == "loop":
        nodes += LOOP
        paths.append(FEED)
    return "nodes = {%s};\npaths = ( %s );\n" % (nodes, ", ".join(paths))


def path_stats(g, source):
    path = "/path/%s -> first/stats" % source
    return g.ask(path.replace(" ", "%20"))["stats"]["samples"]


def come_and_go(folder, source, recorder_first):
    with Gateways() as gateways:
        # Once with the recorder's path as the one that reads for both.
        gateways.append(Gateway(folder, "recorder",
                                config(folder, source, recorder_first,
                                       recorder_first)))
        g = gateways[0]
        before = 0
        for turn in range(20):
            g.write(config(folder, source, (turn % 2 == 0) != recorder_first,
                           recorder_first))
            report = g.ask("/reload", "POST")
            check({"node sig", "node first", "path %s -> first" % source} <=
                  set(report["kept"]),
                  "kept is %s" % report)
            check(not report["failed"], "failed is %s" % report)
            now = path_stats(g, source)
            check(now >= before, "the counter of the path goes on")
            while path_stats(g, source) < now + RATE // 200:
                pass
            before = now
        node = g.ask("/node/%s/stats" % source)["stats"]
        check(node.get("lost", 0) == 0, "no gap is counted in %s" % node)
        g.end()
        got = numbers(os.path.join(folder, "first"))
        check(len(got) > before, "%d samples are in the file" % len(got))
        check(got == list(range(len(got))),
              "a sequence number is missing or stands twice, first at %s" %
              next((i for i, n in enumerate(got) if n != i), None))
        if os.path.exists(os.path.join(folder, "second")):
            got = numbers(os.path.join(folder, "second"))
            check(got and all(a < b for a, b in zip(got, got[1:])),
                  "what is recorded is in order, and nothing twice")


def main():
    for source in ("sig", "loop"):
        for recorder_first in (False, True):
            with tempfile.TemporaryDirectory() as folder:
                come_and_go(folder, source, recorder_first)


main()
