# SPDX-License-Identifier: BSD-2-Clause
"""Addresses, TLS and time limits, for all ways to a gateway."""

from __future__ import annotations

import os
import ssl
import time
from typing import NamedTuple, Optional, Union
from urllib.parse import urlsplit

from ._errors import Error, TimedOut

PathLike = Union[str, "os.PathLike[str]"]


class Place(NamedTuple):
    """Where an URL leads."""

    tls: bool
    host: str
    port: int
    path: str  # with the query; "" or "/...", percent-encoded

    @property
    def authority(self) -> str:
        return (f"[{self.host}]" if ":" in self.host else self.host) + f":{self.port}"


def parse_url(url: str, plain: str, secure: str) -> Place:
    """`plain` and `secure` are the schemes: "http" and "https"."""
    expected = f"{url!r}: expected {plain}://HOST[:PORT] or {secure}://HOST[:PORT]"
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise ValueError(f"{expected}: {error}") from None
    if parts.scheme not in (plain, secure) or not parts.hostname:
        raise ValueError(expected)
    if parts.username is not None or parts.password is not None:
        raise ValueError(f"{expected}; a token is an argument of its own")
    path = parts.path + (f"?{parts.query}" if parts.query else "")
    if any(c <= " " or c > "~" for c in path):
        raise ValueError(f"{url!r}: blanks and characters beyond ASCII are percent-encoded")
    tls = parts.scheme == secure
    return Place(tls, parts.hostname, port or (443 if tls else 80), path)


class Access(NamedTuple):
    """What a client shows, and whom it trusts."""

    token: Optional[str] = None
    context: Optional[ssl.SSLContext] = None

    def headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.token}"} if self.token else {}


def make_access(tls: bool, token: str | None, token_file: PathLike | None, ca: PathLike | None,
                cert: PathLike | None, key: PathLike | None, context: ssl.SSLContext | None
                ) -> Access:
    if token_file is not None:
        if token is not None:
            raise ValueError("token and token_file: expected one of them")
        token = read_token(token_file)
    if token is not None and (not token or any(c <= " " or c > "~" for c in token)):
        raise ValueError("token: expected characters of ASCII without blanks")
    if not tls:
        for name, value in (("ca", ca), ("cert", cert), ("key", key), ("context", context)):
            if value is not None:
                raise ValueError(f"{name}: belongs to https and wss only")
        return Access(token)
    if context is None:
        try:
            context = ssl.create_default_context(cafile=None if ca is None else os.fspath(ca))
            if cert is not None:
                context.load_cert_chain(cert, key)
            elif key is not None:
                raise ValueError("key: belongs to cert")
        except (OSError, ssl.SSLError) as error:
            names = ", ".join(str(f) for f in (ca, cert, key) if f is not None)
            raise Error(f"certificates ({names}): {error}") from error
    elif ca is not None or cert is not None or key is not None:
        raise ValueError("context: has its own certificates, in place of ca, cert and key")
    return Access(token, context)


def read_token(path: PathLike) -> str:
    """The last word of the first line that is no comment, as busbar ctl reads it."""
    try:
        with open(path, encoding="ascii") as file:
            for line in file:
                words = line.split()
                if words and not words[0].startswith("#"):
                    return words[-1]
    except (OSError, UnicodeDecodeError) as error:
        raise Error(f"token_file {os.fspath(path)}: {error}") from error
    raise Error(f"token_file {os.fspath(path)}: no line has a token")


class Deadline:
    """A time limit of several steps; None: there is none."""

    def __init__(self, timeout: float | None) -> None:
        self.timeout = timeout
        self._until = None if timeout is None else time.monotonic() + timeout

    def left(self, what: str) -> float | None:
        """Seconds, more than 0; raises TimedOut otherwise."""
        if self._until is None:
            return None
        left = self._until - time.monotonic()
        if left <= 0:
            raise self.over(what)
        return left

    def over(self, what: str) -> TimedOut:
        return TimedOut(f"{what} within {self.timeout:g} s")


def check_timeout(timeout: float | None) -> None:
    if timeout is not None and not 0 < timeout < 1e6:
        raise ValueError(f"timeout {timeout}: expected a number of seconds above 0, or None")
