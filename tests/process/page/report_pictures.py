#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""report_pictures.py FOLDER RUN: the figures of docs/benchmarks.md and README.md, as SVG files that follow the
reader's choice of light or dark, and three pictures of the page. RUN: what `busbar bench run quick --out RUN` left
behind on a machine with nothing else to do.

Environment: BUSBAR, the program; CHROMIUM.
"""
import os
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
from browser import Browser

# File, scenario of the section, fold to be opened, latency to be chosen, how the figure's name begins.
FIGURES = [
    ("nodes-over-rate", "nodes", None, None, "Medians over the rate"),
    ("nodes-tail", "nodes", "The slowest messages", "latency from the planned step", "The slowest messages"),
    ("adapter-over-size", "size", None, None, "Medians over the message size"),
    ("budget-way", "budget", None, None, "Where the time goes"),
]
SECTION = "[...document.querySelectorAll('section')].find(s => s.querySelector('h2 .tag')?.textContent === '%s')"


def figure(b, folder, name, scenario, fold, latency, what):
    b.js("window.part = " + SECTION % scenario)
    if fold:
        b.js("[...part.querySelectorAll('.fold')].find(f => f.firstChild.textContent === '%s').open = true" % fold)
    if latency:
        b.js("""(s => { s.selectedIndex = [...s.options].findIndex(o => o.text === '%s'); s.dispatchEvent(new Event('change')); })
            ([...part.querySelectorAll('.fold[open] select')][0])""" % latency)
    found = "[...part.querySelectorAll('figure')].find(f => f.firstChild.textContent.startsWith('%s'))" % what
    b.until("%s?.querySelector('svg.plot text')" % found, "there is a figure " + what)
    text = b.js("busbarFigure(%s.firstChild.textContent)" % found)
    with open(os.path.join(folder, name + ".svg"), "w", encoding="utf-8") as f:
        f.write(text + "\n")


def main():
    folder, run = sys.argv[1:]
    with tempfile.TemporaryDirectory() as tmp, Browser(tmp, 860, 800) as b:
        page = os.path.join(tmp, "report.html")
        subprocess.run([os.environ["BUSBAR"], "report", run, "--out", page], check=True)
        for width, height, dark, scenario, name in ((1280, 900, False, None, "report-answers"), (1280, 900, True, "nodes", "report-figures"),
                                                    (390, 844, False, "types", "report-phone")):
            b.look(width, height, dark)
            b.go("file://" + page)
            b.until("document.documentElement.dataset.ready", "the page is there")
            b.js("dispatchEvent(new Event('beforeprint'))")
            b.until("[...document.querySelectorAll('figure svg.plot')].every(s => s.querySelector('text'))", "figures are drawn")
            if scenario:
                b.js("(%s).scrollIntoView()" % SECTION % scenario)
            b.picture(os.path.join(folder, name + ".png"))
        b.look(860, 800)
        for f in FIGURES:
            figure(b, folder, *f)


main()
