/* SPDX-License-Identifier: BSD-2-Clause */
/* What check says of a host: one that nobody tuned, one that was, and special ones. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "bench/tune/setting.h"
#include "bench/tune/tune.h"
#include "tree.h"
#include "util/log.h"

static bool silent(enum log_level level, const char *line)
{
	(void)level;
	(void)line;
	return true;
}

static struct tune_look look(const char *root, const char *cpus, const char *name)
{
	struct tune_host host;
	struct tune_look l;

	assert_int_equal(tune_host_read(&host, root), 0);
	assert_int_equal(tune_cpus_parse_list(cpus, &host.cpus), 0);
	assert_non_null(tune_setting_find(name));
	tune_look(&host, tune_setting_find(name), NULL, &l);
	return l;
}

#define EXPECT(cpus, name, wanted, text)                                    \
	do {                                                                \
		struct tune_look l_ = look(root, cpus, name);               \
		if (l_.verdict != (wanted))                                 \
			print_error("%s: %s %s %s\n", name, l_.today, l_.better, l_.limit); \
		assert_int_equal(l_.verdict, wanted);                       \
		if (!strstr(l_.today, text) && !strstr(l_.better, text) &&  \
		    !strstr(l_.limit, text))                                \
			print_error("%s: no '%s' in %s %s %s\n", name, text, l_.today, \
				    l_.better, l_.limit);                   \
		assert_true(strstr(l_.today, text) || strstr(l_.better, text) || \
			    strstr(l_.limit, text));                        \
	} while (0)

/* All lines of the profile for one setting; free() it. */
static char *lines(const char *root, const char *name, bool *better)
{
	struct tune_profile p = { 0 };
	struct tune_host host;
	struct tune_look l;
	char *text;
	size_t size;
	FILE *f = open_memstream(&text, &size);

	assert_int_equal(tune_host_read(&host, root), 0);
	assert_int_equal(tune_cpus_parse_list("2-3", &host.cpus), 0);
	tune_look(&host, tune_setting_find(name), &p, &l);
	assert_int_equal(p.err, 0);
	for (size_t i = 0; i < p.count; i++)
		fprintf(f, "[%s] %s=%s\n", p.lines[i].section, p.lines[i].key,
			p.lines[i].value);
	fclose(f);
	if (better)
		*better = l.better[0];
	tune_profile_free(&p);
	return text;
}

#define EXPECT_LINES(name, wanted)                                   \
	do {                                                         \
		char *lines_ = lines(root, name, NULL);              \
		assert_string_equal(lines_, wanted);                 \
		free(lines_);                                        \
	} while (0)

static void each_setting_becomes_lines_of_a_plug_in_of_tuned(void **state)
{
	char *root = tree_make();

	(void)state;
	EXPECT_LINES("governor", "[cpu] governor=performance\n");
	EXPECT_LINES("energy", "[cpu] energy_performance_preference=performance\n");
	EXPECT_LINES("frequency",
		     "[sysfs] /sys/devices/system/cpu/cpufreq/policy0/scaling_min_freq=3400000\n"
		     "[sysfs] /sys/devices/system/cpu/cpufreq/policy2/scaling_min_freq=3400000\n");
	EXPECT_LINES("cstates",
		     "[sysfs] /sys/devices/system/cpu/cpu2/cpuidle/state2/disable=1\n"
		     "[sysfs] /sys/devices/system/cpu/cpu3/cpuidle/state2/disable=1\n");
	EXPECT_LINES("cpuset", "[script] script=${i:PROFILE_DIR}/partition.sh\n");
	EXPECT_LINES("irq", "[scheduler] runtime=0\n[scheduler] ps_whitelist=^$\n"
			    "[scheduler] isolated_cores=2-3\n");
	EXPECT_LINES("workqueue", "[sysfs] /sys/devices/virtual/workqueue/cpumask=3\n");
	EXPECT_LINES("hugepages",
		     "[sysfs] /sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages=105\n");
	EXPECT_LINES("thp", "[vm] transparent_hugepages=madvise\n");
	EXPECT_LINES("swap", "[sysctl] vm.swappiness=10\n");
	EXPECT_LINES("watchdog", "[sysctl] kernel.watchdog_cpumask=0-1\n");
	EXPECT_LINES("rt_throttling", "[sysctl] kernel.sched_rt_runtime_us=-1\n");
	EXPECT_LINES("turbo", "");
	tree_remove(root);
}

/* What is good today may be so by the profile that is active, which tuned takes back before it
 * applies another one. */
