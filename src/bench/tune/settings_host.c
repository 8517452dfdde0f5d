/* SPDX-License-Identifier: BSD-2-Clause */
/* What is below and around, and cannot be changed from here: kernel, clock, hypervisor. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/tune/setting.h"

#define CLOCKSOURCE "/sys/devices/system/clocksource/clocksource0"

static void look_kernel(struct tune_look *l)
{
	char line[512];
	long long realtime = 0;

	if (tune_tree_line(l->tree, "/proc/version", line, sizeof(line))) {
		look_absent(l, "/proc/version cannot be read");
		return;
	}
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
	char now[64], available[256];

	if (tune_tree_line(l->tree, CLOCKSOURCE "/current_clocksource", now, sizeof(now))) {
		look_absent(l, "the kernel does not show its clock");
		return;
	}
	tune_tree_line(l->tree, CLOCKSOURCE "/available_clocksource", available,
		       sizeof(available));
	look_today(l, "%s (of %s)", now, available);
	if (!strcmp(now, "tsc") || !strcmp(now, "arch_sys_counter"))
		return;
	if (tune_has_word(available, "tsc"))
		look_better(l, "tsc: clocksource=tsc on the kernel's command line");
	else
		look_limit(l, "the kernel offers no clock that programs can read by themselves%s",
			   strcmp(now, "kvm-clock") ? " (it may have found the TSC unstable: dmesg)" :
			   ", but this one is nearly as fast");
}

static void look_tsc(struct tune_look *l)
{
	char *text, *flags;
	bool invariant;

	if (tune_tree_read(l->tree, "/proc/cpuinfo", &text))
		text = NULL;
	flags = text ? strstr(text, "\nflags") : NULL;
	if (!flags) {
		look_absent(l, "no processor with a TSC");
		free(text);
		return;
	}
	flags[1 + strcspn(flags + 1, "\n")] = '\0';
	invariant = tune_has_word(flags, "constant_tsc") && tune_has_word(flags, "nonstop_tsc");
	look_today(l, "%s", invariant ? "invariant" :
		   tune_has_word(flags, "tsc") ? "not invariant" : "none");
	if (!invariant)
		look_limit(l, "the TSC changes its rate or stops%s: busbar reads the time by system calls, 20 to 70 ns each",
			   l->host->virtual ? ", or the hypervisor does not say that it does not" : "");
	free(text);
}

/* Time that the hypervisor gave to others, in percent since boot; below 0: unknown. */
static double steal_percent(const struct tune_tree *t)
{
	unsigned long long v[8] = { 0 }, sum = 0;
	char line[256];

	if (tune_tree_line(t, "/proc/stat", line, sizeof(line)) ||
	    sscanf(line, "cpu %llu %llu %llu %llu %llu %llu %llu %llu", &v[0], &v[1], &v[2],
		   &v[3], &v[4], &v[5], &v[6], &v[7]) != 8)
		return -1;
	for (int i = 0; i < 8; i++)
		sum += v[i];
	return sum ? 100.0 * (double)v[7] / (double)sum : -1;
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

/* The path of this process in the hierarchy whose line begins with `begin`. */
static bool own_cgroup(const struct tune_tree *t, const char *begin, char *to, size_t size)
{
	char *text, *at;
	bool found;

	if (tune_tree_read(t, "/proc/self/cgroup", &text))
		return false;
	at = strstr(text, begin);
	found = at;
	if (at) {
		at += strlen(begin);
		snprintf(to, size, "%.*s", (int)strcspn(at, "\n"), at);
	}
	free(text);
	return found;
}

/* The smallest quota of this process' cgroup and those above it. */
static bool find_quota(const struct tune_tree *t, long long *quota, long long *period)
{
	char mount[256], path[512], file[1024], line[64];
	bool found = false;

	if (tune_cgroup_mount(t, mount, sizeof(mount)) ||
	    !own_cgroup(t, "0::", path, sizeof(path)))
		return false;
	for (char *end = path + strlen(path); end > path; *end = '\0') {
		long long q, p;

		snprintf(file, sizeof(file), "%s%s/cpu.max", mount, path);
		if (!tune_tree_line(t, file, line, sizeof(line)) &&
		    sscanf(line, "%lld %lld", &q, &p) == 2 && p > 0 &&
		    (!found || q * *period < *quota * p)) {
			*quota = q;
			*period = p;
			found = true;
		}
		end = strrchr(path, '/');
		if (!end)
			break;
	}
	return found;
}

static void look_quota(struct tune_look *l)
{
	long long quota, period;

	if (!find_quota(l->tree, &quota, &period)) {
		look_today(l, "none");
		return;
	}
	look_today(l, "%lld us of processor time in each %lld us", quota, period);
	look_limit(l, "when it is used up, all programs of the cgroup stop for the rest of the period: a gateway that polls uses it up");
	look_better(l, "'max' in cpu.max (docker: no --cpus; Kubernetes: no CPU limit)");
}

const struct tune_setting tune_settings_host[] = {
	{ .name = "kernel", .look = look_kernel,
	  .why = "PREEMPT_RT bounds the time for which the kernel cannot be interrupted, which is the rarest and longest delay." },
	{ .name = "clocksource", .look = look_clocksource,
	  .why = "Every time stamp reads this clock; some take a microsecond and a system call." },
	{ .name = "tsc", .look = look_tsc,
	  .why = "busbar reads the time from this counter, within nanoseconds, if it may rely on it." },
	{ .name = "quota", .look = look_quota,
	  .why = "A limit on processor time (containers) stops a program in the middle of its work." },
	{ .name = "virtual", .look = look_virtual,
	  .why = "Below a hypervisor nothing is certain but what is measured." },
	{ .name = NULL },
};
