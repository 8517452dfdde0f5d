# SPDX-License-Identifier: BSD-2-Clause
"""Services, and the messages that they send and receive."""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import errno
import threading
import time
from collections.abc import Iterator, Sequence
from ctypes import byref, c_void_p
from types import TracebackType
from typing import TYPE_CHECKING, NamedTuple, Union

from . import _native
from ._instance import Buffer, Core, Instance, Registration
from ._native import ITEMS_MAX, RETURNS_MAX, NothingThere, Pinned, TimedOut, check, lib

if TYPE_CHECKING:
    from typing_extensions import Buffer as BytesLike

    Items = Union[BytesLike, Buffer, Sequence[Union[BytesLike, Buffer]]]
    Return = Union[Buffer, Registration]

# A call of the library goes on after a signal: so often Ctrl-C is looked for.
_STEP_MS = 100
_REVOKED_AT_ONCE = 64


class _Offer(NamedTuple):
    to: int
    buffer: Return
    view: memoryview  # keeps the memory


class _Steps:
    """Milliseconds of the next wait, until the time is over."""

    def __init__(self, timeout: float | None) -> None:
        self._until = None if timeout is None else time.monotonic() + timeout

    def next(self) -> int:
        if self._until is None:
            return _STEP_MS
        left = self._until - time.monotonic()
        return max(0, min(_STEP_MS, -int(-left * 1000 // 1)))

    def over(self) -> bool:
        return self._until is not None and time.monotonic() >= self._until


class _Items:
    """An array of struct ripc_item over the memory of Python objects."""

    def __init__(self, sources: Items, most: int = ITEMS_MAX) -> None:
        if not isinstance(sources, (list, tuple)):
            sources = [sources]  # type: ignore[list-item]
        if len(sources) > most:
            raise _native.make_error(
                errno.EINVAL, f"{len(sources)} items; a message has at most {most}")
        self.pinned = [Pinned(s.view if isinstance(s, Buffer) else s) for s in sources]
        self.count = len(sources)
        self.array = (_native.Item * max(1, self.count))()
        for item, pinned in zip(self.array, self.pinned):
            item.data, item.bytes = pinned.address, pinned.nbytes

    def release(self) -> None:
        for pinned in self.pinned:
            pinned.release()


class _Received:
    """What gives the memory of a message back: lives as long as views of its items do."""

    def __init__(self, core: Core, raw: _native.RawMessage) -> None:
        core.finalize(self, lib.ripc_release, byref(raw))


class Message:
    """A received message. `items` are views of the memory in which the adapter has put it. That
    is given back by release() (or the end of a `with`), but not before the last view that a
    program has made of it has gone.

    A short message occupies one of 32 receives of its connection until then: copy what is to
    be kept (bytes(item)).
    """

    def __init__(self, core: Core, raw: _native.RawMessage,
                 returned: Sequence[_Offer | None]) -> None:
        owner = _Received(core, raw)
        self.sender: int = raw.sender  # number of the service
        self.is_long: bool = raw.is_long
        #: For each item the return buffer in which it lies, at its beginning, or None.
        self.returned: tuple[Return | None, ...] = tuple(
            offer.buffer if offer else None for offer in returned)
        self._items: tuple[memoryview, ...] | None = tuple(
            offer.view[: item.bytes] if offer
            else _native.view_of(item.data, item.bytes, owner)
            for item, offer in zip(raw.items, returned))

    @property
    def items(self) -> tuple[memoryview, ...]:
        if self._items is None:
            raise ValueError("the message was released")
        return self._items

    def release(self) -> None:
        self._items = None

    def __len__(self) -> int:
        return len(self.items)

    def __getitem__(self, index: int) -> memoryview:
        return self.items[index]

    def __enter__(self) -> Message:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        self.release()


class Token:
    """A long message that is on its way. What it sends must not be changed until it has ended,
    and is kept until then."""

    def __init__(self, service: Service, raw: _native.RawToken, items: _Items) -> None:
        self._service = service
        self._raw = raw
        self._items: _Items | None = items
        self._error: _native.Error | None = None
        self._lock = threading.RLock()

    def _look(self, ms: int) -> bool:
        with self._lock:
            if self._items is not None:
                with self._service.in_call() as pointer:
                    result = lib.ripc_sent(pointer, self._raw, ms)
                if result == -errno.EAGAIN:
                    return False
                if result < 0 and self._error is None:
                    self._error = _native.make_error(-result, _native.sentence())
                if self._items is not None:
                    self._items.release()
                self._items = None
                self._service.ended(self)
        if self._error is not None:
            raise self._error
        return True

    def abandon(self) -> None:
        """Its service was closed."""
        with self._lock:
            if self._items is not None:
                self._items.release()
                self._items = None
                self._error = _native.make_error(
                    errno.EBADF,
                    "the service was closed; whether the message has arrived is not known")
        self._service.ended(self)

    def done(self) -> bool:
        """Whether the receiver's side has all bytes. Raises if it will not arrive, or that is
        not known."""
        return self._look(0)

    def wait(self, timeout: float | None = None) -> None:
        """Until it is done; TimedOut."""
        steps = _Steps(timeout)
        while not self._look(steps.next()):
            if steps.over():
                raise _native.make_error(errno.ETIMEDOUT, "the message is on its way")


class Service:
    """A service: Instance.service() opens one."""

    def __init__(self, instance: Instance, id: int, name: str | None) -> None:
        if not 0 <= id <= 0xFFFFFFFF:
            raise ValueError(f"the number {id} is not 0 to 4294967295")
        if name is not None and "\0" in name:
            raise ValueError("a name has no NUL")
        self._core: Core = instance.core
        out = c_void_p()
        check(lib.ripc_service_open(self._core.pointer, id,
                                    None if name is None else name.encode(), byref(out)))
        self._finalizer = self._core.finalize(self, lib.ripc_service_close, out)
        self._open_pointer = out
        self.id: int = lib.ripc_service_id(out)
        self.name = name
        self._lock = threading.Condition()
        self._closed = False
        self._users: dict[int, int] = {}  # calls, by thread
        # Return buffers that are with the library, by address.
        self._offered: dict[int, list[_Offer]] = {}
        self._tokens: set[Token] = set()
        self._waiting: asyncio.Lock | None = None

    @contextlib.contextmanager
    def in_call(self) -> Iterator[c_void_p]:
        """The library's service, which is not closed meanwhile."""
        me = threading.get_ident()
        with self._lock:
            if self._closed:
                raise _native.make_error(errno.EBADF, "the service was closed")
            self._users[me] = self._users.get(me, 0) + 1
        try:
            yield self._open_pointer
        finally:
            with self._lock:
                self._users[me] -= 1
                if not self._users[me]:
                    del self._users[me]
                last = self._closed and not self._users
            if last:
                self._end()

    def _end(self) -> None:
        # Nobody may write into what will be the program's again.
        some = (_native.Item * _REVOKED_AT_ONCE)()
        for to in {offer.to for offers in self._offered.values() for offer in offers}:
            while lib.ripc_returns_revoke(self._open_pointer, to, some, len(some)) == len(some):
                pass
        self._finalizer()
        for token in list(self._tokens):
            token.abandon()
        with self._lock:
            for offers in self._offered.values():
                for offer in offers:
                    offer.buffer.offered = False
            self._offered.clear()
            self._lock.notify_all()

    def close(self) -> None:
        """Waits until other threads have left calls of it; their receives end with an Error
        (EBADF). What it has received remains."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            idle = not self._users
        if idle:
            self._end()
            return
        with self._lock:
            # Called by a signal's handler inside of a call: that one closes when it ends.
            while self._finalizer.alive and threading.get_ident() not in self._users:
                self._lock.wait()

    def __enter__(self) -> Service:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        self.close()

    # ---- sending ----

    def send_short(self, to: int, items: Items, returns: Sequence[Return] = ()) -> None:
        """Sends bytes-like objects in one packet, and offers `returns`. May be lost."""
        array = _Items(items)
        try:
            offers = self._offer(to, returns)
            try:
                with self.in_call() as pointer:
                    check(lib.ripc_send_short(pointer, to, array.array, array.count,
                                              offers, len(returns)))
            except BaseException:
                self._withdraw(returns)
                raise
        finally:
            array.release()

    def send_long_begin(self, to: int, items: Items, returns: Sequence[Return] = ()) -> Token:
        """Begins to send a message of any size, and offers `returns`."""
        array = _Items(items)
        raw = _native.RawToken()
        try:
            offers = self._offer(to, returns)
            try:
                with self.in_call() as pointer:
                    check(lib.ripc_send_long(pointer, to, array.array, array.count,
                                             offers, len(returns), byref(raw)))
            except BaseException:
                self._withdraw(returns)
                raise
        except BaseException:
            array.release()
            raise
        token = Token(self, raw, array)
        with self._lock:
            self._tokens.add(token)
        return token

    def send_long(self, to: int, items: Items, returns: Sequence[Return] = (),
                  timeout: float | None = None) -> None:
        """Likewise, and waits until the receiver's side has all bytes. After TimedOut it is
        still on its way."""
        self.send_long_begin(to, items, returns).wait(timeout)

    def send(self, to: int, items: Items, returns: Sequence[Return] = ()) -> None:
        """Short if it fits into a packet, long else."""
        try:
            self.send_short(to, items, returns)
        except _native.Error as error:
            if error.errno != errno.EMSGSIZE:
                raise
            self.send_long(to, items, returns)

    # ---- return buffers ----

    def _offer(self, to: int, returns: Sequence[Return]) -> ctypes.Array[_native.Item] | None:
        if not returns:
            return None
        if len(returns) > RETURNS_MAX:
            raise _native.make_error(
                errno.EINVAL, f"{len(returns)} return buffers; a message has at most {RETURNS_MAX}")
        array = (_native.Item * len(returns))()
        # Before they are sent: the answer may be faster than this thread.
        with self._lock:
            twice = len(set(map(id, returns))) < len(returns)
            if twice or any(buffer.offered for buffer in returns):
                raise _native.make_error(errno.EBUSY, "a return buffer is offered already")
            offers = [_Offer(to, buffer, buffer.view) for buffer in returns]
            for item, offer in zip(array, offers):
                item.data, item.bytes = offer.buffer.address, offer.buffer.nbytes
                offer.buffer.offered = True
                self._offered.setdefault(offer.buffer.address, []).append(offer)
        return array

    def _withdraw(self, returns: Sequence[Return]) -> None:
        with self._lock:
            for buffer in returns:
                for offer in self._offered.get(buffer.address, []):
                    if offer.buffer is buffer:
                        self._forget(offer)
                        break

    def _forget(self, offer: _Offer) -> None:
        address = offer.buffer.address
        # By identity: views compare their bytes.
        left = [o for o in self._offered[address] if o is not offer]
        offer.buffer.offered = False
        if left:
            self._offered[address] = left
        else:
            del self._offered[address]

    def _returned(self, sender: int, address: int) -> _Offer | None:
        with self._lock:
            for offer in self._offered.get(address, []):
                if offer.to == sender:
                    self._forget(offer)
                    return offer
        return None

    def revoke(self, to: int) -> list[Return]:
        """Takes back the return buffers that `to` has not used, and returns them; `to` cannot
        write into any from then on. Buffers of messages that still wait to be received come with
        these; others, whose connection has broken, when the service is closed."""
        back: list[Return] = []
        some = (_native.Item * _REVOKED_AT_ONCE)()
        count = len(some)
        while count == len(some):
            with self.in_call() as pointer:
                count = check(lib.ripc_returns_revoke(pointer, to, some, len(some)))
            for item in some[:count]:
                offer = self._returned(to, item.data)
                if offer is not None:
                    back.append(offer.buffer)
        return back

    # ---- receiving ----

    def receive(self, timeout: float | None = None) -> Message:
        """The next message. timeout in seconds, None: for ever. NothingThere with 0, TimedOut
        otherwise."""
        raw = _native.RawMessage()
        steps = _Steps(timeout)
        while True:
            with self.in_call() as pointer:
                result = lib.ripc_receive(pointer, byref(raw),
                                          0 if timeout == 0 else steps.next())
            if not result:
                return self._message(raw)
            if result != -errno.EAGAIN:
                raise _native.make_error(-result, _native.sentence())
            if timeout == 0:
                raise NothingThere(errno.EAGAIN, "no message is there")
            if steps.over():
                raise TimedOut(errno.ETIMEDOUT, f"no message within {timeout} s")

    def _message(self, raw: _native.RawMessage) -> Message:
        return Message(self._core, raw, [
            self._returned(raw.sender, raw.items[i].data) if raw.returned >> i & 1 else None
            for i in range(raw.count)])

    def fileno(self) -> int:
        """Readable when receive(0) has something: for select, selectors, asyncio. Call
        receive(0) until NothingThere before waiting."""
        with self.in_call() as pointer:
            return check(lib.ripc_service_fd(pointer))

    async def receive_async(self) -> Message:
        """The next message, without holding up the event loop. Several coroutines of one loop
        may wait."""
        if self._waiting is None:
            self._waiting = asyncio.Lock()
        async with self._waiting:
            fd = self.fileno()
            loop = asyncio.get_running_loop()
            while True:
                try:
                    return self.receive(0)
                except NothingThere:
                    pass
                readable: asyncio.Future[None] = loop.create_future()
                loop.add_reader(fd, lambda: readable.done() or readable.set_result(None))
                try:
                    await readable
                finally:
                    loop.remove_reader(fd)

    # ---- of tokens ----

    def ended(self, token: Token) -> None:
        with self._lock:
            self._tokens.discard(token)
