#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The node-type mqtt with mosquitto. Arguments: scenarios (servers.py)."""
import os
import shutil
import socket
import subprocess
import sys

import servers
from gateway_process import check


class Mqtt(servers.Kind):
    name = "mqtt"
    program = "mosquitto"
    port = 1883
    version = "3.1.1"
    qos = 1

    def argv(self, tls, password):
        config = os.path.join(self.folder, "mosquitto.conf")
        with open(config, "w") as f:
            f.write("listener %d 127.0.0.1\npersistence false\n" % self.port)
            f.write("user root\n" if os.geteuid() == 0 else "")
            f.write("allow_anonymous %s\n" % ("false" if password else "true"))
            f.write("max_queued_messages 100000\n")
            if tls:
                f.write("cafile %s/ca.crt\ncertfile %s/server.crt\nkeyfile %s/server.key\n" % ((self.folder,) * 3))
            if password:
                f.write("password_file %s/passwords\n" % self.folder)
        if password:
            subprocess.run(["mosquitto_passwd", "-b", "-c", os.path.join(self.folder, "passwords"), "lab", password],
                           check=True, capture_output=True, timeout=60)
        return ["mosquitto", "-c", config]

    def node(self, direction, channel, form, tls=None, password=None):
        text = 'host = "%s"; port = %d; format = "%s"; version = "%s"; qos = %d; reconnect_interval = 100; ' % (
            "localhost" if tls else self.host, self.port, form, self.version, self.qos)
        if tls:
            text += 'ssl = { ca = "%s"; }; ' % tls
        if password:
            text += 'username = "lab"; password_file = "%s"; ' % password
        if direction == "in":
            return text + 'in = { subscribe = "lab/%s"; signals = "2f"; };' % channel
        return text + 'out = { publish = "lab/%s"; };' % channel


class Mqtt5(Mqtt):
    version = "5"
    qos = 2
    # A connection with a property that MQTT does not have.
    nonsense = (b"\x20\x05\0\0\2\x7f\0",)


class Mqtt0(Mqtt):
    qos = 0
    confirms = False
    repeats = False


def long(kind):
    """A message beyond in.max_message is counted, and what follows is read."""
    if not shutil.which("mosquitto_pub"):
        servers.skip("mosquitto-clients is not installed")
    kind.start()
    pair = servers.Pair(kind, name="long-")
    pair.await_more()
    subprocess.run(["mosquitto_pub", "-p", str(kind.port), "-t", "lab/account", "-s"], input=b"[" * 2000000,
                   check=True, timeout=60)
    servers.until(lambda: pair.stats(pair.reader)["figures"]["oversized"] == 1, "it is counted")
    pair.await_more()
    pair.account(True)
    pair.end()
    kind.kill()


def topics(kind):
    """A message to two topics, of which the broker refuses one or the other, is counted as lost."""
    acl = os.path.join(kind.folder, "acl")
    with open(acl, "w") as f:
        f.write("topic write lab/allowed\n")
    argv = kind.argv

    def with_acl(tls, password):
        command = argv(tls, password)
        with open(command[2], "a") as f:
            f.write("acl_file %s\n" % acl)
        return command
    kind.argv = with_acl
    kind.start()
    for names in (("allowed", "forbidden"), ("forbidden", "allowed"), ("allowed", "allowed")):
        g = servers.Gateway(kind.folder, "topics-%s-%s" % names, """
nodes = { sig = { type = "signal"; signal = "counter"; realtime = false; limit = 50; values = 1; };
	x = { type = "mqtt"; %s };
};
paths = ( { in = "sig"; out = "x"; } );
""" % kind.node("out", "x", "json").replace('publish = "lab/x"', 'publish = [ "lab/%s", "lab/%s" ]' % names))
        refused = 50 if "forbidden" in names else 0

        def done():
            stats = g.ask("/node/x")["stats"]
            return stats["sent"] == 50 and stats["losses"]["refused"] == refused and (
                not stats["figures"]["unconfirmed"] and stats["figures"]["confirmed"] == 50 - refused)
        servers.until(done, lambda: "%s: %s" % (names, g.ask("/node/x")["stats"]))
        g.end((0, 3))
    kind.kill()


