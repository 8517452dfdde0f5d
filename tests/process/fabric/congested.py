#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Two hosts send to a third one: the switch marks packets, and its congestion log, as ibccquery prints it, names the
port, the senders and the receiver. usage: congested.py LIBRARIES"""
import re
import sys
import threading

from stock import At, Fabric, check, need, pair

RECEIVER_PORT = 3  # of the switch
TRIES = 10         # two programs that share a processor may send one after the other


def read_log(place, lid):
    text = place.run("ibccquery", "CongestionLog", str(lid))
    fields = dict(re.findall(r"^(\w+):\.+(\w+)$", text, re.M))
    events = re.findall(r"^SLID:\.+(\d+)\nDLID:\.+(\d+)\nSL:\.+(\d+)\nTimestamp:\.+(\d+)$", text, re.M)
    return fields, [tuple(int(v) for v in e) for e in events if int(e[0])]


def send_both(fabric):
    failed = []

    def send(host):
        try:
            pair(fabric, "host-3", host, "ib_write_bw", "-d", "soft0", "-s", "65536", "-n", "300")
        except SystemExit as e:
            failed.append(str(e))

    threads = [threading.Thread(target=send, args=[host]) for host in ("host-1", "host-2")]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    check(not failed, failed)


def main():
    need("ibccquery", "ibccconfig", "ibnetdiscover", "ib_write_bw")
    with Fabric("single:3") as fabric, At(fabric, "host-1", sys.argv[1]) as place:
        found = place.run("ibnetdiscover")
        lids = [int(re.search(rf'"host-{i}" lid (\d+)', found)[1]) for i in (1, 2, 3)]
        switch = re.search(r"enhanced port 0 lid (\d+)|base port 0 lid (\d+)", found)
        switch = int(switch[1] or switch[2])
        # Marks as early as it can, each packet of any length.
        place.run("ibccconfig", "SwitchCongestionSetting", str(switch), "0xF", "0x0", "0x0", "15", "0", "15", "0:0", "0")
        fields, events = read_log(place, switch)
        check(fields["LogEventsCounter"] == "0" and not events, f"the log begins empty: {fields}")
        for _ in range(TRIES):
            send_both(fabric)
            fields, events = read_log(place, switch)
            if events:
                break
        check(events, "packets were marked and entered into the log")
        check(int(fields["LogEventsCounter"]) >= len(events), f"they are counted: {fields}")
        check(fields["CongestionFlags"] == "0x01", f"a port was congested: {fields}")
        check(int(fields["PortMap"], 16) == 1 << RECEIVER_PORT, f"that of the receiver alone: {fields}")
        for source, target, level, _ in events:
            check(source in lids[:2] and target == lids[2] and level == 0, f"an event names both ends: {events}")
        check(events == sorted(events, key=lambda e: -e[3]), f"the newest event is the first: {events}")


main()
