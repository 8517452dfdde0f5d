# SPDX-License-Identifier: BSD-2-Clause
"""Other people's servers between two gateways: what all node-types of gateway/outside have to do.

A test of a node-type describes its server by a subclass of Kind, and calls main() with it. It
runs in a network namespace of its own; what it starts ends with it.

Environment: BUSBAR, the program. Exit status 0: good, 1: not, 77: it cannot be tried here.
"""
import csv
import json
import os
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

import tls_hostile
from double import Double
from gateway_process import BUSBAR, Gateway, check, whole_lines

ROWS = 240
RATE = 1000
# Values that every format holds exactly.
STEP = 0.25
STILL = 5.0
# Two seconds are promised; more passes on a busy machine, and while a sanitizer looks for leaks.
ENDS_IN = 2.0 + 6.0


def skip(why):
    print("skipped: " + why)
    sys.exit(77)


def until(true, what, seconds=20):
    """Waits for a condition; `what` is a text or a function that makes one."""
    end = time.monotonic() + seconds
    while not true():
        if time.monotonic() > end:
            raise AssertionError(what() if callable(what) else what)
        time.sleep(0.005)


def enter_network():
    """Goes on in a network namespace of its own, with loopback."""
    if os.environ.get("IN_NETWORK"):
        subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
        return
    how = ["unshare", "-n"] if os.geteuid() == 0 else ["unshare", "-rn"]
    if subprocess.run(how + ["true"], capture_output=True).returncode:
        skip("no right to make a network namespace")
    os.environ["IN_NETWORK"] = "1"
    os.execvp(how[0], how + [sys.executable] + sys.argv)


def listens(port):
    """Whether somebody takes connections there."""
    with socket.socket() as s:
        s.settimeout(1)
        return s.connect_ex(("127.0.0.1", port)) == 0


def certificates(folder):
    """An authority, a server's certificate for localhost and one of another authority."""
    def run(*args):
        subprocess.run(("openssl",) + args, cwd=folder, check=True, capture_output=True, timeout=60)

    key = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")
    for name in ("ca", "other"):
        run("req", "-x509", *key, "-days", "30", "-subj", "/CN=" + name, "-keyout", name + ".key",
            "-out", name + ".crt")
    run("req", *key, "-subj", "/CN=localhost", "-keyout", "server.key", "-out", "server.csr")
    with open(os.path.join(folder, "names"), "w") as f:
        f.write("subjectAltName=DNS:localhost,IP:127.0.0.1\n")
    run("x509", "-req", "-in", "server.csr", "-CA", "ca.crt", "-CAkey", "ca.key", "-CAcreateserial",
        "-days", "30", "-extfile", "names", "-out", "server.crt")
    # A server may run as another user.
    for name in ("server.key", "server.crt", "ca.crt"):
        os.chmod(os.path.join(folder, name), 0o644)


def cut(port, on, how="drop"):
    """Nothing goes to or from a TCP port any more, or again; with another `how` of nft, that happens to
    what goes to it."""
    if on:
        rules = "table inet cut {\nchain c {\ntype filter hook input priority 0;\n" \
                "tcp dport %d %s;\n%s}\n}\n" % (port, how, "tcp sport %d drop;\n" % port if how == "drop" else "")
        subprocess.run(["nft", "-f", "-"], input=rules, text=True, check=True, timeout=20)
    else:
        subprocess.run(["nft", "delete", "table", "inet", "cut"], check=True, timeout=20)


