/* SPDX-License-Identifier: BSD-2-Clause */
#include "agent_net.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fabric/topology/generate.h"

#define HOPS_MAX 64

static void fail(const char *what, const char *why)
{
	fprintf(stderr, "failed: %s: %s\n", what, why);
	exit(1);
}

/* ---- what agents send and say ---- */

static void push(struct net *n, const struct net_mad *m)
{
	if (n->tail - n->head == NET_QUEUE)
		fail("the network of MADs", "more wait than one exchange can cause");
	n->queue[n->tail++ % NET_QUEUE] = *m;
}

static void on_send(void *arg, uint32_t node, uint8_t port, const uint8_t mad[MAD_BYTES],
		    const struct agent_address *to)
{
	struct net *n = arg;
	struct net_mad m = {.node = node, .port = port, .address = *to};

	memcpy(m.mad, mad, sizeof(m.mad));
	n->sent++;
	push(n, &m);
}

static void on_deliver(void *arg, uint32_t node, uint8_t port, const uint8_t mad[MAD_BYTES],
		       const struct agent_address *from)
{
	struct net *n = arg;
	struct net_mad *m = &n->got[n->got_count++ % NET_LOG];

	*m = (struct net_mad){.node = node, .port = port, .address = *from};
	memcpy(m->mad, mad, sizeof(m->mad));
	if (n->delivered)
		n->delivered(n->arg, m);
}

static void on_changed(void *arg, uint32_t node, uint8_t port, const struct plug_port *p)
{
	struct net *n = arg;

	(void)port;
	n->changes++;
	n->reregisters += p->client_reregister;
	n->changed_node = node;
	n->changed = *p;
}

static void on_link(void *arg, uint32_t node, uint8_t port, bool up)
{
	struct net *n = arg;

	if (n->agents)
		fabric_agents_link(n->agents, node, port, up, n->now_ns);
}

/* ---- making ---- */

static void make_engine(struct net *n, const struct fabric_agents_limits *limits)
{
	/* Its packets are never sent, so there is no need of memory for many. */
	const struct fabric_limits few = {.packets = 1024, .flows = 64};
	const struct fabric_ops ops = {.link = on_link, .arg = n};
	const struct topology *t = n->topology;

	if (fabric_open(&few, &ops, 1, &n->engine))
		fail("fabric_open()", "no memory");
	for (uint32_t i = 0; i < t->node_count; i++)
		if (fabric_add_node(n->engine, t->nodes[i].kind == TOPOLOGY_SWITCH ? FABRIC_SWITCH : FABRIC_HOST,
				    t->nodes[i].port_count) != (int)i)
			fail("fabric_add_node()", t->nodes[i].id);
	for (uint32_t i = 0; i < t->link_count; i++) {
		const struct topology_link *l = &t->links[i];
		const struct fabric_link link = {
			.bps = topology_link_bit_rate(l), .delay_ps = l->delay_ns * 1000,
			.mtu = limits && limits->mtu ? limits->mtu : 4096,
			.lanes = limits && limits->lanes ? limits->lanes : 8, .buffer_bytes = 16384,
		};

		if (fabric_add_link(n->engine, l->end[0].node, l->end[0].port, l->end[1].node, l->end[1].port,
				    &link))
			fail("fabric_add_link()", "refused");
	}
}

void net_open(struct net *n, const char *what, const struct fabric_agents_limits *limits)
{
	const struct fabric_agents_ops ops = {on_send, on_deliver, on_changed, n};
	char why[256];
	int err;

	*n = (struct net){.now_ns = 1000000};
	err = strchr(what, '/') ? topology_read_file(what, &n->topology, why, sizeof(why)) :
				  topology_generate(what, &n->topology, why, sizeof(why));
	if (err)
		fail(what, why);
	n->queue = calloc(NET_QUEUE, sizeof(*n->queue));
	if (!n->queue)
		fail(what, "no memory");
	make_engine(n, limits);
	if (fabric_agents_open(n->topology, n->engine, limits, &ops, &n->agents))
		fail("fabric_agents_open()", "refused");
}

void net_close(struct net *n)
{
	fabric_agents_close(n->agents);
	fabric_close(n->engine);
	topology_free(n->topology);
	free(n->queue);
}

uint32_t net_node(const struct net *n, const char *name)
{
	const uint32_t node = topology_find_name(n->topology, name);

	if (node == TOPOLOGY_NONE)
		fail("no such node", name);
	return node;
}

/* ---- carrying ---- */

static bool is_switch(const struct net *n, uint32_t node)
{
	return n->topology->nodes[node].kind == TOPOLOGY_SWITCH;
}

