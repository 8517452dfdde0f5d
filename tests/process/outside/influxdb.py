#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The node-type influxdb with influxd 1.6 and, for what it does not answer, with a double.
Arguments: scenarios (servers.py, and those below)."""
import base64
import http.server
import json
import os
import re
import shutil
import signal
import socket
import ssl
import sys
import threading
import time
import urllib.error
import urllib.parse
import urllib.request

import servers
from gateway_process import Gateway, check
from servers import until, whole_lines

UDP_PORT = 8089


class Influx(servers.Kind):
    name = "influxdb"
    program = "influxd"
    port = 8086
    durable = True
    refusal = "401"
    secure = False
    user = None

    def argv(self, tls, password):
        self.secure = tls
        config = os.path.join(self.folder, "influxd.conf")
        with open(config, "w") as f:
            f.write("""reporting-disabled = true
bind-address = "127.0.0.1:8088"
[meta]
dir = "%(folder)s/meta"
[data]
dir = "%(folder)s/data"
wal-dir = "%(folder)s/wal"
[monitor]
store-enabled = false
[http]
bind-address = ":%(port)d"
auth-enabled = %(auth)s
log-enabled = false
https-enabled = %(tls)s
https-certificate = "%(folder)s/server.crt"
https-private-key = "%(folder)s/server.key"
[[udp]]
enabled = true
bind-address = "127.0.0.1:%(udp)d"
database = "lab"
batch-timeout = "20ms"
read-buffer = 4194304
""" % {"folder": self.folder, "port": self.port, "udp": UDP_PORT, "tls": str(bool(tls)).lower(),
                "auth": str(bool(password)).lower()})
        return ["influxd", "-config", config]

    def start(self, tls=False, password=None):
        super().start(tls, password)
        self.user = None
        if password:
            self.ask("CREATE USER lab WITH PASSWORD '%s' WITH ALL PRIVILEGES" % password)
            self.user = password
        self.ask("CREATE DATABASE lab")

    def ask(self, query):
        """Rows of a query, as lists; the first one has the names."""
        url = "http%s://localhost:%d/query" % ("s" if self.secure else "", self.port)
        request = urllib.request.Request(url, urllib.parse.urlencode(
            {"q": query, "db": "lab", "epoch": "ns"}).encode())
        if self.user:
            request.add_header("Authorization", "Basic " + base64.b64encode(
                ("lab:" + self.user).encode()).decode())
        context = ssl.create_default_context(cafile=self.folder + "/ca.crt") if self.secure else None
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}),
                                             urllib.request.HTTPSHandler(context=context))
        with opener.open(request, timeout=30) as answer:
            result = json.load(answer)["results"][0]
        check("error" not in result, "%s: %s" % (query, result))
        series = result.get("series")
        return [series[0]["columns"]] + series[0]["values"] if series else []

    def node(self, direction, channel, form, tls=None, password=None):
        text = 'transport = "http"; url = "http%s://%s:%d"; database = "lab"; key = "%s,place=a\\\\ b"; sequence = "seq"; ' % (
            "s" if tls else "", "localhost" if tls else self.host, self.port, channel)
        text += 'reconnect_interval = 100; timeout = 2.0; '
        if tls:
            text += 'ssl = { ca = "%s"; }; ' % tls
        if password:
            text += 'username = "lab"; password_file = "%s"; ' % password
        return text + "out = { };"


class Udp(Influx):
    confirms = False
    durable = False

    def node(self, direction, channel, form, tls=None, password=None):
        return 'server = "%s:%d"; key = "%s,place=a\\\\ b"; sequence = "seq"; reconnect_interval = 100; out = { };' % (
            self.host, UDP_PORT, channel)


class Writer(servers.Pair):
    """A gateway that writes; what has arrived is asked of the database."""

    def __init__(self, kind, tls=None, password=None, more_out="", name=""):
        self.kind, self.folder = kind, kind.folder
        self.sent_file = os.path.join(kind.folder, name + "sent.csv")
        self.other_file = os.path.join(kind.folder, name + "other.csv")
        self.writer = Gateway(kind.folder, name + "writer", """
