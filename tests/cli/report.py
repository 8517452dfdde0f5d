#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""`busbar report`: what data are in the page, that no text of them can be executed, and how it ends. What
the page makes of them is tests/process/page/report.py, in a browser.
"""
import base64
import hashlib
import json
import os
import re
import stat
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import report_run # pylint: disable=wrong-import-position
import subnet_json # pylint: disable=wrong-import-position

BUSBAR = os.environ["BUSBAR"]
LIMIT_S = 60
HOSTILE = "</script><script>alert(1)</script>`touch pwned`'; \"\\ %d \u202e"


def report(*args, status=0, **more):
    done = subprocess.run([BUSBAR, "report", *args], text=True, timeout=LIMIT_S,
                          capture_output=True, check=False, **more)
    assert done.returncode == status, (args, done)
    return done.stdout, done.stderr


def page_of(path):
    with open(path, encoding="utf-8") as f:
        return f.read()


def data_of(text):
    """What stands in the page's element for data."""
    return json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.S)[1])


def case_of(data, name, run=0):
    return next(c for c in data["runs"][run]["cases"] if c["id"] == name)


def figures_of(data, case, run=0):
    """The values of the case's figures by their names."""
    names = data["runs"][run]["figures"]
    return {names[i]["name"]: value for i, value in case["figures"]}


def has_the_data_of_every_case(run):
    out, _ = report(run)
    text = page_of(os.path.join(run, "report.html"))
    data = data_of(text)
    assert f"{len(data['runs'][0]['cases'])} cases" in out, out
    assert data["runs"][0]["run"]["left_out"][0]["reason"] == "UD has no RDMA writes"
    assert data["runs"][0]["machine"]["hypervisor"] == "KVMKVMKVM"
    case = case_of(data, "B1_RC")
    lat = case["latencies"][0]
    assert case["command"] == "busbar bench hca --type RC --size 32" and case["parameters"]["size"] == 32
    assert lat["low"] <= lat["p50"] <= lat["high"] and lat["reference_ns"] == 1269, lat
    assert abs(sum(lat["bins"]) + 100 * lat["beyond"] - 100) < 1, lat
    assert max(lat["bands"]["high"]) // 1000 == lat["max"] // 1000, "no outlier is lost"
    assert lat["tail"]["left"][0] == lat["count"] and lat["tail"]["left"][-1] == 1
    assert "missed_share" in figures_of(data, case_of(data, "N4_rate=100_values=1"))


def the_page_executes_its_own_script_only(run):
    """The policy names the script by its hash; nothing else may run, nothing comes from elsewhere."""
    text = page_of(os.path.join(run, "report.html"))
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', text)[1]
    allowed = re.search(r"script-src 'sha256-([^']*)'", policy)[1]
    scripts = re.findall(r"<script>(.*?)</script>", text, re.S)
    assert len(scripts) == 1
    assert base64.b64encode(hashlib.sha256(scripts[0].encode()).digest()).decode() == allowed
    assert "default-src 'none'" in policy and "connect-src" not in policy, policy
    assert text.count("<script") == text.count("</script>") == 2
    for tag in ("<link", "<iframe", "<img", "@import"):
        assert tag not in text, tag


def hostile_names_stay_text(tmp):
    folder = os.path.join(tmp, "hostile")
    run = report_run.Run(folder, suite=HOSTILE, left_out=[{"id": HOSTILE, "reason": HOSTILE}])
    report_run.fill(run, 200, HOSTILE)
    report(folder, cwd=tmp)
    text = page_of(os.path.join(folder, "report.html"))
    data = data_of(text)
    assert text.count("<script") == 2 and "\u202e" not in text
    assert data["runs"][0]["run"]["suite"] == HOSTILE
    assert HOSTILE in case_of(data, "B1_RC")["question"]


def two_runs_are_compared(tmp, run):
    other, out = os.path.join(tmp, "other"), os.path.join(tmp, "two.html")
    report_run.fill(report_run.Run(other), 400, median=1.5)
    report(run, other, "--out", out)
    data = data_of(page_of(out))
    assert len(data["runs"]) == 2 and len(data["compare"]) > 50, len(data["compare"])
    row = next(r for r in data["compare"] if r["id"] == "B1_RC" and r["latency"] == "t_lat")
    assert row["verdict"] == "slower" and 1.4 < row["low"] <= row["ratio"] <= row["high"] < 1.6, row


