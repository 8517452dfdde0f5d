/* SPDX-License-Identifier: BSD-2-Clause */
/* Subnet administration: queries and joins, and their answers (IBA volume 1, 15.4). sa_records.c
 * makes the records. */
#define LOG_ROOM "manager"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fabric/manager/sa.h"
#include "fabric/manager/state.h"
#include "util/container_of.h"
#include "util/log.h"
#include "wire/mad/rmpp.h"
#include "wire/mad/sa.h"

/* ---- answers ---- */

/* Sends the records, or the status. */
static void reply(struct manager *m, const struct manager_address *from, const uint8_t *mad,
		  struct sa_answer *a)
{
	const bool table = mad[3] == MAD_GET_TABLE;
	size_t bytes = MAD_SA_DATA_AT + (a->status ? 0 : a->bytes);
	const struct mad_rmpp rmpp = { .version = MAD_RMPP_VERSION,
				       .resp_time = MAD_RMPP_NO_RESP_TIME };
	struct mad_header header;
	struct mad_sa sa;
	uint8_t *out = calloc(1, MAX(bytes, MAD_BYTES));

	if (!out)
		return; /* as a query that was lost */
	memcpy(out, mad, MAD_SA_DATA_AT);
	if (a->bytes && !a->status)
		memcpy(out + MAD_SA_DATA_AT, a->mad + MAD_SA_DATA_AT, a->bytes);
	mad_header_unpack(mad, &header);
	header.status = a->status;
	header.method = header.method == MAD_SET ? MAD_GET_RESP : header.method | MAD_RESPONSE;
	mad_header_pack(&header, out);
	mad_sa_unpack(mad + MAD_SA_HEADER_AT, &sa);
	sa.attribute_offset = a->record_bytes ? mad_sa_offset(a->record_bytes) : 0;
	mad_sa_pack(&sa, out + MAD_SA_HEADER_AT);
	/* Answers to GetTable use RMPP, also short ones; others are one MAD. */
	if (table && !a->status) {
		manager_long_send(m, from, out, bytes);
		return;
	}
	mad_rmpp_pack(&rmpp, out + MAD_SA_RMPP_AT);
	m->ops.send(m->ops.arg, from, out);
	free(out);
}

/* ---- joins ---- */

static const uint8_t no_mgid[16];

/* An MGID of the manager's own choice: locally assigned, of the scope that was asked for. */
static void mgid_make(struct manager *m, uint8_t scope, uint8_t mgid[16])
{
	do {
		memset(mgid, 0, 16);
		mgid[0] = 0xff;
		mgid[1] = (uint8_t)(0x10 | (scope ? scope : 2));
		mgid[2] = 0xa0;
		mgid[3] = 0x1b;
		for (unsigned i = 0; i < 4; i++)
			mgid[12 + i] = (uint8_t)(m->next_number >> (24 - 8 * i));
		m->next_number++;
	} while (manager_group_find(m, mgid));
}

static uint16_t group_make(struct manager *m, struct mad_mc_member_record *r, uint64_t mask,
			   struct manager_group **out)
{
	const uint64_t needed = MAD_COMPONENT(MAD_MC_QKEY) | MAD_COMPONENT(MAD_MC_PKEY) |
				MAD_COMPONENT(MAD_MC_SL) | MAD_COMPONENT(MAD_MC_TCLASS) |
				MAD_COMPONENT(MAD_MC_FLOW_LABEL);
	struct manager_group *g;

	if ((mask & needed) != needed)
		return MAD_SA_INSUFFICIENT_COMPONENTS;
	if (!memcmp(r->mgid, no_mgid, sizeof(no_mgid)))
		mgid_make(m, r->scope, r->mgid);
	if (r->mgid[0] != 0xff)
		return MAD_SA_REQ_INVALID;
	g = manager_group_new(m, r->mgid);
	if (!g)
		return MAD_SA_NO_RESOURCES;
	g->qkey = r->qkey;
	g->pkey = r->pkey;
	g->sl = r->sl;
	g->tclass = r->tclass;
	g->flow_label = r->flow_label;
	g->hop_limit = r->hop_limit;
	g->scope = r->mgid[1] & 15;
	g->mtu = mask & MAD_COMPONENT(MAD_MC_MTU) ? r->mtu : MAD_MTU_2048;
	g->rate = mask & MAD_COMPONENT(MAD_MC_RATE) ? r->rate : MAD_RATE_10;
	g->packet_life = 18;
	*out = g;
	return 0;
}

/* The port whose membership is asked for: does it ask itself? False: another one does so for it (IBA volume 1,
 * 15.2.5.17, ProxyJoin). */
static bool asks_itself(const struct manager *m, const struct sa_answer *a, const uint8_t gid[16], bool *known)
{
	uint64_t guid = 0;
	uint32_t node;
	uint8_t port;

	for (unsigned i = 8; i < 16; i++)
		guid = guid << 8 | gid[i];
	*known = manager_port_by_guid(m, guid, &node, &port);
	return *known && manager_lid(&m->nodes[node], port) == a->lid;
}

