# SPDX-License-Identifier: BSD-2-Clause
"""Frames of MPA, FPDUs and DDP segments of iWARP, byte by byte: what siw_facts.py sends.

Nothing is checked here, because most of what it sends is wrong on purpose.
"""
import struct

REQUEST, REPLY = b'MPA ID Req Frame', b'MPA ID Rep Frame'
MARKERS, CRC, REJECT, ENHANCED = 0x8000, 0x4000, 0x2000, 0x1000
PEER_TO_PEER, RTR_SEND, RTR_WRITE, RTR_READ = 0x8000, 0x4000, 0x8000, 0x4000

WRITE, READ_REQUEST, READ_RESPONSE, SEND, SEND_INV, SEND_SE, SEND_SE_INV, TERMINATE = range(8)
LAST = 0x4000

# CRC-32C, reflected, a bit at a time.
CRC_TABLE = []
for index in range(256):
    register = index
    for _ in range(8):
        register = register >> 1 ^ (0x82f63b78 if register & 1 else 0)
    CRC_TABLE.append(register)


def crc32c(data):
    crc = 0xffffffff
    for byte in data:
        crc = crc >> 8 ^ CRC_TABLE[(crc ^ byte) & 0xff]
    return crc ^ 0xffffffff


def frame(key, revision, flags=0, private=b'', length=None):
    """A request or reply; `length`: what it says of its private data."""
    return key + struct.pack('>HH', flags | revision,
                             len(private) if length is None else length) + private


def enhanced(ird, ord_, flags_ird=0, flags_ord=0):
    """Private data of revision 2: IRD and ORD, each with two flags."""
    return struct.pack('>HH', ird | flags_ird, ord_ | flags_ord)


def fpdu(ulpdu, crc=None, length=None):
    """crc: None: the field is 0; True: right; False: wrong."""
    data = struct.pack('>H', len(ulpdu) if length is None else length) + ulpdu
    data += bytes(-len(data) % 4)
    field = 0 if crc is None else crc32c(data) ^ (0 if crc else 1)
    return data + struct.pack('<I', field)


def control(opcode, flags, ddp_version=1, rdmap_version=1):
    return struct.pack('>H', flags | ddp_version << 8 | rdmap_version << 6 | opcode)


def tagged(opcode, stag, offset, data=b'', last=LAST, **versions):
    return control(opcode, 0x8000 | last, **versions) + struct.pack('>IQ', stag, offset) + data


def untagged(opcode, queue, msn, data=b'', offset=0, last=LAST, invalidate=0, **versions):
    return control(opcode, last, **versions) + struct.pack('>IIII', invalidate, queue, msn,
                                                           offset) + data


def send(msn, data, opcode=SEND, **more):
    return untagged(opcode, more.pop('queue', 0), msn, data, **more)


def read_request(msn, sink_stag, sink_to, size, stag, to, **more):
    return untagged(READ_REQUEST, more.pop('queue', 1), msn,
                    struct.pack('>IQIIQ', sink_stag, sink_to, size, stag, to), **more)
