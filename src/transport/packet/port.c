/* SPDX-License-Identifier: BSD-2-Clause */
/* The place where packets leave and arrive, and whose turn it is; see packet.h. */
#include <errno.h>
#include <sched.h>
#include <stdlib.h>

#include "hca/object/sq.h"
#include "hca/queue/post.h"
#include "hca/run/elide.h"
#include "hca/run/progress.h"
#include "hca/share/counters.h"
#include "hca/share/process.h"
#include "transport/carrier/raw.h"
#include "transport/packet/state.h"
#include "util/container_of.h"
#include "util/list.h"
#include "util/spin.h"

#define RECEIVE_BUDGET 32u /* units a poll */
/* If the program does not poll any more, an acknowledgement that waits for its next poll
 * leaves after twice GUARD_MOST_NS all the same, and after twice GUARD_NS if that has happened
 * before. A timer wakes the progress thread, for which the program's thread has to take locks;
 * so the time doubles each time that the program is found to poll. The peer, whose timeout is
 * likely to be that of the queue pair, waits for a part of it. */
#define GUARD_NS 200000
#define GUARD_MOST_NS 10000000
#define TRIES_AT_END 64u
#define ANSWER_BUDGET 16u  /* packets of one responder, before the others' turn */

bool packet_is_unattended(void)
{
	return atomic_load(&hca_process.segment->wants_kick) != HCA_WAKE_NOTHING;
}

void packet_port_wake(void *arg)
{
	(void)arg;
	if (!packet_is_unattended())
		return;
	hca_attention_kicked();
	progress_kick();
}

/* ---- who waits ---- */

/* The thread has to tick, as nobody else looks after what waits. */
static void tick_if_unattended(void)
{
	if (packet_is_unattended() && !progress_is_self())
		progress_kick();
}

void packet_wait(struct packet_qp *pq)
{
	struct packet_port *port = pq->port;
	bool fresh;

	spin_lock(&port->wait_lock);
	fresh = !pq->waiting;
	if (fresh)
		list_push(&port->waiting, &pq->wait_entry);
	pq->waiting = true;
	spin_unlock(&port->wait_lock);
	/* In this order: who goes to sleep does the reverse (attention.c). */
	if (fresh && atomic_fetch_add(&port->backlog, 1) == 0)
		tick_if_unattended();
}

void packet_owes(struct packet_qp *pq)
{
	if (pq->answering)
		return;
	pq->answering = true;
	list_push(&pq->port->answering, &pq->answer_entry);
	atomic_fetch_add(&pq->port->backlog, 1);
}

void packet_forget(struct packet_qp *pq)
{
	struct packet_port *port = pq->port;

	if (pq->answering) {
		list_remove(&pq->answer_entry);
		atomic_fetch_sub(&port->backlog, 1);
		pq->answering = false;
	}
	spin_lock(&port->wait_lock);
	if (pq->waiting) {
		list_remove(&pq->wait_entry);
		atomic_fetch_sub(&port->backlog, 1);
		pq->waiting = false;
	}
	spin_unlock(&port->wait_lock);
}

/* ---- arriving ---- */

void packet_count_fault(enum packet_fault fault)
{
	if (fault == PACKET_BAD_ICRC)
		HCA_COUNT_PROCESS(BAD_ICRC, 1);
	else
		HCA_COUNT_PROCESS(BAD_PACKETS, 1);
}

static void deliver_one(struct packet_port *port, const struct carrier_unit *unit,
			unsigned k, const uint8_t *bytes, size_t length)
{
	enum packet_fault fault = PACKET_MALFORMED;
	struct packet_frame f;
	size_t header = port->medium->decode(unit, k, bytes, length, &f, &fault);

	if (likely(header && header <= length && f.rc.bytes <= PACKET_MTU &&
		   f.rc.bytes <= length - header))
		packet_receive(port, unit, &f, bytes + header);
	else
		packet_count_fault(fault);
}

static void deliver(void *arg, const struct carrier_unit *unit)
{
	struct packet_port *port = arg;
	size_t bytes = carrier_unit_bytes(unit), at = 0;
	unsigned packets = carrier_unit_packets(unit, bytes);

	port->now_ns = packet_now_ns();
	for (unsigned k = 0; k < packets; k++) {
		size_t length = carrier_packet_bytes(unit, bytes, k);

		if (likely(unit->count == 1)) {
			deliver_one(port, unit, k,
				    (const uint8_t *)unit->iov[0].iov_base + at, length);
		} else if (length <= PACKET_HEADER_BYTES + PACKET_MTU) {
			carrier_unit_gather(unit, at, length, port->packet);
			deliver_one(port, unit, k, port->packet, length);
		} else {
			packet_count_fault(PACKET_MALFORMED);
		}
		at += length;
	}
}

