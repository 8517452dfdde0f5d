/* SPDX-License-Identifier: BSD-2-Clause */
/* What paths call on a node: read, write, state. Life cycle: node_life.c. */
#define LOG_ROOM "gateway/node"
#include "gateway/plugin/node.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "gateway/plugin/node_losses.h"
#include "gateway/plugin/tap.h"
#include "util/log.h"

const char *node_state_name(enum node_state s)
{
	static const char *const names[] = {
		[NODE_DESTROYED] = "destroyed",
		[NODE_INITIALIZED] = "initialized",
		[NODE_PARSED] = "parsed",
		[NODE_CHECKED] = "checked",
		[NODE_PREPARED] = "prepared",
		[NODE_STARTED] = "started",
		[NODE_PENDING_CONNECT] = "pending-connect",
		[NODE_CONNECTED] = "connected",
		[NODE_STOPPED] = "stopped",
	};

	return (unsigned)s < ARRAY_SIZE(names) ? names[s] : "unknown";
}

bool node_group_opens(const json_t *group)
{
	size_t hooks = json_object_get(group, "hooks") != NULL;

	hooks += json_object_get(group, "builtin") != NULL;
	return json_is_object(group) && (!hooks || json_object_size(group) > hooks);
}

bool node_side_is_open(const struct node_type *t, const json_t *cfg, const char *group)
{
	const char *other = strcmp(group, "in") ? "in" : "out";

	return !(t->flags & NODE_NEEDS_GROUP) || json_object_get(cfg, group) ||
	       !node_group_opens(json_object_get(cfg, other));
}

void node_set_state(struct node *n, enum node_state s)
{
	int was = atomic_exchange_explicit(&n->state, (int)s,
					   memory_order_acq_rel);

	if (was != (int)s)
		log_debug("node %s: %s, was %s", n->name, node_state_name(s),
			  node_state_name((enum node_state)was));
}

bool node_is_running(struct node *n)
{
	switch (node_state(n)) {
	case NODE_STARTED:
	case NODE_PENDING_CONNECT:
	case NODE_CONNECTED:
		return true;
	default:
		return false;
	}
}

void node_tell_connected(struct node *n, enum node_state *told, bool connected)
{
	enum node_state state = connected ? NODE_CONNECTED : NODE_PENDING_CONNECT;

	if (*told == state || !node_is_running(n))
		return;
	*told = state;
	node_set_state(n, state);
}

void node_rearm_nothing(struct node *n)
{
}

int node_read(struct node *n, struct sample *smps[], unsigned cnt,
	      unsigned *release)
{
	struct signal_list *signals = n->in.signals;
	int ret;

	if (unlikely(!n->type->read))
		return -ENOTSUP;
	ret = n->type->read(n, smps, cnt, release);
	if (ret <= 0)
		return ret;
	assert((unsigned)ret <= cnt);
	for (int i = 0; i < ret; i++)
		if (!smps[i]->signals)
			smps[i]->signals = signals;
	atomic_fetch_add_explicit(&n->counters.received, (uint64_t)ret,
				  memory_order_relaxed);
	tap_note(&n->in.tap, smps, (unsigned)ret);
	return ret;
}

int node_write(struct node *n, struct sample *smps[], unsigned cnt,
	       unsigned *release)
{
	int ret;

	if (unlikely(!n->type->write))
		return -ENOTSUP;
	n->told = 0;
	/* Before the node may reorder and replace them. */
	tap_note(&n->out.tap, smps, cnt);
	ret = n->type->write(n, smps, cnt, release);
	if (likely(ret > 0)) {
		assert((unsigned)ret <= cnt);
		atomic_fetch_add_explicit(&n->counters.sent, (uint64_t)ret,
					  memory_order_relaxed);
	}
	if (unlikely(ret < (int)cnt))
		node_count_unsent(n, ret, cnt - (unsigned)(ret > 0 ? ret : 0));
	return ret;
}
