/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Carrying out a plan; see change.h. The state file is written before the first change, with
 * all that is planned, and again after each change. So at every moment it names all
 * that may have been changed, and undo decides by the values that it finds.
 */
#define LOG_ROOM "tune"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "bench/tune/change.h"
#include "bench/tune/change_parts.h"
#include "bench/tune/state.h"
#include "util/log.h"

/* Did the kernel take the value? */
static bool took(const struct tune_change *c, const char *wanted, const char *after)
{
	if (c->kind == TUNE_DIRECTORY)
		return true;
	if (c->kind == TUNE_FLAG)
		return tune_has_word(after, wanted + 1);
	return change_same(c->kind, wanted, after);
}

static bool comes_and_goes(const struct tune_change *c)
{
	return c->kind == TUNE_DIRECTORY || c->kind == TUNE_NEW;
}

static void refused(struct tune_change *c, int err, bool unchanged, struct tune_report *report)
{
	bool expected = c->may_refuse && unchanged;

	c->progress = unchanged ? TUNE_DROPPED : TUNE_DONE;
	change_say(report, expected ? "left" : "FAILED", c, "%s%s%s",
		   err ? strerror(-err) : "the kernel kept the former value",
		   expected ? ": the kernel places it itself" : "",
		   unchanged ? "" : ", but it has changed");
	if (expected)
		report->left++;
	else
		report->failed++;
}

static void make_change(const struct tune_tree *t, struct tune_change *c,
			struct tune_report *report)
{
	char *wanted = c->now, *after = NULL, was[128], is[128];
	int err = tune_tree_write(t, c->path, c->kind, wanted);
	bool there = !tune_tree_read(t, c->path, &after);

	if (err || !there) {
		refused(c, err ? err : -ENOENT,
			!there ? comes_and_goes(c) :
			comes_and_goes(c) ? err == -EEXIST : !strcmp(after, c->former),
			report);
		free(after);
		return;
	}
	if (!took(c, wanted, after) && !comes_and_goes(c) && !strcmp(after, c->former)) {
		refused(c, 0, true, report);
		free(after);
		return;
	}
	c->progress = TUNE_DONE;
	c->now = after;
	if (took(c, wanted, after)) {
		report->done++;
		if (comes_and_goes(c))
			change_say(report, "done", c, "%s", c->kind == TUNE_NEW ? wanted : "made");
		else
			change_say(report, "done", c, "%s -> %s",
				   change_shown(c, c->former, was, sizeof(was)),
				   change_shown(c, after, is, sizeof(is)));
	} else {
		report->failed++;
		change_say(report, "FAILED", c, "asked for %s, the kernel says %s", wanted,
			   change_shown(c, after, is, sizeof(is)));
	}
	free(wanted);
}

static bool any_left(const struct tune_plan *p)
{
	for (size_t i = 0; i < p->count; i++)
		if (p->changes[i].progress != TUNE_DROPPED)
			return true;
	return false;
}

static int make_changes(const struct tune_tree *t, struct tune_plan *p,
			const char *state_file, struct tune_report *report)
{
	int err = 0;

	for (size_t i = 0; i < p->count && !err; i++) {
		struct tune_change *c = &p->changes[i];

		if (change_interrupted()) {
			for (; i < p->count; i++)
				p->changes[i].progress = TUNE_DROPPED;
			log_warn("interrupted: the settings that are not listed above were left alone");
			err = tune_state_replace(state_file, t->root, p);
			return err ? err : -EINTR;
		}
		if (c->chained && p->changes[i - 1].progress == TUNE_DROPPED) {
			c->progress = TUNE_DROPPED;
			report->failed++;
			change_say(report, "FAILED", c, "not tried, it needs the one before");
		} else {
			make_change(t, c, report);
		}
		err = tune_state_replace(state_file, t->root, p);
	}
	return err;
}

int tune_apply(const struct tune_tree *t, struct tune_plan *p, const char *state_file,
	       struct tune_report *report)
{
	sigset_t before;
	int err;

	if (!p->count)
		return 0;
	change_hold_signals(&before);
	err = tune_state_create(state_file, t->root, p);
	if (!err) {
		err = make_changes(t, p, state_file, report);
		if ((!err || err == -EINTR) && !any_left(p)) {
			int removed = tune_state_remove(state_file);

			err = removed ? removed : err;
		}
	}
	change_release_signals(&before);
	return err;
}
