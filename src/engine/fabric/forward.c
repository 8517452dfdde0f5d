/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Where a packet in a node leaves; see forward.h. The table is read once, when the switch decides; a
 * later change does not move packets that wait. Multicast packets are replicated when they have
 * come completely, and the copies leave one after the other; the buffer is free when the last one has.
 */
#include "engine/fabric/forward.h"

#include "engine/fabric/report.h"
#include "engine/fabric/source.h"

#define FULL_MEMBER 0x8000u

struct fabric_port *fabric_forward_lookup(const struct fabric_node *n, uint16_t dlid)
{
	uint8_t port = dlid < n->forwarding_count && dlid <= n->forwarding_top
			       ? n->forwarding[dlid] : FABRIC_NO_PORT;

	return port <= n->ports ? &n->port[port] : NULL;
}

uint8_t fabric_forward_lane(const struct fabric_node *n, uint8_t in, uint8_t out, uint8_t sl)
{
	return n->sl_to_lane ? n->sl_to_lane[in * (n->ports + 1u) + out][sl & 15] : 0;
}

bool fabric_forward_is_member(const struct fabric_port *o, uint16_t pkey)
{
	for (uint32_t i = 0; i < o->pkey_count; i++)
		if (!((o->pkeys[i] ^ pkey) & (FULL_MEMBER - 1)) && (o->pkeys[i] & (FULL_MEMBER - 1)) &&
		    ((o->pkeys[i] | pkey) & FULL_MEMBER))
			return true;
	return false;
}

/* The packet ends here; its buffer is free. */
static void drop(struct fabric *f, struct fabric_item *item, struct fabric_port *o,
		 enum fabric_drop why)
{
	fabric_source_release(f, item->in, item->in_lane, item->blocks, item->holder);
	fabric_report_drop(f, item, o, why);
}

static bool wait_for_tail(struct fabric *f, struct fabric_item *item)
{
	if (item->tail_ps <= f->now_ps)
		return false;
	item->stage = FABRIC_STAGE_READY;
	fabric_queue_arm(&f->queue, &item->due, item->tail_ps);
	return true;
}

static void to_management(struct fabric *f, struct fabric_item *item)
{
	if (wait_for_tail(f, item))
		return;
	fabric_source_release(f, item->in, item->in_lane, item->blocks, item->holder);
	item->out = NULL;
	fabric_report_delivery(f, item, item->in);
}

void fabric_forward_out(struct fabric *f, struct fabric_item *item, struct fabric_port *out,
			struct fabric_source *s)
{
	bool management = item->packet.lane == FABRIC_LANE_MANAGEMENT;

	item->out = out;
	if (!out->up) {
		drop(f, item, out, FABRIC_DROP_LINK_DOWN);
	} else if (!fabric_port_sends(out, item->packet.lane)) {
		drop(f, item, out, FABRIC_DROP_STATE);
	} else if (item->packet.bytes - FABRIC_VCRC_BYTES >
		   (uint32_t)out->setting.mtu + FABRIC_OVERHEAD_BYTES) {
		drop(f, item, out, FABRIC_DROP_TOO_LONG);
	} else if (!management && item->out_lane >= out->setting.lanes) {
		/* Also lane 15, which is for management alone. */
		drop(f, item, item->in, FABRIC_DROP_LANE);
	} else if (!management && out->setting.enforce_out && out->is_switch &&
		   !fabric_forward_is_member(out, item->packet.pkey)) {
		out->counters.xmit_constraint++;
		fabric_source_release(f, item->in, item->in_lane, item->blocks, item->holder);
		fabric_report_refusal(f, item, out, FABRIC_DROP_PARTITION);
	} else {
		fabric_source_push(f, s, item);
	}
}

