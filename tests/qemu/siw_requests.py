# SPDX-License-Identifier: BSD-2-Clause
"""How siw answers requests of MPA; for siw_facts.py."""
import time

from mpa import (CRC, ENHANCED, MARKERS, PEER_TO_PEER, REJECT, REPLY, REQUEST, RTR_READ, RTR_SEND,
                 RTR_WRITE, WRITE, enhanced, fpdu, frame, tagged)

PRIVATE = bytes(range(1, 6))
RTR = fpdu(tagged(WRITE, 1, 0))


def request_1(private=b'', **more):
    return frame(REQUEST, 1, private=private, **more)


def request_2(private=b'', flags=0, ird=7, ord_=6, flags_ird=0, flags_ord=0):
    return frame(REQUEST, 2, flags | ENHANCED,
                 enhanced(ird, ord_, flags_ird, flags_ord) + private)


# Name, what it is, the bytes.
REQUESTS = [
    ('request_0', 'revision 0', frame(REQUEST, 0)),
    ('request_1', 'revision 1', request_1()),
    ('request_1_private', 'revision 1, 5 bytes of private data', request_1(PRIVATE)),
    ('request_1_s', 'revision 1 with S, IRD 7, ORD 6',
     frame(REQUEST, 1, ENHANCED, enhanced(7, 6))),
    ('request_1_255', 'revision 1, 255 bytes of private data', request_1(bytes(255))),
    ('request_1_256', 'revision 1, 256 bytes of private data', request_1(bytes(256))),
    ('request_1_257', 'revision 1, 257 bytes of private data', request_1(bytes(257))),
    ('request_1_512', 'revision 1, 512 bytes of private data', request_1(bytes(512))),
    ('request_2_plain', 'revision 2 without S', frame(REQUEST, 2)),
    ('request_2', 'revision 2, IRD 7, ORD 6', request_2()),
    ('request_2_252', 'revision 2, 252 bytes of private data behind IRD and ORD',
     request_2(bytes(252))),
    ('request_2_253', 'revision 2, 253 bytes of private data behind IRD and ORD',
     request_2(bytes(253))),
    ('request_2_most', 'revision 2, IRD and ORD 16383', request_2(ird=0x3fff, ord_=0x3fff)),
    ('request_2_none', 'revision 2, IRD and ORD 0', request_2(ird=0, ord_=0)),
    ('request_2_short', 'revision 2 with S, 3 bytes of private data',
     frame(REQUEST, 2, ENHANCED, bytes(3))),
    ('request_2_empty', 'revision 2 with S, no private data', frame(REQUEST, 2, ENHANCED)),
    ('request_3', 'revision 3', frame(REQUEST, 3)),
    ('request_key', 'the key of a reply', frame(REPLY, 1)),
    ('request_markers', 'revision 1 with M', frame(REQUEST, 1, MARKERS)),
    ('request_2_markers', 'revision 2 with M, private data', request_2(PRIVATE, MARKERS)),
    ('request_crc', 'revision 1 with C', frame(REQUEST, 1, CRC)),
    ('request_2_crc', 'revision 2 with C', request_2(flags=CRC)),
    ('request_reject', 'revision 1 with R', frame(REQUEST, 1, REJECT)),
    ('request_reserved', 'revision 1 with all reserved bits', frame(REQUEST, 1, 0x0f00)),
    ('request_p2p_write', 'peer-to-peer, RTR by WRITE',
     request_2(flags_ird=PEER_TO_PEER, flags_ord=RTR_WRITE)),
    ('request_p2p_read', 'peer-to-peer, RTR by READ',
     request_2(flags_ird=PEER_TO_PEER, flags_ord=RTR_READ)),
    ('request_p2p_both', 'peer-to-peer, RTR by WRITE or READ',
     request_2(flags_ird=PEER_TO_PEER, flags_ord=RTR_WRITE | RTR_READ)),
    ('request_p2p_send', 'peer-to-peer, RTR by SEND',
     request_2(flags_ird=PEER_TO_PEER | RTR_SEND)),
    ('request_p2p_all', 'peer-to-peer, RTR by all three',
     request_2(flags_ird=PEER_TO_PEER | RTR_SEND, flags_ord=RTR_WRITE | RTR_READ)),
    ('request_p2p_none', 'peer-to-peer, no RTR', request_2(flags_ird=PEER_TO_PEER)),
    ('request_rtr_alone', 'RTR by WRITE without peer-to-peer', request_2(flags_ord=RTR_WRITE)),
    ('request_early', 'revision 1 and a byte behind it', request_1() + b'\0'),
    ('request_early_private', 'revision 1 with private data and a byte behind it',
     request_1(PRIVATE) + b'\0'),
    ('request_early_2', 'revision 2 and the FPDU of a WRITE of 0 bytes behind it',
     request_2() + RTR),
]


def answer(lab, peer, name, text, request):
    """One request, and what comes within a moment."""
    stream = lab.connect()
    stream.send(request)
    data = lab.receive(stream, name)
    end = stream.end
    lines = peer.take()
    if data[16:17] == b'\x10' and data[20] & 0x80:
        # Who ends a connection that waits for its RTR stops the kernel: iw_cm takes the end of a
        # connection that is not established for a fault of its own.
        stream.send(RTR)
        peer.wait('event ESTABLISHED')
    stream.close()
    if any('CONNECT_REQUEST' in line for line in lines) and 'ended' not in lines:
        peer.wait('ended', 2)
        peer.take()
    lab.tell(name, text, end, data, [line for line in lines if line != 'ended'])


def slowly(lab, peer):
    """A request whose bytes come one by one, and one that does not come."""
    stream = lab.connect()
    for byte in request_2(PRIVATE):
        stream.send(bytes([byte]))
        time.sleep(0.005)
    data = lab.receive(stream, 'request_bytewise', 5)
    lab.tell('request_bytewise', 'revision 2, a byte at a time', stream.end, data, peer.take())
    stream.close()
    peer.wait('ended', 2)
    peer.take()
    stream = lab.connect()
    started = time.monotonic()
    data = lab.receive(stream, 'request_never', 12)
    seconds = time.monotonic() - started
    stream.close()
    lab.tell('request_never', f'no request; it waits {seconds:.0f} s', stream.end, data,
             peer.take())


def run(lab):
    peer = lab.listener('ird=2', 'ord=3', 'private=3')
    for name, text, request in REQUESTS:
        answer(lab, peer, name, 'IRD 2, ORD 3 and 3 bytes by rdma_accept; ' + text, request)
    slowly(lab, peer)
    peer.close()
    for size in (251, 252, 253):
        peer = lab.listener(f'private={size}')
        answer(lab, peer, f'accept_{size}', f'rdma_accept with {size} bytes, revision 2',
               request_2())
        answer(lab, peer, f'accept_1_{size}', f'rdma_accept with {size} bytes, revision 1',
               request_1())
        peer.close()
    peer = lab.listener('reject=1', 'private=5')
    for revision in (0, 1):
        answer(lab, peer, f'reject_{revision}', f'rdma_reject, revision {revision}',
               frame(REQUEST, revision, private=PRIVATE))
    answer(lab, peer, 'reject_2', 'rdma_reject, revision 2', request_2(PRIVATE))
    answer(lab, peer, 'reject_2_p2p', 'rdma_reject, revision 2 with peer-to-peer and C',
           request_2(flags=CRC, flags_ird=PEER_TO_PEER, flags_ord=RTR_WRITE))
    peer.close()
