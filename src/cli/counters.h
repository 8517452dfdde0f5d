/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Counters of an adapter, from the kernel (counters_sysfs.c) or from the processes that use busbar's
 * adapter (counters_soft.c), for `busbar trace --counters`.
 */
#ifndef CLI_COUNTERS_H
#define CLI_COUNTERS_H

#include "analyzer/counters.h"

#define COUNTERS_MAX 24

struct counter {
	const char *name;          /* static */
	enum analyzer_counter means;
	uint64_t value;            /* only grows, unless somebody resets it */
};

struct counters {
	char name[96];             /* "mlx5_0 port 1", "soft0" */
	char missing[512];         /* names of counters that are not there, separated by blanks */
	unsigned count;
	struct counter counter[COUNTERS_MAX];
	/* Reads the values anew. 0 or a negative errno: the adapter has gone. */
	int (*read)(struct counters *c);
	void (*close)(struct counters *c);
	void *own;                 /* of the above */
};

/* The port `port` of the device; `root`: the folder in the place of /. The first values are read.
 * 0 or a negative errno; -ENOENT: there is no such device or port. */
int counters_sysfs_open(struct counters *c, const char *root, const char *device, unsigned port);
/* Calls `each` for each device and port, in the order of the kernel, until it returns a status that is
 * not 0; returns that, or -ENOENT: the kernel has no RDMA devices. `device` NULL: all. */
int counters_sysfs_list(const char *root, const char *device,
			int (*each)(void *arg, const char *device, unsigned port), void *arg);

/* The sums of all processes that use this device of busbar's adapter, as `busbar devices` sees them, or
 * those of the process with this number (reading fails with -ESRCH when it has ended); in the module
 * of `busbar devices`. 0 or a negative errno, logged. */
typedef int counters_soft_open_fn(struct counters *c, const char *device);
int cli_counters_soft(struct counters *c, const char *device);

#endif
