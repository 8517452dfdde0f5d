#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""perftest and the pingpongs of libibverbs between two hosts of a fabric, by LIDs. usage: perftest.py [NUMBER]: so many
programs, which TESTS_SEED selects; else all."""
import sys

from stock import Fabric, check, need, pair, some

# Datagrams, and messages of UC, that come before the server has posted its receives are lost; so few of them.
VERBS = [["ib_send", "-c", "RC"], ["ib_send", "-c", "UC"], ["ib_send", "-c", "UD"], ["ib_write", "-c", "RC"],
         ["ib_write", "-c", "UC"], ["ib_read"], ["ib_atomic", "-A", "FETCH_AND_ADD"],
         ["ib_atomic", "-A", "CMP_AND_SWAP"]]
PERFTEST = [[v[0] + way, *v[1:], *more] for v in VERBS for way, more in
            (("_bw", []), ("_lat", []), ("_bw", ["-b"]))]
PINGPONGS = [["ibv_rc_pingpong", "-c"], ["ibv_rc_pingpong", "-e"], ["ibv_uc_pingpong"],
             ["ibv_ud_pingpong", "-s", "1024"], ["ibv_srq_pingpong", "-q", "4", "-r", "100"],
             ["ibv_rc_pingpong", "-s", "65536"]]


def check_result(command, said):
    if command[0].startswith("ibv_"):
        check("usec/iter" in said[0], f"{command} prints its time: {said[0]}")
        return
    check("#bytes" in said[0] and "link type" not in said[0].lower() or "IB" in said[0],
          f"{command} prints a result on InfiniBand: {said[0]}")
    check("LID 0x" in said[0] and "GID:" not in said[0], f"{command} names its peer by a LID: {said[0]}")


def main():
    need("ib_send_bw", "ibv_rc_pingpong")
    commands = PERFTEST + PINGPONGS
    if len(sys.argv) > 1:
        commands = some(commands, int(sys.argv[1]))
    with Fabric("fat-tree:2x2") as fabric:
        for command in commands:
            print(*command, flush=True)
            before = fabric.port("host-1")["received_packets"]
            _, said = pair(fabric, "host-1", "host-3", *command, "-d", "soft0", "-n", "50")
            check_result(command, said)
            check(fabric.port("host-1")["received_packets"] > before, f"{command} goes through the fabric")


main()
