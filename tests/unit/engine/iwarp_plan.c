/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What two simulated ends send each other, and the model of it: the messages of an end arrive in
 * their order, each once and whole, with the bytes and flags that were posted.
 */
#include <arpa/inet.h>

#include "iwarp_sim.h"
#include "util/container_of.h"

static uint8_t pattern_bytes[PATTERN_BYTES];
const uint8_t *pattern = pattern_bytes;

void plan_init(void)
{
	struct prng p = prng_from(1);

	for (size_t i = 0; i < PATTERN_BYTES; i++)
		pattern_bytes[i] = (uint8_t)(1 + prng_below(&p, 255)); /* never 0 */
}

static bool is_read(const struct message *m)
{
	return m->op >= WORK_READ;
}

/* ---- making ---- */

static uint32_t any_length(void)
{
	switch (dice(5)) {
	case 0: return 0;
	case 1: return 1 + (uint32_t)dice(8);
	case 2: return 1 + (uint32_t)dice(LONGEST - 1);
	default: return (uint32_t)dice(200);
	}
}

static void make_message(struct message *m, uint32_t number)
{
	uint32_t from;

	*m = (struct message){ .length = any_length(), .imm = (uint32_t)prng_next(&world.dice),
			       .op = (uint8_t)dice(world.extended ? WORK_FLUSH : WORK_READ + 1),
			       .stag = GOOD_KEY };
	from = (uint32_t)dice(PATTERN_BYTES - LONGEST);
	m->bytes = pattern + from;
	m->to = ADDRESS + number * LONGEST;
	if (dice(6) == 0)
		m->flags |= WORK_FENCE;
	if (dice(3) == 0)
		m->flags |= WORK_SOLICITED;
	if (m->op == WORK_SEND && dice(3) == 0)
		m->flags |= WORK_INVALIDATE;
	if (m->op == WORK_WRITE && world.extended && dice(2))
		m->flags |= WORK_IMM;
	if (m->op == WORK_READ)
		m->to = from;
	if (m->op > WORK_READ) {
		m->length = 8;
		m->to = COUNTER;
		m->compare_add = dice(3);
		m->swap = dice(3);
	}
}

static bool may_be_poisoned(const struct message *m, uint8_t poison)
{
	switch (poison) {
	case POISON_STAG:
	case POISON_BOUNDS:
	case POISON_STREAM:
	case POISON_ACCESS:
		return m->op != WORK_SEND && m->length;
	case POISON_RECEIVE:
		return m->op == WORK_SEND || (m->flags & WORK_IMM);
	case POISON_ROOM:
	case POISON_LOCAL:
		return m->op == WORK_SEND && m->length;
	case POISON_INVALIDATE:
		return m->flags & WORK_INVALIDATE;
	case POISON_ALIGN:
		return m->op > WORK_READ;
	case POISON_RESPOND:
		return m->op == WORK_READ && m->length;
	case POISON_GATHER:
		return m->op < WORK_READ && m->length;
	case POISON_PLACE:
		return is_read(m) && m->length;
	default:
		return false;
	}
}

void plan_make(struct end *e)
{
	uint8_t poison = (uint8_t)(1 + dice(POISONS - 1));

	e->count = (uint32_t)dice(MESSAGES_MAX + 1);
	/* Without an RTR the initiator has to begin. */
	if (e->initiator && !e->setup.p.peer_to_peer && !e->count)
		e->count = 1;
	for (uint32_t i = 0; i < e->count; i++)
		make_message(&e->messages[i], i);
	world.messages += e->count;
	if (dice(4) || !e->count || world.forge_after)
		return;
	for (uint32_t i = (uint32_t)dice(e->count); i < e->count; i++)
		if (may_be_poisoned(&e->messages[i], poison)) {
			e->messages[i].poison = poison;
			world.poisons++;
			break;
		}
}

/* ---- carrying out ---- */

