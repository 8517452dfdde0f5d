#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The node-type kafka with the mock cluster of librdkafka (kafka_mock.c), and kcat as a stranger.
The mock has no TLS and no SASL: kafka_front.py stands in front of it for them.

KAFKA_MOCK: the mock. Other arguments: scenarios (servers.py)."""
import json
import os
import shutil
import signal
import subprocess
import sys

import kafka_front
import servers
from gateway_process import BUSBAR, Gateway, check


class Kafka(servers.Kind):
    name = "kafka"
    program = os.environ.get("KAFKA_MOCK", "kafka_mock")
    port = 9092
    behind = 19092
    mechanism = "PLAIN"
    front = None
    more = out = properties = ""
    topics = ["account", "n", "full", "try", "shared:2", "stranger"] + ["c%d" % i for i in range(40)]
    refusal = "authentication failed"

    def argv(self, tls, password):
        if tls or password:
            self.front = kafka_front.Front(self.port, self.behind, kafka_front.context(self.folder) if tls else None,
                                           ("lab", password) if password else None)
        return [self.program, str(self.behind if self.front else self.port), str(self.port)] + self.topics

    def ready(self):
        return servers.listens(self.behind if self.front else self.port)

    def kill(self):
        super().kill()
        if self.front:
            self.front.close()
        self.front = None

    def node(self, direction, channel, form, tls=None, password=None):
        text = 'server = "%s:%d"; format = "%s"; reconnect_interval = 100; client_id = "lab"; ' % (
            "localhost" if tls else self.host, self.port, form)
        if tls or password:
            text += 'protocol = "%s%s"; ' % ("SASL_" if password else "", "SSL" if tls else "PLAINTEXT")
        if tls:
            text += 'ssl = { ca = "%s"; }; ' % tls
        if password:
            text += 'sasl = { mechanisms = "%s"; username = "lab"; password_file = "%s"; }; ' % (
                self.mechanism, password)
        # The mock answers only when this time is over.
        if direction == "in":
            return text + 'in = { consume = "%s"; signals = "2f"; properties = { fetch_wait_max_ms = 10; %s }; %s };' % (
                channel, self.properties, self.more)
        return text + 'out = { produce = "%s"; %s };' % (channel, self.out)


def scram(kind):
    """SASL without the password on the wire, and a right and a wrong one."""
    folder = kind.folder
    for kind.mechanism in ("SCRAM-SHA-256", "SCRAM-SHA-512"):
        kind.folder = os.path.join(folder, kind.mechanism)
        os.mkdir(kind.folder)
        servers.protected(kind)


def samples_of(text):
    got = []
    for line in text.splitlines():
        data = json.loads(line)
        got += [s["sequence"] for s in (data if isinstance(data, list) else [data])]
    return got


def stranger(kind):
    """kcat reads what a node writes, and a node what kcat writes."""
    if not shutil.which("kcat"):
        print("not tried: kcat is not installed")
        return
    kcat = ["kcat", "-b", "127.0.0.1:%d" % kind.port, "-t", "stranger"]
    kind.start()
    got = os.path.join(kind.folder, "got.csv")
    reader = Gateway(kind.folder, "reader", """
nodes = { x = { type = "kafka"; %s }; f = { type = "file"; uri = "%s"; format = "csv"; out = { flush = true; }; }; };
paths = ( { in = "x"; out = "f"; } );
""" % (kind.node("in", "stranger", "json"), got))
    servers.until(lambda: reader.ask("/node/x")["state"] == "connected", lambda: open(reader.log).read())
    lines = "".join('[{"ts": {"origin": [1700000000, 0]}, "sequence": %d, "data": [0.5, -0.5]}]\n' % i for i in range(50))
    subprocess.run(kcat + ["-P"], input=lines, text=True, check=True, timeout=60, capture_output=True)

    def rows():
        with open(got) as f:
            return [int(line.split(",")[3]) for line in servers.whole_lines(f) if line[0] != "#"]
    servers.until(lambda: len(rows()) >= 50, lambda: "what kcat wrote: %s" % rows())
    check(rows() == list(range(50)), "what kcat wrote is read in order: %s" % rows())
    writer = Gateway(kind.folder, "writer", """
nodes = { sig = { type = "signal"; signal = "counter"; rate = 1000.0; values = 2; limit = 100; };
	x = { type = "kafka"; %s }; };
paths = ( { in = "sig"; out = "x"; } );
""" % kind.node("out", "stranger", "json").replace("out = {", 'out = { key = "lab";'))

    def sent():
        stats = writer.ask("/node/x")["stats"]
        return stats["sent"] if stats["sent"] == stats["figures"]["confirmed"] else 0
    servers.until(lambda: sent() > 50, "they are confirmed")
    writer.ask("/node/sig/stop", "POST")
    servers.until(sent, "all are confirmed")
    count = sent()
    writer.end()
    out = subprocess.run(kcat + ["-C", "-e", "-o", "50", "-f", "%k %s\n"], text=True, check=True, timeout=60,
                         capture_output=True).stdout
    check(all(line.startswith("lab ") for line in out.splitlines()), "the key is there: " + out[:200])
    numbers = samples_of("\n".join(line[4:] for line in out.splitlines()))
    # The generator may leave out steps.
    check(len(numbers) == count and numbers == sorted(set(numbers)), "kcat reads all, in order: %s" % numbers)
    reader.end()
    kind.kill()


def group(kind):
    """A group goes on where it stopped; what came in between is not lost."""
    kind.start()
    # The mock lets a member wait for those that have left, until their session ends.
    kind.properties = "session_timeout_ms = 6000; heartbeat_interval_ms = 500;"
    # Samples of two partitions come mixed.
    kind.more = 'group_id = "lab"; auto_offset_reset = "earliest"; builtin = false;'
    got = os.path.join(kind.folder, "got.csv")

    def start(name):
        g = Gateway(kind.folder, name, """
