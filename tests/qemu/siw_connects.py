# SPDX-License-Identifier: BSD-2-Clause
"""The requests of MPA that the variants of siw send, and what they make of replies; for
siw_facts.py."""
import time

from mpa import (CRC, ENHANCED, MARKERS, PEER_TO_PEER, REJECT, REPLY, REQUEST, RTR_READ, RTR_WRITE,
                 enhanced, fpdu, frame, send)

PRIVATE = bytes(range(1, 6))


def reply_2(private=b'', flags=0, ird=3, ord_=2, flags_ird=0, flags_ord=0):
    return frame(REPLY, 2, flags | ENHANCED, enhanced(ird, ord_, flags_ird, flags_ord) + private)


# To a request with IRD 2 and ORD 3, without CRC and RTR. Not among them, because they end the
# kernel or read behind its memory: more than 256 bytes of private data (with IRD and ORD), for
# which siw reports private data at address 0, and S with less than 4 bytes.
REPLIES = [
    ('reply_2', 'revision 2, IRD 3, ORD 2', reply_2()),
    ('reply_2_private', 'revision 2, 5 bytes of private data', reply_2(PRIVATE)),
    ('reply_2_252', 'revision 2, 252 bytes of private data', reply_2(bytes(252))),
    ('reply_1', 'revision 1', frame(REPLY, 1)),
    ('reply_0', 'revision 0', frame(REPLY, 0)),
    ('reply_2_plain', 'revision 2 without S', frame(REPLY, 2)),
    ('reply_3', 'revision 3', frame(REPLY, 3)),
    ('reply_key', 'the key of a request', frame(REQUEST, 2, ENHANCED, enhanced(3, 2))),
    ('reply_crc', 'C', reply_2(flags=CRC)),
    ('reply_markers', 'M', reply_2(flags=MARKERS)),
    ('reply_reject', 'R with 5 bytes of private data', reply_2(PRIVATE, REJECT)),
    ('reply_reject_1', 'R, revision 1', frame(REPLY, 1, REJECT)),
    ('reply_ird_0', 'IRD and ORD 0', reply_2(ird=0, ord_=0)),
    ('reply_ird_9', 'IRD and ORD 9', reply_2(ird=9, ord_=9)),
    ('reply_ord_128', 'ORD 128', reply_2(ord_=128)),
    ('reply_ord_129', 'ORD 129', reply_2(ord_=129)),
    ('reply_ird_129', 'IRD 129', reply_2(ird=129)),
    ('reply_p2p', 'peer-to-peer, RTR by WRITE',
     reply_2(flags_ird=PEER_TO_PEER, flags_ord=RTR_WRITE)),
    ('reply_early', 'an FPDU behind it', reply_2() + fpdu(send(1, PRIVATE))),
    ('reply_early_byte', 'a byte behind it', reply_2() + b'\0'),
]

# To a request of the variant p2p.
RTR_REPLIES = [
    ('rtr_write', 'RTR by WRITE', reply_2(flags_ird=PEER_TO_PEER, flags_ord=RTR_WRITE)),
    ('rtr_read', 'RTR by READ', reply_2(flags_ird=PEER_TO_PEER, flags_ord=RTR_READ)),
    ('rtr_both', 'RTR by WRITE and READ',
     reply_2(flags_ird=PEER_TO_PEER, flags_ord=RTR_WRITE | RTR_READ)),
    ('rtr_none', 'no RTR', reply_2(flags_ird=PEER_TO_PEER)),
    ('rtr_alone', 'RTR by WRITE without peer-to-peer', reply_2(flags_ord=RTR_WRITE)),
]

# Of the variants crc and strict.
CRC_REPLIES = [
    ('c', 'C', reply_2(flags=CRC)),
    ('no_c', 'no C', reply_2()),
]


def request(lab, name, text, *words):
    """The frame that siw sends."""
    peer, stream = lab.connector(*words)
    data = stream.receive_frame()
    if stream.end == 'open':
        data += stream.receive(wait_s=0.3)
    lab.tell(name, text, stream.end, data)
    stream.close()
    peer.close()


def answer(lab, name, text, reply, *work):
    """A reply to siw, and what it sends then."""
    peer, stream = lab.connector('ird=2', 'ord=3', *work)
    stream.receive_frame()
    stream.send(reply)
    data = lab.receive(stream, name)
    end = stream.end
    if end != 'open':
        peer.wait('ended', 5)
    saw = peer.take()
    stream.close()
    peer.close()
    lab.tell(name, text, end, data, [line for line in saw if line != 'ended'])


def never(lab):
    peer, stream = lab.connector()
    stream.receive_frame()
    started = time.monotonic()
    data = lab.receive(stream, 'reply_never', 15)
    seconds = time.monotonic() - started
    stream.close()
    peer.wait('event', 3)
    lab.tell('reply_never', f'no reply; it waits {seconds:.0f} s', stream.end, data,
             [line for line in peer.take() if line != 'ended'])
    peer.close()
    peer, stream = lab.connector()
    stream.receive_frame()
    stream.close()
    peer.wait('event', 3)
    lab.tell('reply_closed', 'the connection ends instead of a reply', 'open', b'',
             [line for line in peer.take() if line != 'ended'])
    peer.close()


def run(lab):
    for size in (0, 5, 251, 252, 255):
        request(lab, f'connect_{size}', f'rdma_connect with {size} bytes, IRD 2, ORD 3',
                f'private={size}', 'ird=2', 'ord=3')
    for name, text, reply in REPLIES:
        answer(lab, name, 'reply: ' + text, reply)
    never(lab)
    lab.load('p2p')
    request(lab, 'connect_p2p', 'variant p2p: rdma_connect with IRD 2, ORD 3', 'ird=2', 'ord=3')
    request(lab, 'connect_p2p_0', 'variant p2p: rdma_connect with IRD 0, ORD 0', 'ird=0', 'ord=0')
    for name, text, reply in RTR_REPLIES:
        answer(lab, name, 'variant p2p: reply with ' + text, reply, 'work=send:5')
    for variant, words in (('crc', ['crc']), ('strict', ['crc', 'strict'])):
        lab.load(*words)
        request(lab, f'connect_{variant}', f'variant {variant}: rdma_connect with IRD 2, ORD 3',
                'ird=2', 'ord=3')
        for name, text, reply in CRC_REPLIES:
            answer(lab, f'{variant}_reply_{name}', f'variant {variant}: reply with {text}', reply,
                   'work=send:5')
        peer = lab.listener()
        for name, text, flags in (('c', 'with C', CRC), ('no_c', 'without C', 0)):
            stream = lab.connect()
            stream.send(frame(REQUEST, 2, ENHANCED | flags, enhanced(7, 6)))
            data = lab.receive(stream, f'{variant}_request_{name}')
            lab.tell(f'{variant}_request_{name}', f'variant {variant}: request {text}', stream.end,
                     data)
            stream.close()
            peer.wait('ended', 2)
            peer.take()
        peer.close()
