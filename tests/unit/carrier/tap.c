/* SPDX-License-Identifier: BSD-2-Clause */
/* The filter that shows units. */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#include "rig.h"
#include "transport/carrier/queue.h"
#include "transport/carrier/tap.h"

static struct {
	unsigned out, in;
	uint32_t last;
} seen;

static void saw(void *arg, enum carrier_direction direction,
		const struct carrier_unit *units, unsigned n)
{
	check(arg == &seen);
	*(direction == CARRIER_OUT ? &seen.out : &seen.in) += n;
	carrier_unit_gather(&units[n - 1], 0, 4, &seen.last);
}

static void what_is_taken_and_what_arrives_is_shown_once(void)
{
	static const struct carrier_watcher watcher = { saw, &seen };
	struct carrier *c;

	rig_begin();
	memset(&seen, 0, sizeof(seen));
	check(carrier_tap_open(&rig.below, &watcher, &c) == 0);
	rig_own(c);
	rig.room = 1;
	check(rig_send(c, 5, 100) == 1 && seen.out == 1 && seen.last == 5);
	check(rig_send(c, 6, 100) == -EAGAIN && seen.out == 1);
	rig.arriving = 2;
	check(carrier_poll(c, 8) == 2 && seen.in == 2 && seen.last == 1);
	check(rig.got.count == 2);
	rig.below.upper.writable(rig.below.upper.arg);
	check(rig.got.writable == 1);
	carrier_tap_set(c, NULL);
	rig.room = 1;
	check(rig_send(c, 7, 100) == 1 && seen.out == 1 && rig.sent.count == 2);
	rig.arriving = 3;
	check(carrier_poll(c, 8) == 1 && seen.in == 2 && rig.got.count == 3);
	carrier_tap_set(c, &watcher);
	rig.room = 1;
	check(rig_send(c, 8, 100) == 1 && seen.out == 2 && seen.last == 8);
	check(carrier_next_ns(c) == UINT64_MAX);
	carrier_close(c);
	check(rig.closed);
}

/* ---- threads ---- */

static atomic_bool stop;
static struct carrier *shared;

struct life {
	bool alive;
	atomic_uint calls;
};

static void saw_alive(void *arg, enum carrier_direction direction,
		      const struct carrier_unit *units, unsigned n)
{
	struct life *l = arg;

	check(l->alive);
	atomic_fetch_add(&l->calls, 1);
}

static void ignore(void *arg, const struct carrier_unit *unit)
{
}

static void *emit_and_poll(void *arg)
{
	while (!atomic_load(&stop)) {
		rig_send(shared, 1, 64);
		carrier_poll(shared, 4);
	}
	return NULL;
}

static void a_watcher_that_was_taken_away_is_not_called_any_more(void)
{
	struct carrier_queue_params q = { .when_full = CARRIER_FULL_DROP };
	struct carrier_upper upper = { ignore, NULL, NULL };
	struct carrier *queue;
	pthread_t threads[2];

	check(!carrier_queue_open(&q, &queue) && !carrier_tap_open(queue, NULL, &shared));
	carrier_set_upper(shared, &upper);
	for (unsigned i = 0; i < 2; i++)
		check(!pthread_create(&threads[i], NULL, emit_and_poll, NULL));
	for (unsigned i = 0; i < 300; i++) {
		struct life life = { .alive = true };
		struct carrier_watcher watcher = { saw_alive, &life };

		carrier_tap_set(shared, &watcher);
		while (!atomic_load(&life.calls))
			sched_yield();
		carrier_tap_set(shared, NULL);
		life.alive = false;
	}
	atomic_store(&stop, true);
	for (unsigned i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	carrier_close(shared);
}

int main(void)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	run_test(a_watcher_that_was_taken_away_is_not_called_any_more);
	run_test(what_is_taken_and_what_arrives_is_shown_once);
	return 0;
}
