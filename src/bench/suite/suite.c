/* SPDX-License-Identifier: BSD-2-Clause */
/* Finds and reads the file of a suite; its cases are made in expand.c. */
#define LOG_ROOM "bench/suite"
#include "bench/suite/suite.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/suite/suite_private.h"
#include "util/beside.h"
#include "util/container_of.h"
#include "util/log.h"
#include "util/nearest.h"

#define SUFFIX ".suite"
#define LIMIT_NS 10000

/* From the folder of the executable: that of a build, then the installed one. */
static const char *const places[] = { "share/suites", BENCH_SUITES_FROM_BINDIR };

/* The path of the folder of suites; false: there is none. */
static bool suites_dir(char *path, size_t size)
{
	return !beside_executable(places, ARRAY_SIZE(places), ".", path, size);
}

static bool has_suffix(const char *name)
{
	size_t n = strlen(name), s = strlen(SUFFIX);

	return n > s && !strcmp(name + n - s, SUFFIX);
}

static int is_suite(const struct dirent *e)
{
	return has_suffix(e->d_name);
}

/* The files of suites in the folder, as scandir() gives them; 0: there is none. */
static int list_suites(char dir[PATH_MAX], struct dirent ***list)
{
	int count = suites_dir(dir, PATH_MAX) ? scandir(dir, list, is_suite, alphasort) : 0;

	return count < 0 ? 0 : count;
}

/* "Suite 'x' is not known", with the nearest name. */
static void report_unknown(const char *name)
{
	struct nearest near = NEAREST(name);
	char dir[PATH_MAX], hint[100];
	struct dirent **list = NULL;
	int count = list_suites(dir, &list);

	for (int i = 0; i < count; i++) {
		list[i]->d_name[strlen(list[i]->d_name) - strlen(SUFFIX)] = '\0';
		nearest_try(&near, list[i]->d_name);
	}
	nearest_hint(&near, hint, sizeof(hint));
	log_error("there is no suite '%s'%s; 'busbar bench list' shows all, and a file is "
		  "given with its path", name, hint);
	for (int i = 0; i < count; i++)
		free(list[i]);
	free(list);
}

/* The file of a suite, malloc()ed; NULL: there is none, logged. */
static char *find_file(const char *name)
{
	char file[NAME_MAX], path[PATH_MAX];

	if (strpbrk(name, "/."))
		return strdup(name);
	if (snprintf(file, sizeof(file), "%s" SUFFIX, name) < (int)sizeof(file) &&
	    !beside_executable(places, ARRAY_SIZE(places), file, path, sizeof(path)))
		return strdup(path);
	report_unknown(name);
	return NULL;
}

/* "dir/quick.suite" is the suite "quick". */
static char *name_of(const char *file)
{
	const char *slash = strrchr(file, '/');
	char *name = strdup(slash ? slash + 1 : file);

	if (name && has_suffix(name))
		name[strlen(name) - strlen(SUFFIX)] = '\0';
	return name;
}

/* A copy of an optional text of the head. */
static int take_text(struct suite_reader *r, const char *key, char **out)
{
	const json_t *v = json_object_get(r->root, key);

	if (v && !json_is_string(v))
		config_fail(r->config, r->root, key, "expected a text");
	*out = strdup(json_is_string(v) ? json_string_value(v) : "");
	return *out ? 0 : -ENOMEM;
}

static void take_numbers(struct suite_reader *r)
{
	const json_t *limit = json_object_get(r->root, "limit");
	const json_t *scale = json_object_get(r->root, "scale_ci");

	r->limit_ns = LIMIT_NS;
	r->scale_ci = 0.01;
	if (limit && (!json_is_string(limit) ||
		      !duration_parse(json_string_value(limit), &r->limit_ns)))
		config_fail(r->config, r->root, "limit", "expected a duration such as \"10us\"");
	if (scale && (!json_is_number(scale) || !(json_number_value(scale) > 0)))
		config_fail(r->config, r->root, "scale_ci", "expected a number above 0");
	else if (scale)
		r->scale_ci = json_number_value(scale);
}

