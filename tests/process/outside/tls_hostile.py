# SPDX-License-Identifier: BSD-2-Clause
"""Servers that a client of TLS has to refuse: certificates that are not theirs, no TLS, old versions,
handshakes that do not go on. None of them speaks the protocol behind TLS: a client that gets so far, or
that sends anything else than a handshake, has failed."""
import collections
import os
import re
import socket
import ssl
import subprocess
import threading
import time

from gateway_process import Gateway, check

TIMEOUT = 1.5           # of nodes, seconds
SECRET = "quite-secret-of-tls"
# Of a handshake that is answered byte by byte.
DRIP = 0.02

Attack = collections.namedtuple("Attack", "server certificate said")


def authority(folder):
    """ca.crt, and certificates by it and by another authority: NAME.pem, with their keys."""
    def run(*args):
        subprocess.run(("openssl",) + args, cwd=folder, check=True, capture_output=True, timeout=60)

    def sign(name, by, names, use="serverAuth", days=None, key=("ec", "-pkeyopt", "ec_paramgen_curve:prime256v1")):
        run("req", "-newkey", *key, "-nodes", "-subj", "/CN=" + name, "-keyout", name + ".key", "-out", name + ".csr")
        with open(os.path.join(folder, "extensions"), "w") as f:
            f.write("subjectAltName=%s\nextendedKeyUsage=%s\n" % (names, use))
        when = days or ("-days", "30")
        run("ca" if days else "x509", *(() if days else ("-req",)), "-in", name + ".csr",
            *(("-cert", by + ".crt", "-keyfile", by + ".key", "-config", "ca.conf", "-batch", "-notext") if days else
              ("-CA", by + ".crt", "-CAkey", by + ".key", "-CAcreateserial")),
            *when, "-extfile", "extensions", "-out", name + ".crt")
        with open(os.path.join(folder, name + ".pem"), "w") as out:
            for part in (name + ".crt", name + ".key"):
                with open(os.path.join(folder, part)) as f:
                    out.write(f.read())

    with open(os.path.join(folder, "ca.conf"), "w") as f:
        f.write("[ca]\ndefault_ca = c\n[c]\nnew_certs_dir = .\ndatabase = index.txt\nserial = serial\n"
                "default_md = sha256\npolicy = p\n[p]\ncommonName = supplied\n")
    for name, text in (("index.txt", ""), ("serial", "1000\n")):
        with open(os.path.join(folder, name), "w") as f:
            f.write(text)
    for name in ("ca", "other"):
        run("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "30",
            "-subj", "/CN=" + name, "-keyout", name + ".key", "-out", name + ".crt")
    here = "DNS:localhost,IP:127.0.0.1"
    sign("right", "ca", here)
    sign("rsa", "ca", here, key=("rsa:2048",))
    sign("stranger", "other", here)
    sign("elsewhere", "ca", "DNS:elsewhere.example")
    sign("user", "ca", here, use="clientAuth")
    sign("expired", "ca", here, days=("-startdate", "20200101000000Z", "-enddate", "20210101000000Z"))
    sign("future", "ca", here, days=("-startdate", "21000101000000Z", "-enddate", "21010101000000Z"))


def context(folder, certificate):
    c = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    c.load_cert_chain(os.path.join(folder, certificate + ".pem"))
    return c


def old_version(c):
    c.set_ciphers("ALL:@SECLEVEL=0")
    c.minimum_version = ssl.TLSVersion.TLSv1
    c.maximum_version = ssl.TLSVersion.TLSv1_1


def old_keys(c):
    """Without a signature in the handshake, which new libraries refuse to take in old versions."""
    old_version(c)
    c.set_ciphers("kRSA:@SECLEVEL=0")


def anonymous(c):
    """Without a certificate: whoever stands between could take the place of the server."""
    c.maximum_version = ssl.TLSVersion.TLSv1_2
    c.set_ciphers("aNULL:@SECLEVEL=0")


def open_text(c):
    """With a certificate, and without encryption."""
    c.maximum_version = ssl.TLSVersion.TLSv1_2
    c.set_ciphers("eNULL:@SECLEVEL=0")


class Hostile(threading.Thread):
    """One server of an attack, at a port of loopback. `before`: what it says before TLS begins.
    `gave`: what clients have sent that is not a handshake."""

    def __init__(self, port, folder, attack, before, plain):
        super().__init__(daemon=True)
        self.attack, self.before, self.plain = attack, before, plain
        self.context = context(folder, attack.certificate) if attack.certificate else None
        if self.context and callable(attack.server):
            attack.server(self.context)
        self.socket = socket.create_server(("127.0.0.1", port))
        self.gave, self.accepted, self.open, self.closed = b"", 0, set(), False
        self.start()

    def run(self):
        while True:
            try:
                s, _ = self.socket.accept()
            except OSError:
                return
            self.accepted += 1
            self.open.add(s)
            threading.Thread(target=self.serve, args=(s,), daemon=True).start()

    def serve(self, s):
        try:
            if self.before:
                s.sendall(self.before)
            how = self.attack.server
            if self.context:
                s = self.handshake(s)
            else:
                getattr(self, how)(s)
        except (OSError, ssl.SSLError):
            pass
        finally:
            self.open.discard(s)
            s.close()

    def handshake(self, s):
        """Of TLS, by memory, so that the bytes can drip. The client has to give it up."""
        to, out = ssl.MemoryBIO(), ssl.MemoryBIO()
        t = self.context.wrap_bio(to, out, server_side=True)
        while True:
            try:
                t.do_handshake()
                break
            except ssl.SSLWantReadError:
                pass
            finally:
                self.give(s, out.read())
            data = s.recv(65536)
            if not data:
                return s
            to.write(data)
        # TLS 1.3: the client may have answered, and refuse the certificate with an alert.
        while True:
            try:
                self.gave += t.read(65536)
                return s
            except ssl.SSLWantReadError:
                data = s.recv(65536)
                if not data:
                    return s
                to.write(data)

    def give(self, s, data):
        if self.attack.server != "drips":
            s.sendall(data)
            return
        for i in range(len(data)):
            s.sendall(data[i:i + 1])
            time.sleep(DRIP)

    def plain_text(self, s):
        """A server without TLS. A handshake is no sense to it, whose first byte is 22."""
        while True:
            data = s.recv(65536)
            if not data:
                return
            if data[0] != 22:
                self.gave += data
            s.sendall(self.plain)

    def silent(self, s):
        while s.recv(65536):
            pass

    def closes(self, s):
        s.recv(65536)

    def records(self, s):
        """Records of a handshake that say nothing, without end."""
        s.recv(65536)
        while True:
            s.sendall(b"\x16\x03\x03\0\0" * 1000)

    def length(self, s):
        """A handshake message of 16 MiB is announced, and comes slowly."""
        s.recv(65536)
        s.sendall(b"\x16\x03\x03\x40\0\x02\xff\xff\xff")
        while True:
            s.sendall(bytes(100))
            time.sleep(DRIP)

    def close(self):
        for s in [self.socket] + list(self.open):
            try:
                s.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
            s.close()


