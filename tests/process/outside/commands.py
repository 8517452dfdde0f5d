#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Every command to a gateway, for each node-type that connects to a server, whatever this server does.

commands.py KIND few|all [SEED [STATE [COMMAND|cycles]]]

few: some combinations of a command and a state of the server, by SEED, which is printed; the server
is a double (double.py). all: all of them, also with the real server; then 50 cycles of commands
(CYCLES: another number), which leave behind no memory, descriptors and threads. STATE and COMMAND
choose one of them.

For each combination the command returns in time, the node or path gets to the state that was asked
for, and the path beside loses nothing. At last the gateway ends in time, with status 0.
"""
import importlib
import os
import random
import re
import signal
import struct
import sys
import tempfile
import threading
import time

import servers
from double import Double
from gateway_process import BUSBAR, Client, Gateway, check
from servers import until, whole_lines

# Two seconds are promised. What is wrong takes longer than this: connect_timeout is 20 s.
PROMISED = 2.0
LIMIT = PROMISED + 3.0
CONNECT_TIMEOUT = 20.0
CYCLES, SETTLED = int(os.environ.get("CYCLES", "50")), 5
# Of 45 cycles, of which 400 to 950 are found also after 400 cycles (the log, the allocator). A cycle
# that leaves 30 KiB behind is found; ASan finds what nobody knows any more.
RESIDENT_KB = 1500
RUNNING = ("connected", "pending-connect")


# ---- servers ----

class Websocket(servers.Kind):
    """The server is another gateway."""
    name = "websocket"
    program = BUSBAR
    port = 8710

    def argv(self, tls, password):
        config = os.path.join(self.folder, "server.conf")
        with open(config, "w") as f:
            f.write('stats = 0.0; http = { address = "127.0.0.1"; port = %d; };\n'
                    'nodes = { account = { type = "websocket"; in = { signals = "2f"; }; }; '
                    's = { type = "signal"; signal = "counter"; rate = 100.0; values = 2; }; };\n'
                    'paths = ( { in = "account"; }, { in = "s"; out = "account"; } );' % self.port)
        return [BUSBAR, "run", "-q", config]

    def node(self, direction, channel, form, tls=None, password=None):
        return 'destinations = [ "ws://127.0.0.1:%d/account" ]; reconnect_interval = 100; %s' % (
            self.port, 'in = { signals = "2f"; };' if direction == "in" else "out = { };")


class Tcp(servers.Kind):
    name = "socket"
    program = BUSBAR
    port = 8711

    def argv(self, tls, password):
        config = os.path.join(self.folder, "server.conf")
        with open(config, "w") as f:
            f.write('stats = 0.0; nodes = { t = { type = "socket"; layer = "tcp-server"; '
                    'in = { address = "127.0.0.1:%d"; signals = "2f"; }; out = { }; }; '
                    's = { type = "signal"; signal = "counter"; rate = 100.0; values = 2; }; };\n'
                    'paths = ( { in = "t"; }, { in = "s"; out = "t"; } );' % self.port)
        return [BUSBAR, "run", "-q", config]

    def node(self, direction, channel, form, tls=None, password=None):
        text = 'layer = "tcp-client"; out = { address = "127.0.0.1:%d"; reconnect_interval = 100; }; ' % self.port
        return text + ('in = { signals = "2f"; };' if direction == "in" else "")


def amqp_method(channel, number, rest):
    payload = struct.pack(">HH", number // 1000, number % 1000) + rest
    return b"\1" + struct.pack(">HI", channel, len(payload)) + payload + b"\xce"


def text(length, what):
    return struct.pack(length, len(what)) + what


def later(data):
    return lambda received: data


NATS_INFO = (b'INFO {"server_id":"D","server_name":"D","version":"2.9.0","proto":1,"headers":true,'
             b'"max_payload":1048576,"jetstream":true,"client_id":1}\r\n')
HTTP_ANSWER = (b'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 60\r\n\r\n'
               b'{"id": "Gateway:n", "type": "Gateway", "counter": {"value"')
# The beginning of what a server answers (double.py, half).
HELLO = {
    "mqtt": [later(b"\x20\2\0\0"), later(b"\x90\3\0\1\1")],
    "mqtt5": [later(b"\x20\3\0\0\0"), later(b"\x90\4\0\1\0\2")],
    "zeromq": [b"\xff" + bytes(7) + b"\1\x7f", later(b"\3\1NULL" + bytes(48)),
               later(b"\4\x19\5READY\x0bSocket-Type\0\0\0\3PUB")],
    "nanomsg": [b"\0SP\0\0\x20\0\0"],
    "nats": [NATS_INFO, later(b"PONG\r\n")],
    "amqp": [later(amqp_method(0, 10010, b"\0\x09" + bytes(4) + text(">I", b"PLAIN") + text(">I", b"en_US"))),
             later(amqp_method(0, 10030, struct.pack(">HIH", 0, 131072, 60))),
             later(amqp_method(0, 10041, b"\0")), later(amqp_method(1, 20011, bytes(4)))],
    # To a question for versions; its number stands in the answer.
    "kafka": [lambda got: struct.pack(">i", 400) + got[8:12] + b"\0\0" + struct.pack(">i", 60) + bytes(30)],
    "redis": [later(b"+PONG\r\n"), later(b"*0\r\n")],
    "influxdb": [later(HTTP_ANSWER)],
    "ngsi": [later(HTTP_ANSWER)],
    # Four registers, of which some are missing.
    "modbus": [lambda got: got[:4] + b"\0\x0b\xff\3\x08" + bytes(4)],
    "websocket": [later(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                        b"Sec-WebSocket-Accept: ")],
}


class MqttSession:
    """A session that stays at the broker."""
    def node(self, direction, channel, form, tls=None, password=None):
        return super().node(direction, channel, form, tls, password) + \
            'client_id = "commands-%s"; clean_session = false; ' % direction


class KafkaGroup:
    properties = "session_timeout_ms = 6000; heartbeat_interval_ms = 500;"
    more = 'group_id = "lab";'


# KIND: module, class, what is mixed in, name of its hello.
KINDS = {
    "mqtt": ("mqtt", "Mqtt", None, "mqtt"),
    "mqtt-session": ("mqtt", "Mqtt5", MqttSession, "mqtt5"),
    "zeromq": ("zeromq", "Zeromq", None, "zeromq"),
    "nanomsg": ("nanomsg", "Nanomsg", None, "nanomsg"),
    "nats": ("nats", "Core", None, "nats"),
    "nats-jetstream": ("nats", "JetStream", None, "nats"),
    "amqp": ("amqp", "Amqp", None, "amqp"),
    "kafka": ("kafka", "Kafka", None, "kafka"),
    "kafka-group": ("kafka", "Kafka", KafkaGroup, "kafka"),
    "redis": ("redis", "Redis", None, "redis"),
    "redis-group": ("redis", "Group", None, "redis"),
    "redis-channel": ("redis", "Channel", None, "redis"),
    "influxdb": ("influxdb", "Influx", None, "influxdb"),
    "influxdb-udp": ("influxdb", "Udp", None, None),
    "ngsi": ("ngsi", "Ngsi", None, "ngsi"),
    "modbus": ("modbus", "Modbus", None, "modbus"),
    "websocket": (None, Websocket, None, "websocket"),
    "socket": (None, Tcp, None, None),
}
ONE_WAY = ("influxdb", "influxdb-udp")
# nng 1.5 can leave a socket and its memory behind (node/nanomsg/sockets.c); the node avoids it.
LIBRARY_LEAKS = {"nanomsg": "libnng"}

DOUBLES = ("absent", "silent", "closes", "nonsense", "half")
REAL = ("works", "killed", "still")


def kind_class(name):
    module, found, more, _ = KINDS[name]
    if module:
        found = getattr(importlib.import_module(module), found)
    return type(name, (more, found), {}) if more else found


def states_of(name):
    states = list(DOUBLES + REAL)
    if not KINDS[name][3]:
        states.remove("half")
    if name == "influxdb-udp":
        # Nobody sees who is there.
        states = ["absent", "works", "killed", "still"]
    return states


# ---- commands ----

# NAME: what precedes it, what is asked, the state that it leads to (None: it runs).
NODE_COMMANDS = {
    "start": (["stop"], "start", None),
    "stop": ([], "stop", "stopped"),
    "pause": ([], "pause", "paused"),
    "resume": (["pause"], "resume", None),
    "restart": ([], "restart", None),
    "stop a paused one": (["pause"], "stop", "stopped"),
}
RELOADS = ("reload the same", "reload with a change", "reload without it")
ENDS = ("restart of the gateway", "shutdown", "SIGTERM")


def commands_of(nodes):
    """All of them: (what, name); `what` is a node, or "path NODE", or the gateway."""
    every = []
    for n in nodes:
        every += [(n, c) for c in NODE_COMMANDS] + [("path " + n, c) for c in NODE_COMMANDS]
        every += [(n, c) for c in RELOADS[1:]]
    return every + [("", RELOADS[0]), ("", "reset")] + [("", c) for c in ENDS]


class Lag(threading.Thread):
    """How late this program got the processor, all in all."""

    def __init__(self):
        super().__init__(daemon=True)
        self.sum = 0.0
        self.start()

    def run(self):
        while True:
            since = time.monotonic()
            time.sleep(0.02)
            late = time.monotonic() - since - 0.02
            # Steps of 10 ms are left out by more than this only.
            self.sum += late if late > 0.005 else 0

    def take(self):
        taken, self.sum = self.sum, 0.0
        return taken


class Scene:
    """A gateway, and a server in one state."""

    def __init__(self, name, kind, state, seed):
        self.name, self.kind, self.state, self.random = name, kind, state, random.Random(seed)
        self.real = state in REAL
        self.nodes = ["o"] if name in ONE_WAY else ["o", "i"]
        self.double = self.gateway = None
        self.beside_file = os.path.join(kind.folder, "beside.csv")
        self.first_row = self.missed = 0
        self.lag = Lag()
        self.slowest = {}
        if state in ("silent", "closes", "nonsense", "half"):
            self.double = Double(kind.port, state, seed, kind.nonsense if state == "nonsense" else
                                 HELLO.get(KINDS[name][3], ()))
        elif self.real:
            kind.start()
        self.begin()

    # ---- the gateway ----

    def config(self, without=None, changed=None):
        channel = "account" if self.real else "n"
        text = ""
        for n in self.nodes:
            keys = self.kind.node("out" if n == "o" else "in", channel, "json")
            if "connect_timeout" not in keys and self.name != "socket":
                keys = "connect_timeout = %s; " % CONNECT_TIMEOUT + keys
            elif self.name != "nanomsg":
                keys = re.sub("connect_timeout = [0-9.]+", "connect_timeout = %s" % CONNECT_TIMEOUT, keys)
            keys = re.sub(r"\btimeout = [0-9.]+", "timeout = %s" % CONNECT_TIMEOUT, keys)
            if n == without:
                # In its place, so that the numbers of paths stay.
                text += '%s = { type = "signal"; signal = "counter"; rate = 10.0; }; not-%s = { type = "loopback"; };\n' % (n, n)
            else:
                text += '%s = { type = "%s"; %s };\n' % (n, self.kind.name, keys.replace(
                    "reconnect_interval = 100", "reconnect_interval = %d" % (101 if n == changed else 100)))
        paths = ['{ in = "sig"; out = "%s"; }' % ("not-o" if without == "o" else "o")]
        paths += ['{ in = "i"; }'] if "i" in self.nodes else []
        return """
