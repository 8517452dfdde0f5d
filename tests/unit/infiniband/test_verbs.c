/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The vectors V1 to V13 and the property test once more, against the adapter
 * soft0. Posts are made to fail by queues that are smaller than the channel
 * believes: soft0 grants exactly what is asked for.
 */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "pair.h"
#include "util/clock.h"
#include "util/log.h"

enum { A, B, C, D, E, N };

#define SETUP(rx, tx, size, every)                                          \
	{ .rx_depth = 32, .rx_threshold = 20, .rx_granted = rx,             \
	  .tx_depth = 32, .tx_granted = tx, .signal_every = every,          \
	  .inline_size = size, .samples = 200, .capacity = 64 }

static struct pair p;
static struct sample *in[N], *smps[N];
static unsigned release;

static void take_five(unsigned values)
{
	assert_int_equal(sample_alloc_many(&p.pool, in, N), N);
	for (unsigned i = 0; i < N; i++)
		in[i]->length = values;
	memcpy(smps, in, sizeof(in));
}

static int do_read(void)
{
	take_five(0);
	return ib_channel_read(&p.channel, smps, N, &release);
}

static int do_write(unsigned values)
{
	take_five(values);
	return ib_channel_write(&p.channel, smps, N, &release);
}

static void give_back(void)
{
	sample_put_many(smps, release);
}

static void fill(void)
{
	for (int i = 0; i < 4; i++) {
		assert_int_equal(do_read(), 0);
		assert_int_equal(release, 0);
	}
}

/* A sample that was sent earlier and whose completion waits in the queue. */
static struct sample *earlier(void)
{
	struct sample *s = sample_alloc(&p.pool);

	s->length = 60;
	pair_near_send(&p, s);
	return s;
}

static void v1_read_below_threshold_keeps_all_samples(void **state)
{
	const struct pair_setup s = SETUP(32, 32, 0, 16);

	pair_open(&p, &s);
	assert_int_equal(do_read(), 0);
	assert_int_equal(release, 0);
	assert_int_equal(ib_channel_held(&p.channel), N);
	pair_close(&p);
}

static void v2_read_hands_back_what_could_not_be_posted(void **state)
{
	const struct pair_setup s = SETUP(3, 32, 0, 16);

	pair_open(&p, &s);
	assert_int_equal(do_read(), 0);
	assert_int_equal(release, 2);
	assert_ptr_equal(smps[0], in[D]);
	assert_ptr_equal(smps[1], in[E]);
	give_back();
	pair_close(&p);
}

static void v3_v4_read_exchanges(unsigned n)
{
	const struct pair_setup s = SETUP(32, 32, 0, 16);
	unsigned got = 0;

	pair_open(&p, &s);
	fill();
	for (unsigned i = 0; i < n; i++)
		pair_far_send(&p, 8, 100 + i);
	while (got < n) {
		int ret = do_read();

		assert_in_range(ret, 1, n - got);
		assert_int_equal(release, 5);
		for (int i = 0; i < ret; i++) {
			assert_int_equal(smps[i]->sequence, 100 + got);
			assert_int_equal(smps[i]->length, 8);
			assert_int_equal(smps[i]->origin.tv_sec, 1000);
			assert_int_equal(smps[i]->data[7].i, 107 + got++);
		}
		assert_memory_equal(smps + ret, in + ret,
				    (unsigned)(N - ret) * sizeof(in[0]));
		give_back();
	}
	assert_int_equal(ib_channel_held(&p.channel), 20);
	pair_close(&p);
}

static void v3_read_exchanges_two_of_five(void **state)
{
	v3_v4_read_exchanges(2);
}

static void v4_read_exchanges_all_five(void **state)
{
	v3_v4_read_exchanges(5);
}

static void *read_for_ever(void *arg)
{
	ib_channel_read(&p.channel, smps, N, &release);
	return NULL;
}

