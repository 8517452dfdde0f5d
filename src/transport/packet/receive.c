/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What arrives at a port: from units of the carrier to frames, and from frames to queue pairs.
 * All of it under the port's receive_lock.
 */
#include "transport/packet/packet.h"

#define ACKNOWLEDGEMENT_MOST PACKET_HEADER_BYTES
/* A long poll sends answers after so many bytes: a part of a window, so that the peer need not
 * wait for the end of the poll; but an answer costs as much as a train. */
#define ANSWERED_BYTES 98304u
/* A unit of so many bytes is a part of a stream (linger() in poll.c). */
#define STREAM_BYTES 16384u

/* ---- to whom ---- */

/* Fills in f->src_qpn where packets do not carry it. */
static bool is_from_peer(const struct packet_qp *pq, const struct carrier_unit *unit,
			 struct packet_frame *f)
{
	const struct packet_medium *m = pq->port->medium;
	uint32_t peer = atomic_load_explicit(&pq->qp->pub->dest_qpn,
					     memory_order_relaxed);

	if (!m->is_from)
		return f->src_qpn == peer;
	f->src_qpn = peer;
	if (likely(m->is_from(&pq->route, unit)))
		return true;
	HCA_COUNT_PROCESS(STRANGERS, 1);
	return false;
}

/* Is the packet of the same service and, in an XRC connection, for this half of it? */
static bool is_for(const struct packet_qp *pq, const struct carrier_unit *unit,
		   struct packet_frame *f)
{
	bool answer = f->rc.op >= RC_ACK;

	if (unlikely(f->rc.op == RC_CNP)) /* a CNP names no service */
		return is_from_peer(pq, unit, f);
	if (f->service != pq->service || !is_from_peer(pq, unit, f))
		return false;
	if (pq->service == PACKET_UC)
		return !answer;
	return pq->service != PACKET_XRC ||
	       answer == (pq->qp->ibv.qp_type == IBV_QPT_XRC_SEND);
}

/* Takes a packet, or a run part by part: the first part may have brought the queue pair into
 * another state. */
static void take_run(struct packet_qp *pq, struct packet_frame *f, const uint8_t *payload)
{
	uint32_t left = 1 + f->rc.more;

	for (;;) {
		uint32_t taken = f->rc.op >= RC_ACK ? packet_reply(pq, f, payload) :
						      packet_request(pq, f, payload);

		left -= taken;
		if (likely(!left))
			return;
		if (!packet_receives(pq->qp)) {
			HCA_COUNT_RARE(pq->qp, RX_DROPPED, left);
			return;
		}
		f->rc.psn = rc_psn_add(f->rc.psn, taken);
		f->rc.more = left - 1;
		payload += (size_t)taken * f->stride;
	}
}

void packet_receive(struct packet_port *port, const struct carrier_unit *unit,
		    struct packet_frame *f, const uint8_t *payload)
{
	struct hca_qp *qp = hca_qp_find(f->dst_qpn);
	struct packet_qp *pq;

	if (unlikely(f->dst_qpn == HCA_QPN_MULTICAST)) {
		packet_receive_group(port, f, payload);
		return;
	}
	if (!qp || !qp->counters) {
		HCA_COUNT_PROCESS(UNKNOWN_QP, 1);
		return;
	}
	if (f->service == PACKET_UD) {
		packet_receive_datagram(port, qp, f, payload);
		return;
	}
	pq = hca_path_ops(&qp->path) == port->ops ? packet_part(qp)->state : NULL;
	atomic_thread_fence(memory_order_acquire);
	/* Between the two looks the queue pair may have been closed and opened by another
	 * transport, to which its part belongs then. This transport would have waited for
	 * receive_lock. */
	if (unlikely(pq && hca_path_ops(&qp->path) != port->ops))
		pq = NULL;
	if (!pq || !pq->connected || !packet_receives(qp) || !is_for(pq, unit, f)) {
		HCA_COUNT_RARE(qp, RX_DROPPED, 1 + f->rc.more);
		return;
	}
	/* A switch has marked the packet (ECN: CE), so a CNP is owed. */
	if (unlikely((unit->known & CARRIER_TOS) && (unit->tos & 3) == 3)) {
		rc_marked(&pq->responder, packet_now_ns());
		packet_owes(pq);
	}
	if (f->rc.op > RC_SEND && f->rc.op < RC_ACK && progress_is_self())
		port->serves = true;
	if (unlikely(f->rc.op == RC_CNP)) {
		packet_notified(pq, f);
		return;
	}
	if (unlikely(pq->service == PACKET_UC))
		packet_heard(pq);
	take_run(pq, f, payload);
}

/* ---- arriving ---- */

void packet_count_fault(enum packet_fault fault)
{
	if (fault == PACKET_BAD_ICRC)
		HCA_COUNT_PROCESS(BAD_ICRC, 1);
	else
		HCA_COUNT_PROCESS(BAD_PACKETS, 1);
}

/* A unit may end with the acknowledgement of what its first packets answer (requester/send.c). It
 * is delivered before them, so the program finds the completion of its message before the answer.
 * True: there was one. */