/* A misspelt key of the head would otherwise be a value that nobody reads. */
static void check_keys(struct suite_reader *r)
{
	static const char *const known[] = { "title", "question", "source", "limit",
					     "scale_ci", "common", "cases" };
	const char *key;
	json_t *value;

	json_object_foreach((json_t *)r->root, key, value) {
		struct nearest near = NEAREST(key);
		char hint[100];
		size_t i = 0;

		while (i < ARRAY_SIZE(known) && strcmp(key, known[i]))
			nearest_try(&near, known[i++]);
		if (i == ARRAY_SIZE(known))
			config_fail(r->config, r->root, key, "unknown key%s",
				    nearest_hint(&near, hint, sizeof(hint)));
	}
}

static int read_root(struct suite_reader *r)
{
	const json_t *cases, *element;
	size_t i;
	int ret;

	r->root = config_root(r->config);
	check_keys(r);
	take_numbers(r);
	r->source = json_string_value(json_object_get(r->root, "source"));
	r->common = json_object_get(r->root, "common");
	if (r->common && !json_is_object(r->common)) {
		config_fail(r->config, r->root, "common", "expected a group { }");
		r->common = NULL;
	}
	ret = take_text(r, "title", &r->suite->title) ?:
	      take_text(r, "question", &r->suite->question);
	cases = json_object_get(r->root, "cases");
	if (!json_is_array(cases) || !json_array_size(cases)) {
		config_fail(r->config, r->root, cases ? "cases" : NULL,
			    "expected a list cases = ( { ... }, ... )");
		return -EINVAL;
	}
	json_array_foreach(cases, i, element)
		if (!ret)
			ret = suite_expand(r, element);
	return ret ? ret : config_errors(r->config) ? -EINVAL : 0;
}

int suite_load(const char *name, bool ci, struct suite_overrides *overrides,
	       struct suite **out)
{
	struct suite_reader r = { .suite = calloc(1, sizeof(*r.suite)), .ci = ci,
				  .overrides = overrides };
	int ret = -ENOMEM;

	if (!r.suite)
		return -ENOMEM;
	r.suite->file = find_file(name);
	if (!r.suite->file) {
		ret = -ENOENT;
		goto err_suite;
	}
	r.suite->name = name_of(r.suite->file);
	if (!r.suite->name)
		goto err_suite;
	ret = config_load(r.suite->file, &r.config);
	if (ret)
		goto err_suite;
	ret = read_root(&r);
	config_destroy(r.config);
	if (!ret && overrides && !suite_overrides_are_right(overrides))
		ret = -EINVAL;
	if (ret)
		goto err_suite;
	*out = r.suite;
	return 0;
err_suite:
	suite_free(r.suite);
	return ret;
}

void suite_free(struct suite *s)
{
	if (!s)
		return;
	for (size_t i = 0; i < s->count; i++) {
		json_decref(s->cases[i].parameters);
		json_decref(s->cases[i].description);
		free(s->cases[i].id);
	}
	free(s->cases);
	free(s->title);
	free(s->question);
	free(s->name);
	free(s->file);
	free(s);
}

void suite_list(void (*show)(const char *name, const char *title, const char *path))
{
	struct dirent **list = NULL;
	char dir[PATH_MAX];
	int count = list_suites(dir, &list);

	for (int i = 0; i < count; i++) {
		char path[2 * PATH_MAX], *name;
		struct config *c;

		snprintf(path, sizeof(path), "%s/%s", dir, list[i]->d_name);
		name = name_of(path);
		if (name && !config_load(path, &c)) {
			const json_t *title = json_object_get(config_root(c), "title");

			show(name, json_is_string(title) ? json_string_value(title) : "", path);
			config_destroy(c);
		}
		free(name);
		free(list[i]);
	}
	free(list);
}
