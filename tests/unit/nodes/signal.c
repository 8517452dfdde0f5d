/* SPDX-License-Identifier: BSD-2-Clause */
/* The signal node: shapes against analytic values, numbering, limits, stamps. */
#include "fixture.h"

#include <math.h>

#include "gateway/part/signal_source.h"
#include "util/hist.h"

static struct pool pool;
static struct sample *smp;

static int set_up(void **state)
{
	if (pool_init(&pool, 64, 64, &memory_heap))
		return -1;
	smp = sample_alloc(&pool);
	return 0;
}

static int tear_down(void **state)
{
	sample_put(smp);
	return (int)pool_destroy(&pool);
}

#define VIRTUAL "\"realtime\": false, \"rate\": 1000, "

static double sine(double t)
{
	return 3 + 2 * sin(2 * M_PI * 50 * t + 0.5);
}

static double square(double t)
{
	return 3 + (fmod(t * 50 + 0.5 / (2 * M_PI), 1) < 0.5 ? -2 : 2);
}

static double triangle(double t)
{
	double x = fmod(t * 50 + 0.5 / (2 * M_PI), 1);

	return 3 + 2 * (x < 0.5 ? 1 - 4 * x : 4 * x - 3);
}

static double ramp(double t)
{
	return 3 + 2 * fmod(t, 50);
}

static double counter(double t)
{
	return 3 + 2 * rint(t * 1000);
}

static double constant(double t)
{
	return 5;
}

static double pulse(double t)
{
	/* 20 steps in a period, 4 of them high. */
	return 3 + ((unsigned)rint(t * 1000) % 20 < 4 ? 7 : -1);
}

static void shapes_have_their_analytic_values(void **state)
{
	static const struct {
		const char *name, *phase;
		double (*value)(double t);
	} shapes[] = {
		{ "sine", "0.5", sine },       { "square", "0.5", square },
		{ "triangle", "0.5", triangle }, { "ramp", "0", ramp },
		{ "counter", "0", counter },   { "constant", "0", constant },
		{ "pulse", "0", pulse },
	};

	for (size_t i = 0; i < ARRAY_SIZE(shapes); i++) {
		struct made_node m;
		char text[400];

		snprintf(text, sizeof(text), "{ " VIRTUAL
			 "\"signal\": \"%s\", \"phase\": %s, \"frequency\": 50, "
			 "\"amplitude\": 2, \"offset\": 3, \"pulse_width\": 4, "
			 "\"pulse_low\": -1, \"pulse_high\": 7 }",
			 shapes[i].name, shapes[i].phase);
		make_node(&m, &node_signal, text);
		assert_int_equal(m.node.type->start(&m.node), 0);
		for (unsigned step = 0; step < 5000; step++) {
			assert_int_equal(node_read_one(&m, smp), 1);
			assert_int_equal(smp->length, 1);
			if (fabs(smp->data[0].f - shapes[i].value(step / 1000.0)) > 1e-9)
				fail_msg("%s at step %u is %g, not %g",
					 shapes[i].name, step, smp->data[0].f,
					 shapes[i].value(step / 1000.0));
		}
		m.node.type->stop(&m.node);
		drop_node(&m);
	}
}

static void a_random_walk_has_its_deviation_and_depends_on_the_seed(void **state)
{
	double last[3][2000], sum = 0, squares = 0;

	for (int run = 0; run < 3; run++) {
		struct made_node m;
		char text[200];

		snprintf(text, sizeof(text), "{ " VIRTUAL "\"signal\": \"random\", "
			 "\"stddev\": 0.2, \"offset\": 10, \"seed\": %d }",
			 run == 2 ? 8 : 7);
		make_node(&m, &node_signal, text);
		assert_int_equal(m.node.type->start(&m.node), 0);
		for (unsigned i = 0; i < 2000; i++) {
			assert_int_equal(node_read_one(&m, smp), 1);
			last[run][i] = smp->data[0].f;
		}
		m.node.type->stop(&m.node);
		drop_node(&m);
	}
	assert_memory_equal(last[0], last[1], sizeof(last[0]));
	assert_memory_not_equal(last[0], last[2], sizeof(last[0]));
	for (unsigned i = 1; i < 2000; i++) {
		double step = last[0][i] - last[0][i - 1];

		sum += step;
		squares += step * step;
	}
	assert_true(fabs(sum / 1999) < 0.02);
	assert_true(fabs(sqrt(squares / 1999) - 0.2) < 0.02);
}

