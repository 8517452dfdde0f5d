/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Hooks that drop, delay, mark or number samples: decimate, frame, gate,
 * jitter_calc, limit_rate, reorder_ts, shift_seq, shift_ts, skip_first, ts.
 */
#include <string.h>

#include "harness.h"
#include "util/clock.h"
#include "util/log.h"

#define R HOOK_NODE_READ
#define P HOOK_PATH
#define MS UINT64_C(1000000)
#define S UINT64_C(1000000000)

/* Passes a sample with this number and origin; true when it comes out. */
static struct sample *at(struct harness *t, uint64_t sequence,
			 uint64_t origin_ns)
{
	return harness_run(t, harness_sample(t, sequence, origin_ns));
}

static struct sample *restart_at(struct harness *t, uint64_t sequence,
				 uint64_t origin_ns)
{
	struct sample *s = harness_sample(t, sequence, origin_ns);

	s->flags |= SAMPLE_NEW_SIMULATION;
	return harness_run(t, s);
}

static void decimate_lets_one_of_three_through(void **state)
{
	struct harness t;

	harness_start(&t, R, "hooks = ( { type = \"decimate\"; ratio = 3 } );");
	for (uint64_t i = 10; i < 22; i++) {
		struct sample *s = at(&t, i, i);

		assert_int_equal(s != NULL, (i - 10) % 3 == 0);
		if (s)
			assert_int_equal(s->sequence, i);
	}
	/* A restart begins with its first sample, wherever the count was. */
	assert_non_null(at(&t, 22, 22));
	assert_non_null(restart_at(&t, 0, 23));
	assert_null(at(&t, 1, 24));
	harness_end(&t);
}

static void decimate_renumbers_what_it_lets_through(void **state)
{
	struct harness t;

	harness_start(&t, HOOK_NODE_WRITE, "hooks = ( { type = \"decimate\"; ratio = 4; renumber = true } );");
	for (uint64_t i = 0; i < 12; i++) {
		struct sample *s = at(&t, i, i);

		if (s)
			assert_int_equal(s->sequence, i / 4);
	}
	harness_end(&t);
}

static void decimate_copies_only_what_it_changes(void **state)
{
	struct harness t;
	struct sample *s, *mine;

	harness_start(&t, R, "hooks = ( { type = \"decimate\"; ratio = 1 } );");
	mine = sample_get(harness_sample(&t, 8, 1));
	s = harness_run(&t, mine);
	assert_ptr_equal(s, mine);
	sample_put(mine);
	harness_end(&t);
	harness_start(&t, R, "hooks = ( { type = \"decimate\"; ratio = 2; renumber = true } );");
	mine = sample_get(harness_sample(&t, 8, 1));
	s = harness_run(&t, mine);
	assert_ptr_not_equal(s, mine);
	assert_int_equal(s->sequence, 4);
	assert_int_equal(mine->sequence, 8);
	sample_put(mine);
	harness_end(&t);
}

static bool marked(struct sample *s)
{
	assert_non_null(s);
	return s->flags & SAMPLE_NEW_FRAME;
}

static void frame_counts_sequence_numbers(void **state)
{
	struct harness t;

	harness_start(&t, P, "hooks = ( { type = \"frame\"; trigger = \"sequence\"; interval = 10 } );");
	assert_true(marked(at(&t, 7, 1)));
	assert_false(marked(at(&t, 8, 1)));
	assert_true(marked(at(&t, 10, 1)));
	assert_false(marked(at(&t, 19, 1)));
	/* The sample that would begin it is lost: the next one does. */
	assert_true(marked(at(&t, 21, 1)));
	assert_false(marked(at(&t, 22, 1)));
	assert_true(marked(restart_at(&t, 3, 1)));
	assert_false(marked(at(&t, 4, 1)));
	harness_end(&t);

	/* By default each of them. */
	harness_start(&t, P, "hooks = ( { type = \"frame\"; trigger = \"sequence\" } );");
	assert_true(marked(at(&t, 7, 1)));
	assert_true(marked(at(&t, 8, 1)));
	harness_end(&t);

	harness_start(&t, P, "hooks = ( { type = \"frame\"; trigger = \"sequence\"; interval = 10; offset = 3 } );");
	assert_true(marked(at(&t, 0, 1)));
	assert_false(marked(at(&t, 2, 1)));
	assert_true(marked(at(&t, 3, 1)));
	assert_false(marked(at(&t, 12, 1)));
	assert_true(marked(at(&t, 13, 1)));
	harness_end(&t);
}

