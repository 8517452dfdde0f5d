/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rdma_getaddrinfo(): addresses by getaddrinfo(3), port space and QP type by the
 * hints. An AF_IB node name is a GID, parsed as an IPv6 address. soft0 needs no
 * route data, so ai_route is empty unless the caller gives one.
 */
#include <netdb.h>
#include <stdlib.h>
#include <string.h>

#include "rdmacm/base/addr.h"
#include "rdmacm/base/base.h"
#include "rdmacm/id/id.h"
#include "rdmacm/system/system.h"
#include "wire/cm.h"

#define RAI_KNOWN (RAI_PASSIVE | RAI_NUMERICHOST | RAI_NOROUTE | RAI_FAMILY)

/*
 * Fills in the port space and QP type that the hints leave open. 0, or
 * EAI_SOCKTYPE: the two do not go together (EAI_QPTYPE, which the manual page
 * names, has no number).
 */
static int service_settle(const struct rdma_addrinfo *hints, bool datagram,
			  struct rdma_addrinfo *rai)
{
	int ps = hints->ai_port_space, type = hints->ai_qp_type;

	if (!ps)
		ps = type == IBV_QPT_UD || (!type && datagram) ? RDMA_PS_UDP :
								 RDMA_PS_TCP;
	if (!type)
		type = ps == RDMA_PS_UDP || ps == RDMA_PS_IPOIB ||
				       (ps == RDMA_PS_IB && datagram) ?
			       IBV_QPT_UD : IBV_QPT_RC;
	rai->ai_port_space = ps;
	rai->ai_qp_type = type;
	return cma_service_exists((enum rdma_port_space)ps,
				  (enum ibv_qp_type)type) ? 0 : EAI_SOCKTYPE;
}

static void hints_convert(const struct rdma_addrinfo *from, struct addrinfo *to)
{
	bool stream = from->ai_qp_type && from->ai_qp_type != IBV_QPT_UD;

	*to = (struct addrinfo){ .ai_family = from->ai_family };
	if (from->ai_family == AF_IB) {
		/* A GID is parsed as an IPv6 address; names are not looked up. */
		to->ai_family = AF_INET6;
		to->ai_flags = AI_NUMERICHOST;
	}
	if (from->ai_flags & RAI_PASSIVE)
		to->ai_flags |= AI_PASSIVE;
	if (from->ai_flags & RAI_NUMERICHOST)
		to->ai_flags |= AI_NUMERICHOST;
	if (stream)
		to->ai_socktype = SOCK_STREAM;
	else if (from->ai_qp_type == IBV_QPT_UD)
		to->ai_socktype = SOCK_DGRAM;
	switch (from->ai_port_space) {
	case RDMA_PS_TCP:
		to->ai_protocol = IPPROTO_TCP;
		break;
	case RDMA_PS_UDP:
		to->ai_protocol = IPPROTO_UDP;
		break;
	case RDMA_PS_IPOIB:
		/* A UC identifier has this port space, too; it uses TCP service names. */
		to->ai_protocol = stream ? IPPROTO_TCP : IPPROTO_UDP;
		break;
	case RDMA_PS_IB:
		if (to->ai_socktype)
			to->ai_protocol = stream ? IPPROTO_TCP : IPPROTO_UDP;
		break;
	default:
		break;
	}
}

static int addr_dup(const struct sockaddr *from, socklen_t len,
		    struct sockaddr **to, socklen_t *to_len)
{
	*to = malloc(len);
	if (!*to)
		return EAI_MEMORY;
	memcpy(*to, from, len);
	*to_len = len;
	return 0;
}

/* An AF_IB address from the IPv6 address as which the GID was parsed, and its port. */
static int gid_dup(const struct sockaddr *from, const struct rdma_addrinfo *rai,
		   struct sockaddr **to, socklen_t *to_len)
{
	uint16_t port = cma_addr_port(from);
	struct sockaddr_storage addr;
	union ibv_gid gid;

	cma_addr_to_gid(from, &gid);
	cma_addr_from_gid(&addr, &gid,
			  wire_cm_service_id((uint16_t)rai->ai_port_space, port));
	return addr_dup((struct sockaddr *)&addr, sizeof(struct sockaddr_ib), to,
			to_len);
}

static int result_convert(const struct addrinfo *ai,
			  const struct rdma_addrinfo *hints,
			  struct rdma_addrinfo *rai)
{
	bool passive = hints->ai_flags & RAI_PASSIVE;
	char **name = passive ? &rai->ai_src_canonname : &rai->ai_dst_canonname;
	struct sockaddr **addr = passive ? &rai->ai_src_addr : &rai->ai_dst_addr;
	socklen_t *len = passive ? &rai->ai_src_len : &rai->ai_dst_len;
	int ret = service_settle(hints, ai->ai_socktype == SOCK_DGRAM, rai);

	if (ret)
		return ret;
	rai->ai_flags = passive ? RAI_PASSIVE : 0;
	rai->ai_family = hints->ai_family == AF_IB ? AF_IB : ai->ai_family;
	if (ai->ai_canonname) {
		*name = strdup(ai->ai_canonname);
		if (!*name)
			return EAI_MEMORY;
	}
	if (hints->ai_family == AF_IB)
		return gid_dup(ai->ai_addr, rai, addr, len);
	return addr_dup(ai->ai_addr, ai->ai_addrlen, addr, len);
}

