/* SPDX-License-Identifier: BSD-2-Clause */
/* Messages become samples, which a path reads; see outside.h. */
#define LOG_ROOM "gateway/outside"
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gateway/outside/outside_private.h"
#include "gateway/part/message.h"
#include "gateway/sample/signals.h"
#include "util/clock.h"
#include "util/container_of.h"
#include "util/log.h"
#include "util/wakeup.h"

/* The longest sleep at a time. */
#define SLEEP_NS UINT64_C(100000000)
/* Messages of so many bytes are read in a turn: some 10 ms in the slowest formats. */
#define TURN_BYTES 262144
/* Looks for messages that the server confirms: some milliseconds. A server can confirm others than
 * the oldest, also such that were never sent. */
#define TURN_LOOKS 1048576
/* After the last read, the thread of the node waits so long before it takes the place of the
 * thread that reads. */
#define LEAD_NS UINT64_C(100000000)

int outside_receive_start(struct outside *o)
{
	struct node *n = o->node;
	const struct signal_list *in = n->in.signals;
	int ret;

	ret = inbox_init(&o->inbox, 1, (unsigned)o->queuelen,
			 in && in->count ? in->count : SIGNALS_DEFAULT);
	if (ret)
		log_error("node %s: no queue of in.queuelen %lld samples: %s", n->name,
			  (long long)o->queuelen, strerror(-ret));
	return ret;
}

void outside_receive_stop(struct outside *o)
{
	inbox_note_lost(&o->inbox, &o->faults);
	sample_put_many(o->spare, o->spare_count);
	o->spare_count = 0;
	inbox_destroy(&o->inbox);
	free(o->line);
	o->line = NULL;
	o->line_size = 0;
}

/* ---- messages ---- */

void outside_malformed(struct outside *o, const char *fmt, ...)
{
	char why[OUTSIDE_WHY];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(why, sizeof(why), fmt, ap);
	va_end(ap);
	fault_note(&o->faults, FAULT_MALFORMED, 1, "from %s: %s", o->target, why);
}

bool outside_is_enough(const struct outside *o)
{
	return o->taken >= TURN_BYTES || o->taken_samples >= o->queuelen / 2 ||
	       o->unconfirmed.looks >= TURN_LOOKS;
}

unsigned outside_room(struct outside *o)
{
	uint64_t waiting = ring_count(&o->inbox.rings[0]), all = (uint64_t)o->queuelen;

	return waiting < all ? (unsigned)(all - waiting) : 0;
}

uint64_t outside_samples_put(struct outside *o)
{
	return atomic_load_explicit(&o->inbox.rings[0].head, memory_order_acquire);
}

uint64_t outside_samples_read(struct outside *o)
{
	return atomic_load_explicit(&o->inbox.rings[0].tail, memory_order_acquire);
}

unsigned outside_samples_take(struct outside *o, struct sample *smps[], unsigned cnt)
{
	/* Many at a time, because the pool has a lock. */
	if (o->spare_count < MIN(cnt, (unsigned)INBOX_SPARE))
		o->spare_count += sample_alloc_many(&o->inbox.pool, o->spare + o->spare_count,
						    INBOX_SPARE - o->spare_count);
	cnt = MIN(cnt, o->spare_count);
	o->spare_count -= cnt;
	memcpy(smps, o->spare + o->spare_count, cnt * sizeof(*smps));
	return cnt;
}

/* The first `filled` of smps[] can be read, and the others are kept. */
static void give(struct outside *o, struct sample *smps[], unsigned cnt, unsigned filled)
{
	for (unsigned i = 0; i < filled; i++)
		inbox_push(&o->inbox, 0, smps[i]);
	for (unsigned i = filled; i < cnt; i++) {
		struct sample *s = smps[i];

		if (unlikely(s->owned))
			sample_own_list(s, NULL);
		s->signals = NULL;
		s->flags = 0;
		s->length = 0;
		o->spare[o->spare_count++] = s;
	}
	o->taken_samples += filled;
	if (filled && !o->reader_leads)
		inbox_wake(&o->inbox);
}

void outside_samples_give(struct outside *o, struct sample *smps[], unsigned cnt,
			  unsigned filled)
{
	struct timespec now = clock_realtime();

	for (unsigned i = 0; i < filled; i++) {
		smps[i]->received = now;
		smps[i]->flags |= SAMPLE_HAS_RECEIVED;
	}
	give(o, smps, cnt, filled);
}

