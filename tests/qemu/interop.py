#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Unmodified programs on busbar's adapter, against the same on the kernel's rxe0 or siw0.

interop.py [OPTIONS] BUSBAR KERNEL_DIR, by interop.sh, which makes the network namespace.
One guest serves all pairs of programs, and then the commands that --inside names, which it
runs by itself. A line is printed for each: the programs, which
side is the client, path MTU, bytes of a message, result, seconds.

With --siw the guest has siw0, busbar has soft1, and the pairs are those of iwarp_pairs.py, once for
each way to connect; a table of all follows the lines.

The transport of soft0 is BUSBAR_TRANSPORTS, and roce when it is not set. With TESTS_PART=N only
one of 2 N pairs or commands runs; TESTS_SEED, any text, selects which.
"""
import argparse
import os
import shlex
import re
import signal
import subprocess
import sys
import tempfile
import time

import interop_guest
import interop_pairs
import interop_table
import iwarp_pairs
from listening import read, tcp_listens

# Room for path MTU 4096 with all headers that rxe counts.
MTU_BYTES = 4200
INSIDE_S = 240


class HostProgram:
    """A program of this host with its output in a file."""

    def __init__(self, words, env):
        self.log = tempfile.TemporaryFile()
        self.process = subprocess.Popen(
            words, env=env, stdin=subprocess.DEVNULL, stdout=self.log,
            stderr=subprocess.STDOUT, start_new_session=True)

    def wait(self, limit_s):
        """Its exit status; None when it does not end in time."""
        try:
            return self.process.wait(limit_s)
        except subprocess.TimeoutExpired:
            return None

    def running(self):
        return self.process.poll() is None

    def output(self):
        self.log.seek(0)
        return self.log.read().decode(errors='replace')

    def close(self):
        """Ends it if it is still running."""
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.process.wait()
        self.log.close()


class Host:
    """busbar's adapter, in this network namespace."""
    name = 'busbar'
    is_guest = False
    addresses = ('10.86.0.1', 'fd86::1')

    def __init__(self, busbar, iwarp):
        self.busbar = busbar
        self.iwarp = iwarp
        self.device = 'soft1' if iwarp else 'soft0'
        self.env = dict(os.environ, BUSBAR_DEVICES='iwarp' if iwarp else 'soft')
        self.env.setdefault('BUSBAR_TRANSPORTS', 'roce')
        self.folder = tempfile.TemporaryDirectory(prefix='busbar-interop.')

    def start(self, words, _):
        # perftest leaves files where it stands.
        return HostProgram(['env', '-C', self.folder.name, self.busbar, 'exec', '-q', '--',
                            *words], self.env)

    def set_faults(self, faults):
        """What its adapter does to packets, for the programs that are started next."""
        self.env['BUSBAR_FAULTS'] = faults

    def set_way(self, way):
        """What programs call with that are started next (iwarp_pairs.WAYS)."""
        for name in (iwarp_pairs.REVISION, iwarp_pairs.RTR, iwarp_pairs.CRC):
            self.env.pop(name, None)
        self.env.update(way.settings)

    def set_mtu(self, mtu_bytes):
        ip('link', 'set', 'tap0', 'mtu', str(mtu_bytes))

    def gid_index(self, address):
        table = subprocess.run([self.busbar, 'devices', self.device], env=self.env,
                               capture_output=True, text=True, check=True).stdout
        found = re.search(rf'gid (\d+) +RoCE v2 +(::ffff:)?{re.escape(address)} ', table)
        return int(found[1]) if found else None

    def listens(self, kind, port):
        if kind == 'tcp' or self.iwarp:
            return tcp_listens(port)
        # An identifier that listens has its port as a name of a Unix socket.
        return re.search(rf'@busbar\.cm\.[0-9a-f]+\.{port}\.', read('/proc/net/unix'))

    def wait_listens(self, kind, port, limit_s):
        """Until one of its programs listens on the port; False: none did."""
        end = time.monotonic() + limit_s
        while not self.listens(kind, port):
            if time.monotonic() > end:
                return False
            time.sleep(0.02)
        return True

    def close(self):
        self.folder.cleanup()


def ip(*words):
    subprocess.run(['ip', *words], check=True)


