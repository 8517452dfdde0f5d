# SPDX-License-Identifier: BSD-2-Clause
"""A relay, and clients of plain sockets, which can also misbehave.

Environment: BUSBAR, the program.
"""
import json
import os
import re
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "http"))
from http_gateway import Client, check, until  # noqa: E402 pylint: disable=wrong-import-position

BUSBAR = os.environ["BUSBAR"]
TEXT, BINARY, CLOSE, PING, PONG = 1, 2, 8, 9, 10
KEY = "dGhlIHNhbXBsZSBub25jZQ=="


class Relay:
    """`busbar relay --port=0` with further options."""

    def __init__(self, *options, name=None):
        self.log = tempfile.TemporaryFile("w+")
        program = [BUSBAR, "relay"] if not name else [name]
        self.process = subprocess.Popen([*program, "--port=0", *options], stdout=subprocess.PIPE,
                                        stderr=self.log, text=True)
        until(lambda: self.process.poll() is not None or "serves requests" in self.said(), "the relay starts")
        check(self.process.poll() is None, "the relay runs: " + self.said())
        self.port = int(re.search(r":(\d+)/ serves requests", self.said()).group(1))

    def said(self):
        # Not by the descriptor's own offset, which the process writes at.
        return os.pread(self.log.fileno(), 1 << 20, 0).decode(errors="replace")

    def ask(self, path="/", method="GET", **headers):
        with Client(self.port) as c:
            return c.ask(path, method, **headers)

    def state(self, **headers):
        return self.ask("/", **headers).json()

    def session(self, path):
        found = [s for s in self.state()["sessions"] if s["identifier"] == path]
        return found[0] if found else None

    def resident_kb(self):
        with open("/proc/%d/status" % self.process.pid) as f:
            return int(re.search(r"VmRSS:\s+(\d+)", f.read()).group(1))

    def is_sanitized(self):
        with open("/proc/%d/maps" % self.process.pid) as f:
            return bool(re.search(r"lib[at]san", f.read()))

    def end(self, with_signal=signal.SIGINT):
        if self.process.poll() is None:
            self.process.send_signal(with_signal)
        out = self.process.communicate(timeout=30)[0]
        check(self.process.returncode == 0, "ends with %d: %s" % (self.process.returncode, self.said()))
        return out

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        if kind is None:
            if self.process.poll() is None:
                self.end()
        else:
            self.process.kill()
            self.process.wait()
            print(self.said()[-4000:])
        self.process.stdout.close()
        self.log.close()


def frame(opcode, data=b"", fin=True, masked=True, reserved=0, length=None):
    n = len(data) if length is None else length
    head = bytes([fin << 7 | reserved << 4 | opcode])
    bit = masked << 7
    if n < 126:
        head += bytes([bit | n])
    elif n < 65536:
        head += struct.pack("!BH", bit | 126, n)
    else:
        head += struct.pack("!BQ", bit | 127, n)
    # With a mask of zeros the data stays what it is.
    return head + (bytes(4) if masked else b"") + data


class Peer:
    """A member of a session."""

    def __init__(self, port, path="/s", status=101, receive_bytes=None, **headers):
        self.socket = socket.socket()
        if receive_bytes:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
        self.socket.settimeout(20)
        self.socket.connect(("127.0.0.1", port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.file = self.socket.makefile("rb")
        head = {"Host": "127.0.0.1:%d" % port, "Upgrade": "websocket", "Connection": "Upgrade",
                "Sec-WebSocket-Version": "13", "Sec-WebSocket-Key": KEY}
        head.update({k.replace("_", "-"): v for k, v in headers.items()})
        self.socket.sendall(("GET %s HTTP/1.1\r\n" % path + "".join(
            "%s: %s\r\n" % kv for kv in head.items()) + "\r\n").encode())
        line = self.file.readline().decode()
        check(line.startswith("HTTP/1.1 %d " % status), "%s: %d expected, %s" % (path, status, line))
        self.headers, line = {}, self.file.readline()
        while line != b"\r\n":
            name, value = line.decode().strip().split(": ", 1)
            self.headers[name.lower()] = value
            line = self.file.readline()
        self.error = ""
        if status != 101:
            self.error = json.loads(self.file.read(int(self.headers["content-length"])))["error"]

    def send(self, data, opcode=None):
        if opcode is None:
            opcode = BINARY if isinstance(data, bytes) else TEXT
        self.raw(frame(opcode, data if isinstance(data, bytes) else data.encode()))

    def raw(self, data):
        self.socket.sendall(data)

    def receive(self):
        """Opcode and data of the next frame; None: the connection is closed."""
        try:
            head = self.file.read(2)
            if len(head) < 2:
                return None
            check(head[0] & 0xf0 == 0x80 and not head[1] & 0x80, "a whole frame without a mask: %r" % head)
            n = head[1]
            if n == 126:
                n = struct.unpack("!H", self.file.read(2))[0]
            elif n == 127:
                n = struct.unpack("!Q", self.file.read(8))[0]
            data = self.file.read(n)
        except ConnectionResetError:
            return None
        check(len(data) == n, "all of the frame")
        return head[0] & 15, data

    def closed_with(self):
        """The status of the close frame that comes after all else."""
        while True:
            got = self.receive()
            check(got, "a close frame")
            if got[0] == CLOSE:
                return struct.unpack("!H", got[1][:2])[0] if got[1] else 1005

    def close(self):
        self.file.close()
        self.socket.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def nothing_more(*peers):
    """What was sent before has been passed on: a ping of each is answered next."""
    for p in peers:
        p.send(b"?", PING)
        check(p.receive() == (PONG, b"?"), "nothing but the pong")


def seconds_since(start):
    return time.monotonic() - start
