#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""opensm brings a running fabric up with each of its routing engines, and uses the engine that it uses over
ibsim, too. usage: engines.py LIBRARIES DESCRIBE [PAIRS]: so many pairs of an engine and a topology, which
TESTS_SEED selects; without a number all of them, and ibsim beside each."""
import os
import subprocess
import sys
import tempfile

from plugged import Client, packet, payload
from stock import At, Fabric, Ibsim, await_true, check, has_ibsim, need, number_of, some

ENGINES = ["minhop", "updn", "dnup", "ftree", "lash", "dfsssp", "dor"]
SMALL = ["ring:6", "mesh:4x4", "fat-tree:4x4", "fat-tree:4x3x3"]
LARGE = ["fat-tree:36x18", "fat-tree:12x9x6"]
# What opensm uses in place of an engine that cannot route a topology: ftree wants one rank of roots,
# and updn finds no roots where all switches have as many hosts near as far.
INSTEAD = {("updn", "ring:6"): "minhop", ("updn", "mesh:4x4"): "minhop",
           ("ftree", "ring:6"): "minhop", ("ftree", "mesh:4x4"): "minhop"}


def are_active(fabric):
    return all(p["state"] == "active" for n in fabric.show()["nodes"] for p in n["ports"] if p["peer"])


def packets_pass(fabric, name, count):
    """Between hosts that the seed selects; by the tables that opensm has written."""
    hosts = [n["name"] for n in fabric.show()["nodes"] if n["kind"] == "host"]
    for i in range(count):
        a, b = (hosts[number_of(f"{name} {i} {k}") % len(hosts)] for k in "ab")
        if a == b:
            continue
        first, second = Client(fabric, a), Client(fabric, b)
        check(first.open_qp(0x10) == 0 and second.open_qp(0x20) == 0, "queue pairs")
        first.packet(packet(first.lid, second.lid, 0x20, name.encode(), source=0x10))
        check(payload(second.await_packet())[:len(name)] == name.encode(), f"{name}: {a} reaches {b}")
        first.close()
        second.close()


def over_ibsim(describe, engine, topology):
    with tempfile.NamedTemporaryFile("w", suffix=".topo") as f:
        subprocess.run([describe, "generate", topology], stdout=f, check=True)
        with Ibsim(f.name) as place:
            place.start_manager("-R", engine)
            return place.engine()


def bring_up(engine, topology, libraries, describe):
    with Fabric(topology, sm="none") as fabric, At(fabric, "host-1", libraries) as place:
        place.start_manager("-R", engine)
        used = place.engine()
        expected = INSTEAD.get((engine, topology), engine)
        check(used == expected, f"opensm -R {engine} on {topology} routes by {expected}, not by {used}")
        await_true(lambda: are_active(fabric), f"all ports of {topology} are active")
        packets_pass(fabric, f"{engine} {topology}", 5)
    if describe and has_ibsim():
        other = over_ibsim(describe, engine, topology)
        check(other == used, f"over ibsim opensm -R {engine} on {topology} routes by {other}")


def main():
    need("opensm")
    libraries, describe = sys.argv[1:3]
    pairs = [(e, t) for e in ENGINES for t in SMALL + LARGE]
    if len(sys.argv) > 3:
        pairs, describe = some([p for p in pairs if p[1] in SMALL], int(sys.argv[3])), None
    for engine, topology in pairs:
        print(engine, topology, flush=True)
        bring_up(engine, topology, libraries, describe)


main()
