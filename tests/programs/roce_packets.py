#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Checks the RoCE v2 packets of a capture, independently of busbar's own code.

roce_packets.py FILE.pcap [OPERATIONS]: prints how many packets of each operation there are;
each whose ICRC, padding or length is wrong is an error (IBA volume 1, 9.2; RoCE v2 annex
A17), and so is the lack of an operation that the file OPERATIONS names, one per line.
Exit status: 0 all are right and there is one at least, 1 not.
"""
import collections
import struct
import sys
import zlib

ROCE_PORT = 4791
SERVICES = {0: 'RC', 1: 'UC', 2: 'RD', 3: 'UD', 5: 'XRC'}
OPERATIONS = ('SEND first', 'SEND middle', 'SEND last', 'SEND last imm', 'SEND only',
              'SEND only imm', 'WRITE first', 'WRITE middle', 'WRITE last', 'WRITE last imm',
              'WRITE only', 'WRITE only imm', 'READ request', 'READ first', 'READ middle',
              'READ last', 'READ only', 'ACK', 'ATOMIC ACK', 'CMP SWAP', 'FETCH ADD', 'reserved',
              'SEND last inv', 'SEND only inv')


def pcap_packets(path):
    """Time in nanoseconds and IP packet of each record; Ethernet or raw IP."""
    with open(path, 'rb') as file:
        data = file.read()
    magic = struct.unpack_from('<I', data)[0]
    unit_ns = {0xa1b2c3d4: 1000, 0xa1b23c4d: 1}[magic]
    link = struct.unpack_from('<I', data, 20)[0]
    skip = {1: 14, 101: 0, 113: 16, 276: 20}[link]
    at = 24
    while at + 16 <= len(data):
        seconds, part, kept, length = struct.unpack_from('<IIII', data, at)
        at += 16
        if kept != length:
            raise ValueError('the capture has shortened packets')
        yield seconds * 10**9 + part * unit_ns, data[at + skip:at + kept]
        at += kept


def udp_offset(packet):
    """Where the UDP header of a RoCE v2 packet begins; None: it is another packet."""
    if len(packet) < 28:
        return None
    version = packet[0] >> 4
    at, protocol = ((packet[0] & 15) * 4, packet[9]) if version == 4 else (40, packet[6])
    if protocol != 17 or len(packet) < at + 8:
        return None
    if struct.unpack_from('>H', packet, at + 2)[0] != ROCE_PORT:
        return None
    return at


def icrc(packet, udp):
    """The ICRC that the packet should have: over what no router changes."""
    masked = bytearray(packet[:-4])
    if packet[0] >> 4 == 4:
        masked[1] = masked[8] = masked[10] = masked[11] = 0xff   # TOS, TTL, checksum
    else:
        masked[0] |= 0x0f                                        # class, flow label
        masked[1:4] = b'\xff\xff\xff'
        masked[7] = 0xff                                         # hop limit
    masked[udp + 6] = masked[udp + 7] = 0xff                     # UDP checksum
    masked[udp + 8 + 4] = 0xff                                   # BTH: FECN, BECN, reserved
    return struct.pack('<I', zlib.crc32(b'\xff' * 8 + bytes(masked)))


def fault(packet, udp):
    """What is wrong with a packet; None: nothing."""
    total = (struct.unpack_from('>H', packet, 2)[0] if packet[0] >> 4 == 4 else
             40 + struct.unpack_from('>H', packet, 4)[0])
    if total != len(packet):
        return f'IP length {total} of {len(packet)} bytes'
    if struct.unpack_from('>H', packet, udp + 4)[0] != total - udp:
        return 'UDP length'
    if total - udp < 8 + 12 + 4:
        return 'shorter than its headers'
    if (total - udp - 8) % 4:
        return 'not a multiple of four bytes'
    if packet[-4:] != icrc(packet, udp):
        return f'ICRC {packet[-4:].hex()}, not {icrc(packet, udp).hex()}'
    return None


def operation(packet, udp):
    """Service and operation of a packet in words."""
    opcode = packet[udp + 8]
    if opcode == 0x81:
        return 'CNP'
    words = SERVICES.get(opcode >> 5, 'service %d' % (opcode >> 5))
    number = opcode & 31
    words += ' ' + (OPERATIONS[number] if number < len(OPERATIONS) else str(number))
    if 'ACK' in words or 'READ' in words and 'request' not in words and 'middle' not in words:
        kind = packet[udp + 8 + 12] >> 5 & 3                     # of the AETH's syndrome
        return words + ('', ' RNR', ' reserved', ' NAK')[kind]
    return words


def main():
    counts = collections.Counter()
    wrong = 0
    for number, (_, packet) in enumerate(pcap_packets(sys.argv[1]), 1):
        udp = udp_offset(packet)
        if udp is None:
            continue
        counts[operation(packet, udp)] += 1
        what = fault(packet, udp)
        if what:
            wrong += 1
        if what and wrong <= 20:
            print(f'packet {number}, {operation(packet, udp)}: {what}')
    for what, count in sorted(counts.items()):
        print(f'{count:7} {what}')
    if len(sys.argv) > 2:
        with open(sys.argv[2], encoding='ascii') as file:
            missing = [line for line in file.read().splitlines()
                       if line and not line.startswith('#') and line not in counts]
        print(''.join(f'no packet of: {what}\n' for what in missing), end='')
        wrong += len(missing)
    return 1 if wrong or not counts else 0


if __name__ == '__main__':
    sys.exit(main())