static void frame_takes_off_marks_that_are_not_its_own(void **state)
{
	struct harness t;
	struct sample *s;

	harness_start(&t, P, "hooks = ( { type = \"frame\"; trigger = \"sequence\"; interval = 10 } );");
	at(&t, 10, 1);
	s = harness_sample(&t, 11, 1);
	s->flags |= SAMPLE_NEW_FRAME;
	assert_false(marked(harness_run(&t, s)));
	harness_end(&t);
}

/* 100 ms steps; returns a bit for each that begins a frame. */
static uint64_t frames_by_time(const char *settings, uint64_t first_ns,
			       unsigned steps, uint64_t step_ns)
{
	struct harness t;
	char text[200];
	uint64_t bits = 0;

	snprintf(text, sizeof(text),
		 "hooks = ( { type = \"frame\"; %s } );", settings);
	harness_start(&t, P, text);
	for (unsigned i = 0; i < steps; i++)
		if (marked(at(&t, i, first_ns + i * step_ns)))
			bits |= UINT64_C(1) << i;
	harness_end(&t);
	return bits;
}

static void frame_counts_time(void **state)
{
	/* Begins in the middle: full seconds count, not the first sample. */
	assert_int_equal(frames_by_time("interval = \"1s\"", 100 * S + 700 * MS, 24, 100 * MS), 1 | 1 << 3 | 1 << 13 | 1 << 23);
	assert_int_equal(frames_by_time("interval = 1; unit = \"seconds\"", 100 * S + 700 * MS, 24, 100 * MS), 1 | 1 << 3 | 1 << 13 | 1 << 23);
	assert_int_equal(frames_by_time("", 100 * S + 700 * MS, 24, 100 * MS), 1 | 1 << 3 | 1 << 13 | 1 << 23);
	assert_int_equal(frames_by_time("trigger = \"timestamp\"; interval = 1000", 100 * S + 700 * MS, 24, 100 * MS), 1 | 1 << 3 | 1 << 13 | 1 << 23);
	assert_int_equal(frames_by_time("interval = \"500 ms\"", 100 * S, 11, 100 * MS), 1 | 1 << 5 | 1 << 10);
	assert_int_equal(frames_by_time("interval = 500; unit = \"milliseconds\"", 100 * S, 11, 100 * MS), 1 | 1 << 5 | 1 << 10);
	assert_int_equal(frames_by_time("interval = \"0.5s\"", 100 * S, 11, 100 * MS), 1 | 1 << 5 | 1 << 10);
	assert_int_equal(frames_by_time("interval = \"1s\"; offset = 0.2", 100 * S, 14, 100 * MS), 1 | 1 << 2 | 1 << 12);
	/* From the epoch on, and not from the minute: 3654 is 522 times 7. */
	assert_int_equal(frames_by_time("interval = \"7s\"", 3600 * S + 54 * S, 16, S), 1 | 1 << 7 | 1 << 14);
	assert_int_equal(frames_by_time("interval = \"90s\"", 3600 * S, 20, 10 * S), 1 | 1 << 9 | 1 << 18);
	assert_int_equal(frames_by_time("interval = \"10min\"", 7200 * S, 21, 60 * S), 1 | 1 << 10 | 1 << 20);
	assert_int_equal(frames_by_time("interval = \"1h\"", 0, 5, 1800 * S), 1 | 1 << 2 | 1 << 4);
	assert_int_equal(frames_by_time("interval = 24; unit = \"hours\"", 86400 * S - 3600 * S, 3, 1800 * S), 1 | 1 << 2);
}