class Kind:
    """A node-type and its server. Subclasses override what is theirs."""
    name = None             # of the node-type
    program = None          # that has to be installed
    port = None
    tls_port = None         # if it is another one
    host = "127.0.0.1"
    tls = True              # the protocol has it
    password = True
    confirms = True         # the sender learns what the server has
    durable = False         # a server that was killed still has it, and keeps it for readers
    repeats = True          # after a loss, samples may arrive twice
    without = {"comtrade"}  # formats that do not fit
    formats_min = 10
    rate = RATE
    nonsense = ()           # bytes that come before those without sense, a list
    before_tls = b""        # what a server says before a client begins with TLS
    plain = b"\0" * 64      # what a server without TLS answers to a handshake
    # A line of the log of a gateway whose server does not take the password.
    refusal = "refuse|denied|not authori[sz]ed|password"

    def __init__(self, folder):
        self.folder = folder
        self.process = None

    def argv(self, tls, password):
        """The command that starts the server; files go to self.folder."""
        raise NotImplementedError

    def ready(self):
        return listens(self.port)

    def node(self, direction, channel, form, tls=None, password=None):
        """Keys of a node; `direction` is "in" or "out", `tls` a file of authorities, `password` a
        file."""
        raise NotImplementedError

    # ---- what all have ----

    def tls_node(self, port, ca, password, timeout):
        """A node that writes over TLS to that port of localhost, and gives up after `timeout` seconds."""
        at = (self.port, self.tls_port)
        self.port = self.tls_port = port
        text = self.node("out", "account", "json", ca, password)
        self.port, self.tls_port = at
        return re.sub(r"\b(connect_)?timeout = [0-9.]+; ", "", text) + " connect_timeout = %s;" % timeout

    def start(self, tls=False, password=None):
        log = open(os.path.join(self.folder, "server.log"), "a")
        self.process = subprocess.Popen(self.argv(tls, password), stdout=log, stderr=log,
                                        stdin=subprocess.DEVNULL, cwd=self.folder,
                                        start_new_session=True)
        until(lambda: self.process.poll() is not None or self.ready(), "the server starts", 60)
        check(self.process.poll() is None, "the server runs: " + self.said())

    def said(self):
        with open(os.path.join(self.folder, "server.log"), errors="replace") as f:
            return f.read()[-2000:]

    def signal(self, number):
        os.killpg(self.process.pid, number)

    def kill(self):
        if self.process:
            try:
                self.signal(signal.SIGKILL)
            except ProcessLookupError:
                pass
            self.process.wait()
        self.process = None


# ---- gateways ----

