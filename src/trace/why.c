/* SPDX-License-Identifier: BSD-2-Clause */
/* What all reasons share: limits, states, address vectors. */
#include <inttypes.h>
#include <string.h>

#include "trace/calls.h"

struct ibv_device_attr why_device(struct ibv_context *context)
{
	int (*query)(struct ibv_context *, struct ibv_device_attr *) =
		__extension__(__typeof__(query))real_find("ibv_query_device", "IBVERBS_1.1");
	struct ibv_device_attr attr = { 0 };

	if (context && query && query(context, &attr))
		memset(&attr, 0, sizeof(attr));
	return attr;
}

struct ibv_port_attr why_port(struct ibv_context *context, unsigned port)
{
	const struct saved *s = saved_ops(context);
	struct ibv_port_attr attr = { 0 };

	if (s->verbs.query_port &&
	    s->verbs.query_port(context, (uint8_t)port, &attr, sizeof(attr)))
		memset(&attr, 0, sizeof(attr));
	return attr;
}

bool why_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, struct ibv_qp_init_attr *init)
{
	int (*query)(struct ibv_qp *, struct ibv_qp_attr *, int, struct ibv_qp_init_attr *) =
		__extension__(__typeof__(query))real_find("ibv_query_qp", "IBVERBS_1.1");

	memset(attr, 0, sizeof(*attr));
	memset(init, 0, sizeof(*init));
	return query && object_lives(OBJECT_QP, qp) &&
	       !query(qp, attr, IBV_QP_STATE | IBV_QP_CAP, init);
}

bool why_above(struct text *t, const char *name, uint64_t value, uint64_t max,
	       const char *whose)
{
	if (value <= max)
		return false;
	text_add(t, "%s is %" PRIu64 ", %s has at most %" PRIu64, name, value, whose, max);
	return true;
}

static bool port_wrong(struct text *t, struct ibv_context *context, unsigned port)
{
	unsigned ports = why_device(context).phys_port_cnt;

	if (!ports || (port >= 1 && port <= ports))
		return false;
	text_add(t, "the device has no port %u, its ports are 1 to %u", port, ports);
	return true;
}

#define LID_GROUPS 0xc000

/* In a subnet of InfiniBand packets go to LIDs. */
static bool lid_wrong(struct text *t, const struct ibv_port_attr *port, const struct ibv_ah_attr *a)
{
	const bool group = a->is_global && a->grh.dgid.raw[0] == 0xff;

	if (!a->dlid)
		text_add(t, "ah_attr.dlid is 0: on InfiniBand it must be the LID of the destination's port, which ibv_query_port tells there");
	else if (a->dlid >= LID_GROUPS && !group)
		text_add(t, "ah_attr.dlid 0x%x is a group's: is_global = 1 and the MGID in grh.dgid belong to it",
			 a->dlid);
	else if (a->dlid < LID_GROUPS && group)
		text_add(t, "ah_attr.grh.dgid is a group's, and ah_attr.dlid 0x%x is not: those of groups begin at 0x%x",
			 a->dlid, LID_GROUPS);
	else if (a->src_path_bits >> port->lmc)
		text_add(t, "ah_attr.src_path_bits is %u, and the port has LIDs for 0 to %u (its LMC is %u)",
			 a->src_path_bits, (1u << port->lmc) - 1, port->lmc);
	else
		return false;
	return true;
}

bool why_vector(struct text *t, struct ibv_context *context, const struct ibv_ah_attr *a)
{
	static const union ibv_gid zero;
	struct ibv_port_attr port;
	union ibv_gid gid = zero;
	int (*query)(struct ibv_context *, uint8_t, int, union ibv_gid *) =
		__extension__(__typeof__(query))real_find("ibv_query_gid", "IBVERBS_1.1");

	if (port_wrong(t, context, a->port_num))
		return true;
	if (why_above(t, "ah_attr.sl", a->sl, 15, "a service level"))
		return true;
	port = why_port(context, a->port_num);
	/* A port that only says that it is one of InfiniBand has no manager. */
	if (port.link_layer == IBV_LINK_LAYER_INFINIBAND && port.sm_lid && lid_wrong(t, &port, a))
		return true;
	if (!a->is_global) {
		if (port.flags & IBV_QPF_GRH_REQUIRED ||
		    port.link_layer == IBV_LINK_LAYER_ETHERNET) {
			text_add(t, "ah_attr.is_global is 0: on Ethernet (RoCE) an address vector needs is_global = 1, grh.dgid and grh.sgid_index");
			return true;
		}
		return false;
	}
	if (query && (query(context, a->port_num, a->grh.sgid_index, &gid) ||
		      !memcmp(&gid, &zero, sizeof(gid)))) {
		text_add(t, "ah_attr.grh.sgid_index is %u, the GID table of port %u has no entry there (it has %d; ibv_query_gid_table shows them)",
			 a->grh.sgid_index, a->port_num, port.gid_tbl_len);
		return true;
	}
	if (!memcmp(&a->grh.dgid, &zero, sizeof(zero))) {
		text_add(t, "ah_attr.grh.dgid is zero: it must be the GID of the destination");
		return true;
	}
	return false;
}

