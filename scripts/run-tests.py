#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Runs tests of a build folder; a test that fails is repeated alone, up to twice.

run-tests.py BUILD [--chosen FILE] [meson test's options]

--chosen FILE  names of tests, one on a line (scripts/choose-tests.py): only these run

UNSTEADY_FILE in the environment names a file to which tests that passed when they were
repeated are added; the limit counts all of its lines, so it is one for several runs.

A test that fails each time makes the run fail. One that passes when it is repeated is
unsteady: the run prints its name at its end and passes if there are at most three such tests.
Enter each of them into tests/unsteady.txt; the next change begins by finding out whether the
product or the test is at fault.

Exit status: 0 all passed, 1 a test failed or too many are unsteady.
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys

SOURCE = pathlib.Path(__file__).resolve().parent.parent
REPETITIONS = 2
UNSTEADY_MAX = 3
# More failures than these have a common cause: repeating them would only take time.
REPEATED_MAX = 8
FAILED = {"FAIL", "TIMEOUT", "ERROR", "INTERRUPT", "UNEXPECTEDPASS"}


def known_unsteady():
    """The entries of tests/unsteady.txt: 'NAME | DATE | WHAT IS KNOWN'."""
    lines = (SOURCE / "tests" / "unsteady.txt").read_text(encoding="utf-8").splitlines()
    return [line for line in lines if line.strip() and not line.startswith("#")]


def run_meson(build, names, options, log):
    """Runs the tests of these names, or all; returns meson's status and the results by name."""
    logs = build / "meson-logs"
    # The name of the log ends with that of the setup, if --setup is given.
    for old in logs.glob(f"{log}*.json"):
        old.unlink()
    status = subprocess.run(
        ["meson", "test", "-C", str(build), "--no-rebuild", "--logbase", log, *options, *names],
        check=False).returncode
    results = {}
    for log_file in logs.glob(f"{log}*.json"):
        for line in log_file.read_text(encoding="utf-8", errors="replace").splitlines():
            entry = json.loads(line)
            # "busbar:adapter+shm / NAME"
            results[entry["name"].split(" / ", 1)[-1]] = entry["result"]
    return status, results


def repeat(build, name, options):
    """True when the test passes at one of its repetitions, alone."""
    for number in range(1, REPETITIONS + 1):
        print(f"== again, alone ({number} of {REPETITIONS}): {name}", flush=True)
        status, results = run_meson(build, [name], options + ["--num-processes", "1"],
                                    "again")
        if status == 0 and results.get(name) in ("OK", "EXPECTEDFAIL"):
            return True
    return False


def note_unsteady(build, unsteady):
    """Adds the names to UNSTEADY_FILE; returns the number of names from earlier runs."""
    if "UNSTEADY_FILE" not in os.environ:
        return 0
    file = pathlib.Path(os.environ["UNSTEADY_FILE"])
    earlier = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
    with open(file, "a", encoding="utf-8") as out:
        out.writelines(f"{build.name}: {name}\n" for name in unsteady)
    return len(earlier)


def report(unsteady, failed, earlier):
    for name in unsteady:
        print(f"UNSTEADY {name}")
    for name in failed:
        print(f"FAILED {name}")
    if len(unsteady) + earlier > UNSTEADY_MAX:
        print(f"failed: {len(unsteady) + earlier} tests are unsteady, "
              f"at most {UNSTEADY_MAX} may be")
        return 1
    if unsteady:
        print("enter each into tests/unsteady.txt with the date and what is known")
    return 1 if failed else 0


def parse():
    parser = argparse.ArgumentParser(allow_abbrev=False, description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--chosen", type=pathlib.Path)
    return parser.parse_known_args()


def main():
    arguments, options = parse()
    build = arguments.build
    names = []
    if arguments.chosen:
        names = arguments.chosen.read_text(encoding="utf-8").splitlines()
        if not names:
            print("no test was chosen")
            return 0
    for line in known_unsteady():
        print(f"known to be unsteady: {line}", flush=True)
    status, results = run_meson(build, names, options + ["--print-errorlogs"], "testlog")
    bad = [name for name, result in results.items() if result in FAILED]
    if status != 0 and not bad:
        return 1  # meson has said why
    if len(bad) > REPEATED_MAX:
        print(f"{len(bad)} tests failed: none is repeated")
        unsteady, failed = [], bad
    else:
        unsteady = [name for name in bad if repeat(build, name, options)]
        failed = [name for name in bad if name not in unsteady]
    earlier = note_unsteady(build, unsteady)
    if failed:
        subprocess.run([str(SOURCE / "scripts" / "failed-tests.sh"), str(build)], check=False)
    return report(unsteady, failed, earlier)


if __name__ == "__main__":
    sys.exit(main())
