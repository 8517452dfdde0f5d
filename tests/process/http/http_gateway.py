# SPDX-License-Identifier: BSD-2-Clause
"""A gateway with an HTTP server, and a client of plain sockets, which can also misbehave.

Environment: BUSBAR, the program.
"""
import json
import os
import re
import socket
import ssl
import subprocess
import time

BUSBAR = os.environ["BUSBAR"]
NODES = """
nodes = {
	sig = { type = "signal"; rate = 1000; values = 2;
		in = { hooks = ( { type = "stats"; warmup = 50; buckets = 8; } ); }; };
	loop = { type = "loopback"; queuelen = 64; };
};
paths = ( { in = "sig"; out = "loop"; queuelen = 64; }, { in = "loop"; queuelen = 64; } );
stats = 0.0; hugepages = 0;
"""


def check(good, what):
    if not good:
        raise AssertionError(what)


def fails(kind, text, call, *args, **named):
    try:
        call(*args, **named)
    except kind as error:
        check(text in str(error), "%s: %s" % (text, error))
        return error
    raise AssertionError("no %s: %s" % (kind.__name__, text))


def until(true, what, seconds=20):
    end = time.monotonic() + seconds
    while not true():
        check(time.monotonic() < end, what)
        time.sleep(0.005)


class Answer:
    def __init__(self, status, headers, body):
        self.status, self.headers, self.body = status, headers, body

    def json(self):
        return json.loads(self.body)


class Client:
    """One connection."""

    def __init__(self, port, context=None, address="127.0.0.1"):
        self.port = port
        self.socket = socket.create_connection((address, port), timeout=20)
        if context:
            self.socket = context.wrap_socket(self.socket, server_hostname="localhost")
        self.file = self.socket.makefile("rb")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.file.close()
        self.socket.close()

    def send(self, data):
        self.socket.sendall(data)

    def answer(self, method="GET"):
        """The next answer; None when the server has closed."""
        line = self.file.readline()
        if not line:
            return None
        m = re.fullmatch(rb"HTTP/1\.1 (\d{3}) [^\r\n]+\r\n", line)
        check(m, "a status line: %r" % line)
        status, headers = int(m.group(1)), {}
        while True:
            line = self.file.readline()
            if line == b"\r\n":
                break
            m = re.fullmatch(rb"([A-Za-z-]+): ([^\r\n]*)\r\n", line)
            check(m, "a header: %r" % line)
            headers[m.group(1).decode().lower()] = m.group(2).decode()
        if status == 100:
            return self.answer(method)
        length = 0 if method == "HEAD" else int(headers.get("content-length", 0))
        body = self.file.read(length)
        check(len(body) == length, "the whole body: %d of %d" % (len(body), length))
        return Answer(status, headers, body)

    def ask(self, path, method="GET", body=None, **headers):
        data = b"" if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
        head = {"Host": "127.0.0.1:%d" % self.port}
        if body is not None:
            head["Content-Type"] = "application/json"
        if body is not None or method == "POST":
            head["Content-Length"] = str(len(data))
        head.update({k.replace("_", "-"): v for k, v in headers.items()})
        lines = ["%s %s HTTP/1.1" % (method, path)]
        lines += ["%s: %s" % kv for kv in head.items() if kv[1] is not None]
        self.send("\r\n".join(lines).encode() + b"\r\n\r\n" + data)
        return self.answer(method)

    def is_closed(self):
        """The server closes, and says no more."""
        try:
            return self.file.read(1) == b""
        except (ConnectionResetError, ssl.SSLError):
            return True


class Program:
    """What is seen of a process, `self.process`, from outside."""

    def resident_kb(self):
        with open("/proc/%d/status" % self.process.pid) as f:
            return int(re.search(r"VmRSS:\s+(\d+)", f.read()).group(1))

    def is_sanitized(self):
        with open("/proc/%d/maps" % self.process.pid) as f:
            return bool(re.search(r"lib[at]san", f.read()))


class Gateway(Program):
    def __init__(self, folder, config=NODES, http="", listen="127.0.0.1:0", args=(), name="gateway",
                 context=None, program=("run", "-q", "--summary=none"), before=None):
        """`before`: called in the child before it becomes the gateway."""
        self.log = os.path.join(folder, name + ".log")
        self.control = os.path.join(folder, name + ".control")
        self.file = os.path.join(folder, name + ".conf")
        self.context = context
        command = [BUSBAR, *program, "--control=" + self.control, *args]
        if listen is not None:
            command.append("--http=" + listen)
        if config is not None:
            self.write(config + http)
            command.append(self.file)
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=open(self.log, "w"),
                                        preexec_fn=before)
        self.port = None
        until(self.listens, "%s listens" % name)

    def write(self, text):
        with open(self.file, "w") as f:
            f.write(text)

    def said(self):
        with open(self.log) as f:
            return f.read()

    def listens(self):
        ports = re.findall(r"https?://\S+:(\d+)/ serves requests", self.said())
        check(self.process.poll() is None, "the gateway runs: " + self.said())
        self.port = int(ports[-1]) if ports else None
        return self.port

    def client(self):
        return Client(self.port, self.context)

    def ask(self, path, method="GET", body=None, **headers):
        with self.client() as c:
            return c.ask(path, method, body, **headers)

    def ctl(self, *words, status=0, at=None, more=()):
        p = subprocess.run([BUSBAR, "ctl", "-j", *more, at or self.control, *words],
                           capture_output=True, text=True, timeout=60)
        check(p.returncode == status, "ctl %s: %d %s" % (words, p.returncode, p.stderr))
        return json.loads(p.stdout) if p.stdout else None

    def end(self, status=0):
        if self.process.poll() is None:
            self.process.terminate()
        check(self.process.wait(30) == status, "ends with %d: %s" % (status, self.said()))

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        if kind is None:
            self.end()
            return
        self.process.kill()
        self.process.wait()
        print(self.said()[-4000:])
