/* SPDX-License-Identifier: BSD-2-Clause */
/* Prints what check has found as JSON. */
#include <jansson.h>
#include <string.h>

#include "bench/tune/check.h"

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

void check_print_json(const struct check *c, FILE *out)
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
