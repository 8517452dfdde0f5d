# SPDX-License-Identifier: BSD-2-Clause
"""sockets.py server|client PORT [fork|epoll|asyncio]: bytes in both directions at once,
with the sockets of Python; each side checks what it gets. With `fork` the server serves two
connections, each in a child; with `epoll` each side waits by epoll in place of select, and
with `asyncio` the server serves several connections at once in one thread.
sockets.py memcached PORT: several connections store values in memcached and read them."""
import asyncio
import os
import select
import socket
import sys
import threading

BYTES = 3 << 20


def stream(start, count):
    """Bytes start to start + count of what both sides send."""
    return bytes((i * 7 + i // 251) & 255 for i in range(start, start + count))


PART = 300000
WHOLE = stream(0, PART if "asyncio" in sys.argv else BYTES)


def by_select(s):
    def wait(writes):
        r, w, _ = select.select([s], [s] if writes else [], [], 20)
        return r, w
    return wait


def by_epoll(s):
    both = select.EPOLLIN | select.EPOLLOUT
    poller = select.epoll()
    poller.register(s, both)

    def wait(writes):
        poller.modify(s, both if writes else select.EPOLLIN)
        events = sum(event for _, event in poller.poll(20))
        return events & ~select.EPOLLOUT, events & select.EPOLLOUT
    return wait


def exchange(s, way=by_select):
    sent = got = 0
    s.setblocking(False)
    wait = way(s)
    while sent < BYTES or got < BYTES:
        r, w = wait(sent < BYTES)
        if not r and not w:
            sys.exit("nothing moves: sent %d, got %d" % (sent, got))
        if w:
            try:
                sent += s.send(WHOLE[sent:sent + 50000])
            except BlockingIOError:
                pass
        if r:
            try:
                data = s.recv(70000)
            except BlockingIOError:
                continue
            if not data and got < BYTES:
                sys.exit("the end came after %d bytes" % got)
            if data != WHOLE[got:got + len(data)]:
                sys.exit("other bytes arrived at %d" % got)
            got += len(data)
    s.setblocking(True)
    s.shutdown(socket.SHUT_WR)
    if s.recv(1):
        sys.exit("too many bytes")


TALKS = 5


async def talk(reader, writer):
    """Sends while it receives, then waits for the other side's end."""
    async def give():
        for at in range(0, PART, 20000):
            writer.write(WHOLE[at:at + 20000])
            await writer.drain()
        writer.write_eof()

    async def take():
        data = await reader.read(-1)
        if data != WHOLE:
            sys.exit("%d other bytes arrived" % len(data))
    await asyncio.wait_for(asyncio.gather(give(), take()), 60)
    writer.close()


async def talk_as_server(listener):
    done = asyncio.Queue()

    async def serve_one(reader, writer):
        await talk(reader, writer)
        done.put_nowait(True)
    async with await asyncio.start_server(serve_one, sock=listener):
        for _ in range(TALKS):
            await asyncio.wait_for(done.get(), 60)


async def talk_as_client(port):
    async def call():
        await talk(*await asyncio.open_connection("127.0.0.1", port))
    await asyncio.gather(*[call() for _ in range(TALKS)])


def store(port, number):
    """Stores values and reads them, over one connection to memcached."""
    s = socket.create_connection(("127.0.0.1", port))
    f = s.makefile("rb")
    for i in range(100):
        key, value = b"%d_%d" % (number, i), b"%d.%d" % (number, i) * (1 + i * 7 % 500)
        s.sendall(b"set %s 0 0 %d\r\n%s\r\n" % (key, len(value), value))
        s.sendall(b"get %s\r\n" % key)
        answer = f.readline() + f.readline() + f.read(len(value)) + f.read(7)
        if answer != b"STORED\r\nVALUE %s 0 %d\r\n%s\r\nEND\r\n" % (key, len(value), value):
            print("connection %d: another value" % number, file=sys.stderr)
            os._exit(1)
    s.close()


def store_by_threads(port):
    threads = [threading.Thread(target=store, args=(port, n)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def serve(listener, fork, way):
    for _ in range(2 if fork else 1):
        s, _ = listener.accept()
        pid = os.fork() if fork else 0
        if pid == 0:
            exchange(s, way)
            if fork:
                s.close()
                os._exit(0)
        s.close()
    if fork:
        for _ in range(2):
            if os.wait()[1]:
                sys.exit("a child failed")


def main():
    side, port, fork = sys.argv[1], int(sys.argv[2]), "fork" in sys.argv[3:]
    way = by_epoll if "epoll" in sys.argv[3:] else by_select
    if side == "memcached":
        store_by_threads(port)
    elif side == "server":
        listener = socket.socket()
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("127.0.0.1", port))
        listener.listen()
        if "asyncio" in sys.argv[3:]:
            asyncio.run(talk_as_server(listener))
        else:
            serve(listener, fork, way)
    elif "asyncio" in sys.argv[3:]:
        asyncio.run(talk_as_client(port))
    else:
        for _ in range(2 if fork else 1):
            with socket.create_connection(("127.0.0.1", port)) as s:
                s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                exchange(s, way)


main()