static struct message *expected(struct end *e)
{
	sim_check(e, e->executed < e->peer->posted, "nothing comes that was not posted");
	return &e->peer->messages[e->executed];
}

/* What the peer's poison makes of a message that needs this. */
static enum iwarp_answer answer_to(const struct message *m, uint8_t needs)
{
	bool key = needs & (WORK_NEED_PLACE | WORK_NEED_READ | WORK_NEED_ATOMIC) &&
		   m->op != WORK_SEND;

	switch (m->poison) {
	case POISON_STAG: return key ? IWARP_NO_STAG : IWARP_DONE;
	case POISON_BOUNDS: return key ? IWARP_NO_BOUNDS : IWARP_DONE;
	case POISON_STREAM: return key ? IWARP_NO_STREAM : IWARP_DONE;
	case POISON_ACCESS: return key ? IWARP_NO_ACCESS : IWARP_DONE;
	case POISON_RECEIVE: return needs & WORK_NEED_RECEIVE ? IWARP_NO_RECEIVE : IWARP_DONE;
	case POISON_ROOM: return needs & WORK_NEED_COMPLETE ? IWARP_NO_ROOM : IWARP_DONE;
	case POISON_LOCAL: return needs & WORK_NEED_PLACE ? IWARP_LOCAL : IWARP_DONE;
	case POISON_INVALIDATE:
		return needs & WORK_NEED_INVALIDATE ? IWARP_NOT_INVALIDATED : IWARP_DONE;
	case POISON_ALIGN: return needs & WORK_NEED_ATOMIC ? IWARP_NOT_ALIGNED : IWARP_DONE;
	default: return IWARP_DONE;
	}
}

static void check_rtr(struct end *e, const struct iwarp_segment *s, const struct iwarp_look *look)
{
	static const uint8_t opcodes[] = { [IWARP_RTR_WRITE] = IWARP_WRITE,
					   [IWARP_RTR_READ] = IWARP_READ_REQUEST,
					   [IWARP_RTR_SEND] = IWARP_SEND };

	sim_check(e, s->opcode == opcodes[e->setup.terms.rtr] && !look->needs && !s->bytes,
		  "the RTR that was agreed on");
}

static void check_send(struct end *e, const struct message *m, const struct iwarp_segment *s,
		       const struct iwarp_look *look)
{
	const struct iwarp_opcode_info *op = &iwarp_opcodes[s->opcode];
	unsigned needs = (e->at || e->c.rs.sending ? 0 : WORK_NEED_RECEIVE) |
			 (s->bytes ? WORK_NEED_PLACE : 0) | (s->last ? WORK_NEED_COMPLETE : 0) |
			 (s->last && op->invalidates ? WORK_NEED_INVALIDATE : 0);

	sim_check(e, m->op == WORK_SEND && look->needs == needs && look->at == e->at &&
			     e->at + s->bytes <= m->length &&
			     s->last == (e->at + s->bytes == m->length) &&
			     op->solicited == !!(m->flags & WORK_SOLICITED) &&
			     op->invalidates == !!(m->flags & WORK_INVALIDATE),
		  "the SEND that was posted");
	if (needs & WORK_NEED_INVALIDATE)
		sim_check(e, look->stag == m->imm, "the STag that was posted");
}

static void check_write(struct end *e, const struct message *m, const struct iwarp_segment *s,
			const struct iwarp_look *look)
{
	sim_check(e, m->op == WORK_WRITE && !e->immediate_due && look->stag == m->stag &&
			     look->to == m->to + e->at && e->at + s->bytes <= m->length &&
			     s->last == (e->at + s->bytes == m->length) &&
			     look->needs == (s->bytes ? WORK_NEED_PLACE : 0),
		  "the WRITE that was posted");
}

