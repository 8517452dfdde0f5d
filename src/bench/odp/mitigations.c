/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a program can do by itself, each alone (7.1 of the source, which has no figures of it). The
 * time lost is that beyond the same with pinned memory; a mitigation holds if a tenth is left.
 */
#include "bench/odp/lab.h"

#include "util/container_of.h"

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
	unsigned ops = (unsigned)(READS * l->scale);

	ops = p->ops ? p->ops : ops < LEAST ? LEAST : ops;
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
	lab_row(l, &(struct lab_row){ "-", helps ? lab_if(value <= unhelped / 10) :
					   LAB_NOT_IN_SOURCE,
				      source, value, p->unit },
		what, "%.*f %s more than pinned", *p->unit ? 1 : 0, value,
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