/* The numbers of the C library, two normally distributed ones at a time. */
static double library_normal(void)
{
	static double spare;
	static bool has_spare;
	double x, y, w;

	has_spare = !has_spare;
	if (!has_spare)
		return spare;
	do {
		x = (double)random() / RAND_MAX * 2.0 - 1.0;
		y = (double)random() / RAND_MAX * 2.0 - 1.0;
		w = x * x + y * y;
	} while (w >= 1.0);
	w = sqrt(-2.0 * log(w) / w);
	spare = y * w;
	return x * w;
}

static void random_numbers_are_those_of_the_c_library(void **state)
{
	static const uint32_t seeds[] = { 0, 1, 7, 12345, 2147483647, 4294967295 };

	for (size_t i = 0; i < ARRAY_SIZE(seeds); i++) {
		struct random r;

		random_seed(&r, seeds[i]);
		srandom(seeds[i]);
		for (unsigned k = 0; k < 1000; k++)
			assert_int_equal(random_next(&r), random());
	}
}

/* As files of one gateway have them, whose nodes draw in turns. */
static void random_walks_without_a_seed_share_their_numbers(void **state)
{
	double walks[2][3] = { { 1, 1, 1 }, { 0, 0, 0 } };

	for (int again = 0; again < 2; again++) {
		struct made_node m[2];
		uint32_t seed = again ? 42 : 0;

		make_node(&m[0], &node_signal, "{ " VIRTUAL "\"signal\": \"random\", "
			  "\"values\": 3, \"offset\": 1 }");
		make_node(&m[1], &node_signal_v2, "{ " VIRTUAL "\"in\": { \"signals\": ["
			  "{ \"signal\": \"random\", \"stddev\": 0.3 }, "
			  "{ \"signal\": \"constant\" }] } }");
		random_shared_seed(seed);
		srandom(seed);
		walks[0][0] = walks[0][1] = walks[0][2] = 1;
		walks[1][0] = 0;
		for (int i = 0; i < 2; i++)
			assert_int_equal(m[i].node.type->start(&m[i].node), 0);
		for (unsigned k = 0; k < 200; k++) {
			assert_int_equal(node_read_one(&m[0], smp), 1);
			for (unsigned v = 0; v < 3; v++) {
				walks[0][v] += (double)0.2f * library_normal();
				assert_true(smp->data[v].f == walks[0][v]);
			}
			assert_int_equal(node_read_one(&m[1], smp), 1);
			walks[1][0] += (double)0.3f * library_normal();
			assert_true(smp->data[0].f == walks[1][0]);
		}
		for (int i = 0; i < 2; i++) {
			m[i].node.type->stop(&m[i].node);
			drop_node(&m[i]);
		}
	}
}

static void settings_are_one_for_all_or_one_for_each(void **state)
{
	struct made_node m;

	make_node(&m, &node_signal, "{ " VIRTUAL "\"signal\": [\"constant\", \"counter\", "
		  "\"constant\"], \"amplitude\": [1, 2, \"4.5\"], \"offset\": 100 }");
	assert_int_equal(m.node.in.signals->count, 3);
	assert_string_equal(m.node.in.signals->signals[1].name, "counter");
	assert_int_equal(m.node.type->start(&m.node), 0);
	assert_int_equal(node_read_one(&m, smp), 1);
	assert_int_equal(node_read_one(&m, smp), 1);
	assert_true(smp->data[0].f == 101 && smp->data[1].f == 102 &&
		    smp->data[2].f == 104.5);
	m.node.type->stop(&m.node);
	drop_node(&m);

	make_node(&m, &node_signal, "{ " VIRTUAL "\"values\": 9 }");
	assert_int_equal(m.node.in.signals->count, 9);
	assert_string_equal(m.node.in.signals->signals[0].name, "random");
	assert_string_equal(m.node.in.signals->signals[8].name, "sine8");
	drop_node(&m);

	make_node(&m, &node_signal, "{ \"signal\": \"sine\", \"in\": { \"signals\": \"2f1i\" } }");
	assert_int_equal(m.node.in.signals->count, 3);
	assert_int_equal(m.node.in.signals->signals[2].type, SIGNAL_INTEGER);
	drop_node(&m);
}

