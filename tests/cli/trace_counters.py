#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""`busbar trace --counters` on a copy of the kernel's folder, which changes while it looks: each kind
with its evidence, missing counters, two ports, an adapter that goes away, Ctrl-C.

Environment: BUSBAR.
"""
import json
import os
import signal
import subprocess
import tempfile

BUSBAR = os.environ["BUSBAR"]
LIMIT_S = 60
HARDWARE = ["local_ack_timeout_err", "rnr_nak_retry_err", "packet_seq_err", "implied_nak_seq_err",
            "out_of_sequence", "duplicate_request", "rx_read_requests", "rx_write_requests",
            "rx_atomic_requests", "req_transport_retries_exceeded"]
PORT = ["port_xmit_data", "port_rcv_data", "port_rcv_errors", "port_xmit_discards"]


class Tree:
    """A kernel with adapters in a folder."""

    def __init__(self, folder):
        self.root, self.value = folder, {}

    def path(self, device, port, name):
        folder = "counters" if name in PORT else "hw_counters"
        return os.path.join(self.root, "sys/class/infiniband", device, "ports", str(port), folder, name)

    def add(self, device, port=1, without=()):
        for name in HARDWARE + PORT:
            if name not in without:
                os.makedirs(os.path.dirname(self.path(device, port, name)), exist_ok=True)
                self.grow(device, 1000, name, port)

    def grow(self, device, by, name, port=1):
        path = self.path(device, port, name)
        self.value[path] = self.value.get(path, 0) + by
        # The command has the file open: it is written to, and a value does not become shorter.
        with open(path, "r+" if os.path.exists(path) else "w", encoding="ascii") as f:
            f.write("%d\n" % self.value[path])


class Watch:
    """The command, which looks every 5 ms until it is interrupted."""

    def __init__(self, tree, *args):
        self.run = subprocess.Popen([BUSBAR, "trace", "--counters", "--json", "--interval", "5", "--root",
                                     tree.root, *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                    text=True)
        self.lines = []
        self.watching = self.line()["watching"]

    def line(self):
        text = self.run.stdout.readline()
        assert text, self.run.stderr.read()
        self.lines.append(json.loads(text))
        return self.lines[-1]

    def end(self, status, interrupt=True):
        if interrupt:
            self.run.send_signal(signal.SIGINT)
        out, err = self.run.communicate(timeout=LIMIT_S)
        assert self.run.returncode == status, (self.run.returncode, out, err)
        last = json.loads(out.splitlines()[-1])
        assert last["status"] == status
        return last["adapters"], err


def judged(tmp, kind, status, *steps, without=()):
    """Steps are dictionaries of growth; each is seen in a line before the next."""
    tree = Tree(os.path.join(tmp, kind + str(len(steps)) + "".join(without)))
    tree.add("mlx5_0", without=without)
    w = Watch(tree)
    for step in steps:
        for name, by in step.items():
            tree.grow("mlx5_0", by, name)
        w.line()
    adapters, err = w.end(status)
    assert [a["verdict"] for a in adapters] == [kind], adapters
    assert adapters[0]["suspected"] == (status == 1)
    for step in steps:
        for name, by in step.items():
            assert adapters[0]["counters"][name] == by, adapters
    return adapters[0], err


def each_kind(tmp):
    found, _ = judged(tmp, "damming", 1, {"rnr_nak_retry_err": 1}, {"local_ack_timeout_err": 2})
    assert found["stalls"] == 2 and "timeouts came behind RNR NAKs" in found["sentence"], found
    assert "Pin the memory" in found["advice"] and found["confidence"] in ("low", "medium"), found
    judged(tmp, "read_flood", 1, {"duplicate_request": 4000, "rx_read_requests": 4100})
    judged(tmp, "write_amplification", 1,
           {"rnr_nak_retry_err": 24, "duplicate_request": 1200, "rx_write_requests": 96})
    judged(tmp, "timeout", 1, {"local_ack_timeout_err": 1})
    judged(tmp, "loss", 0, {"packet_seq_err": 3}, {"local_ack_timeout_err": 1})
    judged(tmp, "receiver_not_ready", 0, {"rnr_nak_retry_err": 1})


def a_missing_counter_is_named(tmp):
    found, err = judged(tmp, "loss", 3, {"out_of_sequence": 1},
                        without=("local_ack_timeout_err", "rx_atomic_requests"))
    assert found["missing"] == "local_ack_timeout_err rx_atomic_requests", found
    assert found["not_judged"] == ["damming", "timeout"], found
    assert err.count("mlx5_0 port 1 has no counter local_ack_timeout_err rx_atomic_requests") == 1, err
    assert "packet damming is not judged: without a counter of timeouts" in err, err


def ports_and_devices(tmp):
    tree = Tree(os.path.join(tmp, "ports"))
    for device, port in (("mlx5_0", 1), ("mlx5_0", 2), ("mlx5_10", 1), ("mlx5_2", 1)):
        tree.add(device, port)
    w = Watch(tree)
    assert w.watching == ["mlx5_0 port 1", "mlx5_0 port 2", "mlx5_2 port 1", "mlx5_10 port 1"], w.watching
    tree.grow("mlx5_2", 1, "local_ack_timeout_err")
    assert w.line()["adapter"] == "mlx5_2 port 1"
    adapters, _ = w.end(1)
    assert [a["verdict"] for a in adapters] == ["none", "none", "timeout", "none"], adapters
    w = Watch(tree, "mlx5_0:2", "mlx5_10")
    assert w.watching == ["mlx5_0 port 2", "mlx5_10 port 1"], w.watching
    w.end(0)
    # A port that was asked for is that of its device alone, also if it is not found below the folder.
    w = Watch(tree, "soft0:1", "mlx5_0")
    assert w.watching == ["soft0", "mlx5_0 port 1", "mlx5_0 port 2"], w.watching
    w.end(0)


def a_folder_of_somebody_else(tmp):
    """Names that steer a terminal or are no text, and files that would block."""
    tree = Tree(os.path.join(tmp, "strange"))
    tree.add("mlx5\x1b[31m", without=("rnr_nak_retry_err",))
    os.mkfifo(tree.path("mlx5\x1b[31m", 1, "rnr_nak_retry_err"))
    os.makedirs(os.fsencode(tree.root) + b"/sys/class/infiniband/\xff/ports/1")
    w = Watch(tree)
    assert w.watching == ["mlx5?[31m port 1", "? port 1"], w.watching
    w.end(3)


def it_ends_by_itself(tmp):
    tree = Tree(os.path.join(tmp, "count"))
    tree.add("mlx5_0")
    adapters, _ = Watch(tree, "--count", "3").end(0, interrupt=False)
    assert adapters[0]["intervals"] == {} and adapters[0]["sentence"] == "Nothing found.", adapters
    # A value that somebody resets is not taken for a huge growth.
    w = Watch(tree)
    tree.grow("mlx5_0", -5, "local_ack_timeout_err")
    tree.grow("mlx5_0", 1, "port_rcv_errors")
    w.line()
    adapters, _ = w.end(0)
    assert adapters[0]["counters"] == {"port_rcv_errors": 1}, adapters
    # An adapter whose counters can no longer be read.
    w = Watch(tree)
    with open(tree.path("mlx5_0", 1, "packet_seq_err"), "w", encoding="ascii"):
        pass
    adapters, err = w.end(3, interrupt=False)
    assert adapters[0]["ended"] and "cannot be read any more" in err, (adapters, err)


def usage(tmp):
    def run(*args):
        return subprocess.run([BUSBAR, "trace", *args], capture_output=True, text=True, timeout=LIMIT_S,
                              check=False)
    for args, status, text in (
            (("--counters", "--root", tmp), 3, "no RDMA device below"),
            (("--counters", "--root", tmp, "mlx5_9"), 3, "there is no RDMA device mlx5_9 below"),
            (("--counters", "--root", tmp, "mlx5_9:x"), 3, "'x' is not the number of a port"),
            (("--counters", "--root", tmp, "../../x"), 3, "there is no RDMA device"),
            (("--counters", "--interval", "0"), 2, "--interval 0: expected a whole number from 1 to 3600000"),
            (("--counters", "--flow", "1"), 2, "--counters sees no packets"),
            (("--interval", "5", "x"), 2, "go with --counters")):
        done = run(*args)
        assert done.returncode == status and text in done.stderr, (args, done)
    tree = Tree(os.path.join(tmp, "text"))
    tree.add("mlx5_0")
    done = run("--counters", "--root", tree.root, "--count", "1", "--interval", "1")
    assert "watching mlx5_0 port 1 every 1 ms" in done.stdout and "nothing found" in done.stdout, done


with tempfile.TemporaryDirectory() as folder:
    each_kind(folder)
    a_missing_counter_is_named(folder)
    ports_and_devices(folder)
    a_folder_of_somebody_else(folder)
    it_ends_by_itself(folder)
    usage(folder)
