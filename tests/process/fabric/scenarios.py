#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""busbar fabric simulate: what the scenarios that ship expect holds, and their results are the same each time.

usage: scenarios.py EXAMPLES GOLDEN [--write]

GOLDEN has the results of some scenarios, byte for byte; --write writes them anew, after a change of the
engine that is meant to change times."""

import json
import os
import signal
import subprocess
import sys
import tempfile
import time

BUSBAR = os.environ["BUSBAR"]
# One with many bit errors and random numbers, one with marks and delays, and one of each kind of lanes.
GOLDEN = ("cable-cut", "ring-min-hop", "two-lanes", "weights")


def simulate(*args, **more):
    return subprocess.run([BUSBAR, "fabric", "simulate", *args], capture_output=True, text=True, timeout=100,
                          **more)


def check(good, text):
    if not good:
        sys.exit("failed: " + text)


def expectations_hold(examples):
    names = sorted(n for n in os.listdir(examples) if n.endswith(".scenario"))
    check(len(names) >= 15, "scenarios are missing")
    for name in names:
        done = simulate("--json", os.path.join(examples, name))
        check(done.returncode == 0, f"{name}: status {done.returncode}\n{done.stderr}")
        result = json.loads(done.stdout)
        check(result["expect"], name + " expects nothing")
        for e in result["expect"]:
            check(e["holds"], f"{name}: {e}")
        check(result["sent"] == result["delivered"] + result["lost"] + result["inside"], name + ": packets are missing")
        check(result["reordered"] == 0, name + ": packets out of order")
        for f in result["flows"]:
            check(f["delivered"] <= f["sent"], name + ": more came than was sent")
    listed = simulate("--list", examples)
    check(listed.returncode == 0 and len(listed.stdout.splitlines()) == len(names), "--list")


def results_are_the_golden_ones(examples, golden, write):
    for name in GOLDEN:
        done = simulate("--json", os.path.join(examples, name + ".scenario"))
        path = os.path.join(golden, name + ".json")
        if write:
            with open(path, "w") as f:
                f.write(done.stdout)
        with open(path) as f:
            check(f.read() == done.stdout, f"{name}: the result is not {path}; if that is meant: {sys.argv[0]} ... --write")


def a_deadlock_names_its_links(examples):
    result = json.loads(simulate("-j", os.path.join(examples, "ring-min-hop.scenario")).stdout)
    lanes = result["deadlocks"][0]["lanes"]
    check(len(lanes) == 8 and {l["port"].split(":")[0] for l in lanes} == {f"switch-{i}" for i in range(1, 9)},
          f"deadlock: {lanes}")
    text = simulate(os.path.join(examples, "ring-min-hop.scenario")).stdout
    check("deadlock found at" in text and "switch-1:" in text, text)


def a_trace_has_each_packet(examples, folder):
    trace = os.path.join(folder, "trace")
    done = simulate("-j", "-t", trace, os.path.join(examples, "ring-min-hop.scenario"))
    result = json.loads(done.stdout)
    with open(trace) as f:
        lines = f.read().splitlines()
    times = [int(line.split()[0]) for line in lines if line.split()[1] == "sent"]
    check(times == sorted(times) and len(times) > 8, "trace: times")
    check(len([1 for line in lines if line.split()[1] == "marked"]) == result["marked"], "trace: marks")
    done = simulate("-t", "/dev/full", os.path.join(examples, "weights.scenario"))
    check(done.returncode == 1 and "/dev/full" in done.stderr, "a trace that cannot be written")


def faults_are_told(folder):
    path = os.path.join(folder, "x.scenario")

    def told(text, status, *words):
        with open(path, "w") as f:
            f.write(text)
        done = simulate(path)
        check(done.returncode == status, f"{text!r}: status {done.returncode}\n{done.stderr}")
        for word in words:
            check(word in done.stdout + done.stderr, f"{text!r}: no {word!r} in\n{done.stdout}{done.stderr}")

    told("topology ring:4\ntrafic x uniform\n", 1, path + ":2:", "trafic", "traffic")
    told("topology missing.topo\n", 1, path + ":1:", "missing.topo")
    told("topology ring:4\nrouting lash\ntraffic x uniform stop=1us\n", 1, "layers")
    told("topology ring:4\ntraffic x uniform load=10% stop=20us\nexpect share x > 2\n", 1, "does not hold")
    told("topology ring:4\ntraffic x uniform load=10% stop=20us\nexpect lost = 0\n", 0, "holds")
    check(simulate().returncode == 2 and simulate("-x", path).returncode == 2, "usage")
    check(simulate("--seed", "one", path).returncode == 2, "--seed")
    check(simulate(os.path.join(folder, "no")).returncode == 1, "no file")


def ctrl_c_prints_what_there_is(folder):
    path = os.path.join(folder, "long.scenario")
    with open(path, "w") as f:
        f.write("topology ring:4\nrouting up-down\nduration 900s\nsample 1ms\ntraffic x uniform load=50%\n")
    trace = os.path.join(folder, "long")
    p = subprocess.Popen([BUSBAR, "fabric", "simulate", "-j", "-t", trace, path], stdout=subprocess.PIPE,
                         stderr=subprocess.PIPE, text=True)
    while p.poll() is None and not (os.path.exists(trace) and os.path.getsize(trace)):
        time.sleep(0.01)
    p.send_signal(signal.SIGINT)
    out, _ = p.communicate(timeout=60)
    result = json.loads(out)
    check(p.returncode == 1 and result["interrupted"] and result["delivered"] > 0, "Ctrl-C")


def main():
    examples, golden = sys.argv[1:3]
    with tempfile.TemporaryDirectory() as folder:
        expectations_hold(examples)
        results_are_the_golden_ones(examples, golden, "--write" in sys.argv)
        a_deadlock_names_its_links(examples)
        a_trace_has_each_packet(examples, folder)
        faults_are_told(folder)
        ctrl_c_prints_what_there_is(folder)


main()
