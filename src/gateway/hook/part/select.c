/* SPDX-License-Identifier: BSD-2-Clause */
/* The signals that a hook works on, and lists of signals; see select.h. */
#include "gateway/hook/part/select.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gateway/sample/signals.h"
#include "util/nearest.h"

static int fail_entry(struct hook *h, const json_t *entry, const char *key)
{
	/* True and false are one object each: only their list has a place. */
	bool own = entry && !json_is_boolean(entry) && !json_is_null(entry);

	config_fail(h->config, own ? entry : h->cfg, own ? NULL : key,
		    "expected the name or the index of a signal");
	return -EINVAL;
}

static bool is_entry(const json_t *e)
{
	return json_is_string(e) || json_is_integer(e);
}

/* `key` says one signal, or a list of them. */
static int check_value(struct hook *h, json_t *value, const char *key,
		       bool list_allowed)
{
	size_t i;
	json_t *e;

	if (!json_is_array(value))
		return is_entry(value) ? 0 : fail_entry(h, NULL, key);
	if (!list_allowed) {
		config_fail(h->config, h->cfg, key,
			    "expected one signal, found a list");
		return -EINVAL;
	}
	if (!json_array_size(value)) {
		config_fail(h->config, h->cfg, key,
			    "the list names no signal");
		return -EINVAL;
	}
	json_array_foreach(value, i, e)
		if (!is_entry(e))
			return fail_entry(h, e, key);
	return 0;
}

int hook_select_parse(struct hook_select *s, struct hook *h,
		      enum hook_select_how how)
{
	const char *key = s->signals ? "signals" : "signal";
	json_t *value = s->signals ? s->signals : s->signal;

	if (s->signal && s->signals) {
		config_fail(h->config, h->cfg, "signals",
			    "stands beside `signal`; give one of them");
		return -EINVAL;
	}
	if (!value || json_is_null(value)) {
		if (how == HOOK_SELECT_OPTIONAL)
			return 0;
		config_fail(h->config, h->cfg,
			    how == HOOK_SELECT_ONE ? "signal" : "signals",
			    "missing, but required (names or indices of the signals to work on)");
		return -EINVAL;
	}
	if (how == HOOK_SELECT_ONE && json_array_size(value) > 1) {
		config_fail(h->config, h->cfg, key,
			    "%zu signals are named, this hook works on one",
			    json_array_size(value));
		return -EINVAL;
	}
	return check_value(h, value, key, s->signals);
}

/* The index in a default list: "signal12". */
static bool default_index(const char *name, unsigned *index)
{
	char again[32];
	unsigned i;

	if (strncmp(name, "signal", 6) || strlen(name) > 16)
		return false;
	i = (unsigned)strtoul(name + 6, NULL, 10);
	snprintf(again, sizeof(again), "signal%u", i);
	*index = i;
	return !strcmp(again, name) && i < SIGNALS_DEFAULT;
}

static int find_name(struct hook *h, const json_t *e, const char *key,
		     const struct signal_list *in, unsigned *index)
{
	const char *name = json_string_value(e);
	struct nearest near = NEAREST(name);
	char hint[100];

	if (!in) {
		if (default_index(name, index))
			return 0;
		config_fail(h->config, h->cfg, key,
			    "no signal '%.60s': nothing is known about the signals here, name them by `signals` of the node or give an index",
			    name);
		return -EINVAL;
	}
	for (unsigned i = 0; i < in->count; i++) {
		if (!strcmp(in->signals[i].name, name)) {
			*index = i;
			return 0;
		}
		nearest_try(&near, in->signals[i].name);
	}
	config_fail(h->config, h->cfg, key, "no signal '%.60s'%s", name,
		    nearest_hint(&near, hint, sizeof(hint)));
	return -EINVAL;
}

static int find_entry(struct hook *h, const json_t *e, const char *key,
		      const struct signal_list *in, unsigned *index)
{
	json_int_t i, last = (in ? in->count : SIGNALS_MAX) - (json_int_t)1;

	if (json_is_string(e))
		return find_name(h, e, key, in, index);
	i = json_integer_value(e);
	if (i >= 0 && i <= last) {
		*index = (unsigned)i;
		return 0;
	}
	config_fail(h->config, h->cfg, key,
		    "no signal with index %lld, there are 0 to %lld",
		    (long long)i, (long long)last);
	return -EINVAL;
}

