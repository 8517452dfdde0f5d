/* SPDX-License-Identifier: BSD-2-Clause */
/* The records of subnet administration, made from what the last sweep found (IBA volume 1, 15.2.5). */
#include <errno.h>
#include <string.h>

#include "fabric/manager/sa.h"
#include "fabric/manager/state.h"
#include "util/container_of.h"
#include "wire/mad/sa.h"

#define PACKET_LIFE 18
/* Paths between all ports that are looked for, for one query: other work waits meanwhile. */
#define PATHS_MAX 16384u
#define PATH_HOPS_MAX 64

static bool is_switch(const struct manager_node *n)
{
	return n->info.node_type == MAD_NODE_SWITCH;
}

#define ADD(a, type, value)                                      \
	do {                                                     \
		uint8_t *record_ = sa_answer_record(a);          \
		if (record_ && type##_pack(value, record_))      \
			sa_answer_keep(a, record_);              \
	} while (0)

/* ---- nodes, ports, links ---- */

/* The ports of a node that have a LID of their own. */
static bool is_end_port(const struct manager_node *n, unsigned port)
{
	return is_switch(n) ? !port : port && n->ports[port].known;
}

static void nodes(const struct manager *m, struct sa_answer *a)
{
	a->record_bytes = 108;
	for (uint32_t i = 0; i < m->node_count; i++) {
		const struct manager_node *n = &m->nodes[i];

		for (unsigned p = 0; p <= n->info.num_ports; p++) {
			struct mad_node_record r = { .info = n->info, .description = n->description };

			if (!is_end_port(n, p))
				continue;
			r.lid = manager_lid(n, (uint8_t)p);
			r.info.port_guid = n->ports[p].guid;
			r.info.local_port_num = (uint8_t)p;
			ADD(a, mad_node_record, &r);
		}
	}
}

static void ports(const struct manager *m, struct sa_answer *a)
{
	a->record_bytes = 68;
	for (uint32_t i = 0; i < m->node_count; i++) {
		const struct manager_node *n = &m->nodes[i];

		for (unsigned p = 0; p <= n->info.num_ports; p++) {
			const struct mad_port_info_record r = {
				.endport_lid = manager_lid(n, (uint8_t)p),
				.port_num = (uint8_t)p,
				.info = n->ports[p].info,
			};

			if (n->ports[p].known)
				ADD(a, mad_port_info_record, &r);
		}
	}
}

static void links(const struct manager *m, struct sa_answer *a)
{
	a->record_bytes = 6;
	for (uint32_t i = 0; i < m->node_count; i++) {
		const struct manager_node *n = &m->nodes[i];

		for (unsigned p = 1; p <= n->info.num_ports; p++) {
			const struct manager_port *port = &n->ports[p];
			struct mad_link_record r = { .from_port = (uint8_t)p, .to_port = port->peer_port };

			if (port->peer == MANAGER_NONE)
				continue;
			r.from_lid = manager_lid(n, (uint8_t)p);
			r.to_lid = manager_lid(&m->nodes[port->peer], port->peer_port);
			ADD(a, mad_link_record, &r);
		}
	}
}

static void switches(const struct manager *m, struct sa_answer *a)
{
	a->record_bytes = 24;
	for (uint32_t i = 0; i < m->node_count; i++) {
		const struct mad_switch_info_record r = { .lid = m->nodes[i].lid,
							  .info = m->nodes[i].switch_info };

		if (is_switch(&m->nodes[i]))
			ADD(a, mad_switch_info_record, &r);
	}
}

static void forwarding(const struct manager *m, struct sa_answer *a)
{
	a->record_bytes = 72;
	for (uint32_t i = 0; i < m->node_count; i++) {
		const struct manager_node *n = &m->nodes[i];

		for (unsigned b = 0; n->forwarding && b <= n->top / 64u; b++) {
			struct mad_linear_forwarding_record r = { .lid = n->lid, .block = (uint16_t)b };

			memset(r.table.port, MAD_FORWARDING_NONE, sizeof(r.table.port));
			memcpy(r.table.port, n->forwarding + b * 64, MIN(64u, n->top + 1u - b * 64));
			ADD(a, mad_linear_forwarding_record, &r);
		}
	}
}

static void managers(const struct manager *m, struct sa_answer *a)
{
	const struct mad_sm_info_record r = {
		.lid = m->sm_lid,
		.info = { .guid = m->config.port_guid, .act_count = m->act_count,
			  .priority = m->config.priority, .state = MAD_SM_MASTER },
	};

	a->record_bytes = 25;
	ADD(a, mad_sm_info_record, &r);
}

/* The first block of the table of each port: the default partition, which ports have by themselves. */
static void pkeys(const struct manager *m, struct sa_answer *a)
{
	a->record_bytes = 72;
	for (uint32_t i = 0; i < m->node_count; i++) {
		const struct manager_node *n = &m->nodes[i];

		for (unsigned p = 0; p <= n->info.num_ports; p++) {
			struct mad_pkey_table_record r = { .lid = manager_lid(n, (uint8_t)p),
							   .port_num = (uint8_t)p,
							   .table.pkey = { 0xffff } };

			if (is_end_port(n, p))
				ADD(a, mad_pkey_table_record, &r);
		}
	}
}

static void groups(const struct manager *m, struct sa_answer *a)
{
	a->record_bytes = MAD_MC_MEMBER_RECORD_BYTES;
	for (unsigned g = 0; g < MANAGER_GROUPS_MAX; g++) {
		struct mad_mc_member_record r = { 0 };

		if (!m->groups[g].used)
			continue;
		sa_member_fill(m, &m->groups[g], &r);
		ADD(a, mad_mc_member_record, &r);
	}
}

/* ---- paths ---- */

struct path_end {
	uint32_t node;
	uint8_t port;
};

static uint64_t gid_part(const uint8_t *from)
{
	uint64_t value = 0;

	for (unsigned i = 0; i < 8; i++)
		value = value << 8 | from[i];
	return value;
}

static void gid_make(const struct manager *m, const struct path_end *e, uint8_t gid[16])
{
	for (unsigned i = 0; i < 8; i++) {
		gid[i] = (uint8_t)(m->config.subnet_prefix >> (56 - 8 * i));
		gid[8 + i] = (uint8_t)(m->nodes[e->node].ports[e->port].guid >> (56 - 8 * i));
	}
}

/* The rate of a link, as records name it. */
static uint8_t rate_of(const struct mad_port_info *p)
{
	/* [speed: SDR, DDR, QDR, FDR, EDR, HDR, NDR][width: 1x, 4x, 8x, 12x] */
	static const uint8_t rates[7][4] = {
		{ MAD_RATE_2_5, MAD_RATE_10, MAD_RATE_20, MAD_RATE_30 },
		{ MAD_RATE_5, MAD_RATE_20, MAD_RATE_40, MAD_RATE_60 },
		{ MAD_RATE_10, MAD_RATE_40, MAD_RATE_80, MAD_RATE_120 },
		{ MAD_RATE_14, MAD_RATE_56, MAD_RATE_112, MAD_RATE_168 },
		{ MAD_RATE_25, MAD_RATE_100, MAD_RATE_200, MAD_RATE_300 },
		{ MAD_RATE_50, MAD_RATE_200, MAD_RATE_400, MAD_RATE_600 },
		{ MAD_RATE_100, MAD_RATE_400, MAD_RATE_400, MAD_RATE_600 },
	};
	const unsigned speed = p->link_speed_ext_active ?
				       3u + (unsigned)__builtin_ctz(p->link_speed_ext_active) :
				       p->link_speed_active ? (unsigned)__builtin_ctz(p->link_speed_active) : 0;
	const unsigned width = p->link_width_active ? (unsigned)__builtin_ctz(p->link_width_active) : 0;

	return rates[MIN(speed, 6u)][MIN(width, 3u)];
}

/* Gb/s times 10 of a rate's code, to compare two. */
static unsigned rate_value(uint8_t rate)
{
	static const uint16_t values[] = {
		[MAD_RATE_2_5] = 25, [MAD_RATE_10] = 100, [MAD_RATE_30] = 300, [MAD_RATE_5] = 50,
		[MAD_RATE_20] = 200, [MAD_RATE_40] = 400, [MAD_RATE_60] = 600, [MAD_RATE_80] = 800,
		[MAD_RATE_120] = 1200, [MAD_RATE_14] = 140, [MAD_RATE_56] = 560,
		[MAD_RATE_112] = 1120, [MAD_RATE_168] = 1680, [MAD_RATE_25] = 250,
		[MAD_RATE_100] = 1000, [MAD_RATE_200] = 2000, [MAD_RATE_300] = 3000,
		[MAD_RATE_28] = 280, [MAD_RATE_50] = 500, [MAD_RATE_400] = 4000,
		[MAD_RATE_600] = 6000,
	};

	return rate < ARRAY_SIZE(values) ? values[rate] : 0;
}

static void narrow(struct mad_path_record *r, const struct mad_port_info *p)
{
	const uint8_t rate = rate_of(p);

	r->mtu = MIN(r->mtu, p->neighbor_mtu ? p->neighbor_mtu : p->mtu_cap);
	if (rate_value(rate) < rate_value(r->rate))
		r->rate = rate;
}

/* Follows the forwarding tables from port to port, and takes the least MTU and rate. False: they do
 * not lead there. */
static bool walk(const struct manager *m, const struct path_end *from, const struct path_end *to,
		 struct mad_path_record *r)
{
	const uint16_t dlid = manager_lid(&m->nodes[to->node], to->port);
	struct path_end at = *from;

	r->mtu = MAD_MTU_4096;
	r->rate = MAD_RATE_600;
	for (unsigned hops = 0; hops < PATH_HOPS_MAX; hops++) {
		const struct manager_node *n = &m->nodes[at.node];
		uint8_t out = at.port;

		if (at.node == to->node && (is_switch(n) || at.port == to->port)) {
			if (!hops)
				narrow(r, &n->ports[at.port].info);
			return true;
		}
		if (is_switch(n))
			out = n->forwarding && dlid <= n->top ? n->forwarding[dlid] : 0;
		else if (hops)
			return false; /* an adapter forwards nothing */
		if (!out || out > n->info.num_ports || n->ports[out].peer == MANAGER_NONE)
			return false;
		narrow(r, &n->ports[out].info);
		at = (struct path_end){ n->ports[out].peer, n->ports[out].peer_port };
	}
	return false;
}

static void path(const struct manager *m, struct sa_answer *a, const struct path_end *from,
		 const struct path_end *to)
{
	struct mad_path_record r = {
		.dlid = manager_lid(&m->nodes[to->node], to->port),
		.slid = manager_lid(&m->nodes[from->node], from->port),
		.reversible = 1,
		.pkey = 0xffff,
		.mtu_selector = MAD_SELECT_EXACTLY,
		.rate_selector = MAD_SELECT_EXACTLY,
		.packet_life_selector = MAD_SELECT_EXACTLY,
		.packet_life = PACKET_LIFE,
	};

	if (!walk(m, from, to, &r))
		return;
	gid_make(m, to, r.dgid);
	gid_make(m, from, r.sgid);
	ADD(a, mad_path_record, &r);
}

/* An end that the query names by GID or LID. 1: it is *e; 0: it names none; -1: there is no such. */
static int named(const struct manager *m, const uint8_t gid[16], uint16_t lid, bool by_gid,
		 bool by_lid, struct path_end *e)
{
	if (by_gid)
		return gid_part(gid) == m->config.subnet_prefix &&
				       manager_port_by_guid(m, gid_part(gid + 8), &e->node, &e->port) ?
			       1 : -1;
	if (by_lid)
		return manager_port_by_lid(m, lid, &e->node, &e->port) ? 1 : -1;
	return 0;
}

/* All end ports, or the one that is named. */
static bool is_meant(int how, const struct path_end *e, uint32_t node, unsigned port)
{
	return how == 0 || (e->node == node && e->port == port);
}

static void paths(const struct manager *m, struct sa_answer *a)
{
	const uint64_t selected = MAD_COMPONENT(MAD_PATH_MTU_SELECTOR) | MAD_COMPONENT(MAD_PATH_MTU) |
				  MAD_COMPONENT(MAD_PATH_RATE_SELECTOR) | MAD_COMPONENT(MAD_PATH_RATE) |
				  MAD_COMPONENT(MAD_PATH_PACKET_LIFE_SELECTOR) |
				  MAD_COMPONENT(MAD_PATH_PACKET_LIFE) | MAD_COMPONENT(MAD_PATH_NUMB_PATH) |
				  MAD_COMPONENT(MAD_PATH_SERVICE_ID_8MSB) |
				  MAD_COMPONENT(MAD_PATH_SERVICE_ID_56LSB) |
				  MAD_COMPONENT(MAD_PATH_QOS_CLASS) | MAD_COMPONENT(MAD_PATH_REVERSIBLE) |
				  MAD_COMPONENT(MAD_PATH_TCLASS) | MAD_COMPONENT(MAD_PATH_FLOW_LABEL) |
				  MAD_COMPONENT(MAD_PATH_HOP_LIMIT);
	const uint64_t mask = a->mask;
	struct mad_path_record q;
	struct path_end from = { 0 }, to = { 0 };
	int from_how, to_how;

	mad_path_record_unpack(a->query, &q);
	a->record_bytes = 64;
	a->mask &= ~selected;
	from_how = named(m, q.sgid, q.slid, mask & MAD_COMPONENT(MAD_PATH_SGID),
			 mask & MAD_COMPONENT(MAD_PATH_SLID), &from);
	to_how = named(m, q.dgid, q.dlid, mask & MAD_COMPONENT(MAD_PATH_DGID),
		       mask & MAD_COMPONENT(MAD_PATH_DLID), &to);
	if (from_how < 0 || to_how < 0)
		return;
	for (uint32_t i = 0; i < m->node_count; i++)
		for (unsigned p = 0; p <= m->nodes[i].info.num_ports; p++) {
			const struct path_end one = { i, (uint8_t)p };

			if (!is_end_port(&m->nodes[i], p) || !is_meant(from_how, &from, i, p))
				continue;
			if (to_how) {
				path(m, a, &one, &to);
				continue;
			}
			if (!from_how && m->node_count > PATHS_MAX / m->node_count) {
				a->status = MAD_SA_NO_RESOURCES;
				return;
			}
			for (uint32_t j = 0; j < m->node_count && !a->status; j++)
				for (unsigned r = 0; r <= m->nodes[j].info.num_ports; r++)
					if (is_end_port(&m->nodes[j], r))
						path(m, a, &one, &(struct path_end){ j, (uint8_t)r });
		}
}

int sa_records(const struct manager *m, struct sa_answer *a)
{
	static const struct {
		uint16_t attr_id;
		void (*add)(const struct manager *m, struct sa_answer *a);
	} kinds[] = {
		{ MAD_ATTR_NODE_RECORD, nodes }, { MAD_ATTR_PORT_INFO_RECORD, ports },
		{ MAD_ATTR_LINK_RECORD, links }, { MAD_ATTR_SWITCH_INFO_RECORD, switches },
		{ MAD_ATTR_LINEAR_FORWARDING_RECORD, forwarding },
		{ MAD_ATTR_SM_INFO_RECORD, managers }, { MAD_ATTR_PKEY_TABLE_RECORD, pkeys },
		{ MAD_ATTR_MC_MEMBER_RECORD, groups }, { MAD_ATTR_PATH_RECORD, paths },
	};

	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		if (kinds[i].attr_id != a->attr_id)
			continue;
		kinds[i].add(m, a);
		return 0;
	}
	return -ENOENT;
}
