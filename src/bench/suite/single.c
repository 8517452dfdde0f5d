/* SPDX-License-Identifier: BSD-2-Clause */
/* `busbar bench KIND --OPTION VALUE ...`: one case, from options. */
#define LOG_ROOM "bench"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/result/files.h"
#include "bench/suite/commands.h"
#include "bench/suite/suite.h"
#include "bench/suite/live.h"
#include "bench/kind/parameters.h"
#include "bench/suite/runner.h"
#include "bench/result/show.h"
#include "util/clock.h"
#include "util/log.h"
#include "util/num.h"

struct single {
	const struct bench_kind *kind;
	json_t *parameters;
	const char *out, *id;
	double scale;
	bool json, no_csv, help;
};

static void print_help(FILE *f, const struct bench_kind *kind)
{
	fprintf(f, "usage: busbar bench %s [--PARAMETER VALUE]... [--out DIR [--id ID]]\n"
		"                       [--scale X] [--json] [--no-csv]\n\n%s.\n\n",
		kind->name, kind->summary);
	for (const struct bench_parameter *p = kind->parameters; p->name; p++) {
		int left;

		fputs("  --", f);
		left = 14 - parameters_print_name(f, p->name);
		fprintf(f, "%*s %s", MAX(left, 0), "", p->help);
		if (p->values)
			fprintf(f, "; %s", p->values);
		if (p->standard && *p->standard)
			fprintf(f, " (%s)", p->standard);
		fputc('\n', f);
	}
	fputs("\n"
	      "  --out DIR        keep the case in this folder, made if it is not there; all\n"
	      "                   cases of a folder are of one kind\n"
	      "  --id ID          its name there (KIND-1, KIND-2 ...)\n"
	      "  --scale X        X times as many samples (1)\n"
	      "  --json           print the summary as JSON\n"
	      "  --no-csv         no raw.csv beside raw.bin\n"
	      "  --help           this text\n",
	      f);
}

/* An option that every kind has. 1: it was one and took `value`; 0: it is none; or
 * -EINVAL. */
static int common_option(struct single *s, const char *name, const char *value)
{
	if (!strcmp(name, "out")) {
		s->out = value;
	} else if (!strcmp(name, "id")) {
		s->id = value;
	} else if (!strcmp(name, "scale")) {
		const char *end = value + strlen(value);

		if (num_parse_double(value, end, &s->scale) != end || !(s->scale > 0))
			return log_fail(-EINVAL,
					"--scale %s is not usable, expected a number above 0",
					value);
	} else {
		return 0;
	}
	return 1;
}

static bool flag(struct single *s, const char *name)
{
	bool *known = !strcmp(name, "json") ? &s->json :
		      !strcmp(name, "no-csv") ? &s->no_csv :
		      !strcmp(name, "help") ? &s->help : NULL;

	if (known)
		*known = true;
	return known;
}

static int set(struct single *s, const char *name, const char *value)
{
	char why[PARAMETER_WHY_SIZE];
	const struct bench_parameter *p;
	json_t *checked;
	int ret = value ? common_option(s, name, value) : 0;

	if (ret)
		return ret < 0 ? ret : 0;
	p = parameter_find(s->kind, name, why);
	/* --inline is --inline true. */
	if (p && !value && p->type == 'b')
		value = "true";
	if (p && !value)
		snprintf(why, sizeof(why), "a value is missing");
	if (!p || !value || parameter_from_text(p, value, &checked, why))
		return log_fail(-EINVAL, "--%s: %s", name, why);
	return json_object_set_new(s->parameters, p->name, checked);
}

/* "--name value" and "--name=value". */
static int parse(struct single *s, int argc, char **argv)
{
	int ret = 0;

	for (int i = 1; !ret && i < argc; i++) {
		char *name = argv[i], *equals;

		if (!strcmp(name, "-h") || !strcmp(name, "-j"))
			name = (char *)(name[1] == 'h' ? "--help" : "--json");
		if (strncmp(name, "--", 2))
			return log_fail(-EINVAL,
					"'%s' is not an option, see 'busbar bench %s --help'", name,
					s->kind->name);
		name += 2;
		equals = strchr(name, '=');
		if (equals) {
			char *key = strndup(name, (size_t)(equals - name));

			ret = key ? set(s, key, equals + 1) : -ENOMEM;
			free(key);
		} else if (!flag(s, name)) {
			bool has_value = i + 1 < argc && strncmp(argv[i + 1], "--", 2);

			ret = set(s, name, has_value ? argv[++i] : NULL);
		}
	}
	return ret;
}