static void frame_says_what_a_sample_lacks(void **state)
{
	struct harness t;
	struct sample *s;

	harness_start(&t, P, "hooks = ( { type = \"frame\"; trigger = \"timestamp\"; interval = \"1s\" } );");
	for (int i = 0; i < 3; i++) {
		s = harness_sample(&t, 1, 1);
		s->flags &= ~(unsigned)SAMPLE_HAS_ORIGIN;
		assert_null(harness_run(&t, s));
	}
	assert_non_null(strstr(fake_log(), "a -> b: hook frame: a sample without origin timestamp; such samples are dropped"));
	harness_end(&t);
	assert_non_null(strstr(fake_log(), "could not process 3 samples"));
}

/* A bit for each value of the signal that passes. */
static unsigned gate(const char *settings, unsigned count, const double values[])
{
	struct harness t;
	char text[200];
	unsigned bits = 0;

	snprintf(text, sizeof(text),
		 "hooks = ( { type = \"gate\"; signal = 0; %s } );", settings);
	harness_start(&t, R, text);
	for (unsigned i = 0; i < count; i++)
		if (harness_step(&t, i, values[i]))
			bits |= 1u << i;
	harness_end(&t);
	return bits;
}

static void gate_opens_by_its_mode(void **state)
{
	static const double v[] = { 0, 1, 1, 0.5, 0.2, 0.9, 0, 0 };

	assert_int_equal(gate("mode = \"above\"", 8, v), 1 << 1 | 1 << 2 | 1 << 5);
	assert_int_equal(gate("mode = \"below\"", 8, v), 1 | 1 << 4 | 1 << 6 | 1 << 7);
	assert_int_equal(gate("", 8, v), 1 << 1 | 1 << 5);
	assert_int_equal(gate("mode = \"falling_edge\"", 8, v), 1 << 4 | 1 << 6);
	assert_int_equal(gate("threshold = 0.95", 8, v), 1 << 1);
}

static void gate_stays_open_for_samples_or_seconds(void **state)
{
	static const double v[] = { 0, 1, 0, 0, 0, 0, 1, 1, 1, 1 };

	assert_int_equal(gate("samples = 3", 10, v), 7 << 1 | 7 << 6);
	/* Samples are 1 ms apart. */
	assert_int_equal(gate("duration = 0.002", 10, v), 3 << 1 | 3 << 6);
	/* The longer of both. */
	assert_int_equal(gate("duration = 0.002; samples = 4", 10, v), 15 << 1 | 15 << 6);
}

/* Does a gate that opened at 1 s let a sample through that comes next? */
static bool gate_is_open_at(const char *settings, uint64_t origin_ns,
			    bool has_origin)
{
	struct harness t;
	struct sample *s;
	char text[200];
	bool open;

	snprintf(text, sizeof(text), "hooks = ( { type = \"gate\"; signal = 0; mode = \"above\"; %s } );",
		 settings);
	harness_start(&t, R, text);
	s = harness_sample(&t, 0, 1000 * MS);
	put_real(s, 1);
	assert_non_null(harness_run(&t, s));
	s = harness_sample(&t, 1, origin_ns);
	put_real(s, 0);
	if (!has_origin)
		s->flags &= ~(unsigned)SAMPLE_HAS_ORIGIN;
	open = harness_run(&t, s) != NULL;
	harness_end(&t);
	return open;
}

static void gate_closes_when_time_steps_back(void **state)
{
	assert_false(gate_is_open_at("", 1000 * MS - 1, true));
	assert_false(gate_is_open_at("duration = 0.010", 500 * MS, true));
	assert_false(gate_is_open_at("duration = 0.010", 1005 * MS, false));
	/* Overtaken on the way, but near. */
	assert_true(gate_is_open_at("duration = 0.010", 995 * MS, true));
	assert_true(gate_is_open_at("samples = 2", 500 * MS, true));
}

static void gate_forgets_at_a_restart(void **state)
{
	struct harness t;
	struct sample *s;

	harness_start(&t, R, "signals = ( { name = \"x\"; type = \"boolean\" } ); hooks = ( { type = \"gate\"; signal = \"x\"; samples = 100 } );");
	s = harness_sample(&t, 0, 0);
	put_integer(s, 0);
	assert_null(harness_run(&t, s));
	s = harness_sample(&t, 1, 1);
	put_integer(s, 1);
	assert_non_null(harness_run(&t, s));
	s = harness_sample(&t, 0, 2);
	put_integer(s, 1);
	s->flags |= SAMPLE_NEW_SIMULATION;
	assert_null(harness_run(&t, s));
	/* A sample without the signal is an error. */
	assert_null(harness_run(&t, harness_sample(&t, 1, 2)));
	assert_non_null(strstr(fake_log(), "a sample without the signal"));
	harness_end(&t);
}

