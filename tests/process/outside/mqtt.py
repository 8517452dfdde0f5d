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


sys.exit(servers.main({"3.1.1": Mqtt, "5": Mqtt5, "0": Mqtt0}, {"long": long}))
