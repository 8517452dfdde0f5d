/* SPDX-License-Identifier: BSD-2-Clause */
/* Rules of the kernel's scheduler and timers. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/tune/setting.h"

#define WATCHDOG_CPUS "/proc/sys/kernel/watchdog_cpumask"

/* major * 1000 + minor of "Linux version 6.12.1 ..."; 0: unknown. */
static int kernel_version(const struct tune_tree *t)
{
	char line[512];
	int major, minor;

	if (tune_tree_line(t, "/proc/version", line, sizeof(line)) ||
	    sscanf(line, "Linux version %d.%d", &major, &minor) != 2)
		return 0;
	return major * 1000 + minor;
}

static void look_rt_throttling(struct tune_look *l)
{
	long long period = 1000000, runtime;

	look_sysctl(l);
	tune_tree_number(l->tree, "/proc/sys/kernel/sched_rt_period_us", &period);
	if (!tune_tree_number(l->tree, l->setting->path, &runtime) && runtime >= 0)
		look_today(l, "real-time programs get at most %lld of each %lld us", runtime, period);
	else
		look_today(l, "off");
	if (kernel_version(l->tree) >= 6012)
		look_limit(l, "since Linux 6.12 other programs that wait on the same processor get 50 ms of each second whatever this says (debugfs: sched/fair_server): keep them away by a cpuset");
}

/*
 * With nohz_full, timers of the processors without a tick should go to others. Without it, a
 * gateway that sleeps until its next step wants the timer on its own processor.
 */
static void look_timer_migration(struct tune_look *l)
{
	char *cmdline = NULL;
	bool full = !tune_tree_read(l->tree, "/proc/cmdline", &cmdline) &&
		    strstr(cmdline, "nohz_full=");

	free(cmdline);
	if (full)
		look_today(l, "on, as is right with nohz_full");
	else
		look_sysctl(l);
}

/* The watchdog's threads need not visit the gateway's processors. */
static void look_watchdog(struct tune_look *l)
{
	char *former, list[4096], today[128];
	struct tune_cpus now, wanted;
	bool on = strtoll(l->line, NULL, 10);

	if (!on || tune_tree_read(l->tree, WATCHDOG_CPUS, &former)) {
		look_today(l, "%s", on ? "on" : "off");
		return;
	}
	if (!tune_cpus_parse_list(former, &now)) {
		wanted = tune_cpus_minus(&now, &l->host->cpus);
		snprintf(today, sizeof(today), "%.*s", (int)strcspn(former, "\n"), former);
		look_today(l, "on, on processors %s", today);
		if (tune_cpus_count(&l->host->cpus) && tune_cpus_count(&wanted) &&
		    !tune_cpus_print_list(&wanted, list, sizeof(list))) {
			if (tune_cpus_meet(&now, &l->host->cpus))
				look_better(l, "on processors %.200s", list);
			look_want_file(l, WATCHDOG_CPUS, list);
		}
	}
	free(former);
}

const struct tune_setting tune_settings_kernel[] = {
	{ .name = "rt_throttling", .look = look_rt_throttling, .applies = true,
	  .path = "/proc/sys/kernel/sched_rt_runtime_us", .wanted = "-1", .low = -1,
	  .high = -1,
	  .why = "A gateway that polls in a real-time class uses its processor all the time, and would be stopped in each period." },
	{ .name = "timer_migration", .look = look_timer_migration, .applies = true,
	  .path = "/proc/sys/kernel/timer_migration", .wanted = "0",
	  .why = "A timer that has moved to another processor wakes the gateway by way of that one." },
	{ .name = "autogroup", .look = look_sysctl, .applies = true,
	  .path = "/proc/sys/kernel/sched_autogroup_enabled", .wanted = "0",
	  .why = "With it, nice values count only among the programs of one terminal." },
	{ .name = "nmi_watchdog", .look = look_sysctl, .applies = true,
	  .path = "/proc/sys/kernel/nmi_watchdog", .wanted = "0",
	  .why = "It interrupts every busy processor about every ten seconds and occupies a performance counter." },
	{ .name = "watchdog", .look = look_watchdog, .applies = true,
	  .path = "/proc/sys/kernel/watchdog", .absent = "the kernel has no watchdog for lock-ups",
	  .why = "Its thread comes before every program, also those in a real-time class." },
	{ .name = "stat_interval", .look = look_sysctl, .applies = true,
	  .path = "/proc/sys/vm/stat_interval", .wanted = "10", .low = 10, .high = INT_MAX,
	  .why = "Each processor is interrupted once in this many seconds to add up memory statistics." },
	{ .name = NULL },
};
