#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Unmodified programs on busbar's adapter, against the same on the kernel's rxe0 or siw0.

interop.py [OPTIONS] BUSBAR KERNEL_DIR, by interop.sh, which makes the network namespace.
One guest serves all pairs of programs, and then the commands that --inside names, which it
runs by itself. A line is printed for each: the programs, which
side is the client, path MTU, bytes of a message, result, seconds.

With --siw the guest has siw0, busbar has soft1, and the pairs are those of iwarp_pairs.py, once for
each of the variants of siw and, with --settings, for each of these settings of busbar.

The transport of soft0 is BUSBAR_TRANSPORTS, and roce when it is not set. With TESTS_PART=N only
every Nth pair or command runs; TESTS_SEED, any text, selects which.
"""
import argparse
import hashlib
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
import iwarp_pairs
from listening import read, tcp_listens

# Room for path MTU 4096 with all headers that rxe counts.
MTU_BYTES = 4200
READY_S = 30
TRIES = 4
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
    addresses = ('10.86.0.1', 'fd86::1')

    def __init__(self, busbar, iwarp):
        self.busbar = busbar
        self.iwarp = iwarp
        self.device = 'soft1' if iwarp else 'soft0'
        self.env = dict(os.environ, BUSBAR_DEVICES='iwarp' if iwarp else 'soft')
        self.env.setdefault('BUSBAR_TRANSPORTS', 'roce')
        self.folder = tempfile.TemporaryDirectory(prefix='busbar-interop.')

    def start(self, words):
        # perftest leaves files where it stands.
        return HostProgram(['env', '-C', self.folder.name, self.busbar, 'exec', '-q', '--',
                            *words], self.env)

    def set_faults(self, faults):
        """What its adapter does to packets, for the programs that are started next."""
        self.env['BUSBAR_FAULTS'] = faults

    def set_settings(self, name):
        """Those of iwarp_pairs.SETTINGS, for the programs that are started next."""
        for settings in iwarp_pairs.SETTINGS.values():
            for setting in settings:
                self.env.pop(setting, None)
        self.env.update(iwarp_pairs.SETTINGS[name])

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


def place(words, side, peer, port, pair):
    """The words of a command with what only the run knows."""
    index = side.gid_index(side.addresses[pair.family]) if '{gid}' in words else None
    known = {'device': side.device, 'gid': str(index), 'port': str(port),
             'self': side.addresses[pair.family], 'peer': peer.addresses[pair.family],
             'meet': peer.addresses[0],
             'mtu': str(pair.mtu), 'size': str(pair.size)}
    return [word.format(**known) for word in words.split()]


def failure(pair, client, server, limit_s):
    """What is wrong with the ends of both programs; None: nothing."""
    status = client.wait(limit_s)
    if status is None:
        return f'the client did not end in {limit_s} s'
    if (status == 0) != (not pair.client_fails):
        return f'the client ended with status {status}'
    if not re.search(pair.client_says, client.output(), re.MULTILINE):
        return f'the client did not print {pair.client_says}'
    if not pair.server_ends:
        return None
    status = server.wait(limit_s)
    if status is None:
        return f'the server did not end in {limit_s} s'
    if status != 0:
        return f'the server ended with status {status}'
    if not re.search(pair.server_says, server.output(), re.MULTILINE):
        return f'the server did not print {pair.server_says}'
    return None


def run_pair(pair, client_side, server_side, port):
    """None, or what is wrong and what both printed."""
    server = client = None
    port = pair.port or port
    try:
        server = server_side.start(place(pair.server, server_side, client_side, port, pair))
        if not server_side.wait_listens(pair.ready, port, READY_S):
            return 'the server does not listen\n' + server.output()
        client = client_side.start(place(pair.client, client_side, server_side, port, pair))
        wrong = failure(pair, client, server, pair.limit_s)
        if wrong is None:
            return None
        return '\n'.join([wrong, f'--- client, {client_side.name}', client.output(),
                          f'--- server, {server_side.name}', server.output()])
    finally:
        for program in (client, server):
            if program:
                program.close()


def missed(pair, server, wrong):
    """Is what went wrong nobody's fault, so that the pair tries again?"""
    known = [pair.again, pair.guest_again if isinstance(server, interop_guest.Guest) else '']
    return any(text and re.search(text, wrong) for text in known)


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


def is_in_part(name):
    """Do TESTS_PART and TESTS_SEED select the test of this name?"""
    text = f"{os.environ.get('TESTS_SEED', '')} {name}".encode()
    number = int.from_bytes(hashlib.sha256(text).digest()[:8], 'big')
    return number % int(os.environ.get('TESTS_PART', '1')) == 0


def run_inside(options, guest, counts):
    """Commands that the guest runs by itself."""
    for text in options.inside:
        words = shlex.split(text)
        if not is_in_part(text):
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


