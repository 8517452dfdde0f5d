/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * From the send queue to the socket: the engine gets the entries in their order and says which
 * segment is next; segments leave several at a time, without a copy of their payload where that can
 * be. What TCP does not take is copied, because the engine has framed it.
 */
#define LOG_ROOM "iwarp"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#include "hca/limits.h"
#include "hca/memory/window.h"
#include "hca/queue/complete.h"
#include "hca/queue/scatter.h"
#include "hca/run/dma.h"
#include "transport/iwarp/stream.h"
#include "util/log.h"
#include "util/probe.h"

#define BATCH_IOV 320u /* one FPDU with all its markers, and more */
#define BATCH_TEXT 12288u /* headers, pads, CRCs and markers, and small payloads */
#define SMALL_BYTES 512u
#define BOUNCE_BYTES (IWARP_WRITE_BYTES + IWARP_MULPDU_MAX)
/* Sent at once, about, as long as TCP takes it: then other connections come first. A peer that takes
 * data as fast as it is sent decides how much there is, by READs. */
#define SEND_BYTES (1u << 20)

/* FPDUs that leave together. */
struct batch {
	size_t bytes, text_bytes, bounced;
	unsigned pieces;
	struct iovec iov[BATCH_IOV];
	uint8_t text[BATCH_TEXT];
};

/* ---- entries ---- */

static const struct {
	uint8_t op, flags;
} ops[HCA_OPCODES] = {
	[IBV_WR_RDMA_WRITE] = { WORK_WRITE, 0 },
	[IBV_WR_RDMA_WRITE_WITH_IMM] = { WORK_WRITE, WORK_IMM },
	[IBV_WR_SEND] = { WORK_SEND, 0 },
	[IBV_WR_SEND_WITH_IMM] = { WORK_SEND, WORK_IMM },
	[IBV_WR_RDMA_READ] = { WORK_READ, 0 },
	[IBV_WR_ATOMIC_CMP_AND_SWP] = { WORK_COMPARE_SWAP, 0 },
	[IBV_WR_ATOMIC_FETCH_AND_ADD] = { WORK_FETCH_ADD, 0 },
	[IBV_WR_SEND_WITH_INV] = { WORK_SEND, WORK_INVALIDATE },
};

static void describe(const struct hca_swqe *e, struct iwarp_wqe *to)
{
	*to = (struct iwarp_wqe){
		.op = ops[e->opcode].op,
		.flags = (uint8_t)(ops[e->opcode].flags |
				   (e->flags & HCA_SWQE_SOLICITED ? WORK_SOLICITED : 0) |
				   (e->flags & HCA_SWQE_FENCE ? WORK_FENCE : 0)),
		.length = e->length,
		.imm = e->imm,
		.stag = e->rkey,
		.to = e->remote_addr,
	};
	if (hca_op_is_atomic(e->opcode)) {
		to->compare_add = e->atomic.compare_add;
		to->swap = e->atomic.swap;
	}
}

/* Carries out LOCAL_INV, which is the oldest entry. False: it has failed. */
static bool run_local(struct iwarp_stream *s, struct hca_swqe *e)
{
	struct hca_qp *qp = s->qp;
	int ret = hca_local_run(qp, e, false);

	/* Copies of this transport do not wait. */
	while (ret == -EAGAIN) {
		hca_copies_wait(&iwarp_port.copies);
		ret = hca_local_run(qp, e, true);
	}
	qp->sq.next++;
	hca_sq_complete(qp, ret ? IBV_WC_MW_BIND_ERR : IBV_WC_SUCCESS);
	return ret == 0;
}

