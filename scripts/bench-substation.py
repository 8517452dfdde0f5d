#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""bench-substation.py BUILD [SECONDS]: when messages for substations leave a gateway, beside their plan.

In a network namespace of its own a gateway publishes sampled values (4,800 samples a second in messages of
2, and 14,400 in messages of 6) and GOOSE (a change each 10 ms); dumpcap notes at the other end of a cable
(veth, in another namespace) when the kernel had each frame. The plan is the time in the message itself: of
sampled values refrTm of the last sample, of GOOSE t. Both come from the generator of the gateway, whose
times are planned ones; a stream makes up steps that are late by up to a second. Each stream runs for
SECONDS (60).

Beside each stream, in the same seconds, cyclictest (rt-tests) sleeps with the same interval and says how
late the host wakes it: the floor. CHRT=1 runs gateway and cyclictest with real-time priority; TIMER is
that of the generator of the streams ("auto"; "tsc" spins, which takes a processor).

Printed are microseconds, and whether numbers are missing. Needs root, dumpcap, cyclictest.
"""
import contextlib
import ctypes
import os
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time

SIGNALS = 8
CHANGE_S = 0.01
TIMER = os.environ.get("TIMER", "auto")
libc = ctypes.CDLL(None, use_errno=True)
REAL_TIME = ["chrt", "-f", "50"] if os.environ.get("CHRT") == "1" else []


# ---- two namespaces ----

def enter():
    """Goes on in a network namespace that ends with this process."""
    if os.environ.get("BENCH_SUBSTATION") != "inside":
        os.environ["BENCH_SUBSTATION"] = "inside"
        os.execvp("unshare", ["unshare", "-n", sys.executable, *sys.argv])


def die_with_parent():
    libc.prctl(1, signal.SIGKILL)


@contextlib.contextmanager
def cable():
    """The id of a process in the other namespace."""
    holder = subprocess.Popen(["unshare", "-n", "sleep", "infinity"], preexec_fn=die_with_parent)
    here = os.stat("/proc/self/ns/net").st_ino
    try:
        while os.stat("/proc/%d/ns/net" % holder.pid).st_ino == here:
            time.sleep(0.01)
        subprocess.run(["ip", "link", "add", "end0", "type", "veth", "peer", "name", "end1", "netns",
                        str(holder.pid)], check=True)
        subprocess.run(["ip", "link", "set", "end0", "up"], check=True)
        subprocess.run(there(holder.pid) + ["ip", "link", "set", "end1", "up"], check=True)
        yield holder.pid
    finally:
        holder.kill()
        holder.wait()


def there(pid):
    return ["nsenter", "--net=/proc/%d/ns/net" % pid]


# ---- captures ----

def packets(path):
    """(nanoseconds since 1970, bytes) of a pcapng file of dumpcap."""
    with open(path, "rb") as f:
        data = f.read()
    at, unit = 0, 1000
    while at + 12 <= len(data):
        kind, size = struct.unpack_from("<II", data, at)
        body = data[at + 8:at + size - 4]
        if kind == 1:
            unit = resolution(body[8:])
        elif kind == 6:
            _, high, low, captured, _ = struct.unpack_from("<IIIII", body)
            yield (high << 32 | low) * unit, body[20:20 + captured]
        at += size


def resolution(options):
    """Nanoseconds of a unit of time (if_tsresol)."""
    while len(options) >= 4:
        code, size = struct.unpack_from("<HH", options)
        if code == 9:
            return 10 ** (9 - options[4])
        options = options[4 + (size + 3) // 4 * 4:]
    return 1000


def elements(data):
    """(tag, value) of BER."""
    at = 0
    while at + 2 <= len(data):
        tag, size = data[at], data[at + 1]
        at += 2
        if size & 0x80:
            n = size & 0x7f
            size = int.from_bytes(data[at:at + n], "big")
            at += n
        yield tag, data[at:at + size]
        at += size


def utc_ns(value):
    seconds, fraction = struct.unpack(">I3s", value[:7])
    return seconds * 10 ** 9 + int.from_bytes(fraction, "big") * 10 ** 9 // (1 << 24)


def body_of(frame):
    """Of the message in a frame, behind a tag of 802.1Q if it has one."""
    if frame[12:14] == b"\x81\x00":
        frame = frame[4:]
    size = struct.unpack_from(">H", frame, 16)[0]
    return next(elements(frame[22:14 + size]))[1]


def read_stream(path, rate):
    """How late each frame was, and how many numbers are missing."""
    late, missing, expected = [], 0, None
    for when, frame in packets(path):
        for tag, value in elements(body_of(frame)):
            if tag != 0xa2:
                continue
            for _, asdu in elements(value):
                fields = dict(elements(asdu))
                count = struct.unpack(">H", fields[0x82])[0]
                if expected is not None:
                    missing += (count - expected) % rate
                expected = (count + 1) % rate
                planned = utc_ns(fields[0x84])
        late.append((when - planned) / 1000)
    return late, missing


def read_goose(path, _):
    """Of changes alone (sqNum 0)."""
    late, missing, expected = [], 0, None
    for when, frame in packets(path):
        fields = dict(elements(body_of(frame)))
        if int.from_bytes(fields[0x86], "big"):
            continue
        state = int.from_bytes(fields[0x85], "big")
        if expected is not None:
            missing += state - expected
        expected = state + 1
        late.append((when - utc_ns(fields[0x84])) / 1000)
    return late, missing


# ---- runs ----

def stream_config(rate, asdus, seconds):
    return """
