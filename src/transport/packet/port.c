/* SPDX-License-Identifier: BSD-2-Clause */
/* The place where packets leave and arrive, and whose turn it is; see packet.h. */
#include <errno.h>
#include <sched.h>
#include <stdlib.h>

#include "hca/object/sq.h"
#include "hca/queue/post.h"
#include "hca/run/elide.h"
#include "hca/run/progress.h"
#include "hca/run/yield.h"
#include "hca/share/arrival.h"
#include "hca/share/counters.h"
#include "hca/share/process.h"
#include "transport/packet/state.h"
#include "util/container_of.h"
#include "util/list.h"
#include "util/spin.h"

#define RECEIVE_BUDGET 32u /* units a poll */
#define ACKNOWLEDGEMENT_MOST PACKET_HEADER_BYTES
#define TRIES_AT_END 64u
#define POLLS_TO_TAKE_IN 1024u
#define TRIES_TO_REST 256u
#define ANSWER_BUDGET 16u  /* packets of one responder, before the others' turn; or a train */
/* So much is taken in between two answers: some of a window, so that the peer need not wait for the
 * end of a long poll; but an answer costs as much as a train. */
#define ANSWERED_BYTES 98304u
/* A unit of so many bytes is a part of a stream (linger()). */
#define STREAM_BYTES 16384u
#define LINGER_NS 50000u
#define LINGER_POLLS 512u
#define LINGER_VAIN_MOST 6u
#define REPLY_NS 20000u    /* for which polls leave acknowledgements to a reply */

void packet_port_wake(void *arg)
{
	struct packet_port *port = arg;

	if (!packet_arrives(port))
		packet_look_now(port);
}

/* ---- who waits ---- */

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
	/* First the count, then the look: a thread that ceases to rely on polls does so first and
	 * reads the count afterwards (presence.c). */
	if (fresh && (atomic_fetch_add(&port->backlog, 1) == 0 ||
		      atomic_exchange(&port->reply_until_ns, 0)))
		packet_look_later(port);
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

/* All take their turns; those that have more to say come again. */
static bool run_answers(struct packet_port *port)
{
	unsigned budget = MAX(ANSWER_BUDGET, port->medium->train());
	struct list turn, *entry;
	bool moved = false;

	port->unanswered_bytes = 0;
	list_init(&turn);
	list_splice(&turn, &port->answering);
	while ((entry = list_pop(&turn))) {
		struct packet_qp *pq = list_entry(entry, struct packet_qp, answer_entry);

		pq->answering = false;
		atomic_fetch_sub(&port->backlog, 1);
		if (packet_respond(pq, budget, &moved))
			packet_owes(pq);
	}
	return moved;
}

/* ---- arriving ---- */

void packet_count_fault(enum packet_fault fault)
{
	if (fault == PACKET_BAD_ICRC)
		HCA_COUNT_PROCESS(BAD_ICRC, 1);
	else
		HCA_COUNT_PROCESS(BAD_PACKETS, 1);
}

/* A unit may end with the acknowledgement of what its first packets answer (send.c), which is
 * delivered in front of them: the program finds the completion of its message before the answer.
 * True: it was. */
static bool deliver_acknowledgement(struct packet_port *port, const struct carrier_unit *unit,
				    unsigned k)
{
	struct icrc_series series = { 0 };
	size_t bytes = carrier_unit_bytes(unit);
	size_t length = carrier_packet_bytes(unit, bytes, k);
	uint8_t packet[ACKNOWLEDGEMENT_MOST];
	enum packet_fault fault;
	struct packet_frame f;
	size_t header;

	if (length > sizeof(packet))
		return false;
	carrier_unit_gather(unit, bytes - length, length, packet);
	header = port->medium->decode(unit, &series, k, packet, length, &f, &fault);
	if (!header || header > length || f.rc.bytes || f.rc.op != RC_ACK ||
	    (f.rc.syndrome & RC_SYN_KIND))
		return false;
	packet_receive(port, unit, &f, packet + header);
	return true;
}

/* Could the program see that the packet, a request, comes before what the acknowledgement behind
 * it completes? The parts of a READ response stay in front of what follows them. A thread alone that
 * polls two queues finds both behind the poll that brings the unit. */
static bool order_shows(const struct packet_frame *f)
{
	const struct hca_qp *qp = hca_qp_find(f->dst_qpn);

	return f->rc.op < RC_ACK &&
	       (!hca_self.elided || !qp || !qp->recv_cq ||
		atomic_load_explicit(&qp->recv_cq->sends, memory_order_relaxed) ||
		atomic_load_explicit(&hca_process.armed, memory_order_relaxed));
}

/* The packets of a unit on their way to their queue pairs. */
struct arrival {
	struct packet_port *port;
	const struct carrier_unit *unit;
	struct icrc_series series;
	size_t bytes;
	unsigned packets; /* without the last one where that was delivered in front of the first */
};

/* How many packets behind packet `k`, which lies at `from`, make a run with it. */
static uint32_t run_behind(struct arrival *a, unsigned k, const uint8_t *from, size_t length,
			   size_t header)
{
	uint32_t n = 0;

	for (; k + n + 1 < a->packets; n++, from += length)
		if (carrier_packet_bytes(a->unit, a->bytes, k + n + 1) != length ||
		    !a->port->medium->follows(a->unit, &a->series, k + n + 1, from, header,
					      from + length, length))
			break;
	return n;
}

