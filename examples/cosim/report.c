/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Coupled and undivided network beside each other, and beside the theory. Errors are
 * those of the source half's voltage: before the switch closes and at the end, in
 * steady state, root mean square over whole periods; around the switch its largest.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "options.h"
#include "theory.h"

struct half_log {
	uint64_t steps, late;
	int64_t *used, *latency_ns;
	double *input, *output;
};

static void free_log(struct half_log *l)
{
	free(l->used);
	free(l->latency_ns);
	free(l->input);
	free(l->output);
}

static int read_log(struct half_log *l, const char *path)
{
	FILE *f = fopen(path, "r");
	unsigned long long steps, late;
	long long used, latency;
	uint64_t k = 0;

	*l = (struct half_log){ 0 };
	if (!f) {
		fprintf(stderr, "cosim: %s: %s\n", path, strerror(errno));
		return -1;
	}
	if (fscanf(f, "%llu %llu", &steps, &late) != 2 || steps > 600000000)
		goto err_close;
	l->steps = steps;
	l->late = late;
	l->used = calloc(steps, sizeof(*l->used));
	l->latency_ns = calloc(steps, sizeof(*l->latency_ns));
	l->input = calloc(steps, sizeof(*l->input));
	l->output = calloc(steps, sizeof(*l->output));
	if (!l->used || !l->latency_ns || !l->input || !l->output)
		goto err_close;
	while (k < steps && fscanf(f, "%lld %lf %lf %lld", &used, &l->input[k],
				   &l->output[k], &latency) == 4) {
		l->used[k] = used;
		l->latency_ns[k++] = latency;
	}
	if (k != steps)
		goto err_close;
	fclose(f);
	return 0;
err_close:
	fprintf(stderr, "cosim: %s is no complete log of a half\n", path);
	fclose(f);
	free_log(l);
	return -1;
}

static int compare_numbers(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return x < y ? -1 : x > y;
}

/* Median of those that are there; sorts them. */
static double median_us(struct half_log *l)
{
	uint64_t first = 0;

	qsort(l->latency_ns, l->steps, sizeof(l->latency_ns[0]),
	      compare_numbers);
	while (first < l->steps && l->latency_ns[first] < 0)
		first++;
	return first == l->steps ? NAN :
		(double)l->latency_ns[first + (l->steps - first) / 2] / 1e3;
}

/* Average distance in [from, to) between a step and the one its input was of. */
static double mean_delay(const struct half_log *l, uint64_t from, uint64_t to)
{
	double sum = 0;

	for (uint64_t k = from; k < to; k++)
		sum += (double)((int64_t)k - l->used[k]);
	return sum / (double)(to - from);
}

/* Inputs of another step than the wanted one. */
static uint64_t count_overdue(const struct half_log *l, unsigned behind)
{
	uint64_t overdue = 0;

	for (uint64_t k = behind; k < l->steps; k++)
		overdue += l->used[k] != (int64_t)(k - behind);
	return overdue;
}

/* Inputs that are not what the other half sent, beyond single precision, which
 * some formats have. */
static unsigned long count_altered(const struct half_log *l,
				   const struct half_log *from)
{
	unsigned long altered = 0;

	for (uint64_t k = 0; k < l->steps; k++) {
		double sent;

		if (l->used[k] < 0 || (uint64_t)l->used[k] >= from->steps)
			continue;
		sent = from->output[l->used[k]];
		altered += isfinite(sent) &&
			   !(fabs(l->input[k] - sent) <= 1e-6 * fabs(sent));
	}
	return altered;
}

/* The last whole periods in [from, to), at most five and at least a quarter of
 * the time behind `from` for the transient. */
static uint64_t periods_before(const struct network *n, uint64_t from,
			       uint64_t to)
{
	double period = 1 / (n->frequency_hz * n->step_s);
	double count = floor((double)(to - from) * 0.75 / period);
	uint64_t steps = (uint64_t)(fmax(1, fmin(count, 5)) * period + 0.5);

	return to - from > steps ? to - steps : from;
}

static uint64_t switch_step(const struct options *o)
{
	uint64_t steps = options_steps(o), k = 0;

	while (k < steps && !network_switched(&o->net, k))
		k++;
	return k;
}

static void write_plot(const struct options *o, const struct waveform *coupled,
		       const struct waveform *whole)
{
	FILE *f = o->plot ? fopen(o->plot, "w") : NULL;

	if (!f)
		return;
	fprintf(f, "# time/s v/V v-undivided/V i/A i-undivided/A\n");
	for (uint64_t k = 0; k < options_steps(o); k++)
		fprintf(f, "%.7f %.9g %.9g %.9g %.9g\n", network_time(&o->net, k),
			coupled->v[k], whole->v[k], coupled->i[k], whole->i[k]);
	fclose(f);
}

void report_heading(void)
{
	printf("%-12s %7s %9s %7s %7s %9s | %9s %9s | %9s %9s | %9s | %s\n",
	       "medium", "step us", "latency", "steps", "steps", "loop",
	       "error %", "theory", "error %", "theory", "peak %", "loop");
	printf("%-12s %7s %9s %7s %7s %9s | %9s %9s | %9s %9s | %9s | %s\n", "",
	       "", "p50 us", "v", "i", "Td us", "open", "", "closed", "",
	       "switching", "");
}

/* What it did, and up to which delay of the loop the theory has it stable. Theory
 * knows no delay that changes: with one input too late it is no measure. */
