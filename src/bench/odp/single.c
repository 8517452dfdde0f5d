/* SPDX-License-Identifier: BSD-2-Clause */
/* One operation whose page is missing (4.2, figures 4.2 to 4.4). */
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
