/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The hook pps_ts. A source samples at a rate that is not quite the nominal one;
 * its second signal is high for the first 100 ms of each second. Samples come in
 * 3 ms late, which is what their receive timestamps say.
 */
#include "rig.h"

#define START 1700000000L
#define SECOND INT64_C(1000000000)

struct source {
	double period_ns; /* true time from sample to sample */
	double begin_ns;  /* true time of sample 0 after START */
	uint64_t n;
};

/* True time of the next sample in ns after START. */
static double next_time(const struct source *s)
{
	return s->begin_ns + (double)s->n * s->period_ns;
}

/* Sends it; true when it comes out. The origin that goes in is wrong. */
static bool push(struct rig *r, struct source *s, bool pulse)
{
	int64_t t = (int64_t)next_time(s) + START * SECOND;
	double v[] = { 1, pulse && t % SECOND < SECOND / 10 ? 5 : 0 };

	r->offset_ns = t + 3000000 - 17;
	r->sequence = s->n++;
	return rig_push(r, 17, v, 2);
}

/* Error of the last one's timestamp, in ns. */
static double error_of(const struct rig *r, const struct source *s)
{
	int64_t found = (int64_t)timespec_to_ns(r->got->origin) - START * SECOND;

	return (double)found - (next_time(s) - s->period_ns);
}

#define SIGNALS "( { name = \"u\"; }, { name = \"pps\"; } )"

/*
 * The sample of an edge comes up to one period late and gets the whole second;
 * the period is the second by a whole number of samples, which is right to one
 * sample in the second. So a timestamp is early by at most one period, and as
 * much again at the end of a second.
 */
static void simple_is_right_within_two_periods(void **state)
{
	static const double periods[] = { 100000, 100000 * (1 + 70e-6),
					  100000 * (1 - 70e-6), 99870.3 };

	(void)state;
	for (unsigned k = 0; k < 4; k++) {
		struct source s = { periods[k], 0.4e9 + 12345, 0 };
		unsigned out = 0;
		struct rig r;

		rig_start(&r, "{ type = \"pps_ts\"; signal = \"pps\"; }", SIGNALS);
		while (next_time(&s) < 10e9) {
			if (!push(&r, &s, true)) {
				/* Two edges are needed: at 1 and 2 s. */
				assert_true(next_time(&s) < 2e9 + 2 * s.period_ns);
				continue;
			}
			assert_true(r.got->flags & SAMPLE_HAS_ORIGIN);
			assert_near(error_of(&r, &s), 0, 2 * s.period_ns + 1);
			out++;
		}
		assert_true(out > 79000);
		rig_stop(&r);
	}
}

static void an_edge_is_a_whole_second(void **state)
{
	struct source s = { 100000 * (1 + 70e-6), 0.4e9, 0 };
	unsigned edges = 0;
	bool before = true;
	struct rig r;

	(void)state;
	rig_start(&r, "{ type = \"pps_ts\"; signal = 1; mode = \"simple\"; threshold = 2.5; }",
		  SIGNALS);
	while (next_time(&s) < 6e9) {
		bool out = push(&r, &s, true), high;

		if (!out)
			continue;
		high = r.got->data[1].f > 2.5;
		if (high && !before) {
			assert_int_equal(r.got->origin.tv_nsec, 0);
			edges++;
		}
		before = high;
	}
	assert_int_equal(edges, 3);
	rig_stop(&r);
}

static void with_an_expected_rate_one_edge_is_enough(void **state)
{
	struct source s = { 100000, 0.4e9, 0 };
	struct rig r;

	(void)state;
	rig_start(&r, "{ type = \"pps_ts\"; signal = 1; expected_smp_rate = 10000; }",
		  SIGNALS);
	while (next_time(&s) < 1.5e9) {
		bool due = next_time(&s) >= 1e9;

		assert_int_equal(push(&r, &s, true), due);
		if (due)
			assert_near(error_of(&r, &s), 0, s.period_ns);
	}
	rig_stop(&r);
}

/*
 * In the horizon mode nothing jumps: the period is right to one sample in the
 * seconds of the estimation, 1e-5 of it, and is changed to make up for an error
 * of one period within ten seconds, 1e-5 too. Timestamps are whole ns, 1e-5 of a
 * period each.
 */
static void horizon_runs_on_without_a_jump(void **state)
{
	struct source s = { 100000 * (1 + 70e-6), 0.4e9 + 12345, 0 };
	int64_t last = 0;
	struct rig r;

	(void)state;
	rig_start(&r, "{ type = \"pps_ts\"; signal = \"pps\"; mode = \"horizon\"; horizon_estimation = 10; horizon_compensation = 10; }",
		  SIGNALS);
	while (next_time(&s) < 60e9) {
		int64_t now;

		if (!push(&r, &s, true))
			continue;
		now = (int64_t)timespec_to_ns(r.got->origin);
		/* The estimation is full from 12 s on. */
		if (next_time(&s) > 14e9) {
			assert_near((double)(now - last), s.period_ns,
				    5e-5 * s.period_ns);
			assert_near(error_of(&r, &s), 0, 3 * s.period_ns);
		} else if (last) {
			assert_true(now > last);
		}
		last = now;
	}
	rig_stop(&r);
}

