/* SPDX-License-Identifier: BSD-2-Clause */
/* Installing and switching profiles of tuned; see tuned.h. */
#define LOG_ROOM "tune"
#include "bench/tune/tuned.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "util/log.h"
#include "util/replace_file.h"
#include "util/spawn.h"

#define ADM "tuned-adm"
#define WORDS_MAX 20

static const char *const files[] = { "tuned.conf", TUNE_SCRIPT, "former" };

/* Profiles moved in tuned 2.23; that version and later ones bring this folder. */
const char *tuned_folder(const struct tune_tree *t)
{
	return tune_tree_exists(t, "/usr/lib/tuned/profiles") ?
	       "/etc/tuned/profiles/" TUNED_PROFILE : "/etc/tuned/" TUNED_PROFILE;
}

static char *file_path(const struct tune_tree *t, const char *name)
{
	char *path;

	return asprintf(&path, "%s%s/%s", t->root, tuned_folder(t), name) < 0 ? NULL : path;
}

int tuned_find(const struct tune_tree *t)
{
	if (t->root[0] ? tune_tree_exists(t, "/usr/sbin/" ADM) : spawn_is_installed(ADM))
		return 0;
	return log_fail(-ENOENT, "%s%s is not there: install the package 'tuned', which sets and restores the kernel's settings; 'busbar tune check', 'hold' and 'exec' work without it",
			t->root, t->root[0] ? "/usr/sbin/" ADM : ADM);
}

static void read_active(const struct tune_tree *t, char *names, size_t size)
{
	tune_tree_line(t, "/etc/tuned/active_profile", names, size);
}

bool tuned_is_active(const struct tune_tree *t)
{
	char names[TUNED_FORMER_MAX];

	read_active(t, names, sizeof(names));
	return tune_has_word(names, TUNED_PROFILE, TUNE_BLANKS);
}

static void describe_active(const struct tune_tree *t, char former[TUNED_FORMER_MAX])
{
	char names[TUNED_FORMER_MAX - 16], mode[16];

	read_active(t, names, sizeof(names));
	tune_tree_line(t, "/etc/tuned/profile_mode", mode, sizeof(mode));
	if (!names[0] || tune_has_word(names, TUNED_PROFILE, TUNE_BLANKS))
		snprintf(former, TUNED_FORMER_MAX, "off");
	else if (!strcmp(mode, "auto"))
		snprintf(former, TUNED_FORMER_MAX, "auto");
	else
		snprintf(former, TUNED_FORMER_MAX, "manual %s", names);
}

static bool never(void)
{
	return false;
}

static int write_file(const struct tune_tree *t, const char *name, const char *text, mode_t mode)
{
	char *path = file_path(t, name);
	int err = path ? replace_file(path, text, strlen(text), never) : -ENOMEM;

	if (!err && chmod(path, mode))
		err = -errno;
	if (err)
		log_error("writing %s: %s", path ? path : name, strerror(-err));
	free(path);
	return err;
}

static int write_profile(const struct tune_tree *t, const struct tune_profile *p)
{
	char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);
	int err = f ? 0 : -ENOMEM;

	if (f) {
		tune_profile_print(p, f);
		err = fclose(f) ? -ENOMEM : 0;
	}
	if (!err)
		err = write_file(t, "tuned.conf", text, 0644);
	free(text);
	if (!err && p->script)
		err = write_file(t, TUNE_SCRIPT, p->script, 0755);
	return err;
}

/* The folder, and the one above it. */
static int make_folder(const struct tune_tree *t, bool *made)
{
	char *path = tune_tree_path(t, tuned_folder(t)), *end = path ? strrchr(path, '/') : NULL;
	int err = path ? 0 : -ENOMEM;

	if (path) {
		*end = '\0';
		mkdir(path, 0755);
		*end = '/';
		*made = !mkdir(path, 0755);
		err = *made || errno == EEXIST ? 0 : -errno;
	}
	if (err)
		log_error("making %s%s: %s", t->root, tuned_folder(t), strerror(-err));
	free(path);
	return err;
}

