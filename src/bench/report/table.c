/* SPDX-License-Identifier: BSD-2-Clause */
/* Tables of a report; see table.h. */
#include "bench/report/table.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench/report/text.h"
#include "util/container_of.h"

#define DEPTH_MAX 8

static void begin(FILE *out)
{
	/* Reachable by the keyboard, because it scrolls. */
	fputs("<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"table\"><table>\n",
	      out);
}

static void end(FILE *out)
{
	fputs("</table></div>\n", out);
}

static void head(FILE *out, const char *const *names)
{
	fputs("<tr>", out);
	for (; *names; names++)
		report_html(out, "<th scope=\"col\">%s</th>", *names);
	fputs("</tr>\n", out);
}

static void time_cell(FILE *out, double ns)
{
	char text[32];

	report_html(out, "<td>%s</td>", report_text_time(text, ns));
}

static void number_cell(FILE *out, double value, const char *unit)
{
	char text[32];

	report_html(out, "<td>%s%s%s</td>", report_text_number(text, value),
		    isfinite(value) && *unit ? " " : "", isfinite(value) ? unit : "");
}

void table_latencies(FILE *out, const struct figure_curve *curves, size_t count,
		     double floor_ns)
{
	static const char *const names[] = {
		"", "number", "min", "10 %", "median", "90 %", "99 %", "99.9 %", "99.99 %",
		"99.999 %", "max", "above the limit", "skewness", "median, in floors",
		"other hardware: median", NULL,
	};
	static const size_t percentiles[] = { 0, 2, 4, 6, 7, 8, 9 };
	char text[32], limit[32];

	begin(out);
	head(out, names);
	for (size_t i = 0; i < count; i++) {
		const struct statistics *s = &curves[i].series->statistics;

		report_html(out, "<tr><th scope=\"row\">%s</th><td>%zu</td>", curves[i].label,
			    s->count);
		time_cell(out, (double)s->min);
		for (size_t k = 0; k < ARRAY_SIZE(percentiles); k++)
			time_cell(out, (double)s->percentile[percentiles[k]]);
		time_cell(out, (double)s->max);
		if (isnan(s->share_above))
			fputs("<td>-</td>", out);
		else
			report_html(out, "<td>%s %% > %s</td>",
				    report_text_number(text, 100 * s->share_above),
				    report_text_time(limit, (double)curves[i].of->limit_ns));
		number_cell(out, s->skewness, "");
		number_cell(out, (double)s->percentile[2] / floor_ns, "\xc3\x97");
		time_cell(out, curves[i].series->reference_ns);
		fputs("</tr>\n", out);
	}
	end(out);
}

static void budget_row(FILE *out, const struct budget *b, const struct budget_part *p)
{
	report_html(out, "<tr><th scope=\"row\">%s</th>", p->label);
	if (p->count)
		report_html(out, "<td>%zu</td>", p->count);
	else
		fputs("<td></td>", out);
	number_cell(out, p->p10, "ns");
	number_cell(out, p->median, "ns");
	number_cell(out, p->p90, "ns");
	number_cell(out, p->middle, "ns");
	number_cell(out, budget_share(b, p->middle), "%");
	fputs("</tr>\n", out);
}

static void budget_sum(FILE *out, const struct budget *b, const char *label, double ns)
{
	const struct budget_part p = { .label = label, .p10 = NAN, .median = NAN, .p90 = NAN,
				       .middle = ns };

	budget_row(out, b, &p);
}

void table_budget(FILE *out, const struct budget *b)
{
	static const char *const names[] = { "", "number", "10 %", "median", "90 %",
					     "mean of the middle 80 %", "of the whole",
					     NULL };

	begin(out);
	head(out, names);
	for (size_t i = 0; i < b->count; i++)
		budget_row(out, b, &b->parts[i]);
	budget_sum(out, b, "sum of the parts", b->sum_ns);
	budget_row(out, b, &b->whole);
	budget_sum(out, b, "not explained", b->rest_ns);
	end(out);
}

void table_tenths(FILE *out, const struct report_series *s)
{
	static const char *const names[] = { "messages", "lowest", "highest", NULL };
	size_t parts = MIN(s->band_count, (size_t)10);

	begin(out);
	head(out, names);
	for (size_t i = 0; i < parts; i++) {
		size_t from = s->band_count * i / parts, to = s->band_count * (i + 1) / parts;
		int64_t low = s->bands[from].min, high = s->bands[from].max;
		const struct report_band *last = &s->bands[to - 1];

		for (size_t k = from; k < to; k++) {
			low = MIN(low, s->bands[k].min);
			high = MAX(high, s->bands[k].max);
		}
		report_html(out, "<tr><th scope=\"row\">%zu to %zu</th>", s->bands[from].first,
			    last->first + last->count - 1);
		time_cell(out, (double)low);
		time_cell(out, (double)high);
		fputs("</tr>\n", out);
	}
	end(out);
}

/* The different names of numbers, in the order of their appearance. */
static size_t value_names(struct report_case *const *cases, size_t count, const char *only,
			  const struct report_value **names, size_t max)
{
	size_t n = 0;

	for (size_t i = 0; i < count; i++) {
		for (size_t j = 0; j < cases[i]->value_count && n < max; j++) {
			const struct report_value *v = &cases[i]->values[j];
			size_t k = 0;

			if (only && strcmp(only, v->name))
				continue;
			while (k < n && strcmp(names[k]->name, v->name))
				k++;
			if (k == n)
				names[n++] = v;
		}
	}
	return n;
}

