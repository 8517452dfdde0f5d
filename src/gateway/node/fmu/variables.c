/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which signal of a sample is which variable of the model, and the values that parameters have at
 * the start. Names, causalities and types are compared with modelDescription.xml before anything
 * of the FMU runs.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "gateway/node/fmu/fmu.h"
#include "gateway/sample/signals.h"
#include "util/container_of.h"
#include "util/nearest.h"

struct entry {
	const char *variable;
};

const struct config_key fmu_signal_keys[FMU_SIGNAL_KEYS] = {
	{ "variable", CONFIG_STRING, offsetof(struct entry, variable),
	  .help = "The variable of the model; without it the one that is called as the signal" },
};

/* The integers that each type can hold; those of UInt64 above are not signals. */
static const struct {
	int64_t min, max;
} ranges[FMU_NUMBERS] = {
	[FMU_INT8] = { INT8_MIN, INT8_MAX },    [FMU_UINT8] = { 0, UINT8_MAX },
	[FMU_INT16] = { INT16_MIN, INT16_MAX }, [FMU_UINT16] = { 0, UINT16_MAX },
	[FMU_INT32] = { INT32_MIN, INT32_MAX }, [FMU_UINT32] = { 0, UINT32_MAX },
	[FMU_INT64] = { INT64_MIN, INT64_MAX }, [FMU_UINT64] = { 0, INT64_MAX },
};

static bool is_float(const struct fmu_variable *v)
{
	return v->type == FMU_FLOAT64 || v->type == FMU_FLOAT32;
}

static enum signal_type signal_type_of(const struct fmu_variable *v)
{
	return is_float(v)		? SIGNAL_FLOAT :
	       v->type == FMU_BOOLEAN ? SIGNAL_BOOLEAN :
					SIGNAL_INTEGER;
}

/* ---- values ---- */

/* 2^63 as a double, which is above all integers. */
#define INTEGERS_END 9223372036854775808.0

static const char *to_integer(const struct fmu_variable *v, double f, int64_t i, bool real,
			      union fmu_value *to)
{
	if (real) {
		f = nearbyint(f);
		if (!(f >= -INTEGERS_END && f < INTEGERS_END))
			return "is no integer that the variable can have";
		i = (int64_t)f;
	}
	if (i < ranges[v->type].min || i > ranges[v->type].max)
		return "is beyond the range of the variable's type";
	to->i = i;
	return NULL;
}

const char *fmu_value_from_signal(const struct fmu_variable *v, enum signal_type type,
				  const union signal_data *from, union fmu_value *to)
{
	bool real = type == SIGNAL_FLOAT;

	if (type == SIGNAL_COMPLEX)
		return "is complex, which no variable of FMI is";
	if (is_float(v)) {
		to->f = real ? from->f : (double)from->i;
		return NULL;
	}
	if (v->type != FMU_BOOLEAN)
		return to_integer(v, from->f, from->i, real, to);
	to->i = real ? from->f != 0 : from->i != 0;
	return real && isnan(from->f) ? "is no number" : NULL;
}

void fmu_value_to_signal(const struct fmu_variable *v, union fmu_value from, enum signal_type type,
			 union signal_data *to)
{
	bool real = is_float(v);

	/* Above the greatest signed integer: an integer signal shows that one, a float the value. */
	if (v->type == FMU_UINT64 && from.i < 0) {
		if (type == SIGNAL_FLOAT || type == SIGNAL_COMPLEX)
			from.f = (double)(uint64_t)from.i, real = true;
		else
			from.i = INT64_MAX;
	}
	switch (type) {
	case SIGNAL_FLOAT:
		to->f = real ? from.f : (double)from.i;
		break;
	case SIGNAL_INTEGER:
		to->i = real ? signal_type_to_integer(from.f) : from.i;
		break;
	case SIGNAL_BOOLEAN:
		to->i = real ? from.f != 0 : from.i != 0;
		break;
	case SIGNAL_COMPLEX:
		to->z.re = (float)(real ? from.f : (double)from.i);
		to->z.im = 0;
		break;
	}
}

