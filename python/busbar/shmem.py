# SPDX-License-Identifier: BSD-2-Clause
"""Samples to and from a gateway on the same host through shared memory: libbusbar-shmem, the
other side of a node of the type shmem. See busbar-shmem(7).

    from busbar import shmem

    with shmem.Peer(write="/grid-in", read="/grid-out") as peer:
        for sample in peer:
            peer.write(step(sample.values))

The library is loaded when the first Peer is made; BUSBAR_SHMEM_LIBRARY names another file.
"""

from __future__ import annotations

import array
import ctypes
import enum
import errno
import os
import threading
import time
from ctypes import (POINTER, byref, c_char_p, c_double, c_int, c_int64, c_longlong, c_uint,
                    c_uint32, c_uint64, c_void_p)
from types import TracebackType
from typing import Any, Sequence, cast

from ._errors import Error, PeerGone, TimedOut
from ._samples import Sample, Value, check_types

__all__ = ["Block", "Mode", "Peer"]

_S = 1_000_000_000
# So often a call that waits looks for Ctrl-C.
_STEP_NS = 100_000_000
_LOOK_S = 0.01


class Mode(enum.IntEnum):
    """How this side waits."""

    PTHREAD = 0  # sleeps
    POLLING = 1  # spins, which takes a processor


_SEQUENCE, _ORIGIN, _RECEIVED, _DATA, _FRAME, _SIMULATION = (1 << i for i in range(6))
_CUT = 1 << 16


class _Options(ctypes.Structure):
    _fields_ = [("mode", c_uint32), ("queuelen", c_uint32), ("values", c_uint32),
                ("reserved", c_uint32), ("timeout_ns", c_int64)]


class _Time(ctypes.Structure):
    _fields_ = [("tv_sec", ctypes.c_long), ("tv_nsec", ctypes.c_long)]


class _Raw(ctypes.Structure):
    _fields_ = [("sequence", c_uint64), ("origin", _Time), ("received", _Time),
                ("flags", c_uint32), ("length", c_uint32), ("capacity", c_uint32),
                ("values", c_void_p)]


class _Complex(ctypes.Structure):
    _fields_ = [("re", ctypes.c_float), ("im", ctypes.c_float)]


class _Value(ctypes.Union):
    _fields_ = [("f", c_double), ("i", c_longlong), ("z", _Complex)]


_lib: ctypes.CDLL | None = None
_loading = threading.Lock()


def _library() -> ctypes.CDLL:
    global _lib
    with _loading:
        if _lib is not None:
            return _lib
        try:
            lib = ctypes.CDLL(os.environ.get("BUSBAR_SHMEM_LIBRARY") or "libbusbar-shmem.so.0",
                              use_errno=False)
        except OSError as error:
            raise Error(f"{error}; install busbar, or let BUSBAR_SHMEM_LIBRARY name the library"
                        ) from error
        for name, result, arguments in (
            ("open", c_int, [POINTER(c_void_p), c_char_p, c_char_p, POINTER(_Options)]),
            ("close", None, [c_void_p]),
            ("read", c_int, [c_void_p, POINTER(_Raw), c_uint, c_int64]),
            ("write", c_int, [c_void_p, POINTER(_Raw), c_uint]),
            ("wait", c_int, [c_void_p, c_int64]),
            ("read_values", c_int, [c_void_p, c_void_p, c_uint, c_int64]),
            ("write_values", c_int, [c_void_p, c_void_p, c_uint]),
            ("write_max", c_uint, [c_void_p]),
            ("read_max", c_uint, [c_void_p]),
            ("connected", c_int, [c_void_p]),
            ("interrupt", None, [c_void_p]),
            ("guard", None, []),
            ("broken", c_int, [c_void_p]),
            ("removed", c_int, [c_void_p]),
            ("error", c_char_p, []),
        ):
            function = getattr(lib, "busbar_shmem_" + name)
            function.restype, function.argtypes = result, arguments
        _lib = lib
        return lib