static void v5_a_cancelled_reader_leaves_the_loop_and_leaks_nothing(void **state)
{
	const struct pair_setup s = SETUP(32, 32, 0, 16);
	pthread_t thread;

	pair_open(&p, &s);
	fill();
	take_five(0);
	assert_int_equal(pthread_create(&thread, NULL, read_for_ever, NULL), 0);
	while (!atomic_load(&p.channel.reading))
		sched_yield();
	pthread_cancel(thread);
	pthread_join(thread, NULL);
	assert_int_equal(atomic_load(&p.channel.reading), 0);
	sample_put_many(in, N);
	pair_close(&p);
}

static void v6_write_keeps_all_until_they_complete(void **state)
{
	const struct pair_setup s = SETUP(32, 32, 0, 16);

	pair_open(&p, &s);
	assert_int_equal(do_write(8), 5); /* the peer has no receive for them */
	assert_int_equal(release, 0);
	pair_close(&p);
}

static void v7_write_takes_earlier_completions(void **state)
{
	const struct pair_setup s = SETUP(32, 32, 0, 16);
	struct sample *old[2];

	pair_open(&p, &s);
	for (int i = 0; i < 2; i++)
		old[i] = earlier();
	assert_int_equal(do_write(8), 5);
	assert_int_equal(release, 2);
	assert_memory_equal(smps, old, sizeof(old));
	give_back();
	pair_close(&p);
}

static void v8_write_puts_bad_ones_first_and_fills_up_with_completions(void **state)
{
	const struct pair_setup s = SETUP(32, 3, 0, 16);
	struct sample *old[4];
	struct ibv_wc wc;

	pair_open(&p, &s);
	for (int i = 0; i < 4; i++)
		old[i] = earlier();
	assert_int_equal(do_write(8), 3);
	assert_int_equal(release, 5);
	assert_ptr_equal(smps[0], in[D]);
	assert_ptr_equal(smps[1], in[E]);
	assert_memory_equal(smps + 2, old, 3 * sizeof(old[0]));
	give_back();
	/* The fourth stays in the queue. */
	assert_int_equal(ibv_poll_cq(p.send_cq, 1, &wc), 1);
	assert_ptr_equal(ib_table_take(&p.channel.tx.table, wc.wr_id), old[3]);
	sample_put(old[3]);
	pair_close(&p);
}

static void v9_write_inline_releases_all_and_does_not_poll(void **state)
{
	const struct pair_setup s = SETUP(32, 32, 128, 16);
	struct ibv_wc wc;

	pair_open(&p, &s);
	earlier();
	assert_int_equal(do_write(8), 5);
	assert_int_equal(release, 5);
	assert_memory_equal(smps, in, sizeof(in));
	give_back();
	assert_int_equal(ibv_poll_cq(p.send_cq, 1, &wc), 1);
	sample_put(ib_table_take(&p.channel.tx.table, wc.wr_id));
	pair_close(&p);
}

static void v10_write_mixes_inline_and_normal(void **state)
{
	const struct pair_setup s = SETUP(32, 32, 128, 16);
	struct sample *old;

	pair_open(&p, &s);
	old = earlier();
	take_five(60);
	in[A]->length = in[C]->length = 8;
	assert_int_equal(ib_channel_write(&p.channel, smps, N, &release), 5);
	assert_int_equal(release, 3);
	assert_ptr_equal(smps[0], in[A]);
	assert_ptr_equal(smps[1], in[C]);
	assert_ptr_equal(smps[2], old);
	give_back();
	pair_close(&p);
}

static void v11_write_signals_one_inline_sample_now_and_then(void **state)
{
	const struct pair_setup s = SETUP(32, 32, 128, 3);
	struct sample *expected[4], *old;

	pair_open(&p, &s);
	old = earlier();
	assert_int_equal(do_write(8), 5);
	assert_int_equal(release, 5);
	memcpy(expected, (struct sample *[]){ in[A], in[B], in[D], in[E] },
	       sizeof(expected));
	assert_memory_equal(smps, expected, sizeof(expected));
	assert_ptr_equal(smps[4], old);
	give_back();
	pair_close(&p);
}