stats = 0.0; hugepages = 0; idle_stop = true;
nodes = {
	lines = { type = "signal"; signal = "sine"; values = %d; rate = %d; origin = "planned"; limit = %d; catch_up = 1.0; timer = "%s"; };
	mu = { type = "iec61850-9-2"; interface = "end0"; dst_address = "01:0c:cd:04:00:01";
		out = { sv_id = "MU01"; smp_mod = "samples_per_second"; smp_rate = %d; smp_synch = "global_clock"; asdus = %d;
			signals = { count = %d; iec_type = "int32"; quality = true; }; }; };
};
paths = ( { in = "lines"; out = "mu"; } );
""" % (SIGNALS, rate, int(rate * seconds), TIMER, rate, asdus, SIGNALS)


def goose_config(seconds):
    return """
stats = 0.0; hugepages = 0; idle_stop = true;
nodes = {
	events = { type = "signal"; signal = "counter"; values = 1; rate = %g; origin = "planned"; limit = %d; };
	bay = { type = "iec61850-8-1"; out = { interface = "end0"; signals = ( { name = "n"; } ); publishers = ( {
		go_id = "g"; go_cb_ref = "LD0/LLN0$GO$gcb"; data_set_ref = "LD0/LLN0$ds"; dst_address = "01:0c:cd:01:00:01";
		app_id = 1; conf_rev = 1; time_allowed_to_live = 2000;
		data = ( { signal = "n"; mms_type = "float64"; } ); } ); }; };
};
paths = ( { in = "events"; out = "bay"; } );
""" % (1 / CHANGE_S, int(seconds / CHANGE_S))


def floor(seconds, interval_us):
    """cyclictest, which runs now; its histogram has microseconds."""
    return subprocess.Popen(["cyclictest", "-q", "-t1", "-m", "-D%d" % max(1, int(seconds)), "-i%d" % interval_us, "-h20000"] +
                            (["-p50"] if REAL_TIME else ["--policy=other"]), stdout=subprocess.PIPE, text=True,
                            preexec_fn=die_with_parent)


def percentile(values, share):
    return values[min(len(values) - 1, int(share * len(values)))]


def histogram(text):
    """Sorted values of its lines; those behind its end are as late as the greatest."""
    values, most, beyond = [], 0, 0
    for line in text.splitlines():
        words = line.split()
        if line.startswith("# Max Latencies:"):
            most = int(words[-1])
        elif line.startswith("# Histogram Overflows:"):
            beyond = int(words[-1])
        elif len(words) == 2 and words[0].isdigit():
            values += [int(words[0])] * int(words[1])
    return values + [most] * beyond


def print_row(name, values, missing=""):
    values = sorted(values)
    print("%-34s %9d %9.1f %9.1f %9.1f %9.1f %9s" % (
        (name, len(values)) + tuple(percentile(values, q) for q in (0.5, 0.99, 0.999)) + (values[-1], missing)), flush=True)


def run(build, folder, other, name, config, interval_us, ethertype, read, seconds, wrap):
    conf, out = os.path.join(folder, "conf"), os.path.join(folder, "capture")
    with open(conf, "w") as f:
        f.write(config)
    capture = subprocess.Popen(there(other) + ["dumpcap", "-q", "-B", "64", "-i", "end1", "-f", "ether proto 0x%x or vlan" % ethertype,
                                             "-w", out], stderr=subprocess.PIPE, text=True, preexec_fn=die_with_parent)
    for line in capture.stderr:
        if line.startswith("File:"):
            break
    beside = floor(seconds, interval_us)
    subprocess.run(REAL_TIME + [os.path.join(build, "busbar"), "run", "-q", "-d", "warn", "--summary=none", conf], check=True)
    said = beside.communicate()[0]
    time.sleep(0.5)
    capture.send_signal(signal.SIGINT)
    capture.communicate()
    late, missing = read(out, wrap)
    print_row(name, late, missing)
    print_row("  cyclictest, %d us" % interval_us, histogram(said))
    os.remove(out)


def main():
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__.split("\n\n", 1)[0])
    for program in ("dumpcap", "cyclictest", "ip", "nsenter", "unshare"):
        if not shutil.which(program):
            sys.exit("%s is needed" % program)
    enter()
    build, seconds = sys.argv[1], float(sys.argv[2]) if len(sys.argv) == 3 else 60.0
    with cable() as other, tempfile.TemporaryDirectory(prefix="busbar-bench-substation-") as folder:
        os.chmod(folder, 0o777)
        print("%-34s %9s %9s %9s %9s %9s %9s" % ("", "frames", "p50", "p99", "p99.9", "max", "missing"))
        for rate, asdus in ((4800, 2), (14400, 6)):
            run(build, folder, other, "%d a second, %d in a message" % (rate, asdus), stream_config(rate, asdus, seconds),
                1000000 * asdus // rate, 0x88ba, read_stream, seconds, rate)
        run(build, folder, other, "GOOSE, event to frame", goose_config(seconds), int(CHANGE_S * 1e6), 0x88b8, read_goose, seconds, 0)


main()
