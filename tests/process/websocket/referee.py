#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""python3-websockets as a client of our endpoint, and as a server of our destinations.

Environment: BUSBAR, the program. Exit status 0: good, 1: not, 77: the package is not there.
"""
import asyncio
import json
import socket
import sys
import tempfile
import threading

from http_gateway import Gateway, check, until

try:
    import websockets
except ImportError:
    print("skipped: python3-websockets is not installed")
    sys.exit(77)

CONFIG = """
nodes = {
	sig = { type = "signal"; rate = 200.0; values = 2; signal = "counter"; };
	live = { type = "websocket"; in = { signals = "2f"; }; };
	back = { type = "websocket"; };
	up = { type = "websocket"; destinations = [ "ws://127.0.0.1:%d/far.json" ]; reconnect_interval = 50;
		ping_interval = 0.2; in = { signals = "2f"; }; };
};
paths = ( { in = "sig"; out = [ "up", "live" ]; }, { in = "live"; out = "back"; }, { in = "up"; } );
stats = 0.0; hugepages = 0;
"""
LIMIT = 20
# What nobody reads must not keep a goodbye from being seen.
QUEUE = {"max_queue": None}


def message(n):
    return json.dumps([{"sequence": n, "data": [float(n), 0.5]}])


async def as_client(g):
    url = "ws://127.0.0.1:%d/" % g.port
    async with websockets.connect(url + "live.json", subprotocols=["other", "live"], **QUEUE) as live, \
            websockets.connect(url + "back.json", compression=None, **QUEUE) as back, \
            websockets.connect(url + "live", **QUEUE) as plain:
        check(live.subprotocol == "live" and back.subprotocol is None, "the protocols")
        got = []
        while len(got) < 50:
            got += [s["data"][0] for s in json.loads(await asyncio.wait_for(live.recv(), LIMIT))]
        check(all(b > a for a, b in zip(got, got[1:])), "in order")
        check(isinstance(await asyncio.wait_for(plain.recv(), LIMIT), bytes), "binary frames for villas.web")
        # In fragments, and as a whole.
        text = message(1)
        await live.send([text[:5], text[5:9], text[9:]])
        await live.send(message(2))
        values = []
        while len(values) < 2:
            values += [s["data"] for s in json.loads(await asyncio.wait_for(back.recv(), LIMIT))]
        check(values == [[1, 0.5], [2, 0.5]], "what it has sent: %s" % values)
        await asyncio.wait_for(await live.ping(b"hello"), LIMIT)
        await live.close(4321, "enough")
        check(live.close_code == 4321, "its own status: %s" % live.close_code)
    try:
        await websockets.connect(url + "live.none")
        check(False, "a format that there is not")
    except websockets.InvalidStatusCode as e:
        check(e.status_code == 404, "status %d" % e.status_code)


class Server:
    """What comes, in order; each connection ends with its own status."""

    def __init__(self, port):
        self.port, self.protocols, self.values, self.ended = port, [], [], []
        self.loop = asyncio.new_event_loop()
        self.ready = threading.Event()
        self.thread = threading.Thread(target=self.loop.run_until_complete, args=(self.run(),))
        self.thread.start()
        check(self.ready.wait(LIMIT), "the server listens")

    async def run(self):
        self.over = asyncio.Event()
        async with websockets.serve(self.serve, "127.0.0.1", self.port, subprotocols=["live"], **QUEUE):
            self.ready.set()
            await self.over.wait()

    async def serve(self, ws, path=None):
        self.protocols.append((ws.subprotocol, ws.path))
        number = len(self.protocols)
        try:
            await ws.send([message(number)[:9], message(number)[9:]])
            if number == 1:
                await ws.send("no sample")
            while len(self.values) < 20 * number:
                self.values += [s["data"][0] for s in json.loads(await asyncio.wait_for(ws.recv(), LIMIT))]
            await asyncio.wait_for(await ws.ping(b"there?"), LIMIT)
            if number < 4:
                await ws.close(4000 + number, "again")
            else:
                await ws.wait_closed()
        finally:
            self.ended.append(ws.close_code)

    def stop(self):
        self.loop.call_soon_threadsafe(self.over.set)
        self.thread.join(LIMIT)


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def as_server(g, server):
    until(lambda: len(server.protocols) == 4, "it has come again: %s" % server.ended, 60)
    check(set(server.protocols) == {("live", "/far.json")}, "%s" % server.protocols)
    check(server.ended[:3] == [4001, 4002, 4003], "each with its status: %s" % server.ended)
    until(lambda: g.ask("/api/v2/node/up").json()["stats"]["received"] == 4, "what the server has sent")
    check("says goodbye: 4002 again" in g.said(), "the log has the reason")
    check("far.json: " in g.said(), "the log has what is no sample")
    until(lambda: len(server.values) >= 80, "samples")


def main():
    port = free_port()
    with tempfile.TemporaryDirectory(prefix="busbar-ws-") as folder:
        # The gateway comes first, and finds nobody.
        with Gateway(folder, CONFIG % port) as g:
            until(lambda: "cannot connect to ws://" in g.said(), "nobody is there")
            server = Server(port)
            try:
                as_server(g, server)
                asyncio.run(as_client(g))
                g.end()
                until(lambda: server.ended[3:] == [1001], "it says goodbye: %s" % server.ended)
            finally:
                server.stop()


sys.exit(main())