/* Two values of a shape, with different settings each. */
static void every_setting_takes_a_list(void **state)
{
	struct made_node m;

	make_node(&m, &node_signal, "{ " VIRTUAL
		  "\"signal\": [\"sine\", \"sine\", \"square\", \"triangle\", \"ramp\", \"pulse\", \"pulse\"], "
		  "\"frequency\": [50, 10.5, 20, 40, 0.02, 100, 50], "
		  "\"amplitude\": [1, 2.5, 3, 4, 5, 6, 7], "
		  "\"offset\": [0, -1, 1, 2, 3, 4, 5], "
		  "\"phase\": [0, 1, 0, 3.141592653589793, 0, 0, 0], "
		  "\"stddev\": [0, 0, 0, 0, 0, 0, 0.1], "
		  "\"pulse_width\": [1, 1, 1, 1, 1, 2, 5], "
		  "\"pulse_low\": [0, 0, 0, 0, 0, -1, -2], "
		  "\"pulse_high\": [1, 1, 1, 1, 1, 10, 20] }");
	assert_int_equal(m.node.type->start(&m.node), 0);
	for (unsigned step = 0; step < 2000; step++) {
		double t = step / 1000.0, x = fmod(t * 40 + 0.5, 1);
		const double expected[7] = {
			sin(2 * M_PI * 50 * t),
			-1 + 2.5 * sin(2 * M_PI * 10.5 * t + 1),
			1 + (step % 50 < 25 ? -3 : 3),
			2 + 4 * (4 * fabs(x - 0.5) - 1),
			3 + 5 * fmod(t, 0.02),
			4 + (step % 10 < 2 ? 10 : -1),
			5 + (step % 20 < 5 ? 20 : -2),
		};

		assert_int_equal(node_read_one(&m, smp), 1);
		assert_int_equal(smp->length, 7);
		for (unsigned i = 0; i < 7; i++)
			if (fabs(smp->data[i].f - expected[i]) > 1e-9)
				fail_msg("value %u at step %u is %g, not %g", i,
					 step, smp->data[i].f, expected[i]);
	}
	m.node.type->stop(&m.node);
	drop_node(&m);
}

static void wrong_settings_are_refused(void **state)
{
	static const char *const texts[] = {
		"{ \"signal\": \"sinus\" }",
		"{ \"signal\": [] }",
		"{ \"signal\": [\"sine\", 5] }",
		"{ \"values\": 3, \"amplitude\": [1, 2] }",
		"{ \"signal\": [\"sine\", \"sine\"], \"phase\": [1, 2, 3] }",
		"{ \"amplitude\": \"much\" }",
		"{ \"frequency\": 0 }",
		"{ \"rate\": 0 }",
		"{ \"timer\": \"sundial\" }",
		"{ \"origin\": \"guessed\" }",
		"{ \"values\": 2, \"in\": { \"signals\": \"3f\" } }",
	};

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		struct made_node m;

		if (try_node(&m, &node_signal, texts[i]) != -EINVAL)
			fail_msg("accepted: %s", texts[i]);
		assert_true(config_errors(m.config) > 0);
		drop_node(&m);
	}
}

static void a_limit_ends_the_data_for_good(void **state)
{
	struct sample *smps[10];
	unsigned release = 10;
	struct made_node m;

	make_node(&m, &node_signal, "{ " VIRTUAL "\"limit\": 15, \"signal\": \"counter\" }");
	assert_int_equal(m.node.type->start(&m.node), 0);
	assert_int_equal(sample_alloc_many(&pool, smps, 10), 10);
	assert_int_equal(node_read(&m.node, smps, 10, &release), 10);
	assert_int_equal(release, 10);
	assert_int_equal(node_read(&m.node, smps, 10, &release), 5);
	assert_int_equal(smps[4]->sequence, 14);
	assert_int_equal(node_read(&m.node, smps, 10, &release), -ENODATA);
	assert_int_equal(node_read(&m.node, smps, 10, &release), -ENODATA);
	sample_put_many(smps, 10);
	m.node.type->stop(&m.node);
	drop_node(&m);
}

static void origins_not_in_real_time_stand_on_the_grid(void **state)
{
	struct made_node m;
	uint64_t first = 0;

	make_node(&m, &node_signal, "{ " VIRTUAL "\"signal\": \"counter\" }");
	assert_int_equal(m.node.type->start(&m.node), 0);
	for (unsigned i = 0; i < 1000; i++) {
		assert_int_equal(node_read_one(&m, smp), 1);
		if (i == 0)
			first = timespec_to_ns(smp->origin);
		assert_in_range(timespec_to_ns(smp->origin) - first,
				i * UINT64_C(1000000) - (i > 0), i * UINT64_C(1000000) + 1);
	}
	m.node.type->stop(&m.node);
	drop_node(&m);
}

