/* SPDX-License-Identifier: BSD-2-Clause */
/* The subnet manager at the port of a host; see manager.h. */
#define LOG_ROOM "fabric"
#include "fabric/serve/manager.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fabric/agent/agent.h"
#include "fabric/manager/manager.h"
#include "fabric/serve/state.h"
#include "util/log.h"
#include "wire/mad/port.h"

#define DELAY_NS UINT64_C(20000000) /* from a change of a link to the sweep: others come with it */
#define SWEEP_NS UINT64_C(10000000000)
#define ARRIVALS 1024 /* of each kind, a power of two */
#define PKEY_DEFAULT 0xffff

/* A MAD that has come. An answer of the manager's own node comes while it sends the request, so
 * all of them wait for the next tick. */
struct arrival {
	struct manager_address from;
	uint8_t mad[MAD_BYTES];
};

struct arrivals {
	uint32_t head, tail;
	struct arrival at[ARRIVALS];
};

struct serve_manager {
	struct serve *s;
	struct manager *m;
	uint32_t node;
	uint8_t port;
	bool done;
	uint64_t sweeps;
	struct manager_report last;
	uint64_t due_ns; /* of a sweep after a change of a link; UINT64_MAX: none */
	struct arrivals smps;
	struct arrivals queries; /* of subnet administration, which may take long: one in a turn */
};

static void on_send(void *arg, const struct manager_address *to, const uint8_t mad[MAD_BYTES])
{
	struct serve_manager *m = arg;
	const struct agent_address a = {
		.dlid = to->lid, .sl = to->sl, .src_qp = to->qpn, .dest_qp = to->qpn ? to->remote_qpn : 0,
		.qkey = to->qkey, .pkey = PKEY_DEFAULT,
	};
	int ret = fabric_agents_submit(m->s->agents, m->node, m->port, mad, &a, m->s->now_ns);

	if (ret)
		log_debug("a mad of the manager to lid %u is not sent: %s", to->lid, strerror(-ret));
}

static void on_swept(void *arg, const struct manager_report *r)
{
	struct serve_manager *m = arg;

	m->sweeps++;
	m->last = *r;
	if (r->unanswered)
		log_warn("%u of %u requests of the subnet manager got no answer: the fabric works in part",
			 r->unanswered, r->requests);
	else if (!m->done)
		log_info("LIDs and tables are set, the ports are active");
	m->done = true;
}

/* The first host with a link, or the first one. */
static bool find_place(const struct serve *s, uint32_t *node, uint8_t *port)
{
	for (int with_link = 1; with_link >= 0; with_link--)
		for (uint32_t i = 0; i < s->host_count; i++) {
			const struct serve_host *h = &s->hosts[i];

			if (with_link && !fabric_link_is_up(s->fabric, h->node, h->port))
				continue;
			*node = h->node;
			*port = h->port;
			return true;
		}
	return false;
}

int serve_manager_open(struct serve *s, struct serve_manager **out)
{
	struct manager_config config = { .routing = MANAGER_UP_DOWN, .lanes = s->set.lanes,
					 .sweep_ns = SWEEP_NS, .retries = 9 };
	struct serve_manager *m = calloc(1, sizeof(*m));
	int ret = -ENOMEM;

	if (!m)
		return ret;
	m->s = s;
	m->due_ns = UINT64_MAX;
	if (!find_place(s, &m->node, &m->port)) {
		m->done = true; /* a fabric without a host has nobody to serve */
		*out = m;
		return 0;
	}
	config.port_guid = s->topology->nodes[m->node].ports[m->port].guid;
	ret = manager_open(&config, &(struct manager_ops){ on_send, on_swept, m }, &m->m);
	if (ret) {
		free(m);
		return ret;
	}
	fabric_agents_set_capability(s->agents, m->node, m->port, MAD_CAP_SM, 0, s->now_ns);
	*out = m;
	return 0;
}

void serve_manager_close(struct serve_manager *m)
{
	if (!m)
		return;
	manager_close(m->m);
	free(m);
}

void serve_manager_link(struct serve_manager *m, uint64_t now_ns)
{
	m->due_ns = now_ns + DELAY_NS;
}

bool serve_manager_is_done(const struct serve_manager *m)
{
	return m->done;
}

uint64_t serve_manager_sweeps(const struct serve_manager *m, struct manager_report *last)
{
	*last = m->last;
	return m->sweeps;
}

/* ---- MADs ---- */

/* Answers to its own requests, traps, questions to a manager and to subnet administration. */
static bool is_for_manager(const struct mad_header *h)
{
	const bool smp = h->mgmt_class == MAD_CLASS_SUBN_LID || h->mgmt_class == MAD_CLASS_SUBN_DIRECTED;

	if (smp && h->method == MAD_GET_RESP)
		return h->tid >> 32 == MANAGER_TID;
	if (smp)
		return h->method == MAD_TRAP || h->attr_id == MAD_ATTR_SM_INFO;
	return h->mgmt_class == MAD_CLASS_SUBN_ADM && !(h->method & MAD_RESPONSE);
}

bool serve_manager_deliver(struct serve_manager *m, uint32_t node, uint8_t port, const uint8_t *mad,
			   const struct agent_address *from)
{
	struct mad_header header;
	struct arrivals *q;
	struct arrival *a;

	if (!m->m || m->node != node || m->port != port || !mad_header_read(mad, MAD_BYTES, &header) ||
	    !is_for_manager(&header))
		return false;
	q = header.mgmt_class == MAD_CLASS_SUBN_ADM ? &m->queries : &m->smps;
	if (q->tail - q->head >= ARRIVALS)
		return true; /* lost, and repeated */
	a = &q->at[q->tail++ % ARRIVALS];
	a->from = (struct manager_address){
		.lid = from->slid, .qpn = (uint8_t)from->dest_qp, .sl = from->sl,
		.remote_qpn = from->src_qp, .qkey = from->qkey,
	};
	memcpy(a->mad, mad, sizeof(a->mad));
	return true;
}

/* ---- time ---- */

uint64_t serve_manager_next_ns(const struct serve_manager *m)
{
	uint64_t at_ns = m->due_ns;

	if (m->smps.head != m->smps.tail || m->queries.head != m->queries.tail)
		return 0;
	if (m->m && manager_due_ns(m->m) < at_ns)
		at_ns = manager_due_ns(m->m);
	return at_ns;
}

static void take(struct serve_manager *m, struct arrivals *q, uint64_t now_ns)
{
	/* A copy: the answer to it may bring more. */
	const struct arrival a = q->at[q->head++ % ARRIVALS];

	manager_receive(m->m, &a.from, a.mad, now_ns);
}

void serve_manager_tick(struct serve_manager *m, uint64_t now_ns)
{
	if (!m->m)
		return;
	if (now_ns >= m->due_ns) {
		m->due_ns = UINT64_MAX;
		manager_sweep(m->m);
	}
	while (m->smps.head != m->smps.tail)
		take(m, &m->smps, now_ns);
	if (m->queries.head != m->queries.tail)
		take(m, &m->queries, now_ns);
	manager_turn(m->m, now_ns);
}
