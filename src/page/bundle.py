#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The bundle of the page, which is checked in, so that building needs no node.

bundle.py hash              the hash of the sources
bundle.py list              their names
bundle.py check             fails when the bundle is not that of the sources
bundle.py build FOLDER      builds it into FOLDER, with node and the packages
bundle.py update            gets the packages (npm ci), checks the types, builds src/page/bundle
"""
import hashlib
import os
import re
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
BUNDLE = os.path.join(HERE, "bundle")
LIMIT = 300000


def sources():
    names = [n for n in os.listdir(HERE) if n.endswith((".ts", ".css", ".mjs", ".json"))]
    return sorted(names)


def digest():
    h = hashlib.sha256()
    for name in sources():
        with open(os.path.join(HERE, name), "rb") as f:
            h.update(b"%s %s\n" % (name.encode(), hashlib.sha256(f.read()).hexdigest().encode()))
    return h.hexdigest()


def check():
    """The hash is that of the sources; what stands in the bundle, that of the bundle."""
    for name in ("page.js", "page.css"):
        with open(os.path.join(BUNDLE, name), encoding="utf-8") as f:
            found = re.search(r"sources sha256 ([0-9a-f]{64})", f.read(400))
        if not found or found.group(1) != digest():
            print("src/page/bundle/%s is older than its sources: run `make page`" % name)
            return 1
    return 0


def build(folder):
    return subprocess.call(["node", os.path.join(HERE, "build.mjs"), HERE, folder, digest()])


def update():
    if subprocess.call(["npm", "ci", "--silent"], cwd=HERE):
        return 1
    if subprocess.call(["npx", "--no-install", "tsc", "-p", HERE], cwd=HERE):
        return 1
    return build(BUNDLE) or check()


def main():
    if sys.argv[1:] == ["hash"]:
        print(digest())
        return 0
    if sys.argv[1:] == ["list"]:
        print("\n".join(os.path.join(HERE, n) for n in sources()))
        return 0
    if sys.argv[1:] == ["check"]:
        return check()
    if sys.argv[1:] == ["update"]:
        return update()
    if len(sys.argv) == 3 and sys.argv[1] == "build":
        return build(sys.argv[2])
    print(__doc__, file=sys.stderr)
    return 2


sys.exit(main())