static void jitter_calc_follows_rfc_3550(void **state)
{
	/* Delays 10, 26, 10 us: D is 16 twice. */
	static const uint64_t delays_us[] = { 10, 26, 10 };
	struct harness t;

	harness_start(&t, R, "hooks = ( \"jitter_calc\" );");
	for (uint64_t i = 0; i < 3; i++) {
		struct sample *s = harness_sample(&t, i, i * MS);

		s->received = timespec_from_ns(i * MS + delays_us[i] * 1000);
		assert_non_null(harness_run(&t, s));
	}
	hook_list_periodic(t.hooks);
	/* 16/16 = 1, then 1 + (16 - 1)/16; mean 46/3; variance 256/3. */
	assert_non_null(strstr(fake_log(), "n: jitter 1.938 us, delay 15.333 us, variance 85.333 us^2"));
	harness_end(&t);
}

static void jitter_calc_looks_at_sixteen_samples(void **state)
{
	struct harness t;

	harness_start(&t, P, "hooks = ( \"jitter_calc\" );");
	for (uint64_t i = 0; i < 40; i++) {
		struct sample *s = harness_sample(&t, i, i * MS);

		/* What was long ago does not count: 1 s, then 7 us. */
		s->received = timespec_from_ns(i * MS + (i < 24 ? S : 7000));
		harness_run(&t, s);
	}
	hook_list_periodic(t.hooks);
	assert_non_null(strstr(fake_log(), "delay 7.000 us, variance 0.000 us^2"));
	harness_end(&t);
}

static void limit_rate_keeps_a_period_between_samples(void **state)
{
	struct harness t;
	unsigned n = 0;

	harness_start(&t, R, "hooks = ( { type = \"limit_rate\"; rate = 100; mode = \"origin\" } );");
	for (uint64_t i = 0; i < 1000; i++)
		n += at(&t, i, 5 * S + i * MS) != NULL;
	assert_int_equal(n, 100);
	/* Overtaken on its way: too early, too. */
	assert_null(at(&t, 0, 5 * S));
	/* But not after a restart. */
	assert_non_null(restart_at(&t, 0, 1));
	harness_end(&t);

	harness_start(&t, R, "hooks = ( { type = \"limit_rate\"; rate = 0.5; mode = \"received\" } );");
	assert_non_null(at(&t, 0, 10 * S));
	assert_null(at(&t, 1, 12 * S - 1));
	assert_non_null(at(&t, 2, 12 * S));
	harness_end(&t);
}

static void limit_rate_by_the_clock_of_this_host(void **state)
{
	struct harness t;
	uint64_t begin;
	unsigned n = 0;

	/* Timestamps do not matter. One in a minute: only the first one. */
	harness_start(&t, R, "hooks = ( { type = \"limit_rate\"; rate = 0.016 } );");
	for (uint64_t i = 0; i < 100; i++)
		n += at(&t, i, i * 100 * S) != NULL;
	assert_int_equal(n, 1);
	harness_end(&t);

	harness_start(&t, R, "hooks = ( { type = \"limit_rate\"; rate = 1000 } );");
	assert_non_null(at(&t, 0, 0));
	for (begin = clock_now_ns(); clock_now_ns() - begin < 2 * MS;)
		;
	assert_non_null(at(&t, 1, 0));
	harness_end(&t);
}

static void limit_rate_refuses_samples_without_the_timestamp(void **state)
{
	struct harness t;
	struct sample *s;

	harness_start(&t, R, "hooks = ( { type = \"limit_rate\"; rate = 100; mode = \"received\" } );");
	s = harness_sample(&t, 0, 0);
	s->flags &= ~(unsigned)SAMPLE_HAS_RECEIVED;
	assert_null(harness_run(&t, s));
	assert_non_null(strstr(fake_log(), "a sample without receive timestamp"));
	harness_end(&t);
}

