#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""tshark as referee of the random packets that mad_dump writes: every field that the program
names has in tshark the value that our decoder says, and no frame is malformed.

usage: mad_tshark.py PROGRAM        COUNT: frames (600), SEED: (1)
"""
import collections
import ipaddress
import os
import shutil
import subprocess
import sys
import tempfile


def readings(text):
    """What a printed value may mean: tshark prints decimal, hex, bytes and addresses."""
    for read in (lambda t: int(t, 0), lambda t: int(t.replace(':', ''), 16),
                 lambda t: int(ipaddress.IPv6Address(t))):
        try:
            yield read(text)
        except ValueError:
            pass
    yield {'True': 1, 'False': 0}.get(text)


def main():
    if not shutil.which('tshark'):
        return 77
    seed = os.environ.get('SEED', '1')
    with tempfile.TemporaryDirectory() as folder:
        capture, lines = folder + '/pcap', folder + '/lines'
        subprocess.run([sys.argv[1], capture, lines, os.environ.get('COUNT', '600'), seed],
                       check=True)
        want = collections.defaultdict(list)
        with open(lines, encoding='ascii') as file:
            for line in file:
                frame, field, value = line.split()
                want[int(frame), field].append(int(value, 16))
        fields = sorted({field for _, field in want})
        command = ['tshark', '-r', capture, '-T', 'fields', '-e', '_ws.malformed']
        for field in fields:
            command += ['-e', field]
        run = subprocess.run(command, capture_output=True, text=True, check=False)
    if run.returncode:
        print(run.stderr)
        return 1
    wrong = collections.Counter()
    for number, line in enumerate(run.stdout.rstrip('\n').split('\n'), 1):
        malformed, *columns = line.split('\t')
        if malformed:
            print(f'frame {number} is malformed')
            wrong['malformed'] += 1
        for field, text in zip(fields, columns):
            ours = want.pop((number, field), None)
            if ours is None:
                continue
            theirs = text.split(',') if text else []
            if len(ours) != len(theirs) or any(
                    v not in readings(t) for v, t in zip(ours, theirs)):
                if not wrong[field]:
                    print(f'frame {number}, {field}: {[hex(v) for v in ours]}, tshark {theirs}')
                wrong[field] += 1
    if want:
        print(f'tshark does not show {len(want)} values')
    for field, count in wrong.items():
        print(f'{field}: {count} frames')
    print(f'{len(fields)} fields, seed {seed}')
    return bool(wrong or want)


sys.exit(main())