int tuned_install(const struct tune_tree *t, const struct tune_profile *p)
{
	char former[TUNED_FORMER_MAX], *path = file_path(t, "former");
	bool ours = path && !access(path, F_OK), made;
	int err = path ? make_folder(t, &made) : -ENOMEM;

	free(path);
	if (err)
		return err;
	if (!made && !ours)
		return log_fail(-EEXIST, "%s%s is there and was not made by 'busbar tune apply': move it away",
				t->root, tuned_folder(t));
	if (!ours || !tuned_is_active(t)) {
		describe_active(t, former);
		err = write_file(t, "former", former, 0644);
	}
	if (!err)
		err = write_profile(t, p);
	if (err && made)
		tuned_uninstall(t);
	return err;
}

int tuned_read_former(const struct tune_tree *t, char former[TUNED_FORMER_MAX])
{
	char *path = file_path(t, "former"), *text = NULL;
	const struct tune_tree host = { .root = "" };
	int err = path ? tune_tree_read(&host, path, &text) : -ENOMEM;

	if (!err && (strlen(tune_trim(text)) >= TUNED_FORMER_MAX || strchr(text, '\n') ||
		     (strcmp(text, "off") && strcmp(text, "auto") && strncmp(text, "manual ", 7))))
		err = -EBADMSG;
	if (!err)
		snprintf(former, TUNED_FORMER_MAX, "%s", text);
	else if (err == -EBADMSG)
		log_error("%s: expected 'manual NAMES', 'auto' or 'off', and no other line", path);
	else
		log_error("%s: %s%s", path ? path : "former", strerror(-err),
			  err == -ENOENT ? " (nothing is applied)" : "");
	free(text);
	free(path);
	return err;
}

static int run_adm(const struct tune_tree *t, char **argv)
{
	char *program = t->root[0] ? tune_tree_path(t, "/usr/sbin/" ADM) : strdup(ADM);
	const struct spawn s = {
		.argv = argv, .streams = { SPAWN_NULL, SPAWN_INHERITS, SPAWN_INHERITS },
	};
	pid_t pid = -ENOMEM;
	int status = 0;

	argv[0] = program;
	if (program)
		pid = spawn_program(&s);
	if (pid >= 0)
		status = spawn_exit_status(spawn_wait(pid));
	if (pid < 0)
		log_error("starting " ADM ": %s", strerror((int)-pid));
	else if (status)
		log_error("'" ADM " %s' ended with status %d: what it printed, and /var/log/tuned/tuned.log, say why",
			  argv[1], status);
	free(program);
	return pid < 0 ? (int)pid : status ? -EIO : 0;
}

int tuned_switch(const struct tune_tree *t, const char *to)
{
	char *argv[WORDS_MAX + 1] = { NULL }, copy[TUNED_FORMER_MAX], *rest, *word;
	size_t count = 1;

	snprintf(copy, sizeof(copy), "%s", to);
	word = strtok_r(copy, " ", &rest);
	if (!word)
		return -EINVAL;
	argv[count++] = !strcmp(word, "manual") ? "profile" :
			!strcmp(word, "auto") ? "auto_profile" : "off";
	while ((word = strtok_r(NULL, " ", &rest))) {
		if (*word == '-' || count == WORDS_MAX)
			return log_fail(-EINVAL,
					"'%s': too many profiles, or one whose name is an option",
					to);
		argv[count++] = word;
	}
	return run_adm(t, argv);
}

int tuned_uninstall(const struct tune_tree *t)
{
	char *folder = tune_tree_path(t, tuned_folder(t));
	int err = folder ? 0 : -ENOMEM;

	for (size_t i = 0; folder && i < sizeof(files) / sizeof(files[0]); i++) {
		char *path = file_path(t, files[i]);

		if (path && unlink(path) && errno != ENOENT)
			err = -errno;
		free(path);
	}
	if (!err && rmdir(folder))
		err = -errno;
	if (err)
		log_error("removing %s%s: %s", t->root, tuned_folder(t), strerror(-err));
	free(folder);
	return err;
}
