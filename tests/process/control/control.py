#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""A gateway is controlled over its socket: commands, reloads, bad clients.

Environment: BUSBAR, the program. Exit status 0: good, 1: not.
"""
import json
import os
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import time

from gateway_process import BUSBAR, check

CONFIG = """
nodes = {
	sig = { type = "signal"; signal = "counter"; rate = 1000; values = 2; };
	other = { type = "signal"; signal = "ramp"; rate = 500; values = %d; };
	loop = { type = "loopback"; };
	end = { type = "loopback"; queuelen = 64; };
};
paths = ( { in = "sig"; out = "loop"; }, { in = "loop"; }, { in = "other"; out = "end"; }, { in = "end"; } );
stats = 0.0; hugepages = 0;
logging = { level = "info"; file = "%s"; pattern = "%%l|%%n|%%v"; expressions = ( { name = "signal"; level = "off"; } ); };
"""

REPLACED = "that a request had given is replaced by the file"


def until(true, what, seconds=20):
    end = time.monotonic() + seconds
    while not true():
        check(time.monotonic() < end, what)
        time.sleep(0.01)


class Gateway:
    def __init__(self, folder, path=None, key=False):
        self.folder = folder
        self.socket = path or os.path.join(folder, "control")
        self.file = os.path.join(folder, "gateway.conf")
        self.log = os.path.join(folder, "log")
        self.write(2, 'control = "%s";' % self.socket if key else "")
        args = [BUSBAR, "run", "-q", "--summary=none", self.file]
        if not key:
            args.insert(2, "--control=" + self.socket)
        self.process = subprocess.Popen(args, stderr=subprocess.PIPE, text=True)
        until(self.answers, "the socket is there")

    def write(self, values, more=""):
        with open(self.file, "w") as f:
            f.write(CONFIG % (values, self.log) + more)

    def connect(self):
        s = socket.socket(socket.AF_UNIX)
        name = self.socket
        s.connect("\0" + name[1:] if name.startswith("@") else name)
        s.settimeout(30)
        return s

    def answers(self):
        check(self.process.poll() is None, "the gateway runs")
        try:
            self.connect().close()
            return True
        except OSError:
            return False

    def raw(self, text):
        with self.connect() as s:
            s.sendall(text)
            return json.loads(s.makefile().readline())

    def ask(self, path, method="GET", body=None):
        o = {"path": path, "method": method, "body": body}
        return self.raw(json.dumps(o).encode() + b"\n")

    def ctl(self, *words, status=0):
        p = subprocess.run([BUSBAR, "ctl", self.socket, *words],
                           capture_output=True, text=True, timeout=60)
        check(p.returncode == status, "ctl %s: status %d, %s%s" % (
            words, p.returncode, p.stdout, p.stderr))
        return p.stdout + p.stderr

    def logged(self, what):
        with open(self.log) as f:
            return sum(what in line for line in f)

    def path(self, number):
        return self.ask("/path/%d" % number)["body"]

    def samples(self, number):
        return self.path(number)["stats"]["samples"]

    def goes_on(self, number):
        before = self.samples(number)
        until(lambda: self.samples(number) > before, "path %d goes on" % number)

    def end(self):
        self.process.terminate()
        check(self.process.wait(30) == 0, "ends with 0")
        return self.process.stderr.read()


def commands(g):
    check(stat.S_IMODE(os.stat(g.socket).st_mode) == 0o600, "mode 0600")
    check("sig -> loop" in g.ctl("paths"), "table of paths")
    check("loopback" in g.ctl("nodes"), "table of nodes")
    check("running" in g.ctl("status"), "status")
    check(json.loads(g.ctl("--json", "stats"))["paths"], "figures as JSON")
    check(json.loads(g.ctl("node", "sig", "--json"))["name"] == "sig", "--json last")
    g.goes_on(0)
    g.ctl("node", "sig", "pause")
    g.ctl("node", "sig", "resume")
    g.goes_on(0)
    g.ctl("path", "0", "stop")
    check(g.path(0)["state"] == "stopped", "a path stops")
    g.ctl("path", "sig -> loop", "start")
    g.goes_on(1)
    g.ctl("node", "loop", "restart")
    g.goes_on(1)
    g.ctl("node", "none", "stop", status=1)
    g.ctl("node", "sig", "explode", status=2)
    g.ctl("nonsense", status=2)
    g.ctl("GET", "/nodes")
    check("there is no node" in g.ctl("POST", "/node/x/stop", status=1), "errors are told")
    check(subprocess.run([BUSBAR, "ctl", g.socket + "x", "nodes"],
                         capture_output=True).returncode == 1, "no gateway there")


def reloads(g):
    missed = g.ask("/node/sig")["body"]["stats"]["missed"]
    g.goes_on(1)
    before = g.ask("/node/sig")["body"]["stats"]
    lost = g.ask("/node/loop")["body"]["stats"]["lost"] # by the commands above
    g.write(3)
    answer = g.ctl("reload")
    check("node sig" in answer.split("stopped")[0], "what is the same is kept")
    g.goes_on(1)
    after = g.ask("/node/sig")["body"]["stats"]
    check(after["received"] > before["received"], "the counter goes on")
    loop = g.ask("/node/loop")["body"]["stats"]
    after = g.ask("/node/sig")["body"]["stats"]
    check(loop["lost"] == lost or after["missed"] > missed,
          "nothing is lost: %d before; then %s" % (lost, loop))
    with open(g.file, "a") as f:
        f.write("\nwrong = 1; nodse = { };\n")
    answer = g.ctl("reload", status=1)
    check("wrong: unknown key" in answer and "'nodes'" in answer, "all errors are told")
    g.goes_on(1)
    for config in (g.file, "/nonexistent/file.conf", {"nodse": {}}):
        refused = g.ask("/restart", "POST", {"config": config})
        check(refused["status"] >= 400 and refused["body"]["error"],
              "a restart with a wrong configuration is refused")
        g.goes_on(1)
    # Nobody writes into it: reading it would hold up all requests.
    fifo = g.file + ".fifo"
    os.mkfifo(fifo)
    for request in ("/reload", "/restart"):
        refused = g.ask(request, "POST", {"config": fifo})
        check(refused["status"] == 422 and "not a regular file" in str(refused["body"]),
              "a FIFO is refused, not waited for: %s" % refused)
    os.unlink(fifo)
    g.write(4)
    g.process.send_signal(signal.SIGHUP)
    until(lambda: len(g.ask("/node/other")["body"]["in"]["signals"]) == 4,
          "SIGHUP reads the file again")
    config = g.ask("/config")["body"]
    config["nodes"]["other"]["values"] = 5
    report = g.ask("/reload", "POST", {"config": config})
    check(report["status"] == 200, "a configuration in the request")
    check("node other" in report["body"]["started"], "is taken")
    check(g.ask("/config/text")["body"]["given"], "and is not that of the file")
    g.write(6)
    with open(g.file) as f:
        written = f.read()
    report = g.ask("/reload", "POST", {"text": written + "nodes: { };"})
    before = g.ask("/config/text")["body"]
    check(report["status"] == 422 and before["text"] != written, "a wrong text is refused: %s" % report)
    g.write(7)
    report = g.ask("/reload", "POST", {"text": written})
    check(report["status"] == 200 and "node other" in report["body"]["started"], "a text is taken: %s" % report)
    source = g.ask("/config/text")["body"]
    revision = source.pop("revision")
    check(source == {"file": g.file, "text": written, "given": True}, "it is the one that is loaded")
    check(revision != before["revision"] and revision == g.ask("/config/text")["body"]["revision"], "revisions")
    for body in ({"text": written}, {"config": config}, {"config": g.file}, {}):
        stale = g.ask("/reload", "POST", {"revision": before["revision"], **body})
        check(stale["status"] == 409 and "changed" in stale["body"]["error"], "of another revision: %s" % stale)
    check(g.ask("/reload", "POST", {"revision": 7})["status"] == 400, "no revision")
    check(g.ask("/config/text")["body"]["revision"] == revision, "nothing has changed")
    report = g.ask("/reload", "POST", {"text": written, "revision": revision})
    check(report["status"] == 200 and not report["body"]["stopped"], "of the present one: %s" % report)
    check(g.ask("/config/text")["body"]["revision"] != revision, "which is the one before then")
    check(len(g.ask("/node/other")["body"]["in"]["signals"]) == 6, "and not the file, which is not written")
    check(not g.logged(REPLACED), "that one text follows another is no loss of it")
    g.ctl("reload")
    check(not g.ask("/config/text")["body"]["given"] and
          len(g.ask("/node/other")["body"]["in"]["signals"]) == 7, "the file again")
    until(lambda: g.logged(REPLACED) == 1, "that the text of a request is gone is said")
    g.ctl("reload")
    check(g.logged(REPLACED) == 1, "once")


def bad_clients(g):
    for text in (b"nonsense\n", b"\0\0\n", b"[" * 5000 + b"\n", b'{"path": 7}\n',
                 b'{"path": "/' + b"x" * 3000 + b'"}\n', b"\xff\xfe\n"):
        check(g.raw(text)["status"] >= 400, "bad lines are refused")
    with g.connect() as s:  # too long a line
        try:
            s.sendall(b"x" * (3 << 20))
        except OSError:
            pass
        try:
            line = s.makefile().readline()
        except OSError:
            line = ""
        check(not line or json.loads(line)["status"] == 413, "long lines are refused")
    # Many that say nothing, and one that never takes its answers.
    idle = [g.connect() for _ in range(40)]
    deaf = g.connect()
    deaf.setblocking(False)
    try:
        while True:
            deaf.send(b'{"path": "/nodes"}\n' * 1000)
    except OSError:
        pass
    check(g.ask("/nodes")["status"] == 200, "others are served")
    for s in idle + [deaf]:
        s.close()
    with g.connect() as s:  # slowly, and two requests at once
        for b in b'{"path": "/status"}\n{"path": "/nodes", "id": 2}\n':
            s.send(bytes([b]))
        f = s.makefile()
        check(json.loads(f.readline())["status"] == 200, "a slow client")
        check(json.loads(f.readline())["id"] == 2, "is answered in order")
    g.goes_on(1)


def nobody_is_left_without_an_answer(g):
    """Of those who ask while it restarts: with 200, or with 503."""
    clients = [g.connect() for _ in range(12)]
    files = [s.makefile() for s in clients]
    asked = [0] * len(clients)
    with g.connect() as s:
        s.sendall(b'{"method": "POST", "path": "/restart"}\n')
        for turn in range(20):
            for i, other in enumerate(clients):
                try:
                    other.sendall(b'{"path": "/status", "id": %d}\n' % turn)
                    asked[i] += 1
                except OSError:
                    pass
        # Far more than is read at once; their answers fit into the socket.
        got, sent = [], 200
        try:
            s.sendall((b'{"path": "/none"' + b" " * 400 + b"}\n") * sent)
        except OSError:
            sent = 0  # it was gone before it had all of them
        f = s.makefile()
        check(json.loads(f.readline())["status"] == 200, "it restarts")
        try:
            for line in f:
                got.append(json.loads(line)["status"])
        except ConnectionResetError:
            check(not sent, "what was sent is answered")
        check(len(got) >= sent and set(got) <= {404, 503},
              "%d of %d requests behind it are answered" % (len(got), sent))
    check(max(asked) > 0, "somebody asks")
    for f, n in zip(files, asked):
        for turn in range(n):
            line = f.readline()
            check(line, "request %d of %d is answered" % (turn, n))
            answer = json.loads(line)
            check(answer["status"] in (200, 503) and answer["id"] == turn,
                  "the answer is %s" % answer)
    for s in clients:
        s.close()
    until(lambda: g.answers(), "it is there again")


def restarts(g):
    g.write(6)
    check(g.ask("/restart", "POST")["body"]["restarts"] == 1, "the first restart")

    def again():
        try:
            return len(g.ask("/node/other")["body"]["in"]["signals"]) == 6
        except (OSError, ValueError, KeyError):
            return False

    until(again, "it is there again")
    nobody_is_left_without_an_answer(g)
    with open(g.log) as f:
        lines = f.read()
    check("info|run|" in lines, "lines have the form of the pattern")
    check("|gateway/signal|" not in lines, "a room is silent")
    check(json.loads(g.ctl("-j", "shutdown")) == {}, "shutdown")
    check(g.process.wait(30) == 0, "ends with 0")
    check(not os.path.exists(g.socket), "the socket is gone")


def sockets(folder):
    one = Gateway(folder, key=True)
    two = subprocess.run([BUSBAR, "run", "--summary=none", one.file],
                         capture_output=True, text=True, timeout=30)
    check(two.returncode == 1 and "another gateway listens" in two.stderr,
          "a socket that is in use")
    one.process.kill()
    one.process.wait()
    check(os.path.exists(one.socket), "a leftover")
    Gateway(folder).end()
    abstract = Gateway(folder, "@busbar-test-%d" % os.getpid())
    abstract.ctl("nodes")
    abstract.end()


def main():
    with tempfile.TemporaryDirectory() as folder:
        g = Gateway(folder)
        try:
            for test in (commands, reloads, bad_clients, restarts):
                test(g)
                print("ok", test.__name__)
            sockets(folder)
        except Exception:
            if g.process.poll() is None:
                g.process.kill()
            print(g.process.stderr.read()[-4000:], file=sys.stderr)
            raise
    return 0


sys.exit(main())
