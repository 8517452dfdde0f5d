#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""busbar fabric simulate on large subnets: all to all of 648 hosts takes less than a minute and a GiB, a hop costs
not much more than with 36 hosts, and a million messages pass a ring by lash without a deadlock."""

import json
import os
import resource
import subprocess
import sys
import tempfile

BUSBAR = os.environ["BUSBAR"]


def check(good, text):
    if not good:
        sys.exit("failed: " + text)


def simulate(folder, text):
    """The result, and the seconds of processor time."""
    path = os.path.join(folder, "x.scenario")
    with open(path, "w") as f:
        f.write(text)
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run([BUSBAR, "fabric", "simulate", "--json", "--quiet", path], capture_output=True, text=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    check(done.returncode == 0, done.stderr)
    return json.loads(done.stdout), after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main():
    with tempfile.TemporaryDirectory() as folder:
        cost = {}
        # About as many packet-hops each.
        for leaves, messages in ((2, 330), (8, 20), (36, 1)):
            hosts = leaves * 18
            result, seconds = simulate(folder, f"topology fat-tree:{leaves}x18\nmtu 4096\n"
                                               f"traffic all all-to-all messages={messages} message=4KiB\n"
                                               "expect lost = 0\nexpect reordered = 0\n")
            check(result["delivered"] == hosts * (hosts - 1) * messages, f"{hosts} hosts: {result['delivered']}")
            cost[hosts] = seconds / result["hops"]
            print(f"{hosts} hosts: {seconds:.2f} s of processor time, {result['hops'] / seconds / 1e6:.2f} million hops/s")
            check(seconds < 60, f"{hosts} hosts take {seconds:.1f} s")
        check(cost[648] < 5 * cost[36], f"a hop costs {cost[648] / cost[36]:.1f} times as much")
        kib = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
        print(f"memory: {kib / 1024:.0f} MiB")
        check(kib < 1 << 20, f"{kib} KiB of memory")
        result, seconds = simulate(folder, "topology ring:8,delay=10ns\nrouting lash\nlanes 2\nbuffer 16KiB\nmtu 2048\n"
                                           "traffic round shift by=3 message=2KiB messages=125000\n"
                                           "expect deadlocks = 0\nexpect lost = 0\n")
        check(result["traffic"][0]["messages"] == 1000000, "a million messages")
        print(f"a million messages by lash: {seconds:.2f} s")


main()
