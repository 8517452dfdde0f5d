/* SPDX-License-Identifier: BSD-2-Clause */
/* See show.h. */
#include "bench/result/show.h"

#include <math.h>
#include <string.h>

#include "bench/result/budget.h"
#include "bench/result/number.h"
#include "util/container_of.h"

const char *show_ns(double ns, char buf[32])
{
	static const struct {
		const char *unit;
		double ns;
	} units[] = { { "ns", 1 }, { "us", 1e3 }, { "ms", 1e6 }, { "s", 1e9 } };
	size_t i = 0;
	double v;

	while (i + 1 < ARRAY_SIZE(units) && fabs(ns) >= 1000 * units[i].ns * 0.9995)
		i++;
	v = ns / units[i].ns;
	snprintf(buf, 32, "%.*f %s", !i || fabs(v) >= 99.95 ? 0 : fabs(v) >= 9.995 ? 1 : 2, v,
		 units[i].unit);
	return buf;
}

static const char *ns_of(const json_t *latency, const char *key, char buf[32])
{
	double v = number_of(latency, key);

	return isnan(v) ? "-" : show_ns(v, buf);
}

static void brief_latency(FILE *f, const char *name, const json_t *latency)
{
	char median[32], p99[32], max[32];

	fprintf(f, "%s median %s, 99 %% %s, max %s", name, ns_of(latency, "p50", median),
		ns_of(latency, "p99", p99), ns_of(latency, "max", max));
}

static void print_figure(FILE *f, const json_t *figure)
{
	const char *unit = text_of(figure, "unit");
	double value = number_of(figure, "value");
	char buf[32];

	if (isnan(value))
		fputs("-", f);
	else if (!strcmp(unit, "ns"))
		fputs(show_ns(value, buf), f);
	else
		fprintf(f, "%.6g%s%s", value, *unit ? " " : "", unit);
}

void show_brief(FILE *f, const json_t *summary)
{
	json_t *latencies = json_object_get(summary, "latencies");
	json_t *figures = json_object_get(summary, "figures");
	void *first = json_object_iter(latencies);

	if (first) {
		brief_latency(f, json_object_iter_key(first), json_object_iter_value(first));
		return;
	}
	first = json_object_iter(figures);
	if (!first)
		return;
	fprintf(f, "%s ", json_object_iter_key(first));
	print_figure(f, json_object_iter_value(first));
	if (json_object_size(figures) > 1)
		fprintf(f, ", and %zu more figures", json_object_size(figures) - 1);
}

static void print_latencies(FILE *f, json_t *latencies)
{
	static const char *const keys[] = { "min", "p50", "p90", "p99", "p99.9", "max" };
	const char *name;
	json_t *latency;

	fprintf(f, "  %-34s %9s", "", "count");
	for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
		fprintf(f, " %9s", i == 1 ? "median" : keys[i]);
	fputs("  above limit\n", f);
	json_object_foreach(latencies, name, latency) {
		const json_t *share = json_object_get(latency, "share_above");
		char buf[32], limit[32];
		struct budget b;

		/* In a table of its own: of tens of ns, which have other units here. */
		if (budget_is_part(name) || budget_of(latencies, name, &b))
			continue;
		fprintf(f, "  %-34.34s %9lld", text_of(latency, "label"),
			(long long)json_integer_value(json_object_get(latency, "count")));
		for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
			fprintf(f, " %9s", ns_of(latency, keys[i], buf));
		fprintf(f, "  %.4g %% > %s\n", 100 * json_number_value(share),
			ns_of(latency, "limit_ns", limit));
	}
}

void show_summary(FILE *f, const json_t *summary)
{
	json_t *latencies = json_object_get(summary, "latencies"), *figure;
	const char *name;

	if (json_object_size(latencies))
		print_latencies(f, latencies);
	budget_print(f, latencies);
	json_object_foreach(json_object_get(summary, "figures"), name, figure) {
		fprintf(f, "  %-44.44s ", text_of(figure, "label"));
		print_figure(f, figure);
		fputc('\n', f);
	}
}
