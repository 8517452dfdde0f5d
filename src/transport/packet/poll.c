/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A poll of a port: takes in what has come, then lets responders and requesters of the backlog
 * send. The program's threads poll, or the progress thread in their place (presence.c).
 */
#include "hca/queue/post.h"
#include "hca/run/yield.h"
#include "hca/share/arrival.h"
#include "transport/packet/packet.h"

#define RECEIVE_BUDGET 32u /* units that a poll takes in */
#define POLLS_TO_TAKE_IN 1024u
#define TRIES_TO_REST 256u
#define POLLS_PER_LOOK 64u
#define LINGER_NS 50000u
#define LINGER_POLLS 512u
#define LINGER_VAIN_MOST 6u
#define REPLY_NS 20000u    /* for so long polls leave acknowledgements to a reply */

/* All requesters that wait take their turns. A queue pair of the list stays open while
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
		pq->polled = true;
		hca_sq_run(pq->qp);
		pq->polled = false;
		hca_unlock(&pq->qp->sq_lock);
	}
}

/* Leaves the backlog to the program, if it consists of acknowledgements alone: the program sends
 * them with its reply, or before it sleeps. False: the backlog holds more, or the progress thread
 * does not stand aside (hca/share/arrival.h). receive_lock is held. */
static bool leave_to_program(struct packet_port *port)
{
	bool leave = !progress_is_self() && hca_arrival_aside() &&
		     carrier_next_ns(port->carrier) == UINT64_MAX;

	atomic_store(&port->reply_until_ns, leave ? packet_now_ns() + REPLY_NS : 0);
	if (!leave)
		return false;
	/* A requester that begins to wait after this check finds reply_until_ns set. */
	spin_lock(&port->wait_lock);
	leave = list_empty(&port->waiting);
	spin_unlock(&port->wait_lock);
	if (!leave)
		atomic_store(&port->reply_until_ns, 0);
	return leave;
}

/* receive_lock is held. */
static bool run_backlog(struct packet_port *port)
{
	bool moved = !list_empty(&port->answering) && packet_run_answers(port);

	run_waiting(port);
	if (atomic_load(&port->backlog) && !leave_to_program(port))
		packet_look_later(port);
	return moved;
}

bool packet_waits_for_reply(const struct packet_port *port)
{
	uint64_t until_ns = atomic_load_explicit(&port->reply_until_ns, memory_order_relaxed);

	return until_ns && packet_now_ns() < until_ns;
}

/* Does this poll mean that the program has had its chance to reply? Polls of the progress thread
 * do not: they take place where the program does not poll, and it may be about to reply. A
 * program that sleeps for events often arms its queue and polls until that is empty before it
 * replies. */
static bool begins_turn(void)
{
	return !progress_is_self() && (hca_self.waits_for || !hca_arrival_aside());
}

/* receive_lock is held. */
static void next_turn(struct packet_port *port)
{
	atomic_store_explicit(&port->turn,
			      atomic_load_explicit(&port->turn, memory_order_relaxed) + 1,
			      memory_order_relaxed);
}

/* receive_lock is held. */
static bool poll_locked(struct packet_port *port)
{
	struct carrier *carrier =
		atomic_load_explicit(&port->carrier, memory_order_relaxed);
	bool moved;

	if (unlikely(!carrier))
		return false;
	if (begins_turn())
		next_turn(port);
	/* What was left to polls is taken in here. */
	if (progress_is_self())
		port->presence.leaves = 0;
	moved = carrier_poll(carrier, RECEIVE_BUDGET) > 0;
	if (unlikely(atomic_load_explicit(&port->holds_back, memory_order_relaxed))) {
		packet_faults_settle(port);
		packet_look_later(port);
	}
	if (atomic_load_explicit(&port->backlog, memory_order_relaxed)) {
		if (!moved)
			port->now_ns = packet_now_ns();
		moved |= run_backlog(port);
	}
	return moved;
}

/* The thread that holds the lock may have lost its processor, for milliseconds. False: the program
 * goes on to poll. It moves what there is, and the progress thread would only take its processor. */
