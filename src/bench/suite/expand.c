/* SPDX-License-Identifier: BSD-2-Clause */
/* Makes the cases of one element of a suite: every combination of its lists of values. */
#define LOG_ROOM "bench/suite"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "bench/suite/suite_private.h"
#include "bench/tune/tree.h"

/* Is this a key of the suite itself, not a parameter? */
static bool key_is_own(const char *key)
{
	return tune_has_word("scenario kind question label variant limit scale_ci except together "
			     "reference ci", key, " ");
}

/* The group `ci` of an object of the file in a short run, else NULL. */
static json_t *short_run(const struct suite_element *e, const json_t *holder)
{
	return e->r->ci ? json_object_get(holder, "ci") : NULL;
}

/* The object of the file that holds `key` of the element: itself or `common`. */
static const json_t *holder_of(const struct suite_element *e, const char *key)
{
	const json_t *ci = short_run(e, e->self);

	if (json_object_get(ci, key))
		return ci;
	return json_object_get(e->self, key) || !e->r->common ||
	       !json_object_get(e->r->common, key) ? e->self : e->r->common;
}

static void fail_key(const struct suite_element *e, const char *key, const char *message)
{
	config_fail(e->r->config, holder_of(e, key), key, "%s", message);
}

/* A text of the element, or `fallback`; required if that is NULL. */
static const char *text_of(const struct suite_element *e, const char *key,
			   const char *fallback)
{
	const json_t *v = json_object_get(e->merged, key);

	if (json_is_string(v))
		return json_string_value(v);
	if (v)
		fail_key(e, key, "expected a text");
	else if (!fallback)
		config_fail(e->r->config, e->self, NULL, "the case lacks '%s'", key);
	return fallback ? fallback : "";
}

/* The element with `common` under it. The values stay those of the file. */
static int merge(struct suite_element *e)
{
	json_t *ci = json_object_get(e->self, "ci");

	if (ci && !json_is_object(ci))
		config_fail(e->r->config, e->self, "ci", "expected a group { }");
	ci = short_run(e, e->self);
	e->merged = json_object();
	if (!e->merged || json_object_update(e->merged, (json_t *)e->self) ||
	    (json_is_object(ci) && json_object_update(e->merged, ci)) ||
	    (e->r->common &&
	     json_object_update_missing(e->merged, (json_t *)e->r->common)))
		return -ENOMEM;
	return 0;
}

static void take_head(struct suite_element *e)
{
	const json_t *scale = json_object_get(e->merged, "scale_ci");
	const json_t *limit = json_object_get(e->merged, "limit");

	e->scenario = text_of(e, "scenario", NULL);
	e->kind_name = text_of(e, "kind", NULL);
	text_of(e, "question", "");
	text_of(e, "label", "");
	text_of(e, "variant", "");
	e->limit_ns = e->r->limit_ns;
	if (limit && (!json_is_string(limit) ||
		      !duration_parse(json_string_value(limit), &e->limit_ns)))
		fail_key(e, "limit", "expected a duration such as \"10us\"");
	e->scale_ci = scale ? json_number_value(scale) : e->r->scale_ci;
	if (!(e->scale_ci > 0))
		fail_key(e, "scale_ci", "expected a number above 0");
	if (*e->kind_name && !bench_kind_is_known(e->kind_name))
		fail_key(e, "kind", "there is no such kind; 'busbar bench list' shows all");
	else if (*e->kind_name)
		e->kind = bench_kind_find(e->kind_name, e->why, sizeof(e->why));
}

/* One value of a parameter. */
static void check_value(const struct suite_element *e, const json_t *holder,
			const char *key, const struct bench_parameter *p,
			const json_t *value)
{
	char why[PARAMETER_WHY_SIZE];
	json_t *checked;

	if (parameter_value(p, value, &checked, why))
		config_fail(e->r->config, holder, key, "%s", why);
	else
		json_decref(checked);
}

/* A parameter of `holder`: its name, and its value or values. */
static void check_parameter(const struct suite_element *e, const json_t *holder,
			    const char *key, const json_t *value)
{
	const struct bench_parameter *p;
	char why[PARAMETER_WHY_SIZE];
	const json_t *one;
	size_t i;

	if (!e->kind)
		return;
	p = parameter_find(e->kind, key, why);
	if (!p)
		config_fail(e->r->config, holder, key, "%s", why);
	else if (!json_is_array(value))
		check_value(e, holder, key, p, value);
	else
		json_array_foreach(value, i, one)
			check_value(e, holder, key, p, one);
}