nodes = { x = { type = "kafka"; %s }; f = { type = "file"; uri = "%s"; format = "csv"; out = { flush = true; }; }; };
paths = ( { in = "x"; out = "f"; } );
""" % (kind.node("in", "shared", "csv"), got + name))
        servers.until(lambda: g.ask("/node/x")["state"] == "connected", lambda: open(g.log).read(), 30)
        return g

    def rows(name):
        with open(got + name) as f:
            return [int(line.split(",")[3]) for line in servers.whole_lines(f) if line[0] != "#"]

    def write(first):
        lines = "".join("1700000000,0,0.0,%d,0.5,1.5\n" % i for i in range(first, first + 50))
        subprocess.run(["kcat", "-b", "127.0.0.1:%d" % kind.port, "-t", "shared", "-P"], input=lines, text=True,
                       check=True, timeout=60, capture_output=True)
    write(0)
    g = start("first")
    check(g.ask("/node/x")["stats"]["figures"]["partitions"] == 2, "it has both partitions")
    servers.until(lambda: len(rows("first")) >= 50, lambda: "the first half: %s %s" % (rows("first"), (g.ask("/node/x")["stats"], open(g.log).read())))
    g.end()
    write(50)
    g = start("second")
    servers.until(lambda: len(rows("second")) >= 50, lambda: "the second half: %s, the first: %s, %s" % (rows("second"), rows("first"), (g.ask("/node/x")["stats"], open(g.log).read())))
    g.end()
    check(sorted(rows("first")) == list(range(50)), "the first half, once: %s" % sorted(rows("first")))
    check(sorted(rows("second")) == list(range(50, 100)), "the second half, once: %s" % sorted(rows("second")))
    kind.kill()


def fatal(kind):
    """A broker that has lost what it knew of an idempotent producer: the node goes on with a new
    one, and sends again what was not confirmed."""
    kind.start()
    kind.out = "idempotence = true;"
    # The mock takes later messages than the refused one, which then comes behind them.
    kind.more = "builtin = false;"
    pair = servers.Pair(kind, name="fatal-")
    pair.await_more()
    for times in range(1, 4):
        kind.signal(signal.SIGUSR1)
        servers.until(lambda: pair.stats(pair.writer)["figures"]["connections"] > times,
                      lambda: "it goes on: " + open(pair.writer.log).read()[-1500:])
        pair.await_more()
    missing, twice, what = pair.account(True)
    check(not missing, "nothing is lost: " + what)
    pair.end()
    kind.kill()


def refused_keys(kind):
    """What the library cannot do is refused, with the reason."""
    def said(more, out=""):
        config = os.path.join(kind.folder, "try.conf")
        with open(config, "w") as f:
            f.write('nodes = { x = { type = "kafka"; server = "a:1"; %s out = { produce = "t"; %s }; }; s = { type = "signal"; signal = "sine"; }; };\n'
                    'paths = ( { in = "s"; out = "x"; } );' % (more, out))
        p = subprocess.run([BUSBAR, "check", config], capture_output=True, text=True, timeout=60)
        return p.stdout + p.stderr if p.returncode else ""

    for more, out, words in (
            ('protocol = "SSL";', "", ""), ('properties = { socket_timeout_ms = 10000; debug = "msg"; };', "", ""),
            ('properties = { ssl = { key = { password = "x"; }; }; };', "", ""),
            ("", 'properties = { linger_ms = 5; compression_codec = "lz4"; };', ""),
            ('protocol = "SASL_SSL";', "", "sasl is missing"),
            ('protocol = "PLAINTEXT"; sasl = { mechanisms = "PLAIN"; username = "a"; password = "b"; };', "", "sasl is given"),
            ('protocol = "PLAINTEXT"; ssl = { };', "", "ssl is given"),
            ('sasl = { mechanisms = "PLAIN"; username = "a"; };', "", "needs username and password"),
            ('ssl = { server_name = "b"; };', "", "address of its broker"), ('ssl = { version = "1.3"; };', "", "OpenSSL"),
            ("", 'idempotence = true; acks = "1";', "needs acks"), ("", 'key = "a"; partition = 1;', "by its number"),
            ("timeout = 1.0; connect_timeout = 1.0;", "", "another name"),
            ('properties = { group_id = "a"; };', "", "in.group_id"), ('properties = { lingre_ms = 1; };', "", "No such"),
            ('properties = { linger_ms = "soon"; };', "", "Invalid value"),
            ('properties = { ssl_key_password = "x"; };', "", "would be shown")):
        text = said(more, out)
        check(words in text if words else not text, "%s %s: %s" % (more, out, text))


if __name__ == "__main__":
    sys.exit(servers.main(Kafka, {"scram": scram, "stranger": stranger, "group": group, "fatal": fatal,
                                  "keys": refused_keys}))
