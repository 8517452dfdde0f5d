#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Members of a session that misbehave hold up nobody, hold little, and are ended.

Environment: BUSBAR, the program. Exit status 0: good, 1: not.
"""
import random
import resource
import socket
import struct
import time

from relay_peers import (BINARY, CLOSE, PING, PONG, TEXT, Client, Peer, Relay, check, frame, nothing_more,
                         seconds_since, until)

KIB = 1024


def slow_readers_lose_the_oldest():
    """They hold what the limits allow; whoever reads gets everything, and soon."""
    with Relay("--backlog=300", "--timeout=60") as r, Peer(r.port) as source, Peer(r.port) as reader:
        slow = [Peer(r.port, receive_bytes=4096) for _ in range(5)]
        before = r.resident_kb()
        start = time.monotonic()
        for i in range(300):
            source.message(struct.pack("!I", i) * 4096)
            got = reader.receive()
            check(got == (BINARY, struct.pack("!I", i) * 4096), "message %d is there" % i)
        check(seconds_since(start) < 30, "nobody waits for them")
        s = r.session("/s")
        members = {m["port"]: m for m in s["connections"]}
        lost = [members[p.socket.getsockname()[1]]["frames_lost"] for p in slow]
        check(min(lost) > 200, "they lose: %s" % lost)
        check(members[reader.socket.getsockname()[1]]["frames_lost"] == 0, "nobody else does")
        check(s["frames_lost"] == sum(lost) == r.state()["counters"]["frames_lost"], "and it is counted")
        for m in members.values():
            check(m["bytes_waiting"] <= 300 * KIB, "no more than may wait: %s" % m)
        grown = r.resident_kb() - before
        check(r.is_sanitized() or grown < 8000, "memory grows by %d KiB" % grown)
        for p, n in zip(slow, lost):  # what is left comes in order, up to the newest
            seen = [struct.unpack("!I", p.receive()[1][:4])[0] for _ in range(300 - n)]
            check(seen == sorted(set(seen)) and seen[-1] == 299, "in order: %s" % seen)
            p.close()


def who_takes_nothing_is_ended():
    with Relay("--timeout=1", "--backlog=64") as r, Peer(r.port) as source, Peer(r.port, receive_bytes=4096) as deaf:
        for _ in range(100):
            source.message(bytes(16384))
        until(lambda: len(r.session("/s")["connections"]) == 1, "ended after --timeout")
        nothing_more(source)
        deaf.close()


def silent_ones_are_asked():
    with Relay("--ping=0.2", "--timeout=1.5") as r, Peer(r.port) as silent, Peer(r.port) as polite:
        check(silent.receive() == (PING, b""), "a ping")
        start = time.monotonic()
        while seconds_since(start) < 20:
            check(polite.receive() == (PING, b""), "a ping")
            polite.say(PONG)
            if r.state()["counters"]["timeouts"]:
                break
        check(silent.closed_with() == 1008 and silent.receive() is None, "given up")
        check(len(r.session("/s")["connections"]) == 1, "who answers stays")


def what_is_no_frame_ends_only_its_sender():
    bad = (
        (frame(TEXT, b"x", mask=None), 1002),
        (frame(TEXT, b"x", reserved=4), 1002),
        (frame(3, b"x"), 1002),
        (frame(11, b""), 1002),
        (frame(0, b"x"), 1002),
        (frame(TEXT, b"x", fin=False) + frame(TEXT, b"y"), 1002),
        (frame(PING, b"x", fin=False), 1002),
        (frame(PING, b"x" * 126), 1002),
        (frame(CLOSE, b"x"), 1002),
        (frame(CLOSE, b"\x03\xed"), 1002),  # 1005 is never sent
        (frame(CLOSE, b"\x03\xe8\xff"), 1007),
        (frame(TEXT, b"\xc3\x28"), 1007),
        (frame(TEXT, b"\xf0\x9f", fin=False) + frame(0, b"\x92"), 1007),
        (frame(BINARY, length=64 * KIB + 1), 1009),
        (frame(BINARY, length=1 << 62), 1009),
        (frame(BINARY, length=1 << 63), 1002),
        (frame(BINARY, bytes(40 * KIB), fin=False) + frame(0, bytes(40 * KIB)), 1009),
        (b"GET / HTTP/1.1\r\n\r\n", 1002),
    )
    with Relay("--message=64") as r, Peer(r.port) as a, Peer(r.port) as b:
        for data, status in bad:
            with Peer(r.port) as p:
                p.send(data)
                got = p.closed_with()
                check(got == status, "%r: %d, not %d" % (data[:30], got, status))
                check(p.receive() is None, "and closed")
        check(r.state()["counters"]["malformed"] == len(bad), "counted")
        noise(r)
        a.message("goes on")
        while True:  # noise may have been a message
            got = b.receive()
            if got == (TEXT, b"goes on"):
                break
        check(len(r.session("/s")["connections"]) == 2, "two members")


def noise(r):
    rnd = random.Random(7)
    for _ in range(200):
        data = b"".join(frame(rnd.choice((0, 1, 2, 8, 9, 10, rnd.randrange(16))), rnd.randbytes(rnd.randrange(200)),
                              rnd.random() < 0.7, bytes(4) if rnd.random() < 0.95 else None, rnd.choice((0, 0, 0, 1)))
                        for _ in range(rnd.randrange(1, 6)))
        p = Peer(r.port)
        try:
            p.send(data[:rnd.randrange(len(data)) + 1])
            if rnd.random() < 0.5:
                p.socket.shutdown(socket.SHUT_WR)
        except OSError:
            pass
        p.close()


def messages_in_parts_are_counted():
    """Those that never end do not fill the memory."""
    with Relay("--memory=4", "--message=1024") as r, Peer(r.port) as a, Peer(r.port) as b:
        before = r.resident_kb()
        greedy = []
        for i in range(8):
            greedy.append(Peer(r.port))
            try:
                greedy[i].send(frame(BINARY, bytes(900 * KIB), fin=False))
            except OSError:
                check(i >= 4, "there is room")
            if i < 4:
                until(lambda n=i: r.state()["bytes_held"] >= (n + 1) * 900 * KIB, "it is held")
            else:
                check(greedy[i].closed_with() == 1013, "try again later")
        check(r.state()["bytes_held"] <= 4096 * KIB, "within the limit")
        grown = r.resident_kb() - before
        check(r.is_sanitized() or grown < 9000, "memory grows by %d KiB" % grown)
        a.message("x")
        check(b.receive() == (TEXT, b"x"), "the others go on")
        for p in greedy:
            p.close()
        until(lambda: r.state()["bytes_held"] == 0, "and it is given back")


def ten_thousand_are_idle():
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < 11000:
        print("ten thousand idle connections: no more than %d descriptors" % hard)
        return
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 11000), hard))
    with Relay("--connections=10000", "--sessions=200") as r:
        before = r.resident_kb()
        # What the relay waits for: a part of a header, a member's next frame, nothing.
        idle = [Peer(r.port, "/%d" % (i % 100)) for i in range(2000)]
        bare = []
        for i in range(8000):
            bare.append(socket.create_connection(("127.0.0.1", r.port)))
            if i % 2:
                bare[-1].send(b"GET /s HTTP/1.1\r\nHost: loc")
        grown = r.resident_kb() - before
        check(r.is_sanitized() or grown < 150000, "10,000 connections take %d KiB" % grown)
        with Peer(r.port, "/x") as a, Peer(r.port, "/x") as b:
            start = time.monotonic()
            for _ in range(100):
                a.message("x")
                check(b.receive() == (TEXT, b"x"), "served beside them")
            check(r.ask("/").status == 200, "and asked")
        check(seconds_since(start) < 5, "soon")
        for s in bare:
            s.close()
        for p in idle:
            p.close()
        until(lambda: not r.state()["sessions"], "all leave")


def gone_without_a_word():
    """A member whose host is gone does not answer; repair mode closes without a FIN."""
    with Relay("--ping=0.2", "--timeout=1.5") as r, Peer(r.port) as a:
        try:
            a.socket.setsockopt(socket.IPPROTO_TCP, 19, 1)
        except PermissionError:
            print("half-open connections: not allowed to make one")
            return
        a.close()
        until(lambda: not r.state()["sessions"], "found out")
        with Client(r.port) as c:
            check(c.ask("/").status == 200, "others are served")


slow_readers_lose_the_oldest()
who_takes_nothing_is_ended()
silent_ones_are_asked()
what_is_no_frame_ends_only_its_sender()
messages_in_parts_are_counted()
gone_without_a_word()
ten_thousand_are_idle()
