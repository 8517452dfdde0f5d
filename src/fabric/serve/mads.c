/* SPDX-License-Identifier: BSD-2-Clause */
/* MADs of clients; see mads.h. */
#include "fabric/serve/mads.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fabric/agent/agent.h"
#include "fabric/manager/manager.h"
#include "fabric/serve/datagram.h"
#include "fabric/serve/out.h"
#include "fabric/serve/pool.h"
#include "wire/cm_answer.h"

#define TIMEOUT_MS_MAX 600000u
#define RETRIES_MAX 64u
#define AT_RMPP_VERSION 24
#define AT_RMPP_TYPE 25
#define AT_RMPP_FLAGS 26
#define RMPP_ACTIVE 1
#define RMPP_DATA 1
#define AT_CLASS 1
#define AT_OUI 37 /* of vendor classes with one */

static bool is_smp(uint8_t class)
{
	return class == MAD_CLASS_SUBN_LID || class == MAD_CLASS_SUBN_DIRECTED;
}

static bool has_oui(uint8_t class)
{
	return class >= MAD_CLASS_VENDOR_2_FIRST && class <= MAD_CLASS_VENDOR_2_LAST;
}

/* Answers are found by their transaction id. */
static bool is_answer(const struct mad_header *m)
{
	return m->method & MAD_RESPONSE || m->method == MAD_TRAP_REPRESS;
}

/* ---- agents ---- */

static bool methods_overlap(const struct plug_agent *a, const struct plug_agent *b)
{
	for (unsigned i = 0; i < 4; i++)
		if (a->method_mask[i] & b->method_mask[i])
			return true;
	return false;
}

/* Would a request find both? */
static bool agents_conflict(const struct plug_agent *a, const struct plug_agent *b)
{
	return a->class == b->class && a->class_version == b->class_version &&
	       (!has_oui(a->class) || !memcmp(a->oui, b->oui, sizeof(a->oui))) &&
	       methods_overlap(a, b);
}

static bool is_taken(const struct serve_host *h, const struct plug_agent *what)
{
	list_for_each (c, &h->clients, struct serve_client, in_host)
		for (unsigned i = 0; i < SERVE_AGENTS_MAX; i++)
			if (c->agents[i].open && agents_conflict(&c->agents[i].what, what))
				return true;
	return false;
}

int serve_mads_open(struct serve_client *c, uint32_t agent, const struct plug_agent *what)
{
	struct serve_agent *a;

	if (agent >= SERVE_AGENTS_MAX || what->qpn > 1 || is_smp(what->class) != !what->qpn)
		return -EINVAL;
	a = &c->agents[agent];
	if (a->open)
		return -EEXIST;
	if (!is_taken(c->host, what)) {
		if (!++c->serve->next_tid)
			c->serve->next_tid = 1;
		*a = (struct serve_agent){ .open = true, .tid = c->serve->next_tid, .what = *what };
	}
	serve_out_message(c, PLUG_AGENT, agent, a->tid, NULL, 0);
	return 0;
}

static void forget(struct serve_pending *p)
{
	wheel_cancel(&p->client->serve->wheel, &p->timer);
	list_remove(&p->in_client);
	p->client->pending_count--;
	p->client->host->pending_count--;
	free(p);
}

int serve_mads_close(struct serve_client *c, uint32_t agent)
{
	if (agent >= SERVE_AGENTS_MAX || !c->agents[agent].open)
		return -ENOENT;
	c->agents[agent] = (struct serve_agent){ .open = false };
	list_for_each_safe (p, &c->pending, struct serve_pending, in_client)
		if (p->to.agent == agent)
			forget(p);
	return 0;
}

void serve_mads_end(struct serve_client *c)
{
	for (unsigned i = 0; i < SERVE_AGENTS_MAX; i++)
		serve_mads_close(c, i);
}

/* ---- sending ---- */

static bool is_rmpp_control(const struct mad_header *m, const uint8_t *mad)
{
	return (m->mgmt_class == MAD_CLASS_SUBN_ADM || has_oui(m->mgmt_class)) &&
	       mad[AT_RMPP_VERSION] && mad[AT_RMPP_FLAGS] & RMPP_ACTIVE &&
	       mad[AT_RMPP_TYPE] != RMPP_DATA;
}

static int submit(struct serve_client *c, const struct plug_mad *to, const uint8_t *mad)
{
	const struct plug_port *port = &c->host->state;
	struct agent_address a = {
		.slid = to->path_bits, .dlid = to->lid, .sl = to->sl & 15, .src_qp = to->qpn ? 1 : 0,
		.dest_qp = to->qpn, .qkey = to->qkey,
	};

	if (to->qpn)
		a.pkey = port->pkeys[to->pkey_index];
	if (to->grh) {
		uint64_t prefix = htobe64(port->subnet_prefix), guid = htobe64(port->guids[to->gid_index]);

		a.grh = true;
		a.hop_limit = to->hop_limit;
		a.traffic_class = to->traffic_class;
		a.flow_label = to->flow_label & 0xfffff;
		memcpy(a.sgid, &prefix, sizeof(prefix));
		memcpy(a.sgid + 8, &guid, sizeof(guid));
		memcpy(a.dgid, to->gid, sizeof(a.dgid));
	}
	return fabric_agents_submit(c->serve->agents, c->host->node, c->host->port, mad, &a,
				    c->serve->now_ns);
}

