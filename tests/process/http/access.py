#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Who may ask: tokens and their roles, users of this host, origins, hosts, certificates.

Environment: BUSBAR, the program. Exit status 0: good, 1: not.
"""
import hashlib
import os
import shutil
import signal
import ssl
import subprocess
import sys
import tempfile

from http_gateway import BUSBAR, NODES, Client, Gateway, check, until

WATCH, OPERATE, CONFIGURE = ("%s-0123456789abcdef" % r for r in ("watch", "operate", "configure"))
REQUESTS = (("/api/v2/nodes", "GET", 1), ("/metrics", "GET", 1), ("/api/v2/node/sig/pause", "POST", 2),
            ("/api/v2/node/sig/file/rewind", "GET", 2), ("/api/v2/stats/reset", "POST", 2),
            ("/api/v2/reload", "POST", 3), ("/api/v2/nothing", "GET", 1))


def bearer(token):
    return {"Authorization": "Bearer " + token}


def sub_protocols(g):
    """The token of a page, which cannot set Authorization, is a sub-protocol of its WebSocket."""
    socket = {"Upgrade": "websocket", "Connection": "Upgrade", "Sec-WebSocket-Version": "13",
              "Sec-WebSocket-Key": "AAECAwQFBgcICQoLDA0ODw=="}

    def ask(words, path="/tap/sig/in", **more):
        return g.ask(path, **{**socket, **more, "Sec-WebSocket-Protocol": words})

    a = ask("live, bearer." + WATCH)
    check(a.status == 101 and a.headers["sec-websocket-protocol"] == "live", "a token: %d" % a.status)
    check(ask("bearer.%s,live" % WATCH.replace("-", "%2D")).status == 101, "percent-encoded, and first")
    check(ask("live").status == 401, "none")
    check(ask("live, bearer." + "x" * 2000).status == 401, "a wrong one, which is too long")
    check(ask("live, bearer." + WATCH, Connection="close", path="/api/v2/nodes").status == 401,
          "only for a WebSocket")


def tokens(folder):
    path = os.path.join(folder, "tokens")
    with open(path, "w") as f:
        f.write("# of the test\nwatch %s\noperate sha256:%s\n" % (
            WATCH, hashlib.sha256(OPERATE.encode()).hexdigest()))
    os.chmod(path, 0o600)
    group = 'http = { token_file = "%s"; address = "127.0.0.1"; tokens = ( { role = "configure"; sha256 = "%s"; } ); };' % (
        path, hashlib.sha256(CONFIGURE.encode()).hexdigest())
    with Gateway(folder, http=group) as g:
        for url, method, needed in REQUESTS:
            for role, token in enumerate((None, WATCH, OPERATE, CONFIGURE)):
                a = g.ask(url, method, **(bearer(token) if token else {}))
                good = role >= needed
                wanted = 401 if not role else 403 if not good else a.status
                check(a.status == wanted and (not good or a.status not in (401, 403)),
                      "%s %s as %d: %d" % (method, url, role, a.status))
                if not role:
                    check(a.headers["www-authenticate"].startswith("Bearer"), "how to ask")
        check(g.ask("/api/v2/nodes", Authorization="Basic " + WATCH).status == 401, "only bearers")
        check(g.ask("/api/v2/node/sig/file/rewind", Host="192.168.0.5", **bearer(OPERATE)).status == 501,
              "no page shows a token by itself")
        sub_protocols(g)
        at = "--url=http://127.0.0.1:%d" % g.port
        more = ("--token-file=" + path,)  # its first token
        check(len(g.ctl("nodes", at=at, more=more)) == 2, "busbar ctl shows the token")
        g.ctl("node", "sig", "stop", status=1, at=at, more=more)
        g.ctl("nodes", status=1, at=at)
        # A file of new tokens counts after SIGHUP; connections stay.
        with g.client() as c:
            check(c.ask("/api/v2/nodes", **bearer(WATCH)).status == 200, "the old token")
            with open(path, "w") as f:
                f.write("watch %s-new\n" % WATCH)
            g.process.send_signal(signal.SIGHUP)
            until(lambda: "tokens were read again" in g.said(), "SIGHUP")
            check(c.ask("/api/v2/nodes", **bearer(WATCH + "-new")).status == 200, "the new token")
            check(c.ask("/api/v2/nodes", **bearer(WATCH)).status == 401, "not the old one")
        for _ in range(10):
            a = g.ask("/api/v2/nodes", **bearer("wrong" * 5))
            if a.status == 429:
                break
        check(a.status == 429 and int(a.headers["retry-after"]) > 0, "too many wrong ones: %d" % a.status)
        check(g.ask("/api/v2/nodes", **bearer(CONFIGURE)).status == 200, "a right one counts nevertheless")
        check(g.ask("/api/v2/nodes", **bearer("wrong" * 5)).status == 429, "wrong ones still do not")


def starts_with(folder, config, message, *args):
    path = os.path.join(folder, "refused.conf")
    with open(path, "w") as f:
        f.write(NODES + config)
    p = subprocess.run([BUSBAR, "run", "-q", "-t", "5", "--summary=none", *args, path], text=True,
                       stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, timeout=30)
    check(p.returncode in (1, 2) and message in p.stderr, "%s: %d %s" % (config, p.returncode, p.stderr))


def starts_that_are_refused(folder):
    path = os.path.join(folder, "open")
    with open(path, "w") as f:
        f.write("watch %s\n" % WATCH)
    os.chmod(path, 0o644)
    starts_with(folder, 'http = { address = "*"; };', "address: other hosts can reach *")
    starts_with(folder, "", "--http=*: other hosts", "--http=*:0")
    starts_with(folder, "", "--http=host:1: expected", "--http=host:1")
    starts_with(folder, 'http = { token_file = "%s"; };' % path, "mode is 0644", "--http=0")
    starts_with(folder, 'http = { token_file = "/nonexistent"; };', "http.token_file /nonexistent", "--http=0")
    starts_with(folder, 'http = { ssl_cert = "/nonexistent"; ssl_private_key = "/x"; };',
                "ssl_cert", "--http=0")
    with Gateway(folder) as g:
        starts_with(folder, "", "another program listens there", "--http=127.0.0.1:%d" % g.port)


def users(folder):
    """Without tokens: the user of the gateway and root, as on the control socket."""
    with Gateway(folder) as g:
        check(g.ask("/api/v2/nodes").status == 200, "the gateway's user")
        if os.getuid() == 0:
            code = "import os; os.setuid(65534); import sys; sys.path.insert(0, %r); " \
                   "from http_gateway import Client; " \
                   "sys.exit(Client(%d).ask('/api/v2/nodes').status != 403)" % (
                       os.path.dirname(os.path.abspath(__file__)), g.port)
            here = os.stat(os.path.dirname(os.path.abspath(__file__)))
            p = subprocess.run([sys.executable, "-B", "-c", code], timeout=30, capture_output=True)
            check(p.returncode == 0 or b"ModuleNotFound" in p.stderr or not here.st_mode & 1,
                  "another user: %s" % p.stderr)
        own = "127.0.0.1:%d" % g.port
        for host, status in (("localhost", 200), ("[::1]:80", 200), ("lab.example", 403),
                             ("127.0.0.1.lab.example", 403), (None, 400)):
            check(g.ask("/api/v2/nodes", Host=host).status == status, "a request to %s" % host)
        for origin, status in (("http://" + own, 200), ("https://" + own, 403), ("null", 403),
                               ("http://evil.example", 403), ("http://%s.evil.example" % own, 403)):
            a = g.ask("/api/v2/node/sig/resume", "POST", Origin=origin)
            check(a.status == status, "a page of %s: %d" % (origin, a.status))
            check(a.headers.get("access-control-allow-origin") == (origin if status == 200 else None),
                  "who may read the answer")
        check(g.ask("/api/v2/node/sig/file/rewind", Sec_Fetch_Site="cross-site").status == 403, "a picture")
        check(g.ask("/api/v2/nodes", Sec_Fetch_Site="same-origin").status == 200, "our own page")
    with Gateway(folder, http='http = { origins = ( "https://lab.example" ); };') as g:
        a = g.ask("/api/v2/nodes", "OPTIONS", Origin="https://lab.example")
        check(a.status == 204 and "Authorization" in a.headers["access-control-allow-headers"], "CORS")
        check(g.ask("/api/v2/nodes", Origin="https://lab.example").status == 200, "a page that may")


# The headers that a browser sends for a page, and whether that page may change anything. A page of
# the server's own origin may, and so may clients that are no browsers. A body of JSON may have the
# type of a form, as curl sends it.
PAGES = ((None, None, True), (None, "none", True), (None, "same-origin", True), ("own", None, True),
         ("own", "same-origin", True), ("http://lab.example", "cross-site", True),
         (None, "same-site", False), (None, "cross-site", False), (None, "new-word", False),
         ("http://127.0.0.1:1", "same-site", False), ("http://localhost:1", "same-site", False), ("null", None, False),
         ("null", "cross-site", False), ("https://own", None, False), ("http://evil.example", "cross-site", False),
         ("", "cross-site", False))


def pictures(g):
    """Browsers say neither Origin nor Sec-Fetch-Site with a GET to places that they do not trust, as
    0.0.0.0, which leads here, too."""
    for host, good in (("127.0.0.1", True), ("localhost", True), ("127.8.7.6", True), ("[::1]", True),
                       ("0.0.0.0", False), ("192.168.0.5", False), ("[::]", False),
                       ("[::ffff:127.0.0.1]", False), ("[::ffff:7f00:1]", False)):
        for method, fits in (("GET", good), ("HEAD", good), ("POST", True)):
            for more in ({}, {"Authorization": "Basic eDp5"}, {"Authorization": "Bearer " + CONFIGURE}):
                a = g.ask("/api/v2/node/sig/file/rewind", method, Host="%s:%d" % (host, g.port), **more)
                check((a.status != 403) == fits, "%s %s, %s: %d" % (method, host, more, a.status))
        check(g.ask("/api/v2/nodes", Host=host).status == 200, "a GET that changes nothing, of " + host)


def pages(folder):
    """Each request that changes something, from each kind of page, with each type of a body that
    a page can send without being asked."""
    with Gateway(folder, http='http = { origins = ( "http://lab.example" ); };') as g:
        own = "127.0.0.1:%d" % g.port
        seen = 0
        for path, item in g.ask("/api/v2/openapi.json").json()["paths"].items():
            for method, o in item.items():
                if o.get("x-role", "watch") == "watch":
                    continue
                url = "/api/v2" + path.replace("{id}", "0" if "/path/" in path else "sig").replace("{command}", "resume")
                # Good ones do nothing that lasts.
                body = b'{"text": ""}' if path == "/check" else b'{"config": "/nonexistent"}'
                for origin, site, good in PAGES:
                    if good and path == "/shutdown":
                        continue
                    for kind in ("application/x-www-form-urlencoded", "text/plain", "multipart/form-data", None):
                        a = g.ask(url, method.upper(), body if method == "post" else None,
                                  Origin=origin and origin.replace("own", own if "://" in origin else "http://" + own),
                                  Sec_Fetch_Site=site, Content_Type=kind)
                        what = "%s %s of a page of %s, %s: %d %s" % (method, path, origin, site, a.status, a.body)
                        check((a.status != 403) == good, what)
                        check(good or "access-control-allow-origin" not in a.headers, what)
                        seen += 1
        check(seen > 500, "requests: %d" % seen)
        pictures(g)


def openssl(folder, *args):
    subprocess.run(["openssl", *args], cwd=folder, check=True, capture_output=True, timeout=60)


def make_certificate(folder, name, subject, authority=None):
    new = ["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
           "-subj", "/CN=" + subject, "-addext", "subjectAltName=DNS:" + subject, "-days", "2",
           "-keyout", name + ".key", "-out", name + ".crt"]
    if authority:
        new += ["-CA", authority + ".crt", "-CAkey", authority + ".key"]
    openssl(folder, *new)


def serial(context, port):
    with Client(port, context) as c:
        return ssl.DER_cert_to_PEM_cert(c.socket.getpeercert(True))


def certificates(folder):
    if not shutil.which("openssl") or "HTTPS" in subprocess.run(
            [BUSBAR, "version"], capture_output=True, text=True).stdout:
        print("without TLS")
        return
    make_certificate(folder, "server", "localhost")
    make_certificate(folder, "other", "localhost")
    make_certificate(folder, "authority", "authority")
    try:
        make_certificate(folder, "client", "client", "authority")
    except subprocess.CalledProcessError:
        openssl(folder, "req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
                "-subj", "/CN=client", "-keyout", "client.key", "-out", "client.csr")
        openssl(folder, "x509", "-req", "-in", "client.csr", "-CA", "authority.crt", "-CAkey",
                "authority.key", "-CAcreateserial", "-days", "2", "-out", "client.crt")
    at = lambda name: os.path.join(folder, name)
    pair = 'ssl_cert = "%s"; ssl_private_key = "%s";' % (at("server.crt"), at("server.key"))
    context = ssl.create_default_context(cafile=at("server.crt"))
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    starts_with(folder, 'http = { ssl_cert = "%s"; ssl_private_key = "%s"; };' % (
        at("server.crt"), at("other.key")), "http.ssl_private_key", "--http=0")
    with Gateway(folder, http="http = { %s };" % pair, context=context) as g:
        with g.client() as c:
            check(c.ask("/api/v2/nodes").status == 200, "over TLS")
            a = c.ask("/api/v2/reload", "POST", {"config": {"x": "y" * 300000}})
            check(a.status == 422 and "unknown key" in str(a.json()), "a long body: %d" % a.status)
            before = serial(context, g.port)
            shutil.copy(at("other.key"), at("server.key"))
            shutil.copy(at("other.crt"), at("server.crt"))
            g.process.send_signal(signal.SIGHUP)
            until(lambda: serial(context, g.port) != before, "another certificate")
            check(c.ask("/api/v2/nodes").status == 200, "the old connection goes on")
        at_url = "--url=https://localhost:%d" % g.port
        g.ctl("nodes", status=1, at=at_url)  # the system does not know its authority
        check(len(g.ctl("nodes", at=at_url, more=("--ca=" + at("other.crt"),))) == 2, "ctl over TLS")
        with Client(g.port) as c:
            c.send(b"GET / HTTP/1.1\r\n\r\n")
            check(c.is_closed(), "no TLS, no answer")
    group = "http = { %s ssl_ca = \"%s\"; client_role = \"watch\"; };" % (pair, at("authority.crt"))
    with Gateway(folder, http=group, listen="*:0", context=context) as g:
        try:
            with Client(g.port, context) as c:
                a = c.ask("/api/v2/nodes")
            check(a is None, "without a certificate")
        except (ssl.SSLError, ConnectionError):
            pass
        context.load_cert_chain(at("client.crt"), at("client.key"))
        check(g.ask("/api/v2/nodes").status == 200, "with a certificate")
        check(g.ask("/api/v2/node/sig/pause", "POST").status == 403, "and its role")
        more = ["--ca=" + at("other.crt"), "--cert=" + at("client.crt"), "--key=" + at("client.key")]
        at_url = "--url=https://localhost:%d" % g.port
        check(len(g.ctl("nodes", at=at_url, more=more)) == 2, "ctl with a certificate")
        g.ctl("nodes", status=1, at=at_url, more=more[:1])


with tempfile.TemporaryDirectory() as parent:
    for i, part in enumerate((tokens, starts_that_are_refused, users, pages, certificates)):
        place = os.path.join(parent, str(i))
        os.mkdir(place)
        part(place)