static const char *verdict(const struct options *o, double error,
			   double overdue)
{
	static char text[96];
	struct theory_loop open = theory_loop(&o->net, false);
	struct theory_loop closed = theory_loop(&o->net, true);
	double limit_s = fmin(open.limit_s, closed.limit_s);
	bool grew = !(error < 1); /* or is no number */

	if (overdue > 0)
		snprintf(text, sizeof(text), "%.2g %% of the inputs came too late",
			 100 * overdue);
	else if (isinf(limit_s))
		snprintf(text, sizeof(text), "%s, theory: for any delay",
			 grew ? "unstable" : "stable");
	else
		snprintf(text, sizeof(text), "%s, theory: up to %.0f us",
			 grew ? "unstable" : "stable", limit_s * 1e6);
	return text;
}

struct delays {
	double v[2], i[2]; /* steps; before and after the switch */
};

static int print_row(const struct options *o, const struct waveform *coupled,
		     const struct delays *d, double latency_us,
		     double overdue)
{
	uint64_t steps = options_steps(o), at = switch_step(o);
	uint64_t open = periods_before(&o->net, 0, at);
	uint64_t closed = periods_before(&o->net, at, steps);
	uint64_t near = at + (uint64_t)(0.02 / o->net.step_s);
	struct waveform whole = { calloc(steps, sizeof(double)),
				  calloc(steps, sizeof(double)) };
	double e_open, e_closed = NAN, peak = NAN, t_closed = NAN, loop_steps;

	if (!whole.v || !whole.i) {
		free(whole.v);
		free(whole.i);
		return 1;
	}
	couple_undivided(&o->net, steps, &whole);
	e_open = couple_rms_error(coupled->v, whole.v, open, at);
	if (at < steps) {
		e_closed = couple_rms_error(coupled->v, whole.v, closed, steps);
		peak = couple_peak_error(coupled->v, whole.v, at,
					 near < steps ? near : steps);
		t_closed = theory_error(&o->net, true, d->v[1], d->i[1]).voltage;
	}
	loop_steps = d->v[0] + d->i[0];
	printf("%-12s %7.0f %9.1f %7.2f %7.2f %9.1f | %9.3g %9.3g | %9.3g %9.3g | %9.3g | %s\n",
	       o->label, o->net.step_s * 1e6, latency_us, d->v[0], d->i[0],
	       loop_steps * o->net.step_s * 1e6, 100 * e_open,
	       100 * theory_error(&o->net, false, d->v[0], d->i[0]).voltage,
	       100 * e_closed, 100 * t_closed, 100 * peak,
	       verdict(o, at < steps ? e_open + e_closed : e_open,
		       overdue));
	write_plot(o, coupled, &whole);
	free(whole.v);
	free(whole.i);
	return 0;
}

int report_offline(const struct options *o)
{
	uint64_t steps = options_steps(o);
	struct waveform w = { calloc(steps, sizeof(double)),
			      calloc(steps, sizeof(double)) };
	struct delays d = { { o->delay_v, o->delay_v },
			    { o->delay_i, o->delay_i } };
	int ret = 1;

	if (w.v && w.i) {
		couple_delayed(&o->net, o->delay_v, o->delay_i, steps, &w);
		ret = print_row(o, &w, &d, NAN, 0);
	}
	free(w.v);
	free(w.i);
	return ret;
}

int report_compare(const char *source_log, const char *load_log,
		   const struct options *o)
{
	struct half_log source, load;
	struct waveform w;
	struct delays d;
	uint64_t at = switch_step(o), steps = options_steps(o), from[2];
	unsigned long altered;
	int ret = 1;

	if (read_log(&source, source_log))
		return 1;
	if (read_log(&load, load_log)) {
		free_log(&source);
		return 1;
	}
	if (source.steps != steps || load.steps != steps) {
		fprintf(stderr, "cosim: the logs are of other steps or durations\n");
		goto out;
	}
	from[0] = periods_before(&o->net, 0, at);
	from[1] = at < steps ? periods_before(&o->net, at, steps) : from[0];
	for (int i = 0; i < 2; i++) {
		uint64_t to = i ? steps : at;

		d.v[i] = mean_delay(&load, from[i], to);
		d.i[i] = mean_delay(&source, from[i], to);
	}
	w = (struct waveform){ source.output, load.output };
	altered = count_altered(&source, &load) + count_altered(&load, &source);
	ret = print_row(o, &w, &d, (median_us(&source) + median_us(&load)) / 2,
			(double)(count_overdue(&source, o->behind) +
				 count_overdue(&load, o->behind)) /
				(2.0 * (double)steps));
	if (altered) {
		printf("%-12s %lu values were altered on their way\n", "",
		       altered);
		ret = 1;
	}
out:
	free_log(&source);
	free_log(&load);
	return ret;
}

void report_theory(const struct options *o)
{
	static const char *const names[] = { "open", "closed" };
	double v, i;

	printf("step %.0f us; rho = Z1/Z2, seen from the interface\n",
	       o->net.step_s * 1e6);
	for (int c = 0; c < 2; c++) {
		struct theory_loop l = theory_loop(&o->net, c);

		theory_steady(&o->net, c, &v, &i);
		printf("switch %-6s  %.1f V, %.1f A; |rho| at most %.3f, at %.0f Hz: ",
		       names[c], v, i, l.ratio_max, l.ratio_max_hz);
		if (l.any_delay)
			printf("stable for any delay\n");
		else
			printf("unstable from a loop delay of %.0f us on\n",
			       l.limit_s * 1e6);
	}
}