/* Hands all entries to the engine that may be sent. False: the queue pair has failed. */
static bool take_new(struct iwarp_stream *s)
{
	struct hca_sq *sq = &s->qp->sq;

	while (iwarp_is_up(s) && sq->next != hca_sq_end(s->qp)) {
		struct iwarp_entry_of_sq *to = iwarp_entry_at(s, s->c.rq.head);
		struct hca_swqe *e = hca_sq_entry(sq, sq->next);
		const bool local = e->flags & HCA_SWQE_LOCAL;

		if (!local)
			describe(e, &to->wqe);
		if (likely(!local && iwarp_request_possible(&s->c.rq, &to->wqe))) {
			to->sq_index = sq->next++;
			iwarp_post(&s->c.rq);
			continue;
		}
		if (sq->next != sq->tail)
			return true;
		if (local) {
			if (!run_local(s, e))
				return false;
			continue;
		}
		sq->next++;
		hca_sq_complete(s->qp, IBV_WC_LOC_QP_OP_ERR);
		return false;
	}
	return iwarp_is_up(s);
}

/* ---- FPDUs ---- */

/* Room for `bytes` of payload that are copied. NULL: none is left in this batch, or at all. */
static uint8_t *bounce(struct iwarp_stream *s, struct batch *b, size_t bytes)
{
	uint8_t *at;

	if (!s->bounce)
		s->bounce = malloc(BOUNCE_BYTES);
	if (!s->bounce || BOUNCE_BYTES - b->bounced < bytes)
		return NULL;
	at = s->bounce + b->bounced;
	b->bounced += bytes;
	return at;
}

/* The payload of a READ response. With CRCs it is copied, because the peer may write there between
 * the sum and the sending. */
static enum iwarp_answer fetch(struct iwarp_stream *s, struct batch *b, const struct iwarp_tx *tx,
			       struct iovec *piece)
{
	const uint32_t bytes = tx->segment.bytes;
	uint8_t *at = NULL;
	enum iwarp_answer answer = IWARP_DONE;

	if (!s->c.framer.crc)
		answer = iwarp_memory(s, tx->stag, tx->to, bytes, &at);
	if (answer == IWARP_DONE && !at) {
		at = bounce(s, b, bytes);
		answer = at ? iwarp_access(s, true, tx->stag, tx->to, bytes, at) : IWARP_LOCAL;
	}
	*piece = (struct iovec){ at, bytes };
	return answer;
}

/* The pieces of the segment's payload: how many; -EFAULT: it cannot be read, and *answer says why if
 * it is a response. */
static int payload_of(struct iwarp_stream *s, struct batch *b, const struct iwarp_tx *tx,
		      struct iovec *iov, enum iwarp_answer *answer)
{
	const uint32_t bytes = tx->segment.bytes;
	const struct iwarp_entry_of_sq *entry;
	const struct hca_swqe *e;
	uint8_t *spare;
	int n;

	*answer = IWARP_DONE;
	if (!bytes)
		return 0;
	if (tx->source == IWARP_FROM_MEMORY) {
		*answer = fetch(s, b, tx, iov);
		return *answer == IWARP_DONE ? 1 : -EFAULT;
	}
	entry = iwarp_entry_at(s, tx->index);
	e = hca_sq_entry(&s->qp->sq, entry->sq_index);
	spare = bounce(s, b, bytes);
	n = spare ? hca_swqe_gather(s->qp, e, tx->at, bytes, iov, spare) : -EFAULT;
	/* Most keys need no copy: the room is free again. */
	for (int i = 0; i < n; i++)
		if ((uint8_t *)iov[i].iov_base >= spare && (uint8_t *)iov[i].iov_base < spare + bytes)
			return n;
	if (n >= 0)
		b->bounced -= bytes;
	return n;
}

/* Does another FPDU fit? */
static bool has_room(const struct batch *b)
{
	return b->bytes < IWARP_WRITE_BYTES &&
	       b->pieces + HCA_MAX_SGE + 4 <= BATCH_IOV &&
	       b->text_bytes + 2 * IWARP_HEADERS_MAX + IWARP_FPDU_EXTRA + SMALL_BYTES <=
		       BATCH_TEXT &&
	       b->bounced <= IWARP_WRITE_BYTES;
}

