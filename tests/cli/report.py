#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""`busbar report`: what is in the page, that nothing in it comes from elsewhere or is
executed, and how it ends without gnuplot, with a broken one and when it is interrupted.

Figures are looked for only where gnuplot is installed.
"""
import json
import os
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import report_run # pylint: disable=wrong-import-position
from html_page import page_of # pylint: disable=wrong-import-position

BUSBAR = os.environ["BUSBAR"]
GNUPLOT = shutil.which("gnuplot")
LIMIT_S = 60
HOSTILE = "<script>alert(1)</script>`touch pwned`'; system('touch pwned') \"\\ %d \u202e"


def report(*args, status=0, **more):
    done = subprocess.run([BUSBAR, "report", *args], text=True, timeout=LIMIT_S,
                          capture_output=True, check=False, **more)
    assert done.returncode == status, (args, done)
    return done.stdout, done.stderr


def without_gnuplot(folder):
    """The environment with an empty PATH."""
    return {**os.environ, "PATH": folder}


def fake_gnuplot(folder, script):
    os.makedirs(folder)
    path = os.path.join(folder, "gnuplot")
    with open(path, "w", encoding="utf-8") as f:
        f.write("#!/bin/sh\n" + script + "\n")
    os.chmod(path, 0o755)
    return {**os.environ, "PATH": folder + ":" + os.environ["PATH"]}


def shows_every_scenario(run):
    out, _ = report(run)
    page, text = page_of(os.path.join(run, "report.html"))
    assert "81 cases" not in out and "cases, " in out, out
    for scenario in ("B1: How fast", "G: How does", "N4: Up to which", "How much goes"):
        assert any(h.startswith(scenario) for h in page.heads), (scenario, page.heads)
    for figure in ("Histogram: RC", "The slowest messages: one-way latency",
                   "Over time: UD", "Medians over the message size",
                   "Medians over rate and values per sample: from the step as planned",
                   "Medians over rate and values per sample: from the step as taken",
                   "throughput"):
        assert any(f.startswith(figure) for f in page.figures), (figure, page.figures)
    assert "UD has no RDMA writes" in page.text
    assert "It is a virtual machine (KVMKVMKVM)" in page.text
    assert "Processors online2" in page.text
    assert "busbar bench hca --type RC --size 32" in page.text
    assert "25.2 \u00d7" in page.text or "25.4 \u00d7" in page.text, "multiples of the floor"
    assert page.text.count("other hardware") > 3
    if not GNUPLOT:
        return
    assert page.tags.count("svg") == len(page.figures), (len(page.figures))
    # Curves of the page's colours, in light and dark; missed steps of the surface.
    assert "stroke='var(--c2)'" in text and "prefers-color-scheme:dark" in text
    assert "54 %" in text and "median of other hardware" not in text


def hostile_names_stay_text(tmp):
    folder = os.path.join(tmp, "hostile")
    run = report_run.Run(folder, suite=HOSTILE, left_out=[{"id": HOSTILE, "reason": HOSTILE}])
    report_run.fill(run, 200, HOSTILE)
    _, err = report(folder, cwd=tmp)
    page, text = page_of(os.path.join(folder, "report.html"))
    assert "script" not in page.tags and "<script" not in text
    assert "`touch pwned`" in page.text, err
    assert "\u202e" not in text
    for where in (tmp, folder):
        assert not os.path.exists(os.path.join(where, "pwned")), "a text was executed"
    if GNUPLOT:
        assert "&lt;script&gt;" in text[text.index("<svg"):]


def tables_are_there_without_gnuplot(tmp, run):
    empty = os.path.join(tmp, "empty")
    os.makedirs(empty)
    out = os.path.join(tmp, "plain.html")
    _, err = report(run, "--out", out, env=without_gnuplot(empty))
    page, _ = page_of(out)
    assert "gnuplot-nox" in err and "gnuplot-nox" in page.text, err
    assert "svg" not in page.tags and page.tags.count("table") > 10
    stdout, _ = report(run, "--out", "-", env=without_gnuplot(empty))
    assert stdout.startswith("<!DOCTYPE html>") and stdout.endswith("</html>\n")


def a_failing_gnuplot_is_reported(tmp, run):
    env = fake_gnuplot(os.path.join(tmp, "failing"), "echo 'no such terminal' >&2; exit 3")
    out = os.path.join(tmp, "failed.html")
    _, err = report(run, "--out", out, env=env, status=1)
    assert "status 3: no such terminal" in err, err
    assert "could not be drawn" in page_of(out)[0].text


def an_interrupt_ends_it_and_gnuplot(tmp, run):
    told = os.path.join(tmp, "told")
    env = fake_gnuplot(os.path.join(tmp, "slow"), f"echo $$ >'{told}.new'; mv '{told}.new' '{told}'; exec sleep 1000")
    out = os.path.join(tmp, "late.html")
    p = subprocess.Popen([BUSBAR, "report", run, "--out", out], env=env)
    end = time.monotonic() + LIMIT_S
    while not os.path.exists(told):
        assert time.monotonic() < end and p.poll() is None
        time.sleep(0.01)
    with open(told, encoding="utf-8") as f:
        child = int(f.read())
    p.send_signal(signal.SIGINT)
    assert p.wait(LIMIT_S) == 130
    try:
        os.kill(child, 0)
        assert False, "gnuplot still runs"
    except ProcessLookupError:
        pass
    assert not [n for n in os.listdir(tmp) if n.startswith("late")]


def devices_and_links_stay_what_they_are(tmp, run):
    fifo, file, link = (os.path.join(tmp, n) for n in ("fifo", "linked.html", "link.html"))
    empty = without_gnuplot(os.path.join(tmp, "empty"))
    os.mkfifo(fifo)
    with subprocess.Popen(["cat", fifo], stdout=subprocess.PIPE, text=True) as reader:
        report(run, "--out", fifo, env=empty)
        assert reader.communicate(timeout=LIMIT_S)[0].endswith("</html>\n")
    assert stat.S_ISFIFO(os.stat(fifo).st_mode)
    with open(file, "w", encoding="utf-8") as f:
        f.write("old")
    os.symlink(file, link)
    report(run, "--out", link, env=empty)
    assert os.path.islink(link) and page_of(file)[0].tags


def an_svg_file_that_cannot_be_written_is_a_failure(tmp, run):
    folder = os.path.join(tmp, "svg")
    os.makedirs(os.path.join(folder, "figure-001.svg"))
    _, err = report(run, "--svg", folder, "--out", os.path.join(tmp, "svg.html"), status=1)
    assert "figure-001.svg cannot be written" in err, err
    assert "1 figures could not be drawn or written" in err, err


def numbers_that_come_late_are_not_missing(tmp):
    samples, out = os.path.join(tmp, "late.csv"), os.path.join(tmp, "late.html")
    with open(samples, "w", encoding="utf-8") as f:
        f.write("# secs,nsecs,offset,sequence,voltage[V]\n")
        # 3 is late; 6 is missing; 8 comes twice.
        for n in (1, 2, 4, 3, 5, 7, 8, 9, 8, 10):
            f.write(f"17000{n:05d},0,{n * 1e-9:.9f},{n},1\n")
    report("--recording", samples, "--out", out,
           env=without_gnuplot(os.path.join(tmp, "empty")))
    text = page_of(out)[0].text
    assert "samplesmissing sequence numbersout of order\nlate.csv1012\n" in text, text


def each_node_of_the_hook_stats_is_a_case(tmp):
    stats, out = os.path.join(tmp, "two.json"), os.path.join(tmp, "two.html")
    with open(stats, "w", encoding="utf-8") as f:
        for i in range(20):
            for node, factor in (("plant", 1), ("grid", 1000)):
                f.write(json.dumps({"node": node, "time": 1.7e9 + i, "lost": factor,
                                    "owd": {"p50": 1e-6 * factor}}) + "\n")
    done, _ = report("--recording", stats, "--out", out,
                     env=without_gnuplot(os.path.join(tmp, "empty")))
    page, _ = page_of(out)
    assert "2 cases" in done, done
    for node in ("plant", "grid"):
        assert any(f == f"one-way delay, median: {node}" or node in f
                   for f in page.figures), page.figures


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
    report("--recording", "--limit", "20.5", samples, stats, "--out", out)
    page, _ = page_of(out)
    assert "missing sequence numbers" in page.text and "999" in page.text
    assert "from origin to reception" in page.text and "% > 20.5 \u00b5s" in page.text
    assert any(f.startswith("voltage") for f in page.figures), page.figures
    assert any(f.startswith("one-way delay, median") for f in page.figures), page.figures
    assert not any("time in the gateway" in f for f in page.figures), "nothing but null"
    if GNUPLOT:
        assert page.tags.count("svg") == len(page.figures)


def wrong_usage_and_files_are_named(tmp, run):
    assert "folder of a run is missing" in report(status=2)[1]
    assert "too many is 'b'" in report("a", "b", status=2)[1]
    assert "--limit '-1'" in report("--recording", "--limit", "-1", "x", status=2)[1]
    assert "only with --recording there is '--format'" in report("--format", "csv", run,
                                                                 status=2)[1]
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
        shows_every_scenario(run)
        hostile_names_stay_text(tmp)
        tables_are_there_without_gnuplot(tmp, run)
        a_failing_gnuplot_is_reported(tmp, run)
        an_interrupt_ends_it_and_gnuplot(tmp, run)
        devices_and_links_stay_what_they_are(tmp, run)
        if GNUPLOT:
            an_svg_file_that_cannot_be_written_is_a_failure(tmp, run)
        numbers_that_come_late_are_not_missing(tmp)
        each_node_of_the_hook_stats_is_a_case(tmp)
        recordings_have_figures(tmp)
        wrong_usage_and_files_are_named(tmp, run)


main()
