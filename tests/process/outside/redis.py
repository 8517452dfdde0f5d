#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The node-type redis with redis-server. Arguments: a kind and scenarios (servers.py, and below)."""
import os
import random
import socket
import subprocess
import sys
import threading
import time

import servers
from gateway_process import Gateway, check


class Redis(servers.Kind):
    """Streams of a server that writes each entry to the disk before it answers."""
    name = "redis"
    program = "redis-server"
    port = 6379
    mode = "stream"
    durable = True

    def argv(self, tls, password):
        text = ("bind 127.0.0.1\nsave \"\"\ndir %s\nunixsocket %s/socket\nappendonly %s\nappendfsync always\n"
                % (self.folder, self.folder, "yes" if self.durable else "no"))
        text += "loglevel warning\n"
        if password:
            text += "user default off\nuser lab on >%s ~* &* +@all\n" % password
        if tls:
            text += "port 0\ntls-port %d\ntls-auth-clients no\n" % self.port
            text += "tls-ca-cert-file %s/ca.crt\ntls-cert-file %s/server.crt\ntls-key-file %s/server.key\n" % (
                (self.folder,) * 3)
        else:
            text += "port %d\n" % self.port
        config = os.path.join(self.folder, "redis.conf")
        with open(config, "w") as f:
            f.write(text)
        return ["redis-server", config]

    def ready(self):
        """It has read its file, too."""
        if not servers.listens(self.port):
            return False
        try:
            return b"LOADING" not in self.ask("PING")
        except OSError:
            return False

    def ask(self, *words):
        """A command over the Unix socket; the bytes of the answer, or of its beginning."""
        with socket.socket(socket.AF_UNIX) as s:
            s.settimeout(20)
            s.connect(os.path.join(self.folder, "socket"))
            s.sendall(b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(w), w.encode()) for w in words))
            return s.recv(65536)

    def where(self, channel):
        return 'mode = "%s"; key = "lab:%s"; ' % (self.mode, channel)

    def node(self, direction, channel, form, tls=None, password=None):
        text = 'host = "%s"; port = %d; format = "%s"; reconnect_interval = 100; ' % (
            "localhost" if tls else self.host, self.port, form)
        text += self.where(channel)
        if tls:
            text += 'ssl = { ca = "%s"; }; ' % tls
        if password:
            text += 'user = "lab"; password_file = "%s"; ' % password
        if direction == "in":
            return text + 'in = { signals = "2f"; };'
        return text + "out = { };"


class Group(Redis):
    """The same, and the server remembers what was read."""

    def node(self, direction, channel, form, tls=None, password=None):
        return super().node(direction, channel, form, tls, password).replace("in = {", 'in = { group = "lab"; ')


class Channel(Redis):
    """The server has said that it has a message, and does not keep it for those who are away."""
    mode = "channel"
    durable = False
    confirms = False

    def where(self, channel):
        return 'mode = "channel"; channel = "lab/%s"; ' % channel


# ---- what Redis alone has ----

def rows(file, count):
    """The values of that many lines at least."""
    def read():
        if not os.path.exists(file):
            return []
        with open(file) as f:
            return [[float(v) for v in line.split(",")[4:]] for line in servers.whole_lines(f) if line[0] != "#"]
    servers.until(lambda: len(read()) >= count, lambda: "%s has %d lines: %s" % (file, count, read()))
    return read()


def connected(gateway, *names):
    for name in names:
        servers.until(lambda: gateway.ask("/node/" + name)["state"] == "connected",
                      lambda: "%s is connected: %s" % (name, open(gateway.log).read()))


