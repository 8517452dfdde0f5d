/* SPDX-License-Identifier: BSD-2-Clause */
/* Both halves of an iWARP connection on one stream; see connection.h. */
#include "engine/iwarp/connection.h"

#include <assert.h>
#include <string.h>

void iwarp_connection_open(struct iwarp_connection *c, const struct iwarp_connection_params *p,
			   uint64_t now_ns)
{
	const struct iwarp_terms *t = p->terms;

	memset(c, 0, sizeof(*c));
	c->framer = (struct iwarp_framer){ .markers = t->markers_out, .crc = t->crc };
	iwarp_requester_open(&c->rq, &(struct iwarp_requester_params){
		.mulpdu = p->mulpdu, .ord = t->ord, .extended = p->extended,
		.rtr = t->initiator ? t->rtr : 0, .ring = p->ring });
	iwarp_responder_open(&c->rs, &(struct iwarp_responder_params){
		.mulpdu = p->mulpdu, .ird = t->ird, .extended = p->extended,
		.rtr = t->initiator ? 0 : t->rtr });
	c->begun = t->initiator;
	c->close_ns = p->close_ns;
	if (!t->initiator && t->rtr && p->begin_ns)
		c->deadline_ns = now_ns + p->begin_ns;
}

/* ---- outcomes ---- */

static struct iwarp_outcome outcome(const struct iwarp_connection *c)
{
	return (struct iwarp_outcome){ .done = { c->rq.tail, IBV_WC_SUCCESS } };
}

/* The queue pair fails, for the first time. */
static void fail(struct iwarp_connection *c, enum ibv_wc_status status, struct iwarp_outcome *o)
{
	if (!c->rq.failed)
		o->done = iwarp_requester_fail(&c->rq, status);
	o->fail = !c->failed;
	c->failed = true;
}

static void disconnect(struct iwarp_connection *c, struct iwarp_outcome *o)
{
	o->disconnected = !c->disconnected;
	c->disconnected = true;
}

/* Ends the own direction with a TERMINATE, if it has not ended, and takes nothing more. `segment`:
 * it is at fault. */
static void terminate(struct iwarp_connection *c, enum iwarp_error error, const uint8_t *segment,
		      size_t there, size_t bytes)
{
	if (c->input == IWARP_IN_MESSAGES)
		c->input = IWARP_IN_DROPPED;
	if (c->error || c->terminated)
		return;
	c->error = error;
	if (c->output >= IWARP_OUT_TERMINATE)
		return;
	iwarp_terminate_fill(&c->terminate, error, segment, there, bytes);
	c->midway = c->rq.begun;
	c->output = IWARP_OUT_TERMINATE;
}

/* The result of the requester, which may have failed with it: so does the connection. */
static void take_done(struct iwarp_connection *c, struct work_done done, struct iwarp_outcome *o)
{
	o->done = done;
	if (!c->rq.failed || c->failed)
		return;
	terminate(c, IWARP_RDMAP_CATASTROPHIC, NULL, 0, 0);
	fail(c, IBV_WC_WR_FLUSH_ERR, o);
}

/* An FPDU of the peer has come, so this end may send. */
static void begin(struct iwarp_connection *c)
{
	if (!c->begun)
		c->deadline_ns = 0;
	c->begun = true;
}

/* An orderly end may take as long as something moves, unless the queue pair waits for nothing any more:
 * what is left are responses, and the peer would decide how long that is. */
static void note_progress(struct iwarp_connection *c)
{
	if (c->output == IWARP_OUT_CLOSING && !c->failed)
		c->deadline_ns = 0;
}

/* ---- sending ---- */

static bool next_message(const struct iwarp_connection *c, uint32_t limit, struct iwarp_tx *tx)
{
	if (c->rq.begun)
		return iwarp_request_next(&c->rq, limit, tx);
	if (iwarp_respond_is_midway(&c->rs) || c->responses_first)
		return iwarp_respond_next(&c->rs, tx) || iwarp_request_next(&c->rq, limit, tx);
	return iwarp_request_next(&c->rq, limit, tx) || iwarp_respond_next(&c->rs, tx);
}

static void describe_terminate(const struct iwarp_connection *c, struct iwarp_tx *tx)
{
	*tx = (struct iwarp_tx){ .segment = { .opcode = IWARP_TERMINATE, .last = true, .msn = 1,
					      .terminate = c->terminate } };
}

bool iwarp_next(const struct iwarp_connection *c, uint32_t limit, struct iwarp_tx *tx)
{
	if (!c->begun || c->aborted)
		return false;
	switch ((enum iwarp_output)c->output) {
	case IWARP_OUT_MESSAGES:
	case IWARP_OUT_CLOSING:
		return next_message(c, limit, tx);
	case IWARP_OUT_TERMINATE:
		if (!c->midway && iwarp_respond_next(&c->rs, tx))
			return true;
		describe_terminate(c, tx);
		return true;
	default:
		return false;
	}
}

