/* SPDX-License-Identifier: BSD-2-Clause */
/* See machine.h. */
#include "bench/result/machine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "bench/floor/floor.h"
#include "bench/version.h"
#include "util/clock.h"
#include "util/container_of.h"

json_t *machine_file(const char *path)
{
	FILE *f = fopen(path, "re");
	char text[4096];
	json_t *value;
	size_t n;

	if (!f)
		return json_null();
	n = fread(text, 1, sizeof(text), f);
	fclose(f);
	while (n && (text[n - 1] == '\n' || text[n - 1] == ' ' || !text[n - 1]))
		n--;
	value = json_stringn(text, n);
	return value ? value : json_null();
}

/* A number alone in a file, or null. */
static json_t *number_in(const char *path)
{
	json_t *text = machine_file(path), *number = NULL;
	const char *at = json_string_value(text);
	char *end;

	if (at && *at) {
		long long n = strtoll(at, &end, 10);

		number = *end ? NULL : json_integer(n);
	}
	json_decref(text);
	return number ? number : json_null();
}

json_t *machine_cmdline(const char *cmdline, const char *name)
{
	size_t n = strlen(name);

	while (*cmdline) {
		size_t word = strcspn(cmdline, " ");

		if (word >= n && !strncmp(cmdline, name, n)) {
			if (word == n)
				return json_true();
			if (cmdline[n] == '=')
				return json_stringn(cmdline + n + 1, word - n - 1);
		}
		cmdline += word + strspn(cmdline + word, " ");
	}
	return json_null();
}

static json_t *os(void)
{
	FILE *f = fopen("/etc/os-release", "re");
	json_t *found = NULL;
	char line[500];

	while (f && !found && fgets(line, sizeof(line), f)) {
		char *at = line + strlen("PRETTY_NAME=");

		if (strncmp(line, "PRETTY_NAME=", strlen("PRETTY_NAME=")))
			continue;
		at += *at == '"';
		found = json_stringn(at, strcspn(at, "\"\n"));
	}
	if (f)
		fclose(f);
	return found ? found : json_null();
}

/* How the kernel interrupts itself: "PREEMPT_DYNAMIC" and the like are words of its
 * version. */
static json_t *preempt(const char *version)
{
	const char *at = strstr(version, "PREEMPT");

	return at ? json_stringn(at, strcspn(at, " ")) : json_null();
}

/* What of the kernel's command line has an effect on times. The rest is nobody's business. */
static json_t *kernel_parameters(const char *cmdline)
{
	static const char *const names[] = {
		"clocksource", "cpuidle.off", "default_hugepagesz", "hugepages", "hugepagesz",
		"idle", "intel_idle.max_cstate", "intel_pstate", "irqaffinity", "maxcpus",
		"mitigations", "nosmt", "nowatchdog", "preempt", "processor.max_cstate",
		"skew_tick", "threadirqs", "tsc",
	};
	json_t *all = json_object();

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		json_t *value = machine_cmdline(cmdline, names[i]);

		if (json_is_null(value))
			json_decref(value);
		else
			json_object_set_new(all, names[i], value);
	}
	return all;
}

static json_t *kernel(const char *cmdline)
{
	struct utsname u;

	if (uname(&u))
		memset(&u, 0, sizeof(u));
	return json_pack("{s:s, s:s, s:s, s:o, s:o}", "release", u.release, "version",
			 u.version, "machine", u.machine, "preempt", preempt(u.version),
			 "parameters", kernel_parameters(cmdline));
}

static json_t *clocks(void)
{
	clock_init();
	return json_pack("{s:s, s:o, s:o, s:o}", "busbar", clock_source(), "kernel",
			 machine_file("/sys/devices/system/clocksource/clocksource0/"
				      "current_clocksource"),
			 "invariant_tsc", machine_invariant_tsc(), "tsc_hz",
			 clock_state.tsc ? json_integer((json_int_t)clock_state.tick_hz) :
					   json_null());
}

static json_t *isolation(const char *cmdline)
{
	return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o}",
			 "isolcpus", machine_cmdline(cmdline, "isolcpus"),
			 "nohz_full", machine_cmdline(cmdline, "nohz_full"),
			 "rcu_nocbs", machine_cmdline(cmdline, "rcu_nocbs"),
			 "isolated", machine_file("/sys/devices/system/cpu/isolated"),
			 "quota", machine_file("/sys/fs/cgroup/cpu.max"),
			 "rt_runtime_us",
			 number_in("/proc/sys/kernel/sched_rt_runtime_us"));
}

