# SPDX-License-Identifier: BSD-2-Clause
"""Instances, their registered memory and their counters."""

from __future__ import annotations

import ctypes
import enum
import errno
import os
import threading
import weakref
from collections.abc import Callable
from ctypes import byref, c_uint32, c_void_p
from types import TracebackType
from typing import TYPE_CHECKING, NamedTuple

from . import _native
from ._native import check, lib

if TYPE_CHECKING:
    from typing_extensions import Buffer as BytesLike

    from ._service import Service


class Short(enum.IntEnum):
    """How short messages go."""

    DEFAULT = 0
    CONNECTION = 1
    DATAGRAM = 2


class Counters(NamedTuple):
    """What an instance has done; see ripc_counters(3)."""

    short_sent: int
    short_received: int
    short_dropped: int
    long_sent: int
    long_received: int
    long_failed: int
    bytes_pushed: int
    bytes_pulled: int
    registrations: int
    registered_bytes: int
    pool_bytes: int
    copies: int
    connects: int
    connections: int
    connect_failures: int
    refused: int
    resolves: int
    resolve_failures: int
    bad_packets: int
    unasked_replies: int
    unauthentic: int


class Core:
    """The library's instance. Closed when the last object that needs it has gone: services,
    buffers and received messages hold it."""

    def __init__(self, config: _native.Config) -> None:
        out = c_void_p()
        check(lib.ripc_open(byref(config), byref(out)))
        self.pointer = out
        self.pid = os.getpid()
        # At the end of the program in the reverse order of their making, so after these.
        self._finalizer = weakref.finalize(self, _in_process, self.pid, lib.ripc_close, out)

    def finalize(self, owner: object, function: Callable[..., object], *args: object
                 ) -> weakref.finalize:
        """Calls function(*args) once, when `owner` has gone or before; the instance remains
        open until then."""
        return weakref.finalize(owner, _in_process_of, self, function, *args)


def _in_process(pid: int, function: Callable[..., object], *args: object) -> None:
    # A child of fork() must not touch the parent's objects.
    if pid == os.getpid():
        function(*args)


def _in_process_of(core: Core, function: Callable[..., object], *args: object) -> None:
    _in_process(core.pid, function, *args)


class Buffer:
    """Registered memory of the library. Its memory goes back when it was freed, or has gone,
    and the last view of it has gone as well."""

    def __init__(self, core: Core, nbytes: int) -> None:
        pointer = lib.ripc_alloc(core.pointer, nbytes)
        if not pointer:
            raise _native.make_error(errno.ENOBUFS, _native.sentence())
        self.address: int = pointer
        self.nbytes = nbytes
        self.offered = False  # it is with the library, as a return buffer
        owner = _Owner()
        core.finalize(owner, lib.ripc_free, core.pointer, c_void_p(pointer))
        self._view: memoryview | None = _native.view_of(pointer, nbytes, owner)

    @property
    def view(self) -> memoryview:
        """All of it, to be read and written."""
        if self._view is None:
            raise ValueError("the buffer was freed")
        return self._view

    def free(self) -> None:
        """Gives it back. Not while it is offered as a return buffer: see Service.revoke()."""
        if self.offered:
            raise _native.make_error(
                errno.EBUSY, "the buffer is offered as a return buffer; revoke it first")
        self._view = None

    def __len__(self) -> int:
        return self.nbytes

    def __enter__(self) -> Buffer:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        if not self.offered:
            self.free()


class _Owner:
    """Lives as long as views of some memory do."""

    __slots__ = ("__weakref__",)


class Registration:
    """Memory of the program's own that the adapter knows: a writable bytes-like object, such as
    a bytearray or an array of numpy. It can not be resized meanwhile."""

    def __init__(self, core: Core, memory: BytesLike) -> None:
        self._core = core
        self._pinned = _native.Pinned(memory, writable=True)
        self.address = self._pinned.address
        self.nbytes = self._pinned.nbytes
        self.offered = False  # it is with the library, as a return buffer
        check(lib.ripc_memory_register(core.pointer, self.address, self.nbytes))
        self._finalizer = core.finalize(self, _unregister, core, self._pinned)

    @property
    def view(self) -> memoryview:
        """All of it, to be read and written."""
        if not self._finalizer.alive:
            raise ValueError("the memory was unregistered")
        return _native.view_of(self.address, self.nbytes, self._pinned)

    def unregister(self) -> None:
        """Raises Error with EBUSY while a message uses it."""
        if not self._finalizer.alive:
            return
        check(lib.ripc_memory_unregister(self._core.pointer, self.address))
        self._finalizer.detach()

    def __enter__(self) -> Registration:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        self.unregister()