/* A list of groups: together, except and reference. Only `reference` has keys that are no
 * parameters: numbers, and a text "source". */
static void check_groups(const struct suite_element *e, const char *list_key)
{
	const json_t *list = json_object_get(e->merged, list_key), *group;
	bool reference = !strcmp(list_key, "reference");
	char why[PARAMETER_WHY_SIZE];
	const char *key;
	json_t *value;
	size_t i;

	if (!list)
		return;
	if (!json_is_array(list) || !json_array_size(list)) {
		fail_key(e, list_key, "expected a list of groups ( { ... }, ... )");
		return;
	}
	json_array_foreach(list, i, group) {
		if (!json_is_object(group) || !json_object_size(group))
			fail_key(e, list_key, "expected a list of groups ( { ... }, ... )");
		json_object_foreach((json_t *)group, key, value) {
			if ((!strcmp(key, "name") && !strcmp(list_key, "together")) ||
			    (!strcmp(key, "source") && reference && json_is_string(value)))
				continue;
			if (reference && json_is_number(value) && e->kind &&
			    !parameter_find(e->kind, key, why))
				continue;
			check_parameter(e, group, key, value);
		}
	}
}

static void add_axis(struct suite_element *e, const char *key, const json_t *values)
{
	const char *shown = key ? key : "together";

	if (e->axes_count == AXES_MAX)
		fail_key(e, shown, "more lists than can be combined");
	else if (!json_array_size(values))
		fail_key(e, shown, "the list is empty");
	else
		e->axes[e->axes_count++] = (struct suite_axis){ key, values, 0 };
}

/* Finds the lists, in the order in which they stand there, and checks all values. */
static void find_axes(struct suite_element *e)
{
	const char *key;
	json_t *value;

	json_object_foreach(e->merged, key, value) {
		if (!strcmp(key, "together") && json_is_array(value))
			add_axis(e, NULL, value);
		if (key_is_own(key))
			continue;
		check_parameter(e, holder_of(e, key), key, value);
		if (json_is_array(value))
			add_axis(e, key, value);
	}
	check_groups(e, "together");
	check_groups(e, "except");
	check_groups(e, "reference");
}

/* Sets a parameter of a combination. Unchecked where there is no kind to check by. */
static int set_parameter(const struct suite_element *e, json_t *parameters,
			 const char *key, json_t *value)
{
	const struct bench_parameter *p;
	char why[PARAMETER_WHY_SIZE];
	json_t *checked;

	if (!e->kind)
		return json_object_set(parameters, key, value) ? -ENOMEM : 0;
	p = parameter_find(e->kind, key, why);
	if (!p || parameter_value(p, value, &checked, why))
		return -EINVAL;
	return json_object_set_new(parameters, p->name, checked) ? -ENOMEM : 0;
}

static int set_axis(const struct suite_element *e, json_t *parameters,
		    const struct suite_axis *a)
{
	json_t *value = json_array_get(a->values, a->at), *one;
	const char *key;
	int ret = 0;

	if (a->key)
		return set_parameter(e, parameters, a->key, value);
	json_object_foreach(value, key, one)
		if (!ret && strcmp(key, "name"))
			ret = set_parameter(e, parameters, key, one);
	return ret;
}

/* The parameters of the combination in work, a new object. */
static int combine(const struct suite_element *e, json_t **out)
{
	json_t *parameters = json_object(), *value;
	char why[PARAMETER_WHY_SIZE];
	const char *key;
	int ret = parameters ? 0 : -ENOMEM;

	json_object_foreach(e->merged, key, value)
		if (!ret && !key_is_own(key) && !json_is_array(value))
			ret = set_parameter(e, parameters, key, value);
	for (size_t i = 0; !ret && i < e->axes_count; i++)
		ret = set_axis(e, parameters, &e->axes[i]);
	/* A group of `together` may have set them. */
	if (!ret)
		ret = suite_override(e, parameters);
	if (!ret && e->kind && parameters_complete(e->kind, parameters, why)) {
		config_fail(e->r->config, e->self, NULL, "%s", why);
		ret = -EINVAL;
	}
	if (ret)
		json_decref(parameters);
	else
		*out = parameters;
	return ret;
}

static bool is_excepted(const struct suite_element *e, const json_t *parameters)
{
	const json_t *list = json_object_get(e->merged, "except"), *group;
	size_t i;

	if (e->kind)
		json_array_foreach(list, i, group)
			if (suite_fits(e, group, parameters))
				return true;
	return false;
}

