#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The node-type zeromq, through a forwarder in the place of a server, and directly with peers of
python3-zmq. Arguments: scenarios (servers.py, and those in MORE)."""
import json
import os
import subprocess
import sys
import time

import servers
from gateway_process import BUSBAR, Gateway, check

PYTHON = "/usr/bin/python3"
try:
    import zmq
except ImportError:
    # Debian's own has it.
    if os.path.realpath(sys.executable) == os.path.realpath(PYTHON) or not os.path.exists(PYTHON):
        servers.skip("python3-zmq is not installed")
    os.execv(PYTHON, [PYTHON] + sys.argv)

FORWARDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "zeromq_forwarder.py")
URL = "tcp://127.0.0.1:5555"
OTHER_URL = "tcp://127.0.0.1:5557"


def pair(folder, name):
    """A key pair of `busbar zmq-keygen`: the public key, and the file of the secret one."""
    file = os.path.join(folder, name + ".secret")
    out = subprocess.run([BUSBAR, "zmq-keygen", "-s", file], check=True, capture_output=True,
                         text=True, timeout=60).stdout
    check(os.stat(file).st_mode & 0o777 == 0o600, "the secret key is for its owner only")
    return out.split('"')[1], file


def secret(file):
    with open(file) as f:
        return f.read().strip()


class Zeromq(servers.Kind):
    name = "zeromq"
    program = PYTHON
    port = 5555         # publishers
    out_port = 5556     # subscribers
    tls = False
    confirms = False
    repeats = False

    def argv(self, tls, password):
        return [PYTHON, FORWARDER, str(self.port), str(self.out_port)] + list(password or [])

    def ready(self):
        return servers.listens(self.port) and servers.listens(self.out_port)

    def node(self, direction, channel, form, tls=None, password=None):
        """`password`: keys of the group curve."""
        text = 'format = "%s"; reconnect_interval = 100; ' % form
        if password:
            text += "curve = { %s }; " % password
        if direction == "in":
            # In nonsense both go to the same port.
            port = self.port if channel == "n" else self.out_port
            return text + 'in = { subscribe = "tcp://127.0.0.1:%d"; filter = "%s/"; signals = "2f"; };' % (port, channel)
        return text + 'out = { publish = "tcp://localhost:%d"; bind = false; filter = "%s/"; };' % (self.port, channel)


def state(gateway):
    return gateway.ask("/node/x")["state"]


def figures(gateway):
    return gateway.ask("/node/x")["stats"]["figures"]


def losses(gateway):
    return gateway.ask("/node/x")["stats"]["losses"]


def await_state(gateway, wanted):
    servers.until(lambda: state(gateway) == wanted,
                  lambda: "%s: %s" % (wanted, open(gateway.log).read()[-1500:]), 30)


def writer(kind, more, name="writer", rate=1000, more_out="", values=2):
    """Publishes a counter at URL as a line of JSON for each sample."""
    return Gateway(kind.folder, name, """
nodes = { sig = { type = "signal"; signal = "counter"; rate = %f; values = %d; };
	x = { type = "zeromq"; format = "json"; %s out = { publish = "%s"; %s }; };
};
paths = ( { in = "sig"; out = "x"; } );
""" % (rate, values, more, URL, more_out))


def reader(kind, more, name="reader", more_in="", url=URL):
    """Subscribes to URL; what it gets goes to a file."""
    return Gateway(kind.folder, name, """
