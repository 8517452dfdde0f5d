/* SPDX-License-Identifier: BSD-2-Clause */
/* What several node-types share: waits between attempts, the start of threads, samples that have
 * come. */
#include <poll.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "gateway/base/memory.h"
#include "gateway/base/thread.h"
#include "gateway/part/backoff.h"
#include "gateway/part/inbox.h"

#define MS 1000000u

static void waits_double_up_to_the_interval(void **state)
{
	static const unsigned expected_ms[] = { 10, 20, 40, 80, 100, 100 };
	struct backoff b = { 0 };
	uint64_t now = 1000 * MS;

	for (unsigned i = 0; i < 6; i++) {
		backoff_plan(&b, 100 * MS, now);
		assert_int_equal(b.wait_ns, expected_ms[i] * MS);
		/* A quarter less, a quarter more. */
		assert_in_range(b.at_ns - now, b.wait_ns * 3 / 4,
				b.wait_ns * 5 / 4);
		assert_false(backoff_is_due(&b, b.at_ns - 1));
		now = b.at_ns;
		assert_true(backoff_is_due(&b, now));
		assert_false(backoff_is_due(&b, now + 1));
	}
	backoff_reset(&b);
	assert_false(backoff_is_due(&b, UINT64_MAX));
	backoff_plan(&b, 100 * MS, now);
	assert_int_equal(b.wait_ns, 10 * MS);
	/* An interval that is shorter than the first wait. */
	backoff_reset(&b);
	backoff_plan(&b, MS, now);
	assert_int_equal(b.wait_ns, MS);
}

static void two_that_fail_at_different_times_wait_differently(void **state)
{
	uint64_t first_ns = 0, differ = 0;

	for (unsigned i = 0; i < 100; i++) {
		struct backoff b = { 0 };
		uint64_t now = 1000 * MS + i * 7919;

		backoff_plan(&b, 1000 * MS, now);
		if (!i)
			first_ns = b.at_ns - now;
		differ += b.at_ns - now != first_ns;
	}
	assert_true(differ > 90);
}

static void *note_mask(void *mask)
{
	pthread_sigmask(SIG_SETMASK, NULL, mask);
	return NULL;
}

static void a_thread_gets_no_signals_and_its_starter_keeps_its_own(void **state)
{
	static const int some[] = { SIGTERM, SIGINT, SIGPIPE, SIGHUP, SIGUSR1 };
	sigset_t mask, before, after;
	pthread_t t;

	pthread_sigmask(SIG_SETMASK, NULL, &before);
	assert_int_equal(thread_start(&t, "a name that is too long",
				      THREAD_NORMAL, note_mask, &mask), 0);
	assert_int_equal(pthread_join(t, NULL), 0);
	pthread_sigmask(SIG_SETMASK, NULL, &after);
	for (unsigned i = 0; i < sizeof(some) / sizeof(some[0]); i++) {
		assert_int_equal(sigismember(&mask, some[i]), 1);
		assert_int_equal(sigismember(&after, some[i]),
				 sigismember(&before, some[i]));
	}
}

/* Not all of them may wait. */
#define INBOX_SAMPLES 20000u
#define INBOX_QUEUE 64

struct bringer {
	struct inbox *inbox;
	pthread_t thread;
	unsigned ring;
};

static void *bring(void *arg)
{
	struct bringer *w = arg;

	for (unsigned i = 0; i < INBOX_SAMPLES; i++) {
		while (ring_count(&w->inbox->rings[w->ring]) >= INBOX_QUEUE)
			sched_yield();
		inbox_push(w->inbox, w->ring, sample_alloc(&w->inbox->pool));
		inbox_wake(w->inbox);
	}
	return NULL;
}

static void a_path_that_polls_sleeps_behind_no_sample(void **state)
{
	struct inbox b = { 0 };
	struct bringer bringers[2];
	struct sample *smps[8];
	struct pool pool;
	struct pollfd p = { .events = POLLIN };
	unsigned left = 2 * INBOX_SAMPLES;

	assert_int_equal(inbox_init(&b, 2, INBOX_QUEUE, 1), 0);
	assert_int_equal(pool_init(&pool, 8, 1, &memory_heap), 0);
	assert_int_equal(sample_alloc_many(&pool, smps, 8), 8);
	assert_int_equal(inbox_poll_fds(&b, &p.fd, 1), 1);
	for (unsigned i = 0; i < 2; i++) {
		bringers[i] = (struct bringer){ .inbox = &b, .ring = i };
		pthread_create(&bringers[i].thread, NULL, bring, &bringers[i]);
	}
	while (left) {
		assert_int_equal(poll(&p, 1, 20000), 1);
		left -= inbox_take_polled(&b, smps, 8);
	}
	for (unsigned i = 0; i < 2; i++)
		pthread_join(bringers[i].thread, NULL);
	assert_int_equal(atomic_load(&b.lost), 0);
	sample_put_many(smps, 8);
	pool_destroy(&pool);
	inbox_destroy(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(waits_double_up_to_the_interval),
		cmocka_unit_test(two_that_fail_at_different_times_wait_differently),
		cmocka_unit_test(a_thread_gets_no_signals_and_its_starter_keeps_its_own),
		cmocka_unit_test(a_path_that_polls_sleeps_behind_no_sample),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
