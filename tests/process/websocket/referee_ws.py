#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""The package `ws` of node as a server of our destinations, and as a client of our endpoint.

Environment: BUSBAR, the program. Exit status 0: good, 1: not, 77: node or the package is not
there.
"""
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading

from http_gateway import Gateway, check, until

CONFIG = """
nodes = {
	sig = { type = "signal"; rate = 200.0; values = 2; signal = "counter"; };
	live = { type = "websocket"; max_message = 65536; in = { signals = "2f"; }; };
	back = { type = "websocket"; };
	up = { type = "websocket"; destinations = [ "ws://127.0.0.1:%d/far.json" ]; reconnect_interval = 50;
		in = { signals = "2f"; }; };
};
paths = ( { in = "sig"; out = "up"; }, { in = "live"; out = "back"; }, { in = "up"; } );
stats = 0.0; hugepages = 0;
"""
FOLDERS = ("/usr/share/nodejs", "/usr/lib/nodejs")


class Node:
    """The script; what it has said."""

    def __init__(self, folder):
        self.said = []
        script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "referee_ws.js")
        self.process = subprocess.Popen(["node", script, folder], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True)
        self.thread = threading.Thread(target=self.read)
        self.thread.start()

    def read(self):
        for line in self.process.stdout:
            self.said.append(json.loads(line))

    def do(self, word, g):
        self.process.stdin.write("%s %d\n" % (word, g.port))
        self.process.stdin.flush()

    def of(self, **what):
        return [o for o in list(self.said) if what.items() <= o.items()]

    def wait(self, count=1, **what):
        until(lambda: len(self.of(**what)) >= count or self.process.poll() is not None,
              "%d x %s of %s" % (count, what, self.said))
        check(len(self.of(**what)) >= count, "node has ended: %s" % self.said)
        return self.of(**what)

    def end(self):
        self.process.stdin.close()
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
        self.thread.join(20)


def as_server(g, node):
    for number in (1, 2, 3):
        opened, = node.wait(server="open", number=number)
        check((opened["url"], opened["protocol"], opened["extensions"]) == ("/far.json", "live", ""), opened)
        check(len(node.wait(server="samples", number=number)[0]["data"]) == 2, "values")
        check(node.wait(server="pong", number=number)[0]["data"] == "there?", "the pong has the ping's bytes")
    check(node.wait(server="close", number=1)[0]["code"] == 4001, "its own status comes back")
    check(node.wait(server="close", number=2)[0]["code"] == 1006, "no goodbye")
    until(lambda: g.ask("/api/v2/node/up").json()["stats"]["received"] >= 3, "what the server has sent")
    figures = g.ask("/api/v2/node/up").json()["stats"]["figures"]
    check(figures["destinations"] == 1 and figures["destinations_made"] == 3 and
          figures["destinations_lost"] == 2 and figures["malformed"] == 0, "figures: %s" % figures)
    check(not node.of(server="error"), "no errors: %s" % node.said)


def as_client(g, node):
    for count, (word, compress) in enumerate((("client", False), ("compress", True)), 1):
        node.do(word, g)
        got, = node.wait(client="values", compress=compress)
        check(sorted(got["values"]) == [1, 2, 3], "what it has sent: %s" % got)
        check(got["protocol"] == "live" and not got["extensions"], "compression is declined: %s" % got)
        check(node.wait(count, client="pong")[-1]["data"] == "hello", "a pong")
        check(node.wait(count, client="close")[-1]["code"] == 4321, "its own status")
    node.do("refusals", g)
    node.wait(client="refused", path="/live.none", status=404)
    node.wait(client="refused", path="/nobody", status=404)
    node.wait(client="refused", path="/live", status=400)
    check(node.wait(client="too long")[0]["code"] == 1009, "a message that is too long")
    check(not node.of(client="error"), "no errors: %s" % node.said)


def main():
    folder = next((f for f in FOLDERS if os.path.isdir(f + "/ws")), None)
    if not folder or not shutil.which("node"):
        print("skipped: node or its package ws is not installed")
        return 77
    node = Node(folder)
    try:
        port = node.wait(server="listening")[0]["port"]
        with tempfile.TemporaryDirectory(prefix="busbar-ws-") as place, Gateway(place, CONFIG % port) as g:
            as_server(g, node)
            as_client(g, node)
            g.end()
            check(node.wait(server="close", number=3)[0]["code"] == 1001, "the gateway says goodbye")
    finally:
        node.end()
    return 0


sys.exit(main())
