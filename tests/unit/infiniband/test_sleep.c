/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The reader that may sleep: in which order it polls, arms and sleeps, what
 * wakes it, and when its descriptors are readable. Against the mock adapter,
 * with completions put into the moments that matter. A reader that misses one
 * sleeps for ever, so an alarm ends the program.
 */
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "mock.h"
#include "util/clock.h"

#define LIMIT_S 60
#define SETUP(...)                                             \
	{ .rx_depth = 64, .rx_threshold = 32, .samples = 300,  \
	  .capacity = 4, __VA_ARGS__ }

static struct mock m;
static unsigned polls;
static struct sample *smps[64];
static unsigned release;
static uint64_t first_poll_ns, arm_ns;

static int do_read(unsigned cnt)
{
	int ret;

	mock_samples(&m, smps, cnt, 0);
	ret = ib_channel_read(&m.channel, smps, cnt, &release);
	sample_put_many(smps, release);
	return ret;
}

static void begin(const struct mock_setup *s)
{
	memset(&m, 0, sizeof(m));
	mock_init(&m, s);
	while (ib_table_used(&m.channel.rx.table) < s->rx_threshold)
		assert_int_equal(do_read(4), 0);
	memset(m.calls, 0, sizeof(m.calls));
}

/* Order of the calls. */

static void receive_when_armed(struct mock *mock)
{
	if (mock->armed)
		mock_receive_event(mock);
}

static void a_completion_between_the_last_poll_and_the_sleep_ends_it(void **state)
{
	const struct mock_setup s = SETUP(.sleeps = true);

	begin(&s);
	m.after_empty_poll = receive_when_armed;
	assert_int_equal(do_read(1), 1);
	assert_string_equal(m.calls, "papep");
	mock_destroy(&m);
}

static void receive_one(struct mock *mock)
{
	mock->before_arm = NULL;
	mock_receive(mock, 1);
}

static void a_completion_ahead_of_the_arming_is_found_by_the_second_poll(void **state)
{
	const struct mock_setup s = SETUP(.sleeps = true);

	begin(&s);
	m.before_arm = receive_one;
	assert_int_equal(do_read(1), 1);
	assert_string_equal(m.calls, "pap");
	mock_destroy(&m);
}

/* An adapter may take an arming of long ago for given up. */
static void every_sleep_has_an_arming_of_its_own(void **state)
{
	const struct mock_setup s = SETUP(.sleeps = true);

	begin(&s);
	m.before_arm = receive_one;
	assert_int_equal(do_read(1), 1);
	assert_true(m.armed);
	memset(m.calls, 0, sizeof(m.calls));
	m.armed = false;
	m.after_empty_poll = receive_when_armed;
	assert_int_equal(do_read(1), 1);
	assert_string_equal(m.calls, "papep");
	mock_destroy(&m);
}

static void receive_at_the_second_arming(struct mock *mock)
{
	if (++polls == 2)
		mock_receive(mock, 1);
}

static void an_event_that_was_overtaken_by_a_poll_costs_one_wake_up(void **state)
{
	const struct mock_setup s = SETUP(.sleeps = true);

	begin(&s);
	m.before_arm = receive_one;
	assert_int_equal(do_read(1), 1);
	/* This one gives its event and is found without it. */
	mock_receive_event(&m);
	assert_int_equal(do_read(1), 1);
	memset(m.calls, 0, sizeof(m.calls));
	polls = 0;
	m.before_arm = receive_at_the_second_arming;
	assert_int_equal(do_read(1), 1);
	assert_string_equal(m.calls, "papepap");
	mock_destroy(&m);
}

static void receive_after_many(struct mock *mock)
{
	if (++polls == 3000)
		mock_receive_event(mock);
}

static void a_busy_reader_never_arms(void **state)
{
	const struct mock_setup s = SETUP();

	begin(&s);
	polls = 0;
	m.after_empty_poll = receive_after_many;
	assert_int_equal(do_read(1), 1);
	assert_int_equal(m.arms, 0);
	mock_destroy(&m);
}

static void an_adaptive_reader_does_not_arm_while_it_spins(void **state)
{
	const struct mock_setup s = SETUP(.sleeps = true,
					  .spin_ns = 30 * NSEC_PER_SEC);

	begin(&s);
	polls = 0;
	m.after_empty_poll = receive_after_many;
	assert_int_equal(do_read(1), 1);
	assert_int_equal(m.arms, 0);
	mock_destroy(&m);
}

