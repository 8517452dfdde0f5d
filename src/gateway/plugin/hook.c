/* SPDX-License-Identifier: BSD-2-Clause */
/* Lists of hooks: parsing, life cycle, running them over samples. */
#define LOG_ROOM "gateway/hook"
#include "gateway/plugin/hook.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "gateway/config/keys.h"
#include "gateway/sample/signals.h"
#include "util/log.h"
#include "util/nearest.h"

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
	if (h->type->destroy && h->private_data)
		h->type->destroy(h);
	signal_list_put(h->in_signals);
	signal_list_put(h->out_signals);
	free(h->private_data);
	free(h);
}

/* Built-in ones first: what they add and mark is there for the others. */
static bool runs_before(const struct hook *a, const struct hook *b)
{
	if (a->priority != b->priority)
		return a->priority < b->priority;
	return a->type->builtin && !b->type->builtin;
}

/* Behind all hooks of the same or a lower priority. */
static void insert(struct hook_list *l, struct hook *h)
{
	struct list *before = &l->hooks;

	list_for_each(other, &l->hooks, struct hook, entry) {
		if (runs_before(h, other)) {
			before = &other->entry;
			break;
		}
	}
	list_push(before, &h->entry);
	l->count++;
}

/* A hook that is only a name has no keys; tells which it needs, and where. */
static int check_name_alone(struct config *c, json_t *cfg,
			    const struct hook_type *type)
{
	int ret = 0;

	for (size_t i = 0; json_is_string(cfg) && i < type->key_count; i++) {
		if (!type->keys[i].required)
			continue;
		config_fail(c, cfg, type->keys[i].name,
			    "missing, but required (%s)", type->keys[i].help);
		ret = -EINVAL;
	}
	return ret;
}

static int hook_add(struct hook_list *l, struct config *c, json_t *cfg,
		    const struct hook_type *type,
		    const struct hook_common *common, enum hook_place place,
		    struct node *node, const char *owner)
{
	struct hook *h = calloc(1, sizeof(*h));
	json_t *object = json_is_object(cfg) ? cfg : NULL;
	unsigned errors = config_errors(c);
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
	h->config = c;
	h->cfg = cfg;
	h->private_data = calloc(1, type->size ? type->size : 1);
	if (!h->private_data)
		goto err;
	ret = check_name_alone(c, cfg, type);
	if (ret)
		goto err;
	ret = type->open_keys ?
		      config_unpack_part(c, object, type->keys,
					 type->key_count, h->private_data) :
		      config_unpack(c, object, type->keys, type->key_count,
				    h->private_data, common_keys,
				    ARRAY_SIZE(common_keys));
	if (!ret && type->parse)
		ret = type->parse(h, c, object);
	/* What is only logged would be no error of `check`. */
	if (ret && config_errors(c) == errors)
		config_fail(c, cfg, NULL, "hook %s cannot be set up: %s",
			    type->name, strerror(-ret));
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
	char hint[100], places[PLUGIN_PLACES_SIZE];

	if (plugin_is_there(hook_plugins, name)) {
		config_fail(c, cfg, json_is_object(cfg) ? "type" : NULL,
			    "the module of hook '%s' cannot be loaded", name);
		return -EINVAL;
	}
	for (const struct plugin *p = hook_plugins; p->name; p++)
		nearest_try(&near, p->name);
	config_fail(c, cfg, json_is_object(cfg) ? "type" : NULL,
		    "no hook '%s'%s%s", name,
		    nearest_hint(&near, hint, sizeof(hint)),
		    plugin_places(hook_plugins, name, hint, places,
				  sizeof(places)));
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
			    "hook '%s' cannot stand %s%s", type->name,
			    place_name(place),
			    type->places == HOOK_NODE_READ ?
				    "; put it into `hooks` of the `in` of the node that is read" : "");
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
			/* Samples point at it, and outlive the hook. */
			next = signal_list_intern(next);
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
	list_for_each(h, &l->hooks, struct hook, entry) {
		if (h->type->stop)
			h->type->stop(h);
		/* It has let go of them. */
		h->dropped += atomic_exchange(&h->held, 0);
		if (h->errors)
			log_warn("%s: hook %s could not process %llu samples, which were dropped",
				 h->owner, h->type->name,
				 (unsigned long long)h->errors);
	}
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

void hook_list_interrupt(struct hook_list *l)
{
	if (!l)
		return;
	list_for_each(h, &l->hooks, struct hook, entry)
		if (h->type->interrupt)
			h->type->interrupt(h);
}

static uint64_t get(const _Atomic uint64_t *counter)
{
	return atomic_load_explicit(counter, memory_order_relaxed);
}

struct hook_figures hook_list_figures(const struct hook_list *l)
{
	struct hook_figures sum = { 0 };