def devices_and_links_stay_what_they_are(tmp, run):
    fifo, file, link = (os.path.join(tmp, n) for n in ("fifo", "linked.html", "link.html"))
    os.mkfifo(fifo)
    # The page is longer than a pipe holds.
    with open(os.path.join(tmp, "read"), "wb") as read, subprocess.Popen(["cat", fifo], stdout=read) as reader:
        report(run, "--out", fifo)
        assert reader.wait(LIMIT_S) == 0
    assert page_of(read.name).endswith("</html>\n")
    assert stat.S_ISFIFO(os.stat(fifo).st_mode)
    with open(file, "w", encoding="utf-8") as f:
        f.write("old")
    os.symlink(file, link)
    report(run, "--out", link)
    assert os.path.islink(link) and data_of(page_of(file))
    stdout, _ = report(run, "--out", "-")
    assert stdout.startswith("<!doctype html>") and stdout.endswith("</html>\n")


def numbers_that_come_late_are_not_missing(tmp):
    samples, out = os.path.join(tmp, "late.csv"), os.path.join(tmp, "late.html")
    with open(samples, "w", encoding="utf-8") as f:
        f.write("# secs,nsecs,offset,sequence,voltage[V]\n")
        # 3 is late; 6 is missing; 8 comes twice.
        for n in (1, 2, 4, 3, 5, 7, 8, 9, 8, 10):
            f.write(f"17000{n:05d},0,{n * 1e-9:.9f},{n},1\n")
    report("--recording", samples, "--out", out)
    data = data_of(page_of(out))
    figures = figures_of(data, data["runs"][0]["cases"][0])
    assert figures == {"samples": 10, "lost": 1, "reordered": 2}, figures


def each_node_of_the_hook_stats_is_a_case(tmp):
    stats, out = os.path.join(tmp, "two.json"), os.path.join(tmp, "two.html")
    with open(stats, "w", encoding="utf-8") as f:
        for i in range(20):
            for node, factor in (("plant", 1), ("grid", 1000)):
                f.write(json.dumps({"node": node, "time": 1.7e9 + i, "lost": factor,
                                    "owd": {"p50": 1e-6 * factor}}) + "\n")
    done, _ = report("--recording", stats, "--out", out)
    cases = data_of(page_of(out))["runs"][0]["cases"]
    assert "2 cases" in done and [c["label"] for c in cases] == ["plant", "grid"], done
    for case in cases:
        assert case["curves"][0]["label"] == "one-way delay, median" and case["curves"][0]["samples"] == 20


def recordings_have_figures(tmp):
    samples = os.path.join(tmp, "plant.csv")
    with open(samples, "w", encoding="utf-8") as f:
        f.write("# secs,nsecs,offset,sequence,voltage[V],<b>\n")
        for i in range(1000):
            if i != 500:
                f.write(f"1700000000,{i * 100000:09d},{2e-5 + i * 1e-9:.9f},{i},{i % 50},1\n")
    stats = os.path.join(tmp, "stats.json")
    with open(stats, "w", encoding="utf-8") as f:
        for i in range(20):
            figures = {t: 1e-5 * (i + 1) for t in ("p50", "p99.9", "highest", "mean")}
            f.write(json.dumps({"node": "plant", "time": 1.7e9 + i, "received": i * 1000,
                                "lost": 0, "owd": figures, "age": {"p99.9": None}}) + "\n")
    out = os.path.join(tmp, "recorded.html")
    report("--limit", "20.5", samples, stats, "--out", out)
    data = data_of(page_of(out))
    plant, hook = data["runs"][0]["cases"]
    assert data["kind"] == "recording" and plant["limit_ns"] == 20500
    assert figures_of(data, plant)["lost"] == 1
    latency, gap = plant["latencies"]
    assert latency["name"] == "t_lat" and 0.4 < latency["share_above"] < 0.6 and gap["share_above"] is None
    assert [(c["label"], c["unit"]) for c in plant["curves"]] == [("voltage", "V"), ("<b>", "")], plant["curves"]
    names = [c["label"] for c in hook["curves"]]
    assert "one-way delay, median" in names and not any("time in the gateway" in n for n in names), names


