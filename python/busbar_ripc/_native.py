# SPDX-License-Identifier: BSD-2-Clause
"""The functions and structures of busbar/ripc.h, by ctypes; and how their errors are told.

Nothing here owns anything. Calls release the interpreter's lock, so that other threads run
while one waits.
"""

from __future__ import annotations

import ctypes
import ctypes.util
import errno
import os
from ctypes import POINTER, byref, c_bool, c_char_p, c_int, c_size_t, c_uint, c_void_p
from ctypes import c_uint16, c_uint32, c_uint64

ITEMS_MAX = 32
RETURNS_MAX = 16
ID_DRAWN = 0x80000000
ALWAYS = 0xFFFFFFFF  # UINT_MAX, of claim_ms and poll_us


class Config(ctypes.Structure):
    _fields_ = [
        ("address", c_char_p),
        ("resolver", c_char_p),
        ("resolver_port", c_uint16),
        ("secret_file", c_char_p),
        ("short_by", c_int),
        ("resolve_timeout_ms", c_uint),
        ("connect_timeout_ms", c_uint),
        ("idle_close_ms", c_uint),
        ("claim_ms", c_uint),
        ("poll_us", c_uint),
        ("connections_max", c_uint),
        ("queue_max", c_uint),
        ("pool_bytes_max", c_size_t),
        ("message_bytes_max", c_size_t),
    ]


class Item(ctypes.Structure):
    _fields_ = [("data", c_void_p), ("bytes", c_size_t)]


class RawMessage(ctypes.Structure):
    _fields_ = [
        ("sender", c_uint32),
        ("is_long", c_bool),
        ("count", c_uint),
        ("items", Item * ITEMS_MAX),
        ("returned", c_uint32),
        ("private_data", c_void_p),
    ]


class RawToken(ctypes.Structure):
    _fields_ = [("number", c_uint64)]


COUNTERS = (
    "short_sent short_received short_dropped long_sent long_received long_failed bytes_pushed"
    " bytes_pulled registrations registered_bytes pool_bytes copies connects connections"
    " connect_failures refused resolves resolve_failures bad_packets unasked_replies unauthentic"
).split()


class RawCounters(ctypes.Structure):
    _fields_ = [(name, c_uint64) for name in COUNTERS]


class Error(OSError):
    """A call has failed: `errno` is the reason, `strerror` the library's sentence."""


class TimedOut(Error, TimeoutError):
    """The time of the call is over."""


class NothingThere(Error, BlockingIOError):
    """No message with a time of 0, or the receiver does not keep up."""


class Reset(Error, ConnectionResetError):
    """The peer died or left: whether the message has arrived is not known."""


class Refused(Error, ConnectionRefusedError):
    """The peer refuses a connection."""


_KINDS: dict[int, type[Error]] = {
    errno.ETIMEDOUT: TimedOut,
    errno.EAGAIN: NothingThere,
    errno.ECONNRESET: Reset,
    errno.ECONNREFUSED: Refused,
}


def make_error(number: int, sentence: str) -> Error:
    """The exception for a positive errno value."""
    return _KINDS.get(number, Error)(number, sentence)


def _load() -> ctypes.CDLL:
    named = os.environ.get("BUSBAR_RIPC_LIBRARY")
    try:
        return ctypes.CDLL(named or "libbusbar-ripc.so.0")
    except OSError as error:
        raise ImportError(
            f"busbar_ripc: {error}; install busbar, or let BUSBAR_RIPC_LIBRARY name the library"
        ) from error


lib = _load()

