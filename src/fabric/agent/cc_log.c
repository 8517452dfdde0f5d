/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The congestion log and the clock of the congestion control agent (IBA volume 1, annex A10). The newest
 * event stands first. A log is cleared by nothing: its counter tells how many events there were, and
 * stops at its greatest value.
 */
#include <errno.h>
#include <string.h>

#include "fabric/agent/gmp.h"

#define STAMP_NS 1024 /* a time stamp counts 1.024 us */
#define MARKED 1      /* congestion_flags: FECNs, or rates that were limited */

static uint32_t stamp(uint64_t now_ns)
{
	return (uint32_t)(now_ns / STAMP_NS);
}

uint16_t agent_get_time_stamp(struct agent_request *r)
{
	const struct mad_time_stamp t = {.time_stamp = stamp(r->now_ns)};

	mad_time_stamp_pack(&t, r->data);
	return MAD_STATUS_OK;
}

uint16_t agent_get_congestion_log(struct agent_request *r)
{
	struct mad_congestion_log_switch of_switch = r->node->cc.log;
	struct mad_congestion_log_ca of_port;

	if (r->node->is_switch) {
		of_switch.log_type = MAD_LOG_SWITCH;
		of_switch.current_time_stamp = stamp(r->now_ns);
		mad_congestion_log_switch_pack(&of_switch, r->data);
	} else {
		of_port = r->node->port[r->in_port].host->cc.log;
		of_port.log_type = MAD_LOG_CA;
		of_port.current_time_stamp = stamp(r->now_ns);
		mad_congestion_log_ca_pack(&of_port, r->data);
	}
	return MAD_STATUS_OK;
}

int fabric_agents_becn(struct fabric_agents *a, uint32_t node, uint8_t port, const struct agent_becn *b,
		       uint64_t now_ns)
{
	struct agent_port *p = agent_host_port_at(a, node, port);
	struct mad_congestion_log_ca *log;

	if (!p || b->sl > 15 || b->service > 15)
		return -EINVAL;
	log = &p->host->cc.log;
	memmove(log->event + 1, log->event, (MAD_CC_CA_EVENTS - 1) * sizeof(log->event[0]));
	log->event[0] = (struct mad_congestion_event_ca){
		.local_qp = b->local_qp & 0xffffff, .remote_qp = b->remote_qp & 0xffffff,
		.local_lid = b->local_lid, .remote_lid = b->remote_lid,
		.sl = b->sl, .service_type = b->service, .time_stamp = stamp(now_ns),
	};
	log->congestion_flags |= MARKED;
	log->threshold_event_map |= (uint16_t)(1u << b->sl);
	log->threshold_event_counter += log->threshold_event_counter < UINT16_MAX;
	return 0;
}

int fabric_agents_marked(struct fabric_agents *a, uint32_t node, uint8_t port, uint16_t slid,
			 uint16_t dlid, uint8_t sl, uint64_t now_ns)
{
	struct agent_node *n = agent_node_at(a, node);
	struct mad_congestion_log_switch *log;

	if (!n || !n->is_switch || !port || port > n->ports || sl > 15)
		return -EINVAL;
	log = &n->cc.log;
	memmove(log->event + 1, log->event, (MAD_CC_SWITCH_EVENTS - 1) * sizeof(log->event[0]));
	log->event[0] = (struct mad_congestion_event_switch){slid, dlid, sl, stamp(now_ns)};
	log->congestion_flags |= MARKED;
	log->port_map[31 - port / 8] |= (uint8_t)(1u << port % 8);
	log->log_events_counter += log->log_events_counter < UINT16_MAX;
	return 0;
}