/* Requesters that found the carrier full. A queue pair of the list cannot go while
 * receive_lock is held. */
static void run_waiting(struct packet_port *port)
{
	struct list waiting, *entry;

	list_init(&waiting);
	spin_lock(&port->wait_lock);
	list_splice(&waiting, &port->waiting);
	spin_unlock(&port->wait_lock);
	for (;;) {
		struct packet_qp *pq;

		spin_lock(&port->wait_lock);
		entry = list_pop(&waiting);
		pq = entry ? list_entry(entry, struct packet_qp, wait_entry) : NULL;
		if (pq)
			pq->waiting = false;
		spin_unlock(&port->wait_lock);
		if (!pq)
			return;
		atomic_fetch_sub(&port->backlog, 1);
		hca_lock(&pq->qp->sq_lock);
		hca_sq_run(pq->qp);
		hca_unlock(&pq->qp->sq_lock);
	}
}

/* All take their turns; those that have more to say come again. */
static bool run_answers(struct packet_port *port)
{
	struct list turn, *entry;
	bool moved = false;

	list_init(&turn);
	list_splice(&turn, &port->answering);
	while ((entry = list_pop(&turn))) {
		struct packet_qp *pq = list_entry(entry, struct packet_qp, answer_entry);

		pq->answering = false;
		atomic_fetch_sub(&port->backlog, 1);
		if (packet_respond(pq, ANSWER_BUDGET, &moved))
			packet_owes(pq);
	}
	return moved;
}

static uint64_t guard_most_ns(const struct packet_port *port)
{
	const struct packet_qp *pq = list_entry(port->answering.next, struct packet_qp,
						answer_entry);
	uint64_t timeout_ns = atomic_load_explicit(&pq->timeout_ns, memory_order_relaxed);

	return timeout_ns ? MAX(MIN(timeout_ns / 16, GUARD_MOST_NS), GUARD_NS) :
			    GUARD_MOST_NS;
}

static uint64_t guard_ns(const struct packet_port *port)
{
	return atomic_load_explicit(&port->guard_ns, memory_order_relaxed);
}

static void set_guard_ns(struct packet_port *port, uint64_t ns)
{
	atomic_store_explicit(&port->guard_ns, ns, memory_order_relaxed);
}

/* Acknowledgements wait for the next poll: there has to be one. receive_lock is held. */
static void guard_answers(struct packet_port *port)
{
	if (!port->medium->ack_delay_ns || list_empty(&port->answering))
		return;
	port->guard_wanted = true;
	if (port->guarded)
		return;
	port->guarded = true;
	port->guard_turn = atomic_load_explicit(&port->turn, memory_order_relaxed);
	port->guard_most_ns = guard_most_ns(port);
	set_guard_ns(port, MIN(guard_ns(port), port->guard_most_ns));
	progress_timer_arm(&port->guard, progress_now_ns() + guard_ns(port));
}

/* receive_lock is held. */
static bool poll_locked(struct packet_port *port)
{
	struct carrier *carrier =
		atomic_load_explicit(&port->carrier, memory_order_relaxed);
	bool moved;

	if (unlikely(!carrier))
		return false;
	atomic_store_explicit(&port->turn,
			      atomic_load_explicit(&port->turn, memory_order_relaxed) + 1,
			      memory_order_relaxed);
	moved = carrier_poll(carrier, RECEIVE_BUDGET) > 0;
	if (unlikely(atomic_load_explicit(&port->holds_back, memory_order_relaxed)))
		packet_faults_settle(port);
	if (atomic_load_explicit(&port->backlog, memory_order_relaxed)) {
		if (!list_empty(&port->answering))
			moved |= run_answers(port);
		run_waiting(port);
		if (atomic_load(&port->backlog))
			tick_if_unattended();
		guard_answers(port);
	}
	return moved;
}

/* receive_lock is held. When to look again; 0: nothing waits. */
static uint64_t look_at_answers(struct packet_port *port)
{
	unsigned turn = atomic_load_explicit(&port->turn, memory_order_relaxed);

	if (turn == port->guard_turn) {
		port->guarded = false;
		set_guard_ns(port, GUARD_NS);
		poll_locked(port);
		return 0;
	}
	set_guard_ns(port, MIN(2 * guard_ns(port), port->guard_most_ns));
	/* It has polled. Behind its last poll nothing waits, or that poll would say so. */
	if (!port->guard_wanted) {
		port->guarded = false;
		return 0;
	}
	port->guard_wanted = false;
	port->guard_turn = turn;
	return guard_ns(port);
}

