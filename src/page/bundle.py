#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The bundles of the pages, which are checked in, so that building needs no node: "page" of the
gateway, "report" of `busbar report`.

bundle.py hash              the hash of the sources
bundle.py list              their names
bundle.py check             fails when the bundle is not that of the sources
bundle.py build FOLDER NAME builds page NAME into FOLDER, with node and the packages
bundle.py update            gets the packages (npm ci), checks the types, builds src/page/bundle
"""
import hashlib
import os
import re
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
BUNDLE = os.path.join(HERE, "bundle")
PAGES = ("page", "report")
FOLDERS = (".", "components", "report")


def sources():
    names = [os.path.normpath(os.path.join(folder, n)) for folder in FOLDERS
             for n in os.listdir(os.path.join(HERE, folder))]
    return sorted(n for n in names if n.endswith((".ts", ".css", ".mjs", ".json")))


def digest():
    h = hashlib.sha256()
    for name in sources():
        with open(os.path.join(HERE, name), "rb") as f:
            h.update(b"%s %s\n" % (name.encode(), hashlib.sha256(f.read()).hexdigest().encode()))
    return h.hexdigest()


def check():
    """The hash is that of the sources; what stands in the bundle, that of the bundle."""
    for name in [page + end for page in PAGES for end in (".js", ".css")]:
        with open(os.path.join(BUNDLE, name), encoding="utf-8") as f:
            found = re.search(r"sources sha256 ([0-9a-f]{64})", f.read(400))
        if not found or found.group(1) != digest():
            print("src/page/bundle/%s is older than its sources: run `make page`" % name)
            return 1
    return 0


def build(folder, names):
    return subprocess.call(["node", os.path.join(HERE, "build.mjs"), HERE, folder, digest(), *names])


def update():
    if subprocess.call(["npm", "ci", "--silent"], cwd=HERE):
        return 1
    if subprocess.call(["npx", "--no-install", "tsc", "-p", HERE], cwd=HERE):
        return 1
    return build(BUNDLE, PAGES) or check()


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
    if len(sys.argv) == 4 and sys.argv[1] == "build" and sys.argv[3] in PAGES:
        return build(sys.argv[2], sys.argv[3:])
    print(__doc__, file=sys.stderr)
    return 2


sys.exit(main())
