#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Each request is answered over HTTP as over the control socket, and as the description
that the gateway gives of itself says.

Environment: BUSBAR, the program. Exit status 0: good, 1: not.
"""
import gzip
import json
import re
import shutil
import socket
import subprocess
import tempfile

from http_gateway import Client, Gateway, check, until

try:
    import jsonschema
except ImportError:
    jsonschema = None

# What differs from one moment to the next.
MOVES = {"time_now", "system", "seconds", "offset_ns", "uncertainty_ns"}


def still(o):
    """Without what moves, and with counters that stand, as the nodes are paused."""
    if isinstance(o, dict):
        return {k: still(v) for k, v in o.items() if k not in MOVES and k != "clock"}
    return [still(v) for v in o] if isinstance(o, list) else o


class Socket:
    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.connect(path)
        self.socket.settimeout(20)
        self.file = self.socket.makefile("r")

    def ask(self, method, path, body=None):
        self.socket.sendall(json.dumps({"method": method, "path": path, "body": body}).encode() + b"\n")
        o = json.loads(self.file.readline())
        return o["status"], o["body"]


def requests(http):
    uuid = http.ask("/api/v2/node/sig").json()["uuid"]
    path = http.ask("/api/v2/path/0").json()["uuid"]
    yield from (("GET", p) for p in (
        "/capabilities", "/status", "/config", "/config/text", "/log?after=x", "/log?after=-1", "/nodes", "/node/sig", "/node/" + uuid,
        "/node/sig/stats", "/paths", "/path/0", "/path/" + path, "/path/sig%20-%3E%20loop",
        "/path/1/stats", "/stats", "/openapi.json", "/graph.dot",
        "/node/none", "/path/9", "/nothing", "/node/sig/file/rewind", "/graph.bmp", "/graph.%C3%A4%C3%A4", "/node/%FF",
        "/graph.svg?layout=x", "/node/a/b/c/d/e", "//node//sig", "/%2e%2e/etc/passwd"))
    for kind, name in (("node", "sig"), ("path", "0")):
        for verb in ("resume", "resume", "stop", "start", "restart", "pause", "explode", "stats/reset"):
            yield "POST", "/%s/%s/%s" % (kind, name, verb)
    yield from (("POST", p) for p in ("/stats/reset", "/node/none/stop", "/node/sig/file/rewind",
                                      "/reload", "/nodes"))
    yield "POST", "/check", {"text": "nodes = { a = { type = \"none\"; }; };\n\npaths = ( { in = \"b\" } "}
    yield "POST", "/check", {"text": 5}
    yield from (("POST", "/reload", b) for b in (
        {"config": 7}, {"config": "/nonexistent"}, {"config": "http://host/x"}, {"config": "file:///%ff"}, {"config": "file:///%0"},
        {"config": "file:///nonexistent%20x"}, {"config": {"nodse": {}}}))


def same_answers(g):
    """On both ways; commands are given twice, each time from the same state."""
    s = Socket(g.control)
    with g.client() as http:
        until(lambda: "buckets" in json.dumps(http.ask("/api/v2/node/sig/stats").json()), "figures")
        seen = 0
        for request in requests(http):
            method, path = request[:2]
            body = request[2] if len(request) > 2 else None
            for c in ("/node/sig/pause", "/path/0/pause", "/path/1/pause"):
                s.ask("POST", c)
            status, expected = s.ask(method, path, body)
            for c in ("/node/sig/start", "/path/0/start", "/node/sig/pause", "/path/0/pause"):
                s.ask("POST", c)
            a = http.ask("/api/v2" + path, method, body)
            check(a.status == status, "%s %s: %d by HTTP, %d by the socket" % (method, path, a.status, status))
            if a.headers["content-type"] == "application/json":
                got = a.json()
                if status >= 400:
                    check("error" in got, "%s tells its error: %s" % (path, got))
                if method == "GET" or status >= 400:
                    a, b = still(got), still(expected)
                    if status in (404, 405) and "errors" not in got:
                        a.pop("error"), b.pop("error")
                    check(a == b, "%s:\n%s\n%s" % (path, a, b))
            else:
                check(a.body.decode() == expected["text"], "the same text of " + path)
            seen += 1
        check(seen > 45, "requests")


def statuses(g):
    with g.client() as c:
        for path in ("/api/v2/nodes", "/api/v2/node/sig"):
            a = c.ask(path, "PUT", {})
            check(a.status == 405 and "GET" in a.headers["allow"], "405 with Allow")
            c = g.client()
        a = c.ask("/api/v2/node/sig/stop")
        check(a.status == 405 and a.headers["allow"] == "POST, OPTIONS", "405 of a command")
        a = c.ask("/api/v2/nodes", "HEAD")
        check(a.status == 200 and int(a.headers["content-length"]) > 100 and not a.body, "HEAD")
        check(c.ask("/api/v2/nothing", "HEAD").status == 404, "HEAD of nothing")
        a = c.ask("/api/v2/nodes", "OPTIONS")
        check(a.status == 204 and "POST" in a.headers["allow"], "OPTIONS")
        a = c.ask("/")
        check(a.status == 200 and a.headers["content-type"].startswith("text/html"), "the page")
        policy = a.headers["content-security-policy"]
        check("default-src 'none'" in policy and "unsafe" not in policy, "its policy: " + policy)
        page = gzip.decompress(a.body).decode()
        check("http:" not in page.replace("http://www.w3.org/2000/svg", ""), "nothing from elsewhere")
        a = c.ask("/", If_None_Match=a.headers["etag"])
        check(a.status == 304 and not a.body, "the page is known")
        check(c.ask("/page.js").headers["content-encoding"] == "gzip", "its program")
        check(c.ask("/none.js").status == 404, "no other file")
        check(c.ask("/api/v1/nodes").status == 404, "another version")
        check(c.ask("/api/v2/config", Accept="text/x-libconfig").body.startswith(b"nodes = {"), "libconfig")
        check(c.ask("/api/v2/config", Accept="text/x-libconfig;q=0.1, */*").json()["nodes"], "JSON")
        drawn = shutil.which("dot")
        a = c.ask("/api/v2/graph.svg")
        check(a.status == (200 if drawn else 501), "a graph: %d" % a.status)
        check(not drawn or (b"<svg" in a.body and a.headers["content-type"] == "image/svg+xml"), "SVG")
        a = c.ask("/api/v2/graph.png")
        check(not drawn or a.body.startswith(b"\x89PNG"), "PNG")
    for body, type_, status in ((b"{", "application/json", 400), (b"[]", "application/json", 400),
                                (b"\"\xff\"", "application/json", 400),
                                (b'{"a":1,"a":2}', "application/json", 400),
                                (b"x=1", "application/x-www-form-urlencoded", 415),
                                (b"[]", "application/x-www-form-urlencoded", 415),
                                (b"", "application/x-www-form-urlencoded", 200),
                                (b"{}", "application/x-www-form-urlencoded", 200),
                                (b" {}", "application/x-www-form-urlencoded; charset=utf-8", 200),
                                (b"{}", "multipart/form-data", 415),
                                (b"{}", "text/plain", 415)):
        a = g.ask("/api/v2/reload", "POST", body, Content_Type=type_)
        check(a.status == status and ("error" in a.json()) == (status != 200), "%r %s: %d" % (body, type_, a.status))
    with g.client() as c:
        c.send(b"POST /api/v2/node/sig/resume HTTP/1.1\r\nHost: localhost\r\n\r\n")
        check(c.answer().status == 200, "a command without a length has no body")
        check(c.ask("/api/v2/nodes").status == 200, "and the connection goes on")
        c.send(b"POST /api/v2/node/sig/resume HTTP/1.1\r\nHost: localhost\r\n"
               b"Content-Type: application/json\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n")
        check(c.file.readline() == b"HTTP/1.1 100 Continue\r\n" and c.file.readline() == b"\r\n", "100")
        c.send(b"{}")
        check(c.answer().status == 200, "a body that was asked for")
        c.send(b"GET /api/v2/status HTTP/1.0\r\n\r\n")
        a = c.answer()
        check(a.status == 200 and a.headers["connection"] == "close" and c.is_closed(), "HTTP/1.0")


def command_line(g):
    """busbar ctl says the same over both ways, and ends with the same status."""
    url = "http://127.0.0.1:%d" % g.port
    for words, status in ((("status",), 0), (("capabilities",), 0), (("config",), 0), (("nodes",), 0),
                          (("paths",), 0), (("node", "sig"), 0), (("node", "sig", "stats"), 0),
                          (("path", "sig -> loop"), 0), (("GET", "/path/sig -> loop/stats"), 0),
                          (("GET", "/openapi.json"), 0), (("GET", "/graph.dot"), 0),
                          (("node", "none"), 1), (("node", "none", "stop"), 1),
                          (("POST", "/nothing"), 1), (("POST", "/reload", "[]"), 1), (("nonsense",), 2)):
        one = g.ctl(*words, status=status)
        two = g.ctl(*words, status=status, at="--url=" + url)
        check(words[0] == "POST" or still(one) == still(two), "%s:\n%s\n%s" % (words, one, two))
    g.ctl("node", "sig", "pause", at="--url=%s/" % url)
    check(g.ask("/api/v2/node/sig").json()["state"] == "paused", "a command")
    g.ctl("node", "sig", "resume", at="--url=" + url)
    check(g.ctl("reload", g.file, at="--url=" + url)["kept"], "a file")
    check(g.ctl("stats-reset", at="--url=" + url) == {}, "a reset")
    for wrong in ("http://127.0.0.1:1", "http://127.0.0.1:%d" % 65536, "ftp://x", "http://", "x",
                  "http://127.0.0.1:8x", "http://[::1", "http://h/path"):
        check(g.ctl("nodes", status=1, at="--url=" + wrong) is None, wrong)


def jobs(g):
    a = g.ask("/api/v2/reload", "POST", {}, Prefer="respond-async")
    check(a.status == 202 and a.headers["location"].startswith("/api/v2/job/"), "a job: %d" % a.status)
    place = a.headers["location"]
    until(lambda: g.ask(place).json()["state"] == "done", "the job is done")
    o = g.ask(place).json()
    check(o["status"] == 200 and "kept" in o["body"], "how it ended: %s" % o)
    for wrong in ("/api/v2/job/999", "/api/v2/job/0", "/api/v2/job/x", "/api/v2/job/"):
        check(g.ask(wrong).status == 404, wrong)


def metrics(g):
    for command in ("/node/sig/start", "/node/sig/resume", "/path/0/start", "/path/0/resume"):
        g.ask("/api/v2" + command, "POST")
    until(lambda: b"one_way_delay_seconds_bucket" in g.ask("/metrics").body, "delays")
    with g.client() as c:
        plain, other = c.ask("/metrics"), c.ask("/api/v2/metrics", Accept="application/openmetrics-text")
    check(plain.headers["content-type"].startswith("text/plain; version=0.0.4"), "type")
    check(other.headers["content-type"].startswith("application/openmetrics-text"), "the other type")
    text = plain.body.decode()
    check(other.body.endswith(b"\n# EOF\n") and "# EOF" not in text, "the end")
    types = re.findall(r"^# TYPE (\S+) (\S+)$", text, re.M)
    check(len(types) == len(set(t[0] for t in types)) > 30, "each family once")
    line = re.compile(r'[a-z_]+(\{[a-z]+="([^"\\\n]|\\.)*"(,[a-z]+="([^"\\\n]|\\.)*")*\})? (\d[0-9.e+-]*)')
    for l in text.splitlines():
        check(l.startswith("# ") or line.fullmatch(l), l)
    # Histograms: rising, and +Inf is the count.
    for name in ("busbar_path_latency_seconds", "busbar_node_one_way_delay_seconds"):
        rows = re.findall(r'^%s_bucket\{(.*),le="(.*)"\} (\d+)$' % name, text, re.M)
        check(rows, name)
        for labels in {r[0] for r in rows}:
            counts = [int(r[2]) for r in rows if r[0] == labels]
            bounds = [float(r[1]) for r in rows if r[0] == labels]
            check(counts == sorted(counts) and bounds == sorted(bounds), "rising rows of " + name)
            check(bounds[-1] == float("inf"), "the last row")
            count = re.search(r"^%s_count\{%s\} (\d+)$" % (name, re.escape(labels)), text, re.M)
            check(not count or int(count.group(1)) == counts[-1], "the count of " + name)
    if shutil.which("promtool"):
        p = subprocess.run(["promtool", "check", "metrics"], input=plain.body, capture_output=True, timeout=30)
        check(p.returncode == 0, "promtool: %s" % p.stderr)
    try:
        from prometheus_client.parser import text_string_to_metric_families as parse
        from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_open
    except ImportError:
        print("without the parsers of prometheus_client")
        return
    check(len(list(parse(text))) > 30, "families")
    check({f.name for f in parse_open(other.body.decode())} >= {"busbar_node_received_samples"}, "families")


def resolve(schema, root):
    """References within the description, for a validator that has only the schema."""
    return dict(schema, components=root["components"])


def description(g):
    o = g.ask("/api/v2/openapi.json").json()
    check(o["openapi"].startswith("3.1"), "the version")
    operations = {(m, p): op for p, item in o["paths"].items() for m, op in item.items()}
    check(len(operations) >= 24, "operations: %d" % len(operations))
    check(len({op["operationId"] for op in operations.values()}) == len(operations), "identifiers")
    for (_, path), op in operations.items():
        names = {p["name"] for p in op.get("parameters", []) if p["in"] == "path"}
        check(names == set(re.findall(r"{(\w+)}", path)), "parameters of " + path)
    if not jsonschema:
        print("without jsonschema: answers are not checked")
        return
    with g.client() as c:
        for (method, path), op in operations.items():
            if path in ("/shutdown", "/restart", "/job/{id}"):
                continue
            url = path.replace("{format}", "dot").replace("{command}", "resume")
            url = url.replace("{id}", "0" if path.startswith("/path/") else "sig")
            a = c.ask("/api/v2" + url, method.upper())
            status = str(a.status) if str(a.status) in op["responses"] else "default"
            response = op["responses"][status]
            if "$ref" in response:
                response = o["components"]["responses"][response["$ref"].split("/")[-1]]
            kind = a.headers["content-type"].split(";")[0]
            check(kind in response["content"], "%s %s gives %s" % (method, url, kind))
            if kind == "application/json":
                schema = resolve(response["content"][kind]["schema"], o)
                jsonschema.validate(a.json(), schema, jsonschema.Draft202012Validator)
    try:
        import openapi_spec_validator
        openapi_spec_validator.validate(o)
    except ImportError:
        print("without openapi_spec_validator")


with tempfile.TemporaryDirectory() as folder:
    with Gateway(folder) as gateway:
        same_answers(gateway)
        statuses(gateway)
        command_line(gateway)
        jobs(gateway)
        metrics(gateway)
        description(gateway)
