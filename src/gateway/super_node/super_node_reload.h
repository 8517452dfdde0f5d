/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A new configuration for a running super-node, and a new start.
 *
 * The new one is read and checked completely first. Nodes and paths whose
 * settings mean the same stay as they are and go on; the others are stopped,
 * replaced and started. Paths that read a node of which another path stays join and
 * leave its reader while that goes on; where the reader goes, one that stays takes
 * over, and the node keeps what comes meanwhile.
 */
#ifndef GATEWAY_SUPER_NODE_SUPER_NODE_RELOAD_H
#define GATEWAY_SUPER_NODE_SUPER_NODE_RELOAD_H

#include <jansson.h>
#include <stdbool.h>

struct super_node;

/* What stands for the name of the file of a gateway that waits for its first
 * configuration. */
#define SUPER_NODE_NO_FILE "no configuration"

/*
 * `config`: a string, the path of a file; an object, the configuration itself;
 * NULL or null: the file that was loaded last. On success *report lists what was
 * "kept", "stopped" and "started", and what "failed" to start (it can be started
 * later, as after a stop); where `affinity`, `priority` or `nice` has changed, also to
 * how many threads it was "applied" and to how many "refused", and why. -EINVAL: it has errors, *report lists them, and
 * nothing has changed. Other negative errnos likewise. The caller decrefs
 * *report, which may be NULL.
 */
int super_node_reload(struct super_node *sn, const json_t *config,
		      json_t **report);

/* The file that was loaded last; "stdin", "request" or SUPER_NODE_NO_FILE when there
 * is none. */
const char *super_node_file(struct super_node *sn);
/* `control` of the configuration, NULL when there is none. */
const char *super_node_control_path(struct super_node *sn);

/* The present configuration; a new reference. */
json_t *super_node_config_json(struct super_node *sn);

/*
 * Asks whoever runs it to stop and start anew, with `config` as for a reload; it is
 * checked before, and what is wrong with it told in *report, as there.
 * -ENOTSUP when he has not said that he can. He then finds it in *config (a new
 * reference) when the super-node has stopped; false: nobody asked.
 */
int super_node_request_restart(struct super_node *sn, const json_t *config,
			       json_t **report);
void super_node_allow_restart(struct super_node *sn, unsigned restarts);
bool super_node_restart_wanted(struct super_node *sn, json_t **config);

#endif
