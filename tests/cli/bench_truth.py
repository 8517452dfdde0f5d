#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Runs whose truth is known are judged right, or not at all, and no run contradicts another: the adapter
delays each packet of one of two cases, and on a machine that is busy nothing is decided.

usage: bench_truth.py; environment: BUSBAR.
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

BUSBAR = os.path.realpath(os.environ["BUSBAR"])
DELAY = "delay=20us"
RUNS = 3
# The claim: B1 is faster than A1.
SUITE = """
title = "a delay on purpose"; limit = "1ms";
common = { kind = "hca"; type = "RC"; burst = 2000; repetitions = 5; pause = "60us"; connect = "plain"; };
cases = ( { scenario = "A1"; }, { scenario = "B1"; } );
"""
HOLDS, FAILS, OPEN = "holds", "does not hold", "not decidable here"
failed = False


def check(good, *words):
    global failed
    if not good:
        failed = True
        print("FAILED:", *words)


def bench(folder, *words, **more):
    env = dict(os.environ, BUSBAR_TRANSPORTS="roce", **more)
    p = subprocess.run([BUSBAR, "bench", *words], cwd=folder, env=env, capture_output=True, text=True, timeout=200)
    check(p.returncode == 0, words, p.returncode, p.stdout, p.stderr)
    return p.stdout


def judge(folder, name, delayed):
    """The verdict of a run in which one scenario is delayed, and what disturbed it."""
    other = "B1" if delayed == "A1" else "A1"
    bench(folder, "run", "./truth.suite", "--out", name, "--only", other)
    bench(folder, "run", "./truth.suite", "--out", name, "--only", delayed, "--resume", BUSBAR_FAULTS=DELAY)
    shape = json.loads(bench(folder, "shapes", name, "--json"))
    first = next(s for s in shape["shapes"] if s["verdict"] != "not checked")
    check(first["claim"].startswith("busy polling is faster"), first)
    check((first["verdict"] == OPEN) == bool(first["reason"]), first)
    checks = [c["cacheline_oneway_ns"] for c in shape["disturbance"]["checks"]]
    machine = json.loads((folder / name / "machine.json").read_text())
    # Both of its commands measured the floor; the best counts.
    check(len(checks) >= 4 and shape["disturbance"]["floor_ns"] == min(checks), checks)
    check(abs(machine["floor"]["cacheline_oneway_ns"]["median"] - min(checks)) < 1, machine["floor"], checks)
    print(name, first["verdict"], first["figures"], first["reason"] or "", flush=True)
    return first, shape["disturbance"]


def truth_is_found(folder):
    verdicts = {"A1": set(), "B1": set()}
    for number in range(RUNS):
        for delayed in verdicts:
            shape, disturbance = judge(folder, f"{delayed}-{number}", delayed)
            verdicts[delayed].add(shape["verdict"])
            if not disturbance["busy"] and "while" not in (shape["reason"] or ""):
                low, high = shape["interval"]["low"], shape["interval"]["high"]
                check(low > 1 if delayed == "A1" else high < 1, "the interval is", low, high)
    # Right or open, whatever the machine did.
    check(FAILS not in verdicts["A1"], "what was delayed is called faster", verdicts)
    check(HOLDS not in verdicts["B1"], "what was delayed is called faster", verdicts)


def nothing_is_decided_on_a_busy_machine(folder):
    loops = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(2 * os.cpu_count())]
    try:
        shape, disturbance = judge(folder, "busy", "A1")
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()
    check(disturbance["busy"], disturbance)
    check("other programs used" in (disturbance["line"] or ""), disturbance)
    check(shape["verdict"] == OPEN, shape)


def main():
    with tempfile.TemporaryDirectory(prefix="busbar-truth.") as name:
        folder = pathlib.Path(name)
        (folder / "truth.suite").write_text(SUITE)
        truth_is_found(folder)
        nothing_is_decided_on_a_busy_machine(folder)
    return failed


sys.exit(main())
