/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What becomes of a packet that comes to a port; see input.h. A switch that cuts through takes it over
 * with its header; whether a bit error is in it shows at its end, and then it is not forwarded (a
 * real switch may have begun to, and marks the end as bad).
 */
#include "engine/fabric/input.h"

#include "engine/fabric/credit.h"
#include "engine/fabric/forward.h"
#include "engine/fabric/report.h"

static void count_received(struct fabric_port *o, const struct fabric_item *item)
{
	struct fabric_counters *c = &o->counters;

	c->rcv_packets++;
	c->rcv_words += (item->packet.bytes - FABRIC_VCRC_BYTES) / 4;
	if (item->packet.dlid >= FABRIC_LID_MULTICAST && item->packet.dlid != FABRIC_LID_PERMISSIVE)
		c->multicast_rcv++;
	else
		c->unicast_rcv++;
}

/* The packet is in the buffer; false: it was refused. */
static bool accept_packet(struct fabric *f, struct fabric_item *item)
{
	struct fabric_port *o = item->in;
	struct fabric_lane *lane = fabric_lane_of(o, item->in_lane);
	bool partition = item->in_lane != FABRIC_LANE_MANAGEMENT && o->setting.enforce_in &&
			 o->is_switch &&
			 !fabric_forward_is_member(o, item->packet.pkey);

	fabric_report_event(f, FABRIC_EVENT_ARRIVED, item->tail_ps, item, o, 0);
	fabric_credit_arrived(f, lane, item->blocks);
	if (fabric_port_receives(o, item->in_lane) && !partition) {
		count_received(o, item);
		return true;
	}
	fabric_credit_freed(f, lane, item->blocks);
	if (partition)
		o->counters.rcv_constraint++;
	else
		o->counters.rcv_errors++;
	fabric_report_refusal(f, item, o, partition ? FABRIC_DROP_PARTITION : FABRIC_DROP_STATE);
	return false;
}

static void get_ready(struct fabric *f, struct fabric_item *item)
{
	item->stage = FABRIC_STAGE_READY;
	if (item->in->node->sw.latency_ps)
		fabric_queue_arm(&f->queue, &item->due,
				 f->now_ps + item->in->node->sw.latency_ps);
	else
		fabric_forward(f, item);
}

static void tail_came(struct fabric *f, struct fabric_item *item)
{
	struct fabric_port *o = item->in;

	if (item->packet.flags & FABRIC_CORRUPT) {
		fabric_credit_damaged(f, fabric_lane_of(o, item->in_lane));
		fabric_report_drop(f, item, o, FABRIC_DROP_CORRUPT);
	} else if (!accept_packet(f, item)) {
		return;
	} else if (o->is_switch) {
		get_ready(f, item);
	} else {
		fabric_credit_freed(f, fabric_lane_of(o, item->in_lane), item->blocks);
		fabric_report_delivery(f, item, o);
	}
}

void fabric_input_due(struct fabric *f, struct fabric_due *due)
{
	struct fabric_item *item = container_of(due, struct fabric_item, due);

	if (item->stage == FABRIC_STAGE_READY) {
		fabric_forward(f, item);
	} else if (item->stage == FABRIC_STAGE_TAIL) {
		tail_came(f, item);
	} else if (item->packet.flags & FABRIC_CORRUPT) {
		item->stage = FABRIC_STAGE_TAIL;
		fabric_queue_arm(&f->queue, &item->due, item->tail_ps);
	} else if (accept_packet(f, item)) {
		get_ready(f, item);
	}
}
