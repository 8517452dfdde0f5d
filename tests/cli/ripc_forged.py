#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""`busbar ripc bridge` and `busbar ripc get` take an answer from the service that they asked, with
the number of the request, and from nobody else; and nobody can guess the next number.

BUSBAR: the executable under test; PYTHONPATH, BUSBAR_RIPC_LIBRARY, LD_LIBRARY_PATH: of the binding.
"""
import contextlib
import os
import re
import signal
import socket
import subprocess

os.environ.setdefault("BUSBAR_DEVICES", "soft")
os.environ.setdefault("RIPC_RESOLVER", "multicast")
os.environ["RIPC_PORT"] = str(20000 + os.getpid() % 12000)

import busbar_ripc as ripc  # noqa: E402

NAME = "test-forged-%d" % os.getpid()
BRIDGE = [os.environ["BUSBAR"], "ripc", "bridge", "-s", NAME, "-l", "127.0.0.1:0", "--counters"]


def check(good, what):
    if not good:
        raise AssertionError(what)


def answer(number, text):
    head = "HTTP/1.1 200 OK\r\nRipc-Request: %d\r\nContent-Length: %d\r\n\r\n" % (number, len(text))
    return [head.encode(), text.encode()]


def asked(service):
    """Who asks, and the number."""
    with service.receive(20) as message:
        return message.sender, int(re.search(rb"Ripc-Request: (\d+)", bytes(message[0])).group(1))


def said(s):
    data = b""
    while not data.endswith((b"right", b"wrong")):
        more = s.recv(4096)
        check(more, "an answer: %r" % data)
        data += more
    return data


def through_the_bridge(service, others):
    bridge = subprocess.Popen(BRIDGE, stdout=subprocess.PIPE, text=True)
    try:
        port = int(bridge.stdout.readline().rstrip("/\n").rpartition(":")[2])
        numbers = []
        with socket.create_connection(("127.0.0.1", port), timeout=30) as s:
            for _ in range(4):
                s.sendall(b"GET /x HTTP/1.1\r\nHost: localhost\r\n\r\n")
                bridge_id, number = asked(service)
                for other in others:  # they know the number
                    other.send_long(bridge_id, answer(number, "wrong"))
                service.send_long(bridge_id, answer(number ^ 1, "wrong"))
                for n in numbers:
                    service.send_long(bridge_id, answer(n, "wrong"))
                service.send_long(bridge_id, answer(number, "right"))
                check(said(s).endswith(b"right"), "the answer of who was asked")
                numbers.append(number)
        check(all(abs(a - b) > 1 << 32 for a, b in zip(numbers, numbers[1:])), "numbers: %s" % numbers)
    finally:
        bridge.send_signal(signal.SIGINT)
        bridge.communicate(timeout=30)
    check(not bridge.returncode, "ends: %d" % bridge.returncode)


def by_get(service, others):
    get = subprocess.Popen([os.environ["BUSBAR"], "ripc", "get", NAME, "/x"], stdout=subprocess.PIPE)
    client, number = asked(service)
    for other in others:
        other.send_long(client, answer(number, "wrong"))
    service.send_long(client, answer(number ^ 1, "wrong"))
    with contextlib.suppress(ripc.Reset):  # it ends when it has it
        service.send_long(client, answer(number, "right"))
    out = get.communicate(timeout=30)[0]
    check(out == b"right", "what was got: %r" % out)


with ripc.Instance(resolve_timeout_ms=20000) as instance, instance.service(name=NAME) as real, \
        instance.service() as beside, ripc.Instance() as elsewhere, elsewhere.service() as far:
    through_the_bridge(real, (beside, far))
    by_get(real, (beside, far))