/* Set: creates the group if need be, and joins. */
static void join(struct manager *m, struct sa_answer *a)
{
	struct mad_mc_member_record r;
	struct manager_group *g;
	bool by_itself, known;
	uint8_t *record;

	mad_mc_member_record_unpack(a->query, &r);
	by_itself = asks_itself(m, a, r.port_gid, &known);
	g = manager_group_find(m, r.mgid);
	if (!(a->mask & MAD_COMPONENT(MAD_MC_PORT_GID)) || !r.join_state)
		a->status = MAD_SA_INSUFFICIENT_COMPONENTS;
	else if (!known)
		a->status = MAD_SA_REQ_INVALID; /* names that are no ports' would fill the group */
	else if (!g && !(r.join_state & MAD_JOIN_FULL))
		a->status = MAD_SA_REQ_INVALID; /* only a full member creates a group */
	else if (!g)
		a->status = group_make(m, &r, a->mask, &g);
	else if ((a->mask & MAD_COMPONENT(MAD_MC_QKEY) && r.qkey != g->qkey) ||
		 (a->mask & MAD_COMPONENT(MAD_MC_PKEY) && (r.pkey ^ g->pkey) & 0x7fff))
		a->status = MAD_SA_REQ_INVALID;
	if (!a->status && manager_group_join(m, g, r.port_gid, r.join_state, by_itself))
		a->status = MAD_SA_NO_RESOURCES;
	if (a->status)
		return;
	sa_member_fill(m, g, &r);
	a->record_bytes = MAD_MC_MEMBER_RECORD_BYTES;
	record = sa_answer_record(a);
	a->mask = 0;
	if (record && mad_mc_member_record_pack(&r, record))
		sa_answer_keep(a, record);
}

static void leave(struct manager *m, struct sa_answer *a)
{
	struct mad_mc_member_record r;
	struct manager_group *g;
	bool by_itself, known;
	uint8_t *record;

	mad_mc_member_record_unpack(a->query, &r);
	by_itself = asks_itself(m, a, r.port_gid, &known);
	g = manager_group_find(m, r.mgid);
	if (!g) {
		a->status = MAD_SA_REQ_INVALID;
		return;
	}
	sa_member_fill(m, g, &r);
	if (manager_group_leave(m, g, r.port_gid, r.join_state, by_itself)) {
		a->status = MAD_SA_REQ_INVALID;
		return;
	}
	a->record_bytes = MAD_MC_MEMBER_RECORD_BYTES;
	a->mask = 0;
	record = sa_answer_record(a);
	if (record && mad_mc_member_record_pack(&r, record))
		sa_answer_keep(a, record);
}

/* ---- queries ---- */

static void class_port_info(struct sa_answer *a)
{
	const struct mad_class_port_info info = {
		.base_version = MAD_BASE_VERSION,
		.class_version = MAD_VERSION_SUBN_ADM,
		.capability_mask = 1 << 9, /* IsUDMulticastSupported */
		.resp_time_value = 18,
	};
	uint8_t *record;

	a->record_bytes = 72;
	a->mask = 0;
	record = sa_answer_record(a);
	if (record && mad_class_port_info_pack(&info, record))
		sa_answer_keep(a, record);
}

static void dispatch(struct manager *m, uint8_t method, struct sa_answer *a)
{
	if (a->attr_id == MAD_ATTR_CLASS_PORT_INFO && method == MAD_GET)
		class_port_info(a);
	else if (a->attr_id == MAD_ATTR_MC_MEMBER_RECORD && method == MAD_SET)
		join(m, a);
	else if (a->attr_id == MAD_ATTR_MC_MEMBER_RECORD && method == MAD_DELETE)
		leave(m, a);
	else if ((method == MAD_GET || method == MAD_GET_TABLE) && !sa_records(m, a))
		;
	else
		a->status = MAD_STATUS_BAD_METHOD_ATTRIBUTE;
	if (!a->status && method == MAD_GET && a->count != 1)
		a->status = a->count ? MAD_SA_TOO_MANY_RECORDS : MAD_SA_NO_RECORDS;
}

void manager_administer(struct manager *m, const struct manager_address *from,
			const uint8_t mad[MAD_BYTES])
{
	struct sa_answer a = { .query = mad + MAD_SA_DATA_AT, .lid = from->lid };
	struct mad_header header;
	struct mad_sa sa;

	mad_header_unpack(mad, &header);
	if (header.method & MAD_RESPONSE)
		return;
	mad_sa_unpack(mad + MAD_SA_HEADER_AT, &sa);
	a.attr_id = header.attr_id;
	a.attr_mod = header.attr_mod;
	a.mask = sa.component_mask;
	if (header.class_version != MAD_VERSION_SUBN_ADM)
		a.status = MAD_STATUS_BAD_VERSION;
	else if (!m->sm_lid)
		a.status = MAD_STATUS_BUSY; /* the first sweep */
	else
		dispatch(m, header.method, &a);
	reply(m, from, mad, &a);
	free(a.mad);
}