static json_t *describe(const struct suite_element *e, json_t *parameters)
{
	const char *question = json_string_value(json_object_get(e->merged, "question"));
	char *label = suite_case_label(e), *command = NULL;
	json_t *d;

	if (e->kind)
		command = parameters_command(e->kind, parameters);
	d = json_pack("{s:s, s:s, s:s, s:s, s:I, s:O, s:s*, s:o*, s:s}",
		      "kind", e->kind_name, "scenario", e->scenario,
		      "question", question ? question : e->r->suite->question,
		      "label", label ? label : "", "limit_ns", (json_int_t)e->limit_ns,
		      "parameters", parameters, "command", command,
		      "reference", suite_reference(e, parameters),
		      "suite", e->r->suite->name);
	free(label);
	free(command);
	return d;
}

static struct suite_case *new_place(struct suite *s)
{
	struct suite_case *more = s->cases;

	/* Doubled whenever it is full, which is at powers of two. */
	if (!(s->count & (s->count - 1)))
		more = realloc(s->cases, (s->count ? 2 * s->count : 1) * sizeof(*more));
	if (!more)
		return NULL;
	s->cases = more;
	memset(&more[s->count], 0, sizeof(*more));
	return &more[s->count];
}

static bool is_there(const struct suite *s, const char *id)
{
	for (size_t i = 0; i < s->count; i++)
		if (!strcmp(s->cases[i].id, id))
			return true;
	return false;
}

/* Takes `parameters` over. */
static int add_case(struct suite_element *e, json_t *parameters)
{
	struct suite *s = e->r->suite;
	struct suite_case *c = new_place(s);

	if (!c) {
		json_decref(parameters);
		return -ENOMEM;
	}
	c->parameters = parameters;
	c->id = suite_case_id(e);
	c->description = describe(e, parameters);
	if (!c->id || !c->description) {
		json_decref(c->parameters);
		json_decref(c->description);
		free(c->id);
		return -ENOMEM;
	}
	if (is_there(s, c->id))
		config_fail(e->r->config, e->self, NULL, "a case '%s' is there already; "
			    "variant = \"...\" tells two of them apart", c->id);
	else if (s->count >= CASES_MAX)
		config_fail(e->r->config, e->self, NULL, "more than %d cases", CASES_MAX);
	c->scenario = json_string_value(json_object_get(c->description, "scenario"));
	c->kind_name = json_string_value(json_object_get(c->description, "kind"));
	c->kind = e->kind;
	strcpy(c->why, e->why);
	c->scale_ci = e->scale_ci;
	s->count++;
	if (!e->kind || !e->kind->check || !e->kind->check(parameters))
		return 0;
	if (!e->r->overrides || !e->r->overrides->count) {
		config_fail(e->r->config, e->self, NULL, "case '%s' is not possible", c->id);
	} else {
		/* The file is right; what the command line sets does not go with all cases. */
		c->kind = NULL;
		strcpy(c->why, "not possible with the parameters that were set");
	}
	return 0;
}

/* To the next combination; false: that was the last one. The last list moves first. */
static bool next(struct suite_element *e)
{
	for (size_t i = e->axes_count; i-- > 0;) {
		if (++e->axes[i].at < json_array_size(e->axes[i].values))
			return true;
		e->axes[i].at = 0;
	}
	return false;
}

static int expand_all(struct suite_element *e)
{
	do {
		json_t *parameters;
		int ret = combine(e, &parameters);

		if (!ret && is_excepted(e, parameters))
			json_decref(parameters);
		else if (!ret)
			ret = add_case(e, parameters);
		if (ret == -EINVAL || (!ret && config_errors(e->r->config)))
			return 0; /* reported; the others would say the same */
		if (ret)
			return ret;
	} while (next(e));
	return 0;
}

int suite_expand(struct suite_reader *r, const json_t *element)
{
	struct suite_element e = { .r = r, .self = element };
	unsigned errors = config_errors(r->config);
	int ret;

	if (!json_is_object(element)) {
		config_fail(r->config, r->root, "cases", "expected groups { }");
		return 0;
	}
	ret = merge(&e);
	if (!ret) {
		take_head(&e);
		/* In the place of a list, too, which then is none. */
		ret = suite_override(&e, e.merged);
	}
	if (!ret)
		find_axes(&e);
	if (!ret && config_errors(r->config) == errors)
		ret = expand_all(&e);
	json_decref(e.merged);
	return ret;
}