def values(kind):
    """Keys and hashes: what others set is read, by notice and at a rate; what is written, others get."""
    kind.start()
    base = 'type = "redis"; path = "%s/socket"; db = 3; ' % kind.folder
    named = 'signals = ( { name = "u"; }, { name = "on"; type = "boolean"; }, { name = "n"; type = "integer"; } );'
    g = Gateway(kind.folder, "values", """
nodes = {
	key = { %s mode = "key"; key = "k"; format = "value"; in = { signals = "1f"; }; };
	slow = { %s mode = "key"; key = "k"; format = "value"; notify = false; rate = 20.0; in = { signals = "1f"; }; };
	hash = { %s mode = "hash"; key = "h"; in = { %s }; };
	copy = { %s mode = "hash"; key = "copy"; out = { %s }; };
	fk = { type = "file"; uri = "%s/key.csv"; format = "csv"; out = { flush = true; }; };
	fs = { type = "file"; uri = "%s/slow.csv"; format = "csv"; out = { flush = true; }; };
	fh = { type = "file"; uri = "%s/hash.csv"; format = "csv"; out = { flush = true; }; };
};
paths = ( { in = "key"; out = "fk"; }, { in = "slow"; out = "fs"; }, { in = "hash"; out = [ "fh", "copy" ]; } );
""" % ((base,) * 3 + (named, base, named) + (kind.folder,) * 3))
    connected(g, "key", "slow", "hash", "copy")
    cli = ["redis-cli", "-s", kind.folder + "/socket", "-n", "3"]

    def run(*words):
        return subprocess.run(cli + list(words), check=True, capture_output=True, text=True, timeout=20).stdout

    for i in range(5):
        run("SET", "k", "%d.5" % i)
        check(rows(kind.folder + "/key.csv", i + 1)[-1] == [i + 0.5], "the value of the key")
    slow = rows(kind.folder + "/slow.csv", 3)
    servers.until(lambda: rows(kind.folder + "/slow.csv", 3)[-1] == [4.5], "the value at a rate: %s" % slow)
    # Others' fields do not matter; a value that is none does.
    run("HSET", "h", "u", "1.25", "on", "1", "n", "-7", "other", "text")
    check(rows(kind.folder + "/hash.csv", 1)[-1] == [1.25, 1, -7], "the fields of the hash")
    servers.until(lambda: run("HGETALL", "copy").split() == ["u", "1.25", "on", "1", "n", "-7"], "the copy of the hash")
    run("HSET", "h", "n", "much")
    servers.until(lambda: g.ask("/node/hash")["stats"]["figures"]["malformed"] == 1, "what is no number is counted")
    run("HSET", "h", "n", "9")
    check(rows(kind.folder + "/hash.csv", 2)[-1] == [1.25, 1, 9], "it goes on")
    # The wrong kind of key: what is written is refused.
    run("DEL", "copy")
    run("SET", "copy", "text")
    run("HSET", "h", "n", "10")
    servers.until(lambda: g.ask("/node/copy")["stats"]["losses"]["refused"] == 1, "a refusal is counted")
    log = g.end((3,))
    check("WRONGTYPE" in log, "and said: " + log)
    kind.kill()


def hinders(kind):
    """A server that takes no data for a while: samples wait, and nothing is lost; readers that stand
    still get all that has come meanwhile."""
    kind.start()
    pair = servers.Pair(kind, name="oom-", more_in="")
    pair.await_more()
    kind.ask("CONFIG", "SET", "maxmemory", "1")
    pair.await_state(pair.writer, "pending-connect")
    servers.until(lambda: "OOM" in open(pair.writer.log).read(), "the reason is said")
    time.sleep(0.5)
    log = open(pair.writer.log).read()
    check(log.count("OOM") < 4, "not again and again: " + log)
    kind.ask("CONFIG", "SET", "maxmemory", "0")
    pair.await_state(pair.writer, "connected")
    pair.await_more()
    # A reader that is away: the stream keeps it.
    pair.reader.ask("/node/x/pause", "POST")
    time.sleep(2)
    pair.reader.ask("/node/x/resume", "POST")
    pair.await_more()
    missing, twice, what = pair.account(True)
    check(not missing, "all samples have arrived: " + what)
    pair.end()
    kind.kill()


def memory(kind):
    """A group goes on where the last gateway ended."""
    kind.start()
    pair = servers.Pair(kind, name="first-")
    pair.await_more()
    log = pair.reader.end()
    check("lost" not in log, log)
    kept = len(pair.got())
    pair.reader = Gateway(kind.folder, "first-again", open(pair.reader.config).read().split("\n", 1)[1].replace(
        "first-got", "first-more"))
    first, pair.got = pair.got(), lambda: first + pair.rows(os.path.join(kind.folder, "first-more.csv"))
    pair.await_more()
    missing, twice, what = pair.account(True)
    check(kept and not missing and not twice, "nothing is missing or comes twice: " + what)
    pair.end()
    kind.kill()


