/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reading a node for a path: free samples in, received samples out, release
 * accounting, read hooks, other paths that read the same node.
 */
#define LOG_ROOM "gateway/path"
#include <errno.h>
#include <poll.h>
#include <string.h>

#include "gateway/path/path.h"
#include "gateway/path/path_queue.h"
#include "util/clock.h"
#include "util/log.h"

/* Reads that may come back empty before a thread begins to sleep: a node that
 * blocks by itself also returns 0 while it fills its receive queue. */
#define EMPTIES_BLOCKING 4096
#define EMPTIES_POLLING 64

/* Gaps and steps back of the sequence number, for the live figures. A step that a generator
 * of this gateway left out is one here too, and not a lost sample. */
static inline void account_sequence(struct path_source *s,
				    const struct sample *smp)
{
	enum sequence_verdict verdict = sequence_judge(&s->sequence, smp);

	if (likely(verdict == SEQUENCE_NEXT))
		return;
	if (verdict == SEQUENCE_LATE)
		path_count(&s->node->counters.reordered, 1);
	if ((verdict != SEQUENCE_LOST && verdict != SEQUENCE_LEFT_OUT) ||
	    s->node->type->flags & NODE_GENERATES)
		return;
	path_count(&s->node->counters.lost, s->sequence.distance);
	path_count(&s->node->counters.left_out, s->sequence.left_out);
}

static void sleep_ns(uint64_t ns)
{
	struct timespec t = timespec_from_ns(ns);

	nanosleep(&t, NULL);
}

static void drop(struct path_source *s, struct sample *smp)
{
	sample_put(smp);
	path_count(&s->overruns, 1);
}

/*
 * Into the queue of `s`, by its policy; for `reader`, whose thread this is. False:
 * there is no room, and the policy is to wait for it. Waiting ends when either path
 * is to stop: what is in the queue is still sent then, what finds no place in it is
 * not.
 */
static bool enqueue(struct path_source *s, struct path_source *reader,
		    struct sample *smp)
{
	int full = atomic_load_explicit(&s->full, memory_order_relaxed);

	if (full == PATH_DROP_OLDEST) {
		path_queue_push_evicting(s, smp);
		return true;
	}
	if (ring_push(&s->queue, smp))
		return true;
	if (full != PATH_DROP_NEWEST && !path_stopping(s->path) &&
	    (!path_stopping(reader->path) || atomic_load(&reader->handed_over)))
		return false;
	drop(s, smp);
	return true;
}

/* Says once that samples were lost. */
static void warn_dropped(const struct path_source *s)
{
	log_warn("path %s is too slow for node %s, samples are dropped; a longer queuelen may help",
		 s->path->name, s->node->name);
}

/* What was read goes into the queue of its own path; uses up the references. */
static void feed(struct path_source *s, struct sample *smps[], unsigned cnt)
{
	bool dropped = atomic_load_explicit(&s->overruns, memory_order_relaxed);

	for (unsigned i = 0; i < cnt; i++) {
		for (bool waited = false; !enqueue(s, s, smps[i]); waited = true) {
			if (!waited)
				waker_wake(&s->path->waker);
			sleep_ns(20000);
		}
	}
	waker_wake(&s->path->waker);
	if (unlikely(!dropped && atomic_load_explicit(&s->overruns,
						      memory_order_relaxed)))
		warn_dropped(s);
}

static bool is_fed_by(struct path_source *reader, const struct path_source *s)
{
	const struct path_share *share =
		atomic_load_explicit(&reader->share, memory_order_acquire);

	for (unsigned k = 0; share && k < share->count; k++)
		if (share->sources[k] == s)
			return true;
	return false;
}

/* A reference, or a copy for one that joined late: the pool of the reader has no
 * room for its queue. NULL when there is no free sample. */
static struct sample *take_for(struct path_source *s, struct sample *smp)
{
	struct sample *copy;

	if (!s->late)
		return sample_get(smp);
	copy = sample_alloc(&s->copies);
	if (copy)
		sample_copy(copy, smp);
	return copy;
}

/*
 * One sample for the source `s` of another path, waiting for room in its queue where
 * that is its policy. Who changes the table does not wait for that room; false: `s` is
 * not in it any more.
 */
