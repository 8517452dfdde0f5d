# SPDX-License-Identifier: BSD-2-Clause
"""Frames of WebSocket (RFC 6455, section 5) for the client's end, and its opening handshake
(section 4). Bytes in, messages out and the other way round: nothing here waits."""

from __future__ import annotations

import base64
import codecs
import hashlib
import os
from typing import Iterator, NamedTuple

from ._errors import ProtocolError

CONTINUATION, TEXT, BINARY, CLOSE, PING, PONG = 0, 1, 2, 8, 9, 10

NORMAL = 1000
PROTOCOL_ERROR = 1002
NO_STATUS = 1005  # the close frame was empty
INVALID_DATA = 1007
TOO_BIG = 1009

CONTROL_MAX = 125
_HEAD_MAX = 16 << 10
_GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"


class FrameError(ProtocolError):
    """The server's frames are wrong; `status` is what it is told in the close frame."""

    def __init__(self, text: str, status: int = PROTOCOL_ERROR) -> None:
        super().__init__(text)
        self.status = status


class Message(NamedTuple):
    opcode: int  # never CONTINUATION
    data: bytes  # all fragments
    status: int = 0  # of CLOSE
    reason: str = ""


class FrameReader:
    """Takes bytes as they come. Keeps no more than one message of at most `message_max` bytes
    and what was taken last."""

    def __init__(self, message_max: int) -> None:
        self._max = message_max
        self._buffer = bytearray()
        self._need = 2  # bytes before it is worth looking
        self._opcode = CONTINUATION  # of the message whose fragments come
        self._message = bytearray()  # what has come of it
        self._utf8 = codecs.getincrementaldecoder("utf-8")()

    def take(self, data: bytes) -> Iterator[Message]:
        """The messages that end in `data`. To be run through to the end before the next call."""
        self._buffer += data
        while len(self._buffer) >= self._need:
            head = self._head()
            if head is None:
                continue  # _need has grown
            fin, opcode, start, length = head
            payload = bytes(memoryview(self._buffer)[start:start + length])
            del self._buffer[:start + length]
            self._need = 2
            message = self._frame(fin, opcode, payload)
            if message is not None:
                yield message

    def _head(self) -> tuple[bool, int, int, int] | None:
        """(fin, opcode, where the payload begins, its length); None: more bytes are needed."""
        b = self._buffer
        fin, opcode, length = bool(b[0] & 0x80), b[0] & 15, b[1] & 127
        if b[0] & 0x70:
            raise FrameError("a reserved bit of a frame is set, and no extension was agreed on")
        if b[1] & 0x80:
            raise FrameError("a frame of the server is masked")
        if opcode not in (CONTINUATION, TEXT, BINARY, CLOSE, PING, PONG):
            raise FrameError(f"a frame has the unknown opcode {opcode}")
        start = 2 + {126: 2, 127: 8}.get(length, 0)
        if opcode >= CLOSE and (length > CONTROL_MAX or not fin):
            raise FrameError("a control frame is longer than 125 bytes or in fragments")
        if len(b) < start:
            self._need = start
            return None
        if start > 2:
            length = int.from_bytes(b[2:start], "big")
            if length < (126 if start == 4 else 1 << 16) or length >> 63:
                raise FrameError("a frame's length is written with too many bytes")
        if opcode < CLOSE:
            self._check(opcode, length)
        if len(b) < start + length:
            self._need = start + length
            return None
        return fin, opcode, start, length

    def _check(self, opcode: int, length: int) -> None:
        if opcode == CONTINUATION and self._opcode == CONTINUATION:
            raise FrameError("a fragment belongs to no message")
        if opcode != CONTINUATION and self._opcode != CONTINUATION:
            raise FrameError("a message begins within another one")
        if len(self._message) + length > self._max:
            raise FrameError(f"a message is longer than {self._max} bytes", TOO_BIG)

    def _frame(self, fin: bool, opcode: int, payload: bytes) -> Message | None:
        if opcode == CLOSE:
            return _close(payload)
        if opcode >= CLOSE:
            return Message(opcode, payload)
        if opcode != CONTINUATION:
            self._opcode = opcode
        if self._opcode == TEXT:
            try:
                self._utf8.decode(payload, fin)
            except UnicodeDecodeError:
                raise FrameError("a text is no UTF-8", INVALID_DATA) from None
        self._message += payload
        if not fin:
            return None
        message = Message(self._opcode, bytes(self._message))
        self._opcode, self._message = CONTINUATION, bytearray()
        self._utf8.reset()
        return message


