#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The page of `busbar trace --page` in chromium: it fits a narrow screen, no text covers another, it
follows the light or dark scheme, and the browser has nothing to complain about.

usage: trace.py FIXTURE; environment: BUSBAR, CHROMIUM. Exit status 77: no chromium.
"""
import os
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from browser import Browser, program # noqa: E402

if not program():
    print("skipped: there is no chromium")
    sys.exit(77)

FIXTURE, BUSBAR = sys.argv[1], os.environ["BUSBAR"]

# Pairs of texts of a drawing whose boxes share more than a pixel, and texts that leave the drawing.
COVERED = """(() => {
	const found = [];
	for (const svg of document.querySelectorAll('svg')) {
		const frame = svg.getBoundingClientRect();
		const all = [...svg.querySelectorAll('text')].map(e => [e.textContent, e.getBoundingClientRect()]);
		all.forEach(([text, a], i) => {
			if (a.left < frame.left - 1 || a.right > frame.right + 1 || a.bottom > frame.bottom + 1)
				found.push(text + ' leaves the drawing');
			for (const [other, b] of all.slice(i + 1))
				if (Math.min(a.right, b.right) - Math.max(a.left, b.left) > 1 &&
				    Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 1.5)
					found.push(text + ' covers ' + other);
		});
	}
	return found;
})()"""


def page(folder, name, link):
    capture, html = os.path.join(folder, name), os.path.join(folder, name + link + ".html")
    with open(capture, "wb") as f:
        subprocess.run([FIXTURE, name, link, "pcap"], stdout=f, check=True)
    subprocess.run([BUSBAR, "trace", "--page", html, capture], stdout=subprocess.DEVNULL, check=False)
    return html


def look(browser, html):
    browser.go("file://" + html)
    browser.until("document.readyState === 'complete' && document.querySelector('svg')", html)
    for width, dark in ((390, False), (1280, True)):
        browser.look(width, 860, dark)
        browser.until("innerWidth === %d" % width, "the screen is that wide")
        assert browser.js("document.documentElement.scrollWidth") <= width, (html, width)
        covered = browser.js(COVERED)
        assert not covered, (html, width, covered[:10])
        colours = browser.js("[getComputedStyle(document.body).backgroundColor,"
                             " getComputedStyle(document.querySelector('svg text')).fill]")
        light = [sum(int(v) for v in c[4:-1].split(",")) > 384 for c in colours]
        assert light == ([False, True] if dark else [True, False]), (colours, dark)


with tempfile.TemporaryDirectory() as tmp:
    pages = [page(tmp, name, link) for name, link in (
        ("fig5.3", "197"), ("fig5.3-client", "1"), ("fig6.2", "113"), ("read-flood", "247"),
        ("write-amplification", "1"), ("wrong-lid", "197"), ("psn-wrap", "101"), ("long-reads", "197"))]
    with Browser(tmp, 390, 860) as b:
        for path in pages:
            look(b, path)
        assert not b.complaints(), b.complaints()