nodes = {
sig = { type = "signal"; signal = "counter"; rate = 100.0; values = 2; };
beside = { type = "signal"; signal = "counter"; rate = 100.0; values = 1; };
g = { type = "file"; uri = "%s"; format = "csv"; out = { flush = true; }; };
%s};
paths = ( %s, { in = "beside"; out = "g"; } );
""" % (self.beside_file, text, ", ".join(paths))

    def begin(self):
        if os.path.exists(self.beside_file):
            os.unlink(self.beside_file)
        self.first_row = self.missed = 0
        self.gateway = Gateway(self.kind.folder, "gateway", self.config())
        self.settle()

    def log(self):
        with open(self.gateway.log) as f:
            return f.read()[-2500:]

    def ask(self, path, method="GET"):
        return self.gateway.ask(path, method)

    def path_of(self, node):
        return "/path/%d" % self.nodes.index(node)

    def state_of(self, what):
        return self.ask(self.path_of(what[5:]) if what.startswith("path ") else "/node/" + what)["state"]

    def stats(self, node):
        return self.ask("/node/" + node)["stats"]

    # ---- what is awaited ----

    def await_running(self, node, after=None):
        """That it is as the server lets it be, and has tried."""
        want = RUNNING
        if self.state == "absent" and self.name != "influxdb-udp":
            want = ("pending-connect",)
        elif self.state in ("works", "killed"):
            want = ("connected",)
        state = None

        def there():
            nonlocal state
            state = self.state_of(node)
            if state not in want:
                return False
            return not self.double or after is None or self.double.accepted > after
        until(there, lambda: "node %s is %s, and has tried: %s\n%s" % (node, " or ".join(want), state, self.log()), 60)

    def settle(self):
        for n in self.nodes:
            self.await_running(n)
        if self.state == "works":
            self.await_samples()

    def await_samples(self):
        """A real server takes samples, and gives some."""
        for n in self.nodes:
            key = "sent" if n == "o" else "received"
            before = self.stats(n)[key]
            until(lambda: self.stats(n)[key] > before, lambda: "%s of node %s: %s\n%s" % (
                key, n, self.stats(n), self.log()), 40)

    def beside(self):
        """Sequence numbers of the other path."""
        with open(self.beside_file) as f:
            return [int(line.split(",")[3]) for line in whole_lines(f) if line[0] != "#" and line.endswith("\n")]

    def begin_rows(self):
        """The counters begin anew. Steps that were left out before the next row were counted before."""
        before = len(self.beside())
        until(lambda: len(self.beside()) > before, lambda: "the path beside goes on: " + self.log(), 20)
        self.first_row, self.missed = len(self.beside()) - 1, 0

    def check_beside(self):
        """Nothing is missing, but for steps that a late generator left out."""
        before = len(self.beside())
        until(lambda: len(self.beside()) > before, lambda: "the path beside goes on: " + self.log(), 20)
        # In this order: what is counted later is no excuse.
        rows = self.beside()[self.first_row:]
        path = self.ask("/path/%d/stats" % len(self.nodes))["stats"]
        missed = self.stats("beside")["missed"]
        gaps = rows[-1] - rows[0] + 1 - len(rows)
        check(rows == sorted(set(rows)), "the path beside goes on in order")
        check(path["dropped"] == 0 and gaps <= missed, "the path beside loses nothing: %d of %d, %d were left out; %s" % (
            gaps, len(rows), missed, path))
        new, self.missed = missed - self.missed, missed
        lag = self.lag.take()
        check(new <= 100 * (1.0 + 3 * lag), "the path beside stood still: %d steps were left out, lag %.2f s" % (new, lag))

    # ---- one command ----

    def timed(self, what, call):
        since = time.monotonic()
        call()
        took = time.monotonic() - since
        self.slowest[what] = max(self.slowest.get(what, 0), took)
        check(took < LIMIT, "%s takes %.2f s\n%s" % (what, took, self.log()))

    def post(self, what, path):
        self.timed(what, lambda: self.ask(path, "POST"))

    def kill_meanwhile(self):
        """The server dies about now."""
        if self.state != "killed":
            return None
        delay = self.random.choice((0, 0.001, 0.003, 0.01, 0.03))
        thread = threading.Thread(target=lambda: (time.sleep(delay), self.kind.kill()))
        thread.start()
        return thread

    def revive(self, thread):
        if thread:
            thread.join()
            self.kind.start()

    def still(self, on):
        if self.state == "still":
            self.kind.signal(signal.SIGSTOP if on else signal.SIGCONT)
            if on:
                time.sleep(0.05)

    def run(self, what, name):
        """One of commands_of()."""
        accepted = self.double.accepted if self.double else 0
        shown = ("%s %s" % (what, name)).strip()
        if name in ENDS:
            self.end(name)
            return
        node = what[5:] if what.startswith("path ") else what
        base = self.path_of(node) if what.startswith("path ") else "/node/" + node
        before, verb, expected = NODE_COMMANDS.get(name, ([], None, None))
        for v in before:
            self.ask("%s/%s" % (base, v), "POST")
        self.still(True)
        killer = self.kill_meanwhile()
        if name == "reset":
            self.post(shown, "/stats/reset")
            self.begin_rows()
        elif name in RELOADS:
            self.reload(shown, name, node)
        else:
            self.post(shown, base + "/" + verb)
            state = self.state_of(what)
            if what.startswith("path "):
                check(state == (expected or state) and state in ("running", "waiting", "stopped", "paused"),
                      "%s: it is %s" % (shown, state))
                check(expected or state not in ("stopped", "paused"), "%s: it is %s" % (shown, state))
            else:
                check(state == expected if expected else state in RUNNING + ("started",), "%s: it is %s" % (shown, state))
        self.still(False)
        self.revive(killer)
        # Back to where it was.
        if expected:
            self.ask(base + "/" + ("start" if expected == "stopped" else "resume"), "POST")
        if node and what in self.nodes and (verb in ("start", "stop", "restart") or name in RELOADS):
            self.await_running(node, accepted)
        self.settle()
        self.check_beside()

    def reload(self, shown, name, node):
        g = self.gateway
        if name == RELOADS[0]:
            self.post(shown, "/reload")
        elif name == RELOADS[1]:
            g.write(self.config(changed=node))
            self.post(shown, "/reload")
            g.write(self.config())
            self.post(shown, "/reload")
        else:
            g.write(self.config(without=node))
            self.post(shown, "/reload")
            g.write(self.config())
            self.post(shown, "/reload")

    def end(self, name):
        """The gateway ends, or begins anew; afterwards there is one again."""
        g, process = self.gateway, self.gateway.process
        self.still(True)
        killer = self.kill_meanwhile()
        if name == ENDS[0]:
            self.timed(name, lambda: self.begin_anew(g))
            self.still(False)
            self.revive(killer)
            self.begin_rows()
            self.settle()
            self.check_beside()
            return

        def act():
            if name == "SIGTERM":
                process.terminate()
            else:
                self.ask("/shutdown", "POST")
            self.status = process.wait(60)
        self.timed(name, act)
        # 3 only if a server without sense has refused samples.
        refused = self.state in ("nonsense", "half") and re.search("lost.*refused", self.log())
        check(self.status == (3 if refused else 0), "%s: status %d\n%s" % (name, self.status, self.log()))
        self.still(False)
        self.revive(killer)
        self.begin()

    def begin_anew(self, g):
        check(g.ask("/restart", "POST")["restarts"] == 1, "it begins anew")
        # The old gateway ends the connection.
        try:
            check(not g.client.file.readline(), "the connection ends")
        except ConnectionResetError:
            pass

        def again():
            try:
                g.client = Client(g.control)
                return g.client.ask("/status")["status"] == 200
            except (OSError, ValueError):
                return False
        until(again, lambda: "it is there again: " + self.log(), 30)

    # ---- many cycles ----

    def cycle(self, number):
        for n in self.nodes:
            accepted = self.double.accepted if self.double else 0
            if number % 3:
                self.post("restart (cycle)", "/node/%s/restart" % n)
            else:
                self.post("stop (cycle)", "/node/%s/stop" % n)
                self.post("start (cycle)", "/node/%s/start" % n)
            self.await_running(n, accepted)
            if self.state == "killed" and number % 10 == 9:
                self.kind.kill()
                self.kind.start()
        if number % 5 == 4:
            self.gateway.write(self.config(changed=self.nodes[number % len(self.nodes)]))
            self.post("reload (cycle)", "/reload")
            self.gateway.write(self.config())
            self.post("reload (cycle)", "/reload")

    def figures(self):
        """Descriptors and threads with all nodes stopped, once they are no more than `most`."""
        pid = self.gateway.process.pid
        return self.gateway.descriptors(), len(os.listdir("/proc/%d/task" % pid)), self.gateway.resident_kb()

    def leaks(self, cycles):
        first = None
        for number in range(cycles):
            self.cycle(number)
            if number + 1 in (SETTLED, cycles):
                for n in self.nodes:
                    self.post("stop (cycle)", "/node/%s/stop" % n)
                # Threads that were left behind, and descriptors that a library closes a little later.
                time.sleep(0.2)
                if first is None:
                    # What ends on its own has the time to.
                    last = None
                    while last != self.figures()[:2]:
                        last = self.figures()[:2]
                        time.sleep(0.3)
                    first = self.figures()
                else:
                    until(lambda: self.figures()[0] <= first[0] and self.figures()[1] <= first[1],
                          lambda: "descriptors, threads, KiB: %s, then %s\n%s" % (first, self.figures(), self.what_is_open()), 15)
                    now = self.figures()
                    print("    %s: %d cycles: descriptors %d -> %d, threads %d -> %d, %d -> %d KiB" % (
                        self.state, cycles, first[0], now[0], first[1], now[1], first[2], now[2]), flush=True)
                    check(now[2] - first[2] < RESIDENT_KB or self.gateway.sanitized(),
                          "memory: %d KiB, then %d" % (first[2], now[2]))
                for n in self.nodes:
                    self.post("start (cycle)", "/node/%s/start" % n)
        self.settle()
        self.check_beside()

    def what_is_open(self):
        folder = "/proc/%d" % self.gateway.process.pid
        names = []
        for fd in os.listdir(folder + "/fd"):
            try:
                name = os.readlink(folder + "/fd/" + fd)
                if name.startswith("socket:"):
                    with open(folder + "/net/tcp") as f:
                        name += "".join(l.rstrip()[:90] for l in f if " %s " % name[8:-1] in l)
                names.append(name)
            except OSError:
                pass
        for task in os.listdir(folder + "/task"):
            with open("%s/task/%s/comm" % (folder, task)) as f:
                names.append(f.read().strip())
        return sorted(names)

    def close(self):
        if self.gateway and self.gateway.process.poll() is None:
            self.gateway.process.kill()
            self.gateway.process.wait()
        if self.double:
            self.double.close()
        if self.kind.process:
            self.still(False)
        self.kind.kill()


# ---- what is run ----

def run_state(name, folder, state, seed, choose, cycles):
    """`choose` takes the list of commands and returns those that are run."""
    kind = kind_class(name)(folder)
    scene = None
    since = time.monotonic()
    shown = state
    try:
        if name in LIBRARY_LEAKS:
            with open(os.path.join(folder, "leaks"), "w") as f:
                f.write("leak:%s\n" % LIBRARY_LEAKS[name])
            os.environ["LSAN_OPTIONS"] = "suppressions=%s/leaks:print_suppressions=0" % folder
        scene = Scene(name, kind, state, seed)
        for what, command in choose(commands_of(scene.nodes)):
            shown = ("%s, %s %s" % (state, what, command))
            try:
                scene.run(what, command)
            except Exception:
                if scene.gateway.process.poll() is None and os.environ.get("COMMANDS_STACKS"):
                    os.system("gdb -p %d -batch -ex 'thread apply all bt' 2>/dev/null | tail -150" % scene.gateway.process.pid)
                raise
        shown = "%s, %d cycles" % (state, cycles)
        if cycles:
            scene.leaks(cycles)
        shown = state + ", the end"
        scene.end("SIGTERM")
        slow = {k: round(v, 2) for k, v in scene.slowest.items() if v > PROMISED / 2}
        print("%s: %.1f s%s" % (state, time.monotonic() - since, ", slow: %s" % slow if slow else ""), flush=True)
    except Exception:
        print("%s: failed with seed %d" % (shown, seed), flush=True)
        with open(os.path.join(folder, "gateway.log")) as f:
            print(f.read()[-5000:])
        raise
    finally:
        if scene:
            scene.close()
        else:
            kind.kill()
        if hasattr(kind, "end_children"):
            kind.end()
        servers.end_all(folder)


def cycles_of(name, state, how, only_commands):
    if only_commands and only_commands != ["cycles"]:
        return 0
    if how == "few":
        return SETTLED + 3
    # The mock lets a member of a group wait for those before it until their session ends.
    return SETTLED + 3 if name == "kafka-group" and state in REAL else CYCLES


def main():
    name, how = sys.argv[1:3]
    seed = int(sys.argv[3]) if len(sys.argv) > 3 else random.randrange(1 << 30)
    only_states = sys.argv[4:5]
    only_commands = sys.argv[5:6]
    os.environ.update(MALLOC_ARENA_MAX="1", MALLOC_TRIM_THRESHOLD_="65536")
    if not os.environ.get("IN_NETWORK"):
        sys.argv[3:4] = [str(seed)]
        print("seed %d" % seed, flush=True)
    servers.prepare(kind_class(name), how == "all")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    r = random.Random(seed)
    states = [s for s in states_of(name) if (how == "all" or s in DOUBLES) and s in (only_states or [s])]
    if how == "few":
        states = r.sample(states, min(2, len(states)))
    for state in states:
        with tempfile.TemporaryDirectory(prefix="busbar-commands-") as folder:
            os.chmod(folder, 0o755)

            def choose(every):
                if only_commands:
                    return [c for c in every if " ".join(c).strip() == only_commands[0]]
                if how == "few":
                    return r.sample(every, 4)
                # RabbitMQ needs ten seconds and more to start again.
                return r.sample(every, 8) if name == "amqp" and state == "killed" else every
            run_state(name, folder, state, seed, choose, cycles_of(name, state, how, only_commands))


main()
