#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""pack.py OUT FILE...: a C file with the files of the page, gzip-encoded, for page.h."""
import gzip
import hashlib
import os
import sys

TYPES = {".html": "text/html; charset=utf-8", ".js": "text/javascript; charset=utf-8",
         ".css": "text/css; charset=utf-8"}
# Nothing from elsewhere, no scripts or styles within the text, no page around it. Fields of
# uPlot's are sized through the style object, which this permits.
POLICY = ("default-src 'none'; script-src 'self'; style-src 'self'; img-src data:; "
          "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'")


def array(name, data):
    rows = [data[i:i + 20] for i in range(0, len(data), 20)]
    body = ",\n\t".join(", ".join(str(b) for b in row) for row in rows)
    return "static const unsigned char %s[] = {\n\t%s\n};\n" % (name, body)


def entry(name, path, plain):
    base = os.path.basename(path)
    kind = os.path.splitext(base)[1]
    etag = hashlib.sha256(plain).hexdigest()[:24]
    policy = '"%s"' % POLICY if kind == ".html" else "NULL"
    return ('\t{ .path = "%s", .type = "%s", .encoding = "gzip", .etag = "\\"%s\\"",\n'
            "\t  .policy = %s, .data = %s, .len = sizeof(%s) },\n"
            % ("/" if base == "index.html" else "/" + base, TYPES[kind], etag, policy, name, name))


def main():
    arrays, entries = [], []
    for i, path in enumerate(sys.argv[2:]):
        with open(path, "rb") as f:
            plain = f.read()
        arrays.append(array("file_%d" % i, gzip.compress(plain, 9, mtime=0)))
        entries.append(entry("file_%d" % i, path, plain))
    with open(sys.argv[1], "w") as f:
        f.write("/* Made by src/gateway/page/pack.py. */\n"
                '#include "gateway/page/page.h"\n\n')
        f.write("\n".join(arrays))
        f.write("\nconst struct web_file page_files[] = {\n%s};\n" % "".join(entries))
        f.write("const size_t page_file_count = %d;\n" % len(entries))


main()
