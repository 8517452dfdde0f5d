#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Two gateways: every format that can be read back, a kill, a new start, a reload, a pause, TLS.

Environment: BUSBAR, the program. Exit status 0: good, 1: not.
"""
import os
import random
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time

from http_gateway import BUSBAR, Gateway, check, until
from ws_client import PING, PONG, accept_of, frame

ROWS = 300
SERVER = """
nodes = {
	replay = { type = "file"; uri = "%s"; format = "csv";
		in = { signals = "3f"; rate = 500.0; eof = "rewind"; sequence = "new"; }; };
	live = { type = "websocket"; };
};
paths = ( { in = "replay"; out = "live"; } );
stats = 0.0; hugepages = 0;
"""
CLIENT = """
	n%(n)d = { type = "websocket"; destinations = [ "%(url)s.%(format)s" ]; reconnect_interval = 100;
		%(more)s in = { signals = "3f"; }; };
	f%(n)d = { type = "file"; uri = "%(file)s"; format = "csv"; out = { flush = true; }; };
"""


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def make_rows(path):
    rng = random.Random(7)
    rows = [(float(i), rng.uniform(-1, 1), rng.uniform(-1e6, 1e6)) for i in range(ROWS)]
    with open(path, "w") as f:
        for i, row in enumerate(rows):
            f.write("%d,%d,0.0,%d,%s\n" % (1700000000 + i, 0, i, ",".join(map(repr, row))))
    return rows


def read_rows(path):
    if not os.path.exists(path):
        return []
    with open(path) as f:
        return [tuple(map(float, line.split(",")[4:])) for line in f.read().splitlines(True)
                if line[0] != "#" and line.endswith("\n")]


def single(x):
    return struct.unpack("f", struct.pack("f", x))[0]


def check_rows(name, got, rows):
    """All that came in a row, bit by bit, of formats with single precision after rounding."""
    rounded = [tuple(map(single, r)) for r in rows]
    which = rows if got[0] == rows[int(got[0][0])][:len(got[0])] else rounded
    for a, b in zip(got, got[1:]):
        check(int(b[0]) == (int(a[0]) + 1) % ROWS, "%s: row %s behind %s" % (name, b[0], a[0]))
    for r in got:
        check(r == which[int(r[0])][:len(r)], "%s: %s is not %s" % (name, r, which[int(r[0])]))
    check(which is rows or len(got[0]) > 1, "%s keeps a whole number" % name)


def client(folder, url, formats, more=""):
    """A gateway with a node for each format, and their files."""
    files = [os.path.join(folder, "%s.csv" % f) for f in formats]
    for f in files:
        if os.path.exists(f):
            os.unlink(f)
    nodes = "".join(CLIENT % {"n": i, "url": url, "format": f, "file": files[i], "more": more}
                    for i, f in enumerate(formats))
    paths = ", ".join('{ in = "n%d"; out = "f%d"; }' % (i, i) for i in range(len(formats)))
    return "nodes = {%s};\npaths = ( %s );\nstats = 0.0; hugepages = 0;\n" % (nodes, paths), files


def can_be_read(folder, name):
    """Formats of files, and those that only write, are refused."""
    config = os.path.join(folder, "try.conf")
    with open(config, "w") as f:
        f.write(client(folder, "ws://127.0.0.1/x", [name])[0])
    return subprocess.run([BUSBAR, "check", "-q", config], capture_output=True, timeout=60).returncode == 0


def every_format(folder, rows, a):
    names = [f for f in a.ask("/api/v2/capabilities").json()["formats"] if f != "comtrade" and can_be_read(folder, f)]
    check(len(names) > 12, "formats: %s" % names)
    config, files = client(folder, "ws://127.0.0.1:%d/live" % a.port, names)
    with Gateway(folder, config, name="formats") as b:
        until(lambda: all(len(read_rows(f)) >= 60 for f in files),
              "samples in every format: %s" % [(n, len(read_rows(f))) for n, f in zip(names, files)], 60)
        check(b.ask("/api/v2/node/n0").json()["state"] == "connected", "the state")
    exact = 0
    for name, f in zip(names, files):
        got = read_rows(f)
        check_rows(name, got, rows)
        exact += got[0] == rows[int(got[0][0])]
    check(exact >= 5, "most formats lose nothing: %d" % exact)


def ends_and_reloads(folder, rows_file):
    port = free_port()
    config, (file,) = client(folder, "ws://127.0.0.1:%d/live" % port, ["json"], "ping_interval = 0.3;")
    server = SERVER % rows_file
    listen = "127.0.0.1:%d" % port
    with Gateway(folder, config, name="b") as b:
        def more():
            count = len(read_rows(file))
            return until(lambda: len(read_rows(file)) > count + 20, "samples go on: " + b.said()[-600:])

        until(lambda: b.ask("/api/v2/node/n0").json()["state"] == "pending-connect", "nobody is there yet")
        with Gateway(folder, server, listen=listen, name="a1") as a:
            more()
            # The nodes of both ends.
            for g, node in ((a, "live"), (b, "n0")):
                for command in ("pause", "resume", "stop", "start", "restart"):
                    check(g.ask("/api/v2/node/%s/%s" % (node, command), "POST").status == 200, command)
                more()
            # The same node, changed, and others beside it.
            a.write(server.replace('"websocket"; }', '"websocket"; max_clients = 7; }'))
            a.ctl("reload")
            more()
            b.write(config.replace("reconnect_interval = 100", "reconnect_interval = 90"))
            b.ctl("reload")
            more()
            a.process.kill()
            a.process.wait()
            until(lambda: b.ask("/api/v2/node/n0").json()["state"] == "pending-connect", "it is gone")
            a.end = lambda: None
        with Gateway(folder, server, listen=listen, name="a2") as a:
            more()
            # The server's process stands still: a ping is not answered.
            a.process.send_signal(19)
            until(lambda: "does not answer a ping" in b.said(), "it is given up")
            a.process.send_signal(18)
            more()
        check(b.process.poll() is None, "the gateway stays")
        check("says goodbye: 1001" in b.said(), "the log says how it ended")


def stands_still(folder):
    """A gateway that stood still for longer than its destination may be silent does not blame it."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(20)
        config, _ = client(folder, "ws://127.0.0.1:%d/quiet" % server.getsockname()[1], ["json"],
                           "ping_interval = 0.3; ping_timeout = 1.5;")
        with Gateway(folder, config, name="still") as b:
            s, _ = server.accept()
            s.settimeout(20)
            stream = s.makefile("rb")
            head = b"".join(iter(stream.readline, b"\r\n"))
            key = re.search(r"(?i)sec-websocket-key: *(\S+)", head.decode()).group(1)
            s.sendall(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                      b"Sec-WebSocket-Accept: %s\r\n\r\n" % accept_of(key).encode())

            def answer_ping():
                got = stream.read(6)
                check(got[:2] == bytes([0x80 | PING, 0x80]), "a ping without bytes, not %r" % got)
                s.sendall(frame(PONG, mask=None))

            answer_ping()
            for _ in range(2):
                b.process.send_signal(signal.SIGSTOP)
                time.sleep(2.5)  # longer than a peer may say nothing
                b.process.send_signal(signal.SIGCONT)
                answer_ping()
                answer_ping()
            stream.close()
            s.close()


