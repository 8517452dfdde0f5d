#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""perfquery counts what perftest sends, to the byte, from the size of messages, the path MTU and the headers of each
packet. usage: counts.py LIBRARIES [NUMBER]: so many cases, which TESTS_SEED selects; else all."""
import re
import sys

from stock import At, Fabric, check, need, pair, some

# Counters have bytes from the LRH to the ICRC, and no VCRC.
LRH, BTH, RETH, ATOMIC, AETH, ATOMIC_ACK, DETH, ICRC = 8, 12, 16, 28, 4, 8, 8, 4
PACKET = LRH + BTH + ICRC
COUNT = 30
CASES = [(program, size, mtu) for program in ("ib_write_bw", "ib_send_bw", "ib_read_bw")
         for size, mtu in ((8192, 4096), (1, 1024), (5001, 256))] + [("ib_atomic_bw", 8, 4096), ("ud", 1000, 4096)]


def data(size, mtu):
    """(packets, bytes) of the payload of a message, in packets without further headers."""
    packets = max(1, -(-size // mtu))
    return packets, size + -size % 4 + packets * PACKET


def expected(program, size, mtu):
    """((packets, bytes) of the client's messages, the same of the server's answers, which are None if they are
    acknowledgements: of 28 bytes, as many as the receiver likes)."""
    packets, size_bytes = data(size, mtu)
    if program == "ib_read_bw":
        # The first and the last response have an AETH.
        return (1, PACKET + RETH), (packets, size_bytes + AETH * min(packets, 2))
    if program == "ib_atomic_bw":
        return (1, PACKET + ATOMIC), (1, PACKET + AETH + ATOMIC_ACK)
    if program == "ud":
        return (1, size_bytes + DETH), (0, 0)
    return (packets, size_bytes + (RETH if program == "ib_write_bw" else 0)), None


def counters(place):
    """(packets, bytes) sent and received; the counters have words of 4 bytes. What a program says to its own
    port does not count."""
    text = place.run("perfquery", "-x")
    n = {k: int(v) for k, v in re.findall(r"^(\w+):\.+(\d+)$", text, re.M)}
    return [(n[f"Port{way}Pkts"], 4 * n[f"Port{way}Data"]) for way in ("Xmit", "Rcv")]


def differences(before, after):
    return [tuple(b - a for a, b in zip(*two)) for two in zip(before, after)]


def measure(fabric, client, server, program, size, mtu):
    words = ["ib_send_bw", "-c", "UD"] if program == "ud" else [program]
    if program == "ib_atomic_bw":
        words += ["-A", "FETCH_AND_ADD"]
    else:
        words += ["-s", str(size)]
    # A long timeout: what is sent again would count twice. Few at a time, for a reader that is late.
    words += ["-d", "soft0", "-n", str(COUNT), "-m", str(mtu), "-t", "8"] + (["-u", "21"] if program != "ud" else [])
    before = counters(client), counters(server)
    pair(fabric, "host-2", "host-4", *words)
    (sent, received), (server_sent, server_received) = (differences(b, counters(p))
                                                       for b, p in zip(before, (client, server)))
    request, answer = expected(program, size, mtu)
    what = f"{' '.join(words)}: sent {sent}, received {received}"
    check(sent == tuple(COUNT * n for n in request), f"{what}: {COUNT} times {request} packets and bytes")
    if answer:
        check(received == tuple(COUNT * n for n in answer), f"{what}: {COUNT} times {answer} come back")
    elif answer is None:
        check(0 < received[0] <= COUNT * request[0] and received[1] == received[0] * (PACKET + AETH),
              f"{what}: acknowledgements have 28 bytes")
    check((server_sent, server_received) == (received, sent), f"{what}; at the server {server_sent}, {server_received}")


def main():
    need("perfquery", "ib_write_bw", "ib_send_bw")
    cases = some(CASES, int(sys.argv[2])) if len(sys.argv) > 2 else CASES
    # The manager is at host-1, and from time to time asks all switches.
    with Fabric("fat-tree:2x2") as fabric, At(fabric, "host-4", sys.argv[1]) as client, \
            At(fabric, "host-2", sys.argv[1]) as server:
        for case in cases:
            print(*case, flush=True)
            measure(fabric, client, server, *case)


main()
