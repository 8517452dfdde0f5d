/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The requester of a queue pair: its parameters, its timer, and what the answers of the peer
 * complete. send.c sends its packets.
 *
 * Each queue pair has one timer for this, hca_qp.retry. It is armed lazily: one that runs too
 * early arms itself again, so that an acknowledgement costs nothing.
 */
#include "hca/queue/complete.h"
#include "hca/queue/post.h"
#include "hca/queue/scatter.h"
#include "transport/packet/requester/requester.h"

/* Enough for several emissions: one is being made, one is under way, one is taken in. */
#define WINDOW_USUAL_BYTES (256u << 10)
/* Packets: adapters send all that is posted, without a window. So many requests has a queue pair of
 * the measurements (engine/paging/profile.h). With a buffer that loses packets as many as it holds,
 * where each takes so many bytes of it. */
#define DEMAND_WINDOW 8192u
#define DEMAND_PACKET_BYTES 4096u

uint32_t packet_mtu(const struct packet_qp *pq)
{
	return MIN(128u << pq->qp->attr.path_mtu, pq->port->medium->mtu);
}

/* Takes the attributes that may change while work is drained, too. */
static void set_limits(struct packet_qp *pq)
{
	struct rc_requester_params *p = &pq->requester.p;
	const struct ibv_qp_attr *a = &pq->qp->attr;

	p->max_rd_atomic = a->max_rd_atomic;
	p->retry_cnt = a->retry_cnt;
	p->rnr_retry = a->rnr_retry;
	p->timeout_ns = rc_timeout_ns(a->timeout);
	if (unlikely(pq->port->demand))
		packet_demand_limits(pq, p);
	atomic_store_explicit(&pq->timeout_ns, p->timeout_ns, memory_order_relaxed);
}

void packet_requester_open(struct packet_qp *pq, uint32_t psn)
{
	const uint32_t mtu = packet_mtu(pq), buffer_bytes = pq->port->buffer_bytes;
	struct rc_requester_params params = {
		.reliable = pq->service != PACKET_UC,
		.mtu = mtu,
		.psn = psn,
		.window = pq->port->medium->window,
		.window_usual = MIN(WINDOW_USUAL_BYTES, buffer_bytes) / mtu,
		.window_most = buffer_bytes / mtu,
		.max_rd_atomic = pq->qp->attr.max_rd_atomic,
		.retry_cnt = pq->qp->attr.retry_cnt,
		.rnr_retry = pq->qp->attr.rnr_retry,
		.timeout_ns = rc_timeout_ns(pq->qp->attr.timeout),
		.line_bps = pq->port->medium->line_bps,
		.ring.entries = pq->entries,
		.ring.stride = sizeof(*pq->entries),
		.ring.mask = pq->qp->sq.mask,
	};

	if (unlikely(pq->port->demand)) {
		packet_demand_limits(pq, &params);
		params.window = buffer_bytes ? buffer_bytes / DEMAND_PACKET_BYTES : DEMAND_WINDOW;
		params.window_usual = params.window_most = params.window;
	}
	rc_requester_open(&pq->requester, &params);
	pq->epoch = pq->qp->tx_epoch;
	pq->completed = 0;
	pq->gone_back = 0;
	atomic_store_explicit(&pq->late_until_ns, 0, memory_order_relaxed);
	pq->answered = 0;
}

void packet_settle(struct packet_qp *pq)
{
	/* Flushed entries are not sent any more (UC in the state SQE). */
	if (unlikely(pq->epoch != pq->qp->tx_epoch))
		packet_requester_open(pq, pq->requester.send_psn);
	set_limits(pq);
}

void packet_arm(struct packet_qp *pq)
{
	const uint64_t late_ns = packet_late_until_ns(pq);
	uint64_t due = rc_deadline(&pq->requester);

	if (pq->look_ns && (!due || pq->look_ns < due))
		due = pq->look_ns;
	if (unlikely(late_ns) && (!due || late_ns < due))
		due = late_ns;
	if (!due || (pq->armed_ns && pq->armed_ns <= due))
		return;
	pq->armed_ns = due;
	/* The two clocks run apart by a millionth part or so. */
	progress_timer_arm(&pq->qp->retry, progress_now_ns() + due - packet_now_ns());
}

