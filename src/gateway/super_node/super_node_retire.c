/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a reload takes out of a running super-node. Samples of its pools may be
 * on their way through nodes that stay (a loopback's queue, an adapter's send
 * queue), and samples point at lists of signals of the node they come from; so
 * paths stay until all their samples are back, their nodes as long and as long as
 * a path that stays uses memory of them, and lists for a good while longer.
 */
#define LOG_ROOM "gateway/reload"
#include <stdlib.h>
#include <string.h>

#include "gateway/plugin/hook.h"
#include "gateway/plugin/node_life.h"
#include "gateway/path/path.h"
#include "gateway/sample/signals.h"
#include "gateway/super_node/super_node_private.h"
#include "util/clock.h"
#include "util/log.h"

void super_node_retire(struct super_node *sn, struct list *paths,
		       struct list *nodes)
{
	list_for_each(p, paths, struct path, entry)
		atomic_fetch_add(&sn->losses, path_take_losses(p));
	list_for_each(n, nodes, struct node, entry)
		atomic_fetch_add(&sn->losses,
				 hook_list_take_losses(n->in.hooks) +
					 hook_list_take_losses(n->out.hooks));
	list_splice(&sn->retired_paths, paths);
	list_splice(&sn->retired_nodes, nodes);
}

static bool is_complete(struct pool *p)
{
	bool complete;

	spin_lock(&p->lock);
	complete = p->available == p->count;
	spin_unlock(&p->lock);
	return complete;
}

static bool has_all_samples(struct path *p)
{
	if (p->stuck)
		return false;
	if (p->has_pool && !is_complete(&p->pool))
		return false;
	for (unsigned i = 0; i < p->source_count; i++)
		if (!is_complete(&p->sources[i].pool) ||
		    !is_complete(&p->sources[i].copies))
			return false;
	return true;
}

/* Is memory of this pool of the type that `n` made? */
static bool pool_needs(const struct pool *p, const struct node *n)
{
	const char *own = n->private_data;

	for (const struct memory_block *b = p->block; b; b = b->parent) {
		const char *of = b->type->private_data;

		if (of == (const char *)n ||
		    (of >= own && of < own + MAX(n->type->size, (size_t)1)))
			return true;
	}
	return false;
}

/* A path that stays may have made its pools when `n` got samples of them too. */
static bool memory_is_used(struct super_node *sn, const struct node *n)
{
	list_for_each(p, &sn->paths, struct path, entry) {
		if (p->has_pool && pool_needs(&p->pool, n))
			return true;
		for (unsigned i = 0; i < p->source_count; i++)
			if (pool_needs(&p->sources[i].pool, n) ||
			    pool_needs(&p->sources[i].copies, n))
				return true;
	}
	return false;
}

static bool is_used(struct super_node *sn, const struct config *c)
{
	if (c == sn->config)
		return true;
	list_for_each(n, &sn->nodes, struct node, entry)
		if (n->config == c)
			return true;
	list_for_each(p, &sn->paths, struct path, entry)
		if (p->config == c)
			return true;
	list_for_each(n, &sn->retired_nodes, struct node, entry)
		if (n->config == c)
			return true;
	list_for_each(p, &sn->retired_paths, struct path, entry)
		if (p->config == c)
			return true;
	return false;
}

static void sweep_configs(struct super_node *sn)
{
	unsigned kept = 0;

	for (unsigned i = 0; i < sn->config_count; i++) {
		if (is_used(sn, sn->configs[i]))
			sn->configs[kept++] = sn->configs[i];
		else
			config_destroy(sn->configs[i]);
	}
	sn->config_count = kept;
}

static void sweep(struct super_node *sn, bool all)
{
	list_for_each_safe(p, &sn->retired_paths, struct path, entry)
		if (all || has_all_samples(p))
			path_destroy(p);
	if (list_empty(&sn->retired_paths))
		list_for_each_safe(n, &sn->retired_nodes, struct node, entry)
			if (!memory_is_used(sn, n))
				node_destroy(n);
	sweep_configs(sn);
}

void super_node_sweep(struct super_node *sn)
{
	sweep(sn, false);
}

void super_node_sweep_all(struct super_node *sn)
{
	sweep(sn, true);
}

void super_node_sweep_nodes(struct super_node *sn)
{
	list_for_each_safe(n, &sn->retired_nodes, struct node, entry)
		node_destroy(n);
}
