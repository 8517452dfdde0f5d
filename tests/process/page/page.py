#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The page of a gateway in chromium: what moves is seen, commands do what they say, and the
page follows the gateway when that goes and comes again.

Environment: BUSBAR, the program; CHROMIUM. Exit status 0: good, 1: not, 77: no chromium.
"""
import hashlib
import json
import os
import socket
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "http"))
from browser import Browser, program # noqa: E402
from http_gateway import Gateway, check, until # noqa: E402

if not program():
    print("skipped: there is no chromium")
    sys.exit(77)

TOKEN = "a-token_(of)_this/laboratory" # a sub-protocol must not have all of these
CONFIG = """nodes = {
	sine = { type = "signal.v2"; rate = 200;
		in = {
			signals = (
				{ name = "u"; unit = "kV"; signal = "sine"; frequency = 1.0; amplitude = 110.0; },
				{ name = "closed"; type = "boolean"; signal = "square"; }
			);
			hooks = ( { type = "stats"; warmup = 20; } );
		};
	};
	plain = { type = "signal"; signal = "sine"; rate = 500; values = 2; };
	link = { type = "loopback"; };
	lab = { type = "socket"; layer = "tcp-client"; in = { address = "127.0.0.1:0"; };
		out = { address = "127.0.0.1:1"; }; };
};
paths = ( { in = "plain"; out = ( "link", "lab" ); }, { in = "sine"; } );
stats = 0.0; hugepages = 0;
"""

# The extent of what is drawn, from the colour of the first line.
EXTENT = """(() => {
	const c = document.querySelector('.traces');
	if (!c || !c.height) return 0;
	const d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data;
	let top = c.height, bottom = 0;
	for (let i = 3; i < d.length; i += 4) if (d[i] > 100) {
		const y = Math.floor(i / 4 / c.width);
		top = Math.min(top, y); bottom = Math.max(bottom, y);
	}
	return (bottom - top) / c.height;
})()"""


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def box(name):
    return "document.querySelector('.box[data-id=\"%s\"]')" % name


def press(b, what):
    """By the keyboard: what has the focus is seen, and Enter carries it out."""
    b.until("(() => { const e = %s; if (!e) return false; e.focus(); return document.activeElement === e; })()" % what,
            "it takes the focus: " + what)
    for kind in ("keyDown", "keyUp"):
        b.call("Input.dispatchKeyEvent", type=kind, key="Enter", code="Enter", windowsVirtualKeyCode=13,
               **({"text": "\r"} if kind == "keyDown" else {}))


def choose(b, element, value):
    b.js("(() => { const e = document.getElementById('%s'); e.value = %s;"
         " e.dispatchEvent(new Event('change')); })()" % (element, json.dumps(value)))


def overview(b, g):
    b.until("document.querySelectorAll('.box.node').length === 4", "all nodes are drawn")
    b.until("document.querySelectorAll('.box.path').length === 2", "all paths are drawn")
    b.until("/\\d+\\/s/.test(%s.textContent)" % box("plain"), "rates are told")
    b.until("%s.textContent.includes('peer absent')" % box("lab"), "a lost peer is seen")
    b.until("%s.getAttribute('aria-label').includes('peer absent')" % box("lab"), "and told")


def plot(b):
    b.js("location.hash = 'signals'")
    b.until("document.querySelector('#legend b')?.textContent", "values come")
    choose(b, "plot-window", "2")
    # In JSON, as it has a boolean too; then in villas.web.
    for node in ("sine", "plain"):
        b.js("document.querySelectorAll('#picker-list .signal input:checked').forEach(e => e.click())")
        b.js("document.querySelector('[data-key=\"in/0/%s\"]').click()" % node)
        b.until(EXTENT + " > 0.6", "the sine of %s is drawn" % node)
        before = b.js("document.querySelector('#legend b').textContent")
        b.until("document.querySelector('#legend b').textContent !== %s" % json.dumps(before), "it moves")
    choose(b, "trigger-level", "0.5")
    choose(b, "trigger-mode", "single")
    b.until("document.getElementById('plot-state').textContent === 'Captured'", "the trigger comes once")
    choose(b, "trigger-mode", "off")
    b.until("document.getElementById('plot-state').textContent === 'Live'", "it is live again")
    frames = b.js("busbarPlot.frames")
    b.until("busbarPlot.frames > %d" % (frames + 10), "frames are drawn")


def export(b):
    """Lines of the file that a press of Export gives."""
    text = b.js("""(async () => {
        const make = URL.createObjectURL, click = HTMLAnchorElement.prototype.click;
        let file;
        URL.createObjectURL = f => { file = f; return make.call(URL, f); };
        HTMLAnchorElement.prototype.click = () => { };
        try { document.getElementById('plot-export').click(); return await file.text(); }
        finally { URL.createObjectURL = make; HTMLAnchorElement.prototype.click = click; }
    })()""")
    return text.splitlines()


def mouse(b, kind, at, clicks=1):
    b.call("Input.dispatchMouseEvent", type=kind, x=at[0], y=at[1], clickCount=clicks,
           button="none" if kind == "mouseMoved" else "left", buttons=1 if kind == "mousePressed" else 0)


def closer(b):
    """What stands still: values at the pointer, a part of it, all of it, as CSV."""
    b.until("document.getElementById('plot-state').textContent === 'Live'", "it moves")

    def click_until(state):
        b.js("document.getElementById('plot-pause').click()")
        b.until("document.getElementById('plot-state').textContent === '%s'" % state, "the plot is " + state)

    def stands():
        # What is seen of a machine that was late may have too few samples.
        until(lambda: len(export(b)) > 500, "a second of samples is there")
        click_until("Paused")
        if len(export(b)) > 501:
            return True
        click_until("Live")
        return False
    until(stands, "it stands with a second of samples")
    left, width, y = b.js("(() => { const r = document.querySelector('.u-over').getBoundingClientRect();"
                          " return [r.left, r.width, r.top + r.height / 2]; })()")
    mouse(b, "mouseMoved", (left + width / 2, y))
    b.until("/^at .*, (-1([.]0\\d*)?\\ss|-99.*ms)$/"
            ".test(document.getElementById('plot-time').textContent)",
            "the time at the pointer")
    lines = export(b)
    check(lines[0].startswith("time,plain/in/"), "a head: %s" % lines[0])
    rows = [[float(field) for field in line.split(",")] for line in lines[1:]]
    # Two seconds at 500 Hz, of a machine that may be late now and then.
    check(len(rows) > 500 and rows == sorted(rows), "all samples in their order: %d" % len(rows))
    check(rows[-1][0] - rows[0][0] < 2.01, "of what is seen: %s %s" % (rows[0], rows[-1]))
    check(any(row[1] > 0.9 for row in rows) and any(row[1] < -0.9 for row in rows), "with their values")
    for kind, at in (("mousePressed", 0.25), ("mouseMoved", 0.5), ("mouseReleased", 0.5)):
        mouse(b, kind, (left + width * at, y))
    part = export(b)[1:]
    check(part and lines[1:].index(part[0]) > 0, "a part of it")
    seen = float(part[-1].split(",")[0]) - float(part[0].split(",")[0])
    check(0.4 < seen < 0.6, "a quarter of it: %s s" % seen)
    for clicks in (1, 2):
        for kind in ("mousePressed", "mouseReleased"):
            mouse(b, kind, (left + width / 2, y), clicks)
    check(export(b) == lines, "all of it again")
    click_until("Live")


def command(b, g):
    b.js("location.hash = 'overview'")
    press(b, box("plain"))
    press(b, "document.querySelector('[data-verb=pause]')")
    b.until("document.querySelector('dialog[open] h2')?.textContent === 'Pause node plain?'", "it asks first")
    check(g.ask("/api/v2/node/plain").json()["state"] == "started", "nothing has happened yet")
    press(b, "document.querySelector('dialog[open] [data-yes]')")
    b.until(box("plain") + ".dataset.state === 'paused'", "the node is paused")
    check(g.ask("/api/v2/node/plain").json()["state"] == "paused", "it is")
    press(b, "document.querySelector('[data-verb=resume]')")
    b.until(box("plain") + ".dataset.state === 'started'", "it is resumed")
    path = [p for p in g.ask("/api/v2/paths").json() if p["in"] == ["sine"]][0]["uuid"]
    press(b, box(path))
    press(b, "document.querySelector('[data-verb=stop]')")
    press(b, "document.querySelector('dialog[open] [data-yes]')")
    b.until(box(path) + ".dataset.state === 'stopped'", "the path is stopped")
    press(b, "document.querySelector('[data-verb=start]')")
    b.until(box(path) + ".dataset.state === 'running'", "it is started")


def views(b, g):
    b.js("location.hash = 'delays'")
    b.until("document.querySelector('#delays-paths .histogram .bar')", "latencies of paths")
    b.until("document.querySelector('#delays-nodes .histogram .bar')", "delays of nodes")
    b.js("location.hash = 'log'")
    b.until("document.getElementById('log-lines').textContent.includes('serves requests')", "the log is there")
    b.js("location.hash = 'configuration'")
    b.until("document.getElementById('config-text').value === %s" % json.dumps(CONFIG + "http = { };"), "as it was written")
    b.js("(() => { const t = document.getElementById('config-text'); t.value = t.value.replace('type = \"loopback\"',"
         "'type = \"loopbag\"'); t.dispatchEvent(new Event('input'));"
         " document.getElementById('config-check').click(); })()")
    b.until("/line 12/.test(document.getElementById('config-problems').textContent)", "the line of the error")
    b.until("document.querySelector('#config-gutter :nth-child(12)').className === 'error'", "is marked")
    # While it is wrong nothing of it is applied, and nothing asked.
    b.js("document.getElementById('config-result').textContent = ''")
    press(b, "document.getElementById('config-apply')")
    b.until("/1 error/.test(document.getElementById('config-result').textContent)", "it is refused")
    check(not b.js("!!document.querySelector('dialog[open]')"), "no question")
    check(g.ask("/api/v2/config/text").json()["given"] is False, "nothing has changed")
    b.js("(() => { const t = document.getElementById('config-text'); t.value = t.value.replace('loopbag', 'loopback')"
         ".replace('nodes = {', 'nodes = { more = { type = \"loopback\"; };')"
         "; t.dispatchEvent(new Event('input')); })()")
    # Somebody else was faster: what he changed is not taken back without a word.
    other = g.ask("/api/v2/config/text").json()["text"] + "# other\n"
    check(g.ask("/api/v2/reload", "POST", {"text": other}).status == 200, "another one gives a text")
    press(b, "document.getElementById('config-apply')")
    b.until("/changed meanwhile/.test(document.getElementById('config-result').textContent)", "it says so")
    check(not b.js("!!document.querySelector('dialog[open]')"), "no question")
    check("more" not in [n["name"] for n in g.ask("/api/v2/nodes").json()], "nothing is applied")
    # And once more, while the question is asked.
    press(b, "document.getElementById('config-apply')")
    b.until("!!document.querySelector('dialog[open] [data-yes]')", "the question")
    check(g.ask("/api/v2/reload", "POST", {"text": other + "# more\n"}).status == 200, "the other one again")
    b.js("document.getElementById('config-result').textContent = ''")
    press(b, "document.querySelector('dialog[open] [data-yes]')")
    b.until("/changed meanwhile/.test(document.getElementById('config-result').textContent)", "it says so")
    check("more" not in [n["name"] for n in g.ask("/api/v2/nodes").json()], "nothing is applied")
    press(b, "document.getElementById('config-apply')")
    press(b, "document.querySelector('dialog[open] [data-yes]')")
    b.until("document.getElementById('config-text').value.includes('more')", "the text stays")
    b.until("document.getElementById('config-apply').disabled", "it is applied")
    b.until("!document.getElementById('config-given').hidden", "and is not the file's")
    check("more" in [n["name"] for n in g.ask("/api/v2/nodes").json()], "the node is there")
    b.until("document.getElementById('config-apply').disabled", "nothing more to apply")
    press(b, "document.getElementById('config-reload')")
    press(b, "document.querySelector('dialog[open] [data-yes]')")
    b.until("document.getElementById('config-given').hidden", "the file again")
    check("more" not in [n["name"] for n in g.ask("/api/v2/nodes").json()], "the node is gone")


def narrow(b):
    b.look(360, 760)
    for view in ("overview", "signals", "delays", "log", "configuration"):
        b.js("location.hash = '%s'" % view)
        b.until("!document.getElementById('view-%s').hidden" % view, "%s is shown" % view)
        b.until("document.documentElement.scrollWidth <= 360", "%s fits 360 pixels" % view)
    b.look(1280, 860)


def goes_and_comes(b, folder, port):
    b.until("document.getElementById('link').dataset.link === 'lost'", "it says that it is not connected")
    b.until("!document.getElementById('lost').hidden", "and tells what that means")
    with Gateway(folder, CONFIG, "http = { };", listen="127.0.0.1:%d" % port, name="again"):
        b.until("document.getElementById('link').dataset.link === 'connected'", "it connects again")
        b.until("document.getElementById('lost').hidden", "the banner goes")
        b.js("location.hash = 'signals'")
        b.until(EXTENT + " > 0.6", "samples run again")


def token(b, folder):
    digest = hashlib.sha256(TOKEN.encode()).hexdigest()
    rule = 'http = { tokens = ( { role = "watch"; sha256 = "%s"; } ); };' % digest
    with Gateway(folder, CONFIG, rule, name="tokens") as g:
        b.go("http://127.0.0.1:%d/#signals" % g.port)
        b.until("document.getElementById('token').open", "a token is asked for")
        b.js("document.getElementById('token-text').value = %s" % json.dumps(TOKEN))
        b.js("document.querySelector('#token [value=use]').click()")
        b.until("document.getElementById('link').dataset.link === 'connected'", "it is taken")
        b.until(EXTENT + " > 0.5", "and shown for samples, too")


def main():
    with tempfile.TemporaryDirectory() as folder, Browser(folder) as b:
        port = free_port()
        with Gateway(folder, CONFIG, "http = { };", listen="127.0.0.1:%d" % port) as g:
            b.go("http://127.0.0.1:%d/" % port)
            overview(b, g)
            plot(b)
            closer(b)
            command(b, g)
            views(b, g)
            narrow(b)
            # Of the text that came too late; a browser says so whatever the page does.
            wrong = [c for c in b.complaints() if "status of 409" not in c]
            check(not wrong and len(b.complaints()) == 1, "no errors: %s" % b.complaints())
        goes_and_comes(b, folder, port)
        token(b, folder)


main()
