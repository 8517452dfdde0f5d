/* SPDX-License-Identifier: BSD-2-Clause */
/* Parts of the cases of a suite: their ids and labels, which elements of `except` and
 * `reference` mean them, and parameters that the command line sets for all of them (suite.h). */
#define LOG_ROOM "bench/suite"
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/kind/parameters.h"
#include "bench/suite/suite_private.h"
#include "util/log.h"

/* "G''" becomes "Gpp", "a b" becomes "a-b". */
static void put_safe(FILE *f, const char *text)
{
	for (; *text; text++)
		fputc(isalnum((unsigned char)*text) || strchr("-.+", *text) ? *text :
		      *text == '\'' ? 'p' : '-', f);
}

/* The value as it stands in the file; a text may be empty. */
static void put_scalar(FILE *f, const json_t *value, bool safe)
{
	const char *text = json_string_value(value);

	if (text && safe)
		put_safe(f, *text ? text : "none");
	else if (text)
		fputs(*text ? text : "none", f);
	else if (json_is_boolean(value))
		fputs(json_is_true(value) ? "yes" : "no", f);
	else if (json_is_integer(value))
		fprintf(f, "%lld", (long long)json_integer_value(value));
	else
		fprintf(f, "%.6g", json_number_value(value));
}

/* "RC", "inline" or "no-inline", "size=32". */
static void put_value(FILE *f, const char *key, const json_t *value, bool safe)
{
	if (json_is_boolean(value)) {
		fputs(json_is_true(value) ? "" : safe ? "no-" : "no ", f);
		parameters_print_name(f, key);
		return;
	}
	if (!json_is_string(value)) {
		parameters_print_name(f, key);
		fputs(safe ? "=" : " ", f);
	}
	put_scalar(f, value, safe);
}

/* The name of a group of `together`, else its first value. */
static void put_group(FILE *f, const json_t *group, bool safe)
{
	const json_t *name = json_object_get(group, "name");
	void *first = json_object_iter((json_t *)group);

	if (json_is_string(name))
		put_scalar(f, name, safe);
	else if (first)
		put_value(f, json_object_iter_key(first), json_object_iter_value(first), safe);
}

static void put_axis(FILE *f, const struct suite_axis *a, bool safe)
{
	const json_t *value = json_array_get(a->values, a->at);

	if (a->key)
		put_value(f, a->key, value, safe);
	else
		put_group(f, value, safe);
}

/* `start` and the values of the axes, with `between` between them; malloc()ed. NULL without
 * memory. */
static char *name_of(const struct suite_element *e, const char *start, const char *more,
		     const char *between, bool safe)
{
	char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);

	if (!f)
		return NULL;
	if (safe)
		put_safe(f, start);
	else
		fputs(start, f);
	if (more) {
		fputs(between, f);
		put_safe(f, *more ? more : "none");
	}
	for (size_t i = 0; i < e->axes_count; i++) {
		fputs(*start || i ? between : "", f);
		put_axis(f, &e->axes[i], safe);
	}
	if (!fclose(f))
		return text;
	free(text);
	return NULL;
}

char *suite_case_id(const struct suite_element *e)
{
	return name_of(e, e->scenario, json_string_value(json_object_get(e->merged, "variant")), "_",
		       true);
}

char *suite_case_label(const struct suite_element *e)
{
	const char *label = json_string_value(json_object_get(e->merged, "label"));
	const char *variant = json_string_value(json_object_get(e->merged, "variant"));
	const char *start = label ? label : variant ? variant : e->axes_count ? "" : e->scenario;

	return name_of(e, start, NULL, ", ", false);
}

static const struct bench_parameter *parameter_of(const struct suite_element *e,
						  const char *key)
{
	char why[PARAMETER_WHY_SIZE];

	return e->kind ? parameter_find(e->kind, key, why) : NULL;
}

/* Is the value of the file, brought into the parameter's type, that of the case? */
static bool is_value(const struct bench_parameter *p, const json_t *given,
		     const json_t *value)
{
	char why[PARAMETER_WHY_SIZE];
	json_t *checked;
	bool same;

	if (parameter_value(p, given, &checked, why))
		return false;
	same = json_equal(checked, value);
	json_decref(checked);
	return same;
}

