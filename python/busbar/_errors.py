# SPDX-License-Identifier: BSD-2-Clause
"""What can go wrong. Every exception that the package raises on purpose is an Error, but for
ValueError and TypeError where a call itself is wrong."""

from __future__ import annotations

from typing import Any


class Error(Exception):
    """Of this package."""


class Unreachable(Error, ConnectionError):
    """No connection could be made, or it broke. Where a command was on its way it is not known
    whether it was carried out; the text says so."""


class TimedOut(Error, TimeoutError):
    """The time of the call is over."""


class ProtocolError(Error):
    """The other side does not speak the protocol."""


class PeerGone(Error, ConnectionError):
    """The other side of a shared memory has closed it or died."""


class Closed(Error):
    """The gateway has ended a connection of samples for a reason: `status` is that of RFC 6455.
    1012: the signals have changed, connect again; 1008: it may not be; 1009: too long."""

    def __init__(self, text: str, status: int, reason: str) -> None:
        super().__init__(text)
        self.status = status
        self.reason = reason


class Refused(Error):
    """The gateway has answered with the status of an error, as in busbar-http(7)."""

    def __init__(self, status: int, text: str, method: str, path: str,
                 errors: list[str] | None = None, body: Any = None) -> None:
        self.status = status
        self.text = text
        self.method = method
        self.path = path
        #: Of a configuration: all that is wrong with it.
        self.errors = errors or []
        #: The whole answer.
        self.body = body
        lines = [f"{method} {path}: {text} (status {status})", *self.errors]
        super().__init__("\n  ".join(lines))


class NotAllowed(Refused):
    """401, 403 and 429: no token, a wrong one, or one of a role that may not do it."""


class NotFound(Refused):
    """404: no such request, node, path or job."""


class NotPossible(Refused):
    """409: not in the present state."""


class WrongConfiguration(Refused):
    """422: nothing was changed; `errors` has all that is wrong."""


class Unavailable(Refused):
    """503: the gateway ends, starts anew or is too busy; ask again later."""


_KINDS: dict[int, type[Refused]] = {
    401: NotAllowed,
    403: NotAllowed,
    429: NotAllowed,
    404: NotFound,
    409: NotPossible,
    422: WrongConfiguration,
    503: Unavailable,
}


def refused(status: int, body: Any, method: str, path: str) -> Refused:
    """The exception for an answer."""
    text, errors = "no reason was given", []
    if isinstance(body, dict):
        if isinstance(body.get("error"), str):
            text = body["error"]
        if isinstance(body.get("errors"), list):
            errors = [str(e) for e in body["errors"]]
    return _KINDS.get(status, Refused)(status, text, method, path, errors, body)