/* Frames a small segment as one piece, for which the kernel needs less time than for several. `to` is
 * behind the headers in `text`, and the FPDU has them once more. */
static void add_small(struct iwarp_stream *s, struct batch *b, const struct iovec *pieces,
		      unsigned count, uint8_t *to)
{
	struct iovec *last = b->iov + b->pieces;
	const size_t framed = iwarp_framer_write(&s->c.framer, pieces, count, to);

	*last = (struct iovec){ to, framed };
	b->pieces++;
	b->bytes += framed;
	b->text_bytes += pieces[0].iov_len + framed;
}

/* Frames the segment. 0, -EAGAIN: the batch has to leave first, or -EFAULT. */
static int add(struct iwarp_stream *s, struct batch *b, const struct iwarp_tx *tx,
	       enum iwarp_answer *answer)
{
	struct iovec pieces[1 + HCA_MAX_SGE];
	uint8_t *headers = b->text + b->text_bytes, *own;
	size_t header_bytes = iwarp_segment_encode(&tx->segment, headers);
	const uint64_t before = s->c.framer.position;
	const size_t bounced = b->bounced;
	uint64_t framed;
	unsigned out;
	int n = payload_of(s, b, tx, pieces + 1, answer);

	if (n < 0)
		return n;
	pieces[0] = (struct iovec){ headers, header_bytes };
	own = headers + header_bytes;
	if (tx->segment.bytes <= SMALL_BYTES) {
		add_small(s, b, pieces, 1 + (unsigned)n, own);
		return 0;
	}
	out = iwarp_framer_gather(&s->c.framer, pieces, 1 + (unsigned)n, own, b->iov + b->pieces,
				  BATCH_IOV - b->pieces);
	if (!out) {
		b->bounced = bounced;
		return b->pieces ? -EAGAIN : -EFAULT;
	}
	framed = s->c.framer.position - before;
	b->pieces += out;
	b->bytes += framed;
	b->text_bytes += header_bytes + (framed - header_bytes - tx->segment.bytes);
	return 0;
}

/* ---- bytes ---- */

/* Copies what TCP did not take of the batch. False: no memory, so the connection cannot go on. */
static bool keep_rest(struct iwarp_stream *s, const struct batch *b, size_t taken)
{
	const size_t bytes = b->bytes - taken;

	if (s->rest_room < bytes) {
		uint8_t *more = realloc(s->rest, bytes);

		if (!more)
			return false;
		s->rest = more;
		s->rest_room = bytes;
	}
	s->rest_at = s->rest_bytes = 0;
	for (unsigned i = 0; i < b->pieces; i++) {
		const uint8_t *from = b->iov[i].iov_base;
		size_t length = b->iov[i].iov_len, skip = MIN(taken, length);

		taken -= skip;
		hca_dma_copy(s->rest + s->rest_bytes, from + skip, length - skip);
		s->rest_bytes += length - skip;
	}
	return true;
}

static void lose(struct iwarp_stream *s)
{
	const struct iwarp_outcome o = iwarp_lost(&s->c);

	s->rest_at = s->rest_bytes = 0;
	iwarp_outcome(s, &o);
}

static void took(struct iwarp_stream *s, size_t bytes)
{
	const struct iwarp_outcome o = iwarp_took(&s->c, bytes);

	iwarp_outcome(s, &o);
}

/* TCP takes nothing any more. What had arrived before comes first, so the connection ends when the
 * socket has been read to its end. */
static void cannot_send(struct iwarp_stream *s)
{
	if (s->c.input == IWARP_IN_ENDED) {
		lose(s);
		return;
	}
	s->rest_at = s->rest_bytes = 0;
	s->unsendable = true;
}

