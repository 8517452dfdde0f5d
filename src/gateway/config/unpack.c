/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tables of configuration keys: parsing, ranges, defaults, unknown keys.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "gateway/config/config.h"
#include "gateway/config/former.h"
#include "gateway/config/secret.h"
#include "util/container_of.h"
#include "util/nearest.h"

static const char *article_of(enum config_type type)
{
	switch (type) {
	case CONFIG_BOOL: return "true or false";
	case CONFIG_INT: return "a whole number";
	case CONFIG_REAL: return "a number";
	case CONFIG_STRING: return "a text";
	case CONFIG_ENUM: return "one of the names";
	case CONFIG_JSON: return "a value";
	}
	return "a value";
}

static const char *kind_of(const json_t *v)
{
	switch (json_typeof(v)) {
	case JSON_OBJECT: return "a group";
	case JSON_ARRAY: return "a list";
	case JSON_STRING: return "a text";
	case JSON_INTEGER: return "a whole number";
	case JSON_REAL: return "a number";
	case JSON_TRUE:
	case JSON_FALSE: return "true or false";
	case JSON_NULL: return "null";
	}
	return "something else";
}

static bool parse_int(const char *text, int64_t *out)
{
	char *end;

	errno = 0;
	*out = strtoll(text, &end, 0);
	return *text && !*end && !errno;
}

static bool parse_real(const char *text, double *out)
{
	char *end;

	*out = strtod(text, &end);
	return *text && !*end && isfinite(*out);
}

static bool parse_bool(const char *text, bool *out)
{
	*out = !strcasecmp(text, "true");
	return *out || !strcasecmp(text, "false");
}

static int parse_enum(const struct config_key *k, const char *text)
{
	for (int i = 0; k->names[i]; i++)
		if (!strcmp(k->names[i], text))
			return i;
	return -1;
}

/* The default, as text, goes through the same parsers. */
static void set_fallback(const struct config_key *k, void *field)
{
	const char *text = k->fallback;

	switch (k->type) {
	case CONFIG_BOOL:
		*(bool *)field = false;
		if (text)
			parse_bool(text, field);
		break;
	case CONFIG_INT:
		*(int64_t *)field = 0;
		if (text)
			parse_int(text, field);
		break;
	case CONFIG_REAL:
		*(double *)field = 0;
		if (text)
			parse_real(text, field);
		break;
	case CONFIG_STRING:
		*(const char **)field = text;
		break;
	case CONFIG_ENUM:
		*(int *)field = text ? MAX(parse_enum(k, text), 0) : 0;
		break;
	case CONFIG_JSON:
		*(json_t **)field = NULL;
		break;
	}
}

static int fail_type(struct config *c, const json_t *obj,
		     const struct config_key *k, const json_t *v)
{
	if (json_is_string(v))
		config_fail(c, obj, k->name, "expected %s, found the text '%.60s'",
			    article_of(k->type), json_string_value(v));
	else
		config_fail(c, obj, k->name, "expected %s, found %s",
			    article_of(k->type), kind_of(v));
	return -EINVAL;
}

static int check_range(struct config *c, const json_t *obj,
		       const struct config_key *k, double v, const char *shown)
{
	if ((k->min == 0 && k->max == 0) || (v >= k->min && v <= k->max))
		return 0;
	if (isinf(k->max) || k->max >= (double)INT64_MAX)
		config_fail(c, obj, k->name, "%s is out of range, expected %.15g or more",
			    shown, k->min);
	else
		config_fail(c, obj, k->name, "%s is out of range, expected %.15g to %.15g",
			    shown, k->min, k->max);
	return -ERANGE;
}

static int set_int(struct config *c, const json_t *obj,
		   const struct config_key *k, const json_t *v, void *field)
{
	char shown[32];
	int64_t value;

	if (json_is_integer(v))
		value = json_integer_value(v);
	else if (json_is_string(v)) {
		if (!parse_int(json_string_value(v), &value))
			return fail_type(c, obj, k, v);
	} else if (json_is_real(v)) {
		double r = json_real_value(v);

		/* 1e6 is a real number in both languages. */
		if (r != floor(r) || fabs(r) > 9e15)
			return fail_type(c, obj, k, v);
		value = (int64_t)r;
	} else
		return fail_type(c, obj, k, v);
	snprintf(shown, sizeof(shown), "%lld", (long long)value);
	if (check_range(c, obj, k, (double)value, shown))
		return -ERANGE;
	*(int64_t *)field = value;
	return 0;
}

