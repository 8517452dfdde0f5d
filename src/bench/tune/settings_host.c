/* SPDX-License-Identifier: BSD-2-Clause */
/* What is below and around, and cannot be changed from here: kernel, clock, hypervisor. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/tune/setting.h"

#define CLOCKSOURCE "/sys/devices/system/clocksource/clocksource0"

static void look_kernel(struct tune_look *l)
{
	const char *line = l->line;
	long long realtime = 0;

	tune_tree_number(l->tree, "/sys/kernel/realtime", &realtime);
	if (realtime || strstr(line, "PREEMPT_RT") || strstr(line, "PREEMPT RT")) {
		look_today(l, "PREEMPT_RT");
		return;
	}
	look_today(l, "%s", strstr(line, "PREEMPT_DYNAMIC") ?
		   "preemption is chosen at boot (PREEMPT_DYNAMIC)" :
		   strstr(line, "PREEMPT") ? "PREEMPT" : "no preemption inside of the kernel");
	look_better(l, "a kernel with PREEMPT_RT%s", strstr(line, "PREEMPT_DYNAMIC") ?
		    "; else preempt=full on the command line" : "");
}

static void look_clocksource(struct tune_look *l)
{
	const char *now = l->line;
	char available[256];

	tune_tree_line(l->tree, CLOCKSOURCE "/available_clocksource", available,
		       sizeof(available));
	look_today(l, "%s (of %s)", now, available);
	if (!strcmp(now, "tsc") || !strcmp(now, "arch_sys_counter"))
		return;
	if (tune_has_word(available, "tsc", TUNE_BLANKS))
		look_better(l, "tsc: clocksource=tsc on the kernel's command line");
	else
		look_limit(l, "the kernel offers no clock that programs can read by themselves%s",
			   strcmp(now, "kvm-clock") ? " (it may have found the TSC unstable: dmesg)" :
			   ", but this one is nearly as fast");
}

static void look_tsc(struct tune_look *l)
{
	char flags[TUNE_FLAGS_BYTES];
	bool invariant;

	if (tune_tree_value(l->tree, "/proc/cpuinfo", "flags", flags, sizeof(flags))) {
		look_absent(l, "no processor with a TSC");
		return;
	}
	invariant = tune_has_word(flags, "constant_tsc", TUNE_BLANKS) &&
		    tune_has_word(flags, "nonstop_tsc", TUNE_BLANKS);
	look_today(l, "%s", invariant ? "invariant" :
		   tune_has_word(flags, "tsc", TUNE_BLANKS) ? "not invariant" : "none");
	if (!invariant)
		look_limit(l, "the TSC changes its rate or stops%s: busbar reads the time by system calls, 20 to 70 ns each",
			   l->host->virtual ? ", or the hypervisor does not say that it does not" : "");
}

/* Time that the hypervisor gave to others, in percent since boot; below 0: unknown. */
static double steal_percent(const struct tune_tree *t)
{
	struct tune_ticks ticks;
	char line[256];

	if (tune_tree_line(t, "/proc/stat", line, sizeof(line)) ||
	    !tune_ticks_parse(line, &ticks) || !ticks.all)
		return -1;
	return 100.0 * (double)ticks.stolen / (double)ticks.all;
}

static void look_virtual(struct tune_look *l)
{
	char vendor[64], product[64];
	double steal = steal_percent(l->tree);

	if (!l->host->virtual) {
		look_today(l, "no hypervisor");
		return;
	}
	tune_tree_line(l->tree, "/sys/class/dmi/id/sys_vendor", vendor, sizeof(vendor));
	tune_tree_line(l->tree, "/sys/class/dmi/id/product_name", product, sizeof(product));
	look_today(l, "a hypervisor%s%s%s%s", vendor[0] || product[0] ? ": " : "", vendor,
		   product[0] ? " " : "", product);
	if (steal >= 0)
		look_limit(l, "it may take processors away (%.1f %% since boot by its own account; measured below): there, give each virtual processor one of its own",
			   steal);
	else
		look_limit(l, "it may take processors away (measured below): there, give each virtual processor one of its own");
}

/*
 * Where the hierarchy is mounted that has the controller cpu, and this process' path in it.
 * 1 or 2, its version; 0: there is none, or it cannot be read.
 */