void iwarp_framed(struct iwarp_connection *c, const struct iwarp_tx *tx)
{
	switch (tx->segment.opcode) {
	case IWARP_TERMINATE:
		c->output = IWARP_OUT_END;
		break;
	case IWARP_READ_RESPONSE:
	case IWARP_ATOMIC_RESPONSE:
		iwarp_responded(&c->rs, tx);
		c->responses_first = false;
		break;
	default:
		iwarp_requested(&c->rq, tx, c->framer.position);
		c->responses_first = true;
		break;
	}
}

struct iwarp_outcome iwarp_unreadable(struct iwarp_connection *c, const struct iwarp_tx *tx,
				      enum ibv_wc_status status, enum iwarp_answer answer)
{
	struct iwarp_outcome o = outcome(c);

	if (tx->source == IWARP_FROM_ENTRY) {
		take_done(c, iwarp_request_refuse(&c->rq, tx, status), &o);
	} else {
		terminate(c, iwarp_respond_failed(&c->rs, answer), NULL, 0, 0);
		fail(c, IBV_WC_WR_FLUSH_ERR, &o);
	}
	return o;
}

struct iwarp_outcome iwarp_took(struct iwarp_connection *c, uint64_t bytes)
{
	struct iwarp_outcome o = outcome(c);

	c->taken += bytes;
	assert(c->taken <= c->framer.position);
	note_progress(c);
	take_done(c, iwarp_request_taken(&c->rq, c->taken), &o);
	return o;
}

/* ---- receiving ---- */

static bool is_reply(const struct iwarp_segment *s)
{
	return s->opcode == IWARP_READ_RESPONSE || s->opcode == IWARP_ATOMIC_RESPONSE;
}

bool iwarp_arrived(const struct iwarp_connection *c, const struct iwarp_segment *segment,
		   struct iwarp_arrival *arrival)
{
	memset(arrival, 0, sizeof(*arrival));
	if (c->input != IWARP_IN_MESSAGES)
		return false;
	arrival->reply = is_reply(segment);
	if (segment->opcode == IWARP_ATOMIC_RESPONSE && !c->rq.p.extended)
		arrival->look.error = IWARP_RDMAP_OPCODE;
	else if (arrival->reply)
		arrival->look.error = iwarp_reply_look(&c->rq, segment, &arrival->place);
	else if (segment->opcode != IWARP_TERMINATE)
		iwarp_look(&c->rs, segment, &arrival->look);
	return true;
}

/* The headers again, for the TERMINATE. */
static void terminate_for(struct iwarp_connection *c, enum iwarp_error error,
			  const struct iwarp_segment *segment)
{
	uint8_t headers[IWARP_HEADERS_MAX];
	size_t bytes = iwarp_segment_encode(segment, headers);

	terminate(c, error, headers, bytes, bytes + segment->bytes);
}

static void take_terminate(struct iwarp_connection *c, const struct iwarp_terminate *t,
			   struct iwarp_outcome *o)
{
	if (c->output < IWARP_OUT_END)
		c->output = IWARP_OUT_END;
	c->input = IWARP_IN_DROPPED;
	c->terminated = true;
	c->terminate = *t;
	fail(c, iwarp_terminate_status(t), o);
	disconnect(c, o);
}

static void take_reply(struct iwarp_connection *c, const struct iwarp_segment *segment,
		       const struct iwarp_arrival *a, enum ibv_wc_status copied,
		       struct iwarp_outcome *o)
{
	if (!a->look.error) {
		take_done(c, iwarp_reply(&c->rq, segment, copied), o);
		return;
	}
	terminate_for(c, a->look.error, segment);
	fail(c, IBV_WC_BAD_RESP_ERR, o);
}

struct iwarp_outcome iwarp_carried_out(struct iwarp_connection *c,
				       const struct iwarp_segment *segment,
				       const struct iwarp_arrival *arrival,
				       enum iwarp_answer answer, uint64_t original,
				       enum ibv_wc_status copied)
{
	struct iwarp_outcome o = outcome(c);

	/* Headers came before it failed. */
	if (c->input != IWARP_IN_MESSAGES)
		return o;
	begin(c);
	note_progress(c);
	if (segment->opcode == IWARP_TERMINATE) {
		take_terminate(c, &segment->terminate, &o);
		return o;
	}
	if (arrival->reply) {
		take_reply(c, segment, arrival, copied, &o);
		return o;
	}
	o.receive = iwarp_take(&c->rs, segment, &arrival->look, answer, original);
	if (o.receive.error) {
		terminate_for(c, o.receive.error, segment);
		fail(c, IBV_WC_WR_FLUSH_ERR, &o);
	}
	return o;
}