static void reorder_ts_drops_what_it_holds_at_the_end(void **state)
{
	struct harness t;
	struct sample *rest[4];

	harness_start(&t, R, "hooks = ( { type = \"reorder_ts\"; window_size = 3 } );");
	for (uint64_t i = 0; i < 4; i++)
		at(&t, i, i * MS);
	assert_int_equal(hook_list_flush(t.hooks, rest, 4), 0);
	log_set_level(LOG_INFO);
	harness_end(&t);
	assert_non_null(strstr(fake_log(), "reorder_ts drops the 3 samples that it holds at the end"));
}

static void reorder_ts_gives_the_oldest_first(void **state)
{
	static const uint64_t order[] = { 1, 3, 2, 4, 6, 7, 5, 8, 9 };
	struct harness t;
	struct sample *s, *rest[8];
	uint64_t expected = 1;
	unsigned n;

	harness_start(&t, R, "hooks = ( { type = \"reorder_ts\"; window_size = 3; flush = true } );");
	assert_int_equal(hook_list_hold_max(t.hooks), 3);
	for (unsigned i = 0; i < 9; i++) {
		s = at(&t, order[i], order[i] * MS);
		assert_int_equal(s != NULL, i >= 3);
		if (s)
			assert_int_equal(s->sequence, expected++);
	}
	n = hook_list_flush(t.hooks, rest, 8);
	assert_int_equal(n, 3);
	for (unsigned i = 0; i < n; i++)
		assert_int_equal(rest[i]->sequence, expected++);
	sample_put_many(rest, n);
	assert_int_equal(hook_list_flush(t.hooks, rest, 8), 0);
	harness_end(&t);
}

static void reorder_ts_passes_what_is_too_late_on(void **state)
{
	struct harness t;

	harness_start(&t, R, "hooks = ( { type = \"reorder_ts\"; window_size = 2 } );");
	assert_null(at(&t, 10, 10));
	assert_null(at(&t, 11, 11));
	/* Older than all that is held: nothing is lost. */
	assert_int_equal(at(&t, 1, 1)->sequence, 1);
	/* Equal timestamps stay in the order in which they came. */
	assert_int_equal(at(&t, 12, 10)->sequence, 10);
	assert_int_equal(at(&t, 13, 20)->sequence, 12);
	/* What is still held is given back to the pool by the end. */
	harness_end(&t);
}

static void reorder_ts_ends_one_run_before_the_next(void **state)
{
	struct harness t;
	struct sample *rest[4];

	harness_start(&t, R, "hooks = ( { type = \"reorder_ts\"; window_size = 2; flush = true }, { type = \"decimate\"; ratio = 2 } );");
	assert_null(at(&t, 1000, 1000));
	assert_null(at(&t, 1001, 1001));
	/* Time begins anew: first what was held, though it is later. */
	assert_int_equal(restart_at(&t, 0, 1)->sequence, 1000);
	assert_null(at(&t, 1, 2)); /* 1001 is dropped by decimate */
	assert_int_equal(at(&t, 2, 3)->sequence, 0); /* began anew there too */
	assert_true(t.last->flags & SAMPLE_NEW_SIMULATION);
	/* 1 is dropped by decimate, 2 comes out. */
	assert_int_equal(hook_list_flush(t.hooks, rest, 4), 1);
	assert_int_equal(rest[0]->sequence, 2);
	sample_put(rest[0]);
	harness_end(&t);
}

static void shift_seq_adds_its_offset(void **state)
{
	struct harness t;

	harness_start(&t, R, "hooks = ( { type = \"shift_seq\"; offset = -5 } );");
	assert_int_equal(at(&t, 12, 1)->sequence, 7);
	harness_end(&t);
	harness_start(&t, P, "hooks = ( { type = \"shift_seq\"; offset = 1000000000000L }, { type = \"shift_seq\"; offset = 1 } );");
	assert_int_equal(at(&t, 12, 1)->sequence, 1000000000013);
	harness_end(&t);
}

