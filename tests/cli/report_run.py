# SPDX-License-Identifier: BSD-2-Clause
"""Makes folders of runs with invented results, for tests of what reads them.

As a program: report_run.py DIR makes one with all kinds of cases, for looking at.
"""
import json
import math
import os
import random
import struct
import sys

PERCENTS = (10, 25, 50, 75, 90, 95, 99, 99.9, 99.99, 99.999)
ABSENT = -2**63


def percentile(ordered, percent):
    return ordered[max(0, math.ceil(percent / 100 * len(ordered)) - 1)]


def summary_of(label, source, to, values, limit_ns):
    o = {"label": label, "from": source, "to": to, "count": len(values),
         "limit_ns": limit_ns}
    ordered = sorted(values)
    if ordered:
        o["min"], o["max"] = ordered[0], ordered[-1]
        o.update({f"p{p:g}": percentile(ordered, p) for p in PERCENTS})
        o["mean"] = sum(ordered) / len(ordered)
        o["deviation"] = 0.0
        o["skewness"] = None
        o["share_above"] = sum(v > limit_ns for v in ordered) / len(ordered)
    return o


class Run:
    def __init__(self, folder, suite="invented", machine=True, **more):
        self.folder = folder
        os.makedirs(os.path.join(folder, "cases"))
        self.run = {"layout": 1, "suite": suite, "version": "0.1.0",
                    "command": ["busbar", "bench", "run", suite],
                    "start": "2026-01-02T03:04:05Z", "end": "2026-01-02T03:06:05Z",
                    "resumed": [], "cases": [], "left_out": [], **more}
        self.write(".", "run.json", self.run)
        if machine:
            self.write(".", "machine.json", {
                "host": "lab", "os": "Debian", "virtual_machine": True,
                "hypervisor": "KVMKVMKVM",
                "kernel": {"release": "6.1.0", "preempt": None},
                "cpu": {"model": "A processor", "online": 2, "allowed": "0-1",
                        "governor": "none"},
                "clock": {"busbar": "tsc"}, "isolation": {"isolcpus": None},
                "load": [0.1, 0.2, 0.3],
                "floor": {"cacheline_oneway_ns": {"median": 50.0, "best": 45.0},
                          "paced_100k_missed": {"median": 0.4, "best": 0.4}}})

    def write(self, where, name, value):
        folder = os.path.join(self.folder, where)
        os.makedirs(folder, exist_ok=True)
        with open(os.path.join(folder, name), "w", encoding="utf-8") as f:
            json.dump(value, f, indent=1)

    def case(self, name, description, latencies, figures=None):
        """latencies: {name: (label, values in ns)}; figures: {name: (label, unit, value)}."""
        rows = max((len(v) for _, v in latencies.values()), default=0)
        start = [10**12 + 10000 * i for i in range(rows)]
        columns, summaries = [("t_subm", start)], {}
        limit = description.get("limit_ns", 10000)
        for key, (label, values) in latencies.items():
            to = [s + v for s, v in zip(start, values)] + [ABSENT] * (rows - len(values))
            columns.append((f"to_{key}", to))
            summaries[key] = summary_of(label, "t_subm", f"to_{key}", values, limit)
        where = os.path.join("cases", name)
        self.write(where, "case.json", description)
        self.write(where, "summary.json", {
            "rows": rows, "latencies": summaries,
            "figures": {k: {"label": n, "unit": u, "value": v}
                        for k, (n, u, v) in (figures or {}).items()}})
        with open(os.path.join(self.folder, where, "raw.bin"), "wb") as f:
            f.write(struct.pack("<8sIIQ", b"busbarR1", 1, len(columns), rows))
            for key, _ in columns:
                f.write(struct.pack("<24s8s", key.encode(), b"ns"))
            for _, values in columns:
                f.write(struct.pack(f"<{rows}q", *values))
        self.run["cases"].append(name)
        self.write(".", "run.json", self.run)


def latencies(rng, median, count, outliers=5, warm=20):
    values = [int(median * rng.lognormvariate(0, 0.08)) for _ in range(count)]
    for i in range(warm):
        values[i] = int(values[i] * (1 + 4 * (warm - i) / warm))
    for _ in range(outliers):
        values[rng.randrange(count)] = int(median * rng.uniform(5, 60))
    return values


def fill(run, count=4000, hostile="", median=1):
    """`median`: all times are so many times as long."""
    rng = random.Random(1)
    for kind in ("RC", "UC", "UD"):
        lat = latencies(rng, median * {"RC": 1269, "UC": 1251, "UD": 1273}[kind], count)
        run.case(f"B1_{kind}", {
            "kind": "hca", "scenario": "B1", "label": kind + hostile,
            "question": "How fast is one way with busy polling?" + hostile,
            "limit_ns": 10000, "parameters": {"type": kind, "size": 32},
            "command": f"busbar bench hca --type {kind} --size 32" + hostile,
            "reference": {"source": "a thesis" + hostile, "figures": {
                "t_lat_median_ns": {"RC": 1269, "UC": 1251, "UD": 1273}[kind]}}},
            {"t_lat": ("one-way latency", lat),
             "t_comp": ("completion latency", [v + 400 for v in lat])})
    for kind in ("RC", "UC"):
        for inline in (False, True):
            for size in [8 * 2**i for i in range(0, 13, 1 if count > 1000 else 4)]:
                base = 900 + size / 8 + (0 if inline else 350) + (kind == "UC") * -30
                run.case(f"G_{kind}_{'inline' if inline else 'no-inline'}_size={size}", {
                    "kind": "hca", "scenario": "G", "label": f"{kind}, {'' if inline else 'no '}inline, size {size}",
                    "question": "How does the latency grow with the message?",
                    "parameters": {"type": kind, "inline": inline, "size": size,
                                   "burst": 8000 if size < 64 else 4096},
                    "command": f"busbar bench hca --type {kind} --size {size}",
                    **({"reference": {"source": "a thesis", "figures": {
                        "median_ns": 940 + size / 7}}} if kind == "RC" and not inline else {})},
                    {"t_lat": ("one-way latency", latencies(rng, median * base, count // 4))})
    for rate in (100, 2500, 10000, 25000, 50000, 100000):
        for values in (1, 4, 16, 64):
            base = 4900 - 600 * math.log10(rate) + 20 * values
            lat = latencies(rng, median * base, count // 4)
            missed = max(0.0, (rate * values - 1e6) / 1e5)
            run.case(f"N4_rate={rate}_values={values}", {
                "kind": "node", "scenario": "N4", "label": f"{rate} Hz, {values} values",
                "question": "Up to which rate and size is nothing missed?",
                "limit_ns": 50000, "parameters": {"rate": float(rate), "values": values},
                "command": f"busbar bench node --rate {rate} --values {values}"},
                {"taken": ("from the step as taken", lat),
                 "planned": ("from the step as planned", [v + 200 for v in lat])},
                {"missed": ("steps missed", "", missed * 40),
                 "missed_share": ("share of the steps missed", "%", missed)})
    for name, value in (("loopback", 12.5), ("shared memory", 80.0)):
        run.case(f"T_{name.replace(' ', '-')}", {
            "kind": "floor", "label": name, "question": "How much goes through?",
            "parameters": {"way": name}}, {},
            {"throughput": ("throughput", "Gbit/s", value)})


if __name__ == "__main__":
    fill(Run(sys.argv[1], suite="synthetic (invented figures)", left_out=[
        {"id": "E_UD", "scenario": "E", "reason": "UD has no RDMA writes"}]),
        count=20000)
