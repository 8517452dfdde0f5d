# SPDX-License-Identifier: BSD-2-Clause
"""Debian's chromium without a window, by its debugging protocol over a pipe: no packages, no
port. One page.

Environment: CHROMIUM, the program, if it has another name.
"""
import base64
import json
import os
import select
import shutil
import signal
import subprocess
import time

FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
         "--disable-background-networking", "--disable-component-update", "--disable-sync",
         "--disable-extensions", "--disable-default-apps", "--disable-dev-shm-usage",
         "--mute-audio", "--force-color-profile=srgb", "--remote-debugging-pipe"]


def program():
    """NULL where there is none."""
    return shutil.which(os.environ.get("CHROMIUM", "chromium"))


class Browser:
    def __init__(self, folder, width=1280, height=860, dark=False, scale=1):
        ours_in, theirs_out = os.pipe()
        theirs_in, ours_out = os.pipe()

        def pipes():
            # 3: commands, 4: answers; not through the numbers of each other.
            a, b = os.dup(theirs_in), os.dup(theirs_out)
            os.dup2(a, 3)
            os.dup2(b, 4)

        self.process = subprocess.Popen(
            [program(), *FLAGS, "--user-data-dir=" + os.path.join(folder, "profile"), "about:blank"],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            preexec_fn=pipes, close_fds=False, start_new_session=True)
        os.close(theirs_in)
        os.close(theirs_out)
        self.input, self.output, self.buffer = ours_in, ours_out, b""
        self.number, self.session, self.events = 0, None, []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self.call(domain + ".enable")
        self.look(width, height, dark, scale)

    def look(self, width, height, dark=False, scale=1):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height,
                  deviceScaleFactor=scale, mobile=width < 600)
        self.call("Emulation.setEmulatedMedia", features=[
            {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])

    def message(self, end):
        while b"\0" not in self.buffer:
            ready, _, _ = select.select([self.input], [], [], max(0, end - time.monotonic()))
            data = os.read(self.input, 1 << 20) if ready else b""
            if not data:
                raise AssertionError("the browser answers")
            self.buffer += data
        text, self.buffer = self.buffer.split(b"\0", 1)
        return json.loads(text)

    def call(self, method, seconds=30, **params):
        self.number += 1
        m = {"id": self.number, "method": method, "params": params}
        if self.session:
            m["sessionId"] = self.session
        os.write(self.output, json.dumps(m).encode() + b"\0")
        end = time.monotonic() + seconds
        while True:
            answer = self.message(end)
            if answer.get("id") == self.number:
                if "error" in answer:
                    raise AssertionError("%s: %s" % (method, answer["error"]))
                return answer["result"]
            self.events.append(answer)

    def go(self, url):
        self.call("Page.navigate", url=url)

    def js(self, text):
        r = self.call("Runtime.evaluate", expression=text, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in r:
            raise AssertionError("%s: %s" % (text, r["exceptionDetails"].get("exception", {}).get("description")))
        return r["result"].get("value")

    def until(self, text, what, seconds=20):
        """Waits until an expression is true."""
        end = time.monotonic() + seconds
        while True:
            try:
                good = self.js("!!(" + text + ")")
            except AssertionError as e: # of a page that is not loaded yet
                good, why = False, e
            else:
                why = None
            if good:
                return
            if time.monotonic() > end:
                raise AssertionError("%s: %s\n%s" % (what, why or "not so", self.complaints()))
            time.sleep(0.03)

    def complaints(self):
        """Errors of scripts, refused files, and what a page writes to its console as an error."""
        found = []
        for e in self.events:
            if e.get("method") == "Runtime.exceptionThrown":
                found.append(e["params"]["exceptionDetails"].get("exception", {}).get("description", "?"))
            if e.get("method") == "Log.entryAdded" and e["params"]["entry"]["level"] == "error":
                found.append("%(source)s: %(text)s" % e["params"]["entry"])
        return found

    def picture(self, file):
        data = self.call("Page.captureScreenshot", format="png")["data"]
        with open(file, "wb") as f:
            f.write(base64.b64decode(data))

    def end(self):
        try:
            self.session = None
            self.call("Browser.close", seconds=5)
            self.process.wait(5)
        except (AssertionError, OSError, subprocess.TimeoutExpired):
            pass
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.process.wait()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.end()