nodes = {
	sig = { type = "signal"; signal = "counter"; rate = %s; values = 2; };
	x = { type = "influxdb"; %s };
	f = { type = "file"; uri = "%s"; format = "csv"; out = { flush = true; }; };
	beside = { type = "signal"; signal = "counter"; rate = 500.0; values = 1; };
	g = { type = "file"; uri = "%s"; format = "csv"; out = { flush = true; }; };
};
paths = ( { in = "sig"; out = [ "x", "f" ]; }, { in = "beside"; out = "g"; } );
""" % (float(kind.rate), kind.node("out", "account", "json", tls, password).replace("out = {", "out = {" + more_out),
            self.sent_file, self.other_file))
        self.await_state(self.writer, "connected")

    def points(self):
        return self.kind.ask('SELECT "seq", "counter", "counter1" FROM "account"')[1:]

    def got(self):
        # A query can see a point of which a field is still being written.
        return [int(row[1]) for row in self.points() if None not in row]

    def await_more(self, count=50, seconds=30):
        before = len(self.got())
        until(lambda: len(self.got()) >= before + count,
              lambda: "samples go on: %s" % open(self.writer.log).read()[-1500:], seconds)

    def sent(self):
        """Time in ns, sequence number and values of what the path has written."""
        with open(self.sent_file) as f:
            rows = [line.rstrip("\n").split(",") for line in whole_lines(f) if line[0] != "#" and line.endswith("\n")]
        return [[int(r[0]) * 10**9 + int(r[1]), int(r[3])] + [float(v) for v in r[4:]] for r in rows]

    def account(self, strict=False):
        self.settle()
        sent, points = self.sent(), self.points()
        known = {row[1]: row for row in sent}
        for p in points:
            check(known.get(p[1]) == p, "a point is as it was sent: %s %s" % (p, known.get(p[1])))
        missing = len(known) - len({p[1] for p in points})
        w = self.stats(self.writer)
        lost = sum(w["losses"].values())
        what = "wrote %d, got %d, missing %d, writer %s %s" % (
            len(sent), len(points), missing, w["losses"], w["figures"])
        check(len(sent) == w["sent"] + w["not_sent"], "all were given to the node: " + what)
        if self.kind.confirms:
            check(missing <= lost, "those that are missing are counted: " + what)
            check(w["figures"]["confirmed"] == len(points), "what is there is confirmed: " + what)
        return missing, 0, what

    def end(self):
        since = time.monotonic()
        self.writer.end((0, 3))
        took = time.monotonic() - since
        check(took < servers.ENDS_IN, "the gateway ends in time: %.1f s" % took)


# ---- scenarios ----

def exchange(kind):
    """All types, names with characters that mean something, and extreme values."""
    kind.start()
    rows = [(0, 0.0, 0, "false", 0.0, 0.0), (1, -0.1, -5, "true", 1.5, -2.5),
            (2, 1e300, 2**63 - 1, "true", 0, 1e30), (3, 5e-324, -2**63, "false", -0.25, 7), (4, 123456789.123456789, 1, "true", 0, 0)]
    file = os.path.join(kind.folder, "rows.csv")
    with open(file, "w") as f:
        for i, a, b, c, re_part, im_part in rows:
            f.write("%d,%d,0.0,%d,%r,%d,%d,%r%+gi\n" % (1700000000 + i, 123456789 + i, i, a, b, c == "true", re_part, im_part))
        # A value that is no number is left out, a sample of only such ones is lost.
        f.write("1700000010,0,0.0,10,nan,7,1,inf+0i\n")
    names = ["a b", "c,d=e", "quote\"s", "back\\slash"]
    g = Gateway(kind.folder, "all", """
