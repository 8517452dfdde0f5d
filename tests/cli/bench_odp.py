#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""`busbar bench odp` shows the pitfalls of memory on demand with the shapes of its source, the same
for the same seed, and refuses values out of range."""
import json
import os
import pathlib
import struct
import subprocess
import tempfile

BUSBAR = os.environ["BUSBAR"]
# Settings of a program's adapter, which change no experiment.
os.environ.update(BUSBAR_CAPTURE="/nonexistent/file", BUSBAR_FAULTS="loss=0.5", BUSBAR_MTU="256")
# Where the model does not show what was measured.
DIFFERS = {
    ("flood", "10 queue pairs, client: time"),
    ("flood", "server, most queue pairs: timeouts"),
    ("stale", "connectx6, 128 READs: not done when the page is there"),
    ("writes", "the time grows with N to the power of"),
}


def bench(*args, status=0):
    run = subprocess.run([BUSBAR, "bench", "odp", *args], capture_output=True, text=True,
                         timeout=200)
    assert run.returncode == status, (args, run.returncode, run.stderr)
    return run


def figures(*args):
    summary = json.loads(bench("--json", *args).stdout)
    return {name: f["value"] for name, f in summary["figures"].items()}


def experiments():
    rows = json.loads(bench("--experiment", "all", "--scale", "0.08", "--trials", "2",
                            "--json").stdout)
    values = {}
    for row in rows:
        what = row["what"].split("READs, ", 1)[-1] if row["experiment"] == "flood" else row["what"]
        key = (row["experiment"], what)
        values[key] = row["value"]
        if row["verdict"] == "not in the source":
            continue
        holds = row["verdict"] == "holds"
        assert holds == (key not in DIFFERS), row
    return values


def check_shapes(v):
    window = "intervals of two READs, pages of the "
    assert v["timeouts", "connectx4: codes up to this one make no difference"] == 16
    assert v["timeouts", "connectx5: codes up to this one make no difference"] == 12
    assert 4200 <= v["damming", window + "server"] <= 4600
    assert 400 <= v["damming", window + "client"] <= 600
    assert 4200 <= v["damming", "intervals of two READs, pages of both"] <= 4600
    edges = [v["damming-more", f"longest interval of {n} READs"] for n in (2, 3, 4)]
    assert 2 * edges[1] <= edges[0] + 200 and 3 * edges[2] <= edges[0] + 300, edges
    packets = [v["flood", f"{n} queue pairs, client: packets over pinned memory"]
               for n in (1, 4, 10, 32, 128)]
    assert packets == sorted(packets) and packets[0] < 1.5 and packets[-1] > 100, packets
    assert 20 <= v["stale", "128 READs, 33 us apart: not done when the page is there"] <= 40
    assert 5 <= v["stale", "the same: the last is done"] <= 7
    assert v["writes", "requests grow with N to the power of"] > 1.7
    assert 1074 < v["applications", "SEND posted in the wait of the READ"] < 4295


def check_repeats():
    args = ["--num-ops", "64", "--num-qps", "8", "--interval", "100us", "--jitter", "50us",
            "--trials", "3"]
    first = bench("--json", "--seed", "7", *args).stdout
    assert bench("--json", "--seed", "7", *args).stdout == first
    assert bench("--json", "--seed", "8", *args).stdout != first
    rows = bench("--experiment", "damming", "--trials", "2", "--json").stdout
    assert bench("--experiment", "damming", "--trials", "2", "--json").stdout == rows


def packet_times(path):
    """The times of the packets of a pcapng file in ns."""
    data, at, times = path.read_bytes(), 0, []
    while at < len(data):
        kind, length = struct.unpack_from("<II", data, at)
        if kind == 6:
            high, low = struct.unpack_from("<II", data, at + 12)
            times.append(high << 32 | low)
        at += length
    return times


def check_capture(folder):
    path = folder / "client.pcapng"
    args = ["--paged", "server", "--interval", "1ms", "--capture", str(path)]
    f = figures(*args)
    times = packet_times(path)
    assert f["timeouts"] == 1 and f["lost"] == 1 and f["rnr_naks"] == 1, f
    assert len(times) == f["packets"], (times, f)
    assert times == sorted(times) and 0.5e9 < times[-1] < 0.6e9, times
    # Queue pair numbers and addresses of memory may be others.
    figures(*args)
    assert packet_times(path) == times


def check_point(folder):
    # The effective timeout is that of the adapter.
    f = figures("--ack-code", "1", "--rnr-code", "13")
    assert 536 < f["timeout_ms"] < 538 and f["rnr_ms"] == 0.96, f
    f = figures("--paged", "none", "--num-ops", "100", "--interval", "10us")
    assert f["repeated"] == 0 and f["packets"] == 200, f
    assert figures("--pre-touch", "all")["repeated"] == 0
    f = figures("--answers", "false", "--num-ops", "1", "--retry", "2")
    assert f["failed"] == 1 and f["timeouts"] == 3, f
    assert 0.99 < figures("--fault", "1ms", "--operation", "write", "--paged", "client",
                          "--num-ops", "1")["time"] < 1.1
    # All WRITEs leave at once: the faults of two pages repeat 8192 and 4096.
    f = figures("--operation", "write", "--size", "1", "--num-ops", "8192", "--interval", "0",
                "--paged", "server", "--ack-code", "18")
    assert 20480 <= f["requests"] < 21000 and f["rnr_naks"] == 2, f
    profile = folder / "mine"
    profile.write_text("fault_us = 20\n")
    assert figures("--profile", str(profile), "--num-ops", "1", "--paged", "client")["time"] < 0.1


def check_suite(folder):
    """The requests of a case are rows."""
    suite = folder / "odp.suite"
    suite.write_text('cases = ( { scenario = "side"; kind = "odp"; num_ops = 3; '
                     'paged = [ "server", "none" ]; } );\n')
    run = subprocess.run([BUSBAR, "bench", "run", str(suite), "--no-floor", "--no-csv", "--out",
                          str(folder / "out")], capture_output=True, text=True, timeout=60)
    assert run.returncode == 0, run.stderr
    cases = sorted((folder / "out/cases").iterdir())
    assert len(cases) == 2, cases
    for case in cases:
        summary = json.loads((case / "summary.json").read_text())
        assert summary["rows"] == 3 and summary["latencies"]["t_op"]["count"] == 3, summary
        assert (summary["figures"]["timeouts"]["value"] > 0) == ("server" in case.name), summary


def check_packets(folder):
    """What was recorded of damming is figure 5.3 of the source: the order of its packets and faults."""
    suite = folder / "packets.suite"
    suite.write_text('cases = ( { scenario = "p"; kind = "odp"; paged = "server"; interval = "1ms"; trials = 2; },'
                     '{ scenario = "w"; kind = "odp"; operation = "write"; num_ops = 2048; interval = 0; paged = "server"; } );\n')
    run = subprocess.run([BUSBAR, "bench", "run", str(suite), "--no-floor", "--no-csv", "--out",
                          str(folder / "packets")], capture_output=True, text=True, timeout=60)
    assert run.returncode == 0, run.stderr
    found = json.loads((folder / "packets/cases/p/packets.json").read_text())
    assert (found["queue_pair"], found["trial"], found["left_out"]) == (0, 0, 0), found
    events = found["events"]
    assert [(e["end"], e["what"], e["number"]) for e in events] == [
        ("client", "READ request", 0), ("server", "missing", 0), ("server", "ACK", 0), ("server", "there", 0),
        ("server", "READ response", 0), ("client", "posted", 1), ("client", "READ request", 0), ("client", "READ request", 1),
        ("server", "READ response", 0), ("client", "READ request", 1), ("server", "READ response", 1)], events
    assert events[2]["rnr_ns"] == 1280000 and events[6]["again"] and events[7]["lost"] and events[9]["again"], events
    times = [e["at_ns"] for e in events]
    assert times == sorted(times) and 500e6 < times[9] - times[8] < 600e6, times
    # Of 2048 WRITEs at once the first three have an event each.
    found = json.loads((folder / "packets/cases/w/packets.json").read_text())
    assert len(found["events"]) == 200 and found["left_out"] > 0, len(found["events"])
    assert [e.get("count", 1) for e in found["events"][:4]] == [1, 1, 1, 2045], found["events"][:4]


def check_refusals(folder):
    profile = folder / "wrong"
    profile.write_text("fault_us = soon\n")
    for args, status, says in [
            (["--num-qps", "0"], 2, "1..512"),
            (["--rnr-code", "32"], 2, "0..31"),
            (["--ack-code", "-1"], 2, "0..31"),
            (["--retry", "8"], 2, "0..7"),
            (["--max-rd-atomic", "17"], 2, "1..16"),
            (["--operation", "atomic"], 2, "read|write|send"),
            (["--paged", "all"], 2, "none|server|client|both"),
            (["--num-ops", "8193"], 2, "1..8192"),
            (["--stride", "50"], 2, "100..1048576"),
            (["--profile", "connectx9"], 2, "connectx4"),
            (["--profile", str(profile)], 1, "line 1"),
            (["--experiment", "floood"], 2, "flood"),
            (["--experiment", "all", "--scale", "2"], 2, "from 0.01 to 1"),
            (["--experiment", "all", "--trials", "0"], 2, "from 1 to 100"),
            (["--experiment", "flood", "more"], 2, "more")]:
        run = bench(*args, status=status)
        assert says in run.stderr, (args, run.stderr)
    assert "655.36" in bench("--rnr-code", "0", "--paged", "client").stderr


check_shapes(experiments())
check_repeats()
with tempfile.TemporaryDirectory() as where:
    check_capture(pathlib.Path(where))
    check_point(pathlib.Path(where))
    check_packets(pathlib.Path(where))
    check_suite(pathlib.Path(where))
    check_refusals(pathlib.Path(where))
