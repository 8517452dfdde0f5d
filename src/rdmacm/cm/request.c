/* SPDX-License-Identifier: BSD-2-Clause */
/* Connection requests: checks them and makes the listener's children. */
#define LOG_ROOM "rdmacm"
#include <string.h>

#include "rdmacm/base/addr.h"
#include "rdmacm/cm/cm.h"
#include "rdmacm/id/id.h"
#include "rdmacm/resolve/resolve.h"
#include "util/clock.h"
#include "util/log.h"
#include "util/log_limit.h"

/* The QP type that answers; IBV_QPT_DRIVER: the requested service is not supported. */
static enum ibv_qp_type child_type(const struct cm_mad *mad)
{
	if (mad->type == CM_SIDR_REQ)
		return IBV_QPT_UD;
	switch (mad->req.service) {
	case CM_SERVICE_RC:
		return IBV_QPT_RC;
	case CM_SERVICE_UC:
		return IBV_QPT_UC;
	case CM_SERVICE_EXTENDED:
		return mad->req.extended_service == CM_EXTENDED_XRC ?
			       IBV_QPT_XRC_RECV : IBV_QPT_DRIVER;
	default:
		return IBV_QPT_DRIVER;
	}
}

/* What a REQ and a SIDR_REQ both have. */
struct request_said {
	uint64_t service;
	const uint8_t *data; /* private */
	size_t len;
};

static struct request_said request_said(const struct cm_mad *mad)
{
	if (mad->type == CM_SIDR_REQ)
		return (struct request_said){ mad->sidr_req.service_id,
					      mad->sidr_req.private_data,
					      CM_SIDR_REQ_PRIVATE };
	return (struct request_said){ mad->req.service_id, mad->req.private_data,
				      CM_REQ_PRIVATE };
}

/* Reads the addresses of a request and checks it. 0 or enum cm_reason. */
static int request_check(const struct cma_id *listener, const struct cm_mad *mad,
			 struct cm_ip_header *ip, uint16_t *port)
{
	bool datagram = mad->type == CM_SIDR_REQ;
	struct request_said said = request_said(mad);
	const struct sockaddr *bound = &listener->pub.route.addr.src_addr;
	uint16_t ps;

	if (mad->type != CM_REQ && !datagram)
		return CM_REASON_UNSUPPORTED;
	if (child_type(mad) != listener->pub.qp_type)
		return CM_REASON_INVALID_SERVICE_TYPE;
	if (wire_cm_service_parse(said.service, &ps, port) ||
	    ps != cma_addr_port_space(bound, listener->pub.ps) ||
	    *port != cma_addr_port(bound))
		return CM_REASON_INVALID_SERVICE_ID;
	if (cma_private_lead(listener) == 0)
		return 0;
	if (wire_cm_ip_decode(said.data, said.len, ip))
		return CM_REASON_UNSUPPORTED;
	return 0;
}

/*
 * The addresses of a request without IP addresses. A REQ has the GIDs in its path. A
 * SIDR_REQ has none: on a network they are those of the packet (`way`), else the child gets
 * the listener's address, and the caller, which is on this host, the same GID.
 */
static void gid_addresses(struct rdma_addr *to, const struct sockaddr *bound,
			  const struct hca_gsi_address *way,
			  const struct cm_mad *mad)
{
	struct sockaddr_ib *src = (struct sockaddr_ib *)&to->src_storage;
	union ibv_gid peer;

	cma_addr_copy(&to->src_storage, bound);
	if (mad->type == CM_REQ)
		memcpy(&src->sib_addr, mad->req.primary.remote_gid, 16);
	else if (way)
		memcpy(&src->sib_addr, way->source, 16);
	else if (cma_addr_is_any(&to->src_addr))
		cma_addr_set_loopback(&to->src_addr);
	if (mad->type == CM_REQ)
		memcpy(peer.raw, mad->req.primary.local_gid, 16);
	else if (way)
		memcpy(peer.raw, way->destination, 16);
	else
		cma_addr_to_gid(&to->src_addr, &peer);
	cma_addr_from_gid(&to->dst_storage, &peer, 0);
}

