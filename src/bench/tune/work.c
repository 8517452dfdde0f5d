/* SPDX-License-Identifier: BSD-2-Clause */
/* The sub-commands apply and undo; see tune.h. */
#define LOG_ROOM "tune"
#include "bench/tune/setting.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "bench/tune/tuned.h"
#include "util/log.h"

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
	int err = check_only(o->only);

	if (!err)
		err = tune_host_read(host, o->root);
	if (!err)
		err = read_cpus(host, o->cpus);
	return err;
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