nodes = {
	r = { type = "file"; uri = "%s"; format = "csv"; in = { eof = "wait"; epoch_mode = "original"; vectorize = 4; signals = ( %s ); }; };
	x = { type = "influxdb"; %s };
};
paths = ( { in = "r"; out = "x"; } );
""" % (file, ", ".join('{ name = %s; type = "%s"; }' % (json.dumps(n), t) for n, t in zip(
        names, ("float", "integer", "boolean", "complex"))), kind.node("out", "m\\\\ 1,t\\\\=1=x\\\\,y", "json")
        .replace('sequence = "seq";', 'sequence = "seq"; tags = { room = "7, left"; };')))
    query = 'SELECT * FROM "m 1" ORDER BY time'
    until(lambda: len(kind.ask(query)) >= len(rows) + 2,
          lambda: "all arrive: %s %s" % (kind.ask(query), open(g.log).read()), 20)
    table = kind.ask(query)
    figures = g.ask("/node/x")["stats"]["figures"]
    check(figures["left_out"] == 2, "values that are no numbers: %s" % figures)
    g.end()
    points = [dict(zip(table[0], row)) for row in table[1:]]
    for (i, a, b, c, re_part, im_part), p in zip(rows, points):
        want = {"time": (1700000000 + i) * 10**9 + 123456789 + i, "a b": a, "c,d=e": b,
                'quote"s': c == "true", "seq": i, "t=1": "x,y", "place": "a b", "room": "7, left",
                "back\\slash_im": im_part}
        for k, v in want.items():
            # JSON of influxd has large numbers of a field as integers.
            same = p[k] == v or (k.endswith("_im") and abs(p[k] - v) <= 1e-6 * abs(v))
            check(same, "%s: %r is not %r: %s" % (k, p[k], v, p))
    check(points[-1]["a b"] is None and points[-1]["c,d=e"] == 7, "NaN: %s" % points[-1])
    kind.kill()


def protected(kind):
    """TLS and passwords; wrong ones are refused, and not shown."""
    if not kind.confirms:
        print("protected: UDP has no TLS and no passwords")
        return
    servers.certificates(kind.folder)
    secret, file = "quite-secret-%d" % os.getpid(), os.path.join(kind.folder, "password")
    with open(file, "w") as f:
        f.write(secret + "\n")
    kind.start(tls=True, password=secret)
    pair = Writer(kind, os.path.join(kind.folder, "ca.crt"), file, name="tls-")
    pair.await_more()
    pair.account()
    for path in ("/config", "/nodes", "/node/x", "/config/text"):
        check(secret not in str(pair.writer.client.ask(path)), "%s shows no password" % path)
    check(secret not in open(pair.writer.log).read(), "the log shows no password")
    pair.end()

    def is_refused(what, words, change):
        text = kind.node("out", "account", "json", os.path.join(kind.folder, "ca.crt"), file)
        g = Gateway(kind.folder, "refused", """
nodes = { sig = { type = "signal"; rate = 10.0; }; x = { type = "influxdb"; %s }; };
paths = ( { in = "sig"; out = "x"; } );
""" % change(text))
        until(lambda: re.search(words, open(g.log).read(), re.I),
              lambda: "%s is refused: %s" % (what, open(g.log).read()), 30)
        check(g.ask("/node/x")["state"] == "pending-connect", "%s: the state" % what)
        g.end((0, 3))
    is_refused("another authority", "cannot connect.*certificate", lambda t: t.replace("/ca.crt", "/other.crt"))
    is_refused("another name", "cannot connect.*127.0.0.2", lambda t: t.replace("localhost", "127.0.0.2"))
    is_refused("no database", "cannot connect.*404.*database not found", lambda t: t.replace('"lab"; key', '"gone"; key'))
    with open(file, "w") as f:
        f.write("wrong\n")
    is_refused("a wrong password", "cannot connect.*401.*authorization failed", lambda t: t)
    kind.kill()


def restarts(kind, times=1):
    """The server is killed and started again."""
    kind.start()
    pair = Writer(kind, name="restart-")
    pair.await_more()
    for _ in range(times):
        kind.kill()
        if kind.confirms:
            pair.await_state(pair.writer, "pending-connect")
        kind.start()
        pair.await_state(pair.writer, "connected")
        pair.await_more()
    missing, _, what = pair.account()
    if kind.confirms:
        check(missing == 0, "nothing is missing: " + what)
        figures = pair.stats(pair.writer)["figures"]
        check(figures["connections"] == times + 1 == figures["connections_lost"] + 1, "connections: %s" % figures)
    else:
        check(pair.stats(pair.writer)["losses"]["absent"] > 0, "refused datagrams are counted: " + what)
    pair.others_are_not_disturbed()
    pair.end()
    kind.kill()


def stands_still(kind):
    """The server stands still: memory stays bounded, the paths go on."""
    kind.start()
    pair = Writer(kind, name="still-")
    pair.await_more()
    before = pair.writer.resident_kb()
    def missed(name):
        return pair.writer.ask("/node/" + name)["stats"]["missed"]
    sig, beside = missed("sig"), missed("beside")
    kind.signal(signal.SIGSTOP)
    time.sleep(5)
    pair.others_are_not_disturbed()
    # It may have got no processor, as the other one then.
    check(missed("sig") - sig < 1500 + 4 * (missed("beside") - beside), "the path that writes does not wait")
    grown = pair.writer.resident_kb() - before
    check(grown < 20000 or pair.writer.sanitized(), "memory is bounded: %d KiB more" % grown)
    kind.signal(signal.SIGCONT)
    pair.await_more()
    pair.account()
    pair.end()
    kind.kill()


def ends_while_it_stands_still(kind):
    kind.start()
    pair = Writer(kind, name="end-")
    pair.await_more()
    kind.signal(signal.SIGSTOP)
    time.sleep(0.3)
    pair.end()
    kind.kill()


def network_is_cut(kind):
    if not shutil.which("nft") or not kind.confirms:
        print("not tried: a cut network (nft)")
        return
    kind.start()
    pair = Writer(kind, name="cut-")
    pair.await_more()
    servers.cut(kind.port, True)
    time.sleep(1.5)
    pair.others_are_not_disturbed()
    servers.cut(kind.port, False)
    pair.await_more()
    pair.account()
    pair.end()
    kind.kill()


def full(kind):
    if not kind.confirms:
        print("full: UDP is always connected")
        return
    servers.full(kind)


def nonsense(kind):
    """Whatever a server answers, the gateway stays, and ends in time."""
    if not kind.confirms:
        print("nonsense: nothing is read of UDP")
        return
    server = servers.Double(kind.port, "nonsense")
    g = Gateway(kind.folder, "nonsense", """
