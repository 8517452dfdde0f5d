/* SPDX-License-Identifier: BSD-2-Clause */
/* The nodes that the configuration of a path names. */
#define LOG_ROOM "gateway/path"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "gateway/path/path.h"
#include "gateway/plugin/services.h"

struct node *path_find_node(const struct services *services, struct config *c,
			    const json_t *at, const char *key, const char *name)
{
	struct node *n = services_find_node(services, name);

	if (!n)
		services_fail_no_node(services, c, at, key, name);
	return n;
}

/* The whole node that one entry names; NULL after reporting. */
static struct node *find_whole(const struct services *services, struct config *c,
			       const json_t *at, const char *key,
			       const json_t *entry)
{
	const char *name = json_string_value(entry);

	if (!name) {
		config_fail(c, at, key, "expected the name of a node");
		return NULL;
	}
	if (strpbrk(name, "[.")) {
		config_fail(c, at, key,
			    "'%s' is a part of a node; only `in` of a path takes parts, here stands a whole node",
			    name);
		return NULL;
	}
	return path_find_node(services, c, at, key, name);
}

/* The list of nodes under `key`, string or list; count, or -EINVAL. */
int path_find_nodes(const struct services *services, struct config *c, json_t *cfg,
		       const char *key, struct node ***out)
{
	json_t *value = json_object_get(cfg, key), *e;
	bool list = json_is_array(value);
	size_t n = list ? json_array_size(value) : value && !json_is_null(value), i, k;
	struct node **nodes = calloc(n ? n : 1, sizeof(*nodes));
	int ret = 0;

	if (!nodes)
		return -ENOMEM;
	for (i = 0; i < n; i++) {
		e = list ? json_array_get(value, i) : value;
		nodes[i] = find_whole(services, c, list && json_is_string(e) ? e : cfg,
				      list && json_is_string(e) ? NULL : key, e);
		if (!nodes[i])
			ret = -EINVAL;
		for (k = 0; nodes[i] && k < i; k++) {
			if (nodes[k] != nodes[i])
				continue;
			config_fail(c, cfg, key, "node '%s' stands here twice",
				    nodes[i]->name);
			ret = -EINVAL;
		}
	}
	if (ret) {
		free(nodes);
		return ret;
	}
	*out = nodes;
	return (int)n;
}

