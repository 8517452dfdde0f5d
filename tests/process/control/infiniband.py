#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Infiniband nodes of a running gateway are stopped and started, and the paths
beside them replaced, with their device and registered memory kept; nothing leaks.

Environment: BUSBAR. Exit status 0: good, 1: not, 77: no adapter.
"""
import os
import subprocess
import sys
import tempfile

from gateway_process import BUSBAR, Gateway, Gateways, check, first_port

ROUNDS = int(os.environ.get("ROUNDS", "6"))
PATH = 1  # the one whose samples have come through the adapter
CONFIG = """
nodes = {
	sig = { type = "signal"; signal = "counter"; rate = 1000; values = 4; };
	from = { type = "infiniband"; rdma_transport_mode = "RC"; budget = "%(budget)s";
		in = { address = "127.0.0.1:%(a)d"; polling = "auto"; max_wrs = 64; cq_size = 64; };
		out = { address = "127.0.0.1:%(b)d"; max_wrs = 64; cq_size = 64; reconnect_interval = 20; }; };
	to = { type = "infiniband"; rdma_transport_mode = "RC";
		in = { address = "127.0.0.1:%(b)d"; polling = "event"; max_wrs = 64; cq_size = 64; }; };
};
paths = ( { in = "sig"; out = "from"; queuelen = %(queue)d; }, { in = "to"; queuelen = %(queue)d; } );
"""


def goes_on(g, what):
    g.wait_for_more(g.arrived(PATH), PATH, what)


def test(g, config):
    goes_on(g, "the start")
    before = None
    for i in range(ROUNDS):
        for node in ("from", "to"):
            g.ask("/node/%s/restart" % node, "POST")
            goes_on(g, "a restart of " + node)
            g.ask("/node/%s/pause" % node, "POST")
            g.ask("/node/%s/resume" % node, "POST")
            goes_on(g, "a pause of " + node)
            g.ask("/node/%s/stop" % node, "POST")
            g.ask("/node/%s/start" % node, "POST")
            goes_on(g, "a stop of " + node)
        # The pools are other ones, the nodes stay.
        g.write(config(300 + i))
        report = g.ask("/reload", "POST")
        check("node from" in report["kept"] and "node to" in report["kept"],
              "the nodes stay")
        check("path to ->" in report["started"], "the paths go")
        goes_on(g, "a reload")
        if i == 0:
            before = g.descriptors()
    made = [g.connected(n) for n in ("from", "to")]
    check(all(f["connections"] == 1 and f["connected"] >= 4 * ROUNDS for f in made),
          "counters go on behind a stop: %s" % made)
    text = g.ask("/metrics")["text"]
    for node, f in zip(("from", "to"), made):
        line = 'busbar_node_infiniband_connected_total{node="%s",type="infiniband"} %d\n' % (node, f["connected"])
        check(line in text, "also of a node with `budget`: %s" % line)
    g.ask("/node/from/stop", "POST")
    f = g.ask("/node/from")["stats"]["figures"]
    check(f["connections"] == 0 and f["connected"] >= made[0]["connected"], "none is left: %s" % f)
    check(g.descriptors() <= before + 2, "descriptors: %d, then %d" % (
        before, g.descriptors()))
    # 3: on a slow machine queues overflow while a node is away.
    check("not given back" not in g.end((0, 3)), "samples are given back")


def main():
    port = first_port()

    with tempfile.TemporaryDirectory() as folder, Gateways() as gateways:
        def config(queue):
            return CONFIG % {"a": port, "b": port + 1, "queue": queue, "budget": os.path.join(folder, "budget")}

        gateways.append(Gateway(folder, "ib", config(256)))
        test(gateways[0], config)


devices = subprocess.run([BUSBAR, "devices"], capture_output=True, text=True)
if "soft0" not in devices.stdout:
    print("no adapter soft0")
    sys.exit(77)
main()
