/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Hook `cast`: gives signals another type, name or unit. Values are converted:
 * real numbers to integers towards zero, anything but zero is true, the real
 * part stands for a complex number.
 */
#define LOG_ROOM "gateway/hook"
#include "gateway/hook/part/select.h"

#include <errno.h>

#include "util/log.h"

static const char *const type_names[] = { "float", "integer", "boolean",
					  "complex", NULL };

struct cast {
	struct hook_select select;
	int new_type; /* enum signal_type */
	const char *new_name, *new_unit;

	bool new_types; /* new_type is given */
};

extern const struct hook_type hook_cast;

static const struct config_key cast_keys[] = {
	HOOK_SELECT_KEYS(struct cast, select),
	{ "new_type", CONFIG_ENUM, offsetof(struct cast, new_type),
	  .names = type_names, .help = "New type; it stays when not given" },
	{ "new_name", CONFIG_STRING, offsetof(struct cast, new_name),
	  .help = "New name; it stays when not given" },
	{ "new_unit", CONFIG_STRING, offsetof(struct cast, new_unit),
	  .help = "New unit; it stays when not given" },
};

static int cast_parse(struct hook *h, struct config *c, json_t *cfg)
{
	struct cast *k = h->private_data;

	if (hook_select_parse(&k->select, h, HOOK_SELECT_MANY))
		return -EINVAL;
	k->new_types = json_object_get(h->cfg, "new_type");
	if (k->new_types || k->new_name || k->new_unit)
		return 0;
	config_fail(c, h->cfg, NULL,
		    "changes nothing; give new_type, new_name or new_unit");
	return -EINVAL;
}

static int cast_signals(struct hook *h, struct signal_list *in,
			struct signal_list **out)
{
	struct cast *k = h->private_data;
	int ret = hook_select_resolve(&k->select, h, in);
	struct signal_list *l;

	if (ret)
		return ret;
	l = hook_signals_insert(in, 0, 0);
	if (!l)
		return -ENOMEM;
	for (unsigned n = 0; n < k->select.count; n++) {
		unsigned i = k->select.index[n];
		struct signal *to = i < l->count ? &l->signals[i] : NULL;

		if (!to)
			continue; /* unknown, and beyond the default list */
		if (!hook_signal_set(to, k->new_name ?: to->name,
				     k->new_unit ?: to->unit,
				     k->new_types ?
					     (enum signal_type)k->new_type :
					     to->type)) {
			signal_list_put(l);
			return -ENOMEM;
		}
	}
	if (k->new_name && k->select.count > 1)
		log_warn("%s: %u signals are called '%s' behind hook cast",
			 h->owner, k->select.count, k->new_name);
	*out = l;
	return 0;
}

static enum hook_verdict cast_process(struct hook *h, struct sample **smp)
{
	const struct cast *k = h->private_data;
	struct sample *s = *smp;

	if (!k->new_types)
		return HOOK_OK;
	for (unsigned n = 0; n < k->select.count; n++) {
		unsigned i = k->select.index[n];
		enum signal_type from;

		if (i >= s->length)
			continue;
		from = hook_value_type(h, s, i);
		if (from != (enum signal_type)k->new_type)
			hook_value_convert(&s->data[i], from,
				(enum signal_type)k->new_type);
	}
	return HOOK_OK;
}

static void cast_destroy(struct hook *h)
{
	hook_select_free(&((struct cast *)h->private_data)->select);
}

const struct hook_type hook_cast = {
	.name = "cast",
	.description = "gives signals another type, name or unit",
	.places = HOOK_NODE_READ | HOOK_NODE_WRITE | HOOK_PATH,
	.priority = 99,
	.size = sizeof(struct cast),
	.keys = cast_keys,
	.key_count = ARRAY_SIZE(cast_keys),
	.parse = cast_parse,
	.destroy = cast_destroy,
	.signals = cast_signals,
	.process = cast_process,
};
