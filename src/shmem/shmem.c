/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The calls of include/busbar/shmem.h on two ends of rings. A sample is copied
 * once on each side. No system call is made for a sample, except to wake a
 * reader that sleeps.
 */
#include <busbar/shmem.h>

#include <errno.h>
#include <linux/futex.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "shmem/end.h"
#include "shmem/guard.h"
#include "util/spin.h"

#define SHOWN __attribute__((visibility("default")))
#define NSEC INT64_C(1000000000)
/* How often the life of a peer is looked for, and the longest sleep. */
#define ALIVE_NS INT64_C(100000000)
/* Looks at the ring between two at the clock. */
#define SPINS 256
/* Spinning readers leave the processor now and then, for a writer that has to
 * share it; after so many looks at the clock, tens of microseconds. */
#define YIELD_ROUNDS 16
/* That travel; the others are said by the reading side. */
#define KNOWN_FLAGS 0x3fu

struct busbar_shmem {
	struct shmem_end reader, writer; /* fd -1: none */
	uint32_t mode;
	uint32_t generation;   /* of the last writer that was noticed */
	bool gone;             /* that one, which is to be said */
	bool renewed;          /* writing: this side is a new one */
	atomic_bool interrupted;
	uint64_t sequence;     /* of busbar_shmem_write_values() */
};

static _Thread_local char error_text[768];

SHOWN const char *busbar_shmem_error(void)
{
	return error_text;
}

static int64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * NSEC + t.tv_nsec;
}

SHOWN void busbar_shmem_guard(void)
{
	shmem_guard_start();
}

SHOWN int busbar_shmem_broken(const struct busbar_shmem *s)
{
	return shmem_guard_hit(s->reader.header) ||
	       shmem_guard_hit(s->writer.header);
}

SHOWN int busbar_shmem_removed(const struct busbar_shmem *s)
{
	return shmem_end_is_removed(&s->reader) ||
	       shmem_end_is_removed(&s->writer);
}

/* ---- open and close ---- */

static int take_options(const struct busbar_shmem_options *o,
			struct shmem_wish *wish)
{
	uint32_t slots = o->queuelen ? o->queuelen : SHMEM_SLOTS_DEFAULT;

	wish->values = o->values ? o->values : SHMEM_VALUES_DEFAULT;
	wish->mode = o->mode;
	wish->slot_count = 2;
	if (slots > SHMEM_SLOTS_MAX || wish->values > SHMEM_VALUES_MAX ||
	    o->mode > BUSBAR_SHMEM_POLLING || o->reserved) {
		snprintf(error_text, sizeof(error_text),
			 "shared memory: mode %u, %u samples of %u values cannot be; at most %u samples, %u values",
			 o->mode, slots, wish->values, SHMEM_SLOTS_MAX,
			 SHMEM_VALUES_MAX);
		return -EINVAL;
	}
	while (wish->slot_count < slots)
		wish->slot_count *= 2;
	return 0;
}

static bool same_name(const char *a, const char *b)
{
	return !strcmp(a + (*a == '/'), b + (*b == '/'));
}

static int wait_connected(struct busbar_shmem *s, int64_t timeout_ns)
{
	const struct timespec pause = { .tv_nsec = 1000000 };
	int64_t end = timeout_ns > 0 ? now_ns() + timeout_ns : 0;

	while (!busbar_shmem_connected(s)) {
		if (timeout_ns >= 0 && now_ns() >= end) {
			snprintf(error_text, sizeof(error_text),
				 "shared memory objects %s, %s: nobody came to the other side in time",
				 s->writer.name, s->reader.name);
			return -ETIMEDOUT;
		}
		nanosleep(&pause, NULL);
	}
	return 0;
}

static int attach(struct shmem_end *e, const char *name, enum shmem_role role,
		  const struct shmem_wish *wish)
{
	e->fd = -1;
	if (!name)
		return 0;
	return shmem_end_attach(e, name, role, wish, error_text,
				sizeof(error_text));
}

/* Who is there, and who was. */
static void look_around(struct busbar_shmem *s)
{
	if (s->reader.fd >= 0) {
		s->generation = shmem_owner_generation(shmem_end_owner(&s->reader));
		s->reader.seen = shmem_end_peer(&s->reader);
	}
	if (s->writer.fd >= 0)
		s->renewed = shmem_end_generation(&s->writer) > 1;
}

