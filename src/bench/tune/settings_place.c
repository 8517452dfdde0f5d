/* SPDX-License-Identifier: BSD-2-Clause */
/* Who runs on which processor: cpusets, interrupts, work queues, sibling threads. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/tune/setting.h"

#define IRQ "/proc/irq"
#define ASK_CPUS "name the processors of the gateway: --cpus LIST"
#define LIST_MAX 4096

static bool chosen(const struct tune_look *l)
{
	return tune_cpus_count(&l->host->cpus);
}

static void print_list(const struct tune_cpus *c, char *to, size_t size)
{
	if (tune_cpus_print_list(c, to, size))
		snprintf(to, size, "many");
}

/* The processors for all other work. */
static struct tune_cpus others(const struct tune_look *l)
{
	return tune_cpus_minus(&l->host->online, &l->host->cpus);
}

/* Wants a partition; there is no plug-in of tuned for cgroups of version 2, but for scripts. */
static void want_partition(struct tune_look *l, const char *mount)
{
	char path[640], whole[1024], list[LIST_MAX];

	if (tune_cpus_print_list(&l->host->cpus, list, sizeof(list))) {
		look_limit(l, "the list of processors is too long");
		return;
	}
	snprintf(path, sizeof(path), "%s%s", l->tree->root, mount);
	snprintf(whole, sizeof(whole), "%s/" TUNE_CGROUP, path);
	if (strpbrk(whole, "'\\\n"))
		look_limit(l, "the path %.200s has a character that a script cannot take", whole);
	else if (l->profile)
		tune_profile_add_partition(l->profile, path, whole, list);
}

/* 0: the controller can be used; else the verdict is set. */
static int look_controller(struct tune_look *l, char *mount, size_t size)
{
	char path[640], controllers[256];

	if (tune_cgroup_mount(l->tree, mount, size)) {
		look_limit(l, "cgroup version 2 is not mounted: nobody can make partitions");
		return -ENOENT;
	}
	snprintf(path, sizeof(path), "%s/cgroup.controllers", mount);
	tune_tree_line(l->tree, path, controllers, sizeof(controllers));
	if (!tune_has_word(controllers, "cpuset", TUNE_BLANKS)) {
		look_limit(l, "%.200s has no controller 'cpuset': the kernel is built without it, or it belongs to cgroup version 1 (cgroup_no_v1=cpuset gives it back)",
			   mount);
		return -ENOENT;
	}
	return 0;
}

static void look_cpuset(struct tune_look *l)
{
	char mount[512], path[640], cpus[128], partition[128];

	look_today(l, "no partition of ours");
	if (look_alone(l, "divide") || look_controller(l, mount, sizeof(mount)))
		return;
	snprintf(path, sizeof(path), "%s/" TUNE_CGROUP, mount);
	if (tune_tree_exists(l->tree, path)) {
		snprintf(path, sizeof(path), "%s/" TUNE_CGROUP "/cpuset.cpus", mount);
		tune_tree_line(l->tree, path, cpus, sizeof(cpus));
		snprintf(path, sizeof(path), "%s/" TUNE_CGROUP "/cpuset.cpus.partition", mount);
		tune_tree_line(l->tree, path, partition, sizeof(partition));
		look_today(l, "cgroup " TUNE_CGROUP " has processors %.100s, partition: %.100s",
			   cpus, partition);
		if (strcmp(partition, "isolated") && strcmp(partition, "root"))
			look_limit(l, "the cgroup " TUNE_CGROUP " is there, but the kernel does not take it as a partition: see that no other cgroup claims its processors, and apply again");
	} else if (chosen(l)) {
		look_better(l, "an isolated partition " TUNE_CGROUP "; 'busbar tune exec' starts programs in it");
	} else {
		look_better(l, "an isolated partition; " ASK_CPUS);
	}
	if (chosen(l))
		want_partition(l, mount);
}

/* Only interrupts: the plug-in would also move programs, but for those that ps_whitelist does
 * not match. */
static void want_irqs_away(struct tune_look *l)
{
	char list[LIST_MAX];

	if (tune_cpus_print_list(&l->host->cpus, list, sizeof(list))) {
		look_limit(l, "the list of processors is too long");
		return;
	}
	look_want(l, "scheduler", "runtime", "0");
	look_want(l, "scheduler", "ps_whitelist", "^$");
	look_want(l, "scheduler", "isolated_cores", list);
}

static void look_irq(struct tune_look *l)
{
	size_t count, there = 0, meet = 0;
	char list[128];
	int *irqs;

	look_failed(l, tune_tree_numbers(l->tree, IRQ, "", &irqs, &count));
	for (size_t i = 0; i < count; i++) {
		char path[64], *text;
		struct tune_cpus now;

		snprintf(path, sizeof(path), IRQ "/%d/smp_affinity_list", irqs[i]);
		if (tune_tree_read(l->tree, path, &text))
			continue;
		if (!tune_cpus_parse_list(text, &now)) {
			there++;
			meet += tune_cpus_meet(&now, &l->host->cpus);
		}
		free(text);
	}
	free(irqs);
	if (!there) {
		look_absent(l, "no interrupts are shown");
		return;
	}
	look_today(l, "%zu interrupts", there);
	if (look_alone(l, "divide"))
		return;
	if (!chosen(l)) {
		look_better(l, "none on the gateway's processors; " ASK_CPUS);
	} else if (meet) {
		struct tune_cpus rest = others(l);

		print_list(&rest, list, sizeof(list));
		look_today(l, "%zu of %zu interrupts may come to the chosen processors", meet,
			   there);
		look_better(l, "only on %s", list);
	}
	if (chosen(l))
		want_irqs_away(l);
}