static int set_real(struct config *c, const json_t *obj,
		    const struct config_key *k, const json_t *v, void *field)
{
	char shown[32];
	double value;

	if (json_is_number(v))
		value = json_number_value(v);
	else if (!json_is_string(v) || !parse_real(json_string_value(v), &value))
		return fail_type(c, obj, k, v);
	snprintf(shown, sizeof(shown), "%.9g", value);
	if (check_range(c, obj, k, value, shown))
		return -ERANGE;
	*(double *)field = value;
	return 0;
}

static int set_enum(struct config *c, const json_t *obj,
		    const struct config_key *k, const json_t *v, void *field)
{
	char list[256] = "", hint[100];
	struct nearest near;
	size_t len = 0;
	int index;

	if (!json_is_string(v))
		return fail_type(c, obj, k, v);
	index = parse_enum(k, json_string_value(v));
	if (index >= 0) {
		*(int *)field = index;
		return 0;
	}
	near = NEAREST(json_string_value(v));
	for (int i = 0; k->names[i]; i++) {
		nearest_try(&near, k->names[i]);
		if (len < sizeof(list))
			len += (size_t)snprintf(list + len, sizeof(list) - len,
						"%s%s", i ? ", " : "",
						k->names[i]);
	}
	config_fail(c, obj, k->name, "'%.60s' is none of: %s%s",
		    json_string_value(v), list,
		    nearest_hint(&near, hint, sizeof(hint)));
	return -EINVAL;
}

static int set_value(struct config *c, const json_t *obj,
		     const struct config_key *k, json_t *v, void *field)
{
	switch (k->type) {
	case CONFIG_BOOL:
		if (json_is_boolean(v))
			*(bool *)field = json_is_true(v);
		else if (json_is_integer(v) && (json_integer_value(v) == 0 ||
						json_integer_value(v) == 1))
			*(bool *)field = json_integer_value(v);
		else if (!json_is_string(v) ||
			 !parse_bool(json_string_value(v), field))
			return fail_type(c, obj, k, v);
		return 0;
	case CONFIG_INT:
		return set_int(c, obj, k, v, field);
	case CONFIG_REAL:
		return set_real(c, obj, k, v, field);
	case CONFIG_STRING:
		if (!json_is_string(v))
			return fail_type(c, obj, k, v);
		*(const char **)field = json_string_value(v);
		if ((!secret_is_key(k->name) || strcmp(json_string_value(v), SECRET_HIDDEN)) &&
		    !strstr(json_string_value(v), ":" SECRET_HIDDEN "@"))
			return 0;
		config_fail(c, obj, k->name,
			    "the gateway that printed this configuration has hidden it; name a file or ${VARIABLE} that holds it");
		return -EINVAL;
	case CONFIG_ENUM:
		return set_enum(c, obj, k, v, field);
	case CONFIG_JSON:
		*(json_t **)field = v;
		return 0;
	}
	return -EINVAL;
}

int config_unpack_part(struct config *c, const json_t *obj,
		       const struct config_key *keys, size_t count,
		       void *target)
{
	int ret = 0;

	if (obj && !json_is_object(obj)) {
		config_fail(c, obj, NULL, "expected a group, found %s",
			    kind_of(obj));
		obj = NULL;
		ret = -EINVAL;
	}
	for (size_t i = 0; i < count; i++) {
		const struct config_key *k = &keys[i];
		json_t *v = obj ? json_object_get(obj, k->name) : NULL;
		void *field = (char *)target + k->offset;

		set_fallback(k, field);
		if (v && !json_is_null(v)) {
			if (set_value(c, obj, k, v, field))
				ret = -EINVAL;
		} else if (k->required) {
			config_fail(c, obj, k->name,
				    "missing, but required (%s)", k->help);
			ret = -EINVAL;
		}
	}
	return ret;
}

static bool known(const struct config_key *keys, size_t count, const char *name,
		  struct nearest *near)
{
	for (size_t i = 0; i < count; i++) {
		if (!strcmp(keys[i].name, name))
			return true;
		nearest_try(near, keys[i].name);
	}
	return false;
}

int config_unpack(struct config *c, const json_t *obj,
		  const struct config_key *keys, size_t count, void *target,
		  const struct config_key *more, size_t more_count)
{
	int ret = config_unpack_part(c, obj, keys, count, target);
	const char *name;
	json_t *v;

	if (!json_is_object(obj))
		return ret;
	json_object_foreach((json_t *)obj, name, v) {
		struct nearest near = NEAREST(name);
		const char *former = former_key_hint(name);
		char hint[200];

		if (known(keys, count, name, &near) ||
		    known(more, more_count, name, &near))
			continue;
		if (former)
			snprintf(hint, sizeof(hint), "; %s", former);
		else
			nearest_hint(&near, hint, sizeof(hint));
		ret = config_unknown_key(c, obj, name, hint) ?: ret;
	}
	return ret;
}