int hook_select_resolve(struct hook_select *s, struct hook *h,
			const struct signal_list *in)
{
	const char *key = s->signals ? "signals" : "signal";
	json_t *value = s->signals ? s->signals : s->signal;
	unsigned n = json_is_array(value) ? (unsigned)json_array_size(value) :
		     value && !json_is_null(value) ? 1 : 0;
	int ret = 0;

	hook_select_free(s);
	if (!n)
		return 0;
	s->index = calloc(n, sizeof(*s->index));
	if (!s->index)
		return -ENOMEM;
	s->count = n;
	for (unsigned i = 0; i < n; i++) {
		json_t *e = json_is_array(value) ? json_array_get(value, i) :
						   value;

		if (find_entry(h, e, key, in, &s->index[i]))
			ret = -EINVAL;
		for (unsigned k = 0; k < i && !ret; k++) {
			if (s->index[k] != s->index[i])
				continue;
			config_fail(h->config, h->cfg, key,
				    "signal %u is named twice", s->index[i]);
			ret = -EINVAL;
		}
	}
	if (ret)
		hook_select_free(s);
	return ret;
}

void hook_select_free(struct hook_select *s)
{
	free(s->index);
	s->index = NULL;
	s->count = 0;
}

int hook_select_check_types(const struct hook_select *s, struct hook *h,
			    const struct signal_list *in, unsigned types)
{
	for (unsigned k = 0; in && k < s->count; k++) {
		const struct signal *sig = &in->signals[s->index[k]];

		if (types & 1u << sig->type)
			continue;
		config_fail(h->config, h->cfg,
			    s->signals ? "signals" : "signal",
			    "signal '%s' is %s, which hook %s cannot work on",
			    sig->name, signal_type_name(sig->type),
			    h->type->name);
		return -EINVAL;
	}
	return 0;
}

int hook_select_signals(struct hook_select *s, struct hook *h,
			struct signal_list *in, struct signal_list **out)
{
	int ret = hook_select_resolve(s, h, in);

	if (!ret && in)
		*out = signal_list_get(in);
	return ret;
}

bool hook_signal_set(struct signal *s, const char *name, const char *unit,
		     enum signal_type type)
{
	char *new_name = strdup(name), *new_unit = unit ? strdup(unit) : NULL;

	free(s->name);
	free(s->unit);
	s->name = new_name;
	s->unit = new_unit;
	s->type = type;
	return new_name && (!unit || new_unit);
}

struct signal_list *hook_signals_insert(const struct signal_list *in,
					unsigned at, unsigned extra)
{
	struct signal_list *made = in ? NULL :
					signal_list_new(SIGNALS_DEFAULT,
							SIGNAL_FLOAT);
	const struct signal_list *from = in ? in : made;
	struct signal_list *l = NULL;

	if (!from)
		return NULL;
	l = calloc(1, sizeof(*l) + (from->count + extra) * sizeof(l->signals[0]));
	if (!l)
		goto out;
	atomic_init(&l->refcnt, 1);
	l->count = from->count + extra;
	for (unsigned i = 0; i < from->count; i++) {
		struct signal *to = &l->signals[i < at ? i : i + extra];

		if (!hook_signal_set(to, from->signals[i].name,
				     from->signals[i].unit,
				     from->signals[i].type)) {
			signal_list_put(l);
			l = NULL;
			goto out;
		}
	}
out:
	signal_list_put(made);
	return l;
}

void hook_value_convert(union signal_data *v, enum signal_type from,
			enum signal_type to)
{
	double real = hook_value_real(from, v);
	bool truth = from == SIGNAL_COMPLEX ? v->z.re != 0 || v->z.im != 0 :
		     from == SIGNAL_FLOAT ? v->f != 0 : v->i != 0;

	if (from == to)
		return;
	switch (to) {
	case SIGNAL_FLOAT:
		v->f = real;
		break;
	case SIGNAL_INTEGER:
		v->i = signal_type_to_integer(real);
		break;
	case SIGNAL_BOOLEAN:
		v->i = truth;
		break;
	case SIGNAL_COMPLEX:
		v->z.re = (float)real;
		v->z.im = 0;
		break;
	}
}
