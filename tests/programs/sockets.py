# SPDX-License-Identifier: BSD-2-Clause
"""sockets.py server|client PORT [fork]: bytes in both directions at once, with the
sockets of Python; each side checks what it gets. With `fork` the server serves two
connections, each in a child."""
import os
import select
import socket
import sys

BYTES = 3 << 20


def stream(start, count):
    """Bytes start to start + count of what both sides send."""
    return bytes((i * 7 + i // 251) & 255 for i in range(start, start + count))


WHOLE = stream(0, BYTES)


def exchange(s):
    sent = got = 0
    s.setblocking(False)
    while sent < BYTES or got < BYTES:
        writers = [s] if sent < BYTES else []
        r, w, _ = select.select([s], writers, [], 20)
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


def serve(listener, fork):
    for _ in range(2 if fork else 1):
        s, _ = listener.accept()
        pid = os.fork() if fork else 0
        if pid == 0:
            exchange(s)
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
    if side == "server":
        listener = socket.socket()
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("127.0.0.1", port))
        listener.listen()
        serve(listener, fork)
        return
    for _ in range(2 if fork else 1):
        with socket.create_connection(("127.0.0.1", port)) as s:
            s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            exchange(s)


main()
