# SPDX-License-Identifier: BSD-2-Clause
"""Samples over a WebSocket, for asyncio."""

from __future__ import annotations

import asyncio
import ssl
from types import TracebackType
from typing import Sequence

from . import _frames as frames
from ._errors import Error, ProtocolError, TimedOut, Unreachable
from ._live_state import CHUNK, DEAF_S, QUIET_S, LiveState, Settings, make_settings
from ._samples import Sample
from ._stream import PathLike


class AsyncLive:
    """As Live; made by AsyncLive.connect() or Gateway.live_async().

        async with await AsyncLive.connect("ws://127.0.0.1:8080/screen") as live:
            async for sample in live:
                print(sample.values)

    One task may receive and others send.
    """

    def __init__(self, settings: Settings, reader: asyncio.StreamReader,
                 writer: asyncio.StreamWriter) -> None:
        self._state = LiveState(settings)
        self._timeout = settings.timeout
        self._reader, self._writer = reader, writer
        self._quiet_s, self._deaf_s = QUIET_S, DEAF_S
        self._closed = False
        self._rest: list[Sample] = []
        self._receiving = False
        self._draining = asyncio.Lock()

    @classmethod
    async def connect(
        cls,
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
    ) -> AsyncLive:
        settings = make_settings(url, format, receives, sends, token, token_file, ca, cert, key,
                                 context, timeout, message_max)
        try:
            return await asyncio.wait_for(cls._connect(settings), timeout)
        except Error:
            raise
        except (asyncio.TimeoutError, TimeoutError):
            raise TimedOut(f"{url}: no connection within {timeout:g} s") from None
        except OSError as error:
            raise Unreachable(f"{url}: {error}") from error

    @classmethod
    async def _connect(cls, settings: Settings) -> AsyncLive:
        tls = settings.access.context
        reader, writer = await asyncio.open_connection(
            settings.place.host, settings.place.port, ssl=tls, limit=CHUNK,
            server_hostname=settings.place.host if tls else None)
        live = cls(settings, reader, writer)
        try:
            writer.write(live._state.request)
            while not live._state.open:
                data = await reader.read(CHUNK)
                live._state.take_answer(data, eof=not data)
            live._reply()
        except BaseException:
            if live._state.open:
                await live.close()  # it is told why
            writer.close()
            raise
        return live

    async def receive(self, timeout: float | None = None) -> list[Sample]:
        """The samples of the next frame; none once the gateway has closed the connection as it
        should. TimedOut if none comes within `timeout` seconds."""
        if self._receiving:
            raise Error("another task receives")
        if self._state.frames:
            return self._state.frames.popleft()
        self._receiving = True
        try:
            return await asyncio.wait_for(self._receive(), timeout)
        except (asyncio.TimeoutError, TimeoutError) as error:
            if isinstance(error, Error):
                raise
            raise TimedOut(f"{self._state.where}: no sample within {timeout:g} s") from None
        finally:
            self._receiving = False

    async def _receive(self) -> list[Sample]:
        asked = False
        while not self._state.frames:
            if self._closed or self._state.ended is not None:
                return await self._end()
            try:
                data = await asyncio.wait_for(self._reader.read(CHUNK),
                                              self._deaf_s if asked else self._quiet_s)
            except asyncio.TimeoutError:
                if asked:
                    await self.close()
                    raise Unreachable(f"{self._state.where}: the gateway does not answer any "
                                      "more") from None
                asked = True
                self._writer.write(frames.write_frame(frames.PING, b""))
                continue
            except OSError as error:
                await self.close()
                raise Unreachable(f"{self._state.where}: {error}") from error
            asked = False
            if not data:
                return await self._end()
            await self._take(data)
        return self._state.frames.popleft()

    async def _take(self, data: bytes) -> None:
        try:
            self._state.take(data)
        except ProtocolError:
            await self.close()
            raise
        self._reply()

    def _reply(self) -> None:
        while self._state.replies and not self._closed:
            # Without drain(): who receives is not held up by a gateway that waits for him. A
            # gateway that asks and never reads is not answered.
            frame = self._state.replies.popleft()
            if self._writer.transport.get_write_buffer_size() < CHUNK:
                self._writer.write(frame)

    async def _end(self) -> list[Sample]:
        error = None if self._closed else self._state.end()
        await self.close()
        if error is not None:
            raise error
        return []

    def __aiter__(self) -> AsyncLive:
        return self

    async def __anext__(self) -> Sample:
        if not self._rest:
            self._rest = (await self.receive())[::-1]
        if not self._rest:
            raise StopAsyncIteration
        return self._rest.pop()

    async def send(self, samples: Sample | Sequence[Sample]) -> None:
        """Sends them in one frame, and waits while the gateway takes nothing."""
        frame = self._state.encode(samples)
        if self._closed:
            raise Unreachable(f"{self._state.where}: the connection was closed")
        self._writer.write(frame)
        try:
            await asyncio.wait_for(self._drain(), self._timeout)
        except (asyncio.TimeoutError, TimeoutError):
            raise TimedOut(f"{self._state.where}: nothing was taken within "
                           f"{self._timeout:g} s") from None
        except OSError as error:
            raise Unreachable(f"{self._state.where}: {error}") from error

    async def _drain(self) -> None:
        async with self._draining:
            await self._writer.drain()

    async def close(self) -> None:
        """Says goodbye, and does not wait for the answer."""
        if self._closed:
            return
        self._closed = True
        try:
            self._state.say_goodbye()
            for frame in self._state.replies:
                self._writer.write(frame)
            self._writer.close()
            await asyncio.wait_for(self._writer.wait_closed(), 1)
        except (OSError, asyncio.TimeoutError):
            self._writer.transport.abort()

    async def __aenter__(self) -> AsyncLive:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None,
                        trace: TracebackType | None) -> None:
        await self.close()
