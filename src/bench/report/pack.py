#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""pack.py OUT INDEX SCRIPT STYLE: a C file with the page of a report in two pieces, for page.h: what stands
before the data and what stands behind them.

The policy of the page (Content-Security-Policy) names its one script by its hash, so that no text in the data
can be executed, should one ever get out of its element."""
import base64
import hashlib
import sys


def array(name, text):
    data = text.encode() + b"\0"
    rows = [data[i:i + 20] for i in range(0, len(data), 20)]
    body = ",\n\t".join(", ".join(str(b if b < 128 else b - 256) for b in row) for row in rows)
    return "const char %s[] = {\n\t%s\n};\nconst size_t %s_size = sizeof(%s) - 1;\n" % (name, body, name, name)


def main():
    index, script, style = (open(path, encoding="utf-8").read() for path in sys.argv[2:5])
    if "</script" in script or "</style" in style:
        sys.exit("the bundle would end the element that it stands in")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = ("default-src 'none'; script-src 'sha256-%s'; style-src 'unsafe-inline'; img-src data: blob:; "
              "base-uri 'none'; form-action 'none'" % digest)
    for name, text in (("@POLICY@", policy), ("@STYLE@", style), ("@SCRIPT@", script)):
        head, found, rest = index.partition(name)
        if not found:
            sys.exit("index.html has no %s" % name)
        index = head + text + rest
    head, found, tail = index.partition("@DATA@")
    if not found or "@DATA@" in tail:
        sys.exit("index.html has not one @DATA@")
    with open(sys.argv[1], "w", encoding="utf-8") as f:
        f.write('/* Made by src/bench/report/pack.py. */\n#include "bench/report/page.h"\n\n%s%s'
                % (array("report_page_head", head), array("report_page_tail", tail)))


main()
