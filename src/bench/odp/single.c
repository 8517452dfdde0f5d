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
		double ms = lab_ms(l, i);
		double requests = lab_value(l, i, "requests");
		double naks = lab_value(l, i, "rnr_naks");
		bool alike = is_alike(ms, cases[i].source_ms) &&
			     requests == cases[i].requests;
		char what[100];

		snprintf(what, sizeof(what), "%s, page missing at the %s", cases[i].operation,
			 cases[i].paged);
		lab_row(l, cases[i].figure, lab_if(alike), cases[i].source, ms, "ms", what,
			"%.2f ms%s, %.0f request%s", ms, naks > 0 ? ", RNR NAK" : "", requests,
			requests > 1 ? "s" : "");
	}
	return ret;
}

/* ---- a destination that never answers ---- */

enum { CODES = 20, RETRIES = 7 };

/* The effective timeout, by the formula of the source. */
static double timeout_ms(const struct lab *l, size_t point)
{
	return lab_ms(l, point) / (RETRIES + 1);
}

/* The largest code that has the timeout of code 1. `first` is the point of code 1. */
static unsigned floor_code(const struct lab *l, size_t first)
{
	unsigned code = 1;

	while (code < CODES && timeout_ms(l, first + code) < 1.2 * timeout_ms(l, first))
		code++;
	return code;
}

static const struct profile {
	const char *name, *source_ms;
	double least_ms, most_ms;
	const char *source_code;
	unsigned source_floor;
} profiles[] = {
	{ "connectx4", "about 500 ms", 400, 600, "16", 16 },
	{ "connectx5", "about 30 ms", 25, 35, "12", 12 },
	{ "connectx6", "about 500 ms", 400, 600, "16", 16 },
};

static void add_floors(struct lab *l, const struct profile *p, size_t first)
{
	double ms = timeout_ms(l, first);
	unsigned code = floor_code(l, first);
	char what[100];

	snprintf(what, sizeof(what), "%s: time until the error / 8, code 1", p->name);
	lab_row(l, "4.5", lab_if(lab_within(ms, p->least_ms, p->most_ms)), p->source_ms, ms, "ms",
		what, "%.0f ms", ms);
	snprintf(what, sizeof(what), "%s: codes up to this one make no difference", p->name);
	lab_row(l, "4.5", lab_if(code == p->source_floor), p->source_code, code, "", what, "%u",
		code);
}

/* The time until the error with one code. */
static const struct {
	unsigned profile, code;
	const char *figure, *source;
	double least_s, most_s;
	int digits;
} errors[] = {
	{ 0, 18, "4.3", "13 s by figure 6.2; 8.6 to 34 s by the rule", 8 * 1.0737, 32 * 1.0737, 1 },
	{ 2, 14, "2026", "3.50 to 3.76 s (public, 2026)", 3.5, 3.76, 2 },
	{ 2, 20, "2026", "58.5 to 59.8 s (public, 2026)", 58.5, 59.8, 1 },
};

int lab_timeouts(struct lab *l)
{
	char what[100];
	int ret;

	for (size_t i = 0; i < ARRAY_SIZE(profiles); i++)
		for (unsigned code = 1; code <= CODES; code++)
			lab_point(l, "profile=%s num_ops=1 answers=off retry=%u ack_code=%u",
				  profiles[i].name, RETRIES, code);
	ret = lab_run(l);
	if (ret)
		return ret;
	for (size_t i = 0; i < ARRAY_SIZE(profiles); i++)
		add_floors(l, &profiles[i], i * CODES);
	for (size_t i = 0; i < ARRAY_SIZE(errors); i++) {
		const char *name = profiles[errors[i].profile].name;
		double s = lab_ms(l, errors[i].profile * CODES + errors[i].code - 1) / 1e3;

		snprintf(what, sizeof(what), "%s, code %u: time until the error", name,
			 errors[i].code);
		lab_row(l, errors[i].figure,
			lab_if(lab_within(s, errors[i].least_s, errors[i].most_s)),
			errors[i].source, s, "s", what, "%.*f s", errors[i].digits, s);
	}
	return 0;
}