static bool feed_other(struct path_source *s, struct path_source *reader,
		       struct sample *smp)
{
	for (bool waited = false;; waited = true) {
		struct sample *own = take_for(s, smp);

		if (!own) {
			path_count(&s->overruns, 1);
			return true;
		}
		if (enqueue(s, reader, own))
			return true;
		sample_put(own);
		if (!waited)
			waker_wake(&s->path->waker);
		if (gate_reasons(&reader->feeding)) {
			gate_leave(&reader->feeding);
			gate_pass(&reader->feeding);
			if (!is_fed_by(reader, s))
				return false;
		}
		sleep_ns(20000);
	}
}

static void feed_many(struct path_source *s, struct path_source *reader,
		      struct sample *smps[], unsigned cnt)
{
	bool dropped = atomic_load_explicit(&s->overruns, memory_order_relaxed);

	for (unsigned i = 0; i < cnt; i++)
		if (!feed_other(s, reader, smps[i]))
			return;
	waker_wake(&s->path->waker);
	if (unlikely(!dropped && atomic_load_explicit(&s->overruns,
						      memory_order_relaxed)))
		warn_dropped(s);
}

/* Hands what was read to the other paths that read this node. The table may change
 * while one of them makes this thread wait: then it is gone through again, and those
 * that have these samples are left out. */
static void feed_others(struct path_source *s, struct sample *smps[],
			unsigned cnt)
{
	const struct path_share *share, *now;
	uint64_t round = ++s->round;

	gate_pass(&s->feeding);
	now = atomic_load_explicit(&s->share, memory_order_acquire);
	for (share = now; share; share = share == now ? NULL : now) {
		unsigned k = 0;

		while (k < share->count && share->sources[k]->round == round)
			k++;
		for (now = share; share == now && k < share->count; k++) {
			share->sources[k]->round = round;
			feed_many(share->sources[k], s, smps, cnt);
			now = atomic_load_explicit(&s->share,
						   memory_order_acquire);
		}
	}
	gate_leave(&s->feeding);
}

/* Unused samples of the last read, then fresh ones. Returns how many. */
static unsigned fill_batch(struct path_source *s)
{
	unsigned have = s->spare_count;

	for (unsigned i = 0; i < have; i++) {
		s->batch[i]->flags = 0;
		s->batch[i]->length = 0;
		s->batch[i]->signals = NULL;
	}
	if (have < s->vectorize)
		have += sample_alloc_many(&s->pool, s->batch + have,
					  s->vectorize - have);
	return have;
}

unsigned path_source_flush(struct path_source *s, struct sample *smps[])
{
	unsigned cnt = s->held;

	s->held = 0;
	if (unlikely(cnt))
		return cnt;

	/* What they hold is for the next reader then. */
	if (atomic_load(&s->handed_over))
		return 0;
	cnt = hook_list_flush(s->node->in.hooks, smps, s->vectorize);
	if (path_source_feeds_others(s))
		feed_others(s, smps, cnt);
	return cnt;
}

/* No more will come: for this path and for those that it reads for. */
static void set_ended(struct path_source *s, bool ended)
{
	const struct path_share *share;

	if (gate_pass(&s->feeding)) {
		share = atomic_load_explicit(&s->share, memory_order_acquire);
		for (unsigned k = 0; share && k < share->count; k++) {
			atomic_store(&share->sources[k]->ended, ended);
			waker_wake(&share->sources[k]->path->waker);
		}
		/* Inside, so that who joins copies what holds. */
		atomic_store(&s->ended, ended);
		gate_leave(&s->feeding);
	}
	waker_wake(&s->path->waker);
}