SHOWN int busbar_shmem_open(struct busbar_shmem **out, const char *write_name,
			    const char *read_name,
			    const struct busbar_shmem_options *options)
{
	static const struct busbar_shmem_options defaults;
	struct busbar_shmem *s;
	struct shmem_wish wish;
	int ret;

	error_text[0] = '\0';
	options = options ? options : &defaults;
	if (take_options(options, &wish))
		return -EINVAL;
	if ((!write_name && !read_name) ||
	    (write_name && read_name && same_name(write_name, read_name))) {
		snprintf(error_text, sizeof(error_text),
			 "shared memory: each direction needs an object of its own, and there must be one");
		return -EINVAL;
	}
	s = aligned_alloc(CACHE_LINE, (sizeof(*s) + CACHE_LINE - 1) &
					      ~(size_t)(CACHE_LINE - 1));
	if (!s)
		return -ENOMEM;
	memset(s, 0, sizeof(*s));
	s->mode = options->mode;
	s->reader.fd = -1;
	ret = attach(&s->writer, write_name, SHMEM_WRITER, &wish);
	if (!ret)
		ret = attach(&s->reader, read_name, SHMEM_READER, &wish);
	if (!ret)
		look_around(s);
	if (!ret && options->timeout_ns)
		ret = wait_connected(s, options->timeout_ns);
	if (ret) {
		busbar_shmem_close(s);
		return ret;
	}
	*out = s;
	return 0;
}

SHOWN void busbar_shmem_close(struct busbar_shmem *s)
{
	if (!s)
		return;
	shmem_end_detach(&s->writer);
	shmem_end_detach(&s->reader);
	free(s);
}

SHOWN int busbar_shmem_connected(struct busbar_shmem *s)
{
	return (s->writer.fd < 0 || shmem_end_peer_alive(&s->writer)) &&
	       (s->reader.fd < 0 || shmem_end_peer_alive(&s->reader));
}

SHOWN unsigned busbar_shmem_write_max(const struct busbar_shmem *s)
{
	return s->writer.fd < 0 ? 0 : s->writer.values;
}

SHOWN unsigned busbar_shmem_read_max(const struct busbar_shmem *s)
{
	return s->reader.fd < 0 ? 0 : s->reader.values;
}

/* ---- reading ---- */

static struct timespec time_of(int64_t sec, int64_t nsec, uint32_t flag,
			       uint32_t *flags)
{
	/* Everybody who prints a time relies on this. */
	if (unlikely(nsec < 0 || nsec >= NSEC))
		*flags &= ~flag;
	if (!(*flags & flag))
		return (struct timespec){ 0 };
	return (struct timespec){ .tv_sec = (time_t)sec,
				  .tv_nsec = (long)nsec };
}

static void copy_out(const struct shmem_end *e,
		     const volatile struct shmem_slot *from,
		     struct busbar_shmem_sample *to)
{
	/* Once: the writer could change it behind the check. */
	uint32_t length = from->length, flags = from->flags & KNOWN_FLAGS;

	if (unlikely(length > e->values))
		length = 0;
	if (unlikely(length > to->capacity)) {
		length = to->capacity;
		flags |= BUSBAR_SHMEM_CUT;
	}
	to->sequence = from->sequence;
	to->origin = time_of(from->origin_sec, from->origin_nsec,
			     BUSBAR_SHMEM_HAS_ORIGIN, &flags);
	to->received = time_of(from->received_sec, from->received_nsec,
			       BUSBAR_SHMEM_HAS_RECEIVED, &flags);
	to->flags = flags;
	to->length = length;
	memcpy(to->values, (const void *)from->values,
	       length * sizeof(to->values[0]));
}

static unsigned take(struct busbar_shmem *s,
		     struct busbar_shmem_sample samples[], unsigned count)
{
	struct shmem_end *e = &s->reader;
	const struct shmem_slot *slot;
	unsigned n = 0;

	while (n < count && (slot = shmem_end_peek(e))) {
		copy_out(e, slot, &samples[n++]);
		e->position++;
	}
	if (!n)
		return 0;
	shmem_end_release(e);
	return n;
}