class Block:
    """Room for `count` samples of at most `values` values, which Peer.read_block() fills: the
    library copies values from the ring to where they stay. values(i) is a view of them."""

    def __init__(self, count: int, values: int) -> None:
        if not 0 < count <= 1 << 20 or not 0 < values <= 1 << 16:
            raise ValueError(f"a block of {count} samples of {values} values: expected 1 to "
                             f"{1 << 20} of 1 to {1 << 16}")
        self.count = 0  # samples that the last read has put in
        self.memory = memoryview(bytearray(count * values * 8))  # of all values
        self._raw = (_Raw * count)()
        self._capacity = values
        self._base = ctypes.addressof(ctypes.c_char.from_buffer(self.memory))
        self._prepare()

    def _prepare(self) -> None:
        for i, raw in enumerate(self._raw):
            raw.capacity = self._capacity
            raw.values = self._base + i * self._capacity * 8

    def _sample(self, i: int) -> Any:
        if not 0 <= i < self.count:
            raise IndexError(f"sample {i} of {self.count}")
        return self._raw[i]

    def values(self, i: int, format: str = "d") -> memoryview:
        """Of sample `i`, without a copy, until the next read. `format`: "d" reals, "q" integers
        and booleans, "f" complex numbers, two each."""
        raw = self._sample(i)
        start = i * self._capacity * 8
        return self.memory[start:start + raw.length * 8].cast(format)

    def sequence(self, i: int) -> int | None:
        raw = self._sample(i)
        return int(raw.sequence) if raw.flags & _SEQUENCE else None

    def origin_ns(self, i: int) -> int | None:
        raw = self._sample(i)
        return _ns(raw.origin) if raw.flags & _ORIGIN else None

    def cut(self, i: int) -> bool:
        """Whether it had more values than there was room for."""
        return bool(self._sample(i).flags & _CUT)

    def new_simulation(self, i: int) -> bool:
        """Whether it is the first one of a new writer."""
        return bool(self._sample(i).flags & _SIMULATION)


def _ns(t: Any) -> int:
    return int(t.tv_sec) * _S + int(t.tv_nsec)


def _take(raw: Any, values: Any, types: Sequence[str]) -> Sample:
    out: list[Value] = []
    for i in range(raw.length):
        kind = types[i] if i < len(types) else "float"
        v = values[i]
        out.append(v.f if kind == "float" else bool(v.i) if kind == "boolean" else
                   v.i if kind == "integer" else complex(v.z.re, v.z.im))
    return Sample(out, int(raw.sequence) if raw.flags & _SEQUENCE else None,
                  _ns(raw.origin) if raw.flags & _ORIGIN else None,
                  _ns(raw.received) if raw.flags & _RECEIVED else None,
                  bool(raw.flags & _FRAME), bool(raw.flags & _SIMULATION))


def _put(value: Value, to: Any, kind: str, i: int) -> None:
    try:
        if kind == "complex":
            z = complex(value)
            to.z.re, to.z.im = z.real, z.imag
        elif isinstance(value, complex):
            raise TypeError
        elif kind == "float":
            to.f = float(value)
        elif int(value) == value and -1 << 63 <= value < 1 << 63:
            to.i = int(value)
        else:
            raise TypeError
    except (TypeError, ValueError, OverflowError):
        raise ValueError(f"value {i}, {value!r}: the signal is {kind}") from None