/* Where the fabric's process manages the subnet, other processes may look, but neither change what the
 * manager has set nor answer or wake it in the place of a node. */
static bool may_pass_manager(const struct mad_header *m)
{
	return m->method == MAD_GET || (m->method == MAD_GET_RESP && m->tid >> 32 != MANAGER_TID);
}

bool serve_mads_permitted(const struct serve_client *c, const struct mad_header *m)
{
	bool sets = m->mgmt_class == MAD_CLASS_PERF || m->mgmt_class == MAD_CLASS_CONG_MGT ||
		    is_smp(m->mgmt_class);

	return c->may_change || !sets || m->method == MAD_GET;
}

static int check(const struct serve_client *c, const struct plug_mad *to,
		 const struct mad_header *m, const uint8_t *mad)
{
	const struct plug_port *port = &c->host->state;

	if (to->agent >= SERVE_AGENTS_MAX || !c->agents[to->agent].open)
		return -ENOENT;
	if (m->base_version != MAD_BASE_VERSION || is_smp(m->mgmt_class) != !to->qpn || to->qpn > 1 ||
	    c->agents[to->agent].what.qpn != (to->qpn ? 1 : 0))
		return -EINVAL;
	if (to->qpn && (to->pkey_index >= PLUG_PKEYS || !(port->pkeys[to->pkey_index] & 0x7fff)))
		return -EINVAL;
	if (to->grh && (to->gid_index >= PLUG_GUIDS || !port->guids[to->gid_index]))
		return -EINVAL;
	if (to->path_bits >> port->lmc)
		return -EINVAL;
	if (!is_answer(m) && !is_rmpp_control(m, mad) &&
	    (uint32_t)(m->tid >> 32) != c->agents[to->agent].tid)
		return -EPERM;
	if (c->serve->manager && is_smp(m->mgmt_class) && !may_pass_manager(m))
		return -EPERM;
	return serve_mads_permitted(c, m) ? 0 : -EPERM;
}

static void arm(struct serve_pending *p)
{
	uint32_t ms = p->to.timeout_ms < TIMEOUT_MS_MAX ? p->to.timeout_ms : TIMEOUT_MS_MAX;

	wheel_arm(&p->client->serve->wheel, &p->timer,
		  p->client->serve->now_ns + ms * UINT64_C(1000000));
}

static int remember(struct serve_client *c, const struct plug_mad *to, const uint8_t *mad,
		    uint64_t tid)
{
	struct serve_pending *p;

	if (c->pending_count >= SERVE_PENDING_MAX || c->host->pending_count >= SERVE_PENDING_OF_HOST_MAX)
		return -ENOSPC;
	p = calloc(1, sizeof(*p));
	if (!p)
		return -ENOMEM;
	p->client = c;
	p->to = *to;
	p->tid = tid;
	p->retries = to->retries < RETRIES_MAX ? to->retries : RETRIES_MAX;
	memcpy(p->mad, mad, sizeof(p->mad));
	wheel_timer_init(&p->timer);
	list_push(&c->pending, &p->in_client);
	c->pending_count++;
	c->host->pending_count++;
	arm(p);
	return 0;
}

int serve_mads_send(struct serve_client *c, const struct plug_mad *to,
		    const uint8_t mad[PLUG_MAD_BYTES])
{
	struct mad_header m;
	int ret;

	mad_header_unpack(mad, &m);
	ret = check(c, to, &m, mad);
	if (!ret && to->timeout_ms && !is_answer(&m)) {
		/* What cannot be sent now is repeated like what is lost. */
		ret = remember(c, to, mad, m.tid);
		if (!ret)
			submit(c, to, mad);
		return ret;
	}
	return ret ? ret : submit(c, to, mad);
}

/* ---- receiving ---- */

static void give(struct serve_client *c, const struct plug_mad *from, const uint8_t *mad)
{
	struct serve_buffer *b = serve_pool_take(&c->serve->pool);

	if (!b) {
		c->serve->mads_lost++;
		return;
	}
	memcpy(b->body, from, sizeof(*from));
	memcpy(b->body + sizeof(*from), mad, PLUG_MAD_BYTES);
	serve_pool_head(b, PLUG_MAD, 0, 0, sizeof(*from) + PLUG_MAD_BYTES);
	serve_out_packet(c, b);
	serve_pool_give(&c->serve->pool, b);
}

