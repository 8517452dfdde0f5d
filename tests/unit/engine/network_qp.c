/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The glue between engine and carrier, as small as it can be: a queue pair posts, sends,
 * answers, places and completes; see network.h. Now and then it cannot do its part
 * (RC_NOT_NOW, no receive), and does it in small portions.
 */
#include "network.h"

/* ---- the end of work ---- */

static void finish(struct qp *qp)
{
	if (qp->error ? qp->completed != qp->posted : qp->completed != qp->count)
		return;
	world.unfinished--;
}

static void complete_one(struct qp *qp, uint32_t index)
{
	struct message *m = &qp->messages[qp->ring[index % ENTRIES].number];

	network_check(qp->ring[index % ENTRIES].number == qp->completed &&
			      !m->completed,
		      "completions are in order, each once", qp);
	m->completed = true;
	qp->completed++;
	world.messages++;
}

static void check_status(struct qp *qp, enum ibv_wc_status status, uint32_t index)
{
	const struct message *m = &qp->messages[qp->ring[index % ENTRIES].number];
	bool gone = qp->peer->error || qp->parted;

	if (m->poison && status == network_poison_status(m))
		return;
	if (status == IBV_WC_RNR_RETRY_EXC_ERR && qp->rq.p.rnr_retry != RC_RNR_FOR_EVER)
		return;
	network_check(status == IBV_WC_RETRY_EXC_ERR && (gone || !world.calm),
		      "an error has its cause", qp);
	if (gone)
		return;
	world.unlucky++;
	printf("queue pair %u gave up by bad luck alone: sim_network %ju 1 %u\n", qp->index,
	       (uintmax_t)world.seed, world.adapter_count);
}

/* The queue pair goes to the error state: what is posted is flushed. */
static void enter_error(struct qp *qp, enum ibv_wc_status status)
{
	bool was_finished = qp->completed == qp->count;

	qp->error = true;
	qp->ended = status;
	world.errors[status & 15]++;
	for (uint32_t i = qp->rq.tail; i != qp->rq.head; i++)
		complete_one(qp, i);
	if (!was_finished)
		finish(qp);
}

static void done(struct qp *qp, struct work_done d, uint32_t from)
{
	network_check(d.upto == qp->rq.tail, "the tail says what is complete", qp);
	for (uint32_t i = from; i != d.upto; i++) {
		network_check_completed(qp, &qp->ring[i % ENTRIES], i % ENTRIES);
		complete_one(qp, i);
		if (qp->completed == qp->count)
			finish(qp);
	}
	if (d.status == IBV_WC_SUCCESS)
		return;
	network_check(d.upto != qp->rq.head, "an error has its work entry", qp);
	check_status(qp, d.status, d.upto);
	enter_error(qp, d.status);
}

/* ---- sending ---- */

static void post_one(struct qp *qp)
{
	struct work *w = &qp->ring[qp->rq.head % ENTRIES];
	const struct message *m = &qp->messages[qp->posted];

	memset(w, 0, sizeof(*w));
	w->number = qp->posted;
	w->wqe = (struct rc_wqe){
		.op = m->op, .flags = m->flags, .length = m->length, .imm = qp->posted,
		.flush = m->op == RC_FLUSH ? RC_FLUSH_GLOBAL | RC_FLUSH_REGION : 0,
		.rkey = m->poison == POISON_ACCESS && m->op != RC_READ ? 0 : GOOD_KEY,
		.remote_addr = m->remote_addr, .compare_add = m->compare_add,
		.swap = m->swap,
	};
	qp->posted++;
	rc_post(&qp->rq);
}

static void post_some(struct qp *qp)
{
	while (qp->posted < qp->count && qp->rq.head - qp->rq.tail < ENTRIES &&
	       qp->post_at_ns <= network_now()) {
		post_one(qp);
		if (dice(3) == 0)
			qp->post_at_ns = network_now() + dice(20000);
	}
}

/* Does it count for max_rd_atomic? */
static bool is_read(const struct rc_wqe *e)
{
	return e->op >= RC_READ || (e->flags & RC_WORD);
}

