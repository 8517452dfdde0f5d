#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The package's WebSocket clients, for threads and for asyncio: samples of a gateway's taps over
HTTP and HTTPS, and servers that misbehave.

Environment: BUSBAR, the program; PYTHONPATH, the package and tests/process/http. Exit status 0:
good, 1: not.
"""
import asyncio
import json
import os
import shutil
import subprocess
import tempfile
import threading
import time

import busbar
from http_gateway import BUSBAR, Gateway, check, fails
from server import frame, server

NODES = """
nodes = {
	sig = { type = "signal"; signal = "counter"; rate = 1000; values = 2; };
	loop = { type = "loopback"; };
};
paths = ( { in = "sig"; out = "loop"; }, { in = "loop"; } );
stats = 0.0; hugepages = 0;
"""
SAMPLE = b'[{"sequence":%d,"data":[1.5,2]}]'


def taps(gateway):
    for node, direction, format in (("sig", "in", "villas.web"), ("sig", "in", "json"), ("loop", "out", "json"),
                                    ("loop", "in", "villas.web")):
        with gateway.tap(node, direction, format) as live:
            last = None
            for _, sample in zip(range(100), live):
                check(len(sample.values) == 2 and abs(sample.origin_ns / 1e9 - time.time()) < 60,
                      "a sample: %s" % sample)
                check(last is None or sample.sequence > last, "in order")
                last = sample.sequence
        fails(busbar.Unreachable, "closed", live.send, sample)
    with gateway.tap("sig", rate=20) as live:
        stamps = [sample.origin_ns for _, sample in zip(range(6), live)]
        check(stamps[-1] - stamps[0] > 5 * 40_000_000, "no more than 20 a second: %s" % stamps)
        fails(busbar.TimedOut, "no sample within 0 s", lambda: [live.receive(0) for _ in range(1000)])
    fails(busbar.NotFound, "there is no node 'none'", gateway.tap, "none")
    fails(ValueError, "direction", gateway.tap, "sig", "up")
    fails(ValueError, "format", gateway.tap, "sig", "in", "xml")
    fails(busbar.Refused, "status 400", gateway.tap, "sig", "in", rate=0)
    fails(busbar.Error, "of the type signal", gateway.live, "sig")


async def async_taps(gateway):
    async def read(format):
        async with await gateway.tap_async("sig", format=format) as live:
            got = []
            async for sample in live:
                got.append(sample.sequence)
                if len(got) == 100:
                    return got

    for got in await asyncio.gather(read("villas.web"), read("json")):
        check(got == sorted(set(got)), "in order")
    async with await gateway.tap_async("loop", "out", "json") as live:
        check(await live.receive(10), "samples")
        await asyncio.to_thread(gateway.stop_node, "sig")
        try:
            while True:
                await live.receive(0.3)
        except busbar.TimedOut:
            pass
        await asyncio.to_thread(gateway.start_node, "sig")
        check(await live.receive(10), "goes on behind a time limit")


SCREEN = """
nodes = {
	sig = { type = "signal"; signal = "counter"; rate = 1000; values = 2; };
	screen = { type = "websocket"; in = { signals = ( { name = "a"; type = "float"; },
		{ name = "b"; type = "integer"; } ); }; };
};
paths = ( { in = "sig"; out = "screen"; }, { in = "screen"; } );
stats = 0.0; hugepages = 0;
"""


def both_directions(folder):
    """A node of the type websocket, where the gateway has it."""
    with Gateway(folder, SCREEN, name="screen") as g:
        with busbar.Gateway("http://127.0.0.1:%d" % g.port) as gateway:
            for format in ("villas.web", "json"):
                with gateway.live("screen", format) as live:
                    check(live.receive(10)[0].values[0] >= 0, "samples come")
                    with gateway.tap("screen", "in", "json") as tap:
                        live.send([busbar.Sample([1.5, -7], i, 1_700_000_000_000_000_005) for i in (3, 4)])
                        got = tap.receive(10)
                        got = got if len(got) > 1 else got + tap.receive(10)
                        check([(s.values, s.sequence, s.origin_ns) for s in got] ==
                              [([1.5, -7], i, 1_700_000_000_000_000_005) for i in (3, 4)], "samples go: %s" % got)

            async def both():
                async with await gateway.live_async("screen", "json") as live:
                    await live.send(busbar.Sample([1.0, 2]))
                    check(await live.receive(10), "samples come")

            asyncio.run(both())


def goodbyes(gateway):
    """A gateway that ends says so: the iteration ends, and nothing is raised."""
    live = gateway.tap("sig")
    got = []
    reader = threading.Thread(target=lambda: got.extend(live))
    reader.start()
    other = gateway.tap("sig")
    other.receive(10)
    gateway.shutdown()
    reader.join(20)
    check(not reader.is_alive() and got, "the iteration ends")
    while other.receive(10):
        pass
    check(other.receive() == [], "and remains so")


def over_tls(folder):
    version = subprocess.run([BUSBAR, "version"], capture_output=True, text=True, timeout=30).stdout
    if not shutil.which("openssl") or "HTTPS" in version:
        print("without TLS")
        return
    pair, path = os.path.join(folder, "pair"), os.path.join(folder, "tokens")
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1",
                    "-nodes", "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1",
                    "-days", "2", "-keyout", pair + ".key", "-out", pair + ".crt"],
                   check=True, capture_output=True, timeout=60)
    with open(path, "w") as f:
        f.write("watch watch-0123456789abcdef\noperate operate-0123456789abcdef\n")
    os.chmod(path, 0o600)
    http = 'http = { ssl_cert = "%s.crt"; ssl_private_key = "%s.key"; token_file = "%s"; };' % (pair, pair, path)
    with open(path + ".watch", "w") as f:
        f.write("# of the test\nwatch  watch-0123456789abcdef\n")
    with Gateway(folder, NODES, http=http, name="tls") as g:
        url = "https://127.0.0.1:%d" % g.port
        with busbar.Gateway(url, token_file=path + ".watch", ca=pair + ".crt") as gateway:
            with gateway.tap("sig", format="json") as live:
                check(len([s for _, s in zip(range(200), live)]) == 200, "over TLS")

            async def read():
                async with await gateway.tap_async("sig") as live:
                    check(await live.receive(10), "over TLS, too")

            asyncio.run(read())
            fails(busbar.NotAllowed, "needs the role operate", gateway.stop_node, "sig")
            fails(busbar.NotAllowed, "token", busbar.Live, url.replace("http", "ws") + "/tap/sig/in",
                  ca=pair + ".crt")
        fails(busbar.Unreachable, "certificate", busbar.Gateway(url).status)
        fails(busbar.Unreachable, "certificate", busbar.Live, url.replace("http", "ws") + "/tap/sig/in")
        fails(busbar.Error, "/nonexistent", busbar.Gateway, url, ca="/nonexistent")


async def receive_async(port, path):
    live = await busbar.AsyncLive.connect("ws://127.0.0.1:%d%s" % (port, path), timeout=5)
    try:
        return [s.sequence async for s in live]
    finally:
        await live.close()


def receive(port, path):
    with busbar.Live("ws://127.0.0.1:%d%s" % (port, path), timeout=5) as live:
        return [s.sequence for s in live]


def wrong_servers():
    """What a server says in place of what it should, and what the client makes of it."""
    wrong = {
        "/none": (b"HTTP/1.1 404 x\r\nContent-Length: 19\r\n\r\n{\"error\":\"nothing\"}", busbar.NotFound, "nothing"),
        "/page": (b"HTTP/1.1 200 x\r\n\r\n<html>", busbar.Refused, "does not upgrade"),
        "/ssh": (b"SSH-2.0-x\r\n", busbar.ProtocolError, "no HTTP/1.1 server"),
        "/mute": (b"", busbar.Unreachable, "ended within the handshake"),
        "/long": (b"HTTP/1.1 101 x\r\n" + b"a: b\r\n" * 9999, busbar.ProtocolError, "longer than"),
        "/key": (b"HTTP/1.1 101 x\r\nUpgrade: websocket\r\nConnection: upgrade\r\nSec-WebSocket-Accept: x\r\n\r\n",
                 busbar.ProtocolError, "Accept"),
        "/masked.json": (b"\x82\x85", busbar.ProtocolError, "masked"),
        "/binary.json": (frame(2, SAMPLE % 1), busbar.ProtocolError, "binary frame"),
        "/text": (frame(1, SAMPLE % 1), busbar.ProtocolError, "text frame"),
        "/json.json": (frame(1, b"{"), busbar.ProtocolError, "json:"),
        "/web": (frame(2, b"x" * 20), busbar.ProtocolError, "villas.web: no message"),
        "/big.json": (b"\x81\x7f" + (1 << 40).to_bytes(8, "big"), busbar.ProtocolError, "longer than"),
        "/gone.json": (frame(1, SAMPLE % 1), busbar.Unreachable, "without a word"),
        "/signals.json": (frame(8, b"\x03\xf4signals"), busbar.Closed, "1012: signals"),
    }

    def talk(client):
        head = client.head()
        path = head.split()[1].decode()
        reply, kind, _ = wrong[path]
        if path in ("/none", "/page", "/ssh", "/mute", "/long", "/key"):
            client.send(reply)
            return
        again(client, head)
        client.send(reply)
        if path in ("/masked.json", "/binary.json", "/big.json", "/json.json"):
            opcode, payload = client.frame()
            check(opcode == 8 and len(payload) > 2, "it is told why: %r" % payload)

    with server(talk) as port:
        for path, (_, kind, text) in wrong.items():
            fails(kind, text, receive, port, path)
            fails(kind, text, lambda: asyncio.run(receive_async(port, path)))
    fails(busbar.Unreachable, "refused", receive, port, "/none")
    fails(busbar.Unreachable, "", lambda: asyncio.run(receive_async(port, "/none")))


def again(client, head):
    """The answer to a head that was read already."""
    rest = client.file
    client.file = iter_lines(head)
    client.upgrade()
    client.file = rest


class iter_lines:
    def __init__(self, head):
        self.lines = head.splitlines(keepends=True)

    def readline(self):
        return self.lines.pop(0) if self.lines else b""


def conversation():
    """Fragments, pings between them, samples in both directions, a close that is answered."""
    got = []

    def talk(client):
        client.upgrade()
        text = SAMPLE % 1
        client.send(frame(1, text[:5], False) + frame(9, b"are you there") + frame(0, text[5:]))
        check(client.frame() == (10, b"are you there"), "a pong")
        opcode, payload = client.frame()
        got.append((opcode, json.loads(payload)))
        client.send(frame(1, SAMPLE % 2) * 2 + frame(8, b"\x03\xe8"))
        check(client.frame() == (8, b"\x03\xe8"), "the close is answered")

    with server(talk) as port:
        url = "ws://127.0.0.1:%d/x.json" % port
        with busbar.Live(url, receives=["float", "integer"], timeout=5) as live:
            check(next(live).values == [1.5, 2], "a sample")
            live.send(busbar.Sample([1.0, 2, True, 1j], 5, 1_000_000_002))
            check([s.sequence for s in live] == [2, 2], "the rest")

        async def talk_async():
            async with await busbar.AsyncLive.connect(url, timeout=5) as live:
                check((await live.receive())[0].sequence == 1, "a sample")
                await live.send([busbar.Sample([1.0, 2, True, 1j], 5, 1_000_000_002)])
                check([s.sequence async for s in live] == [2, 2], "the rest")

        asyncio.run(talk_async())
    for opcode, o in got:
        check((opcode, o) == (1, [{"ts": {"origin": [1, 2]}, "sequence": 5,
                                   "data": [1.0, 2, True, {"real": 0.0, "imag": 1.0}]}]), "sent: %s" % o)


def silence():
    """Who says nothing is asked, and given up when it does not answer."""
    asked = threading.Semaphore(0)

    def talk(client):
        client.upgrade()
        while (f := client.frame()) and f[0] == 9:
            asked.release()
        while client.frame():
            pass

    with server(talk) as port:
        url = "ws://127.0.0.1:%d/x" % port
        with busbar.Live(url, timeout=5) as live:
            live._quiet_s = live._deaf_s = 0.05
            fails(busbar.Unreachable, "does not answer", live.receive)
        check(asked.acquire(timeout=10), "it was asked")

        async def wait():
            live = await busbar.AsyncLive.connect(url, timeout=5)
            live._quiet_s = live._deaf_s = 0.05
            await live.receive()

        fails(busbar.Unreachable, "does not answer", lambda: asyncio.run(wait()))
        check(asked.acquire(timeout=10), "it was asked, too")
        # Another thread closes.
        live = busbar.Live(url, timeout=5)
        threading.Timer(0.05, live.close).start()
        check(live.receive() == [], "a receive ends")


def deaf():
    """A server that takes nothing: sending ends, and receiving is not held up by it."""
    done = threading.Event()

    def talk(client):
        client.upgrade()
        client.send(frame(9, b"x") + frame(2, b"\x20\0\0\0\3" + bytes(11)))
        done.wait(20)

    with server(talk) as port:
        try:
            live = busbar.Live("ws://127.0.0.1:%d/x" % port, timeout=20)
            live._timeout = 0.2  # for sending only
            many = [busbar.Sample([0.5] * 60000)] * 40
            error = []
            thread = threading.Thread(target=lambda: error.append(fails(busbar.TimedOut, "nothing was taken",
                                                                        live.send, many)))
            thread.start()
            check(live.receive(10)[0].sequence == 3, "a sample meanwhile")
            thread.join(20)
            check(error, "sending ends")
        finally:
            done.set()


def wrong_arguments():
    for url, more, text in (("http://h/x", {}, "ws://HOST"), ("ws://h", {}, "NODE"), ("ws://:1/x", {}, "ws://HOST"),
                            ("ws://h:99999/x", {}, "ws://HOST"), ("ws://u@h/x", {}, "token"),
                            ("ws://h/a b", {}, "blanks"), ("ws://h/x", {"ca": "x"}, "wss"),
                            ("ws://h/x", {"token": "a\r\nb"}, "token"), ("ws://h/x", {"timeout": 0}, "timeout"),
                            ("ws://h/x", {"receives": ["real"]}, "real"), ("ws://h/x", {"message_max": 0}, "max")):
        fails(ValueError, text, busbar.Live, url, **more)


with tempfile.TemporaryDirectory() as place:
    for part in (wrong_arguments, wrong_servers, conversation, silence, deaf):
        part()
    over_tls(place)
    with Gateway(place, NODES) as gw:
        with busbar.Gateway("http://127.0.0.1:%d" % gw.port) as client:
            taps(client)
            asyncio.run(async_taps(client))
            has_node = "websocket" in client.capabilities()["nodes"]
            goodbyes(client)
        check(gw.process.wait(30) == 0, "the gateway ends")
    if has_node:
        both_directions(place)
