/* SPDX-License-Identifier: BSD-2-Clause */
/* Lists of hooks: parsing, life cycle, running them over samples. */
#define LOG_ROOM "gateway/hook"
#include "gateway/hook.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "gateway/keys.h"
#include "gateway/nearest.h"
#include "util/log.h"

struct hook_common {
	const char *type;
	bool enabled;
	int64_t priority;
};

static const struct config_key common_keys[] = {
	{ "type", CONFIG_STRING, offsetof(struct hook_common, type),
	  .required = true, .help = "Name of the hook" },
	{ "enabled", CONFIG_BOOL, offsetof(struct hook_common, enabled), "true",
	  .help = "Use this hook" },
	{ "priority", CONFIG_INT, offsetof(struct hook_common, priority),
	  .help = "Hooks with a lower number run first" },
};

const struct key_table keys_hook = { common_keys, ARRAY_SIZE(common_keys) };

static void hook_destroy(struct hook *h)
{
	list_remove(&h->entry);
	if (h->type->destroy)
		h->type->destroy(h);
	signal_list_put(h->in_signals);
	signal_list_put(h->out_signals);
	free(h->private_data);
	free(h);
}

/* Behind all hooks of the same or a lower priority. */
static void insert(struct hook_list *l, struct hook *h)
{
	struct list *before = &l->hooks;

	list_for_each(other, &l->hooks, struct hook, entry) {
		if (other->priority > h->priority) {
			before = &other->entry;
			break;
		}
	}
	list_push(before, &h->entry);
	l->count++;
}

static int hook_add(struct hook_list *l, struct config *c, json_t *cfg,
		    const struct hook_type *type,
		    const struct hook_common *common, enum hook_place place,
		    struct node *node, const char *owner)
{
	struct hook *h = calloc(1, sizeof(*h));
	json_t *object = json_is_object(cfg) ? cfg : NULL;
	int ret = -ENOMEM;

	if (!h)
		return -ENOMEM;
	list_init(&h->entry);
	h->type = type;
	h->place = place;
	h->enabled = common->enabled;
	h->priority = common->priority;
	h->node = node;
	h->owner = owner;
	h->private_data = calloc(1, type->size ? type->size : 1);
	if (!h->private_data)
		goto err;
	ret = config_unpack(c, object, type->keys, type->key_count,
			    h->private_data, common_keys,
			    ARRAY_SIZE(common_keys));
	if (!ret && type->parse)
		ret = type->parse(h, c, object);
	if (ret)
		goto err;
	if (h->enabled)
		insert(l, h);
	else
		hook_destroy(h);
	return 0;
err:
	hook_destroy(h);
	return ret;
}

static const char *place_name(enum hook_place place)
{
	switch (place) {
	case HOOK_NODE_READ: return "on the `in` side of a node";
	case HOOK_NODE_WRITE: return "on the `out` side of a node";
	case HOOK_PATH: return "on a path";
	}
	return "here";
}

static int fail_unknown(struct config *c, json_t *cfg, const char *name)
{
	struct nearest near = NEAREST(name);
	char hint[100];

	for (const struct plugin *p = hook_plugins; p->name; p++)
		nearest_try(&near, p->name);
	config_fail(c, cfg, json_is_object(cfg) ? "type" : NULL,
		    "no hook '%s'%s", name,
		    nearest_hint(&near, hint, sizeof(hint)));
	return -EINVAL;
}

static int parse_one(struct hook_list *l, struct config *c, json_t *list,
		     json_t *cfg, enum hook_place place, unsigned allowed,
		     struct node *node, const char *owner)
{
	struct hook_common common = { .enabled = true };
	const struct hook_type *type;

	if (json_is_string(cfg)) {
		common.type = json_string_value(cfg);
	} else if (!json_is_object(cfg)) {
		config_fail(c, list, NULL,
			    "a hook is a name or a group such as { type = \"stats\" }");
		return -EINVAL;
	} else if (config_unpack_part(c, cfg, common_keys,
				      ARRAY_SIZE(common_keys), &common)) {
		return -EINVAL;
	}
	type = hook_type_find(common.type);
	if (!type)
		return fail_unknown(c, cfg, common.type);
	if (!(type->places & allowed)) {
		config_fail(c, cfg, json_is_object(cfg) ? "type" : NULL,
			    "hook '%s' cannot stand %s", type->name,
			    place_name(place));
		return -EINVAL;
	}
	if (!(type->places & (unsigned)place))
		return 0;
	if (!json_is_object(cfg) || !json_object_get(cfg, "priority"))
		common.priority = type->priority;
	return hook_add(l, c, cfg, type, &common, place, node, owner);
}

int hook_list_append(struct hook_list *l, struct config *c, json_t *cfg,
		     enum hook_place place, unsigned allowed,
		     struct node *node, const char *owner)
{
	size_t i;
	json_t *e;
	int ret = 0;

