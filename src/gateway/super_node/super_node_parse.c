/* SPDX-License-Identifier: BSD-2-Clause */
/* The super-node from its configuration: top-level keys, nodes, paths. */
#define LOG_ROOM "gateway"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>

#include "gateway/base/memory.h"
#include "gateway/base/waiting.h"
#include "gateway/plugin/node_life.h"
#include "gateway/path/path.h"
#include "gateway/super_node/super_node.h"
#include "gateway/super_node/super_node_private.h"
#include "util/clock.h"
#include "util/log.h"

struct node *super_node_find(struct super_node *sn, const char *name)
{
	return services_find_node(&sn->services, name);
}

static struct super_node *of(const struct services *s)
{
	return container_of(s, struct super_node, services);
}

/* The name stands in the file, but no node could be made of it. */
static bool is_broken(const struct services *s, const char *name)
{
	return json_object_get(of(s)->nodes_cfg, name) &&
	       !services_find_node(s, name);
}

static void request_stop(struct services *s)
{
	super_node_request_stop(of(s));
}

static void note_failure(struct services *s)
{
	super_node_note_failure(of(s));
}

static void note_losses(struct services *s, uint64_t count)
{
	atomic_fetch_add(&of(s)->losses, count);
}

/* 0 also where something was reported, as for paths. */
static int parse_nodes(struct super_node *sn, struct config *c, json_t *cfg)
{
	const char *name;
	int ret = 0;
	json_t *v;

	if (!cfg || !json_is_object(cfg)) {
		if (cfg)
			config_fail(c, config_root(c), "nodes",
				    "expected a group with one entry per node");
		return 0;
	}
	sn->nodes_cfg = cfg;
	json_object_foreach(cfg, name, v) {
		struct node *n = NULL;

		if (!json_is_object(v)) {
			config_fail(c, cfg, name,
				    "expected a group with the settings of the node");
			continue;
		}
		node_name_valid(c, cfg, name);
		ret = node_new(&n, &sn->services, c, name, v) ?: ret;
		if (n)
			list_push(&sn->nodes, &n->entry);
	}
	return ret;
}

static int add_path(struct super_node *sn, struct config *c, json_t *cfg,
		     bool reversed)
{
	const struct path_host host = {
		.services = &sn->services,
		.paths = &sn->paths,
		.memory = sn->memory,
		.priority = sn->settings.priority,
	};
	struct path *p;
	int ret = path_new(&p, &host, c, cfg, reversed);

	if (ret || !p)
		return ret;
	list_push(&sn->paths, &p->entry);
	return p->reverse && !reversed ? add_path(sn, c, cfg, true) : 0;
}

static int parse_paths(struct super_node *sn, struct config *c, json_t *cfg)
{
	size_t i;
	int ret = 0;
	json_t *v;

	if (!cfg)
		return 0;
	if (!json_is_array(cfg)) {
		config_fail(c, config_root(c), "paths",
			    "expected a list of paths: paths = ( { in = ..., out = ... } )");
		return 0;
	}
	json_array_foreach(cfg, i, v) {
		if (json_is_object(v))
			ret = add_path(sn, c, v, false) ?: ret;
		else
			config_fail(c, cfg, NULL,
				    "expected a group such as { in = \"a\", out = \"b\" }");
	}
	return ret;
}

/* A node has one writer, because write() is not made for two threads. */
static void check_writers(struct super_node *sn, struct config *c)
{
	list_for_each(p, &sn->paths, struct path, entry) {
		for (unsigned d = 0; p->enabled && d < p->destination_count;
		     d++) {
			const struct path *first = NULL;
			struct node *n = p->destinations[d].node;

			list_for_each(q, &sn->paths, struct path, entry) {
				for (unsigned k = 0;
				     q->enabled && k < q->destination_count;
				     k++)
					if (!first &&
					    q->destinations[k].node == n)
						first = q;
			}
			if (first && first != p)
				config_fail(c, p->cfg,
					    p->reversed ? "in" : "out",
					    "node '%s' is the destination of another path already (%s). Every node must only be used by a single path as destination",
					    n->name,
					    config_where(c, first->cfg));
		}
	}
}

/* A path writes `n`, and reading `n` gives what comes of that. */
static bool is_fed(struct super_node *sn, const struct node *n)
{
	if (!node_follows_writer(n))
		return false;
	list_for_each(p, &sn->paths, struct path, entry)
		for (unsigned d = 0; p->enabled && d < p->destination_count;
		     d++)
			if (p->destinations[d].node == n)
				return true;
	return false;
}

/* The first path that reads a node reads it for the others too. */
static int share_sources(struct super_node *sn)
{
	list_for_each(p, &sn->paths, struct path, entry) {
		for (unsigned i = 0; p->enabled && i < p->source_count; i++) {
			struct path_source *s = &p->sources[i], *first = NULL;

			s->fed = is_fed(sn, s->node);
			list_for_each(q, &sn->paths, struct path, entry) {
				for (unsigned k = 0;
				     q->enabled && k < q->source_count; k++)
					if (!first &&
					    q->sources[k].node == s->node)
						first = &q->sources[k];
			}
			if (first && first != s &&
			    path_source_share(s, first))
				return -ENOMEM;
		}
	}
	return 0;
}

