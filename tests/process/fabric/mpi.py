#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Open MPI and MPICH by their default settings, each process at a host of its own of a fat tree: rings and
all-to-all with checked data go through the fabric. usage: mpi.py PROCESSES [openmpi|mpich]...; without a name the one
that TESTS_SEED selects."""
import os
import re
import subprocess
import sys

from stock import BUSBAR, Fabric, PATIENCE_S, check, need, some

EXCHANGE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../programs/mpi_exchange.py")
# The number of the process is that of its host.
AT_HOST = ('rank=${OMPI_COMM_WORLD_RANK:-$PMI_RANK}; '
           'exec "$BUSBAR" exec -q -F "$FABRIC" -P host-$((rank + 1)) -- "$@"')
OPTIONS = {"openmpi": ["--oversubscribe"], "mpich": []}


def run(fabric, mpi, count):
    env = {k: v for k, v in os.environ.items() if not k.startswith(("UCX_", "OMPI_MCA_"))}
    env.update(BUSBAR=BUSBAR, FABRIC=fabric.name, UCX_LOG_LEVEL="info", OMPI_ALLOW_RUN_AS_ROOT="1",
               OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
    before = fabric.show()["nodes"]
    p = subprocess.run(["mpirun." + mpi, *OPTIONS[mpi], "-n", str(count), "sh", "-c", AT_HOST, "sh", sys.executable,
                        EXCHANGE, mpi, "0"], env=env, capture_output=True, text=True, timeout=4 * PATIENCE_S)
    said = p.stdout + p.stderr
    check(p.returncode == 0 and f"{count} processes exchanged their data" in said, f"{mpi}: {p.returncode}: {said}")
    check(re.search(r"tag\(.*rc_verbs/soft0:1", said), f"{mpi} over UCX takes reliable connections of soft0: {said}")
    received = {n["name"]: n["ports"][0]["received_bytes"] for n in fabric.show()["nodes"]}
    for node in before:
        name = node["name"]
        if name.startswith("host-") and int(name[5:]) <= count:
            grown = received[name] - node["ports"][0]["received_bytes"]
            # The longest messages alone.
            check(grown > 3000000, f"{mpi}: {name} received its data through the fabric: {grown} bytes")


def main():
    count, names = int(sys.argv[1]), sys.argv[2:] or some(OPTIONS, 1)
    need(*["mpirun." + n for n in names])
    with Fabric(f"fat-tree:2x{count // 2}") as fabric:
        for name in names:
            run(fabric, name, count)


main()
