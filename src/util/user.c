/* SPDX-License-Identifier: BSD-2-Clause */
/* Users and groups that a user namespace does not map; see user.h. */
#include "util/user.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

#define IDS UINT32_MAX /* number of valid ids; the value itself is no id */
#define OVERFLOW_DEFAULT 65534u

static uint32_t overflow_id(const char *path)
{
	uint32_t id = OVERFLOW_DEFAULT;
	FILE *f = fopen(path, "re");

	if (!f)
		return id;
	if (fscanf(f, "%u", &id) != 1)
		id = OVERFLOW_DEFAULT;
	fclose(f);
	return id;
}

/* Are all ids of the host mapped into our user namespace? */
static bool all_mapped(const char *path)
{
	unsigned inside, outside, count, total = 0;
	FILE *f = fopen(path, "re");

	/* A kernel without user namespaces has no such file. Without /proc, or without a
	 * descriptor left, the answer is not known. */
	if (!f)
		return errno == ENOENT && !access("/proc/self/status", F_OK);
	while (fscanf(f, "%u %u %u", &inside, &outside, &count) == 3)
		total += count;
	fclose(f);
	return total == IDS;
}

/* A namespace that maps the overflow id, but not all others, shows those as that id, too. */
static bool is_known(uint32_t id, const char *overflow, const char *map)
{
	return id != (uint32_t)-1 && (id != overflow_id(overflow) || all_mapped(map));
}

bool user_is_known(uid_t uid)
{
	return is_known(uid, "/proc/sys/kernel/overflowuid", "/proc/self/uid_map");
}

bool user_group_is_known(gid_t gid)
{
	return is_known(gid, "/proc/sys/kernel/overflowgid", "/proc/self/gid_map");
}

bool user_is_ours(uid_t uid)
{
	return uid == geteuid() && user_is_known(uid);
}

bool user_is_ours_or_root(uid_t uid)
{
	return uid == 0 || user_is_ours(uid);
}
