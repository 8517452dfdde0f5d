/* SPDX-License-Identifier: BSD-2-Clause */
/* `busbar bench floor`: runs the measurements, and prints them as a table or as JSON. */
#define LOG_ROOM "bench"
#include "bench/floor/floor.h"

#include <errno.h>
#include <getopt.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "util/clock.h"
#include "util/container_of.h"
#include "util/log.h"
#include "util/options.h"

#define ROUND_MS_MAX 60000

static const char *why_not(int err)
{
	return err == -ENODEV ? "needs two CPUs" : strerror(-err);
}

/* Three significant digits; large numbers of ns are printed as us. */
static void print_value(double value, const char *unit, bool last)
{
	if (!strcmp(unit, "ns") && value >= 10000) {
		value /= 1000;
		unit = "us";
	}
	printf("  %8.*f %s%*s", value < 10 ? 2 : value < 100 ? 1 : 0,
		value, unit, last ? 0 : 4 - (int)strlen(unit), "");
}

static void print_text(const struct floor_cpus *cpus, const struct floor_result *results)
{
	printf("machine floor, time from %s, CPUs %d and %d\n",
		clock_source(), cpus->first, cpus->second);
	printf("  %-40s  %10s    %12s\n", "", "median", "best");
	for (size_t i = 0; i < floor_measure_count; i++) {
		const struct floor_measure *m = &floor_measures[i];
		const struct floor_result *r = &results[i];

		if (r->err == -ECANCELED)
			continue;
		printf("  %-40s", m->label);
		if (r->err) {
			printf("  not measured: %s\n", why_not(r->err));
			continue;
		}
		print_value(r->median, m->unit, false);
		print_value(r->best, m->unit, true);
		putchar('\n');
	}
}

static json_t *result_json(const struct floor_result *r)
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
					    result_json(&results[i]));
	return all;
}

/* One key a line, for scripts. */
static void print_json(const struct floor_cpus *cpus, const struct floor_result *results)
{
	json_t *all = floor_json(cpus, results), *value;
	const char *key, *comma = "{\n";

	json_object_foreach(all, key, value) {
		printf("%s  \"%s\": ", comma, key);
		json_dumpf(value, stdout, JSON_ENCODE_ANY | JSON_REAL_PRECISION(6));
		comma = ",\n";
	}
	puts("\n}");
	json_decref(all);
}

/* ---- the command ---- */

struct command {
	struct floor_setting setting;
	unsigned round_ms; /* 0: by default */
	bool json;
};

static int take_cpus(const struct option_given *g)
{
	struct floor_cpus *cpus = option_member(g);
	int end = 0;

	if (sscanf(g->value, "%d,%d%n", &cpus->first, &cpus->second, &end) == 2 && !g->value[end] &&
	    cpus->first >= 0 && cpus->second >= 0 && cpus->first < CPU_SETSIZE &&
	    cpus->second < CPU_SETSIZE && cpus->first != cpus->second)
		return OPTIONS_GO_ON;
	return options_refuse(g, "expected two different CPU numbers such as 0,1");
}

static int take_hosts(const struct option_given *g)
{
	if (floor_hosts_parse(g->value, option_member(g)))
		return OPTIONS_GO_ON;
	return options_refuse(g, "expected two network namespaces with an IPv4 address of each, such as "
			      "A=10.77.0.1,B=10.77.0.2");
}

static void print_names(void)
{
	puts("\nnames (all when none is given):");
	for (size_t i = 0; i < floor_measure_count; i++)
		printf("  %-22s %s\n", floor_measures[i].name, floor_measures[i].label);
}

static const struct option_entry table[] = {
	{ "-j, --json: one JSON object instead of a table", OPTION_FLAG(struct command, json) },
	{ "-c, --cpus A,B: the CPUs of the two processes (the first two allowed)",
	  OPTION_TAKE(struct command, setting.cpus, take_cpus) },
	{ "-b, --between HOSTS: A=ADDRESS,B=ADDRESS: sockets of these two network namespaces "
	  "(root)",
	  OPTION_TAKE(struct command, setting.hosts, take_hosts) },
	{ "-r, --round-ms N: each of the 15 rounds takes so long (7)",
	  OPTION_WHOLE(struct command, round_ms, 1, ROUND_MS_MAX) },
	{ .text = NULL },
};

static const struct options options = {
	.program = "busbar bench floor",
	.synopsis = "[OPTIONS] [NAME...]",
	.about = "Measures what this machine can do at best, in about four seconds.\n",
	.table = table,
	.print_more = print_names,
	.any_operands = true,
};

/* Marks the measurements that were asked for; false, logged: an unknown name. */
static bool select_measures(char **names, int count, bool wanted[])
{
	for (size_t i = 0; i < floor_measure_count; i++)
		wanted[i] = count == 0;
	for (int n = 0; n < count; n++) {
		size_t i = 0;

		while (i < floor_measure_count &&
		       strcmp(names[n], floor_measures[i].name))
			i++;
		if (i == floor_measure_count)
			return log_fail(false,
					"no measurement '%s', see 'busbar bench floor --help'",
					names[n]);
		wanted[i] = true;
	}
	return true;
}

int bench_floor_main(int argc, char **argv)
{
	struct floor_result results[FLOOR_MEASURES_MAX];
	bool wanted[FLOOR_MEASURES_MAX], failed = false;
	struct command c = { .round_ms = 0 };
	int err = floor_default_setting(&c.setting), status = options_parse(&options, argc, argv, &c, NULL);

	if (status != OPTIONS_GO_ON)
		return status;
	if (!select_measures(argv + optind, argc - optind, wanted))
		return OPTIONS_WRONG;
	if (err)
		return log_fail(1, "the CPUs of this process are unknown: %s", strerror(-err));
	if (c.round_ms)
		c.setting.round_ns = c.round_ms * UINT64_C(1000000);
	clock_init();
	for (size_t i = 0; i < floor_measure_count; i++) {
		results[i].err = -ECANCELED;
		if (wanted[i])
			floor_measure_run(&floor_measures[i], &c.setting, &results[i]);
		failed |= wanted[i] && results[i].err;
	}
	(c.json ? print_json : print_text)(&c.setting.cpus, results);
	return failed;
}
