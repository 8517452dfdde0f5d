# SPDX-License-Identifier: BSD-2-Clause
"""A relay, and clients of plain sockets, which can also misbehave.

Environment: BUSBAR, the program.
"""
import os
import re
import signal
import socket
import struct
import subprocess
import tempfile
import time

from http_gateway import BUSBAR, Client, Program, check, until
from ws_client import BINARY, CLOSE, PING, PONG, TEXT, Socket, frame


class Relay(Program):
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


class Peer(Socket):
    """A member of a session."""

    def __init__(self, port, path="/s", status=101, receive_bytes=None, **headers):
        super().__init__(port, path, None, receive_bytes, **headers)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        check(self.said.status == status, "%s: %d expected, %d" % (path, status, self.said.status))
        self.headers = self.said.headers
        self.error = "" if status == 101 else self.said.json()["error"]

    def message(self, data):
        self.say(BINARY if isinstance(data, bytes) else TEXT, data if isinstance(data, bytes) else data.encode())

    def receive(self):
        """Opcode and data of the next frame; None: the connection is closed."""
        try:
            if not self.file.peek(1):
                return None
        except ConnectionResetError:
            return None
        return self.frame()

    def closed_with(self):
        """The status of the close frame that comes after all else."""
        while True:
            got = self.receive()
            check(got, "a close frame")
            if got[0] == CLOSE:
                return struct.unpack("!H", got[1][:2])[0] if got[1] else 1005


def nothing_more(*peers):
    """What was sent before has been passed on: a ping of each is answered next."""
    for p in peers:
        p.say(PING, b"?")
        check(p.receive() == (PONG, b"?"), "nothing but the pong")


def seconds_since(start):
    return time.monotonic() - start
