#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""bench-defaults.py [BUILD ...]: how gateways do with no key set that says how they wait.

Each build folder runs the same configurations in turns: a generator of 8 values, a
medium, and a reader that writes to memory. Nothing says timer, polling or affinity. A
further column, 'sleeping', is the first build with a generator that sleeps between all
steps and makes none up, and readers that sleep; it is what a gateway without a policy of
waiting does.

Each line gives medians over the turns: latency from the origin to the receive time in
us, the steps that were missed, and processor time of source and target per second. The
target of a loopback is the same process.

  --media M,...   loopback, shmem, udp, infiniband (all)
  --rates R,...   samples a second (1000,10000,50000,100000)
  --busy N,...    busy loops beside it (0,2)
  --seconds S     of each run (2)       --turns N  of each build (5)
"""
import argparse
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time

SLEEPING = "sleeping"


def media(name, sleeping, where):
    """Text of the node `peer` in the source and in the target."""
    mode = 'mode = "pthread";' if sleeping else ""
    event = 'polling = "event";' if sleeping else ""
    if name == "loopback":
        text = f'type = "loopback"; {mode} queuelen = 8192;'
        return text, text
    if name == "shmem":
        text = f'type = "shmem"; {mode} queuelen = 8192;'
        return (f'{text} out = {{ name = "busbar-defaults-{where}"; }};',
                f'{text} in = {{ name = "busbar-defaults-{where}"; }};')
    if name == "udp":
        text = 'type = "socket"; layer = "udp"; format = "busbar.binary";'
        return (f'{text} out = {{ address = "127.0.0.1:14371"; }};',
                f'{text} in = {{ address = "127.0.0.1:14371"; {event} }};')
    text = 'type = "infiniband";'
    depth = "max_wrs = 4096; cq_size = 4096;"
    return (f'{text} in = {{ address = "127.0.0.1:14372"; }};'
            f' out = {{ address = "127.0.0.1:14373"; max_inline_data = 128; {depth} }};',
            f'{text} in = {{ address = "127.0.0.1:14373"; {event} {depth}'
            f' signals = {{ count = 8; type = "float"; }}; }};')


def configurations(name, rate, seconds, sleeping, where):
    """One configuration, or that of the source and that of the target."""
    quiet = 'timer = "timerfd"; catch_up = 0;' if sleeping else ""
    source, target = media(name, sleeping, where)
    generator = (f'type = "signal"; signal = "mixed"; values = 8; rate = {rate}.0;'
                 f' limit = {int(rate * seconds)}; {quiet}')
    sink = ('type = "file"; uri = "/dev/null"; format = "csv";'
            ' out = { buffering = "memory"; buffer_size = 134217728; };')
    begin = f'generator = {{ {generator} }}; peer = {{ {source} }};'
    end = f'sink = {{ {sink} }};'
    if name == "loopback":
        return [f'idle_stop = true; nodes = {{ {begin} {end} }};'
                ' paths = ( { in = "generator"; out = "peer"; },'
                ' { in = "peer"; out = "sink"; } );']
    return [f'idle_stop = true; nodes = {{ {begin} }};'
            ' paths = ( { in = "generator"; out = "peer"; } );',
            f'nodes = {{ peer = {{ {target} }}; {end} }};'
            ' paths = ( { in = "peer"; out = "sink"; } );']


class Gateway:
    def __init__(self, build, text, name, where):
        self.file = os.path.join(where, f"{name}.conf")
        with open(self.file, "w", encoding="utf-8") as f:
            f.write(text)
        self.log = open(os.path.join(where, f"{name}.log"), "w+", encoding="utf-8")
        self.out = open(os.path.join(where, f"{name}.json"), "w+", encoding="utf-8")
        self.process = subprocess.Popen(
            [os.path.join(build, "busbar"), "run", "--summary=json", self.file],
            stdin=subprocess.DEVNULL, stdout=self.out, stderr=self.log)

    def await_log(self, text):
        end = time.monotonic() + 20
        while time.monotonic() < end and self.process.poll() is None:
            with open(self.log.name, encoding="utf-8") as f:
                if text in f.read():
                    return
            time.sleep(0.02)
        raise SystemExit(f"bench-defaults: '{text}' did not come in {self.log.name}")

    def finish(self, ask, seconds):
        """The summary and the processor time in seconds."""
        if ask:
            self.process.send_signal(signal.SIGTERM)
        end = time.monotonic() + seconds
        while True:
            pid, _, usage = os.wait4(self.process.pid, os.WNOHANG)
            if pid:
                break
            if time.monotonic() > end:
                self.process.kill()
                end += 5
            time.sleep(0.01)
        self.process.returncode = 0
        self.out.seek(0)
        text = self.out.read()
        self.log.close()
        self.out.close()
        return json.loads(text or "{}"), usage.ru_utime + usage.ru_stime


def run(build, name, rate, seconds, sleeping):
    with tempfile.TemporaryDirectory() as where:
        texts = configurations(name, rate, seconds, sleeping, os.path.basename(where))
        target = None
        if len(texts) == 2:
            target = Gateway(build, texts[1], "target", where)
            target.await_log("listening on" if name == "infiniband" else "is running")
        source = Gateway(build, texts[0], "source", where)
        sent, source_cpu = source.finish(False, seconds + 20)
        got, target_cpu = sent, 0.0
        if target:
            got, target_cpu = target.finish(True, 20)
    path = got["paths"][-1]
    generator = sent["nodes"]["generator"]
    steps = rate * seconds
    latency = path["latency"]
    return {"p50": latency["p50_us"], "p99": latency["p99_us"],
            "missed": 100 * generator["missed"] / steps,
            "lost": 100 * (1 - path["samples"] / max(1, generator["received"])),
            "source": source_cpu / seconds, "target": target_cpu / seconds}


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
                        m = {k: statistics.median(r[k] for r in got[who])
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
