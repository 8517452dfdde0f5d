#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The node-type mqtt with mosquitto. Arguments: scenarios (servers.py)."""
import os
import subprocess
import sys

import servers


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
    # libmosquitto 2.0 ends the process at a property that it does not know. So it gets the name of
    # a packet that it takes from no broker.
    nonsense = (b"\x10",)


class Mqtt0(Mqtt):
    qos = 0
    confirms = False
    repeats = False


def long(kind):
    """A message beyond in.max_message is counted, and what follows is read."""
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


if __name__ == "__main__":
    sys.exit(servers.main({"3.1.1": Mqtt, "5": Mqtt5, "0": Mqtt0}, {"long": long, "topics": topics}))
