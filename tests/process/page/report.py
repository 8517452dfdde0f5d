#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The page of `busbar report` in chromium, on a wide and a narrow screen, in light and dark: each question has
its sentence where its section begins, no label of a figure covers another one, nothing is wider than the
window, and no script fails. Then what a reader does with a figure.

report.py SUITE...: measures these suites as `busbar bench run SUITE --ci` does and looks at their reports.
Without arguments a run with invented results. Environment: BUSBAR, the program; CHROMIUM. Exit status 0: good,
1: not, 77: no chromium."""
import json
import os
import random
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "cli"))
from browser import Browser, program # noqa: E402
import report_run # noqa: E402
import subnet_json # noqa: E402

BUSBAR = os.environ["BUSBAR"]
SIZE_MAX = 1500000
LOOKS = [(1280, False), (1280, True), (390, False), (390, True)]
# Of further pages: each width and each theme once.
FEW_LOOKS = LOOKS[::3]

# Names of what is wrong with the page; empty: nothing. Labels that overlap by less than two pixels touch.
FAULTS = """(() => {
	const faults = [], shown = e => e.getClientRects().length > 0;
	for (const q of document.querySelectorAll('section.question')) {
		const sentence = q.querySelector('.sentence'), name = q.querySelector('h2').textContent;
		if (!sentence || sentence.textContent.length < 10) faults.push('no sentence: ' + name);
		else if (sentence.getBoundingClientRect().top - q.getBoundingClientRect().top > innerHeight * 0.5)
			faults.push('the sentence is not in the first screen: ' + name);
	}
	for (const svg of document.querySelectorAll('figure svg.plot')) {
		if (!shown(svg)) continue;
		const what = svg.closest('figure').querySelector('figcaption').textContent;
		const boxes = [...svg.querySelectorAll('text')].map(t => [t.textContent, t.getBoundingClientRect()]);
		const frame = svg.getBoundingClientRect();
		if (!boxes.length) faults.push('a figure without labels: ' + what);
		boxes.forEach(([a, x], i) => {
			if (x.left < frame.left - 2 || x.right > frame.right + 2) faults.push(`${what}: "${a}" is cut off`);
			for (const [b, y] of boxes.slice(i + 1))
				if (Math.min(x.right, y.right) - Math.max(x.left, y.left) > 2 && Math.min(x.bottom, y.bottom) - Math.max(x.top, y.top) > 2)
					faults.push(`${what}: "${a}" covers "${b}"`);
		});
		for (const e of svg.querySelectorAll('path, rect, circle, line, polygon')) {
			const box = e.getBoundingClientRect();
			if (!e.closest('clipPath') && (box.left < frame.left - 2 || box.right > frame.right + 2))
				faults.push(`${what}: a mark passes the border, ${e.getAttribute('class')}`);
		}
		if (/NaN|undefined|Infinity/.test(svg.outerHTML)) faults.push('not a number in ' + what);
	}
	const words = document.querySelector('main').innerText.match(/.{0,30}(NaN|undefined|Infinity|\\[object).{0,30}/);
	if (words) faults.push('text: ' + words[0]);
	if (document.documentElement.scrollWidth > innerWidth) faults.push('wider than the window: ' + document.documentElement.scrollWidth);
	return faults;
})()"""


def report(*args):
    out = subprocess.run([BUSBAR, "report", *args], check=True, capture_output=True, text=True, timeout=60).stdout
    return out


def open_page(b, page):
    b.go("file://" + page)
    b.until("document.documentElement.dataset.ready && document.querySelector('.question')", "the page is there")
    # Sections are made when they come near the window, and before the page is printed.
    b.js("dispatchEvent(new Event('beforeprint'))")
    wait_for_figures(b)


def wait_for_figures(b):
    b.until("[...document.querySelectorAll('figure svg.plot')].every(s => !s.getClientRects().length || s.querySelector('text'))",
            "all figures are drawn")


def open_all(b):
    """All that is folded, and wait until all figures are drawn."""
    b.js("document.getElementById('open').click()")
    wait_for_figures(b)


def look_at(b, page, figures, looks=LOOKS):
    assert os.path.getsize(page) < SIZE_MAX, "%s has %d bytes" % (page, os.path.getsize(page))
    for width, dark in looks:
        b.look(width, 860, dark)
        open_page(b, page)
        found = b.js(FAULTS)
        assert not found, (page, width, dark, found[:10])
        theme = b.js("document.documentElement.dataset.theme")
        assert theme == ("dark" if dark else "light"), theme
        # Colours change no box: what is folded is looked at once for each width.
        if (width < 600) != dark:
            continue
        open_all(b)
        found = b.js(FAULTS)
        assert not found, (page, width, dark, found[:10])
        count = b.js("document.querySelectorAll('figure svg.plot').length")
        assert count >= figures, (page, count)
        # What is written to the console as an error, whatever the width.
        assert not b.complaints(), b.complaints()


def key(b, name, text=None):
    for kind in ("keyDown", "keyUp"):
        b.call("Input.dispatchKeyEvent", type=kind, key=name, **({"text": text} if text and kind == "keyDown" else {}))


def a_figure_follows_the_reader(b, page):
    b.look(1280, 860)
    open_page(b, page)
    b.js("document.querySelector('.question:nth-of-type(2)')?.scrollIntoView()")
    b.until("[...document.querySelectorAll('figure svg.plot')].some(s => s.closest('.chart').querySelectorAll('.legend button').length > 1)",
            "a figure with several curves is drawn")
    b.js("""window.chart = [...document.querySelectorAll('.chart')].find(c => c.querySelectorAll('.legend button').length > 1);
        window.plot = chart.querySelector('svg.plot'); plot.scrollIntoView({block: 'center'}); plot.focus({preventScroll: true})""")
    # The keys step through the points and tell them.
    key(b, "ArrowRight")
    b.until("!chart.querySelector('.tip').hidden && /median|[0-9]/.test(chart.querySelector('.tip').textContent)", "an arrow key tells a point")
    first = b.js("chart.querySelector('.tip').textContent")
    key(b, "ArrowRight")
    b.until("chart.querySelector('.tip').textContent !== %r" % first, "the next one tells the next point")
    # A closer look by dragging, and back.
    box = b.js("(r => [r.left, r.top, r.width, r.height])(plot.getBoundingClientRect())")
    for kind, at in (("mousePressed", 0.4), ("mouseMoved", 0.6), ("mouseReleased", 0.6)):
        b.call("Input.dispatchMouseEvent", type=kind, x=box[0] + at * box[2], y=box[1] + box[3] / 2, button="left",
               buttons=1, clickCount=1)
    b.until("!chart.querySelector('.under button').hidden", "dragging shows a part of the axis")
    key(b, "0", "0")
    b.until("chart.querySelector('.under button').hidden", "0 shows the whole axis again")
    # A curve that is not chosen is not drawn.
    before = b.js("plot.querySelectorAll('g > *').length")
    b.js("chart.querySelector('.legend button').click()")
    b.until("plot.querySelectorAll('g > *').length < %d" % before, "a curve can be taken away")
    # What is saved is a whole picture.
    saved = b.js("""(what => { const t = busbarFigure(what), d = new DOMParser().parseFromString(t, 'image/svg+xml');
        return [d.querySelector('parsererror') === null, t.includes('prefers-color-scheme'), d.querySelectorAll('text').length]; })
        (chart.closest('figure').querySelector('figcaption').textContent)""")
    assert saved[0] and saved[1] and saved[2] > 3, saved


def a_recording(folder):
    path = os.path.join(folder, "plant.csv")
    with open(path, "w", encoding="utf-8") as f:
        f.write("# secs,nsecs,offset,sequence,voltage[V],current[A]\n")
        for i in range(3000):
            if i != 500:
                f.write(f"1700000000,{i * 100000:09d},{2e-5 + i % 97 * 1e-7:.9f},{i},{i % 50},{i % 7 - 3}\n")
    return path


def pair(folder, name, factor, disturbance=None):
    """A run of two cases, of which "second" takes `factor` times as long."""
    run, rng = report_run.Run(os.path.join(folder, name), machine=False), random.Random(2)
    for label, median in (("first", 1000), ("second", 1000 * factor)):
        run.case("P_" + label, {"kind": "hca", "scenario": "P", "label": label, "question": "Which one is faster?",
                                "parameters": {"way": label}}, {"t_lat": ("one-way latency", report_run.latencies(rng, median, 2000))})
        if disturbance:
            where = os.path.join("cases", "P_" + label)
            with open(os.path.join(run.folder, where, "summary.json"), encoding="utf-8") as f:
                run.write(where, "summary.json", {**json.load(f), "disturbance": disturbance})
    return run.folder


def a_known_truth_is_answered(b, tmp):
    """What is twice as long is said to be so, what is alike is not told apart, and nothing is decided where other
    programs had the processors."""
    for name, factor, disturbance, sentence, why in (
            ("slower", 2, None, "first is the fastest: 1", "do not overlap"),
            ("alike", 1, None, "No difference is shown between", "overlap: no difference is shown"),
            ("busy", 2, {"stolen_percent": 0, "others_percent": 40.0}, "In this run: first is", "Not decidable: other programs used 40"),
            ("stolen", 2, {"stolen_percent": 12.0, "others_percent": None}, "In this run: first is", "took the processors away 12"),
            ("calm", 2, {"stolen_percent": 1.0, "others_percent": 3.0}, "first is the fastest: 1", "do not overlap")):
        page = os.path.join(tmp, name + ".html")
        report(pair(tmp, name, factor, disturbance), "--out", page)
        open_page(b, page)
        text = b.js("document.querySelector('.question .answer').innerText")
        assert sentence in text and why in text.replace("\u202f", " "), (name, text)
        assert factor == 1 or "second 2" in text, text


def subnet_page(b, tmp, what):
    page = os.path.join(tmp, "subnet.html")
    report(subnet_json.write(os.path.join(tmp, "subnet.json"), what), "--out", page)
    return page


def answers(b):
    return b.js("[...document.querySelectorAll('.sentence')].map(e => e.textContent).join(' ')").replace("\u202f", " ")


def a_large_subnet_is_readable(b, tmp):
    page = subnet_page(b, tmp, subnet_json.experiment(subnet_json.fat_tree(36, 18, 18)))
    look_at(b, page, 2, FEW_LOOKS)
    assert "50 % of its rate" in answers(b), answers(b)
    # Hosts are folded into a mark for each leaf; each cable has two halves.
    assert b.js("document.querySelectorAll('svg.map .host').length") == 36
    assert b.js("document.querySelectorAll('svg.map .switch').length") == 54
    assert b.js("document.querySelectorAll('svg.map')[0].querySelectorAll('g > .way').length") == 2 * 36 * 36 + 6


def a_congestion_tree_follows_the_slider(b, tmp):
    page = subnet_page(b, tmp, subnet_json.experiment(subnet_json.torus(4), congestion=[
        subnet_json.congested("switch-1-1:2", 0, True, 100000, 900000), subnet_json.congested("switch-4-1:2", 0, False, 300000, 500000)],
        expect=[{"text": "lost = 0", "value": 0, "holds": True}, {"text": "share all > 99%", "value": 0.95, "holds": False}]))
    b.look(1280, 860)
    open_page(b, page)
    said = answers(b)
    assert "1 of 2 expectations do not hold: share all > 99%" in said and "begins at switch-1-1 port 2 to switch-2-1" in said, said
    figure = "[...document.querySelectorAll('figure')].find(f => f.firstChild.textContent === 'Congestion tree')"
    jams = "%s.querySelectorAll('.jam').length" % figure
    assert b.js(jams) == 2, "it begins where most lanes are congested"
    for share, count in ((0.8, 1), (0.95, 0)):
        b.js("(i => { i.value = %s * i.max; i.dispatchEvent(new Event('input')); })(%s.querySelector('input'))" % (share, figure))
        assert b.js(jams) == count, (share, b.js(jams))
    # The keys tell cables, the busiest one first; a click on a switch leaves its cables.
    b.js("window.map = document.querySelector('svg.map'); map.focus()")
    key(b, "ArrowRight")
    b.until("/load 90/.test(map.parentNode.querySelector('.tip').textContent)", "an arrow key tells the busiest cable")
    b.js("(r => map.dispatchEvent(new MouseEvent('click', {clientX: r.left + r.width / 2, clientY: r.top + r.height / 2})))(map.querySelector('.switch').getBoundingClientRect())")
    assert 0 < b.js("map.querySelectorAll('.way:not(.away)').length") < 20
    look_at(b, page, 4, FEW_LOOKS)


def a_deadlock_and_losses_are_told(b, tmp):
    lanes = [{"port": f"switch-{i}:2", "lane": 0} for i in range(1, 9)]
    page = subnet_page(b, tmp, subnet_json.experiment(subnet_json.ring(8), circle=lanes, deadlocks=[{"at_ns": 53000, "lanes": lanes}]))
    b.look(390, 860)
    open_page(b, page)
    assert "deadlocked after 53 µs: each of 8 lanes" in answers(b), answers(b)
    assert b.js("document.querySelector('svg.map').querySelectorAll('.jam').length") == 8
    page = subnet_page(b, tmp, subnet_json.state(subnet_json.fat_tree(3, 2, 2), down={"leaf-1:3"}))
    look_at(b, page, 1, FEW_LOOKS)
    said = answers(b)
    assert "1 of 12 cables is down: leaf-1 to spine-1" in said and "3 no route" in said and "carries 50 % of its rate" in said, said
    assert b.js("document.querySelectorAll('svg.map .cut').length") == 2


def ladder_texts(b, what):
    """The texts of the diagram of packets in the section about `what`."""
    return b.js("""[...document.querySelectorAll('section')].find(s => s.querySelector('h2 .tag')?.textContent === '%s')
        .querySelector('svg.ladder').innerHTML.match(/<text[^>]*>[^<]*/g).map(t => t.replace(/<[^>]*>/, '').replace(/\\s/g, ' '))""" % what)


def a_missing_page_is_drawn(b, tmp):
    """Of memory on demand the answers say what is lost, and a diagram shows why."""
    run = os.path.join(tmp, "odp")
    subprocess.run([BUSBAR, "bench", "run", "odp", "--no-floor", "--no-csv", "--only", "[dr]*", "--out", run],
                   check=True, capture_output=True, timeout=100)
    report(run)
    page = os.path.join(run, "report.html")
    look_at(b, page, 4, FEW_LOOKS)
    said = answers(b)
    assert "missing at the server: 541 ms, a request waits for a timeout" in said and "prefetch: 1 ms" in said, said
    b.look(1280, 860)
    open_page(b, page)
    drawn = ladder_texts(b, "damming")
    for text in ("page 0 is missing", "page 0 is there", "RNR NAK PSN 0, 1.28 ms", "dropped by the client", "request 2 is posted: it waits",
                 "again: RNR NAK", "pending period ends", "LOST", "537 ms without a packet", "again: timeout"):
        assert drawn.count(text) == 1, (text, drawn)
    # The keys tell the packets in their order, also events that are none.
    b.js("window.plot = document.querySelector('svg.ladder'); plot.scrollIntoView({block: 'center'}); plot.focus({preventScroll: true})")
    key(b, "ArrowDown")
    key(b, "ArrowDown")
    b.until("/Page 0 is missing.*at the server/.test(plot.parentNode.querySelector('.tip').textContent)", "an arrow key tells the fault")
    saved = b.js("busbarFigure(plot.closest('figure').querySelector('figcaption').textContent)")
    assert "prefers-color-scheme" in saved and "537" in saved, saved[:200]


def invented(b, tmp):
    a_missing_page_is_drawn(b, tmp)
    a_large_subnet_is_readable(b, tmp)
    a_congestion_tree_follows_the_slider(b, tmp)
    a_deadlock_and_losses_are_told(b, tmp)
    a_known_truth_is_answered(b, tmp)
    run, other = os.path.join(tmp, "run"), os.path.join(tmp, "other")
    report_run.fill(report_run.Run(run, left_out=[{"id": "E_UD", "scenario": "E", "reason": "UD has no RDMA writes"}]), 400)
    report_run.fill(report_run.Run(other), 400, median=1.5)
    page, both, recorded = (os.path.join(tmp, n + ".html") for n in ("page", "both", "recorded"))
    report(run, "--out", page)
    look_at(b, page, 8)
    a_figure_follows_the_reader(b, page)
    report(run, other, "--out", both)
    b.look(1280, 860)
    open_page(b, both)
    text = b.js("document.querySelector('#all .sentence').textContent")
    assert "slower in" in text and "faster in" not in text, text
    open_all(b)
    assert not b.js(FAULTS), b.js(FAULTS)[:10]
    report(a_recording(tmp), "--out", recorded)
    look_at(b, recorded, 3, FEW_LOOKS)
    assert not b.complaints(), b.complaints()


def measured(b, tmp, suites):
    for suite in suites:
        run = os.path.join(tmp, suite)
        done = subprocess.run([BUSBAR, "bench", "run", suite, "--ci", "--out", run], capture_output=True, text=True, check=False)
        assert os.path.exists(os.path.join(run, "run.json")), done.stderr
        report(run)
        look_at(b, os.path.join(run, "report.html"), 1)


def main():
    if not program():
        print("skipped: there is no chromium")
        sys.exit(77)
    with tempfile.TemporaryDirectory() as tmp, Browser(tmp) as b:
        if sys.argv[1:]:
            measured(b, tmp, sys.argv[1:])
        else:
            invented(b, tmp)


if __name__ == "__main__":
    main()