/* ---- names ---- */

static const struct fmu_variable *find(struct config *c, const json_t *at, const char *key,
				       const struct fmu_description *d, const char *name)
{
	const struct fmu_variable *v = fmu_variable_find(d, name);
	struct nearest near = NEAREST(name);
	char hint[300];

	if (v)
		return v;
	for (size_t i = 0; i < d->count; i++)
		nearest_try(&near, d->variables[i].name);
	config_fail(c, at, key, "the model '%.100s' has no variable '%.200s'%s", d->model, name,
		    nearest_hint(&near, hint, sizeof(hint)));
	return NULL;
}

static bool may_be_signal(const struct fmu_variable *v)
{
	return v->type < FMU_NUMBERS && !v->array;
}

static int refuse(struct config *c, const json_t *at, const char *key,
		  const struct fmu_variable *v, const char *what)
{
	config_fail(c, at, key, "variable '%.200s' (%s, %s%s%s): %s", v->name,
		    fmu_causality_name((enum fmu_causality)v->causality),
		    v->constant ? "constant " : "", v->array ? "array of " : "",
		    fmu_type_name(3, (enum fmu_type)v->type) ?: "Binary or Clock", what);
	return -EINVAL;
}

static int judge_signal(struct config *c, const json_t *at, const char *key,
			const struct fmu_variable *v, bool writes)
{
	bool set = v->causality == FMU_INPUT || (v->causality == FMU_PARAMETER && v->tunable);

	if (!may_be_signal(v))
		return refuse(c, at, key, v, "signals are single numbers and booleans");
	if (writes && !set)
		return refuse(c, at, key, v,
			      v->causality == FMU_OUTPUT ?
				      "samples that are written set inputs; outputs belong to `in`" :
				      "samples set inputs and tunable parameters; others stand in `parameters`");
	if (!writes && v->causality == FMU_INPUT)
		return refuse(c, at, key, v,
			      "inputs are written, so they belong to `out`; VILLASnode has `in` and `out` of an FMU the other way round");
	return 0;
}

/* ---- one direction ---- */

static int add_to_group(struct fmu_side *s, unsigned version, const struct fmu_variable *v,
			unsigned signal)
{
	struct fmu_group *g = s->groups;
	size_t size = fmu_type_size(version, (enum fmu_type)v->type);

	while (g < s->groups + s->group_count && g->type != (enum fmu_type)v->type)
		g++;
	if (g == s->groups + s->group_count) {
		*g = (struct fmu_group){ .type = (enum fmu_type)v->type,
					 .refs = calloc(s->count, sizeof(*g->refs)),
					 .signals = calloc(s->count, sizeof(*g->signals)),
					 .values = calloc(s->count, size) };
		s->group_count++;
		if (!g->refs || !g->signals || !g->values)
			return -ENOMEM;
	}
	g->refs[g->count] = v->reference;
	g->signals[g->count++] = signal;
	return 0;
}

static int make_groups(struct fmu_side *s, unsigned version)
{
	int ret = 0;

	for (unsigned i = 0; i < s->count && !ret; i++)
		ret = add_to_group(s, version, s->variables[i], i);
	return ret;
}

static int make_side(struct fmu_side *s, unsigned count)
{
	fmu_side_free(s);
	s->count = count;
	s->variables = calloc(count ? count : 1, sizeof(*s->variables));
	return s->variables ? 0 : -ENOMEM;
}

/* All inputs or outputs that may be signals, in the order of the model. */
static int take_all(struct fmu_side *s, const struct fmu_description *d, struct signal_list **l,
		    bool writes)
{
	const enum fmu_causality wanted = writes ? FMU_INPUT : FMU_OUTPUT;
	unsigned count = 0;
	int ret;

	for (size_t i = 0; i < d->count; i++)
		count += d->variables[i].causality == wanted && may_be_signal(&d->variables[i]);
	count = MIN(count, (unsigned)SIGNALS_MAX);
	ret = make_side(s, count);
	if (ret || !count)
		return ret;
	*l = signal_list_alloc(count);
	if (!*l)
		return -ENOMEM;
	for (size_t i = 0, at = 0; i < d->count && at < count && !ret; i++) {
		const struct fmu_variable *v = &d->variables[i];

		if (v->causality != wanted || !may_be_signal(v))
			continue;
		s->variables[at] = v;
		ret = signal_set(&(*l)->signals[at++], v->name, NULL, signal_type_of(v));
	}
	return ret;
}

