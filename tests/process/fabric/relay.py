# SPDX-License-Identifier: BSD-2-Clause
"""A fabric for tests of the adapter alone: it speaks src/plug/plug.h and passes packets between hosts by
LID and queue pair number, without switches, lanes, credits or agents. Unlike a real one it changes its ports as
a test wants it."""
import selectors
import socket
import struct

HELLO, QP_OPEN, QP_CLOSE, GROUP_JOIN, GROUP_LEAVE, PACKET = 1, 2, 3, 4, 5, 6
WELCOME, REFUSED, PORT, DONE, EVENT = range(0x40, 0x45)
HEAD = struct.Struct("=HHII")
WELCOME_BODY = struct.Struct("=QQQIIIIBB64s6x")
PORT_BODY = struct.Struct("=Q8QIHH32H15BxIII4x")
LMC = 2
PKEYS = [0xffff, 0x8001, 0x0002]


class Host:
    def __init__(self, number, name):
        self.number, self.name = number, name
        self.clients, self.drop, self.packets, self.seen = [], 0, 0, set()
        self.values = dict(
            prefix=0xfe80000000000000, guids=[0x0002c90300000000 + number * 16], capability=0x02514868,
            lid=number << LMC, sm_lid=1 << LMC, pkeys=list(PKEYS), lmc=LMC, sm_sl=0, state=4,
            physical_state=5, mtu_active=5, mtu_max=5, width=2, speed=4, speed_extended=2, lanes=4,
            reregister=0, init_type_reply=0, subnet_timeout=18)

    def port(self):
        v = self.values
        guids = v["guids"] + [0] * (8 - len(v["guids"]))
        pkeys = v["pkeys"] + [0] * (32 - len(v["pkeys"]))
        return PORT_BODY.pack(
            v["prefix"], *guids, v["capability"], v["lid"], v["sm_lid"], *pkeys, v["lmc"], v["sm_sl"],
            v["state"], v["physical_state"], v["mtu_active"], v["mtu_max"], v["width"], v["speed"],
            v["speed_extended"], v["lanes"], v["reregister"], len(v["pkeys"]), 8,
            v["init_type_reply"], v["subnet_timeout"], 0, 0, 100000)


class Client:
    def __init__(self, sock):
        self.sock, self.host, self.waiting = sock, None, []
        self.qps, self.groups = set(), set()

    def send(self, kind, a=0, b=0, body=b""):
        self.waiting.append(HEAD.pack(kind, len(body), a, b) + body)


class Relay:
    def __init__(self, name, hosts):
        self.hosts = [Host(i + 1, h) for i, h in enumerate(hosts)]
        self.selector = selectors.DefaultSelector()
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.listener.bind("\0busbar.fabric." + name)
        self.listener.listen()
        self.selector.register(self.listener, selectors.EVENT_READ, self.accept)
        self.clients = []

    def find(self, name):
        return next((h for h in self.hosts if h.name == name), None)

    def accept(self, _mask):
        sock, _ = self.listener.accept()
        sock.setblocking(False)
        client = Client(sock)
        self.clients.append(client)
        self.selector.register(sock, selectors.EVENT_READ, lambda mask: self.serve(client, mask))

    def drop_client(self, client):
        self.selector.unregister(client.sock)
        client.sock.close()
        self.clients.remove(client)
        if client.host:
            client.host.clients.remove(client)

    def serve(self, client, mask):
        if mask & selectors.EVENT_READ and client in self.clients:
            for _ in range(64):
                try:
                    message = client.sock.recv(8192)
                except BlockingIOError:
                    break
                except OSError:
                    message = b""
                if not message:
                    self.drop_client(client)
                    break
                self.take(client, message)
        self.flush()

    def flush(self):
        for client in list(self.clients):
            try:
                while client.waiting:
                    client.sock.send(client.waiting[0])
                    client.waiting.pop(0)
            except BlockingIOError:
                pass
            except OSError:
                self.drop_client(client)
                continue
            events = selectors.EVENT_READ | (selectors.EVENT_WRITE if client.waiting else 0)
            self.selector.modify(client.sock, events, lambda mask, c=client: self.serve(c, mask))

    def take(self, client, message):
        kind, length, _, b = HEAD.unpack_from(message)
        body = message[HEAD.size:]
        assert length == len(body)
        if kind == HELLO:
            self.greet(client, body)
        elif kind in (QP_OPEN, QP_CLOSE):
            qpn, = struct.unpack("=I", body)
            (client.qps.add if kind == QP_OPEN else client.qps.discard)(qpn)
        elif kind in (GROUP_JOIN, GROUP_LEAVE):
            (client.groups.add if kind == GROUP_JOIN else client.groups.discard)(body)
        elif kind == PACKET:
            self.forward(client, body)
        if b:
            client.send(DONE, 0, b)

    def greet(self, client, body):
        name = body[5:5 + 64].split(b"\0")[0].decode()
        host = self.find(name)
        if not host:
            client.send(REFUSED, 19, 0, f"there is no host {name}".encode())
            return
        client.host = host
        host.clients.append(client)
        guid = host.values["guids"][0]
        client.send(WELCOME, 0, 0, WELCOME_BODY.pack(guid - 1, guid + 2, guid, 0x2c9, 4099, 1,
                                                     host.number, 1, 1, host.name.encode()))
        client.send(PORT, 0, 0, host.port())

    def forward(self, client, packet):
        dlid, slid = (int.from_bytes(packet[i:i + 2], "big") for i in (2, 6))
        bth = packet[8 + 40 if packet[1] & 3 == 3 else 8:]
        host, qpn = client.host, int.from_bytes(bth[5:8], "big")
        host.packets += 1
        host.seen.add(int.from_bytes(bth[2:4], "big"))
        assert len(packet) == 4 * int.from_bytes(packet[4:6], "big")
        assert slid >> LMC == host.values["lid"] >> LMC, (slid, host.values["lid"])
        if host.drop or host.values["state"] != 4:
            host.drop = max(host.drop - 1, 0)
            return
        if dlid >= 0xc000:
            group = packet[8 + 24:8 + 40] + struct.pack("=HH", dlid, 0)
            for other in self.clients:
                if group in other.groups:
                    other.send(PACKET, 0, 0, packet)
            return
        for other in self.clients:
            if other.host and other.host.values["lid"] >> LMC == dlid >> LMC and qpn in other.qps:
                other.send(PACKET, 0, 0, packet)

    def change(self, name, **values):
        """PLUG_PORT with these members changed."""
        host = self.find(name)
        host.values.update(values)
        for client in host.clients:
            client.send(PORT, 0, 0, host.port())
        host.values["reregister"] = 0

    def tell(self, name, event):
        for client in self.find(name).clients:
            client.send(EVENT, event)

    def cut(self, name):
        """Ends the host's connections."""
        for client in list(self.find(name).clients):
            self.drop_client(client)

    def step(self, timeout):
        for key, mask in self.selector.select(timeout):
            key.data(mask)
        self.flush()