/* Did the request come from the address that its private data gives for the caller? Of a request
 * inside of the host (`way` NULL): is it an address of this host? */
static bool is_callers(const struct sockaddr *said, const struct hca_gsi_address *way)
{
	struct sockaddr_storage loopback;
	union ibv_gid gid;

	if (!way)
		return !cma_addr_check_local(said);
	cma_addr_to_gid(said, &gid);
	if (!memcmp(gid.raw, way->destination, sizeof(gid.raw)))
		return true;
	/* All of 127.0.0.0/8 has one GID. */
	if (!cma_addr_is_loopback(said))
		return false;
	cma_addr_copy(&loopback, said);
	cma_addr_set_loopback((struct sockaddr *)&loopback);
	cma_addr_to_gid((struct sockaddr *)&loopback, &gid);
	return !memcmp(gid.raw, way->destination, sizeof(gid.raw));
}

/* Gives link-local addresses of another host the interface on which its message came. */
static void scope_set(struct sockaddr *addr, uint32_t interface)
{
	struct sockaddr_in6 *sin6 = (struct sockaddr_in6 *)(void *)addr;

	if (addr->sa_family == AF_INET6 && IN6_IS_ADDR_LINKLOCAL(&sin6->sin6_addr))
		sin6->sin6_scope_id = interface;
}

/* The GID of the caller. 0 or enum cm_reason. */
static int child_peer(struct cma_id *child, const struct hca_gsi_address *way,
		      const struct cm_mad *mad)
{
	struct rdma_addr *to = &child->pub.route.addr;
	struct cma_gid_place peer;

	if (way) {
		/* Data must come from where the request came to, and go where the answer
		 * goes, and nowhere else. */
		if (memcmp(way->source, to->addr.ibaddr.sgid.raw, 16) != 0 ||
		    (mad->type == CM_REQ &&
		     memcmp(way->destination, mad->req.primary.local_gid, 16) != 0))
			return CM_REASON_INVALID_GID;
		memcpy(to->addr.ibaddr.dgid.raw, way->destination, 16);
		child->network = true;
		child->active_mtu = MIN(child->active_mtu,
					cma_interface_mtu(child->interface));
		/* Both sides must cut messages into packets of one size, the caller's. */
		if (mad->type == CM_REQ && mad->req.path_mtu > child->active_mtu)
			return CM_REASON_INVALID_MTU;
	} else if (mad->type == CM_REQ) {
		memcpy(to->addr.ibaddr.dgid.raw, mad->req.primary.local_gid, 16);
	} else if (!cma_device_find(&to->dst_addr, IBV_TRANSPORT_IB, &peer)) {
		to->addr.ibaddr.dgid = peer.gid;
	} else {
		return CM_REASON_INVALID_GID;
	}
	return 0;
}

/* Addresses, device and GIDs of the child. `way`: between hosts. 0 or enum cm_reason. */
static int child_address(struct cma_id *child, const struct cma_id *listener,
			 const struct hca_gsi_address *way,
			 const struct cm_mad *mad, const struct cm_ip_header *ip,
			 uint16_t port)
{
	struct rdma_addr *to = &child->pub.route.addr;
	const struct sockaddr *bound = &listener->pub.route.addr.src_addr;
	struct cma_gid_place place;
	int reason;

	if (bound->sa_family == AF_IB) {
		gid_addresses(to, bound, way, mad);
	} else {
		cma_addr_from_bytes(&to->src_storage, ip->ip_version, ip->dst,
				    port);
		cma_addr_from_bytes(&to->dst_storage, ip->ip_version, ip->src,
				    ip->src_port);
		cma_addr_find_scope(&to->src_addr);
		if (way)
			scope_set(&to->dst_addr, way->interface);
		else
			cma_addr_find_scope(&to->dst_addr);
		if (!is_callers(&to->dst_addr, way))
			return CM_REASON_INVALID_GID;
	}
	if (!cma_addr_is_any(bound) && !cma_addr_same_host(bound, &to->src_addr))
		return CM_REASON_INVALID_GID;
	if (cma_device_find(&to->src_addr, IBV_TRANSPORT_IB, &place) ||
	    cma_id_bind_device(child, &place))
		return CM_REASON_INVALID_GID;
	reason = child_peer(child, way, mad);
	if (reason)
		return reason;
	if (cma_route_fill(child))
		return CM_REASON_NO_RESOURCES;
	/* The way back is the way of the request. */
	if (mad->type == CM_REQ)
		child->pub.route.path_rec->sl = mad->req.primary.sl;
	return 0;
}

