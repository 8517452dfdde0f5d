# SPDX-License-Identifier: BSD-2-Clause
"""TLS and SASL in front of a Kafka broker that has neither: a program of the test."""
import base64
import hashlib
import hmac
import os
import socket
import ssl
import struct
import threading

SASL_HANDSHAKE, API_VERSIONS, SASL_AUTHENTICATE = 17, 18, 36
UNSUPPORTED_SASL_MECHANISM, UNSUPPORTED_VERSION, SASL_AUTHENTICATION_FAILED = 33, 35, 58
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")


def read_exactly(s, count):
    data = b""
    while len(data) < count:
        more = s.recv(count - len(data))
        if not more:
            raise EOFError
        data += more
    return data


def read_frame(s):
    return read_exactly(s, struct.unpack(">i", read_exactly(s, 4))[0])


def write_frame(s, frame):
    s.sendall(struct.pack(">i", len(frame)) + frame)


def string(text):
    return struct.pack(">h", len(text)) + text.encode()


def scram(user, password, name):
    """What a server says to each message of a client; None at last if it is wrong (RFC 5802)."""
    salt, rounds = os.urandom(16), 4096
    first = (yield b"").decode()
    bare = first[3:]
    fields = dict(f.split("=", 1) for f in bare.split(","))
    nonce = fields["r"] + base64.b64encode(os.urandom(12)).decode()
    answer = "r=%s,s=%s,i=%d" % (nonce, base64.b64encode(salt).decode(), rounds)
    last = (yield answer.encode()).decode()
    without, proof = last.rsplit(",p=", 1)
    salted = hashlib.pbkdf2_hmac(name, password.encode(), salt, rounds)

    def mac(key, text):
        return hmac.new(key, text, name).digest()
    signed = ",".join((bare, answer, without)).encode()
    key = mac(salted, b"Client Key")
    signature = mac(hashlib.new(name, key).digest(), signed)
    right = bytes(a ^ b for a, b in zip(key, signature)) == base64.b64decode(proof)
    # librdkafka 2.0 sends its own part of the nonce twice; Apache Kafka looks only at the end.
    right = right and fields["n"] == user and without.endswith(nonce)
    yield b"v=" + base64.b64encode(mac(mac(salted, b"Server Key"), signed)) if right else None


def plain(user, password):
    given = yield b""
    yield b"" if given == b"\0%s\0%s" % (user.encode(), password.encode()) else None


def with_sasl(body, version):
    """An ApiVersionResponse that also names the requests of SASL."""
    flexible = version >= 3 and struct.unpack(">h", body[:2])[0] != UNSUPPORTED_VERSION
    more = b"".join(struct.pack(">hhh", key, 0, 1) + (b"\0" if flexible else b"")
                    for key in (SASL_HANDSHAKE, SASL_AUTHENTICATE))
    if flexible:
        assert body[2] + 2 < 128
        return body[:2] + bytes([body[2] + 2]) + more + body[3:]
    count = struct.unpack(">i", body[2:6])[0]
    return body[:2] + struct.pack(">i", count + 2) + more + body[6:]


class Front(threading.Thread):
    """From `port` to the broker at `behind`; `tls`: a context of ssl, `user`: (name, password)."""

    def __init__(self, port, behind, tls=None, user=None):
        super().__init__(daemon=True)
        self.behind, self.tls, self.user = behind, tls, user
        self.socket = socket.create_server(("127.0.0.1", port))
        self.mechanisms = set()
        self.connections = []
        self.start()

    def run(self):
        while True:
            try:
                s, _ = self.socket.accept()
            except OSError:
                return
            threading.Thread(target=self.serve, args=(s,), daemon=True).start()

    def serve(self, s):
        try:
            s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if self.tls:
                s = self.tls.wrap_socket(s, server_side=True)
            b = socket.create_connection(("127.0.0.1", self.behind))
            b.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self.connections += [s, b]
            if self.user:
                self.authenticate(s, b)
            threading.Thread(target=self.copy, args=(b, s), daemon=True).start()
            self.copy(s, b)
        except (OSError, EOFError):
            pass
        finally:
            s.close()

    @staticmethod
    def copy(a, b):
        try:
            while True:
                data = a.recv(65536)
                if not data:
                    break
                b.sendall(data)
        except OSError:
            pass
        for s in (a, b):
            try:
                s.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def authenticate(self, s, b):
        """Answers all that comes before a right password; then returns."""
        exchange = None
        while True:
            frame = read_frame(s)
            key, version, number, name_len = struct.unpack(">hhih", frame[:10])
            body = frame[10 + max(name_len, 0):]
            head = struct.pack(">i", number)
            if key == API_VERSIONS:
                write_frame(b, frame)
                answer = read_frame(b)
                write_frame(s, answer[:4] + with_sasl(answer[4:], version))
            elif key == SASL_HANDSHAKE:
                mechanism = body[2:].decode()
                known = mechanism in MECHANISMS
                self.mechanisms.add(mechanism)
                if known:
                    exchange = plain(*self.user) if mechanism == "PLAIN" else \
                        scram(*self.user, mechanism[6:].replace("-", "").lower())
                    next(exchange)
                write_frame(s, head + struct.pack(">hi", 0 if known else UNSUPPORTED_SASL_MECHANISM, len(MECHANISMS)) +
                            b"".join(map(string, MECHANISMS)))
            elif key == SASL_AUTHENTICATE and exchange:
                answer = exchange.send(body[4:])
                lifetime = struct.pack(">q", 0) if version else b""
                if answer is None:
                    write_frame(s, head + struct.pack(">h", SASL_AUTHENTICATION_FAILED) +
                                string("Authentication failed") + struct.pack(">i", 0) + lifetime)
                    raise EOFError
                write_frame(s, head + struct.pack(">hhi", 0, -1, len(answer)) + answer + lifetime)
                if answer == b"" or answer.startswith(b"v="):
                    return
            else:
                # A broker ends connections that ask before they say who they are.
                raise EOFError

    def close(self):
        for s in [self.socket] + self.connections:
            try:
                s.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
            s.close()


def context(folder):
    c = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    c.load_cert_chain(os.path.join(folder, "server.crt"), os.path.join(folder, "server.key"))
    return c
