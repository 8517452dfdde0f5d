/* SPDX-License-Identifier: BSD-2-Clause */
/* The sub-commands apply and undo (tune.h), and tuned on this host: installs and removes the
 * profile "busbar" and switches between profiles by tuned-adm(8). All paths are below the root
 * of the tree; with a root other than the host's, ROOT/usr/sbin/tuned-adm is run and never that
 * of the host.
 *
 * The folder of the profile also has the file "former", which says what was active before:
 * "manual NAMES", "auto" or "off". A folder without it was not made here and is left alone. */
#define LOG_ROOM "tune"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bench/tune/setting.h"
#include "util/log.h"
#include "util/replace_file.h"
#include "util/spawn.h"

/* Functions return 0 or a negative errno after having logged the cause. */

#define TUNED_PROFILE "busbar"
#define TUNED_FORMER_MAX 512
#define ADM "tuned-adm"
#define WORDS_MAX 20

static const char *const files[] = { "tuned.conf", TUNE_SCRIPT, "former" };

/* Profiles moved in tuned 2.23; that version and later ones bring this folder. */
static const char *tuned_folder(const struct tune_tree *t)
{
	return tune_tree_exists(t, "/usr/lib/tuned/profiles") ?
	       "/etc/tuned/profiles/" TUNED_PROFILE : "/etc/tuned/" TUNED_PROFILE;
}

static char *file_path(const struct tune_tree *t, const char *name)
{
	char *path;

	return asprintf(&path, "%s%s/%s", t->root, tuned_folder(t), name) < 0 ? NULL : path;
}

/* -ENOENT: tuned is not installed. */
static int tuned_find(const struct tune_tree *t)
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

/* Is the profile active, alone or merged with others? */
static bool tuned_is_active(const struct tune_tree *t)
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

static int tuned_uninstall(const struct tune_tree *t)
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

/* Installs the profile, or replaces that of an earlier apply. -EEXIST: somebody else's folder. */
static int tuned_install(const struct tune_tree *t, const struct tune_profile *p)
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

