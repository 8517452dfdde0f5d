/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Loads a new configuration into a running super-node, and restarts a super-node.
 *
 * A reload reads and checks the new configuration completely before it changes anything.
 * Nodes and paths whose settings mean the same go on unchanged; it stops, replaces and
 * starts the others. New and old paths join and leave a reader that stays, while that
 * reader goes on. Where the reading path goes, another path takes over, and the node
 * keeps samples that arrive meanwhile.
 */
#ifndef GATEWAY_SUPER_NODE_SUPER_NODE_RELOAD_H
#define GATEWAY_SUPER_NODE_SUPER_NODE_RELOAD_H

#include <jansson.h>
#include <stdbool.h>

struct super_node;

/* In place of a file name, for a gateway that waits for its first configuration. */
#define SUPER_NODE_NO_FILE "no configuration"

/*
 * `config`: a string is the path of a file, an object is the configuration itself, NULL or
 * null means the file that was loaded last. On success *report lists which nodes and
 * paths were "kept", "stopped" and "started", and which "failed" to start (they can be
 * started later, as after a stop). If `affinity`, `priority` or `nice` has changed, it
 * also says for how many threads the value was "applied" or "refused", and why.
 * -EINVAL: the configuration has errors; *report lists them, and nothing has changed.
 * After other negative errnos nothing has changed either. Any thread. The caller decrefs
 * *report, which may be NULL.
 */
int super_node_reload(struct super_node *sn, const json_t *config,
		      json_t **report);

/* Another configuration. */
struct super_node_change {
	/* As for super_node_reload(); or `text` in the place of the file that was loaded last, which
	 * is where includes are looked for, and which is not written. One of both is NULL. */
	const json_t *config;
	const char *text;
	/* That of super_node_config_source() on which it rests: -ESTALE if there was a reload
	 * since. NULL: whatever there was. */
	const char *revision;
};

/* Results and *report are those of super_node_reload(). Any thread. */
int super_node_change(struct super_node *sn, const struct super_node_change *change,
		      json_t **report);

/* The file that was loaded last; "stdin", "request" or SUPER_NODE_NO_FILE when there
 * is none. */
const char *super_node_file(struct super_node *sn);
/* `control` of the configuration, NULL when there is none. */
const char *super_node_control_path(struct super_node *sn);

/* The present configuration; a new reference. */
json_t *super_node_config_json(struct super_node *sn);
/* {"file", "text", "given", "revision"}: the text that was loaded, before includes and variables
 * were put in, whether it came with a reload in the place of the file, and a text that is another
 * one behind each reload and each start. */
json_t *super_node_config_source(struct super_node *sn);

/*
 * Reads and checks `text`, in the place of the file that was loaded last (which is where
 * includes are looked for), and changes nothing. 0 or a negative errno, -EINVAL if the text
 * has errors; *problems, a new reference, lists these and warnings (config_collect_problems()).
 * Any thread.
 */
int super_node_check_text(struct super_node *sn, const char *text, json_t **problems);

/*
 * Asks the program that runs the super-node to stop it and to start a new one with
 * `config`, which is as for a reload; checks the configuration first and reports errors
 * in *report likewise. -ENOTSUP if the program did not call
 * super_node_allow_restart(). After the stop the program calls
 * super_node_restart_wanted(): true, with the configuration in *config (a new
 * reference), if a restart was requested.
 */
int super_node_request_restart(struct super_node *sn, const json_t *config,
			       json_t **report);
void super_node_allow_restart(struct super_node *sn, unsigned restarts);
bool super_node_restart_wanted(struct super_node *sn, json_t **config);

#endif
