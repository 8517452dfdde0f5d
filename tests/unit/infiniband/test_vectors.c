/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Release accounting of the infiniband node-type's read and write: the vectors
 * V1 to V13, one test each, with five samples a b c d e, and what lies around
 * them. Against the mock adapter.
 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cmocka.h>

#include "mock.h"
#include "util/clock.h"
#include "util/log.h"

enum { A, B, C, D, E, N };

#define VALUES 8
#define SETUP(...)                                      \
	{ .rx_depth = 32, .rx_threshold = 20, .samples = 200, \
	  .capacity = 64, __VA_ARGS__ }

struct fixture {
	struct mock m;
	struct sample *in[N];   /* as passed: a b c d e */
	struct sample *smps[N]; /* as returned */
	unsigned release;
};

static struct fixture f;

static void begin(const struct mock_setup *s)
{
	mock_init(&f.m, s);
}

static void take_five(unsigned values)
{
	mock_samples(&f.m, f.in, N, values);
	memcpy(f.smps, f.in, sizeof(f.in));
}

static int do_read(void)
{
	take_five(0);
	return ib_channel_read(&f.m.channel, f.smps, N, &f.release);
}

static int do_write(unsigned values)
{
	take_five(values);
	return ib_channel_write(&f.m.channel, f.smps, N, &f.release);
}

/* What a path does behind every call. */
static void release(void)
{
	sample_put_many(f.smps, f.release);
}

/* Fills the receive queue up to the threshold (a multiple of five). */
static void fill(void)
{
	while (ib_table_used(&f.m.channel.rx.table) <
	       f.m.channel.rx.threshold) {
		assert_int_equal(do_read(), 0);
		assert_int_equal(f.release, 0);
	}
}

static void end(void)
{
	mock_destroy(&f.m);
}

static void v1_read_below_threshold_keeps_all_samples(void **state)
{
	const struct mock_setup s = SETUP();

	begin(&s);
	assert_int_equal(do_read(), 0);
	assert_int_equal(f.release, 0);
	assert_int_equal(f.m.rq.open, N);
	assert_int_equal(ib_channel_held(&f.m.channel), N);
	assert_int_equal(f.m.rq.wr[0].sge[0].lkey, MOCK_LKEY);
	assert_int_equal(f.m.rq.wr[0].sge[0].length, 24 + 64 * 8);
	end();
}

static void v1_read_below_threshold_does_not_poll(void **state)
{
	const struct mock_setup s = SETUP();

	begin(&s);
	do_read();
	mock_receive(&f.m, VALUES);
	assert_int_equal(do_read(), 0);
	assert_int_equal(f.release, 0);
	assert_int_equal(f.m.rq.wc_count, 1);
	end();
}

static void v2_read_hands_back_what_could_not_be_posted(void **state)
{
	const struct mock_setup s = SETUP();

	begin(&s);
	f.m.rq.capacity = 3;
	assert_int_equal(do_read(), 0);
	assert_int_equal(f.release, 2);
	assert_ptr_equal(f.smps[0], f.in[D]);
	assert_ptr_equal(f.smps[1], f.in[E]);
	release();
	end();
}

static void v3_read_exchanges_two_of_five(void **state)
{
	const struct mock_setup s = SETUP();
	struct sample *p, *q;

	begin(&s);
	fill();
	p = mock_receive(&f.m, VALUES);
	q = mock_receive(&f.m, VALUES);
	assert_int_equal(do_read(), 2);
	assert_int_equal(f.release, 5);
	assert_ptr_equal(f.smps[0], p);
	assert_ptr_equal(f.smps[1], q);
	assert_ptr_equal(f.smps[2], f.in[C]);
	assert_ptr_equal(f.smps[3], f.in[D]);
	assert_ptr_equal(f.smps[4], f.in[E]);
	assert_int_equal(f.m.rq.open, 20);
	assert_int_equal(p->length, VALUES);
	assert_int_equal(p->flags, SAMPLE_HAS_SEQUENCE | SAMPLE_HAS_ORIGIN |
				   SAMPLE_HAS_RECEIVED | SAMPLE_HAS_DATA);
	assert_true(p->received.tv_sec > 0);
	release();
	end();
}

static void v4_read_exchanges_all_five(void **state)
{
	const struct mock_setup s = SETUP();
	struct sample *got[N];

	begin(&s);
	fill();
	for (unsigned i = 0; i < N; i++)
		got[i] = mock_receive(&f.m, VALUES);
	assert_int_equal(do_read(), 5);
	assert_int_equal(f.release, 5);
	assert_memory_equal(f.smps, got, sizeof(got));
	assert_int_equal(f.m.rq.open, 20);
	release();
	end();
}