def rows_of(table):
    return [dict(zip(table["keys"], row)) for row in table["rows"]]


def subnets_are_known_by_their_contents(tmp):
    links = subnet_json.fat_tree(2, 2, 1)
    links[0]["wait"] = HOSTILE
    what = subnet_json.experiment(links, title=HOSTILE, congestion=[subnet_json.congested("leaf-1:1", 0, True, 5, 900)])
    path = subnet_json.write(os.path.join(tmp, "experiment.json"), what)
    state = subnet_json.write(os.path.join(tmp, "state.json"), subnet_json.state(links[1:]))
    out = os.path.join(tmp, "subnet.html")
    assert "2 subnets" in report(path, state, "--out", out)[0]
    text = page_of(out)
    assert text.count("</script>") == 2 and "alert(1)" in text
    data = data_of(text)
    a, b = data["subnets"]
    assert data["kind"] == "subnet" and (a["of"], b["of"]) == ("experiment", "state"), data["kind"]
    assert a["title"] == HOSTILE and a["seconds"] == 0.001
    first, second = rows_of(a["links"])[:2]
    # What has another type than it should is not known.
    assert first["from"] == "leaf-1:1" and first["wait"] is None and first["load"] == 0.5 and second["wait"] == 0
    flows = rows_of(a["flows"])
    assert flows[0]["from"] == "host-1:1" and flows[0]["rate_bps"] == 5e9, "the flow with the least share is first"
    assert rows_of(a["congestion"])[0]["root"] is True
    assert {n["name"] for n in rows_of(b["nodes"])} == {"host-1", "host-2", "host-3", "host-4", "leaf-1", "leaf-2", "spine-1"}
    assert rows_of(b["links"])[0]["sent_bytes"] == 12500000000
    # Many flows: those with the least share are kept.
    what["flows"] = what["flows"][1:] * 2000 + what["flows"][:1]
    report(subnet_json.write(path, what), "--out", out)
    a = data_of(page_of(out))["subnets"][0]
    assert len(a["flows"]["rows"]) == 4000 and a["flows_left_out"] == 2001 and rows_of(a["flows"])[0]["rate_bps"] == 5e9
    assert os.path.getsize(out) < 1500000
    plant = os.path.join(tmp, "plant.csv")
    assert "only one kind" in report(state, plant, status=1)[1]
    report("--recording", state, "--out", out, status=1)


def wrong_usage_and_files_are_named(tmp, run):
    assert "folder of a run is missing" in report(status=2)[1]
    assert "too many is 'c'" in report("a", "b", "c", status=2)[1]
    assert "--limit -1: expected" in report("--recording", "--limit", "-1", "x", status=2)[1]
    assert "only of recordings there is '--format'" in report("--format", "csv", run, status=2)[1]
    assert "do not go together" in report(run, os.path.join(run, "run.json"), status=2)[1]
    assert "--svg" in report("--svg", "x", run, status=2)[1]
    assert "run.json" in report(tmp, status=1)[1]
    missing = os.path.join(tmp, "no-such-file")
    assert missing in report("--recording", missing, status=1)[1]
    assert "no-such-folder" in report(run, "--out", os.path.join(tmp, "no-such-folder", "x"),
                                      status=1)[1]
    with open(os.path.join(run, "cases", "B1_RC", "raw.bin"), "r+b") as f:
        f.truncate(100)
    assert "raw.bin" in report(run, status=1)[1]


def main():
    with tempfile.TemporaryDirectory() as tmp:
        run = os.path.join(tmp, "run")
        report_run.fill(report_run.Run(run, left_out=[
            {"id": "E_UD", "scenario": "E", "reason": "UD has no RDMA writes"}]), 400)
        has_the_data_of_every_case(run)
        the_page_executes_its_own_script_only(run)
        hostile_names_stay_text(tmp)
        two_runs_are_compared(tmp, run)
        devices_and_links_stay_what_they_are(tmp, run)
        numbers_that_come_late_are_not_missing(tmp)
        each_node_of_the_hook_stats_is_a_case(tmp)
        recordings_have_figures(tmp)
        subnets_are_known_by_their_contents(tmp)
        wrong_usage_and_files_are_named(tmp, run)


main()