unsigned cma_conn_matches(const struct cma_id *listener, const struct cm_mad *mad)
{
	enum { NO, UNREADABLE, BY_ANY_GID, BY_GID, BY_WILDCARD, BY_FAMILY,
	       BY_ADDRESS };
	const struct sockaddr *bound = &listener->pub.route.addr.src_addr;
	bool datagram = mad->type == CM_SIDR_REQ;
	struct request_said said = request_said(mad);
	struct sockaddr_storage wanted;
	struct cm_ip_header ip;
	uint16_t ps, port;
	union ibv_gid gid;

	if (wire_cm_service_parse(said.service, &ps, &port) ||
	    ps != cma_addr_port_space(bound, listener->pub.ps) ||
	    port != cma_addr_port(bound))
		return NO;
	if (bound->sa_family == AF_IB) {
		if (datagram || cma_addr_is_any(bound))
			return BY_ANY_GID;
		cma_addr_to_gid(bound, &gid);
		return memcmp(gid.raw, mad->req.primary.remote_gid, 16) ? NO :
									  BY_GID;
	}
	/* The listener takes the request, in order to reject it with a reason. */
	if (wire_cm_ip_decode(said.data, said.len, &ip))
		return UNREADABLE;
	cma_addr_from_bytes(&wanted, ip.ip_version, ip.dst, port);
	cma_addr_find_scope((struct sockaddr *)&wanted);
	if (cma_addr_same_host(bound, (struct sockaddr *)&wanted))
		return BY_ADDRESS;
	if (!cma_addr_is_any(bound))
		return NO;
	if (bound->sa_family == ((struct sockaddr *)&wanted)->sa_family)
		return BY_FAMILY;
	return listener->v6_only ? NO : BY_WILDCARD;
}

int cma_conn_request(struct cma_id *listener, const struct cm_mad *mad,
		     struct cma_link *link)
{
	static struct log_limit refusals;
	struct cm_ip_header ip;
	struct cma_id *child;
	uint16_t port;
	int reason = request_check(listener, mad, &ip, &port);

	if (reason) {
		log_limited(LOG_INFO, &refusals, clock_monotonic_ns_slow(),
			    "%s refused: reason %d", wire_cm_name(mad->type), reason);
		return reason;
	}
	if (listener->unclaimed_count >= listener->backlog) {
		log_limited(LOG_WARN, &refusals, clock_monotonic_ns_slow(),
			    "port %u: %u requests wait for the application (its backlog), one refused",
			    port, listener->unclaimed_count);
		return CM_REASON_NO_RESOURCES;
	}
	if (cma_id_create(listener->pub.channel, listener->pub.context,
			  listener->pub.ps, child_type(mad), &child))
		return CM_REASON_NO_RESOURCES;

	pthread_mutex_lock(&child->lock);
	reason = child_address(child, listener, link_way(link), mad, &ip, port);
	if (reason)
		goto err_free;
	child->listener = listener;
	child->begun = true;
	if (child->network)
		cma_service_share(cma_side_of(child), cma_side_of(listener));
	reason = CM_REASON_NO_RESOURCES;
	if (route_attach(cma_side_of(child), link))
		goto err_free;
	list_push(&listener->unclaimed, &child->sibling);
	listener->unclaimed_count++;
	if (cma_conn_input(child, cm_state_input_of(mad), mad))
		goto err_detach;
	pthread_mutex_unlock(&child->lock);
	return 0;

err_detach:
	list_remove(&child->sibling);
	listener->unclaimed_count--;
err_free:
	pthread_mutex_unlock(&child->lock);
	if (cma_side_of(child))
		cma_side_close(cma_side_of(child));
	cma_id_free(child);
	return reason;
}