static void *read_for_ever(void *arg)
{
	ib_channel_read(&f.m.channel, f.smps, N, &f.release);
	return NULL;
}

static void v5_a_cancelled_reader_leaves_the_loop_and_leaks_nothing(void **state)
{
	const struct mock_setup s = SETUP();
	pthread_t thread;
	void *result;

	begin(&s);
	fill();
	take_five(0);
	assert_int_equal(pthread_create(&thread, NULL, read_for_ever, NULL), 0);
	while (!atomic_load(&f.m.channel.reading))
		sched_yield();
	pthread_cancel(thread);
	pthread_join(thread, &result);
	assert_ptr_equal(result, PTHREAD_CANCELED);
	assert_int_equal(atomic_load(&f.m.channel.reading), 0);
	assert_memory_equal(f.smps, f.in, sizeof(f.in));
	sample_put_many(f.in, N);
	end();
}

static void v6_write_keeps_all_until_they_complete(void **state)
{
	const struct mock_setup s = SETUP();

	begin(&s);
	assert_int_equal(do_write(VALUES), 5);
	assert_int_equal(f.release, 0);
	assert_int_equal(f.m.sq.open, 5);
	assert_int_equal(f.m.sq.wr[A].flags, IBV_SEND_SIGNALED);
	assert_int_equal(f.m.sq.wr[A].sge[0].length, 24 + VALUES * 8);
	end();
}

static void v7_write_takes_earlier_completions(void **state)
{
	const struct mock_setup s = SETUP();
	struct sample *earlier[N];

	begin(&s);
	do_write(VALUES);
	memcpy(earlier, f.in, sizeof(earlier));
	mock_sent(&f.m, IBV_WC_SUCCESS);
	mock_sent(&f.m, IBV_WC_SUCCESS);
	assert_int_equal(do_write(VALUES), 5);
	assert_int_equal(f.release, 2);
	assert_memory_equal(f.smps, earlier, 2 * sizeof(earlier[0]));
	release();
	end();
}

static void v8_write_puts_bad_ones_first_and_fills_up_with_completions(void **state)
{
	const struct mock_setup s = SETUP();
	struct sample *earlier[N];

	begin(&s);
	do_write(VALUES);
	memcpy(earlier, f.in, sizeof(earlier));
	for (unsigned i = 0; i < 4; i++)
		mock_sent(&f.m, IBV_WC_SUCCESS);
	f.m.sq.capacity = f.m.sq.open + 3;
	assert_int_equal(do_write(VALUES), 3);
	assert_int_equal(f.release, 5);
	assert_ptr_equal(f.smps[0], f.in[D]);
	assert_ptr_equal(f.smps[1], f.in[E]);
	assert_memory_equal(f.smps + 2, earlier, 3 * sizeof(earlier[0]));
	assert_int_equal(f.m.sq.wc_count, 1);
	release();
	end();
}

static void v9_write_inline_releases_all_and_does_not_poll(void **state)
{
	const struct mock_setup s = SETUP(.inline_limit = 128);

	begin(&s);
	/* Something is there to poll. */
	do_write(60);
	mock_sent(&f.m, IBV_WC_SUCCESS);
	assert_int_equal(do_write(VALUES), 5);
	assert_int_equal(f.release, 5);
	assert_memory_equal(f.smps, f.in, sizeof(f.in));
	assert_int_equal(f.m.sq.wc_count, 1);
	for (unsigned i = 5; i < 10; i++) {
		assert_int_equal(f.m.sq.wr[i].flags, IBV_SEND_INLINE);
		assert_int_equal(f.m.sq.wr[i].wr_id, IB_WR_ID_NONE);
	}
	release();
	end();
}

static void v10_write_mixes_inline_and_normal(void **state)
{
	const struct mock_setup s = SETUP(.inline_limit = 128);
	struct sample *p;

	begin(&s);
	do_write(60);
	p = f.in[A];
	mock_sent(&f.m, IBV_WC_SUCCESS);
	take_five(60);
	f.in[A]->length = f.in[C]->length = VALUES;
	assert_int_equal(ib_channel_write(&f.m.channel, f.smps, N, &f.release),
			 5);
	assert_int_equal(f.release, 3);
	assert_ptr_equal(f.smps[0], f.in[A]);
	assert_ptr_equal(f.smps[1], f.in[C]);
	assert_ptr_equal(f.smps[2], p);
	release();
	end();
}

