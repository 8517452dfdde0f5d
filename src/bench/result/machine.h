/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What of the machine makes figures comparable, or not; machine.json:
 *
 *   host, os              name of the host, PRETTY_NAME of the distribution
 *   kernel                release, version, machine, preempt (or null), parameters: those of
 *                         its command line that have an effect on times (mitigations ...)
 *   cpu                   model, online, allowed (a list such as "0-3"), caches_kib
 *                         { "L1d": 32, ... }, cache_line_bytes, smt, microcode,
 *                         governor: "none" or one name per CPU
 *   clock                 busbar ("tsc"), kernel, invariant_tsc (null: not x86), tsc_hz
 *   isolation             isolcpus, nohz_full, rcu_nocbs (of the command line, or null),
 *                         isolated (list of CPUs), quota (cgroup's cpu.max, or null),
 *                         rt_runtime_us
 *   virtual_machine       true or false, hypervisor: name or null, product: of the firmware
 *   memory                total_kib, available_kib, hugepages, hugepages_free,
 *                         hugepage_kib, transparent_hugepages, numa_nodes
 *   limits                memlock_bytes, nofile, rtprio, core_bytes (null: unlimited)
 *   load                  the three load averages at the start
 *   busbar                version, compiler, optimized, sanitizer
 *   command               argv
 *   floor                 what `busbar bench floor --json` prints; absent if switched off
 *
 * What cannot be read is null.
 */
#ifndef BENCH_RESULT_MACHINE_H
#define BENCH_RESULT_MACHINE_H

#include <jansson.h>
#include <stdatomic.h>

/* All but the floor; NULL without memory. */
json_t *machine_describe(int argc, char *const *argv);

/* Measures the floor (four seconds). NULL: without memory, or `stop` was set (it may be
 * NULL). */
json_t *machine_floor(const atomic_bool *stop);

/* The words of a command line. */
json_t *machine_command(int argc, char *const *argv);

/* The value of "NAME=value" in a kernel's command line; true for a bare NAME; null. */
json_t *machine_cmdline(const char *cmdline, const char *name);

#endif
