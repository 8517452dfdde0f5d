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

/* Takes ownership of nothing; `c` must outlive the super-node. Reports every
 * error it finds through config_fail(). 0 or a negative errno. */
int super_node_new(struct super_node **out, struct config *c);

/* prepare - pools - start nodes - start paths. On failure everything that was
 * started is stopped again. */
int super_node_start(struct super_node *sn);

/* The log level was given in another way and counts more than `logging`; before
 * start. */
void super_node_keep_log_level(struct super_node *sn);

/* What `idle_stop` is for configurations that do not say (false); for all that are
 * made from now on. With paths in them: without any, such a one waits to be given
 * some. */
void super_node_set_idle_stop(bool on);

/* Asks for the end, from any thread or a signal handler. */
void super_node_request_stop(struct super_node *sn);

/* The same; the end is to come soon, as with a signal: who runs the super-node asks
 * by the second function, and limits its time (gateway/base/ending.h). */
void super_node_request_shutdown(struct super_node *sn);
bool super_node_must_end_soon(struct super_node *sn);

/* Says in the log what it is busy with, when that takes too long. Any thread. */
void super_node_tell_unfinished(struct super_node *sn);

/*
 * What a node has to do is not done and will not be: it gave up its peer, or could
 * not end as it should. The others go on; who runs the super-node tells in the end.
 * Any thread.
 */
void super_node_note_failure(struct super_node *sn);
bool super_node_has_failed(struct super_node *sn);
/* Samples that were lost though no policy of the configuration allows it; since the
 * start, whatever was set to zero. Complete after super_node_stop(). */
uint64_t super_node_losses(struct super_node *sn);

/*
 * Waits until a stop was requested, all paths have ended (when `idle_stop` is
 * set) or `timeout_ms` has passed (< 0: none). Returns true when it should end;
 * false also when a signal came.
 */
bool super_node_wait(struct super_node *sn, int timeout_ms);

/*
 * Interrupts and joins paths, stops nodes. Safe after a failed start. Where the end
 * has a limit in time, a thread that does not come out is logged and left behind, with
 * the nodes that it is in; the other nodes are stopped.
 */
void super_node_stop(struct super_node *sn);
/* Something was left behind: the process has to end by _exit(). */
bool super_node_is_stuck(struct super_node *sn);
/* NULL allowed; one that is stuck stays in memory. */
void super_node_destroy(struct super_node *sn);

struct node *super_node_find(struct super_node *sn, const char *name);

/* The table printed at the end of `busbar run`. */
void super_node_print_summary(struct super_node *sn, FILE *out);
/* The same as an object (caller decrefs); NULL on no memory. */
json_t *super_node_summary(struct super_node *sn);
/* One line of live figures (rate, p50/p99/max latency, lost, missed). */
void super_node_progress(struct super_node *sn, char *buf, size_t size);

#endif