static void v11_write_signals_one_inline_sample_now_and_then(void **state)
{
	const struct mock_setup s = SETUP(.inline_limit = 128,
					  .signal_every = 3);

	begin(&s);
	assert_int_equal(do_write(VALUES), 5);
	assert_int_equal(f.release, 4);
	assert_ptr_equal(f.smps[0], f.in[A]);
	assert_ptr_equal(f.smps[1], f.in[B]);
	assert_ptr_equal(f.smps[2], f.in[D]);
	assert_ptr_equal(f.smps[3], f.in[E]);
	assert_int_equal(f.m.sq.wr[C].flags, IBV_SEND_SIGNALED);
	assert_int_equal(f.m.channel.tx.unsignaled, 2);
	release();
	end();
}

static void v11_write_takes_the_completion_that_is_there(void **state)
{
	const struct mock_setup s = SETUP(.inline_limit = 128,
					  .signal_every = 3);
	struct sample *earlier;

	begin(&s);
	do_write(VALUES);
	release();
	earlier = f.in[C];
	mock_sent(&f.m, IBV_WC_SUCCESS);
	/* d and e were unsignaled, so a is the third. */
	assert_int_equal(do_write(VALUES), 5);
	assert_int_equal(f.release, 4);
	assert_ptr_equal(f.smps[0], f.in[B]);
	assert_ptr_equal(f.smps[1], f.in[C]);
	assert_ptr_equal(f.smps[2], f.in[E]);
	assert_ptr_equal(f.smps[3], earlier);
	release();
	end();
}

static void v12_write_while_not_connected_refuses_all(void **state)
{
	const struct mock_setup s = SETUP();

	begin(&s);
	ib_channel_close_tx(&f.m.channel);
	assert_int_equal(do_write(VALUES), 0);
	assert_int_equal(f.release, 5);
	assert_memory_equal(f.smps, f.in, sizeof(f.in));
	assert_int_equal(f.m.sq.open, 0);
	release();
	end();
}

static void read_without_queue_pair_releases_all(void **state)
{
	const struct mock_setup s = SETUP();

	begin(&s);
	ib_channel_close_rx(&f.m.channel);
	assert_int_equal(do_read(), 0);
	assert_int_equal(f.release, 5);
	release();
	end();
}

static void start_v13(const struct mock_setup *s)
{
	begin(s);
	fill();
	assert_int_equal(do_write(60), 5);
	assert_int_equal(do_write(VALUES), 5); /* inline */
	assert_int_equal(f.release, 5);
	release();
	assert_int_equal(ib_channel_held(&f.m.channel), 20 + 5);
	ib_channel_close_rx(&f.m.channel);
	ib_channel_close_tx(&f.m.channel);
}

static void v13_stop_releases_flushed_samples_once(void **state)
{
	const struct mock_setup s = SETUP(.inline_limit = 128);

	start_v13(&s);
	mock_flush(&f.m);
	ib_channel_drain(&f.m.channel, NSEC_PER_SEC);
	assert_int_equal(ib_channel_held(&f.m.channel), 0);
	assert_int_equal(f.m.pool.available, f.m.pool.count);
	ib_channel_detach(&f.m.channel);
	assert_int_equal(f.m.pool.available, f.m.pool.count);
	/* The owner, who ended it, does not take that for a broken connection. */
	assert_int_equal(f.m.channel.error, 0);
	end();
}

static void v13_stop_releases_samples_whose_completions_never_come(void **state)
{
	const struct mock_setup s = SETUP(.inline_limit = 128);

	start_v13(&s);
	ib_channel_drain(&f.m.channel, 1000000);
	ib_channel_detach(&f.m.channel);
	assert_int_equal(f.m.pool.available, f.m.pool.count);
	end();
}

static void samples_that_arrived_before_the_disconnect_are_delivered(void **state)
{
	const struct mock_setup s = SETUP();
	struct sample *got[3];

	begin(&s);
	fill();
	for (unsigned i = 0; i < 3; i++)
		got[i] = mock_receive(&f.m, VALUES);
	mock_flush(&f.m);
	ib_channel_close_rx(&f.m.channel);
	ib_channel_drain(&f.m.channel, NSEC_PER_SEC);
	ib_channel_detach(&f.m.channel);

	assert_int_equal(do_read(), 3);
	assert_int_equal(f.release, 5);
	assert_memory_equal(f.smps, got, sizeof(got));
	release();
	assert_int_equal(do_read(), 0);
	assert_int_equal(f.release, 5);
	release();

	/* A new queue pair gets the spares first. */
	assert_int_equal(ib_channel_held(&f.m.channel), 3);
	mock_open(&f.m, &s);
	assert_int_equal(do_read(), 0);
	assert_int_equal(f.release, 0);
	assert_int_equal(f.m.rq.open, 3 + 5);
	end();
}

