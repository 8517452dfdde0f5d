/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which agent of a node gets a MAD, and where its answer goes.
 */
#include <errno.h>
#include <string.h>

#include "fabric/agent/emit.h"
#include "fabric/agent/gmp.h"
#include "fabric/agent/sma.h"
#include "fabric/agent/smi.h"

/* A MAD at a node. */
struct visit {
	struct fabric_agents *a;
	struct agent_node *n;
	uint8_t port; /* where it came in */
	const struct agent_address *from;
	enum agent_origin origin;
	uint64_t now_ns;
};

static void take_step(const struct visit *v, uint8_t mad[MAD_BYTES]);

static uint8_t end_port(const struct visit *v)
{
	return agent_end_port(v->n, v->port);
}

static void answer_by_lid(const struct visit *v, const uint8_t mad[MAD_BYTES])
{
	const struct agent_address to = agent_reverse(v->from);

	agent_emit(v->a, v->n, end_port(v), mad, &to);
}

/* The directed part of the path ended at this node, or it came by LID from where it ended. */
static void at_agent(const struct visit *v, uint8_t mad[MAD_BYTES])
{
	const bool by_lid = v->origin == AGENT_FROM_LID &&
		(mad[MAD_SMP_AT_DR_DLID] != 0xff || mad[MAD_SMP_AT_DR_DLID + 1] != 0xff);
	struct visit back = *v;

	switch (agent_sma(v->a, v->n, v->port, mad, v->from, v->now_ns)) {
	case AGENT_NOTHING:
		break;
	case AGENT_PROCESS:
		agent_emit_local(v->a, v->n, v->port, mad, v->from);
		break;
	case AGENT_ANSWER:
		mad[MAD_SMP_AT_DIRECTION] |= MAD_SMP_D;
		back.origin = AGENT_FROM_NODE;
		if (by_lid)
			answer_by_lid(v, mad);
		else
			take_step(&back, mad);
		break;
	}
}

/* The route by LID before or behind the directed part. */
static void by_lid(const struct visit *v, const uint8_t mad[MAD_BYTES], uint16_t lid)
{
	const struct agent_address to = {.slid = v->n->port[end_port(v)].info.lid, .dlid = lid};

	if (!to.slid || !lid)
		v->a->counts.bad_route++;
	else
		agent_emit(v->a, v->n, end_port(v), mad, &to);
}

static void take_step(const struct visit *v, uint8_t mad[MAD_BYTES])
{
	const struct agent_step s = agent_smi_step(mad, v->n->is_switch, v->port, v->origin);

	switch (s.way) {
	case AGENT_DISCARD:
		v->a->counts.bad_route++;
		break;
	case AGENT_OUT:
		if (v->origin != AGENT_FROM_NODE)
			v->a->counts.forwarded++;
		agent_emit_directed(v->a, v->n, s.port, mad);
		break;
	case AGENT_BY_LID:
		by_lid(v, mad, s.lid);
		break;
	case AGENT_TO_AGENT:
		at_agent(v, mad);
		break;
	case AGENT_TO_PROCESS:
		agent_emit_local(v->a, v->n, v->port, mad, v->from);
		break;
	}
}

static void at_sma(const struct visit *v, uint8_t mad[MAD_BYTES])
{
	switch (agent_sma(v->a, v->n, v->port, mad, v->from, v->now_ns)) {
	case AGENT_NOTHING:
		break;
	case AGENT_PROCESS:
		agent_emit_local(v->a, v->n, v->port, mad, v->from);
		break;
	case AGENT_ANSWER:
		answer_by_lid(v, mad);
		break;
	}
}

static void at_gsi(const struct visit *v, uint8_t mad[MAD_BYTES], const struct mad_header *h)
{
	const bool request = !(h->method & MAD_RESPONSE);
	bool answer;

	if (request && h->mgmt_class == MAD_CLASS_PERF)
		answer = agent_pma(v->a, v->n, v->port, mad, h, v->now_ns);
	else if (request && h->mgmt_class == MAD_CLASS_CONG_MGT)
		answer = agent_cc(v->a, v->n, v->port, mad, h, v->now_ns);
	else if (!v->n->is_switch) {
		agent_emit_local(v->a, v->n, v->port, mad, v->from);
		return;
	} else {
		/* A switch has no processes: the class is not supported. */
		answer = mad_make_response(mad, MAD_STATUS_BAD_VERSION);
		if (!answer)
			v->a->counts.bad_mad++;
	}
	if (!answer)
		return;
	v->a->counts.answered++;
	answer_by_lid(v, mad);
}

