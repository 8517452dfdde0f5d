/* SPDX-License-Identifier: BSD-2-Clause */
/* The sub-command check: looks at all settings, measures, and prints what it has found; see
 * tune.h. */
#define LOG_ROOM "tune"
#include "bench/tune/check.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "util/log.h"

#define WIDTH 88

static const char *const verdict_names[TUNE_VERDICTS] = {
	[TUNE_GOOD] = "good", [TUNE_BETTER] = "better", [TUNE_LIMIT] = "limit",
	[TUNE_ABSENT] = "absent",
};

/* ---- for a person ---- */

static const char *duration(double ns, char to[32])
{
	if (ns < 1000)
		snprintf(to, 32, "%.0f ns", ns);
	else if (ns < 100e3)
		snprintf(to, 32, "%.1f us", ns / 1e3);
	else if (ns < 1e6)
		snprintf(to, 32, "%.0f us", ns / 1e3);
	else
		snprintf(to, 32, ns < 100e6 ? "%.1f ms" : "%.0f ms", ns / 1e6);
	return to;
}

/* A paragraph, indented, with a mark before its first line. */
static void paragraph(FILE *out, const char *mark, const char *text)
{
	size_t column = 0;

	while (*text) {
		size_t word = strcspn(text, " ");

		if (!column || column + word + 1 > WIDTH) {
			fprintf(out, column ? "\n%12s" : "%12s", column ? "" : mark);
			column = 12;
		} else {
			fputc(' ', out);
			column++;
		}
		fwrite(text, 1, word, out);
		column += word;
		text += word;
		text += strspn(text, " ");
	}
	fputc('\n', out);
}

static void print_row(const struct check_row *r, FILE *out)
{
	const struct tune_look *l = &r->look;

	fprintf(out, "%-7s %-16s %s\n", l->verdict == TUNE_GOOD ? "ok" :
		l->verdict == TUNE_ABSENT ? "-" : verdict_names[l->verdict],
		r->setting->name, l->today);
	if (l->verdict == TUNE_GOOD || l->verdict == TUNE_ABSENT)
		return;
	if (l->better[0])
		paragraph(out, "better: ", l->better);
	if (l->limit[0])
		paragraph(out, "limit: ", l->limit);
	paragraph(out, "why: ", r->setting->why);
}

/* The processor that lost most of its time. */
static const struct tune_gaps *worst(const struct check *c, enum tune_taker taker)
{
	const struct tune_gaps *w = NULL;

	for (size_t i = 0; i < c->gaps_count; i++)
		if (!c->gaps[i].err &&
		    (!w || c->gaps[i].by[taker].lost_ns > w->by[taker].lost_ns))
			w = &c->gaps[i];
	return w;
}

static const char *culprit(const struct check *c, enum tune_taker taker)
{
	double lost = 0;

	for (size_t i = 0; i < c->gaps_count; i++)
		lost += (double)c->gaps[i].by[taker].lost_ns;
	if (taker == TUNE_SWITCHED)
		return "other programs, threads of the kernel or a quota take";
	if (c->steal_ns * 2 > lost)
		return "your hypervisor takes";
	if (c->host.virtual)
		return "your hypervisor (or interrupts of this system) takes";
	return "interrupts, the kernel or the firmware (SMI) take";
}

void check_gaps_sentence(const struct check *c, enum tune_taker taker, char *to, size_t size)
{
	const struct tune_gaps *w = worst(c, taker);
	const struct tune_taken *t = w ? &w->by[taker] : NULL;
	char a[32], b[32], longest[32], all[64];
	double second;

	if (!t || !t->count) {
		snprintf(to, size, "%s takes the processors away for more than %d us",
			 taker == TUNE_SWITCHED ? "no other program" :
			 c->host.virtual ? "neither the hypervisor nor an interrupt" :
			 "no interrupt", TUNE_GAP_NS / 1000);
		return;
	}
	second = (double)w->duration_ns / 1e9;
	snprintf(all, sizeof(all), "%.2g %% of processor %d",
		 100.0 * (double)t->lost_ns / (double)w->duration_ns, w->cpu);
	duration((double)t->longest_ns, longest);
	if (t->period_ns)
		snprintf(to, size, "%s the processors away for %s every %s (%s, longest %s)",
			 culprit(c, taker), duration((double)t->regular_ns, a),
			 duration((double)t->period_ns, b), all, longest);
	else
		snprintf(to, size, "%s the processors away %.3g times a second, irregularly, for up to %s (%s)",
			 culprit(c, taker), (double)t->count / second, longest, all);
}

static void print_taken(const struct tune_gaps *g, enum tune_taker taker, FILE *out)
{
	const struct tune_taken *t = &g->by[taker];
	char a[32], b[32];

	fprintf(out, "  %4d  %-14s %8zu %10s %9.3f %%  ", g->cpu,
		taker == TUNE_SWITCHED ? "other threads" : "from below", t->count,
		duration((double)t->longest_ns, a),
		100.0 * (double)t->lost_ns / (double)g->duration_ns);
	if (t->period_ns)
		fprintf(out, "%s every %s\n", duration((double)t->regular_ns, a),
			duration((double)t->period_ns, b));
	else
		fputs("no\n", out);
}