/* A source that comes back from a path whose signals are not known yet. */
static bool must_wait(struct super_node *sn, const struct path *p)
{
	for (unsigned i = 0; i < p->source_count; i++) {
		const struct node *n = p->sources[i].node;

		if (!(n->type->flags & NODE_LOOPS) || n->in.signals)
			continue;
		list_for_each(q, &sn->paths, struct path, entry)
			for (unsigned d = 0; d < q->destination_count; d++)
				if (q->enabled && !q->resolved && q != p &&
				    q->destinations[d].node == n)
					return true;
	}
	return false;
}

/*
 * Before, when something is wrong already: other errors are looked for where
 * the signals are known all the same. That is not so for nodes that did not pass
 * their check, nor where the path that writes a loopback could not be read.
 */
static void find_unknown(struct super_node *sn)
{
	list_for_each(n, &sn->nodes, struct node, entry)
		if (node_state(n) != NODE_CHECKED ||
		    (n->type->flags & NODE_LOOPS && !n->in.signals &&
		     !is_fed(sn, n)))
			n->in.unknown = true;
}

static int set_signals(struct super_node *sn)
{
	int ret = 0;

	for (bool last = false, progress;; last = !progress) {
		progress = false;
		list_for_each(p, &sn->paths, struct path, entry) {
			if (!p->enabled || p->resolved ||
			    (!last && must_wait(sn, p)))
				continue;
			ret = path_set_signals(p) ?: ret;
			progress = true;
		}
		/* Nothing moved: paths in a circle, which take the default. */
		if (last)
			return ret;
	}
}

/* Whether nodes can write what the paths bring them. */
static int check_signals(struct super_node *sn, struct config *c)
{
	int ret = 0;

	super_node_mark_roles(sn);
	list_for_each(n, &sn->nodes, struct node, entry)
		if (n->enabled && node_state(n) == NODE_CHECKED &&
		    n->type->check_signals)
			ret = n->type->check_signals(n, c, n->cfg) ?: ret;
	return ret;
}

/* What is wrong with the configuration was reported: then there is something. A part
 * that is not there though nobody has said why had no memory. */
static int find_unmade(struct super_node *sn, const struct config *c)
{
	if (config_errors(c))
		return -EINVAL;
	list_for_each(n, &sn->nodes, struct node, entry)
		if (node_state(n) != NODE_CHECKED)
			return -ENOMEM;
	return 0;
}

static int parse(struct super_node *sn, struct config *c)
{
	int ret;

	if (!json_is_object(config_root(c))) {
		config_fail(c, config_root(c), NULL,
			    "expected a group with `nodes` and `paths`");
		return -EINVAL;
	}
	super_node_settings_parse(&sn->settings, c);
	sn->memory = sn->settings.hugepages ? &memory_hugepage : &memory_heap;

	ret = parse_nodes(sn, c, sn->settings.nodes);
	ret = parse_paths(sn, c, sn->settings.paths) ?: ret;
	check_writers(sn, c);
	/* A node may need other settings to be read than to be written. */
	super_node_mark_roles(sn);
	list_for_each(n, &sn->nodes, struct node, entry)
		if (node_state(n) == NODE_PARSED)
			node_check(n, c);
	if (config_errors(c))
		find_unknown(sn);
	else if (list_empty(&sn->paths) && json_object_size(config_root(c)))
		log_warn("the configuration has no paths, nothing will be moved");
	ret = set_signals(sn) ?: ret;
	ret = check_signals(sn, c) ?: ret;
	ret = find_unmade(sn, c) ?: ret;
	if (ret && !config_errors(c)) {
		log_error("no memory for this configuration");
		return -ENOMEM;
	}
	return ret ?: share_sources(sn);
}

int super_node_new(struct super_node **out, struct config *c)
{
	struct super_node *sn = calloc(1, sizeof(*sn));
	int ret = -ENOMEM;

	if (!sn)
		return -ENOMEM;
	clock_init();
	gate_init_all();
	/* Before settings bind the process to some of them. */
	waiting_processors();
	pthread_mutex_init(&sn->control, NULL);
	pthread_mutex_init(&sn->loading, NULL);
	sn->config = c;
	sn->services = (struct services){ .nodes = &sn->nodes,
					  .is_broken = is_broken,
					  .request_stop = request_stop,
					  .note_failure = note_failure,
					  .note_losses = note_losses };
	list_init(&sn->nodes);
	list_init(&sn->paths);
	list_init(&sn->retired_paths);
	list_init(&sn->retired_nodes);
	sn->stats_fd = -1;
	sn->file = strdup(config_file(c));
	sn->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (sn->event_fd < 0 || !sn->file)
		goto err;
	ret = parse(sn, c);
	if (ret)
		goto err;
	*out = sn;
	return 0;
err:
	super_node_destroy(sn);
	return ret;
}
