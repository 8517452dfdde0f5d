# SPDX-License-Identifier: BSD-2-Clause
"""A server of no protocol: it behaves by `mode`, at the level of TCP, whoever connects."""
import random
import socket
import struct
import threading
import time


class Double(threading.Thread):
    """Takes connections at a port of loopback, until close().

    silent:   takes them, and says nothing.
    closes:   ends them at once, with FIN or RST.
    nonsense: answers with `hello` and bytes without sense, or with none, and ends them.
    half:     gives the first bytes of an answer with sense, `hello`, and then no more.
    whole:    gives `hello` at once, and keeps in `got` what the client sends.

    `hello` is a list: bytes are sent at once, a function is called with what the client has sent
    next and returns them.
    """

    def __init__(self, port, mode, seed=5, hello=()):
        super().__init__(daemon=True)
        self.mode, self.seed, self.hello = getattr(self, mode), seed, hello
        self.socket = socket.create_server(("127.0.0.1", port))
        self.accepted = 0
        self.got = []
        self.lock = threading.Lock()
        self.connections = set()    # None: closed
        self.start()

    def run(self):
        while True:
            try:
                s, _ = self.socket.accept()
            except OSError:
                return
            with self.lock:
                if self.connections is None:
                    s.close()
                    return
                self.connections.add(s)
            self.accepted += 1
            threading.Thread(target=self.serve, args=(s, random.Random(self.seed * 1000003 + self.accepted)),
                             daemon=True).start()

    def serve(self, s, r):
        try:
            if self.mode(s, r):
                # Until the client ends it, or close().
                while s.recv(65536):
                    pass
        except OSError:
            pass
        finally:
            with self.lock:
                (self.connections or set()).discard(s)
                s.close()

    def silent(self, s, r):
        return True

    def closes(self, s, r):
        if r.randrange(2):
            s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        return False

    def nonsense(self, s, r):
        s.settimeout(0.2)
        try:
            s.recv(100)
        except socket.timeout:
            pass
        if r.randrange(3):
            s.sendall(b"".join(self.hello) + r.randbytes(r.randrange(1, 5000)))
        if r.randrange(2):
            time.sleep(0.1)
        return False

    def half(self, s, r):
        left = r.randrange(self.length())
        for part in self.hello:
            data = part if isinstance(part, bytes) else part(s.recv(65536))
            s.sendall(data[:left])
            left -= len(data)
            if left <= 0:
                break
        return True

    def whole(self, s, r):
        s.sendall(b"".join(self.hello))
        while self.got.append(s.recv(65536)) or self.got[-1]:
            pass
        return False

    def length(self):
        """Of all that is in `hello`. The last byte is never sent."""
        return max(1, sum(len(part if isinstance(part, bytes) else part(bytes(64))) for part in self.hello))

    def close(self):
        with self.lock:
            connections, self.connections = self.connections, None
        for s in [self.socket] + list(connections):
            try:
                s.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
        self.join()
        self.socket.close()
