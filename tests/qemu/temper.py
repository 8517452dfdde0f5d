#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""A node of type temper finds and reads thermometers in a guest whose kernel has uhid: the
program makes HID devices with the identifiers of thermometers, and answers as they do.

environment: BUSBAR. Exit status: 0 good, 1 not.
"""
import os
import select
import struct
import subprocess
import sys
import tempfile
import threading
import time

BUSBAR = os.environ["BUSBAR"]
CREATE2, OUTPUT, INPUT2, DESTROY = 11, 6, 12, 1
EVENT = 4380  # bytes of struct uhid_event
# Reports of 8 bytes in each direction, without a number.
REPORTS = bytes([0x06, 0x00, 0xff, 0x09, 0x01, 0xa1, 0x01, 0x09, 0x01, 0x15, 0x00, 0x26, 0xff, 0x00,
                 0x75, 0x08, 0x95, 0x08, 0x81, 0x02, 0x09, 0x02, 0x75, 0x08, 0x95, 0x08, 0x91, 0x02,
                 0xc0])
QUESTION = bytes([0x01, 0x80, 0x33, 0x01, 0, 0, 0, 0])


class Device:
    def __init__(self, name, place, product, answer):
        self.answer, self.asked, self.wrong = answer, 0, 0
        self.fd = os.open("/dev/uhid", os.O_RDWR)
        self.send(struct.pack("<I128s64s64sHHIIII4096s", CREATE2, name, place, b"", len(REPORTS), 3,
                              0x0c45, product, 0, 0, REPORTS))
        self.thread = threading.Thread(target=self.serve, daemon=True)
        self.thread.start()

    def send(self, event):
        os.write(self.fd, event.ljust(EVENT, b"\0"))

    def serve(self):
        while True:
            select.select([self.fd], [], [])
            event = os.read(self.fd, EVENT)
            if struct.unpack_from("<I", event)[0] != OUTPUT:
                continue
            size = struct.unpack_from("<H", event, 4 + 4096)[0]
            # A report without a number has none on its way to the device, or a 0.
            report = event[4:4 + size][-8:]
            self.asked += 1
            self.wrong += report != QUESTION
            self.send(struct.pack("<IH8s", INPUT2, 8, self.answer))


def run(node, seconds=4):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "c.conf")
        with open(path, "w") as f:
            f.write('nodes = { t = { type = "temper"; rate = 5; %s }; rec = { type = "file"; uri = "%s/t.csv"; '
                    'format = "csv"; out = { append = false; }; }; };\n'
                    'paths = ( { in = "t"; out = "rec"; } );\n' % (node, folder))
        done = subprocess.run([BUSBAR, "run", "-t", str(seconds), path], capture_output=True, text=True,
                              timeout=60)
        rows = []
        if os.path.exists(folder + "/t.csv"):
            with open(folder + "/t.csv") as f:
                rows = [[float(v) for v in line.split(",")[4:]] for line in f if line[:1].isdigit()]
        return done.returncode, rows, done.stderr


def check(what, good, *more):
    if not good:
        print("failed:", what, *more)
        sys.exit(1)


status, rows, said = run("")
check("without a device", status == 1 and "needs a thermometer" in said, status, said)
keyboard = Device(b"RDing TEMPer2V1.3", b"usb-1/input0", 0x7401, b"\x80\x02\x01\x00\x01\x00\0\0")
one = Device(b"RDing TEMPer2V1.3", b"usb-1/input1", 0x7401, b"\x80\x02\x17\x80\x19\x40\0\0")
deadline = time.monotonic() + 20
while len(os.listdir("/sys/class/hidraw")) < 2:
    check("the kernel shows the devices", time.monotonic() < deadline)
    time.sleep(0.05)
status, rows, said = run("")
check("two temperatures", status == 0 and len(rows) >= 5 and all(r == [23.5, 25.25] for r in rows), status, rows, said)
check("the question", one.asked >= len(rows) and not one.wrong, one.asked, one.wrong)
check("the other interface is left alone", keyboard.asked == 0)
status, rows, said = run('model = "temper1"; calibration = { offset = 1.5; };')
check("one temperature", status == 0 and rows and all(r == [25.0] for r in rows), status, rows, said)
status, rows, said = run("bus = 1;")
check("a bus that it is not at", status == 1 and "at this bus and port" in said, status, said)
print("%d questions" % one.asked)
