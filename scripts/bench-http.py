#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""What requests over HTTP and clients by WebSocket cost a path that must be punctual.

usage: bench-http.py [OPTIONS] [BUILD]

A gateway generates samples and sends them from one `infiniband` node to another on the
software adapter, in turns without and with a load: requests by keep-alive connections, and
clients that look at a tap of the receiver. Prints for each round which share of the steps was
left out and the percentiles of the latency from the generator's stamp to the path behind the
receiver; then the medians of both and their ratios. The load is made by a process of its own, which needs
a processor, too: its share is printed, and --load-cpu says where it runs.
"""
import argparse
import json
import os
import re
import resource
import selectors
import socket
import statistics
import subprocess
import sys
import tempfile
import time

CONFIG = """
http = { port = %(port)d; max_connections = 4000; };
hugepages = 0; stats = 0.0; priority = %(priority)d;
nodes = {
	generator = { type = "signal"; signal = "mixed"; values = %(values)d; rate = %(rate)d; };
	sender = { type = "infiniband"; in = { address = "127.0.0.1:1437"; };
		out = { address = "127.0.0.1:1438"; max_wrs = 4096; cq_size = 4096; }; };
	receiver = { type = "infiniband"; in = { address = "127.0.0.1:1438"; polling = "%(polling)s"; max_wrs = 4096;
		cq_size = 4096; buffer_subtraction = 64;
		signals = { count = %(values)d; type = "float"; }; }; };
	end = { type = "loopback"; queuelen = 64; };
};
paths = ( { in = "generator"; out = "sender"; queuelen = 1024; },
	{ in = "receiver"; out = "end"; queuelen = 1024; } );
