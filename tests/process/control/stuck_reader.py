#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Nobody reads what a gateway prints: it obeys all the same, and ends.

Environment: BUSBAR, the program. Exit status 0: good, 1: not.
"""
import concurrent.futures
import fcntl
import json
import os
import socket
import subprocess
import sys
import tempfile
import time

from gateway_process import BUSBAR, check

CONFIG = """
nodes = {
	sig = { type = "signal"; signal = "counter"; rate = 1000; values = 2;
		in = { hooks = ( %s ); }; };
	end = { type = "loopback"; };
};
paths = ( { in = "sig"; out = "end"; hooks = ( %s ); }, { in = "end"; } );
stats = 100.0; hugepages = 0; control = "%s";
"""
PIPE_SIZE = 4096


class Run:
    """One whose standard output and error go to pipes that are not read."""

    def __init__(self, folder, hooks, *options, path_hooks="",
                 err_size=PIPE_SIZE):
        control = os.path.join(folder, "control")
        config = os.path.join(folder, "config")
        if os.path.exists(control):
            os.unlink(control)
        with open(config, "w") as f:
            f.write(CONFIG % (hooks, path_hooks, control))
        self.out, out = self.pipe(PIPE_SIZE)
        self.err, err = self.pipe(err_size)
        self.process = subprocess.Popen([BUSBAR, "run", *options, config],
                                        stdout=out, stderr=err)
        os.close(out)
        os.close(err)
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(60)
        end = time.monotonic() + 60
        while True:
            try:
                self.socket.connect(control)
                break
            except OSError:
                check(self.process.poll() is None and time.monotonic() < end,
                      "starts")
                time.sleep(0.01)
        self.file = self.socket.makefile()

    @staticmethod
    def pipe(size):
        fds = os.pipe()
        fcntl.fcntl(fds[1], fcntl.F_SETPIPE_SZ, size)
        return fds

    def ask(self, path, method="POST"):
        self.socket.sendall(
            json.dumps({"path": path, "method": method}).encode() + b"\n")
        answer = json.loads(self.file.readline())
        check(answer["status"] == 200, "%s: %s" % (path, answer))
        return answer["body"]

    def talk(self):
        """Log lines for more than the pipe takes."""
        for _ in range(PIPE_SIZE // 40):
            self.ask("/node/sig/pause")
            self.ask("/node/sig/resume")

    def read(self, fd, what):
        """Until it has come; all that has."""
        text = b""
        while what not in text:
            piece = os.read(fd, 65536)
            check(piece, "no '%s' in %s" % (what, text))
            text += piece
        return text

    def wait_until_waiting(self):
        """The path has begun and takes no further sample for a second."""
        before, since = 0, time.monotonic()
        end = since + 60
        while not before or time.monotonic() - since < 1:
            stats = self.ask("/path/0/stats", "GET")["stats"]
            if stats["samples"] != before:
                before, since = stats["samples"], time.monotonic()
            check(time.monotonic() < end, "the path waits")
            time.sleep(0.02)

    def end(self, said=None):
        status = self.process.wait(30)
        check(status == 0, "ends with %d" % status)
        if said:
            self.read(self.err, said)
        self.drop()

    def drop(self):
        self.process.kill()
        self.process.wait()
        self.socket.close()
        for fd in (self.out, self.err):
            os.close(fd)


def commands_and_shutdown(folder, hooks):
    run = Run(folder, hooks)
    try:
        run.talk()
        run.ask("/status", "GET")
        run.ask("/shutdown")
    except BaseException:
        run.drop()
        raise
    run.end()


def a_path_that_waits(folder, hook, said, how):
    """What a hook of the path prints has filled the pipe: the path waits."""
    run = Run(folder, "", path_hooks=hook, err_size=1 << 20)
    try:
        run.wait_until_waiting()
        how(run)
    except BaseException:
        run.drop()
        raise
    run.end(said)


def shutdown(run):
    run.ask("/shutdown")


def terminate(run):
    run.process.terminate()


def stop_and_shutdown(run):
    """A part is stopped first, and started; nobody reads as before."""
    run.ask("/path/0/stop")
    run.ask("/path/0/start")
    run.ask("/node/sig/stop")
    run.ask("/node/sig/start")
    run.ask("/shutdown")


def the_time_is_over(folder):
    run = Run(folder, '{ type = "dump"; }, { type = "stats"; warmup = 10; }',
              "-t", "3")
    try:
        run.talk()
    except (OSError, ValueError, AssertionError) as e:
        # It may be over while we talk: no answer, or 503.
        if isinstance(e, AssertionError) and "503" not in str(e):
            raise
    run.end()


def a_reader_that_comes_back(folder):
    run = Run(folder, '{ type = "stats"; format = "json"; warmup = 10; }')
    try:
        run.talk()
        got = os.read(run.err, PIPE_SIZE)
        check(b" lines are left out" not in got, "not yet")
        run.ask("/node/sig/pause")
        run.read(run.err, b" lines are left out here: nobody read them\n")
        # No printout is torn.
        text = b""
        while text.count(b"\n") < 20:
            text += os.read(run.out, 65536)
        for line in text.split(b"\n")[:-1]:
            check(json.loads(line)["node"] == "sig", "%s is whole" % line)
        run.ask("/shutdown")
    except BaseException:
        run.drop()
        raise
    run.end()


def a_script_that_prints(folder):
    script = os.path.join(folder, "script.lua")
    with open(script, "w") as f:
        f.write("function process(smp) print(smp.sequence) end\n")
    commands_and_shutdown(folder, '{ type = "lua"; script = "%s"; }' % script)


def main():
    left_out = b" samples were left out, nobody read them"
    runs = [(commands_and_shutdown, hooks) for hooks in
            ("", '{ type = "stats"; warmup = 10; }', '{ type = "dump"; }', '"print"')]
    runs += [(a_path_that_waits, '"print"', left_out, how)
             for how in (shutdown, terminate, stop_and_shutdown)]
    runs += [(the_time_is_over,), (a_reader_that_comes_back,)]
    if os.path.exists(os.path.join(os.path.dirname(BUSBAR), "lib", "modules",
                                   "hook_lua.so")):
        runs.append((a_script_that_prints,))

    def one(run):
        with tempfile.TemporaryDirectory() as folder:
            run[0](folder, *run[1:])

    # Most of their time they wait.
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        list(pool.map(one, runs))


if __name__ == "__main__":
    try:
        main()
    except Exception as e:
        print("failed: %s: %s" % (type(e).__name__, e))
        sys.exit(1)
