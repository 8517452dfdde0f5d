/* SPDX-License-Identifier: BSD-2-Clause */
/* Prints what check has found as JSON, one setting or processor a line. */
#include <inttypes.h>
#include <string.h>

#include "bench/tune/check.h"
#include "bench/tune/state.h"

static const char *const flag_verdicts[] = {
	[TUNE_FLAG_UNKNOWN] = "not measured", [TUNE_FLAG_EQUAL] = "equal",
	[TUNE_FLAG_HELPS] = "helps", [TUNE_FLAG_HARMS] = "harms",
};

static void member(FILE *out, const char *key, const char *value)
{
	fprintf(out, ", \"%s\": ", key);
	tune_json_string(out, value);
}

static void print_settings(const struct check *c, FILE *out)
{
	fputs("  \"settings\": [", out);
	for (size_t i = 0; i < c->count; i++) {
		const struct check_row *r = &c->rows[i];

		fprintf(out, "%s\n    {\"name\": \"%s\"", i ? "," : "", r->setting->name);
		member(out, "verdict", check_verdicts[r->look.verdict]);
		member(out, "today", r->look.today);
		member(out, "better", r->look.better);
		member(out, "limit", r->look.limit);
		member(out, "why", r->setting->why);
		fprintf(out, ", \"changes\": %zu}", r->changes);
	}
	fputs("\n  ]", out);
}

static void print_taken(FILE *out, const char *key, const struct tune_taken *t)
{
	fprintf(out, ", \"%s\": {\"count\": %zu, \"lost_ns\": %" PRIu64 ", \"longest_ns\": %" PRIu64
		", \"period_ns\": %" PRIu64 ", \"regular_ns\": %" PRIu64 "}", key, t->count,
		t->lost_ns, t->longest_ns, t->period_ns, t->regular_ns);
}

static void print_gaps(const struct check *c, FILE *out)
{
	char sentence[320];

	if (c->gaps_err) {
		fputs(",\n  \"gaps_error\": ", out);
		tune_json_string(out, strerror(-c->gaps_err));
		return;
	}
	fprintf(out, ",\n  \"gap_ns\": %d,\n  \"findings\": [", TUNE_GAP_NS);
	for (enum tune_taker t = 0; t < TUNE_TAKERS; t++) {
		check_gaps_sentence(c, t, sentence, sizeof(sentence));
		fputs(t ? ", " : "", out);
		tune_json_string(out, sentence);
	}
	fputs("],\n  \"gaps\": [", out);
	for (size_t i = 0; i < c->gaps_count; i++) {
		const struct tune_gaps *g = &c->gaps[i];

		fprintf(out, "%s\n    {\"cpu\": %d", i ? "," : "", g->cpu);
		if (g->err) {
			member(out, "error", strerror(-g->err));
		} else {
			fprintf(out, ", \"duration_ns\": %" PRIu64, g->duration_ns);
			print_taken(out, "below", &g->by[TUNE_BELOW]);
			print_taken(out, "switched", &g->by[TUNE_SWITCHED]);
		}
		fputc('}', out);
	}
	fputs("\n  ]", out);
}

static void print_latency(const char *key, const struct tune_latency *l, int flag_err,
			  FILE *out)
{
	fprintf(out, ",\n    \"%s\": {", key);
	if (l->err) {
		fputs("\"error\": ", out);
		tune_json_string(out, strerror(-l->err));
	} else {
		fprintf(out, "\"median_ns\": %.1f, \"worst_ns\": %.1f",
			tune_flag_median(l, TUNE_FLAG_OFF), l->worst_ns[TUNE_FLAG_OFF]);
		if (!flag_err)
			fprintf(out, ", \"median_held_ns\": %.1f, \"worst_held_ns\": %.1f",
				tune_flag_median(l, TUNE_FLAG_ON), l->worst_ns[TUNE_FLAG_ON]);
		member(out, "held", flag_verdicts[l->verdict]);
	}
	fputc('}', out);
}

void check_print_json(const struct check *c, FILE *out)
{
	fprintf(out, "{\n  \"processors\": %u,\n  \"virtual\": %s,\n",
		tune_cpus_count(&c->host.online), c->host.virtual ? "true" : "false");
	print_settings(c, out);
	if (c->measured) {
		print_gaps(c, out);
		fputs(",\n  \"cpu_dma_latency\": {\n    \"finding\": ", out);
		tune_json_string(out, check_flag_sentence(&c->wake));
		print_latency("timer", &c->wake.timer, c->wake.flag_err, out);
		print_latency("poll", &c->wake.poll, c->wake.flag_err, out);
		fputs("\n  }", out);
	}
	fputs("\n}\n", out);
}
