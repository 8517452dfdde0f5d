/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Why connection calls fail, and what events of failures mean. The state of an identifier
 * is derived from its public members.
 */
#include <inttypes.h>
#include <string.h>

#include "trace/calls.h"

void show_cm_event_out(struct text *t, struct rdma_cm_event **event)
{
	struct rdma_cm_event *e = *event;
	int status = e->status;

	show_cm_event(t, e);
	switch (e->event) {
	case RDMA_CM_EVENT_REJECTED:
		if (status == 28)
			text_add(t, ": the other side refused by rdma_reject");
		else if (status == 8)
			text_add(t, ": nobody listens at that address and port (port space)");
		else if (status == 10)
			text_add(t, ": stale connection, the other side still has the old one");
		else
			text_add(t, ": refused for reason %d (InfiniBand specification, 12.6.7.2)",
				 status);
		break;
	case RDMA_CM_EVENT_UNREACHABLE:
		text_add(t, ": no answer from the other side (%s)",
			 strerrordesc_np(status < 0 ? -status : status));
		break;
	case RDMA_CM_EVENT_ADDR_ERROR:
	case RDMA_CM_EVENT_ROUTE_ERROR:
	case RDMA_CM_EVENT_CONNECT_ERROR:
	case RDMA_CM_EVENT_MULTICAST_ERROR:
		text_add(t, ": %s", strerrordesc_np(status < 0 ? -status : status));
		break;
	default:
		break;
	}
}

static bool resolved(const struct rdma_cm_id *id)
{
	return id->verbs && id->route.addr.dst_addr.sa_family;
}

/* Writes a fault that every call would have: no identifier, or no device. False: none. */
static bool id_wrong(struct text *t, int error, const struct rdma_cm_id *id)
{
	if (!id)
		text_add(t, "id is NULL");
	else if (error == ENODEV)
		text_add(t, "no device has the address, or its device was removed");
	else
		return false;
	return true;
}

static void event_hint(struct text *t, const char *event, const char *call)
{
	text_add(t, "; %s reports %s through rdma_get_cm_event first", call, event);
}

void why_rdma_create_id(struct text *t, int error, struct rdma_event_channel *channel,
			struct rdma_cm_id **id, void *context, enum rdma_port_space ps)
{
	if (error == EINVAL)
		text_add(t, "port space 0x%x is none of RDMA_PS_TCP, RDMA_PS_UDP, RDMA_PS_IB and RDMA_PS_IPOIB",
			 (unsigned)ps);
	else if (error == ENODEV)
		text_add(t, "there is no RDMA device");
}

void why_rdma_destroy_id(struct text *t, int error, struct rdma_cm_id *id)
{
	id_wrong(t, error, id);
}

void why_rdma_create_ep(struct text *t, int error, struct rdma_cm_id **id,
			struct rdma_addrinfo *res, struct ibv_pd *pd,
			struct ibv_qp_init_attr *attr)
{
	if (!res)
		text_add(t, "res is NULL: it comes from rdma_getaddrinfo");
	else if (error == EADDRINUSE)
		text_add(t, "another process listens at this address and port");
	else if (attr && !(res->ai_flags & RAI_PASSIVE))
		text_add(t, "the address was not resolved, or the queue pair not made (%s)",
			 strerrordesc_np(error));
}

static void address_wrong(struct text *t, int error, struct sockaddr *addr)
{
	if (!addr) {
		text_add(t, "the address is NULL");
		return;
	}
	show_sockaddr(t, addr);
	if (error == EADDRNOTAVAIL)
		text_add(t, " is no address of an RDMA device of this host");
	else if (error == EADDRINUSE)
		text_add(t, ": another identifier has this port");
	else if (error == EACCES)
		text_add(t, ": ports below 1024 need a privilege");
	else if (error == ENODEV)
		text_add(t, ": no RDMA device has this address");
	else
		text_add(t, ": %s", addr->sa_family == AF_INET || addr->sa_family == AF_INET6 ?
			 strerrordesc_np(error) :
			 "its family is none of AF_INET, AF_INET6 and AF_IB");
}

void why_rdma_bind_addr(struct text *t, int error, struct rdma_cm_id *id,
			struct sockaddr *addr)
{
	if (id && error == EINVAL && id->route.addr.src_addr.sa_family)
		text_add(t, "the identifier is bound already");
	else if (!id)
		text_add(t, "id is NULL");
	else
		address_wrong(t, error, addr);
}

void why_rdma_resolve_addr(struct text *t, int error, struct rdma_cm_id *id,
			   struct sockaddr *src, struct sockaddr *dst, int timeout)
{
	if (!id)
		text_add(t, "id is NULL");
	else if (error == EINVAL && dst && src && dst->sa_family != src->sa_family)
		text_add(t, "source and destination are of different families");
	else if (error == EINVAL && resolved(id))
		text_add(t, "the identifier has a destination already, or listens");
	else
		address_wrong(t, error, error == EADDRINUSE || error == EADDRNOTAVAIL ?
					src : dst);
}

