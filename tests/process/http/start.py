#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""A gateway waits for its configuration, is given others, and ends, all over HTTP; who asks
meanwhile gets an answer.

Environment: BUSBAR, the program. Exit status 0: good, 1: not.
"""
import json
import os
import socket
import subprocess
import tempfile
import threading

from http_gateway import BUSBAR, NODES, Client, Gateway, check, until

OBJECT = {"nodes": {"s": {"type": "signal", "rate": 100}}, "paths": [{"in": "s"}], "stats": 0,
          "hugepages": 0}


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def restarted(g, count):
    until(lambda: g.said().count("serves requests") > count, "it starts anew")
    g.listens()


def provisioning(folder):
    port = free_port()
    for program in (("run", "-q", "--summary=none"), ("node", "-d", "info")):
        with Gateway(folder, config=None, listen="127.0.0.1:%d" % port, program=program,
                     name=program[0]) as g:
            check("waits for one" in g.said() or g.port, "it waits")
            check(g.ask("/api/v2/nodes").json() == [], "nothing is there")
            check(g.ask("/api/v2/config").json() == {}, "no configuration")
            a = g.ask("/api/v2/restart", "POST", {"config": {"nodes": {"x": {"type": "none"}}}})
            check(a.status == 422 and "none" in str(a.json()["errors"]), "errors are told: %s" % a.body)
            a = g.ask("/api/v2/restart", "POST", {"config": OBJECT})
            check(a.status == 200 and a.json() == {"restarts": 1, "config": OBJECT}, "taken")
            restarted(g, 1)
            check([n["name"] for n in g.ask("/api/v2/nodes").json()] == ["s"], "the node is there")
            check(g.ask("/api/v2/config").json() == OBJECT, "the configuration as loaded")
            with open(os.path.join(folder, "a b.conf"), "w") as f:
                f.write(NODES)
            a = g.ask("/api/v2/restart", "POST", {"config": "file://%s/a%%20b.conf" % folder})
            check(a.status == 200 and a.json()["restarts"] == 2, "a file: %s" % a.body)
            restarted(g, 2)
            check(len(g.ask("/api/v2/nodes").json()) == 2, "its nodes")
            a = g.ask("/api/v2/restart", "POST", {"config": "https://lab.example/x.conf"})
            check(a.status == 501 and "only files" in a.json()["error"], "no download")
            check(g.ask("/api/v2/shutdown", "POST").status == 200, "shutdown")
            check(g.process.wait(30) == 0, "ends with 0")


def in_flight(folder):
    """Everybody who asks while it starts anew gets 200, 503, or no connection."""
    port = free_port()
    with Gateway(folder, listen="127.0.0.1:%d" % port) as g:
        seen, stop = {}, threading.Event()

        def ask():
            while not stop.is_set():
                try:
                    with Client(port) as c:
                        for _ in range(50):
                            a = c.ask("/api/v2/status")
                            seen[a and a.status] = seen.get(a and a.status, 0) + 1
                            if not a or a.headers["connection"] == "close":
                                break
                except OSError:
                    seen["none"] = seen.get("none", 0) + 1

        threads = [threading.Thread(target=ask) for _ in range(3)]
        for t in threads:
            t.start()
        try:
            for i in range(3):
                count = g.said().count("serves requests")
                a = g.ask("/api/v2/restart", "POST")
                check(a.status == 200 and a.json()["restarts"] == i + 1, "restart %d: %s" % (i, a.body))
                restarted(g, count)
        finally:
            stop.set()
            for t in threads:
                t.join()
        check(set(seen) <= {200, 503, None, "none"} and seen[200] > 20, "answers: %s" % seen)


def options(folder):
    with Gateway(folder, http="http = { enabled = false; };", listen=None, args=["--http=0"]) as g:
        check(g.ask("/api/v2/status").status == 200, "the command line counts more")
    config = os.path.join(folder, "x.conf")
    with open(config, "w") as f:
        f.write(NODES)
    p = subprocess.run([BUSBAR, "run", "-q", "-t", "0.2", "--summary=none", config],
                       capture_output=True, text=True, timeout=30)
    check(p.returncode == 0 and "serves requests" not in p.stderr, "no server unless it is asked for")


with tempfile.TemporaryDirectory() as place:
    provisioning(place)
    in_flight(place)
    options(place)
