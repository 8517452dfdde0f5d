#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""connections.py AT_PORT: other people's programs at the ports of hosts: by LIDs that they exchange over TCP, and by the connection
manager, by the IPv4 addresses of hosts. Skipped without the programs."""
import os
import shutil
import subprocess
import sys
import time

from plugged import Fabric, check

PATIENCE_S = 60
BUSBAR = os.environ["BUSBAR"]


def start(fabric, host, *command):
    return subprocess.Popen([BUSBAR, "exec", "-q", "-F", fabric.name, "-P", host, "--", *command],
                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def run(fabric, host, *command):
    p = start(fabric, host, *command)
    output, _ = p.communicate(timeout=PATIENCE_S)
    return p.returncode, output


def pair(fabric, server, client):
    """The server at host-1, the client, which is repeated until the server listens, at host-4."""
    first = start(fabric, "host-1", *server)
    end = time.monotonic() + PATIENCE_S
    status, output = run(fabric, "host-4", *client)
    while status and first.poll() is None and time.monotonic() < end:
        time.sleep(0.1)
        status, output = run(fabric, "host-4", *client)
    check(status == 0, f"{client} succeeds: {output}")
    said, _ = first.communicate(timeout=PATIENCE_S)
    check(first.returncode == 0, f"{server} succeeds: {said}")
    return output


def received(fabric, host):
    return fabric.port(host)["received_packets"]


def by_lid(fabric):
    before = received(fabric, "host-1")
    for program in (["ibv_rc_pingpong"], ["ibv_uc_pingpong"], ["ibv_ud_pingpong", "-s", "1024"]):
        # A datagram that comes before its receive is lost, so few of them.
        command = [*program, "-d", "soft0", "-p", "18571", "-n", "100"]
        pair(fabric, command, [*command, "127.0.0.1"])
    check(received(fabric, "host-1") > before + 300, "the messages went through the fabric")


def by_connection_manager(fabric):
    output = pair(fabric, ["rping", "-s", "-C", "3", "-p", "7175"],
                  ["rping", "-c", "-a", "10.0.0.1", "-C", "3", "-v", "-p", "7175"])
    check(output.count("ping data") == 3, f"three pings came back: {output}")
    pair(fabric, ["udaddy"], ["udaddy", "-s", "10.0.0.1"])


def groups(fabric):
    """The LID of the group is subnet administration's; members are at hosts of both leaves."""
    member = start(fabric, "host-1", "mckey", "-m", "239.1.2.3", "-C", "2")
    end = time.monotonic() + PATIENCE_S
    while member.poll() is None and time.monotonic() < end:
        # What is sent before the member has joined gets lost.
        status, output = run(fabric, "host-4", "mckey", "-m", "239.1.2.3", "-s", "-C", "2")
        check(status == 0 and "joined dgid: ff12:4001:ffff" in output, f"the sender joins: {output}")
    said, _ = member.communicate(timeout=PATIENCE_S)
    check(member.returncode == 0, f"the member gets the messages: {said}")


def nobody_there(fabric):
    status, output = run(fabric, "host-4", "rping", "-c", "-a", "10.0.0.77", "-C", "1")
    check(status and "ADDR_ERROR" in output, f"an address of no host is an address error: {output}")
    # No process, and a process without that listener.
    status, output = run(fabric, "host-4", "rping", "-c", "-a", "10.0.0.2", "-C", "1")
    check(status and "REJECTED" in output, f"a host without listeners refuses: {output}")
    listener = start(fabric, "host-3", "rping", "-s", "-C", "1", "-p", "7177")
    status, output = run(fabric, "host-4", "rping", "-c", "-a", "10.0.0.3", "-C", "1", "-p", "7178")
    check(status and "REJECTED" in output, f"another service is refused: {output}")
    listener.kill()
    listener.communicate()


def the_trace_says_why(fabric):
    p = subprocess.run([BUSBAR, "exec", "-q", "--trace", "-F", fabric.name, "-P", "host-2", "--", sys.argv[1]],
                       input="vector 0 0\nvector 0xc001 0\nvector 1 1\n", capture_output=True, text=True,
                       timeout=PATIENCE_S)
    for why in ("ah_attr.dlid is 0: on InfiniBand", "ah_attr.dlid 0xc001 is a group's", "the port has LIDs for 0 to 0"):
        check(why in p.stderr, f"the trace says '{why}': {p.stderr}")


def main():
    needed = ["ibv_rc_pingpong", "rping", "udaddy", "mckey"]
    if not all(shutil.which(p) for p in needed):
        print("skipped:", *needed, "are not all installed")
        sys.exit(77)
    with Fabric("fat-tree:2x2") as fabric:
        by_lid(fabric)
        by_connection_manager(fabric)
        groups(fabric)
        nobody_there(fabric)
        the_trace_says_why(fabric)


main()
