#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""`busbar trace --page`: what data are in the page of a simulated capture, that no text from outside becomes
a part of the page itself, and that the file is written as a whole or not at all. What the page makes of the
data is tests/process/page/trace.py, in a browser.

usage: trace_page.py FIXTURE; environment: BUSBAR.
"""
import json
import os
import re
import select
import signal
import subprocess
import sys
import tempfile

FIXTURE, BUSBAR = sys.argv[1], os.environ["BUSBAR"]
HOSTILE = "<script>alert(1)<!script>&'\"\u202e]]>.pcap"
LIMIT_S = 60


def trace(*args, status=1, **more):
    done = subprocess.run([BUSBAR, "trace", *args], text=True, errors="replace", timeout=LIMIT_S,
                          capture_output=True, check=False, **more)
    assert done.returncode == status, (args, done)
    return done.stdout, done.stderr


def fixture(name, path, link="197"):
    with open(path, "wb") as f:
        subprocess.run([FIXTURE, name, link, "pcap"], stdout=f, check=True)
    return path


def simulated(tmp, *options):
    path = os.path.join(tmp, "simulated")
    subprocess.run([BUSBAR, "bench", "odp", "--no-csv", *options, "--capture", path],
                   stdout=subprocess.DEVNULL, check=True, timeout=LIMIT_S)
    return path


def parts_in(tmp):
    """What was not renamed."""
    return [name for name in os.listdir(tmp) if ".html.part" in name]


def page(tmp, *args, status=1):
    """The data of the page, and its text."""
    path = os.path.join(tmp, "page.html")
    trace("--page", path, *args, status=status)
    assert not parts_in(tmp)
    with open(path, encoding="utf-8") as f:
        text = f.read()
    assert text.startswith("<!doctype html>") and text.endswith("</html>\n")
    return json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.S)[1])["trace"], text


def detailed(data):
    return [f"Flow {f['number']}: {f['verdict']}" for f in data["flows"] if f["detailed"]]


def drawn(data):
    return [f["number"] for f in data["flows"] if f.get("ladder")]


def damming_is_drawn(tmp):
    capture = simulated(tmp, "--paged", "server")
    data, _ = page(tmp, capture)
    packets = int(trace(capture)[0].split(" packets")[0].rsplit(" ", 1)[1])
    flow, = data["flows"]
    ladder = flow["ladder"]["packets"]
    assert len(ladder) == packets == 8 and flow["ladder"]["ending"], ladder
    assert flow["bad"] and flow["sentence"].startswith("Packet damming (server side"), flow["sentence"]
    assert "pending from 2, to 4, sent 5, again 7" in flow["lines"][0], flow["lines"]
    assert flow["advice"] and "timeout behind a pending period" in [c["cause"] for c in flow["causes"]], flow["causes"]
    assert detailed(data) == ["Flow 1: packet damming"]
    assert [p["number"] for p in ladder if p["lost"]] == [5] and "LOST" in ladder[4]["notes"], ladder
    assert [p["number"] for p in ladder if p["pending"]] == [2, 3], ladder
    assert [p["number"] for p in ladder if p["silence_ns"] > 5e8] == [7], "the stall is seen"
    assert ladder[0]["at_ns"] == 0 and not ladder[0]["answer"] and ladder[1]["answer"]


def each_flow_with_a_finding_has_a_drawing(tmp):
    capture = fixture("interleaved", os.path.join(tmp, "interleaved"))
    data, _ = page(tmp, capture)
    assert detailed(data) == ["Flow 1: packet damming"] and drawn(data) == [1], data
    data, _ = page(tmp, "--flow", "2", capture, status=0)
    assert detailed(data) == ["Flow 2: nothing found"] and drawn(data) == [2], data
    data, _ = page(tmp, "--ladder", "2", capture)
    assert detailed(data) == ["Flow 1: packet damming", "Flow 2: nothing found"] and drawn(data) == [2], data
    # Many are not drawn all.
    data, _ = page(tmp, fixture("read-flood", os.path.join(tmp, "flood")))
    assert len(drawn(data)) == 20 and data["more"] == 40 and len(data["flows"]) == 128, data["more"]
    data, _ = page(tmp, "--flow", "100", os.path.join(tmp, "flood"), status=0)
    assert drawn(data) == [100]
    data, _ = page(tmp, fixture("clean", os.path.join(tmp, "clean")), status=0)
    assert {f["verdict"] for f in data["flows"]} == {"nothing found"} and not drawn(data)


def hostile_names_stay_text(tmp):
    path = fixture("fig5.3", os.path.join(tmp, HOSTILE))
    data, text = page(tmp, path)
    assert "<script>alert" not in text and "\u202e" not in text and text.count("</script>") == 2
    assert data["file"] == path.replace("\u202e", "\ufffd"), data["file"]
    bytes_only = os.path.join(os.fsencode(tmp), b"\xff\xfe<b>")
    os.rename(path, bytes_only)
    data, text = page(tmp, bytes_only)
    assert "<b>" not in text and data["file"].endswith("\ufffd\ufffd<b>"), data["file"]


def whole_or_nothing(tmp):
    capture = fixture("fig5.3", os.path.join(tmp, "fig5.3"))
    out, _ = trace("--page", "-", capture)
    assert out.startswith("<!doctype html>") and out.endswith("</html>\n")
    out, _ = trace("--page", os.path.join(tmp, "page.html"), "--json", capture)
    assert out.startswith("{"), "JSON beside the page"
    _, err = trace("--page", "-", "--json", capture, status=2)
    assert "both write to standard output" in err, err
    _, err = trace("--page", os.path.join(tmp, "none/page.html"), capture, status=3)
    assert "none/page.html cannot be written: No such file" in err, err
    _, err = trace("--page", "/dev/full", capture, status=3)
    assert "No space left" in err, err
    _, err = trace("--page", os.path.join(tmp, "x.html"), "--ladder", "3", capture, status=2)
    assert "--ladder 3: the capture has 1 flow" in err, err
    assert not os.path.exists(os.path.join(tmp, "x.html")) and not parts_in(tmp)
    link = os.path.join(tmp, "link.html")
    os.symlink("page.html", link)
    trace("--page", link, capture)
    assert os.path.islink(link) and "READ request" in open(os.path.join(tmp, "page.html"), encoding="utf-8").read()


def nobody_chooses_the_file(tmp):
    """Who may write the folder, as everybody may in /tmp, has made a link or a FIFO at a name beside the page."""
    capture = fixture("fig5.3", os.path.join(tmp, "fig5.3"))
    folder = os.path.join(tmp, "shared")
    os.mkdir(folder)
    path, other = os.path.join(folder, "page.html"), os.path.join(tmp, "other")
    with open(other, "w", encoding="ascii") as f:
        f.write("mine")
    os.symlink(other, path + ".part")
    trace("--page", path, capture)
    assert open(other, encoding="ascii").read() == "mine" and os.path.islink(path + ".part")
    os.unlink(path + ".part")
    os.mkfifo(path + ".part")
    trace("--page", path, capture)
    # The mode that the file has is kept; a new one has that of other new files.
    os.chmod(path, 0o640)
    trace("--page", path, capture)
    assert os.stat(path).st_mode & 0o777 == 0o640, oct(os.stat(path).st_mode)
    os.unlink(path)
    trace("--page", path, capture, preexec_fn=lambda: os.umask(0o027))
    assert os.stat(path).st_mode & 0o777 == 0o640, oct(os.stat(path).st_mode)
    assert sorted(os.listdir(folder)) == ["page.html", "page.html.part"], os.listdir(folder)


def interrupted(tmp):
    """While the reader of a pipe takes nothing: the command ends, with the signal's status."""
    capture = fixture("read-flood", os.path.join(tmp, "flood"))
    fifo = os.path.join(tmp, "fifo")
    os.mkfifo(fifo)
    reader = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
    run = subprocess.Popen([BUSBAR, "trace", "--page", fifo, capture], stdout=subprocess.DEVNULL)
    assert select.select([reader], [], [], LIMIT_S)[0], "the page begins"
    while run.poll() is None: # a signal may come before the write that it is to interrupt
        run.send_signal(signal.SIGINT)
        try:
            run.wait(0.05)
        except subprocess.TimeoutExpired:
            pass
    os.close(reader)
    assert run.returncode == 130, run.returncode


with tempfile.TemporaryDirectory() as folder:
    damming_is_drawn(folder)
    each_flow_with_a_finding_has_a_drawing(folder)
    hostile_names_stay_text(folder)
    whole_or_nothing(folder)
    nobody_chooses_the_file(folder)
    interrupted(folder)