void packet_count_repeated(struct packet_qp *pq, uint32_t next_before, enum packet_cause cause)
{
	int32_t repeated = (int32_t)(next_before - pq->requester.next);

	if (likely(pq->gone_back == pq->requester.gone_back))
		return;
	pq->gone_back = pq->requester.gone_back;
	switch (cause) {
	case PACKET_RNR: HCA_COUNT_RARE(pq->qp, TX_RNR_RECEIVED, 1); break;
	case PACKET_TIMEOUT: HCA_COUNT_RARE(pq->qp, TX_TIMEOUTS, 1); break;
	case PACKET_GAP: HCA_COUNT_RARE(pq->qp, TX_GAPS, 1); break;
	case PACKET_DISCARDED: HCA_COUNT_RARE(pq->qp, PAGE_FAULTS, 1); break;
	}
	if (cause != PACKET_RNR)
		HCA_COUNT_RARE(pq->qp, TX_RETRIES, 1);
	/* A part of the message at `next` may be repeated, too. */
	HCA_COUNT_RARE(pq->qp, TX_REPEATED, repeated > 0 ? (uint32_t)repeated : 1);
}

bool packet_finish(struct packet_qp *pq, struct work_done done)
{
	while (pq->completed != done.upto) {
		pq->completed++;
		hca_sq_complete_ok(pq->qp);
	}
	if (likely(done.status == IBV_WC_SUCCESS))
		return true;
	pq->completed++;
	hca_sq_complete(pq->qp, done.status);
	return false;
}

static const struct hca_swqe *entry_of(const struct packet_qp *pq, const struct rc_place *where)
{
	const struct packet_entry *entry = container_of(
		rc_entry(&pq->requester, where->index), struct packet_entry, rc);

	return hca_sq_entry(&pq->qp->sq, entry->sq_index);
}

/* Writes a response into the buffers of its entry. Each payload of a run has where->bytes. */
static enum ibv_wc_status place(struct packet_qp *pq, const struct rc_place *where,
				const struct packet_frame *f, const uint8_t *payload)
{
	const struct hca_swqe *e = entry_of(pq, where);
	unsigned turn = hca_copy_begin(&pq->port->copies);
	int ret = 0;

	if (f->rc.op == RC_ATOMIC_RESPONSE)
		payload = (const uint8_t *)&f->rc.compare_add;
	for (uint32_t i = 0; !ret && i <= where->more; i++)
		ret = hca_sges_write(pq->qp->pd, e->sge, e->num_sge,
				     where->at + i * where->bytes,
				     payload + (size_t)i * f->stride, where->bytes);
	hca_copy_end(&pq->port->copies, turn);
	return ret ? IBV_WC_LOC_PROT_ERR : IBV_WC_SUCCESS;
}

static uint32_t take_reply(struct packet_qp *pq, const struct packet_frame *f,
			   const uint8_t *payload)
{
	bool rnr = f->rc.op == RC_ACK && (f->rc.syndrome & RC_SYN_KIND) == RC_SYN_RNR;
	enum ibv_wc_status copied = IBV_WC_SUCCESS;
	struct rc_place where;
	struct work_done done;
	uint32_t next;

	packet_settle(pq);
	next = pq->requester.next;
	rc_reply_look(&pq->requester, &f->rc, &where);
	if (unlikely(pq->port->demand) && packet_discards(pq, f, &where, entry_of(pq, &where))) {
		packet_count_repeated(pq, next, PACKET_DISCARDED);
		packet_arm(pq);
		return 1 + f->rc.more;
	}
	if (where.wanted && where.bytes)
		copied = place(pq, &where, f, payload);
	done = rc_reply(&pq->requester, &f->rc, copied, pq->port->now_ns);
	packet_count_repeated(pq, next, rnr ? PACKET_RNR : PACKET_GAP);
	if (unlikely(pq->port->demand))
		packet_demand_replied(pq, f);
	/* The last RNR NAK makes the entry fail, so it starts no wait that would be counted. */
	if (unlikely(done.status == IBV_WC_RNR_RETRY_EXC_ERR))
		HCA_COUNT_RARE(pq->qp, TX_RNR_RECEIVED, 1);
	packet_finish(pq, done);
	hca_sq_run(pq->qp);
	return 1 + where.more;
}

uint32_t packet_reply(struct packet_qp *pq, const struct packet_frame *f,
		      const uint8_t *payload)
{
	enum ibv_qp_state state;
	uint32_t taken = 1;

	hca_lock(&pq->qp->sq_lock);
	state = hca_qp_state(pq->qp);
	if (pq->ready && (state == IBV_QPS_RTS || state == IBV_QPS_SQD))
		taken = take_reply(pq, f, payload);
	hca_unlock(&pq->qp->sq_lock);
	return taken;
}

void packet_notified(struct packet_qp *pq, const struct packet_frame *f)
{
	/* The responses to READs are slowed, too. */
	rc_slow(&pq->responder, packet_now_ns());
	hca_lock(&pq->qp->sq_lock);
	if (pq->ready)
		rc_reply(&pq->requester, &f->rc, IBV_WC_SUCCESS, pq->port->now_ns);
	hca_unlock(&pq->qp->sq_lock);
}
