# SPDX-License-Identifier: BSD-2-Clause
"""interop.py's side of a guest: its start, programs in it by agent.py, its end."""
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time

HERE = os.path.dirname(os.path.realpath(__file__))
AGENT_PORT = 7000
BOOT_S = 150


class GuestProgram:
    """A program in the guest, or another request to agent.py."""

    def __init__(self, address, request):
        self.socket = socket.create_connection((address, AGENT_PORT), timeout=20)
        self.socket.settimeout(None)
        self.socket.sendall(json.dumps(request).encode() + b'\n')
        self.text = b''
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def _read(self):
        try:
            while piece := self.socket.recv(65536):
                self.text += piece
        except OSError:
            pass

    def wait(self, limit_s):
        """Its exit status; None when it does not end in time."""
        self.reader.join(limit_s)
        if self.reader.is_alive():
            return None
        # Without a status the guest is gone.
        status = self.text.partition(b'\0')[2]
        return int(status) if status else 125

    def running(self):
        return self.reader.is_alive()

    def output(self):
        return self.text.partition(b'\0')[0].decode(errors='replace')

    def close(self):
        """Ends it if it is still running."""
        self.socket.shutdown(socket.SHUT_RDWR) if self.running() else None
        self.reader.join()
        self.socket.close()


class Guest:
    """A virtual machine on a tap device, with rxe0 or siw0."""
    is_guest = True

    def __init__(self, name, tap, addresses, options, mtu_bytes):
        self.name = name
        self.device = 'siw0' if options.siw else 'rxe0'
        self.kernel = os.path.realpath(options.kernel)
        self.busbar = options.busbar
        self.siw = 'p2p' if options.siw else ''  # what it calls with
        self.addresses = addresses
        self.indexes = {}
        # Without checksum and segmentation offload: frames of the guest are those of a wire.
        off = ','.join(f'{what}=off' for what in (
            'csum', 'guest_csum', 'gso', 'guest_tso4', 'guest_tso6', 'guest_ecn', 'guest_ufo',
            'host_tso4', 'host_tso6', 'host_ecn', 'host_ufo'))
        number = addresses[0].rpartition('.')[2]
        self.machine = subprocess.Popen(
            [f'{HERE}/guest.sh', '--time', options.time,
             '--netdev', f'tap,ifname={tap},script=no,downscript=no',
             '--device', f'mac=52:54:00:86:00:{int(number):02x},{off}',
             '--address', f'{addresses[0]}/24', '--address', f'{addresses[1]}/64',
             '--mtu', str(mtu_bytes), *(['--siw', self.siw] if options.siw else []),
             options.kernel, '--', 'python3', f'{HERE}/agent.py', str(AGENT_PORT)],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)

    def wait_boot(self):
        end = time.monotonic() + BOOT_S
        while self.machine.poll() is None and time.monotonic() < end:
            try:
                socket.create_connection((self.addresses[0], AGENT_PORT), 1).close()
                return
            except OSError:
                time.sleep(0.1)
        if self.machine.poll() is None:
            print('the guest did not start in time')
            self.machine.terminate()
        print(self.machine.communicate()[0].decode(errors='replace'))
        sys.exit(77 if self.machine.returncode == 77 else 1)

    def check(self):
        """Ends this program, with what guest.sh says, where the guest has ended by itself."""
        try:
            self.machine.wait(1)
        except subprocess.TimeoutExpired:
            return
        print(self.machine.communicate()[0].decode(errors='replace'))
        sys.exit(1)

    def start(self, words, by_library=False):
        """by_library: with busbar's libraries on the kernel's device."""
        if by_library:
            words = ['env', 'BUSBAR_DEVICES=system', self.busbar, 'exec', '-q', '--', *words]
        return GuestProgram(self.addresses[0], {'run': words})

    def command(self, *words):
        """Output of a command that has to be good."""
        program = self.start(words)
        status = program.wait(60)
        text = program.output()
        program.close()
        if status != 0:
            raise RuntimeError(f'{words} in the guest: status {status}: {text}')
        return text

    def set_mtu(self, mtu_bytes):
        self.command('ip', 'link', 'set', 'eth0', 'mtu', str(mtu_bytes))

    def set_loss(self, netem):
        """Damage to the packets that it sends, in the words of tc-netem(8); '': none."""
        self.command('tc', 'qdisc', 'replace', 'dev', 'eth0', 'root',
                     *(['netem', *netem.split()] if netem else ['pfifo']))

    def set_way(self, way):
        """What siw calls with from now on (iwarp_pairs.WAYS)."""
        if way.siw != self.siw:
            self.command(f'{HERE}/siw_load.sh', self.kernel, *way.siw.split())
            self.siw = way.siw

    def set_faults(self, _):
        """Of busbar, in whose place this is."""

    def gid_index(self, address):
        if address not in self.indexes:
            table = self.command('sh', '-c',
                                 f'cd /sys/class/infiniband/{self.device}/ports/1/gids; '
                                 'grep . *')
            family = socket.AF_INET6 if ':' in address else socket.AF_INET
            raw = socket.inet_pton(family, address)
            wanted = (b'\0' * 10 + b'\xff\xff' + raw if len(raw) == 4 else raw).hex()
            for line in table.splitlines():
                index, _, gid = line.partition(':')
                if gid.replace(':', '') == wanted:
                    self.indexes[address] = int(index)
        return self.indexes[address]

    def wait_listens(self, kind, port, limit_s):
        """Until one of its programs listens on the port; False: none did."""
        request = GuestProgram(self.addresses[0], {'listens': [kind, port]})
        status = request.wait(limit_s)
        request.close()
        return status == 0

    def close(self):
        if self.machine.poll() is None:
            try:
                with socket.create_connection((self.addresses[0], AGENT_PORT), 5) as agent:
                    agent.sendall(b'{"end": true}\n')
                    agent.recv(1)
                self.machine.wait(20)
            except (OSError, subprocess.TimeoutExpired):
                self.machine.terminate()
                self.machine.wait()
        self.machine.stdout.close()


class Capture:
    """All packets of RDMA on an interface, in a file."""

    def __init__(self, interface, options):
        self.process = subprocess.Popen(
            ['tcpdump', '-i', interface, '-w', options.capture, '-U', '-s', '0', '-Z', 'root',
             f'tcp and not port {AGENT_PORT}' if options.siw else 'udp port 4791'],
            stderr=subprocess.PIPE, text=True)
        # Its first line comes when it captures.
        self.process.stderr.readline()

    def close(self):
        self.process.send_signal(signal.SIGINT)
        self.process.communicate()