static void the_profile_also_has_what_is_good_already(void **state)
{
	char *root = tree_make();
	bool better;
	char *text;

	(void)state;
	tree_put(root, "/proc/sys/vm/swappiness", "5\n");
	tree_put(root, "/proc/sys/vm/stat_interval", "120\n");
	tree_put(root, "/proc/sys/kernel/watchdog_cpumask", "0\n");
	tree_put(root, "/sys/devices/virtual/workqueue/cpumask", "1\n");
	tree_put(root, "/sys/kernel/mm/transparent_hugepage/enabled", "always madvise [never]\n");
	tree_put(root, "/sys/devices/system/cpu/cpufreq/policy0/scaling_governor", "performance\n");
	tree_put(root, "/sys/devices/system/cpu/cpufreq/policy2/scaling_governor", "performance\n");
	text = lines(root, "governor", &better);
	assert_false(better);
	assert_string_equal(text, "[cpu] governor=performance\n");
	free(text);
	EXPECT_LINES("swap", "[sysctl] vm.swappiness=5\n");
	EXPECT_LINES("stat_interval", "[sysctl] vm.stat_interval=120\n");
	EXPECT_LINES("watchdog", "[sysctl] kernel.watchdog_cpumask=0\n");
	EXPECT_LINES("workqueue", "[sysfs] /sys/devices/virtual/workqueue/cpumask=1\n");
	EXPECT_LINES("thp", "[vm] transparent_hugepages=never\n");
	tree_put(root, "/proc/meminfo", "MemTotal: 16000000 kB\nSwapTotal: 0 kB\n");
	EXPECT_LINES("swap", "");
	tree_remove(root);
}

/* A setting that apply can change has lines whenever check says that it could be better. */
static void apply_can_do_what_check_wishes(void **state)
{
	char *root = tree_make();
	const struct tune_setting *s = NULL;

	(void)state;
	while ((s = tune_setting_next(s)))
		if (s->applies) {
			bool better;
			char *text = lines(root, s->name, &better);

			if (!better || !text[0])
				print_error("%s: better %d, lines '%s'\n", s->name, better, text);
			assert_true(better && text[0]);
			free(text);
		}
	tree_remove(root);
}

static void an_untuned_host_is_described(void **state)
{
	char *root = tree_make();

	(void)state;
	EXPECT("", "governor", TUNE_BETTER, "ondemand on 2 of 2");
	EXPECT("", "frequency", TUNE_BETTER, "800 to 3400 MHz");
	EXPECT("", "turbo", TUNE_GOOD, "on");
	EXPECT("", "cstates", TUNE_BETTER, "C6, 170 us");
	EXPECT("", "cpuset", TUNE_BETTER, "--cpus");
	EXPECT("2-3", "isolation", TUNE_BETTER, "nohz_full=2-3 rcu_nocbs=2-3");
	EXPECT("", "irq", TUNE_BETTER, "4 interrupts");
	EXPECT("2-3", "irq", TUNE_BETTER, "3 of 4 interrupts");
	EXPECT("", "irqbalance", TUNE_BETTER, "runs");
	EXPECT("3", "workqueue", TUNE_BETTER, "processors 0-2");
	EXPECT("", "smt", TUNE_BETTER, "several threads");
	EXPECT("", "hugepages", TUNE_BETTER, "8 pages of 2 MiB, 3 of them free");
	EXPECT("", "thp", TUNE_BETTER, "always");
	EXPECT("", "memlock", TUNE_BETTER, "8192 KiB");
	EXPECT("", "rtprio", TUNE_BETTER, "0 for this shell");
	EXPECT("", "swap", TUNE_BETTER, "60");
	EXPECT("", "numa", TUNE_BETTER, "2 nodes");
	EXPECT("", "rt_throttling", TUNE_LIMIT, "950000 of each 1000000");
	EXPECT("", "watchdog", TUNE_GOOD, "processors 0-3");
	EXPECT("", "kernel", TUNE_BETTER, "PREEMPT_RT");
	EXPECT("", "clocksource", TUNE_LIMIT, "hpet");
	EXPECT("", "tsc", TUNE_LIMIT, "not invariant");
	EXPECT("", "quota", TUNE_LIMIT, "50000 us");
	EXPECT("", "virtual", TUNE_LIMIT, "10.0 %");
	tree_remove(root);
}