/* The number of "NAME:  123 kB" in /proc/meminfo, or null. */
static json_t *meminfo(const char *name)
{
	FILE *f = fopen("/proc/meminfo", "re");
	json_t *found = NULL;
	size_t n = strlen(name);
	char line[200];

	while (f && !found && fgets(line, sizeof(line), f))
		if (!strncmp(line, name, n) && line[n] == ':')
			found = json_integer(atoll(line + n + 1));
	if (f)
		fclose(f);
	return found ? found : json_null();
}

/* The one in brackets of "always [madvise] never". */
static json_t *chosen(const char *path)
{
	json_t *text = machine_file(path), *one = NULL;
	const char *at = json_string_value(text);

	at = at ? strchr(at, '[') : NULL;
	if (at)
		one = json_stringn(at + 1, strcspn(at + 1, "]"));
	json_decref(text);
	return one ? one : json_null();
}

static int numa_nodes(void)
{
	char path[80];
	int n = 0;

	do
		snprintf(path, sizeof(path), "/sys/devices/system/node/node%d", n);
	while (!access(path, F_OK) && ++n < 1024);
	return n ? n : 1;
}

static json_t *memory(void)
{
	return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:i}",
			 "total_kib", meminfo("MemTotal"),
			 "available_kib", meminfo("MemAvailable"),
			 "hugepages", meminfo("HugePages_Total"),
			 "hugepages_free", meminfo("HugePages_Free"),
			 "hugepage_kib", meminfo("Hugepagesize"),
			 "transparent_hugepages",
			 chosen("/sys/kernel/mm/transparent_hugepage/enabled"),
			 "numa_nodes", numa_nodes());
}

static json_t *limit(int which)
{
	struct rlimit l;

	if (getrlimit(which, &l) || l.rlim_cur == RLIM_INFINITY)
		return json_null();
	return json_integer((json_int_t)l.rlim_cur);
}

static json_t *limits(void)
{
	return json_pack("{s:o, s:o, s:o, s:o}", "memlock_bytes", limit(RLIMIT_MEMLOCK),
			 "nofile", limit(RLIMIT_NOFILE), "rtprio", limit(RLIMIT_RTPRIO),
			 "core_bytes", limit(RLIMIT_CORE));
}

static json_t *load(void)
{
	double l[3];

	if (getloadavg(l, 3) != 3)
		return json_null();
	return json_pack("[f, f, f]", l[0], l[1], l[2]);
}

json_t *machine_command(int argc, char *const *argv)
{
	json_t *list = json_array();

	for (int i = 0; i < argc; i++) {
		json_t *s = json_string(argv[i]); /* NULL: not UTF-8 */

		json_array_append_new(list, s ? s : json_null());
	}
	return list;
}

json_t *machine_describe(int argc, char *const *argv)
{
	json_t *cmdline = machine_file("/proc/cmdline");
	const char *words = json_is_string(cmdline) ? json_string_value(cmdline) : "";
	json_t *hypervisor = machine_hypervisor(), *all;
	char host[256] = "";

	gethostname(host, sizeof(host) - 1);
	all = json_pack("{s:s, s:o, s:o, s:o, s:o, s:o, s:b, s:o, s:o, s:o, s:o, s:o,"
			" s:{s:s, s:s, s:b, s:s}, s:o}",
			"host", host, "os", os(), "kernel", kernel(words),
			"cpu", machine_cpu(), "clock", clocks(),
			"isolation", isolation(words),
			"virtual_machine", !json_is_null(hypervisor),
			"hypervisor", hypervisor,
			"product", machine_file("/sys/class/dmi/id/product_name"),
			"memory", memory(), "limits", limits(), "load", load(),
			"busbar", "version", BENCH_VERSION, "compiler", BENCH_COMPILER,
			"optimized", BENCH_OPTIMIZED, "sanitizer", BENCH_SANITIZER,
			"command", machine_command(argc, argv));
	json_decref(cmdline);
	return all;
}

json_t *machine_floor(const atomic_bool *stop)
{
	struct floor_result results[FLOOR_MEASURES_MAX];
	struct floor_setting setting;
	int err = floor_default_setting(&setting);

	if (err)
		return json_pack("{s:s}", "error", strerror(-err));
	clock_init();
	for (size_t i = 0; i < floor_measure_count; i++) {
		if (stop && atomic_load(stop))
			return NULL;
		floor_measure_run(&floor_measures[i], &setting, &results[i]);
	}
	return floor_json(&setting.cpus, results);
}
