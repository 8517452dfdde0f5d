#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The package commands a gateway over HTTP and over the control socket: every method, the
exceptions, jobs; and servers that misbehave.

Environment: BUSBAR, the program; PYTHONPATH, the package and tests/process/http. Exit status 0:
good, 1: not.
"""
import os
import socket
import tempfile
import threading
import time

import busbar
from http_gateway import Gateway, check, fails, until
from server import server

NODES = """
nodes = {
	sig = { type = "signal"; rate = 1000; values = 2; in = { hooks = ( { type = "stats"; } ); }; };
	loop = { type = "loopback"; };
	record = { type = "file"; uri = "%s"; format = "csv"; in = { eof = "wait"; }; };
	off = { type = "loopback"; enabled = false; };
};
paths = ( { in = "sig"; out = "loop"; }, { in = "loop"; }, { in = "record"; } );
stats = 0.0; hugepages = 0;
"""
NAME = "sig -> loop"
# Of each request of the gateway.
METHODS = {
    "GET /capabilities": "capabilities", "GET /status": "status", "GET /config": "config config_text",
    "GET /config/text": "config_written", "POST /check": "check", "GET /log": "log",
    "GET /nodes": "nodes", "GET /node/{id}": "node", "GET /node/{id}/stats": "node_stats",
    "POST /node/{id}/stats/reset": "reset_node_stats", "POST /node/{id}/file/rewind": "rewind_node",
    "GET /node/{id}/file/rewind": "rewind_node",
    "POST /node/{id}/{command}": "start_node stop_node pause_node resume_node restart_node",
    "GET /paths": "paths", "GET /path/{id}": "path", "GET /path/{id}/stats": "path_stats",
    "POST /path/{id}/stats/reset": "reset_path_stats",
    "POST /path/{id}/{command}": "start_path stop_path pause_path resume_path restart_path",
    "GET /stats": "stats", "POST /stats/reset": "reset_stats", "GET /metrics": "metrics",
    "GET /graph.{format}": "graph", "GET /openapi.json": "openapi", "POST /reload": "reload",
    "POST /restart": "restart", "POST /shutdown": "shutdown", "GET /job/{id}": "job",
}


def looks(g):
    check(g.status()["state"] == "running" and "json" in g.capabilities()["formats"], "the gateway")
    check(set(g.config()["nodes"]) == {"sig", "loop", "record", "off"}, "the configuration")
    check([n["name"] for n in g.nodes()] == ["sig", "loop", "record", "off"], "nodes")
    sig = g.node("sig")
    check(g.node(sig["uuid"])["in"]["signals"] == sig["in"]["signals"] and sig["rate"] == 1000, "a node")
    until(lambda: g.node_stats("sig")["stats"]["received"] > 0, "samples")
    check([p["name"] for p in g.paths()][0] == NAME, "paths")
    for id in (0, "0", NAME, g.path(0)["uuid"]):
        check(g.path(id)["out"] == ["loop"] and g.path_stats(id)["name"] == NAME, "a path")
    check(g.stats()["nodes"]["sig"]["stats"]["received"] > 0 and len(g.stats()["paths"]) == 3, "figures")
    check(g.config_written()["file"].endswith(".conf"), "as it was written")
    check(g.check("nodes = { };")["good"], "a good text")
    problem = g.check("\nnodse = { };")["problems"][0]
    check(problem["line"] == 2 and problem["key"] == "nodse", "a wrong key")
    log = g.log()
    check(log["lines"][-1]["number"] == log["last"] and not g.log(log["last"])["lines"], "the log")
    check("busbar_node_received_samples_total" in g.metrics(), "metrics")
    check(g.graph().startswith(b"digraph") and g.graph("dot", "dot"), "a graph")
    there = {m.upper() + " " + p for p, item in g.openapi()["paths"].items() for m in item}
    check(there == set(METHODS), "a request needs a method of the package: %s" % (there ^ set(METHODS)))
    for names in METHODS.values():
        check(all(hasattr(g, n) for n in names.split()), names)


def commands(g):
    for kind, id, running in (("node", "sig", "started"), ("path", NAME, "running")):
        def do(verb):
            return getattr(g, verb + "_" + kind)(id)

        def state():
            return getattr(g, kind)(id)["state"]

        check(do("stop") and not do("stop") and state() == "stopped", "stopped")
        error = fails(busbar.NotPossible, "the %s is stopped" % kind, do, "pause")
        check(error.status == 409 and error.path.endswith("/pause") and error.method == "POST", "what it says")
        check(do("start") and not do("start") and state() == running, "started")
        check(do("pause") and not do("pause") and state() == "paused", "paused")
        check(do("resume") and not do("resume") and state() == running, "goes on")
        check(do("restart") and state() == running, "restarted")
        getattr(g, "reset_%s_stats" % kind)(id)
    g.reset_stats()
    check(g.rewind_node("record"), "rewound")
    fails(busbar.Refused, "status 501", g.rewind_node, "sig")
    fails(busbar.NotFound, "there is no node 'none'", g.stop_node, "none")
    fails(busbar.NotFound, "there is no path 'a/b ?%'", g.path, "a/b ?%")
    fails(busbar.NotFound, "'ä'", g.node, "ä")
    for id in ("", ".."):
        fails(ValueError, "expected a name", g.node, id)
    error = fails(busbar.WrongConfiguration, "nodse", g.reload, {"nodse": 1, "nodes": {"x": {"type": "none"}}})
    check(error.status == 422 and len(error.errors) == 2 and "none" in str(error), "all errors")
    fails(ValueError, "float", g.reload, {"x": float("nan")})
    check("node sig" in g.reload()["kept"], "a reload")
    text = g.config_written()["text"]
    check("node sig" in g.apply(text)["kept"] and g.config_written()["given"], "a text")
    revision = g.config_written()["revision"]
    check("node sig" in g.apply(text, revision)["kept"], "a text of the present revision")
    fails(busbar.NotPossible, "changed since", g.apply, text, revision)
    check("node sig" in g.reload()["kept"] and not g.config_written()["given"], "the file again")
    fails(busbar.NotFound, "no such format", g.graph, "bmp")
    check(g.ask("GET", "/nothing").status == 404 and g.ask("PUT", "/nodes").status == 405, "any request")
    fails(ValueError, "percent", g.ask, "GET", "/a b")


def threads(g):
    failed = []

    def work():
        try:
            for _ in range(20):
                check(g.node("sig")["name"] == "sig" and g.path(1)["in"] == ["loop"], "its own answer")
        except Exception as error:
            failed.append(error)

    some = [threading.Thread(target=work) for _ in range(4)]
    for t in some:
        t.start()
    for t in some:
        t.join(60)
    check(not failed, "threads take turns: %s" % failed)


def http_only(g):
    check(g.config_text().startswith("nodes = {"), "libconfig")
    check("# EOF" in g.metrics(openmetrics=True), "the other text")
    job = g.begin("POST", "/reload")
    check("kept" in job.wait(20) and job.done() and g.job(job.id)["state"] == "done", "a job")
    bad = g.begin("POST", "/reload", {"config": {"nodse": 1}})
    fails(busbar.WrongConfiguration, "nodse", bad.wait, 20)
    fails(busbar.NotFound, "no such job", g.job, "999")


def restarts(g):
    before = g.status()["time_started"]
    check(g.restart()["restarts"] == 1, "a restart")

    def again():
        try:
            return g.status()["time_started"] > before and g.nodes()
        except (busbar.Unreachable, busbar.Unavailable):
            return False

    until(again, "it is there again")
    g.shutdown()


def ways(folder):
    record = os.path.join(folder, "record.csv")
    with open(record, "w") as f:
        f.write("1,500000000,0,0,1.0\n")
    for way in ("http", "local"):
        with Gateway(folder, NODES % record) as process:
            where = "http://127.0.0.1:%d" % process.port if way == "http" else process.control
            with busbar.Gateway(where) as g:
                looks(g)
                commands(g)
                threads(g)
                if way == "http":
                    http_only(g)
                    g.close()
                    # A connection that the server has ended meanwhile is made again.
                    g.status()
                    g._way._connection.sock.shutdown(socket.SHUT_RDWR)
                    check(g.reset_stats() in (True, False), "another connection")
                else:
                    fails(busbar.Error, "object only", g.config_text)
                    fails(busbar.Error, "jobs", g.begin, "POST", "/reload")
                    fails(busbar.Error, "http://", g.tap, "sig")
                # Over HTTP it would listen at another port.
                restarts(g) if way == "local" else g.shutdown()
            check(process.process.wait(30) == 0, "it ends")
            fails(busbar.Unreachable, process.control if way == "local" else "refused", busbar.Gateway(where).status)


def wrong_http():
    ok = b"HTTP/1.1 200 x\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
    cases = {
        "/nodes": (b"hello\r\n\r\n", busbar.ProtocolError, "no HTTP"),
        "/paths": (ok % 9 + b"[]", busbar.Unreachable, "within the answer"),
        "/status": (ok % 2 + b"[]", busbar.ProtocolError, "expected an object"),
        "/config": (ok % 1 + b"{", busbar.ProtocolError, "no JSON"),
        "/stats": (b"HTTP/1.1 200 x\r\nContent-Type: text/html\r\nContent-Length: 1\r\n\r\nx", busbar.ProtocolError,
                   "text/html"),
        "/capabilities": (b"", busbar.Unreachable, "without response"),
        "/openapi.json": (b"HTTP/1.1 503 x\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}",
                          busbar.Unavailable, "status 503"),
        "/graph.dot": (ok % (1 << 40) + b"x" * 1000, busbar.TimedOut, "within 1 s"),
        "/node/x/stop": (b"HTTP/1.1 202 x\r\nLocation: /elsewhere\r\nContent-Length: 0\r\n\r\n", busbar.ProtocolError,
                         "place of a job"),
        "/node/x/start": (None, busbar.TimedOut, "is not known"),
        "/node/x/pause": (b"", busbar.Unreachable, "is not known"),
    }

    def talk(client):
        path = client.head().split()[1].decode()[len("/api/v2"):]
        reply = cases[path][0]
        if reply is None or path == "/graph.dot":
            client.send(reply or b"")
            client.file.read()  # until he leaves
            return
        client.send(reply)

    with server(talk) as port:
        for path, (reply, kind, text) in cases.items():
            slow = path in ("/node/x/start", "/graph.dot")
            g = busbar.Gateway("http://127.0.0.1:%d" % port, timeout=1 if slow else 20)
            call = {"/nodes": g.nodes, "/paths": g.paths, "/status": g.status, "/config": g.config,
                    "/stats": g.stats, "/capabilities": g.capabilities, "/openapi.json": g.openapi,
                    "/graph.dot": g.graph}.get(path)
            fails(kind, text, *((call,) if call else (g._command, path)))
            g.close()


def wrong_socket(folder):
    """Lines of a control socket that are none, and none at all."""
    path = os.path.join(folder, "wrong")
    replies = [(b"{}\n", busbar.ProtocolError, "no status"), (b"x\n", busbar.ProtocolError, "no JSON"),
               (b'{"status": 200, "body": {}, "id": 77}\n', busbar.ProtocolError, "another request"),
               (b'{"status": 503, "body": {"error": "it ends"}}\n', busbar.Unavailable, "it ends"),
               (b"", busbar.Unreachable, "closed the connection"), (None, busbar.TimedOut, "no answer within")]
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(path)
    listener.listen()

    def serve():
        for reply, _, _ in replies:
            with listener.accept()[0] as s:
                s.recv(4096)
                if reply is not None:
                    s.sendall(reply)
                else:
                    s.recv(4096)

    thread = threading.Thread(target=serve)
    thread.start()
    for reply, kind, text in replies:
        with busbar.Gateway(path, timeout=20 if reply is not None else 1) as g:
            fails(kind, text, g.status)
    thread.join(20)
    listener.close()


def wrong_arguments():
    for where, more, text in (("ftp://x", {}, "http://HOST"), ("http://", {}, "http://HOST"), ("", {}, "path"),
                              ("http://h/path", {}, "nothing behind"), ("/x" * 99, {}, "107"),
                              ("http://h", {"ca": "x"}, "https"), ("/x", {"token": "x"}, "http://"),
                              ("http://h", {"token": "x", "token_file": "y"}, "one of them"),
                              ("http://h", {"token": "a b"}, "token"), ("http://h", {"timeout": -1}, "timeout")):
        fails(ValueError, text, busbar.Gateway, where, **more)
    fails(busbar.Error, "/nonexistent", busbar.Gateway, "http://h", token_file="/nonexistent")


with tempfile.TemporaryDirectory() as place:
    wrong_arguments()
    wrong_http()
    wrong_socket(place)
    ways(place)
