/* SPDX-License-Identifier: BSD-2-Clause */
/* See metrics_print.h. */
#include "gateway/control/metrics_print.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

static const char *const kind_names[] = {
	[METRICS_COUNTER] = "counter",
	[METRICS_GAUGE] = "gauge",
	[METRICS_HISTOGRAM] = "histogram",
};

void metrics_number(char *buf, size_t size, double value)
{
	if (isnan(value))
		snprintf(buf, size, "NaN");
	else if (isinf(value))
		snprintf(buf, size, "%sInf", value < 0 ? "-" : "+");
	else
		snprintf(buf, size, "%.9g", value);
	if (isfinite(value) && !strpbrk(buf, ".e") && strlen(buf) + 2 < size)
		strcat(buf, ".0");
}

/* Of a label's value, or of a help text, which has no quotes to escape. */
static void print_escaped(FILE *f, const char *text, bool quotes)
{
	for (; *text; text++) {
		if (*text == '\n')
			fputs("\\n", f);
		else if (*text == '\\' || (quotes && *text == '"'))
			fprintf(f, "\\%c", *text);
		else
			fputc(*text, f);
	}
}

void metrics_family(struct metrics *m, const char *family, enum metrics_kind kind,
		    const char *help)
{
	/* OpenMetrics names the family, the older format the samples. */
	const char *suffix = kind == METRICS_COUNTER && !m->open ? "_total" : "";

	m->family = family;
	m->kind = kind;
	fprintf(m->out, "# HELP %s%s ", family, suffix);
	print_escaped(m->out, help, m->open);
	fprintf(m->out, "\n# TYPE %s%s %s\n", family, suffix, kind_names[kind]);
}

/* `le` NULL: none. */
static void print_name(struct metrics *m, const char *suffix,
		       const struct metrics_labels *labels, const char *le)
{
	const struct metrics_label *l = labels ? labels->at : NULL;
	const char *between = "{";

	fprintf(m->out, "%s%s", m->family, suffix);
	for (; l && l->name; l++) {
		fprintf(m->out, "%s%s=\"", between, l->name);
		print_escaped(m->out, l->value, true);
		fputc('"', m->out);
		between = ",";
	}
	if (le)
		fprintf(m->out, "%sle=\"%s\"", between, le);
	fputs(le || *between == ',' ? "} " : " ", m->out);
}

static const char *suffix_of(const struct metrics *m)
{
	return m->kind == METRICS_COUNTER ? "_total" : "";
}

void metrics_count(struct metrics *m, const struct metrics_labels *labels, uint64_t value)
{
	print_name(m, suffix_of(m), labels, NULL);
	fprintf(m->out, "%" PRIu64 "\n", value);
}

void metrics_real(struct metrics *m, const struct metrics_labels *labels, double value)
{
	char text[40];

	metrics_number(text, sizeof(text), value);
	print_name(m, suffix_of(m), labels, NULL);
	fprintf(m->out, "%s\n", text);
}

void metrics_histogram(struct metrics *m, const struct metrics_labels *labels,
		       const double *bounds, const uint64_t *counts, unsigned rows,
		       uint64_t total, double sum)
{
	char text[40];

	for (unsigned i = 0; i < rows; i++) {
		metrics_number(text, sizeof(text), bounds[i]);
		print_name(m, "_bucket", labels, text);
		fprintf(m->out, "%" PRIu64 "\n", counts[i]);
	}
	print_name(m, "_bucket", labels, "+Inf");
	fprintf(m->out, "%" PRIu64 "\n", total);
	/* OpenMetrics has both or none. */
	if (isnan(sum) && m->open)
		return;
	print_name(m, "_count", labels, NULL);
	fprintf(m->out, "%" PRIu64 "\n", total);
	if (isnan(sum))
		return;
	metrics_number(text, sizeof(text), sum);
	print_name(m, "_sum", labels, NULL);
	fprintf(m->out, "%s\n", text);
}

void metrics_end(struct metrics *m)
{
	if (m->open)
		fputs("# EOF\n", m->out);
}