class Pair:
    """A gateway that writes to the server, and one that reads."""

    def __init__(self, kind, form="json", tls=None, password=None, more_out="", more_in="", name=""):
        self.kind, self.folder = kind, kind.folder
        self.got_file = os.path.join(kind.folder, name + "got.csv")
        self.sent_file = os.path.join(kind.folder, name + "sent.csv")
        self.other_file = os.path.join(kind.folder, name + "other.csv")
        reader = """
nodes = {
	x = { type = "%s"; %s %s };
	f = { type = "file"; uri = "%s"; format = "csv"; out = { flush = true; }; };
};
paths = ( { in = "x"; out = "f"; } );
""" % (kind.name, kind.node("in", "account", form, tls, password), more_in, self.got_file)
        # The counter begins when the path is started.
        writer = """
nodes = {
	sig = { type = "signal"; signal = "counter"; rate = %s; values = 2; };
	x = { type = "%s"; %s %s };
	f = { type = "file"; uri = "%s"; format = "csv"; out = { flush = true; }; };
	beside = { type = "signal"; signal = "counter"; rate = 500.0; values = 1; };
	g = { type = "file"; uri = "%s"; format = "csv"; out = { flush = true; }; };
};
paths = ( { in = "sig"; out = [ "x", "f" ]; }, { in = "beside"; out = "g"; } );
""" % (float(kind.rate), kind.name, kind.node("out", "account", form, tls, password), more_out,
            self.sent_file, self.other_file)
        self.reader = Gateway(kind.folder, name + "reader", reader)
        self.await_state(self.reader, "connected")
        self.writer = Gateway(kind.folder, name + "writer", writer)

    def await_state(self, gateway, state):
        def seen():
            return gateway.ask("/node/x")["state"] == state
        until(seen, lambda: "%s: %s" % (state, open(gateway.log).read()[-1500:]), 30)

    def stats(self, gateway):
        return gateway.ask("/node/x")["stats"]

    def rows(self, file):
        """Sequence numbers."""
        if not os.path.exists(file):
            return []
        with open(file) as f:
            return [int(line.split(",")[3]) for line in whole_lines(f) if line[0] != "#"]

    def got(self):
        return self.rows(self.got_file)

    def await_more(self, count=50, seconds=30):
        before = len(self.got())
        until(lambda: len(self.got()) >= before + count,
              lambda: "samples go on: %s %s" % (open(self.writer.log).read()[-1500:],
                                                open(self.reader.log).read()[-1500:]), seconds)

    def has_arrived(self):
        """All that was written."""
        return not set(self.rows(self.sent_file)) - set(self.got())

    def settle(self):
        """The source stops, and all that is on its way arrives. What has not, though nothing has
        changed for STILL seconds, does not come any more; a reader may be far behind."""
        self.writer.ask("/node/sig/stop", "POST")
        last, since = None, time.monotonic()

        def still():
            nonlocal last, since
            w = self.stats(self.writer)
            figures = w["figures"]
            now = (len(self.got()), figures["waiting"], figures["unconfirmed"], w["sent"])
            if now != last:
                last, since = now, time.monotonic()
            time.sleep(0.25)
            quiet = time.monotonic() - since
            return not figures["waiting"] and not figures["unconfirmed"] and (
                quiet > STILL or (quiet >= 0.25 and self.has_arrived()))
        until(still, lambda: "what waits is sent: %s" % (last,), 120)

    def account(self, strict=False):
        """Each sample has arrived, or is counted as lost; those that arrived twice are counted.
        `strict`: by the writer; else the reader may have found gaps, of what the server had."""
        self.settle()
        wrote, got = self.rows(self.sent_file), self.got()
        w, r = self.stats(self.writer), self.stats(self.reader)
        check(not set(got) - set(wrote), "nothing arrives that was not sent")
        missing = len(set(wrote) - set(got))
        twice = len(got) - len(set(got))
        lost = sum(w["losses"].values()) + r["figures"]["overrun"]
        what = "wrote %d, got %d, missing %d, twice %d, writer %s %s, reader %s" % (
            len(wrote), len(got), missing, twice, w["losses"], w["figures"], r["lost"])
        check(len(wrote) == w["sent"] + w["not_sent"], "all were given to the node: " + what)
        if strict:
            check(missing <= lost, "those that are missing are counted as lost: " + what)
        else:
            check(missing <= lost + r["lost"], "those that are missing are counted: " + what)
        # The writer sends again, or the server does.
        again = w["figures"]["repeated"] + r["figures"].get("redelivered", 0)
        check(twice <= (again if self.kind.repeats else 0),
              "those that arrive twice are counted: " + what)
        return missing, twice, what

    def others_are_not_disturbed(self):
        """The other path of the writer has lost nothing."""
        stats = self.writer.ask("/path/1/stats")["stats"]
        rows = self.rows(self.other_file)
        missed = self.writer.ask("/node/beside")["stats"]["missed"]
        check(stats["dropped"] == 0 and rows, "the path beside loses nothing: %s" % stats)
        check(rows[-1] - rows[0] + 1 - len(rows) <= missed, "its samples are all there")

    def end(self):
        for gateway in (self.writer, self.reader):
            since = time.monotonic()
            # 3: samples were lost, which the account has shown.
            gateway.end((0, 3))
            took = time.monotonic() - since
            check(took < ENDS_IN, "the gateway ends in time: %.1f s" % took)


# ---- scenarios ----

def formats(kind):
    """Formats that can be read and written."""
    names = []
    with subprocess.Popen([BUSBAR, "node", "-C"], stdout=subprocess.PIPE, text=True) as p:
        all_names = json.load(p.stdout)["formats"]
    for name in all_names:
        if name in kind.without:
            continue
        config = os.path.join(kind.folder, "try.conf")
        with open(config, "w") as f:
            f.write('nodes = { i = { type = "%s"; %s }; o = { type = "%s"; %s }; l = { type = "loopback"; }; };\n'
                    'paths = ( { in = "i"; out = "l"; }, { in = "l"; out = "o"; } );'
                    % (kind.name, kind.node("in", "try", name), kind.name, kind.node("out", "try", name)))
        if subprocess.run([BUSBAR, "check", "-q", config], capture_output=True, timeout=60).returncode == 0:
            names.append(name)
    return names


