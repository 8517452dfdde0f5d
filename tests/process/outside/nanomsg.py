#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The node-type nanomsg. Arguments: scenarios (servers.py).

The protocol has no server. So the scenarios of servers.py have a forwarder between the gateways,
which is this program with the argument `forward`: it speaks the protocol by itself, and its
port takes publishers as well as subscribers. The scenarios of this file connect gateways
directly, and to nngcat and nanocat.
"""
import asyncio
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time

PORT = 5560
# Ports: one for the channel `account` and others, and one for each format.
PORTS = range(PORT, PORT + 24)
PUB, SUB = 0x20, 0x21


async def forward():
    subscribers = {port: set() for port in PORTS}

    async def serve(port, reader, writer):
        try:
            protocol = (await reader.readexactly(8))[5]
            writer.write(b"\0SP\0\0" + bytes((SUB if protocol == PUB else PUB,)) + b"\0\0")
            if protocol == SUB:
                subscribers[port].add(writer)
                await reader.read()
            while protocol == PUB:
                head = await reader.readexactly(8)
                body = await reader.readexactly(int.from_bytes(head, "big"))
                for s in subscribers[port]:
                    s.write(head + body)
        except (asyncio.IncompleteReadError, OSError):
            pass
        finally:
            subscribers[port].discard(writer)
            writer.close()

    for port in PORTS:
        await asyncio.start_server(lambda r, w, port=port: serve(port, r, w), "127.0.0.1", port)
    await asyncio.Event().wait()


if sys.argv[1:2] == ["forward"]:
    asyncio.run(forward())

import servers
from gateway_process import BUSBAR, Gateway, check


class Nanomsg(servers.Kind):
    name = "nanomsg"
    program = "python3"
    port = PORT
    tls = False
    password = False
    confirms = False
    repeats = False

    def argv(self, tls, password):
        return [sys.executable, os.path.abspath(__file__), "forward"]

    def ready(self):
        return servers.listens(PORTS[-1])

    def node(self, direction, channel, form, tls=None, password=None):
        port = PORT + 1 + int(channel[1:]) if re.fullmatch("c[0-9]+", channel) else PORT
        # Nobody to connect to is found out before samples are lost.
        text = 'format = "%s"; reconnect_interval = 100; connect_timeout = %s; ' % (
            form, 0.01 if channel == "full" else 0.5)
        url = "tcp://127.0.0.1:%d" % port
        if direction == "in":
            return text + 'in = { endpoints = "%s"; signals = "2f"; };' % url
        return text + 'out = { endpoints = "%s"; bind = false; };' % url


# ---- without a forwarder ----

def direct_node(url, pattern, key, more=""):
    return '{ type = "nanomsg"; pattern = "%s"; reconnect_interval = 50; connect_timeout = 0.2; %s = { endpoints = "%s"; %s }; }' % (
        pattern, key, url, more)


def writer_config(kind, url, pattern, more="", rate=1000.0):
    return """nodes = {
	sig = { type = "signal"; signal = "counter"; rate = %s; values = 2; };
	x = %s;
	f = { type = "file"; uri = "%s/sent.csv"; format = "csv"; out = { flush = true; }; };
};
paths = ( { in = "sig"; out = [ "x", "f" ]; } );
""" % (rate, direct_node(url, pattern, "out", more), kind.folder)


def reader_config(kind, url, pattern, more="", name="got"):
    return """nodes = {
	x = %s;
	f = { type = "file"; uri = "%s/%s.csv"; format = "csv"; out = { flush = true; }; };
};
paths = ( { in = "x"; out = "f"; } );
""" % (direct_node(url, pattern, "in", 'signals = "2f"; ' + more), kind.folder, name)


def rows(kind, name):
    try:
        with open("%s/%s.csv" % (kind.folder, name)) as f:
            return [int(line.split(",")[3]) for line in servers.whole_lines(f) if line[0] != "#" and line.endswith("\n")]
    except FileNotFoundError:
        return []


def await_state(gateway, state):
    servers.until(lambda: gateway.ask("/node/x")["state"] == state,
                  lambda: "%s: %s" % (state, open(gateway.log).read()[-1500:]))


def direct(kind):
    """The writer listens. Without a peer it is not connected and counts samples as absent; what
    waits goes to the first reader; a second one joins; both leave."""
    url = "tcp://127.0.0.1:%d" % PORT
    writer = Gateway(kind.folder, "w", writer_config(kind, url, "pubsub", "backlog = 4096; max_message = 1000;"))
    servers.until(lambda: writer.ask("/node/x")["stats"]["losses"]["absent"] > 10, "samples without a peer are lost")
    check(writer.ask("/node/x")["state"] == "pending-connect", "the state without a peer")
    a = Gateway(kind.folder, "a", reader_config(kind, url, "pubsub"))
    await_state(writer, "connected")
    servers.until(lambda: len(rows(kind, "got")) > 100, "the first reader gets samples")
    b = Gateway(kind.folder, "b", reader_config(kind, url, "pubsub", name="second"))
    servers.until(lambda: len(rows(kind, "second")) > 100, "the second reader gets samples")
    check(writer.ask("/node/x")["stats"]["figures"]["peers_out"] == 2, "two peers")
    got, sent = rows(kind, "got"), rows(kind, "sent")
    first = sent.index(got[0])
    check(got == sent[first:first + len(got)], "the first reader misses nothing")
    absent = writer.ask("/node/x")["stats"]["losses"]["absent"]
    check(first == absent, "all others are counted: first %d, absent %d" % (first, absent))
    for reader in (a, b):
        reader.end((0, 3))
    await_state(writer, "pending-connect")
    writer.end((0, 3))


def pipeline(kind):
    """Push and pull over a local socket: a reader that stands still loses nothing."""
    url = "ipc://%s/socket" % kind.folder
    reader = Gateway(kind.folder, "a", reader_config(kind, url, "pipeline", "bind = true;"))
    writer = Gateway(kind.folder, "w", writer_config(kind, url, "pipeline", "bind = false;", 5000.0))
    servers.until(lambda: len(rows(kind, "got")) > 100, "samples arrive")
    reader.process.send_signal(signal.SIGSTOP)
    servers.until(lambda: writer.ask("/node/x")["stats"]["figures"]["waiting"] > 100, "samples wait")
    reader.process.send_signal(signal.SIGCONT)
    writer.ask("/node/sig/stop", "POST")
    servers.until(lambda: len(rows(kind, "got")) == len(rows(kind, "sent")), "all samples arrive")
    check(rows(kind, "got") == rows(kind, "sent"), "in their order")
    writer.end()
    reader.end()


def pair(kind):
    """One connection for both directions, and an echo."""
    url = "tcp://127.0.0.1:%d" % PORT
    echo = Gateway(kind.folder, "e", 'nodes = { x = %s; };\npaths = ( { in = "x"; out = "x"; } );\n'
                   % direct_node(url, "pair", "out"))
    asks = Gateway(kind.folder, "q", """nodes = {
	sig = { type = "signal"; signal = "counter"; rate = 1000.0; limit = 200; values = 2; };
	x = { type = "nanomsg"; pattern = "pair"; in = { endpoints = "%s"; }; reconnect_interval = 50; };
	f = { type = "file"; uri = "%s/got.csv"; format = "csv"; out = { flush = true; }; };
};
paths = ( { in = "sig"; out = "x"; }, { in = "x"; out = "f"; } );
""" % (url, kind.folder))
    servers.until(lambda: len(rows(kind, "got")) + asks.ask("/node/sig")["stats"]["missed"] >= 200,
                  lambda: "all come back: %d" % len(rows(kind, "got")))
    asks.end((0, 3))
    echo.end((0, 3))


def protected(kind):
    print("not tried: nothing of the protocol is protected; an address with TLS is refused")
    config = os.path.join(kind.folder, "tls.conf")
    with open(config, "w") as f:
        f.write('nodes = { x = { type = "nanomsg"; in = { endpoints = "tls+tcp://localhost:1"; }; }; };\n'
                'paths = ( { in = "x"; } );\n')
    p = subprocess.run([BUSBAR, "check", config], capture_output=True, text=True, timeout=60)
    check(p.returncode == 2 and "TLS" in p.stderr, "it is refused: " + p.stderr)


def strangers(kind):
    """nngcat and nanocat subscribe to a gateway, and publish to one."""
    url = "tcp://127.0.0.1:%d" % PORT
    other = "tcp://127.0.0.1:%d" % (PORT + 1)
    writer = Gateway(kind.folder, "w", writer_config(kind, url, "pubsub"))
    line = json.dumps([{"ts": {"origin": [1700000000, 5]}, "sequence": 7, "data": [1.5, -2.5]}])
    for program, listen, more in (("nngcat", ["nngcat", "--sub", "--dial", url, "--raw", "--count", "3"],
                                   ["nngcat", "--pub", "--listen", other, "--data", line, "--interval", "1", "--delay", "1"]),
                                  ("nanocat", ["nanocat", "--sub", "--connect", url, "--raw"],
                                   ["nanocat", "--pub", "--bind", other, "--data", line, "--interval", "1", "--delay", "1"])):
        if not shutil.which(program):
            print("not tried: " + program)
            continue
        p = subprocess.Popen(listen, stdout=subprocess.PIPE)
        text = os.read(p.stdout.fileno(), 65536)
        p.kill()
        p.wait()
        sample = json.JSONDecoder().raw_decode(text.decode())[0]
        sample = sample[0] if isinstance(sample, list) else sample
        check(len(sample["data"]) == 2, "%s gets samples: %s" % (program, text))
        reader = Gateway(kind.folder, program, reader_config(kind, other, "pubsub", name=program))
        p = subprocess.Popen(more)
        servers.until(lambda: rows(kind, program), lambda: "the gateway gets the sample of " + program)
        check(rows(kind, program)[0] == 7, "the sample of " + program)
        p.kill()
        p.wait()
        reader.end((0, 3))
    writer.end((0, 3))


if __name__ == "__main__":
    sys.exit(servers.main(Nanomsg, {"protected": protected, "direct": direct, "pipeline": pipeline, "pair": pair, "strangers": strangers}))