static void check_atomic(struct end *e, const struct message *m, const struct iwarp_look *look)
{
	bool swaps = m->op == WORK_COMPARE_SWAP;

	sim_check(e, m->op > WORK_READ && look->swaps == swaps && look->stag == m->stag &&
			     look->to == m->to && look->bytes == 8 &&
			     look->compare_add == m->compare_add &&
			     look->swap == (swaps ? m->swap : 0) && look->needs == WORK_NEED_ATOMIC,
		  "the atomic that was posted");
}

enum iwarp_answer plan_execute(struct end *e, const struct iwarp_segment *s,
			       const struct iwarp_look *look)
{
	const struct message *m;

	if (e->rtr_due) {
		check_rtr(e, s, look);
		return IWARP_DONE;
	}
	m = expected(e);
	switch (s->opcode) {
	case IWARP_WRITE:
		check_write(e, m, s, look);
		break;
	case IWARP_READ_REQUEST:
		sim_check(e, m->op == WORK_READ && s->read.bytes == m->length &&
				     look->bytes == m->length &&
				     look->needs == (m->length ? WORK_NEED_READ : 0) &&
				     (!m->length || (look->stag == m->stag && look->to == m->to)),
			  "the READ that was posted");
		break;
	case IWARP_ATOMIC_REQUEST:
		check_atomic(e, m, look);
		break;
	case IWARP_IMMEDIATE:
	case IWARP_IMMEDIATE_SE:
		sim_check(e, e->immediate_due &&
				     look->needs == (WORK_NEED_RECEIVE | WORK_NEED_COMPLETE),
			  "immediate data behind its WRITE");
		break;
	default:
		check_send(e, m, s, look);
		break;
	}
	return answer_to(m, look->needs);
}

uint64_t plan_atomic(struct end *e, const struct iwarp_look *look)
{
	uint64_t old = e->counter;

	if (!look->swaps)
		e->counter += look->compare_add;
	else if (old == look->compare_add)
		e->counter = look->swap;
	expected(e)->old = old;
	return old;
}

void plan_place(struct end *e, const struct iwarp_segment *s, const struct iwarp_look *look,
		const uint8_t *data, size_t bytes, size_t offset)
{
	const struct message *m = expected(e);
	uint8_t *to;

	sim_check(e, offset + bytes <= look->bytes, "within the segment");
	if (s->opcode == IWARP_WRITE) {
		sim_check(e, look->stag == GOOD_KEY && look->to >= ADDRESS &&
				     look->to + look->bytes <= ADDRESS + MEMORY_BYTES,
			  "within the memory");
		to = e->memory + (look->to - ADDRESS) + offset;
		for (size_t i = 0; i < bytes; i++)
			sim_check(e, !to[i], "once");
	} else {
		sim_check(e, look->at + look->bytes <= LONGEST, "within the receive");
		to = e->receive + look->at + offset;
	}
	sim_check(e, !memcmp(data, m->bytes + e->at + offset, bytes), "the bytes that were sent");
	memcpy(to, data, bytes);
}

static void check_receive(struct end *e, const struct message *m, const struct iwarp_taken *t)
{
	sim_check(e, t->bytes == m->length && t->solicited == !!(m->flags & WORK_SOLICITED),
		  "the length and the event");
	if (m->op == WORK_SEND)
		sim_check(e, !t->immediate && !memcmp(e->receive, m->bytes, m->length) &&
				     t->invalidated == !!(m->flags & WORK_INVALIDATE) &&
				     (!t->invalidated || t->imm == m->imm),
			  "the message that was sent");
	else
		sim_check(e, t->immediate && t->imm == m->imm && !t->invalidated,
			  "the immediate data that were sent");
}

void plan_executed(struct end *e, const struct iwarp_segment *s, const struct iwarp_look *look,
		   const struct iwarp_taken *taken)
{
	struct message *m;

	if (e->rtr_due) {
		e->rtr_due = false;
		sim_check(e, !taken->complete, "an RTR completes nothing");
		return;
	}
	m = expected(e);
	sim_check(e, taken->complete == !!(look->needs & WORK_NEED_COMPLETE), "a receive");
	if (taken->complete)
		check_receive(e, m, taken);
	e->at += s->bytes;
	if (s->opcode == IWARP_WRITE && s->last && (m->flags & WORK_IMM)) {
		e->immediate_due = true;
		return;
	}
	if (!s->last)
		return;
	e->immediate_due = false;
	m->executed = true;
	e->executed++;
	e->at = 0;
}

