/* SPDX-License-Identifier: BSD-2-Clause */
/* An end of a simulated iWARP connection: what a transport would do. */
#include <errno.h>

#include "iwarp_sim.h"
#include "util/container_of.h"

static struct work *work_of(struct end *e, uint32_t index)
{
	return &e->ring[index % ENTRIES];
}

static struct message *message_of(struct end *e, uint32_t index)
{
	return &e->messages[work_of(e, index)->number];
}

/* ---- outcomes ---- */

static void flush(struct end *e)
{
	while (e->completed != e->posted)
		plan_completed(e, e->completed, IBV_WC_WR_FLUSH_ERR);
}

static void take_outcome(struct end *e, const struct iwarp_outcome *o)
{
	world.moved++;
	sim_check(e, !e->failed || (o->done.upto == e->c.rq.tail && !o->done.status),
		  "nothing completes behind a failure");
	sim_check(e, !e->failed || !o->receive.complete, "nor does a receive");
	if (!e->failed)
		while (e->completed != o->done.upto)
			plan_completed(e, e->completed, IBV_WC_SUCCESS);
	if (o->done.status != IBV_WC_SUCCESS) {
		sim_check(e, e->completed != e->posted, "an entry fails that is there");
		e->bad = (int)e->completed;
		plan_completed(e, e->completed, o->done.status);
	}
	e->failed += o->fail;
	sim_check(e, e->failed <= 1, "it fails once");
	if (o->fail)
		flush(e);
	sim_check(e, !o->disconnected || e->failed, "it fails before the disconnect");
	e->disconnected += o->disconnected;
	sim_check(e, e->disconnected <= 1, "it disconnects once");
}

/* ---- set-up ---- */

void end_open(struct end *e, const struct iwarp_setup_params *p)
{
	e->initiator = p->initiator;
	e->bad = -1;
	sim_check(e, !iwarp_setup_open(&e->setup, p, world.now), "the set-up opens");
}

static void open_connection(struct end *e)
{
	const struct iwarp_terms *t = &e->setup.terms;
	const struct iwarp_connection_params p = {
		.terms = t, .mulpdu = e->mulpdu, .extended = world.extended,
		.ring = { e->ring, sizeof(e->ring[0]), ENTRIES - 1 },
		.begin_ns = 1000000, .close_ns = 3000000,
	};

	e->open = true;
	e->rtr_due = !e->initiator && t->rtr;
	iwarp_connection_open(&e->c, &p, world.now);
	iwarp_receiver_init(&e->receiver, t->markers_in, t->crc, e->pieces ? NULL : e->buffer);
	if (e->setup.terminate) {
		struct iwarp_outcome o = iwarp_refuse(&e->c, e->setup.terminate);

		take_outcome(e, &o);
	}
}

static void decide(struct end *e)
{
	static const uint8_t words[40] = "private";
	int ret;

	if (dice(30) == 0)
		ret = iwarp_setup_reject(&e->setup, words, (uint16_t)dice(40));
	else
		ret = iwarp_setup_accept(&e->setup, e->setup.p.ird, e->setup.p.ord, words,
					 (uint16_t)dice(40));
	sim_check(e, !ret, "a decision");
}

static void attend_setup(struct end *e)
{
	if (e->open || e->closed)
		return;
	if (e->setup.state == IWARP_SETUP_DECIDING && dice(2))
		decide(e);
	if (e->setup.state == IWARP_SETUP_DONE ||
	    (e->setup.state == IWARP_SETUP_FAILED && e->setup.terminate)) {
		open_connection(e);
	} else if (e->setup.state == IWARP_SETUP_FAILED) {
		world.moved++;
		e->closed = e->out->fin = true;
	}
}

/* ---- sending ---- */

void end_post(struct end *e)
{
	struct iwarp_requester *rq = &e->c.rq;
	struct message *m = &e->messages[e->posted];
	struct work *w = work_of(e, rq->head);

	if (!e->open || e->failed || e->posted == e->count || rq->head - rq->tail == ENTRIES ||
	    e->c.output != IWARP_OUT_MESSAGES)
		return;
	*w = (struct work){ { .op = m->op, .flags = m->flags, .length = m->length, .imm = m->imm,
			      .stag = m->stag, .to = m->to, .compare_add = m->compare_add,
			      .swap = m->swap }, e->posted };
	sim_check(e, iwarp_request_possible(rq, &w->wqe), "it can be sent");
	world.moved++;
	e->posted++;
	iwarp_post(rq);
}

