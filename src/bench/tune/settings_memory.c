/* SPDX-License-Identifier: BSD-2-Clause */
/* Memory: huge pages, locking, swap, NUMA. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/tune/setting.h"
#include "util/container_of.h"

#define HUGE "/sys/kernel/mm/hugepages/hugepages-2048kB"
/* The gateway's own wish when its configuration says nothing (key `hugepages`). */
#define HUGE_WANTED 100
#define HUGE_KB 2048
#define PAGES_MOST (1LL << 40)

/* A number of pages that a file says; more than there can be counts as so many. */
static long long pages(long long n)
{
	return MIN(MAX(n, 0LL), PAGES_MOST);
}

static void look_hugepages(struct tune_look *l)
{
	long long total = pages(strtoll(l->line, NULL, 10)), spare = 0, wanted;
	long long memory = tune_tree_amount(l->tree, "/proc/meminfo", "MemTotal");
	char text[32];

	tune_tree_number(l->tree, HUGE "/free_hugepages", &spare);
	spare = pages(spare);
	look_today(l, "%lld pages of 2 MiB, %lld of them free", total, spare);
	wanted = total + HUGE_WANTED - spare;
	if (spare < HUGE_WANTED && memory >= 0 && wanted * HUGE_KB > memory / 4) {
		look_limit(l, "%d more pages would be more than a quarter of the memory, %lld MiB",
			   HUGE_WANTED, memory / 1024);
		return;
	}
	if (spare < HUGE_WANTED)
		look_better(l, "%d free pages, which is what a gateway asks for by default",
			    HUGE_WANTED);
	snprintf(text, sizeof(text), "%lld", spare < HUGE_WANTED ? wanted : total);
	look_want_file(l, HUGE "/nr_hugepages", text);
}

static void look_thp(struct tune_look *l)
{
	char today[32];

	tune_chosen(l->line, today, sizeof(today));
	look_today(l, "%s", today);
	if (!strcmp(today, "always"))
		look_better(l, "madvise");
	look_want(l, "vm", "transparent_hugepages", strcmp(today, "never") ? "madvise" : today);
}

/* What a process may have: soft limit of the line of /proc/self/limits, as text. */
static bool soft_limit(struct tune_look *l, const char *name, char *to, size_t size)
{
	if (tune_tree_value(l->tree, "/proc/self/limits", name, to, size)) {
		look_absent(l, "/proc/self/limits has no such line");
		return false;
	}
	to[strcspn(to, " ")] = '\0';
	return true;
}

static void look_memlock(struct tune_look *l)
{
	char today[32];

	if (!soft_limit(l, "Max locked memory", today, sizeof(today)))
		return;
	if (!strcmp(today, "unlimited")) {
		look_today(l, "unlimited");
		return;
	}
	look_today(l, "%lld KiB for this shell", strtoll(today, NULL, 10) / 1024);
	look_better(l, "unlimited: 'memlock' in /etc/security/limits.d, LimitMEMLOCK=infinity in a systemd unit, or 'busbar tune exec' as root");
}

static void look_rtprio(struct tune_look *l)
{
	char today[32];

	if (!soft_limit(l, "Max realtime priority", today, sizeof(today)))
		return;
	look_today(l, "%s for this shell", today);
	if (strtoll(today, NULL, 10) < 80)
		look_better(l, "99: 'rtprio' in /etc/security/limits.d, LimitRTPRIO=99 in a systemd unit, or 'busbar tune exec' as root");
}

static void look_swap(struct tune_look *l)
{
	long long kb = tune_tree_amount(l->tree, "/proc/meminfo", "SwapTotal");
	struct tune_profile *profile = l->profile;

	/* Nothing to swap to: it does not matter, and need not be changed. */
	if (kb == 0)
		l->profile = NULL;
	look_sysctl(l);
	l->profile = profile;
	if (kb == 0 && l->verdict == TUNE_BETTER) {
		l->verdict = TUNE_GOOD;
		l->better[0] = '\0';
		look_today(l, "there is no swap");
	}
}

static void look_numa(struct tune_look *l)
{
	size_t count;
	int *nodes;

	tune_tree_numbers(l->tree, "/sys/devices/system/node", "node", &nodes, &count);
	free(nodes);
	if (!count)
		look_absent(l, "no nodes are shown");
	else
		look_today(l, "%zu node%s", count, count > 1 ? "s" : "");
	if (count > 1)
		look_better(l, "programs, their memory and the adapter on one node: numactl --cpunodebind=N --membind=N; the adapter's node is in /sys/class/infiniband/*/device/numa_node");
}

const struct tune_setting tune_settings_memory[] = {
	{ .name = "hugepages", .look = look_hugepages, .applies = true,
	  .path = HUGE "/nr_hugepages", .absent = "the kernel has no pool of pages of 2 MiB",
	  .why = "Samples in pages of 2 MiB need fewer entries of the TLB, and a miss costs up to four memory accesses." },
	{ .name = "thp", .look = look_thp, .applies = true,
	  .path = "/sys/kernel/mm/transparent_hugepage/enabled",
	  .absent = "the kernel makes no huge pages by itself",
	  .why = "With 'always' a page fault may stop to collect 512 pages, and a kernel thread moves pages that are in use." },
	{ .name = "memlock", .look = look_memlock,
	  .why = "Memory that may not be locked can be paged out, and registering it with an adapter fails." },
	{ .name = "swap", .look = look_swap, .applies = true,
	  .path = "/proc/sys/vm/swappiness", .wanted = "10", .high = 10,
	  .why = "A page that comes back from the disk takes milliseconds." },
	{ .name = "numa", .look = look_numa,
	  .why = "Memory of another node takes up to half as long again." },
	{ .name = "numa_balancing", .look = look_sysctl, .applies = true,
	  .path = "/proc/sys/kernel/numa_balancing", .wanted = "0",
	  .why = "It unmaps pages on purpose, to see who uses them, and each such fault is a pause." },
	{ .name = "rtprio", .look = look_rtprio,
	  .why = "Without it a program of an ordinary user cannot have a real-time priority (key `priority` of a configuration)." },
	{ .name = NULL },
};
