/* SPDX-License-Identifier: BSD-2-Clause */
/* Packet damming: in which intervals requests get lost until a timeout (5.1, figures 5.2 to 5.4). */
#include "bench/odp/lab.h"

#include "util/container_of.h"

/* Intervals are swept in so many steps. */
enum { STEP_US = 100, STEPS = 60 };
/* A sleep of a program ends a little late. */
#define SLEEP "jitter=10000"

struct window {
	double first_us, last_us; /* with a timeout in at least half of the trials; 0: none */
	double stall_ms;          /* the median time there */
};

/* Points of all intervals; the number of the first one. */
static size_t add_sweep(struct lab *l, unsigned step_us, const char *words)
{
	size_t first = l->count;

	for (unsigned i = 0; i < STEPS; i++)
		lab_point(l, "interval=%u %s", (i + 1) * step_us * 1000, words);
	return first;
}

static struct window window_of(const struct lab *l, size_t first)
{
	struct window w = { 0 };

	for (unsigned i = 0; i < STEPS; i++) {
		if (lab_share(l, first + i, "timeouts", 0) < 0.5)
			continue;
		w.last_us = (i + 1) * STEP_US;
		if (w.first_us > 0)
			continue;
		w.first_us = w.last_us;
		w.stall_ms = lab_ms(l, first + i);
	}
	return w;
}

/* Sweeps of two READs. */
static const struct sweep {
	const char *words, *figure, *what, *source;
	double last_us;    /* the end of the window; 0: there is none */
	const char *stall; /* the time in it; NULL: not compared */
} sweeps[] = {
	{ "paged=server profile=connectx4", "5.4a", "intervals of two READs, pages of the server",
	  "up to about 4500 us", 4500, "541 ms; T_tr to 4 T_tr is 268 to 1074 ms" },
	{ "paged=client profile=connectx4", "5.4b", "intervals of two READs, pages of the client",
	  "up to about 500 us", 500, "436 ms; T_tr to 4 T_tr is 268 to 1074 ms" },
	{ "paged=both profile=connectx4", "5.2", "intervals of two READs, pages of both",
	  "100 to 4500 us", 4500, NULL },
	{ "paged=both profile=connectx6", "5.1.3", "the same on connectx6", "none", 0, NULL },
	{ "paged=both profile=ideal", "-", "the same by profile ideal", "", 0, NULL },
};

static void add_window(struct lab *l, const struct sweep *s, size_t first)
{
	struct window w = window_of(l, first);
	bool dams = w.first_us > 0;

	if (s->last_us > 0)
		lab_row(l, s->figure,
			lab_if(dams && w.first_us <= 300 &&
			       lab_within(w.last_us, 0.85 * s->last_us, 1.15 * s->last_us)),
			s->source, w.last_us, "us", s->what, "%.0f to %.0f us", w.first_us,
			w.last_us);
	else
		lab_row(l, s->figure, *s->source ? lab_if(!dams) : LAB_NOT_IN_SOURCE, s->source,
			w.last_us, "us", s->what, dams ? "damming" : "none");
	if (s->stall)
		lab_row(l, "5.3", lab_if(lab_within(w.stall_ms, 268, 4 * 268)), s->stall,
			w.stall_ms, "ms", "time in it", "%.0f ms", w.stall_ms);
}

/* Requests that damming catches, whatever they are. */
static const struct {
	const char *words, *what, *source;
	bool dams;
} others[] = {
	{ "paged=server second=write", "a WRITE behind the READ", "lost too", true },
	{ "paged=server second=send", "a SEND behind the READ", "lost too", true },
	{ "paged=server stride=8192", "the second on another page", "lost too", true },
	{ "paged=server stride=8192 pre_touch=later", "the second needs no fault", "lost too",
	  true },
	{ "paged=server size=8", "8 bytes", "lost too", true },
	{ "paged=server size=4000", "4000 bytes", "lost too", true },
	{ "paged=server num_qps=2", "the second on another queue pair", "not lost", false },
	{ "paged=none", "pinned memory", "not lost", false },
};

static void add_others(struct lab *l, size_t first)
{
	for (size_t i = 0; i < ARRAY_SIZE(others); i++) {
		bool dams = lab_share(l, first + i, "timeouts", 0) > 0.5;

		lab_row(l, "5.1.3", lab_if(dams == others[i].dams), others[i].source,
			lab_ms(l, first + i), "ms", others[i].what,
			dams ? "lost, %.0f ms" : "not lost, %.1f ms",
			lab_ms(l, first + i));
	}
}