static int names_resolve(const char *node, const char *service,
			 const struct rdma_addrinfo *hints,
			 struct rdma_addrinfo *rai)
{
	struct addrinfo want, *found;
	int ret = service_settle(hints, false, rai);

	if (ret)
		return ret;
	hints_convert(hints, &want);
	if (node && !(want.ai_flags & AI_NUMERICHOST))
		want.ai_flags |= AI_CANONNAME;
	ret = getaddrinfo(node, service, &want, &found);
	if (ret)
		return ret;
	ret = result_convert(found, hints, rai);
	freeaddrinfo(found);
	return ret;
}

static int addresses_take(const struct rdma_addrinfo *hints,
			  struct rdma_addrinfo *rai)
{
	const struct sockaddr *addr = hints->ai_dst_len ? hints->ai_dst_addr :
							  hints->ai_src_addr;
	int ret = service_settle(hints, false, rai);

	if (ret)
		return ret;
	rai->ai_flags = hints->ai_flags;
	rai->ai_family = hints->ai_family;
	if (!rai->ai_family && (hints->ai_dst_len || hints->ai_src_len))
		rai->ai_family = addr->sa_family;
	if (!hints->ai_dst_len || hints->ai_flags & RAI_PASSIVE)
		return 0;
	return addr_dup(hints->ai_dst_addr, hints->ai_dst_len, &rai->ai_dst_addr,
			&rai->ai_dst_len);
}

/* Sets the source address by the routing table, if the caller gave none. */
static int source_fill(const struct rdma_addrinfo *hints,
		       struct rdma_addrinfo *rai)
{
	struct sockaddr_storage src;

	if (rai->ai_src_len)
		return 0;
	if (hints->ai_src_len)
		return addr_dup(hints->ai_src_addr, hints->ai_src_len,
				&rai->ai_src_addr, &rai->ai_src_len);
	if ((rai->ai_flags & RAI_PASSIVE) || !cma_addr_len(rai->ai_dst_addr) ||
	    cma_addr_source(rai->ai_dst_addr, &src))
		return 0; /* no source address, as the manual page allows */
	return addr_dup((struct sockaddr *)&src,
			cma_addr_len((struct sockaddr *)&src),
			&rai->ai_src_addr, &rai->ai_src_len);
}

/* Copies the caller's route data; rdma_create_ep() uses it. */
static int route_take(const struct rdma_addrinfo *hints,
		      struct rdma_addrinfo *rai)
{
	const struct ibv_path_record *record = hints->ai_route;
	size_t len = (size_t)MAX(hints->ai_route_len, 0);
	struct ibv_path_data *data;

	if (!len || !hints->ai_route || rai->ai_flags & RAI_PASSIVE)
		return 0;
	if (len % sizeof(*data) && len != sizeof(*record))
		return EAI_FAIL;
	rai->ai_route_len = (int)(len % sizeof(*data) ? sizeof(*data) : len);
	rai->ai_route = data = calloc(1, (size_t)rai->ai_route_len);
	if (!data)
		return EAI_MEMORY;
	if (len % sizeof(*data) == 0) {
		memcpy(data, hints->ai_route, len);
		return 0;
	}
	data->flags = IBV_PATH_FLAG_GMP | IBV_PATH_FLAG_PRIMARY |
		      IBV_PATH_FLAG_BIDIRECTIONAL;
	data->path = *record;
	return 0;
}

CMA_EXPORT int rdma_getaddrinfo(const char *node, const char *service,
				const struct rdma_addrinfo *hints,
				struct rdma_addrinfo **res)
{
	/* The system's function may ask ibacm for the route of an InfiniBand device. */
	FORWARD_INSIDE(rdma_getaddrinfo, node, service, hints, res);

	static const struct rdma_addrinfo no_hints;
	struct rdma_addrinfo *rai;
	int ret;

	if (!node && !service && !hints)
		return cma_result(-EINVAL);
	if (!hints)
		hints = &no_hints;
	if (hints->ai_flags & ~RAI_KNOWN)
		return EAI_BADFLAGS;
	ret = cma_devices_init();
	if (ret)
		return cma_result(ret);
	rai = calloc(1, sizeof(*rai));
	if (!rai)
		return cma_result(-ENOMEM);
	if (node || service)
		ret = names_resolve(node, service, hints, rai);
	else
		ret = addresses_take(hints, rai);
	if (!ret)
		ret = source_fill(hints, rai);
	if (!ret)
		ret = route_take(hints, rai);
	if (ret) {
		rdma_freeaddrinfo(rai);
		return ret;
	}
	*res = rai;
	return 0;
}

CMA_EXPORT void rdma_freeaddrinfo(struct rdma_addrinfo *res)
{
	FORWARD_INSIDE(rdma_freeaddrinfo, res);
	while (res) {
		struct rdma_addrinfo *next = res->ai_next;

		free(res->ai_src_addr);
		free(res->ai_dst_addr);
		free(res->ai_src_canonname);
		free(res->ai_dst_canonname);
		free(res->ai_route);
		free(res->ai_connect);
		free(res);
		res = next;
	}
}