void why_rdma_resolve_route(struct text *t, int error, struct rdma_cm_id *id, int timeout)
{
	if (id_wrong(t, error, id))
		return;
	if (!resolved(id)) {
		text_add(t, "the address is not resolved");
		event_hint(t, "RDMA_CM_EVENT_ADDR_RESOLVED", "rdma_resolve_addr");
	} else if (id->route.num_paths)
		text_add(t, "the route is resolved already");
}

static void why_create_qp(struct text *t, int error, struct rdma_cm_id *id,
			  const struct ibv_pd *pd)
{
	if (!id)
		text_add(t, "id is NULL");
	else if (!id->verbs) {
		text_add(t, "the identifier has no device yet: it must be bound to an address, or its destination resolved");
		event_hint(t, "RDMA_CM_EVENT_ADDR_RESOLVED", "rdma_resolve_addr");
	} else if (pd && pd->context != id->verbs)
		text_add(t, "pd is of another context than the identifier (id->verbs): programs that open the device by themselves must take id->verbs");
	else if (id->qp)
		text_add(t, "the identifier has a queue pair already");
	else
		text_add(t, "%s; the line before says why the verb failed",
			 strerrordesc_np(error));
}

void why_rdma_create_qp(struct text *t, int error, struct rdma_cm_id *id, struct ibv_pd *pd,
			struct ibv_qp_init_attr *attr)
{
	why_create_qp(t, error, id, pd);
}

void why_rdma_create_qp_ex(struct text *t, int error, struct rdma_cm_id *id,
			   struct ibv_qp_init_attr_ex *attr)
{
	why_create_qp(t, error, id,
		      attr && attr->comp_mask & IBV_QP_INIT_ATTR_PD ? attr->pd : NULL);
}

void why_rdma_create_srq(struct text *t, int error, struct rdma_cm_id *id, struct ibv_pd *pd,
			 struct ibv_srq_init_attr *attr)
{
	why_create_qp(t, error, id, pd);
}

void why_rdma_create_srq_ex(struct text *t, int error, struct rdma_cm_id *id,
			    struct ibv_srq_init_attr_ex *attr)
{
	why_create_qp(t, error, id, NULL);
}

static bool parameters_wrong(struct text *t, const struct rdma_cm_id *id,
			     const struct rdma_conn_param *p)
{
	struct ibv_device_attr d = why_device(id->verbs);

	if (!p) {
		if (!id->qp)
			text_add(t, "conn_param is NULL and the identifier has no queue pair: one of both is needed");
		return !id->qp;
	}
	return (p->responder_resources != RDMA_MAX_RESP_RES &&
		why_above(t, "responder_resources", p->responder_resources,
			  (uint64_t)d.max_qp_rd_atom, "the device (max_qp_rd_atom)")) ||
	       (p->initiator_depth != RDMA_MAX_INIT_DEPTH &&
		why_above(t, "initiator_depth", p->initiator_depth,
			  (uint64_t)d.max_qp_init_rd_atom, "the device (max_qp_init_rd_atom)"));
}

void why_rdma_connect(struct text *t, int error, struct rdma_cm_id *id,
		      struct rdma_conn_param *p)
{
	/* IP addresses take 36 of the 92 bytes of a request. */
	const unsigned room = id && id->ps == RDMA_PS_TCP ? 56 : 180;

	if (id_wrong(t, error, id))
		return;
	if (!resolved(id)) {
		text_add(t, "the address is not resolved");
		event_hint(t, "RDMA_CM_EVENT_ADDR_RESOLVED", "rdma_resolve_addr");
	} else if (!id->route.num_paths) {
		text_add(t, "the route is not resolved");
		event_hint(t, "RDMA_CM_EVENT_ROUTE_RESOLVED", "rdma_resolve_route");
	} else if (parameters_wrong(t, id, p))
		return;
	else if (p && p->private_data && p->private_data_len > room)
		text_add(t, "private_data_len is %u, a request has room for %u",
			 p->private_data_len, room);
	else if (error == ECONNREFUSED)
		text_add(t, "refused: nobody listens there, or rdma_reject");
	else if (error == EINVAL)
		text_add(t, "the identifier is connecting or connected already");
}

void why_rdma_listen(struct text *t, int error, struct rdma_cm_id *id, int backlog)
{
	if (id_wrong(t, error, id))
		return;
	if (error == EADDRINUSE)
		text_add(t, "another identifier listens at port %u",
			 be16toh(((struct sockaddr_in *)(void *)&id->route.addr.src_addr)->sin_port));
	else if (resolved(id))
		text_add(t, "the identifier has a destination: one that listens is only bound");
	else
		text_add(t, "the identifier listens already, or is no more to be used");
}

void why_rdma_get_request(struct text *t, int error, struct rdma_cm_id *id,
			  struct rdma_cm_id **out)
{
	if (!id_wrong(t, error, id) && error == EINVAL)
		text_add(t, "it is for identifiers without an event channel of the program (rdma_create_id with channel NULL, or rdma_create_ep), which listen");
}