static int take_entry(struct fmu_side *s, struct config *c, const json_t *at,
		      const struct fmu_description *d, const struct signal *signal, unsigned i,
		      bool writes)
{
	struct entry e = { 0 };
	const char *key = json_object_get(at, "variable") ? "variable" : "name";
	const struct fmu_variable *v;

	if (config_unpack_part(c, at, fmu_signal_keys, FMU_SIGNAL_KEYS, &e))
		return -EINVAL;
	v = find(c, at, key, d, e.variable ? e.variable : signal->name);
	if (!v)
		return -EINVAL;
	s->variables[i] = v;
	if (signal->type == SIGNAL_COMPLEX) {
		config_fail(c, at, "type", "no variable of FMI is complex");
		return -EINVAL;
	}
	return judge_signal(c, at, key, v, writes);
}

static int find_twice(const struct fmu_side *s, struct config *c, const json_t *at)
{
	for (unsigned i = 0; i < s->count; i++)
		for (unsigned k = 0; k < i; k++) {
			if (s->variables[i] != s->variables[k])
				continue;
			config_fail(c, at, "signals",
				    "two signals are written to the variable '%.200s'",
				    s->variables[i]->name);
			return -EINVAL;
		}
	return 0;
}

static int take_named(struct fmu_side *s, struct config *c, const json_t *at,
		      const struct fmu_description *d, const struct signal_list *l, bool writes)
{
	int count = signal_entries(c, at,
				   "each variable needs an entry of its own: { name = \"x\"; }");
	int ret = count < 0 ? count : make_side(s, (unsigned)count);

	for (unsigned i = 0; count > 0 && s->variables && i < (unsigned)count; i++)
		ret = take_entry(s, c, signal_entry(at, i), d, &l->signals[i], i, writes) ?: ret;
	if (!ret && writes)
		ret = find_twice(s, c, at);
	return ret;
}

int fmu_side_parse(struct fmu_side *s, struct config *c, const json_t *at,
		   const struct fmu_description *d, struct signal_list **l, bool writes)
{
	int ret = signal_list_is_given(at, "signals") && *l ? take_named(s, c, at, d, *l, writes) :
							      take_all(s, d, l, writes);

	return ret ? ret : make_groups(s, d->version);
}

void fmu_side_free(struct fmu_side *s)
{
	for (unsigned i = 0; i < s->group_count; i++) {
		free(s->groups[i].refs);
		free(s->groups[i].signals);
		free(s->groups[i].values);
	}
	free(s->variables);
	*s = (struct fmu_side){ 0 };
}

/* ---- parameters ---- */

static int set_start(struct fmu_start *s, struct config *c, const json_t *at, const char *key,
		     const json_t *value, const struct fmu_variable *v)
{
	union signal_data from = { 0 };
	enum signal_type type = SIGNAL_INTEGER;
	const char *why = NULL;

	s->variable = v;
	if (v->type == FMU_STRING) {
		s->text = json_string_value(value);
		why = s->text ? NULL : "is no text";
	} else if (json_is_real(value)) {
		type = SIGNAL_FLOAT;
		from.f = json_real_value(value);
		if (!is_float(v) && from.f != nearbyint(from.f))
			why = "is no integer";
	} else if (json_is_integer(value)) {
		from.i = json_integer_value(value);
	} else if (json_is_boolean(value) && v->type == FMU_BOOLEAN) {
		from.i = json_is_true(value);
	} else {
		why = v->type == FMU_BOOLEAN ? "is no boolean" : "is no number";
	}
	if (!why && v->type != FMU_STRING)
		why = fmu_value_from_signal(v, type, &from, &s->value);
	if (!why)
		return 0;
	config_fail(c, at, key, "the value of variable '%.200s' (%s) %s", v->name,
		    fmu_type_name(3, (enum fmu_type)v->type), why);
	return -EINVAL;
}

