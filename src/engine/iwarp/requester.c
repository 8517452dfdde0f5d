/* SPDX-License-Identifier: BSD-2-Clause */
/* The send queue of an iWARP connection; see requester.h. */
#include "engine/iwarp/requester.h"

#include <arpa/inet.h>
#include <string.h>

#include "util/container_of.h"

enum {
	RTR_STAG = 1, /* as of Linux's siw */
	ATOMIC_BYTES = 8,
};

static bool is_atomic(const struct iwarp_wqe *e)
{
	return e->op == WORK_COMPARE_SWAP || e->op == WORK_FETCH_ADD;
}

/* Is it completed by a response? */
static bool is_read(const struct iwarp_wqe *e)
{
	return e->op == WORK_READ || is_atomic(e);
}

static struct work_done done(const struct iwarp_requester *rq)
{
	return (struct work_done){ rq->tail, IBV_WC_SUCCESS };
}

void iwarp_requester_open(struct iwarp_requester *rq, const struct iwarp_requester_params *p)
{
	memset(rq, 0, sizeof(*rq));
	rq->p = *p;
	rq->send_msn = rq->read_msn = rq->response_msn = 1;
}

bool iwarp_request_possible(const struct iwarp_requester *rq, const struct iwarp_wqe *e)
{
	if (e->flags & WORK_WORD)
		return false;
	switch (e->op) {
	case WORK_SEND:
		return !(e->flags & WORK_IMM);
	case WORK_WRITE:
		return !(e->flags & WORK_INVALIDATE) &&
		       (rq->p.extended || !(e->flags & WORK_IMM));
	case WORK_READ:
		return rq->p.ord && !(e->flags & (WORK_IMM | WORK_INVALIDATE));
	case WORK_COMPARE_SWAP:
	case WORK_FETCH_ADD:
		return rq->p.ord && rq->p.extended && e->length == ATOMIC_BYTES;
	default:
		return false;
	}
}

void iwarp_post(struct iwarp_requester *rq)
{
	rq->head++;
}

/* ---- the next segment ---- */

/* May the entry begin? */
static bool may_begin(const struct iwarp_requester *rq, const struct iwarp_wqe *e)
{
	if ((e->flags & WORK_FENCE) && rq->reads)
		return false;
	return !is_read(e) || rq->reads < rq->p.ord;
}

/* The payload from `at` on, as much as the segment may have. */
static void describe_payload(const struct iwarp_requester *rq, const struct iwarp_wqe *e,
			     size_t headers, struct iwarp_tx *tx)
{
	struct iwarp_segment *s = &tx->segment;

	s->bytes = MIN(e->length - rq->at, rq->p.mulpdu - (uint32_t)headers);
	s->last = rq->at + s->bytes == e->length;
	if (s->bytes)
		tx->source = IWARP_FROM_ENTRY;
}

static uint8_t send_opcode(uint8_t flags)
{
	switch (flags & (WORK_SOLICITED | WORK_INVALIDATE)) {
	case WORK_SOLICITED: return IWARP_SEND_SE;
	case WORK_INVALIDATE: return IWARP_SEND_INVALIDATE;
	case WORK_SOLICITED | WORK_INVALIDATE: return IWARP_SEND_SE_INVALIDATE;
	default: return IWARP_SEND;
	}
}

static void describe_send(const struct iwarp_requester *rq, const struct iwarp_wqe *e,
			  struct iwarp_tx *tx)
{
	struct iwarp_segment *s = &tx->segment;

	s->opcode = send_opcode(e->flags);
	s->invalidate_stag = e->imm;
	s->msn = rq->send_msn;
	s->mo = rq->at;
	describe_payload(rq, e, IWARP_UNTAGGED_BYTES, tx);
}

/* Behind the last byte of a WRITE: its immediate data, a message of its own. */
static bool is_immediate(const struct iwarp_requester *rq, const struct iwarp_wqe *e)
{
	return (e->flags & WORK_IMM) && rq->begun && rq->at == e->length;
}

static void describe_write(const struct iwarp_requester *rq, const struct iwarp_wqe *e,
			   struct iwarp_tx *tx)
{
	struct iwarp_segment *s = &tx->segment;

	if (is_immediate(rq, e)) {
		s->opcode = e->flags & WORK_SOLICITED ? IWARP_IMMEDIATE_SE : IWARP_IMMEDIATE;
		s->msn = rq->send_msn;
		s->immediate = (uint64_t)ntohl(e->imm) << 32;
		s->last = true;
		return;
	}
	s->opcode = IWARP_WRITE;
	s->stag = e->stag;
	s->to = e->to + rq->at;
	describe_payload(rq, e, IWARP_TAGGED_BYTES, tx);
}

static void describe_read(const struct iwarp_requester *rq, const struct iwarp_wqe *e,
			  struct iwarp_segment *s)
{
	s->opcode = IWARP_READ_REQUEST;
	s->last = true;
	s->msn = s->read.sink_stag = rq->read_msn;
	s->read.source_stag = e->stag;
	s->read.source_to = e->to;
	s->read.bytes = e->length;
}