static bool print_json;

static void print_done(const struct suite_case *c, const json_t *summary)
{
	live_case_end();
	if (print_json) {
		json_dumpf(summary, stdout, JSON_INDENT(2));
		putchar('\n');
	} else {
		printf("%s\n", json_string_value(json_object_get(c->description, "command")));
		show_summary(stdout, summary);
	}
}

/* A name that the folder does not have yet. */
static char *free_id(const struct single *s, const struct result_run *run)
{
	char *id = s->id ? strdup(s->id) : NULL;

	for (unsigned n = 1; !s->id && n; n++) {
		if (asprintf(&id, "%s-%u", s->kind->name, n) < 0)
			return NULL;
		if (!result_case_done(run, id))
			break;
		free(id);
	}
	return id;
}

static int measure(struct single *s, struct result_run *run, const atomic_bool *stop)
{
	const struct runner_options o = { .scale = s->scale, .stop = stop };
	char *command = parameters_command(s->kind, s->parameters);
	struct suite_case c = { .kind = s->kind, .kind_name = s->kind->name,
				.parameters = s->parameters, .scenario = "" };
	int ret = -ENOMEM;

	c.id = free_id(s, run);
	c.description = json_pack("{s:s, s:s, s:O, s:s*}", "kind", s->kind->name, "label",
				  c.id ? c.id : "", "parameters", s->parameters, "command",
				  command);
	if (c.id && c.description) {
		live_begin(1, runner_seconds(&o, &c));
		live_case(c.id, runner_seconds(&o, &c));
		print_json = s->json;
		ret = runner_measure(run, &c, &o, print_done);
		live_end();
	}
	json_decref(c.description);
	free(c.id);
	free(command);
	return ret;
}

static int measure_in(struct single *s, const char *dir, bool keep, int argc, char **argv)
{
	const atomic_bool *stop = bench_catch_signals();
	char **command = bench_command(argc, argv);
	const struct result_options options = {
		.suite = s->kind->name, .argc = command ? argc + 2 : 0, .argv = command,
		.no_csv = s->no_csv || !keep, .no_floor = !keep, .stop = stop,
	};
	struct result_run *run;
	int ret = result_run_open(dir, &options, &run), end;

	free(command);
	if (ret)
		return ret;
	ret = measure(s, run, stop);
	end = result_run_close(run);
	return ret ? ret : end;
}

/* Without --out the folder lasts as long as the command. */
static int measure_case(struct single *s, int argc, char **argv)
{
	char *dir;
	int ret;

	if (s->out)
		return measure_in(s, s->out, true, argc, argv);
	ret = files_make_temporary(&dir);
	if (ret)
		return ret;
	ret = measure_in(s, dir, false, argc, argv);
	files_remove_dir(dir);
	free(dir);
	return ret;
}

static int check(struct single *s)
{
	char why[PARAMETER_WHY_SIZE];

	if (parameters_complete(s->kind, s->parameters, why))
		return log_fail(-EINVAL, "%s", why);
	return s->kind->check ? s->kind->check(s->parameters) : 0;
}

int bench_single_main(int argc, char **argv)
{
	struct single s = { .scale = 1 };
	char why[SUITE_WHY_SIZE];
	int ret, status;

	s.kind = bench_kind_find(argv[0], why, sizeof(why));
	if (!s.kind)
		return log_fail(BENCH_FAILED, "%s", why);
	s.parameters = json_object();
	clock_init();
	ret = parse(&s, argc, argv);
	if (ret || s.help) {
		status = ret ? BENCH_USAGE : BENCH_OK;
		if (!ret)
			print_help(stdout, s.kind);
	} else if (check(&s)) {
		status = BENCH_USAGE;
	} else {
		ret = measure_case(&s, argc, argv);
		status = bench_status(ret);
		if (ret == -EINTR)
			log_info("interrupted, nothing was kept of the case");
	}
	json_decref(s.parameters);
	return status;
}