static bool is_one_of(const struct bench_parameter *p, const json_t *given,
		      const json_t *value)
{
	const json_t *one;
	size_t i;

	if (!json_is_array(given))
		return is_value(p, given, value);
	json_array_foreach(given, i, one)
		if (is_value(p, one, value))
			return true;
	return false;
}

bool suite_fits(const struct suite_element *e, const json_t *group,
		const json_t *parameters)
{
	const char *key;
	json_t *given;

	json_object_foreach((json_t *)group, key, given) {
		const struct bench_parameter *p = parameter_of(e, key);

		if (p && !is_one_of(p, given, json_object_get(parameters, p->name)))
			return false;
	}
	return true;
}

/* The figures of an element that fits, into `figures`. */
static void take_figures(const struct suite_element *e, const json_t *group,
			 json_t *figures)
{
	const char *key;
	json_t *value;

	json_object_foreach((json_t *)group, key, value)
		if (strcmp(key, "source") && !parameter_of(e, key) && json_is_number(value))
			json_object_set(figures, key, value);
}

json_t *suite_reference(const struct suite_element *e, const json_t *parameters)
{
	const json_t *list = json_object_get(e->merged, "reference"), *group;
	const char *source = e->r->source;
	json_t *figures;
	size_t i;

	if (!e->kind || !json_is_array(list))
		return NULL;
	figures = json_object();
	json_array_foreach(list, i, group) {
		const json_t *own = json_object_get(group, "source");

		if (!suite_fits(e, group, parameters))
			continue;
		if (json_is_string(own))
			source = json_string_value(own);
		take_figures(e, group, figures);
	}
	if (json_object_size(figures))
		return json_pack("{s:s, s:o}", "source", source ? source : "other hardware",
				 "figures", figures);
	json_decref(figures);
	return NULL;
}

int suite_overrides_add(struct suite_overrides *o, const char *key, const char *value)
{
	struct suite_override *at;

	for (size_t i = 0; i < o->count; i++) {
		if (!strcmp(o->list[i].key, key)) {
			free(o->list[i].value);
			o->list[i].value = strdup(value);
			return o->list[i].value ? 0 : -ENOMEM;
		}
	}
	if (o->count == SUITE_OVERRIDES_MAX)
		return log_fail(-EINVAL, "more than %d parameters are set", SUITE_OVERRIDES_MAX);
	at = &o->list[o->count++];
	*at = (struct suite_override){ .key = strdup(key), .value = strdup(value) };
	for (char *c = at->key; c && *c; c++)
		if (*c == '-')
			*c = '_';
	return at->key && at->value ? 0 : -ENOMEM;
}

int suite_overrides_parse(struct suite_overrides *o, const char *text)
{
	const char *equals = strchr(text, '=');
	char *key;
	int ret;

	if (!equals || equals == text)
		return log_fail(-EINVAL,
				"--set '%s' is not usable, expected KEY=VALUE such as size=64",
				text);
	key = strndup(text, (size_t)(equals - text));
	ret = key ? suite_overrides_add(o, key, equals + 1) : -ENOMEM;
	free(key);
	return ret;
}

void suite_overrides_free(struct suite_overrides *o)
{
	for (size_t i = 0; i < o->count; i++) {
		free(o->list[i].key);
		free(o->list[i].value);
	}
	o->count = 0;
}

bool suite_overrides_are_right(const struct suite_overrides *o)
{
	for (size_t i = 0; i < o->count; i++) {
		if (!o->list[i].used)
			log_error("no case of this suite has a parameter '%s'", o->list[i].key);
		if (!o->list[i].used || o->list[i].wrong)
			return false;
	}
	return true;
}

/* Of a kind that is not in this build nothing is known, and its cases are left out anyway. */
int suite_override(const struct suite_element *e, json_t *parameters)
{
	struct suite_overrides *o = e->r->overrides;
	char why[PARAMETER_WHY_SIZE];

	for (size_t i = 0; o && i < o->count; i++) {
		const struct bench_parameter *p = parameter_of(e, o->list[i].key);
		json_t *checked;

		o->list[i].used |= p || !e->kind;
		if (!p)
			continue;
		if (parameter_from_text(p, o->list[i].value, &checked, why)) {
			if (!o->list[i].wrong)
				log_error("--set %s=%s: %s", o->list[i].key, o->list[i].value,
					  why);
			o->list[i].wrong = true;
			continue;
		}
		if (json_object_set_new(parameters, p->name, checked))
			return -ENOMEM;
	}
	return 0;
}