static void a_failed_repost_delays_no_data_and_is_made_up_for(void **state)
{
	const struct mock_setup s = SETUP();
	struct sample *p, *q;

	begin(&s);
	fill();
	p = mock_receive(&f.m, VALUES);
	q = mock_receive(&f.m, VALUES);
	f.m.rq.error = ENOMEM;
	f.m.rq.accept = 1;
	assert_int_equal(do_read(), 2);
	assert_int_equal(f.release, 5);
	assert_ptr_equal(f.smps[0], p);
	assert_ptr_equal(f.smps[1], q);
	release();
	assert_int_equal(f.m.rq.open, 19);
	assert_int_equal(ib_channel_held(&f.m.channel), 20);

	f.m.rq.error = 0;
	assert_int_equal(do_read(), 0); /* one below the threshold */
	assert_int_equal(f.release, 0);
	assert_int_equal(f.m.rq.open, 25);
	assert_int_equal(ib_channel_held(&f.m.channel), 25);
	end();
}

static void messages_that_are_no_samples_are_dropped_and_counted(void **state)
{
	const struct mock_setup s = SETUP();
	struct sample *good;

	begin(&s);
	fill();
	log_set_level(LOG_ERROR);
	mock_receive_raw(&f.m, 0, IBV_WC_SUCCESS);
	mock_receive_raw(&f.m, 23, IBV_WC_SUCCESS);
	mock_receive_raw(&f.m, 24 + 9, IBV_WC_SUCCESS);
	mock_receive_raw(&f.m, 24 + 65 * 8, IBV_WC_SUCCESS);
	good = mock_receive(&f.m, 0);
	assert_int_equal(do_read(), 1);
	assert_int_equal(f.release, 5);
	assert_ptr_equal(f.smps[0], good);
	assert_int_equal(good->length, 0);
	release();
	assert_int_equal(f.m.channel.counters.faults[IB_COUNT_MALFORMED], 4);
	assert_int_equal(f.m.rq.open, 20);
	end();
}

static void ud_receives_behind_the_routing_header(void **state)
{
	const struct mock_setup s = SETUP(.ud = true);
	struct sample *got;

	begin(&s);
	fill();
	assert_int_equal(f.m.rq.wr[0].num_sge, 2);
	got = mock_receive(&f.m, VALUES);
	assert_int_equal(do_read(), 1);
	assert_ptr_equal(f.smps[0], got);
	assert_int_equal(got->length, VALUES);
	release();
	assert_int_equal(do_write(VALUES), 5);
	assert_int_equal(f.m.sq.wr[0].remote_qpn, 0x1234);
	end();
}

static void an_interrupt_ends_a_blocked_read(void **state)
{
	const struct mock_setup s = SETUP();
	pthread_t thread;

	begin(&s);
	fill();
	take_five(0);
	assert_int_equal(pthread_create(&thread, NULL, read_for_ever, NULL), 0);
	while (!atomic_load(&f.m.channel.reading))
		sched_yield();
	ib_channel_interrupt(&f.m.channel);
	ib_channel_interrupt(&f.m.channel);
	pthread_join(thread, NULL);
	assert_int_equal(f.release, 5);
	assert_memory_equal(f.smps, f.in, sizeof(f.in));
	sample_put_many(f.in, N);
	end();
}

static void closing_ends_a_blocked_read(void **state)
{
	const struct mock_setup s = SETUP();
	pthread_t thread;

	begin(&s);
	fill();
	take_five(0);
	assert_int_equal(pthread_create(&thread, NULL, read_for_ever, NULL), 0);
	while (!atomic_load(&f.m.channel.reading))
		sched_yield();
	ib_channel_close_rx(&f.m.channel);
	assert_int_equal(atomic_load(&f.m.channel.reading), 0);
	pthread_join(thread, NULL);
	assert_int_equal(f.release, 5);
	sample_put_many(f.in, N);
	end();
}

static void an_error_completion_closes_the_direction_and_tells_the_owner(void **state)
{
	const struct mock_setup s = SETUP();
	struct pollfd pfd = { .fd = eventfd(0, EFD_CLOEXEC), .events = POLLIN };

	begin(&s);
	f.m.channel.notify_fd = pfd.fd;
	fill();
	mock_flush(&f.m);
	assert_int_equal(do_read(), 0);
	assert_int_equal(f.release, 5);
	release();
	assert_int_equal(poll(&pfd, 1, 0), 1);
	assert_int_equal(f.m.channel.error, IBV_WC_WR_FLUSH_ERR);
	/* Nothing was posted to be flushed again. */
	assert_int_equal(f.m.rq.open, 0);
	assert_int_equal(do_read(), 0);
	assert_int_equal(f.release, 5);
	release();
	close(pfd.fd);
	end();
}