static void visit(const struct visit *v, const uint8_t from_wire[MAD_BYTES])
{
	const bool qp0 = !v->from->dest_qp;
	uint8_t mad[MAD_BYTES];
	struct mad_header h;
	bool smp;

	if (!mad_header_read(from_wire, MAD_BYTES, &h)) {
		v->a->counts.bad_mad++;
		return;
	}
	smp = h.mgmt_class == MAD_CLASS_SUBN_LID || h.mgmt_class == MAD_CLASS_SUBN_DIRECTED;
	if (smp != qp0) {
		v->a->counts.bad_mad++;
		return;
	}
	memcpy(mad, from_wire, sizeof(mad));
	if (h.mgmt_class == MAD_CLASS_SUBN_DIRECTED)
		take_step(v, mad);
	else if (v->origin == AGENT_FROM_LINK)
		v->a->counts.bad_lid++;
	else if (smp)
		at_sma(v, mad);
	else
		at_gsi(v, mad, &h);
}

void fabric_agents_receive(struct fabric_agents *a, uint32_t node, uint8_t port,
			   const uint8_t mad[MAD_BYTES], const struct agent_address *from,
			   uint64_t now_ns)
{
	struct agent_node *n = agent_node_at(a, node);
	struct visit v = {.a = a, .n = n, .port = port, .from = from, .now_ns = now_ns};

	a->counts.received++;
	if (!n || port > n->ports || (!port && !n->is_switch)) {
		a->counts.bad_lid++;
		return;
	}
	v.origin = from->dlid == MAD_LID_PERMISSIVE ? AGENT_FROM_LINK : AGENT_FROM_LID;
	if (v.origin == AGENT_FROM_LID && !agent_has_lid(&n->port[agent_end_port(n, port)], from->dlid)) {
		a->counts.bad_lid++;
		return;
	}
	if (v.origin == AGENT_FROM_LINK && !port) {
		a->counts.bad_route++;
		return;
	}
	visit(&v, mad);
}

/* Whether the SMP, whose directed part begins at its sender, is one that the port can send. */
static bool begins_well(const uint8_t *mad, uint8_t port)
{
	struct agent_step s;
	uint8_t copy[MAD_BYTES];

	memcpy(copy, mad, sizeof(copy));
	s = agent_smi_step(copy, false, port, AGENT_FROM_NODE);
	return s.way != AGENT_DISCARD;
}

int fabric_agents_submit(struct fabric_agents *a, uint32_t node, uint8_t port,
			 const uint8_t mad[MAD_BYTES], const struct agent_address *to, uint64_t now_ns)
{
	struct agent_port *p = agent_host_port_at(a, node, port);
	struct agent_address address = *to;
	struct visit v = {.a = a, .port = port, .from = &address, .origin = AGENT_FROM_NODE,
			  .now_ns = now_ns};
	const bool permissive = to->dlid == MAD_LID_PERMISSIVE;
	struct mad_header h;

	if (!p || !mad_header_read(mad, MAD_BYTES, &h))
		return -EINVAL;
	a->counts.received++;
	v.n = agent_node_at(a, node);
	if (h.mgmt_class == MAD_CLASS_SUBN_DIRECTED && permissive) {
		if (to->dest_qp || !begins_well(mad, port))
			return -EINVAL;
		address.slid = MAD_LID_PERMISSIVE;
		visit(&v, mad);
		return 0;
	}
	if (permissive || !to->dlid)
		return -EINVAL;
	if (p->info.lmc)
		address.slid = p->info.lid | (to->slid & ((1u << p->info.lmc) - 1));
	else
		address.slid = p->info.lid;
	if (agent_has_lid(p, to->dlid)) {
		v.origin = AGENT_FROM_LID;
		visit(&v, mad);
		return 0;
	}
	if (!p->up || (to->dest_qp && p->info.port_state != MAD_PORT_ACTIVE))
		return -ENETDOWN;
	a->ops.send(a->ops.arg, node, port, mad, &address);
	return 0;
}
