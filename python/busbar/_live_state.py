# SPDX-License-Identifier: BSD-2-Clause
"""What a connection to a node of the type websocket has said and heard, for Live and AsyncLive,
which move its bytes. Nothing here waits."""

from __future__ import annotations

import json
import ssl
from collections import deque
from typing import NamedTuple, Sequence

from . import _frames as frames
from ._errors import Closed, ProtocolError, Unreachable, refused
from ._samples import Sample, check_types, find_codec
from ._stream import Access, PathLike, Place, check_timeout, make_access, parse_url

CHUNK = 1 << 16
BODY_MAX = 1 << 16  # of an answer that refuses
QUIET_S = 20.0  # so long nothing has come: the gateway is asked whether it is there
DEAF_S = 20.0  # and has so long to answer


class Settings(NamedTuple):
    place: Place
    access: Access
    format: str
    receives: tuple[str, ...]
    sends: tuple[str, ...]
    message_max: int
    timeout: float | None


def make_settings(
    url: str, format: str | None, receives: Sequence[str] | None, sends: Sequence[str] | None,
    token: str | None, token_file: PathLike | None, ca: PathLike | None, cert: PathLike | None,
    key: PathLike | None, context: ssl.SSLContext | None, timeout: float | None,
    message_max: int,
) -> Settings:
    check_timeout(timeout)
    place = parse_url(url, "ws", "wss")
    if place.path in ("", "/"):
        raise ValueError(f"{url!r}: expected ws://HOST[:PORT]/NODE[.FORMAT]")
    if format is None:
        format = "json" if place.path.split("?")[0].endswith(".json") else "villas.web"
    find_codec(format)
    if message_max < 1:
        raise ValueError(f"message_max {message_max}: expected a number of bytes")
    access = make_access(place.tls, token, token_file, ca, cert, key, context)
    return Settings(place, access, format, check_types(receives), check_types(sends),
                    message_max, timeout)


class LiveState:
    def __init__(self, settings: Settings) -> None:
        self.where = ("wss" if settings.place.tls else "ws") + "://" + (
            settings.place.authority + settings.place.path)
        self._settings = settings
        self._codec = find_codec(settings.format)
        self._reader = frames.FrameReader(settings.message_max)
        self._handshake = frames.Handshake(settings.place.authority, settings.place.path, "live",
                                           settings.access.headers())
        self.request = self._handshake.request
        self._refusal: tuple[int, dict[str, str]] | None = None
        self._refusal_body = b""
        self.open = False  # the handshake is done
        self.frames: deque[list[Sample]] = deque()
        self.replies: deque[bytes] = deque()  # frames to send: pongs, and a close
        self.ended: str | None = None  # the gateway says goodbye: why
        self.status = 0  # with which it did
        self._said_goodbye = False  # we did

    # ---- the handshake ----

    def take_answer(self, data: bytes, eof: bool = False) -> None:
        """Sets `open`, or raises once all of a refusal is there."""
        if self._refusal is None:
            try:
                taken = self._handshake.take(data)
            except ProtocolError as error:
                raise ProtocolError(f"{self.where}: {error}") from None
            if taken is None:
                if eof:
                    raise Unreachable(f"{self.where}: the connection ended within the handshake")
                return
            status, header, rest = taken
            if status == 101:
                self.open = True
                self.take(rest)
                return
            self._refusal, data = (status, header), rest
        self._refusal_body += data
        status, header = self._refusal
        length = header.get("content-length", "")
        wanted = min(BODY_MAX, int(length)) if length.isdecimal() and length.isascii() else BODY_MAX
        if len(self._refusal_body) < wanted and not eof:
            return
        try:
            body = json.loads(self._refusal_body[:BODY_MAX])
        except (ValueError, RecursionError):
            body = None
        if not isinstance(body, dict) or "error" not in body:
            text = "the gateway does not upgrade the connection here"
            if status == 404:
                text = "there is nothing that has samples for others"
            body = {"error": text}
        raise refused(status, body, "GET", self._settings.place.path)

    # ---- frames ----

    def take(self, data: bytes) -> None:
        """Fills `frames` and `replies`. After a FrameError the connection is to be ended."""
        try:
            for message in self._reader.take(data):
                self._message(message)
        except frames.FrameError as error:
            self.say_goodbye(error.status, str(error))
            raise frames.FrameError(f"{self.where}: {error}", error.status) from None
        except ProtocolError as error:
            self.say_goodbye(frames.INVALID_DATA, str(error))
            raise ProtocolError(f"{self.where}: {error}") from None

    def _message(self, message: frames.Message) -> None:
        if self.ended is not None:
            return  # what comes behind a close counts no more
        if message.opcode == frames.PING:
            # The last one is enough: RFC 6455, 5.5.3.
            try:
                self.replies.pop()
            except IndexError:
                pass  # there was none
            self.replies.append(frames.write_frame(frames.PONG, message.data))
        elif message.opcode == frames.CLOSE:
            self.status = message.status
            self.ended = message.reason or f"status {message.status}"
            self.say_goodbye(frames.NORMAL if message.status == frames.NO_STATUS else
                             message.status)
        elif message.opcode != frames.PONG:
            if (message.opcode == frames.BINARY) != self._codec.binary:
                kind = "binary" if message.opcode == frames.BINARY else "text"
                raise ProtocolError(f"a {kind} frame, where the format is "
                                    f"{self._settings.format}")
            samples = self._codec.decode(message.data, self._settings.receives)
            if samples:
                self.frames.append(samples)

    def say_goodbye(self, status: int = frames.NORMAL, reason: str = "") -> None:
        """Once."""
        if not self._said_goodbye:
            self._said_goodbye = True
            self.replies.append(frames.write_close(status, reason))

    def end(self) -> Exception | None:
        """Why nothing more comes: None, the gateway has closed as it should."""
        if self.ended is None:
            return Unreachable(f"{self.where}: the connection ended without a word")
        if self.status in (frames.NORMAL, 1001, frames.NO_STATUS):
            return None
        return Closed(f"{self.where}: the gateway has closed with status {self.status}: "
                      f"{self.ended}", self.status, self.ended)

    def encode(self, samples: Sample | Sequence[Sample]) -> bytes:
        if isinstance(samples, Sample):
            samples = [samples]
        payload = self._codec.encode(samples, self._settings.sends)
        return frames.write_frame(frames.BINARY if self._codec.binary else frames.TEXT, payload)
