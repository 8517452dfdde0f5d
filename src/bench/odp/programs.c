/* SPDX-License-Identifier: BSD-2-Clause */
/* What applications meet (6), and what a program can do by itself (7.1). */
#include "bench/odp/lab.h"

#include "util/container_of.h"

/*
 * Applications, as far as the source gives their packets: a READ and then a SEND, as ArgoDSM takes
 * its global lock by MPI over UCX. UCX's settings are RNR code 13 and ACK timeout code 18.
 */
#define COMMON "paged=server second=send rnr_code=13 ack_code=18 "
#define CODE_18_MS 1073.7

int lab_applications(struct lab *l)
{
	size_t lost = lab_point(l, COMMON "interval=3000000");
	size_t later = lab_point(l, COMMON "interval=8000000");
	size_t x6 = lab_point(l, COMMON "interval=3000000 profile=connectx6");
	int ret = lab_run(l);
	double ms, timeouts;

	if (ret)
		return ret;
	ms = lab_ms(l, lost);
	timeouts = lab_value(l, lost, "timeouts");
	lab_row(l, "6.2", lab_if(timeouts == 1 && lab_within(ms, CODE_18_MS, 4 * CODE_18_MS)),
		"1661 ms, one timeout; 1074 to 4295 by the rule", ms, "ms",
		"SEND posted in the wait of the READ", "%.0f ms, %.0f timeout", ms, timeouts);
	ms = lab_ms(l, later);
	lab_row(l, "6.1", lab_if(lab_value(l, later, "timeouts") == 0),
		"runs are of two kinds, fast and slow", ms, "ms", "SEND posted behind it",
		"%.1f ms, %.0f timeouts", ms, lab_value(l, later, "timeouts"));
	ms = lab_ms(l, x6);
	lab_row(l, "-", LAB_NOT_IN_SOURCE, "", ms, "ms", "SEND posted in the wait, on connectx6",
		"%.1f ms, %.0f timeouts", ms, lab_value(l, x6, "timeouts"));
	return 0;
}

/*
 * What a program can do by itself, each alone; the source has no figures of it. The time lost is
 * that beyond the same with pinned memory; a mitigation holds if a tenth is left.
 */
enum { NOTHING, RNR, PREFETCH, DUMMY, ONE, FOUR, GATE, REISSUE, HELPS };

static const struct help {
	const char *name, *words;
} help[HELPS] = {
	[NOTHING] = { "nothing", "" },
	[RNR] = { "RNR code 1", "rnr_code=1" },
	[PREFETCH] = { "prefetch", "pre_touch=all" },
	[DUMMY] = { "a dummy WRITE after 5 ms", "mitigation=dummy" },
	[ONE] = { "one request until its page is there", "mitigation=window window=1" },
	[FOUR] = { "4 requests until their pages are there", "mitigation=window window=4" },
	[GATE] = { "one queue pair for each new page", "mitigation=gate" },
	[REISSUE] = { "READ again on a spare queue pair after 5 ms", "mitigation=reissue" },
};

static const struct pitfall {
	const char *name, *words;
	const char *figure, *unit; /* what is measured of it */
	double scale;              /* of the figure */
	unsigned ops, qps;         /* 0 ops: READS, scaled */
	unsigned helps;            /* bits of `help` that leave a tenth at most */
	int left_out;              /* one of `help` that makes no sense here */
} pitfalls[] = {
	{ "damming, server, 2 READs 1 ms apart", "paged=server", "time_ns", "ms", 1e6, 2, 1,
	  1 << RNR | 1 << PREFETCH | 1 << DUMMY | 1 << ONE | 1 << GATE | 1 << REISSUE, FOUR },
	{ "damming, client, 2 READs 0.3 ms apart", "paged=client interval=300000", "time_ns", "ms",
	  1e6, 2, 1, 1 << PREFETCH | 1 << DUMMY | 1 << ONE | 1 << GATE | 1 << REISSUE, FOUR },
	{ "flood, client, 128 queue pairs", "paged=client interval=1000 ack_code=18", "time_ns",
	  "ms", 1e6, 0, 128, 1 << PREFETCH | 1 << GATE | 1 << REISSUE, FOUR },
	{ "WRITEs, server, all at once", "operation=write paged=server interval=0 ack_code=18",
	  "requests", "", 1, 0, 1, 1 << PREFETCH | 1 << ONE | 1 << FOUR | 1 << GATE, REISSUE },
};
enum { READS = 8192, LEAST = 512, PITFALLS = ARRAY_SIZE(pitfalls) };

static size_t add_point(struct lab *l, const struct pitfall *p, const char *words)
{
	unsigned ops = p->ops ? p->ops : lab_scaled(l, READS, LEAST);

	return lab_point(l, "%s num_ops=%u num_qps=%u %s", p->words, ops, p->qps, words);
}

static void add_row(struct lab *l, const struct pitfall *p, int number, double value,
		    double unhelped)
{
	bool helps = p->helps >> number & 1;
	char what[120], source[60] = "";

	snprintf(what, sizeof(what), "%s: %s", p->name, help[number].name);
	if (helps)
		snprintf(source, sizeof(source), "a tenth of %.0f at most", unhelped);
	lab_row(l, "-", helps ? lab_if(value <= unhelped / 10) : LAB_NOT_IN_SOURCE, source, value,
		p->unit, what, "%.*f %s more than pinned", *p->unit ? 1 : 0, value,
		*p->unit ? p->unit : "packets");
}

int lab_mitigations(struct lab *l)
{
	size_t points[PITFALLS][HELPS], pinned[PITFALLS];
	int ret;

	for (int i = 0; i < PITFALLS; i++) {
		pinned[i] = add_point(l, &pitfalls[i], "paged=none");
		for (int k = 0; k < HELPS; k++)
			if (k != pitfalls[i].left_out)
				points[i][k] = add_point(l, &pitfalls[i], help[k].words);
	}
	ret = lab_run(l);
	for (int i = 0; !ret && i < PITFALLS; i++) {
		const struct pitfall *p = &pitfalls[i];
		double base = lab_value(l, pinned[i], p->figure);
		double unhelped = lab_value(l, points[i][NOTHING], p->figure) - base;

		for (int k = 0; k < HELPS; k++)
			if (k != p->left_out)
				add_row(l, p, k,
					(lab_value(l, points[i][k], p->figure) - base) / p->scale,
					unhelped / p->scale);
	}
	return ret;
}