static void print_gaps(const struct check *c, FILE *out)
{
	char sentence[320];

	if (c->gaps_err) {
		fprintf(out, "\nhow long processors are taken away: not measured: %s\n",
			strerror(-c->gaps_err));
		return;
	}
	fprintf(out, "\na loop on each processor, all at once; a gap is more than %d us\n",
		TUNE_GAP_NS / 1000);
	fprintf(out, "  %4s  %-14s %8s %10s %11s  %s\n", "CPU", "taken by", "gaps", "longest",
		"lost", "regular");
	for (size_t i = 0; i < c->gaps_count; i++) {
		const struct tune_gaps *g = &c->gaps[i];

		if (g->err) {
			fprintf(out, "  %4d not measured: %s\n", g->cpu, strerror(-g->err));
			continue;
		}
		for (enum tune_taker t = 0; t < TUNE_TAKERS; t++)
			print_taken(g, t, out);
	}
	for (enum tune_taker t = 0; t < TUNE_TAKERS; t++) {
		check_gaps_sentence(c, t, sentence, sizeof(sentence));
		paragraph(out, "=> ", sentence);
	}
}

static void print_latency(const char *what, const struct tune_latency *l, int flag_err,
			  FILE *out)
{
	char a[32], b[32];

	if (l->err) {
		fprintf(out, "  %-34s not measured: %s\n", what,
			l->err == -ENODEV ? "needs two processors" : strerror(-l->err));
		return;
	}
	fprintf(out, "  %-34s %10s %10s", what, duration(tune_flag_median(l, TUNE_FLAG_OFF), a),
		duration(l->worst_ns[TUNE_FLAG_OFF], b));
	if (!flag_err)
		fprintf(out, " %10s %10s", duration(tune_flag_median(l, TUNE_FLAG_ON), a),
			duration(l->worst_ns[TUNE_FLAG_ON], b));
	fputc('\n', out);
}

const char *check_flag_sentence(const struct tune_wake *w)
{
	enum tune_flag_verdict timer = w->timer.verdict, poll = w->poll.verdict;

	if (timer == TUNE_FLAG_UNKNOWN)
		return "whether it helps here was not measured, it needs the right to write /dev/cpu_dma_latency (root)";
	if (timer == TUNE_FLAG_HELPS && poll == TUNE_FLAG_HARMS)
		return "with it sleeping programs wake sooner and polling programs are slower: hold it for those that sleep (busbar tune hold -- PROGRAM), and not for those that poll";
	if (timer == TUNE_FLAG_HARMS || poll == TUNE_FLAG_HARMS)
		return "it makes things worse here: leave it alone, and see that no profile of tuned sets force_latency";
	if (timer == TUNE_FLAG_HELPS || poll == TUNE_FLAG_HELPS)
		return "it helps here: busbar tune hold -- PROGRAM";
	return "no difference that is more than chance: leave it alone, it only costs power";
}

static void print_wake(const struct check *c, FILE *out)
{
	fprintf(out, "\n/dev/cpu_dma_latency %28s %10s %10s %10s\n", "without", "worst",
		c->wake.flag_err ? "" : "with 0", c->wake.flag_err ? "" : "worst");
	print_latency("a sleeping thread wakes late by", &c->wake.timer, c->wake.flag_err, out);
	print_latency("round trip of two polling threads", &c->wake.poll, c->wake.flag_err, out);
	paragraph(out, "=> ", check_flag_sentence(&c->wake));
}

static void print_text(const struct check *c, FILE *out)
{
	unsigned number[TUNE_VERDICTS] = { 0 };
	unsigned online = tune_cpus_count(&c->host.online), changes = 0;

	fprintf(out, "%u processor%s%s\n\n", online, online == 1 ? "" : "s",
		c->host.virtual ? ", below a hypervisor" : "");
	for (size_t i = 0; i < c->count; i++) {
		print_row(&c->rows[i], out);
		number[c->rows[i].look.verdict]++;
		changes += c->rows[i].changes > 0;
	}
	fprintf(out, "\n%u as they should be, %u could be better, %u limited by this host, %u not there\n",
		number[TUNE_GOOD], number[TUNE_BETTER], number[TUNE_LIMIT], number[TUNE_ABSENT]);
	if (changes)
		fprintf(out, "%u of them 'busbar tune apply' can change; --dry-run shows how\n", changes);
	if (c->measured) {
		print_gaps(c, out);
		print_wake(c, out);
	}
}

/* All time that the hypervisor says it gave to others; 0: it does not say. */
static double steal_ns(const struct tune_tree *t)
{
	struct tune_ticks ticks;
	char line[256];
	long rate = sysconf(_SC_CLK_TCK);

	if (rate <= 0 || tune_tree_line(t, "/proc/stat", line, sizeof(line)) ||
	    !tune_ticks_parse(line, &ticks))
		return 0;
	return (double)ticks.stolen * 1e9 / (double)rate;
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
			"verdict", verdict_names[r->look.verdict], "today", r->look.today,
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
		(o->json ? print_json : print_text)(&c, out);
	}
	free(c.rows);
	free(c.gaps);
	return err ? 1 : 0;
}
