#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The JSON Schema takes what `busbar check` takes and refuses what it refuses.

usage: schema.py SOURCE; environment: BUSBAR. 77 without the module jsonschema.
"""
import copy
import glob
import json
import os
import subprocess
import sys
import warnings

warnings.simplefilter("ignore")
try:
    from jsonschema import Draft202012Validator
except ImportError:
    print("no python3-jsonschema")
    sys.exit(77)

BUSBAR = os.environ["BUSBAR"]


def busbar(*args, text=None):
    return subprocess.run([BUSBAR, *args], capture_output=True, text=True,
                          input=text, timeout=60)


schema = json.loads(busbar("schema").stdout)
Draft202012Validator.check_schema(schema)
validator = Draft202012Validator(schema)
GOOD = {
    "nodes": {
        "a": {"type": "signal", "rate": "100", "values": 2.0,
              "in": {"hooks": ["fix", {"type": "stats"}], "signals": "2f"}},
        "b": {"type": "loopback", "queuelen": 64, "vectorize": 4},
        "c": {"type": "file", "uri": "/tmp/x", "format": {"type": "csv", "separator": ";"},
              "out": {"flush": True}},
    },
    "paths": [{"in": "a", "out": ["b", "c"], "mode": "any", "hooks": []}],
    "logging": {"level": "debug", "expressions": [{"name": "*", "level": "info"}]},
    "http": {"enabled": False}, "stats": 1, "idle_stop": "true", "uuid": None,
}
CHANGES = [  # where, and what is wrong there
    (["stats"], -1), (["stats"], "x"), (["idle_stop"], 3), (["unknown"], 1),
    (["nodes", "a", "type"], "nothing"), (["nodes", "a", "limt"], 1),
    (["nodes", "b", "queuelen"], 1), (["nodes", "b", "mode"], "fast"),
    (["nodes", "a", "vectorize"], 0), (["nodes", "b", "in"], {"enabld": True}),
    (["nodes", "bad name"], {"type": "loopback"}),
    (["paths", 0, "mode"], "some"), (["paths", 0, "queuelen"], 0),
    (["paths", 0, "hooks"], ["nothing"]), (["http", "port"], 0),
    (["http", "htdocs"], "x"), (["logging", "levl"], "x"),
    (["nodes", "c", "format"], "nothing"),
    (["nodes", "c", "format"], {"type": "csv", "sepaator": ";"}),
]


def agree(config, expected, what):
    by_schema = validator.is_valid(config)
    run = busbar("check", "-q", "-", text=json.dumps(config))
    if by_schema == (run.returncode == 0) == expected:
        return True
    print("FAILED:", what, "schema", by_schema, "check", run.returncode,
          run.stderr, [e.message for e in validator.iter_errors(config)][:3])
    return False


good = agree(GOOD, True, "the good one")
for where, value in CHANGES:
    config = copy.deepcopy(GOOD)
    o = config
    for key in where[:-1]:
        o = o[key]
    o[where[-1]] = value
    good &= agree(config, False, "%s = %r" % (where, value))
for file in glob.glob(os.path.join(sys.argv[1], "examples", "**", "*.conf"),
                      recursive=True):
    run = busbar("check", "--json", file)
    if run.returncode:
        continue  # the test of the examples says it
    for error in validator.iter_errors(json.loads(run.stdout)):
        print("FAILED:", file, error.message[:300], list(error.path))
        good = False
for what in ("paths.queuelen", "file.in.eof", "logging", "signal", "csv", "queuelen"):
    run = busbar("check", "--explain", what)
    good &= run.returncode == 0 and len(run.stdout) > 30
run = busbar("check", "--explain", "quelen")
if run.returncode != 2 or "queuelen" not in run.stderr:
    print("FAILED: an unknown key is not told", run.stderr)
    good = False
sys.exit(0 if good else 1)
