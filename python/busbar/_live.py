# SPDX-License-Identifier: BSD-2-Clause
"""Samples over a WebSocket, for programs with threads or with one."""

from __future__ import annotations

import select
import socket
import ssl
import threading
import time
from types import TracebackType
from typing import Callable, Sequence, TypeVar

from . import _frames as frames
from ._errors import Error, ProtocolError, TimedOut, Unreachable
from ._live_state import CHUNK, DEAF_S, QUIET_S, LiveState, make_settings
from ._samples import Sample
from ._stream import Deadline, PathLike

_T = TypeVar("_T")
_Socket = socket.socket  # an SSLSocket is one


class _Link:
    """A connection that one thread reads and another writes. The socket never waits; who waits
    does so in select(), outside of the lock, which TLS needs."""

    def __init__(self, sock: _Socket) -> None:
        self._socket = sock
        self._lock = threading.Lock()
        sock.setblocking(False)

    def _try(self, call: Callable[[], _T]) -> tuple[_T | None, bool]:
        """(what it gave, None: it has to wait; whether for writing)"""
        with self._lock:
            try:
                return call(), False
            except ssl.SSLWantWriteError:
                return None, True
            except (BlockingIOError, ssl.SSLWantReadError):
                return None, False

    def wait(self, for_writing: bool, seconds: float | None) -> bool:
        if self._socket.fileno() < 0:
            raise OSError("the connection was closed")
        poll = select.poll()
        poll.register(self._socket, select.POLLOUT if for_writing else select.POLLIN)
        return bool(poll.poll(None if seconds is None else int(seconds * 1000 + 0.999)))

    def receive(self, seconds: float | None) -> bytes | None:
        """None: nothing has come. b"": the end."""
        try:
            data, for_writing = self._try(lambda: self._socket.recv(CHUNK))
            if data is None and self.wait(for_writing, seconds):
                data, _ = self._try(lambda: self._socket.recv(CHUNK))
            return data
        except ssl.SSLEOFError:
            return b""

    def send(self, data: bytes, deadline: Deadline, what: str) -> None:
        view = memoryview(data)
        plain = not isinstance(self._socket, ssl.SSLSocket)
        while view:
            sent, for_writing = self._try(lambda: self._socket.send(view))
            if sent is None:
                self.wait(for_writing or plain, deadline.left(what))
            else:
                view = view[sent:]

    def close(self) -> None:
        with self._lock:
            try:
                self._socket.shutdown(socket.SHUT_RDWR)  # who waits for it wakes
            except OSError:
                pass  # it has ended
            self._socket.close()


