/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * While the thread of a path sleeps, another thread may run the path: the thread that
 * writes the node that the path reads (loopback), or a thread that spins. So no thread
 * has to be woken, which would take longer than everything else that happens to a
 * sample.
 *
 * This holds for paths with one source whose nodes and hooks never wait, and whose
 * threads have no affinity or priority of their own. When turns of a path take long,
 * only its own thread runs it for a while.
 *
 * Threads that spin are readers whose samples come often (path_source.c) and generators
 * (part/timer.h). A path that could spin itself is run by them all the same when it would
 * take the last processor that no thread of the gateway spins on: the server, the kernel
 * and the threads of other programs need one, and with real-time priority they would have
 * none.
 */
#define LOG_ROOM "gateway/path"
#include <errno.h>

#include "gateway/path/path.h"
#include "util/clock.h"
#include "util/log.h"

/* Reads in one turn; then the path's own thread goes on. */
#define READS_MAX 8
/* A turn that takes longer than LONG_NS delays the thread that runs it. One in
 * LONG_WEIGHT is tolerated, because the kernel may have let another thread run in the
 * middle of it. With more of them only the path's own thread runs it for PAUSE_NS. */
#define LONG_NS 50000
#define LONG_WEIGHT 8
#define LONG_MOST 512
#define PAUSE_NS 1000000000

/* Hooks that may wait can be interrupted. */
static bool hooks_may_wait(const struct hook_list *l)
{
	if (l)
		list_for_each(h, (struct list *)&l->hooks, struct hook, entry)
			if (h->type->interrupt)
				return true;
	return false;
}

/* One source, no settings of its own for the thread, no hook that may wait. */
static bool is_plain(const struct path *p)
{
	const struct path_source *s = &p->sources[0];

	if (!p->direct || p->affinity || p->own_priority ||
	    s->node->affinity || s->node->priority ||
	    hooks_may_wait(s->node->in.hooks) || hooks_may_wait(p->hooks))
		return false;
	for (unsigned d = 0; d < p->destination_count; d++)
		if (hooks_may_wait(p->destinations[d].node->out.hooks))
			return false;
	return true;
}


bool path_carry_may_run_turns(const struct path *p, const struct path_source *s)
{
	if (p->polled || s->primary || !is_plain(p))
		return false;
	for (unsigned d = 0; d < p->destination_count; d++)
		if (p->destinations[d].node->type->may_wait)
			return false;
	return true;
}

static bool writes_may_wait(const struct path *p)
{
	for (unsigned d = 0; d < p->destination_count; d++) {
		struct node *n = p->destinations[d].node;

		if (n->type->may_wait && n->type->may_wait(n))
			return true;
	}
	return false;
}

static void leave_gates(struct path *p, unsigned destinations)
{
	while (destinations)
		gate_leave(&p->destinations[--destinations].node->out.gate);
	gate_leave(&p->gate);
}

/* Enters the gates of the path's output and of its destinations, without waiting. The
 * path's own thread is behind the gate of the source and stays there while its turn is
 * taken. */
static bool enter_gates(struct path *p)
{
	if (gate_reasons(&p->sources[0].node->in.gate) || !gate_enter(&p->gate))
		return false;
	for (unsigned d = 0; d < p->destination_count; d++) {
		if (gate_enter(&p->destinations[d].node->out.gate))
			continue;
		leave_gates(p, d);
		return false;
	}
	return true;
}

static bool read_and_emit(struct path *p)
{
	struct path_source *s = &p->sources[0];

	for (unsigned i = 0; i < READS_MAX; i++) {
		int n = path_source_read(s, p->batch);

		if (n <= 0)
			return n == 0 || n == -EAGAIN;
		if (p->mapped)
			path_register_put(p, s, p->batch, (unsigned)n);
		else
			path_emit(p, p->batch, (unsigned)n);
		if (unlikely(writes_may_wait(p)))
			return false;
	}
	return false;
}

static void note_duration(struct path *p, uint64_t now_ns, uint64_t took_ns)
{
	if (likely(took_ns <= LONG_NS)) {
		p->long_turns -= p->long_turns > 0;
		return;
	}
	p->long_turns += LONG_WEIGHT;
	if (p->long_turns <= LONG_MOST)
		return;
	p->long_turns = 0;
	p->carried_from_ns = now_ns + PAUSE_NS;
	log_debug("path %s: others do not run it for a while, it takes too long",
		  p->name);
}

/* The run() of its turn; see struct turn. */
static bool carry(struct turn *t)
{
	struct path *p = container_of(t, struct path, turn);
	uint64_t before = clock_now_ns(), took;
	bool done;

	if (path_stopping(p) || before < p->carried_from_ns ||
	    path_source_feeds_others(&p->sources[0]) || !enter_gates(p)) {
		waker_wake(&p->waker);
		return false;
	}
	/* Behind the gates: a node that is started anew is not looked at. Most of these may
	 * always wait. */
	if (writes_may_wait(p)) {
		leave_gates(p, p->destination_count);
		p->carried_from_ns = before + PAUSE_NS;
		waker_wake(&p->waker);
		return false;
	}
	p->turns++;
	p->inside = true;
	done = read_and_emit(p);
	p->inside = false;
	leave_gates(p, p->destination_count);
	took = clock_now_ns() - before;
	note_duration(p, before + took, took);
	if (!done)
		waker_wake(&p->waker);
	return done;
}

static void wake_owner(struct turn *t)
{
	waker_wake(&container_of(t, struct path, turn)->waker);
}

void path_carry_offer(struct path *p)
{
	p->plain = is_plain(p);
	p->may_be_carried = p->plain && p->sources[0].node->in.awaited;
	p->turn.run = carry;
	p->turn.wake = wake_owner;
	p->carried_from_ns = 0;
	if (p->may_be_carried)
		turn_offer(&p->sources[0].node->in.reader, &p->turn);
}

void path_carry_withdraw(struct path *p)
{
	if (p->may_be_carried)
		turn_withdraw(&p->sources[0].node->in.reader);
	p->may_be_carried = false;
}

void path_spin_end(struct path_source *s)
{
	waiting_end_spin(&s->waiting);
	turn_spinner_ends();
}

bool path_carry_is_better(const struct path *p, const struct waiting *w)
{
	return p->may_be_carried && turn_has_spinner() && waiting_is_crowded(w) &&
	       !path_source_feeds_others(&p->sources[0]) &&
	       clock_now_ns() >= p->carried_from_ns;
}

bool path_carry_wait(struct path *p, uint64_t timeout_ns)
{
	unsigned generation = waker_prepare(&p->waker), before = p->turns;
	uint64_t from = clock_now_ns();

	if (!p->may_be_carried || from < p->carried_from_ns ||
	    path_source_feeds_others(&p->sources[0]) ||
	    !turn_has_spinner() || !turn_offer_to_spinners(&p->turn))
		return false;
	/* Once more: the last one may have ended before it could see the offer. */
	turn_open(&p->turn);
	if (turn_has_spinner())
		waker_wait(&p->waker, generation, timeout_ns);
	turn_withdraw_from_spinners(&p->turn);
	turn_close(&p->turn);
	/* The thread that spun does something else that takes long. */
	if (p->turns == before && clock_now_ns() - from >= timeout_ns)
		p->carried_from_ns = clock_now_ns() + PAUSE_NS;
	return true;
}