static void note_first(struct mock *mock)
{
	if (!first_poll_ns)
		first_poll_ns = clock_now_ns();
	receive_when_armed(mock);
}

static void note_arm(struct mock *mock)
{
	arm_ns = clock_now_ns();
}

static void an_adaptive_reader_arms_when_its_time_is_over(void **state)
{
	const struct mock_setup s = SETUP(.sleeps = true, .spin_ns = 3000000);

	begin(&s);
	first_poll_ns = 0;
	m.after_empty_poll = note_first;
	m.before_arm = note_arm;
	assert_int_equal(do_read(1), 1);
	assert_int_equal(m.arms, 1);
	assert_true(arm_ns - first_poll_ns >= 3000000);
	mock_destroy(&m);
}

static void events_are_acknowledged_many_at_a_time_and_all_in_the_end(void **state)
{
	const struct mock_setup s = SETUP(.sleeps = true);

	begin(&s);
	m.after_empty_poll = receive_when_armed;
	for (int i = 0; i < 1000; i++)
		assert_int_equal(do_read(1), 1);
	assert_true(m.events_taken >= 999);
	assert_true(m.ack_calls <= 4);
	mock_destroy(&m); /* checks that none is missing */
}

/* What wakes it. */

static _Atomic pid_t reader_tid;

static void *read_once(void *arg)
{
	atomic_store(&reader_tid, gettid());
	assert_int_equal(do_read(1), 0);
	return NULL;
}

static bool sleeps(pid_t tid)
{
	char path[64], line[256] = "", *end;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", (int)tid);
	f = fopen(path, "r");
	if (!f)
		return false;
	if (!fgets(line, sizeof(line), f))
		line[0] = '\0';
	fclose(f);
	end = strrchr(line, ')');
	return end && end[1] && end[2] == 'S';
}

/* Returns once the reader lies in its sleep. */
static pthread_t sleeping_reader(void)
{
	pthread_t t;

	atomic_store(&reader_tid, 0);
	assert_int_equal(pthread_create(&t, NULL, read_once, NULL), 0);
	while (!atomic_load(&reader_tid) || !atomic_load(&m.arms) ||
	       !sleeps(atomic_load(&reader_tid)))
		sched_yield();
	return t;
}

static void an_interrupt_wakes_it(void **state)
{
	const struct mock_setup s = SETUP(.sleeps = true);
	pthread_t t;

	begin(&s);
	t = sleeping_reader();
	ib_channel_interrupt(&m.channel);
	pthread_join(t, NULL);
	mock_destroy(&m);
}

static void closing_wakes_it_and_waits_until_it_has_left(void **state)
{
	const struct mock_setup s = SETUP(.sleeps = true);
	pthread_t t;

	begin(&s);
	t = sleeping_reader();
	ib_channel_close_rx(&m.channel);
	assert_int_equal(atomic_load(&m.channel.reading), 0);
	pthread_join(t, NULL);
	mock_destroy(&m);
}

static void a_break_wakes_it(void **state)
{
	const struct mock_setup s = SETUP(.sleeps = true);
	pthread_t t;

	begin(&s);
	t = sleeping_reader();
	ib_channel_break(&m.channel, IB_RX_OPEN, -EIO);
	pthread_join(t, NULL);
	mock_destroy(&m);
}

static void a_cancelled_sleeper_leaves_the_direction(void **state)
{
	const struct mock_setup s = SETUP(.sleeps = true);
	pthread_t t;

	begin(&s);
	t = sleeping_reader();
	pthread_cancel(t);
	pthread_join(t, NULL);
	assert_int_equal(atomic_load(&m.channel.reading), 0);
	sample_put(smps[0]); /* read has not handed it back */
	mock_destroy(&m);
}

/* Descriptors. */

static bool readable(void)
{
	struct pollfd pfds[2];
	int fds[2];

	assert_int_equal(ib_channel_poll_fds(&m.channel, fds, 2), 2);
	for (int i = 0; i < 2; i++)
		pfds[i] = (struct pollfd){ .fd = fds[i], .events = POLLIN };
	return poll(pfds, 2, 0) > 0;
}

