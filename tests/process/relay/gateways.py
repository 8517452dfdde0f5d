#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Two gateways that cannot reach each other exchange samples through a relay, in both
directions, also after the relay was gone.

Environment: BUSBAR, the program. Exit status 0: good, 1: not, 77: no node-type websocket.
"""
import os
import re
import signal
import subprocess
import sys
import tempfile

from relay_peers import BUSBAR, Relay, check, until

COUNT = 500
CONFIG = """
hugepages = 0; stats = 0.0;
nodes = {
	source = { type = "signal"; signal = "counter"; rate = %(rate)d; values = 2; };
	relay = { type = "websocket"; destinations = [ "ws://127.0.0.1:%(port)d/plant.%(format)s" ];
		wait_connected = true; reconnect_interval = 50; in = { queuelen = 16384; signals = { count = 2; type = "float"; }; }; };
	sent = { type = "file"; uri = "%(folder)s/%(name)s-sent.csv"; format = "csv"; out = { flush = true; }; };
	result = { type = "file"; uri = "%(folder)s/%(name)s.csv"; format = "csv"; out = { flush = true; }; };
};
paths = ( { in = "source"; out = [ "relay", "sent" ]; }, { in = "relay"; out = "result"; } );
"""


class Gateway:
    def __init__(self, folder, name, port, form):
        self.files = [os.path.join(folder, name + end) for end in (".csv", "-sent.csv")]
        config = os.path.join(folder, name + ".conf")
        with open(config, "w") as f:
            f.write(CONFIG % {
                "rate": 1000, "port": port, "format": form, "folder": folder, "name": name})
        self.log = open(os.path.join(folder, name + ".log"), "w+")
        self.process = subprocess.Popen([BUSBAR, "run", "-q", "--summary=none", config], stderr=self.log,
                                        stdout=subprocess.DEVNULL)

    def values(self, which=0):
        """What has come, or what was sent (1): of each line that is complete, the counter."""
        try:
            with open(self.files[which]) as f:
                lines = f.read().split("\n")[:-1]
        except FileNotFoundError:
            return []
        return [float(line.split(",")[-1]) for line in lines if line[:1].isdigit()]

    def end(self):
        self.process.send_signal(signal.SIGINT)
        status = self.process.wait(30)
        self.log.seek(0)
        check(status == 0, "ends with %d: %s" % (status, self.log.read()))
        self.log.close()


def exchange(folder, form):
    with Relay() as r:
        gateways = [Gateway(folder, form + name, r.port, form) for name in "ab"]
        until(lambda: all(len(g.values()) >= COUNT for g in gateways), "samples in both directions: %s" % [
            len(g.values()) for g in gateways])
        for g, other in zip(gateways, gateways[::-1]):
            got = g.values()
            until(lambda o=other, last=got[-1]: last in o.values(1), "the file of what was sent")
            sent = other.values(1)
            first = sent.index(got[0])
            check(sent[first:first + len(got)] == got, "none is missing: %s %s" % (sent, got))
        s = r.session("/plant." + form)
        check(s["frames_lost"] == 0 and len(s["connections"]) == 2, "the session: %s" % s)
        port = r.port
        r.end()
    with Relay("--port=%d" % port):
        before = [len(g.values()) for g in gateways]
        until(lambda: all(len(g.values()) > n + COUNT for g, n in zip(gateways, before)), "they come back")
        for g in gateways:
            g.end()


schema = subprocess.run([BUSBAR, "schema"], capture_output=True, text=True, timeout=30, check=True).stdout
if not re.search(r'"websocket"', schema):
    print("no node-type websocket")
    sys.exit(77)
with tempfile.TemporaryDirectory() as place:
    for kind in ("villas.web", "json"):
        exchange(place, kind)
