/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Addresses: their kind, whether they are local, and their GIDs. The families are
 * IPv4, IPv6 and AF_IB. An AF_IB address is a GID and a service identifier; only
 * service identifiers of the IP port spaces are served, so it has a port as well.
 *
 * At a port of a simulated subnet (hca/host/subnet.h) the host has one IPv4 address and one GID, those of
 * the port, besides the loopback addresses, which mean the same; other hosts have theirs. The kernel is
 * not asked.
 */
#include "rdmacm/base/addr.h"

#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "util/container_of.h"
#include "verbs/private.h"

static const struct sockaddr_in *in4(const struct sockaddr *addr)
{
	return (const struct sockaddr_in *)(const void *)addr;
}

static const struct sockaddr_in6 *in6(const struct sockaddr *addr)
{
	return (const struct sockaddr_in6 *)(const void *)addr;
}

static const struct sockaddr_ib *inib(const struct sockaddr *addr)
{
	return (const struct sockaddr_ib *)(const void *)addr;
}

/* sib_addr of an AF_IB address has the layout of a struct in6_addr. */
static const struct in6_addr *bytes_of(const struct sockaddr *addr)
{
	return addr->sa_family == AF_IB ?
		       (const struct in6_addr *)(const void *)&inib(addr)->sib_addr :
		       &in6(addr)->sin6_addr;
}

static bool bytes_loopback(const struct in6_addr *a)
{
	return IN6_IS_ADDR_LOOPBACK(a) ||
	       (IN6_IS_ADDR_V4MAPPED(a) && a->s6_addr[12] == 127);
}

socklen_t cma_addr_len(const struct sockaddr *addr)
{
	if (!addr)
		return 0;
	switch (addr->sa_family) {
	case AF_INET:
		return sizeof(struct sockaddr_in);
	case AF_INET6:
		return sizeof(struct sockaddr_in6);
	case AF_IB:
		return sizeof(struct sockaddr_ib);
	default:
		return 0;
	}
}

bool cma_addr_is_any(const struct sockaddr *addr)
{
	if (addr->sa_family == AF_INET)
		return in4(addr)->sin_addr.s_addr == htonl(INADDR_ANY);
	return IN6_IS_ADDR_UNSPECIFIED(bytes_of(addr));
}

bool cma_addr_is_multicast(const struct sockaddr *addr)
{
	if (addr->sa_family == AF_INET)
		return IN_MULTICAST(ntohl(in4(addr)->sin_addr.s_addr));
	if (IN6_IS_ADDR_V4MAPPED(bytes_of(addr)))
		return (bytes_of(addr)->s6_addr[12] & 0xf0) == 0xe0;
	return IN6_IS_ADDR_MULTICAST(bytes_of(addr));
}

bool cma_addr_is_loopback(const struct sockaddr *addr)
{
	if (addr->sa_family == AF_INET)
		return ntohl(in4(addr)->sin_addr.s_addr) >> 24 == 127;
	return bytes_loopback(bytes_of(addr));
}

void cma_addr_to_bytes(const struct sockaddr *addr, uint8_t bytes[16])
{
	memset(bytes, 0, 16);
	if (addr->sa_family == AF_INET)
		memcpy(bytes + 12, &in4(addr)->sin_addr, 4);
	else
		memcpy(bytes, bytes_of(addr), 16);
}

bool cma_addr_same_host(const struct sockaddr *a, const struct sockaddr *b)
{
	uint8_t x[16], y[16];

	if (a->sa_family != b->sa_family)
		return false;
	cma_addr_to_bytes(a, x);
	cma_addr_to_bytes(b, y);
	return !memcmp(x, y, sizeof(x));
}

uint16_t cma_addr_port(const struct sockaddr *addr)
{
	switch (addr->sa_family) {
	case AF_INET:
		return ntohs(in4(addr)->sin_port);
	case AF_INET6:
		return ntohs(in6(addr)->sin6_port);
	case AF_IB:
		return (uint16_t)(be64toh(inib(addr)->sib_sid) &
				  be64toh(inib(addr)->sib_sid_mask));
	default:
		return 0;
	}
}