static void on_guard(struct progress_timer *t)
{
	struct packet_port *port = container_of(t, struct packet_port, guard);
	uint64_t wait_ns = guard_ns(port);

	/* A lock is just tried inside only; a thread that polls runs this outside. */
	hca_enter();
	/* Who has the lock polls just now. To wait for it would be to wait for a moment between
	 * two polls. */
	if (hca_trylock(&port->receive_lock)) {
		wait_ns = look_at_answers(port);
		hca_unlock(&port->receive_lock);
	}
	hca_leave();
	if (wait_ns)
		progress_timer_arm(&port->guard, progress_now_ns() + wait_ns);
}

bool packet_poll(struct packet_port *port, bool wait)
{
	bool moved;

	if (wait)
		hca_lock(&port->receive_lock);
	else if (!hca_trylock(&port->receive_lock))
		return false;
	/* Who is about to sleep, or was woken, leaves nothing out. */
	if (wait && atomic_load_explicit(&port->raw, memory_order_relaxed))
		carrier_raw_look_below(atomic_load(&port->raw));
	moved = poll_locked(port);
	hca_unlock(&port->receive_lock);
	return moved;
}

bool packet_pending(struct packet_port *port)
{
	bool pending;

	hca_lock(&port->receive_lock);
	pending = port->carrier && (atomic_load(&port->backlog) ||
				    carrier_next_ns(port->carrier) != UINT64_MAX);
	hca_unlock(&port->receive_lock);
	return pending;
}

/* ---- the port's life ---- */

int packet_port_open(struct packet_port *port, struct carrier *carrier, struct carrier *raw)
{
	const struct carrier_upper upper = { .deliver = deliver, .arg = port };

	uint8_t *packet = malloc(PACKET_HEADER_BYTES + PACKET_MTU);
	uint8_t *answers = malloc(PACKET_TRAIN_BYTES);
	int ret;

	if (!packet || !answers) {
		free(packet);
		free(answers);
		return -ENOMEM;
	}
	carrier_set_upper(carrier, &upper);
	/* The progress thread may tick before an opening and behind a closing. */
	hca_lock(&port->receive_lock);
	atomic_store(&port->carrier, carrier);
	ret = packet_faults_apply(port);
	if (ret) {
		atomic_store(&port->carrier, NULL);
		hca_unlock(&port->receive_lock);
		free(packet);
		free(answers);
		return ret;
	}
	atomic_store(&port->raw, raw);
	port->packet = packet;
	port->answers = answers;
	port->generation++;
	port->guarded = false;
	set_guard_ns(port, GUARD_MOST_NS);
	progress_timer_init(&port->guard, on_guard);
	port->guard.by_pollers = true;
	list_init(&port->answering);
	list_init(&port->targets);
	list_init(&port->waiting);
	hca_unlock(&port->receive_lock);
	return 0;
}

static void release(struct packet_port *port)
{
	carrier_close(port->carrier);
	free(port->packet);
	free(port->answers);
	atomic_store(&port->carrier, NULL);
	port->fault = NULL;
	atomic_store(&port->raw, NULL);
	atomic_store(&port->holds_back, false);
	port->packet = port->answers = NULL;
}

void packet_port_close(struct packet_port *port)
{
	progress_timer_cancel(&port->guard);
	hca_lock(&port->receive_lock);
	release(port);
	hca_unlock(&port->receive_lock);
}

void packet_port_end(struct packet_port *port)
{
	unsigned tries = 0;
	bool mine = false;

	/* exit() of a signal handler that has interrupted a call of the adapter. */
	if (hca_self.depth || hca_self.auto_held)
		return;
	/* Or that keeps another thread in one. */
	while (hca_owner_inside())
		if (++tries > TRIES_AT_END)
			return;
		else
			sched_yield();
	hca_enter();
	while (!(mine = hca_trylock(&port->receive_lock)) && ++tries <= TRIES_AT_END)
		sched_yield();
	if (mine) {
		port->turn++; /* no later poll is waited for */
		if (port->carrier)
			run_answers(port);
		hca_unlock(&port->receive_lock);
	}
	hca_leave();
}

void packet_port_forked(struct packet_port *port)
{
	release(port);
	port->generation++;
	port->receive_lock = port->wait_lock = (struct spin){ 0 };
	port->guarded = false;
	progress_timer_init(&port->guard, on_guard);
	atomic_store(&port->backlog, 0);
	atomic_store(&port->copying[0], 0);
	atomic_store(&port->copying[1], 0);
}