const struct message *plan_next_response(const struct end *e)
{
	unsigned n = e->responded;
	const struct end *peer = e->peer;

	if (!e->initiator && e->setup.terms.rtr == IWARP_RTR_READ && n-- == 0)
		return NULL;
	for (uint32_t i = 0; i < peer->count; i++)
		if (is_read(&peer->messages[i]) && n-- == 0)
			return &peer->messages[i];
	return NULL;
}

/* ---- completing ---- */

void plan_completed(struct end *e, uint32_t index, enum ibv_wc_status status)
{
	struct work *w = &e->ring[index % ENTRIES];
	struct message *m = &e->messages[index];

	sim_check(e, index == e->completed && index < e->posted && w->number == index &&
			     !m->completed, "each completes once and in order");
	e->completed++;
	m->completed = true;
	m->status = status;
	e->reads -= is_read(m) && m->framed;
	world.ended[status]++;
	if (status != IBV_WC_SUCCESS)
		return;
	sim_check(e, m->framed, "it was sent");
	if (!is_read(m))
		return;
	sim_check(e, m->executed, "the peer has carried it out");
	if (m->op == WORK_READ)
		sim_check(e, !memcmp(e->landing[index % ENTRIES], m->bytes, m->length),
			  "the bytes that were read");
	else
		sim_check(e, e->old[index % ENTRIES] == m->old, "the value before");
}

/* ---- the end ---- */

static void check_memory(const struct end *e)
{
	static const uint8_t zeros[LONGEST];

	for (uint32_t i = 0; i < MESSAGES_MAX; i++) {
		const struct message *m = &e->peer->messages[i];
		const uint8_t *slot = e->memory + i * LONGEST;
		uint32_t length = i < e->peer->count && m->op == WORK_WRITE ? m->length : 0;

		sim_check(e, !memcmp(slot + length, zeros, LONGEST - length), "nothing beside");
		if (i < e->executed)
			sim_check(e, !length || !memcmp(slot, m->bytes, length), "all of it");
		else if (i > e->executed)
			sim_check(e, !memcmp(slot, zeros, length), "nothing that was not sent");
	}
}

static void check_order(const struct end *e)
{
	bool bad = false;

	sim_check(e, e->completed == e->posted, "all that was posted has completed");
	for (uint32_t i = 0; i < e->posted; i++) {
		bad |= e->messages[i].status != IBV_WC_SUCCESS;
		sim_check(e, !bad || e->messages[i].status != IBV_WC_SUCCESS,
			  "no success behind a failure");
	}
}

/* What a poisoned message does: the error of the end that finds it, and the status of the oldest
 * open message of the other end. */
