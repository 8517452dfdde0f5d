/* SPDX-License-Identifier: BSD-2-Clause */
#include "fabric/agent/trap.h"

#include <string.h>

#include "fabric/agent/emit.h"

#define REPEATS_LONGER 6 /* the interval doubles so often */

static const struct agent_port *end_port(const struct agent_node *n, uint8_t port)
{
	return &n->port[agent_end_port(n, port)];
}

static uint64_t interval_ns(const struct agent_node *n, const struct agent_notice *t)
{
	return (UINT64_C(4096) << end_port(n, t->port)->info.subnet_timeout) << MIN(t->repeats, REPEATS_LONGER);
}

static uint8_t type_of(uint16_t trap)
{
	switch (trap) {
	case MAD_TRAP_LINK_STATE_CHANGE:
	case MAD_TRAP_LOCAL_LINK_INTEGRITY:
	case MAD_TRAP_BUFFER_OVERRUN:
	case MAD_TRAP_FLOW_CONTROL_UPDATE:
		return MAD_NOTICE_URGENT;
	case MAD_TRAP_CAPABILITY_CHANGE:
	case MAD_TRAP_SYSTEM_IMAGE_GUID_CHANGE:
		return MAD_NOTICE_INFORMATION;
	}
	return MAD_NOTICE_SECURITY;
}

static void send(struct fabric_agents *a, struct agent_node *n, struct agent_notice *t)
{
	const struct mad_port_info *info = &end_port(n, t->port)->info;
	const struct agent_address to = {.slid = info->lid, .dlid = info->master_sm_lid,
					 .sl = info->master_sm_sl};
	struct mad_notice notice = {.is_generic = 1, .type = t->type,
				    .producer_type = n->is_switch ? MAD_NODE_SWITCH : MAD_NODE_CA,
				    .trap_number = t->trap, .issuer_lid = info->lid, .toggle = t->toggle};
	struct mad_smp smp = {.mgmt_class = MAD_CLASS_SUBN_LID, .class_version = MAD_VERSION_SUBN,
			      .method = MAD_TRAP, .tid = t->tid, .attr_id = MAD_ATTR_NOTICE};
	uint8_t mad[MAD_BYTES];

	memcpy(notice.details, t->details, sizeof(notice.details));
	mad_notice_pack(&notice, smp.data);
	mad_smp_pack(&smp, mad);
	agent_emit(a, n, agent_end_port(n, t->port), mad, &to);
}

static struct agent_notice *find(struct agent_node *n, uint8_t port, uint16_t trap)
{
	struct agent_notice *idle = NULL;

	for (unsigned i = 0; i < AGENT_NOTICES; i++) {
		struct agent_notice *t = &n->notice[i];

		if (t->trap == trap && t->port == port)
			return t;
		if (!t->pending && (!idle || t->last_ns < idle->last_ns))
			idle = t;
	}
	if (idle)
		*idle = (struct agent_notice){.trap = trap, .port = port, .type = type_of(trap)};
	return idle;
}

void agent_trap_raise(struct fabric_agents *a, struct agent_node *n, uint8_t port, uint16_t trap,
		      const uint8_t details[MAD_NOTICE_DETAILS_BYTES], uint64_t now_ns)
{
	const struct mad_port_info *info = &end_port(n, port)->info;
	struct agent_notice *t;

	if (!info->lid || !info->master_sm_lid)
		return;
	t = find(n, port, trap);
	if (!t)
		return;
	memcpy(t->details, details, sizeof(t->details));
	/* A TrapRepress that is on its way does not mean this occurrence. */
	t->tid = ++a->tid;
	if (t->pending)
		return;
	t->pending = true;
	t->repeats = 0;
	t->toggle ^= 1;
	t->due_ns = t->last_ns ? MAX(now_ns, t->last_ns + interval_ns(n, t)) : now_ns;
	agent_time_node(a, n);
	agent_trap_tick(a, n, now_ns);
}

void agent_trap_repress(struct fabric_agents *a, struct agent_node *n, uint64_t tid)
{
	for (unsigned i = 0; i < AGENT_NOTICES; i++)
		if (n->notice[i].pending && n->notice[i].tid == (uint32_t)tid) {
			n->notice[i].pending = false;
			a->counts.traps_repressed++;
		}
}

void agent_trap_tick(struct fabric_agents *a, struct agent_node *n, uint64_t now_ns)
{
	for (unsigned i = 0; i < AGENT_NOTICES; i++) {
		struct agent_notice *t = &n->notice[i];

		if (!t->pending || t->due_ns > now_ns)
			continue;
		if (t->repeats)
			a->counts.traps_repeated++;
		else
			a->counts.traps++;
		t->due_ns = now_ns + interval_ns(n, t);
		t->last_ns = MAX(now_ns, 1);
		t->repeats += t->repeats <= REPEATS_LONGER;
		send(a, n, t);
	}
}

uint64_t agent_trap_due(const struct agent_node *n)
{
	uint64_t due = UINT64_MAX;

	for (unsigned i = 0; i < AGENT_NOTICES; i++)
		if (n->notice[i].pending)
			due = MIN(due, n->notice[i].due_ns);
	return due;
}

void agent_trap_link_state(struct fabric_agents *a, struct agent_node *n, uint64_t now_ns)
{
	const struct mad_trap_link_state details = {.lid = n->port[0].info.lid};
	uint8_t bytes[MAD_NOTICE_DETAILS_BYTES];

	mad_trap_link_state_pack(&details, bytes);
	agent_trap_raise(a, n, 0, MAD_TRAP_LINK_STATE_CHANGE, bytes, now_ns);
}
