# SPDX-License-Identifier: BSD-2-Clause
"""A gateway of its own process that is asked and commanded over its control socket.

Environment: BUSBAR, the program.
"""
import json
import os
import socket
import subprocess
import time

BUSBAR = os.environ["BUSBAR"]
COMMON = "stats = 0.0; hugepages = 0; control = \"%s\";\n"


def check(good, what):
    if not good:
        raise AssertionError(what)


def whole_lines(f):
    """The lines of an open file that somebody still writes to. It is read at once: going on behind a half
    line would take its rest for a line."""
    return [line + "\n" for line in f.read().rpartition("\n")[0].split("\n") if line]


class Client:
    """A connection to a control socket."""

    def __init__(self, control):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(60)
        # The name is there a little earlier than the listener, and not while the file of a gateway
        # that was killed gives way to the next one's.
        end = time.monotonic() + 20
        while True:
            try:
                self.socket.connect(control)
                break
            except (ConnectionRefusedError, FileNotFoundError):
                check(time.monotonic() < end, "%s takes connections" % control)
                time.sleep(0.005)
        self.file = self.socket.makefile()
        self.asked = 0

    def ask(self, path, method="GET", body=None):
        self.asked += 1
        o = {"path": path, "method": method, "body": body, "id": self.asked}
        self.socket.sendall(json.dumps(o).encode() + b"\n")
        answer = json.loads(self.file.readline())
        check(answer["id"] == self.asked, "%s: answered is %s" % (path, answer))
        return answer


class Gateway:
    def __init__(self, folder, name, text, before=()):
        """`before`: words of the command before the program."""
        self.log = os.path.join(folder, name + ".log")
        self.control = os.path.join(folder, name + ".control")
        self.config = os.path.join(folder, name + ".conf")
        self.write(text)
        self.process = subprocess.Popen(
            [*before, BUSBAR, "run", "-q", "--summary=none", self.config],
            stderr=open(self.log, "w"))
        end = time.monotonic() + 30
        while not os.path.exists(self.control):
            check(self.process.poll() is None and time.monotonic() < end,
                  name + " starts")
            time.sleep(0.01)
        self.client = Client(self.control)

    def write(self, text):
        """The configuration, before the start or for a reload."""
        with open(self.config, "w") as f:
            f.write(COMMON % self.control + text)

    def ask(self, path, method="GET"):
        answer = self.client.ask(path, method)
        check(answer["status"] == 200, "%s: %s" % (path, answer))
        return answer["body"]

    def arrived(self, path=0):
        return self.ask("/path/%d/stats" % path)["stats"]["samples"]

    def wait_for_more(self, than, path=0, after="the start"):
        end = time.monotonic() + 40
        while self.arrived(path) <= than:
            check(time.monotonic() < end, "samples arrive after " + after)
            time.sleep(0.001)

    def descriptors(self):
        return len(os.listdir("/proc/%d/fd" % self.process.pid))

    def resident_kb(self):
        with open("/proc/%d/status" % self.process.pid) as f:
            for line in f:
                if line.startswith("VmRSS"):
                    return int(line.split()[1])
        return 0

    def sanitized(self):
        """Built with a sanitizer, which keeps what was freed?"""
        with open("/proc/%d/maps" % self.process.pid) as f:
            return any("libasan" in line or "libtsan" in line for line in f)

    def connected(self, node):
        """The figures of a node, once it knows that it is connected, which may be later than samples
        go on; None: it has none."""
        for _ in range(400):
            figures = self.ask("/node/" + node)["stats"]["figures"]
            if not figures or figures["connections"] == 1:
                break
            time.sleep(0.05)
        return figures

    def end(self, statuses=(0,)):
        """As asked to, with one of these; returns what it has logged."""
        self.process.terminate()
        status = self.process.wait(30)
        check(status in statuses, "ends with %s: %d" % (statuses, status))
        with open(self.log) as f:
            return f.read()

    def give_up(self):
        """Ends it whatever it does, and shows what it has said."""
        self.process.kill()
        self.process.wait()
        with open(self.log) as f:
            print(f.read()[-3000:])


class Gateways(list):
    """Of a `with`: after a failure they are ended, and what they left is removed."""

    def __init__(self, shared_memory=None):
        super().__init__()
        self.shared_memory = shared_memory and "/dev/shm" + shared_memory

    def __enter__(self):
        return self

    def __exit__(self, kind, value, trace):
        if kind:
            for g in self:
                g.give_up()
        if self.shared_memory and os.path.exists(self.shared_memory):
            os.unlink(self.shared_memory)


def first_port(count=2):
    """Of some that are free, as far as one can know: below those of callers."""
    return 20000 + os.getpid() % (12000 // count) * count