/* Senders of a single line often omit its end. NULL without memory. */
static char *end_line(struct outside *o, const char *data, size_t *len)
{
	if (!o->scan->type->lines || data[*len - 1] == o->scan->delimiter)
		return (char *)data;
	if (o->line_size < *len + 1) {
		char *line = realloc(o->line, *len + 1);

		if (!line)
			return NULL;
		o->line = line;
		o->line_size = *len + 1;
	}
	memcpy(o->line, data, *len);
	o->line[(*len)++] = o->scan->delimiter;
	return o->line;
}

void outside_received(struct outside *o, const void *data, size_t len)
{
	struct message m = { .from = o->target, .received = clock_realtime() };
	struct sample *smps[INBOX_SPARE];
	unsigned total = 0;

	if (!len || !o->node->is_source)
		return;
	o->taken += len;
	m.at = end_line(o, data, &len);
	m.len = len;
	if (!m.at) {
		fault_note(&o->faults, FAULT_MALFORMED, 1, "from %s: %s", o->target,
			   strerror(ENOMEM));
		return;
	}
	while (m.pos < m.len) {
		/* One more than there will be, as far as the last message tells: then it is over. */
		unsigned cnt = outside_samples_take(o, smps, o->last_count + 2);
		unsigned filled = message_scan(&m, o->scan, smps, cnt, &o->faults);

		total += filled;
		give(o, smps, cnt, filled);
	}
	o->last_count = MIN(total, (unsigned)INBOX_SPARE);
}

/* ---- reading ---- */

/* May the thread that reads take the place of the thread of the node? */
static bool may_lead(const struct outside *o)
{
	return !(o->ops->flags & OUTSIDE_MAY_WAIT) &&
	       atomic_load_explicit(&o->up, memory_order_acquire) &&
	       !atomic_load_explicit(&o->broken, memory_order_relaxed) &&
	       !atomic_load_explicit(&o->inbox.polled, memory_order_relaxed);
}

static bool interrupted(const struct outside *o)
{
	return atomic_load_explicit(&o->inbox.interrupted, memory_order_acquire);
}

/* True: this thread leads, with o->pump, until end_lead(). */
static bool lead(struct outside *o)
{
	if (!may_lead(o))
		return false;
	atomic_store_explicit(&o->led_ns, clock_now_ns() + LEAD_NS, memory_order_relaxed);
	if (likely(!pthread_mutex_trylock(&o->pump))) {
		o->reader_leads = true;
		return true;
	}
	/* The other thread comes out, and sees that this one wants to lead. */
	wakeup_post(o->pump_fd);
	return false;
}

static void end_lead(struct outside *o)
{
	o->reader_leads = false;
	pthread_mutex_unlock(&o->pump);
}

static void sleep_until(struct outside *o, uint64_t until_ns)
{
	uint64_t now = clock_now_ns();

	if (lead(o)) {
		/* An interruption may have come while the other thread led. */
		if (!interrupted(o))
			outside_pump(o, until_ns);
		end_lead(o);
	} else if (until_ns > now) {
		/* Not for long if the thread of the node is on its way out. */
		inbox_sleep(&o->inbox, MIN(until_ns - now,
					   may_lead(o) ? SLEEP_NS / 100 : SLEEP_NS));
	}
}

static unsigned look(struct outside *o, struct sample *smps[], unsigned cnt)
{
	unsigned got = inbox_take(&o->inbox, smps, cnt);

	if (!got && lead(o)) {
		outside_work(o);
		end_lead(o);
		got = inbox_take(&o->inbox, smps, cnt);
	}
	inbox_note_lost(&o->inbox, &o->faults);
	return got;
}

int outside_read(struct node *n, struct sample *smps[], unsigned cnt, unsigned *release)
{
	struct outside *o = outside_of(n);
	struct inbox *b = &o->inbox;

	for (;;) {
		unsigned got = look(o, smps, cnt);

		if (got)
			return (int)got;
		if (interrupted(o))
			return -EINTR;
		if (n->in.awaited)
			return 0;
		if (atomic_load_explicit(&b->polled, memory_order_relaxed))
			return (int)inbox_take_polled(b, smps, cnt);
		sleep_until(o, clock_now_ns() + SLEEP_NS);
	}
}

void outside_sleep(struct node *n, uint64_t until_ns)
{
	struct outside *o = outside_of(n);

	if (inbox_is_empty(&o->inbox) && !interrupted(o))
		sleep_until(o, until_ns);
}

int outside_poll_fds(struct node *n, int fds[], int max)
{
	return inbox_poll_fds(&outside_of(n)->inbox, fds, max);
}
