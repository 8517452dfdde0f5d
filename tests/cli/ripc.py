#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""`busbar ripc`: ping, get, and files through the bridge, byte for byte; what clients that
stop reading, or send nonsense, do to others: nothing.

BUSBAR: the executable under test (required)."""
import http.client
import json
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

BUSBAR = os.environ["BUSBAR"]
SIZES = {"zero": 0, "one": 1, "f4095": 4095, "f128k": 131072, "f20m": 20 << 20}
failed = 0


def check(what, good, detail=""):
    global failed
    if not good:
        print(f"failed: {what} {detail}")
        failed = 1


class Server:
    """A verb that serves until it is interrupted; its first line is read."""

    def __init__(self, *args, within=()):
        self.process = subprocess.Popen([*within, BUSBAR, "ripc", *args], stdout=subprocess.PIPE,
                                        text=True)
        self.line = self.process.stdout.readline()

    def end(self):
        """Its status and the rest of its output."""
        self.process.send_signal(signal.SIGINT)
        rest, _ = self.process.communicate(timeout=20)
        return self.process.returncode, rest


def busbar(*args):
    return subprocess.run([BUSBAR, "ripc", *args], capture_output=True, timeout=30, check=False)


def ping(name):
    server = Server("serve", name, "--counters")
    for args, count in ((["-s", "1400"], 50), (["-l", "-s", "100000"], 20),
                        (["--short-by", "datagram"], 20)):
        run = busbar("ping", "-j", "-i", "0", "-c", str(count), *args, name)
        check("ping ends well", run.returncode == 0, run.stderr.decode())
        if run.returncode:
            continue
        got = json.loads(run.stdout)
        check("all came back", got["received"] == count and not got["corrupt"], str(got))
        check("there are times", 0 < got["min_us"] <= got["median_us"] <= got["p99_us"])
    run = busbar("list", name, "-W", "2", "no-such-service")
    check("list finds one of two", run.returncode == 1 and
          f"{name} 0x".encode() in run.stdout and b"nobody answers" in run.stdout)
    shown(name, server.process.pid)
    check("ping of nobody fails", busbar("ping", "-c", "1", "0x7fffffff").returncode == 1)
    check("too long for a short message is a usage error",
          busbar("ping", "-s", "100000", name).returncode == 2)
    status, rest = server.end()
    check("serve ends with Ctrl-C", status == 0, str(status))
    check("it sent back what came", json.loads(rest)["failed"] == 0, rest)


def again(ask, good, seconds=20):
    """The answer; asked again while a process that gets no processor is not in it."""
    end = time.monotonic() + seconds
    while not good(got := ask()) and time.monotonic() < end:
        time.sleep(0.05)
    return got


def shown(name, pid):
    """What the instance shows to others of this user."""
    def mine_of(services):
        return [s for s in services if s["name"] == name and s["pid"] == pid]

    services = again(lambda: json.loads(busbar("list", "-j").stdout)["services"], mine_of)
    mine = mine_of(services)
    check("list shows the service of this host", len(mine) == 1, str(services))
    by_name = json.loads(busbar("list", "-j", name).stdout)[name]
    check("its number and address are those that its name leads to", mine and
          (by_name["id"], by_name["address"]) == (mine[0]["id"], mine[0]["address"]))
    run = again(lambda: busbar("top", "-c", "1", "-j"), lambda run: f'{pid},'.encode() in run.stdout)
    top = [i for i in json.loads(run.stdout)["instances"] if i["pid"] == pid]
    check("top shows its counters", len(top) == 1 and
          top[0]["counters"]["short_received"] > 50, run.stdout.decode())
    line = f" {pid} ".encode()
    check("top prints a line for it",
          line in again(lambda: busbar("top", "-c", "1").stdout, lambda out: line in out))
    check("top takes no operands", busbar("top", name).returncode == 2)
    stranger = ["setpriv", "--reuid=65534", "--clear-groups"]
    # Who cannot reach the program, below the home of somebody else, cannot ask.
    if os.geteuid() == 0 and not subprocess.run([*stranger, "test", "-r", BUSBAR],
                                                check=False).returncode:
        run = subprocess.run([*stranger, BUSBAR, "ripc", "list"], capture_output=True,
                             timeout=30, check=False)
        check("other users see nothing", run.returncode == 0 and b"SERVICE" in run.stdout and
              name.encode() not in run.stdout, run.stdout.decode() + run.stderr.decode())


def unmapped(name):
    """Users that their namespaces do not map have the same number, and see nothing of each other."""
    def within(uid):
        return ["setpriv", f"--reuid={uid}", "--clear-groups", "unshare", "-U"]

    if os.geteuid() or subprocess.run([*within(12345), "test", "-r", BUSBAR], check=False,
                                      stderr=subprocess.DEVNULL).returncode:
        return
    server = Server("serve", name, within=within(12345))
    for uid in 12345, 23456:
        run = subprocess.run([*within(uid), BUSBAR, "ripc", "list"], capture_output=True,
                             timeout=30, check=False)
        check(f"user {uid} sees nothing", run.returncode == 0 and b"SERVICE" in run.stdout and
              name.encode() not in run.stdout, run.stdout.decode() + run.stderr.decode())
    status, _ = server.end()
    check("serve ends with Ctrl-C", status == 0, str(status))


class Connection(http.client.HTTPConnection):
    def __init__(self, port):
        super().__init__("127.0.0.1", port, timeout=20)

    def ask(self, path, method="GET", **fields):
        self.request(method, path, headers={k.replace("_", "-"): v for k, v in fields.items()})
        answer = self.getresponse()
        return answer, answer.read()


def content(files, port, folder):
    c = Connection(port)
    for name, data in files.items():
        answer, got = c.ask("/" + name)
        check(f"{name} through the bridge", answer.status == 200 and got == data)
        out = os.path.join(folder, "out")
        run = busbar("get", "-o", out, "--chunk", "8", "test-files", name)
        check(f"{name} by get", run.returncode == 0 and open(out, "rb").read() == data,
              run.stderr.decode())
        answer, got = c.ask("/" + name, "HEAD")
        check(f"HEAD of {name}", answer.status == 200 and not got and
              answer.getheader("Content-Length") == str(len(data)))
    if shutil.which("curl"):
        run = subprocess.run(["curl", "-sS", "-m", "20", f"http://127.0.0.1:{port}/f20m"],
                             capture_output=True, check=False)
        check("curl gets the same", run.stdout == files["f20m"], run.stderr.decode())
    out = os.path.join(folder, "none")
    check("get of nothing fails", busbar("get", "-o", out, "test-files", "none").returncode == 1)
    check("and leaves no file", not os.path.exists(out))


def answers(files, port):
    c = Connection(port)
    data = files["f4095"]
    for value, status, want in (("bytes=100-199", 206, data[100:200]),
                                ("bytes=-5", 206, data[-5:]), ("bytes=4000-", 206, data[4000:]),
                                ("bytes=4095-", 416, None), ("bytes=0-1,5-6", 200, data)):
        answer, got = c.ask("/f4095", Range=value)
        check(f"range {value}", answer.status == status and want in (None, got),
              str(answer.status))
    answer, _ = c.ask("/f4095")
    since, tag = answer.getheader("Last-Modified"), answer.getheader("ETag")
    check("no news is 304", c.ask("/f4095", If_Modified_Since=since)[0].status == 304)
    check("the same tag is 304", c.ask("/f4095", If_None_Match=tag)[0].status == 304)
    check("an old date is 200", c.ask("/f4095", If_Modified_Since=
                                      "Sun, 06 Nov 1994 08:49:37 GMT")[0].status == 200)
    check("another tag is all", c.ask("/f4095", Range="bytes=0-1", If_Range='"x"')[1] == data)
    for path, status in (("/none", 404), ("/../secret", 403), ("/%2e%2e/secret", 403),
                         ("/link", 403), ("/folder", 301), ("/folder/", 200), ("/%zz", 400)):
        answer, got = c.ask(path)
        check(path, answer.status == status and b"SECRET" not in got, str(answer.status))
    check("type", c.ask("/folder/")[0].getheader("Content-Type").startswith("text/html"))
    check("others than GET and HEAD", c.ask("/one", "DELETE")[0].status == 405)
    # A request that is too long for a short message goes as a long one.
    check("long request", c.ask("/one", Cookie="x" * 9000)[1] == files["one"])


def raw(port, text):
    """What comes back until the bridge closes."""
    with socket.create_connection(("127.0.0.1", port), 20) as s:
        s.settimeout(20)
        s.sendall(text)
        got = b""
        while True:
            more = s.recv(65536)
            if not more:
                return got
            got += more


def streams(files, port):
    two = b"GET /one HTTP/1.1\r\nHost: a\r\n\r\nHEAD /f4095 HTTP/1.1\r\nHost: a\r\n\r\n"
    got = raw(port, two + b"GET /f4095 HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
    check("pipelining", got.count(b"HTTP/1.1 200") == 3 and got.endswith(files["f4095"]))
    got = raw(port, b"GET /one HTTP/1.0\r\n\r\n")
    check("1.0 is closed", got.endswith(b"\r\n\r\n" + files["one"]))
    for text, status in ((b"nonsense\r\n\r\n", b"400"), (b"GET / HTTP/3.0\r\n\r\n", b"505"),
                         (b"GET /" + b"a" * 20000, b"431"),
                         (b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nab", b"501")):
        got = raw(port, text)
        check(f"{text[:10]} gets {status}", got.startswith(b"HTTP/1.1 " + status), str(got[:40]))


def crowd(files, port):
    """20 at once, while one has asked for much and does not read."""
    with socket.create_connection(("127.0.0.1", port), 20) as stuck:
        stuck.sendall(b"GET /f20m HTTP/1.1\r\nHost: a\r\n\r\n")
        got = {}

        def one(i):
            c = Connection(port)
            for name in ("f128k", "one", "f20m" if i < 2 else "f4095"):
                got[i, name] = c.ask("/" + name)[1] == files[name]

        threads = [threading.Thread(target=one, args=(i,)) for i in range(20)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        check("20 clients", len(got) == 60 and all(got.values()), str(len(got)))


def deaf(files, option, name):
    """Clients that do not read hold all places, or all memory: others are served nevertheless."""
    bridge = Server("bridge", "-s", "test-files", "-l", "127.0.0.1:0", option, "--counters")
    port = int(bridge.line.rstrip("/\n").rpartition(":")[2])
    stuck = []
    for _ in range(8):
        stuck.append(socket.create_connection(("127.0.0.1", port), 20))
        stuck[-1].sendall(b"GET /" + name.encode() + b" HTTP/1.1\r\nHost: a\r\n\r\n")
    check(f"served beside deaf ones, {option}", Connection(port).ask("/one")[1] == files["one"])
    for s in stuck:
        s.close()
    check("the bridge ends", bridge.end()[0] == 0)


def counters(text):
    return json.loads(text.splitlines()[-1])


def serving(folder):
    random.seed(1)
    root = os.path.join(folder, "root")
    os.makedirs(os.path.join(root, "folder"))
    files = {name: random.randbytes(size) for name, size in SIZES.items()}
    for name, data in files.items():
        with open(os.path.join(root, name), "wb") as f:
            f.write(data)
    with open(os.path.join(folder, "secret"), "w", encoding="ascii") as f:
        f.write("SECRET")
    with open(os.path.join(root, "folder", "index.html"), "w", encoding="ascii") as f:
        f.write("<p>hello")
    os.symlink("../secret", os.path.join(root, "link"))
    server = Server("serve", "-d", root, "--counters", "test-files")
    bridge = Server("bridge", "-s", "test-files", "-l", "127.0.0.1:0", "--counters")
    port = int(bridge.line.rstrip("/\n").rpartition(":")[2])
    content(files, port, folder)
    answers(files, port)
    streams(files, port)
    crowd(files, port)
    deaf(files, "--clients=8", "f20m")
    deaf(files, "--held=1", "f20m")
    status, rest = bridge.end()
    check("the bridge ends with Ctrl-C", status == 0, str(status))
    check("it held nobody back", counters(rest)["failed"] == 0, rest)
    status, rest = server.end()
    check("the server ends with Ctrl-C", status == 0, str(status))
    n = counters(rest)
    # A client that has its answer and ends may not have confirmed it.
    check("every request is accounted for", n["refused"] == 0 and
          n["requests"] == n["answered"] + n["failed"], rest)
    check("files lie registered", n["registrations"] < 40 and n["copies"] == 0, rest)


def changes(folder):
    """A file that changes is seen, by a bridge that was there before its server."""
    root = os.path.join(folder, "changing")
    os.makedirs(root)
    bridge = Server("bridge", "-s", "test-late", "-l", "127.0.0.1:0")
    port = int(bridge.line.rstrip("/\n").rpartition(":")[2])
    check("nobody there is 504", Connection(port).ask("/a")[0].status == 504)
    server = Server("serve", "-d", root, "test-late")
    for i in range(3):
        with open(os.path.join(root, "a"), "w", encoding="ascii") as f:
            f.write(str(i))
        check(f"version {i}", Connection(port).ask("/a")[1] == str(i).encode())
    server.end()
    bridge.end()


def bench():
    for mode, by, size in (("pingpong", "short", 50), ("pingpong", "long", 5000),
                           ("pingpong", "tcp", 50), ("fetch", "long", 131072),
                           ("fetch", "tcp", 131072)):
        run = subprocess.run([BUSBAR, "bench", "ripc", "--mode", mode, "--by", by, "--size",
                              str(size), "--repetitions", "20", "--warmup", "5"],
                             capture_output=True, timeout=30, check=False)
        check(f"bench of {mode} by {by}", run.returncode == 0 and b"round trip" in run.stdout,
              run.stderr.decode())


def main():
    os.environ.setdefault("BUSBAR_DEVICES", "soft")
    os.environ.setdefault("RIPC_RESOLVER", "multicast")
    # Not found by another run on this host.
    os.environ["RIPC_PORT"] = str(20000 + os.getpid() % 12000)
    begin = time.monotonic()
    ping("test-echo")
    unmapped("test-unmapped")
    with tempfile.TemporaryDirectory(prefix="busbar-ripc.") as folder:
        serving(folder)
        changes(folder)
    bench()
    print(f"{time.monotonic() - begin:.1f} s")
    return failed


sys.exit(main())