def what_is_not_sent_is_counted(folder):
    """The peer takes nothing and the node stops: what came whole to the peer, and what is counted
    as lost, are all samples together."""
    count = 30000
    rows = os.path.join(folder, "unsent.csv")
    with open(rows, "w") as f:
        f.writelines("%d,0,0,%d%s\n" % (1700000000 + i, i, ",1.23456789012345" * 30) for i in range(count))
    with socket.socket() as server:
        # Not more than this goes into the kernel's buffers.
        server.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        server.bind(("127.0.0.1", 0))
        server.listen()
        server.settimeout(20)
        config = ('nodes = { rows = { type = "file"; uri = "%s"; format = "csv"; in = { eof = "wait"; rate = 20000.0; signals = "30f"; }; };'
                  'live = { type = "websocket"; destinations = [ "ws://127.0.0.1:%d/x" ]; format = "csv";'
                  'wait_connected = true; out = { backlog = 16777216; }; }; };'
                  'paths = ( { in = "rows"; out = "live"; queuelen = 65536; } ); stats = 0.0; hugepages = 0;'
                  % (rows, server.getsockname()[1]))
        taken = []

        def serve():
            s, _ = server.accept()
            s.settimeout(20)
            stream = s.makefile("rb")
            head = b"".join(iter(stream.readline, b"\r\n"))
            key = re.search(r"(?i)sec-websocket-key: *(\S+)", head.decode()).group(1)
            s.sendall(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                      b"Sec-WebSocket-Accept: %s\r\n\r\n" % accept_of(key).encode())
            taken.append((s, stream))

        thread = threading.Thread(target=serve)
        thread.start()
        with Gateway(folder, config, name="unsent") as b:
            thread.join()
            stats = lambda: b.ask("/api/v2/node/live").json()["stats"]
            until(lambda: stats()["sent"] == count, "all are written")
            check(b.ask("/api/v2/node/live/stop", "POST").status == 200, "it stops")
            lost = stats()["losses"]["absent"]
        s, stream = taken[0]
        received = 0
        while (frame_head := stream.read(2)) and len(frame_head) == 2:
            size = frame_head[1] & 127
            if size > 125:
                size = int.from_bytes(stream.read(2 if size == 126 else 8), "big")
            mask = stream.read(4)
            payload = stream.read(size)
            if len(payload) == size and frame_head[0] & 15 in (1, 2):
                received += bytes(c ^ mask[i % 4] for i, c in enumerate(payload)).count(b"\n")
        s.close()
        check(0 < received < count and received + lost == count,
              "%d received and %d lost of %d" % (received, lost, count))