void cma_addr_set_port(struct sockaddr *addr, uint16_t port)
{
	struct sockaddr_ib *sib = (struct sockaddr_ib *)(void *)addr;

	if (addr->sa_family == AF_INET) {
		((struct sockaddr_in *)(void *)addr)->sin_port = htons(port);
	} else if (addr->sa_family == AF_INET6) {
		((struct sockaddr_in6 *)(void *)addr)->sin6_port = htons(port);
	} else {
		uint64_t sid = be64toh(sib->sib_sid & sib->sib_sid_mask);

		sib->sib_sid = htobe64((sid & RDMA_IB_IP_PS_MASK) | port);
		sib->sib_sid_mask = UINT64_MAX;
	}
}

void cma_addr_set_loopback(struct sockaddr *addr)
{
	struct sockaddr_ib *sib = (struct sockaddr_ib *)(void *)addr;

	if (addr->sa_family == AF_INET)
		((struct sockaddr_in *)(void *)addr)->sin_addr.s_addr =
			htonl(INADDR_LOOPBACK);
	else if (addr->sa_family == AF_INET6)
		((struct sockaddr_in6 *)(void *)addr)->sin6_addr =
			in6addr_loopback;
	else if (IN6_IS_ADDR_V4MAPPED(bytes_of(addr)))
		sib->sib_addr.sib_addr32[3] = htonl(INADDR_LOOPBACK);
	else
		memcpy(&sib->sib_addr, &in6addr_loopback, 16);
}

uint16_t cma_addr_port_space(const struct sockaddr *addr, enum rdma_port_space ps)
{
	if (addr->sa_family != AF_IB)
		return (uint16_t)ps;
	return (uint16_t)(be64toh(inib(addr)->sib_sid) >> 16);
}

int cma_addr_settle(struct sockaddr *addr, enum rdma_port_space ps)
{
	static const uint64_t spaces[] = { RDMA_IB_PS_IB, RDMA_IB_IP_PS_TCP,
					   RDMA_IB_IP_PS_UDP };
	struct sockaddr_ib *sib = (struct sockaddr_ib *)(void *)addr;
	uint64_t mask, sid;

	if (addr->sa_family != AF_IB)
		return 0;
	mask = be64toh(sib->sib_sid_mask);
	sid = be64toh(sib->sib_sid) & mask;
	for (size_t i = 0; i < ARRAY_SIZE(spaces); i++) {
		if (ps != RDMA_PS_IB && ps != (uint16_t)(spaces[i] >> 16))
			continue;
		if ((sid & RDMA_IB_IP_PS_MASK) !=
		    (spaces[i] & mask & RDMA_IB_IP_PS_MASK))
			continue;
		sib->sib_sid = htobe64(spaces[i] | (uint16_t)sid);
		sib->sib_sid_mask = htobe64(mask | RDMA_IB_IP_PS_MASK);
		return 0;
	}
	return -EPROTONOSUPPORT;
}

void cma_addr_find_scope(struct sockaddr *addr)
{
	struct sockaddr_in6 *sin6 = (struct sockaddr_in6 *)(void *)addr;
	struct ifaddrs *list;

	if (addr->sa_family != AF_INET6 || sin6->sin6_scope_id ||
	    !IN6_IS_ADDR_LINKLOCAL(&sin6->sin6_addr) || getifaddrs(&list))
		return;
	for (const struct ifaddrs *i = list; i; i = i->ifa_next)
		if (i->ifa_addr && i->ifa_addr->sa_family == AF_INET6 &&
		    !memcmp(&in6(i->ifa_addr)->sin6_addr, &sin6->sin6_addr, 16))
			sin6->sin6_scope_id = in6(i->ifa_addr)->sin6_scope_id;
	freeifaddrs(list);
}

