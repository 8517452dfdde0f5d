/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Node-type `loopback`: what is written to the node is read from it, inside
 * one process.
 *
 * Writing hands over the sample itself: the queue holds a reference and nothing
 * is copied. Reading copies it into a sample of the reader, because that one
 * lies in the memory that the reader's path asked for, and because the receive
 * time is the reader's while others may still look at the original.
 *
 * The queue has one writer and one reader: a node is the destination of one
 * path only, and one path reads it for all others.
 */
#define LOG_ROOM "gateway/loopback"
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "gateway/plugin/node.h"
#include "gateway/base/waker.h"
#include "util/clock.h"
#include "util/log.h"
#include "util/ring.h"

enum loopback_mode { MODE_AUTO, MODE_EVENTFD, MODE_PTHREAD, MODE_POLLING };

static const char *const mode_names[] = { "auto", "eventfd", "pthread",
					  "polling", NULL };

enum loopback_full { FULL_DROP, FULL_BLOCK };

static const char *const full_names[] = { "drop", "block", NULL };

/* The writer does not wait for a reader that takes nothing for so long. */
#define BLOCK_NS UINT64_C(2000000000)
/* The longest sleep at a time. */
#define SLEEP_NS UINT64_C(100000000)

struct loopback {
	int64_t queuelen;
	int mode, full;
	struct ring queue;
	struct waker waker, room;
	atomic_bool blocked;     /* the writer waits for room */
	bool gave_up;            /* it has waited in vain */
	int event_fd;
	atomic_bool polled;      /* a thread waits for event_fd */
	atomic_bool interrupted;
};

extern const struct node_type node_loopback;

static const struct config_key loopback_keys[] = {
	{ "queuelen", CONFIG_INT, offsetof(struct loopback, queuelen), "1024",
	  .min = 2, .max = 1 << 24,
	  .help = "Samples that wait to be read, rounded up to a power of two" },
	{ "mode", CONFIG_ENUM, offsetof(struct loopback, mode), "auto",
	  .names = mode_names,
	  .help = "auto: whoever writes carries on, or read waits as seems best; "
		  "polling: read spins; pthread, eventfd: it sleeps until something comes" },
	{ "full", CONFIG_ENUM, offsetof(struct loopback, full), "drop",
	  .names = full_names,
	  .help = "When the queue is full: drop samples and count them, or block "
		  "the path that writes until there is room" },
};

static int loopback_parse(struct node *n, struct config *c, json_t *cfg)
{
	const struct loopback *l = n->private_data;

	n->in.waits_itself = l->mode != MODE_AUTO;
	return 0;
}

static bool loopback_may_wait(struct node *n)
{
	const struct loopback *l = n->private_data;

	return l->full == FULL_BLOCK;
}

static int loopback_init(struct node *n)
{
	struct loopback *l = n->private_data;

	l->event_fd = -1;
	return 0;
}

static int loopback_prepare(struct node *n)
{
	struct loopback *l = n->private_data;
	int ret = ring_init(&l->queue, (uint64_t)l->queuelen);

	if (ret)
		return ret;
	l->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	return l->event_fd < 0 ? -errno : 0;
}

static int loopback_start(struct node *n)
{
	struct loopback *l = n->private_data;

	atomic_store(&l->interrupted, false);
	return 0;
}

static int loopback_stop(struct node *n)
{
	struct loopback *l = n->private_data;
	struct sample *s;
	uint64_t left = 0;

	for (; (s = ring_pop(&l->queue)); left++)
		sample_put(s);
	node_lose(n, NODE_LOSS_CLOSED, left,
		  "it stops while samples wait in its queue to be read");
	return 0;
}

static void loopback_destroy(struct node *n)
{
	struct loopback *l = n->private_data;

	if (l->queue.slots)
		loopback_stop(n);
	ring_destroy(&l->queue);
	if (l->event_fd >= 0)
		close(l->event_fd);
}

static void signal_event(struct loopback *l)
{
	uint64_t one = 1;

	if (write(l->event_fd, &one, sizeof(one)) < 0) {
		/* The counter is full: it is readable, which is all we want. */
	}
}

/* True when read is to give up. */
static bool wait_for_data(struct loopback *l)
{
	unsigned generation = waker_prepare(&l->waker);

	if (atomic_load_explicit(&l->interrupted, memory_order_acquire))
		return true;
	if (l->mode == MODE_POLLING) {
		cpu_relax();
		return false;
	}
	if (ring_count(&l->queue) == 0)
		waker_wait(&l->waker, generation, SLEEP_NS);
	return false;
}

static unsigned take(struct loopback *l, struct sample *smps[], unsigned cnt)
{
	unsigned n = 0;
	struct sample *from;

	while (n < cnt && (from = ring_pop(&l->queue))) {
		sample_copy(smps[n], from);
		sample_put(from);
		smps[n]->received = clock_realtime();
		smps[n++]->flags |= SAMPLE_HAS_RECEIVED;
	}
	if (!n)
		return 0;
	/* As in push_rest(): one of both sees what the other has stored. */
	atomic_thread_fence(memory_order_seq_cst);
	if (unlikely(atomic_load_explicit(&l->blocked, memory_order_relaxed)))
		waker_wake(&l->room);
	return n;
}

