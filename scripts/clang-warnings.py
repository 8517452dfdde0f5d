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


# So many sources share one start of clang, which takes longer than to read a source.
BATCH = 16


def sources_by_options(build):
    """The sources for each folder and options, without the options that name the output."""
    found = {}
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
            # Folders of objects (.p) have no headers.
            elif word not in ("-MD", "-c") and word != entry["file"] and not word.endswith(".p"):
                kept.append(word)
        if entry["file"].endswith(".c"):
            found.setdefault((entry["directory"], tuple(kept)), {})[entry["file"]] = True
    return found


def compiler_command(folder, options, file):
    """What the driver would run for one source, without its name; unlike the driver, it takes
    several. The driver's own command when that is not found out."""
    driver = ["clang", "-fsyntax-only", "-Werror", "-Wno-unknown-warning-option", *options]
    shown = subprocess.run([*driver, "-###", file], cwd=folder, capture_output=True, text=True,
                           check=False)
    lines = [line for line in shown.stderr.splitlines() if '"-cc1"' in line]
    words = shlex.split(lines[0]) if len(lines) == 1 else []
    if not words or words.pop() != file or "-main-file-name" not in words:
        return driver
    name = words.index("-main-file-name")
    del words[name:name + 2]
    return [word for word in words if word != "-disable-free"]  # the memory of each source


def look(group):
    (folder, options), files = group
    command = compiler_command(folder, options, files[0])
    status, text = 0, ""
    for start in range(0, len(files), BATCH):
        done = subprocess.run([*command, *files[start:start + BATCH]], cwd=folder,
                              capture_output=True, text=True, check=False)
        status, text = status or done.returncode, text + done.stderr
    return status, text


def main():
    if len(sys.argv) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    if not shutil.which("clang"):
        print("skipped: clang is not installed")
        return 0
    todo = [(key, list(files))
            for key, files in sources_by_options(pathlib.Path(sys.argv[1])).items()]
    todo.sort(key=lambda group: -len(group[1]))  # the longest first
    failed = False
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for status, text in pool.map(look, todo):
            if status:
                failed = True
                print(text)
    print(f"clang: {sum(len(files) for _, files in todo)} sources, "
          f"{'warnings' if failed else 'no warning'}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
