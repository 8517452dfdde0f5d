/* SPDX-License-Identifier: BSD-2-Clause */
/* What each queue pair sends, what the other end has to see of it, and what it has to
 * bring back; see network.h. */
#include "network.h"

static uint64_t address(enum space space, uint32_t offset)
{
	return (uint64_t)space << 32 | offset;
}

static uint64_t bytes_number(const struct qp *qp, uint32_t message)
{
	return world.seed * 131071 + qp->index * UINT64_C(64) + message;
}

/* ---- planning ---- */

static void plan_write(struct qp *qp, struct message *m, uint32_t number)
{
	if (qp->reliable && dice(6) == 0) {
		m->length = 8;
		m->flags |= RC_WORD;
		m->remote_addr = address(SPACE_SLOTS, number * SLOT);
		return;
	}
	if (dice(2)) {
		m->length %= SLOT + 1;
		m->remote_addr = address(SPACE_SLOTS, number * SLOT);
	} else {
		m->remote_addr = address(SPACE_SHARED,
				(uint32_t)dice(SHARED_PLACE - m->length + 1));
	}
	if (dice(3) == 0)
		m->flags |= RC_IMM;
}

/* Of memory that never changes, or of a place that an earlier WRITE has for itself. */
static void plan_read(struct qp *qp, struct message *m, uint32_t number)
{
	uint32_t other = (uint32_t)dice(number + 1);
	uint32_t offset = (uint32_t)dice(LONGEST - m->length + 1);

	if (other < number && qp->messages[other].op == RC_WRITE &&
	    qp->messages[other].remote_addr >> 32 == SPACE_SLOTS) {
		m->remote_addr = qp->messages[other].remote_addr;
		m->length = qp->messages[other].length;
		m->bytes = qp->messages[other].bytes;
		return;
	}
	m->remote_addr = address(SPACE_FIXED, offset);
	m->bytes = network_bytes(qp->peer->index) + offset;
}

static void plan_atomic(struct message *m, uint64_t *counter)
{
	m->length = 8;
	m->remote_addr = address(SPACE_COUNTER, 0);
	m->old = *counter;
	if (m->op == RC_COMPARE_SWAP) {
		m->compare_add = *counter + (dice(3) == 0);
		m->swap = dice(1000);
		if (m->compare_add == *counter)
			*counter = m->swap;
	} else if (dice(3)) {
		m->compare_add = 1 + dice(1000);
		*counter += m->compare_add;
	} else {
		m->compare_add = 1;
		m->remote_addr = address(SPACE_ADAPTER, 0);
	}
}

static void plan_one(struct qp *qp, uint32_t number, uint64_t *counter)
{
	static const uint8_t ops[] = {
		RC_SEND, RC_SEND, RC_SEND, RC_WRITE, RC_WRITE, RC_READ, RC_READ,
		RC_FETCH_ADD, RC_COMPARE_SWAP, RC_FLUSH,
	};
	struct message *m = &qp->messages[number];

	memset(m, 0, sizeof(*m));
	m->op = ops[dice(qp->reliable ? sizeof(ops) : 5)];
	m->length = (uint32_t)dice(dice(5) ? 400 : LONGEST + 1);
	m->bytes = network_bytes(bytes_number(qp, number));
	if (dice(8) == 0)
		m->flags |= RC_FENCE;
	switch (m->op) {
	case RC_SEND:
		m->flags |= dice(4) == 0 ? RC_IMM : dice(8) == 0 ? RC_INVALIDATE : 0;
		break;
	case RC_WRITE: plan_write(qp, m, number); break;
	case RC_READ: plan_read(qp, m, number); break;
	case RC_FLUSH: m->remote_addr = address(SPACE_SLOTS, 0); break;
	default: plan_atomic(m, counter);
	}
}

static void plan_poison(struct qp *qp)
{
	struct message *m = &qp->messages[dice(qp->count)];

	/* Where somebody else finds it out, and nothing else does before. */
	switch (dice(4)) {
	case 0:
		if (m->op != RC_SEND && m->length)
			m->poison = POISON_ACCESS;
		break;
	case 1:
		if (m->op == RC_SEND && m->length)
			m->poison = POISON_INVALID;
		break;
	case 2:
		if (m->op == RC_SEND && m->length)
			m->poison = POISON_OPERATION;
		break;
	default:
		if (m->op == RC_READ && m->length)
			m->poison = POISON_LOCAL;
	}
}

void network_plan(struct qp *qp)
{
	uint64_t counter = 0;

	for (uint32_t i = 0; i < qp->count; i++)
		plan_one(qp, i, &counter);
	if (qp->reliable && qp->count && dice(30) == 0)
		plan_poison(qp);
}

