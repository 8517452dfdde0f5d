/* SPDX-License-Identifier: BSD-2-Clause */
/* Datagrams, also those to multicast groups. */
#include <errno.h>
#include <string.h>

#include "hca/host/gid.h"
#include "hca/qp/address.h"
#include "hca/queue/datagram.h"
#include "hca/queue/flush.h"
#include "hca/queue/push.h"
#include "hca/queue/receive.h"
#include "hca/queue/scatter.h"
#include "transport/packet/base/train.h"
#include "transport/packet/packet.h"
#include "util/probe.h"

int packet_datagram(struct packet_port *port, struct hca_qp *qp, const struct hca_swqe *e)
{
	struct icrc_series series = { 0 };
	struct packet_train train;
	struct packet_route route;
	struct iovec *iov;
	uint8_t bounce[PACKET_MTU];
	struct packet_frame f = {
		.rc = { .op = RC_SEND, .flags = RC_FIRST | RC_LAST, .bytes = e->length,
			.imm = e->imm },
		.service = PACKET_UD,
		.ipv4 = hca_ah_is_ipv4(e->ud.ah),
		.dst_qpn = e->ud.qpn,
		.src_qpn = qp->ibv.qp_num,
		.qkey = e->ud.qkey,
	};
	unsigned turn;
	int n, ret;

	if (e->opcode != IBV_WR_SEND)
		f.rc.flags |= RC_IMM;
	if (e->flags & HCA_SWQE_SOLICITED)
		f.rc.flags |= RC_SOLICITED;
	hca_ah_header(e->ud.ah, e->length, e->opcode != IBV_WR_SEND, f.grh);
	if (port->medium->address(&e->ud.ah->attr, &e->ud.ah->sgid, &route) ||
	    e->length > port->medium->mtu)
		return hca_datagram_lose(qp, e);
	PROBE(transmit, qp->ibv.qp_num, f.dst_qpn, f.qkey, e->length, e->opcode);
	packet_train_open(&train, port, qp->ibv.qp_num, &route, &series);
	iov = packet_train_begin(&train, &f);
	turn = hca_copy_begin(&port->copies);
	n = hca_swqe_gather(qp, e, 0, e->length, iov, bounce);
	ret = n;
	if (likely(n >= 0)) {
		packet_train_end(&train, (unsigned)n);
		ret = packet_train_emit(&train);
	}
	hca_copy_end(&port->copies, turn);
	if (ret == -EFAULT || !ret)
		return ret;
	if (ret == -EAGAIN && hca_path_ops(&qp->path) == port->ops &&
	    packet_part(qp)->state) {
		packet_wait(packet_part(qp)->state);
		return ret;
	}
	HCA_COUNT_RARE(qp, TX_LOST, 1);
	return 0;
}

static void complete(struct hca_qp *qp, const struct hca_rwqe *e,
		     const struct packet_frame *f, enum ibv_wc_status status)
{
	const struct ibv_wc wc = {
		.wr_id = e->wr_id,
		.status = status,
		.opcode = IBV_WC_RECV,
		.byte_len = HCA_GRH_BYTES + f->rc.bytes,
		.qp_num = qp->ibv.qp_num,
		.src_qp = f->src_qpn,
		.wc_flags = f->global * (unsigned)IBV_WC_GRH |
			    (f->rc.flags & RC_IMM ? IBV_WC_WITH_IMM : 0),
		.imm_data = f->rc.flags & RC_IMM ? f->rc.imm : 0,
		.sl = f->sl,
		.slid = f->slid,
		.dlid_path_bits = f->path_bits,
		.pkey_index = f->pkey_index,
	};

	if (likely(status == IBV_WC_SUCCESS))
		HCA_COUNT_RECEIVED(qp, 0, f->rc.bytes); /* the GRH was not sent */
	else
		HCA_COUNT_RARE(qp, RX_ERRORS, 1);
	hca_recv_done(qp);
	hca_cq_push(qp->recv_cq, &wc, f->rc.flags & RC_SOLICITED);
}

static int place(const struct hca_qp *qp, const struct hca_rwqe *e,
		 const struct packet_frame *f, const uint8_t *payload)
{
	/* Without such a header its room stays as it is. */
	return hca_sges_write(qp->recv_pd, e->sge, e->num_sge, 0, f->grh,
			      f->global * (uint32_t)HCA_GRH_BYTES) ||
	       hca_sges_write(qp->recv_pd, e->sge, e->num_sge, HCA_GRH_BYTES, payload,
			      f->rc.bytes);
}

void packet_receive_datagram(struct packet_port *port, struct hca_qp *qp,
			     const struct packet_frame *f, const uint8_t *payload)
{
	struct hca_rwqe *e = NULL;
	unsigned turn;
	int failed = 0;

	/* A datagram with a wrong Q_Key, or without a posted receive that is long enough, is
	 * dropped silently; the receive is for the next one (9.8.3, 9.6.1, 9.9.3 class D). */
	if (qp->ibv.qp_type != IBV_QPT_UD || !packet_receives(qp))
		goto drop;
	if (f->qkey != qp->attr.qkey) {
		HCA_COUNT_PROCESS(WRONG_QKEYS, 1);
		goto drop;
	}
	hca_lock(&qp->recv->consume_lock);
	e = hca_recv_first(qp);
	if (!e || HCA_GRH_BYTES + (uint64_t)f->rc.bytes > hca_rwqe_room(e)) {
		hca_unlock(&qp->recv->consume_lock);
		goto drop;
	}
	turn = hca_copy_begin(&port->copies);
	failed = place(qp, e, f, payload);
	hca_copy_end(&port->copies, turn);
	if (unlikely(failed))
		hca_qp_failing(qp);
	complete(qp, e, f, failed ? IBV_WC_LOC_PROT_ERR : IBV_WC_SUCCESS);
	hca_unlock(&qp->recv->consume_lock);
	if (unlikely(failed))
		hca_qp_fail(qp);
	return;

drop:
	HCA_COUNT_RARE(qp, RX_DROPPED, 1);
}

/* ---- groups ---- */

struct copies {
	struct packet_port *port;
	const struct packet_frame *f;
	const uint8_t *payload;
};

/* Is the datagram from this host, according to its header? */
static bool is_of_this_host(const struct packet_frame *f)
{
	union ibv_gid source = { .raw = { [10] = 0xff, [11] = 0xff } };

	if (f->ipv4)
		memcpy(source.raw + 12, f->grh + 20 + 12, 4);
	else
		memcpy(source.raw, f->grh + 8, sizeof(source.raw));
	return hca_gid_is_local(&source);
}

static void deliver_copy(struct hca_qp *qp, void *arg)
{
	const struct copies *c = arg;

	/* A queue pair of another host may have the same number. */
	if (qp->no_self_multicast && c->f->src_qpn == qp->ibv.qp_num &&
	    is_of_this_host(c->f))
		return;
	if (packet_receives(qp))
		packet_receive_datagram(c->port, qp, c->f, c->payload);
}

void packet_receive_group(struct packet_port *port, const struct packet_frame *f,
			  const uint8_t *payload)
{
	struct copies c = { port, f, payload };
	union ibv_gid group;

	if (f->service == PACKET_UD && hca_grh_destination(f->grh, &group))
		hca_mcast_each(&group, deliver_copy, &c);
}
