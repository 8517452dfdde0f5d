/* SPDX-License-Identifier: BSD-2-Clause */
/* The sub-command check: looks at all settings, measures, and prints JSON; see tune.h. */
#define LOG_ROOM "tune"
#include "bench/tune/check.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "util/container_of.h"
#include "util/log.h"

const char *const check_verdicts[TUNE_VERDICTS] = {
	[TUNE_GOOD] = "good", [TUNE_BETTER] = "better", [TUNE_LIMIT] = "limit",
	[TUNE_ABSENT] = "absent",
};

/* All time that the hypervisor says it gave to others; 0: it does not say. */
static double steal_ns(const struct tune_tree *t)
{
	unsigned long long ticks;
	char line[256];
	long rate = sysconf(_SC_CLK_TCK);

	if (rate <= 0 || tune_tree_line(t, "/proc/stat", line, sizeof(line)) ||
	    sscanf(line, "cpu %*u %*u %*u %*u %*u %*u %*u %llu", &ticks) != 1)
		return 0;
	return (double)ticks * 1e9 / (double)rate;
}

static int look_all(const struct tune_options *o, struct check *c)
{
	const struct tune_setting *s = NULL;

	while ((s = tune_setting_next(s))) {
		struct tune_profile profile = { 0 };
		struct check_row *more;
		int err;

		if (!tune_wanted(o, s))
			continue;
		more = realloc(c->rows, (c->count + 1) * sizeof(*more));
		if (!more)
			return -ENOMEM;
		c->rows = more;
		more[c->count].setting = s;
		tune_look(&c->host, s, &profile, &more[c->count].look);
		more[c->count].changes = s->applies && !s->asked_only &&
					 more[c->count].look.better[0] ? profile.count : 0;
		c->count++;
		err = profile.err;
		tune_profile_free(&profile);
		if (err)
			return err;
	}
	return 0;
}

static void measure(const struct tune_options *o, struct check *c)
{
	const struct tune_cpus *cpus = tune_cpus_count(&c->host.cpus) ?
				       &c->host.cpus : &c->host.online;
	double before = steal_ns(&c->host.tree);

	c->measured = true;
	c->gaps_err = tune_gaps_measure(cpus, o->measure_ns, &c->gaps, &c->gaps_count);
	c->steal_ns = steal_ns(&c->host.tree) - before;
	tune_wake_measure(&c->wake);
}

/* ---- as JSON ---- */

static const char *const flag_verdicts[] = {
	[TUNE_FLAG_UNKNOWN] = "not measured", [TUNE_FLAG_EQUAL] = "equal",
	[TUNE_FLAG_HELPS] = "helps", [TUNE_FLAG_HARMS] = "harms",
};

static json_t *settings(const struct check *c)
{
	json_t *all = json_array();

	for (size_t i = 0; i < c->count; i++) {
		const struct check_row *r = &c->rows[i];

		json_array_append_new(all, json_pack(
			"{s:s, s:s, s:s, s:s, s:s, s:s, s:I}", "name", r->setting->name,
			"verdict", check_verdicts[r->look.verdict], "today", r->look.today,
			"better", r->look.better, "limit", r->look.limit, "why",
			r->setting->why, "changes", (json_int_t)r->changes));
	}
	return all;
}

static json_t *taken(const struct tune_taken *t)
{
	return json_pack("{s:I, s:I, s:I, s:I, s:I}", "count", (json_int_t)t->count, "lost_ns",
			 (json_int_t)t->lost_ns, "longest_ns", (json_int_t)t->longest_ns,
			 "period_ns", (json_int_t)t->period_ns, "regular_ns",
			 (json_int_t)t->regular_ns);
}

static json_t *gaps_of(const struct tune_gaps *g)
{
	if (g->err)
		return json_pack("{s:i, s:s}", "cpu", g->cpu, "error", strerror(-g->err));
	return json_pack("{s:i, s:I, s:o, s:o}", "cpu", g->cpu, "duration_ns",
			 (json_int_t)g->duration_ns, "below", taken(&g->by[TUNE_BELOW]),
			 "switched", taken(&g->by[TUNE_SWITCHED]));
}

static void add_gaps(const struct check *c, json_t *all)
{
	json_t *findings = json_array(), *gaps = json_array();
	char sentence[320];

	if (c->gaps_err)
		json_object_set_new(all, "gaps_error", json_string(strerror(-c->gaps_err)));
	for (enum tune_taker t = 0; !c->gaps_err && t < TUNE_TAKERS; t++) {
		check_gaps_sentence(c, t, sentence, sizeof(sentence));
		json_array_append_new(findings, json_string(sentence));
	}
	for (size_t i = 0; !c->gaps_err && i < c->gaps_count; i++)
		json_array_append_new(gaps, gaps_of(&c->gaps[i]));
	if (!c->gaps_err)
		json_object_update_new(all, json_pack("{s:i, s:O, s:O}", "gap_ns", TUNE_GAP_NS,
						      "findings", findings, "gaps", gaps));
	json_decref(findings);
	json_decref(gaps);
}

static json_t *latency(const struct tune_latency *l, int flag_err)
{
	json_t *o;

	if (l->err)
		return json_pack("{s:s}", "error", strerror(-l->err));
	o = json_pack("{s:f, s:f}", "median_ns", tune_flag_median(l, TUNE_FLAG_OFF), "worst_ns",
		      l->worst_ns[TUNE_FLAG_OFF]);
	if (!flag_err)
		json_object_update_new(o, json_pack("{s:f, s:f}", "median_held_ns",
						    tune_flag_median(l, TUNE_FLAG_ON),
						    "worst_held_ns",
						    l->worst_ns[TUNE_FLAG_ON]));
	json_object_set_new(o, "held", json_string(flag_verdicts[l->verdict]));
	return o;
}

static void print_json(const struct check *c, FILE *out)
{
	json_t *all = json_pack("{s:I, s:b, s:o}", "processors",
				(json_int_t)tune_cpus_count(&c->host.online), "virtual",
				c->host.virtual, "settings", settings(c));

	if (c->measured) {
		add_gaps(c, all);
		json_object_set_new(all, "cpu_dma_latency", json_pack(
			"{s:s, s:o, s:o}", "finding", check_flag_sentence(&c->wake), "timer",
			latency(&c->wake.timer, c->wake.flag_err), "poll",
			latency(&c->wake.poll, c->wake.flag_err)));
	}
	json_dumpf(all, out, JSON_INDENT(2) | JSON_REAL_PRECISION(8));
	fputc('\n', out);
	json_decref(all);
}

/* ---- the sub-command ---- */

int tune_check_main(const struct tune_options *o, FILE *out)
{
	struct check c = { 0 };
	int err = tune_prepare(o, &c.host);

	if (!err) {
		err = look_all(o, &c);
		if (err)
			log_error("looking at the settings: %s", strerror(-err));
	}
	if (!err) {
		/* A copy of files is not the machine that would be measured. */
		if (!o->no_measure && !o->root[0])
			measure(o, &c);
		(o->json ? print_json : check_print_text)(&c, out);
	}
	free(c.rows);
	free(c.gaps);
	return err ? 1 : 0;
}