enum ibv_wc_status network_poison_status(const struct message *m)
{
	static const enum ibv_wc_status status[] = {
		IBV_WC_SUCCESS, IBV_WC_REM_ACCESS_ERR, IBV_WC_REM_INV_REQ_ERR,
		IBV_WC_REM_OP_ERR, IBV_WC_LOC_PROT_ERR,
	};

	return status[m->poison];
}

/* ---- what has to hold ---- */

void network_check_completed(struct qp *qp, const struct work *w, uint32_t slot)
{
	const struct message *m = &qp->messages[w->number];
	uint64_t old = qp->old[slot];

	network_check(!m->poison, "what has to fail fails", qp);
	if (m->op == RC_READ)
		network_check(!memcmp(qp->landing[slot], m->bytes, m->length),
			      "a READ brings what is there", qp);
	if (m->op != RC_FETCH_ADD && m->op != RC_COMPARE_SWAP)
		return;
	if (m->remote_addr >> 32 == SPACE_COUNTER) {
		network_check(old == m->old, "an atomic brings what it found", qp);
		return;
	}
	network_check(old < qp->peer->adapter->counter && old < SEEN_MAX &&
			      !qp->peer->adapter->seen[old],
		      "no two FETCH_ADDs find the same", qp);
	qp->peer->adapter->seen[old] = true;
}

/* RC: the next one. UC: any later one. */
static void check_order(struct qp *qp, uint32_t number)
{
	if (qp->reliable)
		network_check(number == qp->executed,
			      "messages are carried out once and in order", qp);
	else
		network_check(number >= qp->executed, "UC keeps the order", qp);
	network_check(number < qp->peer->count, "a message that was sent", qp);
	qp->executed = number + 1;
}

void network_check_executed(struct qp *qp, uint32_t number, const struct rc_packet *p,
			    const struct rc_taken *taken)
{
	const struct message *m = &qp->peer->messages[number];
	uint32_t offset = (uint32_t)m->remote_addr;
	bool has_receive = m->op == RC_SEND || (m->op == RC_WRITE && (m->flags & RC_IMM));

	check_order(qp, number);
	network_check(taken->complete == has_receive, "receives complete when due", qp);
	network_check(p->op == m->op && (!m->poison || m->op == RC_READ), "the message that was sent", qp);
	if (m->flags & (RC_IMM | RC_INVALIDATE))
		network_check((p->flags & (RC_IMM | RC_INVALIDATE)) ==
				      (m->flags & (RC_IMM | RC_INVALIDATE)) &&
				      p->imm == number,
			      "an immediate comes with its message", qp);
	if (taken->complete)
		network_check(taken->bytes == m->length, "lengths are right", qp);
	if (m->op == RC_SEND) {
		network_check(!memcmp(qp->receive, m->bytes, m->length),
			      "received bytes are right", qp);
	} else if (m->op == RC_WRITE && m->remote_addr >> 32 == SPACE_SLOTS) {
		network_check(!memcmp(qp->slots + offset, m->bytes, m->length),
			      "written bytes are right", qp);
	} else if (m->op == RC_WRITE) {
		network_check(!memcmp(qp->shared + offset, m->bytes, m->length),
			      "overwritten bytes are right", qp);
		memcpy(qp->shadow + offset, m->bytes, m->length);
	}
}

/* Nothing came behind the last message that counted. */
static void check_memory(struct qp *qp)
{
	uint64_t counter = 0;

	network_check(!memcmp(qp->shared, qp->shadow, SHARED_PLACE),
		      "memory is as the last WRITE left it", qp);
	for (uint32_t i = 0; i < qp->peer->count; i++) {
		const struct message *m = &qp->peer->messages[i];

		if (m->op == RC_WRITE && m->remote_addr >> 32 == SPACE_SLOTS)
			network_check(!memcmp(qp->slots + i * SLOT, m->bytes, m->length),
				      "places of their own stay as they were", qp);
		if (m->remote_addr >> 32 != SPACE_COUNTER)
			continue;
		if (m->op == RC_FETCH_ADD)
			counter += m->compare_add;
		else if (m->compare_add == counter)
			counter = m->swap;
	}
	network_check(counter == qp->counter, "the counter has what was added", qp);
}

void network_check_end(struct qp *qp)
{
	network_check(qp->completed == qp->posted, "all that was posted completes", qp);
	for (uint32_t i = 0; i < qp->count; i++)
		network_check(qp->messages[i].completed == (i < qp->posted),
			      "each message completes", qp);
	world.gone_back += qp->rq.gone_back;
	if (qp->error || qp->peer->error) {
		network_check(qp->reliable, "UC has no errors", qp);
		return;
	}
	network_check(qp->posted == qp->count, "all was posted", qp);
	if (!qp->reliable)
		return;
	network_check(qp->executed == qp->peer->count, "all was carried out", qp);
	check_memory(qp);
}