void serve_mads_expire(struct serve_pending *p)
{
	struct serve_client *c = p->client;

	if (p->retries) {
		p->retries--;
		arm(p);
		submit(c, &p->to, p->mad);
		return;
	}
	p->to.status = ETIMEDOUT;
	give(c, &p->to, p->mad);
	forget(p);
}

static bool agent_takes(const struct serve_agent *a, const struct mad_header *m, const uint8_t *mad)
{
	if (!a->open)
		return false;
	if (is_answer(m))
		return (uint32_t)(m->tid >> 32) == a->tid;
	return a->what.class == m->mgmt_class && a->what.class_version == m->class_version &&
	       (!has_oui(m->mgmt_class) || !memcmp(a->what.oui, mad + AT_OUI, sizeof(a->what.oui))) &&
	       a->what.method_mask[(m->method & 0x7f) / 32] >> (m->method % 32) & 1;
}

static struct serve_client *find_agent(struct serve_host *h, const struct mad_header *m,
				       const uint8_t *mad, uint32_t *agent)
{
	list_for_each (c, &h->clients, struct serve_client, in_host)
		for (*agent = 0; *agent < SERVE_AGENTS_MAX; ++*agent)
			if (agent_takes(&c->agents[*agent], m, mad))
				return c;
	return NULL;
}

/* The request with this transaction id has its answer. */
static void settle(struct serve_client *c, uint32_t agent, const struct mad_header *m)
{
	list_for_each (p, &c->pending, struct serve_pending, in_client)
		if (p->to.agent == agent && p->tid == m->tid && p->mad[AT_CLASS] == m->mgmt_class) {
			forget(p);
			return;
		}
}

static struct plug_mad describe(const struct serve_host *h, const struct agent_address *from)
{
	struct plug_mad d = {
		.qpn = from->src_qp, .qkey = from->qkey, .lid = from->slid, .sl = from->sl,
		.path_bits = (uint8_t)(from->dlid & ((1u << h->state.lmc) - 1)),
	};

	for (unsigned i = 0; i < PLUG_PKEYS && from->dest_qp; i++)
		if (h->state.pkeys[i] && !((h->state.pkeys[i] ^ from->pkey) & 0x7fff)) {
			d.pkey_index = (uint16_t)i;
			break;
		}
	if (from->grh) {
		d.grh = 1;
		d.hop_limit = from->hop_limit;
		d.traffic_class = from->traffic_class;
		d.flow_label = from->flow_label;
		memcpy(d.gid, from->sgid, sizeof(d.gid));
	}
	return d;
}

/* No process of the host takes connections: a request is refused, as by a host without that service. */
static void refuse(struct serve_host *h, struct serve *s, const uint8_t *mad,
		   const struct agent_address *from)
{
	struct agent_address to = *from;
	uint8_t bytes[CM_MAD_SIZE];
	struct cm_mad request, answer;

	if (wire_cm_decode(mad, CM_MAD_SIZE, &request) ||
	    wire_cm_refusal(&request, CM_REASON_INVALID_SERVICE_ID, &answer) ||
	    wire_cm_encode(&answer, bytes))
		return;
	to.slid = (uint16_t)(from->dlid & ((1u << h->state.lmc) - 1));
	to.dlid = from->slid;
	to.src_qp = from->dest_qp;
	to.dest_qp = from->src_qp;
	memcpy(to.sgid, from->dgid, sizeof(to.sgid));
	memcpy(to.dgid, from->sgid, sizeof(to.dgid));
	fabric_agents_submit(s->agents, h->node, h->port, bytes, &to, s->now_ns);
}

/* Communication management, and answers of subnet administration, for one of the processes with queue
 * pairs: which one, they know. */
static void give_packets(struct serve_host *h, struct serve *s, const uint8_t *mad,
			 const struct agent_address *from)
{
	struct serve_buffer *b = NULL;
	struct ib_native n;

	if (!from->dest_qp)
		return;
	list_for_each (c, &h->clients, struct serve_client, in_host) {
		if (c->purpose != PLUG_VERBS)
			continue;
		if (!b) {
			b = serve_pool_take(&s->pool);
			if (!b) {
				s->mads_lost++;
				return;
			}
			serve_pool_head(b, PLUG_PACKET, 0, 0,
					serve_datagram_mad(mad, from, &n, b->body));
		}
		serve_out_packet(c, b);
	}
	if (b)
		serve_pool_give(&s->pool, b);
	else
		refuse(h, s, mad, from);
}

void serve_mads_deliver(struct serve_host *h, struct serve *s, const uint8_t mad[PLUG_MAD_BYTES],
			const struct agent_address *from)
{
	struct plug_mad d = describe(h, from);
	struct serve_client *c;
	struct mad_header m;

	mad_header_unpack(mad, &m);
	c = find_agent(h, &m, mad, &d.agent);
	if (!c) {
		give_packets(h, s, mad, from);
		return;
	}
	if (is_answer(&m))
		settle(c, d.agent, &m);
	give(c, &d, mad);
}
