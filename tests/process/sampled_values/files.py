#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""`busbar sv`: a COMTRADE record is played over a cable, recorded from the interface and from a
capture, and all three have the same values.

Environment: BUSBAR, the program.
"""
import json
import math
import os
import re
import shutil
import struct
import subprocess
import tempfile
import time

import servers
from gateway_process import BUSBAR, check
from sampled_values import Cable

RATE, ROWS = 4000, 2000
# Of the stream: 1 mA, 10 mV.
STEP = {"A": 0.001, "V": 0.01}
CHANNELS = (("UA", "kV", 110.0), ("UB", "kV", 110.0), ("UC", "kV", 110.0), ("IA", "A", 630.0), ("IB", "A", 630.0),
            ("IC", "A", 630.0), ("F", "Hz", 50.0))


def value(channel, row):
    """As the record has it."""
    return round(CHANNELS[channel][2] * math.sin(2 * math.pi * (50.0 * row / RATE - channel / 3)), 6)


def write_record(path):
    with open(path + ".cfg", "w") as f:
        f.write("Station,1,1999\n%d,%dA,0D\n" % (len(CHANNELS), len(CHANNELS)))
        for i, (name, unit, _) in enumerate(CHANNELS):
            f.write("%d,%s,,,%s,0.000001,0,0,-999999999,999999999,1,1,P\n" % (i + 1, name, unit))
        f.write("50\n1\n%d,%d\n01/02/2024,10:00:00.000000\n01/02/2024,10:00:00.000000\nASCII\n1\n" % (RATE, ROWS))
    with open(path + ".dat", "w") as f:
        for row in range(ROWS):
            f.write("%d,%d,%s\n" % (row + 1, row * 1000000 // RATE, ",".join(
                str(round(value(c, row) * 1e6)) for c in range(len(CHANNELS)))))
    return path + ".cfg"


def write_capture(path, frames):
    """Classic pcap, of Ethernet."""
    with open(path, "wb") as f:
        f.write(struct.pack("<IHHiIII", 0xa1b2c3d4, 2, 4, 0, 0, 65535, 1))
        for when, data in frames:
            f.write(struct.pack("<IIII", int(when), int(when % 1 * 1e6), len(data), len(data)) + data)


def sv(*args, status=0):
    done = subprocess.run([BUSBAR, "sv", *args], capture_output=True, text=True, timeout=60)
    check(done.returncode == status, "%s: status %d, expected %d: %s" % (args, done.returncode, status,
                                                                       done.stdout + done.stderr))
    return done.stdout + done.stderr if status else done.stdout


def read_record(path):
    """Names, and the rows."""
    with open(path, "rb") as f:
        done = subprocess.run([BUSBAR, "convert", "-i", "comtrade", "-o", "csv"], stdin=f, check=True,
                              capture_output=True, text=True)
    lines = done.stdout.splitlines()
    rows = [[float(v) for v in line.split(",")] for line in lines if line[0] != "#"]
    return lines[0].split(",")[4:], [row[4:] for row in rows], [row[0] + row[1] / 1e9 for row in rows]


def compare(path, what):
    names, rows, times = read_record(path)
    check([n.split("[")[0] for n in names] == ["IA", "IB", "IC", "UA", "UB", "UC"], "%s has %s" % (what, names))
    check(len(rows) == ROWS, "%s has %d rows of %d" % (what, len(rows), ROWS))
    for i, row in enumerate(rows):
        for at, got in enumerate(row):
            channel = at + 3 if at < 3 else at - 3
            unit = "A" if at < 3 else "V"
            expected = value(channel, i) * (1000 if CHANNELS[channel][1] == "kV" else 1)
            check(abs(got - expected) < STEP[unit] / 2 + abs(expected) * 1e-7,
                  "%s: row %d, %s: %r, expected %r" % (what, i, names[at], got, expected))
    return times


def both_ways(folder, cable):
    record = write_record(os.path.join(folder, "in"))
    with cable.other_end():
        listener = cable.socket("end1")
        live = subprocess.Popen([BUSBAR, "sv", "record", "-v", "I3U3", "-i", "MU7", "-o", "app_id=16391", "end1",
                                 os.path.join(folder, "live.cff")], stderr=subprocess.PIPE, text=True)
    for line in live.stderr:
        if "is running" in line:
            break
    player = subprocess.Popen([BUSBAR, "sv", "play", "-i", "MU7", "-v", "F4000S2I3U3", "-s", "global", "-o", "app_id=16391",
                               record, "end0"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    frames = []
    listener.settimeout(0.5)
    while len(frames) < ROWS // 2:
        try:
            data = listener.recv(2000)
        except TimeoutError:
            check(player.poll() is None, "playing goes on behind %d frames: %s" % (len(frames), player.stdout.read()))
            continue
        if data[12:14] == b"\x88\xba":
            frames.append((time.time(), data))
    said = player.communicate(timeout=60)[0]
    check(player.returncode == 0, "playing ends with %d: %s" % (player.returncode, said))
    live.terminate()
    check(live.wait(30) == 0, "recording ends well")
    times = compare(os.path.join(folder, "live.cff"), "the record from the interface")
    # refrTm of each sample: a record has the time that the message says.
    said = [(count, second + fraction / 2 ** 24) for _, data in frames for count, second, fraction in
            ((struct.unpack(">H", a)[0], *struct.unpack(">II", b"%b\0%b" % (b[:4], b[4:7]))) for a, b in
             re.findall(b"\x82\x02(..)\x83\x04....\x84\x08(.{8})", data, re.DOTALL))]
    check(len(said) == len(times) and all(abs(a - b[1]) < 2e-6 for a, b in zip(times, said)),
          "the record has the times of the messages: %r, %r" % (times[:3], said[:3]))
    check(said[0][0] == 0, "the first sample is number 0 of its second, not %d" % said[0][0])
    check(abs(times[0] - round(times[0])) < 0.5 / RATE or said[0][1] > round(times[0]),
          "it leaves at a full second or, where another program delays it, later: %r" % times[0])

    capture = os.path.join(folder, "capture.pcap")
    # Something else between them.
    frames.insert(7, (frames[6][0], bytes(12) + b"\x08\x00" + bytes(46)))
    write_capture(capture, frames)
    listed = json.loads(sv("list", "--json", capture))
    check(len(listed["streams"]) == 1, "listed is %s" % listed)
    stream = listed["streams"][0]
    check((stream["sv_id"], stream["app_id"], stream["asdus"], stream["samples"], stream["data_bytes"], stream["smp_cnt_max"]) ==
          ("MU7", 16391, 2, ROWS, 48, ROWS - 1), "listed is %s" % stream)
    check("MU7" in sv("list", capture), "the list names the stream")
    sv("record", capture, os.path.join(folder, "later.cff"))
    compare(os.path.join(folder, "later.cff"), "the record from the capture")
    sv("record", "-f", "csv", capture, os.path.join(folder, "later.csv"))
    with open(os.path.join(folder, "later.csv")) as f:
        check(sum(line[0] != "#" for line in f) == ROWS, "all rows are in the csv file")
    refusals(folder, capture, record, frames)


def refusals(folder, capture, record, frames):
    out = os.path.join(folder, "not.cff")
    check("-v says 8 channels" in sv("record", "-v", "I4U4", capture, out, status=1), "the length is compared")
    check("no stream MU8" in sv("record", "-i", "MU8", capture, out, status=1), "the stream is looked for")
    check("I4U4 alone" in sv("record", "-v", "X4", capture, out, status=2), "a code is explained")
    check("asks for 4 and 4" in sv("play", "-v", "I4U4", record, "lo", status=1), "channels are counted")
    check("not converted" in sv("play", "-v", "F4800S1I3U3", record, "lo", status=1), "rates are compared")
    check("no analog channel" in sv("play", "-c", "IA,IX", record, "lo", status=1), "names are looked for")
    check("ends in .cfg" in sv("play", capture, "lo", status=1), "a record has its name")
    # By name and by number, also what has another unit.
    config = json.loads(sv("play", "-n", "-v", "I2U1", "-c", "IB,F,0", record, "lo"))
    check(config["paths"][0]["in"] == ["record[4]", "record[6]", "record[0]"], "%s" % config["paths"])
    # The file ends within a frame: what was whole is there, and the status tells.
    with open(capture, "rb") as f:
        data = f.read()
    cut = os.path.join(folder, "cut.pcap")
    with open(cut, "wb") as f:
        f.write(data[:len(data) // 2 + 3])
    check("cut.pcap: byte" in sv("list", cut, status=1), "the place is told")
    more = os.path.join(folder, "two.pcap")
    other = [(when, d.replace(b"MU7", b"MU9")) for when, d in frames]
    write_capture(more, frames + other)
    check("2 streams" in sv("record", more, out, status=1), "a stream has to be chosen")
    sv("record", "-i", "MU9", more, os.path.join(folder, "nine.cff"))
    compare(os.path.join(folder, "nine.cff"), "the record of the second stream")
    for words in (("record", capture, folder + "/\udcff.cff"), ("play", "-n", "-i", "\udcff", record, "lo")):
        check("is no UTF-8" in sv(*words, status=2), "a name that no configuration can have is refused")
    shutil.copy(capture, folder + "/\udcff.pcap")
    check("MU7" in sv("list", folder + "/\udcff.pcap"), "whatever the name of a capture is, its streams are listed")


def main():
    if not shutil.which("ip") or not shutil.which("unshare"):
        servers.skip("ip(8) and unshare(1) are needed")
    servers.enter_network()
    cable = Cable()
    try:
        with tempfile.TemporaryDirectory(prefix="busbar-sv-") as folder:
            both_ways(folder, cable)
    finally:
        cable.end()


main()
