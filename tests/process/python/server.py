# SPDX-License-Identifier: BSD-2-Clause
"""A server that says what the test tells it to, however wrong, one client after another."""
import base64
import contextlib
import hashlib
import socket
import threading

GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"


def frame(opcode, payload, fin=True):
    n = len(payload)
    head = bytes([fin << 7 | opcode])
    if n < 126:
        return head + bytes([n]) + payload
    return head + bytes([126]) + n.to_bytes(2, "big") + payload


class Client:
    def __init__(self, s):
        self.socket = s
        self.file = s.makefile("rb")

    def head(self):
        """Of the request, in lower case; None: he has left."""
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            line = self.file.readline()
            if not line:
                return None
            head += line
        return head

    def upgrade(self):
        key = [line[19:] for line in self.head().split(b"\r\n") if line.startswith(b"Sec-WebSocket-Key")][0]
        accept = base64.b64encode(hashlib.sha1(key + GUID).digest())
        self.send(b"HTTP/1.1 101 x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                  b"Sec-WebSocket-Protocol: live\r\nSec-WebSocket-Accept: " + accept + b"\r\n\r\n")

    def send(self, data):
        self.socket.sendall(data)

    def frame(self):
        """(opcode, payload) of what he sends; None at the end."""
        head = self.file.read(2)
        if len(head) < 2:
            return None
        n = head[1] & 127
        if n > 125:
            n = int.from_bytes(self.file.read(2 if n == 126 else 8), "big")
        assert head[1] & 128, "a client masks"
        mask = self.file.read(4)
        return head[0] & 15, bytes(b ^ mask[i % 4] for i, b in enumerate(self.file.read(n)))


@contextlib.contextmanager
def server(talk):
    """Gives its port; talk(client) for each client."""
    listener = socket.create_server(("127.0.0.1", 0))
    failed = []

    def serve():
        while True:
            try:
                s = listener.accept()[0]
            except OSError:
                return
            s.settimeout(20)
            client = Client(s)
            try:
                talk(client)
            except OSError:
                pass  # he has left
            except Exception as error:
                failed.append(error)
            finally:
                client.file.close()
                s.close()

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield listener.getsockname()[1]
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join(20)
        if failed:
            raise failed[0]
