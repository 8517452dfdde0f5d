/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Binding, and resolution of addresses and routes. The kernel's routing table knows every
 * result at once; it is reported as an event nevertheless, as programs expect. Whether
 * another host is there, only the connection request will tell.
 */
#define LOG_ROOM "rdmacm"
#include "rdmacm/resolve/resolve.h"

#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rdmacm/base/addr.h"
#include "rdmacm/base/base.h"
#include "rdmacm/event/event.h"
#include "rdmacm/id/id.h"
#include "rdmacm/id/port.h"
#include "hca/host/subnet_peer.h"
#include "util/log.h"
#include "verbs/private.h"

#define SELECT_EXACTLY 2 /* selector in path records */
#define PATH_VALUE 0x3f  /* mask of the value; the upper two bits are the selector */
/* The field of the ACK timeout, which is one more, has 5 bits. */
#define CMA_PACKET_LIFETIME_MAX 30

int cma_bind(struct cma_id *id, const struct sockaddr *addr)
{
	struct rdma_addr *route = &id->pub.route.addr;
	struct cma_gid_place place = { 0 };
	char text[CMA_ADDR_TEXT];
	int ret;

	if (id->removed)
		return -ENODEV;
	if (id->phase != CMA_UNBOUND || id->begun)
		return -EINVAL;
	cma_addr_copy(&route->src_storage, addr);
	ret = cma_addr_settle(&route->src_addr, id->pub.ps);
	if (ret)
		goto err_clear;
	if (!cma_addr_is_any(&route->src_addr)) {
		ret = cma_addr_check_local(&route->src_addr);
		if (!ret)
			ret = cma_device_find(&route->src_addr, IBV_TRANSPORT_UNKNOWN, &place);
		if (ret) {
			log_warn("bind to %s: %s", cma_addr_text(addr, text),
				 ret == -ENODEV ? "no device has its GID" :
						  strerror(-ret));
			goto err_clear;
		}
	}
	ret = cma_port_take(id);
	/* With REUSEADDR, rdma_listen() takes the port. */
	if (ret == -EADDRINUSE && id->reuse_addr)
		ret = 0;
	if (ret)
		goto err_clear;
	if (place.device)
		ret = cma_id_bind_device(id, &place);
	if (ret) {
		cma_port_release(id);
		goto err_clear;
	}
	id->phase = CMA_BOUND;
	return 0;

err_clear:
	memset(&route->src_storage, 0, sizeof(route->src_storage));
	return ret;
}

/* Gives the identifier a source address that reaches dst_addr. */
static int source_settle(struct cma_id *id, const struct sockaddr *src)
{
	struct rdma_addr *route = &id->pub.route.addr;
	struct sockaddr_storage from;
	struct cma_gid_place place;
	uint16_t port;
	int ret;

	if (id->phase == CMA_UNBOUND && src && !cma_addr_is_any(src))
		return cma_bind(id, src);
	if (id->phase == CMA_BOUND && !cma_addr_is_any(&route->src_addr))
		return 0;
	ret = cma_addr_source(&route->dst_addr, &from);
	if (ret)
		return ret;
	if (id->phase == CMA_UNBOUND) {
		if (src)
			cma_addr_set_port((struct sockaddr *)&from,
					  cma_addr_port(src));
		return cma_bind(id, (struct sockaddr *)&from);
	}
		/* Bound to a wildcard: the port stays, the address is replaced. */
	ret = cma_device_find((struct sockaddr *)&from, IBV_TRANSPORT_UNKNOWN, &place);
	if (ret)
		return ret;
	port = cma_addr_port(&route->src_addr);
	cma_addr_copy(&route->src_storage, (struct sockaddr *)&from);
	cma_addr_set_port(&route->src_addr, port);
	return cma_id_bind_device(id, &place);
}

static pthread_mutex_t tell_lock = PTHREAD_MUTEX_INITIALIZER;

static void tell_forked(void)
{
	pthread_mutex_init(&tell_lock, NULL);
}

__attribute__((constructor)) static void tell_load(void)
{
	pthread_atfork(NULL, NULL, tell_forked);
}

/* Logs an address once until another one is logged, however often a program tries it;
 * the event is reported each time. */
