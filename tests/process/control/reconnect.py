#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""reconnect.py MEDIUM [ROUNDS]: two gateways; the node of one is restarted again and
again, and samples arrive each time. Neither gateway keeps descriptors or memory.

Environment: BUSBAR. Exit status 0: good, 1: not.
"""
import json
import os
import socket
import subprocess
import sys
import tempfile
import time

BUSBAR = os.environ["BUSBAR"]
COMMON = "stats = 0.0; hugepages = 0; control = \"%s\";\n"
MEDIA = {
    "infiniband": (
        """type = "infiniband"; rdma_transport_mode = "RC";
           in = { address = "127.0.0.1:%(a)d"; polling = "event"; max_wrs = 64; cq_size = 64; };
           out = { address = "127.0.0.1:%(b)d"; max_wrs = 64; cq_size = 64; reconnect_interval = 5; };""",
        """type = "infiniband"; rdma_transport_mode = "RC";
           in = { address = "127.0.0.1:%(b)d"; polling = "event"; max_wrs = 64; cq_size = 64; };"""),
    "tcp": (
        """type = "socket"; layer = "tcp-client"; format = "busbar.binary";
           out = { address = "127.0.0.1:%(b)d"; reconnect_interval = 5; };""",
        """type = "socket"; layer = "tcp-server"; format = "busbar.binary";
           in = { address = "127.0.0.1:%(b)d"; };"""),
    "shmem": (
        """type = "shmem"; out = { name = "/busbar-shmem-reconnect-%(a)d"; };""",
        """type = "shmem"; in = { name = "/busbar-shmem-reconnect-%(a)d"; };"""),
}
SOURCE = """
nodes = {
    sig = { type = "signal"; signal = "counter"; rate = 2000.0; values = 4; };
    peer = { %s };
};
paths = ( { in = "sig"; out = "peer"; } );
"""
TARGET = """
nodes = { peer = { %s }; };
paths = ( { in = "peer"; } );
"""
SETTLED = 10  # rounds after which nothing may grow any more


def check(good, what):
    if not good:
        raise AssertionError(what)


class Gateway:
    def __init__(self, folder, name, text):
        self.log = os.path.join(folder, name + ".log")
        control = os.path.join(folder, name + ".control")
        config = os.path.join(folder, name + ".conf")
        with open(config, "w") as f:
            f.write(COMMON % control + text)
        self.process = subprocess.Popen(
            [BUSBAR, "run", "-q", "--summary=none", config],
            stderr=open(self.log, "w"))
        end = time.monotonic() + 30
        while not os.path.exists(control):
            check(self.process.poll() is None and time.monotonic() < end,
                  name + " starts")
            time.sleep(0.01)
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(60)
        self.socket.connect(control)
        self.file = self.socket.makefile()

    def ask(self, path, method="GET"):
        self.socket.sendall(
            json.dumps({"path": path, "method": method}).encode() + b"\n")
        answer = json.loads(self.file.readline())
        check(answer["status"] == 200, "%s: %s" % (path, answer))
        return answer["body"]

    def arrived(self):
        return self.ask("/path/0/stats")["stats"]["samples"]

    def wait_for_more(self, than):
        end = time.monotonic() + 40
        while self.arrived() <= than:
            check(time.monotonic() < end, "samples arrive")
            time.sleep(0.001)

    def descriptors(self):
        return len(os.listdir("/proc/%d/fd" % self.process.pid))

    def resident_kb(self):
        with open("/proc/%d/status" % self.process.pid) as f:
            for line in f:
                if line.startswith("VmRSS"):
                    return int(line.split()[1])
        return 0

    def end(self):
        self.process.terminate()
        check(self.process.wait(30) == 0, "ends with 0")


def run(gateways, rounds):
    source, target = gateways
    before = None
    for i in range(rounds):
        had = target.arrived()
        target.ask("/node/peer/restart", "POST")
        target.wait_for_more(had)
        if i == SETTLED:
            before = [(g.descriptors(), g.resident_kb()) for g in gateways]
        if (i + 1) % 1000 == 0:
            print("%d rounds, %d and %d kB" % (i + 1, source.resident_kb(),
                                               target.resident_kb()), flush=True)
    for g, (descriptors, kb) in zip(gateways, before):
        check(g.descriptors() <= descriptors + 2, "descriptors: %d, then %d" % (
            descriptors, g.descriptors()))
        # Arenas of threads settle late, and a sanitizer keeps what is freed: only
        # many rounds tell. A leak of 100 bytes a round does not hide then; in few
        # rounds it is the sanitizer that finds it.
        check(rounds < 1000 or g.resident_kb() <= kb + 600 + rounds // 20,
              "memory: %d kB, then %d kB" % (kb, g.resident_kb()))
    for g in gateways:
        g.end()


def main():
    medium = sys.argv[1]
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 30
    # Below those that the kernel gives to callers.
    port = 20000 + os.getpid() % 6000 * 2
    ports = {"a": port, "b": port + 1}
    gateways = []
    with tempfile.TemporaryDirectory() as folder:
        try:
            gateways.append(Gateway(folder, "source", SOURCE % (MEDIA[medium][0] % ports)))
            gateways.append(Gateway(folder, "target", TARGET % (MEDIA[medium][1] % ports)))
            run(gateways, rounds)
        except BaseException:
            for g in gateways:
                g.process.kill()
                g.process.wait()
                with open(g.log) as f:
                    print(f.read()[-3000:])
            raise
        finally:
            # What gateways that were killed have left.
            name = "/dev/shm/busbar-shmem-reconnect-%d" % ports["a"]
            if os.path.exists(name):
                os.unlink(name)


main()
