# SPDX-License-Identifier: BSD-2-Clause
"""A process that is plugged into a running fabric, by the bytes of src/plug/plug.h; and the fabric itself as
a child of the test."""
import errno
import json
import os
import select
import signal
import socket
import struct
import subprocess
import time

HELLO, QP_OPEN, QP_CLOSE, JOIN, LEAVE, PACKET, AGENT_OPEN, AGENT_CLOSE, MAD, CAPABILITY, ASK = range(1, 12)
WELCOME, REFUSED, PORT, DONE, EVENT, AGENT, TEXT = range(0x40, 0x47)
VERBS, MANAGEMENT, CONTROL = range(3)
VERSION = 1
HEAD = struct.Struct("=HHII")
MAD_HEAD = struct.Struct("=IIIHHBBBBBBHI16sII")
PATIENCE_S = 20
UD_SEND, RC_SEND, CNP = 0x64, 0x04, 0x81


class Refused(Exception):
    def __init__(self, err, text):
        super().__init__("%s: %s" % (errno.errorcode.get(err, err), text))
        self.errno, self.text = err, text


def check(condition, text):
    if not condition:
        raise SystemExit("failed: " + text)


class Fabric:
    """busbar fabric run TOPOLOGY; ends with the block."""

    def __init__(self, topology, *options, sm="auto"):
        self.name = "test-%d-%x" % (os.getpid(), time.monotonic_ns() & 0xffffff)
        self.process = subprocess.Popen(
            [os.environ["BUSBAR"], "fabric", "run", topology, "--name", self.name, "--sm", sm, *options],
            stdout=subprocess.PIPE, text=True)
        self.ready = self.process.stdout.readline()
        check(self.ready.startswith("fabric " + self.name), "the fabric did not start: %r" % self.ready)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            self.process.wait(PATIENCE_S)
        self.process.stdout.close()

    def command(self, *arguments):
        return subprocess.run([os.environ["BUSBAR"], "fabric", *arguments], capture_output=True, text=True,
                              timeout=PATIENCE_S)

    def show(self):
        return json.loads(self.command("show", "--json", self.name).stdout)

    def port(self, node, port=1):
        for n in self.show()["nodes"]:
            if n["name"] == node:
                return next(p for p in n["ports"] if p["port"] == port)
        raise KeyError(node)

    def cpu_s(self):
        with open("/proc/%d/stat" % self.process.pid, encoding="ascii") as f:
            fields = f.read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Client:
    def __init__(self, fabric, host, purpose=VERBS, program=b"test", version=VERSION):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.socket.settimeout(PATIENCE_S)
        self.socket.connect("\0busbar.fabric." + fabric.name)
        self.queue = []
        self.state = None
        self.send(HELLO, struct.pack("=IB64s32s3x", version, purpose, host.encode(), program))
        self.welcome = self.expect(WELCOME)[3]
        self.read_port(self.expect(PORT)[3])

    def close(self):
        self.socket.close()

    def send(self, kind, body=b"", a=0, b=0, size=None):
        self.socket.send(HEAD.pack(kind, len(body) if size is None else size, a, b) + body)

    def receive(self, timeout_s=PATIENCE_S):
        """(type, a, b, body); None: nothing came."""
        if self.queue:
            return self.queue.pop(0)
        readable = select.poll()
        readable.register(self.socket, select.POLLIN)
        if not readable.poll(timeout_s * 1000):
            return None
        data = self.socket.recv(8192)
        if not data:
            raise EOFError("the fabric has ended the connection")
        kind, size, a, b = HEAD.unpack_from(data)
        check(size == len(data) - HEAD.size, "the length of a message is that of its head")
        if kind == PORT:
            self.read_port(data[HEAD.size:])
        return kind, a, b, data[HEAD.size:]

    def expect(self, kind, timeout_s=PATIENCE_S):
        """The next message of the kind; others wait."""
        end, others = time.monotonic() + timeout_s, []
        while True:
            m = self.receive(max(0, end - time.monotonic()))
            if m is None:
                raise TimeoutError("no message of type %d came" % kind)
            if m[0] == REFUSED and kind != REFUSED:
                raise Refused(m[1], m[3].decode())
            if m[0] == kind:
                self.queue = others + self.queue
                return m
            others.append(m)

    def read_port(self, body):
        prefix, = struct.unpack_from("=Q", body)
        at = 8 + 8 * 8
        mask, lid, sm_lid = struct.unpack_from("=IHH", body, at)
        pkeys = struct.unpack_from("=32H", body, at + 8)
        lmc, sm_sl, state, physical, mtu = struct.unpack_from("=5B", body, at + 72)
        self.state = {"prefix": prefix, "mask": mask, "lid": lid, "sm_lid": sm_lid, "pkeys": pkeys,
                      "lmc": lmc, "state": state, "physical": physical, "mtu": mtu}

    @property
    def lid(self):
        return self.state["lid"]

    def done(self, kind, body, number=7):
        """Sends, and awaits PLUG_DONE; its errno."""
        self.send(kind, body, b=number)
        m = self.expect(DONE)
        check(m[2] == number, "PLUG_DONE repeats the number of the question")
        return m[1]

    def open_qp(self, qpn):
        return self.done(QP_OPEN, struct.pack("=I", qpn))

    def join(self, mlid, mgid):
        return self.done(JOIN, struct.pack("=16sHH", mgid, mlid, 0))

    def open_agent(self, number, mad_class, methods=(), qpn=1, version=1, oui=b"\0\0\0"):
        """The upper half of its transaction identifiers; 0: refused."""
        mask = [sum(1 << m % 32 for m in methods if m // 32 == i) for i in range(4)]
        self.send(AGENT_OPEN, struct.pack("=4IBBB3sH", *mask, mad_class, version, qpn, oui, 0), a=number)
        m = self.expect(AGENT)
        check(m[1] == number, "PLUG_AGENT repeats the number of the agent")
        return m[2]

    def send_mad(self, agent, mad, lid, qpn=1, timeout_ms=0, retries=0, number=0, qkey=0x80010000,
                 path_bits=0, pkey_index=0):
        head = MAD_HEAD.pack(agent, qpn, qkey, lid, pkey_index, 0, path_bits, 0, 0, 0, 0, 0, 0, bytes(16),
                             timeout_ms, retries)
        self.send(MAD, head + mad, b=number)

    def await_mad(self, timeout_s=PATIENCE_S):
        """(agent, source LID, status, MAD)"""
        body = self.expect(MAD, timeout_s)[3]
        fields = MAD_HEAD.unpack_from(body)
        return fields[0], fields[3], fields[11], body[MAD_HEAD.size:]

    def packet(self, packet):
        self.send(PACKET, packet)

    def await_packet(self, timeout_s=PATIENCE_S):
        return self.expect(PACKET, timeout_s)[3]


def packet(slid, dlid, qpn, payload=b"", source=None, pkey=0xffff, sl=0, lane=0, opcode=None, psn=0,
           words=None, grh=None, pad=None, qkey=0x11111111):
    """A native packet: LRH to ICRC. With `source` it is a datagram, else a SEND of a connection. The ICRC is
    zero, as only an adapter looks at it."""
    if opcode is None:
        opcode = RC_SEND if source is None else UD_SEND
    padding = -len(payload) % 4 if pad is None else pad
    body = struct.pack(">BBHII", opcode, padding << 4, pkey, qpn, psn)
    if source is not None:
        body += struct.pack(">II", qkey, source)
    body += payload + bytes(padding) + bytes(4)
    if grh is not None:
        sgid, dgid = grh
        body = struct.pack(">IHBB", 6 << 28, len(body), 0x1b, 64) + sgid + dgid + body
    length = (8 + len(body)) // 4 if words is None else words
    return struct.pack(">BBHHH", lane << 4, sl << 4 | (2 if grh is None else 3), dlid, length, slid) + body


def mad(mad_class, method, attribute, tid, modifier=0, data=b"", version=1, at=64):
    head = struct.pack(">BBBBHHQHHI", 1, mad_class, version, method, 0, 0, tid, attribute, 0, modifier)
    return (head.ljust(at, b"\0") + data).ljust(256, b"\0")


def directed(method, attribute, tid, path, modifier=0, data=b""):
    """A directed-route SMP out of the ports of `path`."""
    head = struct.pack(">BBBBHBBQHHIQHH", 1, 0x81, 1, method, 0, 0, len(path), tid, attribute, 0, modifier,
                       0, 0xffff, 0xffff)
    smp = head.ljust(64, b"\0") + data.ljust(64, b"\0") + bytes([0] + path)
    return smp.ljust(256, b"\0")


def payload(data, datagram=True):
    """Of a packet without a GRH."""
    padding = data[8 + 1] >> 4 & 3
    return data[8 + 12 + (8 if datagram else 0):len(data) - 4 - padding]
