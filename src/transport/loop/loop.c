/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Transport loop: connections whose two ends are in this process, and datagrams to queue
 * pairs of it, as packets over a queue in memory. It is slower than shm, which it has
 * before it in BUSBAR_TRANSPORTS when it is wanted: it is there to run what transports of
 * packets have in common without a network, with faults if wanted (BUSBAR_FAULTS).
 *
 * A header is the structure itself; nobody else reads it.
 */
#define LOG_ROOM "loop"
#include <errno.h>
#include <pthread.h>
#include <stddef.h>
#include <string.h>

#include "engine/rc/rules.h"
#include "hca/host/settings.h"
#include "hca/limits.h"
#include "hca/object/cq.h"
#include "hca/object/qp.h"
#include "hca/object/sq.h"
#include "hca/object/srq.h"
#include "hca/path/path.h"
#include "hca/queue/datagram.h"
#include "hca/share/process.h"
#include "transport/carrier/queue.h"
#include "transport/list.h"
#include "transport/packet/packet.h"
#include "transport/packet/frame/show.h"
#include "util/log.h"

#define QUEUE_BYTES (1u << 20)
/* shm's is 10: it is asked where this one does not lead. Of a UD queue pair, which
 * goes anywhere, shm keeps the path. */
#define COST 5
#define COST_UD 100

/* ---- packets as bytes ---- */

struct header {
	struct rc_packet rc;
	uint32_t dst_qpn, src_qpn;
	uint32_t srqn, qkey;
	uint8_t service, ipv4;
	uint16_t magic;
};
#define MAGIC 0x6c70

_Static_assert(sizeof(struct header) + HCA_GRH_BYTES <= PACKET_HEADER_BYTES, "has room");

static size_t encode(const struct packet_frame *f, uint8_t to[PACKET_HEADER_BYTES])
{
	const struct header h = {
		.rc = f->rc, .dst_qpn = f->dst_qpn, .src_qpn = f->src_qpn,
		.srqn = f->srqn, .qkey = f->qkey, .service = f->service,
		.ipv4 = f->ipv4, .magic = MAGIC,
	};

	memcpy(to, &h, sizeof(h));
	if (f->service != PACKET_UD)
		return sizeof(h);
	memcpy(to + sizeof(h), f->grh, HCA_GRH_BYTES);
	return sizeof(h) + HCA_GRH_BYTES;
}

static void renumber(uint8_t *header, uint32_t psn)
{
	memcpy(header + offsetof(struct header, rc.psn), &psn, sizeof(psn));
}

static size_t peek(const uint8_t *from, size_t bytes, struct packet_frame *f)
{
	struct header h;

	if (bytes < sizeof(h))
		return 0;
	memcpy(&h, from, sizeof(h));
	if (h.magic != MAGIC || h.service > PACKET_XRC)
		return 0;
	f->rc = h.rc;
	f->service = h.service;
	f->ipv4 = h.ipv4;
	f->dst_qpn = h.dst_qpn;
	f->src_qpn = h.src_qpn;
	f->srqn = h.srqn;
	f->qkey = h.qkey;
	if (h.service != PACKET_UD)
		return sizeof(h);
	if (bytes < sizeof(h) + HCA_GRH_BYTES)
		return 0;
	memcpy(f->grh, from + sizeof(h), HCA_GRH_BYTES);
	f->global = true;
	f->path_bits = 0;
	f->slid = f->pkey_index = 0;
	f->sl = h.ipv4 ? PACKET_ROCE_V2_IPV4 : PACKET_ROCE_V2_IPV6;
	return sizeof(h) + HCA_GRH_BYTES;
}

static size_t decode(const struct carrier_unit *unit, struct icrc_series *series, unsigned k,
		     const uint8_t *from, size_t bytes, struct packet_frame *f,
		     enum packet_fault *fault)
{
	(void)unit;
	(void)series;
	(void)k;
	(void)fault;
	return peek(from, bytes, f);
}

static bool follows(const struct carrier_unit *unit, struct icrc_series *series, unsigned k,
		    const uint8_t *before, size_t header_bytes, const uint8_t *from,
		    size_t bytes)
{
	struct header h;

	(void)unit;
	(void)series;
	(void)k;
	(void)bytes;
	memcpy(&h, before, sizeof(h));
	h.rc.psn = rc_psn_add(h.rc.psn, 1);
	return header_bytes == sizeof(h) && !memcmp(&h, from, sizeof(h));
}

/* There is one queue, and it has one end. */
static int address(const struct ibv_ah_attr *to, const union ibv_gid *from,
		   struct packet_route *route)
{
	(void)to;
	(void)from;
	*route = (struct packet_route){ .to = carrier_addr_of(0) };
	return 0;
}

