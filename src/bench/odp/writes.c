/* SPDX-License-Identifier: BSD-2-Clause */
/* Amplification of WRITEs (5.2.4, figures 5.10 to 5.12, A.3): each fault repeats all of them. */
#include "bench/odp/lab.h"

#include <math.h>

enum { WRITES = 8192, PAGE = 4096, QPS = 200 };
#define COMMON "operation=write ack_code=18 interval=0 "

/* N (M + 1) / 2 requests for N WRITEs to M pages. */
static double expected(double writes, double size)
{
	return writes * (ceil(writes * size / PAGE) + 1) / 2;
}

static size_t add_many(struct lab *l, unsigned writes, unsigned size, unsigned qps,
		       const char *paged, const char *profile)
{
	return lab_point(l, COMMON "num_ops=%u size=%u num_qps=%u paged=%s profile=%s", writes,
			 size, qps, paged, profile);
}

static void add_amplification(struct lab *l, const char *figure, const char *name, size_t point,
			      double writes, double size)
{
	double requests = lab_value(l, point, "requests");
	double packets = lab_value(l, point, "packets");
	char what[100], source[100];

	snprintf(what, sizeof(what), "%s, %.0f WRITEs of %.0f bytes: requests", name, writes, size);
	snprintf(source, sizeof(source), "N (M + 1) / 2 = %.0f", expected(writes, size));
	lab_row(l, figure,
		lab_if(lab_within(requests, 0.8 * expected(writes, size),
				  1.3 * expected(writes, size))),
		source, requests, "", what, "%.0f, %.0f times as many; %.0f packets", requests,
		requests / writes, packets);
}

/* How the figure grows with the number of WRITEs: 1 linearly, 2 quadratically. */
static double exponent(const struct lab *l, size_t small, size_t large, const char *name,
		       double times)
{
	return log(lab_value(l, large, name) / lab_value(l, small, name)) / log(times);
}

static void add_growth(struct lab *l, const char *figure, size_t small, size_t large)
{
	double packets = exponent(l, small, large, "requests", 4);
	double time = exponent(l, small, large, "time_ns", 4);

	lab_row(l, figure, lab_if(packets > 1.7), "as N M, quadratic", packets, "",
		"requests grow with N to the power of", "%.2f", packets);
	lab_row(l, figure, lab_if(time > 1.7), "quadratic", time, "",
		"the time grows with N to the power of", "%.2f: packets take no time here", time);
}

static void add_both(struct lab *l, size_t server, size_t both, size_t none)
{
	double pinned = lab_value(l, none, "requests");
	double one = lab_value(l, server, "requests") / pinned;
	double two = lab_value(l, both, "requests") / pinned;

	lab_row(l, "5.10", lab_if(two < one / 2), "both sides: far fewer than the server alone",
		two, "", "200 queue pairs: requests over pinned memory",
		"both %.2f times, server %.2f", two, one);
}

int lab_writes(struct lab *l)
{
	unsigned many = lab_scaled(l, WRITES, 1024);
	unsigned last = lab_scaled(l, WRITES, 2048), first = last / 4;
	size_t x4 = add_many(l, many, 100, 1, "server", "connectx4");
	size_t x6 = add_many(l, many, 100, 1, "server", "connectx6");
	size_t small = add_many(l, first, 32, 1, "server", "connectx4");
	size_t large = add_many(l, last, 32, 1, "server", "connectx4");
	size_t small_x6 = add_many(l, first, 32, 1, "server", "connectx6");
	size_t large_x6 = add_many(l, last, 32, 1, "server", "connectx6");
	size_t server = add_many(l, many, 100, QPS, "server", "connectx4");
	size_t both = add_many(l, many, 100, QPS, "both", "connectx4");
	size_t none = add_many(l, many, 100, QPS, "none", "connectx4");
	size_t reads = lab_point(l, "num_ops=%u size=100 paged=server ack_code=18 interval=0",
				 many);
	int ret = lab_run(l);

	if (ret)
		return ret;
	add_amplification(l, "5.10b", "connectx4", x4, many, 100);
	lab_row(l, "5.2.4", lab_if(lab_value(l, reads, "requests") < 2 * many),
		"some more for each page", lab_value(l, reads, "requests") / many, "",
		"the same number of READs: requests", "%.0f, %.2f times as many",
		lab_value(l, reads, "requests"), lab_value(l, reads, "requests") / many);
	add_amplification(l, "5.12", "connectx4", large, last, 32);
	add_growth(l, "5.12", small, large);
	add_amplification(l, "A.3", "connectx6", x6, many, 100);
	add_growth(l, "A.3", small_x6, large_x6);
	add_both(l, server, both, none);
	return 0;
}
