/* SPDX-License-Identifier: BSD-2-Clause */
/* See tree.h. */
#include "tree.h"

#include <dirent.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define CPU "/sys/devices/system/cpu"
#define CGROUP "/sys/fs/cgroup"

static const char *const files[][2] = {
	{ CPU "/online", "0-3\n" },
	{ CPU "/smt/active", "1\n" },
	{ CPU "/cpuidle/current_driver", "intel_idle\n" },
	{ CPU "/intel_pstate/no_turbo", "0\n" },
	{ CPU "/nohz_full", "(null)\n" },
	{ "/sys/devices/system/node/node0/cpulist", "0-1\n" },
	{ "/sys/devices/system/node/node1/cpulist", "2-3\n" },
	{ "/sys/devices/system/clocksource/clocksource0/current_clocksource", "hpet\n" },
	{ "/sys/devices/system/clocksource/clocksource0/available_clocksource",
	  "hpet acpi_pm \n" },
	{ "/sys/devices/virtual/workqueue/cpumask", "f\n" },
	{ "/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages", "8\n" },
	{ "/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages", "3\n" },
	{ "/sys/kernel/mm/transparent_hugepage/enabled", "[always] madvise never\n" },
	{ CGROUP "/cgroup.controllers", "cpuset cpu io memory pids\n" },
	{ CGROUP "/cgroup.subtree_control", "memory pids\n" },
	{ CGROUP "/limited.slice/cpu.max", "50000 100000\n" },
	{ "/dev/cpu_dma_latency", "" },
	{ "/proc/self/mounts", "proc /proc proc rw 0 0\ncgroup2 " CGROUP " cgroup2 rw 0 0\n" },
	{ "/proc/self/cgroup", "0::/limited.slice\n" },
	{ "/proc/self/limits",
	  "Limit                     Soft Limit           Hard Limit           Units     \n"
	  "Max locked memory         8388608              8388608              bytes     \n"
	  "Max realtime priority     0                    0                    \n" },
	{ "/proc/cpuinfo", "processor\t: 0\nflags\t\t: fpu tsc hypervisor constant_tsc\n" },
	{ "/proc/stat", "cpu  100 0 0 800 0 0 0 100 0 0\n" },
	{ "/proc/version", "Linux version 6.12.3 (a@b) #1 SMP PREEMPT_DYNAMIC\n" },
	{ "/proc/cmdline", "root=/dev/sda1 quiet\n" },
	{ "/proc/meminfo", "MemTotal:       16000000 kB\nSwapTotal:       2000000 kB\n" },
	{ "/proc/417/comm", "irqbalance\n" },
	{ "/proc/irq/default_smp_affinity", "f\n" },
	{ "/proc/irq/0/smp_affinity_list", "0-3\n" },
	{ "/proc/irq/9/smp_affinity_list", "0\n" },
	{ "/proc/irq/24/smp_affinity_list", "2-3\n" },
	{ "/proc/irq/131/smp_affinity_list", "1-2\n" },
	{ "/proc/sys/vm/swappiness", "60\n" },
	{ "/proc/sys/vm/stat_interval", "1\n" },
	{ "/proc/sys/kernel/numa_balancing", "1\n" },
	{ "/proc/sys/kernel/sched_rt_period_us", "1000000\n" },
	{ "/proc/sys/kernel/sched_rt_runtime_us", "950000\n" },
	{ "/proc/sys/kernel/timer_migration", "1\n" },
	{ "/proc/sys/kernel/sched_autogroup_enabled", "1\n" },
	{ "/proc/sys/kernel/nmi_watchdog", "1\n" },
	{ "/proc/sys/kernel/watchdog", "1\n" },
	{ "/proc/sys/kernel/watchdog_cpumask", "0-3\n" },
};

/* Trees of tests that failed go with the program. */
static char *trees[64];

static int remove_entry(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	return remove(path);
}

