/* SPDX-License-Identifier: BSD-2-Clause */
/* The CPUs of the two processes that measure, and what else they are given. */
#include <arpa/inet.h>
#include <errno.h>
#include <sched.h>

#include "bench/floor/floor_parts.h"
#include "util/clock.h"

/* With this time all measurements take about four seconds. */
#define ROUND_NS (7 * UINT64_C(1000000))

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

int floor_default_setting(struct floor_setting *setting)
{
	const struct floor_host here = { .address.s_addr = htonl(INADDR_LOOPBACK) };

	*setting = (struct floor_setting){ .hosts = { here, here }, .round_ns = ROUND_NS };
	return floor_default_cpus(&setting->cpus);
}
