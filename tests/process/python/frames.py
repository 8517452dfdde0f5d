#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""frames.py [RUNS [SEED]]: what a server may send to the package's WebSocket client. Whole
messages, cut anywhere, come out as they were; random and damaged bytes end in a ProtocolError
and nothing else, and in bounded memory. Then the same for the formats of samples.
"""
import base64
import hashlib
import math
import random
import struct
import sys
import tracemalloc

from busbar import ProtocolError, Sample
from busbar._frames import (BINARY, CLOSE, CONTINUATION, PING, PONG, TEXT, FrameError, FrameReader, Handshake,
                            write_close, write_frame)
from busbar._samples import CODECS

MAX = 1 << 16


def frame(opcode, payload, fin=True, bits=0, head=None):
    """As a server writes it; `head` bytes for the length: 0, 2 or 8."""
    n = len(payload)
    head = head if head is not None else 0 if n < 126 else 2 if n < 65536 else 8
    first = bytes([fin << 7 | bits << 4 | opcode, n if not head else 126 if head == 2 else 127])
    return first + (n.to_bytes(head, "big") if head else b"") + payload


def unmasked(data):
    """The payload of a frame that a client has written."""
    assert data[1] & 0x80, "it is masked"
    n, at = data[1] & 127, 2
    if n > 125:
        size = 2 if n == 126 else 8
        n, at = int.from_bytes(data[2:2 + size], "big"), 2 + size
    mask, body = data[at:at + 4], data[at + 4:]
    assert len(body) == n
    return bytes(b ^ mask[i % 4] for i, b in enumerate(body))


def cut(r, data):
    while data:
        n = r.randrange(1, len(data) + 1) if r.random() < 0.5 else r.randrange(1, min(9, len(data) + 1))
        yield data[:n]
        data = data[n:]


def random_text(r, n):
    return "".join(chr(r.choice([65, 0xE4, 0x20AC, 0x1F600])) for _ in range(n)).encode()


def whole_messages(r):
    sent, wire = [], b""
    for _ in range(r.randrange(1, 6)):
        opcode = r.choice([TEXT, BINARY])
        size = r.choice([0, 1, 125, 126, 127, 300, 5000])
        data = random_text(r, size // 3) if opcode == TEXT else r.randbytes(size)
        pieces = list(cut(r, data)) if r.random() < 0.5 else [data]
        pieces = pieces or [b""]
        for i, piece in enumerate(pieces):
            if r.random() < 0.2:
                kind, control = r.choice([PING, PONG]), r.randbytes(r.randrange(126))
                sent.append((kind, control))
                wire += frame(kind, control)
            wire += frame(opcode if not i else CONTINUATION, piece, i == len(pieces) - 1)
        sent.append((opcode, data))
    reader = FrameReader(MAX)
    got = [(m.opcode, m.data) for piece in cut(r, wire) for m in reader.take(piece)]
    assert got == sent, (got, sent)
    return wire


def damaged(r, wire):
    data = bytearray(wire)
    for _ in range(r.randrange(1, 4)):
        data[r.randrange(len(data))] = r.randrange(256)
    take_all(r, bytes(data))
    take_all(r, r.randbytes(r.randrange(1, 400)))


def take_all(r, data):
    reader = FrameReader(MAX)
    try:
        for piece in cut(r, data):
            for m in reader.take(piece):
                assert len(m.data) <= MAX
                for codec in CODECS.values():
                    try:
                        codec.decode(m.data, r.choice([(), ("integer",), ("complex", "boolean")]))
                    except ProtocolError:
                        pass
    except FrameError as error:
        assert error.status in (1002, 1007, 1009) and str(error)


def refused():
    for data, status in (
            (frame(TEXT, b"x", bits=4), 1002), (frame(3, b""), 1002), (frame(11, b""), 1002),
            (frame(CONTINUATION, b"x"), 1002), (frame(TEXT, b"a", False) + frame(TEXT, b"b"), 1002),
            (frame(PING, b"x" * 126), 1002), (frame(PING, b"", False), 1002), (frame(CLOSE, b"\x03"), 1002),
            (frame(CLOSE, struct.pack(">H", 1005)), 1002), (frame(CLOSE, struct.pack(">H", 999)), 1002),
            (frame(CLOSE, struct.pack(">H", 1000) + b"\xff"), 1007), (frame(TEXT, b"\xff"), 1007),
            (frame(TEXT, b"\xe2\x82", False) + frame(CONTINUATION, b""), 1007),
            (frame(BINARY, b"x", head=2), 1002), (frame(BINARY, b"x" * 300, head=8), 1002),
            (bytes([0x82, 127]) + b"\xff" * 8, 1002), (bytes([0x82, 127]) + (1 << 40).to_bytes(8, "big"), 1009),
            (frame(BINARY, b"x" * MAX, False) + frame(CONTINUATION, b"x"), 1009),
            (write_frame(TEXT, b"masked"), 1002)):
        try:
            list(FrameReader(MAX).take(data))
        except FrameError as error:
            assert error.status == status, (data[:20], error)
            continue
        raise AssertionError("taken: %r" % data[:20])
    for status, reason in ((1000, ""), (1012, "ein Ä"), (4999, "x")):
        m, = FrameReader(MAX).take(frame(CLOSE, struct.pack(">H", status) + reason.encode()))
        assert (m.status, m.reason) == (status, reason)
    for n in (0, 1, 125, 126, 65535, 65536, 100001):
        data = random.Random(n).randbytes(n)
        assert unmasked(write_frame(BINARY, data)) == data
    assert unmasked(write_close(1000, "ä" * 100)) == b"\x03\xe8" + "ä".encode() * 61


def bounded():
    """A message without end, in pieces of one byte, and controls between them."""
    reader = FrameReader(MAX)
    some = frame(BINARY, b"x", False) + (frame(CONTINUATION, b"", False) + frame(PONG, b"y" * 125)) * 400
    more = frame(CONTINUATION, b"z", False) * 1000
    tracemalloc.start()
    for _ in reader.take(some):
        pass
    try:
        for _ in range(100):
            for _ in reader.take(more):
                pass
        raise AssertionError("a message without end is taken")
    except FrameError as error:
        assert error.status == 1009
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8 * MAX, "memory: %d" % peak


def handshakes(r):
    def answer(key, **change):
        accept = base64.b64encode(hashlib.sha1(
            key + b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11").digest()).decode()
        lines = {"Upgrade": "WebSocket", "Connection": "keep-alive, Upgrade", "Sec-WebSocket-Accept": accept,
                 "Sec-WebSocket-Protocol": "live"}
        lines.update({k.replace("_", "-"): v for k, v in change.items()})
        return ("HTTP/1.1 101 Switching\r\n" + "".join(
            "%s: %s\r\n" % kv for kv in lines.items() if kv[1] is not None) + "\r\n").encode() + b"rest"

    def ask():
        h = Handshake("host:1", "/x", "live", {})
        return h, h.request.split(b"Sec-WebSocket-Key: ")[1].split(b"\r\n")[0]

    h, key = ask()
    got = [t for t in (h.take(piece) for piece in cut(r, answer(key)[:-4])) if t]
    assert len(got) == 1 and got[0][0] == 101
    h, key = ask()
    assert h.take(answer(key))[2] == b"rest"
    for change in ({"Upgrade": "h2c"}, {"Connection": "close"}, {"Sec-WebSocket-Accept": "x"},
                   {"Sec-WebSocket-Protocol": "other"}, {"Sec_WebSocket_Extensions": "permessage-deflate"},
                   {"Upgrade": None}, {"bad line\r\nx": "1"}):
        h, key = ask()
        fails(h.take, answer(key, **change))
    for data in (b"SSH-2.0", b"HTTP/1.0 101 x\r\n\r\n", b"HTTP/1.1 abc\r\n\r\n", b"HTTP/1.1 101 x\r\n" + b"a: b\r\n" * 9999):
        fails(ask()[0].take, data)
    good = answer(key)
    for _ in range(20):
        data = bytearray(good)
        data[r.randrange(len(data))] = r.randrange(256)
        try:
            ask()[0].take(bytes(data))
        except ProtocolError:
            pass


def fails(call, *args):
    try:
        call(*args)
    except ProtocolError:
        return
    raise AssertionError("%s%r" % (call, args))


def formats(r):
    types = ["float", "integer", "boolean", "complex"]
    values = [r.choice([0.1, -1e300, math.inf, 5.0]), r.randrange(-2 ** 31, 2 ** 31), r.random() < 0.5,
              complex(r.randrange(9), -1.5)]
    samples = [Sample(values, r.randrange(2 ** 40), r.randrange(2 ** 60), None, True, False),
               Sample([], None, None, r.randrange(2 ** 60), False, True)]
    json = CODECS["json"]
    assert json.decode(json.encode(samples, types), types) == samples
    web = CODECS["villas.web"]
    exact = [Sample([float(r.randrange(-999, 999)) / 4, values[1]], r.randrange(2 ** 32), r.randrange(1, 2 ** 61))
             for _ in range(r.randrange(4))]
    data = web.encode(exact, types)
    assert len(data) == 24 * len(exact)
    assert web.decode(data, types) == exact
    # The layout, by another hand: 0x20, source, length, sequence, seconds, nanoseconds.
    assert web.encode([Sample([1.5], 7, 3_000_000_005)], ()) == bytes.fromhex(
        "20000100" "07000000" "03000000" "05000000" "0000c03f")
    if data:
        fails(web.decode, data[:-r.randrange(1, 20)], types)
    for text in (b"{", b"[1]", b'[{"data":[[]]}]', b'{"data":1}', b'{"sequence":1.5}', b'{"ts":{"origin":[1]}}',
                 b'{"data":["x"]}', b"[" * 100000, b'{"data":[{"real":"x","imag":1}]}'):
        fails(json.decode, text, ())
    for bad, kind in ((1 << 31, "integer"), (1.5, "integer"), (True, "boolean"), (1j, "float"), (1j, "complex"),
                      ("x", "float")):
        try:
            web.encode([Sample([0.0, bad])], ["float", kind])
        except ValueError:
            continue
        raise AssertionError("villas.web carries no %r" % bad)


def main():
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 300
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else random.randrange(1 << 31)
    print("seed", seed)
    refused()
    bounded()
    for i in range(runs):
        r = random.Random(seed + i)
        wire = whole_messages(r)
        damaged(r, wire)
        handshakes(r)
        formats(r)


main()
