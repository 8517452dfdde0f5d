#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""fmu.py SCENARIO...: models of FMI 2.0 and 3.0 in gateways. The test's model is a first-order lag
with a closed form (model.c).

Environment: BUSBAR, the program; LAG2, LAG3, NO_STEP, NO_INTEGERS, OLD: binaries of the model.
"""
import csv
import json
import math
import os
import re
import subprocess
import sys
import tempfile
import time

import models
from gateway_process import BUSBAR, Gateway, Gateways, check

BINARY = {2: os.environ["LAG2"], 3: os.environ["LAG3"]}


class Place:
    """A folder, below which FMUs are unpacked to `unpacked`."""

    def __init__(self, folder):
        self.folder, self.number = folder, 0
        self.unpacked = os.path.join(folder, "unpacked")
        os.mkdir(self.unpacked)
        self.models = {v: models.make(self.file("lag%d.fmu" % v), v, BINARY[v]) for v in (2, 3)}

    def file(self, name):
        return os.path.join(self.folder, name)

    def config(self, nodes, paths):
        self.number += 1
        path = self.file("%d.json" % self.number)
        with open(path, "w") as f:
            json.dump({"nodes": nodes, "paths": paths, "stats": 0.0, "hugepages": 0, "idle_stop": True}, f)
        return path

    def run(self, nodes, paths, status=0, **env):
        """Until it ends by itself; what it has logged."""
        r = subprocess.run([BUSBAR, "run", "--summary=none", self.config(nodes, paths)], text=True,
                           capture_output=True, timeout=60, env=dict(os.environ, TMPDIR=self.unpacked, **env))
        check(r.returncode == status, "ends with %d: %d\n%s" % (status, r.returncode, r.stderr[-3000:]))
        check(not os.listdir(self.unpacked), "nothing is left: %s" % os.listdir(self.unpacked))
        return r.stderr

    def problems(self, node):
        """What `busbar check` says."""
        r = subprocess.run([BUSBAR, "check", self.config({"m": node}, [])], capture_output=True,
                           text=True, timeout=60)
        return r.returncode, r.stdout + r.stderr

    def model(self, version, **settings):
        return dict({"type": "fmu", "fmu_path": self.models[version]}, **settings)

    def output(self, name="out.csv"):
        return {"type": "file", "uri": self.file(name), "format": "csv", "out": {"append": False}}

    def rows(self, name="out.csv"):
        with open(self.file(name)) as f:
            lines = list(csv.reader(f))
        names = [n.split("[")[0].strip() for n in lines[0]]
        return [dict(zip(names, line)) for line in lines[1:] if not line[0].startswith("#")]

    def inputs(self, names, rows):
        """A node that yields these values, and ends."""
        path = self.file("in%d.csv" % self.number)
        with open(path, "w") as f:
            for i, row in enumerate(rows):
                f.write("%d,0,0,%d,%s\n" % (1000 + i, i, ",".join(str(v) for v in row)))
        return {"type": "file", "uri": path, "format": "csv",
                "in": {"rate": 0, "epoch_mode": "direct", "signals": names}}


def constant(count, value=1.0):
    return {"type": "signal", "signal": "constant", "offset": 0.0, "amplitude": value, "rate": 10,
            "realtime": False, "limit": count}


def timed(count, rate, value=1.0):
    """In real time, and complete on a busy machine, too."""
    return dict(constant(count, value), realtime=True, rate=rate, catch_up=5.0)


def near(a, b, what, error=1e-12):
    check(abs(a - b) <= error * max(1.0, abs(b)), "%s: %.17g, expected %.17g" % (what, a, b))


def form(place):
    """Each sample makes a step; with parameters by both spellings, and steps that end half way."""
    for version in (2, 3):
        for fault in (0, 1):
            node = place.model(version, step_size=0.05, parameters=[
                {"name": "gain", "value": 3}, {"name": "lag.T", "value": 0.7}, {"name": "name", "value": "abc"},
                {"name": "fault", "value": fault}],
                **{"in": {"signals": [{"name": "x"}, {"name": "time"}, {"name": "len", "variable": "name_length",
                                                                        "type": "integer"},
                                      {"name": "own"}, {"name": "resource"}, {"name": "steps"}]},
                   "out": {"signals": [{"name": "level", "variable": "u"}]}})
            place.run({"s": constant(100, 2.0), "m": node, "f": place.output()},
                      [{"in": "s", "out": "m"}, {"in": "m", "out": "f"}])
            rows = place.rows()
            check(len(rows) == 100, "a sample for each: %d" % len(rows))
            for k, row in enumerate(rows, 1):
                near(float(row["time"]), 0.05 * k, "time of step %d" % k)
                near(float(row["x"]), 3 * 2.0 * (1 - math.exp(-0.05 * k / 0.7)), "x of step %d" % k)
                check(int(row["len"]) == 3, "a text is set")
                check(float(row["resource"]) == 7, "the model finds its resources: %s" % row)
                check(float(row["steps"]) == k * (1 + fault), "steps: %s" % row)
                if not sanitized():
                    check(float(row["own"]) == 4242, "the model calls its own function: %s" % row)
    # All signals by the model itself, with the step and the start that it says.
    for version in (2, 3):
        place.run({"s": constant(10), "m": place.model(version, start_time=5.0, out={"signals": [{"name": "u"}]},
                                                       parameters={"gain": 2}), "f": place.output()},
                  [{"in": "s", "out": "m"}, {"in": "m", "out": "f"}])
        rows = place.rows()
        types = models.TYPES2 if version == 2 else models.TYPES3
        check(set(rows[0]) >= {"x"} | {"out_" + t for t in types}, "names: %s" % list(rows[0]))
        near(float(rows[9]["x"]), 2 * (1 - math.exp(-1.0)), "x after a second")


def sanitized():
    with open(BUSBAR, "rb") as f:
        program = f.read()
    return b"__asan_init" in program or b"__tsan_init" in program


def types(place):
    """Values of all types, and those that do not fit."""
    for version in (2, 3):
        kinds = models.TYPES2 if version == 2 else models.TYPES3
        limits = {"Int8": (-128, 127), "UInt8": (0, 255), "Int16": (-32768, 32767), "UInt16": (0, 65535),
                  "Int32": (-2**31, 2**31 - 1), "UInt32": (0, 2**32 - 1), "Int64": (-2**63, 2**63 - 1),
                  "UInt64": (0, 2**63 - 1), "Boolean": (0, 1), "Float32": (-2.5, 0.125)}
        of = {"Boolean": "boolean", "Float32": "float"}
        rows = [[limits[k][side] for k in kinds] for side in (0, 1)]
        node = place.model(version, **{
            "in": {"signals": [{"name": "out_" + k, "type": of.get(k, "integer")} for k in kinds]},
            "out": {"signals": [{"name": "in_" + k, "type": of.get(k, "integer")} for k in kinds]}})
        signals = [{"name": k, "type": of.get(k, "integer")} for k in kinds]
        place.run({"s": place.inputs(signals, rows), "m": node, "f": place.output()},
                  [{"in": "s", "out": "m"}, {"in": "m", "out": "f"}])
        got = place.rows()
        check(len(got) == 2, "all fit: %d" % len(got))
        for row, given in zip(got, rows):
            for k, v in zip(kinds, given):
                check(float(row["out_" + k]) == v if k == "Float32" else int(row["out_" + k]) == v,
                      "%s: %s, not %s" % (k, row["out_" + k], v))
        # One above and one below the range of 32 bits.
        node = place.model(version, **{"in": {"signals": [{"name": "out_Int32"}]},
                                       "out": {"signals": [{"name": "in_Int32"}]}})
        log = place.run({"s": place.inputs([{"name": "v", "type": "integer"}], [[2**31], [5], [-2**31 - 1]]),
                         "m": node, "f": place.output()},
                        [{"in": "s", "out": "m"}, {"in": "m", "out": "f"}], 3)
        check("for variable 'in_Int32' is beyond the range" in log, log)
        check([float(r["out_Int32"]) for r in place.rows()] == [5.0], "only what fits: %s" % place.rows())
        for value in ("nan", "inf", "1e10"):
            log = place.run({"s": place.inputs([{"name": "v"}], [[value]]), "m": node, "f": place.output()},
                            [{"in": "s", "out": "m"}, {"in": "m", "out": "f"}], 3)
            check("for variable 'in_Int32' is" in log, log)
    # Fewer values than inputs.
    log = place.run({"s": constant(3), "m": place.model(3), "f": place.output()},
                    [{"in": "s", "out": "m"}, {"in": "m", "out": "f"}], 3)
    check("a sample has 1 values, the model has 11 inputs" in log, log)


def clock(place):
    """In real time, alone; and with inputs that come from elsewhere."""
    for version in (2, 3):
        node = place.model(version, step_size=0.002, stop_time=0.4, pace="clock", catch_up=5.0,
                           parameters={"u": 1.0}, **{"in": {"signals": [{"name": "x"}, {"name": "time"}]}})
        began = time.monotonic()
        place.run({"m": node, "f": place.output()}, [{"in": "m", "out": "f"}])
        check(time.monotonic() - began >= 0.39, "it takes its time")
        rows = place.rows()
        check(len(rows) == 200, "200 steps: %d" % len(rows))
        for row in rows:
            near(float(row["x"]), 1 - math.exp(-float(row["time"])), "x")
        near(float(rows[-1]["time"]), 0.4, "the end")
    # It goes on with its last input when nothing is written any more.
    node = place.model(3, step_size=0.002, stop_time=0.4, pace="clock", catch_up=5.0, parameters={"lag.T": 1e-3},
                       **{"in": {"signals": [{"name": "x"}]}, "out": {"signals": [{"name": "u"}]}})
    place.run({"s": timed(50, 500, 4.0), "m": node, "f": place.output()},
              [{"in": "s", "out": "m"}, {"in": "m", "out": "f"}])
    rows = place.rows()
    check(len(rows) == 200 and float(rows[-1]["x"]) > 3.9, "%d samples: %s" % (len(rows), rows[-1]))


def loop(place):
    """Two models, each the input of the other; one makes the first step unasked. A delay of one step
    lies in the loop, so the closed form is a recursion."""
    h, steps = 0.1, 50
    link = {"in": {"signals": [{"name": "x"}]}, "out": {"signals": [{"name": "u"}]}}
    nodes = {"a": place.model(2, step_size=h, stop_time=h * steps, fmu_writing_turn=False,
                              parameters={"u": 1.0}, **link),
             "b": place.model(3, step_size=h, parameters={"gain": -0.5}, **link), "f": place.output()}
    place.run(nodes, [{"in": "a", "out": ["b", "f"]}, {"in": "b", "out": "a"}])
    rows = place.rows()
    check(len(rows) == steps, "steps of both: %d" % len(rows))
    xa = xb = 0.0
    u = 1.0
    keep = math.exp(-h)
    for row in rows:
        xa = u + (xa - u) * keep
        xb = -0.5 * xa + (xb + 0.5 * xa) * keep
        u = xb
        near(float(row["x"]), xa, "x")


def full(place):
    """A writer that is faster than the reader: it waits, or what is dropped is counted."""
    for rule in ("block", "drop"):
        node = place.model(2, out={"signals": [{"name": "u"}]}, **{
            "in": {"signals": [{"name": "steps"}], "queuelen": 4, "full": rule}})
        slow = place.output()
        slow["out"]["flush"] = True
        log = place.run({"s": constant(3000), "m": node, "f": slow}, [{"in": "s", "out": "m"}, {"in": "m", "out": "f"}])
        steps = [int(float(r["steps"])) for r in place.rows()]
        lost = [int(n) for n in re.findall(r"node m: (\d+) samples were lost", log)]
        check(len(steps) + sum(lost) == 3000 and (rule == "drop" or not lost), "%s: %d, lost %s" % (
            rule, len(steps), lost))
        check(steps == sorted(set(steps)), "in their order")


def mixed(place):
    """Paths with several sources, one of which is a model: they wait for descriptors."""
    place.run({"s": timed(60, 200), "k": timed(15, 50), "f": place.output(),
               "m": place.model(2, **{"in": {"signals": [{"name": "steps"}]}, "out": {"signals": [{"name": "u"}]}}),
               "c": place.model(3, pace="clock", step_size=0.002, stop_time=0.3, catch_up=5.0,
                                **{"in": {"signals": [{"name": "ticks", "variable": "steps"}]}})},
              [{"in": "s", "out": "m"}, {"in": ["m", "k", "c"], "out": "f", "end": "all"}])
    rows = place.rows()
    check(len(rows) == 60 + 15 + 150, "samples of all: %d" % len(rows))
    check((float(rows[-1]["steps"]), float(rows[-1]["ticks"])) == (60, 150), "steps of both: %s" % rows[-1])


# fault: status, what is said, samples until then
FAULTS = {2: (1, "fmi%dDoStep: the model reports an error", 5), 3: (1, "reports a fatal error", 5),
          4: (0, "the simulation has ended at 0.5 s", 5), 5: (0, "the FMU warns .test.: a warning at step 5", 20),
          6: (1, "has not come from 0.5 s to 0.6 s|discards the call", 5), 7: (3, "discards the call", 5),
          8: (0, "", 4), 10: (1, "in the background", 5),
          11: (1, "fmi%dSet(Real|Float64): the model reports an error", 5),
          12: (1, "fmi%dGet(Real|Float64): the model reports an error", 4)}


def faults(place):
    for version in (2, 3):
        for fault, (status, said, count) in FAULTS.items():
            node = place.model(version, parameters={"fault": fault, "fault_at": 0.45},
                               **{"in": {"signals": [{"name": "x"}]}, "out": {"signals": [{"name": "u"}]}})
            if version == 3 and fault == 10:
                continue  # FMI 3.0 has none
            # What the other samples find no model for is lost. Behind a fatal error nothing is freed.
            env = {"ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", "") + ":detect_leaks=0"} if fault == 3 else {}
            log = place.run({"s": constant(20), "m": node, "f": place.output()},
                            [{"in": "s", "out": "m"}, {"in": "m", "out": "f"}],
                            3 if status == 1 else status, **env)
            check(re.search(said.replace("%d", str(version)), log), "fault %d: %s" % (fault, log))
            got = len(place.rows())
            check(got == count, "fault %d of FMI %d.0: %d samples" % (fault, version, got))
        node = place.model(version, parameters={"fault": 9}, out={"signals": [{"name": "u"}]})
        log = place.run({"s": constant(20), "m": node}, [{"in": "s", "out": "m"}], 1)
        check("this cannot be initialised, code 7" in log and "ExitInitializationMode" in log, log)
    for what, said in ((("NO_STEP"), "no function fmi2DoStep"), ("NO_INTEGERS", "no function fmi2GetInteger"),
                       ("OLD", "is of FMI 1.0, modelDescription.xml of FMI 3")):
        version = 3 if what == "OLD" else 2
        path = models.make(place.file(what + ".fmu"), version, os.environ[what])
        log = place.run({"m": {"type": "fmu", "fmu_path": path}, "f": place.output()},
                        [{"in": "m", "out": "f"}], 1)
        check(said in log and path in log, log)


COMMANDS = """
nodes = {
	s = { type = "signal"; signal = "constant"; rate = 1000.0; };
	m = { type = "fmu"; fmu_path = "%s"; fmu_unpack_path = "%s"; step_size = 0.001; debug_logging = true;
	      parameters = { u = 1.0; }; in = { signals = ( { name = "steps"; type = "integer"; } ); };
	      out = { signals = ( { name = "u"; } ); }; };
	f = { type = "file"; uri = "%s"; format = "csv"; out = { flush = true; }; };
};
paths = ( %s { in = "m"; out = "f"; } );
"""


def commands(place):
    """Stop, start, pause and restart; each start begins at the start time with a fresh model."""
    for version, writer in ((2, ""), (3, ""), (2, '{ in = "s"; out = "m"; },'), (3, '{ in = "s"; out = "m"; },')):
        model, path = place.models[version], 1 if writer else 0
        out = "commands%d%d.csv" % (version, path)
        with Gateways() as running:
            g = Gateway(place.folder, "commands%d%d" % (version, path),
                        COMMANDS % (model, place.unpacked, place.file(out), writer))
            running.append(g)

            def more(count=20):
                g.wait_for_more(g.arrived(path) + count, path)
            more(50)
            check(len(os.listdir(place.unpacked)) == 1, "one folder")
            g.ask("/node/m/pause", "POST")
            g.ask("/node/m/resume", "POST")
            more()
            g.ask("/node/m/stop", "POST")
            check(not os.listdir(place.unpacked), "removed at the stop: %s" % os.listdir(place.unpacked))
            g.ask("/node/m/start", "POST")
            more()
            g.ask("/node/m/restart", "POST")
            more()
            figures = g.ask("/node/m")["stats"]["figures"]
            check(figures["steps"] >= 90 and figures["warnings"] == 0, "figures: %s" % figures)
            # The same model, built anew with one more variable; then one without what is read.
            numbers = models.variables(version) + [("more", 990, "Float64", "local", "continuous")]
            models.make(model, version, BINARY[version], models.description(version, numbers=numbers))
            g.ask("/node/m/restart", "POST")
            more()
            less = [v for v in numbers if v[0] != "steps"]
            models.make(model, version, BINARY[version], models.description(version, numbers=less))
            answer = g.client.ask("/node/m/restart", "POST")
            check(answer["status"] != 200, "another model does not start: %s" % answer)
            models.make(model, version, BINARY[version])
            g.ask("/node/m/start", "POST")
            more()
            running.remove(g)
            log = g.end((0, 1))
        check("no variable 'steps'" in log and "which does not fit it" in log, log[-2000:])
        steps = [int(r["steps"]) for r in place.rows(out)]
        check(steps.count(1) == 5, "five starts: %d" % steps.count(1))
        check(all(b in (a + 1, 1) for a, b in zip(steps, steps[1:])), "each goes on by one")
        check(not os.listdir(place.unpacked), "nothing is left")


def descriptions(place):
    path = place.file("wrong.fmu")
    for said, text in models.wrong_descriptions():
        models.make(path, 2, None, text, resource=None)
        status, log = place.problems({"type": "fmu", "fmu_path": path})
        check(status == 2 and re.search(said, log) and path in log, "%s: %d %s" % (said, status, log))
    # More than is read of it: zeros, which are no XML either.
    models.make(path, 2, None, "<a>" + " " * (65 << 20), resource=None)
    status, log = place.problems({"type": "fmu", "fmu_path": path})
    check(status == 2 and "modelDescription.xml is longer than 67108864 bytes" in log, log)
    # Many variables are no fault.
    many = models.variables(2) + [("v[%d]" % i, 1000 + i, "Float64", "local", "continuous") for i in range(50000)]
    models.make(path, 2, None, models.description(2, numbers=many), resource=None)
    status, log = place.problems({"type": "fmu", "fmu_path": path, "in": {"signals": [{"name": "v[4999x]"}]}})
    check(status == 2 and "did you mean 'v[4999" in log, log)


def archives(place):
    folder = place.file("archives")
    os.mkdir(folder)
    early, late = models.wrong_archives(folder, BINARY[2])
    for what, said, path in early:
        status, log = place.problems({"type": "fmu", "fmu_path": path})
        check(status == 2 and re.search(said, log) and path in log, "%s: %d %s" % (what, status, log))
    for what, said, path in late:
        log = place.run({"m": {"type": "fmu", "fmu_path": path}, "f": place.output()},
                        [{"in": "m", "out": "f"}], 1)
        check(re.search(said, log) and path in log, "%s: %s" % (what, log))
    check(not os.path.exists("/tmp/busbar-fmu-escaped"), "nothing has got out")
    check(not os.path.exists(place.file("busbar-fmu-escaped")), "nothing has got out")
    # There is none: a warning of the check, and an error of the start.
    node = {"type": "fmu", "fmu_path": place.file("away.fmu"), "step_size": 0.1,
            "in": {"signals": [{"name": "x"}]}}
    status, log = place.problems(node)
    check(status == 0 and "No such file" in log, log)
    place.run({"m": node, "f": place.output()}, [{"in": "m", "out": "f"}], 1)
    node = place.model(2, fmu_unpack_path=place.file("nowhere"))
    log = place.run({"m": node, "f": place.output()}, [{"in": "m", "out": "f"}], 1)
    check("cannot unpack it to" in log, log)


# settings of a node, what is said; None: nothing
NAMES = [
    ({}, None),
    ({"in": {"signals": [{"name": "X"}]}}, "no variable 'X', did you mean 'x'"),
    ({"in": {"signals": [{"name": "a", "variable": "lag.t"}]}}, "'lag.t', did you mean 'lag.T'"),
    ({"in": {"signals": [{"name": "u"}]}}, "variable 'u' .input, Float64.: inputs are written, so they belong to `out`"),
    ({"in": {"signals": [{"name": "name"}]}}, "parameter, String.: signals are single numbers"),
    ({"in": {"signals": "2f"}}, "each variable needs an entry of its own"),
    ({"in": {"signals": [{"name": "x", "type": "complex"}]}}, "complex"),
    ({"out": {"signals": [{"name": "x"}]}}, "output, Float64.: .* outputs belong to `in`"),
    ({"out": {"signals": [{"name": "lag.T"}]}}, "parameter, Float64.: samples set inputs and tunable"),
    ({"out": {"signals": [{"name": "gain"}]}}, None),
    ({"out": {"signals": [{"name": "u"}, {"name": "v", "variable": "u"}]}}, "two signals are written to the variable 'u'"),
    ({"parameters": {"gian": 1}}, "no variable 'gian', did you mean 'gain'"),
    ({"parameters": {"x": 1}}, "output, Float64.: `parameters` sets parameters"),
    ({"parameters": {"never": 1}}, "local, constant Float64.: `parameters` sets"),
    ({"parameters": {"fault": 1.5}}, "'fault' .Int32. is no integer"),
    ({"parameters": {"fault": 2 ** 31}}, "'fault' .Int32. is beyond"),
    ({"parameters": {"name": 5}}, "'name' .String. is no text"),
    ({"parameters": {"gain": "much"}}, "'gain' .Float64. is no number"),
    ({"parameters": {"in_Boolean": 2.5}}, "'in_Boolean' .Boolean. is no integer"),
    ({"parameters": {"in_Boolean": True, "u": 1, "name": "x", "fault": 0}}, None),
    ({"parameters": [{"name": "gain", "value": 1}, {"name": "gain", "value": 2}]}, "has a value already"),
    ({"parameters": [{"name": "gain"}]}, "needs a name and a value"),
    ({"parameters": [{"name": "gain", "value": 1, "vlaue": 2}]}, "vlaue"),
    ({"parameters": 7}, "expected a group"),
    ({"signals": [{"name": "x"}]}, "cannot stand here"),
    ({"stop_time": 0.0}, "has to be later than start_time"),
    ({"step_size": 0.0}, "step_size"),
    ({"stopTime": 1.0}, "it is called `stop_time`"),
    ({"fmu_path": "http://example.org/lag.fmu"}, "never loaded from elsewhere"),
    ({"fmu_path": ""}, "fmu_path"),
]


def names(place):
    for version in (2, 3):
        for settings, said in NAMES:
            status, log = place.problems(place.model(version, **settings))
            if said is None:
                check(status == 0, "%s: %s" % (settings, log))
            elif version == 3 or "Float64" not in said:
                check(status == 2 and re.search(said, log), "%s: %d %s" % (settings, status, log))
            check(status == 0 or re.search(r"\.json:\d+: nodes\.m", log), "it says where: " + log)
    for name in ("line", "blob"):
        status, log = place.problems(place.model(3, **{"in": {"signals": [{"name": name}]}}))
        check(status == 2 and re.search("array of Float64|Binary or Clock", log), log)
    path = models.make(place.file("step.fmu"), 2, BINARY[2], models.description(2, step=""))
    status, log = place.problems({"type": "fmu", "fmu_path": path})
    check(status == 2 and "step_size: is missing: the model does not say" in log, log)


for scenario in sys.argv[1:]:
    with tempfile.TemporaryDirectory(prefix="busbar-fmu-") as there:
        {"form": form, "types": types, "clock": clock, "loop": loop, "mixed": mixed, "full": full, "faults": faults,
         "commands": commands, "descriptions": descriptions, "archives": archives,
         "names": names}[scenario](Place(there))
    print(scenario + ": good")
