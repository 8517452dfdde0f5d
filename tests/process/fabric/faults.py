#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Links and switches fail in the middle of connections: a subnet manager finds other ways, and the data are right;
where there is no way, programs end with the documented error. usage: faults.py LIBRARIES [quick] [auto] [opensm]:
with the fabric's own manager, or opensm; quick: one cable."""
import sys
import time

from stock import At, Fabric, await_true, check, need, pair

HOSTS = ("host-1", "host-3")


def spine_ports(fabric):
    """{spine: packets sent}"""
    return {n["name"]: sum(p["sent_packets"] for p in n["ports"]) for n in fabric.show()["nodes"]
            if n["name"].startswith("spine")}


class Busy:
    """The spine that the packets of the running programs take."""

    def __init__(self, fabric, packets=2000):
        self.fabric, self.before, self.name, self.packets = fabric, spine_ports(fabric), None, packets

    def found(self):
        now = spine_ports(self.fabric)
        # Those of a sweep are fewer.
        self.name = next((s for s in now if now[s] > self.before[s] + self.packets), None)
        return self.name is not None


def act(fabric, verb, node):
    p = fabric.command(verb, node, "--name", fabric.name)
    check(p.returncode == 0, f"{verb} {node}: {p.stderr}")


def is_whole(fabric):
    return all(p["state"] == "active" for n in fabric.show()["nodes"] for p in n["ports"])


def routed_around(fabric, verb, port, program, packets=2000):
    """A cable of the busy spine, or all of them, in the middle of a program; then they are joined."""
    busy = Busy(fabric, packets)

    def fault(*programs):
        await_true(lambda: busy.found() or any(p.poll() is not None for p in programs), "packets take a spine")
        check(busy.name, f"{program} runs long enough for a fault")
        act(fabric, verb, busy.name + port)
        other = Busy(fabric, packets)
        await_true(lambda: other.found() or all(p.poll() is not None for p in programs),
                   f"{program} goes on by the other spine")
        check(other.found() and other.name != busy.name, f"{program} goes on by the other spine, not {other.name}")

    pair(fabric, *HOSTS, *program, "-d", "soft0", meanwhile=fault)
    act(fabric, "join", busy.name)
    await_true(lambda: is_whole(fabric), "what was joined is active again")


def no_way(fabric):
    """The host's only cable: retries are over."""
    def fault(first, second):
        busy = Busy(fabric)
        await_true(lambda: busy.found() or second.poll() is not None, "packets take a spine")
        act(fabric, "cut", "host-3")
        second.wait(60)
        first.kill()

    ends, said = pair(fabric, *HOSTS, "ibv_rc_pingpong", "-d", "soft0", "-n", "1000000", meanwhile=fault, status=None)
    check(ends[0] == 1 and "transport retry counter exceeded" in said[0], f"the client's retries are over: {said}")
    act(fabric, "join", "host-3")
    await_true(lambda: is_whole(fabric), "the host is active again")
    pair(fabric, *HOSTS, "ibv_rc_pingpong", "-d", "soft0", "-n", "100", "-c")


def try_all(fabric):
    routed_around(fabric, "cut", ":1", ["ibv_rc_pingpong", "-c", "-n", "20000"])
    routed_around(fabric, "fail", "", ["ib_write_bw", "-n", "20000", "-s", "16384"])
    no_way(fabric)


def quiet_end(fabric, place):
    """opensm logs each failed receive; its log must not fill the disk when the fabric ends before it."""
    fabric.command("stop", fabric.name)
    await_true(lambda: "recv error" in place.log(), "opensm is told that the fabric has ended")
    lines = place.log().count("\n")
    time.sleep(0.3)
    check(place.log().count("\n") < lines + 1000, "opensm does not write errors without a pause")


def main():
    need("opensm", "ibv_rc_pingpong", "ib_write_bw")
    if "quick" in sys.argv:
        with Fabric("fat-tree:2x2") as fabric:
            routed_around(fabric, "cut", ":1", ["ibv_rc_pingpong", "-c", "-e", "-n", "8000"], packets=150)
    if "auto" in sys.argv:
        with Fabric("fat-tree:2x2") as fabric:
            try_all(fabric)
    if "opensm" in sys.argv:
        with Fabric("fat-tree:2x2", sm="none") as fabric, At(fabric, "host-1", sys.argv[1]) as place:
            place.start_manager()
            await_true(lambda: is_whole(fabric), "opensm makes all ports active")
            try_all(fabric)
            quiet_end(fabric, place)


main()
