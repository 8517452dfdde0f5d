/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reading the state file; see state.h. The reader takes the form that state_write.c
 * writes, with any white space, and nothing else.
 */
#define LOG_ROOM "tune"
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bench/tune/state.h"
#include "bench/tune/state_words.h"
#include "util/log.h"
#include "util/user.h"

struct reader {
	const char *file, *at;
	unsigned line;
	bool failed;
};

static void fail(struct reader *r, const char *what)
{
	if (!r->failed)
		log_error("%s:%u: the state file is damaged: %s", r->file, r->line, what);
	r->failed = true;
}

static void skip_space(struct reader *r)
{
	for (; *r->at == ' ' || *r->at == '\t' || *r->at == '\n' || *r->at == '\r'; r->at++)
		r->line += *r->at == '\n';
}

static bool next_is(struct reader *r, char c)
{
	skip_space(r);
	if (r->failed || *r->at != c)
		return false;
	r->at++;
	return true;
}

static void expect(struct reader *r, char c)
{
	char what[] = "'?' expected";

	what[1] = c;
	if (!next_is(r, c))
		fail(r, what);
}

/* The character behind a backslash; 0: there is no such escape. */
static char escaped(struct reader *r)
{
	char c = *r->at++;
	unsigned code = 0;

	if (c == '"' || c == '\\' || c == '/')
		return c;
	if (c == 'n' || c == 't')
		return c == 'n' ? '\n' : '\t';
	for (int i = 0; c == 'u' && i < 4; i++) {
		const char *digits = "0123456789abcdef";
		const char *digit = *r->at ? strchr(digits, *r->at) : NULL;

		if (!digit)
			return 0;
		code = code << 4 | (unsigned)(digit - digits);
		r->at++;
	}
	return code < ' ' ? (char)code : 0;
}

/* malloc()ed; NULL after an error. */
static char *read_string(struct reader *r)
{
	char *text, *to;

	expect(r, '"');
	if (r->failed)
		return NULL;
	text = to = malloc(strlen(r->at) + 1);
	if (!text) {
		fail(r, "no memory for it");
		return NULL;
	}
	while (*r->at && *r->at != '"' && *r->at != '\n') {
		char c = *r->at++;

		if (c == '\\' && !(c = escaped(r))) {
			fail(r, "a text has an unknown escape");
			break;
		}
		*to++ = c;
	}
	*to = '\0';
	if (!r->failed && *r->at != '"')
		fail(r, "a text without an end");
	if (r->failed) {
		free(text);
		return NULL;
	}
	r->at++;
	return text;
}

static void expect_key(struct reader *r, const char *key)
{
	char what[64], *text;

	snprintf(what, sizeof(what), "key \"%s\" expected", key);
	skip_space(r);
	text = *r->at == '"' ? read_string(r) : NULL;
	if (!text || strcmp(text, key))
		fail(r, what);
	free(text);
	expect(r, ':');
}

static char *read_member(struct reader *r, const char *key)
{
	if (strcmp(key, "setting"))
		expect(r, ',');
	expect_key(r, key);
	return read_string(r);
}

static int read_word(struct reader *r, const char *key, const char *const *words, int count)
{
	char *text = read_member(r, key), what[64];

	for (int i = 0; text && i < count; i++)
		if (!strcmp(text, words[i])) {
			free(text);
			return i;
		}
	free(text);
	snprintf(what, sizeof(what), "unknown \"%s\"", key);
	fail(r, what);
	return 0;
}

static bool path_is_usable(const char *path)
{
	return (!strncmp(path, "/sys/", 5) || !strncmp(path, "/proc/sys/", 10) ||
		!strncmp(path, "/proc/irq/", 10)) && !strstr(path, "/../") &&
	       !strstr(path, "/./");
}

static void read_change(struct reader *r, struct tune_plan *p)
{
	struct tune_change c = { 0 };

	expect(r, '{');
	c.setting = read_member(r, "setting");
	c.progress = (enum tune_progress)read_word(r, "progress", tune_state_progress,
						   TUNE_DROPPED);
	c.kind = (enum tune_kind)read_word(r, "kind", tune_state_kinds, TUNE_KINDS);
	c.path = read_member(r, "path");
	if (c.path && !path_is_usable(c.path))
		fail(r, "\"path\" does not lead to /sys, /proc/sys or /proc/irq");
	c.former = read_member(r, "former");
	c.now = read_member(r, "now");
	expect(r, '}');
	if (!r->failed) {
		tune_plan_add(p, &c);
		if (p->err)
			fail(r, "no memory for it");
	}
	free(c.setting);
	free(c.path);
	free(c.former);
	free(c.now);
}

static int read_state(struct reader *r, const char *root, struct tune_plan *p)
{
	char *its_root;
	bool other;

	expect(r, '{');
	expect_key(r, "busbar tune");
	expect(r, '1');
	expect(r, ',');
	expect_key(r, "root");
	its_root = read_string(r);
	other = its_root && strcmp(its_root, root);
	if (other)
		log_error("%s: these changes were made below '%s', not below '%s': give that as --root",
			  r->file, its_root, root);
	free(its_root);
	if (other)
		return -EINVAL;
	expect(r, ',');
	expect_key(r, "changes");
	expect(r, '[');
	do
		read_change(r, p);
	while (next_is(r, ','));
	expect(r, ']');
	expect(r, '}');
	skip_space(r);
	if (*r->at)
		fail(r, "text behind its end");
	return r->failed ? -EBADMSG : 0;
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
	struct reader r = { .file = file, .line = 1 };
	char *text = NULL;
	int err = tune_tree_read(&host, file, &text);

	*p = (struct tune_plan){ 0 };
	if (err) {
		log_error("reading the state file %s: %s%s", file, strerror(-err),
			  err == -ENOENT ? " (nothing is applied)" : "");
		return err;
	}
	err = check_owner(file);
	r.at = text;
	if (!err)
		err = read_state(&r, root, p);
	free(text);
	if (err)
		tune_plan_free(p);
	return err;
}
