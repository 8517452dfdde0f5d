#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The node-type amqp with RabbitMQ. Arguments: scenarios (servers.py), or those below.

RabbitMQ needs seconds to start. So `together` runs several scenarios with one server, which has
TLS and a password from the first of them on."""
import os
import signal
import subprocess
import sys
import time

import servers
from gateway_process import Gateway, check

SERVER = "/usr/lib/rabbitmq/bin/rabbitmq-server"


class Amqp(servers.Kind):
    name = "amqp"
    program = SERVER
    port = 5672
    tls_port = 5671
    durable = True

    def __init__(self, folder):
        super().__init__(folder)
        self.epmd = None
        self.shared = False         # kill() leaves the server to the next scenario
        self.round = 0              # scenarios do not get each other's messages
        self.secret_file = None

    def start_epmd(self):
        """The directory of Erlang's nodes. The server would start one that stays."""
        self.epmd = subprocess.Popen(["epmd", "-address", "127.0.0.1"], stdin=subprocess.DEVNULL,
                                     stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        servers.until(lambda: servers.listens(4369), "epmd starts")

    def argv(self, tls, password):
        if not self.epmd:
            self.start_epmd()
        with open(os.path.join(self.folder, "rabbitmq.conf"), "w") as f:
            f.write("listeners.tcp.1 = 127.0.0.1:%d\ndisk_free_limit.absolute = 1MB\n" % self.port)
            f.write("log.console = true\nlog.console.level = warning\nlog.file = false\n")
            if tls:
                f.write("listeners.ssl.1 = 127.0.0.1:%d\nssl_options.verify = verify_none\n" % self.tls_port)
                for key, file in (("cacertfile", "ca.crt"), ("certfile", "server.crt"), ("keyfile", "server.key")):
                    f.write("ssl_options.%s = %s\n" % (key, os.path.join(self.folder, file)))
            if password:
                f.write("default_user = lab\ndefault_pass = %s\n" % password)
        with open(os.path.join(self.folder, "plugins"), "w") as f:
            f.write("[].\n")
        if password:
            self.secret_file = os.path.join(self.folder, "secret")
            with open(self.secret_file, "w") as f:
                f.write(password + "\n")
        return ["env", "HOME=" + self.folder, "RABBITMQ_NODENAME=rabbit@localhost", "RABBITMQ_BASE=" + self.folder,
                "RABBITMQ_MNESIA_BASE=%s/mnesia" % self.folder, "RABBITMQ_LOG_BASE=%s/log" % self.folder,
                "RABBITMQ_CONFIG_FILE=%s/rabbitmq.conf" % self.folder, "RABBITMQ_CONF_ENV_FILE=%s/none" % self.folder,
                "RABBITMQ_ENABLED_PLUGINS_FILE=%s/plugins" % self.folder, "ERL_EPMD_ADDRESS=127.0.0.1",
                "ERL_CRASH_DUMP=/dev/null", SERVER]

    def start(self, tls=False, password=None):
        if not self.process:
            super().start(tls, password)

    def kill(self):
        if self.shared:
            self.signal(signal.SIGCONT)
            return
        super().kill()
        self.await_end()

    def await_end(self):
        """Erlang's own process ends a while after the script that has started it."""
        servers.until(lambda: not servers.listens(self.port), "the server is gone")

    def end(self):
        """The server and epmd."""
        self.shared = False
        super().kill()
        self.await_end()
        if self.epmd:
            self.epmd.kill()
            self.epmd.wait()
        self.epmd = None
        servers.until(lambda: not self.end_children(), "the server's children end")

    def end_children(self):
        """Programs that the server has started in sessions of their own, by their environment.
        Returns how many there were."""
        count = 0
        for entry in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open("/proc/%s/environ" % entry, "rb") as f:
                    if b"RABBITMQ_BASE=%s\0" % self.folder.encode() in f.read():
                        os.kill(int(entry), signal.SIGKILL)
                        count += 1
            except OSError:
                pass
        return count

    def node(self, direction, channel, form, tls=None, password=None):
        text = 'host = "%s"; port = %d; format = "%s"; reconnect_interval = 100; ' \
               'heartbeat = 60; connect_timeout = 30.0; ' % (
            "localhost" if tls else self.host, self.tls_port if tls else self.port, form)
        if tls:
            text += 'ssl = { ca = "%s"; }; ' % tls
        if password or self.secret_file:
            text += 'username = "lab"; password_file = "%s"; ' % (password or self.secret_file)
        where = "%s-%d" % (channel, self.round)
        # Those of `exchange` have what VILLASnode has.
        if channel[1:].isdigit():
            text += 'exchange = "plain"; routing_key = "%s"; ' % where
            return text + ('in = { signals = "2f"; };' if direction == "in" else "out = { };")
        text += 'exchange = "lab"; exchange_type = "topic"; durable = true; '
        if direction == "in":
            return text + 'in = { routing_key = [ "lab.%s.#", "never" ]; queue = "%s"; signals = "2f"; };' % (
                where, where)
        # So much that nothing has to be dropped while the server starts again.
        backlog = "backlog = 16777216; " if channel == "account" else ""
        return text + 'out = { routing_key = "lab.%s.x"; %s};' % (where, backlog)


# ---- what is special ----

def away(kind):
    """What is written while the reader is away waits in its durable queue; a reader that stands
    still is sent no more than it has room for."""
    kind.start()
    pair = servers.Pair(kind, name="away-")
    pair.await_more()
    pair.reader.end((0, 3))
    before = len(pair.got())
    sent = pair.stats(pair.writer)["figures"]["confirmed"]
    servers.until(lambda: pair.stats(pair.writer)["figures"]["confirmed"] > sent + 1500, "the server takes more")
    # It starts with small queues, so that it could not hold at once what waits.
    pair.reader = Gateway(kind.folder, "away-again", """
nodes = { x = { type = "amqp"; %s };
	f = { type = "file"; uri = "%s"; format = "csv"; out = { flush = true; }; };
};
paths = ( { in = "x"; out = "f"; } );
""" % (kind.node("in", "account", "json").replace("in = {", "in = { queuelen = 64;"), pair.got_file + ".2"))
    first, pair.got_file = pair.got_file, pair.got_file + ".2"
    pair.await_more(1500)
    pair.reader.process.send_signal(signal.SIGSTOP)
    time.sleep(0.5)
    pair.reader.process.send_signal(signal.SIGCONT)
    pair.await_more()
    pair.settle()
    servers.until(lambda: set(pair.rows(pair.sent_file)) <= set(pair.rows(first)) | set(pair.got()),
                  lambda: "all arrive: %d before, %d, %d of %d" % (
                      before, len(pair.rows(first)), len(pair.got()), len(pair.rows(pair.sent_file))))
    stats = pair.stats(pair.reader)
    check(stats["figures"]["overrun"] == 0, "the reader's queue is never too short: %s" % stats["figures"])
    check(len(pair.got()) - len(set(pair.got())) <= stats["figures"]["redelivered"], "none arrives twice unseen")
    check(not sum(pair.stats(pair.writer)["losses"].values()), "the writer has lost nothing")
    pair.end()
    kind.kill()


def returned(kind):
    """A mandatory message without a queue is counted as lost; one that is too long for the reader
    is counted; one of several frames arrives; a server's refusal is told in its own words."""
    kind.start()
    nobody = kind.node("out", "nobody", "json").replace("out = {", "out = { mandatory = true;")
    g = Gateway(kind.folder, "returned", """
nodes = { sig = { type = "signal"; signal = "counter"; rate = 500.0; values = 2; };
	x = { type = "amqp"; %s };
	short = { type = "amqp"; %s };
	long = { type = "amqp"; %s };
	wrong = { type = "amqp"; %s };
	steady = { type = "signal"; signal = "counter"; rate = 200.0; values = 2; };
	wide = { type = "signal"; signal = "counter"; rate = 10.0; values = 16000; };
	split = { type = "amqp"; %s };
	joined = { type = "amqp"; %s };
};
paths = ( { in = "sig"; out = [ "x", "wrong" ]; }, { in = "steady"; out = "long"; }, { in = "short"; },
	{ in = "wide"; out = "split"; }, { in = "joined"; } );
""" % (nobody, kind.node("in", "long", "json").replace("in = {", "in = { max_message = 64;"), kind.node("out", "long", "json"),
            kind.node("out", "wrong", "json").replace('"lab"; exchange_type = "topic"', '"amq.topic"; exchange_type = "direct"'),
            kind.node("out", "wide", "json"), kind.node("in", "wide", "json").replace("2f", "16000f")))

    def stats(node):
        return g.ask("/node/" + node)["stats"]
    servers.until(lambda: stats("x")["losses"]["refused"] > 100, lambda: "they come back: %s" % stats("x"))
    g.ask("/node/sig/stop", "POST")
    servers.until(lambda: stats("x")["losses"]["refused"] == stats("x")["sent"], lambda: "all: %s" % stats("x"))
    check(stats("x")["figures"]["returned"] == stats("x")["sent"], "they are counted: %s" % stats("x"))
    servers.until(lambda: stats("short")["figures"]["oversized"] > 300, lambda: "too long: %s" % stats("short"))
    check(stats("short")["received"] == 0 and stats("short")["figures"]["malformed"] == 0, "they are not read")
    # In several frames: each holds 128 KiB.
    servers.until(lambda: stats("joined")["received"] > 5, lambda: "long messages: %s" % stats("joined"))
    check(stats("joined")["figures"]["malformed"] == 0, "they are whole")
    log = g.end((0, 3))
    check("PRECONDITION_FAILED - inequivalent arg 'type' for exchange 'amq.topic'" in log, "the server's words: " + log)
    kind.kill()


def fills(kind):
    """A server that stands still takes no more bytes: the path that writes is not held up."""
    kind.start()
    node = kind.node("out", "fills", "json").replace("out = {", "out = { backlog = 67108864;")
    g = Gateway(kind.folder, "fills", """
nodes = { sig = { type = "signal"; signal = "counter"; rate = 400.0; values = 1000; };
	x = { type = "amqp"; %s };
};
paths = ( { in = "sig"; out = "x"; } );
""" % node)
    servers.until(lambda: g.ask("/node/x")["stats"]["figures"]["confirmed"] > 100, "the server takes them")
    kind.signal(signal.SIGSTOP)
    # More is waiting than in all the buffers of the sockets.
    servers.until(lambda: g.ask("/node/x")["stats"]["figures"]["waiting"] > 200, "the socket is full")
    sent = g.ask("/node/x")["stats"]["sent"]
    servers.until(lambda: g.ask("/node/x")["stats"]["sent"] > sent + 200, "the path is not held up")
    kind.signal(signal.SIGCONT)
    g.ask("/node/sig/stop", "POST")

    def left():
        figures = g.ask("/node/x")["stats"]["figures"]
        return figures["waiting"] + figures["unconfirmed"]
    servers.until(lambda: not left(), "what waited is sent")
    check(not sum(g.ask("/node/x")["stats"]["losses"].values()), "nothing is lost")
    g.end()
    kind.kill()


def hangs(kind):
    """A gateway ends in time while its server does not answer the login; with a uri."""
    kind.start()
    kind.signal(signal.SIGSTOP)
    secret = open(kind.secret_file).read().strip() if kind.secret_file else "guest"
    uri = "amqp://%s:%s@localhost:%d/%%2f" % ("lab" if kind.secret_file else "guest", secret, kind.port)
    config = """
nodes = { x = { type = "amqp"; uri = "%s"; exchange = "plain"; routing_key = "uri"; in = { signals = "1f"; }; };
	s = { type = "signal"; signal = "counter"; rate = 100.0; values = 1; };
};
paths = ( { in = "x"; }, { in = "s"; out = "x"; } );
""" % uri
    g = Gateway(kind.folder, "hangs", config)
    time.sleep(0.3)
    since = time.monotonic()
    log = g.end((0, 3))
    check(time.monotonic() - since < servers.ENDS_IN, "it ends in time")
    check("does not let go" not in log and secret + "@" not in log, "the log: " + log)
    kind.signal(signal.SIGCONT)
    g = Gateway(kind.folder, "uri", config)
    servers.until(lambda: g.ask("/node/x")["stats"]["received"] > 20, lambda: open(g.log).read())
    check("amqp:" in str(g.client.ask("/config")) and secret + "@" not in str(g.client.ask("/config")), "no password")
    g.end()
    kind.kill()


def together(kind):
    """Several scenarios with one server; the last one kills it."""
    try:
        for what in (servers.protected, servers.exchange, away, returned, fills, hangs, servers.network_is_cut,
                     servers.stands_still, servers.ends_while_it_stands_still, servers.restarts):
            kind.round += 1
            kind.shared = what != servers.restarts
            since = time.monotonic()
            what(kind)
            print("  %s: %.1f s" % (what.__name__, time.monotonic() - since), flush=True)
    finally:
        kind.end()


def alone(scenario):
    def run(kind):
        try:
            scenario(kind)
        finally:
            kind.end()
    return run


MORE = {name: alone(scenario) for name, scenario in
        dict(servers.SCENARIOS, away=away, returned=returned, fills=fills, hangs=hangs).items()}
MORE["together"] = together


if __name__ == "__main__":
    # Past its time limit the test still ends what it has started.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    sys.exit(servers.main(Amqp, MORE))