static void remove_rest(void)
{
	for (size_t i = 0; i < sizeof(trees) / sizeof(trees[0]); i++)
		if (trees[i])
			nftw(trees[i], remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

static void remember(char *root)
{
	size_t i = 0;

	while (trees[i])
		if (++i == sizeof(trees) / sizeof(trees[0]))
			abort();
	trees[i] = root;
}

static void make_parents(char *path)
{
	for (char *at = path + 1; (at = strchr(at, '/')); at++) {
		*at = '\0';
		mkdir(path, 0755);
		*at = '/';
	}
}

void tree_put(const char *root, const char *path, const char *text)
{
	char full[512];
	FILE *f;

	snprintf(full, sizeof(full), "%s%s", root, path);
	f = fopen(full, "we");
	if (!f) {
		make_parents(full);
		f = fopen(full, "we");
	}
	if (!f || fputs(text, f) < 0 || fclose(f)) {
		perror(full);
		abort();
	}
}

static void put_policy(const char *root, int policy, const char *file, const char *text)
{
	char path[128];

	snprintf(path, sizeof(path), CPU "/cpufreq/policy%d/%s", policy, file);
	tree_put(root, path, text);
}

static void put_states(const char *root, int cpu)
{
	static const char *const states[][2] = {
		{ "POLL", "0\n" }, { "C1", "2\n" }, { "C6", "170\n" },
	};
	char path[128];

	for (int i = 0; i < 3; i++) {
		snprintf(path, sizeof(path), CPU "/cpu%d/cpuidle/state%d/name", cpu, i);
		tree_put(root, path, states[i][0]);
		snprintf(path, sizeof(path), CPU "/cpu%d/cpuidle/state%d/latency", cpu, i);
		tree_put(root, path, states[i][1]);
		snprintf(path, sizeof(path), CPU "/cpu%d/cpuidle/state%d/disable", cpu, i);
		tree_put(root, path, "0\n");
	}
}

char *tree_make(void)
{
	const char *tmp = getenv("TMPDIR");
	static int made;
	char *root;

	if (asprintf(&root, "%s/busbar-tune.XXXXXX", tmp ? tmp : "/tmp") < 0 || !mkdtemp(root)) {
		perror("mkdtemp");
		abort();
	}
	if (!made++)
		atexit(remove_rest);
	remember(root);
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++)
		tree_put(root, files[i][0], files[i][1]);
	for (int i = 0; i < 4; i += 2) {
		put_policy(root, i, "scaling_available_governors", "performance powersave\n");
		put_policy(root, i, "scaling_governor", i ? "powersave\n" : "ondemand\n");
		put_policy(root, i, "energy_performance_preference", "balance_performance\n");
		put_policy(root, i, "cpuinfo_max_freq", "3400000\n");
		put_policy(root, i, "scaling_max_freq", "3400000\n");
		put_policy(root, i, "scaling_min_freq", "800000\n");
	}
	for (int i = 2; i < 4; i++)
		put_states(root, i);
	return root;
}

void tree_remove(char *root)
{
	for (size_t i = 0; i < sizeof(trees) / sizeof(trees[0]); i++)
		if (trees[i] == root)
			trees[i] = NULL;
	nftw(root, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
	free(root);
}

char *tree_get(const char *root, const char *path)
{
	char full[512], *text = calloc(1, 65536);
	FILE *f;

	snprintf(full, sizeof(full), "%s%s", root, path);
	f = fopen(full, "re");
	if (!f || !text) {
		free(text);
		return NULL;
	}
	text[fread(text, 1, 65535, f)] = '\0';
	fclose(f);
	return text;
}

static void walk(const char *root, const char *path, FILE *out)
{
	struct dirent **names;
	char full[512];
	int count;

	snprintf(full, sizeof(full), "%s%s", root, path);
	count = scandir(full, &names, NULL, alphasort);
	for (int i = 0; i < count; i++) {
		char *text;

		if (strcmp(names[i]->d_name, ".") && strcmp(names[i]->d_name, "..")) {
			snprintf(full, sizeof(full), "%s/%s", path, names[i]->d_name);
			fprintf(out, "%s", full);
			if (names[i]->d_type == DT_DIR) {
				fprintf(out, "/\n");
				walk(root, full, out);
			} else {
				text = tree_get(root, full);
				fprintf(out, "=%s;\n", text ? text : "?");
				free(text);
			}
		}
		free(names[i]);
	}
	if (count >= 0)
		free(names);
}

char *tree_snapshot(const char *root)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	walk(root, "", out);
	fclose(out);
	return text;
}