class Peer:
    """Attached to the objects `write`, which this side writes, and `read`, which it reads: the
    node's in.name and out.name. One may be None.

    `queuelen` and `values` are of rings that this side creates: samples in one (512), and
    values of a sample at most (64). `timeout` is how long to wait for the node: 0 not at all,
    None for ever; a Peer may also be used before. `receives` and `sends` are the types of the
    signals, by default all float. One thread may read and one may write.

    Reading raises PeerGone once when the other side has closed or died and all that it wrote
    was taken; the next read waits for it to come back.
    """

    def __init__(
        self,
        write: str | None = None,
        read: str | None = None,
        *,
        mode: Mode = Mode.PTHREAD,
        queuelen: int = 0,
        values: int = 0,
        timeout: float | None = 0,
        receives: Sequence[str] | None = None,
        sends: Sequence[str] | None = None,
    ) -> None:
        self._pointer: c_void_p | None = None
        self._receives, self._sends = check_types(receives), check_types(sends)
        if write is None and read is None:
            raise ValueError("write, read: expected at least one name")
        for name, value in (("queuelen", queuelen), ("values", values)):
            if not 0 <= value < 1 << 32:
                raise ValueError(f"{name} {value}: expected a number of 32 bits")
        if timeout is not None and not 0 <= timeout < 1e6:
            raise ValueError(f"timeout {timeout}: expected seconds, or None")
        self.names = write, read
        self._lib = _library()
        # A handler of a signal may close it within a read of its own thread.
        self._reading, self._writing = threading.RLock(), threading.RLock()
        self._closing = False
        self._open(write, read, _Options(int(mode), queuelen, values, 0, 0), timeout)
        self._read_max = max(1, self._lib.busbar_shmem_read_max(self._pointer))
        self._read_values = (_Value * self._read_max)()
        self._write_values: Any = (_Value * 64)()

    def _open(self, write: str | None, read: str | None, options: _Options,
              timeout: float | None) -> None:
        out = c_void_p()
        names = [None if n is None else os.fsencode(n) for n in (write, read)]
        result = self._lib.busbar_shmem_open(byref(out), *names, byref(options))
        if result:
            text = self._lib.busbar_shmem_error().decode(errors="replace")
            raise Error(f"{write}, {read}: {text}") from OSError(-result, os.strerror(-result))
        self._pointer = out
        # Here and not in the library, so that Ctrl-C ends it.
        until = None if timeout is None else time.monotonic() + timeout
        try:
            while timeout != 0 and not self.connected:
                if until is not None and time.monotonic() >= until:
                    raise TimedOut(f"{write}, {read}: the other side has not come within "
                                   f"{timeout:g} s")
                time.sleep(_LOOK_S)
        except BaseException:
            self.close()
            raise

    def _handle(self) -> c_void_p:
        if self._pointer is None or self._closing:
            raise ValueError("the shared memory was closed")
        return self._pointer

    def _check(self, result: int) -> int:
        if result >= 0:
            return result
        names = " and ".join(n for n in self.names if n)
        if result == -errno.ENOTCONN:
            raise PeerGone(f"{names}: the other side has closed or died")
        if result == -errno.ENOTSUP:
            raise ValueError(f"{names}: opened without a name for this direction")
        if result == -errno.EMSGSIZE:
            raise ValueError(f"{names}: a sample has more values than the {self.write_max} that "
                             "the ring takes")
        raise Error(f"{names}: {os.strerror(-result)}") from OSError(-result,
                                                                     os.strerror(-result))

    # ---- reading ----

    def _steps(self, timeout: float | None, call: Any) -> int:
        """Calls call(nanoseconds) until it gives something, for at most `timeout` seconds."""
        until = None if timeout is None else time.monotonic_ns() + max(0, int(timeout * _S))
        with self._reading:
            while True:
                handle = self._handle()
                left = _STEP_NS
                if until is not None:
                    left = max(0, min(left, until - time.monotonic_ns()))
                result = call(handle, left)
                if result == -errno.EINTR:
                    self._handle()
                    return 0
                if result or until is not None and time.monotonic_ns() >= until:
                    return self._check(result)

    def read(self, timeout: float | None = None) -> Sample | None:
        """The next sample; None when none has come within `timeout` seconds (0: does not wait,
        None: for ever), or by interrupt()."""
        raw = _Raw(capacity=self._read_max, values=ctypes.addressof(self._read_values))
        if not self._steps(timeout, lambda h, ns: self._lib.busbar_shmem_read(
                h, byref(raw), 1, ns)):
            return None
        return _take(raw, self._read_values, self._receives)

    def read_into(self, memory: Any, timeout: float | None = None) -> int:
        """The values of the next sample, as reals, into a writable array of them (array("d"),
        an array of numpy): the library copies from the ring to there, and nobody else does.
        How many were put in; 0 as read() gives None."""
        view = memoryview(memory)
        if view.readonly or view.format != "d" or not view.c_contiguous or not view.nbytes:
            raise ValueError("expected a writable, contiguous array of reals of 64 bits")
        flat = view.cast("B")
        place = ctypes.addressof(ctypes.c_char.from_buffer(flat))
        return self._steps(timeout, lambda h, ns: self._lib.busbar_shmem_read_values(
            h, place, view.nbytes // 8, ns))

    def read_block(self, block: Block, timeout: float | None = None) -> int:
        """As many samples as are there and fit, at least one; how many, 0 as read() gives
        None."""
        block.count = 0
        block._prepare()
        block.count = self._steps(timeout, lambda h, ns: self._lib.busbar_shmem_read(
            h, block._raw, len(block._raw), ns))
        return block.count

    def wait(self, timeout: float | None = None) -> bool:
        """Sleeps until a read may find something, whatever the mode."""
        return bool(self._steps(timeout, self._lib.busbar_shmem_wait))

    def interrupt(self) -> None:
        """Lets a read that waits, or the next one that would, return. From any thread."""
        self._lib.busbar_shmem_interrupt(self._handle())

    def __iter__(self) -> Peer:
        return self

    def __next__(self) -> Sample:
        """Ends when the other side has closed, or by interrupt()."""
        try:
            sample = self.read()
        except PeerGone:
            raise StopIteration from None
        except ValueError:
            if not self._closing:
                raise
            raise StopIteration from None
        if sample is None:
            raise StopIteration
        return sample

    # ---- writing ----

    def write(self, what: Sample | Sequence[Value]) -> bool:
        """Writes one sample; never waits. False: the ring is full. A sequence of values is
        numbered and stamped. PeerGone when nobody is there to read."""
        if not isinstance(what, Sample):
            if not self._sends:
                return self._write_reals(what)
            what = Sample.now(what)
        with self._writing:
            handle = self._handle()
            count = len(what.values)
            if count > 1 << 16:
                raise ValueError(f"{count} values; a sample has at most {1 << 16}")
            if len(self._write_values) < count:
                self._write_values = (_Value * count)()
            for i, v in enumerate(what.values):
                _put(v, self._write_values[i],
                     self._sends[i] if i < len(self._sends) else "float", i)
            raw = _Raw(length=count, flags=_DATA if count else 0,
                       values=ctypes.addressof(self._write_values))
            _head(raw, what)
            return self._check(self._lib.busbar_shmem_write(handle, byref(raw), 1)) > 0

    def _write_reals(self, values: Sequence[Value]) -> bool:
        reals = _reals(values)
        memory = (c_double * len(reals)).from_buffer(reals)
        with self._writing:
            return self._check(self._lib.busbar_shmem_write_values(
                self._handle(), memory, len(reals))) > 0

    # ---- the other side ----

    @property
    def connected(self) -> bool:
        """The other side is attached to all objects, and lives."""
        return bool(self._lib.busbar_shmem_connected(self._handle()))

    @property
    def removed(self) -> bool:
        """An object has lost its name: a new peer does not find it. Close and open again."""
        return bool(self._lib.busbar_shmem_removed(self._handle()))

    @property
    def broken(self) -> bool:
        """Somebody has made an object smaller; see guard(). Close and open again."""
        return bool(self._lib.busbar_shmem_broken(self._handle()))

    @property
    def write_max(self) -> int:
        """Values that a sample may have at most, 0 without a name."""
        return int(self._lib.busbar_shmem_write_max(self._handle()))

    @property
    def read_max(self) -> int:
        return int(self._lib.busbar_shmem_read_max(self._handle()))

    def close(self) -> None:
        """Detaches; a read that waits in another thread ends with ValueError."""
        if self._pointer is None or self._closing:
            return
        self._closing = True
        self._lib.busbar_shmem_interrupt(self._pointer)
        with self._reading, self._writing:
            pointer, self._pointer = self._pointer, None
            self._lib.busbar_shmem_close(pointer)

    def __enter__(self) -> Peer:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        self.close()

    def __del__(self) -> None:
        if getattr(self, "_pointer", None) is not None:
            self.close()


def guard() -> None:
    """Installs a handler for SIGBUS, so that the process survives when another program makes an
    object smaller that is in use; Peer.broken tells. See busbar-shmem(7)."""
    _library().busbar_shmem_guard()


def _reals(values: Any) -> array.array[float]:
    if isinstance(values, array.array) and values.typecode == "d":
        return cast("array.array[float]", values)
    try:
        view = memoryview(values)
        if view.format == "d":
            return array.array("d", view.tobytes())
    except TypeError:
        pass
    try:
        return array.array("d", values)
    except TypeError:
        raise ValueError("expected reals; `sends` gives other types") from None


def _head(raw: Any, sample: Sample) -> None:
    for value, flag in ((sample.sequence, _SEQUENCE), (sample.origin_ns, _ORIGIN),
                        (sample.received_ns, _RECEIVED)):
        if value is not None:
            raw.flags |= flag
    raw.sequence = sample.sequence or 0
    raw.origin = _Time(*divmod(sample.origin_ns or 0, _S))
    raw.received = _Time(*divmod(sample.received_ns or 0, _S))
    raw.flags |= _FRAME * sample.new_frame | _SIMULATION * sample.new_simulation