	if (!cfg || json_is_null(cfg))
		return 0;
	if (!json_is_array(cfg))
		return parse_one(l, c, cfg, cfg, place, allowed, node, owner);
	json_array_foreach(cfg, i, e)
		if (parse_one(l, c, cfg, e, place, allowed, node, owner))
			ret = -EINVAL;
	return ret;
}

int hook_list_parse(struct hook_list **out, struct config *c, json_t *cfg,
		    enum hook_place place, struct node *node, const char *owner)
{
	struct hook_list *l = calloc(1, sizeof(*l));
	int ret;

	if (!l)
		return -ENOMEM;
	list_init(&l->hooks);
	ret = hook_list_append(l, c, cfg, place, place, node, owner);
	if (ret) {
		hook_list_destroy(l);
		return ret;
	}
	*out = l;
	return 0;
}

int hook_list_add_builtin(struct hook_list *l, struct config *c,
			  enum hook_place place, struct node *node,
			  const char *owner)
{
	/* None of them is in a module. */
	for (const struct plugin *p = hook_plugins; p->name; p++) {
		const struct hook_type *type = p->type;
		struct hook_common common;
		bool there = false;
		int ret;

		if (!type || !type->builtin || !(type->places & (unsigned)place))
			continue;
		common = (struct hook_common){ .type = type->name,
					       .enabled = true,
					       .priority = type->priority };
		list_for_each(h, &l->hooks, struct hook, entry)
			there |= h->type == type;
		if (there)
			continue;
		ret = hook_add(l, c, NULL, type, &common, place, node, owner);
		if (ret)
			return ret;
	}
	return 0;
}

int hook_list_signals(struct hook_list *l, struct signal_list *in,
		      struct signal_list **out, unsigned *capacity)
{
	struct signal_list *now = in ? signal_list_get(in) : NULL;

	if (now)
		*capacity = MAX(*capacity, now->count);
	if (l) {
		list_for_each(h, &l->hooks, struct hook, entry) {
			struct signal_list *next = NULL;
			int ret;

			h->in_signals = now;
			if (h->type->signals) {
				ret = h->type->signals(h, now, &next);
				if (ret)
					return ret;
			} else {
				next = now ? signal_list_get(now) : NULL;
			}
			h->out_signals = next;
			now = next ? signal_list_get(next) : NULL;
			if (now)
				*capacity = MAX(*capacity, now->count);
		}
	}
	*out = now;
	return 0;
}

int hook_list_start(struct hook_list *l)
{
	int ret;

	if (!l)
		return 0;
	list_for_each(h, &l->hooks, struct hook, entry) {
		ret = h->type->start ? h->type->start(h) : 0;
		if (!ret)
			continue;
		log_error("%s: hook %s cannot start: %s", h->owner,
			  h->type->name, strerror(-ret));
		list_for_each(started, &l->hooks, struct hook, entry) {
			if (started == h)
				break;
			if (started->type->stop)
				started->type->stop(started);
		}
		return ret;
	}
	return 0;
}

void hook_list_stop(struct hook_list *l)
{
	if (!l)
		return;
	list_for_each(h, &l->hooks, struct hook, entry)
		if (h->type->stop)
			h->type->stop(h);
}

void hook_list_destroy(struct hook_list *l)
{
	if (!l)
		return;
	while (!list_empty(&l->hooks))
		hook_destroy(list_entry(l->hooks.next, struct hook, entry));
	free(l);
}

void hook_list_periodic(struct hook_list *l)
{
	if (!l)
		return;
	list_for_each(h, &l->hooks, struct hook, entry)
		if (h->type->periodic)
			h->type->periodic(h);
}

/* Replaces a shared sample by a copy of our own; false when the pool is empty. */
static bool make_private(struct sample **s)
{
	struct sample *copy;

	if (likely(atomic_load_explicit(&(*s)->refcnt,
					memory_order_acquire) == 1))
		return true;
	copy = sample_alloc((*s)->pool);
	if (!copy)
		return false;
	sample_copy(copy, *s);
	sample_put(*s);
	*s = copy;
	return true;
}

/* True when the sample is to go on. */
static bool process_one(struct hook_list *l, struct sample **s)
{
	list_for_each(h, &l->hooks, struct hook, entry) {
		if (!h->type->process)
			continue;
		if (!h->type->read_only && !make_private(s))
			return false;
		switch (h->type->process(h, s)) {
		case HOOK_OK:
			break;
		case HOOK_STOP:
			return true;
		case HOOK_SKIP:
		case HOOK_ERROR:
			return false;
		}
	}
	return true;
}

unsigned hook_list_process(struct hook_list *l, struct sample *smps[],
			   unsigned cnt)
{
	unsigned kept = 0;

	if (!l || !l->count)
		return cnt;
	for (unsigned i = 0; i < cnt; i++) {
		struct sample *s = smps[i];

		if (!process_one(l, &s)) {
			sample_put(s);
			continue;
		}
		smps[kept++] = s;
	}
	return kept;
}