/* How many were taken: packet `k` and, of a unit in one piece, those that make a run with it. */
static unsigned deliver_run(struct arrival *a, unsigned k, const uint8_t *bytes, size_t length)
{
	enum packet_fault fault = PACKET_MALFORMED;
	struct packet_frame f;
	size_t header = a->port->medium->decode(a->unit, &a->series, k, bytes, length, &f,
						&fault);

	if (unlikely(!header || header > length || f.rc.bytes > PACKET_MTU ||
		     f.rc.bytes > length - header)) {
		packet_count_fault(fault);
		return 1;
	}
	if (!k && a->packets > 1 && order_shows(&f))
		a->packets -= deliver_acknowledgement(a->port, a->unit, a->packets - 1);
	f.stride = (uint32_t)length;
	f.rc.more = f.rc.flags || f.service == PACKET_UD || a->unit->count > 1 ?
			    0 : run_behind(a, k, bytes, length, header);
	k = 1 + f.rc.more; /* packet_receive() changes it */
	packet_receive(a->port, a->unit, &f, bytes + header);
	return k;
}

static void deliver(void *arg, const struct carrier_unit *unit)
{
	struct arrival a = { .port = arg, .unit = unit, .bytes = carrier_unit_bytes(unit) };
	size_t at = 0;
	unsigned n;

	a.packets = carrier_unit_packets(unit, a.bytes);
	a.port->now_ns = packet_now_ns();
	for (unsigned k = 0; k < a.packets; k += n) {
		size_t length = carrier_packet_bytes(unit, a.bytes, k);

		n = 1;
		if (likely(unit->count == 1)) {
			n = deliver_run(&a, k, (const uint8_t *)unit->iov[0].iov_base + at,
					length);
		} else if (length <= PACKET_HEADER_BYTES + PACKET_MTU) {
			carrier_unit_gather(unit, at, length, a.port->packet);
			deliver_run(&a, k, a.port->packet, length);
		} else {
			packet_count_fault(PACKET_MALFORMED);
		}
		at += n * length;
	}
	if (a.bytes >= STREAM_BYTES)
		atomic_store_explicit(&a.port->streams, true, memory_order_relaxed);
	a.port->unanswered_bytes += (uint32_t)a.bytes;
	if (a.port->unanswered_bytes >= ANSWERED_BYTES && !list_empty(&a.port->answering))
		run_answers(a.port);
}

/* Requesters that wait. A queue pair of the list cannot go while
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

/* Leaves the backlog to the program, if that is acknowledgements alone: it takes them along with its
 * reply, or sends them before it sleeps. False: it is not. receive_lock is held. */
static bool leave_to_program(struct packet_port *port)
{
	bool leave = !progress_is_self() && hca_arrival_aside() &&
		     carrier_next_ns(port->carrier) == UINT64_MAX;

	atomic_store(&port->reply_until_ns, leave ? packet_now_ns() + REPLY_NS : 0);
	if (!leave)
		return false;
	/* A requester that comes to wait behind this look finds the time. */
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
	bool moved = !list_empty(&port->answering) && run_answers(port);

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

/* Has the program had its chance to reply when this thread polls? The progress thread polls where
 * the program does not, which may be about to reply. A program that sleeps for events often arms
 * its queue and polls until that is empty before it replies. */
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
	moved = carrier_poll(carrier, RECEIVE_BUDGET) > 0;
	if (unlikely(atomic_load_explicit(&port->holds_back, memory_order_relaxed))) {
		packet_faults_settle(port);
		packet_look_later(port);
	}
	if (atomic_load_explicit(&port->backlog, memory_order_relaxed))
		moved |= run_backlog(port);
	return moved;
}

/* The holder may have lost its processor, for milliseconds. */
static void lock_to_receive(struct packet_port *port)
{
	unsigned tries = 0;

	if (!progress_is_self()) {
		hca_lock(&port->receive_lock);
		return;
	}
	while (!hca_trylock(&port->receive_lock))
		if (++tries % TRIES_TO_REST)
			cpu_relax();
		else
			hca_make_way(tries / TRIES_TO_REST);
}

/* May another packet soon follow the last ones? */
static bool more_expected(struct packet_port *port)
{
	bool streams = atomic_load_explicit(&port->streams, memory_order_relaxed);
	bool serves = port->serves;

	atomic_store_explicit(&port->streams, false, memory_order_relaxed);
	port->serves = false;
	return streams || (serves && !hca_others_compute(progress_now_ns()));
}

/* Behind a part of a stream, and behind a request that it has carried out for a program that does
 * nothing else, the progress thread looks for the next one for a while before it goes to sleep: to be
 * woken takes longer than the work. Each time in vain makes it sleep at once more often. */
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
		lock_to_receive(port);
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

	if (wait)
		lock_to_receive(port);
	else if (!hca_trylock(&port->receive_lock))
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

/* ---- the port's life ---- */

int packet_port_open(struct packet_port *port, struct carrier *carrier)
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
	port->packet = packet;
	port->answers = answers;
	port->generation++;
	packet_presence_open(port);
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
	atomic_store(&port->holds_back, false);
	port->packet = port->answers = NULL;
}

void packet_port_close(struct packet_port *port)
{
	packet_presence_close(port);
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
		port->no_waiting = true;
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
	packet_presence_forked(port);
	atomic_store(&port->backlog, 0);
	atomic_store(&port->copying[0], 0);
	atomic_store(&port->copying[1], 0);
}
