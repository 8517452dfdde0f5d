#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""What a member of a session sends reaches all others of it and nobody else, for clients of
other people's making, too.

Environment: BUSBAR, the program. Exit status 0: good, 1: not.
"""
import asyncio
import hashlib
import json
import os
import resource
import shutil
import signal
import ssl
import subprocess
import tempfile

from relay_peers import BINARY, BUSBAR, CLOSE, PONG, TEXT, Peer, Relay, check, nothing_more, until
from ws_client import how_it_is_asked

try:
    import websockets
except ImportError:
    websockets = None
try:
    from prometheus_client.parser import text_string_to_metric_families as parse_plain
    from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_open
except ImportError:
    parse_plain = parse_open = None

UUID = "01234567-89AB-cdef-0123-456789abcdef"


def sessions_are_apart():
    with Relay("-u", UUID) as r, Peer(r.port, "/a") as a, Peer(r.port, "/a?x=y") as b, \
            Peer(r.port, "/a/b.json") as other, Peer(r.port, "/%61") as c:
        for data in ("text", b"binary \x00\xff", "", b"", "\u00e4" * 40, b"x" * 126, b"y" * 65536, b"z" * 1000000):
            kind = BINARY if isinstance(data, bytes) else TEXT
            a.message(data)
            for p in (b, c):
                check(p.receive() == (kind, data if kind == BINARY else data.encode()), "the same message")
        nothing_more(a, other)
        c.send(b"\x01\x83\0\0\0\0abc" b"\x89\x81\0\0\0\0!" b"\x80\x83\0\0\0\0def")
        check(c.receive() == (PONG, b"!"), "a ping between the parts")
        check(a.receive() == b.receive() == (TEXT, b"abcdef"), "a message is sent as a whole")
        s = r.session("/a")
        check(s["connects"] == 3 and len(s["connections"]) == 3, "three members: %s" % s)
        check(s["frames_recvd"] == 9 and s["frames_sent"] == 18 and s["frames_lost"] == 0, "counters: %s" % s)
        m = [m for m in s["connections"] if m["port"] == a.socket.getsockname()[1]][0]
        check(m["ip"] == "127.0.0.1" and m["frames_recvd"] == 8 and m["frames_sent"] == 1 and
              m["bytes_sent"] == 6 and m["bytes_recvd"] == 1065755, "a member: %s" % m)
        o = r.state()
        check(o["uuid"] == UUID and o["options"]["protocol"] == "live", "the relay: %s" % o)
        check([s["identifier"] for s in o["sessions"]] == ["/a", "/a/b.json"], "sessions")
        # Who says goodbye is answered, and a session goes with its last member.
        other.say(CLOSE, b"\x03\xe8bye")
        check(other.closed_with() == 1000 and other.receive() is None, "goodbye")
        b.close()
        until(lambda: [len(s["connections"]) for s in r.state()["sessions"]] == [2], "members leave")
        a.close()
        c.close()
        until(lambda: not r.state()["sessions"], "the session is gone")
        check(r.state()["counters"]["sessions"] == 2, "but not forgotten")


def own_data_comes_back_if_wanted():
    with Relay("--loopback") as r, Peer(r.port) as a, Peer(r.port) as b:
        a.message("hello")
        check(a.receive() == b.receive() == (TEXT, b"hello"), "both have it")
        check(r.state()["options"]["loopback"] is True, "and / says so")


def the_path_is_for_websocket():
    with Relay() as r:
        how_it_is_asked(r.port, "/s")
        check(r.ask("/").status == 200 and r.ask("/", Upgrade="websocket").status == 200, "and that one for HTTP")


def others_programs():
    """Of Debian's python3-websockets: handshake, masks, fragments, pings, closing."""
    if not websockets:
        print("without python3-websockets")
        return

    async def talk(r):
        url = "ws://127.0.0.1:%d/plant/1" % r.port
        async with websockets.connect(url, subprotocols=["x", "live"]) as a, \
                websockets.connect(url, compression=None) as b:
            check(a.subprotocol == "live" and b.subprotocol is None, "the protocol")
            await a.send(["frag", "men", "ted"])
            check(await b.recv() == "fragmented", "joined")
            await b.send(bytes(range(256)) * 2000)
            check(await a.recv() == bytes(range(256)) * 2000, "half a megabyte")
            await (await a.ping())
            try:
                await websockets.connect(url, subprotocols=["other"])
                check(False, "another protocol")
            except websockets.InvalidStatusCode as e:
                check(e.status_code == 400, "another protocol: %d" % e.status_code)
            r.process.send_signal(signal.SIGINT)
            for p in (a, b):
                try:
                    await p.recv()
                except websockets.ConnectionClosed as e:
                    check(e.code == 1001, "closed with 1001: %r" % e)

    with Relay("--counters") as r:
        asyncio.run(talk(r))
        out = json.loads(r.end())
        check(out["accepted"] == 2 and out["frames_recvd"] == 2 and out["frames_lost"] == 0, "counters: %s" % out)