static void assert_time(struct timespec t, int64_t sec, int64_t nsec)
{
	assert_int_equal(t.tv_sec, sec);
	assert_int_equal(t.tv_nsec, nsec);
}

static void shift_ts_adds_seconds_exactly(void **state)
{
	struct harness t;
	struct sample *s;

	harness_start(&t, R, "hooks = ( { type = \"shift_ts\"; offset = 1.25 } );");
	s = at(&t, 0, 10 * S + 900 * MS);
	assert_time(s->origin, 12, 150000000);
	assert_time(s->received, 10, 900005000);
	harness_end(&t);

	harness_start(&t, R, "hooks = ( { type = \"shift_ts\"; mode = \"received\"; offset = -0.000000007 } );");
	s = at(&t, 0, 10 * S - 5000);
	assert_time(s->origin, 9, 999995000);
	assert_time(s->received, 9, 999999993);
	harness_end(&t);

	/* As the documents of VILLASnode spell it. */
	harness_start(&t, P, "hooks = ( { type = \"shift_ts\"; mode = \"ts_received\"; offset = -1 }, { type = \"shift_ts\"; mode = \"ts_origin\"; offset = 2 } );");
	s = at(&t, 0, 10 * S);
	assert_time(s->origin, 12, 0);
	assert_time(s->received, 9, 5000);
	harness_end(&t);

	/* What is not there is not made up. */
	harness_start(&t, R, "hooks = ( { type = \"shift_ts\"; offset = 1 } );");
	s = harness_sample(&t, 0, 10 * S);
	s->flags &= ~(unsigned)SAMPLE_HAS_ORIGIN;
	s = harness_run(&t, s);
	assert_time(s->origin, 10, 0);
	harness_end(&t);
}

static void skip_first_skips_samples_or_seconds(void **state)
{
	struct harness t;

	harness_start(&t, R, "hooks = ( { type = \"skip_first\"; samples = 3 } );");
	assert_null(at(&t, 100, 0));
	assert_null(at(&t, 102, 0)); /* 101 is lost and counts */
	assert_non_null(at(&t, 103, 0));
	assert_non_null(at(&t, 5, 0));
	assert_null(restart_at(&t, 0, 0));
	assert_null(at(&t, 2, 0));
	assert_non_null(at(&t, 3, 0));
	/* The sample that began anew was dropped: this one says so now. */
	assert_true(t.last->flags & SAMPLE_NEW_SIMULATION);
	assert_non_null(at(&t, 4, 0));
	assert_false(t.last->flags & SAMPLE_NEW_SIMULATION);
	harness_end(&t);

	/* Numbers of 32 bits wrap, others never did more than that, or stand
	 * still: what is seen counts. */
	harness_start(&t, R, "builtin = false; hooks = ( { type = \"skip_first\"; samples = 5 } );");
	assert_null(at(&t, UINT32_MAX - 1, 0));
	assert_null(at(&t, UINT32_MAX, 0));
	for (uint64_t i = 0; i < 6; i++)
		assert_int_equal(at(&t, i, 0) != NULL, i >= 3);
	harness_end(&t);

	harness_start(&t, R, "builtin = false; hooks = ( { type = \"skip_first\"; samples = 10 } );");
	for (uint64_t i = 0; i < 20; i++)
		assert_int_equal(at(&t, i % 4, 0) != NULL, i >= 10);
	harness_end(&t);

	harness_start(&t, R, "builtin = false; hooks = ( { type = \"skip_first\"; samples = 4 } );");
	assert_null(at(&t, 100, 0));
	assert_null(at(&t, 102, 0));
	assert_null(at(&t, 101, 0));
	assert_null(at(&t, 103, 0));
	assert_non_null(at(&t, 104, 0));
	harness_end(&t);

	harness_start(&t, HOOK_NODE_WRITE, "hooks = ( { type = \"skip_first\"; seconds = 1.5 } );");
	assert_null(at(&t, 0, 10 * S));
	assert_null(at(&t, 1, 11 * S + 499999999));
	assert_non_null(at(&t, 2, 11 * S + 500 * MS));
	harness_end(&t);

	harness_start(&t, R, "hooks = ( { type = \"skip_first\"; samples = 0 } );");
	assert_non_null(at(&t, 0, 0));
	harness_end(&t);
}