static void check_sending(struct qp *qp, const struct rc_tx *tx)
{
	const struct rc_wqe *e = &qp->ring[tx->index % ENTRIES].wqe;
	unsigned reads = 0;

	network_check(tx->at + tx->packet.bytes <= e->length || e->op >= RC_READ,
		      "bytes of the message", qp);
	for (uint32_t i = qp->rq.tail; i != tx->index; i++)
		reads += is_read(&qp->ring[i % ENTRIES].wqe);
	network_check(!(e->flags & RC_FENCE) || !reads,
		      "a fence waits for READ and atomics", qp);
	network_check(!is_read(e) || reads < qp->rq.p.max_rd_atomic,
		      "no more READs and atomics than the peer keeps", qp);
}

/* Emits the packets of a run, up to a number by chance, and lowers tx->packet.more to them.
 * False: there was no room for the first one. */
static bool emit_run(struct qp *qp, struct rc_tx *tx)
{
	const struct work *w = &qp->ring[tx->index % ENTRIES];
	uint32_t most = tx->packet.more ? (uint32_t)dice(1 + tx->packet.more) : 0;
	struct rc_tx one = *tx;
	uint32_t sent = 0;

	one.packet.more = 0;
	for (; sent <= most; sent++) {
		check_sending(qp, &one);
		if (network_emit(qp, &one.packet, w->number,
				 qp->messages[w->number].bytes + one.at))
			break;
		one.packet.psn = rc_psn_add(one.packet.psn, 1);
		one.at += one.packet.bytes;
	}
	tx->packet.more = sent - 1;
	return sent > 0;
}

/* True: there is more that could go. */
static bool send_some(struct qp *qp)
{
	uint64_t now = network_now();
	/* Sometimes work has to stay, as in the SQD state. */
	uint32_t limit = dice(32) ? qp->rq.head : qp->rq.next;
	struct rc_tx tx;

	for (unsigned n = 0; n < 8; n++) {
		uint32_t from = qp->rq.tail;

		if (qp->error || !rc_next(&qp->rq, limit, now, &tx))
			return limit != qp->rq.head && !qp->error;
		if (!emit_run(qp, &tx))
			return false; /* writable() comes */
		done(qp, rc_sent(&qp->rq, &tx, now), from);
	}
	return true;
}

/* ---- answering ---- */

static const uint8_t *fetch_at(const struct qp *qp, uint64_t address)
{
	uint32_t offset = (uint32_t)address;

	if (address >> 32 == SPACE_FIXED)
		return network_bytes(qp->index) + offset;
	network_check(address >> 32 == SPACE_SLOTS, "READ from readable memory", qp);
	return qp->slots + offset;
}

static enum rc_answer fetch(struct qp *qp, const struct rc_response *r,
			    const uint8_t **bytes)
{
	const struct message *m;

	*bytes = NULL;
	if (r->packet.op != RC_READ_RESPONSE || !r->packet.bytes)
		return RC_OK;
	network_check(r->packet.msn && r->packet.msn <= qp->executed,
		      "the number of an answer is its message's", qp);
	m = &qp->peer->messages[r->packet.msn - 1];
	network_check(m->op == RC_READ, "a READ is answered", qp);
	if (dice(1000) < world.not_now)
		return RC_NOT_NOW;
	/* Its key has gone since the request was looked at. */
	if (m->poison == POISON_ACCESS)
		return RC_NO_ACCESS;
	*bytes = fetch_at(qp, r->remote_addr);
	return RC_OK;
}

/* Some tell how many receives they have: the largest code that is not more (table 46:
 * 0, 1, 2, 3, 4, 6, 8, 12). */
static void tell_credit(const struct qp *qp, struct rc_packet *p)
{
	static const uint8_t counts[] = { 0, 1, 2, 3, 4, 6, 8, 12, UINT8_MAX };
	uint8_t code = 0;

	if (!qp->tells_credit || p->op == RC_CNP || (p->syndrome & RC_SYN_KIND) != RC_SYN_ACK)
		return;
	while (counts[code + 1] <= qp->receives)
		code++;
	p->syndrome = RC_SYN_ACK | code;
}

/* True: there is more. */
static bool answer_some(struct qp *qp)
{
	uint64_t now = network_now();
	unsigned room = 1 + (unsigned)dice(16);
	struct rc_response r;
	const uint8_t *bytes;

	while (rc_respond_next(&qp->rs, dice(8) == 0, now, &r)) {
		enum rc_answer answer;

		if (!room--)
			return true;
		tell_credit(qp, &r.packet);
		r.packet.more = 0;
		answer = fetch(qp, &r, &bytes);
		if (answer == RC_OK && network_emit(qp, &r.packet, 0, bytes))
			return false;
		if (rc_responded(&qp->rs, &r, answer).fail && !qp->error)
			enter_error(qp, IBV_WC_SUCCESS);
		if (answer == RC_NOT_NOW)
			return true;
	}
	return false;
}

