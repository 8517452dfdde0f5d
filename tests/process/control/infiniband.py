#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Infiniband nodes of a running gateway are stopped and started, and the paths
beside them replaced, with their device and registered memory kept; nothing leaks.

Environment: BUSBAR. Exit status 0: good, 1: not, 77: no adapter.
"""
import json
import os
import socket
import subprocess
import sys
import tempfile
import time

BUSBAR = os.environ["BUSBAR"]
ROUNDS = int(os.environ.get("ROUNDS", "6"))
CONFIG = """
nodes = {
	sig = { type = "signal"; signal = "counter"; rate = 1000; values = 4; };
	from = { type = "infiniband"; rdma_transport_mode = "RC";
		in = { address = "127.0.0.1:%(a)d"; polling = "event"; max_wrs = 64; cq_size = 64; };
		out = { address = "127.0.0.1:%(b)d"; max_wrs = 64; cq_size = 64; reconnect_interval = 20; }; };
	to = { type = "infiniband"; rdma_transport_mode = "RC";
		in = { address = "127.0.0.1:%(b)d"; polling = "event"; max_wrs = 64; cq_size = 64; }; };
};
paths = ( { in = "sig"; out = "from"; queuelen = %(queue)d; }, { in = "to"; queuelen = %(queue)d; } );
stats = 0.0; hugepages = 0;
"""


def check(good, what):
    if not good:
        raise AssertionError(what)


class Gateway:
    def __init__(self, folder):
        self.port = 20000 + os.getpid() % 20000
        self.file = os.path.join(folder, "ib.conf")
        self.socket = os.path.join(folder, "control")
        self.write(256)
        self.process = subprocess.Popen(
            [BUSBAR, "run", "-q", "--summary=none", "--control=" + self.socket,
             self.file], stderr=open(os.path.join(folder, "log"), "w"))

    def write(self, queue):
        with open(self.file, "w") as f:
            f.write(CONFIG % {"a": self.port, "b": self.port + 20000, "queue": queue})

    def ask(self, path, method="GET"):
        with socket.socket(socket.AF_UNIX) as s:
            s.settimeout(40)
            s.connect(self.socket)
            s.sendall(json.dumps({"path": path, "method": method}).encode() + b"\n")
            answer = json.loads(s.makefile().readline())
        check(answer["status"] == 200, "%s: %s" % (path, answer))
        return answer["body"]

    def arrived(self):
        return self.ask("/path/1/stats")["stats"]["samples"]

    def goes_on(self, what):
        end = time.monotonic() + 40
        before = None
        while time.monotonic() < end:
            check(self.process.poll() is None, "the gateway lives after " + what)
            try:
                now = self.arrived()
                if before is not None and now > before:
                    return
                before = now
            except OSError:
                pass
            time.sleep(0.02)
        check(False, "samples arrive after " + what)

    def descriptors(self):
        return len(os.listdir("/proc/%d/fd" % self.process.pid))


def test(folder):
    g = Gateway(folder)
    try:
        g.goes_on("the start")
        before = None
        for i in range(ROUNDS):
            for node in ("from", "to"):
                g.ask("/node/%s/restart" % node, "POST")
                g.goes_on("a restart of " + node)
                g.ask("/node/%s/pause" % node, "POST")
                g.ask("/node/%s/resume" % node, "POST")
                g.goes_on("a pause of " + node)
                g.ask("/node/%s/stop" % node, "POST")
                g.ask("/node/%s/start" % node, "POST")
                g.goes_on("a stop of " + node)
            # The pools are other ones, the nodes stay.
            g.write(300 + i)
            report = g.ask("/reload", "POST")
            check("node from" in report["kept"] and "node to" in report["kept"],
                  "the nodes stay")
            check("path to ->" in report["started"], "the paths go")
            g.goes_on("a reload")
            if i == 0:
                before = g.descriptors()
        check(g.descriptors() <= before + 2, "descriptors: %d, then %d" % (
            before, g.descriptors()))
        g.process.terminate()
        check(g.process.wait(30) == 0, "ends with 0")
        with open(os.path.join(folder, "log")) as f:
            log = f.read()
        check("not given back" not in log, "samples are given back")
    except BaseException:
        g.process.kill()
        g.process.wait()
        with open(os.path.join(folder, "log")) as f:
            print(f.read()[-6000:])
        raise


devices = subprocess.run([BUSBAR, "devices"], capture_output=True, text=True)
if "soft0" not in devices.stdout:
    print("no adapter soft0")
    sys.exit(77)
try:
    with tempfile.TemporaryDirectory() as folder:
        test(folder)
except AssertionError as e:
    print("FAILED:", e)
    sys.exit(1)
