#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""clients.py [SECONDS [SEED]]: several clients start, stop, pause, restart, ask and
reload a gateway at once, in a random order, while samples flow through nodes of every
kind. Each is answered, nothing that is legal fails, and the gateway ends as it should.
Races are for the thread sanitizer to find.

A client may pause the reader of a connection for longer than its writer waits for
room. Such samples are lost, which the configuration did not allow: the gateway ends
with 3, and this cause and these writers are the only ones that the log may name.

Environment: BUSBAR. Exit status 0: good, 1: not.
"""
import random
import re
import subprocess
import sys
import tempfile
import threading
import time

from gateway_process import BUSBAR, Client, Gateway, Gateways, check, first_port

CLIENTS = 4
PORTS = 5
LOST = 3  # the exit status
COMMANDED = ("dropped for want of room, as configured", "for a peer that is not there",
             "while it was paused or stopped")
STUCK = "waited for room in vain"
HELD_UP = ("here", "caller", "child")
HOOKS = ("", 'hooks = ( "ts" );',
         'hooks = ( { type = "decimate"; ratio = 3; } );',
         'hooks = ( { type = "scale"; signal = 0; scale = 2.0; } );')
CONFIG = """
nodes = {
    sine = { type = "signal"; signal = "sine"; rate = %(rate)d.0; values = %(values)d; };
    counter = { type = "signal"; signal = "counter"; rate = 700.0; values = 3;
        in = { hooks = ( { type = "stats"; output = "/dev/null"; } ); }; };
    loop = { type = "loopback"; queuelen = %(queue)d; };
    udp = { type = "socket"; layer = "udp";
        in = { address = "127.0.0.1:%(p0)d"; }; out = { address = "127.0.0.1:%(p0)d"; }; };
    server = { type = "socket"; layer = "tcp-server"; in = { address = "127.0.0.1:%(p1)d"; }; };
    caller = { type = "socket"; layer = "tcp-client"; out = { address = "127.0.0.1:%(p1)d"; }; };
    shared = { type = "shmem"; in = { name = "%(shm)s"; }; out = { name = "%(shm)s"; }; };
    child = { type = "exec"; exec = "cat"; };
    figures = { type = "stats"; rate = 50.0;
        in = { signals = ( { stats = "counter.owd.mean"; name = "x"; } ); }; };
    one = { type = "file"; uri = "/dev/null"; };
    two = { type = "file"; uri = "/dev/null"; format = "json"; };
    three = { type = "file"; uri = "/dev/null"; format = "csv"; };
%(more_nodes)s
};
paths = (
    { in = "sine"; out = ( "loop", "one" ); %(hook)s },
    { in = ( "sine[0]", "counter", "loop" ); out = "udp"; mode = "%(mode)s"; queuelen = %(queue)d; },
    { in = "udp"; out = "caller"; },
    { in = "server"; out = "shared"; },
    { in = ( "shared", "counter" ); out = "two"; mode = "any"; rate = %(limit)d.0; },
    { in = "counter"; out = "child"; },
    { in = ( "child", "figures" ); out = "three"; mode = "any"; }%(more_paths)s
);
"""
ADAPTER = """
    there = { type = "infiniband"; rdma_transport_mode = "%(service)s";
        in = { address = "127.0.0.1:%(p2)d"; polling = "event"; max_wrs = 64; cq_size = 64; }; };
    here = { type = "infiniband"; rdma_transport_mode = "%(service)s";
        in = { address = "127.0.0.1:%(p3)d"; polling = "event"; max_wrs = 64; cq_size = 64; };
        out = { address = "127.0.0.1:%(p2)d"; max_wrs = 64; cq_size = 64; }; };
"""
ADAPTER_PATHS = """,
    { in = "counter"; out = "here"; }, { in = "there"; }"""


def make_config(dice, port, adapter):
    v = {"p%d" % i: port + i for i in range(PORTS)}
    v.update(rate=dice.choice([500, 1000, 2000]), values=dice.choice([1, 4, 20]),
             queue=dice.choice([64, 1024]), mode=dice.choice(["any", "all"]),
             limit=dice.choice([0, 100]), hook=dice.choice(HOOKS),
             shm="/busbar-shmem-clients-%d" % port,
             service=dice.choice(["RC", "UC", "UD"]))
    v["more_nodes"] = ADAPTER % v if adapter else ""
    v["more_paths"] = ADAPTER_PATHS if adapter else ""
    return CONFIG % v


class Commander(threading.Thread):
    """One of the clients; those that are not the first only command and ask."""

    def __init__(self, gateway, number, seed, end, new_config):
        super().__init__()
        self.dice = random.Random(seed + number)
        self.client = Client(gateway.control)
        self.gateway, self.number, self.end = gateway, number, end
        self.new_config = new_config
        self.done, self.failure = 0, None

    def one(self, nodes, paths):
        d = self.dice
        what = d.random()
        if what < 0.45:
            return "POST", "/node/%s/%s" % (d.choice(nodes), d.choice(
                ["start", "stop", "restart", "pause", "resume", "start", "resume"]))
        if what < 0.75:
            return "POST", "/path/%d/%s" % (d.randrange(paths), d.choice(
                ["start", "stop", "restart", "pause", "resume", "start", "resume"]))
        if what < 0.85:
            return "POST", d.choice(["/stats/reset", "/node/counter/stats/reset"])
        if what < 0.95 or self.number:
            return "GET", d.choice(["/status", "/config", "/nodes", "/paths", "/stats",
                                    "/node/sine", "/path/1", "/capabilities"])
        self.gateway.write(self.new_config(d))
        return "POST", "/reload"

    def run(self):
        try:
            nodes = [n["name"] for n in self.client.ask("/nodes")["body"]]
            paths = len(self.client.ask("/paths")["body"])
            while time.monotonic() < self.end:
                method, path = self.one(nodes, paths)
                answer = self.client.ask(path, method)
                # 409: not in that state.
                check(answer["status"] in (200, 409), "%s: %s" % (path, answer))
                check(path != "/reload" or not answer["body"].get("failed"),
                      "reload: %s" % answer)
                self.done += 1
        except Exception as e:
            self.failure = e


def check_losses(log):
    """Samples may be lost only at nodes that something outside of them holds up."""
    for line in log.splitlines():
        m = re.search(r"node (\w+): \d+ samples were lost: (.*)", line)
        if not m:
            continue
        for cause in re.split(r", (?=\d)", m.group(2)):
            text = cause.split(" ", 1)[1]
            check(text in COMMANDED or text == STUCK and m.group(1) in HELD_UP, line)


def main():
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 6
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else int(time.time())
    print("seed %d" % seed, flush=True)
    port = first_port(PORTS)
    devices = subprocess.run([BUSBAR, "devices"], capture_output=True, text=True)
    adapter = "soft0" in devices.stdout

    def new_config(dice):
        return make_config(dice, port, adapter)

    with tempfile.TemporaryDirectory() as folder, \
            Gateways("/busbar-shmem-clients-%d" % port) as gateways:
        g = Gateway(folder, "gateway", new_config(random.Random(seed)))
        gateways.append(g)
        end = time.monotonic() + seconds
        clients = [Commander(g, i, seed, end, new_config) for i in range(CLIENTS)]
        for c in clients:
            c.start()
        for c in clients:
            c.join()
        for c in clients:
            check(c.failure is None, c.failure)
        print("%d requests" % sum(c.done for c in clients))
        check(all(c.done for c in clients), "each is served")
        check_losses(g.end((0, LOST)))


main()
