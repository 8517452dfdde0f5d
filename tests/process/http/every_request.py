#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Every request that the gateway describes in its openapi.json, over the control socket, HTTP,
and HTTPS with tokens: its answer fits the description; other methods, names, bodies and roles
are refused as busbar-http(7) says. Then every command in every state of a node and of a path.

A request that is described and has no case here is a failure. Environment: BUSBAR, the program.
Exit status 0: good, 1: not, 77: no validator.
"""
import itertools
import json
import os
import re
import shutil
import socket
import subprocess
import ssl
import sys
import tempfile

from http_gateway import BUSBAR, Answer, Gateway, check, until

try:
    import jsonschema
except ImportError:
    print("without python3-jsonschema nothing can be checked")
    sys.exit(77)

ROLES = ("watch", "operate", "configure")
METHODS = ("GET", "POST", "PUT", "DELETE", "PATCH")
LONG = 1 << 20
CONFIG = """
nodes = {
	sig = { type = "signal"; rate = 1000; values = 2; in = { hooks = ( { type = "stats"; } ); }; };
	loop = { type = "loopback"; };
	absent = { type = "socket"; layer = "tcp-client"; in = { address = "127.0.0.1:1"; };
		out = { address = "127.0.0.1:1"; }; };
	off = { type = "loopback"; enabled = false; };
	unused = { type = "loopback"; };
	record = { type = "file"; uri = "%s"; format = "csv"; in = { eof = "stop"; }; };
};
paths = ( { in = "sig"; out = "loop"; }, { in = "loop"; }, { in = "absent"; out = [ ]; },
	{ in = "record"; }, { in = "unused"; enabled = false; } );