/* ---- ports ---- */

void why_ibv_query_port(struct text *t, int error, struct ibv_context *context,
			uint8_t port, struct ibv_port_attr *attr, size_t size)
{
	port_wrong(t, context, port);
}

void why_ibv_query_port_old(struct text *t, int error, struct ibv_context *context,
			    uint8_t port, struct _compat_ibv_port_attr *attr)
{
	port_wrong(t, context, port);
}

static void gid_index_wrong(struct text *t, struct ibv_context *context, unsigned port,
			    long index)
{
	struct ibv_port_attr p;

	if (port_wrong(t, context, port))
		return;
	p = why_port(context, port);
	if (index < 0 || index >= p.gid_tbl_len)
		text_add(t, "index %ld: the GID table of port %u has %d entries, 0 to %d",
			 index, port, p.gid_tbl_len, p.gid_tbl_len - 1);
	else
		text_add(t, "entry %ld of the GID table is empty", index);
}

void why_ibv_query_gid(struct text *t, int error, struct ibv_context *context, uint8_t port,
		       int index, union ibv_gid *gid)
{
	gid_index_wrong(t, context, port, index);
}

void why_ibv_query_gid_ex(struct text *t, int error, struct ibv_context *context,
			  uint32_t port, uint32_t index, struct ibv_gid_entry *entry,
			  uint32_t flags, size_t size)
{
	if (flags)
		text_add(t, "flags is 0x%x: there are none, it must be 0", flags);
	else
		gid_index_wrong(t, context, port, index);
}

void why_ibv_query_pkey(struct text *t, int error, struct ibv_context *context, uint8_t port,
			int index, __be16 *pkey)
{
	struct ibv_port_attr p;

	if (port_wrong(t, context, port))
		return;
	p = why_port(context, port);
	text_add(t, "index %d: the P_Key table of port %u has %u entries", index, port,
		 p.pkey_tbl_len);
}

/* ---- waiting ---- */

static void why_event(struct text *t, int error, const char *what)
{
	if (error == EAGAIN)
		text_add(t, "no %s is there, and the descriptor is non-blocking: wait with poll(2)",
			 what);
}

void why_ibv_get_async_event(struct text *t, int error, struct ibv_context *context,
			     struct ibv_async_event *event)
{
	why_event(t, error, "asynchronous event");
}

void why_ibv_get_cq_event(struct text *t, int error, struct ibv_comp_channel *channel,
			  struct ibv_cq **cq, void **cq_context)
{
	why_event(t, error, "completion event");
}

void why_rdma_get_cm_event(struct text *t, int error, struct rdma_event_channel *channel,
			   struct rdma_cm_event **event)
{
	why_event(t, error, "connection event");
}

const char *why_waits(const char *call)
{
	static const struct {
		const char *call, *what;
	} waits[] = {
		{ "ibv_get_cq_event",
		  "it waits for a completion event; one comes only after ibv_req_notify_cq, which counts for one event" },
		{ "ibv_get_async_event", "it waits for an asynchronous event" },
		{ "rdma_get_cm_event", "it waits for a connection event" },
		{ "rdma_get_request", "it waits for a connection request" },
		{ "ibv_destroy_cq",
		  "it waits until each event of ibv_get_cq_event is acknowledged by ibv_ack_cq_events" },
		{ "ibv_destroy_qp",
		  "it waits until each event of ibv_get_async_event is acknowledged by ibv_ack_async_event" },
		{ "ibv_destroy_srq",
		  "it waits until each event of ibv_get_async_event is acknowledged by ibv_ack_async_event" },
		{ "rdma_destroy_id",
		  "it waits until each event of rdma_get_cm_event is acknowledged by rdma_ack_cm_event" },
	};

	for (size_t i = 0; i < COUNT(waits); i++)
		if (!strcmp(waits[i].call, call))
			return waits[i].what;
	return NULL;
}
