/* SPDX-License-Identifier: BSD-2-Clause */
/* See machine.h. */
#include "bench/result/machine.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <unistd.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include "bench/floor/floor.h"
#include "bench/tune/cpus.h"
#include "bench/tune/tree.h"
#include "bench/version.h"
#include "util/clock.h"
#include "util/container_of.h"

#define CPU_DIR "/sys/devices/system/cpu"
#define TEXT_BYTES 4096

static json_t *text_or_null(const char *text)
{
	json_t *value = text ? json_string(text) : NULL; /* NULL: not UTF-8 */

	return value ? value : json_null();
}

/* The text of a file without white space at its end, or null. For short files of the kernel. */
static json_t *file_text(const char *path)
{
	char *text = NULL;
	json_t *value;

	if (tune_tree_read(&tune_here, path, &text))
		text = NULL;
	value = text_or_null(text ? tune_trim(text) : NULL);
	free(text);
	return value;
}

/* A number alone in a file, or null. */
static json_t *file_number(const char *path)
{
	long long n;

	return tune_tree_number(&tune_here, path, &n) ? json_null() : json_integer(n);
}

/* The one in brackets of "always [madvise] never". */
static json_t *file_chosen(const char *path)
{
	char *text, word[64];

	if (tune_tree_read(&tune_here, path, &text))
		return json_null();
	tune_chosen(text, word, sizeof(word));
	free(text);
	return json_string(word);
}

/* The value of the first line "NAME : value" of a file, or null. */
static json_t *file_value(const char *path, const char *name)
{
	char text[TEXT_BYTES];

	return tune_tree_value(&tune_here, path, name, text, sizeof(text)) ? json_null() :
									 text_or_null(text);
}

/* The number of "NAME:  123 kB" in /proc/meminfo, or null. */
static json_t *meminfo(const char *name)
{
	long long n = tune_tree_amount(&tune_here, "/proc/meminfo", name);

	return n < 0 ? json_null() : json_integer(n);
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

/* ---- the processors ---- */

/* "0-2,5": the CPUs that this process may use. */
static json_t *allowed(void)
{
	struct tune_cpus cpus = { 0 };
	char text[TEXT_BYTES];
	cpu_set_t set;

	if (sched_getaffinity(0, sizeof(set), &set))
		return json_null();
	for (int i = 0; i < CPU_SETSIZE; i++)
		if (CPU_ISSET(i, &set))
			tune_cpus_add(&cpus, i);
	return tune_cpus_print_list(&cpus, text, sizeof(text)) ? json_null() : json_string(text);
}

/* One name per configured CPU; "none" where the kernel does not set the frequency. */
static json_t *governors(void)
{
	long count = sysconf(_SC_NPROCESSORS_CONF);
	json_t *list = json_array();
	bool any = false;

	for (long i = 0; i < count; i++) {
		char path[100];
		json_t *one;

		snprintf(path, sizeof(path), CPU_DIR "/cpu%ld/cpufreq/scaling_governor", i);
		one = file_text(path);
		any |= json_is_string(one);
		json_array_append_new(list, one);
	}
	if (any)
		return list;
	json_decref(list);
	return json_string("none");
}

static json_t *caches(void)
{
	json_t *all = json_object();

	for (int i = 0; i < 8; i++) {
		static const char *const files[] = { "level", "type", "size" };
		char path[80], text[ARRAY_SIZE(files)][16], name[40];

		for (size_t k = 0; k < ARRAY_SIZE(files); k++) {
			snprintf(path, sizeof(path), CPU_DIR "/cpu0/cache/index%d/%s", i, files[k]);
			tune_tree_line(&tune_here, path, text[k], sizeof(text[k]));
		}
		if (!*text[0] || !*text[1])
			continue;
		snprintf(name, sizeof(name), "L%.8s%s", text[0],
			 *text[1] == 'D' ? "d" : *text[1] == 'I' ? "i" : "");
		/* "32K" of the kernel in KiB */
		json_object_set_new(all, name, atol(text[2]) > 0 ? json_integer(atol(text[2])) :
								   json_null());
	}
	return all;
}

static json_t *cpu(void)
{
	json_t *model = file_value("/proc/cpuinfo", "model name");
	long line = sysconf(_SC_LEVEL1_DCACHE_LINESIZE);

	if (json_is_null(model)) {
		json_decref(model);
		model = file_value("/proc/cpuinfo", "Processor"); /* ARM */
	}
	return json_pack("{s:o, s:i, s:o, s:o, s:o, s:o, s:o, s:o}",
			 "model", model,
			 "online", (int)sysconf(_SC_NPROCESSORS_ONLN),
			 "allowed", allowed(),
			 "caches_kib", caches(),
			 "cache_line_bytes", line > 0 ? json_integer(line) : json_null(),
			 "smt", file_text(CPU_DIR "/smt/control"),
			 "microcode", file_value("/proc/cpuinfo", "microcode"),
			 "governor", governors());
}

#if defined(__x86_64__)
static json_t *invariant_tsc(void)
{
	unsigned a, b, c, d;

	if (!__get_cpuid(0x80000007, &a, &b, &c, &d))
		return json_false();
	return json_boolean(d & (1u << 8));
}

static json_t *hypervisor_name(void)
{
	unsigned a, b, c, d, name[3];
	char text[sizeof(name) + 1] = "";

	if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & (1u << 31)))
		return json_null();
	__cpuid(0x40000000, a, name[0], name[1], name[2]);
	memcpy(text, name, sizeof(name));
	for (char *at = text; *at; at++)
		if (*at < ' ' || *at > '~')
			*at = '?';
	return json_string(*text ? text : "unnamed");
}
#else
static json_t *invariant_tsc(void)
{
	return json_null();
}