static void tell_unreachable(const char *text)
{
	static char last[CMA_ADDR_TEXT];
	bool told;

	pthread_mutex_lock(&tell_lock);
	told = !strcmp(last, text);
	snprintf(last, sizeof(last), "%s", text);
	pthread_mutex_unlock(&tell_lock);
	LOG_AT(told ? LOG_DEBUG : LOG_WARN,
			 "%s is no address of this host, and no transport in BUSBAR_TRANSPORTS reaches other addresses", text);
}

/* 0, or why the destination, of this host or another one, cannot be reached. */
static int way_find(struct cma_id *id, bool local)
{
	struct rdma_addr *route = &id->pub.route.addr;
	char text[CMA_ADDR_TEXT];
	int ret = cma_connectors_find_way(local);

	if (ret == -ENETUNREACH)
		tell_unreachable(cma_addr_text(&route->dst_addr, text));
	if (ret < 0)
		return ret;
	id->network = ret;
	/* 127.0.0.2 has the GID of 127.0.0.1, which is known already. */
	if (!local)
		cma_addr_to_gid(&route->dst_addr, &route->addr.ibaddr.dgid);
	if (busbar_subnet_on() && !cma_lid_of(&route->addr.ibaddr.dgid)) {
		log_warn("%s is no host of the fabric, or has no LID",
			 cma_addr_text(&route->dst_addr, text));
		return -EHOSTUNREACH;
	}
	return 0;
}

/* 0, or why the destination cannot be reached (status of ADDR_ERROR). */
static int destination_find(struct cma_id *id)
{
	struct rdma_addr *route = &id->pub.route.addr;
	struct cma_gid_place place;
	char text[CMA_ADDR_TEXT];
	int ret;

	id->network = false; /* of an attempt that failed */
	if (cma_addr_is_multicast(&route->dst_addr)) {
		cma_addr_to_gid(&route->dst_addr, &route->addr.ibaddr.dgid);
		return 0;
	}
	ret = cma_addr_check_local(&route->dst_addr);
	if (ret == -EADDRNOTAVAIL)
		return way_find(id, false);
	if (ret)
		return ret;
	ret = cma_device_find(&route->dst_addr, IBV_TRANSPORT_UNKNOWN, &place);
	if (ret) {
		log_warn("%s: no device has its GID",
			 cma_addr_text(&route->dst_addr, text));
		return ret;
	}
	route->addr.ibaddr.dgid = place.gid;
	return way_find(id, true);
}

/* Sets both addresses; they must have the same family, and the identifier's port
 * space. 0 or a negative errno. */
static int destination_take(struct cma_id *id, const struct sockaddr *src,
			    const struct sockaddr *dst)
{
	struct rdma_addr *route = &id->pub.route.addr;
	struct sockaddr_ib *sib = (struct sockaddr_ib *)&route->dst_storage;
	struct sockaddr_storage from;

	if (id->phase == CMA_BOUND)
		src = &route->src_addr;
	cma_addr_copy(&route->dst_storage, dst);
	if (src) {
		cma_addr_copy(&from, src);
		/* For an IP wildcard the routing table gives the source address. */
		if (from.ss_family != route->dst_addr.sa_family &&
		    (!cma_addr_is_any((struct sockaddr *)&from) ||
		     from.ss_family == AF_IB || dst->sa_family == AF_IB))
			return -EINVAL;
	}
	if (cma_addr_is_any(&route->dst_addr))
		cma_addr_set_loopback(&route->dst_addr);
	/* A destination names one service: the mask covers all bits. */
	if (route->dst_addr.sa_family == AF_IB && sib->sib_sid)
		sib->sib_sid_mask = UINT64_MAX;
	return cma_addr_settle(&route->dst_addr, id->pub.ps);
}

int cma_addr_resolve(struct cma_id *id, const struct sockaddr *src, const struct sockaddr *dst)
{
	int ret, status;

	if (id->removed)
		return -ENODEV;
	if (id->phase > CMA_BOUND || id->begun)
		return -EINVAL;
	ret = destination_take(id, src, dst);
	if (ret) {
		memset(&id->pub.route.addr.dst_storage, 0,
		       sizeof(id->pub.route.addr.dst_storage));
		return ret;
	}
	status = destination_find(id);
	if (!status) {
		ret = source_settle(id, src);
		if (ret)
			return ret;
		if (id->network)
			id->active_mtu = MIN(id->active_mtu,
					     cma_interface_mtu(id->interface));
		id->phase = CMA_ADDR_RESOLVED;
	}
	return cma_event_report(id, status ? RDMA_CM_EVENT_ADDR_ERROR :
					     RDMA_CM_EVENT_ADDR_RESOLVED, status);
}