static void the_origin_is_stamped_after_the_wait(void **state)
{
	static const char *const timers[] = { "timerfd", "tsc" };

	for (int k = 0; k < 2; k++) {
		struct made_node m;
		uint64_t last = 0, missed, best = UINT64_MAX;
		char text[100];

		snprintf(text, sizeof(text),
			 "{ \"rate\": 100, \"timer\": \"%s\", \"signal\": \"counter\" }",
			 timers[k]);
		make_node(&m, &node_signal, text);
		assert_int_equal(m.node.type->start(&m.node), 0);
		for (unsigned i = 0; i < 20; i++) {
			struct timespec now;

			assert_int_equal(node_read_one(&m, smp), 1);
			clock_gettime(CLOCK_REALTIME, &now);
			best = MIN(best, (uint64_t)llabs((int64_t)(timespec_to_ns(now) -
						timespec_to_ns(smp->origin))));
		}
		/* A stamp before the wait would be 10 ms old, each time. */
		assert_true(best < 1000000);
		last = smp->sequence;
		missed = atomic_load(&m.node.counters.missed);
		/* A missed step leaves a gap, and the counter counts steps. */
		assert_int_equal(last + 1, 20 + missed);
		assert_true(smp->data[0].f == (double)last);
		m.node.type->stop(&m.node);
		drop_node(&m);
	}
}

static void a_late_reader_sees_its_missed_steps_as_a_gap(void **state)
{
	const struct timespec pause = { .tv_nsec = 25 * 1000 * 1000 };
	struct made_node m;
	uint64_t first;

	make_node(&m, &node_signal, "{ \"rate\": 1000, \"signal\": \"counter\" }");
	assert_int_equal(m.node.type->start(&m.node), 0);
	assert_int_equal(node_read_one(&m, smp), 1);
	first = smp->sequence;
	nanosleep(&pause, NULL);
	assert_int_equal(node_read_one(&m, smp), 1);
	assert_true(smp->sequence - first >= 24);
	assert_int_equal(atomic_load(&m.node.counters.missed),
			 smp->sequence - first - 1);
	m.node.type->stop(&m.node);
	drop_node(&m);
}

static uint64_t fake_ns;

static uint64_t fake_now(void)
{
	return fake_ns += 10;
}

/* Started, with a clock of the test's own; one step has been taken. */
static struct signal_source *start_at_100k(struct made_node *m, const char *more)
{
	struct signal_source *s;
	char text[200];

	snprintf(text, sizeof(text),
		 "{ \"rate\": 100000, \"timer\": \"tsc\", \"signal\": \"counter\"%s }",
		 more);
	make_node(m, &node_signal, text);
	assert_int_equal(m->node.type->start(&m->node), 0);
	s = m->node.private_data;
	s->timer.now_ns = fake_now;
	timer_start(&s->timer, s->rate_hz);
	assert_int_equal(node_read_one(m, smp), 1);
	assert_int_equal(smp->sequence, 0);
	return s;
}

/* Reads up to step `last` and adds up the missed ones between. */
static uint64_t gaps_up_to(struct made_node *m, uint64_t last)
{
	uint64_t next = smp->sequence + 1, gaps = 0;

	while (next <= last) {
		assert_int_equal(node_read_one(m, smp), 1);
		assert_true(smp->sequence >= next);
		assert_true(smp->data[0].f == (double)smp->sequence);
		gaps += smp->sequence - next;
		next = smp->sequence + 1;
	}
	return gaps;
}