/* Looks whether the writer has come or gone, or both since the last time. */
static void watch_writer(struct busbar_shmem *s, int64_t now)
{
	struct shmem_end *e = &s->reader;
	uint64_t owner, was = e->seen;
	uint32_t generation;

	if ((uint64_t)now - e->checked_ns >= (uint64_t)ALIVE_NS) {
		e->checked_ns = (uint64_t)now;
		shmem_end_peer_alive(e);
	}
	owner = shmem_end_owner(e);
	generation = shmem_owner_generation(owner);
	e->seen = shmem_owner_pid(owner) ? owner : 0;
	if (generation != s->generation)
		s->gone = !e->seen;
	else if (was && !e->seen)
		s->gone = true;
	s->generation = generation;
}

/* `turn` is the word of before the looks at the writer and the ring. */
static void sleep_until_written(struct shmem_end *e, uint32_t turn,
				int64_t longest_ns)
{
	struct timespec t = { .tv_sec = (time_t)(longest_ns / NSEC),
			      .tv_nsec = (long)(longest_ns % NSEC) };
	struct shmem_header *h = e->header;

	/* A writer looks at `waiting` after it has published: either it sees
	 * this, or we see its sample. */
	atomic_store(&h->waiting, 1);
	if (!shmem_end_peek(e))
		syscall(SYS_futex, &h->wake, FUTEX_WAIT, turn, &t, NULL, 0);
	atomic_store_explicit(&h->waiting, 0, memory_order_relaxed);
}

/* True when the ring has something. */
static bool spin_for_sample(const struct shmem_end *e)
{
	for (int i = 0; i < SPINS; i++) {
		if (shmem_end_peek(e))
			return true;
		cpu_relax();
	}
	return false;
}

static int read_waiting(struct busbar_shmem *s,
			struct busbar_shmem_sample samples[], unsigned count,
			int64_t timeout_ns)
{
	struct shmem_end *e = &s->reader;
	int64_t now = now_ns(), left = ALIVE_NS;
	int64_t end = timeout_ns > 0 ? now + timeout_ns : now;

	for (unsigned round = 1;; round++) {
		uint32_t turn = atomic_load(&e->header->wake);
		unsigned n;

		/* First the writer, then the ring: it wrote before it went. */
		watch_writer(s, now);
		n = take(s, samples, count);
		if (n)
			return (int)n;
		if (s->gone) {
			s->gone = false;
			return -ENOTCONN;
		}
		if (atomic_exchange(&s->interrupted, false))
			return -EINTR;
		if (timeout_ns >= 0) {
			left = end - now < ALIVE_NS ? end - now : ALIVE_NS;
			if (left <= 0)
				return 0;
		}
		if (s->mode != BUSBAR_SHMEM_POLLING || !e->seen)
			sleep_until_written(e, turn, left);
		else if (!spin_for_sample(e) && round % YIELD_ROUNDS == 0)
			sched_yield();
		n = take(s, samples, count); /* the short way out */
		if (n)
			return (int)n;
		now = now_ns();
	}
}

SHOWN int busbar_shmem_read(struct busbar_shmem *s,
			    struct busbar_shmem_sample samples[],
			    unsigned count, int64_t timeout_ns)
{
	unsigned n;

	if (unlikely(s->reader.fd < 0))
		return -ENOTSUP;
	if (!count)
		return 0;
	n = take(s, samples, count);
	return n ? (int)n : read_waiting(s, samples, count, timeout_ns);
}

SHOWN int busbar_shmem_wait(struct busbar_shmem *s, int64_t timeout_ns)
{
	struct shmem_end *e = &s->reader;
	int64_t end = timeout_ns > 0 ? now_ns() + timeout_ns : 0;
	int64_t left = timeout_ns;

	if (unlikely(e->fd < 0))
		return -ENOTSUP;
	for (;;) {
		uint32_t turn = atomic_load(&e->header->wake);

		if (shmem_end_peek(e) || atomic_load(&s->interrupted))
			return 1;
		if (timeout_ns >= 0 && left <= 0)
			return 0;
		/* A writer that goes away does not wake anybody. */
		sleep_until_written(e, turn, timeout_ns < 0 || left > ALIVE_NS ?
						     ALIVE_NS : left);
		if (timeout_ns < 0)
			return 1;
		left = end - now_ns();
		if (left > 0)
			return 1;
	}
}

