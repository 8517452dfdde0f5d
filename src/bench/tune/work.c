/* SPDX-License-Identifier: BSD-2-Clause */
/* The sub-commands apply and undo; see tune.h. */
#define LOG_ROOM "tune"
#include "bench/tune/work.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/tune/change.h"
#include "util/log.h"

#define STATE_FILE "/run/busbar/tune.json"

bool tune_wanted(const struct tune_options *o, const struct tune_setting *s)
{
	const char *at = o->only;
	size_t length = strlen(s->name);

	if (!at)
		return true;
	while (*at) {
		size_t n = strcspn(at, ",");

		if (n == length && !memcmp(at, s->name, n))
			return true;
		at += n + (at[n] == ',');
	}
	return false;
}

/* Is each name of --only a setting? */
static int check_only(const char *only)
{
	while (only && *only) {
		size_t n = strcspn(only, ",");
		char name[64];

		snprintf(name, sizeof(name), "%.*s", (int)n, only);
		if (!tune_setting_find(name)) {
			log_error("--only: there is no setting '%s'; 'busbar tune list' names them",
				  name);
			return -EINVAL;
		}
		only += n + (only[n] == ',');
	}
	return 0;
}

static int read_cpus(struct tune_host *host, const char *text)
{
	struct tune_cpus away;
	int err = text ? tune_cpus_parse_list(text, &host->cpus) : 0;

	if (err) {
		log_error("--cpus '%s' is no list of processors such as 2-5,8", text);
		return err;
	}
	away = tune_cpus_minus(&host->cpus, &host->online);
	if (text && (tune_cpus_count(&away) || !tune_cpus_count(&host->cpus))) {
		log_error("--cpus '%s' names processors that are not online, or none", text);
		return -EINVAL;
	}
	if (tune_cpus_equal(&host->cpus, &host->online)) {
		log_error("--cpus '%s' leaves no processor for all other work, expected at least one fewer",
			  text);
		return -EINVAL;
	}
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

/* malloc()ed; NULL, logged: no memory. */
static char *state_file(const struct tune_options *o)
{
	char *path = o->state_file ? strdup(o->state_file) : NULL;

	if (!o->state_file && asprintf(&path, "%s" STATE_FILE, o->root) < 0)
		path = NULL;
	if (!path)
		log_error("the name of the state file: no memory");
	return path;
}

static void print_totals(const struct tune_report *r, const char *what, FILE *out)
{
	fprintf(out, "%u %s, %u left alone, %u failed\n", r->done, what, r->left, r->failed);
}

/* Settings that were named, or can be applied with --cpus, and have no change: why. */
static void say_missing(const struct tune_options *o, const struct tune_setting *s,
			const struct tune_look *l, FILE *out)
{
	if (!o->only && l->verdict != TUNE_LIMIT && !strstr(l->better, "--cpus"))
		return;
	fprintf(out, "%-7s %-15s %s\n", l->verdict == TUNE_GOOD ? "good" : "skipped", s->name,
		l->limit[0] ? l->limit : l->better[0] ? l->better : l->today);
}

static int make_plan(const struct tune_options *o, const struct tune_host *host,
		     struct tune_plan *plan, FILE *out)
{
	const struct tune_setting *s = NULL;

	while ((s = tune_setting_next(s)) && !plan->err) {
		size_t before = plan->count;
		struct tune_look l;

		if (!tune_wanted(o, s) || (!s->applies && !o->only) ||
		    (s->asked_only && !o->only))
			continue;
		tune_look(host, s, s->applies ? plan : NULL, &l);
		if (!s->applies)
			fprintf(out, "skipped %-15s cannot be set from here: %s\n", s->name,
				l.better[0] ? l.better : l.limit[0] ? l.limit : l.today);
		else if (plan->count == before)
			say_missing(o, s, &l, out);
	}
	if (plan->err)
		log_error("making the plan: %s", strerror(-plan->err));
	return plan->err;
}

static void say_how_to_start(const struct tune_plan *p, FILE *out)
{
	for (size_t i = 0; i < p->count; i++)
		if (p->changes[i].kind == TUNE_DIRECTORY &&
		    p->changes[i].progress == TUNE_DONE)
			fprintf(out, "nothing was moved to %s; to start a program there: busbar tune exec -- PROGRAM\n",
				p->changes[i].path);
}

static int carry_out(const struct tune_host *host, struct tune_plan *plan, const char *file,
		     FILE *out)
{
	struct tune_report report = { .out = out };
	int err = tune_apply(&host->tree, plan, file, &report);

	if (err == -EEXIST)
		return 1;
	print_totals(&report, "done", out);
	if (!access(file, F_OK))
		fprintf(out, "former values are in %s: 'busbar tune undo' restores them\n", file);
	say_how_to_start(plan, out);
	return err || report.failed;
}

int tune_apply_main(const struct tune_options *o, FILE *out)
{
	struct tune_plan plan = { 0 };
	struct tune_host host;
	char *file = state_file(o);
	int status = 1;

	if (!file || tune_prepare(o, &host))
		goto out;
	if (!o->dry_run && !o->root[0] && geteuid()) {
		log_error("writing the kernel's settings needs root; --dry-run shows what would be done");
		goto out;
	}
	if (make_plan(o, &host, &plan, out))
		goto out;
	if (!plan.count) {
		fputs("nothing to do\n", out);
		status = 0;
	} else if (o->dry_run) {
		tune_plan_print(&plan, out);
		status = 0;
	} else {
		status = carry_out(&host, &plan, file, out);
	}
out:
	tune_plan_free(&plan);
	free(file);
	return status;
}

int tune_undo_main(const struct tune_options *o, FILE *out)
{
	const struct tune_tree t = { .root = o->root };
	struct tune_report report = { .out = out };
	char *file = state_file(o);
	int err = file ? tune_undo(&t, file, o->force, o->dry_run, &report) : -ENOMEM;

	if (!err || err == -EINTR)
		print_totals(&report, "undone", out);
	if (!err && (report.failed || report.left) && !o->dry_run)
		fprintf(out, "what is not undone stays in %s\n", file);
	free(file);
	return err || report.failed || report.left;
}

void tune_list(FILE *out)
{
	const struct tune_setting *s = NULL;

	while ((s = tune_setting_next(s)))
		fprintf(out, "%-16s %-10s %s\n", s->name, s->asked_only ? "asked only" :
			s->applies ? "apply" : "check", s->why);
}
