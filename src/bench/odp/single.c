/* SPDX-License-Identifier: BSD-2-Clause */
/* Single requests: those whose page is missing (4.2, figures 4.2 to 4.4), and the survey of timeouts
 * (4.3, figure 4.5). */
#include "bench/odp/lab.h"

#include "util/container_of.h"

static const struct {
	const char *operation, *paged, *figure, *source;
	double source_ms;
	unsigned requests;
} cases[] = {
	{ "read", "server", "4.2", "4.64 ms, RNR NAK, 2 requests", 4.639, 2 },
	{ "read", "client", "4.2", "0.62 ms, 2 requests", 0.620, 2 },
	{ "send", "server", "4.3", "3.91 ms, RNR NAK, 2 requests", 3.906, 2 },
	{ "send", "client", "4.3", "1 request", 0, 1 },
	{ "write", "server", "4.4", "6.04 ms, RNR NAK, 2 requests", 6.041, 2 },
	{ "write", "client", "4.4", "1 request", 0, 1 },
};

/* The real wait behind an RNR NAK of 1.28 ms was 2.65 to 4.3 times as long. */
static bool is_alike(double ms, double source_ms)
{
	return !source_ms || lab_within(ms, source_ms / 1.5, source_ms * 1.5);
}

int lab_single(struct lab *l)
{
	int ret;

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		lab_point(l, "num_ops=1 operation=%s paged=%s", cases[i].operation,
			  cases[i].paged);
	ret = lab_run(l);
	for (size_t i = 0; !ret && i < ARRAY_SIZE(cases); i++) {
		double ms = lab_value(l, i, "time_ns") / 1e6;
		double requests = lab_value(l, i, "requests");
		double naks = lab_value(l, i, "rnr_naks");
		bool alike = is_alike(ms, cases[i].source_ms) &&
			     requests == cases[i].requests;
		char what[100];

		snprintf(what, sizeof(what), "%s, page missing at the %s", cases[i].operation,
			 cases[i].paged);
		lab_row(l, &(struct lab_row){ cases[i].figure, lab_if(alike), cases[i].source, ms,
					      "ms" },
			what, "%.2f ms%s, %.0f request%s", ms, naks > 0 ? ", RNR NAK" : "",
			requests, requests > 1 ? "s" : "");
	}
	return ret;
}

/* ---- a destination that never answers ---- */

enum { CODES = 20, RETRIES = 7 };

/* The effective timeout, by the formula of the source. */
static double timeout_ms(const struct lab *l, size_t point)
{
	return lab_value(l, point, "time_ns") / (RETRIES + 1) / 1e6;
}

/* The largest code that has the timeout of code 1. `first` is the point of code 1. */
static unsigned floor_code(const struct lab *l, size_t first)
{
	unsigned code = 1;

	while (code < CODES && timeout_ms(l, first + code) < 1.2 * timeout_ms(l, first))
		code++;
	return code;
}

static size_t add_survey(struct lab *l, const char *profile)
{
	size_t first = 0;

	for (unsigned code = 1; code <= CODES; code++) {
		size_t point = lab_point(l, "profile=%s num_ops=1 answers=off retry=%u "
					 "ack_code=%u", profile, RETRIES, code);

		first = code == 1 ? point : first;
	}
	return first;
}

static void add_floors(struct lab *l, const char *profile, size_t first, const char *source_ms,
		       double least_ms, double most_ms, const char *source_code,
		       unsigned source_floor)
{
	double ms = timeout_ms(l, first);
	unsigned code = floor_code(l, first);
	char what[100];

	snprintf(what, sizeof(what), "%s: time until the error / 8, code 1", profile);
	lab_row(l, &(struct lab_row){ "4.5", lab_if(lab_within(ms, least_ms, most_ms)),
				      source_ms, ms, "ms" }, what, "%.0f ms", ms);
	snprintf(what, sizeof(what), "%s: codes up to this one make no difference", profile);
	lab_row(l, &(struct lab_row){ "4.5", lab_if(code == source_floor), source_code, code,
				      "" }, what, "%u", code);
}

int lab_timeouts(struct lab *l)
{
	size_t x4 = add_survey(l, "connectx4"), x5 = add_survey(l, "connectx5");
	size_t x6 = add_survey(l, "connectx6");
	int ret = lab_run(l);
	double s;

	if (ret)
		return ret;
	add_floors(l, "connectx4", x4, "about 500 ms", 400, 600, "16", 16);
	add_floors(l, "connectx5", x5, "about 30 ms", 25, 35, "12", 12);
	add_floors(l, "connectx6", x6, "about 500 ms", 400, 600, "16", 16);
	s = lab_value(l, x4 + 17, "time_ns") / 1e9;
	lab_row(l, &(struct lab_row){ "4.3", lab_if(lab_within(s, 8 * 1.0737, 32 * 1.0737)),
				      "13 s by figure 6.2; 8.6 to 34 s by the rule", s, "s" },
		"connectx4, code 18: time until the error", "%.1f s", s);
	s = lab_value(l, x6 + 13, "time_ns") / 1e9;
	lab_row(l, &(struct lab_row){ "2026", lab_if(lab_within(s, 3.5, 3.76)),
				      "3.50 to 3.76 s (public, 2026)", s, "s" },
		"connectx6, code 14: time until the error", "%.2f s", s);
	s = lab_value(l, x6 + 19, "time_ns") / 1e9;
	lab_row(l, &(struct lab_row){ "2026", lab_if(lab_within(s, 58.5, 59.8)),
				      "58.5 to 59.8 s (public, 2026)", s, "s" },
		"connectx6, code 20: time until the error", "%.1f s", s);
	return 0;
}