static int read_node(struct path_source *s, struct sample *smps[])
{
	unsigned have = fill_batch(s), release = have, cnt;
	/* Looked at before the read, which then sees all that was written. */
	unsigned feed = unlikely(s->fed) ? atomic_load(&s->node->feed) : 0;
	bool over = feed & 1;
	int ret;

	if (unlikely(!have)) {
		if (!atomic_fetch_add(&s->starved, 1))
			log_warn("path %s: all samples are in use, node %s is not read; a longer queuelen may help",
				 s->path->name, s->node->name);
		return -ENOBUFS;
	}
	ret = node_read(s->node, s->batch, have, &release);
	cnt = ret > 0 ? (unsigned)ret : 0;
	assert(release <= have && cnt <= have);

	/* Exactly the first `release` entries are ours again. Received ones
	 * beyond them stay the node's too, so take a reference of our own. */
	for (unsigned i = 0; i < cnt; i++) {
		smps[i] = s->batch[i];
		if (unlikely(i >= release))
			sample_get(smps[i]);
	}
	s->spare_count = 0;
	for (unsigned i = cnt; i < release; i++)
		s->batch[s->spare_count++] = s->batch[i];
	if (!cnt) {
		/* A read that kept samples was no idle one: it fills a queue. */
		if (release < have)
			s->empties = 0;
		s->ended_by_feed = over && ret != -ENODATA;
		s->feed_seen = feed;
		ret = over ? -ENODATA : ret;
		/* Before the end comes what the hooks still hold. */
		if (ret != -ENODATA)
			return ret;
		cnt = hook_list_flush(s->node->in.hooks, smps, s->vectorize);
		return cnt ? (int)cnt : ret;
	}

	s->empties = 0;
	for (unsigned i = 0; i < cnt; i++)
		account_sequence(s, smps[i]);
	return (int)hook_list_process(s->node->in.hooks, smps, cnt);
}

/* Why it is not to be read, enum gate_reason; 0: it is. A path that reads for
 * others too goes on and drops its own samples. */
static unsigned resting(struct path_source *s)
{
	return gate_reasons(&s->node->in.gate) |
	       (path_source_feeds_others(s) ? 0 : gate_reasons(&s->path->gate));
}

/*
 * These were read while somebody paused the node or the path: they are kept back
 * until it goes on. Where several sources share a thread nothing is kept back,
 * and there no read waits either.
 */
static int hold_back(struct path_source *s, struct sample *smps[], int cnt)
{
	if (s->path->inside) {
		/* Of another thread, which is not to wait; the path's own will. */
		s->held = (unsigned)cnt;
		return -EHOSTDOWN;
	}
	path_spin_end(s);
	while (resting(s) & GATE_PAUSED && !s->path->polled &&
	       !path_stopping(s->path)) {
		s->rested = true;
		gate_wait(&s->node->in.gate, 50000000);
		if (!path_source_feeds_others(s))
			gate_wait(&s->path->gate, 50000000);
	}
	return cnt;
}

int path_source_rest(struct path_source *s)
{
	/* Not when it is shut for a moment only, as for a reload. */
	s->rested |= (resting(s) & ~(unsigned)GATE_HOLD) != 0;
	return -EHOSTDOWN;
}

static void resume(struct path_source *s)
{
	s->rested = false;
	if (s->node->type->resume)
		s->node->type->resume(s->node);
}

int path_source_read(struct path_source *s, struct sample *smps[])
{
	struct node *n = s->node;
	bool inside = s->path->inside;
	int ret = (int)s->held;

	if (unlikely(ret)) {
		s->held = 0;
		return hold_back(s, smps, ret);
	}
	if (unlikely(path_rests(s->path) && !path_source_feeds_others(s)))
		return path_source_rest(s);
	if (unlikely(!inside && !gate_enter(&n->in.gate)))
		return path_source_rest(s);
	if (unlikely(s->rested))
		resume(s);
	if (s->may_run_turns)
		n->in.carries = !path_source_feeds_others(s);
	ret = read_node(s, smps);
	/* Inside, so that who starts the node anew knows which end he sees. */
	if (unlikely(ret == -ENODATA))
		set_ended(s, true);
	else if (ret > 0 && n->in.awaited)
		waiting_arrived(&s->waiting, clock_now_ns());
	if (!inside)
		gate_leave(&n->in.gate);
	/* Outside: a queue of theirs may be full for long, and the node is to be
	 * stopped all the same. */
	if (unlikely(ret > 0 && path_source_feeds_others(s)))
		feed_others(s, smps, (unsigned)ret);
	if (unlikely(ret > 0 && resting(s)))
		return hold_back(s, smps, ret);
	return ret;
}

bool path_source_revived(struct path_source *s)
{
	if (atomic_load(&s->ended)) {
		if (!s->ended_by_feed ||
		    atomic_load(&s->node->feed) == s->feed_seen)
			return false;
		set_ended(s, false);
	}
	s->ended_by_feed = false;
	s->empties = 0;
	return true;
}

void path_source_leave(struct path_source *s)
{
	path_spin_end(s);
	if (!atomic_load(&s->handed_over))
		set_ended(s, true);
}

bool path_source_await(struct path_source *s)
{
	path_spin_end(s);
	while (!path_stopping(s->path)) {
		unsigned generation = waker_prepare(&s->node->revival);

		if (path_source_revived(s))
			return true;
		waker_wait(&s->node->revival, generation, 100000000);
	}
	return false;
}