"""
REQUESTS = ("/api/v2/status", "/api/v2/node/receiver", "/api/v2/stats", "/metrics")
TAP = "/tap/receiver/in?rate=%d"
CONNECTIONS = 50


def parse_arguments():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("build", nargs="?", default="build", help="build folder (%(default)s)")
    p.add_argument("--rate", type=int, default=100000, help="samples per second (%(default)s)")
    p.add_argument("--values", type=int, default=8, help="of a sample (%(default)s)")
    p.add_argument("--requests", type=int, default=1000, help="per second (%(default)s)")
    p.add_argument("--clients", type=int, default=200, help="by WebSocket (%(default)s)")
    p.add_argument("--tap-rate", type=int, default=100, help="samples per second for each (%(default)s)")
    p.add_argument("--seconds", type=float, default=5, help="of a round (%(default)s)")
    p.add_argument("--rounds", type=int, default=5, help="of each kind (%(default)s)")
    p.add_argument("--port", type=int, default=18080, help="of the gateway (%(default)s)")
    p.add_argument("--priority", type=int, default=0, help="of the paths, SCHED_FIFO (%(default)s: none)")
    p.add_argument("--polling", default="auto", help="of the receiver: auto, busy, adaptive or event (%(default)s)")
    p.add_argument("--cpu", help="processors of the gateway, as of taskset -c")
    p.add_argument("--load-cpu", help="processors of the load")
    p.add_argument("--make-load", action="store_true", help=argparse.SUPPRESS)
    return p.parse_args()


class Connection:
    """Keep-alive, with one request under way at most."""

    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.asked_s = None
        self.buffer = b""

    def ask(self, path, now_s):
        self.asked_s = now_s
        self.socket.sendall(b"GET %s HTTP/1.1\r\nHost: localhost\r\n\r\n" % path.encode())

    def take(self):
        """The status of the answer once it is complete; else 0."""
        self.buffer += self.socket.recv(1 << 20)
        head, found, body = self.buffer.partition(b"\r\n\r\n")
        if not found or len(body) < int(re.search(rb"Content-Length: (\d+)", head).group(1)):
            return 0
        self.buffer = b""
        return int(head[9:12])


class Client:
    """Reads a tap and forgets."""

    def __init__(self, port, path):
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.socket.sendall(("GET %s HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                             "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
                             % path).encode())
        answer = self.socket.recv(4096)
        if b" 101 " not in answer:
            sys.exit("the tap %s: %s" % (path, answer.decode(errors="replace")))
        self.bytes = 0


def make_load(o):
    """Until SIGTERM would be too late for the figures: for --seconds."""
    connections = [Connection(o.port) for _ in range(CONNECTIONS)]
    clients = [Client(o.port, TAP % o.tap_rate) for _ in range(o.clients)]
    waiting = selectors.DefaultSelector()
    for c in connections + clients:
        waiting.register(c.socket, selectors.EVENT_READ, c)
    print("ready", flush=True)
    sys.stdin.readline()
    free, latencies, bad, behind = list(connections), [], 0, 0
    start = now = time.monotonic()
    sent = 0
    while now - start < o.seconds:
        while sent < (now - start) * o.requests and free:
            free.pop().ask(REQUESTS[sent % len(REQUESTS)], now)
            sent += 1
        behind = max(behind, (now - start) * o.requests - sent)
        for key, _ in waiting.select(0.001):
            c = key.data
            if isinstance(c, Client):
                c.bytes += len(c.socket.recv(1 << 16))
                continue
            status = c.take()
            if status:
                latencies.append(time.monotonic() - c.asked_s)
                bad += status != 200
                free.append(c)
        now = time.monotonic()
    used = resource.getrusage(resource.RUSAGE_SELF)
    latencies.sort()
    print(json.dumps({
        "requests_hz": len(latencies) / (now - start), "refused": bad, "behind": int(behind),
        "p50_ms": latencies[len(latencies) // 2] * 1e3 if latencies else 0,
        "p99_ms": latencies[len(latencies) * 99 // 100] * 1e3 if latencies else 0,
        "clients_kb_s": sum(c.bytes for c in clients) / 1e3 / (now - start),
        "idle_clients": sum(not c.bytes for c in clients),
        "cpu": (used.ru_utime + used.ru_stime) / (now - start)}), flush=True)


def on(cpus, command):
    return ["taskset", "-c", cpus, *command] if cpus else command


def wait_for(log, text, process):
    end = time.monotonic() + 30
    while text not in open(log, encoding="utf-8").read():
        if process.poll() is not None or time.monotonic() > end:
            sys.exit("no '%s' in the log of the gateway:\n%s" % (text, open(log, encoding="utf-8").read()))
        time.sleep(0.01)


def server_seconds(pid):
    """What the threads of the HTTP server have used of processors."""
    used = 0
    for task in os.listdir("/proc/%d/task" % pid):
        with open("/proc/%d/task/%s/stat" % (pid, task), encoding="utf-8") as f:
            name, rest = f.read().split("(", 1)[1].rsplit(")", 1)
        if name.startswith("http"):
            used += sum(int(n) for n in rest.split()[11:13])
    return used / os.sysconf("SC_CLK_TCK")


def run_round(o, folder, loaded):
    """The gateway's figures and those of the load."""
    config, log = os.path.join(folder, "x.conf"), os.path.join(folder, "log")
    with open(config, "w", encoding="utf-8") as f:
        f.write(CONFIG % vars(o))
    with open(log, "w", encoding="utf-8") as f:
        gateway = subprocess.Popen(on(o.cpu, [os.path.join(o.build, "busbar"), "run", "-q", "--summary=json", config]),
                                   stdout=subprocess.PIPE, stderr=f, text=True)
    try:
        wait_for(log, "receiver: connected to", gateway)
        reset = b"POST /api/v2/stats/reset HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n"
        load = None
        if loaded:
            load = subprocess.Popen(on(o.load_cpu, [sys.executable, __file__, "--make-load", *sys.argv[1:]]),
                                    stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            if load.stdout.readline() != "ready\n":
                sys.exit("no load")
        with socket.create_connection(("127.0.0.1", o.port)) as s:  # the start counts for nothing
            s.sendall(reset)
            if b" 200 " not in s.recv(4096):
                sys.exit("the figures cannot be set to zero")
        if load:
            before = server_seconds(gateway.pid)
            figures = json.loads(load.communicate("go\n")[0])
            figures["server_cpu"] = (server_seconds(gateway.pid) - before) / o.seconds
        else:
            figures = None
            time.sleep(o.seconds)
    finally:
        gateway.terminate()
        summary = json.loads(gateway.communicate()[0])
    return summary, figures


def print_round(name, s, load):
    generator = s["nodes"]["generator"]
    path = s["paths"][1]
    steps = path["samples"] + generator["missed"]
    r = {"missed": generator["missed"] / steps, "p50": path["latency"]["p50_us"],
         "p99": path["latency"]["p99_us"], "samples": path["samples"]}
    line = "%-8s missed %8.5f %%  p50 %8.1f us  p99 %9.1f us  %9d samples" % (
        name, 100 * r["missed"], r["p50"], r["p99"], r["samples"])
    if load:
        line += "  | %.0f requests/s p50 %.1f ms p99 %.1f ms, %d refused; clients %.0f kB/s, %d without data; processors used: server %.2f, load %.2f" % (
            load["requests_hz"], load["p50_ms"], load["p99_ms"], load["refused"], load["clients_kb_s"],
            load["idle_clients"], load["server_cpu"], load["cpu"])
    print(line, flush=True)
    return r


def main():
    o = parse_arguments()
    if o.make_load:
        make_load(o)
        return
    print("%d samples/s of %d values; load: %d requests/s, %d clients by WebSocket; %d processors" % (
        o.rate, o.values, o.requests, o.clients, os.cpu_count()))
    results = {"without": [], "with": []}
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(o.rounds):
            for name in results:
                results[name].append(print_round(name, *run_round(o, folder, name == "with")))
    medians = {name: {key: statistics.median(r[key] for r in rounds) for key in ("missed", "p50", "p99")}
               for name, rounds in results.items()}
    for name, m in medians.items():
        print("median %-8s missed %8.5f %%  p50 %8.1f us  p99 %9.1f us" % (name, 100 * m["missed"], m["p50"], m["p99"]))
    print("with / without: missed %s, p50 %s, p99 %s" % tuple(
        "%.2f" % (medians["with"][key] / medians["without"][key]) if medians["without"][key] else "none without"
        for key in ("missed", "p50", "p99")))


main()
