/* SPDX-License-Identifier: BSD-2-Clause */
/* See shapes.h. The shapes themselves are in shapes_table.c and shapes_tutorial.c. */
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/result/shapes_private.h"
#include "bench/result/show.h"
#include "util/container_of.h"

/* Is the value, as a text, `text[len]`? */
static bool is_text(const json_t *value, const char *text, size_t len)
{
	char shown[60];

	if (json_is_string(value))
		snprintf(shown, sizeof(shown), "%s", json_string_value(value));
	else if (json_is_boolean(value))
		snprintf(shown, sizeof(shown), "%s", json_is_true(value) ? "yes" : "no");
	else if (json_is_number(value))
		snprintf(shown, sizeof(shown), "%.15g", json_number_value(value));
	else
		return false;
	return strlen(shown) == len && !strncmp(shown, text, len);
}

/* "type=RC size=32": does the case have all of these? "case=WORD" is the end of its id. */
static bool has_all(const struct result_read *c, const char *wanted)
{
	const json_t *parameters = json_object_get(c->description, "parameters");
	size_t id = strlen(c->id);

	while (*wanted) {
		size_t word = strcspn(wanted, " "), key = strcspn(wanted, "=");
		char name[40];

		if (key >= sizeof(name) || key >= word)
			return false;
		memcpy(name, wanted, key);
		name[key] = '\0';
		if (!strcmp(name, "case")) {
			size_t n = word - key - 1;

			if (id < n || strncmp(c->id + id - n, wanted + key + 1, n))
				return false;
		} else if (!is_text(json_object_get(parameters, name), wanted + key + 1,
				    word - key - 1)) {
			return false;
		}
		wanted += word + strspn(wanted + word, " ");
	}
	return true;
}

static const struct result_read *find(const struct shape_run *r, const char *scenario,
				      const char *wanted)
{
	for (size_t i = 0; i < r->count; i++) {
		const json_t *d = r->cases[i].description;
		const char *s = json_string_value(json_object_get(d, "scenario"));

		if (s && !strcmp(s, scenario) && has_all(&r->cases[i], wanted))
			return &r->cases[i];
	}
	return NULL;
}

static double number_of(const json_t *o, const char *key)
{
	const json_t *v = json_object_get(o, key);

	return json_is_number(v) ? json_number_value(v) : NAN;
}

double shape_latency(const struct shape_run *r, const char *scenario, const char *latency,
		     const char *key, const char *fmt, ...)
{
	const struct result_read *c;
	char wanted[200];
	va_list args;

	va_start(args, fmt);
	vsnprintf(wanted, sizeof(wanted), fmt, args);
	va_end(args);
	c = find(r, scenario, wanted);
	return c ? number_of(json_object_get(json_object_get(c->summary, "latencies"), latency),
			     key) : NAN;
}

double shape_figure(const struct shape_run *r, const char *scenario, const char *figure,
		    const char *wanted)
{
	const struct result_read *c = find(r, scenario, wanted);

	return c ? number_of(json_object_get(json_object_get(c->summary, "figures"), figure),
			     "value") : NAN;
}

void shape_say(struct shape_answer *a, const char *fmt, ...)
{
	size_t n = strlen(a->figures);
	va_list args;

	va_start(args, fmt);
	vsnprintf(a->figures + n, sizeof(a->figures) - n, fmt, args);
	va_end(args);
}

void shape_compare(struct shape_answer *a, const char *what, double low, double high,
		   bool holds)
{
	char one[32], other[32];

	if (isnan(low) || isnan(high))
		return;
	shape_say(a, "%s%s%s%s and %s (%.2f times)", *a->figures ? "; " : "", what,
		  *what ? " " : "", show_ns(low, one), show_ns(high, other),
		  low > 0 ? high / low : 0);
	a->checked++;
	a->holds += holds;
}

static int evaluate(const struct shape_run *r, const struct shape *s, json_t *list)
{
	struct shape_answer a = { .checked = 0 };
	json_t *one;

	s->look(r, &a);
	one = json_pack("{s:s, s:s, s:o, s:s}", "number", s->number, "claim", s->claim, "holds",
			a.checked ? json_boolean(a.holds == a.checked) : json_null(), "figures",
			a.checked ? a.figures : "the run lacks these cases");
	return one && !json_array_append_new(list, one) ? 0 : -ENOMEM;
}

json_t *shapes_evaluate(const struct result_read *cases, size_t count)
{
	static const struct shape *const tables[] = { shapes_table, shapes_tutorial };
	const struct shape_run r = { cases, count };
	json_t *list = json_array();

	for (size_t i = 0; i < ARRAY_SIZE(tables); i++) {
		for (const struct shape *s = tables[i]; s->claim; s++) {
			if (evaluate(&r, s, list)) {
				json_decref(list);
				return NULL;
			}
		}
	}
	return list;
}

static const char *text_of(const json_t *o, const char *key)
{
	return json_string_value(json_object_get(o, key));
}

void shapes_print(FILE *f, const json_t *shapes, bool all)
{
	size_t i, missing = 0;
	const json_t *s;

	json_array_foreach(shapes, i, s) {
		const json_t *holds = json_object_get(s, "holds");

		if (json_is_null(holds) && !all) {
			missing++;
			continue;
		}
		fprintf(f, "%-14s %-3s %s\n%18s %s\n", json_is_true(holds) ? "holds" :
			json_is_false(holds) ? "does not hold" : "not checked",
			text_of(s, "number"), text_of(s, "claim"), "", text_of(s, "figures"));
	}
	if (missing)
		fprintf(f, "%zu more shapes cannot be checked: the run lacks their cases\n",
			missing);
}
