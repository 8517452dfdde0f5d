/* SPDX-License-Identifier: BSD-2-Clause */
/* Nodes from their configuration to their end; see node_life.h. */
#define LOG_ROOM "gateway/node"
#include "gateway/plugin/node_life.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "gateway/config/former.h"
#include "gateway/plugin/hook.h"
#include "gateway/plugin/tap.h"
#include "gateway/config/keys.h"
#include "gateway/sample/signals.h"
#include "gateway/config/uuid.h"
#include "util/log.h"
#include "util/nearest.h"

#define NODE_NAME_MAX 64
#define VECTORIZE_MAX 8192

struct node_common {
	const char *type, *uuid;
	bool enabled, builtin;
	int64_t vectorize, affinity, priority, initial_sequenceno;
	json_t *hooks, *signals, *in, *out;
};

#define COMMON(field) offsetof(struct node_common, field)

static const struct config_key common_keys[] = {
	{ "type", CONFIG_STRING, COMMON(type), .required = true,
	  .help = "the node-type" },
	{ "enabled", CONFIG_BOOL, COMMON(enabled), "true",
	  .help = "Use this node" },
	{ "uuid", CONFIG_STRING, COMMON(uuid), .help = "Identifier" },
	{ "vectorize", CONFIG_INT, COMMON(vectorize), "1", .min = 1,
	  .max = VECTORIZE_MAX, .help = "Samples per read and write" },
	{ "builtin", CONFIG_BOOL, COMMON(builtin), "true",
	  .help = "Add the built-in hooks fix, restart and drop" },
	{ "affinity", CONFIG_INT, COMMON(affinity), "0", .min = 0,
	  .max = (double)INT64_MAX,
	  .help = "CPU mask of the thread that reads this node" },
	{ "priority", CONFIG_INT, COMMON(priority), "0", .min = 0, .max = 99,
	  .help = "SCHED_FIFO priority of that thread, 0 for none" },
	{ "initial_sequenceno", CONFIG_INT, COMMON(initial_sequenceno), "0",
	  .min = 0, .max = (double)INT64_MAX,
	  .help = "First own sequence number" },
	{ "hooks", CONFIG_JSON, COMMON(hooks), .help = "List of hooks" },
	{ "signals", CONFIG_JSON, COMMON(signals), .help = "Signals" },
	{ "in", CONFIG_JSON, COMMON(in), .help = "Settings for reading" },
	{ "out", CONFIG_JSON, COMMON(out), .help = "Settings for writing" },
};

const struct key_table keys_node = { common_keys, ARRAY_SIZE(common_keys) };

struct direction_common {
	bool enabled, builtin;
	int64_t vectorize;
	json_t *hooks, *signals;
};

#define DIRECTION(field) offsetof(struct direction_common, field)

static const struct config_key direction_keys[] = {
	{ "enabled", CONFIG_BOOL, DIRECTION(enabled), "true",
	  .help = "Use this direction" },
	{ "builtin", CONFIG_BOOL, DIRECTION(builtin), "true",
	  .help = "Add the built-in hooks" },
	{ "vectorize", CONFIG_INT, DIRECTION(vectorize), "1", .min = 1,
	  .max = VECTORIZE_MAX, .help = "Samples per call" },
	{ "hooks", CONFIG_JSON, DIRECTION(hooks), .help = "List of hooks" },
	{ "signals", CONFIG_JSON, DIRECTION(signals), .help = "Signals" },
};

const struct key_table keys_direction = { direction_keys, ARRAY_SIZE(direction_keys) };

bool node_name_valid(struct config *c, json_t *nodes, const char *name)
{
	size_t len = strlen(name);
	bool good = len >= 1 && len <= NODE_NAME_MAX;

	for (size_t i = 0; i < len; i++)
		good &= isalnum((unsigned char)name[i]) || name[i] == '-' ||
			name[i] == '_';
	if (!good)
		config_fail(c, nodes, name,
			    "a node name has 1 to %d letters, digits, '-' or '_'",
			    NODE_NAME_MAX);
	return good;
}

