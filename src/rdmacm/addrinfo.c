/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rdma_getaddrinfo(): names to addresses by getaddrinfo(3), port spaces and QP
 * types by the kind of service. No route data: our devices need none.
 */
#include <netdb.h>
#include <stdlib.h>
#include <string.h>

#include "rdmacm/cma.h"
#include "rdmacm/forward.h"

#define RAI_KNOWN (RAI_PASSIVE | RAI_NUMERICHOST | RAI_NOROUTE | RAI_FAMILY)

static void hints_convert(const struct rdma_addrinfo *from, struct addrinfo *to)
{
	bool stream = from->ai_qp_type == IBV_QPT_RC ||
		      from->ai_qp_type == IBV_QPT_UC;

	*to = (struct addrinfo){ .ai_family = from->ai_family };
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
		/* UC by this port space: the service names are TCP's. */
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

static int result_convert(const struct addrinfo *ai,
			  const struct rdma_addrinfo *hints,
			  struct rdma_addrinfo *rai)
{
	bool passive = hints->ai_flags & RAI_PASSIVE;
	char **name = passive ? &rai->ai_src_canonname : &rai->ai_dst_canonname;

	rai->ai_flags = passive ? RAI_PASSIVE : 0;
	rai->ai_family = ai->ai_family;
	rai->ai_qp_type = hints->ai_qp_type ? hints->ai_qp_type :
			  ai->ai_socktype == SOCK_DGRAM ? IBV_QPT_UD : IBV_QPT_RC;
	rai->ai_port_space = hints->ai_port_space ? hints->ai_port_space :
			     ai->ai_protocol == IPPROTO_UDP ? RDMA_PS_UDP :
							      RDMA_PS_TCP;
	if (ai->ai_canonname) {
		*name = strdup(ai->ai_canonname);
		if (!*name)
			return EAI_MEMORY;
	}
	return passive ? addr_dup(ai->ai_addr, ai->ai_addrlen, &rai->ai_src_addr,
				  &rai->ai_src_len) :
			 addr_dup(ai->ai_addr, ai->ai_addrlen, &rai->ai_dst_addr,
				  &rai->ai_dst_len);
}

static int names_resolve(const char *node, const char *service,
			 const struct rdma_addrinfo *hints,
			 struct rdma_addrinfo *rai)
{
	struct addrinfo want, *found;
	int ret;

	hints_convert(hints, &want);
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
	rai->ai_flags = hints->ai_flags;
	rai->ai_family = hints->ai_family;
	rai->ai_qp_type = hints->ai_qp_type;
	rai->ai_port_space = hints->ai_port_space;
	if (!hints->ai_dst_len)
		return 0;
	return addr_dup(hints->ai_dst_addr, hints->ai_dst_len, &rai->ai_dst_addr,
			&rai->ai_dst_len);
}

/* The source that the routing table gives, when the caller named none. */
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
		return 0; /* left out, says the manual page */
	return addr_dup((struct sockaddr *)&src,
			cma_addr_len((struct sockaddr *)&src),
			&rai->ai_src_addr, &rai->ai_src_len);
}

CMA_EXPORT int rdma_getaddrinfo(const char *node, const char *service,
				const struct rdma_addrinfo *hints,
				struct rdma_addrinfo **res)
{
	/* It asks ibacm for the route of an InfiniBand device. */
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