static void look_irqbalance(struct tune_look *l)
{
	size_t count;
	bool found = false;
	int *pids;

	tune_tree_numbers(l->tree, "/proc", "", &pids, &count);
	for (size_t i = 0; i < count && !found; i++) {
		char path[64], name[32];

		snprintf(path, sizeof(path), "/proc/%d/comm", pids[i]);
		found = !tune_tree_line(l->tree, path, name, sizeof(name)) &&
			!strcmp(name, "irqbalance");
	}
	free(pids);
	look_today(l, "%s", found ? "runs" : "does not run");
	if (found)
		look_better(l, "stopped (systemctl stop irqbalance), or kept away by IRQBALANCE_BANNED_CPULIST");
}

static void look_workqueue(struct tune_look *l)
{
	char mask[LIST_MAX], list[128];
	struct tune_cpus now, wanted;

	if (tune_cpus_parse_mask(l->line, &now)) {
		look_absent(l, "%s: no mask of processors", l->setting->path);
		return;
	}
	print_list(&now, list, sizeof(list));
	look_today(l, "processors %s", list);
	wanted = tune_cpus_minus(&now, &l->host->cpus);
	if (!tune_cpus_count(&wanted))
		wanted = others(l);
	if (look_alone(l, "divide"))
		return;
	if (!chosen(l)) {
		look_better(l, "none on the gateway's processors; " ASK_CPUS);
	} else if (!tune_cpus_print_mask(&wanted, mask, sizeof(mask))) {
		print_list(&wanted, list, sizeof(list));
		if (tune_cpus_meet(&now, &l->host->cpus))
			look_better(l, "processors %s", list);
		look_want_file(l, l->setting->path, mask);
	}
}

/* The word "name=..." of the kernel's command line; NULL: there is none. */
static const char *boot_word(const char *cmdline, const char *name, size_t *length)
{
	const char *at = cmdline;

	while ((at = strstr(at, name)))
		if (at == cmdline || at[-1] == ' ') {
			*length = strcspn(at, " \n");
			return at;
		} else {
			at++;
		}
	return NULL;
}

static void look_isolation(struct tune_look *l)
{
	static const char *const names[] = { "isolcpus=", "nohz_full=", "rcu_nocbs=" };
	char list[128] = "LIST", today[200] = "";
	bool missing[3];

	for (int i = 0; i < 3; i++) {
		size_t length = 0, used = strlen(today);
		const char *word = boot_word(l->line, names[i], &length);

		missing[i] = !word;
		if (word)
			snprintf(today + used, sizeof(today) - used, "%s%.*s", used ? " " : "",
				 (int)length, word);
	}
	look_today(l, "%s", today[0] ? today : "the kernel's command line isolates nothing");
	if (look_alone(l, "isolate"))
		return;
	if (missing[1] && !tune_tree_exists(l->tree, "/sys/devices/system/cpu/nohz_full"))
		look_limit(l, "the kernel is built without nohz_full: the timer interrupt stays on every processor");
	if (chosen(l))
		print_list(&l->host->cpus, list, sizeof(list));
	if (missing[1] || missing[2])
		look_better(l, "nohz_full=%.80s rcu_nocbs=%.80s on the kernel's command line%s", list,
			    list, missing[0] ? "; a cpuset partition replaces isolcpus" : "");
}

static void look_smt(struct tune_look *l)
{
	bool active = strtoll(l->line, NULL, 10);

	look_today(l, "%s", active ? "cores run several threads" :
		   l->host->virtual ? "one thread a core, as far as the hypervisor shows" :
		   "one thread a core");
	if (active)
		look_better(l, "nothing on the sibling of a gateway's processor (.../cpuN/topology/thread_siblings_list), or 'echo off' to /sys/devices/system/cpu/smt/control");
}

const struct tune_setting tune_settings_place[] = {
	{ .name = "cpuset", .look = look_cpuset, .applies = true,
	  .why = "Other programs on a processor of the gateway take it away for milliseconds; a partition keeps them off, threads started later included." },
	{ .name = "isolation", .look = look_isolation, .path = "/proc/cmdline",
	  .absent = "/proc/cmdline cannot be read",
	  .why = "The timer interrupt and the kernel's own clean-up otherwise come to every processor, up to 1000 times a second." },
	{ .name = "irq", .look = look_irq, .applies = true, .may_remain = true,
	  .why = "An interrupt takes some microseconds from whatever runs on its processor." },
	{ .name = "irqbalance", .look = look_irqbalance,
	  .why = "It moves interrupts while the gateway runs, also back to its processors." },
	{ .name = "workqueue", .look = look_workqueue, .applies = true,
	  .path = "/sys/devices/virtual/workqueue/cpumask",
	  .absent = "the kernel does not show where its work queues run",
	  .why = "The kernel's deferred work runs on any processor unless it is told where." },
	{ .name = "smt", .look = look_smt, .path = "/sys/devices/system/cpu/smt/active",
	  .absent = "the kernel does not show whether cores have several threads",
	  .why = "Two threads of a core share its execution units, so each is slower while the other works." },
	{ .name = NULL },
};