static const struct node_type *find_type(struct config *c, json_t *cfg,
					 const char *name)
{
	const struct node_type *type = node_type_find(name);
	const char *former = former_node_hint(name);
	struct nearest near = NEAREST(name);
	char hint[100], places[PLUGIN_PLACES_SIZE];

	if (type)
		return type;
	if (plugin_is_there(node_plugins, name)) {
		config_fail(c, cfg, "type",
			    "the module of node-type '%s' cannot be loaded", name);
		return NULL;
	}
	if (former) {
		config_fail(c, cfg, "type",
			    "no node-type '%s' here, VILLASnode has it; %s (`busbar node -C` lists what there is)",
			    name, former);
		return NULL;
	}
	for (const struct plugin *p = node_plugins; p->name; p++)
		nearest_try(&near, p->name);
	nearest_hint(&near, hint, sizeof(hint));
	config_fail(c, cfg, "type", "no node-type '%s'%s%s", name, hint,
		    plugin_places(node_plugins, name, hint, places,
				  sizeof(places)));
	return NULL;
}

/* What stands in the group wins over what stands on the node. */
static bool overrides(json_t *group, const char *key)
{
	return json_is_object(group) && json_object_get(group, key);
}

static int parse_hooks(struct node *n, struct config *c, enum hook_place place,
		       const struct node_common *common,
		       const struct direction_common *own,
		       struct node_direction *d)
{
	bool builtin = overrides(d->cfg, "builtin") ? own->builtin :
						      common->builtin;
	int ret = hook_list_parse(&d->hooks, c, own->hooks, place, n, n->name);

	if (ret)
		return ret;
	if (!own->hooks)
		ret = hook_list_append(d->hooks, c, common->hooks, place,
				       HOOK_NODE_READ | HOOK_NODE_WRITE, n,
				       n->name);
	if (!ret && builtin)
		ret = hook_list_add_builtin(d->hooks, c, place, n, n->name);
	return ret;
}

static int parse_direction(struct node *n, struct config *c,
			   const struct node_common *common,
			   struct node_direction *d, enum hook_place place,
			   const struct config_key *keys, size_t key_count)
{
	struct direction_common own;
	json_t *holder;
	int ret;

	d->present = d->cfg != NULL;
	ret = config_unpack(c, d->cfg, keys, key_count, n->private_data,
			    direction_keys, ARRAY_SIZE(direction_keys));
	if (d->cfg && !json_is_object(d->cfg))
		d->cfg = NULL;
	if (config_unpack_part(c, d->cfg, direction_keys,
			       ARRAY_SIZE(direction_keys), &own))
		ret = -EINVAL;
	d->enabled = own.enabled;
	holder = overrides(d->cfg, "vectorize") ? d->cfg : n->cfg;
	d->vectorize = (unsigned)(holder == n->cfg ? common->vectorize :
						     own.vectorize);
	if (!ret && n->type->vectorize_max &&
	    d->vectorize > n->type->vectorize_max) {
		config_fail(c, holder, "vectorize",
			    "node-type %s takes at most %u samples at once",
			    n->type->name, n->type->vectorize_max);
		ret = -EINVAL;
	}
	holder = signal_list_is_given(d->cfg, "signals") ? d->cfg : n->cfg;
	if (signal_list_parse(&d->signals, c, holder, "signals") ||
	    /* Once, where they hold for both directions. */
	    ((holder == d->cfg || place == HOOK_NODE_READ ||
	      signal_list_is_given(n->in.cfg, "signals")) &&
	     signal_list_check(c, holder, "signals", n->type->signal_keys,
			       n->type->signal_key_count)))
		ret = -EINVAL;
	if (parse_hooks(n, c, place, common, &own, d))
		ret = -EINVAL;
	return ret;
}

static int parse(struct node *n, struct config *c)
{
	const struct node_type *t = n->type;
	struct node_common common;
	int ret = 0;

	if (config_unpack(c, n->cfg, t->keys, t->key_count, n->private_data,
			  common_keys, ARRAY_SIZE(common_keys)))
		ret = -EINVAL;
	if (config_unpack_part(c, n->cfg, common_keys, ARRAY_SIZE(common_keys),
			       &common))
		ret = -EINVAL;
	if (uuid_set(n->uuid, c, n->cfg, common.uuid, "node", n->name))
		ret = -EINVAL;
	n->enabled = common.enabled;
	n->affinity = common.affinity;
	n->priority = common.priority;
	n->sequence = (uint64_t)common.initial_sequenceno;
	n->in.cfg = common.in;
	n->out.cfg = common.out;
	if (parse_direction(n, c, &common, &n->in, HOOK_NODE_READ, t->in_keys,
			    t->in_key_count))
		ret = -EINVAL;
	if (parse_direction(n, c, &common, &n->out, HOOK_NODE_WRITE,
			    t->out_keys, t->out_key_count))
		ret = -EINVAL;
	if (!ret && t->parse)
		ret = t->parse(n, c, n->cfg);
	if (!ret)
		node_set_state(n, NODE_PARSED);
	return ret;
}

