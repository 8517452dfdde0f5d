# SPDX-License-Identifier: BSD-2-Clause
"""Runs the pairs of programs for interop.py, with the client on either side, and prints what came
of each: Table for RoCE, Matrix for iWARP, whose pairs run once for each way to connect.
"""
import hashlib
import os
import re
import time

import interop_guest
import iwarp_pairs

READY_S = 30
TRIES = 6
# The server of perftest listens twice, and its client calls a second time at once. A guest as the
# server gets more of a lead in each try: what it sends arrives that much later.
LEAD_MS = 200


def is_in_part(name):
    """Do TESTS_PART and TESTS_SEED select the test of this name?"""
    text = f"{os.environ.get('TESTS_SEED', '')} {name}".encode()
    number = int.from_bytes(hashlib.sha256(text).digest()[:8], 'big')
    part = int(os.environ.get('TESTS_PART', '1'))
    # A guest is slow: of a part of the tests only half.
    return number % (2 * part if part > 1 else 1) == 0


def place(words, side, peer, port, pair):
    """The words of a command with what only the run knows."""
    index = side.gid_index(side.addresses[pair.family]) if '{gid}' in words else None
    known = {'device': side.device, 'gid': str(index), 'port': str(port),
             'self': side.addresses[pair.family], 'peer': peer.addresses[pair.family],
             'meet': peer.addresses[0], 'busbar': side.busbar,
             'mtu': str(pair.mtu), 'size': str(pair.size)}
    return [word.format(**known) for word in words.split()]


def is_ready(pair, server, server_side, port):
    """Waits for a server, at most READY_S; False: it is not there."""
    if pair.ready != 'says':
        return server_side.wait_listens(pair.ready, port, READY_S)
    end = time.monotonic() + READY_S
    while not re.search(pair.server_says, server.output(), re.MULTILINE):
        if time.monotonic() > end or not server.running():
            return False
        time.sleep(0.02)
    return True


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
        server = server_side.start(place(pair.server, server_side, client_side, port, pair),
                                   pair.library)
        if not is_ready(pair, server, server_side, port):
            return 'the server does not listen\n' + server.output()
        client = client_side.start(place(pair.client, client_side, server_side, port, pair),
                                   pair.library)
        wrong = failure(pair, client, server, pair.limit_s)
        if wrong is None:
            return None
        return '\n'.join([wrong, f'--- client, {client_side.name}', client.output(),
                          f'--- server, {server_side.name}', server.output()])
    except OSError as error:
        return f'the guest does not answer: {error}'
    finally:
        for program in (client, server):
            if program:
                program.close()


def missed(pair, server, wrong):
    """Is what went wrong nobody's fault, so that the pair tries again?"""
    known = [pair.again, pair.guest_again if isinstance(server, interop_guest.Guest) else '']
    return any(text and re.search(text, wrong) for text in known)


