# SPDX-License-Identifier: BSD-2-Clause
"""What siw does with FPDUs, right and wrong ones, and what it sends of its own; for
siw_facts.py."""
from mpa import (CRC, PEER_TO_PEER, READ_RESPONSE, RTR_READ, RTR_WRITE, SEND, SEND_INV,
                 SEND_SE, TERMINATE, WRITE, fpdu, read_request, send, tagged, untagged)
from siw_requests import request_2

# An STag that siw has not, and of this end's, which siw only repeats.
BAD, SINK, SINK_TO = 0x12345678, 0x0a0b0c0d, 0x1122334455667788
DATA = bytes(range(0x41, 0x51))
# Of a TERMINATE, from the FPDU's length: where a tagged header or that of a READ request lies.
TAGGED_STAG_TO = ((28, 40),)
READ_SOURCE = ((60, 72),)


def segments(stag, offset, local, local_to):
    """Name, what it is, ULPDUs; after them what differs from run to run."""
    def read(msn, size, stag, to, **more):
        return read_request(msn, SINK, SINK_TO, size, stag, to, **more)
    return [
        ('write_read', 'WRITE of 16 bytes, and READ of them',
         [tagged(WRITE, stag, offset, DATA), read(1, 16, stag, offset)]),
        ('read_3', 'READ of 3 bytes', [read(1, 3, stag, offset)]),
        ('read_0', 'READ of 0 bytes of STag 0', [read(1, 0, 0, 0)]),
        ('write_0', 'WRITE of 0 bytes to an unknown STag', [tagged(WRITE, BAD, 0)]),
        ('write_stag', 'WRITE to an unknown STag', [tagged(WRITE, BAD, 0x1000, DATA)]),
        ('write_key', 'WRITE to an STag with a wrong key',
         [tagged(WRITE, stag ^ 1, offset, DATA)], TAGGED_STAG_TO),
        ('write_bounds', 'WRITE over the end of the memory',
         [tagged(WRITE, stag, offset + 4090, DATA)], TAGGED_STAG_TO),
        ('write_before', 'WRITE in front of the memory',
         [tagged(WRITE, stag, offset - 1, DATA)], TAGGED_STAG_TO),
        ('write_wrap', 'WRITE over the end of the 64 bits',
         [tagged(WRITE, stag, 2**64 - 8, DATA)], TAGGED_STAG_TO),
        ('write_access', 'WRITE to an STag without REMOTE_WRITE',
         [tagged(WRITE, local, local_to, DATA)], TAGGED_STAG_TO),
        ('send', 'SEND', [send(1, DATA)]),
        ('send_se', 'SEND with solicited event', [send(1, DATA, SEND_SE)]),
        ('send_0', 'SEND of 0 bytes', [send(1, b'')]),
        ('send_split', 'SEND of two segments',
         [send(1, DATA[:8], last=0), send(1, DATA[8:], offset=8)]),
        ('send_no_buffer', 'two SENDs, one buffer', [send(1, DATA), send(2, DATA)]),
        ('send_long', 'SEND of 65 bytes to a buffer of 64', [send(1, bytes(65))]),
        ('send_msn', 'SEND with MSN 2 first', [send(2, DATA)]),
        ('send_msn_0', 'SEND with MSN 0', [send(0, DATA)]),
        ('send_qn', 'SEND with QN 1', [send(1, DATA, queue=1)]),
        ('send_qn_3', 'SEND with QN 3', [send(1, DATA, queue=3)]),
        ('send_mo', 'SEND with MO 4', [send(1, DATA, offset=4)]),
        ('send_inv_stag', 'SEND that invalidates an unknown STag',
         [send(1, DATA, SEND_INV, invalidate=BAD)]),
        ('send_mixed', 'SEND without L, then SEND with solicited event',
         [send(1, DATA, last=0), send(1, DATA, SEND_SE, offset=16)]),
        ('send_write_between', 'a WRITE between the segments of a SEND',
         [send(1, DATA[:8], last=0), tagged(WRITE, stag, offset, DATA),
          send(1, DATA[8:], offset=8)]),
        ('read_stag', 'READ of an unknown STag', [read(1, 16, BAD, 0x1000)]),
        ('read_key', 'READ of an STag with a wrong key', [read(1, 16, stag ^ 1, offset)],
         READ_SOURCE),
        ('read_bounds', 'READ over the end of the memory', [read(1, 16, stag, offset + 4090)],
         READ_SOURCE),
        ('read_access', 'READ of an STag without REMOTE_READ', [read(1, 16, local, local_to)],
         READ_SOURCE),
        ('read_msn', 'READ with MSN 2 first', [read(2, 16, stag, offset)], READ_SOURCE),
        ('read_qn', 'READ with QN 0', [read(1, 16, stag, offset, queue=0)], READ_SOURCE),
        ('read_mo', 'READ with MO 4', [read(1, 3, stag, offset, offset=4)], READ_SOURCE),
        ('read_not_last', 'READ without L', [read(1, 3, stag, offset, last=0)], READ_SOURCE),
        ('read_many', '12 READs of 3 bytes, IRD 6',
         [read(msn, 3, stag, offset) for msn in range(1, 13)], None),
        ('read_response', 'READ response to no request',
         [tagged(READ_RESPONSE, SINK, SINK_TO, DATA)]),
        ('terminate', 'TERMINATE: RDMAP, remote protection, bounds',
         [untagged(TERMINATE, 2, 1, bytes.fromhex('01010000'))]),
        ('ddp_version_tagged', 'WRITE of DDP version 0',
         [tagged(WRITE, BAD, 0x1000, DATA, ddp_version=0)]),
        ('ddp_version', 'SEND of DDP version 2', [send(1, DATA, ddp_version=2)]),
        ('rdmap_version', 'SEND of RDMAP version 0', [send(1, DATA, rdmap_version=0)]),
        ('opcode_8', 'immediate data (opcode 8)', [untagged(8, 0, 1, DATA[:8])]),
        ('opcode_10', 'atomic request (opcode 10)', [untagged(10, 1, 1, bytes(52))]),
        ('opcode_15', 'opcode 15', [untagged(15, 0, 1, DATA)]),
        ('ulpdu_0', 'FPDU of 0 bytes', [b'']),
        ('ulpdu_10', 'FPDU of 10 bytes', [send(1, DATA)[:10]]),
        ('ulpdu_17', 'SEND of 17 bytes, 1 less than its header', [send(1, b'')[:17]]),
    ]


