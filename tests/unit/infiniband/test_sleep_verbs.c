/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A sleeping reader on the adapter soft0, while another thread sends at random
 * gaps, some shorter and some longer than the reader takes to fall asleep: every
 * sample arrives, once and in order. A lost event would be a reader that sleeps
 * for ever; the adapter has no other sign of life, since the sender seldom
 * polls. An alarm ends the program.
 */
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include <cmocka.h>

#include "pair.h"
#include "util/clock.h"
#include "util/spin.h"

#define LIMIT_S 700
#define VECTOR 4
#define SETUP(...)                                                  \
	{ .rx_depth = 128, .rx_threshold = 96, .rx_granted = 128,   \
	  .tx_depth = 32, .tx_granted = 32, .signal_every = 16,     \
	  .samples = 300, .capacity = 8, .sleeps = true, __VA_ARGS__ }

static struct pair p;
static struct sample *smps[VECTOR];
static unsigned release;
static unsigned total;
static atomic_bool sent_all;

static uint64_t random_next(uint64_t *x)
{
	*x ^= *x << 13;
	*x ^= *x >> 7;
	*x ^= *x << 17;
	return *x >> 24;
}

static void spin_for(uint64_t ns)
{
	uint64_t end = clock_now_ns() + ns;

	while (clock_now_ns() < end)
		cpu_relax();
}

static void pause_at_random(uint64_t *x)
{
	uint64_t draw = random_next(x);
	struct timespec t;

	switch (draw & 15) {
	case 0: /* longer than any thread spins here */
		t = timespec_from_ns(1000 + draw / 16 % 60000);
		nanosleep(&t, NULL);
		break;
	case 1:
	case 2:
	case 3: /* just as long as falling asleep takes */
		spin_for(draw / 16 % 15000);
		break;
	default:
		break;
	}
}

/* Leaves completions alone for as long as the queue allows. */
static void *send_all(void *arg)
{
	uint64_t x = 0x2545f4914f6cdd1d;
	struct ibv_wc wc[PAIR_FAR];
	unsigned open = 0;

	for (unsigned i = 0; i < total; i++) {
		while (open == PAIR_FAR) {
			int n = ibv_poll_cq(p.far_send_cq, PAIR_FAR, wc);

			assert_true(n >= 0);
			open -= (unsigned)n;
			if (!n)
				sched_yield();
		}
		pair_far_post_send(&p, 1, i);
		open++;
		pause_at_random(&x);
	}
	atomic_store(&sent_all, true);
	return NULL;
}

static int do_read(void)
{
	int ret;

	assert_int_equal(sample_alloc_many(&p.pool, smps, VECTOR), VECTOR);
	ret = ib_channel_read(&p.channel, smps, VECTOR, &release);
	return ret;
}

static pthread_t begin(const struct pair_setup *s, unsigned samples)
{
	pthread_t sender;

	pair_open(&p, s);
	while (ib_table_used(&p.channel.rx.table) < s->rx_threshold)
		assert_int_equal(do_read(), 0);
	total = samples;
	atomic_store(&sent_all, false);
	assert_int_equal(pthread_create(&sender, NULL, send_all, NULL), 0);
	return sender;
}

/* Counts what a read returned on; false when it is out of order. */
static void check(int ret, unsigned *got)
{
	for (int i = 0; i < ret; i++)
		assert_int_equal(smps[i]->sequence, (*got)++);
	sample_put_many(smps, release);
}

static void gets_all(uint64_t spin_ns, unsigned samples)
{
	const struct pair_setup s = SETUP(.spin_ns = spin_ns);
	pthread_t sender = begin(&s, samples);
	unsigned got = 0;

	while (got < total) {
		int ret = do_read();

		assert_true(ret > 0);
		check(ret, &got);
	}
	pthread_join(sender, NULL);
	pair_close(&p);
}

static void a_reader_that_sleeps_at_once_gets_every_sample(void **state)
{
	gets_all(0, 100000);
}

static void a_reader_that_spins_for_5_us_gets_every_sample(void **state)
{
	gets_all(5000, 100000);
}

static void a_reader_that_spins_for_50_us_gets_every_sample(void **state)
{
	gets_all(50000, 50000);
}

static void who_waits_for_the_descriptors_gets_every_sample(void **state)
{
	const struct pair_setup s = SETUP();
	pthread_t sender = begin(&s, 50000);
	struct pollfd pfds[2];
	unsigned got = 0;
	int fds[2];

	while (got < total) {
		assert_int_equal(ib_channel_poll_fds(&p.channel, fds, 2), 2);
		for (int i = 0; i < 2; i++)
			pfds[i] = (struct pollfd){ .fd = fds[i],
						   .events = POLLIN };
		assert_true(poll(pfds, 2, -1) > 0);
		check(do_read(), &got);
	}
	pthread_join(sender, NULL);
	pair_close(&p);
}

static unsigned got_in_thread;

static void *read_all(void *arg)
{
	while (got_in_thread < total) {
		check(do_read(), &got_in_thread);
		ib_channel_wait(&p.channel, 0);
	}
	return NULL;
}

static void the_owner_may_disturb_a_sleeping_reader_at_any_time(void **state)
{
	const struct pair_setup s = SETUP();
	pthread_t reader, sender;
	uint64_t x = 88172645463325252u;

	got_in_thread = 0;
	sender = begin(&s, 30000);
	assert_int_equal(pthread_create(&reader, NULL, read_all, NULL), 0);
	while (!atomic_load(&sent_all)) {
		struct timespec t = { .tv_nsec = 20000 };

		if (random_next(&x) & 1) {
			ib_channel_interrupt(&p.channel);
		} else {
			ib_channel_close_rx(&p.channel);
			pair_open_channel(&p, &s);
		}
		nanosleep(&t, NULL);
	}
	pthread_join(sender, NULL);
	pthread_join(reader, NULL);
	pair_close(&p);
}

#define T(name) cmocka_unit_test(name)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(a_reader_that_sleeps_at_once_gets_every_sample),
		T(a_reader_that_spins_for_5_us_gets_every_sample),
		T(a_reader_that_spins_for_50_us_gets_every_sample),
		T(who_waits_for_the_descriptors_gets_every_sample),
		T(the_owner_may_disturb_a_sleeping_reader_at_any_time),
	};

	if (!pair_present()) {
		puts("skipped: no adapter soft0");
		return 77;
	}
	alarm(LIMIT_S);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
