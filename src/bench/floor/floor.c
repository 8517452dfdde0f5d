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

static void print_help(FILE *out)
{
	fputs("usage: busbar bench floor [--json] [--cpus A,B] [--between HOSTS] [--round-ms N] [NAME...]\n"
	      "\n"
	      "Measures what this machine can do at best, in about four seconds.\n"
	      "\n"
	      "  -j, --json      one JSON object instead of a table\n"
	      "  -c, --cpus A,B  the CPUs of the two processes (the first two allowed)\n"
	      "  -b, --between A=ADDRESS,B=ADDRESS  sockets of these two network namespaces (root)\n"
	      "  -r, --round-ms N  each of the 15 rounds takes so long (7)\n"
	      "  -h, --help      this text\n"
	      "\n"
	      "names (all when none is given):\n", out);
	for (size_t i = 0; i < floor_measure_count; i++)
		fprintf(out, "  %-22s %s\n", floor_measures[i].name,
			floor_measures[i].label);
}

static int parse_cpus(const char *text, struct floor_cpus *cpus)
{
	int end = 0;

	if (sscanf(text, "%d,%d%n", &cpus->first, &cpus->second, &end) != 2 ||
	    text[end] || cpus->first < 0 || cpus->second < 0 ||
	    cpus->first >= CPU_SETSIZE || cpus->second >= CPU_SETSIZE ||
	    cpus->first == cpus->second)
		return log_fail(-EINVAL, "--cpus '%s' is not usable, expected two different CPU numbers such as 0,1",
				text);
	return 0;
}

static int parse_hosts(const char *text, struct floor_host hosts[2])
{
	if (floor_hosts_parse(text, hosts))
		return 0;
	return log_fail(-EINVAL, "--between '%s' is not usable, expected two network namespaces with an IPv4 "
			"address of each, such as A=10.77.0.1,B=10.77.0.2",
			text);
}

static int parse_round(const char *text, uint64_t *round_ns)
{
	unsigned ms;
	int end = 0;

	if (sscanf(text, "%u%n", &ms, &end) != 1 || text[end] || !ms || ms > ROUND_MS_MAX)
		return log_fail(-EINVAL, "--round-ms '%s' is not usable, expected 1 to %d", text,
				ROUND_MS_MAX);
	*round_ns = ms * UINT64_C(1000000);
	return 0;
}

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
	static const struct option options[] = {
		{ "json", no_argument, NULL, 'j' },
		{ "cpus", required_argument, NULL, 'c' },
		{ "between", required_argument, NULL, 'b' },
		{ "round-ms", required_argument, NULL, 'r' },
		{ "help", no_argument, NULL, 'h' },
		{ NULL, 0, NULL, 0 },
	};
	struct floor_result results[FLOOR_MEASURES_MAX];
	bool wanted[FLOOR_MEASURES_MAX], json = false, failed = false;
	struct floor_setting setting;
	int opt, err = floor_default_setting(&setting);

	while ((opt = getopt_long(argc, argv, "jc:b:r:h", options, NULL)) != -1) {
		if (opt == 'h') {
			print_help(stdout);
			return 0;
		}
		if (opt == '?' || (opt == 'c' && parse_cpus(optarg, &setting.cpus)) ||
		    (opt == 'b' && parse_hosts(optarg, setting.hosts)) ||
		    (opt == 'r' && parse_round(optarg, &setting.round_ns)))
			return 2;
		json |= opt == 'j';
	}
	if (!select_measures(argv + optind, argc - optind, wanted))
		return 2;
	if (err)
		return log_fail(1, "the CPUs of this process are unknown: %s", strerror(-err));
	clock_init();
	for (size_t i = 0; i < floor_measure_count; i++) {
		results[i].err = -ECANCELED;
		if (wanted[i])
			floor_measure_run(&floor_measures[i], &setting, &results[i]);
		failed |= wanted[i] && results[i].err;
	}
	(json ? print_json : print_text)(&setting.cpus, results);
	return failed;
}
