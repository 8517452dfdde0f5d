#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""`busbar bench mpi`: programs of MPI over the adapter, with what its counters say.

Usage: bench_mpi.py; BUSBAR is the executable under test. Skipped where no MPI is installed
for which this build has programs.
"""
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time

BUSBAR = os.environ["BUSBAR"]
PROGRAMS = pathlib.Path(BUSBAR).parent / "examples" / "mpi"
failed = False


def fail(text):
    global failed
    failed = True
    print("failed:", text)


def check(good, text):
    if not good:
        fail(text)


def bench(*options, env=None):
    return subprocess.run([BUSBAR, "bench", "mpi", *options], capture_output=True, text=True,
                          timeout=100, env=env)


def summary(*options):
    done = bench("--json", *options)
    if done.returncode:
        fail(f"{' '.join(options)}: status {done.returncode}: {done.stdout}{done.stderr}")
        return None
    return json.loads(done.stdout)


def has(library):
    return shutil.which(f"mpirun.{library}") and (PROGRAMS / f"pingpong-{library}").exists()


def what_is_missing_is_said():
    env = dict(os.environ, PATH="/nonexistent")
    done = bench(env=env)
    check(done.returncode == 1 and "mpirun.openmpi is not installed" in done.stderr,
          f"without mpirun: {done.returncode} {done.stderr}")
    for options, words in [
            (["--processes", "4"], "pingpong has 2"),
            (["--program", "collective", "--operation", "reduce", "--size", "9"],
             "a multiple of 8"),
            (["--environment", "UCX"], "expected NAME=VALUE"),
            (["--call", "sent"], "is not usable")]:
        done = bench(*options)
        check(done.returncode == 2 and words in done.stderr,
              f"{options}: {done.returncode} {done.stderr}")


def messages_of_the_adapter_are_counted(library):
    for options, expected in [
            (["--rendezvous-from", "16384"], {"wire_sends": 1, "wire_reads": 0}),
            (["--rendezvous-from", "4096", "--call", "isend", "--environment",
              "UCX_RNDV_SCHEME=get_zcopy"], {"wire_sends": 2, "wire_reads": 1})]:
        result = summary("--library", library, "--size", "8000", "--messages", "200", *options)
        if not result:
            continue
        figures = {name: f["value"] for name, f in result["figures"].items()}
        check(figures["damaged"] == 0, f"{library} {options}: damaged messages")
        for name, value in expected.items():
            check(abs(figures.get(name, -1) - value) < 0.2,
                  f"{library} {options}: {name} is {figures.get(name)}, not about {value}")
        check(result["latencies"]["t_lat"]["count"] == 200, "not all round trips are there")
        check(("t_complete" in result["latencies"]) == ("isend" in options),
              "the completion of a call that returns early, and of no other")


def running(text):
    """Processes with this in their command line."""
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and text in (entry / "cmdline").read_bytes().decode():
                found.append(entry.name)
        except (OSError, UnicodeDecodeError):
            pass
    return found


def ctrl_c_ends_all_processes(library, folder):
    child = subprocess.Popen([BUSBAR, "bench", "mpi", "--library", library, "--messages",
                              "100000000", "--counters", "false", "--transport", "shared"],
                             env=dict(os.environ, TMPDIR=folder), text=True,
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    until = time.monotonic() + 20
    # mpirun and both processes name the folder.
    while len(running(f"{folder}/busbar-bench")) < 3 and time.monotonic() < until:
        time.sleep(0.05)
    child.send_signal(signal.SIGINT)
    out, err = child.communicate(timeout=20)
    check(child.returncode == 130, f"after Ctrl-C: {child.returncode} {out} {err}")
    # The last to go are those that mpirun told to.
    until = time.monotonic() + 10
    while running(f"{folder}/busbar-bench") and time.monotonic() < until:
        time.sleep(0.05)
    check(not running(f"{folder}/busbar-bench"), f"{library}: processes are left")


what_is_missing_is_said()
libraries = [library for library in ("openmpi", "mpich") if has(library)]
# A folder with a short name: MPIs make sockets below it.
with tempfile.TemporaryDirectory(prefix="busbar-mpi.") as temporary:
    os.environ["TMPDIR"] = temporary
    for each in libraries:
        messages_of_the_adapter_are_counted(each)
    if libraries:
        ctrl_c_ends_all_processes(libraries[0], temporary)
if not failed and not libraries:
    print("skipped: no MPI, or none whose compiler was there when this was built")
    sys.exit(77)
sys.exit(failed)