_Items = POINTER(Item)
for _name, _result, _arguments in (
    ("ripc_open", c_int, [POINTER(Config), POINTER(c_void_p)]),
    ("ripc_close", None, [c_void_p]),
    ("ripc_service_open", c_int, [c_void_p, c_uint32, c_char_p, POINTER(c_void_p)]),
    ("ripc_service_close", None, [c_void_p]),
    ("ripc_service_id", c_uint32, [c_void_p]),
    ("ripc_service_fd", c_int, [c_void_p]),
    ("ripc_find", c_int, [c_void_p, c_char_p, c_int, POINTER(c_uint32)]),
    ("ripc_alloc", c_void_p, [c_void_p, c_size_t]),
    ("ripc_free", c_int, [c_void_p, c_void_p]),
    ("ripc_memory_register", c_int, [c_void_p, c_void_p, c_size_t]),
    ("ripc_memory_unregister", c_int, [c_void_p, c_void_p]),
    ("ripc_trim", None, [c_void_p, c_size_t]),
    ("ripc_short_max", c_size_t, [c_void_p, c_uint]),
    ("ripc_send_short", c_int, [c_void_p, c_uint32, _Items, c_uint, _Items, c_uint]),
    (
        "ripc_send_long",
        c_int,
        [c_void_p, c_uint32, _Items, c_uint, _Items, c_uint, POINTER(RawToken)],
    ),
    ("ripc_sent", c_int, [c_void_p, RawToken, c_int]),
    ("ripc_returns_revoke", c_int, [c_void_p, c_uint32, _Items, c_uint]),
    ("ripc_receive", c_int, [c_void_p, POINTER(RawMessage), c_int]),
    ("ripc_release", None, [POINTER(RawMessage)]),
    ("ripc_counters", None, [c_void_p, POINTER(RawCounters)]),
    ("ripc_error", c_char_p, []),
):
    _function = getattr(lib, _name)
    _function.restype = _result
    _function.argtypes = _arguments


def sentence() -> str:
    """What the last error of this thread was."""
    text: bytes = lib.ripc_error()
    return text.decode(errors="replace")


def check(result: int) -> int:
    """A result of the library; raises if it is an error."""
    if result < 0:
        raise make_error(-result, sentence())
    return result


# ---- memory of Python objects ----


class _PyBuffer(ctypes.Structure):
    # Py_buffer of the stable interface (PEP 3118).
    _fields_ = [
        ("buf", c_void_p),
        ("obj", ctypes.py_object),
        ("len", ctypes.c_ssize_t),
        ("itemsize", ctypes.c_ssize_t),
        ("readonly", c_int),
        ("ndim", c_int),
        ("format", c_char_p),
        ("shape", c_void_p),
        ("strides", c_void_p),
        ("suboffsets", c_void_p),
        ("internal", c_void_p),
    ]


_get_buffer = ctypes.pythonapi.PyObject_GetBuffer
_get_buffer.argtypes = [ctypes.py_object, POINTER(_PyBuffer), c_int]
_get_buffer.restype = c_int
_release_buffer = ctypes.pythonapi.PyBuffer_Release
_release_buffer.argtypes = [POINTER(_PyBuffer)]
_release_buffer.restype = None
_WRITABLE = 1


class Pinned:
    """The memory of a contiguous bytes-like object, which neither moves nor goes meanwhile."""

    __slots__ = ("_view",)

    def __init__(self, source: object, writable: bool = False) -> None:
        self._view: _PyBuffer | None = None
        view = _PyBuffer()
        _get_buffer(source, byref(view), _WRITABLE if writable else 0)  # raises by itself
        self._view = view

    @property
    def address(self) -> int:
        assert self._view is not None
        return self._view.buf or 0

    @property
    def nbytes(self) -> int:
        assert self._view is not None
        return int(self._view.len)

    def release(self) -> None:
        view, self._view = self._view, None
        if view is not None:
            _release_buffer(byref(view))

    def __del__(self) -> None:
        self.release()


def view_of(address: int, nbytes: int, owner: object) -> memoryview:
    """Memory of the library without a copy. `owner` lives as long as the view and all views
    that were made of it."""
    if not nbytes:
        return memoryview(bytearray())
    array = (ctypes.c_ubyte * nbytes).from_address(address)
    array.owner = owner  # type: ignore[attr-defined]
    return memoryview(array).cast("B")
