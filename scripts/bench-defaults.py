#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""bench-defaults.py [BUILD ...]: how gateways do with no key set that says how they wait.

Each build folder runs `busbar bench node` in turns: a generator of 8 values, a medium, and
a reader that writes to memory. Nothing says timer, polling or affinity. A
further column, 'sleeping', is the first build with a generator that sleeps between all
steps and makes none up, and readers that sleep; it is what a gateway without a policy of
waiting does.

Each line gives medians over the turns: latency from the step taken to the receive time in
us, the steps that were missed, and processors that source and target use. The
target of a loopback is the same process (nan).

  --media M,...   loopback, shmem, udp, infiniband (all)
  --rates R,...   samples a second (1000,10000,50000,100000)
  --busy N,...    busy loops beside it (0,2)
  --seconds S     of each run (2)       --turns N  of each build (5)
"""
import argparse
import json
import os
import statistics
import subprocess
import sys

SLEEPING = "sleeping"


def run(build, name, rate, seconds, sleeping):
    waits = (["--polling", "event", "--timer", "timerfd", "--catch-up", "0"] if sleeping
             else ["--polling", "auto"])
    done = subprocess.run(
        [os.path.join(build, "busbar"), "bench", "node", "--json", "--node", name, "--rate",
         str(rate), "--samples", str(int(rate * seconds)), "--cpus", "none", *waits],
        stdout=subprocess.PIPE, check=True)
    case = json.loads(done.stdout)
    figures = {k: v["value"] for k, v in case["figures"].items()}
    latency = case["latencies"]["from_step"]
    return {"p50": latency["p50"] / 1e3, "p99": latency["p99"] / 1e3,
            "missed": figures["missed_share"],
            "lost": figures["lost_share"] + figures["lost_start_share"],
            "source": figures.get("source_cpu"), "target": figures.get("target_cpu")}


def median(values):
    """Of those that are known: on a busy machine processor times may be unknown."""
    known = [v for v in values if v is not None]
    return statistics.median(known) if known else float("nan")


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("builds", nargs="*", default=["build"])
    parser.add_argument("--media", default="loopback,shmem,udp,infiniband")
    parser.add_argument("--rates", default="1000,10000,50000,100000")
    parser.add_argument("--busy", default="0,2")
    parser.add_argument("--seconds", type=float, default=2)
    parser.add_argument("--turns", type=int, default=5)
    args = parser.parse_args()
    columns = [(SLEEPING, args.builds[0], True)]
    columns += [(b, b, False) for b in args.builds]
    print(f"{args.turns} turns of {args.seconds:g} s, medians; p50 and p99 in us, missed and"
          " lost in %, processors of source and target")
    print(f"{'medium':10} {'rate':>7} {'busy':>4} {'who':24} {'p50':>9} {'p99':>9}"
          f" {'missed':>7} {'lost':>6} {'source':>6} {'target':>6}", flush=True)
    for busy in map(int, args.busy.split(",")):
        load = [subprocess.Popen([sys.executable, "-c", "while True: pass"])
                for _ in range(busy)]
        try:
            for name in args.media.split(","):
                for rate in map(int, args.rates.split(",")):
                    got = {c[0]: [] for c in columns}
                    for _ in range(args.turns):
                        for who, build, sleeping in columns:
                            got[who].append(run(build, name, rate, args.seconds, sleeping))
                    for who, _, _ in columns:
                        m = {k: median(r[k] for r in got[who])
                             for k in got[who][0]}
                        print(f"{name:10} {rate:7} {busy:4} {who[-24:]:24} {m['p50']:9.2f}"
                              f" {m['p99']:9.2f} {m['missed']:7.2f} {m['lost']:6.2f}"
                              f" {m['source']:6.2f} {m['target']:6.2f}", flush=True)
        finally:
            for p in load:
                p.kill()
                p.wait()


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.exit(130)