static int judge_start(struct config *c, const json_t *at, const char *key,
		       const struct fmu_variable *v)
{
	bool set = v->causality == FMU_PARAMETER || v->causality == FMU_INPUT;

	if (v->type >= FMU_TYPES || v->array)
		return refuse(c, at, key, v, "parameters are single numbers, booleans and texts");
	if (set && !v->constant)
		return 0;
	return refuse(c, at, key, v, "`parameters` sets parameters, and inputs before the start");
}

static int take_start(struct fmu_start *starts, unsigned *count, struct config *c, const json_t *at,
		      const char *key, const char *name, const json_t *value,
		      const struct fmu_description *d)
{
	const struct fmu_variable *v = find(c, at, key, d, name);

	if (!v || judge_start(c, at, key, v))
		return -EINVAL;
	for (unsigned i = 0; i < *count; i++) {
		if (starts[i].variable != v)
			continue;
		config_fail(c, at, key, "variable '%.200s' has a value already", name);
		return -EINVAL;
	}
	return set_start(&starts[(*count)++], c, at, key, value, v);
}

/* An entry of the list: { name = "mass"; value = 1.5; } */
static int check_entry(struct config *c, const json_t *list, size_t index)
{
	static const char *const keys[] = { "name", "value" };
	const json_t *e = json_array_get(list, index);
	const char *key;
	json_t *value;

	if (!json_is_string(json_object_get(e, "name")) || !json_object_get(e, "value")) {
		config_fail(c, json_is_object(e) ? e : list, NULL,
			    "an entry of `parameters` needs a name and a value");
		return -EINVAL;
	}
	json_object_foreach((json_t *)e, key, value) {
		if (strcmp(key, keys[0]) && strcmp(key, keys[1]) &&
		    config_unknown_key(c, e, key, ", there are name and value"))
			return -EINVAL;
	}
	return 0;
}

int fmu_starts_check(struct config *c, const json_t *cfg)
{
	const json_t *list = json_object_get(cfg, "parameters");
	const char *key;
	json_t *value;
	int ret = 0;

	if (json_is_array(list)) {
		for (size_t i = 0; i < json_array_size(list); i++)
			ret = check_entry(c, list, i) ?: ret;
		return ret;
	}
	if (list && !json_is_object(list) && !json_is_null(list)) {
		config_fail(c, cfg, "parameters",
			    "expected a group, { mass = 1.5; }, or a list, ( { name = \"mass\"; value = 1.5; } )");
		return -EINVAL;
	}
	json_object_foreach((json_t *)list, key, value) {
		if (!json_is_object(value) && !json_is_array(value) && !json_is_null(value))
			continue;
		config_fail(c, list, key, "a parameter is a number, a boolean or a text");
		ret = -EINVAL;
	}
	return ret;
}

int fmu_starts_parse(struct fmu_start **starts, unsigned *count, struct config *c,
		     const json_t *cfg, const struct fmu_description *d)
{
	const json_t *list = json_object_get(cfg, "parameters");
	size_t size = json_is_array(list) ? json_array_size(list) : json_object_size(list);
	const char *key;
	json_t *value;
	int ret = 0;

	free(*starts);
	*count = 0;
	*starts = calloc(size ? size : 1, sizeof(**starts));
	if (!*starts)
		return -ENOMEM;
	for (size_t i = 0; json_is_array(list) && i < size; i++) {
		const json_t *e = json_array_get(list, i);

		ret = take_start(*starts, count, c, e, "value",
				 json_string_value(json_object_get(e, "name")),
				 json_object_get(e, "value"), d) ?: ret;
	}
	if (json_is_object(list))
		json_object_foreach((json_t *)list, key, value)
			ret = take_start(*starts, count, c, list, key, key, value, d) ?: ret;
	return ret;
}