int cma_route_fill(struct cma_id *id)
{
	struct rdma_route *route = &id->pub.route;
	struct ibv_sa_path_rec *path = calloc(1, sizeof(*path));

	if (!path)
		return -ENOMEM;
	path->dgid = route->addr.addr.ibaddr.dgid;
	path->sgid = route->addr.addr.ibaddr.sgid;
	path->dlid = htons(cma_lid_of(&path->dgid));
	path->slid = htons(cma_lid_of(&path->sgid));
	path->hop_limit = CMA_HOP_LIMIT;
	path->traffic_class = id->tos;
	path->reversible = 1;
	path->numb_path = 1;
	path->pkey = htons(0xffff);
	path->mtu_selector = SELECT_EXACTLY;
	path->mtu = id->active_mtu;
	path->rate_selector = SELECT_EXACTLY;
	path->rate = IBV_RATE_100_GBPS;
	path->packet_life_time_selector = SELECT_EXACTLY;
	path->packet_life_time = CMA_PACKET_LIFETIME;
	free(route->path_rec);
	route->path_rec = path;
	route->num_paths = 1;
	id->phase = CMA_ROUTE_RESOLVED;
	return 0;
}

int cma_route_set(struct cma_id *id, const struct ibv_path_data *paths,
		  size_t count)
{
	const uint32_t wanted = IBV_PATH_FLAG_GMP | IBV_PATH_FLAG_PRIMARY |
				IBV_PATH_FLAG_BIDIRECTIONAL;
	const struct rdma_ib_addr *ib = &id->pub.route.addr.addr.ibaddr;
	const struct ibv_path_record *r = NULL;
	struct ibv_sa_path_rec *path;
	uint8_t mtu;
	int ret;

	if (id->removed)
		return -ENODEV;
	if (id->phase != CMA_ADDR_RESOLVED)
		return -EINVAL;
	for (size_t i = 0; i < count && !r; i++)
		if (paths[i].flags == wanted)
			r = &paths[i].path;
	if (!r || memcmp(&r->sgid, &ib->sgid, 16) ||
	    memcmp(&r->dgid, &ib->dgid, 16))
		return -EINVAL;
	mtu = r->mtu & PATH_VALUE;
	if (mtu < IBV_MTU_256 || mtu > IBV_MTU_4096)
		return -EINVAL;
	ret = cma_route_fill(id);
	if (ret)
		return ret;
	path = id->pub.route.path_rec;
	path->mtu = MIN(mtu, id->active_mtu);
	path->traffic_class = id->tos = r->tclass;
	path->packet_life_time =
		MIN(r->packetlifetime & PATH_VALUE, CMA_PACKET_LIFETIME_MAX);
	path->hop_limit = (uint8_t)be32toh(r->flowlabel_hoplimit);
	return cma_event_report(id, RDMA_CM_EVENT_ROUTE_RESOLVED, 0);
}

/* What subnet administration says of the path. 0, or why there is none. */
static int route_ask(struct cma_id *id)
{
	struct ibv_sa_path_rec *path = id->pub.route.path_rec;
	struct hca_subnet_path p;
	int ret = busbar_subnet_path_to(&path->dgid, &p);

	/* Without an answer packets go to the LID with the service level 0. */
	if (ret == -ETIMEDOUT) {
		log_warn("subnet administration does not answer: the route has service level 0");
		return 0;
	}
	if (ret)
		return ret;
	path->dlid = htons(p.lid);
	path->sl = p.sl;
	path->rate = p.rate;
	path->mtu = MIN(p.mtu, path->mtu);
	path->packet_life_time = MIN(p.packet_life, CMA_PACKET_LIFETIME_MAX);
	return 0;
}

int cma_route_resolve(struct cma_id *id)
{
	int ret, status = 0;

	if (id->removed)
		return -ENODEV;
	if (id->phase != CMA_ADDR_RESOLVED)
		return -EINVAL;
	ret = cma_route_fill(id);
	if (ret)
		return ret;
	if (busbar_subnet_on())
		status = route_ask(id);
	if (status)
		id->phase = CMA_ADDR_RESOLVED;
	return cma_event_report(id, status ? RDMA_CM_EVENT_ROUTE_ERROR :
					     RDMA_CM_EVENT_ROUTE_RESOLVED, status);
}