	if (!l)
		return sum;
	sum.starved = get(&l->starved);
	list_for_each(h, &l->hooks, struct hook, entry) {
		sum.dropped += get(&h->dropped);
		sum.failed += get(&h->errors);
		sum.held += get(&h->held);
		sum.unwritten += get(&h->unwritten);
	}
	return sum;
}

uint64_t hook_list_take_losses(struct hook_list *l)
{
	struct hook_figures sum = hook_list_figures(l);
	uint64_t now = sum.starved + sum.failed + sum.unwritten, more;

	if (!l)
		return 0;
	more = now - l->losses_told;
	l->losses_told = now;
	return more;
}

void hook_list_reset(struct hook_list *l)
{
	if (!l)
		return;
	l->losses_told = 0;
	atomic_store(&l->starved, 0);
	list_for_each(h, &l->hooks, struct hook, entry) {
		atomic_store(&h->errors, 0);
		atomic_store(&h->dropped, 0);
		atomic_store(&h->unwritten, 0);
		if (h->type->reset)
			h->type->reset(h);
	}
}

static void count_more(_Atomic uint64_t *counter, int64_t n)
{
	atomic_fetch_add_explicit(counter, (uint64_t)n, memory_order_relaxed);
}

bool hook_own_sample(struct sample **s)
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

enum hook_verdict hook_fail(struct hook *h, const char *why)
{
	if (!atomic_load_explicit(&h->errors, memory_order_relaxed))
		log_warn("%s: hook %s: %s; such samples are dropped", h->owner,
			 h->type->name, why);
	return HOOK_ERROR;
}

/* Hooks from `e` on learn of a restart whose first sample they do not get. */
static void restart_from(struct hook_list *l, struct list *e)
{
	for (; e != &l->hooks; e = e->next) {
		struct hook *h = list_entry(e, struct hook, entry);

		if (h->type->restart)
			h->type->restart(h);
	}
}

/* The sample does not go on, but that it was the first of a restart must. */
static bool drop(struct hook_list *l, struct list *next, struct sample **s)
{
	if (unlikely((*s)->flags & SAMPLE_NEW_SIMULATION)) {
		restart_from(l, next);
		l->began_anew = true;
	}
	sample_put(*s);
	return false;
}

/* True when the sample is to go on, else its reference is used up. */
static bool process_from(struct hook_list *l, struct list *e, struct sample **s)
{
	for (; e != &l->hooks; e = e->next) {
		struct hook *h = list_entry(e, struct hook, entry);
		enum hook_verdict verdict;

		if (unlikely((*s)->flags & SAMPLE_NEW_SIMULATION) &&
		    h->type->restart)
			h->type->restart(h);
		if (!h->type->process)
			continue;
		if (!h->type->read_only && !hook_own_sample(s)) {
			if (!atomic_fetch_add_explicit(&l->starved, 1,
						       memory_order_relaxed))
				log_warn("%s: no free sample for a copy that hook %s needs, a sample is lost; a longer queuelen may help; further ones are counted",
					 h->owner, h->type->name);
			return drop(l, e->next, s);
		}
		verdict = h->type->process(h, s);
		if (likely(verdict == HOOK_OK || verdict == HOOK_STOP) &&
		    h->type->signals && !h->type->read_only && h->out_signals)
			(*s)->signals = h->out_signals;
		switch (verdict) {
		case HOOK_OK:
			break;
		case HOOK_STOP:
			return true;
		case HOOK_HOLD:
			count_more(&h->held, 1);
			return false;
		case HOOK_ERROR:
			atomic_fetch_add_explicit(&h->errors, 1,
						  memory_order_relaxed);
			return drop(l, e->next, s);
		case HOOK_SKIP:
			count_more(&h->dropped, 1);
			return drop(l, e->next, s);
		}
	}
	if (unlikely(l->began_anew) && hook_own_sample(s)) {
		(*s)->flags |= SAMPLE_NEW_SIMULATION;
		l->began_anew = false;
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

		if (process_from(l, l->hooks.next, &s))
			smps[kept++] = s;
	}
	return kept;
}

unsigned hook_list_flush(struct hook_list *l, struct sample *smps[],
			 unsigned cnt)
{
	unsigned kept = 0;

	if (!l)
		return 0;
	/* A hook that is empty stays so: only those before it give it more. */
	list_for_each(h, &l->hooks, struct hook, entry) {
		while (kept < cnt && h->type->flush) {
			struct sample *s = h->type->flush(h);

			if (!s)
				break;
			count_more(&h->held, -1);
			if (process_from(l, h->entry.next, &s))
				smps[kept++] = s;
		}
	}
	return kept;
}

unsigned hook_list_hold_max(const struct hook_list *l)
{
	unsigned n = 0;

	if (!l)
		return 0;
	list_for_each(h, &l->hooks, struct hook, entry)
		if (h->type->hold_max)
			n += h->type->hold_max(h);
	return n;
}
