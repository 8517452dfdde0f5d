/* SPDX-License-Identifier: BSD-2-Clause */
/* `busbar bench floor`: the table of measurements, what is the same in all of them, and their
 * results as a table or as JSON. */
#define LOG_ROOM "bench"
#include "bench/floor/floor_method.h"

#include <arpa/inet.h>
#include <errno.h>
#include <getopt.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "util/hist.h"
#include "util/log.h"
#include "util/options.h"
#include "util/order.h"

#define ROUND_MS_MAX 60000
/* With this time all measurements take about four seconds. */
#define ROUND_NS (7 * UINT64_C(1000000))

/* In the order in which they are printed. */
const struct floor_measure floor_measures[] = {
	{ "cacheline_oneway_ns", "cache line to another CPU, one way", "ns", 0, &floor_cacheline },
	{ "eventfd_wakeup_ns", "waking a sleeping process (eventfd)", "ns", 0, &floor_eventfd },
	{ "udp_rtt_64_ns", "UDP loopback round trip 64 B, polling", "ns", 64, &floor_udp },
	{ "udp_packets_rtt_64_ns", "the same with what packets of RoCE v2 need", "ns", 64,
	  &floor_udp_packets },
	{ "tcp_rtt_64_ns", "TCP loopback round trip 64 B, polling", "ns", 64, &floor_tcp },
	{ "udp_sleeping_rtt_64_ns", "UDP round trip 64 B, asleep meanwhile", "ns", 64,
	  &floor_udp_sleeping },
	{ "tcp_sleeping_rtt_64_ns", "TCP round trip 64 B, asleep meanwhile", "ns", 64,
	  &floor_tcp_sleeping },
	{ "udp_stream_1040_gbs", "UDP stream, trains of 1040 B (GSO, GRO)", "GB/s", 1040,
	  &floor_udp_stream },
	{ "udp_stream_4112_gbs", "UDP stream, trains of 4112 B (GSO, GRO)", "GB/s", 4112,
	  &floor_udp_stream },
	{ "tcp_stream_64k_gbs", "TCP stream, 64 KiB a call", "GB/s", 64 << 10, &floor_tcp_stream },
	{ "vm_writev_8_ns", "process_vm_writev 8 B", "ns", 8, &floor_vm_writev },
	{ "vm_writev_64k_ns", "process_vm_writev 64 KiB", "ns", 64 << 10, &floor_vm_writev },
	{ "vm_writev_1m_ns", "process_vm_writev 1 MiB", "ns", 1 << 20, &floor_vm_writev },
	{ "vm_readv_8_ns", "process_vm_readv 8 B", "ns", 8, &floor_vm_readv },
	{ "vm_readv_64k_ns", "process_vm_readv 64 KiB", "ns", 64 << 10, &floor_vm_readv },
	{ "memcpy_4k_gbs", "memcpy 4 KiB", "GB/s", 4 << 10, &floor_memcpy },
	{ "memcpy_64k_gbs", "memcpy 64 KiB", "GB/s", 64 << 10, &floor_memcpy },
	{ "memcpy_1m_gbs", "memcpy 1 MiB", "GB/s", 1 << 20, &floor_memcpy },
	{ "system_call_ns", "system call that does nothing", "ns", 0, &floor_system_call },
	{ "clock_gettime_ns", "clock_gettime", "ns", 0, &floor_clock_gettime },
	{ "clock_ticks_ns", "busbar's own clock", "ns", 0, &floor_clock_ticks },
	{ "paced_100k_missed", "steps an empty loop misses at 100 kHz", "%", 100000, &floor_paced },
	{ "paced_100k_missed_busy", "the same while the other CPU spins", "%", 100000,
	  &floor_paced_busy },
};

const size_t floor_measure_count = ARRAY_SIZE(floor_measures);

_Static_assert(ARRAY_SIZE(floor_measures) <= FLOOR_MEASURES_MAX, "room in the results");

int floor_default_cpus(struct floor_cpus *cpus)
{
	cpu_set_t set;

	*cpus = (struct floor_cpus){ -1, -1 };
	if (sched_getaffinity(0, sizeof(set), &set))
		return -errno;
	for (int i = 0; i < CPU_SETSIZE && cpus->second < 0; i++)
		if (CPU_ISSET(i, &set))
			*(cpus->first < 0 ? &cpus->first : &cpus->second) = i;
	return cpus->first < 0 ? -ENODEV : 0;
}

bool floor_cpus_parse(const char *text, struct floor_cpus *cpus)
{
	int end = 0;

	return sscanf(text, "%d,%d%n", &cpus->first, &cpus->second, &end) == 2 && !text[end] &&
	       cpus->first >= 0 && cpus->second >= 0 && cpus->first < CPU_SETSIZE &&
	       cpus->second < CPU_SETSIZE;
}

int floor_default_setting(struct floor_setting *setting)
{
	const struct floor_host here = { .address.s_addr = htonl(INADDR_LOOPBACK) };

	*setting = (struct floor_setting){ .hosts = { here, here }, .round_ns = ROUND_NS };
	return floor_default_cpus(&setting->cpus);
}

void floor_measure_run(const struct floor_measure *m,
		       const struct floor_setting *setting, struct floor_result *r)
{
	struct hist trips;
	struct floor_rounds rounds = { .trips = &trips };
	bool rate = !strcmp(m->unit, "GB/s");
	cpu_set_t before;

	hist_init(&trips);
	*r = (struct floor_result){ .err = -errno };
	if (sched_getaffinity(0, sizeof(before), &before))
		return;
	r->err = floor_pin(setting->cpus.first);
	if (!r->err)
		r->err = m->method->run(m, setting, &rounds);
	sched_setaffinity(0, sizeof(before), &before);
	if (r->err)
		return;
	order_doubles(rounds.value, FLOOR_ROUNDS);
	r->median = rounds.value[FLOOR_ROUNDS / 2];
	r->best = rounds.value[rate ? FLOOR_ROUNDS - 1 : 0];
	r->p50 = (double)hist_percentile(&trips, 50);
	r->p99 = (double)hist_percentile(&trips, 99);
}

/* ---- printing ---- */

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

	if (floor_cpus_parse(g->value, cpus) && cpus->first != cpus->second)
		return OPTIONS_GO_ON;
	return options_refuse(g, "expected two different CPU numbers such as 0,1");
}

static int take_hosts(const struct option_given *g)
{
	if (floor_hosts_parse(g->value, option_member(g)))
		return OPTIONS_GO_ON;
	return options_refuse(g, FLOOR_HOSTS_EXPECTED);
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
	int err = floor_default_setting(&c.setting);
	int status = options_parse(&options, argc, argv, &c, NULL);

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