static void special_hosts_are_told_apart(void **state)
{
	char *root = tree_make(), path[512];

	(void)state;
	tree_put(root, "/proc/meminfo", "MemTotal: 600000 kB\nSwapTotal: 0 kB\n");
	EXPECT("", "hugepages", TUNE_LIMIT, "quarter of the memory");
	EXPECT("", "swap", TUNE_GOOD, "no swap");
	tree_put(root, "/proc/sys/vm/stat_interval", "120\n");
	EXPECT("", "stat_interval", TUNE_GOOD, "120");
	tree_put(root, "/proc/version", "Linux version 6.6.1 #1 SMP PREEMPT_RT\n");
	EXPECT("", "kernel", TUNE_GOOD, "PREEMPT_RT");
	EXPECT("", "rt_throttling", TUNE_BETTER, "-1");
	tree_put(root, "/proc/cmdline", "quiet nohz_full=2-3 rcu_nocbs=2-3 isolcpus=2-3\n");
	EXPECT("", "isolation", TUNE_GOOD, "isolcpus=2-3");
	EXPECT("", "timer_migration", TUNE_GOOD, "nohz_full");
	tree_put(root, "/proc/cpuinfo", "flags : tsc constant_tsc nonstop_tsc\n");
	tree_put(root, "/proc/cpuinfo", "processor: 0\nflags : tsc constant_tsc nonstop_tsc\n");
	EXPECT("", "tsc", TUNE_GOOD, "invariant");
	EXPECT("", "virtual", TUNE_GOOD, "no hypervisor");
	tree_put(root, "/sys/fs/cgroup/limited.slice/cpu.max", "max 100000\n");
	EXPECT("", "quota", TUNE_GOOD, "none");
	tree_put(root, "/sys/fs/cgroup/cpu.max", "30000 100000\n");
	EXPECT("", "quota", TUNE_LIMIT, "30000 us");
	tree_put(root, "/proc/self/cgroup", "3:cpu,cpuacct:/a/b\n2:cpuset:/\n0::/limited.slice\n");
	tree_put(root, "/sys/fs/cgroup/cpu/a/cpu.cfs_quota_us", "20000\n");
	tree_put(root, "/sys/fs/cgroup/cpu/a/cpu.cfs_period_us", "50000\n");
	tree_put(root, "/sys/fs/cgroup/cpu/a/b/cpu.cfs_quota_us", "-1\n");
	tree_put(root, "/proc/self/mounts",
		 "cgroup /sys/fs/cgroup/cpu cgroup rw,cpu,cpuacct 0 0\n"
		 "cgroup /sys/fs/cgroup/cpuset cgroup rw,cpuset 0 0\n"
		 "cgroup2 /sys/fs/cgroup cgroup2 rw 0 0\n");
	EXPECT("", "quota", TUNE_LIMIT, "20000 us");
	tree_put(root, "/sys/fs/cgroup/cgroup.controllers", "hugetlb\n");
	EXPECT("2", "cpuset", TUNE_LIMIT, "version 1");
	tree_put(root, "/proc/self/mounts", "proc /proc proc rw 0 0\n");
	EXPECT("2", "cpuset", TUNE_LIMIT, "not mounted");
	EXPECT("", "quota", TUNE_ABSENT, "not shown");
	snprintf(path, sizeof(path), "%s/sys/devices/system/cpu/nohz_full", root);
	unlink(path);
	tree_put(root, "/proc/cmdline", "quiet\n");
	EXPECT("", "isolation", TUNE_LIMIT, "without nohz_full");
	tree_put(root, "/sys/devices/system/cpu/online", "0\n");
	EXPECT("", "irq", TUNE_LIMIT, "one processor");
	tree_remove(root);
}

/* A partition that the kernel did not take is no success. */
static void an_invalid_partition_is_seen(void **state)
{
	char *root = tree_make();

	(void)state;
	tree_put(root, "/sys/fs/cgroup/busbar-rt/cpuset.cpus", "2-3\n");
	tree_put(root, "/sys/fs/cgroup/busbar-rt/cpuset.cpus.partition",
		 "isolated invalid (Cpu list in cpuset.cpus not exclusive)\n");
	EXPECT("2-3", "cpuset", TUNE_LIMIT, "not exclusive");
	tree_put(root, "/sys/fs/cgroup/busbar-rt/cpuset.cpus.partition", "isolated\n");
	EXPECT("2-3", "cpuset", TUNE_GOOD, "isolated");
	tree_remove(root);
}

/* With any one file missing, empty or nonsense, looking ends well and plans can be made. */
static void no_file_is_needed(void **state)
{
	static const char *const texts[] = { "", "\n", "nonsense [\n", "-1\n",
					     "999999999999999999999\n", "cpu\nflags" };
	char *root = tree_make(), *all = tree_snapshot(root), *line, *next;
	struct tune_options o = { .root = root, .cpus = "2", .dry_run = true };
	FILE *nowhere = fopen("/dev/null", "we");

	(void)state;
	for (line = all; line && *line; line = next) {
		char *end = strchr(line, '=');
		char *was;

		next = strstr(line, ";\n/");
		if (next)
			next += 2;
		if (!end || (next && end > next) || memchr(line, '\n', (size_t)(end - line))) {
			/* A directory: on to the next line. */
			next = strchr(line, '\n');
			next = next ? next + 1 : NULL;
			continue;
		}
		*end = '\0';
		was = tree_get(root, line);
		for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
			tree_put(root, line, texts[i]);
			tune_check_main(&o, nowhere);
			tune_apply_main(&o, nowhere);
		}
		tree_put(root, line, was);
		free(was);
	}
	fclose(nowhere);
	free(all);
	tree_remove(root);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_setting_becomes_lines_of_a_plug_in_of_tuned),
		cmocka_unit_test(the_profile_also_has_what_is_good_already),
		cmocka_unit_test(apply_can_do_what_check_wishes),
		cmocka_unit_test(an_untuned_host_is_described),
		cmocka_unit_test(special_hosts_are_told_apart),
		cmocka_unit_test(an_invalid_partition_is_seen),
		cmocka_unit_test(no_file_is_needed),
	};

	log_set_sink(silent);
	return cmocka_run_group_tests_name("tune: settings", tests, NULL, NULL);
}
