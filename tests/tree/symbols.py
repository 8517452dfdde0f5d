#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Counts faults of the tree by the symbols of the built objects; the numbers must not grow.

* circle FOLDER: files of a folder that use each other in a circle (A uses a function or
  variable of B, and B, over others or not, one of A). Such files can be read and tested
  only all together.
* folders FOLDER: the same for folders below one folder, each with all of its files. A name of
  the C library stands for the C library's function.
* double-names: global names that two files of src/ define, but for main, which each program has
  once. Both files cannot be linked into one program, and a reader takes one name for the other.

usage: symbols.py SOURCE BUILD [--other-build | --print]. limits.txt holds the numbers: a larger
number fails; a smaller one has to be put there. --print prints the file as it would be now.
--other-build: BUILD is of a compiler, or with options, that leave other references in the objects.
"""
import collections
import ctypes
import glob
import json
import os
import re
import subprocess
import sys


def objects(source, build):
    """Of each C file of src/, one object."""
    found = {}
    with open(os.path.join(build, "compile_commands.json")) as f:
        for entry in json.load(f):
            path = os.path.normpath(os.path.join(entry["directory"], entry["file"]))
            # Also files that are made; they lie in the folder of what they are made from.
            path = os.path.relpath(path, build if path.startswith(build + os.sep) else source)
            made = os.path.join(entry["directory"], entry["output"])
            if path.startswith("src/") and path.endswith(".c") and os.path.exists(made):
                found.setdefault(path, made)
    return found


def symbols(found):
    """(by name, the files that define it; by file, the names that it uses)."""
    defined, used = collections.defaultdict(set), collections.defaultdict(set)
    files = {made: path for path, made in found.items()}
    out = subprocess.run(["nm", "-A", "-P", *files], capture_output=True, text=True, check=True).stdout
    for line in out.splitlines():
        m = re.match(r"(.*): (\S+) (\w)", line)
        if m and m[3] == "U":
            used[files[m[1]]].add(m[2])
        elif m and m[3] in "TDBRVW" and m[2].isidentifier():
            defined[m[2]].add(files[m[1]])
    return defined, used


def circles(edges):
    """The sets of nodes that reach each other, with more than one (Tarjan, without recursion)."""
    number, low, stack, on, sets = {}, {}, [], set(), []
    for root in sorted(edges):
        work = [(root, iter(sorted(edges[root])))] if root not in number else []
        while work:
            node, rest = work[-1]
            if node not in number:
                number[node] = low[node] = len(number)
                stack.append(node)
                on.add(node)
            for other in rest:
                if other not in number:
                    work.append((other, iter(sorted(edges.get(other, ())))))
                    break
                if other in on:
                    low[node] = min(low[node], number[other])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == number[node]:
                    one = set()
                    while node not in one:
                        one.add(stack.pop())
                    on -= one
                    if len(one) > 1:
                        sets.append(one)
    return sets


def public(source):
    """Names of the system's libraries, which each of ours may offer."""
    names = set()
    for path in glob.glob(os.path.join(source, "src", "*", "symbols.list")):
        with open(path) as f:
            names |= {line.split()[0] for line in f if line.strip() and not line.startswith("#")}
    return names


def interposed(defined):
    """Names of the C library's functions, which libraries for LD_PRELOAD put others in place of."""
    c_library = ctypes.CDLL(None)
    return {name for name in defined if hasattr(c_library, name)}


def folders(defined, used, offered):
    """By folder, which of the folders below it use which others of them."""
    edges = collections.defaultdict(lambda: collections.defaultdict(set))
    for path, names in used.items():
        for other in {o for name in names if name not in offered for o in defined.get(name, ())}:
            mine, its = os.path.dirname(path).split("/"), os.path.dirname(other).split("/")
            same = len(os.path.commonprefix([mine, its]))
            if 1 < same < min(len(mine), len(its)):
                edges["/".join(mine[1:same])][mine[same]].add(its[same])
    return edges


def measure(defined, used, offered=()):
    """By name, (number, what is counted)."""
    edges, numbers = collections.defaultdict(set), {}
    for folder, uses in folders(defined, used, offered).items():
        found = [name for one in circles(uses) for name in sorted(one)]
        if found:
            numbers["folders " + folder] = (len(found), found)
    for path, names in used.items():
        for name in names:
            for other in defined.get(name, ()):
                if other != path and os.path.dirname(other) == os.path.dirname(path):
                    edges[path].add(other)
    for one in circles(edges):
        folder = os.path.dirname(min(one))[len("src/"):]
        number, what = numbers.get("circle " + folder, (0, []))
        numbers["circle " + folder] = (number + len(one), what + sorted(map(os.path.basename, one)))
    double = sorted(n for n, where in defined.items() if len(where) > 1 and n not in offered and n != "main")
    numbers["double-names"] = (len(double), ["%s (%s)" % (n, ", ".join(sorted(defined[n]))) for n in double])
    return numbers


def read_limits(path):
    with open(path) as f:
        lines = [line.split() for line in f if line.strip() and not line.startswith("#")]
    return {" ".join(words[:-1]): int(words[-1]) for words in lines}


def can_fail():
    """A circle of three, one beside it that is in none, one of two folders, and a name that two
    files define."""
    where = {"f": {"src/x/a.c"}, "g": {"src/x/b.c"}, "h": {"src/x/c.c"}, "i": {"src/x/d.c"},
             "j": {"src/x/low/a.c"}, "k": {"src/x/high/part/a.c"},
             "double": {"src/x/a.c", "src/y/a.c"}}
    uses = {"src/x/a.c": {"g", "i", "k"}, "src/x/b.c": {"h"}, "src/x/c.c": {"f"},
            "src/x/d.c": {"puts"}, "src/x/low/a.c": {"k"}, "src/x/high/b.c": {"j"},
            "src/y/a.c": {"f"}}
    found = measure(where, uses)
    return {k: v[0] for k, v in found.items()} == {
        "circle x": 3, "folders x": 2, "double-names": 1}


def main():
    source, build = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
    if "--other-build" in sys.argv:
        print("skipped: the numbers are those of gcc, optimized and without sanitizers")
        return 77
    found = objects(source, build)
    defined, used = symbols(found)
    numbers = measure(defined, used, public(source) | interposed(defined))
    if "--print" in sys.argv:
        for name, (number, _) in sorted(numbers.items()):
            print(name, number)
        return 0
    limits = read_limits(os.path.join(os.path.dirname(os.path.abspath(__file__)), "limits.txt"))
    failed = not can_fail()
    if failed:
        print("FAILED: circles and double names are not found")
    if len(found) < 600:
        print("skipped: only %d objects are there" % len(found))
        return 77
    for name in sorted(numbers.keys() | limits.keys()):
        number, what = numbers.get(name, (0, []))
        limit = limits.get(name, 0)
        if number > limit:
            failed = True
            print("FAILED: %s is %d, more than %d: %s" % (name, number, limit, ", ".join(what)))
        elif number < limit:
            print("%s is %d now: put that into tests/tree/limits.txt (%d)" % (name, number, limit))
    print("%d objects looked at" % len(found))
    return failed


sys.exit(main())
