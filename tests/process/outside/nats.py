#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The node-type nats with nats-server. Arguments: `core` or `jetstream`, and scenarios
(servers.py)."""
import base64
import json
import os
import re
import socket
import subprocess
import sys
import threading
import time

import servers
from gateway_process import Gateway, check


class Core(servers.Kind):
    name = "nats"
    program = "nats-server"
    port = 4222
    before_tls = b'INFO {"server_id":"D","version":"2.9.0","headers":true,"max_payload":1048576,"tls_required":true}\r\n'
    refusal = "authorization"
    more = ""

    def argv(self, tls, password):
        config = os.path.join(self.folder, "nats.conf")
        with open(config, "w") as f:
            f.write('listen: "127.0.0.1:%d"\nping_interval: "5s"\n%s\n' % (self.port, self.server()))
            if tls:
                f.write('tls { cert_file: "%s/server.crt", key_file: "%s/server.key" }\n' % ((self.folder,) * 2))
            if password:
                f.write('authorization { user: lab, password: "%s" }\n' % password)
        return ["nats-server", "-c", config]

    def server(self):
        return self.more

    def node(self, direction, channel, form, tls=None, password=None):
        text = 'host = "%s"; port = %d; format = "%s"; reconnect_interval = 100; connect_timeout = 2.0; %s' % (
            "localhost" if tls else self.host, self.port, form, self.stream(channel))
        if tls:
            text += 'ssl = { ca = "%s"; }; ' % tls
        if password:
            text += 'username = "lab"; password_file = "%s"; ' % password
        if direction == "in":
            return text + 'in = { subscribe = "lab.%s"; signals = "2f"; };' % channel
        return text + 'out = { publish = "lab.%s"; };' % channel

    def stream(self, channel):
        return ""


class JetStream(Core):
    # A server of version 2.9 confirms messages before it has written them.
    durable = False

    def server(self):
        return 'jetstream { store_dir: "%s/store" }' % self.folder

    def stream(self, channel):
        return 'jetstream = { stream = "%s"; durable = "reader"; create = true; max_bytes = 100000000; }; ' % channel


# ---- scenarios of this node-type ----

def nodes(kind, text):
    """A gateway with nodes of these keys, and a generator that writes to those called o..."""
    parts = ['sig = { type = "signal"; signal = "counter"; rate = 500.0; limit = 200; values = 2; };']
    paths = []
    for name, keys in text.items():
        parts.append('%s = { type = "nats"; reconnect_interval = 50; %s };' % (name, keys))
        if name[0] == "i":
            paths.append('{ in = "%s"; }' % name)
    outs = ", ".join('"%s"' % n for n in text if n[0] == "o")
    if outs:
        paths.append('{ in = "sig"; out = [ %s ]; }' % outs)
    return "nodes = { %s };\npaths = ( %s );\n" % ("\n".join(parts), ", ".join(paths))


def await_state(gateway, node, state):
    servers.until(lambda: gateway.ask("/node/" + node)["state"] == state,
                  lambda: "%s: %s" % (state, open(gateway.log).read()[-1500:]))


def groups(kind):
    """Two readers of a group share the messages, and wildcards and lists work."""
    kind.start()
    own = 'host = "127.0.0.1"; '
    reader = Gateway(kind.folder, "r", nodes(kind, {
        "i1": own + 'in = { subscribe = "lab.*"; queue_group = "g"; signals = "2f"; };',
        "i2": own + 'in = { subscribe = "lab.>"; queue_group = "g2"; signals = "2f"; };',
        "i3": own + 'in = { subscribe = "lab.*"; queue_group = "g"; signals = "2f"; };',
        "i4": 'url = "nats://127.0.0.1:%d"; in = { subscribe = [ "lab.a", "other" ]; signals = "2f"; };' % kind.port}))
    for n in ("i1", "i2", "i3", "i4"):
        await_state(reader, n, "connected")
    writer = Gateway(kind.folder, "w", nodes(kind, {"o": own + 'out = { publish = [ "lab.a", "lab.b" ]; };'}))
    def received(*names):
        return [reader.ask("/node/" + n)["stats"]["received"] for n in names]

    servers.until(lambda: writer.ask("/node/sig")["state"] == "stopped" or received("i4")[0] +
                  writer.ask("/node/sig")["stats"]["missed"] >= 200, lambda: "all come: %s" % received("i4"))
    sent = writer.ask("/node/o")["stats"]["sent"]
    servers.until(lambda: received("i2", "i4") == [2 * sent, sent], "wildcards, and one of two subjects")
    servers.until(lambda: sum(received("i1", "i3")) == 2 * sent, "the group gets each once")
    check(min(received("i1", "i3")) > 0, "both of the group get some")
    writer.end()
    reader.end()


def permissions(kind):
    """Subjects that the server does not allow: a reader says so; what is written is lost, with its
    cause, and no connection is."""
    kind.more = 'authorization { users = [ { user: lab, password: x, permissions: { publish: ["lab.ok", "$JS.>"], subscribe: "_INBOX.>" } } ] }'
    kind.start()
    own = 'host = "127.0.0.1"; username = "lab"; password = "x"; '
    g = Gateway(kind.folder, "p", nodes(kind, {
        "o1": own + 'out = { publish = "lab.ok"; };',
        "o2": own + 'out = { publish = "lab.denied"; };',
        "i": own + 'in = { subscribe = "lab.denied"; };'}))
    servers.until(lambda: g.ask("/node/o1")["stats"]["figures"]["confirmed"] >= 20, "what is allowed is confirmed")
    servers.until(lambda: g.ask("/node/o2")["stats"]["losses"]["refused"] >= 20, "what is not is lost")
    stats = g.ask("/node/o2")["stats"]
    check(not stats["figures"]["confirmed"] and not stats["figures"]["connections_lost"], "figures: %s" % stats)
    log = g.end((0, 3))
    check(re.search("node i: cannot connect.*lab.denied", log), "the reader says so: " + log)
    check("lab.denied" in [line for line in log.split("\n") if "node o2" in line and "lost" in line][0],
          "the writer names the subject: " + log)


def tokens(kind):
    """A token from a file, and a password in one of several URLs: nothing shows them."""
    secret = "hidden-%d" % os.getpid()
    file = os.path.join(kind.folder, "token")
    with open(file, "w") as f:
        f.write(secret + "\n")
    for more, good, wrong in (
            ('token: "%s"' % secret, 'host = "127.0.0.1"; token_file = "%s"; ' % file,
             'host = "127.0.0.1"; token = "wrong"; '),
            ('user: lab, password: "%s"' % secret,
             'url = [ "nats://127.0.0.1:1", "nats://lab:%s@127.0.0.1:%d" ]; ' % (secret, kind.port),
             'url = "nats://lab:wrong-%s@127.0.0.1:%d"; ' % (secret, kind.port))):
        kind.more = "authorization { %s }" % more
        kind.start()
        g = Gateway(kind.folder, "t", nodes(kind, {"i1": good + 'in = { subscribe = "t"; };',
                                                   "i2": wrong + 'in = { subscribe = "t"; };'}))
        await_state(g, "i1", "connected")
        servers.until(lambda: re.search("node i2: cannot connect.*authorization", open(g.log).read(), re.I),
                      lambda: "a wrong one is refused: " + open(g.log).read())
        for path in ("/config", "/nodes", "/node/i1", "/node/i2", "/config/text"):
            check(secret not in str(g.client.ask(path)), "%s shows no secret" % path)
        log = g.end()
        check(secret not in log, "the log shows no secret: " + log)
        kind.kill()


def later(kind):
    """A stream keeps what is written while its reader is away, and the reader goes on where it was."""
    kind.start()
    writer = servers.Pair(kind, name="first-")
    writer.await_more()
    writer.reader.end((0, 3))
    before = len(writer.got())
    time.sleep(0.3)
    text = open(writer.reader.config).read()
    writer.reader = Gateway(kind.folder, "again", text.split("\n", 1)[1])
    writer.settle()

    def dropped():
        # What the server sent to the first reader after its end comes after newer ones on a busy
        # machine: the node drops what comes out of order, and counts it.
        stats = writer.stats(writer.reader)
        check(stats["in_hooks"]["dropped"] == stats["reordered"], "what is dropped was out of order: %s" % stats)
        return stats["reordered"]
    servers.until(lambda: len(set(writer.got())) + dropped() == len(writer.rows(writer.sent_file)),
                  lambda: "all come: %d of %d, %d dropped; before %d" % (
                      len(writer.got()), len(writer.rows(writer.sent_file)), dropped(), before))
    got = writer.got()
    check(len(got) == len(set(got)), "none twice: %d" % (len(got) - len(set(got))))
    check(got == sorted(got), "in their order")
    writer.end()


def silent(kind):
    """A server that never says anything: the gateway ends in time."""
    server = servers.Double(kind.port, "silent")
    g = Gateway(kind.folder, "silent", nodes(kind, {"o": 'host = "127.0.0.1"; out = { publish = "x"; };'}))
    time.sleep(0.3)
    since = time.monotonic()
    g.end((0, 3))
    check(time.monotonic() - since < servers.ENDS_IN, "it ends in time")
    server.close()


def cpu_seconds(gateway):
    with open("/proc/%d/stat" % gateway.process.pid) as f:
        return sum(map(int, f.read().rsplit(")", 1)[1].split()[11:13])) / os.sysconf("SC_CLK_TCK")


def mute(kind):
    """A server that says who it is and then nothing: the node gives it up, connects again, and takes no
    processor meanwhile. A server without TLS gets no password, and neither does one that goes on without."""
    info = b'INFO {"server_id":"D","version":"2.9.0","headers":true,"max_payload":1048576%s}\r\n'
    for ssl, hello, reason in (
            ("", info % b"", "does not answer within 0.3 s"),
            ("", info % b',"tls_required":true', "wants TLS"),
            ("ssl = { verify = false; }; ", info % b"", "has no TLS"),
            ("ssl = { verify = false; }; ", info % b',"tls_required":true' + b"PING\r\n", "goes on without TLS")):
        server = servers.Double(kind.port, "whole", hello=[hello])
        g = Gateway(kind.folder, "mute", nodes(kind, {"i": ssl + """host = "127.0.0.1"; connect_timeout = 0.3;
            username = "lab"; password = "hidden"; in = { subscribe = "x"; }""" }))
        servers.until(lambda: server.accepted >= 6 and reason in open(g.log).read(),
                      lambda: "it tries again: %d %s" % (server.accepted, open(g.log).read()))
        check(cpu_seconds(g) < 1.0 or g.sanitized(), "it waits without a processor: %.2f s" % cpu_seconds(g))
        check("does not answer" in reason or b"hidden" not in b"".join(server.got), "no password: %s" % server.got)
        g.end()
        server.close()


class Hostile:
    """A server of JetStream that answers what the node asks for; `does` (self, connection, what, reply)
    has what it does with messages ("pub") and with questions for them ("pull"); `hello`: what it says
    behind its INFO."""

    def __init__(self, port, does, hello=b""):
        self.does = does
        self.hello = hello
        self.counts = {"pub": 0, "pull": 0}
        self.listener = socket.create_server(("127.0.0.1", port))
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                c = self.listener.accept()[0]
            except OSError:
                return
            threading.Thread(target=self.serve, args=(c,), daemon=True).start()

    def serve(self, c):
        try:
            c.sendall(b'INFO {"version":"2.9.0","headers":true,"max_payload":1048576}\r\n' + self.hello)
            f = c.makefile("rb")
            for line in f:
                words = line.split()
                if words[0] == b"PING":
                    c.sendall(b"PONG\r\n")
                elif words[0] in (b"PUB", b"HPUB"):
                    f.read(int(words[-1]) + 2)
                    self.take(c, words)
        except (OSError, IndexError, ValueError):
            c.close()

    def take(self, c, words):
        reply = words[2]
        for what, answer in ((b"STREAM.INFO", b'{"created":"x","state":{"last_seq":0}}'),
                             (b"CONSUMER.INFO", b'{"config":{"ack_policy":"explicit"}}')):
            if what in words[1]:
                c.sendall(b"MSG %s 1 %d\r\n%s\r\n" % (reply, len(answer), answer))
                return
        what = "pull" if b"MSG.NEXT" in words[1] else "pub"
        self.counts[what] += 1
        self.does(self, c, what, reply)

    def close(self):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()


JETSTREAM = 'host = "127.0.0.1"; jetstream = { stream = "s"; durable = "d"; }; '


def refuses(kind):
    """A server that refuses each question for messages at once is not asked all the time; and messages
    that come before anybody has asked for them are not taken."""
    def does(server, c, what, reply):
        if what == "pull":
            head = b"NATS/1.0 409 Exceeded MaxWaiting\r\n\r\n"
            c.sendall(b"HMSG %s 2 %d %d\r\n%s\r\n" % (reply, len(head), len(head), head))
    server = Hostile(kind.port, does, b"MSG y 2 $JS.ACK.s.d.1.7.1.1.1 14\r\n{\"data\":[1.0]}\r\n")
    g = Gateway(kind.folder, "refuses", nodes(kind, {"i": JETSTREAM + 'in = { subscribe = "x"; signals = "1f"; };'}))
    servers.until(lambda: server.counts["pull"] > 5, "it asks again")
    count, since = server.counts["pull"], time.monotonic()
    time.sleep(0.5)
    more = (server.counts["pull"] - count) / (time.monotonic() - since)
    check(more < 30, "questions: %.0f each second" % more)
    check(g.ask("/node/i")["stats"]["received"] == 0, "what nobody asked for is not read")
    g.end()
    server.close()


def jumps(kind):
    """Numbers of a stream that jump with each message take no time, and the gateway ends in time."""
    def does(server, c, what, reply):
        if what == "pull":
            c.sendall(b"".join(b"MSG %s 2 $JS.ACK.s.d.1.%d.1.1.1 1\r\nx\r\n" % (reply, ((server.counts["pull"] << 12) + i) << 20)
                               for i in range(1, 1000)))
    server = Hostile(kind.port, does)
    g = Gateway(kind.folder, "jumps", nodes(kind, {"i": JETSTREAM + 'in = { subscribe = "x"; signals = "1f"; };'}))
    servers.until(lambda: g.ask("/node/i")["stats"]["figures"]["malformed"] > 900, "they are counted")
    check(cpu_seconds(g) < 0.5 or g.sanitized(), "without much work: %.2f s" % cpu_seconds(g))
    g.end()
    server.close()


def long(kind):
    """A message beyond in.max_message is counted and not read, which would take seconds and a gigabyte;
    what follows is read."""
    def does(server, c, what, reply):
        if what == "pull" and server.counts["pull"] == 1:
            data = b'{"data":[' + b"1," * 15000000 + b"1]}"
            for i, d in ((1, data), (2, b'{"data":[1.0]}')):
                c.sendall(b"MSG %s 2 $JS.ACK.s.d.1.%d.1.1.1 %d\r\n%s\r\n" % (reply, i, len(d), d))
    server = Hostile(kind.port, does)
    g = Gateway(kind.folder, "long", nodes(kind, {"i": JETSTREAM + 'in = { subscribe = "x"; signals = "1f"; };'}))
    servers.until(lambda: g.ask("/node/i")["stats"]["received"] == 1, "the second one is read")
    check(g.ask("/node/i")["stats"]["figures"]["oversized"] == 1, "the first one is counted")
    servers.until(lambda: server.counts["pub"] == 2, "both are acknowledged")
    check(g.resident_kb() < 150000 or g.sanitized(), "memory: %d KiB" % g.resident_kb())
    g.end()
    server.close()


def flood(kind):
    """Servers that send without end what asks for no samples, also confirmations of messages that
    nobody has sent: a path goes on to write meanwhile, and the gateway ends with all counted."""
    answer = b'{"stream":"s","seq":1}'
    for node, data in (('host = "127.0.0.1"; ', b"+OK\r\n"),
                       ('host = "127.0.0.1"; ', b'INFO {"a":[' + b"[]," * 20000 + b"0]}\r\n"),
                       (JETSTREAM, b"MSG %%s 1 %d\r\n%s\r\n" % (len(answer), answer))):
        def send(c, reply):
            many = (data % (reply.rsplit(b".", 1)[0] + b".99999999999999999") if b"%s" in data else data) * (
                65536 // len(data) + 1)
            try:
                while True:
                    c.sendall(many)
            except OSError:
                pass

        def does(server, c, what, reply):
            if what == "pub" and server.counts["pub"] == (8000 if b"%s" in data else 10):
                threading.Thread(target=send, args=(c, reply), daemon=True).start()
        server = Hostile(kind.port, does)
        g = Gateway(kind.folder, "flood", """
