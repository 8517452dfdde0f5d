/* SPDX-License-Identifier: BSD-2-Clause */
/* Taking the changes of a state file back, last first; see change.h. */
#define LOG_ROOM "tune"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "bench/tune/change.h"
#include "bench/tune/change_parts.h"
#include "bench/tune/state.h"
#include "util/log.h"

enum decision {
	AS_BEFORE, /* nothing to do */
	TAKE_BACK,
	LEAVE,     /* somebody else changed it */
};

static enum decision decide(const struct tune_tree *t, const struct tune_change *c,
			    const char *current)
{
	switch (c->kind) {
	case TUNE_DIRECTORY:
		return TAKE_BACK;
	case TUNE_NEW:
		/* On a host it goes with its directory. */
		return tune_tree_live(t) ? AS_BEFORE : TAKE_BACK;
	case TUNE_FLAG:
		/* `now` is "+word" while planned, the kernel's list afterwards; the words
		 * of former and current tell in both cases. */
		return change_same(TUNE_VALUE, current, c->former) ? AS_BEFORE : TAKE_BACK;
	default:
		if (!strcmp(current, c->former))
			return AS_BEFORE;
		return change_same(c->kind, current, c->now) ? TAKE_BACK : LEAVE;
	}
}

/* "-word" for the word that apply added. */
static void flag_back(const struct tune_change *c, char *to, size_t size)
{
	const char *at = c->now;

	snprintf(to, size, "-");
	if (*at == '+')
		at++;
	while (*at) {
		char word[40];
		size_t n;

		at += strspn(at, " \t\n");
		n = strcspn(at, " \t\n");
		snprintf(word, sizeof(word), "%.*s", (int)n, at);
		if (n && !tune_has_word(c->former, word))
			snprintf(to, size, "-%s", word);
		at += n;
	}
}

/* 0; a negative errno; or -EAGAIN: the kernel made another value of it, which is `now`
 * from here on, so that a later undo goes on with it. */
static int take_back(const struct tune_tree *t, struct tune_change *c)
{
	char *after = NULL, flag[64];
	int err;

	if (c->kind == TUNE_DIRECTORY || c->kind == TUNE_NEW)
		return tune_tree_remove(t, c->path, c->kind);
	if (c->kind == TUNE_FLAG)
		flag_back(c, flag, sizeof(flag));
	err = tune_tree_write(t, c->path, c->kind, c->kind == TUNE_FLAG ? flag : c->former);
	if (!err)
		err = tune_tree_read(t, c->path, &after);
	if (err || c->kind == TUNE_FLAG || change_same(c->kind, after, c->former)) {
		free(after);
		return err;
	}
	free(c->now);
	c->now = after;
	return -EAGAIN;
}

static void undo_change(const struct tune_tree *t, struct tune_change *c, bool force,
			bool dry_run, struct tune_report *report)
{
	char *current = NULL, was[128], is[128];
	int err = tune_tree_read(t, c->path, &current);
	enum decision what = err ? AS_BEFORE : decide(t, c, current);

	if (err == -ENOENT && c->kind != TUNE_DIRECTORY && c->kind != TUNE_NEW)
		change_say(report, "gone", c, "it is not there any more");
	if (err && err != -ENOENT) {
		report->failed++;
		change_say(report, "FAILED", c, "%s", strerror(-err));
	} else if (what == AS_BEFORE) {
		c->progress = TUNE_DROPPED;
	} else if (what == LEAVE && !force) {
		report->left++;
		change_say(report, "left", c, "somebody else set it to %s since (it was %s before; --force sets it)",
			   change_shown(c, current, is, sizeof(is)),
			   change_shown(c, c->former, was, sizeof(was)));
	} else if (dry_run) {
		change_say(report, "would", c, "restore %s",
			   change_shown(c, c->former, was, sizeof(was)));
	} else if ((err = take_back(t, c)) == -EAGAIN) {
		report->failed++;
		change_say(report, "FAILED", c, "asked for %s, the kernel says %s: 'busbar tune undo' again later",
			   change_shown(c, c->former, was, sizeof(was)),
			   change_shown(c, c->now, is, sizeof(is)));
	} else if (err) {
		report->failed++;
		change_say(report, "FAILED", c, "%s%s", strerror(-err),
			   err == -EBUSY && c->kind == TUNE_DIRECTORY ?
			   ": end the programs in it (cgroup.procs), then 'busbar tune undo' again" : "");
	} else {
		report->done++;
		c->progress = TUNE_DROPPED;
		change_say(report, "undone", c, "%s", c->kind == TUNE_DIRECTORY ? "removed" :
			   change_shown(c, c->former, was, sizeof(was)));
	}
	free(current);
}

static int keep_rest(const struct tune_tree *t, const char *state_file,
		     const struct tune_plan *p)
{
	for (size_t i = 0; i < p->count; i++)
		if (p->changes[i].progress != TUNE_DROPPED)
			return tune_state_replace(state_file, t->root, p);
	return tune_state_remove(state_file);
}

int tune_undo(const struct tune_tree *t, const char *state_file, bool force,
	      bool dry_run, struct tune_report *report)
{
	struct tune_plan p;
	sigset_t before;
	int err = tune_state_read(state_file, t->root, &p);

	if (err)
		return err;
	change_hold_signals(&before);
	for (size_t i = p.count; i-- > 0;) {
		if (change_interrupted()) {
			log_warn("interrupted: the state file keeps what is not undone yet");
			err = -EINTR;
			break;
		}
		undo_change(t, &p.changes[i], force, dry_run, report);
	}
	if (!dry_run) {
		int kept = keep_rest(t, state_file, &p);

		err = kept ? kept : err;
	}
	change_release_signals(&before);
	tune_plan_free(&p);
	return err;
}