/* What every segment has to keep to. */
static void check_tx(struct end *e, const struct iwarp_tx *tx)
{
	const struct iwarp_segment *s = &tx->segment;
	bool response = s->opcode == IWARP_READ_RESPONSE || s->opcode == IWARP_ATOMIC_RESPONSE;
	bool has_immediate;
	struct iwarp_tx other;

	world.segments++;
	sim_check(e, e->c.begun, "the responder sends nothing before the first FPDU");
	sim_check(e, !s->bytes || iwarp_opcodes[s->opcode].bytes + s->bytes <= e->mulpdu,
		  "no longer than MULPDU");
	if (s->opcode == IWARP_TERMINATE)
		return;
	sim_check(e, e->middle != IN_REQUEST || !response, "requests are not interrupted");
	sim_check(e, e->middle != IN_RESPONSE || response, "responses are not interrupted");
	if (e->middle == BORDER && !response && e->last_was_request)
		sim_check(e, !iwarp_respond_next(&e->c.rs, &other), "responses have their turn");
	if (e->middle == BORDER && response && !e->last_was_request &&
	    e->c.output != IWARP_OUT_TERMINATE)
		sim_check(e, !iwarp_request_next(&e->c.rq, e->limit, &other),
			  "and requests theirs");
	has_immediate = s->opcode == IWARP_WRITE && !e->c.rq.p.rtr &&
			(work_of(e, tx->index)->wqe.flags & WORK_IMM);
	e->middle = s->last && !has_immediate ? BORDER : response ? IN_RESPONSE : IN_REQUEST;
	e->last_was_request = !response;
}

/* The first segment of a message, or all of a READ. */
static void check_begin(struct end *e, const struct iwarp_tx *tx)
{
	struct message *m = message_of(e, tx->index);
	bool is_read = m->op >= WORK_READ;

	if (m->framed)
		return;
	m->framed = true;
	sim_check(e, !(m->flags & WORK_FENCE) || !e->reads, "fences wait");
	e->reads += is_read;
	sim_check(e, e->reads <= e->setup.terms.ord, "no more READs than ORD");
}

/* The payload at `to`. False: it cannot be read. */
static bool gather(struct end *e, const struct iwarp_tx *tx, uint8_t *to)
{
	uint32_t bytes = tx->segment.bytes;

	if (tx->source == IWARP_FROM_ENTRY) {
		const struct message *m = message_of(e, tx->index);

		sim_check(e, tx->at + bytes <= m->length, "within the message");
		memcpy(to, m->bytes + tx->at, bytes);
		/* At once, or in the middle of the message. */
		return m->poison != POISON_GATHER ||
		       (m->imm % 2 && tx->at == 0 && bytes < m->length);
	}
	if (tx->source == IWARP_FROM_MEMORY) {
		sim_check(e, tx->stag == GOOD_KEY && tx->to + bytes <= PATTERN_BYTES,
			  "within what may be read");
		memcpy(to, pattern + tx->to, bytes);
	}
	return true;
}

static bool frame_one(struct end *e, const struct iwarp_tx *tx)
{
	uint8_t headers[IWARP_HEADERS_MAX], payload[OUTBOX_BYTES];
	const struct message *due = plan_next_response(e);
	bool response = tx->segment.opcode == IWARP_READ_RESPONSE;
	bool readable = gather(e, tx, payload) &&
			!(response && due && due->poison == POISON_RESPOND);
	struct iwarp_segment sent = tx->segment;
	struct iovec pieces[2] = { { headers, iwarp_segment_encode(&sent, headers) },
				   { payload, sent.bytes } };
	size_t bytes = iwarp_framer_bytes(&e->c.framer, pieces[0].iov_len + pieces[1].iov_len);

	if (e->outbox_bytes + bytes > OUTBOX_BYTES)
		return false;
	if (!readable) {
		struct iwarp_outcome o = iwarp_unreadable(
			&e->c, tx, IBV_WC_LOC_PROT_ERR, IWARP_NO_STAG);

		take_outcome(e, &o);
		return false;
	}
	check_tx(e, tx);
	if (!e->c.rq.p.rtr && !response && tx->segment.opcode != IWARP_TERMINATE &&
	    tx->segment.opcode != IWARP_ATOMIC_RESPONSE)
		check_begin(e, tx);
	if (!e->c.rq.p.rtr && sent.opcode != IWARP_TERMINATE)
		forge_segment(e, &sent);
	iwarp_segment_encode(&sent, headers);
	e->responded += (response || tx->segment.opcode == IWARP_ATOMIC_RESPONSE) &&
			tx->segment.last;
	sim_check(e, iwarp_framer_write(&e->c.framer, pieces, 2, e->outbox + e->outbox_bytes) ==
			     bytes, "an FPDU");
	e->outbox_bytes += bytes;
	iwarp_framed(&e->c, tx);
	world.moved++;
	return true;
}

