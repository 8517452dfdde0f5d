/* SPDX-License-Identifier: BSD-2-Clause */
/* The table of floor measurements and the command that runs them. */
#define LOG_ROOM "bench"
#include "bench/floor/floor.h"

#include <errno.h>
#include <getopt.h>
#include <sched.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "bench/floor/floor_parts.h"
#include "util/clock.h"
#include "util/container_of.h"
#include "util/log.h"

const struct floor_measure floor_measures[] = {
	{ "cacheline_oneway_ns", "cache line to another CPU, one way", "ns", 0,
	  floor_cacheline },
	{ "eventfd_wakeup_ns", "waking a sleeping process (eventfd)", "ns", 0,
	  floor_eventfd },
	{ "udp_rtt_64_ns", "UDP loopback round trip 64 B, polling", "ns", 64,
	  floor_udp },
	{ "udp_packets_rtt_64_ns", "the same with what packets of RoCE v2 need", "ns", 64,
	  floor_udp_packets },
	{ "tcp_rtt_64_ns", "TCP loopback round trip 64 B, polling", "ns", 64,
	  floor_tcp },
	{ "vm_writev_8_ns", "process_vm_writev 8 B", "ns", 8, floor_vm_writev },
	{ "vm_writev_64k_ns", "process_vm_writev 64 KiB", "ns", 64 << 10,
	  floor_vm_writev },
	{ "vm_writev_1m_ns", "process_vm_writev 1 MiB", "ns", 1 << 20,
	  floor_vm_writev },
	{ "vm_readv_8_ns", "process_vm_readv 8 B", "ns", 8, floor_vm_readv },
	{ "vm_readv_64k_ns", "process_vm_readv 64 KiB", "ns", 64 << 10,
	  floor_vm_readv },
	{ "memcpy_4k_gbs", "memcpy 4 KiB", "GB/s", 4 << 10, floor_memcpy },
	{ "memcpy_64k_gbs", "memcpy 64 KiB", "GB/s", 64 << 10, floor_memcpy },
	{ "memcpy_1m_gbs", "memcpy 1 MiB", "GB/s", 1 << 20, floor_memcpy },
	{ "system_call_ns", "system call that does nothing", "ns", 0,
	  floor_system_call },
	{ "clock_gettime_ns", "clock_gettime", "ns", 0, floor_clock_gettime },
	{ "clock_ticks_ns", "busbar's own clock", "ns", 0, floor_clock_ticks },
	{ "paced_100k_missed", "steps an empty loop misses at 100 kHz", "%",
	  100000, floor_paced },
	{ "paced_100k_missed_busy", "the same while the other CPU spins", "%",
	  100000, floor_paced_busy },
};

const size_t floor_measure_count = ARRAY_SIZE(floor_measures);

int floor_pin(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	return sched_setaffinity(0, sizeof(set), &set) ? -errno : 0;
}

int floor_default_cpus(struct floor_cpus *cpus)
{
	cpu_set_t set;

	*cpus = (struct floor_cpus){ -1, -1 };
	if (sched_getaffinity(0, sizeof(set), &set))
		return -errno;
	for (int i = 0; i < CPU_SETSIZE; i++) {
		if (!CPU_ISSET(i, &set))
			continue;
		if (cpus->first < 0) {
			cpus->first = i;
		} else {
			cpus->second = i;
			break;
		}
	}
	return cpus->first < 0 ? -ENODEV : 0;
}

static int compare_double(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

void floor_measure_run(const struct floor_measure *m,
		       const struct floor_cpus *cpus, struct floor_result *r)
{
	double rounds[FLOOR_ROUNDS];
	bool rate = !strcmp(m->unit, "GB/s");
	cpu_set_t before;

	*r = (struct floor_result){ .err = -errno };
	if (sched_getaffinity(0, sizeof(before), &before))
		return;
	r->err = floor_pin(cpus->first);
	if (!r->err)
		r->err = m->run(cpus, m->size_bytes, rounds);
	sched_setaffinity(0, sizeof(before), &before);
	if (r->err)
		return;
	qsort(rounds, FLOOR_ROUNDS, sizeof(rounds[0]), compare_double);
	r->median = rounds[FLOOR_ROUNDS / 2];
	r->best = rate ? rounds[FLOOR_ROUNDS - 1] : rounds[0];
}

static void print_help(FILE *out)
{
	fputs("usage: busbar bench floor [--json] [--cpus A,B] [NAME...]\n"
	      "\n"
	      "Measures what this machine can do at best, in less than four seconds.\n"
	      "\n"
	      "  -j, --json      one JSON object instead of a table\n"
	      "  -c, --cpus A,B  the CPUs of the two processes (the first two allowed)\n"
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
	    cpus->first == cpus->second) {
		log_error("--cpus '%s' is not usable, expected two different CPU numbers such as 0,1",
			  text);
		return -EINVAL;
	}
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
		if (i == floor_measure_count) {
			log_error("no measurement '%s', see 'busbar bench floor --help'",
				  names[n]);
			return false;
		}
		wanted[i] = true;
	}
	return true;
}

int bench_floor_main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "json", no_argument, NULL, 'j' },
		{ "cpus", required_argument, NULL, 'c' },
		{ "help", no_argument, NULL, 'h' },
		{ NULL, 0, NULL, 0 },
	};
	struct floor_result results[ARRAY_SIZE(floor_measures)];
	bool wanted[ARRAY_SIZE(floor_measures)], json = false, failed = false;
	struct floor_cpus cpus;
	int opt, err = floor_default_cpus(&cpus);

	while ((opt = getopt_long(argc, argv, "jc:h", options, NULL)) != -1) {
		if (opt == 'h') {
			print_help(stdout);
			return 0;
		}
		if (opt == '?' || (opt == 'c' && parse_cpus(optarg, &cpus)))
			return 2;
		json |= opt == 'j';
	}
	if (!select_measures(argv + optind, argc - optind, wanted))
		return 2;
	if (err) {
		log_error("the CPUs of this process are unknown: %s",
			  strerror(-err));
		return 1;
	}
	clock_init();
	for (size_t i = 0; i < floor_measure_count; i++) {
		results[i].err = -ECANCELED;
		if (wanted[i])
			floor_measure_run(&floor_measures[i], &cpus, &results[i]);
		failed |= wanted[i] && results[i].err;
	}
	(json ? floor_print_json : floor_print_text)(&cpus, results, stdout);
	return failed;
}
