/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Changes of kernel settings: what is to be written, what was there before, and both
 * directions. A plan is made by the settings (setting.h), carried out by
 * tune_apply(), kept in a state file (state.h) and taken back by tune_undo().
 */
#ifndef BENCH_TUNE_CHANGE_H
#define BENCH_TUNE_CHANGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "bench/tune/tree.h"

enum tune_progress {
	TUNE_PLANNED, /* it may or may not have been written */
	TUNE_DONE,    /* it was, and `now` is what the kernel made of it */
	TUNE_DROPPED, /* it was not, or was taken back: not in the state file */
};

struct tune_change {
	char *setting;       /* name of the setting that wants it */
	char *path;          /* below the root, "/sys/..." */
	char *former, *now;  /* whole texts; `now` is without a line's end until it is done */
	enum tune_kind kind;
	enum tune_progress progress;
	/* A refusal is no failure: the kernel keeps some interrupts where they are. */
	bool may_refuse;
	/* It is of no use without the change before it. */
	bool chained;
};

struct tune_plan {
	struct tune_change *changes;
	size_t count;
	int err; /* negative errno of the first tune_plan_add() that failed */
};

/* Appends copies of the texts. */
void tune_plan_add(struct tune_plan *p, const struct tune_change *change);
void tune_plan_free(struct tune_plan *p);

struct tune_report {
	FILE *out;         /* one line for each change */
	unsigned done, failed, left;
};

/*
 * Writes the state file with all former values, then the changes in their order. A change
 * that fails is reported, the others are made. 0, or a negative errno, logged: the state
 * file could not be written, and nothing (more) was changed. -EINTR: SIGINT or SIGTERM
 * came; the state file is right. A state file that is there already: -EEXIST.
 * When nothing was changed in the end there is no state file.
 */
int tune_apply(const struct tune_tree *t, struct tune_plan *p, const char *state_file,
	       struct tune_report *report);

/*
 * Takes the changes of the state file back, last first. What has neither the value that was
 * applied nor the former one was changed by somebody else: it is reported and left alone
 * (`left`), or with `force` set to the former value. The state file keeps what failed or was
 * left; if that is nothing, it is removed. 0, or a negative errno, logged: the state file
 * could not be read or written.
 */
int tune_undo(const struct tune_tree *t, const char *state_file, bool force,
	      bool dry_run, struct tune_report *report);

/* Prints what tune_apply() would do. */
void tune_plan_print(const struct tune_plan *p, FILE *out);

#endif