static int cpu_hierarchy(const struct tune_tree *t, char mount[256], char path[512])
{
	char *mounts = NULL, *groups = NULL, *line, *rest;
	int version = 0;

	if (tune_tree_read(t, "/proc/self/mounts", &mounts) ||
	    tune_tree_read(t, "/proc/self/cgroup", &groups))
		goto out;
	for (line = strtok_r(mounts, "\n", &rest); line && version != 1;
	     line = strtok_r(NULL, "\n", &rest)) {
		char place[256], type[32], options[256];

		if (sscanf(line, "%*s %255s %31s %255s", place, type, options) != 3)
			continue;
		if (!strcmp(type, "cgroup") && tune_has_word(options, "cpu", ","))
			version = 1;
		else if (!strcmp(type, "cgroup2"))
			version = 2;
		else
			continue;
		snprintf(mount, 256, "%s", place);
	}
	/* "2:cpu,cpuacct:/path"; version 2 has no names: "0::/path". */
	path[0] = '\0';
	for (line = strtok_r(groups, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
		char *names = strchr(line, ':'), *at = names ? strchr(names + 1, ':') : NULL;

		if (!at)
			continue;
		*at = '\0';
		if (version == 1 ? tune_has_word(names + 1, "cpu", ",") : !names[1])
			snprintf(path, 512, "%s", at + 1);
	}
	version = path[0] ? version : 0;
out:
	free(mounts);
	free(groups);
	return version;
}

/* Quota and period of one cgroup; false: it has no quota. */
static bool read_quota(const struct tune_tree *t, int version, const char *mount,
		       const char *path, long long *quota, long long *period)
{
	char file[1024], line[64];

	if (version == 2) {
		snprintf(file, sizeof(file), "%s%s/cpu.max", mount, path);
		return !tune_tree_line(t, file, line, sizeof(line)) &&
		       sscanf(line, "%lld %lld", quota, period) == 2 && *period > 0;
	}
	snprintf(file, sizeof(file), "%s%s/cpu.cfs_quota_us", mount, path);
	if (tune_tree_number(t, file, quota) || *quota < 0)
		return false;
	snprintf(file, sizeof(file), "%s%s/cpu.cfs_period_us", mount, path);
	return !tune_tree_number(t, file, period) && *period > 0;
}

/* The smallest quota of this process' cgroup and those above it. 1: found, 0: there is
 * none, -1: it cannot be seen. */
static int find_quota(const struct tune_tree *t, long long *quota, long long *period)
{
	char mount[256], path[512], *end;
	int version = cpu_hierarchy(t, mount, path), found = 0;

	if (!version)
		return -1;
	/* The last one is that at the mount point, with an empty path. */
	for (end = path + strlen(path); end; end = end > path ? strrchr(path, '/') : NULL) {
		long long q, p;

		*end = '\0';
		if (read_quota(t, version, mount, path, &q, &p) &&
		    (!found || (double)q / (double)p < (double)*quota / (double)*period)) {
			*quota = q;
			*period = p;
			found = 1;
		}
	}
	return found;
}

static void look_quota(struct tune_look *l)
{
	long long quota, period;
	int found = find_quota(l->tree, &quota, &period);

	if (found < 0)
		look_absent(l, "the cgroup of this shell is not shown");
	else if (!found)
		look_today(l, "none");
	if (found <= 0)
		return;
	look_today(l, "%lld us of processor time in each %lld us", quota, period);
	look_limit(l, "when it is used up, all programs of the cgroup stop for the rest of the period: a gateway that polls uses it up");
	look_better(l, "'max' in cpu.max, version 1: -1 in cpu.cfs_quota_us (docker: no --cpus; Kubernetes: no CPU limit)");
}

const struct tune_setting tune_settings_host[] = {
	{ .name = "kernel", .look = look_kernel, .path = "/proc/version",
	  .absent = "/proc/version cannot be read",
	  .why = "PREEMPT_RT bounds the time for which the kernel cannot be interrupted, which is the rarest and longest delay." },
	{ .name = "clocksource", .look = look_clocksource, .path = CLOCKSOURCE "/current_clocksource",
	  .absent = "the kernel does not show its clock",
	  .why = "Every time stamp reads this clock; some take a microsecond and a system call." },
	{ .name = "tsc", .look = look_tsc,
	  .why = "busbar reads the time from this counter, within nanoseconds, if it may rely on it." },
	{ .name = "quota", .look = look_quota,
	  .why = "A limit on processor time (containers) stops a program in the middle of its work." },
	{ .name = "virtual", .look = look_virtual,
	  .why = "Below a hypervisor nothing is certain but what is measured." },
	{ .name = NULL },
};