nodes = { sig = { type = "signal"; signal = "counter"; rate = 20000.0; values = 1; };
	o = { type = "nats"; format = "villas.binary"; %sout = { publish = "x"; }; };
};
paths = ( { in = "sig"; out = "o"; } );
""" % node)
        servers.until(lambda: server.counts["pub"] >= (8000 if b"%s" in data else 10), "it begins")
        time.sleep(0.2)
        sent = g.ask("/node/o")["stats"]["sent"]
        servers.until(lambda: g.ask("/node/o")["stats"]["sent"] > sent + 50, lambda: "a path writes while it sends %s: %s" % (
            data[:30], g.ask("/node/o")["stats"]), 4)
        since = time.monotonic()
        g.end((0, 3))
        check(time.monotonic() - since < servers.ENDS_IN, "it ends in time")
        server.close()


def nkey(prefix, data):
    """The text of a key: its kind, its bytes, a check sum (CRC-16 of XMODEM)."""
    raw = bytes(prefix) + data
    crc = 0
    for byte in raw:
        crc ^= byte << 8
        for _ in range(8):
            crc = (crc << 1 ^ (0x1021 if crc & 0x8000 else 0)) & 0xffff
    return base64.b32encode(raw + crc.to_bytes(2, "little")).decode().rstrip("=")


def credentials(kind):
    """A user with a JWT, which an account has signed, and that an operator, as nsc makes them; and files
    that are none."""
    folder = kind.folder

    def openssl(*args, **kwargs):
        return subprocess.run(("openssl",) + args, cwd=folder, check=True, capture_output=True, timeout=60, **kwargs).stdout

    def jwt(issuer, name, claims):
        def text(data):
            return base64.urlsafe_b64encode(data).rstrip(b"=").decode()
        body = {"jti": name, "iat": 1700000000, "iss": keys[issuer], "name": name, "sub": keys[name],
                "nats": dict(claims, version=2)}
        signed = ".".join(text(json.dumps(o).encode()) for o in ({"typ": "JWT", "alg": "ed25519-nkey"}, body))
        with open(os.path.join(folder, "signed"), "w") as f:
            f.write(signed)
        return signed + "." + text(openssl("pkeyutl", "-sign", "-rawin", "-inkey", issuer + ".pem", "-in", "signed"))
    keys = {}
    for name, number in (("operator", 14), ("account", 0), ("user", 20)):
        openssl("genpkey", "-algorithm", "ed25519", "-out", name + ".pem")
        keys[name] = nkey([number << 3], openssl("pkey", "-in", name + ".pem", "-pubout", "-outform", "DER")[-32:])
    seed = nkey([18 << 3 | 20 << 3 >> 5, (20 << 3 & 31) << 3],
                openssl("pkey", "-in", "user.pem", "-outform", "DER")[-32:])
    all_of = {k: -1 for k in ("subs", "data", "payload")}
    kind.more = 'operator: "%s"\nresolver: MEMORY\nresolver_preload: { %s: "%s" }' % (
        jwt("operator", "operator", {"type": "operator"}), keys["account"],
        jwt("operator", "account", {"type": "account", "limits": dict(
            all_of, imports=-1, exports=-1, wildcards=True, conn=-1, leaf=-1)}))
    text = ("-----BEGIN NATS USER JWT-----\n%s\n------END NATS USER JWT------\n\n"
            "-----BEGIN USER NKEY SEED-----\n%s\n------END USER NKEY SEED------\n")
    user = jwt("account", "user", dict(all_of, type="user", pub={}, sub={}))
    files = {"good": text % (user, seed), "damaged": text % (user, seed.replace(seed[20], "A" if seed[20] != "A" else "B")),
             "other": text % (user[:-6] + "AAAAAA", seed), "empty": ""}
    for name, content in files.items():
        with open(os.path.join(folder, name), "w") as f:
            f.write(content)
    kind.start()
    g = Gateway(folder, "c", nodes(kind, {
        "i" + name: 'host = "127.0.0.1"; credentials = "%s"; in = { subscribe = "t"; signals = "2f"; };' % os.path.join(folder, name)
        for name in files}))
    await_state(g, "igood", "connected")
    for name, reason in (("damaged", "seed that is none"), ("other", "[Aa]uthorization"), ("empty", "no seed")):
        servers.until(lambda: re.search("node i%s: cannot connect.*%s" % (name, reason), open(g.log).read()),
                      lambda: "%s: %s" % (name, open(g.log).read()))
    log = g.end()
    check(seed not in log and user not in log, "the log shows no secret: " + log)


if __name__ == "__main__":
    sys.exit(servers.main({"core": Core, "jetstream": JetStream}, {
        "groups": groups, "permissions": permissions, "tokens": tokens, "later": later, "silent": silent, "mute": mute,
        "credentials": credentials, "refuses": refuses, "jumps": jumps, "long": long, "flood": flood}))
