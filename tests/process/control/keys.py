#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Every key of the schema is looked at: a value that cannot be meant is refused there.

A key that is in a table and of which nobody reads the value takes anything; so does one
of free form whose owner does not look. The schema agrees, value by value: it takes what
`busbar check` takes, and refuses what is refused but for texts, whose meaning a schema does
not know. It has every key of the tables in the sources, and a form for each.

usage: keys.py SOURCE; environment: BUSBAR. Without the module jsonschema the values are not
compared.
"""
import glob
import json
import os
import re
import subprocess
import sys
import tempfile

BUSBAR = os.environ["BUSBAR"]
# None of them can be meant by a key that wants another kind of value.
NONSENSE = [{"no_such": {"key": 1}}, [[[]]], "\u007f no such thing ", -1e300, True]
# May be meant by keys of free form.
PLAUSIBLE = [None, False, 0, 1, 2.5, "1", "x", "sine", "2f", [], [1], [0.5], ["s"], ["x", "y"],
             [[0, 1]], [{}], {}, {"a": "b"}, {"a": 1}, {"enabled": 1}, {"name": "u"},
             [{"name": "u", "type": "float", "init": 1.5}], [{"name": "u", "tpye": "float"}],
             {"count": 2}, [{"voltage": 0, "current": 1}], {"rates": 10, "values": [1, 2]},
             "http://x/y", ["https://x/y.json"], "fix", [{"type": "fix"}], {"type": "csv"},
             [{"role": "watch", "sha256": "0" * 64}], [{"role": "nobody", "sha256": "0" * 64}]]
# A schema does not know names, nor what other keys say.
MEANING = re.compile(r"^no (signal|node) |is no name of a node|is a part of a node|works? on one|cannot stand"
                     r"|needs? |is required|are required|expected a complex|only a path with one|cannot be written"
                     r"|there are no .destinations. to wait|missing|No such configuration property|says nothing with")
# What has to stand beside a key, for its owner to come so far.
BESIDE = {
    "file": {"uri": "/tmp/x"}, "exec": {"exec": "cat"},
    "signal.v2": {"in": {"signals": [{"signal": "sine"}]}},
    "stats": {"in": {"signals": [{"stats": "s.owd.mean"}]}},
    "socket": {"in": {"address": "127.0.0.1:12345"}, "out": {"address": "127.0.0.1:12346"}},
    "shmem": {"in": {"name": "/a"}, "out": {"name": "/b"}},
    "test_rtt": {"rates": 1, "values": 1},
    "infiniband": {"in": {"address": "127.0.0.1:12345"}},
    "ripc": {"in": {"name": "a"}, "out": {"name": "b"}},
    "mqtt": {"host": "localhost"}, "kafka": {"server": "localhost"},
    "influxdb": {"transport": "http", "url": "http://localhost:8086", "database": "d", "key": "k"},
    "ngsi": {"endpoint": "http://localhost", "entity_id": "i", "entity_type": "t"},
    "rtp": {"in": {"address": "127.0.0.1:12345"}, "out": {"address": "127.0.0.1:12346"}},
    "redis": {"mode": "channel", "channel": "c"}, "amqp": {"exchange": "e"},
    "nats": {"host": "localhost"},
    "iec60870-5-104": {"in": {"signals": [{"asdu_type": "double-command", "ioa": 1}]}},
    "iec61850-8-1": {
        "in": {"subscribers": {"r": {"go_cb_ref": "c"}},
               "signals": [{"name": "a", "subscriber": "r", "mms_type": "float64"}]},
        "out": {"publishers": [{"go_cb_ref": "c", "data_set_ref": "d", "dst_address": "01:0c:cd:01:00:00",
                                "app_id": 1, "conf_rev": 1, "time_allowed_to_live": 2000,
                                "data": [{"mms_type": "boolean", "value": True}]}]}},
    "can": {"interface_name": "can0", "in": {"signals": [{"can_id": 1}]}, "out": {}},
    "comedi": {"device": "/dev/comedi0"},
    "opendss": {"file_path": "x.dss"}, "opal.async": {"id": 1}, "opal.orchestra": {"domain": "d"},
    "fmu": {"fmu_path": "/tmp/x.fmu", "step_size": 0.1}, "modbus": {"transport": "tcp", "remote": "localhost", "unit": 1},
    "iec61850-9-2": {"interface": "lo", "in": {"signals": "2f"}, "out": {"sv_id": "a"}},
    "c37.118": {"in": {"address": "127.0.0.1"}, "out": {"address": "127.0.0.1", "data_rate": 1, "pmus": [
        {"name": "A", "frequency": "f", "rocof": "r"}]}},
}
HOOKS = {
    "average": {"offset": 0, "signal": 0}, "cast": {"new_type": "integer", "signal": 0},
    "decimate": {"ratio": 2}, "digest": {"uri": "/tmp/x"}, "lua": {"signals": [{"expression": "1"}]},
    "dp": {"f0": 50.0, "dt": 0.001, "signal": 0, "harmonics": [1]}, "ebm": {"phases": [[0, 1]]},
    "gate": {"signal": 0}, "limit_rate": {"rate": 1.0}, "limit_value": {"signal": 0, "min": 0.0, "max": 1.0},
    "ma": {"window_size": 3, "signal": 0}, "rms": {"window_size": 3, "signal": 0},
    "pmu": {"sample_rate": 1000, "dft_rate": 10, "signal": 0},
    "ip-dft-pmu": {"sample_rate": 1000, "dft_rate": 10, "signal": 0, "estimation_range": 1.0},
    "pmu_dft": {"sample_rate": 1000, "dft_rate": 10, "signal": 0, "start_frequency": 49.0,
                "end_frequency": 51.0, "frequency_resolution": 0.1},
    "power": {"window_size": 10, "pairings": [{"voltage": 0, "current": 1}]},
    "pps_ts": {"signal": 0, "expected_smp_rate": 1000.0}, "round": {"signal": 0},
    "scale": {"signal": 0}, "shift_seq": {"offset": 1}, "shift_ts": {"offset": 1.0},
    "skip_first": {"samples": 1},
}

schema = json.loads(subprocess.run([BUSBAR, "schema", "-c"], capture_output=True, text=True,
                                   timeout=60).stdout)
defs = schema["$defs"]
cases = []  # what, how its errors are told, configuration, value, its schema
untyped, tried = [], set()


def is_free(form):
    """What a table does not type: a list, a group, or one of several."""
    return not {"type", "enum"} & set(form) or {"object", "array"} & set(form.get("type", ()))


def add(what, told, keys, make):
    for key, form in keys.items():
        if not set(form) - {"description", "default"}:
            untyped.append(what + " " + key)
        if key == "type":
            continue  # decides what the others mean
        same = key + json.dumps(form)  # the same form of another plug-in
        more = PLAUSIBLE if is_free(form) and same not in tried else []
        tried.add(same)
        for value in NONSENSE + more:
            cases.append((what + " " + key, told + key, make(key, value), value, form))
        # Groups within groups.
        for inner in form.get("properties", {}) if key not in ("in", "out") else ():
            add(what + " " + key, told + key + ".", {inner: form["properties"][inner]},
                lambda k, v, o=key: make(o, {k: v}))


def with_key(o, key, value, group=None):
    o = json.loads(json.dumps(o))
    if group:
        o.setdefault(group, {})[key] = value
    else:
        o[key] = value
    return o


SOURCES = {"s": {"type": "signal", "values": 4, "in": {"hooks": ["stats"]}}}
for name, d in defs.items():
    kind, _, which = name.partition("-")
    keys = d.get("properties", {})
    if kind == "node" and which:
        base = dict(BESIDE.get(which, {}), type=which)
        add("node " + which, "nodes.n.", keys,
            lambda k, v, b=base: {"nodes": dict(SOURCES, n=with_key(b, k, v))})
        for side in ("in", "out"):
            add("node %s %s" % (which, side), "nodes.n.%s." % side, keys[side]["properties"],
                lambda k, v, b=base, s=side: {"nodes": dict(SOURCES, n=with_key(b, k, v, s))})
    elif kind == "hook" and which:
        base = dict(HOOKS.get(which, {}), type=which)

        def hooked(k, v, b=base):
            hook = with_key({o: x for o, x in b.items() if k != "signals" or o != "signal"}, k, v)
            if b["type"] in ("digest", "frame", "shift_seq", "gate", "jitter_calc"):
                return {"nodes": SOURCES, "paths": [{"in": "s", "hooks": [hook]}]}
            return {"nodes": {"s": {"type": "signal", "values": 4, "in": {"hooks": [hook]}}},
                    "paths": [{"in": "s"}]}
        add("hook " + which, "hooks[0].", keys, hooked)
    elif kind == "format" and which and which != "group":
        base = {"type": which}
        add("format " + which, "format.", keys,
            lambda k, v, b=base: {"nodes": {"n": {"type": "file", "uri": "/tmp/x.cff", "in": {},
                                                  "format": with_key(b, k, v)}}})
add("path", "paths[0].", defs["path"]["properties"],
    lambda k, v: {"nodes": SOURCES, "paths": [with_key({"in": "s"}, k, v)]})
add("gateway", "", schema["properties"], lambda k, v: {k: v})

# Every key that a table of the sources has stands in the schema.
IN_TABLES = re.compile(r'\{\s*"([\w.-]+)",\s*CONFIG_[A-Z]+\s*[,}]')
known = set(re.findall(r'"([\w.-]+)": ?\{', json.dumps(schema)))
for source in glob.glob(os.path.join(sys.argv[1], "src", "gateway", "**", "*.[ch]"), recursive=True):
    with open(source) as f:
        for key in IN_TABLES.findall(f.read()):
            if key not in known:
                untyped.append("%s %s" % (os.path.basename(source), key))

refused, said = set(), {}
in_file = {}  # of each case: whether its own key is wrong
with tempfile.TemporaryDirectory() as folder:
    files = []
    for i, (what, told, config, value, form) in enumerate(cases):
        files.append(os.path.join(folder, str(i)))
        with open(files[-1], "w") as f:
            json.dump(config, f)
    for start in range(0, len(files), 500):
        run = subprocess.run([BUSBAR, "check", "-q"] + files[start:start + 500],
                             capture_output=True, text=True, timeout=300, errors="replace")
        if run.returncode not in (0, 2):
            print("FAILED: check ends with", run.returncode)
            sys.exit(1)
        for line in run.stderr.splitlines():
            m = re.search(re.escape(folder) + r"/(\d+):\d+: (\S*?): (.*)", line)
            if m:
                what, told = cases[int(m.group(1))][:2]
                path, text = m.group(2), m.group(3)
                said.setdefault(what, path + ": " + text)
                in_file.setdefault(int(m.group(1)), False)
                key = told.split(".")[-1]
                # A format tells of its keys in words.
                if told + "." in path + "." or told + "[" in path or (
                        path.endswith("format") and re.search(r"\b%s\b" % key, text)):
                    refused.add(what)
                    in_file[int(m.group(1))] = text
missing = sorted({c[0] for c in cases} - refused)
for what in missing:
    print("FAILED: %s takes anything" % what, said.get(what, ""))
try:
    from jsonschema import Draft202012Validator
    whole = Draft202012Validator(schema)
except ImportError:
    whole = None
    print("without the module jsonschema the values are not compared")
apart = set()
for i, (what, told, config, value, form) in enumerate(cases):
    if whole is None:
        break
    taken = whole.evolve(schema=form).is_valid(value)
    if i not in in_file and not taken:
        apart.add("%s: the check takes %s, the schema does not" % (what, json.dumps(value)))
    elif in_file.get(i) and taken and not isinstance(value, str) and not MEANING.search(in_file[i]):
        apart.add("%s: the schema takes %s, the check does not: %s" % (what, json.dumps(value), in_file[i]))
for what in sorted(apart):
    print("FAILED:", what)
for what in untyped:
    print("FAILED: %s has no form in the schema" % what)
looked_at = len({c[0] for c in cases})
print("%d keys looked at" % looked_at)
sys.exit(1 if missing or apart or untyped or looked_at < 500 else 0)
