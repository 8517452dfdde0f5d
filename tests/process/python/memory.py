#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The package's shared memory: a simulator in Python that a gateway couples, and two processes
without one. Nothing is copied but by the library; who dies is noticed.

Environment: BUSBAR, the program; BUSBAR_SHMEM_LIBRARY; PYTHONPATH, the package and
tests/process/http. Exit status 0: good, 1: not.
"""
import array
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time

import busbar
from busbar import shmem
from http_gateway import Gateway, check, until

A, B = ("/busbar-shmem-py-%d-%s" % (os.getpid(), side) for side in "ab")
NODES = """
nodes = {
	source = { type = "signal"; signal = "counter"; rate = 1000; values = 3; };
	simulator = { type = "shmem"; in = { name = "%s"; signals = { count = 3; type = "float"; }; };
		out = { name = "%s"; }; };
};
paths = ( { in = "source"; out = "simulator"; }, { in = "simulator"; } );
stats = 0.0; hugepages = 0;
"""


def fails(kind, text, call, *args, **named):
    try:
        call(*args, **named)
    except kind as error:
        check(text in str(error), "%s: %s" % (text, error))
        return
    raise AssertionError("no %s: %s" % (kind.__name__, text))


def simulator(folder):
    """Sends back what it gets, as numbers, samples and blocks."""
    with Gateway(folder, NODES % (A, B)) as g, busbar.Gateway(g.control) as gateway:
        with shmem.Peer(write=A, read=B, timeout=20) as peer:
            check(peer.connected and peer.read_max >= 3 and not peer.removed and not peer.broken, "attached")
            for _, sample in zip(range(50), peer):
                check(len(sample.values) == 3 and abs(sample.origin_ns / 1e9 - time.time()) < 60, "a sample")
                check(peer.write(sample.values) and peer.write(sample), "and back")
            values = array.array("d", [0.0]) * 8
            check(peer.read_into(values, 20) == 3 and values[7] == 0.0, "into an array")
            block, last = shmem.Block(64, 8), None
            for _ in range(5):
                for i in range(peer.read_block(block, 20)):
                    check(last is None or block.sequence(i) > last, "in order")
                    last = block.sequence(i)
                    view = block.values(i)
                    check(len(view) == 3 and view.obj is block.memory.obj, "a view of the block itself")
                    check(block.origin_ns(i) and not block.cut(i), "its origin")
                    peer.write(view)
            until(lambda: gateway.node_stats("simulator")["stats"]["received"] >= 100, "the node gets them")
            fails(IndexError, "sample", block.values, block.count)
            fails(ValueError, "more values", peer.write, [0.0] * 9999)
            gateway.stop_node("source")
            gateway.stop_node("simulator")
            try:
                while peer.read(20):
                    pass
                raise AssertionError("a sample of nobody")
            except busbar.PeerGone:
                pass
            gateway.start_node("simulator")
            gateway.start_node("source")
            check(peer.read(20), "it is back")


def both_sides():
    """Every type, as it was; in this process."""
    types = ["float", "integer", "boolean", "complex"]
    with shmem.Peer(write=A, read=B, receives=types, sends=types, queuelen=4, values=4) as one:
        check(not one.connected, "alone")
        fails(busbar.PeerGone, "closed or died", one.write, [1.0])
        with shmem.Peer(write=B, read=A, receives=types, sends=types, timeout=20) as two:
            sample = busbar.Sample([0.1, -1 << 63, True, 1.5 - 2j], 1 << 63, 5, 1_000_000_007, True)
            check(one.write(sample) and two.wait(20), "written")
            got = two.read(20)
            got.new_simulation = False
            check(got == sample, "as it was: %s" % got)
            check(one.write(busbar.Sample([])) and two.read(20).values == [], "no values")
            for bad in ([0.0, 1.5], [1j], [0.0, 1 << 63], ["x"]):
                fails(ValueError, "the signal is", one.write, busbar.Sample(bad))
            check([one.write([0.0]) for _ in range(9)].count(False) > 0, "the ring is full")
            while two.read(0):
                pass
            check(not two.wait(0.01) and two.read(0) is None and two.read(0.01) is None, "nothing is there")
            fails(busbar.Error, "", shmem.Peer, write=A)
            for wrong in (bytearray(8), array.array("f", [0]), array.array("d"), memoryview(bytes(8)).cast("d")):
                fails(ValueError, "array of reals", two.read_into, wrong)
            # Reads that wait end by interrupt() and by close().
            threading.Timer(0.05, two.interrupt).start()
            check(two.read(20) is None, "interrupted")
            ended = threading.Event()
            thread = threading.Thread(target=lambda: (list(two), ended.set()))
            thread.start()
            time.sleep(0.05)
            two.close()
            thread.join(20)
            check(ended.is_set(), "an iteration ends")
            fails(ValueError, "closed", two.read, 0)
        fails(busbar.PeerGone, "closed or died", one.read, 20)
    for more, text in (({}, "one name"), ({"write": "x", "queuelen": -1}, "queuelen"),
                       ({"write": "x", "timeout": -1}, "timeout"), ({"write": "x", "sends": ["real"]}, "real")):
        fails(ValueError, text, shmem.Peer, **more)
    fails(busbar.Error, "a/b", shmem.Peer, write="/a/b")
    with shmem.Peer(write=A) as one:
        fails(ValueError, "without a name", one.read, 0)
        check(one.read_max == 0, "no ring")
    fails(busbar.TimedOut, "has not come", shmem.Peer, write=A, timeout=0.05)
    check(not os.path.exists("/dev/shm" + A) and not os.path.exists("/dev/shm" + B), "nothing is left behind")


def death():
    """The other side is killed: what it wrote is read, then it is said."""
    code = ("import sys, time; from busbar import shmem\n"
            "peer = shmem.Peer(write=sys.argv[1], read=sys.argv[2], timeout=20)\n"
            "for i in range(5): peer.write([float(i)])\n"
            "print('written', flush=True); time.sleep(60)")
    with shmem.Peer(write=A, read=B) as peer:
        child = subprocess.Popen([sys.executable, "-B", "-c", code, B, A], stdout=subprocess.PIPE, text=True)
        check(child.stdout.readline() == "written\n", "it writes")
        child.send_signal(signal.SIGKILL)
        child.wait()
        got = []
        fails(busbar.PeerGone, "closed or died", lambda: [got.append(peer.read(20).values) for _ in range(6)])
        check(got == [[float(i)] for i in range(5)], "what it wrote: %s" % got)
        check(not peer.connected, "it is gone")


def without_library():
    env = dict(os.environ, BUSBAR_SHMEM_LIBRARY="/nonexistent.so")
    code = "import busbar\nfrom busbar import shmem\ntry: shmem.Peer('x')\nexcept busbar.Error as e: print(e)"
    p = subprocess.run([sys.executable, "-B", "-c", code], env=env, capture_output=True, text=True, timeout=30)
    check("BUSBAR_SHMEM_LIBRARY" in p.stdout, "the library that is missing: %s%s" % (p.stdout, p.stderr))


with tempfile.TemporaryDirectory() as place:
    both_sides()
    death()
    without_library()
    simulator(place)