def exchange(kind):
    """Every format that fits: all samples, in order, with their values."""
    kind.start()
    names = formats(kind)
    check(len(names) >= kind.formats_min, "formats: %s" % names)
    rows = [[i * STEP, -i * STEP] for i in range(ROWS)]
    rows_file = os.path.join(kind.folder, "rows.csv")
    with open(rows_file, "w") as f:
        for i, row in enumerate(rows):
            f.write("%d,0,0.0,%d,%s\n" % (1700000000 + i, i, ",".join(map(repr, row))))
    readers = "".join('x%d = { type = "%s"; %s };\n f%d = { type = "file"; uri = "%s/%s.csv"; format = "csv"; out = { flush = true; }; };\n'
                      % (i, kind.name, kind.node("in", "c%d" % i, n), i, kind.folder, n) for i, n in enumerate(names))
    reader = Gateway(kind.folder, "b", "nodes = {%s};\npaths = ( %s );\n" % (
        readers, ", ".join('{ in = "x%d"; out = "f%d"; }' % (i, i) for i in range(len(names)))))
    try:
        for i in range(len(names)):
            until(lambda: reader.ask("/node/x%d" % i)["state"] == "connected",
                  lambda: "it is connected: " + open(reader.log).read()[-1500:], 30)
        writers = "".join('x%d = { type = "%s"; %s };\n' % (i, kind.name, kind.node("out", "c%d" % i, n))
                          for i, n in enumerate(names))
        # Several samples at a time, so that a message holds several where the format can.
        writer = Gateway(kind.folder, "a", 'nodes = { r = { type = "file"; uri = "%s"; format = "csv"; '
                         'in = { signals = "2f"; vectorize = 8; rate = 2000.0; eof = "wait"; }; }; %s };\n'
                         "paths = ( { in = \"r\"; out = [ %s ]; } );\n" % (
                             rows_file, writers, ", ".join('"x%d"' % i for i in range(len(names)))))
        try:
            for i, n in enumerate(names):
                check_rows(kind, n, os.path.join(kind.folder, n + ".csv"), rows, (writer, reader))
        finally:
            log = writer.end()
        check("lost" not in log, "nothing is lost: " + log)
    finally:
        reader.end()
    kind.kill()


def check_rows(kind, name, file, rows, gateways):
    def read():
        if not os.path.exists(file):
            return []
        with open(file) as f:
            return [list(map(float, r[4:])) for r in csv.reader(f) if r and r[0][0] != "#"]
    until(lambda: len(read()) >= len(rows), lambda: "all samples in %s: %d of %d; %s" % (
        name, len(read()), len(rows), "".join(open(g.log).read()[-1500:] for g in gateways)), 30)
    got = read()
    check(len(got) == len(rows), "%s: %d samples, %d were sent" % (name, len(got), len(rows)))
    for a, b in zip(got, rows):
        check(a and a == b[:len(a)], "%s: %s is not %s" % (name, a, b))