int lab_damming(struct lab *l)
{
	size_t first[ARRAY_SIZE(sweeps)], other;
	char words[100];
	int ret;

	/* All trials, with a sleep as programs have it. */
	for (size_t i = 0; i < ARRAY_SIZE(sweeps); i++) {
		snprintf(words, sizeof(words), "%s " SLEEP " trials=%u", sweeps[i].words,
			 l->trials);
		first[i] = add_sweep(l, STEP_US, words);
	}
	other = l->count;
	for (size_t i = 0; i < ARRAY_SIZE(others); i++)
		lab_point(l, "%s interval=1000000", others[i].words);
	ret = lab_run(l);
	if (ret)
		return ret;
	for (size_t i = 0; i < ARRAY_SIZE(sweeps); i++)
		add_window(l, &sweeps[i], first[i]);
	add_others(l, other);
	return 0;
}

/* ---- over the RNR NAK delay and the number of READs (figures 5.4 to 5.6) ---- */

/* Codes of RNR NAK delays, and the steps of their sweeps: in the end more than the window. */
static const struct {
	unsigned code, step_us;
	double nominal_ms;
} delays[] = {
	{ 1, 20, 0.01 },  { 8, 20, 0.16 },   { 12, 50, 0.64 },  { 13, 75, 0.96 },
	{ 14, 100, 1.28 }, { 16, 200, 2.56 }, { 20, 800, 10.24 },
};

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
		char words[40];

		snprintf(words, sizeof(words), "paged=server rnr_code=%u", delays[i].code);
		first[i] = add_sweep(l, delays[i].step_us, words);
	}
	ret = lab_run(l);
	for (size_t i = 0; !ret && i < ARRAY_SIZE(delays); i++) {
		double us = edge_us(l, first[i], delays[i].step_us);
		char what[80];

		snprintf(what, sizeof(what), "longest interval, RNR code %u (%.2f ms)",
			 delays[i].code, delays[i].nominal_ms);
		lab_row(l, "5.4a", lab_if(us > before), "grows with the delay", us, "us", what,
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
	lab_row(l, "5.5", lab_if(lab_within(us, 0.85 * expected, 1.15 * expected)), source, us,
		"us", what, "%.0f us", us);
}

static void add_train(struct lab *l, unsigned count, size_t point)
{
	double ms = lab_ms(l, point);
	char what[60];

	snprintf(what, sizeof(what), "%u READs, one each 1 ms", count);
	/* The source has two to four. */
	lab_row(l, "5.1.2", count > 4 ? LAB_NOT_IN_SOURCE : lab_if(ms > 268),
		count > 4 ? "" : "a timeout", ms, "ms", what, "%.1f ms", ms);
}

static int over_numbers(struct lab *l)
{
	size_t first[5], trains[8], third;
	int ret;

	for (unsigned count = 2; count <= 4; count++) {
		char words[40];

		snprintf(words, sizeof(words), "paged=server num_ops=%u", count);
		first[count] = add_sweep(l, STEP_US, words);
	}
	for (unsigned count = 2; count <= 7; count++)
		trains[count] = lab_point(l, "paged=server num_ops=%u interval=1000000", count);
	third = lab_point(l, "paged=server num_ops=3 interval=2500000");
	ret = lab_run(l);
	if (ret)
		return ret;
	for (unsigned count = 2; count <= 4; count++)
		add_number(l, count, edge_us(l, first[count], STEP_US), 4500);
	lab_row(l, "5.6",
		lab_if(lab_value(l, third, "sequence_naks") == 1 &&
		       lab_value(l, third, "timeouts") == 0),
		"NAK for the gap, no timeout", lab_ms(l, third), "ms",
		"3 READs, one each 2.5 ms", "%.0f NAK, %.0f timeouts, %.1f ms",
		lab_value(l, third, "sequence_naks"), lab_value(l, third, "timeouts"),
		lab_ms(l, third));
	for (unsigned count = 2; count <= 7; count++)
		add_train(l, count, trains[count]);
	return 0;
}

int lab_damming_more(struct lab *l)
{
	return over_delays(l) ?: over_numbers(l);
}
