/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a node may ask of the gateway that it is part of. The super-node fills the
 * table in; node-types and paths know no more of it than this.
 */
#ifndef GATEWAY_PLUGIN_SERVICES_H
#define GATEWAY_PLUGIN_SERVICES_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "gateway/base/nearest.h"
#include "gateway/plugin/node.h"
#include "util/list.h"

/* Calls get the table itself, which lies in the super-node. */
struct services {
	/* All nodes (struct node, entry), in the order of the configuration; for
	 * parse, check and relink, in whose calls the list does not change. */
	struct list *nodes;

	/* Whether a node of this name is in the configuration with errors of its
	 * own, which have been reported: parse and check. */
	bool (*is_broken)(const struct services *s, const char *name);
	/* Asks for the end of the gateway: any thread or signal handler. */
	void (*request_stop)(struct services *s);
	/* The node will not do what it has to do; the exit status will say so. The
	 * others go on. Any thread. */
	void (*note_failure)(struct services *s);
	/* Samples were lost that no policy of the configuration allows to be lost;
	 * the exit status will say so. Any thread. Nodes use node_refuse() and
	 * node_lose(). */
	void (*note_losses)(struct services *s, uint64_t count);
};

/* By its name; NULL when there is none. */
static inline struct node *services_find_node(const struct services *s,
					      const char *name)
{
	list_for_each(n, s->nodes, struct node, entry)
		if (!strcmp(n->name, name))
			return n;
	return NULL;
}

/* Reports at `at`, `key` that there is no node `name`, with the nearest one;
 * nothing when that node was reported already. */
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

/* NULL (a node that a test made by itself): nothing happens. */
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
