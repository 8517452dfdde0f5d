/* SPDX-License-Identifier: BSD-2-Clause */
/* Which elements of `except` and `reference` of a suite mean a case. */
#include <string.h>

#include "bench/suite/suite_private.h"

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
