/* SPDX-License-Identifier: BSD-2-Clause */
/* Parameters that vary within a group; see axes.h. */
#include "bench/report/axes.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define KEYS_MAX 64
/* A number with fewer values than this names curves, it is no axis. */
#define AXIS_VALUES_MIN 3

/* In the order in which they are taken as the first axis. */
static const struct report_axis known[] = {
	{ "size", "message size", "B" },
	{ "rate", "rate", "Hz" },
	{ "values", "values per sample", "" },
};

struct key {
	const char *name;
	size_t values;      /* different ones */
	bool number;        /* in all cases */
	bool axis, dropped;
};

struct keys {
	struct key key[KEYS_MAX];
	size_t count;
};

static double number_of(const struct report_case *c, const char *key)
{
	const json_t *v = json_object_get(c->parameters, key);

	return json_is_number(v) ? json_number_value(v) : NAN;
}

double report_axis_value(const struct report_axis *axis, const struct report_case *c)
{
	return axis->key ? number_of(c, axis->key) : NAN;
}

static bool same(const struct report_case *a, const struct report_case *b, const char *key)
{
	const json_t *x = json_object_get(a->parameters, key);
	const json_t *y = json_object_get(b->parameters, key);

	return x == y || (x && y && json_equal(x, y));
}

static void count_values(const struct report_group *g, struct key *k)
{
	k->number = true;
	for (size_t i = 0; i < g->count; i++) {
		size_t j = 0;

		while (j < i && !same(g->cases[i], g->cases[j], k->name))
			j++;
		k->values += j == i;
		k->number = k->number && isfinite(number_of(g->cases[i], k->name));
	}
}

/* The parameters that vary. */
static void find_keys(const struct report_group *g, struct keys *keys)
{
	keys->count = 0;
	for (size_t i = 0; i < g->count; i++) {
		const char *name;
		json_t *value;

		json_object_foreach(g->cases[i]->parameters, name, value) {
			struct key k = { .name = name };
			size_t j = 0;

			while (j < keys->count && strcmp(keys->key[j].name, name))
				j++;
			if (j < keys->count || keys->count == KEYS_MAX)
				continue;
			keys->key[keys->count++] = k;
		}
	}
	for (size_t i = 0; i < keys->count;) {
		count_values(g, &keys->key[i]);
		if (keys->key[i].values > 1) {
			i++;
			continue;
		}
		keys->count--;
		memmove(&keys->key[i], &keys->key[i + 1],
			(keys->count - i) * sizeof(keys->key[0]));
	}
}

static struct key *find_key(struct keys *keys, const char *name)
{
	for (size_t i = 0; i < keys->count; i++)
		if (!strcmp(keys->key[i].name, name))
			return &keys->key[i];
	return NULL;
}

static bool can_be_axis(const struct key *k)
{
	return k && k->number && k->values >= AXIS_VALUES_MIN;
}

static void choose_axes(struct keys *keys, struct report_axes *axes)
{
	struct key *rate = find_key(keys, "rate"), *best = NULL;

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]) && !axes->x.key; i++) {
		struct key *k = find_key(keys, known[i].key);

		if (can_be_axis(k)) {
			axes->x = known[i];
			k->axis = true;
		}
	}
	/* A surface is of rate and size. */
	if (axes->x.key && strcmp(axes->x.key, "rate") && can_be_axis(rate)) {
		axes->y = axes->x;
		axes->x = known[1];
		rate->axis = true;
	} else if (axes->x.key && !strcmp(axes->x.key, "rate") &&
		   can_be_axis(find_key(keys, "values"))) {
		axes->y = known[2];
		find_key(keys, "values")->axis = true;
	}
	if (axes->x.key)
		return;
	for (size_t i = 0; i < keys->count; i++)
		if (can_be_axis(&keys->key[i]) && (!best || keys->key[i].values > best->values))
			best = &keys->key[i];
	if (best) {
		axes->x = (struct report_axis){ best->name, best->name, "" };
		best->axis = true;
	}
}

/* Do two cases have the same value of all parameters that are left? */
static bool alike(const struct keys *keys, const struct report_case *a,
		  const struct report_case *b, bool with_axes)
{
	for (size_t i = 0; i < keys->count; i++) {
		const struct key *k = &keys->key[i];

		if (!k->dropped && (with_axes || !k->axis) && !same(a, b, k->name))
			return false;
	}
	return true;
}

static bool are_unique(const struct report_group *g, const struct keys *keys)
{
	for (size_t i = 0; i < g->count; i++)
		for (size_t j = 0; j < i; j++)
			if (alike(keys, g->cases[i], g->cases[j], true))
				return false;
	return true;
}

/* A number that follows from the other parameters (the burst that a size allows) must not
 * tear a curve into pieces. */
