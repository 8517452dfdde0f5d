#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""pictures.py FOLDER: page-overview.png and page-signals.png, as they stand in docs/figures: the
gateway of examples/page.conf after ten seconds, in light and in dark colours.

Environment: BUSBAR, the program; CHROMIUM.
"""
import os
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "http"))
from browser import Browser # noqa: E402
from http_gateway import Gateway # noqa: E402


def main():
    with tempfile.TemporaryDirectory() as folder, Browser(folder, 1280, 720) as b:
        os.environ["OUT"] = os.path.join(folder, "page.csv")
        with open(os.path.join(HERE, "../../../examples/page.conf"), encoding="utf-8") as f:
            text = f.read()
        with Gateway(folder, text) as g:
            b.look(1280, 720, dark=True)
            b.go("http://127.0.0.1:%d/#signals" % g.port)
            b.until("document.querySelector('#legend b')?.textContent", "samples come")
            b.js("document.querySelector('[data-key=\"in/3/feeder_1\"]').click()")
            time.sleep(11)
            b.picture(os.path.join(sys.argv[1], "page-signals.png"))
            b.look(1280, 720)
            b.js("location.hash = 'overview'")
            b.js("document.querySelector('.box[data-id=station_bus]').dispatchEvent(new MouseEvent('click', { bubbles: true }))")
            b.js("document.activeElement.blur()")
            time.sleep(1.5)
            b.picture(os.path.join(sys.argv[1], "page-overview.png"))


main()