stats = 0.0; hugepages = 0; idle_stop = false;
"""
SIG, LOOP, ABSENT, RECORD, DISABLED = range(5)  # the paths


class Local:
    """The control socket, as a client of HTTP."""

    name, role = "socket", None

    def __init__(self, g):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(20)
        self.socket.connect(g.control)
        self.file = self.socket.makefile("rb")

    def ask(self, path, method="GET", body=None, accept=None, raw=None):
        o = {"method": method, "path": path}
        if body is not None:
            o["body"] = body
        self.socket.sendall((raw or json.dumps(o).encode()) + b"\n")
        o = json.loads(self.file.readline())
        body, kind = o["body"], "application/json"
        if o["status"] == 200 and isinstance(body, dict) and set(body) == {"type", "text"}:
            return Answer(200, {"content-type": body["type"]}, body["text"].encode())
        return Answer(o["status"], {"content-type": kind}, json.dumps(body).encode())

    def close(self):
        self.file.close()
        self.socket.close()


class Web:
    """HTTP, or HTTPS with a token."""

    def __init__(self, g, role=None):
        self.g, self.role = g, role
        self.name = "https" if role else "http"
        self.client = g.client()

    def ask(self, path, method="GET", body=None, accept=None, raw=None, role=None):
        headers = {"Accept": accept} if accept else {}
        role = role or self.role
        if role and role != "nobody":
            headers["Authorization"] = "Bearer " + token(role)
        a = self.client.ask("/api/v2" + path, method, raw if raw is not None else body, **headers)
        if a.headers.get("connection") == "close":
            self.client.close()
            self.client = self.g.client()
        return a

    def close(self):
        self.client.close()


def token(role):
    return role + "-0123456789abcdef"


class Description:
    """openapi.json."""

    def __init__(self, document):
        self.document = document
        self.operations = {(m.upper(), path): o for path, item in document["paths"].items()
                           for m, o in item.items()}
        for name, schema in document["components"]["schemas"].items():
            jsonschema.Draft202012Validator.check_schema(schema)
            for ref in re.findall(r"'\$ref': '([^']*)'", str(schema)):
                self.resolve({"$ref": ref})
        for (method, path), o in self.operations.items():
            names = {p["name"] for p in o.get("parameters", []) if p["in"] == "path"}
            check(names == set(re.findall(r"{(\w+)}", path)), "parameters of " + path)
            check(o["x-role"] in ROLES if "x-role" in o else path == "/job/{id}", "role of " + path)

    def resolve(self, o):
        while "$ref" in o:
            at = self.document
            for part in o["$ref"].split("/")[1:]:
                at = at[part]
            o = at
        return o

    def commands(self, path):
        o = self.operations["POST", path]
        return next(p["schema"]["enum"] for p in o["parameters"] if p["name"] == "command")

    def check(self, method, path, a):
        """The answer to a request, of any status."""
        what = "%s %s: %d %s" % (method, path, a.status, a.body[:200])
        responses = self.operations[method, path]["responses"]
        response = self.resolve(responses.get(str(a.status), responses["default"]))
        check(a.status < 400 or response is self.resolve(responses["default"]), what)
        kind = a.headers["content-type"].split(";")[0]
        check(kind in response["content"], "%s: the type %s" % (what, kind))
        schema = response["content"][kind].get("schema")
        if kind != "application/json" or schema is None:
            return
        schema = dict(schema, components=self.document["components"])
        jsonschema.validate(a.json(), schema, jsonschema.Draft202012Validator)
        check(a.status < 400 or a.json()["error"], what)


# For each request what stands for its parameters, and what is to be said about a good answer.
def unchanged(a):
    return "unchanged" in a.json()


CASES = {
    ("GET", "/capabilities"): lambda a, w: "node/start" in a["apis"] and "json" in a["formats"],
    ("GET", "/status"): lambda a, w: a["state"] == "running" and a["system"]["cores"] > 0,
    ("GET", "/config"): lambda a, w: set(a["nodes"]) >= {"sig", "off"},
    ("GET", "/config/text"): lambda a, w: a["file"].endswith(".conf") and not a["given"] and 'type = "signal"; rate' in a["text"],
    ("POST", "/check"): lambda a, w: not a["good"] and [(p["level"], p["line"], p.get("key"))
                                                        for p in a["problems"]] == [("error", 2, "nodse")],
    ("GET", "/log"): lambda a, w: a["last"] == a["lines"][-1]["number"] and "serves requests" in str(a["lines"]),
    ("GET", "/nodes"): lambda a, w: [n["name"] for n in a] == list(NODES),
    ("GET", "/node/{id}"): lambda a, w: a["name"] == "sig" and len(a["in"]["signals"]) == 2 and
    a["rate"] == 1000,
    ("GET", "/node/{id}/stats"): lambda a, w: a["stats"]["received"] >= 0 and "owd" in a,
    ("POST", "/node/{id}/stats/reset"): lambda a, w: a == {},
    ("POST", "/node/{id}/file/rewind"): lambda a, w: a == {},
    ("GET", "/node/{id}/file/rewind"): lambda a, w: a == {},
    ("POST", "/node/{id}/{command}"): lambda a, w: a in ({}, {"unchanged": True}),
    ("GET", "/paths"): lambda a, w: [p["in"] for p in a] == [["sig"], ["loop"], ["absent"], ["record"],
                                                             ["unused"]],
    ("GET", "/path/{id}"): lambda a, w: a["out"] == ["loop"] and a["mode"] == "any",
    ("GET", "/path/{id}/stats"): lambda a, w: a["stats"]["latency"]["count"] >= 0,
    ("POST", "/path/{id}/stats/reset"): lambda a, w: a == {},
    ("POST", "/path/{id}/{command}"): lambda a, w: a in ({}, {"unchanged": True}),
    ("GET", "/stats"): lambda a, w: set(a["nodes"]) == set(NODES) and len(a["paths"]) == 5,
    ("POST", "/stats/reset"): lambda a, w: a == {},
    ("GET", "/metrics"): lambda a, w: "busbar_node_received_samples_total" in a,
    ("GET", "/graph.{format}"): lambda a, w: a.startswith("digraph") and '"sig"' in a,
    ("GET", "/openapi.json"): lambda a, w: a["openapi"].startswith("3.1"),
    ("POST", "/reload"): lambda a, w: not a["stopped"] and not a["failed"],
    ("POST", "/restart"): lambda a, w: a["restarts"] == 1,
    ("POST", "/shutdown"): lambda a, w: a == {},
    ("GET", "/job/{id}"): None,  # HTTP only; jobs()
}
BODIES = {"/check": {"text": "# a comment\nnodse = { };"}}
NODES = ("sig", "loop", "absent", "off", "unused", "record")


def fill(path, id="sig", command="resume", format="dot"):
    return path.replace("{id}", id).replace("{command}", command).replace("{format}", format)


def names(w, method, path):
    """All names of what the request is about."""
    if "{id}" not in path:
        return [""]
    if path.startswith("/path"):
        uuid = w.ask("/path/0").json()["uuid"]
        return ["0", uuid, uuid.upper(), "sig%20-%3E%20loop"]
    name = "record" if "rewind" in path else "sig"
    uuid = w.ask("/node/" + name).json()["uuid"]
    return [name, uuid, uuid.upper()]


def good_answers(w, d):
    check(set(CASES) == set(d.operations), "requests without a case, and cases without a request: %s"
          % sorted(set(CASES) ^ set(d.operations)))
    for (method, path), good in CASES.items():
        if not good or path in ("/restart", "/shutdown"):
            continue
        commands = d.commands(path) if "{command}" in path else [""]
        for name, command in itertools.product(names(w, method, path), commands):
            url = fill(path, name, command)
            if command:
                settle(w)
            a = w.ask(url, method, BODIES.get(path))
            check(a.status == 200, "%s: %s %s: %d %s" % (w.name, method, url, a.status, a.body[:300]))
            d.check(method, path, a)
            body = a.json() if a.headers["content-type"] == "application/json" else a.body.decode()
            check(good(body, w), "%s: %s %s: %s" % (w.name, method, url, a.body[:300]))
        settle(w)


def settle(w):
    for name in ("sig", "loop", "absent", "record"):
        w.ask("/node/%s/start" % name, "POST")
        w.ask("/node/%s/resume" % name, "POST")
    for number in range(4):
        w.ask("/path/%d/start" % number, "POST")
        w.ask("/path/%d/resume" % number, "POST")


def other_methods(w, d):
    for path in {p for _, p in d.operations}:
        if path == "/job/{id}" and w.name == "socket":
            continue
        there = {m for m, p in d.operations if p == path}
        for command in d.commands(path) if "{command}" in path else [""]:
            url = fill(path, "0" if path.startswith("/path") else "sig", command)
            for method in set(METHODS) - there:
                a = w.ask(url, method)
                check(a.status == 405 and a.json()["error"],
                      "%s: %s %s: %d %s" % (w.name, method, url, a.status, a.body))
                if w.name != "socket":
                    wanted = there | {"OPTIONS"} | ({"HEAD"} if "GET" in there else set())
                    allow = a.headers["allow"].split(", ")
                    check(set(allow) == wanted and len(allow) == len(wanted),
                          "%s %s: Allow: %s" % (method, url, a.headers["allow"]))
            if w.name != "socket" and there == {"GET"} and path not in ("/job/{id}", "/shutdown"):
                a, b = w.ask(url, "HEAD"), w.ask(url)
                check(a.status == b.status == 200 and not a.body and
                      a.headers["content-type"] == b.headers["content-type"] and
                      int(a.headers["content-length"]) > 0, "HEAD " + url)


def wrong_names(w, d):
    wrong = ("none", "00000000-0000-0000-0000-000000000000", "99", "-1", "%FF", "%00", "sig%2F", "..",
             "s", "sigg", "x" * 200)
    for (method, path), o in d.operations.items():
        if "{id}" not in path or (path == "/job/{id}" and w.name == "socket"):
            continue
        for name in wrong:
            url = fill(path, name)
            a = w.ask(url, method)
            check(a.status == 404 and a.json()["error"],
                  "%s: %s %s: %d %s" % (w.name, method, url, a.status, a.body))
            d.check(method, path, a)
    for kind in ("node/sig", "path/0"):
        a = w.ask("/%s/explode" % kind, "POST")
        check(a.status == 404 and "start, stop" in a.json()["error"], "no command: %s" % a.body)
    for format in ("bmp", "", "dot.gz", "%ff"):
        check(w.ask("/graph." + format).status == 404, "a graph as " + format)
    for layout, status in (("none", 400), ("%00", 400), ("x" * 500, 400), ("dot", 200)):
        check(w.ask("/graph.dot?layout=" + layout).status == status, "the layout " + layout)


def bodies(w, d):
    """What is no object is 400, whatever is asked; a configuration with errors is 422."""
    posts = [(p, o) for (m, p), o in d.operations.items() if m == "POST"]
    for path, o in posts:
        url = fill(path, "0" if path.startswith("/path") else "sig")
        for body in ([], "text", 7, True):
            a = w.ask(url, "POST", body)
            check(a.status == 400 and a.json()["error"],
                  "%s: %s with %s: %d %s" % (w.name, url, body, a.status, a.body))
        if w.name != "socket":
            a = w.ask(url, "POST", raw=b" " * (LONG + 1))
            check(a.status == 413 and a.json()["error"], "%s: a long body: %d" % (url, a.status))
            a = w.ask(url, "POST", raw=b"{")
            check(a.status == 400, "%s: half an object: %d" % (url, a.status))
        if path == "/check":
            for body in ({}, {"text": 7}, {"text": None}, {"config": "nodes = { };"}):
                a = w.ask(url, "POST", body)
                check(a.status == 400, "%s: %s with %s: %d" % (w.name, url, body, a.status))
        if "requestBody" not in o or path == "/check":
            continue
        for body, status in (({"config": 7}, 400), ({"config": []}, 400), ({"config": None}, 400),
                             ({"config": {"nodes": {"x": {"type": "none"}}, "nodse": 1}}, 422),
                             ({"config": {"nodes": 3}}, 422), ({"config": "/nonexistent"}, 422),
                             ({"config": "https://lab.example/x"}, 501)):
            before = w.ask("/config").json()
            a = w.ask(url, "POST", body)
            check(a.status == status, "%s: %s with %s: %d %s" % (w.name, url, body, a.status, a.body))
            d.check("POST", path, a)
            check(status != 422 or a.json()["errors"], "%s: all errors: %s" % (url, a.body))
            check(w.ask("/config").json() == before, "nothing has changed")
        for body, status in (({"text": 7}, 400), ({"text": "", "config": {}}, 400),
                             ({"text": "# a comment\nnodse = { };"}, 422)) if path == "/reload" else ():
            a = w.ask(url, "POST", body)
            check(a.status == status, "%s: %s with %s: %d %s" % (w.name, url, body, a.status, a.body))
            d.check("POST", path, a)
            check(status != 422 or ".conf:2: " in a.json()["errors"][0], "the line in the text: %s" % a.body)
    if w.name == "socket":
        try:
            w.socket.sendall(b"x" * (LONG + (64 << 10)))
        except ConnectionError:
            pass  # it is not read to its end
        check(json.loads(w.file.readline())["status"] == 413, "a long line")
        try:
            check(w.file.readline() == b"", "and the connection ends")
        except ConnectionError:
            pass
        w.__init__(w.g)
        for raw in (b"{", b"[]", b"{}", b'{"path": 7}', b'{"path": "/status", "method": 1}', b"\xff",
                    b'{"path": "/status", "path": "/nodes"}', b"[" * 5000, b'{"path": "' + b"x" * 2000 + b'"}'):
            a = w.ask("", raw=raw)
            check(a.status == (404 if b"xx" in raw else 400) and a.json()["error"],
                  "%r: %d %s" % (raw[:40], a.status, a.body))


def roles(w, d):
    """401 without a token, 403 with one of a lesser role, and nothing happens."""
    for (method, path), o in d.operations.items():
        needed = ROLES.index(o.get("x-role", "watch"))
        url = fill(path, "0" if path.startswith("/path") else "sig", "stop")
        for role in ("nobody",) + ROLES[:needed]:
            a = w.ask(url, method, role=role)
            wanted = 401 if role == "nobody" else 403
            check(a.status == wanted, "%s %s as %s: %d" % (method, url, role, a.status))
            check(wanted == 403 or a.headers["www-authenticate"].startswith("Bearer"), "how to ask")
            d.check(method, path, a)
    check(w.ask("/node/sig").json()["state"] == "started", "none was obeyed")


def jobs(w, d):
    """Every command can be a job."""
    for (method, path), o in d.operations.items():
        if o.get("x-role", "watch") == "watch" or path in ("/restart", "/shutdown"):
            continue
        check("202" in o["responses"], "a job of " + path)
        url = fill(path, "0" if path.startswith("/path") else "record" if "rewind" in path else "sig")
        headers = {"Prefer": "respond-async"}
        if w.role:
            headers["Authorization"] = "Bearer " + token(w.role)
        a = w.client.ask("/api/v2" + url, method, BODIES.get(path), **headers)
        check(a.status == 202, "%s %s: %d" % (method, url, a.status))
        d.check(method, path, a)
        place = a.headers["location"]
        check(place == "/api/v2/job/" + a.json()["id"], "its place")

        def done():
            a = w.ask(place[len("/api/v2"):])
            check(a.status == 200, "a job")
            d.check("GET", "/job/{id}", a)
            return a.json()["state"] == "done" and a.json()

        until(done, "the job is done")
        check(done()["status"] == 200, "%s: %s" % (url, done()))


# What each command gives in each state, and the state that follows: "u" is 200 with unchanged.
COMMANDS = ("start", "stop", "pause", "resume", "restart")
NODE_STATES = {
    # name, and the commands that lead there from anywhere
    "started": ("sig", ("start", "resume"),
                (("u", "started"), (200, "stopped"), (200, "paused"), ("u", "started"), (200, "started"))),
    "stopped": ("sig", ("stop",),
                ((200, "started"), ("u", "stopped"), (409, "stopped"), (409, "stopped"), (200, "started"))),
    "paused": ("sig", ("start", "pause"),
               (("u", "paused"), (200, "stopped"), ("u", "paused"), (200, "started"), (200, "started"))),
    "pending-connect": ("absent", ("start", "resume"),
                        (("u", "pending-connect"), (200, "stopped"), (200, "paused"),
                         ("u", "pending-connect"), (200, "pending-connect"))),
    "disabled": ("off", (), ((409, "disabled"), ("u", "disabled"), (409, "disabled"), (409, "disabled"),
                             (409, "disabled"))),
    "checked": ("unused", (), ((409, "checked"), ("u", "checked"), (409, "checked"), (409, "checked"),
                               (409, "checked"))),
}
PATH_STATES = {
    "running": (SIG, ("start", "resume"),
                (("u", "running"), (200, "stopped"), (200, "paused"), ("u", "running"), (200, "running"))),
    "stopped": (SIG, ("stop",),
                ((200, "running"), ("u", "stopped"), (409, "stopped"), (409, "stopped"), (200, "running"))),
    "paused": (SIG, ("start", "pause"),
               (("u", "paused"), (200, "stopped"), ("u", "paused"), (200, "running"), (200, "running"))),
    "disabled": (DISABLED, (), ((409, "disabled"), ("u", "disabled"), (409, "disabled"),
                                (409, "disabled"), (409, "disabled"))),
}
# A path whose source does not deliver obeys as a running one does.
for number, state in ((LOOP, "waiting"), (RECORD, "ended")):
    PATH_STATES[state] = (number, ("start", "resume"),
                          (("u", state), (200, "stopped"), (200, "paused"), ("u", state), (200, state)))


def commands_in_states(w, d, kind, states):
    form = "/%s/{id}/{command}" % kind
    check(set(d.commands(form)) == set(COMMANDS), "commands: %s" % d.commands(form))

    def state_is(name, state):
        return w.ask("/%s/%s" % (kind, name)).json()["state"] == state

    for state, (name, way, row) in states.items():
        url = "/%s/%s/" % (kind, name)
        for command, (status, after) in zip(COMMANDS, row):
            for step in way:
                w.ask(url + step, "POST")
            what = "%s: %s of a %s that is %s" % (w.name, command, kind, state)
            until(lambda: state_is(name, state), what)
            a = w.ask(url + command, "POST")
            check(a.status == (200 if status == "u" else status), "%s: %d %s" % (what, a.status, a.body))
            check(unchanged(a) == (status == "u") if a.status == 200 else
                  state in a.json()["error"], "%s: %s" % (what, a.body))
            d.check("POST", form, a)
            until(lambda: state_is(name, after), "%s: then it is %s" % (what, after))
            # What is no command goes in any state.
            for method, path in (("GET", ""), ("GET", "/stats"), ("POST", "/stats/reset")):
                a = w.ask(url[:-1] + path, method)
                check(a.status == 200, "%s: then %s %s: %d" % (what, method, path, a.status))
                d.check(method, "/%s/{id}%s" % (kind, path), a)
        for step in way:
            w.ask(url + step, "POST")


def rewinds(w, d):
    for method in ("GET", "POST"):
        for name, step, status in (("record", "start", 200), ("record", "pause", 200), ("sig", "start", 501),
                                   ("record", "stop", 409), ("off", None, 501)):
            if step:
                w.ask("/node/%s/%s" % (name, step), "POST")
            a = w.ask("/node/%s/file/rewind" % name, method)
            check(a.status == status, "%s: %s rewind of %s after %s: %d %s" % (
                w.name, method, name, step, a.status, a.body))
            d.check(method, "/node/{id}/file/rewind", a)
        settle(w)


def states(w, d):
    settle(w)
    commands_in_states(w, d, "node", NODE_STATES)
    settle(w)
    w.ask("/node/loop/stop", "POST")  # its path waits
    commands_in_states(w, d, "path", PATH_STATES)
    settle(w)
    rewinds(w, d)


def ends(w, d, g):
    count = g.said().count(" is running")
    a = w.ask("/restart", "POST")
    check(a.status == 200 and CASES["POST", "/restart"](a.json(), w), "a restart: %s" % a.body)
    d.check("POST", "/restart", a)
    w.close()
    until(lambda: g.said().count(" is running") > count, "it runs again")
    g.listens()
    w.__init__(g, *([w.role] if w.role else []))
    check(w.ask("/status").json()["state"] == "running", "and answers")
    a = w.ask("/shutdown", "POST")
    check(a.status == 200 and a.json() == {}, "shutdown: %s" % a.body)
    d.check("POST", "/shutdown", a)
    w.close()
    check(g.process.wait(30) == 0, "it ends")


def way_of(g, kind):
    if kind == "socket":
        w = Local(g)
        w.g = g
        return w
    return Web(g, "configure" if kind == "https" else None)


def make_gateway(folder, kind):
    record = os.path.join(folder, "record.csv")
    with open(record, "w") as f:
        f.write("1,500000000,0,0,1.0\n")
    http, context = "", None
    if kind == "https":
        pair = os.path.join(folder, "pair")
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
                        "ec_paramgen_curve:prime256v1", "-nodes", "-subj", "/CN=localhost", "-addext",
                        "subjectAltName=DNS:localhost", "-days", "2", "-keyout", pair + ".key", "-out",
                        pair + ".crt"], check=True, capture_output=True, timeout=60)
        context = ssl.create_default_context(cafile=pair + ".crt")
        path = os.path.join(folder, "tokens")
        with open(path, "w") as f:
            f.writelines("%s %s\n" % (role, token(role)) for role in ROLES)
        os.chmod(path, 0o600)
        http = 'http = { ssl_cert = "%s.crt"; ssl_private_key = "%s.key"; token_file = "%s"; };' % (
            pair, pair, path)
    return Gateway(folder, CONFIG % record, http=http, context=context)


def run(kind):
    with tempfile.TemporaryDirectory() as folder, make_gateway(folder, kind) as g:
        until(lambda: "is running" in g.said(), "it runs")
        w = way_of(g, kind)
        a = w.ask("/openapi.json")
        d = Description(a.json())
        until(lambda: "owd" in w.ask("/node/sig/stats").json(), "figures")
        parts = [good_answers, other_methods, wrong_names, bodies, states]
        if kind == "https":
            parts.append(roles)
        if kind != "socket":
            parts.append(jobs)
        for part in parts:
            part(w, d)
        ends(w, d, g)


def without_configuration():
    """Nothing is there, and each request says so."""
    with tempfile.TemporaryDirectory() as folder, Gateway(folder, config=None) as g:
        for w in (Local(g), Web(g)):
            d = Description(w.ask("/openapi.json").json())
            for method, path in d.operations:
                if path in ("/restart", "/shutdown") or (path == "/job/{id}" and w.name == "socket"):
                    continue
                a = w.ask(fill(path), method, {"config": {}} if path == "/reload" else BODIES.get(path))
                check(a.status == (404 if "{id}" in path else 200),
                      "%s: %s %s: %d %s" % (w.name, method, path, a.status, a.body))
                d.check(method, path, a)
            w.close()


def has_tls():
    version = subprocess.run([BUSBAR, "version"], capture_output=True, text=True, timeout=30).stdout
    return shutil.which("openssl") and "HTTPS" not in version


for way in ("socket", "http", "https"):
    if way == "https" and not has_tls():
        print("without TLS")
        continue
    run(way)
without_configuration()