static unsigned train(void)
{
	return 4;
}

static const struct packet_medium medium = {
	.mtu = PACKET_MTU,
	.window = 64,
	.uc_invalidates = true,
	.ack_delay_ns = 60000,
	.encode = encode,
	.renumber = renumber,
	.decode = decode,
	.peek = peek,
	.follows = follows,
	.address = address,
};

static struct packet_port port = { .ops = &loop_ops, .medium = &medium,
				   .train = train, .buffer_bytes = QUEUE_BYTES,
				   .presence.lock = PTHREAD_MUTEX_INITIALIZER };

/* ---- the table ---- */

static int loop_start(void)
{
	const struct carrier_queue_params params = { .bytes = QUEUE_BYTES,
						     .wake = packet_port_wake,
						     .wake_arg = &port };
	struct carrier *carrier;
	int ret = carrier_queue_open(&params, &carrier);

	if (ret)
		return ret;
	ret = packet_faults(&port, &carrier);
	if (!ret)
		ret = packet_show_port(&port, &carrier);
	if (!ret)
		ret = packet_port_open(&port, carrier);
	if (ret)
		carrier_close(carrier);
	else
		packet_show_start();
	return ret;
}

static void loop_stop(void)
{
	packet_port_close(&port);
	packet_show_stop();
}

static void loop_forked(void)
{
	packet_port_forked(&port);
	packet_show_forked();
}

static bool is_ours(uint32_t qpn)
{
	return qpn <= HCA_PSN_MASK &&
	       atomic_load_explicit(&hca_process.blocks[qpn >> HCA_QPN_BLOCK_BITS],
				    memory_order_acquire);
}

static int loop_reach(const struct hca_destination *to)
{
	if (!to->ah)
		return COST_UD;
	if (!to->local || (to->qpn != HCA_QPN_UNKNOWN && !is_ours(to->qpn)))
		return -EHOSTUNREACH;
	return COST;
}

static int loop_open(struct hca_qp *qp)
{
	return packet_open(&port, qp);
}

static void loop_close(struct hca_qp *qp)
{
	packet_close(&port, qp);
}

static int loop_datagram(struct hca_qp *qp, const struct hca_swqe *e)
{
	const struct hca_destination to = {
		.ah = &e->ud.ah->attr, .local = e->ud.ah->local, .qpn = e->ud.qpn,
	};
	const struct hca_transport_ops *other;

	if (is_ours(e->ud.qpn))
		return packet_datagram(&port, qp, e);
	other = hca_path_choose_behind(&to, &loop_ops);
	return other ? other->datagram(qp, e) : hca_datagram_lose(qp, e);
}

static bool loop_poll(struct hca_cq *cq, bool wait)
{
	bool moved;

	if (cq)
		packet_polled(&port);
	else if (wait)
		packet_leave(&port);
	moved = packet_poll(&port, wait);
	if (moved && cq)
		packet_moved(&port);
	return moved;
}

static bool loop_pending(void)
{
	return packet_pending(&port);
}

static int loop_faults(const char *text, char *note, size_t note_bytes)
{
	return packet_faults_set(&port, text, note, note_bytes);
}

static unsigned loop_fault_event(unsigned index, char *line, size_t line_bytes)
{
	return packet_faults_event(&port, index, line, line_bytes);
}

static void loop_posted(struct hca_qp *qp)
{
	packet_posted(&port, qp);
}

static void qp_fence(const struct hca_qp *qp)
{
	(void)qp;
	packet_qp_fence(&port);
}

static void key_fence(uint32_t key)
{
	(void)key;
	hca_copies_wait(&port.copies);
}

static bool key_busy(uint32_t key)
{
	(void)key;
	return hca_copies_any(&port.copies);
}

static void srq_fence(struct hca_srq *srq)
{
	packet_srq_forget(&port, srq);
}

const struct hca_transport_ops loop_ops = {
	.name = "loop",
	.start = loop_start,
	.stop = loop_stop,
	.forked = loop_forked,
	.reach = loop_reach,
	.open = loop_open,
	.connect = packet_connect,
	.ready = packet_ready,
	.failed = packet_failed,
	.close = loop_close,
	.transmit = packet_transmit,
	.datagram = loop_datagram,
	.posted = loop_posted,
	.expired = packet_expired,
	.poll = loop_poll,
	.pending = loop_pending,
	.faults = loop_faults,
	.fault_event = loop_fault_event,
	.fence = {
		.qp = qp_fence,
		.key = key_fence,
		.key_busy = key_busy,
		.srq = srq_fence,
	},
};