static bool lock_to_receive(struct packet_port *port)
{
	unsigned tries = 0;
	uint64_t polls;

	if (!progress_is_self()) {
		hca_lock(&port->receive_lock);
		return true;
	}
	polls = atomic_load_explicit(&hca_process.polls, memory_order_relaxed);
	while (!hca_trylock(&port->receive_lock)) {
		if (++tries % TRIES_TO_REST) {
			cpu_relax();
			continue;
		}
		hca_make_way(tries / TRIES_TO_REST);
		if (atomic_load_explicit(&hca_process.polls, memory_order_relaxed) != polls)
			return false;
	}
	return true;
}

/* Is another packet likely to follow the last ones soon? */
static bool more_expected(struct packet_port *port)
{
	bool streams = atomic_load_explicit(&port->streams, memory_order_relaxed);
	bool serves = port->serves;

	atomic_store_explicit(&port->streams, false, memory_order_relaxed);
	port->serves = false;
	return streams || (serves && !hca_others_compute(progress_now_ns()));
}

/* After a part of a stream, and after a request that it has carried out for a program that does
 * nothing else, the progress thread polls for a while before it sleeps: waking it takes longer
 * than the work. Each time in vain makes it sleep at once more often. */
static bool linger(struct packet_port *port)
{
	uint64_t until_ns;
	bool moved = false;

	if (port->linger_skips) {
		port->linger_skips--;
		return false;
	}
	until_ns = packet_now_ns() + LINGER_NS;
	for (unsigned i = 0; i < LINGER_POLLS && !moved && packet_now_ns() < until_ns; i++) {
		cpu_relax();
		if (!lock_to_receive(port))
			break;
		moved = poll_locked(port);
		hca_unlock(&port->receive_lock);
	}
	port->linger_vain = moved ? 0 : (uint8_t)MIN(port->linger_vain + 1u, LINGER_VAIN_MOST);
	port->linger_skips = (uint8_t)((1u << port->linger_vain) - 1);
	return moved;
}

bool packet_poll(struct packet_port *port, bool wait)
{
	bool moved;

	if (wait ? !lock_to_receive(port) : !hca_trylock(&port->receive_lock))
		return false;
	moved = poll_locked(port);
	hca_unlock(&port->receive_lock);
	if (unlikely(!moved && wait && progress_is_self()) && more_expected(port))
		moved = linger(port);
	return moved;
}

void packet_take_in(struct packet_port *port)
{
	hca_enter();
	for (unsigned i = 0; i < POLLS_TO_TAKE_IN && !hca_builds() && packet_poll(port, true); i++)
		;
	hca_leave();
}

void packet_answer(struct packet_port *port)
{
	hca_lock(&port->receive_lock);
	if (port->carrier) {
		next_turn(port);
		port->no_waiting = true;
		run_backlog(port);
		port->no_waiting = false;
	}
	hca_unlock(&port->receive_lock);
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

/* A program that posts unsignaled work need not poll for thousands of messages. */
void packet_posted(struct packet_port *port, struct hca_qp *qp)
{
	struct packet_part *part = packet_part(qp);

	if (likely(atomic_load_explicit(&part->unfinished, memory_order_relaxed) <=
		   qp->sq.limit / 2) ||
	    hca_builds())
		return;
	packet_poll(port, false);
}

/* ---- in place of the program ---- */

void packet_on_work(struct progress_timer *t)
{
	struct packet_port *port = container_of(t, struct packet_port, presence.work);
	struct packet_presence *p = &port->presence;
	bool displaced = atomic_exchange(&p->displaced, false);
	bool leaves = packet_is_relied_on(port), moved = true, any = false;
	bool present = atomic_load(&p->present);

	/* The program polls again. */
	if (present && !displaced)
		return;
	if (!present) {
		if (packet_look_in_vain(port))
			return;
		packet_rely(port, false);
	}
	for (unsigned i = 0; moved && i < POLLS_PER_LOOK; i++)
		any |= moved = packet_poll(port, true);
	if (present)
		return;
	if (leaves && any && p->ran)
		packet_presence_doubt(p);
	else if (leaves && any)
		atomic_store(&p->left, true);
	if (moved)
		packet_look_now(port);
	else
		packet_look_later(port);
}