/* Over one link. False: there is none, or it is down. */
static bool cross(struct net *n, uint32_t *node, uint8_t *port)
{
	struct topology_end peer;

	if (!fabric_link_is_up(n->engine, *node, *port) || !topology_peer(n->topology, *node, *port, &peer))
		return false;
	*node = peer.node;
	*port = peer.port;
	return true;
}

/* Where the switch's table leads; 0: to its management port. */
static uint8_t table(const struct net *n, uint32_t node, uint16_t lid)
{
	uint8_t port = MAD_FORWARDING_NONE;

	fabric_get_forwarding(n->engine, node, lid, &port, 1);
	return port;
}

static void carry(struct net *n, const struct net_mad *m)
{
	const bool directed = m->address.dlid == MAD_LID_PERMISSIVE;
	uint32_t node = m->node;
	uint8_t port = m->port;

	if (!port && is_switch(n, node))
		port = table(n, node, m->address.dlid);
	for (unsigned hops = 0; hops < HOPS_MAX && port && port != MAD_FORWARDING_NONE; hops++) {
		const uint8_t out = port;

		if (!cross(n, &node, &port))
			break;
		(void)out;
		if (!directed && is_switch(n, node)) {
			const uint8_t next = table(n, node, m->address.dlid);

			if (next) {
				port = next;
				continue;
			}
		}
		fabric_agents_receive(n->agents, node, port, m->mad, &m->address, n->now_ns);
		return;
	}
	n->lost++;
}

void net_run(struct net *n)
{
	while (n->head != n->tail) {
		const struct net_mad m = n->queue[n->head++ % NET_QUEUE];

		carry(n, &m);
	}
}

/* ---- a process that asks ---- */

static bool ask(struct net *n, uint32_t node, const struct agent_address *to, uint8_t mad[MAD_BYTES])
{
	const unsigned before = n->got_count;

	if (fabric_agents_submit(n->agents, node, 1, mad, to, n->now_ns))
		return false;
	net_run(n);
	for (unsigned i = before; i != n->got_count; i++) {
		const struct net_mad *m = &n->got[i % NET_LOG];

		/* The same transaction. */
		if (m->node != node || !(m->mad[3] & MAD_RESPONSE) || memcmp(m->mad + 8, mad + 8, 8))
			continue;
		memcpy(mad, m->mad, MAD_BYTES);
		return true;
	}
	return false;
}

bool net_directed(struct net *n, uint32_t node, const uint8_t *path, struct mad_smp *smp)
{
	const struct agent_address to = {.slid = MAD_LID_PERMISSIVE, .dlid = MAD_LID_PERMISSIVE};
	uint8_t mad[MAD_BYTES];

	smp->mgmt_class = MAD_CLASS_SUBN_DIRECTED;
	smp->class_version = MAD_VERSION_SUBN;
	smp->dr_slid = smp->dr_dlid = MAD_LID_PERMISSIVE;
	smp->hop_pointer = smp->hop_count = 0;
	smp->returning = false;
	memset(smp->initial_path, 0, sizeof(smp->initial_path));
	memset(smp->return_path, 0, sizeof(smp->return_path));
	for (; *path; path++)
		smp->initial_path[++smp->hop_count] = *path;
	return mad_smp_pack(smp, mad) && ask(n, node, &to, mad) && mad_smp_unpack(mad, sizeof(mad), smp);
}

static uint16_t ask_port_info(struct net *n, uint32_t node, const uint8_t *path, struct mad_smp *smp)
{
	static uint64_t tid = UINT64_C(1) << 20;

	smp->attr_id = MAD_ATTR_PORT_INFO;
	smp->tid = ++tid;
	return net_directed(n, node, path, smp) ? smp->status : 0xffff;
}

uint16_t net_get_port_info(struct net *n, uint32_t node, const uint8_t *path, uint32_t port,
			   struct mad_port_info *info)
{
	struct mad_smp smp = {.method = MAD_GET, .attr_mod = port};
	const uint16_t status = ask_port_info(n, node, path, &smp);

	mad_port_info_unpack(smp.data, info);
	return status;
}

uint16_t net_set_port_info(struct net *n, uint32_t node, const uint8_t *path, uint32_t port,
			   const struct mad_port_info *info)
{
	struct mad_smp smp = {.method = MAD_SET, .attr_mod = port};

	mad_port_info_pack(info, smp.data);
	return ask_port_info(n, node, path, &smp);
}

bool net_by_lid(struct net *n, uint32_t node, uint16_t lid, uint8_t qp, uint8_t mad[MAD_BYTES])
{
	const struct agent_address to = {.dlid = lid, .src_qp = qp, .dest_qp = qp, .pkey = 0xffff,
					 .qkey = qp ? 0x80010000u : 0};

	return ask(n, node, &to, mad);
}
