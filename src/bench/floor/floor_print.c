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

json_t *floor_result_json(const struct floor_result *r)
{
	json_t *o;

	if (r->err)
		return json_pack("{s:s}", "error", why_not(r->err));
	o = json_pack("{s:f, s:f}", "median", r->median, "best", r->best);
	if (r->p50 > 0)
		json_object_update_new(o, json_pack("{s:f, s:f}", "p50", r->p50, "p99", r->p99));
	return o;
}

json_t *floor_json(const struct floor_cpus *cpus, const struct floor_result *results)
{
	json_t *all = json_pack("{s:s, s:[i, i]}", "clock", clock_source(), "cpus", cpus->first,
				cpus->second);

	for (size_t i = 0; i < floor_measure_count; i++)
		if (results[i].err != -ECANCELED)
			json_object_set_new(all, floor_measures[i].name,
					    floor_result_json(&results[i]));
	return all;
}

void floor_print_json(const struct floor_cpus *cpus,
		      const struct floor_result *results, FILE *out)
{
	json_t *all = floor_json(cpus, results), *value;
	const char *key, *comma = "{\n";

	json_object_foreach(all, key, value) {
		fprintf(out, "%s  \"%s\": ", comma, key);
		json_dumpf(value, out, JSON_ENCODE_ANY | JSON_REAL_PRECISION(6));
		comma = ",\n";
	}
	fputs("\n}\n", out);
	json_decref(all);
}