def protected(kind):
    """TLS with an authority of one's own, and a password; wrong ones are refused, and not shown."""
    if not (kind.tls or kind.password):
        return
    secret = "quite-secret-%d" % random.randrange(1 << 30)
    password = os.path.join(kind.folder, "password")
    ca = None
    with open(password, "w") as f:
        f.write(secret + "\n")
    if kind.tls:
        certificates(kind.folder)
        ca = os.path.join(kind.folder, "ca.crt")
    kind.start(tls=kind.tls, password=secret if kind.password else None)
    pair = Pair(kind, tls=ca, password=password if kind.password else None, name="tls-")
    pair.await_more()
    pair.account()
    for gateway in (pair.reader, pair.writer):
        for path in ("/config", "/nodes", "/node/x", "/config/text"):
            check(secret not in str(gateway.client.ask(path)), "%s shows no password" % path)
        check(secret not in open(gateway.log).read(), "the log shows no password")
    pair.end()

    def is_refused(what, words, authority, file):
        g = Gateway(kind.folder, "refused", 'nodes = { x = { type = "%s"; %s }; };\npaths = ( { in = "x"; } );\n'
                    % (kind.name, kind.node("in", "account", "json", authority, file)))
        until(lambda: re.search(words, open(g.log).read(), re.I),
              lambda: "%s is refused: %s" % (what, open(g.log).read()), 30)
        until(lambda: g.ask("/node/x")["state"] == "pending-connect", "%s: the state" % what)
        g.end()
    if kind.tls:
        is_refused("another authority", "cannot connect.*(certificate|ssl|tls)",
                   os.path.join(kind.folder, "other.crt"), password if kind.password else None)
    if kind.password:
        with open(password, "w") as f:
            f.write("wrong\n")
        is_refused("a wrong password", "cannot connect.*(%s)" % kind.refusal, ca, password)
    kind.kill()


def restarts(kind, times=1):
    """The server is killed and started again."""
    kind.start()
    pair = Pair(kind, name="restart-")
    pair.await_more()
    for _ in range(times):
        kind.kill()
        pair.await_state(pair.writer, "pending-connect")
        time.sleep(random.uniform(0, 0.2))
        kind.start()
        pair.await_state(pair.writer, "connected")
        pair.await_state(pair.reader, "connected")
        pair.await_more()
    pair.account(kind.durable)
    pair.others_are_not_disturbed()
    figures = pair.stats(pair.writer)["figures"]
    check(figures["connections"] == times + 1 and figures["connections_lost"] == times,
          "connections are counted: %s" % figures)
    pair.end()
    kind.kill()


def stands_still(kind):
    """The server stands still for 5 s: memory stays bounded, the path beside goes on."""
    kind.start()
    pair = Pair(kind, more_out="", name="still-")
    pair.await_more()
    before = pair.writer.resident_kb()
    kind.signal(signal.SIGSTOP)
    time.sleep(5)
    pair.others_are_not_disturbed()
    grown = pair.writer.resident_kb() - before
    check(grown < 20000 or pair.writer.sanitized(), "memory is bounded: %d KiB more" % grown)
    kind.signal(signal.SIGCONT)
    pair.await_more()
    pair.account(kind.confirms)
    pair.end()
    kind.kill()


def ends_while_it_stands_still(kind):
    """A gateway ends within 2 s though its server does not answer."""
    kind.start()
    pair = Pair(kind, name="end-")
    pair.await_more()
    kind.signal(signal.SIGSTOP)
    time.sleep(0.3)
    pair.end()
    kind.kill()


def network_is_cut(kind):
    """Packets are dropped for a while."""
    if not shutil.which("nft"):
        print("not tried: a cut network (nft)")
        return
    kind.start()
    pair = Pair(kind, name="cut-")
    pair.await_more()
    cut(kind.port, True)
    time.sleep(1.5)
    pair.others_are_not_disturbed()
    cut(kind.port, False)
    pair.await_more()
    pair.account(kind.confirms)
    pair.end()
    kind.kill()


