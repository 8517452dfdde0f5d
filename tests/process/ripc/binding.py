#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""binding.py EXAMPLE: the Python binding between two processes. An echo of short messages and
of a long one of 1 MiB; return buffers, used and revoked; time limits; views that outlive their
message; memory that the program registered; threads and closing; the example.

PYTHONPATH, BUSBAR_RIPC_LIBRARY and LD_LIBRARY_PATH are set by meson.
"""

import array
import asyncio
import errno
import os
import signal
import subprocess
import sys
import threading
import time

# Before the library is loaded, which reads them when an instance is opened.
os.environ["RIPC_ADDRESS"] = "127.0.0.1"
os.environ["RIPC_PORT"] = str(20000 + os.getpid() % 12000)

import busbar_ripc as ripc  # noqa: E402

NAME = f"binding-{os.getpid()}"
LONG = bytes(range(256)) * 4096  # 1 MiB


def expect(kind: type[BaseException], number: int | None, call, *args, **named):
    try:
        call(*args, **named)
    except kind as error:
        assert number is None or error.errno == number, error
        return str(error)
    raise AssertionError(f"{call} has not raised {kind}")


def echo(instance, service, to):
    service.send(to, b"hello")
    with service.receive(5) as message:
        assert (message.sender, message.is_long, len(message)) == (to, False, 1)
        assert message[0] == b"hello" and isinstance(message[0], memoryview)
    expect(ValueError, None, lambda: message.items)
    items = [b"one", bytearray(b"two"), b"", array.array("d", [3.0]), memoryview(b"xfourx")[1:5]]
    service.send_short(to, items)
    with service.receive(5) as message:
        assert [bytes(i) for i in message.items] == [bytes(i) for i in items]
    assert instance.counters().copies == 0


def long_message(instance, service, to):
    expect(ripc.Error, errno.EMSGSIZE, service.send_short, to, LONG)
    with instance.alloc(len(LONG)) as buffer:
        buffer.view[:] = LONG
        copies = instance.counters().copies
        service.send(to, buffer)
        message = service.receive(5)
        assert message.is_long and message[0] == LONG
        assert instance.counters().copies == copies, "memory of alloc() was copied"
    # A view lives on when its message was released, and its memory with it.
    piece = message[0][256:512]
    message.release()
    del message
    for _ in range(3):
        service.send(to, b"\xff" * len(LONG))
        service.receive(5).release()
    assert piece == LONG[256:512]
    token = service.send_long_begin(to, LONG)
    token.wait(5)
    assert token.done()
    service.receive(5).release()


def return_buffers(instance, service, to):
    buffer, spare = instance.alloc(len(LONG)), instance.alloc(1 << 16)
    service.send(to, LONG, [buffer])
    expect(ripc.Error, errno.EBUSY, buffer.free)
    expect(ripc.Error, errno.EBUSY, service.send, to, LONG, [spare, buffer])
    assert not spare.offered
    with service.receive(5) as message:
        assert message.returned == (buffer,) and not buffer.offered
        assert message[0] == LONG
    assert buffer.view == LONG, "the message is not in the return buffer"
    # Not used by a short answer.
    service.send(to, b"short", [buffer, spare])
    service.receive(5).release()
    assert set(service.revoke(to)) == {buffer, spare} and not buffer.offered
    assert service.revoke(to) == []
    service.send(to, LONG)
    with service.receive(5) as message:
        assert message.returned == (None,)
    buffer.free()
    expect(ValueError, None, lambda: buffer.view)
    expect(ValueError, None, service.send, to, LONG, [buffer])
    # Memory of the program's own.
    own = bytearray(len(LONG))
    with instance.register(own) as registration:
        expect(BufferError, None, own.append, 1)
        service.send(to, LONG, [registration])
        with service.receive(5) as message:
            assert message.returned == (registration,) and own == LONG
        copies = instance.counters().copies
        service.send(to, own)
        service.receive(5).release()
        assert instance.counters().copies == copies, "registered memory was copied"
        expect(ripc.Error, errno.EEXIST, instance.register, own)
        del message


def time_limits(instance, service):
    expect(ripc.NothingThere, errno.EAGAIN, service.receive, 0)
    begin = time.monotonic()
    expect(TimeoutError, errno.ETIMEDOUT, service.receive, 0.15)
    assert time.monotonic() - begin >= 0.15
    expect(ripc.Error, errno.EHOSTUNREACH, instance.find, NAME + "-not", 0.1)
    text = expect(ripc.Error, errno.EINVAL, instance.service, 0, "")
    assert "name" in text, text
    expect(ripc.Error, errno.EADDRINUSE, instance.service, service.id)

    async def wait():
        task = asyncio.create_task(service.receive_async())
        await asyncio.sleep(0)
        other = await asyncio.to_thread(instance.service)
        with other:
            other.send(service.id, b"wake")
            with await asyncio.wait_for(task, 5) as message:
                assert message.sender == other.id and message[0] == b"wake"

    asyncio.run(wait())


def closing(instance):
    service = instance.service()
    failed = []

    def receive():
        try:
            service.receive()
        except ripc.Error as error:
            failed.append(error.errno)

    threads = [threading.Thread(target=receive) for _ in range(2)]
    for thread in threads:
        thread.start()
    service.close()
    for thread in threads:
        thread.join(5)
    assert failed == [errno.EBADF] * 2, failed
    expect(ripc.Error, errno.EBADF, service.send, 1, b"")
    # Ctrl-C ends a wait.
    signal.signal(signal.SIGALRM, signal.default_int_handler)
    with instance.service() as waiting:
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        expect(KeyboardInterrupt, None, waiting.receive)


def main():
    server = subprocess.Popen([sys.executable, sys.argv[1], "serve", NAME],
                              stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout.readline().startswith("serving"), "the example does not serve"
        instance = ripc.Instance(resolve_timeout_ms=20000)
        with instance, instance.service() as service:
            to = instance.find(NAME)
            assert to >= ripc.ID_DRAWN and service.id != to
            echo(instance, service, to)
            long_message(instance, service, to)
            return_buffers(instance, service, to)
            time_limits(instance, service)
            closing(instance)
            service.send(to, LONG)
            kept = service.receive(5)
        assert kept[0] == LONG, "what was received has gone with its instance"
        expect(ValueError, None, instance.alloc, 1)
        client = subprocess.run([sys.executable, sys.argv[1], NAME, "hello", "two words"],
                                capture_output=True, text=True, timeout=20)
        assert (client.returncode, client.stdout) == (0, "hello\ntwo words\n"), client
        server.send_signal(signal.SIGINT)
        assert server.wait(10) == 0
    finally:
        server.kill()
        server.wait()


if __name__ == "__main__":
    main()