nodes = { sig = { type = "signal"; signal = "counter"; rate = 100.0; values = 2; }; x = { type = "influxdb"; %s }; };
paths = ( { in = "sig"; out = "x"; } );
""" % kind.node("out", "n", "json"))
    until(lambda: server.accepted >= 24, lambda: "it tries again: %d; %s" % (server.accepted, open(g.log).read()), 60)
    since = time.monotonic()
    log = g.end((0, 3))
    check(time.monotonic() - since < servers.ENDS_IN, "it ends in time")
    check("node x: cannot connect" in log, "the log names the node: " + log)
    check(log.count("\n") < 200, "the log is not filled: %d lines" % log.count("\n"))
    server.close()


def wrong_line(kind):
    """A line that the database refuses is lost alone, though its request held many."""
    if not kind.confirms:
        print("wrong_line: nobody answers over UDP")
        return
    kind.start()
    kind.ask('CREATE RETENTION POLICY "day" ON "lab" DURATION 24h REPLICATION 1 DEFAULT')
    kind.kill()
    # Three lines are older than what the database keeps.
    rows, now = os.path.join(kind.folder, "rows.csv"), int(time.time())
    with open(rows, "w") as f:
        f.writelines("%d,%d,0.0,%d,%d.5\n" % (now - (10**6 if i in (3, 250, 499) else 0), i, i, i) for i in range(500))
    g = Gateway(kind.folder, "wrong", """