/* To an output port of a switch. */
static void to_port(struct fabric *f, struct fabric_item *item, struct fabric_port *out)
{
	struct fabric_port *in = item->in;
	bool management = item->packet.lane == FABRIC_LANE_MANAGEMENT;
	struct fabric_source *s;

	if (!out->up) {
		drop(f, item, in, FABRIC_DROP_NO_ROUTE);
		return;
	}
	/* A faster port would run out of bytes. */
	if (in->number && out->bps > in->bps && wait_for_tail(f, item))
		return;
	item->out_lane = management ? FABRIC_LANE_MANAGEMENT :
		fabric_forward_lane(in->node, in->number, out->number, item->packet.sl);
	if (!in->number) {
		s = &in->own[item->out_lane];
	} else {
		struct fabric_lane *lane = fabric_lane_of(in, item->in_lane);

		s = lane->has_outputs && !management ? &lane->by_output[out->number] : &lane->in;
	}
	if (management && s->count >= FABRIC_MANAGEMENT_PACKETS)
		drop(f, item, in, FABRIC_DROP_MANAGEMENT);
	else
		fabric_forward_out(f, item, out, s);
}

static void to_one(struct fabric *f, struct fabric_item *item, struct fabric_port *out)
{
	if (!out)
		drop(f, item, item->in, FABRIC_DROP_NO_ROUTE);
	else if (!out->number)
		to_management(f, item);
	else
		to_port(f, item, out);
}

/* Does a copy of the multicast packet go to this port? */
static bool is_target(const struct fabric_item *item, unsigned port)
{
	const struct fabric_node *n = item->in->node;
	uint32_t group = item->packet.dlid - FABRIC_LID_MULTICAST;

	return group < n->multicast_count && port != item->in->number &&
	       (n->multicast[group][port / 16] >> (port % 16) & 1) &&
	       (!port || n->port[port].up);
}

/* NULL: the limit of packets is reached, and this port gets none. */
static struct fabric_item *copy(struct fabric *f, struct fabric_item *item)
{
	struct fabric_item *c = fabric_item_new(f);

	if (!c)
		return NULL;
	c->packet = item->packet;
	if (f->ops.share)
		c->packet.data = f->ops.share(f->ops.arg, item->packet.data);
	c->in = item->in;
	c->in_lane = item->in_lane;
	c->tail_ps = item->tail_ps;
	f->inside++;
	return c;
}

static void to_group(struct fabric *f, struct fabric_item *item)
{
	unsigned ports = item->in->node->ports, left = 0;
	struct fabric_item *holder = NULL;

	for (unsigned i = 0; i <= ports; i++)
		left += is_target(item, i);
	if (left > 1) {
		holder = fabric_item_new(f);
		if (!holder)
			left = 1; /* the first port alone */
	}
	if (holder) {
		holder->stage = FABRIC_STAGE_HOLDER;
		holder->blocks = item->blocks;
		holder->refs = 1;
		item->holder = holder;
	}
	for (unsigned i = 0; left && i <= ports; i++) {
		struct fabric_item *one = item;

		if (!is_target(item, i))
			continue;
		if (--left) {
			one = copy(f, item);
			if (!one) {
				item->in->node->port[i].counters.xmit_discards++;
				continue;
			}
			one->holder = holder;
			holder->refs++;
		}
		to_one(f, one, &item->in->node->port[i]);
		if (one == item)
			return;
	}
	drop(f, item, item->in, FABRIC_DROP_NO_ROUTE);
}

void fabric_forward(struct fabric *f, struct fabric_item *item)
{
	uint16_t dlid = item->packet.dlid;

	if (dlid == FABRIC_LID_PERMISSIVE) {
		to_management(f, item);
	} else if (item->packet.hops > f->node_count) {
		/* Real packets circle until a buffer is full; here they would take the processor from all, and
		 * copies of multicast packets all packets. */
		drop(f, item, item->in, FABRIC_DROP_LIFETIME);
	} else if (dlid < FABRIC_LID_MULTICAST) {
		to_one(f, item, fabric_forward_lookup(item->in->node, dlid));
	} else if (item->packet.lane == FABRIC_LANE_MANAGEMENT) {
		drop(f, item, item->in, FABRIC_DROP_NO_ROUTE);
	} else if (!wait_for_tail(f, item)) {
		to_group(f, item);
	}
}