static bool deliver_acknowledgement(struct packet_port *port, const struct carrier_unit *unit,
				    unsigned k)
{
	size_t bytes = carrier_unit_bytes(unit);
	size_t length = carrier_packet_bytes(unit, bytes, k);
	uint8_t packet[ACKNOWLEDGEMENT_MOST];
	enum packet_fault fault;
	struct packet_frame f;
	size_t header;

	if (length > sizeof(packet))
		return false;
	carrier_unit_gather(unit, bytes - length, length, packet);
	header = port->medium->decode(unit, &port->series, k, packet, length, &f, &fault);
	if (!header || header > length || f.rc.bytes || f.rc.op != RC_ACK ||
	    (f.rc.syndrome & RC_SYN_KIND))
		return false;
	packet_receive(port, unit, &f, packet + header);
	return true;
}

/* Can the program notice that the packet, a request, comes before the completion by the
 * acknowledgement behind it? Parts of a READ response stay before the packets that follow them. A
 * single thread that polls two queues finds both after the poll that brings the unit. */
static bool order_shows(const struct packet_frame *f)
{
	const struct hca_qp *qp = hca_qp_find(f->dst_qpn);

	return f->rc.op < RC_ACK &&
	       (!hca_self.elided || !qp || !qp->recv_cq ||
		atomic_load_explicit(&qp->recv_cq->sends, memory_order_relaxed) ||
		atomic_load_explicit(&hca_process.armed, memory_order_relaxed));
}

/* The packets of a unit on their way to their queue pairs. */
struct arrival {
	struct packet_port *port;
	const struct carrier_unit *unit;
	size_t bytes;
	unsigned packets; /* without the last one if that was delivered before the first */
};

/* How many packets after packet `k`, which lies at `from`, make a run with it. */
static uint32_t run_behind(struct arrival *a, unsigned k, const uint8_t *from, size_t length,
			   size_t header)
{
	uint32_t n = 0;

	for (; k + n + 1 < a->packets; n++, from += length)
		if (carrier_packet_bytes(a->unit, a->bytes, k + n + 1) != length ||
		    !a->port->medium->follows(a->unit, &a->port->series, k + n + 1, from,
					      header, from + length, length))
			break;
	return n;
}

/* Delivers packet `k` and, in a unit of one piece, the packets that make a run with it; returns
 * how many. */
static unsigned deliver_run(struct arrival *a, unsigned k, const uint8_t *bytes, size_t length)
{
	enum packet_fault fault = PACKET_MALFORMED;
	struct packet_frame f;
	size_t header = a->port->medium->decode(a->unit, &a->port->series, k, bytes, length,
						&f, &fault);

	if (unlikely(!header || header > length || f.rc.bytes > PACKET_MTU ||
		     f.rc.bytes > length - header)) {
		packet_count_fault(fault);
		return 1;
	}
	if (!k && a->packets > 1 && order_shows(&f))
		a->packets -= deliver_acknowledgement(a->port, a->unit, a->packets - 1);
	f.stride = (uint32_t)length;
	f.rc.more = f.rc.flags || f.service == PACKET_UD || a->unit->count > 1 ?
			    0 : run_behind(a, k, bytes, length, header);
	k = 1 + f.rc.more; /* packet_receive() changes it */
	packet_receive(a->port, a->unit, &f, bytes + header);
	return k;
}

static void begin_series(struct packet_port *port, const struct carrier_unit *unit)
{
	if (likely(carrier_addr_equal(&port->from, &unit->from) &&
		   carrier_addr_equal(&port->to, &unit->to)))
		return;
	port->series = (struct icrc_series){ 0 };
	port->from = unit->from;
	port->to = unit->to;
}

void packet_deliver(void *arg, const struct carrier_unit *unit)
{
	struct arrival a = { .port = arg, .unit = unit, .bytes = carrier_unit_bytes(unit) };
	size_t at = 0;
	unsigned n;

	a.packets = carrier_unit_packets(unit, a.bytes);
	a.port->now_ns = packet_now_ns();
	begin_series(a.port, unit);
	for (unsigned k = 0; k < a.packets; k += n) {
		size_t length = carrier_packet_bytes(unit, a.bytes, k);

		n = 1;
		if (likely(unit->count == 1)) {
			n = deliver_run(&a, k, (const uint8_t *)unit->iov[0].iov_base + at,
					length);
		} else if (length <= PACKET_HEADER_BYTES + PACKET_MTU) {
			carrier_unit_gather(unit, at, length, a.port->packet);
			deliver_run(&a, k, a.port->packet, length);
		} else {
			packet_count_fault(PACKET_MALFORMED);
		}
		at += n * length;
	}
	if (a.bytes >= STREAM_BYTES)
		atomic_store_explicit(&a.port->streams, true, memory_order_relaxed);
	a.port->unanswered_bytes += (uint32_t)a.bytes;
	if (a.port->unanswered_bytes >= ANSWERED_BYTES && !list_empty(&a.port->answering))
		packet_run_answers(a.port);
}