def waits_for_its_destinations(folder, a):
    config, _ = client(folder, "ws://127.0.0.1:%d/live" % free_port(), ["json"],
                       "wait_connected = true; connect_timeout = 0.2;")
    with Gateway(folder, config, name="alone") as b:
        check("0 of 1 destinations are connected after 0.2 s" in b.said(), "it does not wait for ever")
    config, _ = client(folder, "http://127.0.0.1:%d/live" % a.port, ["json"], "wait_connected = true;")
    with Gateway(folder, config, name="waits") as b:
        until(lambda: "is running" in b.said(), "it runs")
        check(b.said().index("connected to") < b.said().index("is running"), "it waits")


def nobody_can_come(folder):
    config = os.path.join(folder, "nobody.conf")
    with open(config, "w") as f:
        f.write('nodes = { sig = { type = "signal"; }; live = { type = "websocket"; }; };'
                'paths = ( { in = "sig"; out = "live"; } ); stats = 0.0; hugepages = 0;')
    p = subprocess.Popen([BUSBAR, "run", "-q", config], stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
    said = ""
    while "nobody can connect: no HTTP server" not in said:
        line = p.stderr.readline()
        check(line, "it says that nobody can come: " + said)
        said += line
    p.terminate()
    p.communicate(timeout=30)


def refused(folder):
    for text, words in (('destinations = [ "ftp://x/y" ];', "expected ws://"),
                        ('destinations = [ "ws://x:0/y" ];', "a port is a number"),
                        ('destinations = [ "ws://u@x/y" ];', "token_file"),
                        ('destinations = [ "ws://x/y.jsno" ];', "did you mean 'json'"),
                        ('destinations = [ 5 ];', "list of URLs"),
                        ('wait_connected = true;', "no `destinations`"),
                        ('format = "jsno";', "did you mean 'json'"),
                        ('ssl_cert = "x";', "together")):
        config = os.path.join(folder, "wrong.conf")
        with open(config, "w") as f:
            f.write('nodes = { live = { type = "websocket"; %s }; };\npaths = ( { in = "live"; } );' % text)
        p = subprocess.run([BUSBAR, "check", config], capture_output=True, text=True, timeout=60)
        check(p.returncode == 2 and words in p.stderr, "%s: %d %s" % (text, p.returncode, p.stderr))


def over_tls(folder, rows, rows_file):
    if not shutil.which("openssl") or "HTTPS" in subprocess.run(
            [BUSBAR, "version"], capture_output=True, text=True, timeout=60).stdout.split("left out")[-1]:
        print("not tried: TLS")
        return
    for name in ("localhost", "other"):
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1",
                        "-nodes", "-days", "30", "-subj", "/CN=" + name, "-addext", "subjectAltName=DNS:" + name,
                        "-keyout", name + ".key", "-out", name + ".crt"],
                       cwd=folder, check=True, capture_output=True, timeout=60)
    at = os.path.join(folder, "localhost")
    group = 'http = { ssl_cert = "%s.crt"; ssl_private_key = "%s.key"; };' % (at, at)
    with Gateway(folder, SERVER % rows_file, http=group, name="tls") as a:
        for ca, good in (("localhost", True), ("other", False)):
            config, (file,) = client(folder, "wss://localhost:%d/live" % a.port, ["villas.web"],
                                     'ssl_ca = "%s/%s.crt";' % (folder, ca))
            with Gateway(folder, config, name="trusts-" + ca) as b:
                if good:
                    until(lambda: len(read_rows(file)) > 60, "samples over TLS: " + b.said())
                else:
                    until(lambda: re.search("cannot connect to wss://.*TLS: .*certificate", b.said()), "not trusted")
            check(not good or not check_rows("TLS", read_rows(file), rows), "its rows")


def main():
    with tempfile.TemporaryDirectory(prefix="busbar-ws-") as folder:
        rows_file = os.path.join(folder, "rows.csv")
        rows = make_rows(rows_file)
        refused(folder)
        with Gateway(folder, SERVER % rows_file, name="a") as a:
            every_format(folder, rows, a)
            waits_for_its_destinations(folder, a)
        ends_and_reloads(folder, rows_file)
        stands_still(folder)
        what_is_not_sent_is_counted(folder)
        over_tls(folder, rows, rows_file)
        nobody_can_come(folder)


sys.exit(main())
