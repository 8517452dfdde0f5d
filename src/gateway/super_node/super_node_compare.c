/* SPDX-License-Identifier: BSD-2-Clause */
/* Which nodes and paths of two super-nodes are the same; for a reload. */
#include <string.h>

#include "gateway/config/keys.h"
#include "gateway/path/path.h"
#include "gateway/sample/signals.h"
#include "gateway/super_node/super_node_private.h"

static void normalise_direction(json_t *cfg, const char *key,
				const struct config_key *keys, size_t count)
{
	json_t *o = json_object_get(cfg, key), *d;

	if (!json_is_object(o))
		return;
	keys_fill(o, keys, count);
	/* Not vectorize and builtin: those of the node count where they are
	 * missing here. */
	d = json_object_get(o, "enabled");
	if (!d || json_is_null(d))
		json_object_set_new(o, "enabled", json_true());
	keys_unfold(o);
}

static json_t *normal_node(const struct node *n)
{
	json_t *o = json_deep_copy(n->cfg);

	keys_fill(o, keys_node.keys, keys_node.count);
	keys_fill(o, n->type->keys, n->type->key_count);
	keys_unfold(o);
	normalise_direction(o, "in", n->type->in_keys, n->type->in_key_count);
	normalise_direction(o, "out", n->type->out_keys,
			    n->type->out_key_count);
	json_object_set_new(o, "uuid", json_string(n->uuid));
	return o;
}

bool super_node_same_node(const struct node *a, const struct node *b)
{
	json_t *x, *y;
	bool same;

	if (a->type != b->type || strcmp(a->name, b->name) ||
	    a->is_source != b->is_source ||
	    a->is_destination != b->is_destination ||
	    !signal_list_equal(a->in.signals, b->in.signals) ||
	    !signal_list_equal(a->in.hooked, b->in.hooked) ||
	    !signal_list_equal(a->out.signals, b->out.signals))
		return false;
	x = normal_node(a);
	y = normal_node(b);
	same = json_equal(x, y);
	json_decref(x);
	json_decref(y);
	return same;
}

static json_t *normal_path(const struct path *p)
{
	static const char *const lists[] = { "in", "out", "mask" };
	json_t *o = json_deep_copy(p->cfg), *v;

	keys_fill(o, keys_path.keys, keys_path.count);
	keys_unfold(o);
	for (size_t i = 0; i < ARRAY_SIZE(lists); i++) {
		v = json_object_get(o, lists[i]);
		if (json_is_string(v))
			json_object_set_new(o, lists[i],
					    json_pack("[O]", v));
	}
	json_object_set_new(o, "uuid", json_string(p->uuid));
	return o;
}

bool super_node_same_path(const struct path *a, const struct path *b)
{
	json_t *x, *y;
	bool same;

	if (a->reversed != b->reversed || a->enabled != b->enabled ||
	    a->source_count != b->source_count ||
	    a->destination_count != b->destination_count ||
	    !signal_list_equal(a->out_signals, b->out_signals))
		return false;
	x = normal_path(a);
	y = normal_path(b);
	same = json_equal(x, y);
	json_decref(x);
	json_decref(y);
	return same;
}