static int loopback_read(struct node *n, struct sample *smps[], unsigned cnt,
			 unsigned *release)
{
	struct loopback *l = n->private_data;
	unsigned spins = 0;

	for (;;) {
		unsigned got = take(l, smps, cnt);
		uint64_t drained;

		if (got)
			return (int)got;
		if (n->in.awaited)
			return atomic_load_explicit(&l->interrupted,
						    memory_order_acquire) ?
				       -EINTR : 0;
		if (atomic_load_explicit(&l->polled, memory_order_relaxed)) {
			/* Empty the descriptor, then look once more: a write
			 * in between has made it readable again. */
			if (read(l->event_fd, &drained, sizeof(drained)) < 0)
				return -EAGAIN;
			got = take(l, smps, cnt);
			/* Perhaps that write brought more. */
			if (got == cnt)
				signal_event(l);
			return (int)got;
		}
		if (wait_for_data(l))
			return -EINTR;
		/* A spinning reader must not starve its writer for a whole
		 * time slice where both share a core. */
		if (l->mode == MODE_POLLING && ++spins % 4096 == 0)
			sched_yield();
	}
}

static void loopback_sleep(struct node *n, uint64_t until_ns)
{
	struct loopback *l = n->private_data;
	unsigned generation = waker_prepare(&l->waker);
	uint64_t now = clock_now_ns();

	if (until_ns > now && ring_count(&l->queue) == 0 &&
	    !atomic_load_explicit(&l->interrupted, memory_order_acquire))
		waker_wait(&l->waker, generation, MIN(until_ns - now, SLEEP_NS));
}

static void wake_reader(struct node *n, struct loopback *l)
{
	/* If the reading path sleeps, this thread runs it. */
	if (n->in.awaited && turn_run(&n->in.reader))
		return;
	if (l->mode != MODE_POLLING)
		waker_wake(&l->waker);
	if (atomic_load_explicit(&l->polled, memory_order_relaxed))
		signal_event(l);
}

static unsigned push(struct loopback *l, struct sample *smps[], unsigned cnt)
{
	unsigned n = 0;

	while (n < cnt && ring_push(&l->queue, smps[n]))
		n++;
	return n;
}

/* The rest, as room comes; as many as found some. */
static unsigned push_rest(struct node *node, struct loopback *l,
			  struct sample *smps[], unsigned cnt)
{
	uint64_t since = clock_monotonic_ns_slow();
	unsigned done = 0;

	atomic_store(&l->blocked, true);
	while (done < cnt && !atomic_load(&l->interrupted)) {
		unsigned generation = waker_prepare(&l->room);
		unsigned n = push(l, smps + done, cnt - done);

		wake_reader(node, l);
		done += n;
		if (n)
			since = clock_monotonic_ns_slow();
		else if (clock_monotonic_ns_slow() - since > BLOCK_NS)
			break;
		else
			waker_wait(&l->room, generation, 100000000);
	}
	atomic_store(&l->blocked, false);
	return done;
}

static int loopback_write(struct node *n, struct sample *smps[], unsigned cnt,
			  unsigned *release)
{
	struct loopback *l = n->private_data;
	unsigned taken = push(l, smps, cnt);

	if (unlikely(taken < cnt && l->full == FULL_BLOCK && !l->gave_up)) {
		taken += push_rest(n, l, smps + taken, cnt - taken);
		l->gave_up = taken < cnt;
	} else if (taken) {
		l->gave_up = false;
	}
	/* Returns samples for which there was no room; the others stay in the queue. */
	memmove(smps, smps + taken, (cnt - taken) * sizeof(*smps));
	*release = cnt - taken;
	if (unlikely(taken < cnt))
		node_refuse(n, l->full == FULL_BLOCK ? NODE_LOSS_STUCK :
						       NODE_LOSS_FULL,
			    cnt - taken,
			    "the queue is full; read faster or raise queuelen (%lld)",
			    (long long)l->queuelen);
	wake_reader(n, l);
	return (int)taken;
}

static void loopback_interrupt(struct node *n)
{
	struct loopback *l = n->private_data;

	atomic_store(&l->interrupted, true);
	waker_wake(&l->waker);
	waker_wake(&l->room);
	signal_event(l);
}

static void loopback_rearm(struct node *n)
{
	struct loopback *l = n->private_data;

	atomic_store(&l->interrupted, false);
}

static int loopback_poll_fds(struct node *n, int fds[], int max)
{
	struct loopback *l = n->private_data;

	if (max < 1 || l->mode == MODE_POLLING) {
		atomic_store(&l->polled, false);
		return 0;
	}
	/* From now on writers signal; what came before must not be missed. */
	if (!atomic_exchange(&l->polled, true))
		signal_event(l);
	fds[0] = l->event_fd;
	return 1;
}

static unsigned loopback_hold_max(struct node *n)
{
	struct loopback *l = n->private_data;

	return (unsigned)l->queue.mask + 1;
}

static void loopback_print(struct node *n, char *buf, size_t size)
{
	const struct loopback *l = n->private_data;

	snprintf(buf, size, "mode %s, queuelen %lld", mode_names[l->mode],
		 (long long)l->queuelen);
}

const struct node_type node_loopback = {
	.name = "loopback",
	.description = "what is written comes back from read",
	.flags = NODE_CAN_READ | NODE_CAN_WRITE | NODE_READ_BLOCKS |
		 NODE_LOOPS,
	.size = sizeof(struct loopback),
	.keys = loopback_keys,
	.key_count = ARRAY_SIZE(loopback_keys),
	.init = loopback_init,
	.parse = loopback_parse,
	.prepare = loopback_prepare,
	.start = loopback_start,
	.stop = loopback_stop,
	.destroy = loopback_destroy,
	.read = loopback_read,
	.write = loopback_write,
	.sleep = loopback_sleep,
	.may_wait = loopback_may_wait,
	.interrupt = loopback_interrupt,
	.rearm = loopback_rearm,
	.poll_fds = loopback_poll_fds,
	.hold_max = loopback_hold_max,
	.print = loopback_print,
};
