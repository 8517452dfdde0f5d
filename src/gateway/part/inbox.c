/* SPDX-License-Identifier: BSD-2-Clause */
/* See inbox.h. */
#include "gateway/part/inbox.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gateway/base/memory.h"
#include "gateway/plugin/node.h"
#include "util/clock.h"
#include "util/container_of.h"
#include "util/wakeup.h"

/* The longest sleep at a time. */
#define SLEEP_NS UINT64_C(100000000)

int inbox_init(struct inbox *b, unsigned rings, unsigned queuelen, unsigned values)
{
	unsigned size = 2;
	int ret;

	b->queuelen = queuelen;
	/* As many as the rings have room for, which is a power of two. */
	while (size < queuelen)
		size *= 2;
	ret = pool_init(&b->pool, rings * size + INBOX_SPARE, values, &memory_heap);
	if (ret)
		return ret;
	b->has_pool = true;
	b->rings = aligned_alloc(CACHE_LINE, rings * sizeof(*b->rings));
	if (!b->rings)
		return -ENOMEM;
	memset(b->rings, 0, rings * sizeof(*b->rings));
	for (; b->count < rings; b->count++) {
		ret = ring_init(&b->rings[b->count], queuelen);
		if (ret)
			return ret;
	}
	b->event_fd = wakeup_open_signal();
	return b->event_fd < 0 ? b->event_fd : 0;
}

void inbox_destroy(struct inbox *b)
{
	struct sample *s;

	for (unsigned i = 0; i < b->count; i++) {
		while ((s = ring_pop(&b->rings[i])))
			sample_put(s);
		ring_destroy(&b->rings[i]);
	}
	free(b->rings);
	if (b->has_pool)
		pool_destroy(&b->pool);
	if (b->event_fd >= 0)
		close(b->event_fd);
	*b = (struct inbox){ .event_fd = -1 };
}

void inbox_put(struct inbox *b, unsigned ring, struct sample *const smps[],
		  unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		struct sample *s = sample_alloc(&b->pool);

		if (s)
			sample_copy(s, smps[i]);
		if (s)
			inbox_push(b, ring, s);
		else
			atomic_fetch_add_explicit(&b->lost, 1, memory_order_relaxed);
	}
}

void inbox_push(struct inbox *b, unsigned ring, struct sample *s)
{
	if (likely(ring_push(&b->rings[ring], s)))
		return;
	sample_put(s);
	atomic_fetch_add_explicit(&b->lost, 1, memory_order_relaxed);
}

/* Of what comes before the reader looks again, the first one alone costs a system call. */
static void signal_reader(struct inbox *b)
{
	if (!atomic_exchange_explicit(&b->signalled, true, memory_order_acq_rel))
		wakeup_post(b->event_fd);
}

void inbox_wake(struct inbox *b)
{
	waker_wake(&b->waker);
	if (atomic_load_explicit(&b->polled, memory_order_relaxed))
		signal_reader(b);
}

unsigned inbox_take(struct inbox *b, struct sample *smps[], unsigned cnt)
{
	unsigned n = 0, empty = 0;
	struct sample *from;

	/* In turns, so that one connection cannot keep out the others. */
	while (n < cnt && empty < b->count) {
		from = ring_pop(&b->rings[b->next]);
		if (!from) {
			empty++;
			b->next = (b->next + 1) % b->count;
			continue;
		}
		empty = 0;
		sample_copy(smps[n++], from);
		sample_put(from);
		if (n % 64 == 0)
			b->next = (b->next + 1) % b->count;
	}
	return n;
}

unsigned inbox_take_polled(struct inbox *b, struct sample *smps[], unsigned cnt)
{
	unsigned got;

	/* What is not seen by the take signals once more: its writer finds the flag cleared. */
	wakeup_drain(b->event_fd);
	atomic_exchange_explicit(&b->signalled, false, memory_order_acq_rel);
	got = inbox_take(b, smps, cnt);
	if (got == cnt)
		signal_reader(b);
	return got;
}

void inbox_note_lost(struct inbox *b, struct fault_counters *f)
{
	uint64_t lost = atomic_load_explicit(&b->lost, memory_order_relaxed);

	if (likely(lost == b->lost_noted))
		return;
	fault_note(f, FAULT_OVERRUN, lost - b->lost_noted,
		   "samples that have come found no room; read faster or raise in.queuelen (%u)",
		   b->queuelen);
	b->lost_noted = lost;
}

void inbox_note_unread(struct inbox *b, struct fault_counters *f)
{
	unsigned unread = 0;

	for (unsigned i = 0; i < b->count; i++)
		unread += ring_count(&b->rings[i]);
	inbox_note_lost(b, f);
	if (unread)
		fault_note(f, FAULT_OVERRUN, unread,
			   "samples that have come were not read until the node stopped");
}

bool inbox_is_empty(struct inbox *b)
{
	for (unsigned i = 0; i < b->count; i++)
		if (ring_count(&b->rings[i]))
			return false;
	return true;
}

void inbox_sleep(struct inbox *b, uint64_t timeout_ns)
{
	unsigned generation = waker_prepare(&b->waker);

	if (inbox_is_empty(b) && !atomic_load_explicit(&b->interrupted, memory_order_acquire))
		waker_wait(&b->waker, generation, timeout_ns);
}

int inbox_read(struct inbox *b, const struct node *n, struct fault_counters *f,
	       struct sample *smps[], unsigned cnt)
{
	for (;;) {
		unsigned got = inbox_take(b, smps, cnt);
		bool interrupted = atomic_load_explicit(&b->interrupted, memory_order_acquire);

		inbox_note_lost(b, f);
		if (got)
			return (int)got;
		if (interrupted)
			return -EINTR;
		if (n->in.awaited)
			return 0;
		if (atomic_load_explicit(&b->polled, memory_order_relaxed))
			return (int)inbox_take_polled(b, smps, cnt);
		inbox_sleep(b, SLEEP_NS);
	}
}

void inbox_sleep_until(struct inbox *b, uint64_t until_ns)
{
	uint64_t now = clock_now_ns();

	if (until_ns > now)
		inbox_sleep(b, MIN(until_ns - now, SLEEP_NS));
}

void inbox_interrupt(struct inbox *b, bool on)
{
	atomic_store(&b->interrupted, on);
	if (!on)
		return;
	waker_wake(&b->waker);
	signal_reader(b);
}

int inbox_poll_fds(struct inbox *b, int fds[], int max)
{
	if (max < 1) {
		atomic_store(&b->polled, false);
		return 0;
	}
	/* What came before must not be missed. */
	if (!atomic_exchange(&b->polled, true))
		signal_reader(b);
	fds[0] = b->event_fd;
	return 1;
}

int inbox_node_read(struct node *n, struct sample *smps[], unsigned cnt, unsigned *release)
{
	struct inbox *b = n->private_data;

	return inbox_read(b, n, b->faults, smps, cnt);
}

void inbox_node_sleep(struct node *n, uint64_t until_ns)
{
	inbox_sleep_until(n->private_data, until_ns);
}

void inbox_node_interrupt(struct node *n)
{
	inbox_interrupt(n->private_data, true);
}

void inbox_node_rearm(struct node *n)
{
	inbox_interrupt(n->private_data, false);
}

int inbox_node_poll_fds(struct node *n, int fds[], int max)
{
	return inbox_poll_fds(n->private_data, fds, max);
}
