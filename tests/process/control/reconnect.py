#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""reconnect.py MEDIUM [ROUNDS]: two gateways; the node of one is restarted again and
again, and samples arrive each time. Neither gateway keeps descriptors or memory.

Environment: BUSBAR. Exit status 0: good, 1: not.
"""
import sys
import tempfile

from gateway_process import Gateway, Gateways, check, first_port

MEDIA = {
    "infiniband": (
        """type = "infiniband"; rdma_transport_mode = "RC";
           in = { address = "127.0.0.1:%(a)d"; polling = "event"; max_wrs = 64; cq_size = 64; };
           out = { address = "127.0.0.1:%(b)d"; max_wrs = 64; cq_size = 64; reconnect_interval = 5; };""",
        """type = "infiniband"; rdma_transport_mode = "RC";
           in = { address = "127.0.0.1:%(b)d"; polling = "event"; max_wrs = 64; cq_size = 64; };"""),
    "tcp": (
        """type = "socket"; layer = "tcp-client"; format = "busbar.binary";
           out = { address = "127.0.0.1:%(b)d"; reconnect_interval = 5; };""",
        """type = "socket"; layer = "tcp-server"; format = "busbar.binary";
           in = { address = "127.0.0.1:%(b)d"; };"""),
    "shmem": (
        """type = "shmem"; out = { name = "/busbar-shmem-reconnect-%(a)d"; };""",
        """type = "shmem"; in = { name = "/busbar-shmem-reconnect-%(a)d"; };"""),
}
SOURCE = """
nodes = {
    sig = { type = "signal"; signal = "counter"; rate = 2000.0; values = 4; };
    peer = { %s };
};
paths = ( { in = "sig"; out = "peer"; } );
"""
TARGET = """
nodes = { peer = { %s }; };
paths = ( { in = "peer"; } );
"""
SETTLED = 10  # rounds after which nothing may grow any more


def run(gateways, rounds, medium):
    source, target = gateways
    before = None
    target.wait_for_more(0)  # the first connection stands
    for i in range(rounds):
        target.ask("/node/peer/restart", "POST")
        # Behind the restart: what comes now has come by a new connection.
        target.wait_for_more(target.arrived())
        if i == SETTLED:
            before = [(g.descriptors(), g.resident_kb()) for g in gateways]
        if (i + 1) % 1000 == 0:
            print("%d rounds, %d and %d kB" % (i + 1, source.resident_kb(),
                                               target.resident_kb()), flush=True)
    for g in gateways:
        figures = g.connected("peer")
        # The source may have called in vain meanwhile, but never loses count.
        check(not figures or (figures["connections"] == 1 and figures["connected"] > rounds),
              "what is counted goes on behind a stop: %s" % figures)
    for g, (descriptors, kb) in zip(gateways, before):
        check(g.descriptors() <= descriptors + 2, "descriptors: %d, then %d" % (
            descriptors, g.descriptors()))
        # Arenas of threads settle late, and a sanitizer keeps what is freed: only
        # many rounds tell. A leak of 100 bytes a round does not hide then; in few
        # rounds it is the sanitizer that finds it.
        check(rounds < 1000 or g.resident_kb() <= kb + 600 + rounds // 20,
              "memory: %d kB, then %d kB" % (kb, g.resident_kb()))
    # 3: the send queue of 64 was full while the target got no processor.
    source.end((0, 3) if medium == "infiniband" else (0,))
    target.end()


def main():
    medium = sys.argv[1]
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 30
    port = first_port()
    ports = {"a": port, "b": port + 1}
    with tempfile.TemporaryDirectory() as folder, \
            Gateways("/busbar-shmem-reconnect-%d" % port) as gateways:
        gateways.append(Gateway(folder, "source", SOURCE % (MEDIA[medium][0] % ports)))
        gateways.append(Gateway(folder, "target", TARGET % (MEDIA[medium][1] % ports)))
        run(gateways, rounds, medium)


main()
