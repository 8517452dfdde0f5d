/* SPDX-License-Identifier: BSD-2-Clause */
/* Reading the state file; see state.h. A member that state_write.c does not write, or that is
 * missing, is refused. */
#define LOG_ROOM "tune"
#include <errno.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bench/tune/state.h"
#include "bench/tune/state_words.h"
#include "util/log.h"
#include "util/user.h"

static int damaged(const char *file, size_t index, const char *what)
{
	log_error("%s: the state file is damaged: change %zu: %s", file, index + 1, what);
	return -EBADMSG;
}

/* The index of the word; -1: it is none of them. */
static int find_word(const char *text, const char *const *words, int count)
{
	for (int i = 0; i < count; i++)
		if (!strcmp(text, words[i]))
			return i;
	return -1;
}

static bool path_is_usable(const char *path)
{
	return (!strncmp(path, "/sys/", 5) || !strncmp(path, "/proc/sys/", 10) ||
		!strncmp(path, "/proc/irq/", 10)) && !strstr(path, "/../") &&
	       !strstr(path, "/./");
}

static int read_change(const char *file, size_t index, json_t *o, struct tune_plan *p)
{
	const char *setting, *progress, *kind, *path, *former, *now;
	struct tune_change c = { 0 };
	json_error_t e;
	int words[2];

	if (json_unpack_ex(o, &e, JSON_STRICT, "{s:s, s:s, s:s, s:s, s:s, s:s}", "setting",
			   &setting, "progress", &progress, "kind", &kind, "path", &path,
			   "former", &former, "now", &now))
		return damaged(file, index, e.text);
	words[0] = find_word(progress, tune_state_progress, TUNE_DROPPED);
	words[1] = find_word(kind, tune_state_kinds, TUNE_KINDS);
	if (words[0] < 0 || words[1] < 0)
		return damaged(file, index, words[0] < 0 ? "unknown \"progress\"" :
							   "unknown \"kind\"");
	if (!path_is_usable(path))
		return damaged(file, index,
			       "\"path\" does not lead to /sys, /proc/sys or /proc/irq");
	/* The plan copies the texts. */
	c = (struct tune_change){ .setting = (char *)setting,
				  .progress = (enum tune_progress)words[0],
				  .kind = (enum tune_kind)words[1], .path = (char *)path,
				  .former = (char *)former, .now = (char *)now };
	tune_plan_add(p, &c);
	return p->err;
}

static int read_state(const char *file, const char *root, json_t *state, struct tune_plan *p)
{
	json_t *changes, *one;
	const char *its_root;
	json_error_t e;
	int version, ret = 0;
	size_t i;

	if (json_unpack_ex(state, &e, JSON_STRICT, "{s:i, s:s, s:o}", "busbar tune", &version,
			   "root", &its_root, "changes", &changes) ||
	    version != 1 || !json_array_size(changes)) {
		log_error("%s: the state file is damaged: %s", file,
			  *e.text ? e.text : "another version, or no changes");
		return -EBADMSG;
	}
	if (strcmp(its_root, root)) {
		log_error("%s: these changes were made below '%s', not below '%s': give that as --root",
			  file, its_root, root);
		return -EINVAL;
	}
	json_array_foreach(changes, i, one)
		if (!ret)
			ret = read_change(file, i, one, p);
	return ret;
}

static int parse(const char *file, const char *root, const char *text, struct tune_plan *p)
{
	json_error_t e;
	json_t *state = json_loads(text, JSON_REJECT_DUPLICATES, &e);
	int ret;

	if (!state) {
		log_error("%s:%d: the state file is damaged: %s", file, e.line, e.text);
		return -EBADMSG;
	}
	ret = read_state(file, root, state, p);
	json_decref(state);
	return ret;
}

/* Root writes what this file says: so nobody else may have written it. */
static int check_owner(const char *file)
{
	struct stat st;

	if (lstat(file, &st))
		return -errno;
	if (!S_ISREG(st.st_mode)) {
		log_error("%s is no ordinary file, expected a state file of 'busbar tune apply'",
			  file);
		return -EPERM;
	}
	if (!user_is_ours_or_root(st.st_uid) || (st.st_mode & 022)) {
		log_error("%s can be written by other users, so it is not used: check what it says, then 'chmod 600' and 'chown root' it",
			  file);
		return -EPERM;
	}
	return 0;
}

int tune_state_read(const char *file, const char *root, struct tune_plan *p)
{
	const struct tune_tree host = { .root = "" };
	char *text = NULL;
	int err = tune_tree_read(&host, file, &text);

	*p = (struct tune_plan){ 0 };
	if (err) {
		log_error("reading the state file %s: %s%s", file, strerror(-err),
			  err == -ENOENT ? " (nothing is applied)" : "");
		return err;
	}
	err = check_owner(file);
	if (!err)
		err = parse(file, root, text, p);
	free(text);
	if (err)
		tune_plan_free(p);
	return err;
}
