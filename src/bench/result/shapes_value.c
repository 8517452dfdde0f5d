/* SPDX-License-Identifier: BSD-2-Clause */
/* The values that shapes compare: found among the cases by their parameters, with what the
 * bootstrap draws from their rows. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/result/blocks.h"
#include "bench/result/number.h"
#include "bench/result/shapes_private.h"

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

/* ---- what the bootstrap draws ---- */

static double *draw_percentiles(const int64_t *values, size_t count, double percent,
				uint64_t seed)
{
	struct blocks *b = count ? blocks_new(values, count) : NULL;
	double *draws = b ? calloc(SHAPE_DRAWS, sizeof(*draws)) : NULL;
	struct prng prng = prng_from(seed);

	for (int i = 0; draws && i < SHAPE_DRAWS; i++)
		draws[i] = (double)blocks_draw_percentile(b, percent, &prng);
	blocks_free(b);
	return draws;
}

/* Percent of the steps, of blocks of rows: between two rows there is one step for each sequence
 * number. */
static double *draw_missed(const int64_t *sequence, size_t rows, uint64_t seed)
{
	double *draws = rows > BLOCKS_COUNT ? calloc(SHAPE_DRAWS, sizeof(*draws)) : NULL;
	struct prng prng = prng_from(seed);
	double steps[BLOCKS_COUNT], taken[BLOCKS_COUNT];

	for (size_t i = 0; draws && i < BLOCKS_COUNT; i++) {
		size_t first = (rows - 1) * i / BLOCKS_COUNT;
		size_t last = (rows - 1) * (i + 1) / BLOCKS_COUNT;

		steps[i] = (double)(sequence[last] - sequence[first]);
		taken[i] = (double)(last - first);
	}
	for (int i = 0; draws && i < SHAPE_DRAWS; i++) {
		double all = 0, sent = 0;

		for (size_t n = 0; n < BLOCKS_COUNT; n++) {
			size_t which = prng_below(&prng, BLOCKS_COUNT);

			all += steps[which];
			sent += taken[which];
		}
		draws[i] = all > 0 ? 100 * (all - sent) / all : 0;
	}
	return draws;
}

static double *draw_of_rows(const struct result_read *c, const char *latency, double percent,
			    uint64_t seed)
{
	int64_t *values = NULL;
	double *draws = NULL;
	size_t count = 0;

	if (latency) {
		if (!result_read_latency(c, latency, &values, &count))
			draws = draw_percentiles(values, count, percent, seed);
		free(values);
		return draws;
	}
	for (size_t i = 0; i < c->columns; i++)
		if (!strcmp(c->header[i].name, "sequence"))
			draws = draw_missed(c->values[i], c->rows, seed);
	return draws;
}

/* Of a latency, or of the steps missed for NULL. What cannot be read was logged, and gives no
 * interval. */
static double *draw(struct shape_run *r, const struct result_read *c, const char *latency,
		    double percent)
{
	/* Each value has draws of its own; the same run gets the same verdicts, always. */
	uint64_t seed = ++r->seed;
	struct result_read copy = *c;
	double *draws = NULL;

	if (c->values)
		return draw_of_rows(c, latency, percent, seed);
	if (r->dir && !result_read_rows(r->dir, &copy))
		draws = draw_of_rows(&copy, latency, percent, seed);
	result_drop_rows(&copy);
	return draws;
}

/* ---- values ---- */

static struct shape_value *known(const struct shape_run *r, const char *key)
{
	for (struct shape_value *v = r->values; v; v = v->next)
		if (!strcmp(v->key, key))
			return v;
	return NULL;
}

/* Takes `key`. */
static struct shape_value *add(struct shape_run *r, char *key)
{
	struct shape_value *v = key ? calloc(1, sizeof(*v)) : NULL;

	if (!v) {
		free(key);
		return NULL;
	}
	*v = (struct shape_value){ .next = r->values, .key = key, .value = NAN };
	r->values = v;
	return v;
}

static double percent_of(const char *key)
{
	return *key == 'p' ? atof(key + 1) : 100;
}

const struct shape_value *shape_value(struct shape_run *r, const char *scenario,
				      const char *latency, const char *name, const char *wanted)
{
	const struct result_read *c = find(r, scenario, wanted);
	struct shape_value *v;
	const json_t *group;
	char *key;

	if (!c || asprintf(&key, "%s %s %s", c->id, latency ? latency : "", name) < 0)
		return NULL;
	v = known(r, key);
	if (v)
		free(key);
	else if ((v = add(r, key))) {
		group = json_object_get(c->summary, latency ? "latencies" : "figures");
		v->of[0] = c;
		v->is_time = v->counts_time = latency;
		v->value = number_of(json_object_get(group, latency ? latency : name),
				     latency ? name : "value");
		if (isfinite(v->value))
			v->draws = draw(r, c, latency, percent_of(name));
	}
	return v && isfinite(v->value) ? v : NULL;
}

double shape_figure(const struct shape_run *r, const char *scenario, const char *figure,
		    const char *wanted)
{
	const struct result_read *c = find(r, scenario, wanted);

	return c ? number_of(json_object_get(json_object_get(c->summary, "figures"), figure),
			     "value") : NAN;
}

const struct shape_value *shape_ratio(struct shape_run *r, const struct shape_value *above,
				      const struct shape_value *below)
{
	struct shape_value *v;
	char *key;

	if (!above || !below || asprintf(&key, "%s / %s", above->key, below->key) < 0)
		return NULL;
	v = add(r, key);
	if (!v)
		return NULL;
	v->value = above->value / below->value;
	v->counts_time = true;
	v->of[0] = above->of[0];
	v->of[1] = below->of[0];
	v->draws = above->draws && below->draws ? calloc(SHAPE_DRAWS, sizeof(*v->draws)) : NULL;
	for (int i = 0; v->draws && i < SHAPE_DRAWS; i++)
		v->draws[i] = above->draws[i] / below->draws[i];
	return isfinite(v->value) ? v : NULL;
}

void shape_values_free(struct shape_run *r)
{
	while (r->values) {
		struct shape_value *v = r->values;

		r->values = v->next;
		free(v->draws);
		free(v->key);
		free(v);
	}
}
