#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""opensm and infiniband-diags manage a running fabric through libibumad: LIDs, tables and active ports; a cable that is cut
and joined; counters that count packets of processes. usage: opensm.py LIBRARIES"""
import os
import shutil
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(__file__))
from plugged import Client, Fabric, PATIENCE_S, check, packet, payload


class Programs:
    def __init__(self, fabric, host, libraries, folder):
        self.env = {**os.environ, "BUSBAR_FABRIC": "%s/%s" % (fabric.name, host), "LD_LIBRARY_PATH": libraries,
                    "OSM_TMP_DIR": folder, "OSM_CACHE_DIR": folder}
        self.folder = folder

    def run(self, *words):
        return subprocess.run(words, env=self.env, capture_output=True, text=True, timeout=PATIENCE_S,
                              cwd=self.folder)

    def start(self, *words):
        return subprocess.Popen(words, env=self.env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                cwd=self.folder)


def await_ports(clients, active, what):
    end = time.monotonic() + PATIENCE_S
    for c in clients:
        while (c.state["state"] == 4 and c.lid != 0) != active:
            check(time.monotonic() < end, what)
            c.receive(0.1)


def passes(a, b, count):
    for i in range(count):
        a.packet(packet(a.lid, b.lid, 0x20, b"%04d" % i, source=0x10))
    for i in range(count):
        check(payload(b.await_packet()) == b"%04d" % i, "packets pass by the tables of opensm")


def counter(text, name):
    line = next(l for l in text.splitlines() if l.startswith(name + ":"))
    return int(line.rsplit(".", 1)[1])


def manage(fabric, programs):
    a, b = Client(fabric, "host-1"), Client(fabric, "host-8")
    check(a.open_qp(0x10) == 0 and b.open_qp(0x20) == 0, "queue pairs")
    check(a.state["state"] == 2, "without a manager a port is in the state INIT")
    manager = programs.start("opensm", "-f", os.path.join(programs.folder, "log"), "-s", "1")
    try:
        await_ports((a, b), True, "opensm makes the ports active")
        passes(a, b, 50)
        before = counter(programs.run("perfquery", "-x", str(b.lid), "1").stdout, "PortRcvPkts")
        passes(a, b, 50)
        after = counter(programs.run("perfquery", "-x", str(b.lid), "1").stdout, "PortRcvPkts")
        # Its own questions count, too.
        check(50 <= after - before < 60, "the counters count them: %d" % (after - before))
        route = programs.run("ibtracert", str(a.lid), str(b.lid))
        check(route.returncode == 0 and "spine-" in route.stdout, "ibtracert goes by a spine: " + route.stderr)
        check("SMINFO_MASTER" in programs.run("sminfo").stdout, "sminfo finds the master")
        found = programs.run("ibnetdiscover")
        check(sum(l.startswith("Ca\t") for l in found.stdout.splitlines()) == 8, "ibnetdiscover finds eight hosts")
        check("host-8" in programs.run("saquery", "NR").stdout, "saquery lists the nodes")
        check(fabric.command("cut", "host-8", "--name", fabric.name).returncode == 0, "a cable is cut")
        await_ports((b,), False, "the port is down")
        check(fabric.command("join", "host-8", "--name", fabric.name).returncode == 0, "it is joined")
        await_ports((b,), True, "opensm makes it active again, by the trap of the switch")
        passes(a, b, 50)
    finally:
        manager.terminate()
        manager.wait(PATIENCE_S)
    end = time.monotonic() + PATIENCE_S
    while a.state["mask"] & 2:
        check(time.monotonic() < end, "the port is no manager's any more")
        a.receive(0.1)


def main():
    for name in ("opensm", "perfquery"):
        if not shutil.which(name):
            print("skipped: %s is not installed" % name)
            sys.exit(77)
    with tempfile.TemporaryDirectory() as folder, Fabric("fat-tree:4x2", sm="none") as fabric:
        manage(fabric, Programs(fabric, "host-1", sys.argv[1], folder))


main()
