#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""day.py [SECONDS [SEED]]: a day of a laboratory in SECONDS. One gateway replays a
recording of 24 hours, faster by so much, to another one; their nodes and paths are
restarted at random, one in every minute of that day. Neither gateway grows, the
recording is replayed to its end, and what arrives is in order and was sent.

Environment: BUSBAR. Exit status 0: good, 1: not.
"""
import os
import random
import sys
import tempfile
import time

from gateway_process import Gateway, Gateways, check, first_port

DAY_S = 24 * 3600
STEP_MS = 400  # between two samples of the recording
SAMPLES = DAY_S * 1000 // STEP_MS
RESTARTS = DAY_S // 60
START_S = 1600000000
SOURCE = """
nodes = {
	tape = { type = "file"; format = "csv"; uri = "%(tape)s"; in = { speed = %(speed)f; }; };
	tcp = { type = "socket"; layer = "tcp-client"; format = "busbar.binary";
		out = { address = "127.0.0.1:%(port)d"; reconnect_interval = 2; }; };
	shm = { type = "shmem"; out = { name = "/busbar-shmem-day-%(port)d"; }; };
	beside = { type = "signal"; rate = 500; values = 2; monitor_missed = false; };
};
paths = ( { in = "tape"; out = ( "tcp", "shm" ); queuelen = 4096; }, { in = "beside"; } );
"""
TARGET = """
nodes = {
	tcp = { type = "socket"; layer = "tcp-server"; format = "busbar.binary";
		in = { address = "127.0.0.1:%(port)d"; }; };
	shm = { type = "shmem"; in = { name = "/busbar-shmem-day-%(port)d"; }; };
	one = { type = "file"; format = "csv"; uri = "%(one)s"; };
	two = { type = "file"; format = "csv"; uri = "%(two)s"; };
};
paths = ( { in = "tcp"; out = "one"; }, { in = "shm"; out = "two"; } );
"""
# What may be restarted; the recording itself would begin again.
NODES = (("tcp", "shm", "beside"), ("tcp", "shm", "one", "two"))


def record(name):
    """The frequency and power of a day; numbered from 0."""
    with open(name, "w") as f:
        f.write("# secs,nsecs,offset,sequence,frequency,power\n")
        for i in range(SAMPLES):
            ms = i * STEP_MS
            f.write("%d,%09d,0,%d,%.3f,%.1f\n" % (
                START_S + ms // 1000, ms % 1000 * 1000000, i,
                50 + (i * 7919 % 997 - 498) / 10000, i * 31 % 4096))


def arrived(name):
    """Numbers of the samples in a file; their values must be those that were sent."""
    numbers = []
    with open(name) as f:
        for line in f:
            if line.startswith("#"):
                continue
            words = line.split(",")
            i = int(words[3])
            check(float(words[5]) == i * 31 % 4096, "values of sample %d: %s" % (i, line))
            numbers.append(i)
    return numbers


def use(gateways):
    return [(g.descriptors(), g.resident_kb()) for g in gateways]


def replayed(source):
    return source.ask("/node/tape/stats")["stats"]["received"]


def live(gateways, seconds):
    """Restarts until the day is over; what both gateways had after a quarter of it."""
    source = gateways[0]
    begin = time.monotonic()
    before = None
    done = 0
    while replayed(source) < SAMPLES:
        check(time.monotonic() - begin < seconds * 4 + 30, "the day ends")
        if time.monotonic() - begin < seconds * done / RESTARTS:
            time.sleep(0.001)
            continue
        side = random.randrange(2)
        if random.randrange(8):
            gateways[side].ask("/node/%s/restart" % random.choice(NODES[side]), "POST")
        else:
            gateways[side].ask("/path/%d/restart" % random.randrange(2), "POST")
        done += 1
        if before is None and replayed(source) > SAMPLES // 4:
            before = use(gateways)
    return done, before


def day(gateways, seconds):
    done, before = live(gateways, seconds)
    after = use(gateways)
    print("%d restarts; descriptors and kB: %s, then %s" % (done, before, after))
    slow = gateways[0].sanitized()
    # On a busy machine a restart takes longer than its minute, under a sanitizer even more.
    check(done >= RESTARTS / (50 if slow else 20), "restarts")
    for was, now in zip(before, after):
        check(now[0] <= was[0] + 4, "descriptors")
        # Arenas of threads settle late; a sanitizer keeps what is freed, and finds
        # leaks itself.
        check(now[1] <= was[1] + 3072 or slow, "memory")
    for g in gateways:
        g.end()
    return slow


def main():
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 8
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else int(time.time())
    random.seed(seed)
    print("seed %d, 24 hours in %g s" % (seed, seconds), flush=True)
    port = first_port()
    with tempfile.TemporaryDirectory() as folder:
        names = {n: os.path.join(folder, n + ".csv") for n in ("tape", "one", "two")}
        settings = {"port": port, "speed": DAY_S / seconds, **names}
        record(names["tape"])
        with Gateways("/busbar-shmem-day-%d" % port) as gateways:
            gateways.append(Gateway(folder, "target", TARGET % settings))
            gateways.insert(0, Gateway(folder, "source", SOURCE % settings))
            slow = day(gateways, seconds)
        for name in ("one", "two"):
            numbers = arrived(names[name])
            print("%s: %d of %d samples" % (name, len(numbers), SAMPLES))
            # Between a restart and the next connection none does, and that is most of the time
            # of a gateway with a sanitizer on a busy machine.
            check(len(numbers) > SAMPLES // (100 if slow else 10), "samples arrive")
            check(all(a < b for a, b in zip(numbers, numbers[1:])), "in order, each once")


main()
