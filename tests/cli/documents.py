#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Checks that the commands and names in README.md, docs/features/ and the manual pages of the tools
exist, and runs the commands.

* Each `busbar NAME --option` and `villas-NAME` in the text is a sub-command with that option.
* Each line of the examples of the tools' pages and of README.md's adapter runs as it stands, in
  a folder that has the files which it names. One that would go on for ever has to be running
  still, and to have reported nothing.

usage: documents.py SOURCE; environment: BUSBAR.
"""
import concurrent.futures
import glob
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

SOURCE, BUSBAR = sys.argv[1], os.environ["BUSBAR"]
TOOLS = "villas-node pipe signal hook convert compare test-config conf2json graph relay".split()
# How long a line may go on that does not end by itself.
ENDLESS_S = 2
# By the names that only some hosts have; without them a line is not run.
NEEDS = {"-T svg": "dot", "| jsonschema": "jsonschema", "ibv_devinfo": "ibv_devinfo", "ib_send_lat": "ib_send_lat"}
RECORDING = "".join("%d.0(%d)\t%d.5\t2.0\n" % (1000 + i, i, i) for i in range(20))
LAB = """
nodes = {
	simulator = { type = "socket", in = { address = "127.0.0.1:%d" }, out = { address = "127.0.0.1:%d" } },
	recording = { type = "file", in = { uri = "recording.dat", epoch_mode = "original" } },
	sig = { type = "signal", rate = 20 }
}
paths = ( { in = "sig", out = "simulator" } )
"""
failed = False


def fail(*words):
    global failed
    failed = True
    print("FAILED:", *words)


def read(*path):
    with open(os.path.join(SOURCE, *path)) as f:
        return f.read()


def run(*args):
    return subprocess.run(args, capture_output=True, text=True, timeout=30)


# ---- names and options ----

helps = {}


def help_of(words):
    if words not in helps:
        p = run(BUSBAR, *words, "--help") if words[0] not in TOOLS else run(BUSBAR, *words, "-h")
        helps[words] = p.stdout if p.returncode == 0 else None
    return helps[words]


def check_command(where, text):
    words = text.split("`")[0].split(" -- ")[0].split()
    name = words[0]
    there = help_of((name,))
    if there is None:
        fail(where, "there is no", text)
        return
    inner = (name, words[1]) if len(words) > 1 and re.fullmatch("[a-z]+", words[1]) else (name,)
    both = there + (help_of(inner) or "")
    for option in re.findall(r"(?<=\s)--?[A-Za-z][\w-]*", text.split(" -- ")[0]):
        if option not in both:
            fail(where, "busbar %s does not tell of %s: %s" % (name, option, text))


def names():
    count = 0
    for path in [os.path.join(SOURCE, "README.md")] + glob.glob(os.path.join(SOURCE, "docs", "features", "*.md")):
        with open(path) as f:
            text = f.read()
        for m in re.finditer(r"`(?:build/)?busbar ([a-z][^`]*)`", text):
            check_command(os.path.basename(path), m.group(1))
            count += 1
        for name in re.findall(r"`villas-([a-z0-9-]+)", text):
            # Of a table of what is not there, older names, a format, and the client of shmem.
            if name not in ("api", "test-cmp", "config-check", "human", "shmem"):
                check_command(os.path.basename(path), name)
    return count


# ---- examples ----

def examples():
    """(page, lines): blocks of commands."""
    found = []
    for tool in "pipe signal hook convert compare conf2json graph schema ctl".split():
        text = read("man", "busbar-%s.1.scd" % tool)
        text = re.search(r"^# EXAMPLES?\n(.*?)(?=^# |\Z)", text, re.S | re.M).group(1)
        for block in re.findall(r"^```\n(.*?)^```", text, re.S | re.M):
            found.append((tool, block.splitlines()))
    for language, block in re.findall(r"^```(\w*)\n(.*?)^```$", read("README.md"), re.S | re.M):
        if not language and "busbar exec" in block:
            found.append(("README.md", block.splitlines()))
    return found


def prepare(folder, number):
    os.mkdir(folder)
    with open(os.path.join(folder, "lab.conf"), "w") as f:
        f.write(LAB % (number, number))
    shutil.copy(os.path.join(folder, "lab.conf"), os.path.join(folder, "gateway.conf"))
    for name in ("recording.dat", "other.dat", "expected.dat", "got.dat"):
        with open(os.path.join(folder, name), "w") as f:
            f.write(RECORDING)
    os.mkdir(os.path.join(folder, "build"))
    os.symlink(BUSBAR, os.path.join(folder, "build", "busbar"))


def end(p):
    """The group of the line, which this test has started."""
    try:
        os.killpg(p.pid, signal.SIGTERM)
    except ProcessLookupError:
        pass
    p.communicate(timeout=20)


def start(line, folder, path):
    env = dict(os.environ, PATH=path, TMPDIR=folder)
    return subprocess.Popen(["bash", "-c", "set -o pipefail; " + line], cwd=folder, env=env, text=True,
                            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                            start_new_session=True)


def try_block(top, index, page, lines, path):
    folder = os.path.join(top, str(index))
    port = 20000 + (os.getpid() * 16 + index) % 9000
    prepare(folder, port)
    behind, count = [], 0
    for line in lines:
        line = line.split("  #")[0].strip().replace("/run/user/1000", folder)
        # Other tests run perftest, too.
        line = line.replace("ib_send_lat", "ib_send_lat -p %d" % port)
        if not line or any(words in line and not shutil.which(program) for words, program in NEEDS.items()):
            continue
        count += 1
        waits = line.endswith("&")
        p = start(line.rstrip("& "), folder, path)
        if waits:
            behind.append(p)
            time.sleep(0.3)  # the next line finds it out: it is tried again
            continue
        for _ in range(20):
            try:
                said = p.communicate(timeout=60 if behind else ENDLESS_S)[1]
            except subprocess.TimeoutExpired:
                end(p)
                break
            if p.returncode == 0 or not behind:
                break
            p = start(line, folder, path)
            time.sleep(0.2)
        if p.returncode not in (0, None, -signal.SIGTERM, 143) and p.returncode > 0:
            fail("%s: %s: status %d: %s" % (page, line, p.returncode, said[-400:]))
    for p in behind:
        end(p)
    return count


def main():
    count = names()
    if count < 20:
        fail("only %d commands found" % count)
    with tempfile.TemporaryDirectory() as top, concurrent.futures.ThreadPoolExecutor(6) as pool:
        bin_dir = os.path.join(top, "bin")
        os.mkdir(bin_dir)
        for name in ["busbar"] + ["villas-" + t.replace("villas-", "") for t in TOOLS]:
            os.symlink(BUSBAR, os.path.join(bin_dir, name))
        path = bin_dir + ":" + os.environ["PATH"]
        tried = sum(f.result() for f in [pool.submit(try_block, top, i, *b, path)
                                         for i, b in enumerate(examples())])
    if tried < 12:
        fail("only %d lines of examples found" % tried)
    print("%d commands in the text, %d lines run" % (count, tried))
    return failed


sys.exit(main())
