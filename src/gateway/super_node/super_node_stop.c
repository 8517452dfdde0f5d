/* SPDX-License-Identifier: BSD-2-Clause */
/* Nodes whose peers may keep them from ending stop side by side. */
#define LOG_ROOM "gateway"
#include <stdlib.h>

#include "gateway/base/ending.h"
#include "gateway/base/thread.h"
#include "gateway/plugin/node_life.h"
#include "gateway/super_node/super_node_private.h"
#include "util/log.h"

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
	super_node_note_stopped(s->node, s->ret);
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
	super_node_doing(sn, "stop of nodes", "that wait for their peers");
	list_for_each(n, &sn->nodes, struct node, entry) {
		if (!may_wait(n) || !goes(n) || !super_node_leave_node(n))
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