class Live:
    """Samples to and from a node of the type websocket, at ws://HOST[:PORT]/NODE[.FORMAT] (or
    wss://).

        with Live("ws://127.0.0.1:8080/screen.json") as live:
            for sample in live:
                print(sample.sequence, sample.values)

    `format` is villas.web or json, by default that of the URL. `receives` and `sends` are the
    types of the signals (float, integer, boolean, complex), which villas.web does not tell;
    Gateway.live() asks the gateway for them. `token` to `context` are those of Gateway.
    `timeout` is for connecting and for sending, in seconds. A message that is longer than
    `message_max` bytes ends the connection.

    One thread may receive and others send. A gateway that says nothing is asked now and then
    whether it is there; if it does not answer, receiving raises Unreachable.
    """

    def __init__(
        self,
        url: str,
        *,
        format: str | None = None,
        receives: Sequence[str] | None = None,
        sends: Sequence[str] | None = None,
        token: str | None = None,
        token_file: PathLike | None = None,
        ca: PathLike | None = None,
        cert: PathLike | None = None,
        key: PathLike | None = None,
        context: ssl.SSLContext | None = None,
        timeout: float | None = 30,
        message_max: int = 4 << 20,
    ) -> None:
        settings = make_settings(url, format, receives, sends, token, token_file, ca, cert, key,
                                 context, timeout, message_max)
        self._state = LiveState(settings)
        self._timeout = timeout
        self._sending = threading.Lock()
        self._closed = False
        self._quiet_s, self._deaf_s = QUIET_S, DEAF_S
        self._rest: list[Sample] = []  # of the iterator: in reverse order
        deadline = Deadline(timeout)
        self._link = self._connect(settings.place.host, settings.place.port,
                                   settings.access.context, deadline)
        try:
            self._shake(deadline)
        except BaseException:
            if self._state.open:
                self.close()  # it is told why
            self._link.close()
            raise

    def _connect(self, host: str, port: int, context: ssl.SSLContext | None,
                 deadline: Deadline) -> _Link:
        where = self._state.where
        sock: _Socket | None = None
        try:
            sock = socket.create_connection(
                (host, port), timeout=deadline.left(f"{where}: no connection"))
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if context is not None:
                sock.settimeout(deadline.left(f"{where}: no connection"))
                sock = context.wrap_socket(sock, server_hostname=host)
            return _Link(sock)
        except Error:
            raise
        except OSError as error:
            if sock is not None:
                sock.close()
            if isinstance(error, TimeoutError):
                raise deadline.over(f"{where}: no connection") from None
            raise Unreachable(f"{where}: {error}") from error

    def _shake(self, deadline: Deadline) -> None:
        what = f"{self._state.where}: no answer"
        try:
            self._link.send(self._state.request, deadline, what)
            while not self._state.open:
                data = self._link.receive(deadline.left(what))
                if data is not None:
                    self._state.take_answer(data, eof=not data)
            self._reply()
        except Error:
            raise
        except OSError as error:
            raise Unreachable(f"{self._state.where}: {error}") from error

    # ---- receiving ----

    def receive(self, timeout: float | None = None) -> list[Sample]:
        """The samples of the next frame: at least one, or none once the gateway has closed the
        connection as it should. TimedOut if none comes within `timeout` seconds; 0 does not
        wait."""
        until = None if timeout is None else time.monotonic() + timeout
        heard, asked = time.monotonic(), False
        while True:
            if self._state.frames:
                return self._state.frames.popleft()
            if self._closed or self._state.ended is not None:
                return self._end()
            now = time.monotonic()
            patience = self._quiet_s + (self._deaf_s if asked else 0) - (now - heard)
            if patience <= 0 and asked:
                self.close()
                raise Unreachable(f"{self._state.where}: the gateway does not answer any more")
            if patience <= 0:
                self._reply(frames.write_frame(frames.PING, b""))
                asked = True
                continue
            left = patience if until is None else min(patience, max(0.0, until - now))
            data = self._take(left)
            if data:
                heard, asked = time.monotonic(), False
            elif data is None and until is not None and time.monotonic() >= until and (
                    not self._state.frames):
                raise TimedOut(f"{self._state.where}: no sample within {timeout:g} s")

    def _take(self, seconds: float) -> bytes | None:
        """Hears what there is, and answers it."""
        try:
            data = self._link.receive(seconds)
            if data:
                self._state.take(data)
        except ProtocolError:
            self.close()
            raise
        except OSError as error:
            if self._closed:
                return b""
            self.close()
            raise Unreachable(f"{self._state.where}: {error}") from error
        if data == b"":
            self._finish()
        self._reply()
        return data

    def _end(self) -> list[Sample]:
        error = self._state.end() if self._state.ended is not None else None
        self.close()
        if error is not None:
            raise error
        return []

    def _finish(self) -> None:
        """The connection has ended."""
        error = self._state.end()
        closed = self._closed
        self.close()
        if error is not None and not closed:
            raise error

    def _reply(self, frame: bytes | None = None) -> None:
        """Sends what is to be replied, unless another thread sends: that one does it then. So
        who receives is not held up by a gateway that waits for him."""
        if frame is not None:
            self._state.replies.append(frame)
        while self._state.replies and self._sending.acquire(blocking=False):
            try:
                self._send_replies(Deadline(self._timeout))
            except (OSError, Error):
                return  # receiving tells
            finally:
                self._sending.release()

    def _send_replies(self, deadline: Deadline) -> None:
        while self._state.replies:
            try:
                frame = self._state.replies.popleft()
            except IndexError:
                return
            self._link.send(frame, deadline, f"{self._state.where}: nothing was taken")

    def __iter__(self) -> Live:
        return self

    def __next__(self) -> Sample:
        if not self._rest:
            self._rest = self.receive()[::-1]
        if not self._rest:
            raise StopIteration
        return self._rest.pop()

    # ---- sending ----

    def send(self, samples: Sample | Sequence[Sample]) -> None:
        """Sends them in one frame: the node reads them. Waits while the gateway takes nothing;
        after TimedOut the connection is closed, as half a frame may have gone."""
        frame = self._state.encode(samples)
        if self._closed:
            raise Unreachable(f"{self._state.where}: the connection was closed")
        deadline = Deadline(self._timeout)
        with self._sending:
            try:
                self._link.send(frame, deadline, f"{self._state.where}: nothing was taken")
                self._send_replies(deadline)
            except OSError as error:
                self._closed = True
                self._link.close()
                if isinstance(error, Error):
                    raise
                raise Unreachable(f"{self._state.where}: {error}") from error
        self._reply()

    def close(self) -> None:
        """Says goodbye, and does not wait for the answer."""
        if self._closed:
            return
        self._closed = True
        self._state.say_goodbye()
        if self._sending.acquire(timeout=1):
            try:
                self._send_replies(Deadline(1))
            except (OSError, Error):
                pass
            finally:
                self._sending.release()
        self._link.close()

    def __enter__(self) -> Live:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        self.close()
