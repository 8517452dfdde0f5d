/* SPDX-License-Identifier: BSD-2-Clause */
/* The table of measurements, and what is the same in all of them. */
#include <arpa/inet.h>
#include <errno.h>
#include <sched.h>
#include <string.h>

#include "bench/floor/floor_method.h"
#include "util/container_of.h"
#include "util/hist.h"
#include "util/order.h"

/* With this time all measurements take about four seconds. */
#define ROUND_NS (7 * UINT64_C(1000000))

/* In the order in which they are printed. */
const struct floor_measure floor_measures[] = {
	{ "cacheline_oneway_ns", "cache line to another CPU, one way", "ns", 0, &floor_cacheline },
	{ "eventfd_wakeup_ns", "waking a sleeping process (eventfd)", "ns", 0, &floor_eventfd },
	{ "udp_rtt_64_ns", "UDP loopback round trip 64 B, polling", "ns", 64, &floor_udp },
	{ "udp_packets_rtt_64_ns", "the same with what packets of RoCE v2 need", "ns", 64,
	  &floor_udp_packets },
	{ "tcp_rtt_64_ns", "TCP loopback round trip 64 B, polling", "ns", 64, &floor_tcp },
	{ "udp_sleeping_rtt_64_ns", "UDP round trip 64 B, asleep meanwhile", "ns", 64,
	  &floor_udp_sleeping },
	{ "tcp_sleeping_rtt_64_ns", "TCP round trip 64 B, asleep meanwhile", "ns", 64,
	  &floor_tcp_sleeping },
	{ "udp_stream_1040_gbs", "UDP stream, trains of 1040 B (GSO, GRO)", "GB/s", 1040,
	  &floor_udp_stream },
	{ "udp_stream_4112_gbs", "UDP stream, trains of 4112 B (GSO, GRO)", "GB/s", 4112,
	  &floor_udp_stream },
	{ "tcp_stream_64k_gbs", "TCP stream, 64 KiB a call", "GB/s", 64 << 10, &floor_tcp_stream },
	{ "vm_writev_8_ns", "process_vm_writev 8 B", "ns", 8, &floor_vm_writev },
	{ "vm_writev_64k_ns", "process_vm_writev 64 KiB", "ns", 64 << 10, &floor_vm_writev },
	{ "vm_writev_1m_ns", "process_vm_writev 1 MiB", "ns", 1 << 20, &floor_vm_writev },
	{ "vm_readv_8_ns", "process_vm_readv 8 B", "ns", 8, &floor_vm_readv },
	{ "vm_readv_64k_ns", "process_vm_readv 64 KiB", "ns", 64 << 10, &floor_vm_readv },
	{ "memcpy_4k_gbs", "memcpy 4 KiB", "GB/s", 4 << 10, &floor_memcpy },
	{ "memcpy_64k_gbs", "memcpy 64 KiB", "GB/s", 64 << 10, &floor_memcpy },
	{ "memcpy_1m_gbs", "memcpy 1 MiB", "GB/s", 1 << 20, &floor_memcpy },
	{ "system_call_ns", "system call that does nothing", "ns", 0, &floor_system_call },
	{ "clock_gettime_ns", "clock_gettime", "ns", 0, &floor_clock_gettime },
	{ "clock_ticks_ns", "busbar's own clock", "ns", 0, &floor_clock_ticks },
	{ "paced_100k_missed", "steps an empty loop misses at 100 kHz", "%", 100000, &floor_paced },
	{ "paced_100k_missed_busy", "the same while the other CPU spins", "%", 100000,
	  &floor_paced_busy },
};

const size_t floor_measure_count = ARRAY_SIZE(floor_measures);

_Static_assert(ARRAY_SIZE(floor_measures) <= FLOOR_MEASURES_MAX, "room in the results");

int floor_default_cpus(struct floor_cpus *cpus)
{
	cpu_set_t set;

	*cpus = (struct floor_cpus){ -1, -1 };
	if (sched_getaffinity(0, sizeof(set), &set))
		return -errno;
	for (int i = 0; i < CPU_SETSIZE && cpus->second < 0; i++)
		if (CPU_ISSET(i, &set))
			*(cpus->first < 0 ? &cpus->first : &cpus->second) = i;
	return cpus->first < 0 ? -ENODEV : 0;
}

int floor_default_setting(struct floor_setting *setting)
{
	const struct floor_host here = { .address.s_addr = htonl(INADDR_LOOPBACK) };

	*setting = (struct floor_setting){ .hosts = { here, here }, .round_ns = ROUND_NS };
	return floor_default_cpus(&setting->cpus);
}

void floor_measure_run(const struct floor_measure *m,
		       const struct floor_setting *setting, struct floor_result *r)
{
	struct hist trips;
	struct floor_rounds rounds = { .trips = &trips };
	bool rate = !strcmp(m->unit, "GB/s");
	cpu_set_t before;

	hist_init(&trips);
	*r = (struct floor_result){ .err = -errno };
	if (sched_getaffinity(0, sizeof(before), &before))
		return;
	r->err = floor_pin(setting->cpus.first);
	if (!r->err)
		r->err = m->method->run(m, setting, &rounds);
	sched_setaffinity(0, sizeof(before), &before);
	if (r->err)
		return;
	order_doubles(rounds.value, FLOOR_ROUNDS);
	r->median = rounds.value[FLOOR_ROUNDS / 2];
	r->best = rounds.value[rate ? FLOOR_ROUNDS - 1 : 0];
	r->p50 = (double)hist_percentile(&trips, 50);
	r->p99 = (double)hist_percentile(&trips, 99);
}