static void drop_dependent(const struct report_group *g, struct keys *keys)
{
	if (!are_unique(g, keys))
		return;
	for (size_t i = 0; i < keys->count; i++) {
		struct key *k = &keys->key[i];

		if (!k->number || k->axis)
			continue;
		k->dropped = true;
		if (!are_unique(g, keys))
			k->dropped = false;
	}
}

/* "RC", "inline" or "no inline", "burst 8000"; "poll-send" of "poll_send". */
static size_t add_text(char *buf, size_t at, const char *name, const json_t *v)
{
	const char *comma = at ? ", " : "", *text = json_string_value(v);
	size_t left = REPORT_LABEL_MAX - at;
	char shown[40];
	int n = 0;

	snprintf(shown, sizeof(shown), "%s", name);
	for (char *c = shown; *c; c++)
		*c = *c == '_' ? '-' : *c;
	if (text)
		n = snprintf(buf + at, left, "%s%s", comma, *text ? text : "none");
	else if (json_is_boolean(v))
		n = snprintf(buf + at, left, "%s%s%s", comma, json_is_true(v) ? "" : "no ",
			     shown);
	else if (json_is_number(v))
		n = snprintf(buf + at, left, "%s%s %g", comma, shown, json_number_value(v));
	return at + (size_t)n < REPORT_LABEL_MAX ? at + (size_t)n : REPORT_LABEL_MAX - 1;
}

static void label_line(const struct keys *keys, const struct report_case *c, char *buf)
{
	size_t at = 0;

	buf[0] = '\0';
	for (size_t i = 0; i < keys->count; i++)
		if (!keys->key[i].axis && !keys->key[i].dropped)
			at = add_text(buf, at, keys->key[i].name,
				      json_object_get(c->parameters, keys->key[i].name));
}

static int by_axes(const void *a, const void *b, void *arg)
{
	const struct report_case *x = *(struct report_case *const *)a;
	const struct report_case *y = *(struct report_case *const *)b;
	const struct report_axes *axes = arg;
	double d = report_axis_value(&axes->x, x) - report_axis_value(&axes->x, y);

	if (d == 0)
		d = report_axis_value(&axes->y, x) - report_axis_value(&axes->y, y);
	return d < 0 ? -1 : d > 0;
}

static struct report_line *line_of(const struct keys *keys, struct report_axes *axes,
				   const struct report_group *g, struct report_case *c)
{
	struct report_line *l;

	for (size_t i = 0; axes->x.key && i < axes->line_count; i++)
		if (alike(keys, axes->lines[i].cases[0], c, false))
			return &axes->lines[i];
	l = &axes->lines[axes->line_count];
	l->cases = calloc(g->count, sizeof(*l->cases));
	if (!l->cases)
		return NULL;
	axes->line_count++;
	label_line(keys, c, l->label);
	return l;
}

int report_axes_find(const struct report_group *g, struct report_axes *axes)
{
	struct keys keys;

	*axes = (struct report_axes){ 0 };
	find_keys(g, &keys);
	choose_axes(&keys, axes);
	drop_dependent(g, &keys);
	axes->lines = calloc(g->count + 1, sizeof(*axes->lines));
	if (!axes->lines)
		return -ENOMEM;
	for (size_t i = 0; i < g->count; i++) {
		struct report_line *l = line_of(&keys, axes, g, g->cases[i]);

		if (!l) {
			report_axes_free(axes);
			return -ENOMEM;
		}
		l->cases[l->count++] = g->cases[i];
	}
	for (size_t i = 0; i < axes->line_count; i++) {
		struct report_line *l = &axes->lines[i];

		qsort_r(l->cases, l->count, sizeof(*l->cases), by_axes, axes);
		if (!l->label[0] && axes->line_count > 1)
			snprintf(l->label, sizeof(l->label), "%s",
				 l->cases[0]->label ? l->cases[0]->label : l->cases[0]->id);
	}
	return 0;
}

void report_axes_free(struct report_axes *axes)
{
	for (size_t i = 0; i < axes->line_count; i++)
		free(axes->lines[i].cases);
	free(axes->lines);
	*axes = (struct report_axes){ 0 };
}

const char *report_case_label(const struct report_group *g, const struct report_case *c,
			      char *buf)
{
	struct keys keys;
	size_t at = 0;

	buf[0] = '\0';
	if (c->label) {
		snprintf(buf, REPORT_LABEL_MAX, "%s", c->label);
		return buf;
	}
	find_keys(g, &keys);
	for (size_t i = 0; i < keys.count; i++)
		at = add_text(buf, at, keys.key[i].name,
			      json_object_get(c->parameters, keys.key[i].name));
	if (!at)
		snprintf(buf, REPORT_LABEL_MAX, "%s", c->id);
	return buf;
}
