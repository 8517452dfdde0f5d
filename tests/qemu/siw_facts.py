#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""What the kernel's siw really sends: a plain TCP program at the other end of it.

siw_facts.py [OPTIONS] PEER KERNEL_DIR, in the guest (guest.sh --siw plain): the cases of siw_requests.py, siw_data.py and siw_connects.py, each against PEER (siw_peer.c) on siw0. Prints a
line of each case, as tests/unit/wire/iwarp_siw.txt has them:

    # what was done; what the program on siw0 saw
    NAME END HEX

END is fin or rst, by which siw ended the connection, or open, if it did not within a moment. HEX are
the bytes that siw sent, '-' for none; of connections whose set-up is not the point without its
frame of MPA. With --known FILE it fails if siw sent anything else than is there; bytes that differ
from run to run (STags, addresses of siw's own) are left out of the comparison.
"""
import argparse
import os
import re
import socket
import subprocess
import sys
import threading
import time

import siw_connects
import siw_data
import siw_requests

HERE = os.path.dirname(os.path.realpath(__file__))
ADDRESS = '10.0.2.15'
# Without a file nobody knows what will come. With it, more than that is a moment away at most.
WAIT_S = 2
MORE_S = 0.3
LIMIT_S = 60


class Peer:
    """The program on siw0."""

    def __init__(self, path, *words):
        self.lines = []
        self.places = []
        self.more = threading.Condition()
        self.process = subprocess.Popen([path, f'address={ADDRESS}', *words],
                                        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                        text=True)
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        for line in self.process.stdout:
            with self.more:
                self.lines.append(line.rstrip('\n'))
                self.more.notify()
        with self.more:
            self.lines.append('exit')
            self.more.notify()

    def wait(self, start, limit_s=LIMIT_S):
        """The first line that starts so, or None; the ones before are in `lines` still."""
        def found():
            return next((line for line in self.lines if line.startswith((start, 'exit'))), None)
        with self.more:
            self.more.wait_for(found, limit_s)
            return found()

    def memory(self):
        """STag and offset of its memory, and of memory without access from outside."""
        if not self.places:
            self.places = [int(word, 0) for word in self.wait('memory').split()[1:]]
        return self.places

    def take(self):
        """What it has said since the last time."""
        self.memory()
        with self.more:
            lines, self.lines = self.lines, []
        return [line for line in lines if not line.startswith(('memory', 'listening', 'exit'))]

    def close(self):
        self.process.kill()
        self.process.wait()


class Stream:
    """A TCP connection with siw at the other end."""

    def __init__(self, sock):
        self.sock = sock
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.end = 'open'

    def send(self, data):
        try:
            self.sock.sendall(data)
        except OSError:
            pass

    def receive(self, enough=None, wait_s=WAIT_S):
        """What comes: `enough` bytes, or until nothing comes for wait_s, or until its end."""
        data = b''
        self.sock.settimeout(wait_s)
        try:
            while enough is None or len(data) < enough:
                piece = self.sock.recv(65536 if enough is None else enough - len(data))
                if not piece:
                    self.end = 'fin'
                    break
                data += piece
        except TimeoutError:
            pass
        except OSError:
            self.end = 'rst'
        return data

    def receive_frame(self):
        """A frame of MPA, as far as it comes."""
        data = self.receive(20, LIMIT_S)
        if len(data) == 20:
            data += self.receive(int.from_bytes(data[18:20], 'big'), LIMIT_S)
        return data

    def close(self):
        self.sock.close()


class Lab:
    """What the cases work with, and where they put their results."""

    def __init__(self, peer, kernel, known):
        self.peer_path, self.kernel, self.known = peer, kernel, known
        self.port = 9000
        self.facts = {}

    def load(self, *words):
        subprocess.run([f'{HERE}/siw_load.sh', self.kernel, *words], check=True)

    def listener(self, *words):
        self.port += 1
        peer = Peer(self.peer_path, f'listen={self.port}', *words)
        if peer.wait('listening') != 'listening':
            sys.exit(f'{words}: the program on siw0 does not listen: {peer.lines}')
        return peer

    def connect(self):
        """A stream to the last listener."""
        return Stream(socket.create_connection((ADDRESS, self.port), LIMIT_S))

    def connector(self, *words):
        """A program on siw0 that connects to here, and its stream."""
        listener = socket.create_server((ADDRESS, 0))
        listener.settimeout(LIMIT_S)
        peer = Peer(self.peer_path, f'connect={listener.getsockname()[1]}', *words)
        try:
            stream = Stream(listener.accept()[0])
        except TimeoutError:
            sys.exit(f'{words}: the program on siw0 does not connect: {peer.lines}')
        listener.close()
        return peer, stream

    def receive(self, stream, name, wait_s=WAIT_S):
        """What siw sends in the case `name`."""
        if name not in self.known:
            return stream.receive(wait_s=wait_s)
        end, data = self.known[name]
        got = stream.receive(len(data), LIMIT_S)
        if stream.end == 'open':
            got += stream.receive(wait_s=MORE_S if end == 'open' else LIMIT_S)
        return got

    def tell(self, name, text, end, data, peer_lines=(), mask=()):
        """A result. mask: ranges of bytes that differ from run to run; None: all may."""
        saw = '; '.join(re.sub(r' private 0 ird 0 ord 0$', '', line) for line in peer_lines)
        print(f'# {text}{"; siw0: " + saw if saw else ""}')
        print(f'{name} {end} {data.hex() or "-"}', flush=True)
        self.facts[name] = (end, data, mask)


def masked(data, mask):
    data = bytearray(data)
    for first, behind in mask:
        data[first:behind] = bytes(len(data[first:behind]))
    return bytes(data)


def read_facts(path):
    with open(path, encoding='ascii') as file:
        lines = [line.split() for line in file if line.strip() and line[0] != '#']
    return {name: (end, b'' if data == '-' else bytes.fromhex(data)) for name, end, data in lines}


def compare(lab):
    """The number of facts that differ from the known ones."""
    wrong = sorted(set(lab.facts) - set(lab.known))
    if wrong:
        print(f'failed: not known: {" ".join(wrong)}')
    for name in set(lab.known) & set(lab.facts):
        end, data, mask = lab.facts[name]
        known_end, known = lab.known[name]
        if mask is None:
            continue
        if end != known_end or masked(data, mask) != masked(known, mask):
            print(f'failed: {name}: {end} {data.hex()}, not {known_end} {known.hex()}')
            wrong.append(name)
    return len(wrong)


def main():
    parts = {'requests': siw_requests, 'data': siw_data, 'connects': siw_connects}
    parser = argparse.ArgumentParser()
    parser.add_argument('--known', metavar='FILE')
    parser.add_argument('--parts', default=','.join(parts))
    parser.add_argument('peer')
    parser.add_argument('kernel')
    options = parser.parse_args()
    lab = Lab(options.peer, os.path.realpath(options.kernel),
              read_facts(options.known) if options.known else {})
    started = time.monotonic()
    for name in options.parts.split(','):
        parts[name].run(lab)
    print(f'# {len(lab.facts)} facts in {time.monotonic() - started:.0f} s')
    sys.exit(1 if options.known and compare(lab) else 0)


if __name__ == '__main__':
    main()
