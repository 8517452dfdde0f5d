#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""`busbar trace --live -- PROGRAM` tells packet damming while the program runs, and reports at its end or at
Ctrl-C; nothing stays behind. The adapter waits longer after an RNR NAK than ConnectX-4 does, so that the
second request is posted within that time on a busy machine, too.

usage: live.py STALL; environment: BUSBAR.
"""
import json
import os
import signal
import subprocess
import sys
import tempfile

STALL, BUSBAR = sys.argv[1], os.environ["BUSBAR"]
LIMIT_S = 60
PROFILE = "nak_read_us = 140\nrnr_permille = 20000\ntimeout_floor = 16\nloses_posted = %s\n"


def environment(tmp, loses="on"):
    profile = os.path.join(tmp, "profile-" + loses)
    with open(profile, "w", encoding="ascii") as f:
        f.write(PROFILE % loses)
    pipes = os.path.join(tmp, "100% pipes, here")
    os.makedirs(pipes, exist_ok=True)
    return {**os.environ, "BUSBAR_DEVICES": "soft", "BUSBAR_PAGING": profile, "TMPDIR": pipes}, pipes


def left(folder):
    return [name for name in os.listdir(folder) if name.startswith("busbar-trace")]


def live(tmp, *args, loses="on"):
    env, pipes = environment(tmp, loses)
    done = subprocess.run([BUSBAR, "trace", "--live", *args], env=env, text=True, timeout=LIMIT_S,
                          capture_output=True, check=False)
    assert not left(pipes)
    return done


def parts(text):
    """The news, an object on a line each, and the report, an object on many lines."""
    at = text.index("\n{\n") + 1 if not text.startswith("{\n") else 0
    return [json.loads(line) for line in text[:at].splitlines()], json.loads(text[at:])


def the_end_of_the_program(tmp):
    done = live(tmp, "--json", "--", STALL, "2", "10")
    news, report = parts(done.stdout)
    assert done.returncode == 1, done
    assert {n["kind"] for n in news} == {"damming"} and report["flows"][0]["verdict"] == "damming", done
    assert len(news) == len(report["flows"][0]["findings"]), done
    assert news[0]["sentence"].endswith("lost in 1 stall."), news
    assert " ms\n" in done.stderr, "what the program prints"
    done = live(tmp, "--", STALL, "1", "10", loses="off")
    assert done.returncode == 0 and "page fault" in done.stdout, done
    assert done.stdout.count("flow 1:") == 1, "a page fault is no news"


def started(env, *program):
    run = subprocess.Popen([BUSBAR, "trace", "--live", "--json", "--", *program], env=env, text=True,
                           stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    first = json.loads(run.stdout.readline())
    assert first["kind"] == "damming" and run.poll() is None, "news while the program runs"
    return run


def interrupted(tmp):
    env, pipes = environment(tmp)
    run = started(env, STALL, "1000", "10")
    run.send_signal(signal.SIGINT)
    out, err = run.communicate(timeout=LIMIT_S)
    assert run.returncode == 1 and "was ended by signal 2" in err, (run.returncode, err)
    assert parts(out)[1]["flows"][0]["verdict"] == "damming", out
    assert not left(pipes)


def a_program_that_does_not_end(tmp):
    env, pipes = environment(tmp)
    run = started(env, "/bin/sh", "-c", 'trap "" INT; exec "$@"', "sh", STALL, "1000", "10")
    with open("/proc/%d/task/%d/children" % (run.pid, run.pid), encoding="ascii") as f:
        child = int(f.read().split()[0])
    try:
        while run.poll() is None:
            run.send_signal(signal.SIGINT)
            try:
                run.wait(0.05)
            except subprocess.TimeoutExpired:
                pass
        out, err = run.stdout.read(), run.stderr.readline()
    finally:
        os.kill(child, signal.SIGKILL)
    run.communicate()
    assert run.returncode == 1 and "has not ended" in err and '"damming"' in out, (run.returncode, err)
    assert not left(pipes)


def a_reader_that_goes_away(tmp):
    env, pipes = environment(tmp)
    run = started(env, STALL, "20", "10")
    run.stdout.close()
    run.stdout = None
    run.communicate(timeout=LIMIT_S)
    assert run.returncode in (1, 3), run.returncode
    assert not left(pipes)


def nothing_to_see(tmp):
    done = live(tmp, "--", "/bin/true")
    assert done.returncode == 3 and "/bin/true has captured no packet" in done.stderr, done
    done = live(tmp, "--", "/nonexistent/program")
    assert done.returncode == 3 and "'/nonexistent/program' not found" in done.stderr, done
    assert "ended with status 127" in done.stderr, done
    done = live(tmp)
    assert done.returncode == 2 and "--live needs a program" in done.stderr, done
    done = live(tmp, "--counters", "--", "x")
    assert done.returncode == 2 and "one of both" in done.stderr, done


with tempfile.TemporaryDirectory() as folder:
    the_end_of_the_program(folder)
    interrupted(folder)
    a_program_that_does_not_end(folder)
    a_reader_that_goes_away(folder)
    nothing_to_see(folder)
