/* SPDX-License-Identifier: BSD-2-Clause */
/* See faults.h; the linker calls these in the place of the functions of tune. */
#include "faults.h"

#include <errno.h>
#include <unistd.h>

#include "bench/tune/state.h"
#include "bench/tune/tree.h"

int __real_tune_tree_write(const struct tune_tree *t, const char *path, enum tune_kind kind,
			   const char *value);
int __wrap_tune_tree_write(const struct tune_tree *t, const char *path, enum tune_kind kind,
			   const char *value);
int __real_tune_tree_remove(const struct tune_tree *t, const char *path, enum tune_kind kind);
int __wrap_tune_tree_remove(const struct tune_tree *t, const char *path, enum tune_kind kind);
int __real_tune_state_replace(const char *file, const char *root, const struct tune_plan *p);
int __wrap_tune_state_replace(const char *file, const char *root, const struct tune_plan *p);
int __wrap_fsync(int fd);

static enum fault armed;
static unsigned when, changes, states;

void fault_arm(enum fault kind, unsigned at)
{
	armed = kind;
	when = at;
	changes = states = 0;
}

unsigned fault_changes(void)
{
	return changes;
}

unsigned fault_states(void)
{
	return states;
}

/* Before the change: an error if it is not to happen. */
static int before(enum fault *now)
{
	*now = changes++ == when ? armed : FAULT_NONE;
	if (*now == FAULT_KILL)
		_exit(99);
	return *now == FAULT_ERROR ? -EIO : 0;
}

static int after(enum fault now, int err)
{
	if (now == FAULT_KILL_AFTER)
		_exit(99);
	return now == FAULT_ERROR_AFTER ? -EIO : err;
}

int __wrap_tune_tree_write(const struct tune_tree *t, const char *path, enum tune_kind kind,
			   const char *value)
{
	enum fault now;
	int err = before(&now);

	if (now == FAULT_OTHER && kind == TUNE_VALUE)
		value = "77\n";
	return err ? err : after(now, __real_tune_tree_write(t, path, kind, value));
}

int __wrap_tune_tree_remove(const struct tune_tree *t, const char *path, enum tune_kind kind)
{
	enum fault now;
	int err = before(&now);

	return err ? err : after(now, __real_tune_tree_remove(t, path, kind));
}

int __wrap_tune_state_replace(const char *file, const char *root, const struct tune_plan *p)
{
	if (states++ == when && armed == FAULT_STATE)
		return -ENOSPC;
	return __real_tune_state_replace(file, root, p);
}

/* A power cut is not simulated, and a disk would take minutes for all these cases. */
int __wrap_fsync(int fd)
{
	(void)fd;
	return 0;
}