static void a_reader_that_is_little_late_sees_no_gap(void **state)
{
	static const struct {
		const char *more;
		uint64_t missed, made_up;
	} rows[] = {
		{ "", 0, 5 },
		{ ", \"catch_up\": 0.000035", 3, 2 },
		{ ", \"catch_up\": 0", 5, 0 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct made_node m;
		struct signal_source *s = start_at_100k(&m, rows[i].more);
		const struct node_counters *k = &m.node.counters;

		/* Six periods and a half behind the first step. */
		fake_ns += 65000;
		assert_int_equal(gaps_up_to(&m, 20), rows[i].missed);
		assert_int_equal(atomic_load(&k->missed), rows[i].missed);
		assert_int_equal(atomic_load(&k->made_up), rows[i].made_up);
		/* The longest delay is that of the first late step, made up or not. */
		assert_in_range(hist_percentile(s->late_ns, 100), 54000, 56100);
		m.node.type->stop(&m.node);
		drop_node(&m);
	}
}

static void a_late_step_keeps_its_planned_time(void **state)
{
	struct made_node m;
	struct signal_source *s = start_at_100k(&m, ", \"origin\": \"planned\"");
	const unsigned both = SAMPLE_HAS_ORIGIN | SAMPLE_HAS_RECEIVED;

	/* Six periods and a half behind the first step: steps are late by five and
	 * a half, four and a half ... */
	fake_ns += 65000;
	for (unsigned i = 1; i <= 6; i++) {
		uint64_t late;

		assert_int_equal(node_read_one(&m, smp), 1);
		assert_int_equal(smp->sequence, i);
		assert_int_equal(smp->flags & both, both);
		late = timespec_to_ns(smp->received) - timespec_to_ns(smp->origin);
		assert_in_range(late, 65000 - i * 10000, 66000 - i * 10000);
	}
	assert_true(m.node.origin_planned);
	assert_int_equal(m.node.step_late_ns->count, 7);
	assert_in_range(m.node.step_late_ns->max, 54000, 56100);
	/* A reset is obeyed with the next step. */
	atomic_store(&m.node.step_late_reset, true);
	assert_int_equal(node_read_one(&m, smp), 1);
	assert_int_equal(m.node.step_late_ns->count, 1);
	assert_true(m.node.step_late_ns->max < 20000);
	/* Of a pause only what is late behind it counts. */
	m.node.type->resume(&m.node);
	fake_ns += 1000000;
	assert_int_equal(node_read_one(&m, smp), 1);
	assert_true(m.node.step_late_ns->max < 20000);
	s->timer.now_ns = clock_now_ns;
	m.node.type->stop(&m.node);
	drop_node(&m);
}

static void the_origin_is_the_actual_time_unless_asked_otherwise(void **state)
{
	struct timespec before, after;
	struct made_node m;

	start_at_100k(&m, "");
	fake_ns += 65000;
	clock_gettime(CLOCK_REALTIME, &before);
	assert_int_equal(node_read_one(&m, smp), 1);
	clock_gettime(CLOCK_REALTIME, &after);
	/* A step that is late by 55 us is stamped now, within a microsecond. */
	assert_true(timespec_to_ns(smp->origin) + 20000 > timespec_to_ns(before));
	assert_true(timespec_to_ns(smp->origin) < timespec_to_ns(after) + 20000);
	assert_false(smp->flags & SAMPLE_HAS_RECEIVED);
	assert_false(m.node.origin_planned);
	assert_in_range(m.node.step_late_ns->max, 54000, 56100);
	m.node.type->stop(&m.node);
	drop_node(&m);
}

static void what_fell_due_in_a_pause_is_not_made_up(void **state)
{
	struct made_node m;

	start_at_100k(&m, ", \"catch_up\": 1");
	m.node.type->resume(&m.node);
	fake_ns += 65000;
	assert_int_equal(gaps_up_to(&m, 20), 5);
	assert_int_equal(atomic_load(&m.node.counters.missed), 5);
	assert_int_equal(atomic_load(&m.node.counters.made_up), 0);
	/* A restart owes nothing either. */
	m.node.type->stop(&m.node);
	drop_node(&m);
	start_at_100k(&m, ", \"catch_up\": 1");
	timer_start(&((struct signal_source *)m.node.private_data)->timer, 1e5);
	fake_ns += 65000;
	assert_int_equal(gaps_up_to(&m, 20), 0);
	assert_int_equal(atomic_load(&m.node.counters.made_up), 0);
	m.node.type->stop(&m.node);
	drop_node(&m);
}

static void a_limit_counts_steps_that_are_made_up_or_missed(void **state)
{
	struct made_node m;

	start_at_100k(&m, ", \"limit\": 20");
	fake_ns += 125000;
	/* Steps 1 and 2 are left out, and 19 is the last one. */
	assert_int_equal(gaps_up_to(&m, 19), 2);
	assert_int_equal(smp->sequence, 19);
	assert_int_equal(node_read_one(&m, smp), -ENODATA);
	m.node.type->stop(&m.node);
	drop_node(&m);
}

static void an_interrupted_read_returns(void **state)
{
	struct made_node m;

	make_node(&m, &node_signal, "{ \"rate\": 0.001 }");
	assert_int_equal(m.node.type->start(&m.node), 0);
	m.node.type->interrupt(&m.node);
	m.node.type->interrupt(&m.node);
	assert_int_equal(node_read_one(&m, smp), -EINTR);
	assert_int_equal(node_read_one(&m, smp), -EINTR);
	m.node.type->stop(&m.node);
	/* And it can be started again. */
	assert_int_equal(m.node.type->start(&m.node), 0);
	m.node.type->interrupt(&m.node);
	assert_int_equal(node_read_one(&m, smp), -EINTR);
	m.node.type->stop(&m.node);
	drop_node(&m);
}

static void an_interrupt_can_be_taken_back(void **state)
{
	struct made_node m;

	make_node(&m, &node_signal, "{ \"rate\": 1000, \"limit\": 1000 }");
	assert_int_equal(m.node.type->start(&m.node), 0);
	m.node.type->interrupt(&m.node);
	assert_int_equal(node_read_one(&m, smp), -EINTR);
	m.node.type->rearm(&m.node);
	assert_int_equal(node_read_one(&m, smp), 1);
	m.node.type->stop(&m.node);
	drop_node(&m);
}

static void a_random_walk_takes_one_step_a_sample(void **state)
{
	struct made_node m, other;
	struct signal_source *s;
	double walk[50];

	make_node(&other, &node_signal,
		  "{ \"realtime\": false, \"signal\": \"random\", \"seed\": 3 }");
	assert_int_equal(other.node.type->start(&other.node), 0);
	for (unsigned i = 0; i < ARRAY_SIZE(walk); i++) {
		assert_int_equal(node_read_one(&other, smp), 1);
		walk[i] = smp->data[0].f;
	}
	other.node.type->stop(&other.node);
	drop_node(&other);

	make_node(&m, &node_signal,
		  "{ \"rate\": 100000, \"timer\": \"tsc\", \"signal\": \"random\", \"seed\": 3 }");
	assert_int_equal(m.node.type->start(&m.node), 0);
	s = m.node.private_data;
	s->timer.now_ns = fake_now;
	timer_start(&s->timer, s->rate_hz);
	for (unsigned i = 0; i < ARRAY_SIZE(walk); i++) {
		if (i % 7 == 3)
			fake_ns += 2000000; /* steps are missed */
		if (i % 5 == 2) {
			m.node.type->interrupt(&m.node);
			assert_int_equal(node_read_one(&m, smp), -EINTR);
			m.node.type->rearm(&m.node);
		}
		assert_int_equal(node_read_one(&m, smp), 1);
		assert_true(smp->data[0].f == walk[i]);
	}
	assert_true(atomic_load(&m.node.counters.missed) > 0);
	m.node.type->stop(&m.node);
	drop_node(&m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(shapes_have_their_analytic_values),
		cmocka_unit_test(a_random_walk_has_its_deviation_and_depends_on_the_seed),
		cmocka_unit_test(random_numbers_are_those_of_the_c_library),
		cmocka_unit_test(random_walks_without_a_seed_share_their_numbers),
		cmocka_unit_test(settings_are_one_for_all_or_one_for_each),
		cmocka_unit_test(every_setting_takes_a_list),
		cmocka_unit_test(wrong_settings_are_refused),
		cmocka_unit_test(a_limit_ends_the_data_for_good),
		cmocka_unit_test(origins_not_in_real_time_stand_on_the_grid),
		cmocka_unit_test(the_origin_is_stamped_after_the_wait),
		cmocka_unit_test(a_late_reader_sees_its_missed_steps_as_a_gap),
		cmocka_unit_test(a_reader_that_is_little_late_sees_no_gap),
		cmocka_unit_test(a_late_step_keeps_its_planned_time),
		cmocka_unit_test(the_origin_is_the_actual_time_unless_asked_otherwise),
		cmocka_unit_test(what_fell_due_in_a_pause_is_not_made_up),
		cmocka_unit_test(a_limit_counts_steps_that_are_made_up_or_missed),
		cmocka_unit_test(a_random_walk_takes_one_step_a_sample),
		cmocka_unit_test(an_interrupted_read_returns),
		cmocka_unit_test(an_interrupt_can_be_taken_back),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