nodes = { x = { type = "zeromq"; format = "json"; reconnect_interval = 50; %s
		in = { subscribe = [ "%s" ]; signals = "256f"; %s }; };
	f = { type = "file"; uri = "%s/%s.csv"; format = "csv"; out = { flush = true; }; };
};
paths = ( { in = "x"; out = "f"; } );
""" % (more, url, more_in, kind.folder, name))


def rows(kind, name):
    file = os.path.join(kind.folder, name + ".csv")
    if not os.path.exists(file):
        return []
    with open(file) as f:
        return [int(line.split(",")[3]) for line in servers.whole_lines(f) if line[0] != "#"]


def is_refused(gateway, words):
    servers.until(lambda: words in open(gateway.log).read(),
                  lambda: "it is refused: " + open(gateway.log).read(), 30)
    check(state(gateway) == "pending-connect", "the state of one that is refused")


def bound(s, url):
    """Binds it; a socket that was closed keeps its address for a moment."""
    try:
        s.bind(url)
    except zmq.ZMQError:
        return False
    return True


# ---- scenarios ----

def protected(kind):
    """CURVE: both gateways are clients of a forwarder; a wrong key of the server is refused, and
    the secret keys are not shown."""
    public, file = pair(kind.folder, "server")
    mine, my_file = pair(kind.folder, "client")
    kind.start(password=(public, secret(file)))
    keys = 'server_key = "%s"; public_key = "%s"; %s = "%s";'
    in_file = keys % (public, mine, "secret_key_file", my_file)
    two = servers.Pair(kind, password=keys % (public, mine, "secret_key", secret(my_file)))
    two.await_more()
    two.account()
    for gateway in (two.reader, two.writer):
        for path in ("/config", "/nodes", "/node/x", "/config/text"):
            check(secret(my_file) not in str(gateway.client.ask(path)), "%s shows no secret key" % path)
        check(secret(my_file) not in open(gateway.log).read(), "the log shows no secret key")
    two.end()
    for wrong in (in_file.replace(public, mine), None):
        g = Gateway(kind.folder, "refused", 'nodes = { x = { type = "zeromq"; %s }; };\npaths = ( { in = "x"; } );\n'
                    % kind.node("in", "account", "json", None, wrong))
        is_refused(g, "the handshake failed")
        g.end()
    kind.kill()


def direct(kind):
    """Without a forwarder: the publisher is a server of CURVE with a list of clients. It keeps
    messages until somebody subscribes, and again after the last one has left."""
    public, file = pair(kind.folder, "server")
    good, good_file = pair(kind.folder, "good")
    bad, bad_file = pair(kind.folder, "bad")
    w = writer(kind, 'curve = { secret_key_file = "%s"; allow = [ "%s" ]; };' % (file, good))
    client = 'curve = { server_key = "%s"; secret_key_file = "%s"; };'
    foreign = reader(kind, client % (public, bad_file), name="foreign")
    is_refused(foreign, "this node is not in the peer's list of clients")
    servers.until(lambda: "is not in curve.allow" in open(w.log).read(), "the server says who")
    check(bad in open(w.log).read() and figures(w)["handshakes_failed"] > 0, "and counts it")
    check(state(w) == "pending-connect" and figures(w)["waiting"] > 0, "messages wait: %s" % figures(w))
    check(foreign.end() is not None and not rows(kind, "foreign"), "it gets nothing")
    for name in ("first", "second"):
        r = reader(kind, client % (public, good_file), name=name)
        await_state(w, "connected")
        await_state(r, "connected")
        servers.until(lambda: len(rows(kind, name)) > 100, "samples arrive")
        check(figures(w)["subscribers"] == 1 and figures(r)["publishers"] == 1, "peers are counted")
        r.end()
        await_state(w, "pending-connect")
    check(rows(kind, "first")[0] == 0, "nothing was lost before somebody subscribed")
    check(figures(w)["connections"] == 2 and figures(w)["connections_lost"] == 2, "connections: %s" % figures(w))
    check(secret(file) not in open(w.log).read(), "the log shows no secret key")
    w.end((0, 3))


def one_pair(kind):
    """As in VILLASnode's configurations: both sides have the server's key pair."""
    public, file = pair(kind.folder, "server")
    keys = 'curve = { public_key = "%s"; secret_key = "%s"; };' % (public, secret(file))
    w, r = writer(kind, keys), reader(kind, keys)
    servers.until(lambda: len(rows(kind, "reader")) > 100, "samples arrive")
    for g in (r, w):
        g.end((0, 3))


def frames(kind):
    """Messages with too few or too many frames are counted, and so is what a subscriber sends
    that is no subscription; a message that is too long ends the connection."""
    context = zmq.Context()
    s = context.socket(zmq.XPUB)
    s.linger = 0
    s.bind(URL)
    r = reader(kind, "", more_in='filter = "lab/"; max_message = 1000;')
    check(s.poll(20000) and s.recv() == b"\x01lab/", "the filter is the subscription")
    good = b'[{"ts":{"origin":[1700000000,0]},"sequence":%d,"data":[1.0,2.0]}]\n'
    for message in ([b"lab/" + good % 1], [b"lab/", b"x", good % 2], [b"lab/"] + [b""] * 300,
                    [b"lab/", b"no JSON"], [b"lab/more", good % 3], [b"other", good % 4]):
        s.send_multipart(message)
    servers.until(lambda: rows(kind, "reader") == [3], "the good one arrives")
    check(figures(r)["malformed"] == 4, "the others are counted: %s" % figures(r))
    s.send_multipart([b"lab/", b" " * 1001])
    servers.until(lambda: figures(r)["connections"] == 2, lambda: "a new connection: %s" % figures(r))
    check("ended it" in open(r.log).read(), "the log says it")
    r.end()
    s.close()
    w = writer(kind, "", rate=100)
    s = context.socket(zmq.XSUB)
    s.linger = 0
    s.connect(URL)
    s.send(b"\x01")
    check(s.poll(20000), "samples arrive")
    for message in ([b"hello"], [b""], [b"\x01a", b"b"]):
        s.send_multipart(message)
    servers.until(lambda: figures(w)["malformed"] == 3, lambda: "they are counted: %s" % figures(w))
    s.close()
    w.end()
    context.destroy(0)


def slow(kind):
    """A subscriber that reads nothing: what is lost is counted, or with drop_slow it alone loses."""
    for drop in (False, True):
        context = zmq.Context()
        sleeper = context.socket(zmq.SUB)
        sleeper.set_hwm(1)
        sleeper.rcvbuf = 4096
        sleeper.subscribe(b"")
        sleeper.connect(URL)
        name = "beside%d" % drop
        r = reader(kind, "", name=name, more_in="queuelen = 100000;")
        w = writer(kind, "", name="writer%d" % drop, rate=2000, values=256,
                   more_out="hwm = 100; backlog = 60000; max_message = 12000; drop_slow = %s;" % str(drop).lower())
        if drop:
            servers.until(lambda: len(rows(kind, name)) >= 2000, "the one beside goes on", 60)
            lost = losses(w)["full"]
        else:
            servers.until(lambda: losses(w)["full"] > 20, lambda: "losses: %s" % losses(w), 30)
            lost = losses(w)["full"]
        check(bool(lost) != drop, "what is lost is counted, with drop_slow nothing: %s" % lost)
        for g in (r, w):
            g.end((0, 3))
        context.destroy(0)


def both_ways(kind):
    """A node whose publisher is away still publishes, and tells that a part is missing."""
    context = zmq.Context()
    subscriber = context.socket(zmq.SUB)
    subscriber.subscribe(b"")
    subscriber.connect(URL)
    g = Gateway(kind.folder, "both", """
