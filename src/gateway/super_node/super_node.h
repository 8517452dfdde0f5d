/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The super-node: one running gateway. It owns nodes and paths, brings them
 * through their life cycle and stops them.
 */
#ifndef GATEWAY_SUPER_NODE_SUPER_NODE_H
#define GATEWAY_SUPER_NODE_SUPER_NODE_H

#include <stdbool.h>
#include <stdio.h>

#include "gateway/config/config.h"
#include "util/list.h"

struct node;
struct super_node;

/* Makes a super-node from `c`, which stays the caller's and must outlive it. Reports all
 * errors by config_fail(). 0 or a negative errno. */
int super_node_new(struct super_node **out, struct config *c);

/* Prepares nodes, makes pools, starts nodes, starts paths. On failure it stops everything
 * that it started. 0 or a negative errno. */
int super_node_start(struct super_node *sn);

/* Keeps the present log level whatever `logging` says, because the command line set it.
 * Called before super_node_start(). */
void super_node_keep_log_level(struct super_node *sn);

/* The default for configurations that do not set `idle_stop`. */
enum super_node_idle_stop {
	SUPER_NODE_IDLE_STOP_NEVER,
	SUPER_NODE_IDLE_STOP_UNSERVED, /* not with an enabled group `http` */
	SUPER_NODE_IDLE_STOP_ALWAYS,
};

/* Sets the default of `idle_stop` (at first NEVER) for all super-nodes made from now on.
 * The default holds for configurations with paths; a super-node without paths waits
 * until a reload brings some. */
void super_node_set_idle_stop(enum super_node_idle_stop when);

/* Asks for the end, from any thread or a signal handler. */
void super_node_request_stop(struct super_node *sn);

/* The same, with a time limit as after a signal: the program that runs the super-node
 * checks super_node_must_end_soon() and starts the limit (gateway/base/ending.h). */
void super_node_request_shutdown(struct super_node *sn);
bool super_node_must_end_soon(struct super_node *sn);

/* Logs what the super-node is doing, for an end that takes too long. Any thread. */
void super_node_tell_unfinished(struct super_node *sn);

/*
 * Notes that a node gave up its task: it gave up its peer, or could not end properly.
 * The other nodes go on; the program that runs the super-node reports the failure by
 * its exit status. Any thread.
 */
void super_node_note_failure(struct super_node *sn);
bool super_node_has_failed(struct super_node *sn);
/* The number of samples lost since the start though no policy of the configuration allows
 * it; a reset of counters does not change it. Complete after super_node_stop(). */
uint64_t super_node_losses(struct super_node *sn);

/*
 * Waits until a stop was requested, all paths have ended (if `idle_stop` is set) or
 * `timeout_ms` has passed (< 0: no limit). Returns whether the super-node should end;
 * false also after a signal.
 */
bool super_node_wait(struct super_node *sn, int timeout_ms);

/*
 * Interrupts and joins paths, then stops nodes. May be called after a failed start. If the
 * end has a time limit, it logs a thread that does not end and leaves it alone, with the
 * nodes that the thread uses; it stops all other nodes.
 */
void super_node_stop(struct super_node *sn);
/* Whether such a thread still runs; then the process must end by _exit(). */
bool super_node_is_stuck(struct super_node *sn);
/* NULL allowed. Does not free a super-node that is stuck. */
void super_node_destroy(struct super_node *sn);

struct node *super_node_find(struct super_node *sn, const char *name);

/* The table printed at the end of `busbar run`. */
void super_node_print_summary(struct super_node *sn, FILE *out);
/* The same as an object (the caller decrefs it); NULL without memory. */
json_t *super_node_summary(struct super_node *sn);
/* One line of live figures (rate, p50/p99/max latency, lost, missed). */
void super_node_progress(struct super_node *sn, char *buf, size_t size);

#endif
