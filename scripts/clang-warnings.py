#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Checks each source of a build folder, which gcc has built, by clang; a warning is a failure.

clang-warnings.py BUILD: clang reads the sources with the options of
BUILD/compile_commands.json and makes no code. Exit status: 0 no warning, 1 a warning. Without
clang nothing is looked at.
"""
import concurrent.futures
import json
import os
import pathlib
import shlex
import shutil
import subprocess
import sys


def commands(build):
    """One command for each source and set of options, without the options that name the output."""
    seen = {}
    for entry in json.loads((build / "compile_commands.json").read_text(encoding="utf-8")):
        words = shlex.split(entry["command"])
        while words and not words[0].startswith("-"):
            words.pop(0)  # the compiler, behind ccache or not
        kept, skip = [], False
        for word in words:
            if skip:
                skip = False
            elif word in ("-o", "-MF", "-MQ"):
                skip = True
            elif word not in ("-MD", "-c") and word != entry["file"]:
                kept.append(word)
        if entry["file"].endswith(".c"):
            # Commands that differ only in the folder of the objects (.p) are the same.
            key = (entry["file"], tuple(w for w in kept if not w.endswith(".p")))
            seen[key] = (entry["directory"], ["clang", "-fsyntax-only", "-Werror",
                                              "-Wno-unknown-warning-option", *kept,
                                              entry["file"]])
    return seen.values()


def look(command):
    folder, words = command
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False)
    return done.returncode, done.stderr


def main():
    if len(sys.argv) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    if not shutil.which("clang"):
        print("skipped: clang is not installed")
        return 0
    todo = list(commands(pathlib.Path(sys.argv[1])))
    failed = 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for status, text in pool.map(look, todo):
            if status:
                failed += 1
                print(text)
    print(f"clang: {len(todo)} sources, {failed} with warnings")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
