/* SPDX-License-Identifier: BSD-2-Clause */
/* Inside of the super-node, for its own files, paths and tests. */
#ifndef GATEWAY_SUPER_NODE_PRIVATE_H
#define GATEWAY_SUPER_NODE_PRIVATE_H

#include <pthread.h>
#include <stdatomic.h>

#include "gateway/super_node.h"

enum super_node_state {
	SUPER_NODE_PARSED,
	SUPER_NODE_STARTED,
	SUPER_NODE_STOPPED,
};

struct path;

struct super_node {
	struct config *config;
	/* Held by whoever changes or looks at nodes and paths while they run. */
	pthread_mutex_t control;
	_Atomic enum super_node_state state;
	char uuid[37];
	struct list nodes;       /* struct node, in order of the file */
	struct list paths;       /* struct path */
	json_t *nodes_cfg;

	int64_t affinity, priority;
	struct memory_type *memory;  /* of all pools, before nodes wrap it */
	const struct node_type **types; /* those that are started */
	unsigned type_count;
	double stats_hz;
	bool idle_stop;

	int event_fd;            /* stop requests and ended paths */
	atomic_bool stop_requested;
	pthread_t stats_thread;
	bool has_stats_thread;
	int stats_fd;            /* ends the statistics thread */

	uint64_t started_ns, stopped_ns;
	uint64_t progress_ns, progress_received; /* at the last live line */
};

/* The name stands in the file, but no node could be made of it. */
bool super_node_is_broken(struct super_node *sn, const char *name);

/* By what users may say; the caller holds `control`. */
struct node *super_node_node_by_id(struct super_node *sn, const char *id);
struct path *super_node_path_by_id(struct super_node *sn, const char *id);

/* A node with its hooks; nobody is in read or write. */
int super_node_start_node(struct node *n);
int super_node_stop_node(struct node *n);
/*
 * Keeps the paths of a node out of it: no read, write or hook of it runs any
 * more. *interrupted: reads and writes were asked to return, which lasts until
 * rearm() or start(). 0 or -EBUSY (logged, and all is as it was).
 */
int super_node_close_node(struct node *n, unsigned reasons, bool *interrupted);
void super_node_open_node(struct node *n, unsigned reasons);

#endif
