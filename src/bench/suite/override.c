/* SPDX-License-Identifier: BSD-2-Clause */
/* Parameters that the command line sets for all cases; see suite.h. */
#define LOG_ROOM "bench/suite"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "bench/kind/parameters.h"
#include "bench/suite/suite_private.h"
#include "util/log.h"

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
		const struct bench_parameter *p =
			e->kind ? parameter_find(e->kind, o->list[i].key, why) : NULL;
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
