/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Commands for a running super-node, from any thread: start, stop, pause, resume and
 * restart of nodes and paths; and their figures as JSON.
 *
 * A stopped node keeps what it prepared (devices, registered memory). A path that reads
 * it waits; a path that writes it drops and counts the samples. A paused node stays
 * connected; paths do not read it, and drop and count samples that they would write to
 * it. A stopped or paused path neither reads nor forwards.
 *
 * Commands run one at a time, and each returns when it is carried out. They return 0 or:
 *	-ENOENT     no such node or path
 *	-EALREADY   the command changes nothing (stop of a stopped node ...)
 *	-EPERM      not possible in its present state
 *	-ENOTSUP    the node has no such operation
 *	-EBUSY      a thread does not return from a read or write; nothing changed
 *	-ESHUTDOWN  the super-node is not running
 * or the negative errno of the node's own start or stop.
 */
#ifndef GATEWAY_SUPER_NODE_SUPER_NODE_CONTROL_H
#define GATEWAY_SUPER_NODE_SUPER_NODE_CONTROL_H

#include <jansson.h>
#include <stdbool.h>

struct super_node;

enum control_verb {
	CONTROL_START,
	CONTROL_STOP,
	CONTROL_PAUSE,
	CONTROL_RESUME,
	CONTROL_RESTART,
};

/* "start" ...; -EINVAL when unknown. */
int control_verb_parse(const char *name);
/* NULL: no more. */
const char *control_verb_name(unsigned verb);

/* A node by name or UUID, a path by name ("a -> b"), index or UUID. */
int super_node_node_control(struct super_node *sn, const char *id,
			    enum control_verb verb);
int super_node_path_control(struct super_node *sn, const char *id,
			    enum control_verb verb);

/* Set counters and latencies to zero; `id` NULL: of all nodes or paths. */
int super_node_node_reset(struct super_node *sn, const char *id);
int super_node_path_reset(struct super_node *sn, const char *id);
/* The node reads from the beginning again (of its file), if the node-type can. */
int super_node_node_rewind(struct super_node *sn, const char *id);

/*
 * Settings, state and statistics of nodes and paths; `brief`: state and statistics only.
 * Each returns a new reference, or NULL when there is no such node or path, or no
 * memory.
 */
json_t *super_node_nodes_json(struct super_node *sn);
json_t *super_node_node_json(struct super_node *sn, const char *id, bool brief);
/* As with `brief`, and the metrics of the node's hook `stats` by their names
 * (node_stats_json()), if it has one. */
json_t *super_node_node_stats_json(struct super_node *sn, const char *id);
json_t *super_node_paths_json(struct super_node *sn);
json_t *super_node_path_json(struct super_node *sn, const char *id, bool brief);
/* All statistics: {"seconds", "nodes": {...}, "paths": [...]}. */
json_t *super_node_snapshot(struct super_node *sn);

#endif