void table_values(FILE *out, const struct report_group *g, struct report_case *const *cases,
		  size_t count, const char *only)
{
	const struct report_value *names[32];
	size_t n = value_names(cases, count, only, names, ARRAY_SIZE(names));
	char label[REPORT_LABEL_MAX];

	if (!n)
		return;
	begin(out);
	fputs("<tr><th scope=\"col\"></th>", out);
	for (size_t k = 0; k < n; k++)
		report_html(out, "<th scope=\"col\">%s</th>", names[k]->label);
	fputs("</tr>\n", out);
	for (size_t i = 0; i < count; i++) {
		report_html(out, "<tr><th scope=\"row\">%s</th>",
			    report_case_label(g, cases[i], label));
		for (size_t k = 0; k < n; k++)
			number_cell(out, report_value_of(cases[i], names[k]->name),
				    names[k]->unit);
		fputs("</tr>\n", out);
	}
	end(out);
}

void table_references(FILE *out, const struct report_group *g)
{
	static const char *const names[] = { "case", "figure", "other hardware", "source", NULL };
	char label[REPORT_LABEL_MAX];
	bool any = false;

	for (size_t i = 0; i < g->count; i++) {
		const json_t *reference = g->cases[i]->reference;
		const char *source = json_string_value(json_object_get(reference, "source"));
		const char *name;
		json_t *v;

		json_object_foreach(json_object_get(reference, "figures"), name, v) {
			const json_t *number = json_is_object(v) ? json_object_get(v, "value") : v;

			if (!json_is_number(number) && !json_is_string(number))
				continue;
			if (!any) {
				begin(out);
				head(out, names);
				any = true;
			}
			report_html(out, "<tr><th scope=\"row\">%s</th><td>%s</td>",
				    report_case_label(g, g->cases[i], label), name);
			if (json_is_number(number))
				number_cell(out, json_number_value(number), "");
			else
				report_html(out, "<td>%s</td>", json_string_value(number));
			report_html(out, "<td>%s</td></tr>\n", source ? source : "");
		}
	}
	if (any)
		end(out);
}

void table_curves(FILE *out, const struct report_curve *curves, size_t count)
{
	static const char *const names[] = { "", "samples", "lowest", "mean", "highest", NULL };

	begin(out);
	head(out, names);
	for (size_t i = 0; i < count; i++) {
		const struct report_curve *c = &curves[i];

		report_html(out, "<tr><th scope=\"row\">%s</th><td>%zu</td>", c->label,
			    c->samples);
		number_cell(out, c->min, c->unit);
		number_cell(out, c->mean, c->unit);
		number_cell(out, c->max, c->unit);
		fputs("</tr>\n", out);
	}
	end(out);
}

static void scalar(FILE *out, const json_t *v)
{
	char text[32];

	if (json_is_string(v))
		report_text_html(out, json_string_value(v));
	else if (json_is_integer(v))
		fprintf(out, "%lld", (long long)json_integer_value(v));
	else if (json_is_real(v))
		report_text_html(out, report_text_number(text, json_real_value(v)));
	else if (json_is_boolean(v))
		fputs(json_is_true(v) ? "yes" : "no", out);
	else
		fputs("not known", out);
}

static void rows(FILE *out, const json_t *object, const char *prefix, int depth)
{
	const char *name;
	json_t *v, *e;
	size_t i;

	json_object_foreach((json_t *)object, name, v) {
		char path[200];

		snprintf(path, sizeof(path), "%s%s%s", prefix, *prefix ? "." : "", name);
		if (json_is_object(v)) {
			if (depth < DEPTH_MAX)
				rows(out, v, path, depth + 1);
			continue;
		}
		report_html(out, "<tr><th scope=\"row\">%s</th><td>", path);
		if (json_is_array(v)) {
			json_array_foreach(v, i, e) {
				fputs(i ? ", " : "", out);
				if (json_is_array(e) || json_is_object(e))
					fprintf(out, "(%zu more)", json_array_size(e));
				else
					scalar(out, e);
			}
		} else {
			scalar(out, v);
		}
		fputs("</td></tr>\n", out);
	}
}

void table_object(FILE *out, const json_t *object)
{
	begin(out);
	rows(out, object, "", 0);
	end(out);
}

char *table_command(const json_t *words)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				    "0123456789-_./=,:+@%";
	char *text = NULL;
	size_t size, i;
	FILE *out = open_memstream(&text, &size);
	json_t *e;

	if (!out)
		return NULL;
	json_array_foreach(words, i, e) {
		const char *word = json_is_string(e) ? json_string_value(e) : "?";

		fputs(i ? " " : "", out);
		if (*word && !word[strspn(word, plain)]) {
			fputs(word, out);
			continue;
		}
		putc('\'', out);
		for (; *word; word++)
			fputs(*word == '\'' ? "'\\''" : (char[]){ *word, '\0' }, out);
		putc('\'', out);
	}
	if (fclose(out)) {
		free(text);
		return NULL;
	}
	return text;
}
