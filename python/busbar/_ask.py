# SPDX-License-Identifier: BSD-2-Clause
"""The two ways on which requests go: HTTP (busbar-http(7)), and the control socket of this
host (busbar-ctl(1)), one JSON object on each line."""

from __future__ import annotations

import http.client
import json
import os
import select
import socket
import threading
from typing import Any, NamedTuple, Optional

from ._errors import Error, ProtocolError, TimedOut, Unreachable
from ._stream import Access, Deadline, Place

ANSWER_MAX = 64 << 20
PREFIX = "/api/v2"
_WAIT_MAX_S = 60
_CHUNK = 1 << 16
_UNKNOWN = "whether it was carried out is not known"


class Answer(NamedTuple):
    """To one request."""

    status: int
    type: str  # "application/json", "image/svg+xml", ...
    body: Any  # what the JSON says; bytes of another type
    location: Optional[str] = None  # of a job


def parse_json(text: bytes, where: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ProtocolError(f"{where}: the answer is no JSON: {error}") from None


class Http:
    """One connection, which is kept between requests. Several threads take turns."""

    def __init__(self, place: Place, access: Access, timeout: float | None) -> None:
        self.place = place
        self.where = ("https" if place.tls else "http") + "://" + place.authority
        self._access = access
        self._timeout = timeout
        self._lock = threading.Lock()
        self._connection: http.client.HTTPConnection | None = None

    def close(self) -> None:
        with self._lock:
            self._drop()

    def _drop(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _connect(self, deadline: Deadline) -> http.client.HTTPConnection:
        c: http.client.HTTPConnection
        left = deadline.left(f"{self.where}: no connection")
        if self.place.tls:
            c = http.client.HTTPSConnection(self.place.host, self.place.port, timeout=left,
                                            context=self._access.context)
        else:
            c = http.client.HTTPConnection(self.place.host, self.place.port, timeout=left)
        try:
            c.connect()
        except TimeoutError:
            raise deadline.over(f"{self.where}: no connection") from None
        except OSError as error:
            raise Unreachable(f"{self.where}: {error}") from error
        return c

    def _ready(self, deadline: Deadline) -> http.client.HTTPConnection:
        """The kept connection, unless the server has closed it meanwhile."""
        c = self._connection
        if c is not None and (c.sock is None or select.select([c.sock], [], [], 0)[0]):
            self._drop()
            c = None
        if c is None:
            c = self._connection = self._connect(deadline)
        return c

    def ask(self, method: str, path: str, body: Any, accept: str | None,
            at_once: bool = False) -> Answer:
        headers = {"Accept": accept or "application/json", **self._access.headers()}
        data = None
        if body is not None:
            data = json.dumps(body, allow_nan=False).encode()
            headers["Content-Type"] = "application/json"
        if method == "POST":
            wait = _WAIT_MAX_S if self._timeout is None else self._timeout / 2
            headers["Prefer"] = "respond-async" if at_once else (
                f"wait={max(1, min(_WAIT_MAX_S, int(wait)))}")
            headers["Content-Length"] = str(len(data or b""))
        what = f"{self.where}: {method} {path}"
        deadline = Deadline(self._timeout)
        with self._lock:
            try:
                return self._exchange(method, path, data, headers, deadline, what)
            except BaseException:
                self._drop()  # nobody knows what would come next
                raise

    def _exchange(self, method: str, path: str, data: bytes | None, headers: dict[str, str],
                  deadline: Deadline, what: str) -> Answer:
        c = self._ready(deadline)
        known = "" if method == "GET" else "; " + _UNKNOWN
        try:
            c.sock.settimeout(deadline.left(what + ": no answer"))
            c.request(method, PREFIX + path, data, headers)
            response = c.getresponse()
            body = self._read(response, c, deadline, what)
        except TimedOut:
            raise
        except TimeoutError:
            raise TimedOut(f"{what}: no answer within {self._timeout:g} s{known}") from None
        except http.client.IncompleteRead:
            raise Unreachable(f"{what}: the connection ended within the answer{known}") from None
        except (http.client.RemoteDisconnected, ConnectionError) as error:
            raise Unreachable(f"{what}: {error}{known}") from None
        except http.client.HTTPException as error:
            raise ProtocolError(f"{what}: no HTTP ({type(error).__name__}: {error})") from None
        except OSError as error:
            raise Unreachable(f"{what}: {error}{known}") from error
        kind = (response.getheader("Content-Type") or "").split(";")[0].strip().lower()
        location = response.getheader("Location")
        if response.will_close:
            self._drop()
        if kind == "application/json":
            return Answer(response.status, kind, parse_json(body, what), location)
        return Answer(response.status, kind, body, location)

    def _read(self, response: http.client.HTTPResponse, c: http.client.HTTPConnection,
              deadline: Deadline, what: str) -> bytes:
        parts: list[bytes] = []
        total = 0
        while True:
            left = deadline.left(what + ": the answer does not end")
            if c.sock is not None:
                c.sock.settimeout(left)
            part = response.read1(_CHUNK)
            if not part:
                break
            total += len(part)
            if total > ANSWER_MAX:
                raise ProtocolError(f"{what}: the answer is longer than {ANSWER_MAX >> 20} MiB")
            parts.append(part)
        # read1() does not say so itself.
        if response.length:
            raise http.client.IncompleteRead(b"", response.length)
        response.close()  # or the connection would not take the next request
        return b"".join(parts)


class Local:
    """The control socket. Several threads take turns."""

    def __init__(self, path: str, timeout: float | None) -> None:
        self.where = path
        name = os.fsencode(path)
        if not name or len(name) > 107:
            raise ValueError(f"{path!r}: expected the path of a socket, 1 to 107 bytes long")
        self._address = b"\0" + name[1:] if name.startswith(b"@") else name
        self._timeout = timeout
        self._lock = threading.Lock()
        self._socket: socket.socket | None = None
        self._number = 0

    def close(self) -> None:
        with self._lock:
            self._drop()

    def _drop(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def _connect(self, deadline: Deadline) -> socket.socket:
        s = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            s.settimeout(deadline.left(f"{self.where}: no connection"))
            s.connect(self._address)
        except TimeoutError:
            s.close()
            raise deadline.over(f"{self.where}: no connection") from None
        except OSError as error:
            s.close()
            raise Unreachable(f"{self.where}: {error.strerror}; is the gateway running with this "
                              "control socket?") from error
        return s

    def _ready(self, deadline: Deadline) -> socket.socket:
        if self._socket is not None and select.select([self._socket], [], [], 0)[0]:
            self._drop()
        if self._socket is None:
            self._socket = self._connect(deadline)
        return self._socket

    def ask(self, method: str, path: str, body: Any, accept: str | None,
            at_once: bool = False) -> Answer:
        if at_once:
            raise Error("the control socket answers when a command is carried out; only HTTP "
                        "has jobs")
        what = f"{self.where}: {method} {path}"
        deadline = Deadline(self._timeout)
        with self._lock:
            self._number += 1
            request = {"method": method, "path": path, "id": self._number}
            if body is not None:
                request["body"] = body
            try:
                answer = self._exchange(json.dumps(request, allow_nan=False).encode() + b"\n", deadline, what,
                                        "" if method == "GET" else "; " + _UNKNOWN)
                return self._answer(parse_json(answer, what), what)
            except BaseException:
                self._drop()
                raise

    def _exchange(self, line: bytes, deadline: Deadline, what: str, known: str) -> bytes:
        s = self._ready(deadline)
        parts: list[bytes] = []
        total = 0
        try:
            s.settimeout(deadline.left(what + ": no answer"))
            s.sendall(line)
            while not parts or not parts[-1].endswith(b"\n"):
                s.settimeout(deadline.left(f"{what}: no answer{known}"))
                part = s.recv(_CHUNK)
                if not part:
                    raise Unreachable(f"{what}: the gateway closed the connection{known}")
                total += len(part)
                if total > ANSWER_MAX:
                    raise ProtocolError(
                        f"{what}: the answer is longer than {ANSWER_MAX >> 20} MiB")
                parts.append(part)
        except (TimedOut, Unreachable):
            raise
        except TimeoutError:
            raise TimedOut(f"{what}: no answer within {self._timeout:g} s{known}") from None
        except OSError as error:
            raise Unreachable(f"{what}: {error.strerror}{known}") from error
        return b"".join(parts)

    def _answer(self, o: Any, what: str) -> Answer:
        if not isinstance(o, dict) or not isinstance(o.get("status"), int) or "body" not in o:
            raise ProtocolError(f"{what}: the answer has no status and body")
        # Without it: a line that was too long, or the gateway ends.
        if o.get("id", self._number) != self._number:
            raise ProtocolError(f"{what}: the answer is to another request")
        if "id" not in o:
            self._drop()
        body = o["body"]
        if o["status"] == 200 and isinstance(body, dict) and set(body) == {"type", "text"}:
            return Answer(200, body["type"].split(";")[0], body["text"].encode())
        return Answer(o["status"], "application/json", body)