/* Waits until the node's descriptors are readable; false when it has none. */
static bool wait_readable(struct path_source *s)
{
	struct pollfd pfds[8];
	int fds[8], n;

	if (!s->node->type->poll_fds)
		return false;
	if (!gate_enter(&s->node->in.gate))
		return false;
	n = s->node->type->poll_fds(s->node, fds, (int)ARRAY_SIZE(fds));
	gate_leave(&s->node->in.gate);
	if (n <= 0)
		return false;
	for (int i = 0; i < n; i++)
		pfds[i] = (struct pollfd){ .fd = fds[i], .events = POLLIN };
	/* Bounded: interrupt() of the node need not touch its descriptors. */
	poll(pfds, (nfds_t)n, 50);
	return true;
}

/* Sleeps while another thread spins and runs the path. False: none does. */
static bool be_carried(struct path_source *s)
{
	bool done;

	path_spin_end(s);
	if (!gate_enter(&s->node->in.gate))
		return true; /* the next read finds out why */
	done = path_carry_wait(s->path, 20000000);
	gate_leave(&s->node->in.gate);
	return done;
}

/* Where the path waits for the node; see waiting.h. Asked again after each look. */
static void wait_awaited(struct path_source *s)
{
	struct path *p = s->path;
	uint64_t now = clock_now_ns();
	/* Its writer runs it. */
	bool carried = p->may_be_carried && s->node->type->flags & NODE_LOOPS &&
		       now >= p->carried_from_ns;
	uint64_t until = carried ? WAITING_FOREVER :
				   waiting_plan(&s->waiting, now);

	/* Others rely on it to spin. */
	if (until && until != WAITING_FOREVER && s->waiting.counted && turn_is_offered_to_spinners())
		until = 0;
	/* Another one may spin no more meanwhile. */
	if (!until && path_carry_is_better(p, &s->waiting) && be_carried(s))
		return;
	if (!until && waiting_begin_spin(&s->waiting)) {
		if (p->plain)
			turn_spinner_begins();
		if (waiting_look(&s->waiting, now)) {
			if (p->plain)
				turn_run_offered();
			cpu_relax();
			return;
		}
	}
	/* It would spin, but for want of a processor. */
	if (!until && be_carried(s))
		return;
	path_spin_end(s);
	if (!gate_enter(&s->node->in.gate))
		return;
	if (p->may_be_carried)
		turn_open(&p->turn);
	s->node->type->sleep(s->node, until ? until : WAITING_FOREVER);
	if (until && until != WAITING_FOREVER)
		waiting_woke(&s->waiting, until, clock_now_ns());
	if (p->may_be_carried)
		turn_close(&p->turn);
	gate_leave(&s->node->in.gate);
}

void path_source_wait(struct path_source *s, int ret)
{
	bool blocks = s->node->type->flags & NODE_READ_BLOCKS;

	if (ret == -EINTR)
		return;
	if (ret == -EHOSTDOWN) {
		path_spin_end(s);
		gate_wait(path_rests(s->path) ? &s->path->gate :
						&s->node->in.gate, 50000000);
		return;
	}
	if (ret < 0 && ret != -EAGAIN) {
		/* An error, or no free sample: not again at once. */
		path_spin_end(s);
		sleep_ns(ret == -ENOBUFS ? 100000 : 10000000);
		return;
	}
	if (s->node->in.awaited) {
		wait_awaited(s);
		return;
	}
	if (++s->empties < (blocks ? EMPTIES_BLOCKING : EMPTIES_POLLING)) {
		cpu_relax();
		return;
	}
	path_spin_end(s);
	if (!blocks && wait_readable(s))
		return;
	sleep_ns(200000);
}

void *path_source_run(void *source)
{
	struct path_source *s = source;
	unsigned n;

	waiting_sharpen_sleep();
	while (!path_stopping(s->path)) {
		int ret = path_source_read(s, s->received);

		if (ret == -ENODATA) {
			path_source_await(s);
			continue;
		}
		if (ret <= 0) {
			path_source_wait(s, ret);
			continue;
		}
		feed(s, s->received, (unsigned)ret);
	}
	while ((n = path_source_flush(s, s->received)))
		feed(s, s->received, n);
	path_source_leave(s);
	return NULL;
}
