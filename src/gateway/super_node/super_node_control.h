/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Control of a running super-node, from any thread: start, stop, pause, resume
 * and restart of nodes and paths, and their figures as JSON.
 *
 * A stopped node keeps what it prepared (devices, registered memory); its paths
 * wait, or drop and count what they would write to it. A paused node stays
 * connected; it is not read, and what is written to it is dropped and counted.
 * A stopped or paused path neither reads nor forwards.
 *
 * One command at a time; each waits until it is done. 0 or:
 *	-ENOENT     no such node or path
 *	-EALREADY   a verb that changes nothing (stop of a stopped one ...)
 *	-EPERM      not possible in its present state
 *	-ENOTSUP    it has no such operation, or is disabled
 *	-EBUSY      it does not come out of a read or write; nothing changed
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

/* A node by name or UUID, a path by name ("a -> b"), index or UUID. */
int super_node_node_control(struct super_node *sn, const char *id,
			    enum control_verb verb);
int super_node_path_control(struct super_node *sn, const char *id,
			    enum control_verb verb);

/* Counters (and latencies) to zero; NULL: all of them. */
int super_node_node_reset(struct super_node *sn, const char *id);
int super_node_path_reset(struct super_node *sn, const char *id);
/* Reads from the beginning of what it reads, when the node-type can. */
int super_node_node_rewind(struct super_node *sn, const char *id);

/*
 * What there is and how it does; a new reference each, NULL when there is no
 * such node or path (or no memory). `brief`: state and statistics only.
 */
json_t *super_node_nodes_json(struct super_node *sn);
json_t *super_node_node_json(struct super_node *sn, const char *id, bool brief);
/* The same as `brief`, and beside that the metrics of its hook `stats` by their
 * names (node_stats_json()), where it has one. */
json_t *super_node_node_stats_json(struct super_node *sn, const char *id);
json_t *super_node_paths_json(struct super_node *sn);
json_t *super_node_path_json(struct super_node *sn, const char *id, bool brief);
/* All statistics: {"seconds", "nodes": {...}, "paths": [...]}. */
json_t *super_node_snapshot(struct super_node *sn);

#endif
