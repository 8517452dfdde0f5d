#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""`busbar bench fabric` gives the figures of an experiment on a subnet, and measures a manager after a cut."""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

BUSBAR = os.environ["BUSBAR"]
ROUND = "buffer 16KiB; mtu 2048; duration 500us; traffic round shift by=3 message=16KiB"


def check(good, text):
    if not good:
        sys.exit("failed: " + str(text))


def bench(*args, status=0):
    run = subprocess.run([BUSBAR, "bench", "fabric", *args], capture_output=True, text=True, timeout=100)
    check(run.returncode == status, (args, run.returncode, run.stderr))
    return run


def figures(*args):
    return {name: f["value"] for name, f in json.loads(bench("--json", *args).stdout)["figures"].items()}


def ring(routing):
    return figures("--topology", "ring:8,delay=10ns", "--lanes", "2", "--routing", routing, "--lines", ROUND)


def experiments():
    alone = ring("min-hop")
    check(alone["deadlocks"] > 0 and alone["circle"] > 0, f"min-hop deadlocks on a ring: {alone}")
    for routing in ("up-down", "lash", "dfsssp"):
        f = ring(routing)
        check(f["deadlocks"] == 0 and f["circle"] == 0 and f["lost"] == 0, f"{routing} does not: {f}")
        check(f["round_rate"] > 0 and f["carried"] > 0 and f["round_latency"] > 0, f"{routing}: {f}")
    weights = figures("--topology", "single:4", "--lanes", "2", "--lines",
                      "arbitration low 0:192 1:64; duration 1ms; measure-from 200us; "
                      "traffic three host-1 -> host-3 sl=0; traffic one host-2 -> host-3 sl=1")
    check(2.8 < weights["three_rate"] / weights["one_rate"] < 3.2, f"lanes share by weights: {weights}")


def mistakes():
    check("expected a line of traffic" in bench(status=2).stderr, "an experiment without traffic")
    check("lanes 3" in bench("--lanes", "3", "--lines", ROUND, status=2).stderr, "three lanes")
    run = bench("--topology", "ring:8", "--lines", "trafic x uniform", "--lines", "trafic traffic", status=1)
    check("experiment.scenario:5" in run.stderr, f"a wrong line is named: {run.stderr}")


def sweeps(manager):
    text = bench("--json", "--measure", "sweep", "--manager", manager, "--topology", "fat-tree:2x2",
                 "--repetitions", "2").stdout
    latencies = json.loads(text)["latencies"]
    check(latencies["t_routes"]["count"] == 2 and latencies["t_routes"]["min"] > 0, f"{manager}: {latencies}")
    check(("t_sweep" in latencies) == (manager == "own"), f"{manager}: {latencies}")


def main():
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(pathlib.Path(folder))
        experiments()
        mistakes()
        sweeps("own")
        if shutil.which("opensm") and "opensm" in sys.argv:
            sweeps("opensm")


main()