SHOWN int busbar_shmem_read_values(struct busbar_shmem *s, double *values,
				   unsigned count, int64_t timeout_ns)
{
	struct busbar_shmem_sample sample = {
		.capacity = count,
		.values = (union busbar_shmem_value *)(void *)values,
	};
	int64_t end = timeout_ns > 0 ? now_ns() + timeout_ns : 0;
	int ret;

	do {
		ret = busbar_shmem_read(s, &sample, 1, timeout_ns);
		if (ret > 0 && sample.length)
			return (int)sample.length;
		if (timeout_ns > 0)
			timeout_ns = end > now_ns() ? end - now_ns() : 0;
	} while (ret > 0);
	return ret;
}

SHOWN void busbar_shmem_interrupt(struct busbar_shmem *s)
{
	atomic_store(&s->interrupted, true);
	if (s->reader.fd >= 0)
		shmem_end_wake(&s->reader);
}

/* ---- writing ---- */

static void copy_in(const struct busbar_shmem_sample *from,
		    struct shmem_slot *to)
{
	to->sequence = from->sequence;
	to->origin_sec = from->origin.tv_sec;
	to->origin_nsec = from->origin.tv_nsec;
	to->received_sec = from->received.tv_sec;
	to->received_nsec = from->received.tv_nsec;
	to->flags = from->flags;
	to->length = from->length;
	memcpy(to->values, from->values, from->length * sizeof(to->values[0]));
}

/* Nothing could be written: because nobody takes it? */
static int why_full(struct shmem_end *e)
{
	int64_t now = now_ns();

	if ((uint64_t)now - e->checked_ns < (uint64_t)ALIVE_NS)
		return 0;
	e->checked_ns = (uint64_t)now;
	return shmem_end_peer_alive(e) ? 0 : -ENOTCONN;
}

static void wake_reader(struct shmem_end *e)
{
	struct shmem_header *h = e->header;

	if (atomic_load_explicit(&h->sides[SHMEM_READER].mode,
				 memory_order_relaxed) == BUSBAR_SHMEM_POLLING)
		return;
	/* What was published before this, then whether somebody sleeps. */
	atomic_thread_fence(memory_order_seq_cst);
	if (atomic_load_explicit(&h->waiting, memory_order_relaxed) &&
	    atomic_exchange(&h->waiting, 0))
		shmem_end_wake(e);
}

SHOWN int busbar_shmem_write(struct busbar_shmem *s,
			     const struct busbar_shmem_sample samples[],
			     unsigned count)
{
	struct shmem_end *e = &s->writer;
	struct shmem_slot *slot;
	unsigned n = 0;

	if (unlikely(e->fd < 0))
		return -ENOTSUP;
	if (unlikely(!shmem_end_peer(e)))
		return -ENOTCONN;
	while (n < count && samples[n].length <= e->values &&
	       (slot = shmem_end_reserve(e))) {
		copy_in(&samples[n++], slot);
		if (unlikely(s->renewed)) {
			slot->flags |= BUSBAR_SHMEM_NEW_SIMULATION;
			s->renewed = false;
		}
		shmem_end_publish(e, slot);
	}
	if (likely(n)) {
		wake_reader(e);
		return (int)n;
	}
	if (count && samples[0].length > e->values)
		return -EMSGSIZE;
	return count ? why_full(e) : 0;
}

SHOWN int busbar_shmem_write_values(struct busbar_shmem *s,
				    const double *values, unsigned count)
{
	struct busbar_shmem_sample sample = {
		.sequence = s->sequence++,
		.flags = BUSBAR_SHMEM_HAS_SEQUENCE | BUSBAR_SHMEM_HAS_ORIGIN |
			 BUSBAR_SHMEM_HAS_DATA,
		.length = count,
		/* Only read from. */
		.values = (union busbar_shmem_value *)(uintptr_t)values,
	};

	clock_gettime(CLOCK_REALTIME, &sample.origin);
	return busbar_shmem_write(s, &sample, 1);
}