def who_may_join():
    look, join = "watch-0123456789abcdef", "operate-0123456789abcdef"
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "tokens")
        with open(path, "w") as f:
            f.write("watch %s\noperate sha256:%s\n" % (look, hashlib.sha256(join.encode()).hexdigest()))
        os.chmod(path, 0o600)
        bearer = {k: {"Authorization": "Bearer " + k} for k in (look, join)}
        with Relay("--address=*", "--token-file", path) as r:
            Peer(r.port, status=401).close()
            Peer(r.port, status=403, **bearer[look]).close()
            check(r.ask("/").status == 401 and r.ask("/", **bearer[look]).status == 200, "who may look")
            with Peer(r.port, **bearer[join]) as a, Peer(r.port, **bearer[join]) as b:
                a.message("for members")
                check(b.receive() == (TEXT, b"for members"), "members")
                with open(path, "w") as f:
                    f.write("operate %s-new\n" % join)
                r.process.send_signal(signal.SIGHUP)
                until(lambda: "tokens were read again" in r.said(), "SIGHUP")
                Peer(r.port, status=401, **bearer[join]).close()
                b.message("still")
                check(a.receive() == (TEXT, b"still"), "members stay")
    for options in (("--open", "--address=*"), ("--open",)):
        with Relay(*options) as r:
            host = {"Host": "relay.example:8088"}
            Peer(r.port, **host).close()  # no browser
            Peer(r.port, status=403, Origin="http://relay.example:8088", **host).close()
            Peer(r.port, status=403, Origin="http://evil.example").close()
            Peer(r.port, Origin="http://127.0.0.1:%d" % r.port).close()
    with Relay("--origin=https://lab.example") as r:
        Peer(r.port, Origin="https://lab.example").close()
        Peer(r.port, status=403, Origin="https://evil.example").close()


def over_tls():
    if not (websockets and shutil.which("openssl")) or "HTTPS" in subprocess.run(
            [BUSBAR, "version"], capture_output=True, text=True, check=True).stdout:
        print("without TLS")
        return
    with tempfile.TemporaryDirectory() as folder:
        key, cert = (os.path.join(folder, name) for name in ("key", "cert"))
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1",
                        "-nodes", "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost",
                        "-days", "2", "-keyout", key, "-out", cert], check=True, capture_output=True, timeout=60)
        context = ssl.create_default_context(cafile=cert)

        async def talk(r):
            url = "wss://localhost:%d/s" % r.port
            # More than one connection's room on its way, in both directions at once.
            async with websockets.connect(url, ssl=context, max_size=None) as a, \
                    websockets.connect(url, ssl=context, max_size=None) as b:
                data = os.urandom(900000)
                for _ in range(3):
                    got = await asyncio.gather(a.send(data), b.send(data), a.recv(), b.recv())
                    check(got[2:] == [data, data], "the same bytes")

        with Relay("--cert", cert, "--key", key) as r:
            asyncio.run(talk(r))
        wrong(1, "--key " + cert, "--cert", cert, "--key", cert)


def limits():
    with Relay("--sessions=2", "--connections=3") as r, Peer(r.port, "/1") as a, Peer(r.port, "/2"):
        p = Peer(r.port, "/3", 503)
        check("sessions" in p.error and p.headers["retry-after"], "as many sessions as may be: " + p.error)
        with Peer(r.port, "/1") as b:
            check("connections" in Peer(r.port, "/1", 503).error, "as many connections as may be")
            a.message("x")
            check(b.receive() == (TEXT, b"x"), "the others go on")
        a.close()
        until(lambda: len(r.state()["sessions"]) == 1, "room again")
        Peer(r.port, "/3").close()
        check(Peer(r.port, "/a%0Ab", 400).error.startswith("the path"), "a path that cannot be shown")
        Peer(r.port, "/%ff", 400).close()
        Peer(r.port, status=400, Sec_WebSocket_Protocol="dead").close()
        check(Peer(r.port, status=426, Sec_WebSocket_Version="8").headers["sec-websocket-version"] == "13", "version")
        check(r.ask("/1").status == 426 and r.ask("/", "POST").status == 405, "other requests")
        check(r.state()["counters"]["refused"] == 6, "are counted: %s" % r.state()["counters"])


