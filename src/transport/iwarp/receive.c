/* SPDX-License-Identifier: BSD-2-Clause */
/* From the socket into posted receives and memory. The engine says what a segment needs. */
#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "hca/memory/window.h"
#include "hca/queue/complete.h"
#include "hca/queue/receive.h"
#include "hca/queue/scatter.h"
#include "transport/iwarp/middlebox.h"
#include "transport/iwarp/stream.h"
#include "util/cancel_net.h"

/* A segment while it is carried out. */
struct arrival {
	struct iwarp_arrival a;
	enum iwarp_answer answer;
	enum ibv_wc_status failed; /* of the receive */
	enum ibv_wc_status copied; /* of a reply */
	uint64_t original;         /* of an atomic */
};

/* ---- receives ---- */

static void complete(struct iwarp_stream *s, const struct hca_rwqe *e,
		     enum ibv_wc_status status, const struct iwarp_taken *t)
{
	struct hca_qp *qp = s->qp;
	struct ibv_wc wc = {
		.wr_id = e->wr_id,
		.status = status,
		.opcode = t->immediate ? IBV_WC_RECV_RDMA_WITH_IMM : IBV_WC_RECV,
		.byte_len = t->bytes,
		.qp_num = qp->ibv.qp_num,
	};

	if (t->immediate)
		wc.wc_flags = IBV_WC_WITH_IMM;
	if (t->invalidated)
		wc.wc_flags = IBV_WC_WITH_INV;
	if (wc.wc_flags)
		wc.imm_data = t->imm;
	if (likely(status == IBV_WC_SUCCESS))
		HCA_COUNT_RECEIVED(qp, t->immediate, t->bytes);
	else
		HCA_COUNT_RARE(qp, RX_ERRORS, 1);
	hca_recv_done(qp);
	hca_cq_push(qp->recv_cq, &wc, t->solicited);
}

static void place_send(struct iwarp_stream *s, const struct iwarp_segment *seg,
		       const struct hca_rwqe *e, struct arrival *r)
{
	unsigned turn;
	int ret;

	if ((uint64_t)r->a.look.at + seg->bytes > hca_rwqe_room(e)) {
		r->answer = IWARP_NO_ROOM;
		r->failed = IBV_WC_LOC_LEN_ERR;
		return;
	}
	if (!seg->bytes)
		return;
	turn = hca_copy_begin(&iwarp_port.copies);
	ret = hca_rwqe_write(s->qp, e, r->a.look.at, seg->payload, seg->bytes);
	hca_copy_end(&iwarp_port.copies, turn);
	if (ret) {
		r->answer = IWARP_LOCAL;
		r->failed = IBV_WC_LOC_PROT_ERR;
	}
}

static void invalidate(struct iwarp_stream *s, struct arrival *r)
{
	if (r->answer == IWARP_DONE && (r->a.look.needs & WORK_NEED_INVALIDATE) &&
	    hca_key_invalidate(s->qp, r->a.look.stag))
		r->answer = IWARP_NOT_INVALIDATED;
}

/* A segment for which a receive is taken. */
static void take_with_receive(struct iwarp_stream *s, const struct iwarp_segment *seg,
			      struct arrival *r, struct iwarp_outcome *o)
{
	struct hca_qp *qp = s->qp;
	struct hca_rwqe *e;

	hca_lock(&qp->recv->consume_lock);
	e = hca_recv_first(qp);
	if (!e)
		r->answer = IWARP_NO_RECEIVE;
	else if (r->a.look.needs & WORK_NEED_PLACE)
		place_send(s, seg, e, r);
	invalidate(s, r);
	*o = iwarp_carried_out(&s->c, seg, &r->a, r->answer, 0, IBV_WC_SUCCESS);
	if (e && r->failed != IBV_WC_SUCCESS)
		complete(s, e, r->failed, &o->receive);
	else if (e && o->receive.complete)
		complete(s, e, IBV_WC_SUCCESS, &o->receive);
	else if (e && r->answer == IWARP_DONE)
		hca_recv_keep(qp);
	hca_unlock(&qp->recv->consume_lock);
}

/* ---- segments ---- */

static enum iwarp_answer carry_out_atomic(struct iwarp_stream *s, const struct iwarp_look *l,
					  uint64_t *original)
{
	enum iwarp_answer answer = iwarp_atomic(s, l, original);

	if (answer == IWARP_DONE)
		HCA_COUNT_RARE(s->qp, RX_ATOMICS, 1);
	return answer;
}

static enum iwarp_answer carry_out(struct iwarp_stream *s, const struct iwarp_segment *seg,
				   const struct iwarp_look *l, uint64_t *original)
{
	if (l->needs & WORK_NEED_PLACE)
		return iwarp_access(s, false, l->stag, l->to, l->bytes,
				    (void *)(uintptr_t)seg->payload);
	if (l->needs & WORK_NEED_READ)
		return iwarp_access(s, true, l->stag, l->to, l->bytes, NULL);
	return l->needs & WORK_NEED_ATOMIC ? carry_out_atomic(s, l, original) : IWARP_DONE;
}