def _close(payload: bytes) -> Message:
    if not payload:
        return Message(CLOSE, payload, NO_STATUS)
    status = int.from_bytes(payload[:2], "big")
    known = 1000 <= status <= 1014 and status not in (1004, 1005, 1006)
    if len(payload) == 1 or not (known or 3000 <= status <= 4999):
        raise FrameError("a close frame has no valid status")
    try:
        return Message(CLOSE, payload, status, payload[2:].decode())
    except UnicodeDecodeError:
        raise FrameError("the reason of a close frame is no UTF-8", INVALID_DATA) from None


def write_frame(opcode: int, payload: bytes, mask: bytes | None = None) -> bytes:
    """A whole frame of a client."""
    mask = os.urandom(4) if mask is None else mask
    length = len(payload)
    head = bytearray([0x80 | opcode])
    if length < 126:
        head.append(0x80 | length)
    elif length < 1 << 16:
        head += bytes([0x80 | 126]) + length.to_bytes(2, "big")
    else:
        head += bytes([0x80 | 127]) + length.to_bytes(8, "big")
    key = mask * (length // 4) + mask[:length % 4]
    masked = int.from_bytes(payload, "little") ^ int.from_bytes(key, "little")
    return bytes(head) + mask + masked.to_bytes(length, "little")


def write_close(status: int = NORMAL, reason: str = "") -> bytes:
    text = reason.encode()[:CONTROL_MAX - 2].decode(errors="ignore").encode()
    return write_frame(CLOSE, status.to_bytes(2, "big") + text)


# ---- the opening handshake ----


class Handshake:
    """Asks for an upgrade of a connection."""

    def __init__(self, authority: str, target: str, protocol: str, headers: dict[str, str]
                 ) -> None:
        self._protocol = protocol
        self._key = base64.b64encode(os.urandom(16))
        self._buffer = b""
        lines = [f"GET {target} HTTP/1.1", f"Host: {authority}", "Upgrade: websocket",
                 "Connection: Upgrade", f"Sec-WebSocket-Key: {self._key.decode()}",
                 "Sec-WebSocket-Version: 13", f"Sec-WebSocket-Protocol: {protocol}"]
        lines += [f"{name}: {value}" for name, value in headers.items()]
        self.request = ("\r\n".join(lines) + "\r\n\r\n").encode("ascii")

    def take(self, data: bytes) -> tuple[int, dict[str, str], bytes] | None:
        """(status, header with names in lower case, what follows) once the head is there."""
        self._buffer += data
        end = self._buffer.find(b"\r\n\r\n")
        if end > _HEAD_MAX or (end < 0 and len(self._buffer) > _HEAD_MAX):
            raise ProtocolError(f"the head of the answer is longer than {_HEAD_MAX} bytes")
        if not b"HTTP/1.1 "[:9].startswith(self._buffer[:9]):
            raise ProtocolError(f"no HTTP/1.1 server: {self._buffer[:32]!r}")
        if end < 0:
            return None
        first, *lines = self._buffer[:end].decode("latin-1").split("\r\n")
        code = first[9:12]
        if not (code.isascii() and code.isdigit() and first[12:13] in ("", " ")):
            raise ProtocolError(f"no HTTP answer: {first[:40]!r}")
        header: dict[str, str] = {}
        for line in lines:
            name, colon, value = line.partition(":")
            if not colon or not name or name != name.strip():
                raise ProtocolError(f"a line of the answer's head is no header: {line[:40]!r}")
            key, value = name.lower(), value.strip()
            header[key] = f"{header[key]}, {value}" if key in header else value
        if code == "101":
            self._check(header)
        return int(code), header, self._buffer[end + 4:]

    def _check(self, header: dict[str, str]) -> None:
        accept = base64.b64encode(hashlib.sha1(self._key + _GUID).digest()).decode()
        if header.get("upgrade", "").lower() != "websocket":
            raise ProtocolError("the connection was upgraded to something else than websocket")
        if "upgrade" not in [w.strip().lower() for w in header.get("connection", "").split(",")]:
            raise ProtocolError("the answer has no 'Connection: Upgrade'")
        if header.get("sec-websocket-accept") != accept:
            raise ProtocolError("Sec-WebSocket-Accept is not that of our key")
        if header.get("sec-websocket-protocol", self._protocol) != self._protocol:
            raise ProtocolError("the server has chosen the protocol "
                                f"{header['sec-websocket-protocol']!r}, not {self._protocol!r}")
        if header.get("sec-websocket-extensions"):
            raise ProtocolError("the server uses an extension that was not asked for: "
                                + header["sec-websocket-extensions"][:60])