/* True: nothing waits any more. */
static bool send_rest(struct iwarp_stream *s)
{
	const struct iovec iov = { s->rest + s->rest_at, s->rest_bytes - s->rest_at };
	ssize_t taken;

	if (likely(!iov.iov_len))
		return true;
	taken = iwarp_socket_send(s->fd, &iov, 1);
	if (taken < 0) {
		cannot_send(s);
		return false;
	}
	iwarp_show_pieces(s, &iov, 1, (size_t)taken);
	s->rest_at += (size_t)taken;
	took(s, (size_t)taken);
	return s->rest_at == s->rest_bytes;
}

/* False: nothing more can be sent now. */
static bool send_batch(struct iwarp_stream *s, const struct batch *b)
{
	ssize_t taken = iwarp_socket_send(s->fd, b->iov, b->pieces);

	if (taken > 0)
		iwarp_show_pieces(s, b->iov, b->pieces, (size_t)taken);
	if (taken < 0 || (size_t)taken == b->bytes || keep_rest(s, b, (size_t)taken)) {
		if (taken < 0)
			cannot_send(s);
		else
			took(s, (size_t)taken);
		return taken >= 0 && (size_t)taken == b->bytes;
	}
	log_error("qp 0x%x: no memory for %zu bytes that TCP has no room for",
		  s->qp->ibv.qp_num, b->bytes - (size_t)taken);
	lose(s);
	return false;
}

static void unreadable(struct iwarp_stream *s, const struct iwarp_tx *tx, enum iwarp_answer answer)
{
	const struct iwarp_outcome o =
		iwarp_unreadable(&s->c, tx, IBV_WC_LOC_PROT_ERR, answer);

	iwarp_outcome(s, &o);
}

/* Frames and sends as much as leaves together. False: nothing more can be sent now. */
static bool send_some(struct iwarp_stream *s)
{
	enum iwarp_answer answer = IWARP_DONE;
	struct batch b;
	struct iwarp_tx tx;
	bool more = true;
	unsigned turn;
	int ret = 0;

	if (!iwarp_next(&s->c, s->c.rq.head, &tx))
		return false;
	b.bytes = b.text_bytes = b.bounced = 0;
	b.pieces = 0;
	turn = hca_copy_begin(&iwarp_port.copies);
	do {
		ret = add(s, &b, &tx, &answer);
		if (ret)
			break;
		PROBE(transmit, s->qp->ibv.qp_num, 0, tx.segment.msn, tx.segment.bytes,
		      tx.segment.opcode);
		iwarp_framed(&s->c, &tx);
	} while (!iwarp_is_quiet(&s->c) && has_room(&b) && iwarp_next(&s->c, s->c.rq.head, &tx));
	if (b.pieces)
		more = send_batch(s, &b);
	hca_copy_end(&iwarp_port.copies, turn);
	if (unlikely(ret == -EFAULT && more))
		unreadable(s, &tx, answer);
	return more;
}

/* Does nothing wait to be sent? */
static bool is_quiet(const struct iwarp_stream *s)
{
	return s->qp->sq.next == hca_sq_end(s->qp) && s->rest_at == s->rest_bytes &&
	       iwarp_is_quiet(&s->c);
}

static void send_all(struct iwarp_stream *s)
{
	const uint64_t before = s->c.taken;

	take_new(s);
	if (s->unsendable || !send_rest(s))
		return;
	while (send_some(s) && !is_quiet(s)) {
		if (s->c.taken - before >= SEND_BYTES) {
			s->sends_on = true;
			return;
		}
		take_new(s);
	}
}

/* A peer that has ended its direction makes the socket readable for ever. */
static uint32_t wanted_events(const struct iwarp_stream *s)
{
	return (s->c.input == IWARP_IN_ENDED ? 0 : EPOLLIN) |
	       (s->rest_at != s->rest_bytes || s->sends_on ? EPOLLOUT : 0);
}

void iwarp_send(struct iwarp_stream *s)
{
	if (s->fd < 0)
		return;
	s->sends_on = false;
	if (!s->unsendable && !is_quiet(s))
		send_all(s);
	iwarp_act(s);
	if (s->fd >= 0)
		iwarp_watch(s, wanted_events(s));
}
