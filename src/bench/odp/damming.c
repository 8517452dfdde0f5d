/* SPDX-License-Identifier: BSD-2-Clause */
/* Packet damming: in which intervals requests get lost until a timeout (5.1, figures 5.2 to 5.4). */
#include "bench/odp/lab.h"

#include "util/container_of.h"

/* Intervals are swept in steps up to the last. */
enum { STEP_US = 100, LAST_US = 6000, STEPS = LAST_US / STEP_US };
/* A sleep of a program ends a little late. */
#define SLEEP "jitter=10000"

struct window {
	double first_us, last_us; /* with a timeout in at least half of the trials; 0: none */
	double stall_ms;          /* the median time there */
};

static size_t add_sweep(struct lab *l, const char *paged, const char *profile)
{
	size_t first = 0;

	for (unsigned i = 0; i < STEPS; i++) {
		size_t point = lab_point(l, "paged=%s profile=%s interval=%u " SLEEP " trials=%u",
					 paged, profile, (i + 1) * STEP_US * 1000, l->trials);

		first = i ? first : point;
	}
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
		w.stall_ms = lab_value(l, first + i, "time_ns") / 1e6;
	}
	return w;
}

static void add_window(struct lab *l, const struct window *w, const char *figure,
		       const char *what, const char *source, double first_most_us,
		       double last_us)
{
	bool holds = w->first_us > 0 && w->first_us <= first_most_us &&
		     lab_within(w->last_us, 0.85 * last_us, 1.15 * last_us);

	lab_row(l, &(struct lab_row){ figure, lab_if(holds), source, w->last_us, "us" }, what,
		"%.0f to %.0f us", w->first_us, w->last_us);
}

static void add_none(struct lab *l, const struct window *w, const char *what)
{
	lab_row(l, &(struct lab_row){ "5.1.3", lab_if(w->first_us <= 0), "none", w->last_us,
				      "us" }, what, w->first_us > 0 ? "damming" : "none");
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

		lab_row(l, &(struct lab_row){ "5.1.3", lab_if(dams == others[i].dams),
					      others[i].source,
					      lab_value(l, first + i, "time_ns") / 1e6, "ms" },
			others[i].what, dams ? "lost, %.0f ms" : "not lost, %.1f ms",
			lab_value(l, first + i, "time_ns") / 1e6);
	}
}

static void add_stall(struct lab *l, const char *what, const char *source, double ms)
{
	lab_row(l, &(struct lab_row){ "5.3", lab_if(lab_within(ms, 268, 4 * 268)), source, ms,
				      "ms" }, what, "%.0f ms", ms);
}

int lab_damming(struct lab *l)
{
	size_t server = add_sweep(l, "server", "connectx4");
	size_t client = add_sweep(l, "client", "connectx4");
	size_t both = add_sweep(l, "both", "connectx4");
	size_t x6 = add_sweep(l, "both", "connectx6"), ideal = add_sweep(l, "both", "ideal");
	size_t other = 0;
	struct window w;
	int ret;

	for (size_t i = 0; i < ARRAY_SIZE(others); i++) {
		size_t point = lab_point(l, "%s interval=1000000", others[i].words);

		other = i ? other : point;
	}
	ret = lab_run(l);
	if (ret)
		return ret;
	w = window_of(l, server);
	add_window(l, &w, "5.4a", "intervals of two READs, pages of the server", "up to about 4500 us",
		   300, 4500);
	add_stall(l, "time in it", "541 ms; T_tr to 4 T_tr is 268 to 1074 ms", w.stall_ms);
	w = window_of(l, client);
	add_window(l, &w, "5.4b", "intervals of two READs, pages of the client", "up to about 500 us",
		   300, 500);
	add_stall(l, "time in it", "436 ms; T_tr to 4 T_tr is 268 to 1074 ms", w.stall_ms);
	w = window_of(l, both);
	add_window(l, &w, "5.2", "intervals of two READs, pages of both", "100 to 4500 us", 300,
		   4500);
	w = window_of(l, x6);
	add_none(l, &w, "the same on connectx6");
	w = window_of(l, ideal);
	lab_row(l, &(struct lab_row){ "-", LAB_NOT_IN_SOURCE, "", w.last_us, "us" },
		"the same by profile ideal", w.first_us > 0 ? "damming" : "none");
	add_others(l, other);
	return 0;
}