def a_thousand_sessions():
    """Each with two members, one of whom sends."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < 2500:
        print("a thousand sessions: no more than %d descriptors" % hard)
        return
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 2500), hard))
    with Relay("--sessions=1000", "--connections=2000") as r:
        pairs = [(Peer(r.port, "/%d" % i), Peer(r.port, "/%d" % i)) for i in range(1000)]
        for _ in range(2):
            for i, (a, _b) in enumerate(pairs):
                a.message("sample %d" % i)
            for i, (_a, b) in enumerate(pairs):
                check(b.receive() == (TEXT, b"sample %d" % i), "of its own session")
        o = r.state()
        check(len(o["sessions"]) == 1000 and all(s["frames_sent"] == 2 for s in o["sessions"]), "all of them")
        metrics(r)
        for pair in pairs:
            for p in pair:
                p.close()
        until(lambda: not r.state()["sessions"], "all are gone")


def metrics(r):
    plain = r.ask("/metrics")
    opened = r.ask("/metrics", Accept="application/openmetrics-text")
    check(plain.status == opened.status == 200 and opened.body.endswith(b"# EOF\n"), "both formats")
    if not parse_plain:
        print("without python3-prometheus-client")
        return
    for parse, a in ((parse_plain, plain), (parse_open, opened)):
        found = {f.name: f.samples for f in parse(a.body.decode())}
        check(found["busbar_relay_sessions"][0].value == 1000, "sessions")
        check(found["busbar_relay_sent_messages"][0].value == 2000, "messages")
        per = found["busbar_relay_session_sent_messages"]
        check({s.labels["session"] for s in per} == {"/%d" % i for i in range(1000)} and
              all(s.value == 2 for s in per), "by session")


def the_end():
    for number in (signal.SIGINT, signal.SIGTERM):
        with Relay() as r, Peer(r.port) as a, Peer(r.port, "/t") as b:
            r.process.send_signal(number)
            check(a.closed_with() == b.closed_with() == 1001, "goodbye to all")
            check(a.receive() is None, "and closed")
            r.end(number)
    with Relay() as r:
        for options, message in ((("-p", str(r.port)), "another program listens there"),):
            wrong(1, message, *options)
    for options, message in (
            (("-p", "70000"), "--port 70000: expected a whole number"), (("-p", "1.5"), "--port"),
            (("--uuid=x",), "--uuid"), (("-P", "a b"), "--protocol"), (("x",), "expected nothing but options"),
            (("--nonsense",), "unrecognized option"), (("--address=host",), "--address: expected a numeric"),
            (("--address=*",), "other hosts can reach"), (("--cert=x",), "--cert and --key"),
            (("--open", "--token-file=x"), "--open lets everybody in"), (("--origin=lab",), "--origin lab"),
            (("--ping=0",), "--ping 0: expected a number")):
        wrong(2, message, *options)
    wrong(1, "--token-file /nonexistent", "--token-file=/nonexistent")
    check("--loopback" in subprocess.run([BUSBAR, "relay", "--help"], capture_output=True, text=True,
                                         timeout=30, check=True).stdout, "help")
    with tempfile.TemporaryDirectory() as folder:
        os.symlink(BUSBAR, os.path.join(folder, "villas-relay"))
        with Relay("-P", "other", name=os.path.join(folder, "villas-relay")) as r:
            Peer(r.port, Sec_WebSocket_Protocol="other").close()


def wrong(status, message, *options):
    p = subprocess.run([BUSBAR, "relay", *options], capture_output=True, text=True, timeout=30, check=False)
    check(p.returncode == status and message in p.stderr, "%s: %d %s" % (options, p.returncode, p.stderr))


sessions_are_apart()
own_data_comes_back_if_wanted()
the_path_is_for_websocket()
others_programs()
who_may_join()
over_tls()
limits()
a_thousand_sessions()
the_end()
