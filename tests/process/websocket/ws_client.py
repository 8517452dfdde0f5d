# SPDX-License-Identifier: BSD-2-Clause
"""One end of a WebSocket, on a plain socket: it checks every frame of the other end, and can
send what no library sends."""
import base64
import hashlib
import socket
import struct

from http_gateway import Client, check

CONTINUATION, TEXT, BINARY, CLOSE, PING, PONG = 0, 1, 2, 8, 9, 10
KEY = "dGhlIHNhbXBsZSBub25jZQ=="


def accept_of(key):
    return base64.b64encode(hashlib.sha1(
        key.encode() + b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11").digest()).decode()


def frame(opcode, data=b"", fin=True, mask=b"\1\2\3\4", reserved=0, length=None):
    """`mask` None: of a server; `length`: what is said of it, a number or the bytes that stand for it."""
    n = length if isinstance(length, int) else len(data)
    size = n if n < 126 else 126 if n < 65536 else 127
    rest = b"" if n < 126 else n.to_bytes(2 if n < 65536 else 8, "big")
    if isinstance(length, bytes):
        size, rest = length[0], length[1:]
    head = bytes([fin << 7 | reserved << 4 | opcode, (0x80 if mask else 0) | size]) + rest
    if not mask:
        return head + data
    long = (mask * (len(data) // 4 + 1))[:len(data)]
    return head + mask + (int.from_bytes(data, "big") ^ int.from_bytes(long, "big")).to_bytes(len(data), "big")


class Socket(Client):
    def __init__(self, port, path="/live.json", protocols="live", buffer=None, **headers):
        if buffer:
            # The size counts from the connection on.
            self.port = port
            self.socket = socket.socket()
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
            self.socket.settimeout(20)
            self.socket.connect(("127.0.0.1", port))
            self.file = self.socket.makefile("rb")
        else:
            super().__init__(port)
        head = {"Upgrade": "websocket", "Connection": "Upgrade", "Sec_WebSocket_Key": KEY,
                "Sec_WebSocket_Version": "13", "Sec_WebSocket_Protocol": protocols}
        head.update(headers)
        self.said = self.ask(path, **head)
        if self.said.status == 101:
            check(self.said.headers["sec-websocket-accept"] == accept_of(KEY), "the key is taken")
            check(self.said.headers.get("sec-websocket-protocol") == head["Sec_WebSocket_Protocol"],
                  "the protocol")

    def exactly(self, n):
        data = self.file.read(n)
        check(len(data) == n, "the whole frame: %d of %d" % (len(data), n))
        return data

    def frame(self):
        first, length = self.exactly(2)
        check(first & 0xf0 == 0x80 and length < 128, "whole frames without masks")
        if length >= 126:
            length = int.from_bytes(self.exactly(2 if length == 126 else 8), "big")
        return first & 15, self.exactly(length)

    def say(self, opcode, data=b"", **how):
        self.send(frame(opcode, data, **how))

    def until(self, wanted):
        """The next frame of this opcode."""
        while True:
            opcode, data = self.frame()
            if opcode == wanted:
                return data

    def status(self):
        """That of the goodbye, behind which the connection ends; None: an empty one."""
        data = self.until(CLOSE)
        check(self.is_closed(), "closed behind the goodbye")
        return struct.unpack(">H", data[:2])[0] if data else None


HANDSHAKE = (b"Connection: Upgrade", b"Upgrade: websocket", b"Sec-WebSocket-Version: 13",
             b"Sec-WebSocket-Key: " + KEY.encode())


def how_it_is_asked(port, path):
    """A path of WebSocket answers 101 to a handshake of HTTP/1.1 only. Where something of it is
    missing it says what is required (RFC 9110, 15.5.22), or what is wrong."""
    for version in (b"1.1", b"1.0"):
        for there in range(1 << len(HANDSHAKE)):
            lines = [line for i, line in enumerate(HANDSHAKE) if there >> i & 1]
            asks = version == b"1.1" and there & 3 == 3
            wanted = 426 if not asks else 101 if there == 15 else 400 if not there & 8 else 426
            with Client(port) as c:
                c.send(b"GET %s HTTP/%s\r\nHost: localhost\r\n" % (path.encode(), version) +
                       b"".join(line + b"\r\n" for line in lines) + b"\r\n")
                a = c.answer()
                what = "%s by HTTP/%s with %s: %d" % (path, version, lines, a.status)
                check(a.status == wanted, what)
                if wanted != 400:
                    check(a.headers["upgrade"] == "websocket" and "upgrade" in a.headers["connection"].lower(), what)
                if wanted == 426 and asks:
                    check(a.headers["sec-websocket-version"] == "13", what)