/* For AF_IB: the IP address that the GID was made from. Others are copied. */
static void ip_of(const struct sockaddr *addr, struct sockaddr_storage *ip)
{
	if (addr->sa_family != AF_IB) {
		cma_addr_copy(ip, addr);
		return;
	}
	cma_addr_from_bytes(ip, IN6_IS_ADDR_V4MAPPED(bytes_of(addr)) ? 4 : 6,
			    bytes_of(addr)->s6_addr, 0);
	cma_addr_find_scope((struct sockaddr *)ip);
}

void cma_addr_from_bytes(struct sockaddr_storage *addr, int ip_version,
			 const uint8_t bytes[16], uint16_t port)
{
	memset(addr, 0, sizeof(*addr));
	if (ip_version == 4) {
		struct sockaddr_in *sin = (struct sockaddr_in *)addr;

		sin->sin_family = AF_INET;
		sin->sin_port = htons(port);
		memcpy(&sin->sin_addr, bytes + 12, 4);
	} else {
		struct sockaddr_in6 *sin6 = (struct sockaddr_in6 *)addr;

		sin6->sin6_family = AF_INET6;
		sin6->sin6_port = htons(port);
		memcpy(&sin6->sin6_addr, bytes, 16);
	}
}

void cma_addr_from_gid(struct sockaddr_storage *addr, const union ibv_gid *gid,
		       uint64_t service_id)
{
	struct sockaddr_ib *sib = (struct sockaddr_ib *)addr;

	memset(addr, 0, sizeof(*addr));
	sib->sib_family = AF_IB;
	sib->sib_pkey = htons(0xffff);
	memcpy(&sib->sib_addr, gid->raw, 16);
	sib->sib_sid = htobe64(service_id);
	sib->sib_sid_mask = service_id ? UINT64_MAX : 0;
}

void cma_addr_copy(struct sockaddr_storage *to, const struct sockaddr *from)
{
	if (from->sa_family == AF_INET6 &&
	    IN6_IS_ADDR_V4MAPPED(&in6(from)->sin6_addr)) {
		cma_addr_from_bytes(to, 4, in6(from)->sin6_addr.s6_addr,
				    cma_addr_port(from));
		return;
	}
	memset(to, 0, sizeof(*to));
	memcpy(to, from, cma_addr_len(from));
}

/* ---- a simulated subnet ---- */

static void own_address(struct sockaddr_in *own)
{
	uint8_t ip[4];

	*own = (struct sockaddr_in){ .sin_family = AF_INET };
	busbar_subnet_own_ipv4(ip);
	memcpy(&own->sin_addr, ip, sizeof(ip));
}

/* The MGID of an IPv4 group, as of IPoIB (RFC 4391, 4), with the signature that Linux' connection manager has
 * in place of 0x401b, and the default P_Key. */
static void group_gid(const struct sockaddr *addr, union ibv_gid *gid)
{
	static const uint8_t begin[6] = { 0xff, 0x12, 0x40, 0x01, 0xff, 0xff };

	memcpy(gid->raw, begin, sizeof(begin));
	memcpy(gid->raw + 12, &in4(addr)->sin_addr, 4);
	gid->raw[12] &= 0x0f;
}

/* Zeros: there is no such host. */
static void subnet_gid(const struct sockaddr *addr, union ibv_gid *gid)
{
	const struct sockaddr *ipv4 = addr;
	struct sockaddr_in own;

	memset(gid, 0, sizeof(*gid));
	if (addr->sa_family == AF_INET && cma_addr_is_multicast(addr)) {
		group_gid(addr, gid);
		return;
	}
	own_address(&own);
	if (cma_addr_is_loopback(addr))
		ipv4 = (const struct sockaddr *)(const void *)&own;
	if (ipv4->sa_family == AF_INET)
		busbar_subnet_gid_of_ipv4((const uint8_t *)&in4(ipv4)->sin_addr, gid);
	else
		memcpy(gid->raw, bytes_of(addr), sizeof(gid->raw));
}

