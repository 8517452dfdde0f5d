/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Functions of the super-node that nodes and paths may call. The super-node fills in
 * the table; node-types and paths use nothing else of it.
 */
#ifndef GATEWAY_PLUGIN_SERVICES_H
#define GATEWAY_PLUGIN_SERVICES_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "gateway/plugin/node.h"
#include "util/list.h"
#include "util/nearest.h"

/* Each function gets the table itself, which is part of the super-node. */
struct services {
	/* All nodes (struct node, entry), in the order of the configuration. Use
	 * it only in parse, check and relink; the list does not change during
	 * these calls. */
	struct list *nodes;

	/* Whether the configuration has a node of this name with errors, which
	 * have been reported. For parse and check. */
	bool (*is_broken)(const struct services *s, const char *name);
	/* Asks for the end of the gateway. Any thread or signal handler. */
	void (*request_stop)(struct services *s);
	/* Reports that the node gave up its task: the gateway will end with exit
	 * status 1. Other nodes go on. Any thread. */
	void (*note_failure)(struct services *s);
	/* Reports `count` lost samples that no policy of the configuration allows
	 * to lose: the gateway will end with exit status 3. Any thread. Nodes use
	 * node_refuse() and node_lose() instead. */
	void (*note_losses)(struct services *s, uint64_t count);
};

/* The node called `name` (borrowed); NULL when there is none. */
static inline struct node *services_find_node(const struct services *s,
					      const char *name)
{
	list_for_each(n, s->nodes, struct node, entry)
		if (!strcmp(n->name, name))
			return n;
	return NULL;
}

/* Reports for `key` of `at` that there is no node `name`, and the nearest name. Does
 * nothing when the node exists with errors that were reported. */
static inline void services_fail_no_node(const struct services *s,
					 struct config *c, const json_t *at,
					 const char *key, const char *name)
{
	struct nearest near = NEAREST(name);
	char hint[100];

	if (s->is_broken(s, name))
		return;
	list_for_each(n, s->nodes, struct node, entry)
		nearest_try(&near, n->name);
	config_fail(c, at, key, "no node '%s'%s", name,
		    nearest_hint(&near, hint, sizeof(hint)));
}

/* `s` may be NULL (a node that a test made): then these do nothing. */
static inline void services_request_stop(struct services *s)
{
	if (s)
		s->request_stop(s);
}

static inline void services_note_failure(struct services *s)
{
	if (s)
		s->note_failure(s);
}

static inline void services_note_losses(struct services *s, uint64_t count)
{
	if (s)
		s->note_losses(s, count);
}

#endif
