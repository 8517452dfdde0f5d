/* SPDX-License-Identifier: BSD-2-Clause */
/* Ids and labels of the cases of a suite. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/suite/suite_private.h"

/* "G''" becomes "Gpp", "a b" becomes "a-b". */
static void put_safe(FILE *f, const char *text)
{
	for (; *text; text++)
		fputc(isalnum((unsigned char)*text) || strchr("-.+", *text) ? *text :
		      *text == '\'' ? 'p' : '-', f);
}

static void put_key(FILE *f, const char *key)
{
	for (; *key; key++)
		fputc(*key == '_' ? '-' : *key, f);
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
		put_key(f, key);
		return;
	}
	if (!json_is_string(value)) {
		put_key(f, key);
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

/* `start` and the values of the axes, with `between` between them; malloc()ed. NULL without memory. */
static char *name_of(const struct suite_element *e, const char *start, const char *more, const char *between,
		     bool safe)
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
	return name_of(e, e->scenario, json_string_value(json_object_get(e->merged, "variant")), "_", true);
}

char *suite_case_label(const struct suite_element *e)
{
	const char *label = json_string_value(json_object_get(e->merged, "label"));
	const char *variant = json_string_value(json_object_get(e->merged, "variant"));
	const char *start = label ? label : variant ? variant : e->axes_count ? "" : e->scenario;

	return name_of(e, start, NULL, ", ", false);
}
