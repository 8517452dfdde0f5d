#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The node-type ngsi with a double of a context broker (ngsi_double.py). Arguments: v2 or ld, then
scenarios (servers.py, and those below)."""
import http.server
import json
import os
import sys
import threading
import time

import servers
from gateway_process import Gateway, check
from servers import until, whole_lines


class Ngsi(servers.Kind):
    name = "ngsi"
    program = "python3"
    port = 1026
    rate = 100
    api = "v2"
    header = "x-auth-token"
    refusal = "401"
    entity = "Gateway:%s"

    def argv(self, tls, password):
        return [sys.executable, os.path.join(os.path.dirname(os.path.abspath(__file__)), "ngsi_double.py"),
                str(self.port), self.file()] + (["--tls", self.folder] if tls else []) + (
                    ["--token", password] if password else [])

    def file(self):
        return os.path.join(self.folder, "record")

    def record(self, channel="account", what="update"):
        """Changes of an entity that the broker has taken."""
        with open(self.file()) as f:
            rows = [json.loads(line) for line in whole_lines(f) if line.endswith("\n")]
        return [r for r in rows if r["id"] == self.entity % channel and r["op"] == what]

    def node(self, direction, channel, form, tls=None, password=None):
        text = 'endpoint = "http%s://%s:%d/"; api = "%s"; entity_id = "%s"; entity_type = "Gateway"; ' % (
            "s" if tls else "", "localhost" if tls else self.host, self.port, self.api, self.entity % channel)
        text += 'timeout = 5.0; rate = 200.0; reconnect_interval = 100; '
        if tls:
            text += 'ssl = { ca = "%s"; }; ' % tls
        if password:
            text += 'access_token_file = "%s"; token_header = "%s"; ' % (password, self.header)
        if direction == "in":
            # So that the reader finds it before there is a writer.
            return text + 'create = true; in = { changed_only = true; signals = ( { name = "counter"; type = "float"; }, { name = "b"; ngsi_attribute_name = "counter1"; type = "float"; } ); };'
        return text + "out = { };"


class Ld(Ngsi):
    api = "ld"
    header = "bearer"
    entity = "urn:ngsi-ld:Gateway:%s"


class Pair(servers.Pair):
    def has_arrived(self):
        """The last one: polls do not meet all of them."""
        return self.got()[-1:] == self.rows(self.sent_file)[-1:]

    def account(self, strict=False):
        """By the record of the broker; the reader sees what its polls meet."""
        self.settle()
        wrote, got, record = self.rows(self.sent_file), self.got(), self.kind.record()
        sequence = [r["attrs"]["counter"]["metadata" if self.kind.api == "v2" else "sequence"] for r in record]
        sequence = [(s["sequence"] if self.kind.api == "v2" else s)["value"] for s in sequence]
        for r in record:
            check(r["attrs"]["counter"]["value"] == r["attrs"]["counter1"]["value"], "values of one sample: %s" % r)
        w, r = self.stats(self.writer), self.stats(self.reader)
        lost = sum(w["losses"].values())
        missing, twice = len(set(wrote) - set(sequence)), len(sequence) - len(set(sequence))
        what = "wrote %d, broker %d, missing %d, twice %d, reader %d, writer %s %s, reader %s" % (
            len(wrote), len(sequence), missing, twice, len(got), w["losses"], w["figures"], r)
        check(len(wrote) == w["sent"] + w["not_sent"], "all were given to the node: " + what)
        check(not set(sequence) - set(wrote), "nothing arrives that was not sent: " + what)
        check(missing <= lost, "those that are missing are counted as lost: " + what)
        check(twice <= w["figures"]["repeated"], "those that arrive twice are counted: " + what)
        check(not set(got) - set(sequence) and len(got) == len(set(got)), "the reader has them once: " + what)
        check(got[-1] == sequence[-1], "and the last one: " + what)
        # Steps that the generator left out are no samples.
        seen = [s for s in set(sequence) if s >= got[0]]
        check(len(seen) <= len(got) + r["lost"], "what polls have not met is counted: " + what)
        check(r["figures"]["malformed"] == 0, "all could be read: " + what)
        return missing, twice, what


# The scenarios of servers.py make pairs.
servers.Pair = Pair


def exchange(kind):
    """All types, metadata, headers, and the life of the entity."""
    kind.start()
    v2 = kind.api == "v2"
    rows = os.path.join(kind.folder, "rows.csv")
    with open(rows, "w") as f:
        for i in range(20):
            f.write("%d,%d,0.0,%d,%r,%d,%d,1.5-2.5i,%d\n" % (1700000000 + i, 123456000 + i * 1000, i, i * 0.25, -i, i % 2, i))
        f.write("1700000020,0,0.0,20,nan,7,1,0+0i,7\n")
    types = [("u", "float"), ("n", "integer"), ("on", "boolean"), ("z", "complex"), ("t", "float")]
    signals = ", ".join('{ name = "%s"; type = "%s"; }' % t for t in types)
    more = 'ngsi_metadatas = ( { name = "unit"; type = "Text"; value = "V\\"x"; }, { name = "k"; value = 3; } );'
    names = ", ".join('{ name = "%s"; type = "%s"; %s }' % (
        n, t, more + ' ngsi_attribute_name = "voltage";' if n == "u" else
        'ngsi_attribute_type = "Text";' if n == "t" and v2 else "") for n, t in types)
    head = ('tenant = "lab"; service_path = "/a";' if v2 else
            'tenant = "lab"; context = "https://example.org/context.jsonld";')
    write = kind.node("out", "all", "json").replace("out = { };", "%s delete = true; out = { signals = ( %s ); };" % (head, names))
    read = kind.node("in", "all", "json").replace("create = true; ", "")
    read = read[:read.index("in = {")] + head + " in = { changed_only = true; signals = ( %s ); };" % names
    reader = Gateway(kind.folder, "reader", """
