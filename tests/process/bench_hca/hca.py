#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""hca.py LOSSES: `busbar bench hca` on busbar's own adapter: every message is accounted for,
what the adapter loses or delays on purpose is reported, wrong combinations are refused, and
Ctrl-C ends it. LOSSES: the program of losses.c."""
import json
import os
import signal
import socket
import subprocess
import sys
import time

BUSBAR = os.environ["BUSBAR"]
BURST, REPETITIONS, WARMUP = 300, 2, 50
SENT = BURST * REPETITIONS
failed = 0


def complain(what):
    global failed
    failed = 1
    print("failed:", what)


def start(options, faults="", **more):
    words = [BUSBAR, "bench", "hca", "--burst", BURST, "--repetitions", REPETITIONS,
             "--warmup", WARMUP, "--pause", 0, "--json"] + options.split()
    env = dict(os.environ, BUSBAR_FAULTS=faults)
    return subprocess.Popen([str(w) for w in words], env=env, text=True,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, **more)


def run(options, faults=""):
    """Exit status, summary, standard error."""
    child = start(options, faults)
    try:
        out, err = child.communicate(timeout=60)
    except subprocess.TimeoutExpired:
        child.send_signal(signal.SIGINT)
        out, err = child.communicate(timeout=20)
        return "timeout", {}, err
    try:
        return child.returncode, json.loads(out), err
    except ValueError:
        return child.returncode, {}, err


def measure(options, faults=""):
    """Latencies and figures of a run that has to succeed."""
    status, summary, err = run(options, faults)
    if status != 0:
        complain(f"{options}: status {status}: {err}")
        return None, None
    return summary["latencies"], {k: v["value"] for k, v in summary["figures"].items()}


def counts():
    for options in ("", "--type UC --op write --connect plain --inline",
                    "--type UD --poll-recv event --poll-send event",
                    "--op write --poll-recv mixed --spin 1us --ends threads",
                    "--connect plain --size 4096 --sges 5 --batch 7 --buffers 13 --mtu 1024",
                    "--type UD --connect plain --inline --clock ticks --size 8"):
        latencies, figures = measure(options)
        if not figures:
            continue
        for name, value in (("sent", SENT), ("lost", 0), ("damaged", 0), ("duplicates", 0),
                            ("reordered", 0)):
            if figures.get(name, 0) != value:
                complain(f"'{options}': {name} {figures[name]}, expected {value}")
        for name in ("t_lat", "t_lat_comp"):
            if latencies[name]["count"] != SENT or not latencies[name]["min"] > 0:
                complain(f"'{options}': {name} is {latencies[name]}")


def iwarp():
    """Its GID is no address, so the ends take one of the host; and it has no other connections
    than those of the connection manager."""
    os.environ["BUSBAR_DEVICES"] = "iwarp"
    for options in ("", "--mode roundtrip", "--mode throughput --batch 8",
                    "--poll-recv event --poll-send event --size 5000 --sges 3"):
        latencies, figures = measure("--device soft1 " + options)
        if figures and (figures["sent"] != SENT or figures["lost"] or
                        latencies.get("t_lat", {"count": SENT})["count"] != SENT):
            complain(f"soft1 {options}: {figures}")
    for options, words in (("--connect plain", "connect = cm"), ("--op write", "immediate")):
        status, _, err = run("--device soft1 " + options)
        if status != 1 or words not in err:
            complain(f"soft1 {options}: status {status}: {err}")
    os.environ["BUSBAR_DEVICES"] = "all"
    status, _, err = run("--device soft1")
    if status != 1 or "goes over soft0" not in err:
        complain(f"soft1 beside soft0: status {status}: {err}")
    del os.environ["BUSBAR_DEVICES"]


def unsignaled():
    latencies, figures = measure("--unsignaled")
    if figures and not REPETITIONS <= latencies["t_lat_comp"]["count"] <= 4 * REPETITIONS:
        complain(f"unsignaled: {latencies['t_lat_comp']['count']} completions")


def losses(program):
    expected = int(subprocess.check_output([program, "7", "0.05", str(WARMUP), str(SENT)]))
    if not 0 < expected < SENT:
        complain(f"{expected} losses are no test")
    for options in ("--type UD", "--type UC --op write",
                    "--type UC --poll-recv event --buffers 16"):
        latencies, figures = measure(options + " --lost-after 30ms", "loss=5%,seed=7")
        if not figures:
            continue
        came = latencies["t_lat"]["count"]
        # With 16 receives a message may find none, which is a loss as well.
        exact = "buffers" not in options
        if figures["sent"] != SENT or figures["lost"] + came != SENT or \
                figures["lost"] < expected or (exact and figures["lost"] != expected):
            complain(f"{options}: lost {figures['lost']}, received {came}, expected {expected}")


def lost_round_trips():
    """Both ends sleep in the middle of a burst, and nothing comes to wake them."""
    for options in ("--type UD --poll-recv event", "--type UC --poll-recv mixed --spin 1us"):
        latencies, figures = measure("--mode roundtrip --burst 10 --warmup 5 --lost-after 5ms " +
                                     options, "loss=30%,seed=7")
        if figures and (not figures["lost"] > 0 or
                        latencies["t_rtt"]["count"] + figures["lost"] != 10 * REPETITIONS):
            complain(f"{options}: {figures}, {latencies}")


def scaled():
    for options, scale in (("", 2), ("--mode throughput", 3), ("", 0.5)):
        _, figures = measure(f"{options} --scale {scale}")
        if figures and figures["sent"] != SENT * scale:
            complain(f"'{options}' scaled by {scale}: {figures['sent']} messages")
    status, _, err = run("--scale 1e6")
    if status == 0 or "16777216" not in err:
        complain(f"a scale that is too large: status {status}: {err}")


def delay():
    """Never less than the delay; more only while others have the machine."""
    for _try in range(5):
        latencies, _ = measure("--burst 20 --pause 1ms --warmup 5", "in.delay=3ms")
        # Two clocks, of the adapter and of the measurement.
        if not latencies or 2.99e6 <= latencies["t_lat"]["min"] < 4.5e6:
            return
        if latencies["t_lat"]["min"] < 2.99e6:
            break
    complain(f"a delay of 3 ms is measured as {latencies['t_lat']}")


def others():
    latencies, figures = measure("--mode roundtrip --inline --unsignaled")
    if figures and (latencies["t_rtt"]["count"] != SENT or
                    not latencies["t_lat"]["min"] < latencies["t_rtt"]["min"]):
        complain(f"round trip: {latencies}")
    _, figures = measure("--mode throughput --batch 8")
    if figures and (figures["lost"] or not figures["rate"] > 0):
        complain(f"throughput: {figures}")
    # Both messages would be there at once, in no time, without a rate.
    _, figures = measure("--mode throughput --burst 2 --batch 2 --repetitions 50")
    if figures and not 0 < figures.get("rate", 0) < 50e6:
        complain(f"throughput of two messages: {figures}")


def refusals():
    for options, status, words in (
            ("--type UD --op write", 2, "RDMA"), ("--type UD --size 8192", 2, "datagram"),
            ("--burst 4 --batch 8", 2, "batch"), ("--device none", 1, "none"),
            ("--inline --size 65536", 1, "inline"), ("--type XY", 2, "RC"),
            ("--mode throughput --burst 1000000 --repetitions 5000", 2, "4294967295")):
        got, _, err = run(options)
        if got != status or words not in err:
            complain(f"{options}: status {got}: {err}")


def server_refusals():
    for options in ("--cpu abc", "--cpu -1", "--cpu 1x", "--once word"):
        done = subprocess.run([BUSBAR, "bench", "hca", "--server", "--listen",
                               f"127.0.0.1:{free_port()}", *options.split()],
                              capture_output=True, text=True, timeout=20)
        word = options.split()[1]
        if done.returncode != 2 or f"{word}: " not in done.stderr:
            complain(f"--server {options}: status {done.returncode}: {done.stderr}")


def interrupted():
    child = start("--pause 1s --poll-recv event", start_new_session=True)
    # Until the ends are there.
    ends = f"/proc/{child.pid}/task/{child.pid}/children"
    while child.poll() is None and len(open(ends).read().split()) < 2:
        time.sleep(0.01)
    pids = open(ends).read().split()
    time.sleep(0.2)
    os.killpg(child.pid, signal.SIGINT)
    try:
        child.communicate(timeout=20)
    except subprocess.TimeoutExpired:
        complain("Ctrl-C does not end it")
        child.kill()
    if child.returncode != 130:
        complain(f"Ctrl-C: status {child.returncode}")
    for pid in pids:
        if os.path.exists(f"/proc/{pid}"):
            complain(f"process {pid} is left")


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def two_hosts():
    at = f"127.0.0.1:{free_port()}"
    server = subprocess.Popen([BUSBAR, "bench", "hca", "--server", "--once", "--listen", at],
                              stderr=subprocess.PIPE, text=True)
    # It says so when it listens.
    if "waiting" not in server.stderr.readline():
        complain("the server does not begin")
    latencies, figures = measure(f"--mode roundtrip --poll-recv event --peer {at}")
    if figures and (latencies["t_rtt"]["count"] != SENT or figures["lost"]):
        complain(f"two hosts: {latencies}, {figures}")
    if figures and server.wait(timeout=20):
        complain(f"server: status {server.returncode}: {server.stderr.read()}")
    server.kill()
    server.communicate()


counts()
iwarp()
unsignaled()
losses(sys.argv[1])
lost_round_trips()
scaled()
delay()
others()
refusals()
server_refusals()
interrupted()
two_hosts()
sys.exit(failed)