/* ---- receiving ---- */

static enum rc_answer place(struct qp *qp, const struct frame *f, const struct rc_look *look,
			    const uint8_t *payload)
{
	uint32_t offset = (uint32_t)look->remote_addr, n = f->packet.bytes;

	if (look->op == RC_SEND) {
		network_check(look->at + n <= LONGEST, "inside of the receive", qp);
		memcpy(qp->receive + look->at, payload, n);
		return RC_OK;
	}
	if (look->rkey != GOOD_KEY)
		return RC_NO_ACCESS;
	if (look->remote_addr >> 32 == SPACE_SLOTS) {
		network_check(offset + n <= qp->peer->count * SLOT, "inside", qp);
		memcpy(qp->slots + offset, payload, n);
	} else {
		network_check(look->remote_addr >> 32 == SPACE_SHARED &&
				      offset + n <= SHARED_PLACE, "inside", qp);
		memcpy(qp->shared + offset, payload, n);
	}
	return RC_OK;
}

static enum rc_answer do_atomic(struct qp *qp, const struct rc_packet *p, uint64_t *old)
{
	uint64_t *at = p->remote_addr >> 32 == SPACE_ADAPTER ? &qp->adapter->counter :
							       &qp->counter;

	if (p->rkey != GOOD_KEY)
		return RC_NO_ACCESS;
	*old = *at;
	if (p->op == RC_FETCH_ADD)
		*at += p->compare_add;
	else if (*at == p->compare_add)
		*at = p->swap;
	world.atomics++;
	return RC_OK;
}

static enum rc_answer carry_out(struct qp *qp, const struct frame *f,
				const struct rc_look *look, const uint8_t *payload,
				uint64_t *old)
{
	const struct message *m = &qp->peer->messages[f->number];
	enum rc_answer answer = RC_OK;

	if (dice(1000) < world.not_now)
		return RC_NOT_NOW;
	if ((look->needs & WORK_NEED_RECEIVE) && !qp->receives) {
		world.rnr++;
		return RC_NO_RECEIVE;
	}
	if (m->poison == POISON_INVALID)
		return RC_NOT_VALID;
	if (m->poison == POISON_OPERATION)
		return RC_NO_OPERATION;
	network_check(!(look->needs & WORK_NEED_INVALIDATE) || (m->flags & RC_INVALIDATE),
		      "nobody asked for an invalidation", qp);
	if (look->needs & WORK_NEED_PLACE)
		answer = place(qp, f, look, payload);
	if (look->needs & WORK_NEED_FLUSH) {
		network_check(f->packet.flush == (RC_FLUSH_GLOBAL | RC_FLUSH_REGION) &&
				      f->packet.length == m->length, "a flush as it was sent", qp);
		answer = look->rkey == GOOD_KEY ? RC_OK : RC_NO_ACCESS;
	}
	if (look->needs & WORK_NEED_ATOMIC)
		answer = do_atomic(qp, &f->packet, old);
	return answer;
}

static void take_receive(struct qp *qp, const struct rc_look *look, enum rc_answer answer,
			 const struct rc_taken *taken)
{
	if (answer == RC_OK && (look->needs & WORK_NEED_RECEIVE)) {
		network_check(!qp->has_receive, "one receive at a time", qp);
		qp->has_receive = true;
		qp->receives--;
	}
	if (taken->complete) {
		network_check(qp->has_receive, "a message has a receive", qp);
		qp->has_receive = false;
	}
}

static void take_request(struct qp *qp, const struct frame *f, const uint8_t *payload)
{
	enum rc_answer answer = RC_OK;
	struct rc_taken taken;
	struct rc_look look;
	uint64_t old = 0;

	rc_look(&qp->rs, &f->packet, &look);
	network_check(look.verdict != RC_WRONG, "nothing breaks the rules", qp);
	if (look.verdict == RC_EXPECTED)
		answer = carry_out(qp, f, &look, payload, &old);
	taken = rc_take(&qp->rs, &f->packet, &look, answer, old, network_now());
	if (look.verdict != RC_EXPECTED) {
		network_check(!taken.complete && !taken.fail, "a copy changes nothing", qp);
		return;
	}
	take_receive(qp, &look, answer, &taken);
	if (taken.fail)
		enter_error(qp, IBV_WC_SUCCESS);
	else if (answer == RC_OK && (f->packet.flags & RC_LAST))
		network_check_executed(qp, f->number, &f->packet, &taken);
}

