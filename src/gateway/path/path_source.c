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

/* Gaps and steps back of the sequence number, for the live figures. */
static inline void account_sequence(struct path_source *s,
				    const struct sample *smp)
{
	enum sequence_verdict verdict = sequence_judge(&s->sequence, smp);

	if (likely(verdict == SEQUENCE_NEXT))
		return;
	if (verdict == SEQUENCE_LATE)
		path_count(&s->node->counters.reordered, 1);
	else if (verdict == SEQUENCE_LOST &&
		 !(s->node->type->flags & NODE_GENERATES))
		path_count(&s->node->counters.lost, s->sequence.distance);
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
 * Into the queue of `s`, by its policy; for `reader`, whose thread this is.
 * Waiting for room ends when either path is to stop: what is in the queue is
 * still sent then, what finds no place in it is not.
 */
static void enqueue(struct path_source *s, const struct path_source *reader,
		    struct sample *smp)
{
	bool waited = false;

	if (s->full == PATH_DROP_OLDEST) {
		path_queue_push_evicting(s, smp);
		return;
	}
	while (!ring_push(&s->queue, smp)) {
		if (s->full == PATH_DROP_NEWEST || path_stopping(s->path) ||
		    path_stopping(reader->path)) {
			drop(s, smp);
			return;
		}
		if (!waited)
			waker_wake(&s->path->waker);
		waited = true;
		sleep_ns(20000);
	}
}

/* Says once that samples were lost. */
static void warn_dropped(const struct path_source *s)
{
	log_warn("path %s is too slow for node %s, samples are dropped; a longer queuelen may help",
		 s->path->name, s->node->name);
}

/* What was read goes into the queue of `s`; uses up the references. */
static void feed(struct path_source *s, const struct path_source *reader,
		 struct sample *smps[], unsigned cnt)
{
	bool dropped = atomic_load_explicit(&s->overruns, memory_order_relaxed);

	for (unsigned i = 0; i < cnt; i++)
		enqueue(s, reader, smps[i]);
	waker_wake(&s->path->waker);
	if (unlikely(!dropped && atomic_load_explicit(&s->overruns,
						      memory_order_relaxed)))
		warn_dropped(s);
}

/* Hands references to the other paths that read this node. */
static void feed_secondaries(struct path_source *s, struct sample *smps[],
			     unsigned cnt)
{
	for (unsigned k = 0; k < s->secondary_count; k++) {
		for (unsigned i = 0; i < cnt; i++)
			sample_get(smps[i]);
		feed(s->secondaries[k], s, smps, cnt);
	}
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
	unsigned cnt = hook_list_flush(s->node->in.hooks, smps, s->vectorize);

	if (unlikely(s->secondary_count))
		feed_secondaries(s, smps, cnt);
	return cnt;
}

/* No more will come: for this path and for those that it reads for. */
static void set_ended(struct path_source *s, bool ended)
{
	for (unsigned k = 0; k < s->secondary_count; k++) {
		atomic_store(&s->secondaries[k]->ended, ended);
		waker_wake(&s->secondaries[k]->path->waker);
	}
	atomic_store(&s->ended, ended);
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
	       (s->secondary_count ? 0 : gate_reasons(&s->path->gate));
}

/*
 * These were read while somebody paused the node or the path: they are kept back
 * until it goes on. Where several sources share a thread nothing is kept back,
 * and there no read waits either.
 */
static int hold_back(struct path_source *s, struct sample *smps[], int cnt)
{
	while (resting(s) & GATE_PAUSED && !s->path->polled &&
	       !path_stopping(s->path)) {
		s->rested = true;
		gate_wait(&s->node->in.gate, 50000000);
		if (!s->secondary_count)
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
	int ret;

	if (unlikely(!s->secondary_count && path_rests(s->path)))
		return path_source_rest(s);
	if (unlikely(!gate_enter(&n->in.gate)))
		return path_source_rest(s);
	if (unlikely(s->rested))
		resume(s);
	ret = read_node(s, smps);
	/* Inside, so that who starts the node anew knows which end he sees. */
	if (unlikely(ret == -ENODATA))
		set_ended(s, true);
	gate_leave(&n->in.gate);
	/* Outside: a queue of theirs may be full for long, and the node is to be
	 * stopped all the same. */
	if (unlikely(ret > 0 && s->secondary_count))
		feed_secondaries(s, smps, (unsigned)ret);
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
	set_ended(s, true);
}

bool path_source_await(struct path_source *s)
{
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

void path_source_wait(struct path_source *s, int ret)
{
	bool blocks = s->node->type->flags & NODE_READ_BLOCKS;

	if (ret == -EINTR)
		return;
	if (ret == -EHOSTDOWN) {
		gate_wait(path_rests(s->path) ? &s->path->gate :
						&s->node->in.gate, 50000000);
		return;
	}
	if (ret < 0 && ret != -EAGAIN) {
		/* An error, or no free sample: not again at once. */
		sleep_ns(ret == -ENOBUFS ? 100000 : 10000000);
		return;
	}
	if (++s->empties < (blocks ? EMPTIES_BLOCKING : EMPTIES_POLLING)) {
		cpu_relax();
		return;
	}
	if (!blocks && wait_readable(s))
		return;
	sleep_ns(200000);
}

void *path_source_run(void *source)
{
	struct path_source *s = source;
	unsigned n;

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
		feed(s, s, s->received, (unsigned)ret);
	}
	while ((n = path_source_flush(s, s->received)))
		feed(s, s, s->received, n);
	path_source_leave(s);
	return NULL;
}
