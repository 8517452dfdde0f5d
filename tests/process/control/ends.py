#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""A gateway ends within two seconds of SIGTERM, whatever its parts do, and says which
of them did not end.

Environment: BUSBAR, the program. Exit status 0: good, 1: not.
"""
import os
import resource
import signal
import sys
import tempfile
import time

from gateway_process import BUSBAR, Gateway, Gateways, check

# Two seconds, and the time that a busy machine takes to run anything at all.
# A thread that is left behind is no leak here.
os.environ["TSAN_OPTIONS"] = os.environ.get("TSAN_OPTIONS", "") + " report_thread_leaks=0"

LIMIT = 2.0 + 6.0
STUCK = 4
LOST = 3  # what a hook could not print, or a script held on to
CONFIG = """
nodes = {
	sig = { type = "signal"; signal = "counter"; rate = 1000; values = 1; };
	end = { type = "loopback"; };
	other = { type = "signal"; signal = "counter"; rate = 1000; values = 1; };
	kept = { type = "file"; uri = "%s/kept"; };
};
paths = ( { in = "sig"; out = "end"; hooks = ( %s ); }, { in = "end"; },
	{ in = "other"; out = "kept"; } );
"""


def has(module):
    return os.path.exists(os.path.join(os.path.dirname(BUSBAR), "lib", "modules",
                                       module + ".so"))


class Run:
    def __init__(self, folder, hooks=""):
        self.folder = folder
        self.gateway = Gateway(folder, "ends", CONFIG % (folder, hooks))

    def __enter__(self):
        return self

    def __exit__(self, kind, value, trace):
        if kind:
            self.gateway.give_up()
        self.gateway.process.kill()
        self.gateway.process.wait()

    def terminate(self, status, *said):
        g = self.gateway
        begin = time.monotonic()
        g.process.terminate()
        got = g.process.wait(60)
        took = time.monotonic() - begin
        with open(g.log) as f:
            log = f.read()
        check(got == status, "status %d, expected %d" % (got, status))
        check(took < LIMIT, "it took %.2f s" % took)
        for text in said:
            check(text in log, "no '%s' in the log" % text)

    def script(self, text):
        path = os.path.join(self.folder, "script.lua")
        with open(path, "w") as f:
            f.write(text)
        return '{ type = "lua"; script = "%s"; }' % path

    def wait_stuck(self, mark):
        end = time.monotonic() + 40
        while not os.path.exists(mark):
            check(time.monotonic() < end, "the script runs")
            time.sleep(0.005)

    def kept(self):
        with open(os.path.join(self.folder, "kept")) as f:
            return sum(1 for line in f if not line.startswith("#"))


def fifo(folder):
    path = os.path.join(folder, "fifo")
    if not os.path.exists(path):
        os.mkfifo(path)
    return path


def a_reload_does_not_wait_for_the_reader_of_a_fifo(folder):
    with Run(folder) as run:
        g = run.gateway
        hooks = '{ type = "print"; output = "%s"; }' % fifo(folder)
        if has("hook_digest"):
            hooks += ', { type = "digest"; uri = "%s"; }' % fifo(folder)
        g.write(CONFIG % (folder, hooks))
        report = g.ask("/reload", "POST")
        check("path sig -> end" in report["started"], "started is %s" % report)
        g.wait_for_more(20, after="the reload")
        run.terminate(LOST)


def the_reader_of_a_fifo_may_come_late(folder):
    hook = '{ type = "print"; output = "%s"; }' % fifo(folder)
    with Run(folder, hook) as run:
        run.gateway.wait_for_more(20)
        with open(fifo(folder)) as f:
            for _ in range(10):
                check("(" in f.readline(), "a sample is printed")
        run.terminate(LOST)


def a_gateway_with_few_descriptors_is_asked_and_ends(folder):
    with Run(folder) as run:
        g = run.gateway
        few = g.descriptors() + 1
        resource.prlimit(g.process.pid, resource.RLIMIT_NOFILE, (few, few))
        for _ in range(3):
            g.ask("/node/sig")
        run.terminate(0)


def a_script_that_catches_all_errors_ends(folder):
    with Run(folder) as run:
        mark = os.path.join(folder, "mark")
        hook = run.script("function process(smp) io.open('%s', 'w'):close()\n"
                          "while true do pcall(function() end) end end" % mark)
        run.gateway.write(CONFIG % (folder, hook))
        run.gateway.ask("/reload", "POST")
        run.wait_stuck(mark)
        run.terminate(LOST)


def what_does_not_end_is_named_and_the_rest_is_stored(folder):
    with Run(folder) as run:
        mark = os.path.join(folder, "mark2")
        # No error and no signal brings it out of there.
        hook = run.script("function process(smp) io.open('%s', 'w'):close()\n"
                          "io.open('%s', 'r') end" % (mark, fifo(folder)))
        run.gateway.write(CONFIG % (folder, hook))
        run.gateway.ask("/reload", "POST")
        run.wait_stuck(mark)
        run.gateway.wait_for_more(20, 2)
        forwarded = run.gateway.arrived(2)
        run.terminate(STUCK, "path sig -> end: a thread of it does not end",
                      "or one of its hooks", "lua")
        check(run.kept() >= forwarded, "%d of %d samples are in the file" %
              (run.kept(), forwarded))


def a_reload_that_is_stuck_is_named(folder):
    with Run(folder) as run:
        mark = os.path.join(folder, "mark3")
        hook = run.script("function start() io.open('%s', 'w'):close()\n"
                          "io.open('%s', 'r') end" % (mark, fifo(folder)))
        run.gateway.write(CONFIG % (folder, hook))
        run.gateway.client.socket.sendall(b'{"method": "POST", "path": "/reload"}\n')
        run.wait_stuck(mark)
        run.terminate(STUCK, "busy with the start of path sig -> end")


def a_second_signal_ends_at_once(folder):
    with Run(folder) as run:
        g, mark = run.gateway, os.path.join(folder, "mark4")
        hook = run.script("function process(smp) io.open('%s', 'w'):close()\n"
                          "io.open('%s', 'r') end" % (mark, fifo(folder)))
        g.write(CONFIG % (folder, hook))
        g.ask("/reload", "POST")
        run.wait_stuck(mark)
        end = time.monotonic() + 60
        while g.process.poll() is None and time.monotonic() < end:
            g.process.terminate()
            # One that comes as soon is taken for the same: `timeout` sends two.
            time.sleep(0.3)
        check(g.process.wait(60) == -signal.SIGTERM, "ended by the second signal")


def programs_that_do_not_end_are_killed(folder):
    """Of several nodes, one of them with a long time of grace."""
    stay = ("trap '' TERM; cd {folder}; echo $$ >.{name}; mv .{name} {name};"
            " while :; do sleep 0.1; done")
    names = ["quick", "patient", "sim"]
    nodes = "".join("""
        %s = { type = "exec"; exec = "%s"; shell = true; grace = %d; };""" %
                    (name, stay.format(folder=folder, name=name), grace)
                    for name, grace in (("quick", 100), ("patient", 60000)))
    nodes += """
        sim = { type = "shmem"; exec = [ "sh", "-c", "%s" ];
            out = { name = "/busbar-shmem-ends-%d"; }; };""" % (stay.format(folder=folder, name="sim"),
                                                      os.getpid())
    paths = "".join(', { in = "more"; out = "%s"; }' % name for name in names)
    with Run(folder) as run:
        text = CONFIG % (folder, "")
        text = text.replace("};\npaths", """
            more = { type = "signal"; signal = "counter"; rate = 10; values = 1; };%s
            };\npaths""" % nodes).replace('out = "kept"; } )', 'out = "kept"; }%s )' % paths)
        run.gateway.write(text)
        run.gateway.ask("/reload", "POST")
        pids = []
        for name in names:
            run.wait_stuck(os.path.join(folder, name))
            with open(os.path.join(folder, name)) as f:
                pids.append(int(f.read()))
        run.terminate(0, "does not end, it is killed")
        for pid in pids:
            check(not os.path.exists("/proc/%d" % pid), "process %d is still there" % pid)


def nodes_that_wait_for_their_peers_stop_side_by_side(folder):
    """Each waits for a second, and the reload for little more."""
    count = 12
    nodes = "".join("""
        n%d = { type = "exec"; exec = [ "sh", "-c", "trap '' TERM; echo >%s/started%d; while :; do sleep 1; done" ];
            grace = 1000; };""" % (i, folder, i) for i in range(count))
    paths = "".join(', { in = "n%d"; }' % i for i in range(count))
    with Run(folder) as run:
        text = CONFIG % (folder, "")
        run.gateway.write(text.replace("};\npaths", nodes + "};\npaths").replace(
            'out = "kept"; } )', 'out = "kept"; }%s )' % paths))
        run.gateway.ask("/reload", "POST")
        for i in range(count):
            run.wait_stuck("%s/started%d" % (folder, i))
        run.gateway.write(text)
        begin = time.monotonic()
        report = run.gateway.ask("/reload", "POST")
        took = time.monotonic() - begin
        check(sum(name.startswith("node n") for name in report["stopped"]) == count,
              "stopped is %s" % report["stopped"])
        check(1.0 <= took < LIMIT, "the reload took %.2f s" % took)
        run.terminate(0)


def main():
    tests = [a_reload_does_not_wait_for_the_reader_of_a_fifo,
             the_reader_of_a_fifo_may_come_late,
             a_gateway_with_few_descriptors_is_asked_and_ends,
             programs_that_do_not_end_are_killed,
             nodes_that_wait_for_their_peers_stop_side_by_side]
    if has("hook_lua"):
        tests += [a_script_that_catches_all_errors_ends,
                  what_does_not_end_is_named_and_the_rest_is_stored,
                  a_reload_that_is_stuck_is_named,
                  a_second_signal_ends_at_once]
    for test in tests:
        with tempfile.TemporaryDirectory() as folder:
            print(test.__name__, flush=True)
            test(folder)


main()
