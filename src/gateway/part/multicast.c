/* SPDX-License-Identifier: BSD-2-Clause */
/* Settings and socket options of multicast groups; see multicast.h. */
#define LOG_ROOM "gateway/node"
#include "gateway/part/multicast.h"

#include <arpa/inet.h>
#include <errno.h>
#include <net/if.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

#include "gateway/part/socket_option.h"
#include "util/container_of.h"
#include "util/log.h"

#define OFFSET(field) offsetof(struct multicast, field)

static const struct config_key multicast_keys[] = {
	{ "enabled", CONFIG_BOOL, OFFSET(enabled), "true", .help = "Use it" },
	{ "group", CONFIG_STRING, OFFSET(group),
	  .help = "Address of the group to join" },
	{ "interface", CONFIG_STRING, OFFSET(interface),
	  .help = "Name of the interface, or its IPv4 address" },
	{ "ttl", CONFIG_INT, OFFSET(ttl), "255", .min = 0, .max = 255,
	  .help = "How many routers may pass on what is sent" },
	{ "loop", CONFIG_BOOL, OFFSET(loop), "false",
	  .help = "Members on this host get what is sent, too" },
};

int multicast_parse(struct multicast *m, struct config *c, json_t *cfg)
{
	unsigned char binary[16];

	if (!cfg)
		return 0;
	m->present = true;
	if (config_unpack(c, cfg, multicast_keys, ARRAY_SIZE(multicast_keys), m,
			  NULL, 0))
		return -EINVAL;
	if (m->group &&
	    !(inet_pton(AF_INET, m->group, binary) == 1 &&
	      (binary[0] & 0xf0) == 0xe0) &&
	    !(inet_pton(AF_INET6, m->group, binary) == 1 && binary[0] == 0xff)) {
		config_fail(c, cfg, "group",
			    "'%.60s' is no multicast address; they are 224.0.0.0 to 239.255.255.255 and ff00::/8",
			    m->group);
		return -EINVAL;
	}
	return 0;
}

int multicast_merge(struct multicast *in, json_t *in_cfg, struct multicast *out,
		    json_t *out_cfg, bool must_join, struct config *c)
{
	if (in->group && out->group && strcmp(in->group, out->group)) {
		config_fail(c, out_cfg, "group",
			    "is another one than in.multicast.group; where to send says out.address, and a node joins one group");
		return -EINVAL;
	}
	if (!in->present)
		*in = *out;
	else if (!in->group)
		in->group = out->group;
	if (in->present && in->enabled && !in->group && must_join) {
		config_fail(c, in_cfg ? in_cfg : out_cfg, "group",
			    "is required to receive from one");
		return -EINVAL;
	}
	return 0;
}

/* An index from a name or, of IPv4, an address; 0: let the kernel choose. */
static int find_interface(const char *text, struct ip_mreqn *request, const char *node)
{
	if (!text || !*text || !strcmp(text, "*"))
		return 0;
	request->imr_ifindex = (int)if_nametoindex(text);
	if (request->imr_ifindex ||
	    inet_pton(AF_INET, text, &request->imr_address) == 1)
		return 0;
	log_error("%s: multicast.interface: '%s' is neither an interface of this host nor an IPv4 address",
		  node, text);
	return -ENODEV;
}

int multicast_join(int fd, const struct multicast *m, const char *node)
{
	struct ip_mreqn request = { 0 };
	struct ipv6_mreq request6 = { 0 };
	int ret;

	if (!m->enabled || !m->group)
		return 0;
	ret = find_interface(m->interface, &request, node);
	if (ret)
		return ret;
	if (inet_pton(AF_INET, m->group, &request.imr_multiaddr) == 1) {
		/* Not what other programs of this host have joined. */
		socket_option_try(fd, IPPROTO_IP, IP_MULTICAST_ALL, 0, node,
				  "IP_MULTICAST_ALL");
		return socket_option_set(fd, IPPROTO_IP, IP_ADD_MEMBERSHIP, &request,
					 sizeof(request), node,
					 "multicast.group cannot be joined");
	}
	inet_pton(AF_INET6, m->group, &request6.ipv6mr_multiaddr);
	request6.ipv6mr_interface = (unsigned)request.imr_ifindex;
	return socket_option_set(fd, IPPROTO_IPV6, IPV6_JOIN_GROUP, &request6,
				 sizeof(request6), node, "multicast.group cannot be joined");
}

int multicast_set_out(int fd, const struct multicast *m, int family, const char *node)
{
	struct ip_mreqn request = { 0 };
	int loop = m->loop, ttl = (int)m->ttl, ret;
	bool v6 = family == AF_INET6;
	int level = v6 ? IPPROTO_IPV6 : IPPROTO_IP;

	if (!m->enabled)
		return 0;
	ret = find_interface(m->interface, &request, node);
	if (!ret)
		ret = socket_option_set(fd, level, v6 ? IPV6_MULTICAST_HOPS : IP_MULTICAST_TTL,
					&ttl, sizeof(ttl), node, "multicast.ttl");
	if (!ret)
		ret = socket_option_set(fd, level, v6 ? IPV6_MULTICAST_LOOP : IP_MULTICAST_LOOP,
					&loop, sizeof(loop), node, "multicast.loop");
	if (ret || (!request.imr_ifindex && !request.imr_address.s_addr))
		return ret;
	if (v6)
		return socket_option_set(fd, level, IPV6_MULTICAST_IF, &request.imr_ifindex,
					 sizeof(int), node, "multicast.interface");
	return socket_option_set(fd, level, IP_MULTICAST_IF, &request, sizeof(request), node,
				 "multicast.interface");
}
