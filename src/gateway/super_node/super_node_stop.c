/* SPDX-License-Identifier: BSD-2-Clause */
/* Stops nodes; those whose peers may keep them from ending side by side. */
#define LOG_ROOM "gateway"
#include <stdlib.h>

#include "gateway/base/ending.h"
#include "gateway/base/thread.h"
#include "gateway/plugin/hook.h"
#include "gateway/plugin/node_life.h"
#include "gateway/super_node/super_node_private.h"
#include "util/log.h"

void super_node_stop_hooks(struct node *n)
{
	hook_list_interrupt(n->in.hooks);
	hook_list_interrupt(n->out.hooks);
	hook_list_stop(n->in.hooks);
	hook_list_stop(n->out.hooks);
}

static void note_stopped(struct node *n, int ret)
{
	/* A node that fails to stop must not keep the others running. */
	if (ret)
		services_note_failure(n->services);
	node_log_losses(n);
	node_set_state(n, NODE_STOPPED);
	super_node_stop_hooks(n);
}

int super_node_stop_node(struct node *n)
{
	if (node_is_running(n))
		note_stopped(n, node_stop(n));
	return 0;
}

/* Shuts the gates of the node. False: a thread is in its read or write, and the end of the process
 * does not wait for it. */
static bool leave(struct node *n)
{
	gate_shut(&n->in.gate, GATE_STOPPED);
	gate_shut(&n->out.gate, GATE_STOPPED);
	return !ending_has_begun() || (gate_is_empty(&n->in.gate) && gate_is_empty(&n->out.gate));
}

int super_node_stop_left_node(struct node *n)
{
	if (!node_is_running(n))
		return 0;
	if (leave(n))
		return super_node_stop_node(n);
	log_error("node %s: is not stopped, because a thread is in it", n->name);
	return 0;
}

/* ---- side by side ---- */

struct stop {
	struct node *node;
	pthread_t thread;
	bool has_thread;
	int ret;
};

static void *run(void *arg)
{
	struct stop *s = arg;

	s->ret = node_stop(s->node);
	return NULL;
}

static bool may_wait(struct node *n)
{
	return n->type->flags & NODE_STOP_WAITS && node_is_running(n);
}

/* False: the node goes on to use what the stop has. */
static bool finish(struct stop *s)
{
	if (s->has_thread && !thread_join_in_time(s->thread)) {
		log_error("node %s: does not stop", s->node->name);
		node_set_state(s->node, NODE_STOPPED);
		return false;
	}
	note_stopped(s->node, s->ret);
	return true;
}

void super_node_stop_waiting(struct super_node *sn, bool (*goes)(struct node *n))
{
	struct stop *stops;
	unsigned count = 0, i = 0;
	bool all = true;

	list_for_each(n, &sn->nodes, struct node, entry)
		count += may_wait(n) && goes(n);
	/* Of a single one, the caller's own loop takes no longer. */
	stops = count > 1 ? calloc(count, sizeof(*stops)) : NULL;
	if (!stops)
		return;
	list_for_each(n, &sn->nodes, struct node, entry) {
		if (!may_wait(n) || !goes(n) || !leave(n))
			continue;
		stops[i].node = n;
		stops[i].has_thread =
			!thread_start(&stops[i].thread, "stop", THREAD_AS_CALLER, run, &stops[i]);
		if (!stops[i].has_thread)
			run(&stops[i]);
		i++;
	}
	while (i--)
		all &= finish(&stops[i]);
	/* A thread that did not end still writes into its part. */
	if (all)
		free(stops);
	sn->stuck |= !all;
}
