# SPDX-License-Identifier: BSD-2-Clause
"""Other people's programs for the tests beside this file: opensm and infiniband-diags at a host of a running
fabric or over ibsim, perftest between two hosts, and the parts of a test that TESTS_SEED selects."""
import glob
import hashlib
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time

from plugged import Fabric, check

os.environ["PATH"] += ":/usr/sbin:/sbin"
BUSBAR = os.environ["BUSBAR"]
PATIENCE_S = 60


def need(*programs):
    missing = [p for p in programs if not shutil.which(p)]
    if missing:
        print("skipped: not installed:", *missing)
        sys.exit(77)


def number_of(text):
    """A number that TESTS_SEED and the text determine."""
    digest = hashlib.sha256(f"{os.environ.get('TESTS_SEED', '')} {text}".encode()).digest()
    return int.from_bytes(digest[:8], "big")


def some(things, count):
    """As many of them as TESTS_SEED selects."""
    return sorted(things, key=lambda t: number_of(repr(t)))[:count]


def await_true(condition, what, limit_s=PATIENCE_S):
    end = time.monotonic() + limit_s
    while not condition():
        check(time.monotonic() < end, what() if callable(what) else what)
        time.sleep(0.02)


class Place:
    """Where management programs run: an environment and a folder of their own."""

    def __init__(self, environment):
        self.folder = tempfile.mkdtemp(prefix="busbar-stock.")
        self.env = {**os.environ, "OSM_TMP_DIR": self.folder, "OSM_CACHE_DIR": self.folder, **environment}
        self.manager = None

    def run(self, *words, status=0):
        """What the program prints; it ends with this status, or any if that is None."""
        p = subprocess.run(words, env=self.env, capture_output=True, text=True, timeout=PATIENCE_S,
                           cwd=self.folder)
        check(status is None or p.returncode == status, f"{words}: {p.returncode}: {p.stdout} {p.stderr}")
        return p.stdout

    def log(self):
        try:
            with open(os.path.join(self.folder, "log"), encoding="utf-8") as f:
                return f.read()
        except FileNotFoundError:
            return ""

    def sweeps(self):
        return self.log().count("SUBNET UP")

    def start_manager(self, *options):
        self.manager = subprocess.Popen(
            ["opensm", "-d2", "-D", "3", "-f", os.path.join(self.folder, "log"), *options], env=self.env,
            cwd=self.folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        await_true(self.sweeps, lambda: f"opensm {options} reaches SUBNET UP: {self.log()[-2000:]}")

    def engine(self):
        """The routing engine that opensm used at last."""
        return re.findall(r"osm_ucast_mgr_process: (\S+) tables configured", self.log())[-1]

    def end(self):
        if self.manager:
            self.manager.terminate()
            try:
                self.manager.wait(10)
            except subprocess.TimeoutExpired:
                self.manager.kill()
                self.manager.wait()
        shutil.rmtree(self.folder)


class At(Place):
    """At a host of a running fabric."""

    def __init__(self, fabric, host, libraries):
        super().__init__({"BUSBAR_FABRIC": f"{fabric.name}/{host}", "LD_LIBRARY_PATH": libraries})

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.end()


def umad2sim():
    return [f for pattern in ("/usr/lib*/umad2sim/", "/usr/lib/*/umad2sim/")
            for f in glob.glob(pattern + "libumad2sim.so")]


class Ibsim(Place):
    """Over ibsim, which makes the subnet that a topology file describes."""

    def __init__(self, file):
        super().__init__({"LD_PRELOAD": umad2sim()[0], "IBSIM_SOCKNAME": f"busbar-stock-{os.getpid()}",
                          "SIM_HOST": "host-1"})
        simulator = {k: v for k, v in self.env.items() if k != "LD_PRELOAD"}
        self.output = open(os.path.join(self.folder, "ibsim"), "w+", encoding="utf-8")
        self.simulator = subprocess.Popen(["ibsim", "-s", file], env=simulator, stdin=subprocess.PIPE,
                                          stdout=self.output, stderr=subprocess.STDOUT, text=True)
        await_true(self.ready, "ibsim starts")

    def ready(self):
        with open(self.output.name, encoding="utf-8") as f:
            return "simulator ready" in f.read()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.end()
        self.simulator.communicate("quit\n", timeout=PATIENCE_S)
        self.output.close()


def has_ibsim():
    return shutil.which("ibsim") and umad2sim()


# ---- programs of verbs ----

def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def listens(port):
    text = f":{port:04X} "
    for name in ("/proc/net/tcp", "/proc/net/tcp6"):
        with open(name, encoding="ascii") as f:
            if any(text in line.split(" rem")[0] + " " and line.split()[3] == "0A" for line in f):
                return True
    return False


def start(fabric, host, *command):
    return subprocess.Popen([BUSBAR, "exec", "-q", "-F", fabric.name, "-P", host, "--", *command],
                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


# What programs say when somebody else has taken their port, or when the server of perftest, which listens
# twice, does not do so yet.
TAKEN = re.compile("already in use|Couldn't (listen|bind|connect)", re.I)


def pair_once(fabric, server, client, command, meanwhile):
    port = free_port()
    words = [*command, "-p", str(port)]
    first = start(fabric, server, *words)
    programs = [first]
    try:
        await_true(lambda: listens(port) or first.poll() is not None, f"{command} listens")
        second = start(fabric, client, *words, "127.0.0.1")
        programs = [second, first]
        if meanwhile:
            meanwhile(first, second)
        else:
            # A server whose client has failed waits for ever.
            await_true(lambda: second.poll() is not None, f"{command} ends at the client")
            if second.returncode:
                first.kill()
        said = [p.communicate(timeout=PATIENCE_S)[0] for p in programs]
    finally:
        for p in programs:
            if p.poll() is None:
                p.kill()
                p.wait()
    return [p.returncode for p in programs], said


def pair(fabric, server, client, *command, meanwhile=None, status=0):
    """The program as a server at one host and as a client at the other; their ends and what they print, the
    client's first. `meanwhile` is called when the client runs. With the status None any end is good."""
    for _ in range(3):
        ends, said = pair_once(fabric, server, client, command, meanwhile)
        if not any(ends) or not any(TAKEN.search(text) for text in said):
            break
    check(status is None or ends == [status, status], f"{command} from {client} to {server}: {ends}: {said}")
    return ends, said


__all__ = ["Fabric", "check", "need", "number_of", "some", "await_true", "At", "Ibsim", "has_ibsim", "pair",
           "start", "free_port", "listens", "BUSBAR", "PATIENCE_S"]
