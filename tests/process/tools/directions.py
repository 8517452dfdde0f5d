#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Samples for a node of any type, with any of its groups, arrive or are reported as lost.

For each node-type of the build, without the groups `in` and `out`, with one and with both:
`villas-pipe` with and without samples on standard input, and `villas-node` with a path that
writes the node. Status 0 is allowed only where all samples are seen to arrive; any other
status only with a line of the log that says why. Environment: BUSBAR.
"""
import concurrent.futures
import itertools
import json
import os
import re
import socket
import subprocess
import sys
import tempfile

BUSBAR = os.environ["BUSBAR"]
COUNT = 40
TEXT = "".join("%d.5(%d)\t%d.25\n" % (1000 + i, i, i) for i in range(COUNT))
# Words with which a refusal or a loss is reported.
TOLD = re.compile(r"cannot be (read|written)|lost|did not take|needs|required|(is|are) missing|has no hook|listen"
                  r"|cannot be loaded")
GROUPS = [(), ("in",), ("out",), ("in", "out")]
# These go on though nothing comes any more.
STAY = ("shmem", "ripc", "infiniband", "websocket", "test_rtt")
failed = False


def fail(*words):
    global failed
    failed = True
    print("FAILED:", *words)


class Case:
    """A node of a type with some of its groups, in a folder of its own."""

    def __init__(self, folder, kind, groups):
        self.folder, self.kind, self.groups = folder, kind, groups
        self.node = {"type": kind}
        self.socket = None
        # Cases with the same type of node run side by side.
        self.number = GROUPS.index(groups)
        make = getattr(self, "make_" + re.sub(r"\W", "_", kind), None)
        for group in groups:
            self.node[group] = {}
        if make:
            make()
        self.path = os.path.join(folder, "case.json")
        self.node_type_writes = kind not in ("signal", "signal.v2", "stats")

    def put(self, **settings):
        """Of the groups that are there."""
        for group, value in settings.items():
            if group in self.groups:
                self.node[group].update(value)

    def make_exec(self):
        self.node["exec"] = "cat > taken.dat"
        self.node["working_directory"] = self.folder

    def make_file(self):
        self.node["uri"] = os.path.join(self.folder, "taken.dat")
        self.put(out={"append": False})
        if self.groups == ("in",):
            self.put(**{"in": {"uri": os.path.join(self.folder, "given.dat")}})

    def make_signal(self):
        self.node.update(limit=3, realtime=False)

    def make_signal_v2(self):
        self.node.update(limit=3, realtime=False)
        self.put(**{"in": {"signals": [{"signal": "sine"}]}})

    def make_stats(self):
        self.put(**{"in": {"signals": [{"stats": "n.owd.mean"}]}})

    def make_test_rtt(self):
        self.node.update(rates=100, values=1, count=2, output=self.folder)

    def make_socket(self):
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
        self.socket.bind(("127.0.0.1", 0))
        self.put(**{"in": {"address": "127.0.0.1:0"},
                    "out": {"address": "127.0.0.1:%d" % self.socket.getsockname()[1]}})

    def make_shmem(self):
        name = "/busbar-shmem-directions-%d-%d" % (os.getpid(), self.number)
        self.put(**{"in": {"name": name}, "out": {"name": name}})

    def make_ripc(self):
        name = "directions-%d-%d" % (os.getpid(), self.number)
        self.put(**{"in": {"name": name}, "out": {"name": name}})

    def make_infiniband(self):
        address = "127.0.0.1:%d" % (20000 + 4 * (os.getpid() % 2500) + self.number)
        self.put(**{"in": {"address": address}, "out": {"address": address}})

    def taken(self, out):
        """How many samples have arrived; None: nobody can see it."""
        lines = out
        if self.kind in ("exec", "file"):
            try:
                with open(os.path.join(self.folder, "taken.dat")) as f:
                    lines = f.read()
            except OSError:
                return 0
        elif self.kind == "socket":
            self.socket.settimeout(5)
            bits = bytearray()
            try:
                while len(bits) < COUNT * 20:
                    bits += self.socket.recv(65536)
            except socket.timeout:
                pass
            return len(bits) // 20
        elif self.kind not in ("loopback", "shmem"):
            return None
        return len(re.findall(r"^\d", lines, re.M))

    def run(self, *args, stdin):
        with open(os.path.join(self.folder, "given.dat"), "w") as f:
            f.write(TEXT)
        with open(os.path.join(self.folder, "given.dat") if stdin else "/dev/null") as f:
            p = subprocess.run([BUSBAR, *args], stdin=f, capture_output=True, text=True,
                               cwd=self.folder, timeout=60)
        return p.returncode, p.stdout, p.stderr

    def name(self, args):
        return "%s of a %s with %s:" % (args[0], self.kind, " and ".join(self.groups) or "no group")

    def judge(self, args, result, samples):
        status, out, said = result
        taken = self.taken(out) if samples and not status else None
        if status not in (0, 1, 2, 3):
            fail(self.name(args), "status", status, said[-300:])
        if status and not TOLD.search(said):
            fail(self.name(args), "status", status, "without a reason:", said[-300:])
        if not status and samples and not self.node_type_writes:
            fail(self.name(args), "status 0 though it cannot be written")
        if taken is not None and taken < COUNT:
            fail(self.name(args), "status 0 and %d of %d samples" % (taken, COUNT), said[-300:])
        return status


def pipe(case, samples):
    with open(case.path, "w") as f:
        json.dump({"nodes": {"n": case.node}}, f)
    # Where only the other group is there nothing ends it; where it is written, the input does.
    only_read = case.groups == ("in",) and case.kind in ("file", "socket", "shmem", "ripc")
    args = ["pipe", "-t", "1f", "-T", "0.3" if only_read or not samples else "20", case.path, "n"]
    if case.kind == "shmem" and case.groups == ("in", "out") and samples:
        args[1:1] = ["-l", str(COUNT)]
    return case.judge(args, case.run(*args, stdin=samples), samples)


def gateway(case):
    """What is written to a loopback or its like is read by a file."""
    config = {"nodes": {"n": case.node, "given": {"type": "file", "in": {
        "uri": os.path.join(case.folder, "given.dat"), "epoch_mode": "original"}}},
        "paths": [{"in": "given", "out": "n"}], "hugepages": 0, "stats": 0}
    if case.kind == "loopback":
        config["nodes"]["seen"] = {"type": "file", "uri": "/dev/stdout", "out": {"flush": True}}
        config["paths"].append({"in": "n", "out": "seen"})
    with open(case.path, "w") as f:
        json.dump(config, f)
    args = ["run", "--idle-stop", "-q", "--summary=none", "-t",
            "0.3" if case.kind in STAY else "20", case.path]
    return case.judge(args, case.run(*args, stdin=False), case.kind not in STAY)


def one(top, kind, groups):
    for what in ("data", "closed", "path"):
        with tempfile.TemporaryDirectory(dir=top) as folder:
            case = Case(folder, kind, groups)
            statuses[kind, groups, what] = gateway(case) if what == "path" else pipe(case, what == "data")
            if case.socket:
                case.socket.close()


kinds = json.loads(subprocess.run([BUSBAR, "node", "-C"], capture_output=True, text=True,
                                  timeout=60).stdout)["nodes"]
statuses = {}
with tempfile.TemporaryDirectory() as top, concurrent.futures.ThreadPoolExecutor(4) as pool:
    for done in [pool.submit(one, top, *c) for c in itertools.product(
            kinds, GROUPS)]:
        done.result()
# What must work, so that not everything is refused.
for groups in GROUPS:
    for kind in ("exec", "loopback"):
        for what in ("data", "path"):
            if statuses[kind, groups, what]:
                fail(kind, groups, what, "status", statuses[kind, groups, what])
for kind in ("file", "socket"):
    for groups in (("out",), ("in", "out")):
        if statuses[kind, groups, "data"]:
            fail(kind, groups, "status", statuses[kind, groups, "data"])
if os.environ.get("VERBOSE"):
    for key, status in statuses.items():
        print(key, status)
print("%d cases" % len(statuses))
sys.exit(failed)