void end_frame(struct end *e)
{
	struct iwarp_tx tx;

	if (!e->open || e->closed)
		return;
	if (dice(40) == 0)
		iwarp_set_mulpdu(&e->c, e->mulpdu = 64 + (uint32_t)dice(dice(2) ? 100 : 2000));
	e->limit = dice(50) ? e->c.rq.head : e->c.rq.next;
	while (e->outbox_bytes <= e->ahead && iwarp_next(&e->c, e->limit, &tx))
		if (!frame_one(e, &tx))
			break;
}

/* A part of what could be moved. */
static size_t part(size_t bytes)
{
	size_t most = 1 + dice(dice(3) ? PIPE_BYTES : 9);

	return MIN(bytes, most);
}

/* Into the pipe, which may end at a byte or damage one. */
static size_t put(struct pipe *p, const uint8_t *data, size_t bytes)
{
	size_t n = part(MIN(bytes, PIPE_BYTES - p->count));

	for (size_t i = 0; i < n; i++, p->total++) {
		p->fin |= p->total >= p->cut_at;
		if (p->total >= p->cut_at || p->total >= p->stop_at)
			continue;
		p->bytes[p->count] = data[i];
		if (p->total == p->flip_at)
			p->bytes[p->count] ^= (uint8_t)(1 << (p->total & 7));
		p->count++;
	}
	world.moved += n != 0;
	return n;
}

static void drop(uint8_t *from, size_t *count, size_t n)
{
	*count -= n;
	memmove(from, from + n, *count);
}

void end_write(struct end *e)
{
	size_t bytes, n;

	if (e->closed)
		return;
	if (!e->open) {
		const uint8_t *data = iwarp_setup_output(&e->setup, &bytes);

		if (!bytes)
			return;
		iwarp_setup_sent(&e->setup, put(e->out, data, bytes));
		return;
	}
	n = put(e->out, e->outbox, e->outbox_bytes);
	drop(e->outbox, &e->outbox_bytes, n);
	if (n) {
		struct iwarp_outcome o = iwarp_took(&e->c, n);

		take_outcome(e, &o);
	}
	sim_check(e, e->c.framer.position - e->c.taken == e->outbox_bytes, "what waits");
}

/* ---- receiving ---- */

static void place(struct end *e, const struct iwarp_segment *s, const uint8_t *data, size_t bytes,
		  size_t offset)
{
	const struct iwarp_arrival *a = &e->arrival;
	const struct message *m = message_of(e, a->place.index);

	if (!e->taken || a->look.error || !bytes)
		return;
	if (!a->reply) {
		if (a->look.needs & WORK_NEED_PLACE)
			plan_place(e, s, &a->look, data, bytes, offset);
		return;
	}
	sim_check(e, offset + bytes <= a->place.bytes &&
			     a->place.at + offset + bytes <= m->length &&
			     a->place.index - e->c.rq.tail < e->c.rq.next - e->c.rq.tail,
		  "within the memory of the READ");
	if (m->poison == POISON_PLACE) {
		e->copied = IBV_WC_LOC_PROT_ERR;
		return;
	}
	memcpy(e->landing[a->place.index % ENTRIES] + a->place.at + offset, data, bytes);
}

static void arrive(struct end *e, const struct iwarp_segment *s)
{
	e->taken = iwarp_arrived(&e->c, s, &e->arrival);
	e->answer = IWARP_DONE;
	e->copied = IBV_WC_SUCCESS;
	e->original = 0;
	if (!e->taken || e->arrival.look.error || s->opcode == IWARP_TERMINATE)
		return;
	if (!e->arrival.reply)
		e->answer = plan_execute(e, s, &e->arrival.look);
	else if (s->opcode == IWARP_ATOMIC_RESPONSE) {
		e->old[e->arrival.place.index % ENTRIES] = e->arrival.place.original;
		if (message_of(e, e->arrival.place.index)->poison == POISON_PLACE)
			e->copied = IBV_WC_LOC_PROT_ERR;
	}
}

static void finish(struct end *e, const struct iwarp_segment *s)
{
	struct iwarp_outcome o;

	if (!e->taken)
		return;
	/* Not before it is known to be good. */
	if ((e->arrival.look.needs & WORK_NEED_ATOMIC) && e->answer == IWARP_DONE)
		e->original = plan_atomic(e, &e->arrival.look);
	o = iwarp_carried_out(&e->c, s, &e->arrival, e->answer, e->original, e->copied);
	/* Not what has begun to arrive before the connection failed. */
	if (!e->failed && !e->arrival.reply && s->opcode != IWARP_TERMINATE && !o.receive.error)
		plan_executed(e, s, &e->arrival.look, &o.receive);
	take_outcome(e, &o);
	sim_check(e, (uint32_t)(e->c.rs.taken - e->c.rs.answered) <= e->setup.terms.ird,
		  "no more READs than IRD");
}