/* Writes a response into the buffers of its entry. */
static enum ibv_wc_status place_reply(struct iwarp_stream *s, const struct iwarp_segment *seg,
				      const struct iwarp_place *p)
{
	const void *data = seg->opcode == IWARP_ATOMIC_RESPONSE ? (const void *)&p->original :
								  seg->payload;
	const struct hca_swqe *e;
	unsigned turn;
	int ret;

	if (!p->bytes)
		return IBV_WC_SUCCESS;
	e = hca_sq_entry(&s->qp->sq, iwarp_entry_at(s, p->index)->sq_index);
	turn = hca_copy_begin(&iwarp_port.copies);
	ret = hca_sges_write(s->qp->pd, e->sge, e->num_sge, p->at, data, p->bytes);
	hca_copy_end(&iwarp_port.copies, turn);
	return ret ? IBV_WC_LOC_PROT_ERR : IBV_WC_SUCCESS;
}

static bool is_send(const struct iwarp_segment *seg)
{
	return iwarp_opcodes[seg->opcode].qn == IWARP_QN_SEND && !iwarp_opcodes[seg->opcode].tagged;
}

static void take_segment(struct iwarp_stream *s, const struct iwarp_segment *seg)
{
	struct arrival r = { .answer = IWARP_DONE, .failed = IBV_WC_SUCCESS,
			     .copied = IBV_WC_SUCCESS };
	struct iwarp_outcome o;

	if (!iwarp_is_up(s) || !iwarp_arrived(&s->c, seg, &r.a))
		return;
	if (!r.a.reply && !r.a.look.error && r.a.look.needs && is_send(seg)) {
		take_with_receive(s, seg, &r, &o);
		iwarp_outcome(s, &o);
		return;
	}
	if (r.a.look.error == IWARP_OK && r.a.reply)
		r.copied = place_reply(s, seg, &r.a.place);
	else if (r.a.look.error == IWARP_OK)
		r.answer = carry_out(s, seg, &r.a.look, &r.original);
	o = iwarp_carried_out(&s->c, seg, &r.a, r.answer, r.original, r.copied);
	iwarp_outcome(s, &o);
}

/* ---- bytes ---- */

void iwarp_receive_bytes(struct iwarp_stream *s, const uint8_t *data, size_t bytes)
{
	struct iwarp_outcome o;

	while (bytes && s->c.input == IWARP_IN_MESSAGES)
		switch (iwarp_receiver_take(&s->receiver, &data, &bytes)) {
		case IWARP_NOTHING:
			break;
		case IWARP_FPDU:
			take_segment(s, &s->receiver.segment);
			break;
		default:
			o = iwarp_broken(&s->c, &s->receiver);
			iwarp_outcome(s, &o);
			break;
		}
}

static void end(struct iwarp_stream *s, bool lost)
{
	const struct iwarp_outcome o =
		lost ? iwarp_lost(&s->c) : iwarp_ended(&s->c, iwarp_receiver_idle(&s->receiver));

	iwarp_outcome(s, &o);
}

/* Nothing comes any more, but TCP may take what waits, or has lost the connection, which shows in any
 * case: the socket must not stay ready for that. True: it has taken something. */
static bool send_on(struct iwarp_stream *s)
{
	struct hca_qp *qp = s->qp;
	uint64_t taken;
	bool moved;

	if (!qp)
		return false;
	hca_lock(&qp->sq_lock);
	taken = s->c.taken;
	iwarp_send(s);
	moved = s->c.taken != taken;
	hca_unlock(&qp->sq_lock);
	return moved;
}

/* Reads into the port's buffer. False: the socket is closed. */
static bool read_some(struct iwarp_stream *s, ssize_t *n)
{
	int fd;

	atomic_store(&s->reading, true);
	fd = atomic_load(&s->fd);
	if (fd >= 0)
		do
			*n = cancel_free_recv(fd, iwarp_port.bytes, IWARP_READ_BYTES, MSG_DONTWAIT);
		while (*n < 0 && errno == EINTR);
	atomic_store_explicit(&s->reading, false, memory_order_release);
	return fd >= 0;
}

bool iwarp_receive(struct iwarp_stream *s)
{
	const uint32_t events = atomic_load_explicit(&s->events, memory_order_relaxed);
	struct hca_qp *qp = s->qp;
	ssize_t n;
	bool none;

	if (s->fd < 0)
		return false;
	if (!(events & EPOLLIN))
		return send_on(s);
	if (!read_some(s, &n))
		return false;
	none = n < 0 && errno == EAGAIN;
	if (none && !(events & EPOLLOUT))
		return false;
	if (!qp) {
		/* Bytes that come behind the queue pair's end are dropped. Before it lingers the
		 * thread that ends it still needs it. */
		if (n <= 0 && !none && s->listed)
			progress_timer_arm(&s->linger, progress_now_ns());
		return false;
	}
	hca_lock(&qp->sq_lock);
	if (n > 0) {
		iwarp_show_bytes(s, false, iwarp_port.bytes, (size_t)n);
		iwarp_receive_bytes(s, iwarp_port.bytes, (size_t)n);
	} else if (!none) {
		const bool lost = n || (s->middlebox && iwarp_middlebox_lost(s->middlebox));

		iwarp_show_end(s, false, lost);
		end(s, lost || s->unsendable);
	}
	iwarp_send(s);
	hca_unlock(&qp->sq_lock);
	return !none;
}
