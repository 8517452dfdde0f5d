#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The commands of docs/measurements.md and docs/benchmarks.md, which stand in blocks ```sh, run as they
are written: each section with a table has such a block, and its figures are what it makes.

usage: measurements.py parse|run SOURCE [REGEX]; environment: BUSBAR.

parse  Each block runs in a folder in which the programs are stand-ins: `busbar bench` checks its
       options and values and measures nothing, and scripts have to be there.
run    Each block runs with the real programs and few messages. A program that misses what it needs
       (status 77) ends its block. REGEX: only blocks that match.
"""
import os
import re
import shlex
import signal
import stat
import subprocess
import sys
import tempfile

MODE, SOURCE, ONLY = sys.argv[1], os.path.realpath(sys.argv[2]), (sys.argv[3:] or [""])[0]
BUSBAR = os.path.realpath(os.environ["BUSBAR"])
BUILD = os.path.dirname(BUSBAR)
DOCUMENTS = ["measurements.md", "benchmarks.md"]
# What makes the scripts short, by their own variables; busbar's scales all counts of samples.
FEW = {"BUSBAR_BENCH_SCALE": "0.002", "RUNS": "1", "SCALE": "1", "COUNT": "40", "IDLE": "20", "ROUNDS": "1",
       "SECONDS_EACH": "1", "DURATION": "1", "LIMIT": "10000", "DISTANCE": "any"}
# What has no variable.
SHORTER = [("reconnect.py $medium 10000", "reconnect.py $medium 30"), ("substation.py build 50", "substation.py build 1"),
           ("substation.py build 20", "substation.py build 1"), ("--rounds 3", "--rounds 1 --seconds 0.3"),
           ("-t 0.5", "-t 0.02"), ("COUNT=1000", "COUNT=40"), ("COUNT=300", "COUNT=40"), ("RUNS=3", "RUNS=1"),
           ("bench run quick", "bench run quick --ci"),
           # Some rows for all of them; and a program whose number of messages is fixed, over what is fast.
           ("scripts/bench-beside.sh\n", "scripts/bench-beside.sh stream small inside\n"),
           ("build/tests/process/adapter/adapter-many-latency",
            "BUSBAR_TRANSPORTS=shm build/tests/process/adapter/adapter-many-latency")]
BLOCK_S = 600
STAND_IN = """#!/bin/sh
case "$1 $2" in
"bench run") exec %(busbar)s "$@" --list ;;
"bench list") exec %(busbar)s "$@" ;;
*) exec %(busbar)s "$@" --help ;;
esac
"""
HOSTS = """host_a=a host_b=b
two_hosts() { [ "$1" -gt 0 ]; }
remove_hosts() { :; }
"""
failed = False


def fail(*words):
    global failed
    failed = True
    print("FAILED:", *words)


def read(name):
    with open(os.path.join(SOURCE, "docs", name), encoding="utf-8") as f:
        return f.read()


def blocks_of(text):
    return re.findall(r"^```sh\n(.*?)^```$", text, re.S | re.M)


def check_sections(name, text):
    """A table of figures belongs to commands."""
    for part in re.split(r"^(?=##+ )", text, flags=re.M)[1:]:
        if re.search(r"^\|---", part, re.M) and not blocks_of(part):
            fail(name, "a table without a block of commands:", part.splitlines()[0])


def write(folder, name, text):
    path = os.path.join(folder, name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)
    os.chmod(path, os.stat(path).st_mode | stat.S_IXUSR)


def make_stand_ins(folder):
    stand_in = STAND_IN % {"busbar": shlex.quote(BUSBAR)}
    write(folder, "build/busbar", stand_in)
    write(folder, "bin/busbar", stand_in)
    names = [os.path.join("scripts", n) for n in os.listdir(os.path.join(SOURCE, "scripts"))]
    for name in names + ["tests/process/control/reconnect.py", "build/tests/process/adapter/adapter-many-latency"]:
        if name.startswith("build/") or os.path.isfile(os.path.join(SOURCE, name)):
            write(folder, name, HOSTS if name.endswith("two-hosts.sh") else "#!/bin/sh\n")
    os.symlink(os.path.join(SOURCE, "examples"), os.path.join(folder, "examples"))


def make_tree(folder):
    os.symlink(BUILD, os.path.join(folder, "build"))
    os.mkdir(os.path.join(folder, "bin"))
    os.symlink(BUSBAR, os.path.join(folder, "bin", "busbar"))
    for name in ("scripts", "tests", "examples", "share"):
        os.symlink(os.path.join(SOURCE, name), os.path.join(folder, name))


def run_block(folder, block):
    """The status, and what was printed."""
    env = dict(os.environ, PATH=os.path.join(folder, "bin") + ":" + os.environ["PATH"], TMPDIR=folder)
    if MODE == "run":
        env.update(FEW)
        for long, short in SHORTER:
            block = block.replace(long, short)
    p = subprocess.Popen(["bash", "-ec", block], cwd=folder, env=env, text=True, stdin=subprocess.DEVNULL,
                         stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True)
    try:
        return p.communicate(timeout=BLOCK_S)[0], p.returncode
    except subprocess.TimeoutExpired:
        # The group of the block, which this test has started; scripts clean up.
        os.killpg(p.pid, signal.SIGTERM)
        return p.communicate(timeout=30)[0], "too long"


def check_blocks(name, text):
    count = 0
    for block in blocks_of(text):
        if not re.search(ONLY, block):
            continue
        count += 1
        with tempfile.TemporaryDirectory(prefix="bb.") as folder:
            (make_tree if MODE == "run" else make_stand_ins)(folder)
            said, status = run_block(folder, block)
        if MODE == "run":
            print("%s: %s: status %s" % (name, block.splitlines()[0], status), flush=True)
        if status not in ((0, 77) if MODE == "run" else (0,)):
            fail("%s: status %s:\n%s%s" % (name, status, block, said[-1500:]))
    return count


def check_text(name, text):
    """Commands within sentences, but for those with places for values."""
    count = 0
    without = re.sub(r"^```.*?^```$", "", text, flags=re.S | re.M)
    for command in re.findall(r"`(?:build/)?busbar (bench [^`]*)`", without):
        words = shlex.split(" ".join(command.split()))
        if any(re.fullmatch(r"[A-Z]{1,9}", w) or "," in w and w[0] == "A" for w in words):
            continue
        count += 1
        more = "--list" if words[1:2] == ["run"] and len(words) > 2 else "--help"
        p = subprocess.run([BUSBAR, *words, more], capture_output=True, text=True, timeout=60)
        if p.returncode:
            fail(name, "busbar", command, p.stderr)
    return count


def main():
    blocks = lines = 0
    for name in DOCUMENTS:
        text = read(name)
        check_sections(name, text) if name == "measurements.md" else None
        blocks += check_blocks(name, text)
        if MODE == "parse":
            lines += check_text(name, text)
    if not ONLY and blocks < 20:
        fail("only %d blocks found" % blocks)
    print("%d blocks, %d commands in the text" % (blocks, lines))
    return failed


sys.exit(main())