class Strange(threading.Thread):
    """A server that takes the login, and then answers with values that nobody expects."""

    def __init__(self, port):
        super().__init__(daemon=True)
        self.socket = socket.create_server(("127.0.0.1", port))
        self.random = random.Random(11)
        self.answers = 0

    def value(self, depth=0):
        r = self.random
        kind = r.randrange(8 if depth < 5 else 5)
        if kind == 0:
            return b":%d\r\n" % r.choice([0, -1, 1 << 62])
        if kind == 1:
            return r.choice([b"$-1\r\n", b"*-1\r\n", b"*0\r\n", b"$0\r\n\r\n"])
        if kind == 2:
            return r.choice([b"+OK\r\n", b"-OOM no\r\n", b"-WRONGTYPE no\r\n", b"-\r\n", b"$999999999\r\n", b"*99999999\r\n"])
        if kind < 5:
            text = r.choice([b"1-1", b"9999-0", b"message", b"pmessage", b"data", b"{}", b"lab:n", b"pong", r.randbytes(9)])
            return b"$%d\r\n%s\r\n" % (len(text), text)
        count = r.randrange(1, 4)
        return b"*%d\r\n" % count + b"".join(self.value(depth + 1) for _ in range(count))

    def serve(self, s):
        known = {b"PING": b"+PONG\r\n", b"XREVRANGE": b"*0\r\n", b"XGROUP": b"+OK\r\n",
                 b"SUBSCRIBE": b"*3\r\n$9\r\nsubscribe\r\n$1\r\nc\r\n:1\r\n", b"XACK": b":1\r\n",
                 b"CONFIG": b"*2\r\n$22\r\nnotify-keyspace-events\r\n$2\r\nAK\r\n", b"SETRANGE": b":0\r\n"}
        with s:
            s.settimeout(0.3)
            try:
                while True:
                    # The first word of what has come is enough.
                    words = s.recv(4096).split(b"\r\n")
                    if len(words) < 3:
                        return
                    s.sendall(known.get(words[2], b"") or self.value())
                    self.answers += 1
                    if words[2] == b"SUBSCRIBE":
                        s.sendall(self.value())
            except OSError:
                pass

    def run(self):
        while True:
            try:
                s, _ = self.socket.accept()
            except OSError:
                return
            threading.Thread(target=self.serve, args=(s,), daemon=True).start()


def strange(kind):
    """Values that make no sense end a connection, and nothing else."""
    server = Strange(kind.port)
    server.start()
    base = 'type = "redis"; port = %d; reconnect_interval = 10; ' % kind.port
    modes = {"a": 'mode = "stream"; key = "lab:n"; in = { group = "g"; };', "b": 'mode = "stream";', "c": 'mode = "channel";',
             "d": 'mode = "key"; ', "e": 'mode = "hash"; in = { signals = "2f"; };', "f": 'mode = "key"; notify = false; rate = 1000.0;'}
    g = Gateway(kind.folder, "strange", "nodes = { sig = { type = \"signal\"; rate = 500.0; values = 2; };\n%s%s };\npaths = ( %s, { in = \"sig\"; out = [ %s ]; } );" % (
        "".join("i%s = { %s%s };\n" % (n, base, m) for n, m in modes.items()),
        "".join("o%s = { %s%s };\n" % (n, base, m.split("in =")[0]) for n, m in modes.items()),
        ", ".join('{ in = "i%s"; }' % n for n in modes), ", ".join('"o%s"' % n for n in modes)))
    servers.until(lambda: server.answers >= 600, lambda: "it goes on: %d; %s" % (server.answers, open(g.log).read()[-3000:]), 60)
    check(g.process.poll() is None, "the gateway stays")
    since = time.monotonic()
    g.end((0, 3))
    check(time.monotonic() - since < servers.ENDS_IN, "it ends in time")
    server.socket.close()


if __name__ == "__main__":
    sys.exit(servers.main({"stream": Redis, "group": Group, "channel": Channel},
                          {"values": values, "hinders": hinders, "memory": memory, "strange": strange}))