def network(taps):
    """The tap devices, on a bridge where there are two of them."""
    ip('link', 'set', 'lo', 'up')
    for tap in taps:
        ip('tuntap', 'add', 'dev', tap, 'mode', 'tap')
        ip('link', 'set', tap, 'mtu', str(MTU_BYTES), 'up')
    if len(taps) == 1:
        ip('address', 'add', Host.addresses[0] + '/24', 'dev', taps[0])
        ip('address', 'add', Host.addresses[1] + '/64', 'dev', taps[0], 'nodad')
        return
    ip('link', 'add', 'bridge0', 'mtu', str(MTU_BYTES), 'type', 'bridge')
    ip('link', 'set', 'bridge0', 'up')
    ip('address', 'add', '10.86.0.254/24', 'dev', 'bridge0')
    for tap in taps:
        ip('link', 'set', tap, 'master', 'bridge0')


def run_inside(options, guest, counts):
    """Commands that the guest runs by itself."""
    for text in options.inside:
        words = shlex.split(text)
        if not interop_table.is_in_part(text):
            continue
        started = time.monotonic()
        program = guest.start(words)
        status = program.wait(INSIDE_S)
        output = program.output()
        program.close()
        result = 'ok' if status == 0 else 'FAILED'
        counts[result] += 1
        name = next(os.path.basename(word) for word in words if word.endswith('.sh'))
        print(f'{name}, in the guest: {result} {time.monotonic() - started:5.2f} s', flush=True)
        if status != 0:
            print('\n'.join('    ' + line for line in output.splitlines()), flush=True)


def run_all(options, host, guest):
    if options.siw:
        table = interop_table.Matrix(options, iwarp_pairs.PAIRS, host, guest, MTU_BYTES)
    else:
        table = interop_table.Table(options, interop_pairs.PAIRS, host, guest, MTU_BYTES)
    table.run_all()
    run_inside(options, guest, table.counts)
    print(', '.join(f'{count} {what}' for what, count in table.counts.items() if count))
    return table.counts


def arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument('--only', default='', metavar='REGEX', help='pairs of this name')
    parser.add_argument('--cells', default='', metavar='REGEX',
                        help='lines of the table, "name, size, client, path MTU or way", '
                             'without a look at TESTS_PART')
    parser.add_argument('--all', action='store_true',
                        help='also those that show little beside their neighbours')
    parser.add_argument('--client', default='both', choices=('both', 'host', 'guest'))
    parser.add_argument('--peer', default='busbar', choices=('busbar', 'guest'),
                        help='guest: a second guest in the place of busbar')
    parser.add_argument('--siw', default='', metavar='WAY,...',
                        help='iWARP: in these ways to connect (iwarp_pairs.WAYS), or all')
    parser.add_argument('--capture', metavar='FILE', help='all packets, by tcpdump')
    parser.add_argument('--inside', action='append', default=[], metavar='COMMAND',
                        help='runs it in the guest, after the pairs; may be given again')
    parser.add_argument('--time', help='limit of a guest in seconds (300; with --siw 300 for '
                                       'each way)')
    parser.add_argument('--verbose', action='store_true')
    parser.add_argument('busbar')
    parser.add_argument('kernel')
    options = parser.parse_args()
    options.busbar = os.path.realpath(options.busbar)
    known = [way.name for way in iwarp_pairs.WAYS]
    options.siw = known if options.siw == 'all' else options.siw.split(',') if options.siw else []
    if unknown := set(options.siw) - set(known):
        parser.error(f'no such way: {", ".join(unknown)}; there are {", ".join(known)}')
    options.time = options.time or str(300 * max(1, len(options.siw)))
    return options


def main():
    options = arguments()
    # So that the guest ends and the folders go, too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    taps = ['tap0', 'tap1'] if options.peer == 'guest' else ['tap0']
    network(taps)
    kind = 'siw' if options.siw else 'rxe'
    guest = interop_guest.Guest(kind, taps[0], ('10.86.0.2', 'fd86::2'), options, MTU_BYTES)
    other = capture = None
    try:
        if options.peer == 'guest':
            other = interop_guest.Guest(kind + '-2', taps[1], ('10.86.0.3', 'fd86::3'), options,
                                        MTU_BYTES)
            other.wait_boot()
        else:
            other = Host(options.busbar, bool(options.siw))
        guest.wait_boot()
        if options.capture:
            capture = interop_guest.Capture(taps[0], options)
        counts = run_all(options, other, guest)
    finally:
        for part in (capture, other, guest):
            if part:
                part.close()
    return 1 if counts['FAILED'] or not counts['ok'] else 0


if __name__ == '__main__':
    sys.exit(main())