static void ts_takes_the_receive_timestamp(void **state)
{
	struct harness t;
	struct sample *s;

	harness_start(&t, R, "hooks = ( \"ts\" );");
	s = at(&t, 0, 10 * S);
	assert_time(s->origin, 10, 5000);
	s = harness_sample(&t, 0, 10 * S);
	s->flags = SAMPLE_HAS_RECEIVED;
	s = harness_run(&t, s);
	assert_int_equal(s->flags, SAMPLE_HAS_RECEIVED | SAMPLE_HAS_ORIGIN);
	s = harness_sample(&t, 0, 10 * S);
	s->flags = SAMPLE_HAS_ORIGIN;
	s = harness_run(&t, s);
	assert_time(s->origin, 10, 0);
	harness_end(&t);
}

static void hooks_refuse_places_where_they_cannot_stand(void **state)
{
	expect_refused(R, "hooks = ( \"frame\" );", "hook 'frame' cannot stand on the `in` side of a node");
	expect_refused(HOOK_NODE_WRITE, "hooks = ( \"jitter_calc\" );", "hook 'jitter_calc' cannot stand on the `out` side");
	expect_refused(HOOK_NODE_WRITE, "hooks = ( { type = \"gate\"; signal = 0 } );", "cannot stand on the `out` side");
	expect_refused(HOOK_NODE_WRITE, "hooks = ( { type = \"shift_seq\"; offset = 1 } );", "cannot stand on the `out` side");
	expect_refused(HOOK_NODE_WRITE, "hooks = ( { type = \"shift_ts\"; offset = 1 } );", "cannot stand on the `out` side");
}