/* What was active before. -ENOENT: nothing is installed by us. */
static int tuned_read_former(const struct tune_tree *t, char former[TUNED_FORMER_MAX])
{
	char *path = file_path(t, "former"), *text = NULL;
	int err = path ? tune_tree_read(&tune_here, path, &text) : -ENOMEM;

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

/* Switches to what such a text names. -EIO: tuned-adm failed. */
static int tuned_switch(const struct tune_tree *t, const char *to)
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

/* ---- the settings ---- */

bool tune_wanted(const struct tune_options *o, const struct tune_setting *s)
{
	return !o->only || tune_has_word(o->only, s->name, ",");
}

/* Is each name of --only a setting? */
static int check_only(const char *only)
{
	while (only && *only) {
		size_t n = strcspn(only, ",");
		char name[64];

		snprintf(name, sizeof(name), "%.*s", (int)n, only);
		if (!tune_setting_find(name))
			return log_fail(-EINVAL, "--only: there is no setting '%s'; 'busbar tune list' names them",
					name);
		only += n + (only[n] == ',');
	}
	return 0;
}

static int read_cpus(struct tune_host *host, const char *text)
{
	struct tune_cpus away;
	int err = text ? tune_cpus_parse_list(text, &host->cpus) : 0;

	if (err)
		return log_fail(err, "--cpus '%s' is no list of processors such as 2-5,8", text);
	away = tune_cpus_minus(&host->cpus, &host->online);
	if (text && (tune_cpus_count(&away) || !tune_cpus_count(&host->cpus)))
		return log_fail(-EINVAL,
				"--cpus '%s' names processors that are not online, or none", text);
	if (tune_cpus_equal(&host->cpus, &host->online))
		return log_fail(-EINVAL, "--cpus '%s' leaves no processor for all other work, expected at least one fewer",
				text);
	return 0;
}

int tune_prepare(const struct tune_options *o, struct tune_host *host)
{
	return check_only(o->only) ?: tune_host_read(host, o->root) ?: read_cpus(host, o->cpus);
}

/* Settings that were named, or need --cpus, and add nothing to the profile: why. */
static void say_missing(const struct tune_options *o, const struct tune_setting *s,
			const struct tune_look *l, FILE *out)
{
	if (s->applies && !o->only && l->verdict != TUNE_LIMIT && !strstr(l->better, "--cpus"))
		return;
	fprintf(out, "# %s: %s%s\n", s->name,
		s->applies ? "left out: " : "a profile cannot set it: ",
		l->limit[0] ? l->limit : l->better[0] ? l->better : l->today);
}

/* Is this setting to be in the profile? */
static bool is_asked(const struct tune_options *o, const struct tune_setting *s)
{
	return o->only ? tune_wanted(o, s) : s->applies && !s->asked_only;
}

static int make_profile(const struct tune_options *o, const struct tune_host *host,
			struct tune_profile *p, FILE *out)
{
	const struct tune_setting *s = NULL;

	while ((s = tune_setting_next(s)) && !p->err) {
		size_t before = p->count;
		struct tune_look l;

		if (!is_asked(o, s))
			continue;
		tune_look(host, s, s->applies ? p : NULL, &l);
		if (p->count == before)
			say_missing(o, s, &l, out);
	}
	if (p->err)
		log_error("making the profile: %s", strerror(-p->err));
	return p->err;
}

/* tuned-adm says little of single settings: looks whether each is as it was asked for. */
static int look_again(const struct tune_options *o, const struct tune_host *host, FILE *out)
{
	unsigned done = 0, left = 0, failed = 0;
	const struct tune_setting *s = NULL;

	while ((s = tune_setting_next(s))) {
		struct tune_profile lines = { 0 };
		struct tune_look l;

		if (!s->applies || !is_asked(o, s))
			continue;
		tune_look(host, s, &lines, &l);
		if (lines.count) {
			bool good = !l.better[0];

			done += good;
			left += !good && s->may_remain;
			failed += !good && !s->may_remain;
			fprintf(out, "%-7s %-15s %s\n", good ? "done" :
				s->may_remain ? "left" : "FAILED", s->name, l.today);
		}
		tune_profile_free(&lines);
	}
	fprintf(out, "%u done, %u left in part by the kernel, %u failed; 'busbar tune undo' takes all back\n",
		done, left, failed);
	return failed ? 1 : 0;
}

static int install(const struct tune_options *o, const struct tune_host *host,
		   const struct tune_profile *p, FILE *out)
{
	const struct tune_tree *t = &host->tree;

	if (tuned_find(t) || tuned_install(t, p))
		return 1;
	fprintf(out, "installed %s%s\n", t->root, tuned_folder(t));
	fflush(out);
	if (tuned_switch(t, "manual " TUNED_PROFILE)) {
		/* Where tuned has the profile nevertheless, undo finds what was before. */
		if (!tuned_is_active(t) && !tuned_uninstall(t))
			fprintf(out, "removed %s%s\n", t->root, tuned_folder(t));
		return 1;
	}
	return look_again(o, host, out);
}

static bool may_write(const struct tune_options *o)
{
	if (o->dry_run || o->root[0] || !geteuid())
		return true;
	return log_fail(false, "switching profiles of tuned needs root; --dry-run shows what would be done");
}

int tune_apply_main(const struct tune_options *o, FILE *out)
{
	struct tune_profile profile = { 0 };
	struct tune_host host;
	int status = 1;

	if (tune_prepare(o, &host) || !may_write(o) || make_profile(o, &host, &profile, out))
		goto out;
	status = 0;
	if (!profile.count) {
		fputs("# nothing to do\n", out);
	} else if (o->dry_run) {
		tune_profile_print(&profile, out);
		if (profile.script)
			fprintf(out, "\n# " TUNE_SCRIPT ":\n%s", profile.script);
	} else {
		status = install(o, &host, &profile, out);
	}
out:
	tune_profile_free(&profile);
	return status;
}

/* A cgroup with programs in it cannot be removed, which tuned only logs. */
static int say_partition(const struct tune_tree *t, FILE *out)
{
	char mount[512], path[640];

	if (tune_cgroup_mount(t, mount, sizeof(mount)))
		return 0;
	snprintf(path, sizeof(path), "%s/" TUNE_CGROUP, mount);
	if (!tune_tree_exists(t, path))
		return 0;
	fprintf(out, "FAILED  cpuset          %s%s is still there: when its programs have ended, rmdir it\n",
		t->root, path);
	return 1;
}

int tune_undo_main(const struct tune_options *o, FILE *out)
{
	const struct tune_tree t = { .root = o->root };
	char former[TUNED_FORMER_MAX];
	bool active;

	if (!may_write(o) || tuned_read_former(&t, former))
		return 1;
	active = tuned_is_active(&t);
	if (active)
		fprintf(out, "%s back to '%s'\n", o->dry_run ? "would switch" : "switching", former);
	else
		fputs("another profile is active by now: it stays\n", out);
	if (o->dry_run)
		return 0;
	fflush(out);
	if (active && (tuned_find(&t) || tuned_switch(&t, former)))
		return 1;
	if (tuned_uninstall(&t))
		return 1;
	fprintf(out, "removed %s%s\n", t.root, tuned_folder(&t));
	return say_partition(&t, out);
}

void tune_list(FILE *out)
{
	const struct tune_setting *s = NULL;

	while ((s = tune_setting_next(s)))
		fprintf(out, "%-16s %-10s %s\n", s->name, s->asked_only ? "asked only" :
			s->applies ? "apply" : "check", s->why);
}