# How each is named for users: libraries say it differently.
UNTRUSTED = "unable to get (local )?issuer|unable to verify|self.signed|unknown|not trusted"
NO_TLS = "answers without TLS"
SILENT = "does not answer|timed? ?out"
CLOSED = "closed|reset|disconnect|eof"
ATTACKS = {
    "another authority": Attack("tls", "stranger", UNTRUSTED),
    "another host": Attack("tls", "elsewhere", "host ?name mismatch|no alternative certificate|ip address mismatch"),
    "expired": Attack("tls", "expired", "expired"),
    "not valid yet": Attack("tls", "future", "not yet valid"),
    "of a client": Attack("tls", "user", "purpose"),
    "old version": Attack(old_version, "right", "protocol version|unsupported protocol|no ciphers|handshake failure"),
    "old version, old keys": Attack(old_keys, "rsa", "protocol version|unsupported protocol|no ciphers|handshake failure"),
    "anonymous": Attack(anonymous, "right", "handshake failure|cipher|alert|unsupported"),
    "not encrypted": Attack(open_text, "right", "handshake failure|cipher|alert|unsupported"),
    "plain text": Attack("plain_text", None, NO_TLS),
    "silent": Attack("silent", None, SILENT),
    "drips": Attack("drips", "right", SILENT),
    "closes": Attack("closes", None, CLOSED),
    "empty records": Attack("records", None, ".*"),
    "a long message": Attack("length", None, ".*"),
}


def refuses_all(kind, until, ends_in):
    """A node for each attack, all at once: each says its name and the reason, none gives a byte
    away, all end in time."""
    authority(kind.folder)
    secret = os.path.join(kind.folder, "secret")
    with open(secret, "w") as f:
        f.write(SECRET + "\n")
    servers, nodes, names = {}, "", list(ATTACKS)
    for i, name in enumerate(names):
        port = 7000 + i
        servers[name] = Hostile(port, kind.folder, ATTACKS[name], kind.before_tls, kind.plain)
        nodes += 'x%d = { type = "%s"; %s };\n' % (i, kind.name, kind.tls_node(
            port, os.path.join(kind.folder, "ca.crt"), secret if kind.password else None, TIMEOUT))
    g = Gateway(kind.folder, "hostile", """
nodes = { sig = { type = "signal"; signal = "counter"; rate = 20.0; values = 2; }; %s };
paths = ( { in = "sig"; out = [ %s ]; } );
""" % (nodes, ", ".join('"x%d"' % i for i in range(len(names)))))
    since = time.monotonic()

    def said(i):
        with open(g.log) as f:
            return re.search(r"node x%d: cannot connect to [^\n]*" % i, f.read())
    unclear = []
    for i, name in enumerate(names):
        until(lambda: said(i), lambda: "%s is said: %s" % (name, open(g.log).read()), 40)
        line = said(i).group()
        print("%s: %s" % (name, line))
        if not re.search(ATTACKS[name].said, line.partition(": cannot connect")[2], re.I):
            unclear.append(name)
        node = g.ask("/node/x%d" % i)
        check(node["state"] == "pending-connect" and not node["stats"]["figures"]["connections"],
              "%s: %s" % (name, node))
    check(not unclear, "not said clearly: %s" % unclear)
    # Each is tried again, also one that took long.
    for i, name in enumerate(names):
        until(lambda: g.ask("/node/x%d" % i)["stats"]["figures"]["unreachable"] >= 2,
              lambda: "%s is tried again: %s" % (name, g.ask("/node/x%d" % i)), 40)
        check(not servers[name].gave, "%s was given %d bytes: %s" % (
            name, len(servers[name].gave), servers[name].gave[:100]))
        check(servers[name].accepted, "%s was asked" % name)
    for path in ("/config", "/nodes", "/config/text"):
        check(SECRET not in str(g.client.ask(path)), "%s shows no password" % path)
    print("all are refused after %.1f s" % (time.monotonic() - since))
    since = time.monotonic()
    try:
        log = g.end((0, 3))
    except AssertionError:
        print(open(g.log).read()[-3000:])
        raise
    check(time.monotonic() - since < ends_in, "it ends in time")
    check(SECRET not in log, "the log shows no password")
    check(log.count("\n") < 20 * len(names), "the log is not filled: %d lines" % log.count("\n"))
    for server in servers.values():
        server.close()
