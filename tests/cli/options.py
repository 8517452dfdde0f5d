#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Options of commands: those of --help are those of the manual page, and errors name the option.

usage: options.py SOURCE; environment: BUSBAR.
"""
import os
import re
import subprocess
import sys

SOURCE, BUSBAR = sys.argv[1], os.environ["BUSBAR"]
# The page of these commands has the name of their first word.
COMMANDS = ["check", "compare", "conf2json", "convert", "ctl", "delivery", "devices", "doctor", "exec", "fabric cut",
            "fabric list", "fabric run", "fabric show", "fabric simulate", "graph", "hook", "node", "pipe", "relay",
            "ripc bridge", "ripc get", "ripc list", "ripc ping", "ripc rendezvous", "ripc serve", "ripc top", "run",
            "schema", "scl", "signal", "simulate", "sv list", "sv play", "sv record", "test-config", "trace", "tune",
            "zmq-keygen"]
# Said once for all commands, or for all tools: busbar(1).
EVERYWHERE = {"-h", "--help", "-d", "-V", "--version"}
STATUS_WRONG = {"compare": 6}
failed = False


def check(good, *words):
    global failed
    if not good:
        failed = True
        print("FAILED:", *words)


def busbar(*words):
    return subprocess.run([BUSBAR, *words], capture_output=True, text=True, timeout=30, stdin=subprocess.DEVNULL)


def options_of_help(text):
    """The options, each as its form shows it: {"--lanes": "--lanes N"}."""
    found = {}
    for form in re.findall(r"^ {2}(?: {4})?(-\S.*?)(?: {2,}.*)?$", text, re.M):
        for name in re.findall(r"(?:^|, )(--?[A-Za-z][\w-]*)", form.split("[=")[0].split("[,")[0]):
            found[name] = form
    return found


def options_of_page(text):
    """The options that the page has, and those of them to which a paragraph is given."""
    everywhere = set(re.findall(r"\*(--?[A-Za-z][\w-]*)", text))
    defined = set()
    for line in re.findall(r"^(\*-.*)\n\t", text, re.M):
        defined |= set(re.findall(r"\*(--?[A-Za-z][\w-]*)", line))
    return everywhere, defined


def is_built(command):
    done = busbar(*command.split(), "--help")
    if done.returncode == 0 and done.stdout.startswith("usage: busbar "):
        return done.stdout
    check("is not a command" in done.stderr or "this build has no" in done.stderr, command, "--help:", done)
    return None


def errors(command, names):
    words = command.split()
    wrong = STATUS_WRONG.get(command, 2)
    done = busbar(*words, "--no-such-option")
    check(done.returncode == wrong and "unrecognized option '--no-such-option'" in done.stderr and
          "\nusage: busbar " in done.stderr, command, "with an unknown option:", done)
    for form in {f for f in names.values() if re.match(r"(-\w, )?--?[\w-]+ \S", f)}:
        name = re.findall(r"--?[\w-]+", form.split(" ", 2)[1] if ", " in form else form)[0]
        done = busbar(*words, name)
        check(done.returncode == wrong and "option %s needs an argument" % name in done.stderr, command, name,
              "without its argument:", done)


def main():
    pages = {}
    for command in COMMANDS:
        text = is_built(command)
        if not text:
            continue
        names = options_of_help(text)
        check("--help" in names, command, "has no --help")
        errors(command, names)
        pages.setdefault(command.split()[0], {}).update(names)
    check(len(pages) > 5, "only the commands", *pages)
    for page, names in pages.items():
        with open(os.path.join(SOURCE, "man", "busbar-%s.1.scd" % page), encoding="utf-8") as f:
            everywhere, defined = options_of_page(f.read())
        for name in sorted(set(names) - everywhere - EVERYWHERE):
            check(False, "busbar-%s.1 does not tell of '%s'" % (page, names[name]))
        for name in sorted(defined - set(names) - EVERYWHERE):
            check(False, "busbar-%s.1 tells of %s, which --help does not" % (page, name))
    print("%d pages" % len(pages))
    return failed


sys.exit(main())