static void describe_atomic(const struct iwarp_requester *rq, const struct iwarp_wqe *e,
			    struct iwarp_segment *s)
{
	bool swaps = e->op == WORK_COMPARE_SWAP;

	s->opcode = IWARP_ATOMIC_REQUEST;
	s->last = true;
	s->msn = s->atomic.request = rq->read_msn;
	s->atomic.operation = swaps ? IWARP_COMPARE_SWAP : IWARP_FETCH_ADD;
	s->atomic.stag = e->stag;
	s->atomic.to = e->to;
	s->atomic.add_swap = swaps ? e->swap : e->compare_add;
	s->atomic.compare = swaps ? e->compare_add : 0;
	/* Without masks: all bits are compared and swapped, and the sum has one carry. */
	s->atomic.add_swap_mask = s->atomic.compare_mask = swaps ? UINT64_MAX : 0;
}

static void describe_rtr(const struct iwarp_requester *rq, struct iwarp_segment *s)
{
	s->last = true;
	switch (rq->p.rtr) {
	case IWARP_RTR_WRITE:
		s->opcode = IWARP_WRITE;
		s->stag = RTR_STAG;
		break;
	case IWARP_RTR_READ:
		s->opcode = IWARP_READ_REQUEST;
		s->msn = rq->read_msn;
		s->read.sink_stag = s->read.source_stag = RTR_STAG;
		break;
	default:
		s->opcode = IWARP_SEND;
		s->msn = rq->send_msn;
		break;
	}
}

bool iwarp_request_next(const struct iwarp_requester *rq, uint32_t limit, struct iwarp_tx *tx)
{
	const struct iwarp_wqe *e;

	if (rq->failed || rq->refused)
		return false;
	*tx = (struct iwarp_tx){ .index = rq->next, .at = rq->at };
	if (rq->p.rtr) {
		describe_rtr(rq, &tx->segment);
		return true;
	}
	if (rq->next == rq->head)
		return false;
	e = iwarp_entry(rq, rq->next);
	/* A message that has begun is completed, even beyond `limit`. */
	if (!rq->begun && ((int32_t)(rq->next - limit) >= 0 || !may_begin(rq, e)))
		return false;
	if (e->op == WORK_SEND)
		describe_send(rq, e, tx);
	else if (e->op == WORK_WRITE)
		describe_write(rq, e, tx);
	else if (e->op == WORK_READ)
		describe_read(rq, e, &tx->segment);
	else
		describe_atomic(rq, e, &tx->segment);
	return true;
}

static void count_message(struct iwarp_requester *rq, uint8_t qn)
{
	if (qn == IWARP_QN_SEND)
		rq->send_msn++;
	else
		rq->read_msn++;
}

static void requested_rtr(struct iwarp_requester *rq, uint64_t position)
{
	if (rq->p.rtr == IWARP_RTR_READ) {
		rq->rtr_waits = true;
		rq->rtr_end = position;
		rq->reads++;
	}
	rq->p.rtr = 0;
}

void iwarp_requested(struct iwarp_requester *rq, const struct iwarp_tx *tx, uint64_t position)
{
	const struct iwarp_opcode_info *op = &iwarp_opcodes[tx->segment.opcode];
	struct iwarp_wqe *e = iwarp_entry(rq, rq->next);
	bool more;

	if (!op->tagged && tx->segment.last)
		count_message(rq, op->qn);
	if (rq->p.rtr) {
		requested_rtr(rq, position);
		return;
	}
	if (!op->tagged)
		e->msn = tx->segment.msn;
	rq->at += tx->segment.bytes;
	more = !tx->segment.last || (tx->segment.opcode == IWARP_WRITE && (e->flags & WORK_IMM));
	rq->begun = more;
	if (more)
		return;
	e->end = position;
	rq->reads += is_read(e);
	rq->next++;
	rq->at = 0;
}

/* ---- completions ---- */

struct work_done iwarp_requester_fail(struct iwarp_requester *rq, enum ibv_wc_status status)
{
	if (rq->failed || rq->tail == rq->head)
		status = IBV_WC_SUCCESS;
	rq->failed = true;
	return (struct work_done){ rq->tail, status };
}

/* SENDs and WRITEs that TCP has taken are complete up to the next READ. */
static struct work_done advance(struct iwarp_requester *rq)
{
	if (rq->failed)
		return done(rq);
	while (rq->tail != rq->next) {
		const struct iwarp_wqe *e = iwarp_entry(rq, rq->tail);

		if (is_read(e) || e->end > rq->taken)
			break;
		rq->tail++;
	}
	if (rq->refused && rq->tail == rq->refused_index)
		return iwarp_requester_fail(rq, rq->refused);
	return done(rq);
}

struct work_done iwarp_request_refuse(struct iwarp_requester *rq, const struct iwarp_tx *tx,
				      enum ibv_wc_status status)
{
	rq->refused = status;
	rq->refused_index = tx->index;
	if (rq->begun && rq->tail != tx->index)
		return iwarp_requester_fail(rq, IBV_WC_WR_FLUSH_ERR);
	return advance(rq);
}

