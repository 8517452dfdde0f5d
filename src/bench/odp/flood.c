/* SPDX-License-Identifier: BSD-2-Clause */
/* Packet flood over the number of queue pairs (5.2, figure 5.7). */
#include "bench/odp/lab.h"

#include "util/container_of.h"

/* The source has 8192 READs of 100 bytes, which are 200 pages. */
enum { READS = 8192, SIZE = 100, PAGE = 4096 };
#define COMMON "size=100 ack_code=18 interval=1000"

static const unsigned qps[] = { 1, 4, 10, 32, 128 };
enum { NUMBERS = ARRAY_SIZE(qps) };

struct runs {
	unsigned ops;
	size_t none[NUMBERS], client[NUMBERS]; /* points */
	size_t both, server, server_x6, ideal; /* with the most queue pairs */
};

static size_t add_run(struct lab *l, unsigned ops, unsigned count, const char *paged,
		      const char *profile)
{
	return lab_point(l, COMMON " num_ops=%u num_qps=%u paged=%s profile=%s", ops, count,
			 paged, profile);
}

static void add_runs(struct lab *l, struct runs *r)
{
	const unsigned most = qps[NUMBERS - 1];

	r->ops = lab_scaled(l, READS, 2 * most);
	for (size_t i = 0; i < NUMBERS; i++) {
		r->none[i] = add_run(l, r->ops, qps[i], "none", "connectx4");
		r->client[i] = add_run(l, r->ops, qps[i], "client", "connectx4");
	}
	r->both = add_run(l, r->ops, most, "both", "connectx4");
	r->server = add_run(l, r->ops, most, "server", "connectx4");
	r->server_x6 = add_run(l, r->ops, most, "server", "connectx6");
	r->ideal = add_run(l, r->ops, most, "client", "ideal");
}

static double packets_of(const struct lab *l, size_t point)
{
	return lab_value(l, point, "packets");
}

/* What all faults take one behind the other: 250 to 1000 us each. */
static double faults_ms(const struct runs *r, double each_us)
{
	return (double)((r->ops * SIZE + PAGE - 1) / PAGE) * each_us / 1000;
}

static void add_times(struct lab *l, const struct runs *r)
{
	char source[80], what[80];

	for (size_t i = 0; i < NUMBERS; i++) {
		double ms = lab_ms(l, r->client[i]);
		/* What an adapter needs that has no flood: up to 10 queue pairs did. */
		bool cheap = ms <= faults_ms(r, 1000);

		if (qps[i] <= 10)
			snprintf(source, sizeof(source), "about the faults: %.0f to %.0f ms",
				 faults_ms(r, 250), faults_ms(r, 1000));
		else
			snprintf(source, sizeof(source), "far more than the faults (%.0f ms)",
				 faults_ms(r, 1000));
		snprintf(what, sizeof(what), "%u READs, %u queue pairs, client: time", r->ops,
			 qps[i]);
		lab_row(l, "5.7a", lab_if(cheap == (qps[i] <= 10)), source, ms, "ms", what,
			"%.0f ms", ms);
	}
	snprintf(what, sizeof(what), "the same, over the time of pinned memory");
	lab_row(l, "5.7a", LAB_NOT_IN_SOURCE, "up to 3000 times; its baseline is not in the text",
		lab_ms(l, r->client[NUMBERS - 1]) / lab_ms(l, r->none[NUMBERS - 1]), "", what,
		"%.0f times", lab_ms(l, r->client[NUMBERS - 1]) / lab_ms(l, r->none[NUMBERS - 1]));
}

static void add_packets(struct lab *l, const struct runs *r)
{
	for (size_t i = 0; i < NUMBERS; i++) {
		double times = packets_of(l, r->client[i]) / packets_of(l, r->none[i]);
		bool most = i == NUMBERS - 1;
		char what[80];

		snprintf(what, sizeof(what), "%u queue pairs, client: packets over pinned memory",
			 qps[i]);
		lab_row(l, "5.7b", most ? lab_if(times >= 100) : LAB_NOT_IN_SOURCE,
			most ? "hundreds of times" : "", times, "", what, "%.1f times", times);
	}
}