nodes = {
	r = { type = "file"; uri = "%s"; format = "csv"; in = { eof = "wait"; epoch_mode = "original"; signals = "1f"; vectorize = 10; rate = 5000.0; }; };
	x = { type = "influxdb"; %s };
};
paths = ( { in = "r"; out = "x"; } );
""" % (rows, kind.node("out", "account", "json")))
    until(lambda: g.ask("/node/x")["stats"]["figures"]["waiting"] == 500,
          lambda: "all wait: %s" % g.ask("/node/x"), 20)
    kind.start()

    def done():
        stats = g.ask("/node/x")["stats"]
        return not stats["figures"]["waiting"] + stats["figures"]["unconfirmed"]
    until(done, lambda: "all are sent: %s" % g.ask("/node/x"), 20)
    stats = g.ask("/node/x")["stats"]
    got = {row[1] for row in kind.ask('SELECT "seq" FROM "account"')[1:]}
    check(got == set(range(500)) - {3, 250, 499}, "all but three are there: %d" % len(got))
    check(stats["losses"]["refused"] == 3 and stats["figures"]["confirmed"] == 497, "the losses: %s" % stats)
    check(stats["figures"]["requests"] < 100, "many at a time: %s" % stats)
    log = g.end((3,))
    check("points beyond retention policy" in log, "the log says why: " + log)
    kind.kill()


class Double(http.server.BaseHTTPRequestHandler):
    """Version 2, as its documents say: a token, 204; and what the test puts into `answers`."""
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    answers, lines, seen = [], [], []

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        status, headers, text = 204, {}, b""
        if self.headers["Authorization"] != "Token quite-secret":
            status, text = 401, b'{"code":"unauthorized","message":"unauthorized access"}'
        elif not body:
            status, text = 400, b'{"code":"invalid","message":"writing requires points"}'
        elif Double.answers:
            status, headers, text = Double.answers.pop(0)
        elif body.count(b"\n") > 40:
            status, text = 413, b"<html>too large</html>"
        else:
            Double.lines += body.decode().splitlines()
        Double.seen.append((self.path, status, body.count(b"\n")))
        self.send_response(status)
        for k, v in headers.items():
            self.send_header(k, v)
        if status != 204:
            self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text if status != 204 else b"")

    def log_message(self, *args):
        pass


def version_2(kind):
    """Tokens, and the answers that ask to wait, to divide, or say that the server is ill."""
    if not kind.confirms:
        print("version_2: is of HTTP")
        return
    server = http.server.ThreadingHTTPServer(("127.0.0.1", kind.port), Double)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    Double.answers[:] = [(429, {"Retry-After": "1"}, b"{}"), (503, {}, b"busy"),
                         (500, {}, b'{"code":"internal error","message":"disk"}'),
                         (302, {"Location": "http://127.0.0.1:1/"}, b""), (401, {}, b"{}")]
    with open(kind.folder + "/token", "w") as f:
        f.write("quite-secret\n")
    g = Gateway(kind.folder, "v2", """
nodes = {
	sig = { type = "signal"; signal = "counter"; rate = 1000.0; values = 1; };
	x = { type = "influxdb"; transport = "http"; url = "http://127.0.0.1:%d/"; version = "2"; org = "a b"; bucket = "c&d";
	      token_file = "%s/token"; key = "m"; precision = "us"; sequence = "seq"; reconnect_interval = 50; out = { batch = 1000; }; };
};
paths = ( { in = "sig"; out = "x"; } );
""" % (kind.port, kind.folder))
    def sent():
        return g.ask("/node/x")["stats"]["sent"]

    def describe():
        return "all are confirmed: %d, %s, %s" % (len(Double.lines), Double.seen[-5:], open(g.log).read())
    until(lambda: not Double.answers and sent() > 2000, describe, 30)
    g.ask("/node/sig/stop", "POST")
    time.sleep(0.1)
    until(lambda: g.ask("/node/x")["stats"]["figures"]["confirmed"] == sent(), describe)
    count, figures = sent(), g.ask("/node/x")["stats"]["figures"]
    log = g.end()
    numbers = [int(line.split("seq=")[1].split("i")[0]) for line in Double.lines]
    check(len(set(numbers)) == count, "each sample is there: %d of %d" % (len(set(numbers)), count))
    check(len(numbers) - count <= figures["repeated"], "those that came twice are counted: %s" % figures)
    check(figures["postponed"] == 2, "answers that ask to wait: %s" % figures)
    check(figures["connections_lost"] == 3 and figures["confirmed"] == count, "figures: %s" % figures)
    check(all(s[0] == "/api/v2/write?precision=us&org=a%20b&bucket=c%26d" for s in Double.seen), "address: %s" % Double.seen[0][0])
    check(any(s[1] == 413 for s in Double.seen), "a request was too large")
    for words in ("500, disk", "redirects are not followed", "401"):
        check(words in log, "the log says %s: %s" % (words, log))
    check("quite-secret" not in log, "the token is not shown")
    server.shutdown()
    server.server_close()


def in_turn(*scenarios):
    def run(kind):
        for scenario in scenarios:
            scenario(kind)
    return run


if __name__ == "__main__":
    sys.exit(servers.main({"http": Influx, "udp": Udp}, {
        "exchange": in_turn(exchange, wrong_line), "protected": in_turn(protected, version_2), "restart": restarts,
        "restarts": lambda kind: restarts(kind, 20), "still": stands_still,
        "end": ends_while_it_stands_still, "cut": network_is_cut, "full": full, "nonsense": nonsense}))
