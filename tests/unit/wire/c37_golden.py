#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""c37_golden.py SHOW: recordings of devices, read by our decoder (SHOW), have the numbers that
were found of them by other programs.

The recordings are in BUSBAR_DATA, by default ../shared/data or shared/data beside this tree
(pmu/*.pcap, pmu/*.csv, golden.json); status 77 where they are not.
"""
import csv
import json
import os
import struct
import subprocess
import sys

TREE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..")


def folder():
    for path in (os.environ.get("BUSBAR_DATA"), os.path.join(TREE, "shared/data"),
                 os.path.join(TREE, "../shared/data"), os.path.join(TREE, "../../shared/data")):
        if path and os.path.exists(os.path.join(path, "golden.json")):
            return path
    print("the recordings are not there; BUSBAR_DATA names their folder")
    sys.exit(77)


def streams(path):
    """The bytes of each direction of each connection, in order, and their number of packets."""
    with open(path, "rb") as f:
        data = f.read()
    order = "<" if data[:4] in (b"\xd4\xc3\xb2\xa1", b"\x4d\x3c\xb2\xa1") else ">"
    at, flows = 24, {}
    while at < len(data):
        size = struct.unpack(order + "I", data[at + 8:at + 12])[0]
        packet, at = data[at + 16:at + 16 + size], at + 16 + size
        if packet[12:14] != b"\x08\x00":
            continue
        ip = packet[14:14 + struct.unpack("!H", packet[16:18])[0]]
        head, protocol = (ip[0] & 15) * 4, ip[9]
        ends = ip[12:20] + ip[head:head + 4]
        if protocol == 17:
            flows.setdefault((17, ends), {})[len(flows.get((17, ends), {}))] = ip[head + 8:]
        elif protocol == 6:
            start = struct.unpack("!I", ip[head + 4:head + 8])[0]
            payload = ip[head + (ip[head + 12] >> 4) * 4:]
            if payload:
                flows.setdefault((6, ends), {})[start] = payload
    out = {}
    for (protocol, ends), pieces in flows.items():
        stream, last = b"", None
        for start in sorted(pieces):
            if protocol == 6 and last is not None and start < last:
                continue        # sent again
            stream += pieces[start]
            last = start + len(pieces[start])
        if stream[:1] == b"\xaa":
            out[ends] = stream
    return out


def near(got, want, what, tolerance=2e-8):
    # Nine digits were printed.
    if abs(got - want) > tolerance * max(1.0, abs(want)):
        sys.exit("%s: %r, not %r" % (what, got, want))


def equal(got, want, what):
    if got != want:
        sys.exit("%s: %r, not %r" % (what, got, want))


def check_stream(name, config, rows, want):
    equal(config[2:7], [want["station"], str(want["rate_fps"]), str(want["time_base"]),
                        str(want["format_bits"]), str(want["nominal_hz"])], name + " configuration")
    equal(len(rows), want["data_frames"], name + " data frames")
    for row, end in ((rows[0], "first"), (rows[-1], "last")):
        equal((int(row[2]), int(row[3])), (want[end]["soc"], want[end]["fracsec"]), name + " " + end)
    equal(sorted({r[4] for r in rows}), want["stat"], name + " STAT")
    frequency = [float(r[5]) for r in rows]
    near(min(frequency), want["freq_hz"]["min"], name + " lowest frequency")
    near(max(frequency), want["freq_hz"]["max"], name + " highest frequency")
    near(frequency[0], want["freq_hz"]["first"], name + " first frequency")
    near(sum(frequency) / len(rows), want["freq_hz"]["mean"], name + " mean frequency")
    equal(config[7].split(","), [p["name"] for p in want["phasors"]], name + " phasors")
    for i, p in enumerate(want["phasors"]):
        magnitude = [float(r[7 + 2 * i]) for r in rows]
        what = "%s %s " % (name, p["name"])
        near(min(magnitude), p["mag_min"], what + "least magnitude")
        near(max(magnitude), p["mag_max"], what + "largest magnitude")
        near(magnitude[0], p["first_mag"], what + "first magnitude")
        near(magnitude[-1], p["last_mag"], what + "last magnitude")
        # In degrees, of a float of radians.
        near(float(rows[0][8 + 2 * i]), p["first_deg"], what + "first angle", 1e-6)
        near(float(rows[-1][8 + 2 * i]), p["last_deg"], what + "last angle", 1e-6)


def check_csv(path, time_base, rows):
    with open(path) as f:
        want = list(csv.reader(f))[1:]
    equal(len(rows), len(want), path)
    for got, row in zip(rows, want):
        equal((got[2], round(int(got[3]) * 1e6 / time_base), got[4]), (row[0], int(row[1]), row[2]), path)
        for value, expected in zip(got[7:], row[3:-2]):
            near(float(value), float(expected), path, 6e-6)
        near(float(got[5]), float(row[-2]), path, 6e-6)
        near(float(got[6]), float(row[-1]), path, 6e-6)


def main():
    show, data = sys.argv[1], folder()
    with open(os.path.join(data, "golden.json")) as f:
        golden = json.load(f)["pmu"]
    seen = 0
    for name, want in golden.items():
        frames, found = {"data": 0, "header": 0, "config2": 0, "command": 0}, {}
        for stream in streams(os.path.join(data, "pmu", name)).values():
            run = subprocess.run([show], input=stream, capture_output=True, timeout=60)
            lines = [line.split("\t") for line in run.stdout.decode("latin-1").splitlines()]
            equal(run.returncode, 0, "%s: %s" % (name, lines[-1:]))
            for line in lines:
                frames[line[0]] += 1
            for config in (line for line in lines if line[0] == "config2"):
                found[config[1]] = config, [line for line in lines
                                            if line[0] == "data" and line[1] == config[1]]
        equal(frames, want["frames"], name + " frames")
        equal(sorted(found), sorted(want["streams"]), name + " streams")
        for idcode, (config, rows) in found.items():
            check_stream("%s %s" % (name, idcode), config, rows, want["streams"][idcode])
            seen += 1
            for table in ("%s.csv" % name[:-5], "%s_id%s.csv" % (name[:-5], idcode)):
                path = os.path.join(data, "pmu", table)
                if os.path.exists(path):
                    check_csv(path, int(config[4]), rows)
                    seen += 1
    equal(seen >= 8, True, "streams and tables")
    print("%d streams and tables have their numbers" % seen)


main()