void why_rdma_accept(struct text *t, int error, struct rdma_cm_id *id,
		     struct rdma_conn_param *p)
{
	if (id_wrong(t, error, id))
		return;
	if (!id->verbs)
		text_add(t, "the identifier is none that came with RDMA_CM_EVENT_CONNECT_REQUEST");
	else if (parameters_wrong(t, id, p))
		return;
	else if (p && p->private_data && p->private_data_len > 196)
		text_add(t, "private_data_len is %u, an answer has room for 196",
			 p->private_data_len);
	else
		text_add(t, "%s: rdma_accept answers the request of RDMA_CM_EVENT_CONNECT_REQUEST, once, and only while the other side waits",
			 strerrordesc_np(error));
}

static void why_reject(struct text *t, int error, struct rdma_cm_id *id, unsigned length)
{
	if (id_wrong(t, error, id))
		return;
	if (length > 148)
		text_add(t, "private_data_len is %u, a rejection has room for 148", length);
	else
		text_add(t, "there is no request to reject: the identifier must come from RDMA_CM_EVENT_CONNECT_REQUEST and not be answered yet");
}

void why_rdma_reject(struct text *t, int error, struct rdma_cm_id *id, const void *data,
		     uint8_t length)
{
	why_reject(t, error, id, length);
}

void why_rdma_reject_ece(struct text *t, int error, struct rdma_cm_id *id, const void *data,
			 uint8_t length)
{
	why_reject(t, error, id, length);
}

void why_rdma_establish(struct text *t, int error, struct rdma_cm_id *id)
{
	if (id_wrong(t, error, id))
		return;
	if (id->qp)
		text_add(t, "it is for identifiers without a queue pair of rdma_create_qp; this one is established by the library");
	else
		text_add(t, "it comes after RDMA_CM_EVENT_CONNECT_RESPONSE");
}

void why_rdma_notify(struct text *t, int error, struct rdma_cm_id *id,
		     enum ibv_event_type event)
{
	if (event != IBV_EVENT_COMM_EST)
		text_add(t, "only IBV_EVENT_COMM_EST can be notified");
	else
		text_add(t, "the connection is established already, or not accepted yet");
}

void why_rdma_disconnect(struct text *t, int error, struct rdma_cm_id *id)
{
	if (id_wrong(t, error, id))
		return;
	text_add(t, id->verbs ? "the identifier is not connected" :
				"the identifier has never been connected: it has no device yet");
}

static void why_group(struct text *t, int error, struct rdma_cm_id *id, struct sockaddr *addr)
{
	if (id_wrong(t, error, id))
		return;
	if (!id->verbs)
		text_add(t, "the identifier must be bound to an address of this host, or its destination resolved, before it joins a group");
	else if (id->qp && id->qp->qp_type != IBV_QPT_UD)
		text_add(t, "only queue pairs of type UD can be in a group");
	else if (addr) {
		show_sockaddr(t, addr);
		text_add(t, ": %s", strerrordesc_np(error));
	}
}

void why_rdma_join_multicast(struct text *t, int error, struct rdma_cm_id *id,
			     struct sockaddr *addr, void *context)
{
	why_group(t, error, id, addr);
}

void why_rdma_join_multicast_ex(struct text *t, int error, struct rdma_cm_id *id,
				struct rdma_cm_join_mc_attr_ex *attr, void *context)
{
	why_group(t, error, id,
		  attr && attr->comp_mask & RDMA_CM_JOIN_MC_ATTR_ADDRESS ? attr->addr : NULL);
}

void why_rdma_leave_multicast(struct text *t, int error, struct rdma_cm_id *id,
			      struct sockaddr *addr)
{
	if (!id_wrong(t, error, id))
		text_add(t, "the identifier has not joined this group");
}

void why_rdma_set_option(struct text *t, int error, struct rdma_cm_id *id, int level,
			 int option, void *value, size_t length)
{
	if (id_wrong(t, error, id))
		return;
	if (error == ENOSYS || error == EOPNOTSUPP || error == ENOPROTOOPT)
		text_add(t, "level %d has no option %d", level, option);
	else
		text_add(t, "option %d of level %d: wrong length (%zu) or value, or not possible at this time",
			 option, level, length);
}

void why_rdma_migrate_id(struct text *t, int error, struct rdma_cm_id *id,
			 struct rdma_event_channel *channel)
{
	id_wrong(t, error, id);
}

void why_rdma_getaddrinfo(struct text *t, int error, const char *node, const char *service,
			  const struct rdma_addrinfo *hints, struct rdma_addrinfo **res)
{
	if (!node && !service && !(hints && (hints->ai_src_addr || hints->ai_dst_addr)))
		text_add(t, "node, service and the addresses of hints are all missing");
	else
		text_add(t, "%s%s%s cannot be resolved (getaddrinfo(3))", node ? node : "",
			 service ? " port " : "", service ? service : "");
}

void why_rdma_init_qp_attr(struct text *t, int error, struct rdma_cm_id *id,
			   struct ibv_qp_attr *attr, int *mask)
{
	if (id_wrong(t, error, id))
		return;
	text_add(t, id->verbs ? "qp_attr->qp_state asks for a state for which the connection has not come far enough (RTR and RTS: after the other side's answer)" :
				"the identifier has no device yet");
}