/*
 * A step of the sample rate by 200 ppm is seen by the estimation only within its
 * ten seconds: 200e-6 * 5 s = 1 ms is lost meanwhile, ten periods. A tenth of
 * what is wrong is made up for each second: after 40 s 0.9^40 = 1.5 percent are
 * left.
 */
static void horizon_makes_up_for_what_a_change_of_rate_cost(void **state)
{
	struct source s = { 100000, 0.4e9 + 12345, 0 };
	double worst = 0;
	struct rig r;

	(void)state;
	rig_start(&r, "{ type = \"pps_ts\"; signal = \"pps\"; mode = \"horizon\"; }",
		  SIGNALS);
	while (next_time(&s) < 75e9) {
		if (next_time(&s) >= 20e9 && s.period_ns < 100010) {
			s.begin_ns = next_time(&s);
			s.period_ns *= 1 + 200e-6;
			s.begin_ns -= (double)s.n * s.period_ns;
		}
		if (!push(&r, &s, true))
			continue;
		worst = fmax(worst, fabs(error_of(&r, &s)));
		if (next_time(&s) > 70e9)
			assert_near(error_of(&r, &s), 0, 3 * s.period_ns);
	}
	assert_true(worst > 5 * s.period_ns);
	rig_stop(&r);
}

static void lost_samples_pass_time(void **state)
{
	struct source s = { 100000, 0.4e9, 0 };
	struct rig r;

	(void)state;
	rig_start(&r, "{ type = \"pps_ts\"; signal = 1; }", SIGNALS);
	while (next_time(&s) < 8e9) {
		/* A tenth is lost, in bursts, no edge among them. */
		if (s.n % 5000 == 2000)
			s.n += 500;
		if (push(&r, &s, true))
			assert_near(error_of(&r, &s), 0, 2 * s.period_ns + 1);
	}
	rig_stop(&r);
}

static void a_missing_pulse_is_said_and_survived(void **state)
{
	static const char *const modes[] = { "simple", "horizon" };

	(void)state;
	for (unsigned m = 0; m < 2; m++) {
		struct source s = { 100000, 0.4e9, 0 };
		char hook[200];
		struct rig r;

		snprintf(hook, sizeof(hook),
			 "{ type = \"pps_ts\"; signal = 1; mode = \"%s\"; }",
			 modes[m]);
		rig_start(&r, hook, SIGNALS);
		while (next_time(&s) < 10e9) {
			double t = next_time(&s);

			if (push(&r, &s, t < 3.9e9 || t > 5.5e9))
				assert_near(error_of(&r, &s), 0,
					    3 * s.period_ns + 1);
		}
		assert_non_null(strstr(rig_log, "follows the one at"));
		rig_stop(&r);
	}
}

static void a_restart_of_the_source_waits_for_edges_again(void **state)
{
	struct source s = { 100000, 0.4e9, 0 };
	struct rig r;

	(void)state;
	rig_start(&r, "{ type = \"pps_ts\"; signal = 1; }", SIGNALS);
	while (next_time(&s) < 4.2e9)
		push(&r, &s, true);
	assert_non_null(r.got);
	r.flags = SAMPLE_NEW_SIMULATION;
	s.begin_ns = 4.25e9;
	s.n = 0;
	while (next_time(&s) < 8e9) {
		bool due = next_time(&s) >= 6e9 - 1;
		bool first = due && next_time(&s) < 6e9 + s.period_ns - 1;

		assert_int_equal(push(&r, &s, true), due);
		if (due) {
			assert_near(error_of(&r, &s), 0, 2 * s.period_ns + 1);
			assert_int_equal(!!(r.got->flags & SAMPLE_NEW_SIMULATION),
					 first);
		}
	}
	rig_stop(&r);
}

static void what_makes_no_sense_is_refused(void **state)
{
	(void)state;
	rig_refuses("{ type = \"pps_ts\"; }", SIGNALS, "signal");
	rig_refuses("{ type = \"pps_ts\"; signal = \"pp\"; }", SIGNALS, "'pp'");
	rig_refuses("{ type = \"pps_ts\"; signal = 1; mode = \"exact\"; }",
		    SIGNALS, "mode");
	rig_refuses("{ type = \"pps_ts\"; signal = 1; horizon_estimation = 0; }",
		    SIGNALS, "horizon_estimation");
	rig_refuses("{ type = \"pps_ts\"; signal = 0; }", "\"1c\"", "complex");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(simple_is_right_within_two_periods),
		cmocka_unit_test(an_edge_is_a_whole_second),
		cmocka_unit_test(with_an_expected_rate_one_edge_is_enough),
		cmocka_unit_test(horizon_runs_on_without_a_jump),
		cmocka_unit_test(horizon_makes_up_for_what_a_change_of_rate_cost),
		cmocka_unit_test(lost_samples_pass_time),
		cmocka_unit_test(a_missing_pulse_is_said_and_survived),
		cmocka_unit_test(a_restart_of_the_source_waits_for_edges_again),
		cmocka_unit_test(what_makes_no_sense_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
