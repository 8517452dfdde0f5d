#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Chooses tests of a build folder for the sanitizers; prints their names, one on a line.

choose-tests.py BUILD [--seconds N] [--durations LOG] [--base COMMIT] [--seed TEXT]
    [--without SUITE,SUITE...] [--threads-in OTHER_BUILD]
choose-tests.py BUILD --always [--without SUITE,SUITE...] [--threads-in OTHER_BUILD]
choose-tests.py BUILD --targets FILE

Tests of tests/unit and tests/fuzz are always chosen. Of the others: those of the rooms that changed
since COMMIT (tests/rooms.txt says which they are), and a quarter of the rest, which TEXT selects, so
that a few changes in a row run all of them. When these take longer than N seconds together, by the
durations in LOG (meson's testlog.json of another build), TEXT selects among them; --seconds 0 is no
limit. Thorough tests, which take minutes, are chosen without a limit alone. A line on standard error
gives the numbers.

--threads-in leaves out the tests whose program in OTHER_BUILD cannot start a thread.

The second form prints only the tests that are always chosen.

The third form prints the files to build for the tests that FILE names: all that is built by
default outside of tests/ and man/, and the programs of these tests.

By default COMMIT is the last one that is at least six hours older than the commit that is
checked out, and TEXT is the commit that is checked out.
"""
import argparse
import hashlib
import json
import pathlib
import re
import subprocess
import sys

SOURCE = pathlib.Path(__file__).resolve().parent.parent
CHANGE_HOURS = 6
PART = 4
ALWAYS = ("unit", "fuzz")
# What is built by default below these is built for the tests that need it.
FOR_TESTS_ONLY = ("tests", "man")
ONE_THREAD_LIBRARIES = {"libc", "libm", "ld-linux-x86-64", "libcmocka", "libjansson", "libconfig"}


def git(*words):
    done = subprocess.run(["git", "-C", str(SOURCE), *words], capture_output=True, text=True,
                          check=False)
    return done.stdout.strip() if done.returncode == 0 else ""


def introspect(build, what):
    file = build / "meson-info" / f"intro-{what}.json"
    return json.loads(file.read_text(encoding="utf-8"))


def folder_of(test):
    """The folder below tests/ that defines the test, by the first of its files there."""
    for word in test["cmd"]:
        found = re.search(r"(?:^|/)tests/(.+)/[^/]+$", word)
        if found:
            return found[1]
    return ""


def rank(seed, name):
    """A number that seed and name determine: small ones are chosen first."""
    return int.from_bytes(hashlib.sha256(f"{seed} {name}".encode()).digest()[:8], "big")


def room_table():
    table = {}
    for line in (SOURCE / "tests" / "rooms.txt").read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            room, *folders = line.split()
            table[room] = folders
    return table


def touched_folders(base):
    """Folders below tests/ whose tests the changes since base concern."""
    table = room_table()
    folders = set()
    for path in git("diff", "--name-only", base, "HEAD").splitlines():
        if path.startswith("tests/"):
            folders.add(str(pathlib.PurePath(path).parent.relative_to("tests")))
        for room in map(str, pathlib.PurePath(path).parents):
            if room in table:
                folders.update(table[room])
                break
    return folders


def default_base():
    time = git("log", "-1", "--format=%ct")
    if not time:
        return ""
    return git("log", "-1", "--format=%H", f"--before={int(time) - CHANGE_HOURS * 3600}")


def durations(log):
    if not log or not log.exists():
        return {}
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
    entries = map(json.loads, lines)
    return {e["name"].split(" / ", 1)[-1]: e["duration"] for e in entries}


def within(tests, seconds, known):
    """As many of the tests, in this order, as take no longer than these seconds."""
    chosen, total = [], 0
    for test in tests:
        cost = known.get(test["name"], 1)
        if not seconds or total + cost <= seconds:
            chosen.append(test)
            total += cost
    return chosen


def cannot_start_threads(test, build, other):
    """True when the test's program in the other build imports no function that starts a thread
    and needs only libraries that start none."""
    program = pathlib.Path(test["cmd"][0])
    if not program.is_relative_to(build.resolve()):
        return False
    program = other / program.relative_to(build.resolve())
    done = subprocess.run(["readelf", "--wide", "--dynamic", "--dyn-syms", str(program)],
                          capture_output=True, text=True, check=False)
    needed = set(re.findall(r"\(NEEDED\).*\[([\w-]+)\.so", done.stdout))
    return bool(needed) and needed <= ONE_THREAD_LIBRARIES and \
        not re.search(r" UND (pthread_create|thrd_create|timer_create|clone)\b", done.stdout)


def print_targets(build, names):
    """Files of the build folder that the tests of these names need, for ninja."""
    needed = set()
    for test in introspect(build, "tests"):
        if test["name"] in names:
            needed.update(test["depends"])
    for target in introspect(build, "targets"):
        below = pathlib.PurePath(target["defined_in"]).relative_to(SOURCE).parts[0]
        if target["id"] in needed or (below not in FOR_TESTS_ONLY and target["build_by_default"]):
            for file in target["filename"]:
                print(pathlib.PurePath(file).relative_to(build.resolve()))


def parse():
    parser = argparse.ArgumentParser(allow_abbrev=False, description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--seconds", type=float, default=0)
    parser.add_argument("--durations", type=pathlib.Path)
    parser.add_argument("--base", default=None)
    parser.add_argument("--seed", default=None)
    parser.add_argument("--without", default="")
    parser.add_argument("--threads-in", type=pathlib.Path)
    parser.add_argument("--always", action="store_true")
    parser.add_argument("--targets", type=pathlib.Path)
    return parser.parse_args()


def suites_of(test):
    return {suite.split(":")[-1] for suite in test["suite"]}


def is_always_chosen(test):
    return folder_of(test).split("/")[0] in ALWAYS


def main():
    options = parse()
    if options.targets:
        print_targets(options.build,
                      set(options.targets.read_text(encoding="utf-8").splitlines()))
        return 0
    without = set(options.without.split(",")) - {""}
    if options.always or options.seconds:
        without.add("thorough")
    tests = [t for t in introspect(options.build, "tests") if not suites_of(t) & without]
    if options.threads_in:
        tests = [t for t in tests
                 if not cannot_start_threads(t, options.build, options.threads_in)]
    if options.always:
        print("\n".join(t["name"] for t in tests if is_always_chosen(t)))
        return 0
    base = default_base() if options.base is None else options.base
    seed = options.seed or git("rev-parse", "HEAD")
    touched = touched_folders(base) if base else set()
    always, changed, rest = [], [], []
    for test in sorted(tests, key=lambda t: rank(seed, t["name"])):
        folder = folder_of(test)
        if is_always_chosen(test):
            always.append(test)
        elif not base or any(folder == f or folder.startswith(f + "/") for f in touched):
            changed.append(test)
        else:
            rest.append(test)
    wanted = changed + rest[:(len(rest) + PART - 1) // PART]
    # After a change of many rooms there is no time for all their tests: in this order, the
    # limit leaves a part of them and of the others.
    wanted.sort(key=lambda t: rank(seed, t["name"]))
    chosen = within(wanted, options.seconds, durations(options.durations))
    print(f"chosen: {len(always)} tests that always run, and {len(chosen)} of these: "
          f"{len(changed)} of rooms that changed, a quarter of {len(rest)} others",
          file=sys.stderr)
    for test in always + chosen:
        print(test["name"])
    return 0


if __name__ == "__main__":
    sys.exit(main())
