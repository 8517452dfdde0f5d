#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""`busbar devices` on two connected processes: text, JSON, differences, and
processes that stop or die meanwhile.

Other processes may use the adapter at the same time; only our two are looked at.
"""
import json
import os
import re
import subprocess
import sys
import tempfile
import time

BUSBAR = os.environ["BUSBAR"]
STAND = os.environ["STAND"]
LIMIT_S = 60


ANSWERS = set()  # pids that have to be shown


def silent(args, text):
    """Those of ANSWERS that did not answer in time, as one that gets no processor."""
    if "--json" in args:
        said = {p["pid"]: p.get("problem", "") for p in json.loads(text)["processes"]}
    else:
        said = blocks(text)
    return {pid for pid in ANSWERS if "does not answer" in said.get(pid, "")}


def busbar(*args, status=0):
    end = time.monotonic() + LIMIT_S
    while True:
        said = once(*args, status=status)
        if status or "--watch" in args or "--fail" in args or "--faults" in args or \
                not silent(args, said) or time.monotonic() > end:
            return said


def once(*args, status=0):
    done = subprocess.run([BUSBAR, "devices", *args], text=True, timeout=LIMIT_S,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert done.returncode == status, (args, done)
    return done.stdout + ("" if status == 0 else done.stderr)


class Pair:
    def __init__(self, **env):
        self.process = subprocess.Popen([STAND], text=True, stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, env=dict(os.environ, **env))
        words = self.process.stdout.readline().split()
        assert words and words[0] == "ready", words
        self.pids = [int(words[1]), int(words[2])]
        ANSWERS.update(self.pids)
        self.qpns = [int(words[3]), int(words[4])]

    def order(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        assert answer == f"ok {line}\n", answer

    def end(self):
        ANSWERS.difference_update(self.pids)
        self.process.stdin.close()
        output = self.process.stdout.read()
        assert self.process.wait(LIMIT_S) == 0, output


def blocks(text):
    """The lines of each process, by pid."""
    found, pid = {}, None
    for line in text.splitlines():
        if line.startswith("  pid "):
            pid = int(line.split()[1])
            found[pid] = [line]
        elif line.startswith("    ") and pid:
            found[pid].append(line)
        else:
            pid = None
    return {pid: "\n".join(lines) for pid, lines in found.items()}


def shows_both_processes_with_what_they_did(pair):
    pair.order("send 7")
    text = busbar("-v")
    assert "soft0  InfiniBand verbs" in text and "library  " in text, text
    a, b = (blocks(text)[pid] for pid in pair.pids)
    for block, other in ((a, pair.pids[1]), (b, pair.pids[0])):
        assert "transport    shm" in block, block
        assert "queue pairs  RC RTS 1" in block, block
        assert "memory       1 regions, 65.5 kB" in block, block
        assert f"links        pid {other}" in block, block
        assert f"uid {os.getuid()}" in block and "adapter-stand" in block, block
        assert "  qp 0x" not in block, block
    assert "sent         SEND 7 (700 B)" in a, a
    assert "received     nothing" in a, a
    assert "sent         nothing" in b, b
    assert "received     SEND 7 (700 B)" in b, b
    assert "\nin all  " in text, text


def shows_each_queue_pair_when_asked(pair):
    for option in ("-vv", "--qps"):
        a = blocks(busbar(option))[pair.pids[0]]
        line = (f"    qp 0x{pair.qpns[0]:06x}  soft0 RC RTS, "
                f"peer 0x{pair.qpns[1]:06x} of pid {pair.pids[1]} by shm")
        assert line in a, (line, a)


def json_has_all_of_it(pair):
    everything = json.loads(busbar("--json", "--qps"))
    soft0 = next(d for d in everything["devices"] if d["name"] == "soft0")
    assert len(soft0["guid"]) == 19, soft0
    port = soft0["ports"][0]
    assert port["port"] == 1 and port["link_layer"] == "Ethernet", port
    assert port["mtu"] <= port["mtu_max"] == 4096, port
    assert any(g["type"] == "RoCE v2" and g.get("netdev") == "lo"
               for g in port["gids"]), port
    assert soft0["limits"]["max_qp"] > 0, soft0
    by_pid = {p["pid"]: p for p in everything["processes"]}
    a, b = (by_pid[pid] for pid in pair.pids)
    assert a["uid"] == os.getuid() and "adapter-stand" in a["command"], a
    assert "shm" in a["transports"], a
    assert a["queue_pairs"] == [{"type": "RC", "state": "RTS", "count": 1}], a
    assert [link["pid"] for link in a["links"]] == [pair.pids[1]], a
    assert a["counters"]["memory_regions"] == 1, a
    assert a["counters"]["registered_bytes"] == 65536, a
    assert a["counters"]["links_up"] == 1, a
    for name in ("polls", "progress_ticks", "kicks_sent", "kicks_received",
                 "cq_events", "async_events", "cq_overruns",
                 "packets_bad_icrc", "packets_malformed",
                 "packets_from_strangers", "packets_wrong_qkey",
                 "fpdus_delayed", "fpdus_corrupted", "streams_stalled",
                 "streams_cut", "streams_reset"):
        assert isinstance(a["counters"][name], int), name
    assert a["traffic"]["tx_send_messages"] == 7, a
    assert a["traffic"]["tx_send_bytes"] == 700, a
    assert b["traffic"]["rx_send_messages"] == 7, b
    assert b["traffic"]["rx_rnr_sent"] == 0, b
    qp, = a["queue_pair_list"]
    assert qp["qpn"] == pair.qpns[0] and qp["device"] == "soft0", qp
    assert qp["peer_qpn"] == pair.qpns[1] and qp["peer_pid"] == pair.pids[1], qp
    assert qp["counters"]["tx_send_messages"] == 7, qp
    totals = everything["totals"]
    assert totals["processes"] >= 2 and totals["queue_pairs"] >= 2, totals
    assert totals["traffic"]["tx_send_messages"] >= 7, totals
    assert "queue_pair_list" not in json.loads(busbar("--json"))["processes"][0]


def until(lines, wanted, limit_s=LIMIT_S):
    """Reads lines until `wanted` says of one that it is it."""
    end = time.monotonic() + limit_s
    for line in lines:
        if wanted(line):
            return line
        assert time.monotonic() < end, "what was waited for did not come"
    raise AssertionError("the output ended first")


def watching_shows_differences_per_second(pair):
    watch = subprocess.Popen([BUSBAR, "devices", "--watch", "0.1", "--json",
                              "--qps"], text=True, stdout=subprocess.PIPE)

    def sends(line):
        view = json.loads(line)
        p = next(p for p in view["processes"] if p["pid"] == pair.pids[0])
        if "traffic_per_second" not in p:
            return False
        rate = p["traffic_per_second"]["tx_send_messages"]
        assert abs(p["queue_pair_list"][0]["per_second"]["tx_send_messages"] -
                   rate) < 1e-6, p
        # A whole number of messages in the time that it says.
        count = rate * view["seconds"]
        assert abs(count - round(count)) < 1e-3, (rate, view["seconds"])
        nonlocal total
        total += round(count)
        return total == 20

    total = 0
    try:
        # It runs, and both have answered twice.
        until(watch.stdout, lambda line: all("traffic_per_second" in p
              for p in json.loads(line)["processes"] if p["pid"] in pair.pids))
        pair.order("send 20")
        until(watch.stdout, sends)
    finally:
        watch.terminate()
        watch.communicate(timeout=LIMIT_S)
    end = time.monotonic() + LIMIT_S
    while True:
        table = busbar("--watch", "0.05", "--count", "2")
        assert table.count("received/s") == 2, table
        if any(line.split()[:2] == [str(pair.pids[0]), "0"] for line in table.splitlines()):
            break
        assert time.monotonic() < end, table


def a_stopped_process_is_said_to_be_silent(pair):
    pair.order("stop")
    ANSWERS.discard(pair.pids[1])
    a, b = (blocks(busbar("-v"))[pid] for pid in pair.pids)
    assert "not shown: it does not answer" in b, b
    assert "queue pairs  RC RTS 1" in a, a
    by_pid = {p["pid"]: p for p in json.loads(busbar("--json"))["processes"]}
    assert "does not answer" in by_pid[pair.pids[1]]["problem"], by_pid
    pair.order("go")
    ANSWERS.add(pair.pids[1])
    assert "not shown" not in blocks(busbar("-v"))[pair.pids[1]]


def a_process_that_is_killed_meanwhile_is_reported_once(pair):
    watch = subprocess.Popen([BUSBAR, "devices", "--watch", "0.1"], text=True,
                             stdout=subprocess.PIPE)
    gone = [str(pair.pids[1]), "has", "ended"]
    try:
        until(watch.stdout, lambda line: line.split()[:2] == [str(pair.pids[1]), "0"])
        pair.order("kill")
        ANSWERS.discard(pair.pids[1])
        until(watch.stdout, lambda line: line.split() == gone)
        # Two tables on, it is not mentioned any more; the other one is.
        for _ in range(2):
            until(watch.stdout, lambda line: "received/s" in line)
            line = until(watch.stdout,
                         lambda line: line.split()[:1] == [str(pair.pids[0])])
            assert line.split()[:2] == [str(pair.pids[0]), "0"], line
    finally:
        watch.terminate()
        rest, _ = watch.communicate(timeout=LIMIT_S)
    assert "has ended" not in rest, rest
    found = blocks(busbar("-v"))
    assert pair.pids[1] not in found and pair.pids[0] in found, found
    assert "links        none" in found[pair.pids[0]], found


def the_gid_of_iwarp_is_a_hardware_address():
    env = dict(os.environ, BUSBAR_DEVICES="all")
    text = subprocess.run([BUSBAR, "devices", "soft1"], text=True, timeout=LIMIT_S, env=env,
                          stdout=subprocess.PIPE, check=True).stdout
    found = re.search(r"^soft1  iWARP,.*\n.*\n    gid 0   hardware   ([0-9a-f:]{17})(?: on (\S+))?$",
                      text, re.M)
    assert found, text
    if found[2]:
        with open(f"/sys/class/net/{found[2]}/address") as file:
            assert file.read().strip() == found[1], text
    else:
        assert found[1] == "00:00:00:00:00:00", text
    text = subprocess.run([BUSBAR, "devices", "--json", "soft1"], text=True, timeout=LIMIT_S,
                          env=env, stdout=subprocess.PIPE, check=True).stdout
    gid = json.loads(text)["devices"][0]["ports"][0]["gids"][0]
    assert gid["type"] == "hardware" and gid["gid"] == found[1], gid
    assert gid.get("netdev") == found[2], gid


def wrong_arguments_are_usage_errors():
    assert "expected seconds" in busbar("--watch", "0", status=2)
    assert "expected seconds" in busbar("--watch", "often", status=2)
    assert "positive number" in busbar("--watch", "1", "--count", "0", status=2)
    assert "--watch only" in busbar("--count", "3", status=2)
    assert "takes no device" in busbar("--watch", "1", "soft0", status=2)
    assert "positive number" in busbar("--fail", "0", status=2)
    assert "positive number" in busbar("--fail", "all", status=2)
    assert "one device at most" in busbar("--fail", "1", "soft0", "soft1", status=2)
    assert "shows nothing" in busbar("--fail", "1", "--qps", status=2)
    assert "no other option" in busbar("--faults", "off", "-v", status=2)


def only_a_process_that_uses_the_adapter_can_be_made_to_fail():
    done = subprocess.Popen(["true"])
    done.wait(LIMIT_S)
    assert "there is no process" in busbar("--fail", str(done.pid), status=1)
    assert "no queue pair" in busbar("--fail", str(os.getpid()), status=1)


def faults_are_set_shown_and_ended(pair):
    both = [str(pid) for pid in pair.pids]
    text = busbar("--faults", "loss=0.1%,seed=3", *both)
    assert text.count("loss=0.1%,seed=3") == 2, text
    # Of the default transports one could only have been prepared for it.
    assert text.count("shm: no faults in shared memory") == 2, text
    pair.order("send 3")
    text = busbar("--faults", "show", both[0])
    assert "loss=0.1%" in text and both[0] in text and both[1] not in text, text
    error = busbar("--faults", "loss=2", both[0], status=1)
    assert "'loss=2' not usable: loss: '2' is not usable, expected a probability" in error, error
    assert busbar("--faults", "off", *both).count("no faults") == 2
    # Others use the device, too, and need not know the question.
    end = time.monotonic() + LIMIT_S
    while True:
        text = subprocess.run([BUSBAR, "devices", "--faults", "show", "soft0"], text=True,
                              timeout=LIMIT_S, stdout=subprocess.PIPE).stdout
        if both[0] in text and both[1] in text or time.monotonic() > end:
            break
    assert both[0] in text and both[1] in text, text
    assert "no process uses soft9" in busbar("--faults", "show", "soft9", status=1)


def events_at_packet_numbers_are_told():
    pair = Pair(BUSBAR_TRANSPORTS="roce")
    pid = str(pair.pids[0])
    with tempfile.NamedTemporaryFile("w") as file:
        file.write("# two\nduplicate packet 2 of qp any out send\nloose packet 3\n")
        file.flush()
        error = busbar("--faults", "events=" + file.name, pid, status=1)
        assert f"{file.name}:3: 'loose' is not usable, expected drop, delay" in error, error
        file.seek(0)
        file.truncate()
        file.write("# one\nduplicate packet 2 of qp any out send\n")
        file.flush()
        busbar("--faults", "events=" + file.name, pid)
    pair.order("send 3")
    text = busbar("--faults", "show", pid)
    assert "event line=2 action=duplicate qp=0x" in text, text
    said, = json.loads(busbar("--faults", "show", "--json", pid))["processes"]
    assert said["pid"] == pair.pids[0] and said["faults"] == "events=" + file.name, said
    event, = said["events"]
    assert event["qp"] == pair.qpns[0] and event["packet"] == 2 and event["line"] == 2, event
    assert event["opcode"] == "send-only" and event["direction"] == "out", event
    said, = json.loads(busbar("--faults", "off", "--json", pid))["processes"]
    assert said["faults"] == "" and not said["events"], said
    pair.end()


def another_user_cannot_make_it_fail(pair):
    if os.getuid() != 0:
        return
    try:
        done = subprocess.run([BUSBAR, "devices", "--fail", str(pair.pids[0])], user=65534,
                              text=True, timeout=LIMIT_S, stderr=subprocess.PIPE)
    except PermissionError:
        # Below a home that only its owner may enter, as that of root.
        print("  not tried: another user cannot reach the executable")
        return
    assert done.returncode == 1 and "can let its device fail" in done.stderr, done
    assert "queue pairs  RC RTS 1" in blocks(busbar("-v"))[pair.pids[0]]


def a_device_fails_when_asked_to(pair):
    error = busbar("--fail", str(pair.pids[0]), "mlx5_0", status=1)
    assert "'mlx5_0' is none of busbar's" in error, error
    assert busbar("--fail", str(pair.pids[0]), "soft0") == ""
    a, b = (blocks(busbar("-v"))[pid] for pid in pair.pids)
    assert "queue pairs  RC ERR 1" in a, a
    assert "queue pairs  RC RTS 1" in b, b


def main():
    the_gid_of_iwarp_is_a_hardware_address()
    wrong_arguments_are_usage_errors()
    only_a_process_that_uses_the_adapter_can_be_made_to_fail()
    events_at_packet_numbers_are_told()
    pair = Pair()
    for case in (shows_both_processes_with_what_they_did,
                 shows_each_queue_pair_when_asked,
                 json_has_all_of_it,
                 watching_shows_differences_per_second,
                 a_stopped_process_is_said_to_be_silent,
                 a_process_that_is_killed_meanwhile_is_reported_once):
        print(case.__name__, flush=True)
        case(pair)
    pair.end()
    pair = Pair()
    for case in (faults_are_set_shown_and_ended, another_user_cannot_make_it_fail,
                 a_device_fails_when_asked_to):
        print(case.__name__, flush=True)
        case(pair)
    pair.end()
    return 0


if __name__ == "__main__":
    sys.exit(main())
