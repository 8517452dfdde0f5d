#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""`busbar trace` names what is in a capture, with its exit status, evidence, ladder and JSON; reads
files and pipes; says what it could not judge, and where a file is damaged.

usage: trace.py FIXTURE LARGE; environment: BUSBAR.
"""
import json
import os
import signal
import struct
import subprocess
import sys
import tempfile
import time

FIXTURE, LARGE, BUSBAR = sys.argv[1], sys.argv[2], os.environ["BUSBAR"]
failed = 0


def check(good, what, shown=""):
    global failed
    if not good:
        failed = 1
        print("FAILED:", what)
        print(shown)


def fixture(name, link="197", kind="pcap"):
    return subprocess.run([FIXTURE, name, link, kind], capture_output=True, check=True).stdout


def trace(data, *options):
    """The capture by a pipe."""
    run = subprocess.run([BUSBAR, "trace", *options, "-"], input=data, capture_output=True)
    return run.returncode, run.stdout.decode(), run.stderr.decode()


def verdicts(name, status, verdict, **more):
    code, out, err = trace(fixture(name, **more), "--json")
    check(code == status, "%s: status %d instead of %d" % (name, code, status), out + err)
    found = json.loads(out)
    check(found["status"] == status, "%s: the status in JSON" % name, out)
    check(found["flows"][0]["verdict"] == verdict, "%s is %s" % (name, verdict), out)
    return found


def the_listings():
    found = verdicts("fig5.3", 1, "damming")["flows"][0]["findings"]
    check(len(found) == 1, "one finding in figure 5.3", found)
    check(abs(found[0]["stall_ns"] - 537778000) < 1500, "0.538 s in figure 5.3", found)
    check(found[0]["side"] == "server" and found[0]["confidence"] == "high", "server side", found)
    check(found[0]["packets"] == {"pending": 2, "pending_end": 4, "sent": 5, "again": 7, "answer": 8},
          "packets of figure 5.3", found)
    found = verdicts("fig5.3-client", 1, "damming", kind="pcapng-")["flows"][0]["findings"]
    check(abs(found[0]["stall_ns"] - 435127000) < 1500 and found[0]["side"] == "client",
          "0.435 s, client side", found)
    flow = verdicts("fig6.2", 1, "damming", link="1", kind="pcap-")["flows"][0]
    check(abs(flow["findings"][0]["stall_ns"] - 1661320000) < 1500, "1.661 s in figure 6.2", flow)
    check(abs(flow["rnr"]["inflation_max"] - 4.98) < .01, "4.98 times in figure 6.2", flow)
    for name, inflation in (("fig4.2", 3.46), ("fig4.3", 2.65), ("fig4.4", 4.30)):
        flow = verdicts(name, 0, "page_fault")["flows"][0]
        check(abs(flow["rnr"]["inflation_max"] - inflation) < .01, "RNR wait of " + name, flow)


def the_other_verdicts():
    verdicts("self-heal", 1, "damming_recovered")
    verdicts("read-flood", 1, "read_flood", link="247")
    verdicts("write-amplification", 1, "write_amplification")
    verdicts("wrong-lid", 1, "timeout")
    verdicts("loss", 0, "loss")
    verdicts("congested", 0, "congestion", link="1")
    verdicts("no-receive", 0, "receiver_not_ready")
    verdicts("clean", 0, "none")
    flow = verdicts("one-direction", 3, "incomplete")["flows"][0]
    check(flow["not_judged"] == ["no_answers"], "requests alone are not judged", flow)
    verdicts("answers-only", 3, "incomplete")


def what_people_read(folder):
    path = os.path.join(folder, "fig5.3.pcap")
    with open(path, "wb") as f:
        f.write(fixture("fig5.3"))
    run = subprocess.run([BUSBAR, "trace", "--ladder", "1", path], capture_output=True, text=True)
    check(run.returncode == 1, "status with a ladder", run.stdout + run.stderr)
    for text in ("packet damming", "0.538 s", "server side", "sent 5, again 7, answer 8", "LOST",
                 "RNR NAK PSN 1, 1.28 ms", "pending period begins", "what to do:", "3.828 ms"):
        check(text in run.stdout, "the text has '%s'" % text, run.stdout)


def damage():
    data = fixture("fig5.3")
    code, out, err = trace(data[:-10])
    check(code == 3 and "offset" in err and "ends inside of a record" in err, "a file that is cut", err)
    check("7 packets" in err and "packet damming" in out, "what was read before is analysed", out + err)
    code, out, err = trace(b"GIF89a garbage")
    check(code == 3 and "the number at the start" in err, "another file", err)
    code, out, err = trace(b"")
    check(code == 3 and "empty" in err, "an empty file", err)
    run = subprocess.run([BUSBAR, "trace", "/nonexistent/x"], capture_output=True, text=True)
    check(run.returncode == 3 and "/nonexistent/x: No such file" in run.stderr, "no file", run.stderr)


def interrupt():
    data = fixture("fig5.3")
    run = subprocess.Popen([BUSBAR, "trace", "-"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    while not os.path.exists("/proc/%d/status" % run.pid) or not catches_interrupt(run.pid):
        time.sleep(.01)
    run.stdin.write(data[:200])
    run.stdin.flush()
    run.send_signal(signal.SIGINT)
    out, _ = run.communicate(data[200:], timeout=20)
    check(run.returncode == 1 and b"packet damming" in out, "a capture that Ctrl-C has ended", out)


def catches_interrupt(pid):
    with open("/proc/%d/status" % pid) as f:
        caught = [line for line in f if line.startswith("SigCgt:")]
    return int(caught[0].split()[1], 16) & 1 << (signal.SIGINT - 1)


def peak_kib(megabytes):
    """The most memory that the command has while it reads so many MiB from a pipe."""
    with subprocess.Popen([LARGE, str(megabytes), "64"], stdout=subprocess.PIPE) as source:
        run = subprocess.Popen([BUSBAR, "trace", "-"], stdin=source.stdout, stdout=subprocess.DEVNULL)
        source.stdout.close()
        _, status, usage_of = os.wait4(run.pid, 0)
    run.returncode = os.waitstatus_to_exitcode(status)
    check(run.returncode == 0, "a large capture is read", status)
    return usage_of.ru_maxrss


def memory_is_bounded():
    small, large = peak_kib(4), peak_kib(64)
    check(large < small + 8192, "memory does not grow with the capture: %d, %d KiB" % (small, large))


def many_findings(flows, each):
    """A capture of flows whose requests all time out, IPv4 alone."""
    file = [struct.pack("<IHHiIII", 0xa1b23c4d, 2, 4, 0, 0, 65535, 228)]
    head = bytes.fromhex("4500002c000000004011000000000005000000060000" "12b7" "00180000" "0440ffff")
    for send in range(2 * each):
        for flow in range(flows):
            now_ns = send * 50000000 + flow
            packet = head + struct.pack(">II", flow + 2, 1 << 31 | send // 2 * 50) + bytes(4)
            file.append(struct.pack("<IIII", now_ns // 10**9, now_ns % 10**9, len(packet), len(packet)) + packet)
    return b"".join(file)


def without_quarantine():
    """The environment; a build with AddressSanitizer gives freed memory back at once."""
    options = os.environ.get("ASAN_OPTIONS", "")
    return {**os.environ, "ASAN_OPTIONS": (options and options + ":") + "quarantine_size_mb=1"}


def many_findings_need_no_memory_as_json(folder):
    path = os.path.join(folder, "many")
    with open(path, "wb") as f:
        f.write(many_findings(1000, 64))
    peak = {}
    for options in ((), ("--json",)):
        with open(path + ".out", "w+b") as out:
            run = subprocess.Popen([BUSBAR, "trace", *options, path], stdout=out, env=without_quarantine())
            _, status, usage_of = os.wait4(run.pid, 0)
            run.returncode = os.waitstatus_to_exitcode(status)
            check(run.returncode == 1, "findings are told", run.returncode)
            peak[options] = usage_of.ru_maxrss
            out.seek(0)
            found = json.load(out) if options else None
    check(len(found["flows"]) == 1000, "all flows are in the object", len(found["flows"]))
    check(all(len(f["findings"]) == 64 for f in found["flows"]), "all findings are", found["flows"][0])
    # One flow at a time, whatever else a sanitizer needs for each byte.
    check(peak["--json",] < 1.5 * peak[()] + (16 << 10), "JSON needs little more memory than text", peak)


def usage():
    for arguments in ([], ["a", "b"], ["--flow", "0", "-"], ["--nonsense", "-"], ["--ladder", "x", "-"]):
        run = subprocess.run([BUSBAR, "trace", *arguments], input="", capture_output=True, text=True)
        check(run.returncode == 2 and run.stderr, "usage error of %s" % arguments, run.stderr)
    code, _, err = trace(fixture("clean"), "--flow", "2")
    check(code == 2 and "1 flow" in err, "a flow that is not there", err)


with tempfile.TemporaryDirectory() as tmp:
    the_listings()
    the_other_verdicts()
    what_people_read(tmp)
    damage()
    interrupt()
    memory_is_bounded()
    many_findings_need_no_memory_as_json(tmp)
    usage()
sys.exit(failed)