class Table:
    """Runs pairs with the client on either side, and prints a line for each."""

    def __init__(self, options, pairs, host, guest):
        self.options, self.pairs, self.host, self.guest = options, pairs, host, guest
        self.width = max(len(pair.name) for pair in pairs)
        self.link, self.loss, self.port = MTU_BYTES, '', 18500
        self.counts = dict.fromkeys(('ok', 'FAILED', 'not yet', 'skipped'), 0)

    def set_network(self, pair):
        if pair.link != self.link:
            self.link = pair.link
            self.host.set_mtu(pair.link)
            self.guest.set_mtu(pair.link)
        if pair.loss != self.loss:
            self.loss = pair.loss
            self.guest.set_loss(pair.loss)
        self.host.set_faults(pair.faults)

    def run_till_met(self, pair, client, server):
        """As run_pair, again where the programs missed each other."""
        for _ in range(TRIES):
            self.port += 1
            wrong = run_pair(pair, client, server, self.port)
            if not wrong or not missed(pair, server, wrong):
                break
        return wrong

    def reason_to_skip(self, pair, client, variant):
        if not isinstance(self.host, Host):
            return pair.skip
        # siw as the responder sends all the same.
        silent = variant and not variant.startswith('p2p') and client is self.guest
        if pair.responder_first and silent:
            return 'siw sends no RTR, so busbar may not send first'
        if pair.reads_as_offered and 'rev1' in variant and client is self.host:
            return 'siw tells its program that revision 1 offers no READs'
        return pair.skip or pair.busbar_skip

    def run(self, pair, client, server, variant):
        started = time.monotonic()
        skip = self.reason_to_skip(pair, client, variant)
        wrong = skip or self.run_till_met(pair, client, server)
        seconds = time.monotonic() - started
        result = ('skipped' if skip else 'ok' if not wrong else
                  'not yet' if pair.later else 'FAILED')
        self.counts[result] += 1
        note = skip or (result == 'not yet' and pair.later) or f'{seconds:5.2f} s'
        print(f'{pair.name:{self.width}}  {client.name:6}  {variant or pair.mtu or "":>12} '
              f'{pair.size or "":>8}  {result:7} {note}', flush=True)
        if result == 'FAILED' or (wrong and self.options.verbose and not skip):
            print('\n'.join('    ' + line for line in wrong.splitlines()), flush=True)

    def run_all(self, variant=''):
        what = 'siw' if variant else 'mtu'
        print(f'{"programs":{self.width}}  client  {what:>12} {"size":>8}  result', flush=True)
        for pair in self.pairs:
            if (not re.search(self.options.only, pair.name) or
                    (pair.long and not self.options.all)):
                continue
            self.set_network(pair)
            for client, server in ((self.host, self.guest), (self.guest, self.host)):
                sides = {'both', 'guest' if client is self.guest else 'host'}
                cell = f'{pair.name}, {pair.size}, {client.name}, {variant or pair.mtu}'
                if (sides & {self.options.client} and sides & {pair.client_side} and
                        (re.search(self.options.cells, cell) if self.options.cells else
                         is_in_part(f'{pair} {client.name} {variant}'.strip()))):
                    self.run(pair, client, server, variant)


def run_all(options, host, guest):
    pairs = iwarp_pairs.PAIRS if options.siw else interop_pairs.PAIRS
    table = Table(options, pairs, host, guest)
    if not options.siw:
        table.run_all()
    for variant in options.siw:
        guest.set_siw(variant)
        for settings in options.settings:
            host.set_settings(settings)
            table.run_all(f'{variant} {settings}'.strip())
    run_inside(options, guest, table.counts)
    print(', '.join(f'{count} {what}' for what, count in table.counts.items() if count))
    return table.counts


def arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument('--only', default='', metavar='REGEX', help='pairs of this name')
    parser.add_argument('--cells', default='', metavar='REGEX',
                        help='lines of the table, "name, size, client, path MTU or siw", '
                             'without a look at TESTS_PART')
    parser.add_argument('--all', action='store_true',
                        help='also those that show little beside their neighbours')
    parser.add_argument('--client', default='both', choices=('both', 'host', 'guest'))
    parser.add_argument('--peer', default='busbar', choices=('busbar', 'guest'),
                        help='guest: a second guest in the place of busbar')
    parser.add_argument('--siw', default='', metavar='VARIANT,...',
                        help='iWARP: the guest has these variants of siw, one after the other')
    parser.add_argument('--settings', default='', metavar='NAME,...',
                        help='iWARP: busbar has these of iwarp_pairs.SETTINGS, one after the other')
    parser.add_argument('--capture', metavar='FILE', help='all packets, by tcpdump')
    parser.add_argument('--inside', action='append', default=[], metavar='COMMAND',
                        help='runs it in the guest, after the pairs; may be given again')
    parser.add_argument('--time', default='300', help='limit of a guest in seconds')
    parser.add_argument('--verbose', action='store_true')
    parser.add_argument('busbar')
    parser.add_argument('kernel')
    options = parser.parse_args()
    options.busbar = os.path.realpath(options.busbar)
    options.siw = options.siw.split(',') if options.siw else []
    options.settings = options.settings.split(',')
    return options


def main():
    options = arguments()
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