static json_t *hypervisor_name(void)
{
	return file_text("/sys/hypervisor/type");
}
#endif

/* ---- the kernel and the rest ---- */

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
			 file_text("/sys/devices/system/clocksource/clocksource0/"
				      "current_clocksource"),
			 "invariant_tsc", invariant_tsc(), "tsc_hz",
			 clock_state.tsc ? json_integer((json_int_t)clock_state.tick_hz) :
					   json_null());
}

static json_t *isolation(const char *cmdline)
{
	return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o}",
			 "isolcpus", machine_cmdline(cmdline, "isolcpus"),
			 "nohz_full", machine_cmdline(cmdline, "nohz_full"),
			 "rcu_nocbs", machine_cmdline(cmdline, "rcu_nocbs"),
			 "isolated", file_text("/sys/devices/system/cpu/isolated"),
			 "quota", file_text("/sys/fs/cgroup/cpu.max"),
			 "rt_runtime_us",
			 file_number("/proc/sys/kernel/sched_rt_runtime_us"));
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
			 file_chosen("/sys/kernel/mm/transparent_hugepage/enabled"),
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

	for (int i = 0; i < argc; i++)
		json_array_append_new(list, text_or_null(argv[i]));
	return list;
}

/* ---- all of it ---- */

json_t *machine_describe(int argc, char *const *argv)
{
	json_t *cmdline = file_text("/proc/cmdline");
	const char *words = json_is_string(cmdline) ? json_string_value(cmdline) : "";
	json_t *hypervisor = hypervisor_name(), *all;
	char name[256] = "";

	gethostname(name, sizeof(name) - 1);
	all = json_pack("{s:s, s:o, s:o, s:o, s:o, s:o, s:b, s:o, s:o, s:o, s:o, s:o,"
			" s:{s:s, s:s, s:b, s:s}, s:o}",
			"host", name, "os", file_value("/etc/os-release", "PRETTY_NAME"), "kernel", kernel(words),
			"cpu", cpu(), "clock", clocks(),
			"isolation", isolation(words),
			"virtual_machine", !json_is_null(hypervisor),
			"hypervisor", hypervisor,
			"product", file_text("/sys/class/dmi/id/product_name"),
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
