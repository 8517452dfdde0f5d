/* SPDX-License-Identifier: BSD-2-Clause */
/* Pairs of a voltage and a current; see pair.h. */
#include "gateway/hook/part/pair.h"

#include <errno.h>
#include <string.h>

#include "gateway/sample/signals.h"
#include "util/nearest.h"

static const struct config_key group_keys[] = {
	{ "voltage", CONFIG_JSON, offsetof(struct pair, voltage),
	  .required = true, .help = "Name or index of the voltage" },
	{ "current", CONFIG_JSON, offsetof(struct pair, current),
	  .required = true, .help = "Name or index of the current" },
};

static bool is_signal(const json_t *v)
{
	return json_is_string(v) || json_is_integer(v);
}

int pair_parse(struct pair *p, struct config *c, json_t *at, const char *key,
	       size_t entry)
{
	json_t *e = json_array_get(json_object_get(at, key), entry);

	if (json_is_object(e)) {
		if (config_unpack(c, e, group_keys, ARRAY_SIZE(group_keys), p,
				  NULL, 0))
			return -EINVAL;
	} else if (json_array_size(e) == 2) {
		p->voltage = json_array_get(e, 0);
		p->current = json_array_get(e, 1);
	}
	p->at = e;
	if (is_signal(p->voltage) && is_signal(p->current))
		return 0;
	config_fail(c, at, key,
		    "entry %zu: expected a voltage and a current, each the name or the index of a signal, such as { voltage = \"u\", current = \"i\" } or ( 0, 1 )",
		    entry);
	return -EINVAL;
}

static int find(struct hook *h, const struct pair *p, json_t *value,
		const struct signal_list *in, unsigned *index)
{
	json_int_t count = in ? in->count : SIGNALS_MAX;
	json_int_t i = json_integer_value(value);
	const char *name = json_string_value(value);
	struct nearest near = NEAREST(name ? name : "");
	char hint[100];

	if (!name && i >= 0 && i < count) {
		*index = (unsigned)i;
		return 0;
	}
	if (!name) {
		config_fail(h->config, p->at, NULL,
			    "no signal with index %lld, there are 0 to %lld",
			    (long long)i, (long long)count - 1);
		return -EINVAL;
	}
	for (unsigned k = 0; in && k < in->count; k++) {
		if (!strcmp(in->signals[k].name, name)) {
			*index = k;
			return 0;
		}
		nearest_try(&near, in->signals[k].name);
	}
	config_fail(h->config, p->at, NULL, "no signal '%.60s'%s%s", name,
		    in ? "" : ": nothing is known about the signals here, name them by `signals` of the node or give an index",
		    in ? nearest_hint(&near, hint, sizeof(hint)) : "");
	return -EINVAL;
}

static int check_type(struct hook *h, const struct pair *p,
		      const struct signal_list *in, unsigned index)
{
	const struct signal *s = in ? &in->signals[index] : NULL;

	if (!s || s->type == SIGNAL_FLOAT || s->type == SIGNAL_INTEGER)
		return 0;
	config_fail(h->config, p->at, NULL,
		    "signal '%s' is %s, which hook %s cannot work on", s->name,
		    signal_type_name(s->type), h->type->name);
	return -EINVAL;
}

int pair_resolve(struct pair *p, struct hook *h, const struct signal_list *in)
{
	if (find(h, p, p->voltage, in, &p->voltage_index) ||
	    find(h, p, p->current, in, &p->current_index) ||
	    check_type(h, p, in, p->voltage_index) ||
	    check_type(h, p, in, p->current_index))
		return -EINVAL;
	return 0;
}