class Table:
    """Runs pairs with the client on either side, and prints a line for each."""

    def __init__(self, options, pairs, host, guest, link):
        self.options, self.pairs, self.host, self.guest = options, pairs, host, guest
        self.width = max(len(pair.name) for pair in pairs)
        self.link, self.loss, self.port = link, '', 18500
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
        for tries in range(TRIES):
            if tries and server.is_guest:
                server.set_loss(f'delay {LEAD_MS * tries}ms')
            self.port += 1
            wrong = run_pair(pair, client, server, self.port)
            if not wrong or not missed(pair, server, wrong):
                break
        if tries and server.is_guest:
            server.set_loss(self.loss)
        return wrong

    def run(self, pair, client, server, column, skip):
        """Prints the line and returns its result; skip: why the programs do not run."""
        started = time.monotonic()
        wrong = skip or self.run_till_met(pair, client, server)
        seconds = time.monotonic() - started
        result = ('skipped' if skip else 'ok' if not wrong else
                  'not yet' if pair.later else 'FAILED')
        self.counts[result] += 1
        note = skip or (result == 'not yet' and pair.later) or f'{seconds:5.2f} s'
        print(f'{pair.name:{self.width}}  {client.name:6}  {column:>9} '
              f'{pair.size or "":>8}  {result:7} {note}', flush=True)
        if result == 'FAILED' or (wrong and self.options.verbose and not skip):
            print('\n'.join('    ' + line for line in wrong.splitlines()), flush=True)
            for side in (client, server):
                if side.is_guest:
                    side.check()
        return result

    def print_head(self, column):
        print(f'{"programs":{self.width}}  client  {column:>9} {"size":>8}  result', flush=True)

    def is_wanted(self, pair, client, column):
        sides = {'both', 'guest' if client is self.guest else 'host'}
        cell = f'{pair.name}, {pair.size}, {client.name}, {column}'
        return (re.search(self.options.only, pair.name) and
                (self.options.all or not pair.long) and
                sides & {self.options.client} and sides & {pair.client_side} and
                (re.search(self.options.cells, cell) if self.options.cells else
                 is_in_part(f'{pair} {client.name} {column}'.strip())))

    def run_all(self):
        self.print_head('mtu')
        for pair in self.pairs:
            for client, server in ((self.host, self.guest), (self.guest, self.host)):
                if self.is_wanted(pair, client, pair.mtu):
                    self.set_network(pair)
                    skip = pair.skip or (not self.host.is_guest and pair.busbar_skip)
                    self.run(pair, client, server, pair.mtu or '', skip)


class Matrix(Table):
    """Runs pairs in each way to connect and in both directions, and prints a table of all."""

    def __init__(self, options, pairs, host, guest, link):
        super().__init__(options, pairs, host, guest, link)
        self.cells = {}
        self.reasons = []

    def reason_to_skip(self, pair, client, server, way):
        if pair.responder_first and not way.rtr and not server.is_guest:
            return iwarp_pairs.NO_RTR
        if pair.reads_as_offered and way.revision == 1 and server.is_guest:
            return iwarp_pairs.NO_READS
        return pair.skip

    def run_cell(self, pair, client, server, way):
        skip = self.reason_to_skip(pair, client, server, way)
        result = self.run(pair, client, server, way.name, skip)
        if skip:
            if skip not in self.reasons:
                self.reasons.append(skip)
            result = f'({self.reasons.index(skip) + 1})'
        self.cells[pair.row, client.name, way.name] = result

    def run_all(self):
        self.print_head('set-up')
        ways = [way for way in iwarp_pairs.WAYS if way.name in self.options.siw]
        for way in ways:
            for client, server in ((self.host, self.guest), (self.guest, self.host)):
                pairs = [pair for pair in self.pairs
                         if (not pair.ways or way.name in pair.ways) and
                         self.is_wanted(pair, client, way.name)]
                if pairs:
                    client.set_way(way)
                    server.set_way(iwarp_pairs.WAYS[0])
                for pair in pairs:
                    self.run_cell(pair, client, server, way)
        for client, server in ((self.host, self.guest), (self.guest, self.host)):
            self.print_direction(client.name, server.name, [way.name for way in ways])
        for number, reason in enumerate(self.reasons):
            print(f'({number + 1}) {reason}')

    def print_direction(self, client, server, ways):
        rows = [pair.row for pair in self.pairs
                if any((pair.row, client, way) in self.cells for way in ways)]
        if not rows:
            return
        ways = [way for way in ways if any((row, client, way) in self.cells for row in rows)]
        width = max(len(row) for row in rows)
        print(f'\n{client} calls, {server} answers')
        print(' '.join([' ' * width] + [f'{way:>9}' for way in ways]).rstrip())
        for row in rows:
            cells = [self.cells.get((row, client, way), '') for way in ways]
            print(' '.join([f'{row:{width}}'] + [f'{cell:>9}' for cell in cells]).rstrip())
