#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""documents.py SOURCE: the examples of docs/python.md run as they stand, but for ports and names of
shared memory; so does examples/python/watch.py. The types are right (mypy), and pip installs the
package from the tree, where these programs are there.

Environment: BUSBAR, BUSBAR_SHMEM_LIBRARY, PYTHONPATH. Exit status 0: good, 1: not.
"""
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tempfile

from http_gateway import Gateway, check

SOURCE = sys.argv[1]
SHMEM = """
nodes = {
	generator = { type = "signal"; values = 8; rate = 1000; };
	simulator = { type = "shmem"; in = { name = "%s"; signals = { count = 8; type = "float"; }; };
		out = { name = "%s"; }; };
};
paths = ( { in = "generator"; out = "simulator"; }, { in = "simulator"; } );
stats = 0.0; hugepages = 0;
"""


def read(*path):
    with open(os.path.join(SOURCE, *path)) as f:
        return f.read()


def run(*command, env=None, cwd=None):
    p = subprocess.run(command, capture_output=True, text=True, timeout=120, env=env, cwd=cwd)
    check(p.returncode == 0, "%s: %d\n%s%s" % (command, p.returncode, p.stdout, p.stderr))
    return p.stdout


def examples(folder):
    blocks = re.findall(r"^```python\n(.*?)^```", read("docs", "python.md"), re.M | re.S)
    check(len(blocks) >= 6, "examples: %d" % len(blocks))
    names = ["/busbar-shmem-doc-%d-%s" % (os.getpid(), way) for way in ("in", "out")]
    files = []
    with Gateway(folder, read("examples", "http.conf").replace("port = 8080;", "")) as g, \
            Gateway(folder, SHMEM % tuple(names), name="shmem"):
        url = "http://127.0.0.1:%d" % g.port
        for i, block in enumerate(blocks):
            for old, new in (("http://127.0.0.1:8080", url), ("/grid-in", names[0]), ("/grid-out", names[1])):
                block = block.replace(old, new)
            files.append(os.path.join(folder, "example%d.py" % i))
            with open(files[-1], "w") as f:
                f.write(block)
            said = run(sys.executable, files[-1])
            check(said or "peer.write" in block, "an example says something: %s" % block)
        watch = os.path.join(SOURCE, "examples", "python", "watch.py")
        said = run(sys.executable, watch, url, "simulator", "2")
        check(re.search(r"^[1-9]\d+ samples", said) and "simulator is paused" in said, said)
        p = subprocess.run([sys.executable, watch, url, "none"], capture_output=True, text=True, timeout=60)
        check(p.returncode == 1 and "there is no node 'none'" in p.stderr, "its errors: %s" % p.stderr)
    return files


def methods():
    """The page names all that there is."""
    import busbar

    page = read("docs", "python.md")
    missing = [n for n in dir(busbar.Gateway) if not n.startswith("_") and n != "close" and "`%s`" % n not in page]
    check(not missing, "docs/python.md does not name %s" % missing)
    answers = [f.__annotations__.get("return", "") for f in vars(busbar.Gateway).values() if callable(f)]
    names = {name for text in answers for name in re.findall(r"types\.(\w+)", text)}
    check(names and names <= set(busbar.__all__), "types that busbar does not give: %s" % (names - set(busbar.__all__)))


def types(folder, files):
    if not shutil.which("mypy"):
        print("without mypy")
        return
    package = os.path.join(SOURCE, "python", "busbar")
    watch = os.path.join(SOURCE, "examples", "python", "watch.py")
    env = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    env["MYPYPATH"] = os.path.join(SOURCE, "python")
    cache = "--cache-dir=" + os.path.join(folder, "cache")
    run("mypy", "--strict", cache, package, watch, *files, env=env, cwd=folder)


def installs(folder):
    for module in ("pip", "setuptools", "wheel"):
        if not importlib.util.find_spec(module):
            print("without " + module)
            return
    tree, place = os.path.join(folder, "tree"), os.path.join(folder, "place")
    shutil.copytree(os.path.join(SOURCE, "python"), tree)
    run(sys.executable, "-m", "pip", "install", "-q", "--no-build-isolation", "--no-index", "--no-deps",
        "--no-compile", "--target", place, tree)
    for package in ("busbar", "busbar_ripc"):
        there = {f for f in os.listdir(os.path.join(tree, package)) if not f.startswith("__pycache__")}
        check(there and set(os.listdir(os.path.join(place, package))) == there, "all files of " + package)
        listed = set(re.findall(r"'%s/([\w.]+)'" % package, read("python", "meson.build")))
        check(listed == there, "meson installs the same: %s" % (listed ^ there))
    run(sys.executable, "-B", "-c", "import busbar; from busbar import shmem; busbar.Gateway('/x')",
        env=dict(os.environ, PYTHONPATH=place), cwd=folder)


with tempfile.TemporaryDirectory() as where:
    methods()
    made = examples(where)
    types(where, made)
    installs(where)