static void flushed_inline_requests_release_nothing(void **state)
{
	const struct mock_setup s = SETUP(.inline_limit = 128);
	struct sample *earlier[N];

	begin(&s);
	do_write(VALUES);
	release();
	do_write(60);
	assert_int_equal(f.release, 0);
	memcpy(earlier, f.in, sizeof(earlier));
	mock_flush(&f.m);
	/* The first five completions are those of the inline requests. */
	assert_int_equal(do_write(60), 5);
	assert_int_equal(f.release, 5);
	assert_memory_equal(f.smps, earlier, sizeof(earlier));
	release();
	assert_int_equal(f.m.channel.error, IBV_WC_WR_FLUSH_ERR);
	assert_int_equal(do_write(60), 0);
	assert_int_equal(f.release, 5);
	assert_int_equal(f.m.channel.counters.faults[IB_COUNT_QUEUE_FULL], 0);
	release();
	end();
}

static void a_full_send_queue_empties_when_samples_come_one_by_one(void **state)
{
	const struct mock_setup s = SETUP(.tx_depth = 4);
	struct sample *one;
	unsigned count;

	begin(&s);
	for (unsigned i = 0; i < 4; i++) {
		mock_samples(&f.m, &one, 1, VALUES);
		assert_int_equal(ib_channel_write(&f.m.channel, &one, 1,
						  &count), 1);
		assert_int_equal(count, 0);
	}
	assert_int_equal(f.m.channel.counters.faults[IB_COUNT_QUEUE_FULL], 0);
	for (unsigned i = 0; i < 4; i++)
		mock_sent(&f.m, IBV_WC_SUCCESS);
	/* The table is full, so this one has no place yet ... */
	mock_samples(&f.m, &one, 1, VALUES);
	assert_int_equal(ib_channel_write(&f.m.channel, &one, 1, &count), 0);
	assert_int_equal(count, 1);
	assert_int_equal(ib_channel_held(&f.m.channel), 0);
	assert_int_equal(f.m.channel.counters.faults[IB_COUNT_QUEUE_FULL], 1);
	/* ... but the next has. */
	assert_int_equal(ib_channel_write(&f.m.channel, &one, 1, &count), 1);
	assert_int_equal(count, 0);
	assert_int_equal(f.m.channel.counters.faults[IB_COUNT_QUEUE_FULL], 1);
	end();
}

static void samples_from_foreign_memory_are_not_posted(void **state)
{
	const struct mock_setup s = SETUP(.inline_limit = 128);
	struct pool foreign;
	struct sample *one;
	unsigned count;

	begin(&s);
	log_set_level(LOG_ERROR);
	assert_int_equal(pool_init(&foreign, 4, 64, &memory_heap), 0);
	one = sample_alloc(&foreign);
	one->length = 60;
	assert_int_equal(ib_channel_write(&f.m.channel, &one, 1, &count), 0);
	assert_int_equal(count, 1);
	/* Inline sending needs no registration. */
	one->length = VALUES;
	assert_int_equal(ib_channel_write(&f.m.channel, &one, 1, &count), 1);
	assert_int_equal(count, 1);
	sample_put(one);
	assert_int_equal(pool_destroy(&foreign), 0);
	end();
}

#define T(name) cmocka_unit_test(name)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(v1_read_below_threshold_keeps_all_samples),
		T(v1_read_below_threshold_does_not_poll),
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
		T(v11_write_takes_the_completion_that_is_there),
		T(v12_write_while_not_connected_refuses_all),
		T(read_without_queue_pair_releases_all),
		T(v13_stop_releases_flushed_samples_once),
		T(v13_stop_releases_samples_whose_completions_never_come),
		T(samples_that_arrived_before_the_disconnect_are_delivered),
		T(a_failed_repost_delays_no_data_and_is_made_up_for),
		T(messages_that_are_no_samples_are_dropped_and_counted),
		T(ud_receives_behind_the_routing_header),
		T(an_interrupt_ends_a_blocked_read),
		T(closing_ends_a_blocked_read),
		T(an_error_completion_closes_the_direction_and_tells_the_owner),
		T(flushed_inline_requests_release_nothing),
		T(a_full_send_queue_empties_when_samples_come_one_by_one),
		T(samples_from_foreign_memory_are_not_posted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
