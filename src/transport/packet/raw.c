/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which packets of a queue pair leave as raw frames (carrier/raw.h), if they are short.
 *
 * Frames may overtake what left otherwise before. So requests of RC are frames while all that
 * left otherwise is acknowledged, and all READs whose responses are no frames are complete; those
 * of UC until the first one that is not, as nothing tells of its arrival. Answers leave as their
 * requests came, so the same rule keeps their order. Datagrams, whose order nobody promises, are
 * frames again when for a while none to somebody who takes frames has left otherwise.
 *
 * Whatever keeps frames from arriving does not keep others. So what is repeated leaves as those,
 * and what follows for a while.
 */
#include "transport/packet/state.h"

/* How long a queue pair sends no frames behind its first timeout; twice as long behind each
 * further one, six times at most. */
#define PAUSE_NS NSEC_PER_SEC
#define PAUSE_DOUBLED 6u
/* How long another way is taken for one on which something may still be. */
#define APART_NS 5000000

static bool takes_frames(const struct packet_qp *pq)
{
	return atomic_load_explicit(&pq->raw.taken, memory_order_relaxed);
}

static void set_taken(struct packet_qp *pq, bool taken)
{
	atomic_store_explicit(&pq->raw.taken, taken, memory_order_relaxed);
}

/* How often frames left otherwise, as the kernel did not take them. */
static uint64_t refused(const struct packet_port *port)
{
	struct carrier *raw = atomic_load_explicit(&port->raw, memory_order_relaxed);

	return raw ? carrier_raw_refused(raw) : 0;
}

void packet_raw_mark(struct packet_train *train, bool raw)
{
	train->raw = raw;
	if (raw)
		train->refused = refused(train->port);
}

static bool is_frame(const struct packet_train *train)
{
	return train->raw && !train->fragments && carrier_raw_is_short(train->bytes) &&
	       train->refused == refused(train->port);
}

void packet_raw_connect(struct packet_qp *pq, bool here, bool taken)
{
	pq->raw.here = here;
	set_taken(pq, here && taken);
}

void packet_raw_arrived(struct packet_qp *pq, const struct carrier_unit *unit,
			const struct rc_packet *p)
{
	bool raw = unit->known & CARRIER_RAW;

	if (p->op < RC_ACK) {
		pq->raw.asked = raw;
		pq->raw.asked_long = (p->flags & (RC_FIRST | RC_LAST)) != (RC_FIRST | RC_LAST) ||
				     !carrier_raw_is_short(p->bytes + PACKET_HEADER_BYTES);
	}
	/* The peer may have begun to take frames only after this queue pair was connected. */
	if (unlikely(raw && pq->raw.here && !takes_frames(pq)))
		set_taken(pq, true);
}

/* ---- requests; sq_lock is held ---- */

bool packet_raw_may_request(struct packet_qp *pq, uint64_t now_ns)
{
	struct packet_raw *r = &pq->raw;

	if (!takes_frames(pq) || now_ns < r->from_ns)
		return false;
	if (likely(!r->elsewhere))
		return true;
	if (pq->service == PACKET_UC ||
	    rc_psn_diff(pq->requester.unacked, r->elsewhere_psn) < 0)
		return false;
	r->elsewhere = false;
	return true;
}

/* Its response is one packet, which is a frame if the request was one. */
static bool is_short_read(const struct packet_qp *pq, uint32_t bytes)
{
	return bytes <= MIN(pq->requester.p.mtu, PACKET_RAW_READ);
}

void packet_raw_requested(struct packet_qp *pq, const struct packet_train *train,
			  uint32_t read_bytes)
{
	struct packet_raw *r = &pq->raw;
	uint32_t end = pq->requester.top_psn;

	if (likely(is_frame(train) && is_short_read(pq, read_bytes)))
		return;
	if (!r->elsewhere || rc_psn_diff(end, r->elsewhere_psn) > 0)
		r->elsewhere_psn = end;
	r->elsewhere = true;
}

void packet_raw_expired(struct packet_qp *pq, uint64_t now_ns, bool repeated)
{
	const struct packet_medium *m = pq->port->medium;
	struct packet_raw *r = &pq->raw;

	if (likely(!repeated)) {
		if (!takes_frames(pq))
			set_taken(pq, r->here && m->raw &&
					      m->raw(pq->qp->attr.dest_qp_num, false));
		else if (r->failures && now_ns >= r->from_ns + PAUSE_NS)
			r->failures = 0;
	} else if (takes_frames(pq)) {
		r->from_ns = now_ns + (PAUSE_NS << MIN(r->failures, PAUSE_DOUBLED));
		r->failures++;
	}
}

/* ---- answers; receive_lock of the port is held ---- */

bool packet_raw_may_answer(const struct packet_qp *pq)
{
	return pq->raw.asked && takes_frames(pq);
}

void packet_raw_told(struct packet_qp *pq, const struct packet_train *train)
{
	/* A short message whose acknowledgement leaves by the carrier below is not noted: its
	 * answer would leave there as well, so would the acknowledgement of that, and frames
	 * would never be used. */
	bool below = !train->raw && pq->raw.asked_long && takes_frames(pq);

	atomic_store_explicit(&pq->raw.told_below_ns, below ? packet_now_ns() : 0,
			      memory_order_relaxed);
}

void packet_raw_keep_behind(struct packet_qp *pq, struct packet_train *train)
{
	uint64_t told_ns = atomic_load_explicit(&pq->raw.told_below_ns, memory_order_relaxed);

	if (likely(!told_ns || !train->raw))
		return;
	if ((int64_t)(packet_now_ns() - told_ns) < APART_NS)
		train->raw = false;
	else
		atomic_store_explicit(&pq->raw.told_below_ns, 0, memory_order_relaxed);
}

/* ---- datagrams ---- */

bool packet_raw_may_datagram(struct packet_port *port, uint32_t qpn)
{
	uint64_t since = atomic_load_explicit(&port->datagram_ns, memory_order_relaxed);

	if (!port->medium->raw || !port->medium->raw(qpn, false))
		return false;
	/* Another thread may have stored a time that is later than ours by a little. */
	return !since || (int64_t)(packet_now_ns() - since) >= APART_NS;
}

void packet_raw_datagram(struct packet_port *port, const struct packet_train *train,
			 uint32_t qpn)
{
	/* Short ones do not prolong the time for which they do so themselves. */
	if (!carrier_raw_is_short(train->bytes) && port->medium->raw &&
	    port->medium->raw(qpn, false))
		atomic_store_explicit(&port->datagram_ns, packet_now_ns(),
				      memory_order_relaxed);
}
