/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Asks for memory ahead of the events that need it; see ahead.h. The ports, lanes and packets of a large
 * subnet do not fit into a cache, and an event goes from one to the other by pointers, so that it would wait for
 * each of them in turn. Here the first structures of many events are asked for at once, then those that these
 * point to, and so on: the processor waits for all of them together.
 */
#include "engine/fabric/ahead.h"

#include "engine/fabric/forward.h"

static struct fabric_item *item_of(struct fabric_due *due)
{
	return container_of(due, struct fabric_item, due);
}

static struct fabric_lane *lane_of(struct fabric_due *due)
{
	const struct fabric_flow_control *fc = container_of(due, struct fabric_flow_control, due);

	return container_of(fc - due->index, struct fabric_lane, flow_control[0]);
}

static void fetch(const void *line)
{
	__builtin_prefetch(line, 1);
}

/* The event itself, and what lies beside it. */
static void first(struct fabric_due *due)
{
	fetch(due);
	fetch(due + 1);
}

/* What the event points to. */
static void second(struct fabric_due *due)
{
	if (due->kind == FABRIC_DUE_PACKET) {
		const struct fabric_item *item = item_of(due);

		fetch(item->in);
		if (item->stage == FABRIC_STAGE_READY)
			fetch(item->in->node);
		else
			fetch(&item->in->counters);
	} else if (due->kind == FABRIC_DUE_OUTPUT) {
		const struct fabric_port *o = container_of(due, struct fabric_port, due);

		fetch(o);
		fetch(&o->weights);
		fetch(&o->counters);
		fetch(o->sending);
		fetch(o->sending_in);
	} else if (due->kind == FABRIC_DUE_CREDIT) {
		fetch(lane_of(due));
	}
}

static void third(struct fabric_due *due)
{
	if (due->kind == FABRIC_DUE_PACKET) {
		const struct fabric_item *item = item_of(due);
		const struct fabric_lane *lane;
		const struct fabric_port *out;

		if (!item->in->lanes) /* port 0 */
			return;
		lane = fabric_lane_of(item->in, item->in_lane);
		fetch(lane);
		if (item->stage != FABRIC_STAGE_READY)
			return;
		fetch(&lane->in);
		out = fabric_forward_lookup(item->in->node, item->packet.dlid);
		if (out) {
			fetch(out);
			fetch(&out->byte_ps);
			fetch(out->lanes);
		}
	} else if (due->kind == FABRIC_DUE_OUTPUT) {
		const struct fabric_port *o = container_of(due, struct fabric_port, due);

		fetch(o->lanes);
		if (o->sending && o->sending->head) {
			fetch(o->sending->head);
			fetch(&fabric_item_of(o->sending->head)->tail_ps);
		}
		if (o->sending && o->sending_in->lanes)
			fetch(fabric_lane_of(o->sending_in, o->sending_lane));
	} else if (due->kind == FABRIC_DUE_CREDIT) {
		fetch(lane_of(due)->peer);
	}
}

void fabric_ahead(struct fabric_due *const *due, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		first(due[i]);
	for (unsigned i = 0; i < count; i++)
		second(due[i]);
	for (unsigned i = 0; i < count; i++)
		third(due[i]);
}