nodes = { x = { type = "ngsi"; %s }; f = { type = "file"; uri = "%s/got.csv"; format = "csv"; out = { flush = true; }; }; };
paths = ( { in = "x"; out = "f"; } );
""" % (read, kind.folder))
    until(lambda: "does not exist" in open(reader.log).read(), "no entity is there", 20)
    writer = Gateway(kind.folder, "writer", """
nodes = {
	r = { type = "file"; uri = "%s"; format = "csv"; in = { eof = "wait"; epoch_mode = "original"; rate = 20.0; signals = ( %s ); }; };
	x = { type = "ngsi"; %s };
};
paths = ( { in = "r"; out = "x"; } );
""" % (rows, signals, write))
    until(lambda: writer.ask("/node/x")["stats"]["figures"]["confirmed"] == 21,
          lambda: "all are confirmed: %s %s" % (writer.ask("/node/x"), open(writer.log).read()), 20)

    def got():
        with open(kind.folder + "/got.csv") as f:
            return [line.rstrip("\n").split(",") for line in whole_lines(f) if line[0] != "#" and line.endswith("\n")]
    until(lambda: got() and got()[-1][3] == "20", lambda: "the last one: %s %s" % (got(), open(reader.log).read()), 20)
    for r in got()[:-1]:
        i = int(r[3])
        check(r[:2] == [str(1700000000 + i), "%09d" % (123456000 + i * 1000)] or int(r[1]) == 123456000 + i * 1000, "time: %s" % r)
        check([float(r[4]), int(r[5]), float(r[8])] == [i * 0.25, -i, i] and r[6] == str(i % 2), "values: %s" % r)
        check(r[7].replace(".0", "") == "1.5-2.5i", "complex: %s" % r)
    record = kind.record("all")
    check(len(record) == 21 and "voltage" not in record[20]["attrs"], "NaN is left out")
    headers = record[0]["headers"]
    if v2:
        check(record[3]["attrs"]["voltage"] == {"type": "Number", "value": 0.75, "metadata": {
            "timestamp": {"type": "DateTime", "value": "2023-11-14T22:13:23.123459Z"},
            "sequence": {"type": "Integer", "value": 3}, "unit": {"type": "Text", "value": 'V"x'},
            "k": {"type": "Text", "value": 3}}}, "attribute: %s" % record[3]["attrs"]["voltage"])
        check([record[3]["attrs"][n]["type"] for n in ("n", "on", "z", "t")] ==
              ["Integer", "Boolean", "StructuredValue", "Text"], "types")
        check(record[3]["attrs"]["t"]["value"] == "3.0", "text")
        check(headers["Fiware-Service"] == "lab" and headers["Fiware-ServicePath"] == "/a", "headers: %s" % headers)
    else:
        check(record[3]["attrs"]["voltage"] == {
            "type": "Property", "value": 0.75, "observedAt": "2023-11-14T22:13:23.123459Z",
            "sequence": {"type": "Property", "value": 3}, "unit": {"type": "Property", "value": 'V"x'},
            "k": {"type": "Property", "value": 3}}, "attribute: %s" % record[3]["attrs"]["voltage"])
        check(headers["NGSILD-Tenant"] == "lab" and headers["Link"].startswith("<https://example.org/context.jsonld>;"), "headers")
    writer.end()
    check(len(kind.record("all", "delete")) == 1, "the entity is deleted at the end")
    until(lambda: reader.ask("/node/x")["state"] == "pending-connect", "the reader notices", 20)
    check(kind.record("all", "create") and len(kind.record("all", "create")) == 1, "created once")
    reader.end()
    kind.kill()


class Fickle(http.server.BaseHTTPRequestHandler):
    """Answers what the test puts into `answers`, by method."""
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    answers, count = {}, {}

    def serve(self):
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        Fickle.count[self.command] = Fickle.count.get(self.command, 0) + 1
        queue = Fickle.answers[self.command]
        status, headers, text = queue.pop(0) if len(queue) > 1 else queue[0]
        self.send_response(status)
        for k, v in headers.items():
            self.send_header(k, v)
        if status != 204:
            self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    do_GET = do_POST = serve

    def handle(self):
        try:
            super().handle()
        except OSError:
            # The gateway has ended.
            pass

    def log_message(self, *args):
        pass


def answers(kind):
    """What brokers answer when all is not well, and entities that are not as expected."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", kind.port), Fickle)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    good = (204, {}, b"")
    Fickle.answers = {"POST": [(422, {}, b"{}"), (503, {"Retry-After": "1"}, b""), (400, {}, b'{"error":"BadRequest","description":"bad value"}'),
                               (500, {}, b"ill"), (422, {}, b"{}"), good]}
    writer = Gateway(kind.folder, "writer", """
nodes = { sig = { type = "signal"; signal = "counter"; rate = 50.0; values = 1; }; x = { type = "ngsi"; %s }; };
paths = ( { in = "sig"; out = "x"; } );
""" % kind.node("out", "a", "json"))
    until(lambda: len(Fickle.answers["POST"]) == 1 and writer.ask("/node/x")["stats"]["figures"]["confirmed"] > 100,
          lambda: "it goes on: %s" % open(writer.log).read(), 20)
    stats = writer.ask("/node/x")["stats"]
    check(stats["losses"]["refused"] == 1 and stats["figures"]["postponed"] == 1 and
          stats["figures"]["repeated"] >= 1, "figures: %s" % stats)
    log = writer.end((3,))
    check("bad value" in log and "500, ill" in log, "the log says why: " + log)

    def entity(u, more=b""):
        return (200, {}, b'{"id":"%s","type":"Gateway"%s%s}' % ((kind.entity % "a").encode(), b',"counter1":{"value":1},"counter":{"value":%s}' % u if u else b"", more))
    Fickle.answers = {"GET": [
        (404, {}, b"{}"), (200, {}, b"[]"), entity(b""), entity(b"1"), entity(b"1"), entity(b'"2.5"'), entity(b'"x"'), entity(b"[1]"), entity(b"null"),
        (200, {}, b"{"), (200, {}, b'{"id":"other"}'), (200, {}, b"[" * 3000), (200, {}, b"[" * 5000), entity(b"3"), entity(b"1e999"),
        entity(b"4", b',"x":"' + b"y" * 5000 + b'"'), entity(b"5"), entity(b""), entity(b"5")]}
    reader = Gateway(kind.folder, "reader", """
nodes = { x = { type = "ngsi"; %s }; f = { type = "file"; uri = "%s/got.csv"; format = "csv"; out = { flush = true; }; }; };
paths = ( { in = "x"; out = "f"; } );
""" % (kind.node("in", "a", "json").replace("create = true;", "max_answer = 4096;"), kind.folder))
    until(lambda: len(Fickle.answers["GET"]) == 1, lambda: "all were asked for: %s" % open(reader.log).read(), 20)
    time.sleep(0.1)
    figures = reader.ask("/node/x")["stats"]["figures"]
    log = reader.end()
    with open(kind.folder + "/got.csv") as f:
        values = [float(line.split(",")[4]) for line in whole_lines(f) if line[0] != "#"]
    check(values == [1.0, 2.5, 5.0], "samples: %s" % values)
    check(figures["malformed"] == 7 and figures["connections_lost"] == 2 and figures["empty"] == 1, "figures: %s" % figures)
    for words in ("does not exist", "not the entity", "more than 4096 bytes"):
        check(words in log, "the log says %s: %s" % (words, log))
    server.shutdown()
    server.server_close()


def with_answers(kind):
    servers.protected(kind)
    answers(kind)


if __name__ == "__main__":
    sys.exit(servers.main({"v2": Ngsi, "ld": Ld}, {
        "exchange": exchange, "protected": with_answers, "answers": answers}))