static int subnet_check_local(const struct sockaddr *addr)
{
	union ibv_gid gid, own_gid;
	struct sockaddr_in own;

	if (cma_addr_is_loopback(addr))
		return 0;
	own_address(&own);
	if (addr->sa_family == AF_INET)
		return in4(addr)->sin_addr.s_addr == own.sin_addr.s_addr ? 0 : -EADDRNOTAVAIL;
	subnet_gid((const struct sockaddr *)(const void *)&own, &own_gid);
	subnet_gid(addr, &gid);
	return memcmp(&gid, &own_gid, sizeof(gid)) ? -EADDRNOTAVAIL : 0;
}

static int subnet_source(const struct sockaddr *dst, struct sockaddr_storage *src)
{
	struct sockaddr_in own;
	union ibv_gid gid;

	own_address(&own);
	memset(src, 0, sizeof(*src));
	memcpy(src, &own, sizeof(own));
	if (dst->sa_family == AF_INET)
		return 0;
	subnet_gid((const struct sockaddr *)(const void *)&own, &gid);
	if (dst->sa_family == AF_IB)
		cma_addr_from_gid(src, &gid, 0);
	else
		cma_addr_from_bytes(src, 6, gid.raw, 0);
	return 0;
}

void cma_addr_to_gid(const struct sockaddr *addr, union ibv_gid *gid)
{
	if (busbar_subnet_on()) {
		subnet_gid(addr, gid);
		return;
	}
	cma_addr_to_bytes(addr, gid->raw);
	if (addr->sa_family == AF_INET)
		gid->raw[10] = gid->raw[11] = 0xff;
}

/* bind() fails with EADDRNOTAVAIL unless the address is of this network namespace. */
int cma_addr_check_local(const struct sockaddr *addr)
{
	struct sockaddr_storage probe;
	int fd, ret = 0;

	if (busbar_subnet_on())
		return subnet_check_local(addr);
	ip_of(addr, &probe);
	cma_addr_set_port((struct sockaddr *)&probe, 0);
	fd = socket(probe.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	if (bind(fd, (struct sockaddr *)&probe,
		 cma_addr_len((struct sockaddr *)&probe)))
		ret = -errno;
	close(fd);
	return ret;
}

int cma_addr_source(const struct sockaddr *dst, struct sockaddr_storage *src)
{
	struct sockaddr_storage to;
	socklen_t len = sizeof(*src);
	int fd, ret = 0;

	if (busbar_subnet_on())
		return subnet_source(dst, src);
	ip_of(dst, &to);
	if (!cma_addr_port((struct sockaddr *)&to))
		cma_addr_set_port((struct sockaddr *)&to, 1);
	fd = socket(to.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	/* Connecting a datagram socket sends nothing; it looks up the route. */
	if (connect(fd, (struct sockaddr *)&to,
		    cma_addr_len((struct sockaddr *)&to)) ||
	    getsockname(fd, (struct sockaddr *)src, &len))
		ret = -errno;
	else
		cma_addr_set_port((struct sockaddr *)src, 0);
	close(fd);
	if (!ret && dst->sa_family == AF_IB) {
		union ibv_gid gid;

		cma_addr_to_gid((struct sockaddr *)src, &gid);
		cma_addr_from_gid(src, &gid, 0);
	}
	return ret;
}

const char *cma_addr_text(const struct sockaddr *addr, char text[CMA_ADDR_TEXT])
{
	bool v4 = addr->sa_family == AF_INET;

	if (!cma_addr_len(addr) ||
	    !inet_ntop(v4 ? AF_INET : AF_INET6,
		       v4 ? (const void *)&in4(addr)->sin_addr : bytes_of(addr),
		       text, CMA_ADDR_TEXT)) {
		strcpy(text, "?");
		return text;
	}
	/* The same link-local address may exist on several interfaces. */
	if (addr->sa_family == AF_INET6 && in6(addr)->sin6_scope_id) {
		size_t len = strlen(text);

		snprintf(text + len, CMA_ADDR_TEXT - len, "%%%u",
			 in6(addr)->sin6_scope_id);
	}
	return text;
}

uint16_t cma_lid_of(const union ibv_gid *gid)
{
	uint16_t lid = 0;

	if (busbar_subnet_on())
		busbar_subnet_lid_of_gid(gid, &lid);
	return lid;
}
