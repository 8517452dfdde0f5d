#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""A double of a context broker: the requests of NGSI-v2 (FIWARE) and NGSI-LD (ETSI GS CIM 009) that
a gateway makes, with the statuses that the specifications name. It checks what it gets, and
records each change in a file before it answers; a new one goes on with that file.

usage: ngsi_double.py PORT FILE [--tls FOLDER] [--token TOKEN]"""
import argparse
import http.server
import json
import os
import re
import ssl
import sys
import threading
import urllib.parse

LOCK = threading.Lock()
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{1,6}Z$")
CORE = {"type", "value", "observedAt", "unitCode"}


def fault_of_attributes(attributes, ld):
    """Why the specification does not allow them; None: it does."""
    for name, a in attributes.items():
        if not isinstance(a, dict) or "value" not in a or not isinstance(a.get("type"), str):
            return "%s has no type or no value" % name
        if ld:
            if a["type"] != "Property" or a["value"] is None:
                return "%s is no Property" % name
            if "observedAt" in a and not TIME.match(a["observedAt"]):
                return "observedAt of %s" % name
            if any(p.get("type") != "Property" or "value" not in p for k, p in a.items() if k not in CORE):
                return "a property of %s" % name
            continue
        if set(a) - {"type", "value", "metadata"} or re.search("[<>\"'=;()]", name):
            return "%s has other members" % name
        for k, m in a.get("metadata", {}).items():
            if set(m) != {"type", "value"} or (m["type"] == "DateTime" and not TIME.match(m["value"])):
                return "metadata %s of %s" % (k, name)
    return None


class Broker(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    entities, token, record = {}, None, None

    def keep(self, what, ident, attributes):
        Broker.record.write(json.dumps({"op": what, "id": ident, "attrs": attributes,
                                        "headers": dict(self.headers)}) + "\n")
        Broker.record.flush()

    def reply(self, status, body=None):
        text = json.dumps(body).encode() if body is not None else b""
        self.send_response(status)
        if status != 204:
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def fail(self, status, error, description):
        if self.ld:
            self.reply(status, {"type": "https://uri.etsi.org/ngsi-ld/errors/" + error, "title": error, "detail": description})
        else:
            self.reply(status, {"error": error, "description": description})

    def serve(self):
        url = urllib.parse.urlsplit(self.path)
        query = urllib.parse.parse_qs(url.query)
        self.ld = url.path.startswith("/ngsi-ld/")
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        parts = [urllib.parse.unquote(p) for p in re.sub("^/(v2|ngsi-ld/v1)/", "", url.path).split("/")]
        if Broker.token and Broker.token not in (self.headers["X-Auth-Token"],
                                                (self.headers["Authorization"] or "").replace("Bearer ", "")):
            return self.fail(401, "Unauthorized", "a valid token is needed")
        if parts[0] != "entities" or len(parts) > 3:
            return self.fail(404, "NotFound", "no such resource")
        if self.command in ("GET", "DELETE"):
            if self.headers["Content-Type"] or body:
                return self.fail(400, "BadRequest", "no payload is accepted here")
        elif self.headers["Content-Type"] != "application/json":
            return self.fail(415, "UnsupportedMediaType", "application/json is needed")
        try:
            payload = json.loads(body) if body else {}
        except ValueError as e:
            return self.fail(400, "ParseError", str(e))
        with LOCK:
            self.act(parts[1:], query, payload)

    def act(self, parts, query, payload):
        if not parts:
            return self.create(payload)
        entity = Broker.entities.get(parts[0])
        if entity is None or query.get("type", [entity["type"]]) != [entity["type"]]:
            return self.fail(404, "NotFound", "The requested entity has not been found. Check type and id")
        if self.command == "GET" and len(parts) == 1:
            names = query.get("attrs", [",".join(entity)])[0].split(",") + ["id", "type"]
            return self.reply(200, {k: v for k, v in entity.items() if k in names})
        if self.command == "DELETE" and len(parts) == 1:
            del Broker.entities[parts[0]]
            self.keep("delete", parts[0], {})
            return self.reply(204)
        if self.command in ("POST", "PATCH") and parts[1:] == ["attrs"]:
            return self.update(entity, payload)
        return self.fail(405, "MethodNotAllowed", self.command)

    def create(self, payload):
        ident, kind = payload.pop("id", None), payload.pop("type", None)
        if self.command != "POST" or not ident or not kind or fault_of_attributes(payload, self.ld):
            return self.fail(400, "BadRequest", "no entity")
        if ident in Broker.entities:
            return self.fail(*((409, "AlreadyExists") if self.ld else (422, "Unprocessable")), "Already Exists")
        Broker.entities[ident] = dict(payload, id=ident, type=kind)
        self.keep("create", ident, dict(payload, type=kind))
        return self.reply(201)

    def update(self, entity, payload):
        fault = fault_of_attributes(payload, self.ld)
        if fault:
            return self.fail(400, "BadRequest", fault)
        unknown = [k for k in payload if k not in entity]
        if self.command == "PATCH" and unknown:
            return self.fail(404 if self.ld else 422, "Unprocessable", "do not exist: %s" % unknown)
        entity.update(payload)
        self.keep("update", entity["id"], payload)
        return self.reply(204)

    do_GET = do_POST = do_PATCH = do_DELETE = serve

    def log_message(self, *args):
        pass


def main():
    p = argparse.ArgumentParser()
    p.add_argument("port", type=int)
    p.add_argument("file")
    p.add_argument("--tls")
    p.add_argument("--token")
    a = p.parse_args()
    if os.path.exists(a.file):
        for line in open(a.file):
            if not line.endswith("\n"):
                continue
            r = json.loads(line)
            if r["op"] == "delete":
                Broker.entities.pop(r["id"], None)
            else:
                Broker.entities.setdefault(r["id"], {"id": r["id"]}).update(r["attrs"])
    Broker.token = a.token
    Broker.record = open(a.file, "a")
    server = http.server.ThreadingHTTPServer(("127.0.0.1", a.port), Broker)
    server.daemon_threads = True
    if a.tls:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(a.tls + "/server.crt", a.tls + "/server.key")
        # Handshakes by the threads of connections.
        server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    server.serve_forever()


sys.exit(main())