int node_new(struct node **out, struct services *services, struct config *c,
	     const char *name, json_t *cfg)
{
	const char *type_name = NULL;
	const struct config_key *type_key = &common_keys[0];
	const struct node_type *type;
	unsigned errors;
	struct node *n;
	int ret = -ENOMEM;

	if (config_unpack_part(c, cfg, type_key, 1,
			       (char *)&type_name - type_key->offset))
		return -EINVAL;
	type = find_type(c, cfg, type_name);
	if (!type)
		return -EINVAL;
	n = aligned_alloc(CACHE_LINE, sizeof(*n));
	if (!n)
		return -ENOMEM;
	memset(n, 0, sizeof(*n));
	list_init(&n->entry);
	n->name = strdup(name);
	n->type = type;
	n->services = services;
	n->cfg = cfg;
	n->config = c;
	/* A line of its own: a node's data is touched by its path alone. */
	n->private_data = aligned_alloc(CACHE_LINE,
					(type->size + CACHE_LINE) &
						~(size_t)(CACHE_LINE - 1));
	if (type->figure_count)
		n->figures = calloc(type->figure_count, sizeof(*n->figures));
	if (!n->name || !n->private_data || (type->figure_count && !n->figures))
		goto err;
	memset(n->private_data, 0,
	       (type->size + CACHE_LINE) & ~(size_t)(CACHE_LINE - 1));
	ret = type->init ? type->init(n) : 0;
	if (ret)
		goto err;
	node_set_state(n, NODE_INITIALIZED);
	errors = config_errors(c);
	ret = parse(n, c);
	/* What is only logged would be no error of `check`. */
	if (ret && config_errors(c) == errors)
		config_fail(c, cfg, NULL, "node '%s' cannot be set up: %s", name,
			    strerror(-ret));
	n->in.signals = signal_list_intern(n->in.signals);
	n->out.signals = signal_list_intern(n->out.signals);
	taps_add_node(n);
	*out = n;
	return 0;
err:
	free(n->figures);
	free(n->private_data);
	free(n->name);
	free(n);
	return ret;
}

int node_check(struct node *n, struct config *c)
{
	unsigned errors = config_errors(c);
	int ret = n->type->check ? n->type->check(n, c, n->cfg) : 0;

	if (!ret)
		node_set_state(n, NODE_CHECKED);
	else if (config_errors(c) == errors)
		config_fail(c, n->cfg, NULL, "node '%s' cannot be run: %s",
			    n->name, strerror(-ret));
	return ret;
}

/* Runs a callback of the life cycle; the node-type has logged the cause. */
static int move(struct node *n, int (*callback)(struct node *n),
		enum node_state to, const char *what)
{
	int ret = callback ? callback(n) : 0;

	if (ret)
		log_debug("node %s: cannot %s: %s", n->name, what,
			  strerror(ret < 0 ? -ret : ret));
	else
		node_set_state(n, to);
	return ret;
}

int node_prepare(struct node *n)
{
	return move(n, n->type->prepare, NODE_PREPARED, "prepare");
}

int node_start(struct node *n)
{
	int ret = move(n, n->type->start, NODE_STARTED, "start");

	if (!ret)
		taps_start_node(n);
	return ret;
}

int node_stop(struct node *n)
{
	taps_stop_node(n);
	return move(n, n->type->stop, NODE_STOPPED, "stop");
}

void node_destroy(struct node *n)
{
	if (!n)
		return;
	list_remove(&n->entry);
	taps_remove_node(n);
	if (n->type->destroy)
		n->type->destroy(n);
	node_set_state(n, NODE_DESTROYED);
	hook_list_destroy(n->in.hooks);
	hook_list_destroy(n->out.hooks);
	signal_list_put(n->in.signals);
	signal_list_put(n->out.signals);
	signal_list_put(n->in.hooked);
	signal_list_put(n->out.hooked);
	free(n->figures);
	free(n->private_data);
	free(n->name);
	free(n);
}
