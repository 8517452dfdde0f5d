#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The page of `busbar trace --page` in chromium: it fits a narrow screen, no text covers another, it
follows the light or dark scheme, the diagram has an arrow for each packet and tells, enlarges and scales
them, and the browser has nothing to complain about.

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
	for (const svg of document.querySelectorAll('svg.plot')) {
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


DRAWN = "document.querySelector('svg.ladder') && [...document.querySelectorAll('svg.ladder')].every(s => s.querySelector('text') && Number(s.dataset.width) <= innerWidth)"


def page(folder, name, link):
    capture, html = os.path.join(folder, name), os.path.join(folder, name + link + ".html")
    with open(capture, "wb") as f:
        subprocess.run([FIXTURE, name, link, "pcap"], stdout=f, check=True)
    subprocess.run([BUSBAR, "trace", "--page", html, capture], stdout=subprocess.DEVNULL, check=False)
    return html


def look(browser, html):
    browser.go("file://" + html)
    browser.until("document.readyState === 'complete' && document.documentElement.dataset.ready", html)
    browser.js("dispatchEvent(new Event('beforeprint'))")
    browser.until(DRAWN, html)
    for width, dark in ((390, False), (1280, True)):
        browser.look(width, 860, dark)
        browser.until("innerWidth === %d && document.documentElement.dataset.theme === '%s'" % (width, "dark" if dark else "light"),
                      "the screen is that wide and that dark")
        assert browser.js("document.documentElement.scrollWidth") <= width, (html, width)
        browser.until(DRAWN, html)
        covered = browser.js(COVERED)
        assert not covered, (html, width, covered[:10])
        colours = browser.js("[getComputedStyle(document.body).backgroundColor,"
                             " getComputedStyle(document.querySelector('svg.plot text.row')).fill]")
        light = [sum(int(v) for v in c[4:-1].split(",")) > 384 for c in colours]
        assert light == ([False, True] if dark else [True, False]), (colours, dark)


def a_diagram_follows_the_reader(b, html):
    """Eight packets: the fifth got lost, the second begins a pending period."""
    b.look(1280, 860)
    b.go("file://" + html)
    b.until("document.documentElement.dataset.ready", html)
    b.js("dispatchEvent(new Event('beforeprint'))")
    b.until(DRAWN, html)
    b.js("window.ladder = document.querySelector('svg.ladder'); ladder.scrollIntoView({block: 'center'}); ladder.focus({preventScroll: true})")
    count = "document.querySelectorAll('svg.ladder .packet').length"
    assert b.js(count) == 8 and b.js("ladder.querySelectorAll('.gone').length") == 1 and b.js("ladder.querySelectorAll('.pending').length") == 2
    assert "Packet 5: READ request PSN 2 at 0.003970 s, LOST" in b.js("ladder.getAttribute('aria-label')")
    tip = "ladder.parentNode.querySelector('.tip').textContent"
    for _ in range(5):
        for kind in ("keyDown", "keyUp"):
            b.call("Input.dispatchKeyEvent", type=kind, key="ArrowDown")
    b.until(tip + ".includes('Packet 5')", "the fifth packet is told")
    assert "LOST" in b.js(tip) and "behind packet 4" in b.js(tip), b.js(tip)
    # A closer look by dragging over some packets, and back.
    box = b.js("(r => [r.left, r.top, r.width, r.height])(ladder.getBoundingClientRect())")
    for kind, at in (("mousePressed", 0.15), ("mouseMoved", 0.5), ("mouseReleased", 0.5)):
        b.call("Input.dispatchMouseEvent", type=kind, x=box[0] + box[2] / 2, y=box[1] + at * box[3], button="left", buttons=1, clickCount=1)
    b.until("1 < %s && %s < 8" % (count, count), "dragging shows some packets")
    b.js("[...document.querySelectorAll('.under button')].find(e => e.textContent === 'All packets').click()")
    assert b.js(count) == 8
    # To scale: the stall of half a second takes nearly all of the height.
    b.js("(s => { s.selectedIndex = 1; s.dispatchEvent(new Event('change')); })(document.querySelector('.choices select'))")
    b.until(DRAWN, "the diagram to scale is drawn")
    gap = b.js("(r => r[6].top - r[5].top)([...document.querySelectorAll('svg.ladder .packet')].map(e => e.getBoundingClientRect()))")
    assert gap > 500 and not b.js(COVERED), gap


with tempfile.TemporaryDirectory() as tmp:
    pages = [page(tmp, name, link) for name, link in (
        ("fig5.3", "197"), ("fig5.3-client", "1"), ("fig6.2", "113"), ("read-flood", "247"),
        ("write-amplification", "1"), ("wrong-lid", "197"), ("psn-wrap", "101"), ("long-reads", "197"))]
    with Browser(tmp, 390, 860) as b:
        for path in pages:
            look(b, path)
        a_diagram_follows_the_reader(b, pages[0])
        assert not b.complaints(), b.complaints()