static void take_event(struct end *e, enum iwarp_event event)
{
	struct iwarp_receiver *r = &e->receiver;
	struct iwarp_outcome o;

	switch (event) {
	case IWARP_HEADER:
		arrive(e, &r->segment);
		break;
	case IWARP_PAYLOAD:
		if (e->answer == IWARP_DONE)
			place(e, &r->segment, r->piece, r->piece_bytes, r->piece_offset);
		break;
	case IWARP_FPDU:
		if (!e->pieces) {
			arrive(e, &r->segment);
			if (e->answer == IWARP_DONE)
				place(e, &r->segment, r->segment.payload, r->segment.bytes, 0);
		}
		finish(e, &r->segment);
		break;
	default:
		e->broken = true;
		o = iwarp_broken(&e->c, r);
		take_outcome(e, &o);
	}
}

static void take_bytes(struct end *e, const uint8_t *data, size_t bytes)
{
	enum iwarp_event event;

	if (!e->open) {
		iwarp_setup_take(&e->setup, &data, &bytes);
		attend_setup(e);
	}
	/* An initiator that is ready begins at once, so the rest may be of the other state. */
	if (!e->open || e->broken)
		return;
	while ((event = iwarp_receiver_take(&e->receiver, &data, &bytes)) != IWARP_NOTHING) {
		take_event(e, event);
		if (e->broken)
			return;
	}
}

static void see_end(struct end *e)
{
	struct iwarp_outcome o;

	if (e->ended)
		return;
	e->ended = true;
	world.moved++;
	if (!e->open) {
		iwarp_setup_ended(&e->setup);
		attend_setup(e);
	}
	if (!e->open)
		return;
	o = iwarp_ended(&e->c, iwarp_receiver_idle(&e->receiver));
	take_outcome(e, &o);
}

void end_read(struct end *e)
{
	uint8_t chunk[PIPE_BYTES];
	size_t n = part(e->in->count);

	if (e->closed || world.now < e->stalled_until)
		return;
	if (dice(100) == 0)
		e->stalled_until = world.now + dice(10000);
	/* An undecided request: the caller need not read on, and must not lose bytes. */
	if (!e->open && e->setup.state == IWARP_SETUP_DECIDING && e->in->count)
		n = 0;
	if (n) {
		world.moved++;
		memcpy(chunk, e->in->bytes, n);
		drop(e->in->bytes, &e->in->count, n);
		take_bytes(e, chunk, n);
	} else if (!e->in->count && e->in->fin && e->in->total < e->in->stop_at) {
		see_end(e);
	}
}

/* ---- ending ---- */

void end_reset(struct end *e)
{
	struct iwarp_outcome o;

	if (e->closed)
		return;
	e->closed = true;
	e->out->fin = true;
	if (!e->open) {
		iwarp_setup_ended(&e->setup);
		return;
	}
	o = iwarp_lost(&e->c);
	take_outcome(e, &o);
	sim_check(e, iwarp_action(&e->c, world.now) == IWARP_RESET, "a stream that was lost");
}

/* Politely: when the other end is ready, too. */
static bool is_ready(const struct end *e)
{
	return e->completed == e->count && e->executed == e->peer->count;
}

void end_attend(struct end *e)
{
	attend_setup(e);
	if (!e->open || e->closed)
		return;
	if (e->polite ? is_ready(e) && is_ready(e->peer) : e->completed == e->count && !dice(20))
		iwarp_close(&e->c);
	if (!e->polite && dice(500) == 0) {
		struct iwarp_outcome o = iwarp_abort(&e->c);

		take_outcome(e, &o);
	}
	switch (iwarp_action(&e->c, world.now)) {
	case IWARP_NO_ACTION:
		break;
	case IWARP_SHUTDOWN:
		sim_check(e, !e->outbox_bytes, "all is sent before the end");
		e->out->fin = true;
		iwarp_shut(&e->c);
		world.moved++;
		break;
	case IWARP_CLOSE:
		e->closed = true;
		world.moved++;
		break;
	case IWARP_RESET:
		e->closed = true;
		e->out->count = 0;
		end_reset(e->peer);
		world.moved++;
	}
}

void end_timer(struct end *e)
{
	struct iwarp_outcome o;

	if (e->closed)
		return;
	if (!e->open) {
		iwarp_setup_timer(&e->setup, world.now);
		return;
	}
	o = iwarp_timer(&e->c, world.now);
	take_outcome(e, &o);
}
