#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The path that ibtracert prints is the one that the datagrams of a verbs program take, by the counters of the
switches' ports. usage: routes.py LIBRARIES AT_PORT SOURCES EACH [ENGINE]"""
import re
import subprocess
import sys

from stock import At, BUSBAR, Fabric, await_true, check, need, some


class Sender:
    def __init__(self, fabric, host, at_port):
        self.process = subprocess.Popen([BUSBAR, "exec", "-q", "-F", fabric.name, "-P", host, "--", at_port],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        check(self.process.stdout.readline() == "open\n", "the verbs program starts")

    def post(self, lid):
        self.process.stdin.write(f"post {lid}\n")
        self.process.stdin.flush()
        said = self.process.stdout.readline()
        check(said == "success\n", f"a datagram leaves: {said}")

    def end(self):
        self.process.communicate(timeout=30)


def sent(fabric):
    """{(node, port): packets}"""
    return {(n["name"], p["port"]): p["sent_packets"] for n in fabric.show()["nodes"] for p in n["ports"]}


def traced(place, start, destination):
    """The ports that a packet leaves by, as ibtracert prints them."""
    text = place.run("ibtracert", str(start), str(destination))
    at, ports = re.search(r'^From .*"(\S+)"$', text, re.M)[1], set()
    for out, name in re.findall(r'^\[(\d+)\] -> .*"(\S+)"$', text, re.M):
        ports.add((at, int(out)))
        at = name
    return ports


def taken(fabric, sender, lid, last):
    """The ports by which one datagram left. `last` is the port before the destination."""
    before = sent(fabric)
    sender.post(lid)
    await_true(lambda: sent(fabric)[last] > before[last], f"the datagram to LID {lid} arrives by {last}")
    after = sent(fabric)
    check(all(after[p] - before[p] in (0, 1) for p in after), "one datagram passes each port once")
    return {p for p in after if after[p] > before[p]}


def compare(fabric, place, at_port, sources, each):
    nodes = fabric.show()["nodes"]
    hosts = {n["name"]: n["ports"][0]["lid"] for n in nodes if n["kind"] == "host"}
    before = {n["name"]: (n["ports"][0]["peer"], n["ports"][0]["peer_port"]) for n in nodes if n["kind"] == "host"}
    for source in some(hosts, sources):
        sender = Sender(fabric, source, at_port)
        for destination in some([h for h in hosts if h != source], each):
            expected = traced(place, hosts[source], hosts[destination])
            ports = taken(fabric, sender, hosts[destination], before[destination])
            check(ports == expected, f"from {source} to {destination}: by {ports}, ibtracert says {expected}")
        sender.end()


def main():
    need("opensm", "ibtracert")
    libraries, at_port, sources, each = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    for engine in sys.argv[5:] or ["minhop"]:
        # -s 0: no sweeps, whose datagrams would count, too.
        with Fabric("fat-tree:4x3x5", sm="none") as fabric, At(fabric, "host-1", libraries) as place:
            place.start_manager("-s", "0", "-R", engine)
            await_true(lambda: all(p["state"] == "active" for n in fabric.show()["nodes"] for p in n["ports"]
                                   if p["peer"]), "opensm makes all ports active")
            compare(fabric, place, at_port, sources, each)


main()