struct work_done iwarp_request_taken(struct iwarp_requester *rq, uint64_t position)
{
	rq->taken = position;
	return advance(rq);
}

/* ---- responses ---- */

/* The READ or atomic whose response is next, NULL: the RTR. False: no response is awaited. */
static bool awaited(const struct iwarp_requester *rq, const struct iwarp_wqe **e)
{
	*e = NULL;
	if (rq->failed)
		return false;
	if (rq->rtr_waits)
		return rq->rtr_end <= rq->taken;
	/* The oldest entry is it: what was sent before is complete. */
	if (rq->tail == rq->next)
		return false;
	*e = iwarp_entry(rq, rq->tail);
	return is_read(*e) && (*e)->end <= rq->taken;
}

static enum iwarp_error look_read(const struct iwarp_requester *rq,
				  const struct iwarp_segment *s, const struct iwarp_wqe *e)
{
	uint32_t length = e ? e->length : 0, stag = e ? e->msn : RTR_STAG;

	if (e && e->op != WORK_READ)
		return IWARP_RDMAP_OPCODE;
	if (s->stag != stag)
		return IWARP_DDP_STAG;
	if (s->to != rq->got || s->bytes > length - rq->got)
		return IWARP_DDP_BOUNDS;
	return s->last == (rq->got + s->bytes == length) ? IWARP_OK : IWARP_RDMAP_STREAM;
}

static enum iwarp_error look_atomic(const struct iwarp_requester *rq,
				    const struct iwarp_segment *s, const struct iwarp_wqe *e)
{
	if (!e || !is_atomic(e))
		return IWARP_RDMAP_OPCODE;
	if (s->msn != rq->response_msn)
		return IWARP_DDP_MSN;
	return s->atomic_response.request == e->msn ? IWARP_OK : IWARP_RDMAP_STREAM;
}

enum iwarp_error iwarp_reply_look(const struct iwarp_requester *rq,
				  const struct iwarp_segment *segment,
				  struct iwarp_place *place)
{
	bool atomic = segment->opcode == IWARP_ATOMIC_RESPONSE;
	const struct iwarp_wqe *e;
	enum iwarp_error error;

	*place = (struct iwarp_place){ .index = rq->tail };
	if (!awaited(rq, &e))
		return IWARP_RDMAP_OPCODE;
	error = atomic ? look_atomic(rq, segment, e) : look_read(rq, segment, e);
	if (error)
		return error;
	place->at = rq->got;
	place->bytes = atomic ? ATOMIC_BYTES : segment->bytes;
	place->original = atomic ? segment->atomic_response.original : 0;
	return IWARP_OK;
}

struct work_done iwarp_reply(struct iwarp_requester *rq, const struct iwarp_segment *segment,
			     enum ibv_wc_status copied)
{
	if (copied != IBV_WC_SUCCESS)
		return iwarp_requester_fail(rq, copied);
	if (!segment->last) {
		rq->got += segment->bytes;
		return done(rq);
	}
	rq->got = 0;
	rq->reads--;
	if (segment->opcode == IWARP_ATOMIC_RESPONSE)
		rq->response_msn++;
	if (rq->rtr_waits)
		rq->rtr_waits = false;
	else
		rq->tail++;
	return advance(rq);
}

/* ---- what a TERMINATE means ---- */

static enum ibv_wc_status status_of_rdmap(const struct iwarp_terminate *t)
{
	if (t->type == IWARP_TYPE_RDMAP_PROTECTION)
		return IBV_WC_REM_ACCESS_ERR;
	if (t->type == IWARP_TYPE_RDMAP_OPERATION)
		switch (t->code) {
		case 5: /* version */
		case 6: /* opcode */
			return IBV_WC_REM_INV_REQ_ERR;
		case 9: /* cannot be invalidated */
			return IBV_WC_REM_ACCESS_ERR;
		default:
			return IBV_WC_REM_OP_ERR;
		}
	/* Linux's siw says so when its program disconnects. */
	return t->code == 0xff ? IBV_WC_WR_FLUSH_ERR : IBV_WC_REM_OP_ERR;
}

static enum ibv_wc_status status_of_ddp(const struct iwarp_terminate *t)
{
	if (t->type == IWARP_TYPE_DDP_TAGGED)
		return t->code == 4 /* version */ ? IBV_WC_REM_INV_REQ_ERR : IBV_WC_REM_ACCESS_ERR;
	if (t->type != IWARP_TYPE_DDP_UNTAGGED)
		return IBV_WC_REM_OP_ERR;
	/* No buffer: what InfiniBand would have tried again, and not for ever. */
	return t->code == 2 ? IBV_WC_RNR_RETRY_EXC_ERR : IBV_WC_REM_INV_REQ_ERR;
}

enum ibv_wc_status iwarp_terminate_status(const struct iwarp_terminate *t)
{
	switch (t->layer) {
	case IWARP_LAYER_RDMAP: return status_of_rdmap(t);
	case IWARP_LAYER_DDP: return status_of_ddp(t);
	case IWARP_LAYER_LLP: return IBV_WC_RETRY_EXC_ERR; /* bytes were lost on the way */
	default: return IBV_WC_REM_OP_ERR;
	}
}