static void v12_write_while_not_connected_refuses_all(void **state)
{
	const struct pair_setup s = SETUP(32, 32, 0, 16);

	pair_open(&p, &s);
	ib_channel_close_tx(&p.channel);
	assert_int_equal(do_write(8), 0);
	assert_int_equal(release, 5);
	assert_memory_equal(smps, in, sizeof(in));
	give_back();
	pair_close(&p);
}

static void v13_stop_gets_every_sample_back_from_the_adapter(void **state)
{
	const struct pair_setup s = SETUP(32, 32, 128, 16);

	pair_open(&p, &s);
	fill();
	assert_int_equal(do_write(60), 5);
	assert_int_equal(do_write(8), 5);
	give_back();
	assert_int_equal(ib_channel_held(&p.channel), 25);
	pair_close(&p); /* checks it */
}

static void flush_waits_for_inline_samples_too(void **state)
{
	const struct pair_setup s = SETUP(32, 32, 128, 16);
	unsigned taken = 0;

	pair_open(&p, &s);
	assert_int_equal(do_write(8), 5);
	give_back();
	ib_channel_close_tx(&p.channel);
	assert_false(ib_channel_flush(&p.channel, NSEC_PER_SEC / 100));
	pair_far_post(&p, 5);
	while (taken < 5)
		taken += pair_far_take(&p, 5);
	assert_true(ib_channel_flush(&p.channel, 10 * NSEC_PER_SEC));
	pair_close(&p);
}

/* Random calls on both sides; the pool tells whether the counts are right. */
static void run(uint64_t seed)
{
	struct pair_setup s = SETUP(32, 16, 128, 8);
	uint64_t random = seed * 0x9e3779b97f4a7c15u | 1;
	unsigned room = 0;
	uint64_t sent = 0;

	pair_open(&p, &s);
	for (int i = 0; i < 300; i++) {
		unsigned draw;

		random ^= random << 13;
		random ^= random >> 7;
		random ^= random << 17;
		draw = (unsigned)(random >> 40);
		switch (draw % 5) {
		case 0:
			ib_channel_interrupt(&p.channel);
			do_read();
			give_back();
			break;
		case 1:
		case 2:
			do_write(draw / 8 % 30);
			give_back();
			break;
		case 3:
			/* Posted ones of which some have a message already. */
			if (ib_table_used(&p.channel.rx.table) >
			    sent - p.channel.counters.received)
				pair_far_send(&p, draw / 8 % 64, sent++);
			break;
		case 4:
			room -= pair_far_take(&p, room);
			draw = MIN(draw / 8 % 8, PAIR_FAR - room);
			pair_far_post(&p, draw);
			room += draw;
			break;
		}
		assert_int_equal(ib_channel_held(&p.channel) +
					 p.pool.available, p.pool.count);
	}
	pair_close(&p);
}

static void no_sample_is_lost_or_released_twice(void **state)
{
	for (uint64_t seed = 1; seed <= 30; seed++)
		run(seed);
}

#define T(name) cmocka_unit_test(name)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(v1_read_below_threshold_keeps_all_samples),
		T(v2_read_hands_back_what_could_not_be_posted),
		T(v3_read_exchanges_two_of_five),
		T(v4_read_exchanges_all_five),
		T(v5_a_cancelled_reader_leaves_the_loop_and_leaks_nothing),
		T(v6_write_keeps_all_until_they_complete),
		T(v7_write_takes_earlier_completions),
		T(v8_write_puts_bad_ones_first_and_fills_up_with_completions),
		T(v9_write_inline_releases_all_and_does_not_poll),
		T(v10_write_mixes_inline_and_normal),
		T(v11_write_signals_one_inline_sample_now_and_then),
		T(v12_write_while_not_connected_refuses_all),
		T(v13_stop_gets_every_sample_back_from_the_adapter),
		T(flush_waits_for_inline_samples_too),
		T(no_sample_is_lost_or_released_twice),
	};

	if (!pair_present()) {
		puts("skipped: no adapter soft0");
		return 77;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