def full(kind):
    """No server: each policy for a full backlog counts what it drops."""
    stats = None
    for policy, status in (("drop_oldest", 0), ("drop_newest", 0), ("block", 0)):
        g = Gateway(kind.folder, "full", """
nodes = { sig = { type = "signal"; signal = "counter"; rate = 5000.0; values = 2; };
	x = { type = "%s"; %s };
};
paths = ( { in = "sig"; out = "x"; } );
""" % (kind.name, kind.node("out", "full", "json").replace(
            "out = {", 'out = { backlog = 4096; max_message = 1000; full = "%s"; block_timeout = 0.01;' % policy)))
        def counted():
            nonlocal stats
            stats = g.ask("/node/x")["stats"]
            return stats["losses"]["absent"] > 50 and stats["figures"]["unreachable"] > 0
        until(counted, lambda: "samples are counted as lost, and attempts: %s" % stats)
        check(sum(stats["losses"].values()) == stats["losses"]["absent"], "of one cause: %s" % stats)
        check(stats["figures"]["waiting"] > 0, "figures: %s" % stats)
        log = g.end((status,))
        check(log.count("cannot connect") == 1, "said once: " + log)


def nonsense(kind):
    """Whatever a server answers, the gateway stays, says it with the node's name, and ends in time."""
    server = Double(kind.port, "nonsense", hello=kind.nonsense)
    g = Gateway(kind.folder, "nonsense", """
nodes = { sig = { type = "signal"; signal = "counter"; rate = 100.0; values = 2; };
	o = { type = "%s"; %s };
	i = { type = "%s"; %s };
};
paths = ( { in = "sig"; out = "o"; }, { in = "i"; } );
""" % (kind.name, kind.node("out", "n", "json"), kind.name, kind.node("in", "n", "json")))
    # Libraries that connect again by themselves are at it before the node hears of it.
    names = re.compile("node [io]: (cannot connect|the connection)")
    until(lambda: server.accepted >= 24 and names.search(open(g.log).read()),
          lambda: "it tries again, and says why: %d; %s" % (server.accepted, open(g.log).read()), 60)
    check(g.process.poll() is None, "the gateway stays")
    since = time.monotonic()
    log = g.end((0, 3))
    check(time.monotonic() - since < ENDS_IN, "it ends in time")
    check(log.count("\n") < 200, "the log is not filled: %d lines" % log.count("\n"))
    server.close()


def hostile_tls(kind):
    """Servers that are not the right one, or do not go on in the handshake (tls_hostile.py)."""
    tls_hostile.refuses_all(kind, until, ENDS_IN)


SCENARIOS = {
    "exchange": exchange,
    "protected": protected,
    "restart": restarts,
    "restarts": lambda kind: restarts(kind, 20),
    "still": stands_still,
    "end": ends_while_it_stands_still,
    "cut": network_is_cut,
    "full": full,
    "nonsense": nonsense,
    "tls": hostile_tls,
}


def end_all(folder):
    """Gateways that a failed scenario has left, by the folder of their configuration."""
    for entry in os.listdir("/proc"):
        try:
            with open("/proc/%s/cmdline" % entry, "rb") as f:
                if folder.encode() + b"/" in f.read():
                    os.kill(int(entry), signal.SIGKILL)
        except (OSError, ValueError):
            pass


def prepare(kind_class, needs_server=True):
    """Skips the test where the node-type cannot be tried, else goes on in a network of its own."""
    if needs_server and not shutil.which(kind_class.program):
        skip(kind_class.program + " is not installed")
    known = subprocess.run([BUSBAR, "node", "-C"], capture_output=True, text=True, timeout=60).stdout
    if '"%s"' % kind_class.name not in known:
        skip("this build has no node-type " + kind_class.name)
    enter_network()


def main(kinds, more=None):
    """Runs the scenarios that the command line names, and those in `more`, a dict of the test.
    `kinds`: a subclass of Kind, or several by a name that the command line gives first."""
    names = sys.argv[1:]
    kind_class = kinds[names.pop(0)] if isinstance(kinds, dict) else kinds
    prepare(kind_class)
    for what in names:
        with tempfile.TemporaryDirectory(prefix="busbar-%s-" % kind_class.name) as folder:
            os.chmod(folder, 0o755)
            kind = kind_class(folder)
            since = time.monotonic()
            try:
                (more or {}).get(what, SCENARIOS.get(what))(kind)
            finally:
                kind.kill()
                end_all(folder)
            print("%s: %.1f s" % (what, time.monotonic() - since), flush=True)