def established(lab, flags=0, **more):
    """A stream behind the set-up with the last listener."""
    stream = lab.connect()
    stream.send(request_2(flags=flags, **more))
    stream.receive_frame()
    return stream


def end(peer, stream):
    """Closes it; what the program on siw0 saw, but for its parting."""
    stream.close()
    peer.wait('ended', 5)
    return [line for line in peer.take() if line != 'ended' and
            not line.startswith(('event CONNECT_REQUEST', 'event ESTABLISHED', 'accepted'))]


def send_segments(lab):
    peer = lab.listener('ird=6')
    for name, text, ulpdus, *mask in segments(*peer.memory()):
        stream = established(lab)
        stream.send(b''.join(fpdu(ulpdu) for ulpdu in ulpdus))
        data = lab.receive(stream, name)
        lab.tell(name, text, stream.end, data, end(peer, stream), *mask)
    stream = established(lab)
    stream.sock.shutdown(1)
    data = lab.receive(stream, 'fin')
    lab.tell('fin', 'the end of the stream', stream.end, data, end(peer, stream))
    stag, offset, *_ = peer.memory()
    stream = established(lab)
    stream.send(fpdu(send(1, DATA, SEND_INV, invalidate=stag)) +
                fpdu(tagged(WRITE, stag, offset, DATA)))
    data = lab.receive(stream, 'send_inv')
    lab.tell('send_inv', 'SEND that invalidates an STag, and a WRITE to it', stream.end, data,
             end(peer, stream), TAGGED_STAG_TO)
    peer.close()


def send_with_crc(lab):
    peer = lab.listener('ird=6')
    stag, offset, *_ = peer.memory()
    read = read_request(1, SINK, SINK_TO, 3, stag, offset)
    write = tagged(WRITE, stag, offset, b'abc')
    for name, text, data in (
            ('crc_read', 'with CRC: READ of 3 bytes', fpdu(read, True)),
            ('crc_send_bad', 'with CRC: SEND with a wrong CRC', fpdu(send(1, DATA), False)),
            ('crc_read_bad', 'with CRC: READ request with a wrong CRC', fpdu(read, False)),
            ('crc_write_bad', 'with CRC: WRITE with a wrong CRC', fpdu(write, False)),
            ('crc_read_after', 'with CRC: READ of the memory after that', fpdu(read, True)),
            ('crc_write_stag', 'with CRC: WRITE to an unknown STag',
             fpdu(tagged(WRITE, BAD, 0x1000, DATA), True)),
            ('crc_both_bad', 'with CRC: WRITE to an unknown STag with a wrong CRC',
             fpdu(tagged(WRITE, BAD, 0x1000, DATA), False))):
        stream = established(lab, CRC)
        stream.send(data)
        data = lab.receive(stream, name)
        lab.tell(name, text, stream.end, data, end(peer, stream))
    peer.close()


# What the program on siw0 does when it is connected.
WORK = [
    ('own_send', 'send:5'), ('own_se', 'se:5'), ('own_inv', 'inv:5'), ('own_send_0', 'send:0'),
    ('own_write', 'write:5'), ('own_read', 'read:5'), ('own_reads', 'read:1,read:2,send:1'),
    ('own_disconnect', 'disconnect'), ('own_error', 'error'),
    ('own_send_error', 'send:5,error'),
]


def own_work(lab):
    place = (f'stag={SINK:#x}', f'to={SINK_TO:#x}')
    for name, work in WORK:
        peer = lab.listener(f'work={work}', *place)
        stream = established(lab)
        data = lab.receive(stream, name)
        # Of a READ request: STag and offset of the sink.
        mask = [(20, 32), (72, 84)] if 'read' in work else []
        lab.tell(name, f'the program on siw0 does {work}', stream.end, data, end(peer, stream),
                 mask)
        peer.close()
    peer = lab.listener('work=send:5', 'early=1', *place)
    stream = established(lab)
    data = lab.receive(stream, 'early_send')
    lab.tell('early_send', 'it sends right after rdma_accept, no RTR', stream.end, data,
             end(peer, stream))
    for name, rtr, first in (('early_send_rtr_write', RTR_WRITE, tagged(WRITE, 1, 0)),
                             ('early_send_rtr_read', RTR_READ, read_request(1, 1, 0, 0, 1, 0)),
                             ('early_send_rtr_send', RTR_WRITE, send(1, DATA))):
        stream = established(lab, flags_ird=PEER_TO_PEER, flags_ord=rtr)
        before = lab.receive(stream, name + '_before')
        saw = peer.take()
        stream.send(fpdu(first))
        data = lab.receive(stream, name)
        lab.tell(name + '_before', 'it sends right after rdma_accept, RTR agreed but not sent',
                 'open', before, saw)
        lab.tell(name, 'the same after the RTR', stream.end, data, end(peer, stream))
    peer.close()


def run(lab):
    send_segments(lab)
    send_with_crc(lab)
    own_work(lab)