static void add_sides(struct lab *l, const struct runs *r)
{
	double client = packets_of(l, r->client[NUMBERS - 1]);
	double both = packets_of(l, r->both) / packets_of(l, r->none[NUMBERS - 1]);
	double timeouts = lab_value(l, r->server, "timeouts");
	double ideal = lab_ms(l, r->ideal);

	lab_row(l, "5.7b", lab_if(both >= 100), "a flood, too", both, "",
		"both sides, most queue pairs: packets over pinned memory", "%.1f times", both);
	lab_row(l, "5.7b", lab_if(packets_of(l, r->server) < client / 10), "no flood",
		packets_of(l, r->server), "", "server, most queue pairs: packets",
		"%.0f, at the client %.0f", packets_of(l, r->server), client);
	lab_row(l, "5.7a", lab_if(timeouts > 0), "slow by timeouts of damming", timeouts, "",
		"server, most queue pairs: timeouts", "%.0f, %.0f ms", timeouts,
		lab_ms(l, r->server));
	lab_row(l, "A.1", lab_if(lab_value(l, r->server_x6, "timeouts") <= 0), "none",
		lab_value(l, r->server_x6, "timeouts"), "", "the same on connectx6: timeouts",
		"%.0f, %.0f ms", lab_value(l, r->server_x6, "timeouts"), lab_ms(l, r->server_x6));
	lab_row(l, "-", LAB_NOT_IN_SOURCE, "", ideal, "ms",
		"client, most queue pairs, by profile ideal", "%.0f ms", ideal);
}

int lab_flood(struct lab *l)
{
	struct runs r;
	int ret;

	add_runs(l, &r);
	ret = lab_run(l);
	if (ret)
		return ret;
	add_times(l, &r);
	add_packets(l, &r);
	add_sides(l, &r);
	return 0;
}

/* ---- queue pairs that do not learn that a page is there (figure 5.9; appendix A, figure A.2) ---- */

/* 32 bytes on each of 128 queue pairs are one page. The fault takes 1 ms there. */
#define STALE "num_qps=128 size=32 paged=client ack_code=18 fault=1000000 list=on "
#define FAULT_NS 1e6

#define PAGE_OPS 128
/* Far more than a READ takes, and less than until one is sent again. */
#define LATE_NS 3e5

/* Requests of the first page that were not done soon after it was there. */
static double stale(const struct lab *l, size_t point)
{
	const json_t *trial = json_array_get(json_array_get(l->results, point), 0);
	double count = 0;

	for (size_t i = 0; i < PAGE_OPS; i++) {
		double posted = json_number_value(
			json_array_get(json_object_get(trial, "posted_ns"), i));
		double done = json_number_value(
			json_array_get(json_object_get(trial, "done_ns"), i));

		count += done > (posted > FAULT_NS ? posted : FAULT_NS) + LATE_NS;
	}
	return count;
}

static void add_page(struct lab *l, size_t point)
{
	double count = stale(l, point), ms = lab_ms(l, point);

	lab_row(l, "5.9", lab_if(lab_within(count, 20, 40)), "30 (the model is fitted to this)",
		count, "", "128 READs, 33 us apart: not done when the page is there", "%.0f",
		count);
	lab_row(l, "5.9", lab_if(lab_within(ms, 4, 8)), "6 ms (the model is fitted to this)", ms,
		"ms", "the same: the last is done", "%.1f ms", ms);
}

int lab_stale(struct lab *l)
{
	size_t page = lab_point(l, STALE "num_ops=128 interval=33000");
	size_t dense = lab_point(l, STALE "num_ops=128 interval=1000");
	size_t pages = lab_point(l, STALE "num_ops=512 interval=1000");
	size_t x6 = lab_point(l, STALE "num_ops=128 interval=1000 profile=connectx6");
	size_t x6_two = lab_point(l, STALE "num_ops=256 interval=1000 profile=connectx6");
	size_t x6_four = lab_point(l, STALE "num_ops=512 interval=1000 profile=connectx6");
	int ret = lab_run(l);

	if (ret)
		return ret;
	add_page(l, page);
	lab_row(l, "-", LAB_NOT_IN_SOURCE, "", lab_ms(l, dense), "ms",
		"128 READs, 1 us apart: the last is done", "%.1f ms", lab_ms(l, dense));
	lab_row(l, "5.9", lab_if(lab_ms(l, pages) > 4 * lab_ms(l, page)), "much longer than 128",
		lab_ms(l, pages), "ms", "512 READs: the last is done", "%.0f ms", lab_ms(l, pages));
	lab_row(l, "A.2", lab_if(stale(l, x6) <= 0), "0", stale(l, x6), "",
		"connectx6, 128 READs: not done when the page is there", "%.0f", stale(l, x6));
	lab_row(l, "A.2", lab_if(stale(l, x6_two) > 0), "some", stale(l, x6_two), "",
		"connectx6, 256 READs: of the first page likewise", "%.0f", stale(l, x6_two));
	lab_row(l, "A.2", lab_if(lab_within(lab_ms(l, x6_four), 200, 400)),
		"about 300 ms (the model is fitted to this)", lab_ms(l, x6_four), "ms",
		"connectx6, 512 READs: the last is done", "%.0f ms", lab_ms(l, x6_four));
	return 0;
}