static void a_busy_reader_offers_no_descriptors(void **state)
{
	const struct mock_setup s = SETUP();
	int fds[8];

	begin(&s);
	assert_int_equal(ib_channel_poll_fds(&m.channel, fds, 8), 0);
	assert_false(atomic_load(&m.channel.polled));
	mock_destroy(&m);
}

static void nobody_waits_any_more_when_asked_with_zero(void **state)
{
	const struct mock_setup s = SETUP(.sleeps = true);
	int fds[8];

	begin(&s);
	assert_int_equal(ib_channel_poll_fds(&m.channel, fds, 8), 2);
	assert_true(atomic_load(&m.channel.polled));
	assert_int_equal(ib_channel_poll_fds(&m.channel, fds, 0), 0);
	assert_false(atomic_load(&m.channel.polled));
	mock_destroy(&m);
}

static void descriptors_are_readable_until_the_queue_is_filled(void **state)
{
	const struct mock_setup s = SETUP(.sleeps = true);

	mock_init(&m, &s);
	while (ib_table_used(&m.channel.rx.table) < s.rx_threshold) {
		assert_true(readable());
		assert_int_equal(do_read(4), 0);
		assert_int_equal(release, 0);
	}
	/* Takes note that it is full. */
	assert_true(readable());
	assert_int_equal(do_read(4), 0);
	assert_true(atomic_load(&m.channel.filled));
	assert_false(readable());
	mock_destroy(&m);
}

static void descriptors_are_readable_whenever_there_is_a_sample(void **state)
{
	const struct mock_setup s = SETUP(.sleeps = true);
	uint64_t random = 88172645463325252u;
	unsigned sent = 0, got = 0, idle = 0;

	begin(&s);
	assert_true(readable());
	for (int i = 0; i < 20000; i++) {
		random ^= random << 13;
		random ^= random >> 7;
		random ^= random << 17;
		for (unsigned n = random >> 32 & 3; n && m.rq.open; n--, sent++)
			mock_receive_event(&m);
		if (m.rq.wc_count)
			assert_true(readable());
		if (readable()) {
			int ret = do_read(1 + (random >> 40) % 5);

			assert_true(ret >= 0);
			got += (unsigned)ret;
		} else {
			idle++;
		}
	}
	while (readable())
		got += (unsigned)do_read(4);
	assert_int_equal(got, sent);
	assert_true(idle > 0);
	mock_destroy(&m);
}

static void a_closed_channel_is_not_readable_until_it_is_opened(void **state)
{
	const struct mock_setup s = SETUP(.sleeps = true);

	begin(&s);
	while (readable())
		assert_int_equal(do_read(1), 0);
	ib_channel_close_rx(&m.channel);
	while (readable()) {
		assert_int_equal(do_read(1), 0);
		ib_channel_wait(&m.channel, 0);
	}
	mock_open(&m, &s);
	assert_true(readable());
	/* Noticed too late: the caller had looked before it was opened. */
	ib_channel_wait(&m.channel, 0);
	assert_true(readable());
	mock_destroy(&m);
}

#define T(name) cmocka_unit_test(name)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(a_completion_between_the_last_poll_and_the_sleep_ends_it),
		T(a_completion_ahead_of_the_arming_is_found_by_the_second_poll),
		T(every_sleep_has_an_arming_of_its_own),
		T(an_event_that_was_overtaken_by_a_poll_costs_one_wake_up),
		T(a_busy_reader_never_arms),
		T(an_adaptive_reader_does_not_arm_while_it_spins),
		T(an_adaptive_reader_arms_when_its_time_is_over),
		T(events_are_acknowledged_many_at_a_time_and_all_in_the_end),
		T(an_interrupt_wakes_it),
		T(closing_wakes_it_and_waits_until_it_has_left),
		T(a_break_wakes_it),
		T(a_cancelled_sleeper_leaves_the_direction),
		T(a_busy_reader_offers_no_descriptors),
		T(nobody_waits_any_more_when_asked_with_zero),
		T(descriptors_are_readable_until_the_queue_is_filled),
		T(descriptors_are_readable_whenever_there_is_a_sample),
		T(a_closed_channel_is_not_readable_until_it_is_opened),
	};

	alarm(LIMIT_S);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
