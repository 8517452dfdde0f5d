/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The profile of tuned that `busbar tune apply` installs: lines "key=value" in the sections of
 * tuned's plug-ins, which the settings (setting.h) add, and a script for the partition, which no
 * plug-in of tuned can make. tuned writes the values, remembers the former ones and restores
 * them; see work.c.
 */
#ifndef BENCH_TUNE_PROFILE_H
#define BENCH_TUNE_PROFILE_H

#include <stddef.h>
#include <stdio.h>

#define TUNE_SCRIPT "partition.sh"

struct tune_line {
	const char *section; /* "sysctl", "sysfs", "cpu", ... */
	char *key, *value;
};

struct tune_profile {
	struct tune_line *lines;
	size_t count;
	char *script; /* the text of TUNE_SCRIPT; NULL: none */
	int err;      /* negative errno of the first addition that failed */
};

/* Appends copies of the texts; `section` has to stay. */
void tune_profile_add(struct tune_profile *p, const char *section, const char *key,
		      const char *value);
/* The same for a file of the kernel: below /proc/sys by the plug-in sysctl, below /sys by sysfs. */
void tune_profile_add_file(struct tune_profile *p, const char *path, const char *value);
/* The script makes the cgroup `group` (a whole path below `mount`) an isolated partition of
 * the processors `list`. Neither path has a quotation mark. */
void tune_profile_add_partition(struct tune_profile *p, const char *mount, const char *group,
				const char *list);
/* The text of tuned.conf. */
void tune_profile_print(const struct tune_profile *p, FILE *out);
void tune_profile_free(struct tune_profile *p);

#endif
