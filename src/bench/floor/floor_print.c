/* SPDX-License-Identifier: BSD-2-Clause */
/* Prints the floor as a table, or as JSON with one key per line. */
#include "bench/floor/floor.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "util/clock.h"

static const char *why_not(int err)
{
	return err == -ENODEV ? "needs two CPUs" : strerror(-err);
}

/* Three significant digits; large numbers of ns are printed as us. */
static void print_value(FILE *out, double value, const char *unit,
			bool last)
{
	if (!strcmp(unit, "ns") && value >= 10000) {
		value /= 1000;
		unit = "us";
	}
	fprintf(out, "  %8.*f %s%*s", value < 10 ? 2 : value < 100 ? 1 : 0,
		value, unit, last ? 0 : 4 - (int)strlen(unit), "");
}

void floor_print_text(const struct floor_cpus *cpus,
		      const struct floor_result *results, FILE *out)
{
	fprintf(out, "machine floor, time from %s, CPUs %d and %d\n",
		clock_source(), cpus->first, cpus->second);
	fprintf(out, "  %-40s  %10s    %12s\n", "", "median", "best");
	for (size_t i = 0; i < floor_measure_count; i++) {
		const struct floor_measure *m = &floor_measures[i];
		const struct floor_result *r = &results[i];

		if (r->err == -ECANCELED)
			continue;
		fprintf(out, "  %-40s", m->label);
		if (r->err) {
			fprintf(out, "  not measured: %s\n", why_not(r->err));
			continue;
		}
		print_value(out, r->median, m->unit, false);
		print_value(out, r->best, m->unit, true);
		fprintf(out, "\n");
	}
}

void floor_print_json(const struct floor_cpus *cpus,
		      const struct floor_result *results, FILE *out)
{
	fprintf(out, "{\n  \"clock\": \"%s\",\n  \"cpus\": [%d, %d]",
		clock_source(), cpus->first, cpus->second);
	for (size_t i = 0; i < floor_measure_count; i++) {
		const struct floor_measure *m = &floor_measures[i];
		const struct floor_result *r = &results[i];

		if (r->err == -ECANCELED)
			continue;
		fprintf(out, ",\n  \"%s\": ", m->name);
		if (r->err)
			fprintf(out, "{\"error\": \"%s\"}", why_not(r->err));
		else
			fprintf(out, "{\"median\": %.2f, \"best\": %.2f", r->median, r->best);
		if (!r->err && r->p50 > 0)
			fprintf(out, ", \"p50\": %.0f, \"p99\": %.0f", r->p50, r->p99);
		if (!r->err)
			fputs("}", out);
	}
	fprintf(out, "\n}\n");
}
