/* SPDX-License-Identifier: BSD-2-Clause */
/* Packet damming over the RNR NAK delay and the number of READs (5.1, figures 5.4 to 5.6). */
#include "bench/odp/lab.h"

#include "util/container_of.h"

enum { STEPS = 60 };

/* Codes of RNR NAK delays, and the steps of their sweeps: in the end more than the window. */
static const struct {
	unsigned code, step_us;
	double nominal_ms;
} delays[] = {
	{ 1, 20, 0.01 },  { 8, 20, 0.16 },   { 12, 50, 0.64 },  { 13, 75, 0.96 },
	{ 14, 100, 1.28 }, { 16, 200, 2.56 }, { 20, 800, 10.24 },
};

static size_t add_sweep(struct lab *l, const char *words, unsigned step_us)
{
	size_t first = 0;

	for (unsigned i = 0; i < STEPS; i++) {
		size_t point = lab_point(l, "paged=server interval=%u %s", (i + 1) * step_us * 1000,
					 words);

		first = i ? first : point;
	}
	return first;
}

/* The longest interval with a timeout. */
static double edge_us(const struct lab *l, size_t first, unsigned step_us)
{
	double last = 0;

	for (unsigned i = 0; i < STEPS; i++)
		if (lab_value(l, first + i, "timeouts") > 0)
			last = (i + 1) * step_us;
	return last;
}

static int over_delays(struct lab *l)
{
	size_t first[ARRAY_SIZE(delays)];
	double before = 0;
	int ret;

	for (size_t i = 0; i < ARRAY_SIZE(delays); i++) {
		char words[30];

		snprintf(words, sizeof(words), "rnr_code=%u", delays[i].code);
		first[i] = add_sweep(l, words, delays[i].step_us);
	}
	ret = lab_run(l);
	for (size_t i = 0; !ret && i < ARRAY_SIZE(delays); i++) {
		double us = edge_us(l, first[i], delays[i].step_us);
		char what[80];

		snprintf(what, sizeof(what), "longest interval, RNR code %u (%.2f ms)",
			 delays[i].code, delays[i].nominal_ms);
		lab_row(l, &(struct lab_row){ "5.4a", lab_if(us > before),
					      "grows with the delay", us, "us" }, what,
			"%.0f us", us);
		before = us;
	}
	return ret;
}

static void add_number(struct lab *l, unsigned count, double us, double pending_us)
{
	char what[60], source[80];
	/* All later READs are posted in the wait for the first one. */
	double expected = pending_us / (count - 1);

	snprintf(what, sizeof(what), "longest interval of %u READs", count);
	snprintf(source, sizeof(source), "shorter with more; about %.0f us", expected);
	lab_row(l, &(struct lab_row){ "5.5", lab_if(lab_within(us, 0.85 * expected,
							       1.15 * expected)),
				      source, us, "us" }, what, "%.0f us", us);
}

static void add_train(struct lab *l, unsigned count, size_t point)
{
	double ms = lab_value(l, point, "time_ns") / 1e6;
	char what[60];

	snprintf(what, sizeof(what), "%u READs, one each 1 ms", count);
	/* The source has two to four. */
	lab_row(l, &(struct lab_row){ "5.1.2", count > 4 ? LAB_NOT_IN_SOURCE :
						lab_if(ms > 268), count > 4 ? "" : "a timeout",
				      ms, "ms" }, what, "%.1f ms", ms);
}

static int over_numbers(struct lab *l)
{
	size_t first[5], trains[8], third;
	int ret;

	for (unsigned count = 2; count <= 4; count++) {
		char words[30];

		snprintf(words, sizeof(words), "num_ops=%u", count);
		first[count] = add_sweep(l, words, 100);
	}
	for (unsigned count = 2; count <= 7; count++)
		trains[count] = lab_point(l, "paged=server num_ops=%u interval=1000000", count);
	third = lab_point(l, "paged=server num_ops=3 interval=2500000");
	ret = lab_run(l);
	if (ret)
		return ret;
	for (unsigned count = 2; count <= 4; count++)
		add_number(l, count, edge_us(l, first[count], 100), 4500);
	lab_row(l, &(struct lab_row){ "5.6",
				      lab_if(lab_value(l, third, "sequence_naks") == 1 &&
					     lab_value(l, third, "timeouts") == 0),
				      "NAK for the gap, no timeout",
				      lab_value(l, third, "time_ns") / 1e6, "ms" },
		"3 READs, one each 2.5 ms", "%.0f NAK, %.0f timeouts, %.1f ms",
		lab_value(l, third, "sequence_naks"), lab_value(l, third, "timeouts"),
		lab_value(l, third, "time_ns") / 1e6);
	for (unsigned count = 2; count <= 7; count++)
		add_train(l, count, trains[count]);
	return 0;
}

int lab_damming_more(struct lab *l)
{
	int ret = over_delays(l);

	return ret ? ret : over_numbers(l);
}