nodes = { sig = { type = "signal"; signal = "counter"; rate = 100.0; values = 2; };
	x = { type = "zeromq"; format = "json"; reconnect_interval = 50;
		in = { subscribe = "%s"; signals = "2f"; };
		out = { publish = "%s"; };
	};
};
paths = ( { in = "sig"; out = "x"; }, { in = "x"; } );
""" % (OTHER_URL, URL))
    for _ in range(20):
        check(subscriber.poll(20000), "samples arrive")
        check(json.loads(subscriber.recv()), "as JSON")
    check(state(g) == "pending-connect" and not figures(g)["connected"], "a part is missing")
    publisher = context.socket(zmq.PUB)
    publisher.bind(OTHER_URL)
    await_state(g, "connected")
    publisher.send(b'[{"sequence":1,"data":[1.0,2.0]}]\n')
    servers.until(lambda: g.ask("/node/x")["stats"]["received"] == 1, "and the other way")
    publisher.close(0)
    await_state(g, "pending-connect")
    since = time.monotonic()
    g.end()
    check(time.monotonic() - since < 2, "it ends in time")
    context.destroy(0)


def several(kind):
    """One of two publishers wants CURVE, which makes libzmq give up its address: the other one is
    read, and the first one, too, once it does without."""
    context = zmq.Context()
    good = context.socket(zmq.PUB)
    good.bind(URL)

    def other(secret_key):
        s = context.socket(zmq.PUB)
        if secret_key:
            s.curve_server, s.curve_secretkey = True, secret_key
        servers.until(lambda: bound(s, OTHER_URL), "the address is free")
        return s

    second = other(zmq.curve_keypair()[1])
    r = reader(kind, "", url='%s", "%s' % (URL, OTHER_URL.replace("127.0.0.1", "localhost")))
    await_state(r, "connected")
    servers.until(lambda: figures(r)["handshakes_failed"] > 1, lambda: "it tries again: %s" % figures(r))
    second.close(0)
    second = other(None)

    def both():
        good.send(b'[{"sequence":1,"data":[1.0,2.0]}]\n')
        second.send(b'[{"sequence":2,"data":[1.0,2.0]}]\n')
        time.sleep(0.02)
        return {1, 2} <= set(rows(kind, "reader"))
    servers.until(both, lambda: "both are read: %s" % figures(r))
    check(figures(r)["publishers"] == 2 and figures(r)["connections"] == 1, "peers: %s" % figures(r))
    second.close(0)
    servers.until(lambda: figures(r)["publishers"] == 1, "one is left")
    check(state(r) == "connected", "the state with one of two")
    good.close(0)
    await_state(r, "pending-connect")
    r.end()
    context.destroy(0)


def refused(kind):
    """What cannot work is an error of the configuration, with its reason."""
    public, file = pair(kind.folder, "server")
    keys = ((public, secret(file), pair(kind.folder, "other")[0]))
    for text, words in (
            ('pattern = "radiodish"; out = { publish = "%s"; };' % URL, "draft API"),
            ('out = { publish = "inproc://x"; };', "expected tcp://HOST:PORT"),
            ('out = { publish = "tcp://127.0.0.1"; };', "a host, a colon and a port"),
            ('out = { publish = "tcp://*:1"; bind = false; };', "for a side that binds"),
            ('curve = { }; out = { publish = "%s"; };' % URL, "needs one, or a secret_key_file"),
            ('curve = { secret_key = "short"; }; out = { publish = "%s"; };' % URL, "is no key"),
            ('curve = { public_key = "%s"; secret_key = "%s"; }; out = { publish = "%s"; };' % (keys[2], keys[1], URL),
             "not the one of secret_key"),
            ('curve = { secret_key = "%s"; server_key = "%s"; }; out = { publish = "%s"; };' % (keys[1], keys[0], URL),
             "no direction of the node is a client"),
            ('curve = { server_key = "%s"; allow = [ "%s" ]; }; out = { publish = "%s"; bind = false; };'
             % (keys[0], keys[0], URL), "no direction of the node is a server")):
        config = os.path.join(kind.folder, "try.conf")
        with open(config, "w") as f:
            f.write('nodes = { l = { type = "loopback"; }; x = { type = "zeromq"; %s }; };\n'
                    'paths = ( { in = "l"; out = "x"; } );' % text)
        p = subprocess.run([BUSBAR, "check", config], capture_output=True, text=True, timeout=60)
        if "draft" in words and not p.returncode:
            continue    # libzmq has it
        check(p.returncode == 2 and words in p.stdout + p.stderr, "%s: %s%s" % (text, p.stdout, p.stderr))


MORE = {"protected": protected, "direct": direct, "one_pair": one_pair, "frames": frames,
        "slow": slow, "several": several, "both_ways": both_ways, "refused": refused}

if __name__ == "__main__":
    sys.exit(servers.main(Zeromq, MORE))