struct iwarp_outcome iwarp_broken(struct iwarp_connection *c, const struct iwarp_receiver *r)
{
	struct iwarp_outcome o = outcome(c);

	if (c->input != IWARP_IN_MESSAGES)
		return o;
	begin(c);
	terminate(c, r->error, r->broken, r->broken_there, r->broken_bytes);
	/* Bytes were damaged on the way. */
	fail(c, r->error == IWARP_FPDU_CRC ? IBV_WC_RETRY_EXC_ERR : IBV_WC_WR_FLUSH_ERR, &o);
	return o;
}

/* ---- ending ---- */

static void end(struct iwarp_connection *c, enum ibv_wc_status status, struct iwarp_outcome *o)
{
	c->input = IWARP_IN_ENDED;
	if (c->output < IWARP_OUT_END)
		c->output = IWARP_OUT_END;
	fail(c, status, o);
	disconnect(c, o);
}

struct iwarp_outcome iwarp_ended(struct iwarp_connection *c, bool idle)
{
	struct iwarp_outcome o = outcome(c);
	bool orderly = idle && !iwarp_responder_is_midway(&c->rs) && !c->rq.got;
	/* A TERMINATE that is due still leaves: the peer may have ended one direction only. */
	bool terminates = c->output == IWARP_OUT_TERMINATE && c->begun;

	end(c, orderly ? IBV_WC_WR_FLUSH_ERR : IBV_WC_RETRY_EXC_ERR, &o);
	if (terminates)
		c->output = IWARP_OUT_TERMINATE;
	return o;
}

static struct iwarp_outcome end_at_once(struct iwarp_connection *c, enum ibv_wc_status status)
{
	struct iwarp_outcome o = outcome(c);

	c->aborted = true;
	end(c, status, &o);
	return o;
}

struct iwarp_outcome iwarp_lost(struct iwarp_connection *c)
{
	return end_at_once(c, IBV_WC_RETRY_EXC_ERR);
}

void iwarp_close(struct iwarp_connection *c)
{
	if (c->output == IWARP_OUT_MESSAGES)
		c->output = IWARP_OUT_CLOSING;
}

struct iwarp_outcome iwarp_flushed(struct iwarp_connection *c)
{
	struct iwarp_requester *rq = &c->rq;

	if (rq->begun)
		return end_at_once(c, IBV_WC_WR_FLUSH_ERR);
	if (c->input == IWARP_IN_MESSAGES)
		c->input = IWARP_IN_DROPPED;
	c->failed = rq->failed = true;
	rq->tail = rq->next = rq->head;
	rq->reads = 0;
	rq->p.rtr = 0;
	return outcome(c);
}

struct iwarp_outcome iwarp_abort(struct iwarp_connection *c)
{
	return end_at_once(c, IBV_WC_WR_FLUSH_ERR);
}

struct iwarp_outcome iwarp_refuse(struct iwarp_connection *c, enum iwarp_error error)
{
	struct iwarp_outcome o = outcome(c);

	terminate(c, error, NULL, 0, 0);
	fail(c, IBV_WC_WR_FLUSH_ERR, &o);
	return o;
}

/* Has all been sent that was posted or is due, and have the READs been answered? */
static bool is_idle(const struct iwarp_connection *c)
{
	return c->rq.tail == c->rq.head && !c->rq.reads && !c->rq.p.rtr &&
	       c->rs.answered == c->rs.taken;
}

enum iwarp_action iwarp_action(struct iwarp_connection *c, uint64_t now_ns)
{
	if (c->aborted)
		return IWARP_RESET;
	if (c->output == IWARP_OUT_CLOSING && is_idle(c))
		c->output = IWARP_OUT_END;
	if (c->output != IWARP_OUT_MESSAGES && !c->deadline_ns && c->close_ns)
		c->deadline_ns = now_ns + c->close_ns;
	if (c->output == IWARP_OUT_END && c->taken == c->framer.position)
		return IWARP_SHUTDOWN;
	return c->output == IWARP_OUT_SHUT && c->input == IWARP_IN_ENDED ? IWARP_CLOSE :
									     IWARP_NO_ACTION;
}

void iwarp_shut(struct iwarp_connection *c)
{
	c->output = IWARP_OUT_SHUT;
}

struct iwarp_outcome iwarp_timer(struct iwarp_connection *c, uint64_t now_ns)
{
	if (!c->deadline_ns || now_ns < c->deadline_ns)
		return outcome(c);
	return end_at_once(c, IBV_WC_WR_FLUSH_ERR);
}
