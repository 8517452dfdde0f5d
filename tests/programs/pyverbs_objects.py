#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Opens and exercises one kind of object through pyverbs.

pyverbs_objects.py DEVICE OBJECT; `list` in the place of OBJECT names them. Each
object is used for what it is there for, not only created. An error of the
library or a wrong result ends the program with a trace and status 1.
"""
import errno
import os
import sys

from pyverbs.addr import AH, AHAttr, GlobalRoute
from pyverbs.cmid import AddrInfo, CMID
from pyverbs.cq import CQ, CQEX, CompChannel, CqInitAttrEx, PollCqAttr
from pyverbs.device import AllocDmAttr, Context, DM, get_device_list
from pyverbs.mr import DMMR, MR, MW, MWBind, MWBindInfo
from pyverbs.pd import PD, ParentDomain, ParentDomainInitAttr
from pyverbs.pyverbs_error import PyverbsRDMAError
from pyverbs.qp import (QP, QPAttr, QPCap, QPEx, QPInitAttr, QPInitAttrEx)
from pyverbs.srq import SRQ, SrqAttr, SrqInitAttr, SrqInitAttrEx
from pyverbs.wr import RecvWR, SGE, SendWR
from pyverbs.xrcd import XRCD, XRCDInitAttr
import pyverbs.enums as e

PORT = 1
QKEY = 0x11111111
GRH_BYTES = 40
POLLS = 10000000
RDMA_PS_TCP = 0x0106
RAI_PASSIVE = 1
ACCESS = (e.IBV_ACCESS_LOCAL_WRITE | e.IBV_ACCESS_REMOTE_WRITE |
          e.IBV_ACCESS_REMOTE_READ | e.IBV_ACCESS_REMOTE_ATOMIC)

OBJECTS = {}


def shows(function):
    """Puts a function into the table of objects."""
    OBJECTS[function.__name__] = function
    return function


def same(got, want, what):
    if got != want:
        raise AssertionError(f'{what} is {got!r}, not {want!r}')


class Side:
    """A protection domain, a completion queue and memory."""

    def __init__(self, ctx, pd=None, cq=None):
        self.ctx = ctx
        self.pd = pd or PD(ctx)
        self.cq = cq or CQ(ctx, 64)
        self.mr = MR(self.pd, 4096, ACCESS)
        self.qp = None

    def sge(self, length=4096, offset=0):
        return SGE(self.mr.buf + offset, length, self.mr.lkey)

    def receive(self, queue=None, length=4096, wr_id=7):
        wr = RecvWR(wr_id=wr_id, num_sge=1, sg=[self.sge(length)])
        if queue:
            queue.post_recv(wr)
        else:
            self.qp.post_recv(wr)

    def completion(self):
        """Waits for the next completion, which must be a good one."""
        for _ in range(POLLS):
            count, wcs = self.cq.poll(1)
            if count:
                same(wcs[0].status, e.IBV_WC_SUCCESS, 'status')
                return wcs[0]
        raise AssertionError('no completion')


def address(ctx, port=PORT):
    gid = ctx.query_gid(port, 0)
    return AHAttr(port_num=port, is_global=1,
                  gr=GlobalRoute(dgid=gid, sgid_index=0))


def create_qp(side, kind, srq=None):
    cap = QPCap(max_send_wr=16, max_recv_wr=16, max_send_sge=1, max_recv_sge=1,
                max_inline_data=64)
    side.qp = QP(side.pd, QPInitAttr(qp_type=kind, scq=side.cq, rcq=side.cq,
                                     srq=srq, cap=cap, sq_sig_all=1))


def connect(side, other):
    """RESET to RTS for a connected QP, by the attributes that it needs."""
    kind = side.qp.qp_type
    attr = QPAttr(port_num=PORT)
    attr.qp_access_flags = ACCESS if kind == e.IBV_QPT_RC else \
        e.IBV_ACCESS_REMOTE_WRITE
    attr.dest_qp_num = other.qp.qp_num
    attr.path_mtu = e.IBV_MTU_1024
    attr.max_rd_atomic = attr.max_dest_rd_atomic = 1
    attr.min_rnr_timer = 1
    attr.timeout, attr.retry_cnt, attr.rnr_retry = 14, 7, 7
    attr.rq_psn = attr.sq_psn = 5
    attr.ah_attr = address(side.ctx)
    side.qp.to_rts(attr)


def pair(ctx, kind, srq=None):
    a, b = Side(ctx), Side(ctx)
    create_qp(a, kind)
    create_qp(b, kind, srq(b) if srq else None)
    connect(a, b)
    connect(b, a)
    return a, b


def send(a, b, text='busbar', queue=None):
    """One message from a to b."""
    b.mr.write('-' * len(text), len(text))
    b.receive(queue)
    a.mr.write(text, len(text))
    a.qp.post_send(SendWR(wr_id=1, opcode=e.IBV_WR_SEND, num_sge=1,
                          sg=[a.sge(len(text))],
                          send_flags=e.IBV_SEND_SIGNALED))
    same(b.completion().byte_len, len(text), 'byte_len')
    same(b.mr.read(len(text), 0), text.encode(), 'data')
    a.completion()


def one_sided(a, b, opcode, length=8):
    wr = SendWR(wr_id=2, opcode=opcode, num_sge=1, sg=[a.sge(length)],
                send_flags=e.IBV_SEND_SIGNALED)
    wr.set_wr_rdma(b.mr.rkey, b.mr.buf)
    a.qp.post_send(wr)
    a.completion()


def atomic(a, b, opcode, compare_add, swap=0):
    wr = SendWR(wr_id=3, opcode=opcode, num_sge=1, sg=[a.sge(8)],
                send_flags=e.IBV_SEND_SIGNALED)
    wr.set_wr_atomic(b.mr.rkey, b.mr.buf, compare_add, swap)
    a.qp.post_send(wr)
    a.completion()


def number(mr):
    return int.from_bytes(mr.read(8, 0), sys.byteorder)


@shows
def context(ctx):
    names = [device.name.decode() for device in get_device_list()]
    if ctx.name not in names:
        raise AssertionError(f'{ctx.name} is not in {names}')
    attr = ctx.query_device()
    if attr.max_qp < 1 or attr.max_cqe < 1 or attr.max_mr_size < 1:
        raise AssertionError('limits of zero')
    same(ctx.query_device_ex().orig_attr.max_qp, attr.max_qp, 'max_qp')
    port = ctx.query_port(PORT)
    same(port.state, e.IBV_PORT_ACTIVE, 'state')
    same(ctx.query_pkey(PORT, 0), 0xffff, 'pkey')
    same(ctx.query_gid_type(PORT, 0), e.IBV_GID_TYPE_SYSFS_ROCE_V2, 'GID type')
    table = ctx.query_gid_table(port.gid_tbl_len)
    same(ctx.query_gid_ex(PORT, 0).gid_str(), table[0].gid_str(), 'GID')


@shows
def pd(ctx):
    first, second = PD(ctx), PD(ctx)
    MR(first, 64, e.IBV_ACCESS_LOCAL_WRITE)
    second.close()
    first.close()


@shows
def mr(ctx):
    region = MR(PD(ctx), 4096, ACCESS)
    region.write('busbar', 6)
    same(region.read(6, 0), b'busbar', 'data')
    try:
        MR(PD(ctx), 64, e.IBV_ACCESS_REMOTE_WRITE)
    except PyverbsRDMAError as error:
        same(error.error_code, errno.EINVAL, 'errno')
    else:
        raise AssertionError('remote write without local write was granted')


@shows
def mr_rereg(ctx):
    side = Side(ctx)
    side.mr.rereg(e.IBV_REREG_MR_CHANGE_ACCESS, access=e.IBV_ACCESS_LOCAL_WRITE)


@shows
def mr_odp(ctx):
    MR(PD(ctx), 4096, ACCESS | e.IBV_ACCESS_ON_DEMAND)


@shows
def cq(ctx):
    queue = CQ(ctx, 16)
    if queue.cqe < 16:
        raise AssertionError('fewer entries than asked for')
    queue.resize(64)
    same(queue.poll(1)[0], 0, 'completions')


@shows
def comp_channel(ctx):
    channel = CompChannel(ctx)
    a, b = Side(ctx), Side(ctx, cq=CQ(ctx, 16, None, channel))
    create_qp(a, e.IBV_QPT_RC)
    create_qp(b, e.IBV_QPT_RC)
    connect(a, b)
    connect(b, a)
    b.cq.req_notify()
    send(a, b)
    channel.get_cq_event(b.cq)
    b.cq.ack_events(1)


@shows
def cq_ex(ctx):
    attr = CqInitAttrEx(cqe=16, wc_flags=e.IBV_WC_STANDARD_FLAGS)
    queue = CQEX(ctx, attr)
    a, b = Side(ctx), Side(ctx, cq=queue)
    create_qp(a, e.IBV_QPT_RC)
    create_qp(b, e.IBV_QPT_RC)
    connect(a, b)
    connect(b, a)
    b.receive()
    a.qp.post_send(SendWR(wr_id=1, opcode=e.IBV_WR_SEND, num_sge=1,
                          sg=[a.sge(64)], send_flags=e.IBV_SEND_SIGNALED))
    for _ in range(POLLS):
        if queue.start_poll(PollCqAttr()) != errno.ENOENT:
            break
    same(queue.status, e.IBV_WC_SUCCESS, 'status')
    same(queue.read_byte_len(), 64, 'byte_len')
    queue.end_poll()


@shows
def cq_ex_timestamp(ctx):
    CQEX(ctx, CqInitAttrEx(cqe=16,
                           wc_flags=e.IBV_WC_EX_WITH_COMPLETION_TIMESTAMP))
    ctx.query_rt_values_ex()


@shows
def qp_rc(ctx):
    a, b = pair(ctx, e.IBV_QPT_RC)
    send(a, b)
    send(b, a)
    a.mr.write('12345678', 8)
    one_sided(a, b, e.IBV_WR_RDMA_WRITE)
    same(b.mr.read(8, 0), b'12345678', 'data written')
    b.mr.write('abcdefgh', 8)
    one_sided(a, b, e.IBV_WR_RDMA_READ)
    same(a.mr.read(8, 0), b'abcdefgh', 'data read')
    b.mr.write(chr(0) * 8, 8)
    atomic(a, b, e.IBV_WR_ATOMIC_FETCH_AND_ADD, 5)
    atomic(a, b, e.IBV_WR_ATOMIC_CMP_AND_SWP, 5, 9)
    same((number(a.mr), number(b.mr)), (5, 9), 'atomics')
    same(a.qp.query(e.IBV_QP_STATE)[0].cur_qp_state, e.IBV_QPS_RTS, 'state')


@shows
def qp_uc(ctx):
    a, b = pair(ctx, e.IBV_QPT_UC)
    send(a, b)
    a.mr.write('12345678', 8)
    one_sided(a, b, e.IBV_WR_RDMA_WRITE)
    same(b.mr.read(8, 0), b'12345678', 'data written')


def datagram_side(ctx):
    side = Side(ctx)
    create_qp(side, e.IBV_QPT_UD)
    attr = QPAttr(port_num=PORT)
    attr.qkey = QKEY
    attr.sq_psn = 5
    side.qp.to_rts(attr)
    return side


@shows
def qp_ud(ctx):
    a, b = datagram_side(ctx), datagram_side(ctx)
    b.receive()
    a.mr.write('busbar', 6)
    handle = AH(a.pd, attr=address(ctx))
    wr = SendWR(wr_id=1, opcode=e.IBV_WR_SEND, num_sge=1, sg=[a.sge(6)],
                send_flags=e.IBV_SEND_SIGNALED)
    wr.set_wr_ud(handle, b.qp.qp_num, QKEY)
    a.qp.post_send(wr)
    wc = b.completion()
    same(wc.byte_len, GRH_BYTES + 6, 'byte_len')
    same(wc.src_qp, a.qp.qp_num, 'src_qp')
    same(b.mr.read(6, GRH_BYTES), b'busbar', 'data')


@shows
def ah(ctx):
    a, b = datagram_side(ctx), datagram_side(ctx)
    b.receive()
    wr = SendWR(wr_id=1, opcode=e.IBV_WR_SEND, num_sge=1, sg=[a.sge(6)],
                send_flags=e.IBV_SEND_SIGNALED)
    wr.set_wr_ud(AH(a.pd, attr=address(ctx)), b.qp.qp_num, QKEY)
    a.qp.post_send(wr)
    wc = b.completion()
    # An answer to whoever it came from, by the header in front of the data.
    back = AH(b.pd, wc=wc, grh=b.mr.buf, port_num=PORT)
    a.receive()
    wr.set_wr_ud(back, a.qp.qp_num, QKEY)
    b.qp.post_send(wr)
    a.completion()


@shows
def qp_ex(ctx):
    """Posting by the builders of ibv_wr_post(3)."""
    a, b = Side(ctx), Side(ctx)
    cap = QPCap(max_send_wr=16, max_recv_wr=16)
    for side in (a, b):
        side.qp = QPEx(ctx, QPInitAttrEx(
            qp_type=e.IBV_QPT_RC, scq=side.cq, rcq=side.cq, cap=cap,
            pd=side.pd, sq_sig_all=1,
            send_ops_flags=e.IBV_QP_EX_WITH_SEND | e.IBV_QP_EX_WITH_RDMA_WRITE,
            comp_mask=e.IBV_QP_INIT_ATTR_PD |
            e.IBV_QP_INIT_ATTR_SEND_OPS_FLAGS))
    connect(a, b)
    connect(b, a)
    b.receive()
    a.mr.write('busbar', 6)
    a.qp.wr_start()
    a.qp.wr_id = 9
    a.qp.wr_flags = e.IBV_SEND_SIGNALED
    a.qp.wr_send()
    a.qp.wr_set_sge(a.sge(6))
    a.qp.wr_complete()
    b.completion()
    same(b.mr.read(6, 0), b'busbar', 'data')
    same(a.completion().wr_id, 9, 'wr_id')


@shows
def srq(ctx):
    shared = {}

    def create(side):
        shared['srq'] = SRQ(side.pd, SrqInitAttr(SrqAttr(max_wr=16)))
        return shared['srq']

    a, b = pair(ctx, e.IBV_QPT_RC, create)
    send(a, b, queue=shared['srq'])
    if shared['srq'].query().max_wr < 16:
        raise AssertionError('fewer entries than asked for')


@shows
def async_event(ctx):
    """The limit event of a shared receive queue."""
    domain = PD(ctx)
    queue = SRQ(domain, SrqInitAttr(SrqAttr(max_wr=16)))
    side = Side(ctx, pd=domain)
    for _ in range(4):
        side.receive(queue)
    a = Side(ctx)
    create_qp(a, e.IBV_QPT_RC)
    create_qp(side, e.IBV_QPT_RC, queue)
    connect(a, side)
    connect(side, a)
    queue.modify(SrqAttr(srq_limit=4), e.IBV_SRQ_LIMIT)
    a.qp.post_send(SendWR(wr_id=1, opcode=e.IBV_WR_SEND, num_sge=1,
                          sg=[a.sge(8)], send_flags=e.IBV_SEND_SIGNALED))
    side.completion()
    event = ctx.get_async_event()
    same(event.event_type, e.IBV_EVENT_SRQ_LIMIT_REACHED, 'event')
    event.ack()


@shows
def xrcd(ctx):
    attr = XRCDInitAttr(e.IBV_XRCD_INIT_ATTR_FD | e.IBV_XRCD_INIT_ATTR_OFLAGS,
                        os.O_CREAT, -1)
    domain = XRCD(ctx, attr)
    side = Side(ctx)
    init = SrqInitAttrEx(max_wr=16)
    init.srq_type = e.IBV_SRQT_XRC
    init.pd, init.xrcd, init.cq = side.pd, domain, side.cq
    init.comp_mask = (e.IBV_SRQ_INIT_ATTR_TYPE | e.IBV_SRQ_INIT_ATTR_PD |
                      e.IBV_SRQ_INIT_ATTR_XRCD | e.IBV_SRQ_INIT_ATTR_CQ)
    SRQ(ctx, init).get_srq_num()
    QP(ctx, QPInitAttrEx(qp_type=e.IBV_QPT_XRC_RECV, xrcd=domain,
                         comp_mask=e.IBV_QP_INIT_ATTR_XRCD))


@shows
def mw_type_1(ctx):
    a, b = pair(ctx, e.IBV_QPT_RC)
    bound = MR(b.pd, 4096, ACCESS | e.IBV_ACCESS_MW_BIND)
    window = MW(b.pd, e.IBV_MW_TYPE_1)
    b.qp.bind_mw(window, MWBind(MWBindInfo(bound, bound.buf, 8,
                                           e.IBV_ACCESS_REMOTE_WRITE),
                                e.IBV_SEND_SIGNALED))
    b.completion()
    a.mr.write('12345678', 8)
    wr = SendWR(wr_id=2, opcode=e.IBV_WR_RDMA_WRITE, num_sge=1,
                sg=[a.sge(8)], send_flags=e.IBV_SEND_SIGNALED)
    wr.set_wr_rdma(window.rkey, bound.buf)
    a.qp.post_send(wr)
    a.completion()
    same(bound.read(8, 0), b'12345678', 'data')


@shows
def mw_type_2(ctx):
    MW(PD(ctx), e.IBV_MW_TYPE_2)


@shows
def dm(ctx):
    memory = DM(ctx, AllocDmAttr(length=4096))
    memory.copy_to_dm(0, b'busbar--', 8)
    same(memory.copy_from_dm(0, 8), b'busbar--', 'data')
    DMMR(PD(ctx), 4096, e.IBV_ACCESS_ZERO_BASED | e.IBV_ACCESS_LOCAL_WRITE,
         dm=memory, offset=0)


@shows
def parent_domain(ctx):
    ParentDomain(ctx, attr=ParentDomainInitAttr(pd=PD(ctx)))


@shows
def cmid(ctx):
    """An endpoint of the connection manager, up to a listening one."""
    info = AddrInfo(src='127.0.0.1', src_service='0', port_space=RDMA_PS_TCP,
                    flags=RAI_PASSIVE)
    endpoint = CMID(creator=info, qp_init_attr=QPInitAttr(
        cap=QPCap(max_recv_wr=1)))
    endpoint.listen()
    endpoint.close()


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    device, name = sys.argv[1:]
    if name == 'list':
        print('\n'.join(OBJECTS))
        return
    if name not in OBJECTS:
        sys.exit(f'no such object: {name}')
    ctx = Context(name=device)
    OBJECTS[name](ctx)
    ctx.close()
    print(f'{name}: good')


main()
