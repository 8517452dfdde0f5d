/* SPDX-License-Identifier: BSD-2-Clause */
/* Prints what check has found, for a person. */
#include <errno.h>
#include <string.h>

#include "bench/tune/check.h"
#include "util/container_of.h"

#define WIDTH 88

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
		l->verdict == TUNE_ABSENT ? "-" : check_verdicts[l->verdict],
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

void check_print_text(const struct check *c, FILE *out)
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