static const struct {
	enum iwarp_error write, other;
	enum ibv_wc_status status;
} results[POISONS] = {
	[POISON_STAG] = { IWARP_DDP_STAG, IWARP_RDMAP_STAG, IBV_WC_REM_ACCESS_ERR },
	[POISON_BOUNDS] = { IWARP_DDP_BOUNDS, IWARP_RDMAP_BOUNDS, IBV_WC_REM_ACCESS_ERR },
	[POISON_STREAM] = { IWARP_DDP_STAG_STREAM, IWARP_RDMAP_STAG_STREAM,
			    IBV_WC_REM_ACCESS_ERR },
	[POISON_ACCESS] = { IWARP_RDMAP_ACCESS, IWARP_RDMAP_ACCESS, IBV_WC_REM_ACCESS_ERR },
	[POISON_RECEIVE] = { IWARP_DDP_NO_BUFFER, IWARP_DDP_NO_BUFFER,
			     IBV_WC_RNR_RETRY_EXC_ERR },
	[POISON_ROOM] = { 0, IWARP_DDP_TOO_LONG, IBV_WC_REM_INV_REQ_ERR },
	[POISON_LOCAL] = { 0, IWARP_RDMAP_CATASTROPHIC, IBV_WC_REM_OP_ERR },
	[POISON_INVALIDATE] = { 0, IWARP_RDMAP_INVALIDATE, IBV_WC_REM_ACCESS_ERR },
	[POISON_ALIGN] = { 0, IWARP_RDMAP_PROTECTION, IBV_WC_REM_ACCESS_ERR },
	[POISON_RESPOND] = { 0, IWARP_RDMAP_STAG, IBV_WC_REM_ACCESS_ERR },
	[POISON_GATHER] = { IWARP_RDMAP_CATASTROPHIC, IWARP_RDMAP_CATASTROPHIC,
			    IBV_WC_REM_OP_ERR },
	[POISON_PLACE] = { 0, IWARP_RDMAP_CATASTROPHIC, IBV_WC_REM_OP_ERR },
};

/* The poisoned message is the one that fails, if it is still open. */
static void check_culprit(const struct end *e, const struct end *refuser, int index)
{
	const struct message *m = &e->messages[index];

	if (m->poison == POISON_GATHER)
		sim_check(e, e->bad >= 0 && e->bad <= index && (e->bad == index || m->framed),
			  "it fails itself, if it was to begin");
	else if (is_read(m) && !refuser->c.midway)
		sim_check(e, e->bad == index, "it fails itself");
	if (refuser == e && e->bad == index)
		sim_check(e, m->status == IBV_WC_LOC_PROT_ERR, "for its own memory");
	if (refuser != e && m->poison != POISON_RESPOND)
		sim_check(refuser, refuser->executed == (uint32_t)index, "all before it is done");
}

static void check_poison(const struct end *e, int index)
{
	const struct message *m = &e->messages[index];
	const struct end *refuser = m->poison >= POISON_GATHER ? e : e->peer;
	const struct end *other = refuser->peer;
	enum iwarp_error error = m->op == WORK_WRITE ? results[m->poison].write :
						       results[m->poison].other;
	const struct iwarp_terminate *t = &other->c.terminate;

	sim_check(refuser, refuser->c.error == error, "the rule that was broken");
	sim_check(other, other->c.terminated &&
				 ((uint32_t)t->layer << 12 | (uint32_t)t->type << 8 | t->code) ==
					 iwarp_error_control(error) >> 16,
		  "the other end is told");
	if (other->bad >= 0)
		sim_check(other, other->messages[other->bad].status == results[m->poison].status,
			  "the status of the oldest open one");
	check_culprit(e, refuser, index);
	world.poisoned++;
}

static void check_success(const struct end *e)
{
	sim_check(e, e->posted == e->count && e->executed == e->peer->count, "all was done");
	sim_check(e, !e->count || e->messages[e->count - 1].status == IBV_WC_SUCCESS,
		  "with success");
	sim_check(e, !e->c.error && !e->c.terminated && !e->c.aborted, "and an orderly end");
}

void plan_check_end(struct end *e)
{
	if (!e->open) {
		sim_check(e, e->setup.state == IWARP_SETUP_FAILED && e->setup.result,
			  "a set-up that failed says why");
		return;
	}
	sim_check(e, e->failed == 1 && e->disconnected == 1, "it has failed and is disconnected");
	check_order(e);
	check_memory(e);
	if (world.harmed || !e->peer->open || e->setup.terminate || e->peer->setup.terminate)
		return;
	if (!world.poisons)
		check_success(e);
	for (uint32_t i = 0; world.poisons == 1 && i < e->count; i++)
		if (e->messages[i].poison)
			check_poison(e, (int)i);
}