static void take_answer(struct qp *qp, const struct frame *f, const uint8_t *payload)
{
	enum ibv_wc_status copied = IBV_WC_SUCCESS;
	uint32_t from = qp->rq.tail, slot;
	struct rc_place p;

	if (dice(1000) < world.not_now)
		return;
	rc_reply_look(&qp->rq, &f->packet, &p);
	slot = p.index % ENTRIES;
	if (p.wanted) {
		const struct message *m = &qp->messages[qp->ring[slot].number];

		network_check(p.at + p.bytes <= m->length, "inside of the message", qp);
		if (m->poison == POISON_LOCAL)
			copied = IBV_WC_LOC_PROT_ERR;
		else if (m->op == RC_READ)
			memcpy(qp->landing[slot] + p.at, payload, p.bytes);
		else
			qp->old[slot] = f->packet.compare_add;
	}
	done(qp, rc_reply(&qp->rq, &f->packet, copied, network_now()), from);
}

void network_qp_arrive(struct qp *qp, const struct frame *f, const uint8_t *payload,
		       bool marked)
{
	network_trace("came", qp, &f->packet, f->number);
	if (qp->error)
		return;
	if (marked)
		rc_marked(&qp->rs, network_now());
	if (f->packet.op == RC_CNP)
		rc_slow(&qp->rs, network_now());
	if (f->packet.op >= RC_ACK)
		take_answer(qp, f, payload);
	else
		take_request(qp, f, payload);
	network_qp_touch(qp);
}

/* ---- turns ---- */

void network_qp_touch(struct qp *qp)
{
	if (qp->dirty)
		return;
	qp->dirty = true;
	qp->next_dirty = world.dirty;
	world.dirty = qp;
}

static void post_receives(struct qp *qp)
{
	if (qp->receive_at_ns > network_now())
		return;
	qp->receives += (uint32_t)dice(qp->receives < 6 ? 4 : 1);
	qp->receive_at_ns = network_now() + 1 + dice(60000);
}

static uint64_t earlier(uint64_t a, uint64_t b)
{
	return b && b < a ? b : a;
}

static void arm(struct qp *qp, bool more)
{
	uint64_t now = network_now(), next = more ? now + 1000 : UINT64_MAX;

	if (!qp->full)
		next = earlier(next, rc_respond_deadline(&qp->rs));
	if (!qp->error) {
		network_check(!qp->rq.rnr_until_ns ||
				      rc_deadline(&qp->rq) == qp->rq.rnr_until_ns,
			      "a wait for a receive has its end", qp);
		next = earlier(next, rc_deadline(&qp->rq));
		next = earlier(next, qp->receive_at_ns);
		if (qp->posted < qp->count && qp->rq.head - qp->rq.tail < ENTRIES)
			next = earlier(next, qp->post_at_ns);
	}
	if (next == UINT64_MAX)
		wheel_cancel(&world.wheel, &qp->timer);
	else
		wheel_arm(&world.wheel, &qp->timer, next > now ? next : now + 1);
}

void network_qp_run(struct qp *qp)
{
	bool more;

	if (!qp->error) {
		post_receives(qp);
		post_some(qp);
	}
	more = send_some(qp);
	more |= answer_some(qp);
	arm(qp, more);
}

void network_qp_timer(struct qp *qp)
{
	uint64_t due = rc_deadline(&qp->rq);
	uint32_t from = qp->rq.tail;

	network_qp_touch(qp);
	if (qp->error || !due || due > network_now())
		return;
	if (!qp->rq.rnr_until_ns && !qp->peer->error && !qp->parted)
		world.timeouts++;
	if (world.trace)
		printf("%ju: qp %u timer, %u retries left\n", (uintmax_t)network_now(),
		       qp->index, qp->rq.retries);
	done(qp, rc_timer(&qp->rq, network_now()), from);
}