static void keys_that_make_no_sense_are_refused(void **state)
{
	expect_refused(R, "hooks = ( \"decimate\" );", "hooks[0].ratio: missing, but required");
	expect_refused(R, "hooks = ( { type = \"decimate\"; ratio = 0 } );", "0 is out of range");
	expect_refused(R, "hooks = ( { type = \"decimate\"; ratio = 2.5 } );", "expected a whole number");
	expect_refused(P, "hooks = ( { type = \"frame\"; trigger = \"time\" } );", "'time' is none of: sequence, timestamp");
	expect_refused(P, "hooks = ( { type = \"frame\"; trigger = \"sequence\"; interval = 0 } );", "0 is out of range, expected a whole number of samples");
	expect_refused(P, "hooks = ( { type = \"frame\"; trigger = \"sequence\"; interval = 1.5 } );", "1.5 is out of range");
	expect_refused(P, "hooks = ( { type = \"frame\"; trigger = \"sequence\"; interval = \"1s\" } );", "'1s' is a time, but the trigger is sequence");
	expect_refused(P, "hooks = ( { type = \"frame\"; trigger = \"sequence\"; unit = \"hours\" } );", "is one of time, but the trigger is sequence");
	expect_refused(P, "hooks = ( { type = \"frame\"; trigger = \"sequence\"; offset = 0.5 } );", "0.5 is no whole number of samples");
	expect_refused(P, "hooks = ( { type = \"frame\"; trigger = \"timestamp\"; interval = \"soon\" } );", "expected a number, or a text such as \"500ms\"");
	expect_refused(P, "hooks = ( { type = \"frame\"; trigger = \"timestamp\"; interval = \"3 weeks\" } );", "expected a number, or a text such as");
	expect_refused(P, "hooks = ( { type = \"frame\"; trigger = \"timestamp\"; interval = true } );", "expected a number, or a text such as");
	expect_refused(P, "hooks = ( { type = \"frame\"; trigger = \"timestamp\"; interval = \"100000h\" } );", "100000 hours is out of range, expected more than 0 and at most 87600");
	expect_refused(P, "hooks = ( { type = \"frame\"; trigger = \"timestamp\"; interval = 0 } );", "0 milliseconds is out of range");
	expect_refused(P, "hooks = ( { type = \"frame\"; trigger = \"timestamp\"; interval = \"1s\"; offset = 1e9 } );", "1e+09 seconds is out of range, expected at most 315360000");
	expect_refused(P, "hooks = ( { type = \"frame\"; trigger = \"timestamp\"; interval = \"1s\"; unit = \"hours\" } );", "contradicts the interval '1s'");
	expect_refused(R, "hooks = ( { type = \"gate\"; signal = 0; mode = \"open\" } );", "'open' is none of: above, below, rising_edge, falling_edge");
	expect_refused(R, "hooks = ( { type = \"gate\"; signal = 0; duration = -1 } );", "-1 is out of range");
	expect_refused(R, "signals = \"c\"; hooks = ( { type = \"gate\"; signal = 0 } );", "is complex, which hook gate cannot work on");
	expect_refused(R, "hooks = ( { type = \"jitter_calc\"; window = 3 } );", "hooks[0].window: unknown key");
	expect_refused(R, "hooks = ( \"limit_rate\" );", "hooks[0].rate: missing, but required");
	expect_refused(R, "hooks = ( { type = \"limit_rate\"; rate = 0 } );", "0 is out of range");
	expect_refused(R, "hooks = ( { type = \"limit_rate\"; rate = 1; mode = \"remote\" } );", "'remote' is none of: local, received, origin");
	expect_refused(R, "hooks = ( { type = \"reorder_ts\"; window_size = 0 } );", "0 is out of range, expected 1 to 65536");
	expect_refused(R, "hooks = ( \"shift_seq\" );", "hooks[0].offset: missing, but required");
	expect_refused(R, "hooks = ( { type = \"shift_ts\"; mode = \"origin\" } );", "hooks[0].offset: missing, but required");
	expect_refused(R, "hooks = ( { type = \"shift_ts\"; offset = 1; mode = \"orign\" } );", "'orign' is none of: origin, received, ts_origin, ts_received, did you mean 'origin'?");
	expect_refused(R, "hooks = ( \"skip_first\" );", "give `seconds` or `samples` to skip");
	expect_refused(R, "hooks = ( { type = \"skip_first\"; samples = 1; seconds = 1 } );", "stands beside `seconds`; give one of them");
	expect_refused(R, "hooks = ( { type = \"ts\"; mode = \"x\" } );", "hooks[0].mode: unknown key");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(decimate_lets_one_of_three_through),
		cmocka_unit_test(decimate_renumbers_what_it_lets_through),
		cmocka_unit_test(decimate_copies_only_what_it_changes),
		cmocka_unit_test(frame_counts_sequence_numbers),
		cmocka_unit_test(frame_takes_off_marks_that_are_not_its_own),
		cmocka_unit_test(frame_counts_time),
		cmocka_unit_test(frame_says_what_a_sample_lacks),
		cmocka_unit_test(gate_opens_by_its_mode),
		cmocka_unit_test(gate_stays_open_for_samples_or_seconds),
		cmocka_unit_test(gate_closes_when_time_steps_back),
		cmocka_unit_test(gate_forgets_at_a_restart),
		cmocka_unit_test(jitter_calc_follows_rfc_3550),
		cmocka_unit_test(jitter_calc_looks_at_sixteen_samples),
		cmocka_unit_test(limit_rate_keeps_a_period_between_samples),
		cmocka_unit_test(limit_rate_by_the_clock_of_this_host),
		cmocka_unit_test(limit_rate_refuses_samples_without_the_timestamp),
		cmocka_unit_test(reorder_ts_drops_what_it_holds_at_the_end),
		cmocka_unit_test(reorder_ts_gives_the_oldest_first),
		cmocka_unit_test(reorder_ts_passes_what_is_too_late_on),
		cmocka_unit_test(reorder_ts_ends_one_run_before_the_next),
		cmocka_unit_test(shift_seq_adds_its_offset),
		cmocka_unit_test(shift_ts_adds_seconds_exactly),
		cmocka_unit_test(skip_first_skips_samples_or_seconds),
		cmocka_unit_test(ts_takes_the_receive_timestamp),
		cmocka_unit_test(hooks_refuse_places_where_they_cannot_stand),
		cmocka_unit_test(keys_that_make_no_sense_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