# What the adapter still uses must not become other memory.
_kept: list[_native.Pinned] = []


def _unregister(core: Core, pinned: _native.Pinned) -> None:
    if lib.ripc_memory_unregister(core.pointer, pinned.address) == -errno.EBUSY:
        _kept.append(pinned)


def _text(value: str | os.PathLike[str] | None) -> bytes | None:
    return None if value is None else os.fsencode(value)


class Instance:
    """An adapter, with connections and memory. Each argument left out has its default, which
    an environment variable may change; see ripc_open(3)."""

    def __init__(
        self,
        *,
        address: str | None = None,
        resolver: str | None = None,
        resolver_port: int = 0,
        secret_file: str | os.PathLike[str] | None = None,
        short_by: Short = Short.DEFAULT,
        resolve_timeout_ms: int = 0,
        connect_timeout_ms: int = 0,
        idle_close_ms: int = 0,
        claim_ms: int = 0,
        poll_us: int = 0,
        connections_max: int = 0,
        queue_max: int = 0,
        pool_bytes_max: int = 0,
        message_bytes_max: int = 0,
    ) -> None:
        if not 0 <= resolver_port <= 65535:
            raise ValueError(f"resolver_port {resolver_port} is not 0 to 65535")
        config = _native.Config(
            _text(address), _text(resolver), resolver_port, _text(secret_file), int(short_by),
            resolve_timeout_ms, connect_timeout_ms, idle_close_ms, claim_ms, poll_us,
            connections_max, queue_max, pool_bytes_max, message_bytes_max)
        self._core: Core | None = Core(config)
        self._services: weakref.WeakSet[Service] = weakref.WeakSet()
        self._lock = threading.Lock()

    @property
    def core(self) -> Core:
        if self._core is None:
            raise ValueError("the instance was closed")
        if self._core.pid != os.getpid():
            raise ValueError("the instance is of the parent process; open another one")
        return self._core

    def close(self) -> None:
        """Closes its services. The adapter is let go when the last received message and buffer
        have gone as well."""
        with self._lock:
            services = list(self._services)
        for service in services:
            service.close()
        self._core = None

    def __enter__(self) -> Instance:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        self.close()

    def service(self, id: int = 0, name: str | None = None) -> Service:
        """Opens a service. id 0: drawn, or from the name."""
        from ._service import Service

        service = Service(self, id, name)
        with self._lock:
            self._services.add(service)
        return service

    def find(self, name: str, timeout: float | None = None) -> int:
        """The number of the service with this name; None: waits as configured."""
        out = c_uint32()
        ms = -1 if timeout is None else max(0, round(timeout * 1000))
        core = self.core
        check(lib.ripc_find(core.pointer, name.encode(), ms, byref(out)))
        return out.value

    def alloc(self, nbytes: int) -> Buffer:
        """Registered memory, not zeroed."""
        return Buffer(self.core, nbytes)

    def register(self, memory: BytesLike) -> Registration:
        """Memory of the program's own is sent from where it is and may be a return buffer."""
        return Registration(self.core, memory)

    def trim(self, keep_bytes: int = 0) -> None:
        """Gives memory that is kept for reuse back to the system."""
        core = self.core
        lib.ripc_trim(core.pointer, keep_bytes)

    def short_max(self, items: int = 1) -> int:
        """Longest short message of so many items, in bytes."""
        core = self.core
        return int(lib.ripc_short_max(core.pointer, items))

    def counters(self) -> Counters:
        raw = _native.RawCounters()
        core = self.core
        lib.ripc_counters(core.pointer, ctypes.byref(raw))
        return Counters(*(getattr(raw, name) for name in Counters._fields))