def session(kind):
    """The broker and the node keep a session: over lost connections, each sample arrives once."""
    node = kind.node
    kind.node = lambda direction, *a: node(direction, *a) + (
        'client_id = "session-%s"; clean_session = false; ' % direction)
    kind.repeats = False
    kind.start()
    pair = servers.Pair(kind, name="session-")
    for i in range(5):
        pair.await_more()
        servers.cut(kind.port, True, "reject with tcp reset")
        servers.until(lambda: all(pair.stats(g)["figures"]["connections_lost"] > i for g in (pair.writer, pair.reader)),
                      "both connections are lost")
        servers.cut(kind.port, False)
        pair.await_state(pair.writer, "connected")
        pair.await_state(pair.reader, "connected")
    missing, _, what = pair.account(True)
    check(not missing, "all arrive: " + what)
    check(pair.stats(pair.writer)["figures"]["repeated"] > 0, "some are sent again: " + what)
    pair.end()
    kind.kill()


def huge(kind):
    """A broker that announces a message of 256 MiB, and one that never takes what it is told: neither
    takes the gateway's memory."""
    connack = b"\x20\3\0\0\0"
    g = servers.Gateway(kind.folder, "huge", """
nodes = { a = { type = "mqtt"; %s }; b = { type = "mqtt"; %s }; };
paths = ( { in = "a"; }, { in = "b"; } );
""" % (kind.node("in", "x", "json"), kind.node("in", "x", "json").replace(str(kind.port), str(kind.port + 1))))
    suback = b"\x90\4\0\0\0\2"

    def answer(got):
        # The number of the subscription stands behind the head.
        at = got.index(b"\x82")
        return suback[:2] + got[at + 2:at + 4] + suback[4:]
    message = b"\x32\xff\xff\xff\x7f\0\1t\0\1" + b"1 " * 4000000
    many = b"".join(b"\x32\7\0\1t" + i.to_bytes(2, "big") + b"\0" + b"1" for i in range(1, 60000)) * 40
    before = g.resident_kb()
    sizes = []
    for port, data in ((kind.port, message), (kind.port + 1, many)):
        s = socket.create_server(("127.0.0.1", port))
        c = s.accept()[0]
        c.recv(1000)
        c.sendall(connack)
        c.sendall(answer(c.recv(1000)))
        c.settimeout(3)
        try:
            c.sendall(data)
        except TimeoutError:
            pass
        sizes.append(g.resident_kb() - before)
        s.close()
        if port == kind.port:
            servers.until(lambda: g.ask("/node/a")["stats"]["figures"]["oversized"] == 1, "it is counted")
        c.close()
    check(max(sizes) < 24000 or g.sanitized(), "memory is bounded: %s KiB more" % sizes)
    g.end((0, 3))


def mute(kind):
    """A broker that does not answer the connection takes no processor until it is given up."""
    server = servers.Double(kind.port, "silent")
    g = servers.Gateway(kind.folder, "mute", """
nodes = { a = { type = "mqtt"; keepalive = 5; connect_timeout = 8.0; %s }; };
paths = ( { in = "a"; } );
""" % kind.node("in", "x", "json"))
    servers.until(lambda: g.ask("/node/a")["stats"]["figures"]["unreachable"], "it is given up")
    with open("/proc/%d/stat" % g.process.pid) as f:
        used = sum(map(int, f.read().rsplit(")", 1)[1].split()[11:13])) / os.sysconf("SC_CLK_TCK")
    check(used < 0.5 or g.sanitized(), "it waits without a processor: %.2f s" % used)
    g.end()
    server.close()


if __name__ == "__main__":
    sys.exit(servers.main({"3.1.1": Mqtt, "5": Mqtt5, "0": Mqtt0}, {"long": long, "topics": topics, "session": session, "mute": mute,
                                                                  "huge": huge}))
